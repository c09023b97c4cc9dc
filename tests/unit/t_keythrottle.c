// t_keythrottle - which keys are listed and how much of them is refused, epoch by epoch
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/attr.h"
#include "core/keythrottle.h"
#include "hothelp.h"

#define NOMINAL_US 2000000
#define COUNTERS   2048

/* A tenant: four epochs of merged sketches, and its list. */
static struct {
    struct hg_keythrottle throttle;
    struct hg_keythrottle_settings settings;
    struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS];
    struct hg_hotkey *sketch; // of the running epoch
} tenant;

static int setup(void **state)
{
    (void)state;
    memset(&tenant, 0, sizeof tenant);
    tenant.settings.threshold = 1000;
    tenant.sketch = hot_new(COUNTERS, true);
    assert_null(
        hg_keythrottle_give_room(&tenant.throttle, malloc(32 * sizeof *tenant.throttle.keys), 32));
    return 0;
}

static void forget_epochs(void)
{
    for (unsigned e = 0; e < HG_KEYTHROTTLE_EPOCHS; e++)
        free((void *)(uintptr_t)tenant.spans[e].merged);
    memset(tenant.spans, 0, sizeof tenant.spans);
}

static int teardown(void **state)
{
    (void)state;
    forget_epochs();
    hot_free(tenant.sketch);
    free(tenant.throttle.keys);
    return 0;
}

static void admit(uint32_t id, uint64_t n)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, HOT_MIXED, room);
    if (n > 0)
        assert_true(hg_hotkey_tell(tenant.sketch, &key, n));
}

static void tell(uint32_t id, uint64_t passed, uint64_t refused)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, HOT_MIXED, room);
    hg_keythrottle_tell(&tenant.throttle, &key, passed, refused);
}

static const struct hg_keythrottle_key *listed(uint32_t id)
{
    uint8_t room[256];
    struct hg_hotkey_key key = hot_key(id, HOT_MIXED, room);
    return hg_keythrottle_find(&tenant.throttle, &key);
}

/* -1: it is not listed. */
static int percent(uint32_t id)
{
    return listed(id) == NULL ? -1 : listed(id)->percent;
}

static void end_epoch_after(uint64_t length_us)
{
    const struct hg_hotkey *sketch = tenant.sketch;
    void *scratch = malloc(hg_hotmerge_scratch_bytes(COUNTERS));

    free((void *)(uintptr_t)tenant.spans[HG_KEYTHROTTLE_EPOCHS - 1].merged);
    memmove(tenant.spans + 1, tenant.spans, sizeof tenant.spans - sizeof tenant.spans[0]);
    tenant.spans[0].merged =
        hg_hotmerge_make(malloc(hg_hotmerge_bytes(COUNTERS)), COUNTERS, &sketch, 1, scratch);
    tenant.spans[0].length_us = length_us;
    free(scratch);
    hg_hotkey_clear(tenant.sketch);
    hg_keythrottle_epoch(&tenant.throttle, &tenant.settings, tenant.spans, NOMINAL_US);
    for (unsigned i = 0; i < tenant.throttle.count; i++) {
        const struct hg_keythrottle_key *key = &tenant.throttle.keys[i];
        assert_ptr_equal(key->key.at, key->bytes);
        assert_ptr_equal(hg_keythrottle_find(&tenant.throttle, &key->key), key);
        assert_int_equal(key->refused_epoch + key->passed_epoch, 0);
    }
}

static void end_epoch(void)
{
    end_epoch_after(NOMINAL_US);
}

/* One epoch in which key 1 is admitted so often. */
static void epoch_of(uint64_t n)
{
    admit(1, n);
    end_epoch();
}

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

/* ---- proportional ---- */

static void offer(uint32_t id, uint64_t n)
{
    uint64_t refused = 0;
    if (listed(id) != NULL)
        refused = (uint64_t)((double)n * listed(id)->share / 4294967296.0 + 0.5);
    admit(id, n - refused);
    tell(id, n - refused, refused);
}

static double admitted_of(uint64_t offered)
{
    return (double)offered * (1 - (listed(1) == NULL ? 0 : listed(1)->share / 4294967296.0));
}

static void assert_near(double value, double wanted, double most)
{
    assert_true(value >= wanted - most && value <= wanted + most);
}

static void test_proportional_settles_at_once(void **state)
{
    static const uint64_t loads[] = {1001, 1200, 2000, 5000, 10000, 1000000};
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    for (unsigned i = 0; i < HG_COUNT_OF(loads); i++) {
        tenant.settings.threshold = 0;
        end_epoch();
        tenant.settings.threshold = 1000;
        for (unsigned e = 0; e < 8; e++) {
            offer(1, loads[i]);
            end_epoch();
            assert_near(admitted_of(loads[i]), 1000, 1);
        }
    }
}

static void test_proportional_needs_more_than_the_threshold(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    for (unsigned e = 0; e < 10; e++) {
        offer(1, 1000);
        end_epoch();
        assert_int_equal(tenant.throttle.count, 0);
    }
}

static void test_a_rise_is_followed_at_once(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    offer(1, 2000);
    end_epoch();
    offer(1, 4000);
    end_epoch();
    assert_near(admitted_of(4000), 1000, 1);
}

static void test_a_fall_is_followed_when_confirmed(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    offer(1, 10000);
    end_epoch();
    assert_int_equal(percent(1), 90);
    offer(1, 2000);
    end_epoch();
    assert_int_equal(percent(1), 90);
    offer(1, 2000);
    end_epoch();
    assert_int_equal(percent(1), 50);
    offer(1, 1200); // still falling: no further confirmation
    end_epoch();
    assert_int_equal(percent(1), 17);
}

static void test_a_key_that_comes_every_other_epoch_stays_throttled(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    offer(1, 10000);
    end_epoch();
    for (unsigned e = 0; e < 10; e++) {
        assert_int_equal(percent(1), 90);
        offer(1, e % 2 == 0 ? 0 : 10000);
        end_epoch();
    }
}

static void test_a_cool_key_leaves(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    for (unsigned cool = 0; cool <= 900; cool += 300) {
        offer(1, 10000);
        end_epoch();
        assert_int_equal(percent(1), 90);
        offer(1, cool);
        end_epoch();
        assert_int_equal(percent(1), 90);
        offer(1, cool);
        end_epoch();
        assert_int_equal(percent(1), -1);
        assert_int_equal(tenant.throttle.count, 0);
    }
}

static void test_noise_is_averaged(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    offer(1, 2000);
    end_epoch();
    offer(1, 2090); // two standard deviations
    end_epoch();
    assert_near(listed(1)->offered, 2045, 0.01);
    offer(1, 1945);
    end_epoch();
    assert_near(listed(1)->offered, 1995, 0.01);
}

/* What the sketch has lost sight of, the lists know; beyond its bounds they are not believed. */
static void test_admitted_is_what_the_lists_passed(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    hot_free(tenant.sketch);
    tenant.sketch = hot_new(16, true);
    admit(1, 2000);
    end_epoch();
    for (uint32_t id = 100; id < 117; id++)
        admit(id, 1500); // key 1 is not there: at most 1500
    tell(1, 1000, 1000);
    end_epoch();
    assert_near(listed(1)->offered, 2000, 0.01);
    for (uint32_t id = 100; id < 117; id++)
        admit(id, 100);
    tell(1, 1000, 1900); // most of what passed never reached a store
    end_epoch();
    assert_near(listed(1)->offered, 2000, 0.01);
    admit(1, 900); // exempt requests are not in the lists
    tell(1, 0, 1100);
    end_epoch();
    assert_near(listed(1)->offered, 2000, 0.01);
}

static void test_proportional_scales(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    admit(1, 4000);
    end_epoch_after(2 * NOMINAL_US);
    assert_int_equal(percent(1), 50);
    admit(1, 2000);
    tell(1, 2000, 2000);
    end_epoch_after(2 * NOMINAL_US);
    assert_int_equal(percent(1), 50);
    admit(1, 1000);
    tell(1, 1000, 1000);
    end_epoch_after(30 * NOMINAL_US); // a jump of the clock: not a fall until confirmed
    assert_int_equal(percent(1), 50);
}

static void test_control_is_changed(void **state)
{
    (void)state;
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    offer(1, 3000);
    end_epoch();
    assert_int_equal(percent(1), 67);
    tenant.settings.control = HG_HOTKEY_STEP;
    offer(1, 9000); // 2970 pass; mean 1492
    end_epoch();
    assert_int_equal(percent(1), 77);
    tenant.settings.control = HG_HOTKEY_PROPORTIONAL;
    offer(1, 9000);
    end_epoch();
    assert_near(admitted_of(9000), 1000, 1);
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
        TEST(test_proportional_settles_at_once),
        TEST(test_proportional_needs_more_than_the_threshold),
        TEST(test_a_rise_is_followed_at_once),
        TEST(test_a_fall_is_followed_when_confirmed),
        TEST(test_a_key_that_comes_every_other_epoch_stays_throttled),
        TEST(test_a_cool_key_leaves),
        TEST(test_noise_is_averaged),
        TEST(test_admitted_is_what_the_lists_passed),
        TEST(test_proportional_scales),
        TEST(test_control_is_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
