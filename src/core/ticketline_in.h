// ticketline_in - what the parts of a ticket line, turns and admission, know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CORE_TICKETLINE_IN_H
#define HG_CORE_TICKETLINE_IN_H

#include "core/ticketline.h"

static inline uint64_t hg_ticketline_since(uint64_t now_us, uint64_t then_us)
{
    return now_us > then_us ? now_us - then_us : 0;
}

/* Its mean service, or what is thought before its first answer. */
static inline uint64_t hg_ticketline_service_us(const struct hg_ticketline_tenant *tenant)
{
    return tenant->mean_16us >= 16 ? tenant->mean_16us / 16 : HG_TICKETLINE_SERVICE_US;
}

/* What a service usually takes, as far as the line and the tenant know. */
static inline uint64_t hg_ticketline_usual_us(const struct hg_ticketline *line,
                                              const struct hg_ticketline_tenant *tenant)
{
    uint64_t of_tenant_us = hg_ticketline_service_us(tenant), of_line_us = line->mean_16us / 16;
    return of_line_us > of_tenant_us ? of_line_us : of_tenant_us;
}

/* For how long nothing has finished, though something is out; 0: nothing is. */
static inline uint64_t hg_ticketline_quiet_us(const struct hg_ticketline *line, uint64_t now_us)
{
    return line->holding > 0 ? hg_ticketline_since(now_us, line->finished_us) : 0;
}

/* How much of that is beyond two usual services. */
static inline uint64_t hg_ticketline_silent_us(const struct hg_ticketline *line,
                                               const struct hg_ticketline_tenant *tenant,
                                               uint64_t now_us)
{
    return hg_ticketline_since(hg_ticketline_quiet_us(line, now_us),
                               2 * hg_ticketline_usual_us(line, tenant));
}

/* The waiter, which is still in line, is refused as its time is over (ticketline_admit.c). */
void hg_ticketline_note_late(struct hg_ticketline *line, const struct hg_ticketline_waiter *waiter,
                             const struct hg_ticketline_conf *conf, uint64_t now_us);
/* Ends the window of active tenants when it is time (ticketline_admit.c). */
void hg_ticketline_move_active(struct hg_ticketline *line, uint64_t now_us);

/* Was any other tenant active in this window or the one before, or is it engaged? */
bool hg_ticketline_has_others(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant);

/* ---- in and out of turns (ticketline.c) ---- */

/* The tenant has waiters, and room again; or it has none any more. */
void hg_ticketline_take_turns(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                              uint64_t now_us);
void hg_ticketline_take_no_turns(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                                 uint64_t now_us);

#endif
