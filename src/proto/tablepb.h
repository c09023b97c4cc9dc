// tablepb - requests as the structs that the compiler made of proto/table.proto
// SPDX-License-Identifier: BSD-3-Clause
//
// Generated messages are decoded into an arena: nothing is freed one by one, and what the decoder
// keeps for itself (unknown fields, tables of fields) counts against the arena's limit too. Only
// the codecs of this folder see generated structs. Pure.
#ifndef HG_PROTO_TABLEPB_H
#define HG_PROTO_TABLEPB_H

#include "proto/table.pb-c.h"
#include "proto/tablemsg.h"

#define HG_PB(name) Headgate__Table__V1__##name

/* Unpacks into the arena. NULL: the bytes are not such a message, or (*ret_memory is set) the
   arena is out of memory. Spans of the message lie in the arena. */
HG_MUST_USE ProtobufCMessage *hg_tablepb_unpack(const ProtobufCMessageDescriptor *descriptor,
                                                struct hg_span bytes, struct hg_arena *arena,
                                                bool *ret_memory);

/* Never with a null pointer, so that it can be given to memcmp. */
static inline struct hg_span hg_tablepb_span(ProtobufCBinaryData data)
{
    return data.len > 0 ? hg_span(data.data, data.len) : HG_SPAN_LIT("");
}

/* A message that is absent is null, too. */
static inline struct hg_value hg_tablepb_value(const HG_PB(Value) * value)
{
    if (value == NULL)
        return (struct hg_value){.kind = HG_VALUE_NULL};
    switch (value->kind_case) {
    case HEADGATE__TABLE__V1__VALUE__KIND_INTEGER:
        return (struct hg_value){.kind = HG_VALUE_INTEGER, .integer = value->integer};
    case HEADGATE__TABLE__V1__VALUE__KIND_REAL:
        return (struct hg_value){.kind = HG_VALUE_REAL, .real = value->real};
    case HEADGATE__TABLE__V1__VALUE__KIND_BYTES:
        return (struct hg_value){.kind = HG_VALUE_BYTES, .bytes = hg_tablepb_span(value->bytes)};
    default:
        return (struct hg_value){.kind = HG_VALUE_NULL};
    }
}

/* In the order of rows: bytes, a shorter name before a longer one that it begins. <0, 0, >0. */
static inline int hg_tablepb_order(struct hg_span a, struct hg_span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common > 0 ? memcmp(a.at, b.at, common) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
