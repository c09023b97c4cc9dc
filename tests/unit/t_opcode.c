// t_opcode - the table of opcodes says what the protocol says
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/attr.h"
#include "proto/opcode.h"

// What the protocol's pages say, written down a second time by hand: the table is compared with
// this, not with itself.
#define R HG_PRIVILEGE_BIT(HG_PRIVILEGE_READ)
#define W HG_PRIVILEGE_BIT(HG_PRIVILEGE_WRITE)
#define T HG_PRIVILEGE_BIT(HG_PRIVILEGE_BUCKET_THROTTLE_MANAGEMENT)
#define N HG_PRIVILEGE_BIT(HG_PRIVILEGE_NODE_SUPERVISOR)

struct expected {
    uint8_t code;
    const char *name;
    uint8_t loud;
    int op; // -1: none
    uint32_t needs;
    bool keyed;
    bool before_login;
    bool ingress;
};

static const struct expected expected[] = {
    {0x00, "Get", 0x00, HG_OP_GET, R, false, false, false},
    {0x01, "Set", 0x01, HG_OP_SET, W, false, false, true},
    {0x02, "Add", 0x02, HG_OP_ADD, W, false, false, true},
    {0x03, "Replace", 0x03, HG_OP_REPLACE, W, false, false, true},
    {0x04, "Delete", 0x04, HG_OP_DELETE, W, false, false, false},
    {0x05, "Increment", 0x05, HG_OP_INCREMENT, R | W, false, false, true},
    {0x06, "Decrement", 0x06, HG_OP_DECREMENT, R | W, false, false, true},
    {0x07, "Quit", 0x07, -1, 0, false, true, false},
    {0x08, "Flush", 0x08, HG_OP_FLUSH, W, false, false, false},
    {0x09, "GetQ", 0x00, HG_OP_GET, R, false, false, false},
    {0x0a, "Noop", 0x0a, -1, 0, false, true, false},
    {0x0b, "Version", 0x0b, -1, 0, false, true, false},
    {0x0c, "GetK", 0x0c, HG_OP_GET, R, true, false, false},
    {0x0d, "GetKQ", 0x0c, HG_OP_GET, R, true, false, false},
    {0x0e, "Append", 0x0e, HG_OP_APPEND, W, false, false, true},
    {0x0f, "Prepend", 0x0f, HG_OP_PREPEND, W, false, false, true},
    {0x10, "Stat", 0x10, -1, 0, false, false, false},
    {0x11, "SetQ", 0x01, HG_OP_SET, W, false, false, true},
    {0x12, "AddQ", 0x02, HG_OP_ADD, W, false, false, true},
    {0x13, "ReplaceQ", 0x03, HG_OP_REPLACE, W, false, false, true},
    {0x14, "DeleteQ", 0x04, HG_OP_DELETE, W, false, false, false},
    {0x15, "IncrementQ", 0x05, HG_OP_INCREMENT, R | W, false, false, true},
    {0x16, "DecrementQ", 0x06, HG_OP_DECREMENT, R | W, false, false, true},
    {0x17, "QuitQ", 0x07, -1, 0, false, true, false},
    {0x18, "FlushQ", 0x08, HG_OP_FLUSH, W, false, false, false},
    {0x19, "AppendQ", 0x0e, HG_OP_APPEND, W, false, false, true},
    {0x1a, "PrependQ", 0x0f, HG_OP_PREPEND, W, false, false, true},
    {0x1b, "Verbosity", 0x1b, -1, N, false, false, false},
    {0x1c, "Touch", 0x1c, HG_OP_TOUCH, W, false, false, true},
    {0x1d, "GAT", 0x1d, HG_OP_GAT, R | W, false, false, true},
    {0x1e, "GATQ", 0x1d, HG_OP_GAT, R | W, false, false, true},
    {0x1f, "Hello", 0x1f, -1, 0, false, true, false},
    {0x20, "SaslListMechs", 0x20, -1, 0, false, true, false},
    {0x21, "SaslAuth", 0x21, -1, 0, false, true, false},
    {0x22, "SaslStep", 0x22, -1, 0, false, true, false},
    {0x23, "GATK", 0x23, HG_OP_GAT, R | W, true, false, true},
    {0x24, "GATKQ", 0x23, HG_OP_GAT, R | W, true, false, true},
    {0x25, "ConfigValidate", 0x25, -1, N, false, false, false},
    {0x26, "ConfigReload", 0x26, -1, N, false, false, false},
    {0x2a, "SetBucketThrottleProperties", 0x2a, -1, T, false, false, false},
    {0x2b, "SetBucketDataLimitExceeded", 0x2b, -1, T, false, false, false},
    {0x2c, "SetNodeThrottleProperties", 0x2c, -1, T, false, false, false},
    {0x82, "SetParam", 0x82, -1, 0, false, false, false},
    {0x85, "CreateBucket", 0x85, -1, N, false, false, false},
    {0x86, "DeleteBucket", 0x86, -1, N, false, false, false},
    {0x87, "ListBuckets", 0x87, -1, 0, false, false, false},
    {0x89, "SelectBucket", 0x89, -1, 0, false, false, false},
    {0xe8, "Table", 0xe8, -1, 0, false, false, false},
    {0xe9, "HBase", 0xe9, -1, 0, false, false, false},
    {0xea, "Backup", 0xea, -1, N, false, false, false},
    {0xf3, "GetCmdTimer", 0xf3, -1, 0, false, false, false},
    {0xfb, "DropPrivilege", 0xfb, -1, 0, false, false, false},
    {0xfe, "GetErrorMap", 0xfe, -1, 0, false, true, false},
};

static void test_rows_are_as_the_protocol_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(expected); i++) {
        const struct expected *want = &expected[i];
        const struct hg_opcode_row *row = hg_opcode_row(want->code);
        assert_non_null(row);
        assert_int_equal(row->code, want->code);
        assert_string_equal(row->name, want->name);
        assert_string_equal(hg_opcode_name(want->code), want->name);
        assert_int_equal(row->loud, want->loud);
        assert_int_equal(row->quiet, want->loud != want->code);
        assert_int_equal(row->op, want->op < 0 ? HG_OPS : want->op);
        assert_int_equal(row->op_class == HG_OPCODE_CLASS_DATA, want->op >= 0);
        assert_int_equal(row->needs, want->needs);
        assert_int_equal(row->keyed, want->keyed);
        assert_int_equal(row->before_login, want->before_login);
        assert_int_equal(row->ingress, want->ingress);
    }
}

static void test_every_other_opcode_is_unknown(void **state)
{
    (void)state;
    size_t known = 0;
    for (unsigned code = 0; code < 256; code++) {
        bool listed = false;
        for (size_t i = 0; i < HG_COUNT_OF(expected); i++)
            listed |= expected[i].code == code;
        assert_int_equal(hg_opcode_row((uint8_t)code) != NULL, listed);
        if (!listed)
            assert_string_equal(hg_opcode_name((uint8_t)code), "unknown");
        known += listed;
    }
    assert_int_equal(known, HG_COUNT_OF(expected));
}

static void test_nature_follows_the_privileges_of_data(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        const struct hg_opcode_row *row = hg_opcode_row((uint8_t)code);
        if (!row)
            continue;
        bool data = row->op_class == HG_OPCODE_CLASS_DATA;
        assert_int_equal((row->nature & HG_OPCODE_READS) != 0, data && (row->needs & R) != 0);
        assert_int_equal((row->nature & HG_OPCODE_WRITES) != 0, data && (row->needs & W) != 0);
    }
}

static void test_a_quiet_opcode_has_the_shape_and_meaning_of_its_twin(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        const struct hg_opcode_row *row = hg_opcode_row((uint8_t)code);
        if (!row)
            continue;
        const struct hg_opcode_row *twin = hg_opcode_row(row->loud);
        assert_non_null(twin);
        assert_false(twin->quiet);
        assert_int_equal(twin->loud, twin->code);
        assert_int_equal(row->extras_lengths, twin->extras_lengths);
        assert_int_equal(row->key_min, twin->key_min);
        assert_int_equal(row->key_span, twin->key_span);
        assert_int_equal(row->value_min, twin->value_min);
        assert_int_equal(row->value_span, twin->value_span);
        assert_true(row->cas_mask == twin->cas_mask);
        assert_int_equal(row->op, twin->op);
        assert_int_equal(row->nature, twin->nature);
        assert_int_equal(row->needs, twin->needs);
        assert_int_equal(row->keyed, twin->keyed);
        assert_int_equal(row->ingress, twin->ingress);
        assert_int_equal(row->before_login, twin->before_login);
    }
}

static void test_texts_begin_with_the_name(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        const struct hg_opcode_row *row = hg_opcode_row((uint8_t)code);
        if (!row)
            continue;
        const char *texts[] = {row->extras_text, row->key_text, row->value_text, row->cas_text};
        for (size_t i = 0; i < HG_COUNT_OF(texts); i++) {
            assert_memory_equal(texts[i], row->name, strlen(row->name));
            assert_memory_equal(texts[i] + strlen(row->name), " takes ", 7);
        }
    }
    assert_string_equal(hg_opcode_row(0x00)->extras_text, "Get takes no extras");
    assert_string_equal(hg_opcode_row(0x00)->key_text, "Get takes a key of 1 to 250 bytes");
    assert_string_equal(hg_opcode_row(0x05)->extras_text, "Increment takes 20 bytes of extras");
    assert_string_equal(hg_opcode_row(0x08)->extras_text, "Flush takes no extras, or 4 bytes");
    assert_string_equal(hg_opcode_row(0x2a)->value_text,
                        "SetBucketThrottleProperties takes a value of 1 to 1024 bytes");
}

static void test_names_are_found_whatever_the_case(void **state)
{
    (void)state;
    uint8_t opcode = 0xee;
    for (size_t i = 0; i < HG_COUNT_OF(expected); i++) {
        assert_true(hg_opcode_parse(hg_span_str(expected[i].name), &opcode));
        assert_int_equal(opcode, expected[i].code);
    }
    assert_true(hg_opcode_parse(HG_SPAN_LIT("gEtKq"), &opcode));
    assert_int_equal(opcode, 0x0d);
    opcode = 0xee;
    assert_false(hg_opcode_parse(HG_SPAN_LIT("Ge"), &opcode));
    assert_false(hg_opcode_parse(HG_SPAN_LIT("GetKQQ"), &opcode));
    assert_false(hg_opcode_parse(HG_SPAN_LIT("unknown"), &opcode));
    assert_false(hg_opcode_parse(HG_SPAN_NONE, &opcode));
    assert_false(hg_opcode_parse(hg_span("Get\0x", 5), &opcode));
    assert_int_equal(opcode, 0xee);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_as_the_protocol_says),
        cmocka_unit_test(test_every_other_opcode_is_unknown),
        cmocka_unit_test(test_nature_follows_the_privileges_of_data),
        cmocka_unit_test(test_a_quiet_opcode_has_the_shape_and_meaning_of_its_twin),
        cmocka_unit_test(test_texts_begin_with_the_name),
        cmocka_unit_test(test_names_are_found_whatever_the_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
