// t_tablemsg_reply - results of TableAPI and HBase become replies
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/tablemsg.h"
#include "tablehelp.h"

static struct hg_arena arena;

static int setup(void **state)
{
    (void)state;
    hg_arena_init(&arena, 1u << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hg_arena_fini(&arena);
    return 0;
}

// The bytes, which are those that protobuf-c writes of the same reply.
static struct hg_span encode(const struct hg_table_reply *reply)
{
    struct hg_span bytes;
    assert_true(hg_tablemsg_encode(reply, &arena, &bytes));
    const ProtobufCMessageDescriptor *descriptor =
        hg_op_rows[reply->op].api == HG_API_HBASE ? &headgate__table__v1__hbase_reply__descriptor
                                                  : &headgate__table__v1__table_reply__descriptor;
    ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, NULL, bytes.len, bytes.at);
    assert_non_null(message);
    struct hg_span again = tablehelp_pack(message);
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(again.at, bytes.at, bytes.len);
    free((void *)(uintptr_t)again.at);
    protobuf_c_message_free_unpacked(message, NULL);
    return bytes;
}

static PB(TableReply) * table_reply(const struct hg_table_reply *reply)
{
    struct hg_span bytes = encode(reply);
    PB(TableReply) *out = headgate__table__v1__table_reply__unpack(NULL, bytes.len, bytes.at);
    assert_non_null(out);
    return out;
}

static PB(HBaseReply) * hbase_reply(const struct hg_table_reply *reply)
{
    struct hg_span bytes = encode(reply);
    PB(HBaseReply) *out = headgate__table__v1__hbase_reply__unpack(NULL, bytes.len, bytes.at);
    assert_non_null(out);
    return out;
}

static bool is(ProtobufCBinaryData data, const char *text)
{
    return hg_span_is(hg_span(data.data ? data.data : (const uint8_t *)"", data.len), text);
}

static void test_replies_of_tables(void **state)
{
    (void)state;
    struct hg_column columns[] = {
        {HG_SPAN_LIT("a"), {.kind = HG_VALUE_INTEGER, .integer = -1}},
        {HG_SPAN_LIT("b"), {.kind = HG_VALUE_BYTES, .bytes = HG_SPAN_LIT("")}},
        {HG_SPAN_LIT("c"), {.kind = HG_VALUE_NULL}},
        {HG_SPAN_LIT("d"), {.kind = HG_VALUE_REAL, .real = 1.5}}};
    struct hg_row_result results[] = {{.found = true, .affected = 1, .entity = {columns, 4}},
                                      {.status = 2, .text = HG_SPAN_LIT("exists")},
                                      {.found = true}};
    PB(TableReply) *out = table_reply(
        &(struct hg_table_reply){.op = HG_OP_TABLE_GET, .results = results, .result_count = 1});
    assert_non_null(out->entity);
    assert_int_equal(out->entity->n_columns, 4);
    assert_true(is(out->entity->columns[0]->name, "a"));
    assert_int_equal(out->entity->columns[0]->value->integer, -1);
    assert_int_equal(out->entity->columns[1]->value->kind_case,
                     HEADGATE__TABLE__V1__VALUE__KIND_BYTES);
    assert_null(out->entity->columns[2]->value);
    assert_true(out->entity->columns[3]->value->real == 1.5);
    assert_int_equal(out->n_items + out->n_rows, 0);
    headgate__table__v1__table_reply__free_unpacked(out, NULL);

    struct hg_row_result none = {.found = false};
    assert_int_equal(
        encode(&(struct hg_table_reply){.op = HG_OP_TABLE_GET, .results = &none, .result_count = 1})
            .len,
        0);
    none.found = true; // a row without columns is there
    assert_int_equal(
        encode(&(struct hg_table_reply){.op = HG_OP_TABLE_GET, .results = &none, .result_count = 1})
            .len,
        2);

    out = table_reply(
        &(struct hg_table_reply){.op = HG_OP_TABLE_BATCH, .results = results, .result_count = 3});
    assert_int_equal(out->n_items, 3);
    assert_null(out->entity);
    assert_int_equal(out->items[0]->affected, 1);
    assert_int_equal(out->items[0]->entity->n_columns, 4);
    assert_int_equal(out->items[1]->status, 2);
    assert_true(is(out->items[1]->message, "exists"));
    assert_null(out->items[1]->entity);
    assert_non_null(out->items[2]->entity);
    headgate__table__v1__table_reply__free_unpacked(out, NULL);

    struct hg_found_row rows[] = {{.row = HG_SPAN_LIT("r1"), .entity = {columns, 2}},
                                  {.row = HG_SPAN_LIT("r2")}};
    out = table_reply(&(struct hg_table_reply){
        .op = HG_OP_TABLE_QUERY_NEXT, .rows = rows, .row_count = 2, .session = 99, .more = true});
    assert_int_equal(out->n_rows, 2);
    assert_true(is(out->rows[0]->row, "r1"));
    assert_int_equal(out->rows[0]->entity->n_columns, 2);
    assert_non_null(out->rows[1]->entity);
    assert_true(out->session == 99 && out->more);
    headgate__table__v1__table_reply__free_unpacked(out, NULL);
}

static void test_replies_of_hbase(void **state)
{
    (void)state;
    struct hg_cell list[] = {
        {HG_SPAN_LIT("d"), HG_SPAN_LIT("q"), 7, true, HG_SPAN_LIT("v")},
        {HG_SPAN_LIT("d"), HG_SPAN_LIT(""), 0, true, HG_SPAN_LIT("")},
    };
    struct hg_row_result results[] = {{.processed = true, .affected = 1, .cells = {list, 2}},
                                      {.status = 6, .text = HG_SPAN_LIT("not 8 bytes")}};
    PB(HBaseReply) *out = hbase_reply(&(struct hg_table_reply){
        .op = HG_OP_HBASE_CHECK_AND_PUT, .results = results, .result_count = 1});
    assert_true(out->processed);
    assert_int_equal(out->n_cells, 2);
    assert_true(is(out->cells[0]->family, "d") && is(out->cells[0]->qualifier, "q"));
    assert_true(is(out->cells[0]->value, "v") && out->cells[0]->timestamp == 7);
    assert_int_equal(out->cells[1]->at_case, HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP);
    headgate__table__v1__hbase_reply__free_unpacked(out, NULL);

    out = hbase_reply(
        &(struct hg_table_reply){.op = HG_OP_HBASE_HYBRID, .results = results, .result_count = 2});
    assert_int_equal(out->n_items, 2);
    assert_int_equal(out->items[0]->n_cells, 2);
    assert_int_equal(out->items[1]->status, 6);
    assert_true(is(out->items[1]->message, "not 8 bytes"));
    headgate__table__v1__hbase_reply__free_unpacked(out, NULL);

    struct hg_found_row rows[] = {{.row = HG_SPAN_LIT("r"), .cells = {list, 1}, .partial = true},
                                  {.row = HG_SPAN_LIT("r"), .cells = {list + 1, 1}}};
    out = hbase_reply(&(struct hg_table_reply){
        .op = HG_OP_HBASE_SCAN, .rows = rows, .row_count = 2, .session = 5, .more = true});
    assert_int_equal(out->n_rows, 2);
    assert_true(out->rows[0]->partial && !out->rows[1]->partial);
    assert_true(is(out->rows[1]->cells[0]->qualifier, ""));
    assert_true(out->session == 5 && out->more);
    headgate__table__v1__hbase_reply__free_unpacked(out, NULL);
    assert_int_equal(encode(&(struct hg_table_reply){.op = HG_OP_HBASE_SCAN_END}).len, 0);
}

static void test_a_reply_that_does_not_fit_in_memory(void **state)
{
    (void)state;
    struct hg_cell cells[50];
    for (int i = 0; i < 50; i++)
        cells[i] =
            (struct hg_cell){HG_SPAN_LIT("d"), HG_SPAN_LIT("q"), 9 - i, true, HG_SPAN_LIT("value")};
    struct hg_found_row row = {.row = HG_SPAN_LIT("r"), .cells = {cells, 50}};
    struct hg_table_reply reply = {.op = HG_OP_HBASE_SCAN, .rows = &row, .row_count = 1};
    bool fitted = false;
    for (size_t limit = 0; limit < 20000; limit += 64) {
        struct hg_arena small;
        struct hg_span bytes;
        hg_arena_init(&small, limit);
        bool fits = hg_tablemsg_encode(&reply, &small, &bytes);
        assert_true(fits || !fitted);
        fitted = fits;
        hg_arena_fini(&small);
    }
    assert_true(fitted);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_replies_of_tables),
        TEST(test_replies_of_hbase),
        TEST(test_a_reply_that_does_not_fit_in_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
