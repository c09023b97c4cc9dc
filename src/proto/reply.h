// reply - the replies to clients: the header, and errors that say what was wrong
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: writes into the caller's bytes.
#ifndef HG_PROTO_REPLY_H
#define HG_PROTO_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/span.h"
#include "proto/frameinfo.h"
#include "proto/wire.h"

/* Writes a reply's header. `opaque` as hg_frame has it (never swapped). For HG_MAGIC_REPLY_ALT
 * `key_len` is hg_reply_key_len_alt(framing extras, key); body_len counts framing extras too. */
static inline void hg_reply_header(uint8_t out[HG_FRAME_HEADER_BYTES], uint8_t magic,
                                   uint8_t opcode, uint16_t key_len, uint8_t extras_len,
                                   uint8_t datatype, uint16_t status, uint32_t body_len,
                                   uint32_t opaque, uint64_t cas)
{
    out[0] = magic;
    out[1] = opcode;
    hg_put_u16(out + 2, key_len);
    out[4] = extras_len;
    out[5] = datatype;
    hg_put_u16(out + 6, status);
    hg_put_u32(out + 8, body_len);
    memcpy(out + 12, &opaque, sizeof opaque);
    hg_put_u64(out + 16, cas);
}

static inline uint16_t hg_reply_key_len_alt(uint8_t framing_len, uint8_t key_len)
{
    return (uint16_t)(framing_len << 8 | key_len);
}

/* An error: opcode and opaque echoed, no extras, CAS 0, a body that says what and why. */
struct hg_reply_error {
    uint8_t opcode;
    bool json;              // HELLO JSON is in force: the body is an error context
    uint16_t status;        // enum hg_status
    uint32_t opaque;        // as hg_frame has it
    struct hg_span framing; // framing extras (hg_frameinfo_encode), or none
    struct hg_span key;     // of a GetK miss; otherwise none
    struct hg_span text;    // what is wrong and what is right; none = the status' own text
    // More members of the error object, as JSON without the braces and with a colon each:
    // "\"limit\":\"hard_limit\",\"retry_after_ms\":200"; none = no more. Without `json` they
    // follow the text in brackets.
    struct hg_span members;
    // If there, the whole value, whatever was negotiated: {"next_tick_us":250000}
    struct hg_span verbatim;
};

/* The value of an error is at most this long; a longer text is cut, and stays valid JSON. */
#define HG_REPLY_ERROR_VALUE_MAX 1024
#define HG_REPLY_ERROR_MAX                                                                         \
    (HG_FRAME_HEADER_BYTES + HG_FRAMEINFO_USAGE_MAX + HG_KEY_MAX_BYTES + HG_REPLY_ERROR_VALUE_MAX)

/* The value alone, for several replies: text and members, in JSON if the client understands it. Cut
 * to fit into `cap` bytes, at least 64; returns its length. */
size_t hg_reply_error_value(uint8_t *out, size_t cap, bool json, struct hg_span text,
                            struct hg_span members);

/* Writes the whole reply into out, which has at least HG_REPLY_ERROR_MAX bytes; returns its
 * length. Key and framing extras longer than the maximum are left out. */
size_t hg_reply_error(uint8_t *out, const struct hg_reply_error *error);

#endif
