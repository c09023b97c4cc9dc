// t_login - logins of real sessions on a real worker: who they are before, in and after it
// SPDX-License-Identifier: BSD-3-Clause
#include "loginserver.h"

#include "base/log.h"

/* The last answer of an exchange. */
static struct answer scram(int fd, const char *mechanism, const char *name, const char *password)
{
    int rc;
    struct test_client client = loginhelp_client(mechanism, name, password, NULL);
    char *message = loginhelp_answer(&client, NULL, 0, &rc);
    struct answer answer = call(fd, HG_OPCODE_SASL_AUTH, mechanism, message, strlen(message));
    free(message);
    assert_int_equal(answer.status, HG_STATUS_AUTH_CONTINUE);
    message = loginhelp_answer(&client, answer.text, answer.len, &rc);
    answer = call(fd, HG_OPCODE_SASL_STEP, mechanism, message, strlen(message));
    free(message);
    if (answer.status == HG_STATUS_SUCCESS) {
        free(loginhelp_answer(&client, answer.text, answer.len, &rc));
        assert_int_equal(rc, GSASL_OK);
    }
    loginhelp_done(&client);
    return answer;
}

/* ---- identity ---- */

static void test_plain(void **state)
{
    (void)state;
    struct server *server = START(2, 16);
    int fd = dial(server, 1);
    struct answer answer = call(fd, HG_OPCODE_SASL_LIST, "", NULL, 0);
    assert_int_equal(answer.status, 0);
    assert_string_equal(answer.text, "SCRAM-SHA-256 SCRAM-SHA-1 PLAIN");
    assert_null(who(fd));
    assert_int_equal(plain(fd, "ann", "right").status, 0);
    assert_string_equal(who(fd), "ann");
    assert_int_equal(plain(fd, "bob", "builder").status, 0);
    assert_string_equal(who(fd), "bob");
    struct answer wrong = plain(fd, "ann", "builder");
    assert_int_equal(wrong.status, HG_STATUS_AUTH_ERROR);
    assert_null(who(fd)); /* a failed login takes the old identity away */
    struct answer unknown = plain(fd, "nobody", "builder");
    assert_memory_equal(&unknown, &wrong, sizeof wrong);
    assert_int_equal(plain(fd, "ann", "right").status, 0);
    assert_string_equal(who(fd), "ann");
    close(fd);
    assert_int_equal(server_stats(server)->started, 5);
    assert_int_equal(server_stats(server)->succeeded, 3);
    assert_int_equal(server_stats(server)->failed, 2);
    server_stop(server);
}

static void test_scram(void **state)
{
    (void)state;
    struct server *server = START(1, 16);
    int fd = dial(server, 1);
    assert_int_equal(scram(fd, "SCRAM-SHA-256", "ann", "right").status, 0);
    assert_string_equal(who(fd), "ann");
    /* The client may say yes to the server's proof, also twice; nothing else. */
    assert_int_equal(call(fd, HG_OPCODE_SASL_STEP, "SCRAM-SHA-256", "", 0).status, 0);
    assert_int_equal(call(fd, HG_OPCODE_SASL_STEP, "SCRAM-SHA-1", "", 0).status,
                     HG_STATUS_AUTH_ERROR);
    assert_int_equal(call(fd, HG_OPCODE_SASL_STEP, "SCRAM-SHA-256", "x", 1).status,
                     HG_STATUS_AUTH_ERROR);
    assert_string_equal(who(fd), "ann");
    assert_int_equal(scram(fd, "SCRAM-SHA-1", "ann", "right").status, 0);
    assert_int_equal(scram(fd, "SCRAM-SHA-256", "bob", "builder").status, 0);
    assert_string_equal(who(fd), "bob");
    struct answer wrong = scram(fd, "SCRAM-SHA-256", "ann", "wrong");
    assert_null(who(fd));
    struct answer unknown = scram(fd, "SCRAM-SHA-256", "nobody", "wrong");
    struct answer without = scram(fd, "SCRAM-SHA-1", "bob", "builder");
    assert_int_equal(wrong.status, HG_STATUS_AUTH_ERROR);
    assert_memory_equal(&unknown, &wrong, sizeof wrong);
    assert_memory_equal(&without, &wrong, sizeof wrong);
    close(fd);
    server_stop(server);
}

static void test_out_of_order(void **state)
{
    (void)state;
    static const char first[] = "n,,n=ann,r=abcdef";
    struct server *server = START(1, 16);
    int fd = dial(server, 1);
    assert_int_equal(call(fd, HG_OPCODE_SASL_STEP, "SCRAM-SHA-256", "x", 1).status,
                     HG_STATUS_AUTH_ERROR);
    /* another mechanism in the middle: it is over */
    assert_int_equal(call(fd, HG_OPCODE_SASL_AUTH, "SCRAM-SHA-256", first, 17).status,
                     HG_STATUS_AUTH_CONTINUE);
    assert_int_equal(call(fd, HG_OPCODE_SASL_STEP, "SCRAM-SHA-1", "x", 1).status,
                     HG_STATUS_AUTH_ERROR);
    assert_int_equal(call(fd, HG_OPCODE_SASL_STEP, "SCRAM-SHA-256", "x", 1).status,
                     HG_STATUS_AUTH_ERROR);
    assert_int_equal(server_stats(server)->failed, 1);
    /* a login that begins ends the identity; another one ends it and succeeds */
    assert_int_equal(plain(fd, "bob", "builder").status, 0);
    assert_int_equal(call(fd, HG_OPCODE_SASL_AUTH, "SCRAM-SHA-256", first, 17).status,
                     HG_STATUS_AUTH_CONTINUE);
    assert_null(who(fd));
    assert_int_equal(plain(fd, "ann", "right").status, 0);
    assert_string_equal(who(fd), "ann");
    assert_int_equal(server_stats(server)->cancelled, 1);
    /* what is not served costs no attempt, but the identity */
    struct answer answer = call(fd, HG_OPCODE_SASL_AUTH, "CRAM-MD5", "", 0);
    assert_int_equal(answer.status, HG_STATUS_AUTH_ERROR);
    assert_non_null(strstr(answer.text, "SCRAM-SHA-256 SCRAM-SHA-1 PLAIN"));
    assert_null(who(fd));
    char *large = calloc(1, HG_LOGIN_MESSAGE_MAX + 1);
    assert_non_null(large);
    assert_int_equal(plain(fd, "ann", "right").status, 0);
    assert_int_equal(call(fd, HG_OPCODE_SASL_AUTH, "PLAIN", large, HG_LOGIN_MESSAGE_MAX + 1).status,
                     HG_STATUS_AUTH_ERROR);
    free(large);
    close(fd);
    server_stop(server);
}

static void test_nobody_can_log_in(void **state)
{
    (void)state;
    struct server *server = server_start(NULL, 0, 1, 16);
    int fd = dial(server, 1);
    struct answer answer = call(fd, HG_OPCODE_SASL_LIST, "", NULL, 0);
    assert_int_equal(answer.status, 0);
    assert_int_equal(answer.len, 0);
    answer = plain(fd, "ann", "right");
    assert_int_equal(answer.status, HG_STATUS_AUTH_ERROR);
    assert_string_equal(answer.text, "no users are configured");
    close(fd);
    server_stop(server);
}

/* Everybody's requests behind a login wait for it. */
static void test_pipelined_behind(void **state)
{
    (void)state;
    struct server *server = START_HEAVY(1, 16);
    int fd = dial(server, 1);
    ask_plain(fd, "ann", "right");
    ask(fd, HG_OPCODE_STAT, "", NULL, 0);
    assert_int_equal(hear(fd).status, 0);
    assert_string_equal(hear(fd).text, "userann");
    close(fd);
    server_stop(server);
}

/* ---- users that change while somebody logs in ---- */

static void change_users(struct server *server, const struct test_user *rows, size_t count, int fd,
                         const char *list)
{
    struct hg_directory *directory = server_directory(loginhelp_users(rows, count));
    assert_int_equal(hg_worker_give_directory(server->worker, directory), 0);
    hg_directory_unref(directory);
    POLL(strcmp(call(fd, HG_OPCODE_SASL_LIST, "", NULL, 0).text, list) == 0);
}

static void test_users_change_in_the_middle(void **state)
{
    (void)state;
    static const struct {
        struct test_user ann;
        bool gets_in;
    } cases[] = {{{"ann", "right", WITH_SHA_256, 0}, true},
                 {{"ann", "other", WITH_SHA_256, 0}, false},
                 {{"eve", "right", WITH_SHA_256, 0}, false}};
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        int rc;
        struct server *server = START(1, 16);
        int fd = dial(server, 1), watch = dial(server, 2);
        struct test_client client = loginhelp_client("SCRAM-SHA-256", "ann", "right", NULL);
        char *message = loginhelp_answer(&client, NULL, 0, &rc);
        struct answer answer =
            call(fd, HG_OPCODE_SASL_AUTH, "SCRAM-SHA-256", message, strlen(message));
        free(message);
        change_users(server, &cases[i].ann, 1, watch, "SCRAM-SHA-256 PLAIN");
        message = loginhelp_answer(&client, answer.text, answer.len, &rc);
        answer = call(fd, HG_OPCODE_SASL_STEP, "SCRAM-SHA-256", message, strlen(message));
        free(message);
        assert_int_equal(answer.status, cases[i].gets_in ? 0 : HG_STATUS_AUTH_ERROR);
        if (cases[i].gets_in)
            assert_string_equal(who(fd), "ann");
        else
            assert_null(who(fd));
        loginhelp_done(&client);
        close(fd);
        close(watch);
        server_stop(server);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_scram),
        cmocka_unit_test(test_out_of_order),
        cmocka_unit_test(test_nobody_can_log_in),
        cmocka_unit_test(test_pipelined_behind),
        cmocka_unit_test(test_users_change_in_the_middle),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("login", tests, NULL, NULL);
}
