// balancerig - a domain in virtual time, and a driver that does what the planner says
// SPDX-License-Identifier: BSD-3-Clause
//
// Connections come up, fail, and answer when the test says so; everything else a driver does is
// done here. With depth 1 a connection carries one request, else as many as `load` says.
#ifndef HG_TEST_BALANCERIG_H
#define HG_TEST_BALANCERIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "core/balance.h"

#define MS          ((uint64_t)1000)
#define S           ((uint64_t)1000000)
#define RIG_BLOCKS  32
#define RIG_CONNS   256
#define RIG_HOLD_US (10 * MS)

static struct hg_balance b;
static struct hg_balance_block blocks[RIG_BLOCKS];
static struct hg_balance_conn conns[RIG_CONNS];
static struct hg_balance_plan ops[HG_BALANCE_OPS_MAX];
static uint32_t op_count;
static uint64_t now;
static struct hg_balance_conn *newest; // the last one that began to come up

static void begin(uint32_t capacity, uint32_t depth, uint32_t block_count)
{
    const struct hg_balance_conf conf = {
        .depth = depth, .hold_min_us = RIG_HOLD_US, .hold_max_us = 2 * S, .idle_us = 120 * S};
    now = 1000 * S;
    newest = NULL;
    memset(conns, 0, sizeof conns);
    hg_balance_init(&b, &conf, capacity, now);
    for (uint32_t i = 0; i < block_count; i++)
        hg_balance_block_add(&b, &blocks[i], now);
}

static inline struct hg_balance_conn *spare_conn(void)
{
    for (uint32_t i = 0; i < RIG_CONNS; i++)
        if (conns[i].state == HG_BALANCE_GONE)
            return &conns[i];
    fail_msg("more connections than the test has room for");
    return NULL;
}

/* One more request on the connection. */
static inline void put(struct hg_balance_conn *conn)
{
    if (conn->state == HG_BALANCE_IDLE)
        hg_balance_conn_busy(&b, conn, now);
    assert_int_equal(conn->state, HG_BALANCE_BUSY);
    conn->load++;
    assert_true(conn->load <= b.conf.depth);
}

/* Waiters of its block go to the connection while it has room. */
static inline void serve(struct hg_balance_conn *conn)
{
    while (conn->block->waiters > 0 && conn->load < b.conf.depth &&
           conn->state != HG_BALANCE_DRAINING) {
        hg_balance_wait_end(&b, conn->block, now);
        put(conn);
    }
}

static inline void carry_out(struct hg_balance_plan plan, bool steal)
{
    switch (plan.verb) {
    case HG_BALANCE_CREATE:
        newest = spare_conn();
        memset(newest, 0, sizeof *newest);
        hg_balance_conn_add(&b, newest, plan.block, now);
        break;
    case HG_BALANCE_MOVE:
        newest = plan.conn;
        hg_balance_conn_rebind(&b, plan.conn, plan.block, steal, now);
        break;
    case HG_BALANCE_DRAIN:
        hg_balance_conn_drain(&b, plan.conn, plan.block, now);
        break;
    case HG_BALANCE_UNDRAIN:
        hg_balance_conn_undrain(&b, plan.conn, now);
        serve(plan.conn);
        break;
    case HG_BALANCE_CLOSE:
        hg_balance_conn_closing(&b, plan.conn, now);
        hg_balance_conn_gone(&b, plan.conn, false, now);
        break;
    default:
        break;
    }
    assert_true(b.total <= b.capacity || plan.verb != HG_BALANCE_CREATE);
}

/* A request comes for the block; what was planned is done. */
static inline enum hg_balance_verb request(uint32_t block)
{
    hg_balance_arrived(&b, &blocks[block], now);
    struct hg_balance_plan plan = hg_balance_plan_acquire(&b, &blocks[block], now);
    if (plan.verb == HG_BALANCE_USE) {
        put(plan.conn);
    } else if (plan.verb != HG_BALANCE_REFUSE) {
        carry_out(plan, true);
        hg_balance_wait_begin(&b, &blocks[block], now);
    }
    return plan.verb;
}

static inline void come_up(struct hg_balance_conn *conn)
{
    hg_balance_conn_up(&b, conn, now);
    serve(conn);
}

/* The connection answers its oldest request; if it is empty then, what was planned is done. */
static inline enum hg_balance_verb answer(struct hg_balance_conn *conn)
{
    hg_balance_answered(conn, 1, now);
    conn->load--;
    if (conn->load > 0) {
        serve(conn);
        return HG_BALANCE_KEEP;
    }
    hg_balance_conn_idle(&b, conn, now);
    struct hg_balance_plan plan = hg_balance_plan_release(&b, conn, now);
    if (plan.verb == HG_BALANCE_KEEP)
        serve(conn);
    else
        carry_out(plan, false);
    return plan.verb;
}

/* The connect failed; waiters whom nothing else can serve get the error. Returns how many. */
static inline uint32_t break_down(struct hg_balance_conn *conn)
{
    struct hg_balance_block *block = conn->block;
    uint32_t told = 0;
    hg_balance_conn_gone(&b, conn, true, now);
    if (!hg_balance_has_source(block) && block->waiters > 0) {
        hg_balance_wait_end(&b, block, now);
        told++;
    }
    return told;
}

/* A connection of the block, up, after `took_us`. */
static inline struct hg_balance_conn *connect_now(uint32_t block, uint64_t took_us)
{
    carry_out((struct hg_balance_plan){HG_BALANCE_CREATE, &blocks[block], NULL}, false);
    now += took_us;
    come_up(newest);
    return newest;
}

/* The next tick, 10 ms later; what was planned is done. */
static inline uint32_t tick(void)
{
    now += HG_BALANCE_TICK_US;
    op_count = hg_balance_rebalance(&b, ops, HG_BALANCE_OPS_MAX, now);
    for (uint32_t i = 0; i < op_count; i++)
        carry_out(ops[i], false);
    return op_count;
}

/* How many steps of the last tick were of that kind. */
static inline uint32_t planned(enum hg_balance_verb verb)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < op_count; i++)
        n += ops[i].verb == verb;
    return n;
}

/* Ticks until that many us have passed. */
static inline void tick_for(uint64_t us)
{
    for (uint64_t end = now + us; now < end;)
        (void)tick();
}

#endif
