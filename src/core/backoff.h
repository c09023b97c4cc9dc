// backoff - when to try again: doubling waits with jitter
// SPDX-License-Identifier: BSD-3-Clause
//
// The bound of the k-th wait is min(max, first * 2^k). Full jitter: uniform(0, bound), the first
// one (k = 0) is random too, so that workers and processes that failed together do not come back
// together. Half jitter: uniform(bound / 2, bound), where a wait has to be one. Pure: the
// generator's state is in the struct, seeded by the caller. Source: Brooker, "Exponential Backoff
// And Jitter", 2015.
#ifndef HG_CORE_BACKOFF_H
#define HG_CORE_BACKOFF_H

#include <stdint.h>
#include "base/prng.h"

struct hg_backoff {
    struct hg_prng prng;
    uint64_t first_us;
    uint64_t max_us;
    uint32_t k; // failures in a row
};

void hg_backoff_init(struct hg_backoff *backoff, uint64_t first_us, uint64_t max_us, uint64_t seed);
/* The next wait, with full or half jitter; each call counts one more failure. */
uint64_t hg_backoff_next_us(struct hg_backoff *backoff);
uint64_t hg_backoff_next_half_us(struct hg_backoff *backoff);
/* Back to the first wait. */
void hg_backoff_reset(struct hg_backoff *backoff);

#endif
