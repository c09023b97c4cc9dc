// tablemsg_encode - replies of TableAPI and HBase
// SPDX-License-Identifier: BSD-3-Clause
//
// Written in two passes: how long, then what. The two must agree, so each part is a pair of
// functions that go through the same fields in the same order.
#include <endian.h>

#include "proto/rowwire.h"
#include "proto/tablemsg.h"

/* Numbers of the fields in proto/table.proto. */
enum { TABLE_ENTITY = 1, TABLE_ROWS = 2, TABLE_ITEMS = 3, TABLE_SESSION = 4, TABLE_MORE = 5 };
enum {
    HBASE_CELLS = 1,
    HBASE_ROWS = 2,
    HBASE_ITEMS = 3,
    HBASE_SESSION = 4,
    HBASE_MORE = 5,
    HBASE_PROCESSED = 6
};
enum { ITEM_STATUS = 1, ITEM_MESSAGE = 2, ITEM_AFFECTED = 3, ITEM_CONTENT = 4 };
enum { ROW_KEY = 1, ROW_CONTENT = 2, ROW_PARTIAL = 3 };

static bool batch(enum hg_op op)
{
    return op == HG_OP_TABLE_BATCH || op == HG_OP_HBASE_HYBRID;
}

/* An entity that is there, even without columns. */
static size_t entity_size(const struct hg_entity *entity)
{
    return hg_rowwire_field_size(hg_rowwire_columns_size(entity));
}

static uint8_t *put_entity(uint8_t *at, unsigned field, const struct hg_entity *entity)
{
    at = hg_rowwire_put_head(at, field, hg_rowwire_columns_size(entity));
    return hg_rowwire_put_columns(at, entity);
}

static size_t item_size(const struct hg_row_result *result, bool hbase)
{
    size_t size = hg_rowwire_number_size(result->status) + hg_rowwire_bytes_size(result->text) +
                  hg_rowwire_number_size(result->affected);
    if (hbase)
        return size + hg_rowwire_cells_size(&result->cells);
    return result->found ? size + entity_size(&result->entity) : size;
}

static uint8_t *put_item(uint8_t *at, const struct hg_row_result *result, bool hbase)
{
    at = hg_rowwire_put_number(at, ITEM_STATUS, result->status);
    at = hg_rowwire_put_bytes(at, ITEM_MESSAGE, result->text);
    at = hg_rowwire_put_number(at, ITEM_AFFECTED, result->affected);
    if (hbase)
        return hg_rowwire_put_cells(at, ITEM_CONTENT, &result->cells);
    return result->found ? put_entity(at, ITEM_CONTENT, &result->entity) : at;
}

static size_t row_size(const struct hg_found_row *row, bool hbase)
{
    size_t size = hg_rowwire_bytes_size(row->row);
    if (!hbase)
        return size + entity_size(&row->entity);
    return size + hg_rowwire_cells_size(&row->cells) + hg_rowwire_number_size(row->partial);
}

static uint8_t *put_row(uint8_t *at, const struct hg_found_row *row, bool hbase)
{
    at = hg_rowwire_put_bytes(at, ROW_KEY, row->row);
    if (!hbase)
        return put_entity(at, ROW_CONTENT, &row->entity);
    at = hg_rowwire_put_cells(at, ROW_CONTENT, &row->cells);
    return hg_rowwire_put_number(at, ROW_PARTIAL, row->partial);
}

/* The result of a row operation. */
static size_t result_size(const struct hg_row_result *result, bool hbase)
{
    if (hbase)
        return hg_rowwire_cells_size(&result->cells);
    return result->found ? entity_size(&result->entity) : 0;
}

static uint8_t *put_result(uint8_t *at, const struct hg_row_result *result, bool hbase)
{
    if (hbase)
        return hg_rowwire_put_cells(at, HBASE_CELLS, &result->cells);
    return result->found ? put_entity(at, TABLE_ENTITY, &result->entity) : at;
}

static bool processed(const struct hg_table_reply *reply, bool hbase)
{
    return hbase && !batch(reply->op) && reply->result_count > 0 && reply->results[0].processed;
}

static size_t reply_size(const struct hg_table_reply *reply, bool hbase)
{
    bool items = batch(reply->op);
    size_t size = 0;
    if (!items && reply->result_count > 0)
        size += result_size(&reply->results[0], hbase);
    for (size_t i = 0; i < reply->row_count; i++)
        size += hg_rowwire_field_size(row_size(&reply->rows[i], hbase));
    for (size_t i = 0; items && i < reply->result_count; i++)
        size += hg_rowwire_field_size(item_size(&reply->results[i], hbase));
    size += reply->session != 0 ? 1 + sizeof reply->session : 0;
    return size + hg_rowwire_number_size(reply->more) +
           hg_rowwire_number_size(processed(reply, hbase));
}

static uint8_t *put_reply(uint8_t *at, const struct hg_table_reply *reply, bool hbase)
{
    bool items = batch(reply->op);
    if (!items && reply->result_count > 0)
        at = put_result(at, &reply->results[0], hbase);
    for (size_t i = 0; i < reply->row_count; i++) {
        at = hg_rowwire_put_head(at, TABLE_ROWS, row_size(&reply->rows[i], hbase));
        at = put_row(at, &reply->rows[i], hbase);
    }
    for (size_t i = 0; items && i < reply->result_count; i++) {
        at = hg_rowwire_put_head(at, TABLE_ITEMS, item_size(&reply->results[i], hbase));
        at = put_item(at, &reply->results[i], hbase);
    }
    if (reply->session != 0) {
        uint64_t session = htole64(reply->session);
        *at++ = HG_ROWWIRE_FIXED(TABLE_SESSION);
        memcpy(at, &session, sizeof session);
        at += sizeof session;
    }
    at = hg_rowwire_put_number(at, TABLE_MORE, reply->more);
    return hg_rowwire_put_number(at, HBASE_PROCESSED, processed(reply, hbase));
}

/* The numbers that the two replies have in common. */
_Static_assert((int)TABLE_ROWS == (int)HBASE_ROWS && (int)TABLE_ITEMS == (int)HBASE_ITEMS &&
                   (int)TABLE_SESSION == (int)HBASE_SESSION && (int)TABLE_MORE == (int)HBASE_MORE,
               "one function writes both");

bool hg_tablemsg_encode(const struct hg_table_reply *reply, struct hg_arena *arena,
                        struct hg_span *ret)
{
    bool hbase = hg_op_rows[reply->op].api == HG_API_HBASE;
    size_t bytes = reply_size(reply, hbase);
    uint8_t *at = hg_arena_take(arena, bytes);
    if (at == NULL)
        return false;
    put_reply(at, reply, hbase);
    *ret = hg_span(at, bytes);
    return true;
}
