// hbasetargets - which cells of a row a list of families, columns and versions means
// SPDX-License-Identifier: BSD-3-Clause
#include "table/hbasetargets.h"

#include "table/hbasecells.h"

#define NOTHING INT64_MIN

/* The family's own before those of its columns; within a column by kind, latest first. */
static int order_targets(const void *left, const void *right)
{
    const struct hg_deletion *a = left, *b = right;
    int order = hg_filter_compare_bytes(a->family, b->family);
    if (order != 0)
        return order;
    bool a_family = a->kind == HG_DELETION_FAMILY, b_family = b->kind == HG_DELETION_FAMILY;
    if (a_family != b_family)
        return a_family ? -1 : 1;
    order = a_family ? 0 : hg_filter_compare_bytes(a->qualifier, b->qualifier);
    if (order != 0)
        return order;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->at_ms > b->at_ms ? -1 : a->at_ms < b->at_ms;
}

bool hg_hbasetargets_init(struct hg_hbasetargets *targets, const struct hg_deletion *list,
                          size_t count, struct hg_arena *arena)
{
    *targets = (struct hg_hbasetargets){.row_ms = NOTHING};
    targets->list = hg_arena_array(arena, count, sizeof *targets->list);
    if (targets->list == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct hg_deletion one = list[i];
        one.dated = one.dated && one.at_ms != INT64_MAX;
        if (!one.dated)
            one.at_ms = INT64_MAX;
        else if (one.kind == HG_DELETION_COLUMN)
            one.kind = HG_DELETION_VERSION;
        if (one.kind != HG_DELETION_ROW)
            targets->list[targets->count++] = one;
        else if (one.at_ms > targets->row_ms)
            targets->row_ms = one.at_ms;
    }
    return hg_hbasecells_sort(targets->list, targets->count, sizeof *targets->list, order_targets,
                              arena);
}

/* The next target while it comes before the family (or, within it, before the column). */
static const struct hg_deletion *next_of(const struct hg_hbasetargets *targets)
{
    return targets->next < targets->count ? &targets->list[targets->next] : NULL;
}

static void enter_family(struct hg_hbasetargets *targets, struct hg_span family)
{
    const struct hg_deletion *one;
    targets->family_ms = NOTHING;
    while ((one = next_of(targets)) != NULL) {
        int order = hg_filter_compare_bytes(one->family, family);
        if (order > 0 || (order == 0 && one->kind != HG_DELETION_FAMILY))
            return;
        if (order == 0 && one->at_ms > targets->family_ms)
            targets->family_ms = one->at_ms;
        targets->next++;
    }
}

/* Leaves the first VERSION of the column to come next. */
static void enter_column(struct hg_hbasetargets *targets, const struct hg_cell *cell)
{
    const struct hg_deletion *one;
    targets->column_ms = NOTHING;
    targets->newest = 0;
    while ((one = next_of(targets)) != NULL) {
        int order = hg_filter_compare_bytes(one->family, cell->family);
        if (order == 0)
            order = hg_filter_compare_bytes(one->qualifier, cell->qualifier);
        if (order > 0 || (order == 0 && one->kind == HG_DELETION_VERSION))
            return;
        if (order == 0 && one->kind == HG_DELETION_COLUMN)
            targets->newest++;
        else if (order == 0 && one->at_ms > targets->column_ms)
            targets->column_ms = one->at_ms;
        targets->next++;
    }
}

/* Does the next VERSION of the cell's column name it? */
static bool is_version(struct hg_hbasetargets *targets, const struct hg_cell *cell)
{
    const struct hg_deletion *one;
    while ((one = next_of(targets)) != NULL && one->kind == HG_DELETION_VERSION &&
           one->at_ms > cell->at_ms && hg_span_equal(one->family, cell->family) &&
           hg_span_equal(one->qualifier, cell->qualifier))
        targets->next++;
    return one != NULL && one->kind == HG_DELETION_VERSION && one->at_ms == cell->at_ms &&
           hg_span_equal(one->family, cell->family) &&
           hg_span_equal(one->qualifier, cell->qualifier);
}

bool hg_hbasetargets_hit(struct hg_hbasetargets *targets, const struct hg_cell *cell)
{
    const struct hg_cell *last = targets->last;
    bool new_family = last == NULL || !hg_span_equal(last->family, cell->family);
    if (new_family)
        enter_family(targets, cell->family);
    if (new_family || !hg_span_equal(last->qualifier, cell->qualifier))
        enter_column(targets, cell);
    targets->last = cell;
    bool is_newest = targets->newest > 0;
    targets->newest -= is_newest;
    return is_version(targets, cell) || is_newest || cell->at_ms <= targets->row_ms ||
           cell->at_ms <= targets->family_ms || cell->at_ms <= targets->column_ms;
}
