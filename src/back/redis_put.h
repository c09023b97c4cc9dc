// redis_put - pieces of RESP commands, as redis_write puts them together
// SPDX-License-Identifier: BSD-3-Clause
//
// Each writes at `at`, where there is room, and returns the place behind. Pure.
#ifndef HG_BACK_REDIS_PUT_H
#define HG_BACK_REDIS_PUT_H

#include <string.h>

#include "back/item.h"
#include "back/redis_write.h"
#include "base/bytes.h"

#define HG_REDIS_INLINE_BYTES                                                                      \
    HG_OUT_SHARE_MIN /* a value below it lies in one piece with its head */
#define HG_REDIS_NUMBER_BYTES 20
#define HG_REDIS_KEY_MORE     8 /* bytes that a stored key may have more than prefix and key */

static inline uint8_t *hg_redis_put_bytes(uint8_t *at, const void *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

#define HG_REDIS_PUT(at, literal) hg_redis_put_bytes(at, literal, sizeof(literal) - 1)

static inline uint8_t *hg_redis_put_number(uint8_t *at, uint64_t n)
{
    if (n < 10) {
        *at = (uint8_t)('0' + n);
        return at + 1;
    }
    if (HG_LIKELY(n < 100)) { /* the length of nearly every key */
        at[0] = (uint8_t)('0' + n / 10);
        at[1] = (uint8_t)('0' + n % 10);
        return at + 2;
    }
    uint8_t turned[HG_REDIS_NUMBER_BYTES];
    size_t len = 0;
    for (; n > 0; n /= 10)
        turned[len++] = (uint8_t)('0' + n % 10);
    while (len > 0)
        *at++ = turned[--len];
    return at;
}

/* "$5\r\n" or "*5\r\n" */
static inline uint8_t *hg_redis_put_len(uint8_t *at, uint8_t kind, uint64_t n)
{
    *at++ = kind;
    at = hg_redis_put_number(at, n);
    return HG_REDIS_PUT(at, "\r\n");
}

static inline uint8_t *hg_redis_put_part(uint8_t *at, struct hg_span part)
{
    at = hg_redis_put_len(at, '$', part.len);
    if (part.len > 0)
        at = hg_redis_put_bytes(at, part.at, part.len);
    return HG_REDIS_PUT(at, "\r\n");
}

static inline uint8_t *hg_redis_put_number_part(uint8_t *at, uint64_t n)
{
    uint8_t digits[HG_REDIS_NUMBER_BYTES];
    size_t len = (size_t)(hg_redis_put_number(digits, n) - digits);
    return hg_redis_put_part(at, hg_span(digits, len));
}

static inline uint8_t *hg_redis_put_cas_part(uint8_t *at, uint64_t cas)
{
    at = HG_REDIS_PUT(at, "$8\r\n");
    hg_put_u64(at, cas);
    return HG_REDIS_PUT(at + 8, "\r\n");
}

/* Bytes of the table's name in the key of a row, or the whole length when it is none's. */
static inline size_t hg_redis_table_len(struct hg_span key)
{
    const uint8_t *zero = key.len > 0 ? memchr(key.at, 0, key.len) : NULL;
    return zero != NULL ? (size_t)(zero - key.at) : key.len;
}

static inline size_t hg_redis_key_len(const struct hg_redis_style *style, struct hg_span prefix,
                                      struct hg_span key)
{
    size_t len = prefix.len + key.len;
    if (HG_UNLIKELY(key.len > 0 && key.at[0] == '\0'))
        return len + 1;
    if (HG_UNLIKELY(style->tagged) && hg_redis_table_len(key) < key.len)
        return len + 2;
    return len;
}

static inline uint8_t *hg_redis_put_key(const struct hg_redis_style *style, struct hg_span prefix,
                                        struct hg_span key, uint8_t *at)
{
    if (prefix.len > 0)
        at = hg_redis_put_bytes(at, prefix.at, prefix.len);
    if (HG_UNLIKELY(key.len > 0 && key.at[0] == '\0')) {
        *at++ = '\0';
    } else if (HG_UNLIKELY(style->tagged)) {
        size_t len = hg_redis_table_len(key);
        if (len < key.len) {
            *at++ = '{';
            at = hg_redis_put_bytes(at, key.at, len);
            *at++ = '}';
            key = hg_span(key.at + len, key.len - len);
        }
    }
    return key.len > 0 ? hg_redis_put_bytes(at, key.at, key.len) : at;
}

static inline uint8_t *hg_redis_put_key_part(const struct hg_redis_style *style,
                                             const struct hg_call *call, uint8_t *at)
{
    at = hg_redis_put_len(at, '$', hg_redis_key_len(style, call->prefix, call->key));
    at = hg_redis_put_key(style, call->prefix, call->key, at);
    return HG_REDIS_PUT(at, "\r\n");
}

/* The key of the index of the table that the call's key lies in. */
static inline uint8_t *hg_redis_put_index_part(const struct hg_redis_style *style,
                                               const struct hg_call *call, uint8_t *at)
{
    size_t len = hg_redis_table_len(call->key);
    at = hg_redis_put_len(at, '$', call->prefix.len + 2 + len + (style->tagged ? 2 : 0));
    if (call->prefix.len > 0)
        at = hg_redis_put_bytes(at, call->prefix.at, call->prefix.len);
    at = hg_redis_put_bytes(at, "\0i", 2);
    if (style->tagged)
        *at++ = '{';
    at = hg_redis_put_bytes(at, call->key.at, len);
    if (style->tagged)
        *at++ = '}';
    return HG_REDIS_PUT(at, "\r\n");
}

/* The row's name: what the index holds. */
static inline struct hg_span hg_redis_member_of(struct hg_span key)
{
    size_t len = hg_redis_table_len(key);
    return len < key.len ? hg_span(key.at + len + 1, key.len - len - 1) : HG_SPAN_NONE;
}

static inline bool hg_redis_is_relative(uint32_t expiry)
{
    return expiry <= HG_ITEM_RELATIVE_MAX_S;
}

/* Two arguments of a script: how the time is meant, and the time. */
static inline uint8_t *hg_redis_put_expiry_parts(uint8_t *at, uint32_t expiry)
{
    if (expiry == 0)
        at = HG_REDIS_PUT(at, "$0\r\n\r\n");
    else if (hg_redis_is_relative(expiry))
        at = HG_REDIS_PUT(at, "$2\r\nEX\r\n");
    else
        at = HG_REDIS_PUT(at, "$4\r\nEXAT\r\n");
    return hg_redis_put_number_part(at, expiry);
}

static inline size_t hg_redis_head_bytes(const struct hg_redis_style *style)
{
    return style->plain ? 0 : HG_REDIS_ITEM_HEAD;
}

static inline uint8_t *hg_redis_put_item_head(uint8_t *at, uint32_t flags, uint64_t cas)
{
    hg_put_u32(at, flags);
    hg_put_u64(at + 4, cas);
    return at + HG_REDIS_ITEM_HEAD;
}

static inline size_t hg_redis_inlined(const struct hg_call *call)
{
    return call->value.len < HG_REDIS_INLINE_BYTES ? call->value.len : 0;
}

static inline bool hg_redis_has_index(const struct hg_redis_style *style,
                                      const struct hg_call *call)
{
    return style->ranges && call->row;
}

/* Queues what was written from `base` to `at`, then the call's value, then `tail`. */
void hg_redis_put_value(struct hg_out *out, const struct hg_call *call, uint8_t *base, uint8_t *at,
                        struct hg_span tail);

/* The request of a call that goes by a script; its tag. */
uint8_t hg_redis_write_script(const struct hg_redis_style *style, struct hg_out *out,
                              const struct hg_call *call, bool whole);

#endif
