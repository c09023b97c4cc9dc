// fairpool - max-min fair shares of the free pool, by water-filling
// SPDX-License-Identifier: BSD-3-Clause
//
// The pool of a slot is opened in slices, each a tenth: at slice s (0-9) the buckets together may
// have taken pool * (s + 1) / 10 since the slot began. Each gets min(what it wants, the common
// level), but never less than it has taken already: so who took less catches up, and what a bucket
// leaves is the others' at the next slice.
// When all wants fit, what is left is spread evenly, so that a bucket that wakes up need not wait
// for a slice.
//
// Pure. The level is found by bisection: O(n log cap), no memory. Source: Bertsekas and Gallager,
// Data Networks, 6.5.2 (max-min flow control).
#ifndef HG_CORE_FAIRPOOL_H
#define HG_CORE_FAIRPOOL_H

#include <stddef.h>
#include <stdint.h>

#define HG_FAIR_SLICES   10
#define HG_FAIR_INFINITE UINT64_MAX

/* One bucket's claim, all in units out of the pool since the slot began. */
struct hg_fair {
    uint64_t taken; // already: a lower bound of the share
    uint64_t debt;  // had more than others in earlier slots: stays that far below the level
    uint64_t want;  // by the end of the slice: HG_FAIR_INFINITE while it holds or was refused
    uint64_t most;  // an upper bound: its hard limit
    uint64_t share; // the answer
};

/* What all buckets together may have taken at slice `slice`; the last is the whole pool. */
uint64_t hg_fair_cap(uint64_t pool, uint32_t slice);

/*
 * Fills in the shares. Promises: taken <= share <= max(taken, most); the sum of the shares is at
 * most max(cap, sum of taken), and equal to that unless the bounds `most` forbid; exact to the unit
 * (remainders go round by `turn`). Returns the level, HG_FAIR_INFINITE when all wants fit: who has
 * taken more than that took it from others.
 */
uint64_t hg_fair_fill(struct hg_fair *claims, size_t n, uint64_t cap, uint64_t turn);

#endif
