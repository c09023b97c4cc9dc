// keysharerig - one worker's requests, with their keys' shares, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
// Requests ask, park and go on as those of front/gate do, but there is a ticket for everyone who
// may have one, unless a test puts them in line. Include cmocka first.
#ifndef HG_TEST_KEYSHARERIG_H
#define HG_TEST_KEYSHARERIG_H

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "core/keyshare.h"

#define MS   1000
#define S    1000000
#define T0   ((uint64_t)100 * S)
#define JOBS 16384

enum job_state { JOB_LINED = 1, JOB_RUNS, JOB_PARKED, JOB_REFUSED, JOB_DONE };

struct job {
    struct hg_keyshare_part part; // first: a part is its job
    enum job_state state;
};

static struct hg_keyshare ks;
static struct hg_keyshare_counts counts;
static struct hg_keyshare_view view;     // for the next tick
static struct hg_keyshare_tenant tenant; // whose requests arrive
static struct hg_keyshare_key *asked;    // record of the last request that asked
static uint64_t now_us, answered_us;     // the worker's last answer
static uint64_t others;                  // tickets that other keys take before each tick
static uint32_t elsewhere;               // engaged on other workers, of each chain
static bool no_room;                     // no memory for records
static struct job jobs[JOBS];
static uint32_t job_count;

/* ---- time ---- */

static inline void tick(void)
{
    view.started += others;
    view.now_us = now_us;
    if (answered_us > view.answered_us) // of all workers
        view.answered_us = answered_us;
    hg_keyshare_tick(&ks, &view);
}

/* The store answers somebody. */
static inline void others_have_an_answer(void)
{
    answered_us = now_us;
}

static inline void go_on(uint64_t us, bool answers)
{
    for (uint64_t end_us = now_us + us; now_us < end_us;) {
        now_us = now_us / (50 * MS) * (50 * MS) + 50 * MS;
        if (now_us > end_us)
            now_us = end_us;
        if (answers)
            others_have_an_answer();
        if (now_us % (50 * MS) == 0)
            tick();
    }
}

/* The store answers others every millisecond, and ticks are 50 ms apart. */
static inline void pass(uint64_t us)
{
    go_on(us, true);
}

/* The store answers nothing. */
static inline void stall(uint64_t us)
{
    go_on(us, false);
}

/* ---- begin and end of a test ---- */

/* 8 tickets are in use, so a key has 2, and all that are not proven have 4. Other keys are
   active. Requests usually take 2 ms: an answer is fast that took no more than 20. */
static inline int setup(void **state)
{
    (void)state;
    memset(&counts, 0, sizeof counts);
    memset(jobs, 0, sizeof jobs);
    job_count = elsewhere = 0;
    no_room = false;
    others = 1000;
    tenant = (struct hg_keyshare_tenant){.usual = {2 * MS, 0}};
    now_us = answered_us = T0;
    view = (struct hg_keyshare_view){
        .pct = 25, .size = 64, .out = 8, .workers = 1, .usual_us = 2 * MS, .timeout_us = 1 * S};
    hg_keyshare_init(&ks, &counts);
    ks.recent_us = 2 * MS;
    tick();
    pass(100 * MS);
    assert_int_equal(ks.share, 2);
    assert_int_equal(ks.unproven_share, 4);
    return 0;
}

static inline int teardown(void **state)
{
    struct hg_keyshare_key *key;
    (void)state;
    while ((key = hg_keyshare_take_record(&ks)) != NULL)
        free(key);
    return 0;
}

/* `out` tickets of `size` are in use from now on. */
static inline void use(uint32_t pct, uint32_t size, uint32_t out)
{
    view.pct = pct;
    view.size = size;
    view.out = out;
    pass(4 * S);
    ks.mean_out = out;
    pass(50 * MS);
}

/* ---- requests ---- */

static inline struct hg_keyshare_key *record(uint32_t id)
{
    struct hg_keyshare_key *key = NULL;
    while ((key = hg_keyshare_each(&ks, key)) != NULL)
        if (key->id == id)
            return key;
    return NULL;
}

static inline void make_room(void)
{
    if (ks.spare == NULL && !no_room)
        hg_keyshare_give_room(&ks, calloc(1, sizeof *ks.spare));
}

static inline enum hg_keyshare_verdict ask(uint32_t id)
{
    const struct hg_keyshare_asks asks = {.id = id,
                                          .of = &tenant,
                                          .elsewhere = elsewhere,
                                          .answered_us = answered_us,
                                          .now_us = now_us};
    asked = hg_keyshare_find(&ks, id);
    if (hg_keyshare_is_free(&ks, id, asked, now_us))
        return HG_KEYSHARE_GO;
    make_room();
    return hg_keyshare_ask(&ks, &asks, &asked);
}

static inline void engage(struct job *job)
{
    hg_keyshare_engage(&ks, &job->part);
    job->state = JOB_LINED;
}

static inline void start(struct job *job)
{
    hg_keyshare_start(&ks, &job->part, now_us);
    view.started++;
    job->state = JOB_RUNS;
}

static inline void park(struct job *job, struct hg_keyshare_key *key)
{
    hg_keyshare_park(&ks, &job->part, key, now_us);
    job->state = JOB_PARKED;
}

static inline void unpark(struct job *job)
{
    hg_keyshare_unpark(&ks, &job->part);
    job->state = JOB_DONE; // unless it is engaged now
}

static inline void begin(struct job *job)
{
    hg_keyshare_begin(&ks, &job->part, hg_keyshare_find(&ks, job->part.id), now_us);
    view.started++;
    job->state = JOB_RUNS;
}

static inline struct job *arrive_by(uint32_t id, void (*let_in)(struct job *))
{
    assert_true(job_count < JOBS);
    struct job *job = &jobs[job_count++];
    job->part.id = id;
    job->part.of = &tenant;
    enum hg_keyshare_verdict verdict = ask(id);
    if (verdict == HG_KEYSHARE_GO)
        let_in(job);
    else if (verdict == HG_KEYSHARE_PARK)
        park(job, asked);
    else
        job->state = JOB_REFUSED;
    return job;
}

/* A request arrives. If it may go on it waits in line for its ticket. */
static inline struct job *arrive_in_line(uint32_t id)
{
    return arrive_by(id, engage);
}

/* A request arrives. If it may go on it has its ticket at once. */
static inline struct job *arrive(uint32_t id)
{
    return arrive_by(id, begin);
}

/* `n` requests arrive at once. Returns the first. */
static inline struct job *burst(uint32_t id, uint32_t n)
{
    struct job *first = &jobs[job_count];
    for (uint32_t i = 0; i < n; i++)
        arrive(id);
    return first;
}

/* A request in line has its turn: it has a ticket, or waits for its key's share. */
static inline void have_turn(struct job *job)
{
    struct hg_keyshare_key *key = job->part.key;
    if (hg_keyshare_may_start(&ks, &job->part, answered_us, now_us)) {
        start(job);
        return;
    }
    hg_keyshare_end(&ks, &job->part, false, false, now_us);
    park(job, key);
}

static inline struct hg_keyshare_part *next_of(struct hg_keyshare_key *key)
{
    return hg_keyshare_next(&ks, key, elsewhere, answered_us, now_us);
}

/* A slot of the key becomes stranded (1), or is stranded no longer (-1). */
static inline void strand(uint32_t id, int change)
{
    make_room();
    hg_keyshare_strand(&ks, id, change, now_us);
}

/* Those that the key's share allows go on. */
static inline void release(struct hg_keyshare_key *key)
{
    struct hg_keyshare_part *part;
    while ((part = next_of(key)) != NULL) {
        struct job *job = (struct job *)part;
        unpark(job);
        engage(job);
        start(job);
    }
}

static inline void end(struct job *job, bool answered)
{
    struct hg_keyshare_key *key = job->part.key;
    hg_keyshare_end(&ks, &job->part, answered,
                    answered && hg_keyshare_counts_as_sample(job->part.of, now_us), now_us);
    job->state = JOB_DONE;
    if (answered)
        answered_us = now_us;
    if (key != NULL)
        release(key);
}

static inline void answer(struct job *job)
{
    end(job, true);
}

/* Requests for the key that are in that state. */
static inline uint32_t count_in(uint32_t id, enum job_state state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < job_count; i++)
        n += jobs[i].part.id == id && jobs[i].state == state;
    return n;
}

static inline struct job *oldest_in(uint32_t id, enum job_state state)
{
    for (uint32_t i = 0; i < job_count; i++)
        if (jobs[i].part.id == id && jobs[i].state == state)
            return &jobs[i];
    return NULL;
}

/* All of the key's requests are answered, and those that had to wait. */
static inline void answer_all(uint32_t id)
{
    for (struct job *job; (job = oldest_in(id, JOB_RUNS)) != NULL;)
        answer(job);
}

/* Two requests for the key are answered after `us`. */
static inline void be_slow(uint32_t id, uint64_t us)
{
    burst(id, 2);
    pass(us);
    answer_all(id);
}

/* What the next request for the key would be told. */
#define assert_asks(id, verdict) assert_int_equal(ask(id), HG_KEYSHARE_##verdict)
#define assert_counts(id, runs, parked)                                                            \
    (assert_int_equal(count_in(id, JOB_RUNS), runs),                                               \
     assert_int_equal(count_in(id, JOB_PARKED), parked))

#endif
