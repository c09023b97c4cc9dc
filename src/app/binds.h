// binds - who piles up at a backlogged server: housekeeping's side of bind eviction
// SPDX-License-Identifier: BSD-3-Clause
//
//   every 100 ms, for each server whose line has not been empty for bind_backlog_ms:
//   ask all workers ─► reports ─► core/bindwatch ─► each worker: evict, throttle (front/evict)
//
// A round is judged when all workers have reported, or at the next look, by what has come.
#ifndef HG_APP_BINDS_H
#define HG_APP_BINDS_H

#include "base/counter.h"
#include "front/evict.h"
#include "io/loop.h"

#define HG_BINDS_LOOK_US 100000

struct hg_process;

/* HG_BINDS_STAT(name, kind, sentence), kind COUNTER or GAUGE */
#define HG_BINDS_STATS(HG_BINDS_STAT)                                                              \
    HG_BINDS_STAT(rounds_begun, COUNTER, "times that a backlogged server was looked at")           \
    HG_BINDS_STAT(late_reports, COUNTER,                                                           \
                  "reports of workers that came after their round was judged")                     \
    HG_BINDS_STAT(keys_evicted, COUNTER, "keys that held too many slots and were to be evicted")   \
    HG_BINDS_STAT(oldest_evicted, COUNTER,                                                         \
                  "times that the longest-running request was to be evicted")

struct hg_binds_round;

struct hg_binds {
    struct hg_process *process;
    struct hg_timer timer;
    bool is_open;
    uint64_t last_round;
    struct hg_list rounds; /* open ones */
#define HG_BINDS_STAT(name, kind, text) hg_counter name;
    HG_BINDS_STATS(HG_BINDS_STAT)
#undef HG_BINDS_STAT
};

/* On housekeeping's loop. 0 or -errno. */
HG_MUST_USE int hg_binds_start(struct hg_binds *binds, struct hg_process *process,
                               struct hg_loop *loop);
void hg_binds_stop(struct hg_binds *binds);

#endif
