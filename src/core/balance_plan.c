// balance_plan - plans which block gets which connection: for a request, and for one that is free
// SPDX-License-Identifier: BSD-3-Clause
//
// Neither scans: whom to take from and whom to give to is looked for among the first few of lists
// that the events and the tick keep in order.
#include "core/balance_in.h"

#define CANDIDATES 8 // looked at, at most

static struct hg_balance_plan plan(enum hg_balance_verb verb, struct hg_balance_block *block,
                                   struct hg_balance_conn *conn)
{
    return (struct hg_balance_plan){verb, block, conn};
}

bool hg_balance_may_take(const struct hg_balance *balance, const struct hg_balance_conn *conn,
                         const struct hg_balance_block *to, uint64_t now_us)
{
    const struct hg_balance_block *from = conn->block;
    if (from == to || from->suppressed || from->waiters > 0 || conn->reserved != NULL ||
        conn->planned || !hg_balance_movable(balance, conn, now_us))
        return false;
    uint32_t has = hg_balance_promised(to);
    if (has == 0)
        return true;
    if (has < to->quota && hg_balance_size(from) - from->planned_out > from->quota)
        return true;
    /* Neither is owed anything. To take it away, and to bring it back, costs two moves; after so
       long a rest it is likely to rest as long again. */
    return now_us - conn->since_us >= 2 * balance->reconnect_us;
}

/* Of the connections that are idle longest, the one whose block has most beyond its quota. */
static struct hg_balance_conn *idle_victim(struct hg_balance *balance,
                                           const struct hg_balance_block *to, uint64_t now_us)
{
    struct hg_balance_conn *best = NULL;
    int64_t most = INT64_MIN;
    uint32_t looked = 0;
    HG_LIST_EACH(node, &balance->lru)
    {
        struct hg_balance_conn *conn = hg_balance_lru_at(node);
        if (looked++ == CANDIDATES)
            break;
        int64_t over = (int64_t)hg_balance_size(conn->block) - conn->block->quota;
        if (over > most && hg_balance_may_take(balance, conn, to, now_us)) {
            most = over;
            best = conn;
        }
    }
    return best;
}

struct hg_balance_conn *hg_balance_least_loaded(const struct hg_balance *balance,
                                                struct hg_balance_block *block,
                                                const struct hg_balance_block *to, uint64_t now_us)
{
    struct hg_balance_conn *best = NULL;
    bool beyond = hg_balance_size(block) - block->planned_out > block->quota;
    uint32_t looked = 0;
    HG_LIST_EACH(node, &block->busy)
    {
        struct hg_balance_conn *conn = hg_balance_conn_at(node);
        if (looked++ == CANDIDATES)
            break;
        if (!conn->planned && hg_balance_movable(balance, conn, now_us) &&
            (beyond || hg_balance_turn_is_over(balance, conn, to, now_us)) &&
            (best == NULL || conn->load < best->load))
            best = conn;
    }
    return best;
}

bool hg_balance_may_drain(const struct hg_balance *balance, const struct hg_balance_block *from,
                          const struct hg_balance_block *to)
{
    if (from == to || from->suppressed)
        return false;
    uint32_t size = hg_balance_size(from) - from->planned_out;
    if (size > from->quota)
        return true;
    /* Is its turn in the ring over? That is looked at with the connection. */
    return balance->ring && size > 0 && hg_balance_promised(to) == 0;
}

static struct hg_balance_conn *busy_victim(struct hg_balance *balance,
                                           const struct hg_balance_block *to, uint64_t now_us)
{
    for (uint32_t i = 0; i < balance->overfull_count && i < CANDIDATES; i++) {
        struct hg_balance_block *from = balance->overfull[i];
        struct hg_balance_conn *conn;
        if (hg_balance_may_drain(balance, from, to) &&
            (conn = hg_balance_least_loaded(balance, from, to, now_us)) != NULL)
            return conn;
    }
    return NULL;
}

/* Would the block's connections serve so many waiters before a new one is up, and does it have as
   many as are of use? Then a connect helps nobody. If there was a line at the last tick too, it is
   no accident, and one more is tried. */
bool hg_balance_is_served_sooner(const struct hg_balance *balance,
                                 const struct hg_balance_block *block, uint32_t waiters)
{
    uint32_t size = hg_balance_promised(block);
    if (size == 0 || block->service_us <= 0 || size < block->useful)
        return false;
    if (block->waited && block->coming + block->planned_in == 0)
        return false;
    return waiters * block->service_us < (double)balance->reconnect_us * size;
}

static struct hg_balance_block *starving_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_balance_block, starving);
}

struct hg_balance_plan hg_balance_plan_acquire(struct hg_balance *balance,
                                               struct hg_balance_block *block, uint64_t now_us)
{
    struct hg_balance_conn *conn;
    if (block->idle_count > 0)
        return plan(HG_BALANCE_USE, block, hg_balance_conn_at(block->idle.prev));
    if (HG_UNLIKELY(block->suppressed || block->barred))
        return plan(hg_balance_has_source(block) ? HG_BALANCE_WAIT : HG_BALANCE_REFUSE, NULL, NULL);
    if (hg_balance_for(balance, block->waiters + 1) <= block->coming + block->incoming)
        return plan(HG_BALANCE_WAIT, NULL, NULL);
    if (HG_UNLIKELY(block->resting || (balance->draining && hg_balance_has_source(block))))
        return plan(HG_BALANCE_WAIT, NULL, NULL);
    if (hg_balance_is_served_sooner(balance, block, block->waiters + 1))
        return plan(HG_BALANCE_WAIT, NULL, NULL);
    /* What is free belongs first to those who have nothing: the tick sees to that. */
    bool has = hg_balance_promised(block) > 0;
    if (balance->total < balance->capacity && (!has || hg_list_empty(&balance->starving)))
        return plan(HG_BALANCE_CREATE, block, NULL);
    if (balance->frozen || balance->draining)
        return plan(HG_BALANCE_WAIT, NULL, NULL);
    if (balance->constrained && has && hg_balance_promised(block) >= block->useful)
        return plan(HG_BALANCE_WAIT, NULL, NULL);
    /* Who has nothing and came before is not overtaken. */
    struct hg_list *first = hg_list_first(&balance->starving);
    struct hg_balance_block *to = first != NULL ? starving_at(first) : block;
    if ((conn = idle_victim(balance, to, now_us)) != NULL)
        return plan(HG_BALANCE_MOVE, to, conn);
    if (has && to == block && hg_balance_promised(block) >= block->quota)
        return plan(HG_BALANCE_WAIT, NULL, NULL);
    if (balance->conf.depth > 1 && balance->drains < hg_balance_twentieth(balance) &&
        (conn = busy_victim(balance, to, now_us)) != NULL)
        return plan(HG_BALANCE_DRAIN, to, conn);
    return plan(HG_BALANCE_WAIT, NULL, NULL);
}

/* The hungriest below its quota, but for `from`. */
static struct hg_balance_block *hungriest(struct hg_balance *balance,
                                          const struct hg_balance_block *from)
{
    for (uint32_t i = 0; i < balance->hungry_count && i < CANDIDATES; i++) {
        struct hg_balance_block *block = balance->hungry[i];
        if (block != from && hg_balance_need(balance, block) > 0 &&
            (hg_balance_promised(block) < block->quota || !balance->constrained))
            return block;
    }
    return NULL;
}

/* Who is to have `conn`, which its block no longer needs to hold; NULL: its block. */
static struct hg_balance_block *receiver_of(struct hg_balance *balance,
                                            const struct hg_balance_conn *conn, uint64_t now_us)
{
    const struct hg_balance_block *block = conn->block;
    struct hg_list *first = hg_list_first(&balance->starving);
    bool beyond = hg_balance_size(block) > block->quota;
    if (first == NULL)
        return beyond ? hungriest(balance, block) : NULL;
    if (beyond || block->waiters == 0)
        return starving_at(first);
    /* It has what it should have, and use for it. */
    if (!balance->ring)
        return NULL;
    return hg_balance_turn_is_over(balance, conn, starving_at(first), now_us) ? starving_at(first)
                                                                              : NULL;
}

struct hg_balance_plan hg_balance_plan_release(struct hg_balance *balance,
                                               struct hg_balance_conn *conn, uint64_t now_us)
{
    struct hg_balance_block *block = conn->block, *to = conn->reserved;
    struct hg_balance_plan keep = plan(HG_BALANCE_KEEP, NULL, conn);
    if (HG_UNLIKELY(balance->draining || block->suppressed))
        return block->waiters > 0 ? keep : plan(HG_BALANCE_CLOSE, NULL, conn);
    if (HG_UNLIKELY(balance->frozen))
        return keep;
    if (to != NULL)
        return to->waiters > 0 && hg_balance_is_open(to) ? plan(HG_BALANCE_MOVE, to, conn) : keep;
    bool surplus = balance->total > balance->capacity;
    if (balance->waiters == block->waiters && !surplus)
        return keep;
    if (!hg_balance_movable(balance, conn, now_us))
        return keep;
    if (HG_UNLIKELY(surplus)) {
        bool may_go = block->waiters == 0 || hg_balance_size(block) > block->quota;
        return may_go ? plan(HG_BALANCE_CLOSE, NULL, conn) : keep;
    }
    to = receiver_of(balance, conn, now_us);
    return to == NULL ? keep : plan(HG_BALANCE_MOVE, to, conn);
}
