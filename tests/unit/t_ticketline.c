// t_ticketline - when a wait for a ticket is over, and what is counted of it
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ticketlineset.h"

#define SERVICE_US (20 * MS)

/* ---- against an exact line ---- */

/* Whoever is let in line is served, or waits for queue_timeout to the microsecond; nobody is
   refused between. */
static void assert_nobody_in_line_was_refused_early(uint32_t first)
{
    for (uint32_t j = first; j < job_count; j++) {
        assert_true(jobs[j].state == JOB_DONE || jobs[j].state == JOB_REFUSED ||
                    jobs[j].state == JOB_LATE);
        if (jobs[j].state == JOB_LATE)
            assert_int_equal(jobs[j].granted_us, 0);
    }
}

static void note_late_ones(uint64_t *ret_late)
{
    struct hg_ticketline_waiter *waiter;
    while ((waiter = hg_ticketline_expire(&line, &conf, now_us)) != NULL) {
        ((struct job *)waiter)->state = JOB_LATE;
        assert_int_equal(now_us, waiter->since_us + conf.queue_timeout_us);
        ++*ret_late;
    }
}

/* 16 x 20 ms serve 800 a second. A burst of 2000 at once: those that can be served within a second
   are let in, the others are refused on arrival; the prediction is exact to a service. */
static void test_a_burst_fills_a_line_that_is_served_in_time(void **state)
{
    (void)state;
    setup(16);
    warm_up(1, SERVICE_US);
    uint32_t first = job_count;
    for (uint32_t i = 0; i < 2000; i++)
        arrive(0, SERVICE_US);
    assert_int_equal(count_in(first, JOB_RUNS), 16);
    assert_int_equal(count_in(first, JOB_WAITS), 800);
    pass(3 * S);
    assert_int_equal(count_in(first, JOB_DONE) + count_in(first, JOB_LATE), 816);
    assert_true(count_in(first, JOB_DONE) >= 800); // the last would have been served just then
    assert_nobody_in_line_was_refused_early(first);
    for (uint32_t j = first + 16; j < job_count; j++) {
        uint64_t predicted_us = jobs[j].admission.predicted_us;
        if (jobs[j].state == JOB_REFUSED) {
            assert_true(predicted_us > 1 * S);
            assert_int_equal(jobs[j].admission.why, HG_TICKETLINE_FLOOD);
        } else if (jobs[j].state == JOB_DONE) {
            uint64_t waited_us = jobs[j].granted_us - jobs[j].waiter.since_us;
            assert_in_range(predicted_us, waited_us - SERVICE_US, waited_us + SERVICE_US);
        }
    }
}

/* Nothing is known of a tenant at first, so more are let in than can be served: they wait until
   their time is over, exactly, and are not refused before. */
static void test_one_in_line_waits_for_queue_timeout_exactly(void **state)
{
    uint64_t late = 0;
    (void)state;
    setup(16);
    for (uint32_t i = 0; i < 900; i++) {
        arrive(0, SERVICE_US);
        now_us += 100;
    }
    assert_int_equal(count_in(0, JOB_REFUSED), 0);
    for (uint64_t end_us = now_us + 2 * S; now_us < end_us; now_us++) {
        struct job *done;
        while ((done = next_end()) != NULL && done->end_us <= now_us)
            finish(done, true);
        note_late_ones(&late);
        while (out < conf.size && line.count > 0)
            start((struct job *)hg_ticketline_pop(&line, &conf, now_us));
        uint64_t next_us = hg_ticketline_next_us(&line), then_us = now_us;
        if ((done = next_end()) != NULL)
            then_us = done->end_us;
        if (next_us < then_us)
            then_us = next_us;
        now_us = then_us > now_us ? then_us - 1 : now_us;
    }
    assert_in_range(late, 1, 100);
    assert_int_equal(count_in(0, JOB_DONE) + late, 900);
    assert_nobody_in_line_was_refused_early(0);
}

/* A closed loop: 100 clients of one tenant on 16 x 20 ms, each with its next request at once. */
static void test_a_closed_loop_is_never_refused(void **state)
{
    (void)state;
    setup(16);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_not_equal(arrive(0, SERVICE_US + i)->state, JOB_REFUSED);
    for (uint32_t i = 0; i < 8000; i++) {
        struct job *done = next_end();
        pass_until(done->end_us);
        while (out + line.count < 100)
            assert_int_not_equal(arrive(0, SERVICE_US + i % 7)->state, JOB_REFUSED);
    }
    assert_int_equal(count_in(0, JOB_LATE), 0);
    assert_int_equal(line.flooded_us, 0);
}

/* ---- ends, statistics ---- */

static void test_deadlines_are_exact(void **state)
{
    (void)state;
    setup(1);
    assert_int_equal(hg_ticketline_next_us(&line), UINT64_MAX);
    for (uint32_t i = 0; i < 200; i++)
        push_until(i % 3, 1, T0 + 1 + (i * 77) % 200);
    for (; now_us <= T0 + 200; now_us++) {
        struct hg_ticketline_waiter *waiter = hg_ticketline_expire(&line, &conf, now_us);
        if (now_us == T0) {
            assert_null(waiter);
        } else {
            assert_int_equal(waiter->deadline_us, now_us);
            assert_null(hg_ticketline_expire(&line, &conf, now_us));
        }
        assert_int_equal(hg_ticketline_next_us(&line), now_us < T0 + 200 ? now_us + 1 : UINT64_MAX);
    }
    assert_int_equal(line.count, 0);
}

static void pop_at(uint64_t then_us, const struct job *expected)
{
    now_us = then_us;
    assert_pops(expected);
}

static void test_smallest_sojourn_of_each_window(void **state)
{
    (void)state;
    setup(1);
    for (uint32_t i = 0; i < 4; i++)
        push(0);
    pop_at(T0 + 30 * MS, &jobs[0]);
    pop_at(T0 + 60 * MS, &jobs[1]);
    assert_int_equal(line.min_us, 30 * MS);
    assert_int_equal(line.last_min_us, 0);
    hg_ticketline_tick(&line, T0 + 100 * MS - 1);
    assert_int_equal(line.last_min_us, 0);
    hg_ticketline_tick(&line, T0 + 100 * MS);
    assert_int_equal(line.last_min_us, 30 * MS);
    hg_ticketline_tick(&line, T0 + 205 * MS); // nobody was served
    assert_int_equal(line.last_min_us, 205 * MS);
    pop_at(T0 + 206 * MS, &jobs[2]);
    hg_ticketline_tick(&line, T0 + 305 * MS);
    assert_int_equal(line.last_min_us, 206 * MS);
    pop_at(T0 + 305 * MS, &jobs[3]);
    assert_int_equal(line.last_min_us, 0);
    hg_ticketline_tick(&line, T0 + 900 * MS); // an empty line has nothing to tell
    assert_int_equal(line.last_min_us, 0);
}

static void test_active_tenants_are_those_of_the_last_second(void **state)
{
    (void)state;
    setup(8);
    now_us = 100 * S;
    assert_int_equal(hg_ticketline_active(&line), 1);
    hg_ticketline_tick(&line, now_us);
    for (uint32_t t = 0; t < 4; t++) {
        arrive(t, 1 * MS);
        pass(2 * MS);
    }
    assert_int_equal(hg_ticketline_active(&line), 4);
    arrive(0, 1 * MS);
    assert_int_equal(hg_ticketline_active(&line), 4);
    pass(1 * S);
    hg_ticketline_tick(&line, now_us);
    arrive(0, 1 * MS);
    assert_int_equal(hg_ticketline_active(&line), 4); // one in this second, four in the last
    pass(1 * S);
    hg_ticketline_tick(&line, now_us);
    assert_int_equal(hg_ticketline_active(&line), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_burst_fills_a_line_that_is_served_in_time),
        cmocka_unit_test(test_one_in_line_waits_for_queue_timeout_exactly),
        cmocka_unit_test(test_a_closed_loop_is_never_refused),
        cmocka_unit_test(test_deadlines_are_exact),
        cmocka_unit_test(test_smallest_sojourn_of_each_window),
        cmocka_unit_test(test_active_tenants_are_those_of_the_last_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
