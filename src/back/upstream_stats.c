// upstream_stats - what a worker counts of a server, and the sum over workers
// SPDX-License-Identifier: BSD-3-Clause
#include "back/upstream_stats.h"

#define GAUGE   true
#define COUNTER false

const struct hg_upstream_stat_row hg_upstream_stat_rows[HG_UPSTREAM_STATS] = {
#define HG_UPSTREAM_STAT(NAME, name, kind, help) {name, help, kind},
#include "back/upstream_stats.def"
#undef HG_UPSTREAM_STAT
};

void hg_upstream_counters_add(const struct hg_upstream_counters *counters, uint64_t *sum)
{
    for (unsigned i = 0; i < HG_UPSTREAM_STATS; i++)
        sum[i] += hg_counter_get(&counters->values[i]);
}
