// rowbody - the bodies of TableAPI and HBase operations, as a load needs them
// SPDX-License-Identifier: BSD-3-Clause
#include "load/rowbody.h"

/* Kinds of fields on the wire. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

#define TAG(field, kind) ((uint8_t)((field) << 3 | (kind)))

/* ---- writing ---- */

static uint8_t *put_varint(uint8_t *to, uint64_t n)
{
    while (n >= 0x80) {
        *to++ = (uint8_t)(n | 0x80);
        n >>= 7;
    }
    *to++ = (uint8_t)n;
    return to;
}

static size_t varint_bytes(uint64_t n)
{
    size_t bytes = 1;
    while (n >= 0x80) {
        bytes++;
        n >>= 7;
    }
    return bytes;
}

/* A field of bytes with `len` bytes to follow, and how many that makes. */
static uint8_t *put_field(uint8_t *to, unsigned field, size_t len)
{
    *to++ = TAG(field, BYTES);
    return put_varint(to, len);
}

static size_t field_bytes(size_t len)
{
    return 1 + varint_bytes(len) + len;
}

/* TableRequest {entity {columns {name "v", value {bytes}}}} */
static size_t put_columns(const struct hg_gen_value *value, uint8_t *to)
{
    static const uint8_t name[] = {TAG(1, BYTES), 1, 'v'};
    size_t bytes = field_bytes(value->len);              /* of Value.bytes */
    size_t column = sizeof name + field_bytes(bytes);    /* of Column */
    uint8_t *at = put_field(to, 1, field_bytes(column)); /* TableRequest.entity */
    at = put_field(at, 1, column);                       /* Entity.columns */
    memcpy(at, name, sizeof name);
    at = put_field(at + sizeof name, 2, bytes); /* Column.value */
    at = put_field(at, 3, value->len);          /* Value.bytes */
    hg_gen_value_write(value, at);
    return (size_t)(at - to) + value->len;
}

/* HBaseRequest {cells {family "f", qualifier "v", value}} */
static size_t put_cells(const struct hg_gen_value *value, uint8_t *to)
{
    static const uint8_t names[] = {TAG(1, BYTES), 1, 'f', TAG(2, BYTES), 1, 'v'};
    uint8_t *at = put_field(to, 1, sizeof names + field_bytes(value->len));
    memcpy(at, names, sizeof names);
    at = put_field(at + sizeof names, 4, value->len);
    hg_gen_value_write(value, at);
    return (size_t)(at - to) + value->len;
}

/* {entity {columns {name "n", value {integer 1}}}, return_entity true} */
static const uint8_t table_increment[] = {
    TAG(1, BYTES), 9, TAG(1, BYTES),  7, TAG(1, BYTES),  1, 'n',
    TAG(2, BYTES), 2, TAG(1, VARINT), 1, TAG(3, VARINT), 1,
};

/* {counters {family "f", qualifier "n", amount 1}} */
static const uint8_t hbase_increment[] = {
    TAG(2, BYTES), 8, TAG(1, BYTES), 1, 'f', TAG(2, BYTES), 1, 'n', TAG(3, VARINT), 1,
};

/* {deletions {kind ROW}} */
static const uint8_t hbase_delete[] = {TAG(3, BYTES), 0};

static size_t put(uint8_t *to, const uint8_t *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return len;
}

size_t hg_rowbody_encode(enum hg_load_op op, const struct hg_gen_value *value, uint8_t *to)
{
    switch (op) {
    case HG_LOAD_TABLE_INSERT:
    case HG_LOAD_TABLE_UPDATE:
    case HG_LOAD_TABLE_INSERT_OR_UPDATE:
    case HG_LOAD_TABLE_REPLACE:
        return put_columns(value, to);
    case HG_LOAD_TABLE_INCREMENT:
        return put(to, table_increment, sizeof table_increment);
    case HG_LOAD_HBASE_PUT:
        return put_cells(value, to);
    case HG_LOAD_HBASE_INCREMENT:
        return put(to, hbase_increment, sizeof hbase_increment);
    case HG_LOAD_HBASE_DELETE:
        return put(to, hbase_delete, sizeof hbase_delete);
    default: /* what a get needs is in the key */
        return 0;
    }
}

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    bool bad;
};

struct field {
    unsigned number, kind;
    uint64_t integer;
    const uint8_t *at;
    size_t len;
};

static uint64_t get_varint(struct reader *reader)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        n |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return n;
        }
    }
    reader->bad = true;
    return 0;
}

/* The next field; false at the end, or where it is malformed. */
static bool next(struct reader *reader, struct field *field)
{
    if (reader->bad || reader->at == reader->end) {
        return false;
    }
    uint64_t tag = get_varint(reader);
    *field = (struct field){.number = (unsigned)(tag >> 3), .kind = (unsigned)(tag & 7)};
    switch (field->kind) {
    case VARINT:
        field->integer = get_varint(reader);
        return !reader->bad;
    case BYTES:
        field->integer = get_varint(reader);
        break;
    case FIXED64:
    case FIXED32:
        field->integer = field->kind == FIXED64 ? 8 : 4;
        break;
    default:
        reader->bad = true;
        return false;
    }
    if (reader->bad || field->integer > (uint64_t)(reader->end - reader->at)) {
        reader->bad = true;
        return false;
    }
    field->at = reader->at;
    field->len = (size_t)field->integer;
    reader->at += field->len;
    return true;
}

/* The only field of a message, which must be bytes with this number. */
static bool only(const uint8_t *at, size_t len, unsigned number, struct field *ret)
{
    struct reader reader = {at, at + len, false};
    struct field more;
    return next(&reader, ret) && ret->number == number && ret->kind == BYTES &&
           !next(&reader, &more) && !reader.bad;
}

/* What a column or a cell holds: its name (qualifier), and its value as bytes or as a number. */
struct content {
    struct field name, value;
    bool has_value;
};

static bool read_content(const struct field *part, unsigned name, unsigned value,
                         struct content *ret)
{
    struct reader reader = {part->at, part->at + part->len, false};
    struct field field;
    *ret = (struct content){.has_value = false};
    while (next(&reader, &field)) {
        if (field.number == name) {
            ret->name = field;
        } else if (field.number == value) {
            ret->value = field;
            ret->has_value = true;
        }
    }
    return !reader.bad;
}

static bool is_named(const struct content *content, char name)
{
    return content->name.kind == BYTES && content->name.len == 1 && content->name.at[0] == name;
}

/* TableReply {entity {columns {name, value}}} */
static enum hg_rowbody check_entity(bool counts, const struct hg_gen_value *value,
                                    const uint8_t *at, size_t len)
{
    struct field entity, column, inner;
    struct content content;
    if (!only(at, len, 1, &entity)) {
        return HG_ROWBODY_BAD;
    }
    if (entity.len == 0) {
        return HG_ROWBODY_OTHER; /* a row without columns */
    }
    struct reader columns = {entity.at, entity.at + entity.len, false};
    if (!next(&columns, &column) || column.number != 1 || column.kind != BYTES ||
        !read_content(&column, 1, 2, &content) || !content.has_value ||
        content.value.kind != BYTES) {
        return HG_ROWBODY_BAD;
    }
    struct reader values = {content.value.at, content.value.at + content.value.len, false};
    if (columns.at != columns.end || !next(&values, &inner) ||
        !is_named(&content, counts ? 'n' : 'v')) {
        return HG_ROWBODY_OTHER;
    }
    if (counts) {
        return inner.number == 1 && inner.kind == VARINT ? HG_ROWBODY_RIGHT : HG_ROWBODY_OTHER;
    }
    return inner.number == 3 && inner.kind == BYTES && hg_gen_value_is(value, inner.at, inner.len)
               ? HG_ROWBODY_RIGHT
               : HG_ROWBODY_OTHER;
}

/* HBaseReply {cells {family, qualifier, timestamp, value}} */
static enum hg_rowbody check_cells(bool counts, const struct hg_gen_value *value, const uint8_t *at,
                                   size_t len)
{
    struct field cell;
    struct content content;
    if (!only(at, len, 1, &cell) || !read_content(&cell, 2, 4, &content)) {
        return HG_ROWBODY_BAD;
    }
    if (!is_named(&content, counts ? 'n' : 'v')) {
        return HG_ROWBODY_OTHER;
    }
    size_t bytes = content.has_value ? content.value.len : 0;
    bool right = counts ? bytes == 8 : hg_gen_value_is(value, content.value.at, bytes);
    return right ? HG_ROWBODY_RIGHT : HG_ROWBODY_OTHER;
}

enum hg_rowbody hg_rowbody_decode(enum hg_load_op op, const struct hg_gen_value *value,
                                  const uint8_t *at, size_t len)
{
    switch (op) {
    case HG_LOAD_TABLE_GET:
    case HG_LOAD_HBASE_GET:
        if (len == 0) {
            return HG_ROWBODY_NO_ROW;
        }
        return (op == HG_LOAD_TABLE_GET ? check_entity : check_cells)(false, value, at, len);
    case HG_LOAD_TABLE_INCREMENT:
        return check_entity(true, value, at, len);
    case HG_LOAD_HBASE_INCREMENT:
        return check_cells(true, value, at, len);
    default: /* nothing but the number of affected rows, which is in the extras */
        return len == 0 ? HG_ROWBODY_RIGHT : HG_ROWBODY_BAD;
    }
}
