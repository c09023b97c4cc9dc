// hbasecells - lists of cells in the order of a row: sorted, merged, and without those that are
// dead SPDX-License-Identifier: BSD-3-Clause
#include "table/hbasecells.h"

/* One pass: runs of `width` items become runs of twice that. */
static void merge_runs(const uint8_t *from, uint8_t *to, size_t count, size_t size, size_t width,
                       hg_hbasecells_order_fn *order)
{
    for (size_t start = 0; start < count; start += 2 * width) {
        size_t left = start;
        size_t middle = count - start > width ? start + width : count;
        size_t end = count - middle > width ? middle + width : count;
        size_t right = middle;
        for (size_t i = start; i < end; i++) {
            bool take_left = right == end ||
                             (left < middle && order(from + left * size, from + right * size) <= 0);
            memcpy(to + i * size, from + (take_left ? left++ : right++) * size, size);
        }
    }
}

bool hg_hbasecells_sort(void *items, size_t count, size_t size, hg_hbasecells_order_fn *order,
                        struct hg_arena *arena)
{
    uint8_t *from = items;
    size_t sorted = 1;
    while (sorted < count && order(from + (sorted - 1) * size, from + sorted * size) <= 0)
        sorted++;
    if (sorted >= count)
        return true;
    uint8_t *to = hg_arena_array(arena, count, size);
    if (to == NULL)
        return false;
    for (size_t width = 1; width < count; width *= 2) {
        merge_runs(from, to, count, size, width, order);
        uint8_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * size);
    return true;
}

int hg_hbasecells_order_columns(const struct hg_cell *a, const struct hg_cell *b)
{
    int order = hg_filter_compare_bytes(a->family, b->family);
    return order != 0 ? order : hg_filter_compare_bytes(a->qualifier, b->qualifier);
}

static int order_cells(const struct hg_cell *a, const struct hg_cell *b)
{
    int order = hg_hbasecells_order_columns(a, b);
    if (order != 0)
        return order;
    return a->at_ms > b->at_ms ? -1 : a->at_ms < b->at_ms;
}

static int order_items(const void *a, const void *b)
{
    return order_cells(a, b);
}

static bool take_list(struct hg_arena *arena, size_t count, struct hg_cells *ret)
{
    struct hg_cell *list = hg_arena_array(arena, count, sizeof *list);
    if (list == NULL)
        return false;
    *ret = (struct hg_cells){list, 0};
    return true;
}

bool hg_hbasecells_sorted(const struct hg_cells *from, int64_t undated_ms, struct hg_arena *arena,
                          struct hg_cells *ret)
{
    struct hg_cells sorted;
    if (!take_list(arena, from->count, &sorted))
        return false;
    for (; sorted.count < from->count; sorted.count++) {
        struct hg_cell *cell = &sorted.list[sorted.count];
        *cell = from->list[sorted.count];
        if (!cell->dated || cell->at_ms == INT64_MAX)
            cell->at_ms = undated_ms;
        cell->dated = true;
    }
    if (!hg_hbasecells_sort(sorted.list, sorted.count, sizeof *sorted.list, order_items, arena))
        return false;
    *ret = sorted;
    return true;
}

void hg_hbasecells_keep_last(struct hg_cells *cells)
{
    size_t kept = 0;
    for (size_t i = 0; i < cells->count; i++) {
        if (kept > 0 && order_cells(&cells->list[kept - 1], &cells->list[i]) == 0)
            kept--;
        cells->list[kept++] = cells->list[i];
    }
    cells->count = kept;
}

bool hg_hbasecells_merge(const struct hg_cells *old, const struct hg_cells *fresh,
                         struct hg_arena *arena, struct hg_cells *ret)
{
    if (fresh->count == 0 || old->count == 0) {
        *ret = fresh->count == 0 ? *old : *fresh;
        return true;
    }
    struct hg_cells merged;
    if (!take_list(arena, old->count + fresh->count, &merged))
        return false;
    size_t i = 0, j = 0;
    while (i < old->count || j < fresh->count) {
        int order = i == old->count     ? 1
                    : j == fresh->count ? -1
                                        : order_cells(&old->list[i], &fresh->list[j]);
        if (order < 0) {
            merged.list[merged.count++] = old->list[i++];
        } else {
            merged.list[merged.count++] = fresh->list[j++];
            i += order == 0;
        }
    }
    *ret = merged;
    return true;
}

struct hg_family hg_hbasecells_family(const struct hg_families *families, struct hg_span name)
{
    for (size_t i = 0; i < families->count; i++)
        if (hg_span_equal(families->list[i].name, name))
            return families->list[i];
    return (struct hg_family){name, 0, HG_FAMILY_VERSIONS};
}

int64_t hg_hbasecells_death(const struct hg_cell *cell, const struct hg_family *family)
{
    int64_t death;
    if (family->ttl_ms == 0 || family->ttl_ms > INT64_MAX ||
        __builtin_add_overflow(cell->at_ms, (int64_t)family->ttl_ms, &death))
        return INT64_MAX;
    return death;
}

/* A walk over cells in order that tells which are alive. */
struct life {
    const struct hg_families *families;
    int64_t now_ms;
    const struct hg_cell *last;
    struct hg_family family;
    uint32_t versions; /* of the last cell's column, so far */
};

static bool is_alive(struct life *life, const struct hg_cell *cell)
{
    if (life->last == NULL || !hg_span_equal(life->last->family, cell->family)) {
        life->family = hg_hbasecells_family(life->families, cell->family);
        life->versions = 0;
    } else if (!hg_span_equal(life->last->qualifier, cell->qualifier)) {
        life->versions = 0;
    }
    life->last = cell;
    int64_t death = hg_hbasecells_death(cell, &life->family);
    if (death != INT64_MAX && death <= life->now_ms)
        return false;
    if (life->versions >= life->family.max_versions)
        return false;
    life->versions++;
    return true;
}

bool hg_hbasecells_live(const struct hg_cells *from, const struct hg_families *families,
                        int64_t now_ms, struct hg_arena *arena, struct hg_cells *ret)
{
    struct life life = {.families = families, .now_ms = now_ms};
    size_t first_dead = 0;
    while (first_dead < from->count && is_alive(&life, &from->list[first_dead]))
        first_dead++;
    if (first_dead == from->count) {
        *ret = *from;
        return true;
    }
    struct hg_cells live;
    if (!take_list(arena, from->count, &live))
        return false;
    for (; live.count < first_dead; live.count++)
        live.list[live.count] = from->list[live.count];
    for (size_t i = first_dead + 1; i < from->count; i++)
        if (is_alive(&life, &from->list[i]))
            live.list[live.count++] = from->list[i];
    *ret = live;
    return true;
}

const struct hg_cell *hg_hbasecells_newest(const struct hg_cells *cells, struct hg_span family,
                                           struct hg_span qualifier)
{
    const struct hg_cell wanted = {.family = family, .qualifier = qualifier};
    size_t low = 0, high = cells->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hg_hbasecells_order_columns(&cells->list[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == cells->count || hg_hbasecells_order_columns(&cells->list[low], &wanted) != 0)
        return NULL;
    return &cells->list[low];
}
