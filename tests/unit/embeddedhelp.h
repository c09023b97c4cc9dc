// embeddedhelp - an embedded store in a folder of its own, a clock to turn, and calls that remember
// SPDX-License-Identifier: BSD-3-Clause
//
// A world is one file with one worker on the test's thread. ask_* set up a call; ask_run submits it
// and turns the loop until it is answered; a call that has to wait is submitted again, as the front
// does. Every wait has a bound.
#ifndef HG_TESTS_EMBEDDEDHELP_H
#define HG_TESTS_EMBEDDEDHELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "back/embedded_shared.h"
#include "base/clock.h"
#include "proto/status.h"
#include "patience.h"

#define WALL_START 1700000000u

struct world {
    char dir[64];
    struct hg_embedded_options options;
    struct hg_embedded_shared *shared;
    struct hg_loop loop;
    struct hg_timer tick; /* so that a waiting turn ends */
    struct hg_store *store;
    struct hg_blobs blobs;
    uint32_t tenant_id;
    _Atomic uint64_t wall_s;
};

struct ask {
    struct world *world;
    struct hg_call call;
    char key[512];
    bool submitted_again, is_done;
    unsigned done, rooms;
    enum hg_submit submit;
    unsigned order; /* how many were answered before */
    struct hg_result result;
    uint8_t *value; /* a copy, zero-ended */
};

static _Thread_local unsigned ask_order;

static uint64_t world_wall_s(void *arg)
{
    struct world *world = arg;
    return atomic_load(&world->wall_s);
}

static void world_on_tick(struct hg_timer *timer)
{
    (void)timer;
}

/* Opens the file of the world, with one store. */
static void world_open(struct world *world)
{
    char error[256] = "";
    int rc = hg_embedded_open(&world->options, &world->shared, error, sizeof error);
    if (rc != 0)
        fail_msg("open: %s", error);
    assert_int_equal(hg_loop_init(&world->loop), 0);
    assert_int_equal(hg_loop_timer_init(&world->loop, &world->tick, 5000, world_on_tick), 0);
    assert_int_equal(hg_embedded_store_new(world->shared, &world->loop, &world->store), 0);
    assert_int_equal(hg_embedded_tenant_id(world->shared, "shop", &world->tenant_id), 0);
}

static void world_close(struct world *world)
{
    if (world->shared == NULL)
        return;
    world->store->ops->free(world->store);
    hg_loop_timer_fini(&world->tick);
    hg_loop_fini(&world->loop);
    hg_embedded_close(world->shared);
    world->shared = NULL;
}

static inline void world_reopen(struct world *world)
{
    world_close(world);
    world_open(world);
}

/* A world that is not yet open. */
static void world_init(struct world *world, enum hg_embedded_writing writing,
                       enum hg_embedded_sync sync)
{
    memset(world, 0, sizeof *world);
    snprintf(world->dir, sizeof world->dir, "/tmp/t_embedded.XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    atomic_store(&world->wall_s, WALL_START);
    hg_blobs_init(&world->blobs);
    world->options = (struct hg_embedded_options){
        .data_dir = world->dir,
        .name = "main",
        .sync = sync,
        .writing = writing,
        .workers = 4,
        .max_bytes = 64u << 20,
        .max_value_bytes = 1u << 20,
        .timeout_us = 60000000,
        .wall_s = world_wall_s,
        .wall_arg = world,
    };
}

static void world_path(const struct world *world, char out[128], const char *suffix)
{
    snprintf(out, 128, "%s/main.mdb%s", world->dir, suffix);
}

static void world_fini(struct world *world)
{
    char path[128];
    world_close(world);
    world_path(world, path, "");
    unlink(path);
    world_path(world, path, "-lock");
    unlink(path);
    rmdir(world->dir);
    hg_blobs_fini(&world->blobs);
}

static void ask_on_done(struct hg_call *call, const struct hg_result *result)
{
    struct ask *ask = HG_CONTAINER_OF(call, struct ask, call);
    assert_false(call->place.pending || call->place.waiting);
    ask->done++;
    ask->is_done = true;
    ask->order = ask_order++;
    ask->result = *result;
    free(ask->value);
    ask->value = calloc(1, result->value.len + 1);
    assert_non_null(ask->value);
    if (result->value.len > 0)
        memcpy(ask->value, result->value.at, result->value.len);
}

static void ask_submit(struct ask *ask);

static void ask_on_room(struct hg_call *call)
{
    struct ask *ask = HG_CONTAINER_OF(call, struct ask, call);
    ask->rooms++;
    ask_submit(ask);
}

static void ask_submit(struct ask *ask)
{
    struct hg_store *store = ask->world->store;
    struct hg_call *after = ask->call.after;
    if (after != NULL && HG_CONTAINER_OF(after, struct ask, call)->is_done)
        ask->call.after = NULL;
    ask->submit = store->ops->submit(store, &ask->call);
    hg_loop_again(&ask->world->loop); /* as if it had been submitted within the turn */
}

static void ask_init(struct ask *ask, struct world *world, enum hg_op op, const char *key)
{
    memset(ask, 0, sizeof *ask);
    ask->world = world;
    snprintf(ask->key, sizeof ask->key, "%s", key);
    ask->call.op = op;
    ask->call.tenant_id = world->tenant_id;
    ask->call.key = hg_span_str(ask->key);
    ask->call.deadline_us = UINT64_MAX;
    ask->call.on_done = ask_on_done;
    ask->call.on_room = ask_on_room;
}

static void ask_fini(struct ask *ask)
{
    free(ask->value);
    ask->value = NULL;
}

/* Turns the loop until `what` is true. */
#define TURN_UNTIL(world, what)                                                                    \
    do {                                                                                           \
        PATIENCE_UNTIL(what, hg_loop_turn(&(world)->loop, true));                                  \
    } while (0)

static void ask_run(struct ask *ask)
{
    ask_submit(ask);
    TURN_UNTIL(ask->world, ask->done > 0);
    assert_int_equal(ask->done, 1);
}

static inline struct ask run(struct world *world, enum hg_op op, const char *key,
                             struct hg_span value, uint64_t cas, uint32_t expiry)
{
    struct ask ask;
    ask_init(&ask, world, op, key);
    ask.call.value = value;
    ask.call.cas = cas;
    ask.call.expiry = expiry;
    ask.call.item_flags = 0xa1b2c3d4;
    ask_run(&ask);
    return ask;
}

/* The status of an operation with a text as value. */
static inline uint16_t put(struct world *world, enum hg_op op, const char *key, const char *value,
                           uint32_t expiry)
{
    struct ask ask = run(world, op, key, hg_span_str(value), 0, expiry);
    assert_int_equal(ask.result.fault, HG_FAULT_NONE);
    ask_fini(&ask);
    return ask.result.status;
}

/* Asserts that `key` holds `value`, or nothing when that is NULL. */
static inline void expect(struct world *world, const char *key, const char *value)
{
    struct ask ask = run(world, HG_OP_GET, key, HG_SPAN_NONE, 0, 0);
    assert_int_equal(ask.result.fault, HG_FAULT_NONE);
    if (value == NULL) {
        assert_int_equal(ask.result.status, HG_STATUS_KEY_ENOENT);
        assert_int_equal(ask.result.value.len, 0);
    } else {
        assert_int_equal(ask.result.status, HG_STATUS_SUCCESS);
        assert_int_equal(ask.result.value.len, strlen(value));
        assert_string_equal(ask.value, value);
    }
    ask_fini(&ask);
}

static inline uint64_t items(struct world *world)
{
    struct hg_embedded_stats stats;
    hg_embedded_stats_read(world->shared, &stats);
    return stats.items;
}

/* For cmocka's set-up, whose state is the way of writing: a world that is not open yet takes its
   place. */
static inline struct world *world_for(void **state)
{
    const enum hg_embedded_writing *writing = *state;
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world_init(world, *writing, HG_EMBEDDED_SYNC_NEVER);
    *state = world;
    return world;
}

static inline int world_tear_down(void **state)
{
    world_fini(*state);
    free(*state);
    return 0;
}

#endif
