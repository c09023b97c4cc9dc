// t_creditsim - the scenarios of Couchbase's throttling tests, and those it lacks, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers are those of the reference's list of upstream tests. Connections are closed loops; "held"
// below is a connection's longest wait, refused its refusals.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "creditsim.h"

#define UNLIMITED  HG_UNITS_UNLIMITED
#define FIRST_COME HG_FREE_POOL_FIRST_COME

static struct sim sim;

static uint64_t done_by(uint32_t first, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += sim.conns[first + i].done;
    return sum;
}

/* Five tenants, each one connection: how many slots until each has done so many requests? */
static uint64_t slots_for(uint64_t reserved, uint64_t hard_limit, uint64_t requests,
                          uint64_t *ret_longest_us)
{
    uint64_t slots = 0;
    *ret_longest_us = 0;
    sim_init(&sim, 4, UNLIMITED, 1000, FIRST_COME, 3);
    for (uint32_t b = 0; b < 5; b++) {
        sim_bucket(&sim, reserved, hard_limit);
        sim_conns(&sim, 1, b, 1, 50);
    }
    sim_start(&sim);
    for (uint32_t i = 0; i < 5;) {
        if (sim.conns[i].done >= requests) {
            i++;
            continue;
        }
        sim_run(&sim, 1);
        slots++;
    }
    for (uint32_t i = 0; i < 5; i++)
        if (sim.conns[i].waited_us_max > *ret_longest_us)
            *ret_longest_us = sim.conns[i].waited_us_max;
    return slots;
}

static void test_1_operations_are_throttled(void **state)
{
    uint64_t longest_us;
    (void)state;
    assert_int_equal(slots_for(1024, 1024, 4097, &longest_us), 5);
    assert_in_range(longest_us, 900000, 1000000);
    assert_int_equal(slots_for(256, 256, 4097, &longest_us), 17);
}

static void test_2_a_thousand_a_second(void **state)
{
    uint64_t longest_us;
    (void)state;
    assert_int_equal(slots_for(1000, 1000, 4097, &longest_us), 5);
    for (uint32_t b = 0; b < 5; b++)
        for (uint64_t slot = 1; slot < sim.slots; slot++)
            assert_int_equal(sim.admitted[b][slot], 1000);
    assert_true(longest_us > 0);
}

static void test_3_enough_is_not_throttled(void **state)
{
    uint64_t longest_us;
    (void)state;
    assert_int_equal(slots_for(5000, 5000, 4097, &longest_us), 1);
    assert_int_equal(longest_us, 0);
}

static void test_4_unlimited_is_not_throttled(void **state)
{
    uint64_t longest_us;
    (void)state;
    assert_int_equal(slots_for(UNLIMITED, UNLIMITED, 4097, &longest_us), 1);
    assert_int_equal(longest_us, 0);
}

static void test_5_non_blocking_is_told_when(void **state)
{
    struct hg_charge charge;
    uint64_t next;
    (void)state;
    sim_init(&sim, 1, UNLIMITED, 1000, FIRST_COME, 1);
    sim_bucket(&sim, 100, 100);
    sim_start(&sim);
    sim.now_us += 1234;
    while (hg_credit_decide(&sim.node, &sim.buckets[0], 1, 0, &charge) == HG_CREDIT_PASS)
        ;
    next = hg_credit_next_us(&sim.node, &sim.buckets[0], charge.reason, sim.now_us);
    assert_int_equal(next, 1000000 - 1234);
    assert_true(next > 0 && next < 1000000);
    sim_conns(&sim, 1, 0, 1, 100);
    sim.conns[0].nonblocking = true;
    sim_run(&sim, 20);
    assert_int_equal(sim.conns[0].refused, 20); // once a slot: it comes back when it can succeed
    for (uint64_t slot = 2; slot < sim.slots; slot++)
        assert_int_equal(sim.admitted[0][slot], 100);
}

/* Short slots: 20 a second, the sum is the same. */
static void test_short_slots(void **state)
{
    uint64_t sum = 0;
    (void)state;
    sim_init(&sim, 3, UNLIMITED, 50, FIRST_COME, 4);
    sim_bucket(&sim, 10, 30);
    sim_conns(&sim, 7, 0, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 2000);
    for (uint64_t slot = 2; slot < 2000; slot++) {
        sum += sim.admitted[0][slot];
        if (slot > 21)
            sum -= sim.admitted[0][slot - 20];
        if (slot >= 21)
            assert_int_equal(sum, 30);
    }
}

/* An hour: 3600 slots, exactly 200 in each. */
static void test_an_hour(void **state)
{
    (void)state;
    sim_init(&sim, 2, UNLIMITED, 1000, FIRST_COME, 5);
    sim_bucket(&sim, 50, 200);
    sim_conns(&sim, 5, 0, 1, 300);
    sim_start(&sim);
    sim_run(&sim, 3600);
    for (uint64_t slot = 1; slot < sim.slots; slot++)
        assert_int_equal(sim.admitted[0][slot], 200);
}

static void test_pool_between_two_without_hard_limit(void **state)
{
    (void)state;
    sim_init(&sim, 2, 1000, 1000, FIRST_COME, 6);
    sim_bucket(&sim, 300, UNLIMITED);
    sim_bucket(&sim, 100, UNLIMITED);
    sim_conns(&sim, 2, 0, 1, 100);
    sim_conns(&sim, 2, 1, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 10);
    for (uint64_t slot = 1; slot < sim.slots; slot++) {
        assert_int_equal(sim.admitted[0][slot] + sim.admitted[1][slot], 1000);
        assert_true(sim.admitted[0][slot] >= 300 && sim.admitted[1][slot] >= 100);
    }
}

/* A noisy neighbour with a hundred connections takes the pool, never the reservation. */
static void test_a_reservation_is_there_when_it_is_needed(void **state)
{
    uint32_t quiet;
    (void)state;
    sim_init(&sim, 4, 1000, 1000, FIRST_COME, 7);
    sim_bucket(&sim, 0, UNLIMITED);
    sim_bucket(&sim, 200, UNLIMITED);
    sim_conns(&sim, 100, 0, 1, 10);
    quiet = sim_conns(&sim, 1, 1, 1, 6000); // 166 a second
    sim_start(&sim);
    sim_run(&sim, 20);
    assert_int_equal(sim.conns[quiet].waited_us_max, 0);
    assert_in_range(sim.conns[quiet].done, 20 * 160, 20 * 167);
    for (uint64_t slot = 1; slot < sim.slots; slot++)
        assert_int_equal(sim.admitted[0][slot], 800);
}

static void test_reservations_beyond_the_capacity(void **state)
{
    (void)state;
    sim_init(&sim, 2, 100, 1000, FIRST_COME, 8);
    sim_bucket(&sim, 80, UNLIMITED);
    sim_bucket(&sim, 70, UNLIMITED);
    sim_bucket(&sim, 0, UNLIMITED);
    for (uint32_t b = 0; b < 3; b++)
        sim_conns(&sim, 3, b, 1, 100);
    sim_start(&sim);
    assert_true(sim.tick.overcommitted);
    sim_run(&sim, 10);
    for (uint64_t slot = 1; slot < sim.slots; slot++) {
        assert_int_equal(sim.admitted[0][slot], 80);
        assert_int_equal(sim.admitted[1][slot], 70);
        assert_int_equal(sim.admitted[2][slot], 0);
    }
}

/* Unthrottled: not slowed, and what it uses is missing to its bucket and to the pool's others. */
static void test_an_unthrottled_connection(void **state)
{
    uint32_t free, bound, other;
    (void)state;
    sim_init(&sim, 2, 1000, 1000, FIRST_COME, 9);
    sim_bucket(&sim, 100, 600);
    sim_bucket(&sim, 0, UNLIMITED);
    free = sim_conns(&sim, 1, 0, 1, 1000); // 1000 a second
    bound = sim_conns(&sim, 3, 0, 1, 100);
    other = sim_conns(&sim, 3, 1, 1, 3000); // 1000 a second, if the pool has them
    sim.conns[free].flags = HG_CREDIT_UNTHROTTLED;
    sim_start(&sim);
    sim_run(&sim, 30);
    assert_in_range(sim.conns[free].done, 29900, 30000);
    assert_true(done_by(bound, 3) <= 600); // the debt of the other grows by 400 a slot
    assert_in_range(done_by(other, 3), 30 * 400, 30 * 600);
    sim.conns[free].state = SIM_OFF;
    sim_run(&sim, 25);
    assert_int_equal(sim.admitted[0][sim.slots - 1], 600); // 12000 of debt are 20 slots
}

static void test_limits_changed_while_requests_are_held(void **state)
{
    uint64_t slot;
    (void)state;
    for (uint64_t seed = 1; seed < 30; seed++) {
        sim_init(&sim, 1 + (uint32_t)seed % 4, UNLIMITED, 1000, FIRST_COME, seed);
        sim_bucket(&sim, 1, 1);
        sim_conns(&sim, 40, 0, 1, 100);
        sim_start(&sim);
        sim_run(&sim, 2);
        sim_settle(&sim);
        assert_true(sim.buckets[0].queue != 0); // requests are held
        hg_credit_bucket_set(&sim.buckets[0], 10, 500, false);
        sim_run(&sim, 1);
        slot = sim.slots;
        sim_run(&sim, 1);
        assert_int_equal(sim.admitted[0][slot], 500);
        hg_credit_bucket_set(&sim.buckets[0], 0, 20, false);
        sim_run(&sim, 1);
        slot = sim.slots;
        sim_run(&sim, 1);
        assert_int_equal(sim.admitted[0][slot], 20);
        hg_credit_bucket_set(&sim.buckets[0], UNLIMITED, UNLIMITED, false);
        sim_run(&sim, 2);
        assert_true(sim.admitted[0][sim.slots - 1] > 100000);
    }
}

static void test_capacity_changed_on_the_way(void **state)
{
    struct hg_credit_settings settings = {100, 1000, FIRST_COME, 100};
    (void)state;
    sim_init(&sim, 3, 5000, 1000, FIRST_COME, 11);
    sim_bucket(&sim, 50, UNLIMITED);
    sim_conns(&sim, 20, 0, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 3);
    assert_int_equal(sim.admitted[0][sim.slots - 1], 5000);
    hg_credit_set(&sim.node, &settings);
    sim_run(&sim, 2);
    assert_int_equal(sim.admitted[0][sim.slots - 1], 100);
    settings.capacity = 0; // then only what is reserved
    hg_credit_set(&sim.node, &settings);
    sim_run(&sim, 2);
    assert_int_equal(sim.admitted[0][sim.slots - 1], 50);
    settings.capacity = UNLIMITED;
    hg_credit_set(&sim.node, &settings);
    sim_run(&sim, 2);
    assert_true(sim.admitted[0][sim.slots - 1] > 100000);
}

/* Held requests of a bucket without a reservation go on at the first tick, each slot. */
static void test_a_bucket_without_reservation_wakes_up(void **state)
{
    uint32_t first;
    (void)state;
    sim_init(&sim, 2, 10, 1000, FIRST_COME, 12);
    sim_bucket(&sim, 0, UNLIMITED);
    first = sim_conns(&sim, 1, 0, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 10);
    assert_int_equal(sim.conns[first].admitted, 100);
    assert_true(sim.conns[first].waited_us_max <= 1000000);
}

/* Reads are charged an estimate and settled: within 2 % of the limit, whatever they cost. */
static void test_reads_hold_the_limit_on_average(void **state)
{
    (void)state;
    for (uint32_t read_max = 1; read_max <= 40; read_max += 13)
        for (uint64_t service_us = 50; service_us <= 50000; service_us *= 10) {
            uint64_t sum = 0;
            sim_init(&sim, 3, UNLIMITED, 1000, FIRST_COME, 15 + read_max);
            sim_bucket(&sim, 100, 2000);
            sim_conns(&sim, 100, 0, 1, service_us);
            for (uint32_t i = 0; i < 100; i++)
                sim.conns[i].read_max = read_max;
            sim_start(&sim);
            sim_run(&sim, 42);
            for (uint64_t slot = 2; slot < 42; slot++)
                sum += sim.answered[0][slot];
            assert_in_range(sum, 40 * 2000 * 98 / 100, 40 * 2000 * 102 / 100);
        }
}

/* The release at a tick does not stampede: 400 held requests, a limit of 7. */
static void test_no_burst_at_the_tick(void **state)
{
    (void)state;
    sim_init(&sim, 8, UNLIMITED, 1000, FIRST_COME, 13);
    sim_bucket(&sim, 0, 7);
    sim_conns(&sim, 400, 0, 1, 100);
    sim_start(&sim);
    sim_run(&sim, 30);
    for (uint64_t slot = 1; slot < sim.slots; slot++)
        assert_int_equal(sim.admitted[0][slot], 7);
}

static void test_observed_is_never_held_and_counted(void **state)
{
    uint32_t first;
    (void)state;
    sim_init(&sim, 2, UNLIMITED, 1000, FIRST_COME, 14);
    sim_bucket(&sim, 0, 100);
    hg_credit_bucket_set(&sim.buckets[0], 0, 100, true);
    first = sim_conns(&sim, 1, 0, 1, 1000);
    sim.conns[first].flags = HG_CREDIT_OBSERVE;
    sim_start(&sim);
    sim_run(&sim, 10);
    assert_in_range(sim.conns[first].done, 9990, 10000);
    assert_in_range(sim.conns[first].refused, 9000 - 10, 9000 + 1);
    sim.conns[first].flags = 0; // enforced from here on
    hg_credit_bucket_set(&sim.buckets[0], 0, 100, false);
    sim_run(&sim, 3);
    assert_int_equal(sim.admitted[0][sim.slots - 1], 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_1_operations_are_throttled),
        cmocka_unit_test(test_2_a_thousand_a_second),
        cmocka_unit_test(test_3_enough_is_not_throttled),
        cmocka_unit_test(test_4_unlimited_is_not_throttled),
        cmocka_unit_test(test_5_non_blocking_is_told_when),
        cmocka_unit_test(test_short_slots),
        cmocka_unit_test(test_an_hour),
        cmocka_unit_test(test_pool_between_two_without_hard_limit),
        cmocka_unit_test(test_a_reservation_is_there_when_it_is_needed),
        cmocka_unit_test(test_reservations_beyond_the_capacity),
        cmocka_unit_test(test_an_unthrottled_connection),
        cmocka_unit_test(test_limits_changed_while_requests_are_held),
        cmocka_unit_test(test_capacity_changed_on_the_way),
        cmocka_unit_test(test_a_bucket_without_reservation_wakes_up),
        cmocka_unit_test(test_reads_hold_the_limit_on_average),
        cmocka_unit_test(test_no_burst_at_the_tick),
        cmocka_unit_test(test_observed_is_never_held_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
