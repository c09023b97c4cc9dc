// tls_ctx - the rules of TLS for a listener or an upstream: certificate, trust, versions, ciphers
// SPDX-License-Identifier: BSD-3-Clause
//
// A context never changes once it is made; new files mean a new one, and connections keep theirs.
// The keys of session tickets live in it, so that a ticket is worth nothing after a reload: who was
// trusted by the old authority shows his certificate to the new one.
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/tls_own.h"

/* Version 1.2: fresh keys for every connection and authenticated encryption, nothing else. The
   suites of version 1.3 are all of that kind. */
#define CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

/* One ticket for a connection: a client comes back with one at a time. */
#define TICKETS 1
/* So long a ticket spares a client the whole handshake, and the check of its certificate. */
#define TICKET_S 3600

/* An encrypted key is refused: nobody is there to be asked. `arg`: whether it was (bool), or NULL.
 */
static int no_passphrase(char *to, int bytes, int for_writing, void *arg)
{
    (void)to;
    (void)bytes;
    (void)for_writing;
    if (arg != NULL)
        *(bool *)arg = true;
    return -1;
}

/* Whether an error means that there was nothing of the kind that was looked for. */
static bool is_absence(unsigned long code)
{
    int reason = ERR_GET_REASON(code);
    return code == 0 || (ERR_GET_LIB(code) == ERR_LIB_PEM && reason == PEM_R_NO_START_LINE) ||
           (ERR_GET_LIB(code) == ERR_LIB_X509 && (reason == X509_R_NO_CERTIFICATE_OR_CRL_FOUND ||
                                                  reason == X509_R_NO_CERTIFICATE_FOUND)) ||
           reason == ERR_R_UNSUPPORTED; /* of the decoders of keys */
}

/* The first error says what is wrong, later ones only who could not go on. */
static int explain(char why[HG_TLS_WHY_BYTES], const char *what, const char *file)
{
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    bool is_key = strcmp(what, "key") == 0;
    if (reason == NULL || is_absence(code))
        snprintf(why, HG_TLS_WHY_BYTES, "cannot read %s '%.160s': it holds no %s in PEM form", what,
                 file, is_key ? "private key" : "certificate");
    else
        snprintf(why, HG_TLS_WHY_BYTES, "cannot read %s '%.160s': %s", what, file, reason);
    ERR_clear_error();
    return -EINVAL;
}

/* Whether the file can be opened; OpenSSL's own words for that are no help. */
static int probe(const char *what, const char *file, char why[HG_TLS_WHY_BYTES])
{
    FILE *stream = fopen(file, "re");
    if (stream != NULL) {
        fclose(stream);
        return 0;
    }
    int err = errno;
    snprintf(why, HG_TLS_WHY_BYTES, "cannot read %s '%.160s': %s", what, file, strerror(err));
    return -err;
}

static int load_key(SSL_CTX *ssl, const struct hg_tls_conf *conf, char why[HG_TLS_WHY_BYTES])
{
    FILE *stream = fopen(conf->key, "re");
    if (stream == NULL) {
        int err = errno;
        snprintf(why, HG_TLS_WHY_BYTES, "cannot read key '%.160s': %s", conf->key, strerror(err));
        return -err;
    }
    bool encrypted = false;
    EVP_PKEY *key = PEM_read_PrivateKey(stream, NULL, no_passphrase, &encrypted);
    fclose(stream);
    if (key == NULL) {
        if (!encrypted)
            return explain(why, "key", conf->key);
        ERR_clear_error();
        snprintf(why, HG_TLS_WHY_BYTES, "cannot read key '%.160s': it is encrypted", conf->key);
        return -EINVAL;
    }
    int err = 0;
    if (X509_check_private_key(SSL_CTX_get0_certificate(ssl), key) != 1) {
        snprintf(why, HG_TLS_WHY_BYTES, "key '%.100s' does not belong to the certificate '%.100s'",
                 conf->key, conf->certificate);
        err = -EINVAL;
    } else if (SSL_CTX_use_PrivateKey(ssl, key) != 1) {
        err = explain(why, "key", conf->key);
    }
    EVP_PKEY_free(key);
    ERR_clear_error();
    return err;
}

static bool given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static int load_own(SSL_CTX *ssl, const struct hg_tls_conf *conf, char why[HG_TLS_WHY_BYTES])
{
    if (!given(conf->certificate) && !given(conf->key) && !conf->is_server)
        return 0;
    if (!given(conf->certificate) || !given(conf->key)) {
        snprintf(why, HG_TLS_WHY_BYTES, "%s is missing: certificate and key belong together",
                 given(conf->key) ? "certificate" : "key");
        return -EINVAL;
    }
    int err = probe("certificate", conf->certificate, why);
    if (err != 0)
        return err;
    if (SSL_CTX_use_certificate_chain_file(ssl, conf->certificate) != 1)
        return explain(why, "certificate", conf->certificate);
    return load_key(ssl, conf, why);
}

static int load_trust(SSL_CTX *ssl, const struct hg_tls_conf *conf, char why[HG_TLS_WHY_BYTES])
{
    if (conf->peer == HG_TLS_PEER_IGNORED)
        return 0;
    if (!given(conf->ca)) {
        if (conf->is_server) {
            snprintf(why, HG_TLS_WHY_BYTES,
                     "client certificates are asked for, but no file of authorities is named");
            return -EINVAL;
        }
        SSL_CTX_set_default_verify_paths(ssl);
        return 0;
    }
    int err = probe("authorities", conf->ca, why);
    if (err != 0)
        return err;
    if (SSL_CTX_load_verify_file(ssl, conf->ca) != 1)
        return explain(why, "authorities", conf->ca);
    if (!conf->is_server)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(conf->ca);
    if (names == NULL)
        return explain(why, "authorities", conf->ca);
    SSL_CTX_set_client_CA_list(ssl, names);
    return 0;
}

static int set_rules(SSL_CTX *ssl, const struct hg_tls_conf *conf)
{
    static const unsigned char session_scope[] = "headgate";
    uint64_t options = SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                       SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                       SSL_OP_IGNORE_UNEXPECTED_EOF;
    SSL_CTX_set_options(ssl, options);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* Head and body of a record, and often the next one, by one call to the system. */
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    /* A peer that sends nothing but housekeeping must not keep a reader for ever. */
    SSL_CTX_clear_mode(ssl, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_num_tickets(ssl, TICKETS);
    SSL_CTX_set_timeout(ssl, TICKET_S);
    SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
    int verify = SSL_VERIFY_NONE;
    if (conf->peer != HG_TLS_PEER_IGNORED)
        verify = SSL_VERIFY_PEER;
    if (conf->peer == HG_TLS_PEER_REQUIRED)
        verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ssl, verify, NULL);
    int lowest = conf->min_version == HG_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    bool ok = SSL_CTX_set_min_proto_version(ssl, lowest) == 1 &&
              SSL_CTX_set_cipher_list(ssl, CIPHERS_1_2) == 1 &&
              SSL_CTX_set_session_id_context(ssl, session_scope, sizeof session_scope - 1) == 1;
    return ok ? 0 : -ENOMEM;
}

int hg_tls_ctx_new(const struct hg_tls_conf *conf, struct hg_tls_ctx **ret,
                   char why[HG_TLS_WHY_BYTES])
{
    ERR_clear_error();
    struct hg_tls_ctx *ctx = malloc(sizeof *ctx);
    SSL_CTX *ssl = SSL_CTX_new(conf->is_server ? TLS_server_method() : TLS_client_method());
    int err = -ENOMEM;
    if (ctx != NULL && ssl != NULL)
        err = set_rules(ssl, conf);
    if (err != 0)
        snprintf(why, HG_TLS_WHY_BYTES, "out of memory for TLS");
    if (err == 0)
        err = load_own(ssl, conf, why);
    if (err == 0)
        err = load_trust(ssl, conf, why);
    ERR_clear_error();
    if (err != 0) {
        SSL_CTX_free(ssl);
        free(ctx);
        return err;
    }
    atomic_init(&ctx->refs, 1);
    ctx->ssl = ssl;
    ctx->is_server = conf->is_server;
    ctx->peer = conf->peer;
    *ret = ctx;
    return 0;
}

struct hg_tls_ctx *hg_tls_ctx_ref(struct hg_tls_ctx *ctx)
{
    atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    return ctx;
}

void hg_tls_ctx_unref(struct hg_tls_ctx *ctx)
{
    if (ctx == NULL || atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(ctx->ssl);
    free(ctx);
}

int64_t hg_tls_ctx_expires_s(const struct hg_tls_ctx *ctx)
{
    const X509 *own = SSL_CTX_get0_certificate(ctx->ssl);
    struct tm end;
    if (own == NULL || ASN1_TIME_to_tm(X509_get0_notAfter(own), &end) != 1)
        return INT64_MAX;
    return timegm(&end);
}
