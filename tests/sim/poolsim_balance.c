// poolsim_balance - the planner of core/balance as a pool of the simulation
// SPDX-License-Identifier: BSD-3-Clause
//
// What a driver has to do, and no more: it tells the events, carries plans out, and serves the line
// of a connection's db from every connection that has room.
#include <stdlib.h>

#include "core/balance.h"
#include "poolsim.h"
#include "poolsim_balance.h"

static void *balance_make(struct poolsim *sim, const struct poolsim_conf *conf)
{
    const struct hg_balance_conf balance_conf = {
        .depth = conf->depth,
        .hold_min_us = 10000,
        .hold_max_us = 2000000,
        .idle_us = conf->idle_us,
    };
    struct poolsim_balance_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        abort();
    pool->sim = sim;
    pool->conf = *conf;
    pool->blocks = calloc(conf->dbs, sizeof(*pool->blocks));
    pool->conns = calloc(conf->capacity + 1, sizeof(*pool->conns));
    pool->slots = calloc(conf->capacity + 1, sizeof(*pool->slots));
    if (pool->blocks == NULL || pool->conns == NULL || pool->slots == NULL)
        abort();
    hg_balance_init(&pool->balance, &balance_conf, conf->capacity, poolsim_now_us(sim));
    for (uint32_t db = 0; db < conf->dbs; db++)
        hg_balance_block_add(&pool->balance, &pool->blocks[db], poolsim_now_us(sim));
    pool->ticking = true;
    return pool;
}

static void balance_free(void *arg)
{
    struct poolsim_balance_pool *pool = arg;
    free(pool->blocks);
    free(pool->conns);
    free(pool->slots);
    free(pool);
}

static struct hg_balance_conn *conn_of(struct poolsim_balance_pool *pool,
                                       const struct poolsim_conn *slot)
{
    return &pool->conns[slot->index];
}

static struct poolsim_conn *slot_of(struct poolsim_balance_pool *pool,
                                    const struct hg_balance_conn *conn)
{
    return pool->slots[conn - pool->conns];
}

/* The line of the db is so long now. */
static void tell_waiters(struct poolsim_balance_pool *pool, uint32_t db)
{
    struct hg_balance_block *block = &pool->blocks[db];
    while (block->waiters < poolsim_waiting(pool->sim, db))
        hg_balance_wait_begin(&pool->balance, block, poolsim_now_us(pool->sim));
    while (block->waiters > poolsim_waiting(pool->sim, db))
        hg_balance_wait_end(&pool->balance, block, poolsim_oldest_us(pool->sim, db));
}

static bool has_room(const struct poolsim_balance_pool *pool, const struct hg_balance_conn *conn)
{
    return (conn->state == HG_BALANCE_IDLE || conn->state == HG_BALANCE_BUSY) &&
           conn->load < pool->conf.depth;
}

/* Puts queries of the line on the connection while it has room. */
static void serve(struct poolsim_balance_pool *pool, struct hg_balance_conn *conn)
{
    struct poolsim_conn *slot = slot_of(pool, conn);
    while (has_room(pool, conn) && poolsim_serve(pool->sim, slot)) {
        if (conn->state == HG_BALANCE_IDLE)
            hg_balance_conn_busy(&pool->balance, conn, poolsim_now_us(pool->sim));
        conn->load = slot->load;
    }
    tell_waiters(pool, slot->db);
}

static void carry_out(struct poolsim_balance_pool *pool, const struct hg_balance_plan *plan,
                      bool steal)
{
    uint64_t now_us = poolsim_now_us(pool->sim);
    struct poolsim_conn *slot;
    switch (plan->verb) {
    case HG_BALANCE_CREATE:
        slot = poolsim_connect(pool->sim, (uint32_t)(plan->block - pool->blocks));
        if (slot == NULL)
            return;
        pool->slots[slot->index] = slot;
        pool->conns[slot->index] = (struct hg_balance_conn){0};
        hg_balance_conn_add(&pool->balance, conn_of(pool, slot), plan->block, now_us);
        return;
    case HG_BALANCE_MOVE:
        slot = slot_of(pool, plan->conn);
        if (poolsim_move(pool->sim, slot, (uint32_t)(plan->block - pool->blocks))) {
            hg_balance_conn_rebind(&pool->balance, plan->conn, plan->block, steal, now_us);
            return;
        }
        /* Declined: it stays with its block, whose line may not be empty. */
        hg_balance_conn_undrain(&pool->balance, plan->conn, now_us);
        serve(pool, plan->conn);
        return;
    case HG_BALANCE_DRAIN:
        hg_balance_conn_drain(&pool->balance, plan->conn, plan->block, now_us);
        return;
    case HG_BALANCE_UNDRAIN:
        hg_balance_conn_undrain(&pool->balance, plan->conn, now_us);
        serve(pool, plan->conn);
        return;
    case HG_BALANCE_CLOSE:
        hg_balance_conn_closing(&pool->balance, plan->conn, now_us);
        poolsim_close(pool->sim, slot_of(pool, plan->conn));
        return;
    default:
        return;
    }
}

/* The connection is empty. */
static void offer(struct poolsim_balance_pool *pool, struct hg_balance_conn *conn)
{
    struct hg_balance_plan plan =
        hg_balance_plan_release(&pool->balance, conn, poolsim_now_us(pool->sim));
    if (plan.verb == HG_BALANCE_KEEP)
        serve(pool, conn);
    else
        carry_out(pool, &plan, false);
}

/* A connection of the block that is busy and has room, the last one that became busy. */
static struct hg_balance_conn *half_full(const struct poolsim_balance_pool *pool,
                                         struct hg_balance_block *block)
{
    for (struct hg_list *node = block->busy.prev; node != &block->busy; node = node->prev) {
        struct hg_balance_conn *conn = HG_CONTAINER_OF(node, struct hg_balance_conn, node);
        if (has_room(pool, conn))
            return conn;
    }
    return NULL;
}

static void wake_tick(struct poolsim_balance_pool *pool)
{
    if (!pool->ticking)
        poolsim_tick_in(pool->sim, HG_BALANCE_TICK_US);
    pool->ticking = true;
}

static void balance_acquire(void *arg, uint32_t db)
{
    struct poolsim_balance_pool *pool = arg;
    struct hg_balance_block *block = &pool->blocks[db];
    uint64_t now_us = poolsim_now_us(pool->sim);
    struct hg_balance_conn *conn = half_full(pool, block);
    hg_balance_arrived(&pool->balance, block, now_us);
    wake_tick(pool);
    if (conn == NULL) {
        struct hg_balance_plan plan = hg_balance_plan_acquire(&pool->balance, block, now_us);
        conn = plan.verb == HG_BALANCE_USE ? plan.conn : NULL;
        carry_out(pool, &plan, true);
    }
    if (conn != NULL)
        serve(pool, conn);
    tell_waiters(pool, db);
}

static void balance_release(void *arg, struct poolsim_conn *slot)
{
    struct poolsim_balance_pool *pool = arg;
    struct hg_balance_conn *conn = conn_of(pool, slot);
    hg_balance_answered(conn, 1, poolsim_now_us(pool->sim));
    conn->load = slot->load;
    if (conn->load > 0) {
        serve(pool, conn);
        return;
    }
    hg_balance_conn_idle(&pool->balance, conn, poolsim_now_us(pool->sim));
    offer(pool, conn);
}

static void balance_connected(void *arg, struct poolsim_conn *slot)
{
    struct poolsim_balance_pool *pool = arg;
    struct hg_balance_conn *conn = conn_of(pool, slot);
    hg_balance_conn_up(&pool->balance, conn, poolsim_now_us(pool->sim));
    serve(pool, conn);
}

static void gone(struct poolsim_balance_pool *pool, struct poolsim_conn *slot, bool failed)
{
    hg_balance_conn_gone(&pool->balance, conn_of(pool, slot), failed, poolsim_now_us(pool->sim));
    tell_waiters(pool, slot->db);
    wake_tick(pool);
}

/* If nothing else can serve them, those who have waited since before the connect began hear of its
   failure: one, as long as the next try may follow soon; twice as many after each further one. */
static void balance_failed(void *arg, struct poolsim_conn *slot)
{
    struct poolsim_balance_pool *pool = arg;
    struct hg_balance_block *block = &pool->blocks[slot->db];
    uint64_t began_us = conn_of(pool, slot)->bound_us;
    gone(pool, slot, true);
    uint32_t n = hg_balance_has_source(block) ? 0 : 1;
    if (block->failures > 3)
        n <<= block->failures < 20 ? block->failures - 3 : 17;
    while (n > 0 && poolsim_waiting(pool->sim, slot->db) > 0 &&
           poolsim_oldest_us(pool->sim, slot->db) <= began_us) {
        poolsim_refuse(pool->sim, slot->db);
        n--;
    }
    tell_waiters(pool, slot->db);
}

static void balance_closed(void *arg, struct poolsim_conn *slot)
{
    gone(arg, slot, false);
}

static void balance_cancelled(void *arg, uint32_t db)
{
    tell_waiters(arg, db);
}

static uint64_t balance_tick(void *arg)
{
    struct poolsim_balance_pool *pool = arg;
    struct hg_balance_plan ops[HG_BALANCE_OPS_MAX];
    uint64_t now_us = poolsim_now_us(pool->sim), next_us;
    if (pool->on_tick != NULL)
        pool->on_tick(pool);
    uint32_t count = hg_balance_rebalance(&pool->balance, ops, HG_BALANCE_OPS_MAX, now_us);
    for (uint32_t i = 0; i < count; i++)
        carry_out(pool, &ops[i], false);
    if (hg_balance_needs_tick(&pool->balance))
        return HG_BALANCE_TICK_US;
    pool->ticking = false;
    next_us = hg_balance_next_us(&pool->balance);
    return next_us == UINT64_MAX ? 0 : next_us > now_us ? next_us - now_us : HG_BALANCE_TICK_US;
}

static uint32_t balance_count(void *arg)
{
    const struct poolsim_balance_pool *pool = arg;
    return pool->balance.total;
}

const struct poolsim_pool poolsim_balance = {
    .name = "headgate",
    .make = balance_make,
    .free = balance_free,
    .acquire = balance_acquire,
    .release = balance_release,
    .connected = balance_connected,
    .failed = balance_failed,
    .closed = balance_closed,
    .lost = balance_closed,
    .cancelled = balance_cancelled,
    .tick = balance_tick,
    .count = balance_count,
};
