// t_keyshare_parked - requests that wait for their key's share or in line, and stranded slots
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keysharerig.h"

/* ---- parked ones ---- */

static void test_the_oldest_goes_first(void **state)
{
    (void)state;
    struct job *first = burst(1, 20);
    assert_counts(1, 2, 18);
    assert_null(next_of(record(1)));
    hg_keyshare_end(&ks, &first->part, true, true, now_us); // fast
    for (uint32_t i = 2; i < 20; i++) {
        assert_ptr_equal(next_of(record(1)), &first[i].part);
        assert_ptr_equal(next_of(record(1)), &first[i].part); // it is parked until it is let go
        assert_int_equal(record(1)->waiting, 20 - i);
        assert_int_equal(ks.parked, 20 - i);
        unpark(&first[i]);
        assert_null(first[i].part.key);
        assert_false(first[i].part.is_parked);
        engage(&first[i]);
        start(&first[i]);
    }
    assert_null(next_of(record(1)));
    assert_int_equal(record(1)->out, 19);
    assert_int_equal(ks.parked, 0);
}

static void test_one_goes_for_each_that_ends(void **state)
{
    (void)state;
    be_slow(1, 200 * MS);
    struct job *first = burst(1, 8);
    for (uint32_t i = 0; i < 6; i++) {
        assert_counts(1, 2, 6 - i);
        assert_null(next_of(record(1)));
        pass(200 * MS);
        answer(&first[i]);
        assert_int_equal(first[i + 2].state, JOB_RUNS);
    }
    elsewhere = 2;
    arrive(1);
    arrive(1);
    pass(200 * MS);
    answer_all(1);
    assert_counts(1, 0, 2); // two of the key are on another worker
    elsewhere = 1;
    release(record(1));
    assert_counts(1, 1, 1);
}

/* A client that waits goes away. */
static void test_parked_ones_may_leave(void **state)
{
    (void)state;
    struct job *first = burst(1, 6);
    unpark(&first[3]);
    unpark(&first[2]);
    assert_int_equal(record(1)->waiting, 2);
    assert_int_equal(ks.parked, 2);
    answer(&first[0]);
    assert_counts(1, 3, 0);
    assert_int_equal(first[4].state, JOB_RUNS);
    assert_int_equal(first[5].state, JOB_RUNS);
    burst(2, 3);
    unpark(oldest_in(2, JOB_PARKED));
    assert_null(next_of(record(2)));
    assert_int_equal(ks.parked, 0);
}

/* They wait while other unproven keys have all that unproven keys may have together. */
static void test_parked_ones_go_when_other_keys_end(void **state)
{
    (void)state;
    be_slow(3, 100 * MS);
    burst(1, 2);
    burst(2, 2);
    burst(3, 3);
    assert_counts(3, 1, 2);
    pass(100 * MS);
    answer(oldest_in(3, JOB_RUNS));
    assert_counts(3, 0, 2); // the other keys have four
    answer(oldest_in(1, JOB_RUNS));
    release(record(3));
    assert_counts(3, 1, 1);
    answer(oldest_in(1, JOB_RUNS));
    release(record(3));
    assert_counts(3, 2, 0);
}

/* ---- in line for a ticket ---- */

static void test_a_turn_of_one_whose_key_is_not_proven_any_more(void **state)
{
    (void)state;
    use(25, 64, 40);
    burst(1, 2);
    answer_all(1);
    struct job *first = &jobs[job_count];
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(arrive_in_line(1)->state, JOB_LINED);
    assert_int_equal(record(1)->engaged, 12);
    assert_int_equal(record(1)->out, 0);
    pass(1 * S);
    for (uint32_t i = 0; i < 12; i++) {
        have_turn(&first[i]);
        assert_int_equal(first[i].state, i < 10 ? JOB_RUNS : JOB_PARKED);
    }
    assert_int_equal(record(1)->engaged, 10);
    assert_int_equal(record(1)->waiting, 2);
    assert_int_equal(record(1)->started, 10);
    pass(5 * MS);
    answer(&first[0]);
    assert_counts(1, 11, 0);
}

/* A key without a record has no share. */
static void test_a_turn_of_a_key_without_a_record(void **state)
{
    (void)state;
    struct job *job = arrive_in_line(1);
    burst(2, 2);
    burst(3, 2);
    assert_int_equal(ks.unproven_out, 4);
    have_turn(job);
    assert_int_equal(job->state, JOB_RUNS);
}

/* Other unproven keys have all that they may have together. A key may still have one, unless its
   last answer was slow. */
static void test_a_turn_of_the_first_of_a_key(void **state)
{
    (void)state;
    be_slow(4, 500 * MS);
    burst(1, 2);
    burst(2, 2);
    struct job *job = arrive_in_line(3), *slow = arrive_in_line(4);
    assert_int_equal(arrive_in_line(3)->state, JOB_PARKED);
    assert_int_equal(record(3)->engaged, 1);
    have_turn(job);
    assert_int_equal(job->state, JOB_RUNS);
    assert_int_equal(ks.unproven_out, 5);
    have_turn(slow);
    assert_int_equal(slow->state, JOB_PARKED);
    answer(oldest_in(1, JOB_RUNS));
    answer(oldest_in(2, JOB_RUNS));
    release(record(4));
    assert_int_equal(slow->state, JOB_RUNS);
}

/* A request that leaves the line without a ticket says nothing about its key. */
static void test_one_leaves_the_line(void **state)
{
    (void)state;
    struct job *first = arrive_in_line(1), *second = arrive_in_line(1);
    assert_int_equal(record(1)->engaged, 2);
    pass(300 * MS);
    end(first, false);
    end(second, false);
    assert_int_equal(record(1)->engaged, 0);
    assert_int_equal(record(1)->slow, 0);
    assert_int_equal(record(1)->fast_us, 0);
    assert_int_equal(ks.unproven_out, 0);
    assert_int_equal(hg_keyshare_count(&counts, 1), 0);
}

/* ---- stranded slots ---- */

/* Overdue once it is stranded for longer than an answer may take. */
static void test_a_stranded_slot_is_held_and_overdue(void **state)
{
    (void)state;
    burst(1, 2);
    pass(5 * MS);
    answer(oldest_in(1, JOB_RUNS));
    strand(1, 1);
    assert_int_equal(record(1)->engaged, 2);
    assert_int_equal(hg_keyshare_count(&counts, 1), 2);
    assert_asks(1, GO); // its client may just have gone
    pass(11 * MS);
    answered_us = now_us;
    assert_asks(1, GO); // as long as it may take
    pass(10 * MS);
    answered_us = now_us;
    assert_true(hg_keyshare_is_dear(&ks, record(1), answered_us, now_us)); // two, and overdue
    assert_asks(1, PARK);
    assert_int_equal(ks.unproven_out, 2);
    strand(1, 1);
    assert_int_equal(ks.unproven_out, 3);
    burst(2, 3);
    assert_counts(2, 1, 2);         // key 1 holds three
    answer(oldest_in(1, JOB_RUNS)); // fast, but a slot is still stranded
    assert_asks(1, PARK);
    assert_int_equal(ks.unproven_out, 3);
    strand(1, -1);
    assert_asks(1, GO);
    burst(1, 20);
    assert_counts(1, 1, 8);
    strand(1, -1);
    assert_int_equal(record(1)->stranded, 0);
    release(record(1));
    assert_counts(1, 9, 0); // it is proven
    assert_int_equal(hg_keyshare_count(&counts, 1), 9);
    assert_int_equal(ks.unproven_out, 1);
    strand(1, -1); // none is stranded: ignored
    assert_int_equal(hg_keyshare_count(&counts, 1), 9);
    assert_int_equal(record(1)->engaged, 9);
}

static void test_a_key_whose_slot_is_stranded_has_a_record(void **state)
{
    (void)state;
    strand(1, -1);
    assert_null(record(1));
    struct job *job = arrive(1);
    assert_null(record(1));
    strand(1, 1);
    assert_int_equal(record(1)->out, 1);
    assert_int_equal(record(1)->engaged, 2);
    assert_asks(1, PARK);
    assert_int_equal(ks.unproven_out, 2);
    answer(job);
    strand(1, -1);
    assert_int_equal(record(1)->engaged, 0);
    assert_int_equal(hg_keyshare_count(&counts, 1), 0);
    assert_int_equal(ks.unproven_out, 0);
}

static void test_a_stranded_slot_without_room_is_not_counted(void **state)
{
    (void)state;
    no_room = true;
    strand(1, 1);
    assert_int_equal(hg_keyshare_count(&counts, 1), 0);
    strand(1, -1);
    assert_int_equal(hg_keyshare_count(&counts, 1), 0);
    strand(1, 1);
    no_room = false;
    strand(1, 1);
    strand(1, -1);
    strand(1, -1); // of the two one was counted
    assert_int_equal(hg_keyshare_count(&counts, 1), 0);
    assert_int_equal(record(1)->engaged, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_oldest_goes_first),
        TEST(test_one_goes_for_each_that_ends),
        TEST(test_parked_ones_may_leave),
        TEST(test_parked_ones_go_when_other_keys_end),
        TEST(test_a_turn_of_one_whose_key_is_not_proven_any_more),
        TEST(test_a_turn_of_a_key_without_a_record),
        TEST(test_a_turn_of_the_first_of_a_key),
        TEST(test_one_leaves_the_line),
        TEST(test_a_stranded_slot_is_held_and_overdue),
        TEST(test_a_key_whose_slot_is_stranded_has_a_record),
        TEST(test_a_stranded_slot_without_room_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
