// t_rediscluster_failover - masters that die, replicas that take over, nodes that come and go
// SPDX-License-Identifier: BSD-3-Clause
//
// The tests are in an order: each leaves the cluster to the next one.
#include "clusterscene.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define WAIT_US 30000000 /* for an election on a busy machine */

static struct clusterd cluster;

static void gives(struct clusterscene *s, enum hg_op op, const char *key, const char *value)
{
    struct note *note = clusterscene_call(s, op, key, value);
    if (note->result.fault != HG_FAULT_NONE || note->result.status != 0)
        fail_msg("%s: fault %d status 0x%02x '%s'", key, note->result.fault, note->result.status,
                 note->value);
}

static void holds(struct clusterscene *s, const char *key, const char *value)
{
    struct note *note = clusterscene_call(s, HG_OP_GET, key, NULL);
    if (note->result.fault != HG_FAULT_NONE || note->result.status != 0)
        fail_msg("%s: fault %d status 0x%02x '%s' of %s", key, note->result.fault,
                 note->result.status, note->value,
                 note->result.server != NULL ? note->result.server : "no server");
    assert_string_equal(note->value, value);
}

/* A client per master that goes on and on: what became of its calls. */
struct stream {
    struct note note;
    struct clusterscene *scene;
    uint32_t slot;
    unsigned number;
    bool busy;
    uint64_t begun_us, longest_us; /* how long a call took at most */
    uint64_t good, bad;
    uint64_t good_us; /* when the last good answer came */
};

static void stream_go_on(struct stream *stream)
{
    if (stream->busy && stream->note.done == 0)
        return;
    uint64_t now_us = hg_now_us();
    if (stream->busy) {
        bool good = stream->note.result.fault == HG_FAULT_NONE && stream->note.result.status == 0;
        stream->good += good;
        stream->bad += !good;
        if (good)
            stream->good_us = now_us;
        if (now_us - stream->begun_us > stream->longest_us)
            stream->longest_us = now_us - stream->begun_us;
    }
    char key[64];
    clusterscene_key(key, stream->slot, stream->number++ % 50);
    note_init(&stream->note, stream->scene->stores[0], HG_OP_SET, key);
    stream->note.call.value = HG_SPAN_LIT("value");
    stream->busy = true;
    stream->begun_us = now_us;
    (void)note_submit(&stream->note, &stream->scene->rigs[0]);
}

static void stream_end(struct stream *stream)
{
    BENCH_UNTIL(&stream->scene->bench, stream->note.done > 0);
}

/* A master dies under load. The others' keys never falter; its own fail fast until its replica has
   taken over, and what had been acknowledged long before is there. */
static void t_master_dies(void **state)
{
    (void)state;
    struct clusterscene s;
    struct stream streams[CLUSTERD_MASTERS];
    char key[64];
    clusterscene_init(&s, &cluster);
    s.conf.times.backend_timeout_ms = 500 * (uint32_t)bench_scale();
    s.conf.times.queue_timeout_ms = 500 * (uint32_t)bench_scale();
    clusterscene_start(&s);
    for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++)
        streams[m] = (struct stream){.scene = &s, .slot = HG_KEYSLOTS * m / CLUSTERD_MASTERS + 9};
    clusterscene_key(key, streams[1].slot, 1000);
    gives(&s, HG_OP_SET, key, "before");
    redisReply *reply = clusterd_ask(&cluster, 1, "WAIT 1 5000");
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
    uint64_t end_us = hg_now_us() + WAIT_US * bench_scale();
    while (streams[0].good < 200 || streams[1].good < 200 || streams[2].good < 200) {
        for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++)
            stream_go_on(&streams[m]);
        bench_turn(&s.bench);
        assert_true(hg_now_us() < end_us);
    }
    assert_int_equal(streams[1].bad, 0);
    clusterd_kill(&cluster, 1);
    uint64_t good = streams[1].good;
    end_us = hg_now_us() + WAIT_US * bench_scale();
    uint64_t promoted_us = 0, back_us = 0;
    for (unsigned turn = 0; streams[1].good < good + 200; turn++) {
        for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++)
            stream_go_on(&streams[m]);
        bench_turn(&s.bench);
        uint64_t now_us = hg_now_us();
        if (promoted_us == 0 && turn % 16 == 0 && clusterd_owner(&cluster, 0, streams[1].slot) == 4)
            promoted_us = now_us;
        /* One answer of the killed one may still have been on its way. */
        if (back_us == 0 && streams[1].good > good + 1)
            back_us = now_us;
        assert_true(now_us < end_us);
    }
    /* The new master is found soon after it is one: the pause between two questions, and time to
       spare for a busy machine. */
    assert_true(back_us < promoted_us + 1500000 * bench_scale());
    assert_true(streams[1].bad > 0);
    assert_in_range(streams[1].longest_us, 1, 1500000 * bench_scale());
    /* Nobody else was touched, but where the cluster itself said that it was down. */
    assert_in_range(streams[0].bad + streams[2].bad, 0,
                    clusterscene_stat(&s, HG_REDISCLUSTER_DOWN));
    for (uint32_t m = 0; m < CLUSTERD_MASTERS; m++)
        stream_end(&streams[m]);
    holds(&s, key, "before");
    assert_string_equal(s.stores[0]->ops->where(s.stores[0], HG_SPAN_NONE, hg_span_str(key)),
                        cluster.nodes[4].address);
    clusterscene_fini(&s);
}

/* The old master comes back as a replica; then the two change places on request, under load. */
static void t_change_of_places(void **state)
{
    (void)state;
    struct clusterscene s;
    struct stream stream = {.slot = HG_KEYSLOTS / CLUSTERD_MASTERS + 9};
    clusterd_relaunch(&cluster, 1);
    clusterd_wait(&cluster, stream.slot, 4);
    clusterd_wait_replicas(&cluster);
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    stream.scene = &s;
    uint64_t end_us = hg_now_us() + WAIT_US * bench_scale();
    bool asked = false;
    while (!asked || clusterd_owner(&cluster, 4, stream.slot) != 1) {
        for (int i = 0; i < 100; i++) {
            stream_go_on(&stream);
            bench_turn(&s.bench);
        }
        redisReply *role = clusterd_ask(&cluster, 1, "ROLE");
        bool ready = role->elements == 5 && strcmp(role->element[3]->str, "connected") == 0;
        freeReplyObject(role);
        if (!asked && ready && stream.good > 100) {
            clusterd_do(&cluster, 1, "CLUSTER FAILOVER");
            asked = true;
        }
        assert_true(hg_now_us() < end_us);
    }
    uint64_t good = stream.good;
    while (stream.good < good + 200) {
        stream_go_on(&stream);
        bench_turn(&s.bench);
        assert_true(hg_now_us() < end_us);
    }
    stream_end(&stream);
    assert_int_equal(stream.bad, 0);
    assert_true(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED) > 0);
    clusterscene_until_owner(&s, &cluster, stream.slot, 1);
    clusterscene_fini(&s);
}

/* A node that nobody has named yet gets slots, keys and traffic, and then leaves again. */
static void t_node_comes_and_goes(void **state)
{
    (void)state;
    enum { FIRST = 50, SLOTS = 10, KEYS = 10 };
    struct clusterscene s;
    char key[64];
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    for (uint32_t slot = FIRST; slot < FIRST + SLOTS; slot++) {
        for (unsigned i = 0; i < KEYS; i++) {
            clusterscene_key(key, slot, i);
            gives(&s, HG_OP_SET, key, key);
        }
    }
    uint32_t servers = hg_upstream_count_servers(s.shared->upstream);
    uint32_t node = clusterd_add(&cluster);
    for (uint32_t slot = FIRST; slot < FIRST + SLOTS; slot++) {
        clusterd_open_slot(&cluster, slot, 0, node);
        clusterd_move_keys(&cluster, slot, 0, node, KEYS / 2);
        for (unsigned i = 0; i < KEYS; i++) {
            clusterscene_key(key, slot, i);
            holds(&s, key, key);
        }
        while (clusterd_move_keys(&cluster, slot, 0, node, KEYS) > 0)
            continue;
        clusterd_close_slot(&cluster, slot, node);
        for (unsigned i = 0; i < KEYS; i++) {
            clusterscene_key(key, slot, i);
            holds(&s, key, key);
        }
    }
    assert_int_equal(hg_upstream_count_servers(s.shared->upstream), servers + 1);
    clusterscene_refresh(&s);
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MASTERS), 4);
    assert_true(rig_stat(s.shared->upstream, servers, HG_UPSTREAM_CONNECTIONS) > 0);

    for (uint32_t slot = FIRST; slot < FIRST + SLOTS; slot++) {
        clusterd_open_slot(&cluster, slot, node, 0);
        while (clusterd_move_keys(&cluster, slot, node, 0, KEYS) > 0)
            continue;
        clusterd_close_slot(&cluster, slot, 0);
    }
    for (uint32_t n = 0; n < node; n++)
        clusterd_do(&cluster, n, "CLUSTER FORGET %s", cluster.nodes[node].id);
    clusterd_wait_without(&cluster, node);
    for (int i = 0; i < 3; i++)
        clusterscene_refresh(&s);
    /* Its connections are given up, and it may go without anybody's noticing. */
    BENCH_UNTIL(&s.bench, rig_stat(s.shared->upstream, servers, HG_UPSTREAM_CONNECTIONS) == 0);
    clusterd_kill(&cluster, node);
    for (uint32_t slot = FIRST; slot < FIRST + SLOTS; slot++) {
        for (unsigned i = 0; i < KEYS; i++) {
            clusterscene_key(key, slot, i);
            holds(&s, key, key);
        }
    }
    assert_int_equal(rig_stat(s.shared->upstream, servers, HG_UPSTREAM_BREAKER_OPENS), 0);
    assert_int_equal(clusterscene_stat(&s, HG_REDISCLUSTER_MASTERS), 3);
    clusterscene_fini(&s);
}

/* A master stops without a word: its connections stay open. Its requests time out, the others' go
   on, and its replica takes over; when it wakes up nothing is lost to it. */
static void t_master_hangs(void **state)
{
    (void)state;
    struct clusterscene s;
    struct stream streams[2];
    char key[64];
    uint32_t slot = 2 * HG_KEYSLOTS / CLUSTERD_MASTERS + 20;
    uint32_t master = clusterd_owner(&cluster, 0, slot), replica = master == 2 ? 5 : 2;
    clusterd_wait_replicas(&cluster);
    clusterscene_init(&s, &cluster);
    s.conf.times.backend_timeout_ms = 300 * (uint32_t)bench_scale();
    s.conf.times.queue_timeout_ms = 300 * (uint32_t)bench_scale();
    clusterscene_start(&s);
    streams[0] = (struct stream){.scene = &s, .slot = slot};
    streams[1] = (struct stream){.scene = &s, .slot = 9};
    uint64_t end_us = hg_now_us() + WAIT_US * bench_scale();
    while (streams[0].good < 100) {
        stream_go_on(&streams[0]);
        bench_turn(&s.bench);
        assert_true(hg_now_us() < end_us);
    }
    kill(cluster.nodes[master].pid, SIGSTOP);
    uint64_t good = streams[0].good;
    while (streams[0].good < good + 100) {
        stream_go_on(&streams[0]);
        stream_go_on(&streams[1]);
        bench_turn(&s.bench);
        assert_true(hg_now_us() < end_us);
    }
    assert_true(streams[0].bad > 0);
    assert_in_range(streams[0].longest_us, 1, 1000000 * bench_scale());
    assert_in_range(streams[1].bad, 0, clusterscene_stat(&s, HG_REDISCLUSTER_DOWN));
    clusterscene_until_owner(&s, &cluster, slot, replica);
    kill(cluster.nodes[master].pid, SIGCONT);
    stream_end(&streams[0]);
    stream_end(&streams[1]);
    clusterd_wait(&cluster, slot, replica);
    clusterscene_key(key, slot, 500);
    gives(&s, HG_OP_SET, key, "after");
    holds(&s, key, "after");
    clusterscene_fini(&s);
}

/* A master and its replica are gone for good: its slots fail with a reason, the others, which the
   configuration of the servers allows, go on. */
static void t_uncovered(void **state)
{
    (void)state;
    struct clusterscene s;
    char mine[64], other[64];
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    clusterscene_key(mine, HG_KEYSLOTS - 1, 1);
    clusterscene_key(other, 0, 1);
    gives(&s, HG_OP_SET, mine, "x");
    for (uint32_t n = 0; n < cluster.count; n++) {
        if (cluster.nodes[n].pid != 0)
            clusterd_do(&cluster, n, "CONFIG SET cluster-require-full-coverage no");
    }
    clusterd_kill(&cluster, 5);
    clusterd_kill(&cluster, 2);
    uint64_t end_us = hg_now_us() + WAIT_US * bench_scale();
    struct note *note;
    do {
        note = clusterscene_call(&s, HG_OP_GET, mine, NULL);
        assert_true(hg_now_us() < end_us);
    } while (note->result.fault == HG_FAULT_NONE || note->result.fault == HG_FAULT_LOST);
    assert_int_equal(note->result.fault, HG_FAULT_DOWN);
    gives(&s, HG_OP_SET, other, "x");
    uint64_t turns = s.rigs[0].loop.turns;
    note = clusterscene_call(&s, HG_OP_GET, mine, NULL);
    assert_int_equal(note->result.fault, HG_FAULT_DOWN);
    /* At once, that is without a further turn but the one before the call. */
    assert_true(s.rigs[0].loop.turns - turns <= 2);
    /* They are asked again and again meanwhile, but not all the time. */
    uint64_t asked = clusterscene_stat(&s, HG_REDISCLUSTER_REFRESHES);
    bench_for(&s.bench, 1000000);
    assert_in_range(clusterscene_stat(&s, HG_REDISCLUSTER_REFRESHES) - asked, 0, 10);
    BENCH_UNTIL(&s.bench, clusterscene_stat(&s, HG_REDISCLUSTER_REFRESHES) > asked);
    clusterscene_fini(&s);
}

static int set_up(void **state)
{
    (void)state;
    clusterd_init(&cluster);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    clusterd_fini(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_master_dies),         cmocka_unit_test(t_change_of_places),
        cmocka_unit_test(t_node_comes_and_goes), cmocka_unit_test(t_master_hangs),
        cmocka_unit_test(t_uncovered),
    };
    if (!clusterd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("rediscluster_failover", tests, set_up, tear_down);
}
