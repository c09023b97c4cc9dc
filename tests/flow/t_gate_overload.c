// t_gate_overload - tickets under overload, beside credits, in other modes, and kept by stranded
// slots
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "front/instance.h"
#include "gatescene.h"
#include "tight.h"

#define CUT_US 20000 /* overload_wait_ms */

static uint64_t now(struct scene *s)
{
    return s->stage.workers[0].loop.clock();
}

static bool overloaded(struct scene *s, enum hg_gate_place place)
{
    const struct hg_gate_part *part = s->stage.workers[0].instances[0]->parts[0];
    return part->lines[place - HG_GATE_READ].line.overloaded;
}

/* The only read ticket is out, and somebody waits for it until the line is overloaded. */
static void overload(struct scene *s, struct client *waiter)
{
    gate_resize(&s->stage, HG_GATE_READ, 1);
    client_ask(&s->client, HG_OPCODE_GET, "occupies", 900);
    stage_run(&s->stage);
    client_ask(waiter, HG_OPCODE_GET, "waits", 901);
    stage_run(&s->stage);
    gate_pass(&s->stage, 99999);
    assert_false(overloaded(s, HG_GATE_READ));
    stage_expect_nothing(&s->stage, waiter);
    gate_wait(&s->stage, 1);
    assert_true(overloaded(s, HG_GATE_READ));
    stage_expect(&s->stage, waiter, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 901);
}

static void end_overload(struct scene *s)
{
    fakestore_obey_all(s->store);
    scene_expect(s, HG_OPCODE_GET, 0, 900);
}

/* ---- overload ---- */

static void test_waits_are_cut(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    overload(&s, &other);
    /* One that comes when all was read is young, however long the one before it has waited. */
    for (uint32_t i = 0; i < 3; i++) {
        client_ask(&other, HG_OPCODE_GET, "k", i);
        stage_run(&s.stage);
        gate_wait(&s.stage, CUT_US - 1);
        stage_expect_nothing(&s.stage, &other);
        gate_wait(&s.stage, 1);
        stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, i);
    }
    /* Run-time options count for those in line, too. */
    client_ask(&other, HG_OPCODE_GET, "k", 5);
    stage_run(&s.stage);
    gate_wait(&s.stage, 5000);
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->overload_wait_us, 5000);
    gate_look(&s.stage);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 5);
    end_overload(&s);
    client_close(&other);
    gate_close(&s);
}

static void test_newest_first(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[4];
    char key[] = "k0";
    gate_start(&s);
    for (unsigned i = 0; i < 4; i++)
        gate_connect(&s.stage, 0, &crowd[i]);
    overload(&s, &crowd[3]);
    for (unsigned i = 0; i < 3; i++, key[1]++) {
        client_ask(&crowd[i], HG_OPCODE_GET, key, i);
        stage_run(&s.stage);
        gate_wait(&s.stage, 2000);
    }
    end_overload(&s);
    for (unsigned i = 3; i-- > 0;) {
        key[1] = (char)('0' + i);
        assert_string_equal(fakestore_first(s.store)->key, key);
        fakestore_obey_all(s.store);
        stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
    }
    for (unsigned i = 0; i < 4; i++)
        client_close(&crowd[i]);
    gate_close(&s);
}

/* What lay behind a request that waited is as old as that: it does not wait once more. */
static void test_behind_a_waiting_one(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    overload(&s, &other);
    for (uint32_t i = 0; i < 5; i++)
        client_add_op(&other, HG_OPCODE_GET, "k", i);
    client_send(&other);
    stage_run(&s.stage);
    gate_wait(&s.stage, 15000);
    /* In the socket, not yet read. */
    client_ask(&other, HG_OPCODE_GET, "k", 5);
    client_ask(&other, HG_OPCODE_NOOP, NULL, 6);
    stage_expect_nothing(&s.stage, &other);
    gate_wait(&s.stage, 5000);
    for (uint32_t i = 0; i < 6; i++)
        stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, i);
    stage_expect(&s.stage, &other, HG_OPCODE_NOOP, 0, 6);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "added"), 2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "canceled"), 7);
    /* All was read: from now on it is young again. */
    HG_LIST_EACH(node, &s.stage.workers[0].sessions)
    assert_int_equal(HG_CONTAINER_OF(node, struct hg_session, node)->backlog_us, 0);
    client_ask(&other, HG_OPCODE_GET, "k", 7);
    stage_expect_nothing(&s.stage, &other);
    end_overload(&s);
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 7);
    client_close(&other);
    gate_close(&s);
}

/* A frame of which a part is there when the wait of the one before it ends. */
static void test_part_of_a_frame_behind(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    overload(&s, &other);
    client_add_op(&other, HG_OPCODE_GET, "k", 1);
    client_add_op(&other, HG_OPCODE_GET, "k", 2);
    client_send_part(&other, other.out_len - 10);
    stage_run(&s.stage);
    gate_wait(&s.stage, CUT_US);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    gate_wait(&s.stage, 5000);
    client_send(&other);
    stage_expect_nothing(&s.stage, &other);
    end_overload(&s);
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 2);
    client_close(&other);
    gate_close(&s);
}

static void test_overload_ends(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    overload(&s, &other);
    stage_timer(&s.stage);
    const struct hg_gate_worker *shown = &gate_holder(&s.stage, HG_GATE_READ)->workers[0];
    assert_int_equal(hg_counter_get(&shown->overloaded), 1);
    end_overload(&s);
    stage_advance(100000);
    stage_timer(&s.stage);
    assert_int_equal(hg_counter_get(&shown->overloaded), 0);
    assert_int_equal(hg_counter_get(&shown->queue_min_us), 0);
    gate_resize(&s.stage, HG_GATE_READ, 0);
    client_ask(&other, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    gate_wait(&s.stage, CUT_US + 5000);
    stage_expect_nothing(&s.stage, &other);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 1);
    client_close(&other);
    gate_close(&s);
}

/* The same of the ingress line, which is nobody's gate. */
static void test_ingress_is_shown(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    const struct hg_gate_worker *shown = &s.stage.front.ingress.workers[0];
    gate_resize(&s.stage, HG_GATE_INGRESS, 0);
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    gate_pass(&s.stage, 100000);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    client_ask(&s.client, HG_OPCODE_GET, "k", 2);
    stage_run(&s.stage);
    stage_timer(&s.stage);
    assert_int_equal(hg_counter_get(&shown->overloaded), 1);
    gate_resize(&s.stage, HG_GATE_INGRESS, 1);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    stage_advance(100000);
    stage_timer(&s.stage);
    assert_int_equal(hg_counter_get(&shown->overloaded), 0);
    gate_close(&s);
}

/* Since when the oldest has its ticket, of each kind. */
static void test_oldest_is_shown(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    uint64_t first_us = now(&s);
    gate_wait(&s.stage, 1000);
    client_ask(&s.client, HG_OPCODE_GET, "b", 2);
    client_ask(&s.client, HG_OPCODE_DELETE, "c", 3);
    stage_run(&s.stage);
    stage_timer(&s.stage);
    const struct hg_gate_worker *reads = &gate_holder(&s.stage, HG_GATE_READ)->workers[0];
    const struct hg_gate_worker *writes = &gate_holder(&s.stage, HG_GATE_WRITE)->workers[0];
    assert_int_equal(hg_counter_get(&reads->oldest_us), first_us);
    assert_int_equal(hg_counter_get(&writes->oldest_us), first_us + 1000);
    fakestore_obey_all(s.store);
    stage_timer(&s.stage);
    assert_int_equal(hg_counter_get(&reads->oldest_us), 0);
    assert_int_equal(hg_counter_get(&writes->oldest_us), 0);
    gate_close(&s);
}

/* ---- the backlog of an upstream ---- */

static uint64_t since(struct scene *s)
{
    return atomic_load(&gate_share(&s->stage)->backlog_since_us);
}

static void test_backlog(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    assert_int_equal(since(&s), 0);
    client_ask(&other, HG_OPCODE_GET, "b", 1);
    stage_run(&s.stage);
    uint64_t begun_us = now(&s);
    assert_int_equal(since(&s), begun_us);
    gate_pass(&s.stage, 100000);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    /* Nobody waits, but no ticket is free: it goes on. */
    assert_int_equal(since(&s), begun_us);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    hg_gateshare_settle(gate_share(&s.stage), now(&s) + HG_GATESHARE_GAP_US);
    assert_int_equal(since(&s), begun_us); /* somebody has just given up */
    hg_gateshare_settle(gate_share(&s.stage), now(&s) + HG_GATESHARE_GAP_US + 1);
    assert_int_equal(since(&s), 0);
    client_close(&other);
    gate_close(&s);
}

/* Who waits for a connection is backlog, too; who passed a bind throttle is not. */
static void test_backlog_for_room(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    s.store->room = 1;
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 2);
    scene_send(&s);
    assert_int_equal(atomic_load(&gate_share(&s.stage)->backlog), 1);
    assert_int_equal(since(&s), now(&s));
    fakestore_call_room(fakestore_find(s.store, "b")); /* in vain */
    assert_int_equal(atomic_load(&gate_share(&s.stage)->backlog), 1);
    fakestore_obey(fakestore_find(s.store, "a"));
    fakestore_call_room(fakestore_find(s.store, "b"));
    assert_int_equal(atomic_load(&gate_share(&s.stage)->backlog), 0);
    assert_int_equal(since(&s), 0);
    client_ask(&s.client, HG_OPCODE_GET, "c", 3);
    stage_run(&s.stage);
    assert_int_equal(atomic_load(&gate_share(&s.stage)->backlog), 1);
    fakestore_fault(fakestore_find(s.store, "c"), HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(atomic_load(&gate_share(&s.stage)->backlog), 0);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 3);
    gate_close(&s);
}

/* ---- beside the credits ---- */

static void open_tight_gate(struct scene *s, uint64_t units)
{
    gate_init(s);
    atomic_store(&stage_bucket(&s->stage, "tight", 0, units)->ticket_mode, HG_MODE_ENFORCE);
    s->stage.anonymous_bucket = "tight";
    gate_open(s);
}

static void test_charge_is_given_back(void **state)
{
    (void)state;
    struct scene s;
    open_tight_gate(&s, 10);
    gate_resize(&s.stage, HG_GATE_WRITE, 0);
    ask(&s, 1);
    stage_run(&s.stage);
    assert_int_equal(used(&s), 1);
    gate_pass(&s.stage, 1000000 - 5000);
    gate_wait(&s.stage, 5000);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_QUEUE_TIMEOUT, 1);
    assert_int_equal(used(&s), 0);
    atomic_store(&gate_holder(&s.stage, HG_GATE_WRITE)->max_waiting, 0);
    for (uint32_t i = 0; i < 100; i++) {
        ask(&s, i);
        scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_QUEUE_FULL, i);
    }
    assert_int_equal(used(&s), 0);
    assert_int_equal(hg_counter_get(&lane(&s)->num_throttled), 0);
    assert_int_equal(hg_counter_get(&lane(&s)->units), 0);
    gate_close(&s);
}

/* One that its credits held back comes young to the line, and so does what was behind it. */
static void test_held_for_credits_before(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    open_tight_gate(&s, 1);
    s.stage.anonymous_bucket = "default";
    gate_connect(&s.stage, 0, &other);
    s.store->answers = true;
    ask_and_get(&s, 1);
    s.store->answers = false;
    ask(&s, 2);
    ask(&s, 3);
    stage_run(&s.stage);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 1);
    uint64_t due_us = hg_credit_due_us(&s.stage.node);
    gate_wait(&s.stage, due_us - now(&s) - 110000);
    gate_resize(&s.stage, HG_GATE_WRITE, 0);
    client_ask(&other, HG_OPCODE_DELETE, "k", 1);
    stage_run(&s.stage);
    gate_pass(&s.stage, 100000);
    stage_expect(&s.stage, &other, HG_OPCODE_DELETE, HG_STATUS_QUEUE_TIMEOUT, 1);
    assert_true(overloaded(&s, HG_GATE_WRITE));
    stage_tick(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 0);
    gate_wait(&s.stage, CUT_US - 1);
    stage_expect_nothing(&s.stage, &s.client);
    gate_wait(&s.stage, 1);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_QUEUE_TIMEOUT, 2);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_QUEUE_TIMEOUT, 3);
    client_close(&other);
    gate_close(&s);
}

/* ---- other modes ---- */

static void test_exempt(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    for (enum hg_gate_place place = HG_GATE_INGRESS; place < HG_GATE_PLACES; place++)
        gate_resize(&s.stage, place, 0);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    client_ask(&s.client, HG_OPCODE_DELETE, "b", 2);
    stage_run(&s.stage);
    assert_int_equal(fakestore_first(s.store)->call->ticket, 0);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_INGRESS, "exempt_started"), 2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_INGRESS, "exempt_finished"), 0);
    /* What it was when it came counts. */
    atomic_store(&stage_find(&s.stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_INGRESS, "exempt_finished"), 2);
    gate_close(&s);
}

static void test_exempt_that_waits_for_room(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->room = 0;
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    assert_int_equal(atomic_load(&gate_share(&s.stage)->backlog), 1);
    atomic_store(&stage_find(&s.stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    s.store->room = 1;
    fakestore_call_room(fakestore_find(s.store, "a"));
    assert_int_equal(gate_out(&s.stage, HG_GATE_READ), 0);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    gate_close(&s);
}

/* The slow log says where the time went, also of a wait for a connection that was in vain. */
static void test_wait_for_room_in_vain_is_queueing(void **state)
{
    (void)state;
    struct scene s;
    gate_init(&s);
    s.stage.settings.slow_request_us = 1000;
    gate_open(&s);
    s.store->room = 0;
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    stage_run(&s.stage);
    gate_pass(&s.stage, 300000);
    fakestore_fault(fakestore_find(s.store, "a"), HG_FAULT_QUEUE_TIMEOUT);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    const struct hg_slow_entry *slow = &s.stage.workers[0].slow[0];
    assert_int_equal(s.stage.workers[0].slow_count, 1);
    assert_true(slow->queue_us >= 300000 && slow->queue_us <= slow->total_us);
    gate_close(&s);
}

static void test_observe(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    struct hg_bucket *bucket = stage_find(&s.stage, "default");
    atomic_store(&bucket->ticket_mode, HG_MODE_OBSERVE);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    for (uint32_t i = 0; i < 3; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    scene_send(&s);
    assert_int_equal(fakestore_pending(s.store), 3);
    assert_int_equal(hg_ticket_available(&gate_holder(&s.stage, HG_GATE_READ)->ticket), -2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "would_wait"), 2);
    assert_int_equal(hg_counter_get(&bucket->lanes[0].tallies[HG_GATE_READ].would_wait), 2);
    fakestore_obey_all(s.store);
    for (uint32_t i = 0; i < 3; i++)
        scene_expect(&s, HG_OPCODE_GET, 0, i);
    gate_close(&s);
}

/* Who waits goes on when his tenant needs no tickets any more, and another's does not. */
static void a_mode_changes(enum hg_mode mode, enum hg_gate_place place)
{
    struct scene s;
    struct client other;
    gate_init(&s);
    atomic_store(&stage_bucket(&s.stage, "other", 0, HG_UNITS_UNLIMITED)->ticket_mode,
                 HG_MODE_ENFORCE);
    gate_open(&s);
    s.stage.anonymous_bucket = "other";
    gate_connect(&s.stage, 0, &other);
    gate_resize(&s.stage, place, 0);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    client_ask(&other, HG_OPCODE_GET, "b", 2);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, place), 2);
    atomic_store(&stage_find(&s.stage, "default")->ticket_mode, (int)mode);
    stage_publish(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, place), 1);
    assert_int_equal(gate_out(&s.stage, place), 1);
    assert_non_null(fakestore_find(s.store, "a"));
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    assert_int_equal(gate_out(&s.stage, place), 0);
    client_close(&other);
    gate_close(&s);
}

static void test_mode_changes_for_who_waits(void **state)
{
    (void)state;
    for (enum hg_gate_place place = HG_GATE_INGRESS; place <= HG_GATE_READ; place++) {
        a_mode_changes(HG_MODE_OFF, place);
        a_mode_changes(HG_MODE_OBSERVE, place);
    }
}

/* ---- stranded slots ---- */

static void test_stranded_slot_keeps_a_ticket(void **state)
{
    (void)state;
    struct scene s;
    gate_start(&s);
    s.store->strands = true;
    gate_resize(&s.stage, HG_GATE_READ, 1);
    client_ask(&s.client, HG_OPCODE_GET, "a", 1);
    client_ask(&s.client, HG_OPCODE_GET, "b", 2);
    stage_run(&s.stage);
    fakestore_fault(fakestore_find(s.store, "a"), HG_FAULT_TIMEOUT);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_BACKEND_TIMEOUT, 1);
    stage_run(&s.stage);
    assert_int_equal(gate_out(&s.stage, HG_GATE_READ), 1);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_READ), 1);
    assert_int_equal(atomic_load(&gate_holder(&s.stage, HG_GATE_READ)->stranded), 1);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 1); /* of the one that waits */
    fakestore_late(s.store, HG_TICKET_READ);
    stage_run(&s.stage);
    fakestore_obey(fakestore_find(s.store, "b"));
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    gate_close(&s);
}

static void test_client_leaves_a_stranded_slot(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    s.store->strands = true;
    gate_resize(&s.stage, HG_GATE_WRITE, 2);
    stage_connect_tcp(&s.stage, 0, &other);
    client_ask(&other, HG_OPCODE_NOOP, NULL, 0); /* whose reply stays unread: a reset */
    stage_run(&s.stage);
    client_ask(&other, HG_OPCODE_DELETE, "a", 1);
    stage_run(&s.stage);
    client_close(&other);
    STAGE_UNTIL(&s.stage, stage_sessions(&s.stage) == 1);
    assert_int_equal(gate_out(&s.stage, HG_GATE_WRITE), 1);
    assert_int_equal(gate_out(&s.stage, HG_GATE_INGRESS), 0);
    client_ask(&s.client, HG_OPCODE_DELETE, "b", 1);
    client_ask(&s.client, HG_OPCODE_DELETE, "c", 2);
    stage_run(&s.stage);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_WRITE), 1);
    gate_pass(&s.stage, 1000000);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_QUEUE_TIMEOUT, 2);
    fakestore_late(s.store, HG_TICKET_WRITE);
    gate_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_are_cut),
        cmocka_unit_test(test_newest_first),
        cmocka_unit_test(test_behind_a_waiting_one),
        cmocka_unit_test(test_part_of_a_frame_behind),
        cmocka_unit_test(test_overload_ends),
        cmocka_unit_test(test_ingress_is_shown),
        cmocka_unit_test(test_oldest_is_shown),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_backlog_for_room),
        cmocka_unit_test(test_charge_is_given_back),
        cmocka_unit_test(test_held_for_credits_before),
        cmocka_unit_test(test_exempt),
        cmocka_unit_test(test_exempt_that_waits_for_room),
        cmocka_unit_test(test_wait_for_room_in_vain_is_queueing),
        cmocka_unit_test(test_observe),
        cmocka_unit_test(test_mode_changes_for_who_waits),
        cmocka_unit_test(test_stranded_slot_keeps_a_ticket),
        cmocka_unit_test(test_client_leaves_a_stranded_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
