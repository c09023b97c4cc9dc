// hist - a histogram of durations or sizes: fixed memory, constant time, a known error
// SPDX-License-Identifier: BSD-3-Clause
#include "base/hist.h"

void hg_hist_init(struct hg_hist *hist)
{
    for (uint32_t i = 0; i < HG_HIST_BUCKETS; i++) {
        hg_counter_set(&hist->bucket[i], 0);
    }
    hg_counter_set(&hist->total, 0);
    hg_counter_set(&hist->sum, 0);
    hg_counter_set(&hist->max, 0);
}

uint64_t hg_hist_bucket_last(uint32_t bucket)
{
    uint32_t row = bucket >> HG_HIST_SUB_BITS;
    uint32_t shift = row > 0 ? row - 1 : 0;
    uint64_t first = (uint64_t)(bucket - (shift << HG_HIST_SUB_BITS)) << shift;
    return first + ((uint64_t)1 << shift) - 1;
}

void hg_hist_merge(struct hg_hist *into, const struct hg_hist *from)
{
    for (uint32_t i = 0; i < HG_HIST_BUCKETS; i++) {
        uint64_t n = hg_counter_get(&from->bucket[i]);
        if (n > 0) {
            hg_counter_add(&into->bucket[i], n);
        }
    }
    hg_counter_add(&into->total, hg_counter_get(&from->total));
    hg_counter_add(&into->sum, hg_counter_get(&from->sum));
    if (hg_counter_get(&from->max) > hg_counter_get(&into->max)) {
        hg_counter_set(&into->max, hg_counter_get(&from->max));
    }
}

void hg_hist_subtract(struct hg_hist *from, const struct hg_hist *older)
{
    uint64_t max = 0;
    for (uint32_t i = 0; i < HG_HIST_BUCKETS; i++) {
        hg_counter_sub(&from->bucket[i], hg_counter_get(&older->bucket[i]));
        if (hg_counter_get(&from->bucket[i]) > 0) {
            max = hg_hist_bucket_last(i);
        }
    }
    hg_counter_sub(&from->total, hg_counter_get(&older->total));
    hg_counter_sub(&from->sum, hg_counter_get(&older->sum));
    if (max < hg_counter_get(&from->max)) {
        hg_counter_set(&from->max, max);
    }
}

/* The buckets are counted anew: `total` may differ from their sum while somebody records. */
uint64_t hg_hist_percentile(const struct hg_hist *hist, double percent)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < HG_HIST_BUCKETS; i++) {
        total += hg_counter_get(&hist->bucket[i]);
    }
    double share = (double)total * percent / 100.0;
    uint64_t wanted = (uint64_t)share;
    wanted += (double)wanted < share;
    wanted = wanted > total ? total : wanted < 1 ? 1 : wanted;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HG_HIST_BUCKETS; i++) {
        seen += hg_counter_get(&hist->bucket[i]);
        if (seen >= wanted) {
            uint64_t last = hg_hist_bucket_last(i);
            uint64_t max = hg_counter_get(&hist->max);
            return last < max && i + 1 < HG_HIST_BUCKETS ? last : max;
        }
    }
    return 0;
}

double hg_hist_mean(const struct hg_hist *hist)
{
    uint64_t total = hg_counter_get(&hist->total);
    return total > 0 ? (double)hg_counter_get(&hist->sum) / (double)total : 0.0;
}
