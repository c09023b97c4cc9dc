// t_keythrottleshare - the share that `proportional` refuses, epoch by epoch
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/attr.h"
#include "keythrottlerig.h"

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
