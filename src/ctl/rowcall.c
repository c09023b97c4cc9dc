// rowcall - one TableAPI or HBase request and its reply
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/rowcall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ctl/table.h"
#include "proto/opcode.h"
#include "proto/status.h"
#include "proto/tablemsg.h"

/* ---- the operation ---- */

/* Sessions are not typed: query and scan make their own. */
static bool is_session(enum hg_op op)
{
    return op == HG_OP_TABLE_QUERY_START || op == HG_OP_TABLE_QUERY_NEXT ||
           op == HG_OP_TABLE_QUERY_END || op == HG_OP_HBASE_SCAN_NEXT || op == HG_OP_HBASE_SCAN_END;
}

static bool has_row(enum hg_op op)
{
    return op != HG_OP_TABLE_QUERY && op != HG_OP_TABLE_BATCH && op != HG_OP_HBASE_SCAN &&
           op != HG_OP_HBASE_HYBRID;
}

/* The name of an operation within its API. */
static const char *word_of(enum hg_op op)
{
    return strchr(hg_op_rows[op].name, '_') + 1;
}

/* Dashes are as good as underscores. */
static bool is_word(const char *typed, const char *word)
{
    size_t i = 0;
    while (typed[i] != '\0' && (typed[i] == word[i] || (typed[i] == '-' && word[i] == '_')))
        i++;
    return typed[i] == '\0' && word[i] == '\0';
}

static int say_operations(enum hg_api api, const char *verb, const char *typed)
{
    char list[300] = "";
    for (unsigned op = HG_OPS_CLASSIC; op < HG_OPS; op++) {
        if (hg_op_rows[op].api != api || is_session((enum hg_op)op))
            continue;
        strncat(list, list[0] != '\0' ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, word_of((enum hg_op)op), sizeof list - strlen(list) - 1);
    }
    if (typed == NULL)
        return hg_ctl_say(HG_CTL_USAGE, "%s takes an operation (%s)", verb, list);
    return hg_ctl_say(HG_CTL_USAGE, "'%s' is no operation of %s (accepted: %s)", typed, verb, list);
}

static int find_operation(struct hg_rowcall *call, const char *verb)
{
    const char *typed = call->ctl->arg_count > 0 ? call->ctl->args[0] : NULL;
    for (unsigned op = HG_OPS_CLASSIC; op < HG_OPS && typed != NULL; op++) {
        if (hg_op_rows[op].api == call->api && !is_session((enum hg_op)op) &&
            is_word(typed, word_of((enum hg_op)op))) {
            call->op = (enum hg_op)op;
            return HG_CTL_OK;
        }
    }
    return say_operations(call->api, verb, typed);
}

/* ---- the call ---- */

static int check_names(struct hg_rowcall *call)
{
    size_t table = call->table_bytes.len;
    if (!hg_tablemsg_table_right(hg_span(call->table_bytes.data, table)))
        return hg_ctl_say(HG_CTL_USAGE,
                          "'%s' is no table's name (accepted: 1 to %d bytes, none of them zero)",
                          call->table, HG_TABLE_NAME_MAX);
    if (call->row != NULL && call->row_bytes.len == 0)
        return hg_ctl_say(HG_CTL_USAGE, "a row key has at least 1 byte");
    if (table + call->row_bytes.len > HG_TABLE_KEY_MAX)
        return hg_ctl_say(HG_CTL_USAGE,
                          "table name and row key have %zu bytes together (accepted: at most %d)",
                          table + call->row_bytes.len, HG_TABLE_KEY_MAX);
    return HG_CTL_OK;
}

int hg_rowcall_init(struct hg_rowcall *call, struct hg_ctl *ctl, enum hg_api api)
{
    const char *verb = api == HG_API_TABLE ? "table" : "hbase";
    *call = (struct hg_rowcall){.ctl = ctl, .api = api};
    hg_arena_init(&call->arena, SIZE_MAX / 2);
    int code = find_operation(call, verb);
    if (code != HG_CTL_OK)
        return code;
    int words = has_row(call->op) ? 3 : 2;
    if (ctl->arg_count < words)
        return hg_ctl_say(HG_CTL_USAGE, "%s %s takes %s", verb, word_of(call->op),
                          words == 3 ? "a table and a row" : "a table");
    snprintf(call->verb, sizeof call->verb, "%s %s", verb, word_of(call->op));
    call->table = ctl->args[1];
    call->table_bytes = hg_rowtext_of(&call->arena, call->table);
    if (words == 3) {
        call->row = ctl->args[2];
        call->row_bytes = hg_rowtext_of(&call->arena, call->row);
    }
    call->args = ctl->args + words;
    call->arg_count = ctl->arg_count - words;
    return check_names(call);
}

void hg_rowcall_fini(struct hg_rowcall *call)
{
    hg_arena_fini(&call->arena);
}

/* ---- sending ---- */

/* "table get users alice", for messages. */
static void name_call(const struct hg_rowcall *call, char *to, size_t room)
{
    snprintf(to, room, "%s %s%s%s", call->verb, call->table, call->row != NULL ? " " : "",
             call->row != NULL ? call->row : "");
}

/* protobuf-c's allocator over the arena: what it frees goes with the arena. */
static void *arena_alloc(void *arena, size_t bytes)
{
    return hg_arena_take(arena, bytes);
}

static void arena_free(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

static uint8_t *pack(struct hg_arena *arena, const ProtobufCMessage *request, size_t *ret_len)
{
    *ret_len = protobuf_c_message_get_packed_size(request);
    uint8_t *body = hg_arena_take(arena, *ret_len);
    if (body == NULL)
        abort();
    protobuf_c_message_pack(request, body);
    return body;
}

/* Table name, then row key; sessions, batches and ranges have no row key. */
static struct hg_span key_of(struct hg_rowcall *call)
{
    size_t table = call->table_bytes.len, row = call->row_bytes.len;
    uint8_t *key = hg_arena_take(&call->arena, table + row);
    if (key == NULL)
        abort();
    memcpy(key, call->table_bytes.data, table);
    if (row > 0)
        memcpy(key + table, call->row_bytes.data, row);
    return hg_span(key, table + row);
}

int hg_rowcall_send(struct hg_rowcall *call, enum hg_op op, const ProtobufCMessage *request,
                    void *ret)
{
    const ProtobufCMessageDescriptor *reply_type =
        call->api == HG_API_TABLE ? &headgate__table__v1__table_reply__descriptor
                                  : &headgate__table__v1__hbase_reply__descriptor;
    char what[400];
    struct hg_ctl_reply reply;
    uint8_t extras[HG_TABLE_EXTRAS_BYTES] = {hg_op_rows[op].code};
    hg_put_u16(extras + 2, (uint16_t)call->table_bytes.len);
    struct hg_ctl_request frame = {.opcode = call->api == HG_API_TABLE ? HG_OPCODE_TABLE
                                                                       : HG_OPCODE_HBASE,
                                   .extras = hg_span(extras, sizeof extras),
                                   .key = key_of(call)};
    size_t len;
    frame.value.at = pack(&call->arena, request, &len);
    frame.value.len = len;
    int code = hg_ctl_ask(call->ctl, &frame, &reply);
    if (code != HG_CTL_OK)
        return code;
    name_call(call, what, sizeof what);
    if (reply.status != HG_STATUS_SUCCESS)
        return hg_ctl_refused(&reply, what);
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &call->arena};
    void *message =
        reply.extras.len == HG_TABLE_EXTRAS_BYTES && reply.extras.at[0] == extras[0]
            ? protobuf_c_message_unpack(reply_type, &allocator, reply.value.len, reply.value.at)
            : NULL;
    if (message == NULL)
        return hg_ctl_say(HG_CTL_LOST, "%s: the answer is not one of proto/table.proto", what);
    call->affected = hg_get_u16(reply.extras.at + 2);
    *(void **)ret = message;
    return HG_CTL_OK;
}

int hg_rowcall_ask(struct hg_rowcall *call, const ProtobufCMessage *request, void *ret)
{
    int code = hg_ctl_connect(call->ctl);
    return code != HG_CTL_OK ? code : hg_rowcall_send(call, call->op, request, ret);
}
