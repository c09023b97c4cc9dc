// backup - copies of embedded stores for administrators, handed out in pieces
// SPDX-License-Identifier: BSD-3-Clause
#include "app/backup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "app/process.h"
#include "back/embedded.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "proto/status.h"

#define LOOK_US  200000                    /* between looks whether the copy has to give way */
#define ID_MASK  ((UINT64_C(1) << 53) - 1) /* any JSON reader takes these numbers */
#define HEX_ROOM (2 * HG_EMBEDDED_COPY_HASH_BYTES + 1)

static void drop(struct hg_backup *backup, const char *why)
{
    if (backup->id == 0)
        return;
    hg_log_info("upstream=%s admin=%s from=%s msg=\"backup ended: %s\"", backup->upstream->name,
                backup->who, backup->from, why);
    hg_embedded_copy_end(backup->copy);
    hg_upstream_unref(backup->upstream);
    backup->id = 0;
    backup->copy = NULL;
    backup->upstream = NULL;
}

static void on_look(struct hg_timer *timer)
{
    struct hg_backup *backup = HG_CONTAINER_OF(timer, struct hg_backup, timer);
    struct hg_process *process = HG_CONTAINER_OF(backup, struct hg_process, backup);
    struct hg_embedded_copy_view view;
    if (backup->id == 0)
        return;
    hg_embedded_copy_look(backup->copy, &view);
    if (hg_directory_upstream(process->directory, hg_span_str(backup->upstream->name)) !=
        backup->upstream)
        drop(backup, "its upstream was removed");
    else if (hg_now_us() - backup->asked_us > HG_BACKUP_IDLE_US)
        drop(backup, "nobody asked for it any more");
    else if (hg_loop_timer_arm(timer, LOOK_US) != 0)
        drop(backup, "no memory is left");
}

int hg_backup_start(struct hg_process *process)
{
    return hg_loop_timer_init(&process->house_loop, &process->backup.timer, 0, on_look);
}

void hg_backup_stop(struct hg_process *process)
{
    atomic_store(&process->backup.closed, true);
    drop(&process->backup, "the server ends");
    if (process->backup.timer.loop != NULL)
        hg_loop_timer_fini(&process->backup.timer);
}

/* ---- the session that it belongs to ---- */

struct gone {
    struct hg_letter letter;
    uint64_t id;
};

static void on_gone_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_process *process = receiver;
    struct gone *gone = HG_CONTAINER_OF(letter, struct gone, letter);
    if (process->backup.id == gone->id)
        drop(&process->backup, "its connection was closed");
    free(gone);
}

void hg_backup_on_gone(void *app, uint64_t id)
{
    struct hg_process *process = app;
    if (atomic_load(&process->backup.closed))
        return;
    struct gone *gone = malloc(sizeof *gone);
    if (gone == NULL)
        return; /* it will be dropped when it has been idle for long */
    gone->letter.deliver = on_gone_letter;
    gone->id = id;
    hg_mailbox_post(&process->house, &gone->letter);
}

static void bind_session(struct hg_job *job, struct hg_session *session)
{
    hg_session_set_backup(session, (uint64_t)(uintptr_t)job->ctx);
}

/* It had gone before the backup was begun for it. */
static void miss_session(struct hg_job *job)
{
    hg_backup_on_gone(job->worker->front->hooks.app, (uint64_t)(uintptr_t)job->ctx);
}

/* ---- the steps ---- */

/* Names of the embedded upstreams, for a message. */
static void list_embedded(const struct hg_conf *conf, char *out, size_t cap)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < conf->upstreams_count && used + 1 < cap; i++)
        if (conf->upstreams[i].kind == HG_CONF_KIND_EMBEDDED)
            used += (size_t)snprintf(out + used, cap - used, "%s%s", used > 0 ? ", " : "",
                                     conf->upstreams[i].name);
    if (used == 0)
        snprintf(out, cap, "none of this server's is embedded");
}

/* The upstream that is named, or the only embedded one; NULL when the job has failed. */
static struct hg_upstream *find_upstream(struct hg_process *process, struct hg_job *job)
{
    const struct hg_conf *conf = process->effective;
    const struct hg_conf_upstream *found = NULL;
    char list[600];
    unsigned embedded = 0;
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        const struct hg_conf_upstream *at = &conf->upstreams[i];
        bool is_named = strlen(at->name) == job->key.len && job->key.len > 0 &&
                        memcmp(at->name, job->key.at, job->key.len) == 0;
        embedded += at->kind == HG_CONF_KIND_EMBEDDED;
        if (is_named || (job->key.len == 0 && at->kind == HG_CONF_KIND_EMBEDDED))
            found = at;
    }
    list_embedded(conf, list, sizeof list);
    if (job->key.len > 0 && found == NULL)
        hg_job_fail(job, HG_STATUS_KEY_ENOENT, "there is no upstream of this name (accepted: %s)",
                    list);
    else if (job->key.len > 0 && found->kind != HG_CONF_KIND_EMBEDDED)
        hg_job_fail(job, HG_STATUS_NOT_SUPPORTED,
                    "upstream '%s' is of kind %s: its servers keep its data (accepted: %s)",
                    found->name, hg_conf_kind_name(found->kind), list);
    else if (embedded == 0)
        hg_job_fail(job, HG_STATUS_NOT_SUPPORTED, "no upstream of this server is embedded");
    else if (job->key.len == 0 && embedded > 1)
        hg_job_fail(job, HG_STATUS_EINVAL, "several upstreams are embedded: name one of them: %s",
                    list);
    else
        return hg_directory_upstream(process->directory, hg_span_str(found->name));
    return NULL;
}

static void tell(struct hg_backup *backup, struct hg_job *job)
{
    struct hg_embedded_copy_view view;
    char text[512], hex[HEX_ROOM] = "";
    hg_embedded_copy_look(backup->copy, &view);
    if (view.state == HG_EMBEDDED_COPY_FAILED) {
        hg_log_error("upstream=%s admin=%s msg=\"backup failed: %s\"", backup->upstream->name,
                     backup->who, view.why);
        hg_job_fail(job, HG_STATUS_ETMPFAIL, "no copy of upstream '%s': %s", backup->upstream->name,
                    view.why);
        drop(backup, "it failed");
        return;
    }
    bool ready = view.state == HG_EMBEDDED_COPY_DONE;
    for (size_t i = 0; ready && i < sizeof view.sha256; i++)
        snprintf(hex + 2 * i, sizeof hex - 2 * i, "%02x", view.sha256[i]);
    snprintf(text, sizeof text,
             "{\"id\":%llu,\"upstream\":\"%s\",\"state\":\"%s\",\"bytes\":%llu,\"about_bytes\":%llu"
             "%s%s%s}",
             (unsigned long long)backup->id, backup->upstream->name, ready ? "ready" : "copying",
             (unsigned long long)view.bytes, (unsigned long long)view.about_bytes,
             ready ? ",\"sha256\":\"" : "", hex, ready ? "\"" : "");
    hg_job_body(job, hg_span_str(text));
}

static uint64_t new_id(void)
{
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        id = hg_now_us();
    id &= ID_MASK;
    return id != 0 ? id : 1;
}

static void begin(struct hg_process *process, struct hg_job *job)
{
    struct hg_backup *backup = &process->backup;
    char error[512];
    struct hg_upstream *upstream = find_upstream(process, job);
    if (upstream == NULL) {
        if (job->status == HG_STATUS_SUCCESS)
            hg_job_fail(job, HG_STATUS_ETMPFAIL, "the upstream is not open yet");
        return;
    }
    if (backup->id != 0) {
        hg_job_fail(job, HG_STATUS_EBUSY,
                    "a backup of upstream '%s' is under way, by %s from %s, who asked for it last "
                    "%llu seconds ago; one at a time",
                    backup->upstream->name, backup->who, backup->from,
                    (unsigned long long)((hg_now_us() - backup->asked_us) / 1000000));
        return;
    }
    int rc = hg_upstream_copy_begin(upstream, &backup->copy, error, sizeof error);
    if (rc == 0 && hg_loop_timer_arm(&backup->timer, LOOK_US) != 0) {
        hg_embedded_copy_end(backup->copy);
        snprintf(error, sizeof error, "no memory is left");
        rc = -ENOMEM;
    }
    if (rc != 0) {
        hg_job_fail(job, rc == -EBUSY ? HG_STATUS_EBUSY : HG_STATUS_EINTERNAL, "%s", error);
        return;
    }
    backup->id = new_id();
    backup->upstream = hg_upstream_ref(upstream);
    backup->asked_us = hg_now_us();
    snprintf(backup->who, sizeof backup->who, "%s",
             job->user_name[0] != '\0' ? job->user_name : "anonymous");
    hg_addr_text(&job->peer, backup->from);
    job->ctx = (void *)(uintptr_t)backup->id;
    job->on_worker = bind_session;
    job->on_orphan = miss_session;
    hg_log_info("upstream=%s admin=%s from=%s msg=\"backup begun\"", upstream->name, backup->who,
                backup->from);
    tell(backup, job);
}

static void read_piece(struct hg_backup *backup, struct hg_job *job, uint64_t offset,
                       uint32_t bytes)
{
    struct hg_embedded_copy_view view;
    hg_embedded_copy_look(backup->copy, &view);
    if (view.state == HG_EMBEDDED_COPY_FAILED) {
        tell(backup, job);
        return;
    }
    if (view.state == HG_EMBEDDED_COPY_RUNS) {
        hg_job_fail(job, HG_STATUS_ETMPFAIL, "the copy is not ready yet");
        return;
    }
    if (bytes > HG_BACKUP_READ_BYTES || offset > view.bytes || bytes > view.bytes - offset) {
        hg_job_fail(job, HG_STATUS_EINVAL,
                    "%u bytes at %llu (accepted: at most %u, within the %llu of the copy)", bytes,
                    (unsigned long long)offset, HG_BACKUP_READ_BYTES,
                    (unsigned long long)view.bytes);
        return;
    }
    job->body = malloc(bytes);
    if (job->body == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left for the answer");
        return;
    }
    job->body_len = job->body_cap = bytes;
    int rc = hg_embedded_copy_read(backup->copy, offset, job->body, bytes);
    if (rc != 0)
        hg_job_fail(job, HG_STATUS_EINTERNAL, "cannot read the copy: %s", strerror(-rc));
}

void hg_backup_on_job(struct hg_process *process, struct hg_job *job)
{
    struct hg_backup *backup = &process->backup;
    uint64_t id = hg_get_u64(job->extras.at), offset = hg_get_u64(job->extras.at + 8);
    uint32_t bytes = hg_get_u32(job->extras.at + 16);
    if (id == 0) {
        begin(process, job);
        return;
    }
    if (id != backup->id) {
        hg_job_fail(job, HG_STATUS_KEY_ENOENT, "there is no backup %llu (any more)",
                    (unsigned long long)id);
        return;
    }
    backup->asked_us = hg_now_us();
    if (offset == HG_BACKUP_END)
        drop(backup, "the client is done");
    else if (bytes == 0)
        tell(backup, job);
    else
        read_piece(backup, job, offset, bytes);
}
