// balance_quota - what the blocks of a domain demand, and each one's share of the connections
// SPDX-License-Identifier: BSD-3-Clause
//
// Once per tick. Demand is in connections that would be busy:
//
//   arrivals per second x service time  +  backlog x service time / horizon
//
// with arrivals, answers, busy time and backlog averaged over 16 ticks. The service time is busy
// time per answer, both counted when the answer comes. It depends neither on how long requests
// queue nor on how many connections there are, so a block cannot get more by being slow to drain. A
// block without traffic for 16 ticks has no demand.
//
// Of a slowed block (balance.h) only what it usually demands counts for its share. Whether a tick
// is slow is decided by the mean of its answers, or by how long none has come while there are
// waiters; whether the block is, by how many of the last ticks were.
//
// Useful to a block are as many connections as would be busy for 70 % of the time. Quotas: if what
// is useful to each fits, that. Else a share of the capacity by demand, but at least one, and at
// most what is useful, in whole connections by largest remainder, so that the sum is the capacity.
// What rounding takes from a block is kept as its debt, and decides how it is rounded once that is
// worth moving connections: so equal blocks get equal shares over time. If even one for each does
// not fit, the domain is a ring: quota 1 for all, in turn.
#include "core/balance_in.h"

#include <string.h>

#define WINDOW_TICKS 16     // of the averages: 160 ms
#define HORIZON_US   100000 // in which a backlog should be gone
#define BUSY_MOST    0.7    // busier than that a connection makes requests wait for it
#define UNKNOWN_US   1000   // a service time, before the first answer
#define USUAL_TICKS  6000   // a minute: in which usual is measured, and longer than which slow is
#define KNOWN_WEIGHT (100.0 / USUAL_TICKS) // less than a second of traffic makes nothing usual
#define SLOW_FACTOR  4.0                   // times what is usual
#define SLOWED_FROM  0.5                   // of the window's ticks slow: it is no accident
#define SLOWED_LEAST 0.25 // ... and it is over; the distance keeps quotas from swinging
#define STEADY_TICKS 2    // a quota changes only when that many ticks in a row agree
#define STICKY       2.0  // minimum holds of one connection: less debt is not worth the moves
#define RANK_MOST    4.0  // the same, and fractions: what is beyond does not count
#define ROUNDS       40   // that shares are looked for, at most
#define EXACT        0.01 // of a connection: shares that miss the capacity by less are right
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

/* ---- what is usual ---- */

void hg_balance_forget_usual(struct hg_balance_block *block)
{
    block->usual_answers = block->usual_busy = block->usual_demand = block->usual_weight = 0;
    block->slowness = 0;
    block->silent_us = 0;
    block->slowed = false;
}

static void average_usual(double *avg, double sample)
{
    *avg += (sample - *avg) * (1.0 / USUAL_TICKS);
}

/* Did what was answered in this tick take much longer than usual, or is an answer overdue by as
   much? */
static bool is_tick_slow(const struct hg_balance_block *block)
{
    double us = block->answers > 0 ? (double)block->busy_us : (double)block->silent_us;
    double answers = block->answers > 0 ? block->answers : 1;
    return us * block->usual_answers > SLOW_FACTOR * block->usual_busy * answers;
}

/* Before the counts of the tick are cleared. Ticks count, not answers: one that takes very long
   makes one tick slow. */
static void judge(struct hg_balance_block *block, double elapsed_us, double tick)
{
    bool silent = block->answers == 0 && block->waiters > 0 && block->busy_count > 0;
    block->silent_us = silent ? block->silent_us + (uint64_t)elapsed_us : 0;
    bool slow = block->usual_weight >= KNOWN_WEIGHT && is_tick_slow(block);
    if (slow || block->answers > 0)
        average(&block->slowness, slow);
    if (HG_UNLIKELY(block->slowed)) {
        if (++block->slowed_ticks >= USUAL_TICKS)
            hg_balance_forget_usual(block);
        else
            block->slowed = block->slowness > SLOWED_LEAST;
        return;
    }
    if (HG_UNLIKELY(block->slowness > SLOWED_FROM)) {
        block->slowed = true;
        block->slowed_ticks = 0;
    }
    if (HG_UNLIKELY(slow))
        return;
    average_usual(&block->usual_answers, block->answers * tick);
    average_usual(&block->usual_busy, (double)block->busy_us * tick);
    average_usual(&block->usual_demand, block->demand);
    average_usual(&block->usual_weight, 1);
}

/* A slowed block claims what it usually needs, not what its slowness makes of that. */
static double claim_of(const struct hg_balance_block *block)
{
    if (HG_LIKELY(!block->slowed))
        return block->demand;
    double usual = block->usual_demand / block->usual_weight;
    return usual < block->demand ? usual : block->demand;
}

static void sample(struct hg_balance *balance, struct hg_balance_block *block, double elapsed_us)
{
    bool traffic = block->arrivals + block->answers + block->waiters + block->busy_count +
                       block->coming + block->draining >
                   0;
    if (traffic)
        block->traffic_tick = balance->tick;
    double tick = HG_BALANCE_TICK_US / elapsed_us;
    judge(block, elapsed_us, tick);
    average(&block->arrivals_avg, block->arrivals * tick);
    average(&block->answers_avg, block->answers * tick);
    average(&block->busy_avg, (double)block->busy_us * tick);
    average(&block->weight, 1);
    block->arrivals = block->answers = 0;
    block->busy_us = 0;
    /* Less than a thousandth of an answer says nothing of how long one takes. */
    if (block->answers_avg > 0.001)
        block->service_us = block->busy_avg / block->answers_avg;
    block->waited = block->waiters > 0;
    double service_us = service_of(balance, block);
    double arriving = block->arrivals_avg / block->weight * service_us / HG_BALANCE_TICK_US;
    average(&block->backlog_avg, backlog_of(block));
    block->demand = arriving + block->backlog_avg / block->weight * service_us / HORIZON_US;
    block->claim = claim_of(block);
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

static bool is_wanting(const struct hg_balance_block *block)
{
    return block->claim > 0 && !block->suppressed;
}

static uint32_t useful_of(const struct hg_balance *balance, const struct hg_balance_block *block)
{
    double useful = block->demand * (1 / BUSY_MOST);
    if (useful >= balance->capacity)
        return balance->capacity;
    uint32_t whole = (uint32_t)useful;
    return useful > whole || whole == 0 ? whole + 1 : whole;
}

/* Of all blocks together. */
struct sums {
    uint32_t wanting; // blocks with demand
    uint64_t useful;
    double claim;
};

static void add_up(struct hg_balance *balance, struct hg_balance_block *block, struct sums *sums)
{
    if (!is_wanting(block))
        return;
    block->useful = useful_of(balance, block);
    sums->wanting++;
    sums->useful += block->useful;
    sums->claim += block->claim;
}

static void measure(struct hg_balance *balance, double elapsed_us, uint64_t now_us,
                    struct sums *sums)
{
    double busy = 0, answers = 0;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        sample(balance, block, elapsed_us);
        if (HG_UNLIKELY(block->resting) && now_us >= block->retry_us) {
            block->resting = false;
            hg_balance_check_starving(balance, block);
        }
        busy += block->busy_avg;
        answers += block->answers_avg;
        if (HG_UNLIKELY(is_over(balance, block))) {
            block->demand = block->claim = 0;
            if (!block->suppressed || hg_balance_size(block) == 0)
                retire(balance, block);
            balance->quota_sum -= block->quota;
            block->quota = 0;
        }
        add_up(balance, block, sums);
    }
    if (answers > 0.001)
        balance->service_us = busy / answers;
}

/* ---- quotas ---- */

/* Without branches, here and in remainder_of: no processor could guess them. */
static double share_at(const struct hg_balance_block *block, double level)
{
    double share = level * block->claim, useful = block->useful;
    share = share < 1 ? 1 : share;
    return share > useful ? useful : share;
}

/* The level at which level x claim, but at least one and at most what is useful to each, makes the
   capacity in sum: Newton's steps from the last one, kept between what was too little and what was
   too much. The sum is piecewise linear, so a few steps are exact. */
static double find_level(struct hg_balance *balance, double claim)
{
    double low = 0, high = 0, level = balance->level;
    if (level <= 0)
        level = balance->capacity / claim;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double sum = 0, slope = 0;
        HG_LIST_EACH(node, &balance->active)
        {
            const struct hg_balance_block *block = hg_balance_block_at(node);
            if (!is_wanting(block))
                continue;
            double share = share_at(block, level);
            sum += share;
            slope += block->claim * (double)((share > 1) & (share < block->useful));
        }
        double missing = balance->capacity - sum;
        if (missing < EXACT && missing > -EXACT)
            return level;
        if (missing > 0)
            low = level;
        else
            high = level;
        level = slope > 0 ? level + missing / slope : -1;
        if (level <= low || (high > 0 && level >= high))
            level = high > 0 ? (low + high) / 2 : low * 2;
    }
    return low;
}

/* In what order shares are rounded up: by what the block lacks by rounding, which includes what it
   has lacked until now; but one that it has already is as good as the time of a move in which it
   would be lacking. Between 0 and 65535. */
static uint32_t remainder_of(const struct hg_balance_block *block, double debt_unit)
{
    uint32_t whole = (uint32_t)block->share;
    double part = block->share - whole;
    double rank = part + block->debt * debt_unit + STICKY * (double)(block->quota > whole);
    rank = rank < -RANK_MOST ? -RANK_MOST : rank;
    rank = rank > RANK_MOST ? RANK_MOST : rank;
    uint32_t remainder = 1 + (uint32_t)((rank + RANK_MOST) * (65534 / (2 * RANK_MOST)));
    return remainder * (uint32_t)((part > 0) & (whole < block->useful));
}

/* The smallest remainder that is rounded up, if the `n` largest are; *ret_ties: how many of those
   that are equal to it. Two passes over bins instead of sorting; `bins` has the upper halves. */
static uint32_t threshold_of(struct hg_balance *balance, uint32_t *bins, uint32_t n,
                             uint32_t *ret_ties)
{
    uint32_t upper = BINS - 1, lower = BINS - 1;
    while (upper > 0 && bins[upper] < n)
        n -= bins[upper--];
    memset(bins, 0, BINS * sizeof *bins);
    HG_LIST_EACH(node, &balance->active)
    {
        const struct hg_balance_block *block = hg_balance_block_at(node);
        if (block->remainder >> 8 == upper)
            bins[block->remainder & (BINS - 1)]++;
    }
    while (lower > 0 && bins[lower] < n)
        n -= bins[lower--];
    *ret_ties = n;
    return upper << 8 | lower;
}

/* How the targets differ from the quotas. */
struct change {
    bool needed;       // the quotas leave somebody out, or count somebody who is gone
    uint32_t up, down; // that STEADY_TICKS ticks agree on
};

static void set_target(struct hg_balance_block *block, uint32_t target, struct change *change)
{
    uint32_t more = target > block->quota, less = target < block->quota;
    uint32_t was_more = block->target > block->quota;
    uint32_t before = more == was_more ? block->target_ticks : 0;
    block->target_ticks = (more | less) * (before + 1);
    block->target = target;
    change->needed |= (target > 0) != (block->quota > 0);
    uint32_t steady = block->target_ticks >= STEADY_TICKS;
    change->up += (more & steady) * (target - block->quota);
    change->down += (less & steady) * (block->quota - target);
}

/* From shares to whole numbers, by largest remainder. */
static void round_shares(struct hg_balance *balance, struct change *change)
{
    uint32_t bins[BINS] = {0}, sum = 0, ties = 0;
    double debt_unit = (double)HG_BALANCE_TICK_US / (double)(balance->hold_us);
    double debt_most = RANK_MOST / debt_unit;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        block->share = is_wanting(block) ? share_at(block, balance->level) : 0;
        double debt = block->debt + block->share - block->quota;
        debt = debt < -debt_most ? -debt_most : debt;
        debt = debt > debt_most ? debt_most : debt;
        block->debt = block->share > 0 ? debt : 0;
        block->remainder = remainder_of(block, debt_unit);
        bins[block->remainder >> 8]++;
        sum += (uint32_t)block->share;
    }
    uint32_t left = sum < balance->capacity ? balance->capacity - sum : 0;
    uint32_t threshold = left == 0 ? UINT32_MAX : threshold_of(balance, bins, left, &ties);
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        bool tie = block->remainder == threshold && ties > 0 && block->share > 0;
        ties -= tie;
        set_target(block, (uint32_t)block->share + (tie || block->remainder > threshold), change);
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
static void apply_steady(struct hg_balance *balance, const struct change *change)
{
    uint32_t up = change->up < change->down ? change->up : change->down, down = up;
    if (up == 0)
        return;
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        if (block->target_ticks < STEADY_TICKS)
            continue;
        uint32_t *left = block->target > block->quota ? &up : &down;
        uint32_t step = block->target > block->quota ? block->target - block->quota
                                                     : block->quota - block->target;
        step = step < *left ? step : *left;
        *left -= step;
        block->quota += block->target > block->quota ? step : 0 - step;
        if (block->quota == block->target)
            block->target_ticks = 0;
    }
}

void hg_balance_set_quotas(struct hg_balance *balance, uint64_t now_us)
{
    double elapsed_us = (double)(now_us - balance->ticked_us);
    struct sums sums = {0, 0, 0};
    balance->ticked_us = now_us;
    balance->tick++;
    if (balance->frozen || elapsed_us <= 0)
        return;
    measure(balance, elapsed_us, now_us, &sums);
    bool was_shared = balance->constrained && !balance->ring;
    balance->wanting = sums.wanting;
    balance->ring = sums.wanting > balance->capacity;
    balance->constrained = balance->ring || sums.useful > balance->capacity;
    if (balance->constrained && !balance->ring) {
        struct change change = {!was_shared || balance->quota_sum != balance->capacity, 0, 0};
        balance->level = find_level(balance, sums.claim);
        round_shares(balance, &change);
        if (change.needed)
            apply_all(balance);
        else
            apply_steady(balance, &change);
        return;
    }
    HG_LIST_EACH(node, &balance->active)
    {
        struct hg_balance_block *block = hg_balance_block_at(node);
        block->target = !is_wanting(block) ? 0 : balance->ring ? 1 : block->useful;
    }
    apply_all(balance);
}
