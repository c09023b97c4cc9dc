// resp - GET and SET of Redis' protocol, every reply checked
// SPDX-License-Identifier: BSD-3-Clause
//
// For Redis itself and for proxies in front of it, so that they can be measured in the same way.
// A reply carries neither opaque nor key, and a Redis keeps no flags: what tells one key's value
// from another's is the value. Results are counted under the binary protocol's status codes; an
// error reply has 0x84's.
#include <stdio.h>
#include <string.h>

#include "load/lines.h"

/* Values longer than this load's largest that are still read, to say so. */
#define BODY_SLACK (64u << 10)

static void prepare(struct hg_load_lane *lane)
{
    const struct hg_load_tenant *tenant = lane->tenant;
    lane->body_max = tenant->value_max + BODY_SLACK;
    for (int op = HG_LOAD_GET; op <= HG_LOAD_SET; op++) {
        struct hg_lane_frame *frame = &lane->frame[op];
        char head[40];
        bool is_get = op == HG_LOAD_GET;
        int len = snprintf(head, sizeof head, "*%d\r\n$3\r\n%s\r\n$%u\r\n", is_get ? 2 : 3,
                           is_get ? "GET" : "SET", tenant->key_bytes);
        memcpy(frame->bytes, head, (size_t)len);
        hg_lane_put_key(tenant, hg_load_op_table[op].space, 0, frame->bytes + len);
        frame->digits_end = (uint32_t)len + tenant->key_bytes;
        memcpy(frame->bytes + frame->digits_end, "\r\n$", 3);
        frame->len = frame->digits_end + (is_get ? 2 : 3);
    }
}

static size_t compose(const struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                      uint32_t opaque, uint8_t *to)
{
    (void)opaque;
    hg_lane_put_frame(lane, op, key, to);
    if (op == HG_LOAD_GET) {
        return lane->frame[op].len;
    }
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, key);
    uint8_t *at = hg_gen_put_number(to + lane->frame[op].len, value.len, '\r');
    *at++ = '\n';
    hg_gen_value_write(&value, at);
    at += value.len;
    *at++ = '\r';
    *at++ = '\n';
    return (size_t)(at - to);
}

static bool is_line(const uint8_t *at, size_t len, const char *text)
{
    size_t text_len = strlen(text);
    return len == text_len && memcmp(at, text, text_len) == 0;
}

/* The length in a "$LENGTH" line; false when there is none up to `max`. */
static bool decode_length(const uint8_t *at, size_t len, uint32_t max, uint32_t *ret_length)
{
    uint64_t number = 0;
    for (size_t i = 1; i < len; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(at[i] - '0');
        if (number > max) {
            return false;
        }
    }
    *ret_length = (uint32_t)number;
    return len > 1;
}

/* A value of which `len` bytes are here, with the line of its length. Its bytes, 0 when it is
 * unfinished, -1 when it cannot be followed. */
static ssize_t answer_value(struct hg_load_lane *lane, const struct hg_load_pending *pending,
                            const uint8_t *at, size_t line_len, size_t len,
                            enum hg_load_outcome *ret_outcome)
{
    enum hg_load_op op = (enum hg_load_op)pending->op;
    uint32_t value_bytes;
    if (!decode_length(at, line_len, lane->body_max, &value_bytes)) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FRAMING, op, pending->key, "cannot follow '%.*s'",
                      (int)(line_len < 100 ? line_len : 100), (const char *)at);
        return -1;
    }
    size_t whole = line_len + 2 + value_bytes + 2;
    if (len < whole) {
        return 0;
    }
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, pending->key);
    const uint8_t *body = at + line_len + 2;
    if (memcmp(body + value_bytes, "\r\n", 2) != 0) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FRAMING, op, pending->key,
                      "no line ends after the value");
        return -1;
    }
    *ret_outcome = HG_LOAD_WRONG;
    if (op != HG_LOAD_GET) {
        hg_lane_wrong(lane, HG_LANE_WRONG_OPCODE, op, pending->key, "answered with a value");
    } else if (value_bytes != value.len) {
        hg_lane_wrong(lane, HG_LANE_WRONG_LENGTH, op, pending->key,
                      "value has %u bytes instead of %u", value_bytes, value.len);
    } else if (!hg_gen_value_is(&value, body, value_bytes)) {
        size_t i = hg_gen_value_differs_at(&value, body, value_bytes);
        hg_lane_wrong(lane, HG_LANE_WRONG_VALUE, op, pending->key,
                      "byte %zu of the value's %u is 0x%02x instead of 0x%02x", i, value.len,
                      body[i], hg_gen_value_byte(&value, i));
    } else {
        *ret_outcome = HG_LOAD_DONE;
    }
    return (ssize_t)whole;
}

/* A reply of one line. */
static enum hg_load_outcome answer_line(struct hg_load_lane *lane,
                                        const struct hg_load_pending *pending, const uint8_t *at,
                                        size_t line_len, uint16_t *ret_status)
{
    enum hg_load_op op = (enum hg_load_op)pending->op;
    if (op == HG_LOAD_GET && is_line(at, line_len, "$-1")) {
        *ret_status = 0x01;
        return HG_LOAD_MISS;
    }
    if (op == HG_LOAD_SET && is_line(at, line_len, "+OK")) {
        *ret_status = 0x00;
        return HG_LOAD_DONE;
    }
    if (line_len > 0 && at[0] == '-') {
        *ret_status = 0x84;
        return HG_LOAD_REFUSED;
    }
    *ret_status = 0x04;
    hg_lane_wrong(lane, HG_LANE_WRONG_STATUS, op, pending->key, "answered '%.*s'",
                  (int)(line_len < 100 ? line_len : 100), (const char *)at);
    return HG_LOAD_WRONG;
}

static bool is_value(const uint8_t *at, size_t line_len)
{
    return line_len > 1 && at[0] == '$' && at[1] != '-';
}

static const struct hg_load_lines lines = {is_value, answer_value, answer_line};

static ssize_t answer(struct hg_load_conn *conn, const uint8_t *at, size_t len, uint64_t now_ns)
{
    return hg_load_lines_answer(&lines, conn, at, len, now_ns);
}

const struct hg_load_codec hg_load_codec_resp = {prepare, compose, answer};
