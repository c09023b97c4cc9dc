// t_mcreq - requests as memcached reads them, and its replies whatever their size
// SPDX-License-Identifier: BSD-3-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "proto/frame.h"
#include "proto/mcreq.h"
#include "proto/status.h"

static void expect_head(const struct hg_mcreq *req, const char *want, size_t want_len)
{
    uint8_t *out = malloc(HG_MCREQ_HEAD_MAX);
    assert_non_null(out);
    assert_int_equal(hg_mcreq_encode_head(req, out), want_len);
    assert_memory_equal(out, want, want_len);
    free(out);
}

#define EXPECT_HEAD(req, literal) expect_head(req, literal, sizeof(literal) - 1)

static void test_the_bytes_of_each_kind(void **state)
{
    (void)state;
    struct hg_mcreq req = {.opcode = hg_mcreq_opcode(HG_OP_GET), .opaque = 0x01020304};
    req.prefix = HG_SPAN_LIT("shop:");
    req.key = HG_SPAN_LIT("k1");
    EXPECT_HEAD(&req, "\x80\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x07\x01\x02\x03\x04"
                      "\x00\x00\x00\x00\x00\x00\x00\x00shop:k1");
    req.opcode = hg_mcreq_opcode(HG_OP_SET);
    req.value = HG_SPAN_LIT("0123456789");
    req.flags = 0xdeadbeef;
    req.exptime = 60;
    req.cas = 0x1122334455667788;
    EXPECT_HEAD(&req, "\x80\x01\x00\x07\x08\x00\x00\x00\x00\x00\x00\x19\x01\x02\x03\x04"
                      "\x11\x22\x33\x44\x55\x66\x77\x88\xde\xad\xbe\xef\x00\x00\x00\x3cshop:k1");
    req = (struct hg_mcreq){.opcode = hg_mcreq_opcode(HG_OP_DECREMENT),
                            .delta = 5,
                            .initial = UINT64_MAX,
                            .exptime = 0xffffffff,
                            .key = HG_SPAN_LIT("n")};
    EXPECT_HEAD(&req, "\x80\x06\x00\x01\x14\x00\x00\x00\x00\x00\x00\x15\x00\x00\x00\x00"
                      "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05"
                      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffn");
    req.opcode = hg_mcreq_opcode(HG_OP_GAT);
    EXPECT_HEAD(&req, "\x80\x1d\x00\x01\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00"
                      "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xffn");
    req = (struct hg_mcreq){.opcode = hg_mcreq_opcode(HG_OP_FLUSH)};
    EXPECT_HEAD(&req, "\x80\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                      "\x00\x00\x00\x00\x00\x00\x00\x00");
    req.exptime = 10;
    EXPECT_HEAD(&req, "\x80\x08\x00\x00\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00"
                      "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0a");
    req = (struct hg_mcreq){.opcode = HG_OPCODE_NOOP, .opaque = 9};
    EXPECT_HEAD(&req, "\x80\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09"
                      "\x00\x00\x00\x00\x00\x00\x00\x00");
}

static void test_every_operation_is_a_frame_that_the_protocol_accepts(void **state)
{
    (void)state;
    static const struct hg_frame_limits limits = {1 << 20, 1 << 20};
    for (unsigned op = 0; op < HG_OPS_CLASSIC; op++) {
        uint8_t out[HG_MCREQ_HEAD_MAX + 64];
        struct hg_mcreq req = {.opcode = hg_mcreq_opcode((enum hg_op)op), .exptime = 1};
        bool stores = op == HG_OP_SET || op == HG_OP_ADD || op == HG_OP_REPLACE ||
                      op == HG_OP_APPEND || op == HG_OP_PREPEND;
        if (op != HG_OP_FLUSH)
            req.key = HG_SPAN_LIT("key");
        if (stores)
            req.value = HG_SPAN_LIT("value");
        size_t len = hg_mcreq_encode_head(&req, out);
        memcpy(out + len, "value", stores ? 5 : 0);
        len += stores ? 5 : 0;
        struct hg_frame frame;
        const char *why = NULL;
        assert_int_equal(hg_frame_decode(out, len, &limits, &frame), HG_OK);
        assert_int_equal(frame.total_bytes, len);
        assert_int_equal(hg_frame_check(&frame, 0, &why), 0);
        assert_int_equal(frame.row->op, op);
        assert_false(frame.row->quiet);
        assert_false(frame.row->keyed);
    }
}

static void test_prefix_and_key_fit_together_or_not_at_all(void **state)
{
    (void)state;
    static uint8_t letters[300];
    memset(letters, 'k', sizeof letters);
    uint8_t out[HG_MCREQ_HEAD_MAX];
    for (size_t prefix = 0; prefix <= 260; prefix++)
        for (size_t key = 0; key <= 260; key++) {
            struct hg_mcreq req = {.opcode = HG_OPCODE_INCREMENT};
            req.prefix = hg_span(letters, prefix);
            req.key = hg_span(letters, key);
            size_t want = prefix + key <= 250 ? 24 + 20 + prefix + key : 0;
            assert_int_equal(hg_mcreq_encode_head(&req, out), want);
        }
    struct hg_mcreq req = {.opcode = HG_OPCODE_SET, .key = hg_span(letters, 250)};
    req.prefix = hg_span(letters, SIZE_MAX - 200); // the sum would wrap around
    assert_int_equal(hg_mcreq_encode_head(&req, out), 0);
    req.prefix = HG_SPAN_NONE;
    req.value = hg_span(letters, (size_t)UINT32_MAX);
    assert_int_equal(hg_mcreq_encode_head(&req, out), 0);
}

static size_t put_reply(uint8_t *out, uint8_t extras, uint16_t key, uint32_t value)
{
    memset(out, 0, 24);
    out[0] = 0x81;
    out[1] = 0x0c;
    hg_put_u16(out + 2, key);
    out[4] = extras;
    hg_put_u16(out + 6, 0x0105);
    hg_put_u32(out + 8, extras + key + value);
    hg_put_u32(out + 12, 0xcafe0001);
    hg_put_u64(out + 16, 42);
    memset(out + 24, 'e', extras);
    memset(out + 24 + extras, 'k', key);
    memset(out + 24 + extras + key, 'v', value);
    return 24 + (size_t)extras + key + value;
}

static void test_a_reply_split_at_every_byte(void **state)
{
    (void)state;
    uint8_t bytes[512];
    size_t total = put_reply(bytes, 4, 10, 100);
    for (size_t have = 0; have <= total; have++) {
        uint8_t *exact = malloc(have ? have : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, have);
        struct hg_mcreply reply;
        enum hg_codec codec = hg_mcreply_decode(exact, have, 1000, &reply);
        assert_int_equal(codec, have < total ? HG_MORE : HG_OK);
        assert_int_equal(reply.total_bytes, have < 24 ? 24 : total);
        if (have >= 24) {
            assert_int_equal(reply.opcode, 0x0c);
            assert_int_equal(reply.status, 0x0105);
            assert_int_equal(reply.opaque, 0xcafe0001);
            assert_true(reply.cas == 42);
            assert_int_equal(reply.extras.len, 4);
            assert_int_equal(reply.key.len, 10);
            assert_int_equal(reply.value.len, 100);
            assert_ptr_equal(reply.value.at, exact + 24 + 14);
        }
        if (codec == HG_OK)
            assert_true(*reply.extras.at == 'e' && *reply.key.at == 'k' && *reply.value.at == 'v');
        free(exact);
    }
}

static void test_what_is_no_reply(void **state)
{
    (void)state;
    uint8_t bytes[64];
    struct hg_mcreply reply;
    for (unsigned first = 0; first < 256; first++) {
        put_reply(bytes, 0, 0, 0);
        bytes[0] = (uint8_t)first;
        assert_int_equal(hg_mcreply_decode(bytes, 1, 100, &reply),
                         first == 0x81 ? HG_MORE : HG_BAD);
        assert_int_equal(hg_mcreply_decode(bytes, 24, 100, &reply), first == 0x81 ? HG_OK : HG_BAD);
    }
    for (uint32_t body = 0; body < 12; body++) {
        put_reply(bytes, 4, 8, 0);
        hg_put_u32(bytes + 8, body);
        assert_int_equal(hg_mcreply_decode(bytes, 24, 100, &reply), HG_BAD);
    }
    put_reply(bytes, 0, 0, 0);
    static const uint32_t bodies[] = {101, 0x7fffffff, 0x80000000, 0xffffffff};
    for (size_t i = 0; i < HG_COUNT_OF(bodies); i++) {
        hg_put_u32(bytes + 8, bodies[i]);
        assert_int_equal(hg_mcreply_decode(bytes, 24, 100, &reply), HG_BAD);
        assert_int_equal(hg_mcreply_decode(bytes, 24, UINT32_MAX, &reply), HG_MORE);
        assert_true(reply.total_bytes == UINT64_C(24) + bodies[i]);
    }
    hg_put_u32(bytes + 8, 100);
    assert_int_equal(hg_mcreply_decode(bytes, 24, 100, &reply), HG_MORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bytes_of_each_kind),
        cmocka_unit_test(test_every_operation_is_a_frame_that_the_protocol_accepts),
        cmocka_unit_test(test_prefix_and_key_fit_together_or_not_at_all),
        cmocka_unit_test(test_a_reply_split_at_every_byte),
        cmocka_unit_test(test_what_is_no_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
