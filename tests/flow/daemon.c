// daemon - a memcached process of the test's own, on a free port of 127.0.0.1
// SPDX-License-Identifier: BSD-3-Clause
#include "daemon.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "rig.h"

/* The kernel gives these to nobody who connects. */
#define PORT_FIRST 20000
#define PORT_COUNT 12000

static const char *program;

/* A port is had by who has a lock on its byte of a file that all tests of a user share, until he
   ends; tests/lib/servers.py does the same. */
static bool lock_port(uint16_t port)
{
    static int file = -1;
    if (file < 0) {
        const char *folder = getenv("TMPDIR");
        char path[DAEMON_PATH_BYTES];
        snprintf(path, sizeof path, "%s/headgate-tests-%u.ports",
                 folder != NULL && *folder != '\0' ? folder : "/tmp", (unsigned)geteuid());
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        assert_true(file >= 0);
    }
    const struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = port, .l_len = 1};
    return fcntl(file, F_SETLK, &lock) == 0;
}

static bool is_free(uint16_t port)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool free = bind(fd, (struct sockaddr *)&in, sizeof in) == 0;
    close(fd);
    return free;
}

uint16_t daemon_free_port(void)
{
    static uint8_t given[PORT_COUNT / 8];
    for (unsigned tries = 0; tries < 2000; tries++) {
        uint16_t dice;
        assert_int_equal(getrandom(&dice, sizeof dice, 0), sizeof dice);
        unsigned at = dice % PORT_COUNT;
        uint16_t port = (uint16_t)(PORT_FIRST + at);
        if ((given[at / 8] >> at % 8 & 1) || !lock_port(port) || !is_free(port))
            continue;
        given[at / 8] |= (uint8_t)(1u << at % 8);
        return port;
    }
    fail_msg("no free port");
    return 0;
}

static bool answers(const struct daemon *daemon)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(daemon->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = connect(fd, (struct sockaddr *)&in, sizeof in) == 0;
    close(fd);
    return ok;
}

/* False: it has ended instead. */
static bool comes_up(const struct daemon *daemon)
{
    uint64_t end_us = bench_deadline();
    while (!answers(daemon)) {
        assert_true(hg_now_us() < end_us);
        if (waitpid(daemon->pid, NULL, WNOHANG) != 0)
            return false;
        poll(NULL, 0, 2);
    }
    return waitpid(daemon->pid, NULL, WNOHANG) == 0;
}

void daemon_await(const struct daemon *daemon)
{
    assert_true(comes_up(daemon));
}

static void launch(struct daemon *daemon)
{
    snprintf(daemon->address, sizeof daemon->address, "127.0.0.1:%u", daemon->port);
    char port[8];
    snprintf(port, sizeof port, "%u", daemon->port);
    daemon->pid = fork();
    assert_true(daemon->pid >= 0);
    if (daemon->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char *user = geteuid() == 0 ? "root" : "nobody"; /* ignored unless root */
        /* While a background thread holds an item, a counter is not written in place. */
        execl(program, "memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "1", "-m", "64",
              "-I", "2m", "-B", "binary", "-o", "no_modern", "-u", user,
              daemon->tls != NULL ? "-Z" : (char *)NULL, "-o", daemon->tls, (char *)NULL);
        _exit(127);
    }
}

void daemon_launch(struct daemon *daemon)
{
    bool any_port = daemon->port == 0;
    /* Somebody else may take a port that was free a moment ago. */
    for (unsigned tries = 0; tries < 5; tries++) {
        if (any_port)
            daemon->port = daemon_free_port();
        launch(daemon);
        if (comes_up(daemon))
            return;
        assert_true(any_port);
    }
    fail_msg("memcached does not start");
}

void daemon_put_down(struct daemon *daemon)
{
    if (daemon->pid <= 0)
        return;
    kill(daemon->pid, SIGCONT);
    kill(daemon->pid, SIGKILL);
    waitpid(daemon->pid, NULL, 0);
    daemon->pid = 0;
}

const char *daemon_find(const char *name, char path[static DAEMON_PATH_BYTES])
{
    const char *dirs = getenv("PATH");
    while (dirs != NULL && *dirs != '\0') {
        size_t len = strcspn(dirs, ":");
        snprintf(path, DAEMON_PATH_BYTES, "%.*s/%s", (int)len, dirs, name);
        if (access(path, X_OK) == 0)
            return path;
        dirs += len + (dirs[len] == ':');
    }
    snprintf(path, DAEMON_PATH_BYTES, "/usr/bin/%s", name);
    return access(path, X_OK) == 0 ? path : NULL;
}

bool daemon_is_there(void)
{
    static char path[DAEMON_PATH_BYTES];
    program = daemon_find("memcached", path);
    return program != NULL;
}

bool daemon_is_installed(void)
{
    if (!daemon_is_there())
        printf("1..0 # SKIP memcached is not installed\n");
    return program != NULL;
}
