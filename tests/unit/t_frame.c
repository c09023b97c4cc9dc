// t_frame - frames are cut at the right place, however the bytes arrive
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/attr.h"
#include "proto/frame.h"
#include "proto/status.h"
#include "frames.h"

#define MIB (1024u * 1024u)

static const struct hg_frame_limits limits = {20 * MIB, MIB};

// Decodes from memory of exactly that size, so that a read past it is found by the sanitizer.
static enum hg_codec decode_exactly(const uint8_t *bytes, size_t have,
                                    const struct hg_frame_limits *with, struct hg_frame *frame)
{
    uint8_t *copy = malloc(have ? have : 1);
    assert_non_null(copy);
    if (have > 0)
        memcpy(copy, bytes, have);
    enum hg_codec codec = hg_frame_decode(copy, have, with, frame);
    free(copy);
    return codec;
}

static void test_the_parts_of_a_frame_lie_where_they_should(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    for (unsigned framing = 0; framing <= 20; framing += 10) {
        struct frame_spec spec = {.opcode = 0x01,
                                  .extras_len = 8,
                                  .framing_len = (uint8_t)framing,
                                  .key_len = 5,
                                  .value_len = 100,
                                  .cas = 0x1122334455667788u};
        size_t total = put_frame(bytes, &spec);
        struct hg_frame frame;
        assert_int_equal(hg_frame_decode(bytes, total, &limits, &frame), HG_OK);
        assert_int_equal(frame.kind, HG_FRAME_WHOLE);
        assert_ptr_equal(frame.row, hg_opcode_row(0x01));
        assert_int_equal(frame.opcode, 0x01);
        assert_int_equal(frame.datatype, 0);
        assert_true(frame.cas == 0x1122334455667788u);
        assert_int_equal(frame.total_bytes, total);
        assert_memory_equal(&frame.opaque, bytes + 12, 4);
        struct hg_span parts[] = {hg_frame_framing(&frame), hg_frame_extras(&frame), frame.key,
                                  hg_frame_value(&frame)};
        size_t lengths[] = {framing, 8, 5, 100};
        const uint8_t *at = bytes + 24;
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(parts[i].len, lengths[i]);
            assert_ptr_equal(parts[i].at, at);
            if (lengths[i] > 0)
                assert_int_equal(*at, "fekv"[i]);
            at += lengths[i];
        }
        const char *why = NULL;
        assert_int_equal(hg_frame_check(&frame, 0, &why), 0);
        assert_null(why);
    }
}

static void test_whole_is_the_same_as_split_at_every_byte(void **state)
{
    (void)state;
    static const struct frame_spec specs[] = {
        {.opcode = 0x00, .key_len = 1},
        {.opcode = 0x0a},
        {.opcode = 0x01, .extras_len = 8, .key_len = 250, .value_len = 300},
        {.opcode = 0x01, .extras_len = 8, .key_len = 3},
        {.opcode = 0x05, .extras_len = 20, .key_len = 7},
        {.opcode = 0x00, .key_len = 9, .framing_len = 6},
        {.opcode = 0x00, .key_len = 9, .alt = true},
        {.opcode = 0xee, .extras_len = 4, .key_len = 9, .value_len = 20},
        {.opcode = 0x00, .extras_len = 4, .key_len = 9, .value_len = 20},
    };
    uint8_t bytes[1024];
    for (size_t i = 0; i < HG_COUNT_OF(specs); i++) {
        size_t total = put_frame(bytes, &specs[i]);
        const char *why_whole = NULL, *why_part = NULL;
        struct hg_frame whole, part;
        assert_int_equal(hg_frame_decode(bytes, total, &limits, &whole), HG_OK);
        uint16_t status = hg_frame_check(&whole, 0, &why_whole);
        for (size_t have = 0; have < total; have++) {
            assert_int_equal(decode_exactly(bytes, have, &limits, &part), HG_MORE);
            assert_int_equal(part.total_bytes, have < 24 ? 24 : total);
            if (have < 24)
                continue;
            // The header is there: everything is known but the bytes of the body.
            assert_int_equal(part.opcode, whole.opcode);
            assert_int_equal(part.opaque, whole.opaque);
            assert_int_equal(part.key.len, whole.key.len);
            assert_int_equal(hg_frame_value(&part).len, hg_frame_value(&whole).len);
            assert_int_equal(hg_frame_check(&part, 0, &why_part), status);
            assert_ptr_equal(why_part, why_whole);
        }
        // What follows a frame is not its business.
        memset(bytes + total, 0xff, sizeof bytes - total);
        assert_int_equal(hg_frame_decode(bytes, sizeof bytes, &limits, &part), HG_OK);
        assert_int_equal(part.total_bytes, total);
    }
}

static void test_many_frames_in_one_segment(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    size_t have = 0, count = 0, at = 0;
    while (have + 400 < sizeof bytes) {
        struct frame_spec spec = {.opcode = count % 3 == 0   ? 0x00
                                            : count % 3 == 1 ? 0x01
                                                             : 0xdd,
                                  .extras_len = count % 3 == 1 ? 8 : 0,
                                  .key_len = (uint16_t)(1 + count % 50),
                                  .value_len = count % 3 == 0 ? 0 : (uint32_t)count};
        have += put_frame(bytes + have, &spec);
        count++;
    }
    size_t seen = 0;
    while (at < have) {
        struct hg_frame frame;
        const char *why;
        assert_int_equal(hg_frame_decode(bytes + at, have - at, &limits, &frame), HG_OK);
        assert_int_equal(frame.key.len, 1 + seen % 50);
        assert_int_equal(hg_frame_check(&frame, 0, &why), seen % 3 == 2 ? 0x81 : 0);
        at += frame.total_bytes;
        seen++;
    }
    assert_int_equal(at, have);
    assert_int_equal(seen, count);
}

static void expect_bad(const uint8_t *header, const struct hg_frame_limits *with,
                       enum hg_frame_kind kind, uint16_t status)
{
    struct hg_frame frame;
    const char *why = NULL;
    assert_int_equal(decode_exactly(header, 24, with, &frame), HG_BAD);
    assert_int_equal(frame.kind, kind);
    assert_int_equal(frame.opcode, header[1]);
    assert_memory_equal(&frame.opaque, header + 12, 4);
    assert_int_equal(frame.key.len, 0);
    assert_int_equal(hg_frame_check(&frame, 0, &why), status);
    assert_non_null(why);
    assert_int_not_equal(*why, 0);
}

static void test_lengths_beyond_every_sign(void **state)
{
    (void)state;
    static const uint32_t bodies[] = {0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};
    for (unsigned code = 0; code < 256; code++)
        for (size_t i = 0; i < HG_COUNT_OF(bodies); i++) {
            uint8_t header[24];
            put_header(header, &(struct frame_spec){.opcode = (uint8_t)code, .key_len = 3});
            hg_put_u32(header + 8, bodies[i]);
            expect_bad(header, &limits, HG_FRAME_TOO_LONG, 0x03);
            // Even if the limits allowed all: no sum wraps around.
            static const struct hg_frame_limits none = {UINT32_MAX, UINT32_MAX};
            struct hg_frame frame;
            assert_int_equal(decode_exactly(header, 24, &none, &frame), HG_MORE);
            assert_true(frame.total_bytes == UINT64_C(24) + bodies[i]);
        }
}

static void test_parts_longer_than_the_body(void **state)
{
    (void)state;
    static const struct hg_frame_limits none = {UINT32_MAX, UINT32_MAX};
    for (unsigned code = 0; code < 256; code++) {
        uint8_t header[24];
        struct frame_spec spec = {.opcode = (uint8_t)code, .extras_len = 8, .key_len = 5};
        for (uint32_t body = 0; body < 13; body++) {
            put_header(header, &spec);
            hg_put_u32(header + 8, body);
            expect_bad(header, &limits, HG_FRAME_BAD_LENGTHS, 0x04);
            expect_bad(header, &none, HG_FRAME_BAD_LENGTHS, 0x04);
        }
        spec = (struct frame_spec){
            .opcode = (uint8_t)code, .extras_len = 8, .key_len = 5, .framing_len = 7};
        for (uint32_t body = 0; body < 20; body++) {
            put_header(header, &spec);
            hg_put_u32(header + 8, body);
            expect_bad(header, &limits, HG_FRAME_BAD_LENGTHS, 0x04);
            expect_bad(header, &none, HG_FRAME_BAD_LENGTHS, 0x04);
        }
    }
    // A key of 65535 bytes and extras of 255, and a body that is one byte short of it.
    uint8_t header[24];
    put_header(header, &(struct frame_spec){.opcode = 1, .extras_len = 255, .key_len = 65535});
    hg_put_u32(header + 8, 65535 + 254);
    expect_bad(header, &limits, HG_FRAME_BAD_LENGTHS, 0x04);
    // Contradicting lengths go before a limit that is broken as well.
    static const struct hg_frame_limits tiny = {10, 10};
    hg_put_u32(header + 8, 11);
    expect_bad(header, &tiny, HG_FRAME_BAD_LENGTHS, 0x04);
}

static void test_the_frame_limit_is_exact(void **state)
{
    (void)state;
    static const struct hg_frame_limits before_login = {16384, MIB};
    uint8_t header[24];
    struct hg_frame frame;
    struct frame_spec spec = {.opcode = 0x21, .key_len = 5, .value_len = 16384 - 5};
    put_header(header, &spec);
    assert_int_equal(hg_frame_decode(header, 24, &before_login, &frame), HG_MORE);
    spec.value_len++;
    put_header(header, &spec);
    expect_bad(header, &before_login, HG_FRAME_TOO_LONG, 0x03);
    assert_int_equal(hg_frame_decode(header, 24, &before_login, &frame), HG_BAD);
    char text[128];
    size_t len = hg_frame_explain(&frame, &before_login, "", text, sizeof text);
    assert_string_equal(text, "body of 16385 bytes, at most 16384 are accepted (max_frame_bytes)");
    assert_int_equal(len, strlen(text));
}

static void test_a_value_over_the_item_limit_is_skipped_at_its_header(void **state)
{
    (void)state;
    struct frame_spec spec = {.opcode = 0x01, .extras_len = 8, .key_len = 5, .value_len = MIB + 1};
    uint8_t header[24];
    put_header(header, &spec);
    struct hg_frame frame;
    const char *why = NULL;
    char text[128];
    assert_int_equal(decode_exactly(header, 24, &limits, &frame), HG_OK);
    assert_int_equal(frame.kind, HG_FRAME_SKIP);
    assert_int_equal(frame.total_bytes, 24 + 8 + 5 + MIB + 1);
    assert_int_equal(hg_frame_check(&frame, 0, &why), 0x03);
    hg_frame_explain(&frame, &limits, why, text, sizeof text);
    assert_string_equal(text,
                        "value of 1048577 bytes, at most 1048576 are accepted (max_value_bytes)");
    spec.framing_len = 9;
    put_header(header, &spec);
    assert_int_equal(decode_exactly(header, 24, &limits, &frame), HG_OK);
    assert_int_equal(frame.kind, HG_FRAME_SKIP);
    hg_frame_explain(&frame, &limits, why, text, sizeof text);
    assert_string_equal(text,
                        "value of 1048577 bytes, at most 1048576 are accepted (max_value_bytes)");
    spec.framing_len = 0;
    spec.value_len = MIB;
    put_header(header, &spec);
    assert_int_equal(decode_exactly(header, 24, &limits, &frame), HG_MORE);
    for (size_t have = 0; have < 24; have++)
        assert_int_equal(decode_exactly(header, have, &limits, &frame), HG_MORE);
}

static void test_an_unknown_opcode_with_a_large_body_is_skipped_as_unknown(void **state)
{
    (void)state;
    uint8_t header[24];
    struct hg_frame frame;
    const char *why = NULL;
    char text[64];
    put_header(header, &(struct frame_spec){.opcode = 0xdd, .key_len = 5, .value_len = 2 * MIB});
    assert_int_equal(decode_exactly(header, 24, &limits, &frame), HG_OK);
    assert_int_equal(frame.kind, HG_FRAME_SKIP);
    assert_null(frame.row);
    assert_int_equal(hg_frame_check(&frame, 0, &why), 0x81);
    hg_frame_explain(&frame, &limits, why, text, sizeof text);
    assert_string_equal(text, "unknown opcode 0xdd");
}

static void test_values_of_administration_have_their_own_limits(void **state)
{
    (void)state;
    static const struct hg_frame_limits small_items = {20 * MIB, 100};
    uint8_t header[24];
    struct hg_frame frame;
    const char *why = NULL;
    char text[128];
    put_header(header, &(struct frame_spec){.opcode = 0x25, .value_len = MIB});
    assert_int_equal(decode_exactly(header, 24, &small_items, &frame), HG_MORE);
    assert_int_equal(hg_frame_check(&frame, 0, &why), 0);
    put_header(header, &(struct frame_spec){.opcode = 0x25, .value_len = MIB + 1});
    assert_int_equal(decode_exactly(header, 24, &small_items, &frame), HG_OK);
    assert_int_equal(frame.kind, HG_FRAME_SKIP);
    assert_int_equal(hg_frame_check(&frame, 0, &why), 0x04);
    hg_frame_explain(&frame, &small_items, why, text, sizeof text);
    assert_string_equal(text, "ConfigValidate takes a value of 1 to 1048576 bytes, not of 1048577");
    // Under the item limit it is read, and then refused.
    put_header(header, &(struct frame_spec){.opcode = 0x2c, .value_len = 1025});
    assert_int_equal(decode_exactly(header, 24, &limits, &frame), HG_MORE);
    assert_int_equal(hg_frame_check(&frame, 0, &why), 0x04);
}

static void test_an_explanation_is_cut_to_its_room(void **state)
{
    (void)state;
    uint8_t header[24];
    struct hg_frame frame;
    char text[16];
    put_header(header, &(struct frame_spec){.opcode = 0xdd});
    assert_int_equal(hg_frame_decode(header, 24, &limits, &frame), HG_OK);
    assert_int_equal(hg_frame_explain(&frame, &limits, "", text, 8), 7);
    assert_string_equal(text, "unknown");
    assert_int_equal(hg_frame_explain(&frame, &limits, "", text, 1), 0);
    assert_string_equal(text, "");
    text[0] = 'x';
    assert_int_equal(hg_frame_explain(&frame, &limits, "", text, 0), 0);
    assert_int_equal(text[0], 'x');
    put_header(header, &(struct frame_spec){.opcode = 0x00});
    assert_int_equal(hg_frame_decode(header, 24, &limits, &frame), HG_OK);
    assert_int_equal(hg_frame_explain(&frame, &limits, "as it is", text, sizeof text), 8);
    assert_string_equal(text, "as it is");
}

static void test_other_protocols_are_known_by_their_first_byte(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        enum hg_stranger stranger;
    } strangers[] = {
        {"get foo\r\n", 9, HG_STRANGER_TEXT},
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, HG_STRANGER_TEXT},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24, HG_STRANGER_TEXT},
        {"\r\n", 2, HG_STRANGER_TEXT},
        {"mn\r\n", 4, HG_STRANGER_TEXT},
        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9, HG_STRANGER_TLS},
        {"*1\r\n$4\r\nPING\r\n", 14, HG_STRANGER_RESP},
        {"\x81\x00\x00\x00\x00\x00\x00\x00", 8, HG_STRANGER_OTHER}, // a reply
        {"\x18\x00\x00\x00\x00\x00\x00\x00", 8, HG_STRANGER_OTHER},
        {"\x82\x00\x00\x00\x00\x00\x00\x00", 8, HG_STRANGER_OTHER}, // a server's request
        {"\x00\x00\x00\x54\x00\x03\x00\x00", 8, HG_STRANGER_OTHER}, // PostgreSQL
        {"\xff\xfb\x01", 3, HG_STRANGER_OTHER},                     // telnet
        {"{\"a\":1}", 7, HG_STRANGER_OTHER},
    };
    for (size_t i = 0; i < HG_COUNT_OF(strangers); i++)
        for (size_t have = 1; have <= strangers[i].len; have++) {
            struct hg_frame frame;
            const char *why = NULL;
            assert_int_equal(
                decode_exactly((const uint8_t *)strangers[i].bytes, have, &limits, &frame), HG_BAD);
            assert_int_equal(frame.kind, HG_FRAME_BAD_MAGIC);
            assert_int_equal(frame.stranger, strangers[i].stranger);
            assert_int_not_equal(hg_frame_check(&frame, 0, &why), 0);
            assert_non_null(why);
        }
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[24] = {(uint8_t)first};
        struct hg_frame frame;
        bool ours = first == 0x80 || first == 0x08;
        assert_int_equal(decode_exactly(bytes, 1, &limits, &frame), ours ? HG_MORE : HG_BAD);
        assert_int_equal(decode_exactly(bytes, 24, &limits, &frame), ours ? HG_OK : HG_BAD);
    }
    assert_string_equal(hg_stranger_name(HG_STRANGER_TEXT), "text");
    assert_string_equal(hg_stranger_name(HG_STRANGER_TLS), "tls");
    assert_string_equal(hg_stranger_name(HG_STRANGER_RESP), "resp");
    assert_string_equal(hg_stranger_name(HG_STRANGER_OTHER), "other");
    assert_string_equal(hg_stranger_name((enum hg_stranger)99), "other");
}

// Makes the header again from what was decoded.
static void encode(const struct hg_frame *frame, uint8_t *out)
{
    struct frame_spec spec = {.opcode = frame->opcode,
                              .extras_len = (uint8_t)hg_frame_extras(frame).len,
                              .framing_len = (uint8_t)hg_frame_framing(frame).len,
                              .datatype = frame->datatype,
                              .key_len = (uint16_t)frame->key.len,
                              .value_len = (uint32_t)hg_frame_value(frame).len,
                              .cas = frame->cas,
                              .alt = frame->magic == HG_MAGIC_REQUEST_ALT};
    put_header(out, &spec);
    memcpy(out + 6, &frame->wire_vbucket, 2);
    memcpy(out + 12, &frame->opaque, 4);
}

static void test_encoding_what_was_decoded_gives_the_same_bytes(void **state)
{
    (void)state;
    uint64_t seed = 1;
    unsigned whole = 0;
    for (unsigned round = 0; round < 200000; round++) {
        uint8_t header[24], again[24];
        for (size_t i = 0; i < sizeof header; i += 8) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            hg_put_u64(header + i, seed ^ seed >> 29);
        }
        header[0] = round % 2 ? HG_MAGIC_REQUEST : HG_MAGIC_REQUEST_ALT;
        header[8] = 0;
        header[9] &= 0x0f; // up to 1 MiB
        struct hg_frame frame;
        enum hg_codec codec = hg_frame_decode(header, sizeof header, &limits, &frame);
        if (frame.kind != HG_FRAME_WHOLE)
            continue;
        assert_int_not_equal(codec, HG_BAD);
        encode(&frame, again);
        assert_memory_equal(header, again, sizeof header);
        whole++;
    }
    assert_in_range(whole, 10000, 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_parts_of_a_frame_lie_where_they_should),
        cmocka_unit_test(test_whole_is_the_same_as_split_at_every_byte),
        cmocka_unit_test(test_many_frames_in_one_segment),
        cmocka_unit_test(test_lengths_beyond_every_sign),
        cmocka_unit_test(test_parts_longer_than_the_body),
        cmocka_unit_test(test_the_frame_limit_is_exact),
        cmocka_unit_test(test_a_value_over_the_item_limit_is_skipped_at_its_header),
        cmocka_unit_test(test_an_unknown_opcode_with_a_large_body_is_skipped_as_unknown),
        cmocka_unit_test(test_values_of_administration_have_their_own_limits),
        cmocka_unit_test(test_an_explanation_is_cut_to_its_room),
        cmocka_unit_test(test_other_protocols_are_known_by_their_first_byte),
        cmocka_unit_test(test_encoding_what_was_decoded_gives_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
