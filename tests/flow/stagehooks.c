// stagehooks - the process's side of a stage: users, jobs, upstreams
// SPDX-License-Identifier: BSD-3-Clause
#include "stagehooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- users ---- */

static uint32_t privileges(void *app, const struct hg_directory *directory, const void *user,
                           struct hg_span bucket)
{
    struct stage *stage = app;
    const struct stage_user *of = user;
    (void)directory;
    if (of == NULL)
        return stage->anonymous_privileges;
    if (of->bucket != NULL && !hg_span_is(bucket, of->bucket))
        return of->privileges &
               ~(HG_PRIVILEGE_BIT(HG_PRIVILEGE_READ) | HG_PRIVILEGE_BIT(HG_PRIVILEGE_WRITE));
    return of->privileges;
}

static bool may_see(void *app, const struct hg_directory *directory, const void *user,
                    struct hg_span bucket)
{
    const struct stage_user *of = user;
    (void)app;
    (void)directory;
    return of == NULL || of->bucket == NULL || hg_span_is(bucket, of->bucket);
}

static const void *find_user(void *app, const struct hg_directory *directory, struct hg_span name)
{
    struct stage *stage = app;
    (void)directory;
    for (unsigned i = 0; i < stage->user_count; i++)
        if (!stage->users[i].revoked && hg_span_is(name, stage->users[i].name))
            return &stage->users[i];
    return NULL;
}

static bool revoked(void *app, const struct hg_directory *now, const void *user_before)
{
    (void)app;
    (void)now;
    return ((const struct stage_user *)user_before)->revoked;
}

static struct hg_span anonymous_bucket(void *app, const struct hg_directory *directory)
{
    struct stage *stage = app;
    (void)directory;
    return stage->anonymous_bucket != NULL ? hg_span_str(stage->anonymous_bucket) : HG_SPAN_NONE;
}

struct stage_user *stage_user(struct stage *stage, const char *name, const char *bucket,
                              uint32_t user_privileges)
{
    assert_true(stage->user_count < STAGE_USERS);
    struct stage_user *user = &stage->users[stage->user_count++];
    *user = (struct stage_user){name, bucket, user_privileges, false};
    return user;
}

/* ---- jobs ---- */

static void on_job(void *app, struct hg_job *job)
{
    struct stage *stage = app;
    pthread_mutex_lock(&stage->lock);
    assert_true(stage->job_count < HG_COUNT_OF(stage->jobs));
    stage->jobs[stage->job_count++] = job;
    pthread_mutex_unlock(&stage->lock);
}

struct hg_job *stage_job(struct stage *stage)
{
    struct hg_job *job = NULL;
    pthread_mutex_lock(&stage->lock);
    if (stage->job_count > 0) {
        job = stage->jobs[0];
        stage->job_count--;
        memmove(stage->jobs, stage->jobs + 1, stage->job_count * sizeof(struct hg_job *));
    }
    pthread_mutex_unlock(&stage->lock);
    return job;
}

static void on_login_gone(void *app, void *login)
{
    (void)login;
    ((struct stage *)app)->logins_gone++;
}

/* ---- upstreams ---- */

static struct stage_upstream *upstream_at(struct hg_upstream *upstream)
{
    return HG_CONTAINER_OF(upstream, struct stage_upstream, upstream);
}

static void on_store_free(struct fakestore *store)
{
    struct stage_upstream *of = store->ctx;
    __atomic_fetch_add(&of->freed, 1, __ATOMIC_SEQ_CST);
    if (of->stores[store->worker->index] == store)
        of->stores[store->worker->index] = NULL;
    free(store->data);
}

static struct hg_store *open_store(struct hg_generation *generation, struct hg_worker *worker)
{
    struct stage_upstream *of = upstream_at(generation->upstream);
    if (of->fails)
        return NULL;
    struct fakestore *store = fakestore_new(worker);
    store->ctx = of;
    store->on_free = on_store_free;
    of->stores[worker->index] = store;
    __atomic_fetch_add(&of->opened, 1, __ATOMIC_SEQ_CST);
    if (of->stage->on_open != NULL)
        of->stage->on_open(of->stage, store);
    return &store->store;
}

static void refresh(struct hg_generation *generation, struct hg_store *store)
{
    (void)generation;
    (void)store;
}

static void retire_generation(struct hg_generation *generation)
{
    __atomic_fetch_sub(&upstream_at(generation->upstream)->generations, 1, __ATOMIC_SEQ_CST);
    free(generation);
}

void stage_renew(struct stage *stage, unsigned upstream)
{
    static uint64_t number;
    struct stage_upstream *of = &stage->upstreams[upstream];
    struct hg_generation *generation = calloc(1, sizeof *generation);
    assert_non_null(generation);
    atomic_init(&generation->refs, 1);
    generation->number = ++number;
    generation->upstream = hg_upstream_ref(&of->upstream);
    generation->retire = retire_generation;
    __atomic_fetch_add(&of->generations, 1, __ATOMIC_SEQ_CST);
    hg_generation_unref(of->generation);
    of->generation = generation;
}

static void retire(struct hg_upstream *upstream)
{
    upstream_at(upstream)->retired++;
}

void stage_set_hooks(struct stage *stage)
{
    stage->front.hooks = (struct hg_front_hooks){
        .app = stage,
        .on_job = on_job,
        .on_login_gone = on_login_gone,
        .privileges = privileges,
        .may_see = may_see,
        .find_user = find_user,
        .revoked = revoked,
        .anonymous_bucket = anonymous_bucket,
    };
    for (unsigned i = 0; i < HG_COUNT_OF(stage->upstreams); i++) {
        struct hg_upstream *upstream = &stage->upstreams[i].upstream;
        snprintf(upstream->name, sizeof upstream->name, "up%u", i);
        upstream->kind = "fake";
        upstream->slot = i;
        atomic_init(&upstream->refs, 1);
        atomic_init(&upstream->allow_flush, true);
        upstream->open = open_store;
        upstream->refresh = refresh;
        upstream->retire = retire;
        upstream->gates = hg_gateset_new(STAGE_WORKERS);
        assert_non_null(upstream->gates);
        static const char *const servers[] = {""};
        assert_int_equal(hg_gateset_list(upstream->gates, &stage->front, servers, 1, 1), 0);
        stage->upstreams[i].stage = stage;
        stage_renew(stage, i);
    }
}
