// t_slow - a connection whose oldest request waits unusually long takes no new ones
// SPDX-License-Identifier: BSD-3-Clause
#include "late.h"

#include <stdio.h>
#include <stdlib.h>

#include "back/pool_in.h"
#include "base/log.h"

#define PAUSE_US 40000 /* a link is slow after 20 ms and a tick */
#define MANY     400

struct slow {
    struct crowd crowd;
    struct late late;
    struct hg_pool *pool;
};

/* One connection of one user, idle; the usual is half a millisecond. */
static void start(struct slow *s, uint32_t depth, uint32_t connections)
{
    struct note note;
    memset(s, 0, sizeof *s);
    crowd_init(&s->crowd, 1, depth);
    crowd_start(&s->crowd, 1, connections);
    crowd_ask(&s->crowd, 0, &note, "first");
    crowd_settle(&s->crowd);
    crowd_answer(&s->crowd, "first");
    assert_int_equal(note.done, 1);
    s->pool = crowd_pool(&s->crowd, 0, 0);
    s->pool->domain->usual_us = 500;
    s->pool->domain->slow_us = hg_domain_slow_us(s->pool->domain);
    s->late.late_us = 50000000;
}

static void stop(struct slow *s)
{
    crowd_fini(&s->crowd);
}

static enum hg_submit ask(struct slow *s, struct note *note, const char *key)
{
    return crowd_ask(&s->crowd, 0, note, key);
}

static enum hg_submit ask_after(struct slow *s, struct note *note, const char *key,
                                struct note *after)
{
    note_init(note, s->crowd.solo.stores[0], HG_OP_GET, key);
    note->call.identity = s->crowd.ids[0];
    note->call.after = &after->call;
    return note_submit(note, &s->crowd.solo.rigs[0]);
}

static void pass(struct slow *s, uint64_t us)
{
    late_pass(&s->late, &s->crowd, us);
}

static int connections(const struct slow *s)
{
    return s->crowd.solo.fake.accepted;
}

/* There is one connection, and one request on it takes long: who comes a little later gets another
   one and is answered at once. */
static void t_innocents_do_not_wait(void **state)
{
    (void)state;
    static struct slow s;
    static struct note notes[MANY];
    struct note culprit;
    start(&s, 256, 4);
    ask(&s, &culprit, "culprit");
    pass(&s, PAUSE_US);
    assert_int_equal(s.pool->slow_count, 1);
    for (int i = 0; i < MANY; i++) {
        ask(&s, &notes[i], "innocent");
        pass(&s, 1000);
        assert_int_equal(notes[i].done, 1);
        assert_string_equal(notes[i].value, "v:innocent");
    }
    assert_int_equal(culprit.done, 0);
    assert_int_equal(connections(&s), 2);
    assert_int_equal(s.pool->slow_count, 1);
    assert_int_equal(crowd_stat(&s.crowd, 0, HG_POOL_SLOW), 1);
    assert_int_equal(solo_stat(&s.crowd.solo, HG_UPSTREAM_SLOW), 1);
    /* It is answered, and its connection is as good as the other. */
    s.late.late_us = 0;
    pass(&s, 1000);
    assert_int_equal(culprit.done, 1);
    assert_int_equal(s.pool->slow_count, 0);
    struct hg_list *node = hg_list_first(&s.pool->ready);
    assert_true(node != NULL && node->next != &s.pool->ready);
    assert_true(hg_list_empty(&s.pool->slow));
    stop(&s);
}

/* A request that finds a connection of which nothing was heard for long does not wait for the tick
   to find out. */
static void t_is_found_out_by_a_request(void **state)
{
    (void)state;
    static struct slow s;
    struct note culprit, other;
    start(&s, 256, 4);
    pass(&s, 1000 - crowd_now_us() % 1000);
    while (crowd_now_us() % 10000 != 1000) /* a millisecond behind a tick */
        pass(&s, 1000);
    ask(&s, &culprit, "culprit");
    pass(&s, 21000);
    assert_int_equal(s.pool->slow_count, 0);
    assert_int_equal(ask(&s, &other, "other"), HG_SUBMIT_WAIT);
    assert_int_equal(s.pool->slow_count, 1);
    pass(&s, 1000);
    assert_int_equal(other.done, 1);
    stop(&s);
}

/* Those that were behind it are behind it still; it takes others when the oldest is young. */
static void t_comes_back_when_its_oldest_is_young(void **state)
{
    (void)state;
    static struct slow s;
    struct note culprit[2], behind, next;
    start(&s, 256, 1);
    ask(&s, &culprit[0], "culprit");
    ask(&s, &culprit[1], "culprit");
    ask(&s, &behind, "behind");
    pass(&s, PAUSE_US);
    assert_int_equal(s.pool->slow_count, 1);
    /* No other connection may be made: it waits in line. */
    assert_int_equal(ask(&s, &next, "next"), HG_SUBMIT_WAIT);
    /* The first is answered; the second has waited for as long. */
    struct fake *fake = &s.crowd.solo.fake;
    fake_obey(fake, &fake->requests[fake->count - 3]);
    pass(&s, 1000);
    assert_int_equal(culprit[0].done, 1);
    assert_int_equal(s.pool->slow_count, 1);
    assert_int_equal(behind.done + next.done, 0);
    s.late.late_us = 0;
    pass(&s, 2000);
    assert_int_equal(next.done, 1);
    assert_int_equal(connections(&s), 1);
    assert_int_equal(s.pool->slow_count, 0);
    assert_true(culprit[1].order < behind.order && behind.order < next.order);
    stop(&s);
}

/* The calls of one client for one key stay behind each other, whatever waits. */
static void t_order_is_kept(void **state)
{
    (void)state;
    static struct slow s;
    struct note culprit, mine, next, other;
    start(&s, 256, 4);
    ask(&s, &culprit, "culprit");
    ask(&s, &mine, "mine");
    struct hg_link *link = mine.call.place.link;
    pass(&s, PAUSE_US);
    assert_true(link->slow);
    assert_int_equal(ask_after(&s, &next, "mine", &mine), HG_SUBMIT_TAKEN);
    assert_ptr_equal(next.call.place.link, link);
    assert_true(link->slow);
    /* Nobody else follows it there. */
    assert_true(hg_list_empty(&s.pool->ready));
    assert_int_equal(ask(&s, &other, "other"), HG_SUBMIT_WAIT);
    assert_int_equal(s.pool->slow_count, 1);
    pass(&s, PAUSE_US);
    assert_int_equal(next.done, 0);
    assert_int_equal(other.done, 1);
    s.late.late_us = 0;
    pass(&s, 1000);
    assert_int_equal(next.done, 1);
    assert_true(culprit.order < mine.order && mine.order < next.order);
    stop(&s);
}

/* As many as exceed the depth of a slow connection may follow there, too; it comes back as full as
   it is. */
static void t_slow_and_full(void **state)
{
    (void)state;
    static struct slow s;
    struct note notes[6];
    start(&s, 3, 1);
    ask(&s, &notes[0], "culprit");
    ask(&s, &notes[1], "mine");
    pass(&s, PAUSE_US);
    for (int i = 2; i < 5; i++)
        assert_int_equal(ask_after(&s, &notes[i], "mine", &notes[i - 1]), HG_SUBMIT_TAKEN);
    assert_true(hg_list_empty(&s.pool->full) && hg_list_empty(&s.pool->ready));
    assert_int_equal(s.pool->slow_count, 1);
    assert_int_equal(ask(&s, &notes[5], "other"), HG_SUBMIT_WAIT);
    struct fake *fake = &s.crowd.solo.fake;
    crowd_settle(&s.crowd);
    s.late.each_us = 60000000;
    fake_obey(fake, fake_find(fake, "culprit"));
    pass(&s, 100);
    fake_obey(fake, &fake->requests[fake->count - 4]); /* "mine", which had waited, too */
    pass(&s, 100);
    assert_int_equal(notes[1].done, 1);
    assert_int_equal(s.pool->slow_count, 0);
    assert_int_equal(notes[5].done + notes[5].rooms, 0); /* three are left: it is full */
    s.late.each_us = 0;
    pass(&s, 2000);
    for (int i = 0; i < 6; i++)
        assert_int_equal(notes[i].done, 1);
    stop(&s);
}

/* One connection is all there is: calls wait in line, no longer than they may, and go when the
   request that took long is answered. */
static void t_line_without_another(void **state)
{
    (void)state;
    static struct slow s;
    struct note culprit, late, next;
    start(&s, 256, 1);
    ask(&s, &culprit, "culprit");
    pass(&s, PAUSE_US);
    note_init(&late, s.crowd.solo.stores[0], HG_OP_GET, "late");
    late.call.identity = s.crowd.ids[0];
    late.call.deadline_us = crowd_now_us() + 30000;
    assert_int_equal(note_submit(&late, &s.crowd.solo.rigs[0]), HG_SUBMIT_WAIT);
    assert_int_equal(ask(&s, &next, "next"), HG_SUBMIT_WAIT);
    pass(&s, 50000);
    assert_int_equal(late.done, 1);
    assert_int_equal(late.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(connections(&s), 1);
    s.late.late_us = 0;
    pass(&s, 2000);
    assert_int_equal(next.done, 1);
    assert_string_equal(next.value, "v:next");
    stop(&s);
}

/* One request each 2 ms, a tenth of them culprits; how many innocents were answered. */
static unsigned run_mixed(struct slow *s, bool apart, unsigned *ret_culprits)
{
    static struct note notes[MANY];
    unsigned innocents = 0;
    *ret_culprits = 0;
    s->late.late_us = 100000;
    for (unsigned i = 0; i < MANY; i++) {
        struct note *note = &notes[i];
        bool is_culprit = i % 10 == 0;
        note_init(note, s->crowd.solo.stores[0], HG_OP_GET, is_culprit ? "culprit" : "innocent");
        note->call.identity = s->crowd.ids[0];
        note->call.quarantine = is_culprit && apart;
        note_submit(note, &s->crowd.solo.rigs[0]);
        pass(s, 2000);
    }
    for (unsigned i = 0; i < MANY; i++) {
        innocents += notes[i].key[0] == 'i' && notes[i].done == 1;
        *ret_culprits += notes[i].key[0] == 'c' && notes[i].done == 1;
    }
    s->late.late_us = 0;
    pass(s, 200000);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(notes[i].done, 1);
    assert_int_equal(s->pool->slow_count, 0);
    return innocents;
}

/* A request in ten takes 100 ms: as many connections are made as may be, and the others are
   answered all the time. */
static void t_many_culprits(void **state)
{
    (void)state;
    static struct slow s;
    unsigned culprits;
    start(&s, 256, 6);
    unsigned innocents = run_mixed(&s, false, &culprits);
    print_message("%u of 360 innocents answered on %d connections\n", innocents, connections(&s));
    assert_true(connections(&s) > 3 && connections(&s) <= 6);
    assert_true(innocents > 300);
    stop(&s);
}

/* The same, but those that take long have passed a bind throttle: they hold up nobody. */
static void t_culprits_in_quarantine(void **state)
{
    (void)state;
    static struct slow s;
    unsigned culprits;
    start(&s, 256, 4);
    assert_int_equal(run_mixed(&s, true, &culprits), 360);
    assert_in_range(culprits, 6, 8); /* one after the other, in 800 ms */
    assert_int_equal(connections(&s), 2);
    stop(&s);
}

/* The server has become slower for everybody: that is the usual soon, and nothing is slow then. */
static void t_slower_for_all_is_not_slow(void **state)
{
    (void)state;
    static struct slow s;
    static struct note notes[16];
    unsigned asked = 0, done = 0;
    start(&s, 256, 32);
    s.late.each_us = 40000;
    memset(notes, 0, sizeof notes);
    uint64_t start_us = crowd_now_us();
    while (s.pool->domain->slow_us < 200000 && crowd_now_us() - start_us < 5000000) {
        for (int i = 0; i < 16; i++) {
            if (asked >= 16 && notes[i].done == 0)
                continue;
            done += (unsigned)notes[i].done;
            ask(&s, &notes[i], (char[2]){(char)('a' + i), 0});
            asked++;
        }
        pass(&s, 1000);
    }
    print_message("known after %u ms and %u answers, with %d connections\n",
                  (unsigned)((crowd_now_us() - start_us) / 1000), done, connections(&s));
    assert_true(s.pool->domain->slow_us >= 200000);
    assert_true(connections(&s) <= 16); /* set apart: one for each request under way, no more */
    stop(&s);
}

/* It answers nothing: perhaps that is the one request, so another connection is made at once; when
   that waits as well the next ones come after ever longer pauses. */
static void t_few_connections_to_a_stuck_server(void **state)
{
    (void)state;
    static struct slow s;
    struct note notes[8], next[2];
    start(&s, 1, 8);
    s.late.each_us = 60000000;
    assert_int_equal(ask(&s, &notes[0], "first"), HG_SUBMIT_TAKEN);
    pass(&s, PAUSE_US);
    assert_int_equal(connections(&s), 1); /* nobody needs another */
    for (int i = 1; i < 8; i++)
        assert_int_equal(ask(&s, &notes[i], "more"), HG_SUBMIT_WAIT);
    pass(&s, 1000);
    assert_int_equal(connections(&s), 2);
    pass(&s, 38000);
    assert_int_equal(connections(&s), 2);
    pass(&s, 12000); /* 40 ms and a tick */
    assert_int_equal(connections(&s), 3);
    pass(&s, 68000);
    assert_int_equal(connections(&s), 3);
    pass(&s, 22000); /* 80 ms more */
    assert_int_equal(connections(&s), 4);
    pass(&s, 130000);
    assert_int_equal(connections(&s), 4);
    pass(&s, 50000); /* 160 ms more */
    assert_int_equal(connections(&s), 5);
    /* An answer after all that time is no sign that another one would help. */
    fake_obey(&s.crowd.solo.fake, fake_find(&s.crowd.solo.fake, "first"));
    pass(&s, 1000);
    assert_int_equal(notes[0].done, 1);
    assert_true(s.pool->domain->tries > 0);
    /* When it answers as usual it gets what it needs. */
    s.late.each_us = 0;
    pass(&s, 10000);
    for (int i = 0; i < 8; i++)
        assert_int_equal(notes[i].done, 1);
    assert_int_equal(s.pool->slow_count, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ask(&s, &next[i], "next"), HG_SUBMIT_TAKEN);
    pass(&s, 1000);
    assert_int_equal(next[1].done, 1);
    assert_int_equal(s.pool->domain->tries, 0);
    stop(&s);
}

/* It was we who did not look: the answer is there, and nobody is called slow. */
static void t_our_own_pause(void **state)
{
    (void)state;
    static struct slow s;
    struct note first, second;
    start(&s, 256, 4);
    pass(&s, 10000);
    ask(&s, &first, "first");
    crowd_settle(&s.crowd);
    struct fake *fake = &s.crowd.solo.fake;
    fake_obey(fake, fake_find(fake, "first"));
    crowd_stall(&s.crowd, 60000);
    assert_int_equal(ask(&s, &second, "second"), HG_SUBMIT_TAKEN);
    assert_int_equal(s.pool->slow_count, 0);
    pass(&s, 1000);
    assert_int_equal(first.done + second.done, 2);
    assert_int_equal(connections(&s), 1);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_innocents_do_not_wait),
        cmocka_unit_test(t_is_found_out_by_a_request),
        cmocka_unit_test(t_comes_back_when_its_oldest_is_young),
        cmocka_unit_test(t_order_is_kept),
        cmocka_unit_test(t_slow_and_full),
        cmocka_unit_test(t_line_without_another),
        cmocka_unit_test(t_many_culprits),
        cmocka_unit_test(t_culprits_in_quarantine),
        cmocka_unit_test(t_slower_for_all_is_not_slow),
        cmocka_unit_test(t_few_connections_to_a_stuck_server),
        cmocka_unit_test(t_our_own_pause),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("slow", tests, NULL, NULL);
}
