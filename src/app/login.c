// login - SASL for the connections: mechanisms, dialogues, and the threads that check passwords
// SPDX-License-Identifier: BSD-3-Clause
#include "app/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/login_own.h"
#include "front/worker.h"
#include "proto/status.h"

static struct hg_login *new_login(struct hg_logins *logins, enum hg_mechanism mechanism)
{
    struct hg_login *login = calloc(1, sizeof *login);
    if (login == NULL)
        return NULL;
    hg_list_init(&login->node);
    login->logins = logins;
    login->refs = 1;
    login->ended = true; /* until it is started */
    login->mechanism = mechanism;
    login->dialogue = hg_dialogue_new(logins->gsasl, mechanism);
    if (login->dialogue == NULL) {
        free(login);
        return NULL;
    }
    return login;
}

/* The session has no login any more. */
static void drop_login(struct hg_session *session)
{
    struct hg_login *login = hg_session_login(session);
    if (login == NULL)
        return;
    hg_session_set_login(session, NULL);
    hg_login_unref(login);
}

/* ---- the end of a step, on the worker's thread ---- */

/* The directory may have changed since: the user must still be there, with the same secret. */
static void log_in(struct hg_login *login, struct hg_job *job, struct hg_session *session)
{
    struct hg_logins *logins = login->logins;
    const struct hg_user *user =
        hg_dialogue_user(login->dialogue, logins->users(job->worker->directory));
    if (user == NULL) {
        hg_login_end(login, &logins->stats.failed);
        hg_job_fail(job, HG_STATUS_AUTH_ERROR, HG_LOGIN_FAILED_TEXT);
        return;
    }
    hg_login_end(login, &logins->stats.succeeded);
    hg_session_log_in(session, user, hg_user_name(user));
    hg_dialogue_free(login->dialogue);
    login->dialogue = NULL;
}

static void on_worker(struct hg_job *job, struct hg_session *session)
{
    struct hg_login *login = hg_session_login(session);
    if (job->status == HG_STATUS_SUCCESS && login != NULL)
        log_in(login, job, session);
    if (job->status == HG_STATUS_SUCCESS)
        return;
    if (job->status != HG_STATUS_EBUSY)
        hg_session_log_out(session);
    if (job->status != HG_STATUS_AUTH_CONTINUE)
        drop_login(session);
}

/* ---- jobs, on the worker's thread ---- */

static void answer_failure(struct hg_job *job, const char *text)
{
    hg_job_fail(job, HG_STATUS_AUTH_ERROR, "%s", text);
    hg_login_wipe(job);
    job->on_worker = on_worker;
    hg_job_answer(job);
}

static void submit(struct hg_login *login, struct hg_job *job, bool first)
{
    job->on_worker = on_worker;
    if (hg_login_enqueue(login, job, first))
        return;
    job->on_worker = NULL;
    hg_login_wipe(job);
    hg_job_fail(job, HG_STATUS_EBUSY, "too many logins wait: try again");
    if (first)
        drop_login(job->session);
    hg_job_answer(job);
}

static void on_list(struct hg_logins *logins, struct hg_job *job)
{
    char list[HG_MECHANISMS_TEXT];
    size_t len = hg_mechanisms_list(logins->users(job->directory), list);
    hg_job_body(job, hg_span(list, len));
    hg_job_answer(job);
}

static void on_auth(struct hg_logins *logins, struct hg_job *job)
{
    const struct hg_users *users = logins->users(job->directory);
    enum hg_mechanism mechanism;
    char list[HG_MECHANISMS_TEXT], text[HG_MECHANISMS_TEXT + 64];
    drop_login(job->session);
    if (hg_mechanisms_list(users, list) == 0) {
        answer_failure(job, "no users are configured");
        return;
    }
    if (!hg_mechanism_parse(job->key, &mechanism) || !hg_mechanism_is_served(users, mechanism)) {
        snprintf(text, sizeof text, "the mechanism is not served (accepted: %s)", list);
        answer_failure(job, text);
        return;
    }
    if (job->value.len > HG_LOGIN_MESSAGE_MAX) {
        answer_failure(job, "the login message is too long (accepted: 16384 bytes)");
        return;
    }
    struct hg_login *login = new_login(logins, mechanism);
    if (login == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left for the login");
        hg_job_answer(job);
        return;
    }
    hg_session_set_login(job->session, login);
    submit(login, job, true);
}

static void on_step(struct hg_job *job)
{
    struct hg_login *login = hg_session_login(job->session);
    enum hg_mechanism mechanism = HG_MECHANISMS;
    bool same =
        hg_mechanism_parse(job->key, &mechanism) && login != NULL && login->mechanism == mechanism;
    bool over = login != NULL && login->dialogue == NULL;
    if (over && same && job->value.len == 0) {
        hg_job_answer(job); /* says yes to the server's proof */
    } else if (login == NULL || over) {
        /* Nothing was begun, so no identity is lost. */
        hg_login_wipe(job);
        hg_job_fail(job, HG_STATUS_AUTH_ERROR, "no login is under way: begin with SaslAuth");
        hg_job_answer(job);
    } else if (!same || job->value.len > HG_LOGIN_MESSAGE_MAX) {
        hg_login_end(login, &login->logins->stats.failed);
        answer_failure(job, HG_LOGIN_FAILED_TEXT);
    } else {
        submit(login, job, false);
    }
}

void hg_logins_on_job(struct hg_logins *logins, struct hg_job *job)
{
    switch (job->row->code) {
    case HG_OPCODE_SASL_LIST:
        on_list(logins, job);
        break;
    case HG_OPCODE_SASL_AUTH:
        on_auth(logins, job);
        break;
    default:
        on_step(job);
    }
}

void hg_logins_on_gone(void *arg)
{
    struct hg_login *login = arg;
    hg_login_withdraw(login);
    hg_login_unref(login);
}
