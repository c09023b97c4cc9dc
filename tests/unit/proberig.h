// proberig - a store behind tickets, in virtual time, for tests of the adaptive control
// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of 100 us. Requests are counted one by one and served in order: of n inside, min(n, knee)
// are worked on, each takes service_us then; beyond the knee the rate falls by `fall` of itself for
// each knee more, to a twentieth at worst. The line is bounded by time: who waited longer than
// 100 ms is refused. Kinds take turns by `reads`. Random numbers are seeded.
#ifndef HG_TEST_PROBERIG_H
#define HG_TEST_PROBERIG_H

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/probe.h"

#define RIG_TICK_US 100
#define RIG_ROOM    65536 /* requests in a queue */
#define RIG_WAIT_US 100000

struct rig_queue {
    uint64_t at_us[RIG_ROOM];
    uint32_t first, count;
};

struct rig {
    struct hg_probe probe;
    struct hg_probe_seen seen;
    struct hg_prng prng;
    uint64_t now_us, step_us;
    double service_us, knee, fall; /* the store; service_us 0: it is paused */
    double load;                   /* a second, open loop */
    uint32_t clients;              /* closed loop: each has one request out or waiting */
    double reads;                  /* share */
    double jitter;                 /* of the rate, each interval: standard deviation, about */
    double factor, work, due;
    struct rig_queue inside[HG_TICKET_KINDS], line[HG_TICKET_KINDS];
    uint64_t done;     /* finished, all */
    uint32_t smallest; /* total size since rig_mark */
};

static inline void rig_push(struct rig_queue *queue, uint64_t at_us)
{
    if (queue->count == RIG_ROOM)
        abort();
    queue->at_us[(queue->first + queue->count++) % RIG_ROOM] = at_us;
}

static inline uint64_t rig_pop(struct rig_queue *queue)
{
    uint64_t at_us = queue->at_us[queue->first];
    queue->first = (queue->first + 1) % RIG_ROOM;
    queue->count--;
    return at_us;
}

static inline struct hg_probe_conf rig_conf(void)
{
    return (struct hg_probe_conf){
        .control = HG_PROBE_ADAPTIVE,
        .interval_us = 100000,
        .cores = 2,
        .min = 4,
        .max = 1024,
        .read_write_ratio = .5,
        .weight = .2,
        .step = .1,
    };
}

/* A store of these, without load. */
static inline struct rig *rig_new(double service_us, double knee, double fall)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct hg_probe_conf conf = rig_conf();
    if (rig == NULL)
        abort();
    (void)hg_probe_init(&rig->probe, &conf);
    rig->service_us = service_us;
    rig->knee = knee;
    rig->fall = fall;
    rig->reads = .5;
    rig->factor = 1;
    rig->smallest = UINT32_MAX;
    rig->prng.state = 1;
    return rig;
}

static inline double rig_chance(struct rig *rig)
{
    return (double)(hg_prng_next(&rig->prng) >> 11) * 0x1p-53;
}

static inline uint32_t rig_total(const struct rig *rig)
{
    return rig->probe.size[HG_TICKET_READ] + rig->probe.size[HG_TICKET_WRITE];
}

static inline uint32_t rig_inside(const struct rig *rig)
{
    return rig->inside[HG_TICKET_READ].count + rig->inside[HG_TICKET_WRITE].count;
}

static inline uint32_t rig_waiting(const struct rig *rig)
{
    return rig->line[HG_TICKET_READ].count + rig->line[HG_TICKET_WRITE].count;
}

static inline void rig_admit(struct rig *rig)
{
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
        struct rig_queue *line = &rig->line[kind], *inside = &rig->inside[kind];
        struct hg_probe_holder_seen *seen = &rig->seen.holder[kind];
        while (line->count > 0 && line->at_us[line->first] + RIG_WAIT_US < rig->now_us)
            (void)rig_pop(line);
        while (line->count > 0 && inside->count < rig->probe.size[kind]) {
            (void)rig_pop(line);
            rig_push(inside, rig->now_us);
        }
        if (inside->count > seen->peak)
            seen->peak = inside->count;
    }
}

static inline void rig_arrive(struct rig *rig)
{
    rig->due += rig->load * RIG_TICK_US * 1e-6;
    /* At random: half an arrival is one in half of the cases. */
    while (rig->due > rig_chance(rig)) {
        rig->due -= 1;
        rig_push(&rig->line[rig_chance(rig) < rig->reads ? HG_TICKET_READ : HG_TICKET_WRITE],
                 rig->now_us);
    }
    while (rig_inside(rig) + rig_waiting(rig) < rig->clients)
        rig_push(&rig->line[rig_chance(rig) < rig->reads ? HG_TICKET_READ : HG_TICKET_WRITE],
                 rig->now_us);
}

static inline void rig_serve(struct rig *rig)
{
    double n = rig_inside(rig), rate = n < rig->knee ? n : rig->knee;
    if (n == 0 || rig->service_us == 0)
        return;
    if (n > rig->knee) {
        double left = 1 - rig->fall * (n - rig->knee) / rig->knee;
        rate *= left > .05 ? left : .05;
    }
    rig->work += rate * rig->factor * RIG_TICK_US / rig->service_us;
    while (rig->work >= 1 && rig_inside(rig) > 0) {
        /* The oldest. One that has just come is not done before its time. */
        struct rig_queue *reads = &rig->inside[HG_TICKET_READ];
        struct rig_queue *writes = &rig->inside[HG_TICKET_WRITE];
        bool read = writes->count == 0 || (reads->count > 0 && reads->at_us[reads->first] <=
                                                                   writes->at_us[writes->first]);
        struct rig_queue *from = read ? reads : writes;
        struct hg_probe_holder_seen *seen =
            &rig->seen.holder[read ? HG_TICKET_READ : HG_TICKET_WRITE];
        rig->work -= 1;
        seen->finished++;
        seen->service_us += rig->now_us - rig_pop(from) + RIG_TICK_US;
        rig->done++;
    }
    if (rig_inside(rig) == 0)
        rig->work = 0;
}

static inline void rig_step(struct rig *rig)
{
    uint64_t oldest_us = UINT64_MAX;
    for (int kind = 0; kind < HG_TICKET_KINDS; kind++) {
        struct rig_queue *inside = &rig->inside[kind];
        rig->seen.holder[kind].out = inside->count;
        rig->seen.holder[kind].waiting = rig->line[kind].count;
        if (inside->count > 0 && inside->at_us[inside->first] < oldest_us)
            oldest_us = inside->at_us[inside->first];
    }
    rig->seen.now_us = rig->now_us;
    rig->seen.oldest_us = oldest_us < rig->now_us ? rig->now_us - oldest_us : 0;
    hg_probe_step(&rig->probe, &rig->seen);
    memset(&rig->seen, 0, sizeof(rig->seen));
    if (rig_total(rig) < rig->smallest)
        rig->smallest = rig_total(rig);
    /* Four uniform numbers: near enough to Gaussian. */
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += rig_chance(rig) - .5;
    rig->factor = 1 + rig->jitter * sum * 1.7320508;
}

/* Goes on for so long; returns how many were finished a second. */
static inline double rig_run(struct rig *rig, double s)
{
    uint64_t end_us = rig->now_us + (uint64_t)(s * 1e6), done = rig->done;
    while (rig->now_us < end_us) {
        rig_arrive(rig);
        rig_admit(rig);
        rig_serve(rig);
        rig_admit(rig);
        rig->now_us += RIG_TICK_US;
        if (rig->now_us >= rig->step_us) {
            rig->step_us += rig->probe.conf.interval_us;
            rig_step(rig);
        }
    }
    return (double)(rig->done - done) / s;
}

static inline void rig_mark(struct rig *rig)
{
    rig->smallest = UINT32_MAX;
}

#endif
