// t_loginguard - failed logins slow their address down, and nobody else
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/loginguard.h"

#define S  ((uint64_t)1000000)
#define MS ((uint64_t)1000)

static struct hg_loginguard guard;

static uint64_t ask(uint64_t address, uint64_t now)
{
    uint64_t wait = 12345;
    return hg_loginguard_ask(&guard, address, now, &wait) ? wait : UINT64_MAX;
}

static void failed(uint64_t address, uint32_t n, uint64_t now)
{
    for (uint32_t i = 0; i < n; i++)
        hg_loginguard_tell(&guard, address, false, now);
}

static void test_delays_grow(void **state)
{
    uint64_t now = 100 * S;
    (void)state;
    hg_loginguard_init(&guard, 4);
    for (uint64_t n = 0; n < 40; n++) {
        uint64_t expect = n < 3 ? 0 : (n - 2) * 100 * MS;
        uint64_t wait = ask(7, now);
        assert_int_equal(wait, expect > 2 * S ? 2 * S : expect);
        now += wait;
        failed(7, 1, now);
    }
    assert_int_equal(ask(8, now), 0); // another address
}

static void test_a_success_forgives(void **state)
{
    (void)state;
    hg_loginguard_init(&guard, 4);
    failed(7, 9, 100 * S);
    assert_int_equal(ask(7, 100 * S), 700 * MS);
    hg_loginguard_tell(&guard, 7, true, 101 * S);
    assert_int_equal(ask(7, 101 * S), 0);
    hg_loginguard_tell(&guard, 99, true, 101 * S); // nothing to forgive
}

static void test_time_forgives(void **state)
{
    (void)state;
    hg_loginguard_init(&guard, 4);
    failed(7, 5, 100 * S);
    assert_int_equal(ask(7, 109 * S), 300 * MS);
    assert_int_equal(ask(7, 110 * S), 200 * MS);
    assert_int_equal(ask(7, 125 * S), 100 * MS);
    assert_int_equal(ask(7, 130 * S), 0); // 2 are left
    failed(7, 1, 131 * S);
    assert_int_equal(ask(7, 131 * S), 100 * MS);
    assert_int_equal(ask(7, 200 * S), 0);
    failed(7, 100000, 300 * S);
    assert_int_equal(ask(7, 300 * S + 980 * S), 0); // never more than 1000 s
}

static void test_attempts_at_once_queue_up(void **state)
{
    uint64_t refused = 0, now = 100 * S;
    (void)state;
    hg_loginguard_init(&guard, 4);
    failed(7, 7, now); // 500 ms
    for (uint64_t i = 1; i <= 20; i++)
        assert_int_equal(ask(7, now), i * 500 * MS);
    for (int i = 0; i < 1000; i++)
        refused += ask(7, now) == UINT64_MAX;
    assert_int_equal(refused, 1000);                  // 10 s are enough of a queue
    assert_int_equal(ask(7, now + 10 * S), 400 * MS); // which has been worked off; one forgiven
}

/* However many addresses fail, memory stays; the newest of a set are kept. */
static void test_the_table_is_bounded(void **state)
{
    (void)state;
    hg_loginguard_init(&guard, 4);
    for (uint64_t address = 0; address < 100000; address++)
        failed(address, 3, 100 * S + address);
    for (uint64_t address = 100000 - 1024; address < 100000; address++)
        assert_int_equal(ask(address, 101 * S), 100 * MS);
    assert_int_equal(ask(5, 101 * S), 0);
}

static void test_work_in_flight_is_bounded(void **state)
{
    (void)state;
    hg_loginguard_init(&guard, 2);
    assert_true(hg_loginguard_take(&guard));
    assert_true(hg_loginguard_take(&guard));
    assert_false(hg_loginguard_take(&guard));
    hg_loginguard_put(&guard);
    assert_true(hg_loginguard_take(&guard));
    assert_false(hg_loginguard_take(&guard));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delays_grow),
        cmocka_unit_test(test_a_success_forgives),
        cmocka_unit_test(test_time_forgives),
        cmocka_unit_test(test_attempts_at_once_queue_up),
        cmocka_unit_test(test_the_table_is_bounded),
        cmocka_unit_test(test_work_in_flight_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
