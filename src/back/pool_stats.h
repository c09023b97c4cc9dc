// pool_stats - what a worker counts of an identity on a server, and the sum over workers
// SPDX-License-Identifier: BSD-3-Clause
//
//   server ─► board of worker 0 ─► set of identity 4 ─► set of identity 0
//          └► board of worker 1 ─► set of identity 0
//
// A worker adds a set to its board when it first uses an identity and is the only one to write it;
// sets stay until the server goes, so any thread may walk the boards.
#ifndef HG_BACK_POOL_STATS_H
#define HG_BACK_POOL_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/counter.h"

enum hg_pool_stat {
#define HG_POOL_STAT(NAME, name, kind, help) HG_POOL_##NAME,
#include "back/pool_stats.def"
#undef HG_POOL_STAT
    HG_POOL_STATS
};

enum hg_pool_stat_kind {
    HG_POOL_STAT_TOTAL,
    HG_POOL_STAT_NOW,
    HG_POOL_STAT_HUNDREDTHS,
    HG_POOL_STAT_LONGEST,
};

struct hg_pool_stat_row {
    const char *name;
    const char *help;
    enum hg_pool_stat_kind kind;
};

extern const struct hg_pool_stat_row hg_pool_stat_rows[HG_POOL_STATS];

struct hg_pool_counters {
    hg_counter values[HG_POOL_STATS];
    uint32_t identity;
    struct hg_pool_counters *next;
};

struct hg_pool_board {
    struct hg_pool_counters *_Atomic first;
};

/* What a pool has counted while it was not in the planner, and itself. */
struct hg_pool_totals {
    uint64_t moves, rebinds, steals, drains, connect_errors, rejected, quarantined;
};

/* The worker's set for the identity, made if need be; NULL when memory is out. The worker's thread.
 */
struct hg_pool_counters *hg_pool_board_get(struct hg_pool_board *board, uint32_t identity);
void hg_pool_board_fini(struct hg_pool_board *board);

/* One identity on a server, summed over the workers. */
struct hg_pool_sum {
    bool known; /* some worker has used it */
    uint64_t values[HG_POOL_STATS];
};

/* Adds the board to `sums`, one for each identity below `count`. From any thread. */
void hg_pool_board_add(const struct hg_pool_board *board, struct hg_pool_sum *sums, uint32_t count);

#endif
