// bench_balance - the planner of connections, as steps of bench_micro
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BENCH_BALANCE_H
#define HG_BENCH_BALANCE_H

#define BENCH_BALANCE_TICKS 2000
#define BENCH_BALANCE_PLANS 500000

/* 1,000 blocks that share 1,500 connections, or 500 (a ring), each with traffic and, but for every
 * tenth, with waiters; all connections are in use. */
void bench_balance_shared(void);
void bench_balance_ring(void);
/* The ring, with all connections idle and none of them to be had yet: requests look in vain. */
void bench_balance_resting(void);
/* BENCH_BALANCE_PLANS of them, over blocks and connections in a scattered order. */
void bench_balance_acquire(void);
void bench_balance_release(void);
/* ... a release with its events: sent, answered, empty. */
void bench_balance_request(void);
/* BENCH_BALANCE_TICKS rebalances, each with some news of every block. */
void bench_balance_tick(void);

#endif
