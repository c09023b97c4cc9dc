// t_creditthreads - the credits under real threads: exact limits, no lost wake-ups, no data race
// SPDX-License-Identifier: BSD-3-Clause
//
// Four workers with closed-loop connections that need no time for a request, and a main thread that
// ticks: either when nobody can do anything any more (then each slot must have had exactly its
// limit, or a wake-up was lost), or all the time (then no slot may have had more).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "base/prng.h"
#include "core/credittick.h"
#include "core/held.h"
#include "patience.h"

#define WORKERS 4
#define BUCKETS 3
#define CONNS   12 // a worker and bucket, at most
#define SLOTS   4096
#define SPINS   20000 // for one that runs; after that it probably does not

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint32_t poked; // bit a bucket; under the lock
    bool asleep, stop;
    uint32_t index, held[BUCKETS];
    struct hg_prng dice;
};

static struct hg_credit_node node;
static struct hg_credit_bucket buckets[BUCKETS];
static struct hg_credit_bucket *all[BUCKETS];
static struct hg_credit_lane lanes[BUCKETS][WORKERS];
static struct hg_fair scratch[BUCKETS];
static struct worker workers[WORKERS];
static uint32_t conns[BUCKETS]; // a worker
static uint32_t undo_percent;
static _Atomic int64_t admitted[BUCKETS][SLOTS];
static _Atomic int awake; // workers that are not asleep

static void poke(uint32_t w, uint32_t mask)
{
    struct worker *worker = &workers[w];
    pthread_mutex_lock(&worker->lock);
    worker->poked |= mask;
    if (worker->asleep) {
        worker->asleep = false;
        atomic_fetch_add(&awake, 1);
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&worker->lock);
}

static void poke_all(uint64_t set, uint32_t mask)
{
    for (uint32_t w = 0; w < WORKERS; w++)
        if (set >> w & 1)
            poke(w, mask);
}

static void take_advice(uint32_t w, uint32_t b, struct hg_held_advice advice)
{
    if (advice.again)
        poke(w, 1u << b);
    poke_all(advice.poke, 1u << b);
}

static struct hg_held held_of(const struct worker *worker, uint32_t b)
{
    uint32_t n = worker->held[b];
    return (struct hg_held){n, n != 0, worker->index, n};
}

/* Admitted: counted; now and then given back at once, and whoever waits for it is told. */
static void account(struct worker *worker, uint32_t b, struct hg_charge *charge)
{
    int64_t units = charge->units;
    _Atomic int64_t *sum = &admitted[b][charge->slot % SLOTS];
    atomic_fetch_add(sum, units);
    if (hg_prng_below(&worker->dice, 100) >= undo_percent)
        return;
    atomic_fetch_sub(sum, units);
    if (hg_credit_undo(&node, &buckets[b], charge))
        poke_all(hg_held_holders(&node, &buckets[b]), 1u << b);
}

static void make_pass(struct worker *worker, uint32_t b)
{
    struct hg_held_pass pass;
    struct hg_charge passed[CONNS];
    struct hg_held held;
    uint32_t n = 0;
    if (worker->held[b] == 0)
        return;
    if (hg_held_pass_begin(&node, &buckets[b], worker->index, &pass))
        while (worker->held[b] > 0 &&
               hg_held_decide(&node, &buckets[b], &pass, 1, 0, &passed[n]) == HG_CREDIT_PASS) {
            worker->held[b]--;
            n++;
        }
    held = held_of(worker, b);
    take_advice(worker->index, b,
                hg_held_pass_done(&node, &buckets[b], worker->index, &pass, &held));
    for (uint32_t i = 0; i < n; i++)
        account(worker, b, &passed[i]);
}

/* One request of a connection that is not held; false when all are. */
static bool request(struct worker *worker, uint32_t b)
{
    struct hg_charge charge;
    struct hg_held held;
    if (worker->held[b] == conns[b])
        return false;
    if (hg_credit_decide(&node, &buckets[b], 1, 0, &charge) == HG_CREDIT_PASS) {
        account(worker, b, &charge);
        return true;
    }
    worker->held[b]++;
    if (hg_prng_below(&worker->dice, 4) == 0)
        patience_nap(); // anything may happen between the verdict and its publication
    held = held_of(worker, b);
    take_advice(worker->index, b,
                hg_held_publish(&node, &buckets[b], worker->index, &held, &charge));
    return true;
}

/* Waits until there is a poke; 0 when told to stop. */
static uint32_t sleep_until_poked(struct worker *worker)
{
    uint32_t poked;
    pthread_mutex_lock(&worker->lock);
    if (worker->poked == 0 && !worker->stop) {
        worker->asleep = true;
        atomic_fetch_sub(&awake, 1);
        while (worker->asleep)
            pthread_cond_wait(&worker->wake, &worker->lock);
    }
    poked = worker->poked;
    worker->poked = 0;
    pthread_mutex_unlock(&worker->lock);
    return poked;
}

static uint32_t take_pokes(struct worker *worker)
{
    uint32_t poked;
    pthread_mutex_lock(&worker->lock);
    poked = worker->poked;
    worker->poked = 0;
    pthread_mutex_unlock(&worker->lock);
    return poked;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    for (;;) {
        uint32_t poked = take_pokes(worker);
        bool busy = false;
        for (uint32_t turn = 0; turn < 16; turn++)
            for (uint32_t b = 0; b < BUCKETS; b++)
                busy |= request(worker, b);
        if (!busy && poked == 0)
            poked = sleep_until_poked(worker);
        for (uint32_t b = 0; b < BUCKETS; b++)
            if (poked >> b & 1)
                make_pass(worker, b);
        if (!busy && poked == 0)
            return NULL; // stopped
    }
}

static void setup(uint64_t capacity, enum hg_free_pool mode, uint32_t undo)
{
    struct hg_credit_settings settings = {capacity, 1000, mode, 100};
    memset(admitted, 0, sizeof admitted);
    hg_credit_init(&node, &settings, WORKERS);
    undo_percent = undo;
    for (uint32_t b = 0; b < BUCKETS; b++)
        all[b] = &buckets[b];
}

static void add_bucket(uint32_t b, uint64_t reserved, uint64_t hard_limit, uint32_t n_conns)
{
    hg_credit_bucket_init(&node, &buckets[b], lanes[b], reserved, hard_limit);
    conns[b] = n_conns;
}

static uint64_t tick_only(void)
{
    struct hg_credit_tick ret;
    hg_credit_tick(&node, all, BUCKETS, scratch, hg_credit_due_us(&node), &ret);
    return ret.poke;
}

static void tick(void)
{
    poke_all(tick_only(), (1u << BUCKETS) - 1);
}

static void start(void)
{
    struct hg_credit_tick ret;
    hg_credit_tick(&node, all, BUCKETS, scratch, 1000000, &ret);
    atomic_store(&awake, WORKERS);
    for (uint32_t w = 0; w < WORKERS; w++) {
        workers[w] = (struct worker){.index = w, .dice = {w + 1}};
        pthread_mutex_init(&workers[w].lock, NULL);
        pthread_cond_init(&workers[w].wake, NULL);
    }
    for (uint32_t w = 0; w < WORKERS; w++)
        assert_int_equal(pthread_create(&workers[w].thread, NULL, work, &workers[w]), 0);
}

static void wait_until_all_sleep(void)
{
    PATIENCE_UNTIL(atomic_load(&awake) == 0, patience_nap());
}

static void stop(void)
{
    wait_until_all_sleep();
    for (uint32_t w = 0; w < WORKERS; w++) {
        pthread_mutex_lock(&workers[w].lock);
        workers[w].stop = true;
        pthread_mutex_unlock(&workers[w].lock);
        poke(w, 0);
        pthread_join(workers[w].thread, NULL);
        pthread_mutex_destroy(&workers[w].lock);
        pthread_cond_destroy(&workers[w].wake);
    }
}

static int64_t sum_in(uint32_t b, uint32_t slot)
{
    return atomic_load(&admitted[b][slot % SLOTS]);
}

/* With everybody asleep: the gauges say what was admitted, to the unit. */
static void assert_gauges(uint32_t slot)
{
    struct hg_credit_view view;
    uint64_t beyond = 0;
    for (uint32_t b = 0; b < BUCKETS; b++) {
        hg_credit_view(&node, &buckets[b], &view);
        assert_int_equal(view.used, sum_in(b, slot));
        beyond += view.used > view.effective ? view.used - view.effective : 0;
    }
    if (view.pool != HG_UNITS_UNLIMITED)
        assert_int_equal(view.pool_used, beyond);
}

static void test_each_slot_has_exactly_its_limit(void **state)
{
    (void)state;
    for (uint32_t undo = 0; undo <= 20; undo += 20) {
        setup(HG_UNITS_UNLIMITED, HG_FREE_POOL_FIRST_COME, undo);
        add_bucket(0, 0, 200, 1);
        add_bucket(1, 50, 37, 3); // less than is held: grants
        add_bucket(2, 10, 60, 12);
        start();
        for (uint32_t slot = 1; slot < 200; slot++) {
            wait_until_all_sleep();
            assert_int_equal(sum_in(0, slot), 200);
            assert_int_equal(sum_in(1, slot), 37);
            assert_int_equal(sum_in(2, slot), 60);
            assert_gauges(slot);
            tick();
        }
        stop();
    }
}

/* Little to have for many: whoever charges last in a slot is seldom alone. */
static void test_small_limits_are_fought_over(void **state)
{
    (void)state;
    setup(9, HG_FREE_POOL_FIRST_COME, 0);
    add_bucket(0, 2, HG_UNITS_UNLIMITED, 6);
    add_bucket(1, 0, HG_UNITS_UNLIMITED, 6);
    add_bucket(2, 0, 1, 6);
    start();
    for (uint32_t slot = 1; slot < 1500; slot++) {
        wait_until_all_sleep();
        assert_int_equal(sum_in(0, slot) + sum_in(1, slot) + sum_in(2, slot), 9);
        assert_true(sum_in(2, slot) <= 1);
        assert_gauges(slot);
        tick();
    }
    stop();
}

static _Atomic uint32_t go, ready;

/* Without sleeping while the other runs, so that both are as close in time as they can be. */
static void spin_until(const _Atomic uint32_t *word, uint32_t value)
{
    for (uint32_t n = 1; atomic_load(word) != value; n++)
        if (n % SPINS == 0)
            patience_nap();
}

/* The advice is not what this is about, but there is nobody else to poke. */
static void take_advice_of_nobody(struct hg_held_advice advice)
{
    assert_int_equal(advice.poke, 0);
}

static void *hold_and_drop(void *arg)
{
    struct hg_charge behind = {.reason = HG_CREDIT_BEHIND};
    struct hg_held some = {2, 1, 7, 2}, none = {0};
    uint32_t rounds = *(uint32_t *)arg;
    for (uint32_t i = 1; i <= rounds; i++) {
        take_advice_of_nobody(hg_held_publish(&node, &buckets[0], 1, &some, &behind));
        atomic_store(&ready, i);
        spin_until(&go, i);
        for (volatile uint32_t spin = 0; spin < i % 300; spin++)
            ;
        take_advice_of_nobody(hg_held_publish(&node, &buckets[0], 1, &none, NULL));
        atomic_store(&ready, 0);
        spin_until(&go, 0);
    }
    return NULL;
}

/* A list that becomes empty while the tick makes a grant for it: somebody closes the grant. */
static void test_no_grant_stays_open_for_an_empty_list(void **state)
{
    uint32_t rounds = 50000;
    pthread_t thread;
    (void)state;
    setup(1, HG_FREE_POOL_FIRST_COME, 0);
    add_bucket(0, 0, HG_UNITS_UNLIMITED, 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_and_drop, &rounds), 0);
    for (uint32_t i = 1; i <= rounds; i++) {
        spin_until(&ready, i);
        atomic_store(&go, i);
        for (volatile uint32_t spin = 0; spin < i * 7 % 3000; spin++)
            ;
        hg_held_plan(&node, &buckets[0], 1, false);
        spin_until(&ready, 0);
        assert_false(hg_held_any(&buckets[0]));
        atomic_store(&go, 0);
    }
    pthread_join(thread, NULL);
}

static void test_a_pool_is_used_up_exactly(void **state)
{
    (void)state;
    setup(300, HG_FREE_POOL_FIRST_COME, 0);
    add_bucket(0, 0, HG_UNITS_UNLIMITED, 1);
    add_bucket(1, 50, HG_UNITS_UNLIMITED, 3);
    add_bucket(2, 100, HG_UNITS_UNLIMITED, 12);
    start();
    for (uint32_t slot = 1; slot < 200; slot++) {
        wait_until_all_sleep();
        assert_int_equal(sum_in(0, slot) + sum_in(1, slot) + sum_in(2, slot), 300);
        assert_true(sum_in(1, slot) >= (slot > 1 ? 50 : 0));
        assert_true(sum_in(2, slot) >= (slot > 1 ? 100 : 0));
        assert_gauges(slot);
        tick();
    }
    stop();
}

/* Ticks (fair: and slices) all the time, refunds too. */
static void hammer(enum hg_free_pool mode)
{
    struct hg_charge charge;
    setup(300, mode, 10);
    add_bucket(0, 0, 200, 1);
    add_bucket(1, 50, HG_UNITS_UNLIMITED, 3);
    add_bucket(2, 10, 60, 12);
    start();
    for (int i = 0; i < 3000; i++) {
        tick();
        for (int spin = 0; spin < i % 7; spin++)
            sched_yield();
    }
    stop();
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        assert_true(sum_in(0, slot) <= 200);
        assert_true(sum_in(2, slot) <= 60);
        assert_true(sum_in(0, slot) + sum_in(1, slot) + sum_in(2, slot) <= 300);
    }
    (void)tick_only();
    if (mode == HG_FREE_POOL_FIRST_COME) // nothing is left over from one slot in the next
        assert_int_equal(hg_credit_decide(&node, &buckets[1], 50, HG_CREDIT_RETRY, &charge),
                         HG_CREDIT_PASS);
}

static void test_no_slot_has_more_first_come(void **state)
{
    (void)state;
    hammer(HG_FREE_POOL_FIRST_COME);
}

static void test_no_slot_has_more_fair(void **state)
{
    (void)state;
    hammer(HG_FREE_POOL_FAIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_slot_has_exactly_its_limit),
        cmocka_unit_test(test_a_pool_is_used_up_exactly),
        cmocka_unit_test(test_small_limits_are_fought_over),
        cmocka_unit_test(test_no_grant_stays_open_for_an_empty_list),
        cmocka_unit_test(test_no_slot_has_more_first_come),
        cmocka_unit_test(test_no_slot_has_more_fair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
