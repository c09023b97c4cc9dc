// t_units - unit costs, the read estimate, gauges and the scaling of limits
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/creditstate.h"
#include "core/readcost.h"
#include "core/units.h"

static void test_bytes_round_up(void **state)
{
    (void)state;
    assert_int_equal(hg_units_of(0, 4096), 1);
    assert_int_equal(hg_units_of(1, 4096), 1);
    assert_int_equal(hg_units_of(4096, 4096), 1);
    assert_int_equal(hg_units_of(4097, 4096), 2);
    assert_int_equal(hg_units_of(1025, 1024), 2);
    assert_int_equal(hg_units_of(1 << 20, 1024), 1024);
    assert_int_equal(hg_units_of(12345, 0), 0);
    assert_int_equal(hg_units_of(UINT64_MAX, 1), UINT32_MAX);
}

static void assert_cost(enum hg_units_kind kind, uint64_t r, uint64_t w, uint32_t read,
                        uint32_t write)
{
    struct hg_units cost = hg_units_cost(HG_UNIT_SIZES_DEFAULT, kind, r, w);
    assert_int_equal(cost.read, read);
    assert_int_equal(cost.write, write);
    assert_int_equal(hg_units_total(cost), read + write);
}

static void test_kinds(void **state)
{
    (void)state;
    assert_cost(HG_UNITS_READ, 10, 0, 1, 0);
    assert_cost(HG_UNITS_READ, 0, 0, 1, 0); // a miss
    assert_cost(HG_UNITS_READ, 4097, 9999, 2, 0);
    assert_cost(HG_UNITS_WRITE, 0, 0, 0, 1); // delete, counter, touch
    assert_cost(HG_UNITS_WRITE, 9999, 1025, 0, 2);
    assert_cost(HG_UNITS_BOTH, 4096, 4096, 1, 4);
    assert_cost(HG_UNITS_BOTH, 0, 0, 1, 1);
    assert_cost(HG_UNITS_NONE, 5000, 5000, 0, 0);
}

static void test_a_free_side_costs_nothing(void **state)
{
    struct hg_unit_sizes sizes = {0, 1024};
    (void)state;
    assert_int_equal(hg_units_total(hg_units_cost(sizes, HG_UNITS_READ, 5000, 0)), 0);
    assert_int_equal(hg_units_total(hg_units_cost(sizes, HG_UNITS_BOTH, 5000, 1)), 1);
}

static void test_sums_saturate(void **state)
{
    struct hg_units cost = {UINT32_MAX, 1};
    (void)state;
    assert_int_equal(hg_units_add(3, 4), 7);
    assert_int_equal(hg_units_add(UINT32_MAX, 1), UINT32_MAX);
    assert_int_equal(hg_units_total(cost), UINT32_MAX);
}

static void test_read_estimate(void **state)
{
    struct hg_readcost cost = {0};
    (void)state;
    assert_int_equal(hg_readcost_estimate(&cost), 1);
    hg_readcost_tell(&cost, 7);
    assert_int_equal(hg_readcost_estimate(&cost), 7);
    for (int i = 0; i < 200; i++)
        hg_readcost_tell(&cost, 3);
    assert_int_equal(hg_readcost_estimate(&cost), 3);
    for (int i = 0; i < 2000; i++)
        hg_readcost_tell(&cost, i % 4 == 0 ? 5 : 1); // mean 2
    assert_int_equal(hg_readcost_estimate(&cost), 2);
    for (int i = 0; i < 200; i++)
        hg_readcost_tell(&cost, 0); // free
    assert_int_equal(hg_readcost_estimate(&cost), 1);
    hg_readcost_tell(&cost, UINT32_MAX);
    assert_true(hg_readcost_estimate(&cost) > 1);
}

static void test_gauge_words(void **state)
{
    uint64_t word = hg_gauge_word(5, 7);
    (void)state;
    assert_int_equal(hg_gauge_slot(word), 5);
    assert_int_equal(hg_gauge_units(word), 7);
    assert_int_equal(hg_gauge_units(hg_gauge_word(5, UINT64_MAX)), HG_GAUGE_UNITS_MAX);
    assert_int_equal(hg_gauge_slot(hg_gauge_word(5, UINT64_MAX)), 5);
    assert_int_equal(hg_gauge_lag(word, 5), 0);
    assert_int_equal(hg_gauge_lag(word, 7), 2);
    assert_int_equal(hg_gauge_lag(word, 4), -1);
    word = hg_gauge_word(HG_GAUGE_SLOTS - 1, 7); // the number wraps
    assert_int_equal(hg_gauge_lag(word, 0), 1);
    assert_int_equal(hg_gauge_lag(hg_gauge_word(0, 0), HG_GAUGE_SLOTS - 1), -1);
}

static uint64_t rolled(uint64_t units, uint32_t lag, uint64_t limit, bool carries)
{
    uint64_t word = hg_gauge_rolled(hg_gauge_word(9, units), 9 + lag, limit, carries);
    assert_int_equal(hg_gauge_slot(word), 9 + lag);
    return hg_gauge_units(word);
}

static void test_rolling_carries_debt(void **state)
{
    (void)state;
    assert_int_equal(rolled(250, 1, 100, true), 150);
    assert_int_equal(rolled(250, 2, 100, true), 50);
    assert_int_equal(rolled(250, 3, 100, true), 0);
    assert_int_equal(rolled(100, 1, 100, true), 0);
    assert_int_equal(rolled(99, 1, 100, true), 0);
    assert_int_equal(rolled(250, 1, 100, false), 0);
    assert_int_equal(rolled(250, 1, 0, true), 250);
    assert_int_equal(rolled(250, 1000, 0, true), 250);
    assert_int_equal(rolled(250, 1, UINT64_MAX, true), 0);
    assert_int_equal(rolled(HG_GAUGE_UNITS_MAX, 1000000, HG_GAUGE_UNITS_MAX, true), 0);
}

/* Any run of slots that make whole seconds sums to the limit, exactly. */
static void test_scaled_limits_sum_to_the_limit(void **state)
{
    static const uint64_t limits[] = {0, 1, 7, 30, 199, 200, 25000, HG_UNITS_LIMIT_MAX};
    static const uint32_t slots_ms[] = {50, 100, 125, 250, 500, 1000};
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(limits); i++)
        for (size_t j = 0; j < HG_COUNT_OF(slots_ms); j++)
            for (uint64_t from = 0; from < 2100; from += 37) {
                uint64_t sum = 0, fair = limits[i] * slots_ms[j] / 1000;
                for (uint64_t n = 0; n < 1000 / slots_ms[j]; n++) {
                    uint64_t part = hg_credit_scale(limits[i], slots_ms[j], from + n);
                    assert_in_range(part, fair, fair + 1);
                    sum += part;
                }
                assert_int_equal(sum, limits[i]);
            }
    assert_true(hg_credit_scale(HG_UNITS_UNLIMITED, 50, 3) == HG_UNITS_UNLIMITED);
}

static void test_odd_slots_sum_too(void **state)
{
    uint64_t sum = 0;
    (void)state;
    for (uint64_t n = 11; n < 1011; n++) // 1000 slots of 333 ms are 333 s
        sum += hg_credit_scale(31, 333, n);
    assert_int_equal(sum, 31 * 333);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_round_up),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_a_free_side_costs_nothing),
        cmocka_unit_test(test_sums_saturate),
        cmocka_unit_test(test_read_estimate),
        cmocka_unit_test(test_gauge_words),
        cmocka_unit_test(test_rolling_carries_debt),
        cmocka_unit_test(test_scaled_limits_sum_to_the_limit),
        cmocka_unit_test(test_odd_slots_sum_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
