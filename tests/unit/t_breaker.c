// t_breaker - when a server counts as failed, and how it comes back
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/breaker.h"

#define S  ((uint64_t)1000000)
#define MS ((uint64_t)1000)

static struct hg_breaker b;
static uint64_t now;

static void begin(void)
{
    now = 1000 * S;
    hg_breaker_init(&b, 1 * S, 8, 42);
}

static void assert_state(enum hg_breaker_state state)
{
    assert_int_equal(hg_breaker_state(&b), state);
    assert_int_equal(hg_breaker_may_send(&b),
                     state == HG_BREAKER_CLOSED || state == HG_BREAKER_RAMP);
}

static enum hg_breaker_connect take(void)
{
    return hg_breaker_take_connect(&b, now);
}

/* Takes a connection as soon as there may be one. */
static enum hg_breaker_connect take_later(void)
{
    uint64_t at = hg_breaker_next_us(&b);
    assert_true(at != UINT64_MAX);
    if (at > now) {
        now = at - 1;
        assert_int_equal(take(), HG_BREAKER_WAIT);
        now = at;
    }
    return take();
}

static void up(void)
{
    enum hg_breaker_connect kind = take();
    assert_int_not_equal(kind, HG_BREAKER_WAIT);
    hg_breaker_tell_connected(&b, kind, now);
}

static void fail_connect(bool refused)
{
    enum hg_breaker_connect kind = take_later();
    assert_int_not_equal(kind, HG_BREAKER_WAIT);
    hg_breaker_tell_failed(&b, kind, refused, now);
}

/* `n` time-outs over `keys` keys; true if the last one opened it. */
static bool timeouts(uint32_t n, uint32_t keys)
{
    bool opened = false;
    for (uint32_t i = 0; i < n; i++)
        opened = hg_breaker_tell_timeout(&b, 1000 + i % keys, false, now);
    return opened;
}

/* Half of what was sent must have timed out, unless no connection says anything at all. */
static void test_silence_needs_no_half(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        bool opened = false;
        begin();
        up();
        hg_breaker_tell_sent(&b, 1000, now);
        for (uint32_t i = 0; i < 20; i++)
            opened = hg_breaker_tell_timeout(&b, i % 4, silent == 1, now);
        assert_int_equal(opened, silent == 1);
        assert_state(silent == 1 ? HG_BREAKER_OPEN : HG_BREAKER_CLOSED);
    }
    begin(); // one slow key closes nothing, however silent it is
    up();
    for (uint32_t i = 0; i < 40; i++)
        assert_false(hg_breaker_tell_timeout(&b, 7, true, now));
}

static void test_closed_connects_at_will(void **state)
{
    (void)state;
    begin();
    assert_state(HG_BREAKER_CLOSED);
    for (int i = 0; i < 5; i++)
        assert_int_equal(take(), HG_BREAKER_CONNECT);
    assert_true(hg_breaker_next_us(&b) <= now);
}

static void test_one_refused_connect_opens_if_nothing_lives(void **state)
{
    (void)state;
    begin();
    fail_connect(true);
    assert_state(HG_BREAKER_OPEN);
    begin();
    up();
    fail_connect(true);
    assert_state(HG_BREAKER_CLOSED);
}

static void test_three_failures_open(void **state)
{
    (void)state;
    begin();
    fail_connect(false); // timed out
    fail_connect(false);
    assert_state(HG_BREAKER_CLOSED);
    fail_connect(false);
    assert_state(HG_BREAKER_OPEN);
}

static void test_a_success_or_calm_starts_the_count_again(void **state)
{
    (void)state;
    begin();
    for (int round = 0; round < 5; round++) {
        fail_connect(false);
        fail_connect(false);
        now = hg_breaker_next_us(&b);
        up();
        assert_state(HG_BREAKER_CLOSED);
    }
    begin();
    for (int round = 0; round < 5; round++) {
        fail_connect(false);
        now += 11 * S;
        assert_state(HG_BREAKER_CLOSED);
    }
}

static void test_connections_lost_together_count_once(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 8; i++)
        up();
    for (int i = 0; i < 4; i++, now += 2 * MS)
        hg_breaker_tell_lost(&b, true, now);
    assert_int_equal(b.failures, 1);
    hg_breaker_tell_lost(&b, false, now); // idle
    now += 20 * MS;
    assert_int_equal(b.failures, 1);
    hg_breaker_tell_lost(&b, true, now);
    assert_state(HG_BREAKER_CLOSED);
    now += 20 * MS;
    hg_breaker_tell_lost(&b, true, now);
    assert_state(HG_BREAKER_OPEN);
    assert_int_equal(b.live, 1);
}

static void test_after_a_failure_one_at_a_time(void **state)
{
    enum hg_breaker_connect kind;
    (void)state;
    begin();
    up();
    up();
    hg_breaker_tell_lost(&b, true, now);
    kind = take_later();
    assert_int_equal(kind, HG_BREAKER_CONNECT);
    assert_int_equal(take(), HG_BREAKER_WAIT);
    assert_true(hg_breaker_next_us(&b) == UINT64_MAX);
    hg_breaker_tell_connected(&b, kind, now);
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    assert_int_equal(take(), HG_BREAKER_CONNECT);
}

/* Idle connections that a server ended: that it did not wish to keep them may mean that it is gone,
   so one connect asks, and the others follow when it is up. */
static void test_after_the_last_has_gone_one_at_a_time(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 6; i++)
        up();
    for (int i = 0; i < 5; i++) {
        hg_breaker_tell_lost(&b, false, now);
        assert_true(hg_breaker_next_us(&b) <= now);
    }
    hg_breaker_tell_lost(&b, false, now);
    assert_state(HG_BREAKER_CLOSED);
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    assert_int_equal(take(), HG_BREAKER_WAIT);
    assert_true(hg_breaker_next_us(&b) == UINT64_MAX);
    hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, now);
    for (int i = 0; i < 5; i++)
        assert_int_equal(take(), HG_BREAKER_CONNECT);

    begin();
    up();
    hg_breaker_tell_lost(&b, false, now);
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    assert_int_equal(take(), HG_BREAKER_WAIT);
    hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, true, now);
    assert_state(HG_BREAKER_OPEN);
}

static void test_timeouts_open(void **state)
{
    (void)state;
    begin();
    up();
    hg_breaker_tell_sent(&b, 30, now);
    assert_false(timeouts(19, 5));
    assert_true(hg_breaker_is_suspect(&b));
    assert_state(HG_BREAKER_CLOSED);
    assert_true(timeouts(1, 1));
    assert_state(HG_BREAKER_OPEN);
}

static void test_one_slow_key_does_not_open(void **state)
{
    (void)state;
    begin();
    up();
    hg_breaker_tell_sent(&b, 500, now);
    assert_false(timeouts(500, 1));
    assert_false(timeouts(500, 3));
    assert_state(HG_BREAKER_CLOSED);
    timeouts(20, 4);
    assert_state(HG_BREAKER_OPEN);
}

static void test_an_answer_in_between_keeps_it_closed(void **state)
{
    (void)state;
    begin();
    up();
    for (int i = 0; i < 20; i++) {
        hg_breaker_tell_sent(&b, 19, now);
        assert_false(timeouts(19, 10));
        hg_breaker_tell_answered(&b);
        assert_false(hg_breaker_is_suspect(&b));
        now += S / 10;
    }
    assert_state(HG_BREAKER_CLOSED);
}

static void test_half_of_what_was_sent_in_10_s(void **state)
{
    (void)state;
    begin();
    up();
    hg_breaker_tell_sent(&b, 100, now);
    now += 5 * S;
    assert_false(timeouts(49, 9));
    assert_state(HG_BREAKER_CLOSED); // 49 of 100
    assert_true(timeouts(1, 9));
    begin();
    up();
    hg_breaker_tell_sent(&b, 100, now);
    now += 11 * S; // those were sent too long ago
    assert_false(timeouts(19, 9));
    assert_true(timeouts(1, 9));
    begin();
    up();
    for (int i = 0; i < 40; i++, now += 2 * S) { // 5 in any 10 s
        hg_breaker_tell_sent(&b, 1, now);
        assert_false(timeouts(1, 1 + (uint32_t)i));
        b.keys[i % 20] = (uint64_t)i; // of 20 keys: only the 10 s keep it closed
    }
    assert_state(HG_BREAKER_CLOSED);
}

static void open_it(void)
{
    begin();
    fail_connect(true);
    assert_state(HG_BREAKER_OPEN);
}

static void test_exactly_one_probe(void **state)
{
    (void)state;
    open_it();
    assert_true(b.retry_at_us <= now + 50 * MS);
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    assert_state(HG_BREAKER_HALF_OPEN);
    for (int i = 0; i < 10; i++, now += S)
        assert_int_equal(take(), HG_BREAKER_WAIT);
    assert_true(hg_breaker_next_us(&b) == UINT64_MAX);
    hg_breaker_tell_abandoned(&b, HG_BREAKER_PROBE); // its worker stopped: another may
    assert_state(HG_BREAKER_OPEN);
    assert_int_equal(take(), HG_BREAKER_PROBE);
}

static void test_the_ramp(void **state)
{
    (void)state;
    open_it();
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    hg_breaker_tell_connected(&b, HG_BREAKER_PROBE, now);
    assert_state(HG_BREAKER_RAMP);
    assert_int_equal(take(), HG_BREAKER_CONNECT); // 2
    assert_int_equal(take(), HG_BREAKER_WAIT);
    hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, now);
    assert_int_equal(take(), HG_BREAKER_CONNECT); // 4
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    assert_int_equal(take(), HG_BREAKER_WAIT);
    hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, now);
    hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, now);
    assert_state(HG_BREAKER_RAMP);
    for (int i = 0; i < 4; i++)
        up(); // 8 are wanted
    assert_state(HG_BREAKER_CLOSED);
    assert_int_equal(take(), HG_BREAKER_CONNECT);
}

static void test_the_ramp_ends_by_calm_too(void **state)
{
    (void)state;
    open_it();
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    hg_breaker_tell_connected(&b, HG_BREAKER_PROBE, now);
    now += 9 * S;
    hg_breaker_tell_sent(&b, 1, now);
    assert_state(HG_BREAKER_RAMP);
    now += 1 * S;
    hg_breaker_tell_sent(&b, 1, now);
    assert_state(HG_BREAKER_CLOSED);
}

static void test_a_failure_in_the_ramp(void **state)
{
    (void)state;
    open_it();
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    hg_breaker_tell_connected(&b, HG_BREAKER_PROBE, now);
    fail_connect(false);
    assert_state(HG_BREAKER_RAMP); // the probe's connection lives
    hg_breaker_tell_lost(&b, true, now);
    assert_state(HG_BREAKER_OPEN);
}

static void test_those_under_way_when_it_opens_change_nothing(void **state)
{
    uint64_t retry;
    (void)state;
    begin();
    for (int i = 0; i < 4; i++)
        assert_int_equal(take(), HG_BREAKER_CONNECT);
    hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, true, now);
    assert_state(HG_BREAKER_OPEN);
    retry = b.retry_at_us;
    hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, true, now);
    assert_true(b.retry_at_us == retry);
    now = retry;
    assert_int_equal(take(), HG_BREAKER_PROBE);
    hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, true, now);
    hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, now);
    assert_state(HG_BREAKER_HALF_OPEN);
    hg_breaker_tell_failed(&b, HG_BREAKER_PROBE, false, now);
    assert_state(HG_BREAKER_OPEN);
    hg_breaker_tell_lost(&b, true, now);
    assert_int_equal(b.live, 0);
    assert_int_equal(b.connecting, 0);
}

/* Failed probes: the waits grow to the bound, and are small again only after 10 s without a
 * failure. */
static void test_waits_grow_and_forget_late(void **state)
{
    uint64_t longest = 0;
    (void)state;
    open_it();
    for (int i = 0; i < 60; i++) {
        uint64_t wait = b.retry_at_us - now;
        longest = wait > longest ? wait : longest;
        assert_true(wait <= 1 * S);
        assert_int_equal(take_later(), HG_BREAKER_PROBE);
        hg_breaker_tell_failed(&b, HG_BREAKER_PROBE, true, now);
        assert_state(HG_BREAKER_OPEN);
    }
    assert_true(longest > S * 3 / 4);
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    hg_breaker_tell_connected(&b, HG_BREAKER_PROBE, now);
    assert_true(b.backoff.k > 10); // one success is not calm
    now += 10 * S;
    hg_breaker_tell_sent(&b, 1, now);
    assert_int_equal(b.backoff.k, 0);
}

static void test_a_server_that_is_not_ready_is_out_until_the_probe(void **state)
{
    (void)state;
    begin();
    up();
    up();
    hg_breaker_tell_unready(&b, now);
    assert_state(HG_BREAKER_OPEN);
    uint64_t at = hg_breaker_next_us(&b);
    hg_breaker_tell_unready(&b, now); // others hear it too: it counts once
    assert_int_equal(hg_breaker_next_us(&b), at);
    hg_breaker_tell_lost(&b, false, now);
    hg_breaker_tell_lost(&b, false, now);
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    hg_breaker_tell_failed(&b, HG_BREAKER_PROBE, false, now);
    assert_state(HG_BREAKER_OPEN);
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    hg_breaker_tell_connected(&b, HG_BREAKER_PROBE, now);
    assert_state(HG_BREAKER_RAMP);
}

static void test_timeouts_of_before_are_forgotten_after_the_probe(void **state)
{
    (void)state;
    begin();
    up();
    timeouts(20, 5);
    assert_state(HG_BREAKER_OPEN);
    hg_breaker_tell_lost(&b, false, now); // the driver closes what is live
    assert_int_equal(take_later(), HG_BREAKER_PROBE);
    hg_breaker_tell_connected(&b, HG_BREAKER_PROBE, now);
    assert_false(hg_breaker_is_suspect(&b));
    hg_breaker_tell_sent(&b, 20, now);
    assert_false(timeouts(19, 5));
    assert_state(HG_BREAKER_RAMP);
    assert_true(timeouts(1, 5));
    assert_state(HG_BREAKER_OPEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_connects_at_will),
        cmocka_unit_test(test_silence_needs_no_half),
        cmocka_unit_test(test_one_refused_connect_opens_if_nothing_lives),
        cmocka_unit_test(test_three_failures_open),
        cmocka_unit_test(test_a_success_or_calm_starts_the_count_again),
        cmocka_unit_test(test_connections_lost_together_count_once),
        cmocka_unit_test(test_after_a_failure_one_at_a_time),
        cmocka_unit_test(test_after_the_last_has_gone_one_at_a_time),
        cmocka_unit_test(test_timeouts_open),
        cmocka_unit_test(test_one_slow_key_does_not_open),
        cmocka_unit_test(test_an_answer_in_between_keeps_it_closed),
        cmocka_unit_test(test_half_of_what_was_sent_in_10_s),
        cmocka_unit_test(test_exactly_one_probe),
        cmocka_unit_test(test_the_ramp),
        cmocka_unit_test(test_the_ramp_ends_by_calm_too),
        cmocka_unit_test(test_a_failure_in_the_ramp),
        cmocka_unit_test(test_those_under_way_when_it_opens_change_nothing),
        cmocka_unit_test(test_waits_grow_and_forget_late),
        cmocka_unit_test(test_a_server_that_is_not_ready_is_out_until_the_probe),
        cmocka_unit_test(test_timeouts_of_before_are_forgotten_after_the_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
