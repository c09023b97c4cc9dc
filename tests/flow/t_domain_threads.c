// t_domain_threads - several workers and identities on few connections of one server: it never sees
// one connection too many
// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"
#include "proto/opcode.h"

#define WORKERS     4
#define USERS       5
#define CONNECTIONS 9
#define UNDER_WAY   24

struct crew;

struct worker {
    struct crew *crew;
    uint32_t index;
    pthread_t thread;
    _Atomic uint64_t answered[USERS];
    _Atomic uint64_t refused, twice;
    struct job {
        struct hg_call call;
        struct worker *worker;
        struct hg_store *store;
        uint32_t user;
        char key[32];
        int done;
    } jobs[UNDER_WAY];
};

struct crew {
    struct hg_upstream_shared *shared;
    uint32_t ids[USERS];
    _Atomic bool stop, pumping;
    _Atomic int most;      /* connections that the server saw at a time */
    _Atomic int strangers; /* requests that came as somebody else */
    struct fake fake;
    struct worker workers[WORKERS];
};

/* The server's thread. A close is seen before the connect that it made room for. */
static void *serve(void *arg)
{
    struct crew *crew = arg;
    while (atomic_load(&crew->pumping)) {
        fake_pump(&crew->fake);
        for (size_t i = 0; i < crew->fake.count; i++) {
            const struct fake_request *r = &crew->fake.requests[i];
            if (r->opcode == HG_OPCODE_GET && r->user[1] != r->key[0])
                atomic_fetch_add(&crew->strangers, 1);
        }
        crew->fake.count = 0; /* all are answered */
        int live = fake_live(&crew->fake);
        if (live > atomic_load(&crew->most))
            atomic_store(&crew->most, live);
        for (int i = 0; i < FAKE_CONNS; i++) {
            if (crew->fake.conns[i].fd >= 0 && crew->fake.conns[i].ended)
                fake_hang_up(&crew->fake, i);
        }
    }
    return NULL;
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct job *job = HG_CONTAINER_OF(call, struct job, call);
    if (++job->done > 1)
        atomic_fetch_add(&job->worker->twice, 1);
    atomic_fetch_add(result->fault == HG_FAULT_NONE ? &job->worker->answered[job->user]
                                                    : &job->worker->refused,
                     1);
}

static void on_room(struct hg_call *call)
{
    struct job *job = HG_CONTAINER_OF(call, struct job, call);
    (void)job->store->ops->submit(job->store, call);
}

/* Users come and go, at each worker others. */
static void ask(struct job *job, struct hg_prng *prng, uint64_t round)
{
    uint32_t busy = (uint32_t)(round / 3000 + job->worker->index) % USERS;
    job->user = hg_prng_below(prng, 4) == 0 ? (uint32_t)hg_prng_below(prng, USERS) : busy;
    job->done = 0;
    snprintf(job->key, sizeof job->key, "%u:%u", job->user, (unsigned)hg_prng_below(prng, 1000));
    job->call = (struct hg_call){.op = HG_OP_GET,
                                 .identity = job->worker->crew->ids[job->user],
                                 .key = hg_span_str(job->key),
                                 .key_hash = job->key[2],
                                 .on_done = on_done,
                                 .on_room = on_room};
    (void)job->store->ops->submit(job->store, &job->call);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct hg_prng prng = {worker->index};
    struct rig rig;
    rig_init(&rig);
    struct hg_store *store = rig_store(&rig, worker->crew->shared, worker->index, CONNECTIONS);
    for (int i = 0; i < UNDER_WAY; i++)
        worker->jobs[i] = (struct job){.worker = worker, .store = store, .done = 1};
    for (uint64_t round = 0; !atomic_load(&worker->crew->stop); round++) {
        hg_loop_turn(&rig.loop, false);
        bool idle = true;
        for (int i = 0; i < UNDER_WAY; i++) {
            if (worker->jobs[i].done == 0)
                continue;
            idle = false;
            ask(&worker->jobs[i], &prng, round);
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

static uint64_t answered(struct crew *crew, uint32_t worker, uint32_t user)
{
    return atomic_load(&crew->workers[worker].answered[user]);
}

static void wait_for_answers(struct crew *crew, uint64_t each)
{
    uint64_t deadline_us = bench_deadline();
    for (uint32_t w = 0; w < WORKERS; w++) {
        for (uint32_t u = 0; u < USERS; u++) {
            while (answered(crew, w, u) < each) {
                if (hg_now_us() > deadline_us)
                    fail_msg("user %u has %llu answers of worker %u", u,
                             (unsigned long long)answered(crew, w, u), w);
                poll(NULL, 0, 1);
            }
        }
    }
}

static void start(struct crew *crew, uint32_t depth)
{
    struct hg_remote_conf conf;
    struct hg_ring_server server;
    struct fake *fake = &crew->fake;
    memset(crew, 0, sizeof *crew);
    fake_open(fake, 0);
    fake->automatic = true;
    rig_conf(&conf, &server, &fake, 1);
    conf.pool_depth = depth;
    conf.pool_max_connections = CONNECTIONS;
    conf.times.queue_timeout_ms = conf.times.backend_timeout_ms = 60000;
    conf.times.connect_timeout_ms = 60000;
    crew->shared = rig_shared(&conf, WORKERS);
    for (uint32_t u = 0; u < USERS; u++) {
        char name[8];
        snprintf(name, sizeof name, "u%u", u);
        assert_int_equal(
            hg_identities_add(&crew->shared->identities, name, "password", 0, &crew->ids[u]), 0);
    }
}

static void never_too_many(uint32_t depth)
{
    static struct crew crew;
    pthread_t server;
    start(&crew, depth);
    atomic_store(&crew.pumping, true);
    assert_int_equal(pthread_create(&server, NULL, serve, &crew), 0);
    for (uint32_t w = 0; w < WORKERS; w++) {
        crew.workers[w].crew = &crew;
        crew.workers[w].index = w;
        assert_int_equal(pthread_create(&crew.workers[w].thread, NULL, work, &crew.workers[w]), 0);
    }
    wait_for_answers(&crew, 200);
    atomic_store(&crew.stop, true);
    for (uint32_t w = 0; w < WORKERS; w++) {
        pthread_join(crew.workers[w].thread, NULL);
        assert_int_equal(atomic_load(&crew.workers[w].twice), 0);
    }
    atomic_store(&crew.pumping, false);
    pthread_join(server, NULL);
    assert_int_equal(atomic_load(&crew.strangers), 0);
    assert_true(atomic_load(&crew.most) <= CONNECTIONS);
    assert_true(atomic_load(&crew.most) >= CONNECTIONS / 2);
    const struct hg_server *s = &crew.shared->servers[0];
    assert_int_equal(atomic_load(&s->lease.unowned), CONNECTIONS);
    assert_int_equal(s->breaker.live, 0);
    assert_int_equal(s->breaker.connecting, 0);
    assert_int_equal(rig_stat(crew.shared, 0, HG_UPSTREAM_CONNECTIONS), 0);
    assert_int_equal(rig_stat(crew.shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    assert_int_equal(rig_stat(crew.shared, 0, HG_UPSTREAM_WAITING), 0);
    hg_upstream_shared_free(crew.shared);
    fake_close(&crew.fake);
}

static void t_never_one_too_many(void **state)
{
    (void)state;
    never_too_many(8);
    never_too_many(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(t_never_one_too_many)};
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return cmocka_run_group_tests_name("domain_threads", tests, NULL, NULL);
}
