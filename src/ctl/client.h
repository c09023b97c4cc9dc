// client - one connection of headgatectl: requests and replies of the binary protocol, in turn
// SPDX-License-Identifier: BSD-3-Clause
//
// Synchronous: each wait is bounded by the time-out. After an error the connection is of no use,
// and hg_ctl_client_why says what happened.
#ifndef HG_CTL_CLIENT_H
#define HG_CTL_CLIENT_H

#include <signal.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "io/tls.h"

#define HG_CTL_PORT_DEFAULT 11211
#define HG_CTL_TIMEOUT_MS   5000
#define HG_CTL_REPLY_MAX    (256u << 20) /* bytes; a longer body is taken for another protocol */

struct hg_ctl_client;

struct hg_ctl_request {
    uint8_t opcode;
    struct hg_span extras, key, value;
};

/* The spans hold until the next reply is received. */
struct hg_ctl_reply {
    uint16_t status;
    struct hg_span extras, key, value;
};

/* Connects to HOST:PORT, HOST, [V6]:PORT, unix:PATH or /PATH; tries every address of a name. 0, or
   -EINVAL (no address), -ENOENT (no such host) or another -errno. */
HG_MUST_USE int hg_ctl_client_open(const char *address, struct hg_ctl_client **ret);
/* From now on through TLS, with a server that is called `host`; before the first request. 0 or
   -errno. */
HG_MUST_USE int hg_ctl_client_secure(struct hg_ctl_client *client, struct hg_tls_ctx *ctx,
                                     const char *host);
void hg_ctl_client_free(struct hg_ctl_client *client);

/* How long an answer may take from now on. */
void hg_ctl_client_set_timeout(struct hg_ctl_client *client, int timeout_ms);

/* 0 or -errno. */
HG_MUST_USE int hg_ctl_client_send(struct hg_ctl_client *client,
                                   const struct hg_ctl_request *request);
/* The next reply to the last request. 0 or -errno. */
HG_MUST_USE int hg_ctl_client_receive(struct hg_ctl_client *client, struct hg_ctl_reply *ret);
/* Both. */
HG_MUST_USE int hg_ctl_client_call(struct hg_ctl_client *client,
                                   const struct hg_ctl_request *request, struct hg_ctl_reply *ret);

/* While this is not 0, whatever would wait fails with -EINTR: for all clients, from now on. */
void hg_ctl_client_stop_on(const volatile sig_atomic_t *flag);

/* What the last error was, for a message: "connection closed by the server". */
const char *hg_ctl_client_why(const struct hg_ctl_client *client);

#endif
