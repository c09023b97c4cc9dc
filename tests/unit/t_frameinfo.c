// t_frameinfo - framing extras are read with every escape, and written as clients read them
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/attr.h"
#include "proto/frameinfo.h"
#include "proto/status.h"

// Decodes from memory of exactly that size.
static uint16_t decode(const void *bytes, size_t len, struct hg_frameinfo *info)
{
    static uint8_t copy[600];
    const char *why = NULL;
    uint8_t *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, len);
    uint16_t status = hg_frameinfo_decode(hg_span(exact, len), info, &why);
    assert_int_equal(why != NULL, status != 0);
    if (status == 0 && info->impersonate) {
        memcpy(copy, info->user.at, info->user.len);
        info->user.at = copy;
    }
    free(exact);
    return status;
}

#define DECODE(literal, info) decode(literal, sizeof(literal) - 1, info)

static void test_what_is_accepted(void **state)
{
    (void)state;
    struct hg_frameinfo info;
    assert_int_equal(DECODE("", &info), 0);
    assert_false(info.barrier || info.impersonate || info.external);
    assert_int_equal(info.user.len, 0);
    assert_int_equal(DECODE("\x00", &info), 0);
    assert_true(info.barrier);
    assert_int_equal(DECODE("\x43joe", &info), 0);
    assert_true(info.impersonate && !info.external && hg_span_is(info.user, "joe"));
    assert_int_equal(DECODE("\x44^joe", &info), 0);
    assert_true(info.impersonate && info.external && hg_span_is(info.user, "joe"));
    assert_int_equal(DECODE("\x00\x42jo\x00", &info), 0);
    assert_true(info.barrier && info.impersonate && hg_span_is(info.user, "jo"));
}

static void test_escaped_lengths(void **state)
{
    (void)state;
    uint8_t bytes[2 + 15 + 255];
    memset(bytes, 'u', sizeof bytes);
    bytes[0] = 0x4f;
    struct hg_frameinfo info;
    for (unsigned extra = 0; extra < 256; extra++) {
        bytes[1] = (uint8_t)extra;
        size_t len = 15 + extra;
        assert_int_equal(decode(bytes, 2 + len, &info), 0);
        assert_int_equal(info.user.len, len);
        assert_int_equal(decode(bytes, 2 + len - 1, &info), 0x04);
    }
    assert_int_equal(decode(bytes, 1, &info), 0x04);
    // An escape may say 14 or less by nothing: 15 is the least it can say.
    assert_int_equal(DECODE("\x4e"
                            "aaaaaaaaaaaaaa",
                            &info),
                     0);
    assert_int_equal(info.user.len, 14);
}

static void test_escaped_ids_are_unknown(void **state)
{
    (void)state;
    struct hg_frameinfo info;
    for (unsigned id = 0; id < 256; id++) {
        uint8_t bytes[] = {0xf0, (uint8_t)id};
        assert_int_equal(decode(bytes, 2, &info), 0x80); // 15 and above
    }
    assert_int_equal(DECODE("\xf0", &info), 0x04);         // the id is cut off
    assert_int_equal(DECODE("\xff\x00", &info), 0x04);     // the length is cut off
    assert_int_equal(DECODE("\xff\x00\x00", &info), 0x04); // the data is cut off
    assert_int_equal(DECODE("\xf1\x00q", &info), 0x80);
    uint8_t both[3 + 17] = {0xff, 3, 2};
    assert_int_equal(decode(both, sizeof both, &info), 0x80);
    assert_int_equal(decode(both, sizeof both - 1, &info), 0x04);
}

static void test_unknown_and_not_supported(void **state)
{
    (void)state;
    struct hg_frameinfo info;
    static const struct {
        const char *bytes;
        size_t len;
        uint16_t status;
    } cases[] = {
        {"\x11\x01", 2, 0x83},
        {"\x13\x01\x00\x10", 4, 0x83}, // durability
        {"\x10", 1, 0x04},
        {"\x12\x01\x00", 3, 0x04},
        {"\x22\x00\x01", 3, 0x83},
        {"\x21\x00", 2, 0x04}, // stream id
        {"\x50", 1, 0x83},
        {"\x51\x00", 2, 0x04}, // preserve ttl
        {"\x64Read", 5, 0x83},
        {"\x60", 1, 0x04},     // extra privilege
        {"\x01\x00", 2, 0x04}, // barrier with data
        {"\x40", 1, 0x04},
        {"\x41^", 2, 0x04}, // nobody
        {"\x41"
         "a"
         "\x41"
         "b",
         4, 0x04}, // two of them
        {"\x30", 1, 0x80},
        {"\x70", 1, 0x80},
        {"\x72\x00\x01", 3, 0x80},
        {"\xe0", 1, 0x80},
        {"\x43jo", 3, 0x04},       // cut off
        {"\x00\x70", 2, 0x80},     // after a good one
        {"\x11\x01\x43", 3, 0x83}, // the first fault counts
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++)
        assert_int_equal(decode(cases[i].bytes, cases[i].len, &info), cases[i].status);
}

static void test_a_refused_info_is_not_written(void **state)
{
    (void)state;
    struct hg_frameinfo info;
    memset(&info, 0xaa, sizeof info);
    struct hg_frameinfo before = info;
    const char *why;
    assert_int_equal(hg_frameinfo_decode(HG_SPAN_LIT("\x00\x42jo\x70"), &info, &why), 0x80);
    assert_memory_equal(&info, &before, sizeof info);
}

static void test_usage_is_written_where_it_is_not_zero(void **state)
{
    (void)state;
    uint8_t out[HG_FRAMEINFO_USAGE_MAX];
    struct hg_frameinfo_usage usage = {0};
    assert_int_equal(hg_frameinfo_encode(&usage, out), 0);
    usage = (struct hg_frameinfo_usage){.read_units = 3, .write_units = 4, .throttle_us = 5};
    assert_int_equal(hg_frameinfo_encode(&usage, out), 0); // nothing was negotiated
    usage = (struct hg_frameinfo_usage){.units = true};
    assert_int_equal(hg_frameinfo_encode(&usage, out), 0);
    usage = (struct hg_frameinfo_usage){.tracing = true};
    assert_int_equal(hg_frameinfo_encode(&usage, out), 3);
    assert_memory_equal(out, "\x02\x00\x00", 3);
    usage = (struct hg_frameinfo_usage){.units = true, .write_units = 0x1234};
    assert_int_equal(hg_frameinfo_encode(&usage, out), 3);
    assert_memory_equal(out, "\x22\x12\x34", 3);
    usage = (struct hg_frameinfo_usage){.tracing = true,
                                        .units = true,
                                        .server_us = 1000,
                                        .read_units = 65536,
                                        .write_units = UINT64_MAX,
                                        .throttle_us = UINT64_MAX};
    assert_int_equal(hg_frameinfo_encode(&usage, out), HG_FRAMEINFO_USAGE_MAX);
    assert_memory_equal(out, "\x02\x00\x4f\x12\xff\xff\x22\xff\xff\x32\xff\xff", 12);
}

// The formula as the protocol's document has it, with the mathematical library.
static unsigned packed_by_formula(uint64_t us)
{
    if (us > 120125042)
        us = 120125042;
    return (unsigned)round(pow((double)us * 2, 1.0 / 1.74));
}

static void test_packed_time_follows_the_formula(void **state)
{
    (void)state;
    for (uint64_t us = 0; us < 200000; us++)
        assert_int_equal(hg_frameinfo_pack_us(us), packed_by_formula(us));
    for (uint64_t us = 200000; us < 130000000; us += 37)
        assert_int_equal(hg_frameinfo_pack_us(us), packed_by_formula(us));
    for (uint64_t us = 120125000; us < 120125100; us++)
        assert_int_equal(hg_frameinfo_pack_us(us), packed_by_formula(us));
    assert_int_equal(hg_frameinfo_pack_us(UINT64_MAX), 65535);
    assert_int_equal(hg_frameinfo_pack_us(UINT64_C(1) << 63), 65535);
}

static void test_unpacking_gives_the_time_back(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (unsigned packed = 0; packed <= 65535; packed++) {
        uint64_t us = hg_frameinfo_unpack_us((uint16_t)packed);
        double exact = pow(packed, 1.74) / 2;
        assert_true(fabs((double)us - exact) <= 1);
        assert_true(us >= before);
        before = us;
        if (packed > 20) // below, several packed times are less than a microsecond apart
            assert_true(abs((int)hg_frameinfo_pack_us(us) - (int)packed) <= 1);
    }
    assert_true(before > 119000000 && before < 121000000); // two minutes
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_accepted),
        cmocka_unit_test(test_escaped_lengths),
        cmocka_unit_test(test_escaped_ids_are_unknown),
        cmocka_unit_test(test_unknown_and_not_supported),
        cmocka_unit_test(test_a_refused_info_is_not_written),
        cmocka_unit_test(test_usage_is_written_where_it_is_not_zero),
        cmocka_unit_test(test_packed_time_follows_the_formula),
        cmocka_unit_test(test_unpacking_gives_the_time_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
