// t_serverslow - when a server is slow, by what its siblings take, or by what it usually takes
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/serverslow.h"

#define MS ((uint64_t)1000)
#define S  ((uint64_t)1000000)

static uint64_t now_us = 1000 * S;

/* The seconds that pass until it is slow, or no longer is; 1000: it stays as it is. */
static unsigned until(struct hg_serverslow *server, bool is_slow, uint64_t p50_us,
                      uint64_t siblings_us, unsigned factor)
{
    for (unsigned n = 1; n < 1000; n++) {
        hg_serverslow_look(server, p50_us, siblings_us, factor, now_us += S);
        if (server->is_slow == is_slow)
            return n;
    }
    return 1000;
}

static void test_beside_siblings(void **state)
{
    (void)state;
    struct hg_serverslow server = {0};
    hg_serverslow_look(&server, 1 * MS, 1 * MS, 4, now_us);
    assert_int_equal(until(&server, true, 100 * MS, 1 * MS, 4), 2);
    assert_int_equal((int)hg_serverslow_factor(&server), 100);
    assert_int_equal(until(&server, false, 1 * MS, 1 * MS, 4), 5);
    assert_int_equal(until(&server, true, 20 * MS, 10 * MS, 4), 1000); // only twice as long
    assert_int_equal(until(&server, true, 4 * MS, 100, 4), 1000);      // not 5 ms more
    assert_int_equal(until(&server, true, 100 * MS, 1 * MS, 0), 1000); // switched off
}

/* Three times as long is too little to be slow, and too much to be slow no longer. */
static void test_hysteresis(void **state)
{
    (void)state;
    struct hg_serverslow server = {0};
    hg_serverslow_look(&server, 10 * MS, 10 * MS, 4, now_us);
    assert_int_equal(until(&server, true, 30 * MS, 10 * MS, 4), 1000);
    assert_int_equal(until(&server, true, 50 * MS, 10 * MS, 4), 2);
    assert_int_equal(until(&server, false, 30 * MS, 10 * MS, 4), 1000);
    assert_int_equal(until(&server, false, 0, 10 * MS, 4), 5); // nobody asks it any more
    hg_serverslow_look(&server, 50 * MS, 10 * MS, 4, now_us += S);
    hg_serverslow_look(&server, 10 * MS, 10 * MS, 4, now_us += S);
    hg_serverslow_look(&server, 50 * MS, 10 * MS, 4, now_us += S);
    assert_false(server.is_slow); // a second now and then is none
    hg_serverslow_look(&server, 50 * MS, 10 * MS, 4, now_us += S);
    assert_true(server.is_slow);
    hg_serverslow_look(&server, 50 * MS, 10 * MS, 0, now_us += S);
    assert_false(server.is_slow); // switched off meanwhile
}

/* Alone it is slow by its usual, which becomes what it takes after some minutes. */
static void test_alone(void **state)
{
    (void)state;
    struct hg_serverslow server = {0};
    for (int n = 0; n < 60; n++)
        hg_serverslow_look(&server, 2 * MS, 0, 4, now_us += S);
    assert_int_equal(server.usual_us, 2 * MS);
    assert_int_equal(until(&server, true, 40 * MS, 0, 4), 2);
    unsigned passed = until(&server, false, 40 * MS, 0, 4);
    assert_true(passed > 120 && passed < 400);
    hg_serverslow_look(&server, 2 * MS, 0, 4, now_us += S);
    assert_true(server.usual_us < 20 * MS); // it falls fast
}

static void test_median_of_others(void **state)
{
    (void)state;
    const uint64_t three[] = {1, 5, 100}, two[] = {3, 9}, same[] = {4, 4, 4, 4};
    assert_int_equal(hg_serverslow_median_of_others(three, 3, 100), 1);
    assert_int_equal(hg_serverslow_median_of_others(three, 3, 1), 5);
    assert_int_equal(hg_serverslow_median_of_others(three, 3, 5), 1);
    assert_int_equal(hg_serverslow_median_of_others(two, 2, 3), 9);
    assert_int_equal(hg_serverslow_median_of_others(two, 2, 9), 3);
    assert_int_equal(hg_serverslow_median_of_others(same, 4, 4), 4);
    assert_int_equal(hg_serverslow_median_of_others(two, 1, 3), 0);
    assert_int_equal(hg_serverslow_median_of_others(two, 0, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside_siblings),
        cmocka_unit_test(test_hysteresis),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_median_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
