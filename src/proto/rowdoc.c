// rowdoc - a row as the one value that a store holds
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/rowdoc.h"

#include "proto/status.h"
#include "proto/tablepb.h"

#define MARK "\xf7HGR"

static bool name_right(struct hg_span name, size_t least)
{
    return name.len >= least && name.len <= HG_TABLE_COLUMN_MAX;
}

static uint16_t decode_columns(const HG_PB(RowDocument) * document, struct hg_arena *arena,
                               struct hg_entity *ret)
{
    struct hg_column *columns = hg_arena_array(arena, document->n_columns, sizeof *columns);
    if (columns == NULL)
        return HG_STATUS_ENOMEM;
    for (size_t i = 0; i < document->n_columns; i++) {
        columns[i].name = hg_tablepb_span(document->columns[i]->name);
        columns[i].value = hg_tablepb_value(document->columns[i]->value);
        if (!name_right(columns[i].name, 1) ||
            (i > 0 && hg_tablepb_order(columns[i - 1].name, columns[i].name) >= 0))
            return HG_STATUS_EINTERNAL;
    }
    *ret = (struct hg_entity){columns, document->n_columns};
    return 0;
}

/* By family and qualifier, and the newest first; no two of the same time. */
static bool cells_ordered(const struct hg_cell *a, const struct hg_cell *b)
{
    int order = hg_tablepb_order(a->family, b->family);
    if (order == 0)
        order = hg_tablepb_order(a->qualifier, b->qualifier);
    return order < 0 || (order == 0 && a->at_ms > b->at_ms);
}

static uint16_t decode_cells(const HG_PB(RowDocument) * document, struct hg_arena *arena,
                             struct hg_cells *ret)
{
    struct hg_cell *cells = hg_arena_array(arena, document->n_cells, sizeof *cells);
    if (cells == NULL)
        return HG_STATUS_ENOMEM;
    for (size_t i = 0; i < document->n_cells; i++) {
        const HG_PB(Cell) *stored = document->cells[i];
        struct hg_cell *cell = &cells[i];
        cell->family = hg_tablepb_span(stored->family);
        cell->qualifier = hg_tablepb_span(stored->qualifier);
        cell->value = hg_tablepb_span(stored->value);
        cell->dated = stored->at_case == HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP;
        if (!cell->dated || !name_right(cell->family, 1) || !name_right(cell->qualifier, 0))
            return HG_STATUS_EINTERNAL;
        cell->at_ms = stored->timestamp;
        if (i > 0 && !cells_ordered(cell - 1, cell))
            return HG_STATUS_EINTERNAL;
    }
    *ret = (struct hg_cells){cells, document->n_cells};
    return 0;
}

uint16_t hg_rowdoc_decode(struct hg_span value, struct hg_arena *arena, struct hg_row *ret)
{
    if (!hg_rowdoc_is(HG_ROWDOC_FLAGS, value))
        return HG_STATUS_EINTERNAL;
    uint8_t kind = value.at[HG_ROWDOC_MARK_BYTES - 1];
    struct hg_span bytes =
        hg_span(value.at + HG_ROWDOC_MARK_BYTES, value.len - HG_ROWDOC_MARK_BYTES);
    bool memory = false;
    const HG_PB(RowDocument) *document = (const HG_PB(RowDocument) *)hg_tablepb_unpack(
        &headgate__table__v1__row_document__descriptor, bytes, arena, &memory);
    if (document == NULL)
        return memory ? HG_STATUS_ENOMEM : HG_STATUS_EINTERNAL;
    struct hg_row row = {.api = kind == 'H' ? HG_API_HBASE : HG_API_TABLE};
    uint16_t status = HG_STATUS_EINTERNAL;
    if (kind == 'T' && document->n_cells == 0)
        status = decode_columns(document, arena, &row.entity);
    else if (kind == 'H' && document->n_columns == 0)
        status = decode_cells(document, arena, &row.cells);
    if (status == 0)
        *ret = row;
    return status;
}

bool hg_rowdoc_encode(const struct hg_row *row, struct hg_arena *arena, struct hg_span *ret)
{
    HG_PB(RowDocument) document = HG_PB_INIT(ROW_DOCUMENT);
    bool table = row->api == HG_API_TABLE;
    if (table ? !hg_tablepb_columns(&row->entity, arena, &document.n_columns, &document.columns)
              : !hg_tablepb_cells(&row->cells, arena, &document.n_cells, &document.cells))
        return false;
    size_t bytes;
    uint8_t *mark = hg_tablepb_pack(&document.base, HG_ROWDOC_MARK_BYTES, arena, &bytes);
    if (mark == NULL)
        return false;
    memcpy(mark, MARK, HG_ROWDOC_MARK_BYTES - 1);
    mark[HG_ROWDOC_MARK_BYTES - 1] = table ? 'T' : 'H';
    *ret = hg_span(mark, bytes);
    return true;
}

size_t hg_rowdoc_key(uint8_t out[HG_TABLE_KEY_MAX + 1], struct hg_span table, struct hg_span row)
{
    memcpy(out, table.at, table.len);
    out[table.len] = 0;
    if (row.len > 0)
        memcpy(out + table.len + 1, row.at, row.len);
    return table.len + 1 + row.len;
}
