// throttling - one thing that is throttled: when its begin and its end are told, and what it cost
// SPDX-License-Identifier: BSD-3-Clause
//
//   active    ___####__###____________#____      what a look sees
//   settled   _____#########__________###__      from `rise` on, until `fall` after the last
//   told           b        e                    begins are HG_NOTICE_APART_US apart (notice.h)
//
// What was refused is counted by several workers, each of which may forget its counter, and begin
// again at 0, under another number. It belongs to the next end that is told. What was refused in a
// time that was too short to be told, or too soon after another, is told as a begin and an end at
// once as soon as a begin may be told again: so the ends add up to what was refused. Pure.
#ifndef HG_CORE_THROTTLING_H
#define HG_CORE_THROTTLING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/notice.h"

#define HG_THROTTLING_WORKERS_MAX 64

struct hg_throttling_rule {
    uint64_t rise_us, fall_us;
};

/* Zeroed: it was never active. */
struct hg_throttling {
    struct hg_notice notice;
    bool is_active, is_settled;
    uint64_t active_us; /* since when it is active, */
    uint64_t begun_us;  /* since when it is settled, or was at last */
    uint64_t seen_us;   /* when it was last active; 0: never */
    uint64_t refused;   /* that no end has told yet */
    struct {
        uint64_t number, count;
    } sources[HG_THROTTLING_WORKERS_MAX];
};

struct hg_throttling_told {
    bool begin, end;             /* to be told now; both: the begin first */
    uint64_t lasted_us, refused; /* for the end */
};

/* The worker's counter, which has this number (0: none), says that so many were refused since it
   began. Returns how many of these are new. */
uint64_t hg_throttling_count(struct hg_throttling *throttling, unsigned worker, uint64_t number,
                             uint64_t count);
/* Is it `active` now? `at_once`: it need not be for rule.rise_us. */
struct hg_throttling_told hg_throttling_look(struct hg_throttling *throttling,
                                             const struct hg_throttling_rule *rule, bool active,
                                             bool at_once, uint64_t now_us);
/* Nothing is lost if it is forgotten. */
bool hg_throttling_is_over(const struct hg_throttling *throttling, uint64_t now_us);

#endif
