// t_loop - turns, hooks, timers, and letters from other threads
// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/loop.h"
#include "io/mailbox.h"
#include "patience.h"

/* ---- hooks ---- */

struct note {
    struct hg_hook hook;
    struct hg_hook *kills, *brings;
    struct hg_loop *loop;
    enum hg_stage stage;
    unsigned ran;
};

static char order[64];
static struct note notes[8];

static void on_note(struct hg_hook *hook)
{
    struct note *note = HG_CONTAINER_OF(hook, struct note, hook);
    size_t len = strlen(order);
    note->ran++;
    order[len] = (char)('a' + (note - notes));
    order[len + 1] = '\0';
    if (note->kills != NULL) {
        hg_loop_unhook(note->kills);
        memset(&note->kills->node, 0xdd, sizeof note->kills->node); /* as if it were freed */
        note->kills = NULL;
    }
    if (note->brings != NULL) {
        hg_loop_hook(note->loop, note->stage, note->brings, on_note);
        note->brings = NULL;
    }
}

static const char *turn(struct hg_loop *loop)
{
    order[0] = '\0';
    hg_loop_turn(loop, false);
    return order;
}

static void add(struct hg_loop *loop, unsigned n, enum hg_stage stage)
{
    memset(&notes[n], 0, sizeof notes[n]);
    notes[n].loop = loop;
    notes[n].stage = stage;
    hg_loop_hook(loop, stage, &notes[n].hook, on_note);
}

static void test_hooks_in_order(void **state)
{
    struct hg_loop loop;
    (void)state;
    assert_int_equal(hg_loop_init(&loop), 0);
    add(&loop, 0, HG_STAGE_CLEANUP);
    add(&loop, 1, HG_STAGE_CLIENTS);
    add(&loop, 2, HG_STAGE_READY);
    add(&loop, 3, HG_STAGE_BACKENDS);
    add(&loop, 4, HG_STAGE_BACKENDS);
    assert_string_equal(turn(&loop), "cdeba");
    assert_string_equal(turn(&loop), "cdeba");
    hg_loop_unhook(&notes[3].hook);
    assert_string_equal(turn(&loop), "ceba");
    hg_loop_fini(&loop);
}

/* A hook takes away itself, the one before, the next, the last; any of them may be gone then. */
static void test_hooks_that_unhook(void **state)
{
    (void)state;
    for (unsigned killer = 0; killer < 4; killer++)
        for (unsigned victim = 0; victim < 4; victim++) {
            struct hg_loop loop;
            char first[8] = "", then[8] = "", *first_end = first, *then_end = then;
            assert_int_equal(hg_loop_init(&loop), 0);
            for (unsigned n = 0; n < 4; n++) {
                add(&loop, n, HG_STAGE_CLEANUP);
                if (n != victim || victim <= killer)
                    *first_end++ = "abcd"[n];
                if (n != victim)
                    *then_end++ = "abcd"[n];
            }
            notes[killer].kills = &notes[victim].hook;
            assert_string_equal(turn(&loop), first);
            assert_string_equal(turn(&loop), then);
            hg_loop_fini(&loop);
        }
}

static void test_hooks_that_hook(void **state)
{
    struct hg_loop loop;
    (void)state;
    assert_int_equal(hg_loop_init(&loop), 0);
    add(&loop, 0, HG_STAGE_BACKENDS);
    add(&loop, 1, HG_STAGE_BACKENDS);
    memset(&notes[2], 0, sizeof notes[2]);
    notes[0].brings = &notes[2].hook;
    turn(&loop);
    assert_string_equal(turn(&loop), "abc");
    hg_loop_fini(&loop);
}

/* ---- time ---- */

static uint64_t fake_us;

static uint64_t fake_clock(void)
{
    return ++fake_us;
}

static void on_timer(struct hg_timer *timer)
{
    ++*(unsigned *)(void *)(timer + 1);
}

struct counted {
    struct hg_timer timer;
    unsigned count;
};

static void test_clock_is_read_once_a_turn(void **state)
{
    struct hg_loop loop;
    (void)state;
    assert_int_equal(hg_loop_init(&loop), 0);
    loop.clock = fake_clock;
    fake_us = 100;
    hg_loop_turn(&loop, false);
    assert_int_equal(loop.now_us, 101);
    hg_loop_stamp(&loop);
    hg_loop_stamp(&loop);
    assert_int_equal(loop.now_us, 101);
    hg_loop_turn(&loop, false);
    assert_int_equal(loop.now_us, 102);
    hg_loop_fini(&loop);
}

static void test_timers(void **state)
{
    struct hg_loop loop;
    struct counted every, once;
    uint64_t end_us = patience_end_us();
    (void)state;
    memset(&every, 0, sizeof every);
    memset(&once, 0, sizeof once);
    assert_int_equal(hg_loop_init(&loop), 0);
    assert_int_equal(hg_loop_timer_init(&loop, &every.timer, 2000, on_timer), 0);
    assert_int_equal(hg_loop_timer_init(&loop, &once.timer, 0, on_timer), 0);
    while (every.count < 3 && hg_now_us() < end_us)
        hg_loop_turn(&loop, true);
    assert_int_equal(every.count, 3);
    assert_int_equal(once.count, 0); /* not armed */
    assert_int_equal(hg_loop_timer_arm(&once.timer, 1000), 0);
    while (every.count < 10 && hg_now_us() < end_us)
        hg_loop_turn(&loop, true);
    assert_int_equal(once.count, 1);
    hg_loop_timer_fini(&every.timer);
    assert_int_equal(hg_loop_timer_arm(&once.timer, 1000), 0);
    while (once.count < 2 && hg_now_us() < end_us)
        hg_loop_turn(&loop, true);
    assert_int_equal(once.count, 2);
    assert_int_equal(every.count, 10);
    hg_loop_timer_fini(&once.timer);
    hg_loop_fini(&loop);
}

static void test_again_does_not_wait(void **state)
{
    struct hg_loop loop;
    (void)state;
    assert_int_equal(hg_loop_init(&loop), 0);
    patience_alarm("a turn that has nothing to wait for");
    hg_loop_again(&loop);
    hg_loop_turn(&loop, true);
    hg_loop_stop(&loop);
    hg_loop_turn(&loop, true);
    patience_alarm_off();
    hg_loop_fini(&loop);
}

/* ---- letters ---- */

#define SENDERS 3
#define LETTERS 2000

struct numbered {
    struct hg_letter letter;
    unsigned sender, number;
};

static unsigned next_number[SENDERS], delivered;
static struct hg_mailbox box;

static void on_numbered(struct hg_letter *letter, void *receiver)
{
    struct numbered *numbered = HG_CONTAINER_OF(letter, struct numbered, letter);
    assert_ptr_equal(receiver, &delivered);
    assert_int_equal(numbered->number, next_number[numbered->sender]++);
    delivered++;
    free(numbered);
}

static void *send_all(void *arg)
{
    unsigned sender = *(unsigned *)arg;
    for (unsigned i = 0; i < LETTERS; i++) {
        struct numbered *numbered = malloc(sizeof *numbered);
        *numbered = (struct numbered){{NULL, on_numbered}, sender, i};
        hg_mailbox_post(&box, &numbered->letter);
    }
    return NULL;
}

/* None is lost, none is late: the loop waits for nothing but the letters. */
static void test_letters_of_threads(void **state)
{
    struct hg_loop loop;
    pthread_t threads[SENDERS];
    unsigned ids[SENDERS];
    (void)state;
    memset(next_number, 0, sizeof next_number);
    delivered = 0;
    assert_int_equal(hg_loop_init(&loop), 0);
    assert_int_equal(hg_mailbox_init(&box, &loop, &delivered), 0);
    for (unsigned i = 0; i < SENDERS; i++) {
        ids[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, &ids[i]), 0);
    }
    patience_alarm("the letters of three threads");
    while (delivered < SENDERS * LETTERS)
        hg_loop_turn(&loop, true);
    patience_alarm_off();
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    hg_mailbox_fini(&box);
    hg_loop_fini(&loop);
}

static void on_again(struct hg_letter *letter, void *receiver)
{
    (void)receiver;
    if (++delivered < 5)
        hg_mailbox_post(&box, letter);
}

/* A letter may be posted again while it is delivered; that is another delivery. */
static void test_letter_posts_itself(void **state)
{
    struct hg_loop loop;
    struct hg_letter letter = {NULL, on_again};
    (void)state;
    delivered = 0;
    assert_int_equal(hg_loop_init(&loop), 0);
    assert_int_equal(hg_mailbox_init(&box, &loop, &delivered), 0);
    hg_mailbox_post(&box, &letter);
    for (unsigned n = 1; n <= 5; n++) {
        hg_loop_turn(&loop, true);
        assert_int_equal(delivered, n);
    }
    hg_mailbox_fini(&box);
    hg_loop_fini(&loop);
}

static void test_letters_at_the_end(void **state)
{
    struct hg_loop loop;
    unsigned id = 1;
    (void)state;
    memset(next_number, 0, sizeof next_number);
    delivered = 0;
    assert_int_equal(hg_loop_init(&loop), 0);
    assert_int_equal(hg_mailbox_init(&box, &loop, &delivered), 0);
    send_all(&id);
    hg_mailbox_wait(&box, 10000);
    assert_int_equal(delivered, LETTERS);
    hg_mailbox_wait(&box, 1);
    next_number[1] = 0;
    send_all(&id);
    hg_mailbox_fini(&box);
    assert_int_equal(delivered, 2 * LETTERS);
    hg_loop_fini(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hooks_in_order),
        cmocka_unit_test(test_hooks_that_unhook),
        cmocka_unit_test(test_hooks_that_hook),
        cmocka_unit_test(test_clock_is_read_once_a_turn),
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_again_does_not_wait),
        cmocka_unit_test(test_letters_of_threads),
        cmocka_unit_test(test_letter_posts_itself),
        cmocka_unit_test(test_letters_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
