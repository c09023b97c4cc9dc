// tableop - TableAPI on one row, as a pure function
// SPDX-License-Identifier: BSD-3-Clause
//
//   (row or none, operation) -> (keep | store | remove, row, result)
//
// The table of operations is doc/tables.md. A row exists even when it has no columns.
#ifndef HG_TABLE_TABLEOP_H
#define HG_TABLE_TABLEOP_H

#include "table/filter.h"
#include "table/outcome.h"

/* `old` is NULL or a row of TableAPI. Statuses: 0x02 INSERT on a row that is there, 0x06 INCREMENT
   of what is not an integer or APPEND to what is not bytes, 0x04 operands of a wrong kind. */
void hg_tableop_apply(const struct hg_row *old, const struct hg_table_item *item,
                      struct hg_arena *arena, struct hg_row_outcome *ret);

/* A row of a range: filter, then select. True when it is part of the result. The filter looks at
   all columns, also at those that are not selected. */
bool hg_tableop_read(const struct hg_row *row, struct hg_span row_key, const struct hg_query *query,
                     struct hg_filter_state *state, struct hg_arena *arena,
                     struct hg_found_row *ret, bool *ret_memory);

#endif
