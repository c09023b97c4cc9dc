// t_held_credits - requests that wait for credits: held, released, refunded, forgotten
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/dispatch.h"
#include "front/held.h"
#include "tight.h"

/* ---- holding ---- */

static void test_exactly_the_limit(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 7);
    for (uint32_t i = 0; i < 100; i++)
        client_add_op(&s.client, HG_OPCODE_DELETE, "k", i);
    scene_send(&s);
    for (uint32_t i = 0; i < 100; i++) {
        if (i % 7 == 0 && i > 0) {
            stage_expect_nothing(&s.stage, &s.client);
            assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 1);
            assert_int_equal(atomic_load(&lane(&s)->bucket->held_for), HG_CREDIT_HARD_LIMIT);
            assert_int_equal(s.store->submits, i);
            stage_tick(&s.stage);
        }
        scene_expect(&s, HG_OPCODE_DELETE, 0, i);
    }
    assert_int_equal(hg_counter_get(&lane(&s)->num_throttled), 14);
    assert_int_equal(hg_counter_get(&lane(&s)->held_for_hard_limit), 14);
    assert_int_equal(hg_counter_get(&lane(&s)->num_rejected), 0);
    assert_int_equal(hg_counter_get(&lane(&s)->units), 100);
    assert_int_equal(hg_counter_get(&lane(&s)->units_exempt), 0);
    scene_close(&s);
}

/* Nothing behind a held request is looked at, whatever it is. */
static void test_nothing_overtakes(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 1);
    ask_and_get(&s, 1);
    ask(&s, 2);
    client_ask(&s.client, HG_OPCODE_NOOP, NULL, 3);
    client_ask(&s.client, HG_OPCODE_VERSION, NULL, 4);
    stage_expect_nothing(&s.stage, &s.client);
    stage_tick(&s.stage);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 3);
    scene_expect(&s, HG_OPCODE_VERSION, 0, 4);
    scene_close(&s);
}

/* Oldest first, one request of a connection at a time: a deep pipeline gets no more. */
static void test_round_robin_over_connections(void **state)
{
    (void)state;
    struct scene s;
    struct client more[3];
    unsigned got[4] = {0};
    struct reply reply;
    open_tight(&s, 4);
    for (unsigned c = 0; c < 3; c++)
        stage_connect(&s.stage, 0, &more[c]);
    struct client *clients[] = {&s.client, &more[0], &more[1], &more[2]};
    for (unsigned c = 0; c < 4; c++) {
        for (uint32_t i = 0; i < (c == 0 ? 200u : 50u); i++)
            client_add_op(clients[c], HG_OPCODE_DELETE, "k", i);
        client_send(clients[c]);
    }
    for (unsigned slot = 0; slot < 25; slot++) {
        stage_run(&s.stage);
        stage_tick(&s.stage);
    }
    stage_run(&s.stage);
    for (unsigned c = 0; c < 4; c++) {
        client_read(clients[c], SIZE_MAX);
        while (client_take(clients[c], &reply))
            got[c]++;
    }
    for (unsigned c = 1; c < 4; c++)
        assert_in_range(got[c], 24, 27);
    assert_int_equal(got[0] + got[1] + got[2] + got[3], 26 * 4);
    for (unsigned c = 0; c < 3; c++)
        client_close(&more[c]);
    scene_close(&s);
}

static void test_two_workers_share_a_limit(void **state)
{
    (void)state;
    struct stage stage;
    struct client client[2];
    uint32_t got[2] = {0, 0};
    struct reply reply;
    stage_init(&stage, 2);
    stage_bucket(&stage, "tight", 0, 5);
    stage.anonymous_bucket = "tight";
    stage_open(&stage);
    for (unsigned w = 0; w < 2; w++) {
        stage_connect(&stage, w, &client[w]);
        for (uint32_t i = 0; i < 100; i++)
            client_add_op(&client[w], HG_OPCODE_DELETE, "k", i);
        client_send(&client[w]);
    }
    for (unsigned slot = 1; slot <= 20; slot++) {
        for (unsigned n = 0; n < 30; n++) {
            stage_run(&stage);
            for (unsigned w = 0; w < 2; w++)
                if (stage.upstreams[0].stores[w] != NULL)
                    fakestore_obey_all(stage.upstreams[0].stores[w]);
        }
        for (unsigned w = 0; w < 2; w++) {
            client_read(&client[w], SIZE_MAX);
            while (client_take(&client[w], &reply))
                assert_int_equal(reply.opaque, got[w]++);
        }
        assert_int_equal(got[0] + got[1], 5 * slot); /* exactly, and none is left over */
        stage_tick(&stage);
    }
    assert_in_range(got[0], 30, 70);
    for (unsigned w = 0; w < 2; w++)
        client_close(&client[w]);
    stage_close(&stage);
}

static void test_limit_changes_while_held(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 1);
    for (uint32_t i = 1; i <= 51; i++)
        client_add_op(&s.client, HG_OPCODE_DELETE, "k", i);
    scene_send(&s);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    stage_expect_nothing(&s.stage, &s.client);
    hg_credit_bucket_set(&tight(&s)->credit, 0, HG_UNITS_UNLIMITED, false);
    stage_tick(&s.stage);
    for (uint32_t i = 2; i <= 51; i++)
        scene_expect(&s, HG_OPCODE_DELETE, 0, i);
    scene_close(&s);
}

/* ---- units come back ---- */

/* Reads are estimated; what one did not use lets the next go in the same slot. */
static void test_refund_releases(void **state)
{
    (void)state;
    struct scene s;
    static char value[40950];
    open_tight(&s, 12);
    s.store->answers = false;
    client_ask(&s.client, HG_OPCODE_GET, "large", 1);
    stage_run(&s.stage);
    fakestore_give(fakestore_first(s.store), value, sizeof value); /* 10 units, as the next ones */
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_tick(&s.stage);
    client_add_op(&s.client, HG_OPCODE_GET, "small", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "small", 3);
    scene_send(&s);
    assert_int_equal(used(&s), 10);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 1);
    fakestore_obey(fakestore_first(s.store)); /* was 1 unit only */
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    stage_run(&s.stage);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 0);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 3);
    assert_int_equal(used(&s), 2);
    scene_close(&s);
}

/* The same between workers: who is refunded tells those who hold. */
static void test_refund_reaches_the_other_worker(void **state)
{
    (void)state;
    struct stage stage;
    struct client client[2];
    stage_init(&stage, 2);
    stage_bucket(&stage, "tight", 0, 1);
    stage.anonymous_bucket = "tight";
    stage_open(&stage);
    for (unsigned w = 0; w < 2; w++) {
        stage_connect(&stage, w, &client[w]);
        client_ask(&client[w], HG_OPCODE_DELETE, "k", w);
        stage_run(&stage);
    }
    struct fakestore *store = stage.upstreams[0].stores[0];
    assert_int_equal(hg_counter_get(&stage.workers[1].held_now), 1);
    fakestore_fault(fakestore_first(store), HG_FAULT_DOWN);
    stage_expect(&stage, &client[0], HG_OPCODE_DELETE, HG_STATUS_ETMPFAIL, 0);
    stage_run(&stage);
    assert_int_equal(hg_counter_get(&stage.workers[1].held_now), 0);
    fakestore_obey_all(stage.upstreams[0].stores[1]);
    stage_expect(&stage, &client[1], HG_OPCODE_DELETE, 0, 1);
    for (unsigned w = 0; w < 2; w++)
        client_close(&client[w]);
    stage_close(&stage);
}

static struct stage *refunding;

/* In one turn of worker 0: a refund, a whole turn of worker 1, and another refund. */
static void refund_twice(struct fakestore *store)
{
    struct kept *kept = fakestore_first(store);
    if (kept == NULL)
        return;
    fakestore_fault(kept, HG_FAULT_DOWN);
    hg_loop_turn(&refunding->workers[1].loop, false);
    hg_loop_turn(&refunding->workers[1].loop, false);
    fakestore_fault(fakestore_first(store), HG_FAULT_DOWN);
}

static void test_second_refund_of_a_turn(void **state)
{
    (void)state;
    struct stage stage;
    struct client client[2], more;
    stage_init(&stage, 2);
    stage_bucket(&stage, "tight", 0, 2);
    stage.anonymous_bucket = "tight";
    stage_open(&stage);
    refunding = &stage;
    stage_connect(&stage, 0, &client[0]);
    stage_connect(&stage, 1, &client[1]);
    stage_connect(&stage, 1, &more);
    client_ask(&client[0], HG_OPCODE_DELETE, "a", 1);
    client_ask(&client[0], HG_OPCODE_DELETE, "b", 2);
    stage_run(&stage);
    client_ask(&client[1], HG_OPCODE_DELETE, "c", 3);
    client_ask(&more, HG_OPCODE_DELETE, "d", 4);
    stage_run(&stage);
    assert_int_equal(hg_counter_get(&stage.workers[1].held_now), 2);
    stage.upstreams[0].stores[0]->on_send = refund_twice;
    stage_run(&stage);
    assert_int_equal(hg_counter_get(&stage.workers[1].held_now), 0);
    fakestore_obey_all(stage.upstreams[0].stores[1]);
    stage_expect(&stage, &client[1], HG_OPCODE_DELETE, 0, 3);
    stage_expect(&stage, &more, HG_OPCODE_DELETE, 0, 4);
    client_close(&client[0]);
    client_close(&client[1]);
    client_close(&more);
    stage_close(&stage);
}

/* What reached no store costs nothing, however it ended. */
static void test_refused_later_gives_back(void **state)
{
    static const enum hg_fault faults[] = {HG_FAULT_DOWN, HG_FAULT_QUEUE_FULL,
                                           HG_FAULT_KEY_TOO_LONG, HG_FAULT_MEMORY};
    (void)state;
    struct scene s;
    open_tight(&s, 5);
    s.store->answers = false;
    for (unsigned i = 0; i < HG_COUNT_OF(faults); i++) {
        ask(&s, i);
        stage_run(&s.stage);
        assert_int_equal(used(&s), 1);
        fakestore_fault(fakestore_first(s.store), faults[i]);
        assert_int_equal(used(&s), 0);
    }
    /* Refused by the front end after it was charged: it waited for room. */
    s.store->room = 0;
    ask(&s, 8);
    stage_run(&s.stage);
    assert_int_equal(used(&s), 1);
    hg_dispatch_refuse_waiting(stage_session(&s.stage));
    assert_int_equal(used(&s), 0);
    s.store->room = 1;
    ask(&s, 9);
    stage_run(&s.stage);
    fakestore_fault(fakestore_first(s.store), HG_FAULT_TIMEOUT); /* it may have happened */
    assert_int_equal(used(&s), 1);
    assert_int_equal(hg_counter_get(&lane(&s)->units), 1);
    scene_close(&s);
}

/* Released by the tick, the client gone before it was dispatched. */
static void test_gone_between_release_and_dispatch(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 1);
    ask_and_get(&s, 1);
    ask(&s, 2);
    stage_run(&s.stage);
    struct hg_session *session = stage_session(&s.stage);
    assert_int_equal(session->wait, HG_WAIT_CREDITS);
    stage_tick(&s.stage);
    hg_held_pass_all(&s.stage.workers[0]);
    assert_int_equal(session->wait, HG_WAIT_NONE);
    assert_int_equal(used(&s), 1);
    hg_session_close(session);
    assert_int_equal(used(&s), 0);
    stage_run(&s.stage);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_CLIENT_GONE), 1);
    scene_close(&s);
}

/* What a store has been given is charged, whoever reads its answer. */
static void test_gone_while_under_way(void **state)
{
    (void)state;
    struct scene s;
    open_tight(&s, 10);
    s.store->answers = false;
    client_add_op(&s.client, HG_OPCODE_DELETE, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    scene_send(&s);
    hg_session_close(stage_session(&s.stage));
    stage_run(&s.stage);
    assert_int_equal(used(&s), 2);
    assert_int_equal(hg_counter_get(&lane(&s)->units), 2);
    assert_int_equal(hg_counter_get(&lane(&s)->ru), 1);
    assert_int_equal(hg_counter_get(&lane(&s)->wu), 1);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_CLIENT_GONE), 2);
    scene_close(&s);
}

static void test_gone_while_held_leaves_its_turn(void **state)
{
    (void)state;
    struct scene s;
    struct client first, second;
    open_tight(&s, 1);
    stage_connect(&s.stage, 0, &first);
    stage_connect(&s.stage, 0, &second);
    ask_and_get(&s, 1);
    client_ask(&first, HG_OPCODE_DELETE, "k", 2);
    stage_run(&s.stage);
    client_ask(&second, HG_OPCODE_DELETE, "k", 3);
    stage_run(&s.stage);
    client_close(&first);
    stage_run(&s.stage);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 1);
    stage_tick(&s.stage);
    stage_expect(&s.stage, &second, HG_OPCODE_DELETE, 0, 3);
    client_close(&second);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_the_limit),
        cmocka_unit_test(test_nothing_overtakes),
        cmocka_unit_test(test_round_robin_over_connections),
        cmocka_unit_test(test_two_workers_share_a_limit),
        cmocka_unit_test(test_limit_changes_while_held),
        cmocka_unit_test(test_refund_releases),
        cmocka_unit_test(test_refund_reaches_the_other_worker),
        cmocka_unit_test(test_second_refund_of_a_turn),
        cmocka_unit_test(test_refused_later_gives_back),
        cmocka_unit_test(test_gone_between_release_and_dispatch),
        cmocka_unit_test(test_gone_while_under_way),
        cmocka_unit_test(test_gone_while_held_leaves_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
