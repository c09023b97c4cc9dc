// inherit - listening sockets that this process did not open: of its parent, or its predecessor's
// SPDX-License-Identifier: BSD-3-Clause
#include "app/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which socket serves which address ---- */

/* An IPv4 address as the IPv6 address that means the same (RFC 4291, 2.5.5.2). False: it is a unix
   socket. */
static bool as_ipv6(const struct hg_addr *addr, struct in6_addr *ret_ip, in_port_t *ret_port)
{
    if (addr->sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addr->sa;
        *ret_ip = in6->sin6_addr;
        *ret_port = in6->sin6_port;
        return true;
    }
    if (addr->sa.ss_family != AF_INET)
        return false;
    const struct sockaddr_in *in = (const struct sockaddr_in *)&addr->sa;
    memset(ret_ip, 0, sizeof *ret_ip);
    memset(ret_ip->s6_addr + 10, 0xff, 2);
    memcpy(ret_ip->s6_addr + 12, &in->sin_addr, 4);
    *ret_port = in->sin_port;
    return true;
}

static bool same_path(const struct hg_addr *a, const struct hg_addr *b)
{
    char left[HG_ADDR_TEXT], right[HG_ADDR_TEXT];
    return a->sa.ss_family == AF_UNIX && b->sa.ss_family == AF_UNIX &&
           strcmp(hg_addr_text(a, left), hg_addr_text(b, right)) == 0;
}

static bool is_any_ipv4(const struct in6_addr *ip)
{
    static const uint8_t any[16] = {[10] = 0xff, [11] = 0xff};
    return memcmp(ip, any, sizeof any) == 0;
}

enum hg_inherit_fit hg_inherit_fit(const struct hg_inherited *socket, const struct hg_addr *want)
{
    struct in6_addr have_ip, want_ip;
    in_port_t have_port, want_port;
    if (!as_ipv6(&socket->addr, &have_ip, &have_port) || !as_ipv6(want, &want_ip, &want_port))
        return same_path(&socket->addr, want) ? HG_INHERIT_FIT_EXACT : HG_INHERIT_FIT_NONE;
    bool same_ip = memcmp(&have_ip, &want_ip, sizeof have_ip) == 0;
    if (want_port == 0)
        return same_ip ? HG_INHERIT_FIT_PORT : HG_INHERIT_FIT_NONE;
    if (have_port != want_port)
        return HG_INHERIT_FIT_NONE;
    if (same_ip)
        return HG_INHERIT_FIT_EXACT;
    return socket->both_families && IN6_IS_ADDR_UNSPECIFIED(&have_ip) && is_any_ipv4(&want_ip)
               ? HG_INHERIT_FIT_WILDCARD
               : HG_INHERIT_FIT_NONE;
}

/* A predecessor says what a socket is for; of a parent's only an address tells, and an entry
   without a port of its own takes none. */
static bool may_take(const struct hg_inherit *inherit, const struct hg_inherited *socket,
                     enum hg_inherit_purpose purpose, enum hg_inherit_fit fit)
{
    if (inherit->from_parent)
        return fit > HG_INHERIT_FIT_PORT;
    return fit > HG_INHERIT_FIT_NONE && socket->purpose == purpose;
}

static void take(struct hg_inherited *socket, enum hg_inherit_fit fit, struct hg_inherit_share *ret)
{
    if (socket->fd >= 0)
        *ret = (struct hg_inherit_share){socket->fd, socket->keeps_file};
    else if (fit == HG_INHERIT_FIT_WILDCARD)
        ret->fd = -EALREADY;
    socket->fd = -1;
}

void hg_inherit_take(struct hg_inherit *inherit, enum hg_inherit_purpose purpose,
                     const struct hg_addr *wants, size_t count, struct hg_inherit_share *ret)
{
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct hg_inherit_share){-ENOENT, false};
    for (int fit = HG_INHERIT_FIT_EXACT; fit > HG_INHERIT_FIT_NONE; fit--) {
        for (size_t i = 0; i < count; i++) {
            for (unsigned s = 0; s < inherit->count && ret[i].fd == -ENOENT; s++) {
                struct hg_inherited *socket = &inherit->sockets[s];
                if ((int)hg_inherit_fit(socket, &wants[i]) == fit &&
                    may_take(inherit, socket, purpose, (enum hg_inherit_fit)fit))
                    take(socket, (enum hg_inherit_fit)fit, &ret[i]);
            }
        }
    }
}

struct hg_inherited *hg_inherit_left(struct hg_inherit *inherit)
{
    for (unsigned s = 0; s < inherit->count; s++)
        if (inherit->sockets[s].fd >= 0)
            return &inherit->sockets[s];
    return NULL;
}

void hg_inherit_close(struct hg_inherit *inherit)
{
    struct hg_inherited *socket;
    while ((socket = hg_inherit_left(inherit)) != NULL) {
        close(socket->fd);
        socket->fd = -1;
    }
}

/* ---- taking them over ---- */

int hg_inherit_add(struct hg_inherit *inherit, int fd, enum hg_inherit_purpose purpose,
                   const char *name, char why[512])
{
    struct hg_inherited *to = &inherit->sockets[inherit->count];
    int type = 0, accepts = 0, only_ipv6 = 1;
    socklen_t len = sizeof type, accepts_len = sizeof accepts, only_len = sizeof only_ipv6;
    if (inherit->count == HG_INHERIT_MAX) {
        snprintf(why, 512, "too many sockets (accepted: %d)", HG_INHERIT_MAX);
        return -E2BIG;
    }
    memset(to, 0, sizeof *to);
    to->addr.len = sizeof to->addr.sa;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &accepts_len) != 0 ||
        getsockname(fd, (struct sockaddr *)&to->addr.sa, &to->addr.len) != 0) {
        int rc = -errno;
        snprintf(why, 512, "descriptor %d '%.60s' is no socket: %s", fd, name, strerror(-rc));
        return rc;
    }
    if (type != SOCK_STREAM || !accepts) {
        snprintf(why, 512,
                 "descriptor %d '%.60s' is the wrong kind of socket (accepted: a listening stream "
                 "socket, that is ListenStream= and Accept=no)",
                 fd, name);
        return -EINVAL;
    }
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return -errno;
    if (to->addr.sa.ss_family == AF_INET6 &&
        getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, &only_len) == 0)
        to->both_families = only_ipv6 == 0;
    to->fd = fd;
    to->purpose = purpose;
    snprintf(to->name, sizeof to->name, "%s", name);
    inherit->count++;
    return 0;
}

static bool parse_number(const char *text, long max, long *ret)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > max)
        return false;
    *ret = value;
    return true;
}

int hg_inherit_count(const char *listen_pid, const char *listen_fds, long pid, char why[512])
{
    long meant, count;
    if (listen_pid == NULL || listen_fds == NULL)
        return 0;
    if (!parse_number(listen_pid, INT32_MAX, &meant)) {
        snprintf(why, 512, "LISTEN_PID is no process id: '%.60s'", listen_pid);
        return -EINVAL;
    }
    if (meant != pid)
        return 0;
    if (!parse_number(listen_fds, HG_INHERIT_MAX, &count)) {
        snprintf(why, 512, "LISTEN_FDS is out of range: '%.60s' (accepted: 0 to %d)", listen_fds,
                 HG_INHERIT_MAX);
        return -EINVAL;
    }
    return (int)count;
}

/* The next name of a list with colons between; what is missing is "unknown", as systemd has it. */
static void next_name(const char **names, char ret[HG_INHERIT_NAME_BYTES])
{
    const char *from = *names;
    if (from == NULL) {
        snprintf(ret, HG_INHERIT_NAME_BYTES, "unknown");
        return;
    }
    size_t len = strcspn(from, ":");
    snprintf(ret, HG_INHERIT_NAME_BYTES, "%.*s", (int)(len < 60 ? len : 60), from);
    *names = from[len] == ':' ? from + len + 1 : NULL;
}

int hg_inherit_from_parent(struct hg_inherit *inherit, char why[512])
{
    const char *names = getenv("LISTEN_FDNAMES");
    char name[HG_INHERIT_NAME_BYTES];
    int count = hg_inherit_count(getenv("LISTEN_PID"), getenv("LISTEN_FDS"), (long)getpid(), why);
    int rc = count < 0 ? count : 0;
    inherit->from_parent = count > 0;
    for (int i = 0; i < count && rc == 0; i++) {
        next_name(&names, name);
        rc = hg_inherit_add(inherit, HG_INHERIT_FIRST_FD + i, HG_INHERIT_ANY, name, why);
        if (rc == 0)
            inherit->sockets[i].keeps_file = true;
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return rc;
}
