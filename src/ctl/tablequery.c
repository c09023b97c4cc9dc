// tablequery - table query: a range of rows, through a session of its own
// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "ctl/option.h"
#include "ctl/rowfilter.h"
#include "ctl/rowpages.h"
#include "ctl/rowshow.h"
#include "ctl/tableverb.h"

/* --from and --to, or what --prefix leaves of the table. */
static void set_range(struct hg_rowcall *call, hg_pb_range *range)
{
    struct hg_ctl *ctl = call->ctl;
    const char *from = hg_ctl_option(ctl, HG_CTL_OPT_FROM), *to = hg_ctl_option(ctl, HG_CTL_OPT_TO);
    const char *prefix = hg_ctl_option(ctl, HG_CTL_OPT_PREFIX);
    range->start_exclusive = hg_ctl_option_is(ctl, HG_CTL_OPT_EXCLUSIVE_START);
    range->end_exclusive = hg_ctl_option_is(ctl, HG_CTL_OPT_EXCLUSIVE_END);
    if (from != NULL || prefix != NULL)
        range->start = hg_rowtext_of(&call->arena, from != NULL ? from : prefix);
    if (to != NULL)
        range->end = hg_rowtext_of(&call->arena, to);
    else if (prefix != NULL)
        range->end_exclusive |=
            hg_rowfilter_behind(&call->arena, hg_rowtext_of(&call->arena, prefix), &range->end);
}

/* "a,b": names of columns. */
static void set_select(struct hg_rowcall *call, hg_pb_query *query)
{
    const char *at = hg_ctl_option(call->ctl, HG_CTL_OPT_SELECT);
    while (at != NULL) {
        size_t len = strcspn(at, ",");
        hg_pb_append_bytes(&call->arena, &query->select, &query->n_select,
                           hg_rowtext_bytes(&call->arena, at, len));
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
}

static int make_query(struct hg_rowcall *call, hg_pb_query *query)
{
    int64_t limit, offset, page;
    struct hg_ctl *ctl = call->ctl;
    int code = hg_ctl_option_number(ctl, HG_CTL_OPT_LIMIT, 1, UINT32_MAX, &limit);
    if (code == HG_CTL_OK)
        code = hg_ctl_option_number(ctl, HG_CTL_OPT_OFFSET, 0, UINT32_MAX, &offset);
    if (code == HG_CTL_OK)
        code = hg_ctl_option_number(ctl, HG_CTL_OPT_PAGE_ROWS, 1, 10000, &page);
    if (code == HG_CTL_OK)
        code = hg_rowfilter_of(ctl, &call->arena, false, &query->filter);
    if (code != HG_CTL_OK)
        return code;
    query->limit = (uint32_t)limit;
    query->offset = (uint32_t)offset;
    query->batch_rows = (uint32_t)page;
    query->reverse = hg_ctl_option_is(ctl, HG_CTL_OPT_REVERSE);
    query->range = HG_PB_NEW(&call->arena, range);
    set_range(call, query->range);
    set_select(call, query);
    return HG_CTL_OK;
}

static void add_rows(struct hg_rowpages *pages, const void *from)
{
    const hg_pb_table_reply *reply = from;
    for (size_t i = 0; i < reply->n_rows; i++) {
        const hg_pb_table_row *row = reply->rows[i];
        hg_rowshow_entity(&pages->table, &row->row, row->entity);
        json_t *object = json_object();
        json_object_set_new(object, "row", hg_rowtext_json_bytes(row->row));
        json_object_set_new(object, "columns", hg_rowshow_entity_json(row->entity));
        json_array_append_new(pages->list, object);
    }
    pages->session = reply->session;
    pages->more = reply->more;
}

int hg_ctl_table_query(struct hg_rowcall *call)
{
    hg_pb_table_request *request = HG_PB_NEW(&call->arena, table_request);
    request->query = HG_PB_NEW(&call->arena, query);
    if (call->arg_count > 0)
        return hg_ctl_say(HG_CTL_USAGE, "table query takes a table and options, not '%s'",
                          call->args[0]);
    int code = make_query(call, request->query);
    return code != HG_CTL_OK ? code : hg_rowpages_run(call, &request->base, add_rows);
}
