// held - requests that wait for credits: order between workers, grants, wake-ups
// SPDX-License-Identifier: BSD-3-Clause
//
// See held.h. The argument, in four parts, all on sequentially consistent accesses:
//
// 1. Somebody always acts. While lanes hold and no grant is open, one of them has been refused in
//    the running slot (seq), or has a pass before it: who adds himself to `queue` behind others
//    and finds himself alone passes again; who leaves it pokes all that are still in it. Both are
//    changes of one word, so of two workers one sees the other.
// 2. A new slot is not missed. A worker publishes its lane, then reads seq; the tick stores seq,
//    then reads the lanes.
// 3. A refund in the running slot is not missed either: it changes the gauge, then reads `queue`;
//    who holds changes `queue`, then looks at the gauge again.
// 4. Open grants are closed exactly once. The lane's grant word is claimed by swapping it to 0: by
//    the worker when its pass is done or its list is empty, or by the tick, when it finds the list
//    empty after it has published the round. A worker whose list became empty before it could see
//    the round leaves the claim to the tick, whose look at the lane comes later. Only who claimed
//    counts down, and only in the round of the claim. A round that saves for the next slice (fair
//    pool) has one grant more, which nobody can claim; the next plan replaces it.
#include "core/held.h"
#include <stddef.h>

#define HOLDER     ((uint64_t)1 << 16)
#define GRANT_OPEN ((uint64_t)1 << 63)
#define ROUND_MASK 0x7fffffu

static uint32_t open_grants(uint64_t queue)
{
    return (uint32_t)(queue & 0xffff);
}

static uint32_t holders(uint64_t queue)
{
    return (uint32_t)(queue >> 16 & 0xffff);
}

static uint32_t round_of(uint64_t queue)
{
    return (uint32_t)(queue >> 32);
}

static uint64_t grant_word(uint32_t round, uint64_t units)
{
    return GRANT_OPEN | hg_gauge_word(round & ROUND_MASK, units);
}

/* Is it open, and of the round that `queue` is in? */
static bool grant_counts(uint64_t grant, uint64_t queue)
{
    return (grant & GRANT_OPEN) &&
           (hg_gauge_slot(grant) & ROUND_MASK) == (round_of(queue) & ROUND_MASK);
}

/* Claims a grant and counts it down; true if it was ours to claim. `queue` is brought up to date.
 */
static bool claim(struct hg_credit_bucket *bucket, struct hg_credit_lane *lane, uint64_t grant,
                  uint64_t *queue)
{
    uint64_t is = grant, word;
    if (grant == 0 || !atomic_compare_exchange_strong(&lane->grant, &is, 0))
        return false;
    word = atomic_load(&bucket->queue);
    do {
        *queue = word;
        if (!grant_counts(grant, word) || open_grants(word) == 0)
            return false; // a newer round began
        *queue = word - 1;
    } while (!atomic_compare_exchange_weak(&bucket->queue, &word, word - 1));
    return true;
}

/* Writes the lane and its part of the queue word; returns that word. */
static uint64_t store_lane(struct hg_credit_bucket *bucket, struct hg_credit_lane *lane,
                           const struct hg_held *held, uint32_t *ret_before)
{
    uint64_t queue;
    atomic_store_explicit(&lane->units, held->units, memory_order_relaxed);
    atomic_store_explicit(&lane->head_units, held->head_units, memory_order_relaxed);
    atomic_store_explicit(&lane->head_since_us, held->head_since_us, memory_order_relaxed);
    *ret_before = atomic_exchange(&lane->count, held->count);
    if (*ret_before == 0 && held->count != 0)
        return atomic_fetch_add(&bucket->queue, HOLDER) + HOLDER;
    if (*ret_before != 0 && held->count == 0) {
        uint64_t grant;
        queue = atomic_fetch_sub(&bucket->queue, HOLDER) - HOLDER;
        grant = atomic_load(&lane->grant);
        if (grant_counts(grant, queue))
            (void)claim(bucket, lane, grant, &queue);
        return queue;
    }
    return atomic_load(&bucket->queue);
}

uint64_t hg_held_holders(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < node->workers; i++)
        if (atomic_load(&bucket->lanes[i].count) != 0)
            mask |= (uint64_t)1 << i;
    return mask;
}

static uint64_t other_holders(const struct hg_credit_node *node,
                              const struct hg_credit_bucket *bucket, uint32_t worker)
{
    return hg_held_holders(node, bucket) & ~((uint64_t)1 << worker);
}

struct hg_held_advice hg_held_publish(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                                      uint32_t worker, const struct hg_held *held,
                                      const struct hg_charge *charge)
{
    struct hg_held_advice advice = {false, 0};
    uint32_t before;
    uint64_t queue = store_lane(bucket, &bucket->lanes[worker], held, &before);

    if (held->count == 0) {
        if (before != 0 && holders(queue) != 0 && open_grants(queue) == 0)
            advice.poke = other_holders(node, bucket, worker);
        return advice;
    }
    if (charge == NULL)
        advice.again = open_grants(queue) == 0; // the head may be another one
    else if (before == 0 && charge->reason != HG_CREDIT_BEHIND)
        advice.again = true; // a refund that came before the lane was seen told nobody
    else if (before == 0)
        advice.again = open_grants(queue) == 0 && holders(queue) == 1; // those before it have gone
    if (charge != NULL && charge->seq != atomic_load(&node->seq))
        advice.again = true;
    return advice;
}

/* Has no lane a head that waits longer than this worker's? */
static bool is_oldest(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket,
                      uint32_t worker)
{
    const struct hg_credit_lane *own = &bucket->lanes[worker];
    uint64_t since = atomic_load_explicit(&own->head_since_us, memory_order_relaxed);
    for (uint32_t i = 0; i < node->workers; i++) {
        const struct hg_credit_lane *lane = &bucket->lanes[i];
        uint64_t other = atomic_load_explicit(&lane->head_since_us, memory_order_relaxed);
        if (i == worker || atomic_load_explicit(&lane->count, memory_order_relaxed) == 0)
            continue;
        if (other < since || (other == since && i < worker))
            return false;
    }
    return true;
}

bool hg_held_pass_begin(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                        uint32_t worker, struct hg_held_pass *ret)
{
    uint64_t queue = atomic_load(&bucket->queue);
    uint64_t grant = atomic_load(&bucket->lanes[worker].grant);

    // The decisions look at the gauge after the lane was published: see 3 above.
    (void)atomic_load(&bucket->used.word);
    *ret = (struct hg_held_pass){.grant = HG_UNITS_UNLIMITED};
    ret->oldest = is_oldest(node, bucket, worker);
    if (grant_counts(grant, queue)) {
        ret->claim = grant;
        ret->grant = hg_gauge_units(grant);
    }
    ret->open = ret->claim != 0 || open_grants(queue) == 0;
    return ret->open;
}

enum hg_credit_verdict hg_held_decide(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                                      struct hg_held_pass *pass, uint32_t units, unsigned flags,
                                      struct hg_charge *ret)
{
    bool exempt = (flags & (HG_CREDIT_OBSERVE | HG_CREDIT_UNTHROTTLED)) != 0;
    enum hg_credit_verdict verdict;

    if (!exempt && units > pass->grant) {
        *ret = (struct hg_charge){.reason = HG_CREDIT_BEHIND};
        pass->capped = true;
        return HG_CREDIT_HOLD;
    }
    if (pass->oldest)
        flags |= HG_CREDIT_OLDEST;
    pass->oldest = false;
    verdict = hg_credit_decide(node, bucket, units, flags | HG_CREDIT_RETRY, ret);
    if (exempt)
        return HG_CREDIT_PASS;
    if (verdict == HG_CREDIT_PASS && pass->claim != 0)
        pass->grant -= units;
    return verdict;
}

struct hg_held_advice hg_held_pass_done(struct hg_credit_node *node,
                                        struct hg_credit_bucket *bucket, uint32_t worker,
                                        const struct hg_held_pass *pass, const struct hg_held *held)
{
    struct hg_credit_lane *lane = &bucket->lanes[worker];
    struct hg_held_advice advice = {false, 0};
    uint32_t before;
    uint64_t queue = store_lane(bucket, lane, held, &before);
    bool claimed = claim(bucket, lane, pass->claim, &queue);
    bool left = before != 0 && held->count == 0;

    // With its list empty the lane was claimed by store_lane: `left` covers it.
    if ((claimed || left) && open_grants(queue) == 0 && holders(queue) != 0)
        advice.poke = other_holders(node, bucket, worker);
    if (held->count == 0)
        return advice;
    // No look at seq here: the lane held all the time, so a tick in between has poked this worker.
    advice.again = claimed && open_grants(queue) == 0 && pass->capped;
    return advice;
}

/* Shares `available` units out among what the lanes want, by largest remainder. */
static void share_out(uint64_t *grants, const uint64_t *wants, uint32_t n, uint64_t available)
{
    uint64_t total = 0, given = 0;
    double rest[HG_CREDIT_WORKERS_MAX];

    for (uint32_t i = 0; i < n; i++)
        total += wants[i];
    for (uint32_t i = 0; i < n; i++) {
        double part = total > 0 ? (double)available * (double)wants[i] / (double)total : 0;
        uint64_t whole = (uint64_t)part;
        if (whole > available - given)
            whole = available - given;
        rest[i] = part - (double)whole;
        grants[i] += whole;
        given += whole;
    }
    while (given < available) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < n; i++)
            if (rest[i] > rest[best])
                best = i;
        if (rest[best] <= 0)
            return;
        grants[best]++;
        rest[best] = 0;
        given++;
    }
}

/* What each lane may take: the oldest head first, so that nobody starves, the rest by demand.
 * Returns the lanes that hold, as bits; 0 when there is enough for all. */
static uint64_t plan_grants(const struct hg_credit_node *node,
                            const struct hg_credit_bucket *bucket, uint64_t available,
                            uint64_t *grants, uint64_t *ret_head)
{
    uint64_t wants[HG_CREDIT_WORKERS_MAX] = {0}, total = 0, since = UINT64_MAX, head = 0, mask = 0;
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < node->workers; i++) {
        const struct hg_credit_lane *lane = &bucket->lanes[i];
        uint64_t at = atomic_load_explicit(&lane->head_since_us, memory_order_relaxed);
        grants[i] = 0;
        if (atomic_load(&lane->count) == 0)
            continue;
        wants[i] = atomic_load_explicit(&lane->units, memory_order_relaxed);
        total += wants[i];
        if (mask == 0 || at < since) {
            since = at;
            oldest = i;
            head = atomic_load_explicit(&lane->head_units, memory_order_relaxed);
        }
        mask |= (uint64_t)1 << i;
    }
    if (total <= available || mask == 0)
        return 0;
    *ret_head = head;
    grants[oldest] = head;
    wants[oldest] -= head < wants[oldest] ? head : wants[oldest];
    if (head < available)
        share_out(grants, wants, node->workers, available - head);
    return mask;
}

void hg_held_plan(struct hg_credit_node *node, struct hg_credit_bucket *bucket, uint64_t available,
                  bool saves)
{
    uint64_t grants[HG_CREDIT_WORKERS_MAX];
    uint64_t queue = atomic_load(&bucket->queue), mask, next;
    uint64_t head = 0;
    uint32_t round = round_of(queue) + 1, open = 0;

    if ((uint32_t)queue == 0)
        return;
    mask = plan_grants(node, bucket, available, grants, &head);
    if (saves && mask != 0 && head > available)
        open = 1; // a grant that nobody can claim: the round ends with the next plan
    for (uint32_t i = 0; i < node->workers; i++)
        if (mask >> i & 1) {
            atomic_store(&bucket->lanes[i].grant, grant_word(round, grants[i]));
            open++;
        }
    do
        next = (uint64_t)round << 32 | (queue & 0xffff0000u) | open;
    while (!atomic_compare_exchange_weak(&bucket->queue, &queue, next));
    for (uint32_t i = 0; i < node->workers; i++) {
        struct hg_credit_lane *lane = &bucket->lanes[i];
        if ((mask >> i & 1) && atomic_load(&lane->count) == 0)
            (void)claim(bucket, lane, grant_word(round, grants[i]), &queue);
    }
}
