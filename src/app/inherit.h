// inherit - listening sockets that this process did not open: of its parent, or its predecessor's
// SPDX-License-Identifier: BSD-3-Clause
//
// A supervisor passes them by LISTEN_FDS (socket activation, sd_listen_fds(3)), a running Headgate
// by its hand-over socket. Whoever wants to listen asks here first; a socket belongs to the entry
// of the configuration that has its address. Used while the process is set up, on one thread.
#ifndef HG_APP_INHERIT_H
#define HG_APP_INHERIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "io/sock.h"

#define HG_INHERIT_MAX        80 /* 64 entries of listen, admin, and some that nobody wants */
#define HG_INHERIT_NAME_BYTES 64
#define HG_INHERIT_FIRST_FD   3 /* of LISTEN_FDS */

enum hg_inherit_purpose { HG_INHERIT_ANY, HG_INHERIT_LISTEN, HG_INHERIT_ADMIN };

struct hg_inherited {
    int fd; /* -1: taken */
    struct hg_addr addr;
    bool both_families; /* an IPv6 socket that takes IPv4 connections too */
    enum hg_inherit_purpose purpose;
    bool keeps_file; /* the file of a unix socket is not this program's to remove */
    char name[HG_INHERIT_NAME_BYTES]; /* of LISTEN_FDNAMES, for messages */
};

struct hg_inherit {
    struct hg_inherited sockets[HG_INHERIT_MAX];
    unsigned count;
    bool from_parent; /* else from a predecessor */
};

/* How well a socket serves an entry. */
enum hg_inherit_fit {
    HG_INHERIT_FIT_NONE,
    HG_INHERIT_FIT_PORT,     /* the entry takes any port of the address; only a predecessor's */
    HG_INHERIT_FIT_WILDCARD, /* all addresses of IPv4, by a socket for both families */
    HG_INHERIT_FIT_EXACT,    /* the same address; an IPv4 one may be written as IPv6 */
};
enum hg_inherit_fit hg_inherit_fit(const struct hg_inherited *socket, const struct hg_addr *want);

/* Number of descriptors that the variables name for the process `pid`; 0 when they are not there or
   meant for another. -EINVAL with `why`. Pure. */
HG_MUST_USE int hg_inherit_count(const char *listen_pid, const char *listen_fds, long pid,
                                 char why[512]);

/* Takes over what LISTEN_FDS names, and removes LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES from the
   environment. 0, or -errno with `why` when one of them is no listening stream socket. */
HG_MUST_USE int hg_inherit_from_parent(struct hg_inherit *inherit, char why[512]);
/* One more socket; it is closed on exec from now on. 0, or -errno with `why`; then it is still the
   caller's. */
HG_MUST_USE int hg_inherit_add(struct hg_inherit *inherit, int fd, enum hg_inherit_purpose purpose,
                               const char *name, char why[512]);

struct hg_inherit_share {
    int fd; /* the caller's from now on; or -ENOENT: there is none; or -EALREADY: a socket that
               another entry got serves this one too */
    bool keeps_file;
};
/* Finds a socket for each of `count` addresses, best fit first. `ret` has room for `count`. */
void hg_inherit_take(struct hg_inherit *inherit, enum hg_inherit_purpose purpose,
                     const struct hg_addr *wants, size_t count, struct hg_inherit_share *ret);

/* The first that nobody has taken, or NULL. */
struct hg_inherited *hg_inherit_left(struct hg_inherit *inherit);
/* Closes what nobody has taken. */
void hg_inherit_close(struct hg_inherit *inherit);

#endif
