// notify - tells the service manager how the process is doing (sd_notify(3), without its library)
// SPDX-License-Identifier: BSD-3-Clause
#include "app/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

static struct {
    int fd; /* 0: not open */
    struct sockaddr_un addr;
    socklen_t addr_len;
} sink;

/* ---- texts ---- */

int hg_notify_address(const char *text, struct sockaddr_un *ret, socklen_t *ret_len)
{
    size_t len = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof ret->sun_path)
        return -EINVAL;
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    memcpy(ret->sun_path, text, len);
    if (text[0] == '@')
        ret->sun_path[0] = '\0';
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return 0;
}

static bool parse(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    if (text == NULL || text[0] < '0' || text[0] > '9')
        return false;
    *ret = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

uint64_t hg_notify_watchdog_us(const char *usec, const char *watchdog_pid, pid_t pid)
{
    uint64_t us, meant;
    if (!parse(usec, &us))
        return 0;
    if (watchdog_pid != NULL && (!parse(watchdog_pid, &meant) || meant != (uint64_t)pid))
        return 0;
    return us;
}

void hg_notify_succeed(pid_t predecessor)
{
    uint64_t meant;
    char own[24];
    if (!parse(getenv("WATCHDOG_PID"), &meant) || meant != (uint64_t)predecessor)
        return;
    snprintf(own, sizeof own, "%lld", (long long)getpid());
    setenv("WATCHDOG_PID", own, 1);
}

const char *hg_notify_ready(char out[HG_NOTIFY_BYTES], const char *status)
{
    snprintf(out, HG_NOTIFY_BYTES, "READY=1\nSTATUS=%s", status);
    return out;
}

const char *hg_notify_reloading(char out[HG_NOTIFY_BYTES], uint64_t now_us)
{
    snprintf(out, HG_NOTIFY_BYTES, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reloading",
             (unsigned long long)now_us);
    return out;
}

const char *hg_notify_stopping(char out[HG_NOTIFY_BYTES], const char *status)
{
    snprintf(out, HG_NOTIFY_BYTES, "STOPPING=1\nSTATUS=%s", status);
    return out;
}

const char *hg_notify_main_pid(char out[HG_NOTIFY_BYTES], pid_t pid)
{
    snprintf(out, HG_NOTIFY_BYTES, "MAINPID=%lld", (long long)pid);
    return out;
}

/* ---- the socket ---- */

void hg_notify_open(void)
{
    const char *text = getenv("NOTIFY_SOCKET");
    if (text == NULL || text[0] == '\0' || sink.fd > 0)
        return;
    if (hg_notify_address(text, &sink.addr, &sink.addr_len) != 0) {
        hg_log_warn("msg=\"NOTIFY_SOCKET is neither a path nor a name that begins with @: the "
                    "service manager is told nothing\"");
        return;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        hg_log_warn("msg=\"cannot make the socket for the service manager: %s\"", strerror(errno));
    sink.fd = fd > 0 ? fd : 0;
}

void hg_notify_close(void)
{
    if (sink.fd > 0)
        close(sink.fd);
    sink.fd = 0;
}

void hg_notify_send(const char *text)
{
    if (sink.fd <= 0)
        return;
    if (sendto(sink.fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&sink.addr,
               sink.addr_len) < 0)
        hg_log_warn("msg=\"the service manager cannot be told: %s\"", strerror(errno));
}
