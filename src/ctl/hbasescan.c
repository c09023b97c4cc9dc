// hbasescan - hbase scan: a stretch of rows, through a session of its own
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/option.h"
#include "ctl/rowfilter.h"
#include "ctl/rowpages.h"
#include "ctl/rowshow.h"
#include "ctl/tableverb.h"

static ProtobufCBinaryData text_of(struct hg_rowcall *call, const char *text)
{
    return hg_rowtext_of(&call->arena, text != NULL ? text : "");
}

/* --start and --stop; where they are not given, --prefix bounds the scan. */
static void set_range(struct hg_rowcall *call, hg_pb_scan *scan)
{
    struct hg_ctl *ctl = call->ctl;
    const char *prefix = hg_ctl_option(ctl, HG_CTL_OPT_PREFIX);
    const char *start = hg_ctl_option(ctl, HG_CTL_OPT_START);
    const char *stop = hg_ctl_option(ctl, HG_CTL_OPT_STOP);
    scan->start = text_of(call, start);
    scan->stop = text_of(call, stop);
    scan->start_exclusive = hg_ctl_option_is(ctl, HG_CTL_OPT_START_EXCLUSIVE);
    scan->stop_inclusive = hg_ctl_option_is(ctl, HG_CTL_OPT_STOP_INCLUSIVE);
    scan->reversed = hg_ctl_option_is(ctl, HG_CTL_OPT_REVERSE);
    if (prefix == NULL)
        return;
    ProtobufCBinaryData first = text_of(call, prefix);
    ProtobufCBinaryData *low = scan->reversed ? &scan->stop : &scan->start;
    ProtobufCBinaryData *behind = scan->reversed ? &scan->start : &scan->stop;
    if ((scan->reversed ? stop : start) == NULL) {
        *low = first;
        scan->stop_inclusive |= scan->reversed;
    }
    if ((scan->reversed ? start : stop) == NULL && hg_rowfilter_behind(&call->arena, first, behind))
        scan->start_exclusive |= scan->reversed;
}

static int make_scan(struct hg_rowcall *call, hg_pb_hbase_request *request)
{
    struct hg_ctl *ctl = call->ctl;
    hg_pb_scan *scan = HG_PB_NEW(&call->arena, scan);
    int64_t limit, batch, page;
    int code = hg_ctl_option_number(ctl, HG_CTL_OPT_LIMIT, 1, UINT32_MAX, &limit);
    if (code == HG_CTL_OK)
        code = hg_ctl_option_number(ctl, HG_CTL_OPT_BATCH, 1, UINT32_MAX, &batch);
    if (code == HG_CTL_OK)
        code = hg_ctl_option_number(ctl, HG_CTL_OPT_PAGE_ROWS, 1, 10000, &page);
    if (code == HG_CTL_OK)
        code = hg_ctl_hbase_read(call, &request->read);
    scan->limit = (uint32_t)limit;
    scan->batch = code == HG_CTL_OK ? (uint32_t)batch : 0;
    scan->caching = code == HG_CTL_OK ? (uint32_t)page : 0;
    set_range(call, scan);
    request->scan = scan;
    return code;
}

static void add_rows(struct hg_rowpages *pages, const void *from)
{
    const hg_pb_hbase_reply *reply = from;
    for (size_t i = 0; i < reply->n_rows; i++) {
        const hg_pb_hbase_row *row = reply->rows[i];
        hg_rowshow_cells(&pages->table, &row->row, row->cells, row->n_cells);
        json_t *object = json_object();
        json_object_set_new(object, "row", hg_rowtext_json_bytes(row->row));
        json_object_set_new(object, "cells", hg_rowshow_cells_json(row->cells, row->n_cells));
        json_object_set_new(object, "partial", json_boolean(row->partial));
        json_array_append_new(pages->list, object);
    }
    pages->session = reply->session;
    pages->more = reply->more;
}

int hg_ctl_hbase_scan(struct hg_rowcall *call)
{
    hg_pb_hbase_request *request = HG_PB_NEW(&call->arena, hbase_request);
    int code = make_scan(call, request);
    return code != HG_CTL_OK ? code : hg_rowpages_run(call, &request->base, add_rows);
}
