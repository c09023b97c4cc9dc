// t_keyshare_model - random events: all counts agree after each, and no request waits for ever
// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/prng.h"
#include "keysharerig.h"

#define IDS   24 /* in 8 chains */
#define LIVE  400
#define STEPS 400
#define RUNS  100

static struct hg_prng dice;
static uint32_t stranded[IDS]; // slots, as the user knows them
static struct job *live[LIVE]; // those that are not done, as they came
static uint32_t live_count, verdicts[3], parked_again;

static uint32_t id_at(uint32_t at)
{
    return at % 8 + at / 8 * HG_KEYSHARE_CHAINS;
}

static uint32_t at_of(uint32_t id)
{
    return id % HG_KEYSHARE_CHAINS + id / HG_KEYSHARE_CHAINS * 8;
}

/* ---- what is true at any time ---- */

static uint32_t count_list(struct hg_list *head, struct hg_keyshare_key *key, uint32_t id,
                           enum job_state state)
{
    uint32_t n = 0;
    uint64_t since_us = 0;
    HG_LIST_EACH(node, head)
    {
        struct job *job = (struct job *)node;
        assert_ptr_equal(job->part.key, key);
        assert_int_equal(job->part.id, id);
        assert_int_equal(job->state, state);
        assert_int_equal(job->part.is_parked, state == JOB_PARKED);
        if (state == JOB_RUNS) // oldest first
            assert_true(job->part.since_us >= since_us);
        since_us = job->part.since_us;
        n++;
    }
    return n;
}

static uint32_t count_live(uint32_t id, enum job_state state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < live_count; i++)
        n += live[i]->part.id == id && live[i]->state == state;
    return n;
}

static void check_key(struct hg_keyshare_key *key)
{
    uint32_t lined = count_list(&key->lined, key, key->id, JOB_LINED);
    assert_int_equal(count_list(&key->running, key, key->id, JOB_RUNS), key->out);
    assert_int_equal(count_list(&key->parked, key, key->id, JOB_PARKED), key->waiting);
    assert_int_equal(key->out + lined + key->stranded, key->engaged);
    assert_int_equal(count_live(key->id, JOB_RUNS), key->out);
    assert_int_equal(count_live(key->id, JOB_LINED), lined);
    assert_int_equal(count_live(key->id, JOB_PARKED), key->waiting);
    assert_int_equal(key->stranded, stranded[at_of(key->id)]);
}

static void check(void)
{
    uint32_t keys = 0, waiting = 0, unproven = 0, engaged[HG_KEYSHARE_CHAINS] = {0};
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(&ks, key)) != NULL; keys++) {
        check_key(key);
        waiting += key->waiting;
        unproven += key->is_unproven ? key->out + key->stranded : 0;
    }
    for (uint32_t i = 0; i < live_count; i++)
        engaged[live[i]->part.id % HG_KEYSHARE_CHAINS] += live[i]->state != JOB_PARKED;
    for (uint32_t at = 0; at < IDS; at++)
        engaged[at % 8] += stranded[at];
    for (uint32_t c = 0; c < HG_KEYSHARE_CHAINS; c++)
        assert_int_equal(hg_keyshare_count(&counts, c), engaged[c]);
    assert_int_equal(keys, ks.key_count);
    assert_int_equal(waiting, ks.parked);
    assert_int_equal(unproven, ks.unproven_out);
}

/* ---- what happens ---- */

static struct job *any(enum job_state state)
{
    uint32_t from = (uint32_t)hg_prng_below(&dice, live_count);
    for (uint32_t i = 0; i < live_count; i++)
        if (live[(from + i) % live_count]->state == state)
            return live[(from + i) % live_count];
    return NULL;
}

/* A job's memory is used again as soon as it is done. */
static void forget_done(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < live_count; i++) {
        struct job *job = live[i];
        if (job->state == JOB_DONE || job->state == JOB_REFUSED)
            memset(job, 0, sizeof *job);
        else
            live[n++] = job;
    }
    live_count = n;
}

static void come(uint32_t id)
{
    job_count = 0; // the first free one
    while (jobs[job_count].state != 0)
        job_count++;
    struct job *job = hg_prng_below(&dice, 2) == 0 ? arrive(id) : arrive_in_line(id);
    live[live_count++] = job;
    verdicts[job->state == JOB_REFUSED ? 2 : job->state == JOB_PARKED]++;
}

static void have_slot_stranded(void)
{
    uint32_t at = (uint32_t)hg_prng_below(&dice, IDS);
    bool less = stranded[at] > 0 && hg_prng_below(&dice, 2) == 0;
    if (!less && hg_prng_below(&dice, 4) > 0)
        return;
    make_room();
    stranded[at] += less ? -1U : !no_room || record(id_at(at)) != NULL || ks.spare != NULL;
    hg_keyshare_strand(&ks, id_at(at), less ? -1 : 1, now_us);
}

/* The requests of every third key take 60 ms, most of them. */
static void end_any(void)
{
    struct job *job = any(JOB_RUNS);
    if (job == NULL)
        return;
    bool dear = job->part.id % 3 == 0 && now_us - job->part.since_us < 60 * MS;
    if (!dear || hg_prng_below(&dice, 8) == 0)
        end(job, hg_prng_below(&dice, 8) > 0);
}

static void have_any_turn(void)
{
    struct job *job = any(JOB_LINED);
    if (job == NULL)
        return;
    if (hg_prng_below(&dice, 4) == 0) {
        end(job, false);
        return;
    }
    have_turn(job);
    parked_again += job->state == JOB_PARKED;
}

static void let_time_pass(void)
{
    if (hg_prng_below(&dice, 50) == 0)
        go_on(hg_prng_below(&dice, 2 * S), hg_prng_below(&dice, 4) != 0);
    now_us += hg_prng_below(&dice, 20 * MS);
    if (hg_prng_below(&dice, 2) == 0)
        answered_us = now_us;
    elsewhere = (uint32_t)hg_prng_below(&dice, 3);
    others = hg_prng_below(&dice, 20);
    view.out = (uint32_t)hg_prng_below(&dice, 40);
    view.pct = hg_prng_below(&dice, 40) == 0 ? 100 : 25;
    no_room = hg_prng_below(&dice, 10) == 0;
    tick();
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(&ks, key)) != NULL;)
        if (key->waiting > 0)
            release(key);
    hg_keyshare_sweep(&ks, now_us);
}

static void step(void)
{
    struct job *job;
    uint64_t what = hg_prng_below(&dice, 100);
    if (what < 40 && live_count < LIVE)
        come(id_at((uint32_t)hg_prng_below(&dice, hg_prng_below(&dice, 2) == 0 ? IDS : 4)));
    else if (what < 65)
        end_any();
    else if (what < 82)
        have_any_turn();
    else if (what < 86 && (job = any(JOB_PARKED)) != NULL)
        unpark(job);
    else if (what < 90)
        have_slot_stranded();
    else
        let_time_pass();
    forget_done();
}

/* ---- nobody waits for ever ---- */

/* All that were engaged end. Then each parked request may go on, one at a time, oldest first. */
static void finish(void)
{
    struct job *job;
    elsewhere = 0;
    for (uint32_t at = 0; at < IDS; at++)
        for (; stranded[at] > 0; stranded[at]--)
            hg_keyshare_strand(&ks, id_at(at), -1, now_us);
    for (uint32_t i = 0; i < live_count; i++)
        if (live[i]->state != JOB_PARKED) {
            hg_keyshare_end(&ks, &live[i]->part, false, false, now_us);
            live[i]->state = JOB_DONE;
        }
    forget_done();
    check();
    assert_int_equal(ks.unproven_out, 0);
    for (uint32_t left = live_count; left > 0; left--) {
        struct hg_keyshare_key *key = live[0]->part.key;
        job = (struct job *)next_of(key);
        assert_non_null(job);
        assert_ptr_equal(&job->part.node, key->parked.next);
        unpark(job);
        engage(job);
        have_turn(job);
        assert_int_equal(job->state, JOB_RUNS);
        now_us += 30 * MS; // no answer proves it
        hg_keyshare_end(&ks, &job->part, true, true, now_us);
        job->state = JOB_DONE;
        forget_done();
        check();
    }
    hg_keyshare_sweep(&ks, now_us + 1 * S);
    assert_int_equal(ks.key_count, 0);
}

static void test_any_sequence(void **state)
{
    (void)state;
    dice.state = 20240607;
    for (unsigned run = 0; run < RUNS; run++) {
        for (unsigned i = 0; i < STEPS; i++) {
            step();
            check();
        }
        finish();
    }
    for (unsigned v = 0; v < 3; v++) // it all happened
        assert_true(verdicts[v] > 100);
    assert_true(parked_again > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_sequence, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
