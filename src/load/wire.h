// wire - as much of the memcached binary protocol as a load generator needs
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_WIRE_H
#define HG_LOAD_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

#define HG_WIRE_HEADER   24
#define HG_WIRE_REQUEST  0x80
#define HG_WIRE_RESPONSE 0x81

/* Largest reply body that is believed; more means that the framing is lost. */
#define HG_WIRE_BODY_MAX (64u << 20)

enum {
    HG_WIRE_HELLO = 0x1f,
    HG_WIRE_SASL_LIST = 0x20,
    HG_WIRE_SASL_AUTH = 0x21,
    HG_WIRE_SASL_STEP = 0x22,
    HG_WIRE_SELECT_BUCKET = 0x89,
};

/* Places in a header. */
enum {
    HG_WIRE_AT_OPCODE = 1,
    HG_WIRE_AT_KEY_BYTES = 2,
    HG_WIRE_AT_EXTRAS_BYTES = 4,
    HG_WIRE_AT_STATUS = 6,
    HG_WIRE_AT_BODY_BYTES = 8,
    HG_WIRE_AT_OPAQUE = 12,
    HG_WIRE_AT_CAS = 16,
};

/* Writes a request header with opaque and CAS zero. */
static inline void hg_wire_put_header(uint8_t *to, uint8_t opcode, size_t key_bytes,
                                      size_t extras_bytes, size_t value_bytes)
{
    memset(to, 0, HG_WIRE_HEADER);
    to[0] = HG_WIRE_REQUEST;
    to[HG_WIRE_AT_OPCODE] = opcode;
    hg_put_u16(to + HG_WIRE_AT_KEY_BYTES, (uint16_t)key_bytes);
    to[HG_WIRE_AT_EXTRAS_BYTES] = (uint8_t)extras_bytes;
    hg_put_u32(to + HG_WIRE_AT_BODY_BYTES, (uint32_t)(key_bytes + extras_bytes + value_bytes));
}

#endif
