// t_ticketturns - which tenant of those that wait in a ticket line has the next turn
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/prng.h"
#include "ticketlineset.h"

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* The tenant always has waiters. */
static void fill(uint32_t tenant, uint64_t service_us)
{
    while (tenants[tenant].count < conf.size + 2)
        push_until(tenant, service_us, FOREVER);
}

/* ---- one tenant ---- */

static void test_oldest_first_within_a_tenant(void **state)
{
    (void)state;
    setup(1);
    assert_null(hg_ticketline_pop(&line, &conf, T0));
    for (uint32_t i = 0; i < 5; i++)
        push(0);
    for (uint32_t i = 0; i < 5; i++)
        assert_pops(&jobs[i]);
    assert_null(hg_ticketline_pop(&line, &conf, T0));
    assert_int_equal(line.count, 0);
}

static void test_removed_ones_are_not_served(void **state)
{
    (void)state;
    setup(1);
    for (uint32_t i = 0; i < 4; i++)
        push(i % 2);
    hg_ticketline_remove(&line, &jobs[0].waiter, T0);
    hg_ticketline_remove(&line, &jobs[3].waiter, T0);
    assert_null(jobs[0].waiter.tenant);
    assert_int_equal(line.count, 2);
    hg_ticketline_remove(&line, &jobs[1].waiter, T0);
    assert_pops(&jobs[2]);
    assert_null(hg_ticketline_pop(&line, &conf, T0));
    assert_int_equal(tenants[0].count + tenants[1].count, 0);
}

/* ---- by ticket time ---- */

static void test_tenants_of_equal_cost_take_turns(void **state)
{
    uint32_t granted[3] = {0};
    (void)state;
    setup(1);
    for (uint32_t i = 0; i < 300; i++)
        push(i % 100 < 80 ? 0 : i % 2 + 1); // 240 of one, 30 of each other
    for (uint32_t i = 0; i < 90; i++) {
        serve();
        for (uint32_t t = 0; t < 3; t++)
            granted[t] += tenants[t].out;
        for (uint32_t t = 0; t < 3; t++)
            assert_true(apart(granted[t], i / 3 + 1) <= 1);
        pass(1 * MS);
    }
}

/* A tenant with one request waits for no more than the ticket, whatever the flood's line is. */
static void test_a_newcomer_is_next(void **state)
{
    (void)state;
    setup(1);
    for (uint32_t i = 0; i < 500; i++)
        push_until(0, 10 * MS, FOREVER);
    pass(105 * MS);
    struct job *newcomer = push_until(1, 10 * MS, FOREVER);
    pass(5 * MS);
    assert_int_equal(newcomer->state, JOB_RUNS);
    assert_int_equal(newcomer->granted_us, T0 + 110 * MS);
}

/* With one ticket the ticket time of two that always wait differs by at most one request, whatever
   they cost, known or not: 1:100, and one that turns dear without notice. */
static void test_occupancy_differs_by_one_longest_request(void **state)
{
    static const uint64_t longest_us = 100 * MS;
    struct hg_prng dice = {3};
    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        setup(1);
        for (uint32_t i = 0; i < 1500; i++) {
            uint64_t us = hg_prng_below(&dice, 20) == 0 ? longest_us : 1 * MS;
            fill(0, round == 0 ? longest_us : round == 1 ? us : i < 700 ? 1 * MS : longest_us);
            fill(1, round == 1 ? us / 2 + 1 : 1 * MS);
            serve();
            struct job *first = next_end();
            assert_true(apart(occupied_us[0], occupied_us[1]) <= longest_us);
            pass_until(first->end_us);
        }
        assert_true(occupied_us[0] > 300 * MS);
    }
}

/* With several tickets, the half that each tenant is due may be a request ahead. */
static void test_occupancy_with_several_tickets(void **state)
{
    static const uint64_t longest_us = 200 * MS;
    (void)state;
    for (uint32_t size = 2; size <= 16; size *= 2) {
        uint64_t worst_us = 0;
        setup(size);
        for (uint32_t i = 0; i < 1800; i++) {
            fill(0, longest_us);
            fill(1, 2 * MS);
            serve();
            pass_until(next_end()->end_us);
            if (apart(occupied_us[0], occupied_us[1]) > worst_us)
                worst_us = apart(occupied_us[0], occupied_us[1]);
        }
        print_message("%u tickets, 200 ms beside 2 ms: ticket time differs by %.2f requests\n",
                      size, (double)worst_us / (double)longest_us);
        assert_true(2 * worst_us <= size * longest_us);
        assert_true(occupied_us[1] >= (uint64_t)size * (now_us - T0) * 4 / 10);
    }
}

/* What a request costs is paid while it runs, so one that never ends is paid for as well. */
static void test_a_request_that_never_ends_is_paid_for(void **state)
{
    (void)state;
    setup(4);
    push_until(0, FOREVER, FOREVER);
    serve();
    for (uint32_t i = 0; i < 1500; i++) {
        fill(0, 10 * MS);
        fill(1, 10 * MS);
        serve();
        pass_until(next_end()->end_us);
    }
    assert_int_equal(jobs[0].state, JOB_RUNS);
    assert_true(apart(occupied_us[0], occupied_us[1]) <= 4 * 10 * MS);
    assert_true(occupied_us[1] > 3 * S);
}

/* ---- no credit, no debt ---- */

static void test_idleness_earns_no_credit(void **state)
{
    (void)state;
    setup(1);
    for (uint32_t i = 0; i < 1000; i++) {
        fill(0, 10 * MS);
        serve();
        pass(10 * MS);
    }
    uint64_t before_us = occupied_us[0];
    assert_true(before_us > 9 * S);
    for (uint32_t i = 0; i < 100; i++) {
        fill(0, 10 * MS);
        fill(1, 10 * MS);
        serve();
        pass(10 * MS);
    }
    assert_true(apart(occupied_us[0] - before_us, occupied_us[1]) <= 10 * MS);
}

/* Nor does going and coming back: one that has no waiter for a moment has no more than its due. */
static void test_emptying_and_coming_back_starves_nobody(void **state)
{
    (void)state;
    setup(1);
    for (uint32_t i = 0; i < 600; i++) {
        fill(0, 10 * MS);
        for (uint32_t t = 1; t < 3; t++)
            if (tenants[t].count == 0 && tenants[t].out == 0)
                push_until(t, 10 * MS, FOREVER);
        serve();
        pass(10 * MS);
    }
    for (uint32_t t = 0; t < 3; t++)
        assert_true(apart(occupied_us[t], 2 * S) <= 50 * MS);
}

/* Tickets that nobody else wanted are no debt, not even those of a request that hung for a minute
   while nobody waited. */
static void test_tickets_that_nobody_else_wanted_cost_nothing(void **state)
{
    (void)state;
    setup(4);
    arrive(0, 60 * S);
    for (uint32_t i = 0; i < 100; i++) {
        arrive(1, 100 * MS);
        pass(500 * MS);
    }
    for (uint32_t i = 0; i < 300; i++) { // its mean service is what it was
        arrive(0, 10 * MS);
        arrive(1, 10 * MS);
        pass(200 * MS);
    }
    assert_int_equal(line.count, 0);
    uint64_t before_us[2] = {occupied_us[0], occupied_us[1]};
    assert_true(before_us[0] >= before_us[1] + 40 * S);
    for (uint32_t i = 0; i < 400; i++) {
        fill(0, 10 * MS);
        fill(1, 10 * MS);
        serve();
        pass_until(next_end()->end_us);
        assert_true(apart(occupied_us[0] - before_us[0], occupied_us[1] - before_us[1]) <=
                    4 * 10 * MS);
    }
    assert_true(occupied_us[0] - before_us[0] > 1 * S);
}

/* A store that answers none of several tenants charges none: when it goes on, the one that had most
   tickets owes nothing. One that has all of them pays for them. */
static void test_a_stall_costs_nothing(void **state)
{
    (void)state;
    for (uint32_t of_other = 0; of_other < 2; of_other++) {
        setup(10);
        for (uint32_t i = 0; i < 10; i++)
            arrive(of_other && i == 9, 10 * MS);
        push(0);
        push(1);
        uint64_t before_us = hg_ticketline_tag_us(&line, &tenants[0], now_us);
        now_us += 2 * S;
        uint64_t tag_us = hg_ticketline_tag_us(&line, &tenants[0], now_us);
        assert_int_equal(tag_us - before_us, of_other ? 9 * 100 * MS : 10 * 2 * S);
        hg_ticketline_give(&line, &tenants[0], 2 * S, true, now_us); // it goes on
        assert_int_equal(tenants[0].used_us, of_other ? 9 * 100 * MS : 10 * 2 * S);
        tag_us = hg_ticketline_tag_us(&line, &tenants[1], now_us);
        now_us += 100 * MS;
        assert_int_equal(hg_ticketline_tag_us(&line, &tenants[1], now_us) - tag_us,
                         of_other * 100 * MS);
    }
}

/* ---- tags that move ---- */

/* A ticket given back lowers the tag of a tenant that waits: it is next at once. */
static void test_a_ticket_given_back_counts_at_once(void **state)
{
    (void)state;
    setup(5);
    for (uint32_t t = 0; t < 2; t++) // their mean services
        arrive(t, (t + 1) * 10 * MS);
    pass(50 * MS);
    for (uint32_t i = 0; i < 4; i++)
        arrive(0, FOREVER);                 // 4 x 10 ms
    struct job *other = arrive(1, FOREVER); // 20 ms
    struct job *a = push(0), *b = push(1);
    assert_int_equal(hg_ticketline_tag_us(&line, &tenants[0], now_us), 40 * MS);
    assert_int_equal(hg_ticketline_tag_us(&line, &tenants[1], now_us), 20 * MS);
    assert_pops(b);
    hg_ticketline_take(&line, &tenants[1], now_us); // 40 ms, and more as time passes
    b = push(1);
    now_us += 1 * MS; // 44 ms and 42 ms
    assert_int_equal(hg_ticketline_tag_us(&line, &tenants[0], now_us), 44 * MS);
    assert_int_equal(hg_ticketline_tag_us(&line, &tenants[1], now_us), 42 * MS);
    now_us += 2 * MS;                // 52 ms and 46 ms
    for (uint32_t i = 0; i < 2; i++) // 30 ms
        hg_ticketline_give(&line, &tenants[0], 10 * MS, true, now_us);
    assert_int_equal(hg_ticketline_tag_us(&line, &tenants[0], now_us), 32 * MS);
    assert_pops(a);
    assert_pops(b);
    (void)other;
}

/* Time alone lets another one pass: the one with more tickets out. */
static void test_time_changes_whose_turn_it_is(void **state)
{
    (void)state;
    for (uint32_t wait_ms = 4; wait_ms <= 6; wait_ms += 2) {
        setup(4);
        arrive(0, 10 * MS);
        arrive(1, 25 * MS);
        pass(50 * MS);
        arrive(0, FOREVER);
        arrive(0, FOREVER);
        arrive(1, FOREVER);
        struct job *a = push(0), *b = push(1); // 20 ms + 2 a ms, 25 ms + 1 a ms
        now_us += wait_ms * MS;
        assert_pops(wait_ms < 5 ? a : b);
    }
}

static void test_newest_first_only_of_one_that_floods(void **state)
{
    (void)state;
    for (uint32_t newest = 0; newest < 2; newest++) {
        setup(1);
        conf.flood_newest = newest;
        conf.queue_timeout_us = 3 * S;
        push_until(0, 10 * MS, now_us + 3 * S);
        for (uint32_t i = 0; i < 6; i++) {
            push(0);
            push(1);
        }
        now_us += 3 * S;
        assert_ptr_equal(hg_ticketline_expire(&line, &conf, now_us), &jobs[0].waiter);
        assert_int_equal(hg_ticketline_flood_since_us(&tenants[0], &conf, now_us), now_us);
        uint32_t flooding = 0;
        for (uint32_t i = 0; i < 6; i++) { // in turn, as nothing is taken
            struct hg_ticketline_waiter *waiter = hg_ticketline_pop(&line, &conf, now_us);
            struct job *job = (struct job *)waiter;
            hg_ticketline_take(&line, &tenants[job->tenant], now_us);
            if (job->tenant == 1)
                continue;
            assert_ptr_equal(job, &jobs[newest ? 11 - 2 * flooding : 1 + 2 * flooding]);
            flooding++;
        }
        assert_int_equal(flooding, 3);
        assert_int_equal(tenants[1].count, 3);
        assert_ptr_equal(hg_list_first(&tenants[1].waiters),
                         &jobs[8].waiter.node); // the oldest went
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest_first_within_a_tenant),
        cmocka_unit_test(test_removed_ones_are_not_served),
        cmocka_unit_test(test_tenants_of_equal_cost_take_turns),
        cmocka_unit_test(test_a_newcomer_is_next),
        cmocka_unit_test(test_occupancy_differs_by_one_longest_request),
        cmocka_unit_test(test_occupancy_with_several_tickets),
        cmocka_unit_test(test_a_request_that_never_ends_is_paid_for),
        cmocka_unit_test(test_idleness_earns_no_credit),
        cmocka_unit_test(test_emptying_and_coming_back_starves_nobody),
        cmocka_unit_test(test_tickets_that_nobody_else_wanted_cost_nothing),
        cmocka_unit_test(test_a_stall_costs_nothing),
        cmocka_unit_test(test_a_ticket_given_back_counts_at_once),
        cmocka_unit_test(test_time_changes_whose_turn_it_is),
        cmocka_unit_test(test_newest_first_only_of_one_that_floods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
