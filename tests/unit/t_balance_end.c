// t_balance_end - connections of a domain that are drained, given back, collected, or too many
// SPDX-License-Identifier: BSD-3-Clause
#include "balancerig.h"

/* A block whose connections are all busy and full, and one without any: depth 8. */
static void begin_full(uint32_t capacity)
{
    begin(capacity, 8, 3);
    for (uint32_t i = 0; i < capacity; i++) {
        struct hg_balance_conn *conn = connect_now(0, 1 * MS);
        for (uint32_t n = 0; n < 8; n++) {
            hg_balance_arrived(&b, &blocks[0], now);
            put(conn);
        }
    }
    for (uint32_t i = 0; i < 5; i++) { /* past the hold, with a quota */
        hg_balance_arrived(&b, &blocks[0], now);
        (void)tick();
    }
    hg_balance_arrived(&b, &blocks[1], now); /* known, so that it has a quota */
    (void)tick();
}

static struct hg_balance_conn *drained(void)
{
    assert_false(hg_list_empty(&b.draining_conns));
    return HG_CONTAINER_OF(b.draining_conns.next, struct hg_balance_conn, lru);
}

/* One that is never empty by itself is drained first, and is promised to one block only. */
static void test_a_busy_one_is_drained(void **state)
{
    (void)state;
    begin_full(4);
    assert_int_equal(request(1), HG_BALANCE_DRAIN);
    struct hg_balance_conn *conn = drained();
    assert_ptr_equal(conn->reserved, &blocks[1]);
    assert_int_equal(blocks[1].incoming, 1);
    assert_int_equal(blocks[0].draining, 1);
    assert_int_equal(hg_balance_size(&blocks[0]), 3);
    for (uint32_t i = 1; i < 8; i++)
        assert_int_equal(request(1), HG_BALANCE_WAIT); /* it will serve these too */
    assert_int_equal(request(2), HG_BALANCE_WAIT);     /* one drain at a time: a twentieth */
    (void)tick();
    assert_int_equal(b.drains, 1);
    while (conn->load > 1)
        assert_int_equal(answer(conn), HG_BALANCE_KEEP);
    assert_int_equal(conn->state, HG_BALANCE_DRAINING);
    assert_int_equal(answer(conn), HG_BALANCE_MOVE);
    assert_ptr_equal(conn->block, &blocks[1]);
    assert_int_equal(conn->state, HG_BALANCE_COMING);
    assert_int_equal(b.drains + blocks[1].incoming + blocks[0].draining, 0);
    assert_int_equal(request(2), HG_BALANCE_DRAIN); /* now it is its turn */
}

static void test_the_emptiest_is_drained(void **state)
{
    (void)state;
    begin_full(4);
    for (uint32_t i = 0; i < 5; i++)
        (void)answer(&conns[2]);
    assert_int_equal(conns[2].load, 3);
    (void)request(1);
    assert_ptr_equal(drained(), &conns[2]);
}

static void test_a_young_one_is_not_drained(void **state)
{
    (void)state;
    begin_full(2);
    conns[0].bound_us = conns[1].bound_us = now; /* as if both had just moved */
    assert_int_equal(request(1), HG_BALANCE_WAIT);
    now += RIG_HOLD_US - 1;
    assert_int_equal(hg_balance_rebalance(&b, ops, 8, now), 0);
    assert_int_equal(tick(), 1);
    assert_int_equal(ops[0].verb, HG_BALANCE_DRAIN);
}

static void test_drains_in_progress_are_a_twentieth(void **state)
{
    (void)state;
    begin_full(60);
    uint32_t most = 0;
    for (uint32_t i = 0; i < 160; i++)
        (void)request(1 + i % 2);
    for (uint32_t i = 0; i < 10; i++) {
        (void)tick();
        most = b.drains > most ? b.drains : most;
    }
    assert_int_equal(most, 3);
}

/* It takes too long: 50 ms, or ten times what nearly all requests take. */
static void test_drain_is_given_back_in_time(void **state)
{
    (void)state;
    begin_full(4);
    (void)request(1);
    struct hg_balance_conn *conn = drained();
    uint64_t since_us = now;
    while (now + HG_BALANCE_TICK_US <= since_us + 50 * MS) {
        (void)tick();
        assert_int_equal(conn->state, HG_BALANCE_DRAINING);
    }
    (void)tick();
    assert_int_equal(conn->state, HG_BALANCE_BUSY);
    assert_null(conn->reserved);
    begin_full(4);
    b.p99_us = 20 * MS;
    (void)request(1);
    conn = drained();
    tick_for(195 * MS);
    assert_int_equal(conn->state, HG_BALANCE_DRAINING);
    tick_for(20 * MS);
    assert_int_equal(conn->state, HG_BALANCE_BUSY);
}

static void test_drain_is_given_back_when_nobody_waits(void **state)
{
    (void)state;
    begin_full(4);
    (void)request(1);
    struct hg_balance_conn *conn = drained();
    hg_balance_wait_end(&b, &blocks[1], now); /* cancelled */
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_UNDRAIN), 1);
    assert_int_equal(conn->state, HG_BALANCE_BUSY);
    (void)request(1);
    conn = drained();
    hg_balance_wait_end(&b, &blocks[1], now);
    while (conn->load > 1)
        (void)answer(conn);
    assert_int_equal(answer(conn), HG_BALANCE_KEEP); /* before the tick could say so */
    (void)request(0);
    assert_int_equal(b.drains + blocks[1].incoming, 0);
}

/* A drained one is lost before it is empty: its receiver is no longer promised it. */
static void test_drained_one_is_lost(void **state)
{
    (void)state;
    begin_full(4);
    (void)request(1);
    hg_balance_conn_gone(&b, drained(), false, now);
    assert_int_equal(blocks[1].incoming, 0);
    assert_false(hg_list_empty(&b.starving));
    (void)tick();
    assert_int_equal(hg_balance_size(&blocks[1]), 1); /* there is room now */
}

/* ---- blocks that end, and everything ---- */

/* Traps 11 and 19: neither victim nor receiver; and nothing opens for it again. */
static void test_suppressed_block(void **state)
{
    (void)state;
    begin(2, 1, 3);
    (void)connect_now(0, 5 * MS);
    struct hg_balance_conn *busy = connect_now(0, 5 * MS);
    (void)request(0);
    now += 1 * S;
    hg_balance_block_suppress(&b, &blocks[0], true);
    assert_int_equal(request(1), HG_BALANCE_WAIT); /* not taken from it */
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_CLOSE), 1); /* closed, which makes room */
    (void)tick();
    assert_int_equal(hg_balance_size(&blocks[1]), 1);
    assert_int_equal(answer(busy), HG_BALANCE_CLOSE);
    assert_int_equal(hg_balance_size(&blocks[0]), 0);
    assert_int_equal(request(0), HG_BALANCE_REFUSE);
    hg_balance_wait_begin(&b, &blocks[0], now);
    tick_for(200 * MS);
    assert_int_equal(hg_balance_size(&blocks[0]), 0);
    assert_int_equal(answer(newest), HG_BALANCE_KEEP); /* not given to it */
    hg_balance_wait_end(&b, &blocks[0], now);
    hg_balance_block_suppress(&b, &blocks[0], false);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
}

static void test_suppressed_block_serves_its_waiters(void **state)
{
    (void)state;
    begin(1, 1, 1);
    (void)connect_now(0, 5 * MS);
    (void)request(0);
    (void)request(0);
    hg_balance_block_suppress(&b, &blocks[0], true);
    assert_int_equal(request(0), HG_BALANCE_WAIT);
    assert_int_equal(answer(newest), HG_BALANCE_KEEP);
    assert_int_equal(answer(newest), HG_BALANCE_KEEP);
    assert_int_equal(answer(newest), HG_BALANCE_CLOSE);
    assert_int_equal(b.total, 0);
    tick_for(200 * MS);
    assert_false(hg_balance_needs_tick(&b));
    hg_balance_block_remove(&b, &blocks[0]);
    assert_int_equal(b.block_count + b.suppressed_count, 0);
}

/* "drain all": one is held meanwhile. */
static void test_draining_the_domain(void **state)
{
    (void)state;
    begin(10, 1, 4);
    for (uint32_t i = 0; i < 8; i++)
        (void)connect_now(i % 4, 5 * MS);
    (void)request(2);
    struct hg_balance_conn *held =
        HG_CONTAINER_OF(blocks[2].busy.next, struct hg_balance_conn, node);
    hg_balance_drain(&b);
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_CLOSE), 7);
    assert_int_equal(b.total, 1);
    assert_true(hg_balance_needs_tick(&b));
    assert_int_equal(answer(held), HG_BALANCE_CLOSE);
    assert_int_equal(b.total, 0);
    /* Who still comes is served, and leaves nothing behind. */
    assert_int_equal(request(1), HG_BALANCE_CREATE);
    assert_int_equal(request(1), HG_BALANCE_WAIT);
    now += 5 * MS;
    come_up(newest);
    assert_int_equal(answer(newest), HG_BALANCE_KEEP);
    assert_int_equal(answer(newest), HG_BALANCE_CLOSE);
    assert_int_equal(b.total, 0);
}

/* ---- idle ones ---- */

/* "gc from max", and "eventually idle": everything goes, in small steps (trap 15). */
static void test_idle_ones_are_collected(void **state)
{
    static const uint32_t capacities[] = {10, 100}, counts[] = {1, 3, 10};
    (void)state;
    for (uint32_t c = 0; c < 6; c++) {
        uint32_t capacity = capacities[c / 3], n = counts[c % 3];
        begin(capacity, 1, n);
        b.conf.idle_us = 1 * S;
        for (uint32_t i = 0; i < 10; i++)
            (void)connect_now(i % n, 5 * MS);
        tick_for(950 * MS);
        assert_int_equal(b.total, 10);
        assert_true(hg_balance_next_us(&b) > now);
        for (uint32_t t = 0; t < 900 && b.total > 0; t++) {
            (void)tick();
            assert_true(op_count <= (capacity < 20 ? 1u : capacity / 20));
        }
        assert_int_equal(b.total, 0);
        assert_false(hg_balance_needs_tick(&b));
        assert_true(hg_balance_next_us(&b) == UINT64_MAX);
    }
}

static void test_collection_waits_for_the_time(void **state)
{
    (void)state;
    begin(4, 1, 1);
    struct hg_balance_conn *used = connect_now(0, 5 * MS), *idle = connect_now(0, 5 * MS);
    uint64_t since_us = now;
    for (uint32_t i = 0; i < 1100; i++) {
        now += 100 * MS;
        hg_balance_conn_busy(&b, used, now);
        hg_balance_conn_idle(&b, used, now);
    }
    assert_true(hg_balance_next_us(&b) == since_us + 120 * S);
    now = since_us + 120 * S - 1;
    assert_int_equal(hg_balance_rebalance(&b, ops, 8, now), 0);
    now++;
    assert_int_equal(hg_balance_rebalance(&b, ops, 8, now), 1);
    assert_int_equal(ops[0].verb, HG_BALANCE_CLOSE);
    assert_ptr_equal(ops[0].conn, idle);
}

/* Trap 15: what is overdue goes to whoever can use it. */
static void test_overdue_ones_move_rather_than_close(void **state)
{
    (void)state;
    begin(2, 1, 2);
    (void)connect_now(0, 5 * MS);
    (void)connect_now(0, 5 * MS);
    now += 130 * S;
    hg_balance_wait_begin(&b, &blocks[1], now);
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_MOVE), 1);
    assert_int_equal(planned(HG_BALANCE_CLOSE), 0);
}

/* ---- leases, and a server that is down ---- */

static void test_less_capacity(void **state)
{
    (void)state;
    begin(6, 1, 2);
    for (uint32_t i = 0; i < 6; i++)
        (void)connect_now(i % 2, 20 * MS); /* a hold of 40 ms */
    for (uint32_t i = 0; i < 2; i++)
        (void)request(0);
    hg_balance_set_capacity(&b, 2);
    assert_int_equal(hg_balance_spare(&b), 0);
    (void)tick();
    uint32_t closed = planned(HG_BALANCE_CLOSE);
    for (uint32_t i = 0; i < op_count; i++)
        assert_true(now - ops[i].conn->bound_us >= 40 * MS);
    assert_true(closed >= 1 && closed < 4); /* the youngest are within their hold */
    tick_for(100 * MS);
    assert_int_equal(b.total, 2);
    assert_int_equal(blocks[0].busy_count, 2); /* nothing that is in use */
    hg_balance_set_capacity(&b, 1);
    (void)tick();
    assert_int_equal(b.total, 2);
    assert_int_equal(answer(&conns[4]), HG_BALANCE_CLOSE);
    assert_int_equal(b.total, 1);
}

static void test_more_capacity(void **state)
{
    (void)state;
    begin(1, 1, 2);
    (void)request(0);
    (void)request(0);
    (void)request(1);
    (void)tick();
    assert_int_equal(hg_balance_wanted(&b), 2);
    hg_balance_set_capacity(&b, 3);
    assert_int_equal(hg_balance_spare(&b), 2);
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_CREATE), 2);
    (void)tick();
    assert_int_equal(hg_balance_wanted(&b), 0);
    hg_balance_set_capacity(&b, 0);
    assert_int_equal(request(1), HG_BALANCE_WAIT);
    (void)tick();
    assert_int_equal(op_count, 0);
}

static void test_frozen(void **state)
{
    (void)state;
    begin(2, 1, 2);
    (void)connect_now(0, 20 * MS);
    (void)connect_now(0, 20 * MS);
    for (uint32_t i = 0; i < 10; i++) {
        hg_balance_arrived(&b, &blocks[0], now);
        (void)tick();
    }
    uint32_t quota = blocks[0].quota;
    double demand = blocks[0].demand, service_us = blocks[0].service_us;
    hg_balance_freeze(&b, true);
    for (uint32_t i = 0; i < 100; i++)
        (void)request(1);
    tick_for(500 * MS);
    assert_int_equal(hg_balance_size(&blocks[1]), 0); /* nothing moves */
    assert_int_equal(blocks[0].quota, quota);
    assert_int_equal(blocks[1].quota, 0);
    assert_true(blocks[0].demand == demand && blocks[0].service_us == service_us);
    hg_balance_conn_gone(&b, &conns[0], false, now);
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_CREATE), 1); /* the driver's breaker decides */
    now += 300 * MS;
    come_up(newest);
    assert_int_equal(b.reconnect_us, 20 * MS); /* no sample */
    hg_balance_freeze(&b, false);
    assert_int_equal(blocks[1].arrivals, 0); /* nor are the requests */
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_MOVE), 1);
}

/* A block whose connects fail takes connections from the others ever more rarely, until one comes
   up. */
static void test_a_failing_block_rests(void **state)
{
    uint32_t tries = 0, late = 0;
    (void)state;
    begin(4, 1, 2);
    (void)connect_now(0, 5 * MS);
    for (uint32_t t = 0; t < 1000; t++) {
        if (blocks[1].waiters == 0)
            hg_balance_wait_begin(&b, &blocks[1], now);
        (void)tick();
        if (blocks[1].coming == 0)
            continue;
        tries++;
        late += t >= 500;
        now += 1 * MS;
        (void)break_down(newest);
        assert_int_equal(blocks[1].resting, tries >= 3);
    }
    assert_in_range(late, 4, 6); /* in 5 s: one a second */
    assert_in_range(tries, 12, 20);
    while (blocks[1].coming == 0)
        (void)tick();
    come_up(newest);
    assert_false(blocks[1].resting);
    assert_int_equal(blocks[1].failures, 0);
}

/* Ten connects that fail together are one failure; and what fails while the server is known to be
   down is none. */
static void test_failures_that_make_nobody_rest(void **state)
{
    (void)state;
    begin(10, 1, 1);
    for (uint32_t i = 0; i < 10; i++)
        (void)request(0);
    for (uint32_t i = 0; i < 10; i++) {
        now += 100;
        (void)break_down(&conns[i]);
    }
    assert_int_equal(blocks[0].failures, 1);
    hg_balance_freeze(&b, true);
    for (uint32_t i = 0; i < 10; i++) {
        (void)tick();
        (void)break_down(newest);
    }
    assert_int_equal(blocks[0].failures, 1);
    hg_balance_freeze(&b, false);
    assert_int_equal(blocks[0].failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_busy_one_is_drained),
        cmocka_unit_test(test_the_emptiest_is_drained),
        cmocka_unit_test(test_a_young_one_is_not_drained),
        cmocka_unit_test(test_drains_in_progress_are_a_twentieth),
        cmocka_unit_test(test_drain_is_given_back_in_time),
        cmocka_unit_test(test_drain_is_given_back_when_nobody_waits),
        cmocka_unit_test(test_drained_one_is_lost),
        cmocka_unit_test(test_suppressed_block),
        cmocka_unit_test(test_suppressed_block_serves_its_waiters),
        cmocka_unit_test(test_draining_the_domain),
        cmocka_unit_test(test_idle_ones_are_collected),
        cmocka_unit_test(test_collection_waits_for_the_time),
        cmocka_unit_test(test_overdue_ones_move_rather_than_close),
        cmocka_unit_test(test_less_capacity),
        cmocka_unit_test(test_more_capacity),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_a_failing_block_rests),
        cmocka_unit_test(test_failures_that_make_nobody_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
