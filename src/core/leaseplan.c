// leaseplan - how workers that share a server's connection limit part it
// SPDX-License-Identifier: BSD-3-Clause
#include "core/leaseplan.h"

#include <string.h>

static uint32_t min_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t above(uint32_t a, uint32_t b)
{
    return a > b ? a - b : 0;
}

/* What the worker would have if there were enough. */
static uint32_t need_of(const struct hg_leaseplan_worker *worker, uint32_t limit)
{
    if (worker->life == HG_LEASEPLAN_UNBORN)
        return 1;
    uint64_t need = (uint64_t)above(worker->held, worker->idle) + worker->wanted;
    if (need == 0 && worker->units > 0)
        need = 1;
    return need < limit ? (uint32_t)need : limit;
}

/* Gives the odd units to those that want more than the water gives them: who has most first. */
static void give_odd(struct hg_leaseplan_worker *workers, uint32_t count, const uint32_t *needs,
                     const bool *thirsty, uint32_t odd)
{
    bool given[HG_LEASEPLAN_WORKERS_MAX] = {false};
    for (; odd > 0; odd--) {
        uint32_t best = count;
        for (uint32_t w = 0; w < count; w++) {
            if (thirsty[w] && !given[w] && needs[w] > workers[w].target &&
                (best == count || workers[w].units > workers[best].units))
                best = w;
        }
        if (best == count)
            return;
        given[best] = true;
        workers[best].target++;
    }
}

void hg_leaseplan_fill(struct hg_leaseplan_worker *workers, uint32_t count, uint32_t limit,
                       uint32_t owner)
{
    uint32_t needs[HG_LEASEPLAN_WORKERS_MAX];
    bool thirsty[HG_LEASEPLAN_WORKERS_MAX];
    uint32_t left = limit, drinkers = 0;
    for (uint32_t w = 0; w < count; w++) {
        bool counts =
            owner == HG_LEASEPLAN_NOBODY ? workers[w].life != HG_LEASEPLAN_GONE : w == owner;
        needs[w] = counts ? need_of(&workers[w], limit) : 0;
        thirsty[w] = counts;
        drinkers += counts;
        workers[w].target = 0;
    }
    /* Who needs no more than an even part of what is left gets it, which leaves more for the rest.
     */
    for (bool more = true; more && drinkers > 0;) {
        uint32_t level = left / drinkers;
        more = false;
        for (uint32_t w = 0; w < count; w++) {
            if (!thirsty[w] || needs[w] > level)
                continue;
            workers[w].target = needs[w];
            thirsty[w] = false;
            left -= needs[w];
            drinkers--;
            more = true;
        }
    }
    if (drinkers == 0)
        return;
    for (uint32_t w = 0; w < count; w++) {
        if (thirsty[w])
            workers[w].target = left / drinkers;
    }
    give_odd(workers, count, needs, thirsty, left % drinkers);
}

/* Units that others may take: without a connection, and not needed. */
static uint32_t spare_of(const struct hg_leaseplan_worker *worker)
{
    uint32_t kept = worker->target > worker->held ? worker->target : worker->held;
    return worker->life == HG_LEASEPLAN_ALIVE ? above(worker->units, kept) : 0;
}

static uint32_t missing_of(const struct hg_leaseplan_worker *worker)
{
    if (worker->life != HG_LEASEPLAN_ALIVE)
        return 0;
    return min_of(worker->wanted, above(worker->target, worker->units));
}

/* Fills `plan` for one that waits. */
static void plan_take(const struct hg_leaseplan_worker *workers, uint32_t count, uint32_t unowned,
                      uint32_t me, struct hg_leaseplan *plan)
{
    uint32_t missing = missing_of(&workers[me]);
    plan->take = min_of(missing, unowned);
    missing -= plan->take;
    while (missing > 0) {
        uint32_t best = count, most = 0;
        for (uint32_t w = 0; w < count; w++) {
            uint32_t spare = w == me ? 0 : spare_of(&workers[w]) - plan->from[w];
            if (spare > most) {
                most = spare;
                best = w;
            }
        }
        if (best == count)
            return;
        uint32_t n = min_of(missing, most);
        plan->from[best] += n;
        missing -= n;
    }
}

/* What `me` gives up for others, so that all together give no more than is missing. */
static uint32_t plan_yield(const struct hg_leaseplan_worker *workers, uint32_t count,
                           uint32_t unowned, uint32_t me)
{
    uint64_t missing = 0, there = unowned;
    for (uint32_t w = 0; w < count; w++) {
        missing += missing_of(&workers[w]);
        there += spare_of(&workers[w]);
    }
    if (missing <= there)
        return 0;
    missing -= there;
    uint32_t mine = above(workers[me].units, workers[me].target) - spare_of(&workers[me]);
    for (uint32_t w = 0; w < count; w++) {
        uint32_t others = above(workers[w].units, workers[w].target) - spare_of(&workers[w]);
        if (others > mine || (others == mine && w < me))
            missing = missing > others ? missing - others : 0;
    }
    return missing < mine ? (uint32_t)missing : mine;
}

void hg_leaseplan_decide(const struct hg_leaseplan_worker *workers, uint32_t count,
                         uint32_t unowned, uint32_t me, struct hg_leaseplan *ret_plan)
{
    memset(ret_plan, 0, sizeof *ret_plan);
    for (uint32_t w = 0; w < count; w++)
        unowned -= workers[w].life == HG_LEASEPLAN_UNBORN && workers[w].target > 0 && unowned > 0;
    if (workers[me].wanted > 0)
        plan_take(workers, count, unowned, me, ret_plan);
    ret_plan->yield = plan_yield(workers, count, unowned, me);
}
