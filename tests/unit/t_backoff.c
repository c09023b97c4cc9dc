// t_backoff - waits with full jitter, the generator behind them, and the retry budget
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/backoff.h"
#include "core/retry.h"

static void test_waits_are_uniform_up_to_a_doubling_bound(void **state)
{
    uint64_t sums[8] = {0}, longest[8] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct hg_backoff backoff;
        hg_backoff_init(&backoff, 50000, 1000000, seed);
        for (int k = 0; k < 8; k++) {
            uint64_t wait = hg_backoff_next_us(&backoff);
            sums[k] += wait;
            longest[k] = wait > longest[k] ? wait : longest[k];
        }
    }
    for (int k = 0; k < 8; k++) {
        uint64_t bound = k < 5 ? 50000u << k : 1000000;
        assert_in_range(longest[k], bound * 99 / 100, bound);
        assert_in_range(sums[k] / 4000, bound * 47 / 100, bound * 53 / 100);
    }
}

/* Half jitter: never less than half of the bound. */
static void test_half_jitter(void **state)
{
    uint64_t sums[4] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct hg_backoff backoff;
        hg_backoff_init(&backoff, 200000, 1000000, seed);
        for (int k = 0; k < 4; k++) {
            uint64_t bound = k < 3 ? 200000u << k : 1000000, wait;
            wait = hg_backoff_next_half_us(&backoff);
            assert_in_range(wait, bound / 2, bound);
            sums[k] += wait;
        }
    }
    for (int k = 0; k < 4; k++) {
        uint64_t bound = k < 3 ? 200000u << k : 1000000;
        assert_in_range(sums[k] / 4000, bound * 73 / 100, bound * 77 / 100);
    }
}

static void test_reset_and_endless_failures(void **state)
{
    struct hg_backoff backoff;
    (void)state;
    hg_backoff_init(&backoff, 50000, 200000, 1);
    for (int i = 0; i < 1000; i++)
        assert_true(hg_backoff_next_us(&backoff) <= 200000);
    hg_backoff_reset(&backoff);
    assert_true(hg_backoff_next_us(&backoff) <= 50000);
    hg_backoff_init(&backoff, 50000, 0, 1);
    assert_int_equal(hg_backoff_next_us(&backoff), 0);
    hg_backoff_init(&backoff, 50000, UINT64_MAX, 1);
    for (int i = 0; i < 100; i++)
        (void)hg_backoff_next_us(&backoff);
}

static void test_seeds(void **state)
{
    struct hg_backoff a, b, c;
    int differs = 0;
    (void)state;
    hg_backoff_init(&a, 50000, 1000000, 7);
    hg_backoff_init(&b, 50000, 1000000, 7);
    hg_backoff_init(&c, 50000, 1000000, 8);
    for (int i = 0; i < 10; i++) {
        uint64_t wait = hg_backoff_next_us(&a);
        assert_true(wait == hg_backoff_next_us(&b));
        differs += wait != hg_backoff_next_us(&c);
    }
    assert_true(differs >= 9);
}

static void test_prng_below(void **state)
{
    struct hg_prng prng = {3};
    uint32_t seen[7] = {0};
    (void)state;
    for (int i = 0; i < 70000; i++)
        seen[hg_prng_below(&prng, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9500, 10500);
    assert_int_equal(hg_prng_below(&prng, 0), 0);
    assert_int_equal(hg_prng_below(&prng, 1), 0);
    for (int i = 0; i < 1000; i++)
        assert_true(hg_prng_below(&prng, (uint64_t)1 << 40) < (uint64_t)1 << 40);
}

/* Reference values of splitmix64 with seed 1234567. */
static void test_prng_is_splitmix64(void **state)
{
    struct hg_prng prng = {1234567};
    (void)state;
    assert_true(hg_prng_next(&prng) == 6457827717110365317u);
    assert_true(hg_prng_next(&prng) == 3203168211198807973u);
    assert_true(hg_prng_next(&prng) == 9817491932198370423u);
}

static void test_retries_are_a_tenth(void **state)
{
    struct hg_retry retry;
    uint32_t retries = 0;
    (void)state;
    hg_retry_init(&retry);
    for (int i = 0; i < 1000; i++) { // everything fails
        hg_retry_tell_sent(&retry, 1);
        retries += hg_retry_take(&retry);
    }
    assert_int_equal(retries, 101); // the tenth, and the one to begin with
}

static void test_saved_retries_are_bounded(void **state)
{
    struct hg_retry retry;
    uint32_t retries = 0;
    (void)state;
    hg_retry_init(&retry);
    hg_retry_tell_sent(&retry, 1000000);
    hg_retry_tell_sent(&retry, UINT32_MAX);
    while (hg_retry_take(&retry))
        retries++;
    assert_int_equal(retries, 10);
    hg_retry_tell_sent(&retry, 9);
    assert_false(hg_retry_take(&retry));
    hg_retry_tell_sent(&retry, 1);
    assert_true(hg_retry_take(&retry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_are_uniform_up_to_a_doubling_bound),
        cmocka_unit_test(test_half_jitter),
        cmocka_unit_test(test_reset_and_endless_failures),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_prng_below),
        cmocka_unit_test(test_prng_is_splitmix64),
        cmocka_unit_test(test_retries_are_a_tenth),
        cmocka_unit_test(test_saved_retries_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
