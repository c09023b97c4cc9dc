// counter - a number that one thread writes and any thread may read
// SPDX-License-Identifier: BSD-3-Clause
//
// The writer uses a plain load and store, not a read-modify-write: no bus lock on the request path.
#ifndef HG_BASE_COUNTER_H
#define HG_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t hg_counter;

static inline void hg_counter_add(hg_counter *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void hg_counter_sub(hg_counter *counter, uint64_t n)
{
    hg_counter_add(counter, 0 - n);
}

static inline void hg_counter_set(hg_counter *counter, uint64_t n)
{
    atomic_store_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t hg_counter_get(const hg_counter *counter)
{
    return atomic_load_explicit((hg_counter *)counter, memory_order_relaxed);
}

#endif
