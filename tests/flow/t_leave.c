// t_leave - connections of a server that is going: each ends between two requests of its client
// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "scene.h"

static void ask(struct scene *s, uint8_t opcode, uint32_t opaque)
{
    client_add_op(&s->client, opcode, opcode == HG_OPCODE_NOOP ? NULL : "k", opaque);
}

static void noop(struct scene *s, uint32_t opaque)
{
    ask(s, HG_OPCODE_NOOP, opaque);
    scene_send(s);
    scene_expect(s, HG_OPCODE_NOOP, 0, opaque);
}

static void leave(struct scene *s)
{
    hg_worker_begin_leave(&s->stage.workers[0]);
    stage_run(&s->stage);
}

static void test_idle(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    noop(&s, 1);
    leave(&s);
    stage_expect_end(&s.stage, &s.client);
    assert_int_equal(stage_sessions(&s.stage), 1); /* reads on for a moment */
    scene_close(&s);
}

/* Whoever has had his last reply for long needs no moment. */
static void test_long_idle(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    noop(&s, 1);
    stage_advance(5000000);
    leave(&s);
    stage_expect_end(&s.stage, &s.client);
    assert_int_equal(stage_sessions(&s.stage), 0);
    scene_close(&s);
}

/* A client that has just connected gets its first request answered, and then the end. */
static void test_young(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    leave(&s);
    stage_expect_nothing(&s.stage, &s.client);
    noop(&s, 1);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

static void test_young_for_too_long(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    leave(&s);
    stage_advance(HG_LEAVE_PATIENCE_US - 1000);
    stage_timer(&s.stage);
    stage_expect_nothing(&s.stage, &s.client);
    stage_advance(1000);
    stage_timer(&s.stage);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* The main thread had accepted it when the end began. */
static void test_late_comer(void **state)
{
    (void)state;
    struct scene s;
    struct client late;
    scene_start(&s);
    leave(&s);
    stage_connect(&s.stage, 0, &late);
    stage_expect_nothing(&s.stage, &late);
    client_add_op(&late, HG_OPCODE_NOOP, NULL, 5);
    assert_true(client_send(&late));
    stage_expect(&s.stage, &late, HG_OPCODE_NOOP, 0, 5);
    stage_expect_end(&s.stage, &late);
    client_close(&late);
    scene_close(&s);
}

static void test_in_flight(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    ask(&s, HG_OPCODE_DELETE, 1);
    ask(&s, HG_OPCODE_NOOP, 2);
    scene_send(&s);
    leave(&s);
    stage_expect_nothing(&s.stage, &s.client);
    /* It is not the end yet: what comes is carried out. */
    ask(&s, HG_OPCODE_NOOP, 3);
    scene_send(&s);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 2);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 3);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* Held for credits: its time is not cut short. */
static void test_held(void **state)
{
    (void)state;
    struct scene s;
    stage_init(&s.stage, 1);
    stage_bucket(&s.stage, "tight", 0, 1);
    s.stage.anonymous_bucket = "tight";
    scene_open(&s);
    s.store->answers = true;
    ask(&s, HG_OPCODE_DELETE, 1);
    scene_send(&s);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    ask(&s, HG_OPCODE_DELETE, 2);
    ask(&s, HG_OPCODE_NOOP, 3);
    scene_send(&s);
    leave(&s);
    stage_expect_nothing(&s.stage, &s.client);
    stage_tick(&s.stage);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 3);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

static void test_job(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add_op(&s.client, HG_OPCODE_STAT, NULL, 1);
    scene_send(&s);
    leave(&s);
    stage_expect_nothing(&s.stage, &s.client);
    hg_job_answer(stage_job(&s.stage));
    scene_expect(&s, HG_OPCODE_STAT, 0, 1);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

static void test_half_a_frame(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    noop(&s, 1);
    ask(&s, HG_OPCODE_NOOP, 2);
    client_send_part(&s.client, 10);
    stage_run(&s.stage);
    leave(&s);
    stage_expect_nothing(&s.stage, &s.client);
    scene_send(&s);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 2);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

static void test_half_a_frame_that_stays_half(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    noop(&s, 1);
    ask(&s, HG_OPCODE_NOOP, 2);
    client_send_part(&s.client, 10);
    stage_run(&s.stage);
    leave(&s);
    stage_advance(HG_LEAVE_PATIENCE_US - 1000);
    stage_timer(&s.stage);
    stage_expect_nothing(&s.stage, &s.client);
    stage_advance(1000);
    stage_timer(&s.stage);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* Read, or not read yet, when the end begins: all of it is answered. */
static void test_many(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 4; turns++) {
        struct scene s;
        scene_start(&s);
        s.store->answers = true;
        noop(&s, 9999);
        for (uint32_t i = 0; i < 1000; i++)
            ask(&s, HG_OPCODE_DELETE, i);
        assert_true(client_send(&s.client));
        for (unsigned t = 0; t < turns; t++)
            stage_turn(&s.stage);
        hg_worker_begin_leave(&s.stage.workers[0]);
        for (uint32_t i = 0; i < 1000; i++)
            scene_expect(&s, HG_OPCODE_DELETE, 0, i);
        stage_expect_end(&s.stage, &s.client);
        scene_close(&s);
    }
}

/* Requests without replies leave no trace at their end; the connection ends all the same. */
static void test_quiet(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    ask(&s, HG_OPCODE_DELETEQ, 1);
    scene_send(&s);
    leave(&s);
    stage_expect_nothing(&s.stage, &s.client);
    fakestore_obey_all(s.store);
    stage_run(&s.stage);
    stage_timer(&s.stage);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* The second half of a drain comes to who is still there. */
static void test_drain_behind_leave(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    ask(&s, HG_OPCODE_DELETE, 1);
    scene_send(&s);
    leave(&s);
    hg_worker_begin_drain(&s.stage.workers[0]);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_long_idle),
        cmocka_unit_test(test_young),
        cmocka_unit_test(test_young_for_too_long),
        cmocka_unit_test(test_late_comer),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_job),
        cmocka_unit_test(test_half_a_frame),
        cmocka_unit_test(test_half_a_frame_that_stays_half),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_drain_behind_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
