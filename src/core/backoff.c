// backoff - when to try again: full jitter
// SPDX-License-Identifier: BSD-3-Clause
#include "core/backoff.h"

void hg_backoff_init(struct hg_backoff *backoff, uint64_t max_us, uint64_t seed)
{
    *backoff = (struct hg_backoff){.prng = {seed}, .max_us = max_us};
}

uint64_t hg_backoff_next_us(struct hg_backoff *backoff)
{
    uint64_t most = backoff->k < 30 ? (uint64_t)HG_BACKOFF_FIRST_US << backoff->k : UINT64_MAX;
    if (backoff->k < 30)
        backoff->k++;
    if (most > backoff->max_us)
        most = backoff->max_us;
    return most == UINT64_MAX ? hg_prng_next(&backoff->prng)
                              : hg_prng_below(&backoff->prng, most + 1);
}

void hg_backoff_reset(struct hg_backoff *backoff)
{
    backoff->k = 0;
}
