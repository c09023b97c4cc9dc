// t_overloadrules - the simulation of overload itself: is it the model that it claims to be?
// SPDX-License-Identifier: BSD-3-Clause
//
// The backend's rate, processor sharing against what queueing theory says of it, equal arrivals for
// all, sessions with one waiting request, time-outs that keep their tickets; the steps of Vegas and
// Gradient2 by hand; the scores on made-up runs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "overload_case.h"
#include "overload_in.h"

#define S 1000000u

static void assert_near(double value, double expected, double error)
{
    if (!(fabs(value - expected) <= error))
        fail_msg("%g is not within %g of %g", value, error, expected);
}

/* The backend */

static void test_rate_grows_to_the_knee_and_falls_beyond(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 1);
    struct overload_server server;
    (void)state;
    overload_server_init(&server, &setup);
    assert_near(overload_server_rate(&server, 1), 100, 1e-9);
    assert_near(overload_server_rate(&server, 20), 2000, 1e-9);
    assert_near(overload_server_rate(&server, 40), 2000 * .75, 1e-9);
    assert_near(overload_server_rate(&server, 200), 2000 * .05, 1e-9);
    overload_server_fini(&server);
}

static void test_requests_share_alike(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, 0, 1);
    struct overload_request requests[40] = {0};
    struct overload_server server;
    (void)state;
    overload_server_init(&server, &setup);
    server.noise_us = OVERLOAD_NEVER;
    for (uint32_t i = 0; i < 40; i++) {
        requests[i].demand = i == 0 ? .5 : 1;
        overload_server_put(&server, &requests[i]);
    }
    /* Twice the knee: each gets half of what it would have alone. */
    assert_int_equal(overload_server_next_us(&server), 10000);
    overload_server_go(&server, 10000);
    assert_ptr_equal(overload_server_take(&server), &requests[0]);
    assert_null(overload_server_take(&server));
    /* Of the other 39 a half is left: 39 / 2 demands at 2,000 a second. */
    assert_int_equal(overload_server_next_us(&server), 10000 + 9750);
    overload_server_go(&server, 10000 + 9750);
    for (uint32_t i = 1; i < 40; i++)
        assert_non_null(overload_server_take(&server));
    overload_server_fini(&server);
}

/* Mean number in a system with k servers' worth of rate, shared, exponential demands (M/M/k). */
static double mean_inside(double load, uint32_t k)
{
    double a = load * k, term = 1, sum = 1, queue;
    for (uint32_t n = 1; n < k; n++)
        sum += term *= a / n;
    term *= a / k;
    queue = term / (1 - load) / (sum + term / (1 - load));
    return a + queue * load / (1 - load);
}

/* By Little's law the mean time in the system is what is inside / what arrives. */
static void test_queueing_theory_holds(void **state)
{
    static const double loads[] = {.5, .8, .9};
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct overload_setup setup = overload_steady(OVERLOAD_SMALL, 0, loads[i]);
        struct overload_tally tally;
        double sum_us = 0, expected_us = mean_inside(loads[i], 20) / (loads[i] * 2000) * 1e6;
        setup.phase_count = 0;
        setup.backend.noise = 0;
        setup.seed = 1;
        overload_add_phase(&setup, 0, loads[i], 1, 1);
        overload_set_end(&setup, 5, 200);
        overload_run(&setup, &overload_controls[OVERLOAD_FIXED], &tally);
        for (uint32_t l = 0; l < tally.latency_count; l++)
            sum_us += tally.latencies_us[l];
        printf("# load %.1f: mean time %.0f us, by theory %.0f us\n", loads[i],
               sum_us / tally.latency_count, expected_us);
        assert_near(sum_us / tally.latency_count, expected_us, .04 * expected_us);
        overload_tally_fini(&tally);
    }
}

static void test_bimodal_demands_have_mean_one(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, 0, 1);
    struct overload_source source;
    struct overload_arrival arrival;
    double sum = 0;
    uint32_t big = 0;
    (void)state;
    setup.backend.demand = OVERLOAD_BIMODAL;
    overload_source_init(&source, &setup);
    for (uint32_t i = 0; i < 1000000; i++) {
        overload_source_next(&source, &arrival);
        sum += arrival.demand;
        big += arrival.demand > 10;
    }
    assert_near(sum / 1e6, 1, .02);
    assert_near(big / 1e6, .01, .0005);
}

/* Runs */

/* Something of a controller under test: sizes that a test chose. */
static uint32_t chosen[HG_TICKET_KINDS];
static struct overload_seen last_seen;

static void *make_chosen(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS])
{
    (void)setup;
    memcpy(ret_size, chosen, sizeof(chosen));
    return NULL;
}

static void step_chosen(void *control, const struct overload_seen *seen,
                        uint32_t ret_size[HG_TICKET_KINDS])
{
    (void)control;
    last_seen = *seen;
    memcpy(ret_size, chosen, sizeof(chosen));
}

static const struct overload_control control_chosen = {"chosen", make_chosen, step_chosen};

static void run_chosen(struct overload_setup *setup, uint32_t reads, uint32_t writes,
                       struct overload_tally *ret_tally)
{
    chosen[HG_TICKET_READ] = reads;
    chosen[HG_TICKET_WRITE] = writes;
    overload_run(setup, &control_chosen, ret_tally);
}

static struct overload_bin sum_of(const struct overload_tally *tally)
{
    struct overload_bin sum = {0};
    for (uint32_t i = 0; i < tally->bin_count; i++) {
        sum.good += tally->bins[i].good;
        sum.offered += tally->bins[i].offered;
        sum.answered += tally->bins[i].answered;
        sum.refused += tally->bins[i].refused;
        sum.timed_out += tally->bins[i].timed_out;
        sum.waited += tally->bins[i].waited;
    }
    return sum;
}

/* The same arrivals for each controller; the same run for the same controller. */
static void test_arrivals_are_equal(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 2);
    struct overload_tally first, other;
    (void)state;
    setup.seed = 7;
    overload_run(&setup, &overload_controls[OVERLOAD_ORACLE], &first);
    overload_run(&setup, &overload_controls[OVERLOAD_ORACLE], &other);
    assert_memory_equal(first.bins, other.bins, first.bin_count * sizeof(*first.bins));
    overload_tally_fini(&other);
    overload_run(&setup, &overload_controls[OVERLOAD_FIXED], &other);
    for (uint32_t i = 0; i < first.bin_count; i++)
        assert_int_equal(first.bins[i].offered, other.bins[i].offered);
    assert_int_not_equal(sum_of(&first).answered, sum_of(&other).answered);
    overload_tally_fini(&first);
    overload_tally_fini(&other);
}

/* Without tickets all is refused; a session has one waiting request at a time: with a queue
   time-out of 1 s and two kinds no more than one each second of each session gets in line at first.
 */
static void test_a_session_has_one_waiting_request(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 1);
    struct overload_tally tally;
    struct overload_bin sum;
    (void)state;
    setup.seed = 1;
    setup.tenants = 2;
    setup.sessions = setup.heavy_sessions = 1;
    overload_set_end(&setup, 0, 1);
    setup.phase_count = 1;
    run_chosen(&setup, 0, 0, &tally);
    sum = sum_of(&tally);
    assert_int_equal(sum.answered, 0);
    assert_in_range(sum.offered, 900, 1100);
    /* The first two give up after a second, and what is behind them is as old as they are. */
    assert_in_range(sum.waited, 2, 2);
    overload_tally_fini(&tally);
}

/* What the tickets let in and no more; the sizes of both kinds are kept apart. */
static void test_tickets_bound_what_is_inside(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 10);
    struct overload_tally tally;
    (void)state;
    setup.seed = 1;
    run_chosen(&setup, 3, 4, &tally);
    assert_int_equal(tally.peak, 7);
    assert_int_equal(last_seen.probe.holder[HG_TICKET_READ].peak, 3);
    assert_int_equal(last_seen.probe.holder[HG_TICKET_WRITE].peak, 4);
    overload_tally_fini(&tally);
}

/* A paused store: who is inside is answered after 1 s, yet its ticket stays out, and when the store
   goes on its late answers count nowhere. */
static void test_a_time_out_keeps_its_ticket(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 2);
    struct overload_tally tally;
    struct overload_bin sum;
    (void)state;
    setup.seed = 1;
    setup.phase_count = 0;
    overload_add_phase(&setup, 0, 2, 0, 1);
    overload_add_phase(&setup, 3, 2, 1, 1);
    overload_set_end(&setup, 0, 3);
    run_chosen(&setup, 5, 5, &tally);
    sum = sum_of(&tally);
    assert_int_equal(sum.timed_out, 10);
    assert_int_equal(sum.answered, 0);
    assert_int_equal(tally.peak, 10);
    assert_int_equal(last_seen.probe.holder[HG_TICKET_READ].out, 5);
    assert_int_equal(last_seen.probe.oldest_us, 0);
    overload_tally_fini(&tally);
    overload_set_end(&setup, 0, 4);
    run_chosen(&setup, 5, 5, &tally);
    sum = sum_of(&tally);
    assert_int_equal(sum.timed_out, 10);
    assert_near(sum.answered, 1000, 120);
    overload_tally_fini(&tally);
}

/* Nearly all are refused, at once; a second try that is let in is not tried again. */
static void test_refusals_are_retried(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 2);
    struct overload_tally tally;
    uint32_t once;
    (void)state;
    setup.seed = 1;
    run_chosen(&setup, 1, 1, &tally);
    once = sum_of(&tally).refused;
    overload_tally_fini(&tally);
    setup.retries = 3;
    run_chosen(&setup, 1, 1, &tally);
    assert_near(sum_of(&tally).refused, 4. * once, .05 * 4 * once);
    overload_tally_fini(&tally);
}

/* A fixed size without regard to the knee collapses, the knee does not. */
static void test_collapse_is_possible(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 2);
    struct overload_row row;
    (void)state;
    overload_compare("2x", &setup, 1, &row);
    assert_true(row.scores[OVERLOAD_FIXED].goodput < .1);
    assert_true(row.scores[OVERLOAD_ORACLE].goodput > .97);
}

/* Vegas and Gradient2 */

static uint32_t step_once(enum overload_which which, void *own, double rtt_us, int64_t inflight,
                          uint64_t drops)
{
    struct overload_seen seen = {.drops = drops};
    uint32_t size[HG_TICKET_KINDS];
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
        seen.probe.holder[k].finished = 50;
        seen.probe.holder[k].service_us = (uint64_t)(rtt_us * 50);
        seen.probe.holder[k].peak = inflight / 2;
    }
    overload_controls[which].step(own, &seen, size);
    return size[HG_TICKET_READ] + size[HG_TICKET_WRITE];
}

static void test_vegas_steps(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 2);
    uint32_t size[HG_TICKET_KINDS];
    void *vegas = overload_controls[OVERLOAD_VEGAS].make(&setup, size);
    (void)state;
    assert_int_equal(size[HG_TICKET_READ] + size[HG_TICKET_WRITE], 20);
    /* Nothing queues: + 6 log L. Of 26 then 2: + log L; 5: as it is; 9: - log L; a drop; idle. */
    assert_int_equal(step_once(OVERLOAD_VEGAS, vegas, 10000, 20, 0), 26);
    assert_int_equal(step_once(OVERLOAD_VEGAS, vegas, 10800, 26, 0), 27);
    assert_int_equal(step_once(OVERLOAD_VEGAS, vegas, 12000, 26, 0), 27);
    assert_int_equal(step_once(OVERLOAD_VEGAS, vegas, 15000, 26, 0), 26);
    assert_int_equal(step_once(OVERLOAD_VEGAS, vegas, 10000, 26, 1), 25);
    assert_int_equal(step_once(OVERLOAD_VEGAS, vegas, 10000, 12, 0), 25);
    free(vegas);
}

static void test_gradient_steps(void **state)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 2);
    uint32_t size[HG_TICKET_KINDS], now = 20;
    void *gradient = overload_controls[OVERLOAD_GRADIENT2].make(&setup, size);
    double limit = 20;
    (void)state;
    for (uint32_t i = 0; i < 30; i++) {
        limit = .8 * limit + .2 * (limit + 4);
        now = step_once(OVERLOAD_GRADIENT2, gradient, 10000, 40, 0);
        assert_int_equal(now, lround(limit));
    }
    /* Three times as slow: 1.5 / 3 of it and 4, but for what the long average has moved. */
    limit = .8 * limit + .2 * (limit * .5 + 4);
    assert_near(step_once(OVERLOAD_GRADIENT2, gradient, 30000, 44, 0), limit, 1);
    /* Half used: no change. */
    now = step_once(OVERLOAD_GRADIENT2, gradient, 10000, 4, 0);
    assert_int_equal(step_once(OVERLOAD_GRADIENT2, gradient, 10000, 4, 0), now);
    /* At least 20, at most 200. */
    for (uint32_t i = 0; i < 100; i++)
        now = step_once(OVERLOAD_GRADIENT2, gradient, 500000, 60, 0);
    assert_int_equal(now, 20);
    for (uint32_t i = 0; i < 400; i++)
        now = step_once(OVERLOAD_GRADIENT2, gradient, 1000, 400, 0);
    assert_int_equal(now, 200);
    free(gradient);
}

/* Scores */

static void test_jain(void **state)
{
    static const uint32_t equal[] = {5, 5, 5, 5}, one[] = {8, 0, 0, 0}, mixed[] = {1, 2, 3};
    (void)state;
    assert_near(overload_jain(equal, 4), 1, 1e-12);
    assert_near(overload_jain(one, 4), .25, 1e-12);
    assert_near(overload_jain(mixed, 3), 36. / (3 * 14), 1e-12);
}

/* 20 good ones a bin are the capacity; the second phase begins with `bad_ms` of half of it. */
static double converged(uint32_t bad_ms, uint32_t good)
{
    struct overload_setup setup = overload_steady(OVERLOAD_SMALL, .25, 5);
    struct overload_tally tally = {0};
    struct overload_score score;
    setup.backend.noise = 0;
    setup.seed = 1;
    run_chosen(&setup, 1, 1, &tally);
    for (uint32_t i = 0; i < tally.bin_count; i++)
        tally.bins[i].good = i >= 200 && i < 200 + bad_ms / 10 ? good / 2 : good;
    overload_score(&setup, &tally, &score);
    overload_tally_fini(&tally);
    return score.phases[1].converged_s;
}

static void test_convergence(void **state)
{
    (void)state;
    assert_near(converged(0, 20), 0, 1e-9);
    assert_near(converged(700, 20), .7, 1e-9);
    assert_near(converged(2300, 20), 2.3, 1e-9);
    assert_near(converged(6500, 20), OVERLOAD_NOT_YET_S, 1e-9); // the mean of 3 s that remain
    assert_near(converged(0, 15), OVERLOAD_NOT_YET_S, 1e-9);    // converged to three quarters
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_grows_to_the_knee_and_falls_beyond),
        cmocka_unit_test(test_requests_share_alike),
        cmocka_unit_test(test_queueing_theory_holds),
        cmocka_unit_test(test_bimodal_demands_have_mean_one),
        cmocka_unit_test(test_arrivals_are_equal),
        cmocka_unit_test(test_a_session_has_one_waiting_request),
        cmocka_unit_test(test_tickets_bound_what_is_inside),
        cmocka_unit_test(test_a_time_out_keeps_its_ticket),
        cmocka_unit_test(test_refusals_are_retried),
        cmocka_unit_test(test_collapse_is_possible),
        cmocka_unit_test(test_vegas_steps),
        cmocka_unit_test(test_gradient_steps),
        cmocka_unit_test(test_jain),
        cmocka_unit_test(test_convergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
