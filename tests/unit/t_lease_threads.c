// t_lease_threads - workers in threads never hold more than the limit, and none starves
// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "back/lease.h"

#define WORKERS 4
#define LIMIT   13
#define TICKS   200000

/* `open` is what a server would count. */
struct town {
    struct hg_lease lease;
    _Atomic uint32_t open;
    _Atomic bool too_many, starved;
    _Atomic uint32_t ended;
};

struct worker {
    struct town *town;
    uint32_t index;
    uint64_t seed;
    uint32_t held;
    uint64_t now;
    uint64_t got; /* units, ever */
    pthread_t thread;
};

static uint32_t next_random(struct worker *worker)
{
    worker->seed = worker->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(worker->seed >> 33);
}

static bool take(struct worker *worker)
{
    struct town *town = worker->town;
    if (!hg_lease_take(&town->lease, worker->index))
        return false;
    worker->held++;
    worker->got++;
    if (atomic_fetch_add_explicit(&town->open, 1, memory_order_relaxed) >= LIMIT)
        atomic_store(&town->too_many, true);
    return true;
}

static void put(struct worker *worker)
{
    worker->held--;
    atomic_fetch_sub_explicit(&worker->town->open, 1, memory_order_relaxed);
    hg_lease_put(&worker->town->lease, worker->index);
}

/* Lives for a while with one wish after the other, then ends and begins anew. */
static void live(struct worker *worker)
{
    struct hg_lease *lease = &worker->town->lease;
    hg_lease_open(lease, worker->index, worker->now);
    uint32_t wish = 0;
    for (uint32_t tick = 0; tick < TICKS / 10; tick++) {
        if (tick % 50 == 0)
            wish = next_random(worker) % 3 == 0 ? 0 : next_random(worker) % (LIMIT + 1);
        while (worker->held < wish && take(worker))
            ;
        while (worker->held > 0 && worker->held > hg_lease_capacity(lease, worker->index))
            put(worker);
        if (worker->held > wish && next_random(worker) % 4 == 0)
            put(worker);
        uint32_t wanted = wish > worker->held ? wish - worker->held : 0;
        uint32_t idle = worker->held > wish ? worker->held - wish : 0;
        worker->now += HG_LEASE_PLAN_US / 4;
        hg_lease_tick(lease, worker->index, wanted, idle, worker->now);
    }
    while (worker->held > 0)
        put(worker);
    hg_lease_close(lease, worker->index);
}

static void *run(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < 10; i++)
        live(worker);
    return NULL;
}

static void launch(struct town *town, struct worker *workers, void *(*fn)(void *))
{
    assert_int_equal(hg_lease_init(&town->lease, LIMIT, WORKERS), 0);
    for (uint32_t w = 0; w < WORKERS; w++) {
        workers[w] = (struct worker){.town = town, .index = w, .seed = w + 1, .now = 1000000};
        assert_int_equal(pthread_create(&workers[w].thread, NULL, fn, &workers[w]), 0);
    }
    for (uint32_t w = 0; w < WORKERS; w++)
        pthread_join(workers[w].thread, NULL);
    assert_false(atomic_load(&town->too_many));
    assert_int_equal(town->lease.unowned, LIMIT);
    hg_lease_fini(&town->lease);
}

static void t_never_too_many(void **state)
{
    (void)state;
    struct town town = {0};
    struct worker workers[WORKERS];
    launch(&town, workers, run);
    for (uint32_t w = 0; w < WORKERS; w++)
        assert_true(workers[w].got > 0);
}

/* All want all, all the time; each closes what it has to. A time of patience is so many ticks of
   its own during which the others have ticked as well. */
struct meeting {
    struct town town;
    pthread_barrier_t barrier;
};

/* One after the other's tick, in threads: worker 0 is greedy and begins alone. */
static void *compete(void *arg)
{
    struct worker *worker = arg;
    struct meeting *meeting = (struct meeting *)worker->town;
    struct hg_lease *lease = &worker->town->lease;
    if (worker->index == 0)
        hg_lease_open(lease, 0, worker->now);
    uint32_t waited = 0;
    for (uint32_t tick = 0; tick < 200; tick++) {
        pthread_barrier_wait(&meeting->barrier);
        worker->now += HG_LEASE_PLAN_US;
        if (tick == 20 * worker->index && worker->index > 0)
            hg_lease_open(lease, worker->index, worker->now);
        if (tick < 20 * worker->index)
            continue;
        while (take(worker))
            ;
        while (worker->held > hg_lease_capacity(lease, worker->index))
            put(worker);
        hg_lease_tick(lease, worker->index, LIMIT, 0, worker->now);
        /* Those who came before yield; nobody waits for his part longer than this. */
        waited = worker->held < LIMIT / WORKERS ? waited + 1 : 0;
        if (waited > 6)
            atomic_store(&worker->town->starved, true);
    }
    pthread_barrier_wait(&meeting->barrier);
    if (worker->held < LIMIT / WORKERS || worker->held > LIMIT / WORKERS + 1)
        atomic_store(&worker->town->starved, true);
    pthread_barrier_wait(&meeting->barrier);
    while (worker->held > 0)
        put(worker);
    hg_lease_close(lease, worker->index);
    return NULL;
}

static void t_nobody_starves(void **state)
{
    (void)state;
    struct meeting meeting = {0};
    struct worker workers[WORKERS];
    pthread_barrier_init(&meeting.barrier, NULL, WORKERS);
    launch(&meeting.town, workers, compete);
    pthread_barrier_destroy(&meeting.barrier);
    assert_false(atomic_load(&meeting.town.starved));
    /* Nothing goes to and fro: each unit was taken about as often as somebody came. */
    uint64_t got = 0;
    for (uint32_t w = 0; w < WORKERS; w++)
        got += workers[w].got;
    assert_true(got <= (uint64_t)LIMIT * WORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_never_too_many),
        cmocka_unit_test(t_nobody_starves),
    };
    return cmocka_run_group_tests_name("lease_threads", tests, NULL, NULL);
}
