// redisd - a redis-server of the test's own, on a free port of 127.0.0.1, that writes no file
// SPDX-License-Identifier: BSD-3-Clause
#include "redisd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rig.h"

#define OPTIONS_MAX 16

static char program[DAEMON_PATH_BYTES];

bool redisd_is_installed(void)
{
    if (daemon_find("redis-server", program) != NULL)
        return true;
    printf("1..0 # SKIP redis-server is not installed\n");
    return false;
}

void redisd_launch(struct daemon *daemon, const char *const *options)
{
    if (daemon->port == 0)
        daemon->port = daemon_free_port();
    snprintf(daemon->address, sizeof daemon->address, "127.0.0.1:%u", daemon->port);
    char port[8];
    snprintf(port, sizeof port, "%u", daemon->port);
    const char *args[16 + OPTIONS_MAX] = {"redis-server",
                                          "--bind",
                                          "127.0.0.1",
                                          "--port",
                                          port,
                                          "--save",
                                          "",
                                          "--appendonly",
                                          "no",
                                          "--dir",
                                          "/",
                                          "--loglevel",
                                          "warning",
                                          "--enable-debug-command",
                                          "yes"};
    size_t count = 15;
    for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
        assert_in_range(i, 0, OPTIONS_MAX - 1);
        args[count++] = options[i];
    }
    args[count] = NULL;
    daemon->pid = fork();
    assert_true(daemon->pid >= 0);
    if (daemon->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execv(program, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    daemon_await(daemon);
}
