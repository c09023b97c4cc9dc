// t_table - row operations from frame to reply: order, rights, credits, ends of every kind
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "front/table.h"
#include "tablescene.h"

static struct client *client_of(struct tablescene *t)
{
    return &t->s.client;
}

static uint64_t outcome(struct tablescene *t, enum hg_outcome of)
{
    return stage_outcome(&t->s.stage, of);
}

/* ---- the usual ---- */

/* Requests for one row that arrive together are carried out one after the other. */
static void test_one_row_in_order(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    table_add(client_of(&t), HG_OP_TABLE_INSERT, "t", "r", body_entity("n", 1), 1);
    table_add(client_of(&t), HG_OP_TABLE_GET, "t", "r", body_none(), 2);
    table_add(client_of(&t), HG_OP_TABLE_INCREMENT, "t", "r", body_entity("n", 4), 3);
    table_add(client_of(&t), HG_OP_TABLE_GET, "t", "r", body_none(), 4);
    table_add(client_of(&t), HG_OP_TABLE_GET, "t", "other", body_none(), 5);
    scene_send(&t.s);
    assert_int_equal(fakestore_pending(t.s.store), 2); /* the first of each row */
    table_obey_one(&t, HG_OP_GET);
    table_obey_one(&t, HG_OP_GET); /* the other row's; its reply waits */
    stage_expect_nothing(&t.s.stage, client_of(&t));
    table_obey_one(&t, HG_OP_ADD);
    table_expect(&t, client_of(&t), 1);
    assert_int_equal(table_affected(), 1);
    table_obey_one(&t, HG_OP_GET);
    assert_int_equal(entity_int(table_expect(&t, client_of(&t), 2)->entity, "n"), 1);
    table_obey(&t);
    table_expect(&t, client_of(&t), 3);
    table_obey(&t);
    assert_int_equal(entity_int(table_expect(&t, client_of(&t), 4)->entity, "n"), 5);
    assert_null(table_expect(&t, client_of(&t), 5)->entity);
    assert_int_equal(outcome(&t, HG_OUTCOME_SUCCESS), 4);
    assert_int_equal(outcome(&t, HG_OUTCOME_MISS), 1);
    assert_int_equal(hg_counter_get(&t.s.stage.workers[0].latency[HG_OP_TABLE_GET].total), 3);
    table_close(&t);
}

static void test_hbase_row(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    table_ask(&t, HG_OP_HBASE_PUT, "h", "r", body_cell("f", "q", "v"), 1);
    hbase_expect(&t, client_of(&t), 1);
    assert_int_equal(table_affected(), 1);
    table_ask(&t, HG_OP_HBASE_GET, "h", "r", body_none(), 2);
    hbase_reply *reply = hbase_expect(&t, client_of(&t), 2);
    assert_int_equal(reply->n_cells, 1);
    assert_memory_equal(reply->cells[0]->value.data, "v", 1);
    table_ask(&t, HG_OP_TABLE_GET, "h", "r", body_none(), 3);
    assert_non_null(strstr(
        table_refused(&t, client_of(&t), HG_OP_TABLE_GET, HG_STATUS_NOT_SUPPORTED, 3), "HBase"));
    table_close(&t);
}

static void test_errors_of_rows(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_bytes("b", 10), 1);
    table_expect(&t, client_of(&t), 1);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_entity("n", 1), 2);
    table_refused(&t, client_of(&t), HG_OP_TABLE_INSERT, HG_STATUS_KEY_EEXISTS, 2);
    table_ask(&t, HG_OP_TABLE_INCREMENT, "t", "r", body_entity("b", 1), 3);
    table_refused(&t, client_of(&t), HG_OP_TABLE_INCREMENT, HG_STATUS_DELTA_BADVAL, 3);
    t.by_hand = true;
    table_ask(&t, HG_OP_TABLE_DELETE, "t", "r", body_none(), 4);
    fakestore_fault(fakestore_first(t.s.store), HG_FAULT_DOWN);
    table_refused(&t, client_of(&t), HG_OP_TABLE_DELETE, HG_STATUS_ETMPFAIL, 4);
    table_ask(&t, HG_OP_TABLE_DELETE, "t", "r", body_none(), 5);
    table_obey_one(&t, HG_OP_GET);
    fakestore_fault(fakestore_first(t.s.store), HG_FAULT_LOST);
    assert_non_null(strstr(
        table_refused(&t, client_of(&t), HG_OP_TABLE_DELETE, HG_STATUS_ETMPFAIL, 5), "may have"));
    assert_int_equal(outcome(&t, HG_OUTCOME_NOT_DONE), 2);
    assert_int_equal(outcome(&t, HG_OUTCOME_BACKEND_DOWN), 1);
    assert_int_equal(outcome(&t, HG_OUTCOME_BACKEND_LOST), 1);
    table_close(&t);
}

static void test_row_over_the_limit(void **state)
{
    (void)state;
    struct tablescene t;
    table_init(&t, 1);
    t.s.stage.settings.max_value_bytes = 4096;
    table_open(&t);
    table_ask(&t, HG_OP_TABLE_REPLACE, "t", "r", body_bytes("b", 3000), 1);
    table_expect(&t, client_of(&t), 1);
    table_ask(&t, HG_OP_TABLE_APPEND, "t", "r", body_bytes("b", 3000), 2);
    table_refused(&t, client_of(&t), HG_OP_TABLE_APPEND, HG_STATUS_E2BIG, 2);
    table_ask(&t, HG_OP_TABLE_REPLACE, "t", "r", body_bytes("b", 5000), 3);
    table_refused(&t, client_of(&t), HG_OP_TABLE_REPLACE, HG_STATUS_E2BIG, 3);
    table_ask(&t, HG_OP_TABLE_GET, "t", "r", body_none(), 4);
    assert_int_equal(table_expect(&t, client_of(&t), 4)->entity->columns[0]->value->bytes.len,
                     3000);
    table_close(&t);
}

/* ---- what is wrong from the start ---- */

static void test_malformed(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    table_ask(&t, HG_OP_TABLE_GET, "t", "r", HG_SPAN_LIT("\xff\xff"), 1);
    table_refused(&t, client_of(&t), HG_OP_TABLE_GET, HG_STATUS_EINVAL, 1);
    client_add(client_of(&t), &(struct ask){.opcode = HG_OPCODE_TABLE,
                                            .key = "tr",
                                            .opaque = 2,
                                            .extras = HG_SPAN_LIT("\x4d\0\0\x01\0\0\0\0")});
    client_add(client_of(&t), &(struct ask){.opcode = HG_OPCODE_HBASE,
                                            .key = "tr",
                                            .opaque = 3,
                                            .extras = HG_SPAN_LIT("\x01\0\0\x09\0\0\0\0")});
    client_add(client_of(&t), &(struct ask){.opcode = HG_OPCODE_TABLE, .key = "tr", .opaque = 4});
    client_add_op(client_of(&t), HG_OPCODE_NOOP, NULL, 5);
    scene_send(&t.s);
    scene_expect(&t.s, HG_OPCODE_TABLE, HG_STATUS_UNKNOWN_COMMAND, 2);
    scene_expect(&t.s, HG_OPCODE_HBASE, HG_STATUS_EINVAL, 3);
    scene_expect(&t.s, HG_OPCODE_TABLE, HG_STATUS_EINVAL, 4);
    scene_expect(&t.s, HG_OPCODE_NOOP, 0, 5);
    assert_int_equal(t.s.store->submits, 0);
    assert_int_equal(outcome(&t, HG_OUTCOME_INVALID), 3);
    assert_int_equal(outcome(&t, HG_OUTCOME_UNKNOWN), 1);
    table_close(&t);
}

static void expect_denied(struct tablescene *t, enum hg_op op, const char *row, struct hg_span body)
{
    static uint32_t opaque = 100;
    table_ask(t, op, "t", row, body, ++opaque);
    table_refused(t, client_of(t), op, HG_STATUS_EACCESS, opaque);
}

static void test_privileges(void **state)
{
    (void)state;
    static const struct item mixed[] = {{0, "r", 0}, {5, "r", 1}}, reads[] = {{0, "r", 0}},
                             adds[] = {{6, "r", 1}};
    struct tablescene t;
    table_init(&t, 1);
    t.s.stage.anonymous_privileges = HG_PRIVILEGE_BIT(HG_PRIVILEGE_READ);
    table_open(&t);
    expect_denied(&t, HG_OP_TABLE_INSERT, "r", body_entity("n", 1));
    expect_denied(&t, HG_OP_TABLE_INCREMENT, "r", body_entity("n", 1));
    expect_denied(&t, HG_OP_HBASE_CHECK_AND_PUT, "r", body_none());
    expect_denied(&t, HG_OP_TABLE_BATCH, "", body_batch(false, mixed, 2));
    expect_denied(&t, HG_OP_TABLE_BATCH, "", body_batch(true, mixed, 2));
    table_ask(&t, HG_OP_TABLE_GET, "t", "r", body_none(), 1);
    table_expect(&t, client_of(&t), 1);
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, reads, 1), 2);
    table_expect(&t, client_of(&t), 2);
    t.s.stage.anonymous_privileges = HG_PRIVILEGE_BIT(HG_PRIVILEGE_WRITE);
    stage_publish(&t.s.stage);
    stage_run(&t.s.stage);
    expect_denied(&t, HG_OP_TABLE_GET, "r", body_none());
    expect_denied(&t, HG_OP_TABLE_QUERY, "", body_query("a", "b", 0, 0, false));
    expect_denied(&t, HG_OP_HBASE_SCAN, "", body_scan("a", 0, 0));
    expect_denied(&t, HG_OP_TABLE_INCREMENT, "r", body_entity("n", 1));
    expect_denied(&t, HG_OP_TABLE_BATCH, "", body_batch(false, adds, 1));
    table_ask(&t, HG_OP_TABLE_REPLACE, "t", "r", body_entity("n", 1), 3);
    table_expect(&t, client_of(&t), 3);
    t.s.stage.anonymous_privileges = 0;
    stage_publish(&t.s.stage);
    stage_run(&t.s.stage);
    expect_denied(&t, HG_OP_TABLE_BATCH, "", HG_SPAN_LIT("\xff"));
    table_close(&t);
}

static void test_data_limit(void **state)
{
    (void)state;
    static const struct item mixed[] = {{2, "r", 0}, {5, "r", 1}}, removes[] = {{2, "r", 0}};
    struct tablescene t;
    table_start(&t);
    atomic_store(&stage_find(&t.s.stage, "default")->data_limit_status, 0x35);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_entity("n", 1), 1);
    table_refused(&t, client_of(&t), HG_OP_TABLE_INSERT, 0x35, 1);
    table_ask(&t, HG_OP_HBASE_PUT, "t", "r", body_cell("f", "q", "v"), 2);
    table_refused(&t, client_of(&t), HG_OP_HBASE_PUT, 0x35, 2);
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, mixed, 2), 3);
    table_refused(&t, client_of(&t), HG_OP_TABLE_BATCH, 0x35, 3);
    table_ask(&t, HG_OP_TABLE_DELETE, "t", "r", body_none(), 4);
    table_expect(&t, client_of(&t), 4);
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, removes, 1), 5);
    table_expect(&t, client_of(&t), 5);
    table_ask(&t, HG_OP_TABLE_GET, "t", "r", body_none(), 6);
    table_expect(&t, client_of(&t), 6);
    assert_int_equal(outcome(&t, HG_OUTCOME_DATA_LIMIT), 3);
    table_close(&t);
}

/* ---- units and credits ---- */

static void test_real_units(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    struct hg_lane *lane = table_lane(&t);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_bytes("b", 5000), 1);
    table_expect(&t, client_of(&t), 1);
    assert_int_equal(hg_counter_get(&lane->ru), 1);
    assert_int_equal(hg_counter_get(&lane->wu), 5);
    table_ask(&t, HG_OP_TABLE_GET, "t", "r", body_none(), 2);
    table_expect(&t, client_of(&t), 2);
    assert_int_equal(hg_counter_get(&lane->ru), 3);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_bytes("b", 9000), 3); /* writes nothing */
    table_refused(&t, client_of(&t), HG_OP_TABLE_INSERT, HG_STATUS_KEY_EEXISTS, 3);
    assert_int_equal(hg_counter_get(&lane->ru), 5);
    assert_int_equal(hg_counter_get(&lane->wu), 5);
    table_ask(&t, HG_OP_TABLE_DELETE, "t", "r", body_none(), 4);
    table_expect(&t, client_of(&t), 4);
    assert_int_equal(hg_counter_get(&lane->ru), 7);
    assert_int_equal(hg_counter_get(&lane->wu), 6);
    assert_int_equal(hg_counter_get(&lane->units), 13);
    table_close(&t);
}

static void start_tight(struct tablescene *t, uint64_t units)
{
    table_init(t, 1);
    stage_bucket(&t->s.stage, "tight", 0, units);
    t->s.stage.anonymous_bucket = "tight";
    table_open(t);
}

/* Held for credits with its decoded message; its frame comes again, and it goes on. */
static void test_held_and_let_go(void **state)
{
    (void)state;
    struct tablescene t;
    start_tight(&t, 2);
    table_add(client_of(&t), HG_OP_TABLE_INCREMENT, "t", "r", body_entity("n", 1), 1);
    table_add(client_of(&t), HG_OP_TABLE_INCREMENT, "t", "r", body_entity("n", 1), 2);
    table_add(client_of(&t), HG_OP_TABLE_GET, "t", "r", body_none(), 3);
    scene_send(&t.s);
    table_expect(&t, client_of(&t), 1);
    stage_expect_nothing(&t.s.stage, client_of(&t));
    assert_int_equal(t.s.stage.workers[0].tables.live, 1);
    stage_tick(&t.s.stage);
    table_expect(&t, client_of(&t), 2);
    stage_expect_nothing(&t.s.stage, client_of(&t));
    stage_tick(&t.s.stage);
    assert_int_equal(entity_int(table_expect(&t, client_of(&t), 3)->entity, "n"), 2);
    table_close(&t);
}

/* Every way in which a held one ends without being carried out. */
static void test_held_and_refused(void **state)
{
    (void)state;
    for (unsigned how = 0; how < 5; how++) {
        struct tablescene t;
        start_tight(&t, 2);
        table_add(client_of(&t), HG_OP_TABLE_INCREMENT, "t", "r", body_entity("n", 1), 1);
        table_add(client_of(&t), HG_OP_TABLE_INCREMENT, "t", "r", body_entity("n", 1), 2);
        scene_send(&t.s);
        table_expect(&t, client_of(&t), 1);
        stage_expect_nothing(&t.s.stage, client_of(&t));
        switch (how) {
        case 0: /* too long */
            stage_advance(t.s.stage.settings.request_deadline_us + 1);
            stage_timer(&t.s.stage);
            table_refused(&t, client_of(&t), HG_OP_TABLE_INCREMENT, HG_STATUS_ETMPFAIL, 2);
            break;
        case 1: /* the client sends no more */
            client_half_close(client_of(&t));
            table_refused(&t, client_of(&t), HG_OP_TABLE_INCREMENT, HG_STATUS_ETMPFAIL, 2);
            break;
        case 2: /* the client has gone */
            table_reset(&t, client_of(&t));
            assert_int_equal(outcome(&t, HG_OUTCOME_CLIENT_GONE), 1);
            break;
        case 3: /* the bucket has gone */
            stage_delete(&t.s.stage, "tight");
            stage_publish(&t.s.stage);
            table_refused(&t, client_of(&t), HG_OP_TABLE_INCREMENT, HG_STATUS_NO_BUCKET, 2);
            break;
        default: /* the server goes down */
            hg_worker_begin_drain(&t.s.stage.workers[0]);
            table_refused(&t, client_of(&t), HG_OP_TABLE_INCREMENT, HG_STATUS_ETMPFAIL, 2);
            break;
        }
        assert_int_equal(t.s.stage.workers[0].tables.live, 0);
        table_close(&t);
    }
}

/* ---- clients that go ---- */

static void test_client_goes_at_every_step(void **state)
{
    (void)state;
    for (unsigned step = 0; step < 4; step++) {
        struct tablescene t;
        struct client other;
        table_start(&t);
        stage_connect_tcp(&t.s.stage, 0, &other);
        t.by_hand = true;
        table_add(&other, HG_OP_TABLE_INSERT, "t", "r", body_entity("n", 1), 1);
        client_send(&other);
        stage_run(&t.s.stage);
        table_add(client_of(&t), HG_OP_TABLE_INCREMENT, "t", "r", body_entity("n", 1), 2);
        scene_send(&t.s);
        if (step == 0) { /* it waits in the row's gate */
            table_reset(&t, client_of(&t));
        }
        table_obey_one(&t, HG_OP_GET);
        if (step == 1) { /* he whom it waits for goes, while he writes */
            table_reset(&t, &other);
            table_obey(&t);
            table_expect(&t, client_of(&t), 2);
            assert_int_equal(outcome(&t, HG_OUTCOME_CLIENT_GONE), 1);
            table_close(&t);
            continue;
        }
        table_obey_one(&t, HG_OP_ADD);
        table_expect(&t, &other, 1);
        if (step >= 2)
            stage_run(&t.s.stage);
        if (step == 3)
            table_obey_one(&t, HG_OP_GET); /* now it writes */
        if (step >= 2) {
            table_reset(&t, client_of(&t));
        }
        assert_int_equal(outcome(&t, HG_OUTCOME_CLIENT_GONE), 1);
        assert_int_equal(fakestore_pending(t.s.store), 0);
        assert_int_equal(t.s.stage.workers[0].tables.live, 0);
        client_close(&other);
        table_close(&t);
    }
}

/* ---- classic operations on rows ---- */

static void add_raw(struct tablescene *t, uint8_t opcode, struct hg_span key, const char *value,
                    uint32_t opaque)
{
    uint8_t frame[64] = {HG_MAGIC_REQUEST, opcode, 0, (uint8_t)key.len};
    size_t extras = opcode == HG_OPCODE_SET ? 8 : 0;
    size_t value_len = value != NULL ? strlen(value) : 0;
    frame[4] = (uint8_t)extras;
    frame[11] = (uint8_t)(extras + key.len + value_len);
    hg_put_u32(frame + 12, opaque);
    memcpy(frame + 24 + extras, key.at, key.len);
    if (value_len > 0)
        memcpy(frame + 24 + extras + key.len, value, value_len);
    client_add_bytes(client_of(t), frame, 24 + extras + key.len + value_len);
}

#define ROW_KEY HG_SPAN_LIT("t\0r")

static void test_classic_on_a_row(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_entity("n", 1), 1);
    table_expect(&t, client_of(&t), 1);
    add_raw(&t, HG_OPCODE_GET, ROW_KEY, NULL, 2);
    add_raw(&t, HG_OPCODE_SET, ROW_KEY, "x", 3);
    add_raw(&t, HG_OPCODE_DELETE, ROW_KEY, NULL, 4);
    add_raw(&t, HG_OPCODE_GETQ, ROW_KEY, NULL, 5);
    scene_send(&t.s);
    scene_expect(&t.s, HG_OPCODE_GET, HG_STATUS_NOT_SUPPORTED, 2);
    scene_expect(&t.s, HG_OPCODE_SET, HG_STATUS_NOT_SUPPORTED, 3);
    scene_expect(&t.s, HG_OPCODE_DELETE, HG_STATUS_NOT_SUPPORTED, 4);
    scene_expect(&t.s, HG_OPCODE_GETQ, HG_STATUS_NOT_SUPPORTED, 5);
    assert_int_equal(outcome(&t, HG_OUTCOME_UNKNOWN), 4);
    table_ask(&t, HG_OP_TABLE_GET, "t", "r", body_none(), 6);
    assert_int_equal(entity_int(table_expect(&t, client_of(&t), 6)->entity, "n"), 1);
    add_raw(&t, HG_OPCODE_SET, HG_SPAN_LIT("t\0s"), "x", 7);
    scene_send(&t.s);
    scene_expect(&t.s, HG_OPCODE_SET, 0, 7);
    table_ask(&t, HG_OP_TABLE_REPLACE, "t", "s", body_entity("n", 1), 8);
    table_refused(&t, client_of(&t), HG_OP_TABLE_REPLACE, HG_STATUS_NOT_SUPPORTED, 8);
    table_close(&t);
}

/* A classic client cannot make what table operations would take for a row. */
static void test_classic_makes_no_row(void **state)
{
    (void)state;
    static const uint8_t opcodes[] = {HG_OPCODE_SET, HG_OPCODE_ADD, HG_OPCODE_REPLACE};
    struct tablescene t;
    table_start(&t);
    for (unsigned i = 0; i < sizeof opcodes; i++) {
        uint8_t frame[24 + 8 + 3 + 6] = {HG_MAGIC_REQUEST, opcodes[i], 0, 3, 8};
        frame[11] = 8 + 3 + 6;
        hg_put_u32(frame + 12, i);
        hg_put_u32(frame + 24, HG_ROWDOC_FLAGS);
        memcpy(frame + 32, "t\0r\xf7HGRT\xff", 9);
        client_add_bytes(client_of(&t), frame, sizeof frame);
        scene_send(&t.s);
        scene_expect(&t.s, opcodes[i], HG_STATUS_NOT_SUPPORTED, i);
        frame[33]++; /* a key that no row has */
        hg_put_u32(frame + 12, 10 + i);
        client_add_bytes(client_of(&t), frame, sizeof frame);
        scene_send(&t.s);
        scene_expect(&t.s, opcodes[i], i == 1 ? HG_STATUS_KEY_EEXISTS : 0, 10 + i);
    }
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_entity("n", 1), 20);
    table_expect(&t, client_of(&t), 20);
    table_close(&t);
}

/* A get behind a guarded set, a set behind a get, and table operations behind and before both: each
   comes after what its client sent before it for the key. */
static void test_classic_and_rows_in_order(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    add_raw(&t, HG_OPCODE_SET, ROW_KEY, "one", 1);
    add_raw(&t, HG_OPCODE_GET, ROW_KEY, NULL, 2);
    add_raw(&t, HG_OPCODE_SET, ROW_KEY, "two", 3);
    table_add(client_of(&t), HG_OP_TABLE_GET, "t", "r", body_none(), 4);
    add_raw(&t, HG_OPCODE_DELETE, ROW_KEY, NULL, 5);
    table_add(client_of(&t), HG_OP_TABLE_INSERT, "t", "r", body_entity("n", 1), 6);
    add_raw(&t, HG_OPCODE_GET, ROW_KEY, NULL, 7);
    scene_send(&t.s);
    for (unsigned n = 0; n < 40; n++) {
        assert_true(fakestore_pending(t.s.store) <= 1); /* never two for the key */
        if (fakestore_pending(t.s.store) > 0)
            shelf_answer(&t.shelf, fakestore_first(t.s.store));
        stage_run(&t.s.stage);
    }
    scene_expect(&t.s, HG_OPCODE_SET, 0, 1);
    assert_string_equal(
        reply_text(&(struct reply){.value = scene_expect(&t.s, HG_OPCODE_GET, 0, 2).value}), "one");
    scene_expect(&t.s, HG_OPCODE_SET, 0, 3);
    table_refused(&t, client_of(&t), HG_OP_TABLE_GET, HG_STATUS_NOT_SUPPORTED, 4);
    scene_expect(&t.s, HG_OPCODE_DELETE, 0, 5);
    table_expect(&t, client_of(&t), 6);
    scene_expect(&t.s, HG_OPCODE_GET, HG_STATUS_NOT_SUPPORTED, 7);
    table_close(&t);
}

static void test_guarded_client_goes(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    t.by_hand = true;
    add_raw(&t, HG_OPCODE_SET, ROW_KEY, "one", 1);
    add_raw(&t, HG_OPCODE_SET, ROW_KEY, "two", 2); /* not looked at before the first is done */
    scene_send(&t.s);
    assert_int_equal(t.s.stage.workers[0].tables.guards.borrowed, 1);
    table_reset(&t, client_of(&t));
    assert_int_equal(outcome(&t, HG_OUTCOME_CLIENT_GONE), 2);
    table_close(&t);
}

/* ---- what a reply carries ---- */

static void test_reported_units(void **state)
{
    (void)state;
    struct tablescene t;
    table_start(&t);
    client_add_hello(client_of(&t), 1, (const uint16_t[]){0x0f, 0x1a, 0x0b, 0x07, 0});
    scene_send(&t.s);
    scene_expect(&t.s, HG_OPCODE_HELLO, 0, 1);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_bytes("b", 3000), 2);
    struct reply reply = scene_expect(&t.s, HG_OPCODE_TABLE, 0, 2);
    assert_int_equal(reply.magic, HG_MAGIC_REPLY_ALT);
    assert_true(reply.framing.len > 0);
    assert_int_equal(reply.extras.len, 8);
    table_ask(&t, HG_OP_TABLE_INSERT, "t", "r", body_none(), 3);
    assert_non_null(
        strstr(table_refused(&t, client_of(&t), HG_OP_TABLE_INSERT, HG_STATUS_KEY_EEXISTS, 3),
               "{\"error\":{\"context\":\""));
    table_close(&t);
}

static void test_slow_log(void **state)
{
    (void)state;
    struct tablescene t;
    table_init(&t, 1);
    t.s.stage.settings.slow_request_us = 1000;
    table_open(&t);
    t.by_hand = true;
    table_ask(&t, HG_OP_TABLE_GET, "table", "the row", body_none(), 1);
    stage_advance(5000);
    stage_turn(&t.s.stage);
    stage_timer(&t.s.stage);
    table_obey(&t);
    table_expect(&t, client_of(&t), 1);
    const struct hg_slow_entry *entry = &t.s.stage.workers[0].slow[0];
    assert_int_equal(t.s.stage.workers[0].slow_count, 1);
    assert_int_equal(entry->op, HG_OP_TABLE_GET);
    assert_int_equal(entry->key_len, 7);
    assert_memory_equal(entry->key, "the row", 7);
    assert_true(entry->backend_us >= 5000);
    table_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_row_in_order),
        cmocka_unit_test(test_hbase_row),
        cmocka_unit_test(test_errors_of_rows),
        cmocka_unit_test(test_row_over_the_limit),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_privileges),
        cmocka_unit_test(test_data_limit),
        cmocka_unit_test(test_real_units),
        cmocka_unit_test(test_held_and_let_go),
        cmocka_unit_test(test_held_and_refused),
        cmocka_unit_test(test_client_goes_at_every_step),
        cmocka_unit_test(test_classic_on_a_row),
        cmocka_unit_test(test_classic_makes_no_row),
        cmocka_unit_test(test_classic_and_rows_in_order),
        cmocka_unit_test(test_guarded_client_goes),
        cmocka_unit_test(test_reported_units),
        cmocka_unit_test(test_slow_log),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
