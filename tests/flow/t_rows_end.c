// t_rows_end - how calls for rows end otherwise: cancelled, late, without room, lost, from within
// SPDX-License-Identifier: BSD-3-Clause
#include "rowscene.h"

#include <stdio.h>

#include "base/clock.h"
#include "../unit/patience.h"

#define LATE_US 1000000

static struct rowop ops[8];

static struct rowop *begin(struct rowscene *s, unsigned i, enum rowop_kind kind)
{
    rowop_init(&ops[i], s->store, kind, "table", "row");
    ops[i].row.deadline_us = rowscene_now_us + LATE_US;
    hg_rows_submit(s->rows, &ops[i].row);
    return &ops[i];
}

static void fini(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        rowop_fini(&ops[i]);
}

/* Cancels and frees the call, so that a sanitizer sees who still uses it. */
static void cancel(unsigned i)
{
    hg_rows_cancel(&ops[i].row);
    rowop_fini(&ops[i]);
    memset(&ops[i].row, 0xdd, sizeof ops[i].row);
}

/* --- cancel --- */

static void cancel_in_the_gate(void **state)
{
    struct rowscene *s = *state;
    static const enum rowop_kind kinds[] = {ROWOP_READ, ROWOP_ADD, ROWOP_READ, ROWOP_ADD};
    for (unsigned i = 0; i < 4; i++)
        begin(s, i, kinds[i]);
    assert_int_equal(fakestore_pending(s->fake), 1);
    /* The reader behind it may join the first one now, but not from within the cancel. */
    cancel(1);
    assert_int_equal(fakestore_pending(s->fake), 1);
    rowscene_turn(s);
    assert_int_equal(fakestore_pending(s->fake), 2);
    cancel(3);
    rowscene_answer_all(s);
    assert_true(ops[0].done == 1 && ops[1].done == 0 && ops[2].done == 1 && ops[3].done == 0);
    assert_int_equal(s->fake->cancels, 0);
    rowop_fini(&ops[0]);
    rowop_fini(&ops[2]);
}

static void cancel_while_reading(void **state)
{
    struct rowscene *s = *state;
    for (unsigned i = 0; i < 3; i++)
        begin(s, i, ROWOP_ADD);
    cancel(0);
    assert_int_equal(s->fake->cancels, 1);
    assert_int_equal(fakestore_pending(s->fake), 0);
    /* The next one is to be started: it can be cancelled too. */
    assert_int_equal(ops[1].row.step, HG_ROW_STEP_READY);
    cancel(1);
    assert_int_equal(ops[2].row.step, HG_ROW_STEP_READY);
    rowscene_turn(s);
    rowscene_answer_all(s);
    assert_true(ops[2].done == 1 && ops[2].n == 1);
    rowop_fini(&ops[2]);
    rowscene_turn(s);
}

/* The turn that starts those behind does not wait for an event. */
static void cancel_while_writing(void **state)
{
    struct rowscene *s = *state;
    begin(s, 0, ROWOP_ADD);
    begin(s, 1, ROWOP_ADD);
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(fakestore_first(s->fake)->op, HG_OP_ADD);
    cancel(0);
    assert_int_equal(s->fake->cancels, 1);
    assert_true(s->worker.loop.again);
    rowscene_turn(s);
    rowscene_answer_all(s);
    assert_int_equal(ops[1].n, 1);
    rowop_fini(&ops[1]);
}

static void cancel_without_room(void **state)
{
    struct rowscene *s = *state;
    s->fake->room = 0;
    begin(s, 0, ROWOP_ADD);
    assert_int_equal(fakestore_waiting(s->fake), 1);
    cancel(0);
    assert_int_equal(fakestore_waiting(s->fake), 0);
    s->fake->room = 1;
    begin(s, 1, ROWOP_ADD);
    s->fake->room = 0;
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(fakestore_waiting(s->fake), 1);
    cancel(1);
    assert_int_equal(s->fake->cancels, 2);
    assert_int_equal(ops[0].done + ops[1].done, 0);
}

/* Loses `times` attempts. */
static void lose(struct rowscene *s, unsigned times)
{
    while (times-- > 0) {
        rowscene_let_rest(s);
        rowscene_answer(s, HG_OP_GET);
        fakestore_say(fakestore_first(s->fake), HG_STATUS_KEY_EEXISTS);
    }
}

/* From the fourth lost attempt on a call rests, holds its gate, and can be cancelled. */
static void rests(void **state)
{
    struct rowscene *s = *state;
    s->rows->prng.state = 1;
    begin(s, 0, ROWOP_ADD);
    begin(s, 1, ROWOP_ADD);
    assert_true(hg_rows_uses(s->rows, s->store));
    lose(s, 3);
    assert_int_equal(ops[0].row.step, HG_ROW_STEP_ASKS);
    lose(s, 1);
    assert_int_equal(ops[0].row.step, HG_ROW_STEP_RESTS);
    assert_true(ops[0].row.start_us > rowscene_now_us + 1);
    assert_true(ops[0].row.start_us <= rowscene_now_us + 2000);
    assert_true(s->store->ops->drained(s->store) && hg_rows_uses(s->rows, s->store));
    rowscene_turn(s);
    assert_int_equal(fakestore_pending(s->fake), 0);
    rowscene_now_us = ops[0].row.start_us - 1;
    rowscene_turn(s);
    rowscene_answer_all(s);
    assert_true(ops[0].done == 1 && ops[0].n == 1 && ops[0].applied == 5);
    assert_true(ops[1].done == 1 && ops[1].n == 2);
    fini(2);
    begin(s, 2, ROWOP_ADD);
    begin(s, 3, ROWOP_ADD);
    lose(s, 4);
    cancel(2);
    assert_true(hg_list_empty(&s->rows->resting));
    rowscene_turn(s);
    rowscene_answer_all(s);
    assert_int_equal(ops[3].n, 3);
    rowop_fini(&ops[3]);
    assert_false(hg_rows_uses(s->rows, s->store));
}

/* Blocks as a worker does: only the call's own timer wakes it. */
static void turn_until_asked(struct rowscene *s)
{
    patience_alarm("a call that rests to be said again");
    while (fakestore_pending(s->fake) == 0)
        hg_loop_turn(&s->worker.loop, true);
    patience_alarm_off();
}

/* The loop turns by itself when a rest is over. */
static void wakes_from_rest(void **state)
{
    struct rowscene *s = *state;
    s->worker.loop.clock = hg_now_us;
    rowop_init(&ops[0], s->store, ROWOP_ADD, "table", "row");
    hg_rows_submit(s->rows, &ops[0].row);
    lose(s, 4);
    for (unsigned i = 0; i < 5; i++) {
        turn_until_asked(s);
        lose(s, 1);
    }
    turn_until_asked(s);
    rowscene_answer_all(s);
    assert_int_equal(ops[0].applied, 10);
    assert_int_equal(ops[0].done, 1);
    fini(1);
}

/* A timer may be early by the loop's clock: it is set again, and nothing rests for ever. */
static void wakes_though_the_timer_is_early(void **state)
{
    struct rowscene *s = *state;
    begin(s, 0, ROWOP_ADD);
    lose(s, 4);
    assert_int_equal(ops[0].row.step, HG_ROW_STEP_RESTS);
    uint64_t start_us = ops[0].row.start_us;
    patience_alarm("a call that rests");
    for (unsigned i = 0; i < 3; i++) {
        hg_loop_turn(&s->worker.loop,
                     true); /* the timer fires, and by this clock no time has passed */
        assert_int_equal(fakestore_pending(s->fake), 0);
    }
    rowscene_now_us = start_us;
    while (fakestore_pending(s->fake) == 0)
        hg_loop_turn(&s->worker.loop, true);
    patience_alarm_off();
    rowscene_answer_all(s);
    assert_int_equal(ops[0].done, 1);
    fini(1);
}

/* After the end a cancel does nothing. */
static void cancel_afterwards(void **state)
{
    struct rowscene *s = *state;
    s->fake->on_submit = rowscene_at_once;
    begin(s, 0, ROWOP_ADD);
    hg_rows_cancel(&ops[0].row);
    assert_int_equal(ops[0].done, 1);
    assert_int_equal(s->fake->cancels, 0);
    fini(1);
}

/* --- time --- */

static void late_in_the_gate(void **state)
{
    struct rowscene *s = *state;
    static const enum rowop_kind kinds[] = {ROWOP_READ, ROWOP_ADD, ROWOP_READ, ROWOP_ADD,
                                            ROWOP_READ};
    for (unsigned i = 0; i < 5; i++) {
        rowop_init(&ops[i], s->store, kinds[i], "table", "row");
        ops[i].row.deadline_us = i == 4 ? 0 : rowscene_now_us + LATE_US * (i == 1 ? 1 : 2);
        hg_rows_submit(s->rows, &ops[i].row);
    }
    hg_rows_expire(s->rows, rowscene_now_us + LATE_US - 1);
    assert_int_equal(ops[1].done, 0);
    assert_int_equal(fakestore_pending(s->fake), 1);
    hg_rows_expire(s->rows, rowscene_now_us + LATE_US);
    assert_int_equal(ops[1].done, 1);
    assert_int_equal(ops[1].end.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_string_equal(ops[1].text,
                        "it waited for others that use the row until its time was over");
    assert_int_equal(fakestore_pending(s->fake), 2); /* the reader behind it has joined */
    /* Those inside are the store's affair; who has no deadline waits on. */
    hg_rows_expire(s->rows, rowscene_now_us + 3 * LATE_US);
    assert_true(ops[3].done == 1 && ops[3].end.fault == HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(ops[0].done + ops[2].done + ops[4].done, 0);
    assert_int_equal(fakestore_pending(s->fake), 3);
    rowscene_answer_all(s);
    assert_int_equal(ops[0].done + ops[2].done + ops[4].done, 3);
    fini(5);
}

static void cancel_the_next(struct rowop *op)
{
    (void)op;
    hg_rows_cancel(&ops[2].row);
}

/* One that is answered cancels another that is late as well. */
static void late_and_cancelled(void **state)
{
    struct rowscene *s = *state;
    for (unsigned i = 0; i < 4; i++)
        begin(s, i, ROWOP_ADD);
    ops[1].then = cancel_the_next;
    hg_rows_expire(s->rows, rowscene_now_us + LATE_US);
    assert_true(ops[1].done == 1 && ops[2].done == 0 && ops[3].done == 1);
    rowscene_answer_all(s);
    assert_int_equal(ops[0].done, 1);
    fini(4);
}

/* Whose time is over when its turn comes, or after a conflict, is not started any more. */
static void late_at_the_start(void **state)
{
    struct rowscene *s = *state;
    begin(s, 0, ROWOP_ADD);
    begin(s, 1, ROWOP_ADD);
    rowscene_answer(s, HG_OP_GET);
    rowscene_now_us += LATE_US;
    hg_loop_turn(&s->worker.loop, false);
    rowscene_answer(s, HG_OP_ADD);
    assert_int_equal(ops[0].end.fault, HG_FAULT_NONE);
    assert_true(ops[1].done == 1 && ops[1].end.fault == HG_FAULT_QUEUE_TIMEOUT);
    begin(s, 2, ROWOP_ADD);
    rowscene_answer(s, HG_OP_GET);
    rowscene_now_us += LATE_US;
    hg_loop_turn(&s->worker.loop, false);
    fakestore_say(fakestore_first(s->fake), HG_STATUS_KEY_EEXISTS);
    assert_true(ops[2].done == 1 && ops[2].end.fault == HG_FAULT_QUEUE_TIMEOUT);
    fini(3);
}

/* --- the store --- */

static void faults(void **state)
{
    struct rowscene *s = *state;
    static const enum hg_fault kinds[] = {
        HG_FAULT_DOWN,       HG_FAULT_LOST,         HG_FAULT_TIMEOUT, HG_FAULT_QUEUE_TIMEOUT,
        HG_FAULT_QUEUE_FULL, HG_FAULT_KEY_TOO_LONG, HG_FAULT_MEMORY,  HG_FAULT_INTERNAL};
    for (unsigned i = 0; i < HG_COUNT_OF(kinds); i++)
        for (int writing = 0; writing < 2; writing++) {
            begin(s, 0, ROWOP_ADD);
            begin(s, 1, ROWOP_KEEP);
            if (writing)
                rowscene_answer(s, HG_OP_GET);
            fakestore_fault(fakestore_first(s->fake), kinds[i]);
            assert_int_equal(ops[0].done, 1);
            assert_int_equal(ops[0].end.fault, kinds[i]);
            assert_string_equal(ops[0].server, "fake:1");
            assert_int_equal(ops[0].end.written_bytes, 0);
            /* Nobody needs to wonder about a change that got no further than its read. */
            bool unknown = kinds[i] == HG_FAULT_LOST || kinds[i] == HG_FAULT_TIMEOUT;
            assert_int_equal(strstr(ops[0].text, "nothing was changed") != NULL,
                             unknown && !writing);
            rowscene_answer(s, HG_OP_GET);
            assert_int_equal(ops[1].end.fault, HG_FAULT_NONE);
            fini(2);
        }
}

static void errors_of_the_store(void **state)
{
    struct rowscene *s = *state;
    for (int writing = 0; writing < 2; writing++) {
        begin(s, 0, ROWOP_ADD);
        if (writing)
            rowscene_answer(s, HG_OP_GET);
        struct hg_result result = {
            .status = HG_STATUS_ENOMEM, .value = HG_SPAN_LIT("the store is full"), .server = "x"};
        fakestore_finish(fakestore_first(s->fake), &result);
        assert_int_equal(ops[0].end.status, HG_STATUS_ENOMEM);
        assert_string_equal(ops[0].text, "the store is full");
        assert_string_equal(ops[0].server, "x");
        fini(1);
    }
}

static void waits_for_room(void **state)
{
    struct rowscene *s = *state;
    s->fake->room = 0;
    begin(s, 0, ROWOP_ADD);
    begin(s, 1, ROWOP_ADD);
    assert_int_equal(fakestore_waiting(s->fake), 1);
    fakestore_call_room(fakestore_find(s->fake, "table")); /* and there is none after all */
    assert_int_equal(fakestore_waiting(s->fake), 1);
    s->fake->room = 1;
    fakestore_call_room(fakestore_find(s->fake, "table"));
    assert_int_equal(fakestore_pending(s->fake), 1);
    s->fake->room = 0;
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(fakestore_waiting(s->fake), 1);
    s->fake->room = 1;
    fakestore_call_room(fakestore_find(s->fake, "table"));
    rowscene_answer(s, HG_OP_ADD);
    assert_true(ops[0].done == 1 && ops[0].n == 1 && ops[0].end.status == 0);
    /* The second is refused while it waits. */
    s->fake->room = 0;
    rowscene_answer(s, HG_OP_GET);
    fakestore_fault(fakestore_find(s->fake, "table"), HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(ops[1].end.fault, HG_FAULT_QUEUE_TIMEOUT);
    fini(2);
}

/* The store is freed: all of its calls are answered, those in the gates too. */
static void store_goes(void **state)
{
    struct rowscene *s = *state;
    struct fakestore *other = fakestore_new(&s->worker);
    for (unsigned i = 0; i < 4; i++) {
        rowop_init(&ops[i], &other->store, i == 1 ? ROWOP_READ : ROWOP_ADD, "table", "row");
        hg_rows_submit(s->rows, &ops[i].row);
    }
    other->store.ops->free(&other->store);
    for (unsigned i = 0; i < 4; i++)
        assert_true(ops[i].done == 1 && ops[i].end.fault == HG_FAULT_LOST);
    fini(4);
}

/* --- from within the end of a call --- */

#define CHAIN 100000

struct chain {
    struct rowscene *s;
    unsigned left;
    char *lowest, *highest; /* of the stack */
};

static void go_on(struct rowop *op)
{
    struct chain *chain = op->ctx;
    char here;
    if (chain->lowest == NULL || &here < chain->lowest)
        chain->lowest = &here;
    if (chain->highest == NULL || &here > chain->highest)
        chain->highest = &here;
    if (chain->left == 0)
        return;
    chain->left--;
    hg_rows_submit(chain->s->rows, &op->row);
}

/* However many calls follow each other at once, the stack does not grow. */
static void chain_of_calls(void **state)
{
    struct rowscene *s = *state;
    s->fake->on_submit = rowscene_at_once;
    for (int writes = 0; writes < 2; writes++) {
        struct chain chain = {.s = s, .left = CHAIN};
        rowop_init(&ops[0], s->store, writes ? ROWOP_ADD : ROWOP_READ, "table", "row");
        ops[0].then = go_on;
        ops[0].ctx = &chain;
        hg_rows_submit(s->rows, &ops[0].row);
        assert_int_equal(ops[0].done, CHAIN + 1);
        assert_true(chain.highest - chain.lowest < 16384);
        assert_int_equal(ops[0].n, writes ? CHAIN + 1 : -1);
        rowop_fini(&ops[0]);
    }
}

static void free_it(struct rowop *op)
{
    struct chain *chain = op->ctx;
    char here;
    chain->left--;
    if (chain->lowest == NULL || &here < chain->lowest)
        chain->lowest = &here;
    if (chain->highest == NULL || &here > chain->highest)
        chain->highest = &here;
    rowop_fini(op);
    free(op);
}

/* A long line before one gate is answered at once, and everyone frees itself. */
static void line_before_a_gate(void **state)
{
    struct rowscene *s = *state;
    struct chain chain = {.s = s, .left = 2000};
    struct rowop last;
    for (unsigned i = 0; i < 2000; i++) {
        struct rowop *op = malloc(sizeof *op);
        assert_non_null(op);
        rowop_init(op, s->store, i % 3 == 0 ? ROWOP_READ : ROWOP_ADD, "table", "row");
        op->then = free_it;
        op->ctx = &chain;
        hg_rows_submit(s->rows, &op->row);
    }
    rowop_init(&last, s->store, ROWOP_READ, "table", "row");
    hg_rows_submit(s->rows, &last.row);
    s->fake->on_submit = rowscene_at_once;
    rowscene_answer(s, HG_OP_GET);
    assert_int_equal(chain.left, 0);
    assert_true(chain.highest - chain.lowest < 16384);
    assert_true(last.done == 1 && last.n == 2000 - 667);
    rowop_fini(&last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW_TEST(cancel_in_the_gate),
        ROW_TEST(cancel_while_reading),
        ROW_TEST(cancel_while_writing),
        ROW_TEST(cancel_without_room),
        ROW_TEST(rests),
        ROW_TEST(wakes_from_rest),
        ROW_TEST(wakes_though_the_timer_is_early),
        ROW_TEST(cancel_afterwards),
        ROW_TEST(late_in_the_gate),
        ROW_TEST(late_and_cancelled),
        ROW_TEST(late_at_the_start),
        ROW_TEST(faults),
        ROW_TEST(errors_of_the_store),
        ROW_TEST(waits_for_room),
        ROW_TEST(store_goes),
        ROW_TEST(chain_of_calls),
        ROW_TEST(line_before_a_gate),
    };
    return cmocka_run_group_tests_name("rows_end", tests, NULL, NULL);
}
