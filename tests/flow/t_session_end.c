// t_session_end - half-closed, closed, reset, drained, revoked, idle: in every state of a session
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "scene.h"

/* Where a request (opaque 1, with a NOOP of opaque 2 behind it) may be when something happens. */
enum where {
    IDLE,     /* nowhere: nothing was sent */
    FLIGHT,   /* with the store */
    HELD,     /* for credits */
    RELEASED, /* by a tick, and not looked at since */
    ROOM,     /* in the store's queue */
    JOB,      /* with the process */
    PART,     /* half arrived */
    WHERES
};

static const char *const names[] = {"idle", "in flight", "held", "released", "room", "job", "part"};

static uint8_t opcode_of(enum where where)
{
    return where == JOB ? HG_OPCODE_STAT : HG_OPCODE_DELETE;
}

/* Brings the session there; over TCP, where a reset is a reset. */
static void enter(struct scene *s, enum where where)
{
    stage_init(&s->stage, 1);
    stage_bucket(&s->stage, "tight", 0, 1);
    s->stage.anonymous_bucket = "tight";
    stage_open(&s->stage);
    stage_connect_tcp(&s->stage, 0, &s->client);
    s->store = stage_store(&s->stage);
    stage_run(&s->stage);
    if (where == HELD || where == RELEASED) {
        s->store->answers = true;
        client_ask(&s->client, HG_OPCODE_DELETE, "first", 100);
        scene_expect(s, HG_OPCODE_DELETE, 0, 100);
        s->store->answers = false;
    }
    if (where == ROOM)
        s->store->room = 0;
    if (where == IDLE)
        return;
    client_add_op(&s->client, opcode_of(where), where == JOB ? NULL : "k", 1);
    client_add_op(&s->client, HG_OPCODE_NOOP, NULL, 2);
    if (where == PART)
        client_send_part(&s->client, 10);
    else
        assert_true(client_send(&s->client));
    stage_expect_nothing(&s->stage, &s->client);
    struct hg_session *session = stage_session(&s->stage);
    static const uint8_t waits[] = {[HELD] = HG_WAIT_CREDITS,
                                    [RELEASED] = HG_WAIT_CREDITS,
                                    [ROOM] = HG_WAIT_ROOM,
                                    [JOB] = HG_WAIT_JOB};
    if (where < HG_COUNT_OF(waits))
        assert_int_equal(session->wait, waits[where]);
    if (where == RELEASED)
        stage_tick(&s->stage); /* the letter is in the box: what comes now comes right behind it */
}

/* Lets the world go on: the store answers, the process answers. */
static void let_go_on(struct scene *s, enum where where)
{
    struct hg_job *job;
    stage_run(&s->stage);
    if (where == FLIGHT || where == RELEASED)
        fakestore_obey_all(s->store);
    while ((job = stage_job(&s->stage)) != NULL)
        hg_job_answer(job);
    stage_run(&s->stage);
}

/* The reply to the request and to the NOOP behind it, then the end. */
static void expect_rest(struct scene *s, enum where where, int status, bool noop)
{
    if (status >= 0)
        scene_expect(s, opcode_of(where), (uint16_t)status, 1);
    if (noop)
        scene_expect(s, HG_OPCODE_NOOP, 0, 2);
    stage_expect_end(&s->stage, &s->client);
}

static void check_counts(struct scene *s, enum where where, enum hg_outcome outcome)
{
    uint64_t before = where == HELD || where == RELEASED; /* the one that used the credits up */
    uint64_t success = outcome == HG_OUTCOME_SUCCESS;
    assert_int_equal(stage_outcome(&s->stage, HG_OUTCOME_SUCCESS), before + success);
    if (!success)
        assert_int_equal(stage_outcome(&s->stage, outcome), 1);
    assert_int_equal(fakestore_pending(s->store) + fakestore_waiting(s->store), 0);
}

/* What is dispatched is answered; what waits is refused at once. */
static void test_half_close(void **state)
{
    static const struct {
        int status;
        bool noop;
        enum hg_outcome outcome;
    } expected[WHERES] = {
        [IDLE] = {-1, false, HG_OUTCOMES},
        [FLIGHT] = {0, true, HG_OUTCOME_SUCCESS},
        [HELD] = {HG_STATUS_ETMPFAIL, true, HG_OUTCOME_THROTTLED_TOO_LONG},
        [RELEASED] = {0, true, HG_OUTCOME_SUCCESS},
        [ROOM] = {HG_STATUS_ETMPFAIL, true, HG_OUTCOME_QUEUE_TIMEOUT},
        [JOB] = {0, true, HG_OUTCOMES},
        [PART] = {-1, false, HG_OUTCOMES},
    };
    (void)state;
    for (enum where where = 0; where < WHERES; where++) {
        struct scene s;
        print_message("# half-closed while %s\n", names[where]);
        enter(&s, where);
        client_half_close(&s.client);
        if (where == HELD || where == ROOM)
            scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_ETMPFAIL, 1);
        else if (where == FLIGHT || where == JOB)
            stage_expect_nothing(&s.stage, &s.client);
        let_go_on(&s, where);
        bool at_once = where == HELD || where == ROOM;
        expect_rest(&s, where, at_once ? -1 : expected[where].status, expected[where].noop);
        if (expected[where].outcome != HG_OUTCOMES)
            check_counts(&s, where, expected[where].outcome);
        scene_close(&s);
    }
}

/* Nothing of a client that sends no more is held or waits, however much it has sent. */
static void test_half_close_behind_many(void **state)
{
    (void)state;
    for (enum where where = HELD; where <= ROOM; where++) {
        struct scene s;
        if (where == RELEASED)
            continue;
        enter(&s, where);
        for (uint32_t i = 3; i < 150; i++)
            client_add_op(&s.client, HG_OPCODE_DELETE, "k", i);
        assert_true(client_send(&s.client));
        client_half_close(&s.client);
        scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_ETMPFAIL, 1);
        scene_expect(&s, HG_OPCODE_NOOP, 0, 2);
        for (uint32_t i = 3; i < 150; i++)
            scene_expect(&s, HG_OPCODE_DELETE, HG_STATUS_ETMPFAIL, i);
        stage_expect_end(&s.stage, &s.client);
        scene_close(&s);
    }
}

/* Frames that are left over from one turn to the next are carried out before the end. */
static void test_half_close_behind_leftovers(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    for (uint32_t i = 0; i < 1000; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    assert_true(client_send(&s.client));
    client_half_close(&s.client);
    for (uint32_t i = 0; i < 1000; i++)
        scene_expect(&s, HG_OPCODE_GET, 0, i);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* A reset ends the session at once and cancels what it has under way: one outcome, no completion
   afterwards. */
static void reset_while(enum where where, bool more)
{
    struct scene s;
    struct linger abort_it = {1, 0};
    enter(&s, where);
    if (where == RELEASED)
        stage_turn(&s.stage); /* dispatched */
    if (more) {
        /* What it says while it waits is not listened to. */
        client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 3);
        assert_true(client_send(&s.client));
        stage_run(&s.stage);
    }
    setsockopt(s.client.fd, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it);
    client_close(&s.client);
    stage_run(&s.stage);
    assert_int_equal(stage_sessions(&s.stage), 0);
    assert_int_equal(s.stage.workers[0].requests.borrowed, 0);
    bool cancelled = where == FLIGHT || where == ROOM || where == RELEASED;
    assert_int_equal(s.store->cancels, cancelled);
    if (cancelled || where == HELD)
        check_counts(&s, where, HG_OUTCOME_CLIENT_GONE);
    let_go_on(&s, where);
    scene_close(&s);
}

static void test_reset(void **state)
{
    (void)state;
    for (enum where where = 0; where < WHERES; where++) {
        print_message("# reset while %s\n", names[where]);
        reset_while(where, false);
        if (where != PART)
            reset_while(where, true);
    }
}

/* A client that closes without having sent everything it was to read. */
static void test_close(void **state)
{
    (void)state;
    for (enum where where = 0; where < WHERES; where++) {
        struct scene s;
        print_message("# closed while %s\n", names[where]);
        enter(&s, where);
        client_close(&s.client);
        let_go_on(&s, where);
        assert_int_equal(stage_sessions(&s.stage), 0);
        assert_int_equal(fakestore_pending(s.store) + fakestore_waiting(s.store), 0);
        scene_close(&s);
    }
}

/* Draining answers everything that was looked at, dispatched or not, and closes. */
static void test_drain(void **state)
{
    static const int expected[WHERES] = {[IDLE] = -1,
                                         [FLIGHT] = 0,
                                         [HELD] = HG_STATUS_ETMPFAIL,
                                         [RELEASED] = HG_STATUS_ETMPFAIL,
                                         [ROOM] = HG_STATUS_ETMPFAIL,
                                         [JOB] = 0,
                                         [PART] = -1};
    (void)state;
    for (enum where where = 0; where < WHERES; where++) {
        struct scene s;
        print_message("# drained while %s\n", names[where]);
        enter(&s, where);
        hg_worker_begin_drain(&s.stage.workers[0]);
        let_go_on(&s, where);
        /* Only the one in flight had let the NOOP through. */
        expect_rest(&s, where, expected[where], where == FLIGHT);
        stage_run(&s.stage);
        assert_int_equal(stage_sessions(&s.stage), 1); /* lingers for the client */
        client_close(&s.client);
        stage_run(&s.stage);
        assert_int_equal(stage_sessions(&s.stage), 0);
        scene_close(&s);
    }
}

static void test_client_of_a_draining_worker(void **state)
{
    (void)state;
    struct scene s;
    struct client late;
    scene_start(&s);
    hg_worker_begin_drain(&s.stage.workers[0]);
    stage_connect(&s.stage, 0, &late);
    stage_expect_end(&s.stage, &s.client);
    stage_expect_end(&s.stage, &late);
    client_close(&late);
    scene_close(&s);
}

/* The user is gone in the new directory: so are his connections, whatever they do. */
static void test_revoked(void **state)
{
    (void)state;
    for (enum where where = 0; where < WHERES; where++) {
        struct scene s;
        print_message("# revoked while %s\n", names[where]);
        enter(&s, where);
        struct stage_user *user = stage_user(&s.stage, "ann", NULL, HG_PRIVILEGES_ALL);
        struct hg_session *session = stage_session(&s.stage);
        session->user = user; /* as after a login; her bucket stays selected */
        session->user_name = strdup("ann");
        user->revoked = true;
        stage_publish(&s.stage);
        stage_expect_end(&s.stage, &s.client);
        assert_int_equal(stage_sessions(&s.stage), 0);
        let_go_on(&s, where);
        scene_close(&s);
    }
}

/* ---- while the output is full ---- */

#define FULL_COUNT 20
#define FULL_BYTES 100000

static uint8_t full_value[FULL_BYTES];

static void give_full(struct fakestore *store, struct kept *kept)
{
    (void)store;
    fakestore_give_blob(kept, full_value, FULL_BYTES);
}

/* A client that asks for much and reads nothing. */
static void enter_full(struct scene *s, bool tcp)
{
    memset(full_value, 'x', FULL_BYTES);
    stage_init(&s->stage, 1);
    stage_open(&s->stage);
    if (tcp)
        stage_connect_tcp(&s->stage, 0, &s->client);
    else
        stage_connect(&s->stage, 0, &s->client);
    s->store = stage_store(&s->stage);
    s->store->on_submit = give_full;
    /* so that loopback does not take it all */
    int small = 4096;
    if (tcp)
        setsockopt(s->client.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    stage_run(&s->stage);
    if (tcp)
        setsockopt(stage_session(&s->stage)->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    for (uint32_t i = 0; i < FULL_COUNT; i++)
        client_add_op(&s->client, HG_OPCODE_GET, "k", i);
    scene_send(s);
    struct hg_session *session = stage_session(&s->stage);
    assert_true(session->full && session->paused);
}

/* How many whole replies the client gets until the end. */
static unsigned read_to_the_end(struct scene *s)
{
    unsigned got = 0;
    struct reply reply;
    uint64_t deadline_us = stage_deadline();
    while (!s->client.ended && hg_now_us() < deadline_us) {
        client_read(&s->client, 30000);
        stage_run(&s->stage);
        while (client_take(&s->client, &reply)) {
            assert_int_equal(reply.value.len, FULL_BYTES);
            assert_int_equal(reply.opaque, got++);
        }
    }
    assert_true(s->client.ended);
    return got;
}

static void test_half_close_while_full(void **state)
{
    (void)state;
    struct scene s;
    enter_full(&s, false);
    client_half_close(&s.client);
    stage_run(&s.stage);
    assert_int_equal(read_to_the_end(&s), FULL_COUNT);
    scene_close(&s);
}

static void test_drain_while_full(void **state)
{
    (void)state;
    struct scene s;
    enter_full(&s, false);
    hg_worker_begin_drain(&s.stage.workers[0]);
    stage_run(&s.stage);
    /* What had been looked at; the rest was not. */
    unsigned got = read_to_the_end(&s);
    assert_int_equal(got, s.store->submits);
    assert_in_range(got, 1, FULL_COUNT - 1);
    scene_close(&s);
}

static void test_reset_while_full(void **state)
{
    (void)state;
    struct scene s;
    struct linger abort_it = {1, 0};
    enter_full(&s, true);
    setsockopt(s.client.fd, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it);
    client_close(&s.client);
    stage_run(&s.stage);
    assert_int_equal(stage_sessions(&s.stage), 0);
    assert_int_equal(s.stage.workers[0].blobs.live_bytes, 0);
    scene_close(&s);
}

/* ---- clocks ---- */

static void test_idle_limit(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    s.stage.settings.idle_timeout_s = 10;
    scene_open(&s);
    stage_advance(9000000);
    stage_timer(&s.stage);
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    stage_run(&s.stage);
    /* Not while a request is under way. */
    stage_advance(20000000);
    stage_timer(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    /* Nor so soon after its reply. */
    stage_advance(9000000);
    stage_timer(&s.stage);
    stage_expect_nothing(&s.stage, &s.client);
    stage_advance(1000000);
    stage_timer(&s.stage);
    stage_expect_end(&s.stage, &s.client);
    assert_int_equal(hg_counter_get(&s.stage.workers[0].idle_closed), 1);
    scene_close(&s);
}

/* A client that sends on after the server's end is read on for a moment, so that it gets the last
   reply; not for ever. */
static void test_linger(void **state)
{
    (void)state;
    static const uint8_t junk[4096];
    struct scene s;
    scene_start(&s);
    client_ask(&s.client, HG_OPCODE_QUIT, NULL, 1);
    scene_expect(&s, HG_OPCODE_QUIT, 0, 1);
    stage_expect_end(&s.stage, &s.client);
    client_add_bytes(&s.client, junk, sizeof junk);
    scene_send(&s);
    assert_int_equal(stage_sessions(&s.stage), 1);
    stage_advance(2000000);
    stage_timer(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(stage_sessions(&s.stage), 0);
    scene_close(&s);
    /* nor without end */
    scene_start(&s);
    client_ask(&s.client, HG_OPCODE_QUIT, NULL, 1);
    stage_run(&s.stage);
    for (unsigned n = 0; n < 5000 && stage_sessions(&s.stage) == 1; n++) {
        s.client.out_len = 0;
        client_add_bytes(&s.client, junk, sizeof junk);
        client_send(&s.client);
        stage_turn(&s.stage);
    }
    assert_int_equal(stage_sessions(&s.stage), 0);
    scene_close(&s);
}

/* A client that never reads what it asked for, and says no more. */
static void test_closing_client_that_does_not_read(void **state)
{
    (void)state;
    struct scene s;
    uint8_t *value = calloc(1, 1u << 20);
    scene_init(&s);
    s.stage.settings.idle_timeout_s = 0;
    scene_open(&s);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 1);
    client_add_op(&s.client, HG_OPCODE_QUIT, NULL, 2);
    scene_send(&s);
    fakestore_give_blob(fakestore_find(s.store, "k"), value, 1u << 20);
    stage_run(&s.stage);
    assert_true(stage_session(&s.stage)->closing);
    stage_advance(3600000000);
    stage_timer(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(stage_sessions(&s.stage), 0);
    free(value);
    scene_close(&s);
}

static void test_over_limit(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    stage_session(&s.stage)->over_limit = true;
    client_add_op(&s.client, HG_OPCODE_GET, "k", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 2);
    scene_send(&s);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_EBUSY, 1);
    assert_non_null(strstr(reply_text(&reply), "max_connections"));
    stage_expect_end(&s.stage, &s.client);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_CONNECTION_LIMIT), 1);
    scene_close(&s);
    /* one that asks nothing does not stay */
    scene_start(&s);
    stage_session(&s.stage)->over_limit = true;
    stage_advance(6000000);
    stage_timer(&s.stage);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* ---- the end of the worker ---- */

/* Sessions in every state at once, then the thread ends; jobs are answered after that. */
static void test_worker_ends(void **state)
{
    (void)state;
    for (enum where where = 0; where < WHERES; where++) {
        struct scene s;
        print_message("# worker ends while %s\n", names[where]);
        enter(&s, where);
        stage_close(&s.stage);
        client_close(&s.client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_close),
        cmocka_unit_test(test_half_close_behind_many),
        cmocka_unit_test(test_half_close_behind_leftovers),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_client_of_a_draining_worker),
        cmocka_unit_test(test_revoked),
        cmocka_unit_test(test_half_close_while_full),
        cmocka_unit_test(test_drain_while_full),
        cmocka_unit_test(test_reset_while_full),
        cmocka_unit_test(test_idle_limit),
        cmocka_unit_test(test_linger),
        cmocka_unit_test(test_closing_client_that_does_not_read),
        cmocka_unit_test(test_over_limit),
        cmocka_unit_test(test_worker_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
