// tls - one connection of TLS: handshake, reading, and sending a queue as few, full records
// SPDX-License-Identifier: BSD-3-Clause
//
// The library reads and writes through a BIO of ours: it sends without SIGPIPE and takes no
// descriptor from the caller. A record that the socket took only in part is kept by the library;
// the queue keeps its bytes until then, and only grows, so that the same bytes are offered again.
#include "io/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "io/tls_own.h"

/* Records without data, as for new keys or a ticket, that one call passes over. */
#define READ_ROUNDS 16

_Static_assert(HG_TLS_RECORD_BYTES == SSL3_RT_MAX_PLAIN_LENGTH, "a record");

struct hg_tls {
    SSL *ssl;
    struct hg_tls_ctx *ctx;
    char *why; /* NULL: nothing failed yet, or memory was out for telling */
    int fd;
    int err; /* of the last call to the system */
    bool at_end, done, failed;
};

/* Where small pieces are joined up to a record. */
static _Thread_local uint8_t record[HG_TLS_RECORD_BYTES];

static int bio_read(BIO *bio, char *to, int bytes)
{
    struct hg_tls *tls = BIO_get_data(bio);
    ssize_t n;
    do
        n = recv(tls->fd, to, (size_t)bytes, 0);
    while (n < 0 && errno == EINTR);
    BIO_clear_retry_flags(bio);
    tls->err = n < 0 ? errno : 0;
    tls->at_end = n == 0;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_read(bio);
    return (int)n;
}

static int bio_write(BIO *bio, const char *from, int bytes)
{
    struct hg_tls *tls = BIO_get_data(bio);
    ssize_t n;
    do
        n = send(tls->fd, from, (size_t)bytes, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    BIO_clear_retry_flags(bio);
    tls->err = n < 0 ? errno : 0;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_write(bio);
    return (int)n;
}

static long bio_ctrl(BIO *bio, int what, long number, void *at)
{
    (void)number;
    (void)at;
    const struct hg_tls *tls = BIO_get_data(bio);
    if (what == BIO_CTRL_EOF)
        return tls->at_end;
    return what == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (bio_method == NULL)
        return;
    BIO_meth_set_read(bio_method, bio_read);
    BIO_meth_set_write(bio_method, bio_write);
    BIO_meth_set_ctrl(bio_method, bio_ctrl);
    BIO_meth_set_create(bio_method, bio_create);
}

/* The name that is announced and demanded. */
static bool name_peer(struct hg_tls *tls, const char *host)
{
    struct in6_addr number;
    bool is_number =
        inet_pton(AF_INET, host, &number) == 1 || inet_pton(AF_INET6, host, &number) == 1;
    if (!is_number && SSL_set_tlsext_host_name(tls->ssl, host) != 1)
        return false;
    if (tls->ctx->peer == HG_TLS_PEER_IGNORED)
        return true;
    X509_VERIFY_PARAM *rules = SSL_get0_param(tls->ssl);
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (is_number)
        return X509_VERIFY_PARAM_set1_ip_asc(rules, host) == 1;
    return X509_VERIFY_PARAM_set1_host(rules, host, 0) == 1;
}

struct hg_tls *hg_tls_new(struct hg_tls_ctx *ctx, int fd, const char *host)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_bio_method);
    struct hg_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL)
        return NULL;
    tls->ctx = hg_tls_ctx_ref(ctx);
    tls->fd = fd;
    tls->ssl = SSL_new(ctx->ssl);
    BIO *bio = bio_method != NULL ? BIO_new(bio_method) : NULL;
    bool ok = tls->ssl != NULL && bio != NULL;
    if (ok) {
        BIO_set_data(bio, tls);
        SSL_set_bio(tls->ssl, bio, bio);
        if (ctx->is_server)
            SSL_set_accept_state(tls->ssl);
        else
            SSL_set_connect_state(tls->ssl);
        ok = host == NULL || name_peer(tls, host);
    } else {
        BIO_free(bio);
    }
    ERR_clear_error();
    if (!ok) {
        hg_tls_free(tls);
        return NULL;
    }
    return tls;
}

void hg_tls_bye(struct hg_tls *tls)
{
    if (!tls->done || tls->failed || (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) != 0)
        return;
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

void hg_tls_free(struct hg_tls *tls)
{
    if (tls == NULL)
        return;
    hg_tls_bye(tls);
    SSL_free(tls->ssl);
    hg_tls_ctx_unref(tls->ctx);
    free(tls->why);
    free(tls);
}

/* Keeps the first reason. */
static void fail(struct hg_tls *tls, const char *reason)
{
    tls->failed = true;
    if (tls->why == NULL)
        tls->why = strdup(reason);
}

static void fail_with(struct hg_tls *tls, int error)
{
    unsigned long code = ERR_peek_error();
    long verdict = SSL_get_verify_result(tls->ssl);
    char text[HG_TLS_WHY_BYTES];
    int reason = ERR_GET_REASON(code);
    if (error == SSL_ERROR_SSL && reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        snprintf(text, sizeof text, "the peer's certificate is refused: %s",
                 X509_verify_cert_error_string(verdict));
    else if (error == SSL_ERROR_SSL && code != 0 && ERR_reason_error_string(code) != NULL)
        snprintf(text, sizeof text, "%s", ERR_reason_error_string(code));
    else if (tls->err != 0)
        snprintf(text, sizeof text, "%s", strerror(tls->err));
    else
        snprintf(text, sizeof text, "the peer closed the connection");
    fail(tls, text);
    ERR_clear_error();
}

enum hg_tls_step hg_tls_handshake(struct hg_tls *tls)
{
    if (tls->failed)
        return HG_TLS_FAILED;
    ERR_clear_error();
    int done = SSL_do_handshake(tls->ssl);
    if (done == 1) {
        tls->done = true;
        return HG_TLS_DONE;
    }
    int error = SSL_get_error(tls->ssl, done);
    if (error == SSL_ERROR_WANT_READ)
        return HG_TLS_WANT_READ;
    if (error == SSL_ERROR_WANT_WRITE)
        return HG_TLS_WANT_WRITE;
    fail_with(tls, error);
    return HG_TLS_FAILED;
}

const char *hg_tls_why(const struct hg_tls *tls)
{
    if (tls->why != NULL)
        return tls->why;
    return tls->failed ? "out of memory" : "nothing failed";
}

bool hg_tls_peer_name(const struct hg_tls *tls, char name[HG_TLS_NAME_BYTES])
{
    X509 *peer = SSL_get0_peer_certificate(tls->ssl);
    if (peer == NULL || tls->ctx->peer == HG_TLS_PEER_IGNORED ||
        SSL_get_verify_result(tls->ssl) != X509_V_OK)
        return false;
    X509_NAME *subject = X509_get_subject_name(peer);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    /* Two names would leave it to chance who that is. */
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return false;
    unsigned char *text = NULL;
    int len =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    bool fits = len > 0 && len < HG_TLS_NAME_BYTES && memchr(text, '\0', (size_t)len) == NULL;
    if (fits) {
        memcpy(name, text, (size_t)len);
        name[len] = '\0';
    }
    OPENSSL_free(text);
    ERR_clear_error();
    return fits;
}

const char *hg_tls_version(const struct hg_tls *tls)
{
    return SSL_get_version(tls->ssl);
}

const char *hg_tls_cipher(const struct hg_tls *tls)
{
    return SSL_get_cipher_name(tls->ssl);
}

/* What a call that moved nothing means: 0 at the end, or -errno. */
static int nothing_moved(struct hg_tls *tls)
{
    int error = SSL_get_error(tls->ssl, 0);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return -EAGAIN;
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    fail_with(tls, error);
    if (error == SSL_ERROR_SYSCALL)
        return tls->err != 0 ? -tls->err : 0;
    return -EPROTO;
}

ssize_t hg_tls_recv(struct hg_tls *tls, void *to, size_t bytes)
{
    if (tls->failed)
        return -EPROTO;
    for (unsigned round = 0; round < READ_ROUNDS; round++) {
        size_t n = 0;
        tls->err = 0;
        ERR_clear_error();
        if (SSL_read_ex(tls->ssl, to, bytes, &n) == 1)
            return (ssize_t)n;
        int err = nothing_moved(tls);
        if (err != -EAGAIN || tls->err != 0)
            return err;
        /* The library has read something that is no data. */
    }
    return -EINTR;
}

size_t hg_tls_pending(const struct hg_tls *tls)
{
    int plain = SSL_pending(tls->ssl);
    if (plain > 0)
        return (size_t)plain;
    return SSL_has_pending(tls->ssl) ? 1 : 0;
}

ssize_t hg_tls_send(struct hg_tls *tls, const void *from, size_t bytes)
{
    size_t n = 0;
    if (tls->failed)
        return -EPIPE;
    ERR_clear_error();
    if (SSL_write_ex(tls->ssl, from, bytes, &n) == 1)
        return (ssize_t)n;
    int err = nothing_moved(tls);
    return err != 0 ? err : -EPIPE;
}

int hg_tls_flush_part(struct hg_tls *tls, struct hg_out *out, size_t bytes)
{
    while (bytes > 0) {
        if (out->broken)
            return -ENOMEM;
        size_t most = bytes < sizeof record ? bytes : sizeof record;
        struct hg_span piece = hg_out_gather(out, record, most);
        if (piece.len == 0) { /* room that was reserved, and nothing put there */
            hg_out_consume(out, 0);
            continue;
        }
        ssize_t n = hg_tls_send(tls, piece.at, piece.len);
        if (n < 0)
            return n == -EAGAIN ? 1 : (int)n;
        hg_out_consume(out, (size_t)n);
        bytes -= (size_t)n;
    }
    return 0;
}

int hg_tls_flush(struct hg_tls *tls, struct hg_out *out)
{
    int rc = 0;
    while (rc == 0 && out->first != NULL) {
        if (out->broken)
            return -ENOMEM;
        if (out->bytes > 0)
            rc = hg_tls_flush_part(tls, out, out->bytes);
        else
            hg_out_consume(out, 0);
    }
    return rc;
}
