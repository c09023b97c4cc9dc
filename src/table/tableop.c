// tableop - TableAPI on one row, as a pure function
// SPDX-License-Identifier: BSD-3-Clause
//
// Operations work on a draft of the row, which borrows its columns (from the stored row, from the
// operation, from itself when a result shows them) until it must change them; then it copies them
// once, with room for what the operations that follow may add. So the items of a batch cost what
// they change, not a copy of the row each.
#include "table/tableop.h"

#include <stdio.h>

#include "base/log.h"
#include "proto/status.h"

struct draft {
    struct hg_arena *arena;
    bool exists, changed;
    bool owned; /* the columns are the draft's own, with room for `room` */
    struct hg_entity now;
    size_t room;
    size_t to_come; /* columns of this and the following operations */
};

static void start(struct draft *draft, const struct hg_row *old, struct hg_arena *arena,
                  size_t to_come)
{
    memset(draft, 0, sizeof *draft);
    draft->arena = arena;
    draft->exists = old != NULL;
    if (old != NULL)
        draft->now = old->entity;
    draft->to_come = to_come;
}

/* ---- errors ---- */

static void out_of_memory(struct hg_row_result *result)
{
    memset(result, 0, sizeof *result);
    result->status = HG_STATUS_ENOMEM;
    result->text = HG_SPAN_LIT("the operation needs more memory than a request may take");
}

/* "column 'name' <what>" */
static void refuse_column(struct draft *draft, struct hg_row_result *result, uint16_t status,
                          struct hg_span name, const char *what)
{
    char escaped[160], text[256];
    snprintf(text, sizeof text, "column '%s' %s", hg_escape(escaped, sizeof escaped, name), what);
    memset(result, 0, sizeof *result);
    result->status = status;
    result->text = hg_arena_copy(draft->arena, hg_span_str(text));
    if (result->text.at == NULL)
        out_of_memory(result);
}

/* ---- columns ---- */

/* The first column at `from` or behind whose name is not before `name`. */
static size_t find_from(const struct hg_entity *entity, size_t from, struct hg_span name)
{
    size_t low = from, high = entity->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hg_filter_compare_bytes(entity->columns[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct hg_entity *entity, size_t at, struct hg_span name)
{
    return at < entity->count && hg_span_equal(entity->columns[at].name, name);
}

static bool own_columns(struct draft *draft)
{
    size_t room = draft->now.count + draft->to_come;
    struct hg_column *columns = hg_arena_take(draft->arena, room * sizeof *columns);
    if (columns == NULL)
        return false;
    if (draft->now.count > 0)
        memcpy(columns, draft->now.columns, draft->now.count * sizeof *columns);
    draft->now.columns = columns;
    draft->room = room;
    draft->owned = true;
    return true;
}

static void become(struct draft *draft, const struct hg_entity *entity)
{
    draft->exists = draft->changed = true;
    draft->owned = false;
    draft->now = *entity;
}

static void vanish(struct draft *draft)
{
    draft->exists = draft->owned = false;
    draft->changed = true;
    draft->now = (struct hg_entity){NULL, 0};
}

/* Sets the named columns, adds those that are not there; makes the row when there is none. */
static bool put_columns(struct draft *draft, const struct hg_entity *changes)
{
    if (draft->now.count == 0) {
        if (!draft->exists || changes->count > 0)
            become(draft, changes);
        return true;
    }
    if (changes->count == 0)
        return true;
    size_t added = 0, found = 0;
    for (size_t i = 0; i < changes->count; i++) {
        found = find_from(&draft->now, found, changes->columns[i].name);
        if (is_at(&draft->now, found, changes->columns[i].name))
            found++;
        else
            added++;
    }
    if ((!draft->owned || draft->now.count + added > draft->room) && !own_columns(draft))
        return false;
    /* Merged from the back, so that nothing is overwritten before it has moved. */
    struct hg_column *columns = draft->now.columns;
    size_t left = draft->now.count, change = changes->count, at = left + added;
    draft->now.count = at;
    while (change > 0 && at > 0) {
        const struct hg_column *next = &changes->columns[change - 1];
        int order = left > 0 ? hg_filter_compare_bytes(columns[left - 1].name, next->name) : -1;
        if (order > 0) {
            columns[--at] = columns[--left];
            continue;
        }
        left -= order == 0 && left > 0;
        columns[--at] = *next;
        change--;
    }
    draft->changed = true;
    return true;
}

/* Those of the columns that are named; all when no name is. False: no memory. */
static bool select_columns(const struct hg_entity *from, const struct hg_names *names,
                           struct hg_arena *arena, struct hg_entity *ret)
{
    if (names->count == 0) {
        *ret = *from;
        return true;
    }
    bool local[256];
    bool *chosen = local;
    if (from->count <= sizeof local)
        memset(local, 0, sizeof local);
    else
        chosen = hg_arena_array(arena, from->count, sizeof *chosen);
    if (chosen == NULL)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        size_t at = find_from(from, 0, names->list[i]);
        if (is_at(from, at, names->list[i]) && !chosen[at]) {
            chosen[at] = true;
            count++;
        }
    }
    struct hg_entity entity = {hg_arena_array(arena, count, sizeof *entity.columns), 0};
    if (entity.columns == NULL)
        return false;
    for (size_t i = 0; entity.count < count; i++)
        if (chosen[i])
            entity.columns[entity.count++] = from->columns[i];
    *ret = entity;
    return true;
}

/* ---- INCREMENT and APPEND ---- */

/* The sum of an integer, or of nothing, and the operand. */
static bool add(struct draft *draft, struct hg_row_result *result, const struct hg_value *stored,
                struct hg_column *column)
{
    if (stored == NULL || stored->kind == HG_VALUE_NULL)
        return true;
    if (stored->kind != HG_VALUE_INTEGER) {
        refuse_column(draft, result, HG_STATUS_DELTA_BADVAL, column->name,
                      "does not hold an integer");
        return false;
    }
    if (__builtin_add_overflow(stored->integer, column->value.integer, &column->value.integer)) {
        refuse_column(draft, result, HG_STATUS_DELTA_BADVAL, column->name,
                      "would leave the range of 64-bit integers");
        return false;
    }
    return true;
}

/* The operand behind bytes, or behind nothing. */
static bool append(struct draft *draft, struct hg_row_result *result, const struct hg_value *stored,
                   struct hg_column *column)
{
    if (stored == NULL || stored->kind == HG_VALUE_NULL)
        return true;
    if (stored->kind != HG_VALUE_BYTES) {
        refuse_column(draft, result, HG_STATUS_DELTA_BADVAL, column->name, "does not hold bytes");
        return false;
    }
    struct hg_span before = stored->bytes, more = column->value.bytes;
    uint8_t *joined = hg_arena_take(draft->arena, before.len + more.len);
    if (joined == NULL) {
        out_of_memory(result);
        return false;
    }
    if (before.len > 0)
        memcpy(joined, before.at, before.len);
    if (more.len > 0)
        memcpy(joined + before.len, more.at, more.len);
    column->value.bytes = hg_span(joined, before.len + more.len);
    return true;
}

/* Each operand must be of the kind; what is stored is looked at only then. */
static bool check_operands(struct draft *draft, const struct hg_table_item *item,
                           struct hg_row_result *result)
{
    bool increment = item->op == HG_OP_TABLE_INCREMENT;
    enum hg_value_kind kind = increment ? HG_VALUE_INTEGER : HG_VALUE_BYTES;
    for (size_t i = 0; i < item->entity.count; i++)
        if (item->entity.columns[i].value.kind != kind) {
            refuse_column(draft, result, HG_STATUS_EINVAL, item->entity.columns[i].name,
                          increment ? "can be incremented by an integer only"
                                    : "can be appended bytes to only");
            return false;
        }
    return true;
}

static void combine(struct draft *draft, const struct hg_table_item *item,
                    struct hg_row_result *result)
{
    if (!check_operands(draft, item, result))
        return;
    struct hg_entity changes = {
        hg_arena_take(draft->arena, item->entity.count * sizeof *changes.columns),
        item->entity.count};
    if (changes.columns == NULL) {
        out_of_memory(result);
        return;
    }
    size_t found = 0;
    for (size_t i = 0; i < changes.count; i++) {
        struct hg_column *column = &changes.columns[i];
        *column = item->entity.columns[i];
        found = find_from(&draft->now, found, column->name);
        const struct hg_value *stored =
            is_at(&draft->now, found, column->name) ? &draft->now.columns[found].value : NULL;
        bool done = item->op == HG_OP_TABLE_INCREMENT ? add(draft, result, stored, column)
                                                      : append(draft, result, stored, column);
        if (!done)
            return;
    }
    if (!put_columns(draft, &changes)) {
        out_of_memory(result);
        return;
    }
    result->affected = 1;
    result->found = item->return_entity;
    if (item->return_entity)
        result->entity = changes;
}

/* ---- operations ---- */

static void get(struct draft *draft, const struct hg_table_item *item, struct hg_row_result *result)
{
    if (!draft->exists)
        return;
    if (!select_columns(&draft->now, &item->select, draft->arena, &result->entity)) {
        out_of_memory(result);
        return;
    }
    draft->owned = false; /* the result may show these very columns */
    result->found = true;
}

static void store(struct draft *draft, const struct hg_table_item *item,
                  struct hg_row_result *result)
{
    bool there = draft->exists;
    if (item->op == HG_OP_TABLE_INSERT && there) {
        result->status = HG_STATUS_KEY_EEXISTS;
        result->text = HG_SPAN_LIT("the row exists");
        return;
    }
    if (item->op == HG_OP_TABLE_UPDATE && !there)
        return;
    if (item->op == HG_OP_TABLE_REPLACE) {
        become(draft, &item->entity);
    } else if (!put_columns(draft, &item->entity)) {
        out_of_memory(result);
        return;
    }
    result->affected = item->op == HG_OP_TABLE_REPLACE && there ? 2 : 1;
}

/* One operation; false: it is refused, and the draft may be spoilt. */
static bool apply(struct draft *draft, const struct hg_table_item *item,
                  struct hg_row_result *result)
{
    memset(result, 0, sizeof *result);
    switch (item->op) {
    case HG_OP_TABLE_GET:
        get(draft, item, result);
        break;
    case HG_OP_TABLE_INSERT:
    case HG_OP_TABLE_UPDATE:
    case HG_OP_TABLE_INSERT_OR_UPDATE:
    case HG_OP_TABLE_REPLACE:
        store(draft, item, result);
        break;
    case HG_OP_TABLE_DELETE:
        if (draft->exists) {
            vanish(draft);
            result->affected = 1;
        }
        break;
    case HG_OP_TABLE_INCREMENT:
    case HG_OP_TABLE_APPEND:
        combine(draft, item, result);
        break;
    default:
        result->status = HG_STATUS_EINVAL;
        result->text = HG_SPAN_LIT("not an operation on one row of a table");
    }
    return result->status == HG_STATUS_SUCCESS;
}

static void finish(const struct draft *draft, bool was_there, struct hg_row_outcome *ret)
{
    if (!draft->changed || (!draft->exists && !was_there))
        return;
    ret->act = draft->exists ? HG_ROW_STORE : HG_ROW_REMOVE;
    ret->row.api = HG_API_TABLE;
    ret->row.entity = draft->now;
}

void hg_tableop_apply(const struct hg_row *old, const struct hg_table_item *item,
                      struct hg_arena *arena, struct hg_row_outcome *ret)
{
    struct draft draft;
    memset(ret, 0, sizeof *ret);
    start(&draft, old, arena, item->entity.count);
    if (apply(&draft, item, &ret->result))
        finish(&draft, old != NULL, ret);
}

/* ---- batches ---- */

static void refuse_all(struct draft *draft, struct hg_row_result *results, size_t count,
                       size_t refused, struct hg_row_outcome *ret)
{
    char text[80];
    snprintf(text, sizeof text, "not applied: item %zu of the atomic batch failed", refused + 1);
    struct hg_span told = hg_arena_copy(draft->arena, hg_span_str(text));
    if (told.at == NULL)
        told = HG_SPAN_LIT("not applied: another item of the atomic batch failed");
    for (size_t i = 0; i < count; i++)
        if (i != refused)
            results[i] = (struct hg_row_result){.status = HG_STATUS_NOT_STORED, .text = told};
    ret->result.status = results[refused].status;
    ret->result.text = results[refused].text;
}

void hg_tableop_apply_all(const struct hg_row *old, const struct hg_table_item *items, size_t count,
                          struct hg_arena *arena, struct hg_row_result *results,
                          struct hg_row_outcome *ret)
{
    struct draft draft;
    size_t to_come = 0;
    uint32_t affected = 0;
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < count; i++)
        to_come += items[i].entity.count;
    start(&draft, old, arena, to_come);
    for (size_t i = 0; i < count; i++) {
        if (!apply(&draft, &items[i], &results[i])) {
            refuse_all(&draft, results, count, i, ret);
            return;
        }
        draft.to_come -= items[i].entity.count;
        affected += results[i].affected;
    }
    ret->result.affected = affected < UINT16_MAX ? (uint16_t)affected : UINT16_MAX;
    finish(&draft, old != NULL, ret);
}

/* ---- ranges ---- */

bool hg_tableop_read(const struct hg_row *row, struct hg_span row_key, const struct hg_query *query,
                     struct hg_filter_state *state, struct hg_arena *arena,
                     struct hg_found_row *ret, bool *ret_memory)
{
    struct hg_entity passed, selected;
    if (!hg_filter_entity(&query->filter, state, row_key, row, &row->entity, arena, &passed,
                          ret_memory))
        return false;
    if (!select_columns(&passed, &query->select, arena, &selected)) {
        *ret_memory = true;
        return false;
    }
    *ret = (struct hg_found_row){.row = row_key, .entity = selected};
    return true;
}
