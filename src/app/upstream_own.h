// upstream_own - what upstreams.c and its neighbours know of an upstream and its generations
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_UPSTREAM_OWN_H
#define HG_APP_UPSTREAM_OWN_H

#include "app/process.h"
#include "back/embedded.h"
#include "back/redis_dialect.h"
#include "back/rediscluster.h"
#include "back/remote.h"
#include "back/upstream.h"
#include "base/list.h"

/* What hg_generation.impl points to: what the workers' stores share. */
struct hg_parts {
    struct hg_list node; /* in hg_impl.parts */
    struct hg_embedded_shared *embedded;
    struct hg_upstream_shared *remote;
    struct hg_rediscluster_shared *cluster; /* has `remote` */
    struct hg_redis_conf redis;             /* of Redis and Redis Cluster */
    uint32_t max_connections;               /* to a server, of the whole process */
};

struct hg_impl;

/* What there is to know of a kind of upstream. */
struct hg_kind {
    int (*share)(struct hg_impl *impl, struct hg_parts *parts, const struct hg_conf_upstream *conf,
                 char why[512]);
    struct hg_store *(*open)(struct hg_generation *generation, struct hg_worker *worker);
    void (*stats)(const struct hg_upstream *upstream, struct hg_job *job);
    /* Of stores made of servers: a worker's instance, and what its servers are. */
    struct hg_store *(*store_new)(const struct hg_impl *impl, const struct hg_parts *parts,
                                  const struct hg_remote_place *place);
    uint16_t default_port;
    bool flush_is_private; /* it empties one tenant only */
};

/* What is left of a server whose generation has gone: its counters go on in the next. */
struct hg_carried {
    char *address;
    uint64_t sums[HG_UPSTREAM_STATS];
};

/* What hg_upstream.impl points to. */
struct hg_impl {
    struct hg_process *process;
    const struct hg_kind *kind;
    struct hg_generation *current; /* in force; housekeeping's, listed by the directory in force */
    struct hg_embedded_shared *embedded; /* has one generation, and lives as long as the upstream */
    pthread_mutex_t lock;                /* for what follows */
    struct hg_remote_times times;
    struct hg_list parts; /* of all generations that there are */
    size_t carried_count;
    struct hg_carried *carried;
};

static inline struct hg_impl *hg_impl_of(const struct hg_upstream *upstream)
{
    return upstream->impl;
}

static inline struct hg_parts *hg_parts_of(const struct hg_generation *generation)
{
    return generation->impl;
}

/* Of the generation in force; NULL before the first is. */
static inline struct hg_parts *hg_parts_now(const struct hg_upstream *upstream)
{
    const struct hg_generation *current = hg_impl_of(upstream)->current;
    return current != NULL ? current->impl : NULL;
}

/* ---- upstream_stats.c ---- */

/* The parts are about to go: what their servers have counted is kept. Under impl->lock. */
void hg_upstream_carry(struct hg_impl *impl, const struct hg_parts *parts);
void hg_upstream_remote_stats(const struct hg_upstream *upstream, struct hg_job *job);
void hg_upstream_cluster_stats(const struct hg_upstream *upstream, struct hg_job *job);
void hg_upstream_embedded_stats(const struct hg_upstream *upstream, struct hg_job *job);

#endif
