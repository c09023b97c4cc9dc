// answer_session - replies to what the front end itself answers, or refuses as no request
// SPDX-License-Identifier: BSD-3-Clause
#include <assert.h>
#include <string.h>

#include "front/answer.h"
#include "front/trace.h"
#include "proto/hello.h"
#include "proto/reply.h"

static void count_session(struct hg_session *session, const struct hg_reply_of *of,
                          enum hg_outcome outcome, size_t reply_bytes)
{
    struct hg_worker *worker = session->worker;
    hg_counter_add(&worker->cmd_total, 1);
    hg_counter_add(&worker->outcomes[outcome], 1);
    uint64_t number;
    bool traced =
        outcome != HG_OUTCOME_SESSION &&
        hg_trace_wanted(worker->directory->settings.trace_sample, &worker->traced, &number);
    if (HG_UNLIKELY(traced))
        hg_trace_refused(session, of->row, outcome, number);
    if (session->lane != NULL) {
        hg_counter_add(&session->lane->requests, 1);
        hg_counter_add(&session->lane->outcomes[outcome], 1);
        hg_counter_add(&session->lane->bytes_in, of->frame_bytes);
        hg_counter_add(&session->lane->bytes_out, reply_bytes);
    }
}

/* Bytes that are a reply: sent at once, or behind the requests under way. */
static void put_in_order(struct hg_session *session, struct hg_span head, struct hg_span tail)
{
    if (session->first == NULL) {
        hg_out_put(&session->out, head);
        hg_out_put(&session->out, tail);
        hg_session_touch(session);
        return;
    }
    struct hg_request *request = hg_slab_borrow(&session->worker->requests);
    struct hg_blob *reply = hg_blob_borrow(&session->worker->blobs, head.len + tail.len);
    if (request == NULL || reply == NULL) {
        session->out.broken = true;
        hg_blob_unref(reply);
        if (request != NULL)
            hg_slab_give_back(&session->worker->requests, request);
        return;
    }
    memset(request, 0, sizeof *request);
    if (head.len > 0)
        memcpy(reply->data, head.at, head.len);
    if (tail.len > 0)
        memcpy(reply->data + head.len, tail.at, tail.len);
    reply->len = head.len + tail.len;
    request->session = session;
    request->reply = reply;
    request->state = HG_REQUEST_DONE;
    session->last->next = request;
    session->last = request;
    session->queue_len++;
}

void hg_answer_session(struct hg_session *session, const struct hg_reply_of *of,
                       struct hg_span extras, struct hg_span value, uint16_t status)
{
    uint8_t head[HG_FRAME_HEADER_BYTES + 32];
    assert(extras.len <= 32);
    hg_reply_header(head, HG_MAGIC_REPLY, of->opcode, 0, (uint8_t)extras.len, HG_DATATYPE_RAW,
                    status, (uint32_t)(extras.len + value.len), of->opaque, 0);
    if (extras.len > 0)
        memcpy(head + HG_FRAME_HEADER_BYTES, extras.at, extras.len);
    count_session(session, of, HG_OUTCOME_SESSION, HG_FRAME_HEADER_BYTES + extras.len + value.len);
    put_in_order(session, hg_span(head, HG_FRAME_HEADER_BYTES + extras.len), value);
}

void hg_answer_session_refusal(struct hg_session *session, const struct hg_reply_of *of,
                               const struct hg_refusal *refusal)
{
    uint8_t bytes[HG_REPLY_ERROR_MAX];
    struct hg_reply_error error = {
        .opcode = of->opcode,
        .json = session->features & HG_FEATURE_JSON,
        .status = refusal->status,
        .opaque = of->opaque,
        .text = refusal->text != NULL ? hg_span_str(refusal->text) : HG_SPAN_NONE,
        .members = refusal->members,
        .verbatim = refusal->verbatim,
    };
    size_t len = hg_reply_error(bytes, &error);
    count_session(session, of, refusal->outcome, len);
    put_in_order(session, hg_span(bytes, len), HG_SPAN_NONE);
}

void hg_answer_session_packets(struct hg_session *session, const struct hg_reply_of *of,
                               struct hg_span packets, enum hg_outcome outcome)
{
    count_session(session, of, outcome, packets.len);
    put_in_order(session, packets, HG_SPAN_NONE);
}

void hg_answer_raw(struct hg_session *session, struct hg_span bytes)
{
    put_in_order(session, bytes, HG_SPAN_NONE);
}

void hg_answer_silence(struct hg_session *session, const struct hg_reply_of *of,
                       enum hg_outcome outcome)
{
    count_session(session, of, outcome, 0);
}
