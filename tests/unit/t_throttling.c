// t_throttling - when the begin and the end of a throttling are told, and what the end adds up to
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "core/throttling.h"

#define MS ((uint64_t)1000)
#define S  ((uint64_t)1000000)

static const struct hg_throttling_rule rule = {.rise_us = 1 * S, .fall_us = 2 * S};

/* Looks each 100 ms from..to; what was told is added up. */
struct told {
    unsigned begins, ends;
    uint64_t lasted_us, refused, at_us;
};

static void look(struct hg_throttling *t, bool active, bool at_once, uint64_t from_us,
                 uint64_t to_us, struct told *told)
{
    for (uint64_t now_us = from_us; now_us < to_us; now_us += 100 * MS) {
        struct hg_throttling_told one = hg_throttling_look(t, &rule, active, at_once, now_us);
        told->begins += one.begin;
        told->ends += one.end;
        if (one.begin || one.end)
            told->at_us = now_us;
        if (one.end) {
            told->lasted_us = one.lasted_us;
            told->refused += one.refused;
        }
        assert_true(told->begins == told->ends || told->begins == told->ends + 1);
    }
}

static void test_begins_and_ends(void **state)
{
    (void)state;
    struct hg_throttling t = {0};
    struct told told = {0};
    look(&t, false, false, 100 * S, 101 * S, &told);
    look(&t, true, false, 101 * S, 101 * S + 900 * MS, &told);
    look(&t, false, false, 101 * S + 900 * MS, 103 * S, &told);
    assert_int_equal(told.begins, 0); // too short
    look(&t, true, false, 103 * S, 104 * S, &told);
    assert_int_equal(told.begins, 0);
    look(&t, true, false, 104 * S, 108 * S, &told);
    assert_int_equal(told.begins, 1);
    look(&t, false, false, 108 * S, 109 * S + 800 * MS, &told);
    look(&t, true, false, 109 * S + 800 * MS, 110 * S, &told);
    look(&t, false, false, 110 * S, 111 * S + 800 * MS, &told);
    assert_int_equal(told.ends, 0); // never calm for two seconds
    look(&t, false, false, 111 * S + 800 * MS, 113 * S, &told);
    assert_int_equal(told.ends, 1);
    assert_int_equal(told.lasted_us, 109 * S + 900 * MS - 103 * S);
}

static void test_at_once(void **state)
{
    (void)state;
    struct hg_throttling t = {0};
    struct told told = {0};
    look(&t, true, true, 50 * S, 50 * S + 100 * MS, &told);
    assert_int_equal(told.begins, 1);
    look(&t, false, false, 50 * S + 100 * MS, 53 * S, &told);
    assert_int_equal(told.ends, 1);
    assert_int_equal(told.lasted_us, 0);
}

/* Whatever comes and goes, begins are 10 s apart, and the ends add up. */
static void test_sums(void **state)
{
    (void)state;
    struct hg_throttling t = {0};
    struct told told = {0};
    uint64_t count = 0, last_us = 0;
    unsigned pairs = 0;
    for (uint64_t s = 200; s < 260; s++) {
        unsigned before = told.begins;
        bool active = s % 4 == 0 && s < 240;
        if (active)
            hg_throttling_count(&t, (unsigned)(s % 3), 7, count += 5);
        look(&t, active, active, s * S, s * S + 100 * MS, &told);
        look(&t, false, false, s * S + 100 * MS, (s + 1) * S, &told);
        if (told.begins > before) {
            assert_true(last_us == 0 || told.at_us - last_us >= 8 * S);
            last_us = told.at_us;
            pairs++;
        }
    }
    assert_true(pairs <= 5);
    assert_int_equal(told.begins, told.ends);
    /* Worker 0, 1 and 2 each counted up to a part of it. */
    uint64_t sum = t.sources[0].count + t.sources[1].count + t.sources[2].count;
    assert_int_equal(told.refused, sum);
    assert_true(hg_throttling_is_over(&t, 400 * S));
}

/* A short one that came too soon after another is told late, as a pair. */
static void test_late_pair(void **state)
{
    (void)state;
    struct hg_throttling t = {0};
    struct told told = {0};
    look(&t, true, true, 100 * S, 101 * S, &told);
    look(&t, false, false, 101 * S, 104 * S, &told);
    assert_int_equal(told.ends, 1);
    assert_int_equal(hg_throttling_count(&t, 3, 1, 40), 40);
    look(&t, true, true, 104 * S, 105 * S, &told);
    look(&t, false, false, 105 * S, 110 * S, &told);
    assert_int_equal(told.begins, 1);
    assert_false(hg_throttling_is_over(&t, 110 * S));
    look(&t, false, false, 110 * S, 111 * S, &told);
    assert_int_equal(told.begins, 2);
    assert_int_equal(told.ends, 2);
    assert_int_equal(told.refused, 40);
    assert_int_equal(told.lasted_us, 900 * MS);
}

static void test_counters(void **state)
{
    (void)state;
    struct hg_throttling t = {0};
    assert_int_equal(hg_throttling_count(&t, 0, 1, 10), 10);
    assert_int_equal(hg_throttling_count(&t, 0, 1, 15), 5);
    assert_int_equal(hg_throttling_count(&t, 1, 1, 3), 3);
    assert_int_equal(hg_throttling_count(&t, 0, 2, 20), 20); // another counter
    assert_int_equal(hg_throttling_count(&t, 0, 2, 4), 0);   // less than before: it was set to 0
    assert_int_equal(hg_throttling_count(&t, 0, 2, 6), 2);
    assert_int_equal(t.refused, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begins_and_ends),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_late_pair),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
