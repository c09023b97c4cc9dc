// t_keyshare_dear - keys that have shown to be slow, and several keys at once
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keysharerig.h"

/* ---- dear keys ---- */

static void test_a_dear_key_has_its_share(void **state)
{
    (void)state;
    be_slow(1, 500 * MS);
    assert_int_equal(record(1)->slow, 2);
    for (unsigned round = 0; round < 6; round++) {
        burst(1, 3);
        assert_int_equal(count_in(1, JOB_RUNS), 2);
        assert_true(count_in(1, JOB_PARKED) > 0);
        pass(500 * MS);
        answer(oldest_in(1, JOB_RUNS)); // one comes, one goes
    }
    assert_true(hg_keyshare_is_dear(&ks, record(1), answered_us, now_us));
    pass(5 * MS);
    answer_all(1); // some that were fast at last
    burst(1, 10);
    assert_counts(1, 10, 0);
}

static void test_what_is_dear(void **state)
{
    (void)state;
#define assert_dear(id, dear)                                                                      \
    assert_int_equal(hg_keyshare_is_dear(&ks, record(id), answered_us, now_us), dear)
    burst(1, 2);
    pass(20 * MS);
    assert_dear(1, false);
    pass(1);
    assert_dear(1, true); // two under way, and overdue
    answer(oldest_in(1, JOB_RUNS));
    assert_dear(1, false); // one slow answer; one under way
    answer(oldest_in(1, JOB_RUNS));
    assert_dear(1, true); // two
    burst(2, 2);
    pass(1 * MS);
    answer_all(2);
    be_slow(2, 500 * MS);
    assert_int_equal(record(2)->slow, 2);
    assert_dear(2, false); // there was a fast one in the last second
    pass(500 * MS);
    assert_dear(2, true);
    be_slow(2, 1 * MS);
    assert_dear(2, false);
    pass(1 * S);
    be_slow(2, 500 * MS);
    assert_int_equal(record(2)->slow, 2); // in a row: the fast ones have ended the first row
    be_slow(2, 1 * MS);
    assert_int_equal(record(2)->slow, 0);
#undef assert_dear
}

/* A request that ends without an answer counts only if it took long while the store answers. */
static void test_requests_without_an_answer(void **state)
{
    (void)state;
    burst(1, 3);
    pass(5 * MS);
    end(oldest_in(1, JOB_RUNS), false);
    assert_int_equal(record(1)->fast_us, 0);
    assert_int_equal(record(1)->service_us, 0);
    assert_counts(1, 2, 0);
    pass(300 * MS);
    view.answered_us = now_us - 50 * MS;
    tick();
    end(oldest_in(1, JOB_RUNS), false);
    assert_int_equal(record(1)->slow, 1);
    assert_int_equal(record(1)->service_us, 305 * MS);
    stall(101 * MS);
    end(oldest_in(1, JOB_RUNS), false);
    assert_int_equal(record(1)->slow, 1); // the store stands still: it is not the key
}

static void test_mean_service_of_a_key(void **state)
{
    (void)state;
    burst(1, 2);
    now_us += 400 * MS;
    answer(oldest_in(1, JOB_RUNS));
    assert_int_equal(record(1)->service_us, 400 * MS);
    now_us += 400 * MS;
    answer(oldest_in(1, JOB_RUNS));
    assert_int_equal(record(1)->service_us, 500 * MS);
    arrive(1);
    now_us += (uint64_t)S << 20; // no sum runs over
    answer(oldest_in(1, JOB_RUNS));
    assert_int_equal(record(1)->service_us, (3 * 500 * MS + UINT32_MAX / 8) / 4);
}

/* At most 4 x share requests wait, and none that would have to wait longer than the timeout. */
static void test_requests_that_would_wait_too_long_are_refused(void **state)
{
    static const struct {
        uint64_t service_us, timeout_us, age_us;
        uint32_t parked;
    } rows[] = {
        {30 * MS, 1 * S, 0, 8},        {250 * MS, 1 * S, 0, 8},        {500 * MS, 1 * S, 0, 4},
        {500 * MS, 999 * MS, 0, 3},    {500 * MS, 250 * MS, 0, 1},     {500 * MS, 249 * MS, 0, 0},
        {30 * MS, 1 * S, 600 * MS, 3}, {500 * MS, 1 * S, 100 * MS, 4},
    };
    (void)state;
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        uint32_t id = 1 + i;
        be_slow(id, rows[i].service_us);
        ks.recent_us = 2 * MS; // others'
        view.timeout_us = rows[i].timeout_us;
        tick();
        burst(id, 2);
        pass(rows[i].age_us);
        burst(id, 20);
        assert_counts(id, 2, rows[i].parked);
        assert_int_equal(count_in(id, JOB_REFUSED), 20 - rows[i].parked);
        assert_int_equal(record(id)->refused, 20 - rows[i].parked);
        answer_all(id);
    }
}

/* A key that has not shown to be slow has no request refused. */
static void test_what_may_be_cheap_is_not_refused(void **state)
{
    (void)state;
    burst(1, 100);
    assert_counts(1, 2, 98);
    pass(20 * MS);
    assert_asks(1, PARK);
    pass(1);
    assert_asks(1, REFUSE); // overdue
    burst(2, 2);
    answer_all(2);
    pass(1 * S);
    arrive(2);
    pass(300 * MS);
    answer_all(2); // slow, once
    burst(2, 50);
    assert_counts(2, 2, 48);
}

/* While the store answers nothing it is slow itself, and its keys need not be. */
static void test_nothing_is_refused_while_the_store_stands_still(void **state)
{
    (void)state;
    be_slow(1, 500 * MS);
    burst(1, 20);
    assert_asks(1, REFUSE);
    stall(100 * MS);
    assert_asks(1, REFUSE);
    stall(1);
    assert_asks(1, PARK);
    view.answered_us = now_us; // to another worker
    tick();
    assert_asks(1, REFUSE);
}

/* While all requests take long nobody is to blame: it waits. */
static void test_nothing_is_refused_that_does_not_stand_out(void **state)
{
    (void)state;
    be_slow(1, 500 * MS);
    burst(1, 20);
    ks.recent_us = 125 * MS;
    assert_asks(1, REFUSE);
    ks.recent_us = 125 * MS + 1;
    assert_asks(1, PARK);
    assert_true(hg_keyshare_is_dear(&ks, record(1), answered_us, now_us));
}

/* An average, of all answers. */
static void test_what_requests_took_lately(void **state)
{
    (void)state;
    struct job *job = arrive(1); // not watched
    now_us += 18 * MS;
    answer(job);
    assert_int_equal(ks.recent_us, 3 * MS);
    burst(2, 2);
    now_us += 19 * MS;
    answer(oldest_in(2, JOB_RUNS));
    assert_int_equal(ks.recent_us, 4 * MS);
    end(oldest_in(2, JOB_RUNS), false);
    assert_int_equal(ks.recent_us, 4 * MS);
}

/* What was under way in a silence is old, and tells nothing of how long others would wait. */
static void test_nothing_is_refused_just_after_a_silence(void **state)
{
    (void)state;
    ks.usual.us = 2 * MS;
    be_slow(1, 500 * MS);
    burst(1, 20);
    assert_asks(1, REFUSE);
    stall(300 * MS);
    others_have_an_answer();
    assert_asks(1, REFUSE); // that was none yet
    stall(301 * MS);
    others_have_an_answer();
    assert_asks(1, PARK);
    pass(1 * S - 1);
    assert_asks(1, PARK);
    pass(1);
    assert_asks(1, REFUSE);
}

static void test_no_key_is_overdue_while_the_store_stands_still(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t id = 1 + i;
        burst(id, 10);
        pass(10 * MS);
        answer(oldest_in(id, JOB_RUNS));
        assert_counts(id, 9, 0);
        stall(900 * MS);
        burst(id, 10);
        assert_counts(id, 19, 0);
        assert_false(hg_keyshare_is_dear(&ks, record(id), answered_us, now_us));
        if (i == 0) {
            others_have_an_answer(); // the key's requests have none
        } else {
            view.answered_us = now_us; // to another worker
            tick();
        }
        burst(id, 1);
        assert_int_not_equal(count_in(id, JOB_RUNS), 20);
        assert_true(hg_keyshare_is_dear(&ks, record(id), answered_us, now_us));
    }
}

/* Clients give up while the store stands still: their key takes nothing from other keys for that.
 */
static void test_a_request_given_up_while_the_store_stands_still(void **state)
{
    (void)state;
    burst(1, 10);
    pass(10 * MS);
    answer(oldest_in(1, JOB_RUNS));
    assert_counts(1, 9, 0);
    stall(300 * MS);
    end(oldest_in(1, JOB_RUNS), false);
    assert_int_equal(ks.unproven_out, 0);
    burst(2, 3);
    assert_counts(2, 2, 1);
    others_have_an_answer();
    assert_int_not_equal(ask(1), HG_KEYSHARE_GO); // it is overdue now
    assert_int_equal(ks.unproven_out, 10);
}

/* ---- several keys ---- */

/* The only key takes nothing from others. A key is active for two seconds after it had a ticket. */
static void test_the_only_active_key_has_no_share(void **state)
{
    (void)state;
    others = 0;
    pass(2 * S + 10 * MS);
    burst(1, 30);
    assert_counts(1, 30, 0);
    pass(100 * MS);
    assert_true(hg_keyshare_is_dear(&ks, record(1), answered_us, now_us));
    burst(1, 30);
    assert_counts(1, 60, 0);
    pass(1 * S);
    assert_asks(1, GO);
    view.started++;
    tick();
    assert_int_not_equal(ask(1), HG_KEYSHARE_GO);
    pass(1 * S);
    assert_int_not_equal(ask(1), HG_KEYSHARE_GO);
    pass(1 * S);
    assert_asks(1, GO);
}

/* Of a new line nothing is known: what comes at once, from another server perhaps, has a share. */
static void test_in_the_first_second_others_may_come(void **state)
{
    (void)state;
    memset(&counts, 0, sizeof counts);
    hg_keyshare_init(&ks, &counts);
    others = 0;
    view.started = 0;
    tick();
    burst(1, 30);
    assert_counts(1, 2, 28);
    pass(990 * MS);
    assert_asks(1, REFUSE);
    pass(1 * S + 20 * MS);
    release(record(1));
    assert_counts(1, 30, 0);
}

static void test_unproven_keys_have_half_together(void **state)
{
    (void)state;
    use(25, 64, 40); // 10 each, 20 together
    burst(1, 11);
    assert_counts(1, 10, 1);
    burst(2, 11);
    assert_counts(2, 10, 1);
    assert_int_equal(ks.unproven_out, 20);
    burst(3, 10);
    assert_counts(3, 1, 9); // one each
    burst(4, 10);
    assert_counts(4, 1, 9);
    assert_int_equal(ks.unproven_out, 22);
    pass(10 * MS);
    answer(oldest_in(1, JOB_RUNS)); // proven: its 9 do not count
    assert_counts(1, 10, 0);
    assert_int_equal(ks.unproven_out, 12);
    release(record(3));
    assert_counts(3, 9, 1);
    release(record(4));
    assert_counts(4, 1, 9);
    assert_int_equal(ks.unproven_out, 20);
}

/* Another key of the same chain is engaged, so that even a first request is looked at. */
static void test_a_key_that_was_not_slow_may_have_one(void **state)
{
    (void)state;
    be_slow(5, 500 * MS);
    burst(6, 2);
    answer_all(6);
    pass(1 * S);
    arrive(5 + HG_KEYSHARE_CHAINS);
    arrive(6 + HG_KEYSHARE_CHAINS);
    burst(1, 2);
    burst(2, 2);
    assert_int_equal(ks.unproven_out, 4);
    assert_asks(5, PARK);
    burst(6, 2);
    assert_counts(6, 1, 1);
    answer(oldest_in(1, JOB_RUNS));
    assert_asks(5, GO);
}

static void test_keys_in_one_chain_are_kept_apart(void **state)
{
    static const uint32_t same = 1 + HG_KEYSHARE_CHAINS;
    (void)state;
    burst(1, 5);
    burst(same, 5);
    assert_counts(1, 2, 3);
    assert_counts(same, 2, 3);
    assert_ptr_not_equal(record(1), record(same));
    assert_int_equal(hg_keyshare_count(&counts, 1), 4);
    answer(oldest_in(same, JOB_RUNS));
    assert_counts(same, 4, 0);
    assert_counts(1, 2, 3);
    answer_all(same);
    burst(same + HG_KEYSHARE_CHAINS, 1); // a third one's first is nobody's second
    assert_null(record(same + HG_KEYSHARE_CHAINS));
}

static void test_requests_on_other_workers_count(void **state)
{
    (void)state;
    elsewhere = 1;
    burst(1, 3);
    assert_counts(1, 1, 2);
    elsewhere = 0;
    release(record(1));
    assert_counts(1, 2, 1);
    view.usual_us = 100;
    use(50, 64, 16); // a share of 8, and as many before a key is watched
    burst(2 + HG_KEYSHARE_CHAINS, 8);
    elsewhere = 7;
    assert_asks(2, GO);
    assert_null(record(2));
    elsewhere = 8;
    assert_asks(2, GO);
    assert_non_null(record(2));
    arrive(2);
    assert_asks(2, PARK); // one here, eight there
}

/* ---- what the record says ---- */

static void test_since_when_the_share_binds(void **state)
{
    (void)state;
    be_slow(1, 500 * MS);
    assert_int_equal(record(1)->held_us, 0);
    burst(1, 3);
    uint64_t held_us = now_us;
    assert_int_equal(record(1)->held_us, held_us);
    pass(10 * MS);
    burst(1, 10);
    assert_int_equal(record(1)->held_us, held_us);
    assert_int_equal(record(1)->refused_us, now_us);
    assert_int_equal(record(1)->refused, 7);
    record(1)->held_us = 0; // the user: it does not bind any more
    assert_asks(1, REFUSE);
    assert_int_equal(record(1)->held_us, now_us);
    assert_int_equal(record(1)->refused, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_dear_key_has_its_share),
        TEST(test_what_is_dear),
        TEST(test_requests_without_an_answer),
        TEST(test_mean_service_of_a_key),
        TEST(test_requests_that_would_wait_too_long_are_refused),
        TEST(test_what_may_be_cheap_is_not_refused),
        TEST(test_nothing_is_refused_while_the_store_stands_still),
        TEST(test_nothing_is_refused_that_does_not_stand_out),
        TEST(test_what_requests_took_lately),
        TEST(test_nothing_is_refused_just_after_a_silence),
        TEST(test_no_key_is_overdue_while_the_store_stands_still),
        TEST(test_a_request_given_up_while_the_store_stands_still),
        TEST(test_the_only_active_key_has_no_share),
        TEST(test_in_the_first_second_others_may_come),
        TEST(test_unproven_keys_have_half_together),
        TEST(test_a_key_that_was_not_slow_may_have_one),
        TEST(test_keys_in_one_chain_are_kept_apart),
        TEST(test_requests_on_other_workers_count),
        TEST(test_since_when_the_share_binds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
