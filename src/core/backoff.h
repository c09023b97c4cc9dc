// backoff - when to try again: full jitter
// SPDX-License-Identifier: BSD-3-Clause
//
// The k-th wait is uniform(0, min(max, 50 ms * 2^k)), the first one (k = 0) is random too, so that
// workers and processes that failed together do not come back together. Pure: the generator's state
// is in the struct, seeded by the caller. Source: Brooker, "Exponential Backoff And Jitter", 2015.
#ifndef HG_CORE_BACKOFF_H
#define HG_CORE_BACKOFF_H

#include <stdint.h>
#include "base/prng.h"

#define HG_BACKOFF_FIRST_US 50000

struct hg_backoff {
    struct hg_prng prng;
    uint64_t max_us;
    uint32_t k; // failures in a row
};

void hg_backoff_init(struct hg_backoff *backoff, uint64_t max_us, uint64_t seed);
/* The next wait; each call counts one more failure. */
uint64_t hg_backoff_next_us(struct hg_backoff *backoff);
/* Back to the first wait: there was no failure for long enough. */
void hg_backoff_reset(struct hg_backoff *backoff);

#endif
