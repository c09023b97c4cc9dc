// keyslot - which of the 16384 slots of a Redis Cluster a key belongs to
// SPDX-License-Identifier: BSD-3-Clause
//
//   steps[k][b]: the remainder of byte b with k zero bytes behind it. Remainders of sums are sums
//   of remainders, so four bytes go in one step, and a table is made of the remainders of eight
//   bits.
#include "proto/keyslot.h"

#define BIT(b, i, r) ((b) >> (i)&1 ? (r) : 0)
#define SUM(b, r0, r1, r2, r3, r4, r5, r6, r7)                                                     \
    (BIT(b, 0, r0) ^ BIT(b, 1, r1) ^ BIT(b, 2, r2) ^ BIT(b, 3, r3) ^ BIT(b, 4, r4) ^               \
     BIT(b, 5, r5) ^ BIT(b, 6, r6) ^ BIT(b, 7, r7))
#define STEP0(b)    SUM(b, 0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188)
#define STEP1(b)    SUM(b, 0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98)
#define STEP2(b)    SUM(b, 0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a)
#define STEP3(b)    SUM(b, 0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38)
#define ROW4(f, b)  f(b), f((b) + 1), f((b) + 2), f((b) + 3)
#define ROW16(f, b) ROW4(f, b), ROW4(f, (b) + 4), ROW4(f, (b) + 8), ROW4(f, (b) + 12)
#define ROW64(f, b) ROW16(f, b), ROW16(f, (b) + 16), ROW16(f, (b) + 32), ROW16(f, (b) + 48)
#define ROW256(f)   ROW64(f, 0), ROW64(f, 64), ROW64(f, 128), ROW64(f, 192)

static const uint16_t steps[4][256] = {
    {ROW256(STEP0)}, {ROW256(STEP1)}, {ROW256(STEP2)}, {ROW256(STEP3)}};

uint16_t hg_keyslot_crc16(struct hg_span bytes)
{
    const uint8_t *at = bytes.at;
    uint16_t crc = 0;
    for (; bytes.len >= 4; bytes.len -= 4, at += 4)
        crc = steps[3][at[0] ^ crc >> 8] ^ steps[2][at[1] ^ (crc & 0xff)] ^ steps[1][at[2]] ^
              steps[0][at[3]];
    for (; bytes.len > 0; bytes.len--, at++)
        crc = (uint16_t)(crc << 8) ^ steps[0][*at ^ crc >> 8];
    return crc;
}

/* What of the key counts. */
static struct hg_span tag_of(struct hg_span key)
{
    const uint8_t *open = key.len == 0 ? NULL : memchr(key.at, '{', key.len);
    if (open == NULL)
        return key;
    size_t rest = key.len - (size_t)(open + 1 - key.at);
    const uint8_t *close = memchr(open + 1, '}', rest);
    return close == NULL || close == open + 1 ? key : hg_span(open + 1, (size_t)(close - open) - 1);
}

uint32_t hg_keyslot_of(struct hg_span key)
{
    return hg_keyslot_crc16(tag_of(key)) % HG_KEYSLOTS;
}
