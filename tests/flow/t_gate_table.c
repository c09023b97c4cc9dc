// t_gate_table - table requests and guarded keys: their tickets, evictions and throttles
// SPDX-License-Identifier: BSD-3-Clause
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "evictscene.h"
#include "front/table_in.h"
#include "tablescene.h"

#define ROW  "row00001"
#define COLD "row00002"

/* A table scene whose tenant needs tickets, and evicts binds; with its house. */
struct rowgate {
    struct tablescene t;
    struct evictscene e; /* its own scene is not used */
};

static void rowgate_init(struct rowgate *r)
{
    memset(&r->e, 0, sizeof r->e);
    table_init(&r->t, 1);
    r->e.stage = &r->t.s.stage;
    r->e.bucket = stage_find(r->e.stage, "default");
    evict_use(r->e.bucket);
    evict_settings(&r->e);
    evict_house_open(&r->e);
}

static void rowgate_open(struct rowgate *r)
{
    int on = 1;
    table_open(&r->t);
    setsockopt(r->t.s.client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    gate_hello(r->e.stage, &r->t.s.client);
}

static void rowgate_start(struct rowgate *r)
{
    rowgate_init(r);
    rowgate_open(r);
}

static void rowgate_close(struct rowgate *r)
{
    client_close(&r->t.s.client);
    stage_run(r->e.stage);
    assert_int_equal(stage_sessions(r->e.stage), 0);
    gate_check(r->e.stage);
    evict_house_close(&r->e);
    stage_close(r->e.stage);
    shelf_fini(&r->t.shelf);
}

static struct client *client_of(struct rowgate *r)
{
    return &r->t.s.client;
}

static void ask_row(struct rowgate *r, enum hg_op op, const char *row, uint32_t opaque)
{
    bool reads = op == HG_OP_TABLE_GET;
    table_ask(&r->t, op, "t", row, reads ? body_none() : body_entity("n", 1), opaque);
}

static void add_raw(struct rowgate *r, uint8_t opcode, const char *value, uint32_t opaque)
{
    static const uint8_t key[] = "t\0row00001";
    uint8_t frame[64] = {0x80, opcode, 0, sizeof key - 1};
    size_t extras = opcode == HG_OPCODE_SET ? 8 : 0;
    size_t len = strlen(value);
    frame[4] = (uint8_t)extras;
    frame[11] = (uint8_t)(extras + sizeof key - 1 + len);
    frame[15] = (uint8_t)opaque;
    memcpy(frame + 24 + extras, key, sizeof key - 1);
    memcpy(frame + 24 + extras + sizeof key - 1, value, len);
    client_add_bytes(client_of(r), frame, 24 + extras + sizeof key - 1 + len);
}

static struct hg_lane *lane(struct rowgate *r)
{
    return &r->e.bucket->lanes[0];
}

static void order(struct rowgate *r, enum hg_hot_type type, const char *row, unsigned evictable,
                  unsigned evicted)
{
    struct hg_evict_key of =
        evict_verdict(&r->e, r->e.bucket, type, "t", row, evictable, 0, evicted);
    evict_order(&r->e, 0, &of, 1);
}

static struct hg_bindthrottle_entry *entry(struct rowgate *r, enum hg_hot_type type,
                                           const char *row)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_bindthrottle_key of = evict_key(&r->e, type, "t", row, room);
    return lane(r)->binds != NULL ? hg_bindthrottle_find(lane(r)->binds, &of) : NULL;
}

/* ---- tickets ---- */

/* One ticket for a row, whatever it reads and writes. */
static void test_row(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    r.t.by_hand = true;
    gate_resize(r.e.stage, HG_GATE_WRITE, 1);
    ask_row(&r, HG_OP_TABLE_INSERT, ROW, 1);
    ask_row(&r, HG_OP_TABLE_GET, COLD, 2);
    assert_int_equal(gate_out(r.e.stage, HG_GATE_WRITE), 1);
    assert_int_equal(gate_out(r.e.stage, HG_GATE_READ), 1);
    assert_int_equal(fakestore_nth(r.t.s.store, 0)->call->ticket & 0xff, 1 + HG_TICKET_WRITE);
    assert_int_equal(fakestore_nth(r.t.s.store, 1)->call->ticket & 0xff, 1 + HG_TICKET_READ);
    table_obey_one(&r.t, HG_OP_GET); /* of the insert: its write follows, under the same ticket */
    assert_int_equal(fakestore_nth(r.t.s.store, 1)->call->ticket & 0xff, 1 + HG_TICKET_WRITE);
    assert_int_equal(gate_out(r.e.stage, HG_GATE_WRITE), 1);
    table_obey(&r.t);
    table_expect(&r.t, client_of(&r), 1);
    table_expect(&r.t, client_of(&r), 2);
    rowgate_close(&r);
}

static void test_row_waits(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    gate_resize(r.e.stage, HG_GATE_READ, 0);
    ask_row(&r, HG_OP_TABLE_GET, ROW, 1);
    ask_row(&r, HG_OP_TABLE_INSERT, COLD, 2);
    stage_expect_nothing(r.e.stage, client_of(&r));
    assert_int_equal(r.t.s.store->submits, 0);
    gate_resize(r.e.stage, HG_GATE_READ, 1);
    table_expect(&r.t, client_of(&r), 1);
    table_expect(&r.t, client_of(&r), 2);
    gate_resize(r.e.stage, HG_GATE_READ, 0);
    ask_row(&r, HG_OP_TABLE_GET, ROW, 3);
    gate_pass(r.e.stage, 1000000);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_QUEUE_TIMEOUT, 3);
    ask_row(&r, HG_OP_TABLE_GET, ROW, 4);
    client_half_close(client_of(&r));
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_QUEUE_TIMEOUT, 4);
    rowgate_close(&r);
}

static void test_batch(void **state)
{
    (void)state;
    struct item items[40];
    char rows[40][12];
    struct rowgate r;
    rowgate_start(&r);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(rows[i], sizeof rows[i], "r%02u", i);
        items[i] = (struct item){5, rows[i], i};
    }
    gate_resize(r.e.stage, HG_GATE_WRITE, 0);
    table_ask(&r.t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 40), 1);
    assert_int_equal(gate_waiting(r.e.stage, HG_GATE_WRITE), 16); /* as many as go at a time */
    r.t.by_hand = true;
    gate_resize(r.e.stage, HG_GATE_WRITE, 1);
    stage_run(r.e.stage);
    while (fakestore_first(r.t.s.store) != NULL) {
        assert_int_equal(gate_out(r.e.stage, HG_GATE_WRITE), 1);
        shelf_answer(&r.t.shelf, fakestore_first(r.t.s.store));
        stage_run(r.e.stage);
    }
    assert_int_equal(table_expect(&r.t, client_of(&r), 1)->n_items, 40);
    assert_int_equal(gate_sum(r.e.stage, HG_GATE_WRITE, "started"), 40);
    rowgate_close(&r);
}

/* A range holds its ticket between its parts, a session none between its pages. */
static void test_range_and_session(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    table_fill(&r.t, "t", "r", 20);
    r.t.part_items = 4;
    table_ask(&r.t, HG_OP_TABLE_QUERY_START, "t", "", body_query(NULL, NULL, 0, 10, false), 1);
    for (unsigned part = 0; part < 3; part++) {
        stage_run(r.e.stage);
        assert_int_equal(gate_out(r.e.stage, HG_GATE_READ), 1);
        assert_int_equal(r.t.ranges[0]->ticket & 0xff, 1 + HG_TICKET_READ);
        table_part(&r.t);
    }
    table_reply *reply = table_expect(&r.t, client_of(&r), 1);
    uint64_t id = reply->session;
    assert_true(id != 0);
    assert_int_equal(gate_out(r.e.stage, HG_GATE_READ), 0);
    gate_resize(r.e.stage, HG_GATE_READ, 0);
    table_ask(&r.t, HG_OP_TABLE_QUERY_NEXT, "t", "", body_session(id), 2);
    assert_int_equal(gate_waiting(r.e.stage, HG_GATE_READ), 1);
    gate_pass(r.e.stage, 1000000);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_QUERY_NEXT, HG_STATUS_QUEUE_TIMEOUT, 2);
    /* It is still there; its end needs no ticket. */
    table_ask(&r.t, HG_OP_TABLE_QUERY_END, "t", "", body_session(id), 3);
    table_expect(&r.t, client_of(&r), 3);
    rowgate_close(&r);
}

/* A classic operation on what may be a row's key. */
static void test_guarded_key(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    r.t.by_hand = true;
    gate_resize(r.e.stage, HG_GATE_WRITE, 1);
    add_raw(&r, HG_OPCODE_SET, "x", 1);
    add_raw(&r, HG_OPCODE_SET, "y", 2);
    scene_send(&r.t.s);
    assert_int_equal(gate_out(r.e.stage, HG_GATE_WRITE), 1);
    assert_int_equal(gate_waiting(r.e.stage, HG_GATE_WRITE), 1);
    table_obey(&r.t);
    stage_run(r.e.stage);
    table_obey(&r.t);
    scene_expect(&r.t.s, HG_OPCODE_SET, 0, 1);
    scene_expect(&r.t.s, HG_OPCODE_SET, 0, 2);
    /* One that waits for its client's earlier one keeps its ticket, and goes with its client. */
    gate_resize(r.e.stage, HG_GATE_WRITE, 2);
    add_raw(&r, HG_OPCODE_SET, "x", 3);
    add_raw(&r, HG_OPCODE_SET, "y", 4);
    scene_send(&r.t.s);
    assert_int_equal(gate_out(r.e.stage, HG_GATE_WRITE), 2);
    table_reset(&r.t, client_of(&r));
    STAGE_UNTIL(r.e.stage, stage_sessions(r.e.stage) == 0);
    rowgate_close(&r);
}

/* ---- evictions ---- */

static void test_row_is_evicted(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    r.t.by_hand = true;
    table_ask(&r.t, HG_OP_TABLE_QUERY, "t", "", body_query(ROW, ROW, 0, 0, false), 1);
    ask_row(&r, HG_OP_TABLE_GET, COLD, 2);
    ask_row(&r, HG_OP_TABLE_GET, ROW, 3);
    gate_resize(r.e.stage, HG_GATE_READ, 3);
    ask_row(&r, HG_OP_TABLE_GET, ROW, 4);
    evict_ask(&r.e);
    assert_int_equal(r.e.report->report.used, 3);
    evict_check_row(evict_row(&r.e, r.e.bucket, HG_HOT_QUERY, "t", ROW), 2, 2, 0, 1);
    evict_check_row(evict_row(&r.e, r.e.bucket, HG_HOT_QUERY, "t", COLD), 1, 1, 0, 0);
    order(&r, HG_HOT_QUERY, ROW, 2, 3);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_BIND_EVICTION, 1);
    table_obey(&r.t);
    table_expect(&r.t, client_of(&r), 2);
    for (uint32_t i = 3; i <= 4; i++)
        table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_BIND_EVICTION, i);
    assert_int_equal(stage_outcome(r.e.stage, HG_OUTCOME_EVICTED), 3);
    rowgate_close(&r);
}

/* Sent writes of every kind of request: one on a row, all items or none, a batch, a guarded one. */
static void test_sent_writes(void **state)
{
    (void)state;
    static const struct item items[] = {{5, ROW, 1}, {5, ROW, 2}};
    struct rowgate r;
    for (unsigned may = 0; may < 2; may++) {
        rowgate_init(&r);
        r.e.stage->settings.bind.evict_sent_writes = may;
        rowgate_open(&r);
        r.t.by_hand = true;
        ask_row(&r, HG_OP_TABLE_INSERT, ROW, 1);
        table_ask(&r.t, HG_OP_TABLE_BATCH, "t", "", body_batch(true, items, 2), 2);
        table_ask(&r.t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 2), 3);
        add_raw(&r, HG_OPCODE_SET, "x", 4);
        scene_send(&r.t.s);
        evict_ask(&r.e);
        evict_check_row(evict_row(&r.e, r.e.bucket, HG_HOT_INSERT, "t", ROW), 2, 2 * may, 0, 0);
        order(&r, HG_HOT_INSERT, ROW, 2, 2);
        if (may) {
            assert_non_null(strstr(
                table_refused(&r.t, client_of(&r), HG_OP_TABLE_INSERT, HG_STATUS_BIND_EVICTION, 1),
                "may have been carried out"));
            table_refused(&r.t, client_of(&r), HG_OP_TABLE_BATCH, HG_STATUS_BIND_EVICTION, 2);
            for (unsigned i = 0; i < 2; i++) {
                gate_wait(r.e.stage, 200000);
                evict_oldest(&r.e);
            }
            table_refused(&r.t, client_of(&r), HG_OP_TABLE_BATCH, HG_STATUS_BIND_EVICTION, 3);
            scene_expect(&r.t.s, HG_OPCODE_SET, HG_STATUS_BIND_EVICTION, 4);
            assert_int_equal(r.e.stage->workers[0].tables.guards.borrowed, 0);
        } else {
            gate_wait(r.e.stage, 200000);
            evict_oldest(&r.e);
            table_obey(&r.t);
            table_expect(&r.t, client_of(&r), 1);
            table_expect(&r.t, client_of(&r), 2);
            table_expect(&r.t, client_of(&r), 3);
            table_obey(&r.t); /* it let its client's row go first */
            scene_expect(&r.t.s, HG_OPCODE_SET, HG_STATUS_NOT_SUPPORTED, 4);
        }
        rowgate_close(&r);
    }
}

/* What is behind an evicted batch or range goes on. */
static void test_behind_an_evicted_one(void **state)
{
    (void)state;
    struct item items[20];
    char rows[20][12];
    struct rowgate r;
    rowgate_init(&r);
    r.e.stage->settings.bind.evict_sent_writes = true;
    rowgate_open(&r);
    r.t.by_hand = true;
    for (unsigned i = 0; i < 20; i++) {
        snprintf(rows[i], sizeof rows[i], "r%02u", i);
        items[i] = (struct item){5, rows[i], i};
    }
    table_ask(&r.t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 20), 1);
    ask_row(&r, HG_OP_TABLE_GET, COLD, 2); /* not yet looked at */
    gate_wait(r.e.stage, 200000);
    evict_oldest(&r.e);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_BATCH, HG_STATUS_BIND_EVICTION, 1);
    table_obey(&r.t);
    table_expect(&r.t, client_of(&r), 2);
    table_ask(&r.t, HG_OP_TABLE_QUERY, "t", "", body_query(NULL, NULL, 0, 0, false), 3);
    ask_row(&r, HG_OP_TABLE_GET, COLD, 4);
    assert_int_equal(r.t.range_count, 1);
    gate_wait(r.e.stage, 200000);
    evict_oldest(&r.e);
    assert_int_equal(r.t.range_cancels, 1);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_QUERY, HG_STATUS_BIND_EVICTION, 3);
    table_obey(&r.t);
    table_expect(&r.t, client_of(&r), 4);
    rowgate_close(&r);
}

/* ---- throttles ---- */

static void test_row_is_throttled(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    order(&r, HG_HOT_QUERY, ROW, 0, 2);
    r.t.by_hand = true;
    ask_row(&r, HG_OP_TABLE_GET, ROW, 1);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_BIND_THROTTLE, 1);
    table_ask(&r.t, HG_OP_TABLE_QUERY, "t", "", body_query(ROW, ROW, 0, 0, false), 2);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_BIND_THROTTLE, 2);
    ask_row(&r, HG_OP_TABLE_GET, ROW, 3);
    assert_true(fakestore_first(r.t.s.store)->call->quarantine);
    table_obey(&r.t);
    table_expect(&r.t, client_of(&r), 3);
    ask_row(&r, HG_OP_TABLE_INSERT, ROW, 4); /* of another type */
    assert_false(fakestore_first(r.t.s.store)->call->quarantine);
    table_obey(&r.t);
    table_expect(&r.t, client_of(&r), 4);
    rowgate_close(&r);
}

/* A row that passed, and for which there is no store then. */
static void test_row_is_undone(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    order(&r, HG_HOT_QUERY, ROW, 0, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ask_row(&r, HG_OP_TABLE_GET, ROW, i);
        table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_BIND_THROTTLE, i);
    }
    atomic_store(&r.e.bucket->ticket_mode, HG_MODE_OFF);
    r.e.stage->upstreams[1].fails = true;
    r.e.bucket->upstream = &r.e.stage->upstreams[1].upstream;
    ask_row(&r, HG_OP_TABLE_GET, ROW, 3);
    table_refused(&r.t, client_of(&r), HG_OP_TABLE_GET, HG_STATUS_EINTERNAL, 3);
    assert_int_equal(entry(&r, HG_HOT_QUERY, ROW)->passed, 0);
    assert_int_equal(hg_bindthrottle_x(entry(&r, HG_HOT_QUERY, ROW), 0, 0), 3);
    r.e.bucket->upstream = &r.e.stage->upstreams[0].upstream;
    rowgate_close(&r);
}

static const struct item mixed[] = {{0, ROW, 0}, {0, COLD, 0}, {0, ROW, 0}, {0, ROW, 0}};

/* Each item of a batch by itself. */
static void test_batch_is_judged(void **state)
{
    (void)state;
    struct rowgate r;
    rowgate_start(&r);
    order(&r, HG_HOT_QUERY, ROW, 0, 2);
    r.t.by_hand = true;
    table_ask(&r.t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, mixed, 4), 1);
    assert_int_equal(fakestore_pending(r.t.s.store), 2);
    assert_false(fakestore_nth(r.t.s.store, 0)->call->quarantine);
    assert_true(fakestore_nth(r.t.s.store, 1)->call->quarantine);
    table_obey(&r.t);
    table_reply *reply = table_expect(&r.t, client_of(&r), 1);
    assert_int_equal(reply->items[0]->status, HG_STATUS_BIND_THROTTLE);
    assert_int_equal(reply->items[1]->status, HG_STATUS_SUCCESS);
    assert_int_equal(reply->items[2]->status, HG_STATUS_BIND_THROTTLE);
    assert_int_equal(reply->items[3]->status, HG_STATUS_SUCCESS);
    assert_int_equal(hg_counter_get(&lane(&r)->bind_throttled), 2);
    assert_int_equal(hg_counter_get(&lane(&r)->bind_passed), 1);
    rowgate_close(&r);
}

/* An item that passed and is answered in the usual time halves X. */
static void test_batch_halves(void **state)
{
    (void)state;
    static const struct item two[] = {{0, COLD, 0}, {0, ROW, 0}};
    struct rowgate r;
    for (unsigned halves = 0; halves < 2; halves++) {
        rowgate_start(&r);
        r.e.stage->workers[0].directory->settings.bind.decr_per_sec = 0;
        order(&r, HG_HOT_QUERY, ROW, 0, 9);
        atomic_store(&r.e.bucket->upstream->gates->bind_halves, halves);
        r.t.by_hand = true;
        for (uint32_t i = 0; i < 10; i++) {
            table_ask(&r.t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, two, 2), i);
            table_obey(&r.t);
            table_expect(&r.t, client_of(&r), i);
        }
        assert_int_equal(hg_counter_get(&lane(&r)->bind_passed), 1);
        assert_int_equal(hg_counter_get(&lane(&r)->bind_halved), halves);
        assert_int_equal(hg_bindthrottle_x(entry(&r, HG_HOT_QUERY, ROW), 0, 0), halves ? 5 : 9);
        rowgate_close(&r);
    }
}

/* Its passes are taken back when it gets no ticket, or its client goes. */
static void test_batch_is_undone(void **state)
{
    (void)state;
    struct rowgate r;
    for (unsigned gone = 0; gone < 2; gone++) {
        rowgate_start(&r);
        order(&r, HG_HOT_QUERY, ROW, 0, 2);
        gate_resize(r.e.stage, HG_GATE_READ, 0);
        table_ask(&r.t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, mixed, 4), 1);
        assert_int_equal(hg_bindthrottle_x(entry(&r, HG_HOT_QUERY, ROW), 0, 0), 2);
        assert_int_equal(gate_waiting(r.e.stage, HG_GATE_READ), 2);
        if (gone) {
            table_reset(&r.t, client_of(&r));
            STAGE_UNTIL(r.e.stage, stage_sessions(r.e.stage) == 0);
        } else {
            gate_wait(r.e.stage, 1000000);
            table_reply *reply = table_expect(&r.t, client_of(&r), 1);
            assert_int_equal(reply->items[1]->status, HG_STATUS_QUEUE_TIMEOUT);
            assert_int_equal(reply->items[3]->status, HG_STATUS_QUEUE_TIMEOUT);
        }
        assert_int_equal(entry(&r, HG_HOT_QUERY, ROW)->passed, 0);
        assert_int_equal(hg_bindthrottle_x(entry(&r, HG_HOT_QUERY, ROW), 0, 0), 3);
        rowgate_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_row_waits),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_range_and_session),
        cmocka_unit_test(test_guarded_key),
        cmocka_unit_test(test_row_is_evicted),
        cmocka_unit_test(test_sent_writes),
        cmocka_unit_test(test_behind_an_evicted_one),
        cmocka_unit_test(test_row_is_throttled),
        cmocka_unit_test(test_row_is_undone),
        cmocka_unit_test(test_batch_is_judged),
        cmocka_unit_test(test_batch_halves),
        cmocka_unit_test(test_batch_is_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
