// t_balance - connections of a domain: what is opened, used, moved, closed, and when
// SPDX-License-Identifier: BSD-3-Clause
//
// "trap n": of the reference's list of surprises of the pools that this one follows.
#include "balancerig.h"

/* Trap 6: room is no reason to connect while something is idle. */
static void test_idle_is_used_before_anything_is_opened(void **state)
{
    (void)state;
    begin(10, 1, 2);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
    now += 5 * MS;
    come_up(newest);
    for (uint32_t i = 0; i < 20; i++) {
        now += 1 * MS;
        assert_int_equal(answer(newest), HG_BALANCE_KEEP);
        assert_int_equal(request(0), HG_BALANCE_USE);
    }
    assert_int_equal(b.total, 1);
}

/* Trap 10: nor to steal. */
static void test_idle_is_used_before_anything_is_stolen(void **state)
{
    (void)state;
    begin(2, 1, 2);
    struct hg_balance_conn *own = connect_now(0, 5 * MS);
    (void)connect_now(1, 5 * MS);
    now += 1 * S;
    assert_int_equal(request(0), HG_BALANCE_USE);
    assert_int_equal(own->state, HG_BALANCE_BUSY);
    assert_int_equal(blocks[1].idle_count, 1);
}

/* What is used stays in use; what rests longest can be taken or closed. */
static void test_last_used_first(void **state)
{
    (void)state;
    begin(3, 1, 2);
    struct hg_balance_conn *c[3];
    for (uint32_t i = 0; i < 3; i++)
        c[i] = connect_now(0, 5 * MS);
    now += 1 * S;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(request(0), HG_BALANCE_USE);
        assert_int_equal(c[2]->state, HG_BALANCE_BUSY);
        (void)answer(c[2]);
    }
    assert_int_equal(request(1), HG_BALANCE_MOVE);
    assert_ptr_equal(newest, c[0]);
}

static void test_what_is_coming_counts(void **state)
{
    (void)state;
    begin(10, 1, 1);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
    begin(10, 64, 1);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
    for (uint32_t i = 1; i < 64; i++)
        assert_int_equal(request(0), HG_BALANCE_WAIT);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
    assert_int_equal(b.total, 2);
    now += 1 * MS;
    come_up(&conns[0]);
    assert_int_equal(blocks[0].waiters, 1);
    assert_int_equal(tick(), 0);
}

/* Beyond what is of use, a line that is served before a connect is done opens nothing. */
static void test_no_connect_that_helps_nobody(void **state)
{
    (void)state;
    begin(10, 1, 1);
    struct hg_balance_conn *conn = connect_now(0, 50 * MS);
    for (uint32_t i = 0; i < 32; i++) { /* 100 requests/s of 1 ms: a tenth of a connection */
        assert_int_equal(request(0), HG_BALANCE_USE);
        now += 1 * MS;
        (void)answer(conn);
        (void)tick();
    }
    assert_int_equal(request(0), HG_BALANCE_USE);
    for (uint32_t i = 0; i < 49; i++)
        assert_int_equal(request(0), HG_BALANCE_WAIT); /* 1 ms each: before 50 ms are over */
    (void)request(0);
    assert_int_equal(request(0), HG_BALANCE_CREATE);
}

/* Trap 38: until it is closed it counts. */
static void test_closing_holds_capacity(void **state)
{
    (void)state;
    begin(1, 1, 2);
    struct hg_balance_conn *conn = connect_now(0, 5 * MS);
    hg_balance_conn_closing(&b, conn, now);
    assert_int_equal(request(1), HG_BALANCE_WAIT);
    assert_int_equal(tick(), 0);
    assert_int_equal(hg_balance_size(&blocks[0]), 0);
    assert_int_equal(b.total, 1);
    hg_balance_conn_gone(&b, conn, false, now);
    assert_int_equal(hg_balance_spare(&b), 1);
    assert_int_equal(tick(), 1);
    assert_int_equal(ops[0].verb, HG_BALANCE_CREATE);
    assert_ptr_equal(ops[0].block, &blocks[1]);
}

/* Trap 1: the minimum hold is no matter of degree, whoever asks. */
static void test_hold_when_a_request_comes(void **state)
{
    (void)state;
    begin(1, 1, 2);
    (void)request(0);
    now += 20 * MS;
    come_up(newest);
    uint64_t bound_us = newest->bound_us;
    (void)answer(newest);
    assert_int_equal(b.hold_us, 40 * MS);
    now = bound_us + 40 * MS - 1;
    assert_int_equal(request(1), HG_BALANCE_WAIT);
    hg_balance_wait_end(&b, &blocks[1], now);
    now++;
    assert_int_equal(request(1), HG_BALANCE_MOVE);
    assert_int_equal(blocks[1].steals, 1);
}

static void test_hold_when_one_is_released(void **state)
{
    (void)state;
    begin(1, 1, 2);
    (void)request(0);
    now += 20 * MS;
    come_up(newest);
    (void)request(1);
    now = newest->bound_us + 40 * MS - 1;
    assert_int_equal(answer(newest), HG_BALANCE_KEEP);
    assert_int_equal(request(0), HG_BALANCE_USE);
    now++;
    assert_int_equal(answer(newest), HG_BALANCE_MOVE);
    assert_ptr_equal(newest->block, &blocks[1]);
    assert_int_equal(blocks[1].moves_in, 1);
    assert_int_equal(blocks[0].moves_out, 1);
}

static void test_hold_when_a_tick_rebalances(void **state)
{
    (void)state;
    begin(1, 1, 2);
    (void)request(0);
    now += 20 * MS;
    come_up(newest);
    uint64_t bound_us = newest->bound_us;
    (void)answer(newest);
    (void)request(1);
    while (now + HG_BALANCE_TICK_US < bound_us + 40 * MS)
        assert_int_equal(tick(), 0);
    assert_int_equal(tick(), 1);
    assert_int_equal(ops[0].verb, HG_BALANCE_MOVE);
    assert_true(now >= bound_us + 40 * MS);
}

/* It came up for nobody: nothing is lost if it goes on after the time of a move. */
static void test_no_hold_without_work(void **state)
{
    (void)state;
    begin(2, 1, 2);
    (void)request(0);
    now += 50 * MS;
    come_up(newest); /* and stays busy */
    carry_out((struct hg_balance_plan){HG_BALANCE_CREATE, &blocks[0], NULL}, false);
    struct hg_balance_conn *unused = newest;
    now += 10 * MS; /* came up sooner than others: a hold of 60 ms, from the start */
    come_up(unused);
    assert_int_equal(b.reconnect_us, 30 * MS);
    now += 29 * MS;
    hg_balance_wait_begin(&b, &blocks[1], now); /* (not a request yet) */
    assert_int_equal(hg_balance_rebalance(&b, ops, 8, now), 0);
    now += 1 * MS;
    assert_int_equal(hg_balance_rebalance(&b, ops, 8, now), 1);
    assert_int_equal(ops[0].verb, HG_BALANCE_MOVE);
    assert_ptr_equal(ops[0].conn, unused);
}

/* Trap 14: a refused connect takes no time, and must not switch the hold off. */
static void test_failures_are_no_samples(void **state)
{
    (void)state;
    begin(4, 1, 1);
    (void)connect_now(0, 30 * MS);
    assert_int_equal(b.reconnect_us, 30 * MS);
    for (uint32_t i = 0; i < 50; i++) {
        carry_out((struct hg_balance_plan){HG_BALANCE_CREATE, &blocks[0], NULL}, false);
        now += 100;
        (void)break_down(newest);
    }
    assert_int_equal(b.reconnect_us, 30 * MS);
    assert_int_equal(b.hold_us, 60 * MS);
    assert_int_equal(blocks[0].connect_errors, 50);
    assert_int_equal(b.total, 1);
}

static void test_mean_of_the_last_32(void **state)
{
    (void)state;
    begin(100, 1, 1);
    (void)connect_now(0, 100 * MS);
    for (uint32_t i = 0; i < 31; i++)
        (void)connect_now(0, 4 * MS);
    assert_int_equal(b.reconnect_us, (100 + 31 * 4) * MS / 32);
    (void)connect_now(0, 4 * MS);
    assert_int_equal(b.reconnect_us, 4 * MS);
    assert_int_equal(b.hold_us, RIG_HOLD_US);
    for (uint32_t i = 0; i < 32; i++)
        (void)connect_now(0, 5 * S);
    assert_int_equal(b.hold_us, 2 * S);
}

/* Logging in anew on an open connection may take a hundredth of a connect. */
static void test_rebinding_is_measured_apart(void **state)
{
    (void)state;
    begin(2, 1, 2);
    (void)connect_now(0, 50 * MS);
    now += 1 * S;
    struct hg_balance_plan move = {HG_BALANCE_MOVE, &blocks[1], newest};
    carry_out(move, false);
    now += 500;
    come_up(newest);
    assert_int_equal(b.reconnect_us, 500);
    assert_int_equal(b.hold_us, RIG_HOLD_US);
    (void)connect_now(0, 80 * MS);
    assert_int_equal(b.reconnect_us, 500);
}

/* Trap 8: a failed connection is nothing that is kept, nor is its error. */
static void test_error_goes_to_whom_nothing_else_can_serve(void **state)
{
    (void)state;
    begin(2, 1, 2);
    (void)request(0);
    (void)request(0);
    assert_int_equal(break_down(&conns[0]), 0); /* the other may come up */
    assert_int_equal(blocks[0].waiters, 2);
    assert_int_equal(break_down(&conns[1]), 1);
    assert_int_equal(b.total, 0);
    assert_int_equal(blocks[0].waiters, 1);
    assert_int_equal(tick(), 1); /* one more try for the one that is left */
    assert_int_equal(ops[0].verb, HG_BALANCE_CREATE);
    now += 5 * MS;
    come_up(newest);
    assert_int_equal(blocks[0].waiters, 0);
    (void)answer(newest);
    assert_int_equal(request(0), HG_BALANCE_USE); /* no error is left for it */
}

static void test_sources(void **state)
{
    (void)state;
    begin(2, 8, 2);
    assert_false(hg_balance_has_source(&blocks[0]));
    carry_out((struct hg_balance_plan){HG_BALANCE_CREATE, &blocks[0], NULL}, false);
    assert_true(hg_balance_has_source(&blocks[0]));
    now += 1 * MS;
    hg_balance_conn_up(&b, newest, now);
    assert_true(hg_balance_has_source(&blocks[0]));
    put(newest);
    assert_true(hg_balance_has_source(&blocks[0]));
    hg_balance_conn_drain(&b, newest, &blocks[1], now);
    assert_false(hg_balance_has_source(&blocks[0])); /* takes nothing new of it */
    assert_true(hg_balance_has_source(&blocks[1]));
    hg_balance_conn_gone(&b, newest, false, now);
    assert_false(hg_balance_has_source(&blocks[1]));
    assert_int_equal(b.drains, 0);
}

/* Trap 7: no connection is left, but somebody waits. */
static void test_ticks_go_on_without_connections(void **state)
{
    (void)state;
    begin(3, 1, 1);
    for (uint32_t i = 0; i < 20; i++)
        (void)request(0);
    for (uint32_t i = 0; i < 3; i++)
        (void)break_down(&conns[i]);
    assert_int_equal(b.total, 0);
    assert_int_equal(blocks[0].waiters, 19); /* the last failure had nobody beside it */
    assert_true(hg_balance_needs_tick(&b));
    assert_int_equal(tick(), 3);
    assert_int_equal(planned(HG_BALANCE_CREATE), 3);
}

/* Trap 18: one that is lost is replaced while somebody waits. */
static void test_lost_one_is_replaced(void **state)
{
    (void)state;
    begin(1, 1, 1);
    (void)connect_now(0, 5 * MS);
    (void)request(0);
    (void)request(0);
    hg_balance_conn_gone(&b, newest, false, now);
    assert_int_equal(blocks[0].waiters, 1);
    assert_int_equal(tick(), 1);
    assert_int_equal(ops[0].verb, HG_BALANCE_CREATE);
}

/* Trap 13: one tick opens no more than can be of use. */
static void test_a_tick_does_not_overshoot(void **state)
{
    (void)state;
    begin(20, 1, 2);
    for (uint32_t i = 0; i < 3; i++)
        hg_balance_wait_begin(&b, &blocks[0], now);
    hg_balance_wait_begin(&b, &blocks[1], now);
    (void)tick();
    assert_int_equal(planned(HG_BALANCE_CREATE), 4);
    assert_int_equal(hg_balance_size(&blocks[0]), 3);
    assert_int_equal(hg_balance_size(&blocks[1]), 1);
    (void)tick();
    assert_int_equal(b.total, 4);
}

static void test_replacing_the_object(void **state)
{
    (void)state;
    begin(3, 1, 1);
    struct hg_balance_conn *c[3], fresh = {0};
    for (uint32_t i = 0; i < 3; i++)
        c[i] = connect_now(0, 5 * MS);
    hg_balance_conn_replace(c[1], &fresh);
    assert_int_equal(c[1]->state, HG_BALANCE_GONE);
    assert_ptr_equal(fresh.block, &blocks[0]);
    assert_ptr_equal(c[0]->node.next, &fresh.node);
    assert_ptr_equal(fresh.lru.next, &c[2]->lru);
    hg_balance_conn_gone(&b, &fresh, false, now);
    assert_ptr_equal(c[0]->node.next, &c[2]->node);
    assert_int_equal(b.total, 2);
    struct hg_balance_conn only = {0}, last = {0};
    begin(3, 1, 1);
    hg_balance_conn_add(&b, &only, &blocks[0], now);
    hg_balance_conn_replace(&only, &last);
    hg_balance_conn_up(&b, &last, now + 1);
    assert_int_equal(request(0), HG_BALANCE_USE);
    assert_int_equal(last.state, HG_BALANCE_BUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_is_used_before_anything_is_opened),
        cmocka_unit_test(test_idle_is_used_before_anything_is_stolen),
        cmocka_unit_test(test_last_used_first),
        cmocka_unit_test(test_what_is_coming_counts),
        cmocka_unit_test(test_no_connect_that_helps_nobody),
        cmocka_unit_test(test_closing_holds_capacity),
        cmocka_unit_test(test_hold_when_a_request_comes),
        cmocka_unit_test(test_hold_when_one_is_released),
        cmocka_unit_test(test_hold_when_a_tick_rebalances),
        cmocka_unit_test(test_no_hold_without_work),
        cmocka_unit_test(test_failures_are_no_samples),
        cmocka_unit_test(test_mean_of_the_last_32),
        cmocka_unit_test(test_rebinding_is_measured_apart),
        cmocka_unit_test(test_error_goes_to_whom_nothing_else_can_serve),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_ticks_go_on_without_connections),
        cmocka_unit_test(test_lost_one_is_replaced),
        cmocka_unit_test(test_a_tick_does_not_overshoot),
        cmocka_unit_test(test_replacing_the_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
