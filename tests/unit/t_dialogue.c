// t_dialogue - one SASL exchange: who gets in, who does not, and that nobody can tell why
// SPDX-License-Identifier: BSD-3-Clause
#include "loginhelp.h"

#include "app/dialogue.h"
#include "app/password.h"

static const struct test_user rows[] = {
    {"ann", "right", WITH_SHA_1 | WITH_SHA_256, 0},
    {"old", "older", WITH_SHA_1, 0},
    {"a,b=c", "odd", WITH_SHA_256, 0},
    {"\xc3\xa4", "\xc3\xa4\xe2\x84\xab", WITH_SHA_256, 0},
    {"mute", "", 0, 0},
};

struct fixture {
    Gsasl *gsasl;
    struct hg_users *users;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(hg_dialogue_library(&f->gsasl), 0);
    f->users = loginhelp_users(rows, HG_COUNT_OF(rows));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hg_users_free(f->users);
    gsasl_done(f->gsasl);
    free(f);
    return 0;
}

static enum hg_dialogue_result step(struct hg_dialogue *dialogue, struct fixture *f,
                                    const char *message, size_t len, char **ret_reply)
{
    size_t reply_len;
    char *reply;
    enum hg_dialogue_result result =
        hg_dialogue_step(dialogue, f->users, hg_span(message, len), &reply, &reply_len);
    *ret_reply = calloc(1, reply_len + 1);
    assert_non_null(*ret_reply);
    if (reply_len > 0)
        memcpy(*ret_reply, reply, reply_len);
    free(reply);
    return result;
}

/* One message to a new dialogue. */
static enum hg_dialogue_result first(struct fixture *f, enum hg_mechanism mechanism,
                                     const char *message, size_t len)
{
    struct hg_dialogue *dialogue = hg_dialogue_new(f->gsasl, mechanism);
    assert_non_null(dialogue);
    char *reply;
    enum hg_dialogue_result result = step(dialogue, f, message, len, &reply);
    if (result != HG_DIALOGUE_OK)
        assert_null(hg_dialogue_user(dialogue, f->users));
    free(reply);
    hg_dialogue_free(dialogue);
    return result;
}

#define PLAIN(f, text) first(f, HG_MECHANISM_PLAIN, text, sizeof(text) - 1)

/* ---- mechanisms ---- */

static void test_names(void **state)
{
    (void)state;
    for (int m = 0; m < HG_MECHANISMS; m++) {
        enum hg_mechanism found;
        struct hg_span name = hg_span_str(hg_mechanism_name((enum hg_mechanism)m));
        assert_true(hg_mechanism_parse(name, &found));
        assert_int_equal(found, m);
        name.len--;
        assert_false(hg_mechanism_parse(name, &found));
    }
    enum hg_mechanism found;
    assert_false(hg_mechanism_parse(HG_SPAN_LIT("SCRAM-SHA-256-PLUS"), &found));
    assert_false(hg_mechanism_parse(HG_SPAN_LIT("plain"), &found));
    assert_false(hg_mechanism_parse(HG_SPAN_NONE, &found));
}

static void test_list_is_what_somebody_has(void **state)
{
    struct fixture *f = *state;
    char list[HG_MECHANISMS_TEXT];
    size_t len = hg_mechanisms_list(f->users, list);
    assert_int_equal(len, strlen(list));
    assert_string_equal(list, "SCRAM-SHA-256 SCRAM-SHA-1 PLAIN");
    static const struct {
        unsigned hashes;
        const char *list;
    } cases[] = {{WITH_SHA_256, "SCRAM-SHA-256 PLAIN"}, {WITH_SHA_1, "SCRAM-SHA-1 PLAIN"}};
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct test_user row = {"ann", "x", cases[i].hashes, 0};
        struct hg_users *users = loginhelp_users(&row, 1);
        hg_mechanisms_list(users, list);
        assert_string_equal(list, cases[i].list);
        hg_users_free(users);
    }
    struct hg_users *nobody;
    assert_int_equal(hg_users_open(&nobody), 0);
    assert_int_equal(hg_mechanisms_list(nobody, list), 0);
    assert_string_equal(list, "");
    hg_users_free(nobody);
}

/* ---- PLAIN ---- */

static void test_plain(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(PLAIN(f, "\0ann\0right"), HG_DIALOGUE_OK);
    assert_int_equal(PLAIN(f, "ann\0ann\0right"), HG_DIALOGUE_OK);
    assert_int_equal(PLAIN(f, "\0old\0older"), HG_DIALOGUE_OK);
    assert_int_equal(PLAIN(f, "\0a,b=c\0odd"), HG_DIALOGUE_OK);
    /* the password in another spelling: Angstrom sign, and A with a ring */
    assert_int_equal(PLAIN(f, "\0\xc3\xa4\0\xc3\xa4\xe2\x84\xab"), HG_DIALOGUE_FAILED);
    assert_int_equal(PLAIN(f, "\0ann\0wrong"), HG_DIALOGUE_FAILED);
    assert_int_equal(PLAIN(f, "\0ann\0right "), HG_DIALOGUE_FAILED);
    assert_int_equal(PLAIN(f, "\0ann\0righ"), HG_DIALOGUE_FAILED);
    assert_int_equal(PLAIN(f, "\0Ann\0right"), HG_DIALOGUE_FAILED);
    assert_int_equal(PLAIN(f, "\0nobody\0right"), HG_DIALOGUE_FAILED);
    assert_int_equal(PLAIN(f, "\0mute\0x"), HG_DIALOGUE_FAILED);
    assert_int_equal(PLAIN(f, "old\0ann\0right"), HG_DIALOGUE_FAILED);
}

static void test_plain_malformed(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        size_t len;
    } bad[] = {{"", 0},
               {"\0", 1},
               {"\0\0", 2},
               {"\0ann", 4},
               {"ann\0right", 9},
               {"\0ann\0", 5},
               {"\0\0right", 7},
               {"\0ann\0right\0", 11},
               {"\0ann\0right\0x", 12}};
    for (size_t i = 0; i < HG_COUNT_OF(bad); i++)
        assert_int_equal(first(f, HG_MECHANISM_PLAIN, bad[i].text, bad[i].len), HG_DIALOGUE_FAILED);
    char *long_name = calloc(1, 9000);
    assert_non_null(long_name);
    memset(long_name + 1, 'n', 8000);
    memcpy(long_name + 8002, "pw", 2);
    assert_int_equal(first(f, HG_MECHANISM_PLAIN, long_name, 8004), HG_DIALOGUE_FAILED);
    free(long_name);
}

/* A password is normalised as SCRAM's clients do it; what cannot be is taken as it is. */
static void test_password_form(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {{"plain ASCII~", "plain ASCII~"},
                 {"\xc3\xa4", "\xc3\xa4"},
                 {"a\xcc\x88", "\xc3\xa4"},      /* two characters to one */
                 {"\xef\xbd\x81\xc2\xa0", "a "}, /* wide letter, hard space */
                 {"I\xc2\xadX", "IX"},           /* soft hyphen: nothing */
                 {"\xff\xfe", "\xff\xfe"},       /* no UTF-8 */
                 {"bell\x07", "bell\x07"},       /* forbidden */
                 {"", ""}};
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        size_t len;
        char *got = hg_password_prepare(cases[i].in, strlen(cases[i].in), &len);
        assert_non_null(got);
        assert_string_equal(got, cases[i].out);
        assert_int_equal(len, strlen(cases[i].out));
        hg_password_free(got, len);
    }
    size_t len;
    char *zero = hg_password_prepare("a\0\xc3\xa4", 4, &len);
    assert_non_null(zero);
    assert_int_equal(len, 4);
    assert_memory_equal(zero, "a\0\xc3\xa4", 4);
    hg_password_free(zero, len);
    hg_password_free(NULL, 0);
}

static void test_plain_password_is_normalised(void **state)
{
    struct fixture *f = *state;
    struct test_user row = {"ann", "\xc3\xa4", WITH_SHA_256, 0};
    struct hg_users *users = f->users;
    f->users = loginhelp_users(&row, 1);
    assert_int_equal(PLAIN(f, "\0ann\0\xc3\xa4"), HG_DIALOGUE_OK);
    assert_int_equal(PLAIN(f, "\0ann\0a\xcc\x88"), HG_DIALOGUE_OK);
    assert_int_equal(PLAIN(f, "\0ann\0a"), HG_DIALOGUE_FAILED);
    hg_users_free(f->users);
    f->users = users;
}

/* ---- SCRAM ---- */

struct scram {
    const char *name, *password, *authzid;
    bool tamper;
};

/* A whole exchange with libgsasl as the client; on success the server has proved itself too. */
static enum hg_dialogue_result scram(struct fixture *f, enum hg_mechanism mechanism,
                                     const struct scram *who)
{
    struct test_client client =
        loginhelp_client(hg_mechanism_name(mechanism), who->name, who->password, who->authzid);
    struct hg_dialogue *dialogue = hg_dialogue_new(f->gsasl, mechanism);
    assert_non_null(dialogue);
    int rc;
    char *challenge = NULL, *message = loginhelp_answer(&client, NULL, 0, &rc);
    assert_int_equal(rc, GSASL_NEEDS_MORE);
    assert_false(hg_dialogue_is_at_proof(dialogue));
    enum hg_dialogue_result result = step(dialogue, f, message, strlen(message), &challenge);
    free(message);
    if (result == HG_DIALOGUE_MORE) {
        assert_true(hg_dialogue_is_at_proof(dialogue));
        message = loginhelp_answer(&client, challenge, strlen(challenge), &rc);
        assert_int_equal(rc, GSASL_NEEDS_MORE);
        if (who->tamper) {
            char *proof = strstr(message, ",p=") + 3;
            *proof = *proof == 'A' ? 'B' : 'A';
        }
        free(challenge);
        result = step(dialogue, f, message, strlen(message), &challenge);
        free(message);
        if (result == HG_DIALOGUE_OK) {
            assert_true(strncmp(challenge, "v=", 2) == 0);
            free(loginhelp_answer(&client, challenge, strlen(challenge), &rc));
            assert_int_equal(rc, GSASL_OK);
            const struct hg_user *user = hg_dialogue_user(dialogue, f->users);
            assert_non_null(user);
            assert_string_equal(hg_user_name(user), who->name);
        }
    }
    free(challenge);
    hg_dialogue_free(dialogue);
    loginhelp_done(&client);
    return result;
}

static void test_scram(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum hg_mechanism mechanism;
        struct scram who;
        enum hg_dialogue_result result;
    } cases[] = {
        {HG_MECHANISM_SCRAM_SHA_256, {"ann", "right", NULL, false}, HG_DIALOGUE_OK},
        {HG_MECHANISM_SCRAM_SHA_1, {"ann", "right", NULL, false}, HG_DIALOGUE_OK},
        {HG_MECHANISM_SCRAM_SHA_256, {"ann", "right", "ann", false}, HG_DIALOGUE_OK},
        {HG_MECHANISM_SCRAM_SHA_1, {"old", "older", NULL, false}, HG_DIALOGUE_OK},
        {HG_MECHANISM_SCRAM_SHA_256, {"a,b=c", "odd", NULL, false}, HG_DIALOGUE_OK},
        {HG_MECHANISM_SCRAM_SHA_256, {"ann", "wrong", NULL, false}, HG_DIALOGUE_FAILED},
        {HG_MECHANISM_SCRAM_SHA_256, {"ann", "right", NULL, true}, HG_DIALOGUE_FAILED},
        {HG_MECHANISM_SCRAM_SHA_1, {"ann", "right", NULL, true}, HG_DIALOGUE_FAILED},
        {HG_MECHANISM_SCRAM_SHA_256, {"ann", "right", "old", false}, HG_DIALOGUE_FAILED},
        {HG_MECHANISM_SCRAM_SHA_256, {"old", "older", NULL, false}, HG_DIALOGUE_FAILED},
        {HG_MECHANISM_SCRAM_SHA_256, {"nobody", "right", NULL, false}, HG_DIALOGUE_FAILED},
        {HG_MECHANISM_SCRAM_SHA_256, {"mute", "", NULL, false}, HG_DIALOGUE_FAILED},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++)
        assert_int_equal(scram(f, cases[i].mechanism, &cases[i].who), cases[i].result);
}

static void test_scram_first_messages(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        enum hg_dialogue_result result;
    } cases[] = {
        {"n,,n=ann,r=abcdef", HG_DIALOGUE_MORE},
        {"y,,n=ann,r=abcdef", HG_DIALOGUE_MORE},
        {"n,a=ann,n=ann,r=abcdef", HG_DIALOGUE_MORE},
        {"n,,n=nobody,r=abcdef", HG_DIALOGUE_MORE},
        {"", HG_DIALOGUE_FAILED},
        {"n", HG_DIALOGUE_FAILED},
        {"n,,", HG_DIALOGUE_FAILED},
        {"n,,n=ann", HG_DIALOGUE_FAILED},
        {"n,,r=abcdef", HG_DIALOGUE_FAILED},
        {"n,,n=,r=abcdef", HG_DIALOGUE_FAILED},
        {"n,,m=ext,n=ann,r=abcdef", HG_DIALOGUE_FAILED},
        {"p=tls-unique,,n=ann,r=abcdef", HG_DIALOGUE_FAILED},
        {"p=", HG_DIALOGUE_FAILED},
        {"n,a=old,n=ann,r=abcdef", HG_DIALOGUE_FAILED},
        {"n,a=old,n=nobody,r=abcdef", HG_DIALOGUE_FAILED},
        {"garbage", HG_DIALOGUE_FAILED},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++)
        assert_int_equal(first(f, HG_MECHANISM_SCRAM_SHA_256, cases[i].text, strlen(cases[i].text)),
                         cases[i].result);
    static const char zero[] = "n,,n=ann,r=abcdef\0x";
    assert_int_equal(first(f, HG_MECHANISM_SCRAM_SHA_256, zero, sizeof zero - 1),
                     HG_DIALOGUE_FAILED);
}

static void test_scram_final_messages(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "",
        "garbage",
        "c=biws",
        "c=biws,r=abcdef,p=AAAA",
        "c=biws,r=other,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "n,,n=ann,r=abcdef"};
    for (size_t i = 0; i < HG_COUNT_OF(bad); i++) {
        static const char begin[] = "n,,n=ann,r=abcdef";
        struct hg_dialogue *dialogue = hg_dialogue_new(f->gsasl, HG_MECHANISM_SCRAM_SHA_256);
        assert_non_null(dialogue);
        char *reply;
        assert_int_equal(step(dialogue, f, begin, sizeof begin - 1, &reply), HG_DIALOGUE_MORE);
        free(reply);
        assert_int_equal(step(dialogue, f, bad[i], strlen(bad[i]), &reply), HG_DIALOGUE_FAILED);
        assert_string_equal(reply, "");
        free(reply);
        assert_null(hg_dialogue_user(dialogue, f->users));
        hg_dialogue_free(dialogue);
    }
}

/* ---- names that do not exist ---- */

/* "r=NONCE,s=SALT,i=COUNT" without the nonce. */
static char *challenge_of(struct fixture *f, enum hg_mechanism mechanism, const char *name)
{
    char message[200];
    char *reply;
    snprintf(message, sizeof message, "n,,n=%s,r=abcdef", name);
    struct hg_dialogue *dialogue = hg_dialogue_new(f->gsasl, mechanism);
    assert_non_null(dialogue);
    assert_int_equal(step(dialogue, f, message, strlen(message), &reply), HG_DIALOGUE_MORE);
    hg_dialogue_free(dialogue);
    assert_true(strncmp(reply, "r=abcdef", 8) == 0);
    char *rest = strdup(strstr(reply, ",s="));
    assert_non_null(rest);
    free(reply);
    return rest;
}

static void test_unknown_name_looks_the_same(void **state)
{
    struct fixture *f = *state;
    static const enum hg_mechanism both[] = {HG_MECHANISM_SCRAM_SHA_256, HG_MECHANISM_SCRAM_SHA_1};
    for (size_t m = 0; m < HG_COUNT_OF(both); m++) {
        char *known = challenge_of(f, both[m], "ann");
        char *ghost = challenge_of(f, both[m], "ghost");
        char *again = challenge_of(f, both[m], "ghost");
        char *other = challenge_of(f, both[m], "other");
        assert_string_equal(ghost, again);
        assert_string_not_equal(ghost, other);
        assert_string_not_equal(ghost, known);
        assert_int_equal(strlen(ghost), strlen(known));
        assert_string_equal(strstr(ghost, ",i="), strstr(known, ",i="));
        free(known);
        free(ghost);
        free(again);
        free(other);
    }
}

/* ---- the user, in newer users ---- */

static void test_user_must_still_have_the_secret(void **state)
{
    struct fixture *f = *state;
    static const struct {
        struct test_user row;
        bool holds;
    } cases[] = {{{"ann", "right", WITH_SHA_256, 0}, true},
                 {{"ann", "right", WITH_SHA_1 | WITH_SHA_256, 0}, true},
                 {{"ann", "right", WITH_SHA_1, 0}, false},
                 {{"ann", "new", WITH_SHA_256, 0}, false},
                 {{"ann", "right", WITH_SHA_256, 5000}, false},
                 {{"eve", "right", WITH_SHA_256, 0}, false}};
    struct hg_dialogue *dialogue = hg_dialogue_new(f->gsasl, HG_MECHANISM_PLAIN);
    assert_non_null(dialogue);
    char *reply;
    assert_int_equal(step(dialogue, f, "\0ann\0right", 10, &reply), HG_DIALOGUE_OK);
    free(reply);
    assert_true(hg_dialogue_knows_user(dialogue));
    assert_string_equal(hg_dialogue_name(dialogue), "ann");
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct hg_users *now = loginhelp_users(&cases[i].row, 1);
        assert_int_equal(hg_dialogue_user(dialogue, now) != NULL, cases[i].holds);
        hg_users_free(now);
    }
    /* nothing follows a verdict */
    assert_int_equal(step(dialogue, f, "\0ann\0right", 10, &reply), HG_DIALOGUE_FAILED);
    free(reply);
    hg_dialogue_free(dialogue);
    hg_dialogue_free(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_list_is_what_somebody_has),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_plain_malformed),
        cmocka_unit_test(test_password_form),
        cmocka_unit_test(test_plain_password_is_normalised),
        cmocka_unit_test(test_scram),
        cmocka_unit_test(test_scram_first_messages),
        cmocka_unit_test(test_scram_final_messages),
        cmocka_unit_test(test_unknown_name_looks_the_same),
        cmocka_unit_test(test_user_must_still_have_the_secret),
    };
    return cmocka_run_group_tests_name("dialogue", tests, set_up, tear_down);
}
