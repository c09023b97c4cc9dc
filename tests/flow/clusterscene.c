// clusterscene - the redis-cluster store in front of a real cluster, and clients that keep a window
// of requests under way
// SPDX-License-Identifier: BSD-3-Clause
#include "clusterscene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void clusterscene_init(struct clusterscene *scene, struct clusterd *cluster)
{
    memset(scene, 0, sizeof *scene);
    scene->workers = SCENE_WORKERS;
    scene->resolver = hg_resolver_new();
    for (uint32_t n = 0; n < cluster->count; n++)
        scene->seeds[n] = (struct hg_ring_server){cluster->nodes[n].address, 1};
    hg_remote_conf_init(&scene->conf);
    scene->conf.name = "cluster";
    scene->conf.is_memcached = false;
    scene->conf.ring.servers = scene->seeds;
    scene->conf.ring.count = cluster->count;
    scene->conf.default_port = 6379;
    scene->conf.pool_depth = 64;
#ifdef SCENE_RELAYED
    scene->conf.pool_max_connections = 3; /* less than 2 x workers: each server has an owner */
#endif
    scene->conf.times.connect_timeout_ms = 500 * (uint32_t)bench_scale();
    scene->conf.times.backend_timeout_ms = 2000 * (uint32_t)bench_scale();
    scene->conf.times.queue_timeout_ms = 2000 * (uint32_t)bench_scale();
    scene->conf.times.reconnect_max_ms = 100;
    scene->redis.max_value_bytes = 1 << 20;
    for (uint32_t w = 0; w < SCENE_WORKERS; w++) {
        rig_init(&scene->rigs[w]);
        scene->bench.rigs[w] = &scene->rigs[w];
    }
}

void clusterscene_start(struct clusterscene *scene)
{
    char why[HG_RING_WHY_BYTES] = "";
    scene->shared = hg_rediscluster_shared_new(&scene->conf, &scene->redis, scene->resolver,
                                               SCENE_WORKERS, why);
    if (scene->shared == NULL)
        fail_msg("%s", why);
    for (uint32_t w = 0; w < scene->workers; w++) {
        struct rig *rig = &scene->rigs[w];
        const struct hg_remote_place place = {&rig->loop, &rig->mailbox, &rig->blobs, &rig->outs, w,
                                              4};
        scene->stores[w] = hg_rediscluster_store_new(scene->shared, &place);
        assert_non_null(scene->stores[w]);
    }
}

void clusterscene_fini(struct clusterscene *scene)
{
    for (uint32_t w = 0; w < scene->workers; w++)
        scene->stores[w]->ops->free(scene->stores[w]);
    hg_rediscluster_shared_free(scene->shared);
    hg_resolver_free(scene->resolver);
    for (uint32_t w = 0; w < SCENE_WORKERS; w++)
        rig_fini(&scene->rigs[w]);
}

uint64_t clusterscene_stat(struct clusterscene *scene, enum hg_rediscluster_stat stat)
{
    uint64_t values[HG_REDISCLUSTER_STATS];
    hg_rediscluster_stats(scene->shared, values);
    return values[stat];
}

static const struct hg_rediscluster_store *store_at(struct clusterscene *scene, uint32_t worker)
{
    return hg_rediscluster_of(hg_remote_of(scene->stores[worker]));
}

void clusterscene_refresh(struct clusterscene *scene)
{
    uint32_t version = hg_topology_version(&scene->shared->topology);
    hg_topology_want(&scene->shared->topology, HG_SLOTS_NONE);
    for (uint32_t w = 0; w < scene->workers; w++) {
        hg_remote_get_busy(hg_remote_of(scene->stores[w]));
        BENCH_UNTIL(&scene->bench, store_at(scene, w)->map.version > version);
    }
}

void clusterscene_until_owner(struct clusterscene *scene, struct clusterd *cluster, uint32_t slot,
                              uint32_t node)
{
    uint64_t end_us = hg_now_us() + 30000000 * bench_scale();
    const struct hg_rediscluster_store *store = store_at(scene, 0);
    for (;;) {
        uint32_t owner = store->map.owner[slot];
        if (owner != HG_SLOTS_NONE && strcmp(scene->shared->upstream->servers[owner].address,
                                             cluster->nodes[node].address) == 0)
            return;
        assert_true(hg_now_us() < end_us);
        hg_topology_want(&scene->shared->topology, HG_SLOTS_NONE);
        bench_turn(&scene->bench);
    }
}

struct note *clusterscene_call(struct clusterscene *scene, enum hg_op op, const char *key,
                               const char *value)
{
    static struct note note;
    static char room[512];
    note_init(&note, scene->stores[0], op, key);
    snprintf(room, sizeof room, "%s", value == NULL ? "" : value);
    note.call.value = hg_span_str(room);
    note.call.item_flags = value == NULL ? 0 : 0xabcd1234;
    bench_turn(&scene->bench); /* what the test did meanwhile took no time of the call's */
    (void)note_submit(&note, &scene->rigs[0]);
    BENCH_UNTIL(&scene->bench, note.done > 0);
    assert_int_equal(note.done, 1);
    return &note;
}

void clusterscene_key(char key[64], uint32_t slot, unsigned number)
{
    /* A tag for each slot, found once. */
    static char tags[HG_KEYSLOTS][8];
    if (tags[slot][0] == '\0') {
        for (unsigned i = 0, left = HG_KEYSLOTS; left > 0; i++) {
            char tag[8];
            snprintf(tag, sizeof tag, "%x", i);
            uint32_t of = hg_keyslot_of(hg_span_str(tag));
            if (tags[of][0] == '\0') {
                memcpy(tags[of], tag, sizeof tag);
                left--;
            }
        }
    }
    snprintf(key, 64, "{%s}:%u", tags[slot], number);
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct step *step = HG_CONTAINER_OF(call, struct step, call);
    struct user *user = step->user;
    assert_false(step->done);
    step->done = true;
    step->fault = result->fault;
    step->status = result->status;
    step->got_len = result->value.len < sizeof step->got ? result->value.len : sizeof step->got - 1;
    if (step->got_len > 0)
        memcpy(step->got, result->value.at, step->got_len);
    step->got[step->got_len] = '\0';
    while (user->first < user->next && user->steps[user->first].done)
        user->first++;
    for (int i = user->first; i < user->next && &user->steps[i] < step; i++)
        user->order_faults += !user->steps[i].done && user->steps[i].sent &&
                              strcmp(user->steps[i].key, step->key) == 0;
    user->finished++;
    if (user->blocked == step)
        user->blocked = NULL;
}

static bool submit(struct user *user, struct step *step)
{
    hg_loop_stamp(user->loop);
    step->call.now_us = user->loop->now_us;
    step->call.key = hg_span_str(step->key);
    step->call.value = hg_span_str(step->value);
    step->call.blob = NULL;
    step->call.after = NULL;
    for (struct step *before = user->steps + user->first; before < step; before++) {
        if (before->sent && !before->done && strcmp(before->key, step->key) == 0)
            step->call.after = &before->call;
    }
    step->sent = true;
    if (user->store->ops->submit(user->store, &step->call) == HG_SUBMIT_TAKEN)
        return true;
    step->sent = false;
    user->blocked = step;
    return false;
}

static void on_room(struct hg_call *call)
{
    struct step *step = HG_CONTAINER_OF(call, struct step, call);
    struct user *user = step->user;
    assert_ptr_equal(user->blocked, step);
    assert_false(step->sent);
    user->blocked = NULL;
    if (submit(user, step))
        user_pump(user);
}

struct step *user_add(struct user *user, enum hg_op op, const char *key, const char *value)
{
    struct step *step = &user->steps[user->count++];
    memset(step, 0, sizeof *step);
    step->user = user;
    snprintf(step->key, sizeof step->key, "%s", key);
    snprintf(step->value, sizeof step->value, "%s", value == NULL ? "" : value);
    step->call.op = op;
    step->call.on_done = on_done;
    step->call.on_room = on_room;
    return step;
}

void user_init(struct user *user, struct clusterscene *scene, uint32_t worker, int steps,
               int window)
{
    memset(user, 0, sizeof *user);
    user->store = scene->stores[worker];
    user->loop = &scene->rigs[worker].loop;
    user->steps = calloc((size_t)steps, sizeof *user->steps);
    user->window = window;
}

void user_fini(struct user *user)
{
    free(user->steps);
}

void user_pump(struct user *user)
{
    while (user->blocked == NULL && user->next < user->count &&
           user->next - user->finished < user->window) {
        if (!submit(user, &user->steps[user->next++]))
            break;
    }
}
