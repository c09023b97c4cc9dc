// job - requests that the process answers: parking a session and taking it up again
// SPDX-License-Identifier: BSD-3-Clause
#include "front/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/answer.h"
#include "proto/hello.h"
#include "proto/reply.h"
#include "proto/status.h"

static struct hg_span copy_span(uint8_t **at, struct hg_span from)
{
    struct hg_span copy = hg_span(*at, from.len);
    if (from.len > 0)
        memcpy(*at, from.at, from.len);
    *at += from.len;
    return copy;
}

static struct hg_job *new_job(struct hg_session *session, const struct hg_frame *frame)
{
    struct hg_job *job =
        calloc(1, sizeof *job + frame->extras_len + frame->key.len + hg_frame_value(frame).len);
    if (job == NULL)
        return NULL;
    uint8_t *at = job->data;
    job->worker = session->worker;
    job->session = session;
    job->row = frame->row;
    job->opaque = frame->opaque;
    job->frame_bytes = (uint32_t)frame->total_bytes;
    job->features = session->features;
    job->dropped = session->dropped;
    if (session->lane != NULL)
        job->bucket = hg_bucket_ref(session->lane->bucket);
    job->directory = hg_directory_ref(session->worker->directory);
    job->user = session->user;
    job->peer = session->peer;
    if (session->user_name != NULL)
        strncpy(job->user_name, session->user_name, sizeof job->user_name - 1);
    job->extras = copy_span(&at, hg_frame_extras(frame));
    job->key = copy_span(&at, frame->key);
    job->value = copy_span(&at, hg_frame_value(frame));
    return job;
}

/* A login's message may hold a password: the job has the only copy now. */
static void wipe_message(const struct hg_frame *frame)
{
    struct hg_span value = hg_frame_value(frame);
    if ((frame->row->code == HG_OPCODE_SASL_AUTH || frame->row->code == HG_OPCODE_SASL_STEP) &&
        value.len > 0)
        explicit_bzero((uint8_t *)(uintptr_t)value.at, value.len);
}

enum hg_step hg_job_start(struct hg_session *session, const struct hg_frame *frame)
{
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    struct hg_job *job = new_job(session, frame);
    if (job == NULL) {
        struct hg_reply_of of = {frame->row, frame->opcode, frame->opaque,
                                 (uint32_t)frame->total_bytes};
        struct hg_refusal refusal = {HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR,
                                     "no memory is left for the request", HG_SPAN_NONE,
                                     HG_SPAN_NONE};
        hg_answer_session_refusal(session, &of, &refusal);
        return HG_STEP_NEXT;
    }
    wipe_message(frame);
    session->job = job;
    session->wait = HG_WAIT_JOB;
    hooks->on_job(hooks->app, job);
    return HG_STEP_NEXT;
}

static void free_job(struct hg_job *job)
{
    hg_bucket_unref(job->bucket);
    hg_directory_unref(job->directory);
    free(job->body);
    free(job);
}

static enum hg_outcome outcome_of(uint16_t status)
{
    switch (status) {
    case HG_STATUS_AUTH_ERROR:
    case HG_STATUS_EACCESS:
        return HG_OUTCOME_DENIED;
    case HG_STATUS_EINVAL:
        return HG_OUTCOME_INVALID;
    case HG_STATUS_ENOMEM:
    case HG_STATUS_EINTERNAL:
        return HG_OUTCOME_FRONT_ERROR;
    default:
        return HG_OUTCOME_SESSION;
    }
}

static void reply(struct hg_job *job, struct hg_session *session)
{
    struct hg_reply_of of = {job->row, job->row->code, job->opaque, job->frame_bytes};
    struct hg_span body = hg_span(job->body, job->body_len);
    if (job->status != HG_STATUS_SUCCESS && job->status != HG_STATUS_AUTH_CONTINUE) {
        struct hg_refusal refusal = {job->status, outcome_of(job->status),
                                     job->text[0] != '\0' ? job->text : NULL, HG_SPAN_NONE,
                                     HG_SPAN_NONE};
        hg_answer_session_refusal(session, &of, &refusal);
    } else if (job->packets) {
        uint8_t end[HG_FRAME_HEADER_BYTES];
        hg_reply_header(end, HG_MAGIC_REPLY, job->row->code, 0, 0, HG_DATATYPE_RAW, 0, 0,
                        job->opaque, 0);
        hg_answer_session_packets(session, &of, body, HG_OUTCOME_SESSION);
        hg_answer_raw(session, hg_span(end, sizeof end));
    } else {
        hg_answer_session(session, &of, HG_SPAN_NONE, body, job->status);
    }
    if (job->close_after)
        session->closing = true;
}

static void deliver(struct hg_letter *letter, void *receiver)
{
    struct hg_job *job = HG_CONTAINER_OF(letter, struct hg_job, letter);
    struct hg_session *session = job->session;
    (void)receiver;
    if (session != NULL) {
        session->job = NULL;
        session->wait = HG_WAIT_NONE;
        if (job->on_worker != NULL)
            job->on_worker(job, session);
        if (!session->dead)
            reply(job, session);
        hg_session_touch(session);
        hg_session_make_ready(session);
    } else if (job->on_orphan != NULL) {
        job->on_orphan(job);
    }
    free_job(job);
}

void hg_job_answer(struct hg_job *job)
{
    job->letter.deliver = deliver;
    hg_mailbox_post(&job->worker->mailbox, &job->letter);
}

void hg_job_fail(struct hg_job *job, uint16_t status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(job->text, sizeof job->text, fmt, args);
    va_end(args);
    job->status = status;
}

/* Room for so many bytes behind the body; NULL when memory is out (the job has failed then). */
static uint8_t *grow_body(struct hg_job *job, size_t bytes)
{
    if (job->status != HG_STATUS_SUCCESS && job->status != HG_STATUS_AUTH_CONTINUE)
        return NULL;
    if (job->body_len + bytes > job->body_cap) {
        size_t cap = (job->body_len + bytes) * 2;
        char *body = realloc(job->body, cap);
        if (body == NULL) {
            hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left for the answer");
            return NULL;
        }
        job->body = body;
        job->body_cap = cap;
    }
    uint8_t *at = (uint8_t *)job->body + job->body_len;
    job->body_len += bytes;
    return at;
}

void hg_job_stat_bytes(struct hg_job *job, struct hg_span name, struct hg_span value)
{
    job->packets = true;
    uint8_t *at = grow_body(job, HG_FRAME_HEADER_BYTES + name.len + value.len);
    if (at == NULL)
        return;
    hg_reply_header(at, HG_MAGIC_REPLY, job->row->code, (uint16_t)name.len, 0, HG_DATATYPE_RAW, 0,
                    (uint32_t)(name.len + value.len), job->opaque, 0);
    memcpy(at + HG_FRAME_HEADER_BYTES, name.at, name.len);
    if (value.len > 0)
        memcpy(at + HG_FRAME_HEADER_BYTES + name.len, value.at, value.len);
}

void hg_job_stat(struct hg_job *job, const char *name, const char *fmt, ...)
{
    char value[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof value ? (size_t)n : sizeof value - 1;
    hg_job_stat_bytes(job, hg_span_str(name), hg_span(value, len));
}

void hg_job_body(struct hg_job *job, struct hg_span text)
{
    if (text.len == 0)
        return;
    uint8_t *at = grow_body(job, text.len);
    if (at != NULL)
        memcpy(at, text.at, text.len);
}
