// t_relay_threads - workers in threads share a server that one of them owns
// SPDX-License-Identifier: BSD-3-Clause
#include "daemon.h"
#include "rig.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define WORKERS_MAX 4
#define CLIENTS     24
#define CHAIN       6 /* calls of a client that are under way together */
#define LONG_VALUE  3000

struct crew;
struct worker;
struct client;

/* A call of a client; from the heap, so that a sanitizer sees who touches one that was freed. */
struct step {
    struct hg_call call;
    struct client *client;
    struct step *next;
    char expected[16]; /* of a get; what a set sets */
    char value[LONG_VALUE];
    char key[32];
    uint64_t since_us;
};

/* Sets its key to one number after the other, and gets it in between: each get must find what the
   set before it set. */
struct client {
    struct worker *worker;
    uint32_t index;
    unsigned number, round;
    unsigned steps;
    struct step *first, *last;
};

struct worker {
    struct crew *crew;
    uint32_t index;
    pthread_t thread;
    struct rig rig;
    struct hg_store *store;
    uint64_t seed;
    uint64_t answered, faults, cancelled, wrong, doubled;
    _Atomic uint64_t so_far; /* answers */
    uint64_t waited_us;
    struct client clients[CLIENTS];
};

struct crew {
    struct hg_upstream_shared *shared;
    uint32_t workers, chain;
    bool storms, apart; /* some calls go in quarantine */
    _Atomic int64_t stranded;
    _Atomic uint64_t strands; /* times that a slot became so */
    _Atomic int phase;        /* 1: the owner leaves, 2: all leave */
    struct worker list[WORKERS_MAX];
};

static uint32_t next_random(struct worker *worker)
{
    worker->seed = worker->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(worker->seed >> 33);
}

static void on_strand(void *ctx, uint32_t server, uint64_t ticket, int change)
{
    (void)server;
    struct crew *crew = ctx;
    (void)ticket;
    atomic_fetch_add_explicit(&crew->stranded, change, memory_order_relaxed);
    if (change > 0)
        atomic_fetch_add_explicit(&crew->strands, 1, memory_order_relaxed);
}

static void unlink_step(struct client *client, struct step *step)
{
    struct step **at = &client->first;
    while (*at != NULL && *at != step)
        at = &(*at)->next;
    if (*at == NULL) {
        client->worker->doubled++;
        return;
    }
    *at = step->next;
    if (client->last == step) {
        client->last = NULL;
        for (struct step *other = client->first; other != NULL; other = other->next)
            client->last = other;
    }
    client->steps--;
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct step *step = HG_CONTAINER_OF(call, struct step, call);
    struct client *client = step->client;
    struct worker *worker = client->worker;
    unlink_step(client, step);
    if (result->fault != HG_FAULT_NONE) {
        worker->faults++;
        client->round++; /* nobody knows what the key holds */
    } else {
        worker->answered++;
        atomic_store_explicit(&worker->so_far, worker->answered, memory_order_relaxed);
        worker->waited_us += worker->rig.loop.now_us - step->since_us;
        size_t len = strlen(step->expected);
        if (result->status != HG_STATUS_SUCCESS ||
            (call->op == HG_OP_GET &&
             (result->value.len < len || memcmp(result->value.at, step->expected, len) != 0)))
            worker->wrong++;
    }
    free(step);
}

static void on_room(struct hg_call *call)
{
    struct step *step = HG_CONTAINER_OF(call, struct step, call);
    struct client *client = step->client;
    call->after = NULL;
    for (struct step *other = client->first; other != step; other = other->next)
        call->after = strcmp(other->key, step->key) == 0 ? &other->call : call->after;
    call->now_us = client->worker->rig.loop.now_us;
    (void)client->worker->store->ops->submit(client->worker->store, call);
}

static void go_on(struct client *client)
{
    struct worker *worker = client->worker;
    struct step *step = calloc(1, sizeof *step);
    bool is_get = client->number % 2 == 1;
    step->client = client;
    step->since_us = worker->rig.loop.now_us;
    snprintf(step->key, sizeof step->key, "%u:%u:%u", worker->index, client->index, client->round);
    snprintf(step->expected, sizeof step->expected, "%u.", client->number / 2);
    memset(step->value, 'x', sizeof step->value);
    memcpy(step->value, step->expected, strlen(step->expected));
    client->number++;
    step->call = (struct hg_call){.op = is_get ? HG_OP_GET : HG_OP_SET,
                                  .ticket = is_get ? 1 : 2,
                                  .key = hg_span_str(step->key),
                                  .now_us = step->since_us,
                                  .on_done = on_done,
                                  .on_room = on_room};
    if (!is_get)
        step->call.value = hg_span(step->value, client->number % 8 == 1 ? sizeof step->value : 100);
    step->call.quarantine = worker->crew->apart && next_random(worker) % 16 == 0;
    if (client->last != NULL && strcmp(client->last->key, step->key) == 0)
        step->call.after = &client->last->call;
    if (client->last != NULL)
        client->last->next = step;
    else
        client->first = step;
    client->last = step;
    client->steps++;
    (void)worker->store->ops->submit(worker->store, &step->call);
}

/* The client leaves with all that it has under way; another comes in its place. */
static void leave(struct client *client)
{
    struct worker *worker = client->worker;
    while (client->last != NULL) {
        struct step *step = client->last;
        worker->store->ops->cancel(worker->store, &step->call);
        worker->cancelled++;
        unlink_step(client, step);
        free(step);
    }
    client->round++;
    client->number += client->number % 2; /* begins with a set */
}

/* As a session: not while its last call waits for room, nor with too many under way. A key that a
   fault has made doubtful is left, and the next begins with a set. */
static bool may_go_on(struct client *client)
{
    if (client->steps == 0) {
        client->number += client->round != 0 ? client->number % 2 : 0;
        return true;
    }
    return client->steps < client->worker->crew->chain && !client->last->call.place.waiting;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct crew *crew = worker->crew;
    rig_init(&worker->rig);
    worker->store = rig_store(&worker->rig, crew->shared, worker->index, 2);
    worker->store->on_strand = on_strand;
    worker->store->strand_ctx = crew;
    while (atomic_load(&crew->phase) == 0 ||
           (worker->index > 0 && atomic_load(&crew->phase) == 1)) {
        uint64_t before = worker->answered;
        hg_loop_turn(&worker->rig.loop, false);
        for (uint32_t i = 0; i < CLIENTS; i++) {
            if (may_go_on(&worker->clients[i]))
                go_on(&worker->clients[i]);
            if (crew->storms && next_random(worker) % 2000 == 0)
                for (uint32_t c = 0; c < CLIENTS; c++)
                    leave(&worker->clients[c]);
        }
        if (crew->storms && next_random(worker) % 20000 == 0)
            poll(NULL, 0, 20); /* a long turn: nobody gets anything from it */
        if (worker->answered == before)
            poll(NULL, 0, 0);
    }
    worker->store->ops->free(worker->store);
    for (uint32_t i = 0; i < CLIENTS; i++)
        assert_null(worker->clients[i].first);
    rig_fini(&worker->rig);
    return NULL;
}

#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        PATIENCE_UNTIL(condition, poll(NULL, 0, 1));                                               \
    } while (0)

static struct daemon daemon_one;

static void crew_start(struct crew *crew, const char *address, uint32_t workers, uint32_t chain)
{
    struct hg_remote_conf conf;
    struct hg_ring_server server;
    memset(crew, 0, sizeof *crew);
    hg_remote_conf_init(&conf);
    server = (struct hg_ring_server){address, 1};
    conf.name = "crew";
    conf.ring.servers = &server;
    conf.ring.count = 1;
    conf.pool_max_connections = 2; /* less than 2 x workers */
    conf.pool_depth = chain == 1 ? 1 : 64;
    conf.times.queue_timeout_ms = conf.times.backend_timeout_ms = 20000;
    crew->shared = rig_shared(&conf, workers);
    crew->workers = workers;
    crew->chain = chain;
    for (uint32_t w = 0; w < workers; w++) {
        struct worker *worker = &crew->list[w];
        worker->crew = crew;
        worker->index = w;
        worker->seed = w + 1;
        for (uint32_t i = 0; i < CLIENTS; i++)
            worker->clients[i] = (struct client){.worker = worker, .index = i};
    }
}

static void crew_run(struct crew *crew)
{
    for (uint32_t w = 0; w < crew->workers; w++)
        assert_int_equal(pthread_create(&crew->list[w].thread, NULL, work, &crew->list[w]), 0);
}

static void wait_for(struct crew *crew, uint64_t answers)
{
    for (uint32_t w = 0; w < crew->workers; w++)
        WAIT_UNTIL(atomic_load(&crew->list[w].so_far) >= answers);
}

/* The owner leaves in the midst of it, then the others. */
static void crew_stop(struct crew *crew)
{
    atomic_store(&crew->phase, 1);
    pthread_join(crew->list[0].thread, NULL);
    atomic_store(&crew->phase, 2);
    for (uint32_t w = 1; w < crew->workers; w++)
        pthread_join(crew->list[w].thread, NULL);
    for (uint32_t w = 0; w < crew->workers; w++) {
        assert_int_equal(crew->list[w].wrong, 0);
        assert_int_equal(crew->list[w].doubled, 0);
        const struct hg_upstream_counters *counters = &crew->shared->servers[0].counters[w];
        assert_int_equal(hg_counter_get(&counters->values[HG_UPSTREAM_REQUESTS]) > 0, w == 0);
    }
    assert_int_equal(atomic_load(&crew->stranded), 0);
    assert_int_equal(rig_stat(crew->shared, 0, HG_UPSTREAM_BAD_REPLIES), 0);
    assert_int_equal(rig_stat(crew->shared, 0, HG_UPSTREAM_CONNECTIONS), 0);
    assert_true(crew->apart || rig_stat(crew->shared, 0, HG_UPSTREAM_CONNECTS) <= 2);
    hg_upstream_shared_free(crew->shared);
}

static void run_quietly(uint32_t workers)
{
    static struct crew crew;
    daemon_launch(&daemon_one);
    crew_start(&crew, daemon_one.address, workers, CHAIN);
    crew_run(&crew);
    wait_for(&crew, 3000);
    crew_stop(&crew);
    daemon_put_down(&daemon_one);
}

static void t_two(void **state)
{
    (void)state;
    run_quietly(2);
}

static void t_four(void **state)
{
    (void)state;
    run_quietly(4);
}

/* Clients come and go by the dozen, and workers are away for a while. */
static void t_storms(void **state)
{
    (void)state;
    static struct crew crew;
    daemon_launch(&daemon_one);
    crew_start(&crew, daemon_one.address, 4, CHAIN);
    crew.storms = true;
    crew_run(&crew);
    wait_for(&crew, 3000);
    crew_stop(&crew);
    daemon_put_down(&daemon_one);
    for (uint32_t w = 0; w < 4; w++)
        assert_true(crew.list[w].cancelled > 0);
    print_message("%llu slots stranded\n", (unsigned long long)atomic_load(&crew.strands));
    assert_true(atomic_load(&crew.strands) > 0);
}

/* Now and then one goes in quarantine: each get still finds what the set before it has set. */
static void t_apart(void **state)
{
    (void)state;
    static struct crew crew;
    daemon_launch(&daemon_one);
    crew_start(&crew, daemon_one.address, 3, CHAIN);
    crew.storms = crew.apart = true;
    crew_run(&crew);
    wait_for(&crew, 3000);
    WAIT_UNTIL(rig_stat(crew.shared, 0, HG_UPSTREAM_QUARANTINED) > 0);
    crew_stop(&crew);
    daemon_put_down(&daemon_one);
    for (uint32_t w = 0; w < 3; w++)
        assert_true(crew.list[w].cancelled > 0);
}

/* Answers one request a millisecond. */
static void serve_slowly(struct fake *fake)
{
    for (size_t i = 0; i < fake->count; i++) {
        struct fake_request *request = &fake->requests[i];
        if (!request->answered) {
            fake_answer(fake, request, 0, "");
            break;
        }
    }
    poll(NULL, 0, 1);
    fake_pump(fake);
}

/* Two workers with as many clients wait equally long for the few slots that one of them has. */
static void t_fair(void **state)
{
    (void)state;
    static struct crew crew;
    struct fake fake;
    fake_open(&fake, 0);
    crew_start(&crew, fake.address, 2, 1);
    crew_run(&crew);
    uint64_t deadline = bench_deadline();
    while (fake.count < 800 && hg_now_us() < deadline)
        serve_slowly(&fake);
    assert_true(fake.count >= 800);
    double waits[2], answers[2];
    atomic_store(&crew.phase, 2);
    for (uint32_t w = 0; w < 2; w++)
        pthread_join(crew.list[w].thread, NULL);
    for (uint32_t w = 0; w < 2; w++) {
        answers[w] = (double)crew.list[w].answered;
        waits[w] = (double)crew.list[w].waited_us / answers[w];
    }
    hg_upstream_shared_free(crew.shared);
    fake_close(&fake);
    print_message("mean waits: %.0f us here, %.0f us by way of it\n", waits[0], waits[1]);
    assert_true(waits[1] < 1.25 * waits[0] && waits[0] < 1.25 * waits[1]);
    assert_true(answers[1] < 1.25 * answers[0] && answers[0] < 1.25 * answers[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_two),
        cmocka_unit_test(t_four),
        cmocka_unit_test(t_storms),
        cmocka_unit_test(t_apart),
    };
    const struct CMUnitTest measures[] = {cmocka_unit_test(t_fair)};
    if (!daemon_is_installed())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_level(HG_LOG_ERROR);
    return patience_measures() ? cmocka_run_group_tests_name("relay_threads", measures, NULL, NULL)
                               : cmocka_run_group_tests_name("relay_threads", tests, NULL, NULL);
}
