// hbaseverb - the verb hbase: one operation of HBase on one row
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/tableverb.h"

#include <stdio.h>
#include <string.h>

#include "ctl/option.h"
#include "ctl/rowfilter.h"
#include "ctl/rowshow.h"

/* ---- what a request is made of ---- */

static int add_cells(struct hg_rowcall *call, int from, hg_pb_hbase_request *request)
{
    int64_t ts;
    int code = hg_ctl_option_number(call->ctl, HG_CTL_OPT_TS, 0, INT64_MAX, &ts);
    for (int i = from; i < call->arg_count && code == HG_CTL_OK; i++) {
        hg_pb_cell *cell;
        code = hg_rowtext_cell(&call->arena, call->args[i], &cell);
        if (code != HG_CTL_OK)
            break;
        if (hg_ctl_option_is(call->ctl, HG_CTL_OPT_TS)) {
            cell->at_case = HEADGATE__TABLE__V1__CELL__AT_TIMESTAMP;
            cell->timestamp = ts;
        }
        hg_pb_append(&call->arena, &request->cells, &request->n_cells, cell);
    }
    if (code == HG_CTL_OK && request->n_cells == 0)
        return hg_ctl_say(HG_CTL_USAGE, "%s takes at least one FAMILY:QUALIFIER=TEXT", call->verb);
    return code;
}

static int add_counters(struct hg_rowcall *call, hg_pb_hbase_request *request)
{
    for (int i = 0; i < call->arg_count; i++) {
        hg_pb_counter *counter;
        int code = hg_rowtext_counter(&call->arena, call->args[i], &counter);
        if (code != HG_CTL_OK)
            return code;
        hg_pb_append(&call->arena, &request->counters, &request->n_counters, counter);
    }
    if (request->n_counters == 0)
        return hg_ctl_say(HG_CTL_USAGE, "%s takes at least one FAMILY:QUALIFIER=N", call->verb);
    return HG_CTL_OK;
}

hg_pb_deletion *hg_ctl_hbase_deletion(struct hg_arena *arena, const char *text, bool newest,
                                      bool exact)
{
    hg_pb_deletion *deletion = HG_PB_NEW(arena, deletion);
    if (text == NULL)
        deletion->kind = HEADGATE__TABLE__V1__DELETION__KIND__ROW;
    else if (!hg_rowtext_split(arena, text, strlen(text), &deletion->family, &deletion->qualifier))
        deletion->kind = HEADGATE__TABLE__V1__DELETION__KIND__FAMILY;
    else
        deletion->kind = exact    ? HEADGATE__TABLE__V1__DELETION__KIND__VERSION
                         : newest ? HEADGATE__TABLE__V1__DELETION__KIND__COLUMN
                                  : HEADGATE__TABLE__V1__DELETION__KIND__COLUMNS;
    return deletion;
}

static int add_deletions(struct hg_rowcall *call, int from, hg_pb_hbase_request *request)
{
    struct hg_ctl *ctl = call->ctl;
    int64_t ts;
    bool dated = hg_ctl_option_is(ctl, HG_CTL_OPT_TS);
    bool newest = hg_ctl_option_is(ctl, HG_CTL_OPT_NEWEST);
    bool exact = hg_ctl_option_is(ctl, HG_CTL_OPT_EXACT);
    int code = hg_ctl_option_number(ctl, HG_CTL_OPT_TS, 0, INT64_MAX, &ts);
    if (code != HG_CTL_OK)
        return code;
    if (newest && (exact || dated))
        return hg_ctl_say(HG_CTL_USAGE, "--newest goes with neither --ts nor --exact");
    if (exact && !dated)
        return hg_ctl_say(HG_CTL_USAGE, "--exact takes --ts too: the version to delete");
    for (int i = from; i < call->arg_count || i == from; i++) {
        const char *text = i < call->arg_count ? call->args[i] : NULL;
        if ((newest || exact) && (text == NULL || strchr(text, ':') == NULL))
            return hg_ctl_say(HG_CTL_USAGE, "--%s takes FAMILY:QUALIFIER, not '%s'",
                              newest ? "newest" : "exact", text != NULL ? text : "");
        hg_pb_deletion *deletion = hg_ctl_hbase_deletion(&call->arena, text, newest, exact);
        if (dated) {
            deletion->at_case = HEADGATE__TABLE__V1__DELETION__AT_TIMESTAMP;
            deletion->timestamp = ts;
        }
        hg_pb_append(&call->arena, &request->deletions, &request->n_deletions, deletion);
    }
    return HG_CTL_OK;
}

void hg_ctl_hbase_add_column(struct hg_arena *arena, hg_pb_read *read, const char *text)
{
    hg_pb_family_columns *columns = HG_PB_NEW(arena, family_columns);
    ProtobufCBinaryData qualifier;
    if (hg_rowtext_split(arena, text, strlen(text), &columns->family, &qualifier)) {
        for (size_t i = 0; i < read->n_columns; i++) { /* one entry a family */
            hg_pb_family_columns *other = read->columns[i];
            if (other->family.len == columns->family.len && other->n_qualifiers > 0 &&
                memcmp(other->family.data, columns->family.data, other->family.len) == 0) {
                hg_pb_append_bytes(arena, &other->qualifiers, &other->n_qualifiers, qualifier);
                return;
            }
        }
        hg_pb_append_bytes(arena, &columns->qualifiers, &columns->n_qualifiers, qualifier);
    }
    hg_pb_append(arena, &read->columns, &read->n_columns, columns);
}

int hg_ctl_hbase_read(struct hg_rowcall *call, hg_pb_read **ret)
{
    struct hg_ctl *ctl = call->ctl;
    hg_pb_read *read = HG_PB_NEW(&call->arena, read);
    int64_t versions, from, to;
    int code = hg_ctl_option_number(ctl, HG_CTL_OPT_VERSIONS, 1, UINT32_MAX, &versions);
    if (code == HG_CTL_OK)
        code = hg_ctl_option_number(ctl, HG_CTL_OPT_FROM_TS, 0, INT64_MAX, &from);
    if (code == HG_CTL_OK)
        code = hg_ctl_option_number(ctl, HG_CTL_OPT_TO_TS, 0, INT64_MAX, &to);
    if (code == HG_CTL_OK)
        code = hg_rowfilter_of(ctl, &call->arena, true, &read->filter);
    if (code != HG_CTL_OK)
        return code;
    read->max_versions = (uint32_t)versions;
    if (hg_ctl_option_is(ctl, HG_CTL_OPT_FROM_TS)) {
        read->lower_case = HEADGATE__TABLE__V1__READ__LOWER_MIN_TIMESTAMP;
        read->min_timestamp = from;
    }
    if (hg_ctl_option_is(ctl, HG_CTL_OPT_TO_TS)) {
        read->upper_case = HEADGATE__TABLE__V1__READ__UPPER_MAX_TIMESTAMP;
        read->max_timestamp = to;
    }
    for (int i = 0; i < call->arg_count; i++)
        hg_ctl_hbase_add_column(&call->arena, read, call->args[i]);
    *ret = read;
    return HG_CTL_OK;
}

/* "FAMILY:QUALIFIER OPERATOR TEXT", or "FAMILY:QUALIFIER missing|present". *ret_used: how many
   arguments that took. The server compares the expected value, on the left, with the cell. */
static int add_check(struct hg_rowcall *call, hg_pb_hbase_request *request, int *ret_used)
{
    hg_pb_check *check = HG_PB_NEW(&call->arena, check);
    const char *op = call->arg_count > 1 ? call->args[1] : "";
    bool missing = strcmp(op, "missing") == 0, alone = missing || strcmp(op, "present") == 0;
    size_t len = alone ? 0 : hg_rowtext_operator(op, &check->op);
    *ret_used = alone ? 2 : 3;
    if (call->arg_count < *ret_used || (!alone && (len == 0 || op[len] != '\0')) ||
        !hg_rowtext_split(&call->arena, call->args[0], strlen(call->args[0]), &check->family,
                          &check->qualifier))
        return hg_ctl_say(HG_CTL_USAGE,
                          "%s takes, behind the row, FAMILY:QUALIFIER and either OPERATOR TEXT (=, "
                          "!=, <, <=, >, >=) or missing or present",
                          call->verb);
    if (alone) {
        check->op = missing ? HEADGATE__TABLE__V1__OPERATOR__EQUAL
                            : HEADGATE__TABLE__V1__OPERATOR__NOT_EQUAL;
    } else {
        check->expected_case = HEADGATE__TABLE__V1__CHECK__EXPECTED_VALUE;
        check->value = hg_rowtext_of(&call->arena, call->args[2]);
    }
    request->check = check;
    return HG_CTL_OK;
}

static int make_request(struct hg_rowcall *call, hg_pb_hbase_request *request)
{
    int used = 0, code;
    switch (call->op) {
    case HG_OP_HBASE_GET:
        return hg_ctl_hbase_read(call, &request->read);
    case HG_OP_HBASE_INCREMENT:
        return add_counters(call, request);
    case HG_OP_HBASE_DELETE:
        return add_deletions(call, 0, request);
    case HG_OP_HBASE_CHECK_AND_PUT:
        code = add_check(call, request, &used);
        return code != HG_CTL_OK ? code : add_cells(call, used, request);
    case HG_OP_HBASE_CHECK_AND_DELETE:
        code = add_check(call, request, &used);
        return code != HG_CTL_OK ? code : add_deletions(call, used, request);
    default:
        return add_cells(call, 0, request);
    }
}

/* ---- results ---- */

static bool returns_cells(enum hg_op op)
{
    return op == HG_OP_HBASE_GET || op == HG_OP_HBASE_APPEND || op == HG_OP_HBASE_INCREMENT;
}

static bool is_check(enum hg_op op)
{
    return op == HG_OP_HBASE_CHECK_AND_PUT || op == HG_OP_HBASE_CHECK_AND_DELETE;
}

/* A get that asks for some of a row's cells only may find none of a row that is there. */
static bool is_narrowed(const struct hg_rowcall *call)
{
    return call->arg_count > 0 || hg_ctl_option_is(call->ctl, HG_CTL_OPT_WHERE) ||
           hg_ctl_option_is(call->ctl, HG_CTL_OPT_COLUMN_PREFIX) ||
           hg_ctl_option_is(call->ctl, HG_CTL_OPT_FROM_TS) ||
           hg_ctl_option_is(call->ctl, HG_CTL_OPT_TO_TS);
}

static void show_text(const struct hg_rowcall *call, const hg_pb_hbase_reply *reply)
{
    struct hg_ctl_table table;
    if (call->op == HG_OP_HBASE_GET && reply->n_cells == 0)
        puts(is_narrowed(call) ? "no such cells" : "no such row");
    else if (is_check(call->op))
        puts(reply->processed ? "processed" : "not processed: the check did not hold");
    else if (!returns_cells(call->op))
        printf("affected %u\n", call->affected);
    hg_rowshow_init(&table, false, true);
    hg_rowshow_cells(&table, NULL, reply->cells, reply->n_cells);
    hg_rowshow_print(&table);
}

static int show_json(const struct hg_rowcall *call, const hg_pb_hbase_reply *reply)
{
    json_t *object = json_object();
    if (call->op != HG_OP_HBASE_GET)
        json_object_set_new(object, "affected", json_integer(call->affected));
    if (is_check(call->op))
        json_object_set_new(object, "processed", json_boolean(reply->processed));
    if (returns_cells(call->op))
        json_object_set_new(object, "cells", hg_rowshow_cells_json(reply->cells, reply->n_cells));
    return hg_ctl_json_print(object);
}

static int run_single(struct hg_rowcall *call)
{
    hg_pb_hbase_request *request = HG_PB_NEW(&call->arena, hbase_request);
    hg_pb_hbase_reply *reply;
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

int hg_ctl_hbase(struct hg_ctl *ctl)
{
    struct hg_rowcall call;
    int code = hg_rowcall_init(&call, ctl, HG_API_HBASE);
    if (code == HG_CTL_OK)
        code = call.op == HG_OP_HBASE_SCAN     ? hg_ctl_hbase_scan(&call)
               : call.op == HG_OP_HBASE_HYBRID ? hg_ctl_hbase_hybrid(&call)
                                               : run_single(&call);
    hg_rowcall_fini(&call);
    return code;
}
