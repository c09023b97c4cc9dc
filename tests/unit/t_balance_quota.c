// t_balance_quota - demand of blocks, and their shares of the connections
// SPDX-License-Identifier: BSD-3-Clause
//
// Traffic is told directly: so many arrivals and answers per tick, each answer of so much busy
// time.
#include "balancerig.h"

struct traffic {
    double per_s, service_us;
    double owed; /* fractions of arrivals, until they are whole */
};

static struct traffic traffic[RIG_BLOCKS];

static void set_traffic(uint32_t block, double per_s, double service_us)
{
    traffic[block] = (struct traffic){per_s, service_us, 0};
}

static void begin_quiet(uint32_t capacity, uint32_t block_count)
{
    memset(traffic, 0, sizeof traffic);
    begin(capacity, 1, block_count);
}

/* Steady traffic for so many ticks; nothing that is planned is done. */
static void run(uint32_t ticks)
{
    for (uint32_t t = 0; t < ticks; t++) {
        for (uint32_t i = 0; i < RIG_BLOCKS; i++) {
            traffic[i].owed += traffic[i].per_s * HG_BALANCE_TICK_US / 1e6;
            for (; traffic[i].owed >= 1; traffic[i].owed--) {
                hg_balance_arrived(&b, &blocks[i], now);
                blocks[i].answers++;
                blocks[i].busy_us += (uint64_t)traffic[i].service_us;
            }
        }
        now += HG_BALANCE_TICK_US;
        op_count = hg_balance_rebalance(&b, ops, HG_BALANCE_OPS_MAX, now);
    }
}

static void wait_in(uint32_t block, uint32_t n)
{
    while (blocks[block].waiters < n)
        hg_balance_wait_begin(&b, &blocks[block], now);
    while (blocks[block].waiters > n)
        hg_balance_wait_end(&b, &blocks[block], now);
}

static uint32_t quota_sum(void)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < b.block_count; i++)
        sum += blocks[i].quota;
    return sum;
}

static void assert_near(double value, double expected, double share)
{
    if (!(value >= expected * (1 - share) && value <= expected * (1 + share)))
        fail_msg("%g is not near %g", value, expected);
}

static void test_demand_is_rate_times_service(void **state)
{
    (void)state;
    begin_quiet(100, 3);
    set_traffic(0, 1000, 5000);
    set_traffic(1, 100, 5000);
    run(64);
    assert_near(blocks[0].demand, 5, .02);
    assert_near(blocks[1].demand, .5, .02);
    assert_near(blocks[0].service_us, 5000, .01);
    assert_int_equal(blocks[2].quota, 0);
    assert_false(b.constrained);
    wait_in(0, 20); /* 20 x 5 ms in 100 ms: one connection more */
    run(64);
    assert_near(blocks[0].demand, 6, .02);
}

/* Trap 20: a millisecond is too coarse for what takes 50 us. */
static void test_microseconds(void **state)
{
    (void)state;
    begin_quiet(100, 1);
    set_traffic(0, 30000, 50);
    run(64);
    assert_near(blocks[0].demand, 1.5, .02);
    assert_int_equal(blocks[0].quota, 3);
}

/* Trap 31: 16 requests at a time on one connection, answered every 1 ms: each stays for 16 ms, but
   occupies the connection for 1 ms. */
static void test_depth_does_not_make_demand(void **state)
{
    (void)state;
    begin(10, 16, 1);
    struct hg_balance_conn *conn = connect_now(0, 1 * MS);
    for (uint32_t i = 0; i < 16; i++) {
        hg_balance_arrived(&b, &blocks[0], now);
        put(conn);
    }
    for (uint32_t t = 0; t < 50; t++) {
        for (uint32_t i = 0; i < 10; i++) {
            now += 1 * MS;
            hg_balance_answered(conn, 1, now);
            hg_balance_arrived(&b, &blocks[0], now);
        }
        now -= HG_BALANCE_TICK_US;
        (void)tick();
    }
    assert_near(blocks[0].service_us, 1000, .02);
    /* One that is always busy, and 15 in line behind one another: 1 + 15 x 1 / 100. */
    assert_near(blocks[0].demand, 1.15, .02);
    assert_int_equal(b.total, 1);
}

/* Many connections that just began work must not look like one slow answer. */
static void test_what_is_begun_is_no_service_time(void **state)
{
    (void)state;
    begin(20, 1, 1);
    for (uint32_t i = 0; i < 20; i++)
        (void)connect_now(0, 1 * MS);
    for (uint32_t i = 0; i < 20; i++)
        (void)request(0);
    now += 8 * MS;
    (void)answer(&conns[0]);
    (void)tick();
    assert_near(blocks[0].service_us, 8000, .01);
}

/* Trap 12: what came and went between two ticks counts. */
static void test_what_happens_between_ticks(void **state)
{
    (void)state;
    begin(4, 1, 1);
    (void)connect_now(0, 1 * MS);
    (void)request(0);
    now += 2 * MS;
    (void)answer(newest);
    (void)tick();
    assert_true(blocks[0].demand > 0);
    assert_int_equal(blocks[0].quota, 1);
}

static void test_shares_are_by_demand_and_sum_up(void **state)
{
    (void)state;
    begin_quiet(50, 6);
    for (uint32_t i = 0; i < 6; i++)
        set_traffic(i, 1000, 10000 * (i + 1)); /* 10 to 60: of 50, 2.4 to 14.3 */
    run(64);
    assert_true(b.constrained);
    assert_false(b.ring);
    for (uint32_t i = 0; i < 6; i++) {
        double exact = 50.0 * (i + 1) / 21;
        assert_true(blocks[i].quota >= (uint32_t)exact && blocks[i].quota <= (uint32_t)exact + 1);
    }
    assert_int_equal(quota_sum(), 50);
}

/* Trap 14, second half: nobody with demand ends at 0, and nothing is left over. */
static void test_small_ones_get_one(void **state)
{
    (void)state;
    begin_quiet(10, 6);
    set_traffic(0, 10000, 10000);
    for (uint32_t i = 1; i < 6; i++)
        set_traffic(i, 20, 1000);
    run(64);
    assert_int_equal(blocks[0].quota, 5);
    for (uint32_t i = 1; i < 6; i++)
        assert_int_equal(blocks[i].quota, 1);
}

/* More than would be 70 % busy is of no use to a block, but is to others. */
static void test_no_more_than_is_useful(void **state)
{
    (void)state;
    begin_quiet(20, 3);
    set_traffic(0, 1000, 100000);
    set_traffic(1, 100, 20000); /* 2.0: 3 */
    set_traffic(2, 100, 6000);  /* 0.6: 1 */
    run(64);
    assert_int_equal(quota_sum(), 20);
    assert_true(blocks[1].quota <= 3);
    assert_int_equal(blocks[2].quota, 1);
    assert_true(blocks[0].quota >= 16);
    set_traffic(0, 10, 100000); /* 1.0: 2; all fits */
    run(200);
    assert_false(b.constrained);
    assert_int_equal(blocks[0].quota, 2);
    assert_int_equal(blocks[1].quota, 3);
}

/* ... also where the sum of what is useful would not fit: what one may not have, others get. */
static void test_no_more_than_is_useful_when_shared(void **state)
{
    (void)state;
    begin_quiet(28, 11);
    set_traffic(0, 690, 10000); /* 6.9: 10 */
    for (uint32_t i = 1; i < 11; i++)
        set_traffic(i, 75, 10000); /* 0.75: 2 */
    run(64);
    assert_true(b.constrained);
    assert_int_equal(blocks[0].quota, 10);
    assert_int_equal(quota_sum(), 28);
}

static void test_one_tick_does_not_change_a_quota(void **state)
{
    (void)state;
    begin_quiet(12, 2);
    set_traffic(0, 1000, 12000);
    set_traffic(1, 1000, 12000);
    run(64);
    assert_int_equal(blocks[0].quota, 6);
    blocks[0].arrivals += 300; /* a burst, for one tick */
    run(1);
    assert_true(blocks[0].target > 6);
    assert_int_equal(blocks[0].quota, 6);
    run(1);
    assert_true(blocks[0].quota > 6);
    assert_int_equal(quota_sum(), 12);
}

static void test_jitter_does_not_change_quotas(void **state)
{
    (void)state;
    begin_quiet(10, 4);
    for (uint32_t i = 0; i < 4; i++)
        set_traffic(i, 1000, 10000);
    run(64);
    uint32_t changes = 0, before[4];
    for (uint32_t t = 0; t < 300; t++) {
        for (uint32_t i = 0; i < 4; i++) {
            before[i] = blocks[i].quota;
            traffic[i].service_us = 9000 + (t * 7 + i * 3) % 11 * 200; /* 9 to 11 ms */
        }
        run(1);
        assert_int_equal(quota_sum(), 10);
        for (uint32_t i = 0; i < 4; i++)
            changes += before[i] != blocks[i].quota;
    }
    /* What rounding owes is paid back, each time for two blocks: every 4 ticks at most. */
    assert_true(changes <= 2 * 2 * 300 / 4);
    assert_true(changes > 0);
}

/* Of 10 connections, 4 equal blocks have 2.5 each, over time. */
static void test_rounding_is_paid_back(void **state)
{
    uint64_t sums[4] = {0};
    (void)state;
    begin_quiet(10, 4);
    for (uint32_t i = 0; i < 4; i++)
        set_traffic(i, 1000, 10000);
    run(64);
    for (uint32_t t = 0; t < 400; t++) {
        run(1);
        for (uint32_t i = 0; i < 4; i++)
            sums[i] += blocks[i].quota;
    }
    for (uint32_t i = 0; i < 4; i++)
        assert_near((double)sums[i] / 400, 2.5, .03);
}

static void test_newcomers_and_leavers(void **state)
{
    (void)state;
    begin_quiet(10, 3);
    set_traffic(0, 1000, 20000);
    set_traffic(1, 1000, 20000);
    run(64);
    assert_int_equal(blocks[0].quota, 5);
    hg_balance_arrived(&b, &blocks[2], now);
    run(1);
    assert_int_equal(blocks[2].quota, 1); /* at once */
    assert_int_equal(quota_sum(), 10);
    set_traffic(1, 0, 0);
    run(20);
    assert_int_equal(blocks[1].quota, 0);
    assert_int_equal(blocks[2].quota, 0);
    assert_int_equal(blocks[0].quota, 10);
    assert_true(hg_balance_needs_tick(&b));
    set_traffic(0, 0, 0);
    run(20);
    assert_false(hg_balance_needs_tick(&b));
}

/* Trap 9: more blocks than connections is no reason for everybody to take from everybody. */
static void test_more_blocks_than_connections(void **state)
{
    (void)state;
    begin_quiet(4, 12);
    for (uint32_t i = 0; i < 12; i++)
        set_traffic(i, 100, 20000);
    run(32);
    assert_true(b.ring);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(blocks[i].quota, 1);
    struct hg_balance_conn *own = connect_now(0, 20 * MS);
    for (uint32_t i = 1; i < 4; i++)
        (void)connect_now(i, 20 * MS);
    now += 10 * S;
    assert_int_equal(request(0), HG_BALANCE_USE); /* not from itself either */
    assert_ptr_equal(own->block, &blocks[0]);
    assert_int_equal(own->state, HG_BALANCE_BUSY);
}

static void test_no_capacity_at_all(void **state)
{
    (void)state;
    begin_quiet(0, 2);
    set_traffic(0, 100, 1000);
    wait_in(0, 5);
    run(32);
    assert_int_equal(op_count, 0);
    assert_int_equal(hg_balance_wanted(&b), 5);
    hg_balance_set_capacity(&b, 1);
    run(1);
    assert_int_equal(op_count, 1);
    assert_int_equal(ops[0].verb, HG_BALANCE_CREATE);
}

/* After a rest no tick was due: the first one must not spread what came over the rest. */
static void test_after_a_rest(void **state)
{
    (void)state;
    begin_quiet(100, 1);
    now += 3600 * S;
    set_traffic(0, 1000, 5000);
    run(1);
    assert_near(blocks[0].demand, 5, .01);
}

/* Demands of 4 and 6, on ten connections; the first takes ten times as long from then on. */
static void begin_slow(uint32_t usual_ticks)
{
    begin_quiet(10, 2);
    set_traffic(0, 400, 10 * MS);
    set_traffic(1, 600, 10 * MS);
    run(usual_ticks);
    assert_int_equal(blocks[0].quota, 4);
    assert_int_equal(blocks[1].quota, 6);
    set_traffic(0, 400, 100 * MS);
}

static void test_a_slowed_block_keeps_its_share(void **state)
{
    (void)state;
    begin_slow(200);
    run(64);
    assert_true(blocks[0].slowed);
    assert_false(blocks[1].slowed);
    assert_near(blocks[0].demand, 40, .05); /* as it is, for who reads it */
    assert_int_equal(blocks[0].quota, 4);
    assert_int_equal(blocks[1].quota, 6);
    /* A line that grows changes nothing, and what the other leaves is to be had. */
    wait_in(0, 500);
    set_traffic(1, 100, 10 * MS);
    run(64);
    assert_int_equal(blocks[1].quota, 2);
    assert_int_equal(blocks[0].quota, 8);
    wait_in(0, 0);
    set_traffic(1, 600, 10 * MS);
    set_traffic(0, 400, 10 * MS);
    run(200); /* until nothing of the line is left in the averages */
    assert_false(blocks[0].slowed);
    assert_int_equal(blocks[0].quota, 4);
}

/* After a minute what takes so long is the usual. */
static void test_slowness_becomes_usual(void **state)
{
    (void)state;
    begin_slow(200);
    run(5900);
    assert_true(blocks[0].slowed);
    assert_int_equal(blocks[0].quota, 4);
    run(200);
    assert_false(blocks[0].slowed);
    assert_in_range(blocks[0].quota, 8, 9); /* 40 and 6 on ten: 8.7 */
    run(200);
    assert_false(blocks[0].slowed);
}

/* Three times as long is no slowness: that is how workloads vary. */
static void test_what_varies_is_not_slowed(void **state)
{
    (void)state;
    begin_slow(200);
    set_traffic(0, 400, 30 * MS);
    for (uint32_t t = 0; t < 100; t++) {
        run(1);
        assert_false(blocks[0].slowed);
    }
    assert_true(blocks[0].quota > 4);
}

/* Who had nothing to do for a while begins something else. */
static void test_new_work_after_a_pause_is_not_slowed(void **state)
{
    (void)state;
    begin_slow(200);
    set_traffic(0, 0, 0);
    run(64);
    set_traffic(0, 400, 100 * MS);
    for (uint32_t t = 0; t < 200; t++) {
        run(1);
        assert_false(blocks[0].slowed);
    }
    assert_in_range(blocks[0].quota, 8, 9);
}

/* Half a second of traffic makes nothing usual. */
static void test_a_short_history_is_none(void **state)
{
    (void)state;
    begin_slow(50);
    for (uint32_t t = 0; t < 200; t++) {
        run(1);
        assert_false(blocks[0].slowed);
    }
}

/* Once in half a second an answer takes a hundred times as long as the others. */
static void test_one_slow_answer_is_no_slowness(void **state)
{
    (void)state;
    begin_slow(200);
    set_traffic(0, 400, 10 * MS);
    for (uint32_t t = 0; t < 1000; t++) {
        blocks[0].busy_us += t % 50 == 0 ? 990 * MS : 0;
        run(1);
        assert_false(blocks[0].slowed);
    }
}

/* No answer comes, though a connection is busy and others wait. */
static void test_silence_is_slowness(void **state)
{
    (void)state;
    begin_slow(200);
    set_traffic(0, 0, 0);
    struct hg_balance_conn *conn = connect_now(0, 1 * MS);
    (void)request(0);
    assert_int_equal(conn->state, HG_BALANCE_BUSY);
    run(64);
    assert_false(blocks[0].slowed); /* nobody waits */
    wait_in(0, 50);
    run(64);
    assert_true(blocks[0].slowed);
    set_traffic(0, 400, 10 * MS);
    run(64);
    assert_false(blocks[0].slowed);
    wait_in(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demand_is_rate_times_service),
        cmocka_unit_test(test_microseconds),
        cmocka_unit_test(test_depth_does_not_make_demand),
        cmocka_unit_test(test_what_is_begun_is_no_service_time),
        cmocka_unit_test(test_what_happens_between_ticks),
        cmocka_unit_test(test_shares_are_by_demand_and_sum_up),
        cmocka_unit_test(test_small_ones_get_one),
        cmocka_unit_test(test_no_more_than_is_useful),
        cmocka_unit_test(test_no_more_than_is_useful_when_shared),
        cmocka_unit_test(test_one_tick_does_not_change_a_quota),
        cmocka_unit_test(test_jitter_does_not_change_quotas),
        cmocka_unit_test(test_rounding_is_paid_back),
        cmocka_unit_test(test_newcomers_and_leavers),
        cmocka_unit_test(test_more_blocks_than_connections),
        cmocka_unit_test(test_no_capacity_at_all),
        cmocka_unit_test(test_after_a_rest),
        cmocka_unit_test(test_a_slowed_block_keeps_its_share),
        cmocka_unit_test(test_slowness_becomes_usual),
        cmocka_unit_test(test_what_varies_is_not_slowed),
        cmocka_unit_test(test_new_work_after_a_pause_is_not_slowed),
        cmocka_unit_test(test_a_short_history_is_none),
        cmocka_unit_test(test_one_slow_answer_is_no_slowness),
        cmocka_unit_test(test_silence_is_slowness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
