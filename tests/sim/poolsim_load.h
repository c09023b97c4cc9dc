// poolsim_load - the ten scenarios of Gel's pool benchmark, and how they are scored
// SPDX-License-Identifier: BSD-3-Clause
//
// Profile "strict": the declared connect costs; costs triangular; connects and disconnects take at
// least 10 ms, queries at least 1 ms; arrivals are an open loop, query i of a row comes i / qps
// after its start (at the same moment in an order that the seed draws); unserved load is drained.
// The score's landmarks are those of Gel's Python suite. Where the text leaves a choice:
// - Scenarios 8 to 10 depend there on the host's speed F; here F is 8000, as measured there.
// - Overhead counts moves and closes, each one disconnect, per query, until the run's end: when
//   its duration is over and all is answered.
// - A wait is that from arrival until a connection begins to work on the query, at least 1 us.
// - The mean of nine deciles' variation is geometric, and one decile without any variation would
//   make it 0, full marks: so each counts at least 0.01. The arithmetic mean is kept beside it.
#ifndef HG_TEST_POOLSIM_LOAD_H
#define HG_TEST_POOLSIM_LOAD_H

#include "poolsim_run.h"

#define POOLSIM_SCENARIOS 10
#define POOLSIM_ROWS      24
#define POOLSIM_PARTS     5
#define POOLSIM_F         8000

struct poolsim_row {
    uint32_t db;
    uint64_t start_us, end_us;
    uint32_t qps;
    struct poolsim_cost cost;
};

enum poolsim_measure {
    POOLSIM_SPREAD,   // variation of the waits over dbs a.first .. a.last
    POOLSIM_OVERHEAD, // moves and closes per query
    POOLSIM_P75_RATIO,
    POOLSIM_P99_RATIO, // of the waits, group a over group b
    POOLSIM_P75,
    POOLSIM_P99,    // of the waits, seconds
    POOLSIM_ENDING, // connections at the end
};

struct poolsim_part {
    enum poolsim_measure measure;
    struct {
        uint32_t first, last;
    } a, b;
    double v100, v90, v60, v0, weight;
};

struct poolsim_load {
    uint32_t number, scale;
    struct poolsim_setup setup;
    uint64_t duration_us;
    struct poolsim_row rows[POOLSIM_ROWS];
    uint32_t row_count;
    struct poolsim_part parts[POOLSIM_PARTS];
    uint32_t part_count;
};

struct poolsim_result {
    double score, values[POOLSIM_PARTS];
    double arithmetic; // the first SPREAD, over arithmetic means; -1 when there is none
    double per_s;      // answers per second, until the last
    double overhead;
    double p50_ms, p99_ms, max_ms; // waits of all queries
    uint32_t queries, answered, ending;
    bool drained; // false: some were never served
};

/* Scenario 1 to 10; `scale` stretches its windows, not its rates or costs. `f` is POOLSIM_F. */
void poolsim_load_get(uint32_t number, uint32_t scale, uint64_t seed, uint32_t f,
                      struct poolsim_load *ret_load);
void poolsim_load_row(struct poolsim_load *load, uint32_t db, uint64_t start_ms, uint64_t end_ms,
                      uint32_t qps, uint64_t cost_us, uint64_t spread_us);
/* Submits all queries of the load's rows. */
void poolsim_load_submit(const struct poolsim_load *load, struct poolsim *sim);
/* The whole run and its score. */
void poolsim_load_run(const struct poolsim_load *load, const struct poolsim_pool *pool,
                      struct poolsim_result *ret_result);
/* Of the run so far. */
void poolsim_score(const struct poolsim_load *load, struct poolsim *sim,
                   struct poolsim_result *ret_result);
/* Waits of the queries of dbs first .. last that arrived in from_us .. to_us, ms; `percent` of them
   waited at most so long. 0 when there are none. */
double poolsim_wait_ms(struct poolsim *sim, uint32_t first, uint32_t last, uint64_t from_us,
                       uint64_t to_us, double percent);

#endif
