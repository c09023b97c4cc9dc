// process_house - starts and stops the housekeeping thread
// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>
#include <signal.h>

#include "app/process.h"
#include "app/process_own.h"
#include "base/clock.h"

static void *run_house(void *arg)
{
    struct hg_process *process = arg;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    hg_loop_run(&process->house_loop);
    return NULL;
}

int hg_process_start_house(struct hg_process *process)
{
    int rc = hg_loop_init(&process->house_loop);
    if (rc == 0)
        rc = hg_mailbox_init(&process->house, &process->house_loop, process);
    if (rc == 0)
        rc = hg_hotkeys_open(&process->hotkeys, &process->house, &process->house_loop, hg_now_us());
    if (rc == 0)
        rc = hg_binds_start(&process->binds, process, &process->house_loop);
    if (rc == 0)
        rc = hg_throttles_start(&process->throttles, process, &process->house_loop);
    if (rc == 0)
        rc = hg_backup_start(process);
    if (rc == 0)
        rc = -pthread_create(&process->house_thread, NULL, run_house, process);
    return rc;
}

static void on_house_stop(struct hg_letter *letter, void *receiver)
{
    (void)letter;
    hg_loop_stop(&((struct hg_process *)receiver)->house_loop);
}

void hg_process_stop_house(struct hg_process *process)
{
    struct hg_letter stop = {NULL, on_house_stop};
    hg_mailbox_post(&process->house, &stop);
    pthread_join(process->house_thread, NULL);
}
