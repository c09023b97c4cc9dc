// t_fairsim - the fair free pool, by slices, between buckets that want more than there is
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "creditsim.h"

#define UNLIMITED HG_UNITS_UNLIMITED

static struct sim sim;

/* Tested units of a bucket in the slots `from` up to the last that ended. */
static uint64_t sum_of(uint32_t b, uint64_t from)
{
    uint64_t sum = 0;
    for (uint64_t slot = from; slot < sim.slots; slot++)
        sum += sim.admitted[b][slot];
    return sum;
}

static double jain_of(uint32_t n, uint64_t from)
{
    double x[SIM_BUCKETS];
    for (uint32_t b = 0; b < n; b++)
        x[b] = (double)sum_of(b, from);
    return sim_jain(x, n);
}

static void assert_pool_is_used_and_not_over(uint64_t from, uint64_t pool, uint64_t least)
{
    for (uint64_t slot = from; slot < sim.slots; slot++)
        assert_in_range(sim.pooled[slot], least, pool);
}

/* One connection against a hundred, over the first 10 slots. */
static void one_against_hundred(enum hg_free_pool mode, uint32_t slot_ms, uint64_t seed)
{
    uint32_t a, b;
    sim_init(&sim, 1 + (uint32_t)(seed % 4), 1000, slot_ms, mode, seed);
    a = sim_bucket(&sim, 0, UNLIMITED);
    b = sim_bucket(&sim, 0, UNLIMITED);
    sim_conns(&sim, 1, a, 1, 200);
    sim_conns(&sim, 100, b, 1, 200);
    sim_start(&sim);
    sim_run(&sim, 10);
}

static void test_one_connection_against_a_hundred(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        one_against_hundred(HG_FREE_POOL_FAIR, 1000, seed);
        assert_true(jain_of(2, 1) >= 0.99);
        assert_pool_is_used_and_not_over(1, 1000, 1000);
        one_against_hundred(HG_FREE_POOL_FAIR, 100, seed);
        assert_true(jain_of(2, 1) >= 0.99);
        assert_pool_is_used_and_not_over(1, 100, 98);
        one_against_hundred(HG_FREE_POOL_FIRST_COME, 1000, seed); // what it is better than
        assert_true(jain_of(2, 1) < 0.8);
    }
}

static void test_what_a_bucket_does_not_want_goes_to_the_others(void **state)
{
    uint32_t a, b, c;
    (void)state;
    sim_init(&sim, 3, 900, 1000, HG_FREE_POOL_FAIR, 7);
    a = sim_bucket(&sim, 0, UNLIMITED);
    b = sim_bucket(&sim, 0, UNLIMITED);
    c = sim_bucket(&sim, 0, UNLIMITED);
    sim_conns(&sim, 1, a, 1, 9900); // about 100 a second
    sim_conns(&sim, 50, b, 1, 100);
    sim_conns(&sim, 3, c, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 20);
    assert_in_range(sum_of(a, 2), 19 * 90, 19 * 102);
    assert_in_range(sum_of(b, 2), 19 * 390, 19 * 405);
    assert_in_range(sum_of(c, 2), 19 * 390, 19 * 405);
    assert_pool_is_used_and_not_over(2, 900, 890);
}

static void test_a_bucket_alone_gets_the_whole_pool(void **state)
{
    uint32_t b;
    (void)state;
    sim_init(&sim, 2, 1000, 1000, HG_FREE_POOL_FAIR, 8);
    for (int i = 0; i < 8; i++)
        sim_bucket(&sim, 0, UNLIMITED); // idle
    b = sim_bucket(&sim, 0, UNLIMITED);
    sim_conns(&sim, 10, b, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 10);
    assert_pool_is_used_and_not_over(1, 1000, 995);
}

/* A bucket that wakes up on a pool that nobody fights for waits for no slice; on a contended one at
 * most for the next. */
static void test_waking_up(void **state)
{
    uint32_t a, b, quiet, late;
    (void)state;
    for (int contended = 0; contended < 2; contended++) {
        sim_init(&sim, 2, 1000, 1000, HG_FREE_POOL_FAIR, 9);
        a = sim_bucket(&sim, 0, UNLIMITED);
        b = sim_bucket(&sim, 0, UNLIMITED);
        sim_conns(&sim, contended ? 50 : 1, a, 1, contended ? 100 : 5000); // 200 a second
        quiet = sim_conns(&sim, 1, b, 1, 100);
        sim.conns[quiet].state = SIM_OFF;
        sim_start(&sim);
        sim_run(&sim, 3);
        late = sim.n_conns;
        sim_conns(&sim, 20, b, 1, 1000000);
        for (uint32_t i = 0; i < 20; i++)
            sim.conns[late + i].at_us = sim.now_us + 30000 + i * 40000;
        sim_run(&sim, 2);
        for (uint32_t i = 0; i < 20; i++) {
            assert_true(sim.conns[late + i].admitted >= 1);
            assert_true(sim.conns[late + i].waited_us_max <= (contended ? 100000 : 0));
        }
    }
}

/* Reservations come first and do not count; hard limits bound what is wanted. */
static void test_reservations_and_limits(void **state)
{
    uint32_t a, b, c;
    (void)state;
    sim_init(&sim, 4, 1000, 1000, HG_FREE_POOL_FAIR, 10);
    a = sim_bucket(&sim, 300, UNLIMITED);
    b = sim_bucket(&sim, 100, 150);
    c = sim_bucket(&sim, 0, UNLIMITED);
    sim_conns(&sim, 2, a, 1, 50);
    sim_conns(&sim, 70, b, 1, 50);
    sim_conns(&sim, 30, c, 1, 50);
    sim_start(&sim);
    sim_run(&sim, 10);
    for (uint64_t slot = 2; slot < sim.slots; slot++) {
        assert_int_equal(sim.admitted[b][slot], 150);
        assert_in_range(sim.admitted[a][slot], 574, 576);
        assert_in_range(sim.admitted[c][slot], 274, 276);
    }
}

/* A request larger than the bucket's share of a slot gets its turn, and pays for it. */
static void test_large_requests_get_the_same_units(void **state)
{
    uint32_t a, b, c, large;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sim_init(&sim, 3, 100, 1000, HG_FREE_POOL_FAIR, seed);
        a = sim_bucket(&sim, 0, UNLIMITED);
        b = sim_bucket(&sim, 0, UNLIMITED);
        c = sim_bucket(&sim, 0, UNLIMITED);
        large = sim_conns(&sim, 1, a, 90, 100);
        sim_conns(&sim, 20, b, 1, 100);
        sim_conns(&sim, 2, c, 1, 100);
        sim_start(&sim);
        sim_run(&sim, 120);
        assert_true(jain_of(3, 1) >= 0.99);
        assert_true(sim.conns[large].waited_us_max <= 4000000);
        assert_pool_is_used_and_not_over(2, 100, 85);
    }
}

/* Larger than a slice, not than a slot: the small ones of its bucket, on other workers, do not take
 * each slice before it has saved enough. */
static void test_a_request_larger_than_a_slice_does_not_starve(void **state)
{
    uint32_t a, b, large;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sim_init(&sim, 4, 1000, 1000, HG_FREE_POOL_FAIR, seed);
        a = sim_bucket(&sim, 0, UNLIMITED);
        b = sim_bucket(&sim, 0, UNLIMITED);
        large = sim_conns(&sim, 1, a, 120, 100);
        sim_conns(&sim, 300, a, 1, 100);
        sim_conns(&sim, 30, b, 1, 100);
        sim_start(&sim);
        sim_run(&sim, 20);
        assert_true(sim.conns[large].done >= 17);
        assert_true(sim.conns[large].waited_us_max <= 2000000);
        assert_true(jain_of(2, 1) >= 0.99);
        assert_pool_is_used_and_not_over(2, 1000, 950);
    }
}

static void test_two_buckets_of_large_requests(void **state)
{
    uint32_t a, b, c;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sim_init(&sim, 2, 100, 1000, HG_FREE_POOL_FAIR, seed);
        a = sim_bucket(&sim, 0, UNLIMITED);
        b = sim_bucket(&sim, 0, UNLIMITED);
        c = sim_bucket(&sim, 0, UNLIMITED);
        sim_conns(&sim, 4, a, 70, 100);
        sim_conns(&sim, 1, b, 70, 100);
        sim_conns(&sim, 9, c, 1, 100);
        sim_start(&sim);
        sim_run(&sim, 200);
        assert_true(sum_of(a, 2) + sum_of(b, 2) + sum_of(c, 2) >= 199 * 95);
        assert_true(jain_of(3, 1) >= 0.99);
    }
}

/* Clients that are answered at once instead of held (HELLO 1b) want more, too. */
static void test_refused_buckets_want_more(void **state)
{
    uint32_t a, b, first;
    (void)state;
    sim_init(&sim, 2, 1000, 1000, HG_FREE_POOL_FAIR, 11);
    a = sim_bucket(&sim, 0, UNLIMITED);
    b = sim_bucket(&sim, 0, UNLIMITED);
    first = sim_conns(&sim, 3, a, 1, 100);
    for (uint32_t i = 0; i < 3; i++)
        sim.conns[first + i].nonblocking = true;
    sim_conns(&sim, 50, b, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 10);
    assert_true(jain_of(2, 1) >= 0.99);
    assert_true(sim.conns[first].refused >= 50); // once a slice: it is told when to come back
    assert_true(sim.conns[first].refused <= 200);
}

static void test_sixteen_buckets(void **state)
{
    (void)state;
    sim_init(&sim, 8, 2000, 500, HG_FREE_POOL_FAIR, 12);
    for (uint32_t b = 0; b < 16; b++) {
        sim_bucket(&sim, 0, UNLIMITED);
        sim_conns(&sim, 1 + b * 3, b, 1, 20 + b * 10);
    }
    sim_start(&sim);
    sim_run(&sim, 20);
    assert_true(jain_of(16, 1) >= 0.99);
    assert_pool_is_used_and_not_over(2, 1000, 990);
}

static void test_switching_while_requests_are_held(void **state)
{
    struct hg_credit_settings settings = {1000, 1000, HG_FREE_POOL_FAIR, 100};
    uint32_t a, b;
    (void)state;
    sim_init(&sim, 2, 1000, 1000, HG_FREE_POOL_FIRST_COME, 13);
    a = sim_bucket(&sim, 0, UNLIMITED);
    b = sim_bucket(&sim, 0, UNLIMITED);
    sim_conns(&sim, 1, a, 1, 100);
    sim_conns(&sim, 60, b, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 3);
    hg_credit_set(&sim.node, &settings);
    sim_run(&sim, 11);
    assert_true(jain_of(2, 4) >= 0.99);
    settings.free_pool = HG_FREE_POOL_FIRST_COME;
    hg_credit_set(&sim.node, &settings);
    sim_run(&sim, 3);
    assert_int_equal(sim.pooled[sim.slots - 1], 1000);
    settings.capacity = UNLIMITED;
    settings.free_pool = HG_FREE_POOL_FAIR;
    hg_credit_set(&sim.node, &settings);
    sim_run(&sim, 2);
    assert_true(sim.admitted[b][sim.slots - 1] > 100000); // nothing to share out
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_connection_against_a_hundred),
        cmocka_unit_test(test_what_a_bucket_does_not_want_goes_to_the_others),
        cmocka_unit_test(test_a_bucket_alone_gets_the_whole_pool),
        cmocka_unit_test(test_waking_up),
        cmocka_unit_test(test_reservations_and_limits),
        cmocka_unit_test(test_large_requests_get_the_same_units),
        cmocka_unit_test(test_a_request_larger_than_a_slice_does_not_starve),
        cmocka_unit_test(test_two_buckets_of_large_requests),
        cmocka_unit_test(test_refused_buckets_want_more),
        cmocka_unit_test(test_sixteen_buckets),
        cmocka_unit_test(test_switching_while_requests_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
