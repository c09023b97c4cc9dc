// t_frame_shape - every opcode with every wrong length, data type and CAS
// SPDX-License-Identifier: BSD-3-Clause
//
// The shapes are written down here a second time, from the protocol's pages, and every frame is
// judged both ways. Frames that are right must be found right by the quick test or by the exact
// one, with either magic.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/attr.h"
#include "proto/frame.h"
#include "proto/hello.h"
#include "proto/status.h"
#include "frames.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

struct shape {
    uint8_t code;
    int extras[2]; // legal lengths, -1 = none
    char key;      // '-' absent, 'R' required, 'o' optional
    uint32_t value_min, value_max;
    bool cas_any;
};

#define ITEM UINT32_MAX // as long as an item may be

static const struct shape shapes[] = {
    {0x00, {0, -1}, 'R', 0, 0, false},    {0x01, {8, -1}, 'R', 0, ITEM, true},
    {0x02, {8, -1}, 'R', 0, ITEM, false}, {0x03, {8, -1}, 'R', 0, ITEM, true},
    {0x04, {0, -1}, 'R', 0, 0, true},     {0x05, {20, -1}, 'R', 0, 0, true},
    {0x06, {20, -1}, 'R', 0, 0, true},    {0x07, {0, -1}, '-', 0, 0, false},
    {0x08, {0, 4}, '-', 0, 0, true},      {0x09, {0, -1}, 'R', 0, 0, false},
    {0x0a, {0, -1}, '-', 0, 0, false},    {0x0b, {0, -1}, '-', 0, 0, false},
    {0x0c, {0, -1}, 'R', 0, 0, false},    {0x0d, {0, -1}, 'R', 0, 0, false},
    {0x0e, {0, -1}, 'R', 0, ITEM, true},  {0x0f, {0, -1}, 'R', 0, ITEM, true},
    {0x10, {0, -1}, 'o', 0, ITEM, false}, {0x11, {8, -1}, 'R', 0, ITEM, true},
    {0x12, {8, -1}, 'R', 0, ITEM, false}, {0x13, {8, -1}, 'R', 0, ITEM, true},
    {0x14, {0, -1}, 'R', 0, 0, true},     {0x15, {20, -1}, 'R', 0, 0, true},
    {0x16, {20, -1}, 'R', 0, 0, true},    {0x17, {0, -1}, '-', 0, 0, false},
    {0x18, {0, 4}, '-', 0, 0, true},      {0x19, {0, -1}, 'R', 0, ITEM, true},
    {0x1a, {0, -1}, 'R', 0, ITEM, true},  {0x1b, {4, -1}, '-', 0, 0, false},
    {0x1c, {4, -1}, 'R', 0, 0, false},    {0x1d, {4, -1}, 'R', 0, 0, false},
    {0x1e, {4, -1}, 'R', 0, 0, false},    {0x1f, {0, -1}, 'o', 0, ITEM, false},
    {0x20, {0, -1}, '-', 0, 0, false},    {0x21, {0, -1}, 'R', 0, ITEM, false},
    {0x22, {0, -1}, 'R', 0, ITEM, false}, {0x23, {4, -1}, 'R', 0, 0, false},
    {0x24, {4, -1}, 'R', 0, 0, false},    {0x25, {0, -1}, '-', 1, MIB, false},
    {0x26, {0, -1}, '-', 0, 0, false},    {0x2a, {0, -1}, 'R', 1, KIB, false},
    {0x2b, {2, -1}, 'R', 0, 0, false},    {0x2c, {0, -1}, '-', 1, KIB, false},
    {0x82, {0, 4}, 'R', 0, ITEM, false},  {0x85, {0, -1}, 'R', 1, 16 * KIB, true},
    {0x86, {0, -1}, 'R', 0, 0, true},     {0x87, {0, -1}, '-', 0, 0, true},
    {0x89, {0, -1}, 'R', 0, 0, true},     {0xe8, {8, -1}, 'R', 0, ITEM, false},
    {0xe9, {8, -1}, 'R', 0, ITEM, false}, {0xea, {20, -1}, 'o', 0, 0, false},
    {0xf3, {1, -1}, 'o', 0, 0, false},    {0xfb, {0, -1}, 'R', 0, 0, false},
    {0xfe, {0, -1}, '-', 2, 2, false},
};

static const struct hg_frame_limits limits = {20 * MIB, MIB};

static const struct shape *shape_of(uint8_t code)
{
    for (size_t i = 0; i < HG_COUNT_OF(shapes); i++)
        if (shapes[i].code == code)
            return &shapes[i];
    return NULL;
}

static bool extras_fit(const struct shape *shape, int len)
{
    return len == shape->extras[0] || len == shape->extras[1];
}

static bool key_fits(const struct shape *shape, uint32_t len)
{
    if (shape->key == '-')
        return len == 0;
    return len <= 250 && (len > 0 || shape->key == 'o');
}

// What the pages say about a frame that decodes.
static uint16_t judge(const struct frame_spec *spec, bool json)
{
    const struct shape *shape = shape_of(spec->opcode);
    if (!shape)
        return 0x81;
    bool admin = shape->value_max >= KIB && shape->value_max != ITEM;
    if (!admin && spec->value_len > limits.max_value_bytes)
        return 0x03;
    bool right = extras_fit(shape, spec->extras_len) && key_fits(shape, spec->key_len) &&
                 spec->value_len >= shape->value_min && spec->value_len <= shape->value_max &&
                 (shape->cas_any || spec->cas == 0) &&
                 (spec->datatype == 0 || (spec->datatype == 1 && json));
    return right ? 0 : 0x04;
}

// Decodes a frame of which only the header exists, as the decoder looks at nothing else.
static void check_one(const struct frame_spec *spec, bool json)
{
    uint8_t header[HG_FRAME_HEADER_BYTES];
    put_header(header, spec);
    struct hg_frame frame;
    enum hg_codec codec = hg_frame_decode(header, sizeof header, &limits, &frame);
    assert_int_not_equal(codec, HG_BAD);
    const char *why = NULL;
    uint16_t got = hg_frame_check(&frame, json ? HG_FEATURE_JSON : 0, &why);
    uint16_t want = judge(spec, json);
    if (got != want)
        fail_msg("opcode %02x extras %u key %u value %u cas %u type %u json %d: %02x, not %02x",
                 spec->opcode, spec->extras_len, spec->key_len, spec->value_len,
                 (unsigned)spec->cas, spec->datatype, json, got, want);
    assert_int_equal(why != NULL, want != 0);
}

static void test_every_opcode_with_every_length_of_extras(void **state)
{
    (void)state;
    static const uint16_t keys[] = {0, 1, 2, 16, 249, 250, 251, 255, 256, 300, 65535};
    static const uint32_t values[] = {0, 1, 2, 3, 100};
    for (unsigned code = 0; code < 256; code++)
        for (unsigned extras = 0; extras < 256; extras++)
            for (size_t k = 0; k < HG_COUNT_OF(keys); k++)
                for (size_t v = 0; v < HG_COUNT_OF(values); v++) {
                    struct frame_spec spec = {.opcode = (uint8_t)code,
                                              .extras_len = (uint8_t)extras,
                                              .key_len = keys[k],
                                              .value_len = values[v]};
                    check_one(&spec, false);
                    spec.alt = true;
                    if (keys[k] <= 255)
                        check_one(&spec, false);
                }
}

static void test_every_opcode_with_every_length_of_key(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        const struct shape *shape = shape_of((uint8_t)code);
        for (unsigned key = 0; key < 65536; key++) {
            struct frame_spec spec = {.opcode = (uint8_t)code, .key_len = (uint16_t)key};
            spec.extras_len = shape ? (uint8_t)shape->extras[0] : 0;
            spec.value_len = shape ? shape->value_min : 0;
            check_one(&spec, false);
        }
    }
}

static void test_every_opcode_at_the_edges_of_the_value(void **state)
{
    (void)state;
    static const uint32_t edges[] = {
        0,       1,   2,       3,       KIB - 1, KIB, KIB + 1, 16 * KIB, 16 * KIB + 1,
        MIB - 1, MIB, MIB + 1, 2 * MIB, 19 * MIB};
    for (unsigned code = 0; code < 256; code++) {
        const struct shape *shape = shape_of((uint8_t)code);
        for (size_t v = 0; v < HG_COUNT_OF(edges); v++) {
            struct frame_spec spec = {.opcode = (uint8_t)code, .value_len = edges[v]};
            spec.extras_len = shape ? (uint8_t)shape->extras[0] : 0;
            spec.key_len = shape && shape->key == 'R' ? 5 : 0;
            check_one(&spec, false);
            spec.extras_len++;
            check_one(&spec, false);
        }
    }
}

static void test_every_opcode_with_every_data_type_and_cas(void **state)
{
    (void)state;
    static const uint64_t cas[] = {0, 1, UINT64_C(1) << 32, UINT64_MAX};
    for (unsigned code = 0; code < 256; code++) {
        const struct shape *shape = shape_of((uint8_t)code);
        for (unsigned type = 0; type < 256; type++)
            for (size_t c = 0; c < HG_COUNT_OF(cas); c++)
                for (unsigned json = 0; json < 2; json++) {
                    struct frame_spec spec = {
                        .opcode = (uint8_t)code, .datatype = (uint8_t)type, .cas = cas[c]};
                    spec.extras_len = shape ? (uint8_t)shape->extras[0] : 0;
                    spec.key_len = shape && shape->key == 'R' ? 5 : 0;
                    spec.value_len = shape ? shape->value_min : 0;
                    check_one(&spec, json == 1);
                }
    }
}

// A frame's extras and data type must not look like the mark of rows that have no quick test.
static void test_no_header_passes_for_the_mark_of_rows_without_quick_test(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++)
        for (unsigned type = 0; type < 256; type += 255) {
            struct frame_spec spec = {.opcode = (uint8_t)code,
                                      .extras_len = 255,
                                      .datatype = (uint8_t)type,
                                      .key_len = 10};
            check_one(&spec, false);
        }
}

static void test_what_clients_send_all_day_is_recognised_quickly(void **state)
{
    (void)state;
    static const uint8_t daily[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x09,
                                    0x0c, 0x0d, 0x0e, 0x0f, 0x11, 0x12, 0x13, 0x14,
                                    0x15, 0x16, 0x1c, 0x1d, 0x1e, 0x23};
    for (size_t i = 0; i < HG_COUNT_OF(daily); i++) {
        const struct shape *shape = shape_of(daily[i]);
        struct frame_spec spec = {.opcode = daily[i],
                                  .extras_len = (uint8_t)shape->extras[0],
                                  .key_len = 250,
                                  .value_len = shape->value_max == ITEM ? MIB : 0};
        uint8_t header[HG_FRAME_HEADER_BYTES];
        put_header(header, &spec);
        struct hg_frame frame;
        assert_int_equal(hg_frame_decode(header, sizeof header, &limits, &frame), HG_MORE);
        assert_false(frame.odd);
    }
}

static void expect_text(const struct frame_spec *spec, const char *want)
{
    uint8_t header[HG_FRAME_HEADER_BYTES];
    put_header(header, spec);
    struct hg_frame frame;
    const char *why = NULL;
    assert_int_not_equal(hg_frame_decode(header, sizeof header, &limits, &frame), HG_BAD);
    assert_int_not_equal(hg_frame_check(&frame, 0, &why), 0);
    assert_string_equal(why, want);
}

static void test_the_text_names_the_first_rule_that_is_broken(void **state)
{
    (void)state;
    expect_text(&(struct frame_spec){.opcode = 0x00, .extras_len = 1}, "Get takes no extras");
    expect_text(&(struct frame_spec){.opcode = 0x00}, "Get takes a key of 1 to 250 bytes");
    expect_text(&(struct frame_spec){.opcode = 0x00, .key_len = 251},
                "Get takes a key of 1 to 250 bytes");
    expect_text(&(struct frame_spec){.opcode = 0x00, .key_len = 1, .value_len = 1},
                "Get takes no value");
    expect_text(&(struct frame_spec){.opcode = 0x02, .extras_len = 8, .key_len = 1, .cas = 7},
                "Add takes CAS 0");
    expect_text(&(struct frame_spec){.opcode = 0x00, .key_len = 1, .datatype = 1},
                "data type 0x01 (JSON) is accepted after HELLO JSON (0x0b) only");
    expect_text(&(struct frame_spec){.opcode = 0x00, .key_len = 1, .datatype = 2},
                "data type has unknown bits: 0x00 (raw) and 0x01 (JSON) are accepted");
    expect_text(&(struct frame_spec){.opcode = 0x99, .extras_len = 9}, "unknown opcode");
    expect_text(&(struct frame_spec){.opcode = 0x1b}, "Verbosity takes 4 bytes of extras");
    expect_text(&(struct frame_spec){.opcode = 0xfe, .value_len = 1},
                "GetErrorMap takes a value of 2 bytes");
    expect_text(&(struct frame_spec){.opcode = 0x10, .key_len = 251},
                "Stat takes a key of at most 250 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_opcode_with_every_length_of_extras),
        cmocka_unit_test(test_every_opcode_with_every_length_of_key),
        cmocka_unit_test(test_every_opcode_at_the_edges_of_the_value),
        cmocka_unit_test(test_every_opcode_with_every_data_type_and_cas),
        cmocka_unit_test(test_no_header_passes_for_the_mark_of_rows_without_quick_test),
        cmocka_unit_test(test_what_clients_send_all_day_is_recognised_quickly),
        cmocka_unit_test(test_the_text_names_the_first_rule_that_is_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
