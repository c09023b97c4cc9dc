// secure - TLS of a load's connections, and reading and writing with or without it
// SPDX-License-Identifier: BSD-3-Clause
#include "load/secure.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

bool hg_load_secure_ctx(const struct hg_load_tenant *tenant, struct hg_tls_ctx **ret,
                        char why[HG_TLS_WHY_BYTES])
{
    *ret = NULL;
    if (tenant->tls == NULL) {
        return true;
    }
    if ((tenant->tls_cert == NULL) != (tenant->tls_key == NULL)) {
        snprintf(why, HG_TLS_WHY_BYTES, "--tls-cert and --tls-key go together: %s is missing",
                 tenant->tls_key == NULL ? "--tls-key" : "--tls-cert");
        return false;
    }
    bool system = strcmp(tenant->tls, "system") == 0, any = strcmp(tenant->tls, "any") == 0;
    struct hg_tls_conf conf = {.certificate = tenant->tls_cert,
                               .key = tenant->tls_key,
                               .ca = system || any ? NULL : tenant->tls,
                               .peer = any ? HG_TLS_PEER_IGNORED : HG_TLS_PEER_REQUIRED};
    return hg_tls_ctx_new(&conf, ret, why) == 0;
}

struct hg_tls *hg_load_secure(struct hg_tls_ctx *ctx, int fd, const char *host, int timeout_ms,
                              char *why, size_t why_bytes)
{
    struct hg_tls *tls = hg_tls_new(ctx, fd, host);
    snprintf(why, why_bytes, "out of memory");
    while (tls != NULL) {
        enum hg_tls_step step = hg_tls_handshake(tls);
        if (step == HG_TLS_DONE) {
            return tls;
        }
        struct pollfd wait = {fd, step == HG_TLS_WANT_WRITE ? POLLOUT : POLLIN, 0};
        if (step == HG_TLS_FAILED) {
            snprintf(why, why_bytes, "%s", hg_tls_why(tls));
            break;
        }
        if (poll(&wait, 1, timeout_ms) == 0) {
            snprintf(why, why_bytes, "no answer in time");
            break;
        }
    }
    hg_tls_free(tls);
    return NULL;
}

static ssize_t as_of_system(ssize_t n)
{
    if (n >= 0) {
        return n;
    }
    errno = (int)-n;
    return -1;
}

ssize_t hg_load_put(int fd, struct hg_tls *tls, const void *at, size_t len)
{
    if (tls == NULL) {
        return send(fd, at, len, MSG_NOSIGNAL);
    }
    size_t sent = 0;
    ssize_t n = 0;
    while (sent < len && (n = hg_tls_send(tls, (const char *)at + sent, len - sent)) > 0) {
        sent += (size_t)n;
    }
    return sent > 0 ? (ssize_t)sent : as_of_system(n);
}

ssize_t hg_load_get(int fd, struct hg_tls *tls, void *to, size_t len)
{
    if (tls == NULL) {
        return recv(fd, to, len, 0);
    }
    size_t have = 0;
    ssize_t n;
    do {
        n = hg_tls_recv(tls, (char *)to + have, len - have);
        if (n > 0) {
            have += (size_t)n;
        }
    } while ((n > 0 && have < len && hg_tls_pending(tls) > 0) || n == -EINTR);
    return have > 0 ? (ssize_t)have : as_of_system(n);
}
