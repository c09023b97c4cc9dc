// tablehelp - TableAPI and HBase requests for tests, written as literals and packed by protobuf-c
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TESTS_UNIT_TABLEHELP_H
#define HG_TESTS_UNIT_TABLEHELP_H

#include <stdlib.h>
#include <string.h>

#include "proto/table.pb-c.h"
#include "base/span.h"

#define ARENA_BYTES (1 << 20)
#include "arenahelp.h"

#define PB(type) Headgate__Table__V1__##type
/* A message by its type and its name in function names, with these fields. */
#define MSG(type, lower, ...)                                                                      \
    (&(PB(type)){.base = PROTOBUF_C_MESSAGE_INIT(&headgate__table__v1__##lower##__descriptor),     \
                 __VA_ARGS__})
#define B(text)                                                                                    \
    {                                                                                              \
        sizeof(text) - 1, (uint8_t *)(uintptr_t)(text)                                             \
    }
#define BYTES(text) ((ProtobufCBinaryData)B(text))
/* .n_field and .field of a repeated message, or of repeated bytes. */
#define LIST(field, type, ...)                                                                     \
    .n_##field = sizeof((PB(type) *[]){__VA_ARGS__}) / sizeof(void *), .field = (PB(type) *[])     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NAMES(field, ...)                                                                          \
    .n_##field = sizeof((ProtobufCBinaryData[]){__VA_ARGS__}) / sizeof(ProtobufCBinaryData),       \
    .field = (ProtobufCBinaryData[])                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define TABLE(...)  MSG(TableRequest, table_request, __VA_ARGS__)
#define HBASE(...)  MSG(HBaseRequest, hbase_request, __VA_ARGS__)
#define ENTITY(...) MSG(Entity, entity, LIST(columns, Column, __VA_ARGS__))
#define COLUMN(called, ...)                                                                        \
    MSG(Column, column, .name = B(called), .value = MSG(Value, value, __VA_ARGS__))
#define INTEGER(n) .kind_case = HEADGATE__TABLE__V1__VALUE__KIND_INTEGER, .integer = (n)
#define REAL(x)    .kind_case = HEADGATE__TABLE__V1__VALUE__KIND_REAL, .real = (x)
#define RAW(text)  .kind_case = HEADGATE__TABLE__V1__VALUE__KIND_BYTES, .bytes = B(text)
#define NOTHING    .kind_case = HEADGATE__TABLE__V1__VALUE__KIND__NOT_SET
#define VALUE(...) MSG(Value, value, __VA_ARGS__)
#define QUERY(...) MSG(Query, query, __VA_ARGS__)
#define RANGE(...) MSG(Range, range, __VA_ARGS__)
#define ITEM(...)  MSG(TableItem, table_item, __VA_ARGS__)
#define NODE(node, ...)                                                                            \
    MSG(FilterNode, filter_node, .kind = HEADGATE__TABLE__V1__FILTER_NODE__KIND__##node,           \
        __VA_ARGS__)
#define FILTER(...)      MSG(Filter, filter, LIST(nodes, FilterNode, __VA_ARGS__))
#define CELL(f, q, ...)  MSG(Cell, cell, .family = B(f), .qualifier = B(q), __VA_ARGS__)
#define CELL_AT(ms)      .at_case = HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP, .timestamp = (ms)
#define COUNTER(f, q, n) MSG(Counter, counter, .family = B(f), .qualifier = B(q), .amount = (n))
#define DELETION(what, ...)                                                                        \
    MSG(Deletion, deletion, .kind = HEADGATE__TABLE__V1__DELETION__KIND__##what, __VA_ARGS__)
#define DELETION_AT(ms) .at_case = HEADGATE__TABLE__V1__DELETION__AT_TIMESTAMP, .timestamp = (ms)
#define READ(...)       MSG(Read, read, __VA_ARGS__)
#define FROM(ms)        .lower_case = HEADGATE__TABLE__V1__READ__LOWER_MIN_TIMESTAMP, .min_timestamp = (ms)
#define UNTIL(ms)                                                                                  \
    .upper_case = HEADGATE__TABLE__V1__READ__UPPER_MAX_TIMESTAMP, .max_timestamp = (ms)
#define FAMILY(f, ...)   MSG(FamilyColumns, family_columns, .family = B(f), __VA_ARGS__)
#define SCAN(...)        MSG(Scan, scan, __VA_ARGS__)
#define CHECK(f, q, ...) MSG(Check, check, .family = B(f), .qualifier = B(q), __VA_ARGS__)
#define EXPECTED(text)   .expected_case = HEADGATE__TABLE__V1__CHECK__EXPECTED_VALUE, .value = B(text)
#define HITEM(...)       MSG(HBaseItem, hbase_item, __VA_ARGS__)
#define OP(name)         .op = HEADGATE__TABLE__V1__OPERATOR__##name

/* Memory of exactly that size, so that a read past it is found; free(span.at). */
static inline struct hg_span tablehelp_pack(const void *message)
{
    const ProtobufCMessage *base = message;
    size_t len = protobuf_c_message_get_packed_size(base);
    uint8_t *at = malloc(len ? len : 1);
    if (at == NULL)
        abort();
    protobuf_c_message_pack(base, at);
    return hg_span(at, len);
}

#endif
