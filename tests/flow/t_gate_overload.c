// t_gate_overload - tickets under overload: who may wait, for how long, and what is shown of it
// SPDX-License-Identifier: BSD-3-Clause
#include "gatescene.h"

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

/* The only read ticket is out, and there is a crowd. */
static void start_occupied(struct scene *s, struct client crowd[CROWD])
{
    gate_start(s);
    connect_crowd(s, crowd);
    occupy(s);
}

/* ---- overload ---- */

/* In line there is one limit: nobody's wait is cut, however long nobody has been served. */
static void test_one_in_line_waits_its_time(void **state)
{
    (void)state;
    struct scene s;
    struct client crowd[CROWD];
    start_occupied(&s, crowd);
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
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "refused_flood"), 2);
    assert_int_equal(gate_sum(&s.stage, HG_GATE_READ, "refused_calm"), 0);
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
    start_occupied(&s, crowd);
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
    start_occupied(&s, crowd);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
