// t_table_range - queries and scans: parts, order among requests, limits, ends of every kind
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/table_in.h"
#include "tablescene.h"

static struct client *client_of(struct tablescene *t)
{
    return &t->s.client;
}

static void ask_query(struct tablescene *t, const char *start, const char *end, unsigned limit,
                      uint32_t opaque)
{
    table_ask(t, HG_OP_TABLE_QUERY, "t", "", body_query(start, end, limit, 0, false), opaque);
}

static void check_rows(const table_reply *reply, unsigned first, unsigned count, int step)
{
    assert_int_equal(reply->n_rows, count);
    for (unsigned i = 0; i < count; i++) {
        char row[8];
        snprintf(row, sizeof row, "r%03u", first + (unsigned)(step * (int)i));
        assert_int_equal(reply->rows[i]->row.len, 4);
        assert_memory_equal(reply->rows[i]->row.data, row, 4);
        assert_int_equal(entity_int(reply->rows[i]->entity, "n"),
                         first + (unsigned)(step * (int)i));
    }
}

static void start_filled(struct tablescene *t, unsigned count)
{
    table_start(t);
    table_fill(t, "t", "r", count);
    table_fill(t, "s", "r", 2); /* neighbours that are no part of it */
    table_fill(t, "u", "r", 2);
    t->parts_at_once = true;
}

static void test_bounds(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 10);
    ask_query(&t, NULL, NULL, 0, 1);
    check_rows(table_expect(&t, client_of(&t), 1), 0, 10, 1);
    ask_query(&t, "r003", "r006", 0, 2);
    check_rows(table_expect(&t, client_of(&t), 2), 3, 4, 1);
    ask_query(&t, "r003", NULL, 2, 3);
    table_reply *reply = table_expect(&t, client_of(&t), 3);
    check_rows(reply, 3, 2, 1);
    assert_false(reply->more);
    table_ask(&t, HG_OP_TABLE_QUERY, "t", "", body_query("r003", "r006", 0, 0, true), 4);
    check_rows(table_expect(&t, client_of(&t), 4), 6, 4, -1);
    ask_query(&t, "r006", "r003", 0, 5);
    check_rows(table_expect(&t, client_of(&t), 5), 0, 0, 1);
    ask_query(&t, "r005", "r005", 0, 6); /* one row: no range */
    check_rows(table_expect(&t, client_of(&t), 6), 5, 1, 1);
    ask_query(&t, "r0055", "r0055", 0, 7);
    check_rows(table_expect(&t, client_of(&t), 7), 0, 0, 1);
    assert_int_equal(t.parts, 4);
    table_close(&t);
}

static void test_bound_too_long(void **state)
{
    (void)state;
    char bound[252];
    struct tablescene t;
    start_filled(&t, 3);
    memset(bound, 'x', sizeof bound);
    bound[249] = '\0';
    ask_query(&t, bound, NULL, 0, 1);
    table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY, HG_STATUS_EINVAL, 1);
    bound[248] = '\0';
    ask_query(&t, "a", bound, 0, 2);
    check_rows(table_expect(&t, client_of(&t), 2), 0, 3, 1);
    table_close(&t);
}

/* Between two parts others are served; what is read is charged as it goes. */
static void test_parts_give_way(void **state)
{
    (void)state;
    struct tablescene t;
    struct client other;
    start_filled(&t, 20);
    t.parts_at_once = false;
    t.part_items = 5;
    stage_connect_tcp(&t.s.stage, 0, &other);
    ask_query(&t, NULL, NULL, 0, 1);
    for (unsigned part = 0; part < 4; part++) {
        assert_int_equal(t.range_count, 1);
        table_add(&other, HG_OP_TABLE_GET, "t", "r001", body_none(), part);
        client_send(&other);
        table_expect(&t, &other, part);
        stage_expect_nothing(&t.s.stage, client_of(&t));
        table_part(&t);
        assert_int_equal(t.range_count, 0); /* not before the next turn */
        stage_run(&t.s.stage);
    }
    check_rows(table_expect(&t, client_of(&t), 1), 0, 20, 1);
    assert_int_equal(hg_counter_get(&table_lane(&t)->table_rows_read), 20);
    client_close(&other);
    table_close(&t);
}

/* It begins when all before it is answered, and what comes after waits for it. */
static void test_order_of_a_session(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 2);
    t.parts_at_once = false;
    t.by_hand = true;
    table_add(client_of(&t), HG_OP_TABLE_REPLACE, "t", "r002", body_entity("n", 2), 1);
    table_add(client_of(&t), HG_OP_TABLE_QUERY, "t", "", body_query("r", "s", 0, 0, false), 2);
    table_add(client_of(&t), HG_OP_TABLE_REPLACE, "t", "r003", body_entity("n", 3), 3);
    client_add_op(client_of(&t), HG_OPCODE_NOOP, NULL, 4);
    scene_send(&t.s);
    assert_int_equal(t.range_count, 0);
    table_obey(&t);
    table_expect(&t, client_of(&t), 1);
    stage_expect_nothing(&t.s.stage, client_of(&t));
    assert_int_equal(t.range_count, 1);
    assert_int_equal(fakestore_pending(t.s.store), 0);
    table_part(&t);
    check_rows(table_expect(&t, client_of(&t), 2), 0, 3, 1);
    stage_run(&t.s.stage);
    table_obey(&t);
    table_expect(&t, client_of(&t), 3);
    scene_expect(&t.s, HG_OPCODE_NOOP, 0, 4);
    assert_int_equal(hg_counter_get(&t.s.stage.workers[0].opcodes[HG_OPCODE_TABLE]), 3);
    table_close(&t);
}

static void test_no_order_in_the_store(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 3);
    table_unordered(&t);
    ask_query(&t, "r000", "r002", 0, 1);
    assert_non_null(strstr(
        table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY, HG_STATUS_NOT_SUPPORTED, 1), "order"));
    table_ask(&t, HG_OP_HBASE_SCAN, "h", "", body_scan("a", 0, 0), 2);
    table_refused(&t, client_of(&t), HG_OP_HBASE_SCAN, HG_STATUS_NOT_SUPPORTED, 2);
    ask_query(&t, "r001", "r001", 0, 3);
    check_rows(table_expect(&t, client_of(&t), 3), 1, 1, 1);
    assert_int_equal(hg_counter_get(&table_lane(&t)->ru), 1);
    table_close(&t);
}

/* A reply is as large as a value may be; more says that it was cut. */
static void test_reply_is_bounded(void **state)
{
    (void)state;
    struct tablescene t;
    table_init(&t, 1);
    t.s.stage.settings.max_value_bytes = 65536;
    table_open(&t);
    t.parts_at_once = true;
    for (unsigned i = 0; i < 5; i++) {
        char row[8];
        snprintf(row, sizeof row, "r%u", i);
        table_ask(&t, HG_OP_TABLE_REPLACE, "t", row, body_bytes("b", 30000), i);
        table_expect(&t, client_of(&t), i);
    }
    ask_query(&t, NULL, NULL, 0, 9);
    table_reply *reply = table_expect(&t, client_of(&t), 9);
    assert_int_equal(reply->n_rows, 2);
    assert_true(reply->more);
    assert_false(reply->session);
    table_ask(&t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 0, 0, false), 10);
    reply = table_expect(&t, client_of(&t), 10);
    unsigned rows = (unsigned)reply->n_rows, pages = 1;
    for (; reply->more; pages++) {
        table_ask(&t, HG_OP_TABLE_QUERY_NEXT, "t", "", body_session(reply->session), 10 + pages);
        reply = table_expect(&t, client_of(&t), 10 + pages);
        rows += (unsigned)reply->n_rows;
    }
    assert_int_equal(rows, 5);
    assert_int_equal(pages, 3);
    table_close(&t);
}

/* A query that cannot be read in time ends with an error; a session with what it has. */
static void test_deadline(void **state)
{
    (void)state;
    struct tablescene t;
    table_init(&t, 1);
    t.s.stage.settings.request_deadline_us = 1000000;
    table_open(&t);
    table_fill(&t, "t", "r", 20);
    t.part_items = 5;
    ask_query(&t, NULL, NULL, 0, 1);
    table_part(&t);
    stage_run(&t.s.stage);
    stage_advance(1000001);
    stage_turn(&t.s.stage);
    stage_timer(&t.s.stage);
    table_part(&t);
    assert_non_null(strstr(
        table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY, HG_STATUS_ETMPFAIL, 1), "narrow"));
    assert_int_equal(stage_outcome(&t.s.stage, HG_OUTCOME_QUEUE_TIMEOUT), 1);
    table_ask(&t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 0, 0, false), 2);
    table_part(&t);
    stage_run(&t.s.stage);
    stage_advance(600000);
    stage_timer(&t.s.stage);
    table_part(&t);
    table_reply *reply = table_expect(&t, client_of(&t), 2);
    check_rows(reply, 0, 10, 1);
    assert_true(reply->more);
    table_close(&t);
}

static void test_damage(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 3);
    shelf_put(&t.shelf, (char[256]){"t\0r0005"}, 7, HG_SPAN_LIT("classic"));
    ask_query(&t, NULL, NULL, 0, 1); /* what is no row is passed over */
    check_rows(table_expect(&t, client_of(&t), 1), 0, 3, 1);
    shelf_put(&t.shelf, (char[256]){"t\0r0015"}, HG_ROWDOC_FLAGS, HG_SPAN_LIT("\xf7HGRT\xff\xff"));
    ask_query(&t, NULL, NULL, 0, 2);
    table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY, HG_STATUS_EINTERNAL, 2);
    shelf_put(&t.shelf, (char[256]){"t\0r0015"}, HG_ROWDOC_FLAGS,
              rowop_document(HG_API_HBASE, 1, 0));
    ask_query(&t, NULL, NULL, 0, 3);
    table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY, HG_STATUS_NOT_SUPPORTED, 3);
    table_close(&t);
}

/* A wide row in parts, across replies; what changes meanwhile neither repeats nor hides a cell that
   stays. */
static void test_wide_row(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    t.parts_at_once = true;
    for (unsigned i = 0; i < 7; i++) {
        char qualifier[4];
        snprintf(qualifier, sizeof qualifier, "q%u", i);
        table_ask(&t, HG_OP_HBASE_PUT, "h", "a", body_cell("f", qualifier, "v"), i);
        hbase_expect(&t, client_of(&t), i);
    }
    table_ask(&t, HG_OP_HBASE_PUT, "h", "b", body_cell("f", "q", "v"), 8);
    hbase_expect(&t, client_of(&t), 8);
    table_ask(&t, HG_OP_HBASE_SCAN, "h", "", body_scan(NULL, 2, 2), 9);
    hbase_reply *reply = hbase_expect(&t, client_of(&t), 9);
    assert_int_equal(reply->n_rows, 2);
    assert_int_equal(reply->rows[1]->n_cells, 2);
    assert_true(reply->rows[1]->partial);
    assert_true(reply->more);
    uint64_t id = reply->session;
    table_ask(&t, HG_OP_HBASE_PUT, "h", "a", body_cell("f", "q1x", "v"), 10); /* behind us */
    hbase_expect(&t, client_of(&t), 10);
    table_ask(&t, HG_OP_HBASE_SCAN_NEXT, "h", "", body_scan_session(id), 11);
    reply = hbase_expect(&t, client_of(&t), 11);
    assert_int_equal(reply->n_rows, 2);
    assert_memory_equal(reply->rows[0]->cells[0]->qualifier.data, "q4", 2);
    assert_int_equal(reply->rows[1]->n_cells, 1);
    assert_false(reply->rows[1]->partial);
    table_ask(&t, HG_OP_HBASE_SCAN_NEXT, "h", "", body_scan_session(id), 12);
    reply = hbase_expect(&t, client_of(&t), 12);
    assert_int_equal(reply->n_rows, 1);
    assert_memory_equal(reply->rows[0]->row.data, "b", 1);
    assert_false(reply->more);
    table_close(&t);
}

/* While the store reads, between two parts, and before the first. */
static void test_client_goes(void **state)
{
    (void)state;
    for (unsigned step = 0; step < 3; step++) {
        struct tablescene t;
        start_filled(&t, 20);
        t.parts_at_once = false;
        t.part_items = 5;
        table_add(client_of(&t), HG_OP_TABLE_QUERY, "t", "", body_query("r", "s", 0, 0, false), 1);
        client_send(client_of(&t));
        STAGE_UNTIL(&t.s.stage, t.range_count == 1);
        if (step > 0)
            table_part(&t); /* it is in the list now */
        if (step > 1)
            stage_run(&t.s.stage);
        table_reset(&t, client_of(&t));
        assert_int_equal(t.range_count, 0);
        assert_true(t.range_cancels <= 1);
        assert_int_equal(t.s.stage.workers[0].tables.live, 0);
        assert_int_equal(stage_outcome(&t.s.stage, HG_OUTCOME_CLIENT_GONE), 1);
        table_close(&t);
    }
}

static void test_bucket_goes(void **state)
{
    (void)state;
    struct tablescene t;
    start_filled(&t, 20);
    t.parts_at_once = false;
    t.part_items = 5;
    ask_query(&t, "r", NULL, 0, 1);
    table_part(&t);
    stage_delete(&t.s.stage, "default");
    stage_publish(&t.s.stage);
    stage_run(&t.s.stage);
    if (t.range_count > 0) { /* the part that was begun before the letter came */
        table_part(&t);
        stage_run(&t.s.stage);
    }
    table_refused(&t, client_of(&t), HG_OP_TABLE_QUERY, HG_STATUS_NO_BUCKET, 1);
    table_close(&t);
}

/* Charged as it goes, beyond what is left: later requests pay for it by waiting. */
static void test_runs_into_debt(void **state)
{
    (void)state;
    struct tablescene t;
    table_init(&t, 1);
    stage_bucket(&t.s.stage, "tight", 0, 20);
    t.s.stage.anonymous_bucket = "tight";
    table_open(&t);
    t.parts_at_once = true;
    for (unsigned i = 0; i < 10; i++) {
        char key[256] = "t\0r0";
        key[3] = (char)('0' + i);
        shelf_put(&t.shelf, key, HG_ROWDOC_FLAGS, rowop_document(HG_API_TABLE, i, 20000));
    }
    ask_query(&t, NULL, NULL, 0, 1);
    assert_int_equal(table_expect(&t, client_of(&t), 1)->n_rows, 10);
    struct hg_lane *lane = &stage_find(&t.s.stage, "tight")->lanes[0];
    assert_in_range(hg_counter_get(&lane->ru), 49, 50); /* of 4096 bytes each */
    table_ask(&t, HG_OP_TABLE_GET, "t", "none", body_none(), 2);
    for (unsigned slots = 0; slots < 2; slots++) {
        stage_expect_nothing(&t.s.stage, client_of(&t));
        stage_tick(&t.s.stage);
    }
    table_expect(&t, client_of(&t), 2);
    table_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_bound_too_long),
        cmocka_unit_test(test_parts_give_way),
        cmocka_unit_test(test_order_of_a_session),
        cmocka_unit_test(test_no_order_in_the_store),
        cmocka_unit_test(test_reply_is_bounded),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_wide_row),
        cmocka_unit_test(test_client_goes),
        cmocka_unit_test(test_bucket_goes),
        cmocka_unit_test(test_runs_into_debt),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
