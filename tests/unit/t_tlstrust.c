// t_tlstrust - whom each end of TLS trusts: names, authorities, versions, ciphers; files that are
// no papers SPDX-License-Identifier: BSD-3-Clause
#include "tlspair.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_and_the_authority_are_checked),
        cmocka_unit_test(an_expired_or_selfmade_certificate_is_refused),
        cmocka_unit_test(an_old_version_is_refused),
        cmocka_unit_test(old_ciphers_are_refused),
        cmocka_unit_test(client_certificates),
        cmocka_unit_test(names_that_are_none),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(an_encrypted_key_is_refused_unasked),
    };
    return cmocka_run_group_tests(tests, make_papers, drop_papers);
}
