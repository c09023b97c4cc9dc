// t_redis_real - the redis store against redis-server itself: expiry as it says it, layouts, what
// others left (what every store does alike is in conform.h)
// SPDX-License-Identifier: BSD-3-Clause
#include "redisscene.h"

#include <signal.h>

#include "back/item.h"
#include "base/log.h"

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
        cmocka_unit_test(t_expiry),     cmocka_unit_test(t_layout),    cmocka_unit_test(t_plain),
        cmocka_unit_test(t_cas_values), cmocka_unit_test(t_strangers),
    };
    if (!redisd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("redis_real", tests, NULL, NULL);
}
