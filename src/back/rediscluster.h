// rediscluster - a store made of the servers of a Redis Cluster
// SPDX-License-Identifier: BSD-3-Clause
//
//   hg_rediscluster_shared      one for the process: servers (hg_upstream_shared), who owns which
//     │                         slots (topology), counters
//     └ hg_rediscluster_store   one for each worker: a domain for each server, a copy of the owners
//
//   call ─► slot of its key ─► owner ─► MOVED: the owner is another; sent there
//                                  ├──► ASK: sent there this once, after ASKING
//                                  ├──► TRYAGAIN, READONLY: sent again a little later
//                                  └──► answer
//
// The servers of the configuration are where the topology is asked for first; those that requests
// go to are the ones that it names, and that MOVED and ASK name. A call keeps its bytes until it is
// answered, and a client's later call for the same key waits for it, so that no redirect changes
// their order; only a read does not wait for a read. What was sent and not answered is never
// repeated: each of the answers above says that nothing was done. A server that is named no more is
// drained. Database 0 only; a tenant's identity is a user.
#ifndef HG_BACK_REDISCLUSTER_H
#define HG_BACK_REDISCLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "back/redis.h"
#include "back/remote.h"
#include "back/topology.h"
#include "back/upstream.h"
#include "base/attr.h"
#include "base/counter.h"

#define HG_REDISCLUSTER_MORE_SERVERS                                                               \
    1000                             /* besides those of the configuration, in its whole life */
#define HG_REDISCLUSTER_REDIRECTS 16 /* of one call */

enum hg_rediscluster_stat {
#define HG_REDISCLUSTER_STAT(NAME, name, kind, help) HG_REDISCLUSTER_##NAME,
#include "back/rediscluster_stats.def"
#undef HG_REDISCLUSTER_STAT
    HG_REDISCLUSTER_STATS
};

struct hg_rediscluster_stat_row {
    const char *name;
    const char *help;
    bool gauge;
};

extern const struct hg_rediscluster_stat_row hg_rediscluster_stat_rows[HG_REDISCLUSTER_STATS];

/* A worker's; only it writes them. */
struct hg_rediscluster_counters {
    hg_counter values[HG_REDISCLUSTER_STATS];
} __attribute__((aligned(HG_CACHE_LINE)));

struct hg_rediscluster_shared {
    struct hg_upstream_shared *upstream;
    struct hg_redis_conf redis;
    struct hg_topology topology;
    struct hg_rediscluster_counters *counters; /* one set for each worker */
};

/* As hg_upstream_shared_new; more_servers, is_memcached and redis->cluster are set here.
   conf->database must be 0. */
HG_MUST_USE struct hg_rediscluster_shared *
hg_rediscluster_shared_new(const struct hg_remote_conf *conf, const struct hg_redis_conf *redis,
                           struct hg_resolver *resolver, uint32_t workers,
                           char why[HG_RING_WHY_BYTES]);
/* After every worker's store. */
void hg_rediscluster_shared_free(struct hg_rediscluster_shared *shared);
/* `values` has HG_REDISCLUSTER_STATS numbers. From any thread. */
void hg_rediscluster_stats(struct hg_rediscluster_shared *shared, uint64_t *values);

/* The instance of a worker. NULL when memory is out. On the worker's thread, as everything that
   follows. Time-outs: hg_remote_set_times. */
HG_MUST_USE struct hg_store *hg_rediscluster_store_new(struct hg_rediscluster_shared *shared,
                                                       const struct hg_remote_place *place);

#endif
