// frame - cuts requests out of a client's bytes, in place, and judges their shape
// SPDX-License-Identifier: BSD-3-Clause
//
// Every request passes here, so what is usual is straight code. A frame of usual shape (plain
// magic, a key, the right extras, no data type) is recognised while its header is in registers, by
// one row of the opcode table; any other is `odd`, and looked at again by hg_frame_check_odd, which
// knows every rule and finds the one that is broken. Both follow from the same row, and a test
// holds them together.
#include "proto/frame.h"

#include <stdio.h>

#include "base/bytes.h"
#include "proto/hello.h"
#include "proto/status.h"

static enum hg_codec bad_magic(uint8_t first, struct hg_frame *ret_frame)
{
    *ret_frame = (struct hg_frame){
        .total_bytes = HG_FRAME_HEADER_BYTES,
        .kind = HG_FRAME_BAD_MAGIC,
        .odd = true,
        .stranger = (uint8_t)hg_stranger_of(first),
    };
    return HG_BAD;
}

static enum hg_codec decode_short(const uint8_t *bytes, size_t have, struct hg_frame *ret_frame)
{
    if (have > 0 && bytes[0] != HG_MAGIC_REQUEST && bytes[0] != HG_MAGIC_REQUEST_ALT)
        return bad_magic(bytes[0], ret_frame);
    *ret_frame = (struct hg_frame){.total_bytes = HG_FRAME_HEADER_BYTES};
    return HG_MORE;
}

// A value beyond the limit of items: administration has limits of its own, which the check knows.
static bool must_skip(const struct hg_opcode_row *row, uint32_t value_len)
{
    return !row || !row->admin_value || value_len - row->value_min > row->value_span;
}

// The one place where lengths are judged; HG_FRAME_WHOLE if the body may be read.
static enum hg_frame_kind judge_lengths(uint32_t body_len, uint32_t before_value,
                                        const struct hg_frame_limits *limits,
                                        const struct hg_opcode_row *row)
{
    if (before_value > body_len)
        return HG_FRAME_BAD_LENGTHS;
    if (body_len > limits->max_frame_bytes)
        return HG_FRAME_TOO_LONG;
    uint32_t value_len = body_len - before_value;
    if (value_len > limits->max_value_bytes && must_skip(row, value_len))
        return HG_FRAME_SKIP;
    return HG_FRAME_WHOLE;
}

// Whether a frame has the usual shape, and so needs no other judgement. `value_len` may have gone
// below 0, which is more than any row allows.
static inline bool quick_test(const struct hg_opcode_row *row, const uint8_t *bytes, size_t key_len,
                              uint32_t value_len)
{
    uint16_t extras;
    uint64_t wire_cas;
    memcpy(&extras, bytes + 4, sizeof extras);
    memcpy(&wire_cas, bytes + 16, sizeof wire_cas);
    return row->quick_extras == extras && key_len - 1 < HG_KEY_MAX_BYTES &&
           value_len <= row->quick_value && (wire_cas & row->cas_mask) == 0;
}

// The fields that a header gives, whatever becomes of the frame.
static inline void fill(const uint8_t *bytes, size_t before_key, size_t key_len,
                        uint64_t total_bytes, const struct hg_opcode_row *row,
                        struct hg_frame *frame)
{
    memcpy(frame, bytes, offsetof(struct hg_frame, cas));
    frame->cas = hg_get_u64(bytes + 16);
    frame->row = row;
    frame->total_bytes = total_bytes;
    frame->key = hg_span(bytes + HG_FRAME_HEADER_BYTES + before_key, key_len);
    frame->stranger = 0;
}

// Any frame that has not the usual shape. Out of line, so that it costs the usual ones no register.
static __attribute__((noinline)) enum hg_codec decode_odd(const uint8_t *bytes, size_t have,
                                                          const struct hg_frame_limits *limits,
                                                          struct hg_frame *ret_frame)
{
    bool alt = bytes[0] == HG_MAGIC_REQUEST_ALT;
    uint32_t framing_len = alt ? bytes[2] : 0;
    uint32_t key_len = alt ? bytes[3] : hg_get_u16(bytes + 2);
    uint32_t before_key = framing_len + bytes[4];
    const struct hg_opcode_row *row = hg_opcode_row(bytes[1]);
    uint32_t body_len = hg_get_u32(bytes + 8);
    uint64_t total_bytes = HG_FRAME_HEADER_BYTES + (uint64_t)body_len;
    enum hg_frame_kind kind = judge_lengths(body_len, before_key + key_len, limits, row);
    fill(bytes, before_key, key_len, total_bytes, row, ret_frame);
    ret_frame->kind = (uint8_t)kind;
    ret_frame->odd = true;
    ret_frame->framing_len = (uint8_t)framing_len;
    if (kind == HG_FRAME_WHOLE)
        return have < total_bytes ? HG_MORE : HG_OK;
    ret_frame->key = HG_SPAN_NONE;
    return kind == HG_FRAME_SKIP ? HG_OK : HG_BAD;
}

enum hg_codec hg_frame_decode(const uint8_t *bytes, size_t have,
                              const struct hg_frame_limits *limits, struct hg_frame *ret_frame)
{
    if (HG_UNLIKELY(have < HG_FRAME_HEADER_BYTES))
        return decode_short(bytes, have, ret_frame);
    if (HG_UNLIKELY(bytes[0] != HG_MAGIC_REQUEST)) {
        if (bytes[0] != HG_MAGIC_REQUEST_ALT)
            return bad_magic(bytes[0], ret_frame);
        return decode_odd(bytes, have, limits, ret_frame);
    }
    const struct hg_opcode_row *row = hg_opcode_table[bytes[1]];
    size_t extras_len = bytes[4];
    size_t key_len = hg_get_u16(bytes + 2);
    uint32_t body_len = hg_get_u32(bytes + 8);
    uint32_t value_len =
        body_len - (uint32_t)(extras_len + key_len); // may go below 0: then very large
    if (HG_UNLIKELY(body_len > limits->max_frame_bytes || value_len > limits->max_value_bytes ||
                    !quick_test(row, bytes, key_len, value_len)))
        return decode_odd(bytes, have, limits, ret_frame);
    uint64_t total_bytes = HG_FRAME_HEADER_BYTES + (uint64_t)body_len;
    fill(bytes, extras_len, key_len, total_bytes, row, ret_frame);
    ret_frame->kind = HG_FRAME_WHOLE;
    ret_frame->odd = false;
    ret_frame->framing_len = 0;
    return have < total_bytes ? HG_MORE : HG_OK;
}

static bool wrong_extras(const struct hg_opcode_row *row, uint32_t len)
{
    return len > 31 || (row->extras_lengths >> len & 1) == 0;
}

// The first rule of its row that a frame breaks, in the order of the header; NULL if none.
static const char *broken_rule(const struct hg_frame *frame, uint32_t features)
{
    const struct hg_opcode_row *row = frame->row;
    if (wrong_extras(row, frame->extras_len))
        return row->extras_text;
    if ((uint32_t)frame->key.len - row->key_min > row->key_span)
        return row->key_text;
    if ((uint32_t)hg_frame_value(frame).len - row->value_min > row->value_span)
        return row->value_text;
    if ((frame->datatype & ~HG_DATATYPE_JSON) != 0)
        return "data type has unknown bits: 0x00 (raw) and 0x01 (JSON) are accepted";
    if (frame->datatype == HG_DATATYPE_JSON && (features & HG_FEATURE_JSON) == 0)
        return "data type 0x01 (JSON) is accepted after HELLO JSON (0x0b) only";
    if ((frame->cas & row->cas_mask) != 0)
        return row->cas_text;
    return NULL;
}

uint16_t hg_frame_check_odd(const struct hg_frame *frame, uint32_t features, const char **ret_why)
{
    if (frame->kind == HG_FRAME_BAD_MAGIC) {
        *ret_why = "not the memcached binary protocol: magic 0x80 or 0x08 is accepted";
        return HG_STATUS_EINVAL;
    }
    if (frame->kind == HG_FRAME_BAD_LENGTHS) {
        *ret_why = "framing extras, extras and key are longer than the body they are in";
        return HG_STATUS_EINVAL;
    }
    if (frame->kind == HG_FRAME_TOO_LONG) {
        *ret_why = "body longer than max_frame_bytes";
        return HG_STATUS_E2BIG;
    }
    if (!frame->row) {
        *ret_why = "unknown opcode";
        return HG_STATUS_UNKNOWN_COMMAND;
    }
    if (frame->kind == HG_FRAME_SKIP && !frame->row->admin_value) {
        *ret_why = "value longer than max_value_bytes";
        return HG_STATUS_E2BIG;
    }
    const char *broken =
        frame->kind == HG_FRAME_SKIP ? frame->row->value_text : broken_rule(frame, features);
    if (!broken)
        return HG_STATUS_SUCCESS;
    *ret_why = broken;
    return HG_STATUS_EINVAL;
}

// The value's length of a frame without spans.
static uint32_t wire_value_len(const struct hg_frame *frame)
{
    uint32_t key = be16toh(frame->wire_key_len);
    if (frame->magic == HG_MAGIC_REQUEST_ALT)
        key = (key >> 8) + (key & 0xff); // framing extras and key
    return (uint32_t)(frame->total_bytes - HG_FRAME_HEADER_BYTES) - frame->extras_len - key;
}

size_t hg_frame_explain(const struct hg_frame *frame, const struct hg_frame_limits *limits,
                        const char *why, char *out, size_t cap)
{
    unsigned long long body = frame->total_bytes - HG_FRAME_HEADER_BYTES;
    int len;
    if (frame->kind == HG_FRAME_TOO_LONG)
        len = snprintf(out, cap, "body of %llu bytes, at most %u are accepted (max_frame_bytes)",
                       body, limits->max_frame_bytes);
    else if (frame->kind != HG_FRAME_BAD_MAGIC && !frame->row)
        len = snprintf(out, cap, "unknown opcode 0x%02x", frame->opcode);
    else if (frame->kind == HG_FRAME_SKIP && !frame->row->admin_value)
        len = snprintf(out, cap, "value of %u bytes, at most %u are accepted (max_value_bytes)",
                       wire_value_len(frame), limits->max_value_bytes);
    else if (frame->kind == HG_FRAME_SKIP)
        len = snprintf(out, cap, "%s, not of %u", why, wire_value_len(frame));
    else
        len = snprintf(out, cap, "%s", why);
    if (len < 0 || cap == 0)
        return 0;
    return (size_t)len < cap ? (size_t)len : cap - 1;
}
