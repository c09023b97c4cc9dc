// tablepart_filter - is the filter of a request well formed?
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/tablepart.h"

enum field {
    OPERANDS = 1 << 0,
    OP = 1 << 1,
    FAMILY = 1 << 2,
    QUALIFIER = 1 << 3,
    VALUE = 1 << 4,
    LOW = 1 << 5,
    HIGH = 1 << 6,
    EXCLUSIVE = 1 << 7,
    MISSING = 1 << 8,
    COUNT = 1 << 9,
    TIMESTAMPS = 1 << 10,
};

static const struct kind_row {
    unsigned fields; /* that the kind takes */
    const char *why; /* when there are others */
} kinds[HG_FILTER_KINDS] = {
    [HG_FILTER_ALL] = {OPERANDS, "a filter of the kind ALL takes 'operands' and no more"},
    [HG_FILTER_ANY] = {OPERANDS, "a filter of the kind ANY takes 'operands' and no more"},
    [HG_FILTER_PREFIX] = {LOW, "a filter of the kind PREFIX takes 'low' and no more"},
    [HG_FILTER_COLUMN_PREFIX] = {LOW, "a filter of the kind COLUMN_PREFIX takes 'low' and no more"},
    [HG_FILTER_COLUMN_RANGE] = {LOW | HIGH | EXCLUSIVE,
                                "a filter of the kind COLUMN_RANGE takes 'low', 'high', "
                                "'low_exclusive', 'high_exclusive' and no more"},
    [HG_FILTER_QUALIFIER] = {OP | VALUE,
                             "a filter of the kind QUALIFIER takes 'op', 'value' and no more"},
    [HG_FILTER_VALUE] = {OP | VALUE, "a filter of the kind VALUE takes 'op', 'value' and no more"},
    [HG_FILTER_SINGLE_COLUMN_VALUE] = {FAMILY | QUALIFIER | OP | VALUE | MISSING,
                                       "a filter of the kind SINGLE_COLUMN_VALUE takes 'family', "
                                       "'qualifier', 'op', 'value', 'filter_if_missing' and no "
                                       "more"},
    [HG_FILTER_PAGE] = {COUNT, "a filter of the kind PAGE takes 'count' and no more"},
    [HG_FILTER_KEY_ONLY] = {0, "a filter of the kind KEY_ONLY takes no other field"},
    [HG_FILTER_FIRST_KEY_ONLY] = {0, "a filter of the kind FIRST_KEY_ONLY takes no other field"},
    [HG_FILTER_TIMESTAMPS] = {TIMESTAMPS,
                              "a filter of the kind TIMESTAMPS takes 'timestamps' and no more"},
    [HG_FILTER_ROW_RANGE] = {LOW | HIGH | EXCLUSIVE,
                             "a filter of the kind ROW_RANGE takes 'low', 'high', "
                             "'low_exclusive', 'high_exclusive' and no more"},
};

static unsigned fields_of(const HG_PB(FilterNode) * node)
{
    return (node->operands != 0 ? OPERANDS : 0u) | (node->op != 0 ? OP : 0u) |
           (node->family.len > 0 ? FAMILY : 0u) | (node->qualifier.len > 0 ? QUALIFIER : 0u) |
           (node->value != NULL ? VALUE : 0u) | (node->low.len > 0 ? LOW : 0u) |
           (node->high.len > 0 ? HIGH : 0u) |
           (node->low_exclusive || node->high_exclusive ? EXCLUSIVE : 0u) |
           (node->filter_if_missing ? MISSING : 0u) | (node->count != 0 ? COUNT : 0u) |
           (node->n_timestamps > 0 ? TIMESTAMPS : 0u);
}

static bool check_value(struct hg_tablepart *part, const struct hg_filter_node *node)
{
    bool bytes = node->value.kind == HG_VALUE_BYTES;
    if (node->kind == HG_FILTER_QUALIFIER && !bytes)
        return hg_tablepart_refuse(part, "the 'value' of a filter of the kind QUALIFIER is bytes");
    if (part->api == HG_API_HBASE && (kinds[node->kind].fields & VALUE) != 0 && !bytes)
        return hg_tablepart_refuse(part, "the 'value' of a filter is bytes, as cells are");
    if (node->kind == HG_FILTER_SINGLE_COLUMN_VALUE) {
        if (part->api == HG_API_HBASE && node->family.len == 0)
            return hg_tablepart_refuse(
                part, "'family' of a filter of the kind SINGLE_COLUMN_VALUE has 1 to 250 bytes");
        if (part->api == HG_API_TABLE && (node->family.len > 0 || node->qualifier.len == 0))
            return hg_tablepart_refuse(
                part, "a filter of the kind SINGLE_COLUMN_VALUE names a column of a table in "
                      "'qualifier', and has no 'family'");
    }
    return true;
}

/* What is needed of the kind, and how long it may be. */
static bool check_node(struct hg_tablepart *part, const struct hg_filter_node *node)
{
    if (node->family.len > HG_TABLE_COLUMN_MAX || node->qualifier.len > HG_TABLE_COLUMN_MAX ||
        node->low.len > HG_TABLE_COLUMN_MAX || node->high.len > HG_TABLE_COLUMN_MAX)
        return hg_tablepart_refuse(
            part, "'family', 'qualifier', 'low' and 'high' of a filter have at most 250 bytes");
    if (node->kind == HG_FILTER_PAGE && node->count == 0)
        return hg_tablepart_refuse(part, "a filter of the kind PAGE has a 'count' of 1 or more");
    if (node->kind == HG_FILTER_TIMESTAMPS) {
        if (part->api == HG_API_TABLE)
            return hg_tablepart_refuse(
                part, "columns of a table have no timestamps: filters of the kind TIMESTAMPS are "
                      "for HBase");
        if (node->timestamp_count < 1 || node->timestamp_count > HG_TABLE_NAMES_MAX)
            return hg_tablepart_refuse(
                part, "a filter of the kind TIMESTAMPS has 1 to 1000 'timestamps'");
    }
    return check_value(part, node);
}

static bool read_node(struct hg_tablepart *part, const HG_PB(FilterNode) * node,
                      struct hg_filter_node *ret)
{
    if ((unsigned)node->kind >= HG_FILTER_KINDS)
        return hg_tablepart_refuse(part, "the kind of a filter is 0 (ALL) to 12 (ROW_RANGE)");
    if ((unsigned)node->op > HG_GREATER_EQUAL)
        return hg_tablepart_refuse(part, "'op' of a filter is 0 (EQUAL) to 5 (GREATER_OR_EQUAL)");
    const struct kind_row *kind = &kinds[node->kind];
    if ((fields_of(node) & ~kind->fields) != 0)
        return hg_tablepart_refuse(part, kind->why);
    *ret = (struct hg_filter_node){
        .kind = (enum hg_filter_kind)node->kind,
        .operands = node->operands,
        .op = (enum hg_operator)node->op,
        .family = hg_tablepb_span(node->family),
        .qualifier = hg_tablepb_span(node->qualifier),
        .value = hg_tablepb_value(node->value),
        .low = hg_tablepb_span(node->low),
        .high = hg_tablepb_span(node->high),
        .low_exclusive = node->low_exclusive,
        .high_exclusive = node->high_exclusive,
        .filter_if_missing = node->filter_if_missing,
        .count = node->count,
        .timestamps = node->timestamps,
        .timestamp_count = node->n_timestamps,
    };
    return check_node(part, ret);
}

/* In postfix: how many results are open after each node. */
static bool check_shape(struct hg_tablepart *part, const struct hg_filter *filter)
{
    size_t open = 0;
    for (size_t i = 0; i < filter->count; i++) {
        const struct hg_filter_node *node = &filter->nodes[i];
        if (node->kind == HG_FILTER_ALL || node->kind == HG_FILTER_ANY) {
            if (node->operands < 1 || node->operands > open)
                return hg_tablepart_refuse(
                    part, "'operands' of a filter list is 1 or more, and no more than there are "
                          "results before it: filters come in postfix");
            open -= node->operands;
        }
        if (++open > HG_TABLE_FILTER_DEPTH)
            return hg_tablepart_refuse(part, "a filter has at most 8 results open at a time");
    }
    return open == 1 ||
           hg_tablepart_refuse(part, "a filter leaves one result at its end: put a list (ALL or "
                                     "ANY) behind its operands");
}

bool hg_tablepart_filter(struct hg_tablepart *part, const HG_PB(Filter) * filter,
                         struct hg_filter *ret)
{
    *ret = (struct hg_filter){0};
    if (filter == NULL || filter->n_nodes == 0)
        return true;
    if (filter->n_nodes > HG_TABLE_FILTER_NODES)
        return hg_tablepart_refuse(part, "a filter has at most 64 nodes");
    struct hg_filter_node *nodes = hg_arena_array(part->arena, filter->n_nodes, sizeof *nodes);
    if (nodes == NULL)
        return hg_tablepart_short(part);
    for (size_t i = 0; i < filter->n_nodes; i++)
        if (!read_node(part, filter->nodes[i], &nodes[i]))
            return false;
    *ret = (struct hg_filter){nodes, filter->n_nodes};
    return check_shape(part, ret);
}
