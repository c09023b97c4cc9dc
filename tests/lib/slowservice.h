// slowservice - slots, a queue before them, and a time for each job: how a store is slow
// SPDX-License-Identifier: BSD-3-Clause
//
//   arrive ─► queue, first in first out ─► slots, each for its service time ─► due
//
// Ends are nominal: a job that follows another in its slot begins when that one was to end, however
// late this is noticed, so that the capacity is slots / service time on a busy machine too. A job's
// time is drawn when it begins: its group's, or the usual one; times the noise of the moment (drawn
// anew every 100 ms, since what disturbs a store disturbs all that it does); over
//
//   max(0.05, 1 - T (n - slots) / slots)    for n > slots jobs inside, the queue included
//
// which is the store whose throughput falls beyond its knee.
//
// No clock: the time is an argument, in monotonic microseconds that never run backwards.
#ifndef HG_TESTS_LIB_SLOWSERVICE_H
#define HG_TESTS_LIB_SLOWSERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/prng.h"

#define HG_SLOW_GROUPS     16
#define HG_SLOW_PREFIX_MAX 64
#define HG_SLOW_NOISE_US   100000

struct hg_slow_conf {
    double service_us;
    uint32_t slots;
    bool exponential; /* times, of that mean; else all alike */
    double knee_fall; /* T above; 0: none */
    double noise;     /* relative standard deviation; 0: none */
};

/* Jobs whose key begins with `prefix`. Group 0 has no prefix: all others. */
struct hg_slow_group {
    char prefix[HG_SLOW_PREFIX_MAX];
    size_t prefix_len;
    double service_us; /* below 0: the usual one */
    uint64_t arrived, served, inside, in_service, max_in_service;
};

struct hg_slow_job {
    struct hg_list node; /* in the queue, while it waits */
    uint64_t arrived_us;
    uint64_t end_us; /* 0 while it waits */
    uint32_t group;
    bool ended;
};

struct hg_slow {
    struct hg_slow_conf conf;
    struct hg_slow_group groups[HG_SLOW_GROUPS];
    uint32_t group_count;
    struct hg_list queue;
    uint32_t queued;
    struct hg_slow_job **heap; /* in service, the one that ends first on top */
    uint32_t in_service, heap_room;
    uint64_t inside, max_inside; /* waiting or in service */
    bool paused;
    uint64_t paused_us;
    struct hg_prng prng;
    double noise; /* factor in force */
    uint64_t noise_until_us;
};

void hg_slow_init(struct hg_slow *slow, const struct hg_slow_conf *conf, uint64_t seed);
void hg_slow_fini(struct hg_slow *slow);
/* Makes keys of that prefix take so long (below 0: the usual time, counted apart); false: no room,
   or too long a prefix. */
bool hg_slow_set_group(struct hg_slow *slow, const char *prefix, double service_us);
/* The group of a key: the first whose prefix it begins with. */
uint32_t hg_slow_group_of(const struct hg_slow *slow, const uint8_t *key, size_t len);

/* A job of that group comes in. */
void hg_slow_arrive(struct hg_slow *slow, struct hg_slow_job *job, uint32_t group, uint64_t now_us);
/* Takes a job that still waits out of the queue; false: it is in service, or has ended. */
bool hg_slow_leave(struct hg_slow *slow, struct hg_slow_job *job);
/* The next job whose time is over, and its slot goes to the next; NULL: none yet. */
struct hg_slow_job *hg_slow_due(struct hg_slow *slow, uint64_t now_us);
/* When to look again; UINT64_MAX: only after something has come. */
uint64_t hg_slow_next_us(const struct hg_slow *slow);

/* Slots were changed: more may begin. */
void hg_slow_fill(struct hg_slow *slow, uint64_t now_us);
/* Nothing begins or ends until resumed; what is in service then takes the rest of its time. */
void hg_slow_pause(struct hg_slow *slow, uint64_t now_us);
void hg_slow_resume(struct hg_slow *slow, uint64_t now_us);

#endif
