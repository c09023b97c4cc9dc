// t_gate_overload - tickets under overload, beside credits, in other modes, and kept by stranded
// slots
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "front/instance.h"
#include "gatescene.h"
#include "tight.h"

#define TIMEOUT_US 1000000 /* queue_timeout_ms */
#define SERVICE_US 400000  /* of the requests here: two and a half fill the queue time-out */

static uint64_t now(struct scene *s)
{
    return s->stage.workers[0].loop.clock();
}

/* The only read ticket is out, and it is known how long such a request takes. */
static void occupy(struct scene *s)
{
    gate_resize(&s->stage, HG_GATE_READ, 1);
    client_ask(&s->client, HG_OPCODE_GET, "usual", 899);
    stage_run(&s->stage);
    gate_wait(&s->stage, SERVICE_US);
    fakestore_obey_all(s->store);
    scene_expect(s, HG_OPCODE_GET, 0, 899);
    client_ask(&s->client, HG_OPCODE_GET, "occupies", 900);
    stage_run(&s->stage);
}

static void end_occupation(struct scene *s)
{
    fakestore_obey_all(s->store);
    scene_expect(s, HG_OPCODE_GET, 0, 900);
}

/* The store answers what it has, and who waits goes on. */
static void obey(struct scene *s)
{
    fakestore_obey_all(s->store);
    stage_run(&s->stage);
}

static const struct hg_gate_worker *shown(struct scene *s, enum hg_gate_place place)
{
    stage_timer(&s->stage);
    return &gate_holder(&s->stage, place)->workers[0];
}

#define CROWD 5

static void connect_crowd(struct scene *s, struct client crowd[CROWD])
{
    for (unsigned i = 0; i < CROWD; i++)
        gate_connect(&s->stage, 0, &crowd[i]);
}

static void close_crowd(struct client crowd[CROWD])
{
    for (unsigned i = 0; i < CROWD; i++)
        client_close(&crowd[i]);
}

static void ask_of_crowd(struct scene *s, struct client *client, uint32_t opaque)
{
    char key[] = "k0";
    key[1] = (char)('0' + opaque);
    client_ask(client, HG_OPCODE_GET, key, opaque);
    stage_run(&s->stage);
}

/* ---- overload ---- */

/* In line there is one limit: nobody's wait is cut, however long nobody has been served. */
static void test_one_in_line_waits_its_time(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[CROWD];
    gate_start(&s);
    connect_crowd(&s, crowd);
    occupy(&s);
    ask_of_crowd(&s, &crowd[0], 0);
    gate_pass(&s.stage, SERVICE_US);
    ask_of_crowd(&s, &crowd[1], 1);
    gate_pass(&s.stage, TIMEOUT_US - SERVICE_US - 5000);
    gate_wait(&s.stage, 4999);
    stage_expect_nothing(&s.stage, &crowd[0]);
    gate_wait(&s.stage, 1);
    stage_expect(&s.stage, &crowd[0], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 0);
    stage_expect_nothing(&s.stage, &crowd[1]);
    end_occupation(&s);
    obey(&s);
    stage_expect(&s.stage, &crowd[1], HG_OPCODE_GET, 0, 1);
    close_crowd(crowd);
    gate_close(&s);
}

/* Two more can be served in time; one more is refused at once, and its tenant floods: its line is
   to be short for some seconds. Another tenant's is not. */
static void test_refused_at_once_when_it_would_be_too_late(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[CROWD], other;
    gate_init(&s);
    gate_bucket(&s.stage, "shop");
    gate_open(&s);
    connect_crowd(&s, crowd);
    s.stage.anonymous_bucket = "shop";
    gate_connect(&s.stage, 0, &other);
    occupy(&s);
    assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_READ)->overloaded), 0);
    for (uint32_t i = 0; i < 2; i++) {
        ask_of_crowd(&s, &crowd[i], i);
        stage_expect_nothing(&s.stage, &crowd[i]);
    }
    for (uint32_t i = 2; i < 4; i++) {
        ask_of_crowd(&s, &crowd[i], i);
        struct reply reply =
            stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, i);
        /* Three of 0.4 s; times are powers of two. */
        assert_string_equal(reply_text(&reply),
                            "{\"error\":{\"context\":\"tenant 'default' asks for more than can be "
                            "served in time by a read ticket of upstream 'up0'; try again in 2048 "
                            "ms\",\"limit\":\"tenant_line\",\"tenant\":\"default\","
                            "\"retry_after_ms\":2048}}");
        assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_READ)->overloaded), 1);
    }
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "canceled"), 2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "added"), 2);
    client_ask(&other, HG_OPCODE_GET, "x", 1);
    stage_expect_nothing(&s.stage, &other);
    end_occupation(&s);
    assert_string_equal(fakestore_first(s.store)->key, "x"); /* its turn */
    for (uint32_t i = 0; i < 3; i++)
        obey(&s);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 1);
    for (uint32_t i = 0; i < 2; i++)
        stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
    gate_pass(&s.stage, 3990000);
    assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_READ)->overloaded), 1);
    gate_pass(&s.stage, 10000);
    assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_READ)->overloaded), 0);
    assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_READ)->queue_min_us), 0);
    client_close(&other);
    close_crowd(crowd);
    gate_close(&s);
}

/* Options count at once: a shorter queue time-out, and what a flood may wait. */
static void test_options_count_at_once(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[CROWD];
    gate_start(&s);
    connect_crowd(&s, crowd);
    occupy(&s);
    ask_of_crowd(&s, &crowd[0], 0);
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->queue_timeout_us, 2 * SERVICE_US - 1);
    ask_of_crowd(&s, &crowd[1], 1);
    stage_expect(&s.stage, &crowd[1], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->queue_timeout_us, 3 * SERVICE_US);
    ask_of_crowd(&s, &crowd[2], 2);
    stage_expect(&s.stage, &crowd[2], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 2);
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->flood_wait_us, 2 * SERVICE_US);
    ask_of_crowd(&s, &crowd[3], 3);
    stage_expect_nothing(&s.stage, &crowd[3]);
    end_occupation(&s);
    for (uint32_t i = 0; i < 2; i++)
        obey(&s);
    stage_expect(&s.stage, &crowd[0], HG_OPCODE_GET, 0, 0);
    stage_expect(&s.stage, &crowd[3], HG_OPCODE_GET, 0, 3);
    close_crowd(crowd);
    gate_close(&s);
}

/* Oldest first also of one that floods, unless the option says otherwise. */
static void test_flood_order(void **state)
{
    (void)state;
    for (uint32_t newest = 0; newest < 2; newest++) {
        struct scene s;
        struct client crowd[CROWD];
        gate_start(&s);
        connect_crowd(&s, crowd);
        occupy(&s);
        for (uint32_t i = 0; i < 2; i++)
            ask_of_crowd(&s, &crowd[i], i);
        atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->flood_newest, newest != 0);
        ask_of_crowd(&s, &crowd[2], 2);
        stage_expect(&s.stage, &crowd[2], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 2);
        end_occupation(&s);
        assert_string_equal(fakestore_first(s.store)->key, newest ? "k1" : "k0");
        for (uint32_t i = 0; i < 2; i++)
            obey(&s);
        for (uint32_t i = 0; i < 2; i++)
            stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
        close_crowd(crowd);
        gate_close(&s);
    }
}

/* Workers with waiters share the tickets: each counts on its part of them only. */
static void test_a_worker_counts_on_its_part(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[CROWD];
    gate_start(&s);
    connect_crowd(&s, crowd);
    occupy(&s);
    gate_resize(&s.stage, HG_GATE_READ, 4);
    /* Three more tickets are out that belong to nobody here, and another worker has waiters. */
    struct hg_ticket *ticket = &gate_holder(&s.stage, HG_GATE_READ)->ticket;
    for (uint32_t i = 0; i < 3; i++)
        hg_ticket_force(ticket);
    atomic_fetch_or(&ticket->waiting, (uint64_t)1 << 63);
    /* Of four tickets two: so two waiters are within the share, and the prediction of the fifth of
       them is 5 x 400 ms / 2. */
    for (uint32_t i = 0; i < 4; i++) {
        ask_of_crowd(&s, &crowd[i], i);
        stage_expect_nothing(&s.stage, &crowd[i]);
    }
    atomic_store(&gate_holder(&s.stage, HG_GATE_READ)->queue_timeout_us, TIMEOUT_US - 1);
    ask_of_crowd(&s, &crowd[4], 4);
    stage_expect(&s.stage, &crowd[4], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 4);
    atomic_fetch_and(&ticket->waiting, ~((uint64_t)1 << 63));
    for (uint32_t i = 0; i < 3; i++)
        hg_gate_poke(&s.stage.front, hg_ticket_put(ticket));
    stage_run(&s.stage);
    end_occupation(&s);
    obey(&s);
    for (uint32_t i = 0; i < 4; i++)
        stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
    close_crowd(crowd);
    gate_close(&s);
}

/* What was read with a request that waited is as old as that: it does not wait once more. What lay
   in the socket meanwhile may have come just now, and waits its own time. */
static void test_behind_a_waiting_one(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    gate_start(&s);
    gate_connect(&s.stage, 0, &other);
    occupy(&s);
    for (uint32_t i = 0; i < 5; i++)
        client_add_op(&other, HG_OPCODE_GET, "k", i);
    client_send(&other);
    stage_run(&s.stage);
    gate_wait(&s.stage, TIMEOUT_US - 5000);
    /* In the socket, not yet read. */
    client_ask(&other, HG_OPCODE_GET, "k", 5);
    client_ask(&other, HG_OPCODE_NOOP, NULL, 6);
    stage_expect_nothing(&s.stage, &other);
    gate_wait(&s.stage, 5000);
    for (uint32_t i = 0; i < 5; i++)
        stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, i);
    stage_expect_nothing(&s.stage, &other);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "added"), 2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "canceled"), 5);
    end_occupation(&s);
    obey(&s);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 5);
    stage_expect(&s.stage, &other, HG_OPCODE_NOOP, 0, 6);
    client_ask(&other, HG_OPCODE_GET, "k", 7);
    stage_run(&s.stage);
    obey(&s);
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
    gate_resize(&s.stage, HG_GATE_READ, 0);
    client_add_op(&other, HG_OPCODE_GET, "k", 1);
    client_add_op(&other, HG_OPCODE_GET, "k", 2);
    client_send_part(&other, other.out_len - 10);
    stage_run(&s.stage);
    gate_wait(&s.stage, TIMEOUT_US);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    gate_wait(&s.stage, 5000);
    client_send(&other);
    stage_expect_nothing(&s.stage, &other);
    gate_resize(&s.stage, HG_GATE_READ, 1);
    stage_run(&s.stage);
    obey(&s);
    stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, 2);
    client_close(&other);
    gate_close(&s);
}

/* The same of the ingress line, which is nobody's gate: tickets are held until the answer. */
static void test_ingress_is_shown(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[CROWD];
    gate_start(&s);
    connect_crowd(&s, crowd);
    gate_resize(&s.stage, HG_GATE_INGRESS, 1);
    occupy(&s);
    for (uint32_t i = 0; i < 2; i++)
        ask_of_crowd(&s, &crowd[i], i);
    assert_int_equal(gate_waiting(&s.stage, HG_GATE_INGRESS), 2);
    assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_INGRESS)->overloaded), 0);
    ask_of_crowd(&s, &crowd[2], 2);
    stage_expect(&s.stage, &crowd[2], HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 2);
    assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_INGRESS)->overloaded), 1);
    end_occupation(&s);
    for (uint32_t i = 0; i < 2; i++) {
        obey(&s);
        stage_expect(&s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
    }
    stage_advance(4000000);
    assert_int_equal(hg_counter_get(&shown(&s, HG_GATE_INGRESS)->overloaded), 0);
    close_crowd(crowd);
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
    gate_pass(&s.stage, TIMEOUT_US);
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
    open_tight_gate(&s, 1);
    s.store->answers = true;
    ask_and_get(&s, 1);
    s.store->answers = false;
    ask(&s, 2);
    ask(&s, 3);
    stage_run(&s.stage);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 1);
    uint64_t due_us = hg_credit_due_us(&s.stage.node);
    assert_true(due_us - now(&s) > 100000);
    gate_wait(&s.stage, due_us - now(&s));
    gate_resize(&s.stage, HG_GATE_WRITE, 0);
    stage_tick(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].held_now), 0);
    gate_wait(&s.stage, TIMEOUT_US - 1);
    stage_expect_nothing(&s.stage, &s.client);
    gate_wait(&s.stage, 1);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_QUEUE_TIMEOUT, 2);
    scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_QUEUE_TIMEOUT, 3);
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
        cmocka_unit_test(test_one_in_line_waits_its_time),
        cmocka_unit_test(test_refused_at_once_when_it_would_be_too_late),
        cmocka_unit_test(test_options_count_at_once),
        cmocka_unit_test(test_flood_order),
        cmocka_unit_test(test_a_worker_counts_on_its_part),
        cmocka_unit_test(test_behind_a_waiting_one),
        cmocka_unit_test(test_part_of_a_frame_behind),
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
