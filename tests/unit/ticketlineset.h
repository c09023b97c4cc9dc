// ticketlineset - one ticket line, a few tenants and a store, for the tests of the line
// SPDX-License-Identifier: BSD-3-Clause
//
// The store serves what has a ticket at once, each for as long as its job says; time passes in
// pass_until, with a stop at each end. Included after cmocka.h.
#ifndef TESTS_UNIT_TICKETLINESET_H
#define TESTS_UNIT_TICKETLINESET_H

#include <string.h>

#include "core/ticketline.h"

#define T0      1000000u
#define MS      1000u
#define S       1000000u
#define TENANTS 4
#define JOBS    20000
#define RUNNING 256
#define FOREVER (UINT64_MAX / 2)

enum job_state { JOB_NEW, JOB_WAITS, JOB_RUNS, JOB_DONE, JOB_REFUSED, JOB_LATE };

struct job {
    struct hg_ticketline_waiter waiter; // first
    enum job_state state;
    uint32_t tenant;
    uint64_t service_us, granted_us, end_us;
    struct hg_ticketline_admission admission;
};

static struct hg_ticketline line;
static struct hg_ticketline_tenant tenants[TENANTS];
static struct hg_ticketline_conf conf;
static struct job jobs[JOBS];
static uint32_t job_count;
static uint64_t now_us;
static bool paused;                   // the store answers nothing
static uint64_t occupied_us[TENANTS]; // ticket time, counted here as well
static struct job *running[RUNNING];
static uint32_t out; // of them

static inline void setup(uint32_t size)
{
    conf = (struct hg_ticketline_conf){
        .queue_timeout_us = 1 * S, .flood_wait_us = 100 * MS, .size = size};
    memset(jobs, 0, sizeof jobs);
    memset(occupied_us, 0, sizeof occupied_us);
    job_count = out = 0;
    now_us = T0;
    paused = false;
    hg_ticketline_init(&line);
    for (uint32_t t = 0; t < TENANTS; t++)
        hg_ticketline_tenant_init(&tenants[t]);
}

/* In line, whether it would be admitted or not. */
static inline struct job *push_until(uint32_t tenant, uint64_t service_us, uint64_t deadline_us)
{
    struct job *job = &jobs[job_count++];
    assert_true(job_count <= JOBS);
    *job = (struct job){
        .state = JOB_WAITS,
        .tenant = tenant,
        .service_us = service_us,
        .waiter = {.since_us = now_us, .came_us = now_us, .deadline_us = deadline_us},
    };
    hg_ticketline_push(&line, &tenants[tenant], &job->waiter, now_us);
    return job;
}

static inline struct job *push(uint32_t tenant)
{
    return push_until(tenant, 1 * MS, FOREVER);
}

static inline void assert_pops(const struct job *expected)
{
    assert_ptr_equal(hg_ticketline_pop(&line, &conf, now_us), &expected->waiter);
    assert_null(expected->waiter.tenant);
}

static inline void start(struct job *job)
{
    hg_ticketline_take(&line, &tenants[job->tenant], now_us);
    assert_true(out < RUNNING);
    running[out++] = job;
    job->state = JOB_RUNS;
    job->granted_us = now_us;
    job->end_us = now_us + job->service_us;
}

static inline void finish(struct job *job, bool answered)
{
    for (uint32_t r = 0; r < out; r++)
        if (running[r] == job)
            running[r] = running[--out];
    job->state = JOB_DONE;
    hg_ticketline_give(&line, &tenants[job->tenant], now_us - job->granted_us, answered, now_us);
}

static inline void serve(void)
{
    struct hg_ticketline_waiter *waiter;
    while ((waiter = hg_ticketline_expire(&line, &conf, now_us)) != NULL)
        ((struct job *)waiter)->state = JOB_LATE;
    while (out < conf.size && line.count > 0)
        start((struct job *)hg_ticketline_pop(&line, &conf, now_us));
}

/* As a front does it: a ticket, a place in line, or refused. */
static inline struct job *arrive_as(uint32_t tenant, uint64_t service_us, uint64_t came_us)
{
    struct job *job = &jobs[job_count++];
    assert_true(job_count <= JOBS);
    *job = (struct job){
        .tenant = tenant,
        .service_us = service_us,
        .waiter = {.since_us = now_us,
                   .came_us = came_us,
                   .deadline_us = now_us + conf.queue_timeout_us},
    };
    if (line.count == 0 && out < conf.size && hg_ticketline_has_room(&line, &tenants[tenant])) {
        start(job);
        return job;
    }
    job->admission = hg_ticketline_admit(&line, &tenants[tenant], &conf, &job->waiter, now_us);
    job->state = job->admission.why == HG_TICKETLINE_WAIT ? JOB_WAITS : JOB_REFUSED;
    if (job->state == JOB_WAITS)
        hg_ticketline_push(&line, &tenants[tenant], &job->waiter, now_us);
    serve();
    return job;
}

static inline struct job *arrive(uint32_t tenant, uint64_t service_us)
{
    return arrive_as(tenant, service_us, now_us);
}

static inline struct job *next_end(void)
{
    struct job *first = NULL;
    for (uint32_t r = 0; r < out && !paused; r++)
        if (first == NULL || running[r]->end_us < first->end_us)
            first = running[r];
    return first;
}

/* To that moment: what ends before is answered, and whose time is over is refused. */
static inline void pass_until(uint64_t then_us)
{
    serve();
    for (;;) {
        struct job *first = next_end();
        uint64_t at_us = first != NULL && first->end_us < then_us ? first->end_us : then_us;
        uint64_t late_us = hg_ticketline_next_us(&line);
        at_us = late_us < at_us ? late_us : at_us;
        at_us = at_us < now_us ? now_us : at_us;
        for (uint32_t t = 0; t < TENANTS; t++)
            occupied_us[t] += tenants[t].out * (at_us - now_us);
        now_us = at_us;
        if (first != NULL && first->end_us <= at_us)
            finish(first, true);
        serve();
        if (now_us == then_us && ((first = next_end()) == NULL || first->end_us > then_us))
            return;
    }
}

static inline void pass(uint64_t us)
{
    pass_until(now_us + us);
}

static inline uint32_t count_in(uint32_t first, enum job_state state)
{
    uint32_t n = 0;
    for (uint32_t j = first; j < job_count; j++)
        n += jobs[j].state == state;
    return n;
}

/* The tenants' mean services are known, nobody waits, and no grant is recent. */
static inline void warm_up(uint32_t n, uint64_t service_us)
{
    for (uint32_t t = 0; t < n; t++) {
        arrive(t, service_us);
        pass(service_us);
    }
    pass(5 * S);
    hg_ticketline_tick(&line, now_us);
    hg_ticketline_tick(&line, now_us);
}

#endif
