// hist - a histogram of durations or sizes: fixed memory, constant time, a known error
// SPDX-License-Identifier: BSD-3-Clause
//
// Log-linear: each power of two is cut into 64 equal buckets, and the values below 64 have one
// bucket each. A bucket is therefore at most 1/64 of its values wide: what a percentile says is
// never too low and at most 1.6 % too high.
//
//     value    0 .. 63   64 .. 127   128 .. 255   256 .. 511  ...  2^39 .. 2^40 - 1
//     width    1         1           2            4                2^33
//
// Values of 2^40 and more share the last bucket; the maximum is kept exactly. The unit is the
// caller's: nanoseconds reach to 18 minutes, microseconds to 12 days.
//
// One thread records (counter.h), any thread may read or merge; a reader sees each bucket whole,
// but not all of them at one instant. No allocation; about 18 KiB.
#ifndef HG_BASE_HIST_H
#define HG_BASE_HIST_H

#include <stdint.h>

#include "base/counter.h"

#define HG_HIST_SUB_BITS 6
#define HG_HIST_MAX_BITS 40
#define HG_HIST_BUCKETS  ((HG_HIST_MAX_BITS - HG_HIST_SUB_BITS + 1) << HG_HIST_SUB_BITS)

struct hg_hist {
    hg_counter bucket[HG_HIST_BUCKETS];
    hg_counter total;
    hg_counter sum;
    hg_counter max;
};

/* An empty histogram; all bytes zero is one as well. Others may be reading it meanwhile. */
void hg_hist_init(struct hg_hist *hist);

/* The bucket of a value, 0 .. HG_HIST_BUCKETS - 1; never falls as the value grows. */
static inline uint32_t hg_hist_bucket_of(uint64_t value)
{
    uint64_t top = (uint64_t)1 << HG_HIST_MAX_BITS;
    uint64_t v = value < top ? value : top - 1;
    uint32_t shift = 63u - (uint32_t)__builtin_clzll(v | (1u << HG_HIST_SUB_BITS));
    shift -= HG_HIST_SUB_BITS;
    return (shift << HG_HIST_SUB_BITS) + (uint32_t)(v >> shift);
}

/* The largest value of a bucket. */
uint64_t hg_hist_bucket_last(uint32_t bucket);

/* Counts `n` occurrences of `value`. */
static inline void hg_hist_record(struct hg_hist *hist, uint64_t value, uint64_t n)
{
    hg_counter_add(&hist->bucket[hg_hist_bucket_of(value)], n);
    hg_counter_add(&hist->total, n);
    hg_counter_add(&hist->sum, value * n);
    if (value > hg_counter_get(&hist->max)) {
        hg_counter_set(&hist->max, value);
    }
}

/* Adds what `from` holds; `into` must not be recorded to by another thread meanwhile. */
void hg_hist_merge(struct hg_hist *into, const struct hg_hist *from);

/* What was recorded after `older` was taken of the same histogram. The maximum of that part is
 * known only to a bucket, and not above the maximum of the whole. */
void hg_hist_subtract(struct hg_hist *from, const struct hg_hist *older);

/* The smallest bucket end that at least `percent` (0..100) of the values do not exceed, but never
 * more than the maximum; 0 when nothing was recorded. */
uint64_t hg_hist_percentile(const struct hg_hist *hist, double percent);

/* 0 when nothing was recorded. */
double hg_hist_mean(const struct hg_hist *hist);

#endif
