// stats - what happened to the requests of a load
// SPDX-License-Identifier: BSD-3-Clause
#include "load/stats.h"

#include <stdbool.h>
#include <stddef.h>

/* The plain counters in front of the histograms, as one array. */
#define PLAIN_COUNTERS (offsetof(struct hg_load_stats, latency) / sizeof(hg_counter))

static void combine(struct hg_load_stats *into, const struct hg_load_stats *from, bool add)
{
    hg_counter *to = (hg_counter *)into;
    const hg_counter *other = (const hg_counter *)from;
    for (size_t i = 0; i < PLAIN_COUNTERS; i++) {
        uint64_t n = hg_counter_get(&other[i]);
        hg_counter_add(&to[i], add ? n : 0 - n);
    }
}

void hg_load_stats_add(struct hg_load_stats *into, const struct hg_load_stats *from)
{
    combine(into, from, true);
    hg_hist_merge(&into->latency, &from->latency);
    hg_hist_merge(&into->refusal, &from->refusal);
    hg_hist_merge(&into->late, &from->late);
}

void hg_load_stats_subtract(struct hg_load_stats *from, const struct hg_load_stats *older)
{
    combine(from, older, false);
    hg_hist_subtract(&from->latency, &older->latency);
    hg_hist_subtract(&from->refusal, &older->refusal);
    hg_hist_subtract(&from->late, &older->late);
}

uint64_t hg_load_stats_outcome(const struct hg_load_stats *stats, enum hg_load_outcome outcome)
{
    uint64_t n = 0;
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        n += hg_counter_get(&stats->count[op][outcome]);
    }
    return n;
}

uint64_t hg_load_stats_operations(const struct hg_load_stats *stats)
{
    uint64_t n = hg_counter_get(&stats->wrong);
    for (int outcome = 0; outcome < HG_LOAD_OUTCOMES; outcome++) {
        n += hg_load_stats_outcome(stats, (enum hg_load_outcome)outcome);
    }
    return n;
}
