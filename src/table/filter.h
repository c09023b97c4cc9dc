// filter - which rows, columns and cells pass a filter
// SPDX-License-Identifier: BSD-3-Clause
//
// A filter is a program in postfix (proto/tablemsg.h). It is put to a row in two steps, as HBase
// puts it: row by row key first, so that a row that cannot pass is not looked at, then to the
// cells, of which each passes or does not, and a row passes with those of its cells that do. A
// column of TableAPI is a cell of the family "" with the qualifier of its name, without a
// timestamp. Semantics of Apache HBase's filters of these names. Pure.
//
//   PREFIX, ROW_RANGE, PAGE, SINGLE_COLUMN_VALUE   let pass all cells of the row, or none
//   COLUMN_PREFIX, COLUMN_RANGE, QUALIFIER, VALUE, TIMESTAMPS   look at each cell by itself
//   FIRST_KEY_ONLY   the first of the cells that the operands before it, in each ALL around it,
//                    let pass; alone or in an ANY the first of the row
//   KEY_ONLY         all cells, without their values (a column's is null then); others see a value
//                    as it is, wherever they stand
//   ALL  a cell passes that passes every operand     ANY  one that passes at least one; it is
//        without its value when one of the operands it passes takes that away
//   PAGE lets rows pass until it has counted its number of them. It counts a row when a cell of
//        the row passes it and every list around it: in an ALL only rows that the other operands
//        let pass too, wherever it stands (HBase goes by order); in an ANY a row counts that
//        would have passed without it. This is why there is a state.
//
// No cell left means that the row does not pass. A row of TableAPI without any column passes what
// asks for nothing of a cell: all but the five that look at each cell. Values of different kinds
// compare too, see hg_filter_compare. Takes O(nodes * cells) time, no recursion. A filter that is
// not well formed lets nothing pass.
#ifndef HG_TABLE_FILTER_H
#define HG_TABLE_FILTER_H

#include "proto/rowdoc.h"

/* What a read over many rows remembers of its filter; zero at its start, kept by its session. */
struct hg_filter_state {
    uint64_t passed[HG_TABLE_FILTER_NODES]; /* by node; PAGE: rows counted so far */
};

/* Can a row of this key pass at all? */
bool hg_filter_row_key(const struct hg_filter *filter, const struct hg_filter_state *state,
                       struct hg_span row_key);
/* No row from `row_key` on, itself included, can pass: every PAGE that matters is full, or the row
   keys, which rise or with `reverse` fall, have left every range and prefix. False may also mean
   that this cannot be told. */
bool hg_filter_done(const struct hg_filter *filter, const struct hg_filter_state *state,
                    struct hg_span row_key, bool reverse);

/* Puts the filter to `row` whose candidates (columns or cells that were selected) are `from`:
   SINGLE_COLUMN_VALUE looks at `row` (which holds only what may be seen: no expired cells), the
   others at the candidates. False: the row does not pass. Otherwise what passes, in *ret_entity or
   *ret_cells, in order: `from` itself or in the arena. Cells: never none. *ret_memory is always
   written: true, with the result false and nothing counted, when memory is out. */
bool hg_filter_entity(const struct hg_filter *filter, struct hg_filter_state *state,
                      struct hg_span row_key, const struct hg_row *row,
                      const struct hg_entity *from, struct hg_arena *arena,
                      struct hg_entity *ret_entity, bool *ret_memory);
bool hg_filter_cells(const struct hg_filter *filter, struct hg_filter_state *state,
                     struct hg_span row_key, const struct hg_row *row, const struct hg_cells *from,
                     struct hg_arena *arena, struct hg_cells *ret_cells, bool *ret_memory);

/* Compares two values: null before integer and real, before bytes; two nulls are equal. Integer
   and real compare by their exact number; NaN equals NaN and comes after every number. A total
   order. <0, 0, >0. */
int hg_filter_compare(const struct hg_value *a, const struct hg_value *b);
int hg_filter_compare_bytes(struct hg_span a, struct hg_span b);
/* Does `order`, the result of comparing left to right, satisfy the operator? */
bool hg_filter_holds(enum hg_operator op, int order);

#endif
