// t_hotsimlife - hot keys come and go: what becomes of them, and of everybody else
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>
#include "base/attr.h"
#include "hotsim.h"

#define T      1000
#define OTHERS 20000 // further keys of the tenant, from number 1000 on

static struct hotsim sim;

/* Each test with both controls. */
static enum hg_hotkey_control control;

static void begin(unsigned workers, uint64_t threshold, unsigned counters, uint64_t seed)
{
    hotsim_init(&sim, workers, control, threshold, counters, seed);
}

static void offer_others(void)
{
    for (uint32_t i = 0; i < OTHERS; i++)
        hotsim_offer(&sim, 1000 + i, 1 + i % 3);
}

/* A tenant's other keys lose nothing. */
static void assert_others_are_served(void)
{
    for (uint32_t id = 1000; id < HOTSIM_KEYS; id++)
        assert_int_equal(sim.admitted[id], sim.offered[id]);
}

static void run_epoch(uint64_t hot)
{
    hotsim_offer(&sim, 0, hot);
    offer_others();
    hotsim_epoch(&sim);
    assert_others_are_served();
}

static void hot_then_cool(uint64_t hot, uint64_t cool)
{
    unsigned epochs = 0;
    begin(4, T, 512, hot + cool);
    for (unsigned epoch = 0; epoch < 5; epoch++) {
        run_epoch(cool);
        assert_int_equal(sim.throttle.count, 0);
    }
    run_epoch(hot);
    assert_true(hotsim_percent(&sim, 0) > 0); // found in the epoch in which it turned hot
    for (unsigned epoch = 0; epoch < 20; epoch++) {
        run_epoch(hot);
        assert_int_equal(sim.throttle.count, 1);
    }
    while (sim.throttle.count > 0) {
        run_epoch(cool);
        epochs++;
        assert_true(epochs <= (control == HG_HOTKEY_STEP ? 14 : 2));
    }
    for (unsigned epoch = 0; epoch < 5; epoch++) {
        run_epoch(cool);
        assert_int_equal(sim.admitted[0], cool);
        assert_int_equal(sim.throttle.count, 0);
    }
    hotsim_fini(&sim);
}

static void test_a_key_that_cools_is_released(void **state)
{
    (void)state;
    hot_then_cool(10 * T, 0);
    hot_then_cool(10 * T, T / 2);
    hot_then_cool(5 * T, T / 10);
}

static void test_a_key_at_the_threshold_is_left_alone(void **state)
{
    (void)state;
    begin(4, T, 512, 3);
    for (unsigned epoch = 0; epoch < 20; epoch++) {
        run_epoch(T);
        assert_int_equal(sim.admitted[0], T);
    }
    assert_int_equal(sim.throttle.count, 0);
    hotsim_fini(&sim);
}

/* The mean of what is admitted over the next epochs, in parts of a threshold. */
static double admitted_mean(uint64_t hot, unsigned epochs, double threshold)
{
    double sum = 0;
    for (unsigned epoch = 0; epoch < epochs; epoch++) {
        run_epoch(hot);
        sum += (double)sim.admitted[0];
    }
    return sum / epochs / threshold;
}

static void test_a_threshold_is_changed(void **state)
{
    static const uint64_t thresholds[] = {1000, 3000, 500, 1500};
    (void)state;
    begin(2, T, 512, 4);
    run_epoch(8000);
    for (unsigned i = 0; i < HG_COUNT_OF(thresholds); i++) {
        double t = (double)thresholds[i], mean;
        sim.settings.threshold = thresholds[i];
        if (control == HG_HOTKEY_PROPORTIONAL) {
            run_epoch(8000); // its end decides with the new one
            mean = admitted_mean(8000, 5, t);
            assert_true(mean > 0.95 && mean < 1.05);
        } else {
            admitted_mean(8000, 15, t);
            mean = admitted_mean(8000, 60, t);
            assert_true(mean > 0.6 && mean < 1.1);
        }
    }
    sim.settings.threshold = 9000;
    for (unsigned epoch = 0; epoch < 15; epoch++)
        run_epoch(8000);
    assert_int_equal(sim.throttle.count, 0);
    hotsim_fini(&sim);
}

static void test_threshold_nought_lets_everything_pass(void **state)
{
    (void)state;
    begin(2, T, 512, 5);
    for (unsigned epoch = 0; epoch < 4; epoch++)
        run_epoch(10 * T);
    assert_int_equal(sim.throttle.count, 1);
    assert_true(sim.admitted[0] < 10 * T);
    sim.settings.threshold = 0;
    run_epoch(10 * T);
    assert_int_equal(sim.throttle.count, 0);
    for (unsigned epoch = 0; epoch < 4; epoch++) {
        run_epoch(10 * T);
        assert_int_equal(sim.admitted[0], 10 * T);
        assert_int_equal(sim.throttle.count, 0);
    }
    sim.settings.threshold = T;
    run_epoch(10 * T);
    assert_int_equal(sim.throttle.count, 1);
    hotsim_fini(&sim);
}

static void test_epochs_of_no_one_and_many_keys(void **state)
{
    (void)state;
    begin(4, 10, 512, 6);
    for (unsigned turn = 0; turn < 3; turn++) {
        hotsim_epoch(&sim);
        assert_int_equal(hg_hotmerge_used(sim.spans[0].merged), 0);
        assert_int_equal(sim.throttle.count, 0);
        hotsim_offer(&sim, 5, 1);
        hotsim_epoch(&sim);
        assert_int_equal(hg_hotmerge_used(sim.spans[0].merged), 1);
        for (uint32_t id = 0; id < HOTSIM_KEYS; id++)
            hotsim_offer(&sim, id, 1);
        hotsim_epoch(&sim);
        /* Their counts are near 10^5 / 512, all of it error: nobody is hot. */
        assert_int_equal(hg_hotmerge_total(sim.spans[0].merged), HOTSIM_KEYS);
        assert_int_equal(hg_hotmerge_used(sim.spans[0].merged), 512);
        assert_int_equal(sim.throttle.count, 0);
    }
    hotsim_fini(&sim);
}

/* A machine slept for a minute: its requests of two seconds lie in an epoch of 62. */
static void test_a_clock_that_jumps(void **state)
{
    (void)state;
    begin(2, T, 512, 7);
    for (unsigned epoch = 0; epoch < 100; epoch++) {
        hotsim_offer(&sim, 0, 2 * T);
        hotsim_epoch(&sim);
    }
    int before = hotsim_percent(&sim, 0);
    hotsim_offer(&sim, 0, 2 * T);
    hotsim_epoch_of(&sim, 31 * HOTSIM_NOMINAL_US);
    int after = hotsim_percent(&sim, 0);
    assert_int_equal(before, control == HG_HOTKEY_STEP ? 60 : 50);
    assert_int_equal(after, 50); // the mean falls from 0.8 T to 0.6 T: one step, not one a second
    /* And load that went on all the time is judged by its rate. */
    for (unsigned epoch = 0; epoch < 20; epoch++)
        run_epoch(2 * T);
    before = hotsim_percent(&sim, 0);
    hotsim_offer(&sim, 0, 2 * T * 31);
    hotsim_epoch_of(&sim, 31 * HOTSIM_NOMINAL_US);
    assert_true(abs(hotsim_percent(&sim, 0) - before) <= (control == HG_HOTKEY_STEP ? 0 : 1));
    hotsim_fini(&sim);
}

static void test_many_hot_keys_are_all_found(void **state)
{
    unsigned epoch = 0, listed = 0;
    (void)state;
    begin(4, 500, 512, 8);
    while (listed < 25) {
        for (uint32_t id = 0; id < 25; id++)
            hotsim_offer(&sim, id, 4000);
        offer_others();
        hotsim_epoch(&sim);
        assert_others_are_served();
        listed = 0;
        for (uint32_t id = 0; id < 25; id++)
            listed += hotsim_percent(&sim, id) > 0;
        assert_true(++epoch <= 20);
    }
    printf("# 25 hot keys of one tenant: all are listed after %u epochs\n", epoch);
    hotsim_fini(&sim);
}

static void test_at_most_1024_are_listed(void **state)
{
    (void)state;
    begin(2, 2, 4096, 9);
    for (unsigned epoch = 0; epoch < 125; epoch++) {
        for (uint32_t id = 0; id < 1100; id++)
            hotsim_offer(&sim, id, 20);
        hotsim_epoch(&sim);
        assert_true(sim.throttle.count <= HG_KEYTHROTTLE_KEYS);
    }
    if (control == HG_HOTKEY_PROPORTIONAL)
        assert_int_equal(sim.throttle.count, HG_KEYTHROTTLE_KEYS);
    hotsim_fini(&sim);
}

/* A key that comes in bursts, every other epoch. */
static void test_bursts_are_held(void **state)
{
    double sum = 0;
    (void)state;
    begin(4, T, 512, 10);
    for (unsigned epoch = 0; epoch < 60; epoch++) {
        run_epoch(epoch % 2 == 0 ? 10 * T : 0);
        if (epoch >= 20)
            sum += (double)sim.admitted[0] / 40;
    }
    assert_true(sum <= T); // on average, of 5 T offered
    hotsim_fini(&sim);
}

static int with_step(void **state)
{
    (void)state;
    control = HG_HOTKEY_STEP;
    return 0;
}

static int with_proportional(void **state)
{
    (void)state;
    control = HG_HOTKEY_PROPORTIONAL;
    return 0;
}

int main(void)
{
#define BOTH(f)                                                                                    \
    {#f " (step)", f, with_step, NULL, NULL},                                                      \
    {                                                                                              \
#f " (proportional)", f, with_proportional, NULL, NULL                                     \
    }
    const struct CMUnitTest tests[] = {
        BOTH(test_a_key_that_cools_is_released),
        BOTH(test_a_key_at_the_threshold_is_left_alone),
        BOTH(test_a_threshold_is_changed),
        BOTH(test_threshold_nought_lets_everything_pass),
        BOTH(test_epochs_of_no_one_and_many_keys),
        BOTH(test_a_clock_that_jumps),
        BOTH(test_many_hot_keys_are_all_found),
        BOTH(test_at_most_1024_are_listed),
        BOTH(test_bursts_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
