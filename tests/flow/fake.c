// fake - a memcached server in the hands of a test, on the test's own thread
// SPDX-License-Identifier: BSD-3-Clause
#include "fake.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "proto/opcode.h"
#include "proto/status.h"

#define HEAD 24

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

void fake_start(struct fake *fake)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(fake->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int one = 1;
    socklen_t len = sizeof in;
    fake->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(fake->fd >= 0, "socket");
    setsockopt(fake->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    must(bind(fake->fd, (struct sockaddr *)&in, sizeof in) == 0, "bind");
    must(listen(fake->fd, 64) == 0, "listen");
    must(getsockname(fake->fd, (struct sockaddr *)&in, &len) == 0, "getsockname");
    fake->port = ntohs(in.sin_port);
    snprintf(fake->address, sizeof fake->address, "127.0.0.1:%u", fake->port);
}

static void set_up(struct fake *fake)
{
    memset(fake, 0, sizeof *fake);
    for (int i = 0; i < FAKE_CONNS; i++)
        fake->conns[i].fd = -1;
    fake->requests = calloc(FAKE_REQUESTS, sizeof *fake->requests);
    must(fake->requests != NULL, "calloc");
}

void fake_open(struct fake *fake, uint16_t port)
{
    set_up(fake);
    fake->port = port;
    fake_start(fake);
}

void fake_open_unix(struct fake *fake, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    set_up(fake);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    unlink(path);
    fake->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(fake->fd >= 0, "socket");
    must(bind(fake->fd, (struct sockaddr *)&un, sizeof un) == 0, "bind");
    must(listen(fake->fd, 64) == 0, "listen");
    snprintf(fake->address, sizeof fake->address, "unix:%s", path);
}

void fake_hang_up(struct fake *fake, int conn)
{
    struct fake_conn *c = &fake->conns[conn];
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    *c = (struct fake_conn){.fd = -1, .ended = true, .count = c->count};
}

void fake_stop(struct fake *fake)
{
    if (fake->fd >= 0)
        close(fake->fd);
    fake->fd = -1;
    for (int i = 0; i < FAKE_CONNS; i++)
        fake_hang_up(fake, i);
}

void fake_close(struct fake *fake)
{
    fake_stop(fake);
    free(fake->requests);
}

int fake_live(const struct fake *fake)
{
    int live = 0;
    for (int i = 0; i < FAKE_CONNS; i++)
        live += fake->conns[i].fd >= 0 && !fake->conns[i].ended;
    return live;
}

/* Notes as whom a request comes; a login's value is: nothing, 0, user, 0, password. */
static void note_user(struct fake *fake, struct fake_request *r, const uint8_t *value)
{
    const char *user = fake->conns[r->conn].user;
    if (r->opcode == HG_OPCODE_SASL_AUTH) {
        must(r->value_len > 2 && memchr(value + 1, 0, r->value_len - 1) != NULL, "no PLAIN");
        user = (const char *)value + 1;
    }
    snprintf(r->user, sizeof r->user, "%s", user);
}

/* Cuts one whole request out of what a connection sent. */
static bool cut(struct fake *fake, int conn)
{
    struct fake_conn *c = &fake->conns[conn];
    if (c->have < HEAD)
        return false;
    must(c->in[0] == 0x80, "not a request");
    size_t key = hg_get_u16(c->in + 2), extras = c->in[4], body = hg_get_u32(c->in + 8);
    if (c->have < HEAD + body)
        return false;
    must(fake->count < FAKE_REQUESTS && key < FAKE_KEY && extras <= 32, "too much for the fake");
    struct fake_request *r = &fake->requests[fake->count++];
    *r = (struct fake_request){.conn = conn,
                               .opcode = c->in[1],
                               .opaque = hg_get_u32(c->in + 12),
                               .cas = hg_get_u64(c->in + 16),
                               .extras_len = (uint32_t)extras,
                               .value_len = (uint32_t)(body - key - extras)};
    memcpy(r->extras, c->in + HEAD, extras);
    memcpy(r->key, c->in + HEAD + extras, key);
    for (size_t i = HEAD + extras + key; i < HEAD + body; i++)
        r->value_sum += c->in[i];
    note_user(fake, r, c->in + HEAD + extras + key);
    c->have -= HEAD + body;
    memmove(c->in, c->in + HEAD + body, c->have);
    c->count++;
    if (r->opcode == HG_OPCODE_NOOP && !fake->keeps_noops) {
        fake_obey(fake, r);
        fake->count--;
        return true;
    }
    if (fake->automatic || (fake->lets_in && r->opcode == HG_OPCODE_SASL_AUTH))
        fake_obey(fake, r);
    return true;
}

static void pump_conn(struct fake *fake, int conn)
{
    struct fake_conn *c = &fake->conns[conn];
    while (c->fd >= 0 && !c->deaf && !c->ended) {
        if (c->cap - c->have < 65536) {
            c->cap = c->cap * 2 + 131072;
            c->in = realloc(c->in, c->cap);
            must(c->in != NULL, "realloc");
        }
        ssize_t n = recv(c->fd, c->in + c->have, c->cap - c->have, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            c->ended = true;
            return;
        }
        c->have += (size_t)n;
        while (cut(fake, conn)) {
        }
    }
}

void fake_pump(struct fake *fake)
{
    while (fake->fd >= 0) {
        bool is_full = fake->most > 0 && fake_live(fake) >= fake->most;
        if (is_full && fake->waits)
            break;
        int fd = accept4(fake->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            break;
        if (is_full) {
            close(fd);
            continue;
        }
        int conn = 0, one = 1;
        while (fake->conns[conn].fd >= 0)
            must(++conn < FAKE_CONNS, "too many connections for the fake");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fake->conns[conn] = (struct fake_conn){.fd = fd};
        fake->accepted++;
    }
    for (int i = 0; i < FAKE_CONNS; i++)
        pump_conn(fake, i);
}

struct fake_request *fake_find(struct fake *fake, const char *key)
{
    for (size_t i = fake->count; i-- > 0;) {
        if (!fake->requests[i].answered && strcmp(fake->requests[i].key, key) == 0)
            return &fake->requests[i];
    }
    return NULL;
}

size_t fake_encode(uint8_t *out, uint8_t opcode, uint16_t status, uint32_t opaque, uint64_t cas,
                   const void *extras, size_t extras_len, const void *value, size_t value_len)
{
    memset(out, 0, HEAD);
    out[0] = 0x81;
    out[1] = opcode;
    out[4] = (uint8_t)extras_len;
    hg_put_u16(out + 6, status);
    hg_put_u32(out + 8, (uint32_t)(extras_len + value_len));
    hg_put_u32(out + 12, opaque);
    hg_put_u64(out + 16, cas);
    if (extras_len > 0)
        memcpy(out + HEAD, extras, extras_len);
    if (value_len > 0)
        memcpy(out + HEAD + extras_len, value, value_len);
    return HEAD + extras_len + value_len;
}

void fake_say(struct fake *fake, int conn, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0 && fake->conns[conn].fd >= 0) {
        ssize_t n = send(fake->conns[conn].fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* the peer has gone */
        at += n;
        len -= (size_t)n;
    }
}

void fake_answer(struct fake *fake, struct fake_request *request, uint16_t status,
                 const char *value)
{
    bool has_flags =
        status == 0 && (request->opcode == HG_OPCODE_GET || request->opcode == HG_OPCODE_GAT);
    uint8_t flags[4] = {0, 0, 0, 7};
    size_t len = strlen(value);
    uint8_t *out = malloc(HEAD + 4 + len);
    must(out != NULL, "malloc");
    size_t n = fake_encode(out, request->opcode, status, request->opaque, 99, flags,
                           has_flags ? 4 : 0, value, len);
    fake_say(fake, request->conn, out, n);
    request->answered = true;
    free(out);
}

static void log_in(struct fake *fake, struct fake_request *request)
{
    struct fake_conn *c = &fake->conns[request->conn];
    bool refused =
        strcmp(request->user, fake->refused) == 0 || (fake->one_login && c->user[0] != '\0');
    if (!refused)
        memcpy(c->user, request->user, sizeof c->user);
    fake_answer(fake, request, refused ? HG_STATUS_AUTH_ERROR : 0, refused ? "no" : "");
}

void fake_obey(struct fake *fake, struct fake_request *request)
{
    if (request->opcode == HG_OPCODE_SASL_AUTH) {
        log_in(fake, request);
        return;
    }
    char value[FAKE_KEY + 2] = "";
    if (request->opcode == HG_OPCODE_GET || request->opcode == HG_OPCODE_GAT)
        snprintf(value, sizeof value, "v:%s", request->key);
    if (request->opcode == HG_OPCODE_INCREMENT || request->opcode == HG_OPCODE_DECREMENT) {
        uint8_t out[HEAD + 8], number[8] = {0, 0, 0, 0, 0, 0, 0, 42};
        size_t n = fake_encode(out, request->opcode, 0, request->opaque, 99, NULL, 0, number,
                               sizeof number);
        fake_say(fake, request->conn, out, n);
        request->answered = true;
        return;
    }
    fake_answer(fake, request, 0, value);
}
