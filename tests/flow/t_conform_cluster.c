// t_conform_cluster - what every store must do, by the redis-cluster store on a real cluster
// SPDX-License-Identifier: BSD-3-Clause
#include "clusterscene.h"
#include "conform.h"

#include <stdio.h>

#define HAS                                                                                        \
    (HAS_CAS | HAS_FLAGS | HAS_PADDING | HAS_ROWS | HAS_ORDER | HAS_JOIN_LIMIT | HAS_JOIN_SIZE |   \
     HAS_WORKERS | HAS_TIES | HAS_LARGE_NUMBERS | IS_FAST)

static const struct conform_store stores[] = {
    {"cluster", HAS, .key_max = HG_REDIS_KEY_MAX, .rounds = CLUSTERD_MASTERS, .walk_steps = 4000},
    {"cluster, relayed", HAS, .key_max = HG_REDIS_KEY_MAX, .rounds = CLUSTERD_MASTERS,
     .walk_steps = 4000, .relayed = true},
};

static struct clusterd cluster;

static void launch(void)
{
    clusterd_init(&cluster);
}

static void put_down(void)
{
    clusterd_fini(&cluster);
}

/* The scene's shared part, without its workers. */
static void open_cluster(struct conform *c)
{
    static struct clusterscene scene;
    clusterscene_init(&scene, &cluster);
    conform_remote(c, &scene.conf, scene.seeds, cluster.count);
    scene.conf.is_memcached = false;
    scene.conf.default_port = 6379;
    scene.conf.pool_depth = 64;
    scene.redis.ranges = true;
    scene.redis.max_value_bytes = c->max_value_bytes;
    scene.workers = 0;
    clusterscene_start(&scene);
    c->shared = &scene;
    c->upstream = scene.shared->upstream;
}

static struct hg_store *open_worker(struct conform *c, struct rig *rig, uint32_t worker)
{
    const struct clusterscene *scene = c->shared;
    const struct hg_remote_place place = {&rig->loop, &rig->mailbox, &rig->blobs,
                                          &rig->outs, worker,        4};
    return hg_rediscluster_store_new(scene->shared, &place);
}

static void close_cluster(struct conform *c)
{
    clusterscene_fini(c->shared);
}

/* On another master in each round. */
static void key_of(char key[64], const char *name, unsigned round)
{
    char tag[64];
    clusterscene_key(tag, HG_KEYSLOTS * round / CLUSTERD_MASTERS + 77, 1);
    snprintf(key, 64, "%.32s%.24s", tag, name);
}

int main(void)
{
    static const struct conform_kind kind = {.name = "conform_cluster",
                                             .launch = launch,
                                             .put_down = put_down,
                                             .open = open_cluster,
                                             .worker = open_worker,
                                             .close = close_cluster,
                                             .key = key_of};
    if (!clusterd_is_installed())
        return 0;
    return conform_main(&kind, stores, HG_COUNT_OF(stores));
}
