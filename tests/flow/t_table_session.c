// t_table_session - sessions of queries: whose they are, in use, over, too many, forgotten
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/table_in.h"
#include "tablescene.h"

#define UNKNOWN HG_STATUS_KEY_ENOENT

static struct client *client_of(struct tablescene *t)
{
    return &t->s.client;
}

static void start_filled(struct tablescene *t, unsigned workers)
{
    table_init(t, workers);
    table_open(t);
    table_fill(t, "t", "r", 10);
    t->parts_at_once = true;
}

static uint64_t open_session(struct tablescene *t, unsigned rows, uint32_t opaque)
{
    table_ask(t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 0, rows, false), opaque);
    table_reply *reply = table_expect(t, client_of(t), opaque);
    assert_int_equal(reply->n_rows, rows);
    assert_true(reply->more);
    assert_true(reply->session != 0);
    return reply->session;
}

static void ask(struct client *client, enum hg_op op, uint64_t id, uint32_t opaque)
{
    struct hg_span body =
        hg_op_rows[op].api == HG_API_TABLE ? body_session(id) : body_scan_session(id);
    table_add(client, op, "t", "", body, opaque);
    client_send(client);
}

static void expect_refused(struct tablescene *t, struct client *client, enum hg_op op, uint64_t id,
                           uint16_t status, uint32_t opaque)
{
    ask(client, op, id, opaque);
    table_refused(t, client, op, status, opaque);
}

static uint64_t open_now(struct tablescene *t, const char *bucket)
{
    struct hg_bucket *of = stage_find(&t->s.stage, bucket);
    uint64_t sum = 0;
    for (unsigned w = 0; w < t->s.stage.worker_count; w++)
        sum += hg_counter_get(&of->lanes[w].table_sessions);
    assert_int_equal(sum, of->cursor_count);
    return sum;
}

/* ---- the life of one ---- */

static void test_to_the_end(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    uint64_t id = open_session(&t, 4, 1);
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 2);
    table_reply *reply = table_expect(&t, client_of(&t), 2);
    assert_int_equal(reply->n_rows, 4);
    assert_int_equal(reply->session, id);
    assert_int_equal(entity_int(reply->rows[0]->entity, "n"), 4);
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 3);
    reply = table_expect(&t, client_of(&t), 3);
    assert_int_equal(reply->n_rows, 2);
    assert_false(reply->more);
    assert_int_equal(reply->session, 0);
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, UNKNOWN, 4);
    assert_int_equal(open_now(&t, "default"), 0);
    table_close(&t);
}

/* What fits into one reply needs no session, limits included. */
static void test_none_is_needed(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    table_ask(&t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 3, 5, false), 1);
    table_reply *reply = table_expect(&t, client_of(&t), 1);
    assert_int_equal(reply->n_rows, 3);
    assert_false(reply->more);
    table_ask(&t, HG_OP_TABLE_QUERY_START, "t", "", body_query("r001", "r001", 0, 1, false), 2);
    reply = table_expect(&t, client_of(&t), 2);
    assert_int_equal(reply->n_rows, 1);
    assert_int_equal(reply->session, 0);
    assert_int_equal(open_now(&t, "default"), 0);
    table_close(&t);
}

/* The limit holds over all replies together. */
static void test_limit_over_pages(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    table_ask(&t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 7, 4, true), 1);
    table_reply *reply = table_expect(&t, client_of(&t), 1);
    assert_int_equal(reply->n_rows, 4);
    assert_int_equal(entity_int(reply->rows[0]->entity, "n"), 9);
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, reply->session, 2);
    reply = table_expect(&t, client_of(&t), 2);
    assert_int_equal(reply->n_rows, 3);
    assert_int_equal(entity_int(reply->rows[2]->entity, "n"), 3);
    assert_false(reply->more);
    table_close(&t);
}

static void test_ended_by_the_client(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    uint64_t id = open_session(&t, 4, 1);
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_END, id + 1, UNKNOWN, 2);
    ask(client_of(&t), HG_OP_TABLE_QUERY_END, id, 3);
    table_expect(&t, client_of(&t), 3);
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_END, id, UNKNOWN, 4);
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, UNKNOWN, 5);
    assert_int_equal(open_now(&t, "default"), 0);
    table_close(&t);
}

/* ---- whose it is ---- */

/* Any connection of the tenant, on any worker. */
static void test_other_connections(void **state)
{
    (void)state;
    struct tablescene t;
    struct client other;
    start_filled(&t, 2);
    uint64_t id = open_session(&t, 4, 1);
    stage_connect_tcp(&t.s.stage, 1, &other);
    struct hg_store *store =
        hg_worker_store(&t.s.stage.workers[1], &t.s.stage.upstreams[0].upstream);
    table_use(&t, HG_CONTAINER_OF(store, struct fakestore, store));
    ask(&other, HG_OP_TABLE_QUERY_NEXT, id, 2);
    assert_int_equal(table_expect(&t, &other, 2)->n_rows, 4);
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 3);
    assert_int_equal(table_expect(&t, client_of(&t), 3)->n_rows, 2);
    assert_int_equal(open_now(&t, "default"), 0);
    client_close(&other);
    table_close(&t);
}

static void test_not_for_others(void **state)
{
    (void)state;
    struct tablescene t;
    struct client other;
    table_init(&t, 1);
    stage_bucket(&t.s.stage, "else", 0, HG_UNITS_UNLIMITED);
    table_open(&t);
    table_fill(&t, "t", "r", 10);
    t.parts_at_once = true;
    uint64_t id = open_session(&t, 4, 1);
    expect_refused(&t, client_of(&t), HG_OP_HBASE_SCAN_NEXT, id, UNKNOWN, 2);
    stage_connect_tcp(&t.s.stage, 0, &other);
    client_ask(&other, HG_OPCODE_SELECT_BUCKET, "else", 3);
    stage_expect(&t.s.stage, &other, HG_OPCODE_SELECT_BUCKET, 0, 3);
    expect_refused(&t, &other, HG_OP_TABLE_QUERY_NEXT, id, UNKNOWN, 4);
    expect_refused(&t, &other, HG_OP_TABLE_QUERY_END, id, UNKNOWN, 5);
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 6);
    table_expect(&t, client_of(&t), 6);
    client_close(&other);
    table_close(&t);
}

static void test_one_request_at_a_time(void **state)
{
    (void)state;
    struct tablescene t;
    struct client other;
    start_filled(&t, 1);
    stage_connect_tcp(&t.s.stage, 0, &other);
    uint64_t id = open_session(&t, 4, 1);
    t.parts_at_once = false;
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 2);
    stage_expect_nothing(&t.s.stage, client_of(&t));
    expect_refused(&t, &other, HG_OP_TABLE_QUERY_NEXT, id, HG_STATUS_EBUSY, 3);
    expect_refused(&t, &other, HG_OP_TABLE_QUERY_END, id, HG_STATUS_EBUSY, 4);
    table_part(&t);
    table_expect(&t, client_of(&t), 2);
    t.parts_at_once = true;
    ask(&other, HG_OP_TABLE_QUERY_NEXT, id, 5); /* it goes on as if nothing had been */
    assert_int_equal(table_expect(&t, &other, 5)->n_rows, 2);
    client_close(&other);
    table_close(&t);
}

/* ---- ends that nobody asked for ---- */

static void test_client_goes_in_the_middle(void **state)
{
    (void)state;
    struct tablescene t;
    struct client other;
    start_filled(&t, 1);
    stage_connect_tcp(&t.s.stage, 0, &other);
    uint64_t id = open_session(&t, 4, 1);
    t.parts_at_once = false;
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 2);
    stage_run(&t.s.stage);
    assert_int_equal(t.range_count, 1);
    table_reset(&t, client_of(&t));
    assert_int_equal(t.range_cancels, 1);
    expect_refused(&t, &other, HG_OP_TABLE_QUERY_NEXT, id, UNKNOWN, 3);
    assert_int_equal(open_now(&t, "default"), 0);
    client_close(&other);
    table_close(&t);
}

static void test_an_error_ends_it(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    uint64_t id = open_session(&t, 4, 1);
    shelf_put(&t.shelf, (char[256]){"t\0r0045"}, HG_ROWDOC_FLAGS, HG_SPAN_LIT("\xf7HGRT\xff"));
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, HG_STATUS_EINTERNAL, 2);
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, UNKNOWN, 3);
    assert_int_equal(open_now(&t, "default"), 0);
    table_close(&t);
}

static void test_expiry(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    struct hg_lane *lane = table_lane(&t);
    uint64_t first = open_session(&t, 4, 1);
    stage_advance(40000000);
    stage_turn(&t.s.stage);
    uint64_t second = open_session(&t, 4, 2);
    stage_advance(21000000); /* the first is over; noticed when it is asked for */
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, first, UNKNOWN, 3);
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, second, 4); /* and lives on from now */
    table_expect(&t, client_of(&t), 4);
    assert_int_equal(hg_counter_get(&lane->table_sessions_expired), 1);
    stage_advance(59000000);
    stage_timer(&t.s.stage);
    assert_int_equal(open_now(&t, "default"), 1);
    stage_advance(2000000);
    stage_timer(&t.s.stage); /* nobody asks */
    assert_int_equal(open_now(&t, "default"), 0);
    assert_int_equal(hg_counter_get(&lane->table_sessions_expired), 2);
    atomic_store(&lane->bucket->table_session_idle_s, 5);
    first = open_session(&t, 4, 5);
    stage_advance(6000000);
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, first, UNKNOWN, 6);
    table_close(&t);
}

static void test_capped(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    uint64_t ids[3];
    atomic_store(&stage_find(&t.s.stage, "default")->table_sessions, 3);
    for (unsigned i = 0; i < 3; i++)
        ids[i] = open_session(&t, 1 + i, i);
    assert_true(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    table_ask(&t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 0, 4, false), 9);
    assert_non_null(
        strstr(table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_START, HG_STATUS_EBUSY, 9),
               "table_sessions"));
    table_ask(&t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 0, 20, false), 10);
    table_expect(&t, client_of(&t), 10); /* it needs none */
    ask(client_of(&t), HG_OP_TABLE_QUERY_END, ids[1], 11);
    table_expect(&t, client_of(&t), 11);
    ids[1] = open_session(&t, 5, 12);
    stage_advance(61000000); /* those that are over make room by themselves */
    stage_turn(&t.s.stage);
    ids[0] = open_session(&t, 5, 13);
    assert_int_equal(open_now(&t, "default"), 1);
    table_close(&t);
}

static void test_bucket_is_deleted(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    (void)open_session(&t, 4, 1);
    uint64_t id = open_session(&t, 4, 2);
    struct hg_bucket *bucket = hg_bucket_ref(stage_find(&t.s.stage, "default"));
    t.parts_at_once = false;
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 3);
    stage_run(&t.s.stage);
    stage_delete(&t.s.stage, "default");
    stage_publish(&t.s.stage);
    stage_run(&t.s.stage);
    stage_timer(&t.s.stage);
    assert_int_equal(bucket->cursor_count, 1); /* the busy one */
    table_part(&t);
    table_expect(&t, client_of(&t), 3); /* what was under way is answered */
    assert_int_equal(bucket->cursor_count, 0);
    expect_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, HG_STATUS_NO_BUCKET, 4);
    client_close(client_of(&t));
    stage_run(&t.s.stage);
    assert_int_equal(atomic_load(&bucket->refs), 1);
    hg_bucket_unref(bucket);
    stage_connect_tcp(&t.s.stage, 0, client_of(&t));
    table_close(&t);
}

/* What is still open when the process ends is freed with it. */
static void test_left_open(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 1);
    for (unsigned i = 0; i < 90; i++) /* more than the table's first size */
        (void)open_session(&t, 1, i);
    assert_int_equal(open_now(&t, "default"), 90);
    table_close(&t);
}

/* Held for credits, a request has not taken its session yet. */
static void test_held(void **state)
{
    (void)state;
    struct tablescene t;
    struct client other;
    table_init(&t, 1);
    stage_bucket(&t.s.stage, "tight", 0, 1);
    t.s.stage.anonymous_bucket = "tight";
    table_open(&t);
    table_fill(&t, "t", "r", 10);
    t.parts_at_once = true;
    stage_connect_tcp(&t.s.stage, 0, &other);
    uint64_t id = open_session(&t, 4, 1);
    ask(client_of(&t), HG_OP_TABLE_QUERY_NEXT, id, 2);
    stage_expect_nothing(&t.s.stage, client_of(&t));
    ask(&other, HG_OP_TABLE_QUERY_END, id, 3); /* costs nothing and waits for nothing */
    table_expect(&t, &other, 3);
    stage_tick(&t.s.stage);
    table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY_NEXT, UNKNOWN, 2);
    ask(&other, HG_OP_TABLE_QUERY_END, id, 4);
    table_refused(&t, &other, HG_OP_TABLE_QUERY_END, UNKNOWN, 4);
    client_close(&other);
    table_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_the_end),
        cmocka_unit_test(test_none_is_needed),
        cmocka_unit_test(test_limit_over_pages),
        cmocka_unit_test(test_ended_by_the_client),
        cmocka_unit_test(test_other_connections),
        cmocka_unit_test(test_not_for_others),
        cmocka_unit_test(test_one_request_at_a_time),
        cmocka_unit_test(test_client_goes_in_the_middle),
        cmocka_unit_test(test_an_error_ends_it),
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_capped),
        cmocka_unit_test(test_bucket_is_deleted),
        cmocka_unit_test(test_left_open),
        cmocka_unit_test(test_held),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
