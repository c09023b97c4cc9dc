// t_heldsim - held requests over several workers: limits are reached exactly, whatever the order
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "creditsim.h"

#define UNLIMITED HG_UNITS_UNLIMITED

static struct sim sim;

/* A slot's admissions are complete when the next one has begun; slot numbers begin at 1. */
static void assert_exact(uint32_t b, uint64_t from, uint64_t to, uint64_t units)
{
    for (uint64_t slot = from; slot < to; slot++)
        assert_int_equal(sim.admitted[b][slot], units);
}

static void test_two_workers_of_one_connection_reach_200(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint32_t b;
        sim_init(&sim, 2, UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, seed);
        b = sim_bucket(&sim, 0, 200);
        sim_conns(&sim, 2, b, 1, 0);
        sim_start(&sim);
        sim_run(&sim, 12);
        assert_exact(b, 1, 13, 200);
    }
}

static void test_any_number_of_workers_and_connections_reaches_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct hg_prng dice = {seed * 77};
        uint32_t workers = 1 + (uint32_t)hg_prng_below(&dice, SIM_WORKERS), b;
        uint32_t conns = 1 + (uint32_t)hg_prng_below(&dice, 60);
        uint64_t limit = 1 + hg_prng_below(&dice, 300);
        sim_init(&sim, workers, UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, seed);
        b = sim_bucket(&sim, hg_prng_below(&dice, limit + 1), limit);
        sim_conns(&sim, conns, b, 1, 0);
        sim_start(&sim);
        sim_run(&sim, 8);
        assert_exact(b, 1, 9, limit);
    }
}

static void test_resets_of_held_connections_block_nobody(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint32_t b, limit = seed % 3 ? 97 : 5;
        sim_init(&sim, 1 + (uint32_t)(seed % 6), UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, seed);
        b = sim_bucket(&sim, 0, limit);
        sim_conns(&sim, 3 + (uint32_t)(seed % 11), b, 1, 0);
        sim.reset_chance = 2 + (uint32_t)(seed % 5);
        sim_start(&sim);
        sim_run(&sim, 10);
        assert_exact(b, 1, 11, limit);
    }
}

/* Requests that are refused after the credits give them back in time for others of the slot. */
static void test_what_is_given_back_is_used(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint32_t b;
        sim_init(&sim, 1 + (uint32_t)(seed % 6), UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, seed);
        b = sim_bucket(&sim, seed % 40, 53);
        sim_conns(&sim, 2 + (uint32_t)(seed % 80), b, 1, 0);
        sim.undo_chance = 2 + (uint32_t)(seed % 9);
        sim_start(&sim);
        sim_run(&sim, 10);
        assert_exact(b, 1, 11, 53);
    }
}

/* Ticks that come between any two steps, also between a verdict and its publication and in the
 * middle of a pass: never more than the limit in a slot, and exactly the limit in each slot that
 * had its time. */
static void test_ticks_in_the_middle_of_everything(void **state)
{
    uint64_t complete = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        uint32_t b;
        sim_init(&sim, 1 + (uint32_t)(seed % 7), UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, seed);
        b = sim_bucket(&sim, seed % 50, 50);
        sim_conns(&sim, 3 + (uint32_t)(seed % 90), b, 1, 0);
        sim.tick_chance = 30 + (uint32_t)(seed * 37 % 600);
        sim.reset_chance = seed % 2 ? 3 + (uint32_t)(seed % 40) : 0;
        sim_start(&sim);
        sim_run(&sim, 60);
        for (uint64_t slot = 1; slot < sim.slots; slot++) {
            assert_true(sim.admitted[b][slot] <= 50);
            assert_true(!sim.complete[slot] || sim.admitted[b][slot] == 50);
            complete += sim.complete[slot];
        }
    }
    assert_true(complete > 5000);
}

/* Requests of unlike sizes: nobody overtakes so often that another starves, no slot overshoots, and
 * a slot is left with less room than the largest request needs. */
static void test_large_requests_do_not_starve(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint32_t b, small, large;
        sim_init(&sim, 4, UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, seed);
        b = sim_bucket(&sim, 0, 100);
        small = sim_conns(&sim, 39, b, 1, 0);
        large = sim_conns(&sim, 1, b, 80, 0);
        sim_start(&sim);
        sim_run(&sim, 40);
        assert_true(sim.conns[large].admitted >= 80 * 5);
        assert_true(sim.conns[large].waited_us_max <= 8000000);
        for (uint32_t i = 0; i < 39; i++)
            assert_true(sim.conns[small + i].admitted > 0);
        for (uint64_t slot = 1; slot < sim.slots; slot++) {
            assert_true(sim.admitted[b][slot] <= 100);
            assert_true(sim.admitted[b][slot] > 20);
        }
    }
}

/* Larger than a slot: passes when it is the oldest and the gauge is empty; the debt is paid. */
static void test_larger_than_a_slot_leaves_a_debt(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint32_t b, large;
        uint64_t sum = 0;
        sim_init(&sim, 3, UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, seed);
        b = sim_bucket(&sim, 0, 10);
        sim_conns(&sim, 5, b, 1, 0);
        large = sim_conns(&sim, 1, b, 35, 0);
        sim_start(&sim);
        sim_run(&sim, 400);
        for (uint64_t slot = 1; slot < sim.slots; slot++)
            sum += sim.admitted[b][slot];
        assert_true(sum <= 10 * sim.slots + 35);
        assert_true(sum >= 10 * (sim.slots - 8) * 9 / 10);
        assert_true(sim.conns[large].admitted >= 10 * 35);
    }
}

static uint64_t busy_rate(uint32_t first, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += sim.conns[first + i].admitted;
    return sum;
}

/* A grant follows demand: a worker with 1 connection and one with 99, all closed loops that want
 * more than there is, so that over time each connection gets the same. */
static void test_connections_of_unlike_workers_get_the_same(void **state)
{
    uint32_t b;
    double x[100];
    (void)state;
    sim_init(&sim, 2, UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, 5);
    b = sim_bucket(&sim, 0, 50);
    sim_conns(&sim, 100, b, 1, 0);
    for (uint32_t i = 0; i < 100; i++)
        sim.conns[i].worker = i != 0;
    sim_start(&sim);
    sim_run(&sim, 200);
    for (uint32_t i = 0; i < 100; i++)
        x[i] = (double)busy_rate(i, 1);
    assert_true(sim_jain(x, 100) >= 0.98);
}

/* A worker that is always first does not take what the others' held requests are granted. */
static void test_a_faster_worker_keeps_to_its_grant(void **state)
{
    uint32_t b;
    (void)state;
    sim_init(&sim, 2, UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, 6);
    b = sim_bucket(&sim, 0, 50);
    sim_conns(&sim, 200, b, 1, 0);
    sim.unfair = true;
    sim_start(&sim);
    sim_run(&sim, 100);
    for (uint32_t i = 0; i < 200; i++)
        assert_in_range(sim.conns[i].admitted, 22, 28);
}

/* Two buckets on one pool, neither with a hard limit: the pool is used up exactly, never over. */
static void test_buckets_share_a_pool_exactly(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint32_t a, b;
        sim_init(&sim, 1 + (uint32_t)(seed % 5), 300, 1000, HG_FREE_POOL_FIRST_COME, seed);
        a = sim_bucket(&sim, 50, UNLIMITED);
        b = sim_bucket(&sim, 0, UNLIMITED);
        sim_conns(&sim, 4, a, 1, 0);
        sim_conns(&sim, 17, b, 1, 0);
        sim_start(&sim);
        sim_run(&sim, 8);
        for (uint64_t slot = 1; slot < 9; slot++) {
            assert_int_equal(sim.admitted[a][slot] + sim.admitted[b][slot], 300);
            assert_true(sim.admitted[a][slot] >= 50);
            assert_int_equal(sim.pooled[slot], 250);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_workers_of_one_connection_reach_200),
        cmocka_unit_test(test_any_number_of_workers_and_connections_reaches_it),
        cmocka_unit_test(test_resets_of_held_connections_block_nobody),
        cmocka_unit_test(test_what_is_given_back_is_used),
        cmocka_unit_test(test_ticks_in_the_middle_of_everything),
        cmocka_unit_test(test_large_requests_do_not_starve),
        cmocka_unit_test(test_larger_than_a_slot_leaves_a_debt),
        cmocka_unit_test(test_connections_of_unlike_workers_get_the_same),
        cmocka_unit_test(test_a_faster_worker_keeps_to_its_grant),
        cmocka_unit_test(test_buckets_share_a_pool_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
