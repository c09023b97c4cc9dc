// clock - the two clocks of the machine, read by drivers and handed to decisions as arguments
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BASE_CLOCK_H
#define HG_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic microseconds: for intervals, time-outs and slots. */
static inline uint64_t hg_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/* Seconds since 1970: for expiry times. */
static inline uint64_t hg_wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec;
}

/* Milliseconds since 1970: for the timestamps of cells. */
static inline int64_t hg_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
