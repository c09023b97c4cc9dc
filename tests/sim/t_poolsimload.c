// t_poolsimload - the planner under loads that Gel's benchmark lacks
// SPDX-License-Identifier: BSD-3-Clause
//
// More blocks than connections, a block whose backend is slow, queries shorter than a millisecond,
// collection of idle connections under load, pipelining; and in all of it, that no connection moves
// before its time. Numbers are printed beside what is asserted.
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

static void init(struct poolsim_load *load, uint32_t capacity, uint32_t depth, uint32_t connect_ms,
                 uint32_t spread_ms)
{
    *load = (struct poolsim_load){.duration_us = S};
    load->setup.conf.capacity = capacity;
    load->setup.conf.depth = depth;
    load->setup.conf.idle_us = 120 * S;
    load->setup.connect = (struct poolsim_cost){connect_ms * MS, spread_ms * MS, 0};
    load->setup.disconnect = (struct poolsim_cost){6 * MS, 1500, 0};
    load->setup.seed = 1;
}

static struct poolsim *start(const struct poolsim_load *load, const struct poolsim_pool *pool)
{
    struct poolsim *sim = poolsim_new(&load->setup, pool);
    poolsim_load_submit(load, sim);
    return sim;
}

static uint32_t answered(struct poolsim *sim, uint32_t first, uint32_t last, uint64_t from_us,
                         uint64_t to_us)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < poolsim_queries(sim); i++) {
        const struct poolsim_query *query = poolsim_query(sim, i);
        n += query->fate == POOLSIM_ANSWERED && query->db >= first && query->db <= last &&
             query->end_us >= from_us && query->end_us < to_us;
    }
    return n;
}

/* The minimum hold */

struct hold_watch {
    struct poolsim_balance_pool *pool;
    uint32_t moves, early, exempt;
    double least_ms; // of those that are not exempt
};

static void watch_hold(void *arg, const struct poolsim_conn *conn, enum poolsim_state state,
                       uint32_t db)
{
    struct hold_watch *watch = arg;
    const struct hg_balance *balance = &watch->pool->balance;
    uint64_t now_us = poolsim_now_us(watch->pool->sim), age_us = now_us - conn->since_us;
    (void)db;
    if (state != POOLSIM_MOVING)
        return;
    watch->moves++;
    /* Exempt when its block had nothing to do since it came up, for the time of a move. */
    if (age_us < balance->hold_us && watch->pool->blocks[conn->db].used_us <= conn->up_us &&
        now_us - conn->up_us >= balance->reconnect_us) {
        watch->exempt++;
        return;
    }
    watch->early += age_us < balance->hold_us;
    if (watch->least_ms <= 0 || age_us < watch->least_ms * MS)
        watch->least_ms = (double)age_us / MS;
}

/* By the planner's own hold, and by twice the shortest connect of the scenario. */
static void test_nothing_moves_before_its_hold(void **state)
{
    uint32_t moved = 0;
    (void)state;
    for (uint32_t number = 1; number <= POOLSIM_SCENARIOS; number++) {
        struct poolsim_load load;
        poolsim_load_get(number, 1, 1, POOLSIM_F, &load);
        const struct poolsim_cost *connect = &load.setup.connect;
        uint64_t shortest_us = connect->base_us - connect->spread_us;
        if (shortest_us < connect->floor_us)
            shortest_us = connect->floor_us;
        struct poolsim *sim = start(&load, &poolsim_balance);
        struct hold_watch watch = {.pool = poolsim_own(sim)};
        poolsim_watch(sim, watch_hold, &watch);
        assert_true(poolsim_run_out(sim, 60 * S));
        printf("# %2u: %u moves, the earliest after %.1f ms, %u of unused connections\n",
               (unsigned)number, (unsigned)watch.moves, watch.least_ms, (unsigned)watch.exempt);
        assert_int_equal(watch.early, 0);
        if (watch.moves > watch.exempt)
            assert_true(watch.least_ms * MS >= 2 * shortest_us);
        moved += watch.moves > watch.exempt;
        poolsim_free(sim);
    }
    assert_true(moved >= 5);
}

/* More blocks than connections */

#define RING_BLOCKS   24
#define RING_CAPACITY 6
#define RING_BOUND_MS(slice, move, query)                                                          \
    ((RING_BLOCKS + RING_CAPACITY - 1) / RING_CAPACITY * ((slice) + (move) + (query)))

/* ceil(blocks / capacity) turns of a slice (twice a move) and a move; the query at a slice's end is
   not cut short. */
static const double ring_bound_ms = RING_BOUND_MS(2 * 56, 60 + 7.5, 15);

static void ring(struct poolsim_load *load, uint32_t qps)
{
    init(load, RING_CAPACITY, 1, 50, 10);
    for (uint32_t db = 0; db < RING_BLOCKS; db++)
        poolsim_load_row(load, db, 0, 10000, qps, 10 * MS, 5 * MS);
}

/* Few queries in each turn: all wait for at most the ring's bound. */
static void test_the_ring_bounds_the_wait(void **state)
{
    struct poolsim_load load;
    struct poolsim_result result;
    (void)state;
    ring(&load, 5);
    for (uint32_t seed = 1; seed <= 5; seed++) {
        load.setup.seed = seed;
        poolsim_load_run(&load, &poolsim_balance, &result);
        printf("# ring of 24 on 6: waits p50 %.0f, p99 %.0f, longest %.0f ms; bound %.0f ms\n",
               result.p50_ms, result.p99_ms, result.max_ms, ring_bound_ms);
        assert_true(result.drained);
        assert_int_equal(result.answered, result.queries);
        assert_true(result.max_ms <= ring_bound_ms);
    }
}

/* The others have more work than they ever get done: who comes anew waits for the ring all the
   same. */
static void test_a_quiet_block_waits_for_the_ring_only(void **state)
{
    struct poolsim_load load;
    (void)state;
    ring(&load, 50);
    load.row_count = RING_BLOCKS - 1;
    for (uint32_t seed = 1; seed <= 5; seed++) {
        double longest_ms = 0;
        load.setup.seed = seed;
        struct poolsim *sim = start(&load, &poolsim_balance);
        for (uint64_t at_us = 2 * S; at_us < 10 * S; at_us += 1500 * MS + 7 * MS)
            poolsim_submit(sim, RING_BLOCKS - 1, at_us, 10 * MS);
        poolsim_run(sim, 12 * S);
        longest_ms = poolsim_wait_ms(sim, RING_BLOCKS - 1, RING_BLOCKS - 1, 0, 10 * S, 100);
        printf("# quiet block beside 23 busy ones on 6: longest wait %.0f ms; bound %.0f ms\n",
               longest_ms, ring_bound_ms);
        assert_true(longest_ms > 0);
        assert_true(longest_ms <= ring_bound_ms);
        poolsim_free(sim);
    }
}

static double mean_wait_ms(struct poolsim *sim, uint32_t db)
{
    double sum_ms = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < poolsim_queries(sim); i++) {
        const struct poolsim_query *query = poolsim_query(sim, i);
        if (query->db != db)
            continue;
        sum_ms += (double)(query->begun_us - query->at_us) / MS;
        n++;
    }
    return sum_ms / n;
}

/* Equal load of 12 blocks on 6 connections, below the capacity, at it and above it: mean waits
   within 25 % of each other. */
static void test_equal_blocks_wait_equally(void **state)
{
    uint32_t unequal = 0;
    (void)state;
    for (uint32_t qps = 20; qps <= 80; qps *= 2)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct poolsim_load load;
            double least_ms = 0, most_ms = 0;
            init(&load, 6, 1, 50, 10);
            load.setup.seed = seed;
            for (uint32_t db = 0; db < 12; db++)
                poolsim_load_row(&load, db, 0, 10000, qps, 10 * MS, 5 * MS);
            struct poolsim *sim = start(&load, &poolsim_balance);
            assert_true(poolsim_run_out(sim, 100 * S));
            for (uint32_t db = 0; db < 12; db++) {
                double ms = mean_wait_ms(sim, db);
                least_ms = db == 0 || ms < least_ms ? ms : least_ms;
                most_ms = ms > most_ms ? ms : most_ms;
            }
            printf("# 12 equal blocks on 6, %u queries/s each: mean waits %.0f to %.0f ms\n",
                   (unsigned)qps, least_ms, most_ms);
            unequal += most_ms > least_ms * 1.25;
            poolsim_free(sim);
        }
    assert_int_equal(unequal, 0);
}

/* One block's queries take ten times as long from 2 s to 6 s. The others need 1.2 connections each,
   have an equal share of two, and lose nothing. */
static void slow_block(const struct poolsim_pool *pool, uint64_t seed, double *ret_kept,
                       double *ret_p50_ms, double *ret_p99_ms)
{
    struct poolsim_load load;
    init(&load, 8, 1, 50, 10);
    load.setup.seed = seed;
    for (uint32_t db = 1; db < 4; db++)
        poolsim_load_row(&load, db, 0, 8000, 120, 10 * MS, 5 * MS);
    poolsim_load_row(&load, 0, 0, 2000, 100, 10 * MS, 5 * MS);
    poolsim_load_row(&load, 0, 2000, 6000, 100, 100 * MS, 50 * MS);
    poolsim_load_row(&load, 0, 6000, 8000, 100, 10 * MS, 5 * MS);
    struct poolsim *sim = start(&load, pool);
    poolsim_run(sim, 6 * S);
    double before = answered(sim, 1, 3, 1 * S, 2 * S);
    *ret_kept = answered(sim, 1, 3, 3 * S, 6 * S) / 3.0 / before;
    *ret_p50_ms = poolsim_wait_ms(sim, 1, 3, 3 * S, 6 * S, 50);
    *ret_p99_ms = poolsim_wait_ms(sim, 1, 3, 3 * S, 6 * S, 99);
    printf("# %s, a block ten times as slow: the others keep %.0f %% of %.0f answers/s; waits p50 "
           "%.1f ms (%.1f before), p99 %.1f ms (%.1f); %u connections beside %u\n",
           pool->name, *ret_kept * 100, before, *ret_p50_ms,
           poolsim_wait_ms(sim, 1, 3, 1 * S, 2 * S, 50), *ret_p99_ms,
           poolsim_wait_ms(sim, 1, 3, 1 * S, 2 * S, 99), (unsigned)poolsim_count_of(sim, 0),
           (unsigned)poolsim_count_of(sim, 1));
    assert_true(poolsim_run_out(sim, 100 * S));
    poolsim_free(sim);
}

static void test_a_slow_block_pulls_no_quota(void **state)
{
    double kept, p50_ms, p99_ms;
    (void)state;
    if (sim_runs_all()) { /* to compare with: no bar is set for them */
        slow_block(&poolsim_rust, 1, &kept, &p50_ms, &p99_ms);
        slow_block(&poolsim_python, 1, &kept, &p50_ms, &p99_ms);
    }
    for (uint32_t seed = 1; seed <= sim_seeds(5); seed++) {
        slow_block(&poolsim_balance, seed, &kept, &p50_ms, &p99_ms);
        assert_true(kept >= .95);
        assert_true(p50_ms <= 20);
        assert_true(p99_ms <= 100);
    }
}

/* Queries of 50 to 150 us. Below the capacity nobody waits to speak of; above it all get the same,
   and little time goes into moves. */
static void test_queries_below_a_millisecond(void **state)
{
    static const uint32_t qps[] = {5000, 20000};
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        struct poolsim_load load;
        struct poolsim_result result;
        uint32_t least = UINT32_MAX, most = 0;
        init(&load, 6, 1, 1, 0);
        load.setup.disconnect = (struct poolsim_cost){500, 100, 0};
        for (uint32_t db = 0; db < 6; db++) {
            poolsim_load_row(&load, db, 0, 1000, qps[k], 100, 50);
            load.rows[db].cost.floor_us = 0;
        }
        struct poolsim *sim = start(&load, &poolsim_balance);
        poolsim_run(sim, S);
        for (uint32_t db = 0; db < 6; db++) {
            uint32_t n = answered(sim, db, db, 0, S);
            least = n < least ? n : least;
            most = n > most ? n : most;
        }
        poolsim_score(&load, sim, &result);
        printf("# %u queries/s of 100 us from each of 6: %u to %u answered, wait p50 %.3f ms, "
               "p99 %.3f ms, %.5f moves a query\n",
               (unsigned)qps[k], (unsigned)least, (unsigned)most, result.p50_ms, result.p99_ms,
               result.overhead);
        assert_true(least >= most * .95);
        assert_true(result.overhead <= .01);
        if (k == 0)
            assert_true(result.p50_ms <= .2);
        else
            assert_true(least >= .9 * 10000);
        poolsim_free(sim);
    }
}

/* Bursts every 500 ms over a base load, idle time 200 ms. */
static struct poolsim *bursts(uint32_t capacity)
{
    struct poolsim_load load;
    init(&load, capacity, 1, 20, 5);
    load.setup.conf.idle_us = 200 * MS;
    poolsim_load_row(&load, 0, 0, 4000, 400, 10 * MS, 5 * MS);
    for (uint32_t i = 1; i < 8; i++)
        poolsim_load_row(&load, 1, i * 500, i * 500 + 50, 2000, 10 * MS, 5 * MS);
    return start(&load, &poolsim_balance);
}

/* What a burst needed is closed between bursts, what the base load needs never is, and nobody of
   the base load waits for a connect. */
static void test_collection_under_load(void **state)
{
    (void)state;
    struct poolsim *sim = bursts(100);
    for (uint32_t i = 1; i < 8; i++) {
        poolsim_run(sim, (i * 500 + 490) * MS);
        printf("# before burst %u: %u connections of the base load, %u of bursts\n",
               (unsigned)i + 1, (unsigned)poolsim_count_of(sim, 0),
               (unsigned)poolsim_count_of(sim, 1));
        assert_in_range(poolsim_count_of(sim, 0), 4, 12);
        assert_int_equal(poolsim_count_of(sim, 1), 0);
    }
    assert_true(poolsim_run_out(sim, 10 * S));
    printf("# base load: wait p50 %.2f, p99 %.2f ms\n", poolsim_wait_ms(sim, 0, 0, S, 4 * S, 50),
           poolsim_wait_ms(sim, 0, 0, S, 4 * S, 99));
    assert_true(poolsim_wait_ms(sim, 0, 0, S, 4 * S, 50) < 1);
    assert_true(poolsim_wait_ms(sim, 0, 0, S, 4 * S, 99) <= 10);
    poolsim_free(sim);
}

/* The same with room for all that both need, but not for what a burst would open: the base load
   waits for a connect and a query at most. */
static void test_a_burst_takes_little_from_the_base_load(void **state)
{
    (void)state;
    struct poolsim *sim = bursts(40);
    assert_true(poolsim_run_out(sim, 10 * S));
    double p50_ms = poolsim_wait_ms(sim, 0, 0, S, 4 * S, 50);
    double p99_ms = poolsim_wait_ms(sim, 0, 0, S, 4 * S, 99);
    printf("# base load beside bursts: wait p50 %.2f, p99 %.2f ms\n", p50_ms, p99_ms);
    assert_true(p50_ms < 1);
    assert_true(p99_ms <= 35);
    poolsim_free(sim);
}

/* The ten scenarios with eight queries in flight on a connection, which works on one at a time. A
   connection has to be drained before it moves, so at scale 1, a second, little can; a query waits
   behind seven others where a second connection would help, which is what packing is. At scale 10
   overload is shared out as with one each. */
static void test_depth_8(void **state)
{
    static const uint32_t scales[] = {1, 10};
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        double sum[2] = {0, 0};
        printf("# scale %u, depth 8 (1): score, answers/s, waits p50, p99, moves a query\n",
               (unsigned)scales[k]);
        for (uint32_t number = 1; number <= POOLSIM_SCENARIOS; number++) {
            struct poolsim_load load;
            struct poolsim_result one, eight;
            poolsim_load_get(number, scales[k], 1, POOLSIM_F, &load);
            poolsim_load_run(&load, &poolsim_balance, &one);
            load.setup.conf.depth = 8;
            poolsim_load_run(&load, &poolsim_balance, &eight);
            printf("#  %4u %5.1f (%5.1f) %5.0f (%5.0f) %7.1f (%7.1f) %6.0f (%6.0f) %.3f (%.3f)\n",
                   (unsigned)number, eight.score, one.score, eight.per_s, one.per_s, eight.p50_ms,
                   one.p50_ms, eight.p99_ms, one.p99_ms, eight.overhead, one.overhead);
            assert_true(eight.drained);
            assert_int_equal(eight.answered, eight.queries);
            assert_true(eight.per_s >= .85 * one.per_s);
            sum[0] += one.score / POOLSIM_SCENARIOS;
            sum[1] += eight.score / POOLSIM_SCENARIOS;
        }
        printf("#  mean %.1f (%.1f)\n", sum[1], sum[0]);
        if (scales[k] == 10)
            assert_true(sum[1] >= 90);
        else
            assert_true(sum[1] >= 75);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_moves_before_its_hold),
        cmocka_unit_test(test_the_ring_bounds_the_wait),
        cmocka_unit_test(test_a_quiet_block_waits_for_the_ring_only),
        cmocka_unit_test(test_equal_blocks_wait_equally),
        cmocka_unit_test(test_a_slow_block_pulls_no_quota),
        cmocka_unit_test(test_queries_below_a_millisecond),
        cmocka_unit_test(test_collection_under_load),
        cmocka_unit_test(test_a_burst_takes_little_from_the_base_load),
        cmocka_unit_test(test_depth_8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
