// poolsim_in - the simulation's insides, shared by its files
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TEST_POOLSIM_IN_H
#define HG_TEST_POOLSIM_IN_H

#include "core/breaker.h"
#include "poolsim_run.h"

#define POOLSIM_NIL UINT32_MAX

enum poolsim_what {
    POOLSIM_ARRIVES,
    POOLSIM_ANSWERS,
    POOLSIM_GIVES_UP,
    POOLSIM_COMES_UP,
    POOLSIM_CLOSED,
    POOLSIM_TICKS,
    POOLSIM_GOES_DOWN,
    POOLSIM_PROBES
};

struct poolsim_event {
    uint64_t at_us, order;
    enum poolsim_what what;
    uint32_t id, turn; // of a query or a slot; an event of an earlier turn is void
};

struct poolsim_line {
    uint32_t first, last, count;
};

/* A connection, and what the pool is not shown. */
struct poolsim_slot {
    struct poolsim_conn conn;
    struct poolsim_line line; // its queries, the first is worked on
    uint32_t turn;
    bool fails, probe;
    enum hg_breaker_connect kind;
};

struct poolsim {
    struct poolsim_setup setup;
    const struct poolsim_pool *pool;
    void *own;
    uint64_t now_us;
    struct poolsim_event *heap;
    uint32_t heap_count, heap_room;
    uint64_t order;
    struct poolsim_query *queries;
    uint32_t query_count, query_room;
    uint32_t open; // queries that have arrived and have no end
    uint32_t coming;
    struct poolsim_line lines[POOLSIM_DBS];
    struct poolsim_slot *slots; // capacity + 1: one ends while the next begins
    uint32_t count, probes;
    bool down;
    uint64_t tick_us;
    uint32_t tick_turn;
    struct hg_prng connect_prng, disconnect_prng, fail_prng;
    uint32_t fail_first;
    struct hg_breaker breaker;
    bool probe_due;
    struct poolsim_counts counts;
    void (*on_begin)(void *arg, const struct poolsim_conn *conn, enum poolsim_state state,
                     uint32_t db);
    void *on_begin_arg;
};

void poolsim_push(struct poolsim *sim, uint64_t at_us, enum poolsim_what what, uint32_t id,
                  uint32_t turn);
bool poolsim_pop(struct poolsim *sim, uint64_t until_us, struct poolsim_event *ret_event);
void poolsim_join(struct poolsim *sim, struct poolsim_line *line, uint32_t query);
void poolsim_part(struct poolsim *sim, struct poolsim_line *line, uint32_t query);
/* Ends the process with a message. */
void poolsim_broken(const struct poolsim *sim, const char *rule, uint32_t id)
    __attribute__((noreturn));
void poolsim_work(struct poolsim *sim, struct poolsim_slot *slot);
void poolsim_end(struct poolsim *sim, uint32_t query, enum poolsim_fate fate);

#endif
