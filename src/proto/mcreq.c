// mcreq - requests to a memcached server, and its replies
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/mcreq.h"

#include "base/bytes.h"
#include "proto/opcode.h"

uint8_t hg_mcreq_opcode(enum hg_op op)
{
    static const uint8_t opcodes[HG_OPS] = {
#define OPCODE_CLASSIC(name) [HG_OP_##name] = HG_OPCODE_##name,
#define OPCODE_TABLE(name)
#define OPCODE_HBASE(name)
#define HG_OP(name, printed, reads, writes, api, ...) OPCODE_##api(name)
#include "base/op.def"
#undef HG_OP
    };
    return opcodes[op];
}

// Writes the extras of an opcode; returns their length.
static size_t put_extras(const struct hg_mcreq *req, uint8_t *out)
{
    switch (req->opcode) {
    case HG_OPCODE_SET:
    case HG_OPCODE_ADD:
    case HG_OPCODE_REPLACE:
        hg_put_u32(out, req->flags);
        hg_put_u32(out + 4, req->exptime);
        return 8;
    case HG_OPCODE_INCREMENT:
    case HG_OPCODE_DECREMENT:
        hg_put_u64(out, req->delta);
        hg_put_u64(out + 8, req->initial);
        hg_put_u32(out + 16, req->exptime);
        return 20;
    case HG_OPCODE_TOUCH:
    case HG_OPCODE_GAT:
        hg_put_u32(out, req->exptime);
        return 4;
    case HG_OPCODE_FLUSH:
        if (req->exptime == 0)
            return 0;
        hg_put_u32(out, req->exptime);
        return 4;
    default:
        return 0;
    }
}

size_t hg_mcreq_encode_head(const struct hg_mcreq *req, uint8_t *out)
{
    if (req->prefix.len > HG_KEY_MAX_BYTES || req->key.len > HG_KEY_MAX_BYTES)
        return 0;
    size_t key_len = req->prefix.len + req->key.len;
    if (key_len > HG_KEY_MAX_BYTES || req->value.len > UINT32_MAX - HG_MCREQ_HEAD_MAX)
        return 0;
    uint8_t *at = out + HG_FRAME_HEADER_BYTES;
    size_t extras_len = put_extras(req, at);
    at += extras_len;
    if (req->prefix.len > 0)
        memcpy(at, req->prefix.at, req->prefix.len);
    at += req->prefix.len;
    if (req->key.len > 0)
        memcpy(at, req->key.at, req->key.len);
    at += req->key.len;

    out[0] = HG_MAGIC_REQUEST;
    out[1] = req->opcode;
    hg_put_u16(out + 2, (uint16_t)key_len);
    out[4] = (uint8_t)extras_len;
    out[5] = HG_DATATYPE_RAW;
    hg_put_u16(out + 6, 0);
    hg_put_u32(out + 8, (uint32_t)(extras_len + key_len + req->value.len));
    hg_put_u32(out + 12, req->opaque);
    hg_put_u64(out + 16, req->cas);
    return (size_t)(at - out);
}

enum hg_codec hg_mcreply_decode(const uint8_t *bytes, size_t have, uint32_t max_body_bytes,
                                struct hg_mcreply *ret_reply)
{
    if (have > 0 && bytes[0] != HG_MAGIC_REPLY)
        return HG_BAD;
    if (have < HG_FRAME_HEADER_BYTES) {
        ret_reply->total_bytes = HG_FRAME_HEADER_BYTES;
        return HG_MORE;
    }
    uint32_t key_len = hg_get_u16(bytes + 2);
    uint32_t extras_len = bytes[4];
    uint32_t body_len = hg_get_u32(bytes + 8);
    if (extras_len + key_len > body_len || body_len > max_body_bytes)
        return HG_BAD;
    uint64_t total_bytes = HG_FRAME_HEADER_BYTES + (uint64_t)body_len;
    const uint8_t *extras = bytes + HG_FRAME_HEADER_BYTES;
    ret_reply->total_bytes = total_bytes;
    ret_reply->cas = hg_get_u64(bytes + 16);
    ret_reply->opaque = hg_get_u32(bytes + 12);
    ret_reply->status = hg_get_u16(bytes + 6);
    ret_reply->opcode = bytes[1];
    ret_reply->datatype = bytes[5];
    ret_reply->extras = hg_span(extras, extras_len);
    ret_reply->key = hg_span(extras + extras_len, key_len);
    ret_reply->value = hg_span(extras + extras_len + key_len, body_len - extras_len - key_len);
    return have < total_bytes ? HG_MORE : HG_OK;
}
