// t_credittick - what a tick changes, and when
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "creditrig.h"

static void test_the_pool_is_full_before_the_first_request(void **state)
{
    (void)state;
    begin(100, 1000);
    add_bucket(0, UNLIMITED);
    tick_at(77);
    assert_true(rig.tick.slot);
    assert_int_equal(decide(0, 100, 0), HG_CREDIT_BY_POOL);
}

static void test_slow_start(void **state)
{
    (void)state;
    begin(1000, 1000);
    add_bucket(500, UNLIMITED);
    add_bucket(0, UNLIMITED);
    hg_credit_leave(&rig.bucket[0]);
    tick_at(5000000);
    assert_int_equal(rig.tick.pool, 950); // 10 % of 500 is kept
    assert_int_equal(decide(0, 50, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_BY_POOL);
    hg_credit_join(&rig.bucket[0]);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_BY_POOL);
    next_slot();
    assert_int_equal(rig.tick.pool, 500);
    assert_int_equal(decide(0, 500, 0), HG_CREDIT_BY_RESERVATION);
    hg_credit_leave(&rig.bucket[0]);
    hg_credit_note_impersonated(&rig.node, &rig.bucket[0]);
    next_slot();
    assert_int_equal(rig.tick.pool, 500);
    next_slot(); // no impersonated request in the last slot
    assert_int_equal(rig.tick.pool, 950);
}

static void test_new_limits_count_from_the_next_tick(void **state)
{
    struct hg_credit_settings settings = {60, 1000, HG_FREE_POOL_FIRST_COME, 10};
    (void)state;
    begin(100, 1000);
    add_bucket(10, 20);
    tick_at(5000000);
    hg_credit_bucket_set(&rig.bucket[0], 30, 40, false);
    hg_credit_set(&rig.node, &settings);
    assert_int_equal(decide(0, 20, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
    next_slot();
    assert_int_equal(rig.tick.pool, 30);
    assert_int_equal(decide(0, 30, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(decide(0, 10, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
    // A lower limit: the debt that was made under the old one is measured by the old one.
    hg_credit_bucket_set(&rig.bucket[0], 0, 5, false);
    next_slot();
    assert_int_equal(used(0), 0);
    assert_int_equal(decide(0, 5, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
}

static void test_a_bucket_made_in_a_slot_lives_out_of_the_pool(void **state)
{
    (void)state;
    begin(100, 1000);
    add_bucket(0, UNLIMITED);
    tick_at(5000000);
    add_bucket(40, 50);
    assert_int_equal(decide(1, 50, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(1, 1, 0), HG_CREDIT_HARD_LIMIT);
    assert_int_equal(decide(0, 51, 0), HG_CREDIT_NO_POOL);
    assert_int_equal(decide(0, 50, 0), HG_CREDIT_BY_POOL);
    next_slot();
    assert_int_equal(decide(1, 40, 0), HG_CREDIT_BY_RESERVATION);
}

static void test_one_tick_however_many_were_missed(void **state)
{
    uint64_t due;
    (void)state;
    begin(UNLIMITED, 1000);
    add_bucket(0, 100);
    assert_int_equal(hg_credit_due_us(&rig.node), 0);
    tick_at(5000000);
    assert_int_equal(hg_credit_due_us(&rig.node), 6000000);
    decide(0, 100, 0);
    decide(0, 900, HG_CREDIT_UNTHROTTLED);
    tick_at(5999999);
    assert_false(rig.tick.slot);
    tick_at(3605300000); // suspended for an hour
    assert_true(rig.tick.slot);
    assert_int_equal(used(0), 900);                            // one limit is paid, not 3600
    assert_int_equal(hg_credit_due_us(&rig.node), 3606000000); // on the grid
    tick_at(3605300001);
    assert_false(rig.tick.slot);
    due = hg_credit_due_us(&rig.node);
    for (int i = 0; i < 1000; i++) { // late each time, without drift
        tick_at(hg_credit_due_us(&rig.node) + 1 + (uint64_t)i * 997);
        assert_true(rig.tick.slot);
        due += 1000000;
        assert_int_equal(hg_credit_due_us(&rig.node), due);
    }
}

static void test_short_slots_carry_the_fraction(void **state)
{
    uint64_t passed = 0;
    (void)state;
    begin(UNLIMITED, 50);
    add_bucket(0, 30);
    tick_at(5000000);
    for (int slot = 0; slot < 20; slot++) {
        while (decide(0, 1, 0) == HG_CREDIT_BY_POOL)
            passed++;
        next_slot();
    }
    assert_int_equal(passed, 30);
    assert_int_equal(rig.now_us, 6000000);
}

static void test_slot_length_changes_at_the_tick(void **state)
{
    struct hg_credit_settings settings = {UNLIMITED, 100, HG_FREE_POOL_FIRST_COME, 10};
    (void)state;
    begin(UNLIMITED, 1000);
    add_bucket(0, 200);
    tick_at(5000000);
    hg_credit_set(&rig.node, &settings);
    assert_int_equal(decide(0, 200, 0), HG_CREDIT_BY_POOL);
    next_slot();
    assert_int_equal(rig.now_us, 6000000);
    assert_int_equal(decide(0, 20, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
    next_slot();
    assert_int_equal(rig.now_us, 6100000);
    settings.slot_ms = 7; // clamped
    hg_credit_set(&rig.node, &settings);
    next_slot();
    next_slot();
    assert_int_equal(rig.now_us, 6250000);
}

/* A worker may come to the new slot before the tick has rolled the gauge: it rolls it itself, by
 * the limit of the slot that ended. */
static void test_who_comes_first_rolls_the_gauge(void **state)
{
    uint32_t slot;
    (void)state;
    begin(1000, 1000);
    add_bucket(0, 100);
    tick_at(5000000);
    slot = rig.node.slot;
    hg_credit_bucket_set(&rig.bucket[0], 0, 160, false);
    next_slot();
    atomic_store(&rig.bucket[0].used.word, hg_gauge_word(slot, 250));
    atomic_store(&rig.node.free.word, hg_gauge_word(slot, 1000));
    assert_int_equal(used(0), 150);
    assert_int_equal(decide(0, 11, 0), HG_CREDIT_HARD_LIMIT);
    assert_int_equal(decide(0, 10, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(used(0), 160);
    assert_int_equal(pool_used(), 10);
}

static void test_slot_numbers_wrap(void **state)
{
    (void)state;
    begin(1000, 50);
    add_bucket(0, 100);
    tick_at(5000000);
    atomic_store(&rig.node.slot, HG_GAUGE_SLOTS - 3);
    atomic_store(&rig.node.free.word, hg_gauge_word(HG_GAUGE_SLOTS - 3, 0));
    atomic_store(&rig.bucket[0].used.word, hg_gauge_word(HG_GAUGE_SLOTS - 3, 0));
    for (int slot = 0; slot < 8; slot++) {
        next_slot();
        hg_credit_note_impersonated(&rig.node, &rig.bucket[0]);
        assert_int_equal(decide(0, 5, 0), HG_CREDIT_BY_POOL);
        assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
        assert_int_equal(used(0), 5);
        assert_int_equal(pool_used(), 5);
    }
}

static void test_a_new_bucket_is_empty(void **state)
{
    (void)state;
    begin(1000, 1000);
    add_bucket(100, 100);
    tick_at(5000000);
    decide(0, 1000, HG_CREDIT_UNTHROTTLED);
    hg_credit_bucket_init(&rig.node, &rig.bucket[0], rig.lanes[0], 0, UNLIMITED);
    assert_int_equal(used(0), 0);
    next_slot();
    assert_int_equal(used(0), 0);
    assert_int_equal(rig.tick.pool, 1000);
    assert_int_equal(decide(0, 1000, 0), HG_CREDIT_BY_POOL);
}

/* A bucket without a reservation gets the refilled pool at the first tick, not one later. */
static void test_reserved_0_wakes_up_at_the_tick(void **state)
{
    struct hg_held held = {.count = 1, .units = 3, .head_units = 3, .head_since_us = 5000001};
    struct hg_held_pass pass;
    (void)state;
    begin(10, 1000);
    add_bucket(0, UNLIMITED);
    add_bucket(0, UNLIMITED);
    tick_at(5000000);
    decide(1, 10, 0);
    assert_int_equal(decide(0, 3, 0), HG_CREDIT_NO_POOL);
    assert_true(hg_held_publish(&rig.node, &rig.bucket[0], 1, &held, &rig.charge).again);
    next_slot();
    assert_int_equal(rig.tick.poke, 1 << 1);
    assert_true(hg_held_pass_begin(&rig.node, &rig.bucket[0], 1, &pass));
    assert_int_equal(hg_held_decide(&rig.node, &rig.bucket[0], &pass, 3, 0, &rig.charge),
                     HG_CREDIT_PASS);
    assert_int_equal(rig.charge.reason, HG_CREDIT_BY_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_pool_is_full_before_the_first_request),
        cmocka_unit_test(test_slow_start),
        cmocka_unit_test(test_new_limits_count_from_the_next_tick),
        cmocka_unit_test(test_a_bucket_made_in_a_slot_lives_out_of_the_pool),
        cmocka_unit_test(test_one_tick_however_many_were_missed),
        cmocka_unit_test(test_short_slots_carry_the_fraction),
        cmocka_unit_test(test_slot_length_changes_at_the_tick),
        cmocka_unit_test(test_who_comes_first_rolls_the_gauge),
        cmocka_unit_test(test_slot_numbers_wrap),
        cmocka_unit_test(test_a_new_bucket_is_empty),
        cmocka_unit_test(test_reserved_0_wakes_up_at_the_tick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
