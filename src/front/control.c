// control - requests about the connection itself
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "front/answer.h"
#include "front/dispatch.h"
#include "front/job.h"
#include "proto/errmap.h"
#include "proto/hello.h"
#include "proto/status.h"

#define AGENT_MAX 250

struct control {
    struct hg_session *session;
    const struct hg_frame *frame;
    struct hg_reply_of of;
};

static enum hg_step succeed(const struct control *c, struct hg_span value)
{
    hg_answer_session(c->session, &c->of, HG_SPAN_NONE, value, HG_STATUS_SUCCESS);
    return HG_STEP_NEXT;
}

static enum hg_step fail(const struct control *c, uint16_t status, enum hg_outcome outcome,
                         const char *text)
{
    struct hg_refusal refusal = {status, outcome, text, HG_SPAN_NONE, HG_SPAN_NONE};
    hg_answer_session_refusal(c->session, &c->of, &refusal);
    return HG_STEP_NEXT;
}

static enum hg_step on_quit(const struct control *c)
{
    if (c->frame->row->quiet)
        hg_answer_silence(c->session, &c->of, HG_OUTCOME_SESSION);
    else
        succeed(c, HG_SPAN_NONE);
    return HG_STEP_CLOSE;
}

static enum hg_step on_noop(const struct control *c)
{
    return succeed(c, HG_SPAN_NONE);
}

static enum hg_step on_version(const struct control *c)
{
    return succeed(c, hg_span_str(c->session->worker->front->version));
}

static enum hg_step on_hello(const struct control *c)
{
    struct hg_hello hello;
    const char *why = NULL;
    uint8_t value[HG_HELLO_VALUE_MAX];
    uint16_t status = hg_hello_decode(hg_frame_value(c->frame), &hello, &why);
    if (status != HG_STATUS_SUCCESS)
        return fail(c, status, HG_OUTCOME_INVALID, why);
    struct hg_session *session = c->session;
    size_t agent_len = c->frame->key.len < AGENT_MAX ? c->frame->key.len : AGENT_MAX;
    free(session->agent);
    session->agent = agent_len > 0 ? strndup((const char *)c->frame->key.at, agent_len) : NULL;
    session->features = hello.features;
    return succeed(c, hg_span(value, hg_hello_encode(&hello, value)));
}

static enum hg_step on_select_bucket(const struct control *c)
{
    struct hg_session *session = c->session;
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    const struct hg_directory *directory = session->worker->directory;
    struct hg_span name = c->frame->key;
    if (hg_span_is(name, "@no bucket@")) {
        hg_session_select(session, NULL);
        session->chose = true;
        return succeed(c, HG_SPAN_NONE);
    }
    if (!hooks->may_see(hooks->app, directory, session->user, name))
        return fail(c, HG_STATUS_EACCESS, HG_OUTCOME_DENIED, "the user may not use this bucket");
    struct hg_bucket *bucket = hg_directory_bucket(directory, name);
    if (bucket == NULL)
        return fail(c, HG_STATUS_KEY_ENOENT, HG_OUTCOME_MISS, "there is no bucket of this name");
    if (atomic_load(&bucket->state) == HG_BUCKET_DISABLED)
        return fail(c, HG_STATUS_EACCESS, HG_OUTCOME_DISABLED,
                    "the bucket is disabled by its operator");
    if (session->lane != NULL && session->lane->bucket == bucket)
        return succeed(c, HG_SPAN_NONE);
    if (hg_bucket_is_full(bucket))
        return fail(c,
                    session->features & HG_FEATURE_XERROR ? HG_STATUS_RATE_LIMITED_MAX_CONNECTIONS
                                                          : HG_STATUS_EBUSY,
                    HG_OUTCOME_CONNECTION_LIMIT,
                    "the bucket has as many connections as its max_connections allows");
    hg_session_select(session, bucket);
    session->chose = true;
    return succeed(c, HG_SPAN_NONE);
}

static enum hg_step on_list_buckets(const struct control *c)
{
    struct hg_session *session = c->session;
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    const struct hg_directory *directory = session->worker->directory;
    size_t len = 0;
    char *names = malloc(directory->bucket_count * (HG_BUCKET_NAME_MAX + 1) + 1);
    if (names == NULL)
        return fail(c, HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR, "no memory is left");
    for (size_t i = 0; i < directory->bucket_count; i++) {
        const struct hg_bucket *bucket = directory->buckets[i];
        struct hg_span name = hg_span(bucket->name, bucket->name_len);
        if (!hooks->may_see(hooks->app, directory, session->user, name))
            continue;
        if (len > 0)
            names[len++] = ' ';
        memcpy(names + len, name.at, name.len);
        len += name.len;
    }
    enum hg_step step = succeed(c, hg_span(names, len));
    free(names);
    return step;
}

static enum hg_step on_drop_privilege(const struct control *c)
{
    enum hg_privilege privilege;
    if (!hg_privilege_parse(c->frame->key, &privilege))
        return fail(c, HG_STATUS_KEY_ENOENT, HG_OUTCOME_MISS,
                    "no privilege of this name: Read, Write, Stats, Unthrottled, "
                    "BucketThrottleManagement, NodeSupervisor, Unmetered, Impersonate");
    c->session->dropped |= HG_PRIVILEGE_BIT(privilege);
    c->session->privileges &= ~c->session->dropped;
    return succeed(c, HG_SPAN_NONE);
}

static enum hg_step on_error_map(const struct control *c)
{
    unsigned version;
    const char *why = NULL;
    uint16_t status = hg_errmap_decode(hg_frame_value(c->frame), &version, &why);
    if (status != HG_STATUS_SUCCESS)
        return fail(c, status, HG_OUTCOME_INVALID, why);
    char map[HG_ERRMAP_MAX_BYTES];
    return succeed(c, hg_span(map, hg_errmap_encode(version, map, sizeof map)));
}

enum hg_step hg_control(struct hg_session *session, const struct hg_frame *frame)
{
    struct control c = {
        session, frame, {frame->row, frame->opcode, frame->opaque, (uint32_t)frame->total_bytes}};
    switch (frame->row->loud) {
    case HG_OPCODE_QUIT:
        return on_quit(&c);
    case HG_OPCODE_NOOP:
        return on_noop(&c);
    case HG_OPCODE_VERSION:
        return on_version(&c);
    case HG_OPCODE_HELLO:
        return on_hello(&c);
    case HG_OPCODE_SELECT_BUCKET:
        return on_select_bucket(&c);
    case HG_OPCODE_LIST_BUCKETS:
        return on_list_buckets(&c);
    case HG_OPCODE_DROP_PRIVILEGE:
        return on_drop_privilege(&c);
    case HG_OPCODE_GET_ERROR_MAP:
        return on_error_map(&c);
    default:
        return hg_job_start(session, frame); /* SASL */
    }
}
