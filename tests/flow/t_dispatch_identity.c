// t_dispatch_identity - who may do what in which bucket, and what the process is asked
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

#define BIT(name) HG_PRIVILEGE_BIT(HG_PRIVILEGE_##name)

static void ask(struct scene *s, uint8_t opcode, const char *key, uint16_t status)
{
    static uint32_t opaque = 1000;
    client_ask(&s->client, opcode, key, ++opaque);
    scene_expect(s, opcode, status, opaque);
}

/* ---- jobs ---- */

static struct hg_job *take_job(struct scene *s)
{
    stage_run(&s->stage);
    struct hg_job *job = stage_job(&s->stage);
    assert_non_null(job);
    return job;
}

/* A job parks its session: what is behind waits, what is before is answered before. */
static void test_job_keeps_the_order(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add_op(&s.client, HG_OPCODE_GET, "a", 1);
    client_add_op(&s.client, HG_OPCODE_STAT, "buckets", 2);
    client_add_op(&s.client, HG_OPCODE_GET, "b", 3);
    scene_send(&s);
    struct hg_job *job = take_job(&s);
    assert_true(hg_span_is(job->key, "buckets"));
    assert_ptr_equal(job->bucket, stage_find(&s.stage, "default"));
    hg_job_stat(job, "one", "%d", 1);
    hg_job_stat(job, "two", "%s", "zwei");
    hg_job_answer(job);
    stage_expect_nothing(&s.stage, &s.client);
    assert_int_equal(s.store->submits, 2);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    struct reply reply = scene_expect(&s, HG_OPCODE_STAT, 0, 2);
    assert_true(hg_span_is(reply.key, "one"));
    assert_string_equal(reply_text(&reply), "1");
    reply = scene_expect(&s, HG_OPCODE_STAT, 0, 2);
    assert_true(hg_span_is(reply.key, "two"));
    assert_string_equal(reply_text(&reply), "zwei");
    reply = scene_expect(&s, HG_OPCODE_STAT, 0, 2);
    assert_int_equal(reply.key.len + reply.value.len, 0);
    scene_expect(&s, HG_OPCODE_GET, 0, 3);
    assert_int_equal(stage_total(&s.stage), 3);
    scene_close(&s);
}

static void test_job_fails(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add(&s.client, &(struct ask){.opcode = HG_OPCODE_SET_BUCKET_THROTTLE,
                                        .key = "shop",
                                        .opaque = 1,
                                        .value = HG_SPAN_LIT("{}")});
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 2);
    scene_send(&s);
    struct hg_job *job = take_job(&s);
    assert_true(hg_span_is(job->value, "{}"));
    hg_job_stat(job, "made", "before it failed");
    hg_job_fail(job, HG_STATUS_EINVAL, "'%s' is no bucket", "shop");
    hg_job_stat(job, "made", "after it failed");
    hg_job_answer(job);
    struct reply reply = scene_expect(&s, HG_OPCODE_SET_BUCKET_THROTTLE, HG_STATUS_EINVAL, 1);
    assert_string_equal(reply_text(&reply), "'shop' is no bucket");
    scene_expect(&s, HG_OPCODE_NOOP, 0, 2);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_INVALID), 1);
    scene_close(&s);
}

static void test_job_closes(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_add_op(&s.client, HG_OPCODE_STAT, NULL, 1);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 2);
    scene_send(&s);
    struct hg_job *job = take_job(&s);
    hg_job_body(job, HG_SPAN_LIT("bye"));
    job->close_after = true;
    hg_job_answer(job);
    struct reply reply = scene_expect(&s, HG_OPCODE_STAT, 0, 1);
    assert_string_equal(reply_text(&reply), "bye");
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* ---- logging in ---- */

static struct stage_user *who;

static void log_in(struct hg_job *job, struct hg_session *session)
{
    (void)job;
    hg_session_log_in(session, who, who->name);
}

static void log_out(struct hg_job *job, struct hg_session *session)
{
    (void)job;
    hg_session_log_out(session);
}

static void log_in_as(struct scene *s, struct stage_user *user)
{
    client_ask(&s->client, HG_OPCODE_SASL_AUTH, "PLAIN", 5);
    struct hg_job *job = take_job(s);
    who = user;
    job->on_worker = log_in;
    hg_job_answer(job);
    scene_expect(s, HG_OPCODE_SASL_AUTH, 0, 5);
}

static void test_before_login(void **state)
{
    (void)state;
    static char value[20000];
    struct scene s;
    scene_init(&s);
    s.stage.settings.login_required = true;
    s.stage.anonymous_bucket = NULL;
    s.stage.anonymous_privileges = 0;
    stage_user(&s.stage, "default", NULL, BIT(READ));
    scene_open(&s);
    s.store->answers = true;
    ask(&s, HG_OPCODE_NOOP, NULL, 0);
    ask(&s, HG_OPCODE_VERSION, NULL, 0);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_EACCESS);
    ask(&s, HG_OPCODE_SELECT_BUCKET, "default", HG_STATUS_EACCESS);
    ask(&s, HG_OPCODE_STAT, NULL, HG_STATUS_EACCESS);
    ask(&s, HG_OPCODE_FLUSH, NULL, HG_STATUS_EACCESS);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_DENIED), 4);
    log_in_as(&s, &s.stage.users[0]); /* her bucket is selected */
    ask(&s, HG_OPCODE_GET, "k", 0);
    ask(&s, HG_OPCODE_DELETE, "k", HG_STATUS_EACCESS);
    client_ask(&s.client, HG_OPCODE_SASL_AUTH, "PLAIN", 6);
    struct hg_job *job = take_job(&s);
    job->on_worker = log_out;
    hg_job_fail(job, HG_STATUS_AUTH_ERROR, "no");
    hg_job_answer(job);
    scene_expect(&s, HG_OPCODE_SASL_AUTH, HG_STATUS_AUTH_ERROR, 6);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_EACCESS);
    /* Who is not logged in has no room for large frames. */
    client_add_set(&s.client, HG_OPCODE_SET, "k", value, sizeof value, 7);
    client_add_op(&s.client, HG_OPCODE_NOOP, NULL, 8);
    client_send(&s.client);
    scene_expect(&s, HG_OPCODE_SET, HG_STATUS_E2BIG, 7);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* The bucket has one place, and she has it. */
static void test_login_again(void **state)
{
    (void)state;
    struct scene s;
    struct client second;
    scene_init(&s);
    s.stage.anonymous_bucket = NULL;
    atomic_store(&stage_find(&s.stage, "default")->max_connections, 1);
    stage_user(&s.stage, "default", NULL, HG_PRIVILEGES_ALL);
    scene_open(&s);
    s.store->answers = true;
    log_in_as(&s, &s.stage.users[0]);
    ask(&s, HG_OPCODE_GET, "k", 0);
    log_in_as(&s, &s.stage.users[0]);
    ask(&s, HG_OPCODE_GET, "k", 0);
    stage_connect(&s.stage, 0, &second);
    client_ask(&second, HG_OPCODE_SELECT_BUCKET, "default", 1);
    stage_expect(&s.stage, &second, HG_OPCODE_SELECT_BUCKET, HG_STATUS_EBUSY, 1);
    client_ask(&second, HG_OPCODE_GET, "k", 2);
    stage_expect(&s.stage, &second, HG_OPCODE_GET, HG_STATUS_NO_BUCKET, 2);
    client_add_hello(&second, 3, (const uint16_t[]){0x07, 0});
    client_ask(&second, HG_OPCODE_SELECT_BUCKET, "default", 4);
    stage_expect(&s.stage, &second, HG_OPCODE_HELLO, 0, 3);
    stage_expect(&s.stage, &second, HG_OPCODE_SELECT_BUCKET, HG_STATUS_RATE_LIMITED_MAX_CONNECTIONS,
                 4);
    client_close(&second);
    scene_close(&s);
}

/* Nobody asked for the bucket, so its being full is told when something is wanted of it. */
static void test_anonymous_bucket_is_full(void **state)
{
    (void)state;
    struct scene s;
    struct client second;
    scene_init(&s);
    atomic_store(&stage_find(&s.stage, "default")->max_connections, 1);
    scene_open(&s);
    s.store->answers = true;
    ask(&s, HG_OPCODE_GET, "k", 0);
    stage_connect(&s.stage, 0, &second);
    client_ask(&second, HG_OPCODE_NOOP, NULL, 1);
    stage_expect(&s.stage, &second, HG_OPCODE_NOOP, 0, 1);
    client_ask(&second, HG_OPCODE_GET, "k", 2);
    stage_expect(&s.stage, &second, HG_OPCODE_GET, HG_STATUS_EBUSY, 2);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_CONNECTION_LIMIT), 1);
    /* A new directory is another chance. */
    atomic_store(&stage_find(&s.stage, "default")->max_connections, 2);
    stage_publish(&s.stage);
    stage_run(&s.stage);
    client_ask(&second, HG_OPCODE_GET, "k", 3);
    stage_expect(&s.stage, &second, HG_OPCODE_GET, 0, 3);
    client_close(&second);
    scene_close(&s);
}

/* ---- buckets ---- */

static void test_select_bucket(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "shop", 0, HG_UNITS_UNLIMITED);
    stage_bucket(&s.stage, "ads", 0, HG_UNITS_UNLIMITED);
    stage_user(&s.stage, "ann", "shop", HG_PRIVILEGES_ALL);
    scene_open(&s);
    s.store->answers = true;
    client_ask(&s.client, HG_OPCODE_LIST_BUCKETS, NULL, 1);
    struct reply reply = scene_expect(&s, HG_OPCODE_LIST_BUCKETS, 0, 1);
    assert_string_equal(reply_text(&reply), "ads default shop");
    ask(&s, HG_OPCODE_SELECT_BUCKET, "nothing", HG_STATUS_KEY_ENOENT);
    ask(&s, HG_OPCODE_GET, "k", 0);
    ask(&s, HG_OPCODE_SELECT_BUCKET, "@no bucket@", 0);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_NO_BUCKET);
    stage_publish(&s.stage); /* new settings do not select one */
    stage_run(&s.stage);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_NO_BUCKET);
    log_in_as(&s, &s.stage.users[0]);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_NO_BUCKET);
    ask(&s, HG_OPCODE_SELECT_BUCKET, "ads", HG_STATUS_EACCESS);
    ask(&s, HG_OPCODE_SELECT_BUCKET, "nothing", HG_STATUS_EACCESS);
    ask(&s, HG_OPCODE_SELECT_BUCKET, "shop", 0);
    ask(&s, HG_OPCODE_GET, "k", 0);
    client_ask(&s.client, HG_OPCODE_LIST_BUCKETS, NULL, 2);
    reply = scene_expect(&s, HG_OPCODE_LIST_BUCKETS, 0, 2);
    assert_string_equal(reply_text(&reply), "shop");
    assert_int_equal(stage_find(&s.stage, "shop")->connections, 1);
    assert_int_equal(stage_find(&s.stage, "default")->connections, 0);
    scene_close(&s);
}

/* Buckets change in the middle of a segment, while requests to the last one are under way. */
static void test_select_in_the_middle(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "ads", 0, HG_UNITS_UNLIMITED);
    stage_bucket(&s.stage, "shop", 0, HG_UNITS_UNLIMITED);
    scene_open(&s);
    for (uint32_t i = 0; i < 60; i++) {
        client_add_op(&s.client, HG_OPCODE_SELECT_BUCKET, i % 2 ? "shop" : "ads", 1000 + i);
        for (uint32_t j = 0; j < 3; j++)
            client_add_op(&s.client, HG_OPCODE_GET, "k", i * 3 + j);
    }
    s.store->answers = false;
    PATIENCE_WHILE(!client_send(&s.client))
    stage_turn(&s.stage);
    for (uint32_t i = 0; i < 60; i++) {
        scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 1000 + i);
        for (uint32_t j = 0; j < 3; j++) {
            fakestore_obey(fakestore_first(s.store));
            scene_expect(&s, HG_OPCODE_GET, 0, i * 3 + j);
        }
    }
    for (unsigned b = 0; b < 2; b++) {
        struct hg_lane *lane = &stage_find(&s.stage, b ? "shop" : "ads")->lanes[0];
        assert_int_equal(hg_counter_get(&lane->outcomes[HG_OUTCOME_SUCCESS]), 90);
    }
    scene_close(&s);
}

/* The last user of a deleted bucket leaves it in the middle of a segment: the record goes, and
   nobody looks at it afterwards. */
static void test_last_user_leaves(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "shop", 0, HG_UNITS_UNLIMITED);
    s.stage.anonymous_bucket = "shop";
    scene_open(&s);
    s.store->answers = true;
    ask(&s, HG_OPCODE_GET, "k", 0);
    stage_delete(&s.stage, "shop");
    stage_publish(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(s.stage.retired, 0);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 1);
    client_add_op(&s.client, HG_OPCODE_SELECT_BUCKET, "default", 2);
    for (uint32_t i = 3; i < 200; i++)
        client_add_op(&s.client, HG_OPCODE_GET, "k", i);
    client_send(&s.client);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_NO_BUCKET, 1);
    assert_non_null(strstr(reply_text(&reply), "deleted"));
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 2);
    for (uint32_t i = 3; i < 200; i++)
        scene_expect(&s, HG_OPCODE_GET, 0, i);
    assert_int_equal(s.stage.retired, 1);
    scene_close(&s);
}

static void be(struct scene *s, enum hg_bucket_state state)
{
    atomic_store(&stage_find(&s->stage, "default")->state, (int)state);
}

/* Each request of a tenant that is not active is answered at once; who knows XERROR is told why. */
static void test_states_of_a_bucket(void **state)
{
    (void)state;
    static const uint16_t features[] = {0x07, 0x0b, 0};
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    be(&s, HG_BUCKET_PAUSED);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_ETMPFAIL);
    ask(&s, HG_OPCODE_NOOP, NULL, 0);
    be(&s, HG_BUCKET_ORPHAN);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_ETMPFAIL);
    be(&s, HG_BUCKET_DISABLED);
    ask(&s, HG_OPCODE_GET, "k", HG_STATUS_EACCESS);
    client_add_hello(&s.client, 1, features);
    client_send(&s.client);
    scene_expect(&s, HG_OPCODE_HELLO, 0, 1);
    client_ask(&s.client, HG_OPCODE_GET, "k", 2);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_EACCESS, 2);
    assert_non_null(strstr(reply_text(&reply), "\"state\":\"disabled\""));
    be(&s, HG_BUCKET_PAUSED);
    client_ask(&s.client, HG_OPCODE_GET, "k", 3);
    reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_BUCKET_PAUSED, 3);
    assert_non_null(strstr(reply_text(&reply), "\"state\":\"paused\",\"retry_after_ms\":1000"));
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_PAUSED), 3);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_DISABLED), 2);
    assert_int_equal(s.store->submits, 0);
    be(&s, HG_BUCKET_ACTIVE);
    ask(&s, HG_OPCODE_GET, "k", 0);
    assert_int_equal(stage_total(&s.stage), 8);
    scene_close(&s);
}

/* Nobody comes into a disabled bucket; who is in a paused one, or comes, waits there for better
   times. What the store had is answered as ever. */
static void test_selecting_and_what_is_under_way(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "shop", 0, HG_UNITS_UNLIMITED);
    scene_open(&s);
    struct hg_bucket *shop = stage_find(&s.stage, "shop");
    atomic_store(&shop->state, HG_BUCKET_DISABLED);
    ask(&s, HG_OPCODE_SELECT_BUCKET, "shop", HG_STATUS_EACCESS);
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_DISABLED), 1);
    atomic_store(&shop->state, HG_BUCKET_PAUSED);
    ask(&s, HG_OPCODE_SELECT_BUCKET, "shop", 0);
    atomic_store(&shop->state, HG_BUCKET_ACTIVE);
    client_ask(&s.client, HG_OPCODE_GET, "k", 1);
    stage_expect_nothing(&s.stage, &s.client);
    atomic_store(&shop->state, HG_BUCKET_PAUSED);
    stage_publish(&s.stage);
    client_ask(&s.client, HG_OPCODE_GET, "l", 2);
    stage_expect_nothing(&s.stage, &s.client); /* behind the first, in order */
    assert_int_equal(s.store->submits, 1);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_ETMPFAIL, 2);
    scene_close(&s);
}

/* ---- privileges ---- */

static void test_drop_privilege(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    stage_bucket(&s.stage, "shop", 0, HG_UNITS_UNLIMITED);
    scene_open(&s);
    s.store->answers = true;
    ask(&s, HG_OPCODE_DELETE, "k", 0);
    ask(&s, HG_OPCODE_DROP_PRIVILEGE, "write", HG_STATUS_KEY_ENOENT);
    ask(&s, HG_OPCODE_DROP_PRIVILEGE, "Write", 0);
    ask(&s, HG_OPCODE_DELETE, "k", HG_STATUS_EACCESS);
    ask(&s, HG_OPCODE_GET, "k", 0);
    /* Neither another bucket nor new settings bring it back. */
    ask(&s, HG_OPCODE_SELECT_BUCKET, "shop", 0);
    ask(&s, HG_OPCODE_DELETE, "k", HG_STATUS_EACCESS);
    stage_publish(&s.stage);
    stage_run(&s.stage);
    ask(&s, HG_OPCODE_DELETE, "k", HG_STATUS_EACCESS);
    ask(&s, HG_OPCODE_GET, "k", 0);
    scene_close(&s);
}

static void ask_as(struct scene *s, uint8_t opcode, const char *user, uint16_t status)
{
    uint8_t framing[16] = {(uint8_t)(4 << 4 | strlen(user))};
    memcpy(framing + 1, user, strlen(user));
    client_add(&s->client, &(struct ask){.opcode = opcode,
                                         .key = "k",
                                         .opaque = 77,
                                         .framing = hg_span(framing, 1 + strlen(user))});
    scene_send(s);
    scene_expect(s, opcode, status, 77);
}

static void test_impersonation(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    s.stage.anonymous_privileges = BIT(READ) | BIT(IMPERSONATE);
    stage_user(&s.stage, "ann", "default", BIT(READ) | BIT(WRITE));
    stage_user(&s.stage, "bob", "shop", BIT(READ) | BIT(WRITE));
    scene_open(&s);
    s.store->answers = true;
    ask_as(&s, HG_OPCODE_GET, "ann", 0);
    ask_as(&s, HG_OPCODE_DELETE, "ann", HG_STATUS_EACCESS); /* the connection may not */
    ask_as(&s, HG_OPCODE_GET, "bob", HG_STATUS_EACCESS);    /* he may not, here */
    ask_as(&s, HG_OPCODE_GET, "eve", HG_STATUS_EACCESS);    /* nobody */
    ask(&s, HG_OPCODE_DROP_PRIVILEGE, "Impersonate", 0);
    ask_as(&s, HG_OPCODE_GET, "ann", HG_STATUS_EACCESS);
    assert_int_equal(s.store->submits, 1);
    scene_close(&s);
}

static void test_odd_frame_info(void **state)
{
    (void)state;
    static const struct {
        struct hg_span framing;
        uint16_t status;
    } rows[] = {
        {{(const uint8_t *)"\x00", 1}, 0},                            /* barrier */
        {{(const uint8_t *)"\x11\x01", 2}, HG_STATUS_NOT_SUPPORTED},  /* durability */
        {{(const uint8_t *)"\x70", 1}, HG_STATUS_UNKNOWN_FRAME_INFO}, /* unknown */
        {{(const uint8_t *)"\x4f", 1}, HG_STATUS_EINVAL},             /* cut off */
    };
    struct scene s;
    (void)state;
    scene_start(&s);
    s.store->answers = true;
    for (unsigned i = 0; i < HG_COUNT_OF(rows); i++) {
        client_add(&s.client, &(struct ask){.opcode = HG_OPCODE_GET,
                                            .key = "k",
                                            .opaque = i,
                                            .framing = rows[i].framing});
        scene_send(&s);
        scene_expect(&s, HG_OPCODE_GET, rows[i].status, i);
    }
    scene_close(&s);
}

static void test_data_limit(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    struct hg_bucket *bucket = stage_find(&s.stage, "default");
    for (uint16_t status = 0x35; status <= 0x38; status++) {
        atomic_store(&bucket->data_limit_status, status);
        client_add_set(&s.client, HG_OPCODE_SETQ, "k", "v", 1, status);
        scene_send(&s);
        scene_expect(&s, HG_OPCODE_SETQ, status, status);
        ask(&s, HG_OPCODE_GET, "k", 0);
        ask(&s, HG_OPCODE_DELETE, "k", 0);
    }
    assert_int_equal(stage_outcome(&s.stage, HG_OUTCOME_DATA_LIMIT), 4);
    assert_int_equal(hg_counter_get(&bucket->lanes[0].num_rejected), 4);
    atomic_store(&bucket->data_limit_status, 0);
    client_add_set(&s.client, HG_OPCODE_SET, "k", "v", 1, 9);
    scene_send(&s);
    scene_expect(&s, HG_OPCODE_SET, 0, 9);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_keeps_the_order),
        cmocka_unit_test(test_job_fails),
        cmocka_unit_test(test_job_closes),
        cmocka_unit_test(test_before_login),
        cmocka_unit_test(test_login_again),
        cmocka_unit_test(test_anonymous_bucket_is_full),
        cmocka_unit_test(test_select_bucket),
        cmocka_unit_test(test_select_in_the_middle),
        cmocka_unit_test(test_last_user_leaves),
        cmocka_unit_test(test_states_of_a_bucket),
        cmocka_unit_test(test_selecting_and_what_is_under_way),
        cmocka_unit_test(test_drop_privilege),
        cmocka_unit_test(test_impersonation),
        cmocka_unit_test(test_odd_frame_info),
        cmocka_unit_test(test_data_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
