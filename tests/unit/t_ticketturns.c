// t_ticketturns - which tenant of those that wait in a ticket line has the next turn
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ticketlineset.h"

static void test_oldest_first_within_a_tenant(void **state)
{
    (void)state;
    setup();
    assert_null(hg_ticketline_pop(&line, T0));
    for (uint32_t i = 0; i < 5; i++)
        push(0, T0 + i);
    for (uint32_t i = 0; i < 5; i++)
        assert_pops(T0 + 10, &waiters[i]);
    assert_null(hg_ticketline_pop(&line, T0 + 10));
    assert_int_equal(line.count, 0);
}

static void test_tenants_in_turn(void **state)
{
    (void)state;
    setup();
    for (uint32_t t = 0; t < 3; t++) // two turns of each
        for (uint32_t i = 0; i < 2 * HG_TICKETLINE_QUANTUM; i++)
            push(t, T0);
    for (uint32_t i = 0; i < pushed; i++) {
        uint32_t turn = i / HG_TICKETLINE_QUANTUM, in_turn = i % HG_TICKETLINE_QUANTUM;
        uint32_t of_tenant = turn / 3 * HG_TICKETLINE_QUANTUM + in_turn;
        assert_pops(T0, &waiters[turn % 3 * 2 * HG_TICKETLINE_QUANTUM + of_tenant]);
    }
}

/* A tenant with one request waits for one turn of the one that floods, not for its queue. */
static void test_a_flood_delays_others_by_one_turn(void **state)
{
    (void)state;
    setup();
    for (uint32_t i = 0; i < 500; i++)
        push(0, T0);
    assert_pops(T0, &waiters[0]);
    struct hg_ticketline_waiter *innocent = push(1, T0);
    for (uint32_t i = 1; i < HG_TICKETLINE_QUANTUM; i++)
        assert_pops(T0, &waiters[i]);
    assert_pops(T0, innocent);
}

/* One that begins to wait is served before those that have been round, who go on from there. */
static void test_new_tenants_first(void **state)
{
    (void)state;
    setup();
    for (uint32_t i = 0; i < 6; i++)
        push(i % 2, T0);
    assert_pops(T0, &waiters[0]);
    assert_pops(T0, &waiters[1]);
    assert_pops(T0, &waiters[2]); // of the round
    push(2, T0);
    push(3, T0);
    push(2, T0);
    assert_pops(T0, &waiters[6]);
    assert_pops(T0, &waiters[7]);
    assert_pops(T0, &waiters[3]); // the round goes on: the first tenant has had its turn
    assert_pops(T0, &waiters[8]);
    assert_pops(T0, &waiters[4]);
    assert_pops(T0, &waiters[5]);
}

/* Two take turns at having no waiter and coming back, so one could always be new. */
static void test_emptying_and_coming_back_starves_nobody(void **state)
{
    uint32_t served[3] = {0};
    (void)state;
    setup();
    for (uint32_t i = 0; i < 100; i++)
        push(0, T0);
    assert_pops(T0, &waiters[0]);
    for (uint32_t i = 0; i < 150; i++) {
        for (uint32_t t = 1; t < 3; t++)
            if (tenants[t].count == 0)
                push(t, T0);
        struct hg_ticketline_waiter *waiter = hg_ticketline_pop(&line, T0);
        served[waiter < &waiters[100] ? 0 : tenants[1].count == 0 ? 1 : 2]++;
    }
    for (uint32_t t = 0; t < 3; t++)
        assert_in_range(served[t], 48, 52);
}

/* Who gave up before its turn has had nothing, and is new again. */
static void test_one_that_was_not_served_is_new_again(void **state)
{
    (void)state;
    setup();
    push(0, T0);
    push(0, T0);
    push(0, T0);
    assert_pops(T0, &waiters[0]);
    hg_ticketline_remove(&line, push(1, T0), T0);
    struct hg_ticketline_waiter *again = push(1, T0);
    assert_pops(T0, again);
    push(1, T0); // this time it had its turn
    assert_pops(T0, &waiters[1]);
    assert_pops(T0, &waiters[pushed - 1]);
    assert_pops(T0, &waiters[2]);
}

/* What one new turn does not pay for is paid in the round, as that of others. */
static void test_a_new_tenant_has_no_more_than_its_quantum(void **state)
{
    (void)state;
    setup();
    for (uint32_t i = 0; i < 10; i++)
        push(0, T0);
    assert_pops(T0, &waiters[0]);
    push_as(1, T0, T0, UINT64_MAX, 4 * HG_TICKETLINE_QUANTUM);
    for (uint32_t i = 1; i <= 3; i++)
        assert_pops(T0, &waiters[i]);
    assert_pops(T0, &waiters[10]);
    assert_pops(T0, &waiters[4]);
}

/* A place in the round of another line, or of this one before it was empty, means nothing. */
static void test_an_empty_line_ends_the_round(void **state)
{
    static struct hg_ticketline other;
    (void)state;
    for (uint32_t elsewhere = 0; elsewhere < 2; elsewhere++) {
        setup();
        hg_ticketline_init(&other);
        for (uint32_t i = 0; i < 40; i++)
            push(i % 2, T0);
        while (line.count > 0)
            (void)hg_ticketline_pop(&line, T0);
        struct hg_ticketline *now = elsewhere ? &other : &line;
        struct hg_ticketline_waiter *w = &waiters[pushed];
        for (uint32_t i = 0; i < 4; i++) {
            w[i] = (struct hg_ticketline_waiter){.deadline_us = UINT64_MAX};
            if (i < 2) // one that stays
                hg_ticketline_push(now, &tenants[2], &w[i], T0);
        }
        assert_ptr_equal(hg_ticketline_pop(now, T0), &w[0]);
        hg_ticketline_push(now, &tenants[0], &w[2], T0);
        hg_ticketline_push(now, &tenants[1], &w[3], T0);
        assert_ptr_equal(hg_ticketline_pop(now, T0), &w[2]);
        assert_ptr_equal(hg_ticketline_pop(now, T0), &w[3]);
        assert_ptr_equal(hg_ticketline_pop(now, T0), &w[1]);
    }
}

static void test_shares_are_of_units_not_of_requests(void **state)
{
    static const uint32_t costs[3] = {1, 9, 50};
    uint64_t units[3] = {0};
    (void)state;
    setup();
    for (uint32_t i = 0; i < 450; i++)
        push_as(0, T0, T0, UINT64_MAX, costs[0]);
    for (uint32_t i = 0; i < 50; i++)
        push_as(1, T0, T0, UINT64_MAX, costs[1]);
    for (uint32_t i = 0; i < 9; i++)
        push_as(2, T0, T0, UINT64_MAX, costs[2]);
    while (tenants[0].count > 0 && tenants[1].count > 0 && tenants[2].count > 0) {
        struct hg_ticketline_waiter *waiter = hg_ticketline_pop(&line, T0);
        units[waiter < &waiters[450] ? 0 : waiter < &waiters[500] ? 1 : 2] += waiter->cost;
        for (uint32_t a = 0; a < 3; a++)
            for (uint32_t b = 0; b < 3; b++)
                assert_true(units[a] <= units[b] + 50 + 2 * HG_TICKETLINE_QUANTUM);
    }
    assert_true(units[0] > 350);
}

static void test_a_deficit_is_forgotten_with_the_last_waiter(void **state)
{
    (void)state;
    setup();
    push_as(0, T0, T0, UINT64_MAX, 1);
    assert_pops(T0, &waiters[0]);
    assert_int_equal(tenants[0].deficit, 0);
    push_as(0, T0, T0, UINT64_MAX, HG_TICKETLINE_QUANTUM);
    push_as(1, T0, T0, UINT64_MAX, 1);
    push_as(0, T0, T0, UINT64_MAX, 1);
    assert_pops(T0, &waiters[1]);
    assert_pops(T0, &waiters[2]); // nothing was left over for a second one
    assert_pops(T0, &waiters[3]);
}

static void test_huge_costs_are_no_long_loop(void **state)
{
    (void)state;
    setup();
    push_as(0, T0, T0, UINT64_MAX, UINT32_MAX);
    push_as(1, T0, T0, UINT64_MAX, UINT32_MAX - 2 * HG_TICKETLINE_QUANTUM);
    push_as(2, T0, T0, UINT64_MAX, UINT32_MAX);
    push_as(3, T0, T0, UINT64_MAX, 0); // counts as 1
    assert_pops(T0, &waiters[3]);
    assert_pops(T0, &waiters[1]);
    assert_pops(T0, &waiters[0]);
    assert_pops(T0, &waiters[2]);
}

static void test_removed_ones_are_not_served(void **state)
{
    (void)state;
    setup();
    for (uint32_t i = 0; i < 4; i++)
        push(i % 2, T0);
    hg_ticketline_remove(&line, &waiters[0], T0);
    hg_ticketline_remove(&line, &waiters[3], T0);
    assert_null(waiters[0].tenant);
    assert_int_equal(line.count, 2);
    assert_pops(T0, &waiters[2]);
    hg_ticketline_remove(&line, &waiters[1], T0);
    assert_null(hg_ticketline_pop(&line, T0));
    assert_int_equal(tenants[1].count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest_first_within_a_tenant),
        cmocka_unit_test(test_tenants_in_turn),
        cmocka_unit_test(test_a_flood_delays_others_by_one_turn),
        cmocka_unit_test(test_new_tenants_first),
        cmocka_unit_test(test_emptying_and_coming_back_starves_nobody),
        cmocka_unit_test(test_one_that_was_not_served_is_new_again),
        cmocka_unit_test(test_a_new_tenant_has_no_more_than_its_quantum),
        cmocka_unit_test(test_an_empty_line_ends_the_round),
        cmocka_unit_test(test_shares_are_of_units_not_of_requests),
        cmocka_unit_test(test_a_deficit_is_forgotten_with_the_last_waiter),
        cmocka_unit_test(test_huge_costs_are_no_long_loop),
        cmocka_unit_test(test_removed_ones_are_not_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
