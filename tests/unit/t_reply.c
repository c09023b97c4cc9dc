// t_reply - reply headers, and errors that stay whole whatever is put into them
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/attr.h"
#include "proto/jsontext.h"
#include "proto/reply.h"
#include "proto/status.h"

static void test_the_header_byte_by_byte(void **state)
{
    (void)state;
    uint8_t out[24], opaque_bytes[4] = {0xde, 0xad, 0xbe, 0xef};
    uint32_t opaque;
    memcpy(&opaque, opaque_bytes, 4);
    hg_reply_header(out, HG_MAGIC_REPLY, 0x0c, 0x0102, 4, 1, 0xff08, 0x0a0b0c0d, opaque,
                    0x1122334455667788);
    assert_memory_equal(out,
                        "\x81\x0c\x01\x02\x04\x01\xff\x08\x0a\x0b\x0c\x0d\xde\xad\xbe\xef"
                        "\x11\x22\x33\x44\x55\x66\x77\x88",
                        24);
    hg_reply_header(out, HG_MAGIC_REPLY_ALT, 0x00, hg_reply_key_len_alt(12, 250), 4, 0, 0, 300,
                    opaque, 1);
    assert_memory_equal(out, "\x18\x00\x0c\xfa\x04\x00\x00\x00\x00\x00\x01\x2c", 12);
}

struct parsed {
    uint8_t magic;
    size_t framing_len;
    struct hg_span key;
    struct hg_span value;
};

// Checks what every error has, and takes it apart.
static struct parsed parse(const uint8_t *bytes, size_t len, const struct hg_reply_error *error)
{
    struct parsed p = {.magic = bytes[0]};
    bool alt = p.magic == HG_MAGIC_REPLY_ALT;
    assert_true(alt || p.magic == HG_MAGIC_REPLY);
    assert_int_equal(bytes[1], error->opcode);
    assert_int_equal(bytes[4], 0); // extras
    assert_int_equal(bytes[5], error->json);
    assert_int_equal(hg_get_u16(bytes + 6), error->status);
    assert_int_equal(hg_get_u32(bytes + 8), len - 24);
    assert_memory_equal(bytes + 12, &error->opaque, 4);
    assert_true(hg_get_u64(bytes + 16) == 0);
    p.framing_len = alt ? bytes[2] : 0;
    size_t key_len = alt ? bytes[3] : hg_get_u16(bytes + 2);
    p.key = hg_span(bytes + 24 + p.framing_len, key_len);
    p.value = hg_span(p.key.at + key_len, len - 24 - p.framing_len - key_len);
    return p;
}

static struct parsed make(uint8_t out[HG_REPLY_ERROR_MAX], const struct hg_reply_error *error)
{
    return parse(out, hg_reply_error(out, error), error);
}

static void test_plain_text(void **state)
{
    (void)state;
    uint8_t out[HG_REPLY_ERROR_MAX];
    struct hg_reply_error error = {.opcode = 0x09, .status = 0x04, .opaque = 0x12345678};
    struct parsed p = make(out, &error);
    assert_true(hg_span_is(p.value, "Invalid arguments"));
    assert_int_equal(p.key.len, 0);
    error.text = HG_SPAN_LIT("Get takes no extras");
    p = make(out, &error);
    assert_true(hg_span_is(p.value, "Get takes no extras"));
    error.members = HG_SPAN_LIT("\"limit\":\"a, \\\"b\\\": c\",\"percent\":30,\"ok\":true");
    p = make(out, &error);
    assert_true(
        hg_span_is(p.value, "Get takes no extras (limit: a, \\\"b\\\": c, percent: 30, ok: true)"));
    error.status = 0x4242; // none of ours
    error.text = error.members = HG_SPAN_NONE;
    p = make(out, &error);
    assert_true(hg_span_is(p.value, "unknown status"));
}

static void test_error_context(void **state)
{
    (void)state;
    uint8_t out[HG_REPLY_ERROR_MAX];
    struct hg_reply_error error = {.opcode = 0x01, .status = 0xff01, .opaque = 1, .json = true};
    error.text = HG_SPAN_LIT("hot key");
    struct parsed p = make(out, &error);
    assert_true(hg_span_is(p.value, "{\"error\":{\"context\":\"hot key\"}}"));
    error.members = HG_SPAN_LIT("\"percent\":30,\"retry_after_ms\":2000");
    p = make(out, &error);
    assert_true(hg_span_is(p.value, "{\"error\":{\"context\":\"hot key\",\"percent\":30,"
                                    "\"retry_after_ms\":2000}}"));
}

static void test_a_miss_carries_its_key_and_usage(void **state)
{
    (void)state;
    uint8_t out[HG_REPLY_ERROR_MAX];
    struct hg_reply_error error = {.opcode = 0x0c, .status = 0x01, .opaque = 5};
    error.key = HG_SPAN_LIT("the key");
    struct parsed p = make(out, &error);
    assert_int_equal(p.magic, HG_MAGIC_REPLY);
    assert_true(hg_span_is(p.key, "the key"));
    assert_true(hg_span_is(p.value, "Not found"));
    error.framing = HG_SPAN_LIT("\x12\x00\x01\x22\x00\x02");
    p = make(out, &error);
    assert_int_equal(p.magic, HG_MAGIC_REPLY_ALT);
    assert_int_equal(p.framing_len, 6);
    assert_memory_equal(out + 24, "\x12\x00\x01\x22\x00\x02", 6);
    assert_true(hg_span_is(p.key, "the key"));
    assert_true(hg_span_is(p.value, "Not found"));
}

static void test_a_value_of_its_own(void **state)
{
    (void)state;
    uint8_t out[HG_REPLY_ERROR_MAX];
    struct hg_reply_error error = {.opcode = 0x00, .status = 0x0c, .opaque = 5};
    error.verbatim = HG_SPAN_LIT("{\"next_tick_us\":250000}");
    error.text = HG_SPAN_LIT("not this");
    struct parsed p = make(out, &error);
    assert_true(hg_span_equal(p.value, error.verbatim));
    error.json = true;
    p = make(out, &error);
    assert_true(hg_span_equal(p.value, error.verbatim));
    // Too long to be sent whole: the text instead.
    static char longer[HG_REPLY_ERROR_VALUE_MAX + 1];
    error.verbatim = hg_span(longer, sizeof longer);
    p = make(out, &error);
    assert_true(hg_span_is(p.value, "{\"error\":{\"context\":\"not this\"}}"));
}

static json_t *load(struct hg_span value)
{
    json_error_t why;
    json_t *json = json_loadb((const char *)value.at, value.len, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        fail_msg("%s in %.*s", why.text, (int)value.len, (const char *)value.at);
    return json;
}

static void test_json_stays_whole_at_every_length(void **state)
{
    (void)state;
    static uint8_t text[2 * HG_REPLY_ERROR_VALUE_MAX];
    static const char members[] = "\"limit\":\"hard_limit\",\"retry_after_ms\":2000";
    static const char *const fillings[] = {"a",        "\"",   "\n",           "\x01",
                                           "\xc3\xa9", "\xff", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t f = 0; f < HG_COUNT_OF(fillings); f++) {
        size_t unit = strlen(fillings[f]);
        for (size_t i = 0; i + unit <= sizeof text; i += unit)
            memcpy(text + i, fillings[f], unit);
        for (size_t len = 1; len < sizeof text; len += len < 1200 ? 1 : 97)
            for (int with = 0; with < 2; with++) {
                uint8_t *out = malloc(HG_REPLY_ERROR_MAX);
                assert_non_null(out);
                struct hg_reply_error error = {.status = 0x86, .json = true};
                error.text = hg_span(text, len);
                error.members = with ? HG_SPAN_LIT(members) : HG_SPAN_NONE;
                struct parsed p = make(out, &error);
                assert_in_range(p.value.len, 1, HG_REPLY_ERROR_VALUE_MAX);
                json_t *json = load(p.value);
                json_t *object = json_object_get(json, "error");
                assert_true(json_string_length(json_object_get(object, "context")) > 0);
                assert_int_equal(json_object_size(object), with ? 3 : 1);
                json_decref(json);
                free(out);
            }
    }
}

static void test_members_of_every_length(void **state)
{
    (void)state;
    char members[HG_REPLY_ERROR_VALUE_MAX + 64];
    for (size_t len = 8; len < sizeof members; len++) {
        memset(members, 'x', len);
        memcpy(members, "\"m\":\"", 5);
        members[len - 1] = '"';
        struct hg_reply_error error = {.status = 0x86, .json = true};
        error.text = HG_SPAN_LIT("the text that comes before the members");
        error.members = hg_span(members, len);
        uint8_t *out = malloc(HG_REPLY_ERROR_MAX);
        assert_non_null(out);
        struct parsed p = make(out, &error);
        assert_in_range(p.value.len, 1, HG_REPLY_ERROR_VALUE_MAX);
        json_t *json = load(p.value);
        bool fits = len + 25 <= HG_REPLY_ERROR_VALUE_MAX; // {"error":{"context":"",}} and a letter
        assert_int_equal(json_object_size(json_object_get(json, "error")), fits ? 2 : 1);
        json_decref(json);
        free(out);
    }
}

static void test_the_longest_of_everything_fits(void **state)
{
    (void)state;
    static uint8_t bytes[4 * HG_REPLY_ERROR_VALUE_MAX];
    memset(bytes, 'x', sizeof bytes);
    uint8_t *out = malloc(HG_REPLY_ERROR_MAX);
    assert_non_null(out);
    struct hg_reply_error error = {.status = 0x01};
    error.framing = hg_span(bytes, HG_FRAMEINFO_USAGE_MAX);
    error.key = hg_span(bytes, HG_KEY_MAX_BYTES);
    error.text = hg_span(bytes, sizeof bytes);
    error.members = hg_span(bytes, sizeof bytes);
    struct parsed p = make(out, &error);
    assert_int_equal(p.value.len, HG_REPLY_ERROR_VALUE_MAX);
    assert_int_equal(p.key.len, HG_KEY_MAX_BYTES);
    error.json = true;
    p = make(out, &error);
    json_decref(load(p.value)); // members that do not fit are left out
    // Parts longer than they may be are left out.
    error.framing = hg_span(bytes, HG_FRAMEINFO_USAGE_MAX + 1);
    error.key = hg_span(bytes, HG_KEY_MAX_BYTES + 1);
    p = make(out, &error);
    assert_int_equal(p.magic, HG_MAGIC_REPLY);
    assert_int_equal(p.key.len, 0);
    free(out);
}

static void expect_escaped(struct hg_span text, const char *want)
{
    uint8_t out[256];
    size_t len = hg_jsontext_escape(text, out, sizeof out);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(out, want, len);
}

static void test_escapes(void **state)
{
    (void)state;
    expect_escaped(HG_SPAN_LIT(""), "");
    expect_escaped(HG_SPAN_LIT("plain/'text'"), "plain/'text'");
    expect_escaped(HG_SPAN_LIT("\"\\\b\f\n\r\t"), "\\\"\\\\\\b\\f\\n\\r\\t");
    expect_escaped(hg_span("\0\x01\x1f\x7f", 4), "\\u0000\\u0001\\u001f\\u007f");
    expect_escaped(HG_SPAN_LIT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
                   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    static const char *const wrong[] = {
        "\x80",
        "\xbf",
        "\xc0\xaf",
        "\xc1\xbf", // too long a form
        "\xe0\x80\xaf",
        "\xe0\x9f\xbf",
        "\xf0\x80\x80\xaf",
        "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80",
        "\xed\xbf\xbf", // surrogates
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff", // beyond U+10FFFF
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x98", // cut off
    };
    for (size_t i = 0; i < HG_COUNT_OF(wrong); i++) {
        char want[32] = "";
        for (size_t n = 0; n < strlen(wrong[i]); n++)
            strcat(want, "\xef\xbf\xbd"); // one for each byte
        expect_escaped(hg_span_str(wrong[i]), want);
    }
    expect_escaped(HG_SPAN_LIT("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"),
                   "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"); // the edges that are right
}

static void test_any_bytes_come_back_from_a_json_parser(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t bytes[24], out[2 + 6 * sizeof bytes];
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            bytes[i] = (uint8_t)(seed >> 40);
            if (round % 2)
                bytes[i] &= 0x7f;
        }
        size_t len = hg_jsontext_escape(hg_span(bytes, sizeof bytes), out + 1, sizeof out - 2);
        out[0] = out[len + 1] = '"';
        json_error_t why;
        json_t *json =
            json_loadb((const char *)out, len + 2, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
        assert_non_null(json);
        if (round % 2) {
            assert_int_equal(json_string_length(json), sizeof bytes);
            assert_memory_equal(json_string_value(json), bytes, sizeof bytes);
        }
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_header_byte_by_byte),
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_error_context),
        cmocka_unit_test(test_a_miss_carries_its_key_and_usage),
        cmocka_unit_test(test_a_value_of_its_own),
        cmocka_unit_test(test_json_stays_whole_at_every_length),
        cmocka_unit_test(test_members_of_every_length),
        cmocka_unit_test(test_the_longest_of_everything_fits),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_any_bytes_come_back_from_a_json_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
