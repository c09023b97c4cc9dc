// readcost - what a bucket's reads cost lately: the estimate that a read is charged with
// SPDX-License-Identifier: BSD-3-Clause
//
// A moving average (weight 1/16) of the units of recent reads, in 256ths. One a worker and bucket,
// plain memory, zeroed at first. Pure.
#ifndef HG_CORE_READCOST_H
#define HG_CORE_READCOST_H

#include <stdint.h>

struct hg_readcost {
    uint32_t avg_x256; // 0: nothing told yet
};

/* The charge for the next read: the average rounded to the nearest, at least 1. */
static inline uint32_t hg_readcost_estimate(const struct hg_readcost *cost)
{
    uint32_t units = (cost->avg_x256 + 128) >> 8;
    return units != 0 ? units : 1;
}

/* A read cost so many units. */
static inline void hg_readcost_tell(struct hg_readcost *cost, uint32_t units)
{
    int64_t now = (int64_t)(units < UINT32_MAX / 256 ? units : UINT32_MAX / 256) * 256;
    int64_t avg = cost->avg_x256;
    int64_t step = (now - avg) / 16;
    if (avg == 0)
        step = now;
    else if (step == 0 && now != avg)
        step = now > avg ? 1 : -1;
    cost->avg_x256 = (uint32_t)(avg + step);
}

#endif
