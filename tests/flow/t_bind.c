// t_bind - requests for evicted keys: one in X passes, the others are refused
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "evictscene.h"

#define HOT  "29001111"
#define COLD "31415926"

static struct hg_bindthrottle_entry *entry(struct evictscene *e, enum hg_hot_type type,
                                           const char *key)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_bindthrottle_key of = evict_key(e, type, NULL, key, room);
    struct hg_bindthrottle *binds = evict_lane(e)->binds;
    return binds != NULL ? hg_bindthrottle_find(binds, &of) : NULL;
}

/* Reads of the key are throttled from now on: one in x passes. */
static void throttle(struct evictscene *e, const char *key, unsigned x)
{
    evict_reads(e, key, 0, 0, x - 1);
    assert_non_null(entry(e, HG_HOT_QUERY, key));
}

static void refused(struct evictscene *e, const char *key, unsigned n)
{
    for (uint32_t i = 0; i < n; i++) {
        client_ask(&e->s.client, HG_OPCODE_GET, key, 100 + i);
        scene_expect(&e->s, HG_OPCODE_GET, HG_STATUS_BIND_THROTTLE, 100 + i);
    }
}

static void passes(struct evictscene *e, const char *key)
{
    unsigned before = e->s.store->submits;
    client_ask(&e->s.client, HG_OPCODE_GET, key, 99);
    stage_run(&e->s.stage);
    assert_int_equal(e->s.store->submits, before + 1);
    assert_true(fakestore_first(e->s.store)->call->quarantine);
    fakestore_obey_all(e->s.store);
    scene_expect(&e->s, HG_OPCODE_GET, 0, 99);
}

/* ---- one in X ---- */

static void test_one_in_x(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    throttle(&e, HOT, 4);
    for (unsigned x = 4; x >= 2; x--) {
        refused(&e, HOT, x - 1);
        passes(&e, HOT);
    }
    assert_null(entry(&e, HG_HOT_QUERY, HOT));
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_throttled), 6);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_passed), 3);
    assert_int_equal(stage_outcome(&e.s.stage, HG_OUTCOME_BIND_THROTTLED), 6);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    assert_false(fakestore_first(e.s.store)->call->quarantine);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    evict_close(&e);
}

/* A pass while more of its holder is in use than the target allows makes X larger. */
static void test_busy(void **state)
{
    (void)state;
    struct evictscene e;
    struct client other;
    evict_start(&e);
    gate_connect(&e.s.stage, 0, &other);
    gate_resize(&e.s.stage, HG_GATE_READ, 4);
    gate_resize(&e.s.stage, HG_GATE_WRITE, 1);
    client_ask(&other, HG_OPCODE_DELETE, "d", 1); /* of no matter for reads */
    client_ask(&other, HG_OPCODE_GET, "a", 2);
    client_ask(&other, HG_OPCODE_GET, "b", 3);
    stage_run(&e.s.stage);
    throttle(&e, HOT, 3);
    refused(&e, HOT, 2);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1); /* 2 of 4 in use: not above half */
    stage_run(&e.s.stage);
    assert_int_equal(hg_bindthrottle_x(entry(&e, HG_HOT_QUERY, HOT), 0, 0), 2);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 2);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 3); /* passes, with 3 in use */
    stage_run(&e.s.stage);
    assert_int_equal(hg_bindthrottle_x(entry(&e, HG_HOT_QUERY, HOT), 0, 0), 5);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    scene_expect(&e.s, HG_OPCODE_GET, HG_STATUS_BIND_THROTTLE, 2);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 3);
    client_close(&other);
    evict_close(&e);
}

/* One that passed waits for its own kind only: it is no backlog of the upstream. */
static void test_waiting_for_room(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    throttle(&e, HOT, 2);
    refused(&e, HOT, 1);
    e.s.store->room = 0;
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    struct kept *kept = fakestore_find(e.s.store, HOT);
    assert_true(kept->waiting && kept->call->quarantine);
    assert_int_equal(atomic_load(&gate_share(&e.s.stage)->backlog), 0);
    e.s.store->room = 1;
    fakestore_call_room(kept);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    evict_close(&e);
}

static void test_who_is_free(void **state)
{
    (void)state;
    struct evictscene e;
    struct client exempt, shop;
    evict_init(&e);
    evict_use(gate_bucket(&e.s.stage, "shop"));
    gate_open(&e.s);
    evict_connect_exempt(&e, &exempt);
    e.s.stage.anonymous_bucket = "shop";
    gate_connect(&e.s.stage, 0, &shop);
    throttle(&e, HOT, 100);
    e.s.store->answers = true;
    client_ask(&e.s.client, HG_OPCODE_DELETE, HOT, 1); /* another type */
    scene_expect(&e.s, HG_OPCODE_DELETE, 0, 1);
    client_ask(&e.s.client, HG_OPCODE_GET, COLD, 2);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 2);
    client_ask(&exempt, HG_OPCODE_GET, HOT, 3);
    stage_expect(&e.s.stage, &exempt, HG_OPCODE_GET, 0, 3);
    client_ask(&shop, HG_OPCODE_GET, HOT, 4);
    stage_expect(&e.s.stage, &shop, HG_OPCODE_GET, 0, 4);
    refused(&e, HOT, 3);
    client_close(&exempt);
    client_close(&shop);
    evict_close(&e);
}

static void test_min_bytes_at_run_time(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    throttle(&e, HOT, 100);
    refused(&e, HOT, 1);
    atomic_store(&e.bucket->bind_min_bytes, 9);
    e.s.store->answers = true;
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    evict_close(&e);
}

static void test_modes(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    throttle(&e, HOT, 3);
    e.s.store->answers = true;
    atomic_store(&e.bucket->bind_mode, HG_MODE_OBSERVE);
    for (uint32_t i = 0; i < 3; i++) {
        client_ask(&e.s.client, HG_OPCODE_GET, HOT, i);
        scene_expect(&e.s, HG_OPCODE_GET, 0, i);
    }
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_would_throttle), 2);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_passed), 1);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_throttled), 0);
    atomic_store(&e.bucket->bind_mode, HG_MODE_OFF);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 4);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 4);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_would_throttle), 2);
    stage_timer(&e.s.stage); /* it forgets them */
    assert_null(evict_lane(&e)->binds);
    evict_close(&e);
}

/* ---- how it is refused ---- */

static void test_statuses(void **state)
{
    (void)state;
    static const uint16_t json[] = {0x07, 0x0b, 0};
    struct evictscene e;
    struct client plain;
    evict_start(&e);
    stage_connect(&e.s.stage, 0, &plain);
    throttle(&e, HOT, 1000);
    client_add_hello(&e.s.client, 7, json);
    client_send(&e.s.client);
    scene_expect(&e.s, HG_OPCODE_HELLO, 0, 7);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    struct reply reply = scene_expect(&e.s, HG_OPCODE_GET, HG_STATUS_BIND_THROTTLE, 1);
    assert_non_null(strstr(reply_text(&reply), "\"limit\":\"bind_throttle\""));
    assert_non_null(strstr(reply_text(&reply), "\"allow_every\":1000"));
    static const struct {
        int reject;
        uint8_t opcode;
        uint16_t status;
    } rows[] = {{HG_REJECT_TMPFAIL, HG_OPCODE_GET, HG_STATUS_ETMPFAIL},
                {HG_REJECT_BUSY, HG_OPCODE_GET, HG_STATUS_EBUSY},
                {HG_REJECT_DEGRADE, HG_OPCODE_GET, HG_STATUS_KEY_ENOENT}};
    for (uint32_t i = 0; i < HG_COUNT_OF(rows); i++) {
        atomic_store(&e.bucket->reject_status, rows[i].reject);
        client_ask(&plain, rows[i].opcode, HOT, i);
        stage_expect(&e.s.stage, &plain, rows[i].opcode, rows[i].status, i);
    }
    client_add_op(&plain, HG_OPCODE_GETQ, HOT, 8); /* a miss: silence */
    client_add_op(&plain, HG_OPCODE_NOOP, NULL, 9);
    client_send(&plain);
    stage_expect(&e.s.stage, &plain, HG_OPCODE_NOOP, 0, 9);
    assert_int_equal(stage_outcome(&e.s.stage, HG_OUTCOME_BIND_THROTTLED), 5);
    client_close(&plain);
    evict_close(&e);
}

/* ---- a pass that comes to nothing ---- */

static void check_undone(struct evictscene *e)
{
    struct hg_bindthrottle_entry *of = entry(e, HG_HOT_QUERY, HOT);
    assert_non_null(of);
    assert_int_equal(hg_bindthrottle_x(of, 0, 0), 3);
    assert_int_equal(of->passed, 0);
}

static void test_undone_for_tickets(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    throttle(&e, HOT, 3);
    refused(&e, HOT, 2);
    gate_resize(&e.s.stage, HG_GATE_READ, 0);
    atomic_store(&gate_holder(&e.s.stage, HG_GATE_READ)->max_waiting, 0);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    scene_expect(&e.s, HG_OPCODE_GET, HG_STATUS_QUEUE_FULL, 1);
    check_undone(&e);
    atomic_store(&gate_holder(&e.s.stage, HG_GATE_READ)->max_waiting, 10);
    e.s.stage.workers[0].directory->settings.bind.decr_per_sec = 0;
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 2);
    stage_run(&e.s.stage);
    assert_int_equal(gate_waiting(&e.s.stage, HG_GATE_READ), 1);
    gate_wait(&e.s.stage, 1000000);
    scene_expect(&e.s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 2);
    check_undone(&e);
    gate_resize(&e.s.stage, HG_GATE_READ, 1);
    passes(&e, HOT); /* in the place of those */
    evict_close(&e);
}

static void test_undone_for_credits(void **state)
{
    (void)state;
    static const uint16_t nonblocking[] = {0x1b, 0};
    struct evictscene e;
    evict_init(&e);
    e.bucket = stage_bucket(&e.s.stage, "tight", 0, 1);
    evict_use(e.bucket);
    e.s.stage.anonymous_bucket = "tight";
    gate_open(&e.s);
    throttle(&e, HOT, 3);
    refused(&e, HOT, 2);
    client_ask(&e.s.client, HG_OPCODE_DELETE, "k", 1); /* the only unit */
    client_add_hello(&e.s.client, 7, nonblocking);
    scene_send(&e.s);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_DELETE, 0, 1);
    scene_expect(&e.s, HG_OPCODE_HELLO, 0, 7);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 2);
    scene_expect(&e.s, HG_OPCODE_GET, HG_STATUS_EWOULD_THROTTLE, 2);
    check_undone(&e);
    evict_close(&e);
}

/* Its client goes while it waits, or when it was sent: then it had its slot. */
static void test_client_goes(void **state)
{
    (void)state;
    struct evictscene e;
    for (unsigned sent = 0; sent < 2; sent++) {
        struct client other;
        evict_start(&e);
        throttle(&e, HOT, 3);
        refused(&e, HOT, 2);
        gate_resize(&e.s.stage, HG_GATE_READ, sent);
        stage_connect_tcp(&e.s.stage, 0, &other);
        client_ask(&other, HG_OPCODE_NOOP, NULL, 0); /* whose reply stays unread: a reset */
        stage_run(&e.s.stage);
        client_ask(&other, HG_OPCODE_GET, HOT, 1);
        stage_run(&e.s.stage);
        assert_int_equal(gate_waiting(&e.s.stage, HG_GATE_READ), sent ? 0 : 1);
        client_close(&other);
        STAGE_UNTIL(&e.s.stage, stage_sessions(&e.s.stage) == 1);
        if (!sent)
            check_undone(&e);
        else
            assert_int_equal(hg_bindthrottle_x(entry(&e, HG_HOT_QUERY, HOT), 0, 0), 2);
        evict_close(&e);
    }
}

/* ---- answers in the usual time ---- */

#define SERVICE_US 10000

/* So many requests for another key, so that it is known what is usual. */
static void get_to_know(struct evictscene *e, unsigned n)
{
    for (uint32_t i = 0; i < n; i++) {
        client_ask(&e->s.client, HG_OPCODE_GET, COLD, i);
        stage_run(&e->s.stage);
        gate_wait(&e->s.stage, SERVICE_US);
        fakestore_obey_all(e->s.store);
        scene_expect(&e->s, HG_OPCODE_GET, 0, i);
    }
}

/* X = 9 before the pass; after it. */
static uint32_t x_after(struct evictscene *e, uint64_t service_us)
{
    evict_reads(e, HOT, 0, 0, 8);
    refused(e, HOT, 8);
    client_ask(&e->s.client, HG_OPCODE_GET, HOT, 99);
    stage_run(&e->s.stage);
    gate_wait(&e->s.stage, service_us);
    fakestore_obey_all(e->s.store);
    scene_expect(&e->s, HG_OPCODE_GET, 0, 99);
    uint32_t x = hg_bindthrottle_x(entry(e, HG_HOT_QUERY, HOT), 0, 0);
    (void)hg_bindthrottle_sweep(evict_lane(e)->binds, 1e9, e->s.stage.workers[0].loop.now_us + 1);
    return x;
}

static void test_halves(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    e.s.stage.workers[0].directory->settings.bind.decr_per_sec = 0;
    get_to_know(&e, 1);
    assert_int_equal(x_after(&e, SERVICE_US), 8); /* halving is not switched on */
    atomic_store(&e.bucket->upstream->gates->bind_halves, true);
    get_to_know(&e, 40);
    assert_int_equal(x_after(&e, SERVICE_US), 4); /* half of 8 */
    assert_int_equal(x_after(&e, 3 * SERVICE_US), 8);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_halved), 1);
    evict_close(&e);
}

/* ---- tables of entries ---- */

/* Time makes X less; a sweep looks after silent keys, and the board shows what there is. */
static void test_sweep_and_board(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    struct hg_bind_board *board = &e.s.stage.workers[0].bind_board;
    throttle(&e, HOT, 4);
    throttle(&e, COLD, 10);
    refused(&e, HOT, 2);
    stage_timer(&e.s.stage);
    assert_int_equal(board->count, 2);
    const struct hg_bind_shown *row = &board->rows[board->rows[0].x == 4 ? 0 : 1];
    assert_string_equal(row->bucket, "default");
    assert_int_equal(row->type, HG_HOT_QUERY);
    assert_int_equal(row->x, 4);
    assert_int_equal(row->refused, 2);
    assert_memory_equal(row->key, HOT, 8);
    stage_advance(3000000);
    stage_timer(&e.s.stage);
    assert_int_equal(board->count, 1);
    assert_int_equal(board->rows[0].x, 7);
    stage_advance(6000000);
    stage_timer(&e.s.stage);
    assert_int_equal(board->count, 0);
    assert_null(evict_lane(&e)->binds);
    evict_close(&e);
}

static void test_many_keys(void **state)
{
    (void)state;
    struct evictscene e;
    char key[16];
    evict_start(&e);
    for (unsigned i = 0; i < 1100; i++) {
        snprintf(key, sizeof key, "key%05u", i);
        throttle(&e, key, 10 + i);
    }
    struct hg_bindthrottle *binds = evict_lane(&e)->binds;
    assert_int_equal(binds->count, HG_BINDTHROTTLE_ENTRIES); /* those with the lowest X went */
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_made), 1100);
    assert_null(entry(&e, HG_HOT_QUERY, "key00000"));
    for (unsigned i = 76; i < 1100; i += 64) {
        snprintf(key, sizeof key, "key%05u", i);
        refused(&e, key, 1);
    }
    stage_timer(&e.s.stage);
    assert_int_equal(e.s.stage.workers[0].bind_board.count, HG_BINDTHROTTLE_ENTRIES);
    evict_close(&e);
}

static void test_made_again(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    throttle(&e, HOT, 10);
    evict_reads(&e, HOT, 0, 0, 4);
    assert_int_equal(hg_bindthrottle_x(entry(&e, HG_HOT_QUERY, HOT), 0, 0), 10);
    evict_reads(&e, HOT, 0, 0, 19);
    assert_int_equal(hg_bindthrottle_x(entry(&e, HG_HOT_QUERY, HOT), 0, 0), 20);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_made), 1);
    evict_close(&e);
}

static void test_bucket_deleted(void **state)
{
    (void)state;
    struct evictscene e;
    evict_init(&e);
    struct hg_bucket *shop = gate_bucket(&e.s.stage, "shop");
    evict_use(shop);
    gate_open(&e.s);
    struct hg_evict_key of = evict_verdict(&e, shop, HG_HOT_QUERY, NULL, HOT, 0, 0, 9);
    evict_order(&e, 0, &of, 1);
    assert_non_null(shop->lanes[0].binds);
    stage_delete(&e.s.stage, "shop");
    stage_publish(&e.s.stage);
    stage_run(&e.s.stage);
    assert_int_equal(e.s.stage.retired, 0); /* the worker still has its entries */
    stage_timer(&e.s.stage);
    stage_run(&e.s.stage);
    assert_int_equal(e.s.stage.retired, 1);
    assert_int_equal(e.s.stage.workers[0].bind_board.count, 0);
    evict_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_in_x),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_waiting_for_room),
        cmocka_unit_test(test_who_is_free),
        cmocka_unit_test(test_min_bytes_at_run_time),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_undone_for_tickets),
        cmocka_unit_test(test_undone_for_credits),
        cmocka_unit_test(test_client_goes),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_sweep_and_board),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_made_again),
        cmocka_unit_test(test_bucket_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
