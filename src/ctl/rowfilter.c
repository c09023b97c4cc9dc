// rowfilter - the options that narrow a read, as a filter
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/rowfilter.h"

#include <string.h>

#include "ctl/option.h"

#define OPEN_MAX 8 /* operands that a server lets wait for the list that takes them */

static void add_text(struct hg_arena *arena, hg_pb_filter *filter, hg_pb_filter_kind kind,
                     const char *text)
{
    if (text == NULL)
        return;
    hg_pb_filter_node *node = HG_PB_NEW(arena, filter_node);
    node->kind = kind;
    node->low = hg_rowtext_of(arena, text);
    hg_pb_append(arena, &filter->nodes, &filter->n_nodes, node);
}

int hg_rowfilter_of(struct hg_ctl *ctl, struct hg_arena *arena, bool cells, hg_pb_filter **ret)
{
    hg_pb_filter *filter = HG_PB_NEW(arena, filter);
    add_text(arena, filter, HEADGATE__TABLE__V1__FILTER_NODE__KIND__PREFIX,
             hg_ctl_option(ctl, HG_CTL_OPT_PREFIX));
    for (unsigned i = 0; i < ctl->given_count; i++) {
        hg_pb_filter_node *node;
        if (ctl->given[i].option != HG_CTL_OPT_WHERE)
            continue;
        int code = hg_rowtext_condition(arena, ctl->given[i].value, cells, &node);
        if (code != HG_CTL_OK)
            return code;
        hg_pb_append(arena, &filter->nodes, &filter->n_nodes, node);
    }
    add_text(arena, filter, HEADGATE__TABLE__V1__FILTER_NODE__KIND__COLUMN_PREFIX,
             hg_ctl_option(ctl, HG_CTL_OPT_COLUMN_PREFIX));
    if (filter->n_nodes > OPEN_MAX)
        return hg_ctl_say(HG_CTL_USAGE, "at most %d conditions and prefixes together", OPEN_MAX);
    if (filter->n_nodes > 1) {
        hg_pb_filter_node *all = HG_PB_NEW(arena, filter_node);
        all->kind = HEADGATE__TABLE__V1__FILTER_NODE__KIND__ALL;
        all->operands = (uint32_t)filter->n_nodes;
        hg_pb_append(arena, &filter->nodes, &filter->n_nodes, all);
    }
    *ret = filter->n_nodes > 0 ? filter : NULL;
    return HG_CTL_OK;
}

bool hg_rowfilter_behind(struct hg_arena *arena, ProtobufCBinaryData prefix,
                         ProtobufCBinaryData *ret)
{
    struct hg_span copy = hg_arena_copy(arena, hg_span(prefix.data, prefix.len));
    while (copy.len > 0 && copy.at[copy.len - 1] == 0xff)
        copy.len--;
    if (copy.at == NULL || copy.len == 0)
        return false;
    ret->data = (uint8_t *)copy.at;
    ret->len = copy.len;
    ret->data[copy.len - 1]++;
    return true;
}
