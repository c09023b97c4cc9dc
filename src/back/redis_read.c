// redis_read - replies of Redis (RESP2) out of a stream of bytes
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_read.h"

#include <read.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LEN_DIGITS 10 /* of a string's length: more than any reply may have */

struct hg_redis_reader {
    redisReader *parser;
    size_t taken;                    /* bytes of the line that is half read; 0: none is */
    struct hg_redis_reply *reply;    /* being filled */
    uint8_t room[HG_REDIS_LINE_MAX]; /* for the text of a line */
};

/* --- what hiredis calls --- */

static void *on_string(const redisReadTask *task, char *text, size_t len)
{
    struct hg_redis_reader *reader = task->privdata;
    if (len > sizeof reader->room)
        return NULL;
    memcpy(reader->room, text, len);
    reader->reply->type = task->type == REDIS_REPLY_ERROR ? HG_REDIS_ERROR : HG_REDIS_STATUS;
    reader->reply->text = hg_span(reader->room, len);
    return reader;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct hg_redis_reader *reader = task->privdata;
    reader->reply->type = HG_REDIS_INTEGER;
    reader->reply->integer = value;
    return reader;
}

static void on_free(void *object)
{
    (void)object; /* it is the reader */
}

/* Only lines are fed to it. */
static redisReplyObjectFunctions functions = {
    .createString = on_string, .createInteger = on_integer, .freeObject = on_free};

/* --- the reader --- */

struct hg_redis_reader *hg_redis_reader_new(void)
{
    struct hg_redis_reader *reader = malloc(sizeof *reader);
    if (reader == NULL)
        return NULL;
    reader->taken = 0;
    reader->parser = redisReaderCreateWithFunctions(&functions);
    if (reader->parser == NULL) {
        free(reader);
        return NULL;
    }
    reader->parser->privdata = reader;
    return reader;
}

void hg_redis_reader_free(struct hg_redis_reader *reader)
{
    if (reader == NULL)
        return;
    redisReaderFree(reader->parser);
    free(reader);
}

/* Feeds hiredis up to the line's end, so that it holds nothing that is behind. */
static enum hg_codec read_line(struct hg_redis_reader *reader, const uint8_t *bytes, size_t have,
                               uint32_t max_bytes, struct hg_redis_reply *ret)
{
    redisReader *parser = reader->parser;
    void *object = NULL;
    const uint8_t *end = memchr(bytes, '\n', have);
    size_t n = end != NULL ? (size_t)(end - bytes) + 1 : have;
    reader->taken += n;
    reader->reply = ret;
    if (reader->taken > HG_REDIS_LINE_MAX || reader->taken > max_bytes ||
        redisReaderFeed(parser, (const char *)bytes, n) != REDIS_OK ||
        redisReaderGetReply(parser, &object) != REDIS_OK)
        return HG_BAD;
    if (object == NULL) /* a line feed alone, which hiredis reads over, ends nothing */
        return end == NULL ? HG_MORE : HG_BAD;
    reader->taken = 0;
    ret->total_bytes = n;
    return HG_OK;
}

/* A string in place: its head says how long it is. */
static enum hg_codec read_string(const uint8_t *bytes, size_t have, uint32_t max_bytes,
                                 struct hg_redis_reply *ret)
{
    static const char nil[] = "$-1\r\n";
    size_t at = 1, nil_len = sizeof nil - 1;
    uint64_t len = 0;
    while (at < have && at <= LEN_DIGITS && bytes[at] >= '0' && bytes[at] <= '9')
        len = len * 10 + (uint64_t)(bytes[at++] - '0');
    if (at == 1) {
        bool is_nil = memcmp(bytes, nil, have < nil_len ? have : nil_len) == 0;
        ret->type = HG_REDIS_NIL;
        ret->total_bytes = have < nil_len ? HG_REDIS_HEAD_BYTES : nil_len;
        return !is_nil ? HG_BAD : have < nil_len ? HG_MORE : HG_OK;
    }
    if ((at < have && bytes[at] != '\r') || (at + 1 < have && bytes[at + 1] != '\n'))
        return HG_BAD;
    if (at + 1 >= have) {
        ret->total_bytes = HG_REDIS_HEAD_BYTES;
        return HG_MORE;
    }
    at += 2;
    ret->total_bytes = at + len + 2;
    if (ret->total_bytes > max_bytes)
        return HG_BAD;
    if (have < ret->total_bytes)
        return HG_MORE;
    if (bytes[at + len] != '\r' || bytes[at + len + 1] != '\n')
        return HG_BAD;
    ret->type = HG_REDIS_STRING;
    ret->text = hg_span(bytes + at, (size_t)len);
    return HG_OK;
}

enum hg_codec hg_redis_read(struct hg_redis_reader *reader, const uint8_t *bytes, size_t have,
                            uint32_t max_bytes, struct hg_redis_reply *ret)
{
    static const char ok[] = "+OK\r\n";
    ret->total_bytes = 0;
    ret->text = HG_SPAN_NONE;
    if (HG_UNLIKELY(have == 0)) {
        ret->total_bytes = HG_REDIS_HEAD_BYTES;
        return HG_MORE;
    }
    if (HG_UNLIKELY(reader->taken > 0))
        return read_line(reader, bytes, have, max_bytes, ret);
    switch (bytes[0]) {
    case '$':
        return read_string(bytes, have, max_bytes, ret);
    case '+':
        /* What nearly every line is. */
        if (have >= sizeof ok - 1 && memcmp(bytes, ok, sizeof ok - 1) == 0) {
            ret->type = HG_REDIS_STATUS;
            ret->text = hg_span(bytes + 1, 2);
            ret->total_bytes = sizeof ok - 1;
            return HG_OK;
        }
        return read_line(reader, bytes, have, max_bytes, ret);
    case '-':
    case ':':
        return read_line(reader, bytes, have, max_bytes, ret);
    default:
        return HG_BAD;
    }
}
