// webwatch - what the HTTP thread remembers of tenants and servers from one second to the next
// SPDX-License-Identifier: BSD-3-Clause
//
// Each tenant of the directory has a record with its counters as they were at the last two looks a
// second apart: rates are their difference. A record holds its bucket, so that what a bucket
// counted at its very end is not lost.
//
// At most so many tenants have series of their own in /metrics. Who came later is part of one
// series, `(others)`, and stays in it: a tenant that moved from one to the other would look like a
// counter that was reset. The sum never falls, whoever is deleted.
#ifndef HG_APP_WEBWATCH_H
#define HG_APP_WEBWATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "front/bucket.h"
#include "front/directory.h"

#define HG_WEB_OTHERS "(others)"

/* Counters of a tenant, one after the other: lane.def, outcome.def, and nine of gate.def (see
   metrics.c) for each place. */
enum {
    HG_WEB_LANES = 0
#define HG_LANE(name, kind, text) +1
#include "front/lane.def"
#undef HG_LANE
    ,
    HG_WEB_OUTCOMES_AT = HG_WEB_LANES,
    HG_WEB_GATE_ROWS = 9,
    HG_WEB_GATES_AT = HG_WEB_OUTCOMES_AT + HG_OUTCOMES,
    HG_WEB_VALUES = HG_WEB_GATES_AT + HG_WEB_GATE_ROWS * HG_GATE_PLACES
};

/* Index of a row of lane.def. */
enum hg_web_lane {
#define HG_LANE(name, kind, text) HG_WEB_LANE_##name,
#include "front/lane.def"
#undef HG_LANE
    HG_WEB_LANE_COUNT
};

struct hg_web_tenant {
    struct hg_bucket *bucket;      /* counted */
    bool is_other;                 /* part of (others) */
    bool seen;                     /* there was a look before the last one */
    uint64_t last[HG_WEB_VALUES];  /* at the last look */
    uint64_t rates[HG_WEB_VALUES]; /* of the last full second */
    uint64_t held;                 /* at the last look */
    uint64_t told[HG_WEB_VALUES];  /* up to here it is in the sum of the others */
};

struct hg_web_server {
    uint64_t requests, errors;
    uint64_t requests_per_s, errors_per_s;
};

struct hg_web_upstream {
    char name[HG_BUCKET_NAME_MAX + 1];
    const struct hg_upstream *upstream; /* to be compared only */
    struct hg_web_server *servers;
    uint32_t count;
};

struct hg_web_watch {
    struct hg_web_tenant **tenants; /* in the order of the directory */
    size_t count;
    size_t own; /* of these, not part of (others) */
    size_t own_max;
    uint64_t others[HG_WEB_VALUES]; /* the sum; only of counters */
    bool any_other;                 /* there are, or were, some */
    struct hg_web_upstream *upstreams;
    size_t upstream_count;
};

/* Of a tenant's values or rates: requests refused for credits, hot keys, binds and limits. */
uint64_t hg_web_rejected(const uint64_t values[HG_WEB_VALUES]);
/* How many of its requests wait for credits now. */
uint64_t hg_web_held(const struct hg_bucket *bucket);
/* What a tenant's counters say now, summed over the workers. */
void hg_web_values(const struct hg_bucket *bucket, uint64_t values[HG_WEB_VALUES]);

void hg_web_watch_init(struct hg_web_watch *watch, size_t own_max);
void hg_web_watch_fini(struct hg_web_watch *watch);
/* The records are those of the directory from now on. False when memory is out: as before. */
HG_MUST_USE bool hg_web_watch_sync(struct hg_web_watch *watch,
                                   const struct hg_directory *directory);
/* The look, once a second, after a sync with the same directory. */
void hg_web_watch_look(struct hg_web_watch *watch, const struct hg_directory *directory);
/* Brings the sum of the others up to date. */
void hg_web_watch_sum(struct hg_web_watch *watch);
/* Of an upstream, or NULL. */
const struct hg_web_upstream *hg_web_watch_upstream(const struct hg_web_watch *watch,
                                                    const struct hg_upstream *upstream);

#endif
