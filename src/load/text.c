// text - get and set of memcached's ASCII protocol, every reply checked
// SPDX-License-Identifier: BSD-3-Clause
//
// For servers and proxies that speak nothing else, so that they can be measured in the same way.
// The protocol has no opaque; instead the key that comes with a value is checked. Results are
// counted under the binary protocol's status codes; SERVER_ERROR has 0x84's.
#include "load/lines.h"

/* Values longer than this load's largest that are still read, to say so. */
#define BODY_SLACK (64u << 10)

static void prepare(struct hg_load_lane *lane)
{
    static const char *const verbs[] = {[HG_LOAD_GET] = "get ", [HG_LOAD_SET] = "set "};
    const struct hg_load_tenant *tenant = lane->tenant;
    lane->body_max = tenant->value_max + BODY_SLACK;
    for (int op = HG_LOAD_GET; op <= HG_LOAD_SET; op++) {
        struct hg_lane_frame *frame = &lane->frame[op];
        memcpy(frame->bytes, verbs[op], 4);
        hg_lane_put_key(tenant, hg_load_op_table[op].space, 0, frame->bytes + 4);
        frame->digits_end = 4 + tenant->key_bytes;
        memcpy(frame->bytes + frame->digits_end, op == HG_LOAD_GET ? "\r\n" : " ", 2);
        frame->len = frame->digits_end + (op == HG_LOAD_GET ? 2 : 1);
    }
}

static size_t compose(const struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                      uint32_t opaque, uint8_t *to)
{
    (void)opaque;
    uint8_t *at = to + lane->frame[op].len;
    hg_lane_put_frame(lane, op, key, to);
    if (op == HG_LOAD_GET) {
        return lane->frame[op].len;
    }
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, key);
    at = hg_gen_put_number(at, value.flags, ' ');
    at = hg_gen_put_number(at, lane->tenant->expiry, ' ');
    at = hg_gen_put_number(at, value.len, '\r');
    *at++ = '\n';
    hg_gen_value_write(&value, at);
    at += value.len;
    *at++ = '\r';
    *at++ = '\n';
    return (size_t)(at - to);
}

static bool begins(const uint8_t *at, size_t len, const char *text)
{
    size_t text_len = strlen(text);
    return len >= text_len && memcmp(at, text, text_len) == 0;
}

/* Reads " NUMBER" before `end`; NULL when there is none of 32 bits. */
static const uint8_t *get_number(const uint8_t *at, const uint8_t *end, uint32_t *ret_number)
{
    uint64_t number = 0;
    if (end - at < 2 || *at != ' ') {
        return NULL;
    }
    for (at++; at < end && *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
        if (number > UINT32_MAX) {
            return NULL;
        }
    }
    *ret_number = (uint32_t)number;
    return at;
}

/* The " FLAGS LENGTH" behind the key of a VALUE line of `len` bytes. */
static bool decode_value_line(const uint8_t *at, size_t len, uint32_t *ret_flags, uint32_t *ret_len)
{
    const uint8_t *end = at + len;
    at = get_number(at, end, ret_flags);
    return at != NULL && get_number(at, end, ret_len) == end;
}

/* A reply that begins with VALUE. Its bytes, 0 when it is unfinished, -1 when it cannot be
 * followed. */
static ssize_t answer_value(struct hg_load_lane *lane, const struct hg_load_pending *pending,
                            const uint8_t *at, size_t line_len, size_t len,
                            enum hg_load_outcome *ret_outcome)
{
    static const char tail[] = "\r\nEND\r\n";
    enum hg_load_op op = (enum hg_load_op)pending->op;
    const struct hg_lane_frame *frame = &lane->frame[HG_LOAD_GET];
    size_t key_bytes = lane->tenant->key_bytes;
    uint8_t key[256];
    memcpy(key, frame->bytes + 4, key_bytes);
    hg_gen_put_digits(key + key_bytes, lane->digits, pending->key);
    uint32_t flags, value_bytes;
    if (line_len < 6 + key_bytes ||
        !decode_value_line(at + 6 + key_bytes, line_len - 6 - key_bytes, &flags, &value_bytes) ||
        value_bytes > lane->body_max) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FRAMING, op, pending->key, "cannot follow '%.*s'",
                      (int)(line_len < 100 ? line_len : 100), (const char *)at);
        return -1;
    }
    size_t whole = line_len + 2 + value_bytes + sizeof tail - 1;
    if (len < whole) {
        return 0;
    }
    struct hg_gen_value value = hg_gen_value_of(&lane->tables->values, pending->key);
    const uint8_t *body = at + line_len + 2;
    if (memcmp(body + value_bytes, tail, sizeof tail - 1) != 0) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FRAMING, op, pending->key, "no END follows the value");
        return -1;
    }
    *ret_outcome = HG_LOAD_WRONG;
    if (op != HG_LOAD_GET || memcmp(at + 6, key, key_bytes) != 0) {
        hg_lane_wrong(lane, HG_LANE_WRONG_OPAQUE, op, pending->key,
                      "answered with the value of key '%.*s'", (int)key_bytes,
                      (const char *)at + 6);
    } else if (value_bytes != value.len) {
        hg_lane_wrong(lane, HG_LANE_WRONG_LENGTH, op, pending->key,
                      "value has %u bytes instead of %u", value_bytes, value.len);
    } else if (flags != value.flags) {
        hg_lane_wrong(lane, HG_LANE_WRONG_FLAGS, op, pending->key, "flags are %u instead of %u",
                      flags, value.flags);
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
    if (op == HG_LOAD_GET && line_len == 3 && begins(at, line_len, "END")) {
        *ret_status = 0x01;
        return HG_LOAD_MISS;
    }
    if (op == HG_LOAD_SET && line_len == 6 && begins(at, line_len, "STORED")) {
        *ret_status = 0x00;
        return HG_LOAD_DONE;
    }
    if (op == HG_LOAD_SET && line_len == 10 && begins(at, line_len, "NOT_STORED")) {
        *ret_status = 0x05;
        return HG_LOAD_MISS;
    }
    if (begins(at, line_len, "SERVER_ERROR")) {
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
    return begins(at, line_len, "VALUE ");
}

static const struct hg_load_lines lines = {is_value, answer_value, answer_line};

static ssize_t answer(struct hg_load_conn *conn, const uint8_t *at, size_t len, uint64_t now_ns)
{
    return hg_load_lines_answer(&lines, conn, at, len, now_ns);
}

const struct hg_load_codec hg_load_codec_text = {prepare, compose, answer};
