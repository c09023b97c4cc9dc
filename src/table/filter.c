// filter - which rows pass by their key, and how values compare
// SPDX-License-Identifier: BSD-3-Clause
//
// How a filter is put to a row's cells is in filter_row.c.
#include "table/filter.h"

#include "table/filter_in.h"

/* ---- values ---- */

int hg_filter_compare_bytes(struct hg_span a, struct hg_span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.at, b.at, common);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Both are exact: no integer is turned into a real that cannot hold it. */
static int compare_mixed(int64_t integer, double real)
{
    if (real != real || real >= 0x1p63)
        return -1;
    if (real < -0x1p63)
        return 1;
    int64_t whole = (int64_t)real;
    if (integer != whole)
        return integer < whole ? -1 : 1;
    double rest = real - (double)whole;
    return (rest < 0) - (rest > 0);
}

static int compare_reals(double a, double b)
{
    if (a != a || b != b)
        return (a != a) - (b != b);
    return (a > b) - (a < b);
}

static int rank(const struct hg_value *value)
{
    switch (value->kind) {
    case HG_VALUE_INTEGER:
    case HG_VALUE_REAL:
        return 1;
    case HG_VALUE_BYTES:
        return 2;
    case HG_VALUE_NULL:
        break;
    }
    return 0;
}

int hg_filter_compare(const struct hg_value *a, const struct hg_value *b)
{
    int rank_a = rank(a), rank_b = rank(b);
    if (rank_a != rank_b || rank_a == 0)
        return rank_a - rank_b;
    if (rank_a == 2)
        return hg_filter_compare_bytes(a->bytes, b->bytes);
    if (a->kind == HG_VALUE_INTEGER)
        return b->kind == HG_VALUE_INTEGER ? (a->integer > b->integer) - (a->integer < b->integer)
                                           : compare_mixed(a->integer, b->real);
    return b->kind == HG_VALUE_INTEGER ? -compare_mixed(b->integer, a->real)
                                       : compare_reals(a->real, b->real);
}

bool hg_filter_holds(enum hg_operator op, int order)
{
    switch (op) {
    case HG_EQUAL:
        return order == 0;
    case HG_NOT_EQUAL:
        return order != 0;
    case HG_LESS:
        return order < 0;
    case HG_LESS_EQUAL:
        return order <= 0;
    case HG_GREATER:
        return order > 0;
    case HG_GREATER_EQUAL:
        return order >= 0;
    }
    return false;
}

/* ---- by row key ---- */

/* The same of the whole filter. There is no "not" in filters: what may pass every operand may pass
   ALL, what may pass one may pass ANY. */
static bool may_pass(const struct hg_filter *filter, const struct hg_filter_state *state,
                     struct hg_span key, enum hg_filter_question question)
{
    bool open[HG_TABLE_FILTER_DEPTH];
    size_t depth = 0;
    if (filter->count == 0)
        return true;
    if (filter->count > HG_TABLE_FILTER_NODES)
        return false;
    for (size_t i = 0; i < filter->count; i++) {
        const struct hg_filter_node *node = &filter->nodes[i];
        bool may;
        if ((unsigned)node->kind >= HG_FILTER_KINDS)
            return false;
        if (hg_filter_is_list(node)) {
            if (node->operands == 0 || node->operands > depth)
                return false;
            may = node->kind == HG_FILTER_ALL;
            for (uint32_t k = 0; k < node->operands; k++) {
                depth--;
                may = node->kind == HG_FILTER_ALL ? may && open[depth] : may || open[depth];
            }
        } else {
            may = hg_filter_key_may_pass(node, state->passed[i], key, question);
        }
        if (depth == HG_TABLE_FILTER_DEPTH)
            return false;
        open[depth++] = may;
    }
    return depth == 1 && open[0];
}

bool hg_filter_row_key(const struct hg_filter *filter, const struct hg_filter_state *state,
                       struct hg_span row_key)
{
    return may_pass(filter, state, row_key, HG_FILTER_THIS_ROW);
}

bool hg_filter_done(const struct hg_filter *filter, const struct hg_filter_state *state,
                    struct hg_span row_key, bool reverse)
{
    return !may_pass(filter, state, row_key,
                     reverse ? HG_FILTER_THIS_AND_EARLIER : HG_FILTER_THIS_AND_LATER);
}
