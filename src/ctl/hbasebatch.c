// hbasebatch - hbase hybrid: operations on rows of one table, from JSON lines
// SPDX-License-Identifier: BSD-3-Clause
//
//   {"op": "put", "row": "r", "cells": {"cf:a": "text"}, "timestamp": 1700000000000}
//   {"op": "get", "row": "r", "columns": ["cf", "other:b"], "versions": 3}
//   {"op": "delete", "row": "r", "columns": ["cf:a"]}
//   {"op": "increment", "row": "r", "counters": {"cf:n": 1}}
#include <string.h>

#include "ctl/rowlines.h"
#include "ctl/rowshow.h"
#include "ctl/tableverb.h"

struct batch {
    struct hg_rowcall *call;
    hg_pb_hbase_request *request;
};

static int find_operation(const char *word, const char *where, uint32_t *ret_code)
{
    static const enum hg_op ops[] = {HG_OP_HBASE_PUT, HG_OP_HBASE_DELETE, HG_OP_HBASE_GET,
                                     HG_OP_HBASE_APPEND, HG_OP_HBASE_INCREMENT};
    for (size_t i = 0; i < HG_COUNT_OF(ops); i++) {
        if (strcmp(hg_op_rows[ops[i]].name + strlen("hbase_"), word) == 0) {
            *ret_code = hg_op_rows[ops[i]].code;
            return HG_CTL_OK;
        }
    }
    return hg_ctl_say(HG_CTL_USAGE,
                      "%s: '%s' is no operation of hybrid (accepted: put, delete, get, append, "
                      "increment)",
                      where, word);
}

static int add_cells(struct hg_arena *arena, json_t *cells, const json_t *at, const char *where,
                     hg_pb_hbase_item *item)
{
    const char *name;
    json_t *value;
    json_object_foreach(cells, name, value)
    {
        hg_pb_cell *cell = HG_PB_NEW(arena, cell);
        if (!json_is_string(value) ||
            !hg_rowtext_split(arena, name, strlen(name), &cell->family, &cell->qualifier))
            return hg_ctl_say(HG_CTL_USAGE, "%s: cell '%s' is not \"FAMILY:QUALIFIER\": \"text\"",
                              where, name);
        cell->value = hg_rowtext_bytes(arena, json_string_value(value), json_string_length(value));
        if (at != NULL) {
            cell->at_case = HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP;
            cell->timestamp = json_integer_value(at);
        }
        hg_pb_append(arena, &item->cells, &item->n_cells, cell);
    }
    return HG_CTL_OK;
}

static int add_counters(struct hg_arena *arena, json_t *counters, const char *where,
                        hg_pb_hbase_item *item)
{
    const char *name;
    json_t *value;
    json_object_foreach(counters, name, value)
    {
        hg_pb_counter *counter = HG_PB_NEW(arena, counter);
        if (!json_is_integer(value) ||
            !hg_rowtext_split(arena, name, strlen(name), &counter->family, &counter->qualifier))
            return hg_ctl_say(HG_CTL_USAGE, "%s: counter '%s' is not \"FAMILY:QUALIFIER\": number",
                              where, name);
        counter->amount = json_integer_value(value);
        hg_pb_append(arena, &item->counters, &item->n_counters, counter);
    }
    return HG_CTL_OK;
}

/* The columns of a get are read, those of a delete deleted; a delete without any is of the row. */
static int add_columns(struct hg_arena *arena, const json_t *columns, const json_t *at,
                       const char *where, hg_pb_hbase_item *item)
{
    bool reads = item->operation == hg_op_rows[HG_OP_HBASE_GET].code;
    for (size_t i = 0; i < json_array_size(columns) || (i == 0 && !reads); i++) {
        const json_t *column = json_array_get(columns, i);
        if (columns != NULL && json_array_size(columns) > 0 && !json_is_string(column))
            return hg_ctl_say(HG_CTL_USAGE, "%s: columns takes texts FAMILY or FAMILY:QUALIFIER",
                              where);
        if (reads) {
            hg_ctl_hbase_add_column(arena, item->read, json_string_value(column));
            continue;
        }
        hg_pb_deletion *deletion =
            hg_ctl_hbase_deletion(arena, json_string_value(column), false, false);
        if (at != NULL) {
            deletion->at_case = HEADGATE__TABLE__V1__DELETION__AT_TIMESTAMP;
            deletion->timestamp = json_integer_value(at);
        }
        hg_pb_append(arena, &item->deletions, &item->n_deletions, deletion);
    }
    return HG_CTL_OK;
}

/* Refuses members that nothing would look at. */
static int check_members(json_t *object, const char *where)
{
    static const struct {
        const char *name;
        json_type type;
    } members[] = {
        {"op", JSON_STRING},         {"row", JSON_STRING},    {"cells", JSON_OBJECT},
        {"counters", JSON_OBJECT},   {"columns", JSON_ARRAY}, {"versions", JSON_INTEGER},
        {"timestamp", JSON_INTEGER},
    };
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        size_t i = 0;
        while (i < HG_COUNT_OF(members) && strcmp(members[i].name, name) != 0)
            i++;
        if (i == HG_COUNT_OF(members) || json_typeof(value) != members[i].type)
            return hg_ctl_say(HG_CTL_USAGE,
                              "%s: \"%s\" is no member of an item, or its value is of another kind "
                              "(accepted: op, row, cells {}, counters {}, columns [], versions N, "
                              "timestamp N)",
                              where, name);
    }
    return HG_CTL_OK;
}

static int add_item(void *user, json_t *object, const char *where)
{
    struct batch *batch = user;
    struct hg_arena *arena = &batch->call->arena;
    const char *op = hg_rowlines_member(object, "op", where), *row;
    if (op == NULL || (row = hg_rowlines_member(object, "row", where)) == NULL)
        return HG_CTL_USAGE;
    hg_pb_hbase_item *item = HG_PB_NEW(arena, hbase_item);
    item->row = hg_rowtext_of(arena, row);
    int code = check_members(object, where);
    if (code == HG_CTL_OK)
        code = find_operation(op, where, &item->operation);
    const json_t *at = json_object_get(object, "timestamp");
    if (code == HG_CTL_OK)
        code = add_cells(arena, json_object_get(object, "cells"), at, where, item);
    if (code == HG_CTL_OK)
        code = add_counters(arena, json_object_get(object, "counters"), where, item);
    if (code == HG_CTL_OK && item->operation == hg_op_rows[HG_OP_HBASE_GET].code) {
        item->read = HG_PB_NEW(arena, read);
        item->read->max_versions =
            (uint32_t)json_integer_value(json_object_get(object, "versions"));
    }
    if (code == HG_CTL_OK && (item->operation == hg_op_rows[HG_OP_HBASE_GET].code ||
                              item->operation == hg_op_rows[HG_OP_HBASE_DELETE].code))
        code = add_columns(arena, json_object_get(object, "columns"), at, where, item);
    hg_pb_append(arena, &batch->request->items, &batch->request->n_items, item);
    return code;
}

static int show(const struct hg_rowcall *call, const hg_pb_hbase_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->n_items; i++) {
        const hg_pb_hbase_item_reply *item = reply->items[i];
        json_t *object = hg_rowlines_result(item->status, item->message, item->affected);
        json_object_set_new(object, "cells", hg_rowshow_cells_json(item->cells, item->n_cells));
        json_array_append_new(list, object);
    }
    return hg_rowlines_print(call, list);
}

int hg_ctl_hbase_hybrid(struct hg_rowcall *call)
{
    struct batch batch = {call, HG_PB_NEW(&call->arena, hbase_request)};
    hg_pb_hbase_reply *reply;
    int code = hg_rowlines_read(call, add_item, &batch);
    if (code == HG_CTL_OK)
        code = hg_rowcall_ask(call, &batch.request->base, &reply);
    return code != HG_CTL_OK ? code : show(call, reply);
}
