// reload - the configuration is read again: checked, compared, put in force as one snapshot
// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that can fail is done before anything changes; what fails leaves all as it was.
// ConfigValidate does the same without putting it in force. Runs on housekeeping.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/admin_own.h"
#include "app/conf_table.h"
#include "app/process.h"
#include "app/reload_report.h"
#include "app/tlslisten.h"
#include "app/uptlsconf.h"
#include "base/log.h"
#include "proto/status.h"

struct hg_author hg_author_of(const struct hg_job *job)
{
    struct hg_author author = {job->user_name[0] != '\0' ? job->user_name : "anonymous", ""};
    hg_addr_text(&job->peer, author.from);
    return author;
}

void hg_author_log(void *ctx, const struct hg_conf_change *change)
{
    const struct hg_author *author = ctx;
    hg_log_info("admin=%s from=%s option=%s before=\"%s\" after=\"%s\" msg=\"%s\"", author->user,
                author->from, change->path, change->before != NULL ? change->before : "",
                change->after != NULL ? change->after : "",
                change->at_run_time ? "changed" : "takes effect only after a restart");
}

#define LINE_MIN 160 /* of a fault that is cut so that others have room */

/* As far as `size` goes: long lines are cut, so that there is something of each; and how many more
   there are. */
static void join_errors(const struct hg_conf_errors *errs, char *ret, size_t size)
{
    const size_t rest = sizeof "\nand 1000000 more", dots = sizeof "...";
    size_t count = errs->error_count, at = 0, i = 0;
    size_t most = count > 1 ? (size - rest) / count : size;
    if (count > 1 && most < LINE_MIN)
        most = LINE_MIN;
    snprintf(ret, size, "%s", count > 0 ? "" : "no memory is left");
    for (; i < count; i++) {
        size_t len = strlen(errs->errors[i]);
        bool whole = len + 1 < most;
        size_t shown = whole ? len : most - dots - 1;
        if (at + shown + dots + rest >= size && i > 0)
            break;
        at += (size_t)snprintf(ret + at, size - at, "%s%.*s%s", i > 0 ? "\n" : "", (int)shown,
                               errs->errors[i], whole ? "" : "...");
    }
    size_t more = count - i + errs->errors_left_out;
    if (more > 0 && at < size)
        snprintf(ret + at, size - at, "\nand %zu more", more);
}

void hg_admin_fail(struct hg_job *job, uint16_t status, const struct hg_conf_errors *errs)
{
    join_errors(errs, job->text, sizeof job->text);
    job->status = status;
}

static void warn_all(const struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < errs->warning_count; i++)
        hg_log_warn("msg=\"%s\"", errs->warnings[i]);
}

/* ---- what nobody has written, and what stays behind ---- */

static const char *upstream_of(const struct hg_conf *conf, const struct hg_conf_tenant *tenant)
{
    if (tenant->upstream_index == HG_CONF_NO_UPSTREAM)
        return tenant->upstream;
    return conf->upstreams[tenant->upstream_index].name;
}

/* A prefix that comes or goes with another tenant: nobody has written it, and items seem lost. */
static void warn_of_prefixes(const struct hg_conf *before, const struct hg_conf *after,
                             struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < after->tenants_count; i++) {
        const struct hg_conf_tenant *now = &after->tenants[i];
        const struct hg_conf_tenant *old =
            hg_conf_tenant_find(before, now->name, strlen(now->name));
        if (old == NULL || old->disabled || now->disabled)
            continue;
        const char *from = upstream_of(before, old), *to = upstream_of(after, now);
        if (strcmp(from, to) != 0)
            hg_conf_errors_warn(errs, NULL, 0,
                                "tenant '%s' moves from upstream '%s' to '%s': its items stay "
                                "behind, and its counters begin again",
                                now->name, from, to);
        else if (strcmp(old->effective_prefix, now->effective_prefix) != 0)
            hg_conf_errors_warn(errs, NULL, 0,
                                "tenant '%s': the key prefix changes from '%s' to '%s': items "
                                "under the old one are not found; write key_prefix: '%s' to keep "
                                "it",
                                now->name, old->effective_prefix, now->effective_prefix,
                                old->effective_prefix);
    }
}

static void warn_of_upstreams(const struct hg_conf *before, const struct hg_conf *after,
                              struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < after->upstreams_count; i++) {
        const struct hg_conf_upstream *now = &after->upstreams[i];
        size_t found = hg_conf_upstream_find(before, now->name);
        if (found == HG_CONF_NO_UPSTREAM)
            continue;
        const struct hg_conf_upstream *old = &before->upstreams[found];
        if (old->kind != now->kind)
            hg_conf_errors_warn(errs, NULL, 0,
                                "upstream '%s' becomes another one, %s instead of %s: the items of "
                                "its tenants stay behind",
                                now->name, hg_conf_kind_name(now->kind),
                                hg_conf_kind_name(old->kind));
        else if (old->database != now->database)
            hg_conf_errors_warn(errs, NULL, 0,
                                "upstream '%s' goes to database %llu instead of %llu: the items "
                                "of its tenants stay behind",
                                now->name, (unsigned long long)now->database,
                                (unsigned long long)old->database);
        else if (old->redis_layout != now->redis_layout)
            hg_conf_errors_warn(errs, NULL, 0,
                                "upstream '%s' has redis_layout %s instead of %s: items that were "
                                "written under the old one are read otherwise",
                                now->name, hg_conf_layout_name(now->redis_layout),
                                hg_conf_layout_name(old->redis_layout));
    }
}

/* ---- reading ---- */

struct loaded {
    struct hg_conf *file, *effective;
    struct hg_users_ref *users;
    struct hg_tlsset *tls;
    struct hg_directory *directory;
};

static void forget(struct loaded *loaded)
{
    hg_tlsset_free(loaded->tls);
    hg_directory_unref(loaded->directory);
    hg_users_ref_unref(loaded->users);
    hg_conf_free(loaded->effective);
    hg_conf_free(loaded->file);
}

/* With the file read: merged with what opcodes have set, and the users. */
static int merge(struct hg_process *process, struct loaded *loaded, struct hg_conf_errors *errs)
{
    struct hg_users *users = NULL;
    int rc = hg_state_apply(loaded->file, process->state, &loaded->effective, errs);
    if (rc == 0)
        rc = hg_users_load_for(loaded->effective, &users, errs);
    if (rc != 0)
        return rc;
    hg_users_keep_key(users, process->users->users);
    loaded->users = hg_users_ref_new(users);
    if (loaded->users == NULL) {
        hg_users_free(users);
        return -ENOMEM;
    }
    warn_of_upstreams(process->effective, loaded->effective, errs);
    warn_of_prefixes(process->effective, loaded->effective, errs);
    return 0;
}

/* Not one option: somebody is writing it just now, or has failed to. */
static bool is_empty(const struct hg_conf *file)
{
    for (size_t i = 0; i < hg_conf_scopes[HG_CONF_SCOPE_SERVER].count; i++)
        if (file->lines[i] != 0 && file->lines[i] != HG_CONF_BY_OPCODE)
            return false;
    return true;
}

static int read_again(struct hg_process *process, struct loaded *loaded,
                      struct hg_conf_errors *errs)
{
    char why[512] = "no memory is left";
    int rc = hg_conf_load(process->conf_path, &process->overrides, &loaded->file, errs);
    if (rc == 0 && process->conf_path != NULL && is_empty(loaded->file)) {
        hg_conf_errors_add(errs, process->conf_path, 0,
                           "the file has no option in it: what is in force stays");
        rc = -EINVAL;
    }
    if (rc == 0)
        rc = merge(process, loaded, errs);
    if (rc != 0)
        return rc;
    rc = hg_tlsset_load(loaded->effective, &loaded->tls, why);
    if (rc == 0)
        rc = hg_uptlsconf_try(loaded->effective, why);
    if (rc == 0)
        rc = hg_publish_prepare(process, loaded->effective, loaded->users, &loaded->directory, why);
    if (rc != 0)
        hg_conf_errors_add(errs, NULL, 0, "%s", why);
    return rc;
}

/* ---- telling ---- */

struct teller {
    struct hg_author *author; /* NULL: nothing is logged */
    struct hg_report *report; /* NULL: nobody asked, or no memory */
};

static void tell(void *ctx, const struct hg_conf_change *change)
{
    const struct teller *teller = ctx;
    if (teller->author != NULL)
        hg_author_log(teller->author, change);
    if (teller->report != NULL)
        hg_report_change(teller->report, change);
}

/* Changes that need a restart. */
static size_t tell_all(struct hg_process *process, const struct loaded *loaded,
                       const struct hg_conf_errors *errs, struct teller *teller)
{
    size_t fixed = hg_conf_diff(process->effective, loaded->effective, tell, teller);
    if (teller->report == NULL)
        return fixed;
    hg_report_warnings(teller->report, errs);
    hg_report_rings(teller->report, process->effective, loaded->effective);
    return fixed;
}

/* The report is the answer. Frees it. */
static void answer(struct hg_job *job, struct hg_report *report)
{
    char *text = report != NULL ? hg_report_text(report) : NULL;
    hg_report_free(report);
    if (text == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left for the answer");
        return;
    }
    job->body = text;
    job->body_len = strlen(text);
}

/* ---- validating ---- */

/* The files of passwords were not read for a text that somebody sends: that is no change. */
static int keep_passwords(const struct hg_conf *before, struct hg_conf *after)
{
    bool done = true;
    for (size_t i = 0; i < after->upstreams_count && done; i++) {
        struct hg_conf_upstream *now = &after->upstreams[i];
        size_t found = hg_conf_upstream_find(before, now->name);
        if (found == HG_CONF_NO_UPSTREAM || now->password_file[0] == '\0')
            continue;
        free(now->password);
        now->password = strdup(before->upstreams[found].password);
        done = now->password != NULL;
    }
    for (size_t i = 0; i < after->tenants_count && done; i++) {
        struct hg_conf_tenant *now = &after->tenants[i];
        const struct hg_conf_tenant *old =
            hg_conf_tenant_find(before, now->name, strlen(now->name));
        if (old == NULL || now->backend_password_file[0] == '\0')
            continue;
        free(now->backend_password);
        now->backend_password = strdup(old->backend_password);
        done = now->backend_password != NULL;
    }
    return done ? 0 : -ENOMEM;
}

void hg_reload_validate_job(struct hg_process *process, struct hg_job *job)
{
    struct loaded loaded = {NULL, NULL, NULL, NULL, NULL};
    struct hg_conf_errors errs;
    hg_conf_errors_init(&errs);
    int rc = hg_conf_parse((const char *)job->value.at, job->value.len, "configuration",
                           &process->overrides, &loaded.file, &errs);
    if (rc == 0)
        rc = keep_passwords(process->effective, loaded.file);
    if (rc == 0)
        rc = merge(process, &loaded, &errs);
    if (rc == 0) {
        struct teller teller = {NULL, hg_report_new()};
        (void)tell_all(process, &loaded, &errs, &teller);
        answer(job, teller.report);
    } else {
        hg_admin_fail(job, rc == -ENOMEM ? HG_STATUS_EINTERNAL : HG_STATUS_EINVAL, &errs);
    }
    forget(&loaded);
    hg_conf_errors_fini(&errs);
}

/* ---- reloading ---- */

void hg_reload_follow_log(const struct hg_conf *before, const struct hg_conf *now)
{
    const char *path = now->log_file[0] != '\0' ? now->log_file : NULL;
    if (before->log_level != now->log_level)
        hg_log_set_level((enum hg_log_level)now->log_level);
    if (path == NULL || strcmp(before->log_file, now->log_file) == 0)
        return;
    if (hg_log_open(path, (enum hg_log_level)now->log_level) != 0)
        hg_log_error("msg=\"cannot open the new log_file; the old one stays open\"");
}

static int put_in_force(struct hg_process *process, struct loaded *loaded,
                        const struct hg_conf_errors *errs, struct teller *teller)
{
    warn_all(errs);
    size_t fixed = tell_all(process, loaded, errs, teller);
    if (fixed > 0)
        hg_log_warn("options=%zu msg=\"some changes take effect only after a restart\"", fixed);
    hg_reload_follow_log(process->effective, loaded->effective);
    hg_log_set_level((enum hg_log_level)loaded->effective->log_level); /* whatever Verbosity said */
    int rc = hg_publish(process, loaded->effective, loaded->directory, NULL);
    if (rc != 0)
        return rc;
    hg_tlslisten_put(process->tls, loaded->tls);
    hg_tlsset_free(loaded->tls);
    hg_conf_free(process->file);
    process->file = loaded->file;
    hg_users_ref_unref(process->users);
    process->users = loaded->users;
    return 0;
}

/* `report` may be NULL. What was wrong is in errs. */
static int reload(struct hg_process *process, struct hg_author *author, struct hg_report *report,
                  struct hg_conf_errors *errs)
{
    struct loaded loaded = {NULL, NULL, NULL, NULL, NULL};
    struct teller teller = {author, report};
    int rc = read_again(process, &loaded, errs);
    if (rc == 0)
        rc = put_in_force(process, &loaded, errs, &teller);
    if (rc == 0) {
        hg_counter_add(&process->reloads, 1);
        hg_log_info("admin=%s from=%s msg=\"configuration reloaded\"", author->user, author->from);
    } else {
        hg_counter_add(&process->reload_errors, 1);
        forget(&loaded);
    }
    return rc;
}

void hg_reload_job(struct hg_process *process, struct hg_job *job)
{
    struct hg_author author = hg_author_of(job);
    struct hg_report *report = hg_report_new();
    struct hg_conf_errors errs;
    hg_conf_errors_init(&errs);
    int rc = reload(process, &author, report, &errs);
    if (rc == 0) {
        answer(job, report);
    } else {
        hg_admin_fail(job, HG_STATUS_EINVAL, &errs);
        hg_report_free(report);
    }
    hg_conf_errors_fini(&errs);
}

int hg_admin_reload(struct hg_process *process, const char *who, char **ret_why)
{
    char why[4096];
    struct hg_author author = {who, "-"};
    struct hg_conf_errors errs;
    if (process->frozen) {
        *ret_why = strdup(hg_admin_frozen);
        return -EBUSY;
    }
    hg_conf_errors_init(&errs);
    int rc = reload(process, &author, NULL, &errs);
    if (rc != 0) {
        join_errors(&errs, why, sizeof why);
        *ret_why = strdup(why);
    }
    hg_conf_errors_fini(&errs);
    return rc;
}
