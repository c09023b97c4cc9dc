// balance_tick - plans which block gets which connection: once per tick
// SPDX-License-Identifier: BSD-3-Clause
//
// Puts the blocks in order of hunger and of what they have beyond their quota (the best
// HG_BALANCE_LISTED of each, which the request path looks at until the next tick), then plans: old
// drains are given back, what is to end is closed, room is used, idle connections move, busy ones
// are drained, and what was idle for too long is closed. Steps that are planned but not carried out
// yet are counted (planned_in, planned_out, conn.planned) until all is written.
#include "core/balance_in.h"

#include <string.h>

#define DRAIN_MIN_US 50000 // a drain is given that long at least
#define DRAIN_FACTOR 10    // or so many times what nearly all requests take
#define VICTIMS      HG_BALANCE_LISTED

struct ops {
    struct hg_balance *balance;
    struct hg_balance_plan *ops;
    uint32_t count, cap;
    uint32_t room; // capacity that is neither held nor planned to be
    uint64_t now_us;
};

static bool is_full(const struct ops *ops)
{
    return ops->count == ops->cap;
}

static void add(struct ops *ops, enum hg_balance_verb verb, struct hg_balance_block *block,
                struct hg_balance_conn *conn)
{
    ops->ops[ops->count++] = (struct hg_balance_plan){verb, block, conn};
    if (conn != NULL)
        conn->planned = true;
    if (block != NULL)
        block->planned_in++;
    if (conn != NULL && verb != HG_BALANCE_UNDRAIN)
        conn->block->planned_out++;
}

static void forget_planned(const struct ops *ops)
{
    for (uint32_t i = 0; i < ops->count; i++) {
        const struct hg_balance_plan *op = &ops->ops[i];
        if (op->block != NULL)
            op->block->planned_in = 0;
        if (op->conn != NULL) {
            op->conn->planned = false;
            op->conn->block->planned_out = 0;
        }
    }
}

/* ---- order ---- */

/* Is `a` hungrier than `b`? First who has least of its quota, then who waits longest. */
static bool is_hungrier(const struct hg_balance_block *a, const struct hg_balance_block *b)
{
    uint64_t left = (uint64_t)hg_balance_promised(a) * b->quota;
    uint64_t right = (uint64_t)hg_balance_promised(b) * a->quota;
    return left != right ? left < right : a->oldest_us < b->oldest_us;
}

static uint64_t longest_held_us(const struct hg_balance_block *block)
{
    uint64_t bound_us = UINT64_MAX;
    const struct hg_list *idle = block->idle.next, *busy = block->busy.next;
    if (idle != &block->idle)
        bound_us = hg_balance_conn_at(block->idle.next)->bound_us;
    if (busy != &block->busy && hg_balance_conn_at(block->busy.next)->bound_us < bound_us)
        bound_us = hg_balance_conn_at(block->busy.next)->bound_us;
    return bound_us;
}

static int64_t over(const struct hg_balance_block *block)
{
    return (int64_t)hg_balance_size(block) - block->planned_out - block->quota;
}

/* Is `a` fuller than `b`? First who has most beyond its quota, then who has held longest. */
static bool is_fuller(const struct hg_balance_block *a, const struct hg_balance_block *b)
{
    int64_t left = over(a), right = over(b);
    return left != right ? left > right : longest_held_us(a) < longest_held_us(b);
}

/* Keeps the best HG_BALANCE_LISTED in order; among equals the earlier. */
static void
list_block(struct hg_balance_block **list, uint32_t *count, struct hg_balance_block *block,
           bool (*is_before)(const struct hg_balance_block *, const struct hg_balance_block *))
{
    uint32_t i = *count;
    if (i == HG_BALANCE_LISTED) {
        if (!is_before(block, list[i - 1]))
            return;
        i--;
    } else {
        (*count)++;
    }
    for (; i > 0 && is_before(block, list[i - 1]); i--)
        list[i] = list[i - 1];
    list[i] = block;
}

/* Connections that would help the block's waiters. */
static uint32_t need_of(const struct hg_balance *balance, const struct hg_balance_block *block)
{
    uint32_t need = hg_balance_need(balance, block);
    return need > 0 && hg_balance_is_served_sooner(balance, block, block->waiters) ? 0 : need;
}

static void put_in_order(struct hg_balance *balance)
{
    balance->hungry_count = balance->overfull_count = 0;
    balance->wanted = 0;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        uint32_t need = need_of(balance, block);
        uint32_t size = hg_balance_size(block);
        if (block->suppressed)
            continue;
        balance->wanted += need;
        if (need > 0)
            list_block(balance->hungry, &balance->hungry_count, block, is_hungrier);
        if (size > block->quota || (balance->ring && size > 0))
            list_block(balance->overfull, &balance->overfull_count, block, is_fuller);
    }
}

/* ---- steps ---- */

/* How long a connection of the block may take to drain. What nearly all requests take is the
   driver's to say; it cannot be less than what the last one on a full connection takes. */
static uint64_t drain_limit_us(const struct hg_balance *balance,
                               const struct hg_balance_block *block)
{
    uint64_t full_us = (uint64_t)(block->service_us * balance->conf.depth);
    uint64_t usual_us = balance->p99_us > full_us ? balance->p99_us : full_us;
    return usual_us * DRAIN_FACTOR < DRAIN_MIN_US ? DRAIN_MIN_US : usual_us * DRAIN_FACTOR;
}

/* Drains that take too long, or that nobody waits for. */
static void plan_undrains(struct ops *ops)
{
    struct hg_balance *balance = ops->balance;
    HG_LIST_EACH(node, &balance->draining_conns)
    {
        struct hg_balance_conn *conn = hg_balance_lru_at(node);
        if (is_full(ops))
            return;
        if (balance->frozen || balance->draining || conn->block->suppressed ||
            conn->reserved->waiters == 0 || !hg_balance_is_open(conn->reserved) ||
            ops->now_us - conn->since_us > drain_limit_us(balance, conn->block))
            add(ops, HG_BALANCE_UNDRAIN, NULL, conn);
    }
}

/* What belongs to nobody any more: everything is to end, or its block is. */
static void plan_endings(struct ops *ops)
{
    struct hg_balance *balance = ops->balance;
    if (balance->draining) {
        HG_LIST_EACH(node, &balance->lru)
        {
            struct hg_balance_conn *conn = hg_balance_lru_at(node);
            if (is_full(ops))
                return;
            if (conn->block->waiters == 0)
                add(ops, HG_BALANCE_CLOSE, NULL, conn);
        }
        return;
    }
    if (balance->suppressed_count == 0)
        return;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        if (!block->suppressed || block->waiters > 0)
            continue;
        HG_LIST_EACH(idle, &block->idle)
        {
            if (is_full(ops))
                return;
            add(ops, HG_BALANCE_CLOSE, NULL, hg_balance_conn_at(idle));
        }
    }
}

/* More than the leases allow: what is idle and past its hold, longest idle first. */
static void plan_surplus(struct ops *ops)
{
    struct hg_balance *balance = ops->balance;
    uint32_t held = balance->total - balance->closing;
    uint32_t surplus = held > balance->capacity ? held - balance->capacity : 0;
    HG_LIST_EACH(node, &balance->lru)
    {
        struct hg_balance_conn *conn = hg_balance_lru_at(node);
        if (surplus == 0 || is_full(ops))
            return;
        if (conn->planned || conn->reserved != NULL || conn->block->waiters > 0 ||
            !hg_balance_movable(balance, conn, ops->now_us))
            continue;
        add(ops, HG_BALANCE_CLOSE, NULL, conn);
        surplus--;
    }
}

static void plan_creates(struct ops *ops)
{
    struct hg_balance *balance = ops->balance;
    HG_LIST_EACH(node, &balance->starving)
    {
        struct hg_balance_block *block = HG_CONTAINER_OF(node, struct hg_balance_block, starving);
        if (ops->room == 0 || is_full(ops))
            return;
        if (hg_balance_need(balance, block) == 0)
            continue;
        add(ops, HG_BALANCE_CREATE, block, NULL);
        ops->room--;
    }
    if (balance->draining)
        return;
    /* One for each in turn, hungriest first. */
    for (bool again = true; again && ops->room > 0 && !is_full(ops);) {
        again = false;
        for (uint32_t i = 0; i < balance->hungry_count && ops->room > 0 && !is_full(ops); i++) {
            if (need_of(balance, balance->hungry[i]) == 0)
                continue;
            add(ops, HG_BALANCE_CREATE, balance->hungry[i], NULL);
            ops->room--;
            again = true;
        }
    }
}

/* Connections that blocks can spare, from the longest idle on. */
static uint32_t find_victims(struct ops *ops, struct hg_balance_conn **victims)
{
    struct hg_balance *balance = ops->balance;
    uint32_t count = 0;
    HG_LIST_EACH(node, &balance->lru)
    {
        struct hg_balance_conn *conn = hg_balance_lru_at(node);
        if (count == VICTIMS)
            break;
        if (!conn->planned && conn->reserved == NULL && conn->block->waiters == 0 &&
            !conn->block->suppressed && hg_balance_movable(balance, conn, ops->now_us))
            victims[count++] = conn;
    }
    return count;
}

static bool plan_move(struct ops *ops, struct hg_balance_block *to,
                      struct hg_balance_conn **victims, uint32_t count)
{
    struct hg_balance_conn *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if ((best == NULL || over(victims[i]->block) > over(best->block)) &&
            hg_balance_may_take(ops->balance, victims[i], to, ops->now_us))
            best = victims[i];
    }
    if (best == NULL)
        return false;
    add(ops, HG_BALANCE_MOVE, to, best);
    return true;
}

static bool plan_drain(struct ops *ops, struct hg_balance_block *to)
{
    struct hg_balance *balance = ops->balance;
    for (uint32_t i = 0; i < balance->overfull_count; i++) {
        struct hg_balance_block *from = balance->overfull[i];
        struct hg_balance_conn *conn;
        if (!hg_balance_may_drain(balance, from, to) ||
            (conn = hg_balance_least_loaded(balance, from, to, ops->now_us)) == NULL)
            continue;
        add(ops, HG_BALANCE_DRAIN, to, conn);
        return true;
    }
    return false;
}

/* Gives `to` a connection of another block: an idle one, or, if `ret_drains` allows, one that is to
   be drained. False if there is none. */
static bool plan_gift(struct ops *ops, struct hg_balance_block *to,
                      struct hg_balance_conn **victims, uint32_t count, uint32_t *drains)
{
    if (count > 0 && plan_move(ops, to, victims, count))
        return true;
    if (hg_balance_promised(to) > 0 && hg_balance_promised(to) >= to->quota)
        return false;
    if (*drains == 0)
        return false;
    bool planned = plan_drain(ops, to);
    *drains = planned ? *drains - 1 : 0;
    return planned;
}

static void plan_moves(struct ops *ops)
{
    struct hg_balance *balance = ops->balance;
    struct hg_balance_conn *victims[VICTIMS];
    uint32_t count = find_victims(ops, victims);
    uint32_t most = hg_balance_twentieth(balance), drains = 0;
    if (balance->conf.depth > 1 && balance->drains < most)
        drains = most - balance->drains;
    if (count == 0 && drains == 0)
        return;
    HG_LIST_EACH(node, &balance->starving)
    {
        struct hg_balance_block *block = HG_CONTAINER_OF(node, struct hg_balance_block, starving);
        if (most == 0 || is_full(ops))
            return;
        if (hg_balance_need(balance, block) == 0)
            continue;
        if (!plan_gift(ops, block, victims, count, &drains))
            return;
        most--;
    }
    for (uint32_t i = 0; i < balance->hungry_count && most > 0 && !is_full(ops); i++) {
        struct hg_balance_block *block = balance->hungry[i];
        if (need_of(balance, block) == 0)
            continue;
        if (plan_gift(ops, block, victims, count, &drains))
            most--;
    }
}

/* A few per tick: connections that came together need not go together. None while somebody could
   use one: it will be moved there. */
static void plan_collection(struct ops *ops)
{
    struct hg_balance *balance = ops->balance;
    uint32_t most = hg_balance_twentieth(balance);
    if (balance->waiters > 0 && !balance->frozen)
        return;
    HG_LIST_EACH(node, &balance->lru)
    {
        struct hg_balance_conn *conn = hg_balance_lru_at(node);
        if (most == 0 || is_full(ops) || ops->now_us - conn->since_us < balance->conf.idle_us)
            return;
        if (conn->planned || conn->reserved != NULL || conn->block->waiters > 0 ||
            !hg_balance_movable(balance, conn, ops->now_us))
            continue;
        add(ops, HG_BALANCE_CLOSE, NULL, conn);
        most--;
    }
}

uint32_t hg_balance_rebalance(struct hg_balance *balance, struct hg_balance_plan *ops_out,
                              uint32_t cap, uint64_t now_us)
{
    struct ops ops = {balance,
                      ops_out,
                      0,
                      cap < HG_BALANCE_OPS_MAX ? cap : HG_BALANCE_OPS_MAX,
                      hg_balance_spare(balance),
                      now_us};
    hg_balance_set_quotas(balance, now_us);
    put_in_order(balance);
    plan_undrains(&ops);
    plan_endings(&ops);
    plan_surplus(&ops);
    plan_creates(&ops);
    if (!balance->frozen && !balance->draining && ops.room == 0)
        plan_moves(&ops);
    plan_collection(&ops);
    forget_planned(&ops);
    return ops.count;
}
