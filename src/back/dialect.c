// dialect - how memcached's binary protocol says requests and reads replies
// SPDX-License-Identifier: BSD-3-Clause
#include "back/dialect.h"

#include <string.h>

#include "base/bytes.h"
#include "proto/mcreq.h"
#include "proto/opcode.h"
#include "proto/status.h"

#define OPAQUE_AT    12
#define INLINE_BYTES HG_OUT_SHARE_MIN /* a value below it lies behind its head, in one piece */

static bool encode(const struct hg_dialect *dialect, struct hg_out *out, const struct hg_call *call,
                   uint32_t opaque, uint8_t *ret_tag, uint8_t *ret_before, enum hg_fault *ret_fault)
{
    (void)dialect;
    (void)ret_before;
    const struct hg_mcreq req = {
        .opcode = hg_mcreq_opcode(call->op),
        .opaque = opaque,
        .cas = call->cas,
        .prefix = call->prefix,
        .key = call->key,
        .value = call->value,
        .flags = call->item_flags,
        .exptime = call->expiry,
        .delta = call->delta,
        .initial = call->initial,
    };
    size_t keys = call->prefix.len + call->key.len;
    if (HG_UNLIKELY(keys > HG_KEY_MAX_BYTES)) {
        *ret_fault = HG_FAULT_KEY_TOO_LONG;
        return false;
    }
    size_t inlined = call->value.len < INLINE_BYTES ? call->value.len : 0;
    uint8_t *at = hg_out_reserve(out, HG_MCREQ_HEAD_MAX + inlined);
    size_t len = hg_mcreq_encode_head(&req, at);
    if (HG_UNLIKELY(len == 0)) {
        *ret_fault = HG_FAULT_NOT_SUPPORTED;
        return false;
    }
    if (inlined > 0)
        memcpy(at + len, call->value.at, inlined);
    hg_out_commit(out, len + inlined);
    if (inlined < call->value.len) {
        if (call->blob != NULL)
            hg_out_put_blob(out, call->blob, call->value);
        else
            hg_out_put(out, call->value);
    }
    *ret_tag = req.opcode;
    return true;
}

/* SASL PLAIN: an empty identity to act as, the user, the password. */
static void encode_plain(struct hg_out *out, const struct hg_identity *identity, uint32_t opaque)
{
    const char *text = hg_identity_password(identity);
    size_t user = strlen(identity->user), password = strlen(text);
    const struct hg_mcreq req = {.opcode = HG_OPCODE_SASL_AUTH,
                                 .opaque = opaque,
                                 .key = HG_SPAN_LIT("PLAIN"),
                                 .value = hg_span(NULL, user + password + 2)};
    uint8_t *at = hg_out_reserve(out, HG_MCREQ_HEAD_MAX);
    hg_out_commit(out, hg_mcreq_encode_head(&req, at));
    hg_out_put(out, HG_SPAN_LIT("\0"));
    hg_out_put(out, hg_span(identity->user, user + 1));
    hg_out_put(out, hg_span(text, password));
}

static bool has_login(const struct hg_dialect *dialect, const struct hg_identity *identity)
{
    (void)dialect;
    return identity != NULL && identity->user[0] != '\0';
}

static uint32_t encode_login(const struct hg_dialect *dialect, struct hg_out *out,
                             const struct hg_identity *identity, bool rebind, bool probe,
                             uint32_t opaque)
{
    (void)rebind;
    bool login = has_login(dialect, identity);
    if (login)
        encode_plain(out, identity, opaque);
    if (probe) {
        const struct hg_mcreq req = {.opcode = HG_OPCODE_NOOP, .opaque = opaque};
        uint8_t *at = hg_out_reserve(out, HG_MCREQ_HEAD_MAX);
        hg_out_commit(out, hg_mcreq_encode_head(&req, at));
    }
    return (uint32_t)login + probe;
}

static void restamp(uint8_t *head, uint32_t opaque)
{
    hg_put_u32(head + OPAQUE_AT, opaque);
}

static enum hg_codec decode(const struct hg_dialect *dialect, void *reader, const uint8_t *bytes,
                            size_t have, uint32_t max_bytes, const struct hg_due *due,
                            struct hg_reply *ret_reply)
{
    (void)dialect;
    (void)reader;
    struct hg_mcreply reply;
    enum hg_codec codec = hg_mcreply_decode(bytes, have, max_bytes, &reply);
    if (codec == HG_BAD)
        return HG_BAD;
    ret_reply->total_bytes = reply.total_bytes;
    if (codec == HG_MORE)
        return HG_MORE;
    ret_reply->opaque = reply.opaque;
    ret_reply->tag = due->plain ? due->tag : reply.opcode;
    ret_reply->again = HG_AGAIN_NO;
    ret_reply->result = (struct hg_result){.status = reply.status, .cas = reply.cas};
    struct hg_result *result = &ret_reply->result;
    if (reply.status != HG_STATUS_SUCCESS) {
        result->value = reply.value;
        return HG_OK;
    }
    switch (reply.opcode) {
    case HG_OPCODE_GET:
    case HG_OPCODE_GAT:
        if (reply.extras.len != 4)
            return HG_BAD;
        result->item_flags = hg_get_u32(reply.extras.at);
        result->value = reply.value;
        break;
    case HG_OPCODE_INCREMENT:
    case HG_OPCODE_DECREMENT:
        if (reply.value.len != 8)
            return HG_BAD;
        result->counter = hg_get_u64(reply.value.at);
        break;
    default:
        break; /* a touch may carry extras; nobody asked for them */
    }
    return HG_OK;
}

const struct hg_dialect hg_dialect_memcached = {
    .name = "memcached",
    .encode = encode,
    .has_login = has_login,
    .encode_login = encode_login,
    .can_rebind = true,
    .restamp = restamp,
    .decode = decode,
};
