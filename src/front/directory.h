// directory - what workers know of the process: settings, tenants, stores, as one snapshot
// SPDX-License-Identifier: BSD-3-Clause
//
// A directory never changes. A new one is posted to each worker and swapped in between two turns of
// its loop; the old one goes when the last worker has let go of it. Records that it lists (buckets,
// upstreams) are counted apart and may outlive it.
#ifndef HG_FRONT_DIRECTORY_H
#define HG_FRONT_DIRECTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "back/store.h"
#include "base/attr.h"
#include "base/span.h"
#include "front/bucket.h"
#include "table/hbaseop.h"

struct hg_worker;
struct hg_generation;
struct hg_directory_table;
struct hg_gateset;

/* Of bind eviction and throttle; see core/bindwatch.h and core/bindthrottle.h. */
struct hg_bind_settings {
    uint64_t backlog_us;    /* an upstream's line was not empty for so long: overload */
    uint32_t threshold_pct; /* of the used slots */
    uint32_t target_pct;    /* of the tickets: above, the upstream is busy */
    double decr_per_sec;
    uint64_t min_age_us; /* of the one request that is evicted when no key qualifies */
    bool evict_sent_writes;
};

struct hg_front_settings {
    uint32_t max_frame_bytes;
    uint32_t max_value_bytes;
    uint32_t high_water_bytes;
    uint32_t idle_timeout_s;
    uint32_t keepalive_s;
    uint64_t request_deadline_us;
    uint64_t throttle_max_wait_us;
    uint64_t slow_request_us;
    uint32_t trace_sample; /* one request in so many leaves a line in the log; 0: none */
    uint32_t read_unit_bytes;
    uint32_t write_unit_bytes;
    bool login_required;
    struct hg_bind_settings bind;
};

/* A store that tenants are mapped to: one for the process, opened by each worker for itself. */
struct hg_upstream {
    char name[HG_BUCKET_NAME_MAX + 1];
    const char *kind;
    unsigned slot; /* index into a worker's stores; free again only when every worker has let go */
    _Atomic unsigned refs;
    bool flush_is_private; /* a flush empties one tenant only, even if several live here */
    bool is_redis;         /* redis or redis-cluster */
    bool is_plain;         /* redis_layout plain: other programs use its items too */
    _Atomic bool allow_flush;
    _Atomic bool miss_on_fault; /* multiget_backend_error = miss */
    /* Makes the worker's own instance; NULL when memory is out. Runs on the worker's thread. */
    struct hg_store *(*open)(struct hg_generation *generation, struct hg_worker *worker);
    /* New settings for an open instance; runs on its worker's thread. */
    void (*refresh)(struct hg_generation *generation, struct hg_store *store);
    struct hg_gateset *gates;                     /* its servers' tickets */
    void (*retire)(struct hg_upstream *upstream); /* with the last reference */
    void *impl;
};

/* What the workers' instances of an upstream have in common under one set of settings. Settings
   that an open instance cannot take over make another generation: a worker that adopts a directory
   opens an instance of the one that is listed there, and what is under way on its old one ends
   there. */
struct hg_generation {
    _Atomic unsigned refs;
    _Atomic unsigned listed; /* directories that list it; with none nobody opens it any more */
    _Atomic unsigned busy;   /* instances that have something under way, or may get something */
    uint64_t number;         /* tells it from every other of the process; from 1 */
    struct hg_upstream *upstream;                     /* counted */
    void (*retire)(struct hg_generation *generation); /* with the last reference; any thread */
    void *impl;
};

struct hg_directory {
    _Atomic unsigned refs;
    struct hg_front_settings settings;
    void *users; /* the app's snapshot of users; front only hands it back */
    void (*users_unref)(void *users);
    size_t upstream_count;
    struct hg_upstream **upstreams;
    struct hg_generation **generations; /* of each upstream the one in force */
    size_t bucket_count;
    struct hg_bucket **buckets; /* by name, ascending bytes */
    uint32_t *identities;       /* of each bucket, in the generation of its upstream */
    size_t table_count;
    struct hg_directory_table *tables; /* those with attributes of families */
    void *table_bytes;                 /* what they point to */
};

static inline struct hg_upstream *hg_upstream_ref(struct hg_upstream *upstream)
{
    atomic_fetch_add_explicit(&upstream->refs, 1, memory_order_relaxed);
    return upstream;
}
void hg_upstream_unref(struct hg_upstream *upstream);

static inline struct hg_generation *hg_generation_ref(struct hg_generation *generation)
{
    atomic_fetch_add_explicit(&generation->refs, 1, memory_order_relaxed);
    return generation;
}
/* NULL is allowed. */
void hg_generation_unref(struct hg_generation *generation);

/* Room for so many buckets and upstreams, with one reference; NULL when memory is out. The creator
   fills it, giving one reference of each bucket, in order of name. */
HG_MUST_USE struct hg_directory *hg_directory_new(size_t buckets, size_t upstreams);
/* Lists the generation and its upstream; takes references of its own. */
void hg_directory_list(struct hg_directory *directory, struct hg_generation *generation);
struct hg_directory *hg_directory_ref(struct hg_directory *directory);
void hg_directory_unref(struct hg_directory *directory);

/* Attributes of one family. */
struct hg_directory_family {
    const struct hg_bucket *bucket;
    struct hg_span table;
    struct hg_family family;
};
/* Once for a new directory, by its creator; everything is copied. No family of a table twice. False
   when memory is out. */
HG_MUST_USE bool hg_directory_set_families(struct hg_directory *directory,
                                           const struct hg_directory_family *list, size_t count);
/* Those of a table, by name; none: count 0. As long as the directory. */
struct hg_families hg_directory_families(const struct hg_directory *directory,
                                         const struct hg_bucket *bucket, struct hg_span table);

/* NULL when there is none of that name. The directory's reference; take one to keep it. */
struct hg_bucket *hg_directory_bucket(const struct hg_directory *directory, struct hg_span name);
struct hg_upstream *hg_directory_upstream(const struct hg_directory *directory,
                                          struct hg_span name);
/* The one of the upstream that is in force; NULL: the upstream is not listed. */
struct hg_generation *hg_directory_generation(const struct hg_directory *directory,
                                              const struct hg_upstream *upstream);
/* Of a bucket that the directory lists, else 0. */
uint32_t hg_directory_identity(const struct hg_directory *directory,
                               const struct hg_bucket *bucket);

#endif
