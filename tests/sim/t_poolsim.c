// t_poolsim - the ten scenarios of connection pools: scores of four pools on the same arrivals
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "poolsim_load.h"

#define SEEDS 5

static const struct poolsim_pool *const pools[] = {&poolsim_naive};

#define POOLS (sizeof(pools) / sizeof(*pools))

static void run_all(uint32_t scale)
{
    for (uint32_t p = 0; p < POOLS; p++) {
        double sum = 0;
        printf("# %s, scale %u\n#  no  mean   min      /s     p50 ms     p99 ms  overhead\n",
               pools[p]->name, (unsigned)scale);
        for (uint32_t number = 1; number <= POOLSIM_SCENARIOS; number++) {
            double mean = 0, min = 100, per_s = 0, p50_ms = 0, p99_ms = 0, overhead = 0;
            for (uint32_t seed = 1; seed <= SEEDS; seed++) {
                struct poolsim_load load;
                struct poolsim_result result;
                poolsim_load_get(number, scale, seed, POOLSIM_F, &load);
                poolsim_load_run(&load, pools[p], &result);
                assert_true(result.drained);
                assert_int_equal(result.answered, result.queries);
                mean += result.score / SEEDS;
                min = result.score < min ? result.score : min;
                per_s += result.per_s / SEEDS;
                p50_ms += result.p50_ms / SEEDS;
                p99_ms += result.p99_ms / SEEDS;
                overhead += result.overhead / SEEDS;
            }
            printf("#  %2u %5.1f %5.1f %7.0f %10.3f %10.3f %9.3f\n", (unsigned)number, mean, min,
                   per_s, p50_ms, p99_ms, overhead);
            sum += mean / POOLSIM_SCENARIOS;
        }
        printf("#  mean %.1f\n", sum);
    }
}

static void test_scale_1(void **state)
{
    (void)state;
    run_all(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scale_1)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
