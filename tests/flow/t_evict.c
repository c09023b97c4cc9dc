// t_evict - who holds the slots of a store: reports, and evictions
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "evictscene.h"

#define HOT  "29001111"
#define COLD "31415926"

static void expect_evicted(struct evictscene *e, struct client *client, uint8_t opcode,
                           uint32_t opaque)
{
    stage_expect(&e->s.stage, client, opcode, HG_STATUS_BIND_EVICTION, opaque);
}

/* ---- reports ---- */

static void test_counts(void **state)
{
    (void)state;
    struct evictscene e;
    struct client exempt, shop, waiter;
    evict_init(&e);
    struct hg_bucket *other = gate_bucket(&e.s.stage, "shop");
    struct hg_bucket *off = gate_bucket(&e.s.stage, "zoo");
    evict_use(other);
    atomic_store(&off->bind_min_bytes, 8);
    gate_open(&e.s);
    evict_connect_exempt(&e, &exempt);
    gate_connect(&e.s.stage, 0, &waiter);
    e.s.stage.anonymous_bucket = "shop";
    gate_connect(&e.s.stage, 0, &shop);
    client_add_op(&e.s.client, HG_OPCODE_GET, HOT, 1);
    client_add_op(&e.s.client, HG_OPCODE_GET, HOT, 2);
    client_add_op(&e.s.client, HG_OPCODE_DELETE, HOT, 3);
    client_add_op(&e.s.client, HG_OPCODE_GET, "2900111", 4); /* too short */
    client_add_op(&e.s.client, HG_OPCODE_GET, COLD, 5);
    scene_send(&e.s);
    client_ask(&exempt, HG_OPCODE_GET, HOT, 1);
    client_ask(&shop, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    gate_resize(&e.s.stage, HG_GATE_READ, 6);
    client_ask(&waiter, HG_OPCODE_GET, HOT, 1);
    client_ask(&exempt, HG_OPCODE_GET, HOT, 2);
    stage_run(&e.s.stage);
    gate_wait(&e.s.stage, 1000);
    const struct hg_bindwatch_report *report = evict_ask(&e);
    assert_int_equal(report->used, 7);
    assert_int_equal(report->oldest_us, 1000);
    assert_int_equal(report->count, 4);
    evict_check_row(evict_row(&e, e.bucket, HG_HOT_QUERY, NULL, HOT), 3, 2, 1, 1);
    evict_check_row(evict_row(&e, e.bucket, HG_HOT_DELETE, NULL, HOT), 1, 0, 0, 0);
    evict_check_row(evict_row(&e, e.bucket, HG_HOT_QUERY, NULL, COLD), 1, 1, 0, 0);
    evict_check_row(evict_row(&e, other, HG_HOT_QUERY, NULL, HOT), 1, 1, 0, 0);
    /* Where it is off nothing is told of the keys; the slots are used all the same. */
    atomic_store(&other->bind_mode, HG_MODE_OFF);
    report = evict_ask(&e);
    assert_int_equal(report->used, 7);
    assert_null(evict_row(&e, other, HG_HOT_QUERY, NULL, HOT));
    gate_resize(&e.s.stage, HG_GATE_READ, 8);
    for (unsigned i = 0; i < 3; i++) {
        stage_run(&e.s.stage);
        fakestore_obey_all(e.s.store);
    }
    client_close(&exempt);
    client_close(&shop);
    client_close(&waiter);
    evict_close(&e);
}

static void test_counts_who_waits_for_room(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    e.s.store->room = 1;
    client_add_op(&e.s.client, HG_OPCODE_GET, HOT, 1);
    client_add_op(&e.s.client, HG_OPCODE_GET, HOT, 2);
    scene_send(&e.s);
    assert_int_equal(evict_ask(&e)->used, 1);
    evict_check_row(evict_row(&e, e.bucket, HG_HOT_QUERY, NULL, HOT), 1, 1, 0, 1);
    e.s.store->room = 2;
    fakestore_call_room(HG_CONTAINER_OF(hg_list_first(&e.s.store->waiting), struct kept, node));
    assert_int_equal(evict_ask(&e)->used, 2);
    evict_check_row(evict_row(&e, e.bucket, HG_HOT_QUERY, NULL, HOT), 2, 2, 0, 0);
    fakestore_obey_all(e.s.store);
    evict_close(&e);
}

/* An upstream that the worker has not opened, and one whose place another one has. */
static void test_report_of_a_stranger(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    struct stage *stage = &e.s.stage;
    hg_evict_ask(&stage->workers[0], &stage->upstreams[1].upstream, 0, ++e.round, &e.house,
                 evict_on_report, &e);
    stage_run(stage);
    hg_mailbox_wait(&e.house, 0);
    assert_non_null(e.report);
    assert_int_equal(e.report->report.used, 0);
    assert_int_equal(e.report->report.count, 0);
    hg_evict_order(&stage->workers[0], &stage->upstreams[1].upstream, 0, NULL, 0);
    stage_run(stage);
    evict_close(&e);
}

/* Long keys: all of them are told apart, whatever is kept of them. */
static void test_long_keys(void **state)
{
    (void)state;
    static const size_t lens[] = {39, 40, 41, 249, 250};
    struct evictscene e;
    char key[2][251];
    evict_start(&e);
    for (uint32_t i = 0; i < HG_COUNT_OF(lens); i++) {
        for (unsigned k = 0; k < 2; k++) {
            memset(key[k], 'a' + (int)i, lens[i]);
            key[k][lens[i] - 1] = (char)('0' + k);
            key[k][lens[i]] = '\0';
        }
        client_add_op(&e.s.client, HG_OPCODE_GET, key[0], 10 * i);
        client_add_op(&e.s.client, HG_OPCODE_GET, key[1], 10 * i + 1);
        client_add_op(&e.s.client, HG_OPCODE_GET, key[1], 10 * i + 2);
        scene_send(&e.s);
        evict_ask(&e);
        evict_check_row(evict_row(&e, e.bucket, HG_HOT_QUERY, NULL, key[0]), 1, 1, 0, 0);
        evict_check_row(evict_row(&e, e.bucket, HG_HOT_QUERY, NULL, key[1]), 2, 2, 0, 0);
        evict_reads(&e, key[1], 2, 0, 2);
        fakestore_obey_all(e.s.store);
        scene_expect(&e.s, HG_OPCODE_GET, 0, 10 * i);
        expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 10 * i + 1);
        expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 10 * i + 2);
        client_ask(&e.s.client, HG_OPCODE_GET, key[1], 10 * i + 3);
        scene_expect(&e.s, HG_OPCODE_GET, HG_STATUS_BIND_THROTTLE, 10 * i + 3);
    }
    evict_close(&e);
}

/* ---- what is evicted ---- */

/* The oldest go, down to what may stay; their replies leave in turn. */
static void test_oldest_first(void **state)
{
    (void)state;
    struct evictscene e;
    struct client other;
    evict_start(&e);
    gate_connect(&e.s.stage, 0, &other);
    for (uint32_t i = 1; i <= 5; i++)
        client_add_op(&e.s.client, HG_OPCODE_GET, i == 2 ? COLD : HOT, i);
    scene_send(&e.s);
    client_ask(&other, HG_OPCODE_GET, HOT, 6);
    stage_run(&e.s.stage);
    evict_reads(&e, HOT, 5, 2, 3);
    assert_int_equal(e.s.store->cancels, 3);
    assert_int_equal(fakestore_pending(e.s.store), 3);
    assert_int_equal(gate_out(&e.s.stage, HG_GATE_READ), 3);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 1);
    stage_expect_nothing(&e.s.stage, &e.s.client); /* 3 and 4 are evicted, behind 2 */
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 2);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 3);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 4);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 5);
    stage_expect(&e.s.stage, &other, HG_OPCODE_GET, 0, 6);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_evicted), 3);
    assert_int_equal(stage_outcome(&e.s.stage, HG_OUTCOME_EVICTED), 3);
    /* They reached the store: each costs what a read is likely to. */
    assert_int_equal(hg_counter_get(&evict_lane(&e)->ru), 6);
    client_close(&other);
    evict_close(&e);
}

static void test_waiting_ones(void **state)
{
    (void)state;
    struct evictscene e;
    struct client crowd[4];
    evict_start(&e);
    gate_resize(&e.s.stage, HG_GATE_READ, 1);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    for (unsigned i = 0; i < 4; i++) {
        if (i == 3)
            evict_connect_exempt(&e, &crowd[i]);
        else
            gate_connect(&e.s.stage, 0, &crowd[i]);
        client_add_op(&crowd[i], HG_OPCODE_GET, i == 2 ? COLD : HOT, i);
        client_add_op(&crowd[i], HG_OPCODE_NOOP, NULL, 10 + i);
        client_send(&crowd[i]);
        stage_run(&e.s.stage);
    }
    evict_reads(&e, HOT, 1, 1, 2);
    for (unsigned i = 0; i < 2; i++) {
        expect_evicted(&e, &crowd[i], HG_OPCODE_GET, i);
        stage_expect(&e.s.stage, &crowd[i], HG_OPCODE_NOOP, 0, 10 + i);
    }
    assert_int_equal(gate_waiting(&e.s.stage, HG_GATE_READ), 2);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_evicted_waiting), 2);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_evicted), 0);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->ru), 0);
    for (unsigned i = 0; i < 3; i++) {
        fakestore_obey_all(e.s.store);
        stage_run(&e.s.stage);
    }
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    for (unsigned i = 2; i < 4; i++)
        stage_expect(&e.s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
    for (unsigned i = 0; i < 4; i++)
        client_close(&crowd[i]);
    evict_close(&e);
}

static void test_one_that_waits_for_room(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    e.s.store->room = 1;
    client_add_op(&e.s.client, HG_OPCODE_GET, COLD, 1);
    client_add_op(&e.s.client, HG_OPCODE_GET, HOT, 2);
    client_add_op(&e.s.client, HG_OPCODE_NOOP, NULL, 3);
    scene_send(&e.s);
    evict_reads(&e, HOT, 0, 0, 1);
    assert_int_equal(fakestore_waiting(e.s.store), 0);
    assert_int_equal(atomic_load(&gate_share(&e.s.stage)->backlog), 0);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 2);
    scene_expect(&e.s, HG_OPCODE_NOOP, 0, 3);
    evict_close(&e);
}

/* One that has just got its ticket, and is about to go on, is let be. */
static void test_one_that_is_about_to_go_on(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    gate_resize(&e.s.stage, HG_GATE_READ, 0);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    gate_resize(&e.s.stage, HG_GATE_READ, 1); /* letters are delivered in the order of posting */
    evict_reads(&e, HOT, 0, 0, 1);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    evict_close(&e);
}

static void test_sent_writes(void **state)
{
    (void)state;
    struct evictscene e;
    for (unsigned may = 0; may < 2; may++) {
        evict_init(&e);
        e.s.stage.settings.bind.evict_sent_writes = may;
        gate_open(&e.s);
        client_ask(&e.s.client, HG_OPCODE_DELETE, HOT, 1);
        stage_run(&e.s.stage);
        evict_ask(&e);
        evict_check_row(evict_row(&e, e.bucket, HG_HOT_DELETE, NULL, HOT), 1, may, 0, 0);
        struct hg_evict_key of = evict_verdict(&e, e.bucket, HG_HOT_DELETE, NULL, HOT, may, 0, may);
        evict_order(&e, 0, &of, 1);
        if (may) {
            struct reply reply =
                stage_expect(&e.s.stage, &e.s.client, HG_OPCODE_DELETE, HG_STATUS_BIND_EVICTION, 1);
            assert_non_null(strstr(reply_text(&reply), "may have been carried out all the same"));
            assert_int_equal(hg_counter_get(&evict_lane(&e)->wu), 1);
        } else {
            fakestore_obey_all(e.s.store);
            scene_expect(&e.s, HG_OPCODE_DELETE, 0, 1);
        }
        /* The key is throttled in any case. */
        client_ask(&e.s.client, HG_OPCODE_DELETE, HOT, 2);
        scene_expect(&e.s, HG_OPCODE_DELETE, HG_STATUS_BIND_THROTTLE, 2);
        evict_close(&e);
    }
}

static void test_quiet_and_plain(void **state)
{
    (void)state;
    struct evictscene e;
    struct client plain;
    evict_start(&e);
    stage_connect(&e.s.stage, 0, &plain);
    client_add_op(&e.s.client, HG_OPCODE_GETQ, HOT, 1);
    client_add_op(&e.s.client, HG_OPCODE_NOOP, NULL, 2);
    scene_send(&e.s);
    client_ask(&plain, HG_OPCODE_GETKQ, HOT, 1);
    stage_run(&e.s.stage);
    evict_reads(&e, HOT, 2, 0, 2);
    struct reply reply =
        stage_expect(&e.s.stage, &e.s.client, HG_OPCODE_GETQ, HG_STATUS_BIND_EVICTION, 1);
    assert_non_null(strstr(reply_text(&reply), "evicted: its key"));
    assert_null(strstr(reply_text(&reply), "may have been"));
    scene_expect(&e.s, HG_OPCODE_NOOP, 0, 2);
    stage_expect(&e.s.stage, &plain, HG_OPCODE_GETKQ, HG_STATUS_ETMPFAIL, 1);
    client_close(&plain);
    evict_close(&e);
}

static void test_exempt_ones_stay(void **state)
{
    (void)state;
    struct evictscene e;
    struct client exempt;
    evict_start(&e);
    evict_connect_exempt(&e, &exempt);
    client_ask(&exempt, HG_OPCODE_GET, HOT, 1);
    client_ask(&exempt, HG_OPCODE_GET, HOT, 2);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    evict_reads(&e, HOT, 1, 0, 1);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 1);
    assert_int_equal(fakestore_pending(e.s.store), 2);
    gate_wait(&e.s.stage, 1000000);
    evict_oldest(&e);
    assert_int_equal(fakestore_pending(e.s.store), 2);
    fakestore_obey_all(e.s.store);
    stage_expect(&e.s.stage, &exempt, HG_OPCODE_GET, 0, 1);
    stage_expect(&e.s.stage, &exempt, HG_OPCODE_GET, 0, 2);
    client_close(&exempt);
    evict_close(&e);
}

/* No key holds too much: the one that has run longest goes, if it is old enough, and its key long
   enough. */
static void test_longest_running(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    client_ask(&e.s.client, HG_OPCODE_DELETE, "d", 1);
    client_ask(&e.s.client, HG_OPCODE_GET, "2900111", 4);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 2);
    stage_run(&e.s.stage);
    gate_wait(&e.s.stage, 199999);
    client_ask(&e.s.client, HG_OPCODE_GET, COLD, 3);
    stage_run(&e.s.stage);
    evict_oldest(&e);
    assert_int_equal(fakestore_pending(e.s.store), 4);
    gate_wait(&e.s.stage, 1);
    evict_oldest(&e);
    assert_int_equal(fakestore_pending(e.s.store), 3);
    assert_null(fakestore_find(e.s.store, HOT));
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_evicted_oldest), 1);
    assert_null(evict_lane(&e)->binds); /* nobody is throttled for it */
    atomic_store(&e.bucket->bind_mode, HG_MODE_OBSERVE);
    gate_wait(&e.s.stage, 200000);
    evict_oldest(&e);
    assert_int_equal(fakestore_pending(e.s.store), 3);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_evicted_oldest), 1);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_would_evict), 1);
    atomic_store(&e.bucket->bind_mode, HG_MODE_OFF);
    evict_oldest(&e);
    assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_would_evict), 1);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_DELETE, 0, 1);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 4);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 2);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 3);
    evict_close(&e);
}

static void test_modes(void **state)
{
    (void)state;
    static const int modes[] = {HG_MODE_OBSERVE, HG_MODE_OFF};
    struct evictscene e;
    struct client other;
    for (unsigned m = 0; m < 2; m++) {
        evict_start(&e);
        gate_connect(&e.s.stage, 0, &other);
        gate_resize(&e.s.stage, HG_GATE_READ, 1);
        client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
        stage_run(&e.s.stage);
        client_ask(&other, HG_OPCODE_GET, HOT, 1);
        stage_run(&e.s.stage);
        atomic_store(&e.bucket->bind_mode, modes[m]); /* since the verdict was asked for */
        evict_reads(&e, HOT, 1, 0, 2);
        bool observes = modes[m] == HG_MODE_OBSERVE;
        assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_would_evict), observes ? 2 : 0);
        assert_int_equal(hg_counter_get(&evict_lane(&e)->bind_made), observes ? 1 : 0);
        assert_int_equal(gate_waiting(&e.s.stage, HG_GATE_READ), 1);
        fakestore_obey_all(e.s.store);
        stage_run(&e.s.stage);
        fakestore_obey_all(e.s.store);
        scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
        stage_expect(&e.s.stage, &other, HG_OPCODE_GET, 0, 1);
        client_close(&other);
        evict_close(&e);
    }
}

static void test_stranded(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    e.s.store->strands = true;
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    evict_reads(&e, HOT, 1, 0, 1);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 1);
    assert_int_equal(gate_out(&e.s.stage, HG_GATE_READ), 1);
    assert_int_equal(atomic_load(&gate_holder(&e.s.stage, HG_GATE_READ)->stranded), 1);
    assert_int_equal(gate_sum(&e.s.stage, HG_GATE_READ, "unanswered"), 1);
    fakestore_late(e.s.store, HG_TICKET_READ);
    evict_close(&e);
}

/* ---- what eviction leads to ---- */

static void obey_all_and_call_room(struct fakestore *store)
{
    store->on_cancel = NULL;
    fakestore_obey_all(store);
    struct hg_list *node;
    while ((node = hg_list_first(&store->waiting)) != NULL)
        fakestore_call_room(HG_CONTAINER_OF(node, struct kept, node));
}

/* The store answers others, and has room for more, from within the first cancel: those that the
   eviction has yet to look at are gone, and new ones are there. */
static void test_others_end_meanwhile(void **state)
{
    (void)state;
    struct evictscene e;
    struct client crowd[6];
    evict_start(&e);
    e.s.store->room = 4;
    for (unsigned i = 0; i < 6; i++) {
        gate_connect(&e.s.stage, 0, &crowd[i]);
        client_ask(&crowd[i], HG_OPCODE_GET, HOT, i);
        stage_run(&e.s.stage);
    }
    assert_int_equal(fakestore_waiting(e.s.store), 2);
    e.s.store->on_cancel = obey_all_and_call_room;
    evict_reads(&e, HOT, 4, 0, 6);
    fakestore_obey_all(e.s.store);
    expect_evicted(&e, &crowd[0], HG_OPCODE_GET, 0);
    for (unsigned i = 1; i < 4; i++)
        stage_expect(&e.s.stage, &crowd[i], HG_OPCODE_GET, 0, i);
    for (unsigned i = 4; i < 6; i++) /* they went on in the place of the others, and were evicted */
        expect_evicted(&e, &crowd[i], HG_OPCODE_GET, i);
    for (unsigned i = 0; i < 6; i++)
        client_close(&crowd[i]);
    evict_close(&e);
}

/* Several keys in one order; a bucket that is gone meanwhile. */
static void test_several_keys(void **state)
{
    (void)state;
    struct evictscene e;
    evict_init(&e);
    struct hg_bucket *shop = gate_bucket(&e.s.stage, "shop");
    evict_use(shop);
    gate_open(&e.s);
    client_add_op(&e.s.client, HG_OPCODE_GET, HOT, 1);
    client_add_op(&e.s.client, HG_OPCODE_GET, COLD, 2);
    client_add_op(&e.s.client, HG_OPCODE_GET, "others--", 3);
    scene_send(&e.s);
    struct hg_evict_key keys[] = {
        evict_verdict(&e, shop, HG_HOT_QUERY, NULL, HOT, 1, 0, 1),
        evict_verdict(&e, e.bucket, HG_HOT_QUERY, NULL, HOT, 1, 0, 1),
        evict_verdict(&e, e.bucket, HG_HOT_QUERY, NULL, COLD, 1, 0, 1),
        evict_verdict(&e, e.bucket, HG_HOT_QUERY, NULL, "unknown-", 0, 0, 1)};
    stage_delete(&e.s.stage, "shop");
    stage_publish(&e.s.stage);
    stage_run(&e.s.stage);
    evict_order(&e, 0, keys, HG_COUNT_OF(keys));
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 1);
    expect_evicted(&e, &e.s.client, HG_OPCODE_GET, 2);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 3);
    assert_int_equal(e.s.stage.retired, 1);
    assert_int_equal(evict_lane(&e)->binds->count, 3);
    evict_close(&e);
}

/* Letters that a worker gets when it has ended. */
static void test_worker_has_ended(void **state)
{
    (void)state;
    struct evictscene e;
    evict_start(&e);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    struct stage *stage = &e.s.stage;
    struct hg_evict_key of = evict_verdict(&e, e.bucket, HG_HOT_QUERY, NULL, HOT, 1, 0, 1);
    struct hg_evict_key *copy = calloc(1, sizeof *copy);
    *copy = of;
    evict_reads(&e, COLD, 0, 0, 1);
    assert_non_null(evict_lane(&e)->binds);
    hg_worker_close(&stage->workers[0]);
    hg_evict_ask(&stage->workers[0], &stage->upstreams[0].upstream, 0, 1, &e.house, evict_on_report,
                 &e);
    hg_evict_order(&stage->workers[0], &stage->upstreams[0].upstream, 0, copy, 1);
    hg_evict_order(&stage->workers[0], &stage->upstreams[0].upstream, 0, NULL, 0);
    /* Housekeeping ends before the letters that are left are delivered: nobody reads a report. */
    evict_house_close(&e);
    client_close(&e.s.client);
    gate_check(stage);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_counts_who_waits_for_room),
        cmocka_unit_test(test_report_of_a_stranger),
        cmocka_unit_test(test_long_keys),
        cmocka_unit_test(test_oldest_first),
        cmocka_unit_test(test_waiting_ones),
        cmocka_unit_test(test_one_that_waits_for_room),
        cmocka_unit_test(test_one_that_is_about_to_go_on),
        cmocka_unit_test(test_sent_writes),
        cmocka_unit_test(test_quiet_and_plain),
        cmocka_unit_test(test_exempt_ones_stay),
        cmocka_unit_test(test_longest_running),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_stranded),
        cmocka_unit_test(test_others_end_meanwhile),
        cmocka_unit_test(test_several_keys),
        cmocka_unit_test(test_worker_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
