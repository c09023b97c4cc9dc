// t_workers - several threads share the servers of an upstream while one of them goes and returns
// SPDX-License-Identifier: BSD-3-Clause
#include "daemon.h"
#include "rig.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define WORKERS   3
#define UNDER_WAY 40

struct crew;

struct worker {
    struct crew *crew;
    uint32_t index;
    pthread_t thread;
    _Atomic uint64_t answered, refused; /* by the server; for another reason */
    _Atomic uint64_t twice;             /* answers too many */
    struct job {
        struct hg_call call;
        struct worker *worker;
        struct hg_store *store;
        char key[32];
        int done;
    } jobs[UNDER_WAY];
};

struct crew {
    struct hg_upstream_shared *shared;
    _Atomic bool stop;
    struct worker workers[WORKERS];
};

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct job *job = HG_CONTAINER_OF(call, struct job, call);
    if (++job->done > 1)
        atomic_fetch_add(&job->worker->twice, 1);
    atomic_fetch_add(
        result->fault == HG_FAULT_NONE ? &job->worker->answered : &job->worker->refused, 1);
}

static void on_room(struct hg_call *call)
{
    struct job *job = HG_CONTAINER_OF(call, struct job, call);
    (void)job->store->ops->submit(job->store, call);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct rig rig;
    rig_init(&rig);
    struct hg_store *store = rig_store(&rig, worker->crew->shared, worker->index, 3);
    for (int i = 0; i < UNDER_WAY; i++) {
        worker->jobs[i].worker = worker;
        worker->jobs[i].store = store;
        worker->jobs[i].done = 1;
    }
    unsigned next = 0;
    while (!atomic_load(&worker->crew->stop)) {
        hg_loop_turn(&rig.loop, false);
        bool idle = true;
        for (int i = 0; i < UNDER_WAY; i++) {
            struct job *job = &worker->jobs[i];
            if (job->done == 0)
                continue;
            idle = false;
            job->done = 0;
            snprintf(job->key, sizeof job->key, "key:%u", next++ % 1000);
            job->call = (struct hg_call){.op = next % 4 == 0 ? HG_OP_SET : HG_OP_GET,
                                         .key = hg_span_str(job->key),
                                         .key_hash = next,
                                         .value = next % 4 == 0 ? HG_SPAN_LIT("v") : HG_SPAN_NONE,
                                         .on_done = on_done,
                                         .on_room = on_room};
            (void)store->ops->submit(store, &job->call);
        }
        if (idle)
            poll(NULL, 0, 1);
    }
    store->ops->free(store);
    for (int i = 0; i < UNDER_WAY; i++)
        assert_int_equal(worker->jobs[i].done, 1);
    rig_fini(&rig);
    return NULL;
}

#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        PATIENCE_UNTIL(condition, poll(NULL, 0, 1));                                               \
    } while (0)

/* Every worker gets answers from both servers. */
static void wait_for_answers(struct crew *crew)
{
    for (int w = 0; w < WORKERS; w++) {
        for (uint32_t i = 0; i < 2; i++) {
            const hg_counter *replies =
                &crew->shared->servers[i].counters[w].values[HG_UPSTREAM_REPLIES];
            uint64_t before = hg_counter_get(replies);
            WAIT_UNTIL(hg_counter_get(replies) > before + 50);
        }
    }
}

static void t_threads_share_servers(void **state)
{
    (void)state;
    struct daemon daemons[2] = {{0}};
    struct hg_ring_server servers[2];
    struct hg_remote_conf conf;
    static struct crew crew;
    char name[32], why[HG_RING_WHY_BYTES];
    memset(&crew, 0, sizeof crew);
    daemon_launch(&daemons[0]);
    daemon_launch(&daemons[1]);
    snprintf(name, sizeof name, "localhost:%u", daemons[1].port);
    hg_remote_conf_init(&conf);
    conf.name = "crew";
    servers[0] = (struct hg_ring_server){daemons[0].address, 1};
    servers[1] = (struct hg_ring_server){name, 1}; /* looked up on another thread */
    conf.ring.servers = servers;
    conf.ring.count = 2;
    conf.pool_depth = 8;
    conf.times.reconnect_max_ms = 50;
    struct hg_resolver *resolver = hg_resolver_new();
    crew.shared = hg_upstream_shared_new(&conf, resolver, WORKERS, why);
    assert_non_null(crew.shared);
    for (uint32_t w = 0; w < WORKERS; w++) {
        crew.workers[w].crew = &crew;
        crew.workers[w].index = w;
        assert_int_equal(pthread_create(&crew.workers[w].thread, NULL, work, &crew.workers[w]), 0);
    }
    wait_for_answers(&crew);
    for (int i = 0; i < 2; i++) {
        const struct hg_server *server = &crew.shared->servers[i];
        daemon_put_down(&daemons[i]);
        WAIT_UNTIL(!hg_server_may_send(server));
        WAIT_UNTIL(rig_stat(crew.shared, (uint32_t)i, HG_UPSTREAM_BREAKER_OPENS) > 0);
        uint64_t opens = rig_stat(crew.shared, (uint32_t)i, HG_UPSTREAM_BREAKER_OPENS);
        assert_int_equal(opens, 1); /* for all of them together */
        daemon_launch(&daemons[i]);
        WAIT_UNTIL(hg_server_may_send(server));
        wait_for_answers(&crew);
    }
    atomic_store(&crew.stop, true);
    for (uint32_t w = 0; w < WORKERS; w++) {
        pthread_join(crew.workers[w].thread, NULL);
        assert_true(atomic_load(&crew.workers[w].refused) > 0);
        assert_int_equal(atomic_load(&crew.workers[w].twice), 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rig_stat(crew.shared, i, HG_UPSTREAM_CONNECTIONS), 0);
        assert_int_equal(rig_stat(crew.shared, i, HG_UPSTREAM_BAD_REPLIES), 0);
        assert_int_equal(crew.shared->servers[i].breaker.live, 0);
        assert_int_equal(crew.shared->servers[i].breaker.connecting, 0);
        daemon_put_down(&daemons[i]);
    }
    hg_upstream_shared_free(crew.shared);
    hg_resolver_free(resolver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(t_threads_share_servers)};
    if (!daemon_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
