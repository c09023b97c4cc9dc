// t_redis_read - replies of Redis: whole, in pieces, nested, and what is none
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/redis_read.h"

#define MAX_REPLY 65536

/* What a reply is, as text: the same for every way in which its bytes may arrive. */
static void describe(const struct hg_redis_reply *reply, char *out, size_t room)
{
    switch (reply->type) {
    case HG_REDIS_NIL:
        snprintf(out, room, "nil");
        break;
    case HG_REDIS_INTEGER:
        snprintf(out, room, ":%" PRId64, reply->integer);
        break;
    default:
        snprintf(out, room, "%c%.*s", reply->type, (int)reply->text.len,
                 (const char *)reply->text.at);
    }
}

/* Reads all of the stream, which arrives in pieces that end before `split` and at its end, as a
   link would; the descriptions, one a line. False: garbage. */
static bool read_all(const char *stream, size_t len, size_t split, char *out)
{
    struct hg_redis_reader *reader = hg_redis_reader_new();
    assert_non_null(reader);
    size_t at = 0, have = split < len ? split : len;
    bool ok = true;
    *out = '\0';
    for (;;) {
        struct hg_redis_reply reply;
        /* Memory that ends where the bytes do. */
        uint8_t *exact = malloc(have - at + 1);
        memcpy(exact, stream + at, have - at);
        exact = realloc(exact, have - at > 0 ? have - at : 1);
        enum hg_codec codec = hg_redis_read(reader, exact, have - at, MAX_REPLY, &reply);
        if (codec == HG_OK) {
            assert_in_range(reply.total_bytes, 1, have - at);
            describe(&reply, out, 1024);
            strcat(out, "\n");
            out += strlen(out);
            at += reply.total_bytes;
        } else if (codec == HG_MORE && reply.total_bytes == 0) {
            at = have;
        } else if (codec == HG_MORE) {
            assert_true(reply.total_bytes > have - at);
            assert_true(have - at < HG_REDIS_HEAD_BYTES ||
                        reply.total_bytes != HG_REDIS_HEAD_BYTES);
        }
        free(exact);
        ok = codec != HG_BAD;
        if (!ok || (codec == HG_MORE && have == len))
            break;
        if (codec == HG_MORE)
            have = len;
    }
    hg_redis_reader_free(reader);
    return ok;
}

static void expect(const char *stream, size_t len, const char *replies)
{
    char *out = malloc(65536);
    for (size_t split = 0; split <= len; split++) {
        if (!read_all(stream, len, split, out))
            fail_msg("split at %zu: garbage", split);
        assert_string_equal(out, replies);
    }
    free(out);
}

#define EXPECT(stream, replies) expect(stream, sizeof(stream) - 1, replies)

static void t_kinds(void **state)
{
    (void)state;
    EXPECT("$5\r\nhello\r\n", "$hello\n");
    EXPECT("$0\r\n\r\n$-1\r\n", "$\nnil\n");
    EXPECT("$4\r\n\r\n\r\n\r\n", "$\r\n\r\n\n");
    EXPECT("+OK\r\n+PONG\r\n+\r\n", "+OK\n+PONG\n+\n");
    EXPECT(":0\r\n:-6\r\n:9223372036854775807\r\n", ":0\n:-6\n:9223372036854775807\n");
    EXPECT("-ERR no\r\n-LOADING a\rb\r\n", "-ERR no\n-LOADING a\rb\n");
    EXPECT("+OK\r\n$1\r\na\r\n:7\r\n$12\r\nabcdefghijkl\r\n-E\r\n",
           "+OK\n$a\n:7\n$abcdefghijkl\n-E\n");
}

/* Many of them through one reader, with strings behind that are larger than what is fed at once. */
static void t_long(void **state)
{
    (void)state;
    char *stream = malloc(200000), *out = malloc(400000);
    size_t len = 0, want = 0;
    char *expected = malloc(400000);
    for (int i = 0; i < 40; i++) {
        len += (size_t)sprintf(stream + len, "+%0300d\r\n:%d\r\n", i, i);
        want += (size_t)sprintf(expected + want, "+%0300d\n:%d\n", i, i);
        len += (size_t)sprintf(stream + len, "-ERR %0200d\r\n$900\r\n%0900d\r\n", i, i);
        want += (size_t)sprintf(expected + want, "-ERR %0200d\n$%0900d\n", i, i);
    }
    for (size_t split = 0; split < len; split += 97) {
        assert_true(read_all(stream, len, split, out));
        assert_string_equal(out, expected);
    }
    free(stream);
    free(out);
    free(expected);
}

static void t_large_string_is_wanted_in_one_piece(void **state)
{
    (void)state;
    struct hg_redis_reader *reader = hg_redis_reader_new();
    struct hg_redis_reply reply;
    const uint8_t head[] = "$60000\r\nabcdefghijklmnopqrstuvwxyz";
    assert_int_equal(hg_redis_read(reader, head, sizeof head - 1, MAX_REPLY, &reply), HG_MORE);
    assert_int_equal(reply.total_bytes, 8 + 60000 + 2);
    assert_int_equal(hg_redis_read(reader, head, 5, MAX_REPLY, &reply), HG_MORE);
    assert_int_equal(reply.total_bytes, HG_REDIS_HEAD_BYTES);
    uint8_t *whole = malloc(60010);
    memset(whole, 'x', 60010);
    memcpy(whole, "$60000\r\n", 8);
    memcpy(whole + 60008, "\r\n", 2);
    assert_int_equal(hg_redis_read(reader, whole, 60010, MAX_REPLY, &reply), HG_OK);
    assert_ptr_equal(reply.text.at, whole + 8);
    assert_int_equal(reply.text.len, 60000);
    free(whole);
    hg_redis_reader_free(reader);
}

static void expect_garbage(const char *stream, size_t len)
{
    char out[8192];
    for (size_t split = 0; split <= len; split++)
        if (read_all(stream, len, split, out))
            fail_msg("split at %zu: \"%.*s\" is taken for a reply: %s", split, (int)len, stream,
                     out);
}

#define EXPECT_GARBAGE(stream) expect_garbage(stream, sizeof(stream) - 1)

static void t_garbage(void **state)
{
    (void)state;
    EXPECT_GARBAGE("HTTP/1.1 400 Bad Request\r\n");
    EXPECT_GARBAGE("\x81\x00\x00\x00\r\n");
    EXPECT_GARBAGE("%1\r\n+a\r\n+b\r\n");
    EXPECT_GARBAGE("_\r\n");
    EXPECT_GARBAGE("$a\r\n");
    EXPECT_GARBAGE("$\r\n\r\n");
    EXPECT_GARBAGE("$-2\r\n");
    EXPECT_GARBAGE("$+1\r\na\r\n");
    EXPECT_GARBAGE("$3\r\nabcd\r\n");
    EXPECT_GARBAGE("$3\nabc\r\n");
    EXPECT_GARBAGE("$65530\r\n");
    EXPECT_GARBAGE("$99999999999999999999\r\n");
    EXPECT_GARBAGE(":1x\r\n");
    EXPECT_GARBAGE(":\r\n");
    EXPECT_GARBAGE(":99999999999999999999\r\n");
    EXPECT_GARBAGE("+OK\n");
    EXPECT_GARBAGE("*-1\r\n");
    EXPECT_GARBAGE("*0\r\n");
    EXPECT_GARBAGE("*2147483648\r\n");
    EXPECT_GARBAGE("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
}

/* A line that never ends is cut off, and one that is longer than it may be. */
static void t_endless(void **state)
{
    (void)state;
    static const char *const heads[] = {"+", "-", ":"};
    for (size_t h = 0; h < sizeof heads / sizeof heads[0]; h++) {
        for (uint32_t max = 64; max <= MAX_REPLY; max *= 1024) {
            struct hg_redis_reader *reader = hg_redis_reader_new();
            struct hg_redis_reply reply;
            uint8_t bytes[1000];
            size_t fed = 1;
            memset(bytes, '1', sizeof bytes);
            enum hg_codec codec = hg_redis_read(reader, (const uint8_t *)heads[h], 1, max, &reply);
            for (; codec == HG_MORE && fed < 2 * HG_REDIS_LINE_MAX; fed += sizeof bytes)
                codec = hg_redis_read(reader, bytes, sizeof bytes, max, &reply);
            assert_int_equal(codec, HG_BAD);
            assert_true(max > 64 || fed == 1 + sizeof bytes);
            hg_redis_reader_free(reader);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_kinds),
        cmocka_unit_test(t_long),
        cmocka_unit_test(t_large_string_is_wanted_in_one_piece),
        cmocka_unit_test(t_garbage),
        cmocka_unit_test(t_endless),
    };
    return cmocka_run_group_tests_name("redis_read", tests, NULL, NULL);
}
