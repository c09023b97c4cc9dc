// t_ticketwindow - how many tickets a tenant may have, and who passes those that it holds back
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/prng.h"
#include "ticketlineset.h"

/* Windows of 8 before `size` tickets; two tenants were active within the last second. */
static void open_windows(uint32_t size)
{
    setup(size);
    conf.queue_timeout_us = 100 * S;
    pass(10 * S);
    line.windows.least = 8;
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t t = 2; t < TENANTS; t++)
            arrive(t, 100);
        pass(1 * S);
        hg_ticketline_tick(&line, now_us);
    }
    arrive(2, 100);
    arrive(3, 100);
    pass(1 * MS);
}

/* The tenant was here lately, its requests take so long, and it has earned so many at a time. */
static void earn(uint32_t tenant, uint32_t limit, uint64_t service_us)
{
    arrive(tenant, service_us);
    pass(service_us);
    tenants[tenant].limit = limit;
}

static void arrive_many(uint32_t tenant, uint32_t n, uint64_t service_us)
{
    for (uint32_t i = 0; i < n; i++)
        arrive(tenant, service_us);
}

static void assert_tenant(uint32_t tenant, uint32_t tickets, uint32_t waiters, bool is_held)
{
    assert_int_equal(tenants[tenant].out, tickets);
    assert_int_equal(tenants[tenant].count, waiters);
    assert_int_equal(tenants[tenant].is_held, is_held);
}

static void test_a_newcomer_has_eight(void **state)
{
    (void)state;
    open_windows(1000);
    arrive_many(0, 100, 200 * MS);
    assert_tenant(0, 8, 92, true);
    assert_int_equal(line.count, 0);
    assert_int_equal(line.held, 92);
    struct job *other = arrive(1, 2 * MS); // passes them
    assert_int_equal(other->state, JOB_RUNS);
}

/* With each answer one more, so it doubles with each service: 8, 16, 32, all. */
static void test_concurrency_is_earned_by_answers(void **state)
{
    (void)state;
    open_windows(1000);
    arrive_many(0, 100, 200 * MS);
    pass(200 * MS);
    assert_tenant(0, 16, 76, true);
    pass(200 * MS);
    assert_tenant(0, 32, 44, true);
    pass(200 * MS);
    assert_tenant(0, 44, 0, false);
    assert_int_equal(line.held, 0);
    arrive_many(0, 30, 200 * MS);
    assert_tenant(0, 54, 20, true); // it grew while some were held back
}

/* But those of short requests: these make no queue in the store. */
static void test_no_window_grows_while_short_requests_wait(void **state)
{
    (void)state;
    open_windows(1000);
    line.windows.over_us = 10 * MS;
    line.windows.part = 8;
    tenants[1].is_short = true;
    arrive_many(0, 100, 200 * MS);
    arrive_many(1, 100, 200 * MS);
    pass(200 * MS);
    assert_tenant(0, 8, 84, true);
    assert_tenant(1, 8, 88, true);
    line.windows.over_us = 0;
    pass(200 * MS);
    assert_tenant(0, 16, 68, true);
}

/* By what of its requests waits in the store, and one; to half at once, to its part at least. */
static void test_a_window_is_cut_by_what_waits_in_the_store(void **state)
{
    static const struct {
        uint32_t over_us, part, limit;
    } rows[] = {{10 * MS, 0, 37}, {50 * MS, 0, 29},   {90 * MS, 0, 21},  {150 * MS, 0, 20},
                {9 * S, 0, 20},   {150 * MS, 33, 33}, {150 * MS, 99, 64}};
    (void)state;
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        open_windows(1000);
        earn(0, 64, 200 * MS);
        arrive_many(0, 41, 200 * MS);
        pass(200 * MS - 1);
        line.windows.over_us = rows[i].over_us;
        line.windows.part = rows[i].part;
        finish(running[0], true);
        assert_int_equal(tenants[0].out, 40);
        assert_int_equal(tenants[0].limit, rows[i].limit);
    }
}

/* Down to its part of what the store does, and to one at least. */
static void test_a_window_is_never_closed(void **state)
{
    (void)state;
    open_windows(1000);
    line.windows.over_us = 9 * S;
    arrive_many(0, 300, 200 * MS);
    for (uint32_t i = 0; i < 20; i++)
        pass(200 * MS);
    assert_int_equal(tenants[0].limit, 1);
    assert_int_equal(tenants[0].out, 1);
}

/* No more are out than the store has work for, and short requests wait as long as before three
   services later: that has another reason. The window is what it was, and the caller is told. */
static void test_cuts_that_do_not_help_are_taken_back(void **state)
{
    static const struct {
        bool no_queue;
        uint32_t then_over_us;
        bool vain;
    } rows[] = {{true, 20 * MS, true}, {false, 20 * MS, false}, {true, 17 * MS, false}};
    (void)state;
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        open_windows(1000);
        earn(0, 64, 100 * MS);
        line.windows.over_us = 20 * MS;
        line.windows.no_queue = rows[i].no_queue;
        arrive_many(0, 600, 100 * MS);
        pass(100 * MS);
        assert_in_range(tenants[0].limit, 40, 63);
        line.windows.over_us = rows[i].then_over_us;
        pass(500 * MS);
        assert_false(line.windows.vain);
        pass(200 * MS);
        assert_int_equal(line.windows.vain, rows[i].vain);
        assert_int_equal(tenants[0].limit == 64, rows[i].vain);
    }
}

/* Another cut waits until the first has shown: a service later, and 100 ms. */
static void test_cuts_are_apart(void **state)
{
    (void)state;
    open_windows(1000);
    earn(1, 100, 10 * MS);
    earn(0, 100, 200 * MS);
    line.windows.over_us = 500 * MS;
    arrive_many(0, 300, 200 * MS);
    pass(200 * MS); // all that were let in at first have ended; the first one cut
    assert_int_equal(tenants[0].limit, 49);
    pass(199 * MS);
    assert_int_equal(tenants[0].limit, 49);
    pass(2 * MS);
    assert_int_equal(tenants[0].limit, 24);
    arrive_many(1, 1500, 10 * MS);
    pass(10 * MS);
    assert_int_equal(tenants[1].limit, 49);
    pass(89 * MS);
    assert_int_equal(tenants[1].limit, 49);
    pass(12 * MS);
    assert_int_equal(tenants[1].limit, 24);
}

/* Beyond a size that failed it grows by one a second, for ten seconds. */
static void test_a_window_that_was_cut_grows_slowly(void **state)
{
    (void)state;
    open_windows(1000);
    earn(0, 40, 100 * MS);
    arrive_many(0, 41, 100 * MS);
    line.windows.over_us = 50 * MS;
    pass(100 * MS);
    line.windows.over_us = 0;
    uint32_t cut = tenants[0].limit;
    assert_in_range(cut, 15, 25);
    for (uint32_t second = 0; second <= 10; second++) {
        for (uint32_t i = 0; i < 10; i++) {
            while (tenants[0].out + tenants[0].count < 100)
                arrive(0, 100 * MS);
            arrive(1, 1 * MS);
            pass(100 * MS);
        }
        if (second < 9)
            assert_in_range(tenants[0].limit, cut + second, cut + second + 1);
    }
    assert_true(tenants[0].limit > cut + 30);
    assert_int_equal(tenants[0].failed, UINT32_MAX);
}

/* What gives its ticket back without an answer tells nothing of the store. */
static void test_no_window_grows_without_answers(void **state)
{
    (void)state;
    open_windows(1000);
    arrive_many(0, 20, 200 * MS);
    for (uint32_t i = 0; i < 8; i++)
        finish(running[0], false);
    serve();
    assert_tenant(0, 8, 4, true);
}

/* Eight answers to short requests, in the usual time, prove that the store has room: windows grow
   by half, however long their own requests take. */
static void test_short_requests_prove_that_there_is_room(void **state)
{
    static const uint32_t tickets[] = {12, 18, 27, 41, 62, 93, 100, 100};
    (void)state;
    open_windows(1000);
    arrive_many(0, 100, 10 * S);
    for (uint32_t i = 0; i < HG_COUNT_OF(tickets); i++) {
        pass(1 * MS);
        for (uint32_t n = 0; n < 7; n++)
            hg_ticketline_prove(&line, true, now_us, now_us);
        serve();
        assert_int_equal(tenants[0].out, i > 0 ? tickets[i - 1] : 8);
        hg_ticketline_prove(&line, true, now_us, now_us);
        serve();
        assert_int_equal(tenants[0].out, tickets[i]);
    }
    assert_int_equal(line.held, 0);
}

/* Not what was sent before the last growth, nor one that was late, nor beyond a size that failed.
 */
static void test_what_proves_nothing(void **state)
{
    (void)state;
    open_windows(1000);
    arrive_many(0, 100, 10 * S);
    pass(1 * MS);
    for (uint32_t n = 0; n < 50; n++)
        hg_ticketline_prove(&line, n % 8 != 7, now_us, now_us);
    assert_int_equal(tenants[0].limit, 8);
    for (uint32_t n = 0; n < 8; n++)
        hg_ticketline_prove(&line, true, now_us, now_us);
    assert_int_equal(tenants[0].limit, 12);
    for (uint32_t n = 0; n < 50; n++)
        hg_ticketline_prove(&line, true, now_us - 1, now_us + n);
    assert_int_equal(tenants[0].limit, 12);
    tenants[0].failed = 13;
    tenants[0].cut_us = now_us;
    for (uint32_t n = 0; n < 50; n++) {
        pass(1);
        hg_ticketline_prove(&line, true, now_us, now_us);
    }
    assert_int_equal(tenants[0].limit, 13);
}

/* That counts until half a second later, or until somebody is known. */
static void test_whose_requests_are_not_known(void **state)
{
    (void)state;
    open_windows(1000);
    assert_false(hg_ticketline_holds_unknown(&line, now_us));
    arrive_many(0, 10, 100 * MS);
    assert_true(hg_ticketline_holds_unknown(&line, now_us));
    tenants[0].is_short = true;
    assert_true(hg_ticketline_holds_unknown(&line, now_us + 500 * MS - 1));
    assert_false(hg_ticketline_holds_unknown(&line, now_us + 500 * MS));
    tenants[0].is_short = false;
    assert_true(hg_ticketline_holds_unknown(&line, now_us));
    tenants[0].is_short = true;
    hg_ticketline_forget_unknown(&line);
    assert_false(hg_ticketline_holds_unknown(&line, now_us));
}

/* A window that nobody fills does not grow. */
static void test_a_window_grows_only_while_some_are_held_back(void **state)
{
    (void)state;
    open_windows(1000);
    for (uint32_t i = 0; i < 50; i++) {
        arrive_many(0, 8, 10 * MS);
        pass(10 * MS);
    }
    assert_int_equal(tenants[0].limit, 8);
}

static void test_a_window_is_halved_for_each_second_without_a_ticket(void **state)
{
    static const struct {
        uint64_t idle_us;
        uint32_t limit;
    } rows[] = {{999 * MS, 64}, {1 * S, 32}, {2 * S, 16}, {3 * S, 8}, {9 * S, 8}, {99 * S, 8}};
    (void)state;
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        open_windows(1000);
        arrive(0, 1 * MS);
        pass(1 * MS);
        tenants[0].limit = 64;
        pass(rows[i].idle_us);
        arrive(0, 1 * MS);
        assert_int_equal(tenants[0].limit, rows[i].limit);
    }
}

/* Tenant 0, for three seconds. */
static void be_alone(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        arrive(0, 1 * MS);
        pass(1 * S);
        hg_ticketline_tick(&line, now_us);
    }
}

/* Beside nobody else a tenant needs no window. What it has it keeps when another comes. */
static void test_a_tenant_that_is_alone_is_not_bound(void **state)
{
    (void)state;
    open_windows(1000);
    be_alone();
    arrive_many(0, 100, 200 * MS);
    assert_tenant(0, 100, 0, false);
    arrive(1, 2 * MS);
    arrive(0, 200 * MS);
    assert_tenant(0, 100, 1, true);
}

/* Nor does it count as alone if others are active on other workers. */
static void test_a_tenant_that_is_alone_on_its_worker(void **state)
{
    (void)state;
    open_windows(1000);
    be_alone();
    line.windows.has_others = true;
    arrive_many(0, 100, 200 * MS);
    assert_tenant(0, 8, 92, true);
}

/* Who is active, in this second or the one before. */
static void test_the_only_tenant_is_told(void **state)
{
    static const struct {
        uint32_t tenant; /* that asks; TENANTS: none */
        uint64_t sole;
    } rows[] = {{TENANTS, 0}, {0, 100},       {0, 100},    {1, HG_TICKETLINE_SEVERAL},
                {1, 101},     {TENANTS, 101}, {TENANTS, 0}};
    (void)state;
    setup(1000);
    tenants[0].id = 100;
    tenants[1].id = 101;
    pass(10 * S);
    hg_ticketline_tick(&line, now_us);
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        if (rows[i].tenant < TENANTS)
            arrive(rows[i].tenant, 1 * MS);
        assert_int_equal(hg_ticketline_sole(&line), rows[i].sole);
        pass(1 * S);
        hg_ticketline_tick(&line, now_us);
    }
}

/* Those that come at the same time, and that nothing is known of, share them; two each at least. */
static void test_newcomers_share(void **state)
{
    static const uint32_t tickets[] = {8, 4, 2};
    (void)state;
    open_windows(1000);
    for (uint32_t t = 0; t < 2; t++) {
        pass(1 * S);
        hg_ticketline_tick(&line, now_us);
    }
    for (uint32_t t = 0; t < HG_COUNT_OF(tickets); t++)
        hg_ticketline_tenant_init(&tenants[t]);
    arrive(3, 1 * MS);
    for (uint32_t t = 0; t < HG_COUNT_OF(tickets); t++) {
        arrive_many(t, 20, 200 * MS);
        assert_int_equal(tenants[t].out, tickets[t]);
    }
}

/* Nobody knows who else will come in the first second. */
static void test_a_new_line_binds_at_once(void **state)
{
    (void)state;
    setup(1000);
    pass(10 * S);
    line.windows.least = 8;
    arrive_many(0, 100, 200 * MS);
    assert_tenant(0, 8, 92, true);
}

static void test_no_windows(void **state)
{
    (void)state;
    open_windows(1000);
    line.windows.least = 0;
    arrive_many(0, 100, 200 * MS);
    assert_tenant(0, 100, 0, false);
}

/* They are switched off while some are held back: with the next answer all go. */
static void test_windows_are_switched_off(void **state)
{
    (void)state;
    open_windows(1000);
    arrive_many(0, 100, 200 * MS);
    line.windows.least = 0;
    pass(200 * MS);
    assert_tenant(0, 92, 0, false);
    assert_int_equal(line.held, 0);
}

/* Those held back are refused when their time is over, and may leave. */
static void test_who_is_held_back_may_be_late_or_leave(void **state)
{
    (void)state;
    open_windows(1000);
    conf.queue_timeout_us = 1 * S;
    arrive_many(0, 12, 3 * S);
    struct job *left = &jobs[job_count - 1];
    hg_ticketline_remove(&line, &left->waiter, now_us);
    left->state = JOB_DONE;
    assert_tenant(0, 8, 3, true);
    pass(1 * S);
    assert_tenant(0, 8, 0, false);
    assert_int_equal(count_in(0, JOB_LATE), 3);
    assert_int_equal(line.held, 0);
}

/* Where tickets are short, too, those that take turns are the ones within their windows. */
static void test_held_back_behind_a_full_store(void **state)
{
    (void)state;
    open_windows(10);
    earn(0, 8, 100 * MS);
    earn(1, 8, 100 * MS);
    line.windows.over_us = 10 * MS;
    line.windows.part = 8;
    arrive_many(0, 12, 100 * MS);
    assert_tenant(0, 8, 4, true);
    arrive_many(1, 6, 100 * MS);
    assert_tenant(1, 2, 4, false);
    assert_int_equal(line.count, 4);
    pass(100 * MS); // ten are free: four each, as the ticket time is equal
    assert_int_equal(tenants[0].out + tenants[1].out, 8);
    assert_tenant(0, 4, 0, false);
    assert_tenant(1, 4, 0, false);
}

/* Whatever happens, the line's sums are those of its tenants, a tenant with room is not held back,
   and nobody waits for a turn while a ticket is free. */
static void test_any_sequence(void **state)
{
    struct hg_prng dice = {7};
    (void)state;
    open_windows(40);
    for (uint32_t i = 0; i < 15000; i++) {
        uint32_t t = (uint32_t)hg_prng_below(&dice, TENANTS),
                 what = (uint32_t)hg_prng_below(&dice, 20);
        line.windows.over_us = (uint32_t)hg_prng_below(&dice, 3) * 20 * MS;
        line.windows.part = (uint32_t)hg_prng_below(&dice, 10);
        line.windows.no_queue = hg_prng_below(&dice, 2) == 0;
        tenants[t].is_short = hg_prng_below(&dice, 2) == 0;
        line.windows.least =
            what == 19 ? (uint32_t)hg_prng_below(&dice, 3) * 4 : line.windows.least;
        if (what < 8)
            arrive(t, 1 + hg_prng_below(&dice, 30 * MS));
        else if (what < 12 && out > 0)
            finish(running[hg_prng_below(&dice, out)], what < 11);
        else if (what == 12 && tenants[t].count > 0)
            hg_ticketline_remove(
                &line, HG_CONTAINER_OF(tenants[t].waiters.prev, struct hg_ticketline_waiter, node),
                now_us);
        else if (what == 14)
            hg_ticketline_prove(&line, true, now_us, now_us);
        else if (what == 13)
            pass(hg_prng_below(&dice, 100) == 0 ? 2 * S : 3 * MS);
        serve();
        uint32_t count = 0, held = 0, holding = 0, starved = 0, tickets = 0;
        for (t = 0; t < TENANTS; t++) {
            const struct hg_ticketline_tenant *tenant = &tenants[t];
            *(tenant->is_held ? &held : &count) += tenant->count;
            assert_true(!tenant->is_held || (tenant->out >= tenant->limit && tenant->count > 0));
            holding += tenant->out > 0;
            tickets += tenant->out;
            starved += tenant->out == 0 && tenant->count > 0;
        }
        assert_int_equal(line.count, count);
        assert_int_equal(line.held, held);
        assert_int_equal(line.out, tickets);
        assert_int_equal(line.holding, holding);
        assert_int_equal(line.starved, starved);
        assert_true(count == 0 || out >= conf.size);
        hg_ticketline_tick(&line, now_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_newcomer_has_eight),
        cmocka_unit_test(test_concurrency_is_earned_by_answers),
        cmocka_unit_test(test_no_window_grows_while_short_requests_wait),
        cmocka_unit_test(test_a_window_is_cut_by_what_waits_in_the_store),
        cmocka_unit_test(test_a_window_is_never_closed),
        cmocka_unit_test(test_cuts_that_do_not_help_are_taken_back),
        cmocka_unit_test(test_cuts_are_apart),
        cmocka_unit_test(test_a_window_that_was_cut_grows_slowly),
        cmocka_unit_test(test_no_window_grows_without_answers),
        cmocka_unit_test(test_short_requests_prove_that_there_is_room),
        cmocka_unit_test(test_what_proves_nothing),
        cmocka_unit_test(test_whose_requests_are_not_known),
        cmocka_unit_test(test_a_window_grows_only_while_some_are_held_back),
        cmocka_unit_test(test_a_window_is_halved_for_each_second_without_a_ticket),
        cmocka_unit_test(test_a_tenant_that_is_alone_is_not_bound),
        cmocka_unit_test(test_a_tenant_that_is_alone_on_its_worker),
        cmocka_unit_test(test_the_only_tenant_is_told),
        cmocka_unit_test(test_newcomers_share),
        cmocka_unit_test(test_a_new_line_binds_at_once),
        cmocka_unit_test(test_no_windows),
        cmocka_unit_test(test_windows_are_switched_off),
        cmocka_unit_test(test_who_is_held_back_may_be_late_or_leave),
        cmocka_unit_test(test_held_back_behind_a_full_store),
        cmocka_unit_test(test_any_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
