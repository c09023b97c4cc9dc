// t_held - order, grants and wake-ups of held requests, step by step
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/credittick.h"
#include "core/held.h"

#define WORKERS 4

struct rig {
    struct hg_credit_node node;
    struct hg_credit_bucket bucket;
    struct hg_credit_bucket *all[1];
    struct hg_credit_lane lanes[WORKERS];
    struct hg_fair scratch[1];
    struct hg_credit_tick tick;
    struct hg_charge charge;
    struct hg_held_pass pass[WORKERS];
    struct hg_held held[WORKERS]; // as published
};

static struct rig rig;

static void next_slot(void)
{
    hg_credit_tick(&rig.node, rig.all, 1, rig.scratch, rig.node.next_tick_us, &rig.tick);
}

/* A bucket with this hard limit, the running slot used up. */
static void begin(uint64_t hard_limit)
{
    struct hg_credit_settings settings = {HG_UNITS_UNLIMITED, 1000, HG_FREE_POOL_FIRST_COME, 10};
    rig = (struct rig){.all = {&rig.bucket}};
    hg_credit_init(&rig.node, &settings, WORKERS);
    hg_credit_bucket_init(&rig.node, &rig.bucket, rig.lanes, 0, hard_limit);
    hg_credit_join(&rig.bucket);
    hg_credit_tick(&rig.node, rig.all, 1, rig.scratch, 1000000, &rig.tick);
    assert_int_equal(hg_credit_decide(&rig.node, &rig.bucket, (uint32_t)hard_limit, 0, &rig.charge),
                     HG_CREDIT_PASS);
}

static int decide_new(uint32_t units)
{
    (void)!hg_credit_decide(&rig.node, &rig.bucket, units, 0, &rig.charge);
    return rig.charge.reason;
}

static struct hg_held_advice publish(uint32_t w, uint32_t count, uint32_t each, uint64_t since,
                                     const struct hg_charge *charge)
{
    rig.held[w] = (struct hg_held){.count = count,
                                   .units = (uint64_t)count * each,
                                   .head_units = count ? each : 0,
                                   .head_since_us = count ? since : 0};
    return hg_held_publish(&rig.node, &rig.bucket, w, &rig.held[w], charge);
}

/* Makes a worker hold `count` requests of `each` units. */
static void hold(uint32_t w, uint32_t count, uint32_t each, uint64_t since)
{
    assert_true(decide_new(each) >= HG_CREDIT_NO_POOL);
    (void)publish(w, count, each, since, &rig.charge);
}

static bool pass_begin(uint32_t w)
{
    return hg_held_pass_begin(&rig.node, &rig.bucket, w, &rig.pass[w]);
}

/* Decides as many held requests of the worker as pass; the lane is published by done. */
static uint32_t pass_decide(uint32_t w)
{
    uint32_t n = 0, each = (uint32_t)rig.held[w].head_units;
    while (rig.held[w].count > 0 && hg_held_decide(&rig.node, &rig.bucket, &rig.pass[w], each, 0,
                                                   &rig.charge) == HG_CREDIT_PASS) {
        rig.held[w].count--;
        n++;
    }
    return n;
}

static struct hg_held_advice pass_done(uint32_t w)
{
    uint32_t each = (uint32_t)rig.held[w].head_units;
    if (rig.held[w].count == 0)
        each = 0;
    rig.held[w].units = (uint64_t)rig.held[w].count * each;
    rig.held[w].head_units = each;
    return hg_held_pass_done(&rig.node, &rig.bucket, w, &rig.pass[w], &rig.held[w]);
}

static void assert_advice(struct hg_held_advice advice, bool again, uint64_t poke)
{
    assert_int_equal(advice.again, again);
    assert_int_equal(advice.poke, poke);
}

static void test_new_ones_queue_behind_held_ones_of_any_worker(void **state)
{
    (void)state;
    begin(10);
    assert_int_equal(decide_new(1), HG_CREDIT_HARD_LIMIT);
    assert_advice(publish(0, 1, 1, 5, &rig.charge), true, 0);
    next_slot();
    assert_int_equal(rig.tick.poke, 1);
    assert_int_equal(decide_new(1), HG_CREDIT_BEHIND); // although the slot is empty
    assert_advice(publish(1, 1, 1, 6, &rig.charge), false, 0);
    assert_true(pass_begin(0));
    assert_int_equal(pass_decide(0), 1);
    assert_advice(pass_done(0), false, 1 << 1); // who waits behind is told
    assert_true(pass_begin(1));
    assert_int_equal(pass_decide(1), 1);
    assert_advice(pass_done(1), false, 0);
    assert_int_equal(decide_new(1), HG_CREDIT_BY_POOL);
}

static void test_behind_somebody_who_has_gone(void **state)
{
    struct hg_charge behind;
    (void)state;
    begin(10);
    hold(0, 1, 1, 5);
    assert_int_equal(decide_new(1), HG_CREDIT_BEHIND);
    behind = rig.charge;
    assert_advice(publish(0, 0, 0, 0, NULL), false, 0); // nobody to tell yet
    assert_advice(publish(1, 1, 1, 6, &behind), true, 0);
}

static void test_a_lane_that_empties_pokes_those_behind(void **state)
{
    (void)state;
    begin(10);
    hold(0, 2, 1, 5);
    hold(1, 1, 1, 6);
    hold(3, 1, 1, 7);
    assert_advice(publish(0, 1, 1, 5, NULL), true, 0); // shorter: the head may be another one
    assert_advice(publish(0, 0, 0, 0, NULL), false, 1 << 1 | 1 << 3);
    assert_int_equal(hg_held_holders(&rig.node, &rig.bucket), 1 << 1 | 1 << 3);
}

static void test_a_slot_that_began_in_between_is_noticed(void **state)
{
    struct hg_charge old;
    (void)state;
    begin(10);
    assert_int_equal(decide_new(1), HG_CREDIT_HARD_LIMIT);
    old = rig.charge;
    hold(1, 1, 1, 5);
    next_slot();
    assert_int_equal(rig.tick.poke, 1 << 1); // worker 0 has not published yet
    old.reason = HG_CREDIT_BEHIND;
    assert_advice(publish(0, 1, 1, 5, &old), true, 0);
}

static void test_enough_for_all_needs_no_grants(void **state)
{
    (void)state;
    begin(10);
    hold(0, 4, 1, 5);
    hold(1, 6, 1, 6);
    next_slot();
    assert_true(pass_begin(0) && pass_begin(1));
    assert_true(rig.pass[0].claim == 0 && rig.pass[1].claim == 0);
    assert_int_equal(pass_decide(0) + pass_decide(1), 10);
}

static void test_grants_follow_demand_by_largest_remainder(void **state)
{
    (void)state;
    begin(10);
    hold(0, 30, 1, 9);
    hold(1, 10, 1, 5); // the oldest: its head comes first
    hold(2, 3, 1, 7);
    next_slot();
    for (uint32_t w = 0; w < 3; w++)
        assert_true(pass_begin(w));
    // 9 units by 30 : 9 : 3 = 6.43, 1.93, 0.64
    assert_int_equal(rig.pass[0].grant, 6);
    assert_int_equal(rig.pass[1].grant, 1 + 2);
    assert_int_equal(rig.pass[2].grant, 1);
    assert_true(rig.pass[1].oldest && !rig.pass[0].oldest && !rig.pass[2].oldest);
}

static void test_what_one_does_not_use_returns(void **state)
{
    (void)state;
    begin(10);
    hold(0, 15, 1, 5);
    hold(1, 15, 1, 6);
    next_slot();
    assert_true(pass_begin(0));
    assert_int_equal(pass_decide(0), 5); // 1 + 9 * 14 / 29; the other's rest is larger
    assert_advice(pass_done(0), false, 0);
    assert_false(pass_begin(0)); // not before the other is done
    assert_advice(pass_done(0), false, 0);
    assert_advice(publish(1, 0, 0, 0, NULL), false, 1); // all of its connections were closed
    assert_true(pass_begin(0));
    assert_int_equal(pass_decide(0), 5);
    assert_advice(pass_done(0), false, 0);
}

static void test_the_last_one_goes_on_itself(void **state)
{
    (void)state;
    begin(10);
    hold(0, 15, 1, 5);
    hold(1, 15, 1, 6);
    next_slot();
    assert_advice(publish(1, 0, 0, 0, NULL), false, 0);
    assert_true(pass_begin(0));
    assert_int_equal(pass_decide(0), 5);
    assert_advice(pass_done(0), true, 0);
    assert_true(pass_begin(0));
    assert_int_equal(pass_decide(0), 5);
    assert_advice(pass_done(0), false, 0);
}

static void test_a_lane_that_comes_late_waits_for_the_granted(void **state)
{
    (void)state;
    begin(10);
    hold(0, 9, 1, 5);
    hold(1, 9, 1, 6);
    next_slot();
    assert_int_equal(decide_new(1), HG_CREDIT_BEHIND);
    assert_advice(publish(2, 1, 1, 7, &rig.charge), false, 0);
    assert_false(pass_begin(2));
    assert_advice(pass_done(2), false, 0);
    for (uint32_t w = 0; w < 2; w++) {
        assert_true(pass_begin(w));
        assert_int_equal(pass_decide(w), 5);
    }
    assert_advice(pass_done(0), false, 0);
    assert_advice(pass_done(1), true, 1 << 0 | 1 << 2);
    assert_true(pass_begin(2));
}

static void test_a_tick_in_the_middle_of_a_pass(void **state)
{
    (void)state;
    begin(10);
    hold(0, 50, 1, 5);
    hold(1, 50, 1, 6);
    next_slot();
    assert_true(pass_begin(0));
    assert_int_equal(pass_decide(0), 5);
    next_slot(); // worker 1 never came
    assert_int_equal(rig.tick.poke, 3);
    assert_advice(pass_done(0), false, 0); // counts nothing down in the new round
    assert_true(pass_begin(0));
    assert_true(rig.pass[0].claim != 0);
    assert_true(pass_begin(1));
    (void)pass_decide(0);
    (void)pass_decide(1);
    assert_advice(pass_done(0), false, 0);
    assert_advice(pass_done(1), true, 1);
}

static void test_a_head_larger_than_the_slot(void **state)
{
    (void)state;
    begin(10);
    hold(0, 30, 1, 9);
    hold(1, 1, 25, 5);
    next_slot();
    assert_true(pass_begin(0));
    assert_int_equal(rig.pass[0].grant, 0); // the gauge stays empty for the oldest
    assert_int_equal(pass_decide(0), 0);
    assert_advice(pass_done(0), false, 0);
    assert_true(pass_begin(1));
    assert_int_equal(pass_decide(1), 1);
    assert_advice(pass_done(1), false, 1);
    for (int slot = 0; slot < 2; slot++) { // 25 units of debt
        assert_true(pass_begin(0));
        assert_int_equal(pass_decide(0), 0);
        (void)pass_done(0);
        next_slot();
    }
    assert_true(pass_begin(0));
    assert_int_equal(pass_decide(0), 5);
}

static void test_exempt_ones_leave_whatever_the_grant(void **state)
{
    (void)state;
    begin(10);
    hold(0, 30, 1, 9);
    hold(1, 30, 1, 5);
    next_slot();
    assert_true(pass_begin(0));
    assert_int_equal(
        hg_held_decide(&rig.node, &rig.bucket, &rig.pass[0], 500, HG_CREDIT_OBSERVE, &rig.charge),
        HG_CREDIT_PASS);
    assert_int_equal(rig.charge.units, 500);
    assert_int_equal(hg_held_decide(&rig.node, &rig.bucket, &rig.pass[0], 500,
                                    HG_CREDIT_UNTHROTTLED, &rig.charge),
                     HG_CREDIT_PASS);
    assert_int_equal(rig.charge.units, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_ones_queue_behind_held_ones_of_any_worker),
        cmocka_unit_test(test_behind_somebody_who_has_gone),
        cmocka_unit_test(test_a_lane_that_empties_pokes_those_behind),
        cmocka_unit_test(test_a_slot_that_began_in_between_is_noticed),
        cmocka_unit_test(test_enough_for_all_needs_no_grants),
        cmocka_unit_test(test_grants_follow_demand_by_largest_remainder),
        cmocka_unit_test(test_what_one_does_not_use_returns),
        cmocka_unit_test(test_the_last_one_goes_on_itself),
        cmocka_unit_test(test_a_lane_that_comes_late_waits_for_the_granted),
        cmocka_unit_test(test_a_tick_in_the_middle_of_a_pass),
        cmocka_unit_test(test_a_head_larger_than_the_slot),
        cmocka_unit_test(test_exempt_ones_leave_whatever_the_grant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
