// admin - what administrators change while the server runs
// SPDX-License-Identifier: BSD-3-Clause
//
// Each change is made to a copy of the state, merged with the file, checked, prepared, saved, and
// only then put in force; whatever fails before that leaves everything as it was. Runs on
// housekeeping.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/admin_own.h"
#include "app/adminjson.h"
#include "app/conf_table.h"
#include "app/process.h"
#include "app/rights.h"
#include "app/uptlsconf.h"
#include "base/bytes.h"
#include "base/log.h"
#include "proto/status.h"

/* Who asks for a change, for the log. */
struct author {
    const char *user;
    char from[HG_ADDR_TEXT];
};

static struct author author_of(const struct hg_job *job)
{
    struct author author = {job->user_name[0] != '\0' ? job->user_name : "anonymous", ""};
    hg_addr_text(&job->peer, author.from);
    return author;
}

static void fail_with_errors(struct hg_job *job, uint16_t status, struct hg_conf_errors *errs)
{
    hg_job_fail(job, status, "%s", errs->error_count > 0 ? errs->errors[0] : "no memory is left");
}

static const char being_taken_over[] =
    "a new process is taking over from this one: nothing can be changed here until it has";

/* ---- putting a changed state in force ---- */

static void log_change(void *ctx, const struct hg_conf_change *change)
{
    const struct author *author = ctx;
    hg_log_info("admin=%s from=%s option=%s before=\"%s\" after=\"%s\" msg=\"%s\"", author->user,
                author->from, change->path, change->before != NULL ? change->before : "",
                change->after != NULL ? change->after : "",
                change->at_run_time ? "changed" : "takes effect only after a restart");
}

static void warn_all(const struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < errs->warning_count; i++)
        hg_log_warn("msg=\"%s\"", errs->warnings[i]);
}

/* Takes over `state` (also on failure). `purge`: see hg_publish. */
static void apply_state(struct hg_process *process, struct hg_job *job, struct hg_state *state,
                        const char *purge)
{
    struct hg_conf *effective = NULL;
    struct hg_directory *directory = NULL;
    struct hg_conf_errors errs;
    char why[512] = "no memory is left";
    struct author author = author_of(job);
    hg_conf_errors_init(&errs);
    int rc = hg_state_apply(process->file, state, &effective, &errs);
    if (rc != 0) {
        fail_with_errors(job, rc == -EINVAL ? HG_STATUS_EINVAL : HG_STATUS_EINTERNAL, &errs);
        goto out;
    }
    rc = hg_publish_prepare(process, effective, process->users, &directory, why);
    if (rc != 0) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "%s", why);
        goto out;
    }
    rc = hg_state_save(state, process->file->state_path);
    if (rc != 0) {
        hg_job_fail(job, HG_STATUS_EINTERNAL,
                    "cannot write state_file '%s': %s; nothing was changed",
                    process->file->state_path, strerror(-rc));
        goto out;
    }
    hg_conf_diff(process->effective, effective, log_change, &author);
    rc = hg_publish(process, effective, directory, purge);
    if (rc != 0) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left; nothing was changed");
        if (hg_state_save(process->state, process->file->state_path) != 0)
            hg_log_error("msg=\"the state file is ahead of what is in force\"");
        goto out;
    }
    hg_state_free(process->state);
    process->state = state;
    state = NULL;
    effective = NULL;
    directory = NULL;
out:
    hg_directory_unref(directory);
    hg_conf_free(effective);
    hg_state_free(state);
    hg_conf_errors_fini(&errs);
}

struct hg_state *hg_admin_copy_state(struct hg_process *process, struct hg_job *job)
{
    struct hg_state *state = hg_state_clone(process->state);
    if (state == NULL)
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
    return state;
}

const struct hg_conf_tenant *hg_admin_find_tenant(struct hg_process *process, struct hg_job *job,
                                                  struct hg_span name)
{
    const struct hg_conf_tenant *tenant =
        hg_conf_tenant_find(process->effective, (const char *)name.at, name.len);
    if (tenant == NULL)
        hg_job_fail(job, HG_STATUS_KEY_ENOENT, "there is no bucket of this name");
    return tenant;
}

void hg_admin_finish(struct hg_process *process, struct hg_job *job, struct hg_state *state, int rc,
                     const char *purge)
{
    if (rc != 0) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
        hg_state_free(state);
        return;
    }
    apply_state(process, job, state, purge);
}

/* ---- the opcodes ---- */

static void set_bucket_throttle(struct hg_process *process, struct hg_job *job)
{
    struct hg_state_throttle throttle;
    struct hg_adminjson_why why;
    if (hg_adminjson_decode_throttle(job->value, &throttle, &why) != 0) {
        hg_job_fail(job, HG_STATUS_EINVAL, "%s", why.text);
        return;
    }
    if (hg_admin_find_tenant(process, job, job->key) == NULL)
        return;
    struct hg_state *state = hg_admin_copy_state(process, job);
    if (state != NULL)
        hg_admin_finish(process, job, state, hg_state_set_throttle(state, job->key, &throttle),
                        NULL);
}

static void set_node_throttle(struct hg_process *process, struct hg_job *job)
{
    struct hg_state_node node;
    struct hg_adminjson_why why;
    if (hg_adminjson_decode_node(job->value, &node, &why) != 0) {
        hg_job_fail(job, HG_STATUS_EINVAL, "%s", why.text);
        return;
    }
    struct hg_state *state = hg_admin_copy_state(process, job);
    if (state != NULL)
        hg_admin_finish(process, job, state, hg_state_set_node(state, &node), NULL);
}

static void set_data_limit(struct hg_process *process, struct hg_job *job)
{
    uint16_t status = hg_get_u16(job->extras.at);
    struct hg_adminjson_why why;
    if (hg_adminjson_check_data_limit(status, &why) != 0) {
        hg_job_fail(job, HG_STATUS_EINVAL, "%s", why.text);
        return;
    }
    if (hg_admin_find_tenant(process, job, job->key) == NULL)
        return;
    struct hg_state *state = hg_admin_copy_state(process, job);
    if (state != NULL)
        hg_admin_finish(process, job, state, hg_state_set_data_limit(state, job->key, status),
                        NULL);
    if (job->status != HG_STATUS_SUCCESS)
        return;
    struct author author = author_of(job);
    hg_log_info("admin=%s from=%s option=tenant.%.*s.data_limit after=0x%02x msg=\"changed\"",
                author.user, author.from, (int)job->key.len, (const char *)job->key.at, status);
}

static void create_bucket(struct hg_process *process, struct hg_job *job)
{
    struct hg_conf_tenant *settings = NULL;
    struct hg_adminjson_why why;
    int rc = hg_adminjson_decode_bucket(job->key, job->value, &settings, &why);
    if (rc != 0) {
        hg_job_fail(job, rc == -EINVAL ? HG_STATUS_EINVAL : HG_STATUS_EINTERNAL, "%s",
                    rc == -EINVAL ? why.text : "no memory is left");
        return;
    }
    if (hg_conf_tenant_find(process->effective, (const char *)job->key.at, job->key.len) != NULL) {
        hg_job_fail(job, HG_STATUS_KEY_EEXISTS, "a bucket of this name exists");
    } else if (settings->upstream[0] != '\0' &&
               hg_conf_upstream_find(process->effective, settings->upstream) ==
                   HG_CONF_NO_UPSTREAM) {
        hg_job_fail(job, HG_STATUS_EINVAL,
                    "unknown upstream '%.100s' (accepted: the name of an upstream of the "
                    "configuration)",
                    settings->upstream);
    } else {
        struct hg_state *state = hg_admin_copy_state(process, job);
        if (state != NULL)
            hg_admin_finish(process, job, state,
                            hg_state_create_bucket(state, process->file, settings), NULL);
    }
    hg_adminjson_free_bucket(settings);
}

static void delete_bucket(struct hg_process *process, struct hg_job *job)
{
    if (hg_admin_find_tenant(process, job, job->key) == NULL)
        return;
    char name[HG_BUCKET_NAME_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)job->key.len, (const char *)job->key.at);
    struct hg_state *state = hg_admin_copy_state(process, job);
    if (state != NULL)
        hg_admin_finish(process, job, state, hg_state_delete_bucket(state, process->file, job->key),
                        name);
}

static void set_verbosity(struct hg_job *job)
{
    uint32_t level = hg_get_u32(job->extras.at);
    /* memcached's 0 is quiet, 1 tells of errors and warnings, 2 and more also of commands */
    hg_log_set_level(level == 0 ? HG_LOG_WARN : level == 1 ? HG_LOG_INFO : HG_LOG_DEBUG);
}

static void validate(struct hg_process *process, struct hg_job *job)
{
    struct hg_conf *conf = NULL;
    struct hg_conf_errors errs;
    hg_conf_errors_init(&errs);
    if (hg_conf_parse((const char *)job->value.at, job->value.len, "configuration",
                      &process->overrides, &conf, &errs) != 0)
        fail_with_errors(job, HG_STATUS_EINVAL, &errs);
    hg_conf_free(conf);
    hg_conf_errors_fini(&errs);
}

static void reload(struct hg_process *process, struct hg_job *job)
{
    char *why = NULL;
    struct author author = author_of(job);
    if (hg_admin_reload(process, author.user, &why) != 0)
        hg_job_fail(job, HG_STATUS_EINVAL, "%s", why != NULL ? why : "no memory is left");
    free(why);
}

static bool may(struct hg_job *job)
{
    switch (job->row->code) {
    case HG_OPCODE_SET_BUCKET_THROTTLE:
    case HG_OPCODE_SET_DATA_LIMIT_EXCEEDED:
        return hg_rights_check(job, hg_rights_in(job, job->key),
                               HG_PRIVILEGE_BUCKET_THROTTLE_MANAGEMENT);
    case HG_OPCODE_SET_NODE_THROTTLE:
        return hg_rights_check(job, hg_rights_of_node(job),
                               HG_PRIVILEGE_BUCKET_THROTTLE_MANAGEMENT);
    case HG_OPCODE_SET_PARAM:
        return true; /* by option */
    default:
        return hg_rights_check(job, hg_rights_of_node(job), HG_PRIVILEGE_NODE_SUPERVISOR);
    }
}

static void carry_out(struct hg_process *process, struct hg_job *job)
{
    switch (job->row->code) {
    case HG_OPCODE_SET_BUCKET_THROTTLE:
        set_bucket_throttle(process, job);
        break;
    case HG_OPCODE_SET_NODE_THROTTLE:
        set_node_throttle(process, job);
        break;
    case HG_OPCODE_SET_DATA_LIMIT_EXCEEDED:
        set_data_limit(process, job);
        break;
    case HG_OPCODE_CREATE_BUCKET:
        create_bucket(process, job);
        break;
    case HG_OPCODE_DELETE_BUCKET:
        delete_bucket(process, job);
        break;
    case HG_OPCODE_VERBOSITY:
        set_verbosity(job);
        break;
    case HG_OPCODE_CONFIG_VALIDATE:
        validate(process, job);
        break;
    case HG_OPCODE_BACKUP:
        hg_backup_on_job(process, job);
        break;
    case HG_OPCODE_CONFIG_RELOAD:
        reload(process, job);
        break;
    case HG_OPCODE_SET_PARAM:
        hg_admin_set_param(process, job);
        break;
    default:
        hg_job_fail(job, HG_STATUS_NOT_SUPPORTED, "not supported here");
        break;
    }
}

/* A process that takes over has read the state file: what were changed now would be lost. */
static bool comes_too_late(const struct hg_process *process, struct hg_job *job)
{
    bool changes = job->row->code != HG_OPCODE_VERBOSITY &&
                   job->row->code != HG_OPCODE_CONFIG_VALIDATE &&
                   !(job->row->code == HG_OPCODE_SET_PARAM && hg_span_is(job->key, "server.drain"));
    if (!process->frozen || !changes)
        return false;
    hg_job_fail(job, HG_STATUS_EBUSY, "%s", being_taken_over);
    return true;
}

void hg_admin_on_job(struct hg_process *process, struct hg_job *job)
{
    job->status = HG_STATUS_SUCCESS;
    if (may(job) && !comes_too_late(process, job))
        carry_out(process, job);
    hg_job_answer(job);
}

/* ---- reload ---- */

struct loaded {
    struct hg_conf *file, *effective;
    struct hg_users_ref *users;
    struct hg_tlsset *tls;
    struct hg_directory *directory;
};

static int read_again(struct hg_process *process, struct loaded *loaded,
                      struct hg_conf_errors *errs)
{
    struct hg_users *users = NULL;
    char why[512] = "no memory is left";
    int rc = hg_conf_load(process->conf_path, &process->overrides, &loaded->file, errs);
    if (rc == 0)
        rc = hg_state_apply(loaded->file, process->state, &loaded->effective, errs);
    if (rc == 0)
        rc = loaded->effective->users_file[0] != '\0'
                 ? hg_users_load(loaded->effective->users_file, &users, errs)
                 : hg_users_open(&users);
    if (rc != 0)
        return rc;
    hg_users_keep_key(users, process->users->users);
    loaded->users = hg_users_ref_new(users);
    if (loaded->users == NULL) {
        hg_users_free(users);
        return -ENOMEM;
    }
    rc = hg_tlsset_load(loaded->effective, &loaded->tls, why);
    if (rc == 0)
        rc = hg_uptlsconf_try(loaded->effective, why);
    if (rc == 0)
        rc = hg_publish_prepare(process, loaded->effective, loaded->users, &loaded->directory, why);
    if (rc != 0)
        hg_conf_errors_add(errs, NULL, 0, "%s", why);
    return rc;
}

static void follow_log_settings(const struct hg_conf *before, const struct hg_conf *now)
{
    const char *path = now->log_file[0] != '\0' ? now->log_file : NULL;
    hg_log_set_level((enum hg_log_level)now->log_level);
    if (path == NULL || strcmp(before->log_file, now->log_file) == 0)
        return;
    if (hg_log_open(path, (enum hg_log_level)now->log_level) != 0)
        hg_log_error("msg=\"cannot open the new log_file; the old one stays open\"");
}

/* A prefix that comes or goes with another tenant: nobody has written it, and items seem lost. */
static void warn_of_prefixes(const struct hg_conf *before, const struct hg_conf *after)
{
    for (size_t i = 0; i < after->tenants_count; i++) {
        const struct hg_conf_tenant *now = &after->tenants[i];
        const struct hg_conf_tenant *old =
            hg_conf_tenant_find(before, now->name, strlen(now->name));
        if (old == NULL || old->disabled || now->disabled ||
            strcmp(old->upstream, now->upstream) != 0 ||
            strcmp(old->effective_prefix, now->effective_prefix) == 0)
            continue;
        hg_log_warn("tenant=%s msg=\"the key prefix changes from '%s' to '%s': items under the old "
                    "one are not found; write key_prefix: '%s' to keep it\"",
                    now->name, old->effective_prefix, now->effective_prefix, old->effective_prefix);
    }
}

int hg_admin_reload(struct hg_process *process, const char *who, char **ret_why)
{
    struct loaded loaded = {NULL, NULL, NULL, NULL, NULL};
    struct hg_conf_errors errs;
    struct author author = {who, "-"};
    if (process->frozen) {
        *ret_why = strdup(being_taken_over);
        return -EBUSY;
    }
    hg_conf_errors_init(&errs);
    int rc = read_again(process, &loaded, &errs);
    if (rc == 0) {
        warn_all(&errs);
        size_t fixed = hg_conf_diff(process->effective, loaded.effective, log_change, &author);
        if (fixed > 0)
            hg_log_warn("options=%zu msg=\"some changes take effect only after a restart\"", fixed);
        warn_of_prefixes(process->effective, loaded.effective);
        follow_log_settings(process->effective, loaded.effective);
        rc = hg_publish(process, loaded.effective, loaded.directory, NULL);
    }
    if (rc == 0) {
        hg_tlslisten_put(process->tls, loaded.tls);
        hg_conf_free(process->file);
        process->file = loaded.file;
        hg_users_ref_unref(process->users);
        process->users = loaded.users;
        hg_counter_add(&process->reloads, 1);
        hg_log_info("admin=%s msg=\"configuration reloaded\"", who);
    } else {
        hg_counter_add(&process->reload_errors, 1);
        *ret_why = strdup(errs.error_count > 0 ? errs.errors[0] : "no memory is left");
        hg_directory_unref(loaded.directory);
        hg_users_ref_unref(loaded.users);
        hg_conf_free(loaded.effective);
        hg_conf_free(loaded.file);
    }
    hg_tlsset_free(loaded.tls);
    hg_conf_errors_fini(&errs);
    return rc;
}
