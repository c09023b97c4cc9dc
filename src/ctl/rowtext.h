// rowtext - rows, columns and values as an operator types and reads them
// SPDX-License-Identifier: BSD-3-Clause
//
// \xNN in a key, name or text stands for a byte, any other backslash for itself; what is printed is
// escaped so that typing it again means the same. In JSON a text is a string as it is if it is
// UTF-8 without backslashes and control characters, and escaped like that otherwise. Messages are
// built in the arena, which is unbounded: the program ends when there is no memory.
#ifndef HG_CTL_ROWTEXT_H
#define HG_CTL_ROWTEXT_H

#include <jansson.h>

#include "base/arena.h"
#include "ctl/ctl.h"
#include "proto/table.pb-c.h"

/* The messages of proto/table.proto, under names that can be read. */
typedef Headgate__Table__V1__Cell hg_pb_cell;
typedef Headgate__Table__V1__Check hg_pb_check;
typedef Headgate__Table__V1__Column hg_pb_column;
typedef Headgate__Table__V1__Counter hg_pb_counter;
typedef Headgate__Table__V1__Deletion hg_pb_deletion;
typedef Headgate__Table__V1__Entity hg_pb_entity;
typedef Headgate__Table__V1__FamilyColumns hg_pb_family_columns;
typedef Headgate__Table__V1__Filter hg_pb_filter;
typedef Headgate__Table__V1__FilterNode hg_pb_filter_node;
typedef Headgate__Table__V1__FilterNode__Kind hg_pb_filter_kind;
typedef Headgate__Table__V1__HBaseItem hg_pb_hbase_item;
typedef Headgate__Table__V1__HBaseItemReply hg_pb_hbase_item_reply;
typedef Headgate__Table__V1__HBaseReply hg_pb_hbase_reply;
typedef Headgate__Table__V1__HBaseRequest hg_pb_hbase_request;
typedef Headgate__Table__V1__HBaseRow hg_pb_hbase_row;
typedef Headgate__Table__V1__Operator hg_pb_operator;
typedef Headgate__Table__V1__Query hg_pb_query;
typedef Headgate__Table__V1__Range hg_pb_range;
typedef Headgate__Table__V1__Read hg_pb_read;
typedef Headgate__Table__V1__Scan hg_pb_scan;
typedef Headgate__Table__V1__TableItem hg_pb_table_item;
typedef Headgate__Table__V1__TableItemReply hg_pb_table_item_reply;
typedef Headgate__Table__V1__TableReply hg_pb_table_reply;
typedef Headgate__Table__V1__TableRequest hg_pb_table_request;
typedef Headgate__Table__V1__TableRow hg_pb_table_row;
typedef Headgate__Table__V1__Value hg_pb_value;

/* A message, empty, of protobuf-c's descriptor. */
void *hg_pb_new(struct hg_arena *arena, const ProtobufCMessageDescriptor *descriptor);
#define HG_PB_NEW(arena, name) hg_pb_new(arena, &headgate__table__v1__##name##__descriptor)
/* Appends to a repeated field of messages: `list` is the address of its pointer. */
void hg_pb_append(struct hg_arena *arena, void *list, size_t *count, void *message);
/* The same for a repeated field of bytes. */
void hg_pb_append_bytes(struct hg_arena *arena, ProtobufCBinaryData **list, size_t *count,
                        ProtobufCBinaryData bytes);

/* Text of a command line or of JSON, as bytes. */
ProtobufCBinaryData hg_rowtext_bytes(struct hg_arena *arena, const char *text, size_t len);
ProtobufCBinaryData hg_rowtext_of(struct hg_arena *arena, const char *text);

/* "NAME=TEXT", "NAME:=NUMBER", "NAME:=null", "NAME@=FILE". An exit code. */
HG_MUST_USE int hg_rowtext_column(struct hg_arena *arena, const char *arg, hg_pb_column **ret);
/* "FAMILY:QUALIFIER=TEXT", "FAMILY:QUALIFIER@=FILE". An exit code. */
HG_MUST_USE int hg_rowtext_cell(struct hg_arena *arena, const char *arg, hg_pb_cell **ret);
/* "FAMILY:QUALIFIER=N". An exit code. */
HG_MUST_USE int hg_rowtext_counter(struct hg_arena *arena, const char *arg, hg_pb_counter **ret);
/* "FAMILY" or "FAMILY:QUALIFIER" of `len` bytes; false: there is no colon, *ret_qualifier is as it
   was. */
bool hg_rowtext_split(struct hg_arena *arena, const char *text, size_t len,
                      ProtobufCBinaryData *ret_family, ProtobufCBinaryData *ret_qualifier);

/* "COLUMN OPERATOR VALUE" as a filter of whole rows; with `cells`, COLUMN is FAMILY:QUALIFIER and
   VALUE text. An exit code. */
HG_MUST_USE int hg_rowtext_condition(struct hg_arena *arena, const char *arg, bool cells,
                                     hg_pb_filter_node **ret);
/* "=", "!=", "<", "<=", ">", ">=" at the start of text: its length, or 0. */
size_t hg_rowtext_operator(const char *text, hg_pb_operator *ret);

/* From a member of a JSON object. An exit code; `where` names it in a message. */
HG_MUST_USE int hg_rowtext_json_value(struct hg_arena *arena, const json_t *json, const char *where,
                                      hg_pb_value **ret);

/* A number as text that means the same number when it is typed again; malloc'd. */
char *hg_rowtext_number(const hg_pb_value *value);
/* "integer", "real", "bytes" or "null". */
const char *hg_rowtext_kind(const hg_pb_value *value);
json_t *hg_rowtext_json(const hg_pb_value *value);
json_t *hg_rowtext_json_bytes(ProtobufCBinaryData bytes);

#endif
