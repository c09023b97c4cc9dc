// upstream_stats - what a worker counts of a server, and the sum over workers
// SPDX-License-Identifier: BSD-3-Clause
//
// A worker has a set of counters for each server and is the only one to write them; any thread may
// add up the sets.
#ifndef HG_BACK_UPSTREAM_STATS_H
#define HG_BACK_UPSTREAM_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/counter.h"

enum hg_upstream_stat {
#define HG_UPSTREAM_STAT(NAME, name, kind, help) HG_UPSTREAM_##NAME,
#include "back/upstream_stats.def"
#undef HG_UPSTREAM_STAT
    HG_UPSTREAM_STATS
};

struct hg_upstream_stat_row {
    const char *name;
    const char *help;
    bool gauge;
};

extern const struct hg_upstream_stat_row hg_upstream_stat_rows[HG_UPSTREAM_STATS];

struct hg_upstream_counters {
    hg_counter values[HG_UPSTREAM_STATS];
    hg_counter heard_us; /* last byte of an answer on a connection that is up */
} __attribute__((aligned(HG_CACHE_LINE)));

static inline void hg_upstream_count(struct hg_upstream_counters *counters,
                                     enum hg_upstream_stat stat, uint64_t n)
{
    hg_counter_add(&counters->values[stat], n);
}

/* Adds `counters` to `sum`, which has HG_UPSTREAM_STATS numbers. From any thread. */
void hg_upstream_counters_add(const struct hg_upstream_counters *counters, uint64_t *sum);

#endif
