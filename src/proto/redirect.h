// redirect - where a server of a Redis Cluster says that a key lives
// SPDX-License-Identifier: BSD-3-Clause
//
//   MOVED 3999 127.0.0.1:6381      the slot has another owner: ask it, now and from now on
//   ASK 3999 ::1:6381              this key, this once, after ASKING; the slot is being moved
//   MOVED 3999 :6381               at the same host as the server that says so
//
// Pure.
#ifndef HG_PROTO_REDIRECT_H
#define HG_PROTO_REDIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_REDIRECT_HOST_MAX 253
#define HG_REDIRECT_ADDRESS  272 /* room for "[host]:port" and a zero byte */

struct hg_redirect {
    bool ask; /* else moved */
    uint16_t slot;
    char address[HG_REDIRECT_ADDRESS]; /* "host:port" or "[v6]:port" */
};

/* Reads the text of an error reply, without its '-'. `asked` is the address of the server that sent
   it, for hosts that are left out. False: it is no redirect, or one that leads nowhere. */
HG_MUST_USE bool hg_redirect_decode(struct hg_span text, const char *asked,
                                    struct hg_redirect *ret);

/* The address that a redirect names, "HOST:PORT" or ":PORT". False as above. */
HG_MUST_USE bool hg_redirect_target(struct hg_span where, const char *asked,
                                    char ret_address[HG_REDIRECT_ADDRESS]);

/* The address of a server by the host and port that another one gave for it. No host, or an empty
   one: that of `asked`. False: no such address can be ("?", odd characters, too long, port 0, or
   `asked` is a unix socket). */
HG_MUST_USE bool hg_redirect_address(struct hg_span host, uint64_t port, const char *asked,
                                     char ret_address[HG_REDIRECT_ADDRESS]);

#endif
