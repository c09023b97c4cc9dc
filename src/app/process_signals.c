// process_signals - signals, and the orderly end: accept no more, finish what is in flight
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/process.h"
#include "app/process_own.h"
#include "base/clock.h"
#include "base/log.h"

#define DRAIN_CHECK_US 20000

/* ---- the end ---- */

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

void hg_process_begin_drain(struct hg_process *process)
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

/* ---- signals ---- */

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
        hg_process_begin_drain(process);
    }
}

int hg_process_watch_signals(struct hg_process *process)
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
