// t_tablemsg_refuse - a request with a mistake is refused, and the text names the mistake
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "proto/status.h"
#include "proto/tablemsg.h"
#include "tablehelp.h"

#define LONG50  "01234567890123456789012345678901234567890123456789"
#define LONG250 LONG50 LONG50 LONG50 LONG50 LONG50

struct refusal {
    enum hg_op op;
    const void *request;
    const char *why; // part of the text; NULL: accepted
};

static void check(const struct refusal *row, size_t index)
{
    hg_arena_reset(&arena);
    struct hg_span body = tablehelp_pack(row->request);
    struct hg_tablemsg msg;
    const char *why = NULL;
    uint16_t status = hg_tablemsg_decode(row->op, HG_SPAN_LIT("orders"), HG_SPAN_LIT("row"), body,
                                         &arena, &msg, &why);
    free((void *)(uintptr_t)body.at);
    if (row->why == NULL && status != 0)
        fail_msg("%s %zu: refused: %s", hg_op_rows[row->op].name, index, why);
    if (row->why != NULL && status != HG_STATUS_EINVAL)
        fail_msg("%s %zu: 0x%x instead of '%s'", hg_op_rows[row->op].name, index, status, row->why);
    if (row->why != NULL && strstr(why, row->why) == NULL)
        fail_msg("%s %zu: '%s' without '%s'", hg_op_rows[row->op].name, index, why, row->why);
}

#define CHECK_ALL(rows)                                                                            \
    for (size_t i_ = 0; i_ < sizeof(rows) / sizeof *(rows); i_++)                                  \
    check(&(rows)[i_], i_)

static void test_fields_that_the_operation_does_not_take(void **state)
{
    (void)state;
    static const enum hg_op takers[][6] = {
        {HG_OP_TABLE_INSERT, HG_OP_TABLE_UPDATE, HG_OP_TABLE_INSERT_OR_UPDATE, HG_OP_TABLE_REPLACE,
         HG_OP_TABLE_INCREMENT, HG_OP_TABLE_APPEND},
        {HG_OP_TABLE_GET},
        {HG_OP_TABLE_INCREMENT, HG_OP_TABLE_APPEND},
        {HG_OP_TABLE_QUERY, HG_OP_TABLE_QUERY_START},
        {HG_OP_TABLE_BATCH},
        {HG_OP_TABLE_BATCH},
        {HG_OP_TABLE_QUERY_NEXT, HG_OP_TABLE_QUERY_END},
        {HG_OP_HBASE_PUT, HG_OP_HBASE_APPEND, HG_OP_HBASE_CHECK_AND_PUT},
        {HG_OP_HBASE_INCREMENT},
        {HG_OP_HBASE_DELETE, HG_OP_HBASE_CHECK_AND_DELETE},
        {HG_OP_HBASE_GET, HG_OP_HBASE_SCAN},
        {HG_OP_HBASE_SCAN},
        {HG_OP_HBASE_CHECK_AND_PUT, HG_OP_HBASE_CHECK_AND_DELETE},
        {HG_OP_HBASE_HYBRID},
        {HG_OP_HBASE_SCAN_NEXT, HG_OP_HBASE_SCAN_END},
    };
    const struct {
        const void *request;
        const char *field;
        enum hg_api api;
    } rows[] = {
        {TABLE(.entity = ENTITY(COLUMN("a", INTEGER(1)))), "'entity'", HG_API_TABLE},
        {TABLE(NAMES(select, B("a"))), "'select'", HG_API_TABLE},
        {TABLE(.return_entity = 1), "'return_entity'", HG_API_TABLE},
        {TABLE(.query = QUERY(.limit = 1)), "'query'", HG_API_TABLE},
        {TABLE(LIST(items, TableItem, ITEM(.row = B("r")))), "'items'", HG_API_TABLE},
        {TABLE(.atomic = 1), "'atomic'", HG_API_TABLE},
        {TABLE(.session = 1), "'session'", HG_API_TABLE},
        {HBASE(LIST(cells, Cell, CELL("d", "q"))), "'cells'", HG_API_HBASE},
        {HBASE(LIST(counters, Counter, COUNTER("d", "q", 1))), "'counters'", HG_API_HBASE},
        {HBASE(LIST(deletions, Deletion, DELETION(ROW, .family = {0}))), "'deletions'",
         HG_API_HBASE},
        {HBASE(.read = READ(.max_versions = 1)), "'read'", HG_API_HBASE},
        {HBASE(.scan = SCAN(.limit = 1)), "'scan'", HG_API_HBASE},
        {HBASE(.check = CHECK("d", "q", EXPECTED("v"))), "'check'", HG_API_HBASE},
        {HBASE(LIST(items, HBaseItem, HITEM(.operation = 5, .row = B("r")))), "'items'",
         HG_API_HBASE},
        {HBASE(.session = 1), "'session'", HG_API_HBASE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (unsigned op = HG_OPS_CLASSIC; op < HG_OPS; op++) {
            if (hg_op_rows[op].api != rows[i].api)
                continue;
            bool takes = false;
            for (size_t j = 0; j < 6; j++)
                takes = takes || takers[i][j] == op;
            struct hg_span body = tablehelp_pack(rows[i].request);
            struct hg_tablemsg msg;
            const char *why = "";
            uint16_t status = hg_tablemsg_decode((enum hg_op)op, HG_SPAN_LIT("orders"),
                                                 HG_SPAN_LIT("row"), body, &arena, &msg, &why);
            free((void *)(uintptr_t)body.at);
            char text[80];
            snprintf(text, sizeof text, "the operation takes no %s", rows[i].field);
            bool told = status == HG_STATUS_EINVAL && strncmp(why, text, strlen(text)) == 0;
            if (told == takes)
                fail_msg("%s of %s: 0x%x %s", rows[i].field, hg_op_rows[op].name, status, why);
        }
    }
}

static void test_tables(void **state)
{
    (void)state;
    ProtobufCBinaryData many[1001];
    for (size_t i = 0; i < 1001; i++)
        many[i] = BYTES("name");
    const struct refusal rows[] = {
        {HG_OP_TABLE_INSERT, TABLE(.entity = ENTITY(COLUMN("", INTEGER(1)))), "1 to 250"},
        {HG_OP_TABLE_INSERT, TABLE(.entity = ENTITY(COLUMN(LONG250, INTEGER(1)))), NULL},
        {HG_OP_TABLE_INSERT, TABLE(.entity = ENTITY(COLUMN(LONG250 "x", INTEGER(1)))), "1 to 250"},
        {HG_OP_TABLE_REPLACE,
         TABLE(.entity = ENTITY(COLUMN("a", NOTHING), COLUMN("b", NOTHING), COLUMN("a", NOTHING))),
         "names a column twice"},
        {HG_OP_TABLE_GET, TABLE(NAMES(select, B(""))), "'select' has 1 to 250"},
        {HG_OP_TABLE_GET, TABLE(NAMES(select, B(LONG250 "x"))), "'select' has 1 to 250"},
        {HG_OP_TABLE_GET, TABLE(.n_select = 1000, .select = many), NULL},
        {HG_OP_TABLE_GET, TABLE(.n_select = 1001, .select = many), "at most 1000"},
        {HG_OP_TABLE_INCREMENT, TABLE(.return_entity = 1), "'entity' is empty"},
        {HG_OP_TABLE_APPEND, TABLE(.return_entity = 1), "'entity' is empty"},
        {HG_OP_TABLE_INCREMENT, TABLE(.entity = ENTITY(COLUMN("n", REAL(1.0)))),
         "integers in INCREMENT"},
        {HG_OP_TABLE_INCREMENT, TABLE(.entity = ENTITY(COLUMN("n", NOTHING))),
         "integers in INCREMENT"},
        {HG_OP_TABLE_APPEND,
         TABLE(.entity = ENTITY(COLUMN("n", RAW("x")), COLUMN("o", INTEGER(1)))),
         "bytes in APPEND"},
        {HG_OP_TABLE_QUERY_NEXT, TABLE(.session = 0), "'session' is missing"},
        {HG_OP_TABLE_QUERY_END, TABLE(.session = 0), "'session' is missing"},
        {HG_OP_TABLE_QUERY, TABLE(.query = QUERY(.batch_rows = 1)), "'batch_rows'"},
        {HG_OP_TABLE_QUERY, TABLE(.query = QUERY(NAMES(select, B("")))), "'select' has 1 to 250"},
        {HG_OP_TABLE_QUERY, TABLE(.query = QUERY(.range = RANGE(.start = B(LONG250)))),
         "end of the range is too long"},
        {HG_OP_TABLE_QUERY, TABLE(.query = QUERY(.range = RANGE(.end = B(LONG250)))),
         "end of the range is too long"},
        {HG_OP_TABLE_QUERY, TABLE(.query = QUERY(.range = RANGE(.start = B("b"), .end = B("a")))),
         NULL},
    };
    CHECK_ALL(rows);
}

static void test_batches(void **state)
{
    (void)state;
    PB(TableItem) * many[1001];
    PB(HBaseItem) * hmany[1001];
    PB(TableItem) *item = ITEM(.row = B("r"));
    PB(HBaseItem) *hbase_item = HITEM(.operation = 5, .row = B("r"));
    for (size_t i = 0; i < 1001; i++) {
        many[i] = item;
        hmany[i] = hbase_item;
    }
#define ITEMS(...)  TABLE(LIST(items, TableItem, __VA_ARGS__))
#define HITEMS(...) HBASE(LIST(items, HBaseItem, __VA_ARGS__))
    const struct refusal rows[] = {
        {HG_OP_TABLE_BATCH, TABLE(.n_items = 0), "'items' has 1 to 1000"},
        {HG_OP_TABLE_BATCH, TABLE(.n_items = 1000, .items = many), NULL},
        {HG_OP_TABLE_BATCH, TABLE(.n_items = 1001, .items = many), "'items' has 1 to 1000"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.operation = 8, .row = B("r"))),
         "items[0]: 'operation' of an item is 0 (GET) to 7"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.operation = 256, .row = B("r"))), "items[0]: 'operation'"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.row = B("r")), ITEM(.row = B(""))),
         "items[1]: 'row' is empty"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.row = B(LONG250))), "items[0]: 'row' is too long"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.row = B("r"), .return_entity = 1)),
         "items[0]: the operation takes no 'return_entity'"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.operation = 1, .row = B("r"), NAMES(select, B("a")))),
         "items[0]: the operation takes no 'select'"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.operation = 7, .row = B("r"))),
         "items[0]: 'entity' is empty"},
        {HG_OP_TABLE_BATCH, ITEMS(ITEM(.row = B("a")), ITEM(.row = B("b"))), NULL},
        {HG_OP_TABLE_BATCH,
         TABLE(.atomic = 1, LIST(items, TableItem, ITEM(.row = B("a")), ITEM(.row = B("b")))),
         "items[1]: another row"},
        {HG_OP_HBASE_HYBRID, HBASE(.n_items = 0), "'items' has 1 to 1000"},
        {HG_OP_HBASE_HYBRID, HBASE(.n_items = 1000, .items = hmany), NULL},
        {HG_OP_HBASE_HYBRID, HBASE(.n_items = 1001, .items = hmany), "'items' has 1 to 1000"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 0, .row = B("r"))),
         "items[0]: 'operation' of an item is 1 (PUT)"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 12, .row = B("r"))), "'operation'"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 11, .row = B("r"))), "'operation'"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 261, .row = B("r"))), "'operation'"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 5)), "items[0]: 'row' is empty"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 5, .row = B(LONG250))), "too long"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 1, .row = B("r"))), "'cells' is empty"},
        {HG_OP_HBASE_HYBRID, HITEMS(HITEM(.operation = 16, .row = B("r"))), "'counters' is empty"},
        {HG_OP_HBASE_HYBRID,
         HITEMS(HITEM(.operation = 5, .row = B("r"), LIST(cells, Cell, CELL("d", "q")))),
         "items[0]: the operation takes no 'cells'"},
    };
    CHECK_ALL(rows);
}

static void test_hbase(void **state)
{
    (void)state;
#define PUT(...)      HG_OP_HBASE_PUT, HBASE(LIST(cells, Cell, __VA_ARGS__))
#define APPEND(...)   HG_OP_HBASE_APPEND, HBASE(LIST(cells, Cell, __VA_ARGS__))
#define ADD(...)      HG_OP_HBASE_INCREMENT, HBASE(LIST(counters, Counter, __VA_ARGS__))
#define DELETE(...)   HG_OP_HBASE_DELETE, HBASE(LIST(deletions, Deletion, __VA_ARGS__))
#define GET(...)      HG_OP_HBASE_GET, HBASE(.read = READ(__VA_ARGS__))
#define FAMILIES(...) LIST(columns, FamilyColumns, __VA_ARGS__)
    const struct refusal rows[] = {
        {HG_OP_HBASE_PUT, HBASE(.n_cells = 0), "'cells' is empty"},
        {PUT(CELL("", "q")), "'family' has 1 to 250"},
        {PUT(CELL(LONG250, LONG250)), NULL},
        {PUT(CELL(LONG250 "x", "q")), "'family' has 1 to 250"},
        {PUT(CELL("a\0b", "q")), "'family' has 1 to 250"},
        {PUT(CELL("a:b", "q")), "'family' has 1 to 250"},
        {PUT(CELL("d", LONG250 "x")), "'qualifier' has at most 250"},
        {PUT(CELL("d", "q", CELL_AT(-1))), "'timestamp' is negative"},
        {PUT(CELL("d", "q"), CELL("d", "q")), NULL},
        {HG_OP_HBASE_APPEND, HBASE(.n_cells = 0), "'cells' is empty"},
        {APPEND(CELL("d", "q"), CELL("d", "r"), CELL("d", "q")), "'cells' names a column twice"},
        {APPEND(CELL("d", "q", CELL_AT(1))), "APPEND takes no 'timestamp'"},
        {HG_OP_HBASE_INCREMENT, HBASE(.n_cells = 0), "'counters' is empty"},
        {ADD(COUNTER("d", "q", 1), COUNTER("e", "q", 1), COUNTER("d", "r", 1)), NULL},
        {ADD(COUNTER("d", "q", 1), COUNTER("e", "q", 1), COUNTER("d", "q", 1)), "twice"},
        {ADD(COUNTER("", "q", 1)), "'family'"},
        {DELETE(DELETION(ROW, .family = B("d"))), "ROW takes no 'family'"},
        {DELETE(DELETION(FAMILY, .family = B("d"), .qualifier = B("q"))), "a 'qualifier' when"},
        {DELETE(DELETION(FAMILY, .family = {0})), "'family' has 1 to 250"},
        {DELETE(DELETION(VERSION, .family = B("d"))), "needs a 'timestamp'"},
        {DELETE(DELETION(VERSION, .family = B("d"), DELETION_AT(INT64_MAX))), "needs a 'time"},
        {DELETE(DELETION(COLUMN, .family = B("d"), DELETION_AT(-5))), "negative"},
        {DELETE(MSG(Deletion, deletion, .kind = (PB(Deletion__Kind))5)), "0 (ROW) to 4"},
        {DELETE(MSG(Deletion, deletion, .kind = (PB(Deletion__Kind)) - 1)), "0 (ROW) to 4"},
        {GET(FROM(5), UNTIL(4)), "'min_timestamp' is greater"},
        {GET(FROM(5), UNTIL(5)), NULL},
        {GET(FAMILIES(FAMILY(""))), "'family' has 1 to 250"},
        {GET(FAMILIES(FAMILY("d", NAMES(qualifiers, B(LONG250 "x"))))), "'qualifiers'"},
        {GET(FAMILIES(FAMILY("e"), FAMILY("d"), FAMILY("e"))), "a family twice"},
        {HG_OP_HBASE_CHECK_AND_PUT, HBASE(LIST(cells, Cell, CELL("d", "q"))), "'check' is missing"},
        {HG_OP_HBASE_CHECK_AND_DELETE, HBASE(.n_cells = 0), "'check' is missing"},
        {HG_OP_HBASE_CHECK_AND_PUT, HBASE(.check = CHECK("d", "q", EXPECTED("v"))),
         "'cells' is empty"},
        {HG_OP_HBASE_CHECK_AND_DELETE, HBASE(.check = CHECK("d", "q", OP(LESS))),
         "'check' without a 'value'"},
        {HG_OP_HBASE_CHECK_AND_DELETE, HBASE(.check = CHECK("", "q", EXPECTED("v"))), "'family'"},
        {HG_OP_HBASE_CHECK_AND_DELETE,
         HBASE(.check = CHECK("d", "q", EXPECTED("v"), .op = (PB(Operator))6)), "'op' of 'check'"},
        {HG_OP_HBASE_SCAN, HBASE(.scan = SCAN(.start = B(LONG250))), "end of the range"},
        {HG_OP_HBASE_SCAN, HBASE(.scan = SCAN(.stop = B(LONG250))), "end of the range"},
        {HG_OP_HBASE_SCAN, HBASE(.read = READ(FROM(5), UNTIL(4))), "'min_timestamp'"},
        {HG_OP_HBASE_SCAN_NEXT, HBASE(.session = 0), "'session' is missing"},
        {HG_OP_HBASE_SCAN_END, HBASE(.session = 0), "'session' is missing"},
    };
    CHECK_ALL(rows);
}

static void test_filters_of_tables(void **state)
{
    (void)state;
#define F(...) HG_OP_TABLE_QUERY, TABLE(.query = QUERY(.filter = FILTER(__VA_ARGS__)))
#define P      NODE(PREFIX, .low = B("p"))
#define ONE    VALUE(INTEGER(1))
    PB(FilterNode) * many[65];
    PB(FilterNode) *prefix = P, *list_of_one = NODE(ALL, .operands = 1);
    for (size_t i = 0; i < 65; i++)
        many[i] = i == 0 ? prefix : list_of_one;
#define MANY(n) TABLE(.query = QUERY(.filter = MSG(Filter, filter, .n_nodes = (n), .nodes = many)))
    const struct refusal rows[] = {
        {HG_OP_TABLE_QUERY, MANY(64), NULL},
        {HG_OP_TABLE_QUERY, MANY(65), "at most 64 nodes"},
        {HG_OP_TABLE_QUERY, MANY(0), NULL},
        {F(P, P), "leaves one result"},
        {F(NODE(ALL, .operands = 1)), "no more than there are results"},
        {F(P, NODE(ANY, .operands = 2)), "no more than there are results"},
        {F(P, NODE(ANY, .operands = 0)), "'operands' of a filter list is 1 or more"},
        {F(P, P, P, NODE(ANY, .operands = 2)), "leaves one result"},
        {F(P, P, P, P, P, P, P, P, NODE(ANY, .operands = 8)), NULL},
        {F(P, P, P, P, P, P, P, P, P, NODE(ANY, .operands = 9)), "at most 8 results"},
        {F(P, NODE(ANY, .operands = 0xffffffffu)), "no more than there are results"},
        {F(MSG(FilterNode, filter_node, .kind = (PB(FilterNode__Kind))13)), "0 (ALL) to 12"},
        {F(MSG(FilterNode, filter_node, .kind = (PB(FilterNode__Kind)) - 1)), "0 (ALL) to 12"},
        {F(NODE(VALUE, .op = (PB(Operator))6, .value = ONE)), "'op' of a filter is 0"},
        {F(NODE(VALUE, .op = (PB(Operator)) - 1, .value = ONE)), "'op' of a filter is 0"},
        {F(NODE(PREFIX, .low = B(LONG250 "x"))), "at most 250"},
        {F(NODE(QUALIFIER, .value = ONE)), "QUALIFIER is bytes"},
        {F(NODE(QUALIFIER, OP(LESS))), "QUALIFIER is bytes"},
        {F(NODE(VALUE, OP(LESS))), NULL}, // compares to null
        {F(NODE(PAGE, .count = 0)), "'count' of 1 or more"},
        {F(NODE(TIMESTAMPS, .n_timestamps = 1, .timestamps = (int64_t[]){1})), "for HBase"},
        {F(NODE(SINGLE_COLUMN_VALUE, .family = B("d"), .qualifier = B("q"), .value = ONE)),
         "has no 'family'"},
        {F(NODE(SINGLE_COLUMN_VALUE, .value = ONE)), "names a column of a table"},
        // Fields of other kinds.
        {F(P, NODE(ALL, .operands = 1, .count = 1)), "ALL takes"},
        {F(P, NODE(ANY, .operands = 1, .low = B("l"))), "ANY takes"},
        {F(NODE(PREFIX, .high = B("h"))), "PREFIX takes"},
        {F(NODE(COLUMN_PREFIX, .operands = 1)), "COLUMN_PREFIX takes"},
        {F(NODE(COLUMN_RANGE, .value = ONE)), "COLUMN_RANGE takes"},
        {F(NODE(QUALIFIER, .qualifier = B("q"), .value = VALUE(RAW("v")))), "QUALIFIER takes"},
        {F(NODE(VALUE, .family = B("d"), .value = ONE)), "VALUE takes"},
        {F(NODE(SINGLE_COLUMN_VALUE, .high_exclusive = 1)), "SINGLE_COLUMN_VALUE takes"},
        {F(NODE(PAGE, .count = 1, OP(LESS))), "PAGE takes"},
        {F(NODE(KEY_ONLY, .filter_if_missing = 1)), "KEY_ONLY takes"},
        {F(NODE(FIRST_KEY_ONLY, .count = 1)), "FIRST_KEY_ONLY takes"},
        {F(NODE(TIMESTAMPS, .low_exclusive = 1)), "TIMESTAMPS takes"},
        {F(NODE(ROW_RANGE, .n_timestamps = 1, .timestamps = (int64_t[]){1})), "ROW_RANGE takes"},
    };
    CHECK_ALL(rows);
}

static void test_filters_of_hbase(void **state)
{
    (void)state;
    static int64_t times[1001];
#define H(...) HG_OP_HBASE_GET, HBASE(.read = READ(.filter = FILTER(__VA_ARGS__)))
    const struct refusal rows[] = {
        {H(NODE(VALUE, .value = ONE)), "'value' of a filter is bytes"},
        {H(NODE(VALUE, OP(LESS))), "'value' of a filter is bytes"},
        {H(NODE(SINGLE_COLUMN_VALUE, .family = B("d"), .value = ONE)), "is bytes"},
        {H(NODE(SINGLE_COLUMN_VALUE, .family = B("d"), .value = VALUE(RAW("v")))), NULL},
        {H(NODE(SINGLE_COLUMN_VALUE, .qualifier = B("q"), .value = VALUE(RAW("v")))), "'family'"},
        {H(NODE(TIMESTAMPS, .n_timestamps = 0)), "1 to 1000 'timestamps'"},
        {H(NODE(TIMESTAMPS, .n_timestamps = 1000, .timestamps = times)), NULL},
        {H(NODE(TIMESTAMPS, .n_timestamps = 1001, .timestamps = times)), "1 to 1000 'timestamps'"},
    };
    CHECK_ALL(rows);
}

static uint16_t decode_raw(enum hg_op op, struct hg_span body, const char **ret_why)
{
    struct hg_tablemsg msg;
    return hg_tablemsg_decode(op, HG_SPAN_LIT("orders"), HG_SPAN_LIT("row"), body, &arena, &msg,
                              ret_why);
}

static void test_bytes_that_are_no_message(void **state)
{
    (void)state;
    static const struct hg_span bodies[] = {
        HG_SPAN_LIT("\x0a"),                 // a field without its length
        HG_SPAN_LIT("\x0a\x05\x01"),         // shorter than it says
        HG_SPAN_LIT("\xff\xff\xff\xff\xff"), // a tag without end
        HG_SPAN_LIT("\x0b"),                 // the start of a group
        HG_SPAN_LIT("hello world"),
        HG_SPAN_LIT("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), // a length of 2^64 - 1
        HG_SPAN_LIT("\x0a\xff\xff\xff\xff\x0f"),                     // of 2^32 - 1
        HG_SPAN_LIT("\x00\x00"),                                     // field 0
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const char *why = "";
        assert_int_equal(decode_raw(HG_OP_TABLE_INSERT, bodies[i], &why), HG_STATUS_EINVAL);
        assert_non_null(strstr(why, "not a TableRequest"));
        assert_int_equal(decode_raw(HG_OP_HBASE_PUT, bodies[i], &why), HG_STATUS_EINVAL);
        assert_non_null(strstr(why, "not an HBaseRequest"));
    }
}

// Fields of two bytes that unfold to many times that, of every kind there is.
static void test_small_requests_that_unfold(void **state)
{
    (void)state;
    size_t len = 400000;
    uint8_t *body = malloc(len);
    assert_non_null(body);
    for (uint8_t field = 1; field <= 15; field++) {
        for (size_t i = 0; i < len; i++)
            body[i] = i % 2 ? 0 : (uint8_t)(field << 3 | 2);
        for (unsigned op = HG_OPS_CLASSIC; op < HG_OPS; op++) {
            hg_arena_reset(&arena);
            const char *why = "";
            uint16_t status = decode_raw((enum hg_op)op, hg_span(body, len), &why);
            if (status == HG_STATUS_E2BIG)
                assert_non_null(strstr(why, "more memory"));
            else
                assert_int_equal(status, HG_STATUS_EINVAL);
            assert_true(arena.used_bytes <= 1u << 20);
        }
    }
    // Columns of an entity.
    const char *why = "";
    for (size_t i = 0; i < len; i++)
        body[i] = i % 2 ? 0 : 0x0a;
    memcpy(body, "\x0a\xfc\xb4\x18", 4); // entity, 399996 bytes
    hg_arena_reset(&arena);
    assert_int_equal(decode_raw(HG_OP_TABLE_INSERT, hg_span(body, len), &why), HG_STATUS_E2BIG);
    free(body);
}

// Whatever the limit, the answer is "too large" or the right one.
static void test_every_limit_of_memory(void **state)
{
    (void)state;
    struct hg_span table = tablehelp_pack(
        TABLE(LIST(items, TableItem,
                   ITEM(.operation = 1, .row = B("r"),
                        .entity = ENTITY(COLUMN("b", INTEGER(1)), COLUMN("a", RAW("v")))),
                   ITEM(.row = B("r"), NAMES(select, B("a"), B("b"))))));
    struct hg_span hbase =
        tablehelp_pack(HBASE(.scan = SCAN(.start = B("a"), .stop = B("b")),
                             .read = READ(FAMILIES(FAMILY("d", NAMES(qualifiers, B("q")))),
                                          .filter = FILTER(P, NODE(VALUE, .value = VALUE(RAW("v"))),
                                                           NODE(ALL, .operands = 2)))));
    bool done_table = false, done_hbase = false;
    for (size_t limit = 0; limit <= 8192; limit += 16) {
        struct hg_arena small;
        struct hg_tablemsg msg;
        const char *why = NULL;
        hg_arena_init(&small, limit);
        uint16_t status = hg_tablemsg_decode(HG_OP_TABLE_BATCH, HG_SPAN_LIT("t"), HG_SPAN_NONE,
                                             table, &small, &msg, &why);
        assert_int_equal(status, done_table || status == 0 ? 0 : HG_STATUS_E2BIG);
        done_table = status == 0;
        hg_arena_fini(&small);
        hg_arena_init(&small, limit);
        status = hg_tablemsg_decode(HG_OP_HBASE_SCAN, HG_SPAN_LIT("t"), HG_SPAN_NONE, hbase, &small,
                                    &msg, &why);
        assert_int_equal(status, done_hbase || status == 0 ? 0 : HG_STATUS_E2BIG);
        done_hbase = status == 0;
        hg_arena_fini(&small);
    }
    assert_true(done_table && done_hbase);
    free((void *)(uintptr_t)table.at);
    free((void *)(uintptr_t)hbase.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_fields_that_the_operation_does_not_take),
        TEST(test_tables),
        TEST(test_batches),
        TEST(test_hbase),
        TEST(test_filters_of_tables),
        TEST(test_filters_of_hbase),
        TEST(test_bytes_that_are_no_message),
        TEST(test_small_requests_that_unfold),
        TEST(test_every_limit_of_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
