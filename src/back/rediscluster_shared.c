// rediscluster_shared - what the workers' instances of a Redis Cluster share, and its counters
// SPDX-License-Identifier: BSD-3-Clause
#include "back/rediscluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAUGE   true
#define COUNTER false

const struct hg_rediscluster_stat_row hg_rediscluster_stat_rows[HG_REDISCLUSTER_STATS] = {
#define HG_REDISCLUSTER_STAT(NAME, name, kind, help) {name, help, kind},
#include "back/rediscluster_stats.def"
#undef HG_REDISCLUSTER_STAT
};

static struct hg_rediscluster_counters *counters_new(uint32_t workers)
{
    size_t bytes = workers * sizeof(struct hg_rediscluster_counters);
    struct hg_rediscluster_counters *counters = aligned_alloc(HG_CACHE_LINE, bytes);
    if (counters != NULL)
        memset(counters, 0, bytes);
    return counters;
}

struct hg_rediscluster_shared *hg_rediscluster_shared_new(const struct hg_remote_conf *conf,
                                                          const struct hg_redis_conf *redis,
                                                          struct hg_resolver *resolver,
                                                          uint32_t workers,
                                                          char why[HG_RING_WHY_BYTES])
{
    struct hg_remote_conf own = *conf;
    own.is_memcached = false;
    own.more_servers = HG_REDISCLUSTER_MORE_SERVERS;
    if (conf->database != 0) {
        snprintf(why, HG_RING_WHY_BYTES, "a redis cluster has one database only, number 0");
        return NULL;
    }
    if (conf->ring.count + HG_REDISCLUSTER_MORE_SERVERS > HG_TOPOLOGY_SERVERS) {
        snprintf(why, HG_RING_WHY_BYTES, "%u servers to begin with are too many, %u is the most",
                 conf->ring.count, HG_TOPOLOGY_SERVERS - HG_REDISCLUSTER_MORE_SERVERS);
        return NULL;
    }
    snprintf(why, HG_RING_WHY_BYTES, "memory is out");
    struct hg_rediscluster_shared *shared = calloc(1, sizeof *shared);
    if (shared == NULL)
        return NULL;
    hg_topology_init(&shared->topology);
    shared->counters = counters_new(workers);
    shared->redis = *redis;
    shared->redis.cluster = true;
    if (shared->counters != NULL)
        shared->upstream = hg_upstream_shared_new(&own, resolver, workers, why);
    if (shared->upstream != NULL)
        return shared;
    hg_rediscluster_shared_free(shared);
    return NULL;
}

void hg_rediscluster_shared_free(struct hg_rediscluster_shared *shared)
{
    if (shared == NULL)
        return;
    if (shared->upstream != NULL)
        hg_upstream_shared_free(shared->upstream);
    hg_topology_fini(&shared->topology);
    free(shared->counters);
    free(shared);
}

void hg_rediscluster_stats(struct hg_rediscluster_shared *shared, uint64_t *values)
{
    struct hg_topology_map map;
    hg_topology_copy(&shared->topology, &map);
    for (unsigned s = 0; s < HG_REDISCLUSTER_STATS; s++) {
        values[s] = 0;
        for (uint32_t w = 0; w < shared->upstream->workers; w++)
            values[s] += hg_counter_get(&shared->counters[w].values[s]);
    }
    values[HG_REDISCLUSTER_VERSION] = map.version;
    values[HG_REDISCLUSTER_UNCOVERED] = map.uncovered;
    values[HG_REDISCLUSTER_MASTERS] = values[HG_REDISCLUSTER_MEMBERS] = 0;
    for (uint32_t i = 0; i < HG_TOPOLOGY_SERVERS; i++) {
        values[HG_REDISCLUSTER_MASTERS] += hg_topology_bit(map.owns, i);
        values[HG_REDISCLUSTER_MEMBERS] += hg_topology_bit(map.member, i);
    }
}
