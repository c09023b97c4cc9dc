// takeover - the new side of a hand-over: gets the listening sockets from the running process
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/conf.h"
#include "app/handover.h"
#include "base/log.h"

#define CONNECT_TIMEOUT_S 2    /* room in its queue: it accepts at once, unless it hangs */
#define BYE_TIMEOUT_MS    5000 /* the old one answers at once, unless it is stopped */

static int complain(int rc, const char *what)
{
    fprintf(stderr, "headgate: cannot take over: %s: %s\n", what,
            rc == -ETIMEDOUT         ? "no answer in time"
            : rc == -ECONNRESET      ? "the running process has closed the connection"
            : rc == -EPERM           ? "it is neither this user's nor root's"
            : rc == -EPROTONOSUPPORT ? "it speaks another version of the hand-over"
                                     : strerror(-rc));
    return rc;
}

/* -ENOENT: nobody is there. */
static int connect_to_old(const char *path, int *ret_fd)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = CONNECT_TIMEOUT_S};
    if (strlen(path) >= sizeof addr.sun_path)
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
        connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0) {
        *ret_fd = fd;
        return 0;
    }
    int rc = errno == ECONNREFUSED || errno == ENOENT ? -ENOENT
             : errno == EAGAIN                        ? -ETIMEDOUT
                                                      : -errno;
    close(fd);
    return rc;
}

/* Files the sockets of an offer; those that cannot be are closed. */
static int file(struct hg_inherit *inherit, const struct hg_handover_msg *offer, const int *fds,
                unsigned count)
{
    char why[512];
    int rc = 0;
    for (unsigned i = 0; i < count; i++) {
        enum hg_inherit_purpose purpose = (enum hg_inherit_purpose)offer->purpose[i];
        if (rc == 0)
            rc = hg_inherit_add(inherit, fds[i], purpose, "of the running process", why);
        if (rc != 0)
            close(fds[i]);
        else
            inherit->sockets[inherit->count - 1].keeps_file = offer->keeps_file[i] != 0;
    }
    if (rc != 0)
        fprintf(stderr, "headgate: cannot take over: %s\n", why);
    return rc;
}

static int ask(struct hg_takeover *takeover, struct hg_inherit *inherit)
{
    struct hg_handover_msg msg;
    int fds[HG_INHERIT_MAX];
    unsigned count = 0;
    int rc = hg_handover_peer(takeover->fd, &takeover->peer);
    if (rc == 0)
        rc = hg_handover_say(takeover->fd, HG_HANDOVER_HELLO);
    if (rc == 0)
        rc = hg_handover_await(takeover->fd, HG_HANDOVER_TIMEOUT_MS, &msg, fds, &count);
    if (rc != 0)
        return complain(rc, "asking the running process");
    if (msg.kind == HG_HANDOVER_REFUSE) {
        fprintf(stderr, "headgate: cannot take over: the running process refuses: %s\n", msg.why);
        return -EBUSY;
    }
    takeover->embedded = msg.embedded != 0;
    takeover->drain_ms = msg.drain_ms;
    return file(inherit, &msg, fds, count);
}

int hg_takeover_begin(struct hg_takeover *takeover, const struct hg_conf *conf,
                      struct hg_inherit *inherit)
{
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    takeover->fd = -1;
    if (!hg_handover_path(conf, path, sizeof path)) {
        fprintf(stderr, "headgate: cannot take over: handover_socket is off, or its path is too "
                        "long (accepted: fewer than 108 bytes)\n");
        return -EINVAL;
    }
    int rc = connect_to_old(path, &takeover->fd);
    if (rc == -ENOENT) {
        hg_log_info("socket=%s msg=\"no running process to take over from: starting as usual\"",
                    path);
        return 0;
    }
    if (rc != 0)
        return complain(rc, path);
    if (inherit->count > 0) {
        fprintf(stderr, "headgate: cannot take over: LISTEN_FDS passes sockets already (accepted: "
                        "either --take-over or LISTEN_FDS)\n");
        rc = -EINVAL;
    } else {
        rc = ask(takeover, inherit);
    }
    if (rc != 0)
        hg_takeover_cancel(takeover);
    else
        hg_log_info("pid=%d sockets=%u msg=\"taking over\"", (int)takeover->peer, inherit->count);
    return rc;
}

int hg_takeover_release(struct hg_takeover *takeover)
{
    struct hg_handover_msg msg;
    int fds[HG_INHERIT_MAX];
    unsigned count;
    int timeout_ms = (int)takeover->drain_ms + HG_HANDOVER_TIMEOUT_MS;
    hg_log_info("pid=%d msg=\"waiting for the running process to close its stores\"",
                (int)takeover->peer);
    int rc = hg_handover_say(takeover->fd, HG_HANDOVER_RELEASE);
    if (rc == 0)
        rc = hg_handover_await(takeover->fd, timeout_ms, &msg, fds, &count);
    /* Ended meanwhile: then its stores are closed, too. */
    if (rc == -ECONNRESET || rc == -EPIPE) {
        hg_log_warn("pid=%d msg=\"the running process has ended by itself\"", (int)takeover->peer);
        hg_takeover_cancel(takeover);
        return 0;
    }
    if (rc == 0 && msg.kind != HG_HANDOVER_RELEASED)
        rc = -EPROTO;
    takeover->released = rc == 0;
    return rc != 0 ? complain(rc, "waiting for its stores") : 0;
}

int hg_takeover_done(struct hg_takeover *takeover)
{
    struct hg_handover_msg msg;
    int fds[HG_INHERIT_MAX];
    unsigned count;
    if (takeover->fd < 0)
        return 0;
    int rc = hg_handover_say(takeover->fd, HG_HANDOVER_DONE);
    if (rc == 0)
        rc = hg_handover_await(takeover->fd, BYE_TIMEOUT_MS, &msg, fds, &count);
    hg_takeover_cancel(takeover);
    if ((rc == -EPIPE || rc == -ECONNRESET) && !takeover->released &&
        kill(takeover->peer, 0) == 0) {
        hg_log_error("pid=%d msg=\"cannot take over: the running process has not waited so long, "
                     "and goes on\"",
                     (int)takeover->peer);
        return -ECANCELED;
    }
    if (rc == 0)
        hg_log_info("pid=%d msg=\"taken over\"", (int)takeover->peer);
    else
        hg_log_warn("pid=%d msg=\"taken over, but the old process does not say that it goes: %s\"",
                    (int)takeover->peer, rc == -EPIPE ? "it has ended" : strerror(-rc));
    return 0;
}

void hg_takeover_cancel(struct hg_takeover *takeover)
{
    if (takeover->fd >= 0)
        close(takeover->fd);
    takeover->fd = -1;
}
