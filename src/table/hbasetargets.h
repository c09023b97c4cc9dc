// hbasetargets - which cells of a row a list of families, columns and versions means
// SPDX-License-Identifier: BSD-3-Clause
//
// What a DELETE removes, and what a read selects (families and columns whatever their timestamps),
// are one question. The list is sorted as a row is, then both are walked side by side: the time is
// that of the sort and one walk, whatever a client sends. Pure.
#ifndef HG_TABLE_HBASETARGETS_H
#define HG_TABLE_HBASETARGETS_H

#include "proto/rowdoc.h"

struct hg_hbasetargets {
    struct hg_deletion *list; /* sorted; without ROW */
    size_t count, next;
    const struct hg_cell *last;           /* asked for */
    int64_t row_ms, family_ms, column_ms; /* cells up to this, at the last cell; or NOTHING */
    size_t newest;                        /* of the last cell's column, that many more cells */
};

/* Every deletion is put to the row as it is before all of them, but n of kind COLUMN without a
   timestamp mean the n newest of their column, as in Apache HBase. INT64_MAX is no timestamp.
   VERSION has one. False when memory is out. */
HG_MUST_USE bool hg_hbasetargets_init(struct hg_hbasetargets *targets,
                                      const struct hg_deletion *list, size_t count,
                                      struct hg_arena *arena);
/* Is this cell meant? Cells are asked for in the order of a row, each once. */
bool hg_hbasetargets_hit(struct hg_hbasetargets *targets, const struct hg_cell *cell);

#endif
