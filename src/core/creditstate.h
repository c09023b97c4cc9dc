// creditstate - the memory of the credits, node, buckets and lanes, and what is set in it
// SPDX-License-Identifier: BSD-3-Clause
//
// Storage for credit.h, credittick.h and held.h, which alone touch the fields; shown so that the
// caller can own it. A bucket stays valid until its last charge is settled. init and bucket_init
// belong on the thread that ticks (or serialised with it), set functions on one thread at a time,
// join, leave and note_impersonated on any. Pure.
// Words that every request writes, words that it reads, and words that only
// settings and the tick use lie on cache lines apart. Arrays of two are by parity of the slot.
#ifndef HG_CORE_CREDITSTATE_H
#define HG_CORE_CREDITSTATE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/attr.h"
#include "core/gauge.h"

#define HG_UNITS_UNLIMITED    UINT64_MAX
#define HG_UNITS_LIMIT_MAX    ((uint64_t)1 << 38) // the highest finite number of units/s
#define HG_CREDIT_WORKERS_MAX 64                  // wake-ups are a bit a worker

enum hg_free_pool { HG_FREE_POOL_FIRST_COME, HG_FREE_POOL_FAIR };

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
    uint64_t level;           // fair: what everybody could have had in the last slice
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
    _Atomic uint32_t users;        // connections that selected it
    _Atomic uint32_t impersonated; // 1 + slot of the last impersonated request
    struct hg_credit_lane *lanes;  // one a worker
    uint64_t recent, seen, lump;   // the ticking thread's, for fair shares
    int64_t account;               // units had more (or, when negative, less) than others
};

/* One worker's held requests of one bucket: written by that worker, grants by the tick. */
struct hg_credit_lane {
    alignas(HG_CACHE_LINE) _Atomic uint64_t units; // of all held
    _Atomic uint64_t head_units, head_since_us;    // of the oldest
    _Atomic uint64_t grant;                        // open 1, round 23, units 40; 0 = none
    _Atomic uint32_t count;
};

struct hg_credit_settings {
    uint64_t capacity; // units/s or HG_UNITS_UNLIMITED
    uint32_t slot_ms;  // 50-1000, clamped
    enum hg_free_pool free_pool;
    uint32_t slow_start_percent; // 0-100, clamped
};

/* Empties a node; `workers` lanes a bucket, 1 to HG_CREDIT_WORKERS_MAX. Make the first buckets,
 * then call hg_credit_tick once before the first request: it fills the pool. */
void hg_credit_init(struct hg_credit_node *node, const struct hg_credit_settings *settings,
                    uint32_t workers);
/* New settings, from the next tick on. */
void hg_credit_set(struct hg_credit_node *node, const struct hg_credit_settings *settings);

/* Empties a bucket; `lanes` is the caller's array of one a worker, kept as long as the bucket.
 * Until the next tick it has no reservation and lives out of the pool. */
void hg_credit_bucket_init(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                           struct hg_credit_lane *lanes, uint64_t reserved, uint64_t hard_limit);
/* New limits in units/s (or HG_UNITS_UNLIMITED), from the next tick on; `observe`: debt is not
 * carried over, since nothing is held that would pay it. The caller checked reserved <= limit. */
void hg_credit_bucket_set(struct hg_credit_bucket *bucket, uint64_t reserved, uint64_t hard_limit,
                          bool observe);

/* A connection selected, or left, the bucket; a request was impersonated in it. Without any of them
 * only slow_start_percent of the reservation is kept for it; the whole from the next tick on. */
void hg_credit_join(struct hg_credit_bucket *bucket);
void hg_credit_leave(struct hg_credit_bucket *bucket);
void hg_credit_note_impersonated(const struct hg_credit_node *node,
                                 struct hg_credit_bucket *bucket);

/* The node's count of slots and slices. */
static inline uint32_t hg_credit_seq(const struct hg_credit_node *node)
{
    return atomic_load_explicit(&node->seq, memory_order_acquire);
}

/* The part of `per_s` units a second that belongs to the slot number `period`, the fraction carried
 * from slot to slot. UNLIMITED stays so. */
uint64_t hg_credit_scale(uint64_t per_s, uint32_t slot_ms, uint64_t period);

#endif
