// embedded_stats - what the embedded store counts
// SPDX-License-Identifier: BSD-3-Clause
//
// Each thread of the store has a set of counters of its own; what is shown is their sum, and the
// gauges, which are read from the file at that moment.
#ifndef HG_BACK_EMBEDDED_STATS_H
#define HG_BACK_EMBEDDED_STATS_H

#include <stdint.h>

#include "base/counter.h"

struct hg_embedded_counters {
#define HG_EMBEDDED_STAT(name, kind, help) hg_counter name;
#include "back/embedded_stats.def"
#undef HG_EMBEDDED_STAT
};

struct hg_embedded_stats {
#define HG_EMBEDDED_STAT(name, kind, help) uint64_t name;
#include "back/embedded_stats.def"
#undef HG_EMBEDDED_STAT
};

static inline void hg_embedded_stats_add(struct hg_embedded_stats *sum,
                                         const struct hg_embedded_counters *counters)
{
#define HG_EMBEDDED_STAT(name, kind, help) sum->name += hg_counter_get(&counters->name);
#include "back/embedded_stats.def"
#undef HG_EMBEDDED_STAT
}

#endif
