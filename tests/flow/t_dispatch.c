// t_dispatch - the way of a request to its store and back: order, room, features, refusals
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frameinfo.h"
#include "scene.h"

static const uint16_t xerror[] = {0x07, 0};
static const uint16_t json[] = {0x07, 0x0b, 0};

static void say_hello(struct scene *s, const uint16_t *codes)
{
    client_add_hello(&s->client, 7777, codes);
    scene_send(s);
    scene_expect(s, HG_OPCODE_HELLO, 0, 7777);
}

/* ---- order ---- */

/* A flush waits for everything before it and holds up everything behind it. */
static void test_flush_is_a_barrier(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 3);
    client_add(
        &s.client,
        &(struct ask){.opcode = HG_OPCODE_FLUSH, .opaque = 4, .extras = hg_span("\0\0\0\x09", 4)});
    client_add_op(&s.client, HG_OPCODE_GET, "c", 5);
    client_add_op(&s.client, HG_OPCODE_FLUSHQ, NULL, 6);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 7);
    scene_send(&s);
    assert_int_equal(s.store->submits, 2);
    fakestore_obey(fakestore_find(s.store, "b"));
    stage_run(&s.stage);
    assert_int_equal(s.store->submits, 2);
    fakestore_obey(fakestore_find(s.store, "a"));
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 3);
    stage_expect_nothing(&s.stage, &s.client);
    assert_int_equal(s.store->submits, 3);
    assert_int_equal(fakestore_first(s.store)->op, HG_OP_FLUSH);
    assert_int_equal(fakestore_first(s.store)->expiry, 9);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_FLUSH, 0, 4);
    stage_run(&s.stage);
    assert_int_equal(s.store->submits, 4);
    fakestore_obey(fakestore_find(s.store, "c"));
    scene_expect(&s, HG_OPCODE_GET, 0, 5);
    stage_expect_nothing(&s.stage, &s.client);
    assert_int_equal(fakestore_first(s.store)->op, HG_OP_FLUSH);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 7);
    /* However often it was looked at, it was one request. */
    assert_int_equal(hg_counter_get(&s.stage.workers[0].opcodes[HG_OPCODE_FLUSH]), 1);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].opcodes[HG_OPCODE_FLUSHQ]), 1);
    assert_int_equal(stage_total(&s.stage), 7);
    scene_close(&s);
}

static void test_flush_waits_for_room(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->room = 0;
    client_add_op(&s.client, HG_OPCODE_FLUSH, NULL, 1);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 2);
    scene_send(&s);
    assert_int_equal(fakestore_waiting(s.store), 1);
    s.store->room = 5;
    fakestore_call_room(fakestore_find(s.store, ""));
    stage_run(&s.stage);
    assert_int_equal(fakestore_pending(s.store), 1);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_FLUSH, 0, 1);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    scene_close(&s);
}

static void test_flush_that_is_not_allowed(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    struct hg_upstream *upstream = &s.stage.upstreams[0].upstream;
    atomic_store(&stage_find(&s.stage, "default")->shared, true);
    atomic_store(&upstream->allow_flush, false);
    client_ask(&s.client, HG_OPCODE_FLUSH, NULL, 1);
    scene_expect(&s, HG_OPCODE_FLUSH, HG_STATUS_NOT_SUPPORTED, 1);
    upstream->flush_is_private = true;
    s.store->answers = true;
    client_ask(&s.client, HG_OPCODE_FLUSH, NULL, 2);
    scene_expect(&s, HG_OPCODE_FLUSH, 0, 2);
    atomic_store(&stage_find(&s.stage, "default")->allow_flush, false);
    client_ask(&s.client, HG_OPCODE_FLUSH, NULL, 3);
    scene_expect(&s, HG_OPCODE_FLUSH, HG_STATUS_NOT_SUPPORTED, 3);
    scene_close(&s);
}

/* The store is told which earlier call of this client for this key is not answered yet. */
static void test_after(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    scene_start(&s);
    stage_connect(&s.stage, 0, &other);
    client_add_set(&s.client, HG_OPCODE_SET, "k", "1", 1, 1);
    client_add_op(&s.client, HG_OPCODE_GET, "other", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 3);
    client_add_op(&s.client, HG_OPCODE_DELETE, "k", 4);
    scene_send(&s);
    client_ask(&other, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    uint64_t first = fakestore_nth(s.store, 0)->serial;
    assert_int_equal(fakestore_nth(s.store, 0)->after, 0);
    assert_int_equal(fakestore_nth(s.store, 1)->after, 0);
    assert_int_equal(fakestore_nth(s.store, 2)->after, first);
    assert_int_equal(fakestore_nth(s.store, 3)->after, fakestore_nth(s.store, 2)->serial);
    assert_int_equal(fakestore_nth(s.store, 4)->after, 0);
    /* Answered out of turn, and so no longer under way. */
    fakestore_obey(fakestore_nth(s.store, 3));
    client_ask(&s.client, HG_OPCODE_GET, "k", 5);
    stage_run(&s.stage);
    assert_int_equal(fakestore_nth(s.store, 4)->after, fakestore_nth(s.store, 2)->serial);
    fakestore_obey_all(s.store);
    stage_run(&s.stage);
    client_ask(&s.client, HG_OPCODE_GET, "k", 6);
    stage_run(&s.stage);
    assert_int_equal(fakestore_first(s.store)->after, 0);
    fakestore_obey_all(s.store);
    client_close(&other);
    scene_close(&s);
}

/* ---- room ---- */

/* The waiting frame is carried out from where it lies, with what lies behind it. */
static void test_room_comes(void **state)
{
    (void)state;
    static char value[40000];
    for (unsigned size = 10; size <= sizeof value; size *= 4) {
        struct scene s;
        scene_start(&s);
        memset(value, 'v', sizeof value);
        s.store->room = 1;
        client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
        client_add_set(&s.client, HG_OPCODE_SET, "b", value, size, 2);
        client_add_op(&s.client, HG_OPCODE_GET, "c", 3);
        scene_send(&s);
        struct kept *kept = fakestore_find(s.store, "b");
        assert_true(kept->waiting);
        fakestore_call_room(kept); /* in vain: it waits again */
        kept = fakestore_find(s.store, "b");
        assert_true(kept->waiting);
        fakestore_obey(fakestore_find(s.store, "a"));
        fakestore_call_room(kept);
        kept = fakestore_find(s.store, "b");
        assert_false(kept->waiting);
        assert_int_equal(kept->value_len, size);
        assert_memory_equal(kept->value, value, size);
        stage_run(&s.stage);
        assert_true(fakestore_find(s.store, "c")->waiting);
        fakestore_obey(kept);
        fakestore_call_room(fakestore_find(s.store, "c"));
        fakestore_obey_all(s.store);
        scene_expect(&s, HG_OPCODE_GET, 0, 1);
        scene_expect(&s, HG_OPCODE_SET, 0, 2);
        scene_expect(&s, HG_OPCODE_GET, 0, 3);
        assert_int_equal(s.store->rooms, 3);
        scene_close(&s);
    }
}

/* The store gives up on it: its frame is dropped, exactly. */
static void test_room_does_not_come(void **state)
{
    (void)state;
    static char value[40000];
    for (unsigned size = 10; size <= sizeof value; size *= 4) {
        struct scene s;
        scene_start(&s);
        say_hello(&s, xerror);
        s.store->room = 1;
        client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
        client_add_set(&s.client, HG_OPCODE_SET, "b", value, size, 2);
        client_add_op(&s.client, HG_OPCODE_GET, "c", 3);
        client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 4);
        scene_send(&s);
        fakestore_fault(fakestore_find(s.store, "b"), HG_FAULT_QUEUE_TIMEOUT);
        stage_expect_nothing(&s.stage, &s.client);
        assert_true(fakestore_find(s.store, "c")->waiting);
        fakestore_fault(fakestore_find(s.store, "c"), HG_FAULT_QUEUE_FULL);
        fakestore_obey_all(s.store);
        scene_expect(&s, HG_OPCODE_GET, 0, 1);
        scene_expect(&s, HG_OPCODE_SET, HG_STATUS_QUEUE_TIMEOUT, 2);
        scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_FULL, 3);
        scene_expect(&s, HG_OPCODE_NOOP, 0, 4);
        stage_expect_nothing(&s.stage, &s.client);
        assert_int_equal(hg_counter_get(&s.stage.workers[0].in_flight), 0);
        scene_close(&s);
    }
}

static void test_refused_in_submit(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.stage.upstreams[1].fails = true;
    stage_find(&s.stage, "default")->upstream = &s.stage.upstreams[1].upstream;
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_EINTERNAL, 1);
    assert_non_null(strstr(reply_text(&reply), "store"));
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_FRONT_ERROR), 1);
    stage_find(&s.stage, "default")->upstream = &s.stage.upstreams[0].upstream;
    scene_close(&s);
}

/* ---- features ---- */

/* What was in force when a request was parsed shapes its reply. */
static void test_hello_behind_a_request(void **state)
{
    (void)state;
    static const uint16_t all[] = {0x07, 0x0b, 0x0f, 0x1a, 0x4711, 0};
    struct scene s;
    scene_start(&s);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_hello(&s.client, 2, all);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 3);
    client_add_hello(&s.client, 4, xerror);
    client_add_op(&s.client, HG_OPCODE_GET, "c", 5);
    scene_send(&s);
    stage_advance(1000);
    stage_turn(&s.stage);
    fakestore_fault(fakestore_find(s.store, "c"), HG_FAULT_DOWN);
    fakestore_fault(fakestore_find(s.store, "b"), HG_FAULT_DOWN);
    fakestore_fault(fakestore_find(s.store, "a"), HG_FAULT_DOWN);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_ETMPFAIL, 1);
    assert_int_equal(reply.magic, 0x81);
    assert_non_null(strstr(reply_text(&reply), "the server of the key is out (server: fake:1)"));
    reply = scene_expect(&s, HG_OPCODE_HELLO, 0, 2);
    assert_int_equal(reply.value.len, 8);
    reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_BACKEND_DOWN, 3);
    assert_int_equal(reply.magic, 0x18);
    assert_string_equal(reply_text(&reply), "{\"error\":{\"context\":\"the server of the key is "
                                            "out\",\"server\":\"fake:1\"}}");
    assert_int_equal(reply.framing.len, 3);
    assert_int_equal(reply.framing.at[0], 0x02);
    uint16_t packed = (uint16_t)(reply.framing.at[1] << 8 | reply.framing.at[2]);
    assert_int_equal(packed, hg_frameinfo_pack_us(1000));
    scene_expect(&s, HG_OPCODE_HELLO, 0, 4);
    reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_BACKEND_DOWN, 5);
    assert_int_equal(reply.magic, 0x81);
    scene_close(&s);
}

static void check_units(const struct reply *reply, int read_units, int write_units)
{
    int found[3] = {0, 0, 0};
    for (size_t at = 0; at + 2 < reply->framing.len; at += 3) {
        assert_int_equal(reply->framing.at[at] & 15, 2);
        unsigned id = reply->framing.at[at] >> 4;
        assert_in_range(id, 1, 2);
        found[id] = reply->framing.at[at + 1] << 8 | reply->framing.at[at + 2];
    }
    assert_int_equal(found[1], read_units);
    assert_int_equal(found[2], write_units);
}

static void test_units_are_reported(void **state)
{
    (void)state;
    static const uint16_t units[] = {0x1a, 0};
    static char value[9000];
    struct scene s;
    scene_start(&s);
    say_hello(&s, units);
    client_add_set(&s.client, HG_OPCODE_SET, "key", value, 2045, 1);
    client_add_set(&s.client, HG_OPCODE_SET, "key", value, 2046, 2);
    client_add_op(&s.client, HG_OPCODE_GETK, "key", 3);
    client_add_op(&s.client, HG_OPCODE_GET, "key", 4);
    client_add_set(&s.client, HG_OPCODE_SETQ, "key", value, 1, 5);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 6);
    scene_send(&s);
    for (unsigned i = 0; i < 2; i++)
        fakestore_obey(fakestore_first(s.store));
    fakestore_give(fakestore_first(s.store), value, 8190);
    fakestore_say(fakestore_first(s.store), HG_STATUS_KEY_ENOENT);
    fakestore_obey(fakestore_first(s.store));
    struct reply reply = scene_expect(&s, HG_OPCODE_SET, 0, 1);
    check_units(&reply, 0, 2);
    reply = scene_expect(&s, HG_OPCODE_SET, 0, 2);
    check_units(&reply, 0, 3);
    reply = scene_expect(&s, HG_OPCODE_GETK, 0, 3);
    assert_int_equal(reply.magic, 0x18);
    assert_true(hg_span_is(reply.key, "key"));
    assert_int_equal(reply.value.len, 8190);
    check_units(&reply, 3, 0);
    reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_KEY_ENOENT, 4);
    check_units(&reply, 1, 0);
    reply = scene_expect(&s, HG_OPCODE_NOOP, 0, 6);
    assert_int_equal(reply.magic, 0x81);
    const struct hg_lane *lane = &stage_find(&s.stage, "default")->lanes[0];
    assert_int_equal(hg_counter_get(&lane->ru), 4);
    assert_int_equal(hg_counter_get(&lane->wu), 6);
    scene_close(&s);
}

/* ---- what a store cannot do ---- */

static void test_faults(void **state)
{
    static const struct {
        enum hg_fault fault;
        uint16_t named, plain;
        enum hg_outcome outcome;
    } rows[] = {
        {HG_FAULT_DOWN, 0xff06, 0x86, HG_OUTCOME_BACKEND_DOWN},
        {HG_FAULT_LOST, 0xff07, 0x86, HG_OUTCOME_BACKEND_LOST},
        {HG_FAULT_TIMEOUT, 0xff07, 0x86, HG_OUTCOME_BACKEND_TIMEOUT},
        {HG_FAULT_QUEUE_TIMEOUT, 0xff05, 0x86, HG_OUTCOME_QUEUE_TIMEOUT},
        {HG_FAULT_QUEUE_FULL, 0xff04, 0x85, HG_OUTCOME_QUEUE_FULL},
        {HG_FAULT_DENIED, 0x84, 0x84, HG_OUTCOME_STORE_ERROR},
        {HG_FAULT_KEY_TOO_LONG, 0x04, 0x04, HG_OUTCOME_INVALID},
        {HG_FAULT_NOT_SUPPORTED, 0x83, 0x83, HG_OUTCOME_UNKNOWN},
        {HG_FAULT_MEMORY, 0x82, 0x82, HG_OUTCOME_FRONT_ERROR},
        {HG_FAULT_INTERNAL, 0x84, 0x84, HG_OUTCOME_STORE_ERROR},
    };
    (void)state;
    for (unsigned named = 0; named < 2; named++)
        for (unsigned i = 0; i < HG_COUNT_OF(rows); i++) {
            struct scene s;
            scene_start(&s);
            if (named)
                say_hello(&s, xerror);
            client_add_op(&s.client, HG_OPCODE_GET, "first", 1);
            client_add_op(&s.client, HG_OPCODE_GETQ, "k", 2);
            scene_send(&s);
            fakestore_fault(fakestore_find(s.store, "k"), rows[i].fault);
            fakestore_fault(fakestore_find(s.store, "first"), rows[i].fault);
            uint16_t status = named ? rows[i].named : rows[i].plain;
            scene_expect(&s, HG_OPCODE_GET, status, 1);
            struct reply reply = scene_expect(&s, HG_OPCODE_GETQ, status, 2);
            assert_int_equal(reply.key.len, 0);
            assert_int_equal(stage_outcome(&s.stage, rows[i].outcome), 2);
            scene_close(&s);
        }
}

static void test_multiget_faults_as_misses(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    atomic_store(&s.stage.upstreams[0].upstream.miss_on_fault, true);
    client_add_op(&s.client, HG_OPCODE_GETKQ, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GETQ, "b", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "c", 3);
    client_add_op(&s.client, HG_OPCODE_DELETEQ, "d", 4);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 5);
    scene_send(&s);
    PATIENCE_WHILE(fakestore_first(s.store) != NULL)
    fakestore_fault(fakestore_first(s.store), HG_FAULT_DOWN);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_ETMPFAIL, 3);
    scene_expect(&s, HG_OPCODE_DELETEQ, HG_STATUS_ETMPFAIL, 4);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 5);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_BACKEND_DOWN), 4);
    scene_close(&s);
}

/* The store's own words are passed on; what it is called is valid JSON whatever it is called. */
static void test_words_of_the_store(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    say_hello(&s, json);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    scene_send(&s);
    fakestore_finish(fakestore_find(s.store, "a"),
                     &(struct hg_result){.status = HG_STATUS_ENOMEM,
                                         .value = HG_SPAN_LIT("\"full\" at 12 of 10")});
    fakestore_finish(fakestore_find(s.store, "b"),
                     &(struct hg_result){.fault = HG_FAULT_DOWN, .server = "unix:/tmp/\"a\\b\""});
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_ENOMEM, 1);
    assert_string_equal(reply_text(&reply),
                        "{\"error\":{\"context\":\"\\\"full\\\" at 12 of 10\"}}");
    reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_BACKEND_DOWN, 2);
    assert_string_equal(reply_text(&reply),
                        "{\"error\":{\"context\":\"the server of the key is out\",\"server\":"
                        "\"unix:/tmp/\\\"a\\\\b\\\"\"}}");
    scene_close(&s);
}

/* ---- the session's counter ---- */

static void test_requests_are_counted(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 2);
    client_add_op(&s.client, 0x55, NULL, 3);
    client_add_op(&s.client, HG_OPCODE_GETQ, "b", 4);
    scene_send(&s);
    assert_int_equal(hg_counter_get(&stage_session(&s.stage)->requests), 4);
    assert_int_equal(stage_total(&s.stage), 4);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush_is_a_barrier),
        cmocka_unit_test(test_flush_waits_for_room),
        cmocka_unit_test(test_flush_that_is_not_allowed),
        cmocka_unit_test(test_after),
        cmocka_unit_test(test_room_comes),
        cmocka_unit_test(test_room_does_not_come),
        cmocka_unit_test(test_refused_in_submit),
        cmocka_unit_test(test_hello_behind_a_request),
        cmocka_unit_test(test_units_are_reported),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_multiget_faults_as_misses),
        cmocka_unit_test(test_words_of_the_store),
        cmocka_unit_test(test_requests_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
