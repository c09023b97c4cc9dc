// hooks - what the client side asks of the process
// SPDX-License-Identifier: BSD-3-Clause
#include "app/login.h"
#include "app/process.h"
#include "proto/status.h"

const struct hg_users *hg_users_of(const struct hg_directory *directory)
{
    return ((const struct hg_users_ref *)directory->users)->users;
}

static uint32_t privileges(void *app, const struct hg_directory *directory, const void *user,
                           struct hg_span bucket)
{
    (void)app;
    return hg_users_privileges(hg_users_of(directory), user, bucket);
}

static bool may_see(void *app, const struct hg_directory *directory, const void *user,
                    struct hg_span bucket)
{
    (void)app;
    return hg_users_may_see(hg_users_of(directory), user, bucket);
}

static const void *find_user(void *app, const struct hg_directory *directory, struct hg_span name)
{
    (void)app;
    return hg_users_find(hg_users_of(directory), name);
}

static bool revoked(void *app, const struct hg_directory *now, const void *user_before)
{
    (void)app;
    return hg_users_is_revoked(hg_users_of(now), user_before);
}

static struct hg_span anonymous_bucket(void *app, const struct hg_directory *directory)
{
    (void)app;
    const char *name = hg_users_anonymous_bucket(hg_users_of(directory));
    return name != NULL ? hg_span_str(name) : HG_SPAN_NONE;
}

static void on_login_gone(void *app, void *login)
{
    (void)app;
    hg_logins_on_gone(login);
}

/* ---- jobs ---- */

static void on_admin_letter(struct hg_letter *letter, void *receiver)
{
    hg_admin_on_job(receiver, HG_CONTAINER_OF(letter, struct hg_job, letter));
}

static void on_stat_letter(struct hg_letter *letter, void *receiver)
{
    hg_stats_on_job(receiver, HG_CONTAINER_OF(letter, struct hg_job, letter));
}

static bool begins_with(struct hg_span text, const char *with)
{
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.at, with, len) == 0;
}

/* `stat where KEY`: asked of the worker's own instance, which has the ring. */
static void answer_where(struct hg_job *job)
{
    struct hg_span key = hg_span(job->key.at + 6, job->key.len - 6);
    struct hg_store *store = NULL;
    if (job->bucket == NULL) {
        hg_job_fail(job, HG_STATUS_NO_BUCKET, "no bucket is selected: send SelectBucket first");
    } else if (key.len == 0 || key.len > HG_KEY_MAX_BYTES) {
        hg_job_fail(job, HG_STATUS_EINVAL, "where takes a key of 1 to %d bytes", HG_KEY_MAX_BYTES);
    } else {
        struct hg_span prefix = hg_span(job->bucket->prefix, job->bucket->prefix_len);
        if (job->bucket->upstream != NULL)
            store = hg_worker_store(job->worker, job->bucket->upstream);
        if (store == NULL)
            hg_job_fail(job, HG_STATUS_EINTERNAL, "the store of the bucket could not be opened");
        else
            hg_job_stat_bytes(job, key, hg_span_str(store->ops->where(store, prefix, key)));
    }
    hg_job_answer(job);
}

static void on_job(void *app, struct hg_job *job)
{
    struct hg_process *process = app;
    switch (job->row->code) {
    case HG_OPCODE_SASL_LIST:
    case HG_OPCODE_SASL_AUTH:
    case HG_OPCODE_SASL_STEP:
        hg_logins_on_job(process->logins, job);
        return;
    case HG_OPCODE_STAT:
        if (begins_with(job->key, "where ")) {
            answer_where(job);
            return;
        }
        job->letter.deliver = on_stat_letter;
        break;
    case HG_OPCODE_GET_CMD_TIMER:
        job->letter.deliver = on_stat_letter;
        break;
    default:
        job->letter.deliver = on_admin_letter;
        break;
    }
    hg_mailbox_post(&process->house, &job->letter);
}

void hg_hooks_init(struct hg_process *process)
{
    process->front.hooks = (struct hg_front_hooks){
        .app = process,
        .on_job = on_job,
        .on_login_gone = on_login_gone,
        .on_backup_gone = hg_backup_on_gone,
        .privileges = privileges,
        .may_see = may_see,
        .find_user = find_user,
        .revoked = revoked,
        .anonymous_bucket = anonymous_bucket,
    };
}
