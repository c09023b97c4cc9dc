// fakenode - a server of a Redis Cluster that says what the test wants
// SPDX-License-Identifier: BSD-3-Clause
//
// Speaks RESP on a free port of 127.0.0.1, in the test's thread: fakenode_pump does what there is
// to do. Logins, scripts and ASKING are accepted; CLUSTER SLOTS is answered by `slots`; everything
// else by what the test has put in line, or else by `usual`.
#ifndef FAKENODE_H
#define FAKENODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKENODE_CONNS 16
#define FAKENODE_LINE  32

struct fakenode_conn {
    int fd; /* -1: none */
    bool asking;
    size_t have;
    char bytes[65536];
};

struct fakenode {
    int fd; /* -1: it does not listen */
    uint16_t port;
    char address[32];
    bool mute;    /* takes requests and does not answer */
    bool hang_up; /* ends the connection instead of answering a request */
    const char *slots, *usual;
    const char *line[FAKENODE_LINE];
    uint32_t line_count;
    uint32_t requests; /* other than those of logins, scripts, and the next two */
    uint32_t askings, slots_asked;
    uint32_t asked_requests; /* requests right behind an ASKING */
    struct fakenode_conn conns[FAKENODE_CONNS];
};

void fakenode_init(struct fakenode *node);
/* Listens, at the port that it had. */
void fakenode_open(struct fakenode *node);
/* Ends everything that it has open. */
void fakenode_close(struct fakenode *node);
void fakenode_pump(struct fakenode *node);
/* The next answer that is not in line yet. */
void fakenode_say(struct fakenode *node, const char *reply);

#endif
