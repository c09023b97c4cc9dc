// t_hang - a server that accepts connections and does not answer, or late
// SPDX-License-Identifier: BSD-3-Clause
#include "solo.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/opcode.h"

/* It accepts and says nothing: each call times out at its time; a single key does not close the
   server to all, several do. Then its connections are closed. */
static void hangs(bool one_key)
{
    struct solo s;
    struct note notes[40], refused;
    solo_init(&s, 1);
    s.conf.times.backend_timeout_ms = 60;
    solo_start(&s, 4);
    solo_warm_up(&s);
    s.fake.keeps_noops = true;
    for (int i = 0; i < 40; i++)
        solo_ask(&s, &notes[i], one_key ? "k" : (char[2]){(char)('a' + i % 6), 0});
    uint64_t start_us = notes[0].call.sent_us;
    BENCH_UNTIL(&s.bench, notes[39].done == 1);
    assert_true(bench_now_us() - start_us >= 60000);
    int timeouts = 0;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(notes[i].done, 1);
        timeouts += notes[i].result.fault == HG_FAULT_TIMEOUT;
        assert_true(notes[i].result.fault == HG_FAULT_TIMEOUT ||
                    notes[i].result.fault == HG_FAULT_LOST);
    }
    if (one_key) {
        assert_int_equal(timeouts, 40);
        assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
        BENCH_UNTIL(&s.bench,
                    solo_stat(&s, HG_UPSTREAM_DISCONNECTS) == 1); /* silent for too long */
    } else {
        assert_true(timeouts >= 20);
        BENCH_UNTIL(&s.bench, solo_breaker(&s) != HG_BREAKER_CLOSED);
        assert_int_equal(solo_stat(&s, HG_UPSTREAM_BREAKER_OPENS), 1);
        assert_int_equal(solo_ask(&s, &refused, "x"), HG_SUBMIT_TAKEN);
        assert_int_equal(refused.result.fault, HG_FAULT_DOWN);
        BENCH_UNTIL(&s.bench, fake_find(&s.fake, "") != NULL); /* the probe */
        assert_int_equal(fake_find(&s.fake, "")->opcode, HG_OPCODE_NOOP);
        assert_int_equal(fake_live(&s.fake), 1);
        s.fake.automatic = true;
        fake_obey(&s.fake, fake_find(&s.fake, ""));
        /* That probe may have timed out by now; another will do. */
        BENCH_UNTIL(&s.bench, hg_server_may_send(&s.shared->servers[0]));
        solo_ask(&s, &refused, "again");
        BENCH_UNTIL(&s.bench, refused.done == 1);
        assert_string_equal(refused.value, "v:again");
    }
    solo_fini(&s);
}

static void t_hangs(void **state)
{
    (void)state;
    hangs(true);
    hangs(false);
}

/* The process itself stands still for longer than a server may take: in the turn in which it wakes,
   nothing that it had not even sent is called late. A server that hangs is found out all the same.
 */
static void t_our_own_pause_is_not_the_servers(void **state)
{
    (void)state;
    struct solo s;
    struct note notes[30];
    solo_init(&s, 1);
    s.conf.times.backend_timeout_ms = 60;
    solo_start(&s, 4);
    solo_warm_up(&s);
    for (int i = 0; i < 30; i++)
        solo_ask(&s, &notes[i], (char[2]){(char)('a' + i % 6), 0});
    usleep(200000); /* the pause */
    bench_skip(200000);
    bench_turn(&s.bench);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_TIMEOUTS), 0);
    assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
    for (int i = 0; i < 30; i++)
        BENCH_UNTIL(&s.bench, notes[i].done == 1);
    assert_true(solo_stat(&s, HG_UPSTREAM_TIMEOUTS) >= 20);
    solo_fini(&s);
}

/* All links are full of requests that timed out: who would wait for room is told so. The silent
   connection is closed, and what replaces it must answer before it is used; when three do not, the
   server is out, although its kernel accepts connections. */
static void t_nobody_waits_for_a_hung_server(void **state)
{
    (void)state;
    struct solo s;
    struct note sent[2], waits, later;
    solo_init(&s, 1);
    s.conf.pool_depth = 2;
    s.conf.times.backend_timeout_ms = 60;
    s.conf.times.connect_timeout_ms = 60;
    s.conf.times.queue_timeout_ms = 60000;
    solo_start(&s, 1);
    solo_warm_up(&s);
    s.fake.keeps_noops = true;
    for (int i = 0; i < 2; i++)
        solo_ask(&s, &sent[i], "sent");
    assert_int_equal(solo_ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, waits.done == 1);
    assert_int_equal(waits.result.fault, HG_FAULT_DOWN);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sent[i].result.fault, HG_FAULT_TIMEOUT);
    uint64_t waited_us = s.rigs[0].loop.now_us - sent[0].call.sent_us;
    assert_true(waited_us >= 60000);
    BENCH_UNTIL(&s.bench, solo_stat(&s, HG_UPSTREAM_DISCONNECTS) == 1);
    size_t before = s.fake.count;
    solo_ask(&s, &later, "later");
    BENCH_UNTIL(&s.bench, solo_breaker(&s) == HG_BREAKER_OPEN);
    assert_int_equal(later.done, 1);
    assert_int_equal(later.result.fault, HG_FAULT_DOWN);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_CONNECT_FAILURES), 3);
    bench_turn(&s.bench);
    assert_true(s.fake.count > before);
    for (size_t i = before; i < s.fake.count; i++)
        assert_int_equal(s.fake.requests[i].opcode, HG_OPCODE_NOOP);
    solo_fini(&s);
}

/* One connection has gone silent: another is tried with a NOOP, calls wait for it and use it. */
static void hang_one(struct solo *s, struct note *stuck)
{
    solo_init(s, 1);
    s->conf.times.backend_timeout_ms = 60 * (uint32_t)bench_scale();
    s->conf.times.connect_timeout_ms = 60 * (uint32_t)bench_scale();
    solo_start(s, 4);
    solo_bear_silence(s);
    solo_warm_up(s);
    s->fake.keeps_noops = true;
    solo_ask(s, stuck, "stuck");
}

/* The server has just said no to a second connection. */
static void forbid_more(struct solo *s)
{
    struct hg_breaker *breaker = &s->shared->servers[0].breaker;
    atomic_store(&breaker->target, 1);
    breaker->trial_at_us = s->rigs[0].loop.now_us + 60000000;
}

static void t_a_silent_connection_is_replaced(void **state)
{
    (void)state;
    struct solo s;
    struct note stuck, waits, next;
    hang_one(&s, &stuck);
    BENCH_UNTIL(&s.bench, stuck.done == 1);
    assert_int_equal(stuck.result.fault, HG_FAULT_TIMEOUT);
    assert_int_equal(solo_ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "") != NULL);
    assert_int_equal(fake_find(&s.fake, "")->opcode, HG_OPCODE_NOOP);
    int fresh = fake_find(&s.fake, "")->conn;
    s.fake.automatic = true;
    fake_obey(&s.fake, fake_find(&s.fake, ""));
    BENCH_UNTIL(&s.bench, waits.done == 1);
    assert_string_equal(waits.value, "v:waits");
    assert_int_equal(solo_ask(&s, &next, "next"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, next.done == 1);
    assert_int_equal(s.fake.requests[s.fake.count - 1].conn, fresh);
    assert_int_equal(s.fake.accepted, 2);
    assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
    solo_fini(&s);
}

static void t_a_silent_server_is_not_waited_for(void **state)
{
    (void)state;
    struct solo s;
    struct note stuck, waits, next;
    hang_one(&s, &stuck);
    BENCH_UNTIL(&s.bench, stuck.done == 1);
    assert_int_equal(solo_ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, waits.done == 1);
    assert_int_equal(waits.result.fault, HG_FAULT_DOWN); /* the trial was not answered */
    hg_loop_stamp(&s.rigs[0].loop);
    forbid_more(&s);
    assert_int_equal(solo_ask(&s, &next, "next"), HG_SUBMIT_TAKEN);
    assert_int_equal(next.done, 1);
    assert_int_equal(next.result.fault, HG_FAULT_DOWN);
    /* The first sign of life ends that. */
    fake_obey(&s.fake, fake_find(&s.fake, "stuck"));
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, !rig_pool(s.stores[0], 0)->hung);
    assert_int_equal(solo_ask(&s, &next, "next"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, next.done == 1);
    assert_string_equal(next.value, "v:next");
    solo_fini(&s);
}

/* No trial may be made now: the silent connection is still better than nothing. */
static void t_a_silent_connection_is_used_for_want_of_another(void **state)
{
    (void)state;
    struct solo s;
    struct note stuck, next;
    hang_one(&s, &stuck);
    forbid_more(&s);
    BENCH_UNTIL(&s.bench, stuck.done == 1);
    BENCH_UNTIL(&s.bench, rig_pool(s.stores[0], 0)->hung);
    assert_int_equal(solo_ask(&s, &next, "next"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "next") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "stuck"));
    fake_obey(&s.fake, fake_find(&s.fake, "next"));
    BENCH_UNTIL(&s.bench, next.done == 1);
    assert_true(next.result.fault == HG_FAULT_NONE || next.result.fault == HG_FAULT_TIMEOUT);
    assert_int_equal(s.fake.accepted, 1);
    solo_fini(&s);
}

/* A reply that comes after its time-out is dropped; the next call on the same connection gets its
   own. */
static void t_late_reply(void **state)
{
    (void)state;
    struct solo s;
    struct note late, next;
    solo_init(&s, 1);
    s.conf.times.backend_timeout_ms = 100 * (uint32_t)bench_scale();
    solo_start(&s, 1);
    solo_bear_silence(&s);
    solo_warm_up(&s);
    solo_ask(&s, &late, "same");
    BENCH_UNTIL(&s.bench, late.done == 1);
    assert_int_equal(late.result.fault, HG_FAULT_TIMEOUT);
    struct fake_request *first = fake_find(&s.fake, "same");
    assert_int_equal(solo_ask(&s, &next, "same"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "same") != first);
    assert_int_equal(fake_find(&s.fake, "same")->conn, first->conn);
    fake_answer(&s.fake, first, 0, "of the late one");
    fake_answer(&s.fake, fake_find(&s.fake, "same"), 0, "of the next");
    BENCH_UNTIL(&s.bench, next.done == 1);
    assert_string_equal(next.value, "of the next");
    assert_int_equal(late.done, 1);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_LATE_REPLIES), 1);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_TIMEOUTS), 1);
    solo_fini(&s);
}

/* Many time-outs, but the server answers in between: it is slow, not gone. */
static void t_slow_is_not_gone(void **state)
{
    (void)state;
    struct solo s;
    struct note slow[12], quick;
    solo_init(&s, 1);
    s.conf.times.backend_timeout_ms = 100 * (uint32_t)bench_scale();
    solo_start(&s, 4);
    solo_bear_silence(&s);
    solo_warm_up(&s);
    for (int round = 0; round < 4; round++) {
        size_t before = s.fake.count;
        for (int i = 0; i < 12; i++)
            solo_ask(&s, &slow[i], (char[2]){(char)('a' + i), 0});
        for (int i = 0; i < 12; i++) {
            BENCH_UNTIL(&s.bench, slow[i].done == 1);
            assert_int_equal(slow[i].result.fault, HG_FAULT_TIMEOUT);
        }
        for (size_t i = before; i < before + 12; i++)
            fake_obey(&s.fake, &s.fake.requests[i]);
        s.fake.automatic = true;
        solo_ask(&s, &quick, "quick");
        BENCH_UNTIL(&s.bench, quick.done == 1);
        assert_string_equal(quick.value, "v:quick");
        s.fake.automatic = false;
    }
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_TIMEOUTS), 48);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_LATE_REPLIES), 48);
    assert_int_equal(solo_breaker(&s), HG_BREAKER_CLOSED);
    solo_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_hangs),
        cmocka_unit_test(t_our_own_pause_is_not_the_servers),
        cmocka_unit_test(t_nobody_waits_for_a_hung_server),
        cmocka_unit_test(t_a_silent_connection_is_replaced),
        cmocka_unit_test(t_a_silent_server_is_not_waited_for),
        cmocka_unit_test(t_a_silent_connection_is_used_for_want_of_another),
        cmocka_unit_test(t_late_reply),
        cmocka_unit_test(t_slow_is_not_gone),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("hang", tests, NULL, NULL);
}
