// t_load_arrivals - tests of load/rate and load/arrivals: the moments of an open loop
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/arrivals.h"
#include "load/rate.h"

#define SECOND UINT64_C(1000000000)

static struct hg_rate rate_of(const char *text)
{
    struct hg_rate rate;
    assert_int_equal(hg_rate_parse(text, 1e8, 1e6, &rate), HG_RATE_FINE);
    return rate;
}

static void a_rate_is_a_list_of_steps(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("500");
    assert_int_equal(rate.count, 1);
    assert_true(rate.step[0].at_ns == 0 && rate.step[0].rate == 500);
    rate = rate_of("500@0,2000.5@2.5/0@10");
    assert_int_equal(rate.count, 3);
    assert_true(rate.step[1].at_ns == 5 * SECOND / 2 && rate.step[1].rate == 2000.5);
    assert_int_equal(hg_rate_step_end(&rate, 0), 5 * SECOND / 2);
    assert_int_equal(hg_rate_step_end(&rate, 2), UINT64_MAX);
    assert_true(hg_rate_ends(&rate));
    rate = rate_of("0,max@1");
    assert_int_equal(rate.count, 2);
    assert_false(hg_rate_ends(&rate));
    assert_int_equal(rate_of("0").count, 0);
    assert_int_equal(rate_of("max").count, 0);
}

static void what_is_no_rate_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum hg_rate_error error;
    } bad[] = {
        {"", HG_RATE_BAD_WORD},
        {"x", HG_RATE_BAD_WORD},
        {"-1", HG_RATE_BAD_WORD},
        {"1e3", HG_RATE_BAD_WORD},
        {"100000001", HG_RATE_BAD_WORD},
        {"5@", HG_RATE_BAD_WORD},
        {"@5", HG_RATE_BAD_WORD},
        {"5@1@2", HG_RATE_BAD_WORD},
        {"5,", HG_RATE_BAD_WORD},
        {",5", HG_RATE_BAD_WORD},
        {"5@0,5@1000001", HG_RATE_BAD_WORD},
        {"5@1", HG_RATE_NO_START},
        {"5,6", HG_RATE_NO_ORDER},
        {"5,6@2,7@2", HG_RATE_NO_ORDER},
        {"5,6@2,7@1", HG_RATE_NO_ORDER},
    };
    struct hg_rate rate = {.count = 77};
    for (size_t i = 0; i < HG_COUNT_OF(bad); i++) {
        assert_int_equal(hg_rate_parse(bad[i].text, 1e8, 1e6, &rate), bad[i].error);
        assert_int_equal(rate.count, 77);
    }
    char many[1000] = "1";
    for (int i = 1; i <= HG_RATE_STEPS_MAX; i++) {
        size_t len = strlen(many);
        if (i == HG_RATE_STEPS_MAX) {
            assert_int_equal(hg_rate_parse(many, 1e8, 1e6, &rate), HG_RATE_FINE);
            assert_int_equal(rate.count, HG_RATE_STEPS_MAX);
        }
        snprintf(many + len, sizeof many - len, ",1@%d", i);
    }
    assert_int_equal(hg_rate_parse(many, 1e8, 1e6, &rate), HG_RATE_TOO_MANY);
    memset(many, '1', sizeof many - 1);
    assert_int_equal(hg_rate_parse(many, 1e8, 1e6, &rate), HG_RATE_BAD_WORD);
}

static void numbers_have_their_moments(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("0,100@1,0@2,400@5,0@6");
    struct hg_rate_cursor cursor = {.rate = &rate};
    assert_int_equal(hg_rate_when(&cursor, 0), SECOND);
    assert_int_equal(hg_rate_when(&cursor, 50), 3 * SECOND / 2);
    assert_int_equal(hg_rate_when(&cursor, 99.5), SECOND + 995 * SECOND / 1000);
    assert_int_equal(hg_rate_when(&cursor, 100), 5 * SECOND);
    assert_int_equal(hg_rate_when(&cursor, 499), 5 * SECOND + 399 * SECOND / 400);
    assert_int_equal(hg_rate_when(&cursor, 500), UINT64_MAX);
    assert_int_equal(hg_rate_when(&cursor, 501), UINT64_MAX);
}

/* A number that a step does not complete goes on in the next: nothing is lost or made up. */
static void a_step_keeps_the_part_of_a_request(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("1,10@1.5");
    struct hg_rate_cursor cursor = {.rate = &rate};
    assert_int_equal(hg_rate_when(&cursor, 1), SECOND);
    assert_int_equal(hg_rate_when(&cursor, 2), 3 * SECOND / 2 + SECOND / 20);
    assert_int_equal(hg_rate_when(&cursor, 3), 3 * SECOND / 2 + 3 * SECOND / 20);
}

static struct hg_arrivals start(enum hg_arrivals_kind kind, const struct hg_rate *rate,
                                uint32_t thread, uint32_t threads, uint32_t all, uint64_t end_ns)
{
    struct hg_arrivals arrivals;
    struct hg_arrivals_share share = {thread, threads, all};
    hg_arrivals_init(&arrivals, kind, rate, &share, 1000 + thread, 7, end_ns);
    return arrivals;
}

static int compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

/* The arrivals of all threads, in order; how many. */
static size_t gather(enum hg_arrivals_kind kind, const struct hg_rate *rate, uint32_t threads,
                     uint32_t all, uint64_t end_ns, uint64_t *at, size_t room)
{
    size_t count = 0;
    for (uint32_t thread = 0; thread < threads && thread < all; thread++) {
        struct hg_arrivals arrivals = start(kind, rate, thread, threads, all, end_ns);
        uint64_t last = 0;
        for (; arrivals.next_ns != UINT64_MAX; hg_arrivals_advance(&arrivals)) {
            assert_true(arrivals.next_ns >= last && arrivals.next_ns < end_ns);
            assert_true(count < room);
            last = at[count++] = arrivals.next_ns;
        }
    }
    qsort(at, count, sizeof *at, compare);
    return count;
}

#define ROOM 200000
static uint64_t moments[ROOM], others[ROOM];

static void threads_share_steady_arrivals_exactly(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("700,1300@1.25,0@2,50@3");
    size_t wanted = gather(HG_ARRIVALS_STEADY, &rate, 1, 1, 7 + 4 * SECOND, others, ROOM);
    assert_int_equal(wanted, 875 + 975 + 50);
    for (uint32_t threads = 1; threads <= 5; threads++) {
        for (uint32_t all = threads; all <= 13; all++) {
            size_t n =
                gather(HG_ARRIVALS_STEADY, &rate, threads, all, 7 + 4 * SECOND, moments, ROOM);
            assert_int_equal(n, wanted);
            assert_memory_equal(moments, others, n * sizeof *moments);
        }
    }
    for (size_t i = 0; i < 875; i++) {
        assert_in_range(moments[i], 7 + i * SECOND / 700 - 1, 7 + i * SECOND / 700 + 1);
    }
    assert_int_equal(moments[875], 7 + 5 * SECOND / 4);
    assert_int_equal(moments[875 + 975], 7 + 3 * SECOND);
}

static void steady_arrivals_do_not_drift(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("3");
    struct hg_arrivals arrivals = start(HG_ARRIVALS_STEADY, &rate, 1, 2, 5, UINT64_MAX - 1);
    for (int i = 0; i < 1000000; i++) {
        hg_arrivals_advance(&arrivals);
    }
    /* connections 1 and 3 of five: two of every five numbers */
    uint64_t number = 1 + UINT64_C(5) * 500000;
    assert_in_range(arrivals.next_ns - 7, number * SECOND / 3 - 1000, number * SECOND / 3 + 1000);
}

/* Variance over mean of the counts of `bins` bins; 1 for a Poisson process. */
static double dispersion(const uint64_t *at, size_t count, uint64_t end_ns, size_t bins)
{
    double mean = (double)count / (double)bins, sum = 0;
    size_t next = 0;
    for (size_t bin = 0; bin < bins; bin++) {
        uint64_t until = 7 + (uint64_t)((double)(end_ns - 7) * (double)(bin + 1) / (double)bins);
        double n = 0;
        for (; next < count && at[next] < until; next++) {
            n++;
        }
        sum += (n - mean) * (n - mean);
    }
    return sum / (double)bins / mean;
}

/* 100,000 arrivals in 2,000 bins: the mean is known to 0.3 %, the dispersion to 3 %; five of those
 * are allowed. */
static void poisson_arrivals_vary_as_much_as_their_mean(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("10000");
    uint64_t end_ns = 7 + 10 * SECOND;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        size_t n = gather(HG_ARRIVALS_POISSON, &rate, threads, 7, end_ns, moments, ROOM);
        assert_in_range(n, 98400, 101600);
        double d = dispersion(moments, n, end_ns, 2000);
        assert_true(d > 0.84 && d < 1.16);
    }
    size_t n = gather(HG_ARRIVALS_STEADY, &rate, 3, 7, end_ns, moments, ROOM);
    assert_int_equal(n, 100000);
    assert_true(dispersion(moments, n, end_ns, 2000) < 0.01);
}

/* A share of 1 in 7 connections has a seventh of the rate. */
static void a_thread_has_its_share_of_poisson_arrivals(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("0,7000@1");
    struct hg_arrivals arrivals = start(HG_ARRIVALS_POISSON, &rate, 6, 7, 7, 7 + 11 * SECOND);
    size_t count = 0;
    assert_true(arrivals.next_ns >= 7 + SECOND);
    for (; arrivals.next_ns != UINT64_MAX; hg_arrivals_advance(&arrivals)) {
        count++;
    }
    assert_in_range(count, 9500, 10500);
}

static void without_a_rate_nothing_arrives(void **state)
{
    (void)state;
    struct hg_rate rate = rate_of("0@0,0@1");
    for (int kind = HG_ARRIVALS_STEADY; kind <= HG_ARRIVALS_POISSON; kind++) {
        struct hg_arrivals arrivals =
            start((enum hg_arrivals_kind)kind, &rate, 0, 1, 1, UINT64_MAX);
        assert_int_equal(arrivals.next_ns, UINT64_MAX);
        hg_arrivals_advance(&arrivals);
        assert_int_equal(arrivals.next_ns, UINT64_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_is_a_list_of_steps),
        cmocka_unit_test(what_is_no_rate_is_refused),
        cmocka_unit_test(numbers_have_their_moments),
        cmocka_unit_test(a_step_keeps_the_part_of_a_request),
        cmocka_unit_test(threads_share_steady_arrivals_exactly),
        cmocka_unit_test(steady_arrivals_do_not_drift),
        cmocka_unit_test(poisson_arrivals_vary_as_much_as_their_mean),
        cmocka_unit_test(a_thread_has_its_share_of_poisson_arrivals),
        cmocka_unit_test(without_a_rate_nothing_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
