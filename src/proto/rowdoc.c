// rowdoc - a row as the one value that a store holds
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/rowdoc.h"

#include "proto/rowwire.h"
#include "proto/status.h"

#define MARK "\xf7HGR"

/* Numbers of the fields of a RowDocument. */
enum { DOCUMENT_COLUMNS = 1, DOCUMENT_CELLS = 2 };

static bool name_right(struct hg_span name, size_t least)
{
    return name.len >= least && name.len <= HG_TABLE_COLUMN_MAX;
}

/* In the order of rows: bytes, a shorter name before a longer one that it begins. */
static int order_of(struct hg_span a, struct hg_span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common > 0 ? memcmp(a.at, b.at, common) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static uint16_t decode_columns(struct hg_span document, struct hg_arena *arena,
                               struct hg_entity *ret)
{
    size_t count;
    if (!hg_rowwire_count(document, DOCUMENT_COLUMNS, &count))
        return HG_STATUS_EINTERNAL;
    struct hg_column *columns = hg_arena_array(arena, count, sizeof *columns);
    if (columns == NULL)
        return HG_STATUS_ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!hg_rowwire_column(&document, &columns[i]) || !name_right(columns[i].name, 1) ||
            (i > 0 && order_of(columns[i - 1].name, columns[i].name) >= 0))
            return HG_STATUS_EINTERNAL;
    *ret = (struct hg_entity){columns, count};
    return 0;
}

/* By family and qualifier, and the newest first; no two of the same time. */
static bool cells_ordered(const struct hg_cell *a, const struct hg_cell *b)
{
    int order = order_of(a->family, b->family);
    if (order == 0)
        order = order_of(a->qualifier, b->qualifier);
    return order < 0 || (order == 0 && a->at_ms > b->at_ms);
}

static uint16_t decode_cells(struct hg_span document, struct hg_arena *arena, struct hg_cells *ret)
{
    size_t count;
    if (!hg_rowwire_count(document, DOCUMENT_CELLS, &count))
        return HG_STATUS_EINTERNAL;
    struct hg_cell *cells = hg_arena_array(arena, count, sizeof *cells);
    if (cells == NULL)
        return HG_STATUS_ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!hg_rowwire_cell(&document, &cells[i]) || !cells[i].dated ||
            !name_right(cells[i].family, 1) || !name_right(cells[i].qualifier, 0) ||
            (i > 0 && !cells_ordered(&cells[i - 1], &cells[i])))
            return HG_STATUS_EINTERNAL;
    *ret = (struct hg_cells){cells, count};
    return 0;
}

uint16_t hg_rowdoc_decode(struct hg_span value, struct hg_arena *arena, struct hg_row *ret)
{
    if (!hg_rowdoc_is(HG_ROWDOC_FLAGS, value))
        return HG_STATUS_EINTERNAL;
    uint8_t kind = value.at[HG_ROWDOC_MARK_BYTES - 1];
    struct hg_span document = hg_arena_copy(
        arena, hg_span(value.at + HG_ROWDOC_MARK_BYTES, value.len - HG_ROWDOC_MARK_BYTES));
    if (document.at == NULL)
        return HG_STATUS_ENOMEM;
    struct hg_row row = {.api = kind == 'H' ? HG_API_HBASE : HG_API_TABLE};
    uint16_t status = HG_STATUS_EINTERNAL;
    if (kind == 'T')
        status = decode_columns(document, arena, &row.entity);
    else if (kind == 'H')
        status = decode_cells(document, arena, &row.cells);
    if (status == 0)
        *ret = row;
    return status;
}

bool hg_rowdoc_encode(const struct hg_row *row, struct hg_arena *arena, struct hg_span *ret)
{
    bool table = row->api == HG_API_TABLE;
    size_t bytes =
        table ? hg_rowwire_columns_size(&row->entity) : hg_rowwire_cells_size(&row->cells);
    uint8_t *at = hg_arena_take(arena, HG_ROWDOC_MARK_BYTES + bytes);
    if (at == NULL)
        return false;
    *ret = hg_span(at, HG_ROWDOC_MARK_BYTES + bytes);
    memcpy(at, MARK, HG_ROWDOC_MARK_BYTES - 1);
    at[HG_ROWDOC_MARK_BYTES - 1] = table ? 'T' : 'H';
    at += HG_ROWDOC_MARK_BYTES;
    if (table)
        hg_rowwire_put_columns(at, &row->entity);
    else
        hg_rowwire_put_cells(at, DOCUMENT_CELLS, &row->cells);
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
