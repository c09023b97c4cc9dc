// t_ticketorder - the ticket holder, with another worker's step between any two of its accesses
// SPDX-License-Identifier: BSD-3-Clause
//
// What threads do only once in a million times, here on purpose: the holder is compiled with a hook
// before each atomic access, at which a whole step of another worker runs, and in the midst of that
// one of a third. All steps, all places, all small states before. Afterwards the pokes are
// delivered, and nobody may wait while a ticket is available; and never are more out than there
// are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static void hook(void);

#undef atomic_load
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_fetch_or
#undef atomic_fetch_and
#undef atomic_exchange
#undef atomic_compare_exchange_weak
#define atomic_load(p)         (hook(), atomic_load_explicit(p, memory_order_seq_cst))
#define atomic_fetch_add(p, v) (hook(), atomic_fetch_add_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_sub(p, v) (hook(), atomic_fetch_sub_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_or(p, v)  (hook(), atomic_fetch_or_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_and(p, v) (hook(), atomic_fetch_and_explicit(p, v, memory_order_seq_cst))
#define atomic_exchange(p, v)  (hook(), atomic_exchange_explicit(p, v, memory_order_seq_cst))
#define atomic_compare_exchange_weak(p, e, v)                                                      \
    (hook(),                                                                                       \
     atomic_compare_exchange_weak_explicit(p, e, v, memory_order_seq_cst, memory_order_seq_cst))

#include "core/ticket.c"

#define LEVELS   3
#define ACCESSES 40 // more than any step makes

enum step { ARRIVE, POKED, END, KILL, GROW, SHRINK, STEPS };

/* The worker of a level is its number times 31: bits at both ends and in the middle. */
static struct hg_ticket holder;
static uint32_t level, accesses[LEVELS];
static uint32_t at[LEVELS]; // before which access of a level the next one runs; ACCESSES: none
static enum step steps[LEVELS];
static bool began[LEVELS], poked[LEVELS];
static uint32_t waiters[LEVELS], running;

static void poke(uint32_t worker)
{
    if (worker == HG_TICKET_NOBODY)
        return;
    assert_true(worker % 31 == 0 && worker / 31 < LEVELS);
    poked[worker / 31] = true;
}

/* It has just got a ticket: there was one. */
static void run(void)
{
    assert_true(hg_ticket_available(&holder) >= 0);
    running++;
}

static void serve(uint32_t w)
{
    while (waiters[w] > 0 && hg_ticket_want(&holder, w * 31)) {
        waiters[w]--;
        run();
    }
    if (waiters[w] == 0)
        poke(hg_ticket_leave(&holder, w * 31));
}

static void make_step(uint32_t w, enum step step)
{
    if (step == ARRIVE) {
        if (waiters[w] == 0 && hg_ticket_try(&holder)) {
            run();
            return;
        }
        waiters[w]++;
        serve(w);
    } else if (step == POKED && waiters[w] > 0) {
        serve(w);
    } else if (step == END && running > 0) {
        running--;
        poke(hg_ticket_put(&holder));
    } else if (step == KILL && waiters[w] > 0) {
        if (--waiters[w] == 0)
            poke(hg_ticket_leave(&holder, w * 31));
    } else if (step == GROW) {
        poke(hg_ticket_resize(&holder, hg_ticket_size(&holder) + 1));
    } else if (step == SHRINK) {
        poke(hg_ticket_resize(&holder, hg_ticket_size(&holder) - 1));
    }
}

static void hook(void)
{
    if (accesses[level]++ != at[level])
        return;
    level++;
    began[level] = true;
    make_step(level, steps[level]);
    level--;
}

/* Nothing is under way: who waits has its bit set, and there is a ticket only if nobody waits. */
static void setup(int64_t size, uint32_t out, uint32_t of_each, uint32_t who_waits, uint32_t turn)
{
    memset(accesses, 0, sizeof accesses);
    memset(began, 0, sizeof began);
    memset(poked, 0, sizeof poked);
    level = 0;
    hg_ticket_init(&holder, size);
    atomic_init(&holder.word, holder.word + out);
    atomic_init(&holder.turn, turn * 31);
    running = out;
    for (uint32_t w = 0; w < LEVELS; w++) {
        waiters[w] = who_waits >> w & 1 ? of_each : 0;
        if (waiters[w] > 0)
            atomic_init(&holder.waiting, holder.waiting | (uint64_t)1 << w * 31);
    }
}

static void settle(void)
{
    at[0] = at[1] = at[2] = ACCESSES;
    for (uint32_t rounds = 0; poked[0] || poked[1] || poked[2]; rounds++) {
        assert_true(rounds < 10); // pokes do not go round for ever
        for (uint32_t w = 0; w < LEVELS; w++) {
            if (poked[w]) {
                poked[w] = false;
                accesses[0] = 0;
                make_step(w, POKED);
            }
        }
    }
}

static void check(void)
{
    settle();
    assert_int_equal(hg_ticket_out(&holder), running);
    if (hg_ticket_available(&holder) > 0)
        assert_int_equal(waiters[0] + waiters[1] + waiters[2], 0);
    for (uint32_t w = 0; w < LEVELS; w++)
        if (waiters[w] > 0)
            assert_true(atomic_load_explicit(&holder.waiting, memory_order_relaxed) >> w * 31 & 1);
}

/* All places of the second step in the first, and of the third in the second. */
static uint64_t all_places(int64_t size, uint32_t out, uint32_t of_each, uint32_t who,
                           uint32_t turn)
{
    uint64_t runs = 0;
    for (uint32_t first = 0; first < ACCESSES; first++) {
        bool fits = false;
        for (uint32_t second = 0; second < ACCESSES; second++) {
            setup(size, out, of_each, who, turn);
            at[0] = first;
            at[1] = second;
            at[2] = ACCESSES;
            make_step(0, steps[0]);
            runs++;
            fits |= began[1];
            bool ends = !began[2];
            check();
            if (ends)
                break; // the second step has no such place
        }
        if (!fits)
            return runs;
    }
    fail_msg("a step of more accesses than thought");
    return 0;
}

static void test_any_order(void **state)
{
    uint64_t runs = 0;
    (void)state;
    for (uint32_t s = 0; s < STEPS * STEPS * STEPS; s++) {
        steps[0] = (enum step)(s % STEPS);
        steps[1] = (enum step)(s / STEPS % STEPS);
        steps[2] = (enum step)(s / STEPS / STEPS);
        for (uint32_t turn = 0; turn < LEVELS; turn++) {
            runs += all_places(2, 1, 0, 0, turn);
            for (uint32_t who = 0; who < 1 << LEVELS; who++)
                for (uint32_t out = 1; out <= 3; out++)
                    runs += all_places(out > 2 ? 2 : (int64_t)out, out, 1 + out % 2, who, turn);
        }
    }
    assert_true(runs > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
