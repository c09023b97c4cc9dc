// hbasecells - lists of cells in the order of a row: sorted, merged, and without those that are
// dead SPDX-License-Identifier: BSD-3-Clause
//
// The order is family, qualifier (as memcmp compares, a shorter prefix first), newest first;
// family, qualifier and timestamp name a cell, so a list holds each once. A cell is dead when it is
// past its family's time to live, or when the family keeps no more versions of its column than
// those that are newer. What is done to lists in this order takes time linear in them. Pure; lists
// lie in the arena, or are the given ones where nothing differs.
#ifndef HG_TABLE_HBASECELLS_H
#define HG_TABLE_HBASECELLS_H

#include "table/hbaseop.h"

typedef int hg_hbasecells_order_fn(const void *a, const void *b);

/* Sorts `count` items of `size` bytes, equal ones stay in order; false when memory is out (items
   that are sorted already take none). Bottom-up merge sort: n log n whatever the input. */
HG_MUST_USE bool hg_hbasecells_sort(void *items, size_t count, size_t size,
                                    hg_hbasecells_order_fn *order, struct hg_arena *arena);

int hg_hbasecells_order_columns(const struct hg_cell *a, const struct hg_cell *b);

/* A sorted copy of a request's cells, all dated: those without a timestamp (or with INT64_MAX, the
   "latest" of Apache HBase) get `undated_ms`. Equal names stay in the order they were sent. False
   when memory is out; so in the next ones. */
HG_MUST_USE bool hg_hbasecells_sorted(const struct hg_cells *from, int64_t undated_ms,
                                      struct hg_arena *arena, struct hg_cells *ret);
/* Of several sorted cells with the same name, only the last one stays. */
void hg_hbasecells_keep_last(struct hg_cells *cells);
/* Both lists as one; where both have a cell, the one of `fresh`. */
HG_MUST_USE bool hg_hbasecells_merge(const struct hg_cells *old, const struct hg_cells *fresh,
                                     struct hg_arena *arena, struct hg_cells *ret);
/* Those that are not dead. */
HG_MUST_USE bool hg_hbasecells_live(const struct hg_cells *from, const struct hg_families *families,
                                    int64_t now_ms, struct hg_arena *arena, struct hg_cells *ret);

/* The newest cell of a column; NULL: the column is not there. */
const struct hg_cell *hg_hbasecells_newest(const struct hg_cells *cells, struct hg_span family,
                                           struct hg_span qualifier);

/* The attributes of a family; those of a family that is not listed are the defaults. */
struct hg_family hg_hbasecells_family(const struct hg_families *families, struct hg_span name);
/* When a cell of this family dies, in ms; INT64_MAX: never. */
int64_t hg_hbasecells_death(const struct hg_cell *cell, const struct hg_family *family);

#endif
