// t_keyslot - slots of keys, and where a redirect leads
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/attr.h"
#include "base/prng.h"
#include "proto/keyslot.h"
#include "proto/redirect.h"

static void t_crc_is_xmodem(void **state)
{
    (void)state;
    assert_int_equal(hg_keyslot_crc16(HG_SPAN_LIT("123456789")), 0x31c3);
    assert_int_equal(hg_keyslot_crc16(HG_SPAN_NONE), 0);
    assert_int_equal(hg_keyslot_crc16(HG_SPAN_LIT("A")), 0x58e5);
}

/* As the definition says, bit by bit. */
static uint16_t slow_crc(const uint8_t *at, size_t len)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < len * 8; i++) {
        uint32_t bit = at[i / 8] >> (7 - i % 8) & 1;
        uint32_t top = crc >> 15 & 1;
        crc = (crc << 1 & 0xffff) ^ (top != bit ? 0x1021 : 0);
    }
    return (uint16_t)crc;
}

static void t_crc_is_the_definition(void **state)
{
    (void)state;
    struct hg_prng prng = {3};
    uint8_t bytes[300];
    for (int round = 0; round < 20000; round++) {
        size_t len = round < 300 ? (size_t)round : hg_prng_below(&prng, sizeof bytes + 1);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)hg_prng_next(&prng);
        assert_int_equal(hg_keyslot_crc16(hg_span(bytes, len)), slow_crc(bytes, len));
    }
}

/* What redis-server 7.0 answers to CLUSTER KEYSLOT. */
static void t_slots(void **state)
{
    (void)state;
    static const struct {
        struct hg_span key;
        uint32_t slot;
    } rows[] = {
        {HG_SPAN_LIT("123456789"), 12739}, {HG_SPAN_LIT("foo"), 12182},
        {HG_SPAN_LIT("bar"), 5061},        {HG_SPAN_LIT(""), 0},
        {HG_SPAN_LIT("{foo}"), 12182},     {HG_SPAN_LIT("a{foo}b{bar}"), 12182},
        {HG_SPAN_LIT("{{foo}"), 13308},    {HG_SPAN_LIT("}{foo}"), 12182},
    };
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++)
        assert_int_equal(hg_keyslot_of(rows[i].key), rows[i].slot);
}

static void t_tags(void **state)
{
    (void)state;
    struct hg_span whole[] = {HG_SPAN_LIT("foo{}{bar}"), HG_SPAN_LIT("{"),     HG_SPAN_LIT("{}"),
                              HG_SPAN_LIT("a{b"),        HG_SPAN_LIT("a}b{c"), HG_SPAN_LIT("}{")};
    for (size_t i = 0; i < HG_COUNT_OF(whole); i++)
        assert_int_equal(hg_keyslot_of(whole[i]), hg_keyslot_crc16(whole[i]) % HG_KEYSLOTS);
    assert_int_equal(hg_keyslot_of(HG_SPAN_LIT("{user1000}.following")),
                     hg_keyslot_of(HG_SPAN_LIT("{user1000}.followers")));
    assert_int_equal(hg_keyslot_of(HG_SPAN_LIT("foo{{bar}}zap")),
                     hg_keyslot_of(HG_SPAN_LIT("{bar")));
    assert_int_equal(hg_keyslot_of(HG_SPAN_LIT("x{t\0u}y")), hg_keyslot_of(HG_SPAN_LIT("t\0u")));
}

static void expect(const char *text, const char *asked, bool ask, uint16_t slot,
                   const char *address)
{
    struct hg_redirect redirect;
    assert_true(hg_redirect_decode(hg_span_str(text), asked, &redirect));
    assert_int_equal(redirect.ask, ask);
    assert_int_equal(redirect.slot, slot);
    assert_string_equal(redirect.address, address);
}

static void t_redirects(void **state)
{
    (void)state;
    expect("MOVED 3999 127.0.0.1:6381", "x:1", false, 3999, "127.0.0.1:6381");
    expect("ASK 0 127.0.0.1:1", "x:1", true, 0, "127.0.0.1:1");
    expect("MOVED 16383 ::1:6381", "x:1", false, 16383, "[::1]:6381");
    expect("MOVED 16383 [fe80::1%eth0]:6381", "x:1", false, 16383, "[fe80::1%eth0]:6381");
    expect("MOVED 1 node-3.example.org:65535", "x:1", false, 1, "node-3.example.org:65535");
    expect("MOVED 1 :7000", "10.0.0.1:6379", false, 1, "10.0.0.1:7000");
    expect("MOVED 1 :7000", "[::1]:6379", false, 1, "[::1]:7000");
    expect("MOVED 1 :7000", "some-host", false, 1, "some-host:7000");
}

static void t_no_redirects(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "MOVED",
        "MOVED ",
        "MOVED 1",
        "MOVED 1 ",
        "MOVED 1 host",
        "MOVED 1 host:",
        "MOVED 1 host:0",
        "MOVED 1 host:65536",
        "MOVED 1 host:999999",
        "MOVED 1 host:-1",
        "MOVED 1 host:1 more",
        "MOVED 16384 host:1",
        "MOVED 99999999999999999999 host:1",
        "MOVED -1 host:1",
        "MOVED x host:1",
        "MOVED  1 host:1",
        "MOVED 1 ?:6379",
        "MOVED 1 ho/st:1",
        "MOVED 1 ho\nst:1",
        "moved 1 host:1",
        "ASKING 1 host:1",
        "ERR 1 host:1",
        "MOVED 1 []:1",
    };
    struct hg_redirect redirect;
    for (size_t i = 0; i < HG_COUNT_OF(texts); i++) {
        if (hg_redirect_decode(hg_span_str(texts[i]), "x:1", &redirect))
            fail_msg("'%s' was taken for a redirect to '%s'", texts[i], redirect.address);
    }
    assert_false(hg_redirect_decode(hg_span_str("MOVED 1 :7000"), "unix:/run/redis", &redirect));
    assert_false(hg_redirect_decode(HG_SPAN_LIT("MOVED 1 a\0b:7000"), "x:1", &redirect));
    char longest[300], text[400];
    memset(longest, 'h', sizeof longest);
    snprintf(text, sizeof text, "MOVED 1 %.*s:7000", HG_REDIRECT_HOST_MAX, longest);
    assert_true(hg_redirect_decode(hg_span_str(text), "x:1", &redirect));
    snprintf(text, sizeof text, "MOVED 1 %.*s:7000", HG_REDIRECT_HOST_MAX + 1, longest);
    assert_false(hg_redirect_decode(hg_span_str(text), "x:1", &redirect));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_crc_is_xmodem), cmocka_unit_test(t_crc_is_the_definition),
        cmocka_unit_test(t_slots),         cmocka_unit_test(t_tags),
        cmocka_unit_test(t_redirects),     cmocka_unit_test(t_no_redirects),
    };
    return cmocka_run_group_tests_name("keyslot", tests, NULL, NULL);
}
