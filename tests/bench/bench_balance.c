// bench_balance - the planner of connections, as steps of bench_micro
// SPDX-License-Identifier: BSD-3-Clause
#include "bench_balance.h"

#include <stdlib.h>
#include <string.h>

#include "core/balance.h"

#define BLOCKS    1000
#define CONNS_MAX 1500
#define STRIDE    619 // prime to both: a scattered order

static struct hg_balance balance;
static struct hg_balance_block blocks[BLOCKS];
static struct hg_balance_conn conns[CONNS_MAX];
static struct hg_balance_plan ops[HG_BALANCE_OPS_MAX];
static uint32_t conn_count;
static uint64_t now_us;
static volatile uint64_t sink;

/* What a tick has to count: some requests of each block, more of some. */
static void traffic(void)
{
    now_us += HG_BALANCE_TICK_US;
    for (uint32_t b = 0; b < BLOCKS; b++) {
        blocks[b].arrivals += 1 + (b * 7 + (uint32_t)(now_us / HG_BALANCE_TICK_US)) % 13;
        blocks[b].answers += 1 + b % 5;
        blocks[b].busy_us += 1000 + b * 37 % 9000;
    }
}

static void prepare(uint32_t capacity)
{
    const struct hg_balance_conf conf = {
        .depth = 64, .hold_min_us = 10000, .hold_max_us = 2000000, .idle_us = 120000000};
    now_us = 1000000;
    conn_count = capacity;
    memset(conns, 0, sizeof conns);
    hg_balance_init(&balance, &conf, capacity, now_us);
    for (uint32_t b = 0; b < BLOCKS; b++)
        hg_balance_block_add(&balance, &blocks[b], now_us);
    for (uint32_t c = 0; c < conn_count; c++) {
        struct hg_balance_block *block = &blocks[c * STRIDE % BLOCKS];
        hg_balance_arrived(&balance, block, now_us);
        hg_balance_conn_add(&balance, &conns[c], block, now_us);
        hg_balance_conn_up(&balance, &conns[c], now_us + 500);
        hg_balance_conn_busy(&balance, &conns[c], now_us + 500);
        conns[c].load = 64;
    }
    for (uint32_t b = 0; b < BLOCKS; b++) {
        for (uint32_t n = 0; b % 10 != 0 && n < 1 + b % 100; n++)
            hg_balance_wait_begin(&balance, &blocks[b], now_us + 500);
    }
    for (uint32_t t = 0; t < 32; t++) {
        traffic();
        sink = hg_balance_rebalance(&balance, ops, HG_BALANCE_OPS_MAX, now_us);
    }
}

void bench_balance_shared(void)
{
    prepare(CONNS_MAX);
}

void bench_balance_ring(void)
{
    prepare(BLOCKS / 2);
}

void bench_balance_resting(void)
{
    prepare(BLOCKS / 2);
    for (uint32_t c = 0; c < conn_count; c++) {
        conns[c].bound_us = now_us; /* within its hold: looked at in vain */
        conns[c].load = 0;
        hg_balance_conn_idle(&balance, &conns[c], now_us);
    }
}

void bench_balance_acquire(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0, b = 0; i < BENCH_BALANCE_PLANS; i++, b = (b + STRIDE) % BLOCKS)
        sum += hg_balance_plan_acquire(&balance, &blocks[b], now_us).verb;
    sink = sum;
}

void bench_balance_release(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0, c = 0; i < BENCH_BALANCE_PLANS; i++, c = (c + STRIDE) % conn_count)
        sum += hg_balance_plan_release(&balance, &conns[c], now_us).verb;
    sink = sum;
}

void bench_balance_request(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0, c = 0; i < BENCH_BALANCE_PLANS; i++, c = (c + STRIDE) % conn_count) {
        hg_balance_answered(&conns[c], 1, now_us);
        hg_balance_conn_idle(&balance, &conns[c], now_us);
        sum += hg_balance_plan_release(&balance, &conns[c], now_us).verb;
        hg_balance_arrived(&balance, conns[c].block, now_us);
        hg_balance_conn_busy(&balance, &conns[c], now_us);
    }
    sink = sum;
}

void bench_balance_tick(void)
{
    uint64_t sum = 0;
    for (uint32_t t = 0; t < BENCH_BALANCE_TICKS; t++) {
        traffic();
        sum += hg_balance_rebalance(&balance, ops, HG_BALANCE_OPS_MAX, now_us);
    }
    sink = sum;
}
