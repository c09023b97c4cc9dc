// rowhelp - calls for rows with an operation of the tests' own, and a shelf behind the fake store
// SPDX-License-Identifier: BSD-3-Clause
#include "rowhelp.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES (4u << 20)

static _Thread_local unsigned orders;

void rowop_reset_order(void)
{
    orders = 0;
}

/* The row with n, and a pad if it is not 0. */
static bool make_row(enum hg_api api, int64_t n, size_t pad, struct hg_arena *arena,
                     struct hg_row *ret)
{
    uint8_t *bytes = hg_arena_array(arena, pad + 8, 1);
    if (bytes == NULL)
        return false;
    memset(ret, 0, sizeof *ret);
    ret->api = api;
    if (api == HG_API_HBASE) {
        struct hg_cell *cell = hg_arena_array(arena, 1, sizeof *cell);
        if (cell == NULL)
            return false;
        memcpy(bytes, &n, sizeof n);
        *cell = (struct hg_cell){.family = HG_SPAN_LIT("f"),
                                 .qualifier = HG_SPAN_LIT("n"),
                                 .at_ms = 1,
                                 .dated = true,
                                 .value = hg_span(bytes, pad + 8)};
        ret->cells = (struct hg_cells){cell, 1};
        return true;
    }
    struct hg_column *columns = hg_arena_array(arena, 2, sizeof *columns);
    if (columns == NULL)
        return false;
    columns[0].name = HG_SPAN_LIT("n");
    columns[0].value = (struct hg_value){.kind = HG_VALUE_INTEGER, .integer = n};
    columns[1].name = HG_SPAN_LIT("p");
    columns[1].value = (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = hg_span(bytes, pad)};
    ret->entity = (struct hg_entity){columns, pad > 0 ? 2 : 1};
    return true;
}

static int64_t number_of(const struct hg_row *row)
{
    int64_t n;
    if (row == NULL)
        return -1;
    if (row->entity.count == 0 && row->cells.count == 0)
        return 0; /* it was damaged, and is removed */
    if (row->api == HG_API_TABLE) {
        assert(row->entity.count >= 1 && hg_span_is(row->entity.columns[0].name, "n"));
        return row->entity.columns[0].value.integer;
    }
    assert(row->cells.count == 1 && row->cells.list[0].value.len >= sizeof n);
    memcpy(&n, row->cells.list[0].value.at, sizeof n);
    return n;
}

static void apply(struct hg_row_call *call, const struct hg_row *old, struct hg_row_outcome *ret)
{
    struct rowop *op = HG_CONTAINER_OF(call, struct rowop, row);
    op->applied++;
    op->n = number_of(old);
    switch (op->kind) {
    case ROWOP_READ:
    case ROWOP_KEEP:
        return;
    case ROWOP_REMOVE:
        ret->act = HG_ROW_REMOVE;
        op->n = -1;
        return;
    case ROWOP_ADD:
    case ROWOP_PAD:
        break;
    }
    size_t pad = op->kind == ROWOP_PAD ? (size_t)op->amount : 0;
    op->n = (old == NULL ? 0 : op->n) + (pad > 0 ? 0 : op->amount);
    if (make_row(call->api, op->n, pad, call->arena, &ret->row))
        ret->act = HG_ROW_STORE;
    else
        ret->result.status = HG_STATUS_ENOMEM;
}

static void on_done(struct hg_row_call *call, const struct hg_row_end *end)
{
    struct rowop *op = HG_CONTAINER_OF(call, struct rowop, row);
    op->done++;
    op->order = ++orders;
    op->end = *end;
    snprintf(op->text, sizeof op->text, "%.*s", (int)end->text.len,
             end->text.len > 0 ? (const char *)end->text.at : "");
    snprintf(op->server, sizeof op->server, "%s", end->server != NULL ? end->server : "");
    if (op->then != NULL)
        op->then(op);
}

void rowop_init(struct rowop *op, struct hg_store *store, enum rowop_kind kind, const char *table,
                const char *row)
{
    memset(op, 0, sizeof *op);
    hg_arena_init(&op->arena, ARENA_BYTES);
    op->kind = kind;
    op->amount = 1;
    size_t len = hg_rowdoc_key(op->key, hg_span_str(table), hg_span_str(row));
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ op->key[i]) * 16777619u;
    op->row = (struct hg_row_call){.store = store,
                                   .api = HG_API_TABLE,
                                   .key = hg_span(op->key, len),
                                   .key_hash = hash,
                                   .writes = kind != ROWOP_READ,
                                   .max_value_bytes = 1u << 20,
                                   .arena = &op->arena,
                                   .apply = apply,
                                   .on_done = on_done};
}

void rowop_fini(struct rowop *op)
{
    hg_arena_fini(&op->arena);
}

struct hg_span rowop_document(enum hg_api api, int64_t n, size_t pad)
{
    static uint8_t bytes[32768];
    struct hg_arena arena;
    struct hg_row row;
    struct hg_span value;
    hg_arena_init(&arena, ARENA_BYTES);
    if (!make_row(api, n, pad, &arena, &row) || !hg_rowdoc_encode(&row, &arena, &value))
        abort();
    assert(value.len <= sizeof bytes);
    memcpy(bytes, value.at, value.len);
    hg_arena_fini(&arena);
    return hg_span(bytes, value.len);
}

/* --- the shelf --- */

void shelf_init(struct shelf *shelf)
{
    memset(shelf, 0, sizeof *shelf);
    shelf->max_value_bytes = 1u << 20;
    shelf->cas_last = 100;
}

static void empty(struct shelf_item *item)
{
    free(item->value);
    memset(item, 0, sizeof *item);
}

void shelf_fini(struct shelf *shelf)
{
    for (unsigned i = 0; i < SHELF_ITEMS; i++)
        empty(&shelf->items[i]);
}

struct shelf_item *shelf_find(struct shelf *shelf, const char key[256])
{
    for (unsigned i = 0; i < SHELF_ITEMS; i++)
        if (shelf->items[i].used && memcmp(shelf->items[i].key, key, 256) == 0)
            return &shelf->items[i];
    return NULL;
}

static struct shelf_item *make_room(struct shelf *shelf, const char key[256])
{
    struct shelf_item *item = shelf_find(shelf, key);
    for (unsigned i = 0; item == NULL; i++) {
        assert(i < SHELF_ITEMS);
        if (!shelf->items[i].used)
            item = &shelf->items[i];
    }
    return item;
}

struct hg_result shelf_do(struct shelf *shelf, const char key[256], const struct hg_item_ask *ask)
{
    struct shelf_item *found = shelf_find(shelf, key);
    struct hg_item_outcome outcome;
    shelf->counts[ask->op]++;
    hg_item_decide(found != NULL ? &found->item : NULL, ask, 1000, shelf->max_value_bytes,
                   shelf->cas_last + 1, &outcome);
    struct hg_result result = {
        .status = outcome.status, .counter = outcome.counter, .server = "shelf:1"};
    if (outcome.act == HG_ITEM_STORE) {
        size_t len = hg_item_outcome_bytes(&outcome);
        uint8_t *value = malloc(len > 0 ? len : 1);
        if (value == NULL)
            abort();
        hg_item_outcome_copy(&outcome, value);
        found = make_room(shelf, key);
        free(found->value);
        memcpy(found->key, key, 256);
        found->used = true;
        found->value = value;
        found->item = outcome.item;
        found->item.value = hg_span(value, len);
        result.cas = ++shelf->cas_last;
    } else if (outcome.act == HG_ITEM_REMOVE) {
        empty(found);
    } else if (outcome.act == HG_ITEM_TOUCH) {
        found->item.expiry_s = outcome.item.expiry_s;
    }
    if (found != NULL && outcome.status == HG_STATUS_SUCCESS &&
        (ask->op == HG_OP_GET || ask->op == HG_OP_GAT)) {
        result.value = found->item.value;
        result.item_flags = found->item.flags;
        result.cas = shelf->without_cas ? 0 : found->item.cas;
    }
    return result;
}

void shelf_put(struct shelf *shelf, const char key[256], uint32_t flags, struct hg_span value)
{
    struct hg_item_ask ask = {
        .op = value.at != NULL ? HG_OP_SET : HG_OP_DELETE, .flags = flags, .value = value};
    struct hg_result result = shelf_do(shelf, key, &ask);
    shelf->counts[ask.op]--;
    assert(result.status == HG_STATUS_SUCCESS);
    (void)result;
}

void shelf_answer(struct shelf *shelf, struct kept *kept)
{
    struct hg_item_ask ask = {.op = kept->op,
                              .flags = kept->item_flags,
                              .expiry = kept->expiry,
                              .cas = kept->cas,
                              .delta = kept->delta,
                              .initial = kept->initial,
                              .value = hg_span(kept->value, kept->value_len)};
    struct hg_result result = shelf_do(shelf, kept->key, &ask);
    /* What was read is overwritten at once. */
    uint8_t *copy = malloc(result.value.len + 1);
    if (copy == NULL)
        abort();
    if (result.value.len > 0)
        memcpy(copy, result.value.at, result.value.len);
    result.value.at = copy;
    size_t len = result.value.len;
    fakestore_finish(kept, &result);
    memset(copy, 0xdd, len);
    free(copy);
}
