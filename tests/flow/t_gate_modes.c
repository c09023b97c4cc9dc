// t_gate_modes - tickets beside credits and connections, in other modes, and kept by stranded slots
// SPDX-License-Identifier: BSD-3-Clause
#include "gatescene.h"
#include "tight.h"

#define TIMEOUT_US 1000000 /* queue_timeout_ms */

static uint64_t now(struct scene *s)
{
    return s->stage.workers[0].loop.clock();
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

/* The clock of a backlog after a time in which nobody waited. */
static void test_backlog_after_a_break(void **state)
{
    static const struct {
        bool has_free, was_refused;
        uint64_t break_us;
        bool goes_on;
    } rows[] = {
        {true, false, 0, false},
        {true, true, HG_GATESHARE_GAP_US, true},
        {true, true, HG_GATESHARE_GAP_US + 1, false},
        {false, false, HG_GATESHARE_GAP_US, true},
        {false, false, HG_GATESHARE_GAP_US + 1, false},
        {false, true, HG_GATESHARE_GAP_US, true},
        {false, true, HG_GATESHARE_GAP_US + 1, false},
    };
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        struct hg_gateset *set = hg_gateset_new(1);
        struct hg_gateshare *share = hg_gateset_take(set, NULL, "", 1);
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
            assert_int_equal(hg_ticket_resize(&share->holders[kind].ticket, rows[i].has_free),
                             HG_TICKET_NOBODY);
        hg_gateshare_backlog(share, 3, 1000);
        if (rows[i].was_refused)
            atomic_store(&share->backlog_late_us, 500000);
        hg_gateshare_backlog(share, -3, 500000);
        hg_gateshare_backlog(share, 2, 500000 + rows[i].break_us);
        assert_int_equal(atomic_load(&share->backlog_since_us),
                         rows[i].goes_on ? 1000 : 500000 + rows[i].break_us);
        hg_gateshare_backlog(share, -2, 500000 + rows[i].break_us);
        hg_gateset_give(set, share);
        hg_gateset_free(set);
    }
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
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_backlog_after_a_break),
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
