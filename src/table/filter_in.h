// filter_in - what the two files of the filter share: nodes by themselves
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TABLE_FILTER_IN_H
#define HG_TABLE_FILTER_IN_H

#include "table/filter.h"

static inline bool hg_filter_is_list(const struct hg_filter_node *node)
{
    return node->kind == HG_FILTER_ALL || node->kind == HG_FILTER_ANY;
}

static inline bool hg_filter_begins_with(struct hg_span bytes, struct hg_span prefix)
{
    return bytes.len >= prefix.len &&
           (prefix.len == 0 || memcmp(bytes.at, prefix.at, prefix.len) == 0);
}

static inline bool hg_filter_under_low(const struct hg_filter_node *node, struct hg_span bytes)
{
    if (node->low.len == 0)
        return false;
    int order = hg_filter_compare_bytes(bytes, node->low);
    return order < 0 || (order == 0 && node->low_exclusive);
}

static inline bool hg_filter_over_high(const struct hg_filter_node *node, struct hg_span bytes)
{
    if (node->high.len == 0)
        return false;
    int order = hg_filter_compare_bytes(bytes, node->high);
    return order > 0 || (order == 0 && node->high_exclusive);
}

enum hg_filter_question {
    HG_FILTER_THIS_ROW,
    HG_FILTER_THIS_AND_LATER,
    HG_FILTER_THIS_AND_EARLIER
};

/* Can a row pass this node that is no list, as far as its key tells? */
static inline bool hg_filter_key_may_pass(const struct hg_filter_node *node, uint64_t passed,
                                          struct hg_span key, enum hg_filter_question question)
{
    switch (node->kind) {
    case HG_FILTER_PAGE:
        return passed < node->count;
    case HG_FILTER_PREFIX: {
        if (hg_filter_begins_with(key, node->low))
            return true;
        int order = hg_filter_compare_bytes(key, node->low);
        return question == HG_FILTER_THIS_AND_LATER
                   ? order < 0
                   : question == HG_FILTER_THIS_AND_EARLIER && order > 0;
    }
    case HG_FILTER_ROW_RANGE:
        return (question == HG_FILTER_THIS_AND_LATER || !hg_filter_under_low(node, key)) &&
               (question == HG_FILTER_THIS_AND_EARLIER || !hg_filter_over_high(node, key));
    default:
        return true;
    }
}

#endif
