// rowwire - columns and cells in protobuf's bytes, without messages in between
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/rowwire.h"

#include <endian.h>

/* Numbers of the fields in proto/table.proto. */
enum { VALUE_INTEGER = 1, VALUE_REAL = 2, VALUE_BYTES = 3 };
enum { COLUMN_NAME = 1, COLUMN_VALUE = 2 };
enum { CELL_FAMILY = 1, CELL_QUALIFIER = 2, CELL_TIMESTAMP = 3, CELL_VALUE = 4 };
enum { ENTITY_COLUMNS = 1 };

/* ---- writing ---- */

static size_t value_size(const struct hg_value *value)
{
    switch (value->kind) {
    case HG_VALUE_INTEGER:
        return 1 + hg_rowwire_varint_size((uint64_t)value->integer);
    case HG_VALUE_REAL:
        return 1 + sizeof value->real;
    case HG_VALUE_BYTES:
        return hg_rowwire_field_size(value->bytes.len);
    default:
        return 0;
    }
}

static uint8_t *put_value(uint8_t *at, const struct hg_value *value)
{
    uint64_t bits;
    switch (value->kind) {
    case HG_VALUE_INTEGER:
        *at++ = HG_ROWWIRE_VARINT(VALUE_INTEGER);
        return hg_rowwire_put_varint(at, (uint64_t)value->integer);
    case HG_VALUE_REAL:
        *at++ = HG_ROWWIRE_FIXED(VALUE_REAL);
        memcpy(&bits, &value->real, sizeof bits);
        bits = htole64(bits);
        memcpy(at, &bits, sizeof bits);
        return at + sizeof bits;
    case HG_VALUE_BYTES:
        at = hg_rowwire_put_head(at, VALUE_BYTES, value->bytes.len);
        if (value->bytes.len > 0)
            memcpy(at, value->bytes.at, value->bytes.len);
        return at + value->bytes.len;
    default:
        return at;
    }
}

static size_t column_size(const struct hg_column *column)
{
    size_t size = hg_rowwire_bytes_size(column->name);
    if (column->value.kind != HG_VALUE_NULL)
        size += hg_rowwire_field_size(value_size(&column->value));
    return size;
}

size_t hg_rowwire_columns_size(const struct hg_entity *entity)
{
    size_t size = 0;
    for (size_t i = 0; i < entity->count; i++)
        size += hg_rowwire_field_size(column_size(&entity->columns[i]));
    return size;
}

uint8_t *hg_rowwire_put_columns(uint8_t *at, const struct hg_entity *entity)
{
    for (size_t i = 0; i < entity->count; i++) {
        const struct hg_column *column = &entity->columns[i];
        at = hg_rowwire_put_head(at, ENTITY_COLUMNS, column_size(column));
        at = hg_rowwire_put_bytes(at, COLUMN_NAME, column->name);
        if (column->value.kind == HG_VALUE_NULL)
            continue;
        at = hg_rowwire_put_head(at, COLUMN_VALUE, value_size(&column->value));
        at = put_value(at, &column->value);
    }
    return at;
}

static size_t cell_size(const struct hg_cell *cell)
{
    return hg_rowwire_bytes_size(cell->family) + hg_rowwire_bytes_size(cell->qualifier) + 1 +
           hg_rowwire_varint_size((uint64_t)cell->at_ms) + hg_rowwire_bytes_size(cell->value);
}

size_t hg_rowwire_cells_size(const struct hg_cells *cells)
{
    size_t size = 0;
    for (size_t i = 0; i < cells->count; i++)
        size += hg_rowwire_field_size(cell_size(&cells->list[i]));
    return size;
}

uint8_t *hg_rowwire_put_cells(uint8_t *at, unsigned field, const struct hg_cells *cells)
{
    for (size_t i = 0; i < cells->count; i++) {
        const struct hg_cell *cell = &cells->list[i];
        at = hg_rowwire_put_head(at, field, cell_size(cell));
        at = hg_rowwire_put_bytes(at, CELL_FAMILY, cell->family);
        at = hg_rowwire_put_bytes(at, CELL_QUALIFIER, cell->qualifier);
        *at++ = HG_ROWWIRE_VARINT(CELL_TIMESTAMP);
        at = hg_rowwire_put_varint(at, (uint64_t)cell->at_ms);
        at = hg_rowwire_put_bytes(at, CELL_VALUE, cell->value);
    }
    return at;
}

/* ---- reading ---- */

static bool take_long_varint(struct hg_span *from, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 10 && i < from->len; i++) {
        uint8_t byte = from->at[i];
        if (i == 9 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *from = hg_span(from->at + i + 1, from->len - i - 1);
            *ret = value;
            return true;
        }
    }
    return false;
}

static inline bool take_varint(struct hg_span *from, uint64_t *ret)
{
    if (from->len == 0 || from->at[0] > 0x7f)
        return take_long_varint(from, ret);
    *ret = from->at[0];
    *from = hg_span(from->at + 1, from->len - 1);
    return true;
}

static inline uint8_t take_tag(struct hg_span *from)
{
    uint8_t tag = from->at[0];
    *from = hg_span(from->at + 1, from->len - 1);
    return tag;
}

static inline bool take_bytes(struct hg_span *from, struct hg_span *ret)
{
    uint64_t len;
    if (!take_varint(from, &len) || len > from->len)
        return false;
    *ret = hg_span(from->at, (size_t)len);
    *from = hg_span(from->at + len, from->len - (size_t)len);
    return true;
}

bool hg_rowwire_count(struct hg_span message, unsigned field, size_t *ret_count)
{
    size_t count = 0;
    struct hg_span content;
    for (; message.len > 0; count++)
        if (take_tag(&message) != HG_ROWWIRE_BYTES(field) || !take_bytes(&message, &content))
            return false;
    *ret_count = count;
    return true;
}

static inline bool take_value(struct hg_span from, struct hg_value *ret)
{
    uint64_t bits;
    if (from.len == 0)
        return true;
    switch (take_tag(&from)) {
    case HG_ROWWIRE_VARINT(VALUE_INTEGER):
        if (!take_varint(&from, &bits))
            return false;
        *ret = (struct hg_value){.kind = HG_VALUE_INTEGER, .integer = (int64_t)bits};
        break;
    case HG_ROWWIRE_FIXED(VALUE_REAL):
        if (from.len < sizeof bits)
            return false;
        memcpy(&bits, from.at, sizeof bits);
        bits = le64toh(bits);
        ret->kind = HG_VALUE_REAL;
        memcpy(&ret->real, &bits, sizeof bits);
        from.len -= sizeof bits;
        break;
    case HG_ROWWIRE_BYTES(VALUE_BYTES):
        ret->kind = HG_VALUE_BYTES;
        if (!take_bytes(&from, &ret->bytes))
            return false;
        break;
    default:
        return false;
    }
    return from.len == 0;
}

/* The content of the next field. */
static inline bool enter(struct hg_span *message, struct hg_span *ret)
{
    take_tag(message);
    return take_bytes(message, ret);
}

/* Not seen before in its message? */
static inline bool first(unsigned *seen, unsigned field)
{
    bool is_first = (*seen & 1u << field) == 0;
    *seen |= 1u << field;
    return is_first;
}

bool hg_rowwire_column(struct hg_span *message, struct hg_column *ret)
{
    struct hg_span from, content;
    unsigned seen = 0;
    *ret = (struct hg_column){.name = HG_SPAN_LIT("")};
    if (!enter(message, &from))
        return false;
    while (from.len > 0) {
        uint8_t tag = take_tag(&from);
        if (!first(&seen, tag >> 3) || !take_bytes(&from, &content))
            return false;
        if (tag == HG_ROWWIRE_BYTES(COLUMN_NAME))
            ret->name = content;
        else if (tag != HG_ROWWIRE_BYTES(COLUMN_VALUE) || !take_value(content, &ret->value))
            return false;
    }
    return true;
}

bool hg_rowwire_cell(struct hg_span *message, struct hg_cell *ret)
{
    struct hg_span from, content;
    unsigned seen = 0;
    *ret = (struct hg_cell){
        .family = HG_SPAN_LIT(""), .qualifier = HG_SPAN_LIT(""), .value = HG_SPAN_LIT("")};
    if (!enter(message, &from))
        return false;
    while (from.len > 0) {
        uint8_t tag = take_tag(&from);
        uint64_t at_ms;
        if (!first(&seen, tag >> 3))
            return false;
        if (tag == HG_ROWWIRE_VARINT(CELL_TIMESTAMP)) {
            if (!take_varint(&from, &at_ms))
                return false;
            ret->at_ms = (int64_t)at_ms;
            ret->dated = true;
            continue;
        }
        if (!take_bytes(&from, &content))
            return false;
        if (tag == HG_ROWWIRE_BYTES(CELL_FAMILY))
            ret->family = content;
        else if (tag == HG_ROWWIRE_BYTES(CELL_QUALIFIER))
            ret->qualifier = content;
        else if (tag == HG_ROWWIRE_BYTES(CELL_VALUE))
            ret->value = content;
        else
            return false;
    }
    return true;
}
