// leaseplan - how workers that share a server's connection limit part it
// SPDX-License-Identifier: BSD-3-Clause
//
//   limit = units of worker 0 + units of worker 1 + ... + units that nobody has
//
// A unit is the right to one open connection. A worker needs what its connections that work take,
// and what it waits for. If all needs fit, each gets its own; else water is filled in: nobody gets
// more than one who is refused something, but for the odd units, which stay where they are so that
// they do not wander. From those targets follows what one worker does now:
//
//  - It waits: it takes units that nobody has, then unused ones of workers that do not wait, or
//    have more than their target. That closes no connection.
//  - Others wait, and that is not enough for them: who has more than his target yields, those that
//    have most beyond it first, and only as much as is missing. Idle connections are outside the
//    target, so a worker yields those though it is below the water; connections that work it yields
//    only when it is above the water, to workers below. After that the giver has no less than the
//    taker, so nothing comes back the same way.
//
// A worker that has units keeps one at least, or its next request would wait for a plan. One that
// has not begun yet is kept one too. Pure.
#ifndef HG_CORE_LEASEPLAN_H
#define HG_CORE_LEASEPLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

#define HG_LEASEPLAN_WORKERS_MAX 64
#define HG_LEASEPLAN_NOBODY      UINT32_MAX

enum hg_leaseplan_life {
    HG_LEASEPLAN_UNBORN, // will come, perhaps: has nothing yet
    HG_LEASEPLAN_ALIVE,
    HG_LEASEPLAN_GONE, // needs nothing any more
};

struct hg_leaseplan_worker {
    enum hg_leaseplan_life life;
    uint32_t units;
    uint32_t held;   // of these, in connections
    uint32_t idle;   // of these, in connections that could be closed: idle past their hold
    uint32_t wanted; // units more that it waits for
    uint32_t target; // set by hg_leaseplan_fill
};

struct hg_leaseplan {
    uint32_t take; // units that nobody has
    uint32_t yield;
    uint32_t from[HG_LEASEPLAN_WORKERS_MAX]; // units to take from each worker, unused ones
};

/* Sets every worker's target; their sum is at most `limit`. `owner`: the one worker that may have
 * units, or HG_LEASEPLAN_NOBODY when all may. */
void hg_leaseplan_fill(struct hg_leaseplan_worker *workers, uint32_t count, uint32_t limit,
                       uint32_t owner);

/* What worker `me` does, when the targets are set. `unowned`: units that nobody has. */
void hg_leaseplan_decide(const struct hg_leaseplan_worker *workers, uint32_t count,
                         uint32_t unowned, uint32_t me, struct hg_leaseplan *ret_plan);

/* Worker `me`'s part when all is even. */
static inline uint32_t hg_leaseplan_part(uint32_t limit, uint32_t count, uint32_t me)
{
    return limit / count + (me < limit % count);
}

#endif
