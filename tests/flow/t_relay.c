// t_relay - a worker's calls to a server that another worker owns
// SPDX-License-Identifier: BSD-3-Clause
//
// Two workers take turns on one thread: worker 0 owns the server, worker 1 is a guest.
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/opcode.h"

#define MANY (HG_RELAY_AWAY + 500)

struct scene {
    struct rig rigs[2];
    struct fake fake;
    struct hg_ring_server server;
    struct hg_remote_conf conf;
    struct hg_upstream_shared *shared;
    struct hg_store *stores[2];
    struct bench bench;
    uint32_t summoned; /* times */
};

static void scene_init(struct scene *s, uint32_t connections)
{
    struct fake *fake = &s->fake;
    memset(s, 0, sizeof *s);
    fake_open(fake, 0);
    fake->automatic = true;
    s->bench.fakes[0] = fake;
    rig_conf(&s->conf, &s->server, &fake, 1);
    s->conf.pool_max_connections = connections;
    s->shared = rig_shared(&s->conf, 2);
    for (int i = 0; i < 2; i++) {
        rig_init(&s->rigs[i]);
        bench_keep_time(&s->rigs[i]);
        s->bench.rigs[i] = &s->rigs[i];
    }
    note_reset_order();
}

static void scene_open(struct scene *s, uint32_t worker)
{
    uint32_t share = s->conf.pool_max_connections < 2 ? 1 : 2;
    s->stores[worker] = rig_store(&s->rigs[worker], s->shared, worker, share);
}

static void scene_start(struct scene *s, uint32_t connections)
{
    scene_init(s, connections);
    scene_open(s, 0);
    scene_open(s, 1);
}

static void close_store(struct scene *s, uint32_t worker)
{
    if (s->stores[worker] != NULL)
        s->stores[worker]->ops->free(s->stores[worker]);
    s->stores[worker] = NULL;
}

static void scene_fini(struct scene *s)
{
    close_store(s, 1);
    close_store(s, 0);
    hg_upstream_shared_free(s->shared);
    for (int i = 0; i < 2; i++)
        rig_fini(&s->rigs[i]);
    fake_close(&s->fake);
}

static struct hg_relay *relay_of(struct scene *s, uint32_t worker)
{
    return &hg_remote_of(s->stores[worker])->relay;
}

static enum hg_submit submit(struct scene *s, struct note *note, uint32_t worker, enum hg_op op,
                             const char *key)
{
    note_init(note, s->stores[worker], op, key);
    return note_submit(note, &s->rigs[worker]);
}

#define UNTIL(s, condition) BENCH_UNTIL(&(s)->bench, condition)

/* Turns worker 1 only: the owner does not come to it. */
static void turn_guest(struct scene *s)
{
    bench_turn(&(struct bench){.rigs = {&s->rigs[1]}});
}

static void t_answers_come_back(void **state)
{
    (void)state;
    struct scene s;
    struct note get, set, incr, own;
    scene_start(&s, 3);
    char prefix[] = "shop:", text[] = "key", value[] = "value";
    note_init(&get, s.stores[1], HG_OP_GET, text);
    get.call.prefix = hg_span_str(prefix);
    assert_int_equal(note_submit(&get, &s.rigs[1]), HG_SUBMIT_TAKEN);
    memset(prefix, 'x', strlen(prefix)); /* spans hold during submit only */
    memset(get.key, 'x', strlen(get.key));
    note_init(&set, s.stores[1], HG_OP_SET, "k");
    set.call.value = hg_span_str(value);
    set.call.item_flags = 7;
    set.call.cas = 99;
    (void)note_submit(&set, &s.rigs[1]);
    memset(value, 'x', strlen(value));
    (void)submit(&s, &incr, 1, HG_OP_INCREMENT, "n");
    (void)submit(&s, &own, 0, HG_OP_GET, "own");
    UNTIL(&s, get.done == 1 && set.done == 1 && incr.done == 1 && own.done == 1);
    assert_string_equal(get.value, "v:shop:key");
    assert_int_equal(get.result.item_flags, 7);
    assert_string_equal(get.result.server, s.fake.address);
    assert_true(get.call.sent_us != 0);
    assert_int_equal(incr.result.counter, 42);
    assert_string_equal(own.value, "v:own");
    const struct fake_request *request = fake_find(&s.fake, "k");
    assert_null(request); /* answered */
    for (size_t i = 0; i < s.fake.count; i++) {
        request = &s.fake.requests[i];
        if (strcmp(request->key, "k") != 0)
            continue;
        assert_int_equal(request->cas, 99);
        assert_int_equal(request->value_len, 5);
        assert_int_equal(request->value_sum, 'v' + 'a' + 'l' + 'u' + 'e');
    }
    /* All by the owner's connections. */
    const struct hg_upstream_counters *counters = s.shared->servers[0].counters;
    assert_int_equal(hg_counter_get(&counters[1].values[HG_UPSTREAM_REQUESTS]), 0);
    assert_int_equal(hg_counter_get(&counters[1].values[HG_UPSTREAM_RELAYED]), 3);
    assert_int_equal(hg_counter_get(&counters[0].values[HG_UPSTREAM_REQUESTS]), 4);
    assert_true(s.stores[0]->ops->drained(s.stores[0]));
    assert_true(s.stores[1]->ops->drained(s.stores[1]));
    scene_fini(&s);
}

/* Long values change hands, long keys too. */
static void t_large_values(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 900, 1020, 1024, 1025, 20000, 150000};
    struct scene s;
    scene_start(&s, 3);
    s.fake.automatic = false;
    for (size_t i = 0; i < HG_COUNT_OF(sizes); i++) {
        size_t len = sizes[i];
        struct note set, get;
        struct hg_blob *blob = hg_blob_borrow(&s.rigs[1].blobs, len + 1);
        uint32_t sum = 0;
        for (size_t b = 0; b < len; b++)
            sum += blob->data[b] = (uint8_t)(b * 7 + i);
        blob->len = len;
        note_init(&set, s.stores[1], HG_OP_SET, "large");
        set.call.value = hg_span(blob->data, len);
        set.call.blob = blob;
        (void)note_submit(&set, &s.rigs[1]);
        hg_blob_unref(blob);
        UNTIL(&s, fake_find(&s.fake, "large") != NULL);
        assert_int_equal(fake_find(&s.fake, "large")->value_len, len);
        assert_int_equal(fake_find(&s.fake, "large")->value_sum, sum);
        fake_answer(&s.fake, fake_find(&s.fake, "large"), 0, "");
        UNTIL(&s, set.done == 1);
        assert_int_equal(set.result.fault, HG_FAULT_NONE);

        char *text = malloc(len + 1);
        memset(text, 'a', len);
        text[len] = '\0';
        (void)submit(&s, &get, 1, HG_OP_GET, "large");
        UNTIL(&s, fake_find(&s.fake, "large") != NULL);
        fake_answer(&s.fake, fake_find(&s.fake, "large"), 0, text);
        UNTIL(&s, get.done == 1);
        assert_int_equal(get.value_len, len);
        assert_int_equal(get.value_sum, (uint32_t)(len * 'a'));
        assert_int_equal(get.in_blob, len > HG_RELAY_ROOM);
        free(text);
    }
    scene_fini(&s);
}

/* One letter a turn for all calls of the turn. */
static void t_batches(void **state)
{
    (void)state;
    struct scene s;
    struct note notes[50];
    char key[32];
    scene_start(&s, 1);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "b:%d", i);
        (void)submit(&s, &notes[i], 1, HG_OP_GET, key);
    }
    assert_null(relay_of(&s, 0)->port->inbox);
    turn_guest(&s);
    uint32_t batches = 0, calls = 0;
    for (struct hg_relay_item *b = relay_of(&s, 0)->port->inbox; b != NULL; b = b->batch_next) {
        batches++;
        for (struct hg_relay_item *item = b; item != NULL; item = item->next)
            calls++;
    }
    assert_int_equal(batches, 1);
    assert_int_equal(calls, 50);
    UNTIL(&s, notes[49].done == 1);
    for (int i = 0; i < 50; i++)
        assert_int_equal(notes[i].order, i + 1);
    scene_fini(&s);
}

/* Calls of a client for a key stay in order, though two connections have room: the first one's
   connection is busy with a large value, so others take the other. */
static void t_order_of_a_key(void **state)
{
    (void)state;
    struct scene s;
    struct note notes[6], big, warm[2];
    scene_start(&s, 2);
    s.fake.automatic = false;
    (void)submit(&s, &warm[0], 1, HG_OP_GET, "warm");
    UNTIL(&s, fake_find(&s.fake, "warm") != NULL);
    (void)submit(&s, &notes[0], 1, HG_OP_SET, "k");
    UNTIL(&s, fake_find(&s.fake, "k") != NULL);
    int conn = fake_find(&s.fake, "k")->conn;
    static uint8_t bytes[300000];
    note_init(&big, s.stores[1], HG_OP_SET, "big");
    big.call.value = hg_span(bytes, sizeof bytes);
    (void)note_submit(&big, &s.rigs[1]);
    for (int i = 1; i < 6; i++) {
        note_init(&notes[i], s.stores[1], i % 2 == 0 ? HG_OP_SET : HG_OP_GET, "k");
        notes[i].call.after = &notes[i - 1].call;
        (void)note_submit(&notes[i], &s.rigs[1]);
    }
    size_t seen = 0;
    BENCH_UNTIL(&s.bench, (fake_find(&s.fake, "big") != NULL));
    PATIENCE_WHILE(seen < 6)
    {
        bench_turn(&s.bench);
        seen = 0;
        for (size_t i = 0; i < s.fake.count; i++)
            seen += strcmp(s.fake.requests[i].key, "k") == 0;
    }
    for (size_t i = 0; i < s.fake.count; i++) {
        if (strcmp(s.fake.requests[i].key, "k") == 0)
            assert_int_equal(s.fake.requests[i].conn, conn);
    }
    for (size_t i = 0; i < s.fake.count; i++)
        fake_obey(&s.fake, &s.fake.requests[i]);
    UNTIL(&s, notes[5].done == 1 && big.done == 1);
    for (int i = 1; i < 6; i++)
        assert_true(notes[i].order > notes[i - 1].order);
    scene_fini(&s);
}

/* More than may be away wait, and go in order. */
static void t_many_wait(void **state)
{
    (void)state;
    struct scene s;
    static struct note notes[MANY];
    char key[32];
    scene_start(&s, 1);
    uint32_t waited = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "m:%d", i);
        waited += submit(&s, &notes[i], 1, HG_OP_GET, key) == HG_SUBMIT_WAIT;
    }
    assert_int_equal(waited, MANY - HG_RELAY_AWAY);
    assert_false(s.stores[1]->ops->drained(s.stores[1]));
    UNTIL(&s, notes[MANY - 1].done == 1);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(notes[i].done, 1);
        assert_int_equal(notes[i].rooms, i >= HG_RELAY_AWAY);
        assert_int_equal(notes[i].order, i + 1);
    }
    scene_fini(&s);
}

/* The client goes: before the batch leaves, while it waits in the owner's line, when it was sent,
   when the answer is on its way, and while it waits here. */
static void t_cancel(void **state)
{
    (void)state;
    struct scene s;
    static struct note notes[HG_RELAY_AWAY + 1];
    struct note last;
    scene_start(&s, 1);
    s.fake.automatic = false;
    struct hg_store *store = s.stores[1];
    (void)submit(&s, &notes[0], 1, HG_OP_GET, "unposted");
    store->ops->cancel(store, &notes[0].call);
    (void)submit(&s, &notes[1], 1, HG_OP_GET, "sent");
    UNTIL(&s, fake_find(&s.fake, "sent") != NULL);
    store->ops->cancel(store, &notes[1].call);
    (void)submit(&s, &notes[2], 1, HG_OP_GET, "coming");
    UNTIL(&s, fake_find(&s.fake, "coming") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "sent"));
    fake_obey(&s.fake, fake_find(&s.fake, "coming"));
    PATIENCE_WHILE(relay_of(&s, 1)->port->inbox == NULL)
    hg_loop_turn(&s.rigs[0].loop, false);
    store->ops->cancel(store, &notes[2].call);
    UNTIL(&s, store->ops->drained(store));
    /* Freed by its client: nothing may touch them. */
    memset(notes, 0xee, 3 * sizeof notes[0]);

    hg_remote_of(s.stores[0])->pool_conf.link.depth = 1;
    (void)submit(&s, &notes[0], 1, HG_OP_GET, "first");
    UNTIL(&s, fake_find(&s.fake, "first") != NULL);
    (void)submit(&s, &notes[1], 1, HG_OP_GET, "in line");
    (void)submit(&s, &last, 1, HG_OP_GET, "last");
    UNTIL(&s, hg_domain_waiting(&hg_remote_of(s.stores[0])->domains[0]) == 2);
    store->ops->cancel(store, &notes[1].call);
    memset(&notes[1], 0xee, sizeof notes[1]);
    UNTIL(&s, hg_domain_waiting(&hg_remote_of(s.stores[0])->domains[0]) == 1);
    fake_obey(&s.fake, fake_find(&s.fake, "first"));
    UNTIL(&s, fake_find(&s.fake, "last") != NULL);
    assert_null(fake_find(&s.fake, "in line"));
    fake_obey(&s.fake, fake_find(&s.fake, "last"));
    UNTIL(&s, last.done == 1 && notes[0].done == 1);

    for (int i = 0; i <= HG_RELAY_AWAY; i++)
        (void)submit(&s, &notes[i], 1, HG_OP_GET, "full");
    assert_true(notes[HG_RELAY_AWAY].call.place.waiting);
    for (int i = HG_RELAY_AWAY; i >= 0; i--)
        store->ops->cancel(store, &notes[i].call);
    memset(notes, 0xee, sizeof notes);
    UNTIL(&s, store->ops->drained(store));
    scene_fini(&s);
}

/* Faults of the owner's come through; one that does not come to it costs the time-outs. */
static void t_faults(void **state)
{
    (void)state;
    struct scene s;
    struct note slow, late, lost, down;
    scene_start(&s, 1);
    s.fake.automatic = false;
    (void)submit(&s, &slow, 1, HG_OP_GET, "slow");
    UNTIL(&s, slow.done == 1);
    assert_int_equal(slow.result.fault, HG_FAULT_TIMEOUT);
    assert_string_equal(slow.result.server, s.fake.address);
    fake_obey(&s.fake, fake_find(&s.fake, "slow"));
    bench_turn(&s.bench);
    note_init(&late, s.stores[1], HG_OP_GET, "late");
    late.call.deadline_us = s.rigs[1].loop.now_us + 100000;
    (void)note_submit(&late, &s.rigs[1]);
    uint64_t deadline = bench_deadline();
    while (late.done == 0 && hg_now_us() < deadline)
        turn_guest(&s); /* the owner is paused */
    assert_int_equal(late.done, 1);
    assert_int_equal(late.result.fault, HG_FAULT_TIMEOUT);
    memset(&late, 0xee, sizeof late);
    UNTIL(&s, s.stores[1]->ops->drained(s.stores[1]));
    assert_null(fake_find(&s.fake, "late"));

    (void)submit(&s, &lost, 1, HG_OP_GET, "lost");
    UNTIL(&s, fake_find(&s.fake, "lost") != NULL);
    fake_stop(&s.fake);
    UNTIL(&s, lost.done == 1);
    assert_int_equal(lost.result.fault, HG_FAULT_LOST);
    for (int i = 0; i < 2; i++) { /* refused by the owner, then before it is asked */
        (void)submit(&s, &down, 1, HG_OP_GET, "down");
        UNTIL(&s, down.done == 1);
        assert_int_equal(down.result.fault, HG_FAULT_DOWN);
        assert_false(hg_server_may_send(&s.shared->servers[0]));
    }
    scene_fini(&s);
}

static void t_owner_goes(void **state)
{
    (void)state;
    struct scene s;
    struct note sent, posted, unposted, later;
    scene_start(&s, 1);
    s.fake.automatic = false;
    (void)submit(&s, &sent, 1, HG_OP_GET, "sent");
    UNTIL(&s, fake_find(&s.fake, "sent") != NULL);
    (void)submit(&s, &posted, 1, HG_OP_GET, "posted");
    turn_guest(&s);
    (void)submit(&s, &unposted, 1, HG_OP_GET, "unposted");
    close_store(&s, 0);
    UNTIL(&s, sent.done == 1 && posted.done == 1 && unposted.done == 1);
    assert_int_equal(sent.result.fault, HG_FAULT_LOST);
    assert_int_equal(posted.result.fault, HG_FAULT_DOWN);
    assert_int_equal(unposted.result.fault, HG_FAULT_DOWN);
    (void)submit(&s, &later, 1, HG_OP_GET, "later");
    UNTIL(&s, later.done == 1);
    assert_int_equal(later.result.fault, HG_FAULT_DOWN);
    scene_open(&s, 0);
    s.fake.automatic = true;
    (void)submit(&s, &later, 1, HG_OP_GET, "back");
    UNTIL(&s, later.done == 1);
    assert_string_equal(later.value, "v:back");
    scene_fini(&s);
}

static void t_guest_goes(void **state)
{
    (void)state;
    struct scene s;
    struct note sent, coming, large, posted, unposted, own;
    static uint8_t bytes[100000];
    scene_start(&s, 1);
    s.fake.automatic = false;
    (void)submit(&s, &coming, 1, HG_OP_GET, "coming");
    (void)submit(&s, &sent, 1, HG_OP_GET, "sent");
    UNTIL(&s, fake_find(&s.fake, "sent") != NULL);
    fake_obey(&s.fake, fake_find(&s.fake, "coming"));
    PATIENCE_WHILE(relay_of(&s, 1)->port->inbox == NULL)
    hg_loop_turn(&s.rigs[0].loop, false);
    note_init(&large, s.stores[1], HG_OP_SET, "large");
    large.call.value = hg_span(bytes, sizeof bytes);
    (void)note_submit(&large, &s.rigs[1]);
    (void)submit(&s, &posted, 1, HG_OP_GET, "posted");
    turn_guest(&s);
    (void)submit(&s, &unposted, 1, HG_OP_GET, "unposted");
    struct hg_relay_port *port = relay_of(&s, 1)->port;
    hg_relay_port_ref(port, 1); /* to look at it afterwards */
    close_store(&s, 1);
    assert_int_equal(coming.result.fault, HG_FAULT_NONE); /* had come in time */
    assert_int_equal(sent.result.fault, HG_FAULT_LOST);
    assert_int_equal(posted.result.fault, HG_FAULT_LOST);
    assert_int_equal(large.result.fault, HG_FAULT_LOST);
    assert_int_equal(unposted.result.fault, HG_FAULT_LOST);
    s.fake.automatic = true;
    fake_obey(&s.fake, fake_find(&s.fake, "sent"));
    (void)submit(&s, &own, 0, HG_OP_GET, "own");
    UNTIL(&s, own.done == 1);
    UNTIL(&s, port->refs == 1); /* everything was let go */
    hg_relay_port_unref(port, 1);
    assert_true(s.stores[0]->ops->drained(s.stores[0]));
    scene_fini(&s);
}

/* The number of identities grows past what can be shared. */
static void t_becomes_owned(void **state)
{
    (void)state;
    struct scene s;
    struct note before, behind, after;
    uint32_t id;
    scene_start(&s, 8);
    s.fake.automatic = false;
    (void)submit(&s, &before, 1, HG_OP_SET, "k");
    UNTIL(&s, fake_find(&s.fake, "k") != NULL);
    int conn = fake_find(&s.fake, "k")->conn;
    assert_false(relay_of(&s, 1)->all);
    assert_int_equal(hg_identities_add(&s.shared->identities, "a", "a", 0, &id), 0);
    bench_for(&s.bench, 50000);
    assert_false(relay_of(&s, 1)->all); /* 8 is 2 x 2 x 2 */
    assert_int_equal(hg_identities_add(&s.shared->identities, "b", "b", 0, &id), 0);
    UNTIL(&s, relay_of(&s, 1)->all);
    note_init(&behind, s.stores[1], HG_OP_SET, "k");
    behind.call.after = &before.call;
    assert_int_equal(note_submit(&behind, &s.rigs[1]), HG_SUBMIT_WAIT);
    (void)submit(&s, &after, 1, HG_OP_GET, "other");
    UNTIL(&s, fake_find(&s.fake, "other") != NULL);
    assert_true(fake_find(&s.fake, "other")->conn != conn);
    fake_obey(&s.fake, fake_find(&s.fake, "k"));
    UNTIL(&s, before.done == 1 && fake_find(&s.fake, "k") != NULL);
    assert_true(fake_find(&s.fake, "k")->conn != conn);
    s.fake.automatic = true;
    fake_obey(&s.fake, fake_find(&s.fake, "other"));
    fake_obey(&s.fake, fake_find(&s.fake, "k"));
    UNTIL(&s, behind.done == 1 && after.done == 1);
    UNTIL(&s, s.fake.conns[conn].ended); /* its own connection is given up */
    UNTIL(&s, hg_lease_units(&s.shared->servers[0].lease, 1) == 0);
    assert_int_equal(hg_lease_capacity(&s.shared->servers[0].lease, 1), 0);
    scene_fini(&s);
}

static void summon(void *arg, uint32_t worker)
{
    struct scene *s = arg;
    if (++s->summoned == 2) /* the first time it could not */
        scene_open(s, worker);
}

/* The owner's store is opened when somebody needs it. */
static void t_owner_is_summoned(void **state)
{
    (void)state;
    struct scene s;
    struct note note, vain;
    scene_init(&s, 1);
    scene_open(&s, 1);
    assert_int_equal(submit(&s, &vain, 1, HG_OP_GET, "vain"), HG_SUBMIT_WAIT);
    UNTIL(&s, vain.done == 1); /* nobody comes */
    assert_int_equal(vain.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    s.shared->relay_ports.summon = summon;
    s.shared->relay_ports.summon_arg = &s;
    assert_int_equal(submit(&s, &note, 1, HG_OP_GET, "note"), HG_SUBMIT_WAIT);
    UNTIL(&s, note.done == 1);
    assert_string_equal(note.value, "v:note");
    assert_int_equal(s.summoned, 2);
    scene_fini(&s);
}

static void t_drain(void **state)
{
    (void)state;
    struct scene s;
    struct note sent;
    scene_start(&s, 1);
    s.fake.automatic = false;
    (void)submit(&s, &sent, 1, HG_OP_GET, "sent");
    UNTIL(&s, fake_find(&s.fake, "sent") != NULL);
    for (int i = 0; i < 2; i++) {
        s.stores[i]->ops->drain(s.stores[i]);
        assert_false(s.stores[i]->ops->drained(s.stores[i]));
    }
    fake_obey(&s.fake, fake_find(&s.fake, "sent"));
    UNTIL(&s, sent.done == 1);
    assert_int_equal(sent.result.fault, HG_FAULT_NONE);
    UNTIL(&s, s.stores[0]->ops->drained(s.stores[0]) && s.stores[1]->ops->drained(s.stores[1]));
    scene_fini(&s);
}

/* A flush of all servers goes by way of their owners. */
static void t_flush(void **state)
{
    (void)state;
    struct scene s;
    struct note flush;
    scene_start(&s, 1);
    (void)submit(&s, &flush, 1, HG_OP_FLUSH, "");
    UNTIL(&s, flush.done == 1);
    assert_int_equal(flush.result.fault, HG_FAULT_NONE);
    s.fake.automatic = false;
    (void)submit(&s, &flush, 1, HG_OP_FLUSH, "");
    turn_guest(&s);
    s.stores[1]->ops->cancel(s.stores[1], &flush.call);
    memset(&flush, 0xee, sizeof flush);
    size_t seen = s.fake.count;
    UNTIL(&s, s.fake.count > seen);
    fake_obey(&s.fake, &s.fake.requests[s.fake.count - 1]);
    UNTIL(&s, s.stores[1]->ops->drained(s.stores[1]));
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_answers_come_back),
        cmocka_unit_test(t_large_values),
        cmocka_unit_test(t_batches),
        cmocka_unit_test(t_order_of_a_key),
        cmocka_unit_test(t_many_wait),
        cmocka_unit_test(t_cancel),
        cmocka_unit_test(t_faults),
        cmocka_unit_test(t_owner_goes),
        cmocka_unit_test(t_guest_goes),
        cmocka_unit_test(t_becomes_owned),
        cmocka_unit_test(t_owner_is_summoned),
        cmocka_unit_test(t_drain),
        cmocka_unit_test(t_flush),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
