// tablepart_hbase - the body of an HBase request
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "proto/tablepart.h"

#define BIT(name) (1u << HG_TABLEFIELD_##name)

/* The fields that a request and an item have in common. */
struct source {
    size_t cell_count, counter_count, deletion_count;
    HG_PB(Cell) * *cells;
    HG_PB(Counter) * *counters;
    HG_PB(Deletion) * *deletions;
    const HG_PB(Read) * read;
    const HG_PB(Check) * check;
};

/* Of either, which are different types; a check is in a request only. */
#define SOURCE_OF(from)                                                                            \
    .cell_count = (from)->n_cells, .counter_count = (from)->n_counters,                            \
    .deletion_count = (from)->n_deletions, .cells = (from)->cells, .counters = (from)->counters,   \
    .deletions = (from)->deletions, .read = (from)->read

static unsigned fields_of(const struct source *from)
{
    return (from->cell_count > 0 ? BIT(CELLS) : 0u) |
           (from->counter_count > 0 ? BIT(COUNTERS) : 0u) |
           (from->deletion_count > 0 ? BIT(DELETIONS) : 0u) |
           (from->read != NULL ? BIT(READ) : 0u) | (from->check != NULL ? BIT(CHECK) : 0u);
}

struct column {
    struct hg_span family, qualifier;
};

static int compare_columns(const void *a, const void *b)
{
    const struct column *left = a, *right = b;
    int order = hg_tablepb_order(left->family, right->family);
    return order != 0 ? order : hg_tablepb_order(left->qualifier, right->qualifier);
}

/* INCREMENT and APPEND: what is done to a column twice has no order. */
static bool check_once(struct hg_tablepart *part, const struct hg_hbase_item *item)
{
    bool increment = item->op == HG_OP_HBASE_INCREMENT;
    size_t count = increment ? item->counter_count : item->cells.count;
    struct column *columns = hg_arena_array(part->arena, count, sizeof *columns);
    if (columns == NULL)
        return hg_tablepart_short(part);
    for (size_t i = 0; i < count; i++) {
        if (increment)
            columns[i] = (struct column){item->counters[i].family, item->counters[i].qualifier};
        else
            columns[i] = (struct column){item->cells.list[i].family, item->cells.list[i].qualifier};
    }
    qsort(columns, count, sizeof *columns, compare_columns);
    for (size_t i = 1; i < count; i++)
        if (compare_columns(&columns[i - 1], &columns[i]) == 0)
            return hg_tablepart_refuse(
                part, increment ? "'counters' names a column twice: each family and qualifier once"
                                : "'cells' names a column twice: APPEND takes each family and "
                                  "qualifier once");
    return true;
}

static bool read_append(struct hg_tablepart *part, const struct hg_hbase_item *item)
{
    for (size_t i = 0; i < item->cells.count; i++)
        if (item->cells.list[i].dated)
            return hg_tablepart_refuse(part, "APPEND takes no 'timestamp': the new cell is newer "
                                             "than the one before");
    return check_once(part, item);
}

static bool read_item(struct hg_tablepart *part, const struct source *from,
                      struct hg_hbase_item *item)
{
    unsigned takes = hg_tablefields_of(item->op);
    if ((takes & BIT(CHECK)) != 0 && !hg_tablepart_check(part, from->check, &item->check))
        return false;
    if ((takes & BIT(CELLS)) != 0) {
        if (from->cell_count == 0)
            return hg_tablepart_refuse(part,
                                       "'cells' is empty: the operation takes 1 cell or more");
        if (!hg_tablepart_cells(part, from->cell_count, from->cells, &item->cells))
            return false;
    }
    if ((takes & BIT(DELETIONS)) != 0 &&
        !hg_tablepart_deletions(part, from->deletion_count, from->deletions, item))
        return false;
    if (!hg_tablepart_read(part, from->read, &item->read))
        return false;
    if (item->op == HG_OP_HBASE_APPEND)
        return read_append(part, item);
    if (item->op != HG_OP_HBASE_INCREMENT)
        return true;
    if (from->counter_count == 0)
        return hg_tablepart_refuse(part, "'counters' is empty: INCREMENT takes 1 or more");
    return hg_tablepart_counters(part, from->counter_count, from->counters, item) &&
           check_once(part, item);
}

static bool read_batch_item(struct hg_tablepart *part, const HG_PB(HBaseItem) * from,
                            struct hg_hbase_item *item)
{
    item->op = from->operation <= UINT8_MAX ? hg_op_of_code(HG_API_HBASE, (uint8_t)from->operation)
                                            : HG_OPS;
    if (item->op != HG_OP_HBASE_PUT && item->op != HG_OP_HBASE_DELETE &&
        item->op != HG_OP_HBASE_GET && item->op != HG_OP_HBASE_APPEND &&
        item->op != HG_OP_HBASE_INCREMENT)
        return hg_tablepart_refuse(part, "'operation' of an item is 1 (PUT), 3 (DELETE), 5 (GET), "
                                         "15 (APPEND) or 16 (INCREMENT)");
    struct source source = {SOURCE_OF(from)};
    return hg_tablepart_fields(part, item->op, fields_of(&source)) &&
           hg_tablepart_row(part, from->row, &item->row) && read_item(part, &source, item);
}

static bool read_batch(struct hg_tablepart *part, const HG_PB(HBaseRequest) * from,
                       struct hg_tablemsg *ret)
{
    if (from->n_items < 1 || from->n_items > HG_TABLE_ITEMS_MAX)
        return hg_tablepart_refuse(part, "'items' has 1 to 1000 items");
    ret->hbase_items = hg_arena_array(part->arena, from->n_items, sizeof *ret->hbase_items);
    if (ret->hbase_items == NULL)
        return hg_tablepart_short(part);
    ret->item_count = from->n_items;
    for (size_t i = 0; i < from->n_items; i++)
        if (!read_batch_item(part, from->items[i], &ret->hbase_items[i]))
            return hg_tablepart_in_item(part, i);
    return true;
}

static bool read_body(struct hg_tablepart *part, const HG_PB(HBaseRequest) * from,
                      const struct source *source, struct hg_span row, struct hg_tablemsg *ret)
{
    switch (ret->op) {
    case HG_OP_HBASE_HYBRID:
        return read_batch(part, from, ret);
    case HG_OP_HBASE_SCAN:
        return hg_tablepart_scan(part, from->scan, &ret->scan) &&
               hg_tablepart_read(part, from->read, &ret->read);
    case HG_OP_HBASE_SCAN_NEXT:
    case HG_OP_HBASE_SCAN_END:
        return from->session != 0 ||
               hg_tablepart_refuse(part, "'session' is missing: it is the one of the reply to "
                                         "SCAN");
    default:
        ret->hbase_items = hg_arena_array(part->arena, 1, sizeof *ret->hbase_items);
        if (ret->hbase_items == NULL)
            return hg_tablepart_short(part);
        ret->item_count = 1;
        ret->hbase_items->op = ret->op;
        ret->hbase_items->row = row;
        return read_item(part, source, ret->hbase_items);
    }
}

bool hg_tablepart_hbase(struct hg_tablepart *part, struct hg_span row, struct hg_span body,
                        struct hg_tablemsg *ret)
{
    bool memory = false;
    const HG_PB(HBaseRequest) *from = (const HG_PB(HBaseRequest) *)hg_tablepb_unpack(
        &headgate__table__v1__hbase_request__descriptor, body, part->arena, &memory);
    if (from == NULL)
        return memory
                   ? hg_tablepart_short(part)
                   : hg_tablepart_refuse(part, "the value is not an HBaseRequest of table.proto");
    struct source source = {SOURCE_OF(from), .check = from->check};
    unsigned present = fields_of(&source) | (from->scan != NULL ? BIT(SCAN) : 0u) |
                       (from->n_items > 0 ? BIT(ITEMS) : 0u) |
                       (from->session != 0 ? BIT(SESSION) : 0u);
    ret->session = from->session;
    return hg_tablepart_fields(part, ret->op, present) && read_body(part, from, &source, row, ret);
}
