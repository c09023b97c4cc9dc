// t_probe_adaptive - the adaptive control against a small store, see proberig.h
// SPDX-License-Identifier: BSD-3-Clause
//
// How it fares with random demands, a line, tenants and many seeds is the simulator's, tests/sim.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "proberig.h"

#define ALL (2 * 1024)

#define assert_between(value, low, high)                                                           \
    do {                                                                                           \
        double between_ = (double)(value);                                                         \
        if (between_ < (low) || between_ > (high))                                                 \
            print_error("%s = %g is not in %g .. %g\n", #value, between_, (double)(low),           \
                        (double)(high));                                                           \
        assert_true(between_ >= (low) && between_ <= (high));                                      \
    } while (0)

/* A fast store, not overloaded: it has all tickets soon, and never less from then on. */

static void keeps_all(struct rig *rig, double s)
{
    rig_run(rig, 1);
    assert_int_equal(rig_total(rig), ALL);
    rig_mark(rig);
    rig_run(rig, s);
    assert_int_equal(rig->smallest, ALL);
    assert_int_equal(rig->probe.stats.stalls, 0);
    free(rig);
}

static void test_fast_store_keeps_all_tickets(void **state)
{
    struct rig *rig = rig_new(100, 16, 0);
    (void)state;
    rig->load = 20000;
    keeps_all(rig, 30);
}

/* Service times of 20 to 500 us, another mean each interval. */
static void test_fast_store_with_jitter_keeps_all_tickets(void **state)
{
    struct rig *rig = rig_new(200, 16, 0);
    (void)state;
    rig->load = 10000;
    rig->jitter = .5;
    keeps_all(rig, 1);
    rig = rig_new(200, 16, 0);
    rig->load = 10000;
    rig_run(rig, 1);
    rig_mark(rig);
    for (int i = 0; i < 300; i++) {
        rig->service_us = 20 + 480 * rig_chance(rig);
        rig_run(rig, .1);
    }
    assert_int_equal(rig->smallest, ALL);
    free(rig);
}

/* Batches: more clients than the store can work on, so that it is busy all the time. */
static void test_busy_fast_store_keeps_all_tickets(void **state)
{
    struct rig *rig = rig_new(100, 8, 0);
    (void)state;
    rig->clients = 400;
    rig->jitter = .1;
    keeps_all(rig, 20);
}

/* More clients than tickets, with a line that is never empty: 2048 / 150000 is 14 ms. */
static void test_fast_store_keeps_all_tickets_with_a_line(void **state)
{
    struct rig *rig = rig_new(100, 15, 0);
    (void)state;
    rig->clients = 2500;
    rig->jitter = .05;
    keeps_all(rig, 10);
}

/* A scheduler that does not let the store run for 60 ms, each second. */
static void test_hiccups_are_no_overload(void **state)
{
    struct rig *rig = rig_new(100, 16, 0);
    (void)state;
    rig->load = 20000;
    rig_run(rig, 1);
    rig_mark(rig);
    for (int i = 0; i < 20; i++) {
        rig_run(rig, .9 + .1 * rig_chance(rig));
        rig->service_us = 0;
        rig_run(rig, .06);
        rig->service_us = 100;
    }
    assert_int_equal(rig->smallest, ALL);
    free(rig);
}

static void test_no_load_at_all(void **state)
{
    struct rig *rig = rig_new(100, 16, 0);
    (void)state;
    rig_run(rig, 0.7);
    assert_int_equal(rig_total(rig), ALL); /* half a second, and the first interval */
    rig_run(rig, 8);
    assert_int_equal(rig_total(rig), ALL);
    assert_int_equal(rig->probe.stats.decreased, 0);
    free(rig);
}

/* Ten requests a second of 100 ms: intervals tell nothing. */
static void test_few_requests(void **state)
{
    struct rig *rig = rig_new(100000, 8, 0);
    uint32_t start = rig_total(rig);
    (void)state;
    rig->load = 10;
    rig_run(rig, 60);
    assert_true(rig->smallest + 2 >= start); // a share is rounded
    assert_int_equal(rig->probe.stats.stalls, 0);
    free(rig);
}

/* Overload: the size comes near the knee, and stays. */

static void finds_knee(double service_us, double knee, double fall, double jitter, double times)
{
    struct rig *rig = rig_new(service_us, knee, fall);
    double capacity = knee * 1e6 / service_us;
    rig->load = capacity * .5;
    rig->jitter = jitter;
    rig_run(rig, 2);
    rig->load = capacity * times;
    rig_run(rig, 1);
    assert_between(rig_run(rig, 10), capacity * .92, capacity * 1.08);
    assert_between(rig_total(rig), knee * .7, knee * 1.7);
    free(rig);
}

static void test_finds_a_sharp_knee(void **state)
{
    (void)state;
    finds_knee(10000, 20, .25, 0, 2);
    finds_knee(10000, 20, .5, .03, 5);
    finds_knee(5000, 40, .25, .03, 10);
}

static void test_finds_a_flat_knee(void **state)
{
    (void)state;
    finds_knee(10000, 20, 0, .03, 2);
    finds_knee(10000, 20, 0, .1, 10);
}

static void test_overload_from_the_beginning(void **state)
{
    struct rig *rig = rig_new(10000, 20, .5);
    (void)state;
    rig->load = 10000;
    rig_run(rig, 3);
    assert_between(rig_run(rig, 10), 1800, 2100);
    free(rig);
}

/* With all tickets in force the store turns slow: it is to hold a few and not thousands. */
static void test_fast_store_turns_slow(void **state)
{
    struct rig *rig = rig_new(200, 8, 0);
    (void)state;
    rig->load = 5000;
    rig_run(rig, 3);
    assert_int_equal(rig_total(rig), ALL);
    rig->service_us = 10000; // 800 a second
    rig_run(rig, 2.5);
    assert_between(rig_run(rig, 5), 720, 880);
    assert_between(rig_inside(rig), 6, 40);
    rig->service_us = 200;
    rig_run(rig, 1);
    assert_between(rig_run(rig, 3), 4800, 5200);
    assert_int_equal(rig_waiting(rig), 0);
    free(rig);
}

static void test_knee_is_halved_and_comes_back(void **state)
{
    struct rig *rig = rig_new(10000, 20, .25);
    (void)state;
    rig->load = 10000;
    rig->jitter = .03;
    rig_run(rig, 5);
    rig->knee = 10;
    rig_run(rig, 2);
    assert_between(rig_run(rig, 5), 920, 1060);
    rig->knee = 20;
    rig_run(rig, 4);
    assert_between(rig_run(rig, 5), 1840, 2100);
    free(rig);
}

/* Half as fast, with as many at a time: the size is right, and the base is not. */
static void test_speed_is_halved_and_comes_back(void **state)
{
    struct rig *rig = rig_new(10000, 20, .25);
    (void)state;
    rig->load = 10000;
    rig->jitter = .03;
    rig_run(rig, 5);
    rig->service_us = 20000;
    rig_run(rig, 2);
    assert_between(rig_run(rig, 5), 920, 1060);
    rig->service_us = 10000;
    rig_run(rig, 2);
    assert_between(rig_run(rig, 5), 1840, 2100);
    free(rig);
}

/* The path to the store is longer now, and it queues nothing: no throughput may be lost for it. */
static void test_latency_is_no_overload(void **state)
{
    struct rig *rig = rig_new(1000, 500, 0);
    (void)state;
    rig->load = 2000;
    rig_run(rig, 5);
    rig->service_us = 100000;
    rig_run(rig, 3);
    assert_between(rig_run(rig, 5), 1950, 2050);
    free(rig);
}

/* Both kinds share what there is by demand. */

static void test_reads_only(void **state)
{
    struct rig *rig = rig_new(10000, 20, .25);
    (void)state;
    rig->load = 4000;
    rig->reads = 1;
    rig_run(rig, 3);
    assert_between(rig_run(rig, 5), 1840, 2050);
    assert_between(rig->probe.size[HG_TICKET_READ], 15, 26);
    assert_true(rig->probe.size[HG_TICKET_WRITE] >= 4);
    /* The other way round. */
    rig->reads = 0;
    rig_run(rig, 2);
    assert_between(rig_run(rig, 5), 1840, 2050);
    assert_between(rig->probe.size[HG_TICKET_WRITE], 15, 26);
    free(rig);
}

static void test_mostly_reads(void **state)
{
    struct rig *rig = rig_new(10000, 20, .25);
    (void)state;
    rig->load = 4000;
    rig->reads = .9;
    rig_run(rig, 3);
    assert_between(rig_run(rig, 5), 1800, 2050);
    free(rig);
}

/* Stalls */

static void test_stall_halves_and_ends_with_the_first_answer(void **state)
{
    struct rig *rig = rig_new(10000, 20, .25);
    (void)state;
    rig->load = 10000;
    rig_run(rig, 5);
    uint32_t before = rig_total(rig);
    rig->service_us = 0;
    rig_run(rig, 3);
    assert_int_equal(rig->probe.stats.stalls, 1);
    assert_int_equal(rig_total(rig), 8);
    assert_true(rig_inside(rig) <= before);
    rig->service_us = 10000;
    rig_run(rig, .2);
    assert_between(rig_run(rig, 1), 1800, 2100);
    free(rig);
}

/* Without overload before: what came in meanwhile is bounded, and all is well a second later. */
static void test_stall_of_an_unloaded_store(void **state)
{
    struct rig *rig = rig_new(1000, 20, 0);
    (void)state;
    rig->load = 1000;
    rig_run(rig, 3);
    rig->service_us = 0;
    rig_run(rig, 3);
    assert_int_equal(rig->probe.stats.stalls, 1);
    assert_true(rig_inside(rig) <= 600);
    rig->service_us = 1000;
    rig_run(rig, 1);
    assert_between(rig_run(rig, 1), 950, 1050);
    assert_int_equal(rig_waiting(rig), 0);
    assert_int_equal(rig->probe.stats.stalls, 1);
    free(rig);
}

/* Flooded before anything was known of it, while the size was still on its way up: it stands still,
   and gets what a store begins with afterwards, not what has drowned it. */
static void test_stall_of_a_store_that_was_drowned(void **state)
{
    struct hg_probe probe;
    struct hg_probe_conf conf = rig_conf();
    struct hg_probe_seen seen = {0};
    (void)state;
    (void)hg_probe_init(&probe, &conf);
    uint32_t most = conf.max;
    for (unsigned step = 0; step < 9; step++) {
        seen.now_us += 100000;
        hg_probe_step(&probe, &seen); /* nothing is asked: it doubles */
        if (probe.size[HG_TICKET_READ] >= most / 2)
            break;
    }
    assert_true(probe.size[HG_TICKET_READ] >= 4 * 64 && probe.size[HG_TICKET_READ] < most);
    for (unsigned step = 0; step < 10; step++) {
        seen.now_us += 100000;
        seen.oldest_us += 100000;
        seen.holder[HG_TICKET_READ] = (struct hg_probe_holder_seen){
            .peak = 500, .out = 500, .waiting = 10, .queue_min_us = 50000};
        hg_probe_step(&probe, &seen);
    }
    assert_int_equal(probe.stats.stalls, 1);
    seen.now_us += 100000;
    seen.oldest_us = 1000;
    seen.holder[HG_TICKET_READ].finished = 1;
    seen.holder[HG_TICKET_READ].service_us = 900000;
    hg_probe_step(&probe, &seen);
    assert_true(probe.size[HG_TICKET_READ] + probe.size[HG_TICKET_WRITE] <= 128);
}

/* One that waits long for itself is none. */
static void test_few_slow_requests_are_no_stall(void **state)
{
    struct rig *rig = rig_new(2000000, 100, 0);
    (void)state;
    rig->load = 2;
    rig_run(rig, 60);
    assert_int_equal(rig->probe.stats.stalls, 0);
    free(rig);
}

/* Bounds */

static void test_bounds_hold(void **state)
{
    struct rig *rig = rig_new(10000, 200, 0);
    struct hg_probe_conf conf = rig_conf();
    (void)state;
    conf.min = 2;
    conf.max = 25;
    (void)hg_probe_init(&rig->probe, &conf);
    rig->load = 100000;
    for (int i = 0; i < 100; i++) {
        rig_run(rig, .1);
        for (int kind = 0; kind < HG_TICKET_KINDS; kind++)
            assert_in_range(rig->probe.size[kind], 2, 25);
    }
    assert_between(rig_total(rig), 45, 50);
    conf.max = 10;
    (void)hg_probe_configure(&rig->probe, &conf);
    assert_between(rig_total(rig), 4, 20);
    conf.min = conf.max = 7;
    (void)hg_probe_configure(&rig->probe, &conf);
    rig_run(rig, 3);
    assert_int_equal(rig_total(rig), 14);
    free(rig);
}

/* Peaks above the size, negative counts and times that stand still: nothing that is seen may lead
   out of bounds. */
static void test_any_input_stays_within_bounds(void **state)
{
    struct hg_prng prng = {7};
    struct hg_probe_conf conf = rig_conf();
    struct hg_probe probe;
    struct hg_probe_seen seen = {0};
    (void)state;
    (void)hg_probe_init(&probe, &conf);
    for (int i = 0; i < 200000; i++) {
        seen.now_us += hg_prng_below(&prng, 4) * 50000;
        for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
            struct hg_probe_holder_seen *holder = &seen.holder[kind];
            uint64_t scale = (uint64_t)1 << hg_prng_below(&prng, 20);
            holder->out = (int64_t)hg_prng_below(&prng, scale) - (i % 50 == 0);
            holder->peak = holder->out + (int64_t)hg_prng_below(&prng, 10);
            holder->finished = hg_prng_below(&prng, 5) == 0 ? 0 : hg_prng_below(&prng, scale);
            holder->service_us = holder->finished * hg_prng_below(&prng, scale);
            holder->waiting = hg_prng_below(&prng, 3) == 0 ? 0 : hg_prng_below(&prng, scale);
        }
        seen.oldest_us = hg_prng_below(&prng, 2000000);
        hg_probe_step(&probe, &seen);
        for (int kind = 0; kind < HG_TICKET_KINDS; kind++)
            assert_in_range(probe.size[kind], conf.min, conf.max);
        assert_true(probe.stable_size >= 2 * conf.min && probe.stable_size <= 2 * conf.max);
        assert_true(probe.adaptive.base_us >= 0 && probe.adaptive.variance >= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_store_keeps_all_tickets),
        cmocka_unit_test(test_fast_store_with_jitter_keeps_all_tickets),
        cmocka_unit_test(test_busy_fast_store_keeps_all_tickets),
        cmocka_unit_test(test_fast_store_keeps_all_tickets_with_a_line),
        cmocka_unit_test(test_hiccups_are_no_overload),
        cmocka_unit_test(test_no_load_at_all),
        cmocka_unit_test(test_few_requests),
        cmocka_unit_test(test_finds_a_sharp_knee),
        cmocka_unit_test(test_finds_a_flat_knee),
        cmocka_unit_test(test_overload_from_the_beginning),
        cmocka_unit_test(test_fast_store_turns_slow),
        cmocka_unit_test(test_knee_is_halved_and_comes_back),
        cmocka_unit_test(test_speed_is_halved_and_comes_back),
        cmocka_unit_test(test_latency_is_no_overload),
        cmocka_unit_test(test_reads_only),
        cmocka_unit_test(test_mostly_reads),
        cmocka_unit_test(test_stall_halves_and_ends_with_the_first_answer),
        cmocka_unit_test(test_stall_of_an_unloaded_store),
        cmocka_unit_test(test_stall_of_a_store_that_was_drowned),
        cmocka_unit_test(test_few_slow_requests_are_no_stall),
        cmocka_unit_test(test_bounds_hold),
        cmocka_unit_test(test_any_input_stays_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
