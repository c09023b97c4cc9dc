// sock - addresses and sockets: parse, listen, connect, set up
// SPDX-License-Identifier: BSD-3-Clause
//
// An address is "host:port", "[v6]:port", "unix:/path" or "/path". Names are resolved by
// hg_addr_resolve only, which blocks and must not run on a loop.
#ifndef HG_IO_SOCK_H
#define HG_IO_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/attr.h"

struct hg_addr {
    struct sockaddr_storage sa;
    socklen_t len;
};

#define HG_ADDR_TEXT 128

/* Splits `text` into host (brackets removed) and port; a unix path leaves port empty. Accepts a
   missing port when `default_port` is not 0. 0, or -EINVAL when the text is no address. */
HG_MUST_USE int hg_addr_split(const char *text, uint16_t default_port, char host[256],
                              uint16_t *ret_port, bool *ret_unix);

/* Numeric addresses and unix paths only; no look-up. -EINVAL: not numeric. */
HG_MUST_USE int hg_addr_parse(const char *text, uint16_t default_port, struct hg_addr *ret_addr);

/* Resolves a name too; blocks. 0, -EINVAL for bad text, -ENOENT when the name has no address. */
HG_MUST_USE int hg_addr_resolve(const char *text, uint16_t default_port, struct hg_addr *ret_addr);

/* Text of the address: "10.0.0.1:11211", "[::1]:11211", "unix:/path". */
const char *hg_addr_text(const struct hg_addr *addr, char out[HG_ADDR_TEXT]);

/* Is the address reachable from this machine only: loopback or a unix socket? */
bool hg_addr_local(const struct hg_addr *addr);

/* A listening, non-blocking socket; the file of a unix socket is replaced if nobody listens there,
   and gets `unix_mode`. File descriptor or -errno (-EADDRINUSE for a live unix socket too). */
HG_MUST_USE int hg_sock_listen(const struct hg_addr *addr, int backlog, unsigned unix_mode);

/* Starts a non-blocking connect. File descriptor or -errno; *ret_done is true when it is already
   connected. */
HG_MUST_USE int hg_sock_connect(const struct hg_addr *addr, bool *ret_done);

/* Sets TCP_NODELAY, and keepalive when keepalive_s > 0; does nothing to a unix socket. */
void hg_sock_tune(int fd, unsigned keepalive_s);

/* The pending error of a socket as 0 or -errno. */
int hg_sock_error(int fd);

#endif
