// t_slow - a connection whose oldest request waits unusually long takes no new ones
// SPDX-License-Identifier: BSD-3-Clause
#include "late.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "back/pool_in.h"
#include "base/log.h"

#define INNOCENTS 400
#define PAUSE_US  60000 /* a link is slow after 20 ms and a tick */

struct slow {
    struct solo solo;
    struct late late;
    struct hg_pool *pool;
};

static void start(struct slow *s, uint32_t share)
{
    memset(s, 0, sizeof *s);
    solo_init(&s->solo, 1);
    s->solo.conf.times.backend_timeout_ms = 10000;
    s->solo.conf.times.queue_timeout_ms = 10000;
    solo_start(&s->solo, share);
    solo_bear_silence(&s->solo);
    solo_warm_up(&s->solo);
    s->pool = rig_pool(s->solo.stores[0], 0);
    s->pool->domain->usual_us = 500;
    s->pool->domain->slow_us = hg_domain_slow_us(s->pool->domain);
    s->late.late_us = 10000000;
}

static void stop(struct slow *s)
{
    solo_fini(&s->solo);
}

static struct hg_link *link_of(const struct note *note)
{
    return note->call.place.link;
}

/* There is one connection, and one request on it takes long: who comes a little later gets another
   one and is answered at once. */
static void t_innocents_do_not_wait(void **state)
{
    (void)state;
    static struct slow s;
    static struct note notes[INNOCENTS];
    struct note culprit;
    uint64_t longest_us = 0;
    start(&s, 4);
    solo_ask(&s.solo, &culprit, "culprit");
    late_for(&s.late, &s.solo, PAUSE_US);
    assert_int_equal(s.pool->slow_count, 1);
    for (int i = 0; i < INNOCENTS; i++) {
        uint64_t start_us = hg_now_us();
        solo_ask(&s.solo, &notes[i], "innocent");
        LATE_UNTIL(&s.late, &s.solo, notes[i].done == 1);
        assert_string_equal(notes[i].value, "v:innocent");
        if (i > 0 && hg_now_us() - start_us > longest_us)
            longest_us = hg_now_us() - start_us;
    }
    print_message("longest wait of an innocent: %llu us\n", (unsigned long long)longest_us);
    assert_int_equal(culprit.done, 0);
    assert_int_equal(s.solo.fake.accepted, 2);
    assert_int_equal(s.pool->slow_count, 1);
    BENCH_UNTIL(&s.solo.bench, hg_counter_get(&s.pool->stats->values[HG_POOL_SLOW]) == 1);
    /* It is answered, and its connection is as good as the other. */
    s.late.late_us = 0;
    LATE_UNTIL(&s.late, &s.solo, culprit.done == 1);
    assert_int_equal(s.pool->slow_count, 0);
    struct hg_list *node = hg_list_first(&s.pool->ready);
    assert_true(node != NULL && node->next != &s.pool->ready);
    assert_true(hg_list_empty(&s.pool->slow));
    stop(&s);
}

/* Those that were behind it are behind it still; it takes others when the oldest is young. */
static void t_comes_back_when_its_oldest_is_young(void **state)
{
    (void)state;
    static struct slow s;
    struct note culprit[2], behind, next;
    start(&s, 1);
    solo_ask(&s.solo, &culprit[0], "culprit");
    solo_ask(&s.solo, &culprit[1], "culprit");
    solo_ask(&s.solo, &behind, "behind");
    late_for(&s.late, &s.solo, PAUSE_US);
    assert_int_equal(s.pool->slow_count, 1);
    /* No other connection may be made: it waits in line. */
    assert_int_equal(solo_ask(&s.solo, &next, "next"), HG_SUBMIT_WAIT);
    assert_int_equal(s.solo.fake.accepted, 1);
    /* The first is answered; the second has waited for as long. */
    fake_obey(&s.solo.fake, &s.solo.fake.requests[s.solo.fake.count - 3]);
    LATE_UNTIL(&s.late, &s.solo, culprit[0].done == 1);
    assert_int_equal(s.pool->slow_count, 1);
    assert_int_equal(behind.done + next.done, 0);
    s.late.late_us = 0;
    LATE_UNTIL(&s.late, &s.solo, next.done == 1);
    assert_int_equal(s.pool->slow_count, 0);
    assert_true(culprit[1].order < behind.order && behind.order < next.order);
    stop(&s);
}

/* The calls of one client for one key stay behind each other, whatever waits. */
static void t_order_is_kept(void **state)
{
    (void)state;
    static struct slow s;
    struct note culprit, set, get;
    start(&s, 4);
    solo_ask(&s.solo, &culprit, "culprit");
    solo_ask_of(&s.solo, 0, &set, HG_OP_SET, "mine");
    struct hg_link *link = link_of(&set);
    late_for(&s.late, &s.solo, PAUSE_US);
    assert_true(link->slow);
    note_init(&get, s.solo.stores[0], HG_OP_GET, "mine");
    get.call.after = &set.call;
    assert_int_equal(note_submit(&get, &s.solo.rigs[0]), HG_SUBMIT_TAKEN);
    assert_ptr_equal(link_of(&get), link);
    assert_true(link->slow);
    late_for(&s.late, &s.solo, PAUSE_US);
    assert_int_equal(get.done, 0);
    s.late.late_us = 0;
    LATE_UNTIL(&s.late, &s.solo, get.done == 1);
    assert_true(culprit.order < set.order && set.order < get.order);
    stop(&s);
}

/* One connection is all there is: calls wait in line, no longer than they may, and go when the
   request that took long is answered. */
static void t_line_without_another(void **state)
{
    (void)state;
    static struct slow s;
    struct note culprit, late, next;
    start(&s, 1);
    solo_ask(&s.solo, &culprit, "culprit");
    late_for(&s.late, &s.solo, PAUSE_US);
    note_init(&late, s.solo.stores[0], HG_OP_GET, "late");
    late.call.deadline_us = hg_now_us() + 30000;
    assert_int_equal(note_submit(&late, &s.solo.rigs[0]), HG_SUBMIT_WAIT);
    assert_int_equal(solo_ask(&s.solo, &next, "next"), HG_SUBMIT_WAIT);
    LATE_UNTIL(&s.late, &s.solo, late.done == 1);
    assert_int_equal(late.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(s.solo.fake.accepted, 1);
    s.late.late_us = 0;
    LATE_UNTIL(&s.late, &s.solo, next.done == 1);
    assert_string_equal(next.value, "v:next");
    assert_null(fake_find(&s.solo.fake, "late"));
    stop(&s);
}

/* A request in ten takes 100 ms: as many connections are made as may be, and the others are
   answered all the time. */
static void t_many_culprits(void **state)
{
    (void)state;
    static struct slow s;
    static struct note notes[400];
    unsigned asked = 0, innocents = 0, answered = 0;
    memset(notes, 0, sizeof notes);
    start(&s, 6);
    s.late.late_us = 100000;
    uint64_t start_us = hg_now_us(), each_us = 2000;
    while (asked < 400) {
        while (asked < 400 && hg_now_us() - start_us >= asked * each_us) {
            bool is_culprit = asked % 10 == 0;
            solo_ask(&s.solo, &notes[asked++], is_culprit ? "culprit" : "innocent");
        }
        late_turn(&s.late, &s.solo);
    }
    for (unsigned i = 0; i < asked; i++) {
        innocents += notes[i].key[0] == 'i';
        answered += notes[i].key[0] == 'i' && notes[i].done == 1;
    }
    print_message("%u of %u innocents answered on %d connections\n", answered, innocents,
                  s.solo.fake.accepted);
    assert_true(s.solo.fake.accepted > 3 && s.solo.fake.accepted <= 6);
    assert_true(answered > innocents / 2);
    s.late.late_us = 0;
    LATE_UNTIL(&s.late, &s.solo, hg_pool_pending(s.pool) == 0 && s.pool->waiting_count == 0);
    assert_int_equal(s.pool->slow_count, 0);
    stop(&s);
}

/* The same, but those that take long have passed a bind throttle: they hold up nobody. */
static void t_culprits_in_quarantine(void **state)
{
    (void)state;
    static struct slow s;
    static struct note notes[400];
    unsigned asked = 0, innocents = 0, culprits = 0;
    memset(notes, 0, sizeof notes);
    start(&s, 4);
    s.late.late_us = 100000;
    uint64_t start_us = hg_now_us(), each_us = 2000;
    while (asked < 400) {
        while (asked < 400 && hg_now_us() - start_us >= asked * each_us) {
            struct note *note = &notes[asked];
            bool is_culprit = asked++ % 10 == 0;
            note_init(note, s.solo.stores[0], HG_OP_GET, is_culprit ? "culprit" : "innocent");
            note->call.quarantine = is_culprit;
            note_submit(note, &s.solo.rigs[0]);
        }
        late_turn(&s.late, &s.solo);
    }
    late_for(&s.late, &s.solo, 5000);
    for (unsigned i = 0; i < asked; i++) {
        innocents += notes[i].key[0] == 'i' && notes[i].done == 1;
        culprits += notes[i].key[0] == 'c' && notes[i].done == 1;
    }
    assert_int_equal(innocents, 360);
    assert_true(culprits >= 4 && culprits <= 9); /* one after the other, in 800 ms */
    assert_int_equal(s.solo.fake.accepted, 2);
    assert_int_equal(s.pool->slow_count, 0);
    s.late.late_us = 0;
    LATE_UNTIL(&s.late, &s.solo, s.solo.stores[0]->ops->drained(s.solo.stores[0]));
    stop(&s);
}

/* The server has become slower for everybody: that is the usual soon, and nothing is slow then. */
static void t_slower_for_all_is_not_slow(void **state)
{
    (void)state;
    static struct slow s;
    static struct note notes[16];
    unsigned asked = 0, done = 0;
    start(&s, 32);
    s.late.each_us = 40000;
    memset(notes, 0, sizeof notes);
    uint64_t deadline = bench_deadline();
    bool adapted = false;
    while (!adapted && hg_now_us() < deadline) {
        struct note *note = &notes[asked % 16];
        if (asked < 16 || note->done == 1) {
            done += note->done == 1;
            solo_ask(&s.solo, note, (char[2]){(char)('a' + asked % 16), 0});
            asked++;
        }
        late_turn(&s.late, &s.solo);
        adapted = s.pool->domain->slow_us > 200000;
    }
    assert_true(adapted);
    print_message("%u answers until then, %d connections\n", done, s.solo.fake.accepted);
    assert_true(s.solo.fake.accepted < 20);
    stop(&s);
}

/* It was we who did not look: the answer is there, and nobody is called slow. */
static void t_our_own_pause(void **state)
{
    (void)state;
    static struct slow s;
    struct note first, second;
    start(&s, 4);
    solo_ask(&s.solo, &first, "first");
    BENCH_UNTIL(&s.solo.bench, fake_find(&s.solo.fake, "first") != NULL);
    fake_obey(&s.solo.fake, fake_find(&s.solo.fake, "first"));
    usleep(PAUSE_US);
    assert_int_equal(solo_ask(&s.solo, &second, "second"), HG_SUBMIT_TAKEN);
    assert_int_equal(s.pool->slow_count, 0);
    s.late.late_us = 0;
    LATE_UNTIL(&s.late, &s.solo, first.done == 1 && second.done == 1);
    assert_int_equal(s.solo.fake.accepted, 1);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_innocents_do_not_wait),
        cmocka_unit_test(t_comes_back_when_its_oldest_is_young),
        cmocka_unit_test(t_order_is_kept),
        cmocka_unit_test(t_line_without_another),
        cmocka_unit_test(t_many_culprits),
        cmocka_unit_test(t_culprits_in_quarantine),
        cmocka_unit_test(t_slower_for_all_is_not_slow),
        cmocka_unit_test(t_our_own_pause),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("slow", tests, NULL, NULL);
}
