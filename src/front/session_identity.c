// session_identity - who a connection is, which bucket it has selected, and what it may do
// SPDX-License-Identifier: BSD-3-Clause
//
// All follows from the user and the bucket: a new directory, a login, a selection work the
// privileges out anew. What the client has given away (DropPrivilege) stays away until a login.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "front/session.h"

static void use_lane(struct hg_session *session, struct hg_bucket *bucket)
{
    struct hg_worker *worker = session->worker;
    struct hg_lane *old = session->lane;
    session->lane = NULL;
    if (bucket != NULL) {
        session->lane = &bucket->lanes[worker->index];
        hg_worker_use_lane(worker, session->lane);
        atomic_fetch_add_explicit(&bucket->connections, 1, memory_order_relaxed);
        hg_credit_join(&bucket->credit);
    }
    if (old != NULL) {
        atomic_fetch_sub_explicit(&old->bucket->connections, 1, memory_order_relaxed);
        hg_credit_leave(&old->bucket->credit);
        hg_worker_leave_lane(worker, old);
    }
}

static void renew_privileges(struct hg_session *session)
{
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    struct hg_span name = HG_SPAN_NONE;
    if (session->lane != NULL)
        name = hg_span(session->lane->bucket->name, session->lane->bucket->name_len);
    session->privileges =
        hooks->privileges(hooks->app, session->worker->directory, session->user, name) &
        ~session->dropped;
}

void hg_session_select(struct hg_session *session, struct hg_bucket *bucket)
{
    bool was_ready = !hg_list_empty(&session->ready);
    hg_list_remove(&session->ready);
    use_lane(session, bucket);
    session->no_place = false;
    if (session->dead)
        return;
    renew_privileges(session);
    if (was_ready)
        hg_session_make_ready(session);
}

/* Selects a bucket that the client did not ask for, if it has a place left; else none, and the
   client is told so when it wants something of it. */
static void start_in(struct hg_session *session, struct hg_bucket *bucket)
{
    bool is_in = session->lane != NULL && session->lane->bucket == bucket;
    bool full = bucket != NULL && !is_in && hg_bucket_is_full(bucket);
    hg_session_select(session, full ? NULL : bucket);
    session->no_place = full;
    session->chose = false;
}

static void start_anonymous(struct hg_session *session)
{
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    const struct hg_directory *directory = session->worker->directory;
    struct hg_span name = hooks->anonymous_bucket(hooks->app, directory);
    start_in(session, name.len > 0 ? hg_directory_bucket(directory, name) : NULL);
}

/* The record of the selected bucket has been replaced by one of its name. */
static void follow_bucket(struct hg_session *session)
{
    const struct hg_bucket *old = session->lane->bucket;
    struct hg_bucket *next =
        hg_directory_bucket(session->worker->directory, hg_span(old->name, old->name_len));
    if (next != NULL)
        hg_session_select(session, next);
}

void hg_session_adopt(struct hg_session *session)
{
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    const struct hg_directory *directory = session->worker->directory;
    if (session->user_name != NULL) {
        struct hg_span name = hg_span_str(session->user_name);
        if (hooks->revoked(hooks->app, directory, session->user)) {
            hg_session_close(session);
            return;
        }
        session->user = hooks->find_user(hooks->app, directory, name);
    } else if (session->lane == NULL && !session->chose) {
        start_anonymous(session);
    }
    if (!directory->settings.login_required)
        session->logged_in = true;
    else if (session->user_name == NULL)
        session->logged_in = false;
    if (session->lane != NULL && atomic_load(&session->lane->bucket->moved))
        follow_bucket(session);
    renew_privileges(session);
}

void hg_session_log_in(struct hg_session *session, const void *user, const char *name)
{
    char *copy = strdup(name);
    if (copy == NULL) {
        hg_session_close(session);
        return;
    }
    free(session->user_name);
    session->user_name = copy;
    session->party_by = HG_FAIR_BY_TENANT; /* to be worked out anew */
    session->user = user;
    session->logged_in = true;
    session->dropped = 0;
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    const struct hg_directory *directory = session->worker->directory;
    struct hg_bucket *same = hg_directory_bucket(directory, hg_span_str(name));
    if (same != NULL && !hooks->may_see(hooks->app, directory, user, hg_span_str(name)))
        same = NULL;
    start_in(session, same);
}

void hg_session_present(struct hg_session *session, enum hg_client_user user)
{
    struct hg_front_hooks *hooks = &session->worker->front->hooks;
    char name[HG_TLS_NAME_BYTES], text[HG_ADDR_TEXT], shown[4 * HG_TLS_NAME_BYTES];
    bool named = user != HG_CLIENT_USER_NONE && hg_tls_peer_name(session->tls, name);
    if (user == HG_CLIENT_USER_NONE || (!named && user == HG_CLIENT_USER_OPTIONAL))
        return;
    const void *found = NULL;
    if (named)
        found = hooks->find_user(hooks->app, session->worker->directory, hg_span_str(name));
    if (found != NULL) {
        hg_session_log_in(session, found, name);
        return;
    }
    hg_counter_add(&session->worker->tls_unknown_users, 1);
    bool closed = user == HG_CLIENT_USER_REQUIRED;
    hg_log_warn("peer=%s name=\"%s\" msg=\"the client's certificate names no user: %s\"",
                hg_addr_text(&session->peer, text),
                named ? hg_escape(shown, sizeof shown, hg_span_str(name)) : "",
                closed ? "closed" : "it stays anonymous");
    if (closed)
        hg_session_close(session);
}

void hg_session_log_out(struct hg_session *session)
{
    if (session->user_name == NULL)
        return;
    free(session->user_name);
    session->user_name = NULL;
    session->party_by = HG_FAIR_BY_TENANT;
    session->user = NULL;
    session->logged_in = !session->worker->directory->settings.login_required;
    start_anonymous(session);
}

void *hg_session_login(const struct hg_session *session)
{
    return session->login;
}

void hg_session_set_login(struct hg_session *session, void *login)
{
    session->login = login;
}

void hg_session_set_backup(struct hg_session *session, uint64_t id)
{
    session->backup = id;
}
