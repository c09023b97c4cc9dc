// t_worker - a worker's letters, lanes and stores; fairness between tenants and connections
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scene.h"

/* ---- stores ---- */

/* A removed upstream is freed when the last answer is there; the loop goes on turning. */
static void test_removed_upstream_drains(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    struct hg_bucket *shop = stage_bucket(&s.stage, "shop", 0, HG_UNITS_UNLIMITED);
    hg_upstream_unref(shop->upstream);
    shop->upstream = hg_upstream_ref(&s.stage.upstreams[1].upstream);
    s.stage.upstream_count = 2;
    scene_open(&s);
    client_add_op(&s.client, HG_OPCODE_SELECT_BUCKET, "shop", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 2);
    scene_send(&s);
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 1);
    struct stage_upstream *removed = &s.stage.upstreams[1];
    struct fakestore *store = removed->stores[0];
    assert_int_equal(fakestore_pending(store), 1);
    stage_delete(&s.stage, "shop");
    s.stage.upstream_count = 1;
    stage_publish(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(removed->freed, 0);
    fakestore_obey(fakestore_first(store));
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    stage_run(&s.stage);
    assert_int_equal(removed->freed, 1);
    client_ask(&s.client, HG_OPCODE_GET, "k", 3);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_NO_BUCKET, 3);
    client_add_op(&s.client, HG_OPCODE_SELECT_BUCKET, "default", 4);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 5);
    scene_send(&s);
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 4);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 5);
    assert_int_equal(atomic_load(&removed->upstream.refs), 2); /* ours, and its generation's */
    scene_close(&s);
}

/* The store of the first upstream is the one that goes: hooks of others lie behind its. */
static void test_first_of_two_stores_goes(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    struct hg_bucket *shop = stage_bucket(&s.stage, "shop", 0, HG_UNITS_UNLIMITED);
    shop->upstream = &s.stage.upstreams[1].upstream;
    hg_upstream_ref(shop->upstream);
    hg_upstream_unref(&s.stage.upstreams[0].upstream);
    s.stage.upstream_count = 2;
    stage_open(&s.stage);
    stage_connect(&s.stage, 0, &s.client);
    client_add_op(&s.client, HG_OPCODE_SELECT_BUCKET, "shop", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 2);
    client_add_op(&s.client, HG_OPCODE_SELECT_BUCKET, "default", 3);
    client_add_op(&s.client, HG_OPCODE_GET, "k", 4);
    scene_send(&s);
    for (unsigned i = 0; i < 2; i++)
        fakestore_obey_all(s.stage.upstreams[i].stores[0]);
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 1);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 3);
    scene_expect(&s, HG_OPCODE_GET, 0, 4);
    stage_delete(&s.stage, "shop");
    s.stage.upstream_count = 1;
    stage_publish(&s.stage);
    stage_run(&s.stage);
    assert_int_equal(s.stage.upstreams[1].freed, 1);
    client_ask(&s.client, HG_OPCODE_GET, "k", 5);
    stage_run(&s.stage);
    fakestore_obey_all(s.stage.upstreams[0].stores[0]);
    scene_expect(&s, HG_OPCODE_GET, 0, 5);
    scene_close(&s);
}

/* ---- letters that come late ---- */

static void answer_late(struct hg_job *job, struct hg_session *session)
{
    (void)job;
    (void)session;
    fail_msg("the session is gone");
}

static void test_job_outlives_its_session(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    client_ask(&s.client, HG_OPCODE_STAT, NULL, 1);
    stage_run(&s.stage);
    struct hg_job *job = stage_job(&s.stage);
    assert_non_null(job->session);
    hg_session_close(stage_session(&s.stage));
    stage_run(&s.stage);
    assert_null(job->session);
    job->on_worker = answer_late;
    hg_job_stat(job, "a", "b");
    hg_job_answer(job);
    stage_expect_end(&s.stage, &s.client);
    scene_close(&s);
}

/* Everything that may still be in the box of a worker whose thread has ended. */
static void test_letters_to_a_closed_worker(void **state)
{
    (void)state;
    struct scene s;
    struct client late;
    scene_init(&s);
    stage_bucket(&s.stage, "tight", 0, 1);
    s.stage.anonymous_bucket = "tight";
    scene_open(&s);
    client_add_op(&s.client, HG_OPCODE_DELETE, "k", 1);
    client_add_op(&s.client, HG_OPCODE_STAT, NULL, 2);
    scene_send(&s);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 1);
    hg_worker_close(&s.stage.workers[0]);
    s.stage.upstream_count = 0;
    stage_publish(&s.stage);
    stage_publish(&s.stage);
    stage_tick(&s.stage);
    hg_worker_give_tick(&s.stage.workers[0]);
    hg_worker_begin_drain(&s.stage.workers[0]);
    stage_connect(&s.stage, 0, &late);
    hg_job_answer(stage_job(&s.stage));
    hg_mailbox_fini(&s.stage.workers[0].mailbox);
    assert_int_equal(
        hg_mailbox_init(&s.stage.workers[0].mailbox, &s.stage.workers[0].loop, &s.stage.workers[0]),
        0);
    client_read(&late, SIZE_MAX);
    assert_true(late.ended);
    client_close(&late);
    client_close(&s.client);
    stage_close(&s.stage);
}

static void on_last(struct hg_letter *letter, void *receiver)
{
    (void)receiver;
    hg_job_answer(HG_CONTAINER_OF(letter, struct hg_job, letter));
}

static void on_first(struct hg_letter *letter, void *receiver)
{
    struct hg_worker *worker = receiver;
    letter->deliver = on_last;
    hg_mailbox_post(&worker->front->workers[1].mailbox, letter);
}

/* A job that goes from worker to worker when all have ended: it is freed, not lost between them. */
static void test_round_of_closed_workers(void **state)
{
    (void)state;
    struct stage stage;
    struct client client;
    stage_init(&stage, 2);
    stage_open(&stage);
    stage_connect(&stage, 0, &client);
    client_ask(&client, HG_OPCODE_STAT, NULL, 1);
    stage_run(&stage);
    struct hg_job *job = stage_job(&stage);
    job->letter.deliver = on_first;
    hg_mailbox_post(&stage.workers[0].mailbox, &job->letter);
    client_close(&client);
    stage_close(&stage); /* and the leak checker sees to it */
}

static void test_directories_in_order(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    for (uint32_t n = 1; n <= 5; n++) {
        s.stage.settings.max_value_bytes = n * 100;
        stage_publish(&s.stage);
    }
    stage_turn(&s.stage);
    assert_int_equal(s.stage.workers[0].directory->settings.max_value_bytes, 500);
    assert_int_equal(atomic_load(&s.stage.directory->refs), 2);
    scene_close(&s);
}

/* A directory changes under requests in every state; they do not notice. */
static void test_directory_under_requests(void **state)
{
    (void)state;
    struct scene s;
    struct client parked, waiting;
    scene_init(&s);
    stage_bucket(&s.stage, "tight", 0, 1);
    scene_open(&s);
    stage_connect(&s.stage, 0, &parked);
    stage_connect(&s.stage, 0, &waiting);
    client_add_op(&s.client, HG_OPCODE_SELECT_BUCKET, "tight", 1);
    client_add_op(&s.client, HG_OPCODE_DELETE, "flight", 2);
    client_add_op(&s.client, HG_OPCODE_DELETE, "held", 3);
    scene_send(&s);
    client_ask(&parked, HG_OPCODE_STAT, NULL, 4);
    stage_run(&s.stage);
    s.store->room = 0;
    client_ask(&waiting, HG_OPCODE_DELETE, "waits", 5);
    stage_run(&s.stage);
    for (unsigned n = 0; n < 3; n++) {
        stage_publish(&s.stage);
        stage_run(&s.stage);
    }
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 1);
    fakestore_obey(fakestore_find(s.store, "flight"));
    scene_expect(&s, HG_OPCODE_DELETE, 0, 2);
    s.store->room = SIZE_MAX;
    s.store->answers = true;
    stage_tick(&s.stage);
    scene_expect(&s, HG_OPCODE_DELETE, 0, 3);
    fakestore_call_room(fakestore_find(s.store, "waits"));
    stage_expect(&s.stage, &waiting, HG_OPCODE_DELETE, 0, 5);
    hg_job_answer(stage_job(&s.stage));
    stage_expect(&s.stage, &parked, HG_OPCODE_STAT, 0, 4);
    client_close(&parked);
    client_close(&waiting);
    scene_close(&s);
}

/* ---- lanes ---- */

static void test_connections_come_and_go(void **state)
{
    (void)state;
    struct scene s;
    scene_start(&s);
    s.store->answers = true;
    for (unsigned n = 0; n < 300; n++) {
        struct client client;
        stage_connect(&s.stage, 0, &client);
        client_ask(&client, HG_OPCODE_GET, "k", n);
        stage_expect(&s.stage, &client, HG_OPCODE_GET, 0, n);
        client_close(&client);
        stage_run(&s.stage);
    }
    struct hg_bucket *bucket = stage_find(&s.stage, "default");
    assert_int_equal(bucket->connections, 1);
    assert_int_equal(bucket->lanes[0].users, 1);
    assert_int_equal(atomic_load(&bucket->refs), 3); /* stage, directory, lane */
    scene_close(&s);
}

/* ---- fairness ---- */

#define MANY 10

/* Keeps a client's pipeline full, and counts what it got. */
static unsigned feed(struct client *client)
{
    unsigned got = 0;
    struct reply reply;
    while (client->out_len < 20000)
        client_add_op(client, HG_OPCODE_GET, "k", 1);
    client_send(client);
    client_read(client, SIZE_MAX);
    while (client_take(client, &reply))
        got++;
    return got;
}

static void run_many(unsigned *got, bool second_tenant)
{
    struct scene s;
    struct client many[MANY];
    scene_init(&s);
    stage_bucket(&s.stage, "other", 0, HG_UNITS_UNLIMITED);
    scene_open(&s);
    s.store->answers = true;
    for (unsigned c = 0; c < MANY; c++) {
        stage_connect(&s.stage, 0, &many[c]);
        got[c] = 0;
    }
    client_ask(&s.client, HG_OPCODE_SELECT_BUCKET, "other", 1);
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 1);
    got[MANY] = 0;
    for (unsigned turn = 0; turn < 2000; turn++) {
        for (unsigned c = 0; c < MANY; c++)
            got[c] += feed(&many[c]);
        if (second_tenant)
            got[MANY] += feed(&s.client);
        stage_turn(&s.stage);
    }
    for (unsigned c = 0; c < MANY; c++)
        client_close(&many[c]);
    scene_close(&s);
}

/* Ten connections of one tenant and one of another on a worker that is never idle: the tenants get
   the same, and so do the ten among themselves. */
static void test_tenants_share_a_worker(void **state)
{
    (void)state;
    unsigned got[MANY + 1], sum = 0, least = UINT32_MAX, most = 0;
    run_many(got, true);
    for (unsigned c = 0; c < MANY; c++) {
        sum += got[c];
        least = got[c] < least ? got[c] : least;
        most = got[c] > most ? got[c] : most;
    }
    print_message("# ten: %u (%u to %u each), one: %u\n", sum, least, most, got[MANY]);
    assert_in_range(sum * 100 / got[MANY], 95, 105);
    assert_in_range(least * 100 / most, 90, 100);
}

static void test_connections_share_a_worker(void **state)
{
    (void)state;
    unsigned got[MANY + 1], least = UINT32_MAX, most = 0;
    run_many(got, false);
    for (unsigned c = 0; c < MANY; c++) {
        least = got[c] < least ? got[c] : least;
        most = got[c] > most ? got[c] : most;
    }
    print_message("# each %u to %u\n", least, most);
    assert_in_range(least * 100 / most, 90, 100);
}

/* Shallow pipelines that are never left over, against one deep one of the same tenant. */
static void test_deep_pipeline_is_not_starved(void **state)
{
    (void)state;
    struct scene s;
    struct client many[MANY], deep;
    struct reply reply;
    unsigned got = 0;
    scene_init(&s);
    stage_bucket(&s.stage, "other", 0, HG_UNITS_UNLIMITED);
    scene_open(&s);
    s.store->answers = true;
    client_ask(&s.client, HG_OPCODE_SELECT_BUCKET, "other", 1);
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 1);
    for (unsigned c = 0; c < MANY; c++)
        stage_connect(&s.stage, 0, &many[c]);
    stage_connect(&s.stage, 0, &deep);
    for (unsigned turn = 0; turn < 500; turn++) {
        for (unsigned c = 0; c < MANY; c++) {
            for (unsigned n = 0; n < 16; n++)
                client_add_op(&many[c], HG_OPCODE_GET, "k", n);
            client_send(&many[c]);
            client_read(&many[c], SIZE_MAX);
            while (client_take(&many[c], &reply))
                ;
        }
        got += feed(&deep);
        feed(&s.client);
        stage_turn(&s.stage);
    }
    print_message("# the deep one got %u\n", got);
    assert_in_range(got, 500 * 64 / (MANY + 1) / 2, 500 * 64);
    for (unsigned c = 0; c < MANY; c++)
        client_close(&many[c]);
    client_close(&deep);
    scene_close(&s);
}

/* One tenant alone: who comes with one request waits for a few turns, not for a flood to end. */
static void test_flood_does_not_hold_up_the_next(void **state)
{
    (void)state;
    struct scene s;
    struct client many[40];
    scene_start(&s);
    s.store->answers = true;
    for (unsigned c = 0; c < 40; c++)
        stage_connect(&s.stage, 0, &many[c]);
    unsigned turns = 0, asked = 0, answered = 0;
    struct reply reply;
    for (; turns < 400; turns++) {
        for (unsigned c = 0; c < 40; c++)
            feed(&many[c]);
        if (turns % 10 == 0)
            client_ask(&s.client, HG_OPCODE_GET, "k", asked++);
        stage_turn(&s.stage);
        client_read(&s.client, SIZE_MAX);
        while (client_take(&s.client, &reply))
            assert_int_equal(reply.opaque, answered++);
        if (turns % 10 == 9)
            assert_int_equal(answered, asked);
    }
    for (unsigned c = 0; c < 40; c++)
        client_close(&many[c]);
    scene_close(&s);
}

/* Frames that come in parts while their tenant's share is used up: nothing is lost or mixed up. */
static void test_parts_under_contention(void **state)
{
    (void)state;
    struct scene s;
    struct client flood[4], part;
    static uint8_t value[50000];
    struct reply reply;
    uint32_t sent = 0, got = 0;
    scene_init(&s);
    stage_bucket(&s.stage, "other", 0, HG_UNITS_UNLIMITED);
    scene_open(&s);
    s.store->answers = true;
    client_ask(&s.client, HG_OPCODE_SELECT_BUCKET, "other", 1);
    scene_expect(&s, HG_OPCODE_SELECT_BUCKET, 0, 1);
    for (unsigned c = 0; c < 4; c++)
        stage_connect(&s.stage, 0, &flood[c]);
    stage_connect(&s.stage, 0, &part);
    for (unsigned turn = 0; turn < 3000; turn++) {
        for (unsigned c = 0; c < 4; c++)
            feed(&flood[c]);
        feed(&s.client);
        if (part.out_len < 1000) {
            client_add_set(&part, HG_OPCODE_SET, "k", value, (sent * 7919) % sizeof value, sent);
            sent++;
        }
        client_send_part(&part, part.out_len < 777 ? part.out_len : 777);
        stage_turn(&s.stage);
        client_read(&part, SIZE_MAX);
        while (client_take(&part, &reply)) {
            assert_int_equal(reply.status, 0);
            assert_int_equal(reply.opaque, got++);
        }
    }
    assert_true(got > 50);
    for (unsigned c = 0; c < 4; c++)
        client_close(&flood[c]);
    client_close(&part);
    scene_close(&s);
}

/* ---- the slow log ---- */

static void test_slow_log(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    s.stage.settings.slow_request_us = 1000;
    scene_open(&s);
    s.store->room = 0;
    client_ask(&s.client, HG_OPCODE_GET, "slow", 1);
    stage_run(&s.stage);
    stage_advance(3000);
    s.store->room = 1;
    stage_turn(&s.stage);
    fakestore_call_room(fakestore_find(s.store, "slow"));
    stage_advance(2000);
    stage_turn(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    s.store->answers = true;
    client_ask(&s.client, HG_OPCODE_GET, "quick", 2);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    struct hg_worker *worker = &s.stage.workers[0];
    assert_int_equal(worker->slow_count, 1);
    assert_int_equal(worker->slow[0].total_us, 5000);
    assert_int_equal(worker->slow[0].queue_us, 3000);
    assert_int_equal(worker->slow[0].backend_us, 2000);
    assert_int_equal(worker->slow[0].throttle_us, 0);
    assert_memory_equal(worker->slow[0].key, "slow", 4);
    assert_string_equal(worker->slow[0].bucket, "default");
    assert_string_equal(worker->slow[0].server, "fake:1");
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removed_upstream_drains),
        cmocka_unit_test(test_first_of_two_stores_goes),
        cmocka_unit_test(test_job_outlives_its_session),
        cmocka_unit_test(test_letters_to_a_closed_worker),
        cmocka_unit_test(test_round_of_closed_workers),
        cmocka_unit_test(test_directories_in_order),
        cmocka_unit_test(test_directory_under_requests),
        cmocka_unit_test(test_connections_come_and_go),
        cmocka_unit_test(test_tenants_share_a_worker),
        cmocka_unit_test(test_connections_share_a_worker),
        cmocka_unit_test(test_deep_pipeline_is_not_starved),
        cmocka_unit_test(test_flood_does_not_hold_up_the_next),
        cmocka_unit_test(test_parts_under_contention),
        cmocka_unit_test(test_slow_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
