// t_overload - controllers of admission under steady load: goodput, p99, fairness, stability
// SPDX-License-Identifier: BSD-3-Clause
//
// All on the same arrivals, demands and noise for each seed; medians over ten seeds. A test is a
// table and the bars of `adaptive` in it. The oracle knows the knee; it is a reference and takes no
// part in the comparison.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "overload_case.h"

#define LOADS 5

static const double loads[LOADS] = {.8, 1, 2, 5, 10};
static const char *const load_names[LOADS] = {".8x", "1x", "2x", "5x", "10x"};

/* Goodput of `adaptive`, part of the capacity; 0: no bar of its own. */
static const double bars[LOADS] = {0, 0, .95, .9, .85};

#define JAIN .95

/* How many bars are missed. */
static int run_row(const char *name, const struct overload_setup *setup, uint32_t seeds, double bar)
{
    struct overload_row row;
    const struct overload_score *ours = &row.scores[OVERLOAD_ADAPTIVE];
    int missed = 0;
    overload_compare(name, setup, seeds, &row);
    overload_print(setup, &row);
    if (ours->goodput < bar) {
        printf("#  adaptive misses %.2f of goodput: %.3f\n", bar, ours->goodput);
        missed++;
    }
    if (ours->jain < JAIN) {
        printf("#  adaptive misses %.2f of Jain's index: %.3f\n", JAIN, ours->jain);
        missed++;
    }
    return missed + overload_is_worst(&row, OVERLOAD_ADAPTIVE);
}

static int run_loads(const char *title, enum overload_store store, double t, uint32_t seeds)
{
    int missed = 0;
    overload_print_head(title);
    for (uint32_t i = 0; i < LOADS; i++) {
        struct overload_setup setup = overload_steady(store, t, loads[i]);
        missed += run_row(load_names[i], &setup, seeds, bars[i]);
    }
    return missed;
}

static void test_falls_beyond_the_knee(void **state)
{
    (void)state;
    assert_int_equal(run_loads("knee 20, falls by 0.25", OVERLOAD_SMALL, .25, overload_seeds()), 0);
}

static void test_falls_steeply(void **state)
{
    (void)state;
    assert_int_equal(run_loads("knee 20, falls by 0.5", OVERLOAD_SMALL, .5, overload_seeds()), 0);
}

static void test_flat_beyond_the_knee(void **state)
{
    (void)state;
    assert_int_equal(run_loads("knee 20, flat beyond", OVERLOAD_SMALL, 0, overload_seeds()), 0);
}

static void test_noise(void **state)
{
    static const double noises[] = {.03, .1};
    static const char *const names[] = {"noise 3 percent", "noise 10 percent"};
    int missed = 0;
    (void)state;
    overload_print_head("knee 20, falls by 0.25, at 5x: other noise");
    for (uint32_t i = 0; i < 2; i++) {
        struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 5);
        setup.backend.noise = noises[i];
        missed += run_row(names[i], &setup, overload_seeds(), .9);
    }
    assert_int_equal(missed, 0);
}

/* The load is there from the first moment, before anything is known of the store. */
static void test_cold_start(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 5);
    (void)state;
    setup.phase_count = 0;
    overload_add_phase(&setup, 0, 5, 1, 1);
    overload_set_end(&setup, 2, 8);
    overload_print_head("knee 20, falls by 0.25, at 5x: from the first moment, seen from 2 s on");
    assert_int_equal(run_row("cold start", &setup, overload_seeds(), .9), 0);
}

/* Ten times as many requests: fewer seeds. */
static void test_large_store(void **state)
{
    uint32_t seeds = (overload_seeds() + 4) / 5;
    (void)state;
    assert_int_equal(run_loads("knee 64, falls by 0.25", OVERLOAD_LARGE, .25, seeds), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_falls_beyond_the_knee),
        cmocka_unit_test(test_falls_steeply),
        cmocka_unit_test(test_flat_beyond_the_knee),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_cold_start),
        cmocka_unit_test(test_large_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
