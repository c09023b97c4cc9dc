// creditstate - the memory of the credits: node, buckets, lanes
// SPDX-License-Identifier: BSD-3-Clause
//
// Storage for credit.h, credittick.h and held.h, which alone touch the fields; shown so that the
// caller can own it. Words that every request writes, words that it reads, and words that only
// settings and the tick use lie on cache lines apart. Arrays of two are by parity of the slot.
#ifndef HG_CORE_CREDITSTATE_H
#define HG_CORE_CREDITSTATE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include "base/attr.h"
#include "core/gauge.h"

#define HG_UNITS_UNLIMITED    UINT64_MAX
#define HG_UNITS_LIMIT_MAX    ((uint64_t)1 << 38) // the highest finite number of units/s
#define HG_CREDIT_WORKERS_MAX 64                  // wake-ups are a bit a worker

/* What the whole process has. */
struct hg_credit_node {
    alignas(HG_CACHE_LINE) _Atomic uint32_t slot;     // number of the running slot, 24 bits
    _Atomic uint32_t seq;                             // counts slots and slices
    _Atomic uint64_t pool[2];                         // free pool of the slot
    _Atomic uint64_t next_tick_us, next_slice_us;     // UINT64_MAX: there is no slice
    alignas(HG_CACHE_LINE) struct hg_gauge free;      // used out of the pool
    alignas(HG_CACHE_LINE) _Atomic uint64_t capacity; // settings, from the next tick on
    _Atomic uint32_t slot_ms, free_pool, slow_start_percent;
    uint32_t workers;
    uint64_t slot_us, period; // the ticking thread's: of the running slot; slots since init
    uint32_t slice;
};

/* One tenant's. */
struct hg_credit_bucket {
    alignas(HG_CACHE_LINE) struct hg_gauge used;
    _Atomic uint64_t queue;  // round 32, lanes that hold 16, open grants 16: held.h
    _Atomic uint32_t wanted; // was refused a part of the pool since the last slice
    alignas(HG_CACHE_LINE) _Atomic uint64_t effective[2]; // of the slot: effective reservation,
    _Atomic uint64_t hard[2];                             // hard limit,
    _Atomic uint64_t share[2];                            // most out of the pool up to this slice,
    _Atomic uint32_t carries[2];                          // and whether debt outlives it
    alignas(HG_CACHE_LINE) _Atomic uint64_t reserved;     // settings, from the next tick on
    _Atomic uint64_t hard_limit;
    _Atomic uint32_t observe;
    _Atomic uint32_t users;            // connections that selected it
    _Atomic uint32_t impersonated;     // 1 + slot of the last impersonated request
    struct hg_credit_lane *lanes;      // one a worker
    uint64_t recent, seen, debt, lump; // the ticking thread's, for fair shares
};

/* One worker's held requests of one bucket: written by that worker, grants by the tick. */
struct hg_credit_lane {
    alignas(HG_CACHE_LINE) _Atomic uint64_t units; // of all held
    _Atomic uint64_t head_units, head_since_us;    // of the oldest
    _Atomic uint64_t grant;                        // open 1, round 23, units 40; 0 = none
    _Atomic uint32_t count;
};

#endif
