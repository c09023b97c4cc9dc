// ticketshare - how a number of tickets that several servers have together is divided among them
// SPDX-License-Identifier: BSD-3-Clause
//
// Max-min fairness (water filling): who wants no more than an equal part has what he wants, and
// what he leaves is divided in the same way among the others. So a limit of the sum binds those
// first that want more than their part. Pure; O(n) for each round, at most n rounds.
#ifndef HG_CORE_TICKETSHARE_H
#define HG_CORE_TICKETSHARE_H

#include <stddef.h>
#include <stdint.h>

/* The sizes of n holders that want `want` and may have `total` together: none more than it wants,
   each that wants any at least one, though there be fewer. */
void hg_ticketshare_cap(const uint64_t *want, size_t n, uint64_t total, uint64_t *ret);

/* The sizes of n holders that have `total` together, by their demand: as above, and what is left is
   divided equally. Their sum is `total`, but for those that would have none: they have one each,
   unless `total` is 0. */
void hg_ticketshare_split(const uint64_t *demand, size_t n, uint64_t total, uint64_t *ret);

#endif
