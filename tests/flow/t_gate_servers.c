// t_gate_servers - tickets of several servers: each has its own, and nobody waits for another's
// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "front/instance.h"
#include "gatescene.h"
#include "tablescene.h"

#define SERVERS 4

static void spread(struct stage *stage, struct fakestore *store)
{
    (void)stage;
    store->servers = SERVERS;
}

static void start(struct scene *s)
{
    gate_init(s);
    s->stage.on_open = spread;
    gate_open(s);
}

static struct hg_gateset *set_of(struct stage *stage)
{
    return stage->upstreams[0].upstream.gates;
}

/* The share of a server, by name; it must be there. */
static struct hg_gateshare *share(struct stage *stage, const char *server)
{
    for (unsigned i = 0; i < hg_gateset_count(set_of(stage)); i++)
        if (strcmp(hg_gateset_at(set_of(stage), i)->server, server) == 0)
            return hg_gateset_at(set_of(stage), i);
    fail_msg("no share of %s", server);
    return NULL;
}

static struct hg_gate_holder *holder(struct stage *stage, unsigned server, unsigned kind)
{
    return &share(stage, fakestore_server(server))->holders[kind];
}

static int64_t out(struct stage *stage, unsigned server, unsigned kind)
{
    return hg_ticket_out(&holder(stage, server, kind)->ticket);
}

static int64_t waiting(struct stage *stage, unsigned server, unsigned kind)
{
    return atomic_load(&holder(stage, server, kind)->waiting);
}

static void resize(struct stage *stage, unsigned server, int64_t size)
{
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        hg_gate_poke(&stage->front, hg_ticket_resize(&holder(stage, server, kind)->ticket, size));
}

/* Somebody has asked for each server, so that it has tickets. */
static void meet_all(struct scene *s)
{
    static const char *const keys[SERVERS] = {"k0", "k1", "k2", "k3"};
    for (uint32_t i = 0; i < SERVERS; i++) {
        client_ask(&s->client, HG_OPCODE_GET, keys[i], i);
        stage_run(&s->stage);
        fakestore_obey_all(s->store);
        scene_expect(s, HG_OPCODE_GET, 0, i);
    }
}

static void check_all(struct stage *stage)
{
    for (unsigned i = 0; i < hg_gateset_count(set_of(stage)); i++) {
        struct hg_gateshare *of = hg_gateset_at(set_of(stage), i);
        assert_int_equal(atomic_load(&of->backlog), 0);
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
            assert_int_equal(hg_ticket_out(&of->holders[kind].ticket), 0);
            assert_int_equal(atomic_load(&of->holders[kind].waiting), 0);
            assert_int_equal(atomic_load(&of->holders[kind].stranded), 0);
        }
    }
}

static void finish(struct scene *s)
{
    check_all(&s->stage);
    gate_close(s);
}

/* One server has no ticket left: who waits for it waits, the others' keys go. */
static void test_one_is_full(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    start(&s);
    meet_all(&s);
    resize(&s.stage, 1, 1);
    client_add_op(&s.client, HG_OPCODE_GET, "a1", 1);
    client_add_op(&s.client, HG_OPCODE_GET, "b1", 2);
    scene_send(&s);
    assert_int_equal(out(&s.stage, 1, HG_TICKET_READ), 1);
    assert_int_equal(waiting(&s.stage, 1, HG_TICKET_READ), 1);
    gate_connect(&s.stage, 0, &other);
    for (uint32_t i = 0; i < 10; i++) {
        client_ask(&other, HG_OPCODE_GET, i % 2 ? "c2" : "c3", i);
        stage_run(&s.stage);
        assert_int_equal(out(&s.stage, i % 2 ? 2 : 3, HG_TICKET_READ), 1);
        fakestore_obey(fakestore_find(s.store, i % 2 ? "c2" : "c3"));
        stage_expect(&s.stage, &other, HG_OPCODE_GET, 0, i);
    }
    /* Writes of the full server have their own. */
    client_add_set(&other, HG_OPCODE_SET, "d1", "1", 1, 20);
    client_send(&other);
    stage_run(&s.stage);
    fakestore_obey(fakestore_find(s.store, "d1"));
    stage_expect(&s.stage, &other, HG_OPCODE_SET, 0, 20);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    stage_run(&s.stage);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 2);
    client_close(&other);
    finish(&s);
}

/* The backlog is the server's. */
static void test_backlog(void **state)
{
    (void)state;
    struct scene s;
    start(&s);
    meet_all(&s);
    resize(&s.stage, 1, 0);
    stage_advance(5000);
    client_ask(&s.client, HG_OPCODE_GET, "a1", 1);
    stage_run(&s.stage);
    assert_int_equal(atomic_load(&share(&s.stage, "fake:1")->backlog), 1);
    assert_true(atomic_load(&share(&s.stage, "fake:1")->backlog_since_us) != 0);
    assert_int_equal(atomic_load(&share(&s.stage, "fake:2")->backlog), 0);
    uint64_t since_us;
    assert_int_equal(hg_gateset_backlog(set_of(&s.stage), &since_us), 1);
    assert_true(since_us != 0);
    gate_wait(&s.stage, 1000000);
    struct reply reply = scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    assert_non_null(strstr(reply_text(&reply), "server 'fake:1' of upstream 'up0'"));
    finish(&s);
}

/* Its key belongs to another server when its turn comes: it goes there, with a ticket of it. */
static void test_moved_while_it_waits(void **state)
{
    (void)state;
    struct scene s;
    for (unsigned full = 0; full < 2; full++) {
        start(&s);
        meet_all(&s);
        resize(&s.stage, 1, 0);
        client_ask(&s.client, HG_OPCODE_GET, "a1", 1);
        stage_run(&s.stage);
        assert_int_equal(waiting(&s.stage, 1, HG_TICKET_READ), 1);
        s.store->moved = 1;
        if (full)
            resize(&s.stage, 2, 0);
        resize(&s.stage, 1, 1);
        stage_run(&s.stage);
        assert_int_equal(out(&s.stage, 1, HG_TICKET_READ), 0);
        assert_int_equal(out(&s.stage, 2, HG_TICKET_READ), !full);
        assert_int_equal(waiting(&s.stage, 2, HG_TICKET_READ), full);
        if (full)
            resize(&s.stage, 2, 1);
        stage_run(&s.stage);
        assert_int_equal(fakestore_first(s.store)->call->route, 1 + 2);
        assert_int_equal(fakestore_first(s.store)->call->ticket & 0xff, 1 + HG_TICKET_READ);
        fakestore_obey_all(s.store);
        scene_expect(&s, HG_OPCODE_GET, 0, 1);
        finish(&s);
    }
}

/* The same by a reload: it does not wait for the old one's ticket, and its time goes on. */
static void test_renewed_while_it_waits(void **state)
{
    (void)state;
    struct scene s;
    start(&s);
    meet_all(&s);
    resize(&s.stage, 1, 0);
    client_ask(&s.client, HG_OPCODE_GET, "a1", 1);
    stage_run(&s.stage);
    gate_pass(&s.stage, 15000);
    resize(&s.stage, 2, 0);
    for (unsigned i = 0; i < 3; i++) {
        stage_renew(&s.stage, 0);
        stage_publish(&s.stage);
        stage_run(&s.stage);
        assert_int_equal(waiting(&s.stage, 1, HG_TICKET_READ), 1);
    }
    gate_wait(&s.stage, 4999); /* 20 ms in all are its time under overload, or 1 s */
    stage_expect_nothing(&s.stage, &s.client);
    gate_wait(&s.stage, 980001);
    scene_expect(&s, HG_OPCODE_GET, HG_STATUS_QUEUE_TIMEOUT, 1);
    finish(&s);
}

/* Slots that nobody waits for count for their server. */
static void test_stranded(void **state)
{
    (void)state;
    struct scene s;
    struct client other;
    start(&s);
    meet_all(&s);
    s.store->strands = true;
    stage_connect_tcp(&s.stage, 0, &other);
    client_ask(&other, HG_OPCODE_NOOP, NULL, 0);
    stage_run(&s.stage);
    client_ask(&other, HG_OPCODE_GET, "a3", 1);
    stage_run(&s.stage);
    client_close(&other);
    STAGE_UNTIL(&s.stage, stage_sessions(&s.stage) == 1);
    assert_int_equal(out(&s.stage, 3, HG_TICKET_READ), 1);
    assert_int_equal(atomic_load(&holder(&s.stage, 3, HG_TICKET_READ)->stranded), 1);
    assert_int_equal(out(&s.stage, 0, HG_TICKET_READ), 0);
    fakestore_late_at(s.store, HG_TICKET_READ, 3);
    finish(&s);
}

/* What goes to no single server has tickets of its own. */
static void test_nowhere(void **state)
{
    (void)state;
    struct scene s;
    start(&s);
    meet_all(&s);
    for (unsigned i = 0; i < SERVERS; i++)
        resize(&s.stage, i, 0);
    client_ask(&s.client, HG_OPCODE_GET, "none", 1);
    stage_run(&s.stage);
    assert_int_equal(hg_ticket_out(&share(&s.stage, "")->holders[HG_TICKET_READ].ticket), 1);
    fakestore_obey_all(s.store);
    scene_expect(&s, HG_OPCODE_GET, 0, 1);
    finish(&s);
}

/* ---- batches ---- */

static void start_table(struct tablescene *t)
{
    table_init(t, 1);
    atomic_store(&stage_find(&t->s.stage, "default")->ticket_mode, HG_MODE_ENFORCE);
    t->s.stage.on_open = spread;
    table_open(t);
    gate_hello(&t->s.stage, &t->s.client);
}

/* Each item has a ticket of its own server, and those of the others do not wait for it. */
static void test_batch(void **state)
{
    (void)state;
    static const struct item items[] = {{0, "r1", 0}, {0, "r2", 0}, {0, "r3", 0},
                                        {0, "q1", 0}, {0, "q2", 0}, {0, "q3", 0}};
    struct tablescene t;
    start_table(&t);
    struct stage *stage = &t.s.stage;
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 6), 1);
    table_expect(&t, &t.s.client, 1);
    resize(stage, 1, 0);
    resize(stage, 2, 1);
    t.by_hand = true;
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 6), 2);
    assert_int_equal(waiting(stage, 1, HG_TICKET_READ), 2);
    assert_int_equal(out(stage, 2, HG_TICKET_READ), 1);
    assert_int_equal(waiting(stage, 2, HG_TICKET_READ), 1);
    assert_int_equal(out(stage, 3, HG_TICKET_READ), 2);
    assert_int_equal(fakestore_pending(t.s.store), 3);
    while (fakestore_first(t.s.store) != NULL) {
        table_obey(&t);
        stage_run(stage);
    }
    assert_int_equal(out(stage, 2, HG_TICKET_READ), 0);
    assert_int_equal(waiting(stage, 1, HG_TICKET_READ), 2);
    gate_pass(stage, 1000000);
    table_reply *reply = table_expect(&t, &t.s.client, 2);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(reply->items[i]->status,
                         i % 3 == 0 ? HG_STATUS_QUEUE_TIMEOUT : HG_STATUS_SUCCESS);
    check_all(stage);
    table_close(&t);
}

/* Items on one row keep their order, though reads and writes wait in lines of their own. */
static void test_batch_keeps_order(void **state)
{
    (void)state;
    static const struct item items[] = {{5, "r1", 7}, {0, "r1", 0}, {0, "r2", 0}};
    struct tablescene t;
    start_table(&t);
    struct stage *stage = &t.s.stage;
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 3), 1);
    table_expect(&t, &t.s.client, 1);
    hg_gate_poke(&stage->front, hg_ticket_resize(&holder(stage, 1, HG_TICKET_WRITE)->ticket, 0));
    t.by_hand = true;
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 3), 2);
    assert_int_equal(waiting(stage, 1, HG_TICKET_WRITE), 1);
    assert_int_equal(waiting(stage, 1, HG_TICKET_READ), 0);
    assert_int_equal(fakestore_pending(t.s.store), 0); /* the read of the row is behind its write */
    hg_gate_poke(&stage->front, hg_ticket_resize(&holder(stage, 1, HG_TICKET_WRITE)->ticket, 1));
    stage_run(stage);
    assert_true(fakestore_pending(t.s.store) > 0);
    while (fakestore_first(t.s.store) != NULL) {
        table_obey(&t);
        stage_run(stage);
    }
    table_expect(&t, &t.s.client, 2);
    check_all(stage);
    table_close(&t);
}

/* The client goes while its items wait, and some are with the store. */
static void test_batch_gone(void **state)
{
    (void)state;
    static const struct item items[] = {{0, "r1", 0}, {0, "r2", 0}, {0, "r3", 0}};
    struct tablescene t;
    start_table(&t);
    struct stage *stage = &t.s.stage;
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 3), 1);
    table_expect(&t, &t.s.client, 1);
    resize(stage, 1, 0);
    t.by_hand = true;
    table_ask(&t, HG_OP_TABLE_BATCH, "t", "", body_batch(false, items, 3), 2);
    assert_int_equal(waiting(stage, 1, HG_TICKET_READ), 1);
    table_reset(&t, &t.s.client);
    STAGE_UNTIL(stage, stage_sessions(stage) == 0);
    check_all(stage);
    resize(stage, 1, 1);
    stage_run(stage);
    check_all(stage);
    table_close(&t);
}

/* ---- sizes ---- */

static struct hg_gateset_conf fixed(uint32_t reads, bool is_sum, uint64_t cap)
{
    return (struct hg_gateset_conf){
        .probe = {.control = HG_PROBE_FIXED,
                  .interval_us = 100000,
                  .read_tickets = reads,
                  .write_tickets = reads,
                  .min = 4,
                  .max = 128,
                  .weight = 0.2,
                  .step = 0.1},
        .max_waiting = 100,
        .queue_timeout_us = 1000000,
        .flood_wait_us = 100000,
        .cap = cap,
        .is_sum = is_sum,
    };
}

static int64_t size_of(const struct hg_gateset *set, unsigned i, unsigned kind)
{
    return hg_ticket_size(&hg_gateset_at(set, i)->holders[kind].ticket);
}

static void test_sizes(void **state)
{
    (void)state;
    static const char *const servers[] = {"a:1", "b:1", "c:1", "d:1"};
    struct hg_gateset *set = hg_gateset_new(2);
    assert_non_null(set);
    struct hg_gateset_conf conf = fixed(16, false, 0);
    assert_int_equal(hg_gateset_list(set, NULL, servers, 4, 1), 0);
    hg_gateset_configure(set, NULL, &conf, 1);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(size_of(set, i, HG_TICKET_READ), 16);
    conf = fixed(16, true, 0);
    hg_gateset_configure(set, NULL, &conf, 2);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(size_of(set, i, HG_TICKET_READ), 4);
    hg_gateset_at(set, 2)->demand[HG_TICKET_READ] = 10;
    hg_gateset_configure(set, NULL, &conf, 3);
    assert_true(size_of(set, 2, HG_TICKET_READ) >= 10);
    int64_t sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum += size_of(set, i, HG_TICKET_READ);
    assert_int_equal(sum, 16);
    conf = fixed(100, false, 80);
    hg_gateset_configure(set, NULL, &conf, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(size_of(set, i, HG_TICKET_READ), 10);
    hg_gateset_free(set);
}

/* A server that nobody uses any more leaves its place to another, but its counts stay. */
static void test_places(void **state)
{
    (void)state;
    static const char *const first[] = {"a:1", "b:1"}, *const then[] = {"b:1", "c:1"};
    struct hg_gateset *set = hg_gateset_new(1);
    struct hg_gateset_sum sum;
    assert_non_null(set);
    assert_int_equal(hg_gateset_list(set, NULL, first, 2, 1), 0);
    struct hg_gateshare *a = hg_gateset_take(set, NULL, "a:1", 1), *b = hg_gateset_at(set, 1);
    hg_counter_set(&a->holders[HG_TICKET_READ].workers[0].tally.started, 5);
    assert_int_equal(hg_gateset_list(set, NULL, then, 2, 1), 0);
    assert_int_equal(hg_gateset_count(set), 3); /* a:1 is still used */
    assert_ptr_equal(hg_gateset_at(set, 1), b);
    assert_false(!hg_gateset_shows(a));
    hg_gateset_give(set, a);
    assert_false(hg_gateset_shows(a));
    hg_ticket_force(&a->holders[HG_TICKET_WRITE].ticket); /* something is under way there */
    struct hg_gateshare *d = hg_gateset_take(set, NULL, "d:1", 1);
    assert_int_equal(d->index, 3);
    assert_int_equal(hg_ticket_put(&a->holders[HG_TICKET_WRITE].ticket), HG_TICKET_NOBODY);
    struct hg_gateshare *e = hg_gateset_take(set, NULL, "e:1", 1);
    assert_ptr_equal(e, a);
    assert_string_equal(e->server, "e:1");
    hg_gateset_sum(set, HG_TICKET_READ, &sum);
    const size_t row = offsetof(struct hg_gate_tally, started) / sizeof(hg_counter);
    assert_int_equal(sum.counts[row], 5);
    hg_gateset_free(set);
}

/* What servers have together is not kept for one that has gone, until it comes back. */
static void test_gone_has_no_part(void **state)
{
    (void)state;
    static const char *const first[] = {"a:1", "b:1", "c:1", "d:1"};
    struct hg_gateset *set = hg_gateset_new(1);
    struct hg_gateset_sum sum;
    assert_non_null(set);
    struct hg_gateset_conf conf = fixed(16, true, 0);
    assert_int_equal(hg_gateset_list(set, NULL, first, 4, 1), 0);
    hg_gateset_configure(set, NULL, &conf, 1);
    assert_int_equal(size_of(set, 0, HG_TICKET_READ), 4);
    hg_ticket_force(&hg_gateset_at(set, 3)->holders[HG_TICKET_READ].ticket);
    assert_int_equal(hg_gateset_list(set, NULL, first, 2, 2), 0); /* d:1 has still one out */
    assert_int_equal(hg_ticket_put(&hg_gateset_at(set, 3)->holders[HG_TICKET_READ].ticket),
                     HG_TICKET_NOBODY);
    assert_int_equal(hg_gateset_list(set, NULL, first, 2, 3), 0);
    assert_int_equal(size_of(set, 0, HG_TICKET_READ), 8);
    assert_int_equal(size_of(set, 1, HG_TICKET_READ), 8);
    assert_int_equal(atomic_load(&hg_gateset_at(set, 0)->holders[HG_TICKET_READ].grew_us), 3);
    hg_gateset_sum(set, HG_TICKET_READ, &sum);
    assert_int_equal(sum.size, 16);
    assert_ptr_equal(hg_gateset_take(set, NULL, "c:1", 4), hg_gateset_at(set, 2));
    hg_gateset_sum(set, HG_TICKET_READ, &sum);
    assert_int_equal(sum.size, 16);
    assert_in_range(size_of(set, 2, HG_TICKET_READ), 5, 6);
    hg_gateset_free(set);
}

/* A worker that two servers' lines are flooded on is one worker. */
static void test_overloaded_workers(void **state)
{
    (void)state;
    static const char *const servers[] = {"a:1", "b:1"};
    struct hg_gateset *set = hg_gateset_new(2);
    struct hg_gateset_sum sum;
    assert_non_null(set);
    assert_int_equal(hg_gateset_list(set, NULL, servers, 2, 1), 0);
    for (unsigned i = 0; i < 2; i++)
        hg_counter_set(&hg_gateset_at(set, i)->holders[HG_TICKET_READ].workers[1].overloaded, 1);
    hg_gateset_sum(set, HG_TICKET_READ, &sum);
    assert_int_equal(sum.overloaded, 1);
    hg_gateset_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_is_full),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_moved_while_it_waits),
        cmocka_unit_test(test_renewed_while_it_waits),
        cmocka_unit_test(test_stranded),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_batch_keeps_order),
        cmocka_unit_test(test_batch_gone),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_gone_has_no_part),
        cmocka_unit_test(test_overloaded_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
