// t_evict_house - housekeeping and two workers: from a backlog to evictions and throttles
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "app/binds.h"
#include "app/process.h"
#include "evictscene.h"

#define HOT      "29001111"
#define COLD     "31415926"
#define CULPRITS 8

/* Two workers, and as much of a process as the binds need. */
struct village {
    struct stage stage;
    struct hg_process *process;
    struct client culprits[CULPRITS]; /* four a worker */
    struct client innocents[2];
};

static struct hg_binds *binds(struct village *v)
{
    return &v->process->binds;
}

static void village_open(struct village *v)
{
    memset(v, 0, sizeof *v);
    stage_init(&v->stage, 2);
    struct hg_bucket *bucket = stage_find(&v->stage, "default");
    evict_use(bucket);
    v->stage.settings.bind = (struct hg_bind_settings){
        .backlog_us = 1000000, .threshold_pct = 25, .target_pct = 50, .min_age_us = 200000};
    stage_open(&v->stage);
    v->process = calloc(1, sizeof *v->process);
    assert_non_null(v->process);
    v->process->front.workers = v->stage.workers;
    v->process->front.worker_count = 2;
    v->process->directory = v->stage.directory;
    assert_int_equal(hg_loop_init(&v->process->house_loop), 0);
    assert_int_equal(hg_mailbox_init(&v->process->house, &v->process->house_loop, NULL), 0);
    assert_int_equal(hg_binds_start(binds(v), v->process, &v->process->house_loop), 0);
    for (unsigned i = 0; i < CULPRITS; i++)
        gate_connect(&v->stage, i % 2, &v->culprits[i]);
    for (unsigned i = 0; i < 2; i++)
        gate_connect(&v->stage, i, &v->innocents[i]);
}

/* In the order in which a process ends. */
static void village_close(struct village *v)
{
    for (unsigned i = 0; i < CULPRITS; i++)
        client_close(&v->culprits[i]);
    for (unsigned i = 0; i < 2; i++)
        client_close(&v->innocents[i]);
    stage_run(&v->stage);
    gate_check(&v->stage);
    for (unsigned w = 0; w < 2; w++)
        hg_worker_close(&v->stage.workers[w]);
    hg_mailbox_fini(&v->process->house);
    hg_binds_stop(binds(v));
    hg_loop_fini(&v->process->house_loop);
    free(v->process);
    stage_close(&v->stage);
}

/* A look that is due each 100 ms. */
static void look(struct village *v)
{
    binds(v)->timer.fn(&binds(v)->timer);
}

/* A look, and all letters there and back. */
static void look_and_judge(struct village *v)
{
    look(v);
    stage_run(&v->stage);
    hg_mailbox_wait(&v->process->house, 0);
    stage_run(&v->stage);
}

/* Somebody has been waiting for a second and more, by housekeeping's clock, which is the real one;
   and what is with the store is dear by the workers' clock. */
static void grow_old(struct village *v)
{
    gate_wait(&v->stage, 20000);
    assert_true(atomic_load(&gate_share(&v->stage)->backlog) > 0);
    atomic_store(&gate_share(&v->stage)->backlog_since_us, 1);
}

static void ask_all(struct village *v, const char *culprit)
{
    for (uint32_t i = 0; i < CULPRITS; i++) {
        client_ask(&v->culprits[i], HG_OPCODE_GET, culprit, i);
        stage_run(&v->stage);
    }
    for (uint32_t i = 0; i < 2; i++) {
        client_ask(&v->innocents[i], HG_OPCODE_GET, COLD, i);
        stage_run(&v->stage);
    }
}

static void obey(struct village *v)
{
    for (unsigned n = 0; n < 3; n++) {
        for (unsigned w = 0; w < 2; w++)
            fakestore_obey_all(v->stage.upstreams[0].stores[w]);
        stage_run(&v->stage);
    }
}

/* Eight slots are the culprit's, on both workers, one of them waits; so do the innocents. */
static void test_culprit(void **state)
{
    (void)state;
    struct village v;
    village_open(&v);
    gate_resize(&v.stage, HG_GATE_READ, 7);
    ask_all(&v, HOT);
    assert_int_equal(gate_waiting(&v.stage, HG_GATE_READ), 3);
    atomic_store(&gate_share(&v.stage)->backlog_since_us, hg_now_us());
    look_and_judge(&v);
    assert_int_equal(hg_counter_get(&binds(&v)->rounds_begun), 0); /* not for long enough */
    grow_old(&v);
    look_and_judge(&v);
    assert_int_equal(hg_counter_get(&binds(&v)->rounds_begun), 1);
    assert_int_equal(hg_counter_get(&binds(&v)->keys_evicted), 1);
    /* A quarter of 7 slots and less is 1; that is less than one on each worker, so all go. */
    assert_int_equal(stage_outcome(&v.stage, HG_OUTCOME_EVICTED), 8);
    for (unsigned w = 0; w < 2; w++) {
        struct hg_lane *lane = &stage_find(&v.stage, "default")->lanes[w];
        assert_int_equal(lane->binds->count, 1);
        for (uint32_t i = 0; i < lane->binds->capacity; i++)
            if (lane->binds->entries[i].used)
                assert_int_equal(hg_bindthrottle_x(&lane->binds->entries[i], 0, 0), 8);
    }
    obey(&v);
    for (uint32_t i = 0; i < CULPRITS; i++)
        stage_expect(&v.stage, &v.culprits[i], HG_OPCODE_GET, HG_STATUS_BIND_EVICTION, i);
    for (uint32_t i = 0; i < 2; i++)
        stage_expect(&v.stage, &v.innocents[i], HG_OPCODE_GET, 0, i);
    village_close(&v);
}

/* A full store whose line is long: a key with most of its slots is no culprit while its requests
   are answered like all others. */
static void test_many_and_cheap(void **state)
{
    (void)state;
    struct village v;
    village_open(&v);
    gate_resize(&v.stage, HG_GATE_READ, 7);
    ask_all(&v, HOT);
    gate_wait(&v.stage, 19999);
    atomic_store(&gate_share(&v.stage)->backlog_since_us, 1);
    look_and_judge(&v);
    assert_int_equal(hg_counter_get(&binds(&v)->rounds_begun), 1);
    assert_int_equal(hg_counter_get(&binds(&v)->keys_evicted), 0);
    assert_int_equal(stage_outcome(&v.stage, HG_OUTCOME_EVICTED), 0);
    obey(&v);
    village_close(&v);
}

/* No key holds too much: with hera the oldest request goes, one at a time. Not one whose key is too
   short, be it the culprit's. */
static void test_no_key_qualifies(void **state)
{
    (void)state;
    for (unsigned is_short = 0; is_short < 2; is_short++) {
        struct village v;
        village_open(&v);
        gate_resize(&v.stage, HG_GATE_READ, 7);
        for (uint32_t i = 0; i < CULPRITS; i++) {
            char key[16];
            snprintf(key, sizeof key, is_short ? "2900111" : "cold-%04u", i);
            client_ask(&v.culprits[i], HG_OPCODE_GET, key, i);
            stage_run(&v.stage);
        }
        grow_old(&v);
        look_and_judge(&v);
        gate_wait(&v.stage, 200001);
        grow_old(&v);
        look_and_judge(&v);
        assert_int_equal(hg_counter_get(&binds(&v)->oldest_evicted), 0); /* only with hera */
        stage_find(&v.stage, "default")->upstream->gates->conf.evict_longest = true;
        grow_old(&v);
        look_and_judge(&v);
        assert_int_equal(hg_counter_get(&binds(&v)->oldest_evicted), !is_short);
        assert_int_equal(hg_counter_get(&binds(&v)->keys_evicted), 0);
        assert_int_equal(stage_outcome(&v.stage, HG_OUTCOME_EVICTED), !is_short);
        obey(&v);
        village_close(&v);
    }
}

/* Three of seven slots are a quarter and more, but no half: that is chance when nothing moves. */
static void test_store_that_stands_still(void **state)
{
    (void)state;
    struct village v;
    village_open(&v);
    hg_counter *answered = &gate_share(&v.stage)->holders[HG_TICKET_READ].workers[0].tally.answered;
    gate_resize(&v.stage, HG_GATE_READ, 7);
    for (uint32_t i = 0; i < CULPRITS; i++) {
        char other[16];
        snprintf(other, sizeof other, "cold-%04u", i);
        client_ask(&v.culprits[i], HG_OPCODE_GET, i < 3 ? HOT : other, i);
        stage_run(&v.stage);
    }
    grow_old(&v);
    hg_counter_add(answered, 1); /* before the first look */
    atomic_store(&gate_share(&v.stage)->backlog_since_us, hg_now_us());
    look_and_judge(&v);
    grow_old(&v);
    look_and_judge(&v);
    assert_int_equal(hg_counter_get(&binds(&v)->rounds_begun), 1);
    assert_int_equal(hg_counter_get(&binds(&v)->keys_evicted), 0);
    hg_counter_add(answered, 1);
    look_and_judge(&v);
    assert_int_equal(hg_counter_get(&binds(&v)->keys_evicted), 1);
    hg_counter_sub(answered, 2);
    obey(&v);
    village_close(&v);
}

/* A worker that does not report in time: judged without it, and what comes then is dropped. */
static void test_late_report(void **state)
{
    (void)state;
    struct village v;
    village_open(&v);
    gate_resize(&v.stage, HG_GATE_READ, 7);
    ask_all(&v, HOT);
    grow_old(&v);
    look(&v);
    hg_loop_turn(&v.stage.workers[0].loop, false);
    hg_mailbox_wait(&v.process->house, 0);
    assert_int_equal(hg_counter_get(&binds(&v)->keys_evicted), 0);
    look(&v); /* ends the round, begins another */
    assert_int_equal(hg_counter_get(&binds(&v)->keys_evicted), 1);
    assert_int_equal(hg_counter_get(&binds(&v)->rounds_begun), 2);
    stage_run(&v.stage);
    hg_mailbox_wait(&v.process->house, 0);
    assert_int_equal(hg_counter_get(&binds(&v)->late_reports), 1);
    stage_run(&v.stage);
    assert_true(stage_outcome(&v.stage, HG_OUTCOME_EVICTED) > 0);
    obey(&v);
    village_close(&v);
}

/* The process ends while a round is open, its letters on their way. */
static void test_end_in_a_round(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 3; turns++) {
        struct village v;
        village_open(&v);
        gate_resize(&v.stage, HG_GATE_READ, 7);
        ask_all(&v, HOT);
        grow_old(&v);
        look(&v);
        for (unsigned w = 0; w < turns; w++)
            hg_loop_turn(&v.stage.workers[w].loop, false);
        for (unsigned w = 0; w < 2; w++)
            hg_worker_close(&v.stage.workers[w]);
        gate_check(&v.stage);
        look(&v);
        hg_mailbox_fini(&v.process->house);
        hg_binds_stop(binds(&v));
        hg_loop_fini(&v.process->house_loop);
        free(v.process);
        for (unsigned i = 0; i < CULPRITS; i++)
            client_close(&v.culprits[i]);
        for (unsigned i = 0; i < 2; i++)
            client_close(&v.innocents[i]);
        stage_close(&v.stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_culprit),          cmocka_unit_test(test_many_and_cheap),
        cmocka_unit_test(test_no_key_qualifies), cmocka_unit_test(test_store_that_stands_still),
        cmocka_unit_test(test_late_report),      cmocka_unit_test(test_end_in_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
