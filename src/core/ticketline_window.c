// ticketline_window - how many tickets a tenant may have
// SPDX-License-Identifier: BSD-3-Clause
//
// See ticketline.h. Windows bind tenants whose requests are long, or not known yet: of short ones
// the store's queue is never made.
#include "core/ticketline_in.h"

#define CUT_US     100000   /* a window is cut no more often, nor before the cut can show */
#define RAISE_US   1000000  /* beyond a size that failed it grows by one in so long, */
#define FORGET_US  10000000 /* until then */
#define PROOFS     8        /* after so many windows grow */
#define UNKNOWN_US 500000   /* for so long one that was held back counts as not known */
#define VAIN_US    300000   /* a cut has had time to show after that and three services */

/* For a second at least. In the first one of a line nobody knows who else will come. */
static bool is_alone(const struct hg_ticketline *line, const struct hg_ticketline_tenant *tenant)
{
    return line->window > 2 && !line->windows.has_others && !hg_ticketline_has_others(line, tenant);
}

void hg_ticketline_hold_back(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                             uint64_t now_us)
{
    if (tenant->is_held)
        return;
    if (is_alone(line, tenant))
        tenant->limit = tenant->out + 2;
    else
        hg_ticketline_take_no_turns(line, tenant, now_us);
}

/* How far it may grow now: `failed`, which is more with each second, or forgotten. */
static uint32_t ceiling(struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    if (tenant->failed == UINT32_MAX)
        return UINT32_MAX;
    if (hg_ticketline_since(now_us, tenant->cut_us) >= FORGET_US) {
        tenant->failed = UINT32_MAX;
    } else if (tenant->limit >= tenant->failed &&
               hg_ticketline_since(now_us, tenant->raised_us) >= RAISE_US) {
        tenant->raised_us = now_us;
        tenant->failed += tenant->raise_by;
    }
    return tenant->failed;
}

static void grow(const struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                 uint64_t now_us)
{
    if (tenant->limit > 2 * tenant->out + 2 || (line->windows.over_us > 0 && !tenant->is_short))
        return;
    tenant->limit += tenant->limit < ceiling(tenant, now_us);
}

void hg_ticketline_rejoin(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                          bool answered, uint64_t now_us)
{
    if (line->windows.least == 0)
        tenant->limit = UINT32_MAX; /* there are none any more */
    else if (answered)
        grow(line, tenant, now_us);
    if (tenant->out < tenant->limit)
        hg_ticketline_take_turns(line, tenant, now_us);
}

/* By half, if nothing speaks against it. */
static void grow_by_half(struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    uint32_t to = tenant->limit + (tenant->limit + 1) / 2, most = ceiling(tenant, now_us);
    if (to > most)
        to = most;
    if (to > tenant->limit && tenant->limit <= 2 * tenant->out + 2)
        tenant->limit = to;
}

void hg_ticketline_prove(struct hg_ticketline *line, bool in_time, uint64_t granted_us,
                         uint64_t now_us)
{
    if (granted_us < line->grown_us)
        return; /* it tells of before */
    line->proofs = in_time ? line->proofs + 1 : 0;
    if (line->proofs < PROOFS)
        return;
    line->rounds++;
    hg_ticketline_grow(line, now_us);
}

void hg_ticketline_grow(struct hg_ticketline *line, uint64_t now_us)
{
    line->proofs = 0;
    line->grown_us = now_us;
    HG_LIST_EACH(node, &line->held_back)
    {
        struct hg_ticketline_tenant *tenant =
            HG_CONTAINER_OF(node, struct hg_ticketline_tenant, held);
        if (!tenant->is_short)
            line->unknown_us = now_us;
        grow_by_half(tenant, now_us);
        if (tenant->out < tenant->limit)
            hg_ticketline_take_turns(line, tenant, now_us);
    }
}

bool hg_ticketline_holds_unknown(struct hg_ticketline *line, uint64_t now_us)
{
    HG_LIST_EACH(node, &line->held_back)
    if (!HG_CONTAINER_OF(node, struct hg_ticketline_tenant, held)->is_short)
        line->unknown_us = now_us;
    return line->unknown_us != 0 && hg_ticketline_since(now_us, line->unknown_us) < UNKNOWN_US;
}

/* The cuts were of no use. */
static void take_back(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                      uint64_t now_us)
{
    if (tenant->limit < tenant->before)
        tenant->limit = tenant->before;
    tenant->failed = 2 * tenant->limit;
    tenant->raise_by = tenant->limit;
    tenant->first_cut_us = 0;
    tenant->cut_us = tenant->raised_us = now_us;
    line->windows.vain = true;
}

/* By what of its tickets is in the store's queue, by Little's law, and one. */
static uint32_t size_without_queue(const struct hg_ticketline *line,
                                   const struct hg_ticketline_tenant *tenant, uint64_t mean_us)
{
    uint64_t over_us = line->windows.over_us;
    uint32_t queued = over_us < mean_us ? (uint32_t)(tenant->out * over_us / mean_us) : tenant->out;
    uint32_t to = tenant->out > queued + 1 ? tenant->out - queued - 1 : 0;
    if (to < tenant->out / 2)
        to = tenant->out / 2;
    if (to < line->windows.part)
        to = line->windows.part;
    return to > 0 ? to : 1;
}

/* Short requests wait as long as before, though no more tickets are out than the store has work
   for, and what was under way then has ended long since. */
static bool is_vain(const struct hg_ticketline *line, const struct hg_ticketline_tenant *tenant,
                    uint64_t over_us, uint64_t mean_us, uint64_t now_us)
{
    return tenant->first_cut_us != 0 && line->windows.no_queue &&
           10 * over_us > 9 * (uint64_t)tenant->over_us &&
           hg_ticketline_since(now_us, tenant->first_cut_us) > VAIN_US + 3 * mean_us;
}

void hg_ticketline_cut(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                       uint64_t now_us)
{
    uint64_t mean_us = hg_ticketline_service_us(tenant), over_us = line->windows.over_us;
    uint64_t since_us = hg_ticketline_since(now_us, tenant->cut_us);
    if (line->windows.least == 0 || since_us < CUT_US || since_us < mean_us)
        return;
    if (tenant->first_cut_us != 0 && 2 * over_us < tenant->over_us)
        tenant->first_cut_us = 0; /* it has helped */
    if (is_vain(line, tenant, over_us, mean_us, now_us)) {
        take_back(line, tenant, now_us);
        return;
    }
    uint32_t to = size_without_queue(line, tenant, mean_us);
    if (to >= tenant->limit)
        return;
    if (tenant->first_cut_us == 0) {
        tenant->first_cut_us = now_us;
        tenant->before = tenant->limit;
        tenant->over_us = (uint32_t)over_us;
    }
    tenant->limit = tenant->failed = to;
    tenant->raise_by = 1;
    tenant->cut_us = tenant->raised_us = now_us;
    if (tenant->count > 0 && !tenant->is_held && tenant->out >= to)
        hg_ticketline_take_no_turns(line, tenant, now_us);
}

void hg_ticketline_shrink(const struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                          uint64_t now_us)
{
    uint64_t seconds = hg_ticketline_since(now_us, tenant->idle_us) / HG_TICKETLINE_IDLE_US;
    uint32_t least = line->windows.least;
    if (tenant->mean_16us == 0 && line->fresh_count > 1 && least > line->windows.newcomer)
        least = least / line->fresh_count > line->windows.newcomer ? least / line->fresh_count
                                                                   : line->windows.newcomer;
    if (tenant->limit == UINT32_MAX)
        tenant->limit = least;
    tenant->limit = seconds < 32 ? tenant->limit >> seconds : 0;
    if (tenant->limit < least)
        tenant->limit = least;
    if (least == 0)
        tenant->limit = UINT32_MAX;
}

bool hg_ticketline_widen(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant)
{
    if (tenant->is_held || (line->windows.least > 0 && !is_alone(line, tenant)))
        return false;
    tenant->limit = tenant->out + 1;
    return true;
}
