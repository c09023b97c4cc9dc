// coarsehist - a small histogram of durations: each power of two is cut into four
// SPDX-License-Identifier: BSD-3-Clause
#include "base/coarsehist.h"

void hg_coarsehist_add(struct hg_coarsehist_sum *into, const struct hg_coarsehist *from)
{
    for (unsigned b = 0; b < HG_COARSEHIST_BUCKETS; b++) {
        uint64_t count = hg_counter_get(&from->bucket[b]);
        into->bucket[b] += count;
        into->total += count;
    }
}

void hg_coarsehist_subtract(struct hg_coarsehist_sum *from, const struct hg_coarsehist_sum *older)
{
    from->total = 0;
    for (unsigned b = 0; b < HG_COARSEHIST_BUCKETS; b++) {
        uint64_t before = older->bucket[b];
        from->bucket[b] = from->bucket[b] > before ? from->bucket[b] - before : 0;
        from->total += from->bucket[b];
    }
}

/* The smallest value of a bucket; of one behind the last the end of that. */
static uint64_t first_of(unsigned bucket)
{
    unsigned sub = 1u << HG_COARSEHIST_SUB_BITS;
    if (bucket < 2 * sub)
        return bucket;
    unsigned shift = bucket / sub - 1;
    return (uint64_t)(bucket % sub + sub) << shift;
}

uint64_t hg_coarsehist_percentile(const struct hg_coarsehist_sum *sum, double percent)
{
    double rank = (double)sum->total * percent / 100, below = 0;
    if (sum->total == 0)
        return 0;
    for (unsigned b = 0; b < HG_COARSEHIST_BUCKETS; b++) {
        double in = (double)sum->bucket[b];
        if (in > 0 && below + in >= rank) {
            double width = (double)(first_of(b + 1) - first_of(b));
            double part = rank > below ? (rank - below) / in : 0;
            return first_of(b) + (uint64_t)(width * part);
        }
        below += in;
    }
    return first_of(HG_COARSEHIST_BUCKETS);
}
