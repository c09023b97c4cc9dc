// t_quarantine - what passed a bind throttle travels apart, and where it may not
// SPDX-License-Identifier: BSD-3-Clause
#include "crowd.h"

#include <stdio.h>
#include <string.h>

#include "back/pool_in.h"
#include "base/log.h"

#define READ 1 /* hg_call.ticket */

static struct hg_quarantine *quarantine_of(struct crowd *c)
{
    return &crowd_domain(c, 0)->quarantine;
}

/* A get of that user that passed a bind throttle. */
static enum hg_submit ask_apart(struct crowd *c, uint32_t user, struct note *note, const char *key)
{
    note_init(note, c->solo.stores[0], HG_OP_GET, key);
    note->call.key_hash = key[0];
    note->call.identity = c->ids[user];
    note->call.quarantine = true;
    note->call.ticket = READ;
    return note_submit(note, &c->solo.rigs[0]);
}

static void cancel(struct note *note)
{
    note->store->ops->cancel(note->store, &note->call);
}

/* The connection that brought the newest unanswered request for the key. */
static int conn_of(struct crowd *c, const char *key)
{
    const struct fake_request *request = fake_find(&c->solo.fake, key);
    if (request == NULL)
        fail_msg("the server was not asked for %s", key);
    return request->conn;
}

static bool is_asked(struct crowd *c, const char *key)
{
    return fake_find(&c->solo.fake, key) != NULL;
}

static uint32_t held(struct crowd *c)
{
    return hg_lease_held(&c->solo.shared->servers[0].lease, 0);
}

/* Each user has a connection, which is idle. */
static void start(struct crowd *c, uint32_t users, uint32_t depth, uint32_t connections)
{
    struct note note;
    crowd_init(c, 1, depth);
    crowd_start(c, users, connections);
    for (uint32_t u = 0; u < users; u++) {
        crowd_ask(c, u, &note, "first");
        crowd_settle(c);
        crowd_answer(c, "first");
        assert_int_equal(note.done, 1);
    }
}

/* One after the other on a connection of their own; the others do not notice. */
static void t_goes_apart(void **state)
{
    (void)state;
    struct crowd c;
    struct note pass[3], other;
    start(&c, 1, 16, 4);
    uint64_t usual_us = crowd_domain(&c, 0)->usual_us;
    assert_int_equal(held(&c), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_apart(&c, 0, &pass[i], (char[3]){'p', (char)('0' + i), 0}),
                         HG_SUBMIT_WAIT);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_WAITING), 3);
    crowd_settle(&c);
    assert_int_equal(held(&c), 2);
    assert_int_equal(crowd_ask(&c, 0, &other, "other"), HG_SUBMIT_TAKEN);
    crowd_settle(&c);
    assert_true(conn_of(&c, "p0") != conn_of(&c, "other"));
    int conn = conn_of(&c, "p0");
    crowd_answer(&c, "other");
    assert_int_equal(other.done, 1);
    crowd_pass(&c, 2000000);
    assert_false(is_asked(&c, "p1")); /* however long it takes */
    assert_int_equal(crowd_pool(&c, 0, 0)->slow_count, 0);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_WAITING), 2);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_CONNECTIONS), 2);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_QUARANTINE), 1);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_PENDING), 1);
    assert_int_equal(c.solo.fake.accepted, 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(conn_of(&c, pass[i].key), conn);
        crowd_answer(&c, pass[i].key);
        crowd_settle(&c);
        assert_int_equal(pass[i].done, 1);
        assert_int_equal(pass[i].result.fault, HG_FAULT_NONE);
    }
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_QUARANTINED), 3);
    crowd_pass(&c, 200000);
    assert_int_equal(crowd_stat(&c, 0, HG_POOL_QUARANTINED), 3);
    assert_true(crowd_domain(&c, 0)->usual_us <= usual_us);
    /* Now it is there: the next one goes at once. */
    assert_int_equal(ask_apart(&c, 0, &pass[0], "again"), HG_SUBMIT_TAKEN);
    crowd_settle(&c);
    assert_int_equal(conn_of(&c, "again"), conn);
    crowd_fini(&c);
}

/* It is closed when nobody has used it for 10 s, and its unit is the planner's again. */
static void t_is_closed_when_idle(void **state)
{
    (void)state;
    struct crowd c;
    struct note pass;
    start(&c, 1, 16, 3);
    assert_int_equal(crowd_domain(&c, 0)->balance.capacity, 3);
    ask_apart(&c, 0, &pass, "p");
    crowd_settle(&c);
    assert_int_equal(crowd_domain(&c, 0)->balance.capacity, 2);
    crowd_pass(&c, 15000000); /* busy, not idle */
    crowd_answer(&c, "p");
    crowd_pass(&c, 9900000);
    assert_true(hg_quarantine_is_up(quarantine_of(&c)));
    crowd_pass(&c, 200000);
    assert_null(quarantine_of(&c)->link);
    assert_int_equal(held(&c), 1);
    assert_int_equal(crowd_domain(&c, 0)->balance.capacity, 3);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_QUARANTINE), 0);
    assert_int_equal(fake_live(&c.solo.fake), 1);
    /* And made again. */
    ask_apart(&c, 0, &pass, "q");
    crowd_settle(&c);
    crowd_answer(&c, "q");
    assert_int_equal(pass.done, 1);
    crowd_fini(&c);
}

/* A single connection is everybody's: there is no quarantine. */
static void t_not_with_one_connection(void **state)
{
    (void)state;
    struct crowd c;
    struct note pass, other;
    start(&c, 1, 16, 1);
    assert_int_equal(ask_apart(&c, 0, &pass, "p"), HG_SUBMIT_TAKEN);
    assert_int_equal(crowd_ask(&c, 0, &other, "other"), HG_SUBMIT_TAKEN);
    crowd_settle(&c);
    assert_int_equal(conn_of(&c, "p"), conn_of(&c, "other"));
    crowd_answer(&c, "p");
    crowd_answer(&c, "other");
    assert_int_equal(pass.done + other.done, 2);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_QUARANTINED), 0);
    crowd_fini(&c);
}

/* All connections that may be are there, and idle: one is closed for it. */
static void t_takes_an_idle_one_s_unit(void **state)
{
    (void)state;
    struct crowd c;
    struct note pass, other;
    start(&c, 2, 16, 2);
    assert_int_equal(held(&c), 2);
    ask_apart(&c, 0, &pass, "p");
    crowd_pass(&c, 30000);
    assert_true(is_asked(&c, "p"));
    assert_int_equal(held(&c), 2);
    assert_int_equal(fake_live(&c.solo.fake), 2);
    /* Both users share what is left. */
    for (uint32_t u = 0; u < 2; u++) {
        crowd_ask(&c, u, &other, "other");
        crowd_pass(&c, 100000);
        crowd_answer(&c, "other");
        assert_int_equal(other.done, 1);
    }
    assert_int_equal(held(&c), 2);
    assert_int_equal(pass.done, 0);
    crowd_answer(&c, "p");
    assert_int_equal(pass.done, 1);
    crowd_fini(&c);
}

/* All are busy: the one with the fewest requests takes no new ones, and ends when it is empty. */
static void t_takes_a_busy_one_s_unit(void **state)
{
    (void)state;
    struct crowd c;
    struct note many[4], few, pass, next;
    start(&c, 1, 4, 2);
    for (int i = 0; i < 4; i++)
        crowd_ask(&c, 0, &many[i], (char[3]){'m', (char)('0' + i), 0});
    crowd_ask(&c, 0, &few, "few");
    crowd_settle(&c);
    assert_true(conn_of(&c, "few") != conn_of(&c, "m0"));
    ask_apart(&c, 0, &pass, "p");
    crowd_pass(&c, 30000);
    assert_false(is_asked(&c, "p"));
    int few_conn = conn_of(&c, "few");
    crowd_ask(&c, 0, &next, "next");
    crowd_pass(&c, 30000);
    assert_false(is_asked(&c, "next")); /* the other one is full */
    crowd_answer(&c, "few");
    crowd_settle(&c);
    assert_int_equal(few.done, 1);
    assert_true(c.solo.fake.conns[few_conn].ended);
    assert_true(is_asked(&c, "p"));
    assert_int_equal(held(&c), 2);
    for (int i = 0; i < 4; i++)
        crowd_answer(&c, many[i].key);
    crowd_settle(&c);
    crowd_answer(&c, "next");
    crowd_answer(&c, "p");
    assert_int_equal(pass.done + next.done, 2);
    crowd_fini(&c);
}

/* The calls of one client for one key keep their order: behind one in quarantine the next waits,
   and one that would go there waits for nothing but its own. */
static void t_order(void **state)
{
    (void)state;
    struct crowd c;
    struct note a, b, d, e;
    start(&c, 1, 16, 4);
    ask_apart(&c, 0, &a, "k");
    note_init(&b, c.solo.stores[0], HG_OP_SET, "k");
    b.call.identity = c.ids[0];
    b.call.after = &a.call;
    assert_int_equal(note_submit(&b, &c.solo.rigs[0]), HG_SUBMIT_WAIT); /* `a` waits itself */
    crowd_settle(&c);
    int conn = conn_of(&c, "k");
    crowd_pass(&c, 50000);
    assert_int_equal(b.rooms, 0);
    note_init(&d, c.solo.stores[0], HG_OP_GET, "k");
    d.call.identity = c.ids[0];
    d.call.after = &b.call;
    assert_int_equal(note_submit(&d, &c.solo.rigs[0]), HG_SUBMIT_WAIT);
    crowd_pass(&c, 50000);
    assert_int_equal(c.solo.fake.count, 4); /* two logins, the first, and `a` */
    b.call.after = NULL;                    /* as its client will see it when `a` is answered */
    fake_obey(&c.solo.fake, fake_find(&c.solo.fake, "k"));
    crowd_settle(&c);
    assert_int_equal(a.done, 1);
    crowd_settle(&c);
    assert_true(conn_of(&c, "k") != conn);
    crowd_settle(&c);
    /* The server has the set and then the get, on one connection. */
    assert_int_equal(c.solo.fake.count, 6);
    assert_int_equal(c.solo.fake.requests[4].opcode, 0x01);
    assert_int_equal(c.solo.fake.requests[5].opcode, 0x00);
    assert_int_equal(c.solo.fake.requests[4].conn, c.solo.fake.requests[5].conn);
    /* A pass that comes behind goes behind, on that connection. */
    note_init(&e, c.solo.stores[0], HG_OP_GET, "k");
    e.call.identity = c.ids[0];
    e.call.quarantine = true;
    e.call.after = &d.call;
    assert_int_equal(note_submit(&e, &c.solo.rigs[0]), HG_SUBMIT_TAKEN);
    crowd_settle(&c);
    assert_int_equal(c.solo.fake.requests[6].conn, c.solo.fake.requests[5].conn);
    for (size_t i = 4; i < 7; i++)
        fake_obey(&c.solo.fake, &c.solo.fake.requests[i]);
    crowd_settle(&c);
    assert_int_equal(b.done + d.done + e.done, 3);
    assert_true(b.order < d.order && d.order < e.order);
    crowd_fini(&c);
}

static int strands, stranded;

static void on_strand(void *ctx, uint32_t server, uint64_t ticket, int change)
{
    (void)server;
    (void)ctx;
    assert_int_equal(ticket, READ);
    strands += change > 0;
    stranded += change;
}

/* The client has gone, or the request was evicted: the slot stays taken until the reply came, so
   the next one does not start before. Who waits is just taken out. */
static void t_cancelled(void **state)
{
    (void)state;
    struct crowd c;
    struct note pass[3], tied;
    start(&c, 1, 16, 4);
    strands = stranded = 0;
    c.solo.stores[0]->on_strand = on_strand;
    for (int i = 0; i < 3; i++)
        ask_apart(&c, 0, &pass[i], (char[3]){'p', (char)('0' + i), 0});
    crowd_settle(&c);
    note_init(&tied, c.solo.stores[0], HG_OP_SET, "p0");
    tied.call.identity = c.ids[0];
    tied.call.after = &pass[0].call;
    assert_int_equal(note_submit(&tied, &c.solo.rigs[0]), HG_SUBMIT_WAIT);
    cancel(&pass[1]);
    assert_int_equal(strands, 0);
    cancel(&pass[0]);
    assert_int_equal(stranded, 1);
    tied.call.after = NULL;
    crowd_pass(&c, 100000);
    assert_int_equal(tied.rooms, 1); /* nothing is before it any more */
    assert_false(is_asked(&c, "p1") || is_asked(&c, "p2"));
    crowd_pass(&c, 1000000);
    assert_false(is_asked(&c, "p2"));
    for (size_t i = 0; i < c.solo.fake.count; i++) {
        struct fake_request *request = &c.solo.fake.requests[i];
        if (!request->answered && strcmp(request->key, "p0") == 0 && request->opcode == 0)
            fake_obey(&c.solo.fake, request);
    }
    crowd_settle(&c);
    assert_int_equal(stranded, 0);
    assert_true(is_asked(&c, "p2"));
    crowd_answer(&c, "p2");
    crowd_answer(&c, "p0");
    assert_int_equal(pass[2].done + tied.done, 2);
    assert_int_equal(pass[0].done + pass[1].done, 0);
    assert_int_equal(strands, 1);
    crowd_fini(&c);
}

/* Waiting is bounded as in any line. */
static void t_waits_no_longer_than_it_may(void **state)
{
    (void)state;
    struct crowd c;
    struct note first, late, soon, full;
    crowd_init(&c, 1, 16);
    c.solo.conf.times.queue_timeout_ms = 300;
    c.solo.conf.pool_queue_max = 2;
    crowd_start(&c, 1, 4);
    ask_apart(&c, 0, &first, "first");
    crowd_settle(&c);
    ask_apart(&c, 0, &late, "late");
    note_init(&soon, c.solo.stores[0], HG_OP_GET, "soon");
    soon.call.identity = c.ids[0];
    soon.call.quarantine = true;
    soon.call.deadline_us = crowd_now_us() + 100000;
    note_submit(&soon, &c.solo.rigs[0]);
    assert_int_equal(ask_apart(&c, 0, &full, "full"), HG_SUBMIT_TAKEN);
    assert_int_equal(full.result.fault, HG_FAULT_QUEUE_FULL);
    crowd_pass(&c, 120000);
    assert_int_equal(soon.done, 1);
    assert_int_equal(soon.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(late.done, 0);
    crowd_pass(&c, 200000);
    assert_int_equal(late.done, 1);
    assert_int_equal(late.result.fault, HG_FAULT_QUEUE_TIMEOUT);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_WAITING), 0);
    assert_int_equal(first.done, 0);
    crowd_answer(&c, "first");
    assert_int_equal(first.done, 1);
    crowd_fini(&c);
}

/* They time out, and the silent connection is closed, again and again: nobody else is to suffer
   for it. */
static void t_says_nothing_of_the_server(void **state)
{
    (void)state;
    struct crowd c;
    struct note pass, other;
    crowd_init(&c, 1, 16);
    c.solo.conf.times.backend_timeout_ms = 100;
    crowd_start(&c, 1, 4);
    for (int i = 0; i < 30; i++) {
        char key[16];
        snprintf(key, sizeof key, "%c%d", 'a' + i % 8, i);
        ask_apart(&c, 0, &pass, key);
        crowd_pass(&c, 130000);
        assert_int_equal(pass.done, 1);
        assert_int_equal(pass.result.fault, HG_FAULT_TIMEOUT);
        crowd_pass(&c, 130000); /* silent for twice as long */
        assert_null(quarantine_of(&c)->link);
        assert_int_equal(solo_breaker(&c.solo), HG_BREAKER_CLOSED);
    }
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_TIMEOUTS), 30);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_DISCONNECTS), 30);
    assert_int_equal(hg_breaker_heeds(&c.solo.shared->servers[0].breaker), false);
    crowd_ask(&c, 0, &other, "other");
    crowd_settle(&c);
    crowd_answer(&c, "other");
    assert_int_equal(other.done, 1);
    crowd_fini(&c);
}

/* One connection for all users, in the order in which they come: it logs in anew, or is made anew
   where the server takes no second login. */
static void served_in_turn(bool one_login)
{
    struct crowd c;
    struct note pass[4];
    start(&c, 2, 16, 4);
    c.solo.fake.one_login = one_login;
    for (int i = 0; i < 4; i++)
        ask_apart(&c, (uint32_t)i % 2, &pass[i], (char[3]){'p', (char)('0' + i), 0});
    for (int i = 0; i < 4; i++) {
        crowd_pass(&c, 30000);
        assert_string_equal(fake_find(&c.solo.fake, pass[i].key)->user, i % 2 == 0 ? "u0" : "u1");
        for (int later = i + 1; later < 4; later++)
            assert_false(is_asked(&c, pass[later].key));
        assert_int_equal(fake_live(&c.solo.fake), 3);
        assert_int_equal(held(&c), 3);
        crowd_answer(&c, pass[i].key);
        assert_int_equal(pass[i].done, 1);
        assert_int_equal(pass[i].result.fault, HG_FAULT_NONE);
    }
    if (!one_login)
        assert_int_equal(c.solo.fake.accepted, 3);
    crowd_fini(&c);
}

static void t_users_in_turn(void **state)
{
    (void)state;
    served_in_turn(false);
    served_in_turn(true);
}

/* The server does not let that user in: he is told so, the other one is served. */
static void t_a_refused_login(void **state)
{
    (void)state;
    struct crowd c;
    struct note no, yes;
    start(&c, 2, 16, 4);
    strcpy(c.solo.fake.refused, "u0");
    ask_apart(&c, 0, &no, "no");
    ask_apart(&c, 1, &yes, "yes");
    crowd_pass(&c, 50000);
    assert_int_equal(no.done, 1);
    assert_int_equal(no.result.fault, HG_FAULT_DENIED);
    crowd_answer(&c, "yes");
    assert_int_equal(yes.done, 1);
    assert_int_equal(solo_breaker(&c.solo), HG_BREAKER_CLOSED);
    crowd_fini(&c);
}

/* The server goes away: calls in quarantine are told so as all are. */
static void t_the_server_goes(void **state)
{
    (void)state;
    struct crowd c;
    struct note sent, waits, later;
    start(&c, 1, 16, 4);
    ask_apart(&c, 0, &sent, "sent");
    crowd_settle(&c);
    ask_apart(&c, 0, &waits, "waits");
    fake_stop(&c.solo.fake);
    crowd_pass(&c, 100000);
    assert_int_equal(sent.done, 1);
    assert_int_equal(sent.result.fault, HG_FAULT_LOST);
    assert_int_equal(waits.done, 1);
    assert_int_equal(waits.result.fault, HG_FAULT_DOWN);
    assert_int_equal(ask_apart(&c, 0, &later, "later"), HG_SUBMIT_TAKEN);
    assert_int_equal(later.result.fault, HG_FAULT_DOWN);
    assert_int_equal(held(&c), 0);
    fake_start(&c.solo.fake);
    c.solo.fake.automatic = true;
    crowd_pass(&c, 500000);
    ask_apart(&c, 0, &later, "later");
    crowd_pass(&c, 50000);
    assert_int_equal(later.done, 1);
    assert_int_equal(later.result.fault, HG_FAULT_NONE);
    crowd_fini(&c);
}

/* A drained store answers what it has, and lets the connection go. */
static void t_drained(void **state)
{
    (void)state;
    struct crowd c;
    struct note sent, waits, behind;
    start(&c, 1, 16, 4);
    ask_apart(&c, 0, &sent, "sent");
    crowd_settle(&c);
    ask_apart(&c, 0, &waits, "waits");
    c.solo.stores[0]->ops->drain(c.solo.stores[0]);
    assert_false(c.solo.stores[0]->ops->drained(c.solo.stores[0]));
    crowd_answer(&c, "sent");
    crowd_pass(&c, 30000);
    crowd_answer(&c, "waits");
    assert_int_equal(waits.done, 1);
    crowd_pass(&c, 30000);
    assert_true(c.solo.stores[0]->ops->drained(c.solo.stores[0]));
    assert_null(quarantine_of(&c)->link);
    crowd_fini(&c);
    /* While it is still coming: what waits goes the ordinary way. */
    start(&c, 1, 16, 4);
    c.solo.fake.lets_in = false;
    ask_apart(&c, 0, &waits, "waits");
    crowd_settle(&c);
    c.solo.stores[0]->ops->drain(c.solo.stores[0]);
    ask_apart(&c, 0, &behind, "behind");
    cancel(&behind);
    c.solo.fake.automatic = true;
    fake_obey(&c.solo.fake, &c.solo.fake.requests[c.solo.fake.count - 1]);
    crowd_pass(&c, 100000);
    assert_int_equal(waits.done, 1);
    assert_true(c.solo.stores[0]->ops->drained(c.solo.stores[0]));
    crowd_fini(&c);
}

/* The store is freed with calls there: each is answered once. */
static void t_freed(void **state)
{
    (void)state;
    struct crowd c;
    struct note sent, waits, tied;
    start(&c, 1, 16, 4);
    ask_apart(&c, 0, &sent, "sent");
    crowd_settle(&c);
    ask_apart(&c, 0, &waits, "waits");
    note_init(&tied, c.solo.stores[0], HG_OP_GET, "sent");
    tied.call.identity = c.ids[0];
    tied.call.after = &sent.call;
    note_submit(&tied, &c.solo.rigs[0]);
    tied.call.after = NULL;
    c.solo.stores[0]->ops->free(c.solo.stores[0]);
    c.solo.stores[0] = NULL;
    assert_int_equal(sent.done, 1);
    assert_int_equal(sent.result.fault, HG_FAULT_LOST);
    assert_int_equal(waits.done, 1);
    assert_int_equal(tied.done, 1);
    crowd_fini(&c);
}

/* A worker that is not the server's owner: the owner's store has the quarantine. */
static void t_relayed(void **state)
{
    (void)state;
    struct crowd c;
    struct note warm, pass, next, other;
    crowd_init(&c, 2, 16);
    crowd_start(&c, 1, 3);
    crowd_ask_of(&c, 0, 0, &warm, "warm");
    crowd_settle(&c);
    crowd_answer(&c, "warm");
    note_init(&pass, c.solo.stores[1], HG_OP_GET, "p");
    pass.call.identity = c.ids[0];
    pass.call.quarantine = true;
    assert_int_equal(note_submit(&pass, &c.solo.rigs[1]), HG_SUBMIT_TAKEN);
    crowd_settle(&c);
    note_init(&next, c.solo.stores[1], HG_OP_GET, "p");
    next.call.identity = c.ids[0];
    next.call.after = &pass.call;
    assert_int_equal(note_submit(&next, &c.solo.rigs[1]), HG_SUBMIT_TAKEN);
    crowd_ask_of(&c, 1, 0, &other, "other");
    crowd_pass(&c, 30000);
    assert_int_equal(solo_stat(&c.solo, HG_UPSTREAM_QUARANTINED), 1);
    assert_true(conn_of(&c, "p") != conn_of(&c, "other"));
    size_t before = c.solo.fake.count;
    crowd_pass(&c, 100000);
    assert_int_equal(c.solo.fake.count, before); /* the one behind is not sent */
    crowd_answer(&c, "other");
    crowd_answer(&c, "p");
    crowd_settle(&c);
    crowd_answer(&c, "p");
    crowd_settle(&c);
    assert_int_equal(pass.done + next.done + other.done, 3);
    assert_true(pass.order < next.order);
    crowd_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_goes_apart),
        cmocka_unit_test(t_is_closed_when_idle),
        cmocka_unit_test(t_not_with_one_connection),
        cmocka_unit_test(t_takes_an_idle_one_s_unit),
        cmocka_unit_test(t_takes_a_busy_one_s_unit),
        cmocka_unit_test(t_order),
        cmocka_unit_test(t_cancelled),
        cmocka_unit_test(t_waits_no_longer_than_it_may),
        cmocka_unit_test(t_says_nothing_of_the_server),
        cmocka_unit_test(t_users_in_turn),
        cmocka_unit_test(t_a_refused_login),
        cmocka_unit_test(t_the_server_goes),
        cmocka_unit_test(t_drained),
        cmocka_unit_test(t_freed),
        cmocka_unit_test(t_relayed),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("quarantine", tests, NULL, NULL);
}
