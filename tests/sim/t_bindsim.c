// t_bindsim - a culprit among innocent keys of a slow upstream, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bindsim.h"
#include "simseeds.h"

#define SEEDS sim_seeds(5)
#define CALM  (2 * SECOND_US) /* the culprit comes after */

static struct bindsim *sim;
static uint32_t innocent, culprit;
static uint64_t undisturbed_p99;

/* 50 keys that use about ten of 50 slots. */
static void begin(uint64_t seed)
{
    sim = bindsim_new(50, seed);
    innocent = bindsim_add(sim, &(struct bindsim_group){
                                    .clients = 100,
                                    .key = "innocent",
                                    .keys = 50,
                                    .type = HG_HOT_QUERY,
                                    .service_us = 20 * BINDSIM_MS,
                                    .think_us = 200 * BINDSIM_MS,
                                    .retry_us = 100 * BINDSIM_MS,
                                });
}

/* A hundred clients on one key, 1,000 attempts a second when they are refused. */
static struct bindsim_group hundred(const char *key, enum hg_hot_type type)
{
    return (struct bindsim_group){
        .clients = 100,
        .key = key,
        .type = type,
        .service_us = 500 * BINDSIM_MS,
        .think_us = 0,
        .retry_us = 100 * BINDSIM_MS,
        .from_us = CALM,
    };
}

static void add_culprit(const char *key, enum hg_hot_type type)
{
    struct bindsim_group group = hundred(key, type);
    culprit = bindsim_add(sim, &group);
}

static void calm(void)
{
    bindsim_run(sim, CALM);
    assert_int_equal(bindsim_errors(sim, innocent), 0);
    undisturbed_p99 = bindsim_p99(sim, innocent);
    bindsim_mark(sim);
}

/* Until so long after the backlog began. */
static void run_after_backlog(uint64_t us)
{
    bindsim_run(sim, sim->first_backlog_us - SECOND_US + us);
}

/* From 2 s after the backlog began: no error, and a p99 within twice the undisturbed one. */
static void assert_innocents_are_well(uint64_t seconds)
{
    run_after_backlog(2 * SECOND_US);
    bindsim_mark(sim);
    run_after_backlog((2 + seconds) * SECOND_US);
    assert_int_equal(bindsim_errors(sim, innocent), 0);
    assert_true(sim->counts[innocent].answered > 300 * seconds);
    assert_in_range(bindsim_p99(sim, innocent), 1, 2 * undisturbed_p99);
}

/* Attempts between two passes of a worker are X, or fewer by what time took meanwhile. */
static void assert_passes_are_one_in_x(void)
{
    assert_true(sim->pass_count > 10);
    for (uint32_t i = 0; i < sim->pass_count; i++) {
        const struct bindsim_pass *pass = &sim->passes[i], *before = NULL;
        for (uint32_t j = 0; j < i; j++)
            if (sim->passes[j].worker == pass->worker)
                before = &sim->passes[j];
        if (before == NULL) /* the counts began between two */
            continue;
        uint64_t time_took = (pass->at_us - before->at_us) / SECOND_US + 1;
        assert_in_range(pass->attempts, pass->told.prev, before->told.x);
        assert_in_range(before->told.x - pass->told.prev, 0, time_took);
        if (pass->busy)
            assert_int_equal(pass->told.x, pass->told.prev < 5000 ? 2 * pass->told.prev + 1
                                                                  : HG_BINDTHROTTLE_MAX);
        else
            assert_int_equal(pass->told.x, pass->told.prev - 1);
    }
}

static void reach_backlog(uint64_t until_us)
{
    while (sim->first_backlog_us == UINT64_MAX && sim->now_us < SECOND_US + until_us)
        bindsim_run(sim, sim->now_us - SECOND_US + 100 * BINDSIM_MS);
    assert_true(sim->first_backlog_us != UINT64_MAX);
}

/* ---- one culprit ---- */

static void one_culprit(enum hg_hot_type type)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        add_culprit("29001111", type);
        calm();
        bindsim_run(sim, CALM + SECOND_US - 50 * BINDSIM_MS);
        assert_true(bindsim_holds(sim, culprit) * 100 >= 50 * sim->conf.slots);
        reach_backlog(6 * SECOND_US);
        assert_innocents_are_well(20);
        assert_true(sim->counts[culprit].throttled > 1000);
        assert_true(sim->counts[culprit].passed > 0);
        assert_passes_are_one_in_x();
        assert_true(bindsim_holds(sim, culprit) * 100 < 50 * sim->conf.slots);
        bindsim_free(sim);
    }
}

static void test_one_culprit(void **state)
{
    (void)state;
    one_culprit(HG_HOT_QUERY);
}

/* What was sent stays; what waits and what comes is throttled. */
static void test_with_writes(void **state)
{
    (void)state;
    one_culprit(HG_HOT_UPDATE);
}

static void test_writes_that_were_sent_are_not_evicted(void **state)
{
    struct bindsim_group all = hundred("29001111", HG_HOT_UPDATE);
    (void)state;
    all.service_us = 5 * SECOND_US;
    for (unsigned evict = 0; evict < 2; evict++) {
        begin(1);
        sim->conf.evict_sent_writes = evict;
        culprit = bindsim_add(sim, &all);
        bindsim_run(sim, CALM + 1600 * BINDSIM_MS);
        /* those that waited, and up to 12 that may stay */
        assert_in_range(bindsim_holds(sim, culprit), evict ? 8 : 40, evict ? 12 : 50);
        assert_true(bindsim_x(sim, culprit, 0) > 2);
        bindsim_free(sim);
    }
}

/* A closed circle of just as many as there are slots: none waits, none can be evicted. */
static void test_writes_alone_are_throttled_though_none_is_evicted(void **state)
{
    struct bindsim_group all = hundred("29001111", HG_HOT_UPDATE);
    (void)state;
    all.clients = 50;
    all.service_us = 300 * BINDSIM_MS;
    begin(1);
    culprit = bindsim_add(sim, &all);
    calm();
    reach_backlog(10 * SECOND_US);
    assert_innocents_are_well(10);
    assert_true(sim->counts[culprit].throttled > 1000);
    bindsim_free(sim);
}

static void test_without_it_innocents_suffer(void **state)
{
    (void)state;
    begin(1);
    sim->conf.watching = false;
    add_culprit("29001111", HG_HOT_QUERY);
    calm();
    reach_backlog(6 * SECOND_US);
    run_after_backlog(2 * SECOND_US);
    bindsim_mark(sim);
    run_after_backlog(10 * SECOND_US);
    assert_true(bindsim_p99(sim, innocent) > 5 * undisturbed_p99);
    assert_int_equal(sim->counts[culprit].evicted + sim->counts[culprit].throttled, 0);
    bindsim_free(sim);
}

/* Its rows are posted under its own length: it is not blocked, the queue's rules hold. */
static void test_a_short_culprit_is_not_blocked(void **state)
{
    (void)state;
    begin(1);
    add_culprit("2900111", HG_HOT_QUERY);
    calm();
    reach_backlog(6 * SECOND_US);
    bindsim_run(sim, 10 * SECOND_US);
    assert_int_equal(sim->counts[culprit].evicted + sim->counts[culprit].throttled, 0);
    assert_true(sim->counts[culprit].killed > 10); /* the longest-running, one each 100 ms */
    assert_int_equal(sim->counts[innocent].evicted + sim->counts[innocent].throttled, 0);
    assert_int_equal(sim->counts[innocent].killed, 0);
    bindsim_free(sim);
}

static void test_an_unthrottled_culprit_pays_nothing_and_nobody_else_does(void **state)
{
    struct bindsim_group all = hundred("29001111", HG_HOT_QUERY);
    (void)state;
    all.exempt = true;
    begin(1);
    culprit = bindsim_add(sim, &all);
    calm();
    bindsim_run(sim, 10 * SECOND_US);
    assert_true(sim->first_backlog_us != UINT64_MAX);
    assert_int_equal(sim->counts[culprit].evicted + sim->counts[culprit].throttled, 0);
    assert_int_equal(sim->counts[innocent].evicted + sim->counts[innocent].killed, 0);
    assert_int_equal(sim->tables[0]->count + sim->tables[1]->count, 0);
    bindsim_free(sim);
}

/* ---- X ---- */

/* A pass is busy while everybody else uses more than half: X doubles until few are let through. */
static void test_x_rises_while_the_upstream_is_busy(void **state)
{
    bool doubled = false;
    (void)state;
    begin(1);
    sim->groups[innocent].think_us = 10 * BINDSIM_MS; /* 30 of 50 slots and more */
    add_culprit("29001111", HG_HOT_QUERY);
    bindsim_run(sim, 15 * SECOND_US);
    assert_passes_are_one_in_x();
    for (uint32_t i = 0; i < sim->pass_count; i++)
        doubled = doubled || (sim->passes[i].busy && sim->passes[i].told.x > 1000);
    assert_true(doubled);
    bindsim_free(sim);
}

static void test_it_falls_when_the_culprit_is_cheap_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        add_culprit("29001111", HG_HOT_QUERY);
        calm();
        reach_backlog(6 * SECOND_US);
        uint64_t second = 10;
        bindsim_run(sim, second * SECOND_US);
        assert_true(bindsim_x(sim, culprit, 0) > 100);
        sim->groups[culprit].until_us = second * SECOND_US; /* it rests */
        while (second < 600 &&
               (bindsim_x(sim, culprit, 0) > 100 || bindsim_x(sim, culprit, 1) > 100))
            bindsim_run(sim, ++second * SECOND_US);
        assert_in_range(bindsim_x(sim, culprit, 0) + bindsim_x(sim, culprit, 1), 100, 200);
        sim->groups[culprit].until_us = 0;
        sim->groups[culprit].service_us = 5 * BINDSIM_MS;
        sim->groups[culprit].think_us = 100 * BINDSIM_MS;
        bindsim_run(sim, (second + 10) * SECOND_US);
        bindsim_mark(sim);
        bindsim_run(sim, (second + 20) * SECOND_US);
        assert_int_equal(sim->counts[culprit].throttled, 0);
        assert_true(sim->counts[culprit].answered > 9000);
        assert_int_equal(bindsim_errors(sim, innocent) + bindsim_errors(sim, culprit), 0);
        assert_int_equal(sim->tables[0]->count + sim->tables[1]->count, 0);
        bindsim_free(sim);
    }
}

static void test_it_falls_by_time_when_the_culprit_stops(void **state)
{
    uint32_t x;
    (void)state;
    begin(1);
    add_culprit("29001111", HG_HOT_QUERY);
    sim->groups[culprit].until_us = 8 * SECOND_US;
    bindsim_run(sim, 8 * SECOND_US);
    x = bindsim_x(sim, culprit, 0);
    assert_true(x > 20);
    bindsim_run(sim, 18 * SECOND_US);
    assert_in_range(bindsim_x(sim, culprit, 0), x - 11, x - 9);
    sim->conf.decr_per_sec = 10000;
    bindsim_run(sim, 19 * SECOND_US);
    assert_int_equal(sim->tables[0]->count + sim->tables[1]->count, 0);
    bindsim_free(sim);
}

/* ---- two culprits ---- */

static void test_two_at_once(void **state)
{
    uint32_t second;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct bindsim_group other = hundred("29002222", HG_HOT_QUERY);
        begin(seed);
        add_culprit("29001111", HG_HOT_QUERY);
        second = bindsim_add(sim, &other);
        calm();
        reach_backlog(6 * SECOND_US);
        assert_innocents_are_well(10);
        assert_true(sim->first_evicted_us[culprit] != UINT64_MAX);
        assert_true(sim->first_evicted_us[second] != UINT64_MAX);
        assert_in_range(sim->first_evicted_us[culprit] + 300 * BINDSIM_MS -
                            sim->first_evicted_us[second],
                        0, 600 * BINDSIM_MS);
        assert_true(sim->counts[culprit].throttled > 1000);
        assert_true(sim->counts[second].throttled > 1000);
        bindsim_free(sim);
    }
}

/* The second of the same type, 10 s later: the original never saw it. In the same round in which
   its backlog has lasted as long as a backlog must. */
static void test_the_second_after_ten_seconds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct bindsim_group other = hundred("29002222", HG_HOT_QUERY);
        uint32_t second;
        uint64_t began;
        begin(seed);
        add_culprit("29001111", HG_HOT_QUERY);
        other.from_us = CALM + 10 * SECOND_US;
        second = bindsim_add(sim, &other);
        calm();
        bindsim_run(sim, other.from_us);
        assert_true(bindsim_x(sim, culprit, 0) > 2);
        assert_int_equal(sim->backlog_since_us, UINT64_MAX);
        while (sim->backlog_since_us == UINT64_MAX)
            bindsim_run(sim, sim->now_us - SECOND_US + BINDSIM_MS);
        began = sim->backlog_since_us;
        bindsim_run(sim, began - SECOND_US + 2 * SECOND_US);
        assert_in_range(sim->first_evicted_us[second], began + sim->conf.backlog_us,
                        began + sim->conf.backlog_us + 100 * BINDSIM_MS);
        bindsim_mark(sim);
        bindsim_run(sim, began - SECOND_US + 10 * SECOND_US);
        assert_int_equal(bindsim_errors(sim, innocent), 0);
        assert_in_range(bindsim_p99(sim, innocent), 1, 2 * undisturbed_p99);
        bindsim_free(sim);
    }
}

/* ---- two rules that a simpler reading would have otherwise ---- */

/* Without stranded slots in the used ones, an innocent key with a few of what is left is next. */
static void test_stranded_slots_count_as_used(void **state)
{
    (void)state;
    for (unsigned unused = 0; unused < 2; unused++) {
        begin(1);
        sim->conf.stranded_unused = unused;
        struct bindsim_group few = sim->groups[innocent], all = hundred("29001111", HG_HOT_QUERY);
        few.key = "sibling";
        few.keys = 4;
        all.service_us = 2 * SECOND_US;
        culprit = bindsim_add(sim, &all);
        uint32_t sibling = bindsim_add(sim, &few);
        bindsim_run(sim, 12 * SECOND_US);
        assert_true(sim->counts[culprit].evicted > 0);
        if (unused)
            assert_true(sim->counts[sibling].evicted > 0 && sim->counts[sibling].throttled > 0);
        else
            assert_int_equal(sim->counts[sibling].evicted + sim->counts[sibling].throttled, 0);
        bindsim_free(sim);
    }
}

/* A line that is empty because all that were in it gave up, at one moment, is no relief: all slots
   are in use. Queue time-out and backlog time are the same by default. */
static void test_time_outs_do_not_end_a_backlog(void **state)
{
    (void)state;
    for (unsigned relieve = 0; relieve < 2; relieve++) {
        sim = bindsim_new(25, 1);
        sim->conf.time_outs_relieve = relieve;
        struct bindsim_group all = hundred("29001111", HG_HOT_QUERY);
        all.clients = 40;
        all.from_us = 0;
        all.service_us = 2900 * BINDSIM_MS;
        culprit = bindsim_add(sim, &all);
        bindsim_run(sim, 1900 * BINDSIM_MS);
        assert_true((sim->counts[culprit].evicted > 0) == !relieve);
        bindsim_free(sim);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_culprit),
        cmocka_unit_test(test_with_writes),
        cmocka_unit_test(test_writes_that_were_sent_are_not_evicted),
        cmocka_unit_test(test_writes_alone_are_throttled_though_none_is_evicted),
        cmocka_unit_test(test_without_it_innocents_suffer),
        cmocka_unit_test(test_a_short_culprit_is_not_blocked),
        cmocka_unit_test(test_an_unthrottled_culprit_pays_nothing_and_nobody_else_does),
        cmocka_unit_test(test_x_rises_while_the_upstream_is_busy),
        cmocka_unit_test(test_it_falls_when_the_culprit_is_cheap_again),
        cmocka_unit_test(test_it_falls_by_time_when_the_culprit_stops),
        cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_the_second_after_ten_seconds),
        cmocka_unit_test(test_stranded_slots_count_as_used),
        cmocka_unit_test(test_time_outs_do_not_end_a_backlog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
