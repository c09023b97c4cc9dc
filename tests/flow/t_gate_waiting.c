// t_gate_waiting - requests that wait for a ticket: their order, their bounds, and other sizes
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatescene.h"

/* ---- waiting ---- */

static void test_holds_up_what_is_behind(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    client_add_op(&s.client, HG_OPCODE_DELETE, "c", 3);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 4);
    scene_send(&s);
    assert_int_equal(s.store->submits, 1);
    assert_true(atomic_load(&gate_share(&s.stage)->backlog) == 1);
    client_ask(&other, HG_OPCODE_DELETE, "d", 1);
    client_ask(&other, HG_OPCODE_NOOP, NULL, 2);
    stage_run(&s.stage);
    fakestore_obey(fakestore_find(s.store, "d"));
    stage_expect(&s.stage, &other, HG_OPCODE_DELETE, 0, 1);
    stage_expect(&s.stage, &other, HG_OPCODE_NOOP, 0, 2);
    assert_null(fakestore_find(s.store, "b"));
    stage_advance(7000);
    fakestore_obey(fakestore_find(s.store, "a"));
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    assert_int_equal(s.store->submits, 4);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 3);
    scene_expect(&s, HG_OPCODE_NOOP, 0, 4);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "added"), 1);
    client_close(&other);
    gate_close(&s);
}

/* While there are plenty of ingress tickets, they come from the worker's purse, and no tenant is
   charged for them. When there are no longer plenty, what is in the purse goes back. */
static void test_ingress_tickets_of_plenty_are_not_charged(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    const struct hg_lane *lane = &stage_find(&s.stage, "default")->lanes[0];
    struct hg_gate_holder *ingress = gate_holder(&s.stage, HG_GATE_INGRESS);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 1);
    assert_int_equal(hg_ticket_out(&ingress->ticket), HG_TICKET_LOT);
    assert_int_equal(lane->ingress.out, 0);
    gate_connect(&s.stage, 0, &other); // its handshake takes one from the purse, and puts it back
    gate_resize(&s.stage, HG_GATE_INGRESS, 2);
    hg_gates_publish(&s.stage.workers[0]);
    assert_int_equal(hg_ticket_out(&ingress->ticket), 1);
    client_ask(&other, HG_OPCODE_GET, "b", 2);
    stage_run(&s.stage);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 2);
    assert_int_equal(lane->ingress.out, 1);
    gate_resize(&s.stage, HG_GATE_INGRESS, 1000000);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 2);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 0);
    assert_int_equal(hg_ticket_out(&ingress->ticket), 1); // of the first, in the purse
    assert_int_equal(lane->ingress.out, 0);
    client_close(&other);
    gate_close(&s);
}

/* Who waits when there are no longer plenty gets what was in the purse. */
static void test_a_purse_goes_to_who_waits(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    gate_resize(&s.stage, HG_GATE_INGRESS, 2);
    gate_connect(&s.stage, 0, &other);
    client_ask(&other, HG_OPCODE_GET, "b", 2);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_INGRESS), 1);
    hg_gates_publish(&s.stage.workers[0]);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_INGRESS), 0);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 2);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 2);
    client_close(&other);
    gate_close(&s);
}

/* An ingress ticket is waited for in the same way, and the execution ticket only with it. */
static void test_ingress_first(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    gate_resize(&s.stage, HG_GATE_INGRESS, 1);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_DELETE, "b", 2);
    scene_send(&s);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_INGRESS), 1);
    assert_int_equal(gate_out(&s.stage, HG_GATE_WRITE), 0);
    /* What waits before the gates is no backlog of the upstream. */
    assert_int_equal(atomic_load(&gate_share(&s.stage)->backlog), 0);
    gate_resize(&s.stage, HG_GATE_WRITE, 0);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    /* From one line to the next, with one ticket. */
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_INGRESS), 0);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 1);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_WRITE), 1);
    gate_resize(&s.stage, HG_GATE_WRITE, 1);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
    atomic_store(&s.stage.front.ingress_enabled, false);
    gate_resize(&s.stage, HG_GATE_INGRESS, 0);
    client_ask(&s.client, HG_OPCODE_GET, "c", 3);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 3);
    gate_close(&s);
}

#define CROWD 10

/* First in, first out within a tenant; tenants in turn by ticket time, however many of one wait
   before. */
static void test_order(void **state)
{
    static const char *const keys[CROWD] = {"d0", "d1", "d2", "d3", "d4",
                                            "d5", "d6", "d7", "s8", "s9"};
    static const char *const turns[CROWD] = {"d0", "s8", "d1", "s9", "d2",
                                             "d3", "d4", "d5", "d6", "d7"};
    (void)state;
    struct scene s;
    struct client crowd[CROWD];
    gate_init(&s);
    gate_bucket(&s.stage, "shop");
    gate_open(&s);
    for (unsigned i = 0; i < CROWD; i++) {
        s.stage.anonymous_bucket = i < 8 ? "default" : "shop";
        gate_connect(&s.stage, 0, &crowd[i]);
    }
    gate_resize(&s.stage, HG_GATE_READ, 0);
    for (unsigned i = 0; i < CROWD; i++) {
        client_ask(&crowd[i], HG_OPCODE_GET, keys[i], i);
        stage_run(&s.stage);
    }
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), CROWD);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    for (unsigned i = 0; i < CROWD; i++) {
        stage_run(&s.stage);
        assert_int_equal(fakestore_pending(s.store), 1);
        assert_string_equal(fakestore_first(s.store)->key, turns[i]);
        gate_wait(&s.stage, turns[i][0] == 'd' ? 1000 : 1001);
        fakestore_obey(fakestore_first(s.store));
    }
    for (unsigned i = 0; i < CROWD; i++) {
        stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
        client_close(&crowd[i]);
    }
    gate_close(&s);
}

static void test_queue_bound(void **state)
{
    (void)state;
    struct scene s;
    struct client a, b;
    gate_start(&s);
    gate_connect(&s.stage, 0, &a);
    stage_connect(&s.stage, 0, &b); /* it knows no status from 0xff00 on */
    gate_resize(&s.stage, HG_GATE_READ, 0);
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->max_waiting, 0);
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_FULL, 1);
    assert_non_null(strstr(reply_text(&reply), "read ticket of upstream 'up0'"));
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->max_waiting, 1);
    client_ask(&a, HG_OPCODE_GET, "k", 2);
    stage_expect_nothing(&s.stage, &a);
    client_ask(&b, HG_OPCODE_GET, "k", 3);
    stage_expect(&s.stage, &b, HG_OPCODE_GET, HG_STATUS_EBUSY, 3);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "overflows"), 2);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_QUEUE_FULL), 2);
    /* Writes have a bound of their own. */
    client_ask(&b, HG_OPCODE_DELETE, "k", 4);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &b, HG_OPCODE_DELETE, 0, 4);
    atomic_store(&gate_holder(&s.stage, HG_GATE_INGRESS)->max_waiting, 0);
    gate_resize(&s.stage, HG_GATE_INGRESS, 1); /* the one that waits has it */
    client_ask(&b, HG_OPCODE_DELETE, "k", 5);
    reply = stage_expect(&s.stage, &b, HG_OPCODE_DELETE, HG_STATUS_EBUSY, 5);
    assert_non_null(strstr(reply_text(&reply), "ingress ticket of the server"));
    gate_resize(&s.stage, HG_GATE_READ, 1);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &a, HG_OPCODE_GET, 0, 2);
    client_close(&a);
    client_close(&b);
    gate_close(&s);
}

static void test_deadline(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    stage_connect(&s.stage, 0, &other);
    gate_resize(&s.stage, HG_GATE_READ, 0);
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->queue_timeout_us, 60000);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 1);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 2);
    scene_send(&s);
    client_ask(&other, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    gate_wait(&s.stage, 59999);
    stage_expect_nothing(&s.stage, &s.client);
    gate_wait(&s.stage, 1);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    assert_non_null(strstr(reply_text(&reply), "no read ticket of upstream 'up0'"));
    scene_expect(&s, HG_OPCODE_NOOP, 0, 2);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_ETMPFAIL, 1);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "canceled"), 2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "queued_us"), 120000);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "refused_stalled"), 2); /* by us, so to say */
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_QUEUE_TIMEOUT), 2);
    client_close(&other);
    gate_close(&s);
}

/* One deadline for all waits of a request, from its first look on. */
static void test_request_deadline(void **state)
{
    (void)state;
    struct scene s;
    gate_init(&s);
    s.stage.settings.request_deadline_us = 100000;
    gate_open(&s);
    gate_resize(&s.stage, HG_GATE_INGRESS, 0);
    gate_resize(&s.stage, HG_GATE_READ, 0);
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    gate_wait(&s.stage, 60000);
    gate_resize(&s.stage, HG_GATE_INGRESS, 1);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 1);
    gate_wait(&s.stage, 39999);
    stage_expect_nothing(&s.stage, &s.client);
    gate_wait(&s.stage, 1);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "refused_overdue"), 1);
    gate_close(&s);
}

/* ---- sizes ---- */

/* Size 0 blocks all but administration. */
static void test_size_zero(void **state)
{
    (void)state;
    struct scene s;
    struct client admin;
    gate_start(&s);
    gate_connect(&s.stage, 0, &admin);
    for (enum hg_gate_place place = HG_GATE_INGRESS; place < HG_GATE_PLACES; place++)
        gate_resize(&s.stage, place, 0);
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    stage_expect_nothing(&s.stage, &s.client);
    client_ask(&admin, HG_OPCODE_NOOP, NULL, 1);
    stage_expect(&s.stage, &admin, HG_OPCODE_NOOP, 0, 1);
    client_ask(&admin, HG_OPCODE_VERSION, NULL, 2);
    stage_expect(&s.stage, &admin, HG_OPCODE_VERSION, 0, 2);
    client_ask(&admin, HG_OPCODE_STAT, NULL, 3);
    stage_run(&s.stage);
    hg_job_answer(stage_job(&s.stage));
    stage_expect(&s.stage, &admin, HG_OPCODE_STAT, 0, 3);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_INGRESS), 1);
    gate_pass(&s.stage, 1000000);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    client_close(&admin);
    gate_close(&s);
}

static void test_resize(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[6];
    gate_start(&s);
    for (unsigned i = 0; i < HG_COUNT_OF(crowd); i++)
        gate_connect(&s.stage, 0, &crowd[i]);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    for (unsigned i = 0; i < HG_COUNT_OF(crowd); i++)
        client_ask(&crowd[i], HG_OPCODE_GET, "k", i);
    stage_run(&s.stage);
    assert_int_equal(fakestore_pending(s.store), 1);
    gate_resize(&s.stage, HG_GATE_READ, 4); /* one poke for all of them */
    stage_run(&s.stage);
    assert_int_equal(fakestore_pending(s.store), 4);
    gate_resize(&s.stage, HG_GATE_READ, 2); /* nothing is revoked */
    stage_run(&s.stage);
    assert_int_equal(hg_ticket_available(&gate_holder(&s.stage, HG_GATE_READ)->ticket), -2);
    for (unsigned n = 3; n >= 2; n--) {
        fakestore_obey(fakestore_first(s.store));
        stage_run(&s.stage);
        assert_int_equal(fakestore_pending(s.store), n);
    }
    fakestore_obey(fakestore_first(s.store));
    stage_run(&s.stage);
    assert_int_equal(fakestore_pending(s.store), 2);
    for (unsigned i = 0; i < HG_COUNT_OF(crowd); i++) {
        stage_run(&s.stage);
        fakestore_obey_all(s.store);
    }
    for (unsigned i = 0; i < HG_COUNT_OF(crowd); i++) {
        stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
        client_close(&crowd[i]);
    }
    gate_close(&s);
}

/* A ticket that is given back goes to the worker where the lowest tag waits. */
static void test_turns_go_over_workers(void **state)
{
    (void)state;
    struct scene s;
    struct client second, other;
    stage_init(&s.stage, 2);
    atomic_store(&stage_find(&s.stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    gate_open(&s);
    gate_bucket(&s.stage, "other");
    stage_publish(&s.stage);
    gate_connect(&s.stage, 0, &second);
    gate_connect(&s.stage, 1, &other);
    client_ask(&other, HG_OPCODE_SELECT_BUCKET, "other", 1);
    stage_expect(&s.stage, &other, HG_OPCODE_SELECT_BUCKET, 0, 1);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_ask(&second, HG_OPCODE_GET, "b", 2);
    stage_run(&s.stage);
    client_ask(&other, HG_OPCODE_GET, "c", 3);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 2);
    gate_wait(&s.stage, 10000); /* which its tenant has to pay for, as somebody waits */
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_run(&s.stage);
    struct fakestore *store =
        HG_CONTAINER_OF(hg_worker_store(&s.stage.workers[1], &s.stage.upstreams[0].upstream),
                        struct fakestore, store);
    assert_int_equal(fakestore_pending(s.store), 0);
    assert_int_equal(fakestore_pending(store), 1);
    fakestore_obey_all(store);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 3);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &second, HG_OPCODE_GET, 0, 2);
    client_close(&second);
    client_close(&other);
    gate_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds_up_what_is_behind),
        cmocka_unit_test(test_ingress_first),
        cmocka_unit_test(test_ingress_tickets_of_plenty_are_not_charged),
        cmocka_unit_test(test_a_purse_goes_to_who_waits),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_turns_go_over_workers),
        cmocka_unit_test(test_queue_bound),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_request_deadline),
        cmocka_unit_test(test_size_zero),
        cmocka_unit_test(test_resize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
