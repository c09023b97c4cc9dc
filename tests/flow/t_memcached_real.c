// t_memcached_real - the memcached store against memcached itself
// SPDX-License-Identifier: BSD-3-Clause
#include "daemon.h"
#include "rig.h"

#include <libmemcached-1.0/memcached.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"

#define SERVERS   3
#define VALUE_MAX (1024 * 1024)

static uint8_t *pattern; /* VALUE_MAX bytes and some more, no run of it equal to another */

struct scene {
    struct rig rig;
    struct daemon daemons[SERVERS];
    struct hg_ring_server servers[SERVERS];
    struct hg_remote_conf conf;
    struct hg_upstream_shared *shared;
    struct hg_store *store;
    struct bench bench;
};

static void scene_init(struct scene *scene, uint32_t count)
{
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig);
    scene->bench.rigs[0] = &scene->rig;
    hg_remote_conf_init(&scene->conf);
    scene->conf.name = "real";
    for (uint32_t i = 0; i < count; i++) {
        daemon_launch(&scene->daemons[i]);
        scene->servers[i] = (struct hg_ring_server){scene->daemons[i].address, 1};
    }
    scene->conf.ring.servers = scene->servers;
    scene->conf.ring.count = count;
    scene->conf.times.backend_timeout_ms = 5000;
    scene->conf.times.queue_timeout_ms = 60000;
}

static void scene_start(struct scene *scene)
{
    scene->shared = rig_shared(&scene->conf, 1);
    scene->store = rig_store(&scene->rig, scene->shared, 0, 4);
}

static void scene_fini(struct scene *scene)
{
    scene->store->ops->free(scene->store);
    hg_upstream_shared_free(scene->shared);
    for (int i = 0; i < SERVERS; i++)
        daemon_put_down(&scene->daemons[i]);
    rig_fini(&scene->rig);
}

static struct note *begin(struct scene *scene, enum hg_op op, const char *key)
{
    static struct note note;
    note_init(&note, scene->store, op, key);
    note.call.expiry = op == HG_OP_INCREMENT || op == HG_OP_DECREMENT ? 0xffffffff : 0;
    return &note;
}

static struct hg_result finish(struct scene *scene, struct note *note)
{
    (void)note_submit(note, &scene->rig);
    BENCH_UNTIL(&scene->bench, note->done == 1);
    assert_int_equal(note->result.fault, HG_FAULT_NONE);
    return note->result;
}

static struct hg_result store_value(struct scene *scene, enum hg_op op, const char *key,
                                    const char *value, uint64_t cas)
{
    struct note *note = begin(scene, op, key);
    note->call.value = hg_span_str(value);
    note->call.cas = cas;
    note->call.item_flags = 0xabcd1234;
    return finish(scene, note);
}

static void expect_stored(struct scene *scene, const char *key, const char *value)
{
    struct note *note = begin(scene, HG_OP_GET, key);
    struct hg_result result = finish(scene, note);
    assert_int_equal(result.status, 0);
    assert_string_equal(note->value, value);
}

static void t_semantics(void **state)
{
    (void)state;
    struct scene s;
    struct note *note;
    scene_init(&s, 1);
    scene_start(&s);
    struct hg_result r = store_value(&s, HG_OP_SET, "k", "one", 0);
    assert_int_equal(r.status, 0);
    assert_true(r.cas != 0);
    r = finish(&s, note = begin(&s, HG_OP_GET, "k"));
    assert_string_equal(note->value, "one");
    assert_int_equal(r.item_flags, 0xabcd1234);
    assert_int_equal(store_value(&s, HG_OP_SET, "k", "x", r.cas + 1).status, HG_STATUS_KEY_EEXISTS);
    assert_int_equal(store_value(&s, HG_OP_SET, "k", "two", r.cas).status, 0);
    assert_int_equal(store_value(&s, HG_OP_SET, "none", "x", 5).status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(store_value(&s, HG_OP_ADD, "k", "x", 0).status, HG_STATUS_KEY_EEXISTS);
    assert_int_equal(store_value(&s, HG_OP_REPLACE, "none", "x", 0).status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(store_value(&s, HG_OP_REPLACE, "k", "three", 0).status, 0);
    assert_int_equal(store_value(&s, HG_OP_APPEND, "k", "+", 0).status, 0);
    assert_int_equal(store_value(&s, HG_OP_PREPEND, "k", "-", 0).status, 0);
    expect_stored(&s, "k", "-three+");
    assert_int_equal(store_value(&s, HG_OP_APPEND, "none", "+", 0).status, HG_STATUS_NOT_STORED);

    r = finish(&s, note = begin(&s, HG_OP_GET, "none"));
    assert_int_equal(r.status, HG_STATUS_KEY_ENOENT);
    assert_string_equal(note->value, "Not found");
    r = finish(&s, begin(&s, HG_OP_INCREMENT, "none"));
    assert_int_equal(r.status, HG_STATUS_KEY_ENOENT);
    note = begin(&s, HG_OP_INCREMENT, "n");
    note->call.expiry = 0;
    note->call.initial = 40;
    assert_int_equal(finish(&s, note).counter, 40);
    note = begin(&s, HG_OP_INCREMENT, "n");
    note->call.delta = 5;
    assert_int_equal(finish(&s, note).counter, 45);
    note = begin(&s, HG_OP_DECREMENT, "n");
    note->call.delta = 100;
    assert_int_equal(finish(&s, note).counter, 0);
    r = finish(&s, note = begin(&s, HG_OP_INCREMENT, "k"));
    assert_int_equal(r.status, HG_STATUS_DELTA_BADVAL);
    assert_true(note->value_len > 0);

    assert_int_equal(finish(&s, begin(&s, HG_OP_TOUCH, "k")).status, 0);
    r = finish(&s, note = begin(&s, HG_OP_GAT, "k"));
    assert_string_equal(note->value, "-three+");
    assert_int_equal(r.item_flags, 0xabcd1234);
    assert_int_equal(finish(&s, begin(&s, HG_OP_TOUCH, "none")).status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(finish(&s, begin(&s, HG_OP_DELETE, "k")).status, 0);
    assert_int_equal(finish(&s, begin(&s, HG_OP_DELETE, "k")).status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(finish(&s, begin(&s, HG_OP_FLUSH, "")).status, 0);
    assert_int_equal(finish(&s, begin(&s, HG_OP_GET, "n")).status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_CONNECTS), 1);
    scene_fini(&s);
}

/* A note that compares what it gets with a piece of the pattern. */
struct check {
    struct hg_call call;
    struct hg_store *store;
    char key[32];
    size_t from, len;
    int *done;
    bool right;
    enum hg_fault fault;
    uint16_t status;
};

static void on_checked(struct hg_call *call, const struct hg_result *result)
{
    struct check *check = HG_CONTAINER_OF(call, struct check, call);
    ++*check->done;
    check->fault = result->fault;
    check->status = result->status;
    check->right =
        result->value.len == check->len &&
        (check->len == 0 || memcmp(result->value.at, pattern + check->from, check->len) == 0);
}

static void on_check_room(struct hg_call *call)
{
    struct check *check = HG_CONTAINER_OF(call, struct check, call);
    (void)check->store->ops->submit(check->store, call);
}

static void submit_check(struct scene *s, struct check *check, enum hg_op op, struct hg_blob *blob)
{
    check->store = s->store;
    check->call = (struct hg_call){
        .op = op,
        .key = hg_span_str(check->key),
        .key_hash = (uint32_t)check->from,
        .on_done = on_checked,
        .on_room = on_check_room,
    };
    if (op == HG_OP_SET)
        check->call.value = hg_span(pattern + check->from, check->len);
    if (blob != NULL) {
        memcpy(blob->data + 3, pattern + check->from, check->len);
        check->call.blob = blob;
        check->call.value = hg_span(blob->data + 3, check->len);
    }
    hg_loop_stamp(&s->rig.loop);
    check->call.now_us = s->rig.loop.now_us;
    (void)s->store->ops->submit(s->store, &check->call);
}

/* Every length around the bounds of buffers, up to the limit of an item, there and back. */
static void t_sizes(void **state)
{
    (void)state;
    static const size_t bounds[] = {0,     256,   1024,  4096,   8192,   16320,    16384,
                                    32768, 65536, 65600, 131072, 262144, VALUE_MAX};
    struct scene s;
    scene_init(&s, 1);
    scene_start(&s);
    for (size_t b = 0; b < HG_COUNT_OF(bounds); b++) {
        size_t first = bounds[b] >= 32 ? bounds[b] - 32 : 0;
        size_t last = bounds[b] == VALUE_MAX ? VALUE_MAX : bounds[b] + 32;
        size_t step = bounds[b] >= 131072 ? 8 : 1;
        for (size_t len = first; len <= last; len += step) {
            int done = 0;
            struct check set = {.from = len % 97, .len = len, .done = &done}, get = set;
            snprintf(set.key, sizeof set.key, "size:%zu", len);
            memcpy(get.key, set.key, sizeof get.key);
            struct hg_blob *blob = hg_blob_borrow(&s.rig.blobs, len + 3);
            submit_check(&s, &set, HG_OP_SET, len % 2 ? blob : NULL);
            hg_blob_unref(blob);
            BENCH_UNTIL(&s.bench, done == 1);
            assert_int_equal(set.fault, HG_FAULT_NONE);
            assert_int_equal(set.status, 0);
            submit_check(&s, &get, HG_OP_GET, NULL);
            BENCH_UNTIL(&s.bench, done == 2);
            assert_int_equal(get.fault, HG_FAULT_NONE);
            if (!get.right)
                fail_msg("value of %zu bytes is not what was stored", len);
        }
    }
    struct note *note = begin(&s, HG_OP_SET, "too-large");
    uint8_t *huge = calloc(1, 3 << 20);
    note->call.value = hg_span(huge, 3 << 20);
    assert_int_equal(finish(&s, note).status, HG_STATUS_E2BIG);
    assert_string_equal(note->value, "Too large.");
    free(huge);
    scene_fini(&s);
}

/* Thousands under way over three servers at once. */
static void t_many(void **state)
{
    (void)state;
    enum { MANY = 6000 };
    struct scene s;
    struct hg_prng prng = {7};
    struct check *checks = calloc(MANY, sizeof *checks);
    int done = 0;
    scene_init(&s, SERVERS);
    scene_start(&s);
    for (int i = 0; i < MANY; i++) {
        checks[i].from = (size_t)i;
        checks[i].len =
            hg_prng_below(&prng, 20) == 0 ? hg_prng_below(&prng, 60000) : hg_prng_below(&prng, 300);
        checks[i].done = &done;
        snprintf(checks[i].key, sizeof checks[i].key, "many:%d", i);
        submit_check(&s, &checks[i], HG_OP_SET, NULL);
    }
    BENCH_UNTIL(&s.bench, done == MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(checks[i].fault, HG_FAULT_NONE);
        assert_int_equal(checks[i].status, 0);
    }
    done = 0;
    for (int i = MANY; i-- > 0;)
        submit_check(&s, &checks[i], HG_OP_GET, NULL);
    BENCH_UNTIL(&s.bench, done == MANY);
    uint64_t requests = 0;
    for (int i = 0; i < MANY; i++)
        assert_true(checks[i].right);
    for (uint32_t i = 0; i < SERVERS; i++) {
        requests += rig_stat(s.shared, i, HG_UPSTREAM_REQUESTS);
        assert_in_range(rig_stat(s.shared, i, HG_UPSTREAM_CONNECTS), 1, 4);
        assert_int_equal(rig_stat(s.shared, i, HG_UPSTREAM_LOST), 0);
    }
    assert_int_equal(requests, 2 * MANY);
    free(checks);
    scene_fini(&s);
}

/* What a client of libmemcached puts on the servers is found. */
static void t_agrees_with_a_client(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s, SERVERS);
    scene_start(&s);
    memcached_st *memc = memcached_create(NULL);
    memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_KETAMA, 1);
    for (int i = 0; i < SERVERS; i++)
        assert_int_equal(memcached_server_add(memc, "127.0.0.1", s.daemons[i].port),
                         MEMCACHED_SUCCESS);
    for (int i = 0; i < 300; i++) {
        char key[32];
        size_t len = (size_t)snprintf(key, sizeof key, "client:%d", i);
        assert_int_equal(memcached_set(memc, key, len, key, len, 0, 0), MEMCACHED_SUCCESS);
    }
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "client:%d", i);
        expect_stored(&s, key, key);
    }
    memcached_free(memc);
    scene_fini(&s);
}

/* Traffic without end over three servers; one of them is killed, started again, stopped, woken.
   Every call is answered once, values are right whenever there are any, the others never falter. */
struct traffic {
    struct check *checks;
    int count, next;
    int done, lost;
    uint64_t wrong;
};

static void keep_going(struct scene *s, struct traffic *t)
{
    for (int i = 0; i < t->count; i++) {
        struct check *check = &t->checks[i];
        if (*check->done == 0)
            continue;
        assert_int_equal(*check->done, 1);
        t->done++;
        t->lost += check->fault != HG_FAULT_NONE;
        if (check->fault == HG_FAULT_NONE && check->status == 0 && check->call.op == HG_OP_GET)
            t->wrong += !check->right;
        *check->done = 0;
        int number = t->next++ % 500;
        check->from = (size_t)number;
        check->len = (size_t)(number * 13 % 2000);
        snprintf(check->key, sizeof check->key, "traffic:%d", number);
        submit_check(s, check, t->next % 3 == 0 ? HG_OP_SET : HG_OP_GET, NULL);
    }
}

static void go_on_for(struct scene *s, struct traffic *t, uint64_t us)
{
    uint64_t end_us = hg_now_us() + us;
    while (hg_now_us() < end_us) {
        keep_going(s, t);
        bench_turn(&s->bench);
    }
}

static void t_killed_stopped_and_back(void **state)
{
    (void)state;
    enum { UNDER_WAY = 60 };
    struct scene s;
    static struct check checks[UNDER_WAY];
    int done[UNDER_WAY] = {0};
    memset(checks, 0, sizeof checks);
    scene_init(&s, SERVERS);
    s.conf.times.backend_timeout_ms = 100;
    s.conf.times.queue_timeout_ms = 200;
    s.conf.times.reconnect_max_ms = 100;
    scene_start(&s);
    struct traffic t = {.checks = checks, .count = UNDER_WAY};
    for (int i = 0; i < UNDER_WAY; i++) {
        checks[i].done = &done[i];
        done[i] = 1; /* as if the one before were answered */
        checks[i].right = true;
    }
    go_on_for(&s, &t, 200000);
    uint64_t others = rig_stat(s.shared, 1, HG_UPSTREAM_REPLIES);

    daemon_put_down(&s.daemons[0]);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), !hg_server_may_send(&s.shared->servers[0])));
    go_on_for(&s, &t, 200000);
    assert_true(rig_stat(s.shared, 1, HG_UPSTREAM_REPLIES) > others);
    assert_true(rig_stat(s.shared, 0, HG_UPSTREAM_REFUSED_DOWN) > 0);
    daemon_launch(&s.daemons[0]);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), hg_server_may_send(&s.shared->servers[0])));
    uint64_t before = rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES);
    BENCH_UNTIL(&s.bench,
                (keep_going(&s, &t), rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES) > before + 100));

    kill(s.daemons[0].pid, SIGSTOP);
    go_on_for(&s, &t, 130000); /* some time out, and are answered late */
    kill(s.daemons[0].pid, SIGCONT);
    go_on_for(&s, &t, 150000);
    kill(s.daemons[0].pid, SIGSTOP);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), !hg_server_may_send(&s.shared->servers[0])));
    go_on_for(&s, &t, 100000);
    kill(s.daemons[0].pid, SIGCONT);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), hg_server_may_send(&s.shared->servers[0])));
    before = rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES);
    BENCH_UNTIL(&s.bench,
                (keep_going(&s, &t), rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES) > before + 100));
    assert_true(rig_stat(s.shared, 0, HG_UPSTREAM_TIMEOUTS) > 0);
    assert_true(t.lost > 0);
    assert_int_equal(t.wrong, 0);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    assert_int_equal(rig_stat(s.shared, 1, HG_UPSTREAM_BREAKER_OPENS), 0);
    assert_int_equal(rig_stat(s.shared, 2, HG_UPSTREAM_BREAKER_OPENS), 0);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_semantics),
        cmocka_unit_test(t_sizes),
        cmocka_unit_test(t_many),
        cmocka_unit_test(t_agrees_with_a_client),
        cmocka_unit_test(t_killed_stopped_and_back),
    };
    if (!daemon_is_installed())
        return 0;
    struct hg_prng prng = {1};
    pattern = malloc(VALUE_MAX + 8192);
    for (size_t i = 0; i < VALUE_MAX + 8192; i++)
        pattern[i] = (uint8_t)hg_prng_next(&prng);
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    int rc = cmocka_run_group_tests_name("memcached_real", tests, NULL, NULL);
    free(pattern);
    return rc;
}
