// redis_dialect - how Redis says requests and reads replies, for back/link
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_dialect.h"

#include <assert.h>
#include <stdlib.h>

#include "back/redis_error.h"
#include "back/redis_read.h"
#include "back/redis_rows.h"
#include "back/tie.h"
#include "base/bytes.h"
#include "proto/status.h"

static_assert(HG_REDIS_HEAD_BYTES == HG_DIALECT_HEAD_BYTES, "links keep so many bytes");

static const char stranger[] = "the key holds a string that is no item of this server: other "
                               "clients of redis wrote it (see redis_layout)";

/* A link's. */
struct mouth {
    struct hg_redis_reader *reader;
    struct hg_redis_error error; /* the last one: results point into its text */
};

static void *reader_new(uint32_t max_bytes)
{
    (void)max_bytes;
    struct mouth *mouth = malloc(sizeof *mouth);
    if (mouth == NULL)
        return NULL;
    mouth->reader = hg_redis_reader_new();
    if (mouth->reader == NULL) {
        free(mouth);
        return NULL;
    }
    return mouth;
}

static void reader_free(void *reader)
{
    struct mouth *mouth = reader;
    hg_redis_reader_free(mouth->reader);
    free(mouth);
}

static bool encode(const struct hg_dialect *dialect, struct hg_out *out, const struct hg_call *call,
                   uint32_t opaque, uint8_t *ret_tag, uint8_t *ret_before, enum hg_fault *ret_fault)
{
    (void)opaque;
    const struct hg_tie *tie = call->place.tie;
    bool whole = tie != NULL && tie->again > 0;
    if (HG_UNLIKELY(whole && tie->asking)) {
        /* What was sent before can be said: nothing is refused behind it. */
        hg_out_put(out, HG_SPAN_LIT("*1\r\n$6\r\nASKING\r\n"));
        *ret_before = 1;
    }
    return hg_redis_write(hg_redis_style_of(dialect), out, call, whole, ret_tag, ret_fault);
}

static bool has_login(const struct hg_dialect *dialect, const struct hg_identity *identity)
{
    (void)dialect;
    (void)identity;
    return true; /* the scripts, at least */
}

static uint32_t encode_login(const struct hg_dialect *dialect, struct hg_out *out,
                             const struct hg_identity *identity, bool rebind, bool probe,
                             uint32_t opaque)
{
    (void)opaque;
    return hg_redis_write_login(hg_redis_style_of(dialect), out, identity, rebind, probe);
}

/* --- replies --- */

static enum hg_codec say(struct hg_result *result, enum hg_status status)
{
    result->status = (uint16_t)status;
    return HG_OK;
}

/* What a script did not do. */
static enum hg_codec say_code(struct hg_result *result, int64_t code)
{
    switch (code) {
    case HG_REDIS_NONE:
        return say(result, HG_STATUS_KEY_ENOENT);
    case HG_REDIS_OTHER:
        return say(result, HG_STATUS_KEY_EEXISTS);
    case HG_REDIS_NO_JOIN:
        return say(result, HG_STATUS_NOT_STORED);
    case HG_REDIS_NO_NUMBER:
        return say(result, HG_STATUS_DELTA_BADVAL);
    case HG_REDIS_TOO_LARGE:
        return say(result, HG_STATUS_E2BIG);
    case HG_REDIS_STRANGER:
        result->value = HG_SPAN_LIT(stranger);
        return say(result, HG_STATUS_NOT_SUPPORTED);
    default:
        return HG_BAD;
    }
}

static enum hg_codec take_value(const struct hg_redis_style *style,
                                const struct hg_redis_reply *reply, struct hg_result *result)
{
    if (reply->type == HG_REDIS_NIL)
        return say(result, HG_STATUS_KEY_ENOENT);
    if (HG_UNLIKELY(reply->type != HG_REDIS_STRING))
        return HG_BAD;
    result->value = reply->text;
    if (HG_UNLIKELY(style->plain))
        return HG_OK;
    if (HG_UNLIKELY(reply->text.len < HG_REDIS_ITEM_HEAD))
        return say_code(result, HG_REDIS_STRANGER);
    result->item_flags = hg_get_u32(reply->text.at);
    result->cas = hg_get_u64(reply->text.at + 4);
    result->value.at += HG_REDIS_ITEM_HEAD;
    result->value.len -= HG_REDIS_ITEM_HEAD;
    return HG_OK;
}

/* OK, or nil where that is possible. */
static enum hg_codec take_stored(const struct hg_redis_reply *reply, enum hg_redis_tag tag,
                                 struct hg_result *result)
{
    if (reply->type == HG_REDIS_STATUS)
        return hg_span_is(reply->text, "OK") ? HG_OK : HG_BAD;
    if (reply->type != HG_REDIS_NIL || tag == HG_REDIS_TAG_STORED)
        return HG_BAD;
    return say(result, tag == HG_REDIS_TAG_ADDED ? HG_STATUS_KEY_EEXISTS : HG_STATUS_KEY_ENOENT);
}

static enum hg_codec take_integer(const struct hg_redis_reply *reply, enum hg_redis_tag tag,
                                  struct hg_result *result)
{
    if (reply->type != HG_REDIS_INTEGER)
        return HG_BAD;
    int64_t n = reply->integer;
    if (tag == HG_REDIS_TAG_DELETED)
        return n == 1 ? HG_OK : n == 0 ? say(result, HG_STATUS_KEY_ENOENT) : HG_BAD;
    if (n < 0)
        return say_code(result, n);
    if (n > UINT32_MAX || (tag == HG_REDIS_TAG_CODE && n != 0))
        return HG_BAD;
    result->item_bytes = (uint32_t)n;
    return HG_OK;
}

/* A counter's digits. */
static enum hg_codec take_number(struct hg_span text, struct hg_result *result)
{
    uint64_t n = 0;
    if (text.len == 0)
        return HG_BAD;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || __builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (uint64_t)(text.at[i] - '0'), &n))
            return HG_BAD;
    }
    result->counter = n;
    return HG_OK;
}

/* A string, or an integer for what was not done. */
static enum hg_codec take_string(const struct hg_redis_reply *reply, enum hg_redis_tag tag,
                                 struct hg_result *result)
{
    if (reply->type == HG_REDIS_INTEGER && reply->integer < 0)
        return say_code(result, reply->integer);
    if (reply->type != HG_REDIS_STRING)
        return HG_BAD;
    if (tag == HG_REDIS_TAG_COUNTED)
        return take_number(reply->text, result);
    if (tag == HG_REDIS_TAG_RANGE) {
        struct hg_redis_rows rows;
        result->value = reply->text;
        return hg_redis_rows_decode(reply->text, &rows) ? HG_OK : HG_BAD;
    }
    if (reply->text.len == 8)
        result->cas = hg_get_u64(reply->text.at);
    else if (reply->text.len != 0)
        return HG_BAD;
    return HG_OK;
}

static enum hg_codec take(const struct hg_redis_style *style, const struct hg_redis_reply *reply,
                          enum hg_redis_tag tag, struct hg_result *result)
{
    switch (tag) {
    case HG_REDIS_TAG_VALUE:
        return take_value(style, reply, result);
    case HG_REDIS_TAG_STORED:
    case HG_REDIS_TAG_ADDED:
    case HG_REDIS_TAG_REPLACED:
        return take_stored(reply, tag, result);
    case HG_REDIS_TAG_DELETED:
    case HG_REDIS_TAG_CODE:
    case HG_REDIS_TAG_JOINED:
        return take_integer(reply, tag, result);
    case HG_REDIS_TAG_COUNTED:
    case HG_REDIS_TAG_TOUCHED:
    case HG_REDIS_TAG_RANGE:
        return take_string(reply, tag, result);
    }
    return HG_BAD;
}

/* An error: what it means to the client, and whether the request may be said again. */
static enum hg_codec take_error(struct mouth *mouth, struct hg_span said, bool plain,
                                struct hg_reply *ret)
{
    struct hg_redis_error *error = &mouth->error;
    hg_redis_error_read(said, error);
    ret->again = error->again;
    ret->again_slot = error->slot;
    ret->again_address = error->address;
    ret->result.status = error->status;
    ret->result.value = hg_span(error->text, error->text_len);
    if (!plain)
        return HG_OK;
    /* In a login: what time may mend, and what it does not. */
    ret->again = HG_AGAIN_NO;
    if (error->status != HG_STATUS_ETMPFAIL && error->status != HG_STATUS_EBUSY &&
        error->status != HG_STATUS_ENOMEM)
        ret->result.status = HG_STATUS_EACCESS;
    return HG_OK;
}

static enum hg_codec decode(const struct hg_dialect *dialect, void *reader, const uint8_t *bytes,
                            size_t have, uint32_t max_bytes, const struct hg_due *due,
                            struct hg_reply *ret_reply)
{
    struct mouth *mouth = reader;
    struct hg_redis_reply reply;
    enum hg_codec codec = hg_redis_read(mouth->reader, bytes, have, max_bytes, &reply);
    ret_reply->total_bytes = reply.total_bytes;
    if (codec != HG_OK)
        return codec;
    if (HG_UNLIKELY(!due->any))
        return HG_BAD;
    ret_reply->opaque = due->opaque;
    ret_reply->tag = due->tag;
    ret_reply->again = HG_AGAIN_NO;
    ret_reply->result = (struct hg_result){.status = HG_STATUS_SUCCESS};
    if (HG_UNLIKELY(reply.type == HG_REDIS_ERROR))
        return take_error(mouth, reply.text, due->plain, ret_reply);
    if (HG_UNLIKELY(due->plain))
        return reply.type == HG_REDIS_STATUS || reply.type == HG_REDIS_STRING ? HG_OK : HG_BAD;
    return take(hg_redis_style_of(dialect), &reply, (enum hg_redis_tag)due->tag,
                &ret_reply->result);
}

static const struct hg_dialect base = {
    .name = "redis",
    .can_rebind = true,
    .encode = encode,
    .has_login = has_login,
    .encode_login = encode_login,
    .reader_new = reader_new,
    .reader_free = reader_free,
    .decode = decode,
};

int hg_redis_dialect_init(struct hg_redis_dialect *dialect, const struct hg_redis_conf *conf)
{
    dialect->base = base;
    dialect->style.plain = conf->plain;
    dialect->style.ranges = conf->ranges && !conf->plain;
    dialect->style.tagged = conf->cluster && dialect->style.ranges;
    dialect->style.max_value_bytes = conf->max_value_bytes;
    dialect->style.range_bytes = HG_REDIS_RANGE_BYTES;
    return hg_redis_scripts_init(&dialect->style.scripts);
}
