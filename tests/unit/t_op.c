// t_op - as what each operation counts among the hot keys
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/attr.h"
#include "base/op.h"
#include "proto/opcode.h"

// The manual's tables, written down a second time by hand.
static const struct {
    const char *opcode; /* printed name */
    enum hg_hot_rule rule;
} classic[] = {
    {"Get", HG_HOT_RULE_QUERY},        {"GetQ", HG_HOT_RULE_QUERY},
    {"GetK", HG_HOT_RULE_QUERY},       {"GetKQ", HG_HOT_RULE_QUERY},
    {"GAT", HG_HOT_RULE_QUERY},        {"GATQ", HG_HOT_RULE_QUERY},
    {"GATK", HG_HOT_RULE_QUERY},       {"GATKQ", HG_HOT_RULE_QUERY},
    {"Set", HG_HOT_RULE_INSERT},       {"SetQ", HG_HOT_RULE_INSERT},
    {"Add", HG_HOT_RULE_INSERT},       {"AddQ", HG_HOT_RULE_INSERT},
    {"Replace", HG_HOT_RULE_UPDATE},   {"ReplaceQ", HG_HOT_RULE_UPDATE},
    {"Append", HG_HOT_RULE_UPDATE},    {"AppendQ", HG_HOT_RULE_UPDATE},
    {"Prepend", HG_HOT_RULE_UPDATE},   {"PrependQ", HG_HOT_RULE_UPDATE},
    {"Increment", HG_HOT_RULE_UPDATE}, {"IncrementQ", HG_HOT_RULE_UPDATE},
    {"Decrement", HG_HOT_RULE_UPDATE}, {"DecrementQ", HG_HOT_RULE_UPDATE},
    {"Touch", HG_HOT_RULE_UPDATE},     {"Delete", HG_HOT_RULE_DELETE},
    {"DeleteQ", HG_HOT_RULE_DELETE},   {"Flush", HG_HOT_RULE_NONE},
    {"FlushQ", HG_HOT_RULE_NONE},
};

static const struct {
    enum hg_api api;
    uint8_t code;
    const char *name;
    enum hg_hot_rule rule;
} others[] = {
    {HG_API_TABLE, 0, "table_get", HG_HOT_RULE_QUERY},
    {HG_API_TABLE, 1, "table_insert", HG_HOT_RULE_INSERT},
    {HG_API_TABLE, 2, "table_delete", HG_HOT_RULE_DELETE},
    {HG_API_TABLE, 3, "table_update", HG_HOT_RULE_UPDATE},
    {HG_API_TABLE, 4, "table_insert_or_update", HG_HOT_RULE_INSERT},
    {HG_API_TABLE, 5, "table_replace", HG_HOT_RULE_INSERT},
    {HG_API_TABLE, 6, "table_increment", HG_HOT_RULE_UPDATE},
    {HG_API_TABLE, 7, "table_append", HG_HOT_RULE_UPDATE},
    {HG_API_TABLE, 8, "table_query", HG_HOT_RULE_POINT},
    {HG_API_TABLE, 9, "table_batch", HG_HOT_RULE_ITEMS},
    {HG_API_TABLE, 10, "table_query_start", HG_HOT_RULE_POINT},
    {HG_API_TABLE, 11, "table_query_next", HG_HOT_RULE_NONE},
    {HG_API_TABLE, 12, "table_query_end", HG_HOT_RULE_NONE},
    {HG_API_HBASE, 1, "hbase_put", HG_HOT_RULE_INSERT},
    {HG_API_HBASE, 3, "hbase_delete", HG_HOT_RULE_DELETE},
    {HG_API_HBASE, 5, "hbase_get", HG_HOT_RULE_QUERY},
    {HG_API_HBASE, 9, "hbase_hybrid", HG_HOT_RULE_ITEMS},
    {HG_API_HBASE, 11, "hbase_scan", HG_HOT_RULE_POINT},
    {HG_API_HBASE, 12, "hbase_check_and_put", HG_HOT_RULE_INSERT},
    {HG_API_HBASE, 13, "hbase_check_and_delete", HG_HOT_RULE_DELETE},
    {HG_API_HBASE, 15, "hbase_append", HG_HOT_RULE_UPDATE},
    {HG_API_HBASE, 16, "hbase_increment", HG_HOT_RULE_UPDATE},
    {HG_API_HBASE, 18, "hbase_scan_next", HG_HOT_RULE_NONE},
    {HG_API_HBASE, 19, "hbase_scan_end", HG_HOT_RULE_NONE},
};

static void test_classic_opcodes(void **state)
{
    (void)state;
    unsigned data = 0, listed = 0;
    for (unsigned code = 0; code < 256; code++) {
        const struct hg_opcode_row *row = hg_opcode_row((uint8_t)code);
        if (row == NULL || row->op >= HG_OPS_CLASSIC)
            continue;
        data++;
        for (size_t i = 0; i < HG_COUNT_OF(classic); i++) {
            if (strcmp(classic[i].opcode, row->name) != 0)
                continue;
            listed++;
            assert_int_equal(hg_op_rows[row->op].hot, classic[i].rule);
            assert_int_equal(hg_op_rows[row->op].api, HG_API_CLASSIC);
        }
    }
    assert_int_equal(data, HG_COUNT_OF(classic));
    assert_int_equal(listed, HG_COUNT_OF(classic));
}

static void test_table_and_hbase_operations(void **state)
{
    (void)state;
    assert_int_equal(HG_COUNT_OF(others), HG_OPS - HG_OPS_CLASSIC);
    for (size_t i = 0; i < HG_COUNT_OF(others); i++) {
        enum hg_op op = hg_op_of_code(others[i].api, others[i].code);
        assert_true(op < HG_OPS);
        assert_string_equal(hg_op_rows[op].name, others[i].name);
        assert_int_equal(hg_op_rows[op].hot, others[i].rule);
    }
}

static void test_codes_that_mean_nothing(void **state)
{
    (void)state;
    unsigned found[3] = {0};
    for (unsigned code = 0; code < 256; code++)
        for (unsigned api = HG_API_TABLE; api <= HG_API_HBASE; api++)
            found[api] += hg_op_of_code((enum hg_api)api, (uint8_t)code) < HG_OPS;
    assert_int_equal(found[HG_API_TABLE], 13);
    assert_int_equal(found[HG_API_HBASE], 11);
}

static void test_names_of_the_types(void **state)
{
    (void)state;
    assert_string_equal(hg_hot_type_name(HG_HOT_ALL), "TABLE_HOTKEY_ALL");
    assert_string_equal(hg_hot_type_name(HG_HOT_INSERT), "TABLE_HOTKEY_INSERT");
    assert_string_equal(hg_hot_type_name(HG_HOT_DELETE), "TABLE_HOTKEY_DELETE");
    assert_string_equal(hg_hot_type_name(HG_HOT_UPDATE), "TABLE_HOTKEY_UPDATE");
    assert_string_equal(hg_hot_type_name(HG_HOT_QUERY), "TABLE_HOTKEY_QUERY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classic_opcodes),
        cmocka_unit_test(test_table_and_hbase_operations),
        cmocka_unit_test(test_codes_that_mean_nothing),
        cmocka_unit_test(test_names_of_the_types),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
