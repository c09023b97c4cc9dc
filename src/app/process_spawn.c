// process_spawn - starts the program again, to take over from this process (SIGUSR2)
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "app/process_own.h"
#include "base/log.h"

extern char **environ;

static size_t count(char **argv)
{
    size_t n = 0;
    while (argv[n] != NULL)
        n++;
    return n;
}

/* With default actions for all signals, as after a start by a shell. */
static int start(pid_t *ret_pid, char **argv)
{
    posix_spawnattr_t attr;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int rc = posix_spawnattr_init(&attr);
    if (rc != 0)
        return -rc;
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    rc = posix_spawnp(ret_pid, argv[0], NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    return -rc;
}

void hg_process_spawn(struct hg_process *process)
{
    char **before = process->options->argv;
    size_t argc = count(before);
    char **argv = calloc(argc + 2, sizeof *argv);
    pid_t pid = 0;
    int rc = -ENOMEM;
    if (argv != NULL) {
        memcpy(argv, before, argc * sizeof *argv);
        if (!process->options->take_over)
            argv[argc] = (char *)(uintptr_t) "--take-over";
        rc = start(&pid, argv);
    }
    free(argv);
    if (rc == 0)
        hg_log_info("pid=%d msg=\"started a new process, which is to take over\"", (int)pid);
    else
        hg_log_error("program=%s msg=\"cannot start a new process: %s\"", before[0], strerror(-rc));
}
