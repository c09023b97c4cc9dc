// conform_calls - what every store does with values of any size, long keys, and many calls at once
// SPDX-License-Identifier: BSD-3-Clause
#include "conform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "piece.h"

/* --- sizes --- */

static void submit_piece(struct conform *c, struct piece *piece, enum hg_op op,
                         struct hg_blob *blob)
{
    piece->prefix = c->prefix;
    piece->tenant_id = c->tenant_id;
    piece_submit(piece, c->store, c->rig, op, blob);
}

static void finish_piece(struct conform *c, struct piece *piece, enum hg_op op,
                         struct hg_blob *blob)
{
    *piece->done = 0;
    submit_piece(c, piece, op, blob);
    CONFORM_UNTIL(c, *piece->done == 1);
    assert_int_equal(piece->fault, HG_FAULT_NONE);
    assert_int_equal(piece->status, 0);
}

/* Stored by `op` (an append: to nothing), and read in both ways. */
static void there_and_back(struct conform *c, enum hg_op op, size_t len, bool by_reference)
{
    int done = 0;
    struct piece empty = {.done = &done}, piece = {.from = len % 97, .len = len, .done = &done};
    snprintf(piece.key, sizeof piece.key, "size:%zu:%d", len, op == HG_OP_APPEND);
    memcpy(empty.key, piece.key, sizeof empty.key);
    struct hg_blob *blob = by_reference ? hg_blob_borrow(&c->rig->blobs, len + 3) : NULL;
    if (op == HG_OP_APPEND)
        finish_piece(c, &empty, HG_OP_SET, NULL);
    finish_piece(c, &piece, op, blob);
    hg_blob_unref(blob);
    finish_piece(c, &piece, HG_OP_GET, NULL);
    if (!piece.right)
        fail_msg("value of %zu bytes is not what was stored", len);
    finish_piece(c, &piece, HG_OP_GAT, NULL);
    if (!piece.right)
        fail_msg("value of %zu bytes is not what was stored and touched", len);
}

/* Lengths around the bounds of buffers, batches and pages, up to the limit of an item. */
static void sizes(struct conform *c)
{
    static const struct {
        size_t first, last, step;
    } rows[] = {
        {0, 33, 1},          {224, 289, 1},       {992, 1056, 1},
        {2006, 2039, 1},     {4064, 4128, 1},     {8160, 8225, 1},
        {16288, 16417, 1},   {32736, 32801, 1},   {65504, 65632, 1},
        {131040, 131104, 8}, {262112, 262176, 8}, {PIECE_VALUE_MAX - 33, PIECE_VALUE_MAX, 1},
    };
    size_t step = c->kept->length_step;
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        for (size_t len = rows[i].first; len <= rows[i].last;
             len += step > rows[i].step ? step : rows[i].step) {
            there_and_back(c, HG_OP_SET, len, len % 2);
            if (len % 4 < 2)
                there_and_back(c, HG_OP_APPEND, len, len % 2);
        }
    }
}

/* One more byte than an item may have. */
static void too_long_a_join(struct conform *c)
{
    static const enum hg_op ops[] = {HG_OP_APPEND, HG_OP_PREPEND};
    int done = 0;
    struct piece piece = {.len = PIECE_VALUE_MAX, .done = &done, .key = "k"};
    finish_piece(c, &piece, HG_OP_SET, NULL);
    for (size_t i = 0; i < HG_COUNT_OF(ops); i++)
        assert_int_equal(conform_call(c, ops[i], "k", "x").status, HG_STATUS_E2BIG);
    finish_piece(c, &piece, HG_OP_GET, NULL);
    assert_true(piece.right);
}

static void too_long_a_value(struct conform *c)
{
    enum { BYTES = 3 << 20 };
    struct note note;
    uint8_t *huge = calloc(1, BYTES);
    assert_non_null(huge);
    conform_note(c, &note, HG_OP_SET, "k");
    note.call.value = hg_span(huge, BYTES);
    assert_int_equal(conform_finish(c, &note).status, HG_STATUS_E2BIG);
    if (conform_has(c, HAS_SERVER_TEXTS))
        assert_string_equal(note.value, "Too large.");
    conform_expect(c, "k", NULL);
    free(huge);
}

/* A value in a block of the caller's is referenced until it is answered; a large value comes in the
   block that it was read into, and no byte of it is copied for that. */
static void by_reference(struct conform *c)
{
    enum { BYTES = 400000 };
    int done = 0;
    struct piece piece = {.from = 5, .len = BYTES, .done = &done, .key = "k"};
    struct hg_blob *blob = hg_blob_borrow(&c->rig->blobs, BYTES + 3);
    assert_non_null(blob);
    conform_expect(c, "k", NULL); /* it is connected */
    submit_piece(c, &piece, HG_OP_SET, blob);
    assert_int_equal(done, 0);
    /* Ours, that of the bytes to be sent or written, and of those to be sent again. */
    if (!c->kept->relayed)
        assert_int_equal(blob->refs, conform_has(c, HAS_TIES) ? 3 : 2);
    CONFORM_UNTIL(c, done == 1 && blob->refs == 1);
    assert_int_equal(piece.status, 0);
    hg_blob_unref(blob);
    finish_piece(c, &piece, HG_OP_GET, NULL);
    assert_true(piece.right);
    assert_true(piece.in_blob || conform_has(c, HAS_VIEWS));
}

/* --- keys --- */

static enum hg_fault fault_of(struct conform *c, enum hg_op op, size_t len)
{
    static char key[1024];
    struct note note;
    memset(key, 'k', sizeof key);
    conform_note(c, &note, op, "");
    note.call.key = hg_span(key, len);
    note.call.value = op == HG_OP_SET ? HG_SPAN_LIT("v") : HG_SPAN_NONE;
    (void)note_submit(&note, c->rig);
    CONFORM_UNTIL(c, note.done == 1);
    if (note.result.fault == HG_FAULT_NONE)
        assert_int_equal(note.result.status, 0);
    return note.result.fault;
}

/* A prefix is part of the key, and both together have a limit. */
static void keys(struct conform *c)
{
    static const enum hg_op ops[] = {HG_OP_SET, HG_OP_GET};
    char shorter[512];
    size_t most = c->kept->key_max - c->prefix.len;
    for (size_t i = 0; i < HG_COUNT_OF(ops); i++) {
        assert_int_equal(fault_of(c, ops[i], most), HG_FAULT_NONE);
        assert_int_equal(fault_of(c, ops[i], most + 1), HG_FAULT_KEY_TOO_LONG);
    }
    struct note note;
    memset(shorter, 'k', sizeof shorter);
    conform_note(c, &note, HG_OP_GET, "");
    note.call.key = hg_span(shorter, most - 1);
    assert_int_equal(conform_finish(c, &note).status, HG_STATUS_KEY_ENOENT);
}

/* --- many calls --- */

/* Thousands under way at once. */
static void many(struct conform *c)
{
    enum { MANY = 6000 };
    struct hg_prng prng = {7};
    struct piece *pieces = calloc(MANY, sizeof *pieces);
    int done = 0;
    assert_non_null(pieces);
    for (int i = 0; i < MANY; i++) {
        pieces[i].from = (size_t)i;
        pieces[i].len =
            hg_prng_below(&prng, 20) == 0 ? hg_prng_below(&prng, 60000) : hg_prng_below(&prng, 300);
        pieces[i].done = &done;
        snprintf(pieces[i].key, sizeof pieces[i].key, "many:%d", i);
        submit_piece(c, &pieces[i], HG_OP_SET, NULL);
    }
    CONFORM_UNTIL(c, done == MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(pieces[i].fault, HG_FAULT_NONE);
        assert_int_equal(pieces[i].status, 0);
    }
    done = 0;
    for (int i = MANY; i-- > 0;)
        submit_piece(c, &pieces[i], HG_OP_GET, NULL);
    CONFORM_UNTIL(c, done == MANY);
    for (int i = 0; i < MANY; i++)
        assert_true(pieces[i].right);
    assert_true(c->store->ops->drained(c->store));
    if (c->upstream != NULL) {
        assert_int_equal(conform_stat(c, HG_UPSTREAM_REQUESTS), 2 * MANY);
        assert_int_equal(conform_stat(c, HG_UPSTREAM_LOST), 0);
        for (uint32_t i = 0; i < c->kept->rounds; i++)
            assert_in_range(rig_stat(c->upstream, i, HG_UPSTREAM_CONNECTS), 1, 4);
    }
    free(pieces);
}

/* Submits them at once, each after the one before if it is for the same key. */
static void submit_chain(struct conform *c, struct note *notes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j-- > 0 && notes[i].call.after == NULL;)
            if (notes[j].done == 0 && strcmp(notes[i].key, notes[j].key) == 0)
                notes[i].call.after = &notes[j].call;
        (void)note_submit(&notes[i], c->rig);
    }
}

/* A client that does not wait for answers sees its own writes all the same. */
static void own_writes(struct conform *c)
{
    static const enum hg_op ops[] = {HG_OP_SET, HG_OP_GET,    HG_OP_GET, HG_OP_APPEND,
                                     HG_OP_GET, HG_OP_DELETE, HG_OP_GET};
    enum { COUNT = HG_COUNT_OF(ops) };
    static struct note notes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        conform_note(c, &notes[i], ops[i], "k");
        if (ops[i] == HG_OP_SET || ops[i] == HG_OP_APPEND)
            notes[i].call.value = hg_span_str(ops[i] == HG_OP_SET ? "1" : "2");
    }
    submit_chain(c, notes, COUNT);
    CONFORM_UNTIL(c, notes[COUNT - 1].done > 0);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(notes[i].done, 1);
        assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
        assert_int_equal(notes[i].result.status, i == COUNT - 1 ? HG_STATUS_KEY_ENOENT : 0);
        assert_true(i == 0 || notes[i].order > notes[i - 1].order);
    }
    assert_string_equal(notes[1].value, "1");
    assert_string_equal(notes[2].value, "1");
    assert_string_equal(notes[4].value, "12");
}

/* Neither an answer nor room is told of what was given up; what was sent is carried out. */
static void cancelled(struct conform *c)
{
    static struct note set, get, flight[20];
    conform_expect(c, "k", NULL); /* it is connected */
    conform_note(c, &set, HG_OP_SET, "k");
    set.call.value = HG_SPAN_LIT("v");
    conform_note(c, &get, HG_OP_GET, "k");
    get.call.after = &set.call;
    assert_int_equal(note_submit(&set, c->rig), HG_SUBMIT_TAKEN);
    (void)note_submit(&get, c->rig);
    c->store->ops->cancel(c->store, &get.call);
    c->store->ops->cancel(c->store, &set.call);
    CONFORM_UNTIL(c, c->store->ops->drained(c->store));
    /* Another worker gets its letters at the end of the turn: nothing was sent. */
    conform_expect(c, "k", c->kept->relayed ? NULL : "v");
    for (size_t i = 0; i < HG_COUNT_OF(flight); i++) {
        conform_note(c, &flight[i], i % 3 == 0 ? HG_OP_INCREMENT : HG_OP_SET, "many");
        (void)note_submit(&flight[i], c->rig);
        if (i % 5 == 0)
            bench_turn(&c->bench);
    }
    int before[HG_COUNT_OF(flight)];
    for (size_t i = 0; i < HG_COUNT_OF(flight); i++) {
        before[i] = flight[i].done;
        if (before[i] == 0)
            c->store->ops->cancel(c->store, &flight[i].call);
    }
    CONFORM_UNTIL(c, c->store->ops->drained(c->store));
    assert_int_equal(conform_call(c, HG_OP_SET, "after", "v").status, 0);
    for (size_t i = 0; i < HG_COUNT_OF(flight); i++)
        assert_int_equal(flight[i].done, before[i]);
    assert_int_equal(set.done + get.done, 0);
    assert_int_equal(get.rooms, 0);
}

/* A store that is freed answers what it has. */
static void freed(struct conform *c)
{
    static struct note set, get;
    conform_expect(c, "k", NULL);
    conform_note(c, &set, HG_OP_SET, "k");
    conform_note(c, &get, HG_OP_GET, "k");
    get.call.after = &set.call;
    (void)note_submit(&set, c->rig);
    (void)note_submit(&get, c->rig);
    conform_free_stores(c);
    assert_int_equal(set.done, 1);
    assert_int_equal(set.result.fault, HG_FAULT_LOST);
    assert_int_equal(get.done, 1);
    assert_int_equal(get.result.fault, conform_has(c, HAS_TIES) ? HG_FAULT_DOWN : HG_FAULT_LOST);
}

/* A store that is drained answers what it has, and then has nothing. */
static void drained(struct conform *c)
{
    static struct note sets[50];
    assert_true(c->store->ops->drained(c->store));
    conform_expect(c, "k", NULL);
    for (size_t i = 0; i < HG_COUNT_OF(sets); i++) {
        conform_note(c, &sets[i], HG_OP_SET, "k");
        sets[i].call.value = HG_SPAN_LIT("v");
        (void)note_submit(&sets[i], c->rig);
    }
    assert_false(c->store->ops->drained(c->store));
    c->store->ops->drain(c->store);
    CONFORM_UNTIL(c, c->store->ops->drained(c->store));
    for (size_t i = 0; i < HG_COUNT_OF(sets); i++) {
        assert_int_equal(sets[i].done, 1);
        assert_int_equal(sets[i].result.fault, HG_FAULT_NONE);
        assert_int_equal(sets[i].result.status, 0);
    }
}

const struct conform_case conform_calls[] = {
    {"sizes", .run = sizes, .large = true},
    {"an append beyond the limit", .needs = HAS_JOIN_LIMIT, .run = too_long_a_join},
    {"a value beyond the limit", .needs = HAS_SET_LIMIT, .run = too_long_a_value},
    {"values by reference", .run = by_reference},
    {"the longest keys", .run = keys},
    {"thousands at once", .run = many, .large = true},
    {"a client sees its own writes", .run = own_writes},
    {"cancelled calls", .run = cancelled},
    {"freed with calls under way", .run = freed},
    {"drained with calls under way", .run = drained},
};
const size_t conform_calls_count = HG_COUNT_OF(conform_calls);
