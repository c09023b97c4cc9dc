// rowpages - rows of a range, page by page through a session of their own
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/rowpages.h"

#include "ctl/rowshow.h"

static const ProtobufCMessage *next_request(struct hg_rowcall *call, uint64_t session)
{
    if (call->api == HG_API_TABLE) {
        hg_pb_table_request *request = HG_PB_NEW(&call->arena, table_request);
        request->session = session;
        return &request->base;
    }
    hg_pb_hbase_request *request = HG_PB_NEW(&call->arena, hbase_request);
    request->session = session;
    return &request->base;
}

static int fetch(struct hg_rowcall *call, const ProtobufCMessage *request, hg_rowpages_add_fn add,
                 struct hg_rowpages *pages)
{
    bool cells = call->api == HG_API_HBASE;
    enum hg_op start = cells ? HG_OP_HBASE_SCAN : HG_OP_TABLE_QUERY_START;
    enum hg_op next = cells ? HG_OP_HBASE_SCAN_NEXT : HG_OP_TABLE_QUERY_NEXT;
    const void *reply;
    int code = hg_rowcall_send(call, start, request, &reply);
    if (code != HG_CTL_OK)
        return code;
    add(pages, reply);
    request = next_request(call, pages->session);
    while (pages->more) {
        code = hg_rowcall_send(call, next, request, &reply);
        if (code != HG_CTL_OK)
            return code;
        add(pages, reply);
    }
    return HG_CTL_OK;
}

int hg_rowpages_run(struct hg_rowcall *call, const ProtobufCMessage *request,
                    hg_rowpages_add_fn add)
{
    int code = hg_ctl_connect(call->ctl);
    if (code != HG_CTL_OK)
        return code;
    struct hg_rowpages pages = {.list = json_array()};
    hg_rowshow_init(&pages.table, true, call->api == HG_API_HBASE);
    code = fetch(call, request, add, &pages);
    if (code == HG_CTL_OK && call->ctl->json) {
        code = hg_ctl_json_print(pages.list);
        hg_ctl_table_fini(&pages.table);
        return code;
    }
    json_decref(pages.list);
    if (code == HG_CTL_OK)
        hg_rowshow_print(&pages.table);
    else
        hg_ctl_table_fini(&pages.table);
    return code;
}
