// t_coarsehist - a small histogram: its buckets, sums and percentiles
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/coarsehist.h"

static void test_buckets(void **state)
{
    (void)state;
    uint32_t last = 0;
    for (uint64_t v = 0; v < 300000; v++) {
        uint32_t bucket = hg_coarsehist_bucket_of(v);
        assert_true(bucket == last || bucket == last + 1);
        last = bucket;
    }
    assert_int_equal(hg_coarsehist_bucket_of(UINT64_MAX), HG_COARSEHIST_BUCKETS - 1);
}

static void assert_near(uint64_t value, double expected, double off)
{
    if ((double)value < expected * (1 - off) || (double)value > expected * (1 + off))
        fail_msg("%llu instead of %.0f", (unsigned long long)value, expected);
}

static void test_percentiles(void **state)
{
    (void)state;
    struct hg_coarsehist hist = {0};
    struct hg_coarsehist_sum sum = {0}, older;
    assert_int_equal(hg_coarsehist_percentile(&sum, 50), 0);
    for (uint64_t v = 1; v <= 10000; v++)
        hg_coarsehist_record(&hist, v);
    hg_coarsehist_add(&sum, &hist);
    assert_int_equal(sum.total, 10000);
    assert_near(hg_coarsehist_percentile(&sum, 50), 5000, 0.05);
    assert_near(hg_coarsehist_percentile(&sum, 99), 9900, 0.1);
    older = sum;
    for (unsigned i = 0; i < 100; i++)
        hg_coarsehist_record(&hist, 100000);
    sum = (struct hg_coarsehist_sum){0};
    hg_coarsehist_add(&sum, &hist);
    hg_coarsehist_subtract(&sum, &older);
    assert_int_equal(sum.total, 100);
    assert_near(hg_coarsehist_percentile(&sum, 50), 100000, 0.25);
    /* Forgotten meanwhile. */
    hg_coarsehist_subtract(&sum, &older);
    assert_true(sum.total <= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_percentiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
