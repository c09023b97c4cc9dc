// process_watch - the service manager's watchdog: pinged while every thread shows life
// SPDX-License-Identifier: BSD-3-Clause
//
// This timer is the main thread's sign of life, a worker's are its turns, and housekeeping's are
// the letters that it is sent from here. A ping is due at half the manager's time; if a thread is
// behind then, the next looks come soon, so that one that was merely late costs nothing.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/liveness.h"
#include "app/notify.h"
#include "app/process.h"
#include "app/process_own.h"
#include "base/log.h"

struct hg_watch {
    struct hg_process *process;
    struct hg_timer timer;
    uint64_t interval_us;
    struct hg_liveness liveness;
    struct hg_letter beat_letter;
    _Atomic bool beat_posted;
    _Atomic uint64_t beats; /* of housekeeping */
};

static void on_beat(struct hg_letter *letter, void *receiver)
{
    struct hg_watch *watch = HG_CONTAINER_OF(letter, struct hg_watch, beat_letter);
    (void)receiver;
    atomic_store(&watch->beat_posted, false);
    atomic_fetch_add(&watch->beats, 1);
}

static void ask_house(struct hg_watch *watch)
{
    if (atomic_exchange(&watch->beat_posted, true))
        return;
    watch->beat_letter.deliver = on_beat;
    hg_mailbox_post(&watch->process->house, &watch->beat_letter);
}

/* Housekeeping's first, then the workers'. */
static size_t read_counts(const struct hg_watch *watch, uint64_t counts[HG_LIVENESS_MAX])
{
    const struct hg_process *process = watch->process;
    size_t n = 0;
    counts[n++] = atomic_load(&watch->beats);
    for (unsigned w = 0; w < process->front.worker_count; w++)
        counts[n++] = hg_counter_get(&process->workers[w].turns);
    return n;
}

static void on_watch(struct hg_timer *timer)
{
    struct hg_watch *watch = HG_CONTAINER_OF(timer, struct hg_watch, timer);
    uint64_t counts[HG_LIVENESS_MAX], next_us = watch->interval_us / 2;
    char name[32] = "housekeeping";
    (void)read_counts(watch, counts);
    size_t behind = hg_liveness_look(&watch->liveness, counts);
    if (behind == HG_LIVENESS_NONE) {
        hg_notify_send("WATCHDOG=1");
    } else {
        if (behind > 0)
            snprintf(name, sizeof name, "worker %zu", behind - 1);
        hg_log_warn("thread=\"%s\" msg=\"shows no sign of life: the watchdog is not told that all "
                    "is well\"",
                    name);
        next_us = watch->interval_us / 8;
    }
    ask_house(watch);
    if (hg_loop_timer_arm(&watch->timer, next_us > 0 ? next_us : 1) != 0)
        hg_log_error("msg=\"cannot set the timer of the watchdog\"");
}

int hg_process_begin_watch(struct hg_process *process)
{
    uint64_t counts[HG_LIVENESS_MAX];
    uint64_t us = hg_notify_watchdog_us(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), getpid());
    if (us == 0)
        return 0;
    struct hg_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return -ENOMEM;
    watch->process = process;
    watch->interval_us = us;
    process->watch = watch;
    size_t count = read_counts(watch, counts);
    hg_liveness_init(&watch->liveness, counts, count);
    ask_house(watch);
    int rc = hg_loop_timer_init(&process->loop, &watch->timer, 0, on_watch);
    return rc == 0 ? hg_loop_timer_arm(&watch->timer, us / 2 > 0 ? us / 2 : 1) : rc;
}
