// lease - the connections that a server allows, lent to the workers of the process in units
// SPDX-License-Identifier: BSD-3-Clause
//
//   unit:   nobody's ──► a worker's ──take──► held: connect ... close ──put──► the worker's
//              ▲              │                                                   │
//              └──────────────┴── taken by one that waits ◄───────────────────────┘
//
// A worker begins with its even part. It takes a unit before connect() and puts it back when
// close() has returned, and units are moved, never made: so the open sockets of all workers
// together never exceed the limit, not for a moment. Once every HG_LEASE_PLAN_US a worker plans
// (core/leaseplan): one that waits takes units that nobody has and units that others do not use;
// one that shall yield has less capacity than units, closes connections when their hold is over,
// and each unit it then puts back is nobody's.
//
// Unused units need nobody's help to move. For a held one the giver must tick: a worker that is
// idle does so once a second.
//
// Any thread, but each worker calls with its own number. Atomics only: a worker's word holds units
// and held together, so both change at once; every change of it, and of `unowned`, is a
// compare-and-swap.
#ifndef HG_BACK_LEASE_H
#define HG_BACK_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "core/leaseplan.h"

#define HG_LEASE_PLAN_US 100000

struct hg_lease_part {
    /* what others look at */
    _Atomic uint64_t word; /* units << 32 | held */
    _Atomic uint32_t life; /* enum hg_leaseplan_life */
    _Atomic uint32_t idle;
    _Atomic uint32_t wanted; /* since the last plan at least */
    /* the worker's own */
    uint32_t yield;
    uint32_t least; /* that was wanted since the last plan */
    uint64_t planned_us;
} __attribute__((aligned(HG_CACHE_LINE)));

struct hg_lease {
    uint32_t limit, count;
    _Atomic uint32_t unowned;
    _Atomic uint32_t owner; /* the only worker that may have units, or HG_LEASEPLAN_NOBODY */
    struct hg_lease_part *parts;
};

/* `limit` units for `workers` workers, at most HG_LEASEPLAN_WORKERS_MAX. 0 or -ENOMEM. */
HG_MUST_USE int hg_lease_init(struct hg_lease *lease, uint32_t limit, uint32_t workers);
void hg_lease_fini(struct hg_lease *lease);

/* The worker begins, or begins again, and gets its part. */
void hg_lease_open(struct hg_lease *lease, uint32_t worker, uint64_t now_us);
/* It ends: it holds nothing, and what it has is nobody's. */
void hg_lease_close(struct hg_lease *lease, uint32_t worker);

/* Before a connect: may it be made? */
HG_MUST_USE bool hg_lease_take(struct hg_lease *lease, uint32_t worker);
/* After the close has returned, or when no socket was made after all. */
void hg_lease_put(struct hg_lease *lease, uint32_t worker);

/* Connections that the worker should have at most, now: it may hold more for a while. */
uint32_t hg_lease_capacity(const struct hg_lease *lease, uint32_t worker);

/* With each tick of the worker. `wanted`: connections more that it could use, beyond its capacity;
   `idle`: connections that it could close, being idle past their hold. True: call again within
   HG_LEASE_PLAN_US. */
bool hg_lease_tick(struct hg_lease *lease, uint32_t worker, uint32_t wanted, uint32_t idle,
                   uint64_t now_us);

/* From now on `owner` alone may have units, unless there is an owner already: the others' capacity
   is 0. Any thread. */
void hg_lease_claim(struct hg_lease *lease, uint32_t owner);
/* `owner`, if it is that, is no longer: all may have units again. Any thread. */
void hg_lease_unclaim(struct hg_lease *lease, uint32_t owner);
/* The owner, or HG_LEASEPLAN_NOBODY. Any thread. */
static inline uint32_t hg_lease_owner(const struct hg_lease *lease)
{
    return atomic_load_explicit(&lease->owner, memory_order_relaxed);
}

/* Units that a worker has, and those of them that it holds; for statistics and tests. */
static inline uint32_t hg_lease_units(const struct hg_lease *lease, uint32_t worker)
{
    return (uint32_t)(atomic_load_explicit(&lease->parts[worker].word, memory_order_relaxed) >> 32);
}

static inline uint32_t hg_lease_held(const struct hg_lease *lease, uint32_t worker)
{
    return (uint32_t)atomic_load_explicit(&lease->parts[worker].word, memory_order_relaxed);
}

#endif
