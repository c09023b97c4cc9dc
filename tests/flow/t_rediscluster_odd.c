// t_rediscluster_odd - the redis-cluster store and servers that contradict themselves, lie, or go
// SPDX-License-Identifier: BSD-3-Clause
#include "clusterscene.h"
#include "fakenode.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define NODES 2

/* Two nodes of which the first owns all slots, unless the test says otherwise; one worker. */
struct odd {
    struct clusterscene s;
    struct clusterd none; /* no real cluster */
    struct fakenode nodes[NODES];
    char slots[NODES][128]; /* replies of CLUSTER SLOTS by which that node owns all */
    char moved[NODES][64];  /* redirects of slot 12182 ("foo") to that node */
    char ask[NODES][64];
};

static void odd_turn(struct odd *odd)
{
    bench_turn(&odd->s.bench);
    for (int i = 0; i < NODES; i++)
        fakenode_pump(&odd->nodes[i]);
}

#define ODD_UNTIL(odd, condition)                                                                  \
    do {                                                                                           \
        PATIENCE_UNTIL(condition, odd_turn(odd));                                                  \
    } while (0)

static void odd_for(struct odd *odd, uint64_t us)
{
    uint64_t end_us = hg_now_us() + us;
    while (hg_now_us() < end_us)
        odd_turn(odd);
}

static void odd_init(struct odd *odd)
{
    memset(odd, 0, sizeof *odd);
    clusterscene_init(&odd->s, &odd->none);
    odd->s.workers = 1;
    bench_keep_time(&odd->s.rigs[0]);
    odd->s.conf.ring.count = NODES;
    odd->s.conf.times.queue_timeout_ms = 300 * (uint32_t)bench_scale();
    for (int i = 0; i < NODES; i++) {
        struct fakenode *node = &odd->nodes[i];
        fakenode_init(node);
        odd->s.seeds[i] = (struct hg_ring_server){node->address, 1};
        snprintf(odd->slots[i], sizeof odd->slots[i],
                 "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n", node->port);
        char address[sizeof node->address];
        memcpy(address, node->address, sizeof address);
        snprintf(odd->moved[i], sizeof odd->moved[i], "-MOVED 12182 %s\r\n", address);
        snprintf(odd->ask[i], sizeof odd->ask[i], "-ASK 12182 %s\r\n", address);
    }
    for (int i = 0; i < NODES; i++)
        odd->nodes[i].slots = odd->slots[0];
}

static void odd_start(struct odd *odd)
{
    clusterscene_start(&odd->s);
    ODD_UNTIL(odd, hg_topology_version(&odd->s.shared->topology) > 0);
}

static void odd_fini(struct odd *odd)
{
    clusterscene_fini(&odd->s);
    for (int i = 0; i < NODES; i++)
        fakenode_close(&odd->nodes[i]);
}

static void begin(struct odd *odd, struct note *note, enum hg_op op, const char *key)
{
    odd_turn(odd);
    note_init(note, odd->s.stores[0], op, key);
    (void)note_submit(note, &odd->s.rigs[0]);
}

static void finish(struct odd *odd, struct note *note)
{
    ODD_UNTIL(odd, note->done > 0);
    assert_int_equal(note->done, 1);
}

static void answered(struct odd *odd, const char *key, enum hg_fault fault, uint16_t status,
                     const char *text)
{
    struct note note;
    begin(odd, &note, HG_OP_GET, key);
    finish(odd, &note);
    if (note.result.fault != fault || note.result.status != status ||
        strstr(note.value, text) == NULL)
        fail_msg("fault %d status 0x%02x '%s'", note.result.fault, note.result.status, note.value);
}

static uint64_t stat(struct odd *odd, enum hg_rediscluster_stat which)
{
    return clusterscene_stat(&odd->s, which);
}

/* Two servers that send everybody to the other. */
static void t_redirected_for_ever(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd.nodes[0].usual = odd.moved[1];
    odd.nodes[1].usual = odd.moved[0];
    odd_start(&odd);
    answered(&odd, "foo", HG_FAULT_DOWN, 0, "do not agree about who owns slot 12182");
    /* As often as may be, or as long as the call might have waited in line. */
    assert_in_range(odd.nodes[0].requests + odd.nodes[1].requests, 6,
                    HG_REDISCLUSTER_REDIRECTS + 1);
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_GIVEN_UP), 1);
    odd.nodes[0].usual = odd.ask[1];
    odd.nodes[1].usual = odd.ask[0];
    answered(&odd, "foo", HG_FAULT_DOWN, 0, "do not agree");
    odd_fini(&odd);
}

static void t_redirected_to_nowhere(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "-MOVED 12182 ?:7000\r\n", "-MOVED 12182 /run/redis:7000\r\n", "-ASK 12182 host:0\r\n"};
    struct odd odd;
    odd_init(&odd);
    odd_start(&odd);
    for (size_t i = 0; i < HG_COUNT_OF(lines); i++) {
        fakenode_say(&odd.nodes[0], lines[i]);
        answered(&odd, "foo", HG_FAULT_DOWN, 0,
                 "name no server that can be reached for slot 12182");
    }
    /* No redirects at all. */
    fakenode_say(&odd.nodes[0], "-MOVED 99999 127.0.0.1:7000\r\n");
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_EINTERNAL, "MOVED 99999");
    fakenode_say(&odd.nodes[0], "-MOVED\r\n");
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_EINTERNAL, "MOVED");
    odd_fini(&odd);
}

/* A host that is left out is that of the server; the next call goes there at once. */
static void t_redirected_to_a_port(void **state)
{
    (void)state;
    struct odd odd;
    char moved[64];
    odd_init(&odd);
    snprintf(moved, sizeof moved, "-MOVED 12182 :%u\r\n", odd.nodes[1].port);
    odd.nodes[0].usual = moved;
    odd.nodes[1].usual = "$-1\r\n";
    odd_start(&odd);
    odd.nodes[0].slots = odd.nodes[1].slots = odd.slots[1];
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    assert_int_equal(odd.nodes[1].requests, 2);
    assert_int_equal(odd.nodes[1].askings, 0);
    odd_fini(&odd);
}

/* ASK is for one call: ASKING goes before it, and the next one goes to the owner. */
static void t_asked(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd.nodes[0].usual = "$-1\r\n";
    odd.nodes[1].usual = "$-1\r\n";
    odd_start(&odd);
    fakenode_say(&odd.nodes[0], odd.ask[1]);
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    assert_int_equal(odd.nodes[1].askings, 1);
    assert_int_equal(odd.nodes[1].asked_requests, 1);
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    assert_int_equal(odd.nodes[0].requests, 2);
    assert_int_equal(odd.nodes[1].requests, 1);
    /* Scripts that are gone there: again with ASKING. */
    fakenode_say(&odd.nodes[0], odd.ask[1]);
    fakenode_say(&odd.nodes[1], "-NOSCRIPT No matching script\r\n");
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    assert_int_equal(odd.nodes[1].askings, 3);
    assert_int_equal(odd.nodes[1].asked_requests, 3);
    odd_fini(&odd);
}

static void t_try_again(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd_start(&odd);
    odd.nodes[0].usual = "$-1\r\n";
    for (int i = 0; i < 3; i++)
        fakenode_say(&odd.nodes[0], "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    assert_int_equal(odd.nodes[0].requests, 4);
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_TRYAGAIN), 3);
    odd.nodes[0].usual = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";
    uint64_t begun_us = bench_now_us();
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_ETMPFAIL, "TRYAGAIN");
    assert_in_range(bench_now_us() - begun_us, 250000, 2000000 * bench_scale());
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_GIVEN_UP), 1);
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_LATER), 0);
    odd_fini(&odd);
}

/* A master that is none any more: the topology is asked for, and the new one gets the call. */
static void t_demoted(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd_start(&odd);
    odd.nodes[0].usual = "-READONLY You can't write against a read only replica.\r\n";
    odd.nodes[0].slots = odd.nodes[1].slots = odd.slots[1];
    odd.nodes[1].usual = "+OK\r\n";
    struct note note;
    begin(&odd, &note, HG_OP_SET, "foo");
    finish(&odd, &note);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    assert_int_equal(note.result.status, 0);
    assert_int_equal(odd.nodes[1].requests, 1);
    assert_true(stat(&odd, HG_REDISCLUSTER_READONLY) > 0);
    odd_fini(&odd);
}

static void t_cluster_down(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd_start(&odd);
    uint32_t asked = odd.nodes[0].slots_asked + odd.nodes[1].slots_asked;
    odd.nodes[0].usual = "-CLUSTERDOWN The cluster is down\r\n";
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_ETMPFAIL, "The cluster is down");
    assert_int_equal(odd.nodes[0].requests, 1);
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_DOWN), 1);
    ODD_UNTIL(&odd, odd.nodes[0].slots_asked + odd.nodes[1].slots_asked > asked);
    odd_fini(&odd);
}

/* A connection that breaks behind a write: nobody says it again. */
static void t_lost_is_not_repeated(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd_start(&odd);
    odd.nodes[0].hang_up = true;
    struct note note;
    begin(&odd, &note, HG_OP_SET, "foo");
    finish(&odd, &note);
    assert_int_equal(note.result.fault, HG_FAULT_LOST);
    /* From now on only redirects tell of owners: a refresh would contradict the one below. */
    odd.nodes[0].slots = odd.nodes[1].slots = "-ERR not now\r\n";
    odd_for(&odd, 100000);
    assert_int_equal(odd.nodes[0].requests, 1);
    assert_int_equal(odd.nodes[1].requests, 0);
    /* Nor behind a redirect. */
    odd.nodes[0].hang_up = false;
    odd.nodes[1].hang_up = true;
    fakenode_say(&odd.nodes[0], odd.moved[1]);
    ODD_UNTIL(&odd, hg_server_may_send(&odd.s.shared->upstream->servers[0]));
    begin(&odd, &note, HG_OP_SET, "foo");
    finish(&odd, &note);
    assert_int_equal(note.result.fault, HG_FAULT_LOST);
    odd_for(&odd, 100000);
    assert_int_equal(odd.nodes[0].requests, 2);
    assert_int_equal(odd.nodes[1].requests, 1);
    odd_fini(&odd);
}

/* Nobody is there at the start: calls are refused with the reason, until somebody is. */
static void t_nobody_at_the_start(void **state)
{
    (void)state;
    struct odd odd;
    struct note note;
    odd_init(&odd);
    fakenode_close(&odd.nodes[0]);
    fakenode_close(&odd.nodes[1]);
    clusterscene_start(&odd.s);
    begin(&odd, &note, HG_OP_GET, "foo");
    assert_int_equal(note.done, 0);
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_EARLY), 1);
    finish(&odd, &note);
    assert_int_equal(note.result.fault, HG_FAULT_DOWN);
    assert_non_null(strstr(note.value, "no server of the cluster says who owns which slots"));
    assert_non_null(strstr(note.value, "refused"));
    assert_non_null(strstr(note.value, odd.nodes[1].address));
    answered(&odd, "foo", HG_FAULT_DOWN, 0, "refused"); /* at once */
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_EARLY), 0);
    odd.nodes[1].slots = odd.slots[1];
    odd.nodes[1].usual = "$-1\r\n";
    fakenode_open(&odd.nodes[1]);
    ODD_UNTIL(&odd, hg_topology_version(&odd.s.shared->topology) > 0);
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    odd_fini(&odd);
}

/* They are there and say nothing: calls wait for so long, then are refused; others go on when the
   answer comes. */
static void t_silent_at_the_start(void **state)
{
    (void)state;
    struct odd odd;
    struct note first, second, third;
    odd_init(&odd);
    odd.s.conf.times.connect_timeout_ms = 60000;
    odd.nodes[0].mute = odd.nodes[1].mute = true;
    clusterscene_start(&odd.s);
    begin(&odd, &first, HG_OP_GET, "foo");
    finish(&odd, &first);
    assert_int_equal(first.result.fault, HG_FAULT_DOWN);
    begin(&odd, &second, HG_OP_GET, "foo");
    begin(&odd, &third, HG_OP_GET, "foo");
    odd.s.stores[0]->ops->cancel(odd.s.stores[0], &third.call);
    odd.nodes[0].usual = "$-1\r\n";
    odd.nodes[0].mute = odd.nodes[1].mute = false;
    finish(&odd, &second);
    assert_int_equal(second.result.status, HG_STATUS_KEY_ENOENT);
    assert_true(second.rooms > 0);
    assert_int_equal(third.done + third.rooms, 0);
    odd_fini(&odd);
}

/* What is no cluster, or says that it has no slots. */
static void t_no_cluster(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd.nodes[0].slots = odd.nodes[1].slots = "-ERR This instance has cluster support disabled\r\n";
    clusterscene_start(&odd.s);
    answered(&odd, "foo", HG_FAULT_DOWN, 0, "cluster support disabled");
    odd.nodes[0].slots = odd.nodes[1].slots = "*0\r\n";
    /* One that is under way may still hear the old answer. */
    uint64_t failures = stat(&odd, HG_REDISCLUSTER_REFRESH_FAILURES);
    ODD_UNTIL(&odd, stat(&odd, HG_REDISCLUSTER_REFRESH_FAILURES) > failures + 1);
    answered(&odd, "foo", HG_FAULT_DOWN, 0, "no owner of any slot");
    odd.nodes[0].slots = odd.nodes[1].slots = "*1\r\n*3\r\n:0\r\n:99999\r\n";
    failures = stat(&odd, HG_REDISCLUSTER_REFRESH_FAILURES);
    ODD_UNTIL(&odd, stat(&odd, HG_REDISCLUSTER_REFRESH_FAILURES) > failures + 1);
    answered(&odd, "foo", HG_FAULT_DOWN, 0, "cannot be");
    odd_fini(&odd);
}

/* Slots that nobody serves, and asked for again and again meanwhile. */
static void t_holes(void **state)
{
    (void)state;
    struct odd odd;
    char slots[128];
    odd_init(&odd);
    snprintf(slots, sizeof slots, "*1\r\n*3\r\n:0\r\n:9999\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
             odd.nodes[0].port);
    odd.nodes[0].slots = odd.nodes[1].slots = slots;
    odd.nodes[0].usual = "$-1\r\n";
    odd_start(&odd);
    answered(&odd, "foo", HG_FAULT_DOWN, 0, "no server of the cluster serves slot 12182");
    answered(&odd, "bar", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_UNCOVERED), 6384);
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_NO_OWNER), 1);
    assert_string_equal(
        odd.s.stores[0]->ops->where(odd.s.stores[0], HG_SPAN_NONE, HG_SPAN_LIT("foo")),
        "no server");
    odd.nodes[0].slots = odd.nodes[1].slots = odd.slots[0];
    ODD_UNTIL(&odd, stat(&odd, HG_REDISCLUSTER_UNCOVERED) == 0);
    answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
    odd_fini(&odd);
}

/* A server that is named no more is let go, and taken back when it is named again, as often as it
   likes. */
static void t_leaves_and_returns(void **state)
{
    (void)state;
    struct odd odd;
    odd_init(&odd);
    odd_start(&odd);
    odd.nodes[0].usual = odd.nodes[1].usual = "$-1\r\n";
    for (int round = 0; round < 3; round++) {
        for (int owner = 1; owner >= 0; owner--) {
            odd.nodes[0].slots = odd.nodes[1].slots = odd.slots[owner];
            uint32_t version = hg_topology_version(&odd.s.shared->topology);
            while (hg_topology_version(&odd.s.shared->topology) < version + 3) {
                hg_topology_want(&odd.s.shared->topology, HG_SLOTS_NONE);
                answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
            }
            uint32_t before = odd.nodes[owner].requests;
            answered(&odd, "foo", HG_FAULT_NONE, HG_STATUS_KEY_ENOENT, "");
            assert_int_equal(odd.nodes[owner].requests, before + 1);
            ODD_UNTIL(&odd, rig_stat(odd.s.shared->upstream, (uint32_t)!owner,
                                     HG_UPSTREAM_CONNECTIONS) == 0);
        }
    }
    assert_int_equal(stat(&odd, HG_REDISCLUSTER_MEMBERS), 1);
    odd_fini(&odd);
}

/* A client's later calls for a key wait for one that is sent away, whatever happens to it. */
static void t_in_order(void **state)
{
    (void)state;
    struct odd odd;
    struct user user;
    odd_init(&odd);
    odd_start(&odd);
    odd.nodes[1].usual = "+OK\r\n";
    fakenode_say(&odd.nodes[0], "-TRYAGAIN x\r\n");
    fakenode_say(&odd.nodes[0], odd.ask[1]);
    fakenode_say(&odd.nodes[0], "$-1\r\n");
    fakenode_say(&odd.nodes[0], "$-1\r\n");
    user_init(&user, &odd.s, 0, 4, 4);
    user_add(&user, HG_OP_SET, "foo", "1");
    user_add(&user, HG_OP_GET, "foo", NULL);
    user_add(&user, HG_OP_GET, "foo", NULL);
    user_add(&user, HG_OP_SET, "foo", "2");
    odd_turn(&odd);
    user_pump(&user);
    ODD_UNTIL(&odd, user_is_done(&user));
    for (int i = 0; i < 4; i++)
        assert_int_equal(user.steps[i].fault, HG_FAULT_NONE);
    assert_int_equal(user.order_faults, 0);
    assert_int_equal(odd.nodes[0].requests, 5);
    assert_int_equal(odd.nodes[1].requests, 1);
    user_fini(&user);
    odd_fini(&odd);
}

/* Redirected calls for which the other server has no room wait, and their owner hears nothing of
   it. */
static void t_redirected_into_a_queue(void **state)
{
    (void)state;
    enum { MANY = 40 };
    struct odd odd;
    static struct note notes[MANY];
    odd_init(&odd);
    odd.s.conf.pool_depth = 2;
    odd.s.conf.times.queue_timeout_ms = 5000 * (uint32_t)bench_scale();
    odd_start(&odd);
    odd.nodes[0].usual = odd.moved[1];
    odd.nodes[1].usual = "$-1\r\n";
    odd.nodes[0].slots = odd.nodes[1].slots = odd.slots[1];
    odd_turn(&odd);
    for (int i = 0; i < MANY; i++)
        begin(&odd, &notes[i], HG_OP_GET, i % 2 == 0 ? "foo" : "{foo}2");
    int rooms = 0, done = 0;
    ODD_UNTIL(&odd, (done = 0, rooms = 0, ({
                         for (int i = 0; i < MANY; i++) {
                             done += notes[i].done;
                             rooms += notes[i].rooms;
                         }
                     }),
                     done == MANY));
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(notes[i].done, 1);
        assert_int_equal(notes[i].result.fault, HG_FAULT_NONE);
        assert_int_equal(notes[i].result.status, HG_STATUS_KEY_ENOENT);
    }
    assert_true(stat(&odd, HG_REDISCLUSTER_MOVED) > 0);
    assert_int_equal(odd.nodes[1].requests, MANY);
    odd_fini(&odd);
}

/* Calls that are given up, or whose store ends, wherever they are. */
static void t_gone_everywhere(void **state)
{
    (void)state;
    for (int end = 0; end < 2; end++) {
        struct odd odd;
        struct note sent, later, asked, line[8];
        odd_init(&odd);
        odd.s.conf.pool_depth = 1;
        odd.s.conf.times.queue_timeout_ms = 60000;
        odd.s.conf.times.backend_timeout_ms = 60000;
        odd_start(&odd);
        fakenode_say(&odd.nodes[0], "-TRYAGAIN x\r\n");
        begin(&odd, &later, HG_OP_GET, "foo");
        ODD_UNTIL(&odd, stat(&odd, HG_REDISCLUSTER_LATER) == 1);
        fakenode_say(&odd.nodes[0], odd.ask[1]);
        odd.nodes[1].mute = true;
        begin(&odd, &asked, HG_OP_SET, "foo");
        /* The first goes again and is answered by the redirect that was meant for the second, or
           the other way round: both end at the silent one. */
        fakenode_say(&odd.nodes[0], odd.ask[1]);
        ODD_UNTIL(&odd, stat(&odd, HG_REDISCLUSTER_ASK) == 2);
        odd.nodes[0].mute = true;
        begin(&odd, &sent, HG_OP_GET, "foo");
        for (int i = 0; i < 8; i++)
            begin(&odd, &line[i], HG_OP_GET, "foo");
        odd_for(&odd, 20000);
        struct note *all[] = {&sent,    &later,   &asked,   &line[0], &line[1], &line[2],
                              &line[3], &line[4], &line[5], &line[6], &line[7]};
        for (size_t i = 0; end == 0 && i < HG_COUNT_OF(all); i++) {
            assert_int_equal(all[i]->done, 0);
            odd.s.stores[0]->ops->cancel(odd.s.stores[0], &all[i]->call);
        }
        assert_int_equal(hg_remote_of(odd.s.stores[0])->ties.slab.borrowed > 0, end == 1);
        odd_fini(&odd);
        for (size_t i = 0; i < HG_COUNT_OF(all); i++) {
            assert_int_equal(all[i]->done, end);
            assert_true(end == 0 || all[i]->result.fault != HG_FAULT_NONE);
        }
    }
}

/* The same with a call that has just been told to come a little later. */
static void t_gone_while_later(void **state)
{
    (void)state;
    for (int end = 0; end < 3; end++) {
        struct odd odd;
        struct note later;
        odd_init(&odd);
        odd_start(&odd);
        fakenode_say(&odd.nodes[0], "-READONLY x\r\n");
        odd.nodes[0].usual = "$-1\r\n";
        begin(&odd, &later, HG_OP_GET, "foo");
        ODD_UNTIL(&odd, stat(&odd, HG_REDISCLUSTER_LATER) == 1);
        if (end == 0)
            odd.s.stores[0]->ops->cancel(odd.s.stores[0], &later.call);
        if (end == 2) {
            odd.s.stores[0]->ops->drain(odd.s.stores[0]);
            assert_false(odd.s.stores[0]->ops->drained(odd.s.stores[0]));
            ODD_UNTIL(&odd, odd.s.stores[0]->ops->drained(odd.s.stores[0]));
            assert_int_equal(later.done, 1);
        }
        odd_fini(&odd);
        assert_int_equal(later.done, end > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_redirected_for_ever),
        cmocka_unit_test(t_redirected_to_nowhere),
        cmocka_unit_test(t_redirected_to_a_port),
        cmocka_unit_test(t_asked),
        cmocka_unit_test(t_try_again),
        cmocka_unit_test(t_demoted),
        cmocka_unit_test(t_cluster_down),
        cmocka_unit_test(t_lost_is_not_repeated),
        cmocka_unit_test(t_nobody_at_the_start),
        cmocka_unit_test(t_silent_at_the_start),
        cmocka_unit_test(t_no_cluster),
        cmocka_unit_test(t_holes),
        cmocka_unit_test(t_leaves_and_returns),
        cmocka_unit_test(t_in_order),
        cmocka_unit_test(t_redirected_into_a_queue),
        cmocka_unit_test(t_gone_everywhere),
        cmocka_unit_test(t_gone_while_later),
    };
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("rediscluster_odd", tests, NULL, NULL);
}
