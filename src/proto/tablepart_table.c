// tablepart_table - the body of a TableAPI request
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/tablepart.h"

#define BIT(name) (1u << HG_TABLEFIELD_##name)

/* The fields that a request and an item have in common. */
struct source {
    const HG_PB(Entity) * entity;
    size_t select_count;
    const ProtobufCBinaryData *select;
    bool return_entity;
};

static unsigned fields_of(const struct source *from)
{
    return (from->entity != NULL ? BIT(ENTITY) : 0u) | (from->select_count > 0 ? BIT(SELECT) : 0u) |
           (from->return_entity ? BIT(RETURN_ENTITY) : 0u);
}

/* INCREMENT and APPEND: something to add, of the right kind. */
static bool check_operands(struct hg_tablepart *part, const struct hg_table_item *item)
{
    bool increment = item->op == HG_OP_TABLE_INCREMENT;
    if (!increment && item->op != HG_OP_TABLE_APPEND)
        return true;
    if (item->entity.count == 0)
        return hg_tablepart_refuse(part, "'entity' is empty: INCREMENT and APPEND take 1 column "
                                         "or more");
    for (size_t i = 0; i < item->entity.count; i++) {
        enum hg_value_kind kind = item->entity.columns[i].value.kind;
        if (increment && kind != HG_VALUE_INTEGER)
            return hg_tablepart_refuse(part, "the values of 'entity' are integers in INCREMENT");
        if (!increment && kind != HG_VALUE_BYTES)
            return hg_tablepart_refuse(part, "the values of 'entity' are bytes in APPEND");
    }
    return true;
}

static bool read_item(struct hg_tablepart *part, const struct source *from,
                      struct hg_table_item *item)
{
    item->return_entity = from->return_entity;
    return hg_tablepart_entity(part, from->entity, &item->entity) &&
           hg_tablepart_names(part, from->select_count, from->select, 1,
                              "a column of 'select' has 1 to 250 bytes", &item->select) &&
           check_operands(part, item);
}

static bool read_batch_item(struct hg_tablepart *part, const HG_PB(TableItem) * from,
                            struct hg_table_item *item)
{
    if (from->operation > hg_op_rows[HG_OP_TABLE_APPEND].code)
        return hg_tablepart_refuse(part, "'operation' of an item is 0 (GET) to 7 (APPEND)");
    item->op = hg_op_of_code(HG_API_TABLE, (uint8_t)from->operation);
    struct source source = {from->entity, from->n_select, from->select, from->return_entity};
    return hg_tablepart_fields(part, item->op, fields_of(&source)) &&
           hg_tablepart_row(part, from->row, &item->row) && read_item(part, &source, item);
}

static bool read_batch(struct hg_tablepart *part, const HG_PB(TableRequest) * from,
                       struct hg_tablemsg *ret)
{
    if (from->n_items < 1 || from->n_items > HG_TABLE_ITEMS_MAX)
        return hg_tablepart_refuse(part, "'items' has 1 to 1000 items");
    ret->table_items = hg_arena_array(part->arena, from->n_items, sizeof *ret->table_items);
    if (ret->table_items == NULL)
        return hg_tablepart_short(part);
    ret->item_count = from->n_items;
    ret->atomic = from->atomic;
    for (size_t i = 0; i < from->n_items; i++) {
        if (!read_batch_item(part, from->items[i], &ret->table_items[i]))
            return hg_tablepart_in_item(part, i);
        if (ret->atomic && !hg_span_equal(ret->table_items[0].row, ret->table_items[i].row)) {
            hg_tablepart_refuse(part, "another row than that of the first item: an 'atomic' batch "
                                      "is of one row");
            return hg_tablepart_in_item(part, i);
        }
    }
    return true;
}

static bool read_query(struct hg_tablepart *part, const HG_PB(Query) * from,
                       struct hg_tablemsg *ret)
{
    struct hg_query *query = &ret->query;
    query->range = (struct hg_range){.start = HG_SPAN_LIT(""), .end = HG_SPAN_LIT("")};
    query->batch_rows = HG_TABLE_ROWS;
    if (from == NULL)
        return true;
    const HG_PB(Range) *range = from->range;
    if (range != NULL) {
        if (!hg_tablepart_bound(part, range->start, &query->range.start) ||
            !hg_tablepart_bound(part, range->end, &query->range.end))
            return false;
        query->range.start_exclusive = range->start_exclusive;
        query->range.end_exclusive = range->end_exclusive;
    }
    query->limit = from->limit;
    query->offset = from->offset;
    query->reverse = from->reverse;
    if (from->batch_rows > 0 && ret->op != HG_OP_TABLE_QUERY_START)
        return hg_tablepart_refuse(part, "'batch_rows' of 'query' is for QUERY_START: QUERY "
                                         "answers at once");
    if (from->batch_rows > 0)
        query->batch_rows =
            from->batch_rows < HG_TABLE_ROWS_MAX ? from->batch_rows : HG_TABLE_ROWS_MAX;
    return hg_tablepart_names(part, from->n_select, from->select, 1,
                              "a column of 'select' has 1 to 250 bytes", &query->select) &&
           hg_tablepart_filter(part, from->filter, &query->filter);
}

bool hg_tablepart_table(struct hg_tablepart *part, struct hg_span row, struct hg_span body,
                        struct hg_tablemsg *ret)
{
    bool memory = false;
    const HG_PB(TableRequest) *from = (const HG_PB(TableRequest) *)hg_tablepb_unpack(
        &headgate__table__v1__table_request__descriptor, body, part->arena, &memory);
    if (from == NULL)
        return memory ? hg_tablepart_short(part)
                      : hg_tablepart_refuse(part, "the value is not a TableRequest of table.proto");
    struct source source = {from->entity, from->n_select, from->select, from->return_entity};
    unsigned present = fields_of(&source) | (from->query != NULL ? BIT(QUERY) : 0u) |
                       (from->n_items > 0 ? BIT(ITEMS) : 0u) | (from->atomic ? BIT(ATOMIC) : 0u) |
                       (from->session != 0 ? BIT(SESSION) : 0u);
    if (!hg_tablepart_fields(part, ret->op, present))
        return false;
    ret->session = from->session;
    switch (ret->op) {
    case HG_OP_TABLE_BATCH:
        return read_batch(part, from, ret);
    case HG_OP_TABLE_QUERY:
    case HG_OP_TABLE_QUERY_START:
        return read_query(part, from->query, ret);
    case HG_OP_TABLE_QUERY_NEXT:
    case HG_OP_TABLE_QUERY_END:
        return from->session != 0 ||
               hg_tablepart_refuse(part, "'session' is missing: it is the one of the reply to "
                                         "QUERY_START");
    default:
        ret->table_items = hg_arena_array(part->arena, 1, sizeof *ret->table_items);
        if (ret->table_items == NULL)
            return hg_tablepart_short(part);
        ret->item_count = 1;
        ret->table_items->op = ret->op;
        ret->table_items->row = row;
        return read_item(part, &source, ret->table_items);
    }
}
