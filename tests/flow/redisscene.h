// redisscene - a redis store of a test's own, before a redis-server or something that plays one
// SPDX-License-Identifier: BSD-3-Clause
#ifndef REDISSCENE_H
#define REDISSCENE_H

#include "redisd.h"
#include "rig.h"

#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/redis.h"

/* With SCENE_RELAYED the store is that of a worker whose calls another worker carries out. */
struct scene {
    struct rig rig;
#ifdef SCENE_RELAYED
    struct rig owner_rig;
    struct hg_store *owner;
#endif
    struct daemon daemon; /* not run when the test plays the server */
    struct hg_ring_server server;
    struct hg_remote_conf conf;
    struct hg_redis_conf redis;
    struct hg_upstream_shared *shared;
    struct hg_store *store;
    struct bench bench;
    redisContext *admin; /* a client of its own */
};

static inline void scene_init(struct scene *scene, const char *address)
{
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig);
    scene->bench.rigs[0] = &scene->rig;
#ifdef SCENE_RELAYED
    rig_init(&scene->owner_rig);
    scene->bench.rigs[1] = &scene->owner_rig;
#endif
    hg_remote_conf_init(&scene->conf);
    scene->conf.name = "real";
    scene->conf.is_memcached = false;
    scene->conf.default_port = 6379;
    scene->server = (struct hg_ring_server){address, 1};
    scene->conf.ring.servers = &scene->server;
    scene->conf.ring.count = 1;
    scene->conf.times.backend_timeout_ms = 5000;
    scene->conf.times.queue_timeout_ms = 60000;
    scene->conf.times.reconnect_max_ms = 50;
    scene->redis = (struct hg_redis_conf){.ranges = true, .max_value_bytes = 1024 * 1024};
}

static inline void scene_connect_admin(struct scene *scene)
{
    if (scene->admin != NULL)
        redisFree(scene->admin);
    scene->admin = redisConnect("127.0.0.1", scene->daemon.port);
    assert_non_null(scene->admin);
    assert_int_equal(scene->admin->err, 0);
}

/* With a redis-server of these options; then scene_start. */
static inline void scene_launch(struct scene *scene, const char *const *options)
{
    struct daemon daemon = {0};
    redisd_launch(&daemon, options);
    scene_init(scene, "");
    scene->daemon = daemon;
    scene->server.address = scene->daemon.address;
    scene_connect_admin(scene);
}

static inline struct hg_store *scene_open(struct scene *scene, struct rig *rig, uint32_t worker)
{
    const struct hg_remote_place place = {&rig->loop, &rig->mailbox, &rig->blobs,
                                          &rig->outs, worker,        4};
    struct hg_store *store = hg_redis_store_new(scene->shared, &place, &scene->redis);
    assert_non_null(store);
    return store;
}

static inline void scene_start(struct scene *scene)
{
#ifdef SCENE_RELAYED
    struct hg_remote_conf conf = scene->conf;
    conf.pool_max_connections = 3; /* less than 2 x 2 */
    scene->shared = rig_shared(&conf, 2);
    scene->owner = scene_open(scene, &scene->owner_rig, 0);
    scene->store = scene_open(scene, &scene->rig, 1);
    assert_true(hg_relay_is_away(&hg_remote_of(scene->store)->relay, 0));
#else
    scene->shared = rig_shared(&scene->conf, 1);
    scene->store = scene_open(scene, &scene->rig, 0);
#endif
}

/* Undoes scene_start. */
static inline void scene_stop(struct scene *scene)
{
    assert_int_equal(hg_remote_of(scene->store)->ties.slab.borrowed, 0);
    scene->store->ops->free(scene->store);
#ifdef SCENE_RELAYED
    assert_int_equal(hg_remote_of(scene->owner)->ties.slab.borrowed, 0);
    scene->owner->ops->free(scene->owner);
#endif
    hg_upstream_shared_free(scene->shared);
}

/* Undoes scene_launch, or scene_init. */
static inline void scene_shut(struct scene *scene)
{
    if (scene->admin != NULL)
        redisFree(scene->admin);
    daemon_put_down(&scene->daemon);
    rig_fini(&scene->rig);
#ifdef SCENE_RELAYED
    rig_fini(&scene->owner_rig);
#endif
}

static inline void scene_fini(struct scene *scene)
{
    scene_stop(scene);
    scene_shut(scene);
}

/* What the admin says; its answer as text that holds until the next. */
static inline const char *scene_admin(struct scene *scene, const char *format, ...)
{
    static char text[4096];
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(scene->admin, format, args);
    va_end(args);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(text, sizeof text, "%lld", reply->integer);
    else if (reply->type == REDIS_REPLY_NIL)
        snprintf(text, sizeof text, "nil");
    else
        snprintf(text, sizeof text, "%.*s", (int)reply->len, reply->str);
    freeReplyObject(reply);
    return text;
}

static inline void note_ready(struct scene *scene, struct note *note, enum hg_op op,
                              const char *key)
{
    note_init(note, scene->store, op, key);
    note->call.expiry = op == HG_OP_INCREMENT || op == HG_OP_DECREMENT ? 0xffffffff : 0;
}

/* A call that is set up, for one at a time. */
static inline struct note *begin(struct scene *scene, enum hg_op op, const char *key)
{
    static struct note note;
    note_ready(scene, &note, op, key);
    return &note;
}

static inline struct hg_result finish(struct scene *scene, struct note *note)
{
    (void)note_submit(note, &scene->rig);
    BENCH_UNTIL(&scene->bench, note->done == 1);
    assert_int_equal(note->result.fault, HG_FAULT_NONE);
    return note->result;
}

static inline struct hg_result run(struct scene *scene, enum hg_op op, const char *key)
{
    return finish(scene, begin(scene, op, key));
}

static inline struct hg_result put_value(struct scene *scene, enum hg_op op, const char *key,
                                         const char *value, uint64_t cas)
{
    struct note *note = begin(scene, op, key);
    note->call.value = hg_span_str(value);
    note->call.cas = cas;
    note->call.item_flags = scene->redis.plain ? 0 : 0xabcd1234;
    return finish(scene, note);
}

static inline void expect_stored(struct scene *scene, const char *key, const char *value)
{
    struct note *note = begin(scene, HG_OP_GET, key);
    struct hg_result result = finish(scene, note);
    assert_int_equal(result.status, 0);
    assert_string_equal(note->value, value);
}

#endif
