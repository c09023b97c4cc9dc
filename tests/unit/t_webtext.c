// t_webtext - numbers, JSON and labels come out as they must be read
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "app/webtext.h"

static void assert_text(struct hg_webtext *text, const char *is)
{
    size_t len = 0;
    char *bytes = hg_webtext_take(text, &len);
    assert_non_null(bytes);
    assert_int_equal(len, strlen(is));
    assert_memory_equal(bytes, is, len);
    free(bytes);
}

static void test_numbers(void **state)
{
    static const struct {
        uint64_t value;
        unsigned decimals;
        const char *text;
    } fixed[] = {
        {0, 0, "0"},
        {0, 6, "0"},
        {1, 6, "0.000001"},
        {1500000, 6, "1.500000"},
        {3000000, 6, "3"},
        {7, 2, "0.07"},
        {150, 2, "1.50"},
        {UINT64_MAX, 0, "18446744073709551615"},
        {UINT64_MAX, 9, "18446744073.709551615"},
    };
    struct hg_webtext text;
    (void)state;
    hg_webtext_init(&text);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        hg_webtext_fixed(&text, fixed[i].value, fixed[i].decimals);
        assert_text(&text, fixed[i].text);
    }
    hg_webtext_int(&text, INT64_MIN);
    assert_text(&text, "-9223372036854775808");
    hg_webtext_int(&text, 5);
    assert_text(&text, "5");
}

static void test_labels(void **state)
{
    struct hg_webtext text;
    (void)state;
    hg_webtext_init(&text);
    hg_webtext_label(&text, "a\"b\\c\nd\te\x7f\xc3\xa9");
    assert_text(&text, "a\\\"b\\\\c\\nd\\\\x09e\\\\x7f\\\\xc3\\\\xa9");
}

static void test_json(void **state)
{
    struct hg_webtext text;
    (void)state;
    hg_webtext_init(&text);
    hg_json_open(&text, '{');
    hg_json_key(&text, "empty");
    hg_json_open(&text, '{');
    hg_json_close(&text, '}');
    hg_json_key(&text, "list");
    hg_json_open(&text, '[');
    hg_json_uint(&text, 1);
    hg_json_null(&text);
    hg_json_bool(&text, false);
    hg_json_open(&text, '[');
    hg_json_close(&text, ']');
    hg_json_fixed(&text, 1250, 3);
    hg_json_int(&text, -4);
    hg_json_close(&text, ']');
    hg_json_key(&text, "units");
    hg_json_units(&text, UINT64_MAX);
    hg_json_key(&text, "colon:");
    hg_json_string(&text, "[");
    hg_json_key(&text, "more");
    hg_json_units(&text, 7);
    hg_json_close(&text, '}');
    assert_text(&text, "{\"empty\":{},\"list\":[1,null,false,[],1.250,-4],\"units\":null,"
                       "\"colon:\":\"[\",\"more\":7}");
}

/* Whatever the bytes are, it is JSON, and the string tells them apart. */
static void test_json_takes_all_bytes(void **state)
{
    uint8_t all[256];
    struct hg_webtext text;
    size_t len = 0;
    (void)state;
    for (unsigned i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    hg_webtext_init(&text);
    hg_json_open(&text, '[');
    hg_json_bytes(&text, hg_span(all, sizeof all));
    hg_json_bytes(&text, HG_SPAN_NONE);
    hg_json_close(&text, ']');
    char *bytes = hg_webtext_take(&text, &len);
    json_t *json = json_loadb(bytes, len, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_array_size(json), 2);
    const char *string = json_string_value(json_array_get(json, 0));
    assert_int_equal(strncmp(string, "\\x00\\x01", 8), 0);
    assert_non_null(strstr(string, " !\\x22#$"));
    assert_non_null(strstr(string, "[\\x5c]"));
    assert_non_null(strstr(string, "~\\x7f\\x80"));
    assert_string_equal(json_string_value(json_array_get(json, 1)), "");
    json_decref(json);
    free(bytes);
}

static void test_grows(void **state)
{
    struct hg_webtext text;
    size_t len = 0;
    (void)state;
    hg_webtext_init(&text);
    for (unsigned i = 0; i < 100000; i++)
        hg_webtext_str(&text, "0123456789");
    char *bytes = hg_webtext_take(&text, &len);
    assert_int_equal(len, 1000000);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(bytes[i], '0' + (int)(i % 10));
    free(bytes);
    assert_null(hg_webtext_take(&text, &len));
}

static void test_failed(void **state)
{
    struct hg_webtext text;
    size_t len = 0;
    (void)state;
    hg_webtext_init(&text);
    hg_webtext_str(&text, "a");
    text.failed = true;
    hg_json_open(&text, '{');
    hg_json_uint(&text, 1);
    assert_null(hg_webtext_take(&text, &len));
    hg_webtext_str(&text, "b");
    assert_text(&text, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_labels),
        cmocka_unit_test(test_json),    cmocka_unit_test(test_json_takes_all_bytes),
        cmocka_unit_test(test_grows),   cmocka_unit_test(test_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
