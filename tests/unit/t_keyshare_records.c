// t_keyshare_records - which keys have a record, since when, and for how long
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keysharerig.h"

/* ---- records ---- */

static void test_a_record_takes_over_what_is_engaged(void **state)
{
    static const uint32_t same = 1 + HG_KEYSHARE_CHAINS, order[] = {4, 1, 7, 0, 6, 3, 9, 8};
    struct hg_list *at;
    (void)state;
    view.usual_us = 500; // 10 go before a key has a record
    use(25, 64, 40);
    struct job *first = &jobs[job_count];
    for (uint32_t i = 0; i < 10; i++)
        arrive_in_line(1);
    for (uint32_t i = 0; i < 3; i++)
        arrive_in_line(same);
    assert_null(record(1));
    for (uint32_t i = 0; i < HG_COUNT_OF(order); i++) {
        now_us += i % 2; // two at a time
        start(&first[order[i]]);
    }
    start(&first[11]);
    arrive(1);
    assert_int_equal(record(1)->out, 8);
    assert_int_equal(record(1)->engaged, 10);
    assert_int_equal(record(1)->started, 8);
    at = &record(1)->running;
    for (uint32_t i = 0; i < HG_COUNT_OF(order); i++) {
        uint64_t since_us = first[order[i]].part.since_us;
        assert_int_equal(((struct job *)(at = at->next))->part.since_us, since_us);
    }
    assert_ptr_equal(at->next, &record(1)->running);
    assert_ptr_equal(record(1)->lined.next, &first[2].part.node);
    assert_ptr_equal(record(1)->lined.prev, &first[5].part.node);
    assert_ptr_equal(first[2].part.key, record(1));
    for (uint32_t i = 10; i < 13; i++)
        assert_null(first[i].part.key);
    end(&first[2], false);
    start(&first[5]);
    answer_all(1);
    answer_all(same);
    assert_int_equal(record(1)->engaged, 0);
    assert_int_equal(hg_keyshare_count(&counts, 1), 2);
}

static void test_tickets_of_the_last_two_seconds(void **state)
{
    (void)state;
    now_us = now_us / S * S + S;
    tick();
    be_slow(1, 30 * MS);
    be_slow(1, 30 * MS);
    assert_int_equal(record(1)->started, 3); // it was not watched from the start of the second
    be_slow(1, 30 * MS);
    assert_int_equal(record(1)->started, 5);
    pass(1 * S);
    assert_int_equal(record(1)->started, 0);
    assert_int_equal(record(1)->started_before, 5);
    pass(1 * S);
    assert_int_equal(record(1)->started_before, 0);
}

/* One of six things happens to a key whose requests have been answered. */
static void happen(unsigned what, uint32_t id, struct job *job)
{
    if (what == 1) {
        arrive(id + HG_KEYSHARE_CHAINS); // so that the next one is looked at
        assert_asks(id, GO);
    }
    if (what == 2 || what == 3)
        arrive_in_line(id);
    if (what == 3)
        start(&jobs[job_count - 1]);
    if (what == 4)
        strand(id, 1);
    if (what == 5)
        park(job, record(id));
}

static void undo(unsigned what, uint32_t id, struct job *job)
{
    if (what == 2 || what == 3)
        end(&jobs[job_count - 1], false);
    if (what == 4)
        strand(id, -1);
    if (what == 5)
        unpark(job);
}

static void test_idle_records_last_a_second(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 6; what++) {
        uint32_t id = 1 + what;
        struct job *first = burst(id, 2);
        pass(5 * MS);
        answer_all(id);
        uint64_t used_us = now_us;
        if (what > 0) {
            now_us += 500 * MS;
            happen(what, id, first);
            used_us = now_us;
            undo(what, id, first);
        }
        hg_keyshare_sweep(&ks, used_us + 1 * S - 1);
        assert_int_equal(ks.key_count, 1);
        hg_keyshare_sweep(&ks, used_us + 1 * S);
        assert_int_equal(ks.key_count, 0);
        now_us += 2 * S;
    }
}

static void test_records_in_use_stay(void **state)
{
    (void)state;
    burst(1, 2); // engaged
    burst(2, 3);
    while (count_in(2, JOB_RUNS) > 0) { // one waits
        struct job *job = oldest_in(2, JOB_RUNS);
        hg_keyshare_end(&ks, &job->part, true, true, now_us);
        job->state = JOB_DONE;
    }
    strand(3, 1);
    burst(4, 2); // the user has told of it
    answer_all(4);
    record(4)->is_pinned = true;
    arrive_in_line(5);
    arrive_in_line(5);
    burst(6, 2);
    answer_all(6);
    hg_keyshare_sweep(&ks, now_us + 9 * S);
    assert_int_equal(ks.key_count, 5);
    assert_null(record(6));
    for (uint32_t id = 1; id < 6; id++)
        assert_non_null(record(id));
    record(4)->is_pinned = false;
    hg_keyshare_sweep(&ks, now_us + 9 * S);
    assert_null(record(4));
    hg_keyshare_sweep(&ks, now_us + 9 * S);
    assert_int_equal(ks.key_count, 4);
}

static void have_record(uint32_t id)
{
    struct job *first = burst(id, 2);
    answer(&first[0]);
    answer(&first[1]);
}

static void test_many_records_do_not_idle(void **state)
{
    (void)state;
    for (uint32_t id = 1; id < HG_KEYSHARE_MOST; id++)
        have_record(id);
    hg_keyshare_sweep(&ks, now_us);
    assert_int_equal(ks.key_count, HG_KEYSHARE_MOST - 1);
    have_record(5000);
    assert_int_equal(ks.key_count, HG_KEYSHARE_MOST);
    arrive(7);
    have_record(5001); // idle ones go before another is made
    assert_int_equal(ks.key_count, 2);
    assert_non_null(record(7));
    assert_non_null(record(5001));
    for (uint32_t id = 1; id <= HG_KEYSHARE_MOST + 5; id++)
        burst(id + 6000, 2);
    assert_true(ks.key_count > HG_KEYSHARE_MOST); // all are needed
    for (uint32_t i = 0; i < job_count; i++)
        if (jobs[i].state == JOB_RUNS)
            answer(&jobs[i]);
    hg_keyshare_sweep(&ks, now_us);
    assert_int_equal(ks.key_count, 0);
}

static void test_each_visits_all(void **state)
{
    static const uint32_t ids[] = {0, 127, 128, 256, 64, 255, 63, 1, 129};
    uint32_t seen = 0, n = 0;
    (void)state;
    assert_null(hg_keyshare_each(&ks, NULL));
    for (uint32_t i = 0; i < HG_COUNT_OF(ids); i++)
        have_record(ids[i]);
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(&ks, key)) != NULL; n++)
        for (uint32_t i = 0; i < HG_COUNT_OF(ids); i++)
            seen |= (uint32_t)(key->id == ids[i]) << i;
    assert_int_equal(n, HG_COUNT_OF(ids));
    assert_int_equal(seen, (1U << HG_COUNT_OF(ids)) - 1);
}

static void test_all_records_are_given_back(void **state)
{
    struct hg_keyshare_key spare[2], *key;
    uint32_t n = 0;
    (void)state;
    assert_null(hg_keyshare_take_record(&ks));
    for (uint32_t id = 0; id < 300; id += 3)
        have_record(id);
    hg_keyshare_give_room(&ks, &spare[0]);
    hg_keyshare_give_room(&ks, &spare[1]);
    assert_ptr_equal(hg_keyshare_take_record(&ks), &spare[1]);
    assert_ptr_equal(hg_keyshare_take_record(&ks), &spare[0]);
    for (; (key = hg_keyshare_take_record(&ks)) != NULL; n++)
        free(key);
    assert_int_equal(n, 100);
    assert_int_equal(ks.key_count, 0);
}

/* A key for which there is no memory has no share; it has one as soon as there is some. */
static void test_no_room(void **state)
{
    (void)state;
    no_room = true;
    burst(1, 50);
    assert_counts(1, 50, 0);
    assert_null(asked);
    no_room = false;
    arrive(1);
    assert_counts(1, 50, 1);
    assert_int_equal(record(1)->out, 50);
    answer(oldest_in(1, JOB_RUNS));
    assert_counts(1, 50, 0);
}

static bool goes(uint32_t id)
{
    return hg_keyshare_is_free(&ks, id, hg_keyshare_find(&ks, id), now_us);
}

/* What is proven goes on without another look, until its oldest may be overdue. */
static void test_a_proven_key_is_calm(void **state)
{
    (void)state;
    struct job *first = burst(1, 2);
    assert_false(goes(1));
    pass(10 * MS);
    answer(first);
    assert_true(record(1)->out == 1);
    assert_true(goes(1)); // proven, and its oldest began 10 ms ago
    assert_int_equal(record(1)->calm_us, first[1].part.since_us + 20 * MS);
    pass(10 * MS - 1);
    assert_true(goes(1));
    now_us += 1;
    assert_false(goes(1));
    assert_asks(1, GO);    // not overdue yet, though
    assert_false(goes(1)); // but perhaps at once
    arrive(1);
    answer(&first[1]);
    assert_true(goes(1));
    strand(1, 1);
    assert_false(goes(1));
    strand(1, -1);
    assert_asks(1, GO);
    assert_true(goes(1));
    record(1)->calm_us = 0;
    ks.usual.us = tenant.usual.us = 400 * MS;
    assert_asks(1, GO);
    assert_int_equal(record(1)->calm_us, now_us + 200 * MS); // no longer than that
    pass(200 * MS);
    assert_false(goes(1));
}

/* It was calm, and what is usual has become less: one slow answer ends it. */
static void test_a_slow_answer_ends_the_calm(void **state)
{
    (void)state;
    tenant.usual.us = 100 * MS;
    struct job *first = burst(1, 3);
    pass(10 * MS);
    answer(first);
    assert_true(goes(1));
    tenant.usual.us = 2 * MS;
    pass(30 * MS);
    assert_true(goes(1));
    answer(&first[1]);
    assert_false(goes(1));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_record_takes_over_what_is_engaged),
        TEST(test_tickets_of_the_last_two_seconds),
        TEST(test_idle_records_last_a_second),
        TEST(test_records_in_use_stay),
        TEST(test_many_records_do_not_idle),
        TEST(test_each_visits_all),
        TEST(test_all_records_are_given_back),
        TEST(test_no_room),
        TEST(test_a_proven_key_is_calm),
        TEST(test_a_slow_answer_ends_the_calm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
