// t_held_refusals - requests for which there are no credits: how they are refused, in which modes
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tight.h"

static const uint16_t xerror[] = {0x07, 0};
static const uint16_t json[] = {0x07, 0x0b, 0};
static const uint16_t non_blocking[] = {0x1b, 0};

/* ---- refusals ---- */

/* Looked at after a tick's decision only. */
static void hold_too_long(struct scene *s, uint8_t opcode, uint32_t opaque)
{
    static const uint8_t expiry[4];
    s->stage.settings.throttle_max_wait_us = 500000;
    hg_credit_bucket_set(&tight(s)->credit, 0, 0, false);
    stage_publish(&s->stage);
    stage_tick(&s->stage);
    stage_run(&s->stage);
    if (opcode == HG_OPCODE_SET || opcode == HG_OPCODE_ADDQ)
        client_add_set(&s->client, opcode, "k", "v", 1, opaque);
    else
        client_add(&s->client,
                   &(struct ask){.opcode = opcode,
                                 .key = "k",
                                 .opaque = opaque,
                                 .extras = hg_span(expiry, opcode == HG_OPCODE_GATKQ ? 4 : 0)});
    client_add_op(&s->client, HG_OPCODE_NOOP, NULL, 99);
    scene_send(s);
    stage_advance(600000);
    stage_expect_nothing(&s->stage, &s->client);
    stage_tick(&s->stage);
}

static void test_held_too_long(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 1);
    say_hello(&s, json);
    hold_too_long(&s, HG_OPCODE_SET, 5);
    struct reply reply = scene_expect(&s, HG_OPCODE_SET, HG_STATUS_THROTTLED_TOO_LONG, 5);
    assert_string_equal(reply_text(&reply),
                        "{\"error\":{\"context\":\"tenant 'tight' is out of credits (hard_limit); "
                        "try again in 1000 ms\",\"limit\":\"hard_limit\",\"tenant\":\"tight\","
                        "\"operation\":\"set\",\"retry_after_ms\":1000}}");
    scene_expect(&s, HG_OPCODE_NOOP, 0, 99);
    assert_int_equal(hg_counter_get(&lane(&s)->num_rejected), 1);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_THROTTLED_TOO_LONG), 1);
    scene_close(&s);
}

/* The deadline of a request holds whatever the longest wait is, and between ticks, too. */
static void test_deadline_while_held(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "tight", 0, 1);
    s.stage.anonymous_bucket = "tight";
    s.stage.settings.request_deadline_us = 300000;
    scene_open(&s);
    s.store->answers = true;
    say_hello(&s, xerror);
    ask_and_get(&s, 1);
    ask(&s, 2);
    client_ask(&s.client, HG_OPCODE_NOOP, NULL, 3);
    stage_run(&s.stage);
    stage_advance(299000);
    stage_timer(&s.stage);
    stage_expect_nothing(&s.stage, &s.client);
    stage_advance(1000);
    stage_timer(&s.stage);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_THROTTLED_TOO_LONG, 2);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 3);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 0);
    stage_tick(&s.stage);
    ask_and_get(&s, 4);
    scene_close(&s);
}

/* For clients that know none of our statuses. */
static void test_reject_status(void **state)
{
    static const struct {
        enum hg_reject reject;
        uint8_t opcode;
        int status; /* -1: silence */
    } rows[] = {
        {HG_REJECT_TMPFAIL, HG_OPCODE_GET, HG_STATUS_ETMPFAIL},
        {HG_REJECT_TMPFAIL, HG_OPCODE_GETQ, HG_STATUS_ETMPFAIL},
        {HG_REJECT_TMPFAIL, HG_OPCODE_SET, HG_STATUS_ETMPFAIL},
        {HG_REJECT_BUSY, HG_OPCODE_GET, HG_STATUS_EBUSY},
        {HG_REJECT_BUSY, HG_OPCODE_DELETEQ, HG_STATUS_EBUSY},
        {HG_REJECT_DEGRADE, HG_OPCODE_GET, HG_STATUS_KEY_ENOENT},
        {HG_REJECT_DEGRADE, HG_OPCODE_GETK, HG_STATUS_KEY_ENOENT},
        {HG_REJECT_DEGRADE, HG_OPCODE_GETQ, -1},
        {HG_REJECT_DEGRADE, HG_OPCODE_GATKQ, -1},
        {HG_REJECT_DEGRADE, HG_OPCODE_SET, HG_STATUS_NOT_STORED},
        {HG_REJECT_DEGRADE, HG_OPCODE_ADDQ, HG_STATUS_NOT_STORED},
        {HG_REJECT_DEGRADE, HG_OPCODE_DELETE, HG_STATUS_ETMPFAIL},
    };
    (void)state;
    for (unsigned i = 0; i < HG_COUNT_OF(rows); i++) {
        struct scene s;
        open_tight(&s, 1);
        atomic_store(&tight(&s)->reject_status, (int)rows[i].reject);
        hold_too_long(&s, rows[i].opcode, 5);
        if (rows[i].status >= 0) {
            struct reply reply = scene_expect(&s, rows[i].opcode, (uint16_t)rows[i].status, 5);
            assert_int_equal(reply.key.len, rows[i].opcode == HG_OPCODE_GETK ? 1 : 0);
            assert_non_null(strstr(reply_text(&reply), "retry_after_ms: 1000"));
        }
        scene_expect(&s, HG_OPCODE_NOOP, 0, 99);
        assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_THROTTLED_TOO_LONG), 1);
        scene_close(&s);
    }
}

static void test_non_blocking(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 1);
    say_hello(&s, non_blocking);
    ask_and_get(&s, 1);
    stage_advance(250000);
    ask(&s, 2);
    struct reply reply = scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_EWOULD_THROTTLE, 2);
    assert_string_equal(reply_text(&reply), "{\"next_tick_us\":750000}");
    client_ask(&s.client, HG_OPCODE_NOOP, NULL, 3);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 3);
    stage_tick(&s.stage);
    ask_and_get(&s, 4);
    assert_int_equal(hg_counter_get(&lane(&s)->num_throttled), 0);
    assert_int_equal(hg_counter_get(&lane(&s)->num_rejected), 1);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_THROTTLED), 1);
    scene_close(&s);
}

static void test_impersonated_is_never_held(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 1);
    stage_user(&s.stage, "ann", "tight", HG_PRIVILEGES_ALL);
    ask_and_get(&s, 1);
    client_add(&s.client, &(struct ask){.opcode = HG_OPCODE_GET,
                                        .key = "k",
                                        .opaque = 2,
                                        .framing = HG_SPAN_LIT("\x43"
                                                               "ann")});
    scene_send(&s);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_EWOULD_THROTTLE, 2);
    assert_non_null(strstr(reply_text(&reply), "next_tick_us"));
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 0);
    scene_close(&s);
}

/* ---- modes ---- */

static void test_observe(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 2);
    atomic_store(&tight(&s)->credit_mode, HG_MODE_OBSERVE);
    for (uint32_t i = 0; i < 5; i++)
        ask_and_get(&s, i);
    assert_int_equal(hg_counter_get(&lane(&s)->would_throttle), 3);
    assert_int_equal(hg_counter_get(&lane(&s)->num_throttled), 0);
    assert_int_equal(used(&s), 5);
    scene_close(&s);
}

static void test_off(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 2);
    atomic_store(&tight(&s)->credit_mode, HG_MODE_OFF);
    for (uint32_t i = 0; i < 5; i++)
        ask_and_get(&s, i);
    assert_int_equal(hg_counter_get(&lane(&s)->would_throttle), 0);
    assert_int_equal(used(&s), 0);
    assert_int_equal(hg_counter_get(&lane(&s)->wu), 5);
    scene_close(&s);
}

static void test_mode_changes_while_held(void **state)
{
    (void)state;
    for (enum hg_mode mode = HG_MODE_OFF; mode <= HG_MODE_OBSERVE; mode++) {
        struct scene s;
        open_tight(&s, 1);
        ask_and_get(&s, 1);
        client_add_op(&s.client, HG_OPCODE_DELETE, "k", 2);
        client_add_op(&s.client, HG_OPCODE_DELETE, "k", 3);
        client_add_op(&s.client, HG_OPCODE_DELETE, "k", 4);
        scene_send(&s);
        stage_expect_nothing(&s.stage, &s.client);
        atomic_store(&tight(&s)->credit_mode, (int)mode);
        stage_tick(&s.stage);
        for (uint32_t i = 2; i < 5; i++)
            scene_expect(&s, HG_OPCODE_DELETE, 0, i);
        assert_int_equal(used(&s), mode == HG_MODE_OFF ? 0 : 3);
        scene_close(&s);
    }
}

static void test_unthrottled(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "tight", 0, 1);
    s.stage.anonymous_bucket = "tight";
    s.stage.anonymous_privileges = HG_PRIVILEGES_ALL;
    scene_open(&s);
    s.store->answers = true;
    for (uint32_t i = 0; i < 5; i++)
        ask_and_get(&s, i);
    assert_int_equal(used(&s), 5);
    assert_int_equal(hg_counter_get(&lane(&s)->num_throttled), 0);
    assert_int_equal(hg_counter_get(&lane(&s)->wu), 0); /* Unmetered: charged, not reported */
    assert_int_equal(hg_counter_get(&lane(&s)->units), 5);
    scene_close(&s);
}

/* ---- the bucket ends while its requests wait ---- */

static void end_while_waiting(bool room, enum hg_bucket_state end)
{
    static const uint16_t statuses[] = {[HG_BUCKET_PAUSED] = HG_STATUS_BUCKET_PAUSED,
                                        [HG_BUCKET_DISABLED] = HG_STATUS_EACCESS,
                                        [HG_BUCKET_ORPHAN] = HG_STATUS_BUCKET_PAUSED,
                                        [HG_BUCKET_DELETED] = HG_STATUS_NO_BUCKET};
    static const enum hg_outcome outcomes[] = {[HG_BUCKET_PAUSED] = HG_OUTCOME_PAUSED,
                                               [HG_BUCKET_DISABLED] = HG_OUTCOME_DISABLED,
                                               [HG_BUCKET_ORPHAN] = HG_OUTCOME_PAUSED,
                                               [HG_BUCKET_DELETED] = HG_OUTCOME_NO_BUCKET};
    struct scene s;
    struct client other;
    uint16_t status = statuses[end];
    open_tight(&s, room ? HG_UNITS_UNLIMITED : 1);
    stage_connect(&s.stage, 0, &other);
    client_ask(&other, HG_OPCODE_SELECT_BUCKET, "default", 1);
    stage_expect(&s.stage, &other, HG_OPCODE_SELECT_BUCKET, 0, 1);
    say_hello(&s, xerror);
    if (room)
        s.store->room = 0;
    else
        ask_and_get(&s, 1);
    ask(&s, 2);
    client_ask(&s.client, HG_OPCODE_NOOP, NULL, 3);
    ask(&s, 4);
    if (room)
        client_ask(&other, HG_OPCODE_DELETE, "other", 5);
    stage_expect_nothing(&s.stage, &s.client);
    if (end != HG_BUCKET_DELETED)
        atomic_store(&tight(&s)->state, (int)end);
    else
        stage_delete(&s.stage, "tight");
    stage_publish(&s.stage);
    scene_expect(&s, HG_OPCODE_DELETE, status, 2);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 3);
    scene_expect(&s, HG_OPCODE_DELETE, status, 4);
    assert_int_equal(stage_outcome(&s.stage, outcomes[end]), 2);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 0);
    /* Others are not concerned. */
    assert_int_equal(fakestore_waiting(s.store), room ? 1 : 0);
    if (room) {
        s.store->room = 1;
        fakestore_call_room(fakestore_find(s.store, "other"));
        stage_expect(&s.stage, &other, HG_OPCODE_DELETE, 0, 5);
    }
    client_close(&other);
    scene_close(&s);
    if (end == HG_BUCKET_DELETED)
        assert_int_equal(s.stage.retired, 2); /* it, and the stage's own at the end */
}

/* Deleted, and the worker does not know yet: what the tick lets go is not carried out any more. */
static void test_deleted_before_it_is_known(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 1);
    ask_and_get(&s, 1);
    ask(&s, 2);
    stage_run(&s.stage);
    atomic_store(&tight(&s)->state, HG_BUCKET_DELETED);
    stage_tick(&s.stage);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_NO_BUCKET, 2);
    assert_int_equal(used(&s), 0);
    assert_int_equal(s.store->submits, 1);
    ask(&s, 3);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_NO_BUCKET, 3);
    scene_close(&s);
}

static void test_ended_while_held(void **state)
{
    (void)state;
    for (int end = HG_BUCKET_PAUSED; end <= HG_BUCKET_DELETED; end++)
        end_while_waiting(false, (enum hg_bucket_state)end);
}

static void test_ended_while_waiting_for_room(void **state)
{
    (void)state;
    for (int end = HG_BUCKET_PAUSED; end <= HG_BUCKET_DELETED; end++)
        end_while_waiting(true, (enum hg_bucket_state)end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_too_long),
        cmocka_unit_test(test_deadline_while_held),
        cmocka_unit_test(test_reject_status),
        cmocka_unit_test(test_non_blocking),
        cmocka_unit_test(test_impersonated_is_never_held),
        cmocka_unit_test(test_observe),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_mode_changes_while_held),
        cmocka_unit_test(test_unthrottled),
        cmocka_unit_test(test_deleted_before_it_is_known),
        cmocka_unit_test(test_ended_while_held),
        cmocka_unit_test(test_ended_while_waiting_for_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
