// t_domain - connections go from one identity to another: when, how, and what stands in the way
// SPDX-License-Identifier: BSD-3-Clause
#include "crowd.h"

#include <string.h>

#include "base/log.h"
#include "proto/opcode.h"

#define HOLD_US 10000

/* User 0 has the only connection, and it is idle. */
static void start_with_one(struct crowd *c, uint32_t users, uint32_t depth)
{
    struct note note;
    crowd_init(c, 1, depth);
    crowd_start(c, users, 1);
    crowd_ask(c, 0, &note, "first");
    crowd_answer(c, "first");
    BENCH_UNTIL(&c->solo.bench, note.done == 1);
    assert_int_equal(crowd_pool(c, 0, 0)->block.idle_count, 1);
}

/* An idle connection goes to who asks, by another login on it, but not before its hold is over. */
static void t_moves_by_logging_in_anew(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    start_with_one(&c, 2, 4);
    size_t before = c.solo.fake.count;
    uint64_t asked_us = crowd_now_us();
    assert_int_equal(crowd_ask(&c, 1, &note, "k"), HG_SUBMIT_WAIT);
    crowd_pass(&c, HOLD_US - 1000);
    assert_int_equal(c.solo.fake.count, before);
    crowd_pass(&c, 11000); /* the next tick after the hold */
    assert_int_equal(c.solo.fake.requests[before].opcode, HG_OPCODE_SASL_AUTH);
    assert_string_equal(c.solo.fake.requests[before].user, "u1");
    crowd_answer(&c, "k");
    BENCH_UNTIL(&c.solo.bench, note.done == 1);
    assert_string_equal(note.value, "v:k");
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    assert_string_equal(c.solo.fake.requests[before + 1].user, "u1");
    assert_true(crowd_now_us() - asked_us <= HOLD_US + 10000);
    assert_int_equal(c.solo.fake.accepted, 1);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_CONNECTS), 1);
    crowd_pass(&c, 200000);
    assert_int_equal(crowd_stat(&c, 1, HG_POOL_MOVES), 1);
    assert_int_equal(crowd_stat(&c, 1, HG_POOL_REBINDS), 1);
    assert_int_equal(crowd_stat(&c, 1, HG_POOL_IDLE), 1);
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_MOVES), 0);
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_IDLE), 0);
    crowd_fini(&c);
}

/* Past its hold an idle connection is taken the moment somebody asks. */
static void t_is_stolen_at_once(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    start_with_one(&c, 2, 4);
    crowd_pass(&c, 300000); /* its user has no demand any more */
    uint64_t asked_us = crowd_now_us();
    assert_int_equal(crowd_ask(&c, 1, &note, "k"), HG_SUBMIT_WAIT);
    crowd_answer(&c, "k");
    BENCH_UNTIL(&c.solo.bench, note.done == 1);
    assert_int_equal(crowd_now_us(), asked_us);
    crowd_pass(&c, 200000);
    assert_int_equal(crowd_stat(&c, 1, HG_POOL_STEALS), 1);
    crowd_fini(&c);
}

/* A busy one is drained first: it takes nothing new, and moves when the last answer has come. */
static void t_moves_only_when_empty(void **state)
{
    (void)state;
    struct crowd c;
    struct note busy[2], more, other;
    start_with_one(&c, 2, 4);
    crowd_ask(&c, 0, &busy[0], "busy0");
    crowd_ask(&c, 0, &busy[1], "busy1");
    crowd_pass(&c, 20000);
    assert_int_equal(crowd_ask(&c, 1, &other, "other"), HG_SUBMIT_WAIT);
    crowd_pass(&c, 20000);
    assert_int_equal(crowd_pool(&c, 0, 0)->block.draining, 1);
    assert_int_equal(crowd_pool(&c, 0, 1)->block.incoming, 1);
    size_t before = c.solo.fake.count;
    assert_int_equal(crowd_ask(&c, 0, &more, "more"), HG_SUBMIT_WAIT);
    crowd_answer(&c, "busy0");
    assert_int_equal(c.solo.fake.count, before); /* one is still unanswered */
    crowd_answer(&c, "busy1");
    BENCH_UNTIL(&c.solo.bench, busy[0].done + busy[1].done == 2);
    BENCH_UNTIL(&c.solo.bench, fake_find(&c.solo.fake, "other") != NULL);
    assert_string_equal(c.solo.fake.requests[before].user, "u1");
    assert_int_equal(c.solo.fake.requests[before].opcode, HG_OPCODE_SASL_AUTH);
    crowd_answer(&c, "other");
    BENCH_UNTIL(&c.solo.bench, other.done == 1);
    assert_string_equal(other.value, "v:other");
    /* It comes back, after the hold, for the one that waits. */
    assert_int_equal(more.done, 0);
    crowd_pass(&c, 3 * HOLD_US);
    crowd_answer(&c, "more");
    BENCH_UNTIL(&c.solo.bench, more.done == 1);
    assert_string_equal(more.value, "v:more");
    assert_int_equal(c.solo.fake.accepted, 1);
    crowd_pass(&c, 200000);
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_DRAINS), 1);
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_MOVES), 1);
    crowd_fini(&c);
}

/* A server that does not answer keeps nobody's connection from him for long; a call that must use
   this connection waits that long, too. */
static void t_a_drain_that_takes_too_long_is_given_back(void **state)
{
    (void)state;
    struct crowd c;
    struct note busy, behind, more, other;
    start_with_one(&c, 2, 4);
    crowd_ask(&c, 0, &busy, "busy");
    crowd_pass(&c, 20000);
    crowd_ask(&c, 1, &other, "other");
    crowd_pass(&c, 20000);
    assert_int_equal(crowd_pool(&c, 0, 0)->block.draining, 1);
    assert_int_equal(crowd_ask(&c, 0, &more, "more"), HG_SUBMIT_WAIT);
    note_init(&behind, c.solo.stores[0], HG_OP_GET, "behind");
    behind.call.identity = c.ids[0];
    behind.call.after = &busy.call;
    assert_int_equal(note_submit(&behind, &c.solo.rigs[0]), HG_SUBMIT_WAIT);
    crowd_pass(&c, 70000);
    assert_non_null(fake_find(&c.solo.fake, "more"));
    assert_non_null(fake_find(&c.solo.fake, "behind"));
    assert_string_equal(fake_find(&c.solo.fake, "more")->user, "u0");
    assert_int_equal(busy.done + other.done, 0);
    crowd_answer(&c, "busy");
    crowd_answer(&c, "more");
    crowd_answer(&c, "behind");
    crowd_pass(&c, 3 * HOLD_US);
    crowd_answer(&c, "other");
    BENCH_UNTIL(&c.solo.bench, busy.done + more.done + behind.done + other.done == 4);
    assert_int_equal(c.solo.fake.accepted, 1);
    crowd_fini(&c);
}

/* A call that waits for its client's earlier one on a connection that goes to another pool. */
static void t_bound_to_a_connection_that_moves(void **state)
{
    (void)state;
    struct crowd c;
    struct note busy, behind, other;
    start_with_one(&c, 2, 4);
    crowd_ask(&c, 0, &busy, "busy");
    crowd_pass(&c, 20000);
    crowd_ask(&c, 1, &other, "other");
    crowd_pass(&c, 20000);
    assert_int_equal(crowd_pool(&c, 0, 0)->block.draining, 1);
    note_init(&behind, c.solo.stores[0], HG_OP_SET, "behind");
    behind.call.identity = c.ids[0];
    behind.call.after = &busy.call;
    assert_int_equal(note_submit(&behind, &c.solo.rigs[0]), HG_SUBMIT_WAIT);
    crowd_answer(&c, "busy");
    crowd_answer(&c, "other");
    crowd_pass(&c, 3 * HOLD_US);
    crowd_answer(&c, "behind");
    BENCH_UNTIL(&c.solo.bench, busy.done + behind.done + other.done == 3);
    assert_int_equal(behind.result.fault, HG_FAULT_NONE);
    assert_true(busy.order < other.order && other.order < behind.order);
    assert_int_equal(c.solo.fake.accepted, 1);
    crowd_fini(&c);
}

/* The server refuses one user: he hears it at once, and so does who comes later; nobody else is
   concerned. After a while it is tried again. */
static void t_a_refused_login_hurts_its_own_only(void **state)
{
    (void)state;
    struct crowd c;
    struct note good[3], bad[3];
    crowd_init(&c, 1, 4);
    strcpy(c.solo.fake.refused, "u1");
    crowd_start(&c, 2, 2);
    crowd_ask(&c, 0, &good[0], "good0");
    crowd_answer(&c, "good0");
    uint64_t asked_us = crowd_now_us();
    crowd_ask(&c, 1, &bad[0], "bad0");
    BENCH_UNTIL(&c.solo.bench, bad[0].done == 1);
    assert_int_equal(crowd_now_us(), asked_us);
    assert_int_equal(bad[0].result.fault, HG_FAULT_DENIED);
    assert_non_null(strstr(bad[0].value, c.solo.fake.address));
    assert_non_null(strstr(bad[0].value, "refuses the login of the tenant"));
    assert_int_equal(solo_breaker(&c.solo), HG_BREAKER_CLOSED);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_CONNECT_FAILURES), 0);
    assert_int_equal(crowd_domain(&c, 0)->balance.total, 1); /* it holds no capacity */
    assert_true(crowd_pool(&c, 0, 1)->denied_until_us <= crowd_now_us() + 1000000);
    crowd_pool(&c, 0, 1)->denied_until_us = crowd_now_us() + 400000;
    int accepted = c.solo.fake.accepted;
    assert_int_equal(crowd_ask(&c, 1, &bad[1], "bad1"), HG_SUBMIT_TAKEN);
    assert_int_equal(bad[1].result.fault, HG_FAULT_DENIED);
    crowd_pass(&c, 350000);
    assert_int_equal(c.solo.fake.accepted, accepted);
    crowd_ask(&c, 0, &good[1], "good1");
    crowd_answer(&c, "good1");
    crowd_pass(&c, 100000);
    c.solo.fake.refused[0] = '\0';
    assert_int_equal(crowd_ask(&c, 1, &bad[2], "bad2"), HG_SUBMIT_WAIT);
    crowd_answer(&c, "bad2");
    BENCH_UNTIL(&c.solo.bench, bad[2].done == 1 && good[1].done == 1);
    assert_int_equal(bad[2].result.fault, HG_FAULT_NONE);
    assert_int_equal(c.solo.fake.accepted, accepted + 1);
    crowd_pass(&c, 200000);
    assert_int_equal(crowd_stat(&c, 1, HG_POOL_REJECTED), 1);
    assert_int_equal(crowd_stat(&c, 1, HG_POOL_CONNECT_ERRORS), 0);
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_REJECTED), 0);
    crowd_fini(&c);
}

/* A new password is tried at once. */
static void t_another_password(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    crowd_init(&c, 1, 4);
    c.solo.conf.user = "boss";
    c.solo.conf.password = "old";
    strcpy(c.solo.fake.refused, "boss");
    crowd_start(&c, 1, 2);
    for (int i = 0; i < 2; i++) {
        solo_ask(&c.solo, &note, "k");
        BENCH_UNTIL(&c.solo.bench, note.done == 1);
        assert_int_equal(note.result.fault, HG_FAULT_DENIED);
        assert_non_null(strstr(note.value, "refuses the login of the upstream"));
        crowd_domain(&c, 0)->own->denied_until_us = crowd_now_us() + 1000000;
    }
    assert_int_equal(c.solo.fake.accepted, 1);
    c.solo.fake.refused[0] = '\0';
    assert_int_equal(hg_identities_set_password(&c.solo.shared->identities, "new"), 0);
    assert_int_equal(solo_ask(&c.solo, &note, "k"), HG_SUBMIT_WAIT);
    crowd_answer(&c, "k");
    BENCH_UNTIL(&c.solo.bench, note.done == 1);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    crowd_fini(&c);
}

/* Who has a connection from before is served by it, and waits no longer than for it. */
static void t_refused_with_a_connection_left(void **state)
{
    (void)state;
    struct crowd c;
    struct note busy, waits, later;
    crowd_init(&c, 1, 1);
    crowd_start(&c, 1, 4);
    crowd_ask(&c, 0, &busy, "busy");
    crowd_settle(&c);
    strcpy(c.solo.fake.refused, "u0");
    assert_int_equal(crowd_ask(&c, 0, &waits, "waits"), HG_SUBMIT_WAIT);
    crowd_settle(&c);
    assert_int_equal(c.solo.fake.accepted, 2);
    assert_true(crowd_pool(&c, 0, 0)->denied);
    crowd_pool(&c, 0, 0)->denied_until_us = crowd_now_us() + 900000;
    assert_int_equal(crowd_ask(&c, 0, &later, "later"), HG_SUBMIT_WAIT);
    crowd_pass(&c, 200000);
    assert_int_equal(busy.done + waits.done + later.done, 0);
    assert_int_equal(c.solo.fake.accepted, 2);
    crowd_answer(&c, "busy");
    crowd_answer(&c, "waits");
    crowd_answer(&c, "later");
    BENCH_UNTIL(&c.solo.bench, busy.done + waits.done + later.done == 3);
    assert_int_equal(waits.result.fault + later.result.fault, HG_FAULT_NONE);
    crowd_fini(&c);
}

/* A user who cannot log in does not stand in the line before one who can. */
static void t_refused_ones_are_passed_by(void **state)
{
    (void)state;
    struct crowd c;
    struct note busy, bad, good;
    crowd_init(&c, 1, 1);
    strcpy(c.solo.fake.refused, "u1");
    crowd_start(&c, 3, 1);
    crowd_ask(&c, 0, &busy, "busy");
    crowd_settle(&c);
    crowd_ask(&c, 1, &bad, "bad");
    crowd_ask(&c, 2, &good, "good");
    crowd_pass(&c, 50000);
    assert_int_equal(bad.done + good.done, 0);
    crowd_answer(&c, "busy");
    crowd_pass(&c, 50000);
    BENCH_UNTIL(&c.solo.bench, bad.done == 1);
    assert_int_equal(bad.result.fault, HG_FAULT_DENIED);
    crowd_answer(&c, "good");
    BENCH_UNTIL(&c.solo.bench, good.done == 1);
    assert_int_equal(good.result.fault, HG_FAULT_NONE);
    crowd_fini(&c);
}

/* A cancelled waiter, and one whose time is over, leave no trace: nothing moves for them. */
static void t_nothing_moves_for_who_has_left(void **state)
{
    (void)state;
    struct crowd c;
    struct note busy, cancelled, late;
    crowd_init(&c, 1, 4);
    c.solo.conf.times.queue_timeout_ms = 15;
    crowd_start(&c, 3, 1);
    crowd_ask(&c, 0, &busy, "busy");
    crowd_settle(&c);
    crowd_ask(&c, 1, &cancelled, "cancelled");
    crowd_ask(&c, 2, &late, "late");
    c.solo.stores[0]->ops->cancel(c.solo.stores[0], &cancelled.call);
    crowd_pass(&c, 40000);
    assert_int_equal(late.done, 1);
    assert_int_equal(late.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(crowd_domain(&c, 0)->balance.waiters, 0);
    crowd_answer(&c, "busy");
    crowd_pass(&c, 200000);
    assert_int_equal(cancelled.done + cancelled.rooms, 0);
    assert_int_equal(crowd_pool(&c, 0, 0)->block.idle_count, 1);
    assert_int_equal(crowd_stat(&c, 1, HG_POOL_MOVES) + crowd_stat(&c, 2, HG_POOL_MOVES), 0);
    crowd_fini(&c);
}

/* The waits between attempts grow up to a minute, with full jitter. */
static void t_refused_logins_back_off(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    crowd_init(&c, 1, 4);
    strcpy(c.solo.fake.refused, "u0");
    crowd_start(&c, 1, 2);
    uint64_t longest_us = 0;
    for (uint32_t i = 0; i < 24; i++) {
        crowd_ask(&c, 0, &note, "k");
        BENCH_UNTIL(&c.solo.bench, note.done == 1);
        assert_int_equal(note.result.fault, HG_FAULT_DENIED);
        assert_int_equal(c.solo.fake.accepted, i + 1);
        struct hg_pool *pool = crowd_pool(&c, 0, 0);
        uint64_t wait_us = pool->denied_until_us - crowd_now_us();
        assert_true(wait_us <= (i < 6 ? 1000000u << i : 60000000u));
        longest_us = wait_us > longest_us ? wait_us : longest_us;
        pool->denied_until_us = crowd_now_us();
        fake_hang_up(&c.solo.fake, 0);
    }
    assert_true(longest_us > 8000000);
    crowd_fini(&c);
}

/* A server that takes one login a connection is connected to anew. */
static void t_no_second_login(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    start_with_one(&c, 2, 4);
    c.solo.fake.one_login = true;
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t user = 1 - round % 2;
        crowd_pass(&c, 300000);
        crowd_ask(&c, user, &note, "k");
        crowd_answer(&c, "k");
        BENCH_UNTIL(&c.solo.bench, note.done == 1);
        assert_int_equal(note.result.fault, HG_FAULT_NONE);
        assert_int_equal(c.solo.fake.accepted, round + 2);
        assert_int_equal(fake_live(&c.solo.fake), 1);
    }
    assert_int_equal(solo_breaker(&c.solo), HG_BREAKER_CLOSED);
    crowd_pass(&c, 200000);
    /* One was tried with each, and then no more. */
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_REJECTED) + crowd_stat(&c, 1, HG_POOL_REJECTED), 2);
    crowd_fini(&c);
}

/* A second login that is not answered is a connect that takes too long. */
static void t_a_login_takes_too_long(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    crowd_init(&c, 1, 4);
    c.solo.conf.times.connect_timeout_ms = 50;
    crowd_start(&c, 2, 1);
    crowd_ask(&c, 0, &note, "first");
    crowd_answer(&c, "first");
    crowd_pass(&c, 300000);
    c.solo.fake.lets_in = false;
    crowd_ask(&c, 1, &note, "k");
    crowd_pass(&c, 40000);
    assert_int_equal(crowd_pool(&c, 0, 1)->block.coming, 1);
    assert_int_equal(fake_live(&c.solo.fake), 1);
    c.solo.fake.automatic = true; /* what comes then must answer a NOOP, too */
    crowd_pass(&c, 200000);
    BENCH_UNTIL(&c.solo.bench, note.done == 1);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    assert_int_equal(c.solo.fake.accepted, 2);
    crowd_fini(&c);
}

/* What nobody uses is closed, and the planner forgets who used it. */
static void t_idle_ones_are_collected(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    crowd_init(&c, 1, 4);
    c.solo.conf.pool_idle_timeout_s = 2;
    crowd_start(&c, 3, 4);
    for (uint32_t user = 0; user < 3; user++) {
        crowd_ask(&c, user, &note, "k");
        crowd_answer(&c, "k");
    }
    assert_int_equal(fake_live(&c.solo.fake), 3);
    assert_int_equal(crowd_domain(&c, 0)->balance.block_count, 3);
    crowd_pass(&c, 1900000);
    assert_int_equal(fake_live(&c.solo.fake), 3);
    crowd_pass(&c, 300000);
    assert_int_equal(fake_live(&c.solo.fake), 0);
    assert_int_equal(crowd_domain(&c, 0)->balance.block_count, 0);
    assert_int_equal(crowd_stat(&c, 2, HG_POOL_IDLE), 0);
    assert_false(hg_domain_tick(crowd_domain(&c, 0), crowd_now_us())); /* nothing is left to do */
    crowd_ask(&c, 2, &note, "again");
    crowd_answer(&c, "again");
    BENCH_UNTIL(&c.solo.bench, note.done == 1);
    crowd_fini(&c);
}

/* A server whose connections all wait unusually long, and of which another one was tried, gets no
   further one of the same user for a while; another user may find out for himself, but not several
   at a time. */
static void t_stuck(void **state)
{
    (void)state;
    struct crowd c;
    struct note notes[4];
    crowd_init(&c, 1, 1);
    crowd_start(&c, 3, 8);
    crowd_domain(&c, 0)->usual_us = 1000;
    crowd_domain(&c, 0)->tries = 1; /* one was tried in vain a moment ago */
    crowd_domain(&c, 0)->try_us = UINT64_MAX;
    crowd_ask(&c, 0, &notes[0], "a");
    crowd_settle(&c);
    assert_non_null(fake_find(&c.solo.fake, "a"));
    crowd_pass(&c, 60000);
    crowd_ask(&c, 0, &notes[1], "b");
    crowd_pass(&c, 60000);
    assert_int_equal(c.solo.fake.accepted, 1);
    c.solo.fake.lets_in = false; /* so that one is under way for long */
    crowd_ask(&c, 1, &notes[2], "c");
    crowd_settle(&c);
    crowd_ask(&c, 2, &notes[3], "d");
    crowd_pass(&c, 60000);
    assert_int_equal(c.solo.fake.accepted, 2);
    fake_obey(&c.solo.fake, &c.solo.fake.requests[c.solo.fake.count - 1]);
    c.solo.fake.automatic = true;
    crowd_pass(&c, 60000);
    assert_int_equal(notes[2].done, 1);
    assert_int_equal(notes[3].done, 1);
    crowd_answer(&c, "a");
    crowd_pass(&c, 60000);
    assert_int_equal(notes[0].done + notes[1].done, 2);
    crowd_fini(&c);
}

/* While the server is out nothing moves and the quotas stay; then all is as it was. */
static void t_the_breaker_freezes(void **state)
{
    (void)state;
    struct crowd c;
    struct note notes[3];
    start_with_one(&c, 2, 4);
    crowd_ask(&c, 0, &notes[0], "busy");
    crowd_pass(&c, 30000);
    uint32_t quota = crowd_pool(&c, 0, 0)->block.quota;
    assert_true(quota > 0);
    fake_stop(&c.solo.fake);
    crowd_settle(&c);
    crowd_ask(&c, 1, &notes[1], "k");
    crowd_pass(&c, 150000); /* the next connect waits a little, at random */
    BENCH_UNTIL(&c.solo.bench, notes[1].done == 1);
    assert_int_equal(notes[1].result.fault, HG_FAULT_DOWN);
    assert_true(crowd_domain(&c, 0)->balance.frozen);
    crowd_pass(&c, 500000);
    assert_int_equal(crowd_pool(&c, 0, 0)->block.quota, quota);
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_MOVES) + crowd_stat(&c, 1, HG_POOL_MOVES), 0);
    fake_start(&c.solo.fake);
    c.solo.fake.automatic = true;
    crowd_pass(&c, 200000);
    assert_true(hg_server_may_send(&c.solo.shared->servers[0]));
    crowd_pass(&c, 10100000); /* the ramp is over after 10 s without a failure */
    crowd_ask(&c, 1, &notes[2], "k");
    crowd_pass(&c, 50000);
    assert_int_equal(notes[2].result.fault, HG_FAULT_NONE);
    assert_int_equal(notes[2].done, 1);
    assert_false(crowd_domain(&c, 0)->balance.frozen);
    crowd_fini(&c);
}

/* The server is back but does not let in whoever asks: others need not wait for him. */
static void t_a_refused_probe_is_an_answer(void **state)
{
    (void)state;
    struct crowd c;
    struct note note;
    start_with_one(&c, 2, 4);
    fake_stop(&c.solo.fake);
    crowd_settle(&c);
    crowd_ask(&c, 0, &note, "k");
    crowd_pass(&c, 150000);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_BREAKER_OPENS), 1);
    strcpy(c.solo.fake.refused, "u0");
    fake_start(&c.solo.fake);
    crowd_pass(&c, 200000);
    assert_true(hg_server_may_send(&c.solo.shared->servers[0]));
    crowd_ask(&c, 0, &note, "k");
    crowd_settle(&c);
    assert_int_equal(note.result.fault, HG_FAULT_DENIED);
    c.solo.fake.automatic = true;
    crowd_ask(&c, 1, &note, "k");
    crowd_pass(&c, 100000);
    assert_int_equal(note.done, 1);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    assert_int_equal(c.solo.shared->servers[0].breaker.live, 1);
    crowd_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_moves_by_logging_in_anew),
        cmocka_unit_test(t_is_stolen_at_once),
        cmocka_unit_test(t_moves_only_when_empty),
        cmocka_unit_test(t_a_drain_that_takes_too_long_is_given_back),
        cmocka_unit_test(t_bound_to_a_connection_that_moves),
        cmocka_unit_test(t_a_refused_login_hurts_its_own_only),
        cmocka_unit_test(t_another_password),
        cmocka_unit_test(t_refused_with_a_connection_left),
        cmocka_unit_test(t_refused_ones_are_passed_by),
        cmocka_unit_test(t_nothing_moves_for_who_has_left),
        cmocka_unit_test(t_refused_logins_back_off),
        cmocka_unit_test(t_no_second_login),
        cmocka_unit_test(t_a_login_takes_too_long),
        cmocka_unit_test(t_idle_ones_are_collected),
        cmocka_unit_test(t_stuck),
        cmocka_unit_test(t_the_breaker_freezes),
        cmocka_unit_test(t_a_refused_probe_is_an_answer),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("domain", tests, NULL, NULL);
}
