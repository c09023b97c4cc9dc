// t_poolsim - the ten scenarios of connection pools: scores of four pools on the same arrivals
// SPDX-License-Identifier: BSD-3-Clause
//
// At scales 1 and 10. The quick check runs the naive pool and ours, with one seed; the deep check
// runs five seeds and the two pools of Gel as well. Those are references: that they come out as
// measured and modelled elsewhere shows that the simulation is the benchmark it claims to be. Where
// the description of the Python rules leaves room, what was measured decided: in mode D a
// connection past its hold goes on whatever the quota says (one move per three queries), to a block
// without any even if its quota is 0; idle surplus that nobody is to have stays (scenario 5 ends
// full); in mode B the quota is the demand. The naive pool is ours, so its scores (69, where 59 was
// measured of another) only say that the suite tells pools apart. Scenarios 1 to 7 are overload: at
// their peak they offer 15 to 21 connections' worth of work to 6, 210 to 50, 300 and 378 to 100.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "poolsim_load.h"
#include "simseeds.h"

#define SEEDS         5
#define LAST_OVERLOAD 7

/* Medians differ without meaning by two standard errors of the difference, or by this part. */
#define MEDIAN_NOISE .01

/* The references are last: the quick check leaves them out. */
enum which { NAIVE, HEADGATE, RUST, PYTHON, POOLS };

static const struct poolsim_pool *const pools[] = {&poolsim_naive, &poolsim_balance, &poolsim_rust,
                                                   &poolsim_python};

static uint32_t pool_count(void)
{
    return sim_runs_all() ? POOLS : RUST;
}

/* Means over the seeds, and the lowest score. */
struct line {
    double score, min, per_s, p50_ms, p50_square, p99_ms, overhead, ending, arithmetic;
    double values[POOLSIM_PARTS];
};

struct table {
    uint32_t scale, seeds;
    struct line lines[POOLS][POOLSIM_SCENARIOS];
    double means[POOLS], mins[POOLS], roots[POOLS]; // roots: 100 less the root mean square missing
};

static struct table small = {.scale = 1}, large = {.scale = 10};

static void run_one(struct line *line, const struct poolsim_pool *pool, uint32_t number,
                    uint32_t scale, uint32_t seeds, uint32_t f)
{
    *line = (struct line){.min = 100};
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        struct poolsim_load load;
        struct poolsim_result result;
        poolsim_load_get(number, scale, seed, f, &load);
        if (number == 10 && f != POOLSIM_F)
            load.duration_us = (uint64_t)2000000 * scale; /* as the Rust suite has it */
        poolsim_load_run(&load, pool, &result);
        assert_true(result.drained);
        assert_int_equal(result.answered, result.queries);
        line->score += result.score / seeds;
        line->min = result.score < line->min ? result.score : line->min;
        line->per_s += result.per_s / seeds;
        line->p50_ms += result.p50_ms / seeds;
        line->p50_square += result.p50_ms * result.p50_ms / seeds;
        line->p99_ms += result.p99_ms / seeds;
        line->overhead += result.overhead / seeds;
        line->ending += (double)result.ending / seeds;
        line->arithmetic += result.arithmetic / seeds;
        for (uint32_t i = 0; i < POOLSIM_PARTS; i++)
            line->values[i] += result.values[i] / seeds;
    }
}

static void print_line(uint32_t number, const struct line *line)
{
    printf("#  %4u %5.1f %5.1f %6.0f %10.2f %10.2f %8.3f %6.1f ", (unsigned)number, line->score,
           line->min, line->per_s, line->p50_ms, line->p99_ms, line->overhead, line->ending);
    if (line->arithmetic >= 0)
        printf(" %6.3f ", line->arithmetic);
    else
        printf("      - ");
    for (uint32_t i = 0; i < POOLSIM_PARTS && line->values[i] > 0; i++)
        printf(" %.3g", line->values[i]);
    printf("\n");
}

static void run_all(struct table *table)
{
    table->seeds = sim_seeds(SEEDS);
    for (uint32_t p = 0; p < pool_count(); p++) {
        printf(
            "# %s, scale %u, %u seeds\n"
            "#    no score   min      /s   p50 wait   p99 wait  moves/q  ends  arithm.  values\n",
            pools[p]->name, (unsigned)table->scale, (unsigned)table->seeds);
        table->mins[p] = 100;
        for (uint32_t i = 0; i < POOLSIM_SCENARIOS; i++) {
            struct line *line = &table->lines[p][i];
            run_one(line, pools[p], i + 1, table->scale, table->seeds, POOLSIM_F);
            print_line(i + 1, line);
            table->means[p] += line->score / POOLSIM_SCENARIOS;
            table->roots[p] += (100 - line->score) * (100 - line->score) / POOLSIM_SCENARIOS;
            if (line->min < table->mins[p])
                table->mins[p] = line->min;
        }
        table->roots[p] = 100 - sqrt(table->roots[p]);
        printf("#  mean %.2f, 100 - RMS of what is missing %.2f, lowest of any run %.1f\n",
               table->means[p], table->roots[p], table->mins[p]);
    }
}

static void test_scale_1(void **state)
{
    (void)state;
    run_all(&small);
}

static void test_scale_10(void **state)
{
    (void)state;
    run_all(&large);
}

/* What was measured of Gel's own Python pool (one run each on a real clock). Its single scenarios
   are noisy there at scale 1, by its own runs up to 10 points. */
static void test_python_rules_score_as_the_original(void **state)
{
    static const double scale_1[] = {94, 85, 98, 94, 91, 100, 77, 98, 92, 100},
                        scale_10[] = {95, 98, 99, 98, 91, 100, 100, 99, 97, 100};
    (void)state;
    for (uint32_t i = 0; i < POOLSIM_SCENARIOS; i++) {
        assert_true(fabs(small.lines[PYTHON][i].score - scale_1[i]) <= 10);
        assert_true(fabs(large.lines[PYTHON][i].score - scale_10[i]) <= 4);
    }
    assert_true(fabs(small.means[PYTHON] - 93) <= 1.5);
    assert_true(fabs(large.means[PYTHON] - 98) <= 1);
    /* The price of its round robin: one move per three queries. */
    assert_true(fabs(small.lines[PYTHON][0].overhead - .336) <= .05);
    assert_true(fabs(large.lines[PYTHON][0].overhead - .333) <= .05);
}

/* Another model of the same rules, with the rates of the Rust suite in scenarios 8 to 10. */
static void test_rust_rules_score_as_modelled_elsewhere(void **state)
{
    static const double scale_1[] = {82.0, 94.8, 99.5, 97.8, 49.8, 100, 82.1, 0, 75.7, 100},
                        scale_10[] = {98.0, 95.7, 99.9, 99.4, 54.3, 100, 100, 19.6, 92.6, 100};
    static const uint32_t f[] = {1600, 20000, 2000};
    double mean_1 = 0, mean_10 = 0;
    (void)state;
    for (uint32_t i = 0; i < POOLSIM_SCENARIOS; i++) {
        struct line line_1 = small.lines[RUST][i], line_10 = large.lines[RUST][i];
        if (i >= LAST_OVERLOAD) {
            run_one(&line_1, pools[RUST], i + 1, 1, 1, f[i - LAST_OVERLOAD]);
            run_one(&line_10, pools[RUST], i + 1, 10, 1, f[i - LAST_OVERLOAD]);
        }
        printf("# %2u gel-rust with its own rates: %.1f (%.1f), scale 10: %.1f (%.1f)\n",
               (unsigned)(i + 1), line_1.score, scale_1[i], line_10.score, scale_10[i]);
        mean_1 += line_1.score / POOLSIM_SCENARIOS;
        mean_10 += line_10.score / POOLSIM_SCENARIOS;
        if (i < LAST_OVERLOAD) {
            assert_true(fabs(line_1.score - scale_1[i]) <= 2);
            assert_true(fabs(line_10.score - scale_10[i]) <= 2);
        }
    }
    printf("# gel-rust with its own rates: %.1f (78.2), scale 10: %.1f (86.0)\n", mean_1, mean_10);
    assert_true(fabs(mean_1 - 78.2) <= 3);
    assert_true(fabs(mean_10 - 86.0) <= 3);
}

/* The bars of the planner, on the same arrivals. */
static void test_score_is_not_below_the_references(void **state)
{
    (void)state;
    assert_true(small.means[HEADGATE] >= 93);
    assert_true(large.means[HEADGATE] >= 96);
    for (uint32_t i = 0; i < POOLSIM_SCENARIOS; i++)
        assert_true(large.lines[HEADGATE][i].min >= 80);
    for (uint32_t p = 0; p < pool_count(); p++) {
        assert_true(small.means[HEADGATE] >= small.means[p]);
        assert_true(large.means[HEADGATE] >= large.means[p]);
    }
}

static double variance_of_mean(const struct line *line, uint32_t seeds)
{
    return (line->p50_square - line->p50_ms * line->p50_ms) / seeds;
}

/* Is the planner's median above that of the Python rules, beyond noise? */
static bool is_median_longer(const struct table *table, uint32_t i)
{
    const struct line *ours = &table->lines[HEADGATE][i], *theirs = &table->lines[PYTHON][i];
    double noise_ms =
        2 * sqrt(variance_of_mean(ours, table->seeds) + variance_of_mean(theirs, table->seeds));
    printf(" %9.1f (%9.1f) %.3f", ours->p50_ms, theirs->p50_ms, ours->p50_ms / theirs->p50_ms);
    return ours->p50_ms > theirs->p50_ms + fmax(noise_ms, MEDIAN_NOISE * theirs->p50_ms);
}

/* The score looks at fairness only, and a pool that makes everybody wait long would do well. */
static void test_median_wait_under_overload_is_not_longer(void **state)
{
    uint32_t longer = 0;
    (void)state;
    printf("# median waits, ms (and of the Python rules), and their ratio: scale 1, scale 10\n");
    for (uint32_t i = 0; i < LAST_OVERLOAD; i++) {
        printf("#  %4u", (unsigned)(i + 1));
        longer += is_median_longer(&small, i);
        longer += is_median_longer(&large, i);
        printf("\n");
    }
    assert_int_equal(longer, 0);
}

int main(void)
{
    const struct CMUnitTest quick[] = {
        cmocka_unit_test(test_scale_1),
        cmocka_unit_test(test_scale_10),
        cmocka_unit_test(test_score_is_not_below_the_references),
    };
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_scale_1),
        cmocka_unit_test(test_scale_10),
        cmocka_unit_test(test_score_is_not_below_the_references),
        cmocka_unit_test(test_python_rules_score_as_the_original),
        cmocka_unit_test(test_rust_rules_score_as_modelled_elsewhere),
        cmocka_unit_test(test_median_wait_under_overload_is_not_longer),
    };
    return sim_runs_all() ? cmocka_run_group_tests(all, NULL, NULL)
                          : cmocka_run_group_tests(quick, NULL, NULL);
}
