// redis_read - replies of Redis (RESP2) out of a stream of bytes
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_read.h"

#include <read.h>
#include <stdlib.h>
#include <string.h>

/* An array is fed to hiredis in pieces of this size: what is behind its end has to be copied in
   vain, and is less than one piece. */
#define PIECE_BYTES 4096
#define NODE_BYTES  9 /* type, then an integer or a length */
/* An element takes at least so many bytes of a reply ("+\r\n"), and NODE_BYTES here. */
#define ELEMENT_MIN 3

struct hg_redis_reader {
    redisReader *parser;
    uint64_t taken; /* bytes of the reply that is half read; 0: none is */
    uint32_t max_bytes;
    bool is_array;
    struct hg_redis_reply *reply; /* being filled */
    uint8_t *room;                /* of a line or a flat array */
    size_t room_len, room_cap;
};

/* --- what hiredis calls --- */

static void *grow(struct hg_redis_reader *reader, size_t bytes)
{
    size_t need = reader->room_len + bytes;
    if (need > reader->room_cap || reader->room == NULL) {
        size_t cap = need < 512 ? 512 : 2 * need;
        uint8_t *room = realloc(reader->room, cap);
        if (room == NULL)
            return NULL;
        reader->room = room;
        reader->room_cap = cap;
    }
    uint8_t *at = reader->room + reader->room_len;
    reader->room_len += bytes;
    return at;
}

/* One node of a flat array, with `len` bytes at `text` behind it. */
static void *put_node(struct hg_redis_reader *reader, uint8_t type, int64_t number,
                      const char *text, size_t len)
{
    uint8_t *at = grow(reader, NODE_BYTES + len);
    if (at == NULL)
        return NULL;
    at[0] = type;
    memcpy(at + 1, &number, sizeof number);
    if (len > 0)
        memcpy(at + NODE_BYTES, text, len);
    return reader;
}

static enum hg_redis_type type_of(const redisReadTask *task)
{
    switch (task->type) {
    case REDIS_REPLY_STATUS:
        return HG_REDIS_STATUS;
    case REDIS_REPLY_ERROR:
        return HG_REDIS_ERROR;
    default:
        return HG_REDIS_STRING;
    }
}

static void *on_string(const redisReadTask *task, char *text, size_t len)
{
    struct hg_redis_reader *reader = task->privdata;
    if (task->parent != NULL)
        return put_node(reader, (uint8_t)type_of(task), (int64_t)len, text, len);
    uint8_t *at = grow(reader, len);
    if (at == NULL)
        return NULL;
    if (len > 0)
        memcpy(at, text, len);
    reader->reply->type = type_of(task);
    return reader;
}

static void *on_array(const redisReadTask *task, int elements)
{
    struct hg_redis_reader *reader = task->privdata;
    if ((uint32_t)elements > reader->max_bytes / ELEMENT_MIN)
        return NULL;
    if (task->parent == NULL)
        reader->reply->type = HG_REDIS_ARRAY;
    return put_node(reader, HG_REDIS_ARRAY, elements, NULL, 0);
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct hg_redis_reader *reader = task->privdata;
    if (task->parent != NULL)
        return put_node(reader, HG_REDIS_INTEGER, value, NULL, 0);
    reader->reply->type = HG_REDIS_INTEGER;
    reader->reply->integer = value;
    return reader;
}

static void *on_nil(const redisReadTask *task)
{
    struct hg_redis_reader *reader = task->privdata;
    if (task->parent != NULL)
        return put_node(reader, HG_REDIS_NIL, 0, NULL, 0);
    reader->reply->type = HG_REDIS_NIL;
    return reader;
}

static void on_free(void *object)
{
    (void)object; /* all of them are the reader */
}

static redisReplyObjectFunctions functions = {on_string, on_array, on_integer, on_nil, on_free};

/* --- the reader --- */

static redisReader *new_parser(struct hg_redis_reader *reader)
{
    redisReader *parser = redisReaderCreateWithFunctions(&functions);
    if (parser != NULL)
        parser->privdata = reader;
    return parser;
}

struct hg_redis_reader *hg_redis_reader_new(void)
{
    struct hg_redis_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return NULL;
    reader->parser = new_parser(reader);
    if (reader->parser == NULL) {
        free(reader);
        return NULL;
    }
    return reader;
}

void hg_redis_reader_free(struct hg_redis_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->parser != NULL)
        redisReaderFree(reader->parser);
    free(reader->room);
    free(reader);
}

/* The reply is whole, and `unused` of the bytes that were fed are not its own: hiredis must forget
   them. A line is fed up to its end only, and after an array, which is rare, hiredis' buffer is
   given up altogether. */
static enum hg_codec finish(struct hg_redis_reader *reader, size_t unused,
                            struct hg_redis_reply *ret)
{
    if (reader->is_array) {
        redisReaderFree(reader->parser);
        reader->parser = new_parser(reader);
        if (reader->parser == NULL)
            return HG_BAD;
    } else if (unused > 0) {
        return HG_BAD;
    }
    ret->total_bytes -= unused;
    if (ret->type != HG_REDIS_NIL && ret->type != HG_REDIS_INTEGER)
        ret->text = hg_span(reader->room, reader->room_len);
    reader->taken = 0;
    return HG_OK;
}

/* Feeds `n` more bytes at `bytes`. HG_MORE: all of them belong to the reply. */
static enum hg_codec feed(struct hg_redis_reader *reader, const uint8_t *bytes, size_t n,
                          struct hg_redis_reply *ret)
{
    redisReader *parser = reader->parser;
    void *object = NULL;
    reader->reply = ret;
    reader->taken += n;
    ret->total_bytes += n;
    if (redisReaderFeed(parser, (const char *)bytes, n) != REDIS_OK ||
        redisReaderGetReply(parser, &object) != REDIS_OK)
        return HG_BAD;
    if (object == NULL)
        return reader->taken > reader->max_bytes ? HG_BAD : HG_MORE;
    size_t unused = parser->len - parser->pos;
    if (reader->taken - unused > reader->max_bytes)
        return HG_BAD;
    return finish(reader, unused, ret);
}

static enum hg_codec read_line(struct hg_redis_reader *reader, const uint8_t *bytes, size_t have,
                               struct hg_redis_reply *ret)
{
    const uint8_t *end = memchr(bytes, '\n', have);
    size_t n = end != NULL ? (size_t)(end - bytes) + 1 : have;
    if (reader->taken + n > HG_REDIS_LINE_MAX)
        return HG_BAD;
    enum hg_codec codec = feed(reader, bytes, n, ret);
    if (codec == HG_MORE) {
        /* A line feed without a carriage return, which hiredis reads over, ends nothing. */
        if (end != NULL)
            return HG_BAD;
        ret->total_bytes = 0;
    }
    return codec;
}

static enum hg_codec read_array(struct hg_redis_reader *reader, const uint8_t *bytes, size_t have,
                                struct hg_redis_reply *ret)
{
    for (size_t at = 0; at < have;) {
        size_t n = have - at < PIECE_BYTES ? have - at : PIECE_BYTES;
        enum hg_codec codec = feed(reader, bytes + at, n, ret);
        if (codec != HG_MORE)
            return codec;
        at += n;
    }
    ret->total_bytes = 0;
    return HG_MORE;
}

/* A string in place: its head says how long it is. */
static enum hg_codec read_string(const uint8_t *bytes, size_t have, uint32_t max_bytes,
                                 struct hg_redis_reply *ret)
{
    size_t at = 1;
    uint64_t len = 0;
    while (at < have && at < 12 && bytes[at] >= '0' && bytes[at] <= '9')
        len = len * 10 + (uint64_t)(bytes[at++] - '0');
    if (at == 1 && have >= 5) {
        ret->type = HG_REDIS_NIL;
        ret->total_bytes = 5;
        return memcmp(bytes, "$-1\r\n", 5) == 0 ? HG_OK : HG_BAD;
    }
    if (at == 1 && have < 5) {
        ret->total_bytes = HG_REDIS_HEAD_BYTES;
        return memcmp(bytes, "$-1\r\n", have) == 0 ? HG_MORE : HG_BAD;
    }
    if (at == 12 || (at < have && bytes[at] != '\r') || (at + 1 < have && bytes[at + 1] != '\n'))
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
    ret->total_bytes = 0;
    ret->text = HG_SPAN_NONE;
    if (HG_UNLIKELY(have == 0)) {
        ret->total_bytes = HG_REDIS_HEAD_BYTES;
        return HG_MORE;
    }
    if (HG_LIKELY(reader->taken == 0)) {
        if (HG_LIKELY(bytes[0] == '$'))
            return read_string(bytes, have, max_bytes, ret);
        if (have >= 5 && memcmp(bytes, "+OK\r\n", 5) == 0) {
            ret->type = HG_REDIS_STATUS;
            ret->total_bytes = 5;
            ret->text = hg_span(bytes + 1, 2);
            return HG_OK;
        }
        reader->is_array = bytes[0] == '*';
        reader->max_bytes = max_bytes;
        reader->room_len = 0;
    }
    return reader->is_array ? read_array(reader, bytes, have, ret)
                            : read_line(reader, bytes, have, ret);
}

bool hg_redis_next(struct hg_redis_cursor *cursor, struct hg_redis_node *ret)
{
    struct hg_span *rest = &cursor->rest;
    if (rest->len < NODE_BYTES)
        return false;
    ret->type = (enum hg_redis_type)rest->at[0];
    memcpy(&ret->integer, rest->at + 1, sizeof ret->integer);
    bool has_text =
        ret->type == HG_REDIS_STRING || ret->type == HG_REDIS_STATUS || ret->type == HG_REDIS_ERROR;
    size_t len = has_text ? (size_t)ret->integer : 0;
    ret->text = hg_span(rest->at + NODE_BYTES, len);
    *rest = hg_span(rest->at + NODE_BYTES + len, rest->len - NODE_BYTES - len);
    return true;
}
