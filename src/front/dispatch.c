// dispatch - what becomes of each frame: checks, admission, the way to its store
// SPDX-License-Identifier: BSD-3-Clause
#include "front/dispatch.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.h"
#include "base/log.h"
#include "core/units.h"
#include "front/answer.h"
#include "front/dispatch_in.h"
#include "front/gate.h"
#include "front/held.h"
#include "front/hot.h"
#include "front/job.h"
#include "front/table.h"
#include "proto/frameinfo.h"
#include "proto/hello.h"
#include "proto/rowdoc.h"
#include "proto/status.h"

static struct hg_reply_of reply_of(const struct hg_frame *frame)
{
    uint64_t bytes = frame->total_bytes > UINT32_MAX ? UINT32_MAX : frame->total_bytes;
    if (frame->kind == HG_FRAME_BAD_LENGTHS || frame->kind == HG_FRAME_TOO_LONG)
        bytes = HG_FRAME_HEADER_BYTES; /* the rest is never read */
    return (struct hg_reply_of){frame->row, frame->opcode, frame->opaque, (uint32_t)bytes};
}

static enum hg_step refuse(struct hg_session *session, const struct hg_frame *frame,
                           uint16_t status, enum hg_outcome outcome, const char *text)
{
    struct hg_reply_of of = reply_of(frame);
    struct hg_refusal refusal = {status, outcome, text, HG_SPAN_NONE, HG_SPAN_NONE};
    hg_answer_session_refusal(session, &of, &refusal);
    return HG_STEP_NEXT;
}

/* A request is looked at for the first time (n = 1), or was not looked at after all (-1). */
static void count(struct hg_session *session, const struct hg_frame *frame, int n)
{
    hg_counter_add(&session->worker->opcodes[frame->opcode], (uint64_t)(int64_t)n);
    hg_counter_add(&session->requests, (uint64_t)(int64_t)n);
}

void hg_dispatch_refuse(struct hg_session *session, const struct hg_frame *frame)
{
    struct hg_worker *worker = session->worker;
    if (frame->kind == HG_FRAME_BAD_MAGIC) {
        hg_counter *by_kind[HG_STRANGER_COUNT] = {&worker->stranger_other, &worker->stranger_text,
                                                  &worker->stranger_tls, &worker->stranger_resp};
        char peer[HG_ADDR_TEXT];
        hg_counter_add(by_kind[frame->stranger], 1);
        hg_log_warn("client=%s msg=\"not the memcached binary protocol: first byte looks like %s; "
                    "closing\"",
                    hg_addr_text(&session->peer, peer), hg_stranger_name(frame->stranger));
        return;
    }
    struct hg_frame_limits limits = {worker->directory->settings.max_frame_bytes,
                                     worker->directory->settings.max_value_bytes};
    if (!session->logged_in)
        limits.max_frame_bytes = HG_SESSION_LOGIN_FRAME_BYTES;
    if (frame->kind != HG_FRAME_SKIP)
        hg_counter_add(&worker->bad_frames, 1);
    const char *why = NULL;
    char text[256];
    uint16_t status = hg_frame_check(frame, session->features, &why);
    hg_frame_explain(frame, &limits, why, text, sizeof text);
    enum hg_outcome outcome = status == HG_STATUS_E2BIG             ? HG_OUTCOME_TOO_LARGE
                              : status == HG_STATUS_UNKNOWN_COMMAND ? HG_OUTCOME_UNKNOWN
                                                                    : HG_OUTCOME_INVALID;
    count(session, frame, 1);
    refuse(session, frame, status, outcome, text);
}

/* ---- completion ---- */

static void count_room_wait(struct hg_request *request)
{
    uint64_t waited_us = request->session->worker->loop.now_us - request->hold_us;
    request->queue_us += waited_us;
    request->room_us += waited_us;
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct hg_request *request = HG_CONTAINER_OF(call, struct hg_request, call);
    struct hg_guard *guard = request->guard;
    struct hg_worker *worker = request->session->worker;
    if (HG_UNLIKELY(request->state == HG_REQUEST_WAITING))
        count_room_wait(request); /* in vain */
    hg_answer_result(request, result);
    if (HG_UNLIKELY(guard != NULL))
        hg_slab_give_back(&worker->tables.guards, guard);
}

static void on_room(struct hg_call *call)
{
    struct hg_request *request = HG_CONTAINER_OF(call, struct hg_request, call);
    struct hg_session *session = request->session;
    count_room_wait(request);
    session->wait = HG_WAIT_NONE;
    hg_gate_room_end(request);
    /* At once: who submits again from here keeps his place in the store's queue. */
    hg_session_run_some(session);
}

/* ---- a data request ---- */

/* The last request under way for the same key. Only a table walk when the bit of the key's hash is
   set, which is rare for distinct keys. */
struct hg_request *hg_dispatch_pending(const struct hg_session *session, uint32_t key_hash)
{
    struct hg_request *found = NULL;
    if ((session->keys_pending >> (key_hash & 63) & 1) == 0)
        return NULL;
    for (struct hg_request *r = session->first; r != NULL; r = r->next)
        if (r->state == HG_REQUEST_SENT && r->call.key_hash == key_hash)
            found = r;
    return found;
}

/* What the frame asks of the store. The spans hold as long as the frame's bytes. */
static void fill_call(struct hg_request *request, const struct hg_frame *frame,
                      struct hg_blob *blob)
{
    struct hg_call *call = &request->call;
    const uint8_t *extras = hg_frame_extras(frame).at;
    call->key = frame->key;
    call->value = hg_frame_value(frame);
    call->blob = blob;
    call->cas = frame->cas;
    call->item_flags = call->expiry = 0;
    switch (call->op) {
    case HG_OP_SET:
    case HG_OP_ADD:
    case HG_OP_REPLACE:
        memcpy(&call->item_flags, extras, 4);
        call->item_flags = be32toh(call->item_flags);
        call->expiry = hg_get_u32(extras + 4);
        break;
    case HG_OP_INCREMENT:
    case HG_OP_DECREMENT:
        call->delta = hg_get_u64(extras);
        call->initial = hg_get_u64(extras + 8);
        call->expiry = hg_get_u32(extras + 16);
        break;
    case HG_OP_TOUCH:
    case HG_OP_GAT:
        call->expiry = hg_get_u32(extras);
        break;
    case HG_OP_FLUSH:
        call->expiry = frame->extras_len == 4 ? hg_get_u32(extras) : 0;
        break;
    default:
        break;
    }
}

static void estimate(struct hg_request *request)
{
    const struct hg_op_row *op = &hg_op_rows[request->call.op];
    const struct hg_front_settings *settings = &request->session->worker->directory->settings;
    bool sized = op->writes && request->call.op != HG_OP_TOUCH && request->call.op != HG_OP_GAT;
    uint64_t bytes = sized ? (uint64_t)request->key_len + request->value_len : 0;
    request->read_units = 0;
    if (op->reads && settings->read_unit_bytes > 0)
        request->read_units = hg_readcost_estimate(&request->lane->read_cost);
    request->write_units = op->writes ? hg_units_of(bytes, settings->write_unit_bytes) : 0;
}

static void append(struct hg_session *session, struct hg_request *request)
{
    request->next = NULL;
    if (session->last != NULL)
        session->last->next = request;
    else
        session->first = request;
    session->last = request;
    session->queue_len++;
}

struct hg_request *hg_dispatch_request(struct hg_session *session, const struct hg_frame *frame,
                                       enum hg_op op)
{
    struct hg_worker *worker = session->worker;
    const struct hg_opcode_row *row = frame->row;
    struct hg_request *request = hg_slab_borrow(&worker->requests);
    if (request == NULL)
        return NULL;
    struct hg_bucket *bucket = session->lane->bucket;
    struct hg_call *call = &request->call;
    memset(&request->call.place, 0, sizeof request->call.place);
    memset(&request->charge, 0, sizeof request->charge);
    call->op = op;
    call->tenant_id = bucket->tenant_id;
    call->identity = session->lane->identity;
    call->row = false;
    call->range = NULL;
    call->prefix = hg_span(bucket->prefix, bucket->prefix_len);
    call->key_hash =
        (uint32_t)XXH3_64bits_withSeed(frame->key.at, frame->key.len, worker->front->hash_seed);
    call->now_us = worker->loop.now_us;
    call->deadline_us = call->now_us + worker->directory->settings.request_deadline_us;
    call->sent_us = 0;
    call->on_done = on_done;
    call->on_room = on_room;
    request->session = session;
    request->row = row;
    request->lane = session->lane;
    request->reply = request->value_blob = request->key = NULL;
    request->table = NULL;
    request->guard = NULL;
    request->start_us = call->now_us;
    request->throttle_us = request->queue_us = request->room_us = 0;
    request->opaque = frame->opaque;
    request->frame_bytes = (uint32_t)frame->total_bytes;
    request->key_len = (uint16_t)frame->key.len;
    request->value_len = (uint32_t)hg_frame_value(frame).len;
    request->features = (uint16_t)session->features;
    request->state = HG_REQUEST_WAITING;
    request->admitted = request->impersonated = false;
    request->bind_passed = false;
    request->seen = 0;
    request->in_backlog = NULL;
    hg_gate_pass_init(&request->pass, request, &hg_gate_request_owner);
    call->ticket = 0;
    call->ticket_of = &request->pass;
    call->route = 0;
    call->quarantine = false;
    request->unmetered = session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNMETERED);
    size_t head =
        frame->key.len < sizeof request->key_head ? frame->key.len : sizeof request->key_head;
    memcpy(request->key_head, frame->key.at, head);
    if (HG_UNLIKELY(row->keyed)) {
        request->key = hg_blob_borrow(&worker->blobs, frame->key.len);
        if (request->key == NULL) {
            hg_slab_give_back(&worker->requests, request);
            return NULL;
        }
        memcpy(request->key->data, frame->key.at, frame->key.len);
        request->key->len = frame->key.len;
    }
    request->lane->users++;
    append(session, request);
    estimate(request);
    return request;
}

/* ---- to the store ---- */

static const struct hg_refusal no_store = {HG_STATUS_EINTERNAL, HG_OUTCOME_FRONT_ERROR,
                                           "the tenant's store could not be opened", HG_SPAN_NONE,
                                           HG_SPAN_NONE};

static const struct hg_refusal no_memory = {HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR,
                                            "no memory is left for the request", HG_SPAN_NONE,
                                            HG_SPAN_NONE};

static inline struct hg_store *store_of(struct hg_worker *worker, const struct hg_bucket *bucket)
{
    struct hg_upstream *upstream = bucket->upstream;
    struct hg_store *store = upstream != NULL ? worker->stores[upstream->slot] : NULL;
    if (HG_UNLIKELY(store == NULL && upstream != NULL))
        store = hg_worker_store(worker, upstream);
    return store;
}

static const struct hg_refusal row_flags = {HG_STATUS_NOT_SUPPORTED, HG_OUTCOME_UNKNOWN,
                                            "the flags 0x48475201 mark rows, which only the table "
                                            "operations write to a key with a zero byte",
                                            HG_SPAN_NONE, HG_SPAN_NONE};

/* A classic operation on a key that may be a row's: by itself among its client's for the key, and
   not at all if there is a row (a get is told by what it finds). */
static enum hg_step submit_guarded(struct hg_session *session, struct hg_request *request,
                                   struct hg_store *store, struct hg_request *before)
{
    struct hg_worker *worker = session->worker;
    if (HG_UNLIKELY(request->call.item_flags == HG_ROWDOC_FLAGS)) {
        hg_answer_refusal(request, &row_flags);
        return HG_STEP_NEXT;
    }
    if (before != NULL) {
        session->waiting = request;
        return HG_STEP_DEFER;
    }
    request->guard = hg_slab_borrow(&worker->tables.guards);
    if (request->guard == NULL) {
        hg_answer_refusal(request, &no_memory);
        return HG_STEP_NEXT;
    }
    request->state = HG_REQUEST_SENT;
    hg_counter_add(&worker->in_flight, 1);
    session->keys_pending |= (uint64_t)1 << (request->call.key_hash & 63);
    struct hg_lane *lane = request->lane;
    struct hg_hotkey_key key = hg_hot_plain_key(request->call.key, request->call.key_hash);
    enum hg_op op = request->call.op;
    hg_rows_guard(worker->tables.rows, store, &worker->blobs, request->guard, &request->call);
    if (hg_dispatch_is_ranked(op))
        hg_hot_tell(worker, lane, (enum hg_hot_type)hg_op_rows[op].hot, &key);
    return HG_STEP_NEXT;
}

/* Hands the request to its store. */
static enum hg_step submit(struct hg_session *session, struct hg_request *request)
{
    struct hg_worker *worker = session->worker;
    bool waits;
    if (HG_UNLIKELY(!hg_gate_enter(session, request, &request->call, &waits)))
        return waits ? HG_STEP_WAIT : HG_STEP_NEXT;
    struct hg_store *store = store_of(worker, request->lane->bucket);
    if (HG_UNLIKELY(store == NULL)) {
        hg_answer_refusal(request, &no_store);
        return HG_STEP_NEXT;
    }
    struct hg_call *call = &request->call;
    /* The store may answer at once, and then the request is gone; the frame and the lane stay. */
    struct hg_lane *lane = request->lane;
    struct hg_hotkey_key key = hg_hot_plain_key(call->key, call->key_hash);
    enum hg_op op = call->op;
    call->now_us = worker->loop.now_us;
    call->identity = lane->identity; /* of the store of now: it may have waited */
    struct hg_request *before = hg_dispatch_pending(session, call->key_hash);
    bool guarded = call->op != HG_OP_GET && memchr(call->key.at, 0, call->key.len) != NULL;
    if (HG_UNLIKELY(guarded || (before != NULL && hg_request_on_rows(before))))
        return submit_guarded(session, request, store, before);
    call->after = before != NULL ? &before->call : NULL;
    request->state = HG_REQUEST_SENT;
    session->barrier = call->op == HG_OP_FLUSH;
    hg_counter_add(&worker->in_flight, 1);
    session->keys_pending |= (uint64_t)1 << (call->key_hash & 63);
    if (HG_LIKELY(hg_dispatch_is_ranked(op)))
        hg_hot_expect(lane, (enum hg_hot_type)hg_op_rows[op].hot, key.hash);
    if (HG_LIKELY(store->ops->submit(store, call) == HG_SUBMIT_TAKEN)) {
        if (HG_LIKELY(hg_dispatch_is_ranked(op)))
            hg_hot_tell(worker, lane, (enum hg_hot_type)hg_op_rows[op].hot, &key);
        return HG_STEP_NEXT;
    }
    request->state = HG_REQUEST_WAITING;
    call->route = 0; /* another may be the right one by then */
    session->barrier = false;
    hg_counter_sub(&worker->in_flight, 1);
    request->follows = call->after != NULL;
    if (session->hung_up && !request->follows) {
        store->ops->cancel(store, call);
        hg_answer_refusal(
            request, &(struct hg_refusal){HG_STATUS_QUEUE_TIMEOUT, HG_OUTCOME_QUEUE_TIMEOUT,
                                          "no connection to the server was free, and the client "
                                          "has stopped sending",
                                          HG_SPAN_NONE, HG_SPAN_NONE});
        return HG_STEP_NEXT;
    }
    request->hold_us = worker->loop.now_us;
    session->waiting = request;
    session->wait = HG_WAIT_ROOM;
    hg_gate_room_begin(request);
    return HG_STEP_WAIT;
}

/* The wait of the last request is over: its frame is there again. */
static enum hg_step resume(struct hg_session *session, const struct hg_frame *frame,
                           struct hg_blob *blob)
{
    struct hg_request *request = session->waiting;
    if (HG_UNLIKELY(session->turning) && session->first != request)
        return HG_STEP_DEFER;
    session->waiting = NULL;
    if (HG_UNLIKELY(!hg_bucket_live(request->lane->bucket))) {
        struct hg_refusal refusal = hg_dispatch_ended(request->lane->bucket);
        hg_answer_refusal(request, &refusal);
        return HG_STEP_NEXT;
    }
    if (HG_LIKELY(request->table == NULL))
        fill_call(request, frame, blob);
    bool waits;
    if (HG_UNLIKELY(!request->admitted) && !hg_held_admit(session, request, &waits))
        return waits ? HG_STEP_WAIT : HG_STEP_NEXT;
    request->admitted = true;
    return request->table != NULL ? hg_table_resume(session, request) : submit(session, request);
}

enum hg_step hg_dispatch_data_limit(struct hg_session *session, const struct hg_frame *frame,
                                    unsigned status)
{
    hg_counter_add(&session->lane->num_rejected, 1);
    return refuse(session, frame, (uint16_t)status, HG_OUTCOME_DATA_LIMIT,
                  hg_status_row((uint16_t)status)->meaning);
}

static enum hg_step refuse_flush(struct hg_session *session, const struct hg_frame *frame)
{
    const struct hg_bucket *bucket = session->lane->bucket;
    bool own = atomic_load_explicit((_Atomic bool *)&bucket->allow_flush, memory_order_relaxed);
    return refuse(session, frame, HG_STATUS_NOT_SUPPORTED, HG_OUTCOME_UNKNOWN,
                  own ? "flush is not allowed here: what others keep in the same place would go "
                        "too (allow_flush: true on the upstream allows it)"
                      : "flush is not allowed: the tenant's allow_flush is false");
}

static bool may_flush(const struct hg_bucket *bucket)
{
    const struct hg_upstream *upstream = bucket->upstream;
    if (!atomic_load_explicit((_Atomic bool *)&bucket->allow_flush, memory_order_relaxed))
        return false;
    return upstream == NULL || upstream->flush_is_private ||
           !atomic_load_explicit((_Atomic bool *)&bucket->shared, memory_order_relaxed) ||
           atomic_load_explicit((_Atomic bool *)&upstream->allow_flush, memory_order_relaxed);
}

static enum hg_step data(struct hg_session *session, const struct hg_frame *frame,
                         struct hg_blob *blob)
{
    const struct hg_opcode_row *row = frame->row;
    struct hg_frameinfo info = {0};
    uint32_t rights;
    if (HG_UNLIKELY(!hg_dispatch_may(session, frame, row->needs, &info, &rights)))
        return HG_STEP_NEXT;
    struct hg_lane *lane = session->lane;
    struct hg_bucket *bucket = lane->bucket;
    unsigned limit = atomic_load_explicit(&bucket->data_limit_status, memory_order_relaxed);
    if (HG_UNLIKELY(limit != 0 && row->ingress))
        return hg_dispatch_data_limit(session, frame, limit);
    if (HG_UNLIKELY(row->op == HG_OP_FLUSH)) {
        if (!may_flush(bucket))
            return refuse_flush(session, frame);
        if (session->first != NULL) {
            count(session, frame, -1);
            return HG_STEP_DEFER;
        }
    }
    struct hg_request *request = hg_dispatch_request(session, frame, (enum hg_op)row->op);
    if (HG_UNLIKELY(request == NULL))
        return hg_dispatch_say(session, frame, &no_memory);
    request->impersonated = info.impersonate;
    if (HG_UNLIKELY(lane->hot_list != NULL) && hg_dispatch_refuse_hot(session, request, frame->key))
        return HG_STEP_NEXT;
    if (HG_UNLIKELY(lane->binds != NULL) && hg_dispatch_refuse_bind(session, request))
        return HG_STEP_NEXT;
    fill_call(request, frame, blob);
    bool waits;
    if (HG_UNLIKELY(!hg_held_admit(session, request, &waits)))
        return waits ? HG_STEP_WAIT : HG_STEP_NEXT;
    request->admitted = true;
    return submit(session, request);
}

enum hg_step hg_dispatch(struct hg_session *session, const struct hg_frame *frame,
                         struct hg_blob *blob)
{
    if (HG_UNLIKELY(session->waiting != NULL))
        return resume(session, frame, blob);
    count(session, frame, 1);
    if (HG_UNLIKELY(session->over_limit)) {
        refuse(session, frame, HG_STATUS_EBUSY, HG_OUTCOME_CONNECTION_LIMIT,
               "the server has as many connections as max_connections allows");
        return HG_STEP_CLOSE;
    }
    const char *why = NULL;
    const struct hg_opcode_row *row = frame->row;
    if (HG_UNLIKELY(!session->logged_in && row != NULL && !row->before_login))
        return refuse(session, frame, HG_STATUS_EACCESS, HG_OUTCOME_DENIED,
                      "not logged in: log in with SASL first");
    uint16_t status = hg_frame_check(frame, session->features, &why);
    if (HG_UNLIKELY(status != HG_STATUS_SUCCESS))
        return refuse(session, frame, status,
                      status == HG_STATUS_UNKNOWN_COMMAND ? HG_OUTCOME_UNKNOWN
                      : status == HG_STATUS_E2BIG         ? HG_OUTCOME_TOO_LARGE
                                                          : HG_OUTCOME_INVALID,
                      why);
    if (HG_LIKELY(row->op_class == HG_OPCODE_CLASS_DATA))
        return data(session, frame, blob);
    if (row->op_class == HG_OPCODE_CLASS_TABLE)
        return hg_table_dispatch(session, frame);
    if (row->op_class == HG_OPCODE_CLASS_SESSION)
        return hg_control(session, frame);
    /* Whether the user may do it depends on the bucket that it speaks of: the process knows. */
    return hg_job_start(session, frame);
}

/* ---- what table.c shares ---- */

enum hg_step hg_dispatch_say(struct hg_session *session, const struct hg_frame *frame,
                             const struct hg_refusal *refusal)
{
    struct hg_reply_of of = reply_of(frame);
    hg_answer_session_refusal(session, &of, refusal);
    return HG_STEP_NEXT;
}

enum hg_step hg_dispatch_defer(struct hg_session *session, const struct hg_frame *frame)
{
    count(session, frame, -1);
    return HG_STEP_DEFER;
}

struct hg_store *hg_dispatch_store(struct hg_worker *worker, const struct hg_bucket *bucket,
                                   struct hg_refusal *ret_why)
{
    if (!hg_bucket_live(bucket)) {
        *ret_why = hg_dispatch_ended(bucket);
        return NULL;
    }
    *ret_why = no_store;
    return store_of(worker, bucket);
}
