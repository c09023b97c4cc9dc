// t_domain_share - many identities on few connections: who gets how many, and how long one waits
// SPDX-License-Identifier: BSD-3-Clause
#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/opcode.h"

#define CLIENTS_MAX 16
#define HOLD_US     10000

/* A client that asks again as soon as it is answered. */
struct client {
    struct note note;
    uint32_t user;
    bool is_on;
    uint64_t asked_us;
};

/* How a server answers: one request of each connection after the other, each in its time. */
struct load {
    struct crowd *crowd;
    struct client clients[CROWD_MAX * CLIENTS_MAX];
    uint32_t count;
    uint64_t service_us[CROWD_MAX]; /* a request of the user takes so long */
    uint64_t free_us[FAKE_CONNS];   /* the connection has its last answer */
    uint64_t bound_us[FAKE_CONNS];  /* when the last login came */
    size_t seen;
    struct {
        uint64_t waits, waited_us, longest_us;
    } users[CROWD_MAX];
    uint64_t shortest_hold_us;
};

static void load_init(struct load *load, struct crowd *crowd)
{
    memset(load, 0, sizeof *load);
    load->crowd = crowd;
    load->shortest_hold_us = UINT64_MAX;
}

static void load_add(struct load *load, uint32_t user, uint32_t clients, uint64_t service_us)
{
    for (uint32_t i = 0; i < clients; i++)
        load->clients[load->count++] = (struct client){.user = user, .is_on = true};
    load->service_us[user] = service_us;
}

static uint32_t user_of(const char *name)
{
    return (uint32_t)strtoul(name + 1, NULL, 10);
}

static void count_wait(struct load *load, const struct client *client)
{
    uint64_t waited_us = client->note.call.sent_us - client->asked_us;
    load->users[client->user].waits++;
    load->users[client->user].waited_us += waited_us;
    if (waited_us > load->users[client->user].longest_us)
        load->users[client->user].longest_us = waited_us;
}

static void ask_all(struct load *load)
{
    for (uint32_t i = 0; i < load->count; i++) {
        struct client *client = &load->clients[i];
        char key[16];
        if (client->note.call.on_done != NULL && client->note.done == 0)
            continue;
        if (client->note.call.on_done != NULL) {
            assert_int_equal(client->note.result.fault, HG_FAULT_NONE);
            count_wait(load, client);
        }
        client->note.call.on_done = NULL;
        if (!client->is_on)
            continue;
        snprintf(key, sizeof key, "%c%u", 'a' + (int)client->user, i);
        client->asked_us = crowd_now_us();
        (void)crowd_ask(load->crowd, client->user, &client->note, key);
    }
}

/* Takes note of what has come: logins, and requests, which are answered later. */
static void look(struct load *load)
{
    struct fake *fake = &load->crowd->solo.fake;
    uint64_t now_us = crowd_now_us();
    for (; load->seen < fake->count; load->seen++) {
        struct fake_request *r = &fake->requests[load->seen];
        uint64_t *free_us = &load->free_us[r->conn];
        if (r->opcode == HG_OPCODE_SASL_AUTH) {
            if (fake->conns[r->conn].count > 1 &&
                now_us - load->bound_us[r->conn] < load->shortest_hold_us)
                load->shortest_hold_us = now_us - load->bound_us[r->conn];
            load->bound_us[r->conn] = now_us;
            continue;
        }
        *free_us = (*free_us > now_us ? *free_us : now_us) + load->service_us[user_of(r->user)];
        r->cas = *free_us; /* when it is to be answered: nobody asks for a CAS here */
    }
}

static void answer_due(struct load *load)
{
    struct fake *fake = &load->crowd->solo.fake;
    size_t kept = 0;
    for (size_t i = 0; i < load->seen; i++) {
        struct fake_request *r = &fake->requests[i];
        if (!r->answered && r->cas <= crowd_now_us())
            fake_obey(fake, r);
        if (!r->answered)
            fake->requests[kept++] = *r;
    }
    fake->count = load->seen = kept;
}

static void load_run(struct load *load, uint64_t us)
{
    uint64_t end_us = crowd_now_us() + us;
    while (crowd_now_us() < end_us) {
        ask_all(load);
        crowd_settle(load->crowd);
        look(load);
        crowd_pass(load->crowd, 1000);
        look(load);
        answer_due(load);
        crowd_settle(load->crowd);
    }
}

static void load_forget_waits(struct load *load)
{
    memset(load->users, 0, sizeof load->users);
}

static void load_end(struct load *load)
{
    for (uint32_t i = 0; i < load->count; i++)
        load->clients[i].is_on = false;
    for (int i = 0; i < 400; i++)
        load_run(load, 1000);
}

static uint32_t size_of(struct load *load, uint32_t user)
{
    return hg_balance_size(&crowd_pool(load->crowd, 0, user)->block);
}

/* Twelve users, six connections, equal load: nobody waits longer than the ring allows, all wait the
   same, and no connection moves before its hold is over. */
static void ring(uint32_t depth)
{
    struct crowd c;
    static struct load load;
    crowd_init(&c, 1, depth);
    crowd_start(&c, 12, 6);
    load_init(&load, &c);
    for (uint32_t user = 0; user < 12; user++)
        load_add(&load, user, 4, 2000);
    load_run(&load, 300000);
    load_forget_waits(&load);
    load_run(&load, 3000000);
    const struct hg_balance *balance = &crowd_domain(&c, 0)->balance;
    assert_true(balance->ring);
    /* Two users for each connection: one other's turn, and what is on the way when it ends. */
    uint64_t turn_us = balance->slice_us + balance->reconnect_us + 10000 + 4 * 2000;
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t user = 0; user < 12; user++) {
        uint64_t mean_us = load.users[user].waited_us / load.users[user].waits;
        assert_true(load.users[user].waits > 100);
        assert_true(load.users[user].longest_us <= 2 * turn_us);
        least = mean_us < least ? mean_us : least;
        most = mean_us > most ? mean_us : most;
    }
    assert_true(most * 4 <= least * 5);
    assert_true(load.shortest_hold_us >= HOLD_US);
    assert_int_equal(c.solo.fake.accepted, 6);
    load_end(&load);
    crowd_fini(&c);
}

static void t_ring(void **state)
{
    (void)state;
    ring(1);
    ring(8);
}

/* Who has three times the work gets three times the connections. */
static void t_quotas_follow_demand(void **state)
{
    (void)state;
    struct crowd c;
    static struct load load;
    crowd_init(&c, 1, 1);
    crowd_start(&c, 2, 8);
    load_init(&load, &c);
    load_add(&load, 0, 15, 5000);
    load_add(&load, 1, 5, 5000);
    load_run(&load, 1000000);
    assert_true(crowd_domain(&c, 0)->balance.constrained);
    assert_in_range(size_of(&load, 0), 5, 7);
    assert_in_range(size_of(&load, 1), 1, 3);
    assert_int_equal(size_of(&load, 0) + size_of(&load, 1), 8);
    load_forget_waits(&load);
    load_run(&load, 1000000);
    uint64_t first_us = load.users[0].waited_us / load.users[0].waits;
    uint64_t second_us = load.users[1].waited_us / load.users[1].waits;
    assert_true(first_us <= 2 * second_us && second_us <= 2 * first_us);
    assert_true(load.shortest_hold_us >= HOLD_US);
    crowd_pass(&c, 100000);
    assert_in_range(crowd_stat(&c, 0, HG_POOL_QUOTA), 5, 7);
    assert_true(crowd_stat(&c, 0, HG_POOL_DEMAND) > 2 * crowd_stat(&c, 1, HG_POOL_DEMAND));
    load_end(&load);
    crowd_fini(&c);
}

/* How long requests stay behind each other on a connection is no work of the server's: who sends
   eight at a time has no more than who sends one. */
static void t_pipelining_pulls_no_quota(void **state)
{
    (void)state;
    struct crowd c;
    static struct load load;
    crowd_init(&c, 1, 8);
    crowd_start(&c, 2, 2);
    load_init(&load, &c);
    load_add(&load, 0, 8, 1000);
    load_add(&load, 1, 1, 1000);
    load_run(&load, 1000000);
    assert_int_equal(size_of(&load, 0), 1);
    assert_int_equal(size_of(&load, 1), 1);
    double service_us = crowd_pool(&c, 0, 0)->block.service_us;
    assert_true(service_us > 500 && service_us < 2500); /* not the 8 ms that each one stays */
    load_end(&load);
    crowd_fini(&c);
}

/* A user whose requests take ten times as long keeps what he has; the quick ones do not wait for
   him. */
static void t_a_slow_user_leaves_the_others_theirs(void **state)
{
    (void)state;
    struct crowd c;
    static struct load load;
    crowd_init(&c, 1, 1);
    crowd_start(&c, 4, 4);
    load_init(&load, &c);
    for (uint32_t user = 0; user < 4; user++)
        load_add(&load, user, 2, 3000);
    load_run(&load, 500000);
    load.service_us[0] = 30000;
    load_run(&load, 500000);
    load_forget_waits(&load);
    load_run(&load, 1000000);
    for (uint32_t user = 0; user < 4; user++)
        assert_int_equal(size_of(&load, user), 1);
    for (uint32_t user = 1; user < 4; user++) {
        uint64_t mean_us = load.users[user].waited_us / load.users[user].waits;
        assert_true(mean_us < 10000);
    }
    load_end(&load);
    crowd_fini(&c);
}

/* A quiet user's first request beside eleven busy ones. */
static void t_a_quiet_user_is_served_within_the_ring(void **state)
{
    (void)state;
    struct crowd c;
    static struct load load;
    crowd_init(&c, 1, 8);
    crowd_start(&c, 12, 6);
    load_init(&load, &c);
    for (uint32_t user = 0; user < 11; user++)
        load_add(&load, user, 4, 2000);
    load_run(&load, 500000);
    load_add(&load, 11, 1, 2000);
    load_run(&load, 300000);
    assert_true(load.users[11].waits > 0);
    const struct hg_balance *balance = &crowd_domain(&c, 0)->balance;
    assert_true(load.users[11].longest_us <=
                2 * (balance->slice_us + balance->reconnect_us + 10000 + 4 * 2000));
    load_end(&load);
    crowd_fini(&c);
}

/* Calls of a worker that are not answered yet are on so many connections. */
static void ask_many(struct crowd *c, uint32_t worker, struct note *notes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char key[2] = {(char)('a' + i), 0};
        crowd_ask_of(c, worker, i % 2, &notes[i], key);
    }
}

static void answer_all(struct crowd *c, struct note *notes, uint32_t count)
{
    for (bool left = true; left;) {
        left = false;
        for (size_t i = 0; i < c->solo.fake.count; i++) {
            if (!c->solo.fake.requests[i].answered)
                fake_obey(&c->solo.fake, &c->solo.fake.requests[i]);
        }
        crowd_pass(c, 1000);
        for (uint32_t i = 0; i < count; i++)
            left |= notes[i].done == 0;
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
}

/* Lets time pass and looks at the connections each millisecond. */
static void pass_watching(struct crowd *c, int most, uint64_t us)
{
    for (uint64_t passed_us = 0; passed_us < us; passed_us += 1000) {
        crowd_pass(c, 1000);
        assert_true(fake_live(&c->solo.fake) <= most);
    }
}

/* Two workers, five connections: who waits gets what the other does not use, and what it only holds
   idle; there is never one too many. */
static void t_workers_lend_each_other(void **state)
{
    (void)state;
    struct crowd c;
    struct note notes[8];
    crowd_init(&c, 2, 1);
    crowd_start(&c, 2, 5);
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t worker = round % 2;
        ask_many(&c, worker, notes, 8);
        pass_watching(&c, 5, 600000);
        assert_int_equal(crowd_domain(&c, worker)->balance.total, 4); /* the other keeps one */
        assert_true(crowd_domain(&c, 1 - worker)->balance.total <= 1);
        answer_all(&c, notes, 8);
    }
    crowd_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_ring),
        cmocka_unit_test(t_quotas_follow_demand),
        cmocka_unit_test(t_pipelining_pulls_no_quota),
        cmocka_unit_test(t_a_slow_user_leaves_the_others_theirs),
        cmocka_unit_test(t_a_quiet_user_is_served_within_the_ring),
        cmocka_unit_test(t_workers_lend_each_other),
    };
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("domain_share", tests, NULL, NULL);
}
