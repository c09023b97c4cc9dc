// t_memcached_real - the memcached store against memcached itself: what is its own (see conform.h)
// SPDX-License-Identifier: BSD-3-Clause
#include "daemon.h"
#include "piece.h"

#include <libmemcached-1.0/memcached.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define SERVERS 3

struct scene {
    struct rig rig;
    struct daemon daemons[SERVERS];
    struct hg_ring_server servers[SERVERS];
    struct hg_remote_conf conf;
    struct hg_upstream_shared *shared;
    struct hg_store *store;
    struct bench bench;
};

static void scene_init(struct scene *scene, uint32_t count)
{
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig);
    scene->bench.rigs[0] = &scene->rig;
    hg_remote_conf_init(&scene->conf);
    scene->conf.name = "real";
    for (uint32_t i = 0; i < count; i++) {
        daemon_launch(&scene->daemons[i]);
        scene->servers[i] = (struct hg_ring_server){scene->daemons[i].address, 1};
    }
    scene->conf.ring.servers = scene->servers;
    scene->conf.ring.count = count;
    scene->conf.times.backend_timeout_ms = 5000;
    scene->conf.times.queue_timeout_ms = 60000;
}

static void scene_start(struct scene *scene)
{
    scene->shared = rig_shared(&scene->conf, 1);
    scene->store = rig_store(&scene->rig, scene->shared, 0, 4);
}

static void scene_fini(struct scene *scene)
{
    scene->store->ops->free(scene->store);
    hg_upstream_shared_free(scene->shared);
    for (int i = 0; i < SERVERS; i++)
        daemon_put_down(&scene->daemons[i]);
    rig_fini(&scene->rig);
}

static void expect_stored(struct scene *scene, const char *key, const char *value)
{
    struct note note;
    note_init(&note, scene->store, HG_OP_GET, key);
    (void)note_submit(&note, &scene->rig);
    BENCH_UNTIL(&scene->bench, note.done == 1);
    assert_int_equal(note.result.fault, HG_FAULT_NONE);
    assert_int_equal(note.result.status, 0);
    assert_string_equal(note.value, value);
}

/* What a client of libmemcached puts on the servers is found. */
static void t_agrees_with_a_client(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s, SERVERS);
    scene_start(&s);
    memcached_st *memc = memcached_create(NULL);
    memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_KETAMA, 1);
    for (int i = 0; i < SERVERS; i++)
        assert_int_equal(memcached_server_add(memc, "127.0.0.1", s.daemons[i].port),
                         MEMCACHED_SUCCESS);
    for (int i = 0; i < 300; i++) {
        char key[32];
        size_t len = (size_t)snprintf(key, sizeof key, "client:%d", i);
        assert_int_equal(memcached_set(memc, key, len, key, len, 0, 0), MEMCACHED_SUCCESS);
    }
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "client:%d", i);
        expect_stored(&s, key, key);
    }
    memcached_free(memc);
    scene_fini(&s);
}

/* Traffic without end over three servers; one of them is killed, started again, stopped, woken.
   Every call is answered once, values are right whenever there are any, the others never falter. */
struct traffic {
    struct piece *pieces;
    int count, next;
    int done, lost;
    uint64_t wrong;
};

static void keep_going(struct scene *s, struct traffic *t)
{
    for (int i = 0; i < t->count; i++) {
        struct piece *piece = &t->pieces[i];
        if (*piece->done == 0)
            continue;
        assert_int_equal(*piece->done, 1);
        t->done++;
        t->lost += piece->fault != HG_FAULT_NONE;
        if (piece->fault == HG_FAULT_NONE && piece->status == 0 && piece->call.op == HG_OP_GET)
            t->wrong += !piece->right;
        *piece->done = 0;
        int number = t->next++ % 500;
        piece->from = (size_t)number;
        piece->len = (size_t)(number * 13 % 2000);
        snprintf(piece->key, sizeof piece->key, "traffic:%d", number);
        piece_submit(piece, s->store, &s->rig, t->next % 3 == 0 ? HG_OP_SET : HG_OP_GET, NULL);
    }
}

static void go_on_for(struct scene *s, struct traffic *t, uint64_t us)
{
    uint64_t end_us = hg_now_us() + us;
    while (hg_now_us() < end_us) {
        keep_going(s, t);
        bench_turn(&s->bench);
    }
}

static void t_killed_stopped_and_back(void **state)
{
    (void)state;
    enum { UNDER_WAY = 60 };
    struct scene s;
    static struct piece pieces[UNDER_WAY];
    int done[UNDER_WAY] = {0};
    memset(pieces, 0, sizeof pieces);
    scene_init(&s, SERVERS);
    /* The servers that run must answer in time on a busy machine too. */
    s.conf.times.backend_timeout_ms = 1000 * (uint32_t)bench_scale();
    s.conf.times.queue_timeout_ms = 2000 * (uint32_t)bench_scale();
    s.conf.times.reconnect_max_ms = 100;
    scene_start(&s);
    struct traffic t = {.pieces = pieces, .count = UNDER_WAY};
    for (int i = 0; i < UNDER_WAY; i++) {
        pieces[i].done = &done[i];
        done[i] = 1; /* as if the one before were answered */
        pieces[i].right = true;
    }
    go_on_for(&s, &t, 200000);
    uint64_t others = rig_stat(s.shared, 1, HG_UPSTREAM_REPLIES);

    daemon_put_down(&s.daemons[0]);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), !hg_server_may_send(&s.shared->servers[0])));
    go_on_for(&s, &t, 200000);
    assert_true(rig_stat(s.shared, 1, HG_UPSTREAM_REPLIES) > others);
    BENCH_UNTIL(&s.bench,
                (keep_going(&s, &t), rig_stat(s.shared, 0, HG_UPSTREAM_REFUSED_DOWN) > 0));
    daemon_launch(&s.daemons[0]);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), hg_server_may_send(&s.shared->servers[0])));
    uint64_t before = rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES);
    BENCH_UNTIL(&s.bench,
                (keep_going(&s, &t), rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES) > before + 100));

    uint64_t late = rig_stat(s.shared, 0, HG_UPSTREAM_TIMEOUTS);
    kill(s.daemons[0].pid, SIGSTOP);
    /* Some time out, and are answered late. */
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), rig_stat(s.shared, 0, HG_UPSTREAM_TIMEOUTS) > late));
    kill(s.daemons[0].pid, SIGCONT);
    go_on_for(&s, &t, 150000);
    kill(s.daemons[0].pid, SIGSTOP);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), !hg_server_may_send(&s.shared->servers[0])));
    go_on_for(&s, &t, 100000);
    kill(s.daemons[0].pid, SIGCONT);
    BENCH_UNTIL(&s.bench, (keep_going(&s, &t), hg_server_may_send(&s.shared->servers[0])));
    before = rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES);
    BENCH_UNTIL(&s.bench,
                (keep_going(&s, &t), rig_stat(s.shared, 0, HG_UPSTREAM_REPLIES) > before + 100));
    assert_true(rig_stat(s.shared, 0, HG_UPSTREAM_TIMEOUTS) > 0);
    assert_true(t.lost > 0);
    assert_int_equal(t.wrong, 0);
    assert_int_equal(rig_stat(s.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    assert_int_equal(rig_stat(s.shared, 1, HG_UPSTREAM_BREAKER_OPENS), 0);
    assert_int_equal(rig_stat(s.shared, 2, HG_UPSTREAM_BREAKER_OPENS), 0);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_agrees_with_a_client),
        cmocka_unit_test(t_killed_stopped_and_back),
    };
    if (!daemon_is_installed())
        return 0;
    piece_init();
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    int rc = cmocka_run_group_tests_name("memcached_real", tests, NULL, NULL);
    piece_fini();
    return rc;
}
