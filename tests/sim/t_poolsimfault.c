// t_poolsimfault - pools while the server restarts, connects fail and clients give up
// SPDX-License-Identifier: BSD-3-Clause
//
// The planner runs behind core/breaker, as in the store: the simulation asks the breaker before
// each connect, refuses queries while it is open, and probes. Gel's pools know no breaker; what
// they do is printed beside.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "poolsim_load.h"
#include "simseeds.h"

#define MS 1000u
#define S  1000000u

/* Four blocks that need one connection each, of six. */
#define STEADY     4
#define STEADY_QPS 100

struct connects {
    struct poolsim *sim;
    uint64_t *at_us;
    uint32_t count, room;
};

static void watch_connects(void *arg, const struct poolsim_conn *conn, enum poolsim_state state,
                           uint32_t db)
{
    struct connects *connects = arg;
    (void)conn, (void)db;
    if (state != POOLSIM_CONNECTING)
        return;
    if (connects->count == connects->room) {
        connects->room = connects->room > 0 ? connects->room * 2 : 64;
        connects->at_us = realloc(connects->at_us, connects->room * sizeof(uint64_t));
        assert_non_null(connects->at_us);
    }
    connects->at_us[connects->count++] = poolsim_now_us(connects->sim);
}

/* Connects, probes included but not moves, in the worst second of from_us .. to_us. */
static uint32_t worst_second(const struct connects *connects, uint64_t from_us, uint64_t to_us)
{
    uint32_t worst = 0;
    for (uint32_t i = 0, j = 0; i < connects->count; i++) {
        if (connects->at_us[i] < from_us || connects->at_us[i] >= to_us)
            continue;
        j = j > i ? j : i;
        while (j < connects->count && connects->at_us[j] < to_us &&
               connects->at_us[j] < connects->at_us[i] + S)
            j++;
        worst = j - i > worst ? j - i : worst;
    }
    return worst;
}

static uint32_t count_fates(struct poolsim *sim, enum poolsim_fate fate, uint32_t last_db,
                            uint64_t from_us, uint64_t to_us)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < poolsim_queries(sim); i++) {
        const struct poolsim_query *query = poolsim_query(sim, i);
        n += query->fate == fate && query->db <= last_db && query->end_us >= from_us &&
             query->end_us < to_us;
    }
    return n;
}

static void init(struct poolsim_load *load, uint32_t capacity)
{
    *load = (struct poolsim_load){.duration_us = S};
    load->setup.conf.capacity = capacity;
    load->setup.conf.depth = 1;
    load->setup.conf.idle_us = 120 * S;
    load->setup.connect = (struct poolsim_cost){10 * MS, 2 * MS, 0};
    load->setup.disconnect = (struct poolsim_cost){1 * MS, 0, 0};
    load->setup.refused_us = 100;
    load->setup.seed = 1;
}

static void steady(struct poolsim_load *load, uint64_t end_ms)
{
    for (uint32_t db = 0; db < STEADY; db++)
        poolsim_load_row(load, db, 0, end_ms, STEADY_QPS, 10 * MS, 5 * MS);
}

/* Restarts */

struct outcome {
    uint32_t worst_down, worst_after, lost, refused, late;
    double back_ms; // from the server's return until 95 % of the answers come again; -1: never
};

/* The server is away from 0.5 s on. */
static void restart(const struct poolsim_pool *pool, bool breaker, uint64_t seed, uint64_t away_ms,
                    struct outcome *ret)
{
    struct poolsim_load load;
    struct connects connects = {0};
    uint64_t down_us = 500 * MS, up_us = down_us + away_ms * MS, end_us = up_us + 3 * S;
    init(&load, 6);
    steady(&load, end_us / MS);
    load.setup.seed = seed;
    load.setup.breaker = breaker;
    load.setup.down_us = down_us;
    load.setup.up_us = up_us;
    struct poolsim *sim = connects.sim = poolsim_new(&load.setup, pool);
    poolsim_watch(sim, watch_connects, &connects);
    poolsim_load_submit(&load, sim);
    assert_true(poolsim_run_out(sim, end_us + 30 * S));
    *ret = (struct outcome){.back_ms = -1};
    ret->worst_down = worst_second(&connects, down_us, up_us);
    ret->worst_after = worst_second(&connects, up_us, end_us);
    ret->lost = count_fates(sim, POOLSIM_LOST, STEADY, 0, POOLSIM_FOREVER);
    ret->refused = count_fates(sim, POOLSIM_REFUSED, STEADY, 0, POOLSIM_FOREVER);
    ret->late = count_fates(sim, POOLSIM_REFUSED, STEADY, up_us + S, POOLSIM_FOREVER);
    for (uint64_t t_us = up_us; t_us + 100 * MS < end_us && ret->back_ms < 0; t_us += 10 * MS)
        if (count_fates(sim, POOLSIM_ANSWERED, STEADY, t_us, t_us + 100 * MS) >=
            STEADY * STEADY_QPS / 10 * .95)
            ret->back_ms = (double)(t_us - up_us) / MS;
    assert_true(count_fates(sim, POOLSIM_ANSWERED, STEADY, 0, POOLSIM_FOREVER) + ret->lost +
                    ret->refused ==
                poolsim_queries(sim));
    printf("# %s, away %u ms: connects in the worst second %u meanwhile, %u after; %u lost, %u "
           "refused, %u of them a second after its return; 95 %% of the answers after %.0f ms\n",
           pool->name, (unsigned)away_ms, (unsigned)ret->worst_down, (unsigned)ret->worst_after,
           (unsigned)ret->lost, (unsigned)ret->refused, (unsigned)ret->late, ret->back_ms);
    poolsim_free(sim);
    free(connects.at_us);
}

static void test_restart(void **state)
{
    static const uint64_t away_ms[] = {20, 500, 5000};
    struct outcome outcome;
    (void)state;
    if (sim_runs_all()) { /* to compare with: no bar is set for them */
        restart(&poolsim_rust, false, 1, 500, &outcome);
        restart(&poolsim_python, false, 1, 500, &outcome);
    }
    for (uint32_t k = 0; k < 3; k++)
        for (uint64_t seed = 1; seed <= sim_seeds(5); seed++) {
            restart(&poolsim_balance, true, seed, away_ms[k], &outcome);
            assert_in_range(outcome.lost, 1, 6); /* what was on the connections */
            assert_true(outcome.worst_down <= 10);
            assert_true(outcome.worst_after <= 10);
            assert_int_equal(outcome.late, 0);
            assert_true(outcome.back_ms >= 0 && outcome.back_ms <= 1000);
        }
}

/* Failing connects */

/* As in Gel's test: 10 connections, 1,200 queries of 1 ms a second from each block. */
static void failures(const struct poolsim_pool *pool, bool breaker, uint32_t dbs, uint32_t percent,
                     double *ret_answered)
{
    struct poolsim_load load;
    init(&load, 10);
    load.setup.connect = (struct poolsim_cost){50 * MS, 0, 0};
    load.setup.fail_percent = percent;
    load.setup.breaker = breaker;
    for (uint32_t db = 0; db < dbs; db++)
        poolsim_load_row(&load, db, 0, 1000, 1200, 1 * MS, 0);
    struct poolsim *sim = poolsim_new(&load.setup, pool);
    poolsim_load_submit(&load, sim);
    bool drained = poolsim_run_out(sim, 60 * S);
    uint32_t refused = count_fates(sim, POOLSIM_REFUSED, dbs, 0, POOLSIM_FOREVER);
    uint32_t answered = count_fates(sim, POOLSIM_ANSWERED, dbs, 0, POOLSIM_FOREVER);
    uint32_t lost = count_fates(sim, POOLSIM_LOST, dbs, 0, POOLSIM_FOREVER);
    printf("# %s%s, %u blocks, %u %% of connects fail: %u of %u queries answered, %u refused, %u "
           "lost, %u left; %u connects and moves, %u failed\n",
           pool->name, breaker ? " with breaker" : "", (unsigned)dbs, (unsigned)percent,
           (unsigned)answered, (unsigned)poolsim_queries(sim), (unsigned)refused, (unsigned)lost,
           (unsigned)(poolsim_queries(sim) - answered - refused - lost),
           (unsigned)(poolsim_counts(sim)->connects + poolsim_counts(sim)->moves),
           (unsigned)poolsim_counts(sim)->failures);
    if (pool == &poolsim_balance) {
        assert_true(drained);
        assert_int_equal(answered + refused + lost, poolsim_queries(sim));
    }
    *ret_answered = (double)answered / poolsim_queries(sim);
    poolsim_free(sim);
}

static void test_connects_that_fail(void **state)
{
    static const uint32_t dbs[] = {1, 10, 20}, percents[] = {10, 50, 90};
    (void)state;
    for (uint32_t d = 0; d < 3; d++)
        for (uint32_t p = 0; p < 3; p++) {
            double answered;
            if (sim_runs_all()) { /* to compare with */
                failures(&poolsim_rust, false, dbs[d], percents[p], &answered);
                failures(&poolsim_python, false, dbs[d], percents[p], &answered);
            }
            failures(&poolsim_balance, false, dbs[d], percents[p], &answered);
            /* Who has a connection, or one on its way, hears of no failure. */
            if (percents[p] == 10)
                assert_true(answered >= .99);
            else if (percents[p] == 50)
                assert_true(answered >= .95);
            failures(&poolsim_balance, true, dbs[d], percents[p], &answered);
        }
}

/* While one block's connects fail, the others have what they need. */
static void test_failures_of_one_block_are_its_own(void **state)
{
    struct poolsim_load load;
    (void)state;
    init(&load, 6);
    steady(&load, 3000);
    poolsim_load_row(&load, STEADY, 0, 3000, STEADY_QPS, 5 * MS, 0);
    load.setup.fail_db = STEADY;
    load.setup.fail_first = UINT32_MAX;
    struct poolsim *sim = poolsim_new(&load.setup, &poolsim_balance);
    poolsim_load_submit(&load, sim);
    assert_true(poolsim_run_out(sim, 30 * S));
    printf("# beside a block whose connects all fail: %u of %u answered, wait p99 %.1f ms; %u "
           "connects and moves\n",
           (unsigned)count_fates(sim, POOLSIM_ANSWERED, STEADY - 1, 0, POOLSIM_FOREVER),
           STEADY * STEADY_QPS * 3, poolsim_wait_ms(sim, 0, STEADY - 1, S, POOLSIM_FOREVER, 99),
           (unsigned)(poolsim_counts(sim)->connects + poolsim_counts(sim)->moves));
    assert_int_equal(count_fates(sim, POOLSIM_ANSWERED, STEADY - 1, 0, POOLSIM_FOREVER),
                     STEADY * STEADY_QPS * 3);
    assert_int_equal(count_fates(sim, POOLSIM_ANSWERED, STEADY, 0, POOLSIM_FOREVER),
                     STEADY * STEADY_QPS * 3);
    assert_true(poolsim_wait_ms(sim, 0, STEADY - 1, S, POOLSIM_FOREVER, 99) <= 30);
    poolsim_free(sim);
}

/* Cancel storms */

/* Every 200 ms 300 queries of one block come at once and give up after 50 ms, as all do. */
static void test_cancel_storms(void **state)
{
    struct poolsim_load load;
    (void)state;
    init(&load, 8);
    steady(&load, 4000);
    load.setup.conf.dbs = STEADY + 1;
    load.setup.patience_us = 50 * MS;
    struct poolsim *sim = poolsim_new(&load.setup, &poolsim_balance);
    poolsim_load_submit(&load, sim);
    for (uint64_t at_us = S; at_us < 3 * S; at_us += 200 * MS)
        for (uint32_t i = 0; i < 300; i++)
            poolsim_submit(sim, STEADY, at_us, 10 * MS);
    assert_true(poolsim_run_out(sim, 30 * S));
    uint32_t before = count_fates(sim, POOLSIM_ANSWERED, STEADY - 1, 0, S);
    uint32_t storm = count_fates(sim, POOLSIM_ANSWERED, STEADY - 1, S, 3 * S) / 2;
    uint32_t left = count_fates(sim, POOLSIM_LEFT, STEADY - 1, S, 3 * S);
    uint32_t after = count_fates(sim, POOLSIM_LEFT, STEADY - 1, 3100 * MS, POOLSIM_FOREVER);
    const struct poolsim_counts *counts = poolsim_counts(sim);
    printf("# storms of cancels: the others' answers/s %u before, %u in it (%u gave up); after it "
           "wait p99 %.1f ms (%.1f before it), %u gave up; %u moves, %u connects, %u events\n",
           (unsigned)before, (unsigned)storm, (unsigned)left,
           poolsim_wait_ms(sim, 0, STEADY - 1, 3500 * MS, POOLSIM_FOREVER, 99),
           poolsim_wait_ms(sim, 0, STEADY - 1, 500 * MS, S, 99), (unsigned)after,
           (unsigned)counts->moves, (unsigned)counts->connects, (unsigned)counts->events);
    assert_true(storm >= before * .9);
    assert_int_equal(after, 0);
    assert_true(poolsim_wait_ms(sim, 0, STEADY - 1, 3500 * MS, POOLSIM_FOREVER, 99) <= 10);
    for (uint32_t db = 0; db <= STEADY; db++)
        assert_int_equal(poolsim_waiting(sim, db), 0);
    poolsim_free(sim);
}

/* All clients of all blocks give up together, again and again, before a connection can come:
   nothing is left over. Afterwards a block's first query gives up too, and its second, 40 ms later,
   finds the connection that was made for the first. */
static void test_all_give_up(void **state)
{
    struct poolsim_load load;
    uint32_t served = 0;
    (void)state;
    init(&load, 3);
    load.setup.conf.dbs = 12;
    load.setup.patience_us = 5 * MS;
    struct poolsim *sim = poolsim_new(&load.setup, &poolsim_balance);
    for (uint64_t at_us = 0; at_us < S; at_us += 10 * MS)
        for (uint32_t i = 0; i < 600; i++)
            poolsim_submit(sim, i % 12, at_us, 20 * MS);
    assert_true(poolsim_run_out(sim, 30 * S));
    uint32_t first = poolsim_queries(sim);
    for (uint32_t db = 0; db < 12; db++) {
        assert_int_equal(poolsim_waiting(sim, db), 0);
        poolsim_submit(sim, db, 2 * S + db * 200 * MS, 1 * MS);
        poolsim_submit(sim, db, 2 * S + db * 200 * MS + 40 * MS, 1 * MS);
    }
    assert_true(poolsim_run_out(sim, 30 * S));
    for (uint32_t i = first + 1; i < first + 24; i += 2)
        served += poolsim_query(sim, i)->fate == POOLSIM_ANSWERED;
    printf("# after storms of 5 ms patience: %u of 12 second queries served\n", (unsigned)served);
    assert_int_equal(served, 12);
    poolsim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_connects_that_fail),
        cmocka_unit_test(test_failures_of_one_block_are_its_own),
        cmocka_unit_test(test_cancel_storms),
        cmocka_unit_test(test_all_give_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
