// balance_quota - what the blocks of a domain demand, and each one's share of the connections
// SPDX-License-Identifier: BSD-3-Clause
//
// Once per tick. Demand is in connections that would be busy:
//
//   arrivals per second x service time  +  backlog x service time / horizon
//
// with arrivals, answers and busy time averaged over 16 ticks, and the service time their quotient:
// busy time per answer. It depends neither on how long requests queue nor on how many connections
// there are, so a block cannot get more by being slow to drain. A block without traffic for 16
// ticks has none.
//
// Quotas: if what is useful to each fits, that. Else one for each, and of the rest a share by
// demand, at most what is useful, in whole connections by largest remainder, so that the sum is the
// capacity. If even one for each does not fit, the domain is a ring: quota 1 for all, in turn.
#include "core/balance_in.h"

#include <math.h>
#include <string.h>

#define WINDOW_TICKS 16     // of the averages: 160 ms
#define HORIZON_US   100000 // in which a backlog should be gone
#define BUSY_MOST    0.7    // busier than that a connection makes requests wait for it
#define UNKNOWN_US   1000   // a service time, before the first answer
#define STEADY_TICKS 2      // a quota changes only when that many ticks in a row agree
#define STICKY       0.5    // of a connection: remainders closer than that stay as they are
#define BINS         256

static void average(double *avg, double sample)
{
    *avg += (sample - *avg) / WINDOW_TICKS;
}

/* Requests beyond one per connection: in the line, or behind others on a connection. */
static double backlog_of(struct hg_balance_block *block)
{
    uint64_t n = block->waiters;
    HG_LIST_EACH(node, &block->busy)
    {
        uint32_t load = hg_balance_conn_at(node)->load;
        n += load > 1 ? load - 1 : 0;
    }
    return (double)n;
}

static double service_of(const struct hg_balance *balance, const struct hg_balance_block *block)
{
    return block->service_us > 0     ? block->service_us
           : balance->service_us > 0 ? balance->service_us
                                     : UNKNOWN_US;
}

static void sample(struct hg_balance *balance, struct hg_balance_block *block, double elapsed_us,
                   uint64_t now_us)
{
    hg_balance_count_busy(block, now_us);
    bool traffic = block->arrivals + block->answers + block->waiters + block->busy_count +
                       block->coming + block->draining >
                   0;
    if (traffic)
        block->traffic_tick = balance->tick;
    double tick = HG_BALANCE_TICK_US / elapsed_us;
    average(&block->arrivals_avg, block->arrivals * tick);
    average(&block->answers_avg, block->answers * tick);
    average(&block->busy_avg, (double)block->busy_us * tick);
    average(&block->weight, 1);
    block->arrivals = block->answers = 0;
    block->busy_us = 0;
    /* Less than a thousandth of an answer says nothing of how long one takes. */
    if (block->answers_avg > 0.001)
        block->service_us = block->busy_avg / block->answers_avg;
    double service_us = service_of(balance, block);
    double arriving = block->arrivals_avg / block->weight * service_us / HG_BALANCE_TICK_US;
    block->demand = arriving + backlog_of(block) * service_us / HORIZON_US;
}

/* It had no traffic for a whole window. */
static bool is_over(const struct hg_balance *balance, const struct hg_balance_block *block)
{
    return balance->tick - block->traffic_tick > WINDOW_TICKS;
}

static void retire(struct hg_balance *balance, struct hg_balance_block *block)
{
    block->active = false;
    hg_list_remove(&block->node);
    hg_list_append(&balance->quiet, &block->node);
}

void hg_balance_measure(struct hg_balance *balance, uint64_t now_us)
{
    double elapsed_us = (double)(now_us - balance->ticked_us);
    double busy = 0, answers = 0;
    balance->ticked_us = now_us;
    balance->tick++;
    if (balance->frozen || elapsed_us <= 0)
        return;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        sample(balance, block, elapsed_us, now_us);
        busy += block->busy_avg;
        answers += block->answers_avg;
        if (is_over(balance, block)) {
            block->demand = 0;
            if (!block->suppressed || hg_balance_size(block) == 0)
                retire(balance, block);
            balance->quota_sum -= block->quota;
            block->quota = 0;
        }
    }
    if (answers > 0.001)
        balance->service_us = busy / answers;
}

/* ---- quotas ---- */

static bool is_wanting(const struct hg_balance_block *block)
{
    return block->demand > 0 && !block->suppressed;
}

static uint32_t useful_of(const struct hg_balance *balance, const struct hg_balance_block *block)
{
    double useful = ceil(block->demand / BUSY_MOST);
    return useful < 1 ? 1 : useful > balance->capacity ? balance->capacity : (uint32_t)useful;
}

/* By demand, but at least one each, and none more than is useful. Who is at such a bound leaves the
   sharing with it: first those who would get too little (their ones are owed in any case), then
   those who would get too much, until nobody is. */
static void share_out(struct hg_balance *balance, double rest, double demand)
{
    bool again = true, low = true;
    HG_LIST_EACH(node, &balance->active)
    {
        hg_balance_block_at(node)->share = 0;
    }
    while (again || low) {
        double each = demand > 0 ? rest / demand : 0;
        low = low && again;
        again = false;
        HG_LIST_EACH(node, &balance->active)
        {
            struct hg_balance_block *block = hg_balance_block_at(node);
            if (!is_wanting(block) || block->share > 0)
                continue;
            double share = each * block->demand;
            if (low ? share > 1 : share < block->useful)
                continue;
            block->share = low ? 1 : block->useful;
            rest -= block->share;
            demand -= block->demand;
            again = true;
        }
    }
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        if (is_wanting(block) && block->share <= 0)
            block->share = rest > 0 && demand > 0 ? rest / demand * block->demand : 1;
    }
}

/* A remainder in 1 / 65536: what the block has already counts in its favour. */
static uint32_t remainder_of(const struct hg_balance_block *block)
{
    double whole = floor(block->share), part = block->share - whole;
    if (part <= 0 || whole >= block->useful)
        return 0;
    if (block->quota > whole)
        part += STICKY;
    return 1 + (uint32_t)(part / (1 + STICKY) * 65534);
}

/* The smallest remainder that is rounded up, if the `n` largest are; *ret_ties: how many of those
   that are equal to it. Two passes over bins instead of sorting. */
static uint32_t threshold_of(struct hg_balance *balance, uint32_t n, uint32_t *ret_ties)
{
    uint32_t prefix = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t bins[BINS] = {0}, bin = BINS - 1;
        HG_LIST_EACH(node, &balance->active)
        {
            struct hg_balance_block *block = hg_balance_block_at(node);
            uint32_t remainder = is_wanting(block) ? remainder_of(block) : 0;
            if (pass == 0)
                bins[remainder >> 8]++;
            else if (remainder >> 8 == prefix)
                bins[remainder & 255]++;
        }
        while (bin > 0 && bins[bin] < n)
            n -= bins[bin--];
        prefix = prefix << 8 | bin;
    }
    *ret_ties = n;
    return prefix;
}

static void round_shares(struct hg_balance *balance)
{
    uint32_t sum = 0, ties = 0;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        if (is_wanting(block))
            sum += (uint32_t)block->share;
    }
    uint32_t left = sum < balance->capacity ? balance->capacity - sum : 0;
    uint32_t threshold = threshold_of(balance, left, &ties);
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        uint32_t target = 0;
        if (is_wanting(block)) {
            uint32_t remainder = remainder_of(block);
            target = (uint32_t)block->share;
            if (left > 0 && (remainder > threshold || (remainder == threshold && ties > 0))) {
                ties -= remainder == threshold;
                target++;
            }
        }
        bool same_way = block->target_ticks > 0 && target != block->quota &&
                        (target > block->quota) == (block->target > block->quota);
        block->target_ticks = target == block->quota ? 0 : same_way ? block->target_ticks + 1 : 1;
        block->target = target;
    }
}

static void apply_all(struct hg_balance *balance)
{
    balance->quota_sum = 0;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        block->quota = block->target;
        block->target_ticks = 0;
        balance->quota_sum += block->quota;
    }
}

/* Changes that STEADY_TICKS ticks agree on, as much up as down, so that the sum stays. */
static void apply_steady(struct hg_balance *balance)
{
    uint32_t up = 0, down = 0;
    HG_LIST_EACH(node, &balance->active)
    {
        const struct hg_balance_block *block = hg_balance_block_at(node);
        if (block->target_ticks < STEADY_TICKS)
            continue;
        up += block->target > block->quota ? block->target - block->quota : 0;
        down += block->target < block->quota ? block->quota - block->target : 0;
    }
    up = down = up < down ? up : down;
    if (up == 0)
        return;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        if (block->target_ticks < STEADY_TICKS)
            continue;
        uint32_t *left = block->target > block->quota ? &up : &down;
        uint32_t change = block->target > block->quota ? block->target - block->quota
                                                       : block->quota - block->target;
        change = change < *left ? change : *left;
        *left -= change;
        block->quota += block->target > block->quota ? change : 0 - change;
        if (block->quota == block->target)
            block->target_ticks = 0;
    }
}

/* Do the quotas as they are leave somebody out, or count somebody who is gone? */
static bool is_out_of_date(struct hg_balance *balance)
{
    if (balance->quota_sum != balance->capacity || balance->quota_capacity != balance->capacity)
        return true;
    HG_LIST_EACH(node, &balance->active)
    {
        const struct hg_balance_block *block = hg_balance_block_at(node);
        if (is_wanting(block) != (block->quota > 0))
            return true;
    }
    return false;
}

void hg_balance_set_quotas(struct hg_balance *balance)
{
    uint32_t wanting = 0;
    uint64_t useful = 0;
    double demand = 0;
    if (balance->frozen)
        return;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        if (!is_wanting(block))
            continue;
        wanting++;
        demand += block->demand;
        block->useful = useful_of(balance, block);
        useful += block->useful;
    }
    bool was_shared = balance->constrained && !balance->ring;
    balance->wanting = wanting;
    balance->ring = wanting > balance->capacity;
    balance->constrained = useful > balance->capacity;
    if (balance->constrained && !balance->ring) {
        share_out(balance, balance->capacity, demand);
        round_shares(balance);
        if (!was_shared || is_out_of_date(balance))
            apply_all(balance);
        else
            apply_steady(balance);
        balance->quota_capacity = balance->capacity;
        return;
    }
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        block->target = !is_wanting(block) ? 0 : balance->ring ? 1 : block->useful;
    }
    apply_all(balance);
}
