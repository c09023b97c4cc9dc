// t_overloadstep - controllers of admission when load or capacity change
// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of load by 4, up and down, and from a tenth to four times the capacity; capacity halved at
// a constant load of 5x and restored, once since fewer requests can be worked on at a time (the
// knee halves), once since each takes twice as long (the knee stays); a store that pauses for 3 s.
// Medians over ten seeds. What converged means is said in overload_score.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "overload_case.h"

#define UP_S   1. /* after a step up of load */
#define DROP_S 2. /* after a halving of capacity */
#define BACK_S 4. /* after it was restored: a step up is judged while those in line still count */

/* At the end of a phase of 2x and more: no poor size to converge to. Steady loads have bars of
   their own, over longer times, in t_overload.c. */
#define GOODPUT .9

#define PHASE_S 8

static double goodput_bar(const struct overload_setup *setup, uint32_t phase)
{
    double capacity = overload_capacity(setup, &setup->phases[phase]);
    double load = setup->phases[phase].load;
    return phase > 0 && capacity > 0 && load >= 2 * capacity ? GOODPUT : 0;
}

/* How many bars are missed. `within_s`: of each phase, to converge; 0: there is no bar. */
static int run_row(const char *name, const struct overload_setup *setup, const double *within_s,
                   struct overload_row *row)
{
    const struct overload_score *ours = &row->scores[OVERLOAD_ADAPTIVE];
    int missed = 0;
    overload_compare(name, setup, overload_seeds(), row);
    overload_print(setup, row);
    overload_print_phases(setup, row);
    for (uint32_t i = 0; i < setup->phase_count; i++) {
        double bar = goodput_bar(setup, i);
        if (ours->phases[i].goodput < bar) {
            printf("#  adaptive misses %.2f of goodput at the end of phase %u: %.3f\n", bar,
                   (unsigned)i, ours->phases[i].goodput);
            missed++;
        }
        if (within_s[i] > 0 && ours->phases[i].converged_s >= within_s[i]) {
            printf("#  adaptive misses %.1f s to converge in phase %u: %.1f\n", within_s[i],
                   (unsigned)i, ours->phases[i].converged_s);
            missed++;
        }
    }
    return missed + overload_is_worst(row, OVERLOAD_ADAPTIVE);
}

static struct overload_setup make_steps(enum overload_store store, double low, double high)
{
    struct overload_setup setup = overload_steady(store, .25, low);
    setup.phase_count = 0;
    overload_add_phase(&setup, 0, low, 1, 1);
    overload_add_phase(&setup, PHASE_S, high, 1, 1);
    overload_add_phase(&setup, 2 * PHASE_S, low, 1, 1);
    overload_set_end(&setup, PHASE_S, 3 * PHASE_S);
    return setup;
}

static void test_load_steps_by_four(void **state)
{
    const double within_s[] = {0, UP_S, UP_S};
    struct overload_setup setup = make_steps(OVERLOAD_SMALL, .5, 2);
    struct overload_row row;
    (void)state;
    overload_print_head("knee 20, falls by 0.25: 0.5x, 2x, 0.5x");
    assert_int_equal(run_row("step by 4", &setup, within_s, &row), 0);
}

static void test_load_steps_from_a_tenth_to_four(void **state)
{
    const double within_s[] = {0, 1.5 * UP_S, UP_S};
    struct overload_setup setup = make_steps(OVERLOAD_SMALL, .1, 4);
    struct overload_row row;
    (void)state;
    overload_print_head("knee 20, falls by 0.25: 0.1x, 4x, 0.1x");
    assert_int_equal(run_row("step by 40", &setup, within_s, &row), 0);
}

static struct overload_setup make_halving(double speed, double knee)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 5);
    setup.phase_count = 0;
    overload_add_phase(&setup, 0, .5, 1, 1);
    overload_add_phase(&setup, 1, 5, 1, 1);
    overload_add_phase(&setup, PHASE_S, 5, speed, knee);
    overload_add_phase(&setup, 2 * PHASE_S, 5, 1, 1);
    overload_set_end(&setup, PHASE_S, 3 * PHASE_S);
    return setup;
}

/* The reference says what becomes of probing: while tickets are exhausted its only way is up, so
   it stays above the new knee. */
static int count_not_stuck(const struct overload_row *row)
{
    const struct overload_phase_score *probing = row->scores[OVERLOAD_PROBING].phases;
    int missed = 0;
    missed += probing[2].goodput > .7;
    missed += probing[2].converged_s < DROP_S;
    return missed;
}

static void test_knee_is_halved(void **state)
{
    const double within_s[] = {0, 0, DROP_S, BACK_S};
    struct overload_setup setup = make_halving(1, .5);
    struct overload_row row;
    (void)state;
    overload_print_head("knee 20, falls by 0.25, at 5x: knee halved, restored");
    int missed = run_row("knee halved", &setup, within_s, &row);
    missed += count_not_stuck(&row);
    assert_int_equal(missed, 0);
}

static void test_speed_is_halved(void **state)
{
    const double within_s[] = {0, 0, DROP_S, DROP_S};
    struct overload_setup setup = make_halving(.5, 1);
    struct overload_row row;
    (void)state;
    overload_print_head("knee 20, falls by 0.25, at 5x: speed halved, restored");
    assert_int_equal(run_row("speed halved", &setup, within_s, &row), 0);
}

/* Goodput of the second second after the pause, of each seed, is back to 85 percent; meanwhile
   what is inside, and so memory, is bounded by the tickets. */
static void test_store_pauses(void **state)
{
    const double within_s[4] = {0};
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 5);
    struct overload_row row;
    double back = 0;
    int missed;
    (void)state;
    overload_add_phase(&setup, 6, 5, 0, 1);
    overload_add_phase(&setup, 9, 5, 1, 1);
    overload_set_end(&setup, 9, 15);
    overload_print_head("knee 20, falls by 0.25, at 5x: the store pauses for 3 s");
    missed = run_row("pause", &setup, within_s, &row);
    for (uint32_t c = 0; c < OVERLOAD_CONTROLS; c++) {
        double sum = 0;
        for (uint32_t seed = 1; seed <= overload_seeds(); seed++) {
            struct overload_tally tally;
            setup.seed = seed;
            overload_run(&setup, &overload_controls[c], &tally);
            sum += overload_good_per_s(&tally, 10000000, 11000000) /
                   overload_capacity(&setup, &setup.phases[0]) / overload_seeds();
            overload_tally_fini(&tally);
        }
        printf("#   %-9s goodput from 1 s to 2 s after the pause: %.3f\n",
               overload_controls[c].name, sum);
        if (c == OVERLOAD_ADAPTIVE)
            back = sum;
    }
    missed += back < .85;
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_steps_by_four),
        cmocka_unit_test(test_load_steps_from_a_tenth_to_four),
        cmocka_unit_test(test_knee_is_halved),
        cmocka_unit_test(test_speed_is_halved),
        cmocka_unit_test(test_store_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
