// t_tls - TLS over a socket pair: handshakes that succeed and fail, bytes that arrive whole
// SPDX-License-Identifier: BSD-3-Clause
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

static const struct hg_tls_conf *server_conf(void)
{
    static struct hg_tls_conf conf;
    conf = (struct hg_tls_conf){
        .is_server = true, .certificate = server.certificate_file, .key = server.key_file};
    return &conf;
}

static const struct hg_tls_conf *client_conf(void)
{
    static struct hg_tls_conf conf;
    conf = (struct hg_tls_conf){.ca = ca.certificate_file, .peer = HG_TLS_PEER_REQUIRED};
    return &conf;
}

static struct hg_tls_ctx *context(const struct hg_tls_conf *conf)
{
    char why[HG_TLS_WHY_BYTES] = "";
    struct hg_tls_ctx *ctx = NULL;
    int err = hg_tls_ctx_new(conf, &ctx, why);
    if (err != 0)
        print_error("%s\n", why);
    assert_int_equal(err, 0);
    return ctx;
}

static void open_pair(struct pair *p, const struct hg_tls_conf *of_server,
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

static void close_pair(struct pair *p)
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
static void shake(struct pair *p)
{
    for (int turn = 0; turn < 50; turn++)
        for (int i = 0; i < 2; i++)
            if (p->step[i] == HG_TLS_WANT_READ || p->step[i] == HG_TLS_WANT_WRITE)
                p->step[i] = hg_tls_handshake(p->tls[i]);
}

static void assert_shaken(struct pair *p)
{
    shake(p);
    for (int i = 0; i < 2; i++)
        if (p->step[i] == HG_TLS_FAILED)
            print_error("end %d: %s\n", i, hg_tls_why(p->tls[i]));
    assert_int_equal(p->step[SERVER], HG_TLS_DONE);
    assert_int_equal(p->step[CLIENT], HG_TLS_DONE);
}

/* The client refuses, and its reason has `words` in it. */
static void assert_client_refuses(const struct hg_tls_conf *of_server,
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

static void a_handshake_and_a_word_each_way(void **state)
{
    (void)state;
    struct pair p;
    char got[100];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    assert_string_equal(hg_tls_version(p.tls[SERVER]), "TLSv1.3");
    assert_non_null(strstr(hg_tls_cipher(p.tls[SERVER]), "TLS_"));
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), -EAGAIN);
    hg_out_put(&p.out[CLIENT], hg_span("ping", 4));
    assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 4);
    assert_memory_equal(got, "ping", 4);
    hg_out_put(&p.out[SERVER], hg_span("pong!", 5));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 5);
    assert_memory_equal(got, "pong!", 5);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EAGAIN);
    close_pair(&p);
}

static void what_one_read_leaves_is_pending(void **state)
{
    (void)state;
    struct pair p;
    char got[100];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 0);
    hg_out_put(&p.out[CLIENT], hg_span("0123456789", 10));
    assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
    hg_out_put(&p.out[CLIENT], hg_span("abc", 3));
    assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, 4), 4);
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 6);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, 6), 6);
    /* The second record came with the first and waits, undecrypted. */
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 1);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 3);
    assert_int_equal(hg_tls_pending(p.tls[SERVER]), 0);
    close_pair(&p);
}

static void small_replies_become_one_record(void **state)
{
    (void)state;
    struct pair p;
    char got[20000];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EAGAIN); /* the ticket */
    for (int i = 0; i < 100; i++)
        hg_out_put(&p.out[SERVER], hg_span("0123456789012345678901234567890123456789", 40));
    assert_non_null(p.out[SERVER].first->next);
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    /* Read from the socket: 4000 bytes and one head, type and tag. */
    ssize_t n = recv(p.fds[CLIENT], got, sizeof got, MSG_PEEK);
    assert_int_equal(n, 4000 + 5 + 1 + 16);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 4000);
    close_pair(&p);
}

#define STREAM_BYTES (3u << 20)

/* Puts a random piece of the stream into the queue: copied, by reference, or as a view. */
static size_t put_piece(struct pair *p, int end, const uint8_t *all, size_t at, struct hg_prng *r)
{
    static const uint32_t most[] = {3, 100, 5000, 60000};
    size_t n = 1 + hg_prng_below(r, most[hg_prng_below(r, 4)]);
    if (n > STREAM_BYTES - at)
        n = STREAM_BYTES - at;
    struct hg_span span = hg_span(all + at, n);
    uint32_t kind = hg_prng_below(r, 3);
    if (kind == 0) {
        hg_out_put(&p->out[end], span);
    } else if (kind == 1) {
        hg_out_put_view(&p->out[end], span);
        if (hg_prng_below(r, 2) == 0)
            hg_out_keep(&p->out[end]);
    } else {
        struct hg_blob *blob = hg_blob_borrow(&p->blobs, n);
        assert_non_null(blob);
        memcpy(blob->data, span.at, n);
        hg_out_put_blob(&p->out[end], blob, hg_span(blob->data, n));
        hg_blob_unref(blob);
    }
    return n;
}

static void large_streams_both_ways(enum hg_tls_version version, uint64_t seed)
{
    struct pair p;
    struct hg_prng r;
    uint8_t *all[2], *got[2];
    size_t put[2] = {0, 0}, received[2] = {0, 0};
    struct hg_tls_conf of_client = *client_conf();
    of_client.min_version = version;
    r.state = seed;
    open_pair(&p, server_conf(), &of_client, "a.example");
    assert_shaken(&p);
    for (int i = 0; i < 2; i++) {
        all[i] = malloc(STREAM_BYTES);
        got[i] = malloc(STREAM_BYTES);
        for (size_t k = 0; k < STREAM_BYTES; k++)
            all[i][k] = (uint8_t)hg_prng_next(&r);
    }
    for (int idle = 0; received[0] < STREAM_BYTES || received[1] < STREAM_BYTES; idle++) {
        assert_true(idle < 10000000);
        int end = (int)hg_prng_below(&r, 2), peer = 1 - end;
        if (put[end] < STREAM_BYTES && p.out[end].bytes < 200000)
            put[end] += put_piece(&p, end, all[end], put[end], &r);
        if (hg_prng_below(&r, 2) == 0)
            assert_true(hg_tls_flush(p.tls[end], &p.out[end]) >= 0);
        size_t room = 1 + hg_prng_below(&r, 40000);
        if (room > STREAM_BYTES - received[peer])
            room = STREAM_BYTES - received[peer];
        if (room == 0 || hg_prng_below(&r, 3) == 0)
            continue;
        ssize_t n = hg_tls_recv(p.tls[peer], got[peer] + received[peer], room);
        assert_true(n > 0 || n == -EAGAIN);
        if (n > 0)
            received[peer] += (size_t)n;
    }
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(all[i], got[1 - i], STREAM_BYTES);
        free(all[i]);
        free(got[1 - i]);
    }
    close_pair(&p);
}

static void streams_arrive_whole(void **state)
{
    (void)state;
    large_streams_both_ways(HG_TLS_1_2, 1);
    large_streams_both_ways(HG_TLS_1_3, 2);
}

/* A record half sent, then more in the queue, then the rest: nothing twice, nothing lost. */
static void a_full_socket_is_retried_with_more_behind(void **state)
{
    (void)state;
    struct pair p;
    static uint8_t all[400000], got[400000];
    size_t received = 0;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)(i * 31 + (i >> 8));
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    size_t put = 0;
    int result = 0;
    while (result == 0 && put < 200000) {
        hg_out_put(&p.out[SERVER], hg_span(all + put, 1000));
        put += 1000;
        result = hg_tls_flush(p.tls[SERVER], &p.out[SERVER]);
    }
    assert_int_equal(result, 1);
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 1);
    hg_out_put_view(&p.out[SERVER], hg_span(all + put, sizeof all - put));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 1);
    hg_out_keep(&p.out[SERVER]);
    while (received < sizeof got) {
        ssize_t n = hg_tls_recv(p.tls[CLIENT], got + received, sizeof got - received);
        if (n == -EAGAIN) {
            assert_true(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]) >= 0);
            continue;
        }
        assert_true(n > 0);
        received += (size_t)n;
    }
    assert_memory_equal(all, got, sizeof all);
    close_pair(&p);
}

static void the_name_and_the_authority_are_checked(void **state)
{
    (void)state;
    struct pair p;
    struct hg_tls_conf conf = *client_conf();
    static const char *const good[] = {"a.example", "x.wild.example", "127.0.0.1", "::1", NULL};
    for (size_t i = 0; i < HG_COUNT_OF(good); i++) {
        open_pair(&p, server_conf(), &conf, good[i]);
        assert_shaken(&p);
        close_pair(&p);
    }
    assert_client_refuses(server_conf(), &conf, "b.example", "ostname mismatch");
    assert_client_refuses(server_conf(), &conf, "x.y.wild.example", "ostname mismatch");
    assert_client_refuses(server_conf(), &conf, "127.0.0.2", "IP address mismatch");
    conf.ca = other_ca.certificate_file;
    assert_client_refuses(server_conf(), &conf, "a.example", "unable to get local issuer");
    conf.ca = "";
    assert_client_refuses(server_conf(), &conf, "a.example", "unable to get local issuer");
    conf.peer = HG_TLS_PEER_IGNORED;
    open_pair(&p, server_conf(), &conf, "b.example");
    assert_shaken(&p);
    close_pair(&p);
}

static void an_expired_or_selfmade_certificate_is_refused(void **state)
{
    (void)state;
    struct tls_identity old = tls_make(
        &(struct tls_paper){.cn = "a.example", .san = "DNS:a.example", .from_s = -9, .until_s = -2},
        &ca);
    struct tls_identity early = tls_make(
        &(struct tls_paper){.cn = "a.example", .san = "DNS:a.example", .from_s = 900}, &ca);
    struct tls_identity own =
        tls_make(&(struct tls_paper){.cn = "a.example", .san = "DNS:a.example"}, NULL);
    struct hg_tls_conf conf = *server_conf();
    conf.certificate = old.certificate_file;
    conf.key = old.key_file;
    assert_client_refuses(&conf, client_conf(), "a.example", "expired");
    struct hg_tls_ctx *ctx = context(&conf);
    int64_t end = hg_tls_ctx_expires_s(ctx);
    assert_true(end < time(NULL) && end > time(NULL) - 100);
    hg_tls_ctx_unref(ctx);
    conf.certificate = early.certificate_file;
    conf.key = early.key_file;
    assert_client_refuses(&conf, client_conf(), "a.example", "not yet valid");
    conf.certificate = own.certificate_file;
    conf.key = own.key_file;
    assert_client_refuses(&conf, client_conf(), "a.example", "self-signed");
    struct hg_tls_conf trusting = *client_conf();
    trusting.ca = own.certificate_file;
    struct pair p;
    open_pair(&p, &conf, &trusting, "a.example");
    assert_shaken(&p);
    close_pair(&p);
    tls_drop(&old);
    tls_drop(&early);
    tls_drop(&own);
}

static void an_old_version_is_refused(void **state)
{
    (void)state;
    struct pair p;
    struct hg_tls_conf conf = *server_conf();
    conf.min_version = HG_TLS_1_3;
    open_pair(&p, &conf, NULL, NULL);
    SSL_CTX *old = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
    SSL *ssl = SSL_new(old);
    SSL_set_fd(ssl, p.fds[CLIENT]);
    assert_int_equal(SSL_connect(ssl), -1);
    assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_FAILED);
    assert_non_null(strstr(hg_tls_why(p.tls[SERVER]), "unsupported protocol"));
    SSL_free(ssl);
    SSL_CTX_free(old);
    close_pair(&p);
}

static void old_ciphers_are_refused(void **state)
{
    (void)state;
    static const char *const weak[] = {"AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA",
                                       "ECDHE-ECDSA-AES256-SHA384"};
    for (size_t i = 0; i < HG_COUNT_OF(weak); i++) {
        struct pair p;
        open_pair(&p, server_conf(), NULL, NULL);
        SSL_CTX *old = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
        assert_int_equal(SSL_CTX_set_cipher_list(old, weak[i]), 1);
        SSL *ssl = SSL_new(old);
        SSL_set_fd(ssl, p.fds[CLIENT]);
        assert_int_equal(SSL_connect(ssl), -1);
        assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_FAILED);
        assert_non_null(strstr(hg_tls_why(p.tls[SERVER]), "no shared cipher"));
        SSL_free(ssl);
        SSL_CTX_free(old);
        close_pair(&p);
    }
}

static void client_certificates(void **state)
{
    (void)state;
    struct pair p;
    char name[HG_TLS_NAME_BYTES] = "unchanged", got[10];
    struct hg_tls_conf of_server = *server_conf(), of_client = *client_conf();
    of_server.ca = ca.certificate_file;
    for (int required = 0; required < 2; required++) {
        of_server.peer = required ? HG_TLS_PEER_REQUIRED : HG_TLS_PEER_OPTIONAL;
        of_client.certificate = client.certificate_file;
        of_client.key = client.key_file;
        open_pair(&p, &of_server, &of_client, "a.example");
        assert_shaken(&p);
        assert_true(hg_tls_peer_name(p.tls[SERVER], name));
        assert_string_equal(name, "shop");
        close_pair(&p);
        of_client.certificate = of_client.key = NULL;
        open_pair(&p, &of_server, &of_client, "a.example");
        shake(&p);
        assert_int_equal(p.step[SERVER], required ? HG_TLS_FAILED : HG_TLS_DONE);
        if (required) {
            assert_non_null(strstr(hg_tls_why(p.tls[SERVER]), "did not return a certificate"));
            /* With version 1.3 the client hears of it when it reads. */
            assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EPROTO);
            assert_non_null(strstr(hg_tls_why(p.tls[CLIENT]), "certificate required"));
        } else {
            assert_false(hg_tls_peer_name(p.tls[SERVER], name));
        }
        close_pair(&p);
    }
    struct tls_identity stranger = tls_make(&(struct tls_paper){.cn = "shop"}, &other_ca);
    of_client.certificate = stranger.certificate_file;
    of_client.key = stranger.key_file;
    of_server.peer = HG_TLS_PEER_OPTIONAL;
    open_pair(&p, &of_server, &of_client, "a.example");
    shake(&p);
    assert_int_equal(p.step[SERVER], HG_TLS_FAILED);
    assert_non_null(strstr(hg_tls_why(p.tls[SERVER]), "certificate is refused"));
    close_pair(&p);
    tls_drop(&stranger);
}

static void names_that_are_none(void **state)
{
    (void)state;
    static const struct tls_paper papers[] = {
        {.cn = "shop", .cn2 = "root"},
        {.cn = "shop\0.evil", .cn_bytes = 10},
        {.san = "DNS:shop"},
    };
    struct hg_tls_conf of_server = *server_conf(), of_client = *client_conf();
    of_server.ca = ca.certificate_file;
    of_server.peer = HG_TLS_PEER_REQUIRED;
    for (size_t i = 0; i < HG_COUNT_OF(papers); i++) {
        struct pair p;
        char name[HG_TLS_NAME_BYTES] = "unchanged";
        struct tls_identity odd = tls_make(&papers[i], &ca);
        of_client.certificate = odd.certificate_file;
        of_client.key = odd.key_file;
        open_pair(&p, &of_server, &of_client, "a.example");
        assert_shaken(&p);
        assert_false(hg_tls_peer_name(p.tls[SERVER], name));
        assert_string_equal(name, "unchanged");
        close_pair(&p);
        tls_drop(&odd);
    }
}

static void the_end_is_told_with_and_without_farewell(void **state)
{
    (void)state;
    for (int polite = 0; polite < 2; polite++) {
        struct pair p;
        char got[10];
        open_pair(&p, server_conf(), client_conf(), "a.example");
        assert_shaken(&p);
        hg_out_put(&p.out[CLIENT], hg_span("last", 4));
        assert_int_equal(hg_tls_flush(p.tls[CLIENT], &p.out[CLIENT]), 0);
        if (polite)
            hg_tls_bye(p.tls[CLIENT]);
        assert_int_equal(shutdown(p.fds[CLIENT], SHUT_WR), 0);
        assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 4);
        assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 0);
        assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 0);
        /* What the other side still has to say arrives. */
        hg_out_put(&p.out[SERVER], hg_span("fine", 4));
        assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
        assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 4);
        close_pair(&p);
    }
}

static void a_peer_that_is_gone_is_an_error_and_no_signal(void **state)
{
    (void)state;
    struct pair p;
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    close(p.fds[CLIENT]);
    p.fds[CLIENT] = -1;
    hg_out_put(&p.out[SERVER], hg_span("hello", 5));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), -EPIPE);
    assert_non_null(strstr(hg_tls_why(p.tls[SERVER]), "roken pipe"));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), -EPIPE);
    close_pair(&p);
}

static void no_handshake_but_something_else(void **state)
{
    (void)state;
    static const char strange[][32] = {"GET / HTTP/1.1\r\n\r\n", "get a_key_of_some_bytes\r\n",
                                       "\x80\x0a\0\0\0\0\0\0", "\x16\x03\x01\x7f\xff garbage"};
    for (size_t i = 0; i < HG_COUNT_OF(strange); i++) {
        struct pair p;
        open_pair(&p, server_conf(), NULL, NULL);
        assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_WANT_READ);
        assert_true(send(p.fds[CLIENT], strange[i], 24, 0) > 0);
        assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_FAILED);
        assert_true(strlen(hg_tls_why(p.tls[SERVER])) > 5);
        close_pair(&p);
    }
    struct pair p;
    open_pair(&p, server_conf(), NULL, NULL);
    assert_int_equal(shutdown(p.fds[CLIENT], SHUT_WR), 0);
    assert_int_equal(hg_tls_handshake(p.tls[SERVER]), HG_TLS_FAILED);
    assert_string_equal(hg_tls_why(p.tls[SERVER]), "the peer closed the connection");
    close_pair(&p);
}

/* Any byte of a record that is not what was sent ends the connection. */
static void a_changed_byte_is_noticed(void **state)
{
    (void)state;
    struct pair p;
    char raw[200], got[200];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    assert_shaken(&p);
    int fds[2];
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EAGAIN);
    hg_out_put(&p.out[SERVER], hg_span("secret", 6));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    ssize_t n = recv(p.fds[CLIENT], raw, sizeof raw, 0);
    assert_true(n > 10);
    raw[n - 1] ^= 1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(dup2(fds[0], p.fds[CLIENT]), p.fds[CLIENT]);
    assert_int_equal(send(fds[1], raw, (size_t)n, 0), n);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EPROTO);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), -EPROTO);
    close(fds[0]);
    close(fds[1]);
    close_pair(&p);
}

/* A client of the plain library, so that it can do what ours never does. */
static SSL *strange_client(struct pair *p, SSL_CTX *ctx)
{
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, p->fds[CLIENT]);
    for (int turn = 0; turn < 50 && SSL_connect(ssl) != 1; turn++)
        if (p->step[SERVER] != HG_TLS_DONE)
            p->step[SERVER] = hg_tls_handshake(p->tls[SERVER]);
    while (p->step[SERVER] == HG_TLS_WANT_READ)
        p->step[SERVER] = hg_tls_handshake(p->tls[SERVER]);
    assert_int_equal(p->step[SERVER], HG_TLS_DONE);
    return ssl;
}

static void new_keys_again_and_again(void **state)
{
    (void)state;
    struct pair p;
    char got[10];
    open_pair(&p, server_conf(), NULL, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = strange_client(&p, ctx);
    /* 352 KB of them, all there at once. */
    int large = 1 << 20;
    setsockopt(p.fds[CLIENT], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    BIO *socket_bio = BIO_new_socket(p.fds[CLIENT], BIO_NOCLOSE), *memory = BIO_new(BIO_s_mem());
    SSL_set0_wbio(ssl, memory);
    for (unsigned sent = 0; sent < 16000; sent++) {
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(ssl), 1);
    }
    assert_int_equal(SSL_write(ssl, "data", 4), 4);
    char *all;
    long bytes = BIO_get_mem_data(memory, &all), at = 0;
    ssize_t n = -EAGAIN;
    unsigned again = 0;
    while (n == -EAGAIN || n == -EINTR) {
        ssize_t went = 0;
        while (at < bytes && (went = send(p.fds[CLIENT], all + at, (size_t)(bytes - at), 0)) > 0)
            at += went;
        n = hg_tls_recv(p.tls[SERVER], got, sizeof got);
        again += n == -EINTR;
    }
    SSL_set0_wbio(ssl, socket_bio);
    assert_int_equal(n, 4);
    assert_memory_equal(got, "data", 4);
    assert_true(again > 0);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), -EAGAIN);
    hg_out_put(&p.out[SERVER], hg_span("fine", 4));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(SSL_read(ssl, got, sizeof got), 4);
    /* Asked for new keys itself, the server answers while it reads. */
    assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_write(ssl, "more", 4), 4);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), 4);
    hg_out_put(&p.out[SERVER], hg_span("good", 4));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(SSL_read(ssl, got, sizeof got), 4);
    assert_memory_equal(got, "good", 4);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close_pair(&p);
}

static void no_second_handshake(void **state)
{
    (void)state;
    struct pair p;
    char got[10];
    open_pair(&p, server_conf(), NULL, NULL);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    SSL *ssl = strange_client(&p, ctx);
    assert_int_equal(SSL_renegotiate(ssl), 1);
    SSL_do_handshake(ssl);
    assert_int_equal(hg_tls_recv(p.tls[SERVER], got, sizeof got), -EAGAIN);
    assert_int_equal(SSL_do_handshake(ssl), -1);
    assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_NO_RENEGOTIATION);
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close_pair(&p);
}

static void assert_refused(const struct hg_tls_conf *conf, int err, const char *words)
{
    char why[HG_TLS_WHY_BYTES] = "";
    struct hg_tls_ctx *ctx = NULL;
    assert_int_equal(hg_tls_ctx_new(conf, &ctx, why), err);
    assert_null(ctx);
    if (strstr(why, words) == NULL)
        fail_msg("'%s' has no '%s'", why, words);
}

/* The certificate with a letter that no base64 has. */
static const char *spoiled_file(const struct tls_identity *of)
{
    static char path[300];
    char text[8192];
    FILE *from = fopen(of->certificate_file, "r");
    size_t len = fread(text, 1, sizeof text, from);
    fclose(from);
    assert_in_range(len, 200, sizeof text - 1);
    text[120] = '!';
    snprintf(path, sizeof path, "%s.spoiled", of->certificate_file);
    FILE *to = fopen(path, "w");
    assert_int_equal(fwrite(text, 1, len, to), len);
    fclose(to);
    return path;
}

static void bad_files_are_named(void **state)
{
    (void)state;
    char words[200];
    struct hg_tls_conf conf = *server_conf();
    conf.certificate = "/nowhere/a.crt";
    assert_refused(&conf, -ENOENT, "cannot read certificate '/nowhere/a.crt': No such file");
    conf.certificate = "";
    assert_refused(&conf, -EINVAL, "certificate is missing");
    conf.certificate = server.key_file;
    snprintf(words, sizeof words,
             "cannot read certificate '%s': it holds no certificate in PEM form", server.key_file);
    assert_refused(&conf, -EINVAL, words);
    conf.certificate = client.certificate_file;
    snprintf(words, sizeof words, "key '%s' does not belong to the certificate '%s'",
             server.key_file, client.certificate_file);
    assert_refused(&conf, -EINVAL, words);
    conf.certificate = server.certificate_file;
    conf.key = "/nowhere/a.key";
    assert_refused(&conf, -ENOENT, "cannot read key '/nowhere/a.key': No such file");
    conf.key = server.certificate_file;
    snprintf(words, sizeof words, "cannot read key '%s': it holds no private key in PEM form",
             server.certificate_file);
    assert_refused(&conf, -EINVAL, words);
    conf.key = server.key_file;
    conf.peer = HG_TLS_PEER_OPTIONAL;
    assert_refused(&conf, -EINVAL, "no file of authorities");
    conf.ca = "/nowhere/ca.crt";
    assert_refused(&conf, -ENOENT, "cannot read authorities '/nowhere/ca.crt': No such file");
    conf.ca = server.key_file;
    snprintf(words, sizeof words,
             "cannot read authorities '%s': it holds no certificate in PEM form", server.key_file);
    assert_refused(&conf, -EINVAL, words);
    conf.ca = spoiled_file(&server);
    assert_refused(&conf, -EINVAL, "cannot read authorities");
    conf.peer = HG_TLS_PEER_IGNORED;
    conf.certificate = conf.ca;
    assert_refused(&conf, -EINVAL, "bad base64 decode");
    unlink(conf.ca);
}

static void an_encrypted_key_is_refused_unasked(void **state)
{
    (void)state;
    char words[200];
    struct tls_identity locked = tls_make(&(struct tls_paper){.cn = "locked"}, &ca);
    FILE *f = fopen(locked.key_file, "w");
    assert_int_equal(PEM_write_PrivateKey(f, locked.key, EVP_aes_128_cbc(),
                                          (const unsigned char *)"word", 4, NULL, NULL),
                     1);
    fclose(f);
    struct hg_tls_conf conf = *server_conf();
    conf.certificate = locked.certificate_file;
    conf.key = locked.key_file;
    snprintf(words, sizeof words, "cannot read key '%s': it is encrypted", locked.key_file);
    assert_refused(&conf, -EINVAL, words);
    tls_drop(&locked);
}

/* A reload: the old context goes on for who has it. */
static void a_connection_outlives_its_context(void **state)
{
    (void)state;
    struct pair p;
    char got[10];
    open_pair(&p, server_conf(), client_conf(), "a.example");
    hg_tls_ctx_unref(p.ctx[SERVER]);
    p.ctx[SERVER] = NULL;
    assert_shaken(&p);
    hg_out_put(&p.out[SERVER], hg_span("still", 5));
    assert_int_equal(hg_tls_flush(p.tls[SERVER], &p.out[SERVER]), 0);
    assert_int_equal(hg_tls_recv(p.tls[CLIENT], got, sizeof got), 5);
    close_pair(&p);
}

static int make_papers(void **state)
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

static int drop_papers(void **state)
{
    (void)state;
    tls_drop(&ca);
    tls_drop(&other_ca);
    tls_drop(&server);
    tls_drop(&client);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_and_a_word_each_way),
        cmocka_unit_test(what_one_read_leaves_is_pending),
        cmocka_unit_test(small_replies_become_one_record),
        cmocka_unit_test(streams_arrive_whole),
        cmocka_unit_test(a_full_socket_is_retried_with_more_behind),
        cmocka_unit_test(the_name_and_the_authority_are_checked),
        cmocka_unit_test(an_expired_or_selfmade_certificate_is_refused),
        cmocka_unit_test(an_old_version_is_refused),
        cmocka_unit_test(old_ciphers_are_refused),
        cmocka_unit_test(client_certificates),
        cmocka_unit_test(names_that_are_none),
        cmocka_unit_test(the_end_is_told_with_and_without_farewell),
        cmocka_unit_test(a_peer_that_is_gone_is_an_error_and_no_signal),
        cmocka_unit_test(no_handshake_but_something_else),
        cmocka_unit_test(a_changed_byte_is_noticed),
        cmocka_unit_test(new_keys_again_and_again),
        cmocka_unit_test(no_second_handshake),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(an_encrypted_key_is_refused_unasked),
        cmocka_unit_test(a_connection_outlives_its_context),
    };
    return cmocka_run_group_tests(tests, make_papers, drop_papers);
}
