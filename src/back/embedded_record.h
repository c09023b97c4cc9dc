// embedded_record - keys and records of the embedded store, as LMDB holds them
// SPDX-License-Identifier: BSD-3-Clause
//
//   key     [tenant id u32][table 0][key]     tenant 0: the store's own notes, see embedded_db.h
//   record  [mark 1][flags u32][cas u64][expiry u64][value]          all numbers big-endian
//
// So the keys of a tenant lie together, and the old ones of a deleted bucket do not get in the way
// of the new. Pure.
#ifndef HG_BACK_EMBEDDED_RECORD_H
#define HG_BACK_EMBEDDED_RECORD_H

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "back/item.h"
#include "base/bytes.h"
#include "base/span.h"

#define HG_EMBEDDED_KEY_BYTES   511 /* LMDB's limit */
#define HG_EMBEDDED_KEY_HEAD    5   /* tenant and table */
#define HG_EMBEDDED_RECORD_HEAD 21
#define HG_EMBEDDED_RECORD_MARK 1

/* Builds a key into `out`; its length, or 0 when it is longer than LMDB takes. */
static inline size_t hg_embedded_key(uint8_t out[HG_EMBEDDED_KEY_BYTES], uint32_t tenant_id,
                                     struct hg_span prefix, struct hg_span key)
{
    if (prefix.len > HG_EMBEDDED_KEY_BYTES - HG_EMBEDDED_KEY_HEAD ||
        key.len > HG_EMBEDDED_KEY_BYTES - HG_EMBEDDED_KEY_HEAD - prefix.len)
        return 0;
    hg_put_u32(out, tenant_id);
    out[4] = 0;
    uint8_t *at = out + HG_EMBEDDED_KEY_HEAD;
    if (prefix.len > 0)
        memcpy(at, prefix.at, prefix.len);
    if (key.len > 0)
        memcpy(at + prefix.len, key.at, key.len);
    return HG_EMBEDDED_KEY_HEAD + prefix.len + key.len;
}

/* False when the record is not one of ours. The item's value lies in `record`. */
static inline bool hg_embedded_record_decode(MDB_val record, struct hg_item *ret)
{
    const uint8_t *at = record.mv_data;
    if (record.mv_size < HG_EMBEDDED_RECORD_HEAD || at[0] != HG_EMBEDDED_RECORD_MARK)
        return false;
    ret->flags = hg_get_u32(at + 1);
    ret->cas = hg_get_u64(at + 5);
    ret->expiry_s = hg_get_u64(at + 13);
    ret->value = hg_span(at + HG_EMBEDDED_RECORD_HEAD, record.mv_size - HG_EMBEDDED_RECORD_HEAD);
    return true;
}

static inline void hg_embedded_record_head(uint8_t *at, const struct hg_item *item)
{
    at[0] = HG_EMBEDDED_RECORD_MARK;
    hg_put_u32(at + 1, item->flags);
    hg_put_u64(at + 5, item->cas);
    hg_put_u64(at + 13, item->expiry_s);
}

#endif
