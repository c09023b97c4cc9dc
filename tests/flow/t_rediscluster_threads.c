// t_rediscluster_threads - workers on threads of their own, one topology, slots that move meanwhile
// SPDX-License-Identifier: BSD-3-Clause
#include "clusterscene.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define USERS    4   /* of each worker */
#define PER_USER 400 /* appends */
#define FIRST    400
#define SLOTS    4

static struct clusterd cluster;

struct crew {
    struct clusterscene *scene;
    uint32_t worker;
    struct user users[USERS];
    _Atomic bool done;
    _Atomic uint32_t pace; /* how far they may go by now */
};

/* One worker: its loop, its store, its clients. */
static void *run(void *arg)
{
    struct crew *crew = arg;
    bool all = false;
    while (!all) {
        all = true;
        for (int u = 0; u < USERS; u++) {
            struct user *user = &crew->users[u];
            user->window = (uint32_t)user->finished < atomic_load(&crew->pace) ? 6 : 0;
            user_pump(user);
            all &= user_is_done(user);
        }
        hg_loop_turn(&crew->scene->rigs[crew->worker].loop, false);
    }
    atomic_store(&crew->done, true);
    return NULL;
}

static void prepare(struct crew *crew, struct clusterscene *scene, uint32_t worker)
{
    *crew = (struct crew){.scene = scene, .worker = worker};
    for (int u = 0; u < USERS; u++) {
        char key[64], value[8];
        user_init(&crew->users[u], scene, worker, PER_USER + 2, 6);
        clusterscene_key(key, FIRST + (uint32_t)u % SLOTS, worker * 100 + (uint32_t)u);
        user_add(&crew->users[u], HG_OP_SET, key, "");
        for (int i = 0; i < PER_USER; i++) {
            snprintf(value, sizeof value, "%c", 'a' + i % 26);
            user_add(&crew->users[u], HG_OP_APPEND, key, value);
        }
        user_add(&crew->users[u], HG_OP_GET, key, NULL);
    }
}

static void move_slot(uint32_t slot, uint32_t from, uint32_t to)
{
    clusterd_open_slot(&cluster, slot, from, to);
    while (clusterd_move_keys(&cluster, slot, from, to, 2) > 0)
        continue;
    clusterd_close_slot(&cluster, slot, to);
}

static void t_slots_move_under_two_workers(void **state)
{
    (void)state;
    static struct clusterscene s;
    static struct crew crews[SCENE_WORKERS];
    pthread_t threads[SCENE_WORKERS];
    clusterscene_init(&s, &cluster);
    clusterscene_start(&s);
    for (uint32_t w = 0; w < SCENE_WORKERS; w++)
        prepare(&crews[w], &s, w);
    for (uint32_t w = 0; w < SCENE_WORKERS; w++)
        assert_int_equal(pthread_create(&threads[w], NULL, run, &crews[w]), 0);
    uint32_t from = 0, to = 1;
    for (uint32_t move = 0; !atomic_load(&crews[0].done) || !atomic_load(&crews[1].done); move++) {
        for (uint32_t w = 0; w < SCENE_WORKERS; w++)
            atomic_fetch_add(&crews[w].pace, 40);
        move_slot(FIRST + move % SLOTS, from, to);
        uint64_t values[HG_REDISCLUSTER_STATS];
        hg_rediscluster_stats(s.shared, values); /* anybody may, at any time */
        if (move % SLOTS == SLOTS - 1) {
            from = to;
            to = (to + 1) % CLUSTERD_MASTERS;
        }
    }
    for (uint32_t w = 0; w < SCENE_WORKERS; w++) {
        pthread_join(threads[w], NULL);
        for (int u = 0; u < USERS; u++) {
            struct user *user = &crews[w].users[u];
            for (int i = 0; i < user->count; i++) {
                if (user->steps[i].fault != HG_FAULT_NONE || user->steps[i].status != 0)
                    fail_msg("step %d: fault %d status 0x%02x '%s'", i, user->steps[i].fault,
                             user->steps[i].status, user->steps[i].got);
            }
            const char *got = user->steps[PER_USER + 1].got;
            assert_int_equal(strlen(got), PER_USER);
            for (size_t i = 0; i < PER_USER; i++)
                assert_int_equal(got[i], 'a' + i % 26);
            assert_int_equal(user->order_faults, 0);
            user_fini(user);
        }
    }
    assert_true(clusterscene_stat(&s, HG_REDISCLUSTER_MOVED) > 0);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(t_slots_move_under_two_workers)};
    if (!clusterd_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("rediscluster_threads", tests, set_up, tear_down);
}
