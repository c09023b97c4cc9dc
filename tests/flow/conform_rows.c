// conform_rows - what every store does with rows and guarded operations
// SPDX-License-Identifier: BSD-3-Clause
#include "conform.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "rowhelp.h"

#define ACTORS  2
#define ROUNDS  500
#define AT_ONCE 3

/* A worker's gates, and the operations of the test. */
struct actor {
    struct conform *c;
    uint32_t index;
    struct rig *rig;
    struct hg_store *store;
    struct hg_rows *rows;
    struct hg_rows_counters counters;
    struct rowop ops[AT_ONCE];
    unsigned left, running, failed;
    _Atomic unsigned *ended; /* actors that have nothing left to do */
};

static void actor_init(struct actor *actor, struct conform *c, struct rig *rig,
                       struct hg_store *store)
{
    memset(actor, 0, sizeof *actor);
    actor->c = c;
    actor->rig = rig;
    actor->store = store;
    actor->rows = hg_rows_new(&rig->loop, &actor->counters);
    assert_non_null(actor->rows);
}

/* The gates of the worker that is asked. */
static struct actor *only_actor(struct conform *c)
{
    static struct actor actor;
    actor_init(&actor, c, c->rig, c->store);
    return &actor;
}

static void actor_fini(struct actor *actor)
{
    assert_int_equal(actor->rows->gate_count, 0);
    hg_rows_free(actor->rows);
}

static void ready(struct actor *actor, struct rowop *op, enum rowop_kind kind, const char *row)
{
    rowop_init(op, actor->store, kind, "table", row);
    op->row.tenant_id = actor->c->tenant_id;
    op->row.prefix = actor->c->prefix;
}

/* One operation to its end. */
static uint16_t run(struct actor *actor, enum rowop_kind kind, enum hg_api api, int64_t *ret_n)
{
    struct rowop op;
    ready(actor, &op, kind, "row");
    op.row.api = api;
    hg_rows_submit(actor->rows, &op.row);
    CONFORM_UNTIL(actor->c, op.done == 1);
    assert_int_equal(op.end.fault, HG_FAULT_NONE);
    *ret_n = op.n;
    rowop_fini(&op);
    return op.end.status;
}

/* --- one worker --- */

static void life_of_a_row(struct conform *c)
{
    struct actor *actor = only_actor(c);
    int64_t n;
    assert_int_equal(run(actor, ROWOP_READ, HG_API_TABLE, &n), 0);
    assert_int_equal(n, -1);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(run(actor, ROWOP_ADD, HG_API_TABLE, &n), 0);
        assert_int_equal(run(actor, ROWOP_READ, HG_API_TABLE, &n), 0);
        assert_int_equal(n, i);
    }
    assert_int_equal(run(actor, ROWOP_ADD, HG_API_HBASE, &n), HG_STATUS_NOT_SUPPORTED);
    assert_int_equal(run(actor, ROWOP_REMOVE, HG_API_TABLE, &n), 0);
    assert_int_equal(run(actor, ROWOP_REMOVE, HG_API_TABLE, &n), 0);
    assert_int_equal(run(actor, ROWOP_READ, HG_API_TABLE, &n), 0);
    assert_int_equal(n, -1);
    assert_int_equal(run(actor, ROWOP_ADD, HG_API_HBASE, &n), 0);
    assert_int_equal(run(actor, ROWOP_READ, HG_API_TABLE, &n), HG_STATUS_NOT_SUPPORTED);
    assert_int_equal(hg_counter_get(&actor->counters.conflicts), 0);
    actor_fini(actor);
}

/* Many at once, of rows of their own and of one row. */
static void many_at_once(struct conform *c)
{
    enum { MANY = 1000 };
    static struct rowop ops[MANY];
    struct actor *actor = only_actor(c);
    for (int pass = 0; pass < 3; pass++) {
        for (unsigned i = 0; i < MANY; i++) {
            char row[16];
            snprintf(row, sizeof row, "%u", i % 10 == 0 ? 0 : i);
            ready(actor, &ops[i], pass < 2 ? ROWOP_ADD : ROWOP_READ, row);
            hg_rows_submit(actor->rows, &ops[i].row);
        }
        for (unsigned i = 0; i < MANY; i++) {
            CONFORM_UNTIL(c, ops[i].done == 1);
            assert_true(ops[i].end.fault == HG_FAULT_NONE && ops[i].end.status == 0);
            int64_t expected = pass == 2 ? 2 : pass + 1;
            if (i % 10 == 0)
                expected = pass == 2 ? MANY / 5 : pass * (MANY / 10) + (int)i / 10 + 1;
            assert_int_equal(ops[i].n, expected);
            rowop_fini(&ops[i]);
        }
    }
    actor_fini(actor);
}

/* --- two workers --- */

static void go_on(struct rowop *op)
{
    struct actor *actor = op->ctx;
    if (op->end.fault != HG_FAULT_NONE || op->end.status != 0)
        actor->failed++;
    if (actor->left == 0) {
        actor->running--;
        return;
    }
    actor->left--;
    hg_rows_submit(actor->rows, &op->row);
}

/* The thread of a worker: counts up one row, and then serves the other worker to its end. */
static void *count_up(void *arg)
{
    struct actor *actor = arg;
    uint64_t end_us = conform_deadline();
    actor->left = ROUNDS - AT_ONCE;
    actor->running = AT_ONCE;
    for (unsigned i = 0; i < AT_ONCE; i++) {
        ready(actor, &actor->ops[i], ROWOP_ADD, "shared");
        actor->ops[i].then = go_on;
        actor->ops[i].ctx = actor;
    }
    for (unsigned i = 0; i < AT_ONCE; i++)
        hg_rows_submit(actor->rows, &actor->ops[i].row);
    bool counted = false;
    hg_loop_again(&actor->rig->loop);
    while (*actor->ended < ACTORS) {
        if (!counted && actor->running == 0) {
            counted = true;
            (*actor->ended)++;
        }
        if (hg_now_us() > end_us)
            abort();
        hg_loop_turn(&actor->rig->loop, true);
    }
    return NULL;
}

/* Nothing that two workers add to one row is lost. */
static void contention(struct conform *c)
{
    static struct actor actors[ACTORS];
    _Atomic unsigned ended = 0;
    pthread_t threads[ACTORS];
    struct rowop op;
    conform_open_stores(c, ACTORS);
    for (uint32_t i = 0; i < ACTORS; i++) {
        actor_init(&actors[i], c, &c->rigs[i], c->stores[i]);
        actors[i].ended = &ended;
    }
    for (uint32_t i = 0; i < ACTORS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &actors[i]), 0);
    for (uint32_t i = 0; i < ACTORS; i++)
        pthread_join(threads[i], NULL);
    uint64_t conflicts = 0;
    for (uint32_t i = 0; i < ACTORS; i++) {
        assert_int_equal(actors[i].failed, 0);
        conflicts += hg_counter_get(&actors[i].counters.conflicts);
        for (unsigned k = 0; k < AT_ONCE; k++)
            rowop_fini(&actors[i].ops[k]);
    }
    ready(&actors[0], &op, ROWOP_READ, "shared");
    hg_rows_submit(actors[0].rows, &op.row);
    CONFORM_UNTIL(c, op.done == 1);
    assert_int_equal(op.n, ACTORS * ROUNDS);
    print_message("# %llu conflicts\n", (unsigned long long)conflicts);
    rowop_fini(&op);
    for (uint32_t i = 0; i < ACTORS; i++)
        actor_fini(&actors[i]);
}

/* --- guarded operations --- */

static struct hg_result ask(struct actor *actor, struct note *note, const struct hg_item_ask *what,
                            struct hg_span key, bool guard)
{
    struct hg_guard guarded;
    conform_note(actor->c, note, what->op, "");
    note->call.key = key;
    note->call.key_hash = key.at[0];
    note->call.value = what->value;
    note->call.item_flags = what->flags;
    note->call.expiry = what->expiry;
    note->call.cas = what->cas;
    note->call.delta = what->delta;
    note->call.initial = what->initial;
    if (!guard)
        return conform_finish(actor->c, note);
    memset(&guarded, 0, sizeof guarded);
    hg_rows_guard(actor->rows, actor->store, &actor->rig->blobs, &guarded, &note->call);
    CONFORM_UNTIL(actor->c, note->done == 1);
    assert_int_equal(note->result.fault, HG_FAULT_NONE);
    return note->result;
}

/* Sets the key up; the CAS of the item, or 0. */
static uint64_t hold(struct actor *actor, struct hg_span key, const char *text)
{
    struct note note;
    (void)ask(actor, &note, &(struct hg_item_ask){.op = HG_OP_DELETE}, key, false);
    if (text == NULL)
        return 0;
    struct hg_item_ask set = {.op = HG_OP_SET, .flags = 7, .value = hg_span_str(text)};
    struct hg_result result = ask(actor, &note, &set, key, false);
    assert_int_equal(result.status, 0);
    return result.cas;
}

static void compare(struct actor *actor, const struct hg_item_ask *what, const char *text,
                    int which_cas)
{
    static const struct hg_span keys[2] = {HG_SPAN_LIT("k\0guarded"), HG_SPAN_LIT("k\0plain")};
    struct note note[2], after[2];
    for (int i = 0; i < 2; i++) {
        struct hg_item_ask own = *what;
        uint64_t cas = hold(actor, keys[i], text);
        own.cas = which_cas == 0 ? 0 : which_cas == 1 ? cas : cas + 1000000;
        (void)ask(actor, &note[i], &own, keys[i], i == 0);
        (void)ask(actor, &after[i], &(struct hg_item_ask){.op = HG_OP_GET}, keys[i], false);
    }
    if (note[0].result.status != note[1].result.status)
        fail_msg("op %d on '%s', CAS kind %d: guarded %u, plain %u (%s)", what->op, text, which_cas,
                 note[0].result.status, note[1].result.status, note[1].value);
    assert_int_equal(note[0].result.counter, note[1].result.counter);
    assert_int_equal(note[0].result.item_flags, note[1].result.item_flags);
    assert_int_equal(note[0].result.cas != 0, note[1].result.cas != 0);
    assert_string_equal(note[0].value, note[1].value);
    assert_int_equal(after[0].result.status, after[1].result.status);
    assert_int_equal(after[0].result.item_flags, after[1].result.item_flags);
    assert_string_equal(after[0].value, after[1].value);
}

/* A guarded operation on an item is answered as one without a guard. */
static void guard_answers(struct conform *c)
{
    struct actor *actor = only_actor(c);
    static const char *const texts[] = {NULL, "text", "41", ""};
    for (enum hg_op op = HG_OP_GET; op < HG_OP_FLUSH; op++)
        for (unsigned t = 0; t < HG_COUNT_OF(texts); t++)
            for (int which_cas = 0; which_cas < 3; which_cas++)
                for (int create = 0; create < 2; create++) {
                    bool counts = op == HG_OP_INCREMENT || op == HG_OP_DECREMENT;
                    struct hg_item_ask what = {.op = op,
                                               .flags = 21,
                                               .expiry = counts && create ? HG_ITEM_NO_CREATE : 500,
                                               .delta = 1,
                                               .initial = 6};
                    if ((op >= HG_OP_SET && op <= HG_OP_REPLACE) || op == HG_OP_APPEND ||
                        op == HG_OP_PREPEND)
                        what.value = HG_SPAN_LIT("1new");
                    compare(actor, &what, texts[t], which_cas);
                }
    actor_fini(actor);
}

/* No classic operation changes a row. */
static void guard_refuses(struct conform *c)
{
    struct actor *actor = only_actor(c);
    struct note note;
    int64_t n;
    assert_int_equal(run(actor, ROWOP_ADD, HG_API_TABLE, &n), 0);
    for (enum hg_op op = HG_OP_GET; op < HG_OP_FLUSH; op++) {
        struct hg_result result =
            ask(actor, &note, &(struct hg_item_ask){.op = op}, HG_SPAN_LIT("table\0row"), true);
        assert_int_equal(result.status, HG_STATUS_NOT_SUPPORTED);
        assert_string_equal(note.value, "the key holds a row: use the table operations");
    }
    assert_int_equal(run(actor, ROWOP_READ, HG_API_TABLE, &n), 0);
    assert_int_equal(n, 1);
    actor_fini(actor);
}

/* A store that cannot hold rows says so. */
static void no_rows(struct conform *c)
{
    struct actor *actor = only_actor(c);
    int64_t n;
    assert_int_equal(run(actor, ROWOP_READ, HG_API_TABLE, &n), HG_STATUS_NOT_SUPPORTED);
    assert_int_equal(run(actor, ROWOP_ADD, HG_API_TABLE, &n), HG_STATUS_NOT_SUPPORTED);
    actor_fini(actor);
}

const struct conform_case conform_rows[] = {
    {"life of a row", .needs = HAS_ROWS, .run = life_of_a_row},
    {"many rows at once", .needs = HAS_ROWS | IS_FAST, .run = many_at_once},
    {"two workers at one row", .needs = HAS_ROWS | HAS_WORKERS | IS_FAST, .run = contention,
     .own_workers = true},
    {"guarded operations", .needs = HAS_ROWS | IS_FAST, .run = guard_answers},
    {"a guard refuses rows", .needs = HAS_ROWS, .run = guard_refuses},
    {"no rows", .lacks = HAS_ROWS, .run = no_rows},
};
const size_t conform_rows_count = HG_COUNT_OF(conform_rows);
