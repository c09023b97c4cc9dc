// embedded_shared - the embedded store's file, writer and threads: open, run, close
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_shared.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "back/embedded_copy.h"
#include "base/clock.h"
#include "base/log.h"

#define READERS_BESIDES 16 /* of stats and start */

static uint64_t machine_wall_s(void *arg)
{
    (void)arg;
    return hg_wall_s();
}

/* Starts a thread that takes no signals. */
static int start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

/* --- the sweeper's timer --- */

static void on_sweep(struct hg_timer *timer)
{
    struct hg_embedded_shared *shared =
        HG_CONTAINER_OF(timer, struct hg_embedded_shared, sweep_timer);
    uint64_t us = hg_embedded_sweep_step(&shared->writer);
    if (hg_loop_timer_arm(timer, us) != 0)
        hg_log_error("store=%s msg=\"the sweeper has stopped: out of memory\"", shared->where);
}

int hg_embedded_sweeper_start(struct hg_embedded_shared *shared, struct hg_loop *loop)
{
    int rc = hg_loop_timer_init(loop, &shared->sweep_timer, 0, on_sweep);
    return rc != 0 ? rc : hg_loop_timer_arm(&shared->sweep_timer, HG_EMBEDDED_SWEEP_STEP_US);
}

void hg_embedded_sweeper_stop(struct hg_embedded_shared *shared)
{
    hg_loop_timer_fini(&shared->sweep_timer);
}

/* --- who carries out batches --- */

/* A copy of the file holds on to pages that the writer needs: it has to go. */
static bool on_map_full(struct hg_embedded_writer *writer)
{
    return hg_embedded_copy_give_way(HG_CONTAINER_OF(writer, struct hg_embedded_shared, writer));
}

/* The worker writes itself: the batch is at home. */
static void done_inline(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch)
{
    (void)writer;
    hg_embedded_on_batch(&batch->letter, NULL);
}

static void done_thread(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch)
{
    (void)writer;
    batch->letter.deliver = hg_embedded_on_batch;
    hg_mailbox_post(batch->home_box, &batch->letter);
}

void hg_embedded_on_write(struct hg_letter *letter, void *receiver)
{
    struct hg_embedded_shared *shared = receiver;
    hg_embedded_writer_queue(&shared->writer,
                             HG_CONTAINER_OF(letter, struct hg_embedded_batch, letter));
}

static void on_run(struct hg_hook *hook)
{
    struct hg_embedded_shared *shared = HG_CONTAINER_OF(hook, struct hg_embedded_shared, hook);
    hg_embedded_writer_run(&shared->writer);
}

static void on_stop(struct hg_letter *letter, void *receiver)
{
    (void)letter;
    struct hg_embedded_shared *shared = receiver;
    hg_loop_stop(&shared->loop);
}

static void *write_thread(void *arg)
{
    struct hg_embedded_shared *shared = arg;
    hg_loop_run(&shared->loop);
    return NULL;
}

static void fini_writer_loop(struct hg_embedded_shared *shared)
{
    hg_loop_unhook(&shared->hook);
    hg_embedded_sweeper_stop(shared);
    hg_mailbox_fini(&shared->box);
    hg_loop_fini(&shared->loop);
}

static int start_writer(struct hg_embedded_shared *shared)
{
    shared->writer.done = done_thread;
    int rc = hg_loop_init(&shared->loop);
    if (rc != 0)
        return rc;
    rc = hg_mailbox_init(&shared->box, &shared->loop, shared);
    if (rc != 0) {
        hg_loop_fini(&shared->loop);
        return rc;
    }
    hg_loop_hook(&shared->loop, HG_STAGE_BACKENDS, &shared->hook, on_run);
    rc = hg_embedded_sweeper_start(shared, &shared->loop);
    if (rc == 0)
        rc = start_thread(&shared->thread, write_thread, shared);
    if (rc != 0)
        fini_writer_loop(shared);
    else
        shared->thread_runs = true;
    return rc;
}

static void stop_writer(struct hg_embedded_shared *shared)
{
    if (!shared->thread_runs)
        return;
    shared->stop.deliver = on_stop;
    hg_mailbox_post(&shared->box, &shared->stop);
    pthread_join(shared->thread, NULL);
    fini_writer_loop(shared);
}

/* --- the sync thread --- */

static void sync_once(struct hg_embedded_shared *shared, uint64_t *synced)
{
    uint64_t published = atomic_load_explicit(&shared->db.published, memory_order_acquire);
    if (published == *synced)
        return;
    int rc = mdb_env_sync(shared->db.env, 1);
    if (rc == 0) {
        *synced = published;
        hg_counter_add(&shared->syncer.counters.syncs, 1);
        return;
    }
    hg_counter_add(&shared->syncer.counters.sync_errors, 1);
    hg_log_error("store=%s msg=\"cannot sync: %s\"", shared->where, mdb_strerror(rc));
}

static void *sync_thread(void *arg)
{
    struct hg_embedded_shared *shared = arg;
    struct hg_embedded_syncer *syncer = &shared->syncer;
    struct timespec next;
    uint64_t synced = 0;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&syncer->lock);
    while (!syncer->stop) {
        next.tv_sec++;
        int rc = 0;
        while (!syncer->stop && rc == 0)
            rc = pthread_cond_timedwait(&syncer->wake, &syncer->lock, &next);
        pthread_mutex_unlock(&syncer->lock);
        sync_once(shared, &synced);
        /* A sync that took long must not be followed by several at once. */
        clock_gettime(CLOCK_MONOTONIC, &next);
        pthread_mutex_lock(&syncer->lock);
    }
    pthread_mutex_unlock(&syncer->lock);
    return NULL;
}

static int start_syncer(struct hg_embedded_shared *shared)
{
    struct hg_embedded_syncer *syncer = &shared->syncer;
    pthread_condattr_t attr;
    int rc = pthread_mutex_init(&syncer->lock, NULL);
    if (rc != 0)
        return -rc;
    rc = pthread_condattr_init(&attr);
    if (rc == 0) {
        rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (rc == 0)
            rc = pthread_cond_init(&syncer->wake, &attr);
        pthread_condattr_destroy(&attr);
    }
    if (rc != 0) {
        pthread_mutex_destroy(&syncer->lock);
        return -rc;
    }
    rc = start_thread(&syncer->thread, sync_thread, shared);
    if (rc == 0) {
        syncer->runs = true;
        return 0;
    }
    pthread_cond_destroy(&syncer->wake);
    pthread_mutex_destroy(&syncer->lock);
    return rc;
}

static void stop_syncer(struct hg_embedded_shared *shared)
{
    struct hg_embedded_syncer *syncer = &shared->syncer;
    if (!syncer->runs)
        return;
    pthread_mutex_lock(&syncer->lock);
    syncer->stop = true;
    pthread_cond_signal(&syncer->wake);
    pthread_mutex_unlock(&syncer->lock);
    pthread_join(syncer->thread, NULL);
    pthread_cond_destroy(&syncer->wake);
    pthread_mutex_destroy(&syncer->lock);
    syncer->runs = false;
}

/* --- open and close --- */

static bool chooses_inline(const struct hg_embedded_options *options)
{
    switch (options->writing) {
    case HG_EMBEDDED_WRITING_INLINE:
        return true;
    case HG_EMBEDDED_WRITING_THREAD:
        return false;
    case HG_EMBEDDED_WRITING_AUTO:
        break;
    }
    return options->workers == 1 && options->sync != HG_EMBEDDED_SYNC_ALWAYS;
}

static int open_file(struct hg_embedded_shared *shared, const struct hg_embedded_options *options,
                     char *error, size_t error_bytes)
{
    struct hg_embedded_db_options db_options = {
        .data_dir = options->data_dir,
        .name = options->name,
        .max_bytes = options->max_bytes,
        .map_bytes = options->map_bytes,
        .readers =
            options->workers * HG_COUNT_OF(((struct hg_embedded *)NULL)->readers) + READERS_BESIDES,
        .sync_commits = options->sync == HG_EMBEDDED_SYNC_ALWAYS,
    };
    int rc = hg_embedded_db_open(&shared->db, &db_options, error, error_bytes);
    if (rc != 0)
        return rc;
    if (asprintf(&shared->where, "embedded:%s", shared->db.path) < 0) {
        shared->where = NULL;
        snprintf(error, error_bytes, "out of memory");
        rc = -ENOMEM;
    } else {
        rc = hg_embedded_tenants_init(&shared->tenants, &shared->db, error, error_bytes);
    }
    if (rc != 0) {
        free(shared->where);
        hg_embedded_db_close(&shared->db);
    }
    return rc;
}

static void close_file(struct hg_embedded_shared *shared)
{
    hg_embedded_tenants_fini(&shared->tenants);
    hg_embedded_db_close(&shared->db);
    free(shared->where);
}

static int init_writer(struct hg_embedded_shared *shared, const struct hg_embedded_options *options)
{
    struct hg_embedded_writer *writer = &shared->writer;
    hg_embedded_writer_init(writer, &shared->db, &shared->tenants, &shared->writer_counters);
    writer->max_value_bytes = options->max_value_bytes;
    writer->wall_s = shared->wall_s;
    writer->wall_arg = shared->wall_arg;
    writer->done = done_inline;
    writer->on_map_full = on_map_full;
    hg_embedded_set_evict(shared, options->evict);
    return hg_embedded_evict_init(&writer->evict, &shared->db);
}

int hg_embedded_open(const struct hg_embedded_options *options, struct hg_embedded_shared **ret,
                     char *error, size_t error_bytes)
{
    struct hg_embedded_shared *shared = calloc(1, sizeof *shared);
    if (shared == NULL || pthread_mutex_init(&shared->lock, NULL) != 0 ||
        pthread_mutex_init(&shared->copy_lock, NULL) != 0) {
        snprintf(error, error_bytes, "out of memory");
        free(shared);
        return -ENOMEM;
    }
    hg_list_init(&shared->stores);
    shared->inline_writer = chooses_inline(options);
    shared->sync = options->sync;
    shared->timeout_us = options->timeout_us;
    shared->wall_s = options->wall_s != NULL ? options->wall_s : machine_wall_s;
    shared->wall_arg = options->wall_arg;
    int rc = open_file(shared, options, error, error_bytes);
    if (rc != 0) {
        pthread_mutex_destroy(&shared->copy_lock);
        pthread_mutex_destroy(&shared->lock);
        free(shared);
        return rc;
    }
    rc = init_writer(shared, options);
    if (rc == 0 && !shared->inline_writer)
        rc = start_writer(shared);
    if (rc == 0 && shared->sync == HG_EMBEDDED_SYNC_SECOND)
        rc = start_syncer(shared);
    if (rc != 0) {
        snprintf(error, error_bytes, "cannot start the writer of '%s': %s", shared->db.path,
                 strerror(-rc));
        hg_embedded_close(shared);
        return rc;
    }
    *ret = shared;
    return 0;
}

void hg_embedded_close(struct hg_embedded_shared *shared)
{
    if (shared == NULL)
        return;
    stop_writer(shared);
    stop_syncer(shared);
    hg_embedded_writer_fini(&shared->writer);
    close_file(shared);
    pthread_mutex_destroy(&shared->copy_lock);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

/* --- tenants and statistics --- */

int hg_embedded_tenant_id(struct hg_embedded_shared *shared, const char *name, uint32_t *ret_id)
{
    return hg_embedded_tenants_id(&shared->tenants, name, ret_id);
}

int hg_embedded_tenant_delete(struct hg_embedded_shared *shared, uint32_t id)
{
    return hg_embedded_tenants_delete(&shared->tenants, id);
}

void hg_embedded_tenant_each(struct hg_embedded_shared *shared,
                             void (*fn)(void *arg, const char *name, uint32_t id), void *arg)
{
    hg_embedded_tenants_each(&shared->tenants, fn, arg);
}

void hg_embedded_set_evict(struct hg_embedded_shared *shared, bool evict)
{
    atomic_store_explicit(&shared->writer.evict.wanted, evict, memory_order_relaxed);
}

bool hg_embedded_writes_inline(const struct hg_embedded_shared *shared)
{
    return shared->inline_writer;
}

static void read_gauges(struct hg_embedded_shared *shared, struct hg_embedded_stats *ret)
{
    MDB_txn *txn;
    struct hg_embedded_usage usage;
    ret->max_bytes = shared->db.max_bytes;
    ret->dying_tenants = atomic_load_explicit(&shared->tenants.dying, memory_order_relaxed);
    if (mdb_txn_begin(shared->db.env, NULL, MDB_RDONLY, &txn) != 0)
        return;
    hg_embedded_usage(&shared->db, txn, &usage);
    ret->items = usage.items - hg_embedded_notes_count(&shared->db, txn);
    ret->used_bytes = usage.used_bytes;
    ret->file_bytes = usage.file_bytes;
    mdb_txn_abort(txn);
}

void hg_embedded_stats_read(struct hg_embedded_shared *shared, struct hg_embedded_stats *ret)
{
    memset(ret, 0, sizeof *ret);
    hg_embedded_stats_add(ret, &shared->writer_counters);
    hg_embedded_stats_add(ret, &shared->syncer.counters);
    pthread_mutex_lock(&shared->lock);
    hg_embedded_stats_add(ret, &shared->past);
    HG_LIST_EACH(node, &shared->stores)
    {
        struct hg_embedded *embedded = HG_CONTAINER_OF(node, struct hg_embedded, node);
        hg_embedded_stats_add(ret, &embedded->counters);
    }
    pthread_mutex_unlock(&shared->lock);
    read_gauges(shared, ret);
}
