// t_workclass - what requests of a class usually take: learnt, followed down, hardly up
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/workclass.h"

#define S ((uint64_t)1000000)

static struct hg_workclass class;
static uint64_t now_us;

static int setup(void **state)
{
    (void)state;
    class = (struct hg_workclass){0};
    now_us = 1000 * S;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

/* So many windows of equal services within a second each; the work that the last one was. */
static uint32_t windows(unsigned count, uint64_t service_us, bool waits)
{
    uint32_t work_us = 0;
    for (unsigned i = 0; i < count; i++) {
        now_us += S;
        for (unsigned n = 0; n < HG_WORKCLASS_WINDOW; n++)
            work_us = hg_workclass_note(&class, service_us, waits, now_us);
    }
    return work_us;
}

static void test_unknown_at_first(void **state)
{
    (void)state;
    assert_int_equal(hg_workclass_note(&class, 700, false, now_us), 700);
    assert_int_equal(hg_workclass_note(&class, 0, false, now_us), 1);
    assert_int_equal(hg_workclass_note(&class, UINT64_MAX / 64, false, now_us), UINT32_MAX / 2);
    assert_int_equal(class.usual_us, 0);
}

static void test_the_first_window_is_the_mean(void **state)
{
    (void)state;
    for (unsigned n = 0; n < HG_WORKCLASS_WINDOW; n++)
        assert_int_equal(hg_workclass_note(&class, n % 2 ? 300 : 100, true, now_us),
                         n % 2 ? 300 : 100);
    assert_int_equal(class.usual_us, 200);
    assert_int_equal(hg_workclass_note(&class, 50000, true, now_us), 200);
}

static void test_it_falls_by_a_quarter_of_the_difference(void **state)
{
    (void)state;
    windows(1, 2000, false);
    windows(1, 1000, true);
    assert_int_equal(class.usual_us, 1750);
    windows(60, 1000, true);
    assert_int_equal(class.usual_us, 1000);
}

/* Under load it does not rise at all, else by a hundredth a second. */
static void test_it_hardly_rises(void **state)
{
    (void)state;
    windows(1, 2000, false);
    windows(100, 200000, true);
    assert_int_equal(class.usual_us, 2000);
    windows(1, 200000, false);
    assert_int_equal(class.usual_us, 2020);
    windows(1, 2025, false);
    assert_int_equal(class.usual_us, 2025);
    now_us += 1000 * S;
    windows(1, 200000, false);
    assert_int_equal(class.usual_us, 4050); /* a pause counts as 100 s at most */
}

/* One that waited spoils its window, and no other. */
static void test_one_waiter_in_a_window(void **state)
{
    (void)state;
    windows(1, 2000, false);
    now_us += S;
    (void)hg_workclass_note(&class, 3000, true, now_us);
    for (unsigned n = 1; n < HG_WORKCLASS_WINDOW; n++)
        (void)hg_workclass_note(&class, 3000, false, now_us);
    assert_int_equal(class.usual_us, 2000);
    windows(1, 3000, false);
    assert_int_equal(class.usual_us, 2020);
}

static void test_small_and_large_ones(void **state)
{
    (void)state;
    assert_int_equal(windows(2, 0, false), 1);
    windows(300, 5, false);
    assert_int_equal(class.usual_us, 5); /* a hundredth of it is less than 1 */
    class = (struct hg_workclass){0};
    windows(1, UINT64_MAX / 64, false);
    assert_int_equal(class.usual_us, UINT32_MAX / 2);
    assert_int_equal(windows(1, 1, false), UINT32_MAX / 2);
    assert_true(class.usual_us < UINT32_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_unknown_at_first),
        TEST(test_the_first_window_is_the_mean),
        TEST(test_it_falls_by_a_quarter_of_the_difference),
        TEST(test_it_hardly_rises),
        TEST(test_one_waiter_in_a_window),
        TEST(test_small_and_large_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
