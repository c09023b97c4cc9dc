// rowdoc - a row as the one value that a store holds
// SPDX-License-Identifier: BSD-3-Clause
//
//   value  [0xf7 'H' 'G' 'R'] ['T' or 'H'] [RowDocument of proto/table.proto]
//   flags  HG_ROWDOC_FLAGS       key  [table] [0] [row]
//
// The mark tells a row from a classic item: a classic operation on a row, and a table operation on
// a classic item, are refused. A document that does not decode is damage, never a crash. Pure.
#ifndef HG_PROTO_ROWDOC_H
#define HG_PROTO_ROWDOC_H

#include "proto/tablemsg.h"

#define HG_ROWDOC_FLAGS      0x48475201u
#define HG_ROWDOC_MARK_BYTES 5

struct hg_row {
    enum hg_api api;         /* TABLE: entity; HBASE: cells */
    struct hg_entity entity; /* sorted */
    struct hg_cells cells;   /* sorted, all dated */
};

/* Is this item a row? */
static inline bool hg_rowdoc_is(uint32_t flags, struct hg_span value)
{
    return flags == HG_ROWDOC_FLAGS && value.len >= HG_ROWDOC_MARK_BYTES &&
           memcmp(value.at, "\xf7HGR", 4) == 0;
}

/* Decodes a value that hg_rowdoc_is. Spans lie in the arena. 0, HG_STATUS_EINTERNAL (damaged: not
   a document, or not sorted) or HG_STATUS_ENOMEM (the arena's limit). */
HG_MUST_USE uint16_t hg_rowdoc_decode(struct hg_span value, struct hg_arena *arena,
                                      struct hg_row *ret);
/* Encodes into the arena; false when memory is out. */
HG_MUST_USE bool hg_rowdoc_encode(const struct hg_row *row, struct hg_arena *arena,
                                  struct hg_span *ret);

/* The stored key of a row, into `out`; its length. The names have been checked. */
size_t hg_rowdoc_key(uint8_t out[HG_TABLE_KEY_MAX + 1], struct hg_span table, struct hg_span row);

#endif
