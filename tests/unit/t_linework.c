// t_linework - which requests of a line are short, and whether these wait in the store
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/linework.h"

#define MS 1000u
#define S  1000000u

static struct hg_linework line;
static struct hg_workclass fast, slow;
static uint64_t now_us;

static int setup(void **state)
{
    (void)state;
    now_us = 10 * S;
    hg_linework_init(&line, now_us);
    fast = slow = (struct hg_workclass){0};
    return 0;
}

/* `n` answers, a millisecond apart. Returns whether the last was short. */
static bool note(struct hg_workclass *class, uint32_t n, uint64_t service_us)
{
    bool is_short = false;
    for (uint32_t i = 0; i < n; i++) {
        now_us += 1 * MS;
        line.done_us += hg_linework_note(&line, class, service_us, false, now_us, &is_short);
        if (i % 5 == 0)
            hg_linework_tick(&line, now_us);
    }
    return is_short;
}

static uint32_t over(void)
{
    return hg_linework_over_us(&line, now_us);
}

/* ---- which are short ---- */

static void test_what_is_known_to_be_short(void **state)
{
    static const struct {
        uint32_t service_us;
        bool is_short;
    } rows[] = {{100, true}, {2 * MS, true}, {8 * MS, true}, {8 * MS + 4, false}, {1 * S, false}};
    (void)state;
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        setup(NULL);
        assert_true(note(&fast, 64, 2 * MS));
        assert_int_equal(note(&slow, 64, rows[i].service_us), rows[i].is_short);
        assert_int_equal(line.has_long, !rows[i].is_short);
    }
}

/* What seven answers tell is nothing yet; with eight it must be far from the shortest, as a mean of
   so few is off by half now and then. */
static void test_what_is_new(void **state)
{
    static const struct {
        uint32_t answers, service_us;
        bool is_short, has_new, has_long;
    } rows[] = {{7, 2 * MS, false, true, false},  {7, 200 * MS, false, true, false},
                {20, 2 * MS, true, true, false},  {20, 32 * MS, true, true, false},
                {20, 33 * MS, false, true, true}, {20, 200 * MS, false, true, true}};
    (void)state;
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        setup(NULL);
        note(&fast, 64, 2 * MS);
        now_us += 2 * S;
        hg_linework_tick(&line, now_us);
        note(&fast, 5, 2 * MS);
        now_us += 1 * S;
        hg_linework_tick(&line, now_us);
        assert_false(line.has_new);
        assert_int_equal(note(&slow, rows[i].answers, rows[i].service_us), rows[i].is_short);
        assert_int_equal(line.has_new, rows[i].has_new);
        assert_int_equal(line.has_long, rows[i].has_long);
    }
}

/* The shortest class of the last two seconds; then another may be that. */
static void test_the_shortest_is_forgotten(void **state)
{
    (void)state;
    note(&fast, 64, 2 * MS);
    assert_false(note(&slow, 64, 50 * MS));
    for (uint32_t i = 0; i < 3; i++) {
        now_us += 1 * S;
        hg_linework_tick(&line, now_us);
        note(&slow, 1, 50 * MS);
    }
    assert_true(note(&slow, 1, 50 * MS));
    assert_true(note(&fast, 1, 2 * MS));
    assert_false(note(&slow, 1, 50 * MS));
}

/* ---- do they wait ---- */

/* One that takes far longer tells nothing; a few in a row do. */
static void test_short_ones_that_wait(void **state)
{
    (void)state;
    note(&fast, 64, 2 * MS);
    note(&slow, 64, 200 * MS);
    note(&fast, 16, 2 * MS);
    assert_int_equal(over(), 0);
    note(&fast, 1, 900 * MS);
    assert_int_equal(over(), 0);
    note(&fast, 40, 52 * MS);
    assert_in_range(over(), 30 * MS, 50 * MS);
    note(&fast, 100, 2 * MS);
    assert_int_equal(over(), 0);
}

/* By a third, and 2 ms; or it is nothing to speak of. */
static void test_a_little_longer_is_nothing(void **state)
{
    static const struct {
        uint32_t usual_us, service_us;
        bool waits;
    } rows[] = {
        {500, 2400, false}, {500, 2700, true}, {30 * MS, 39 * MS, false}, {30 * MS, 41 * MS, true}};
    (void)state;
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        setup(NULL);
        note(&fast, 64, rows[i].usual_us);
        note(&slow, 64, 2 * S);
        note(&fast, 200, rows[i].service_us);
        assert_int_equal(over() > 0, rows[i].waits);
    }
}

static void test_what_is_in_time(void **state)
{
    (void)state;
    assert_true(hg_linework_is_in_time(&line, 500, 2500));
    assert_false(hg_linework_is_in_time(&line, 500, 2501));
    assert_true(hg_linework_is_in_time(&line, 30 * MS, 40 * MS));
    assert_false(hg_linework_is_in_time(&line, 30 * MS, 40 * MS + 1));
    line.slower_us = 30 * MS;
    assert_true(hg_linework_is_in_time(&line, 30 * MS, 80 * MS));
    assert_false(hg_linework_is_in_time(&line, 30 * MS, 80 * MS + 1));
}

/* Without long ones beside them it is no matter of theirs; and what was told a second ago neither.
 */
static void test_only_beside_others_and_lately(void **state)
{
    (void)state;
    note(&fast, 64, 2 * MS);
    for (uint32_t i = 0; i < 2; i++) {
        now_us += 1 * S;
        hg_linework_tick(&line, now_us);
    }
    note(&fast, 64, 52 * MS);
    assert_int_equal(over(), 0);
    note(&slow, 10, 200 * MS);
    note(&fast, 64, 52 * MS);
    assert_true(over() > 0);
    now_us += 1 * S;
    assert_int_equal(over(), 0);
}

/* They have become slower, for whatever reason: that is no queue. A tenth of the belief goes each
   second, and all that is more than they take. */
static void test_what_is_forgiven(void **state)
{
    (void)state;
    note(&fast, 64, 2 * MS);
    note(&slow, 64, 200 * MS);
    note(&fast, 200, 22 * MS);
    assert_int_equal(over() / MS, 19);
    hg_linework_forgive(&line);
    assert_int_equal(over(), 0);
    note(&fast, 200, 72 * MS);
    assert_in_range(over(), 45 * MS, 50 * MS);
    note(&fast, 200, 22 * MS);
    assert_int_equal(over(), 0);
    for (uint32_t i = 0; i < 5; i++) {
        now_us += 1 * S;
        hg_linework_tick(&line, now_us);
        note(&slow, 1, 200 * MS);
        note(&fast, 10, 22 * MS);
    }
    assert_true(over() > 0);
    hg_linework_forgive(&line);
    note(&fast, 100, 2 * MS);
    assert_true(line.slower_us < 1 * MS);
}

/* ---- work ---- */

/* What is not known yet counts without the time for which it waited in the store, as short ones
   tell; so its first answers do not look like more work, the longer the queue is. */
static void test_waiting_is_no_work(void **state)
{
    bool is_short;
    (void)state;
    note(&fast, 64, 2 * MS);
    note(&slow, 1, 300 * MS);
    note(&fast, 100, 102 * MS);
    now_us += 1 * MS;
    uint32_t work_us = hg_linework_note(&line, &slow, 300 * MS, false, now_us, &is_short);
    assert_in_range(work_us, 198 * MS, 205 * MS);
    assert_int_equal(hg_linework_note(&line, &slow, 30 * MS, false, now_us, &is_short), 2 * MS);
    assert_int_equal(hg_linework_note(&line, &fast, 102 * MS, false, now_us, &is_short), 2 * MS);
}

/* Three requests of 20 ms end each 10 ms: six slots. */
static void test_what_the_store_does_at_a_time(void **state)
{
    bool is_short;
    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        now_us += 10 * MS;
        for (uint32_t n = 0; n < 3; n++)
            line.done_us += hg_linework_note(&line, &fast, 20 * MS, false, now_us, &is_short);
        hg_linework_tick(&line, now_us);
    }
    assert_true(line.slots > 5.9 && line.slots < 6.1);
    assert_true(hg_linework_explains(&line, 9));
    assert_false(hg_linework_explains(&line, 10));
}

/* Of two workers one has the short requests, and one the long ones. Both know of both. */
static void test_several_workers(void **state)
{
    struct hg_linework of_short, *of_long = &line;
    bool is_short;
    (void)state;
    note(&fast, 64, 2 * MS);
    of_short = line;
    hg_linework_init(of_long, now_us);
    struct hg_linework_classes others = hg_linework_tell(&of_short, now_us);
    assert_int_equal(others.shortest_us, 2 * MS);
    assert_false(others.has_long);
    assert_true(note(&slow, 64, 300 * MS)); // the shortest that is known
    hg_linework_hear(of_long, &others);
    assert_false(note(&slow, 1, 300 * MS));
    others = hg_linework_tell(of_long, now_us);
    assert_true(others.has_long);
    assert_int_equal(others.shortest_us, 300 * MS); // its own, not what it has heard
    hg_linework_hear(&of_short, &others);
    assert_true(of_short.has_long);
    for (uint32_t i = 0; i < 64; i++)
        (void)hg_linework_note(&of_short, &fast, 52 * MS, false, now_us, &is_short);
    others = hg_linework_tell(&of_short, now_us);
    assert_in_range(others.over_us, 40 * MS, 50 * MS);
    assert_int_equal(over(), 0);
    hg_linework_hear(of_long, &others);
    assert_int_equal(over(), others.over_us);
    others = HG_LINEWORK_NO_CLASSES; // they have gone
    hg_linework_hear(of_long, &others);
    assert_int_equal(over(), 0);
    assert_true(note(&slow, 1, 300 * MS));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_known_to_be_short),
        TEST(test_what_is_new),
        TEST(test_the_shortest_is_forgotten),
        TEST(test_short_ones_that_wait),
        TEST(test_a_little_longer_is_nothing),
        TEST(test_what_is_in_time),
        TEST(test_only_beside_others_and_lately),
        TEST(test_what_is_forgiven),
        TEST(test_waiting_is_no_work),
        TEST(test_what_the_store_does_at_a_time),
        TEST(test_several_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
