// rowwire - columns and cells in protobuf's bytes, without messages in between
// SPDX-License-Identifier: BSD-3-Clause
//
// Rows are read and written by every operation, and a reply carries them: here they go straight
// between our structs and the bytes, a tenth of the work that generated messages take. The bytes
// are those that protobuf-c writes for proto/table.proto, and tests compare the two.
//
// The reader takes what any writer of protobuf makes of these messages, fields in any order, and
// nothing else: a field that is not known, or is there twice, would be lost when the row is written
// back, so it is refused. Pure.
#ifndef HG_PROTO_ROWWIRE_H
#define HG_PROTO_ROWWIRE_H

#include "base/attr.h"
#include "proto/tablemsg.h"

/* The byte in front of a field of a number up to 15. */
#define HG_ROWWIRE_VARINT(field) ((uint8_t)((field) << 3))
#define HG_ROWWIRE_FIXED(field)  ((uint8_t)((field) << 3 | 1))
#define HG_ROWWIRE_BYTES(field)  ((uint8_t)((field) << 3 | 2))

static inline size_t hg_rowwire_varint_size(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

static inline uint8_t *hg_rowwire_put_varint(uint8_t *at, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* A field of so many bytes: tag, length and content. */
static inline size_t hg_rowwire_field_size(size_t len)
{
    return 1 + hg_rowwire_varint_size(len) + len;
}

static inline uint8_t *hg_rowwire_put_head(uint8_t *at, unsigned field, size_t len)
{
    *at++ = HG_ROWWIRE_BYTES(field);
    return hg_rowwire_put_varint(at, len);
}

/* Empty bytes are left out, as proto3 does. */
static inline size_t hg_rowwire_bytes_size(struct hg_span bytes)
{
    return bytes.len > 0 ? hg_rowwire_field_size(bytes.len) : 0;
}

static inline uint8_t *hg_rowwire_put_bytes(uint8_t *at, unsigned field, struct hg_span bytes)
{
    if (bytes.len == 0)
        return at;
    at = hg_rowwire_put_head(at, field, bytes.len);
    memcpy(at, bytes.at, bytes.len);
    return at + bytes.len;
}

/* Numbers and truth values that are 0 are left out, too. */
static inline size_t hg_rowwire_number_size(uint64_t value)
{
    return value > 0 ? 1 + hg_rowwire_varint_size(value) : 0;
}

static inline uint8_t *hg_rowwire_put_number(uint8_t *at, unsigned field, uint64_t value)
{
    if (value == 0)
        return at;
    *at++ = HG_ROWWIRE_VARINT(field);
    return hg_rowwire_put_varint(at, value);
}

/* Columns as the field 1 of their message: an Entity's content, or a RowDocument's. */
size_t hg_rowwire_columns_size(const struct hg_entity *entity);
uint8_t *hg_rowwire_put_columns(uint8_t *at, const struct hg_entity *entity);
/* Cells as that field (up to 15) of their message, always with their time. */
size_t hg_rowwire_cells_size(const struct hg_cells *cells);
uint8_t *hg_rowwire_put_cells(uint8_t *at, unsigned field, const struct hg_cells *cells);

/* How many fields of that number a message has; false if it has others, or is cut. */
HG_MUST_USE bool hg_rowwire_count(struct hg_span message, unsigned field, size_t *ret_count);
/* Decode the next of a message that hg_rowwire_count has counted, and move *message behind it. */
HG_MUST_USE bool hg_rowwire_column(struct hg_span *message, struct hg_column *ret);
HG_MUST_USE bool hg_rowwire_cell(struct hg_span *message, struct hg_cell *ret);

#endif
