// mcreq - requests to a memcached server, and its replies
// SPDX-License-Identifier: BSD-3-Clause
//
// Operations travel as their loud opcodes: every request is answered, so replies are matched by
// order, and the opaque proves it. Pure.
#ifndef HG_PROTO_MCREQ_H
#define HG_PROTO_MCREQ_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/codec.h"
#include "base/op.h"
#include "base/span.h"
#include "proto/wire.h"

struct hg_mcreq {
    uint8_t opcode;        // loud: hg_mcreq_opcode(op), or one of session (Noop, SASL, Version)
    uint32_t opaque;       // in this machine's order
    uint64_t cas;          // 0 = none
    struct hg_span prefix; // goes before the key
    struct hg_span key;
    struct hg_span value; // only its length goes into the head
    uint32_t flags;       // Set, Add, Replace
    uint32_t exptime;     // those, counters, Touch, GAT; of Flush the delay
    uint64_t delta;       // counters
    uint64_t initial;     // counters; exptime 0xffffffff = do not create
};

#define HG_MCREQ_HEAD_MAX (HG_FRAME_HEADER_BYTES + 20 + HG_KEY_MAX_BYTES)

/* The loud opcode of an operation that a store carries out. */
uint8_t hg_mcreq_opcode(enum hg_op op);

/* Writes header, extras, prefix and key; the value, if any, is to follow. `out` has at least
 * HG_MCREQ_HEAD_MAX bytes. Returns the length, or 0 (nothing written) if prefix and key together
 * are longer than HG_KEY_MAX_BYTES or the value is longer than a frame can be. */
size_t hg_mcreq_encode_head(const struct hg_mcreq *req, uint8_t *out) HG_MUST_USE;

struct hg_mcreply {
    uint64_t total_bytes; // header and body; 24 while the header is not complete
    uint64_t cas;
    uint32_t opaque; // in this machine's order
    uint16_t status;
    uint8_t opcode;
    uint8_t datatype;
    struct hg_span extras;
    struct hg_span key;
    struct hg_span value;
};

/* Looks at the `have` bytes at `bytes`. HG_MORE: as hg_frame_decode, total_bytes and all fields
 * are there once the header is. HG_BAD: not a reply, lengths that contradict each other, or a
 * body longer than max_body_bytes; the connection is of no more use. */
enum hg_codec hg_mcreply_decode(const uint8_t *bytes, size_t have, uint32_t max_body_bytes,
                                struct hg_mcreply *ret_reply) HG_MUST_USE;

#endif
