// tlshelp - certificates of a test, made when it runs, so that none is ever too old
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TESTS_TLSHELP_H
#define HG_TESTS_TLSHELP_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tls_identity {
    EVP_PKEY *key;
    X509 *certificate;
    char certificate_file[64], key_file[64];
};

/* What a certificate says; texts "" or NULL: nothing. */
struct tls_paper {
    const char *cn, *cn2; /* cn2: a second common name */
    const char *san;      /* "DNS:a.example,IP:127.0.0.1" */
    long from_s, until_s; /* from now on */
    bool is_ca;
    size_t cn_bytes; /* of cn; 0: up to its zero */
};

static inline void tls_write(struct tls_identity *id)
{
    static unsigned count;
    snprintf(id->certificate_file, sizeof id->certificate_file, "/tmp/hgtls.%d.%u.crt",
             (int)getpid(), count);
    snprintf(id->key_file, sizeof id->key_file, "/tmp/hgtls.%d.%u.key", (int)getpid(), count++);
    FILE *f = fopen(id->certificate_file, "w");
    if (f == NULL || PEM_write_X509(f, id->certificate) != 1 || fclose(f) != 0)
        abort();
    f = fopen(id->key_file, "w");
    if (f == NULL || PEM_write_PrivateKey(f, id->key, NULL, NULL, 0, NULL, NULL) != 1 ||
        fclose(f) != 0)
        abort();
}

static inline void tls_extend(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    if (extension == NULL || X509_add_ext(certificate, extension, -1) != 1)
        abort();
    X509_EXTENSION_free(extension);
}

/* Signed by `issuer`, or by itself when that is NULL. */
static inline struct tls_identity tls_make(const struct tls_paper *paper,
                                           const struct tls_identity *issuer)
{
    static long serial = 1;
    struct tls_identity id = {0};
    id.key = EVP_EC_gen("P-256");
    id.certificate = X509_new();
    X509 *x = id.certificate;
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(x), paper->from_s);
    X509_gmtime_adj(X509_getm_notAfter(x), paper->until_s != 0 ? paper->until_s : 3600);
    X509_set_pubkey(x, id.key);
    X509_NAME *name = X509_get_subject_name(x);
    if (paper->cn != NULL)
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)paper->cn,
                                   paper->cn_bytes != 0 ? (int)paper->cn_bytes : -1, -1, 0);
    if (paper->cn2 != NULL)
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)paper->cn2, -1,
                                   -1, 0);
    X509_set_issuer_name(x, issuer != NULL ? X509_get_subject_name(issuer->certificate) : name);
    tls_extend(x, NID_basic_constraints, paper->is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    if (paper->san != NULL)
        tls_extend(x, NID_subject_alt_name, paper->san);
    if (X509_sign(x, issuer != NULL ? issuer->key : id.key, EVP_sha256()) == 0)
        abort();
    tls_write(&id);
    return id;
}

static inline void tls_drop(struct tls_identity *id)
{
    unlink(id->certificate_file);
    unlink(id->key_file);
    X509_free(id->certificate);
    EVP_PKEY_free(id->key);
}

#endif
