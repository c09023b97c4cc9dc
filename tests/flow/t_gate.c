// t_gate - tickets on the way of a request: taken and given back, whatever becomes of it
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatescene.h"

/* ---- taken and given back ---- */

static void test_taken_until_answered(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_DELETE, "b", 2);
    client_add_set(&s.client, HG_OPCODE_SET, "c", "1", 1, 3);
    scene_send(&s);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 3);
    assert_int_equal(gate_out(&s.stage, HG_GATE_READ), 1);
    assert_int_equal(gate_out(&s.stage, HG_GATE_WRITE), 2);
    assert_int_equal(fakestore_nth(s.store, 0)->call->ticket & 0xff, 1 + HG_TICKET_READ);
    assert_int_equal(fakestore_nth(s.store, 1)->call->ticket & 0xff, 1 + HG_TICKET_WRITE);
    stage_advance(3000);
    /* Answered before its turn: its reply waits, its tickets do not. */
    stage_turn(&s.stage);
    fakestore_obey(fakestore_nth(s.store, 2));
    assert_int_equal(gate_out(&s.stage, HG_GATE_WRITE), 1);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 2);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
    scene_expect(&s, HG_OPCODE_SET, 0, 3);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "answered"), 1);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_WRITE, "answered"), 2);
    const struct hg_lane *lane = &stage_find(&s.stage, "default")->lanes[0];
    assert_int_equal(hg_counter_get(&lane->tallies[HG_GATE_WRITE].started), 2);
    gate_close(&s);
}

static void test_each_fault_gives_back(void **state)
{
    static const struct {
        enum hg_fault fault;
        uint16_t status;
    } rows[] = {{HG_FAULT_DOWN, 0xff06},        {HG_FAULT_LOST, 0xff07},
                {HG_FAULT_TIMEOUT, 0xff07},     {HG_FAULT_QUEUE_TIMEOUT, 0xff05},
                {HG_FAULT_QUEUE_FULL, 0xff04},  {HG_FAULT_KEY_TOO_LONG, 0x04},
                {HG_FAULT_NOT_SUPPORTED, 0x83}, {HG_FAULT_MEMORY, 0x82}};
    (void)state;
    struct scene s;
    gate_start(&s);
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        client_ask(&s.client, HG_OPCODE_GET, "k", i);
        stage_run(&s.stage);
        assert_int_equal(gate_out(&s.stage, HG_GATE_READ), 1);
        fakestore_fault(fakestore_first(s.store), rows[i].fault);
        assert_int_equal(gate_out(&s.stage, HG_GATE_READ), 0);
        assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 0);
        scene_expect(&s, HG_OPCODE_GET, rows[i].status, i);
    }
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "unanswered"), HG_COUNT_OF(rows));
    gate_close(&s);
}

static void test_store_that_cannot_be_opened(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    struct hg_bucket *bucket = stage_find(&s.stage, "default");
    s.stage.upstreams[1].fails = true;
    bucket->upstream = &s.stage.upstreams[1].upstream;
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_EINTERNAL, 1);
    assert_null(s.stage.workers[0].gates[1]);
    bucket->upstream = &s.stage.upstreams[0].upstream;
    gate_close(&s);
}

/* Given up by a client that goes: waiting and dispatched ones. */
static void test_client_gone(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    stage_connect_tcp(&s.stage, 0, &other);
    client_ask(&other, HG_OPCODE_NOOP, NULL, 0); /* whose reply stays unread: a reset */
    stage_run(&s.stage);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    client_add_set(&other, HG_OPCODE_SET, "b", "1", 1, 1);
    client_add_op(&other, HG_OPCODE_GET, "c", 2);
    client_add_op(&other, HG_OPCODE_GET, "d", 3);
    client_send(&other);
    stage_run(&s.stage);
    assert_int_equal(gate_out(&s.stage, HG_GATE_WRITE), 1);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 1);
    client_close(&other);
    STAGE_UNTIL(&s.stage, stage_sessions(&s.stage) == 1);
    assert_int_equal(gate_out(&s.stage, HG_GATE_WRITE), 0);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 0);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "canceled"), 1);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_CLIENT_GONE), 2);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    gate_close(&s);
}

static void test_half_close(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    client_add_set(&other, HG_OPCODE_SET, "b", "1", 1, 1);
    client_add_op(&other, HG_OPCODE_GET, "c", 2);
    client_add_op(&other, HG_OPCODE_GET, "d", 3);
    client_add_op(&other, HG_OPCODE_NOOP, NULL, 4);
    client_send(&other);
    stage_run(&s.stage);
    client_half_close(&other);
    /* What waits is refused, and what would have to; what is dispatched is answered. */
    STAGE_UNTIL(&s.stage, gate_waiting(&s.stage, HG_GATE_READ) == 0);
    stage_run(&s.stage);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_QUEUE_TIMEOUT), 2);
    fakestore_obey(fakestore_find(s.store, "b"));
    stage_expect(&s.stage, &other, HG_OPCODE_SET, 0, 1);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 2);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 3);
    stage_expect(&s.stage, &other, HG_OPCODE_NOOP, 0, 4);
    client_close(&other);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    gate_close(&s);
}

static void test_bucket_deleted(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_init(&s);
    gate_bucket(&s.stage, "shop");
    gate_open(&s);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    gate_connect(&s.stage, 0, &other);
    client_add_op(&other, HG_OPCODE_SELECT_BUCKET, "shop", 1);
    client_add_set(&other, HG_OPCODE_SET, "b", "1", 1, 2);
    client_add_op(&other, HG_OPCODE_GET, "c", 3);
    client_add_op(&other, HG_OPCODE_NOOP, NULL, 4);
    client_send(&other);
    stage_expect(&s.stage, &other, HG_OPCODE_SELECT_BUCKET, 0, 1);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 1);
    stage_delete(&s.stage, "shop");
    stage_publish(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 0);
    fakestore_obey(fakestore_find(s.store, "b"));
    stage_expect(&s.stage, &other, HG_OPCODE_SET, 0, 2);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_NO_BUCKET, 3);
    stage_expect(&s.stage, &other, HG_OPCODE_NOOP, 0, 4);
    client_close(&other);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_run(&s.stage);
    assert_int_equal(s.stage.retired, 1);
    gate_close(&s);
}

/* Disabled just when it has its ticket: its session has not run yet. */
static void test_bucket_disabled_after_the_grant(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    gate_resize(&s.stage, HG_GATE_READ, 0);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    atomic_store(&stage_find(&s.stage, "default")->state, HG_BUCKET_DISABLED);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_EACCESS, 1);
    atomic_store(&stage_find(&s.stage, "default")->state, HG_BUCKET_ACTIVE);
    gate_close(&s);
}

/* Paused while it waits for its ticket: it is answered at once and is out of the line; whoever
   else waits keeps its place. */
static void test_bucket_paused_in_line(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_init(&s);
    gate_bucket(&s.stage, "shop");
    gate_open(&s);
    stage_connect(&s.stage, 0, &other);
    client_ask(&other, HG_OPCODE_SELECT_BUCKET, "shop", 1);
    stage_expect(&s.stage, &other, HG_OPCODE_SELECT_BUCKET, 0, 1);
    s.store->answers = true;
    gate_resize(&s.stage, HG_GATE_READ, 0);
    client_ask(&s.client, HG_OPCODE_GET, "a", 2);
    client_ask(&other, HG_OPCODE_GET, "a", 3);
    stage_run(&s.stage);
    assert_int_equal(s.store->submits, 0);
    atomic_store(&stage_find(&s.stage, "default")->state, HG_BUCKET_PAUSED);
    stage_publish(&s.stage);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_BUCKET_PAUSED, 2);
    stage_expect_nothing(&s.stage, &other);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_PAUSED), 1);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 3);
    assert_int_equal(s.store->submits, 1);
    atomic_store(&stage_find(&s.stage, "default")->state, HG_BUCKET_ACTIVE);
    client_ask(&s.client, HG_OPCODE_GET, "a", 4);
    scene_expect(&s, HG_OPCODE_GET, 0, 4);
    client_close(&other);
    gate_close(&s);
}

static void test_drain(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "c", 3);
    scene_send(&s);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 1);
    hg_worker_begin_drain(&s.stage.workers[0]);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 0);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 2);
    stage_expect_end(&s.stage, &s.client);
    gate_close(&s);
}

/* A worker that ends with requests in every state. */
static void test_worker_ends(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_add_op(&s.client, HG_OPCODE_DELETE, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "c", 3);
    scene_send(&s);
    s.store->strands = true;
    hg_worker_close(&s.stage.workers[0]);
    gate_check(&s.stage);
    client_close(&s.client);
    stage_close(&s.stage);
}

/* The upstream is taken out of the directory while somebody waits for its tickets, and its tenant
   is still there. */
static void test_store_removed(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    client_ask(&other, HG_OPCODE_GET, "b", 1);
    stage_run(&s.stage);
    s.stage.upstream_count = 0;
    stage_publish(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(s.stage.upstreams[0].freed, 0);
    /* Its only ticket goes to another worker, as it were: the gate has a waiter and none running.
     */
    hg_ticket_force(&gate_holder(&s.stage, HG_GATE_READ)->ticket);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 1);
    hg_gate_poke(&s.stage.front, hg_ticket_put(&gate_holder(&s.stage, HG_GATE_READ)->ticket));
    stage_run(&s.stage);
    /* The old instance waited for it, and closes when it is answered; then there is no store. */
    assert_int_equal(s.stage.upstreams[0].opened, 1);
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 1);
    STAGE_UNTIL(&s.stage, s.stage.upstreams[0].freed == 1);
    client_ask(&other, HG_OPCODE_GET, "c", 2);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_EINTERNAL, 2);
    client_close(&other);
    gate_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_until_answered),
        cmocka_unit_test(test_each_fault_gives_back),
        cmocka_unit_test(test_store_that_cannot_be_opened),
        cmocka_unit_test(test_client_gone),
        cmocka_unit_test(test_half_close),
        cmocka_unit_test(test_bucket_deleted),
        cmocka_unit_test(test_bucket_disabled_after_the_grant),
        cmocka_unit_test(test_bucket_paused_in_line),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_worker_ends),
        cmocka_unit_test(test_store_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
