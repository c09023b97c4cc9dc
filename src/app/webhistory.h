// webhistory - the last ten minutes, a sample a second, in bounded memory
// SPDX-License-Identifier: BSD-3-Clause
//
// Rings with a place for each second, by the clock that never jumps; each second also has the wall
// clock's time. A second in which no sample was taken is missing, not 0. Upstreams have rings for
// as long as they are there; tenants too, but no more than HG_WEB_HISTORY_TENANTS: beyond, one that
// is busier in a second than another was in ten minutes takes that one's ring. The HTTP thread's.
#ifndef HG_APP_WEBHISTORY_H
#define HG_APP_WEBHISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/webtext.h"
#include "app/webwatch.h"
#include "base/attr.h"
#include "base/hist.h"

#define HG_WEB_HISTORY_S       600
#define HG_WEB_HISTORY_TENANTS 256 /* rings of 5 KB */
#define HG_WEB_HISTORY_SHOWN   20  /* tenants that are shown: the busiest */
#define HG_WEB_MISSING         UINT32_MAX

/* HG_WEB_SERIES(name) */
#define HG_WEB_SERIES_LIST(HG_WEB_SERIES)                                                          \
    HG_WEB_SERIES(requests_per_s)                                                                  \
    HG_WEB_SERIES(served_per_s)                                                                    \
    HG_WEB_SERIES(throttled_per_s)                                                                 \
    HG_WEB_SERIES(failed_per_s)                                                                    \
    HG_WEB_SERIES(held)                                                                            \
    HG_WEB_SERIES(queued)                                                                          \
    HG_WEB_SERIES(p50_us)                                                                          \
    HG_WEB_SERIES(p99_us)                                                                          \
    HG_WEB_SERIES(connections)                                                                     \
    HG_WEB_SERIES(backlog)

enum hg_web_series {
#define HG_WEB_SERIES(name) HG_WEB_SERIES_##name,
    HG_WEB_SERIES_LIST(HG_WEB_SERIES)
#undef HG_WEB_SERIES
        HG_WEB_SERIES_COUNT
};

enum { HG_WEB_UP_READ, HG_WEB_UP_WRITE, HG_WEB_UP_OUT, HG_WEB_UP_QUEUED, HG_WEB_UP_COUNT };
enum { HG_WEB_OF_UNITS, HG_WEB_OF_REJECTED, HG_WEB_OF_COUNT };

typedef uint32_t hg_web_ring[HG_WEB_HISTORY_S];

struct hg_web_upstream_rings {
    char name[HG_BUCKET_NAME_MAX + 1];
    uint64_t second; /* its last sample */
    hg_web_ring rings[HG_WEB_UP_COUNT];
};

struct hg_web_tenant_rings {
    char name[HG_BUCKET_NAME_MAX + 1];
    uint64_t second; /* its last sample */
    uint64_t sum;    /* of both rings */
    hg_web_ring rings[HG_WEB_OF_COUNT];
};

struct hg_web_history {
    uint64_t begin_us; /* second 0; 0: there is no sample yet */
    uint64_t second;   /* of the last sample */
    uint64_t time_s[HG_WEB_HISTORY_S];
    hg_web_ring series[HG_WEB_SERIES_COUNT];
    struct hg_web_upstream_rings **upstreams;
    size_t upstream_count;
    struct hg_web_tenant_rings *tenants[HG_WEB_HISTORY_TENANTS]; /* NULL: free */
    /* For what has to be told apart by second. */
    struct hg_hist *before, *now; /* latencies, of all operations */
    uint64_t outcomes[HG_OUTCOMES];
};

struct hg_process;

/* 0 or -ENOMEM. */
HG_MUST_USE int hg_web_history_init(struct hg_web_history *history);
void hg_web_history_fini(struct hg_web_history *history);

/* Once a second, after the watch has looked. */
void hg_web_history_sample(struct hg_web_history *history, struct hg_process *process,
                           const struct hg_web_watch *watch, const struct hg_directory *directory,
                           uint64_t now_us, uint64_t wall_s);

/* Samples younger than since_s of the wall clock, as JSON. */
void hg_web_history_text(const struct hg_web_history *history, uint64_t wall_s, double since_s,
                         struct hg_webtext *text);

/* ---- for hg_web_history_sample and its test ---- */

/* Begins the second that is due at now_us; the places of what was missed in between are marked.
   Where its samples belong, or HG_WEB_HISTORY_S: it is the same second still. */
unsigned hg_web_history_begin(struct hg_web_history *history, uint64_t now_us, uint64_t wall_s);
/* A tenant's sample of this second. */
void hg_web_history_tenant(struct hg_web_history *history, const char *name, uint64_t units,
                           uint64_t rejected);
/* After all tenants: rings of those that are gone, and have nothing to show, are freed. */
void hg_web_history_end(struct hg_web_history *history);

#endif
