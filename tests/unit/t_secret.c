// t_secret - the published examples of SCRAM, and what is no secret
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include "app/secret.h"

/* RFC 5802 section 5 and RFC 7677 section 3, password "pencil", keys as those exchanges give them.
 */
#define SHA_1_TEXT                                                                                 \
    "SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/fTE="
#define SHA_256_TEXT                                                                               \
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"    \
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

static struct hg_secret decoded(const char *text)
{
    struct hg_secret secret;
    const char *why = NULL;
    assert_int_equal(hg_secret_decode(text, strlen(text), &secret, &why), 0);
    return secret;
}

static void test_the_examples_of_the_rfcs_hold(void **state)
{
    (void)state;
    static const char *const texts[] = {SHA_1_TEXT, SHA_256_TEXT};
    for (size_t i = 0; i < HG_COUNT_OF(texts); i++) {
        struct hg_secret secret = decoded(texts[i]), derived;
        char text[HG_SECRET_TEXT_MAX];
        assert_int_equal(hg_secret_encode(&secret, text), strlen(texts[i]));
        assert_string_equal(text, texts[i]);
        assert_int_equal(hg_secret_derive(secret.hash, "pencil", 6, secret.salt, secret.salt_len,
                                          secret.iterations, &derived),
                         0);
        hg_secret_encode(&derived, text);
        assert_string_equal(text, texts[i]);
        assert_true(hg_secret_verify(&secret, "pencil", 6));
        assert_false(hg_secret_verify(&secret, "pencils", 7));
        assert_false(hg_secret_verify(&secret, "pencil", 5));
        assert_false(hg_secret_verify(&secret, NULL, 0));
    }
    assert_string_equal(hg_secret_hash_name(HG_SECRET_SHA_1), "SCRAM-SHA-1");
    assert_string_equal(hg_secret_hash_name(HG_SECRET_SHA_256), "SCRAM-SHA-256");
}

static void test_a_made_secret_fits_its_password_and_no_other(void **state)
{
    (void)state;
    struct hg_secret first, second;
    char text[HG_SECRET_TEXT_MAX];
    assert_int_equal(hg_secret_make(HG_SECRET_SHA_256, "a\0b", 3, &first), 0);
    assert_int_equal(hg_secret_make(HG_SECRET_SHA_256, "a\0b", 3, &second), 0);
    assert_int_not_equal(memcmp(first.salt, second.salt, 16), 0);
    assert_int_equal(first.iterations, 4096);
    hg_secret_encode(&first, text);
    second = decoded(text);
    assert_true(hg_secret_verify(&second, "a\0b", 3));
    assert_false(hg_secret_verify(&second, "a\0c", 3));
    assert_false(hg_secret_verify(&second, "a", 1));
}

static void test_bounds_are_checked_before_work_is_done(void **state)
{
    (void)state;
    static const uint8_t salt[65];
    struct hg_secret secret;
    assert_int_equal(hg_secret_derive(HG_SECRET_SHA_1, "p", 1, salt, 7, 4096, &secret), -22);
    assert_int_equal(hg_secret_derive(HG_SECRET_SHA_1, "p", 1, salt, 65, 4096, &secret), -22);
    assert_int_equal(hg_secret_derive(HG_SECRET_SHA_1, "p", 1, salt, 16, 4095, &secret), -22);
    assert_int_equal(hg_secret_derive(HG_SECRET_SHA_1, "p", 1, salt, 16, 1000001, &secret), -22);
    assert_int_equal(hg_secret_derive(HG_SECRET_SHA_1, "p", 1, salt, 64, 4096, &secret), 0);
}

static void test_other_texts_are_no_secrets(void **state)
{
    (void)state;
#define SHAPE                                                                                      \
    "secret has another form (accepted: SCRAM-SHA-256$COUNT:SALT$STOREDKEY:SERVERKEY, or "         \
    "SCRAM-SHA-1 likewise)"
#define COUNT "secret with a bad iteration count (accepted: 4096 to 1000000)"
#define SALT  "secret with a bad salt (accepted: base64 of 8 to 64 bytes)"
#define KEY   "secret with a bad key (accepted: base64 of 32 bytes, 20 for SCRAM-SHA-1)"
#define KEYS  "$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/fTE="
    static const struct complaint cases[] = {
        {"", SHAPE},
        {"pencil", SHAPE},
        {"SCRAM-SHA-512$4096:QSXCR+Q6sek8bf92" KEYS, SHAPE},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92", SHAPE},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=", SHAPE},
        {"scram-sha-1$4096:QSXCR+Q6sek8bf92" KEYS, SHAPE},
        {"SCRAM-SHA-1$1:QSXCR+Q6sek8bf92" KEYS, COUNT},
        {"SCRAM-SHA-1$4095:QSXCR+Q6sek8bf92" KEYS, COUNT},
        {"SCRAM-SHA-1$04096:QSXCR+Q6sek8bf92" KEYS, COUNT},
        {"SCRAM-SHA-1$:QSXCR+Q6sek8bf92" KEYS, COUNT},
        {"SCRAM-SHA-1$-4096:QSXCR+Q6sek8bf92" KEYS, COUNT},
        {"SCRAM-SHA-1$1000001:QSXCR+Q6sek8bf92" KEYS, COUNT},
        {"SCRAM-SHA-1$4294971392:QSXCR+Q6sek8bf92" KEYS, COUNT},
        {"SCRAM-SHA-1$4096:" KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXC" KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf9" KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf9 " KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf9-" KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8=f92" KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXCR+Q6=ek8bf92" KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXCR+Q6===4bf92" KEYS, SALT},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf93cx==" KEYS, SALT}, /* unused bits are not zero */
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/"
         "fTE"
         "=x",
         KEY},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$QSXCR+Q6sek8bf92:D+CSWLOshSulAsxiupA+qs2/fTE=", KEY},
        {"SCRAM-SHA-256$4096:QSXCR+Q6sek8bf92" KEYS, KEY},
        {"SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=:"
         "wfPLwcE6nTWh"
         "TAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
         KEY},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_secret secret;
        const char *why = NULL;
        if (hg_secret_decode(cases[i].text, strlen(cases[i].text), &secret, &why) != -22)
            fail_msg("taken: %s", cases[i].text);
        assert_string_equal(why, cases[i].says);
    }
}

/* A text that ends anywhere is refused, and nothing behind its end is read. */
static void test_a_cut_secret_is_no_secret(void **state)
{
    (void)state;
    for (size_t len = 0; len < strlen(SHA_256_TEXT); len++) {
        char *exactly = malloc(len + !len);
        struct hg_secret secret;
        const char *why = NULL;
        assert_non_null(exactly);
        memcpy(exactly, SHA_256_TEXT, len);
        assert_int_equal(hg_secret_decode(exactly, len, &secret, &why), -22);
        free(exactly);
    }
}

static void test_base64_is_that_of_the_rfc(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < HG_COUNT_OF(pairs); i++) {
        char text[16];
        hg_secret_base64((const uint8_t *)pairs[i][0], strlen(pairs[i][0]), text);
        assert_string_equal(text, pairs[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_examples_of_the_rfcs_hold),
        cmocka_unit_test(test_a_made_secret_fits_its_password_and_no_other),
        cmocka_unit_test(test_bounds_are_checked_before_work_is_done),
        cmocka_unit_test(test_other_texts_are_no_secrets),
        cmocka_unit_test(test_a_cut_secret_is_no_secret),
        cmocka_unit_test(test_base64_is_that_of_the_rfc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
