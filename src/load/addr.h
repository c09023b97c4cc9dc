// addr - the text of a server's address, and a connected socket from it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_ADDR_H
#define HG_LOAD_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/attr.h"

/* HOST:PORT, [IPV6]:PORT, unix:PATH or /PATH, taken apart. */
struct hg_load_addr {
    bool is_unix;
    char host[256]; /* or the path */
    char port[6];
};

/* False when the text is none of these. Pure. */
HG_MUST_USE bool hg_load_addr_decode(const char *text, struct hg_load_addr *ret_addr);

/* A name is resolved once, not for each connection. */
struct hg_load_endpoint {
    struct sockaddr_storage address;
    socklen_t len;
};

/* NULL, or what went wrong; blocks for the resolver. */
HG_MUST_USE const char *hg_load_addr_resolve(const struct hg_load_addr *addr,
                                             struct hg_load_endpoint *ret_endpoint);

/* A connected, non-blocking socket without Nagle's delay, or -errno; waits up to `timeout_ms`. */
HG_MUST_USE int hg_load_addr_connect(const struct hg_load_endpoint *endpoint, int timeout_ms);

#endif
