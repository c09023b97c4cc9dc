// t_tablemsg - TableAPI and HBase requests become structs
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "proto/status.h"
#include "proto/tablemsg.h"
#include "tablehelp.h"

#define TABLE_NAME HG_SPAN_LIT("orders")

// Decodes what must be right.
static struct hg_tablemsg decode_bytes(enum hg_op op, struct hg_span body)
{
    struct hg_tablemsg msg;
    const char *why = NULL;
    uint16_t status =
        hg_tablemsg_decode(op, TABLE_NAME, HG_SPAN_LIT("row"), body, &arena, &msg, &why);
    if (status != 0)
        fail_msg("%s: 0x%x %s", hg_op_rows[op].name, status, why);
    assert_null(why);
    assert_int_equal(msg.op, op);
    assert_int_equal(msg.api, hg_op_rows[op].api);
    assert_true(hg_span_equal(msg.table, TABLE_NAME));
    return msg;
}

// The bytes that it was decoded from are gone afterwards: nothing may lie in them.
static struct hg_tablemsg decode(enum hg_op op, const void *request)
{
    struct hg_span body = tablehelp_pack(request);
    struct hg_tablemsg msg = decode_bytes(op, body);
    free((void *)(uintptr_t)body.at);
    return msg;
}

#define assert_span(span, text) assert_true(hg_span_is(span, text))

static void test_the_head_of_every_operation(void **state)
{
    (void)state;
    static const struct {
        enum hg_api api;
        enum hg_op op;
        bool row;
    } rows[] = {
        {HG_API_TABLE, HG_OP_TABLE_GET, true},
        {HG_API_TABLE, HG_OP_TABLE_INSERT, true},
        {HG_API_TABLE, HG_OP_TABLE_DELETE, true},
        {HG_API_TABLE, HG_OP_TABLE_UPDATE, true},
        {HG_API_TABLE, HG_OP_TABLE_INSERT_OR_UPDATE, true},
        {HG_API_TABLE, HG_OP_TABLE_REPLACE, true},
        {HG_API_TABLE, HG_OP_TABLE_INCREMENT, true},
        {HG_API_TABLE, HG_OP_TABLE_APPEND, true},
        {HG_API_TABLE, HG_OP_TABLE_QUERY, false},
        {HG_API_TABLE, HG_OP_TABLE_BATCH, false},
        {HG_API_TABLE, HG_OP_TABLE_QUERY_START, false},
        {HG_API_TABLE, HG_OP_TABLE_QUERY_NEXT, false},
        {HG_API_TABLE, HG_OP_TABLE_QUERY_END, false},
        {HG_API_HBASE, HG_OP_HBASE_PUT, true},
        {HG_API_HBASE, HG_OP_HBASE_DELETE, true},
        {HG_API_HBASE, HG_OP_HBASE_GET, true},
        {HG_API_HBASE, HG_OP_HBASE_HYBRID, false},
        {HG_API_HBASE, HG_OP_HBASE_SCAN, false},
        {HG_API_HBASE, HG_OP_HBASE_CHECK_AND_PUT, true},
        {HG_API_HBASE, HG_OP_HBASE_CHECK_AND_DELETE, true},
        {HG_API_HBASE, HG_OP_HBASE_APPEND, true},
        {HG_API_HBASE, HG_OP_HBASE_INCREMENT, true},
        {HG_API_HBASE, HG_OP_HBASE_SCAN_NEXT, false},
        {HG_API_HBASE, HG_OP_HBASE_SCAN_END, false},
    };
    assert_int_equal(sizeof rows / sizeof *rows, HG_OPS - HG_OPS_CLASSIC);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t extras[8] = {hg_op_rows[rows[i].op].code, 0, 0, 6};
        enum hg_op op = HG_OPS;
        struct hg_span table, row;
        const char *why = NULL;
        uint16_t with = hg_tablemsg_head(rows[i].api, hg_span(extras, 8), HG_SPAN_LIT("ordersrow"),
                                         &op, &table, &row, &why);
        assert_int_equal(with, rows[i].row ? 0 : HG_STATUS_EINVAL);
        assert_int_equal(why == NULL, rows[i].row);
        if (with == 0)
            assert_span(row, "row");
        uint16_t without =
            hg_tablemsg_head(rows[i].api, hg_span(extras, 8), TABLE_NAME, &op, &table, &row, &why);
        assert_int_equal(without, rows[i].row ? HG_STATUS_EINVAL : 0);
        assert_int_equal(op, rows[i].op);
        assert_span(table, "orders");
        if (without == 0)
            assert_int_equal(row.len, 0);
    }
}

// A head of TableAPI with these extras and a key of that many bytes; what is said about it.
static uint16_t head(struct hg_span extras, size_t key_len, const char **ret_why)
{
    uint8_t *key = malloc(key_len ? key_len : 1);
    assert_non_null(key);
    memset(key, 'k', key_len);
    enum hg_op op;
    struct hg_span table, row;
    uint16_t status =
        hg_tablemsg_head(HG_API_TABLE, extras, hg_span(key, key_len), &op, &table, &row, ret_why);
    free(key);
    return status;
}

static void test_heads_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct hg_span extras;
        size_t key_len;
        uint16_t status;
        const char *why;
    } rows[] = {
        {HG_SPAN_LIT("\0\0\0\1\0\0\0"), 5, HG_STATUS_EINVAL, "8 bytes"},
        {HG_SPAN_LIT("\0\0\0\1\0\0\0\0\0"), 5, HG_STATUS_EINVAL, "8 bytes"},
        {HG_SPAN_LIT(""), 5, HG_STATUS_EINVAL, "8 bytes"},
        {HG_SPAN_LIT("\x0d\0\0\1\0\0\0\0"), 5, HG_STATUS_UNKNOWN_COMMAND, "accepted are 0 to 12"},
        {HG_SPAN_LIT("\xff\0\0\1\0\0\0\0"), 5, HG_STATUS_UNKNOWN_COMMAND, "accepted are 0 to 12"},
        {HG_SPAN_LIT("\0\1\0\1\0\0\0\0"), 5, HG_STATUS_EINVAL, "flags"},
        {HG_SPAN_LIT("\0\0\0\1\0\0\0\1"), 5, HG_STATUS_EINVAL, "reserved"},
        {HG_SPAN_LIT("\0\0\0\1\x80\0\0\0"), 5, HG_STATUS_EINVAL, "reserved"},
        {HG_SPAN_LIT("\0\0\0\0\0\0\0\0"), 5, HG_STATUS_EINVAL, "1 to 100"},
        {HG_SPAN_LIT("\0\0\0\x65\0\0\0\0"), 200, HG_STATUS_EINVAL, "1 to 100"},
        {HG_SPAN_LIT("\0\0\1\0\0\0\0\0"), 200, HG_STATUS_EINVAL, "1 to 100"},
        {HG_SPAN_LIT("\0\0\0\6\0\0\0\0"), 5, HG_STATUS_EINVAL, "greater than the key's"},
        {HG_SPAN_LIT("\0\0\0\6\0\0\0\0"), 0, HG_STATUS_EINVAL, "greater than the key's"},
        {HG_SPAN_LIT("\0\0\0\5\0\0\0\0"), 5, HG_STATUS_EINVAL, "row key is missing"},
        {HG_SPAN_LIT("\0\0\0\5\0\0\0\0"), 250, HG_STATUS_EINVAL, "at most 249"},
        {HG_SPAN_LIT("\x08\0\0\5\0\0\0\0"), 6, HG_STATUS_EINVAL, "no row key"},
        {HG_SPAN_LIT("\0\0\0\x64\0\0\0\0"), 249, 0, NULL},
        {HG_SPAN_LIT("\x08\0\0\x64\0\0\0\0"), 100, 0, NULL},
        {HG_SPAN_LIT("\0\0\0\1\0\0\0\0"), 2, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = NULL;
        uint16_t status = head(rows[i].extras, rows[i].key_len, &why);
        assert_int_equal(status, rows[i].status);
        if (rows[i].why == NULL)
            assert_null(why);
        else if (why == NULL || strstr(why, rows[i].why) == NULL)
            fail_msg("row %zu: '%s' without '%s'", i, why ? why : "", rows[i].why);
    }
    enum hg_op op;
    struct hg_span table, row;
    const char *why = NULL;
    assert_int_equal(hg_tablemsg_head(HG_API_TABLE, HG_SPAN_LIT("\0\0\0\3\0\0\0\0"),
                                      HG_SPAN_LIT("a\0brow"), &op, &table, &row, &why),
                     HG_STATUS_EINVAL);
    assert_non_null(strstr(why, "zero byte"));
    assert_int_equal(hg_tablemsg_head(HG_API_HBASE, HG_SPAN_LIT("\2\0\0\3\0\0\0\0"),
                                      HG_SPAN_LIT("abcrow"), &op, &table, &row, &why),
                     HG_STATUS_UNKNOWN_COMMAND);
    assert_non_null(strstr(why, "0xe9: accepted are 1, 3,"));
}

static void test_columns_are_sorted_and_keep_their_values(void **state)
{
    (void)state;
    struct hg_tablemsg msg =
        decode(HG_OP_TABLE_INSERT,
               TABLE(.entity = ENTITY(COLUMN("d", RAW("\0x")), COLUMN("b", REAL(-0.5)),
                                      COLUMN("c", NOTHING), COLUMN("a", INTEGER(INT64_MIN)),
                                      MSG(Column, column, .name = B("bb")), COLUMN("e", RAW("")))));
    assert_int_equal(msg.item_count, 1);
    const struct hg_table_item *item = msg.table_items;
    assert_int_equal(item->op, HG_OP_TABLE_INSERT);
    assert_span(item->row, "row");
    assert_int_equal(item->entity.count, 6);
    const struct hg_column *columns = item->entity.columns;
    assert_span(columns[0].name, "a");
    assert_int_equal(columns[0].value.kind, HG_VALUE_INTEGER);
    assert_true(columns[0].value.integer == INT64_MIN);
    assert_span(columns[1].name, "b");
    assert_int_equal(columns[1].value.kind, HG_VALUE_REAL);
    assert_true(columns[1].value.real == -0.5);
    assert_span(columns[2].name, "bb");
    assert_int_equal(columns[2].value.kind, HG_VALUE_NULL);
    assert_span(columns[3].name, "c");
    assert_int_equal(columns[3].value.kind, HG_VALUE_NULL);
    assert_span(columns[4].name, "d");
    assert_int_equal(columns[4].value.kind, HG_VALUE_BYTES);
    assert_int_equal(columns[4].value.bytes.len, 2);
    assert_int_equal(columns[5].value.kind, HG_VALUE_BYTES);
    assert_int_equal(columns[5].value.bytes.len, 0);
    assert_non_null(columns[5].value.bytes.at);
}

static void test_bodies_may_be_empty(void **state)
{
    (void)state;
    struct hg_tablemsg msg = decode_bytes(HG_OP_TABLE_GET, HG_SPAN_NONE);
    assert_int_equal(msg.table_items->select.count, 0);
    decode_bytes(HG_OP_TABLE_DELETE, HG_SPAN_NONE);
    decode_bytes(HG_OP_TABLE_INSERT, HG_SPAN_NONE);
    msg = decode_bytes(HG_OP_TABLE_QUERY_START, HG_SPAN_NONE);
    assert_int_equal(msg.query.batch_rows, 100);
    assert_int_equal(msg.query.range.start.len + msg.query.range.end.len, 0);
    assert_int_equal(msg.query.filter.count, 0);
    msg = decode_bytes(HG_OP_HBASE_GET, HG_SPAN_NONE);
    assert_int_equal(msg.hbase_items->read.max_versions, 1);
    assert_true(msg.hbase_items->read.min_ms == INT64_MIN);
    assert_true(msg.hbase_items->read.max_ms == INT64_MAX);
    msg = decode_bytes(HG_OP_HBASE_DELETE, HG_SPAN_NONE);
    assert_int_equal(msg.hbase_items->deletion_count, 1);
    assert_int_equal(msg.hbase_items->deletions->kind, HG_DELETION_ROW);
    assert_false(msg.hbase_items->deletions->dated);
    msg = decode_bytes(HG_OP_HBASE_SCAN, HG_SPAN_NONE);
    assert_int_equal(msg.scan.caching, 100);
    assert_int_equal(msg.read.max_versions, 1);
    assert_int_equal(msg.item_count, 0);
}

static void test_names_are_sorted_and_each_once(void **state)
{
    (void)state;
    struct hg_tablemsg msg = decode(
        HG_OP_TABLE_GET, TABLE(NAMES(select, B("b"), B("a"), B("ab"), B("b"), B("a"), B("a\0"))));
    const struct hg_names *names = &msg.table_items->select;
    assert_int_equal(names->count, 4);
    assert_span(names->list[0], "a");
    assert_int_equal(names->list[1].len, 2);
    assert_span(names->list[2], "ab");
    assert_span(names->list[3], "b");
}

static void test_a_query(void **state)
{
    (void)state;
    struct hg_tablemsg msg = decode(
        HG_OP_TABLE_QUERY_START,
        TABLE(.query =
                  QUERY(.range = RANGE(.start = B("a"), .end = B("z"), .start_exclusive = 1),
                        NAMES(select, B("n")), .limit = 7, .offset = 2, .reverse = 1,
                        .batch_rows = 5000,
                        .filter = FILTER(NODE(PREFIX, .low = B("ab")),
                                         NODE(SINGLE_COLUMN_VALUE, .qualifier = B("n"), OP(GREATER),
                                              .value = VALUE(INTEGER(4)), .filter_if_missing = 1),
                                         NODE(ALL, .operands = 2)))));
    const struct hg_query *query = &msg.query;
    assert_span(query->range.start, "a");
    assert_span(query->range.end, "z");
    assert_true(query->range.start_exclusive && !query->range.end_exclusive);
    assert_int_equal(query->limit, 7);
    assert_int_equal(query->offset, 2);
    assert_true(query->reverse);
    assert_int_equal(query->batch_rows, 1000);
    assert_int_equal(query->select.count, 1);
    assert_int_equal(query->filter.count, 3);
    const struct hg_filter_node *nodes = query->filter.nodes;
    assert_int_equal(nodes[0].kind, HG_FILTER_PREFIX);
    assert_span(nodes[0].low, "ab");
    assert_int_equal(nodes[1].kind, HG_FILTER_SINGLE_COLUMN_VALUE);
    assert_int_equal(nodes[1].op, HG_GREATER);
    assert_span(nodes[1].qualifier, "n");
    assert_int_equal(nodes[1].value.integer, 4);
    assert_true(nodes[1].filter_if_missing);
    assert_int_equal(nodes[2].kind, HG_FILTER_ALL);
    assert_int_equal(nodes[2].operands, 2);
}

static void test_filters_of_every_kind(void **state)
{
    (void)state;
    struct hg_tablemsg msg = decode(
        HG_OP_HBASE_SCAN,
        HBASE(.read =
                  READ(.filter = FILTER(
                           NODE(COLUMN_PREFIX, .low = B("c")),
                           NODE(COLUMN_RANGE, .low = B("a"), .high = B("b"), .low_exclusive = 1),
                           NODE(QUALIFIER, OP(LESS), .value = VALUE(RAW("q"))),
                           NODE(ANY, .operands = 3),
                           NODE(VALUE, OP(NOT_EQUAL), .value = VALUE(RAW(""))),
                           NODE(PAGE, .count = UINT64_MAX), NODE(KEY_ONLY, .low = {0}),
                           NODE(FIRST_KEY_ONLY, .low = {0}),
                           NODE(TIMESTAMPS, .n_timestamps = 2, .timestamps = (int64_t[]){7, -1}),
                           NODE(ROW_RANGE, .high = B("z"), .high_exclusive = 1),
                           NODE(PREFIX, .low = {0}), NODE(ALL, .operands = 8)))));
    const struct hg_filter *filter = &msg.read.filter;
    assert_int_equal(filter->count, 12);
    static const enum hg_filter_kind kinds[] = {
        HG_FILTER_COLUMN_PREFIX, HG_FILTER_COLUMN_RANGE,   HG_FILTER_QUALIFIER,
        HG_FILTER_ANY,           HG_FILTER_VALUE,          HG_FILTER_PAGE,
        HG_FILTER_KEY_ONLY,      HG_FILTER_FIRST_KEY_ONLY, HG_FILTER_TIMESTAMPS,
        HG_FILTER_ROW_RANGE,     HG_FILTER_PREFIX,         HG_FILTER_ALL};
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(filter->nodes[i].kind, kinds[i]);
    assert_true(filter->nodes[1].low_exclusive && !filter->nodes[1].high_exclusive);
    assert_true(filter->nodes[5].count == UINT64_MAX);
    assert_int_equal(filter->nodes[8].timestamp_count, 2);
    assert_int_equal(filter->nodes[8].timestamps[1], -1);
    assert_true(filter->nodes[9].high_exclusive);
}

static void test_batches(void **state)
{
    (void)state;
    struct hg_tablemsg msg =
        decode(HG_OP_TABLE_BATCH,
               TABLE(.atomic = 1, LIST(items, TableItem,
                                       ITEM(.operation = 6, .row = B("r"), .return_entity = 1,
                                            .entity = ENTITY(COLUMN("n", INTEGER(-3)))),
                                       ITEM(.operation = 0, .row = B("r"), NAMES(select, B("n"))),
                                       ITEM(.operation = 2, .row = B("r")))));
    assert_int_equal(msg.item_count, 3);
    assert_true(msg.atomic);
    assert_int_equal(msg.table_items[0].op, HG_OP_TABLE_INCREMENT);
    assert_true(msg.table_items[0].return_entity);
    assert_int_equal(msg.table_items[0].entity.columns->value.integer, -3);
    assert_int_equal(msg.table_items[1].op, HG_OP_TABLE_GET);
    assert_int_equal(msg.table_items[1].select.count, 1);
    assert_int_equal(msg.table_items[2].op, HG_OP_TABLE_DELETE);
    assert_span(msg.table_items[2].row, "r");
    msg = decode(
        HG_OP_HBASE_HYBRID,
        HBASE(LIST(
            items, HBaseItem,
            HITEM(.operation = 1, .row = B("a"), LIST(cells, Cell, CELL("d", "q"))),
            HITEM(.operation = 3, .row = B("b")), HITEM(.operation = 5, .row = B("c")),
            HITEM(.operation = 15, .row = B("d"), LIST(cells, Cell, CELL("d", "q"))),
            HITEM(.operation = 16, .row = B("e"), LIST(counters, Counter, COUNTER("d", "q", 1))))));
    static const enum hg_op ops[] = {HG_OP_HBASE_PUT, HG_OP_HBASE_DELETE, HG_OP_HBASE_GET,
                                     HG_OP_HBASE_APPEND, HG_OP_HBASE_INCREMENT};
    assert_int_equal(msg.item_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(msg.hbase_items[i].op, ops[i]);
        assert_int_equal(msg.hbase_items[i].row.at[0], 'a' + (int)i);
    }
    assert_int_equal(msg.hbase_items[1].deletion_count, 1);
    assert_int_equal(msg.hbase_items[2].read.max_versions, 1);
}

static void test_hbase_operations(void **state)
{
    (void)state;
    struct hg_tablemsg msg =
        decode(HG_OP_HBASE_PUT, HBASE(LIST(cells, Cell, CELL("d", "", CELL_AT(0), .value = B("v")),
                                           CELL("d", "q"), CELL("d", "q", CELL_AT(INT64_MAX)))));
    const struct hg_cells *cells = &msg.hbase_items->cells;
    assert_int_equal(cells->count, 3);
    assert_true(cells->list[0].dated && cells->list[0].at_ms == 0);
    assert_span(cells->list[0].value, "v");
    assert_false(cells->list[1].dated);
    assert_false(cells->list[2].dated); // HBase's LATEST_TIMESTAMP
    msg = decode(HG_OP_HBASE_DELETE,
                 HBASE(LIST(deletions, Deletion, DELETION(ROW, DELETION_AT(5)),
                            DELETION(FAMILY, .family = B("d")),
                            DELETION(COLUMNS, .family = B("d"), .qualifier = B("q")),
                            DELETION(COLUMN, .family = B("d")),
                            DELETION(VERSION, .family = B("d"), DELETION_AT(9)))));
    assert_int_equal(msg.hbase_items->deletion_count, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(msg.hbase_items->deletions[i].kind, i);
    assert_true(msg.hbase_items->deletions[0].dated);
    assert_int_equal(msg.hbase_items->deletions[4].at_ms, 9);
    msg = decode(HG_OP_HBASE_GET,
                 HBASE(.read = READ(FROM(3), UNTIL(3), .max_versions = 4,
                                    LIST(columns, FamilyColumns, FAMILY("e"),
                                         FAMILY("d", NAMES(qualifiers, B("q"), B(""), B("q")))))));
    const struct hg_hbase_read *read = &msg.hbase_items->read;
    assert_true(read->min_ms == 3 && read->max_ms == 3 && read->max_versions == 4);
    assert_int_equal(read->column_count, 2);
    assert_span(read->columns[0].family, "d");
    assert_int_equal(read->columns[0].qualifiers.count, 2);
    assert_span(read->columns[1].family, "e");
    assert_int_equal(read->columns[1].qualifiers.count, 0);
    msg = decode(HG_OP_HBASE_INCREMENT,
                 HBASE(LIST(counters, Counter, COUNTER("d", "b", -1), COUNTER("d", "a", 2))));
    assert_int_equal(msg.hbase_items->counter_count, 2);
    assert_int_equal(msg.hbase_items->counters[0].amount, -1);
    msg = decode(HG_OP_HBASE_CHECK_AND_PUT, HBASE(.check = CHECK("d", "q", OP(LESS), EXPECTED("")),
                                                  LIST(cells, Cell, CELL("d", "q"))));
    assert_true(msg.hbase_items->check.has_value);
    assert_int_equal(msg.hbase_items->check.op, HG_LESS);
    msg = decode(HG_OP_HBASE_CHECK_AND_DELETE, HBASE(.check = CHECK("d", "", OP(NOT_EQUAL))));
    assert_false(msg.hbase_items->check.has_value);
    assert_int_equal(msg.hbase_items->deletions->kind, HG_DELETION_ROW);
    msg = decode(HG_OP_HBASE_SCAN,
                 HBASE(.scan = SCAN(.start = B("b"), .stop = B("a"), .start_exclusive = 1,
                                    .stop_inclusive = 1, .reversed = 1, .limit = 9, .batch = 8,
                                    .caching = 1001)));
    assert_span(msg.scan.start, "b");
    assert_span(msg.scan.stop, "a");
    assert_true(msg.scan.start_exclusive && msg.scan.stop_inclusive && msg.scan.reversed);
    assert_true(msg.scan.limit == 9 && msg.scan.batch == 8 && msg.scan.caching == 1000);
}

static void test_sessions(void **state)
{
    (void)state;
    assert_true(decode(HG_OP_TABLE_QUERY_NEXT, TABLE(.session = UINT64_MAX)).session == UINT64_MAX);
    assert_true(decode(HG_OP_TABLE_QUERY_END, TABLE(.session = 1)).session == 1);
    assert_true(decode(HG_OP_HBASE_SCAN_NEXT, HBASE(.session = 2)).session == 2);
    assert_true(decode(HG_OP_HBASE_SCAN_END, HBASE(.session = 3)).session == 3);
}

static void test_which_ranges_are_a_point(void **state)
{
    (void)state;
    struct hg_span row = HG_SPAN_NONE;
#define QUERY_POINT(...)                                                                           \
    ({                                                                                             \
        struct hg_tablemsg msg_ =                                                                  \
            decode(HG_OP_TABLE_QUERY, TABLE(.query = QUERY(.range = RANGE(__VA_ARGS__))));         \
        hg_tablemsg_point(&msg_, &row);                                                            \
    })
#define SCAN_POINT(...)                                                                            \
    ({                                                                                             \
        struct hg_tablemsg msg_ = decode(HG_OP_HBASE_SCAN, HBASE(.scan = SCAN(__VA_ARGS__)));      \
        hg_tablemsg_point(&msg_, &row);                                                            \
    })
    assert_true(QUERY_POINT(.start = B("r1"), .end = B("r1")));
    assert_span(row, "r1");
    assert_false(QUERY_POINT(.start = B("r1"), .end = B("r2")));
    assert_false(QUERY_POINT(.start = B("r1"), .end = B("r1"), .start_exclusive = 1));
    assert_false(QUERY_POINT(.start = B("r1"), .end = B("r1"), .end_exclusive = 1));
    assert_false(QUERY_POINT(.start = B(""), .end = B("")));
    assert_true(SCAN_POINT(.start = B("r3"), .stop = B("r3")));
    assert_span(row, "r3");
    assert_false(SCAN_POINT(.start = B("r3"), .stop = B("r3"), .start_exclusive = 1));
    assert_false(
        SCAN_POINT(.start = B("r3"), .stop = B("r3"), .start_exclusive = 1, .stop_inclusive = 1));
    assert_true(SCAN_POINT(.start = B("r3"), .stop = B("r3"), .stop_inclusive = 1, .reversed = 1));
    assert_false(SCAN_POINT(.start = B("r3"), .stop = B("r4")));
    assert_false(SCAN_POINT(.start = B("")));
    struct hg_tablemsg get = decode_bytes(HG_OP_TABLE_GET, HG_SPAN_NONE);
    assert_false(hg_tablemsg_point(&get, &row));
    struct hg_tablemsg start =
        decode(HG_OP_TABLE_QUERY_START,
               TABLE(.query = QUERY(.range = RANGE(.start = B("x"), .end = B("x")))));
    assert_true(hg_tablemsg_point(&start, &row));
    assert_span(row, "x");
}

static void test_fields_of_later_versions_are_ignored(void **state)
{
    (void)state;
    // Field 99 as a varint and field 100 as bytes, around 'session'.
    struct hg_tablemsg msg = decode_bytes(
        HG_OP_TABLE_QUERY_NEXT, HG_SPAN_LIT("\x98\x06\x05\x39\1\0\0\0\0\0\0\0\xa2\x06\x02hi"));
    assert_true(msg.session == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_head_of_every_operation),
        TEST(test_heads_that_are_refused),
        TEST(test_columns_are_sorted_and_keep_their_values),
        TEST(test_bodies_may_be_empty),
        TEST(test_names_are_sorted_and_each_once),
        TEST(test_a_query),
        TEST(test_filters_of_every_kind),
        TEST(test_batches),
        TEST(test_hbase_operations),
        TEST(test_sessions),
        TEST(test_which_ranges_are_a_point),
        TEST(test_fields_of_later_versions_are_ignored),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
