// addr - the text of a server's address, and a connected socket from it
// SPDX-License-Identifier: BSD-3-Clause
#include "load/addr.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static bool decode_unix(const char *path, struct hg_load_addr *ret_addr)
{
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return false;
    }
    memset(ret_addr, 0, sizeof *ret_addr);
    ret_addr->is_unix = true;
    memcpy(ret_addr->host, path, len + 1);
    return true;
}

static bool is_port(const char *text)
{
    size_t len = strlen(text);
    return len >= 1 && len <= 5 && strspn(text, "0123456789") == len && atoi(text) >= 1 &&
           atoi(text) <= 65535;
}

bool hg_load_addr_decode(const char *text, struct hg_load_addr *ret_addr)
{
    if (strncmp(text, "unix:", 5) == 0) {
        return decode_unix(text + 5, ret_addr);
    }
    if (text[0] == '/') {
        return decode_unix(text, ret_addr);
    }
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !is_port(colon + 1)) {
        return false;
    }
    const char *host = text;
    size_t len = (size_t)(colon - text);
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    } else if (memchr(host, ':', len) != NULL) {
        return false;
    }
    if (len == 0 || len >= sizeof ret_addr->host) {
        return false;
    }
    memset(ret_addr, 0, sizeof *ret_addr);
    memcpy(ret_addr->host, host, len);
    memcpy(ret_addr->port, colon + 1, strlen(colon + 1));
    return true;
}

const char *hg_load_addr_resolve(const struct hg_load_addr *addr,
                                 struct hg_load_endpoint *ret_endpoint)
{
    memset(ret_endpoint, 0, sizeof *ret_endpoint);
    if (addr->is_unix) {
        struct sockaddr_un *un = (struct sockaddr_un *)&ret_endpoint->address;
        un->sun_family = AF_UNIX;
        memcpy(un->sun_path, addr->host, strlen(addr->host) + 1);
        ret_endpoint->len = sizeof *un;
        return NULL;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(addr->host, addr->port, &hints, &found);
    if (rc != 0) {
        return gai_strerror(rc);
    }
    memcpy(&ret_endpoint->address, found->ai_addr, found->ai_addrlen);
    ret_endpoint->len = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

/* Waits for an unfinished connect. 0 or -errno. */
static int await_connect(int fd, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    int rc;
    do {
        rc = poll(&poll_fd, 1, timeout_ms);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0) {
        return -ETIMEDOUT;
    }
    int error = 0;
    socklen_t len = sizeof error;
    if (rc < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        return -errno;
    }
    return -error;
}

int hg_load_addr_connect(const struct hg_load_endpoint *endpoint, int timeout_ms)
{
    int family = endpoint->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    int rc = 0;
    if (connect(fd, (const struct sockaddr *)&endpoint->address, endpoint->len) != 0) {
        rc = errno == EINPROGRESS ? await_connect(fd, timeout_ms) : -errno;
    }
    if (rc != 0) {
        close(fd);
        return rc;
    }
    if (family != AF_UNIX) {
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return fd;
}
