// coarsehist - a small histogram of durations: each power of two is cut into four
// SPDX-License-Identifier: BSD-3-Clause
//
// For what there are many of (each server of each worker), where base/hist is too large. A
// percentile is interpolated in its bucket, so it is 25 % off at most, and 5 % usually. Values of
// 2^27 and more share the last bucket: microseconds reach to 134 s.
//
// One thread records (counter.h), any thread may add up; how many there were in a time is the
// difference of two sums. No allocation; 832 bytes.
#ifndef HG_BASE_COARSEHIST_H
#define HG_BASE_COARSEHIST_H

#include <stdint.h>

#include "base/counter.h"

#define HG_COARSEHIST_SUB_BITS 2
#define HG_COARSEHIST_MAX_BITS 27
#define HG_COARSEHIST_BUCKETS                                                                      \
    ((HG_COARSEHIST_MAX_BITS - HG_COARSEHIST_SUB_BITS + 1) << HG_COARSEHIST_SUB_BITS)

struct hg_coarsehist {
    hg_counter bucket[HG_COARSEHIST_BUCKETS];
};

struct hg_coarsehist_sum {
    uint64_t total, bucket[HG_COARSEHIST_BUCKETS];
};

/* The bucket of a value, 0 .. HG_COARSEHIST_BUCKETS - 1; never falls as the value grows. */
static inline uint32_t hg_coarsehist_bucket_of(uint64_t value)
{
    uint64_t top = (uint64_t)1 << HG_COARSEHIST_MAX_BITS, v = value < top ? value : top - 1;
    uint32_t shift = 63u - (uint32_t)__builtin_clzll(v | (1u << HG_COARSEHIST_SUB_BITS));
    shift -= HG_COARSEHIST_SUB_BITS;
    return (shift << HG_COARSEHIST_SUB_BITS) + (uint32_t)(v >> shift);
}

static inline void hg_coarsehist_record(struct hg_coarsehist *hist, uint64_t value)
{
    hg_counter_add(&hist->bucket[hg_coarsehist_bucket_of(value)], 1);
}

/* Adds what `from` holds; `into` begins zeroed. */
void hg_coarsehist_add(struct hg_coarsehist_sum *into, const struct hg_coarsehist *from);
/* What came after `older` was taken of the same histograms. Less than before is none: somebody has
   forgotten them. */
void hg_coarsehist_subtract(struct hg_coarsehist_sum *from, const struct hg_coarsehist_sum *older);
/* What `percent` (0 .. 100) of the values do not exceed; 0 when nothing was recorded. */
uint64_t hg_coarsehist_percentile(const struct hg_coarsehist_sum *sum, double percent);

#endif
