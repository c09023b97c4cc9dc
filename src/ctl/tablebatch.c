// tablebatch - table batch: operations on rows of one table, from JSON lines
// SPDX-License-Identifier: BSD-3-Clause
//
//   {"op": "insert", "row": "alice", "columns": {"name": "Alice", "age": 42}}
//   {"op": "get", "row": "alice", "select": ["name"]}
//   {"op": "increment", "row": "alice", "columns": {"hits": 1}, "return": true}
#include <stdio.h>
#include <string.h>

#include "ctl/option.h"
#include "ctl/rowlines.h"
#include "ctl/rowshow.h"
#include "ctl/tableverb.h"

/* ---- items ---- */

struct batch {
    struct hg_rowcall *call;
    hg_pb_table_request *request;
};

static int find_single(const char *word, const char *where, uint32_t *ret_code)
{
    for (unsigned op = HG_OP_TABLE_GET; op <= HG_OP_TABLE_APPEND; op++) {
        if (strcmp(hg_op_rows[op].name + strlen("table_"), word) == 0) {
            *ret_code = hg_op_rows[op].code;
            return HG_CTL_OK;
        }
    }
    return hg_ctl_say(HG_CTL_USAGE,
                      "%s: '%s' is no operation of a batch (accepted: get, insert, delete, update, "
                      "insert_or_update, replace, increment, append)",
                      where, word);
}

static int add_columns(struct hg_arena *arena, json_t *columns, const char *where,
                       hg_pb_table_item *item)
{
    const char *name;
    json_t *value;
    char place[300];
    item->entity = HG_PB_NEW(arena, entity);
    json_object_foreach(columns, name, value)
    {
        hg_pb_column *column = HG_PB_NEW(arena, column);
        column->name = hg_rowtext_of(arena, name);
        snprintf(place, sizeof place, "%s: column '%s'", where, name);
        int code = hg_rowtext_json_value(arena, value, place, &column->value);
        if (code != HG_CTL_OK)
            return code;
        hg_pb_append(arena, &item->entity->columns, &item->entity->n_columns, column);
    }
    return HG_CTL_OK;
}

static int add_select(struct hg_arena *arena, const json_t *select, const char *where,
                      hg_pb_table_item *item)
{
    size_t i;
    json_t *name;
    json_array_foreach(select, i, name)
    {
        if (!json_is_string(name))
            return hg_ctl_say(HG_CTL_USAGE, "%s: select takes names of columns", where);
        hg_pb_append_bytes(arena, &item->select, &item->n_select,
                           hg_rowtext_of(arena, json_string_value(name)));
    }
    return HG_CTL_OK;
}

/* A member of an item: one row, one handler. An exit code. */
static int add_member(struct hg_arena *arena, const char *name, json_t *value, const char *where,
                      hg_pb_table_item *item)
{
    if (strcmp(name, "op") == 0 || strcmp(name, "row") == 0)
        return HG_CTL_OK; /* looked at before */
    if (strcmp(name, "columns") == 0 && json_is_object(value))
        return add_columns(arena, value, where, item);
    if (strcmp(name, "select") == 0 && json_is_array(value))
        return add_select(arena, value, where, item);
    if (strcmp(name, "return") == 0 && json_is_boolean(value)) {
        item->return_entity = json_is_true(value);
        return HG_CTL_OK;
    }
    return hg_ctl_say(HG_CTL_USAGE,
                      "%s: \"%s\" is no member of an item, or its value is of another kind "
                      "(accepted: op, row, columns {}, select [], return true)",
                      where, name);
}

static int add_item(void *user, json_t *object, const char *where)
{
    struct batch *batch = user;
    struct hg_arena *arena = &batch->call->arena;
    const char *op = hg_rowlines_member(object, "op", where), *row, *name;
    json_t *value;
    if (op == NULL || (row = hg_rowlines_member(object, "row", where)) == NULL)
        return HG_CTL_USAGE;
    hg_pb_table_item *item = HG_PB_NEW(arena, table_item);
    item->row = hg_rowtext_of(arena, row);
    int code = find_single(op, where, &item->operation);
    json_object_foreach(object, name, value)
    {
        if (code == HG_CTL_OK)
            code = add_member(arena, name, value, where, item);
    }
    hg_pb_append(arena, &batch->request->items, &batch->request->n_items, item);
    return code;
}

/* ---- results ---- */

static int show(const struct hg_rowcall *call, const hg_pb_table_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->n_items; i++) {
        const hg_pb_table_item_reply *item = reply->items[i];
        json_t *object = hg_rowlines_result(item->status, item->message, item->affected);
        if (item->entity != NULL)
            json_object_set_new(object, "columns", hg_rowshow_entity_json(item->entity));
        json_array_append_new(list, object);
    }
    return hg_rowlines_print(call, list);
}

int hg_ctl_table_batch(struct hg_rowcall *call)
{
    struct batch batch = {call, HG_PB_NEW(&call->arena, table_request)};
    hg_pb_table_reply *reply;
    batch.request->atomic = hg_ctl_option_is(call->ctl, HG_CTL_OPT_ATOMIC);
    int code = hg_rowlines_read(call, add_item, &batch);
    if (code == HG_CTL_OK)
        code = hg_rowcall_ask(call, &batch.request->base, &reply);
    return code != HG_CTL_OK ? code : show(call, reply);
}
