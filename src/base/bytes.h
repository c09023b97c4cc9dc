// bytes - big-endian integers in and out of memory, whatever the alignment
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BASE_BYTES_H
#define HG_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t hg_get_u16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return be16toh(v);
}

static inline uint32_t hg_get_u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return be32toh(v);
}

static inline uint64_t hg_get_u64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return be64toh(v);
}

static inline void hg_put_u16(uint8_t *at, uint16_t v)
{
    v = htobe16(v);
    memcpy(at, &v, sizeof v);
}

static inline void hg_put_u32(uint8_t *at, uint32_t v)
{
    v = htobe32(v);
    memcpy(at, &v, sizeof v);
}

static inline void hg_put_u64(uint8_t *at, uint64_t v)
{
    v = htobe64(v);
    memcpy(at, &v, sizeof v);
}

#endif
