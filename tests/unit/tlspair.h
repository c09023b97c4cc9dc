// tlspair - two ends of TLS over a socket pair, and the papers that the tests show each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TESTS_UNIT_TLSPAIR_H
#define HG_TESTS_UNIT_TLSPAIR_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "io/tls.h"
#include "tlshelp.h"

static struct tls_identity ca, other_ca, server, client;

/* The two ends, and the contexts they were made of. */
struct pair {
    struct hg_blobs blobs;
    struct hg_out_pool pool;
    struct hg_out out[2];
    struct hg_tls_ctx *ctx[2];
    struct hg_tls *tls[2];
    int fds[2];
    enum hg_tls_step step[2];
};

#define SERVER 0
#define CLIENT 1

static inline const struct hg_tls_conf *server_conf(void)
{
    static struct hg_tls_conf conf;
    conf = (struct hg_tls_conf){
        .is_server = true, .certificate = server.certificate_file, .key = server.key_file};
    return &conf;
}

static inline const struct hg_tls_conf *client_conf(void)
{
    static struct hg_tls_conf conf;
    conf = (struct hg_tls_conf){.ca = ca.certificate_file, .peer = HG_TLS_PEER_REQUIRED};
    return &conf;
}

static inline struct hg_tls_ctx *context(const struct hg_tls_conf *conf)
{
    char why[HG_TLS_WHY_BYTES] = "";
    struct hg_tls_ctx *ctx = NULL;
    int err = hg_tls_ctx_new(conf, &ctx, why);
    if (err != 0)
        print_error("%s\n", why);
    assert_int_equal(err, 0);
    return ctx;
}

static inline void open_pair(struct pair *p, const struct hg_tls_conf *of_server,
                             const struct hg_tls_conf *of_client, const char *host)
{
    int small = 8192;
    memset(p, 0, sizeof *p);
    hg_blobs_init(&p->blobs);
    hg_out_pool_init(&p->pool, &p->blobs);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fds), 0);
    p->ctx[SERVER] = context(of_server);
    p->ctx[CLIENT] = of_client != NULL ? context(of_client) : NULL;
    for (int i = 0; i < 2; i++) {
        setsockopt(p->fds[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        hg_out_init(&p->out[i], &p->pool);
        if (p->ctx[i] != NULL)
            p->tls[i] = hg_tls_new(p->ctx[i], p->fds[i], i == CLIENT ? host : NULL);
        p->step[i] = HG_TLS_WANT_READ;
    }
    assert_non_null(p->tls[SERVER]);
}

static inline void close_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        hg_out_fini(&p->out[i]);
        hg_tls_free(p->tls[i]);
        hg_tls_ctx_unref(p->ctx[i]);
        if (p->fds[i] >= 0)
            close(p->fds[i]);
    }
    assert_int_equal(p->blobs.live_bytes, 0);
    hg_out_pool_fini(&p->pool);
    hg_blobs_fini(&p->blobs);
}

/* Both ends in turn, until each is done or failed; a handshake has few steps. */
static inline void shake(struct pair *p)
{
    for (int turn = 0; turn < 50; turn++)
        for (int i = 0; i < 2; i++)
            if (p->step[i] == HG_TLS_WANT_READ || p->step[i] == HG_TLS_WANT_WRITE)
                p->step[i] = hg_tls_handshake(p->tls[i]);
}

static inline void assert_shaken(struct pair *p)
{
    shake(p);
    for (int i = 0; i < 2; i++)
        if (p->step[i] == HG_TLS_FAILED)
            print_error("end %d: %s\n", i, hg_tls_why(p->tls[i]));
    assert_int_equal(p->step[SERVER], HG_TLS_DONE);
    assert_int_equal(p->step[CLIENT], HG_TLS_DONE);
}

/* The client refuses, and its reason has `words` in it. */
static inline void assert_client_refuses(const struct hg_tls_conf *of_server,
                                         const struct hg_tls_conf *of_client, const char *host,
                                         const char *words)
{
    struct pair p;
    open_pair(&p, of_server, of_client, host);
    shake(&p);
    assert_int_equal(p.step[CLIENT], HG_TLS_FAILED);
    if (strstr(hg_tls_why(p.tls[CLIENT]), words) == NULL)
        fail_msg("'%s' has no '%s'", hg_tls_why(p.tls[CLIENT]), words);
    assert_int_equal(hg_tls_handshake(p.tls[CLIENT]), HG_TLS_FAILED);
    close_pair(&p);
}

static inline int make_papers(void **state)
{
    (void)state;
    ca = tls_make(&(struct tls_paper){.cn = "Test CA", .is_ca = true}, NULL);
    other_ca = tls_make(&(struct tls_paper){.cn = "Other CA", .is_ca = true}, NULL);
    server = tls_make(&(struct tls_paper){.cn = "server",
                                          .san = "DNS:a.example,DNS:*.wild.example,"
                                                 "IP:127.0.0.1,IP:::1"},
                      &ca);
    client = tls_make(&(struct tls_paper){.cn = "shop"}, &ca);
    return 0;
}

static inline int drop_papers(void **state)
{
    (void)state;
    tls_drop(&ca);
    tls_drop(&other_ca);
    tls_drop(&server);
    tls_drop(&client);
    return 0;
}

#endif
