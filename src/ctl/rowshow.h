// rowshow - what rows and results look like, as tables and as JSON
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_ROWSHOW_H
#define HG_CTL_ROWSHOW_H

#include "ctl/rowtext.h"
#include "ctl/table.h"

/* A table of columns, or of cells, with or without the row they are in. */
void hg_rowshow_init(struct hg_ctl_table *table, bool with_row, bool of_cells);
void hg_rowshow_entity(struct hg_ctl_table *table, const ProtobufCBinaryData *row,
                       const hg_pb_entity *entity);
void hg_rowshow_cells(struct hg_ctl_table *table, const ProtobufCBinaryData *row,
                      hg_pb_cell **cells, size_t count);
/* Prints it, if there is anything in it, and lets go of it. */
void hg_rowshow_print(struct hg_ctl_table *table);

/* {name: value}; NULL becomes null. */
json_t *hg_rowshow_entity_json(const hg_pb_entity *entity);
/* [{"family", "qualifier", "timestamp", "value"}] */
json_t *hg_rowshow_cells_json(hg_pb_cell **cells, size_t count);

#endif
