// t_redis_real - the redis store against redis-server itself: semantics, layouts, sizes
// SPDX-License-Identifier: BSD-3-Clause
#include "redisscene.h"

#include <inttypes.h>
#include <signal.h>

#include "back/item.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"

#define VALUE_MAX (1024 * 1024)

static uint8_t *pattern; /* VALUE_MAX bytes and some more, no run of it equal to another */

static void t_semantics(void **state)
{
    (void)state;
    struct scene s;
    struct note *note;
    scene_launch(&s, NULL);
    scene_start(&s);
    struct hg_result r = put_value(&s, HG_OP_SET, "k", "one", 0);
    assert_int_equal(r.status, 0);
    assert_true(r.cas != 0);
    uint64_t cas = r.cas;
    r = finish(&s, note = begin(&s, HG_OP_GET, "k"));
    assert_string_equal(note->value, "one");
    assert_int_equal(r.item_flags, 0xabcd1234);
    assert_true(r.cas == cas);
    assert_int_equal(put_value(&s, HG_OP_SET, "k", "x", cas + 1).status, HG_STATUS_KEY_EEXISTS);
    r = put_value(&s, HG_OP_SET, "k", "two", cas);
    assert_int_equal(r.status, 0);
    assert_true(r.cas != 0 && r.cas != cas);
    assert_true(run(&s, HG_OP_GET, "k").cas == r.cas);
    assert_int_equal(put_value(&s, HG_OP_SET, "none", "x", 5).status, HG_STATUS_KEY_ENOENT);
    r = put_value(&s, HG_OP_ADD, "k", "x", 0);
    assert_int_equal(r.status, HG_STATUS_KEY_EEXISTS);
    assert_true(r.cas == 0);
    assert_int_equal(put_value(&s, HG_OP_REPLACE, "none", "x", 0).status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(put_value(&s, HG_OP_REPLACE, "k", "three", 0).status, 0);
    r = put_value(&s, HG_OP_APPEND, "k", "+", 0);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.item_bytes, 6);
    assert_int_equal(put_value(&s, HG_OP_PREPEND, "k", "-", 0).status, 0);
    expect_stored(&s, "k", "-three+");
    assert_int_equal(put_value(&s, HG_OP_APPEND, "none", "+", 0).status, HG_STATUS_NOT_STORED);

    assert_int_equal(run(&s, HG_OP_GET, "none").status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(run(&s, HG_OP_INCREMENT, "none").status, HG_STATUS_KEY_ENOENT);
    note = begin(&s, HG_OP_INCREMENT, "n");
    note->call.expiry = 0;
    note->call.initial = UINT64_MAX;
    r = finish(&s, note);
    assert_true(r.counter == UINT64_MAX && r.cas != 0);
    note = begin(&s, HG_OP_INCREMENT, "n");
    note->call.delta = 5;
    assert_int_equal(finish(&s, note).counter, 4);
    note = begin(&s, HG_OP_DECREMENT, "n");
    note->call.delta = 100;
    assert_int_equal(finish(&s, note).counter, 0);
    assert_int_equal(run(&s, HG_OP_INCREMENT, "k").status, HG_STATUS_DELTA_BADVAL);

    cas = run(&s, HG_OP_GET, "k").cas;
    assert_true(run(&s, HG_OP_TOUCH, "k").cas == cas);
    r = finish(&s, note = begin(&s, HG_OP_GAT, "k"));
    assert_string_equal(note->value, "-three+");
    assert_int_equal(r.item_flags, 0xabcd1234);
    assert_true(r.cas == cas);
    assert_int_equal(run(&s, HG_OP_TOUCH, "none").status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(run(&s, HG_OP_GAT, "none").status, HG_STATUS_KEY_ENOENT);
    note = begin(&s, HG_OP_DELETE, "k");
    note->call.cas = cas + 1;
    assert_int_equal(finish(&s, note).status, HG_STATUS_KEY_EEXISTS);
    assert_int_equal(run(&s, HG_OP_DELETE, "k").status, 0);
    assert_int_equal(run(&s, HG_OP_DELETE, "k").status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(run(&s, HG_OP_FLUSH, "").status, 0);
    assert_int_equal(run(&s, HG_OP_GET, "n").status, HG_STATUS_KEY_ENOENT);
    note = begin(&s, HG_OP_FLUSH, "");
    note->call.expiry = 10;
    assert_int_equal(finish(&s, note).status, HG_STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(note->value, "delay"));
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_CONNECTS), 1);
    scene_fini(&s);
}

/* --- beside the model --- */

struct model {
    bool there;
    struct hg_item item;
    uint8_t value[512];
};

static const struct hg_item *model_item(struct model *model)
{
    return model->there ? &model->item : NULL;
}

static void model_apply(struct model *model, const struct hg_item_outcome *outcome)
{
    uint8_t value[512];
    size_t len = hg_item_outcome_bytes(outcome);
    switch (outcome->act) {
    case HG_ITEM_KEEP:
        return;
    case HG_ITEM_REMOVE:
        model->there = false;
        return;
    case HG_ITEM_TOUCH:
        model->item.expiry_s = outcome->item.expiry_s;
        return;
    case HG_ITEM_STORE:
        hg_item_outcome_copy(outcome, value);
        memcpy(model->value, value, len);
        model->item = outcome->item;
        model->item.value = hg_span(model->value, len);
        model->there = true;
    }
}

static void t_random_walk_beside_the_model(void **state)
{
    (void)state;
    enum { KEYS = 4, LIMIT = 400 };
    static const char *const values[] = {"",     "0",    "5", "99", "18446744073709551615",
                                         "text", "x y z"};
    struct scene s;
    struct model models[KEYS];
    struct hg_prng prng = {11};
    memset(models, 0, sizeof models);
    scene_launch(&s, NULL);
    s.redis.max_value_bytes = LIMIT;
    scene_start(&s);
    for (int i = 0; i < 12000; i++) {
        /* One in the name of a row, one that begins with a zero byte. */
        static const char names[KEYS][8] = {"a", "b", "t\0row", "\0c"};
        static const size_t lens[KEYS] = {1, 1, 5, 2};
        size_t k = hg_prng_below(&prng, KEYS);
        struct model *model = &models[k];
        struct hg_item_ask ask = {
            .op = (enum hg_op)hg_prng_below(&prng, HG_OP_FLUSH),
            .flags = (uint32_t)hg_prng_below(&prng, 3),
            .expiry = hg_prng_below(&prng, 2) ? 0 : 100000,
            .delta = hg_prng_below(&prng, 30),
            .initial = hg_prng_next(&prng),
            .value = hg_span_str(values[hg_prng_below(&prng, HG_COUNT_OF(values))])};
        if (hg_prng_below(&prng, 3) == 0)
            ask.cas = model->there && hg_prng_below(&prng, 2) ? model->item.cas : 1;
        if (ask.op == HG_OP_GET || ask.op == HG_OP_GAT || ask.op == HG_OP_TOUCH)
            ask.cas = 0;
        struct note *note = begin(&s, ask.op, "");
        note->call.key = hg_span(names[k], lens[k]);
        note->call.prefix = HG_SPAN_LIT("pre:");
        note->call.value = ask.value;
        note->call.item_flags = ask.flags;
        note->call.expiry = ask.expiry;
        note->call.cas = ask.cas;
        note->call.delta = ask.delta;
        note->call.initial = ask.initial;
        /* Rows go with their index, and are written with a condition only. */
        note->call.row = k == 2 && (ask.op == HG_OP_ADD || ask.op == HG_OP_SET);
        struct hg_result r = finish(&s, note);
        struct hg_item_outcome outcome;
        hg_item_decide(model_item(model), &ask, 1000, LIMIT, r.cas, &outcome);
        if (r.status != outcome.status)
            fail_msg("step %d, op %d: status %#x, not %#x: %s", i, ask.op, r.status, outcome.status,
                     note->value);
        bool reads = ask.op == HG_OP_GET || ask.op == HG_OP_GAT;
        if (outcome.status != 0) {
            assert_true(r.cas == 0);
        } else if (reads || ask.op == HG_OP_TOUCH) {
            assert_true(r.cas == model->item.cas);
        } else if (ask.op != HG_OP_DELETE) {
            assert_true(r.cas != 0);
        }
        if (outcome.status == 0 && reads) {
            assert_int_equal(r.item_flags, outcome.item.flags);
            assert_int_equal(note->value_len, outcome.item.value.len);
            assert_memory_equal(note->value, outcome.item.value.at, note->value_len);
        }
        if (outcome.status == 0 && (ask.op == HG_OP_INCREMENT || ask.op == HG_OP_DECREMENT))
            assert_true(r.counter == outcome.counter);
        model_apply(model, &outcome);
    }
    /* The expiry of each is as the model has it. */
    static const char *const keys[] = {"TTL pre:a", "TTL pre:b"};
    for (size_t k = 0; k < HG_COUNT_OF(keys); k++) {
        long ttl = atol(scene_admin(&s, keys[k]));
        assert_true(!models[k].there               ? ttl == -2
                    : models[k].item.expiry_s == 0 ? ttl == -1
                                                   : ttl > 90000);
    }
    scene_fini(&s);
}

/* --- sizes --- */

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
    if (op != HG_OP_GET)
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

static void set_and_get(struct scene *s, size_t len, bool by_ref, bool by_script)
{
    int done = 0;
    struct check set = {.from = len % 97, .len = len, .done = &done}, get = set;
    snprintf(set.key, sizeof set.key, "size:%zu:%d", len, by_script);
    memcpy(get.key, set.key, sizeof get.key);
    struct hg_blob *blob = by_ref ? hg_blob_borrow(&s->rig.blobs, len + 3) : NULL;
    if (by_script) {
        /* Appended to nothing. */
        struct check empty = {.done = &done};
        memcpy(empty.key, set.key, sizeof empty.key);
        submit_check(s, &empty, HG_OP_SET, NULL);
        BENCH_UNTIL(&s->bench, done == 1);
        done = 0;
    }
    submit_check(s, &set, by_script ? HG_OP_APPEND : HG_OP_SET, blob);
    hg_blob_unref(blob);
    BENCH_UNTIL(&s->bench, done == 1);
    assert_int_equal(set.fault, HG_FAULT_NONE);
    assert_int_equal(set.status, 0);
    submit_check(s, &get, HG_OP_GET, NULL);
    BENCH_UNTIL(&s->bench, done == 2);
    assert_int_equal(get.fault, HG_FAULT_NONE);
    if (!get.right)
        fail_msg("value of %zu bytes is not what was stored", len);
}

/* Every length around the bounds of buffers, up to the limit of an item, there and back. */
static void t_sizes(void **state)
{
    (void)state;
    static const size_t bounds[] = {0,     256,   1024,  4096,   8192,   16320,
                                    16384, 32768, 65536, 131072, 262144, VALUE_MAX};
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    for (size_t b = 0; b < HG_COUNT_OF(bounds); b++) {
        size_t first = bounds[b] >= 32 ? bounds[b] - 32 : 0;
        size_t last = bounds[b] == VALUE_MAX ? VALUE_MAX : bounds[b] + 32;
        size_t step = bounds[b] >= 131072 ? 8 : 1;
        for (size_t len = first; len <= last; len += step) {
            set_and_get(&s, len, len % 2, false);
            if (len % 4 < 2)
                set_and_get(&s, len, len % 2, true);
        }
    }
    /* One more byte than an item may have. */
    struct note *note = begin(&s, HG_OP_APPEND, "size:1048576:0");
    note->call.value = HG_SPAN_LIT("x");
    assert_int_equal(finish(&s, note).status, HG_STATUS_E2BIG);
    scene_fini(&s);
}

/* A large value comes in the block that it was read into; no byte of it is copied for that. */
static void t_large_values_by_reference(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    scene_admin(&s, "SETRANGE k 400000 x");
    struct note *note = begin(&s, HG_OP_GET, "k");
    assert_int_equal(finish(&s, note).status, 0);
    assert_int_equal(note->value_len, 400001 - HG_REDIS_ITEM_HEAD);
    assert_true(note->in_blob);
    scene_fini(&s);
}

/* CAS values of two workers of a process, and of another process: all different. */
static void t_cas_values(void **state)
{
    (void)state;
    enum { STORES = 3, EACH = 200 };
    static uint64_t seen[STORES * EACH];
    struct scene s;
    struct hg_upstream_shared *shared[2];
    size_t count = 0;
    scene_launch(&s, NULL);
    scene_start(&s);
    s.conf.pool_max_connections = 64; /* no worker needs another's */
    shared[0] = rig_shared(&s.conf, 2);
    shared[1] = rig_shared(&s.conf, 1);
    struct hg_store *own = s.store;
    for (uint32_t n = 0; n < STORES; n++) {
        const struct hg_remote_place place = {&s.rig.loop, &s.rig.mailbox, &s.rig.blobs,
                                              &s.rig.outs, n == 1,         1};
        s.store = hg_redis_store_new(shared[n / 2], &place, &s.redis);
        assert_non_null(s.store);
        for (int i = 0; i < EACH; i++) {
            uint64_t cas = put_value(&s, HG_OP_SET, "k", "v", 0).cas;
            assert_true(cas != 0);
            for (size_t k = 0; k < count; k++)
                assert_true(seen[k] != cas);
            seen[count++] = cas;
        }
        s.store->ops->free(s.store);
    }
    s.store = own;
    hg_upstream_shared_free(shared[0]);
    hg_upstream_shared_free(shared[1]);
    scene_fini(&s);
}

/* Thousands under way at once. */
static void t_many(void **state)
{
    (void)state;
    enum { MANY = 6000 };
    struct scene s;
    struct hg_prng prng = {7};
    struct check *checks = calloc(MANY, sizeof *checks);
    int done = 0;
    scene_launch(&s, NULL);
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
    for (int i = 0; i < MANY; i++)
        assert_true(checks[i].right);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_REQUESTS), 2 * MANY);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_LOST), 0);
    free(checks);
    scene_fini(&s);
}

/* --- expiry --- */

static void t_expiry(void **state)
{
    (void)state;
    struct scene s;
    struct note *note;
    scene_launch(&s, NULL);
    scene_start(&s);
    const uint32_t now_s = (uint32_t)time(NULL);
    const struct {
        const char *key;
        uint32_t expiry;
        long least, most; /* seconds that redis then says are left; -1: for ever, -2: gone */
    } rows[] = {
        {"never", 0, -1, -1},
        {"hour", 3600, 3500, 3600},
        {"days", HG_ITEM_RELATIVE_MAX_S, HG_ITEM_RELATIVE_MAX_S - 100, HG_ITEM_RELATIVE_MAX_S},
        {"future", now_s + 5000, 4800, 5000},
        {"past", now_s - 1000, -2, -2},
        {"long past", HG_ITEM_RELATIVE_MAX_S + 1, -2, -2},
        {"late", 0xfffffffe, 1000000, UINT32_MAX},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        for (int way = 0; way < 5; way++) {
            scene_admin(&s, "DEL %s", rows[i].key);
            if (way != 1 && way != 4)
                put_value(&s, HG_OP_SET, rows[i].key, "5", 0);
            static const enum hg_op ops[] = {HG_OP_SET, HG_OP_ADD, HG_OP_TOUCH, HG_OP_GAT,
                                             HG_OP_INCREMENT};
            note = begin(&s, ops[way], rows[i].key);
            note->call.expiry = rows[i].expiry;
            note->call.value = way < 2 ? HG_SPAN_LIT("5") : HG_SPAN_NONE;
            assert_int_equal(finish(&s, note).status, 0);
            if (rows[i].most != -2 && way == 0) {
                /* What changes the value leaves the expiry alone. */
                put_value(&s, HG_OP_APPEND, rows[i].key, "1", 0);
                put_value(&s, HG_OP_PREPEND, rows[i].key, "1", 0);
                assert_int_equal(run(&s, HG_OP_INCREMENT, rows[i].key).counter, 151);
            }
            long ttl = atol(scene_admin(&s, "TTL %s", rows[i].key));
            if (ttl < rows[i].least || ttl > rows[i].most)
                fail_msg("%s, way %d: %ld s are left", rows[i].key, way, ttl);
        }
    }
    note = begin(&s, HG_OP_TOUCH, "hour");
    assert_int_equal(finish(&s, note).status, 0);
    assert_string_equal(scene_admin(&s, "TTL hour"), "-1");
    scene_fini(&s);
}

/* --- layouts and keys --- */

static void t_layout(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    put_value(&s, HG_OP_SET, "k", "value", 0);
    assert_string_equal(scene_admin(&s, "GETRANGE k 12 -1"), "value");
    assert_memory_equal(scene_admin(&s, "GETRANGE k 0 3"), "\xab\xcd\x12\x34", 4);
    struct note *note = begin(&s, HG_OP_SET, "");
    note->call.prefix = HG_SPAN_LIT("p:");
    note->call.key = HG_SPAN_LIT("\0it");
    finish(&s, note);
    assert_string_equal(scene_admin(&s, "EXISTS %b", "p:\0\0it", (size_t)6), "1");
    scene_fini(&s);
}

static void t_plain(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    s.redis.plain = true;
    scene_start(&s);
    struct hg_result r = put_value(&s, HG_OP_SET, "k", "9", 0);
    assert_int_equal(r.status, 0);
    assert_true(r.cas == 0);
    assert_string_equal(scene_admin(&s, "GET k"), "9");
    assert_string_equal(scene_admin(&s, "INCRBY k 90"), "99");
    struct note *note = begin(&s, HG_OP_INCREMENT, "k");
    note->call.delta = 1;
    assert_int_equal(finish(&s, note).counter, 100);
    note = begin(&s, HG_OP_DECREMENT, "k");
    note->call.delta = 1;
    assert_int_equal(finish(&s, note).counter, 99);
    assert_int_equal(put_value(&s, HG_OP_APPEND, "k", "!", 0).status, 0);
    assert_int_equal(put_value(&s, HG_OP_PREPEND, "k", "!", 0).status, 0);
    assert_string_equal(scene_admin(&s, "GET k"), "!99!");
    scene_admin(&s, "SET k %s", "");
    r = finish(&s, note = begin(&s, HG_OP_GET, "k"));
    assert_int_equal(r.status, 0);
    assert_true(note->value_len == 0 && r.cas == 0 && r.item_flags == 0);
    assert_int_equal(run(&s, HG_OP_TOUCH, "k").status, 0);
    assert_int_equal(run(&s, HG_OP_GAT, "k").status, 0);
    assert_int_equal(put_value(&s, HG_OP_ADD, "k", "x", 0).status, HG_STATUS_KEY_EEXISTS);
    assert_int_equal(put_value(&s, HG_OP_REPLACE, "j", "x", 0).status, HG_STATUS_KEY_ENOENT);
    assert_int_equal(put_value(&s, HG_OP_APPEND, "j", "x", 0).status, HG_STATUS_NOT_STORED);
    assert_int_equal(run(&s, HG_OP_DELETE, "j").status, HG_STATUS_KEY_ENOENT);

    note = begin(&s, HG_OP_SET, "k");
    note->call.item_flags = 1;
    assert_int_equal(finish(&s, note).status, HG_STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(note->value, "flags"));
    note = begin(&s, HG_OP_SET, "k");
    note->call.cas = 5;
    assert_int_equal(finish(&s, note).status, HG_STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(note->value, "CAS"));
    note = begin(&s, HG_OP_GET, "k");
    note->call.row = true;
    assert_int_equal(finish(&s, note).status, HG_STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(note->value, "rows"));
    /* A CAS that no item has asks whether there is none: see rowguard. */
    note = begin(&s, HG_OP_DELETE, "j");
    note->call.cas = UINT64_MAX;
    assert_int_equal(finish(&s, note).status, HG_STATUS_KEY_ENOENT);
    scene_fini(&s);
}

/* What other clients left: it is said, and not changed. */
static void t_strangers(void **state)
{
    (void)state;
    struct scene s;
    scene_launch(&s, NULL);
    scene_start(&s);
    scene_admin(&s, "SET s short");
    scene_admin(&s, "HSET h f v");
    static const enum hg_op ops[] = {HG_OP_GET,    HG_OP_GAT,     HG_OP_INCREMENT,
                                     HG_OP_APPEND, HG_OP_PREPEND, HG_OP_TOUCH};
    for (size_t i = 0; i < HG_COUNT_OF(ops); i++) {
        struct note *note = begin(&s, ops[i], "s");
        assert_int_equal(finish(&s, note).status, HG_STATUS_NOT_SUPPORTED);
        assert_non_null(strstr(note->value, "no item"));
        note = begin(&s, ops[i], "h");
        assert_int_equal(finish(&s, note).status, HG_STATUS_NOT_SUPPORTED);
        assert_non_null(strstr(note->value, "WRONGTYPE"));
    }
    assert_int_equal(put_value(&s, HG_OP_SET, "s", "x", 5).status, HG_STATUS_NOT_SUPPORTED);
    assert_int_equal(put_value(&s, HG_OP_SET, "h", "x", 5).status, HG_STATUS_NOT_SUPPORTED);
    assert_string_equal(scene_admin(&s, "GET s"), "short");
    assert_string_equal(scene_admin(&s, "HGET h f"), "v");
    assert_int_equal(put_value(&s, HG_OP_SET, "h", "x", 0).status, 0);
    expect_stored(&s, "h", "x");
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_semantics),  cmocka_unit_test(t_random_walk_beside_the_model),
        cmocka_unit_test(t_sizes),      cmocka_unit_test(t_many),
        cmocka_unit_test(t_expiry),     cmocka_unit_test(t_layout),
        cmocka_unit_test(t_plain),      cmocka_unit_test(t_large_values_by_reference),
        cmocka_unit_test(t_cas_values), cmocka_unit_test(t_strangers),
    };
    if (!redisd_is_installed())
        return 0;
    struct hg_prng prng = {1};
    pattern = malloc(VALUE_MAX + 8192);
    for (size_t i = 0; i < VALUE_MAX + 8192; i++)
        pattern[i] = (uint8_t)hg_prng_next(&prng);
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    int rc = cmocka_run_group_tests_name("redis_real", tests, NULL, NULL);
    free(pattern);
    return rc;
}
