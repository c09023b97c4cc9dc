// keyslot - which of the 16384 slots of a Redis Cluster a key belongs to
// SPDX-License-Identifier: BSD-3-Clause
//
// CRC16 of the key (polynomial 0x1021, XMODEM: "123456789" gives 0x31c3) modulo 16384. If the key
// has a '{' and, behind it, a '}' with at least one byte in between, only the bytes between the
// first '{' and the first '}' behind it count: the hash tag, by which keys are kept together.
// Source: the Redis Cluster specification. Pure.
#ifndef HG_PROTO_KEYSLOT_H
#define HG_PROTO_KEYSLOT_H

#include <stdint.h>

#include "base/span.h"

#define HG_KEYSLOTS 16384

uint16_t hg_keyslot_crc16(struct hg_span bytes);

/* 0 .. HG_KEYSLOTS - 1, of the key as the server sees it: with its prefix. */
uint32_t hg_keyslot_of(struct hg_span key);

#endif
