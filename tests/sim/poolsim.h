// poolsim - connection pools in virtual time: what a pool under test is, and what it may use
// SPDX-License-Identifier: BSD-3-Clause
//
//   arrivals ─► line of the query's db ─► poolsim_serve ─► connection ─► answer, after its cost
//               (the simulation's)        (the pool's decision)
//
// A discrete-event simulation: one server, `dbs` blocks that compete for `capacity` connections.
// The simulation owns the clock, the lines of waiting queries (one per db, oldest first), the
// connections and what everything costs. The pool under test decides: when to connect, to move an
// idle connection to another db (disconnect, then connect, in one go), to close it, and which
// connection takes the oldest query of its db's line.
//
// A connection carries up to `depth` unanswered queries of one db and works on them one at a time,
// in order; depth 1 is exclusive checkout. Costs are drawn by the k-th connect, disconnect and
// query of a run, so all pools meet the same arrivals and the same draws.
//
// Whoever breaks a rule (more connections than the capacity, work on a connection that moves, ...)
// ends the test with a message. Calls of the pool into the simulation never call the pool back.
#ifndef HG_TEST_POOLSIM_H
#define HG_TEST_POOLSIM_H

#include <stdbool.h>
#include <stdint.h>

struct poolsim;

enum poolsim_state {
    POOLSIM_NONE,       // the slot is free
    POOLSIM_CONNECTING, // to `db`
    POOLSIM_UP,
    POOLSIM_MOVING, // to `db`, which is the new one already
    POOLSIM_CLOSING,
};

struct poolsim_conn {
    uint32_t index; // at most the capacity; used again after the end
    uint32_t db;
    enum poolsim_state state;
    uint32_t load;     // queries that it carries, unanswered
    uint64_t since_us; // when the state began; while UP, when the connect or move before it began
    uint64_t up_us;    // when it came up for the present db
    void *own;         // the pool's; NULL at first
};

struct poolsim_conf {
    uint32_t capacity;
    uint32_t depth;
    uint32_t dbs;
    uint64_t idle_us; // a connection idle for so long may be closed
};

/* A pool under test. `pool` is what `make` returned; events come one at a time. */
struct poolsim_pool {
    const char *name;
    void *(*make)(struct poolsim *sim, const struct poolsim_conf *conf);
    void (*free)(void *pool);
    /* A query has joined the line of `db`, last. */
    void (*acquire)(void *pool, uint32_t db);
    /* The connection has answered a query: it carries one less. */
    void (*release)(void *pool, struct poolsim_conn *conn);
    /* What poolsim_connect or poolsim_move began is done: the connection is UP for conn->db. */
    void (*connected)(void *pool, struct poolsim_conn *conn);
    /* ... or has failed. The slot is free when this returns, a connect may already be made. */
    void (*failed)(void *pool, struct poolsim_conn *conn);
    /* What poolsim_close began is done; the same holds. */
    void (*closed)(void *pool, struct poolsim_conn *conn);
    /* The server has dropped an UP connection; its queries have failed. The same holds. */
    void (*lost)(void *pool, struct poolsim_conn *conn);
    /* A waiting query has left the line of `db` unserved. May be NULL. */
    void (*cancelled)(void *pool, uint32_t db);
    /* Time for the pool's own business; returns after how many us it wants to be called next, 0:
       not until poolsim_tick_in. The first call comes at 10 ms. */
    uint64_t (*tick)(void *pool);
    /* Connections that the pool believes to have, those on their way up and down included. May be
       NULL; else it is held against poolsim_count after each event. */
    uint32_t (*count)(void *pool);
};

extern const struct poolsim_pool poolsim_naive, poolsim_python, poolsim_rust, poolsim_balance;

uint64_t poolsim_now_us(const struct poolsim *sim);
/* Queries in the line of `db`, and since when the first one waits (now, if none does). */
uint32_t poolsim_waiting(const struct poolsim *sim, uint32_t db);
uint64_t poolsim_oldest_us(const struct poolsim *sim, uint32_t db);
/* Connections in any state, CLOSING included: what the server sees, at most the capacity. */
uint32_t poolsim_count(const struct poolsim *sim);
/* False while the server's breaker (of runs that have one) says: not now. */
bool poolsim_may_connect(struct poolsim *sim);

/* Begins a connect: there must be room. NULL only when the breaker forbids it. */
struct poolsim_conn *poolsim_connect(struct poolsim *sim, uint32_t db);
/* Both for a connection that is UP and carries nothing. False only when the breaker forbids it. */
bool poolsim_move(struct poolsim *sim, struct poolsim_conn *conn, uint32_t db);
void poolsim_close(struct poolsim *sim, struct poolsim_conn *conn);
/* The oldest query in the line of conn->db goes to the connection, which is UP and has room. False
   if the line is empty. */
bool poolsim_serve(struct poolsim *sim, struct poolsim_conn *conn);
/* The oldest query in the line gets an error (a connect error, if so). False if it is empty. */
bool poolsim_refuse(struct poolsim *sim, uint32_t db);
/* The next tick comes after so many us, if it was to come later or not at all. */
void poolsim_tick_in(struct poolsim *sim, uint64_t delay_us);

#endif
