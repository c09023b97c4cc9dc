// sock - addresses and sockets: parse, listen, connect, set up
// SPDX-License-Identifier: BSD-3-Clause
#include "io/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int split_port(const char *text, uint16_t *ret_port)
{
    if (*text < '0' || *text > '9')
        return -EINVAL;
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    if (*end != '\0' || port > 65535)
        return -EINVAL;
    *ret_port = (uint16_t)port;
    return 0;
}

int hg_addr_split(const char *text, uint16_t default_port, char host[256], uint16_t *ret_port,
                  bool *ret_unix)
{
    *ret_unix = strncmp(text, "unix:", 5) == 0 || text[0] == '/';
    *ret_port = default_port;
    const char *from = text, *colon = NULL;
    size_t len = strlen(text);
    if (*ret_unix) {
        if (text[0] != '/')
            from = text + 5;
        len = strlen(from);
        if (from[0] != '/' || len >= sizeof(((struct sockaddr_un *)0)->sun_path))
            return -EINVAL;
    } else if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (close == NULL)
            return -EINVAL;
        from = text + 1;
        len = (size_t)(close - from);
        if (close[1] == ':')
            colon = close + 1;
        else if (close[1] != '\0')
            return -EINVAL;
    } else {
        colon = strrchr(text, ':');
        if (colon != NULL && strchr(text, ':') != colon)
            return -EINVAL; /* an IPv6 address wants brackets */
        if (colon != NULL)
            len = (size_t)(colon - text);
    }
    if (len == 0 || len >= 256)
        return -EINVAL;
    if (!*ret_unix && colon == NULL && default_port == 0)
        return -EINVAL;
    memcpy(host, from, len);
    host[len] = '\0';
    return colon != NULL ? split_port(colon + 1, ret_port) : 0;
}

static void unix_addr(const char *path, struct hg_addr *ret_addr)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&ret_addr->sa;
    memset(ret_addr, 0, sizeof *ret_addr);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, strlen(path) + 1);
    ret_addr->len = sizeof *un;
}

static int look_up(const char *text, uint16_t default_port, int flags, struct hg_addr *ret_addr)
{
    char host[256], service[8];
    uint16_t port;
    bool is_unix;
    int rc = hg_addr_split(text, default_port, host, &port, &is_unix);
    if (rc != 0)
        return rc;
    if (is_unix) {
        unix_addr(host, ret_addr);
        return 0;
    }
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, service, &hints, &found) != 0 || found == NULL)
        return flags & AI_NUMERICHOST ? -EINVAL : -ENOENT;
    memset(ret_addr, 0, sizeof *ret_addr);
    memcpy(&ret_addr->sa, found->ai_addr, found->ai_addrlen);
    ret_addr->len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int hg_addr_parse(const char *text, uint16_t default_port, struct hg_addr *ret_addr)
{
    return look_up(text, default_port, AI_NUMERICHOST, ret_addr);
}

int hg_addr_resolve(const char *text, uint16_t default_port, struct hg_addr *ret_addr)
{
    return look_up(text, default_port, 0, ret_addr);
}

const char *hg_addr_text(const struct hg_addr *addr, char out[HG_ADDR_TEXT])
{
    char host[INET6_ADDRSTRLEN];
    if (addr->sa.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&addr->sa;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(out, HG_ADDR_TEXT, "%s:%u", host, ntohs(in->sin_port));
    } else if (addr->sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addr->sa;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(out, HG_ADDR_TEXT, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_un *un = (const struct sockaddr_un *)&addr->sa;
        size_t path_bytes = addr->len > offsetof(struct sockaddr_un, sun_path)
                                ? addr->len - offsetof(struct sockaddr_un, sun_path)
                                : 0;
        snprintf(out, HG_ADDR_TEXT, "unix:%.*s", (int)strnlen(un->sun_path, path_bytes),
                 un->sun_path);
    }
    return out;
}

bool hg_addr_local(const struct hg_addr *addr)
{
    if (addr->sa.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&addr->sa;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (addr->sa.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&addr->sa)->sin6_addr);
    return addr->sa.ss_family == AF_UNIX;
}

/* Removes the file of a unix socket on which nobody listens any more. 0 or -EADDRINUSE. */
static int clear_stale_unix(const struct hg_addr *addr)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&addr->sa;
    struct stat st;
    if (lstat(un->sun_path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return -EADDRINUSE;
    /* Not to wait for one who does not accept: he has it all the same. */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (const struct sockaddr *)&addr->sa, addr->len) == 0 ? 0 : errno;
    close(fd);
    if (rc != ECONNREFUSED)
        return -EADDRINUSE;
    return unlink(un->sun_path) == 0 ? 0 : -errno;
}

int hg_sock_listen(const struct hg_addr *addr, int backlog, unsigned unix_mode)
{
    int family = addr->sa.ss_family;
    if (family == AF_UNIX) {
        int rc = clear_stale_unix(addr);
        if (rc != 0)
            return rc;
    }
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int one = 1;
    if (family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    int rc = bind(fd, (const struct sockaddr *)&addr->sa, addr->len);
    if (rc == 0 && family == AF_UNIX)
        rc = chmod(((const struct sockaddr_un *)&addr->sa)->sun_path, unix_mode);
    if (rc == 0)
        rc = listen(fd, backlog);
    if (rc == 0)
        return fd;
    rc = -errno;
    close(fd);
    return rc;
}

int hg_sock_connect(const struct hg_addr *addr, bool *ret_done)
{
    int fd = socket(addr->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (const struct sockaddr *)&addr->sa, addr->len);
    if (rc == 0 || errno == EINPROGRESS) {
        *ret_done = rc == 0;
        return fd;
    }
    rc = -errno;
    close(fd);
    return rc;
}

void hg_sock_tune(int fd, unsigned keepalive_s)
{
    int one = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 || keepalive_s == 0)
        return;
    int idle = (int)keepalive_s, interval = idle / 3 > 0 ? idle / 3 : 1, count = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

int hg_sock_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        return -errno;
    return -error;
}
