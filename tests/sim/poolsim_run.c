// poolsim_run - the events of a simulated run, one after the other
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include "poolsim_in.h"

#define FIRST_TICK_US 10000
#define MS_LATER_US   1000 // a probe that has no room yet

struct poolsim *poolsim_new(const struct poolsim_setup *setup, const struct poolsim_pool *pool)
{
    struct poolsim *sim = calloc(1, sizeof(*sim));
    if (sim == NULL || setup->conf.dbs > POOLSIM_DBS)
        abort();
    sim->setup = *setup;
    sim->pool = pool;
    sim->slots = calloc(setup->conf.capacity + 1, sizeof(*sim->slots));
    if (sim->slots == NULL)
        abort();
    for (uint32_t db = 0; db < setup->conf.dbs; db++)
        sim->lines[db] = (struct poolsim_line){POOLSIM_NIL, POOLSIM_NIL, 0};
    sim->connect_prng.state = setup->seed ^ 0x636f6e6e;
    sim->disconnect_prng.state = setup->seed ^ 0x64697363;
    sim->fail_prng.state = setup->seed ^ 0x6661696c;
    sim->fail_first = setup->fail_first;
    if (setup->breaker)
        hg_breaker_init(&sim->breaker, 1000000, setup->conf.capacity, setup->seed);
    if (setup->down_us > 0) {
        poolsim_push(sim, setup->down_us, POOLSIM_GOES_DOWN, 1, 0);
        poolsim_push(sim, setup->up_us, POOLSIM_GOES_DOWN, 0, 0);
    }
    sim->tick_us = POOLSIM_FOREVER;
    poolsim_tick_in(sim, FIRST_TICK_US);
    sim->own = pool->make(sim, &sim->setup.conf);
    return sim;
}

void poolsim_free(struct poolsim *sim)
{
    if (sim == NULL)
        return;
    sim->pool->free(sim->own);
    free(sim->heap);
    free(sim->queries);
    free(sim->slots);
    free(sim);
}

uint32_t poolsim_submit(struct poolsim *sim, uint32_t db, uint64_t at_us, uint64_t cost_us)
{
    uint32_t query = sim->query_count++;
    if (query == sim->query_room) {
        sim->query_room = sim->query_room > 0 ? sim->query_room * 2 : 1024;
        sim->queries = realloc(sim->queries, sim->query_room * sizeof(*sim->queries));
        if (sim->queries == NULL)
            abort();
    }
    if (at_us < sim->now_us || db >= sim->setup.conf.dbs)
        poolsim_broken(sim, "a query for the past or for no db", query);
    sim->queries[query] = (struct poolsim_query){.db = db, .at_us = at_us, .cost_us = cost_us};
    sim->coming++;
    poolsim_push(sim, at_us, POOLSIM_ARRIVES, query, 0);
    return query;
}

static void answer(struct poolsim *sim, struct poolsim_slot *slot)
{
    uint32_t query = slot->line.first;
    poolsim_part(sim, &slot->line, query);
    poolsim_end(sim, query, POOLSIM_ANSWERED);
    slot->conn.load--;
    poolsim_work(sim, slot);
    sim->pool->release(sim->own, &slot->conn);
}

static void refuse_waiting(struct poolsim *sim)
{
    for (uint32_t db = 0; db < sim->setup.conf.dbs; db++)
        while (poolsim_refuse(sim, db))
            if (sim->pool->cancelled != NULL)
                sim->pool->cancelled(sim->own, db);
}

static void arrive(struct poolsim *sim, uint32_t query)
{
    struct poolsim_query *q = &sim->queries[query];
    uint32_t db = q->db;
    sim->coming--;
    sim->open++;
    if (sim->setup.breaker && !hg_breaker_may_send(&sim->breaker)) {
        poolsim_end(sim, query, POOLSIM_REFUSED);
        return;
    }
    q->fate = POOLSIM_WAITS;
    poolsim_join(sim, &sim->lines[db], query);
    if (sim->setup.patience_us > 0)
        poolsim_push(sim, sim->now_us + sim->setup.patience_us, POOLSIM_GIVES_UP, query, 0);
    sim->pool->acquire(sim->own, db);
}

static void give_up(struct poolsim *sim, uint32_t query)
{
    uint32_t db = sim->queries[query].db;
    if (sim->queries[query].fate != POOLSIM_WAITS)
        return;
    poolsim_part(sim, &sim->lines[db], query);
    poolsim_end(sim, query, POOLSIM_LEFT);
    if (sim->pool->cancelled != NULL)
        sim->pool->cancelled(sim->own, db);
}

/* The slot's turn is over before the pool hears of it; it is free when the pool has. */
static void end_conn(struct poolsim *sim, struct poolsim_slot *slot,
                     void (*tell)(void *pool, struct poolsim_conn *conn))
{
    slot->turn++;
    sim->count--;
    tell(sim->own, &slot->conn);
    slot->conn.state = POOLSIM_NONE;
}

static void fail(struct poolsim *sim, struct poolsim_slot *slot)
{
    sim->counts.failures++;
    if (sim->setup.breaker)
        hg_breaker_tell_failed(&sim->breaker, slot->kind, sim->down, sim->now_us);
    if (!slot->probe) {
        end_conn(sim, slot, sim->pool->failed);
        return;
    }
    sim->probes--;
    sim->count--;
    slot->conn.state = POOLSIM_NONE;
}

static void come_up(struct poolsim *sim, struct poolsim_slot *slot)
{
    if (slot->fails) {
        fail(sim, slot);
        return;
    }
    if (sim->setup.breaker)
        hg_breaker_tell_connected(&sim->breaker, slot->kind, true, sim->now_us);
    if (slot->probe) {
        hg_breaker_tell_lost(&sim->breaker, HG_BREAKER_ENDED, sim->now_us);
        sim->probes--;
        sim->count--;
        slot->conn.state = POOLSIM_NONE;
        return;
    }
    slot->conn.state = POOLSIM_UP;
    slot->conn.up_us = sim->now_us;
    sim->pool->connected(sim->own, &slot->conn);
}

static void lose(struct poolsim *sim, struct poolsim_slot *slot)
{
    sim->counts.losses++;
    if (sim->setup.breaker)
        hg_breaker_tell_lost(
            &sim->breaker, slot->conn.load > 0 ? HG_BREAKER_BROKEN : HG_BREAKER_ENDED, sim->now_us);
    while (slot->line.first != POOLSIM_NIL) {
        uint32_t query = slot->line.first;
        poolsim_part(sim, &slot->line, query);
        poolsim_end(sim, query, POOLSIM_LOST);
    }
    slot->conn.load = 0;
    end_conn(sim, slot, sim->pool->lost);
}

/* All connections end together, whatever they were doing; those that the pool begins meanwhile are
   of a later turn. */
static void go_down(struct poolsim *sim)
{
    uint32_t n = sim->setup.conf.capacity + 1;
    uint32_t turns[n];
    for (uint32_t i = 0; i < n; i++)
        turns[i] = sim->slots[i].turn;
    for (uint32_t i = 0; i < n; i++) {
        struct poolsim_slot *slot = &sim->slots[i];
        if (slot->turn != turns[i])
            continue;
        switch (slot->conn.state) {
        case POOLSIM_NONE:
            break;
        case POOLSIM_CONNECTING:
        case POOLSIM_MOVING:
            fail(sim, slot);
            break;
        case POOLSIM_UP:
            lose(sim, slot);
            break;
        case POOLSIM_CLOSING:
            end_conn(sim, slot, sim->pool->closed);
            break;
        }
    }
}

/* While the breaker is open the simulation itself probes, as the store does; the pool is not asked,
   and the connection of a probe is not the pool's. */
static void probe(struct poolsim *sim)
{
    uint32_t i = 0;
    sim->probe_due = false;
    if (hg_breaker_state(&sim->breaker) != HG_BREAKER_OPEN ||
        sim->count >= sim->setup.conf.capacity ||
        hg_breaker_take_connect(&sim->breaker, sim->now_us) != HG_BREAKER_PROBE)
        return;
    while (sim->slots[i].conn.state != POOLSIM_NONE)
        i++;
    struct poolsim_slot *slot = &sim->slots[i];
    slot->conn = (struct poolsim_conn){.index = i};
    if (sim->on_begin != NULL)
        sim->on_begin(sim->on_begin_arg, &slot->conn, POOLSIM_CONNECTING, 0);
    slot->conn.state = POOLSIM_CONNECTING;
    slot->conn.since_us = sim->now_us;
    slot->kind = HG_BREAKER_PROBE;
    slot->probe = true;
    slot->fails = sim->down || hg_prng_below(&sim->fail_prng, 100) < sim->setup.fail_percent;
    sim->count++;
    sim->probes++;
    sim->counts.connects++;
    uint64_t us = poolsim_draw(&sim->connect_prng, &sim->setup.connect);
    poolsim_push(sim, sim->now_us + (sim->down ? sim->setup.refused_us : us), POOLSIM_COMES_UP, i,
                 ++slot->turn);
}

/* What the breaker asks of its driver: while it is open, nobody waits. It opens with nothing live.
 */
static void look_at_breaker(struct poolsim *sim)
{
    if (!hg_breaker_may_send(&sim->breaker))
        refuse_waiting(sim);
    if (hg_breaker_state(&sim->breaker) == HG_BREAKER_OPEN && !sim->probe_due) {
        uint64_t at_us = hg_breaker_next_us(&sim->breaker);
        if (at_us <= sim->now_us)
            at_us = sim->now_us + MS_LATER_US;
        else if (at_us == POOLSIM_FOREVER)
            return;
        poolsim_push(sim, at_us, POOLSIM_PROBES, 0, 0);
        sim->probe_due = true;
    }
}

static void tick(struct poolsim *sim)
{
    sim->tick_us = POOLSIM_FOREVER;
    uint64_t delay_us = sim->pool->tick(sim->own);
    if (delay_us > 0)
        poolsim_tick_in(sim, delay_us);
}

static void happen(struct poolsim *sim, const struct poolsim_event *event)
{
    struct poolsim_slot *slot =
        &sim->slots[event->what == POOLSIM_ANSWERS || event->what == POOLSIM_COMES_UP ||
                            event->what == POOLSIM_CLOSED
                        ? event->id
                        : 0];
    bool void_turn = slot->turn != event->turn;
    switch (event->what) {
    case POOLSIM_ARRIVES:
        arrive(sim, event->id);
        break;
    case POOLSIM_ANSWERS:
        if (!void_turn)
            answer(sim, slot);
        break;
    case POOLSIM_GIVES_UP:
        give_up(sim, event->id);
        break;
    case POOLSIM_COMES_UP:
        if (!void_turn)
            come_up(sim, slot);
        break;
    case POOLSIM_CLOSED:
        if (!void_turn)
            end_conn(sim, slot, sim->pool->closed);
        break;
    case POOLSIM_TICKS:
        if (event->turn == sim->tick_turn)
            tick(sim);
        break;
    case POOLSIM_GOES_DOWN:
        sim->down = event->id == 1;
        if (sim->down)
            go_down(sim);
        break;
    case POOLSIM_PROBES:
        probe(sim);
        break;
    }
}

static bool step(struct poolsim *sim, uint64_t until_us)
{
    struct poolsim_event event;
    if (!poolsim_pop(sim, until_us, &event))
        return false;
    sim->now_us = event.at_us;
    sim->counts.events++;
    happen(sim, &event);
    if (sim->setup.breaker)
        look_at_breaker(sim);
    if (sim->pool->count != NULL && sim->pool->count(sim->own) != poolsim_count(sim))
        poolsim_broken(sim, "it believes in another number of connections",
                       sim->pool->count(sim->own));
    return true;
}

void poolsim_run(struct poolsim *sim, uint64_t until_us)
{
    while (step(sim, until_us))
        ;
    sim->now_us = until_us;
}

bool poolsim_run_out(struct poolsim *sim, uint64_t until_us)
{
    while (sim->coming > 0 || sim->open > 0)
        if (!step(sim, until_us)) {
            sim->now_us = until_us;
            return false;
        }
    return true;
}

void poolsim_finish(struct poolsim *sim, uint32_t query)
{
    struct poolsim_query *q = &sim->queries[query];
    if (q->cost_us != POOLSIM_HELD || q->fate != POOLSIM_WORKED_ON)
        poolsim_broken(sim, "a query that is not held is to be finished", query);
    poolsim_push(sim, sim->now_us, POOLSIM_ANSWERS, q->conn, sim->slots[q->conn].turn);
}

uint32_t poolsim_queries(const struct poolsim *sim)
{
    return sim->query_count;
}

const struct poolsim_query *poolsim_query(const struct poolsim *sim, uint32_t query)
{
    return &sim->queries[query];
}

const struct poolsim_counts *poolsim_counts(const struct poolsim *sim)
{
    return &sim->counts;
}

uint32_t poolsim_count_of(const struct poolsim *sim, uint32_t db)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i <= sim->setup.conf.capacity; i++)
        count += sim->slots[i].conn.state != POOLSIM_NONE && sim->slots[i].conn.db == db;
    return count;
}

void *poolsim_own(struct poolsim *sim)
{
    return sim->own;
}

void poolsim_watch(struct poolsim *sim,
                   void (*on_begin)(void *arg, const struct poolsim_conn *conn,
                                    enum poolsim_state state, uint32_t db),
                   void *arg)
{
    sim->on_begin = on_begin;
    sim->on_begin_arg = arg;
}
