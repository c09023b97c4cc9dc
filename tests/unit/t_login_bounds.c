// t_login_bounds - logins that are too many, too often wrong, or ended at a bad moment
// SPDX-License-Identifier: BSD-3-Clause
#include "loginserver.h"

#include "base/log.h"

/* ---- bounds ---- */

static void test_queue_is_bounded(void **state)
{
    (void)state;
    enum { CLIENTS = 12 };
    struct server *server = START_HEAVY(1, 2);
    int fd[CLIENTS];
    unsigned good = 0, busy = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        fd[i] = dial(server, (uint8_t)i);
        ask_plain(fd[i], "ann", "right");
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct answer answer = hear(fd[i]);
        good += answer.status == 0;
        busy += answer.status == HG_STATUS_EBUSY;
        if (answer.status == HG_STATUS_EBUSY)
            assert_string_equal(answer.text, "too many logins wait: try again");
    }
    assert_int_equal(good + busy, CLIENTS);
    assert_true(good >= 2 && busy >= CLIENTS / 2);
    assert_int_equal(server_stats(server)->refused_full, busy);
    assert_int_equal(server_stats(server)->started, good);
    /* who was refused may try again on the same connection */
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (i == CLIENTS - 1)
            assert_int_equal(plain(fd[i], "ann", "right").status, 0);
        close(fd[i]);
    }
    server_stop(server);
}

static void test_queue_bound_can_change(void **state)
{
    (void)state;
    struct server *server = START(1, 16);
    hg_logins_set_queue_max(server->logins, 0);
    int fd = dial(server, 1);
    assert_int_equal(plain(fd, "ann", "right").status, HG_STATUS_EBUSY);
    hg_logins_set_queue_max(server->logins, 1);
    assert_int_equal(plain(fd, "ann", "right").status, 0);
    /* being refused is no failed login: the identity stays */
    hg_logins_set_queue_max(server->logins, 0);
    assert_int_equal(plain(fd, "bob", "builder").status, HG_STATUS_EBUSY);
    assert_string_equal(who(fd), "ann");
    close(fd);
    server_stop(server);
}

static void test_failures_are_slowed_by_address(void **state)
{
    (void)state;
    struct server *server = START(1, 16);
    const struct hg_login_stats *stats = server_stats(server);
    int fd = dial(server, 1), other = dial(server, 2);
    for (int i = 0; i < HG_LOGINGUARD_FREE; i++)
        assert_int_equal(plain(fd, "ann", "wrong").status, HG_STATUS_AUTH_ERROR);
    assert_int_equal(stats->slowed, 0);
    uint64_t begun_us = hg_now_us();
    ask_plain(fd, "ann", "wrong");
    POLL(stats->delayed == 1 || stats->slowed == 1);
    /* the delayed one holds no thread: another address passes, and is not kept behind it */
    assert_int_equal(plain(other, "ann", "right").status, 0);
    uint64_t delayed = stats->delayed;
    assert_true(delayed == 1 || hg_now_us() - begun_us >= HG_LOGINGUARD_STEP_US);
    assert_int_equal(hear(fd).status, HG_STATUS_AUTH_ERROR);
    assert_true(hg_now_us() - begun_us >= HG_LOGINGUARD_STEP_US);
    assert_int_equal(stats->slowed, 1);
    assert_int_equal(plain(fd, "ann", "right").status, 0);
    assert_int_equal(stats->slowed, 2);
    /* forgiven */
    assert_int_equal(plain(fd, "ann", "wrong").status, HG_STATUS_AUTH_ERROR);
    assert_int_equal(stats->slowed, 2);
    close(fd);
    close(other);
    server_stop(server);
}

/* Guesses in SCRAM are slowed at the message with the proof, however many were begun before. */
static void test_scram_guesses_are_slowed(void **state)
{
    (void)state;
    enum { CLIENTS = 6 };
    struct server *server = START(1, 16);
    int fd[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        fd[i] = dial(server, 1);
        assert_int_equal(
            call(fd[i], HG_OPCODE_SASL_AUTH, "SCRAM-SHA-256", "n,,n=ann,r=abcdef", 17).status,
            HG_STATUS_AUTH_CONTINUE);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        ask(fd[i], HG_OPCODE_SASL_STEP, "SCRAM-SHA-256", "c=biws,r=abcdef,p=AAAA", 22);
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(hear(fd[i]).status, HG_STATUS_AUTH_ERROR);
        close(fd[i]);
    }
    assert_int_equal(server_stats(server)->slowed, CLIENTS - HG_LOGINGUARD_FREE);
    server_stop(server);
}

/* With an answer that nobody reads a closed socket is a broken one, not one that is half closed. */
static void ask_unread(int fd)
{
    ask(fd, HG_OPCODE_NOOP, "", NULL, 0);
    POLL(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0) == 1);
}

/* More than the guard lets wait: refused at once, and not counted as failures. */
static void test_slowed_too_far_is_refused(void **state)
{
    (void)state;
    enum { CLIENTS = 60 };
    struct server *server = START(1, 64);
    const struct hg_login_stats *stats = server_stats(server);
    int fd[CLIENTS], first = dial(server, 1);
    unsigned count = 0;
    for (int i = 0; i < HG_LOGINGUARD_FREE + 1; i++)
        assert_int_equal(plain(first, "ann", "wrong").status, HG_STATUS_AUTH_ERROR);
    /* On a slow machine the first have been served by the time that the last ask; but each that
       fails makes the others wait longer, so there is one that is refused. */
    for (; count < CLIENTS && stats->refused_slowed == 0; count++) {
        uint64_t asked = stats->slowed + stats->refused_slowed;
        fd[count] = dial(server, 1);
        ask_unread(fd[count]);
        ask_plain(fd[count], "ann", "wrong");
        POLL(stats->slowed + stats->refused_slowed > asked);
    }
    assert_int_equal(stats->refused_slowed, 1);
    (void)hear(fd[count - 1]); /* of ask_unread */
    struct answer answer = hear(fd[count - 1]);
    assert_int_equal(answer.status, HG_STATUS_EBUSY);
    assert_non_null(strstr(answer.text, "too many logins from this address failed"));
    for (unsigned i = 0; i < count; i++)
        close(fd[i]); /* gone while delayed: their places are free at once */
    POLL(stats->delayed == 0);
    close(first);
    server_stop(server);
}

static int dial_text(struct server *server, const char *text)
{
    struct hg_addr peer;
    char bracketed[64];
    snprintf(bracketed, sizeof bracketed, "%s%s%s", strchr(text, ':') != NULL ? "[" : "", text,
             strchr(text, ':') != NULL ? "]" : "");
    assert_int_equal(hg_addr_parse(bracketed, 1, &peer), 0);
    return dial_from(server, &peer);
}

static void test_addresses(void **state)
{
    (void)state;
    struct server *server = START(1, 16);
    const struct hg_login_stats *stats = server_stats(server);
    static const struct {
        const char *failing, *asking;
        bool same;
    } cases[] = {{"2001:db8::1", "2001:db8::ffff", true},
                 {"2001:db8:0:1::1", "2001:db8:0:2::1", false},
                 {"::ffff:192.0.2.1", "192.0.2.1", true},
                 {"192.0.2.3", "192.0.2.4", false},
                 {"/run/x", "/run/y", true},
                 {"192.0.2.5", "/run/x", false}};
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        int fd[2] = {dial_text(server, cases[i].failing), dial_text(server, cases[i].asking)};
        for (int n = 0; n < HG_LOGINGUARD_FREE; n++)
            assert_int_equal(plain(fd[0], "ann", "wrong").status, HG_STATUS_AUTH_ERROR);
        uint64_t slowed = stats->slowed;
        assert_int_equal(plain(fd[1], "ann", "right").status, 0);
        assert_int_equal(stats->slowed - slowed, cases[i].same);
        assert_int_equal(plain(fd[0], "ann", "right").status, 0);
        close(fd[0]);
        close(fd[1]);
    }
    server_stop(server);
}

/* ---- ends at bad moments ---- */

static void test_session_goes_in_the_middle(void **state)
{
    (void)state;
    struct server *server = START_HEAVY(1, 16);
    const struct hg_login_stats *stats = server_stats(server);
    int carried_out = dial(server, 1), waiting = dial(server, 2);
    ask_unread(carried_out);
    ask_plain(carried_out, "ann", "right");
    POLL(stats->started == 1 && stats->waiting == 0);
    ask_unread(waiting);
    ask_plain(waiting, "ann", "right");
    POLL(stats->waiting == 1);
    close(waiting);
    close(carried_out);
    POLL(stats->cancelled == 2);
    assert_int_equal(stats->waiting, 0);
    assert_int_equal(stats->succeeded, 0);
    /* and between two messages */
    int fd = dial(server, 3);
    assert_int_equal(call(fd, HG_OPCODE_SASL_AUTH, "SCRAM-SHA-256", "n,,n=ann,r=abcdef", 17).status,
                     HG_STATUS_AUTH_CONTINUE);
    close(fd);
    POLL(stats->cancelled == 3);
    server_stop(server);
}

static void test_stop_answers_everybody(void **state)
{
    (void)state;
    enum { CLIENTS = 6 };
    struct server *server = START_HEAVY(1, 16);
    const struct hg_login_stats *stats = server_stats(server);
    int fd[CLIENTS], slowed = dial(server, 100);
    for (unsigned i = 0; i < HG_LOGINGUARD_FREE; i++)
        assert_int_equal(plain(slowed, "", "").status, HG_STATUS_AUTH_ERROR);
    ask_plain(slowed, "ann", "wrong");
    POLL(stats->delayed == 1);
    for (unsigned i = 0; i < CLIENTS; i++) {
        fd[i] = dial(server, (uint8_t)i);
        ask_plain(fd[i], "ann", "right");
    }
    POLL(stats->started == CLIENTS + HG_LOGINGUARD_FREE + 1);
    hg_logins_stop(server->logins);
    unsigned stopped = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct answer answer = hear(fd[i]);
        if (answer.status != 0) {
            assert_int_equal(answer.status, HG_STATUS_EBUSY);
            assert_string_equal(answer.text, "the server is stopping");
            stopped++;
        }
    }
    assert_true(stopped >= 1);
    /* later ones are refused at once, and sessions are well */
    assert_int_equal(plain(fd[0], "ann", "right").status, HG_STATUS_EBUSY);
    assert_int_equal(call(fd[0], HG_OPCODE_NOOP, "", NULL, 0).status, 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(fd[i]);
    close(slowed);
    server_stop(server);
}

/* Sessions that still wait when the worker ends. */
static void test_worker_ends_first(void **state)
{
    (void)state;
    struct server *server = START_HEAVY(1, 16);
    int fd[3];
    for (unsigned i = 0; i < 3; i++) {
        fd[i] = dial(server, (uint8_t)i);
        ask_plain(fd[i], "ann", "right");
    }
    POLL(server_stats(server)->started == 3);
    hg_worker_stop(server->worker);
    hg_logins_stop(server->logins);
    hg_workers_free(server->worker, 1);
    hg_gate_holder_fini(&server->front.ingress);
    assert_int_equal(server_stats(server)->cancelled, 3);
    hg_logins_free(server->logins);
    for (unsigned i = 0; i < 3; i++)
        close(fd[i]);
    free(server->worker);
    free(server);
}

/* Many at once, on several helpers, some of them leaving. */
static void test_crowd(void **state)
{
    (void)state;
    enum { CLIENTS = 60 };
    struct server *server = START(3, 100);
    int fd[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        fd[i] = dial(server, (uint8_t)i);
        ask_plain(fd[i], i % 3 == 0 ? "nobody" : "ann", "right");
        if (i % 5 == 0)
            close(fd[i]);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (i % 5 == 0)
            continue;
        assert_int_equal(hear(fd[i]).status, i % 3 == 0 ? HG_STATUS_AUTH_ERROR : 0);
        if (i % 3 != 0)
            assert_string_equal(who(fd[i]), "ann");
        close(fd[i]);
    }
    server_stop(server);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_is_bounded),
        cmocka_unit_test(test_queue_bound_can_change),
        cmocka_unit_test(test_failures_are_slowed_by_address),
        cmocka_unit_test(test_scram_guesses_are_slowed),
        cmocka_unit_test(test_slowed_too_far_is_refused),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_session_goes_in_the_middle),
        cmocka_unit_test(test_stop_answers_everybody),
        cmocka_unit_test(test_worker_ends_first),
        cmocka_unit_test(test_crowd),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("login_bounds", tests, NULL, NULL);
}
