// credittick - a slot of the credits begins: pool, gauges, shares, grants
// SPDX-License-Identifier: BSD-3-Clause
//
// One thread ticks. What the new slot allows is written where nobody reads yet (by parity), held
// requests get their grants, then one store publishes the slot, and whoever comes first rolls the
// gauges: so the pool is refilled before anybody is decided again, and nobody sees half a tick.
// With free_pool = fair the slot is opened in slices of a tenth, see fairpool.h.
//
// Pure. next_us and view from any thread.
#ifndef HG_CORE_CREDITTICK_H
#define HG_CORE_CREDITTICK_H

#include <stddef.h>
#include "core/credit.h"
#include "core/fairpool.h"

struct hg_credit_tick {
    bool slot, slice;      // a new slot, a new slice began (neither: called too early)
    bool overcommitted;    // the reservations exceed the capacity: all are honoured, the pool is 0
    uint64_t reserved_sum; // effective reservations of the new slot, units
    uint64_t pool;         // free pool of the new slot, units or HG_UNITS_UNLIMITED
    uint64_t poke;         // workers that hold requests: each makes a pass over its held ones
};

/*
 * Begins what is due at `now_us`: the next slot, or (fair) the next slice. After a suspended clock
 * one slot, however many were missed; due times stay on their grid. `buckets` are all live buckets,
 * `scratch` has as many entries and keeps nothing. Order: pool, free gauge, bucket gauges, grants.
 */
void hg_credit_tick(struct hg_credit_node *node, struct hg_credit_bucket *const *buckets, size_t n,
                    struct hg_fair *scratch, uint64_t now_us, struct hg_credit_tick *ret);
/* When hg_credit_tick wants to be called next. */
uint64_t hg_credit_due_us(const struct hg_credit_node *node);

/* Microseconds (at least 1) until the refill that can help a request held for `reason`: the next
 * slice where the pool of a fair node failed, else the tick, or the one that has paid the debt. */
uint64_t hg_credit_next_us(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket,
                           enum hg_credit_reason reason, uint64_t now_us);

/* A moment of a bucket or of the node, in units of the running slot, for statistics. */
struct hg_credit_view {
    uint64_t used, effective, hard, share, pool, pool_used;
    uint32_t users, holders;
};
void hg_credit_view(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket,
                    struct hg_credit_view *ret);

#endif
