// secure - TLS of a load's connections, and reading and writing with or without it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_SECURE_H
#define HG_LOAD_SECURE_H

#include <sys/types.h>

#include "base/attr.h"
#include "io/tls.h"
#include "load/options.h"

/* What a tenant's connections share; NULL in *ret when it speaks plain. False: `why` has the file
   and the fault. */
HG_MUST_USE bool hg_load_secure_ctx(const struct hg_load_tenant *tenant, struct hg_tls_ctx **ret,
                                    char why[HG_TLS_WHY_BYTES]);
/* The handshake on a connected, non-blocking socket, with a server called `host`; waits up to
   `timeout_ms` for each of its steps. NULL with the reason in `why`. */
HG_MUST_USE struct hg_tls *hg_load_secure(struct hg_tls_ctx *ctx, int fd, const char *host,
                                          int timeout_ms, char *why, size_t why_bytes);

/* send and recv, -1 with errno on failure; `tls` NULL: plain. Reading takes all that is within TLS
   and fits. */
HG_MUST_USE ssize_t hg_load_put(int fd, struct hg_tls *tls, const void *at, size_t len);
HG_MUST_USE ssize_t hg_load_get(int fd, struct hg_tls *tls, void *to, size_t len);

#endif
