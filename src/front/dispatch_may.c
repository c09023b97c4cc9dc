// dispatch_may - whether a request may be carried out for this client, in this bucket
// SPDX-License-Identifier: BSD-3-Clause
#include "front/dispatch_in.h"
#include "proto/hello.h"
#include "proto/status.h"

static void refuse(struct hg_session *session, const struct hg_frame *frame, uint16_t status,
                   enum hg_outcome outcome, const char *text)
{
    hg_dispatch_say(session, frame,
                    &(struct hg_refusal){status, outcome, text, HG_SPAN_NONE, HG_SPAN_NONE});
}

struct hg_refusal hg_dispatch_ended(const struct hg_bucket *bucket)
{
    switch (atomic_load((_Atomic int *)&bucket->state)) {
    case HG_BUCKET_DELETED:
        return (struct hg_refusal){HG_STATUS_NO_BUCKET, HG_OUTCOME_NO_BUCKET,
                                   "the bucket was deleted: select another", HG_SPAN_NONE,
                                   HG_SPAN_NONE};
    case HG_BUCKET_DISABLED:
        return (struct hg_refusal){
            HG_STATUS_EACCESS, HG_OUTCOME_DISABLED, "the bucket is disabled by its operator",
            HG_SPAN_LIT("\"limit\":\"state\",\"state\":\"disabled\""), HG_SPAN_NONE};
    case HG_BUCKET_ORPHAN:
        return (struct hg_refusal){HG_STATUS_BUCKET_PAUSED, HG_OUTCOME_PAUSED,
                                   "the bucket is disabled: its upstream is gone", HG_SPAN_NONE,
                                   HG_SPAN_NONE};
    default: /* also one that has just been resumed: a client that comes again is served */
        return (struct hg_refusal){
            HG_STATUS_BUCKET_PAUSED, HG_OUTCOME_PAUSED,
            "the bucket is paused by its operator: try again later",
            HG_SPAN_LIT("\"limit\":\"state\",\"state\":\"paused\",\"retry_after_ms\":1000"),
            HG_SPAN_NONE};
    }
}

/* An impersonated request: the rights of both. The status to refuse it with, or success. */
static uint16_t impersonate(struct hg_session *session, const struct hg_frameinfo *info,
                            uint32_t needs, uint32_t *ret_rights, const char **ret_why)
{
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    const struct hg_directory *directory = session->worker->directory;
    struct hg_bucket *bucket = session->lane->bucket;
    struct hg_span name = hg_span(bucket->name, bucket->name_len);
    *ret_why = "the privilege Impersonate is needed to run as another user";
    if (!(session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_IMPERSONATE)))
        return HG_STATUS_EACCESS;
    const void *user = hooks->find_user(hooks->app, directory, info->user);
    *ret_why = "the named user may not do this in the selected bucket";
    if (user == NULL)
        return HG_STATUS_EACCESS;
    uint32_t both = session->privileges & hooks->privileges(hooks->app, directory, user, name);
    if (!hg_privileges_hold(both, needs))
        return HG_STATUS_EACCESS;
    *ret_rights = both;
    hg_credit_note_impersonated(session->worker->front->node, &bucket->credit);
    return HG_STATUS_SUCCESS;
}

static void refuse_without_bucket(struct hg_session *session, const struct hg_frame *frame)
{
    if (session->no_place)
        refuse(session, frame,
               session->features & HG_FEATURE_XERROR ? HG_STATUS_RATE_LIMITED_MAX_CONNECTIONS
                                                     : HG_STATUS_EBUSY,
               HG_OUTCOME_CONNECTION_LIMIT,
               "the bucket has as many connections as its max_connections allows");
    else
        refuse(session, frame, HG_STATUS_NO_BUCKET, HG_OUTCOME_NO_BUCKET,
               "no bucket is selected: send SelectBucket first");
}

/* Is there a bucket, and may this client do in it what needs these privileges? If not, it has been
   refused. *ret_rights: what it may do there in all; those of both when it runs as another. */
bool hg_dispatch_may(struct hg_session *session, const struct hg_frame *frame, uint32_t needs,
                     struct hg_frameinfo *ret_info, uint32_t *ret_rights)
{
    if (HG_UNLIKELY(session->lane == NULL)) {
        refuse_without_bucket(session, frame);
        return false;
    }
    struct hg_bucket *bucket = session->lane->bucket;
    if (HG_UNLIKELY(!hg_bucket_live(bucket))) {
        struct hg_refusal refusal = hg_dispatch_ended(bucket);
        refusal.status = hg_answer_plain_status(session->features, refusal.status);
        hg_dispatch_say(session, frame, &refusal);
        return false;
    }
    *ret_rights = session->privileges;
    if (HG_UNLIKELY(!hg_privileges_hold(session->privileges, needs))) {
        refuse(session, frame, HG_STATUS_EACCESS, HG_OUTCOME_DENIED,
               "the user has not the privilege for this operation in the bucket");
        return false;
    }
    if (HG_LIKELY(frame->framing_len == 0))
        return true;
    const char *why = NULL;
    uint16_t status = hg_frameinfo_decode(hg_frame_framing(frame), ret_info, &why);
    if (status != HG_STATUS_SUCCESS) {
        refuse(session, frame, status, HG_OUTCOME_INVALID, why);
        return false;
    }
    if (ret_info->impersonate)
        status = impersonate(session, ret_info, needs, ret_rights, &why);
    if (status != HG_STATUS_SUCCESS)
        refuse(session, frame, status, HG_OUTCOME_DENIED, why);
    return status == HG_STATUS_SUCCESS;
}
