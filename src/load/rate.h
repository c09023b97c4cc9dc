// rate - requests a second that change at given times
// SPDX-License-Identifier: BSD-3-Clause
//
// A rate is a list of steps: from `at_ns` after the start on, so many requests a second, until the
// next step. Seen as an area it numbers the requests: number n belongs to the moment up to which
// the rate adds up to n. Requests that are spaced evenly have the numbers 0, 1, 2, ...; those of a
// Poisson process numbers whose distances are exponential with mean 1, whatever the rate does.
//
// Pure.
#ifndef HG_LOAD_RATE_H
#define HG_LOAD_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

#define HG_RATE_STEPS_MAX 64

/* A rate above every other: no bound. */
#define HG_RATE_MAX_WORD "max"

struct hg_rate_step {
    uint64_t at_ns;
    double rate; /* requests a second; 0: none are sent; INFINITY: no bound */
};

/* The first step is at 0, and each later than the one before it. Without steps: no bound, ever. */
struct hg_rate {
    uint32_t count;
    struct hg_rate_step step[HG_RATE_STEPS_MAX];
};

enum hg_rate_error {
    HG_RATE_FINE,
    HG_RATE_BAD_WORD, /* a piece is no RATE@SECONDS, or its rate is above `max` */
    HG_RATE_NO_START, /* the first step is not at 0 */
    HG_RATE_NO_ORDER, /* a step is not after the one before it */
    HG_RATE_TOO_MANY,
};

/* "500" or "500@0,2000@5,max@10", with ',' or '/' between the steps and times up to `seconds`. A
 * lone "0" has no steps. */
HG_MUST_USE enum hg_rate_error hg_rate_parse(const char *text, double max, double seconds,
                                             struct hg_rate *ret_rate);

/* When the step after `step` begins; UINT64_MAX: never. */
static inline uint64_t hg_rate_step_end(const struct hg_rate *rate, uint32_t step)
{
    return step + 1 < rate->count ? rate->step[step + 1].at_ns : UINT64_MAX;
}

/* Finds the moments of numbers that do not fall. All bytes zero but for `rate` is its start. */
struct hg_rate_cursor {
    const struct hg_rate *rate;
    uint32_t step;
    double before; /* what the steps before this one add up to */
};

/* Nanoseconds after the start, UINT64_MAX: never. The rate has steps, all of them bounded. */
uint64_t hg_rate_when(struct hg_rate_cursor *cursor, double number);

/* The whole rate is 0 from its last step on. */
static inline bool hg_rate_ends(const struct hg_rate *rate)
{
    return rate->count > 0 && rate->step[rate->count - 1].rate <= 0;
}

#endif
