// t_ticketline_admit - who gets in line for a ticket, and which tenants flood
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/prng.h"
#include "ticketlineset.h"

#define SERVICE_US (20 * MS)

static uint64_t bound_us(uint32_t tenant)
{
    return hg_ticketline_bound_us(&tenants[tenant], &conf, now_us);
}

static uint64_t flood_since_us(uint32_t tenant)
{
    return hg_ticketline_flood_since_us(&tenants[tenant], &conf, now_us);
}

/* All tickets are taken, each for ever. */
static void take_all(uint32_t tenant)
{
    while (out < conf.size)
        assert_int_equal(arrive(tenant, FOREVER)->state, JOB_RUNS);
}

/* Waiters that were let in, before one is refused. */
static uint32_t arrive_until_refused(uint32_t tenant, uint64_t service_us)
{
    uint32_t n = 0;
    struct job *job;
    while ((job = arrive(tenant, service_us))->state != JOB_REFUSED) {
        n += job->state == JOB_WAITS;
        assert_true(n < 3000);
    }
    return n;
}

/* ---- the prediction ---- */

static struct hg_ticketline_admission ask_as(uint32_t tenant, uint64_t came_us)
{
    struct hg_ticketline_waiter waiter = {.since_us = now_us, .came_us = came_us};
    return hg_ticketline_admit(&line, &tenants[tenant], &conf, &waiter, now_us);
}

static struct hg_ticketline_admission ask(uint32_t tenant)
{
    return ask_as(tenant, now_us);
}

/* The highest of three rates counts: what it was granted, what its tickets do, its share. */
static void test_each_rate_counts(void **state)
{
    (void)state;
    setup(10);
    warm_up(3, SERVICE_US);
    take_all(0);
    push(1);
    push(1);
    push(1);
    assert_int_equal(ask(1).predicted_us, 4 * SERVICE_US * 2 / 10); // two share
    assert_int_equal(ask(2).predicted_us, 1 * SERVICE_US * 3 / 10); // and it is the third
    for (uint32_t i = 0; i < 8; i++) { // eight of its own: more than its share
        hg_ticketline_give(&line, &tenants[0], SERVICE_US, true, now_us);
        hg_ticketline_take(&line, &tenants[1], now_us);
    }
    assert_int_equal(ask(1).predicted_us, 4 * SERVICE_US / 8);

    setup(10);
    warm_up(1, SERVICE_US);
    take_all(0);
    push(0);
    (void)ask(0);
    for (uint32_t i = 0; i < 1000; i++) { // a thousand in a second
        hg_ticketline_take(&line, &tenants[0], now_us);
        hg_ticketline_give(&line, &tenants[0], SERVICE_US, true, now_us);
        now_us += 1 * MS;
    }
    (void)ask(0);
    assert_in_range(ask(0).predicted_us, 1950, 2050); // 2 requests
}

/* An unanswered request has taken no less than it did: it can only raise the mean. */
static void test_unanswered_requests_only_raise_the_mean(void **state)
{
    (void)state;
    setup(10);
    warm_up(1, SERVICE_US);
    take_all(0);
    hg_ticketline_give(&line, &tenants[0], 1 * MS, false, now_us);
    assert_int_equal(tenants[0].mean_16us, SERVICE_US * 16);
    hg_ticketline_give(&line, &tenants[0], 100 * MS, false, now_us);
    assert_int_equal(tenants[0].mean_16us, SERVICE_US * 16 + (100 - 20) * MS);
    hg_ticketline_give(&line, &tenants[0], 5 * MS, true, now_us);
    assert_int_equal(tenants[0].mean_16us, 25 * MS * 16 - 20 * MS);
}

/* Those that were under way in a stall do not make a tenant slow, but services that stay long do.
 */
static void test_the_mean_is_not_that_of_a_stall(void **state)
{
    (void)state;
    setup(16);
    warm_up(1, 10 * MS);
    for (uint32_t i = 0; i < 16; i++) {
        hg_ticketline_take(&line, &tenants[0], now_us);
        hg_ticketline_give(&line, &tenants[0], 600 * MS, true, now_us);
    }
    assert_in_range(tenants[0].mean_16us / 16, 12 * MS, 13 * MS);
    for (uint32_t i = 0; i < 350; i++) {
        hg_ticketline_take(&line, &tenants[0], now_us);
        hg_ticketline_give(&line, &tenants[0], 600 * MS, true, now_us);
    }
    assert_in_range(tenants[0].mean_16us / 16, 590 * MS, 601 * MS);
    for (uint32_t i = 0; i < 400; i++) {
        hg_ticketline_take(&line, &tenants[0], now_us);
        hg_ticketline_give(&line, &tenants[0], UINT64_MAX / 4, true, now_us);
    }
    assert_true(tenants[0].mean_16us > UINT32_MAX / 2); // and no overflow
}

/* Nobody can tell how long that lasts. */
static void test_with_size_zero_all_wait(void **state)
{
    (void)state;
    setup(0);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(arrive(i % 2, SERVICE_US)->state, JOB_WAITS);
    conf.size = 10;
    pass(500 * MS);
    assert_int_equal(count_in(0, JOB_DONE), 50);
}

/* ---- who may wait whatever the prediction ---- */

static void test_a_line_within_its_share_is_let_in(void **state)
{
    (void)state;
    setup(12);
    warm_up(4, 5 * S); // two services are beyond the bound
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(arrive(t, FOREVER)->state, JOB_RUNS);
    assert_int_equal(hg_ticketline_active(&line), 3);
    assert_int_equal(arrive_until_refused(0, 5 * S), 12 / 3);
    assert_true(flood_since_us(0) != 0);
    assert_int_equal(arrive_until_refused(1, 5 * S), 12 / 3);
    assert_int_equal(arrive_until_refused(3, 5 * S), 12 / 4); // now they are four
}

/* A newcomer behind a flood's line is let in and is next. */
static void test_a_newcomer_is_let_in(void **state)
{
    (void)state;
    setup(4);
    warm_up(2, SERVICE_US);
    for (uint32_t i = 0; i < 1000; i++)
        arrive(0, SERVICE_US);
    pass(10 * MS);
    struct job *newcomer = arrive(1, SERVICE_US);
    assert_int_equal(newcomer->state, JOB_WAITS);
    assert_in_range(newcomer->admission.predicted_us, 1, SERVICE_US);
    pass(10 * MS);
    assert_int_equal(newcomer->state, JOB_RUNS);
}

static void test_all_are_let_in_while_the_size_grows(void **state)
{
    (void)state;
    setup(4);
    warm_up(1, SERVICE_US);
    take_all(0);
    assert_int_equal(arrive_until_refused(0, SERVICE_US), 200);
    conf.grew_us = now_us;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(arrive(0, SERVICE_US)->state, JOB_WAITS);
    now_us += 100 * MS - 1;
    assert_int_equal(ask(0).why, HG_TICKETLINE_WAIT);
    now_us += 1;
    assert_int_equal(ask(0).why, HG_TICKETLINE_FLOOD);
    tenants[0].mean_16us = 80 * MS * 16; // two services of it are longer
    now_us = conf.grew_us + 160 * MS - 1;
    assert_int_equal(ask(0).why, HG_TICKETLINE_WAIT);
    now_us += 1;
    assert_int_equal(ask(0).why, HG_TICKETLINE_FLOOD);
}

/* ---- floods ---- */

static void test_the_bound_of_a_flood_doubles_each_second(void **state)
{
    static const uint64_t bounds_ms[] = {100, 200, 400, 800, 1000, 1000};
    (void)state;
    setup(4);
    warm_up(2, SERVICE_US);
    take_all(0);
    assert_int_equal(bound_us(0), 1 * S);
    (void)arrive_until_refused(0, SERVICE_US);
    uint64_t began_us = now_us;
    assert_in_range(tenants[0].predicted_us, 1 * S, 1 * S + SERVICE_US);
    for (uint32_t s = 0; s < 6; s++) {
        now_us = began_us + s * S;
        assert_int_equal(bound_us(0), bounds_ms[s] * MS);
        assert_int_equal(flood_since_us(0), s < 4 ? began_us : 0);
        assert_int_equal(hg_ticketline_is_flooded(&line, now_us), s < 4);
        assert_int_equal(bound_us(1), 1 * S); // nobody else's
        now_us += S - 1;
        assert_int_equal(bound_us(0), bounds_ms[s] * MS);
    }
}

/* While it floods the bound goes on doubling, however much is refused; after that, a line that is
   too long makes it flood anew. */
static void test_a_flood_is_over_unless_exceeded_anew(void **state)
{
    (void)state;
    setup(4);
    warm_up(1, SERVICE_US);
    take_all(0);
    (void)arrive_until_refused(0, SERVICE_US);
    uint64_t began_us = now_us;
    for (; now_us < began_us + 4 * S; now_us += 50 * MS) {
        assert_int_not_equal(ask(0).why, HG_TICKETLINE_WAIT);
        assert_int_equal(flood_since_us(0), began_us);
    }
    assert_int_equal(bound_us(0), 1 * S);
    assert_int_not_equal(ask(0).why, HG_TICKETLINE_WAIT);
    assert_int_equal(bound_us(0), 100 * MS);
    assert_int_equal(flood_since_us(0), now_us);
}

/* A flood has a short line; the others are let in as ever. */
static void test_a_flood_binds_nobody_else(void **state)
{
    struct hg_prng dice = {9};
    (void)state;
    setup(16);
    warm_up(4, SERVICE_US);
    for (uint32_t i = 0; i < 6000; i++) { // 2000 a second of one, 100 of each other
        arrive(0, SERVICE_US);
        for (uint32_t t = 1; t < TENANTS; t++)
            if (hg_prng_below(&dice, 20) == 0)
                assert_int_not_equal(arrive(t, SERVICE_US)->state, JOB_REFUSED);
        pass(500);
    }
    pass(2 * S);
    uint32_t late = 0, done = 0;
    for (uint32_t j = 0; j < job_count; j++) {
        late += jobs[j].state == JOB_LATE && jobs[j].tenant != 0;
        done += jobs[j].state == JOB_DONE && jobs[j].tenant == 0;
        if (jobs[j].tenant != 0)
            assert_true(jobs[j].granted_us - jobs[j].waiter.since_us <= 2 * SERVICE_US);
    }
    assert_int_equal(late, 0);
    assert_true(done >= 1300); // 500 a second are left over, for 3 s
}

static void test_running_out_of_time_above_its_share_is_a_flood(void **state)
{
    (void)state;
    for (uint32_t waiting = 4; waiting <= 5; waiting++) {
        setup(4);
        take_all(0);
        for (uint32_t i = 0; i < waiting; i++)
            push_until(0, SERVICE_US, now_us + 1 * S);
        now_us += 1 * S;
        assert_non_null(hg_ticketline_expire(&line, &conf, now_us));
        assert_int_equal(flood_since_us(0), waiting == 5 ? now_us : 0);
    }
}

/* Its own deadline, short of queue_timeout, is the request's affair. */
static void test_deadlines_of_requests_make_no_flood(void **state)
{
    (void)state;
    setup(1);
    for (uint32_t i = 0; i < 50; i++)
        push_until(0, SERVICE_US, now_us + 1 * S - 1);
    now_us += 1 * S - 1;
    while (hg_ticketline_expire(&line, &conf, now_us) != NULL)
        ;
    assert_int_equal(line.count, 0);
    assert_int_equal(flood_since_us(0), 0);
}

static void test_flood_wait_beyond_queue_timeout_is_no_flood(void **state)
{
    (void)state;
    setup(4);
    conf.flood_wait_us = 2 * S;
    warm_up(1, SERVICE_US);
    take_all(0);
    (void)arrive_until_refused(0, SERVICE_US);
    assert_int_equal(bound_us(0), 1 * S);
    assert_int_equal(flood_since_us(0), 0);
    conf.flood_wait_us = 0; // no division, no endless loop
    assert_int_equal(bound_us(0), 1);
}

/* ---- the age of bytes ---- */

static void test_the_age_of_bytes_counts(void **state)
{
    (void)state;
    setup(4);
    warm_up(1, SERVICE_US);
    take_all(0);
    for (uint32_t i = 0; i < 99; i++)
        push(0);
    assert_int_equal(ask(0).predicted_us, 500 * MS);
    assert_int_equal(ask_as(0, now_us - 500 * MS).why, HG_TICKETLINE_WAIT);
    assert_int_equal(ask_as(0, now_us - 500 * MS - 1).why, HG_TICKETLINE_FLOOD);
    assert_int_equal(bound_us(0), 100 * MS);
    assert_int_equal(ask_as(0, now_us - 100 * MS).why, HG_TICKETLINE_OLD);
}

/* A client that sends much at once waits in its own pipe: what is behind is refused when it is as
   old as queue_timeout, and that is no flood. */
static void test_one_pipe_is_no_flood(void **state)
{
    (void)state;
    setup(4);
    warm_up(1, SERVICE_US);
    take_all(0);
    assert_int_equal(ask_as(0, now_us - 1 * S + 1).why, HG_TICKETLINE_WAIT);
    assert_int_equal(ask_as(0, now_us - 1 * S).why, HG_TICKETLINE_OLD);
    assert_int_equal(flood_since_us(0), 0);
}

/* ---- stalls ---- */

/* Three tenants ask for 70 % of 8 x 10 ms, and the store stops for 0.6 s, then for 2 s. */
static void run_stall(uint64_t stall_us)
{
    setup(8);
    warm_up(3, 10 * MS);
    for (uint64_t began_us = now_us; now_us < began_us + 6 * S;) {
        paused = now_us >= began_us + 1 * S && now_us < began_us + 1 * S + stall_us;
        if (!paused)
            for (uint32_t r = 0; r < out; r++) // a request is late by the stall
                if (running[r]->end_us < now_us)
                    running[r]->end_us = now_us;
        arrive((uint32_t)((now_us - began_us) / 1785) % 3, 10 * MS);
        pass(1785);
    }
    pass(2 * S);
}

static void test_a_stall_of_600_ms_refuses_nobody(void **state)
{
    (void)state;
    run_stall(600 * MS);
    assert_int_equal(count_in(0, JOB_REFUSED) + count_in(0, JOB_LATE), 0);
    assert_int_equal(line.flooded_us, 0);
}

/* Beyond queue_timeout all are refused at once, and that makes no flood; with the first answer it
   is over. */
static void test_a_long_stall_is_no_flood(void **state)
{
    (void)state;
    setup(4);
    warm_up(2, 10 * MS);
    take_all(0);
    push(0);
    for (uint32_t i = 0; i < 3; i++) // more than its share of two
        push(1);
    now_us += 300 * MS;
    assert_int_equal(ask(1).predicted_us, 4 * 10 * MS / 2);
    now_us += 1;
    assert_int_equal(ask(1).predicted_us, 300 * MS + 1);
    assert_int_equal(ask(1).why, HG_TICKETLINE_WAIT);
    now_us += 700 * MS - 2;
    assert_int_equal(ask(1).why, HG_TICKETLINE_WAIT);
    now_us += 2;
    assert_int_equal(ask(1).why, HG_TICKETLINE_STALLED);
    assert_int_equal(tenants[1].predicted_us, 1 * S + 1);
    assert_int_equal(flood_since_us(1), 0);
    hg_ticketline_give(&line, &tenants[0], 10 * MS, true, now_us);
    assert_int_equal(ask(1).why, HG_TICKETLINE_WAIT);
    assert_true(ask(1).predicted_us < 30 * MS);
}

/* Nothing has finished for a minute, as nothing was asked. */
static void test_idleness_is_no_stall(void **state)
{
    (void)state;
    setup(1);
    warm_up(1, 10 * MS);
    pass(60 * S);
    take_all(0);
    assert_true(ask(0).predicted_us < 50 * MS);
}

/* Requests that usually take a second are not stalled after 4 s. */
static void test_slow_requests_are_no_stall(void **state)
{
    (void)state;
    setup(4);
    warm_up(1, 1 * S);
    take_all(0);
    now_us += 4 * S;
    assert_int_equal(ask(0).predicted_us, 1 * S / 4);
    now_us += 1;
    assert_int_equal(ask(0).predicted_us, 4 * S + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rate_counts),
        cmocka_unit_test(test_unanswered_requests_only_raise_the_mean),
        cmocka_unit_test(test_the_mean_is_not_that_of_a_stall),
        cmocka_unit_test(test_with_size_zero_all_wait),
        cmocka_unit_test(test_a_line_within_its_share_is_let_in),
        cmocka_unit_test(test_a_newcomer_is_let_in),
        cmocka_unit_test(test_all_are_let_in_while_the_size_grows),
        cmocka_unit_test(test_the_bound_of_a_flood_doubles_each_second),
        cmocka_unit_test(test_a_flood_is_over_unless_exceeded_anew),
        cmocka_unit_test(test_a_flood_binds_nobody_else),
        cmocka_unit_test(test_running_out_of_time_above_its_share_is_a_flood),
        cmocka_unit_test(test_deadlines_of_requests_make_no_flood),
        cmocka_unit_test(test_flood_wait_beyond_queue_timeout_is_no_flood),
        cmocka_unit_test(test_the_age_of_bytes_counts),
        cmocka_unit_test(test_one_pipe_is_no_flood),
        cmocka_unit_test(test_a_stall_of_600_ms_refuses_nobody),
        cmocka_unit_test(test_a_long_stall_is_no_flood),
        cmocka_unit_test(test_idleness_is_no_stall),
        cmocka_unit_test(test_slow_requests_are_no_stall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
