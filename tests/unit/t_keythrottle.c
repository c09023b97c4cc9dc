// t_keythrottle - which keys are listed, and their percent by steps, epoch by epoch
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/attr.h"
#include "keythrottlerig.h"

/* ---- step ---- */

static void test_a_new_key_needs_four_thresholds(void **state)
{
    (void)state;
    epoch_of(4000);
    assert_int_equal(percent(1), -1);
    for (unsigned e = 0; e < 3; e++)
        epoch_of(0);
    epoch_of(4001);
    assert_int_equal(percent(1), 10);
    assert_int_equal(listed(1)->mean, 1000);
    assert_int_equal(tenant.throttle.count, 1);
}

static void test_or_one_for_four_epochs(void **state)
{
    (void)state;
    for (unsigned e = 0; e < 3; e++) {
        epoch_of(1001);
        assert_int_equal(percent(1), -1);
    }
    epoch_of(1001);
    assert_int_equal(percent(1), 10);
}

static void test_up_hold_and_down(void **state)
{
    /* counts of the epochs 1 .. and the percent after each; T = 1000, sums in 4 epochs */
    static const struct {
        uint64_t count;
        int percent;
    } epochs[] = {
        {4001, 10}, {0, 20},    {0, 30}, {0, 40}, // over T while 4001 is in the mean
        {4000, 40}, {0, 40},    {0, 40}, {0, 40}, // exactly T: held
        {2800, 40}, {0, 40},    {0, 40}, {0, 40}, // exactly 0.7 T: held
        {2799, 30}, {1201, 30}, {1, 40}, {0, 50}, // below, T, over
        {0, 40},    {0, 30},    {0, 20}, {0, 10}, // below
        {0, -1},    {4000, -1},
    };
    (void)state;
    for (unsigned e = 0; e < HG_COUNT_OF(epochs); e++) {
        epoch_of(epochs[e].count);
        assert_int_equal(percent(1), epochs[e].percent);
    }
}

static void test_percent_ends_at_a_hundred(void **state)
{
    (void)state;
    for (unsigned e = 1; e <= 12; e++) {
        epoch_of(5000);
        assert_int_equal(percent(1), e < 10 ? e * 10 : 100);
    }
    assert_true(listed(1)->share == UINT32_MAX);
}

static void test_share_is_percent(void **state)
{
    (void)state;
    for (unsigned e = 1; e <= 9; e++) {
        epoch_of(5000);
        assert_true(listed(1)->share / 4294967296.0 - e / 10.0 < 1e-8);
        assert_true(e / 10.0 - listed(1)->share / 4294967296.0 < 1e-8);
    }
}

/* A guess must not punish: the error is taken off. */
static void test_lower_bounds_decide(void **state)
{
    (void)state;
    hot_free(tenant.sketch);
    tenant.sketch = hot_new(16, true);
    for (uint32_t id = 100; id < 116; id++)
        admit(id, 3900);
    admit(1, 4000); // count 7900, error 3900
    end_epoch();
    assert_int_equal(percent(1), -1);
    for (uint32_t id = 100; id < 116; id++)
        admit(id, 3900);
    admit(1, 4001);
    forget_epochs();
    end_epoch();
    assert_int_equal(percent(1), 10);
}

static void test_refusals_do_not_keep_a_key_hot(void **state)
{
    (void)state;
    epoch_of(4001);
    for (unsigned e = 0; e < 3; e++) {
        tell(1, 0, 100000);
        epoch_of(0);
    }
    assert_int_equal(percent(1), 40); // 4001 was in the mean until now
    tell(1, 0, 100000);
    epoch_of(0);
    assert_int_equal(percent(1), 30);
    assert_int_equal(listed(1)->refused, 400000);
}

static void test_listed_keys_are_judged_outside_the_top(void **state)
{
    (void)state;
    epoch_of(4001);
    for (uint32_t id = 100; id < 120; id++)
        admit(id, 2000);
    epoch_of(1500);
    assert_int_equal(percent(1), 20);
}

static void test_candidates_are_the_top_ten(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < 25; id++)
        admit(id, 5000 + id);
    end_epoch();
    assert_int_equal(tenant.throttle.count, HG_HOT_TOP);
    for (uint32_t id = 0; id < 25; id++)
        assert_int_equal(percent(id), id < 15 ? -1 : 10);
}

static void test_keys_of_a_wide_band(void **state)
{
    (void)state;
    tenant.settings.threshold = 1000000000000000000;
    epoch_of(4000000000000000000);
    assert_int_equal(percent(1), -1);
    tenant.settings.threshold = 1;
    epoch_of(1);
    assert_int_equal(percent(1), 10);
}

static void test_threshold_nought_empties(void **state)
{
    (void)state;
    epoch_of(5000);
    tenant.settings.threshold = 0;
    epoch_of(5000);
    assert_int_equal(tenant.throttle.count, 0);
    assert_int_equal(percent(1), -1);
    tell(1, 1, 1);
    tenant.settings.threshold = 1000;
    epoch_of(5000);
    assert_int_equal(percent(1), 10);
    assert_int_equal(listed(1)->refused, 0);
}

static void test_a_changed_threshold_counts_from_the_next_decision(void **state)
{
    (void)state;
    epoch_of(4001);
    tenant.settings.threshold = 2000;
    epoch_of(0);
    assert_int_equal(percent(1), -1); // 4001 / 4 < 0.7 * 2000
    tenant.settings.threshold = 500;
    epoch_of(1);
    assert_int_equal(percent(1), 10);
}

/* ---- lengths of epochs ---- */

static void test_counts_are_scaled(void **state)
{
    (void)state;
    admit(1, 12000);
    end_epoch_after(3 * NOMINAL_US); // 4000 in 2 s
    assert_int_equal(percent(1), -1);
    admit(2, 2001);
    end_epoch_after(NOMINAL_US / 2); // 4002 in 2 s
    assert_int_equal(percent(2), 10);
}

static void test_a_clock_that_jumped_is_one_decision(void **state)
{
    (void)state;
    for (unsigned e = 0; e < 4; e++)
        epoch_of(4001);
    assert_int_equal(percent(1), 40);
    admit(1, 4001); // in the two seconds that the machine was awake
    end_epoch_after(60000000);
    assert_int_equal(percent(1), 50); // mean 3034
    assert_int_equal(tenant.throttle.count, 1);
}

static void test_a_very_short_epoch_is_not_blown_up(void **state)
{
    (void)state;
    admit(1, 5);
    end_epoch_after(1000); // times 2000 it would be 10000
    assert_int_equal(percent(1), -1);
    assert_int_equal(tenant.throttle.count, 0);
}

static void test_epochs_without_requests(void **state)
{
    (void)state;
    epoch_of(4001);
    forget_epochs();
    hg_keythrottle_epoch(&tenant.throttle, &tenant.settings, tenant.spans, NOMINAL_US);
    assert_int_equal(tenant.throttle.count, 0);
    hg_keythrottle_epoch(&tenant.throttle, &tenant.settings, tenant.spans, NOMINAL_US);
    assert_int_equal(tenant.throttle.count, 0);
}

/* ---- room ---- */

static void test_no_room(void **state)
{
    (void)state;
    tenant.throttle.room = 0;
    epoch_of(5000);
    assert_int_equal(tenant.throttle.count, 0);
}

static void test_the_coolest_leaves_a_full_list(void **state)
{
    (void)state;
    tenant.throttle.room = 3;
    admit(1, 4100);
    admit(2, 5000);
    admit(3, 6000);
    end_epoch();
    assert_int_equal(tenant.throttle.count, 3);
    admit(4, 5500); // not as hot as 3, hotter than 1
    admit(1, 100);
    tell(1, 100, 4000); // offered 4100
    admit(2, 100);
    tell(2, 100, 6000); // offered 6100: hotter than 4, though less of it was admitted
    admit(3, 6000);
    end_epoch();
    assert_int_equal(tenant.throttle.count, 3);
    assert_int_equal(percent(1), -1);
    assert_int_equal(percent(2), 20);
    assert_int_equal(percent(3), 20);
    assert_int_equal(percent(4), 10);
    admit(5, 4500); // the coolest of all: stays out
    admit(2, 6000);
    admit(3, 6000);
    admit(4, 6000);
    end_epoch();
    assert_int_equal(percent(5), -1);
    assert_int_equal(tenant.throttle.count, 3);
}

static void test_a_list_is_moved_to_more_room(void **state)
{
    struct hg_keythrottle_key *before, *room;
    (void)state;
    for (uint32_t id = 0; id < 10; id++)
        admit(id, 5000);
    end_epoch();
    tell(3, 5, 7);
    room = malloc(1024 * sizeof *room);
    before = hg_keythrottle_give_room(&tenant.throttle, room, 1024);
    assert_non_null(before);
    memset(before, 0xee, 32 * sizeof *before);
    free(before);
    assert_int_equal(tenant.throttle.room, 1024);
    assert_ptr_equal(tenant.throttle.keys, room);
    for (uint32_t id = 0; id < 10; id++)
        assert_int_equal(percent(id), 10);
    assert_int_equal(listed(3)->refused_epoch, 7);
    end_epoch();
    assert_int_equal(listed(3)->refused, 7);
}

static void test_at_most_1024_keys(void **state)
{
    struct hg_keythrottle_key *room = malloc(2000 * sizeof *room);
    (void)state;
    tenant.settings.threshold = 1;
    free(hg_keythrottle_give_room(&tenant.throttle, room, 2000));
    for (uint32_t first = 0; first < 1500; first += 10) {
        for (uint32_t id = 0; id < 1500; id++)
            admit(id, id / 10 == first / 10 ? 1000 : 5);
        end_epoch();
        assert_int_equal(tenant.throttle.count, first + 10 < 1024 ? first + 10 : 1024);
    }
    assert_int_equal(tenant.throttle.count, HG_KEYTHROTTLE_KEYS);
    assert_int_equal(percent(1499), 10);
    for (unsigned e = 0; e < 14; e++) // all leave
        end_epoch();
    assert_int_equal(tenant.throttle.count, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_new_key_needs_four_thresholds),
        TEST(test_or_one_for_four_epochs),
        TEST(test_up_hold_and_down),
        TEST(test_percent_ends_at_a_hundred),
        TEST(test_share_is_percent),
        TEST(test_lower_bounds_decide),
        TEST(test_refusals_do_not_keep_a_key_hot),
        TEST(test_listed_keys_are_judged_outside_the_top),
        TEST(test_candidates_are_the_top_ten),
        TEST(test_keys_of_a_wide_band),
        TEST(test_threshold_nought_empties),
        TEST(test_a_changed_threshold_counts_from_the_next_decision),
        TEST(test_counts_are_scaled),
        TEST(test_a_clock_that_jumped_is_one_decision),
        TEST(test_a_very_short_epoch_is_not_blown_up),
        TEST(test_epochs_without_requests),
        TEST(test_no_room),
        TEST(test_the_coolest_leaves_a_full_list),
        TEST(test_a_list_is_moved_to_more_room),
        TEST(test_at_most_1024_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
