// t_credit - decisions and charges of the credits, one at a time
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "creditrig.h"

static void test_order_of_the_sources(void **state)
{
    (void)state;
    begin(100, 1000);
    add_bucket(10, 20);
    add_bucket(0, UNLIMITED);
    tick_at(5000000);
    assert_int_equal(rig.tick.pool, 90);
    assert_int_equal(decide(0, 10, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(pool_used(), 0);
    assert_int_equal(decide(0, 10, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(rig.charge.pool_units, 10);
    assert_int_equal(pool_used(), 10);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
    assert_int_equal(decide(1, 80, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(1, 1, 0), HG_CREDIT_NO_POOL);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_NO_POOL); // the pool is asked before the limit
    assert_int_equal(pool_used(), 90);
    next_slot();
    assert_int_equal(pool_used(), 0);
    assert_int_equal(used(0), 0);
    assert_int_equal(decide(1, 90, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 10, 0), HG_CREDIT_BY_RESERVATION); // is kept free for it
}

static void test_a_request_across_the_reservation_is_split(void **state)
{
    (void)state;
    begin(100, 1000);
    add_bucket(10, UNLIMITED);
    tick_at(5000000);
    assert_int_equal(decide(0, 7, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(decide(0, 7, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(rig.charge.units, 7);
    assert_int_equal(rig.charge.pool_units, 4);
    assert_int_equal(pool_used(), 4);
    assert_int_equal(decide(0, 87, 0), HG_CREDIT_NO_POOL);
    assert_int_equal(used(0), 14);
    assert_int_equal(decide(0, 86, 0), HG_CREDIT_BY_POOL);
}

static void test_exactly_the_limit_passes_and_limit_0_blocks(void **state)
{
    (void)state;
    begin(UNLIMITED, 1000);
    add_bucket(0, 5);
    add_bucket(0, 0);
    tick_at(5000000);
    for (int slot = 0; slot < 3; slot++) {
        for (int i = 0; i < 5; i++)
            assert_int_equal(decide(0, 1, 0), HG_CREDIT_BY_POOL);
        assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
        assert_int_equal(decide(0, 1, HG_CREDIT_RETRY | HG_CREDIT_OLDEST), HG_CREDIT_HARD_LIMIT);
        assert_int_equal(decide(1, 1, 0), HG_CREDIT_HARD_LIMIT);
        next_slot();
    }
}

static void test_unlimited_and_unthrottled_are_charged(void **state)
{
    (void)state;
    begin(10, 1000);
    add_bucket(UNLIMITED, UNLIMITED);
    add_bucket(0, 4);
    tick_at(5000000);
    assert_int_equal(decide(0, 1000000, 0), HG_CREDIT_BY_UNLIMITED);
    assert_int_equal(used(0), 1000000);
    assert_int_equal(pool_used(), 0);
    // Unthrottled: never held, and what it uses is missing to the others.
    assert_int_equal(decide(1, 6, HG_CREDIT_UNTHROTTLED), HG_CREDIT_BY_UNTHROTTLED);
    assert_int_equal(decide(1, 100, HG_CREDIT_UNTHROTTLED), HG_CREDIT_BY_UNTHROTTLED);
    assert_int_equal(used(1), 106);
    assert_int_equal(pool_used(), 106);
    assert_int_equal(decide(1, 1, 0), HG_CREDIT_NO_POOL);
    next_slot(); // the pool forgives, the hard limit carries the debt
    assert_int_equal(pool_used(), 0);
    assert_int_equal(used(1), 102);
    assert_int_equal(decide(1, 1, 0), HG_CREDIT_HARD_LIMIT);
}

static void test_debt_of_one_huge_operation(void **state)
{
    int slots = 0;
    (void)state;
    begin(UNLIMITED, 1000);
    add_bucket(100, 100);
    add_bucket(100, UNLIMITED);
    tick_at(5000000);
    assert_int_equal(decide(0, 1024, 0), HG_CREDIT_BY_POOL); // gauge empty, nobody before it
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
    while (decide(0, 1, 0) != HG_CREDIT_BY_RESERVATION) {
        next_slot();
        slots++;
    }
    assert_int_equal(slots, 10); // 1024 = 10 limits and 24
    assert_int_equal(used(0), 25);
    // Without a hard limit the debt is forgiven.
    assert_int_equal(decide(1, 50000, 0), HG_CREDIT_BY_POOL);
    next_slot();
    assert_int_equal(used(1), 0);
}

static void test_next_us_knows_of_the_debt(void **state)
{
    (void)state;
    begin(UNLIMITED, 1000);
    add_bucket(0, 100);
    tick_at(5000000);
    assert_int_equal(decide(0, 100, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(hg_credit_next_us(&rig.node, &rig.bucket[0], HG_CREDIT_HARD_LIMIT, 5300000),
                     700000);
    assert_int_equal(hg_credit_next_us(&rig.node, &rig.bucket[0], HG_CREDIT_HARD_LIMIT, 6300000),
                     1);
    decide(0, 250, HG_CREDIT_UNTHROTTLED); // 350: after one tick 250, after two 150, after three 50
    assert_int_equal(hg_credit_next_us(&rig.node, &rig.bucket[0], HG_CREDIT_HARD_LIMIT, 5300000),
                     2700000);
    assert_int_equal(hg_credit_next_us(&rig.node, &rig.bucket[0], HG_CREDIT_NO_POOL, 5300000),
                     700000);
}

static void test_a_large_request_waits_for_an_empty_gauge(void **state)
{
    (void)state;
    begin(50, 1000);
    add_bucket(10, 40);
    add_bucket(0, UNLIMITED);
    tick_at(5000000);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(decide(0, 45, 0), HG_CREDIT_HARD_LIMIT); // not empty
    assert_int_equal(decide(0, 45, HG_CREDIT_RETRY | HG_CREDIT_OLDEST), HG_CREDIT_HARD_LIMIT);
    next_slot();
    assert_int_equal(decide(0, 45, HG_CREDIT_RETRY), HG_CREDIT_HARD_LIMIT); // not the oldest
    assert_int_equal(decide(0, 45, HG_CREDIT_RETRY | HG_CREDIT_OLDEST), HG_CREDIT_BY_POOL);
    assert_int_equal(rig.charge.pool_units, 35);
    next_slot();
    assert_int_equal(used(0), 5);
    next_slot();
    // Larger than reservation and pool together: wants some of the pool to be left.
    assert_int_equal(decide(1, 40, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 60, 0), HG_CREDIT_NO_POOL);
    next_slot();
    assert_int_equal(decide(1, 39, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 60, 0), HG_CREDIT_BY_POOL);
}

static void test_reservations_beyond_the_capacity_are_honoured(void **state)
{
    (void)state;
    begin(100, 1000);
    add_bucket(80, UNLIMITED);
    add_bucket(70, UNLIMITED);
    add_bucket(0, UNLIMITED);
    tick_at(5000000);
    assert_true(rig.tick.overcommitted);
    assert_int_equal(rig.tick.reserved_sum, 150);
    assert_int_equal(rig.tick.pool, 0);
    assert_int_equal(decide(0, 80, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(decide(1, 70, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_NO_POOL);
    assert_int_equal(decide(2, 1, 0), HG_CREDIT_NO_POOL);
    hg_credit_bucket_set(&rig.bucket[1], 20, UNLIMITED, false);
    next_slot();
    assert_false(rig.tick.overcommitted);
    assert_int_equal(rig.tick.pool, 0);
}

static void test_undo_gives_back_where_it_came_from(void **state)
{
    struct hg_charge first;
    (void)state;
    begin(20, 1000);
    add_bucket(10, UNLIMITED);
    tick_at(5000000);
    assert_int_equal(decide(0, 8, 0), HG_CREDIT_BY_RESERVATION);
    first = rig.charge;
    assert_int_equal(decide(0, 6, 0), HG_CREDIT_BY_POOL); // 2 + 4
    assert_false(hg_credit_undo(&rig.node, &rig.bucket[0], &rig.charge));
    assert_false(rig.charge.charged);
    assert_int_equal(used(0), 8);
    assert_int_equal(pool_used(), 0);
    assert_false(hg_credit_undo(&rig.node, &rig.bucket[0], &first));
    assert_false(hg_credit_undo(&rig.node, &rig.bucket[0], &first)); // once is once
    assert_int_equal(used(0), 0);
    assert_int_equal(decide(0, 5, 0), HG_CREDIT_BY_RESERVATION);
    first = rig.charge;
    next_slot();
    assert_int_equal(decide(0, 7, 0), HG_CREDIT_BY_RESERVATION);
    assert_false(hg_credit_undo(&rig.node, &rig.bucket[0], &first)); // too late: dropped
    assert_int_equal(used(0), 7);
}

static void test_settle(void **state)
{
    struct hg_charge read;
    (void)state;
    begin(20, 1000);
    add_bucket(10, UNLIMITED);
    tick_at(5000000);
    decide(0, 8, 0);
    assert_int_equal(decide(0, 6, 0), HG_CREDIT_BY_POOL);
    read = rig.charge;
    hg_credit_settle(&rig.node, &rig.bucket[0], &read, 3); // the pool's part goes back first
    assert_int_equal(used(0), 11);
    assert_int_equal(pool_used(), 1);
    hg_credit_settle(&rig.node, &rig.bucket[0], &read, 9); // as it goes: 6 more
    assert_int_equal(used(0), 17);
    assert_int_equal(pool_used(), 7);
    hg_credit_settle(&rig.node, &rig.bucket[0], &read, 9);
    assert_int_equal(used(0), 17);
    next_slot();
    hg_credit_settle(&rig.node, &rig.bucket[0], &read, 12); // late excess: the running slot
    assert_int_equal(used(0), 3);
    hg_credit_settle(&rig.node, &rig.bucket[0], &read, 1); // late refund: dropped
    assert_int_equal(used(0), 3);
    decide(0, 1, 0);
    hg_credit_settle(&rig.node, &rig.bucket[0], &rig.charge, 5000); // untested: a debt
    assert_int_equal(used(0), 5003);
    assert_int_equal(pool_used(), 4993);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_NO_POOL);
    decide(0, 0, 0);
    hg_credit_settle(&rig.node, &rig.bucket[0], &rig.charge, UINT64_MAX); // saturates
    assert_int_equal(rig.charge.units, UINT32_MAX);
}

static void test_a_refund_tells_that_others_wait(void **state)
{
    struct hg_held held = {.count = 1, .units = 1, .head_units = 1, .head_since_us = 1};
    struct hg_charge first;
    (void)state;
    begin(UNLIMITED, 1000);
    add_bucket(0, 10);
    tick_at(5000000);
    decide(0, 10, 0);
    first = rig.charge;
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
    assert_true(hg_held_publish(&rig.node, &rig.bucket[0], 0, &held, &rig.charge).again);
    assert_true(hg_credit_settle(&rig.node, &rig.bucket[0], &first, 9));
    assert_int_equal(hg_held_holders(&rig.node, &rig.bucket[0]), 1);
    assert_false(hg_credit_settle(&rig.node, &rig.bucket[0], &first, 10)); // no refund
    next_slot();
    assert_false(hg_credit_undo(&rig.node, &rig.bucket[0], &first)); // too late
}

static void test_free_requests_pass_whatever_is_used(void **state)
{
    (void)state;
    begin(10, 1000);
    add_bucket(0, 10);
    tick_at(5000000);
    decide(0, 10, 0);
    assert_int_equal(decide(0, 0, 0), HG_CREDIT_BY_RESERVATION);
}

static void test_observe_decides_charges_and_lets_pass(void **state)
{
    (void)state;
    begin(UNLIMITED, 1000);
    add_bucket(0, 10);
    hg_credit_bucket_set(&rig.bucket[0], 0, 10, true);
    tick_at(5000000);
    assert_int_equal(decide(0, 10, HG_CREDIT_OBSERVE), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 7, HG_CREDIT_OBSERVE), HG_CREDIT_HARD_LIMIT);
    assert_int_equal(rig.charge.units, 7);
    assert_int_equal(used(0), 17);
    hg_credit_undo(&rig.node, &rig.bucket[0], &rig.charge);
    assert_int_equal(used(0), 10);
    decide(0, 5000, HG_CREDIT_OBSERVE);
    next_slot(); // would never have been admitted: no debt, so that enforcing can begin at once
    assert_int_equal(used(0), 0);
    hg_credit_bucket_set(&rig.bucket[0], 0, 10, false);
    next_slot();
    assert_int_equal(decide(0, 10, 0), HG_CREDIT_BY_POOL);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_HARD_LIMIT);
}

/* A charge that was read into the old slot does not land in the new one. */
static void test_late_units_of_an_old_slot_are_not_given_back(void **state)
{
    struct hg_charge old;
    (void)state;
    begin(1000, 1000);
    add_bucket(0, 100);
    tick_at(5000000);
    decide(0, 60, 0);
    old = rig.charge;
    next_slot();
    decide(0, 70, 0);
    assert_false(hg_credit_undo(&rig.node, &rig.bucket[0], &old));
    assert_int_equal(used(0), 70);
    assert_int_equal(pool_used(), 70);
}

/* MB-53061 and the like: capacity 0 is legal, then only reservations count. */
static void test_capacity_0(void **state)
{
    (void)state;
    begin(0, 1000);
    add_bucket(5, UNLIMITED);
    add_bucket(0, UNLIMITED);
    tick_at(5000000);
    assert_int_equal(decide(0, 5, 0), HG_CREDIT_BY_RESERVATION);
    assert_int_equal(decide(0, 1, 0), HG_CREDIT_NO_POOL);
    assert_int_equal(decide(1, 1, 0), HG_CREDIT_NO_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_the_sources),
        cmocka_unit_test(test_a_request_across_the_reservation_is_split),
        cmocka_unit_test(test_exactly_the_limit_passes_and_limit_0_blocks),
        cmocka_unit_test(test_unlimited_and_unthrottled_are_charged),
        cmocka_unit_test(test_debt_of_one_huge_operation),
        cmocka_unit_test(test_next_us_knows_of_the_debt),
        cmocka_unit_test(test_a_large_request_waits_for_an_empty_gauge),
        cmocka_unit_test(test_reservations_beyond_the_capacity_are_honoured),
        cmocka_unit_test(test_undo_gives_back_where_it_came_from),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_a_refund_tells_that_others_wait),
        cmocka_unit_test(test_free_requests_pass_whatever_is_used),
        cmocka_unit_test(test_observe_decides_charges_and_lets_pass),
        cmocka_unit_test(test_late_units_of_an_old_slot_are_not_given_back),
        cmocka_unit_test(test_capacity_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
