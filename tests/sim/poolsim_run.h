// poolsim_run - a run of the simulation: what it is given, what it yields
// SPDX-License-Identifier: BSD-3-Clause
//
// The driver's side; poolsim.h is the pool's. Queries are submitted in any order before they are
// due, then the run goes on until a moment. Equal setups and queries give equal runs.
#ifndef HG_TEST_POOLSIM_RUN_H
#define HG_TEST_POOLSIM_RUN_H

#include "base/prng.h"
#include "poolsim.h"

#define POOLSIM_DBS     64
#define POOLSIM_FOREVER UINT64_MAX
/* A query that keeps its connection until poolsim_finish. */
#define POOLSIM_HELD UINT64_MAX

/* Triangular on base - spread .. base + spread, at least `floor_us`. */
struct poolsim_cost {
    uint64_t base_us, spread_us, floor_us;
};

struct poolsim_setup {
    struct poolsim_conf conf;
    struct poolsim_cost connect, disconnect;
    uint64_t seed;
    uint32_t fail_percent; // of connects and of the connect half of moves
    uint32_t fail_first;   // so many connects to `fail_db` fail at first
    uint32_t fail_db;
    uint64_t patience_us;    // a query leaves the line after so long; 0: never
    uint64_t down_us, up_us; // the server is down from .. to; 0: never
    uint64_t refused_us;     // how long it takes to be refused meanwhile
    bool breaker; // the simulation asks core/breaker before connects, and refuses queries
};

enum poolsim_fate {
    POOLSIM_COMING,
    POOLSIM_WAITS,
    POOLSIM_SENT,
    POOLSIM_WORKED_ON,
    POOLSIM_ANSWERED,
    POOLSIM_LEFT,
    POOLSIM_REFUSED,
    POOLSIM_LOST
};

struct poolsim_query {
    uint32_t db;
    enum poolsim_fate fate;
    uint64_t at_us, cost_us;
    uint64_t begun_us; // when a connection began to work on it; 0 before
    uint64_t end_us;   // answered, refused, left or lost
    uint32_t conn;
    uint32_t prev, next; // in a line, or on a connection
};

struct poolsim_counts {
    uint64_t connects, failures, moves, closes, losses; // moves and closes: finished ones too
    uint64_t events;
};

struct poolsim *poolsim_new(const struct poolsim_setup *setup, const struct poolsim_pool *pool);
void poolsim_free(struct poolsim *sim);
/* Returns the query's number: 0, 1, ... `at_us` may not lie in the past. */
uint32_t poolsim_submit(struct poolsim *sim, uint32_t db, uint64_t at_us, uint64_t cost_us);
/* A HELD query that has its connection is answered now. */
void poolsim_finish(struct poolsim *sim, uint32_t query);
/* Goes on to that moment. */
void poolsim_run(struct poolsim *sim, uint64_t until_us);
/* ... or until nobody waits or is worked on, whichever is first; false if that is the moment. */
bool poolsim_run_out(struct poolsim *sim, uint64_t until_us);

uint32_t poolsim_queries(const struct poolsim *sim);
const struct poolsim_query *poolsim_query(const struct poolsim *sim, uint32_t query);
const struct poolsim_counts *poolsim_counts(const struct poolsim *sim);
/* Connections of `db`, those on the way included. */
uint32_t poolsim_count_of(const struct poolsim *sim, uint32_t db);
/* The pool's own state, for tests of one pool. */
void *poolsim_own(struct poolsim *sim);
/* Called just before each connect, move and close begins: what it will be, and for which db; `conn`
   is still what it was, its state NONE before a connect. NULL: no longer. */
void poolsim_watch(struct poolsim *sim,
                   void (*on_begin)(void *arg, const struct poolsim_conn *conn,
                                    enum poolsim_state state, uint32_t db),
                   void *arg);
uint64_t poolsim_draw(struct hg_prng *prng, const struct poolsim_cost *cost);

#endif
