// t_ticketline - when a tenant in a ticket line is overloaded, who is served then, who gives up
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ticketlineset.h"

static uint32_t expire_all(uint64_t now_us)
{
    uint32_t n = 0;
    while (hg_ticketline_expire(&line, &conf, now_us) != NULL)
        n++;
    return n;
}

/* ---- overload ---- */

/* Sixty come, and every 10 ms one is served: after 100 ms and eleven, there is overload. */
static uint64_t overload(void)
{
    uint64_t now_us = T0;
    for (uint32_t i = 0; i < 60; i++)
        push(0, now_us);
    for (; !line.overloaded; now_us += 10 * MS) {
        assert_true(now_us <= T0 + 110 * MS);
        (void)hg_ticketline_pop(&line, now_us);
    }
    return now_us - 10 * MS;
}

static void test_newest_first_only_under_overload(void **state)
{
    (void)state;
    setup();
    for (uint32_t i = 0; i < 50; i++)
        push(0, T0 + i);
    for (uint32_t i = 0; i < 10; i++)
        assert_pops(T0 + i * 11 * MS, &waiters[i]); // the first at once
    assert_false(line.overloaded);                  // 99 ms
    assert_pops(T0 + 100 * MS, &waiters[49]);
    assert_true(line.overloaded);
    assert_pops(T0 + 101 * MS, &waiters[48]);
    assert_ptr_equal(push(0, T0 + 102 * MS), &waiters[50]);
    assert_pops(T0 + 102 * MS, &waiters[50]);
    assert_true(line.overloaded); // that one need not wait, but the oldest waits still
    assert_pops(T0 + 102 * MS, &waiters[47]);
}

/* Its newest are served first, and give up early; those of others are not, and do not. */
static void test_overload_is_of_one_tenant(void **state)
{
    struct hg_ticketline_waiter would = {.deadline_us = UINT64_MAX};
    uint64_t now_us;
    (void)state;
    setup();
    now_us = overload();
    uint32_t first = pushed;
    for (uint32_t i = 0; i < 4; i++) {
        push(1, now_us + i);
        push(0, now_us + i);
    }
    assert_true(tenants[0].overloaded && !tenants[1].overloaded);
    assert_pops(now_us + 4, &waiters[first]);     // new, so before the rest
    assert_pops(now_us + 4, &waiters[first + 2]); // the other has had its turn
    assert_pops(now_us + 4, &waiters[first + 7]);
    would.came_us = would.since_us = now_us + 4;
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[0], &conf, &would), now_us + 4 + 20 * MS);
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[1], &conf, &would), UINT64_MAX);
    assert_int_equal(expire_all(now_us + 99 * MS), 60 - 11 + 3);
    assert_int_equal(tenants[0].count, 0);
    assert_int_equal(tenants[1].count, 2);
    assert_true(line.overloaded && !tenants[1].overloaded);
    assert_pops(now_us + 99 * MS, &waiters[first + 4]); // oldest first all the time
    assert_pops(now_us + 99 * MS, &waiters[first + 6]);
}

/* Each is overloaded 100 ms after it began to wait, and only then. */
static void test_overload_begins_for_each_tenant_when_it_is_due(void **state)
{
    (void)state;
    setup();
    push(0, T0);
    for (uint32_t t = 0; t < 4; t++)
        push(t, T0 + t * 10 * MS);
    assert_pops(T0 + 60 * MS, &waiters[0]);
    for (uint32_t t = 0; t < 4; t++) {
        uint64_t due_us = T0 + (100 + t * 10) * MS;
        assert_int_equal(hg_ticketline_next_us(&line, &conf), due_us);
        assert_int_equal(expire_all(due_us - 1), 0);
        assert_false(tenants[t].overloaded);
        assert_int_equal(expire_all(due_us), 1);
        assert_true(tenants[t].overloaded);
        assert_int_equal(tenants[t].count, 0);
    }
    assert_int_equal(line.count, 0);
    hg_ticketline_tick(&line, T0 + 230 * MS - 1);
    assert_true(line.overloaded);
    hg_ticketline_tick(&line, T0 + 230 * MS);
    assert_false(line.overloaded);
}

/* ---- a stalled line ---- */

/* Nobody is served for 100 ms: all are cut, and who comes then waits for overload_wait. */
static uint64_t stall(void)
{
    for (uint32_t t = 0; t < 3; t++)
        push(t, T0 + t * 30 * MS);
    assert_int_equal(expire_all(T0 + 100 * MS - 1), 0);
    assert_false(line.stalled);
    assert_int_equal(hg_ticketline_next_us(&line, &conf), T0 + 100 * MS);
    assert_int_equal(expire_all(T0 + 100 * MS), 3);
    assert_true(line.stalled && line.overloaded);
    return T0 + 100 * MS;
}

static void test_a_stalled_line_cuts_the_waits_of_all(void **state)
{
    struct hg_ticketline_waiter would = {.deadline_us = UINT64_MAX};
    (void)state;
    setup();
    uint64_t now_us = stall();
    for (uint32_t i = 0; i < 20; i++, now_us += 90 * MS) { // no two of one tenant within 100 ms
        would.since_us = would.came_us = now_us;
        assert_int_equal(hg_ticketline_end_us(&line, &tenants[i % 4], &conf, &would),
                         now_us + 20 * MS);
        push(i % 4, now_us);
        assert_int_equal(hg_ticketline_next_us(&line, &conf), now_us + 20 * MS);
        assert_int_equal(expire_all(now_us + 20 * MS - 1), 0);
        assert_int_equal(expire_all(now_us + 20 * MS), 1);
        assert_true(line.stalled);
    }
    assert_false(tenants[3].overloaded); // not its own
}

static void test_a_line_is_stalled_until_one_is_served(void **state)
{
    struct hg_ticketline_waiter would = {.deadline_us = UINT64_MAX};
    (void)state;
    setup();
    uint64_t now_us = stall();
    push(3, now_us);
    push(3, now_us);
    assert_pops(now_us + 10 * MS, &waiters[3]);
    assert_false(line.stalled);
    would.since_us = would.came_us = now_us + 10 * MS;
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[3], &conf, &would), UINT64_MAX);
    assert_int_equal(expire_all(now_us + 99 * MS), 0);
}

static void test_a_stall_ends_100_ms_after_the_last_gave_up(void **state)
{
    struct hg_ticketline_waiter would = {.deadline_us = UINT64_MAX};
    (void)state;
    setup();
    uint64_t now_us = stall();
    would.since_us = would.came_us = now_us + 100 * MS;
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[3], &conf, &would), UINT64_MAX);
    hg_ticketline_tick(&line, now_us + 100 * MS - 1);
    assert_true(line.stalled);
    hg_ticketline_tick(&line, now_us + 100 * MS);
    assert_false(line.stalled || line.overloaded);

    setup();
    now_us = stall();
    push(3, now_us + 99 * MS);
    hg_ticketline_tick(&line, now_us + 100 * MS); // the one that waits is young
    assert_false(line.stalled);
    assert_int_equal(expire_all(now_us + 199 * MS - 1), 0);
    assert_int_equal(expire_all(now_us + 199 * MS), 1); // by its own overload
}

static void test_no_overload_while_the_oldest_waits_little(void **state)
{
    (void)state;
    setup();
    struct hg_ticketline_waiter *before = push(0, T0);
    for (uint64_t now_us = T0; now_us < T0 + 1000 * MS; now_us += 2 * MS) {
        struct hg_ticketline_waiter *next = push(0, now_us + 1 * MS);
        assert_pops(now_us + 2 * MS, before); // 3 ms old, and the line is never empty
        assert_false(line.overloaded);
        before = next;
    }
}

static void test_no_overload_when_the_line_was_empty(void **state)
{
    (void)state;
    setup();
    for (uint64_t now_us = T0; now_us < T0 + 3000 * MS; now_us += 91 * MS) {
        push(0, now_us);
        assert_pops(now_us + 90 * MS, &waiters[pushed - 1]);
        hg_ticketline_tick(&line, now_us + 90 * MS);
        assert_false(line.overloaded);
    }
}

static void test_nobody_served_is_overload(void **state)
{
    (void)state;
    for (uint32_t by = 0; by < 4; by++) { // whatever looks at the time
        setup();
        push(0, T0);
        push(0, T0 + 1);
        hg_ticketline_tick(&line, T0 + 100 * MS - 1);
        assert_false(line.overloaded);
        if (by == 0)
            hg_ticketline_tick(&line, T0 + 100 * MS);
        else if (by == 1)
            push(0, T0 + 100 * MS);
        else if (by == 2)
            assert_non_null(hg_ticketline_expire(&line, &conf, T0 + 100 * MS));
        else
            hg_ticketline_remove(&line, &waiters[0], T0 + 100 * MS);
        assert_true(line.overloaded);
    }
}

/* An empty line alone is no end: what its clients sent meanwhile may be waiting to be read. */
static void test_overload_ends_100_ms_after_the_line_was_emptied(void **state)
{
    struct hg_ticketline_waiter would = {.deadline_us = UINT64_MAX};
    uint64_t now_us;
    (void)state;
    setup();
    now_us = overload();
    while (line.count > 0)
        (void)hg_ticketline_pop(&line, now_us);
    assert_true(line.overloaded);
    would.came_us = now_us - 30 * MS;
    would.since_us = now_us + 100 * MS - 1;
    assert_true(hg_ticketline_end_us(&line, &tenants[0], &conf, &would) < now_us);
    would.since_us++;
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[0], &conf, &would), UINT64_MAX);
    push(0, now_us + 99 * MS);
    push(0, now_us + 99 * MS);
    assert_pops(now_us + 99 * MS, &waiters[pushed - 1]);
    assert_true(line.overloaded);
    assert_pops(now_us + 99 * MS, &waiters[pushed - 2]);
    hg_ticketline_tick(&line, now_us + 100 * MS - 1);
    assert_true(line.overloaded);
    push(0, now_us + 100 * MS);
    push(0, now_us + 100 * MS);
    assert_false(line.overloaded);
    assert_pops(now_us + 199 * MS, &waiters[pushed - 2]); // oldest first again
    assert_pops(now_us + 199 * MS, &waiters[pushed - 1]);
}

static void test_a_tick_ends_the_overload_of_an_empty_line(void **state)
{
    uint64_t now_us;
    (void)state;
    setup();
    now_us = overload();
    while (line.count > 0)
        (void)hg_ticketline_pop(&line, now_us);
    hg_ticketline_tick(&line, now_us + 100 * MS - 1);
    assert_true(line.overloaded);
    hg_ticketline_tick(&line, now_us + 100 * MS);
    assert_false(line.overloaded);
}

static void test_overload_ends_when_for_100_ms_the_oldest_waited_little(void **state)
{
    uint64_t now_us;
    (void)state;
    setup();
    now_us = overload();
    assert_int_equal(expire_all(now_us + 1 * MS), 60 - 11); // came too long ago
    uint64_t last_us = now_us + 1 * MS;
    for (now_us = last_us; now_us < last_us + 100 * MS; now_us += 2 * MS) {
        assert_true(line.overloaded);
        struct hg_ticketline_waiter *young = push(0, now_us);
        assert_pops(now_us + 1 * MS, young);
    }
    push(0, now_us);
    assert_false(line.overloaded);

    setup();
    now_us = overload();
    assert_int_equal(expire_all(now_us + 1 * MS), 60 - 11);
    push(0, now_us + 50 * MS);
    assert_pops(now_us + 55 * MS, &waiters[60]); // 5 ms: it goes on
    push(0, now_us + 155 * MS - 1);
    assert_true(line.overloaded);
    hg_ticketline_remove(&line, &waiters[61], now_us + 155 * MS); // whatever looks at the time
    assert_false(line.overloaded);
}

/* Under overload one waits for less than 5 ms because its bytes are old: no sign of recovery, it
   would have had to wait. */
static void test_giving_up_early_keeps_overload(void **state)
{
    uint64_t now_us;
    (void)state;
    setup();
    now_us = overload();
    assert_int_equal(expire_all(now_us), 60 - 11);
    for (uint32_t i = 0; i < 100; i++) {
        now_us += 10 * MS;
        push_as(0, now_us, now_us - 18 * MS, UINT64_MAX, 1);
        assert_int_equal(expire_all(now_us + 1 * MS), 0);
        assert_int_equal(expire_all(now_us + 2 * MS), 1);
        assert_true(line.overloaded);
    }
}

static void test_a_tenants_flood_alone_makes_overload(void **state)
{
    (void)state;
    setup();
    for (uint32_t i = 0; i < 400; i++)
        push(0, T0);
    for (uint32_t i = 0; i < 52; i++) { // another tenant's are served within 2 ms
        uint64_t now_us = T0 + i * 2 * MS;
        struct hg_ticketline_waiter *quick = push(1, now_us);
        assert_false(line.overloaded);
        while (quick->tenant != NULL)
            (void)hg_ticketline_pop(&line, now_us + 2 * MS);
    }
    assert_true(line.overloaded);
    assert_true(tenants[0].overloaded && !tenants[1].overloaded);
    assert_true(tenants[0].count > 100);
}

/* ---- ends ---- */

static void test_deadlines_are_exact(void **state)
{
    (void)state;
    setup();
    conf.overload_wait_us = UINT64_MAX;
    assert_int_equal(hg_ticketline_next_us(&line, &conf), UINT64_MAX);
    for (uint32_t i = 0; i < 200; i++)
        push_as(i % 3, T0, T0, T0 + 1 + (i * 77) % 200, 1);
    for (uint64_t now_us = T0; now_us <= T0 + 200; now_us++) {
        struct hg_ticketline_waiter *waiter = hg_ticketline_expire(&line, &conf, now_us);
        if (now_us == T0) {
            assert_null(waiter);
        } else {
            assert_int_equal(waiter->deadline_us, now_us);
            assert_null(hg_ticketline_expire(&line, &conf, now_us));
        }
        assert_int_equal(hg_ticketline_next_us(&line, &conf),
                         now_us < T0 + 200 ? now_us + 1 : UINT64_MAX);
    }
    assert_int_equal(line.count, 0);
}

static void test_waits_are_counted_from_when_the_bytes_came(void **state)
{
    struct hg_ticketline_waiter would = {.came_us = T0 + 95 * MS, .deadline_us = T0 + 900 * MS};
    (void)state;
    setup();
    push_as(0, T0 + 0 * MS, T0 + 0 * MS, T0 + 110 * MS, 1);
    push_as(0, T0 + 90 * MS, T0 + 70 * MS, T0 + 1000 * MS, 1); // behind another of its client
    push_as(0, T0 + 90 * MS, T0 + 90 * MS, T0 + 1000 * MS, 1);
    push_as(0, T0 + 90 * MS, T0 + 90 * MS, T0 + 105 * MS, 1);
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[0], &conf, &would), T0 + 900 * MS);
    assert_int_equal(hg_ticketline_next_us(&line, &conf), T0 + 100 * MS); // overload will begin
    assert_int_equal(expire_all(T0 + 100 * MS - 1), 0);
    assert_int_equal(expire_all(T0 + 100 * MS), 2);
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[0], &conf, &would), T0 + 115 * MS);
    would.deadline_us = T0 + 101 * MS;
    assert_int_equal(hg_ticketline_end_us(&line, &tenants[0], &conf, &would), T0 + 101 * MS);
    assert_int_equal(hg_ticketline_next_us(&line, &conf), T0 + 105 * MS);
    assert_ptr_equal(hg_ticketline_expire(&line, &conf, T0 + 105 * MS), &waiters[3]);
    assert_int_equal(hg_ticketline_next_us(&line, &conf), T0 + 110 * MS);
    assert_ptr_equal(hg_ticketline_expire(&line, &conf, T0 + 110 * MS), &waiters[2]);
    assert_int_equal(line.count, 0);
}

static void test_another_overload_wait_takes_effect_at_once(void **state)
{
    (void)state;
    setup();
    conf.overload_wait_us = UINT64_MAX;
    for (uint32_t i = 0; i < 10; i++)
        push(0, T0 + i * MS);
    assert_int_equal(expire_all(T0 + 200 * MS), 0);
    assert_true(line.overloaded);
    assert_int_equal(hg_ticketline_next_us(&line, &conf), T0 + 1000 * MS);
    conf.overload_wait_us = 195 * MS;
    assert_int_equal(hg_ticketline_next_us(&line, &conf), T0 + 195 * MS);
    assert_int_equal(expire_all(T0 + 200 * MS), 6);
    conf.overload_wait_us = 0;
    assert_int_equal(expire_all(T0 + 200 * MS), 4);
}

/* ---- statistics ---- */

static void test_smallest_sojourn_of_each_window(void **state)
{
    (void)state;
    setup();
    for (uint32_t i = 0; i < 10; i++)
        push(0, T0);
    assert_pops(T0 + 30 * MS, &waiters[0]);
    assert_pops(T0 + 60 * MS, &waiters[1]);
    assert_int_equal(line.min_us, 30 * MS);
    assert_int_equal(line.last_min_us, 0);
    hg_ticketline_tick(&line, T0 + 100 * MS - 1);
    assert_int_equal(line.last_min_us, 0);
    hg_ticketline_tick(&line, T0 + 100 * MS);
    assert_int_equal(line.last_min_us, 30 * MS);
    hg_ticketline_tick(&line, T0 + 205 * MS); // nobody was served
    assert_int_equal(line.last_min_us, 205 * MS);
    assert_pops(T0 + 206 * MS, &waiters[9]);
    hg_ticketline_tick(&line, T0 + 305 * MS);
    assert_int_equal(line.last_min_us, 206 * MS);
    while (line.count > 0)
        (void)hg_ticketline_pop(&line, T0 + 305 * MS);
    assert_int_equal(line.last_min_us, 0);
    hg_ticketline_tick(&line, T0 + 900 * MS); // an empty line has nothing to tell
    assert_int_equal(line.last_min_us, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_first_only_under_overload),
        cmocka_unit_test(test_overload_is_of_one_tenant),
        cmocka_unit_test(test_overload_begins_for_each_tenant_when_it_is_due),
        cmocka_unit_test(test_a_stalled_line_cuts_the_waits_of_all),
        cmocka_unit_test(test_a_line_is_stalled_until_one_is_served),
        cmocka_unit_test(test_a_stall_ends_100_ms_after_the_last_gave_up),
        cmocka_unit_test(test_no_overload_while_the_oldest_waits_little),
        cmocka_unit_test(test_no_overload_when_the_line_was_empty),
        cmocka_unit_test(test_nobody_served_is_overload),
        cmocka_unit_test(test_overload_ends_100_ms_after_the_line_was_emptied),
        cmocka_unit_test(test_a_tick_ends_the_overload_of_an_empty_line),
        cmocka_unit_test(test_overload_ends_when_for_100_ms_the_oldest_waited_little),
        cmocka_unit_test(test_giving_up_early_keeps_overload),
        cmocka_unit_test(test_a_tenants_flood_alone_makes_overload),
        cmocka_unit_test(test_deadlines_are_exact),
        cmocka_unit_test(test_waits_are_counted_from_when_the_bytes_came),
        cmocka_unit_test(test_another_overload_wait_takes_effect_at_once),
        cmocka_unit_test(test_smallest_sojourn_of_each_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
