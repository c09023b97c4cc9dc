// series - what was sent and answered, by intervals of the wall clock
// SPDX-License-Identifier: BSD-3-Clause
//
// An interval begins at a multiple of its length since 1970, so that those of two programs can be
// laid side by side. A request is counted as sent in the interval in which it was, and as answered
// in the one in which its reply came. One thread writes; it is read when that has ended.
#ifndef HG_LOAD_SERIES_H
#define HG_LOAD_SERIES_H

#include <stdint.h>

#include "base/attr.h"
#include "load/status.h"

#define HG_SERIES_STATUSES 8       /* different ones an interval; the others have no name */
#define HG_SERIES_MAX      1000000 /* intervals; the last one holds what comes later */

/* The hot key's requests, and the others. */
enum hg_series_group { HG_SERIES_OTHER, HG_SERIES_HOT, HG_SERIES_GROUPS };

struct hg_series_tally {
    uint64_t sent, done, missed, refused, wrong;
    struct {
        uint16_t slot; /* load/status.h */
        uint64_t count;
    } status[HG_SERIES_STATUSES];
    uint32_t statuses;
    uint64_t more_statuses;
};

struct hg_series {
    uint64_t length_ns;
    uint64_t offset_ns; /* wall clock = monotonic clock + this */
    uint64_t first;     /* number of the first interval: its start / length */
    uint64_t until_ns;  /* end of the one in use, on the monotonic clock */
    struct hg_series_tally (*at)[HG_SERIES_GROUPS];
    uint32_t count, room, now;
};

/* 0 or -ENOMEM. */
HG_MUST_USE int hg_series_init(struct hg_series *series, uint64_t length_ns, uint64_t offset_ns,
                               uint64_t now_ns);
void hg_series_fini(struct hg_series *series);

/* Goes on to the interval of `now_ns`. */
void hg_series_advance(struct hg_series *series, uint64_t now_ns);

static inline struct hg_series_tally *hg_series_tally(struct hg_series *series,
                                                      enum hg_series_group group, uint64_t now_ns)
{
    if (HG_UNLIKELY(now_ns >= series->until_ns)) {
        hg_series_advance(series, now_ns);
    }
    return &series->at[series->now][group];
}

static inline void hg_series_sent(struct hg_series *series, enum hg_series_group group,
                                  uint64_t now_ns)
{
    hg_series_tally(series, group, now_ns)->sent++;
}

void hg_series_answered(struct hg_series *series, enum hg_series_group group,
                        enum hg_load_outcome outcome, uint32_t slot, uint64_t now_ns);

void hg_series_tally_add(struct hg_series_tally *into, const struct hg_series_tally *from);

/* Prints the sums of several series of the same length as a JSON list, oldest first; intervals in
 * which nothing happened at either end are left out. */
void hg_series_print(struct hg_series *const *series, uint32_t count);
/* The sum over all intervals. */
void hg_series_total(const struct hg_series *series, enum hg_series_group group,
                     struct hg_series_tally *into);

#endif
