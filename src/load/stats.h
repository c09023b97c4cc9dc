// stats - what happened to the requests of a load
// SPDX-License-Identifier: BSD-3-Clause
//
// One thread counts, any thread may add up (base/counter.h).
#ifndef HG_LOAD_STATS_H
#define HG_LOAD_STATS_H

#include "base/counter.h"
#include "base/hist.h"
#include "load/op.h"
#include "load/status.h"

struct hg_load_stats {
    hg_counter count[HG_LOAD_OPS][HG_LOAD_OUTCOMES];
    hg_counter status[HG_LOAD_STATUS_SLOTS];
    hg_counter bytes_in;
    hg_counter bytes_out;
    hg_counter wrong;       /* replies that no correct server gives */
    hg_counter lost;        /* connections that ended before the load did */
    hg_counter unanswered;  /* requests without a reply */
    hg_counter intended;    /* requests of the mix that were due; in a closed loop what was sent */
    hg_counter sent;        /* of those */
    hg_counter shed;        /* of those: neither a connection nor the waiting ones had room */
    hg_counter left;        /* of those: still waiting at the end */
    hg_counter within_slo;  /* done or missed, and soon enough */
    struct hg_hist latency; /* nanoseconds from due to reply, of what was done or missed */
    struct hg_hist refusal; /* the same, of what was refused */
    struct hg_hist late;    /* nanoseconds from due to sent, in an open loop */
};

void hg_load_stats_add(struct hg_load_stats *into, const struct hg_load_stats *from);

/* What was counted after `older` was taken of the same. */
void hg_load_stats_subtract(struct hg_load_stats *from, const struct hg_load_stats *older);

uint64_t hg_load_stats_outcome(const struct hg_load_stats *stats, enum hg_load_outcome outcome);

/* All replies, wrong ones too. */
uint64_t hg_load_stats_operations(const struct hg_load_stats *stats);

#endif
