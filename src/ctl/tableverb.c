// tableverb - the verb table: one operation of TableAPI on one row
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/tableverb.h"

#include <stdio.h>

#include "ctl/rowshow.h"

static int add_columns(struct hg_rowcall *call, hg_pb_table_request *request)
{
    hg_pb_entity *entity = HG_PB_NEW(&call->arena, entity);
    for (int i = 0; i < call->arg_count; i++) {
        hg_pb_column *column;
        int code = hg_rowtext_column(&call->arena, call->args[i], &column);
        if (code != HG_CTL_OK)
            return code;
        hg_pb_append(&call->arena, &entity->columns, &entity->n_columns, column);
    }
    if (entity->n_columns == 0 &&
        (call->op == HG_OP_TABLE_INCREMENT || call->op == HG_OP_TABLE_APPEND ||
         call->op == HG_OP_TABLE_UPDATE))
        return hg_ctl_say(HG_CTL_USAGE, "%s takes at least one column", call->verb);
    request->entity = entity;
    return HG_CTL_OK;
}

static int make_request(struct hg_rowcall *call, hg_pb_table_request *request)
{
    switch (call->op) {
    case HG_OP_TABLE_GET:
        for (int i = 0; i < call->arg_count; i++)
            hg_pb_append_bytes(&call->arena, &request->select, &request->n_select,
                               hg_rowtext_of(&call->arena, call->args[i]));
        return HG_CTL_OK;
    case HG_OP_TABLE_DELETE:
        if (call->arg_count > 0)
            return hg_ctl_say(HG_CTL_USAGE, "table delete takes one row, not '%s' too",
                              call->args[0]);
        return HG_CTL_OK;
    default:
        request->return_entity =
            call->op == HG_OP_TABLE_INCREMENT || call->op == HG_OP_TABLE_APPEND;
        return add_columns(call, request);
    }
}

static void show_text(const struct hg_rowcall *call, const hg_pb_table_reply *reply)
{
    struct hg_ctl_table table;
    if (call->op == HG_OP_TABLE_GET && reply->entity == NULL) {
        puts("no such row");
        return;
    }
    if (call->op == HG_OP_TABLE_GET && reply->entity->n_columns == 0) {
        puts("the row is there, without these columns");
        return;
    }
    if (call->op != HG_OP_TABLE_GET)
        printf("affected %u\n", call->affected);
    hg_rowshow_init(&table, false, false);
    hg_rowshow_entity(&table, NULL, reply->entity);
    hg_rowshow_print(&table);
}

/* A get is the row or null; what changes something says how many rows it did. */
static int show_json(const struct hg_rowcall *call, const hg_pb_table_reply *reply)
{
    json_t *entity = hg_rowshow_entity_json(reply->entity);
    if (call->op == HG_OP_TABLE_GET) {
        json_t *object = json_object();
        json_object_set_new(object, "found", json_boolean(reply->entity != NULL));
        json_object_set_new(object, "columns", entity);
        return hg_ctl_json_print(object);
    }
    json_t *object = json_object();
    json_object_set_new(object, "affected", json_integer(call->affected));
    if (reply->entity != NULL)
        json_object_set(object, "columns", entity);
    json_decref(entity);
    return hg_ctl_json_print(object);
}

static int run_single(struct hg_rowcall *call)
{
    hg_pb_table_request *request = HG_PB_NEW(&call->arena, table_request);
    hg_pb_table_reply *reply;
    int code = make_request(call, request);
    if (code == HG_CTL_OK)
        code = hg_rowcall_ask(call, &request->base, &reply);
    if (code != HG_CTL_OK)
        return code;
    if (call->ctl->json)
        return show_json(call, reply);
    show_text(call, reply);
    return HG_CTL_OK;
}

int hg_ctl_table(struct hg_ctl *ctl)
{
    struct hg_rowcall call;
    int code = hg_rowcall_init(&call, ctl, HG_API_TABLE);
    if (code == HG_CTL_OK)
        code = call.op == HG_OP_TABLE_QUERY   ? hg_ctl_table_query(&call)
               : call.op == HG_OP_TABLE_BATCH ? hg_ctl_table_batch(&call)
                                              : run_single(&call);
    hg_rowcall_fini(&call);
    return code;
}
