// t_bindthrottle - the rules of the bind throttle one by one, and what must not happen
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bindtable.h"

/* ---- the table of rules ---- */

static void test_made(void **state)
{
    static const struct {
        uint64_t evicted;
        uint32_t x;
    } cases[] = {
        {0, 2},   {1, 2},       {2, 3},        {3, 4},         {38, 39},
        {66, 67}, {9998, 9999}, {9999, 10000}, {10000, 10000}, {UINT64_MAX, 10000},
    };
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        hg_bindthrottle_init(table, 16);
        struct hg_bindthrottle_entry *made = make(&key, cases[i].evicted);
        assert_ptr_equal(made, hg_bindthrottle_find(table, &key));
        assert_int_equal(x_of(&key), cases[i].x);
        assert_int_equal(table->count, 1);
    }
}

static void test_unknown_key_passes_untold(void **state)
{
    (void)state;
    told.x = 77;
    assert_int_equal(ask(true), HG_BINDTHROTTLE_NONE);
    make(&other, 40);
    assert_int_equal(ask(true), HG_BINDTHROTTLE_NONE);
    assert_int_equal(told.x, 77);
    assert_int_equal(x_of(&other), 41);
}

static void test_the_xth_passes(void **state)
{
    (void)state;
    for (uint32_t evicted = 1; evicted < 200; evicted++) {
        hg_bindthrottle_init(table, 16);
        make(&key, evicted);
        for (uint32_t x = evicted + 1; x >= 2; x--) {
            assert_int_equal(until_pass(false), x - 1);
            assert_int_equal(told.prev, x);
            assert_int_equal(told.x, x - 1);
        }
        assert_int_equal(ask(false), HG_BINDTHROTTLE_NONE);
        assert_int_equal(table->count, 0);
    }
}

static void test_busy_passes_double(void **state)
{
    static const uint32_t steps[] = {25, 51, 103, 207, 415, 831, 1663, 3327, 6655, 10000, 10000};
    (void)state;
    make(&key, 24);
    for (size_t i = 0; i + 1 < HG_COUNT_OF(steps); i++) {
        assert_int_equal(until_pass(true), steps[i] - 1);
        assert_int_equal(told.prev, steps[i]);
        assert_int_equal(told.x, steps[i + 1]);
        assert_int_equal(x_of(&key), steps[i + 1]);
    }
}

static void test_two_to_five(void **state)
{
    (void)state;
    make(&key, 1);
    assert_int_equal(until_pass(true), 1);
    assert_int_equal(told.x, 5);
    assert_int_equal(until_pass(false), 4);
    assert_int_equal(told.x, 4);
}

static void test_what_is_told_is_in_force_also_between_whole_numbers(void **state)
{
    (void)state;
    make(&key, 25);
    now += SECOND_US + SECOND_US / 3; /* 26 - 1.33 */
    assert_int_equal(until_pass(true), 24);
    assert_int_equal(told.prev, 25);
    assert_int_equal(told.x, 51);
}

static void test_busy_counts_only_when_one_passes(void **state)
{
    (void)state;
    make(&key, 9);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(ask(true), HG_BINDTHROTTLE_REFUSE);
    assert_int_equal(x_of(&key), 10);
    assert_int_equal(ask(false), HG_BINDTHROTTLE_PASS);
    assert_int_equal(x_of(&key), 9);
}

static void test_time_takes_one_a_second(void **state)
{
    (void)state;
    make(&key, 99);
    now += 10 * SECOND_US;
    assert_int_equal(x_of(&key), 90);
    now += SECOND_US / 2;
    assert_int_equal(x_of(&key), 90); /* 89.5 */
    now += SECOND_US / 2;
    assert_int_equal(x_of(&key), 89);
}

static void test_two_lasts_a_second(void **state)
{
    (void)state;
    make(&key, 1);
    now += SECOND_US - 1;
    assert_int_equal(ask(false), HG_BINDTHROTTLE_REFUSE);
    now += 1;
    assert_int_equal(ask(false), HG_BINDTHROTTLE_NONE);
    assert_int_equal(table->count, 0);
}

static void test_from_the_cap_in_less_than_three_hours(void **state)
{
    (void)state;
    make(&key, 20000);
    now += 9998 * (uint64_t)SECOND_US;
    assert_int_equal(hg_bindthrottle_sweep(table, DECR, now), 1);
    assert_int_equal(x_of(&key), 2);
    now += SECOND_US; /* 2.8 h */
    assert_int_equal(hg_bindthrottle_sweep(table, DECR, now), 0);
}

static void test_a_large_decrement_empties_within_a_second(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        char text[16];
        snprintf(text, sizeof text, "key-%08u", i);
        struct hg_bindthrottle_key one = key_of(HG_HOT_UPDATE, text);
        make(&one, 20000);
    }
    assert_int_equal(hg_bindthrottle_sweep(table, 10000, now), 16);
    assert_int_equal(hg_bindthrottle_sweep(table, 10000, now + SECOND_US / 2), 16);
    assert_int_equal(hg_bindthrottle_sweep(table, 10000, now + SECOND_US), 0);
}

static void test_no_decay_when_it_is_zero(void **state)
{
    (void)state;
    hg_bindthrottle_make(table, &key, 9, 0, now);
    assert_int_equal(hg_bindthrottle_sweep(table, 0, now + 100000 * (uint64_t)SECOND_US), 1);
    assert_int_equal(hg_bindthrottle_x(hg_bindthrottle_find(table, &key), 0, now + 1), 10);
}

static void test_time_that_goes_back_changes_nothing(void **state)
{
    (void)state;
    make(&key, 9);
    now += 2 * SECOND_US;
    assert_int_equal(hg_bindthrottle_sweep(table, DECR, now), 1);
    now -= SECOND_US;
    assert_int_equal(hg_bindthrottle_sweep(table, DECR, now), 1);
    now += 2 * SECOND_US;
    assert_int_equal(x_of(&key), 7);
}

static void test_raised_if_it_is_lower(void **state)
{
    (void)state;
    make(&key, 40);
    make(&key, 10);
    assert_int_equal(x_of(&key), 41);
    make(&key, 66);
    assert_int_equal(x_of(&key), 67);
    assert_int_equal(table->count, 1);
}

/* What an entry is now is compared, not what it was when it was last asked. */
static void test_raised_from_what_time_has_left(void **state)
{
    (void)state;
    make(&key, 49);
    now += 45 * SECOND_US;
    make(&key, 20);
    assert_int_equal(x_of(&key), 21);
    now += 19 * SECOND_US;
    assert_int_equal(x_of(&key), 2);
}

static void test_made_again_when_time_has_ended_it(void **state)
{
    (void)state;
    make(&key, 9);
    ask(false);
    now += 100 * SECOND_US;
    assert_int_equal(make(&key, 3)->refused, 0);
    assert_int_equal(x_of(&key), 4);
    assert_int_equal(table->count, 1);
}

static void test_a_raise_keeps_the_attempts(void **state)
{
    (void)state;
    make(&key, 9);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(ask(false), HG_BINDTHROTTLE_REFUSE);
    make(&key, 11);
    assert_int_equal(until_pass(false), 2);
}

/* ---- keys ---- */

/* Also when their hashes are equal, and all that is kept of them when only the hashes differ. */
static void test_keys_are_told_apart(void **state)
{
    struct hg_bindthrottle_key keys[6];
    char longs[2][301];
    (void)state;
    for (size_t i = 0; i < 4; i++)
        keys[i] = key;
    keys[1].type = HG_HOT_UPDATE;
    keys[2].table_len = 4;
    keys[3].bytes.len = 7;
    for (size_t i = 0; i < 2; i++) {
        memset(longs[i], 'l', 300);
        snprintf(longs[i] + 290, 11, "%010zu", i);
        keys[4 + i] = key_of(HG_HOT_QUERY, longs[i]);
    }
    keys[5].hash = keys[4].hash ^ 0x10000; /* the same bucket */
    for (size_t i = 0; i < HG_COUNT_OF(keys); i++) {
        make(&keys[i], 10 * i + 1);
        assert_int_equal(table->count, i + 1);
        for (size_t j = 0; j < HG_COUNT_OF(keys); j++) {
            assert_int_equal(x_of(&keys[j]), j <= i ? 10 * j + 2 : 0);
            assert_int_equal(hg_bindthrottle_same(&keys[i], &keys[j]), i == j);
        }
    }
    assert_int_equal(hg_bindthrottle_key_of(hg_bindthrottle_find(table, &keys[5])).bytes.len,
                     HG_BINDTHROTTLE_KEY_MAX);
}

static void test_an_empty_key(void **state)
{
    (void)state;
    key.bytes = HG_SPAN_NONE;
    make(&key, 2);
    assert_int_equal(until_pass(false), 2);
    assert_int_equal(hg_bindthrottle_key_of(hg_bindthrottle_find(table, &key)).bytes.len, 0);
}

/* Of equal X the one that was made first makes room. */
static void test_the_first_of_the_lowest_makes_room(void **state)
{
    static const unsigned made_at[] = {3, 1, 2, 4};
    struct hg_bindthrottle *small = table_new(4);
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct hg_bindthrottle_key one = key;
        one.hash = i;
        /* the same X at the time of the eviction, from different beginnings */
        hg_bindthrottle_make(small, &one, 100 - made_at[i], 1.0, made_at[i] * SECOND_US);
    }
    hg_bindthrottle_make(small, &other, 5, 1.0, 9 * SECOND_US);
    for (unsigned i = 0; i < 4; i++) {
        struct hg_bindthrottle_key one = key;
        one.hash = i;
        assert_true((hg_bindthrottle_find(small, &one) == NULL) == (made_at[i] == 1));
    }
    free(small);
}

/* ---- taken back ---- */

static void test_undone_pass_goes_to_the_next(void **state)
{
    (void)state;
    make(&key, 24);
    for (unsigned busy = 0; busy < 2; busy++) {
        until_pass(busy);
        hg_bindthrottle_undo(table, &key, told.change);
        assert_int_equal(x_of(&key), 25);
        assert_int_equal(hg_bindthrottle_find(table, &key)->passed, 0);
        assert_int_equal(ask(busy), HG_BINDTHROTTLE_PASS);
        assert_int_equal(told.prev, 25);
        hg_bindthrottle_undo(table, &key, told.change);
    }
}

static void test_undoing_does_not_stop_time(void **state)
{
    (void)state;
    make(&key, 999);
    for (unsigned i = 0; i < 10000; i++) {
        now += SECOND_US / 1000;
        if (ask(i % 3 == 0) == HG_BINDTHROTTLE_PASS)
            hg_bindthrottle_undo(table, &key, told.change);
    }
    assert_in_range(x_of(&key), 990, 991);
}

static void test_undo_at_the_edges(void **state)
{
    (void)state;
    hg_bindthrottle_undo(table, &key, -1); /* no entry */
    make(&key, 1);
    until_pass(false); /* it has gone */
    hg_bindthrottle_undo(table, &key, told.change);
    assert_int_equal(table->count, 0);
    make(&key, 20000);
    until_pass(true); /* stays at the cap */
    assert_true(told.change == 0);
    hg_bindthrottle_undo(table, &key, -1);
    assert_int_equal(x_of(&key), 10000);
    hg_bindthrottle_undo(table, &key, 20000); /* nonsense: over, not below */
    assert_int_equal(ask(false), HG_BINDTHROTTLE_NONE);
}

/* ---- what a decision tells ---- */

static void test_silence(void **state)
{
    (void)state;
    make(&key, 50);
    ask(false);
    assert_false(told.silent);
    now += SECOND_US - 1;
    ask(false);
    assert_false(told.silent);
    now += SECOND_US;
    ask(false);
    assert_true(told.silent);
    ask(false);
    assert_false(told.silent);
    make(&other, 50);
    now += SECOND_US; /* also since it was made */
    key = other;
    ask(false);
    assert_true(told.silent);
}

/* Hera's bind_throttle: its log has 28-20, then 8-2. Here a pass takes 1: 28-20, then 8-1. */
static void test_twenty_seconds_of_pause(void **state)
{
    (void)state;
    make(&key, 27);
    for (unsigned i = 0; i < 5; i++)
        ask(true);
    now += 20 * SECOND_US;
    hg_bindthrottle_sweep(table, DECR, now); /* the sweeper does not hide it */
    assert_int_equal(ask(false), HG_BINDTHROTTLE_REFUSE);
    assert_true(told.silent);
    assert_int_equal(told.last, 28);
    assert_int_equal(told.prev, 8);
    assert_int_equal(until_pass(false), 1); /* the sixth and seventh were before: 8 in all */
    assert_int_equal(told.prev, 8);
    assert_int_equal(told.x, 7);
}

static void test_counts(void **state)
{
    (void)state;
    make(&key, 3);
    until_pass(false);
    until_pass(true);
    assert_int_equal(hg_bindthrottle_find(table, &key)->passed, 2);
    assert_int_equal(hg_bindthrottle_find(table, &key)->refused, 3 + 2);
    assert_int_equal(hg_bindthrottle_find(table, &key)->made_us, now);
    assert_int_equal(hg_bindthrottle_find(table, &key)->asked_us, now);
}

/* ---- weaknesses of the original that must not be here ---- */

/* One entry made its whole class immune: here a second key of the type gets its own at once. */
static void test_weakness_whole_class_immune(void **state)
{
    (void)state;
    make(&key, 40);
    now += 10 * SECOND_US;
    make(&other, 30);
    assert_int_equal(x_of(&key), 31);
    assert_int_equal(x_of(&other), 31);
    until_pass(true);
    assert_int_equal(x_of(&key), 63);
    assert_int_equal(x_of(&other), 31);
}

/* A key that never came back stayed for ever. */
static void test_weakness_never_swept(void **state)
{
    (void)state;
    make(&key, 30);
    for (unsigned i = 0; i < 300; i++) {
        now += SECOND_US / 10;
        assert_int_equal(hg_bindthrottle_sweep(table, DECR, now), i < 299 ? 1 : 0);
    }
}

/* Gaps below 1 / decr counted for nothing, so a steady stream never decayed. */
static void test_weakness_decay_truncated_per_gap(void **state)
{
    static const uint32_t gaps_us[] = {1, 7, 100, 1000, 99999, 333333};
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(gaps_us); i++) {
        hg_bindthrottle_init(table, 16);
        now = 1;
        make(&key, 9999); /* far from a pass for the fewest attempts a second */
        uint64_t spent = 0;
        while (spent < 2 * SECOND_US) {
            spent += gaps_us[i];
            now += gaps_us[i];
            if (ask(false) == HG_BINDTHROTTLE_PASS)
                hg_bindthrottle_undo(table, &key, told.change);
        }
        assert_int_equal(x_of(&key), 10000 - spent / SECOND_US);
    }
}

/* X was forgotten after X/2 attempts in light use: X fell with each of them. */
static void test_weakness_forgotten_after_half(void **state)
{
    (void)state;
    make(&key, 999);
    for (unsigned i = 0; i < 999; i++)
        assert_int_equal(ask(false), HG_BINDTHROTTLE_REFUSE);
    assert_int_equal(x_of(&key), 1000);
    assert_int_equal(ask(false), HG_BINDTHROTTLE_PASS);
    assert_int_equal(x_of(&key), 999);
}

/* Updates of X by several threads were lost: a table has one, and each pass counts. */
static void test_weakness_lost_updates(void **state)
{
    uint64_t attempts = 0;
    (void)state;
    make(&key, 99);
    while (table->count > 0) {
        until_pass(false);
        attempts += told.prev;
    }
    assert_int_equal(attempts, 100 * 101 / 2 - 1);
}

/* Beyond 20 entries nothing was detected any more. */
static void test_weakness_twenty_entries(void **state)
{
    struct hg_bindthrottle *large = table_new(64);
    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        char text[16];
        snprintf(text, sizeof text, "key-%08u", i);
        struct hg_bindthrottle_key one = key_of(HG_HOT_QUERY, text);
        hg_bindthrottle_make(large, &one, i + 1, DECR, now);
        assert_int_equal(large->count, i + 1);
        assert_int_equal(hg_bindthrottle_find(large, &one)->last_x, i + 2);
    }
    free(large);
}

/* ---- 1,000 attempts a second ---- */

static void test_x_of_a_hundred_is_gone_in_ten_seconds(void **state)
{
    uint64_t last_refused = 0, began = now;
    (void)state;
    make(&key, 99);
    for (unsigned i = 0; i < 20000; i++) {
        now += SECOND_US / 1000;
        if (ask(false) == HG_BINDTHROTTLE_REFUSE)
            last_refused = now;
    }
    assert_in_range(last_refused - began, 4 * SECOND_US, 5 * SECOND_US);
    assert_int_equal(table->count, 0);
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    TEST(test_made),
    TEST(test_unknown_key_passes_untold),
    TEST(test_the_xth_passes),
    TEST(test_busy_passes_double),
    TEST(test_two_to_five),
    TEST(test_what_is_told_is_in_force_also_between_whole_numbers),
    TEST(test_busy_counts_only_when_one_passes),
    TEST(test_time_takes_one_a_second),
    TEST(test_two_lasts_a_second),
    TEST(test_from_the_cap_in_less_than_three_hours),
    TEST(test_a_large_decrement_empties_within_a_second),
    TEST(test_no_decay_when_it_is_zero),
    TEST(test_time_that_goes_back_changes_nothing),
    TEST(test_raised_if_it_is_lower),
    TEST(test_raised_from_what_time_has_left),
    TEST(test_made_again_when_time_has_ended_it),
    TEST(test_a_raise_keeps_the_attempts),
    TEST(test_keys_are_told_apart),
    TEST(test_an_empty_key),
    TEST(test_the_first_of_the_lowest_makes_room),
    TEST(test_undone_pass_goes_to_the_next),
    TEST(test_undoing_does_not_stop_time),
    TEST(test_undo_at_the_edges),
    TEST(test_silence),
    TEST(test_twenty_seconds_of_pause),
    TEST(test_counts),
    TEST(test_weakness_whole_class_immune),
    TEST(test_weakness_never_swept),
    TEST(test_weakness_decay_truncated_per_gap),
    TEST(test_weakness_forgotten_after_half),
    TEST(test_weakness_lost_updates),
    TEST(test_weakness_twenty_entries),
    TEST(test_x_of_a_hundred_is_gone_in_ten_seconds),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
