// t_status - every status of the protocol's pages is in the table, with what clients make of it
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/attr.h"
#include "proto/status.h"

static const uint16_t listed[] = {
    0x00, 0x01, 0x02, 0x03,   0x04,   0x05,   0x06,   0x08,   0x0c,   0x20,   0x21,
    0x24, 0x32, 0x35, 0x36,   0x37,   0x38,   0x50,   0x80,   0x81,   0x82,   0x83,
    0x84, 0x85, 0x86, 0xff01, 0xff02, 0xff03, 0xff04, 0xff05, 0xff06, 0xff07, 0xff08,
};

static void test_the_table_holds_these_and_no_others(void **state)
{
    (void)state;
    assert_int_equal(HG_STATUS_ROWS, HG_COUNT_OF(listed));
    for (size_t i = 0; i < HG_COUNT_OF(listed); i++) {
        const struct hg_status_row *row = hg_status_row(listed[i]);
        assert_non_null(row);
        assert_int_equal(row->code, listed[i]);
        assert_int_equal(hg_status_index(listed[i]), row - hg_status_table);
        assert_string_equal(hg_status_text(listed[i]), row->text);
        assert_string_equal(hg_status_name(listed[i]), row->name);
        assert_true(strlen(row->text) > 3 && strlen(row->name) > 3 && strlen(row->meaning) > 3);
    }
    size_t known = 0;
    for (unsigned status = 0; status <= 0xffff; status++)
        known += hg_status_row((uint16_t)status) != NULL;
    assert_int_equal(known, HG_COUNT_OF(listed));
}

static void test_names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < HG_STATUS_ROWS; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(hg_status_table[i].name, hg_status_table[j].name);
}

static void test_a_foreign_status_has_texts_too(void **state)
{
    (void)state;
    assert_null(hg_status_row(0x07));
    assert_int_equal(hg_status_index(0x07), HG_STATUS_ROWS);
    assert_string_equal(hg_status_text(0x07), "unknown status");
    assert_string_equal(hg_status_name(0x07), "UNKNOWN");
}

static void test_success_is_0_and_the_middle_of_a_login(void **state)
{
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(listed); i++) {
        bool success = listed[i] == 0x00 || listed[i] == 0x21;
        assert_int_equal(hg_status_is_success(listed[i]), success);
        assert_int_equal((hg_status_row(listed[i])->attributes & HG_STATUS_ATTR_SUCCESS) != 0,
                         success);
    }
    assert_false(hg_status_is_success(0x07));
}

static void test_refusals_say_retry_later(void **state)
{
    (void)state;
    static const uint16_t later[] = {0x0c,   0x32,   0x50,   0x82,   0x85,   0x86,   0xff01,
                                     0xff02, 0xff03, 0xff04, 0xff05, 0xff06, 0xff07, 0xff08};
    for (size_t i = 0; i < HG_COUNT_OF(listed); i++) {
        bool want = false;
        for (size_t j = 0; j < HG_COUNT_OF(later); j++)
            want |= later[j] == listed[i];
        assert_int_equal((hg_status_row(listed[i])->attributes & HG_STATUS_ATTR_LATER) != 0, want);
    }
    static const uint16_t limited[] = {0x0c, 0x32, 0xff01, 0xff02, 0xff03, 0xff04, 0xff05, 0xff08};
    for (size_t i = 0; i < HG_COUNT_OF(listed); i++) {
        bool want = false;
        for (size_t j = 0; j < HG_COUNT_OF(limited); j++)
            want |= limited[j] == listed[i];
        assert_int_equal((hg_status_row(listed[i])->attributes & HG_STATUS_ATTR_RATE) != 0, want);
    }
}

static void test_every_attribute_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(hg_status_attribute_name(0), "success");
    for (unsigned bit = 0; bit < HG_STATUS_ATTR_COUNT; bit++)
        assert_true(strlen(hg_status_attribute_name(bit)) > 3);
    assert_string_equal(hg_status_attribute_name(__builtin_ctz(HG_STATUS_ATTR_LATER)),
                        "retry-later");
    assert_string_equal(hg_status_attribute_name(__builtin_ctz(HG_STATUS_ATTR_RATE)), "rate-limit");
    assert_string_equal(hg_status_attribute_name(__builtin_ctz(HG_STATUS_ATTR_TEMP)), "temp");
    assert_string_equal(hg_status_attribute_name(HG_STATUS_ATTR_COUNT), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_holds_these_and_no_others),
        cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_a_foreign_status_has_texts_too),
        cmocka_unit_test(test_success_is_0_and_the_middle_of_a_login),
        cmocka_unit_test(test_refusals_say_retry_later),
        cmocka_unit_test(test_every_attribute_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
