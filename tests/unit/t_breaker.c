// t_breaker - when a server counts as failed, how many connections it allows, how it comes back
// SPDX-License-Identifier: BSD-3-Clause
//
// A case is a table of events, one a row, each with what is to be true right after it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/breaker.h"

#define S  ((uint64_t)1000000)
#define MS ((uint64_t)1000)

#define WANTED 8
#define NONE   HG_BREAKER_NO_TARGET

enum verb {
    END, // of the table
    TAKE,
    UP,     // one that was taken: not proven
    PROVEN, // the same, and it has answered
    FAILS,
    REFUSED,
    LOCAL,
    ABANDON,
    IDLE_ENDS,
    BREAKS,
    UNPROVEN_ENDS,
    UNREADY,
    ANSWER,
    TIMEOUTS,        // n of them over `keys` keys
    SILENT_TIMEOUTS, // the same, nothing heard
    PASS,            // n microseconds
    WHEN,            // until a connect may be made
    IS,              // nothing happens
};

struct row {
    int line;
    enum verb verb;
    uint64_t n;
    uint32_t keys;
    enum hg_breaker_connect kind; // TAKE: the answer; outcomes: of what was taken
    enum hg_breaker_state state;
    uint32_t target;
};

static struct hg_breaker b;
static uint64_t now;

static void begin(void)
{
    now = 1000 * S;
    hg_breaker_init(&b, 1 * S, WANTED, 42);
}

static void assert_state(enum hg_breaker_state state)
{
    assert_int_equal(hg_breaker_state(&b), state);
    assert_int_equal(hg_breaker_may_send(&b),
                     state == HG_BREAKER_CLOSED || state == HG_BREAKER_RAMP);
}

static enum hg_breaker_connect take(void)
{
    uint64_t at = hg_breaker_next_us(&b);
    enum hg_breaker_connect kind = hg_breaker_take_connect(&b, now);
    assert_int_equal(kind == HG_BREAKER_WAIT, at > now); // both say the same
    return kind;
}

/* Waits until a connect may be made; not a microsecond before. */
static void wait(void)
{
    uint64_t at = hg_breaker_next_us(&b);
    assert_true(at != UINT64_MAX);
    if (at <= now)
        return;
    now = at - 1;
    assert_int_equal(take(), HG_BREAKER_WAIT);
    now = at;
}

static void timeouts(uint64_t n, uint32_t keys, bool silent)
{
    for (uint32_t i = 0; i < n; i++)
        hg_breaker_tell_timeout(&b, 1000 + i % keys, silent, now);
}

static void happen(const struct row *row)
{
    switch (row->verb) {
    case TAKE:
        assert_int_equal(take(), row->kind);
        break;
    case UP:
    case PROVEN:
        hg_breaker_tell_connected(&b, row->kind, row->verb == PROVEN, now);
        break;
    case FAILS:
    case REFUSED: {
        bool others = b.live > 0 && hg_breaker_may_send(&b);
        assert_int_equal(hg_breaker_tell_failed(&b, row->kind, row->verb == REFUSED, now), !others);
        break;
    }
    case LOCAL:
        hg_breaker_tell_local(&b, row->kind, now);
        break;
    case ABANDON:
        hg_breaker_tell_abandoned(&b, row->kind, now);
        break;
    case IDLE_ENDS:
        hg_breaker_tell_lost(&b, HG_BREAKER_ENDED, now);
        break;
    case BREAKS:
        hg_breaker_tell_lost(&b, HG_BREAKER_BROKEN, now);
        break;
    case UNPROVEN_ENDS:
        hg_breaker_tell_lost(&b, HG_BREAKER_UNPROVEN, now);
        break;
    case UNREADY:
        hg_breaker_tell_unready(&b, now);
        break;
    case ANSWER:
        if (hg_breaker_heeds(&b))
            hg_breaker_tell_answered(&b);
        break;
    case TIMEOUTS:
    case SILENT_TIMEOUTS:
        timeouts(row->n, row->keys, row->verb == SILENT_TIMEOUTS);
        break;
    case PASS:
        now += row->n;
        hg_breaker_tell_time(&b, now);
        break;
    case WHEN:
        wait();
        break;
    case IS:
    case END:
        break;
    }
}

static void play(void **state)
{
    begin();
    for (const struct row *row = *state; row->verb != END; row++) {
        happen(row);
        if (hg_breaker_state(&b) != row->state || hg_breaker_target(&b) != row->target)
            fail_msg("line %d: state %d, target %u", row->line, (int)hg_breaker_state(&b),
                     hg_breaker_target(&b));
        assert_state(row->state);
    }
}

#define ROW(verb_, n_, keys_, kind_, state_, target_)                                              \
    {                                                                                              \
        __LINE__, verb_, n_, keys_, HG_BREAKER_##kind_, HG_BREAKER_##state_, target_               \
    }
/* While nothing limits, and while something does. */
#define ON(verb_, kind_, state_)       ROW(verb_, 0, 0, kind_, state_, NONE)
#define LIMITED(verb_, kind_, target_) ROW(verb_, 0, 0, kind_, CLOSED, target_)
#define AFTER(n_, state_, target_)     ROW(PASS, n_, 0, CONNECT, state_, target_)
#define LATE(verb_, n_, keys_, state_) ROW(verb_, n_, keys_, CONNECT, state_, NONE)
#define ONE_UP                         ON(TAKE, CONNECT, CLOSED), ON(PROVEN, CONNECT, CLOSED)
#define THREE_UP                       ONE_UP, ONE_UP, ONE_UP
#define OVER                           ROW(END, 0, 0, CONNECT, CLOSED, NONE)

/* clang-format off */

static const struct row closed_connects_at_will[] = {
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), OVER,
};

/* ---- a connect fails with none live ---- */

static const struct row refused_with_none_live[] = {
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(TAKE, WAIT, OPEN), OVER,
};

static const struct row three_failures_in_a_row[] = {
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, OPEN), OVER,
};

/* That one comes up is no answer yet: the kernel makes connections for a server that hangs. */
static const struct row only_an_answer_ends_the_row[] = {
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(UP, CONNECT, CLOSED), ON(ANSWER, CONNECT, CLOSED),
    ON(IDLE_ENDS, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, OPEN), OVER,
};

static const struct row closed_at_once_is_a_failure[] = {
    ON(TAKE, CONNECT, CLOSED), ON(UP, CONNECT, CLOSED), ON(UNPROVEN_ENDS, CONNECT, CLOSED),
    ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(UP, CONNECT, CLOSED), ON(UNPROVEN_ENDS, CONNECT, CLOSED),
    ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(UP, CONNECT, CLOSED), ON(UNPROVEN_ENDS, CONNECT, OPEN), OVER,
};

/* A server that takes three of six says no to the others before it has answered the first. */
static const struct row under_way_together_count_once[] = {
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED),
    ON(FAILS, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED),
    ON(TAKE, WAIT, CLOSED),
    ON(PROVEN, CONNECT, CLOSED), ON(PROVEN, CONNECT, CLOSED), ON(PROVEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), LIMITED(FAILS, CONNECT, 3), OVER,
};

static const struct row all_of_them_fail[] = {
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED),
    ON(LOCAL, CONNECT, CLOSED), ON(ABANDON, CONNECT, CLOSED), // now it counts
    ON(WHEN, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, CLOSED),
    ON(WHEN, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(FAILS, CONNECT, OPEN), OVER,
};

static const struct row those_under_way_when_it_opens_change_nothing[] = {
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(REFUSED, CONNECT, OPEN),
    ON(WHEN, CONNECT, OPEN), ON(TAKE, PROBE, HALF_OPEN), ON(REFUSED, CONNECT, HALF_OPEN),
    ON(UP, CONNECT, HALF_OPEN), ON(FAILS, PROBE, OPEN), ON(BREAKS, CONNECT, OPEN), OVER,
};

/* ---- a connect fails, others are live ---- */

static const struct row a_further_connect_fails[] = {
    THREE_UP,
    ON(TAKE, CONNECT, CLOSED), LIMITED(REFUSED, CONNECT, 3),
    LIMITED(TAKE, WAIT, 3), AFTER(499 * MS, CLOSED, 3), LIMITED(TAKE, WAIT, 3),
    AFTER(501 * MS, CLOSED, 3), LIMITED(TAKE, TRIAL, 3), LIMITED(TAKE, WAIT, 3),
    LIMITED(FAILS, TRIAL, 3),
    AFTER(999 * MS, CLOSED, 3), LIMITED(TAKE, WAIT, 3), // twice as long
    AFTER(1001 * MS, CLOSED, 3), LIMITED(TAKE, TRIAL, 3),
    ON(PROVEN, TRIAL, CLOSED), // lifted: at will
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), OVER,
};

/* Below the target connects are made at will; it falls with what is live, and no wait grows. */
static const struct row below_the_target[] = {
    THREE_UP, ON(TAKE, CONNECT, CLOSED), LIMITED(FAILS, CONNECT, 3),
    LIMITED(IDLE_ENDS, CONNECT, 3), LIMITED(TAKE, CONNECT, 3), LIMITED(TAKE, WAIT, 3),
    LIMITED(PROVEN, CONNECT, 3), LIMITED(IDLE_ENDS, CONNECT, 3), LIMITED(BREAKS, CONNECT, 3),
    LIMITED(TAKE, CONNECT, 3), LIMITED(TAKE, CONNECT, 3), LIMITED(TAKE, WAIT, 3),
    LIMITED(FAILS, CONNECT, 1), LIMITED(FAILS, CONNECT, 1), LIMITED(TAKE, WAIT, 1),
    AFTER(1000 * MS, CLOSED, 1), LIMITED(TAKE, TRIAL, 1), ON(PROVEN, TRIAL, CLOSED), OVER,
};

/* Connects that were under way when one failed show that there was room for them, and no more. */
static const struct row under_way_when_one_fails[] = {
    ONE_UP, ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED),
    LIMITED(FAILS, CONNECT, 1), LIMITED(PROVEN, CONNECT, 2), LIMITED(TAKE, WAIT, 2),
    LIMITED(PROVEN, CONNECT, 3), LIMITED(TAKE, WAIT, 3),
    AFTER(1000 * MS, CLOSED, 3), LIMITED(TAKE, TRIAL, 3), ON(PROVEN, TRIAL, CLOSED), OVER,
};

static const struct row abandoned_trials_are_tried_again[] = {
    ONE_UP, ON(TAKE, CONNECT, CLOSED), LIMITED(FAILS, CONNECT, 1), AFTER(1000 * MS, CLOSED, 1),
    LIMITED(TAKE, TRIAL, 1), LIMITED(ABANDON, TRIAL, 1), LIMITED(TAKE, TRIAL, 1),
    LIMITED(LOCAL, TRIAL, 1), LIMITED(TAKE, WAIT, 1), AFTER(200 * MS, CLOSED, 1),
    LIMITED(TAKE, TRIAL, 1), OVER,
};

/* A server that accepts and closes at once allows no more, and one that is gone is gone. */
static const struct row closed_at_once_with_others_live[] = {
    ONE_UP, ON(TAKE, CONNECT, CLOSED), ON(UP, CONNECT, CLOSED),
    LIMITED(UNPROVEN_ENDS, CONNECT, 1), LIMITED(TAKE, WAIT, 1),
    LIMITED(BREAKS, CONNECT, 1), LIMITED(TAKE, CONNECT, 1), ON(REFUSED, CONNECT, OPEN), OVER,
};

/* ---- lost connections ---- */

static const struct row a_lost_connection_costs_no_wait[] = {
    ONE_UP,
    ON(BREAKS, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(TAKE, WAIT, CLOSED),
    ON(PROVEN, CONNECT, CLOSED), AFTER(1 * S, CLOSED, NONE),
    ON(BREAKS, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(PROVEN, CONNECT, CLOSED),
    AFTER(1 * S, CLOSED, NONE),
    ON(BREAKS, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(PROVEN, CONNECT, CLOSED),
    AFTER(1 * S, CLOSED, NONE),
    ON(BREAKS, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(PROVEN, CONNECT, CLOSED), OVER,
};

/* Idle connections that a server ended: that it did not wish to keep them may mean that it is gone,
   so one connect asks, and the others follow when it is up. */
static const struct row after_the_last_has_gone_one_at_a_time[] = {
    THREE_UP, ON(IDLE_ENDS, CONNECT, CLOSED), ON(IDLE_ENDS, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(ABANDON, CONNECT, CLOSED),
    ON(ABANDON, CONNECT, CLOSED), ON(IDLE_ENDS, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, WAIT, CLOSED), ON(UP, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), OVER,
};

/* ---- this host ---- */

static const struct row local_errors_move_nothing[] = {
    ON(TAKE, CONNECT, CLOSED), ON(LOCAL, CONNECT, CLOSED), ON(TAKE, WAIT, CLOSED),
    AFTER(99 * MS, CLOSED, NONE), ON(TAKE, WAIT, CLOSED), AFTER(101 * MS, CLOSED, NONE),
    ON(TAKE, CONNECT, CLOSED), ON(LOCAL, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(LOCAL, CONNECT, CLOSED), ON(WHEN, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(LOCAL, CONNECT, CLOSED), ON(TAKE, WAIT, CLOSED),
    AFTER(499 * MS, CLOSED, NONE), ON(TAKE, WAIT, CLOSED), AFTER(501 * MS, CLOSED, NONE),
    ON(TAKE, CONNECT, CLOSED), ON(UP, CONNECT, CLOSED),
    ON(TAKE, CONNECT, CLOSED), ON(LOCAL, CONNECT, CLOSED), // others are live: no target either
    AFTER(200 * MS, CLOSED, NONE), ON(TAKE, CONNECT, CLOSED), OVER,
};

static const struct row a_probe_that_fails_here[] = {
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(WHEN, CONNECT, OPEN),
    ON(TAKE, PROBE, HALF_OPEN), ON(LOCAL, PROBE, OPEN), ON(TAKE, WAIT, OPEN),
    AFTER(200 * MS, OPEN, NONE), ON(TAKE, PROBE, HALF_OPEN), ON(PROVEN, PROBE, RAMP), OVER,
};

/* ---- time-outs ---- */

static const struct row silent_timeouts_open[] = {
    ONE_UP, LATE(SILENT_TIMEOUTS, 19, 5, CLOSED), LATE(SILENT_TIMEOUTS, 1, 1, OPEN), OVER,
};

static const struct row a_server_that_says_something_stays[] = {
    ONE_UP, LATE(TIMEOUTS, 500, 50, CLOSED), LATE(SILENT_TIMEOUTS, 1, 1, OPEN), OVER,
};

static const struct row one_slow_key_does_not_open[] = {
    ONE_UP, LATE(SILENT_TIMEOUTS, 500, 1, CLOSED), LATE(SILENT_TIMEOUTS, 500, 3, CLOSED),
    LATE(SILENT_TIMEOUTS, 20, 4, OPEN), OVER,
};

static const struct row an_answer_in_between[] = {
    ONE_UP, LATE(SILENT_TIMEOUTS, 19, 10, CLOSED), ON(ANSWER, CONNECT, CLOSED),
    LATE(SILENT_TIMEOUTS, 19, 10, CLOSED), ON(ANSWER, CONNECT, CLOSED),
    LATE(SILENT_TIMEOUTS, 19, 10, CLOSED), LATE(SILENT_TIMEOUTS, 1, 1, OPEN), OVER,
};

/* ---- out, and back ---- */

static const struct row an_answer_on_one_that_was_left[] = {
    THREE_UP, LATE(SILENT_TIMEOUTS, 20, 4, OPEN), ON(IDLE_ENDS, CONNECT, OPEN),
    ON(ANSWER, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), // also while a probe is under way
    LATE(SILENT_TIMEOUTS, 20, 4, OPEN), ON(WHEN, CONNECT, OPEN), ON(TAKE, PROBE, HALF_OPEN),
    ON(ANSWER, CONNECT, CLOSED), LIMITED(FAILS, PROBE, 2), OVER,
};

static const struct row one_that_comes_up_and_answers_closes_it_too[] = {
    ON(TAKE, CONNECT, CLOSED), ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN),
    ON(PROVEN, CONNECT, CLOSED), OVER,
};

static const struct row exactly_one_probe[] = {
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(WHEN, CONNECT, OPEN),
    ON(TAKE, PROBE, HALF_OPEN), ON(TAKE, WAIT, HALF_OPEN), AFTER(5 * S, HALF_OPEN, NONE),
    ON(TAKE, WAIT, HALF_OPEN),
    ON(ABANDON, PROBE, OPEN), // its worker stopped: another may
    ON(TAKE, PROBE, HALF_OPEN), OVER,
};

static const struct row the_ramp[] = {
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(WHEN, CONNECT, OPEN),
    ON(TAKE, PROBE, HALF_OPEN), ON(PROVEN, PROBE, RAMP),
    ON(TAKE, CONNECT, RAMP), ON(TAKE, WAIT, RAMP), ON(PROVEN, CONNECT, RAMP), // 2
    ON(TAKE, CONNECT, RAMP), ON(TAKE, CONNECT, RAMP), ON(TAKE, WAIT, RAMP),
    ON(PROVEN, CONNECT, RAMP), ON(PROVEN, CONNECT, RAMP), // 4
    ON(TAKE, CONNECT, RAMP), ON(TAKE, CONNECT, RAMP), ON(TAKE, CONNECT, RAMP),
    ON(TAKE, CONNECT, RAMP), ON(PROVEN, CONNECT, RAMP), ON(PROVEN, CONNECT, RAMP),
    ON(PROVEN, CONNECT, RAMP), ON(PROVEN, CONNECT, CLOSED), // as many as wanted
    ON(TAKE, CONNECT, CLOSED), OVER,
};

static const struct row the_ramp_ends_after_10_s[] = {
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(WHEN, CONNECT, OPEN),
    ON(TAKE, PROBE, HALF_OPEN), ON(PROVEN, PROBE, RAMP), AFTER(9999 * MS, RAMP, NONE),
    AFTER(1 * MS, CLOSED, NONE), OVER,
};

static const struct row the_ramp_ends_where_the_server_says_no[] = {
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(WHEN, CONNECT, OPEN),
    ON(TAKE, PROBE, HALF_OPEN), ON(PROVEN, PROBE, RAMP), ON(TAKE, CONNECT, RAMP),
    ON(PROVEN, CONNECT, RAMP), ON(TAKE, CONNECT, RAMP), ON(TAKE, CONNECT, RAMP),
    LIMITED(FAILS, CONNECT, 2), LIMITED(FAILS, CONNECT, 2), LIMITED(TAKE, WAIT, 2), OVER,
};

static const struct row lost_in_the_ramp[] = {
    ON(TAKE, CONNECT, CLOSED), ON(REFUSED, CONNECT, OPEN), ON(WHEN, CONNECT, OPEN),
    ON(TAKE, PROBE, HALF_OPEN), ON(PROVEN, PROBE, RAMP),
    ON(BREAKS, CONNECT, RAMP), ON(TAKE, CONNECT, RAMP), // at once: it says nothing
    ON(REFUSED, CONNECT, OPEN), OVER,
};

/* What is up answers that it is not ready, or answers in earnest what it was asked before: only the
   probe knows. */
static const struct row not_ready_until_the_probe[] = {
    ONE_UP, ONE_UP, ON(UNREADY, CONNECT, OPEN), ON(UNREADY, CONNECT, OPEN),
    ON(ANSWER, CONNECT, OPEN), ON(IDLE_ENDS, CONNECT, OPEN),
    ON(WHEN, CONNECT, OPEN), ON(TAKE, PROBE, HALF_OPEN), ON(ANSWER, CONNECT, HALF_OPEN),
    ON(FAILS, PROBE, OPEN), ON(ANSWER, CONNECT, OPEN),
    ON(WHEN, CONNECT, OPEN), ON(TAKE, PROBE, HALF_OPEN), ON(PROVEN, PROBE, RAMP), OVER,
};

static const struct row timeouts_of_before_are_forgotten_after_the_probe[] = {
    ONE_UP, LATE(SILENT_TIMEOUTS, 20, 5, OPEN), ON(IDLE_ENDS, CONNECT, OPEN),
    ON(WHEN, CONNECT, OPEN), ON(TAKE, PROBE, HALF_OPEN), ON(PROVEN, PROBE, RAMP),
    LATE(SILENT_TIMEOUTS, 19, 5, RAMP), LATE(SILENT_TIMEOUTS, 1, 5, OPEN), OVER,
};

/* clang-format on */

/* Of a key that makes the server hang up each time, however often it is asked for: ten connects a
   second, no more, and the first ones at once. A second without a loss, and it is forgotten. */
static void test_reconnects_are_paced(void **state)
{
    (void)state;
    uint64_t made[64];
    uint32_t count = 0;
    begin();
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, true, now);
    for (int i = 0; i < 40; i++) {
        hg_breaker_tell_lost(&b, HG_BREAKER_BROKEN, now);
        uint64_t before = now;
        wait();
        assert_true(i >= 10 || now == before);
        made[count++] = now;
        assert_int_equal(take(), HG_BREAKER_CONNECT);
        hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, true, now);
        assert_state(HG_BREAKER_CLOSED);
        now += 11 * MS;
    }
    for (uint32_t i = 10; i < count; i++)
        assert_true(made[i] - made[i - 10] >= 1 * S);
    hg_breaker_tell_lost(&b, HG_BREAKER_BROKEN, now);
    assert_int_equal(take(), HG_BREAKER_WAIT);
    now += 1 * S + 1;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(take(), HG_BREAKER_CONNECT);
        hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, true, now);
    }
}

/* A server that ends has lost many together: that is one loss, and pays for one connect. */
static void test_lost_together_is_one_loss(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 64; i++) {
        assert_int_equal(take(), HG_BREAKER_CONNECT);
        hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, true, now);
    }
    for (int i = 0; i < 64; i++, now += MS / 10)
        hg_breaker_tell_lost(&b, HG_BREAKER_BROKEN, now);
    assert_int_equal(b.owed, 1);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(take(), HG_BREAKER_CONNECT);
        hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, true, now);
    }
    assert_state(HG_BREAKER_CLOSED);
}

/* Failed probes: the waits grow to the bound, and the first answer makes them small again. */
static void test_waits_grow_and_an_answer_ends_them(void **state)
{
    uint64_t longest = 0;
    (void)state;
    begin();
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, true, now);
    assert_true(b.retry_at_us <= now + 50 * MS);
    for (int i = 0; i < 60; i++) {
        uint64_t waited = b.retry_at_us - now;
        longest = waited > longest ? waited : longest;
        assert_true(waited <= 1 * S);
        wait();
        assert_int_equal(take(), HG_BREAKER_PROBE);
        hg_breaker_tell_failed(&b, HG_BREAKER_PROBE, true, now);
        assert_state(HG_BREAKER_OPEN);
    }
    assert_true(longest > S * 3 / 4);
    assert_true(b.backoff.k > 10);
    wait();
    assert_int_equal(take(), HG_BREAKER_PROBE);
    hg_breaker_tell_connected(&b, HG_BREAKER_PROBE, true, now);
    assert_int_equal(b.backoff.k, 0);
    assert_false(hg_breaker_heeds(&b));
}

/* One attempt beyond the target after 1, 2, 4 ... 60 s, the later half of each at random. */
static void test_trials_become_rare(void **state)
{
    (void)state;
    begin();
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, true, now);
    enum hg_breaker_connect kind = take();
    for (int i = 0; i < 20; i++) {
        uint64_t bound = i < 6 ? S << i : 60 * S, before = now;
        hg_breaker_tell_failed(&b, kind, false, now);
        assert_int_equal(hg_breaker_room(&b, now), 0);
        wait();
        assert_in_range(now - before, bound / 2, bound);
        assert_int_equal(hg_breaker_room(&b, now), 1);
        kind = take();
        assert_int_equal(kind, HG_BREAKER_TRIAL);
        assert_int_equal(hg_breaker_room(&b, now), 0);
        assert_state(HG_BREAKER_CLOSED);
    }
    hg_breaker_tell_connected(&b, kind, true, now);
    assert_int_equal(hg_breaker_room(&b, now), UINT32_MAX);
    kind = take();
    hg_breaker_tell_failed(&b, kind, false, now);
    assert_in_range(hg_breaker_next_us(&b), now + S / 2, now + S); // they begin anew
}

static void test_room_below_the_target(void **state)
{
    (void)state;
    begin();
    assert_int_equal(hg_breaker_room(&b, now), UINT32_MAX);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(take(), HG_BREAKER_CONNECT);
        hg_breaker_tell_connected(&b, HG_BREAKER_CONNECT, true, now);
    }
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, false, now);
    for (uint32_t i = 1; i < 4; i++) {
        hg_breaker_tell_lost(&b, HG_BREAKER_ENDED, now);
        assert_int_equal(hg_breaker_room(&b, now), i);
    }
    assert_int_equal(take(), HG_BREAKER_CONNECT);
    assert_int_equal(hg_breaker_room(&b, now), 2);
    hg_breaker_tell_lost(&b, HG_BREAKER_ENDED, now);
    assert_int_equal(hg_breaker_room(&b, now), UINT32_MAX); // none is live: nothing is known
}

static void test_reasons(void **state)
{
    (void)state;
    begin();
    (void)take();
    hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, true, now);
    assert_int_equal(b.reason, HG_BREAKER_REFUSED);
    begin();
    for (int i = 0; i < 3; i++) {
        wait();
        (void)take();
        hg_breaker_tell_failed(&b, HG_BREAKER_CONNECT, false, now);
    }
    assert_int_equal(b.reason, HG_BREAKER_CONNECTS);
    begin();
    hg_breaker_tell_unready(&b, now);
    assert_int_equal(b.reason, HG_BREAKER_UNREADY);
    begin();
    timeouts(20, 4, true);
    assert_int_equal(b.reason, HG_BREAKER_SILENT);
}

#define CASE(name_)                                                                                \
    {                                                                                              \
#name_, play, NULL, NULL, (void *)(uintptr_t)name_                                         \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(closed_connects_at_will),
        CASE(refused_with_none_live),
        CASE(three_failures_in_a_row),
        CASE(only_an_answer_ends_the_row),
        CASE(closed_at_once_is_a_failure),
        CASE(under_way_together_count_once),
        CASE(all_of_them_fail),
        CASE(those_under_way_when_it_opens_change_nothing),
        CASE(a_further_connect_fails),
        CASE(below_the_target),
        CASE(under_way_when_one_fails),
        CASE(abandoned_trials_are_tried_again),
        CASE(closed_at_once_with_others_live),
        CASE(a_lost_connection_costs_no_wait),
        CASE(after_the_last_has_gone_one_at_a_time),
        CASE(local_errors_move_nothing),
        CASE(a_probe_that_fails_here),
        CASE(silent_timeouts_open),
        CASE(a_server_that_says_something_stays),
        CASE(one_slow_key_does_not_open),
        CASE(an_answer_in_between),
        CASE(an_answer_on_one_that_was_left),
        CASE(one_that_comes_up_and_answers_closes_it_too),
        CASE(exactly_one_probe),
        CASE(the_ramp),
        CASE(the_ramp_ends_after_10_s),
        CASE(the_ramp_ends_where_the_server_says_no),
        CASE(lost_in_the_ramp),
        CASE(not_ready_until_the_probe),
        CASE(timeouts_of_before_are_forgotten_after_the_probe),
        cmocka_unit_test(test_reconnects_are_paced),
        cmocka_unit_test(test_lost_together_is_one_loss),
        cmocka_unit_test(test_waits_grow_and_an_answer_ends_them),
        cmocka_unit_test(test_trials_become_rare),
        cmocka_unit_test(test_room_below_the_target),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
