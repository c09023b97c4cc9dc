// t_ticketthreads - tickets under real threads: never too many out, no lost wake-up, no data race
// SPDX-License-Identifier: BSD-3-Clause
//
// Workers drive a holder as core/ticket.h says, each with connections of which one request at a
// time arrives, waits, runs, and ends; now and then a waiter is killed, its time is over, or its
// slot is stranded. A worker whose connections all wait (or have done their share) sleeps until it
// is poked. Once all sleep, nobody may wait while a ticket is available: that would be a lost
// wake-up, and it shows at once, not only after a time-out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/prng.h"
#include "core/ticket.h"
#include "core/ticketline.h"
#include "patience.h"

#define WORKERS_MAX 10
#define CONNS_MAX   8
#define SPINS       20000    // for one that runs; after that it probably does not
#define WATCHDOG_US 30000000 // without progress; a hang, however slow the machine is

enum conn_state { CONN_IDLE, CONN_WAITS, CONN_RUNS, CONN_STRANDED };

struct conn {
    struct hg_ticketline_waiter waiter;
    enum conn_state state;
    uint32_t left; // requests of this round
    uint32_t hold; // turns until it ends
};

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool poked, asleep, stop; // under the lock
    uint32_t index;
    struct hg_prng dice;
    uint64_t now_us;
    struct hg_ticketline line;
    struct hg_ticketline_tenant tenants[2];
    struct conn conns[CONNS_MAX];
    uint64_t arrived, served, killed, late; // read by the main thread while all sleep
};

static struct {
    uint32_t workers, conns, requests; // requests of a connection and round
    uint32_t kill_percent, late_percent, strand_percent, hold_max;
    uint32_t first_index; // of the workers, in the holder's bits
} with;
static struct hg_ticket holder;
static struct worker workers[WORKERS_MAX];
static const struct hg_ticketline_conf conf = {.queue_timeout_us = 100000000,
                                               .flood_wait_us = 1000};
static _Atomic int awake;
static _Atomic int64_t inside, most_inside, stranded, most; // running; most that may run
static _Atomic uint64_t too_many, progress;

static void poke(uint32_t index)
{
    if (index == HG_TICKET_NOBODY)
        return;
    struct worker *worker = &workers[index - with.first_index];
    pthread_mutex_lock(&worker->lock);
    worker->poked = true;
    if (worker->asleep) {
        worker->asleep = false;
        atomic_fetch_add(&awake, 1);
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&worker->lock);
}

/* ---- a worker ---- */

static void run(struct worker *worker, struct conn *conn)
{
    int64_t now_inside = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most_inside);
    if (now_inside > atomic_load(&most))
        atomic_fetch_add(&too_many, 1);
    while (now_inside > seen && !atomic_compare_exchange_weak(&most_inside, &seen, now_inside))
        ;
    conn->state = CONN_RUNS;
    conn->hold = (uint32_t)hg_prng_below(&worker->dice, with.hold_max + 1);
    worker->served++;
    atomic_fetch_add(&progress, 1);
}

static void leave_if_empty(struct worker *worker)
{
    if (worker->line.count == 0)
        poke(hg_ticket_leave(&holder, worker->index));
}

static void expire(struct worker *worker)
{
    struct hg_ticketline_waiter *waiter;
    while ((waiter = hg_ticketline_expire(&worker->line, &conf, worker->now_us)) != NULL) {
        HG_CONTAINER_OF(waiter, struct conn, waiter)->state = CONN_IDLE;
        worker->late++;
        atomic_fetch_add(&progress, 1);
    }
}

static void serve(struct worker *worker)
{
    struct hg_ticketline *line = &worker->line;
    expire(worker);
    while (line->count > 0 && hg_ticket_want(&holder, worker->index))
        run(worker,
            HG_CONTAINER_OF(hg_ticketline_pop(line, &conf, worker->now_us), struct conn, waiter));
    leave_if_empty(worker);
}

static void arrive(struct worker *worker, struct conn *conn)
{
    bool hurries = hg_prng_below(&worker->dice, 100) < with.late_percent;
    conn->left--;
    worker->arrived++;
    if (worker->line.count == 0 && hg_ticket_try(&holder)) {
        run(worker, conn);
        return;
    }
    if (hg_prng_below(&worker->dice, 8) == 0)
        patience_nap(); // anything may happen between the look and the bit
    conn->waiter.since_us = conn->waiter.came_us = worker->now_us;
    conn->waiter.deadline_us = worker->now_us + (hurries ? 30 : 100000000);
    conn->state = CONN_WAITS;
    hg_ticketline_push(&worker->line, &worker->tenants[hg_prng_below(&worker->dice, 2)],
                       &conn->waiter, worker->now_us);
    serve(worker);
}

static void end(struct worker *worker, struct conn *conn)
{
    bool strands = hg_prng_below(&worker->dice, 100) < with.strand_percent;
    conn->state = CONN_IDLE;
    if (strands) { // answered before its store has answered
        atomic_fetch_add(&stranded, 1);
        hg_ticket_force(&holder);
        conn->state = CONN_STRANDED;
        conn->hold = (uint32_t)hg_prng_below(&worker->dice, with.hold_max + 1);
    }
    atomic_fetch_sub(&inside, 1);
    poke(hg_ticket_put(&holder));
}

static void end_strand(struct conn *conn)
{
    conn->state = CONN_IDLE;
    atomic_fetch_sub(&stranded, 1);
    poke(hg_ticket_put(&holder));
}

static void kill_waiter(struct worker *worker, struct conn *conn)
{
    conn->state = CONN_IDLE;
    worker->killed++;
    hg_ticketline_remove(&worker->line, &conn->waiter, worker->now_us);
    leave_if_empty(worker);
}

/* One turn of its loop; false when only a poke can help. */
static bool turn(struct worker *worker)
{
    bool busy = false;
    worker->now_us += 1 + hg_prng_below(&worker->dice, 20);
    for (uint32_t i = 0; i < with.conns; i++) {
        struct conn *conn = &worker->conns[i];
        if (conn->state == CONN_IDLE && conn->left > 0)
            arrive(worker, conn);
        else if (conn->state == CONN_RUNS && conn->hold-- == 0)
            end(worker, conn);
        else if (conn->state == CONN_STRANDED && conn->hold-- == 0)
            end_strand(conn);
        else if (conn->state == CONN_WAITS && hg_prng_below(&worker->dice, 100) < with.kill_percent)
            kill_waiter(worker, conn);
    }
    expire(worker);
    leave_if_empty(worker);
    for (uint32_t i = 0; i < with.conns; i++) {
        const struct conn *conn = &worker->conns[i];
        busy |= conn->state == CONN_RUNS || conn->state == CONN_STRANDED ||
                (conn->state == CONN_IDLE && conn->left > 0);
    }
    return busy;
}

/* True: it was poked. Sleeps until then, if told to; false: it is to stop, or need not sleep. */
static bool take_poke(struct worker *worker, bool sleep, bool *ret_stop)
{
    bool poked;
    pthread_mutex_lock(&worker->lock);
    if (sleep && !worker->poked && !worker->stop) {
        worker->asleep = true;
        atomic_fetch_sub(&awake, 1);
        while (worker->asleep)
            pthread_cond_wait(&worker->wake, &worker->lock);
    }
    poked = worker->poked;
    worker->poked = false;
    *ret_stop = worker->stop;
    pthread_mutex_unlock(&worker->lock);
    return poked;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    for (bool busy = true, stop = false; !stop;) {
        if (take_poke(worker, !busy, &stop) && worker->line.count > 0)
            serve(worker);
        busy = turn(worker);
        if (hg_prng_below(&worker->dice, 64) == 0)
            patience_nap();
    }
    return NULL;
}

/* ---- the main thread ---- */

static void start(int64_t size)
{
    hg_ticket_init(&holder, size);
    atomic_store(&inside, 0);
    atomic_store(&most_inside, 0);
    atomic_store(&stranded, 0);
    atomic_store(&too_many, 0);
    atomic_store(&most, size);
    atomic_store(&awake, (int)with.workers);
    for (uint32_t w = 0; w < with.workers; w++) {
        struct worker *worker = &workers[w];
        *worker =
            (struct worker){.index = with.first_index + w, .dice = {w + 1}, .now_us = 1000000};
        hg_ticketline_init(&worker->line);
        hg_ticketline_tenant_init(&worker->tenants[0]);
        hg_ticketline_tenant_init(&worker->tenants[1]);
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->wake, NULL);
        assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
    }
}

static void print_state(void)
{
    print_error("size %lld out %lld awake %d inside %lld stranded %lld\n",
                (long long)hg_ticket_size(&holder), (long long)hg_ticket_out(&holder),
                atomic_load(&awake), (long long)atomic_load(&inside),
                (long long)atomic_load(&stranded));
    for (uint32_t w = 0; w < with.workers; w++) {
        const struct worker *worker = &workers[w];
        uint64_t bits = atomic_load(&holder.waiting);
        pthread_mutex_lock(&workers[w].lock);
        print_error("  worker %u: bit %d poked %d asleep %d", worker->index,
                    (int)(bits >> worker->index & 1), worker->poked, worker->asleep);
        if (worker->asleep) // else the line is not for us to look at
            print_error(" waiting %u", worker->line.count);
        print_error("\n");
        pthread_mutex_unlock(&workers[w].lock);
    }
}

static bool hangs(uint64_t *ret_seen, uint64_t *ret_since_us)
{
    uint64_t now_us = hg_now_us(), seen = atomic_load(&progress);
    if (seen != *ret_seen || *ret_since_us == 0) {
        *ret_seen = seen;
        *ret_since_us = now_us;
    }
    return now_us - *ret_since_us > WATCHDOG_US;
}

/* All sleep, so their lines may be looked at. */
static uint64_t count_waiters(void)
{
    uint64_t n = 0;
    for (uint32_t w = 0; w < with.workers; w++) {
        pthread_mutex_lock(&workers[w].lock);
        n += workers[w].line.count;
        pthread_mutex_unlock(&workers[w].lock);
    }
    return n;
}

/* Waits until all sleep, changing the size all the time when `sizes` is not 0: to less than that.
 */
static void wait_until_all_sleep(struct hg_prng *dice, uint32_t sizes)
{
    uint64_t seen = 0, since_us = 0;
    while (atomic_load(&awake) != 0) {
        if (sizes > 0)
            poke(hg_ticket_resize(&holder, (int64_t)hg_prng_below(dice, sizes)));
        patience_nap();
        if (hangs(&seen, &since_us)) {
            print_state();
            fail_msg("no progress");
        }
    }
    if (hg_ticket_available(&holder) > 0 && count_waiters() > 0) {
        print_state();
        fail_msg("they sleep while a ticket is available: a lost wake-up");
    }
}

/* Each connection has its requests, and the workers are told. */
static void begin_round(void)
{
    for (uint32_t w = 0; w < with.workers; w++) {
        pthread_mutex_lock(&workers[w].lock);
        for (uint32_t i = 0; i < with.conns; i++)
            workers[w].conns[i].left = with.requests;
        pthread_mutex_unlock(&workers[w].lock);
    }
    for (uint32_t w = 0; w < with.workers; w++)
        poke(with.first_index + w);
}

static void assert_all_is_done(int64_t size)
{
    uint64_t arrived = 0, ended = 0;
    assert_int_equal(count_waiters(), 0);
    assert_int_equal(hg_ticket_size(&holder), size);
    assert_int_equal(hg_ticket_out(&holder), 0);
    assert_int_equal(atomic_load(&inside), 0);
    assert_int_equal(atomic_load(&too_many), 0);
    assert_int_equal(atomic_load(&holder.waiting), 0);
    for (uint32_t w = 0; w < with.workers; w++) {
        struct worker *worker = &workers[w];
        pthread_mutex_lock(&worker->lock);
        arrived += worker->arrived;
        ended += worker->served + worker->killed + worker->late;
        pthread_mutex_unlock(&worker->lock);
    }
    assert_int_equal(arrived, ended);
}

static void stop(void)
{
    for (uint32_t w = 0; w < with.workers; w++) {
        pthread_mutex_lock(&workers[w].lock);
        workers[w].stop = true;
        pthread_mutex_unlock(&workers[w].lock);
        poke(with.first_index + w);
        pthread_join(workers[w].thread, NULL);
        pthread_mutex_destroy(&workers[w].lock);
        pthread_cond_destroy(&workers[w].wake);
    }
}

static void rounds(uint32_t n, int64_t size)
{
    struct hg_prng dice = {1};
    start(size);
    for (uint32_t round = 0; round < n; round++) {
        wait_until_all_sleep(&dice, 0);
        begin_round();
        wait_until_all_sleep(&dice, 0);
        assert_all_is_done(size);
    }
    stop();
}

/* MongoDB's scenario. */
static void test_highly_concurrent(void **state)
{
    (void)state;
    memset(&with, 0, sizeof with);
    with.workers = 10;
    with.conns = 1;
    with.requests = 50;
    with.hold_max = 3;
    rounds(100, 3);
    assert_int_equal(atomic_load(&most_inside), 3);
    assert_int_equal(hg_ticket_swap_peak(&holder), 3);
}

/* One ticket, which whoever gives it back must hand on. */
static void test_one_ticket(void **state)
{
    (void)state;
    memset(&with, 0, sizeof with);
    with.workers = 3;
    with.conns = 1;
    with.requests = 20;
    rounds(3000, 1);
    assert_int_equal(atomic_load(&most_inside), 1);
}

/* The last waiter of a worker dies or gives up just when it is poked. */
static void test_waiters_die(void **state)
{
    (void)state;
    memset(&with, 0, sizeof with);
    with.workers = 4;
    with.conns = 2;
    with.requests = 10;
    with.hold_max = 2;
    with.kill_percent = 20;
    with.late_percent = 30;
    with.first_index = HG_TICKET_WORKERS - WORKERS_MAX; // the highest bits
    rounds(1500, 1);
    rounds(1500, 2);
    uint64_t killed = 0, late = 0;
    for (uint32_t w = 0; w < with.workers; w++) {
        killed += workers[w].killed;
        late += workers[w].late;
    }
    assert_true(killed > 100 && late > 100);
}

/* Everything at once; sizes change all the time, to 0 as well. */
static void test_sizes_change_meanwhile(void **state)
{
    struct hg_prng dice = {5};
    (void)state;
    memset(&with, 0, sizeof with);
    with.workers = 4;
    with.conns = CONNS_MAX;
    with.requests = 20;
    with.hold_max = 5;
    with.kill_percent = 2;
    with.late_percent = 10;
    with.strand_percent = 10;
    start(7);
    wait_until_all_sleep(&dice, 0);
    for (uint32_t round = 0; round < 200; round++) {
        begin_round();
        wait_until_all_sleep(&dice, 8); // they may all wait for a size above 0
        poke(hg_ticket_resize(&holder, 7));
        wait_until_all_sleep(&dice, 0);
        assert_all_is_done(7);
        assert_int_equal(atomic_load(&stranded), 0);
    }
    stop();
    assert_true(hg_ticket_swap_peak(&holder) >= 7);
}

/* ---- two steps at the same moment ---- */

static _Atomic uint32_t go, ready;
static uint32_t named_by_put; // by `ready`

/* Without sleeping while the other runs, so that both are as close in time as they can be. */
static void spin_until(const _Atomic uint32_t *word, uint32_t value)
{
    for (uint32_t n = 1; atomic_load(word) != value; n++)
        if (n % SPINS == 0)
            patience_nap();
}

static void spin(uint32_t times)
{
    for (volatile uint32_t i = 0; i < times; i++)
        ;
}

static void *put_again_and_again(void *arg)
{
    uint32_t times = *(uint32_t *)arg;
    for (uint32_t i = 1; i <= times; i++) {
        spin_until(&go, i);
        spin(i % 61);
        named_by_put = hg_ticket_put(&holder);
        atomic_store(&ready, i);
    }
    return NULL;
}

/* Each time the one ticket is out, and `step` runs while it is put back. */
static void race(uint32_t times, void (*step)(uint32_t round))
{
    pthread_t thread;
    hg_ticket_init(&holder, 1);
    atomic_store(&go, 0);
    atomic_store(&ready, 0);
    assert_int_equal(pthread_create(&thread, NULL, put_again_and_again, &times), 0);
    for (uint32_t i = 1; i <= times; i++)
        step(i);
    pthread_join(thread, NULL);
}

/* The waiter gets the ticket, or is poked. */
static void want_while_put(uint32_t round)
{
    assert_true(hg_ticket_try(&holder));
    atomic_store(&go, round);
    spin(round * 7 % 67);
    bool has = hg_ticket_want(&holder, 0);
    spin_until(&ready, round);
    assert_true(has || named_by_put == 0);
    if (has)
        assert_int_equal(hg_ticket_put(&holder), 0);
    assert_int_equal(hg_ticket_leave(&holder, 0), HG_TICKET_NOBODY);
}

/* One worker's last waiter dies while the ticket is put back: the other worker is poked. */
static void leave_while_put(uint32_t round)
{
    uint32_t dies = round % 2, waits = 1 - dies;
    assert_true(hg_ticket_try(&holder));
    assert_false(hg_ticket_want(&holder, dies));
    assert_false(hg_ticket_want(&holder, waits));
    atomic_store(&go, round);
    spin(round * 7 % 67);
    uint32_t named = hg_ticket_leave(&holder, dies);
    spin_until(&ready, round);
    assert_true(named == waits || named_by_put == waits);
    assert_int_equal(hg_ticket_leave(&holder, waits), HG_TICKET_NOBODY);
}

static void test_want_while_put(void **state)
{
    (void)state;
    race(50000, want_while_put);
}

static void test_leave_while_put(void **state)
{
    (void)state;
    race(50000, leave_while_put);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_want_while_put),    cmocka_unit_test(test_leave_while_put),
        cmocka_unit_test(test_highly_concurrent), cmocka_unit_test(test_one_ticket),
        cmocka_unit_test(test_waiters_die),       cmocka_unit_test(test_sizes_change_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
