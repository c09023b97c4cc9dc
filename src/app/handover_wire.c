// handover_wire - what an old and a new process say to each other at a hand-over
// SPDX-License-Identifier: BSD-3-Clause
#include "app/handover_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

int hg_handover_check(const struct hg_handover_msg *msg, size_t len)
{
    if (len < offsetof(struct hg_handover_msg, drain_ms) || msg->magic != HG_HANDOVER_MAGIC)
        return -EPROTO;
    if (msg->version != HG_HANDOVER_VERSION)
        return -EPROTONOSUPPORT;
    if (len != sizeof *msg || msg->kind < HG_HANDOVER_HELLO || msg->kind > HG_HANDOVER_BYE ||
        msg->count > HG_INHERIT_MAX || memchr(msg->why, '\0', sizeof msg->why) == NULL)
        return -EPROTO;
    return 0;
}

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(HG_INHERIT_MAX * sizeof(int))];
};

int hg_handover_send(int fd, struct hg_handover_msg *msg, const int *fds, unsigned count)
{
    union control control;
    struct iovec iov = {msg, sizeof *msg};
    struct msghdr head = {.msg_iov = &iov, .msg_iovlen = 1};
    msg->magic = HG_HANDOVER_MAGIC;
    msg->version = HG_HANDOVER_VERSION;
    msg->count = (uint8_t)count;
    if (count > 0) {
        memset(&control, 0, sizeof control);
        head.msg_control = control.bytes;
        head.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *part = CMSG_FIRSTHDR(&head);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(part), fds, count * sizeof(int));
    }
    return sendmsg(fd, &head, MSG_NOSIGNAL) >= 0 ? 0 : -errno;
}

int hg_handover_say(int fd, enum hg_handover_kind kind)
{
    struct hg_handover_msg msg;
    memset(&msg, 0, sizeof msg);
    msg.kind = (uint16_t)kind;
    return hg_handover_send(fd, &msg, NULL, 0);
}

/* The descriptors that came with a message. */
static unsigned unpack(struct msghdr *head, int fds[HG_INHERIT_MAX])
{
    unsigned count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(head); part != NULL; part = CMSG_NXTHDR(head, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n && count < HG_INHERIT_MAX; i++)
            memcpy(&fds[count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
    }
    return count;
}

int hg_handover_receive(int fd, struct hg_handover_msg *ret, int fds[HG_INHERIT_MAX],
                        unsigned *ret_count)
{
    union control control;
    struct iovec iov = {ret, sizeof *ret};
    struct msghdr head = {.msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof control};
    *ret_count = 0;
    ssize_t n = recvmsg(fd, &head, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    unsigned count = unpack(&head, fds);
    int rc = n == 0 ? -ECONNRESET : hg_handover_check(ret, (size_t)n);
    if (rc == 0 && ((head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || count != ret->count))
        rc = -EPROTO;
    if (rc == 0)
        *ret_count = count;
    for (unsigned i = 0; rc != 0 && i < count; i++)
        close(fds[i]);
    return rc;
}

int hg_handover_await(int fd, int timeout_ms, struct hg_handover_msg *ret, int fds[HG_INHERIT_MAX],
                      unsigned *ret_count)
{
    uint64_t end_us = hg_now_us() + (uint64_t)timeout_ms * 1000;
    for (;;) {
        uint64_t now_us = hg_now_us();
        if (now_us >= end_us)
            return -ETIMEDOUT;
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int ready = poll(&poll_fd, 1, (int)((end_us - now_us + 999) / 1000));
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready <= 0)
            continue;
        int rc = hg_handover_receive(fd, ret, fds, ret_count);
        if (rc != -EAGAIN && rc != -EINTR)
            return rc;
    }
}

int hg_handover_peer(int fd, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return -errno;
    *ret_pid = peer.pid;
    return peer.uid == geteuid() || peer.uid == 0 ? 0 : -EPERM;
}
