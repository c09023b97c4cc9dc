// process_signals - signals, and the orderly end: accept no more, finish what is in flight
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/handover.h"
#include "app/notify.h"
#include "app/process.h"
#include "app/process_own.h"
#include "base/clock.h"
#include "base/log.h"

#define DRAIN_CHECK_US 20000

/* ---- the end ---- */

static void on_drain_check(struct hg_timer *timer)
{
    struct hg_process *process = HG_CONTAINER_OF(timer, struct hg_process, drain_timer);
    unsigned open = hg_tlslisten_now(process->tls); /* first: they go on to the workers */
    for (unsigned w = 0; w < process->front.worker_count; w++)
        open += atomic_load(&process->workers[w].load);
    uint64_t now_us = hg_now_us();
    if (open > 0 && now_us >= process->drain_hard_us) {
        process->drain_hard_us = UINT64_MAX;
        for (unsigned w = 0; w < process->front.worker_count; w++)
            hg_worker_begin_drain(&process->workers[w]);
    }
    if (open > 0 && now_us < process->drain_until_us)
        return;
    if (open > 0)
        hg_log_warn("connections=%u msg=\"drain_timeout_s is over: closing what is left\"", open);
    hg_loop_stop(&process->loop);
}

void hg_process_begin_drain(struct hg_process *process)
{
    char text[HG_NOTIFY_BYTES];
    if (atomic_exchange(&process->draining, true))
        return;
    hg_log_info("msg=\"draining: no new connections, finishing what is in flight\"");
    if (!hg_handover_gives_way(process))
        hg_notify_send(hg_notify_stopping(text, "draining"));
    if (hg_handover_shares(process)) /* who has a unix socket needs its file */
        hg_listeners_keep_files(process->listeners);
    hg_listeners_close(process->listeners);
    pthread_mutex_lock(&process->lock);
    uint64_t timeout_us = process->effective->drain_timeout_s * 1000000;
    pthread_mutex_unlock(&process->lock);
    process->drain_until_us = hg_now_us() + timeout_us;
    process->drain_hard_us = hg_now_us() + timeout_us / 2;
    for (unsigned w = 0; w < process->front.worker_count; w++)
        hg_worker_begin_leave(&process->workers[w]);
    if (hg_loop_timer_init(&process->loop, &process->drain_timer, DRAIN_CHECK_US, on_drain_check) !=
        0)
        hg_loop_stop(&process->loop);
}

/* By a signal. */
static void end(struct hg_process *process)
{
    if (process->end_asked) {
        hg_log_warn("msg=\"asked to end a second time: ending at once\"");
        _exit(1);
    }
    process->end_asked = true;
    hg_handover_forbid_return(process);
    hg_process_begin_drain(process);
}

static void on_drain_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_process *process = receiver;
    (void)letter;
    hg_handover_forbid_return(process);
    hg_process_begin_drain(process);
}

void hg_process_ask_drain(struct hg_process *process)
{
    if (atomic_exchange(&process->drain_posted, true))
        return;
    process->drain_letter.deliver = on_drain_letter;
    hg_mailbox_post(&process->mailbox, &process->drain_letter);
}

/* ---- signals ---- */

static void on_reload_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_process *process = receiver;
    char *why = NULL, text[HG_NOTIFY_BYTES];
    (void)letter;
    atomic_store(&process->reload_posted, false);
    hg_notify_send(hg_notify_reloading(text, hg_now_us()));
    if (hg_admin_reload(process, "SIGHUP", &why) != 0)
        hg_log_error("msg=\"reload refused, the old settings stay in force\" why=\"%s\"",
                     why != NULL ? why : "no memory is left");
    hg_notify_send(hg_notify_ready(text, why == NULL ? "serving" : "serving; the reload failed"));
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
    case SIGUSR2:
        hg_process_spawn(process);
        return;
    default:
        end(process);
    }
}

int hg_process_watch_signals(struct hg_process *process)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    static const int ignored[] = {SIGPIPE, SIGCHLD, SIGHUP, SIGUSR1, SIGUSR2};
    /* What the loop does not watch yet, or no more, must not end the process; a successor that
       fails leaves nothing to be waited for. */
    for (size_t i = 0; i < HG_COUNT_OF(ignored); i++)
        signal(ignored[i], SIG_IGN);
    for (size_t i = 0; i < HG_COUNT_OF(numbers); i++) {
        event_assign(&process->signals[i], process->loop.base, numbers[i], EV_SIGNAL | EV_PERSIST,
                     on_signal, process);
        if (event_add(&process->signals[i], NULL) != 0)
            return -ENOMEM;
    }
    return 0;
}
