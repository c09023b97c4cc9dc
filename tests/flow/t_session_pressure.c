// t_session_pressure - back-pressure: windows, slow readers, and the memory of a session
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "scene.h"

#define HIGH (256u << 10)

static uint8_t *pattern(size_t len, unsigned seed)
{
    uint8_t *bytes = malloc(len + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251 + seed);
    return bytes;
}

/* ---- the window ---- */

static void test_pipeline_deeper_than_the_window(void **state)
{
    (void)state;
    struct scene s;
    uint32_t sent = 0, got = 0;
    struct reply reply;
    scene_start(&s);
    PATIENCE_WHILE(got < 5000)
    {
        for (; sent < 5000 && sent < got + 2500; sent++)
            client_add_op(&s.client, HG_OPCODE_GET, "k", sent);
        client_send(&s.client);
        stage_run(&s.stage);
        assert_in_range(fakestore_pending(s.store), s.store->done < 5000, HG_SESSION_QUEUE_MAX);
        for (unsigned n = 0; n < 40 && fakestore_first(s.store) != NULL; n++)
            fakestore_obey(fakestore_first(s.store));
        client_read(&s.client, SIZE_MAX);
        while (client_take(&s.client, &reply))
            assert_int_equal(reply.opaque, got++);
        stage_run(&s.stage);
    }
    assert_int_equal(s.store->submits, 5000);
    scene_close(&s);
}

/* Replies were large, so the window is narrow: a request that waits is a part of it and must not
   be shut out by itself. */
static void wait_after_large_reply(bool for_credits)
{
    struct scene s;
    uint8_t *value = pattern(1u << 20, 1);
    scene_init(&s);
    scene_open(&s);
    client_ask(&s.client, HG_OPCODE_GET, "large", 1);
    stage_run(&s.stage);
    fakestore_give(fakestore_find(s.store, "large"), value, 1u << 20);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, 0, 1);
    assert_memory_equal(reply.value.at, value, 1u << 20);
    if (for_credits) {
        hg_credit_bucket_set(&stage_find(&s.stage, "default")->credit, 0, 1, false);
        stage_tick(&s.stage);
        stage_run(&s.stage);
        s.store->answers = true;
        client_ask(&s.client, HG_OPCODE_DELETE, "a", 2);
        client_ask(&s.client, HG_OPCODE_DELETE, "b", 3);
        scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
        stage_expect_nothing(&s.stage, &s.client);
        stage_tick(&s.stage);
    } else {
        s.store->room = 0;
        client_ask(&s.client, HG_OPCODE_DELETE, "b", 3);
        stage_expect_nothing(&s.stage, &s.client);
        s.store->room = 1;
        s.store->answers = true;
        fakestore_call_room(fakestore_find(s.store, "b"));
    }
    scene_expect(&s, HG_OPCODE_DELETE, 0, 3);
    free(value);
    scene_close(&s);
}

static void test_room_after_a_large_reply(void **state)
{
    (void)state;
    wait_after_large_reply(false);
}

static void test_credits_after_a_large_reply(void **state)
{
    (void)state;
    wait_after_large_reply(true);
}

/* However small the replies were, the next may be large: no more are under way than the formula of
   session.h says. */
static void test_window_after_small_replies(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    for (uint32_t i = 0; i < 2000; i++)
        client_add_op(&s.client, HG_OPCODE_DELETE, "k", i);
    scene_send(&s);
    for (uint32_t i = 0; i < 2000; i++)
        scene_expect(&s, HG_OPCODE_DELETE, 0, i);
    s.store->answers = false;
    for (uint32_t i = 0; i < 2000; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    scene_send(&s);
    assert_in_range(fakestore_pending(s.store), HIGH / HG_SESSION_REPLY_GUESS,
                    HIGH / HG_SESSION_REPLY_GUESS + 1);
    s.store->answers = true;
    fakestore_obey_all(s.store);
    for (uint32_t i = 0; i < 2000; i++)
        scene_expect(&s, HG_OPCODE_GET, 0, i);
    scene_close(&s);
}

static void test_window_follows_large_replies(void **state)
{
    (void)state;
    struct scene s;
    uint8_t *value = pattern(64u << 10, 1);
    unsigned first = HIGH / HG_SESSION_REPLY_GUESS + 1;
    scene_start(&s);
    for (uint32_t i = 0; i < 200; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    scene_send(&s);
    assert_int_equal(fakestore_pending(s.store), first);
    for (uint32_t i = 0; i < 200; i++) {
        fakestore_give_blob(fakestore_first(s.store), value, 64u << 10);
        struct reply reply = scene_expect(&s, HG_OPCODE_GET, 0, i);
        assert_memory_equal(reply.value.at, value, 64u << 10);
        if (i >= first && i < 190)
            assert_in_range(fakestore_pending(s.store), 1, HIGH / (64u << 10) + 1);
    }
    free(value);
    scene_close(&s);
}

/* ---- a reader that does not read ---- */

enum way { COPIED, BLOB, VIEW };
static const size_t large = 40000;
static enum way way_of_all;
static uint8_t *large_value;

static void give_large(struct fakestore *store, struct kept *kept)
{
    (void)store;
    if (way_of_all == COPIED)
        fakestore_give(kept, large_value, large);
    else if (way_of_all == BLOB)
        fakestore_give_blob(kept, large_value, large);
    else
        fakestore_give_view(kept, large_value, large);
}

static void slow_reader(enum way way)
{
    struct scene s;
    const unsigned count = 100;
    way_of_all = way;
    large_value = pattern(large, 5);
    scene_start(&s);
    s.store->on_submit = give_large;
    for (uint32_t i = 0; i < count; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    scene_send(&s);
    struct hg_session *session = stage_session(&s.stage);
    unsigned stopped_at = s.store->submits;
    assert_in_range(stopped_at, 1, count - 1);
    assert_in_range(session->out.bytes, 1, HIGH + large + 300);
    /* Reading stops at twice the high water in blocks; the last one may go beyond. */
    assert_in_range(session->out.held_bytes, session->out.bytes, 2 * HIGH + 3 * large);
    assert_in_range(s.stage.workers[0].blobs.live_bytes, session->out.bytes, 2 * HIGH + 3 * large);
    assert_int_equal(session->out.views, 0);
    assert_in_range(hg_counter_get(&s.stage.workers[0].paused_for_output), 1, 4);
    stage_run(&s.stage);
    assert_int_equal(s.store->submits, stopped_at);
    size_t most = 0;
    struct reply reply;
    for (uint32_t i = 0; i < count;) {
        client_read(&s.client, 10000);
        stage_run(&s.stage);
        if (session->out.held_bytes > most)
            most = session->out.held_bytes;
        while (client_take(&s.client, &reply)) {
            assert_int_equal(reply.opaque, i++);
            assert_int_equal(reply.value.len, large);
            assert_memory_equal(reply.value.at, large_value, large);
        }
    }
    assert_in_range(most, 1, 2 * HIGH + 3 * large);
    assert_int_equal(s.store->submits, count);
    stage_run(&s.stage);
    assert_int_equal(s.stage.workers[0].blobs.live_bytes, 0);
    free(large_value);
    scene_close(&s);
}

static void test_slow_reader_of_copies(void **state)
{
    (void)state;
    slow_reader(COPIED);
}

static void test_slow_reader_of_blobs(void **state)
{
    (void)state;
    slow_reader(BLOB);
}

static void test_slow_reader_of_views(void **state)
{
    (void)state;
    slow_reader(VIEW);
}

/* Half a view is sent, the rest must have been copied before the store takes it away. */
static void test_view_larger_than_the_socket(void **state)
{
    (void)state;
    struct scene s;
    size_t len = 1u << 20;
    uint8_t *value = pattern(len, 3);
    scene_start(&s);
    for (uint32_t i = 0; i < 3; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    scene_send(&s);
    fakestore_give_view(fakestore_nth(s.store, 1), value, len);
    fakestore_give_view(fakestore_nth(s.store, 0), value, len);
    stage_run(&s.stage);
    fakestore_give_view(fakestore_nth(s.store, 0), value, len);
    for (uint32_t i = 0; i < 3; i++) {
        struct reply reply;
        PATIENCE_WHILE(!client_take(&s.client, &reply))
        {
            stage_run(&s.stage);
            client_read(&s.client, 50000);
        }
        assert_int_equal(reply.opaque, i);
        assert_int_equal(reply.value.len, len);
        assert_memory_equal(reply.value.at, value, len);
    }
    free(value);
    scene_close(&s);
}

/* Large replies that overtook the first wait by reference. */
static void test_kept_replies_share_their_values(void **state)
{
    (void)state;
    struct scene s;
    uint8_t *value = pattern(100000, 9);
    scene_start(&s);
    for (uint32_t i = 0; i < 5; i++)
        client_add_op(&s.client, HG_OPCODE_GETK, "k", i);
    scene_send(&s);
    for (unsigned i = 0; i < 4; i++)
        fakestore_give_blob(fakestore_nth(s.store, 1), value, 100000);
    stage_expect_nothing(&s.stage, &s.client);
    assert_in_range(s.stage.workers[0].blobs.live_bytes, 400000, 420000);
    fakestore_give_blob(fakestore_nth(s.store, 0), value, 100000);
    for (uint32_t i = 0; i < 5; i++) {
        struct reply reply;
        PATIENCE_WHILE(!client_take(&s.client, &reply))
        {
            stage_run(&s.stage);
            client_read(&s.client, SIZE_MAX);
        }
        assert_int_equal(reply.opaque, i);
        assert_true(hg_span_is(reply.key, "k"));
        assert_memory_equal(reply.value.at, value, 100000);
    }
    free(value);
    scene_close(&s);
}

/* ---- a writer that does not stop ---- */

/* While its request waits a session keeps no more than one read of it. */
static void test_waiting_session_does_not_read_on(void **state)
{
    (void)state;
    struct scene s;
    uint8_t *value = pattern(1000, 1);
    scene_start(&s);
    s.store->room = 0;
    for (uint32_t i = 0; i < 3000; i++)
        client_add_set(&s.client, HG_OPCODE_SET, "k", value, 1000, i);
    PATIENCE_WHILE(client_send(&s.client) == false &&
                   stage_session(&s.stage)->worker->bytes_read < 60000)
    stage_run(&s.stage);
    for (unsigned n = 0; n < 50; n++) {
        client_send(&s.client);
        stage_run(&s.stage);
    }
    assert_true(s.client.out_len > 0);
    assert_in_range(s.stage.workers[0].blobs.live_bytes, 1, 90000);
    s.store->room = SIZE_MAX;
    s.store->answers = true;
    fakestore_call_room(fakestore_find(s.store, "k"));
    scene_send(&s);
    for (uint32_t i = 0; i < 3000; i++)
        scene_expect(&s, HG_OPCODE_SET, 0, i);
    free(value);
    scene_close(&s);
}

static void test_part_of_a_frame_costs_one_frame(void **state)
{
    (void)state;
    struct scene s;
    size_t len = 1u << 20;
    uint8_t *value = pattern(len, 1);
    scene_start(&s);
    client_add_set(&s.client, HG_OPCODE_SET, "k", value, len, 1);
    PATIENCE_WHILE(s.client.out_len > 100)
    {
        client_send_part(&s.client, s.client.out_len > 30100 ? 30000 : s.client.out_len - 100);
        stage_run(&s.stage);
        assert_in_range(s.stage.workers[0].blobs.live_bytes, 0, len + 200);
    }
    scene_send(&s);
    struct kept *kept = fakestore_find(s.store, "k");
    assert_memory_equal(kept->value, value, len);
    fakestore_obey(kept);
    scene_expect(&s, HG_OPCODE_SET, 0, 1);
    assert_int_equal(s.stage.workers[0].blobs.live_bytes, 0);
    free(value);
    scene_close(&s);
}

static void test_idle_session_owns_no_buffer(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    for (uint32_t i = 0; i < 300; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    scene_send(&s);
    for (uint32_t i = 0; i < 300; i++)
        scene_expect(&s, HG_OPCODE_GET, 0, i);
    struct hg_session *session = stage_session(&s.stage);
    assert_null(session->in);
    assert_null(session->out.first);
    assert_int_equal(s.stage.workers[0].blobs.live_bytes, 0);
    assert_int_equal(s.stage.workers[0].requests.borrowed, 0);
    scene_close(&s);
}

/* ---- no memory for a reply ---- */

/* What was lost is not passed over in silence, even when nothing else is queued. */
static void test_broken_output_closes(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    stage_session(&s.stage)->out.broken = true; /* as a failed allocation leaves it */
    fakestore_obey_all(s.store);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_deeper_than_the_window),
        cmocka_unit_test(test_room_after_a_large_reply),
        cmocka_unit_test(test_credits_after_a_large_reply),
        cmocka_unit_test(test_window_after_small_replies),
        cmocka_unit_test(test_window_follows_large_replies),
        cmocka_unit_test(test_slow_reader_of_copies),
        cmocka_unit_test(test_slow_reader_of_blobs),
        cmocka_unit_test(test_slow_reader_of_views),
        cmocka_unit_test(test_view_larger_than_the_socket),
        cmocka_unit_test(test_kept_replies_share_their_values),
        cmocka_unit_test(test_waiting_session_does_not_read_on),
        cmocka_unit_test(test_part_of_a_frame_costs_one_frame),
        cmocka_unit_test(test_idle_session_owns_no_buffer),
        cmocka_unit_test(test_broken_output_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
