// tls - TLS on a socket: contexts that are shared, connections that belong to one thread
// SPDX-License-Identifier: BSD-3-Clause
//
//   hg_tls_ctx    certificate, trust and rules of a listener or an upstream; counted, any thread
//     └ hg_tls    one connection over a non-blocking socket; one thread at a time
//
// The socket stays the caller's: it watches it, and closes it after hg_tls_free. Reading may leave
// decrypted bytes behind that no event will tell of (hg_tls_pending), so a reader goes on until
// -EAGAIN or comes again by itself. Renegotiation is refused, compression is off, an idle
// connection keeps no buffers.
#ifndef HG_IO_TLS_H
#define HG_IO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/span.h"
#include "io/out.h"

#define HG_TLS_RECORD_BYTES 16384 /* of a record at most, before it is encrypted */
#define HG_TLS_WHY_BYTES    256
#define HG_TLS_NAME_BYTES   101 /* of a peer, with the zero behind it */

struct hg_tls_ctx;
struct hg_tls;

enum hg_tls_peer { HG_TLS_PEER_IGNORED, HG_TLS_PEER_OPTIONAL, HG_TLS_PEER_REQUIRED };
enum hg_tls_version { HG_TLS_1_2, HG_TLS_1_3 };

/* Texts are the caller's; "" or NULL: none. */
struct hg_tls_conf {
    bool is_server;
    const char *certificate, *key; /* PEM files; must be there for a server */
    const char *ca;                /* PEM file; none: the system's, for a client */
    enum hg_tls_peer peer;         /* what of the peer's certificate; a client verifies it, unless
                                      it is IGNORED */
    enum hg_tls_version min_version;
};

/* Reads the files. 0, or -errno with a reason that names the file in `why`. */
HG_MUST_USE int hg_tls_ctx_new(const struct hg_tls_conf *conf, struct hg_tls_ctx **ret,
                               char why[HG_TLS_WHY_BYTES]);
struct hg_tls_ctx *hg_tls_ctx_ref(struct hg_tls_ctx *ctx);
/* NULL is allowed. */
void hg_tls_ctx_unref(struct hg_tls_ctx *ctx);

/* When the own certificate is valid no more, in seconds since 1970; INT64_MAX: there is none. One
   that is over is no error. */
int64_t hg_tls_ctx_expires_s(const struct hg_tls_ctx *ctx);

/* A connection on `fd`, which is connected; nothing is sent yet. `host`: of a client, the name that
   the certificate must have, and that is announced; a number is allowed; NULL for a server. NULL
   when memory is out. */
HG_MUST_USE struct hg_tls *hg_tls_new(struct hg_tls_ctx *ctx, int fd, const char *host);
/* Says farewell if the socket takes it: nothing can be sent any more, reading goes on. */
void hg_tls_bye(struct hg_tls *tls);
/* Says farewell, too; NULL is allowed. */
void hg_tls_free(struct hg_tls *tls);

enum hg_tls_step { HG_TLS_DONE, HG_TLS_WANT_READ, HG_TLS_WANT_WRITE, HG_TLS_FAILED };
/* Goes on with the handshake; until it is DONE nothing else may be called but free. */
HG_MUST_USE enum hg_tls_step hg_tls_handshake(struct hg_tls *tls);
/* Why it failed, for a log line; lasts as long as the connection. */
const char *hg_tls_why(const struct hg_tls *tls);
/* Common name of the peer's verified certificate; false: it showed none, or the certificate has no
   common name, several, or one that does not fit. */
bool hg_tls_peer_name(const struct hg_tls *tls, char name[HG_TLS_NAME_BYTES]);

/* "TLSv1.3", and the cipher suite by its name; they last for ever. */
const char *hg_tls_version(const struct hg_tls *tls);
const char *hg_tls_cipher(const struct hg_tls *tls);

/* Like recv: bytes, 0 at the end, with or without a farewell (what is read tells by itself where a
   message ends), -EAGAIN, -EINTR (much came that is no data: call again), or -errno. */
HG_MUST_USE ssize_t hg_tls_recv(struct hg_tls *tls, void *to, size_t bytes);
/* Decrypted bytes that wait inside; or 1 when there are bytes to be decrypted, which may still be
   too few for anything: after -EAGAIN only the socket's events tell more. */
size_t hg_tls_pending(const struct hg_tls *tls);
/* Like send: bytes, -EAGAIN (the same bytes must be offered again, more may follow them), or
   -errno. Not with hg_tls_flush on the same connection. */
HG_MUST_USE ssize_t hg_tls_send(struct hg_tls *tls, const void *from, size_t bytes);
/* hg_out_flush through the connection: 0: all is gone; 1: the socket is full; -errno. */
HG_MUST_USE int hg_tls_flush(struct hg_tls *tls, struct hg_out *out);
/* The same of the first `bytes` that are queued, in records that hold nothing else. After a 1 they
   are asked for again, or more of them. */
HG_MUST_USE int hg_tls_flush_part(struct hg_tls *tls, struct hg_out *out, size_t bytes);

#endif
