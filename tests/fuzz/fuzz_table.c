// fuzz_table - any bytes as a TableAPI or HBase request, and as a stored row
// SPDX-License-Identifier: BSD-3-Clause
//
// Input: one byte that chooses the API (bit 0) and the arena's limit (bits 1-2), 8 bytes of extras,
// one byte that is the key's length, the key, then the body. The request is decoded from memory of
// exactly that size; what is accepted keeps every promise of tablemsg.h. The body is then taken for
// a stored row: what decodes must come back from its encoding, and so must the replies made of it.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/table.pb-c.h"
#include "proto/rowdoc.h"
#include "proto/status.h"
#include "proto/tablemsg.h"
#include "fuzz.h"

#define INPUT_MAX 4096

// Stays on in every build: a broken promise must stop the fuzzer.
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static volatile uint8_t sink;

// Every byte may be read, and no span is a null pointer.
static void touch(struct hg_span span)
{
    MUST(span.at != NULL);
    for (size_t i = 0; i < span.len; i++)
        sink ^= span.at[i];
}

static int order(struct hg_span a, struct hg_span b)
{
    int result = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return result != 0 ? result : (a.len > b.len) - (a.len < b.len);
}

static void must_name(struct hg_span name, size_t least)
{
    touch(name);
    MUST(name.len >= least && name.len <= HG_TABLE_COLUMN_MAX);
}

static void must_value(const struct hg_value *value)
{
    MUST(value->kind <= HG_VALUE_BYTES);
    if (value->kind == HG_VALUE_BYTES)
        touch(value->bytes);
}

static void must_names(const struct hg_names *names, size_t least)
{
    MUST(names->count <= HG_TABLE_NAMES_MAX);
    for (size_t i = 0; i < names->count; i++) {
        must_name(names->list[i], least);
        MUST(i == 0 || order(names->list[i - 1], names->list[i]) < 0);
    }
}

static void must_entity(const struct hg_entity *entity)
{
    for (size_t i = 0; i < entity->count; i++) {
        must_name(entity->columns[i].name, 1);
        must_value(&entity->columns[i].value);
        MUST(i == 0 || order(entity->columns[i - 1].name, entity->columns[i].name) < 0);
    }
}

static void must_filter(const struct hg_filter *filter)
{
    size_t open = 0;
    MUST(filter->count <= HG_TABLE_FILTER_NODES);
    for (size_t i = 0; i < filter->count; i++) {
        const struct hg_filter_node *node = &filter->nodes[i];
        MUST(node->kind < HG_FILTER_KINDS && node->op <= HG_GREATER_EQUAL);
        touch(node->family);
        touch(node->qualifier);
        touch(node->low);
        touch(node->high);
        must_value(&node->value);
        for (size_t j = 0; j < node->timestamp_count; j++)
            sink ^= (uint8_t)node->timestamps[j];
        if (node->kind <= HG_FILTER_ANY) {
            MUST(node->operands >= 1 && node->operands <= open);
            open -= node->operands;
        }
        MUST(++open <= HG_TABLE_FILTER_DEPTH);
    }
    MUST(filter->count == 0 || open == 1);
}

static void must_read(const struct hg_hbase_read *read)
{
    MUST(read->min_ms <= read->max_ms && read->max_versions >= 1);
    for (size_t i = 0; i < read->column_count; i++) {
        MUST(hg_tablemsg_family_right(read->columns[i].family));
        must_names(&read->columns[i].qualifiers, 0);
        MUST(i == 0 || order(read->columns[i - 1].family, read->columns[i].family) < 0);
    }
    must_filter(&read->filter);
}

static void must_hbase_item(const struct hg_hbase_item *item)
{
    touch(item->row);
    for (size_t i = 0; i < item->cells.count; i++) {
        const struct hg_cell *cell = &item->cells.list[i];
        MUST(hg_tablemsg_family_right(cell->family));
        must_name(cell->qualifier, 0);
        touch(cell->value);
        MUST(cell->dated ? cell->at_ms >= 0 && cell->at_ms < INT64_MAX : cell->at_ms == 0);
    }
    for (size_t i = 0; i < item->counter_count; i++) {
        MUST(hg_tablemsg_family_right(item->counters[i].family));
        must_name(item->counters[i].qualifier, 0);
    }
    for (size_t i = 0; i < item->deletion_count; i++) {
        const struct hg_deletion *deletion = &item->deletions[i];
        MUST(deletion->kind <= HG_DELETION_VERSION);
        must_name(deletion->family, deletion->kind != HG_DELETION_ROW);
        must_name(deletion->qualifier, 0);
        MUST(deletion->dated || deletion->kind != HG_DELETION_VERSION);
    }
    must_read(&item->read);
    if (item->op == HG_OP_HBASE_CHECK_AND_PUT || item->op == HG_OP_HBASE_CHECK_AND_DELETE) {
        MUST(hg_tablemsg_family_right(item->check.family));
        must_name(item->check.qualifier, 0);
        MUST(item->check.has_value || item->check.op <= HG_NOT_EQUAL);
        touch(item->check.value);
    }
    MUST(item->op != HG_OP_HBASE_DELETE || item->deletion_count > 0);
    MUST(item->op != HG_OP_HBASE_INCREMENT || item->counter_count > 0);
    MUST((item->op != HG_OP_HBASE_PUT && item->op != HG_OP_HBASE_APPEND) || item->cells.count > 0);
}

static void must_table_item(const struct hg_table_item *item)
{
    touch(item->row);
    must_entity(&item->entity);
    must_names(&item->select, 1);
    for (size_t i = 0; i < item->entity.count; i++) {
        enum hg_value_kind kind = item->entity.columns[i].value.kind;
        MUST(item->op != HG_OP_TABLE_INCREMENT || kind == HG_VALUE_INTEGER);
        MUST(item->op != HG_OP_TABLE_APPEND || kind == HG_VALUE_BYTES);
    }
}

static void must_message(const struct hg_tablemsg *msg)
{
    bool table = msg->api == HG_API_TABLE;
    MUST(msg->item_count <= HG_TABLE_ITEMS_MAX);
    for (size_t i = 0; i < msg->item_count; i++) {
        struct hg_span row = table ? msg->table_items[i].row : msg->hbase_items[i].row;
        MUST(row.len > 0 && msg->table.len + row.len <= HG_TABLE_KEY_MAX);
        uint8_t key[HG_TABLE_KEY_MAX + 1];
        MUST(hg_rowdoc_key(key, msg->table, row) == msg->table.len + 1 + row.len);
        if (table)
            must_table_item(&msg->table_items[i]);
        else
            must_hbase_item(&msg->hbase_items[i]);
    }
    struct hg_span row = HG_SPAN_NONE;
    if (hg_tablemsg_point(msg, &row))
        MUST(row.len > 0 && msg->table.len + row.len <= HG_TABLE_KEY_MAX);
    if (msg->op == HG_OP_TABLE_QUERY || msg->op == HG_OP_TABLE_QUERY_START) {
        touch(msg->query.range.start);
        touch(msg->query.range.end);
        must_names(&msg->query.select, 1);
        must_filter(&msg->query.filter);
        MUST(msg->query.batch_rows >= 1 && msg->query.batch_rows <= HG_TABLE_ROWS_MAX);
    }
    if (msg->op == HG_OP_HBASE_SCAN) {
        touch(msg->scan.start);
        touch(msg->scan.stop);
        must_read(&msg->read);
        MUST(msg->scan.caching >= 1 && msg->scan.caching <= HG_TABLE_ROWS_MAX);
    }
}

static void run_request(enum hg_api api, struct hg_span extras, struct hg_span key,
                        struct hg_span body, struct hg_arena *arena)
{
    enum hg_op op = HG_OPS;
    struct hg_span table, row;
    const char *why = NULL;
    uint16_t status = hg_tablemsg_head(api, extras, key, &op, &table, &row, &why);
    MUST((status == 0) == (why == NULL));
    if (status != 0)
        return;
    MUST(hg_op_rows[op].api == api && hg_tablemsg_table_right(table));
    MUST(table.at + table.len == row.at && table.len + row.len == key.len);
    struct hg_tablemsg msg;
    status = hg_tablemsg_decode(op, table, row, body, arena, &msg, &why);
    MUST(status == 0 || status == HG_STATUS_EINVAL || status == HG_STATUS_E2BIG);
    MUST((status == 0) == (why == NULL) && (why == NULL || why[0] != 0));
    MUST(arena->used_bytes <= arena->limit_bytes);
    if (status == 0)
        must_message(&msg);
}

static void must_be_same(const struct hg_row *a, const struct hg_row *b)
{
    MUST(a->api == b->api && a->entity.count == b->entity.count &&
         a->cells.count == b->cells.count);
    for (size_t i = 0; i < a->entity.count; i++) {
        const struct hg_value *left = &a->entity.columns[i].value;
        const struct hg_value *right = &b->entity.columns[i].value;
        MUST(hg_span_equal(a->entity.columns[i].name, b->entity.columns[i].name));
        MUST(left->kind == right->kind);
        if (left->kind == HG_VALUE_BYTES)
            MUST(hg_span_equal(left->bytes, right->bytes));
        else if (left->kind != HG_VALUE_NULL)
            MUST(memcmp(&left->integer, &right->integer, 8) == 0);
    }
    for (size_t i = 0; i < a->cells.count; i++) {
        const struct hg_cell *left = &a->cells.list[i], *right = &b->cells.list[i];
        MUST(hg_span_equal(left->family, right->family) &&
             hg_span_equal(left->qualifier, right->qualifier) &&
             hg_span_equal(left->value, right->value));
        MUST(left->at_ms == right->at_ms && left->dated && right->dated);
    }
}

// protobuf-c, which knows nothing of rows, must read the same.
static void must_be_protobuf(const struct hg_row *row, struct hg_span document)
{
    Headgate__Table__V1__RowDocument *other =
        headgate__table__v1__row_document__unpack(NULL, document.len, document.at);
    MUST(other != NULL);
    MUST(other->n_columns == row->entity.count && other->n_cells == row->cells.count);
    for (size_t i = 0; i < other->n_columns; i++) {
        const Headgate__Table__V1__Value *value = other->columns[i]->value;
        const struct hg_value *ours = &row->entity.columns[i].value;
        ProtobufCBinaryData name = other->columns[i]->name;
        MUST(hg_span_equal(row->entity.columns[i].name, hg_span(name.data, name.len)));
        MUST((value == NULL ? 0 : (unsigned)value->kind_case) == (unsigned)ours->kind);
        if (ours->kind == HG_VALUE_INTEGER)
            MUST(value->integer == ours->integer);
        if (ours->kind == HG_VALUE_REAL)
            MUST(memcmp(&value->real, &ours->real, 8) == 0);
        if (ours->kind == HG_VALUE_BYTES)
            MUST(hg_span_equal(ours->bytes, hg_span(value->bytes.data, value->bytes.len)));
    }
    for (size_t i = 0; i < other->n_cells; i++) {
        const Headgate__Table__V1__Cell *cell = other->cells[i];
        const struct hg_cell *ours = &row->cells.list[i];
        MUST(hg_span_equal(ours->family, hg_span(cell->family.data, cell->family.len)));
        MUST(hg_span_equal(ours->qualifier, hg_span(cell->qualifier.data, cell->qualifier.len)));
        MUST(hg_span_equal(ours->value, hg_span(cell->value.data, cell->value.len)));
        MUST(ours->at_ms == cell->timestamp);
    }
    headgate__table__v1__row_document__free_unpacked(other, NULL);
}

// protobuf-c writes the same bytes of what it reads in them.
static void must_be_a_reply(struct hg_span bytes, bool table)
{
    touch(bytes);
    ProtobufCMessage *message =
        protobuf_c_message_unpack(table ? &headgate__table__v1__table_reply__descriptor
                                        : &headgate__table__v1__hbase_reply__descriptor,
                                  NULL, bytes.len, bytes.at);
    MUST(message != NULL && protobuf_c_message_get_packed_size(message) == bytes.len);
    uint8_t *packed = malloc(bytes.len + 1);
    MUST(packed != NULL && protobuf_c_message_pack(message, packed) == bytes.len);
    MUST(memcmp(packed, bytes.at, bytes.len) == 0);
    free(packed);
    protobuf_c_message_free_unpacked(message, NULL);
}

static void run_row(enum hg_api api, struct hg_span body, struct hg_arena *arena)
{
    uint8_t *exact = malloc(HG_ROWDOC_MARK_BYTES + body.len);
    MUST(exact);
    memcpy(exact, "\xf7HGR", 4);
    exact[4] = api == HG_API_TABLE ? 'T' : 'H';
    memcpy(exact + HG_ROWDOC_MARK_BYTES, body.at, body.len);
    struct hg_span value = hg_span(exact, HG_ROWDOC_MARK_BYTES + body.len), again;
    MUST(hg_rowdoc_is(HG_ROWDOC_FLAGS, value));
    struct hg_row row, back;
    uint16_t status = hg_rowdoc_decode(value, arena, &row);
    free(exact);
    MUST(status == 0 || status == HG_STATUS_EINTERNAL || status == HG_STATUS_ENOMEM);
    if (status != 0)
        return;
    MUST(row.api == api);
    must_entity(&row.entity);
    must_be_protobuf(&row, body);
    if (!hg_rowdoc_encode(&row, arena, &again))
        return;
    status = hg_rowdoc_decode(again, arena, &back);
    MUST(status == 0 || status == HG_STATUS_ENOMEM);
    if (status == 0)
        must_be_same(&row, &back);
    struct hg_row_result result = {.found = true, .entity = row.entity, .cells = row.cells};
    struct hg_found_row found = {.row = body, .entity = row.entity, .cells = row.cells};
    bool table = api == HG_API_TABLE;
    struct hg_table_reply replies[] = {
        {.op = table ? HG_OP_TABLE_GET : HG_OP_HBASE_GET, .results = &result, .result_count = 1},
        {.op = table ? HG_OP_TABLE_BATCH : HG_OP_HBASE_HYBRID,
         .results = &result,
         .result_count = 1},
        {.op = table ? HG_OP_TABLE_QUERY : HG_OP_HBASE_SCAN, .rows = &found, .row_count = 1}};
    for (size_t i = 0; i < 3; i++)
        if (hg_tablemsg_encode(&replies[i], arena, &again))
            must_be_a_reply(again, table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t limits[] = {65536, 1024, 8192, 1u << 20};
    if (size < 10 || size > INPUT_MAX)
        return 0;
    enum hg_api api = data[0] & 1 ? HG_API_HBASE : HG_API_TABLE;
    size_t key_len = data[9] < size - 10 ? data[9] : size - 10;
    size_t body_len = size - 10 - key_len;
    uint8_t *body = malloc(body_len ? body_len : 1);
    MUST(body);
    memcpy(body, data + 10 + key_len, body_len);
    struct hg_arena arena;
    hg_arena_init(&arena, limits[data[0] >> 1 & 3]);
    run_request(api, hg_span(data + 1, 8), hg_span(data + 10, key_len), hg_span(body, body_len),
                &arena);
    hg_arena_reset(&arena);
    run_row(api, hg_span(body, body_len), &arena);
    hg_arena_fini(&arena);
    free(body);
    return 0;
}
