// fakenode - a server of a Redis Cluster that says what the test wants
// SPDX-License-Identifier: BSD-3-Clause
#include "fakenode.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void fakenode_open(struct fakenode *node)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(node->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof in;
    int one = 1;
    node->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(setsockopt(node->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(node->fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(node->fd, 64), 0);
    assert_int_equal(getsockname(node->fd, (struct sockaddr *)&in, &len), 0);
    node->port = ntohs(in.sin_port);
    snprintf(node->address, sizeof node->address, "127.0.0.1:%u", node->port);
}

void fakenode_init(struct fakenode *node)
{
    memset(node, 0, sizeof *node);
    for (int i = 0; i < FAKENODE_CONNS; i++)
        node->conns[i].fd = -1;
    node->usual = "+OK\r\n";
    node->slots = "*0\r\n";
    fakenode_open(node);
}

static void hang_up(struct fakenode_conn *conn)
{
    close(conn->fd);
    conn->fd = -1;
}

void fakenode_close(struct fakenode *node)
{
    for (int i = 0; i < FAKENODE_CONNS; i++) {
        if (node->conns[i].fd >= 0)
            hang_up(&node->conns[i]);
    }
    if (node->fd >= 0)
        close(node->fd);
    node->fd = -1;
}

void fakenode_say(struct fakenode *node, const char *reply)
{
    assert_true(node->line_count < FAKENODE_LINE);
    node->line[node->line_count++] = reply;
}

static void reply_to(struct fakenode_conn *conn, const char *reply)
{
    size_t len = strlen(reply);
    if (send(conn->fd, reply, len, MSG_NOSIGNAL) != (ssize_t)len)
        hang_up(conn);
}

static void take(struct fakenode *node, struct fakenode_conn *conn, const char *name)
{
    static const char *const accepted[] = {"AUTH", "SCRIPT", "SELECT", "PING", "READWRITE"};
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        if (strcasecmp(name, accepted[i]) == 0) {
            reply_to(conn, "+OK\r\n");
            return;
        }
    }
    if (strcasecmp(name, "ASKING") == 0) {
        node->askings++;
        conn->asking = true;
        reply_to(conn, "+OK\r\n");
        return;
    }
    if (strcasecmp(name, "CLUSTER") == 0) {
        node->slots_asked++;
        reply_to(conn, node->slots);
        return;
    }
    node->requests++;
    node->asked_requests += conn->asking;
    conn->asking = false;
    if (node->hang_up) {
        hang_up(conn);
    } else if (node->line_count > 0) {
        const char *reply = node->line[0];
        memmove(node->line, node->line + 1, --node->line_count * sizeof node->line[0]);
        reply_to(conn, reply);
    } else {
        reply_to(conn, node->usual);
    }
}

/* Cuts one command out of the bytes; its length, or 0 when it is not whole. */
static size_t cut(const struct fakenode_conn *conn, char name[32])
{
    size_t at = 0;
    char number[16];
    long parts = 1;
    for (long part = -1; part < parts; part++) {
        const char *end = memchr(conn->bytes + at, '\n', conn->have - at);
        if (end == NULL)
            return 0;
        size_t line = (size_t)(end - (conn->bytes + at)) + 1;
        snprintf(number, sizeof number, "%.*s", (int)(line < 15 ? line : 15), conn->bytes + at);
        long n = atol(number + 1);
        at += line;
        if (part < 0) {
            parts = n;
            continue;
        }
        if (conn->have - at < (size_t)n + 2)
            return 0;
        if (part == 0)
            snprintf(name, 32, "%.*s", (int)(n < 31 ? n : 31), conn->bytes + at);
        at += (size_t)n + 2;
    }
    return at;
}

static void serve(struct fakenode *node, struct fakenode_conn *conn)
{
    char name[32];
    size_t len;
    ssize_t n =
        recv(conn->fd, conn->bytes + conn->have, sizeof conn->bytes - conn->have, MSG_DONTWAIT);
    if (n == 0) {
        hang_up(conn);
        return;
    }
    conn->have += n > 0 ? (size_t)n : 0;
    while (!node->mute && conn->fd >= 0 && (len = cut(conn, name)) > 0) {
        memmove(conn->bytes, conn->bytes + len, conn->have - len);
        conn->have -= len;
        take(node, conn, name);
    }
}

void fakenode_pump(struct fakenode *node)
{
    int fd = node->fd < 0 ? -1 : accept(node->fd, NULL, NULL);
    for (int i = 0; i < FAKENODE_CONNS; i++) {
        struct fakenode_conn *conn = &node->conns[i];
        if (conn->fd < 0 && fd >= 0) {
            conn->fd = fd;
            conn->have = 0;
            conn->asking = false;
            fd = -1;
        }
        if (conn->fd >= 0)
            serve(node, conn);
    }
    assert_int_equal(fd, -1); /* else there are too many */
}
