// binary - the memcached binary protocol: requests out, every reply checked
// SPDX-License-Identifier: BSD-3-Clause
//
// The way of almost every reply: its first 8 bytes (magic, opcode, lengths, data type, status) are
// the expected ones as one word, its opaque is that of the oldest request, and what its operation
// promises holds. Everything else takes the slow way, which finds out what is different.
#include "load/codec.h"
#include "load/rows.h"
#include "load/wire.h"

/* What an append adds: the first bytes of the key's value. */
#define APPEND_BYTES 8

/* Reply bodies above the largest value that are still believed: error texts. */
#define BODY_SLACK (64u << 10)

static uint32_t extras_of(enum hg_load_op op, const struct hg_load_tenant *tenant, uint8_t *to)
{
    switch (op) {
    case HG_LOAD_SET:
    case HG_LOAD_START:
        hg_put_u32(to, 0); /* flags: compose knows them */
        hg_put_u32(to + 4, tenant->expiry);
        return 8;
    case HG_LOAD_INCR:
        hg_put_u64(to, 1);
        hg_put_u64(to + 8, 0);
        hg_put_u32(to + 16, tenant->expiry);
        return 20;
    case HG_LOAD_TOUCH:
    case HG_LOAD_GAT:
        hg_put_u32(to, tenant->expiry);
        return 4;
    default:
        return 0;
    }
}

static void prepare(struct hg_load_lane *lane)
{
    const struct hg_load_tenant *tenant = lane->tenant;
    lane->body_max = tenant->value_max + BODY_SLACK;
    for (int i = 0; i < HG_LOAD_OPS; i++) {
        enum hg_load_op op = (enum hg_load_op)i;
        if (hg_load_op_is_row(op)) {
            hg_load_rows_prepare(lane, op);
            continue;
        }
        const struct hg_load_op_info *info = &hg_load_op_table[op];
        struct hg_lane_frame *frame = &lane->frame[op];
        uint32_t extras = extras_of(op, tenant, frame->bytes + HG_WIRE_HEADER);
        hg_wire_put_header(frame->bytes, info->opcode, tenant->key_bytes, extras, 0);
        frame->digits_end = HG_WIRE_HEADER + extras + tenant->key_bytes;
        frame->len = frame->digits_end;
        hg_lane_put_key(tenant, info->space, 0, frame->bytes + HG_WIRE_HEADER + extras);

        bool has_flags = op == HG_LOAD_GET || op == HG_LOAD_GAT || op == HG_LOAD_TOUCH;
        uint8_t begin[8] = {HG_WIRE_RESPONSE, info->opcode, 0, 0, has_flags ? 4 : 0};
        memcpy(&lane->expected[op], begin, 8);
    }
}

static size_t compose(const struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                      uint32_t opaque, uint8_t *to)
{
    const struct hg_lane_frame *frame = &lane->frame[op];
    hg_lane_put_frame(lane, op, key, to);
    memcpy(to + HG_WIRE_AT_OPAQUE, &opaque, sizeof opaque);
    if (hg_load_op_is_row(op)) {
        return hg_load_rows_compose(lane, op, key, to);
    }
    if (op != HG_LOAD_SET && op != HG_LOAD_START && op != HG_LOAD_APPEND) {
        return frame->len;
    }
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, key);
    if (op == HG_LOAD_APPEND) {
        value.len = APPEND_BYTES;
    } else {
        hg_put_u32(to + HG_WIRE_HEADER, value.flags);
    }
    hg_put_u32(to + HG_WIRE_AT_BODY_BYTES, frame->len - HG_WIRE_HEADER + value.len);
    hg_gen_value_write(&value, to + frame->len);
    return frame->len + value.len;
}

/* A successful read: flags and value. */
static bool check_value(struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                        const uint8_t *body, uint32_t body_bytes)
{
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, key);
    uint32_t flags = hg_get_u32(body);
    if (HG_LIKELY(flags == value.flags && hg_gen_value_is(&value, body + 4, body_bytes - 4))) {
        return true;
    }
    if (body_bytes - 4 != value.len) {
        hg_lane_wrong(lane, HG_LANE_WRONG_LENGTH, op, key, "value has %u bytes instead of %u",
                      body_bytes - 4, value.len);
    } else if (flags != value.flags) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FLAGS, op, key, "flags are 0x%08x instead of 0x%08x",
                      flags, value.flags);
    } else {
        size_t at = hg_gen_value_differs_at(&value, body + 4, value.len);
        hg_lane_wrong(lane, HG_LANE_WRONG_VALUE, op, key,
                      "byte %zu of the value's %u is 0x%02x instead of 0x%02x", at, value.len,
                      body[4 + at], hg_gen_value_byte(&value, at));
    }
    return false;
}

/* The body and CAS of a reply of status 0 whose header is in order. */
static bool check_success(struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                          const uint8_t *at, uint32_t body_bytes)
{
    uint32_t wanted = 0;
    switch (op) {
    case HG_LOAD_GET:
    case HG_LOAD_GAT:
        return check_value(lane, op, key, at + HG_WIRE_HEADER, body_bytes);
    case HG_LOAD_TOUCH:
        wanted = at[HG_WIRE_AT_EXTRAS_BYTES];
        break;
    case HG_LOAD_INCR:
        wanted = 8;
        break;
    default:
        break;
    }
    if (body_bytes != wanted) {
        hg_lane_wrong(lane, HG_LANE_WRONG_LENGTH, op, key, "reply has a body of %u bytes, not %u",
                      body_bytes, wanted);
        return false;
    }
    if (op != HG_LOAD_DELETE && op != HG_LOAD_TOUCH && hg_get_u64(at + HG_WIRE_AT_CAS) == 0) {
        hg_lane_wrong(lane, HG_LANE_WRONG_CAS, op, key, "CAS of what was stored is 0");
        return false;
    }
    return true;
}

/* What a reply of status 0 whose header is in order means. */
static enum hg_load_outcome judge_success(struct hg_load_lane *lane, enum hg_load_op op,
                                          uint32_t key, const uint8_t *at, uint32_t body_bytes)
{
    if (hg_load_op_is_row(op)) {
        return hg_load_rows_judge(lane, op, key, at, body_bytes);
    }
    return check_success(lane, op, key, at, body_bytes) ? HG_LOAD_DONE : HG_LOAD_WRONG;
}

/* A reply that does not begin as the ordinary one does. */
static enum hg_load_outcome check_slowly(struct hg_load_lane *lane,
                                         const struct hg_load_pending *pending, uint32_t opaque,
                                         const uint8_t *at, uint32_t body_bytes)
{
    enum hg_load_op op = (enum hg_load_op)pending->op;
    uint32_t key = pending->key;
    uint16_t status = hg_get_u16(at + HG_WIRE_AT_STATUS);
    uint32_t got_opaque;
    memcpy(&got_opaque, at + HG_WIRE_AT_OPAQUE, sizeof got_opaque);
    if (at[HG_WIRE_AT_OPCODE] != hg_load_op_table[op].opcode) {
        hg_lane_wrong(lane, HG_LANE_WRONG_OPCODE, op, key, "opcode is 0x%02x instead of 0x%02x",
                      at[HG_WIRE_AT_OPCODE], hg_load_op_table[op].opcode);
        return HG_LOAD_WRONG;
    }
    if (got_opaque != opaque) {
        hg_lane_wrong(lane, HG_LANE_WRONG_OPAQUE, op, key, "opaque is 0x%08x instead of 0x%08x",
                      got_opaque, opaque);
        return HG_LOAD_WRONG;
    }
    enum hg_load_outcome outcome = hg_load_status_means(status, op);
    if (outcome == HG_LOAD_WRONG) {
        uint32_t text = body_bytes < 100 ? body_bytes : 100;
        hg_lane_wrong(lane, HG_LANE_WRONG_STATUS, op, key, "status is 0x%02x (%s): '%.*s'", status,
                      hg_load_status_name(status), (int)text, (const char *)at + HG_WIRE_HEADER);
        return outcome;
    }
    uint16_t key_bytes = hg_get_u16(at + HG_WIRE_AT_KEY_BYTES);
    uint8_t extras = at[HG_WIRE_AT_EXTRAS_BYTES];
    uint8_t wanted =
        status == 0 && op != HG_LOAD_TOUCH ? ((const uint8_t *)&lane->expected[op])[4] : extras;
    bool odd_touch = op == HG_LOAD_TOUCH && extras != 0 && extras != 4;
    if (key_bytes != 0 || extras != wanted || odd_touch || extras > body_bytes) {
        hg_lane_wrong(lane, HG_LANE_WRONG_LENGTH, op, key,
                      "reply has a key of %u and extras of %u bytes", key_bytes, extras);
        return HG_LOAD_WRONG;
    }
    return status == 0 ? judge_success(lane, op, key, at, body_bytes) : outcome;
}

/* Whether what begins at `at` can be a reply at all. */
static bool is_reply(struct hg_load_conn *conn, const struct hg_load_pending *pending,
                     const uint8_t *at, uint32_t body_bytes)
{
    struct hg_load_lane *lane = conn->lane;
    enum hg_load_op op = (enum hg_load_op)pending->op;
    if (conn->head == conn->tail) {
        hg_lane_wrong(lane, HG_LANE_WRONG_UNASKED, op, pending->key,
                      "a reply came that no request waits for; this was the last request");
        return false;
    }
    if (at[0] != HG_WIRE_RESPONSE) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FRAMING, op, pending->key,
                      "magic is 0x%02x instead of 0x81", at[0]);
        return false;
    }
    if (body_bytes > lane->body_max) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FRAMING, op, pending->key,
                      "a body of %u bytes is announced, more than any value of this load",
                      body_bytes);
        return false;
    }
    return true;
}

static ssize_t answer(struct hg_load_conn *conn, const uint8_t *at, size_t len, uint64_t now_ns)
{
    struct hg_load_lane *lane = conn->lane;
    const uint8_t *start = at;
    const uint8_t *end = at + len;
    while (end - at >= HG_WIRE_HEADER) {
        uint32_t body_bytes = hg_get_u32(at + HG_WIRE_AT_BODY_BYTES);
        const struct hg_load_pending *pending =
            &conn->ring[(conn->head == conn->tail ? conn->head - 1 : conn->head) & conn->mask];
        if (HG_UNLIKELY(conn->head == conn->tail || at[0] != HG_WIRE_RESPONSE ||
                        body_bytes > lane->body_max) &&
            !is_reply(conn, pending, at, body_bytes)) {
            return -1;
        }
        if ((size_t)(end - at) < HG_WIRE_HEADER + (size_t)body_bytes) {
            break;
        }
        enum hg_load_op op = (enum hg_load_op)pending->op;
        uint32_t opaque = conn->head + conn->salt;
        uint64_t begin;
        memcpy(&begin, at, sizeof begin);
        bool plain = begin == lane->expected[op] && memcmp(at + HG_WIRE_AT_OPAQUE, &opaque, 4) == 0;
        enum hg_load_outcome outcome;
        hg_lane_aim(lane, pending->measured);
        if (HG_LIKELY(plain && body_bytes >= at[HG_WIRE_AT_EXTRAS_BYTES])) {
            outcome = judge_success(lane, op, pending->key, at, body_bytes);
        } else {
            outcome = check_slowly(lane, pending, opaque, at, body_bytes);
        }
        uint32_t slot = hg_load_status_slot(hg_get_u16(at + HG_WIRE_AT_STATUS));
        hg_lane_tell(lane, pending, outcome, slot, now_ns);
        conn->head++;
        at += HG_WIRE_HEADER + (size_t)body_bytes;
    }
    return at - start;
}

const struct hg_load_codec hg_load_codec_binary = {prepare, compose, answer};
