// credit - buckets are held to units per second: reservation, free pool, hard limit
// SPDX-License-Identifier: BSD-3-Clause
//
// See credit.h. Why the limits of a slot can be read apart from its gauge: those of slot n lie at
// parity n until the tick prepares slot n + 2, and it does that only after it has rolled every
// gauge to n + 1. Whoever reads later limits fails to swap a gauge word of slot n: it starts over.
#include "core/credit.h"
#include "core/held.h"
#include "core/units.h"

enum outcome { DONE, REFUSED, OVER }; // OVER: the slot is, start again

enum pool_test {
    POOL_TESTED,   // not a unit more than the pool has
    POOL_BELOW,    // some of the pool must be left
    POOL_UNTESTED, // whatever is left
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t read(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* A gauge's word as it is, and as it stands in `slot`; false when it is in a later one already. */
static bool gauge_at(const struct hg_gauge *gauge, uint32_t slot, uint64_t limit, bool carries,
                     uint64_t *ret_is, uint64_t *ret_now)
{
    uint64_t is = read(&gauge->word);
    int32_t lag = hg_gauge_lag(is, slot);
    if (lag < 0)
        return false;
    *ret_is = is;
    *ret_now = lag == 0 ? is : hg_gauge_rolled(is, slot, limit, carries);
    return true;
}

static bool bucket_at(const struct hg_credit_bucket *bucket, uint32_t slot, uint64_t *ret_is,
                      uint64_t *ret_now)
{
    uint32_t before = (slot & 1) ^ 1;
    uint64_t hard = read(&bucket->hard[before]);
    bool carries = atomic_load_explicit(&bucket->carries[before], memory_order_acquire) != 0;
    return gauge_at(&bucket->used, slot, hard, carries, ret_is, ret_now);
}

static bool swap(struct hg_gauge *gauge, uint64_t is, uint64_t becomes)
{
    return atomic_compare_exchange_weak_explicit(&gauge->word, &is, becomes, memory_order_acq_rel,
                                                 memory_order_relaxed);
}

/* Takes units off a gauge if it still is in that slot. */
static bool give_back(struct hg_gauge *gauge, uint32_t slot, uint64_t units)
{
    uint64_t is = read(&gauge->word);
    do {
        if (hg_gauge_slot(is) != slot)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&gauge->word, &is,
                                                    is - smaller(units, hg_gauge_units(is)),
                                                    memory_order_acq_rel, memory_order_acquire));
    return true;
}

static enum outcome take_pool(struct hg_credit_node *node, uint32_t slot, uint64_t units,
                              enum pool_test test)
{
    uint64_t pool = read(&node->pool[slot & 1]);
    uint64_t is, now;
    if (pool == HG_UNITS_UNLIMITED)
        return DONE; // nothing to share out, no word to fight over
    do {
        if (!gauge_at(&node->free, slot, 0, false, &is, &now))
            return OVER;
        if (test == POOL_TESTED && hg_gauge_units(now) + units > pool)
            return REFUSED;
        if (test == POOL_BELOW && pool > 0 && hg_gauge_units(now) >= pool)
            return REFUSED;
    } while (!swap(&node->free, is, hg_gauge_word(slot, hg_gauge_units(now) + units)));
    return DONE;
}

/* How much of the step from `used` to `after` is above the reservation. */
static uint64_t above(uint64_t effective, uint64_t used, uint64_t after)
{
    if (after <= effective)
        return 0;
    return after - (used > effective ? used : effective);
}

static void fill(struct hg_charge *ret, uint64_t units, uint64_t pool_units, uint32_t slot)
{
    ret->units = (uint32_t)smaller(units, UINT32_MAX);
    ret->pool_units = (uint32_t)smaller(pool_units, UINT32_MAX);
    ret->slot = slot;
    ret->charged = 1;
}

/* Charges the running slot, whatever its limits say. */
static void charge_untested(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                            uint64_t units, struct hg_charge *ret)
{
    uint64_t is, now, after, effective;
    uint32_t slot;
    do {
        do {
            slot = atomic_load_explicit(&node->slot, memory_order_acquire);
            effective = read(&bucket->effective[slot & 1]);
        } while (!bucket_at(bucket, slot, &is, &now));
        after = hg_gauge_units(now) + units;
    } while (!swap(&bucket->used, is, hg_gauge_word(slot, after)));
    units = above(effective, hg_gauge_units(now), after);
    fill(ret, after - hg_gauge_units(now), units, slot);
    if (units > 0 && take_pool(node, slot, units, POOL_UNTESTED) != DONE)
        ret->pool_units = 0;
}

/* What a request that does not fit into the reservation runs into, DONE if nothing. */
static enum outcome test_beyond(const struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                                const struct hg_charge *step, uint64_t used, bool first,
                                enum pool_test *ret_test, uint8_t *ret_reason)
{
    uint32_t p = step->slot & 1;
    uint64_t effective = read(&bucket->effective[p]), hard = read(&bucket->hard[p]);
    uint64_t pool = read(&node->pool[p]), share = read(&bucket->share[p]);
    uint64_t whole = add(effective, pool), bound = smaller(hard, whole), is, now;
    bool large = first && used == 0 && bound > 0 && step->units > bound;
    bool pool_large = large && step->units > whole;

    *ret_test = pool_large ? POOL_BELOW : POOL_TESTED;
    if (pool != HG_UNITS_UNLIMITED) {
        if (!gauge_at(&node->free, step->slot, 0, false, &is, &now))
            return OVER;
        now = hg_gauge_units(now);
        *ret_reason = HG_CREDIT_NO_POOL;
        if (pool_large ? pool > 0 && now >= pool : now + step->pool_units > pool)
            return REFUSED;
        *ret_reason = HG_CREDIT_NO_SHARE;
        if (!pool_large && used + step->units - effective > share)
            return REFUSED;
    }
    *ret_reason = HG_CREDIT_HARD_LIMIT;
    return used + step->units > hard && !large ? REFUSED : DONE;
}

/* One try in the running slot. `step` is filled in when it is DONE, its reason when REFUSED. */
static enum outcome try_charge(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                               uint32_t units, bool first, struct hg_charge *step)
{
    uint32_t slot = atomic_load_explicit(&node->slot, memory_order_acquire);
    uint64_t effective = read(&bucket->effective[slot & 1]);
    enum pool_test test = POOL_TESTED;
    enum outcome outcome;
    uint64_t is, now, after, part;

    if (!bucket_at(bucket, slot, &is, &now))
        return OVER;
    after = hg_gauge_units(now) + units;
    part = above(effective, hg_gauge_units(now), after);
    fill(step, units, part, slot);
    if (HG_UNLIKELY(part > 0)) {
        outcome = test_beyond(node, bucket, step, hg_gauge_units(now), first, &test, &step->reason);
        if (outcome != DONE)
            return outcome;
    }
    if (!swap(&bucket->used, is, hg_gauge_word(slot, after)))
        return OVER;
    if (part == 0) {
        step->reason =
            effective == HG_UNITS_UNLIMITED ? HG_CREDIT_BY_UNLIMITED : HG_CREDIT_BY_RESERVATION;
        return DONE;
    }
    outcome = take_pool(node, slot, part, test);
    if (outcome != DONE)
        give_back(&bucket->used, slot, units);
    step->reason = outcome == DONE ? HG_CREDIT_BY_POOL : HG_CREDIT_NO_POOL;
    return outcome;
}

static enum hg_credit_verdict refuse(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                                     uint32_t units, unsigned flags, struct hg_charge *ret)
{
    bool pool = ret->reason == HG_CREDIT_NO_POOL || ret->reason == HG_CREDIT_NO_SHARE;
    if (pool && atomic_load_explicit(&bucket->wanted, memory_order_relaxed) == 0)
        atomic_store_explicit(&bucket->wanted, 1, memory_order_relaxed);
    ret->units = ret->pool_units = ret->charged = 0;
    if (flags & HG_CREDIT_OBSERVE)
        charge_untested(node, bucket, units, ret);
    return HG_CREDIT_HOLD;
}

enum hg_credit_verdict hg_credit_decide(struct hg_credit_node *node,
                                        struct hg_credit_bucket *bucket, uint32_t units,
                                        unsigned flags, struct hg_charge *ret)
{
    bool first = (flags & (HG_CREDIT_OLDEST | HG_CREDIT_OBSERVE)) || !(flags & HG_CREDIT_RETRY);
    enum outcome outcome;

    ret->slot = 0;
    if (flags & HG_CREDIT_UNTHROTTLED) {
        ret->seq = hg_credit_seq(node);
        ret->reason = HG_CREDIT_BY_UNTHROTTLED;
        charge_untested(node, bucket, units, ret);
        return HG_CREDIT_PASS;
    }
    // Before the limits are read: if it has moved on by the time the request is held, they have.
    ret->seq = hg_credit_seq(node);
    if (!(flags & (HG_CREDIT_RETRY | HG_CREDIT_OBSERVE)) && HG_UNLIKELY(hg_held_any(bucket))) {
        ret->reason = HG_CREDIT_BEHIND;
        return refuse(node, bucket, units, flags, ret);
    }
    do
        outcome = try_charge(node, bucket, units, first, ret);
    while (outcome == OVER);
    if (HG_LIKELY(outcome == DONE))
        return HG_CREDIT_PASS;
    return refuse(node, bucket, units, flags, ret);
}

bool hg_credit_settle(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                      struct hg_charge *charge, uint64_t real_units)
{
    struct hg_charge excess = {0};
    uint32_t real = (uint32_t)smaller(real_units, UINT32_MAX);
    uint32_t back, pool_back;

    if (!charge->charged || real == charge->units)
        return false;
    if (real > charge->units) {
        charge_untested(node, bucket, real - charge->units, &excess);
        // What went into a later slot is not given back: the charge keeps its slot, see give_back.
        if (excess.slot == charge->slot)
            charge->pool_units = hg_units_add(charge->pool_units, excess.pool_units);
        charge->units = real;
        return false;
    }
    back = charge->units - real;
    pool_back = back < charge->pool_units ? back : charge->pool_units;
    charge->units = real;
    charge->pool_units -= pool_back;
    if (!give_back(&bucket->used, charge->slot, back))
        return false;
    if (pool_back > 0)
        give_back(&node->free, charge->slot, pool_back);
    return (uint32_t)atomic_load(&bucket->queue) != 0; // after the gauge, see held.c
}

bool hg_credit_undo(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                    struct hg_charge *charge)
{
    bool hint = hg_credit_settle(node, bucket, charge, 0);
    charge->charged = 0;
    return hint;
}
