// loginhelp - what the tests of logins share: users made on the spot, and SCRAM's client side
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_LOGINHELP_H
#define HG_TEST_LOGINHELP_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <gsasl.h>

#include "app/secret.h"
#include "app/users.h"

enum { WITH_SHA_1 = 1 << HG_SECRET_SHA_1, WITH_SHA_256 = 1 << HG_SECRET_SHA_256 };

struct test_user {
    const char *name, *password;
    unsigned hashes;     /* set of WITH_... */
    unsigned iterations; /* 0: the default */
};

static inline struct hg_users *loginhelp_users(const struct test_user *rows, size_t count)
{
    static const uint8_t salt[16] = "0123456789abcdef";
    char *text = NULL;
    size_t size;
    struct hg_users *users = NULL;
    if (count == 0) {
        assert_int_equal(hg_users_open(&users), 0);
        return users;
    }
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    fputs("users:\n", to);
    for (size_t i = 0; i < count; i++) {
        fprintf(to, "  - {name: \"%s\", privileges: [all], secrets: [", rows[i].name);
        const char *comma = "";
        for (int h = 0; h < HG_SECRET_HASH_COUNT; h++) {
            struct hg_secret secret;
            char encoded[HG_SECRET_TEXT_MAX];
            if (!(rows[i].hashes & 1u << h))
                continue;
            unsigned iterations =
                rows[i].iterations ? rows[i].iterations : HG_SECRET_ITERATIONS_DEFAULT;
            assert_int_equal(hg_secret_derive((enum hg_secret_hash)h, rows[i].password,
                                              strlen(rows[i].password), salt, sizeof salt,
                                              iterations, &secret),
                             0);
            hg_secret_encode(&secret, encoded);
            fprintf(to, "%s\"%s\"", comma, encoded);
            comma = ", ";
        }
        fputs("]}\n", to);
    }
    assert_int_equal(fclose(to), 0);
    struct hg_conf_errors errs;
    hg_conf_errors_init(&errs);
    int rc = hg_users_parse(text, strlen(text), "users.yaml", &users, &errs);
    hg_conf_errors_print(&errs, stderr);
    assert_int_equal(rc, 0);
    hg_conf_errors_fini(&errs);
    free(text);
    return users;
}

/* libgsasl's client side of one exchange. */
struct test_client {
    Gsasl *gsasl;
    Gsasl_session *session;
};

static inline struct test_client loginhelp_client(const char *mechanism, const char *name,
                                                  const char *password, const char *authzid)
{
    struct test_client client;
    assert_int_equal(gsasl_init(&client.gsasl), GSASL_OK);
    assert_int_equal(gsasl_client_start(client.gsasl, mechanism, &client.session), GSASL_OK);
    assert_int_equal(gsasl_property_set(client.session, GSASL_AUTHID, name), GSASL_OK);
    assert_int_equal(gsasl_property_set(client.session, GSASL_PASSWORD, password), GSASL_OK);
    if (authzid != NULL)
        assert_int_equal(gsasl_property_set(client.session, GSASL_AUTHZID, authzid), GSASL_OK);
    return client;
}

/* The client's answer to `message` (malloc'd, with a zero byte); *ret_rc is libgsasl's. */
static inline char *loginhelp_answer(struct test_client *client, const char *message, size_t len,
                                     int *ret_rc)
{
    char *answer = NULL;
    size_t answer_len = 0;
    *ret_rc = gsasl_step(client->session, message, len, &answer, &answer_len);
    char *copy = calloc(1, answer_len + 1);
    assert_non_null(copy);
    if (answer_len > 0)
        memcpy(copy, answer, answer_len);
    gsasl_free(answer);
    return copy;
}

static inline void loginhelp_done(struct test_client *client)
{
    gsasl_finish(client->session);
    gsasl_done(client->gsasl);
}

#endif
