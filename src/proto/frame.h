// frame - cuts requests out of a client's bytes, in place, and judges their shape
// SPDX-License-Identifier: BSD-3-Clause
//
//   0      1       2           4        5         6        8      12      16     24
//   magic  opcode  key length  extras   datatype  vbucket  body   opaque  CAS    framing extras,
//                  (0x08: framing u8, key u8)              length                extras, key, value
//
// What to do with a frame is known from its header alone, so the answer is the same however the
// bytes arrive, and nobody waits for a body that will be refused:
//
//   hg_frame_decode   kind                   then
//   HG_MORE           -                      read until total_bytes are there, decode again; or,
//                                            if the header is there and hg_frame_check refuses
//                                            it, do as with HG_FRAME_SKIP at once
//   HG_OK             HG_FRAME_WHOLE         hg_frame_check; carry out or refuse; consume
//                                            total_bytes
//   HG_OK             HG_FRAME_SKIP          refuse as hg_frame_check says; drop total_bytes,
//                                            arrived or not; the connection stays
//   HG_BAD            HG_FRAME_BAD_LENGTHS,  refuse as hg_frame_check says, close
//                     HG_FRAME_TOO_LONG
//   HG_BAD            HG_FRAME_BAD_MAGIC     count by `stranger`, close
//
// Pure; the spans of a frame point into the caller's bytes and hold as long as those do.
#ifndef HG_PROTO_FRAME_H
#define HG_PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/codec.h"
#include "proto/opcode.h"
#include "proto/stranger.h"

struct hg_frame_limits {
    uint32_t max_frame_bytes; // of the body: framing extras, extras, key and value together
    uint32_t max_value_bytes; // of an item; values of administration have their own limits
};

enum hg_frame_kind {
    HG_FRAME_WHOLE,
    HG_FRAME_SKIP,        // to be refused without waiting for its body
    HG_FRAME_BAD_LENGTHS, // framing extras + extras + key > body
    HG_FRAME_TOO_LONG,    // body > max_frame_bytes
    HG_FRAME_BAD_MAGIC,
};

struct hg_frame {
    // The first 16 bytes of the header as they came, big-endian where longer than a byte.
    uint8_t magic;
    uint8_t opcode;
    uint16_t wire_key_len; // use key.len
    uint8_t extras_len;
    uint8_t datatype;
    uint16_t wire_vbucket;
    uint32_t wire_body_len; // use total_bytes
    uint32_t opaque;        // to be echoed as it is, never swapped

    uint64_t cas;
    const struct hg_opcode_row *row; // NULL: an unknown opcode
    uint64_t total_bytes;            // header and body; 24 while the header is not complete
    struct hg_span key;
    uint8_t kind;     // enum hg_frame_kind
    uint8_t stranger; // enum hg_stranger, for HG_FRAME_BAD_MAGIC
    bool odd;         // not of the shape that needs no closer look
    uint8_t framing_len;
};

/* Looks at the `have` bytes at `bytes`, the first of which begins a frame.
 *
 * HG_MORE: total_bytes says how many bytes the frame has. Once `have` is at least
 * HG_FRAME_HEADER_BYTES every field is there; its parts lie where the body will be if it is read
 * behind the header, and of them only what lies within `have` may be looked at.
 * HG_OK, HG_BAD: see above. row, opcode and opaque are there for a reply, except for
 * HG_FRAME_BAD_MAGIC, where only `kind` and `stranger` are. A frame that is not whole has an empty
 * key and no other parts. */
enum hg_codec hg_frame_decode(const uint8_t *bytes, size_t have,
                              const struct hg_frame_limits *limits,
                              struct hg_frame *ret_frame) HG_MUST_USE;

/* The part of hg_frame_check that is seldom needed. */
uint16_t hg_frame_check_odd(const struct hg_frame *frame, uint32_t features,
                            const char **ret_why) HG_MUST_USE;

/* Judges a frame by its opcode's row: HG_STATUS_SUCCESS (0), or the status to refuse it with and,
 * in ret_why, a static text that says what is wrong and what is right (untouched on success).
 * `features` is the set in force (proto/hello.h). Frame info is judged by hg_frameinfo_decode. */
static inline uint16_t hg_frame_check(const struct hg_frame *frame, uint32_t features,
                                      const char **ret_why)
{
    return !HG_UNLIKELY(frame->odd) ? 0 : hg_frame_check_odd(frame, features, ret_why);
}

/* The other parts of a whole frame; they lie around the key. */
static inline struct hg_span hg_frame_extras(const struct hg_frame *frame)
{
    return hg_span(frame->key.at - frame->extras_len, frame->extras_len);
}

static inline struct hg_span hg_frame_framing(const struct hg_frame *frame)
{
    return hg_span(frame->key.at - frame->extras_len - frame->framing_len, frame->framing_len);
}

static inline struct hg_span hg_frame_value(const struct hg_frame *frame)
{
    uint64_t before =
        HG_FRAME_HEADER_BYTES + (uint64_t)frame->framing_len + frame->extras_len + frame->key.len;
    return hg_span(frame->key.at + frame->key.len, (size_t)(frame->total_bytes - before));
}

/* Writes the text for a refused frame with the numbers in it ("value of 1048600 bytes, at most
 * 1048576 are accepted") as a string into out; returns its length, cut to cap - 1. `why` is what
 * hg_frame_check said. */
size_t hg_frame_explain(const struct hg_frame *frame, const struct hg_frame_limits *limits,
                        const char *why, char *out, size_t cap);

#endif
