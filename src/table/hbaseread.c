// hbaseread - the cells of a row that a read returns, and when a row is over
// SPDX-License-Identifier: BSD-3-Clause
//
//   live ── columns, time range ──► filter ──► newest versions of each column
//
// The order of the steps is that of Apache HBase since 2.0: the family's number of versions counts
// before the filter (here a version beyond it does not exist), the read's own number after it, so
// that a filter can reach an older version than the newest. The time range comes first: versions
// are counted among those within it.
#include "table/hbasecells.h"
#include "table/hbasetargets.h"

/* The columns of a read as targets. */
static bool target_columns(const struct hg_hbase_read *read, struct hg_arena *arena,
                           struct hg_hbasetargets *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < read->column_count; i++)
        count += read->columns[i].qualifiers.count > 0 ? read->columns[i].qualifiers.count : 1;
    struct hg_deletion *list = hg_arena_array(arena, count, sizeof *list);
    if (list == NULL)
        return false;
    count = 0;
    for (size_t i = 0; i < read->column_count; i++) {
        const struct hg_family_columns *one = &read->columns[i];
        if (one->qualifiers.count == 0)
            list[count++] = (struct hg_deletion){HG_DELETION_FAMILY, .family = one->family};
        for (size_t j = 0; j < one->qualifiers.count; j++)
            list[count++] = (struct hg_deletion){HG_DELETION_COLUMNS, .family = one->family,
                                                 .qualifier = one->qualifiers.list[j]};
    }
    return hg_hbasetargets_init(ret, list, count, arena);
}

/* INT64_MAX as the upper end is no bound. */
static bool is_within(const struct hg_hbase_read *read, int64_t at_ms)
{
    return at_ms >= read->min_ms && (at_ms < read->max_ms || read->max_ms == INT64_MAX);
}

static bool select_cells(const struct hg_hbase_read *read, const struct hg_cells *live,
                         struct hg_arena *arena, struct hg_cells *ret)
{
    struct hg_hbasetargets targets;
    struct hg_cells selected = {hg_arena_array(arena, live->count, sizeof *selected.list), 0};
    if (selected.list == NULL || (read->column_count > 0 && !target_columns(read, arena, &targets)))
        return false;
    for (size_t i = 0; i < live->count; i++)
        if ((read->column_count == 0 || hg_hbasetargets_hit(&targets, &live->list[i])) &&
            is_within(read, live->list[i].at_ms))
            selected.list[selected.count++] = live->list[i];
    *ret = selected;
    return true;
}

/* In place: the first `max_versions` of each column. */
static void limit_versions(uint32_t max_versions, struct hg_cells *cells)
{
    size_t kept = 0;
    uint32_t versions = 0;
    for (size_t i = 0; i < cells->count; i++) {
        if (kept == 0 || hg_hbasecells_order_columns(&cells->list[kept - 1], &cells->list[i]) != 0)
            versions = 0;
        if (versions++ < max_versions)
            cells->list[kept++] = cells->list[i];
    }
    cells->count = kept;
}

bool hg_hbaseop_read(const struct hg_row *row, struct hg_span row_key,
                     const struct hg_hbase_read *read, const struct hg_families *families,
                     int64_t now_ms, struct hg_filter_state *state, struct hg_arena *arena,
                     struct hg_cells *ret, bool *ret_memory)
{
    struct hg_row live = {.api = HG_API_HBASE};
    struct hg_cells cells;
    *ret_memory = false;
    if (!hg_filter_row_key(&read->filter, state, row_key))
        return false;
    if (!hg_hbasecells_live(&row->cells, families, now_ms, arena, &live.cells) ||
        !select_cells(read, &live.cells, arena, &cells)) {
        *ret_memory = true;
        return false;
    }
    if (cells.count == 0)
        return false;
    if (read->filter.count > 0) {
        struct hg_cells passed = {0};
        if (!hg_filter_cells(&read->filter, state, row_key, &live, &cells, arena, &passed,
                             ret_memory))
            return false;
        cells = passed;
    }
    limit_versions(read->max_versions, &cells);
    *ret = cells;
    return cells.count > 0;
}

int64_t hg_hbaseop_expiry(const struct hg_row *row, const struct hg_families *families)
{
    int64_t last_ms = 0;
    for (size_t i = 0; i < row->cells.count; i++) {
        const struct hg_cell *cell = &row->cells.list[i];
        struct hg_family family = hg_hbasecells_family(families, cell->family);
        int64_t death_ms = hg_hbasecells_death(cell, &family);
        if (death_ms == INT64_MAX)
            return 0;
        if (death_ms > last_ms)
            last_ms = death_ms;
    }
    return last_ms;
}
