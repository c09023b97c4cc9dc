// process - sets up the server in order, runs it, tears it down in reverse
// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

#include "app/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "app/handover.h"
#include "app/inherit.h"
#include "app/login.h"
#include "app/metrics.h"
#include "app/notify.h"
#include "app/process_own.h"
#include "app/web.h"
#include "back/resolve.h"
#include "base/clock.h"
#include "base/log.h"

/* ---- the parts ---- */

/* State and users. Whoever takes over has asked before, so that the state is the last one. */
static int load_rest(struct hg_process *process, struct hg_conf_errors *errs)
{
    struct hg_users *users = NULL;
    int rc = hg_state_load(process->file->state_path, &process->state, errs);
    if (rc == 0)
        rc = hg_state_apply(process->file, process->state, &process->effective, errs);
    if (rc == 0)
        rc = hg_users_load_for(process->effective, &users, errs);
    if (rc != 0)
        return rc;
    process->users = hg_users_ref_new(users);
    return process->users != NULL ? 0 : -ENOMEM;
}

static int open_log(struct hg_process *process)
{
    const struct hg_conf *conf = process->effective;
    const char *path = conf->log_file[0] != '\0' ? conf->log_file : NULL;
    int rc = hg_log_open(path, (enum hg_log_level)conf->log_level);
    if (rc != 0)
        fprintf(stderr, "headgate: cannot open log_file '%s': %s\n", path, strerror(-rc));
    return rc;
}

static unsigned thread_count(const struct hg_conf *conf)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = conf->threads > 0 ? conf->threads : cores > 0 ? (uint64_t)cores : 1;
    return threads < HG_CREDIT_WORKERS_MAX ? (unsigned)threads : HG_CREDIT_WORKERS_MAX;
}

static int init_credits(struct hg_process *process)
{
    struct hg_directory *directory;
    struct hg_conf *effective = process->effective;
    char why[512] = "no memory is left";
    hg_credit_init(&process->node,
                   &(struct hg_credit_settings){.capacity = effective->node_capacity,
                                                .slot_ms = (uint32_t)effective->throttle_slot_ms},
                   process->front.worker_count);
    int rc = hg_publish_prepare(process, effective, process->users, &directory, why);
    if (rc == 0) {
        process->effective = NULL; /* publish takes it over again */
        rc = hg_publish(process, effective, directory, NULL);
    }
    if (rc != 0) {
        fprintf(stderr, "headgate: %s\n", why);
        return rc;
    }
    hg_process_tick(process);
    return 0;
}

static int start_workers(struct hg_process *process)
{
    unsigned count = process->front.worker_count;
    size_t bytes = count * sizeof(struct hg_worker);
    bytes = (bytes + HG_CACHE_LINE - 1) & ~(size_t)(HG_CACHE_LINE - 1);
    struct hg_worker *workers = aligned_alloc(HG_CACHE_LINE, bytes);
    if (workers == NULL)
        return -ENOMEM;
    memset(workers, 0, bytes);
    process->workers = process->front.workers = workers;
    for (unsigned w = 0; w < count; w++) {
        int rc = hg_worker_start(&workers[w], &process->front, w, process->directory);
        if (rc != 0) {
            process->front.worker_count = w;
            fprintf(stderr, "headgate: cannot start worker %u: %s\n", w, strerror(-rc));
            return rc;
        }
    }
    return 0;
}

static int open_web(struct hg_process *process)
{
    char why[256];
    hg_metrics_init();
    int rc = hg_web_open(process, &process->web, why);
    if (rc != 0)
        fprintf(stderr, "headgate: %s\n", why);
    return rc;
}

static int open_tls(struct hg_process *process)
{
    char why[512];
    int rc = hg_tlslisten_open(process->effective, &process->front, process->listeners,
                               &process->tls, why);
    if (rc != 0)
        fprintf(stderr, "headgate: %s\n", why);
    return rc;
}

/* ---- start and end ---- */

static bool has_embedded(const struct hg_conf *conf)
{
    for (size_t i = 0; i < conf->upstreams_count; i++)
        if (conf->upstreams[i].kind == HG_CONF_KIND_EMBEDDED)
            return true;
    return false;
}

/* Everything that the configuration may be wrong in comes before anything that the process that is
   taken over from notices. */
static int load(struct hg_process *process, struct hg_takeover *takeover)
{
    struct hg_conf_errors errs; /* of both: the checks that are made twice warn once */
    hg_conf_errors_init(&errs);
    int rc = hg_conf_load(process->conf_path, &process->overrides, &process->file, &errs);
    if (rc == 0 && process->options->take_over && !process->took_over)
        rc = hg_takeover_begin(takeover, process->file, process->inherit);
    if (rc == 0 && takeover->fd >= 0) {
        process->took_over = true;
        hg_notify_succeed(takeover->peer);
    }
    if (rc == 0)
        rc = load_rest(process, &errs);
    hg_conf_errors_print(&errs, stderr);
    hg_conf_errors_fini(&errs);
    if (rc == 0)
        rc = open_log(process);
    return rc;
}

static int init_front(struct hg_process *process)
{
    process->front.worker_count = thread_count(process->effective);
    process->front.node = &process->node;
    process->front.version = PACKAGE_VERSION;
    process->front.start_us = hg_now_us();
    process->start_wall_s = hg_wall_s();
    hg_hooks_init(process);
    if (getrandom(&process->front.hash_seed, sizeof process->front.hash_seed, 0) < 0)
        return -errno;
    hg_cursors_init(&process->front.cursors);
    return hg_gate_holder_init(&process->front.ingress, HG_GATE_INGRESS,
                               process->front.worker_count, 0, NULL);
}

static int set_up(struct hg_process *process, struct hg_takeover *takeover)
{
    int rc = load(process, takeover);
    if (rc != 0)
        return rc;
    hg_process_raise_limit(process->effective);
    rc = init_front(process);
    if (rc != 0)
        return rc;
    process->resolver = hg_resolver_new();
    rc = hg_hotkeys_init(&process->hotkeys, &process->front);
    if (rc == 0)
        rc = process->resolver != NULL ? hg_loop_init(&process->loop) : -ENOMEM;
    if (rc == 0)
        rc = hg_mailbox_init(&process->mailbox, &process->loop, process);
    if (rc == 0)
        rc = hg_process_listen(process);
    if (rc == 0)
        rc = open_web(process);
    if (rc == 0)
        rc = hg_process_refuse_inherited(process);
    if (rc == 0)
        rc = open_tls(process);
    if (rc == 0 && takeover->fd >= 0 && takeover->embedded && has_embedded(process->effective))
        rc = hg_takeover_release(takeover);
    if (rc == 0)
        rc = init_credits(process);
    if (rc == 0)
        rc = hg_process_watch_signals(process);
    if (rc == 0)
        rc = hg_process_init_ticks(process);
    return rc;
}

static int start_threads(struct hg_process *process)
{
    const struct hg_conf *conf = process->effective;
    struct hg_logins_options logins = {(unsigned)conf->max_login_helpers,
                                       (unsigned)conf->login_queue, hg_users_of};
    int rc = hg_logins_new(&logins, &process->logins);
    if (rc == 0)
        rc = hg_process_start_house(process);
    if (rc == 0)
        rc = start_workers(process);
    if (rc == 0)
        hg_throttles_watch(&process->throttles);
    if (rc == 0)
        rc = hg_web_start(process->web);
    if (rc == 0)
        rc = hg_tlslisten_start(process->tls);
    return rc;
}

static void stop_threads(struct hg_process *process)
{
    unsigned count = process->workers != NULL ? process->front.worker_count : 0;
    hg_web_stop(process->web);
    if (process->logins != NULL)
        hg_logins_stop(process->logins);
    hg_tlslisten_stop(process->tls);
    for (unsigned w = 0; w < count; w++)
        hg_worker_stop(&process->workers[w]);
    /* Nobody makes jobs any more; what is still under way is answered into closed mailboxes' last
       delivery. */
    hg_process_stop_house(process);
    hg_mailbox_fini(&process->house);
    hg_mailbox_fini(&process->mailbox);
    hg_hotkeys_close(&process->hotkeys);
    hg_binds_stop(&process->binds);
    hg_throttles_stop(&process->throttles);
    hg_backup_stop(process);
    hg_loop_fini(&process->house_loop);
    hg_logins_free(process->logins);
    hg_workers_free(process->workers, count);
    free(process->workers);
    process->workers = NULL;
}

static void tear_down(struct hg_process *process)
{
    hg_web_free(process->web);
    hg_listeners_free(process->listeners);
    hg_tlslisten_free(process->tls);
    hg_cursors_fini(&process->front.cursors);
    hg_gate_holder_fini(&process->front.ingress);
    hg_directory_unref(process->directory);
    if (process->resolver != NULL)
        hg_resolver_free(process->resolver);
    hg_users_ref_unref(process->users);
    hg_loop_fini(&process->loop);
    free(process->tick_buckets);
    free(process->tick_scratch);
    hg_hotkeys_fini(&process->hotkeys);
    hg_state_free(process->state);
    hg_conf_free(process->effective);
    hg_conf_free(process->file);
    free(process->watch);
}

/* Accepts, and says so. */
static int go(struct hg_process *process, struct hg_takeover *takeover)
{
    char text[HG_NOTIFY_BYTES];
    int rc = hg_listeners_start(process->listeners);
    if (rc == 0)
        rc = hg_takeover_done(takeover);
    if (rc != 0) {
        hg_listeners_keep_files(process->listeners);
        return rc;
    }
    hg_process_begin_ticks(process);
    hg_handover_open(process);
    rc = hg_process_begin_watch(process);
    if (rc != 0)
        return rc;
    hg_notify_send(hg_notify_ready(text, "serving"));
    hg_log_info("version=%s workers=%u msg=\"ready\"", PACKAGE_VERSION,
                process->front.worker_count);
    hg_loop_run(&process->loop);
    return 0;
}

/* From the start to the end, or to the hand-over: what is left of that is in *rest. `inherit`:
   sockets that need not be opened. 0 or -errno. */
static int run_once(const struct hg_process_options *options, struct hg_inherit *inherit,
                    bool again, struct hg_handover_rest *rest)
{
    struct hg_takeover takeover = {.fd = -1};
    struct hg_process *process = aligned_alloc(HG_CACHE_LINE, sizeof *process);
    rest->fd = -1;
    rest->owes_sockets = false;
    if (process == NULL)
        return -ENOMEM;
    memset(process, 0, sizeof *process);
    process->options = options;
    process->conf_path = options->conf_path;
    process->overrides = options->overrides;
    process->inherit = inherit;
    process->took_over = again;
    pthread_mutex_init(&process->lock, NULL);
    pthread_mutex_init(&process->slot_lock, NULL);
    int rc = set_up(process, &takeover);
    if (rc == 0) {
        rc = start_threads(process);
        if (rc == 0)
            rc = go(process, &takeover);
        stop_threads(process);
        hg_handover_close(process, rest);
    } else if (takeover.fd >= 0 && process->listeners != NULL) {
        hg_listeners_keep_files(process->listeners);
    }
    tear_down(process);
    hg_takeover_cancel(&takeover);
    hg_inherit_close(inherit);
    pthread_mutex_destroy(&process->slot_lock);
    pthread_mutex_destroy(&process->lock);
    free(process);
    return rc;
}

int hg_process_run(const struct hg_process_options *options)
{
    static struct hg_handover_rest rest;
    static struct hg_inherit inherit;
    char why[512];
    hg_notify_open();
    int rc = hg_inherit_from_parent(&inherit, why);
    if (rc != 0)
        fprintf(stderr, "headgate: %s\n", why);
    bool again = false;
    while (rc == 0) {
        rc = run_once(options, &inherit, again, &rest);
        if (rc != 0 || (rest.fd < 0 && !rest.owes_sockets) || hg_handover_finish(&rest))
            break;
        /* Nobody serves now: this process takes up where it stopped. */
        again = true;
        inherit = rest.inherit;
    }
    if (rc == 0)
        hg_log_info("msg=\"ended\"");
    hg_log_close();
    hg_notify_close();
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
