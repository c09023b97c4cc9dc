// prng - a small seeded generator: splitmix64
// SPDX-License-Identifier: BSD-3-Clause
//
// For jitter, sampling and simulations, never for secrets. The seed is the state: equal seeds give
// equal sequences, any seed is good. Pure. Source: Steele, Lea, Flood, OOPSLA 2014.
#ifndef HG_BASE_PRNG_H
#define HG_BASE_PRNG_H

#include <stdint.h>

struct hg_prng {
    uint64_t state;
};

static inline uint64_t hg_prng_next(struct hg_prng *prng)
{
    uint64_t z = prng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in 0 .. bound - 1; 0 when the bound is 0. Biased by less than bound / 2^32 for bounds
 * below 2^32. */
static inline uint64_t hg_prng_below(struct hg_prng *prng, uint64_t bound)
{
    if (bound <= UINT32_MAX)
        return (hg_prng_next(prng) >> 32) * bound >> 32;
    return hg_prng_next(prng) % bound;
}

#endif
