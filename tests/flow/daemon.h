// daemon - a memcached process of the test's own, on a free port of 127.0.0.1
// SPDX-License-Identifier: BSD-3-Clause
#ifndef DAEMON_H
#define DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon {
    pid_t pid;
    uint16_t port;   /* 0 before the first launch; kept for the next */
    const char *tls; /* memcached's -o, with which it speaks TLS; NULL: it does not */
    char address[32];
};

/* Is there a memcached to be run? */
bool daemon_is_there(void);
/* False, and a line for the test driver that skips everything, when there is none. */
bool daemon_is_installed(void);
/* Returns when it accepts connections. It dies with the test. */
void daemon_launch(struct daemon *daemon);
/* Kills it, if it runs, and waits for its end. */
void daemon_put_down(struct daemon *daemon);

/* For other kinds of servers: a free port; the path of a program, written to `path`, or NULL; waits
   until the process of daemon->pid accepts connections on its port. */
#define DAEMON_PATH_BYTES 4096
uint16_t daemon_free_port(void);
const char *daemon_find(const char *name, char path[static DAEMON_PATH_BYTES]);
void daemon_await(const struct daemon *daemon);

#endif
