// t_hello - features are granted in the order they were asked for, each once, none unknown
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "proto/hello.h"
#include "proto/status.h"

#define ASK(literal, hello) hg_hello_decode(HG_SPAN_LIT(literal), hello, &why)

static void test_granted_in_the_order_of_the_request(void **state)
{
    (void)state;
    const char *why = NULL;
    struct hg_hello hello;
    uint8_t out[HG_HELLO_VALUE_MAX];
    assert_int_equal(ASK("\x00\x1b\x00\x0b\x00\x03", &hello), 0);
    assert_int_equal(hello.features,
                     HG_FEATURE_NON_BLOCKING_THROTTLING | HG_FEATURE_JSON | HG_FEATURE_TCP_NODELAY);
    assert_int_equal(hg_hello_encode(&hello, out), 6);
    assert_memory_equal(out, "\x00\x1b\x00\x0b\x00\x03", 6);
    assert_null(why);
}

static void test_each_feature_alone(void **state)
{
    (void)state;
    static const struct {
        uint8_t code;
        uint32_t bit;
    } features[] = {
        {0x03, HG_FEATURE_TCP_NODELAY},       {0x07, HG_FEATURE_XERROR},
        {0x08, HG_FEATURE_SELECT_BUCKET},     {0x0b, HG_FEATURE_JSON},
        {0x0f, HG_FEATURE_TRACING},           {0x10, HG_FEATURE_ALT_REQUEST},
        {0x1a, HG_FEATURE_REPORT_UNIT_USAGE}, {0x1b, HG_FEATURE_NON_BLOCKING_THROTTLING},
    };
    assert_int_equal(sizeof features / sizeof features[0], HG_FEATURE_COUNT);
    for (unsigned code = 0; code < 0x400; code++) {
        uint8_t value[2] = {(uint8_t)(code >> 8), (uint8_t)code};
        uint32_t want = 0;
        for (size_t i = 0; i < HG_FEATURE_COUNT; i++)
            if (features[i].code == code)
                want = features[i].bit;
        struct hg_hello hello;
        const char *why;
        uint8_t out[HG_HELLO_VALUE_MAX];
        assert_int_equal(hg_hello_decode(hg_span(value, 2), &hello, &why), 0);
        assert_int_equal(hello.features, want);
        assert_int_equal(hg_hello_encode(&hello, out), want ? 2 : 0);
    }
}

static void test_repeated_and_unknown_ones_are_left_out(void **state)
{
    (void)state;
    const char *why;
    struct hg_hello hello;
    uint8_t out[HG_HELLO_VALUE_MAX];
    uint8_t value[4000];
    for (size_t i = 0; i < sizeof value; i += 2) {
        value[i] = i % 10 == 4; // 0x0107 and the like are not 0x07
        value[i + 1] = (uint8_t)(i / 2 % 0x30);
    }
    assert_int_equal(hg_hello_decode(hg_span(value, sizeof value), &hello, &why), 0);
    assert_int_equal(hello.granted_count, HG_FEATURE_COUNT);
    assert_int_equal(hello.features, (1u << HG_FEATURE_COUNT) - 1);
    assert_int_equal(hg_hello_encode(&hello, out), HG_HELLO_VALUE_MAX);
    assert_int_equal(ASK("\x00\x07\x00\x07\x00\x02\x00\x07", &hello), 0);
    assert_int_equal(hg_hello_encode(&hello, out), 2);
}

static void test_a_second_hello_starts_from_nothing(void **state)
{
    (void)state;
    const char *why;
    struct hg_hello hello;
    assert_int_equal(ASK("\x00\x0b\x00\x07", &hello), 0);
    assert_int_equal(ASK("", &hello), 0);
    assert_int_equal(hello.features, 0);
    assert_int_equal(hello.granted_count, 0);
}

static void test_an_odd_length_is_refused(void **state)
{
    (void)state;
    const char *why = NULL;
    struct hg_hello hello = {.features = 77};
    assert_int_equal(ASK("\x00", &hello), HG_STATUS_EINVAL);
    assert_non_null(why);
    assert_int_equal(ASK("\x00\x0b\x00", &hello), HG_STATUS_EINVAL);
    assert_int_equal(hello.features, 77);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(hg_feature_name(HG_FEATURE_INDEX_XERROR), "XERROR");
    assert_string_equal(hg_feature_name(HG_FEATURE_INDEX_NON_BLOCKING_THROTTLING),
                        "NonBlockingThrottlingMode");
    assert_string_equal(hg_feature_name(HG_FEATURE_COUNT), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_granted_in_the_order_of_the_request),
        cmocka_unit_test(test_each_feature_alone),
        cmocka_unit_test(test_repeated_and_unknown_ones_are_left_out),
        cmocka_unit_test(test_a_second_hello_starts_from_nothing),
        cmocka_unit_test(test_an_odd_length_is_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
