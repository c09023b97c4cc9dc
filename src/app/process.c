// process - sets up the server in order, runs it, tears it down in reverse
// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

#include "app/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/gates.h"
#include "app/login.h"
#include "app/metrics.h"
#include "app/web.h"
#include "back/resolve.h"
#include "base/clock.h"
#include "base/log.h"

#define DRAIN_CHECK_US 20000
#define EPOCH_LOOK_US  500000 /* at hotkey_epoch_ms, which may have been changed */

/* ---- ticks ---- */

static void note_overcommitment(struct hg_process *process, const struct hg_credit_tick *tick)
{
    if (tick->overcommitted && !process->overcommitted)
        hg_log_warn("reserved=%llu msg=\"the reservations exceed node_capacity: all are honoured, "
                    "and the free pool is empty\"",
                    (unsigned long long)tick->reserved_sum);
    process->overcommitted = tick->overcommitted;
}

static void tick(struct hg_process *process)
{
    struct hg_credit_tick done;
    pthread_mutex_lock(&process->lock);
    const struct hg_directory *directory = process->directory;
    for (size_t i = 0; i < directory->bucket_count; i++)
        process->tick_buckets[i] = &directory->buckets[i]->credit;
    hg_credit_tick(&process->node, process->tick_buckets, directory->bucket_count,
                   process->tick_scratch, hg_now_us(), &done);
    pthread_mutex_unlock(&process->lock);
    if (done.slot) {
        hg_counter_add(&process->ticks, 1);
        note_overcommitment(process, &done);
    }
    for (uint64_t poke = done.poke; poke != 0; poke &= poke - 1)
        hg_worker_give_tick(&process->workers[__builtin_ctzll(poke)]);
}

static void arm_tick(struct hg_process *process)
{
    uint64_t now_us = hg_now_us(), due_us = hg_credit_due_us(&process->node);
    if (hg_loop_timer_arm(&process->tick_timer, due_us > now_us ? due_us - now_us : 1) != 0)
        hg_log_error("msg=\"cannot set the tick's timer\"");
}

static void on_tick(struct hg_timer *timer)
{
    struct hg_process *process = HG_CONTAINER_OF(timer, struct hg_process, tick_timer);
    tick(process);
    arm_tick(process);
}

/* ---- epochs of hot keys ---- */

static uint64_t epoch_due_us(const struct hg_process *process)
{
    return process->hot_begin_us +
           (uint64_t)atomic_load((_Atomic uint32_t *)&process->front.hot.epoch_ms) * 1000;
}

static void arm_epoch(struct hg_process *process)
{
    uint64_t now_us = hg_now_us(), due_us = epoch_due_us(process);
    uint64_t wait_us = due_us > now_us ? due_us - now_us : 1;
    /* Its length may be changed meanwhile. */
    if (wait_us > EPOCH_LOOK_US)
        wait_us = EPOCH_LOOK_US;
    atomic_store(&process->front.hot.epoch_end_us, due_us);
    if (hg_loop_timer_arm(&process->hot_timer, wait_us) != 0)
        hg_log_error("msg=\"cannot set the timer of hot-key epochs\"");
}

/* After a time in which nothing ran there is one end, however many were missed. */
static void on_epoch(struct hg_timer *timer)
{
    struct hg_process *process = HG_CONTAINER_OF(timer, struct hg_process, hot_timer);
    uint64_t now_us = hg_now_us(), due_us = epoch_due_us(process);
    if (now_us >= due_us) {
        process->hot_begin_us = due_us;
        bool stood_still = epoch_due_us(process) <= now_us;
        if (stood_still)
            process->hot_begin_us = now_us;
        /* What was sent while the machine stood still comes now and belongs to that time: the
           long epoch takes it in, and ends a usual epoch later. */
        process->hot_prolonged = stood_still && !process->hot_prolonged;
        if (!process->hot_prolonged)
            hg_hotkeys_end_epoch(&process->hotkeys, now_us, hg_wall_s(), epoch_due_us(process));
    }
    arm_epoch(process);
}

static void begin_epochs(struct hg_process *process)
{
    process->hot_begin_us = hg_now_us();
    arm_epoch(process);
}

/* ---- tickets ---- */

static void arm_gates(struct hg_process *process)
{
    uint64_t now_us = hg_now_us(), due_us = hg_gates_tick(process, now_us);
    if (hg_loop_timer_arm(&process->gate_timer, due_us > now_us ? due_us - now_us : 1) != 0)
        hg_log_error("msg=\"cannot set the timer of the tickets\"");
}

static void on_gates(struct hg_timer *timer)
{
    arm_gates(HG_CONTAINER_OF(timer, struct hg_process, gate_timer));
}

/* ---- signals and the end ---- */

static void on_drain_check(struct hg_timer *timer)
{
    struct hg_process *process = HG_CONTAINER_OF(timer, struct hg_process, drain_timer);
    unsigned open = 0;
    for (unsigned w = 0; w < process->front.worker_count; w++)
        open += atomic_load(&process->workers[w].load);
    if (open > 0 && hg_now_us() < process->drain_until_us)
        return;
    if (open > 0)
        hg_log_warn("connections=%u msg=\"drain_timeout_s is over: closing what is left\"", open);
    hg_loop_stop(&process->loop);
}

static void begin_drain(struct hg_process *process)
{
    if (process->draining) {
        hg_log_warn("msg=\"asked to end a second time: ending at once\"");
        _exit(1);
    }
    process->draining = true;
    hg_log_info("msg=\"draining: no new connections, finishing what is in flight\"");
    hg_listeners_close(process->listeners);
    pthread_mutex_lock(&process->lock);
    process->drain_until_us = hg_now_us() + process->effective->drain_timeout_s * 1000000;
    pthread_mutex_unlock(&process->lock);
    for (unsigned w = 0; w < process->front.worker_count; w++)
        hg_worker_begin_drain(&process->workers[w]);
    if (hg_loop_timer_init(&process->loop, &process->drain_timer, DRAIN_CHECK_US, on_drain_check) !=
        0)
        hg_loop_stop(&process->loop);
}

static void on_reload_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_process *process = receiver;
    char *why = NULL;
    (void)letter;
    atomic_store(&process->reload_posted, false);
    if (hg_admin_reload(process, "SIGHUP", &why) != 0)
        hg_log_error("msg=\"reload refused, the old settings stay in force\" why=\"%s\"",
                     why != NULL ? why : "no memory is left");
    free(why);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    struct hg_process *process = arg;
    (void)what;
    switch (number) {
    case SIGHUP:
        if (!atomic_exchange(&process->reload_posted, true)) {
            process->reload_letter.deliver = on_reload_letter;
            hg_mailbox_post(&process->house, &process->reload_letter);
        }
        return;
    case SIGUSR1:
        if (hg_log_reopen() != 0)
            hg_log_error("msg=\"cannot open the log file again; the old one stays open\"");
        return;
    default:
        begin_drain(process);
    }
}

static int watch_signals(struct hg_process *process)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < HG_COUNT_OF(numbers); i++) {
        event_assign(&process->signals[i], process->loop.base, numbers[i], EV_SIGNAL | EV_PERSIST,
                     on_signal, process);
        if (event_add(&process->signals[i], NULL) != 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---- the parts ---- */

static int print_errors(const struct hg_conf_errors *errs, int rc)
{
    hg_conf_errors_print(errs, stderr);
    return rc;
}

/* File, state and users. */
static int load(struct hg_process *process)
{
    struct hg_conf_errors errs;
    struct hg_users *users = NULL;
    hg_conf_errors_init(&errs);
    int rc = hg_conf_load(process->conf_path, &process->overrides, &process->file, &errs);
    if (rc == 0)
        rc = hg_state_load(process->file->state_path, &process->state, &errs);
    if (rc == 0)
        rc = hg_state_apply(process->file, process->state, &process->effective, &errs);
    if (rc == 0)
        rc = process->effective->users_file[0] != '\0'
                 ? hg_users_load(process->effective->users_file, &users, &errs)
                 : hg_users_open(&users);
    print_errors(&errs, rc);
    hg_conf_errors_fini(&errs);
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

/* Room for the connections that the settings allow. */
static void raise_descriptor_limit(const struct hg_conf *conf)
{
    struct rlimit limit;
    rlim_t want = conf->max_connections + 4096;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
        return;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < want)
        hg_log_warn("descriptors=%llu msg=\"fewer file descriptors than max_connections wants; "
                    "raise the limit of open files\"",
                    (unsigned long long)limit.rlim_cur);
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
    tick(process);
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

static int listen_on_all(struct hg_process *process)
{
    const struct hg_conf *conf = process->effective;
    process->listeners =
        hg_listeners_new(&process->loop, &process->front, (unsigned)conf->max_connections);
    if (process->listeners == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < conf->listen_count; i++) {
        const char *text = conf->listen[i].address.text;
        struct hg_addr addr, bound;
        char bound_text[HG_ADDR_TEXT];
        int rc = hg_addr_resolve(text, 0, &addr);
        if (rc == 0)
            rc =
                hg_listeners_add(process->listeners, &addr, (unsigned)conf->listen[i].mode, &bound);
        if (rc != 0) {
            fprintf(stderr, "headgate: cannot bind '%s': %s\n", text,
                    rc == -EADDRINUSE ? "address in use"
                    : rc == -ENOENT   ? "no such host"
                                      : strerror(-rc));
            return rc;
        }
        if (i == 0)
            process->first_listen = bound;
        hg_log_info("listen=%s msg=\"listening\"", hg_addr_text(&bound, bound_text));
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

/* ---- housekeeping ---- */

static void *run_house(void *arg)
{
    struct hg_process *process = arg;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    hg_loop_run(&process->house_loop);
    return NULL;
}

static int start_house(struct hg_process *process)
{
    int rc = hg_loop_init(&process->house_loop);
    if (rc == 0)
        rc = hg_mailbox_init(&process->house, &process->house_loop, process);
    if (rc == 0)
        rc = hg_hotkeys_open(&process->hotkeys, &process->house, &process->house_loop, hg_now_us());
    if (rc == 0)
        rc = hg_binds_start(&process->binds, process, &process->house_loop);
    if (rc == 0)
        rc = -pthread_create(&process->house_thread, NULL, run_house, process);
    return rc;
}

static void on_house_stop(struct hg_letter *letter, void *receiver)
{
    (void)letter;
    hg_loop_stop(&((struct hg_process *)receiver)->house_loop);
}

static void stop_house(struct hg_process *process)
{
    struct hg_letter stop = {NULL, on_house_stop};
    hg_mailbox_post(&process->house, &stop);
    pthread_join(process->house_thread, NULL);
}

/* ---- start and end ---- */

static int set_up(struct hg_process *process)
{
    int rc = load(process);
    if (rc == 0)
        rc = open_log(process);
    if (rc != 0)
        return rc;
    raise_descriptor_limit(process->effective);
    process->front.worker_count = thread_count(process->effective);
    process->front.node = &process->node;
    process->front.version = PACKAGE_VERSION;
    process->front.start_us = hg_now_us();
    process->start_wall_s = hg_wall_s();
    hg_hooks_init(process);
    if (getrandom(&process->front.hash_seed, sizeof process->front.hash_seed, 0) < 0)
        return -errno;
    hg_cursors_init(&process->front.cursors);
    rc = hg_gate_holder_init(&process->front.ingress, HG_GATE_INGRESS, process->front.worker_count,
                             0);
    if (rc != 0)
        return rc;
    process->resolver = hg_resolver_new();
    rc = hg_hotkeys_init(&process->hotkeys, &process->front);
    if (rc == 0)
        rc = process->resolver != NULL ? hg_loop_init(&process->loop) : -ENOMEM;
    if (rc == 0)
        rc = init_credits(process);
    if (rc == 0)
        rc = listen_on_all(process);
    if (rc == 0)
        rc = open_web(process);
    if (rc == 0)
        rc = watch_signals(process);
    if (rc == 0)
        rc = hg_loop_timer_init(&process->loop, &process->tick_timer, 0, on_tick);
    if (rc == 0)
        rc = hg_loop_timer_init(&process->loop, &process->hot_timer, 0, on_epoch);
    if (rc == 0)
        rc = hg_loop_timer_init(&process->loop, &process->gate_timer, 0, on_gates);
    if (rc == 0)
        (void)hg_gates_tick(process, hg_now_us()); /* the sizes, before anybody comes */
    return rc;
}

static int start_threads(struct hg_process *process)
{
    const struct hg_conf *conf = process->effective;
    struct hg_logins_options logins = {(unsigned)conf->max_login_helpers,
                                       (unsigned)conf->login_queue, hg_users_of};
    int rc = hg_logins_new(&logins, &process->logins);
    if (rc == 0)
        rc = start_house(process);
    if (rc == 0)
        rc = start_workers(process);
    if (rc == 0)
        rc = hg_web_start(process->web);
    return rc;
}

static void stop_threads(struct hg_process *process)
{
    unsigned count = process->workers != NULL ? process->front.worker_count : 0;
    hg_web_stop(process->web);
    if (process->logins != NULL)
        hg_logins_stop(process->logins);
    for (unsigned w = 0; w < count; w++)
        hg_worker_stop(&process->workers[w]);
    /* Nobody makes jobs any more; what is still under way is answered into closed mailboxes' last
       delivery. */
    stop_house(process);
    hg_mailbox_fini(&process->house);
    hg_hotkeys_close(&process->hotkeys);
    hg_binds_stop(&process->binds);
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
    hg_log_close();
}

int hg_process_run(const char *conf_path, const struct hg_conf_overrides *overrides)
{
    struct hg_process *process = aligned_alloc(HG_CACHE_LINE, sizeof *process);
    if (process == NULL)
        return EXIT_FAILURE;
    memset(process, 0, sizeof *process);
    process->conf_path = conf_path;
    process->overrides = *overrides;
    pthread_mutex_init(&process->lock, NULL);
    pthread_mutex_init(&process->slot_lock, NULL);
    int rc = set_up(process);
    if (rc == 0) {
        rc = start_threads(process);
        if (rc == 0)
            rc = hg_listeners_start(process->listeners);
        if (rc == 0) {
            arm_tick(process);
            begin_epochs(process);
            arm_gates(process);
            hg_log_info("version=%s workers=%u msg=\"ready\"", PACKAGE_VERSION,
                        process->front.worker_count);
            hg_loop_run(&process->loop);
        }
        stop_threads(process);
    }
    if (rc == 0)
        hg_log_info("msg=\"ended\"");
    tear_down(process);
    pthread_mutex_destroy(&process->slot_lock);
    pthread_mutex_destroy(&process->lock);
    free(process);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
