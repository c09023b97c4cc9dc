// login_helpers - the threads that carry out the steps of logins, and the queues in front of them
// SPDX-License-Identifier: BSD-3-Clause
#include "app/login_own.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/status.h"

static void count(hg_counter *counter)
{
    hg_counter_add(counter, 1);
}

static void lock(struct hg_logins *logins)
{
    pthread_mutex_lock(&logins->mutex);
}

static void unlock(struct hg_logins *logins)
{
    pthread_mutex_unlock(&logins->mutex);
}

/* ---- logins ---- */

void hg_login_end(struct hg_login *login, hg_counter *how)
{
    lock(login->logins);
    if (!login->ended)
        count(how);
    login->ended = true;
    unlock(login->logins);
}

void hg_login_unref(struct hg_login *login)
{
    lock(login->logins);
    bool last = --login->refs == 0;
    unlock(login->logins);
    if (!last)
        return;
    hg_login_end(login, &login->logins->stats.cancelled);
    hg_dialogue_free(login->dialogue);
    free(login);
}

void hg_login_wipe(struct hg_job *job)
{
    if (job->value.len > 0)
        explicit_bzero((uint8_t *)(uintptr_t)job->value.at, job->value.len);
}

/* An address for the guard. The 2^64 addresses of one IPv6 network count as one, and so do all
   peers of unix sockets. */
static uint64_t address_of(const struct hg_logins *logins, const struct hg_addr *peer)
{
    uint8_t bytes[9] = {0};
    if (peer->sa.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&peer->sa;
        bytes[0] = 4;
        memcpy(bytes + 1, &v4->sin_addr, 4);
    } else if (peer->sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&peer->sa;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        bytes[0] = mapped ? 4 : 6;
        memcpy(bytes + 1, v6->sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 8);
    }
    return XXH3_64bits_withSecret(bytes, sizeof bytes, logins->hash_key, sizeof logins->hash_key);
}

/* ---- helpers ---- */

static void log_failure(const struct hg_login *login, const struct hg_job *job)
{
    char peer[HG_ADDR_TEXT], name[4 * HG_USERS_NAME_MAX + 1];
    hg_escape(name, sizeof name, hg_span_str(hg_dialogue_name(login->dialogue)));
    /* What is typed as a name may be a password: only names that exist are written. */
    bool known = hg_dialogue_knows_user(login->dialogue);
    hg_log_warn("peer=%s mechanism=%s user=\"%s\" msg=\"login failed\"",
                hg_addr_text(&job->peer, peer), hg_mechanism_name(login->mechanism),
                known ? name : "(unknown)");
}

/* Carries out one step and answers. The job's reference of the login goes with it. */
static void carry_out(struct hg_login *login)
{
    struct hg_logins *logins = login->logins;
    struct hg_job *job = login->job;
    char *reply;
    size_t len;
    enum hg_dialogue_result result =
        hg_dialogue_step(login->dialogue, logins->users(job->directory), job->value, &reply, &len);
    hg_login_wipe(job);
    switch (result) {
    case HG_DIALOGUE_MORE:
        job->status = HG_STATUS_AUTH_CONTINUE;
        break;
    case HG_DIALOGUE_OK:
        job->status = HG_STATUS_SUCCESS;
        break;
    case HG_DIALOGUE_FAILED:
        hg_login_end(login, &logins->stats.failed);
        log_failure(login, job);
        hg_job_fail(job, HG_STATUS_AUTH_ERROR, HG_LOGIN_FAILED_TEXT);
        break;
    }
    if (result != HG_DIALOGUE_MORE) {
        uint64_t address = address_of(logins, &job->peer);
        lock(logins);
        hg_loginguard_tell(&logins->guard, address, result == HG_DIALOGUE_OK, hg_now_us());
        unlock(logins);
    }
    if (reply != NULL)
        hg_job_body(job, hg_span(reply, len));
    free(reply);
    login->job = NULL;
    login->asked = false;
    hg_login_unref(login);
    hg_job_answer(job);
}

static void refuse(struct hg_login *login, hg_counter *how, const char *text)
{
    struct hg_job *job = login->job;
    hg_login_end(login, how);
    hg_login_wipe(job);
    hg_job_fail(job, HG_STATUS_EBUSY, "%s", text);
    login->job = NULL;
    hg_login_unref(login);
    hg_job_answer(job);
}

/* Out of the queue that it is in. Under the mutex. */
static void take_out(struct hg_login *login)
{
    struct hg_login_stats *stats = &login->logins->stats;
    hg_list_remove(&login->node);
    hg_counter_sub(login->delayed ? &stats->delayed : &stats->waiting, 1);
    login->delayed = false;
}

static void put_ready(struct hg_login *login)
{
    hg_list_append(&login->logins->ready, &login->node);
    count(&login->logins->stats.waiting);
}

static void put_delayed(struct hg_logins *logins, struct hg_login *login, uint64_t due_us)
{
    login->due_us = due_us;
    login->delayed = true;
    struct hg_list *before = &logins->delayed;
    while (before->prev != &logins->delayed &&
           HG_CONTAINER_OF(before->prev, struct hg_login, node)->due_us > due_us)
        before = before->prev;
    hg_list_put_before(before, &login->node);
    count(&logins->stats.delayed);
    count(&logins->stats.slowed);
}

enum verdict { NOW, LATER, NEVER };

/* The guard's word on an attempt that is about to be made. Under the mutex. */
static enum verdict judge(struct hg_logins *logins, struct hg_login *login)
{
    uint64_t wait_us, now_us = hg_now_us();
    if (login->asked || !hg_dialogue_is_at_proof(login->dialogue))
        return NOW;
    login->asked = true;
    uint64_t most =
        logins->queue_max < HG_LOGIN_DELAYED_MAX ? logins->queue_max : HG_LOGIN_DELAYED_MAX;
    uint64_t address = address_of(logins, &login->job->peer);
    if (!hg_loginguard_ask(&logins->guard, address, now_us, &wait_us))
        return NEVER;
    if (wait_us == 0)
        return NOW;
    if (hg_counter_get(&logins->stats.delayed) >= most)
        return NEVER;
    put_delayed(logins, login, now_us + wait_us);
    return LATER;
}

/* Delayed attempts whose time has come go behind those that are ready. */
static void release_due(struct hg_logins *logins)
{
    uint64_t now_us = hg_now_us();
    while (!hg_list_empty(&logins->delayed)) {
        struct hg_login *login = HG_CONTAINER_OF(logins->delayed.next, struct hg_login, node);
        if (login->due_us > now_us)
            return;
        take_out(login);
        put_ready(login);
    }
}

/* Under the mutex, until something may have become ready. */
static void wait_for_work(struct hg_logins *logins)
{
    if (hg_list_empty(&logins->delayed)) {
        pthread_cond_wait(&logins->work, &logins->mutex);
        return;
    }
    uint64_t due_us = HG_CONTAINER_OF(logins->delayed.next, struct hg_login, node)->due_us;
    struct timespec at = {(time_t)(due_us / 1000000), (long)(due_us % 1000000) * 1000};
    pthread_cond_timedwait(&logins->work, &logins->mutex, &at);
}

static void *help(void *arg)
{
    struct hg_logins *logins = arg;
    lock(logins);
    while (!logins->stopping) {
        release_due(logins);
        struct hg_list *node = hg_list_first(&logins->ready);
        if (node == NULL) {
            wait_for_work(logins);
            continue;
        }
        struct hg_login *login = HG_CONTAINER_OF(node, struct hg_login, node);
        take_out(login);
        enum verdict verdict = judge(logins, login);
        if (verdict == LATER)
            continue;
        unlock(logins);
        if (verdict == NOW)
            carry_out(login);
        else
            refuse(login, &logins->stats.refused_slowed,
                   "too many logins from this address failed: try again in some seconds");
        lock(logins);
    }
    unlock(logins);
    return NULL;
}

/* ---- the workers' side ---- */

bool hg_login_enqueue(struct hg_login *login, struct hg_job *job, bool first)
{
    struct hg_logins *logins = login->logins;
    lock(logins);
    bool room = !logins->stopping && hg_counter_get(&logins->stats.waiting) < logins->queue_max;
    if (room) {
        login->job = job;
        login->refs++;
        if (first) {
            login->ended = false;
            count(&logins->stats.started);
        }
        put_ready(login);
        pthread_cond_signal(&logins->work);
    } else {
        count(&logins->stats.refused_full);
    }
    unlock(logins);
    return room;
}

void hg_login_withdraw(struct hg_login *login)
{
    struct hg_logins *logins = login->logins;
    lock(logins);
    bool waits = !hg_list_empty(&login->node);
    if (waits)
        take_out(login);
    unlock(logins);
    if (waits)
        refuse(login, &logins->stats.cancelled, "the connection has gone");
}

/* ---- beginning and end ---- */

static int start_threads(struct hg_logins *logins, unsigned threads)
{
    sigset_t all, before;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (rc == 0 && logins->thread_count < threads) {
        rc = -pthread_create(&logins->threads[logins->thread_count], NULL, help, logins);
        if (rc == 0)
            logins->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int hg_logins_new(const struct hg_logins_options *options, struct hg_logins **ret)
{
    struct hg_logins *logins =
        calloc(1, sizeof *logins + options->threads * sizeof logins->threads[0]);
    if (logins == NULL)
        return -ENOMEM;
    int rc = hg_dialogue_library(&logins->gsasl);
    if (rc != 0) {
        free(logins);
        return rc;
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&logins->mutex, NULL);
    pthread_cond_init(&logins->work, &attr);
    pthread_condattr_destroy(&attr);
    hg_list_init(&logins->ready);
    hg_list_init(&logins->delayed);
    logins->queue_max = options->queue_max;
    logins->users = options->users;
    hg_loginguard_init(&logins->guard, options->threads);
    if (getrandom(logins->hash_key, sizeof logins->hash_key, 0) != sizeof logins->hash_key)
        rc = -EIO;
    if (rc == 0)
        rc = start_threads(logins, options->threads);
    if (rc != 0) {
        hg_logins_free(logins);
        return rc;
    }
    *ret = logins;
    return 0;
}

static struct hg_login *take_any(struct hg_logins *logins)
{
    lock(logins);
    struct hg_list *node = hg_list_first(&logins->ready);
    if (node == NULL)
        node = hg_list_first(&logins->delayed);
    struct hg_login *login = NULL;
    if (node != NULL) {
        login = HG_CONTAINER_OF(node, struct hg_login, node);
        take_out(login);
    }
    unlock(logins);
    return login;
}

void hg_logins_stop(struct hg_logins *logins)
{
    lock(logins);
    logins->stopping = true;
    pthread_cond_broadcast(&logins->work);
    unlock(logins);
    for (unsigned i = 0; i < logins->thread_count; i++)
        pthread_join(logins->threads[i], NULL);
    logins->thread_count = 0;
    for (struct hg_login *login; (login = take_any(logins)) != NULL;)
        refuse(login, &logins->stats.cancelled, "the server is stopping");
}

void hg_logins_free(struct hg_logins *logins)
{
    if (logins == NULL)
        return;
    hg_logins_stop(logins);
    pthread_cond_destroy(&logins->work);
    pthread_mutex_destroy(&logins->mutex);
    gsasl_done(logins->gsasl);
    explicit_bzero(logins->hash_key, sizeof logins->hash_key);
    free(logins);
}

void hg_logins_set_queue_max(struct hg_logins *logins, unsigned queue_max)
{
    lock(logins);
    logins->queue_max = queue_max;
    unlock(logins);
}

const struct hg_login_stats *hg_logins_stats(const struct hg_logins *logins)
{
    return &logins->stats;
}
