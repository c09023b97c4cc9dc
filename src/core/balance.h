// balance - plans which block gets which of the connections that a capacity domain may have
// SPDX-License-Identifier: BSD-3-Clause
//
// A block is a (server, identity); the blocks that share a limit of connections are a capacity
// domain. The planner is told what happens (events), and answers what should be done (plans): a
// plan is a value, nothing has changed yet; the driver carries it out and tells the event. It may
// decline (the breaker says no): then it just tells nothing. Which connection has room for
// another request is the driver's to know.
//
//   COMING ──up──► IDLE ◄──idle / busy──► BUSY ──drain──► DRAINING ──empty──► COMING (elsewhere)
//     ▲              │ move: COMING of the receiver at once      └──undrain──► BUSY
//    add             └──close──► CLOSING ──► gone            any ──► gone (lost, failed)
//
// Rules, after section 4 of the reference (Gel's pool, adapted to pipelining):
//  - Demand of a block = arrivals x service time + backlog x service time / horizon: connections
//    that would be busy. Service time is busy time per answer, never the time a request stays,
//    which would feed itself.
//  - Slowed is a block whose answers take more than 4 times what they usually do: one workload's
//    answers vary by less, from one tick to the next; a backend in trouble is slower by more. Its
//    share is that of the demand it usually has: slowness is to cost nobody else. What is usual is
//    measured over a minute of ticks that were not slow, and known after a second of traffic; it is
//    begun anew after a window without traffic (another workload), and when the block has been
//    slowed for a minute: a workload that has changed for good then has its share by demand.
//  - While the domain has room, connect when a request finds none, but never while a connection of
//    the block is idle or has room, or enough of them are coming; and beyond what is of use only if
//    the line would last longer than a connect.
//  - When it is full, each block has a quota. A hungry block (waiters, below quota) takes an idle
//    connection from the most overfull; what is released goes on to the hungriest, unless its block
//    may keep it; only a drained connection moves.
//  - More blocks than connections: a ring. Who has waiters and no connection gets one in turn,
//    first come, first served; it keeps it until its queue is empty or a slice is over: three times
//    of a move, one more or less by whose requests wait longer, never less than the minimum hold.
//    So nobody waits longer than ceil(blocks / capacity) x (slice + time of a move).
//  - Minimum hold: clamp(2 x mean time of a move, hold_min_us, hold_max_us) from the start of the
//    binding, on every path: a connection is of use for at least as long as its move cost. The one
//    exemption: its block had nothing to do since it came up, for at least the time of a move.
//  - Failed connections hold no capacity; failures are no samples; a block whose connects fail
//    three times in a row tries again ever later, up to a second.
//
// Request path (arrived, answered, busy, idle, wait_*, plan_acquire, plan_release): no scan, a
// bounded number of candidates; the tick puts blocks in order. Ties go to the older, never to
// chance. Pure: no clock (now_us never goes back), no allocation, no randomness. One thread.
#ifndef HG_CORE_BALANCE_H
#define HG_CORE_BALANCE_H

#include "base/attr.h"
#include "core/balance_types.h"

enum hg_balance_verb {
    HG_BALANCE_USE,     // acquire: the block has `conn` idle
    HG_BALANCE_WAIT,    // acquire: wait (tell wait_begin); a later plan will help
    HG_BALANCE_REFUSE,  // acquire: nothing will ever come (suppressed, or nothing may be opened)
    HG_BALANCE_CREATE,  // connect for `block` (tell conn_add), and wait
    HG_BALANCE_MOVE,    // bind idle `conn` to `block` (tell conn_rebind)
    HG_BALANCE_DRAIN,   // put nothing new on busy `conn`, it is `block`'s (tell conn_drain)
    HG_BALANCE_UNDRAIN, // give `conn` back to its own block (tell conn_undrain)
    HG_BALANCE_KEEP,    // release: it stays, and serves its block's waiters
    HG_BALANCE_CLOSE,   // close idle `conn` (tell conn_closing, later conn_gone)
};

struct hg_balance_plan {
    enum hg_balance_verb verb;
    struct hg_balance_block *block; // the receiver; NULL where there is none
    struct hg_balance_conn *conn;   // what it is about; NULL for WAIT, REFUSE, CREATE
};

void hg_balance_init(struct hg_balance *balance, const struct hg_balance_conf *conf,
                     uint32_t capacity, uint64_t now_us);
/* Leases come and go. Above the new capacity idle connections past their hold are closed, by
 * plan_release and rebalance. */
void hg_balance_set_capacity(struct hg_balance *balance, uint32_t capacity);
/* The breaker is not closed (true) or is again: quotas stay as they are, nothing moves or drains,
 * and what is measured is dropped. Connecting goes on as the driver's breaker lets it. */
void hg_balance_freeze(struct hg_balance *balance, bool frozen);
/* All blocks: what is idle and not waited for is closed, moves and drains end. Waiters are served.
 */
void hg_balance_drain(struct hg_balance *balance);
/* As if there had been no drain. */
void hg_balance_resume(struct hg_balance *balance);

void hg_balance_block_add(struct hg_balance *balance, struct hg_balance_block *block,
                          uint64_t now_us);
/* It has neither connections nor waiters, and is reserved none. */
void hg_balance_block_remove(struct hg_balance *balance, struct hg_balance_block *block);
/* Neither victim nor receiver: plan_acquire refuses once it has no connection, what it has is
 * closed when idle and not waited for. Or no longer so. */
void hg_balance_block_suppress(struct hg_balance *balance, struct hg_balance_block *block,
                               bool suppressed);
/* No receiver for now (the server has refused its login): plan_acquire refuses while it has no
 * connection, those that it has stay. Or no longer so. */
void hg_balance_block_bar(struct hg_balance *balance, struct hg_balance_block *block, bool barred);

/* A connect for `block` begins: before connect() or socket(), so the limit is never passed.
 * `conn` is zeroed memory. */
void hg_balance_conn_add(struct hg_balance *balance, struct hg_balance_conn *conn,
                         struct hg_balance_block *block, uint64_t now_us);
/* An idle or empty DRAINING one begins to be bound to `to` (by logging in again, or by closing and
 * connecting): counts as `to`'s from now on. `steal`: a plan_acquire said so. */
void hg_balance_conn_rebind(struct hg_balance *balance, struct hg_balance_conn *conn,
                            struct hg_balance_block *to, bool steal, uint64_t now_us);
/* `fresh` stands for `old` from now on (close and connect made a new object). */
void hg_balance_conn_replace(struct hg_balance_conn *old, struct hg_balance_conn *fresh);
/* A COMING one can be used: is IDLE. The driver then serves waiters, or asks plan_release. */
void hg_balance_conn_up(struct hg_balance *balance, struct hg_balance_conn *conn, uint64_t now_us);
/* First request on an idle one; last answer on a busy or draining one, which then is idle in its
 * own block, until rebind (as plan_release will say), or undrain if the driver declines. */
void hg_balance_conn_busy(struct hg_balance *balance, struct hg_balance_conn *conn,
                          uint64_t now_us);
void hg_balance_conn_idle(struct hg_balance *balance, struct hg_balance_conn *conn,
                          uint64_t now_us);
void hg_balance_conn_drain(struct hg_balance *balance, struct hg_balance_conn *conn,
                           struct hg_balance_block *to, uint64_t now_us);
void hg_balance_conn_undrain(struct hg_balance *balance, struct hg_balance_conn *conn,
                             uint64_t now_us);
/* Its close has begun: it is no block's any more, but holds capacity until gone. */
void hg_balance_conn_closing(struct hg_balance *balance, struct hg_balance_conn *conn,
                             uint64_t now_us);
/* Closed, lost, or failed to come up: in any state. Capacity is free; if it was COMING, `failed`
 * counts as a connect error. Then ask hg_balance_has_source for the waiters. */
void hg_balance_conn_gone(struct hg_balance *balance, struct hg_balance_conn *conn, bool failed,
                          uint64_t now_us);

/* A waiter joined the line; one left it, and the oldest that remains waits since `oldest_us`. */
void hg_balance_wait_begin(struct hg_balance *balance, struct hg_balance_block *block,
                           uint64_t now_us);
void hg_balance_wait_end(struct hg_balance *balance, struct hg_balance_block *block,
                         uint64_t oldest_us);
/* Can any connection serve the block's waiters without a new one being made: coming, idle, busy, or
 * reserved? While so, a connect error is nobody's. */
HG_MUST_USE bool hg_balance_has_source(const struct hg_balance_block *block);

/* A request finds no connection of its block with room (`conn` USE is only said of an idle one). */
HG_MUST_USE struct hg_balance_plan hg_balance_plan_acquire(struct hg_balance *balance,
                                                           struct hg_balance_block *block,
                                                           uint64_t now_us);
/* `conn` has become empty, or came up, and was told so: KEEP, MOVE, CLOSE. */
HG_MUST_USE struct hg_balance_plan
hg_balance_plan_release(struct hg_balance *balance, struct hg_balance_conn *conn, uint64_t now_us);
/* Once per HG_BALANCE_TICK_US while needs_tick says so. Measures, sets quotas, and writes up to
 * `cap` steps (CREATE, MOVE, DRAIN, UNDRAIN, CLOSE) to be carried out in order; returns how many.
 * No two of them are about one connection, and together they keep to the capacity. */
HG_MUST_USE uint32_t hg_balance_rebalance(struct hg_balance *balance, struct hg_balance_plan *ops,
                                          uint32_t cap, uint64_t now_us);
/* False: nothing can change by itself before the next event, or hg_balance_next_us. */
HG_MUST_USE bool hg_balance_needs_tick(const struct hg_balance *balance);
/* When the next idle connection is to be collected; UINT64_MAX: none is idle. */
HG_MUST_USE uint64_t hg_balance_next_us(const struct hg_balance *balance);

/* Connections that the waiting blocks could use beyond what there is and comes: what a lease would
 * be worth. And units of capacity that no connection holds. */
HG_MUST_USE uint32_t hg_balance_wanted(const struct hg_balance *balance);
HG_MUST_USE uint32_t hg_balance_spare(const struct hg_balance *balance);

void hg_balance_block_wake(struct hg_balance *balance, struct hg_balance_block *block);

/* A request for the block came, whether or not it finds a connection. */
static inline void hg_balance_arrived(struct hg_balance *balance, struct hg_balance_block *block,
                                      uint64_t now_us)
{
    block->arrivals++;
    block->used_us = now_us;
    if (HG_UNLIKELY(!block->active))
        hg_balance_block_wake(balance, block);
}

/* `n` requests on the busy (or draining) connection were answered; before conn_idle. What it took
 * since the answers before, or since it became busy, is their service time. */
static inline void hg_balance_answered(struct hg_balance_conn *conn, uint32_t n, uint64_t now_us)
{
    conn->block->answers += n;
    conn->block->busy_us += now_us - conn->counted_us;
    conn->counted_us = now_us;
}

/* Connections that count as the block's: all but those that leave it. */
static inline uint32_t hg_balance_size(const struct hg_balance_block *block)
{
    return block->idle_count + block->busy_count + block->coming;
}

#endif
