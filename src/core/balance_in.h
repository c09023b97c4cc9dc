// balance_in - what the parts of the planner know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CORE_BALANCE_IN_H
#define HG_CORE_BALANCE_IN_H

#include "core/balance.h"

static inline struct hg_balance_block *hg_balance_block_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_balance_block, node);
}

static inline struct hg_balance_conn *hg_balance_conn_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_balance_conn, node);
}

static inline struct hg_balance_conn *hg_balance_lru_at(struct hg_list *lru)
{
    return HG_CONTAINER_OF(lru, struct hg_balance_conn, lru);
}

/* Connections that `waiters` requests would fill. */
static inline uint32_t hg_balance_for(const struct hg_balance *balance, uint32_t waiters)
{
    uint32_t depth = balance->conf.depth;
    return depth == 1 ? waiters : waiters / depth + (waiters % depth != 0);
}

/* May it be given connections? */
static inline bool hg_balance_is_open(const struct hg_balance_block *block)
{
    return !block->suppressed && !block->barred && !block->resting;
}

/* Connections that the block's waiters could use beyond those that are on their way. */
static inline uint32_t hg_balance_need(const struct hg_balance *balance,
                                       const struct hg_balance_block *block)
{
    uint32_t wanted = hg_balance_for(balance, block->waiters);
    uint32_t sources = block->coming + block->incoming + block->planned_in;
    return !hg_balance_is_open(block) || wanted <= sources ? 0 : wanted - sources;
}

/* Connections of the block, counting what is promised to it. */
static inline uint32_t hg_balance_promised(const struct hg_balance_block *block)
{
    return hg_balance_size(block) + block->incoming + block->planned_in - block->planned_out;
}

/* Is the minimum hold of the connection over, or does the exemption apply? */
static inline bool hg_balance_movable(const struct hg_balance *balance,
                                      const struct hg_balance_conn *conn, uint64_t now_us)
{
    const struct hg_balance_block *block = conn->block;
    if (now_us - conn->bound_us >= balance->hold_us)
        return true;
    return conn->state == HG_BALANCE_IDLE && block->waiters == 0 && block->used_us < conn->up_us &&
           now_us - conn->up_us >= balance->reconnect_us;
}

/* Do both demand about as much, within a factor of two either way? */
static inline bool hg_balance_is_alike(const struct hg_balance_block *a,
                                       const struct hg_balance_block *b)
{
    return a->demand <= 2 * b->demand && b->demand <= 2 * a->demand;
}

/* Has the block had its slice of the ring with this connection, now that `to` is the next in line?
   If they are alike, it may have the time of a move more while its requests wait longer than the
   other's, and has as much less when the other's wait longer by more than a slice: so equal blocks
   wait equally long. Of others the one that asks for more is to wait longer. */
static inline bool hg_balance_turn_is_over(const struct hg_balance *balance,
                                           const struct hg_balance_conn *conn,
                                           const struct hg_balance_block *to, uint64_t now_us)
{
    int64_t slice_us = (int64_t)balance->slice_us, most_us = (int64_t)balance->reconnect_us;
    if (conn->block->waiters > 0 && to->waiters > 0 && hg_balance_is_alike(conn->block, to)) {
        int64_t longer_us = (int64_t)(to->oldest_us - conn->block->oldest_us);
        if (longer_us > 0)
            slice_us += longer_us < most_us ? longer_us : most_us;
        else if (longer_us + slice_us < 0)
            slice_us += longer_us + slice_us > -most_us ? longer_us + slice_us : -most_us;
    }
    return (int64_t)(now_us - conn->bound_us) >= slice_us;
}

/* Puts the block into the line of those without a connection, or takes it out (balance.c). */
void hg_balance_check_starving(struct hg_balance *balance, struct hg_balance_block *block);
/* Drains that may be in progress, and moves that a tick may plan: a twentieth of the capacity. */
static inline uint32_t hg_balance_twentieth(const struct hg_balance *balance)
{
    return balance->capacity < 20 ? 1 : balance->capacity / 20;
}

/* Samples, demand, quotas of all blocks with traffic (balance_quota.c). */
void hg_balance_set_quotas(struct hg_balance *balance, uint64_t now_us);

/* What is usual for the block is to be learnt anew. */
void hg_balance_forget_usual(struct hg_balance_block *block);

/* Is a connect of no use to so many waiters of the block? (balance_plan.c) */
bool hg_balance_is_served_sooner(const struct hg_balance *balance,
                                 const struct hg_balance_block *block, uint32_t waiters);
/* May `to` have this idle connection of another block? (balance_plan.c) */
bool hg_balance_may_take(const struct hg_balance *balance, const struct hg_balance_conn *conn,
                         const struct hg_balance_block *to, uint64_t now_us);
/* May `to` have one that `from` is using, when it is empty? */
bool hg_balance_may_drain(const struct hg_balance *balance, const struct hg_balance_block *from,
                          const struct hg_balance_block *to);
/* Of the busy connections of the block that `to` may have, one with few requests; NULL: none. */
struct hg_balance_conn *hg_balance_least_loaded(const struct hg_balance *balance,
                                                struct hg_balance_block *block,
                                                const struct hg_balance_block *to, uint64_t now_us);

#endif
