// notify - tells the service manager how the process is doing (sd_notify(3), without its library)
// SPDX-License-Identifier: BSD-3-Clause
//
// One datagram a message to the unix socket that NOTIFY_SOCKET names; without it nothing is sent.
// A manager that does not listen is no reason to fail: what cannot be sent is lost. May be called
// on any thread once it is open.
#ifndef HG_APP_NOTIFY_H
#define HG_APP_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/attr.h"

#define HG_NOTIFY_BYTES 512 /* of a message */

/* The address that a value of NOTIFY_SOCKET means: a path, or with '@' in front a name in the
   abstract space. 0, or -EINVAL: it is neither, or too long. Pure. */
HG_MUST_USE int hg_notify_address(const char *text, struct sockaddr_un *ret, socklen_t *ret_len);

/* Time of the watchdog in microseconds, from WATCHDOG_USEC, if WATCHDOG_PID names `pid` or nobody.
   0: there is none for this process. Pure. */
uint64_t hg_notify_watchdog_us(const char *usec, const char *watchdog_pid, pid_t pid);
/* What the watchdog expects of `predecessor` it expects of this process from now on: changes
   WATCHDOG_PID. Before there are threads. */
void hg_notify_succeed(pid_t predecessor);

/* The texts of messages, in `out`, which they return. `now_us`: of the monotonic clock. */
const char *hg_notify_ready(char out[HG_NOTIFY_BYTES], const char *status);
const char *hg_notify_reloading(char out[HG_NOTIFY_BYTES], uint64_t now_us);
const char *hg_notify_stopping(char out[HG_NOTIFY_BYTES], const char *status);
const char *hg_notify_main_pid(char out[HG_NOTIFY_BYTES], pid_t pid);

/* Reads NOTIFY_SOCKET. Warns when it cannot be used. */
void hg_notify_open(void);
void hg_notify_close(void);
void hg_notify_send(const char *text);

#endif
