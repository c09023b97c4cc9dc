// filter - which rows, columns and cells pass a filter
// SPDX-License-Identifier: BSD-3-Clause
//
// A filter is a program in postfix (proto/tablemsg.h). It is put to a row in two steps, as HBase
// puts it: row by row key first, so that a row that cannot pass is not looked at, then to the
// cells, of which each passes or does not; last, conditions on the whole row. ALL lets pass what
// every operand lets pass; ANY what at least one does. A column of TableAPI is a cell of the family
// "" with the qualifier of its name, without a timestamp. PAGE counts over the rows of one read,
// which is why there is a state. Semantics of Apache HBase's filters of these names. Pure.
#ifndef HG_TABLE_FILTER_H
#define HG_TABLE_FILTER_H

#include "proto/rowdoc.h"

/* What a read over many rows remembers of its filter; zero at its start, kept by its session. */
struct hg_filter_state {
    uint64_t passed[HG_TABLE_FILTER_NODES]; /* PAGE: rows that passed so far */
};

/* Can a row of this key pass at all? */
bool hg_filter_row_key(const struct hg_filter *filter, const struct hg_filter_state *state,
                       struct hg_span row_key);
/* No further row can pass: every PAGE that matters is full, or (with `reverse`) the row keys have
   left every range and prefix. */
bool hg_filter_done(const struct hg_filter *filter, const struct hg_filter_state *state,
                    struct hg_span row_key, bool reverse);

/* Puts the filter to `row` whose candidates (columns or cells that were selected) are `from`:
   conditions on the whole row look at `row`, the others at the candidates. False: the row does not
   pass. Otherwise what passes, in *ret_entity or *ret_cells, in the arena; values are empty with
   KEY_ONLY. HBase: nothing that passes means that the row does not. *ret_memory is set when
   memory is out. */
bool hg_filter_entity(const struct hg_filter *filter, struct hg_filter_state *state,
                      struct hg_span row_key, const struct hg_row *row,
                      const struct hg_entity *from, struct hg_arena *arena,
                      struct hg_entity *ret_entity, bool *ret_memory);
bool hg_filter_cells(const struct hg_filter *filter, struct hg_filter_state *state,
                     struct hg_span row_key, const struct hg_row *row, const struct hg_cells *from,
                     struct hg_arena *arena, struct hg_cells *ret_cells, bool *ret_memory);

/* Compares two values: null before integer and real (by number), before bytes. <0, 0, >0. */
int hg_filter_compare(const struct hg_value *a, const struct hg_value *b);
int hg_filter_compare_bytes(struct hg_span a, struct hg_span b);
/* Does `order`, the result of comparing left to right, satisfy the operator? */
bool hg_filter_holds(enum hg_operator op, int order);

#endif
