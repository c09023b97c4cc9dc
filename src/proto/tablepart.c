// tablepart - the parts of TableAPI and HBase requests, checked one by one
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/tablepart.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/status.h"

#define BIT(name) (1u << HG_TABLEFIELD_##name)

bool hg_tablepart_refuse(struct hg_tablepart *part, const char *why)
{
    part->status = HG_STATUS_EINVAL;
    part->why = why;
    return false;
}

bool hg_tablepart_short(struct hg_tablepart *part)
{
    part->status = HG_STATUS_E2BIG;
    part->why = "the request unfolds to more memory than one request may take";
    return false;
}

bool hg_tablepart_in_item(struct hg_tablepart *part, size_t index)
{
    if (part->status != HG_STATUS_EINVAL)
        return false;
    int len = snprintf(NULL, 0, "items[%zu]: %s", index, part->why);
    char *text = hg_arena_take(part->arena, (size_t)len + 1);
    if (text != NULL) {
        snprintf(text, (size_t)len + 1, "items[%zu]: %s", index, part->why);
        part->why = text;
    }
    return false;
}

unsigned hg_tablefields_of(enum hg_op op)
{
    switch (op) {
    case HG_OP_TABLE_GET:
        return BIT(SELECT);
    case HG_OP_TABLE_INSERT:
    case HG_OP_TABLE_UPDATE:
    case HG_OP_TABLE_INSERT_OR_UPDATE:
    case HG_OP_TABLE_REPLACE:
        return BIT(ENTITY);
    case HG_OP_TABLE_INCREMENT:
    case HG_OP_TABLE_APPEND:
        return BIT(ENTITY) | BIT(RETURN_ENTITY);
    case HG_OP_TABLE_QUERY:
    case HG_OP_TABLE_QUERY_START:
        return BIT(QUERY);
    case HG_OP_TABLE_BATCH:
        return BIT(ITEMS) | BIT(ATOMIC);
    case HG_OP_HBASE_HYBRID:
        return BIT(ITEMS);
    case HG_OP_TABLE_QUERY_NEXT:
    case HG_OP_TABLE_QUERY_END:
    case HG_OP_HBASE_SCAN_NEXT:
    case HG_OP_HBASE_SCAN_END:
        return BIT(SESSION);
    case HG_OP_HBASE_PUT:
    case HG_OP_HBASE_APPEND:
        return BIT(CELLS);
    case HG_OP_HBASE_INCREMENT:
        return BIT(COUNTERS);
    case HG_OP_HBASE_DELETE:
        return BIT(DELETIONS);
    case HG_OP_HBASE_GET:
        return BIT(READ);
    case HG_OP_HBASE_SCAN:
        return BIT(READ) | BIT(SCAN);
    case HG_OP_HBASE_CHECK_AND_PUT:
        return BIT(CELLS) | BIT(CHECK);
    case HG_OP_HBASE_CHECK_AND_DELETE:
        return BIT(DELETIONS) | BIT(CHECK);
    default: /* TABLE_DELETE reads nothing */
        return 0;
    }
}

bool hg_tablefields_row(enum hg_op op)
{
    return op >= HG_OPS_CLASSIC &&
           (hg_tablefields_of(op) & (BIT(QUERY) | BIT(ITEMS) | BIT(SESSION) | BIT(SCAN))) == 0;
}

bool hg_tablepart_fields(struct hg_tablepart *part, enum hg_op op, unsigned present)
{
    static const char *const texts[] = {
        [HG_TABLEFIELD_ENTITY] = "the operation takes no 'entity': INSERT, UPDATE, "
                                 "INSERT_OR_UPDATE, REPLACE, INCREMENT and APPEND do",
        [HG_TABLEFIELD_SELECT] = "the operation takes no 'select': GET does, and 'query'",
        [HG_TABLEFIELD_RETURN_ENTITY] =
            "the operation takes no 'return_entity': INCREMENT and APPEND do",
        [HG_TABLEFIELD_QUERY] = "the operation takes no 'query': QUERY and QUERY_START do",
        [HG_TABLEFIELD_ITEMS] = "the operation takes no 'items': BATCH and HYBRID do",
        [HG_TABLEFIELD_ATOMIC] = "the operation takes no 'atomic': BATCH does",
        [HG_TABLEFIELD_SESSION] = "the operation takes no 'session': QUERY_NEXT, QUERY_END, "
                                  "SCAN_NEXT and SCAN_END do",
        [HG_TABLEFIELD_CELLS] = "the operation takes no 'cells': PUT, APPEND and CHECK_AND_PUT do",
        [HG_TABLEFIELD_COUNTERS] = "the operation takes no 'counters': INCREMENT does",
        [HG_TABLEFIELD_DELETIONS] =
            "the operation takes no 'deletions': DELETE and CHECK_AND_DELETE do",
        [HG_TABLEFIELD_READ] = "the operation takes no 'read': GET and SCAN do",
        [HG_TABLEFIELD_SCAN] = "the operation takes no 'scan': SCAN does",
        [HG_TABLEFIELD_CHECK] =
            "the operation takes no 'check': CHECK_AND_PUT and CHECK_AND_DELETE do",
    };
    unsigned wrong = present & ~hg_tablefields_of(op);
    return wrong == 0 || hg_tablepart_refuse(part, texts[__builtin_ctz(wrong)]);
}

bool hg_tablepart_row(struct hg_tablepart *part, ProtobufCBinaryData bytes, struct hg_span *ret)
{
    if (bytes.len == 0)
        return hg_tablepart_refuse(part, "'row' is empty: a row key has at least 1 byte");
    if (bytes.len > HG_TABLE_KEY_MAX - part->table.len)
        return hg_tablepart_refuse(
            part, "'row' is too long: table name and row key together have at most 249 bytes");
    *ret = hg_tablepb_span(bytes);
    return true;
}

bool hg_tablepart_bound(struct hg_tablepart *part, ProtobufCBinaryData bytes, struct hg_span *ret)
{
    if (bytes.len > HG_TABLE_KEY_MAX - part->table.len)
        return hg_tablepart_refuse(part, "an end of the range is too long: table name and row key "
                                         "together have at most 249 bytes");
    *ret = hg_tablepb_span(bytes);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return hg_tablepb_order(*(const struct hg_span *)a, *(const struct hg_span *)b);
}

bool hg_tablepart_names(struct hg_tablepart *part, size_t count, const ProtobufCBinaryData *list,
                        size_t least, const char *why, struct hg_names *ret)
{
    if (count > HG_TABLE_NAMES_MAX)
        return hg_tablepart_refuse(part, "too many names: a list of columns has at most 1000");
    struct hg_span *names = hg_arena_array(part->arena, count, sizeof *names);
    if (names == NULL)
        return hg_tablepart_short(part);
    for (size_t i = 0; i < count; i++) {
        if (list[i].len < least || list[i].len > HG_TABLE_COLUMN_MAX)
            return hg_tablepart_refuse(part, why);
        names[i] = hg_tablepb_span(list[i]);
    }
    qsort(names, count, sizeof *names, compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !hg_span_equal(names[kept - 1], names[i]))
            names[kept++] = names[i];
    *ret = (struct hg_names){names, kept};
    return true;
}

static int compare_columns(const void *a, const void *b)
{
    return hg_tablepb_order(((const struct hg_column *)a)->name,
                            ((const struct hg_column *)b)->name);
}

bool hg_tablepart_entity(struct hg_tablepart *part, const HG_PB(Entity) * entity,
                         struct hg_entity *ret)
{
    size_t count = entity == NULL ? 0 : entity->n_columns;
    struct hg_column *columns = hg_arena_array(part->arena, count, sizeof *columns);
    if (columns == NULL)
        return hg_tablepart_short(part);
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        const HG_PB(Column) *column = entity->columns[i];
        if (column->name.len < 1 || column->name.len > HG_TABLE_COLUMN_MAX)
            return hg_tablepart_refuse(part, "a column's name of 'entity' has 1 to 250 bytes");
        columns[i].name = hg_tablepb_span(column->name);
        columns[i].value = hg_tablepb_value(column->value);
        sorted = sorted && (i == 0 || compare_columns(&columns[i - 1], &columns[i]) <= 0);
    }
    if (!sorted)
        qsort(columns, count, sizeof *columns, compare_columns);
    for (size_t i = 1; i < count; i++)
        if (hg_span_equal(columns[i - 1].name, columns[i].name))
            return hg_tablepart_refuse(part, "'entity' names a column twice: each name once");
    *ret = (struct hg_entity){columns, count};
    return true;
}
