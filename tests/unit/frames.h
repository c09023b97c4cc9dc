// frames - makes request frames for the tests of the wire
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TESTS_UNIT_FRAMES_H
#define HG_TESTS_UNIT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "proto/wire.h"

struct frame_spec {
    uint8_t opcode;
    uint8_t extras_len;
    uint8_t framing_len; // not 0: magic 0x08
    uint8_t datatype;
    uint16_t key_len;
    uint32_t value_len;
    uint64_t cas;
    bool alt; // magic 0x08 whatever framing_len
};

#define SPEC_OPAQUE 0xa1b2c3d4u

/* Writes a header only; lengths of any size. */
static inline void put_header(uint8_t *out, const struct frame_spec *spec)
{
    bool alt = spec->alt || spec->framing_len > 0;
    out[0] = alt ? HG_MAGIC_REQUEST_ALT : HG_MAGIC_REQUEST;
    out[1] = spec->opcode;
    hg_put_u16(out + 2, spec->key_len);
    if (alt)
        out[2] = spec->framing_len;
    out[4] = spec->extras_len;
    out[5] = spec->datatype;
    hg_put_u16(out + 6, 0x0102);
    hg_put_u32(out + 8, spec->framing_len + spec->extras_len + spec->key_len + spec->value_len);
    hg_put_u32(out + 12, SPEC_OPAQUE);
    hg_put_u64(out + 16, spec->cas);
}

/* Writes header and body; each part of the body has bytes of its own: f, e, k, v. */
static inline size_t put_frame(uint8_t *out, const struct frame_spec *spec)
{
    put_header(out, spec);
    uint8_t *at = out + HG_FRAME_HEADER_BYTES;
    memset(at, 'f', spec->framing_len);
    at += spec->framing_len;
    memset(at, 'e', spec->extras_len);
    at += spec->extras_len;
    memset(at, 'k', spec->key_len);
    at += spec->key_len;
    memset(at, 'v', spec->value_len);
    at += spec->value_len;
    return (size_t)(at - out);
}

#endif
