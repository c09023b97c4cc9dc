// t_line - calls that wait for room: in order, bounded, nobody forgotten
// SPDX-License-Identifier: BSD-3-Clause
#include "solo.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"

static void t_waiting_is_bounded(void **state)
{
    (void)state;
    struct solo s;
    struct note sent, waits, hurried, too_many, late;
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    s.conf.pool_queue_max = 2;
    s.conf.times.queue_timeout_ms = 150;
    s.conf.times.backend_timeout_ms = 3000;
    solo_start(&s, 1);
    solo_warm_up(&s);
    uint64_t start_us = s.rigs[0].loop.now_us;
    assert_int_equal(solo_ask(&s, &sent, "sent"), HG_SUBMIT_TAKEN);
    assert_int_equal(solo_ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    note_init(&hurried, s.stores[0], HG_OP_GET, "hurried");
    hurried.call.deadline_us = s.rigs[0].loop.now_us + 40000;
    assert_int_equal(note_submit(&hurried, &s.rigs[0]), HG_SUBMIT_WAIT);
    assert_int_equal(solo_ask(&s, &too_many, "too many"), HG_SUBMIT_TAKEN);
    assert_int_equal(too_many.done, 1);
    assert_int_equal(too_many.result.fault, HG_FAULT_QUEUE_FULL);
    note_init(&late, s.stores[0], HG_OP_GET, "late");
    late.call.deadline_us = s.rigs[0].loop.now_us;
    BENCH_UNTIL(&s.bench, hurried.done == 1);
    assert_int_equal(hurried.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_true(bench_now_us() - start_us >= 40000);
    assert_int_equal(note_submit(&late, &s.rigs[0]), HG_SUBMIT_TAKEN);
    assert_int_equal(late.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    BENCH_UNTIL(&s.bench, waits.done == 1);
    assert_int_equal(waits.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_true(bench_now_us() - start_us >= 150000);
    assert_true(hurried.order < waits.order);
    assert_int_equal(sent.done, 0);
    assert_int_equal(hurried.rooms + waits.rooms, 0);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_QUEUE_TIMEOUTS), 3);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_QUEUE_FULL), 1);
    solo_fini(&s);
    assert_int_equal(sent.done, 1);
}

/* Two connections, A full and B with room; what must follow a call on A waits for A. */
static void t_after_stays_on_its_connection(void **state)
{
    (void)state;
    struct solo s;
    struct note a[3], b, follower, waiter, other, touch;
    solo_init(&s, 1);
    s.conf.pool_depth = 3;
    s.conf.times.backend_timeout_ms = 3000;
    s.conf.times.queue_timeout_ms = 3000;
    solo_start(&s, 2);
    solo_warm_up(&s);
    solo_ask(&s, &a[0], "a0");
    solo_ask(&s, &a[1], "a1");
    solo_ask(&s, &a[2], "a2");
    assert_int_equal(solo_ask(&s, &b, "b"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "b") != NULL);
    int conn_a = fake_find(&s.fake, "a1")->conn, conn_b = fake_find(&s.fake, "b")->conn;
    assert_int_not_equal(conn_a, conn_b);

    /* A is full, B is not: followers go to A all the same, up to twice its depth. */
    struct note extra[3];
    for (int i = 0; i < 3; i++) {
        note_init(&extra[i], s.stores[0], HG_OP_GET, i == 0 ? "x0" : i == 1 ? "x1" : "x2");
        extra[i].call.after = &a[1].call;
        assert_int_equal(note_submit(&extra[i], &s.rigs[0]), HG_SUBMIT_TAKEN);
    }
    /* Then they wait, and others pass by. */
    note_init(&waiter, s.stores[0], HG_OP_GET, "a1-next");
    waiter.call.after = &a[1].call;
    assert_int_equal(note_submit(&waiter, &s.rigs[0]), HG_SUBMIT_WAIT);
    assert_int_equal(solo_ask(&s, &other, "other"), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "other") != NULL);
    assert_int_equal(fake_find(&s.fake, "other")->conn, conn_b);
    bench_for(&s.bench, 5000);
    assert_int_equal(waiter.rooms, 0);
    fake_obey(&s.fake, fake_find(&s.fake, "a0"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "a1-next") != NULL);
    assert_int_equal(waiter.rooms, 1);
    assert_int_equal(fake_find(&s.fake, "a1-next")->conn, conn_a);
    /* Nobody else goes to A before it is below its depth. */
    struct note third, fourth;
    assert_int_equal(solo_ask(&s, &third, "third"), HG_SUBMIT_TAKEN);
    assert_int_equal(solo_ask(&s, &fourth, "fourth"), HG_SUBMIT_WAIT);
    static const char *const left[] = {"a1", "a2", "x0"};
    for (int i = 0; i < 3; i++) {
        fake_obey(&s.fake, fake_find(&s.fake, left[i]));
        bench_for(&s.bench, 15000); /* a tick, too */
        assert_int_equal(fourth.rooms, 0);
    }
    fake_obey(&s.fake, fake_find(&s.fake, "x1"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "fourth") != NULL);
    assert_int_equal(fake_find(&s.fake, "fourth")->conn, conn_a);
    fake_obey(&s.fake, fake_find(&s.fake, "x2"));
    BENCH_UNTIL(&s.bench, extra[2].done == 1);

    /* B was used last, both have room: the follower goes to A. */
    fake_obey(&s.fake, fake_find(&s.fake, "b"));
    BENCH_UNTIL(&s.bench, b.done == 1);
    note_init(&touch, s.stores[0], HG_OP_GET, "touch");
    touch.call.after = &other.call;
    assert_int_equal(note_submit(&touch, &s.rigs[0]), HG_SUBMIT_TAKEN);
    note_init(&follower, s.stores[0], HG_OP_GET, "follower");
    follower.call.after = &waiter.call;
    assert_int_equal(note_submit(&follower, &s.rigs[0]), HG_SUBMIT_TAKEN);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "follower") != NULL);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "touch") != NULL);
    assert_int_equal(fake_find(&s.fake, "touch")->conn, conn_b);
    assert_int_equal(fake_find(&s.fake, "follower")->conn, conn_a);
    solo_fini(&s);
}

static void t_woken_who_does_not_come_holds_nobody_up(void **state)
{
    (void)state;
    struct solo s;
    struct note sent, stays[3], comes;
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    solo_start(&s, 1);
    solo_warm_up(&s);
    solo_ask(&s, &sent, "sent");
    for (int i = 0; i < 3; i++) {
        note_init(&stays[i], s.stores[0], HG_OP_GET, "stays");
        stays[i].stay = true;
        assert_int_equal(note_submit(&stays[i], &s.rigs[0]), HG_SUBMIT_WAIT);
    }
    assert_int_equal(solo_ask(&s, &comes, "comes"), HG_SUBMIT_WAIT);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "sent") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "sent"));
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, stays[0].rooms == 1);
    assert_int_equal(stays[1].rooms, 0); /* one slot, one wake-up a turn */
    BENCH_UNTIL(&s.bench, comes.done == 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stays[i].rooms, 1);
    solo_fini(&s);
}

static struct note newcomer;
static struct rig *newcomer_rig;
static enum hg_submit newcomer_got;

static void bring_newcomer(struct hg_call *call, const struct hg_result *result)
{
    (void)call;
    (void)result;
    newcomer_got = note_submit(&newcomer, newcomer_rig);
}

/* A slot gets free, and before the end of the turn somebody new asks: those that wait go first. */
static void t_newcomers_do_not_pass(void **state)
{
    (void)state;
    struct solo s;
    struct note sent, waits;
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    solo_start(&s, 1);
    solo_warm_up(&s);
    size_t before = s.fake.count;
    note_init(&newcomer, s.stores[0], HG_OP_GET, "newcomer");
    newcomer_rig = &s.rigs[0];
    newcomer_got = HG_SUBMIT_TAKEN;
    note_init(&sent, s.stores[0], HG_OP_GET, "sent");
    sent.call.on_done = bring_newcomer;
    note_submit(&sent, &s.rigs[0]);
    assert_int_equal(solo_ask(&s, &waits, "waits"), HG_SUBMIT_WAIT);
    s.fake.automatic = true;
    BENCH_UNTIL(&s.bench, newcomer.done == 1);
    assert_int_equal(newcomer_got, HG_SUBMIT_WAIT);
    assert_int_equal(waits.done, 1);
    assert_string_equal(s.fake.requests[before + 1].key, "waits");
    assert_string_equal(s.fake.requests[before + 2].key, "newcomer");
    solo_fini(&s);
}

static void t_cancel(void **state)
{
    (void)state;
    struct solo s;
    struct note pending, waiting, last;
    solo_init(&s, 1);
    s.conf.pool_depth = 1;
    solo_start(&s, 1);
    solo_warm_up(&s);
    solo_ask(&s, &pending, "pending");
    solo_ask(&s, &waiting, "waiting");
    solo_ask(&s, &last, "last");
    s.stores[0]->ops->cancel(s.stores[0], &waiting.call);
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "pending") != NULL);
    s.stores[0]->ops->cancel(s.stores[0], &pending.call);
    assert_false(s.stores[0]->ops->drained(s.stores[0])); /* its reply is still to come */
    fake_obey(&s.fake, fake_find(&s.fake, "pending"));
    BENCH_UNTIL(&s.bench, fake_find(&s.fake, "last") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "last"));
    BENCH_UNTIL(&s.bench, last.done == 1);
    assert_string_equal(last.value, "v:last");
    assert_int_equal(pending.done + waiting.done + waiting.rooms, 0);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_LATE_REPLIES), 1);
    assert_int_equal(solo_stat(&s, HG_UPSTREAM_WAITING), 0);
    assert_true(s.stores[0]->ops->drained(s.stores[0]));
    solo_fini(&s);
}

/* Calls come and go, some are cancelled, the server answers when it likes: each is answered once,
   nobody waits for ever. */
static void t_no_wakeup_is_lost(void **state)
{
    (void)state;
    enum { CALLS = 3000 };
    struct solo s;
    struct hg_prng prng = {42};
    struct note *notes = calloc(CALLS, sizeof *notes);
    bool *cancelled = calloc(CALLS, sizeof *cancelled);
    solo_init(&s, 1);
    s.conf.pool_depth = 3;
    s.conf.times.queue_timeout_ms = 60000;
    s.conf.times.backend_timeout_ms = 60000;
    solo_start(&s, 2);
    size_t answered = 0;
    int made = 0, left = CALLS;
    uint64_t end_us = bench_deadline() + 20000000;
    while (left > 0) {
        assert_true(hg_now_us() < end_us);
        for (uint64_t n = hg_prng_below(&prng, 12); n > 0 && made < CALLS; n--) {
            note_init(&notes[made], s.stores[0], HG_OP_GET, "k");
            if (made > 10 && hg_prng_below(&prng, 3) == 0)
                notes[made].call.after = &notes[made - 1 - (int)hg_prng_below(&prng, 10)].call;
            note_submit(&notes[made++], &s.rigs[0]);
        }
        bench_turn(&s.bench);
        while (answered < s.fake.count && hg_prng_below(&prng, 4) > 0)
            fake_obey(&s.fake, &s.fake.requests[answered++]);
        int victim = (int)hg_prng_below(&prng, (uint64_t)made);
        if (notes[victim].done == 0 && !cancelled[victim]) {
            s.stores[0]->ops->cancel(s.stores[0], &notes[victim].call);
            cancelled[victim] = true;
        }
        left = CALLS - made;
        for (int i = 0; i < made; i++)
            left += notes[i].done == 0 && !cancelled[i];
    }
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(notes[i].done, cancelled[i] ? 0 : 1);
        if (!cancelled[i])
            assert_string_equal(notes[i].value, "v:k");
    }
    assert_in_range(s.fake.accepted, 1, 2);
    solo_fini(&s);
    free(cancelled);
    free(notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_waiting_is_bounded),
        cmocka_unit_test(t_after_stays_on_its_connection),
        cmocka_unit_test(t_woken_who_does_not_come_holds_nobody_up),
        cmocka_unit_test(t_newcomers_do_not_pass),
        cmocka_unit_test(t_cancel),
        cmocka_unit_test(t_no_wakeup_is_lost),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
