// arrivals - when the requests of an open loop are to be sent
// SPDX-License-Identifier: BSD-3-Clause
#include "load/arrivals.h"

#include <math.h>

/* Exponential with mean 1, from 53 random bits; never infinite. */
static double draw_gap(struct hg_gen_rng *rng)
{
    return -log((double)((hg_gen_random(rng) >> 11) + 1) * 0x1p-53);
}

static void find_moment(struct hg_arrivals *arrivals)
{
    bool steady = arrivals->kind == HG_ARRIVALS_STEADY;
    uint64_t after =
        hg_rate_when(&arrivals->cursor, steady ? (double)arrivals->number : arrivals->position);
    bool never = after == UINT64_MAX || arrivals->origin_ns + after >= arrivals->end_ns;
    arrivals->next_ns = never ? UINT64_MAX : arrivals->origin_ns + after;
}

static double mean_gap(const struct hg_arrivals *arrivals)
{
    return (double)arrivals->share.all / hg_arrivals_own(&arrivals->share);
}

void hg_arrivals_init(struct hg_arrivals *arrivals, enum hg_arrivals_kind kind,
                      const struct hg_rate *rate, const struct hg_arrivals_share *share,
                      uint64_t seed, uint64_t origin_ns, uint64_t end_ns)
{
    *arrivals = (struct hg_arrivals){
        .kind = kind,
        .share = *share,
        .cursor = {.rate = rate},
        .rng = {hg_gen_mix(seed)}, /* seeds next to each other do not make the same numbers */
        .origin_ns = origin_ns,
        .end_ns = end_ns,
        .number = share->first,
    };
    arrivals->position = draw_gap(&arrivals->rng) * mean_gap(arrivals);
    find_moment(arrivals);
}

void hg_arrivals_advance(struct hg_arrivals *arrivals)
{
    const struct hg_arrivals_share *share = &arrivals->share;
    if (arrivals->kind == HG_ARRIVALS_STEADY) {
        uint64_t connection = arrivals->number % share->all;
        uint64_t round = arrivals->number - connection;
        bool wraps = connection + share->stride >= share->all;
        arrivals->number =
            wraps ? round + share->all + share->first : arrivals->number + share->stride;
    } else {
        arrivals->position += draw_gap(&arrivals->rng) * mean_gap(arrivals);
    }
    find_moment(arrivals);
}
