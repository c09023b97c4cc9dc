// table - TableAPI and HBase requests: from the frame to what carries them out
// SPDX-License-Identifier: BSD-3-Clause
#include "front/table.h"

#include "core/units.h"
#include "front/gate.h"
#include "front/held.h"
#include "front/table_in.h"
#include "proto/hello.h"

#define PARTS_A_TURN 4 /* of ranges, each of about a millisecond at most */

/* A frame, and what is known of it. */
struct incoming {
    struct hg_session *session;
    const struct hg_frame *frame;
    enum hg_op op;
    struct hg_span table, row; /* in the frame */
    bool impersonated;
    uint32_t rights; /* privileges of the client, or of both users */
};

static const struct hg_refusal no_memory = {HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR,
                                            "no memory is left for the request", HG_SPAN_NONE,
                                            HG_SPAN_NONE};

#define READ_BIT  HG_PRIVILEGE_BIT(HG_PRIVILEGE_READ)
#define WRITE_BIT HG_PRIVILEGE_BIT(HG_PRIVILEGE_WRITE)

/* ---- what an operation needs ---- */

static uint32_t needs_of(enum hg_op op)
{
    switch (op) {
    case HG_OP_TABLE_INCREMENT:
    case HG_OP_TABLE_APPEND:
    case HG_OP_HBASE_INCREMENT:
    case HG_OP_HBASE_APPEND:
    case HG_OP_HBASE_CHECK_AND_PUT:
    case HG_OP_HBASE_CHECK_AND_DELETE:
        return READ_BIT | WRITE_BIT;
    case HG_OP_TABLE_BATCH:
    case HG_OP_HBASE_HYBRID:
        return 0; /* what its items need */
    default:
        return hg_op_rows[op].writes ? WRITE_BIT : READ_BIT;
    }
}

/* Does it add data? Refused while SetBucketDataLimitExceeded blocks the bucket. */
static bool adds(enum hg_op op)
{
    return hg_op_rows[op].writes && op != HG_OP_TABLE_DELETE && op != HG_OP_HBASE_DELETE &&
           op != HG_OP_HBASE_CHECK_AND_DELETE;
}

static bool is_batch(enum hg_op op)
{
    return op == HG_OP_TABLE_BATCH || op == HG_OP_HBASE_HYBRID;
}

static enum hg_table_kind kind_of(const struct hg_tablemsg *msg)
{
    struct hg_span row;
    switch (msg->op) {
    case HG_OP_TABLE_BATCH:
        return msg->atomic ? HG_TABLE_ATOMIC : HG_TABLE_BATCH;
    case HG_OP_HBASE_HYBRID:
        return HG_TABLE_BATCH;
    case HG_OP_TABLE_QUERY:
    case HG_OP_TABLE_QUERY_START:
    case HG_OP_HBASE_SCAN:
        return hg_tablemsg_point(msg, &row) ? HG_TABLE_POINT : HG_TABLE_RANGE;
    case HG_OP_TABLE_QUERY_NEXT:
    case HG_OP_HBASE_SCAN_NEXT:
        return HG_TABLE_NEXT;
    case HG_OP_TABLE_QUERY_END:
    case HG_OP_HBASE_SCAN_END:
        return HG_TABLE_END;
    default:
        return HG_TABLE_ROW;
    }
}

/* ---- refusals ---- */

/* As a request of its operation, so that it is counted as one. */
static enum hg_step refuse(const struct incoming *in, const struct hg_refusal *refusal)
{
    struct hg_request *request = hg_dispatch_request(in->session, in->frame, in->op);
    if (request == NULL)
        return hg_dispatch_say(in->session, in->frame, &no_memory);
    hg_answer_refusal(request, refusal);
    return HG_STEP_NEXT;
}

static enum hg_step refuse_status(const struct incoming *in, uint16_t status, const char *text)
{
    struct hg_refusal refusal = {status, hg_table_outcome(status), text, HG_SPAN_NONE,
                                 HG_SPAN_NONE};
    return refuse(in, &refusal);
}

static bool exempt(const struct hg_session *session)
{
    return session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
}

uint16_t hg_table_key_status(const struct hg_session *session, const struct hg_opcode_row *row,
                             uint16_t status)
{
    bool silent;
    if (session->features & (HG_FEATURE_XERROR | HG_FEATURE_NON_BLOCKING_THROTTLING))
        return status;
    return hg_reject_status(session->lane->bucket, row, &silent);
}

/* True: the row is throttled, and the request, which would count as `op`, has been refused. */
static bool refuse_hot(const struct incoming *in, enum hg_op op, struct hg_span row)
{
    struct hg_session *session = in->session;
    struct hg_worker *worker = session->worker;
    uint8_t room[HG_HOTKEY_KEY_MAX];
    unsigned percent;
    if (HG_LIKELY(session->lane->hot_list == NULL))
        return false;
    struct hg_hotkey_key key = hg_hot_key(worker, in->table, row, room);
    if (!hg_hot_refuses(worker, session->lane, &key, exempt(session), &percent))
        return false;
    enum hg_hot_rule rule = (enum hg_hot_rule)hg_op_rows[op].hot;
    struct hg_hot_words words;
    hg_hot_explain(worker, session->lane,
                   rule <= HG_HOT_RULE_QUERY ? (enum hg_hot_type)rule : HG_HOT_QUERY, percent,
                   &words);
    struct hg_refusal refusal = {HG_STATUS_HOT_KEY, HG_OUTCOME_HOT_KEY, words.text,
                                 hg_span_str(words.members), HG_SPAN_NONE};
    refuse(in, &refusal);
    return true;
}

/* ---- judging what was decoded ---- */

/* What the items need together. False: refused. */
static bool may_items(const struct incoming *in, const struct hg_table *table)
{
    unsigned limit =
        atomic_load_explicit(&in->session->lane->bucket->data_limit_status, memory_order_relaxed);
    uint32_t needs = 0;
    bool any_adds = false;
    for (size_t i = 0; i < table->msg.item_count; i++) {
        needs |= needs_of(hg_table_item_op(&table->msg, i));
        any_adds |= adds(hg_table_item_op(&table->msg, i));
    }
    if (!hg_privileges_hold(in->rights, needs)) {
        refuse(in, &(struct hg_refusal){HG_STATUS_EACCESS, HG_OUTCOME_DENIED,
                                        "the user has not the privilege for an operation of the "
                                        "batch in the bucket",
                                        HG_SPAN_NONE, HG_SPAN_NONE});
        return false;
    }
    if (limit != 0 && any_adds) {
        hg_dispatch_data_limit(in->session, in->frame, limit);
        return false;
    }
    return true;
}

/* Copies and decodes. False: refused. */
static bool decode(const struct incoming *in, struct hg_table *table)
{
    const char *why = "the request takes more memory than it may";
    struct hg_span key = hg_arena_copy(&table->arena, in->frame->key);
    table->body = hg_arena_copy(&table->arena, hg_frame_value(in->frame));
    uint16_t status = HG_STATUS_E2BIG;
    if (key.at != NULL && table->body.at != NULL)
        status = hg_tablemsg_decode(in->op, hg_span(key.at, in->table.len),
                                    hg_span(key.at + in->table.len, key.len - in->table.len),
                                    table->body, &table->arena, &table->msg, &why);
    if (status == HG_STATUS_SUCCESS)
        return true;
    refuse_status(in, status, why);
    return false;
}

enum judgement { PASSES, REFUSED, DEFERRED };

static enum judgement judge(const struct incoming *in, struct hg_table *table)
{
    struct hg_session *session = in->session;
    struct hg_span row;
    table->exempt = exempt(session);
    table->kind = kind_of(&table->msg);
    switch (table->kind) {
    case HG_TABLE_BATCH:
        if (!may_items(in, table))
            return REFUSED;
        if (!hg_table_judge_batch(table, session, in->frame->row)) {
            refuse(in, &no_memory);
            return REFUSED;
        }
        return PASSES;
    case HG_TABLE_ATOMIC:
        if (!may_items(in, table))
            return REFUSED;
        return refuse_hot(in, hg_table_item_op(&table->msg, 0), hg_table_item_row(&table->msg, 0))
                   ? REFUSED
                   : PASSES;
    case HG_TABLE_POINT:
        (void)hg_tablemsg_point(&table->msg, &row);
        return refuse_hot(in, in->op, row) ? REFUSED : PASSES;
    case HG_TABLE_RANGE:
        if (!hg_reader_init(&table->own, &table->msg)) {
            refuse_status(in, HG_STATUS_EINVAL,
                          "a bound of the range is longer than a row key of the table can be");
            return REFUSED;
        }
        /* fall through */
    case HG_TABLE_NEXT:
        /* It sees what its client has written before, and is seen by what comes after. */
        return session->first != NULL ? DEFERRED : PASSES;
    default:
        return PASSES;
    }
}

/* ---- carrying out ---- */

static void start(struct hg_table *table, struct hg_store *store)
{
    switch (table->kind) {
    case HG_TABLE_ROW:
        hg_table_run_row(table, store);
        return;
    case HG_TABLE_POINT:
        hg_table_run_point(table, store);
        return;
    case HG_TABLE_ATOMIC:
        hg_table_run_atomic(table, store);
        return;
    case HG_TABLE_BATCH:
        hg_table_run_batch(table);
        return;
    case HG_TABLE_RANGE:
        hg_table_run_range(table, store);
        return;
    case HG_TABLE_NEXT:
        hg_table_run_next(table);
        return;
    case HG_TABLE_END:
        hg_table_run_end(table);
        return;
    }
}

/* The key of the request's row, or the one in front of all rows of its table. */
static struct hg_span key_of(const struct hg_table *table, uint8_t room[HG_TABLE_KEY_MAX + 1])
{
    struct hg_span row = HG_SPAN_NONE, of = table->msg.table;
    uint8_t name[HG_TABLE_KEY_MAX];
    if (table->kind == HG_TABLE_POINT)
        (void)hg_tablemsg_point(&table->msg, &row);
    else if (table->kind == HG_TABLE_ROW || table->kind == HG_TABLE_ATOMIC)
        row = hg_table_item_row(&table->msg, 0);
    else if (table->kind == HG_TABLE_NEXT)
        of = hg_span(name, hg_cursors_table(&table->worker->front->cursors, table->msg.session,
                                            table->request->lane->bucket, table->msg.api, name));
    return hg_span(room, hg_rowdoc_key(room, of, row));
}

/* The tickets of the request; the items of a batch have tickets of their own. */
static bool enter(struct hg_session *session, struct hg_request *request, bool *ret_waits)
{
    const struct hg_table *table = request->table;
    const struct hg_bucket *bucket = request->lane->bucket;
    uint8_t room[HG_TABLE_KEY_MAX + 1];
    if (table->kind == HG_TABLE_BATCH)
        return hg_gate_enter(session, request, NULL, ret_waits);
    struct hg_call at = {.op = request->call.op,
                         .prefix = hg_span(bucket->prefix, bucket->prefix_len),
                         .key = key_of(table, room),
                         .key_hash = request->call.key_hash,
                         .ticket = request->call.ticket};
    bool enters = hg_gate_enter(session, request, &at, ret_waits);
    /* A request that was refused is gone. */
    if (enters)
        request->call.ticket = at.ticket;
    return enters;
}

/* Hands the request to its rows, or to its range. */
static enum hg_step run(struct hg_session *session, struct hg_request *request)
{
    struct hg_table *table = request->table;
    struct hg_worker *worker = session->worker;
    struct hg_refusal why;
    bool waits;
    /* The end of a session touches no store. */
    if (table->kind != HG_TABLE_END && HG_UNLIKELY(!enter(session, request, &waits)))
        return waits ? HG_STEP_WAIT : HG_STEP_NEXT;
    struct hg_store *store = hg_dispatch_store(worker, request->lane->bucket, &why);
    if (store == NULL) {
        hg_table_answer_refusal(table, &why);
        return HG_STEP_NEXT;
    }
    bool one_row = table->kind <= HG_TABLE_POINT || table->kind == HG_TABLE_ATOMIC;
    if (one_row) {
        struct hg_request *before = hg_dispatch_pending(session, request->call.key_hash);
        if (HG_UNLIKELY(before != NULL && !hg_request_on_rows(before))) {
            session->waiting = request; /* a classic operation on the same key comes first */
            return HG_STEP_DEFER;
        }
        session->keys_pending |= (uint64_t)1 << (request->call.key_hash & 63);
    }
    request->state = HG_REQUEST_SENT;
    session->barrier = table->kind == HG_TABLE_RANGE || table->kind == HG_TABLE_NEXT;
    hg_counter_add(&worker->in_flight, 1);
    start(table, store);
    return HG_STEP_NEXT;
}

enum hg_step hg_table_resume(struct hg_session *session, struct hg_request *request)
{
    return run(session, request);
}

/* The row that the request speaks of, for the slow log; and its key's hash, for the order. */
static void name_row(struct hg_request *request, struct hg_table *table, struct hg_span row)
{
    if (table->kind == HG_TABLE_POINT)
        (void)hg_tablemsg_point(&table->msg, &row);
    else if (table->kind == HG_TABLE_ATOMIC)
        row = hg_table_item_row(&table->msg, 0);
    uint8_t room[HG_HOTKEY_KEY_MAX];
    request->call.key_hash = hg_table_row_hash(table, row);
    request->bind_hash = hg_hot_key(request->session->worker, table->msg.table, row, room).hash;
    request->key_len = (uint16_t)row.len;
    size_t head = row.len < sizeof request->key_head ? row.len : sizeof request->key_head;
    if (head > 0)
        memcpy(request->key_head, row.at, head);
}

static enum hg_step admit(const struct incoming *in, struct hg_table *table)
{
    struct hg_request *request = hg_dispatch_request(in->session, in->frame, in->op);
    if (request == NULL) {
        hg_table_free(table);
        return hg_dispatch_say(in->session, in->frame, &no_memory);
    }
    request->table = table;
    table->request = request;
    request->bind_passed = table->passes != NULL;
    request->impersonated = in->impersonated;
    name_row(request, table, in->row);
    if (is_batch(in->op))
        hg_table_estimate_batch(table, request);
    bool waits;
    if (HG_UNLIKELY(request->lane->binds != NULL) && hg_dispatch_refuse_bind(in->session, request))
        return HG_STEP_NEXT;
    if (table->kind != HG_TABLE_END && !hg_held_admit(in->session, request, &waits))
        return waits ? HG_STEP_WAIT : HG_STEP_NEXT;
    request->admitted = true;
    return run(in->session, request);
}

/* From the body on. */
static enum hg_step take_body(const struct incoming *in)
{
    struct hg_table *table = hg_table_new(in->session->worker);
    if (table == NULL)
        return hg_dispatch_say(in->session, in->frame, &no_memory);
    enum judgement judgement = decode(in, table) ? judge(in, table) : REFUSED;
    if (judgement == PASSES)
        return admit(in, table);
    hg_table_free(table);
    return judgement == DEFERRED ? hg_dispatch_defer(in->session, in->frame) : HG_STEP_NEXT;
}

enum hg_step hg_table_dispatch(struct hg_session *session, const struct hg_frame *frame)
{
    struct incoming in = {.session = session, .frame = frame};
    enum hg_api api = frame->opcode == HG_OPCODE_TABLE ? HG_API_TABLE : HG_API_HBASE;
    const char *why = NULL;
    uint16_t status =
        hg_tablemsg_head(api, hg_frame_extras(frame), frame->key, &in.op, &in.table, &in.row, &why);
    if (status != HG_STATUS_SUCCESS)
        return hg_dispatch_say(session, frame,
                               &(struct hg_refusal){status,
                                                    status == HG_STATUS_UNKNOWN_COMMAND
                                                        ? HG_OUTCOME_UNKNOWN
                                                        : HG_OUTCOME_INVALID,
                                                    why, HG_SPAN_NONE, HG_SPAN_NONE});
    struct hg_frameinfo info = {0};
    if (!hg_dispatch_may(session, frame, needs_of(in.op), &info, &in.rights))
        return HG_STEP_NEXT;
    in.impersonated = info.impersonate;
    if (is_batch(in.op) && (in.rights & (READ_BIT | WRITE_BIT)) == 0)
        return refuse_status(&in, HG_STATUS_EACCESS,
                             "the user has not the privilege for this operation in the bucket");
    unsigned limit =
        atomic_load_explicit(&session->lane->bucket->data_limit_status, memory_order_relaxed);
    if (HG_UNLIKELY(limit != 0 && !is_batch(in.op) && adds(in.op)))
        return hg_dispatch_data_limit(session, frame, limit);
    if (hg_op_rows[in.op].hot <= HG_HOT_RULE_QUERY && refuse_hot(&in, in.op, in.row))
        return HG_STEP_NEXT;
    return take_body(&in);
}

void hg_tables_go_on(struct hg_worker *worker)
{
    struct hg_list now, *node;
    hg_list_init(&now);
    hg_list_splice(&now, &worker->tables.items);
    while ((node = hg_list_first(&now)) != NULL)
        hg_table_start_item(HG_CONTAINER_OF(node, struct hg_table_slot, turn));
    hg_list_splice(&now, &worker->tables.ranges);
    for (unsigned n = 0; n < PARTS_A_TURN && (node = hg_list_first(&now)) != NULL; n++) {
        hg_list_remove(node);
        hg_table_read_on(HG_CONTAINER_OF(node, struct hg_table, node));
    }
    /* Those whose turn did not come stay in front of those that came back. */
    hg_list_splice(&now, &worker->tables.ranges);
    hg_list_splice(&worker->tables.ranges, &now);
    if (!hg_list_empty(&worker->tables.ranges))
        hg_loop_again(&worker->loop);
}
