// t_users - users.yaml: who may do what where, and what a stranger can learn
// SPDX-License-Identifier: BSD-3-Clause
#include "apphelp.h"

#include <errno.h>

#include "app/users.h"

#define SHA_1                                                                                      \
    "SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/fTE="
#define SHA_256                                                                                    \
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"    \
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
#define SHA_256_OTHER                                                                              \
    "SCRAM-SHA-256$8192:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"    \
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

#define R   HG_PRIVILEGE_BIT(HG_PRIVILEGE_READ)
#define W   HG_PRIVILEGE_BIT(HG_PRIVILEGE_WRITE)
#define S   HG_PRIVILEGE_BIT(HG_PRIVILEGE_STATS)
#define U   HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED)
#define ANY HG_SPAN_LIT("whatever")

static struct hg_users *users_of(const char *text)
{
    struct hg_conf_errors errs;
    struct hg_users *users = NULL;
    hg_conf_errors_init(&errs);
    int rc = hg_users_parse(text, strlen(text), "u.yaml", &users, &errs);
    apphelp_said(&errs, "");
    assert_int_equal(rc, 0);
    return users;
}

static const char whole[] =
    "users:\n"
    "  - {name: ann, secrets: [\"" SHA_256 "\", \"" SHA_1 "\"],\n"
    "     buckets: {shop: [Read, Write], \"*\": [Stats], shed: []}, privileges: [Unthrottled]}\n"
    "  - {name: zoe, secrets: [\"" SHA_1 "\"], privileges: [all]}\n"
    "  - {name: bob, buckets: {shop: [Read]}}\n"
    "anonymous: {bucket: lobby, privileges: [Read]}\n";

static const struct hg_user *find(const struct hg_users *users, const char *name)
{
    return hg_users_find(users, hg_span_str(name));
}

static void test_privileges_are_those_of_the_exact_bucket(void **state)
{
    (void)state;
    struct hg_users *users = users_of(whole);
    const struct hg_user *ann = find(users, "ann"), *zoe = find(users, "zoe"),
                         *bob = find(users, "bob");
    assert_non_null(ann);
    assert_non_null(zoe);
    assert_non_null(bob);
    assert_string_equal(hg_user_name(ann), "ann");
    assert_null(find(users, "an"));
    assert_null(find(users, "anna"));
    assert_null(find(users, ""));
    assert_int_equal(hg_users_privileges(users, ann, HG_SPAN_LIT("shop")), R | W | U);
    assert_int_equal(hg_users_privileges(users, ann, HG_SPAN_LIT("shoe")), S | U);
    assert_int_equal(hg_users_privileges(users, ann, HG_SPAN_LIT("shed")), U);
    assert_int_equal(hg_users_privileges(users, ann, HG_SPAN_NONE), U);
    assert_int_equal(hg_users_privileges(users, zoe, ANY), HG_PRIVILEGES_ALL);
    assert_int_equal(hg_users_privileges(users, zoe, HG_SPAN_NONE), HG_PRIVILEGES_ALL);
    assert_int_equal(hg_users_privileges(users, bob, HG_SPAN_LIT("shop")), R);
    assert_int_equal(hg_users_privileges(users, bob, ANY), 0);
    assert_true(hg_users_may_see(users, ann, HG_SPAN_LIT("shop")));
    assert_true(hg_users_may_see(users, ann, ANY));
    assert_false(hg_users_may_see(users, ann, HG_SPAN_LIT("shed"))); /* Unthrottled opens nothing */
    assert_true(hg_users_may_see(users, zoe, HG_SPAN_LIT("shed")));
    assert_false(hg_users_may_see(users, bob, ANY));
    hg_users_free(users);
}

static void test_the_anonymous_have_one_bucket(void **state)
{
    (void)state;
    struct hg_users *users = users_of(whole);
    assert_false(hg_users_login_required(users));
    assert_string_equal(hg_users_anonymous_bucket(users), "lobby");
    assert_int_equal(hg_users_privileges(users, NULL, HG_SPAN_LIT("lobby")), R);
    assert_int_equal(hg_users_privileges(users, NULL, HG_SPAN_LIT("shop")), 0);
    assert_int_equal(hg_users_privileges(users, NULL, HG_SPAN_NONE), 0);
    assert_true(hg_users_may_see(users, NULL, HG_SPAN_LIT("lobby")));
    assert_false(hg_users_may_see(users, NULL, HG_SPAN_LIT("shop")));
    hg_users_free(users);

    users = users_of("users: [{name: ann, secrets: [\"" SHA_1 "\"]}]\n");
    assert_true(hg_users_login_required(users));
    assert_null(hg_users_anonymous_bucket(users));
    assert_int_equal(hg_users_privileges(users, NULL, HG_SPAN_LIT("default")), 0);
    hg_users_free(users);

    users = users_of("anonymous: {privileges: [Read]}\n");
    assert_string_equal(hg_users_anonymous_bucket(users), "default");
    assert_false(hg_users_has_users(users));
    hg_users_free(users);
}

static void test_without_a_file_everybody_may_do_everything(void **state)
{
    (void)state;
    /* but is exempt from nothing: limits would mean nothing otherwise */
    const uint32_t rights = HG_PRIVILEGES_ALL & ~HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED) &
                            ~HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNMETERED);
    struct hg_users *users = NULL;
    assert_int_equal(hg_users_open(&users), 0);
    assert_false(hg_users_login_required(users));
    assert_false(hg_users_has_users(users));
    assert_string_equal(hg_users_anonymous_bucket(users), "default");
    assert_int_equal(hg_users_privileges(users, NULL, HG_SPAN_LIT("default")), rights);
    assert_int_equal(hg_users_privileges(users, NULL, ANY), rights);
    assert_int_equal(hg_users_privileges(users, NULL, HG_SPAN_NONE), rights);
    assert_true(hg_users_may_see(users, NULL, ANY));
    assert_null(find(users, "ann"));
    hg_users_free(users);
}

static void test_secrets_are_found_by_kind(void **state)
{
    (void)state;
    struct hg_users *users = users_of(whole);
    const struct hg_user *ann = find(users, "ann"), *zoe = find(users, "zoe"),
                         *bob = find(users, "bob");
    assert_int_equal(hg_user_secret(ann, HG_SECRET_SHA_1)->key_len, 20);
    assert_int_equal(hg_user_plain_secret(ann)->hash, HG_SECRET_SHA_256);
    assert_null(hg_user_secret(zoe, HG_SECRET_SHA_256));
    assert_int_equal(hg_user_plain_secret(zoe)->hash, HG_SECRET_SHA_1);
    assert_null(hg_user_plain_secret(bob));
    assert_true(hg_secret_verify(hg_user_plain_secret(ann), "pencil", 6));
    assert_true(hg_users_has_hash(users, HG_SECRET_SHA_256));
    hg_users_free(users);
    users = users_of("users: [{name: ann, secrets: [\"" SHA_1 "\"]}]\n");
    assert_false(hg_users_has_hash(users, HG_SECRET_SHA_256));
    assert_true(hg_users_has_hash(users, HG_SECRET_SHA_1));
    hg_users_free(users);
}

static bool same(const struct hg_secret *a, const struct hg_secret *b)
{
    char left[HG_SECRET_TEXT_MAX], right[HG_SECRET_TEXT_MAX];
    hg_secret_encode(a, left);
    hg_secret_encode(b, right);
    return strcmp(left, right) == 0;
}

static void test_a_stranger_looks_like_the_usual_user(void **state)
{
    (void)state;
    struct hg_users *users = users_of("users:\n"
                                      "  - {name: a, secrets: [\"" SHA_256_OTHER "\"]}\n"
                                      "  - {name: b, secrets: [\"" SHA_256 "\"]}\n"
                                      "  - {name: c, secrets: [\"" SHA_256_OTHER "\"]}\n");
    struct hg_secret eve, again, eva, old, none;
    hg_users_fake_secret(users, HG_SPAN_LIT("eve"), HG_SECRET_SHA_256, &eve);
    hg_users_fake_secret(users, HG_SPAN_LIT("eve"), HG_SECRET_SHA_256, &again);
    hg_users_fake_secret(users, HG_SPAN_LIT("eva"), HG_SECRET_SHA_256, &eva);
    hg_users_fake_secret(users, HG_SPAN_LIT("eve"), HG_SECRET_SHA_1, &old);
    hg_users_fake_secret(users, HG_SPAN_NONE, HG_SECRET_SHA_1, &none);
    assert_int_equal(eve.iterations, 8192);
    assert_int_equal(eve.salt_len, 16);
    assert_int_equal(eve.key_len, 32);
    assert_true(same(&eve, &again));
    assert_int_not_equal(memcmp(eve.salt, eva.salt, 16), 0);
    assert_int_equal(old.key_len, 20);
    assert_int_equal(old.iterations, 4096);
    assert_int_equal(none.salt_len, 16);
    assert_int_not_equal(memcmp(eve.salt, old.salt, 16), 0);
    assert_int_not_equal(memcmp(eve.stored_key, eve.server_key, 32), 0);
    assert_false(hg_secret_verify(&eve, "", 0));
    assert_false(hg_secret_verify(&eve, "pencil", 6));
    /* It is a text like any other, so that it can be handed to the SASL library. */
    char text[HG_SECRET_TEXT_MAX];
    const char *why;
    struct hg_secret decoded;
    size_t len = hg_secret_encode(&eve, text);
    assert_int_equal(hg_secret_decode(text, len, &decoded, &why), 0);
    hg_users_free(users);
}

static void test_a_reload_keeps_the_stranger_the_same(void **state)
{
    (void)state;
    struct hg_users *before = users_of(whole), *now = users_of(whole);
    struct hg_secret old, other, kept;
    hg_users_fake_secret(before, HG_SPAN_LIT("eve"), HG_SECRET_SHA_256, &old);
    hg_users_fake_secret(now, HG_SPAN_LIT("eve"), HG_SECRET_SHA_256, &other);
    assert_false(same(&old, &other));
    hg_users_keep_key(now, before);
    hg_users_fake_secret(now, HG_SPAN_LIT("eve"), HG_SECRET_SHA_256, &kept);
    assert_true(same(&old, &kept));
    hg_users_free(before);
    hg_users_free(now);
}

static void test_long_salts_are_faked_whole(void **state)
{
    (void)state;
    struct hg_secret long_salt, fake;
    uint8_t salt[64];
    char text[HG_SECRET_TEXT_MAX], file[600];
    memset(salt, 7, sizeof salt);
    assert_int_equal(hg_secret_derive(HG_SECRET_SHA_256, "p", 1, salt, 64, 5000, &long_salt), 0);
    hg_secret_encode(&long_salt, text);
    snprintf(file, sizeof file, "users: [{name: a, secrets: [\"%s\"]}]\n", text);
    struct hg_users *users = users_of(file);
    hg_users_fake_secret(users, HG_SPAN_LIT("eve"), HG_SECRET_SHA_256, &fake);
    assert_int_equal(fake.salt_len, 64);
    assert_int_equal(fake.iterations, 5000);
    assert_int_not_equal(memcmp(fake.salt, fake.salt + 32, 32), 0);
    hg_users_free(users);
}

static void test_who_was_revoked_is_known(void **state)
{
    (void)state;
    struct hg_users *before = users_of(whole);
    struct hg_users *now = users_of("users:\n"
                                    "  - {name: ann, secrets: [\"" SHA_256 "\", \"" SHA_1 "\"]}\n"
                                    "  - {name: zoe, secrets: [\"" SHA_256 "\"]}\n");
    assert_false(hg_users_is_revoked(now, find(before, "ann"))); /* fewer rights, same secrets */
    assert_true(hg_users_is_revoked(now, find(before, "zoe")));
    assert_true(hg_users_is_revoked(now, find(before, "bob")));
    assert_true(hg_users_is_revoked(now, NULL)); /* no anonymous section any more */
    assert_false(hg_users_is_revoked(before, NULL));
    hg_users_free(before);
    hg_users_free(now);
}

static void test_faults_are_told_without_secrets(void **state)
{
    (void)state;
    static const struct complaint cases[] = {
        {"", "u.yaml: nobody could do anything (accepted: users, anonymous, or both)\n"},
        {"user: []\n", "u.yaml:1: unknown option 'user' (accepted: users, anonymous)\n"},
        {"- a\n",
         "u.yaml:1: a list given for 'the file' (accepted: a mapping of users and anonymous)\n"},
        {"users:\n  - {secrets: [hunter2], password: hunter2}\n  - {name: \"\"}\n  - x\n",
         "u.yaml:2: secret has another form (accepted: "
         "SCRAM-SHA-256$COUNT:SALT$STOREDKEY:SERVERKEY, or SCRAM-SHA-1 likewise)\n"
         "u.yaml:2: unknown option 'password' of a user (accepted: name, secrets, buckets, "
         "privileges)\n"
         "u.yaml:2: user without 'name' (accepted: 1 to 128 bytes)\n"
         "u.yaml:3: bad length of user name '' (accepted: 1 to 128 bytes)\n"
         "u.yaml:4: a value given for 'user' (accepted: a mapping)\n"},
        {"users:\n  - name: a\n    buckets: {shop: [Read, Drop], a/b: [Read], x: Read}\n"
         "    privileges: [read]\n",
         "u.yaml:3: unknown privilege 'Drop' (accepted: Read, Write, Stats, Unthrottled, "
         "BucketThrottleManagement, NodeSupervisor, Unmetered, Impersonate, all)\n"
         "u.yaml:3: bad bucket name 'a/b' (accepted: \"*\", or 1 to 100 of A-Z a-z 0-9 . _ % -)\n"
         "u.yaml:3: a value given for 'privileges' (accepted: a list)\n"
         "u.yaml:4: unknown privilege 'read' (accepted: Read, Write, Stats, Unthrottled, "
         "BucketThrottleManagement, NodeSupervisor, Unmetered, Impersonate, all)\n"},
        {"users:\n  - {name: a}\n  - {name: b}\n  - {name: a}\n",
         "u.yaml:4: repeated user 'a' (accepted: once, and it is in line 2)\n"},
        {"users:\n  - {name: a, secrets: [\"" SHA_1 "\", \"" SHA_1 "\"]}\n",
         "u.yaml:2: second secret of kind 'SCRAM-SHA-1' (accepted: one of each kind)\n"},
        {"users:\n  - {name: a, buckets: {x: [], x: [Read]}}\n",
         "u.yaml:2: repeated key 'x' (accepted: once, and it is in line 2)\n"},
        {"anonymous: {bucket: \"a b\", privilege: [Read]}\n",
         "u.yaml:1: bad bucket name 'a b' (accepted: 1 to 100 of A-Z a-z 0-9 . _ % -)\n"
         "u.yaml:1: unknown option 'privilege' of anonymous (accepted: bucket, privileges)\n"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_conf_errors errs;
        struct hg_users *users = NULL;
        hg_conf_errors_init(&errs);
        int rc = hg_users_parse(cases[i].text, strlen(cases[i].text), "u.yaml", &users, &errs);
        char *lines = apphelp_lines(&errs);
        assert_null(strstr(lines, "hunter2"));
        free(lines);
        apphelp_said(&errs, cases[i].says);
        assert_int_equal(rc, -EINVAL);
        assert_null(users);
    }
}

static void test_a_missing_file_is_named(void **state)
{
    (void)state;
    struct hg_conf_errors errs;
    struct hg_users *users = NULL;
    hg_conf_errors_init(&errs);
    assert_int_equal(hg_users_load("no/users.yaml", "gate.yaml", 7, &users, &errs), -ENOENT);
    apphelp_said(
        &errs, "gate.yaml:7: cannot read users_file 'no/users.yaml': No such file or directory\n");
}

/* The sample that is installed is right, and says what its comments say. */
static void test_the_sample_is_right(void **state)
{
    (void)state;
    char path[4096];
    struct hg_conf_errors errs;
    struct hg_users *users = NULL;
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/etc/users.yaml", top ? top : "..");
    hg_conf_errors_init(&errs);
    int rc = hg_users_load(path, NULL, 0, &users, &errs);
    apphelp_said(&errs, "");
    assert_int_equal(rc, 0);
    const struct hg_user *ann = find(users, "ann"), *admin = find(users, "admin");
    assert_int_equal(hg_users_privileges(users, ann, HG_SPAN_LIT("shop")), R | W);
    assert_int_equal(hg_users_privileges(users, admin, ANY), HG_PRIVILEGES_ALL);
    assert_false(hg_users_login_required(users));
    /* Its secrets fit no password that anybody could guess from the file. */
    assert_false(hg_secret_verify(hg_user_plain_secret(admin), "admin", 5));
    assert_false(hg_secret_verify(hg_user_plain_secret(ann), "ann", 3));
    hg_users_free(users);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_privileges_are_those_of_the_exact_bucket),
        cmocka_unit_test(test_the_anonymous_have_one_bucket),
        cmocka_unit_test(test_without_a_file_everybody_may_do_everything),
        cmocka_unit_test(test_secrets_are_found_by_kind),
        cmocka_unit_test(test_a_stranger_looks_like_the_usual_user),
        cmocka_unit_test(test_a_reload_keeps_the_stranger_the_same),
        cmocka_unit_test(test_long_salts_are_faked_whole),
        cmocka_unit_test(test_who_was_revoked_is_known),
        cmocka_unit_test(test_faults_are_told_without_secrets),
        cmocka_unit_test(test_a_missing_file_is_named),
        cmocka_unit_test(test_the_sample_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
