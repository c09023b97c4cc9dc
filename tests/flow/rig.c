// rig - a worker without a front end: a loop, a store or the parts of one, and calls that note what
// becomes of them
// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define TURN_MAX_US 1000 /* of the bench's clock */

static int orders, room_orders;

void rig_init(struct rig *rig)
{
    assert_int_equal(hg_loop_init(&rig->loop), 0);
    assert_int_equal(hg_mailbox_init(&rig->mailbox, &rig->loop, rig), 0);
    hg_blobs_init(&rig->blobs);
    hg_out_pool_init(&rig->outs, &rig->blobs);
}

void rig_fini(struct rig *rig)
{
    hg_mailbox_fini(&rig->mailbox);
    hg_out_pool_fini(&rig->outs);
    assert_int_equal(rig->blobs.live_bytes, 0);
    hg_blobs_fini(&rig->blobs);
    hg_loop_fini(&rig->loop);
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct note *note = HG_CONTAINER_OF(call, struct note, call);
    assert_false(call->place.pending);
    assert_false(call->place.waiting);
    note->done++;
    note->order = ++orders;
    note->result = *result;
    note->value_len = result->value.len;
    size_t n =
        result->value.len < sizeof note->value - 1 ? result->value.len : sizeof note->value - 1;
    if (n > 0)
        memcpy(note->value, result->value.at, n);
    note->value[n] = '\0';
    note->value_sum = 0;
    for (size_t i = 0; i < result->value.len; i++)
        note->value_sum += result->value.at[i];
    note->in_blob = false;
    if (result->blob != NULL) {
        const uint8_t *data = result->blob->data;
        note->in_blob = result->value.at >= data &&
                        result->value.at + result->value.len <= data + result->blob->cap;
    }
}

static void on_room(struct hg_call *call)
{
    struct note *note = HG_CONTAINER_OF(call, struct note, call);
    assert_false(call->place.waiting);
    note->rooms++;
    note->room_order = ++room_orders;
    if (!note->stay && note->store != NULL)
        (void)note->store->ops->submit(note->store, call);
}

void note_init(struct note *note, struct hg_store *store, enum hg_op op, const char *key)
{
    memset(note, 0, sizeof *note);
    snprintf(note->key, sizeof note->key, "%s", key);
    note->store = store;
    note->call.op = op;
    note->call.key = hg_span_str(note->key);
    note->call.on_done = on_done;
    note->call.on_room = on_room;
}

enum hg_submit note_submit(struct note *note, struct rig *rig)
{
    hg_loop_stamp(&rig->loop);
    note->call.now_us = rig->loop.now_us;
    return note->store->ops->submit(note->store, &note->call);
}

void note_reset_order(void)
{
    orders = room_orders = 0;
}

static uint64_t bench_us, seen_us;

uint64_t bench_now_us(void)
{
    if (bench_us == 0)
        bench_us = seen_us = hg_now_us();
    return bench_us;
}

void bench_keep_time(struct rig *rig)
{
    rig->loop.clock = bench_now_us;
    rig->loop.now_us = bench_now_us();
}

void bench_skip(uint64_t us)
{
    bench_us = bench_now_us() + us;
}

static void let_time_pass(void)
{
    uint64_t since_us = bench_now_us(), real_us = hg_now_us(), passed_us = real_us - seen_us;
    bench_us = since_us + (passed_us < TURN_MAX_US ? passed_us : TURN_MAX_US);
    seen_us = real_us;
}

void bench_turn(struct bench *bench)
{
    let_time_pass();
    for (unsigned i = 0; i < HG_COUNT_OF(bench->rigs); i++) {
        if (bench->rigs[i] != NULL)
            hg_loop_turn(&bench->rigs[i]->loop, false);
    }
    for (unsigned i = 0; i < HG_COUNT_OF(bench->fakes); i++) {
        if (bench->fakes[i] != NULL)
            fake_pump(bench->fakes[i]);
    }
}

uint64_t bench_scale(void)
{
    return patience_scale();
}

uint64_t bench_deadline(void)
{
    return patience_end_us();
}

void bench_for(struct bench *bench, uint64_t us)
{
    uint64_t end_us = hg_now_us() + us;
    while (hg_now_us() < end_us)
        bench_turn(bench);
}

void rig_conf(struct hg_remote_conf *conf, struct hg_ring_server *servers, struct fake **fakes,
              uint32_t count)
{
    hg_remote_conf_init(conf);
    conf->name = "cache";
    for (uint32_t i = 0; i < count; i++)
        servers[i] = (struct hg_ring_server){fakes[i]->address, 1};
    conf->ring.servers = servers;
    conf->ring.count = count;
    conf->times.connect_timeout_ms = 400 * (uint32_t)bench_scale();
    conf->times.backend_timeout_ms = 400 * (uint32_t)bench_scale();
    conf->times.queue_timeout_ms = 400 * (uint32_t)bench_scale();
    conf->times.reconnect_max_ms = 50;
}

struct hg_upstream_shared *rig_shared(const struct hg_remote_conf *conf, uint32_t workers)
{
    char why[HG_RING_WHY_BYTES] = "";
    struct hg_upstream_shared *shared = hg_upstream_shared_new(conf, NULL, workers, why);
    if (shared == NULL)
        fail_msg("%s", why);
    return shared;
}

struct hg_store *rig_store(struct rig *rig, struct hg_upstream_shared *shared, uint32_t worker,
                           uint32_t share)
{
    const struct hg_remote_place place = {&rig->loop, &rig->mailbox, &rig->blobs,
                                          &rig->outs, worker,        share};
    struct hg_store *store = hg_memcached_store_new(shared, &place);
    assert_non_null(store);
    return store;
}

struct hg_pool *rig_pool(struct hg_store *store, uint32_t index)
{
    return hg_remote_of(store)->domains[index].own;
}

uint64_t rig_stat(const struct hg_upstream_shared *shared, uint32_t server,
                  enum hg_upstream_stat stat)
{
    uint64_t sums[HG_UPSTREAM_STATS];
    hg_server_sum(&shared->servers[server], sums);
    return sums[stat];
}
