// arrivals - when the requests of an open loop are to be sent
// SPDX-License-Identifier: BSD-3-Clause
//
// The requests of a tenant are numbered along its rate (load/rate.h). Steady arrivals have the
// numbers 0, 1, 2, ..., and number n belongs to connection n mod C of the tenant's C; each thread
// makes those of its own connections, so that all of them together are exactly the tenant's, and
// evenly spaced. Poisson arrivals are made by each thread at its share of the rate; Poisson
// processes add up to one.
//
// Pure.
#ifndef HG_LOAD_ARRIVALS_H
#define HG_LOAD_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "load/gen.h"
#include "load/rate.h"

enum hg_arrivals_kind {
    HG_ARRIVALS_CLOSED, /* none: connections send when they are answered */
    HG_ARRIVALS_STEADY,
    HG_ARRIVALS_POISSON,
};

/* A thread's connections of a tenant: `first`, `first` + `stride`, ... below `all`. */
struct hg_arrivals_share {
    uint32_t first;
    uint32_t stride;
    uint32_t all;
};

static inline uint32_t hg_arrivals_own(const struct hg_arrivals_share *share)
{
    return share->first < share->all ? (share->all - share->first - 1) / share->stride + 1 : 0;
}

struct hg_arrivals {
    enum hg_arrivals_kind kind;
    struct hg_arrivals_share share;
    struct hg_rate_cursor cursor;
    struct hg_gen_rng rng;
    uint64_t origin_ns;
    uint64_t end_ns;
    uint64_t number;  /* steady */
    double position;  /* Poisson: a number that need not be whole */
    uint64_t next_ns; /* UINT64_MAX: no more */
};

/* Arrivals of `rate` from `origin_ns` on, those before `end_ns`. The kind is not closed, the share
 * not empty, and the rate as hg_rate_when wants it; it must outlive the arrivals. */
void hg_arrivals_init(struct hg_arrivals *arrivals, enum hg_arrivals_kind kind,
                      const struct hg_rate *rate, const struct hg_arrivals_share *share,
                      uint64_t seed, uint64_t origin_ns, uint64_t end_ns);

/* No arrivals. */
static inline void hg_arrivals_clear(struct hg_arrivals *arrivals)
{
    arrivals->next_ns = UINT64_MAX;
}

/* Goes on from next_ns to the arrival after it. */
void hg_arrivals_advance(struct hg_arrivals *arrivals);

#endif
