// tableop - TableAPI on one row, as a pure function
// SPDX-License-Identifier: BSD-3-Clause
//
//   (row or none, operation) -> (keep | store | remove, row, result)
//
// The table of operations is doc/tables.md. A row exists even when it has no columns, and a column
// that was set to null stays, with the value null. What is refused changes nothing: an operation
// whose third column is wrong leaves the first two as they were.
#ifndef HG_TABLE_TABLEOP_H
#define HG_TABLE_TABLEOP_H

#include "table/filter.h"
#include "table/outcome.h"

/* `old` is NULL or a row of TableAPI. Statuses: 0x02 INSERT on a row that is there; 0x04 an operand
   of INCREMENT is not an integer, or of APPEND not bytes; 0x06 the stored value is not (null and a
   missing column are), or the sum would leave the 64 bits of an integer. Affected: 1, REPLACE of a
   row that was there 2; 0 GET, and UPDATE and DELETE of no row. Found, with an entity: GET of a row
   that is there, columns by `select`; with return_entity, INCREMENT and APPEND: the new values of
   the columns that they name. */
void hg_tableop_apply(const struct hg_row *old, const struct hg_table_item *item,
                      struct hg_arena *arena, struct hg_row_outcome *ret);

/* An atomic batch: all `items`, at least one, are of this row and are applied in order, each to
   what those before it left. `results` has room for `count`, all are written. When an item is
   refused nothing is applied: its result is its own, those of the others are 0x05 with a text that
   tells its number, from 1. ret->result: status and text of the refused item, or the sum of the
   affected (at most 65535). */
void hg_tableop_apply_all(const struct hg_row *old, const struct hg_table_item *items, size_t count,
                          struct hg_arena *arena, struct hg_row_result *results,
                          struct hg_row_outcome *ret);

/* A row of a range: filter, then select. True when it is part of the result. The filter looks at
   all columns, also at those that are not selected; a row that passes and has none of those is part
   of the result, without columns. *ret_memory is always written, see hg_filter_entity. */
bool hg_tableop_read(const struct hg_row *row, struct hg_span row_key, const struct hg_query *query,
                     struct hg_filter_state *state, struct hg_arena *arena,
                     struct hg_found_row *ret, bool *ret_memory);

#endif
