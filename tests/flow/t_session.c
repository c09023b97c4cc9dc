// t_session - replies in order, quiet and loud, however the bytes arrive
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "scene.h"

static void test_one_get(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    client_ask(&s.client, HG_OPCODE_GET, "hello", 0x01020304);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, 0, 0x01020304);
    assert_string_equal(reply_text(&reply), "v:hello");
    assert_int_equal(reply.cas, 99);
    assert_int_equal(reply.extras.len, 4);
    assert_int_equal(reply.extras.at[3], 7);
    assert_int_equal(reply.key.len, 0);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_SUCCESS), 1);
    scene_close(&s);
}

/* ---- order ---- */

static void answer_in_some_order(struct fakestore *store, struct hg_prng *dice, bool reverse)
{
    unsigned left;
    while ((left = fakestore_pending(store)) > 0)
        fakestore_obey(
            fakestore_nth(store, reverse ? left - 1 : (unsigned)hg_prng_below(dice, left)));
}

static void test_order_whatever_the_store_does(void **state)
{
    (void)state;
    struct hg_prng dice = {7};
    for (unsigned round = 0; round < 20; round++) {
        struct scene s;
        char key[32];
        scene_start(&s);
        for (uint32_t i = 0; i < 60; i++) {
            snprintf(key, sizeof key, "key%u", i);
            client_add_op(&s.client, i % 3 == 2 ? HG_OPCODE_GETK : HG_OPCODE_GET, key, i);
        }
        scene_send(&s);
        stage_run(&s.stage);
        assert_int_equal(fakestore_pending(s.store), 60);
        answer_in_some_order(s.store, &dice, round == 0);
        for (uint32_t i = 0; i < 60; i++) {
            struct reply reply =
                scene_expect(&s, i % 3 == 2 ? HG_OPCODE_GETK : HG_OPCODE_GET, 0, i);
            snprintf(key, sizeof key, "v:key%u", i);
            assert_string_equal(reply_text(&reply), key);
        }
        stage_expect_nothing(&s.stage, &s.client);
        scene_close(&s);
    }
}

/* Nothing leaves before the first is answered, everything that is ready leaves with it. */
static void test_head_of_line(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GETQ, "b", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "c", 3);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 4);
    client_add_op(&s.client, HG_OPCODE_VERSION, NULL, 5);
    scene_send(&s);
    stage_expect_nothing(&s.stage, &s.client);
    fakestore_say(fakestore_find(s.store, "b"), HG_STATUS_KEY_ENOENT);
    fakestore_obey(fakestore_find(s.store, "c"));
    stage_expect_nothing(&s.stage, &s.client);
    fakestore_obey(fakestore_find(s.store, "a"));
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, 0, 3);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 4);
    struct reply reply = scene_expect(&s, HG_OPCODE_VERSION, 0, 5);
    assert_string_equal(reply_text(&reply), "1.2.3");
    scene_close(&s);
}

/* ---- quiet and loud ---- */

static void test_quiet_misses_are_silent(void **state)
{
    (void)state;
    struct scene s;
    static const uint8_t gets[] = {HG_OPCODE_GETQ, HG_OPCODE_GETKQ, HG_OPCODE_GATQ,
                                   HG_OPCODE_GATKQ};
    static const uint8_t expiry[4] = {0, 0, 0, 60};
    scene_start(&s);
    for (uint32_t i = 0; i < 8; i++) {
        uint8_t opcode = gets[i % 4];
        bool touch = opcode == HG_OPCODE_GATQ || opcode == HG_OPCODE_GATKQ;
        client_add(&s.client, &(struct ask){.opcode = opcode,
                                            .key = i < 4 ? "miss" : "hit",
                                            .opaque = i,
                                            .extras = hg_span(expiry, touch ? 4 : 0)});
    }
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 99);
    scene_send(&s);
    for (unsigned i = 0; i < 4; i++)
        fakestore_say(fakestore_find(s.store, "miss"), HG_STATUS_KEY_ENOENT);
    fakestore_obey_all(s.store);
    for (uint32_t i = 4; i < 8; i++) {
        struct reply reply = scene_expect(&s, gets[i % 4], 0, i);
        assert_string_equal(reply_text(&reply), "v:hit");
        assert_int_equal(reply.key.len, i % 2 == 1 ? 3 : 0);
    }
    scene_expect(&s, HG_OPCODE_NOOP, 0, 99);
    stage_expect_nothing(&s.stage, &s.client);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_MISS), 4);
    scene_close(&s);
}

static void test_quiet_successes_are_silent_and_errors_are_not(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add_set(&s.client, HG_OPCODE_SETQ, "a", "1", 1, 1);
    client_add_set(&s.client, HG_OPCODE_ADDQ, "b", "1", 1, 2);
    client_add_op(&s.client, HG_OPCODE_DELETEQ, "c", 3);
    client_add_op(&s.client, HG_OPCODE_GETQ, "d", 4);
    client_add_op(&s.client, HG_OPCODE_DELETEQ, "e", 5);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 6);
    scene_send(&s);
    fakestore_fault(fakestore_find(s.store, "d"), HG_FAULT_TIMEOUT);
    fakestore_say(fakestore_find(s.store, "c"), HG_STATUS_KEY_ENOENT);
    fakestore_say(fakestore_find(s.store, "b"), HG_STATUS_KEY_EEXISTS);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_ADDQ, HG_STATUS_KEY_EEXISTS, 2);
    scene_expect(&s, HG_OPCODE_DELETEQ, HG_STATUS_KEY_ENOENT, 3);
    scene_expect(&s, HG_OPCODE_GETQ, HG_STATUS_ETMPFAIL, 4);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 6);
    scene_close(&s);
}

static void test_getk_miss_carries_the_key(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add_op(&s.client, HG_OPCODE_GET, "first", 1);
    client_add_op(&s.client, HG_OPCODE_GETK, "missing", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "missing", 3);
    scene_send(&s);
    fakestore_say(fakestore_find(s.store, "missing"), HG_STATUS_KEY_ENOENT);
    fakestore_say(fakestore_find(s.store, "missing"), HG_STATUS_KEY_ENOENT);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    struct reply reply = scene_expect(&s, HG_OPCODE_GETK, HG_STATUS_KEY_ENOENT, 2);
    assert_true(hg_span_is(reply.key, "missing"));
    assert_int_equal(reply.cas, 0);
    assert_int_equal(reply.extras.len, 0);
    reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_KEY_ENOENT, 3);
    assert_int_equal(reply.key.len, 0);
    /* first in the queue, too */
    client_ask(&s.client, HG_OPCODE_GETK, "missing", 4);
    stage_run(&s.stage);
    fakestore_say(fakestore_find(s.store, "missing"), HG_STATUS_KEY_ENOENT);
    reply = scene_expect(&s, HG_OPCODE_GETK, HG_STATUS_KEY_ENOENT, 4);
    assert_true(hg_span_is(reply.key, "missing"));
    scene_close(&s);
}

static void test_counters_and_flags(void **state)
{
    (void)state;
    struct scene s;
    uint8_t extras[20] = {0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 0};
    scene_start(&s);
    client_add(&s.client, &(struct ask){.opcode = HG_OPCODE_INCREMENT,
                                        .key = "n",
                                        .opaque = 1,
                                        .cas = 77,
                                        .extras = hg_span(extras, sizeof extras)});
    client_add(&s.client, &(struct ask){.opcode = HG_OPCODE_SET,
                                        .key = "k",
                                        .opaque = 2,
                                        .cas = 5,
                                        .extras = hg_span("\1\2\3\4\0\0\0\x3c", 8),
                                        .value = HG_SPAN_LIT("value")});
    scene_send(&s);
    struct kept *kept = fakestore_find(s.store, "n");
    assert_int_equal(kept->delta, 5);
    assert_int_equal(kept->initial, 9);
    assert_int_equal(kept->expiry, 256);
    assert_int_equal(kept->cas, 77);
    kept = fakestore_find(s.store, "k");
    assert_int_equal(kept->item_flags, 0x01020304);
    assert_int_equal(kept->expiry, 60);
    assert_int_equal(kept->cas, 5);
    assert_memory_equal(kept->value, "value", 5);
    fakestore_obey_all(s.store);
    struct reply reply = scene_expect(&s, HG_OPCODE_INCREMENT, 0, 1);
    assert_int_equal(reply.value.len, 8);
    assert_int_equal(reply.value.at[7], 42);
    reply = scene_expect(&s, HG_OPCODE_SET, 0, 2);
    assert_int_equal(reply.value.len, 0);
    assert_int_equal(reply.cas, 99);
    scene_close(&s);
}

/* ---- pieces ---- */

/* One of everything: small, odd, too large, unknown, and a NOOP at the end. */
static void add_script(struct client *client)
{
    static const uint8_t junk[300] = {1};
    client_add_op(client, HG_OPCODE_GET, "a", 1);
    client_add_set(client, HG_OPCODE_SET, "b", junk, 30, 2);
    client_add_op(client, HG_OPCODE_GETQ, "c", 3);
    client_add(client, &(struct ask){.opcode = 0x66,
                                     .key = "k",
                                     .opaque = 4,
                                     .extras = hg_span(junk, 3),
                                     .value = hg_span(junk, 9)});
    client_add_set(client, HG_OPCODE_SET, "big", junk, 300, 5); /* over the stage's limit of 256 */
    client_add(client, &(struct ask){.opcode = HG_OPCODE_GET, .opaque = 6}); /* no key */
    client_add_op(client, HG_OPCODE_GETK, "d", 7);
    client_add_op(client, HG_OPCODE_NOOP, NULL, 8);
}

static void check_script(struct scene *s)
{
    scene_expect(s, HG_OPCODE_GET, 0, 1);
    scene_expect(s, HG_OPCODE_SET, 0, 2);
    scene_expect(s, HG_OPCODE_GETQ, 0, 3);
    scene_expect(s, 0x66, HG_STATUS_UNKNOWN_COMMAND, 4);
    scene_expect(s, HG_OPCODE_SET, HG_STATUS_E2BIG, 5);
    scene_expect(s, HG_OPCODE_GET, HG_STATUS_EINVAL, 6);
    struct reply reply = scene_expect(s, HG_OPCODE_GETK, 0, 7);
    assert_true(hg_span_is(reply.key, "d"));
    scene_expect(s, HG_OPCODE_NOOP, 0, 8);
    stage_expect_nothing(&s->stage, &s->client);
}

static void test_split_at_every_byte(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    s.stage.settings.max_value_bytes = 256;
    scene_open(&s);
    s.store->answers = true;
    add_script(&s.client);
    size_t len = s.client.out_len;
    scene_send(&s);
    check_script(&s);
    for (size_t at = 1; at < len; at++) {
        add_script(&s.client);
        client_send_part(&s.client, at);
        stage_run(&s.stage);
        scene_send(&s);
        check_script(&s);
    }
    add_script(&s.client);
    PATIENCE_WHILE(s.client.out_len > 0)
    {
        client_send_part(&s.client, 1);
        stage_turn(&s.stage);
    }
    check_script(&s);
    scene_close(&s);
}

static void test_many_frames_in_one_segment(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    for (uint32_t i = 0; i < 1000; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    assert_true(client_send(&s.client));
    unsigned before = 0;
    PATIENCE_WHILE(before < 1000)
    {
        stage_turn(&s.stage);
        /* a turn's own frames, and once more for those that are left from the turn before */
        assert_in_range(s.store->submits - before, 1, 2 * HG_SESSION_FRAMES_PER_TURN);
        before = s.store->submits;
    }
    for (uint32_t i = 0; i < 1000; i++)
        scene_expect(&s, HG_OPCODE_GET, 0, i);
    stage_expect_nothing(&s.stage, &s.client);
    scene_close(&s);
}

/* ---- large frames ---- */

static uint8_t *pattern(size_t len, unsigned seed)
{
    uint8_t *bytes = malloc(len + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251 + seed);
    return bytes;
}

/* Sets of this size, one behind the other, each piece as large as `piece`, arrive whole. */
static void set_in_pieces(struct scene *s, size_t len, size_t piece)
{
    uint8_t *value[3];
    char key[8];
    for (unsigned i = 0; i < 3; i++) {
        value[i] = pattern(len, i);
        snprintf(key, sizeof key, "k%u", i);
        client_add_set(&s->client, HG_OPCODE_SET, key, value[i], len, i);
    }
    client_add_op(&s->client, HG_OPCODE_NOOP, NULL, 9);
    PATIENCE_WHILE(s->client.out_len > 0)
    {
        client_send_part(&s->client, piece < s->client.out_len ? piece : s->client.out_len);
        stage_turn(&s->stage);
    }
    stage_run(&s->stage);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(key, sizeof key, "k%u", i);
        struct kept *kept = fakestore_find(s->store, key);
        assert_non_null(kept);
        assert_int_equal(kept->value_len, len);
        assert_memory_equal(kept->value, value[i], len);
        fakestore_obey(kept);
        scene_expect(s, HG_OPCODE_SET, 0, i);
        free(value[i]);
    }
    scene_expect(s, HG_OPCODE_NOOP, 0, 9);
}

static void test_sizes_around_each_boundary(void **state)
{
    (void)state;
    struct scene s;
    static const size_t bounds[] = {256, 1024, 4096, 8192, 16384, 65536, 131072};
    scene_start(&s);
    for (unsigned b = 0; b < HG_COUNT_OF(bounds); b++)
        for (int off = -34; off <= 2; off += 2)
            set_in_pieces(&s, (size_t)((int)bounds[b] + off), 3 * bounds[b] + 500);
    set_in_pieces(&s, 20000, 1000);
    set_in_pieces(&s, 70000, 4099);
    set_in_pieces(&s, 1u << 20, 65536);
    set_in_pieces(&s, 1u << 20, 16384 + 33);
    scene_close(&s);
}

static void test_large_value_travels_by_reference(void **state)
{
    (void)state;
    struct scene s;
    uint8_t *value = pattern(300000, 1);
    scene_start(&s);
    client_add_set(&s.client, HG_OPCODE_SET, "k", value, 300000, 1);
    scene_send(&s);
    struct kept *kept = fakestore_find(s.store, "k");
    assert_non_null(kept);
    assert_true(kept->in_blob);
    assert_memory_equal(kept->value, value, 300000);
    fakestore_obey(kept);
    scene_expect(&s, HG_OPCODE_SET, 0, 1);
    free(value);
    scene_close(&s);
}

/* The value of a refused frame is dropped as it comes, never kept. */
static void test_oversized_value_is_skipped(void **state)
{
    (void)state;
    struct scene s;
    size_t len = 3u << 20;
    uint8_t *value = pattern(len, 1);
    scene_start(&s);
    s.store->answers = true;
    client_add_op(&s.client, HG_OPCODE_GET, "before", 1);
    client_add_set(&s.client, HG_OPCODE_SET, "k", value, len, 2);
    client_add_op(&s.client, HG_OPCODE_GET, "after", 3);
    client_send_part(&s.client, 24 + 6 + 24);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    /* The refusal does not wait for the body. */
    struct reply reply = scene_expect(&s, HG_OPCODE_SET, HG_STATUS_E2BIG, 2);
    assert_non_null(strstr(reply_text(&reply), "1048576"));
    PATIENCE_WHILE(!client_send(&s.client))
    {
        stage_turn(&s.stage);
        assert_in_range(s.stage.workers[0].blobs.live_bytes, 0, 70000);
    }
    scene_expect(&s, HG_OPCODE_GET, 0, 3);
    assert_int_equal(s.store->submits, 2);
    free(value);
    scene_close(&s);
}

/* ---- framing that is lost ---- */

static void expect_refused(const uint8_t *bytes, size_t len, int status)
{
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    client_add_op(&s.client, HG_OPCODE_GET, "k", 1);
    client_add_bytes(&s.client, bytes, len);
    client_add_op(&s.client, HG_OPCODE_GET, "unread", 2);
    scene_send(&s);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    if (status >= 0)
        scene_expect(&s, bytes[1], (uint16_t)status, 0x05060708);
    stage_expect_end(&s.stage, &s.client);
    assert_int_equal(s.store->submits, 1);
    scene_close(&s);
}

static void test_lost_framing_closes(void **state)
{
    (void)state;
    uint8_t frame[24] = {0x80, 0x01, 0, 1, 8, 0, 0, 0, 0, 0, 0, 5, 5, 6, 7, 8};
    expect_refused(frame, sizeof frame, HG_STATUS_EINVAL); /* extras + key > body */
    frame[8] = 0x80;
    frame[11] = 0;
    expect_refused(frame, sizeof frame, HG_STATUS_E2BIG);
    frame[8] = frame[9] = frame[10] = frame[11] = 0xff;
    expect_refused(frame, sizeof frame, HG_STATUS_E2BIG);
    expect_refused((const uint8_t *)"get foo\r\n", 9, -1);
    expect_refused((const uint8_t *)"\x16\x03\x01\x02\x00\x01\x00", 7, -1);
}

static void test_quit(void **state)
{
    (void)state;
    for (unsigned quiet = 0; quiet < 2; quiet++) {
        struct scene s;
        scene_start(&s);
        client_add_op(&s.client, HG_OPCODE_GET, "k", 1);
        client_add_op(&s.client, quiet ? HG_OPCODE_QUITQ : HG_OPCODE_QUIT, NULL, 2);
        client_add_op(&s.client, HG_OPCODE_GET, "unread", 3);
        scene_send(&s);
        stage_expect_nothing(&s.stage, &s.client);
        assert_int_equal(s.store->submits, 1);
        fakestore_obey_all(s.store);
        scene_expect(&s, HG_OPCODE_GET, 0, 1);
        if (!quiet)
            scene_expect(&s, HG_OPCODE_QUIT, 0, 2);
        stage_expect_end(&s.stage, &s.client);
        assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_SESSION), 1);
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_get),
        cmocka_unit_test(test_order_whatever_the_store_does),
        cmocka_unit_test(test_head_of_line),
        cmocka_unit_test(test_quiet_misses_are_silent),
        cmocka_unit_test(test_quiet_successes_are_silent_and_errors_are_not),
        cmocka_unit_test(test_getk_miss_carries_the_key),
        cmocka_unit_test(test_counters_and_flags),
        cmocka_unit_test(test_split_at_every_byte),
        cmocka_unit_test(test_many_frames_in_one_segment),
        cmocka_unit_test(test_sizes_around_each_boundary),
        cmocka_unit_test(test_large_value_travels_by_reference),
        cmocka_unit_test(test_oversized_value_is_skipped),
        cmocka_unit_test(test_lost_framing_closes),
        cmocka_unit_test(test_quit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
