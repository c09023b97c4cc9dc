// t_poolsimrules - small cases of connection pools, each with one rule or one trap in it
// SPDX-License-Identifier: BSD-3-Clause
//
// Those of Gel's own tests that concern a pool and not its API, and the traps of its two pools that
// the planner must not have. Held queries keep their connection until the test says so.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "poolsim_balance.h"
#include "poolsim_load.h"
#include "simseeds.h"

#define MS 1000u
#define S  1000000u

static struct poolsim_setup setup_of(uint32_t capacity, uint32_t dbs, uint64_t idle_us,
                                     uint32_t connect_ms)
{
    return (struct poolsim_setup){
        .conf = {.capacity = capacity, .depth = 1, .dbs = dbs, .idle_us = idle_us},
        .connect = {connect_ms * MS, 0, 0},
        .disconnect = {1 * MS, 0, 0},
        .seed = 1,
    };
}

static struct poolsim *start(uint32_t capacity, uint32_t dbs, uint64_t idle_us, uint32_t connect_ms)
{
    struct poolsim_setup setup = setup_of(capacity, dbs, idle_us, connect_ms);
    return poolsim_new(&setup, &poolsim_balance);
}

static enum poolsim_fate fate(struct poolsim *sim, uint32_t query)
{
    return poolsim_query(sim, query)->fate;
}

/* Runs on until the query has a connection; the bound is far beyond what any rule needs. */
static void assert_gets_one(struct poolsim *sim, uint32_t query)
{
    uint64_t end_us = poolsim_now_us(sim) + 5 * S;
    while (fate(sim, query) < POOLSIM_WORKED_ON && poolsim_now_us(sim) < end_us)
        poolsim_run(sim, poolsim_now_us(sim) + 1 * MS);
    assert_true(fate(sim, query) == POOLSIM_WORKED_ON || fate(sim, query) == POOLSIM_ANSWERED);
}

static void test_eventually_idle(void **state)
{
    (void)state;
    struct poolsim *sim = start(10, 1, 1 * S, 50);
    poolsim_submit(sim, 0, 0, 10 * MS);
    poolsim_run(sim, 500 * MS);
    assert_int_equal(poolsim_count(sim), 1);
    poolsim_run(sim, 2 * S);
    assert_int_equal(poolsim_count(sim), 0);
    poolsim_free(sim);
}

static void test_all_are_collected_from_the_most(void **state)
{
    static const uint32_t dbs[] = {1, 3, 10}, capacities[] = {10, 100};
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct poolsim *sim = start(capacities[i % 2], dbs[i / 2], 1 * S, 50);
        for (uint32_t q = 0; q < 10; q++)
            poolsim_submit(sim, q % dbs[i / 2], 0, 10 * MS);
        assert_true(poolsim_run_out(sim, 5 * S));
        assert_in_range(poolsim_count(sim), 1, 10);
        poolsim_run(sim, 10 * S);
        assert_int_equal(poolsim_count(sim), 0);
        poolsim_free(sim);
    }
}

/* One after the other needs one connection (both of Gel's pools once opened one for each). */
static void test_sequential_queries_share_one(void **state)
{
    (void)state;
    struct poolsim *sim = start(10, 2, 120 * S, 50);
    for (uint32_t i = 0; i < 50; i++)
        poolsim_submit(sim, 0, 100 * MS + i * 20 * MS, 10 * MS);
    assert_true(poolsim_run_out(sim, 5 * S));
    assert_in_range(poolsim_counts(sim)->connects, 1, 6); /* five come while the first connects */
    assert_int_equal(poolsim_counts(sim)->moves, 0);
    uint64_t connects = poolsim_counts(sim)->connects;
    for (uint32_t i = 0; i < 50; i++)
        poolsim_submit(sim, 0, 2 * S + i * 20 * MS, 10 * MS);
    assert_true(poolsim_run_out(sim, 5 * S));
    assert_int_equal(poolsim_counts(sim)->connects, connects);
    poolsim_free(sim);
}

/* 100 at once on three connections: served in the order in which they came. */
static void test_the_line_is_first_come_first_served(void **state)
{
    (void)state;
    struct poolsim *sim = start(3, 1, 120 * S, 50);
    for (uint32_t i = 0; i < 100; i++)
        poolsim_submit(sim, 0, i, 10 * MS);
    assert_true(poolsim_run_out(sim, 5 * S));
    assert_in_range(poolsim_counts(sim)->connects, 1, 3);
    for (uint32_t i = 1; i < 100; i++)
        assert_true(poolsim_query(sim, i)->begun_us >= poolsim_query(sim, i - 1)->begun_us);
    poolsim_free(sim);
}

struct moves {
    uint32_t count, to[32];
};

static void watch_moves(void *arg, const struct poolsim_conn *conn, enum poolsim_state state,
                        uint32_t db)
{
    struct moves *moves = arg;
    (void)conn;
    if (state == POOLSIM_MOVING && moves->count < 32)
        moves->to[moves->count++] = db;
}

/* 15 blocks on 10: ten get one, five wait; the first five that end go to those, in order, the last
   five stay where they are. */
static void test_starved(void **state)
{
    struct moves moves = {0};
    (void)state;
    struct poolsim *sim = start(10, 15, 120 * S, 50);
    poolsim_watch(sim, watch_moves, &moves);
    for (uint32_t db = 0; db < 15; db++)
        poolsim_submit(sim, db, db, POOLSIM_HELD);
    poolsim_run(sim, 5 * S);
    for (uint32_t db = 0; db < 15; db++)
        assert_int_equal(fate(sim, db), db < 10 ? POOLSIM_WORKED_ON : POOLSIM_WAITS);
    assert_int_equal(poolsim_counts(sim)->connects, 10);
    for (uint32_t db = 0; db < 5; db++) {
        poolsim_finish(sim, db);
        poolsim_run(sim, 5 * S + (db + 1) * MS);
    }
    assert_int_equal(moves.count, 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(moves.to[i], 10 + i);
    poolsim_run(sim, 6 * S);
    for (uint32_t db = 5; db < 15; db++) {
        assert_int_equal(fate(sim, db), POOLSIM_WORKED_ON);
        poolsim_finish(sim, db);
    }
    poolsim_run(sim, 7 * S);
    assert_int_equal(moves.count, 5);
    poolsim_free(sim);
}

/* A long transaction of each of two blocks, and another query of one of them: no deadlock. */
static void test_long_transactions(void **state)
{
    (void)state;
    struct poolsim *sim = start(10, 2, 120 * S, 50);
    uint32_t b = poolsim_submit(sim, 1, 0, POOLSIM_HELD);
    uint32_t a = poolsim_submit(sim, 0, 50 * MS, POOLSIM_HELD);
    uint32_t third = poolsim_submit(sim, 0, 50 * MS + 1, POOLSIM_HELD);
    assert_gets_one(sim, third);
    assert_int_equal(fate(sim, a), POOLSIM_WORKED_ON);
    assert_int_equal(fate(sim, b), POOLSIM_WORKED_ON);
    poolsim_free(sim);
}

/* Four of five are held by A, one by B, which wants a second before it lets go: when A's are let
   go, one of them must move. */
static void test_wrong_quota(void **state)
{
    uint32_t a[4], b, second;
    (void)state;
    struct poolsim *sim = start(5, 2, 120 * S, 50);
    for (uint32_t i = 0; i < 4; i++)
        a[i] = poolsim_submit(sim, 0, i, POOLSIM_HELD);
    b = poolsim_submit(sim, 1, 10, POOLSIM_HELD);
    second = poolsim_submit(sim, 1, 100 * MS, POOLSIM_HELD);
    poolsim_run(sim, 200 * MS);
    assert_int_equal(fate(sim, second), POOLSIM_WAITS);
    for (uint32_t i = 0; i < 4; i++)
        poolsim_finish(sim, a[i]);
    assert_gets_one(sim, second);
    assert_int_equal(fate(sim, b), POOLSIM_WORKED_ON);
    assert_int_equal(poolsim_counts(sim)->moves, 1);
    poolsim_free(sim);
}

/* Ten blocks on five; each keeps its connection until five have got one in all. */
static void test_no_eternal_starvation(void **state)
{
    (void)state;
    struct poolsim *sim = start(5, 10, 120 * S, 0);
    for (uint32_t db = 0; db < 10; db++)
        poolsim_submit(sim, db, 0, POOLSIM_HELD);
    uint32_t got = 0, ended = 0;
    while (ended < 10 && poolsim_now_us(sim) < 3 * S) {
        poolsim_run(sim, poolsim_now_us(sim) + 1 * MS);
        got = ended;
        for (uint32_t q = 0; q < 10; q++)
            got += fate(sim, q) == POOLSIM_WORKED_ON;
        for (uint32_t q = 0; q < 10 && got >= 5; q++)
            if (fate(sim, q) == POOLSIM_WORKED_ON) {
                poolsim_finish(sim, q);
                poolsim_run(sim, poolsim_now_us(sim));
                ended++;
            }
    }
    assert_int_equal(ended, 10);
    poolsim_free(sim);
}

/* The error of a connect is the query's that has no other hope, once; the next tries anew. */
static void test_a_connect_error_is_told_once(void **state)
{
    struct poolsim_setup setup = setup_of(10, 1, 120 * S, 50);
    (void)state;
    setup.fail_first = 1;
    struct poolsim *sim = poolsim_new(&setup, &poolsim_balance);
    uint32_t first = poolsim_submit(sim, 0, 0, 10 * MS);
    uint32_t second = poolsim_submit(sim, 0, 60 * S, 10 * MS);
    assert_true(poolsim_run_out(sim, 100 * S));
    assert_int_equal(fate(sim, first), POOLSIM_REFUSED);
    assert_int_equal(poolsim_query(sim, first)->end_us, 50 * MS);
    assert_int_equal(fate(sim, second), POOLSIM_ANSWERED); /* no stale error from the first */
    assert_int_equal(poolsim_counts(sim)->connects, 2);
    poolsim_free(sim);
}

/* Not while another connection, on its way or in use, can serve it. */
static void test_a_connect_error_is_nobodys_while_there_is_hope(void **state)
{
    struct poolsim_setup setup = setup_of(10, 1, 120 * S, 50);
    (void)state;
    struct poolsim *sim = poolsim_new(&setup, &poolsim_balance);
    poolsim_submit(sim, 0, 0, 10 * MS);
    assert_true(poolsim_run_out(sim, 1 * S));
    poolsim_free(sim);
    setup.fail_first = 3;
    sim = poolsim_new(&setup, &poolsim_balance);
    for (uint32_t i = 0; i < 4; i++)
        poolsim_submit(sim, 0, i * MS, 10 * MS);
    assert_true(poolsim_run_out(sim, 5 * S));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(fate(sim, i), POOLSIM_ANSWERED);
    assert_int_equal(poolsim_counts(sim)->failures, 3);
    poolsim_free(sim);
}

/* All that come up fail while 50 wait, and nobody comes anew: none of them sleeps for ever. */
static void test_failures_strand_nobody(void **state)
{
    struct poolsim_setup setup = setup_of(5, 1, 120 * S, 50);
    (void)state;
    setup.fail_first = 12;
    struct poolsim *sim = poolsim_new(&setup, &poolsim_balance);
    for (uint32_t i = 0; i < 50; i++)
        poolsim_submit(sim, 0, 0, 10 * MS);
    assert_true(poolsim_run_out(sim, 10 * S));
    uint32_t answered = 0;
    for (uint32_t i = 0; i < 50; i++)
        answered += fate(sim, i) == POOLSIM_ANSWERED;
    printf("# 12 failed connects, 50 waiting: %u answered\n", (unsigned)answered);
    assert_in_range(answered, 38, 50);
    poolsim_free(sim);
}

/* B takes from A, and the first two connects to B fail: A goes on, B's third query is served. */
static void test_a_steal_that_fails(void **state)
{
    struct poolsim_setup setup = setup_of(2, 2, 120 * S, 50);
    (void)state;
    setup.fail_first = 2;
    setup.fail_db = 1;
    struct poolsim *sim = poolsim_new(&setup, &poolsim_balance);
    poolsim_submit(sim, 0, 0, 10 * MS);
    poolsim_submit(sim, 0, 0, 10 * MS);
    uint32_t b[3];
    for (uint32_t i = 0; i < 3; i++)
        b[i] = poolsim_submit(sim, 1, 5 * S + i * S, 10 * MS);
    uint32_t a = poolsim_submit(sim, 0, 9 * S, 10 * MS);
    assert_true(poolsim_run_out(sim, 60 * S));
    assert_int_equal(poolsim_counts(sim)->moves, 1);
    assert_int_equal(poolsim_counts(sim)->failures, 2);
    assert_int_equal(fate(sim, b[0]), POOLSIM_REFUSED);
    assert_int_equal(fate(sim, b[2]), POOLSIM_ANSWERED);
    assert_int_equal(fate(sim, a), POOLSIM_ANSWERED);
    poolsim_free(sim);
}

/* Everything is to end while a query still has its connection: it keeps it, then it is closed. */
static void test_drain_all(void **state)
{
    (void)state;
    struct poolsim *sim = start(10, 3, 120 * S, 50);
    for (uint32_t db = 0; db < 3; db++)
        poolsim_submit(sim, db, 0, 10 * MS);
    uint32_t held = poolsim_submit(sim, 0, 1 * S, POOLSIM_HELD);
    poolsim_run(sim, 2 * S);
    assert_int_equal(poolsim_count(sim), 3);
    hg_balance_drain(&((struct poolsim_balance_pool *)poolsim_own(sim))->balance);
    poolsim_tick_in(sim, 1);
    poolsim_run(sim, 2 * S + 100 * MS);
    assert_int_equal(poolsim_count(sim), 1);
    assert_int_equal(fate(sim, held), POOLSIM_WORKED_ON);
    poolsim_finish(sim, held);
    poolsim_run(sim, 3 * S);
    assert_int_equal(poolsim_count(sim), 0);
    poolsim_free(sim);
}

/* Gel's plain load test: 10 connections, 1,200 queries of 1 ms a second from each block. */
static void test_plain_loads(void **state)
{
    static const uint32_t dbs[] = {1, 10, 12, 20};
    (void)state;
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t p = sim_runs_all() ? 0 : 1; p < 2; p++) {
            struct poolsim_load load = {.duration_us = S, .part_count = 2};
            struct poolsim_result result;
            load.setup = setup_of(10, 0, 100 * MS, 50);
            for (uint32_t db = 0; db < dbs[k]; db++)
                poolsim_load_row(&load, db, 0, 1000, 1200, 1 * MS, 0);
            load.parts[0] =
                (struct poolsim_part){POOLSIM_SPREAD, {0, dbs[k] - 1}, {0, 0}, 0, .25, .5, 2, .8};
            load.parts[1] =
                (struct poolsim_part){POOLSIM_OVERHEAD, {0, 0}, {0, 0}, 0, .1, .2, .5, .2};
            poolsim_load_run(&load, p == 0 ? &poolsim_python : &poolsim_balance, &result);
            printf("# %s, %u blocks on 10: score %.1f, spread %.3f, %.4f moves a query, wait p50 "
                   "%.1f ms, p99 %.1f ms\n",
                   p == 0 ? "gel-python" : "headgate", (unsigned)dbs[k], result.score,
                   result.values[0], result.overhead, result.p50_ms, result.p99_ms);
            if (p == 0)
                continue;
            assert_true(result.drained);
            assert_int_equal(result.answered, result.queries);
            assert_true(result.score >= 80);
        }
}

/* The simulation itself: the same seed gives the same run, whatever ran before; another one gives
   another. All pools meet the same queries. */
static void test_equal_seeds_give_equal_runs(void **state)
{
    static const struct poolsim_pool *const pools[] = {&poolsim_naive, &poolsim_rust,
                                                       &poolsim_python, &poolsim_balance};
    struct poolsim_query first[330];
    (void)state;
    for (uint32_t p = 0; p < 4; p++) {
        uint64_t ends_us[3], events[3];
        for (uint32_t k = 0; k < 3; k++) {
            struct poolsim_load load;
            poolsim_load_get(1, 1, k < 2 ? 7 : 8, POOLSIM_F, &load);
            struct poolsim *sim = poolsim_new(&load.setup, pools[p]);
            poolsim_load_submit(&load, sim);
            assert_int_equal(poolsim_queries(sim), 330);
            assert_true(poolsim_run_out(sim, 60 * S));
            ends_us[k] = poolsim_now_us(sim);
            events[k] = poolsim_counts(sim)->events;
            for (uint32_t i = 0; i < 330 && k < 2; i++) {
                const struct poolsim_query *query = poolsim_query(sim, i);
                if (p == 0 && k == 0)
                    first[i] = *query;
                assert_int_equal(query->db, first[i].db);
                assert_int_equal(query->at_us, first[i].at_us);
                assert_int_equal(query->cost_us, first[i].cost_us);
            }
            poolsim_free(sim);
        }
        assert_int_equal(ends_us[0], ends_us[1]);
        assert_int_equal(events[0], events[1]);
        assert_int_not_equal(ends_us[0], ends_us[2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eventually_idle),
        cmocka_unit_test(test_all_are_collected_from_the_most),
        cmocka_unit_test(test_sequential_queries_share_one),
        cmocka_unit_test(test_the_line_is_first_come_first_served),
        cmocka_unit_test(test_starved),
        cmocka_unit_test(test_long_transactions),
        cmocka_unit_test(test_wrong_quota),
        cmocka_unit_test(test_no_eternal_starvation),
        cmocka_unit_test(test_a_connect_error_is_told_once),
        cmocka_unit_test(test_a_connect_error_is_nobodys_while_there_is_hope),
        cmocka_unit_test(test_failures_strand_nobody),
        cmocka_unit_test(test_a_steal_that_fails),
        cmocka_unit_test(test_drain_all),
        cmocka_unit_test(test_plain_loads),
        cmocka_unit_test(test_equal_seeds_give_equal_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
