// series - what was offered, sent and answered, by intervals
// SPDX-License-Identifier: BSD-3-Clause
//
// An interval begins at a multiple of its length since 1970, so that those of two programs can be
// laid side by side, or at a multiple of it since the start of the measured part, so that they fit
// the steps of a rate. A request is counted as offered in the interval in which it was due, as sent
// in the one in which it was, and as answered in the one in which its reply came; so is its
// latency. One thread writes; it is read when that has ended.
#ifndef HG_LOAD_SERIES_H
#define HG_LOAD_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/hist.h"
#include "load/status.h"

#define HG_SERIES_STATUSES 8       /* different ones an interval; the others have no name */
#define HG_SERIES_MAX      1000000 /* intervals; the last one holds what comes later */

/* The hot key's requests, and the others. */
enum hg_series_group { HG_SERIES_OTHER, HG_SERIES_HOT, HG_SERIES_GROUPS };

struct hg_series_tally {
    uint64_t offered, sent, done, missed, refused, wrong;
    uint64_t within_slo; /* done or missed, and soon enough */
    uint64_t not_sent;   /* offered, but shed by the generator or left at the end */
    uint64_t unanswered; /* sent, but the connection was lost */
    struct {
        uint16_t slot; /* load/status.h */
        uint64_t count;
    } status[HG_SERIES_STATUSES];
    uint32_t statuses;
    uint64_t more_statuses;
    /* Latencies of what was done or missed: series->pairs[first_pair ..]. */
    size_t first_pair;
    uint32_t pairs;
    uint64_t max_ns;
};

/* So many latencies that fell into a bucket of base/hist.h. */
struct hg_series_pair {
    uint32_t bucket;
    uint32_t count;
};

struct hg_series {
    uint64_t length_ns;
    uint64_t offset_ns; /* clock of the intervals = monotonic clock + this */
    uint64_t wall_ns;   /* wall clock = clock of the intervals + this */
    uint64_t slo_ns;
    uint64_t first;   /* number of the first interval: its start / length */
    uint64_t from_ns; /* the one in use, on the monotonic clock */
    uint64_t until_ns;
    struct hg_series_tally (*at)[HG_SERIES_GROUPS];
    uint32_t count, room, now;
    struct hg_hist *live; /* latencies of the interval in use, for each group */
    struct hg_series_pair *pairs;
    size_t pair_count, pair_room;
    bool is_short; /* there was no memory for some latencies */
};

/* Intervals of the wall clock, which is the monotonic clock + `offset_ns`. 0 or -ENOMEM. */
HG_MUST_USE int hg_series_init(struct hg_series *series, uint64_t length_ns, uint64_t offset_ns,
                               uint64_t slo_ns, uint64_t now_ns);
void hg_series_fini(struct hg_series *series);

/* Makes them intervals that are counted from `start_ns` on; nothing was counted yet. */
void hg_series_start_at(struct hg_series *series, uint64_t start_ns);

/* Goes on to the interval of `now_ns`. */
void hg_series_advance(struct hg_series *series, uint64_t now_ns);

/* The tally of an earlier interval. */
struct hg_series_tally *hg_series_earlier(struct hg_series *series, enum hg_series_group group,
                                          uint64_t then_ns);

/* The tally of the interval of `now_ns`, for all that is counted but replies. */
static inline struct hg_series_tally *hg_series_tally(struct hg_series *series,
                                                      enum hg_series_group group, uint64_t now_ns)
{
    if (HG_UNLIKELY(now_ns >= series->until_ns)) {
        hg_series_advance(series, now_ns);
    } else if (HG_UNLIKELY(now_ns < series->from_ns)) {
        return hg_series_earlier(series, group, now_ns);
    }
    return &series->at[series->now][group];
}

/* A reply; `now_ns` never falls. */
void hg_series_answered(struct hg_series *series, enum hg_series_group group,
                        enum hg_load_outcome outcome, uint32_t slot, uint64_t latency_ns,
                        uint64_t now_ns);

/* The counts; latencies stay where they are. */
void hg_series_tally_add(struct hg_series_tally *into, const struct hg_series_tally *from);

/* The sum over all intervals. */
void hg_series_total(const struct hg_series *series, enum hg_series_group group,
                     struct hg_series_tally *into);

/* An interval of several series of the same length and origin, added up. */
struct hg_series_row {
    struct hg_series_tally tally[HG_SERIES_GROUPS];
    struct hg_hist latency[HG_SERIES_GROUPS];
};

/* Whether anything happened in interval `number`. What is still live must have been put away. */
bool hg_series_row(struct hg_series *const *series, uint32_t count, uint64_t number,
                   struct hg_series_row *ret_row);

/* Puts the latencies of the interval in use away. */
void hg_series_settle(struct hg_series *series);

/* The first interval in which anything happened and the one behind the last; 0 and 0: none. */
void hg_series_span(struct hg_series *const *series, uint32_t count, uint64_t *ret_first,
                    uint64_t *ret_end);

/* Prints the sums of several series of the same length as a JSON list, oldest first; intervals in
 * which nothing happened at either end are left out. */
void hg_series_print(struct hg_series *const *series, uint32_t count);

#endif
