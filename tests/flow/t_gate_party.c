// t_gate_party - turns by users or addresses of a tenant
// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evictscene.h"

#define HOT  "29001111"
#define MANY 3

/* The session that has just come. */
static struct hg_session *newest(struct stage *stage)
{
    return HG_CONTAINER_OF(stage->workers[0].sessions.prev, struct hg_session, node);
}

static void be_user(struct stage *stage, struct hg_session *session, const char *name)
{
    const struct stage_user *user = NULL;
    for (unsigned i = 0; i < stage->user_count; i++)
        if (strcmp(stage->users[i].name, name) == 0)
            user = &stage->users[i];
    if (user == NULL)
        user = stage_user(stage, name, "default", HG_PRIVILEGES_ALL);
    free(session->user_name);
    session->user_name = strdup(name);
    session->user = user;
    session->party_by = HG_FAIR_BY_TENANT;
}

static void be_at(struct hg_session *session, const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(1)};
    assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
    memcpy(&session->peer.sa, &in, sizeof in);
    session->peer.len = sizeof in;
}

/* ann at 10.0.0.1 has all connections but one, which is bob's, at 10.0.0.2. */
struct house {
    struct scene s;
    struct client ann[MANY], bob;
    struct hg_bucket *bucket;
};

static void set_fair_by(struct house *h, enum hg_fair_by fair_by)
{
    atomic_store(&h->bucket->fair_by, (int)fair_by);
    stage_publish(&h->s.stage);
    stage_run(&h->s.stage);
}

static void house_open(struct house *h, enum hg_fair_by fair_by)
{
    memset(h, 0, sizeof *h);
    gate_init(&h->s);
    h->bucket = stage_find(&h->s.stage, "default");
    atomic_store(&h->bucket->fair_by, (int)fair_by);
    gate_open(&h->s);
    be_user(&h->s.stage, newest(&h->s.stage), "ann");
    be_at(newest(&h->s.stage), "10.0.0.1");
    for (unsigned i = 0; i < MANY; i++) {
        gate_connect(&h->s.stage, 0, &h->ann[i]);
        be_user(&h->s.stage, newest(&h->s.stage), "ann");
        be_at(newest(&h->s.stage), "10.0.0.1");
    }
    gate_connect(&h->s.stage, 0, &h->bob);
    be_user(&h->s.stage, newest(&h->s.stage), "bob");
    be_at(newest(&h->s.stage), "10.0.0.2");
    gate_resize(&h->s.stage, HG_GATE_READ, 1);
}

static void house_close(struct house *h)
{
    for (unsigned i = 0; i < MANY; i++)
        client_close(&h->ann[i]);
    client_close(&h->bob);
    gate_close(&h->s);
}

/* ann has the ticket and waits for more, and bob waits behind. */
static void fill_line(struct house *h)
{
    client_ask(&h->s.client, HG_OPCODE_GET, "first", 1);
    stage_run(&h->s.stage);
    for (uint32_t i = 0; i < MANY; i++) {
        client_ask(&h->ann[i], HG_OPCODE_GET, "ann", 10 + i);
        stage_run(&h->s.stage);
    }
    client_ask(&h->bob, HG_OPCODE_GET, "bob", 20);
    stage_run(&h->s.stage);
    assert_int_equal(gate_waiting(&h->s.stage, HG_GATE_READ), MANY + 1);
}

/* Everybody is answered, one after the other. */
static void empty_line(struct house *h)
{
    for (unsigned i = 0; i < MANY + 2; i++) {
        stage_advance(1000);
        fakestore_obey_all(h->s.store);
        stage_run(&h->s.stage);
    }
    for (uint32_t i = 0; i < MANY; i++)
        stage_expect(&h->s.stage, &h->ann[i], HG_OPCODE_GET, 0, 10 + i);
    stage_expect(&h->s.stage, &h->bob, HG_OPCODE_GET, 0, 20);
}

static void test_whose_turn_it_is(void **state)
{
    static const struct {
        enum hg_fair_by fair_by;
        const char *next;
    } rows[] = {{HG_FAIR_BY_TENANT, "ann"}, {HG_FAIR_BY_USER, "bob"}, {HG_FAIR_BY_ADDRESS, "bob"}};
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(rows); i++) {
        struct house h;
        house_open(&h, rows[i].fair_by);
        fill_line(&h);
        stage_advance(1000);
        fakestore_obey(fakestore_find(h.s.store, "first"));
        scene_expect(&h.s, HG_OPCODE_GET, 0, 1);
        assert_int_equal(fakestore_pending(h.s.store), 1);
        assert_non_null(fakestore_find(h.s.store, rows[i].next));
        empty_line(&h);
        bool parties = rows[i].fair_by != HG_FAIR_BY_TENANT;
        assert_int_equal(hg_counter_get(&h.bucket->lanes[0].fair_parties), parties ? 2 : 0);
        house_close(&h);
    }
}

/* What waits or has a ticket when it changes ends as it began. */
static void test_changed_meanwhile(void **state)
{
    static const enum hg_fair_by ways[][3] = {
        {HG_FAIR_BY_TENANT, HG_FAIR_BY_USER, HG_FAIR_BY_TENANT},
        {HG_FAIR_BY_USER, HG_FAIR_BY_ADDRESS, HG_FAIR_BY_USER},
        {HG_FAIR_BY_ADDRESS, HG_FAIR_BY_TENANT, HG_FAIR_BY_USER},
    };
    (void)state;
    for (size_t i = 0; i < HG_COUNT_OF(ways); i++) {
        struct house h;
        house_open(&h, ways[i][0]);
        fill_line(&h);
        set_fair_by(&h, ways[i][1]);
        assert_int_equal(h.bucket->lanes[0].fair_by, ways[i][1]);
        stage_advance(1000);
        fakestore_obey(fakestore_find(h.s.store, "first"));
        scene_expect(&h.s, HG_OPCODE_GET, 0, 1);
        client_ask(&h.s.client, HG_OPCODE_GET, "first", 2);
        stage_run(&h.s.stage);
        set_fair_by(&h, ways[i][2]);
        empty_line(&h);
        scene_expect(&h.s, HG_OPCODE_GET, 0, 2);
        fill_line(&h);
        empty_line(&h);
        scene_expect(&h.s, HG_OPCODE_GET, 0, 1);
        house_close(&h);
    }
}

/* However many users there are, there are no more parties than that. */
static void test_bounded(void **state)
{
    (void)state;
    struct house h;
    house_open(&h, HG_FAIR_BY_USER);
    struct hg_session *session = newest(&h.s.stage);
    for (uint32_t i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "user-%u", i);
        free(session->user_name);
        session->user_name = strdup(name);
        session->party_by = HG_FAIR_BY_TENANT;
        client_ask(&h.bob, HG_OPCODE_GET, "key", i);
        stage_run(&h.s.stage);
        fakestore_obey_all(h.s.store);
        stage_expect(&h.s.stage, &h.bob, HG_OPCODE_GET, 0, i);
    }
    assert_int_equal(hg_counter_get(&h.bucket->lanes[0].fair_parties), HG_GATE_PARTIES);
    house_close(&h);
}

/* A client that logs in as another user is of another party from then on. */
static void test_another_user(void **state)
{
    (void)state;
    struct house h;
    house_open(&h, HG_FAIR_BY_USER);
    struct hg_session *session = newest(&h.s.stage);
    client_ask(&h.bob, HG_OPCODE_GET, "bob", 1);
    stage_run(&h.s.stage);
    struct hg_gate_cell *own = h.bucket->lanes[0].cells[0];
    const struct hg_gate_cell *before = own->parties[session->party];
    assert_int_equal(before->seats[HG_TICKET_READ].queue.out, 1);
    fakestore_obey_all(h.s.store);
    stage_expect(&h.s.stage, &h.bob, HG_OPCODE_GET, 0, 1);
    assert_int_equal(before->seats[HG_TICKET_READ].queue.out, 0);
    hg_session_log_in(session, stage_user(&h.s.stage, "carl", "default", HG_PRIVILEGES_ALL),
                      "carl");
    hg_session_select(session, h.bucket);
    client_ask(&h.bob, HG_OPCODE_GET, "bob", 2);
    stage_run(&h.s.stage);
    assert_int_equal(before->seats[HG_TICKET_READ].queue.out, 0);
    assert_int_equal(own->parties[session->party]->seats[HG_TICKET_READ].queue.out, 1);
    fakestore_obey_all(h.s.store);
    stage_expect(&h.s.stage, &h.bob, HG_OPCODE_GET, 0, 2);
    house_close(&h);
}

/* Eviction finds those that wait, whatever party they are of. */
static void test_evicted_while_waiting(void **state)
{
    (void)state;
    struct evictscene e;
    struct client other;
    evict_init(&e);
    atomic_store(&e.bucket->fair_by, HG_FAIR_BY_USER);
    gate_open(&e.s);
    gate_connect(&e.s.stage, 0, &other);
    be_user(&e.s.stage, newest(&e.s.stage), "bob");
    gate_resize(&e.s.stage, HG_GATE_READ, 1);
    client_ask(&e.s.client, HG_OPCODE_GET, HOT, 1);
    stage_run(&e.s.stage);
    client_ask(&other, HG_OPCODE_GET, HOT, 2);
    stage_run(&e.s.stage);
    evict_ask(&e);
    evict_check_row(evict_row(&e, e.bucket, HG_HOT_QUERY, NULL, HOT), 1, 1, 0, 1);
    evict_reads(&e, HOT, 1, 1, 2);
    stage_expect(&e.s.stage, &other, HG_OPCODE_GET, HG_STATUS_BIND_EVICTION, 2);
    fakestore_obey_all(e.s.store);
    scene_expect(&e.s, HG_OPCODE_GET, 0, 1);
    client_close(&other);
    evict_close(&e);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_turn_it_is),
        cmocka_unit_test(test_changed_meanwhile),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_another_user),
        cmocka_unit_test(test_evicted_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
