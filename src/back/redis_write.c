// redis_write - what Redis is asked for a call, as RESP commands
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis_write.h"

#include "back/redis_put.h"

#define CAS_OF_NONE UINT64_MAX /* no item has it: see rowguard.c */
#define COMMAND_BYTES                                                                              \
    128 /* names and numbers of a command without a script, lengths of its parts */

size_t hg_redis_key(const struct hg_redis_style *style, struct hg_span prefix, struct hg_span key,
                    uint8_t *out)
{
    return (size_t)(hg_redis_put_key(style, prefix, key, out) - out);
}

void hg_redis_put_value(struct hg_out *out, const struct hg_call *call, uint8_t *base, uint8_t *at,
                        struct hg_span tail)
{
    struct hg_span value = call->value;
    if (HG_LIKELY(value.len < HG_REDIS_INLINE_BYTES)) {
        if (value.len > 0)
            at = hg_redis_put_bytes(at, value.at, value.len);
        at = hg_redis_put_bytes(at, tail.at, tail.len);
        hg_out_commit(out, (size_t)(at - base));
        return;
    }
    hg_out_commit(out, (size_t)(at - base));
    if (call->blob != NULL)
        hg_out_put_blob(out, call->blob, value);
    else
        hg_out_put(out, value);
    hg_out_put(out, tail);
}

/* --- single commands --- */

static void write_get(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t *base =
        hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len + HG_REDIS_KEY_MORE);
    uint8_t *at = HG_REDIS_PUT(base, "*2\r\n$3\r\nGET\r\n");
    at = hg_redis_put_key_part(style, call, at);
    hg_out_commit(out, (size_t)(at - base));
}

static void write_del(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t *base =
        hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len + HG_REDIS_KEY_MORE);
    uint8_t *at = HG_REDIS_PUT(base, "*2\r\n$3\r\nDEL\r\n");
    at = hg_redis_put_key_part(style, call, at);
    hg_out_commit(out, (size_t)(at - base));
}

/* GETEX: as GET, and another expiry. */
static void write_gat(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t *base =
        hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len + HG_REDIS_KEY_MORE);
    uint8_t *at = call->expiry == 0 ? HG_REDIS_PUT(base, "*3\r\n$5\r\nGETEX\r\n")
                                    : HG_REDIS_PUT(base, "*4\r\n$5\r\nGETEX\r\n");
    at = hg_redis_put_key_part(style, call, at);
    if (call->expiry == 0)
        at = HG_REDIS_PUT(at, "$7\r\nPERSIST\r\n");
    else
        at = hg_redis_put_expiry_parts(at, call->expiry);
    hg_out_commit(out, (size_t)(at - base));
}

/* SET, with NX for ADD and XX for REPLACE. */
static void write_set(const struct hg_redis_style *style, struct hg_out *out,
                      const struct hg_call *call)
{
    uint8_t tail_bytes[64], *tail = HG_REDIS_PUT(tail_bytes, "\r\n");
    unsigned parts = 3;
    if (call->op != HG_OP_SET) {
        tail = call->op == HG_OP_ADD ? HG_REDIS_PUT(tail, "$2\r\nNX\r\n")
                                     : HG_REDIS_PUT(tail, "$2\r\nXX\r\n");
        parts++;
    }
    if (call->expiry != 0) {
        tail = hg_redis_put_expiry_parts(tail, call->expiry);
        parts += 2;
    }
    uint8_t *base = hg_out_reserve(out, COMMAND_BYTES + call->prefix.len + call->key.len +
                                            HG_REDIS_KEY_MORE + hg_redis_inlined(call));
    uint8_t *at = hg_redis_put_len(base, '*', parts);
    at = HG_REDIS_PUT(at, "$3\r\nSET\r\n");
    at = hg_redis_put_key_part(style, call, at);
    at = hg_redis_put_len(at, '$', hg_redis_head_bytes(style) + call->value.len);
    if (!style->plain)
        at = hg_redis_put_item_head(at, call->item_flags, call->place.made_cas);
    hg_redis_put_value(out, call, base, at, hg_span(tail_bytes, (size_t)(tail - tail_bytes)));
}

/* --- which --- */

bool hg_redis_is_script(const struct hg_redis_style *style, const struct hg_call *call)
{
    switch (call->op) {
    case HG_OP_GET:
    case HG_OP_GAT:
    case HG_OP_FLUSH:
        return false;
    case HG_OP_SET:
    case HG_OP_ADD:
    case HG_OP_REPLACE:
    case HG_OP_DELETE:
        return !style->plain && (call->cas != 0 || hg_redis_has_index(style, call));
    default:
        return true;
    }
}

const char *hg_redis_refusal(const struct hg_redis_style *style, const struct hg_call *call)
{
    if (HG_UNLIKELY(call->op == HG_OP_FLUSH && call->expiry != 0))
        return "redis cannot flush later: only a delay of 0 is possible";
    if (HG_LIKELY(!style->plain))
        return NULL;
    if (call->row)
        return "rows need CAS and flags, which the plain layout of redis has not";
    if (call->item_flags != 0)
        return "the plain layout of redis keeps no flags: only 0 is possible";
    if (call->cas != 0 && call->cas != CAS_OF_NONE)
        return "the plain layout of redis keeps no CAS: only 0 is possible";
    return NULL;
}

bool hg_redis_write(const struct hg_redis_style *style, struct hg_out *out,
                    const struct hg_call *call, bool whole, uint8_t *ret_tag,
                    enum hg_fault *ret_fault)
{
    if (HG_UNLIKELY(call->prefix.len + call->key.len > HG_REDIS_KEY_MAX)) {
        *ret_fault = HG_FAULT_KEY_TOO_LONG;
        return false;
    }
    if (HG_LIKELY(call->op == HG_OP_GET)) {
        *ret_tag = HG_REDIS_TAG_VALUE;
        write_get(style, out, call);
        return true;
    }
    if (HG_UNLIKELY(call->op > HG_OP_FLUSH && call->op != HG_OP_TABLE_QUERY)) {
        *ret_fault = HG_FAULT_NOT_SUPPORTED;
        return false;
    }
    if (hg_redis_is_script(style, call)) {
        *ret_tag = hg_redis_write_script(style, out, call, whole);
        return true;
    }
    switch (call->op) {
    case HG_OP_DELETE:
        *ret_tag = HG_REDIS_TAG_DELETED;
        write_del(style, out, call);
        break;
    case HG_OP_GAT:
        *ret_tag = HG_REDIS_TAG_VALUE;
        write_gat(style, out, call);
        break;
    case HG_OP_FLUSH:
        *ret_tag = HG_REDIS_TAG_STORED;
        hg_out_put(out, HG_SPAN_LIT("*2\r\n$7\r\nFLUSHDB\r\n$5\r\nASYNC\r\n"));
        break;
    default:
        *ret_tag = call->op == HG_OP_ADD       ? HG_REDIS_TAG_ADDED
                   : call->op == HG_OP_REPLACE ? HG_REDIS_TAG_REPLACED
                                               : HG_REDIS_TAG_STORED;
        write_set(style, out, call);
    }
    return true;
}
