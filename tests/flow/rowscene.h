// rowscene - rows over the fake store: a loop, gates, a shelf, and a clock to turn
// SPDX-License-Identifier: BSD-3-Clause
#ifndef ROWSCENE_H
#define ROWSCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rowhelp.h"

#define ROWSCENE_START_US 1000000000u

struct rowscene {
    struct hg_worker worker; /* as much of it as the fake store wants */
    struct fakestore *fake;
    struct hg_store *store;
    struct shelf shelf;
    struct hg_rows *rows;
    struct hg_rows_counters counters;
};

static uint64_t rowscene_now_us;

static uint64_t rowscene_clock(void)
{
    return rowscene_now_us;
}

static int rowscene_up(void **state)
{
    struct rowscene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(hg_loop_init(&s->worker.loop), 0);
    rowscene_now_us = ROWSCENE_START_US;
    s->worker.loop.clock = rowscene_clock;
    hg_loop_turn(&s->worker.loop, false); /* it tells this time from now on */
    hg_blobs_init(&s->worker.blobs);
    s->fake = fakestore_new(&s->worker);
    s->store = &s->fake->store;
    s->fake->ctx = s;
    shelf_init(&s->shelf);
    s->rows = hg_rows_new(&s->worker.loop, &s->counters);
    assert_non_null(s->rows);
    rowop_reset_order();
    *state = s;
    return 0;
}

static int rowscene_down(void **state)
{
    struct rowscene *s = *state;
    assert_int_equal(s->rows->gate_count, 0); /* no gate outlives its calls */
    assert_true(s->store->ops->drained(s->store));
    s->store->ops->free(s->store);
    hg_rows_free(s->rows);
    shelf_fini(&s->shelf);
    assert_int_equal(s->worker.blobs.live_bytes, 0);
    hg_blobs_fini(&s->worker.blobs);
    hg_loop_fini(&s->worker.loop);
    free(s);
    return 0;
}

/* The fake store answers from the shelf within submit. */
static inline void rowscene_at_once(struct fakestore *fake, struct kept *kept)
{
    struct rowscene *s = fake->ctx;
    shelf_answer(&s->shelf, kept);
}

/* A turn of the loop without waiting, at a new time. */
static inline void rowscene_turn(struct rowscene *s)
{
    rowscene_now_us++;
    hg_loop_turn(&s->worker.loop, false);
}

/* Turns until nobody rests, with time going by. */
static inline void rowscene_let_rest(struct rowscene *s)
{
    for (unsigned i = 0; i < 1000 && !hg_list_empty(&s->rows->resting); i++) {
        rowscene_now_us += 1000;
        hg_loop_turn(&s->worker.loop, false);
    }
}

/* Answers the oldest call that the store has, which must be this operation. */
static inline void rowscene_answer(struct rowscene *s, enum hg_op op)
{
    struct kept *kept = fakestore_first(s->fake);
    assert_non_null(kept);
    assert_int_equal(kept->op, op);
    shelf_answer(&s->shelf, kept);
}

static inline void rowscene_answer_all(struct rowscene *s)
{
    struct kept *kept;
    while ((kept = fakestore_first(s->fake)) != NULL)
        shelf_answer(&s->shelf, kept);
}

/* The item of the operation's row, or NULL. */
static inline struct shelf_item *rowscene_item(struct rowscene *s, const struct rowop *op)
{
    return shelf_find(&s->shelf, (const char *)op->key);
}

#define ROW_TEST(test)                                                                             \
    {                                                                                              \
#test, test, rowscene_up, rowscene_down, NULL                                              \
    }

#endif
