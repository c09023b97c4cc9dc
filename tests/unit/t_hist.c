// t_hist - tests of base/hist
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/hist.h"

static struct hg_hist hist, other;

static int clear(void **state)
{
    (void)state;
    hg_hist_init(&hist);
    hg_hist_init(&other);
    return 0;
}

static void buckets_tile_the_range(void **state)
{
    (void)state;
    uint64_t next = 0;
    for (uint32_t bucket = 0; bucket < HG_HIST_BUCKETS; bucket++) {
        uint64_t last = hg_hist_bucket_last(bucket);
        assert_true(last >= next);
        assert_int_equal(hg_hist_bucket_of(next), bucket);
        assert_int_equal(hg_hist_bucket_of(last), bucket);
        assert_true(last - next <= next / 64);
        next = last + 1;
    }
    assert_int_equal(next, UINT64_C(1) << HG_HIST_MAX_BITS);
    assert_int_equal(hg_hist_bucket_of(next), HG_HIST_BUCKETS - 1);
    assert_int_equal(hg_hist_bucket_of(UINT64_MAX), HG_HIST_BUCKETS - 1);
}

static void an_empty_one_says_zero(void **state)
{
    (void)state;
    assert_int_equal(hg_hist_percentile(&hist, 50), 0);
    assert_int_equal(hg_hist_percentile(&hist, 100), 0);
    assert_true(hg_hist_mean(&hist) == 0.0);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    for (uint64_t value = 1; value <= 100; value++) {
        hg_hist_record(&hist, value, 1);
    }
    assert_int_equal(hg_hist_percentile(&hist, 0), 1);
    assert_int_equal(hg_hist_percentile(&hist, 50), 50);
    assert_int_equal(hg_hist_percentile(&hist, 99), 99);
    assert_int_equal(hg_hist_percentile(&hist, 100), 100);
    assert_true(hg_hist_mean(&hist) == 50.5);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Against the sorted values themselves: never too low, at most 1/64 too high. */
static void percentiles_keep_the_error(void **state)
{
    (void)state;
    enum { N = 20000 };
    static uint64_t values[N];
    static const double percents[] = {1, 10, 50, 90, 99, 99.9, 99.99};
    uint64_t random = 1;
    for (int i = 0; i < N; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (random >> 33) >> (random % 25);
        hg_hist_record(&hist, values[i], 1);
    }
    qsort(values, N, sizeof values[0], by_value);
    for (size_t i = 0; i < HG_COUNT_OF(percents); i++) {
        double rank = N * percents[i] / 100;
        uint64_t whole = (uint64_t)rank;
        uint64_t exact = values[(double)whole < rank ? whole : whole - 1];
        uint64_t got = hg_hist_percentile(&hist, percents[i]);
        assert_true(got >= exact);
        assert_true(got <= exact + exact / 64);
    }
    assert_int_equal(hg_hist_percentile(&hist, 100), values[N - 1]);
}

static void values_beyond_the_range_are_kept_as_maximum(void **state)
{
    (void)state;
    uint64_t huge = UINT64_C(1) << 50;
    hg_hist_record(&hist, huge, 1);
    assert_int_equal(hg_hist_percentile(&hist, 50), huge);
}

static void recording_many_equals_recording_each(void **state)
{
    (void)state;
    hg_hist_record(&hist, 12345, 7);
    for (int i = 0; i < 7; i++) {
        hg_hist_record(&other, 12345, 1);
    }
    assert_memory_equal(&hist, &other, sizeof hist);
}

static void merging_adds_and_subtracting_takes_away(void **state)
{
    (void)state;
    struct hg_hist sum, before;
    hg_hist_record(&hist, 10, 3);
    hg_hist_record(&hist, 5000, 1);
    hg_hist_record(&other, 200, 6);
    hg_hist_init(&sum);
    hg_hist_merge(&sum, &hist);
    before = sum;
    hg_hist_merge(&sum, &other);
    assert_int_equal(hg_counter_get(&sum.total), 10);
    assert_int_equal(hg_counter_get(&sum.max), 5000);
    assert_int_equal(hg_hist_percentile(&sum, 30), 10);
    assert_in_range(hg_hist_percentile(&sum, 90), 200, 203);

    hg_hist_subtract(&sum, &before);
    assert_int_equal(hg_counter_get(&sum.total), 6);
    assert_int_equal(hg_counter_get(&sum.sum), 1200);
    assert_in_range(hg_hist_percentile(&sum, 100), 200, 203);
    assert_in_range(hg_counter_get(&sum.max), 200, 203);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(buckets_tile_the_range, clear),
        cmocka_unit_test_setup(an_empty_one_says_zero, clear),
        cmocka_unit_test_setup(small_values_are_exact, clear),
        cmocka_unit_test_setup(percentiles_keep_the_error, clear),
        cmocka_unit_test_setup(values_beyond_the_range_are_kept_as_maximum, clear),
        cmocka_unit_test_setup(recording_many_equals_recording_each, clear),
        cmocka_unit_test_setup(merging_adds_and_subtracting_takes_away, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
