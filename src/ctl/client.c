// client - one connection of headgatectl: requests and replies of the binary protocol, in turn
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "io/sock.h"
#include "proto/wire.h"

#define STOP_LOOK_MS 200

struct hg_ctl_client {
    int fd;
    struct hg_tls *tls; /* NULL: plain */
    int timeout_ms;
    uint32_t opaque; /* of the last request */
    uint8_t *body;   /* of the last reply */
    size_t room;
    const char *why;
};

/* ---- connecting ---- */

static int set_blocking_off(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static const volatile sig_atomic_t *stop;

void hg_ctl_client_stop_on(const volatile sig_atomic_t *flag)
{
    stop = flag;
}

/* 0, or -ETIMEDOUT, or -EINTR if it is to stop, or -errno of poll. */
static int wait_for(int fd, short events, uint64_t until_us)
{
    for (;;) {
        uint64_t now_us = hg_now_us();
        if (stop != NULL && *stop != 0)
            return -EINTR;
        if (now_us >= until_us)
            return -ETIMEDOUT;
        struct pollfd p = {fd, events, 0};
        uint64_t wait_ms = (until_us - now_us + 999) / 1000;
        if (stop != NULL && wait_ms > STOP_LOOK_MS)
            wait_ms = STOP_LOOK_MS; /* a signal just before poll does not end it */
        int n = poll(&p, 1, (int)wait_ms);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

/* File descriptor or -errno. */
static int connect_to(const struct sockaddr *sa, socklen_t len)
{
    uint64_t until_us = hg_now_us() + (uint64_t)HG_CTL_TIMEOUT_MS * 1000;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = set_blocking_off(fd);
    if (rc == 0 && connect(fd, sa, len) != 0)
        rc = -errno;
    if (rc == -EINPROGRESS || rc == -EINTR) {
        rc = wait_for(fd, POLLOUT, until_us);
        if (rc == 0)
            rc = hg_sock_error(fd);
    }
    if (rc != 0) {
        close(fd);
        return rc;
    }
    hg_sock_tune(fd, 0);
    return fd;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof un.sun_path)
        return -EINVAL;
    strcpy(un.sun_path, path);
    return connect_to((const struct sockaddr *)&un, sizeof un);
}

/* The first address of the host that answers; the error of the last one if none does. */
static int connect_host(const char *host, uint16_t port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char service[8];
    int fd = -ENOENT;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return -ENOENT;
    for (struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next)
        fd = connect_to(at->ai_addr, at->ai_addrlen);
    freeaddrinfo(list);
    return fd;
}

int hg_ctl_client_open(const char *address, struct hg_ctl_client **ret)
{
    char host[256];
    uint16_t port;
    bool is_unix;
    if (hg_addr_split(address, HG_CTL_PORT_DEFAULT, host, &port, &is_unix) != 0)
        return -EINVAL;
    int fd = is_unix ? connect_unix(host) : connect_host(host, port);
    if (fd < 0)
        return fd;
    struct hg_ctl_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        close(fd);
        return -ENOMEM;
    }
    client->fd = fd;
    client->timeout_ms = HG_CTL_TIMEOUT_MS;
    client->why = "no error";
    *ret = client;
    return 0;
}

void hg_ctl_client_free(struct hg_ctl_client *client)
{
    if (client == NULL)
        return;
    hg_tls_free(client->tls);
    close(client->fd);
    free(client->body);
    free(client);
}

void hg_ctl_client_set_timeout(struct hg_ctl_client *client, int timeout_ms)
{
    client->timeout_ms = timeout_ms;
}

const char *hg_ctl_client_why(const struct hg_ctl_client *client)
{
    return client->why;
}

/* ---- requests and replies ---- */

static int fail(struct hg_ctl_client *client, int rc, const char *why)
{
    client->why = why;
    return rc;
}

static int fail_by_system(struct hg_ctl_client *client, int rc)
{
    return fail(client, rc, rc == -ETIMEDOUT ? "no answer in time" : strerror(-rc));
}

/* Bytes, 0 at the end, or -errno. */
static ssize_t move(struct hg_ctl_client *client, uint8_t *at, size_t len, bool out)
{
    if (client->tls != NULL)
        return out ? hg_tls_send(client->tls, at, len) : hg_tls_recv(client->tls, at, len);
    ssize_t n = out ? send(client->fd, at, len, MSG_NOSIGNAL) : recv(client->fd, at, len, 0);
    return n < 0 ? -errno : n;
}

/* Sends or receives all of it before the time is up. */
static int transfer(struct hg_ctl_client *client, uint8_t *at, size_t len, bool out)
{
    uint64_t until_us = hg_now_us() + (uint64_t)client->timeout_ms * 1000;
    while (len > 0) {
        ssize_t n = move(client, at, len, out);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
            continue;
        }
        if (n == 0)
            return fail(client, -ECONNRESET, "connection closed by the server");
        if (n == -EPROTO && client->tls != NULL)
            return fail(client, -EPROTO, hg_tls_why(client->tls));
        if (n != -EAGAIN && n != -EINTR)
            return fail_by_system(client, (int)n);
        int rc = wait_for(client->fd, out ? POLLOUT : POLLIN, until_us);
        if (rc != 0)
            return fail_by_system(client, rc);
    }
    return 0;
}

int hg_ctl_client_secure(struct hg_ctl_client *client, struct hg_tls_ctx *ctx, const char *host)
{
    uint64_t until_us = hg_now_us() + (uint64_t)client->timeout_ms * 1000;
    client->tls = hg_tls_new(ctx, client->fd, host);
    if (client->tls == NULL)
        return fail(client, -ENOMEM, "no memory is left");
    for (;;) {
        enum hg_tls_step step = hg_tls_handshake(client->tls);
        if (step == HG_TLS_DONE)
            return 0;
        if (step == HG_TLS_FAILED)
            return fail(client, -EPROTO, hg_tls_why(client->tls));
        int rc = wait_for(client->fd, step == HG_TLS_WANT_WRITE ? POLLOUT : POLLIN, until_us);
        if (rc != 0)
            return fail_by_system(client, rc);
    }
}

int hg_ctl_client_send(struct hg_ctl_client *client, const struct hg_ctl_request *request)
{
    size_t body = request->extras.len + request->key.len + request->value.len;
    uint8_t *frame = calloc(1, HG_FRAME_HEADER_BYTES + body);
    if (frame == NULL)
        return fail(client, -ENOMEM, "no memory is left");
    client->opaque++;
    frame[0] = HG_MAGIC_REQUEST;
    frame[1] = request->opcode;
    hg_put_u16(frame + 2, (uint16_t)request->key.len);
    frame[4] = (uint8_t)request->extras.len;
    hg_put_u32(frame + 8, (uint32_t)body);
    hg_put_u32(frame + 12, client->opaque);
    uint8_t *at = frame + HG_FRAME_HEADER_BYTES;
    const struct hg_span parts[] = {request->extras, request->key, request->value};
    for (size_t i = 0; i < HG_COUNT_OF(parts); i++) {
        if (parts[i].len > 0)
            memcpy(at, parts[i].at, parts[i].len);
        at += parts[i].len;
    }
    int rc = transfer(client, frame, HG_FRAME_HEADER_BYTES + body, true);
    explicit_bzero(frame, HG_FRAME_HEADER_BYTES + body);
    free(frame);
    return rc;
}

static int make_room(struct hg_ctl_client *client, size_t len)
{
    if (len <= client->room)
        return 0;
    uint8_t *body = realloc(client->body, len);
    if (body == NULL)
        return fail(client, -ENOMEM, "no memory is left");
    client->body = body;
    client->room = len;
    return 0;
}

int hg_ctl_client_receive(struct hg_ctl_client *client, struct hg_ctl_reply *ret)
{
    uint8_t header[HG_FRAME_HEADER_BYTES];
    int rc = transfer(client, header, sizeof header, false);
    if (rc != 0)
        return rc;
    size_t body = hg_get_u32(header + 8), key = hg_get_u16(header + 2), before = header[4] + key;
    if (header[0] != HG_MAGIC_REPLY || before > body || body > HG_CTL_REPLY_MAX)
        return fail(client, -EPROTO, "the answer is not of the memcached binary protocol");
    if (hg_get_u32(header + 12) != client->opaque)
        return fail(client, -EPROTO, "the answer is to another request");
    rc = make_room(client, body);
    if (rc == 0)
        rc = transfer(client, client->body, body, false);
    if (rc != 0)
        return rc;
    *ret = (struct hg_ctl_reply){0};
    ret->status = hg_get_u16(header + 6);
    if (body > 0) {
        ret->extras = hg_span(client->body, header[4]);
        ret->key = hg_span(client->body + header[4], key);
        ret->value = hg_span(client->body + before, body - before);
    }
    return 0;
}

int hg_ctl_client_call(struct hg_ctl_client *client, const struct hg_ctl_request *request,
                       struct hg_ctl_reply *ret)
{
    int rc = hg_ctl_client_send(client, request);
    return rc != 0 ? rc : hg_ctl_client_receive(client, ret);
}
