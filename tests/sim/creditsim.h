// creditsim - a driver of the credits in virtual time: workers, connections, a tick
// SPDX-License-Identifier: BSD-3-Clause
//
// Does what the header of core/held.h asks of a driver, one step of one worker at a time, in an
// order that a seeded generator chooses: between any two steps of a worker (the verdict, its
// publication, each decision of a pass, the end of the pass) the others and the tick may run.
// Connections are closed loops: a request, its service time, the next request. Time moves on when
// nobody can do anything at the present moment.
#ifndef HG_TEST_CREDITSIM_H
#define HG_TEST_CREDITSIM_H

#include "base/prng.h"
#include "core/credittick.h"
#include "core/held.h"
#include "core/readcost.h"

#define SIM_WORKERS 8
#define SIM_BUCKETS 16
#define SIM_CONNS   512
#define SIM_SLOTS   4096 // a run's slots, counted from the first

enum sim_conn_state { SIM_IDLE, SIM_BUSY, SIM_HELD, SIM_PASSED, SIM_OFF };

struct sim_conn {
    uint32_t worker, bucket, units, flags;
    uint64_t service_us, at_us, since_us; // at_us: next request, or answer
    enum sim_conn_state state;
    struct hg_charge charge;
    uint64_t admitted, refused, waited_us_max,
        done; // units, requests refused, longest wait, requests
    bool nonblocking;
    uint32_t read_max; // reads cost 1 to so many units, known with the answer; 0 = costs `units`
};

enum sim_step { SIM_FREE, SIM_PUBLISH, SIM_PASS };

struct sim_worker {
    uint32_t list[SIM_BUCKETS][SIM_CONNS]; // held connections, oldest first
    uint32_t count[SIM_BUCKETS];
    bool poked[SIM_BUCKETS];
    enum sim_step step;
    uint32_t bucket; // of the step
    struct hg_charge charge;
    struct hg_held_pass pass;
    bool begun, ended;
    struct hg_readcost cost[SIM_BUCKETS];
    uint32_t passed[SIM_CONNS], n_passed;
};

struct sim {
    struct hg_credit_node node;
    struct hg_credit_bucket buckets[SIM_BUCKETS];
    struct hg_credit_bucket *live[SIM_BUCKETS];
    struct hg_credit_lane lanes[SIM_BUCKETS][SIM_WORKERS];
    struct hg_fair scratch[SIM_BUCKETS];
    struct sim_worker workers[SIM_WORKERS];
    struct sim_conn conns[SIM_CONNS];
    uint32_t n_workers, n_buckets, n_conns;
    struct hg_prng prng;
    uint64_t now_us, steps;
    struct hg_credit_tick tick;                    // the last
    uint64_t slots;                                // begun so far
    uint64_t admitted[SIM_BUCKETS][SIM_SLOTS + 1]; // tested units, by slot
    uint64_t answered[SIM_BUCKETS][SIM_SLOTS + 1]; // real units of answers, by slot of the answer
    uint64_t pooled[SIM_SLOTS + 1];                // of them out of the pool
    bool complete[SIM_SLOTS + 1];                  // ended with nothing left to do
    bool unfair;                                   // the last worker goes first whenever it can
    // Once in so many steps, 0 = never:
    uint32_t tick_chance;  // a tick, as if time had passed
    uint32_t undo_chance;  // (answers) the request was refused after the credits instead
    uint32_t reset_chance; // a held connection goes away
};

/* `free_pool` and capacity as in the settings; slow start keeps everything (100 %). */
void sim_init(struct sim *sim, uint32_t workers, uint64_t capacity, uint32_t slot_ms,
              enum hg_free_pool free_pool, uint64_t seed);
uint32_t sim_bucket(struct sim *sim, uint64_t reserved, uint64_t hard_limit);
/* n connections of a bucket, spread over the workers; returns the first. */
uint32_t sim_conns(struct sim *sim, uint32_t n, uint32_t bucket, uint32_t units,
                   uint64_t service_us);
/* The first tick, at `sim->now_us`. */
void sim_start(struct sim *sim);
/* Until `slots` more slots have ended, each when nothing is left to do in its time. */
void sim_run(struct sim *sim, uint64_t slots);
/* Everything that can be done at this moment, without ticking. */
void sim_settle(struct sim *sim);
/* Jain's index of n figures. */
double sim_jain(const double *x, uint32_t n);

#endif
