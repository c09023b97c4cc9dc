// answer - from the result of a request to the bytes of its reply, its outcome and its cost
// SPDX-License-Identifier: BSD-3-Clause
#include "front/answer_in.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/probe_point.h"
#include "front/bind.h"
#include "front/gate.h"
#include "front/table.h"
#include "front/trace.h"
#include "proto/frameinfo.h"
#include "proto/hello.h"
#include "proto/jsontext.h"
#include "proto/reply.h"
#include "proto/rowdoc.h"
#include "proto/status.h"

#define HEAD_MAX (HG_FRAME_HEADER_BYTES + HG_FRAMEINFO_USAGE_MAX + 8 + HG_KEY_MAX_BYTES)

static size_t encode_head(uint8_t *to, const struct hg_request *request,
                          const struct hg_answer_parts *parts)
{
    uint8_t magic = HG_MAGIC_REPLY;
    uint16_t key_len = (uint16_t)parts->key.len;
    if (HG_UNLIKELY(parts->framing_len > 0)) {
        magic = HG_MAGIC_REPLY_ALT;
        key_len = hg_reply_key_len_alt(parts->framing_len, (uint8_t)parts->key.len);
    }
    size_t body =
        parts->framing_len + (size_t)parts->extras_len + parts->key.len + parts->value.len;
    hg_reply_header(to, magic, request->row->code, key_len, parts->extras_len, HG_DATATYPE_RAW,
                    parts->status, (uint32_t)body, request->opaque, parts->cas);
    uint8_t *at = to + HG_FRAME_HEADER_BYTES;
    if (HG_UNLIKELY(parts->framing_len > 0)) {
        memcpy(at, parts->framing, parts->framing_len);
        at += parts->framing_len;
    }
    memcpy(at, parts->extras, sizeof parts->extras);
    at += parts->extras_len;
    if (parts->key.len > 0)
        memcpy(at, parts->key.at, parts->key.len);
    return (size_t)(at - to) + parts->key.len;
}

/* The reply straight into the session's output. */
static size_t put_reply(struct hg_request *request, const struct hg_answer_parts *parts)
{
    struct hg_out *out = &request->session->out;
    size_t value_len = parts->value.len;
    if (HG_LIKELY(value_len < HG_OUT_SHARE_MIN)) {
        uint8_t *to = hg_out_reserve(out, HEAD_MAX + value_len);
        size_t head = encode_head(to, request, parts);
        if (value_len > 0)
            memcpy(to + head, parts->value.at, value_len);
        hg_out_commit(out, head + value_len);
        return head + value_len;
    }
    uint8_t *to = hg_out_reserve(out, HEAD_MAX);
    size_t head = encode_head(to, request, parts);
    hg_out_commit(out, head);
    if (parts->blob != NULL)
        hg_out_put_blob(out, parts->blob, parts->value);
    else if (parts->until_turn_end)
        hg_out_put_view(out, parts->value);
    else
        hg_out_put(out, parts->value);
    return head + value_len;
}

/* The reply into a blob of its own, for a request that others must be answered before. */
static size_t keep_reply(struct hg_request *request, const struct hg_answer_parts *parts)
{
    bool share = parts->blob != NULL && parts->value.len >= HG_OUT_SHARE_MIN;
    size_t copied = share ? 0 : parts->value.len;
    struct hg_blob *reply = hg_blob_borrow(&request->session->worker->blobs, HEAD_MAX + copied);
    if (reply == NULL) {
        request->session->out.broken = true;
        return 0;
    }
    reply->len = encode_head(reply->data, request, parts);
    if (share) {
        request->value_blob = hg_blob_ref(parts->blob);
        request->value = parts->value;
    } else if (copied > 0) {
        memcpy(reply->data + reply->len, parts->value.at, copied);
        reply->len += copied;
    }
    request->reply = reply;
    return reply->len + (share ? parts->value.len : 0);
}

static void free_request(struct hg_request *request)
{
    struct hg_worker *worker = request->session->worker;
    if (request->lane != NULL)
        hg_worker_leave_lane(worker, request->lane);
    if (request->key != NULL)
        hg_blob_unref(request->key);
    hg_slab_give_back(&worker->requests, request);
}

static void pop_first(struct hg_session *session)
{
    struct hg_request *request = session->first;
    session->first = request->next;
    if (session->first == NULL)
        session->last = NULL;
    if (--session->queue_len == 0) {
        session->keys_pending = 0;
        session->barrier = session->turning = false;
    }
    free_request(request);
}

/* Sends off what has become first in the queue and is ready. */
static void advance(struct hg_session *session)
{
    while (session->first != NULL && session->first->state == HG_REQUEST_DONE) {
        struct hg_request *request = session->first;
        if (request->reply != NULL) {
            hg_out_put_blob(&session->out, request->reply,
                            hg_span(request->reply->data, request->reply->len));
            hg_blob_unref(request->reply);
        }
        if (request->value_blob != NULL) {
            hg_out_put_blob(&session->out, request->value_blob, request->value);
            hg_blob_unref(request->value_blob);
        }
        pop_first(session);
    }
    if (HG_UNLIKELY(session->paused))
        hg_session_resume(session);
    hg_session_touch(session);
}

/* Never below the guess: after many small replies the next may be large ones. */
static void note_reply_size(struct hg_session *session, size_t bytes)
{
    uint32_t size = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
    if (size < HG_SESSION_REPLY_GUESS)
        size = HG_SESSION_REPLY_GUESS;
    if (size >= session->reply_peak)
        session->reply_peak = size;
    else
        session->reply_peak -= (session->reply_peak - size) / 16;
}

static void log_slow(struct hg_request *request, uint64_t total_us, enum hg_outcome outcome,
                     const char *server)
{
    struct hg_worker *worker = request->session->worker;
    struct hg_slow_entry *entry = &worker->slow[worker->slow_count++ % HG_SLOW_LOG_ENTRIES];
    uint64_t now_us = worker->loop.now_us;
    uint64_t sent_us = request->call.sent_us;
    memset(entry, 0, sizeof *entry);
    entry->wall_s = hg_wall_s();
    entry->total_us = total_us > UINT32_MAX ? UINT32_MAX : (uint32_t)total_us;
    entry->queue_us = (uint32_t)request->queue_us;
    entry->throttle_us = (uint32_t)request->throttle_us;
    entry->backend_us = sent_us > 0 && now_us > sent_us ? (uint32_t)(now_us - sent_us) : 0;
    entry->op = (uint8_t)request->call.op;
    entry->outcome = (uint8_t)outcome;
    entry->key_len = (uint8_t)request->key_len;
    memcpy(entry->bucket, request->lane->bucket->name, sizeof entry->bucket);
    memcpy(entry->key, request->key_head, sizeof entry->key);
    if (server != NULL)
        strncpy(entry->server, server, sizeof entry->server - 1);
}

/* Counts the end of a data request. */
void hg_answer_tell(struct hg_request *request, enum hg_outcome outcome, size_t reply_bytes,
                    const char *server)
{
    struct hg_worker *worker = request->session->worker;
    struct hg_lane *lane = request->lane;
    uint64_t total_us = worker->loop.now_us - request->start_us;
    hg_counter_add(&worker->cmd_total, 1);
    hg_counter_add(&worker->outcomes[outcome], 1);
    hg_counter_add(&lane->requests, 1);
    hg_counter_add(&lane->outcomes[outcome], 1);
    hg_counter_add(&lane->bytes_in, request->frame_bytes);
    hg_counter_add(&lane->bytes_out, reply_bytes);
    hg_hist_record(&worker->latency[request->call.op], total_us, 1);
    uint64_t slow_us = worker->directory->settings.slow_request_us;
    if (HG_UNLIKELY(slow_us > 0 && total_us >= slow_us))
        log_slow(request, total_us, outcome, server);
    uint64_t number;
    if (HG_UNLIKELY(
            hg_trace_wanted(worker->directory->settings.trace_sample, &worker->traced, &number)))
        hg_trace_request(request, outcome, server, number);
    HG_PROBE_POINT(request__done, lane->bucket->name, request->call.op, total_us);
    if (request->state == HG_REQUEST_SENT)
        hg_counter_sub(&worker->in_flight, 1);
    bool answered = outcome <= HG_OUTCOME_STORE_ERROR;
    if (HG_UNLIKELY(request->bind_passed) && answered)
        hg_bind_answered(&request->pass, &request->bind_pass);
    if (HG_LIKELY(request->pass.tickets != 0))
        hg_gate_leave(request, answered);
}

void hg_answer_usage(struct hg_request *request, struct hg_answer_parts *parts)
{
    if (HG_LIKELY((request->features & (HG_FEATURE_TRACING | HG_FEATURE_REPORT_UNIT_USAGE)) == 0))
        return;
    struct hg_frameinfo_usage usage = {
        .server_us = request->session->worker->loop.now_us - request->start_us,
        .throttle_us = request->throttle_us,
        .read_units = request->unmetered ? 0 : request->read_units,
        .write_units = request->unmetered ? 0 : request->write_units,
        .tracing = request->features & HG_FEATURE_TRACING,
        .units = request->features & HG_FEATURE_REPORT_UNIT_USAGE,
    };
    parts->framing_len = (uint8_t)hg_frameinfo_encode(&usage, parts->framing);
}

/* A request that is answered while it waits: its frame is still there, and is dropped. */
static void end_wait(struct hg_request *request)
{
    struct hg_session *session = request->session;
    if (HG_UNLIKELY(request->table != NULL))
        hg_table_cancel(request);
    if (session->waiting != request)
        return;
    session->waiting = NULL;
    session->wait = HG_WAIT_NONE;
    session->skip_bytes = request->frame_bytes;
    hg_session_make_ready(session);
}

void hg_answer_deliver(struct hg_request *request, const struct hg_answer_parts *parts,
                       enum hg_outcome outcome, const char *server)
{
    struct hg_session *session = request->session;
    end_wait(request);
    size_t bytes = 0;
    bool first = session->first == request;
    if (parts != NULL) {
        bytes = first ? put_reply(request, parts) : keep_reply(request, parts);
        note_reply_size(session, bytes);
    }
    hg_answer_tell(request, outcome, bytes, server);
    request->state = HG_REQUEST_DONE;
    if (first) {
        pop_first(session);
        advance(session);
    }
}

/* ---- replies to data requests ---- */

static struct hg_span key_of(const struct hg_request *request)
{
    if (request->key == NULL)
        return HG_SPAN_NONE;
    return hg_span(request->key->data, request->key->len);
}

struct hg_refusal hg_answer_fault_refusal(enum hg_fault fault)
{
    static const struct {
        uint16_t status;
        uint8_t outcome;
        const char *text;
    } rows[] = {
        [HG_FAULT_DOWN] = {HG_STATUS_BACKEND_DOWN, HG_OUTCOME_BACKEND_DOWN,
                           "the server of the key is out"},
        [HG_FAULT_LOST] = {HG_STATUS_BACKEND_TIMEOUT, HG_OUTCOME_BACKEND_LOST,
                           "the connection to the server broke before its answer"},
        [HG_FAULT_TIMEOUT] = {HG_STATUS_BACKEND_TIMEOUT, HG_OUTCOME_BACKEND_TIMEOUT,
                              "the server did not answer in time"},
        [HG_FAULT_QUEUE_TIMEOUT] = {HG_STATUS_QUEUE_TIMEOUT, HG_OUTCOME_QUEUE_TIMEOUT,
                                    "no connection to the server became free in time"},
        [HG_FAULT_QUEUE_FULL] = {HG_STATUS_QUEUE_FULL, HG_OUTCOME_QUEUE_FULL,
                                 "too many requests wait for a connection to the server"},
        [HG_FAULT_DENIED] = {HG_STATUS_EINTERNAL, HG_OUTCOME_STORE_ERROR,
                             "the server refuses the login of the upstream or tenant"},
        [HG_FAULT_KEY_TOO_LONG] = {HG_STATUS_EINVAL, HG_OUTCOME_INVALID,
                                   "the tenant's key prefix and the key together are over 250 "
                                   "bytes"},
        [HG_FAULT_NOT_SUPPORTED] = {HG_STATUS_NOT_SUPPORTED, HG_OUTCOME_UNKNOWN,
                                    "the tenant's store cannot do this operation"},
        [HG_FAULT_MEMORY] = {HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR, "no memory is left"},
        [HG_FAULT_INTERNAL] = {HG_STATUS_EINTERNAL, HG_OUTCOME_STORE_ERROR, "the store failed"},
    };
    return (struct hg_refusal){rows[fault].status, rows[fault].outcome, rows[fault].text,
                               HG_SPAN_NONE, HG_SPAN_NONE};
}

static void count_get(const struct hg_request *request, bool hit)
{
    struct hg_worker *worker = request->session->worker;
    hg_counter_add(hit ? &worker->get_hits : &worker->get_misses, 1);
    hg_counter_add(hit ? &request->lane->get_hits : &request->lane->get_misses, 1);
}

enum hg_outcome hg_answer_outcome(uint16_t status)
{
    switch (status) {
    case HG_STATUS_SUCCESS:
        return HG_OUTCOME_SUCCESS;
    case HG_STATUS_KEY_ENOENT:
        return HG_OUTCOME_MISS;
    case HG_STATUS_KEY_EEXISTS:
    case HG_STATUS_NOT_STORED:
    case HG_STATUS_DELTA_BADVAL:
        return HG_OUTCOME_NOT_DONE;
    case HG_STATUS_E2BIG:
        return HG_OUTCOME_TOO_LARGE;
    case HG_STATUS_EINVAL:
        return HG_OUTCOME_INVALID;
    case HG_STATUS_NOT_SUPPORTED: /* the key holds a row */
        return HG_OUTCOME_UNKNOWN;
    default:
        return HG_OUTCOME_STORE_ERROR;
    }
}

uint16_t hg_answer_plain_status(uint32_t features, uint16_t status)
{
    const uint32_t named = HG_FEATURE_XERROR | HG_FEATURE_NON_BLOCKING_THROTTLING;
    if (HG_LIKELY(status < 0xff00 && status != HG_STATUS_BUCKET_PAUSED))
        return status;
    if ((features & named) != 0)
        return status;
    return status == HG_STATUS_QUEUE_FULL ? HG_STATUS_EBUSY : HG_STATUS_ETMPFAIL;
}

uint16_t hg_answer_visible_status(const struct hg_request *request, uint16_t status)
{
    return hg_answer_plain_status(request->features, status);
}

uint16_t hg_reject_status(const struct hg_bucket *bucket, const struct hg_opcode_row *row,
                          bool *ret_silent)
{
    *ret_silent = false;
    switch (atomic_load_explicit((_Atomic int *)&bucket->reject_status, memory_order_relaxed)) {
    case HG_REJECT_BUSY:
        return HG_STATUS_EBUSY;
    case HG_REJECT_DEGRADE:
        if (row->op == HG_OP_GET || row->op == HG_OP_GAT) {
            *ret_silent = row->quiet;
            return HG_STATUS_KEY_ENOENT;
        }
        if (row->op == HG_OP_SET || row->op == HG_OP_ADD || row->op == HG_OP_REPLACE)
            return HG_STATUS_NOT_STORED;
        return HG_STATUS_ETMPFAIL;
    default:
        return HG_STATUS_ETMPFAIL;
    }
}

void hg_answer_error(struct hg_request *request, uint16_t status, const struct hg_refusal *refusal,
                     const char *server)
{
    uint8_t bytes[HG_REPLY_ERROR_MAX];
    struct hg_answer_parts usage = {0};
    hg_answer_usage(request, &usage);
    struct hg_reply_error error = {
        .opcode = request->row->code,
        .json = request->features & HG_FEATURE_JSON,
        .status = status,
        .opaque = request->opaque,
        .framing = hg_span(usage.framing, usage.framing_len),
        .key = status == HG_STATUS_KEY_ENOENT ? key_of(request) : HG_SPAN_NONE,
        .text = refusal->text != NULL ? hg_span_str(refusal->text) : HG_SPAN_NONE,
        .members = refusal->members,
        .verbatim = refusal->verbatim,
    };
    size_t len = hg_reply_error(bytes, &error);
    struct hg_session *session = request->session;
    end_wait(request);
    bool first = session->first == request;
    if (first) {
        hg_out_put(&session->out, hg_span(bytes, len));
    } else {
        request->reply = hg_blob_borrow(&session->worker->blobs, len);
        if (request->reply != NULL) {
            memcpy(request->reply->data, bytes, len);
            request->reply->len = len;
        } else {
            session->out.broken = true;
        }
    }
    hg_answer_tell(request, refusal->outcome, len, server);
    request->state = HG_REQUEST_DONE;
    if (first) {
        pop_first(session);
        advance(session);
    }
}

void hg_answer_refusal(struct hg_request *request, const struct hg_refusal *refusal)
{
    hg_answer_settle_none(request);
    uint16_t status = refusal->status;
    bool limit = status == HG_STATUS_THROTTLED_TOO_LONG || status == HG_STATUS_HOT_KEY ||
                 status == HG_STATUS_BIND_THROTTLE;
    if (HG_UNLIKELY(request->bind_passed))
        hg_bind_undo(request);
    if (limit && hg_answer_visible_status(request, status) != status) {
        bool silent;
        status = hg_reject_status(request->lane->bucket, request->row, &silent);
        if (silent) {
            hg_answer_deliver(request, NULL, refusal->outcome, NULL);
            return;
        }
    }
    hg_answer_error(request, hg_answer_visible_status(request, status), refusal, NULL);
}

void hg_answer_evicted(struct hg_request *request, const struct hg_refusal *refusal)
{
    static const struct hg_result lost = {.fault = HG_FAULT_LOST};
    hg_answer_settle(request, &lost);
    hg_answer_error(request, hg_answer_visible_status(request, refusal->status), refusal, NULL);
}

/* What the store says, cut to fit. */
static const char *copy_text(char *out, size_t out_bytes, struct hg_span text)
{
    size_t len = text.len < out_bytes ? text.len : out_bytes - 1;
    memcpy(out, text.at, len);
    out[len] = '\0';
    return out;
}

void hg_answer_fault(struct hg_request *request, const struct hg_result *result)
{
    struct hg_refusal refusal = hg_answer_fault_refusal(result->fault);
    bool lookup = request->row->op == HG_OP_GET && request->row->quiet;
    if (lookup && result->fault <= HG_FAULT_QUEUE_FULL && request->lane->bucket->upstream != NULL &&
        atomic_load_explicit(&request->lane->bucket->upstream->miss_on_fault,
                             memory_order_relaxed)) {
        hg_answer_deliver(request, NULL, refusal.outcome, result->server);
        return;
    }
    char text[256];
    if (result->value.len > 0) {
        refusal.text = copy_text(text, sizeof text, result->value);
    } else if (hg_op_rows[request->call.op].writes &&
               (result->fault == HG_FAULT_LOST || result->fault == HG_FAULT_TIMEOUT)) {
        snprintf(text, sizeof text, "%s; it may have been carried out all the same", refusal.text);
        refusal.text = text;
    }
    uint8_t members[256] = "\"server\":\"";
    if (result->server != NULL) {
        size_t len = strlen((char *)members);
        len += hg_jsontext_escape(hg_span_str(result->server), members + len,
                                  sizeof members - len - 1);
        members[len++] = '"';
        refusal.members = hg_span(members, len);
    }
    hg_answer_error(request, hg_answer_visible_status(request, refusal.status), &refusal,
                    result->server);
}

static const struct hg_refusal is_a_row = {
    HG_STATUS_NOT_SUPPORTED, HG_OUTCOME_UNKNOWN,
    "the key holds a row of a table: read it with Table or HBase", HG_SPAN_NONE, HG_SPAN_NONE};

void hg_answer_result(struct hg_request *request, const struct hg_result *result)
{
    hg_answer_settle(request, result);
    if (HG_UNLIKELY(result->fault != HG_FAULT_NONE)) {
        hg_answer_fault(request, result);
        return;
    }
    uint16_t status = result->status;
    enum hg_outcome outcome = hg_answer_outcome(status);
    const struct hg_opcode_row *row = request->row;
    bool reads = row->op == HG_OP_GET || row->op == HG_OP_GAT;
    if (reads && (outcome == HG_OUTCOME_SUCCESS || outcome == HG_OUTCOME_MISS))
        count_get(request, outcome == HG_OUTCOME_SUCCESS);
    if (row->quiet &&
        ((reads && status == HG_STATUS_KEY_ENOENT) || (!reads && status == HG_STATUS_SUCCESS))) {
        hg_answer_deliver(request, NULL, outcome, result->server);
        return;
    }
    if (HG_UNLIKELY(status != HG_STATUS_SUCCESS)) {
        char text[256];
        struct hg_refusal refusal = {status, outcome, NULL, HG_SPAN_NONE, HG_SPAN_NONE};
        if (result->value.len > 0)
            refusal.text = copy_text(text, sizeof text, result->value);
        hg_answer_error(request, status, &refusal, result->server);
        return;
    }
    if (HG_UNLIKELY(reads && hg_rowdoc_is(result->item_flags, result->value))) {
        hg_answer_error(request, HG_STATUS_NOT_SUPPORTED, &is_a_row, result->server);
        return;
    }
    struct hg_answer_parts parts;
    parts.status = HG_STATUS_SUCCESS;
    parts.cas = result->cas;
    parts.key = HG_SPAN_NONE;
    parts.value = HG_SPAN_NONE;
    parts.blob = NULL;
    parts.until_turn_end = result->until_turn_end;
    parts.extras_len = 0;
    parts.framing_len = 0;
    uint8_t counter[8];
    if (reads) {
        hg_put_u32(parts.extras, result->item_flags);
        parts.extras_len = 4;
        parts.value = result->value;
        parts.blob = result->blob;
        parts.key = key_of(request);
    } else if (row->op == HG_OP_INCREMENT || row->op == HG_OP_DECREMENT) {
        hg_put_u64(counter, result->counter);
        parts.value = hg_span(counter, sizeof counter);
    }
    hg_answer_usage(request, &parts);
    hg_answer_deliver(request, &parts, outcome, result->server);
}
