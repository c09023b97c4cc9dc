// backoff - when to try again: doubling waits with jitter
// SPDX-License-Identifier: BSD-3-Clause
#include "core/backoff.h"

#define DOUBLINGS 30 /* beyond that every bound is the longest */

void hg_backoff_init(struct hg_backoff *backoff, uint64_t first_us, uint64_t max_us, uint64_t seed)
{
    *backoff = (struct hg_backoff){.prng = {seed}, .first_us = first_us, .max_us = max_us};
}

static uint64_t next_bound_us(struct hg_backoff *backoff)
{
    uint64_t bound = UINT64_MAX;
    if (backoff->k < DOUBLINGS)
        bound = backoff->first_us << backoff->k++;
    return bound < backoff->max_us ? bound : backoff->max_us;
}

static uint64_t uniform(struct hg_backoff *backoff, uint64_t most)
{
    return most == UINT64_MAX ? hg_prng_next(&backoff->prng)
                              : hg_prng_below(&backoff->prng, most + 1);
}

uint64_t hg_backoff_next_us(struct hg_backoff *backoff)
{
    return uniform(backoff, next_bound_us(backoff));
}

uint64_t hg_backoff_next_half_us(struct hg_backoff *backoff)
{
    uint64_t bound = next_bound_us(backoff);
    return bound - uniform(backoff, bound / 2);
}

void hg_backoff_reset(struct hg_backoff *backoff)
{
    backoff->k = 0;
}
