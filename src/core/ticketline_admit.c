// ticketline_admit - which requests may wait for a ticket, and which tenants flood
// SPDX-License-Identifier: BSD-3-Clause
//
// See ticketline.h. Each part of the prediction is a rate that the tenant has shown, or is owed;
// the highest counts, as one that is refused wrongly is harmed, and one that is let in wrongly
// waits for queue_timeout at most.
#include "core/ticketline_in.h"

/* Grants a second are averaged over so long: a newer measurement has this part of the weight. */
#define RATE_MIN_US 100000
#define RATE_US     333000

#define LONGEST_US 1e15 /* a prediction */

static double max_of(double a, double b)
{
    return a > b ? a : b;
}

/* ---- active tenants ---- */

void hg_ticketline_move_active(struct hg_ticketline *line, uint64_t now_us)
{
    uint64_t elapsed_us = hg_ticketline_since(now_us, line->active_us);
    if (elapsed_us < HG_TICKETLINE_ACTIVE_US)
        return;
    bool next = elapsed_us < 2 * HG_TICKETLINE_ACTIVE_US;
    line->seen_before = next ? line->seen : 0;
    line->sole_before = next ? line->sole : 0;
    line->seen = 0;
    line->sole = 0;
    line->window++;
    line->active_us = now_us;
}

/* The only one of two; 0: there is none. */
static uint64_t one_of(uint64_t a, uint64_t b)
{
    if (a == 0 || a == b)
        return b;
    return b == 0 ? a : HG_TICKETLINE_SEVERAL;
}

uint64_t hg_ticketline_sole(const struct hg_ticketline *line)
{
    return one_of(line->sole, line->sole_before);
}

void hg_ticketline_see(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant)
{
    if (tenant->window == line->window)
        return;
    tenant->was_active = tenant->window + 1 == line->window;
    tenant->window = line->window;
    line->seen++;
    line->sole = one_of(line->sole, tenant->id);
    if (tenant->mean_16us != 0)
        return;
    line->fresh_count = line->fresh == line->window ? line->fresh_count + 1 : 1;
    line->fresh = line->window;
}

bool hg_ticketline_has_others(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant)
{
    bool is = tenant->window == line->window;
    bool was = is ? tenant->was_active : tenant->window + 1 == line->window;
    return line->seen > is || line->seen_before > was || line->holding > (tenant->out > 0) ||
           line->starved > (tenant->out == 0 && tenant->count > 0);
}

uint32_t hg_ticketline_active(const struct hg_ticketline *line)
{
    uint32_t engaged = line->holding + line->starved;
    uint32_t seen = line->seen > line->seen_before ? line->seen : line->seen_before;
    uint32_t active = seen > engaged ? seen : engaged;
    return active > 0 ? active : 1;
}

/* Waiters that any tenant may have: its share of the tickets. */
static uint32_t share_of(const struct hg_ticketline *line, const struct hg_ticketline_conf *conf)
{
    uint32_t share = conf->size / hg_ticketline_active(line);
    return share > 0 ? share : 1;
}

/* ---- prediction ---- */

static void rate(const struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                 uint64_t now_us)
{
    uint64_t silent_us = line->silent_us + hg_ticketline_silent_us(line, tenant, now_us);
    uint64_t clock_us = hg_ticketline_since(now_us, silent_us);
    uint64_t elapsed_us = hg_ticketline_since(clock_us, tenant->rated_us);
    if (elapsed_us < RATE_MIN_US)
        return;
    double weight = elapsed_us < RATE_US ? (double)elapsed_us / RATE_US : 1;
    double measured = (double)tenant->granted / (double)elapsed_us;
    tenant->grants_per_us += weight * (measured - tenant->grants_per_us);
    tenant->granted = 0;
    tenant->rated_us = clock_us;
}

/* How long one more of the tenant would wait, as far as the tickets go. Without tickets nobody can
   tell: somebody has set the size to 0, and may set it to something else. */
static uint64_t predict_us(const struct hg_ticketline *line,
                           const struct hg_ticketline_tenant *tenant,
                           const struct hg_ticketline_conf *conf)
{
    if (conf->size == 0)
        return 0;
    bool engaged = tenant->out > 0 || tenant->count > 0;
    double tenants = (double)line->holding + line->starved + (engaged ? 0 : 1);
    double part = conf->size / tenants, ahead = tenant->count + 1.0;
    if (tenant->is_held && tenant->limit < part)
        part = tenant->limit;
    double tickets = max_of(tenant->out, part);
    uint64_t service_us = hg_ticketline_net_us(line, tenant, hg_ticketline_service_us(tenant));
    double wait_us = ahead * (double)service_us / tickets;
    if (ahead < wait_us * tenant->grants_per_us)
        wait_us = ahead / tenant->grants_per_us;
    return wait_us < LONGEST_US ? (uint64_t)wait_us : (uint64_t)LONGEST_US;
}

/* For how long nothing has finished that should have; 0: all is well. */
static uint64_t stall_us(const struct hg_ticketline *line,
                         const struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    uint64_t quiet_us = hg_ticketline_quiet_us(line, now_us);
    uint64_t usual_us = hg_ticketline_usual_us(line, tenant);
    return quiet_us > HG_TICKETLINE_STALL_US && quiet_us > 4 * usual_us ? quiet_us : 0;
}

bool hg_ticketline_is_stalled(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    return stall_us(line, tenant, now_us) > 0;
}

/* ---- floods ---- */

/* How often the bound doubles until it is queue_timeout. */
static unsigned doublings(const struct hg_ticketline_conf *conf)
{
    uint64_t bound_us = conf->flood_wait_us > 0 ? conf->flood_wait_us : 1;
    unsigned n = 0;
    for (; bound_us < conf->queue_timeout_us; bound_us *= 2)
        n++;
    return n;
}

uint64_t hg_ticketline_bound_us(const struct hg_ticketline_tenant *tenant,
                                const struct hg_ticketline_conf *conf, uint64_t now_us)
{
    uint64_t n = hg_ticketline_since(now_us, tenant->flood_us) / HG_TICKETLINE_DOUBLE_US;
    if (tenant->flood_us == 0 || n >= doublings(conf))
        return conf->queue_timeout_us;
    return (conf->flood_wait_us > 0 ? conf->flood_wait_us : 1) << n;
}

uint64_t hg_ticketline_flood_since_us(const struct hg_ticketline_tenant *tenant,
                                      const struct hg_ticketline_conf *conf, uint64_t now_us)
{
    return hg_ticketline_bound_us(tenant, conf, now_us) < conf->queue_timeout_us
               ? tenant->flood_since_us
               : 0;
}

/* Its bound is flood_wait again. */
static void flood(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                  const struct hg_ticketline_conf *conf, uint64_t now_us)
{
    if (hg_ticketline_flood_since_us(tenant, conf, now_us) == 0)
        tenant->flood_since_us = now_us;
    tenant->flood_us = now_us;
    uint64_t end_us = now_us + doublings(conf) * (uint64_t)HG_TICKETLINE_DOUBLE_US;
    if (end_us > line->flooded_us)
        line->flooded_us = end_us;
}

void hg_ticketline_note_late(struct hg_ticketline *line, const struct hg_ticketline_waiter *waiter,
                             const struct hg_ticketline_conf *conf, uint64_t now_us)
{
    if (hg_ticketline_since(now_us, waiter->since_us) >= conf->queue_timeout_us &&
        waiter->tenant->count > share_of(line, conf))
        flood(line, waiter->tenant, conf, now_us);
}

/* ---- admission ---- */

/* Is it let in whatever the prediction: its line is short, or the size has just grown? */
static bool is_few(const struct hg_ticketline *line, const struct hg_ticketline_tenant *tenant,
                   const struct hg_ticketline_conf *conf, uint64_t now_us)
{
    uint64_t shows_us = 2 * hg_ticketline_service_us(tenant);
    if (shows_us < HG_TICKETLINE_GROWTH_US)
        shows_us = HG_TICKETLINE_GROWTH_US;
    return tenant->count < share_of(line, conf) ||
           (conf->grew_us != 0 && hg_ticketline_since(now_us, conf->grew_us) < shows_us);
}

struct hg_ticketline_admission hg_ticketline_admit(struct hg_ticketline *line,
                                                   struct hg_ticketline_tenant *tenant,
                                                   const struct hg_ticketline_conf *conf,
                                                   const struct hg_ticketline_waiter *waiter,
                                                   uint64_t now_us)
{
    hg_ticketline_move_active(line, now_us);
    hg_ticketline_see(line, tenant);
    rate(line, tenant, now_us);
    uint64_t wait_us = predict_us(line, tenant, conf), silent_us = stall_us(line, tenant, now_us);
    struct hg_ticketline_admission result = {HG_TICKETLINE_WAIT,
                                             wait_us > silent_us ? wait_us : silent_us};
    uint64_t bound_us = hg_ticketline_bound_us(tenant, conf, now_us);
    uint64_t age_us = hg_ticketline_since(now_us, waiter->came_us);
    bool few = is_few(line, tenant, conf, now_us);
    uint64_t left_us = bound_us > age_us ? bound_us - age_us : 0;

    if (left_us > 0 && result.predicted_us <= left_us)
        return result;
    if (left_us == 0)
        result.why = HG_TICKETLINE_OLD;
    else if (silent_us >= conf->queue_timeout_us || (!few && wait_us <= left_us))
        result.why = HG_TICKETLINE_STALLED;
    else if (!few)
        result.why = HG_TICKETLINE_FLOOD;
    else
        return result;
    tenant->predicted_us = result.predicted_us;
    if (!few && wait_us > left_us && bound_us >= conf->queue_timeout_us)
        flood(line, tenant, conf, now_us);
    return result;
}
