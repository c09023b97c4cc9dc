// tablemsg - TableAPI and HBase requests, replies and rows as structs
// SPDX-License-Identifier: BSD-3-Clause
//
//   bytes ── hg_tablemsg_decode ──► structs in an arena ── hg_tablemsg_encode ──► bytes
//
// The messages are proto/table.proto; their limits are checked here, in one place, so that nothing
// behind the decoder sees a name that is too long, a batch that is too large or a filter that is
// not well formed. Spans of a decoded message lie in the arena or in the bytes it was decoded from.
// Pure: memory comes from the arena.
#ifndef HG_PROTO_TABLEMSG_H
#define HG_PROTO_TABLEMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/op.h"
#include "base/span.h"

#define HG_TABLE_NAME_MAX     100  /* bytes of a table's name; no zero byte */
#define HG_TABLE_KEY_MAX      249  /* table name and row key together; the stored key has 1 more */
#define HG_TABLE_COLUMN_MAX   250  /* bytes of a column, family or qualifier name */
#define HG_TABLE_ITEMS_MAX    1000 /* of a batch */
#define HG_TABLE_FILTER_NODES 64
#define HG_TABLE_FILTER_DEPTH 8 /* results open at a time */
#define HG_TABLE_EXTRAS_BYTES 8
#define HG_TABLE_NAMES_MAX    1000 /* of a list of columns, families or timestamps */
#define HG_TABLE_ROWS         100  /* of a reply (batch_rows, caching) unless the request says */
#define HG_TABLE_ROWS_MAX     1000 /* more are asked for: this many */

enum hg_value_kind { HG_VALUE_NULL, HG_VALUE_INTEGER, HG_VALUE_REAL, HG_VALUE_BYTES };

struct hg_value {
    enum hg_value_kind kind;
    union {
        int64_t integer;
        double real;
        struct hg_span bytes;
    };
};

struct hg_column {
    struct hg_span name;
    struct hg_value value;
};

/* Columns; within a row sorted by name (bytes), each name once. */
struct hg_entity {
    struct hg_column *columns;
    size_t count;
};

struct hg_cell {
    struct hg_span family, qualifier;
    int64_t at_ms; /* since 1970 */
    bool dated;    /* of a request: at_ms was given (not INT64_MAX, HBase's LATEST_TIMESTAMP);
                      of a stored cell: always */
    struct hg_span value;
};

/* Cells; within a row sorted by family, qualifier (bytes), newest first. */
struct hg_cells {
    struct hg_cell *list;
    size_t count;
};

/* Sorted (bytes), each once. */
struct hg_names {
    struct hg_span *list;
    size_t count;
};

enum hg_operator { HG_EQUAL, HG_NOT_EQUAL, HG_LESS, HG_LESS_EQUAL, HG_GREATER, HG_GREATER_EQUAL };

enum hg_filter_kind {
    HG_FILTER_ALL,
    HG_FILTER_ANY,
    HG_FILTER_PREFIX,
    HG_FILTER_COLUMN_PREFIX,
    HG_FILTER_COLUMN_RANGE,
    HG_FILTER_QUALIFIER,
    HG_FILTER_VALUE,
    HG_FILTER_SINGLE_COLUMN_VALUE,
    HG_FILTER_PAGE,
    HG_FILTER_KEY_ONLY,
    HG_FILTER_FIRST_KEY_ONLY,
    HG_FILTER_TIMESTAMPS,
    HG_FILTER_ROW_RANGE,
    HG_FILTER_KINDS
};

struct hg_filter_node {
    enum hg_filter_kind kind;
    uint32_t operands; /* ALL, ANY: 1 to HG_TABLE_FILTER_DEPTH */
    enum hg_operator op;
    struct hg_span family, qualifier;
    struct hg_value value;
    struct hg_span low, high;
    bool low_exclusive, high_exclusive;
    bool filter_if_missing;
    uint64_t count;
    int64_t *timestamps;
    size_t timestamp_count;
};

/* In postfix and well formed: exactly one result at the end. count 0: no filter. */
struct hg_filter {
    struct hg_filter_node *nodes;
    size_t count;
};

/* Row keys; an empty span is no bound. */
struct hg_range {
    struct hg_span start, end;
    bool start_exclusive, end_exclusive;
};

struct hg_query {
    struct hg_range range;
    struct hg_names select;
    struct hg_filter filter;
    uint32_t limit, offset, batch_rows;
    bool reverse;
};

/* One operation of TableAPI on one row: TABLE_GET to TABLE_APPEND. */
struct hg_table_item {
    enum hg_op op;
    struct hg_span row;
    struct hg_entity entity; /* sorted by name */
    struct hg_names select;
    bool return_entity;
};

struct hg_counter_add {
    struct hg_span family, qualifier;
    int64_t amount;
};

enum hg_deletion_kind {
    HG_DELETION_ROW,
    HG_DELETION_FAMILY,
    HG_DELETION_COLUMNS,
    HG_DELETION_COLUMN,
    HG_DELETION_VERSION
};

struct hg_deletion {
    enum hg_deletion_kind kind;
    struct hg_span family, qualifier;
    int64_t at_ms;
    bool dated;
};

struct hg_family_columns {
    struct hg_span family;
    struct hg_names qualifiers; /* none: all */
};

struct hg_hbase_read {
    struct hg_family_columns *columns; /* sorted, each family once; none: all */
    size_t column_count;
    int64_t min_ms, max_ms; /* [min, max); INT64_MIN and INT64_MAX when not given */
    uint32_t max_versions;  /* at least 1 */
    struct hg_filter filter;
};

struct hg_hbase_scan {
    struct hg_span start, stop;
    bool start_exclusive, stop_inclusive, reversed;
    uint32_t limit, batch, caching;
};

struct hg_hbase_check {
    struct hg_span family, qualifier;
    enum hg_operator op;
    bool has_value;
    struct hg_span value;
};

/* One operation of HBase on one row: HBASE_PUT, DELETE, GET, CHECK_AND_x, APPEND, INCREMENT. */
struct hg_hbase_item {
    enum hg_op op;
    struct hg_span row;
    struct hg_cells cells; /* as sent, not sorted */
    struct hg_counter_add *counters;
    size_t counter_count;
    struct hg_deletion *deletions; /* DELETE, CHECK_AND_DELETE: at least one (none sent: ROW) */
    size_t deletion_count;
    struct hg_hbase_read read;
    struct hg_hbase_check check; /* CHECK_AND_x only */
};

/* A request whose extras, key and body are right. */
struct hg_tablemsg {
    enum hg_op op;
    enum hg_api api;
    struct hg_span table;
    /* Row operations: one item, in `table_items` or `hbase_items` by the API. BATCH and HYBRID: at
       least one. Others: none. */
    struct hg_table_item *table_items;
    struct hg_hbase_item *hbase_items;
    size_t item_count;
    bool atomic;           /* all items of one row */
    struct hg_query query; /* QUERY, QUERY_START */
    struct hg_hbase_scan scan;
    struct hg_hbase_read read; /* of a SCAN */
    uint64_t session;          /* QUERY_NEXT, QUERY_END, SCAN_NEXT, SCAN_END: not 0 */
};

/* The result of one row operation. `status` other than 0 comes with `text`. */
struct hg_row_result {
    uint16_t status;
    uint16_t affected;
    bool found;     /* TableAPI: entity is there (it may have no columns) */
    bool processed; /* CHECK_AND_x */
    struct hg_entity entity;
    struct hg_cells cells;
    struct hg_span text;
};

struct hg_found_row {
    struct hg_span row;
    struct hg_entity entity; /* TableAPI */
    struct hg_cells cells;   /* HBase */
    bool partial;
};

struct hg_table_reply {
    enum hg_op op;
    struct hg_row_result *results; /* one of a row operation, or those of a batch's items */
    size_t result_count;
    struct hg_found_row *rows;
    size_t row_count;
    uint64_t session;
    bool more;
};

/* The operation, table and row of a request by its extras and key alone, before its body is looked
   at. 0, or HG_STATUS_EINVAL (lengths, reserved bytes, names) or HG_STATUS_UNKNOWN_COMMAND (no such
   operation) with *ret_why. The row is empty for operations that have none. */
HG_MUST_USE uint16_t hg_tablemsg_head(enum hg_api api, struct hg_span extras, struct hg_span key,
                                      enum hg_op *ret_op, struct hg_span *ret_table,
                                      struct hg_span *ret_row, const char **ret_why);

/* Decodes the body of a request whose head is right. 0; HG_STATUS_EINVAL (not a message of
   proto/table.proto, or one that the operation does not take) or HG_STATUS_E2BIG (the arena's
   limit) with *ret_why, which names the field; it lies in the arena or is static. */
HG_MUST_USE uint16_t hg_tablemsg_decode(enum hg_op op, struct hg_span table, struct hg_span row,
                                        struct hg_span body, struct hg_arena *arena,
                                        struct hg_tablemsg *ret, const char **ret_why);

/* Bytes of the encoded reply, and the reply itself; *ret lies in the arena. False when memory is
   out. */
HG_MUST_USE bool hg_tablemsg_encode(const struct hg_table_reply *reply, struct hg_arena *arena,
                                    struct hg_span *ret);

/* Whether the range is a single row, and which: start == end and both inclusive; for a scan also
   with the stop exclusive, as HBase takes it. */
bool hg_tablemsg_point(const struct hg_tablemsg *msg, struct hg_span *ret_row);

/* 1 to HG_TABLE_NAME_MAX bytes, none of them zero. */
static inline bool hg_tablemsg_table_right(struct hg_span name)
{
    return name.len >= 1 && name.len <= HG_TABLE_NAME_MAX && memchr(name.at, 0, name.len) == NULL;
}

/* A family: 1 to HG_TABLE_COLUMN_MAX bytes, none of them zero or a colon. */
static inline bool hg_tablemsg_family_right(struct hg_span name)
{
    return name.len >= 1 && name.len <= HG_TABLE_COLUMN_MAX &&
           memchr(name.at, 0, name.len) == NULL && memchr(name.at, ':', name.len) == NULL;
}

#endif
