// poolsim - what a pool under test may do, see poolsim.h
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include "poolsim_in.h"

void poolsim_broken(const struct poolsim *sim, const char *rule, uint32_t id)
{
    fprintf(stderr, "pool '%s' at %llu us: %s (%u)\n", sim->pool->name,
            (unsigned long long)sim->now_us, rule, id);
    abort();
}

/* Lines */

void poolsim_join(struct poolsim *sim, struct poolsim_line *line, uint32_t query)
{
    struct poolsim_query *q = &sim->queries[query];
    q->prev = line->last;
    q->next = POOLSIM_NIL;
    if (line->last == POOLSIM_NIL)
        line->first = query;
    else
        sim->queries[line->last].next = query;
    line->last = query;
    line->count++;
}

void poolsim_part(struct poolsim *sim, struct poolsim_line *line, uint32_t query)
{
    struct poolsim_query *q = &sim->queries[query];
    if (q->prev == POOLSIM_NIL)
        line->first = q->next;
    else
        sim->queries[q->prev].next = q->next;
    if (q->next == POOLSIM_NIL)
        line->last = q->prev;
    else
        sim->queries[q->next].prev = q->prev;
    line->count--;
}

/* Events */

static bool is_before(const struct poolsim_event *a, const struct poolsim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

void poolsim_push(struct poolsim *sim, uint64_t at_us, enum poolsim_what what, uint32_t id,
                  uint32_t turn)
{
    struct poolsim_event event = {at_us, sim->order++, what, id, turn};
    uint32_t i = sim->heap_count++;
    if (i == sim->heap_room) {
        sim->heap_room = sim->heap_room > 0 ? sim->heap_room * 2 : 256;
        sim->heap = realloc(sim->heap, sim->heap_room * sizeof(*sim->heap));
        if (sim->heap == NULL)
            abort();
    }
    for (; i > 0 && is_before(&event, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
        sim->heap[i] = sim->heap[(i - 1) / 2];
    sim->heap[i] = event;
}

bool poolsim_pop(struct poolsim *sim, uint64_t until_us, struct poolsim_event *ret_event)
{
    if (sim->heap_count == 0 || sim->heap[0].at_us > until_us)
        return false;
    *ret_event = sim->heap[0];
    struct poolsim_event last = sim->heap[--sim->heap_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= sim->heap_count)
            break;
        if (child + 1 < sim->heap_count && is_before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (is_before(&last, &sim->heap[child]))
            break;
        sim->heap[i] = sim->heap[child];
        i = child;
    }
    sim->heap[i] = last;
    return true;
}

/* Costs */

uint64_t poolsim_draw(struct hg_prng *prng, const struct poolsim_cost *cost)
{
    /* The sum of two uniform draws has a triangular distribution. */
    uint64_t up_us = hg_prng_below(prng, cost->spread_us + 1);
    uint64_t down_us = hg_prng_below(prng, cost->spread_us + 1);
    uint64_t us = cost->base_us + up_us;
    us = us > down_us ? us - down_us : 0;
    return us > cost->floor_us ? us : cost->floor_us;
}

/* Whether this connect fails is drawn when it begins. */
static bool draw_failure(struct poolsim *sim, uint32_t db)
{
    bool fails = hg_prng_below(&sim->fail_prng, 100) < sim->setup.fail_percent;
    if (sim->fail_first > 0 && db == sim->setup.fail_db) {
        sim->fail_first--;
        fails = true;
    }
    return fails;
}

/* Looks */

uint64_t poolsim_now_us(const struct poolsim *sim)
{
    return sim->now_us;
}

uint32_t poolsim_waiting(const struct poolsim *sim, uint32_t db)
{
    return sim->lines[db].count;
}

uint64_t poolsim_oldest_us(const struct poolsim *sim, uint32_t db)
{
    uint32_t first = sim->lines[db].first;
    return first == POOLSIM_NIL ? sim->now_us : sim->queries[first].at_us;
}

uint32_t poolsim_count(const struct poolsim *sim)
{
    return sim->count - sim->probes;
}

bool poolsim_may_connect(struct poolsim *sim)
{
    return !sim->setup.breaker || hg_breaker_next_us(&sim->breaker) <= sim->now_us;
}

/* Deeds */

static struct poolsim_slot *slot_of(struct poolsim *sim, struct poolsim_conn *conn,
                                    const char *rule)
{
    struct poolsim_slot *slot = &sim->slots[conn->index];
    if (conn->state != POOLSIM_UP || conn->load > 0)
        poolsim_broken(sim, rule, conn->index);
    return slot;
}

static bool take_connect(struct poolsim *sim, enum hg_breaker_connect *ret_kind)
{
    *ret_kind = HG_BREAKER_CONNECT;
    if (sim->setup.breaker)
        *ret_kind = hg_breaker_take_connect(&sim->breaker, sim->now_us);
    return *ret_kind != HG_BREAKER_WAIT;
}

static void begin(struct poolsim *sim, struct poolsim_slot *slot, uint32_t db,
                  enum poolsim_state state, uint64_t takes_us)
{
    if (sim->on_begin != NULL)
        sim->on_begin(sim->on_begin_arg, &slot->conn, state, db);
    slot->conn.db = db;
    slot->conn.state = state;
    slot->conn.since_us = sim->now_us;
    poolsim_push(sim, sim->now_us + takes_us,
                 state == POOLSIM_CLOSING ? POOLSIM_CLOSED : POOLSIM_COMES_UP, slot->conn.index,
                 ++slot->turn);
}

static uint64_t begin_connect(struct poolsim *sim, struct poolsim_slot *slot, uint32_t db)
{
    uint64_t us = poolsim_draw(&sim->connect_prng, &sim->setup.connect);
    slot->fails = draw_failure(sim, db);
    if (!sim->down)
        return us;
    slot->fails = true;
    return sim->setup.refused_us;
}

struct poolsim_conn *poolsim_connect(struct poolsim *sim, uint32_t db)
{
    enum hg_breaker_connect kind;
    uint32_t i = 0;
    if (sim->count >= sim->setup.conf.capacity)
        poolsim_broken(sim, "a connect without room", db);
    if (db >= sim->setup.conf.dbs)
        poolsim_broken(sim, "a connect to no db", db);
    if (!take_connect(sim, &kind))
        return NULL;
    while (sim->slots[i].conn.state != POOLSIM_NONE)
        i++;
    struct poolsim_slot *slot = &sim->slots[i];
    slot->conn = (struct poolsim_conn){.index = i};
    slot->line = (struct poolsim_line){POOLSIM_NIL, POOLSIM_NIL, 0};
    slot->kind = kind;
    slot->probe = false;
    sim->count++;
    sim->counts.connects++;
    begin(sim, slot, db, POOLSIM_CONNECTING, begin_connect(sim, slot, db));
    return &slot->conn;
}

bool poolsim_move(struct poolsim *sim, struct poolsim_conn *conn, uint32_t db)
{
    struct poolsim_slot *slot = slot_of(sim, conn, "a move of a connection that is not idle");
    enum hg_breaker_connect kind;
    if (db >= sim->setup.conf.dbs)
        poolsim_broken(sim, "a move to no db", db);
    if (!take_connect(sim, &kind))
        return false;
    if (sim->setup.breaker)
        hg_breaker_tell_lost(&sim->breaker, HG_BREAKER_ENDED, sim->now_us);
    uint64_t us = poolsim_draw(&sim->disconnect_prng, &sim->setup.disconnect);
    slot->kind = kind;
    sim->counts.moves++;
    begin(sim, slot, db, POOLSIM_MOVING, us + begin_connect(sim, slot, db));
    return true;
}

void poolsim_close(struct poolsim *sim, struct poolsim_conn *conn)
{
    struct poolsim_slot *slot = slot_of(sim, conn, "a close of a connection that is not idle");
    if (sim->setup.breaker)
        hg_breaker_tell_lost(&sim->breaker, HG_BREAKER_ENDED, sim->now_us);
    sim->counts.closes++;
    begin(sim, slot, conn->db, POOLSIM_CLOSING,
          poolsim_draw(&sim->disconnect_prng, &sim->setup.disconnect));
}

void poolsim_work(struct poolsim *sim, struct poolsim_slot *slot)
{
    struct poolsim_query *query;
    if (slot->line.first == POOLSIM_NIL)
        return;
    query = &sim->queries[slot->line.first];
    if (query->fate != POOLSIM_SENT)
        return;
    query->fate = POOLSIM_WORKED_ON;
    query->begun_us = sim->now_us;
    if (query->cost_us != POOLSIM_HELD)
        poolsim_push(sim, sim->now_us + query->cost_us, POOLSIM_ANSWERS, slot->conn.index,
                     slot->turn);
}

bool poolsim_serve(struct poolsim *sim, struct poolsim_conn *conn)
{
    struct poolsim_slot *slot = &sim->slots[conn->index];
    struct poolsim_line *line = &sim->lines[conn->db];
    uint32_t query = line->first;
    if (conn->state != POOLSIM_UP || conn->load >= sim->setup.conf.depth)
        poolsim_broken(sim, "a query for a connection without room", conn->index);
    if (query == POOLSIM_NIL)
        return false;
    poolsim_part(sim, line, query);
    poolsim_join(sim, &slot->line, query);
    sim->queries[query].fate = POOLSIM_SENT;
    sim->queries[query].conn = conn->index;
    conn->load++;
    poolsim_work(sim, slot);
    return true;
}

void poolsim_end(struct poolsim *sim, uint32_t query, enum poolsim_fate fate)
{
    sim->queries[query].fate = fate;
    sim->queries[query].end_us = sim->now_us;
    sim->open--;
}

bool poolsim_refuse(struct poolsim *sim, uint32_t db)
{
    uint32_t query = sim->lines[db].first;
    if (query == POOLSIM_NIL)
        return false;
    poolsim_part(sim, &sim->lines[db], query);
    poolsim_end(sim, query, POOLSIM_REFUSED);
    return true;
}

void poolsim_tick_in(struct poolsim *sim, uint64_t delay_us)
{
    if (sim->now_us + delay_us >= sim->tick_us)
        return;
    sim->tick_us = sim->now_us + delay_us;
    poolsim_push(sim, sim->tick_us, POOLSIM_TICKS, 0, ++sim->tick_turn);
}
