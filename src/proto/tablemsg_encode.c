// tablemsg_encode - replies of TableAPI and HBase
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/tablemsg.h"
#include "proto/tablepb.h"

static bool batch(enum hg_op op)
{
    return op == HG_OP_TABLE_BATCH || op == HG_OP_HBASE_HYBRID;
}

/* A message of the columns; NULL when memory is out. */
static HG_PB(Entity) * new_entity(const struct hg_entity *entity, struct hg_arena *arena)
{
    HG_PB(Entity) *out = hg_arena_take(arena, sizeof *out);
    if (out == NULL)
        return NULL;
    *out = (HG_PB(Entity))HG_PB_INIT(ENTITY);
    return hg_tablepb_columns(entity, arena, &out->n_columns, &out->columns) ? out : NULL;
}

static bool put_table_items(const struct hg_table_reply *reply, struct hg_arena *arena,
                            HG_PB(TableReply) * out)
{
    HG_PB(TableItemReply) **list = hg_arena_array(arena, reply->result_count, sizeof *list);
    HG_PB(TableItemReply) *items = hg_arena_array(arena, reply->result_count, sizeof *items);
    if (list == NULL || items == NULL)
        return false;
    for (size_t i = 0; i < reply->result_count; i++) {
        const struct hg_row_result *result = &reply->results[i];
        items[i] = (HG_PB(TableItemReply))HG_PB_INIT(TABLE_ITEM_REPLY);
        items[i].status = result->status;
        items[i].message = hg_tablepb_bytes(result->text);
        items[i].affected = result->affected;
        if (result->found && (items[i].entity = new_entity(&result->entity, arena)) == NULL)
            return false;
        list[i] = &items[i];
    }
    out->n_items = reply->result_count;
    out->items = list;
    return true;
}

static bool put_table_rows(const struct hg_table_reply *reply, struct hg_arena *arena,
                           HG_PB(TableReply) * out)
{
    HG_PB(TableRow) **list = hg_arena_array(arena, reply->row_count, sizeof *list);
    HG_PB(TableRow) *rows = hg_arena_array(arena, reply->row_count, sizeof *rows);
    if (list == NULL || rows == NULL)
        return false;
    for (size_t i = 0; i < reply->row_count; i++) {
        rows[i] = (HG_PB(TableRow))HG_PB_INIT(TABLE_ROW);
        rows[i].row = hg_tablepb_bytes(reply->rows[i].row);
        rows[i].entity = new_entity(&reply->rows[i].entity, arena);
        if (rows[i].entity == NULL)
            return false;
        list[i] = &rows[i];
    }
    out->n_rows = reply->row_count;
    out->rows = list;
    return true;
}

static bool put_table(const struct hg_table_reply *reply, struct hg_arena *arena,
                      HG_PB(TableReply) * out)
{
    out->session = reply->session;
    out->more = reply->more;
    if (batch(reply->op))
        return put_table_items(reply, arena, out);
    if (reply->result_count > 0 && reply->results[0].found)
        return (out->entity = new_entity(&reply->results[0].entity, arena)) != NULL;
    return put_table_rows(reply, arena, out);
}

static bool put_hbase_items(const struct hg_table_reply *reply, struct hg_arena *arena,
                            HG_PB(HBaseReply) * out)
{
    HG_PB(HBaseItemReply) **list = hg_arena_array(arena, reply->result_count, sizeof *list);
    HG_PB(HBaseItemReply) *items = hg_arena_array(arena, reply->result_count, sizeof *items);
    if (list == NULL || items == NULL)
        return false;
    for (size_t i = 0; i < reply->result_count; i++) {
        const struct hg_row_result *result = &reply->results[i];
        items[i] = (HG_PB(HBaseItemReply))HG_PB_INIT(HBASE_ITEM_REPLY);
        items[i].status = result->status;
        items[i].message = hg_tablepb_bytes(result->text);
        items[i].affected = result->affected;
        if (!hg_tablepb_cells(&result->cells, arena, &items[i].n_cells, &items[i].cells))
            return false;
        list[i] = &items[i];
    }
    out->n_items = reply->result_count;
    out->items = list;
    return true;
}

static bool put_hbase_rows(const struct hg_table_reply *reply, struct hg_arena *arena,
                           HG_PB(HBaseReply) * out)
{
    HG_PB(HBaseRow) **list = hg_arena_array(arena, reply->row_count, sizeof *list);
    HG_PB(HBaseRow) *rows = hg_arena_array(arena, reply->row_count, sizeof *rows);
    if (list == NULL || rows == NULL)
        return false;
    for (size_t i = 0; i < reply->row_count; i++) {
        rows[i] = (HG_PB(HBaseRow))HG_PB_INIT(HBASE_ROW);
        rows[i].row = hg_tablepb_bytes(reply->rows[i].row);
        rows[i].partial = reply->rows[i].partial;
        if (!hg_tablepb_cells(&reply->rows[i].cells, arena, &rows[i].n_cells, &rows[i].cells))
            return false;
        list[i] = &rows[i];
    }
    out->n_rows = reply->row_count;
    out->rows = list;
    return true;
}

static bool put_hbase(const struct hg_table_reply *reply, struct hg_arena *arena,
                      HG_PB(HBaseReply) * out)
{
    out->session = reply->session;
    out->more = reply->more;
    if (batch(reply->op))
        return put_hbase_items(reply, arena, out);
    if (reply->result_count > 0) {
        out->processed = reply->results[0].processed;
        return hg_tablepb_cells(&reply->results[0].cells, arena, &out->n_cells, &out->cells);
    }
    return put_hbase_rows(reply, arena, out);
}

bool hg_tablemsg_encode(const struct hg_table_reply *reply, struct hg_arena *arena,
                        struct hg_span *ret)
{
    HG_PB(TableReply) table = HG_PB_INIT(TABLE_REPLY);
    HG_PB(HBaseReply) hbase = HG_PB_INIT(HBASE_REPLY);
    bool is_hbase = hg_op_rows[reply->op].api == HG_API_HBASE;
    if (is_hbase ? !put_hbase(reply, arena, &hbase) : !put_table(reply, arena, &table))
        return false;
    size_t bytes;
    uint8_t *at = hg_tablepb_pack(is_hbase ? &hbase.base : &table.base, 0, arena, &bytes);
    if (at == NULL)
        return false;
    *ret = hg_span(at, bytes);
    return true;
}
