// credittick - a slot of the credits begins: pool, gauges, shares, grants
// SPDX-License-Identifier: BSD-3-Clause
//
// See credittick.h. The order in begin_slot matters, and is what credit.c relies on: the next
// slot's limits and shares, grants, the slot's number, then all gauges rolled.
#include "core/credittick.h"
#include "core/held.h"

#define IDLE_PART 16         // an idle bucket's share of a slice is at most a 16th of an equal one
#define BLOCKED   UINT64_MAX // in place of a lump: the head needs more than it can get in this slot

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void put(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* What the bucket has used when `slot` begins, or so far, if that is the running one. */
static uint64_t used_in(const struct hg_credit_bucket *bucket, uint32_t slot)
{
    uint64_t word = atomic_load_explicit(&bucket->used.word, memory_order_acquire);
    uint32_t before = (slot & 1) ^ 1;
    if (hg_gauge_lag(word, slot) <= 0)
        return hg_gauge_units(word);
    return hg_gauge_units(
        hg_gauge_rolled(word, slot, get(&bucket->hard[before]),
                        atomic_load_explicit(&bucket->carries[before], memory_order_relaxed) != 0));
}

static void roll(struct hg_gauge *gauge, uint32_t slot, uint64_t limit, bool carries)
{
    uint64_t word = atomic_load_explicit(&gauge->word, memory_order_acquire);
    while (hg_gauge_lag(word, slot) > 0 &&
           !atomic_compare_exchange_weak_explicit(&gauge->word, &word,
                                                  hg_gauge_rolled(word, slot, limit, carries),
                                                  memory_order_acq_rel, memory_order_acquire))
        ;
}

/* The bucket's limits in the slot numbered `slot`; adds its reservation per second to the sum. */
static void set_limits(struct hg_credit_node *node, struct hg_credit_bucket *bucket, uint32_t slot,
                       uint32_t slot_ms, uint64_t *sum_per_s)
{
    uint32_t p = slot & 1, last = (slot - 1) & (HG_GAUGE_SLOTS - 1);
    uint64_t reserved = get(&bucket->reserved), limit = get(&bucket->hard_limit), effective;
    uint32_t percent = atomic_load_explicit(&node->slow_start_percent, memory_order_relaxed);
    bool in_use = atomic_load_explicit(&bucket->users, memory_order_relaxed) != 0 ||
                  atomic_load_explicit(&bucket->impersonated, memory_order_relaxed) == last + 1;
    bool observed = atomic_load_explicit(&bucket->observe, memory_order_relaxed) != 0;
    uint64_t hard = hg_credit_scale(limit, slot_ms, node->period);

    if (reserved == HG_UNITS_UNLIMITED) {
        effective = reserved;
    } else {
        if (!in_use)
            reserved = reserved * percent / 100;
        *sum_per_s = add(*sum_per_s, reserved);
        effective = smaller(hg_credit_scale(reserved, slot_ms, node->period), hard);
    }
    put(&bucket->effective[p], effective);
    put(&bucket->hard[p], hard);
    atomic_store_explicit(&bucket->carries[p], hard != HG_UNITS_UNLIMITED && !observed,
                          memory_order_release);
}

/* What the bucket has taken out of the pool in `slot` so far. */
static uint64_t taken_in(const struct hg_credit_bucket *bucket, uint32_t slot)
{
    return minus(used_in(bucket, slot), get(&bucket->effective[slot & 1]));
}

/* Remembers what the bucket took in the slice that ends; a burst is forgotten by quarters. */
static void note_use(struct hg_credit_bucket *bucket, uint64_t taken)
{
    uint64_t use = minus(taken, bucket->seen), faded = bucket->recent - bucket->recent / 4;
    bucket->recent = use > faded ? use : faded;
    bucket->seen = taken;
}

/*
 * Closes the account of the last slot, in which others could have had `level`. It is opened by
 * requests that need more than a share: who got one owes what it had more, who was passed over is
 * owed. Else who took more than the level did so while nobody wanted it, and pays what it owes.
 */
static void close_account(const struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                          uint32_t last, uint32_t slot, bool fair)
{
    uint64_t taken = taken_in(bucket, last), carried = taken_in(bucket, slot);
    int64_t most = (int64_t)smaller(get(&node->pool[last & 1]), HG_UNITS_LIMIT_MAX);
    int64_t account = bucket->account + (int64_t)taken - (int64_t)node->level;

    note_use(bucket, taken);
    if (bucket->lump == 0) {
        account = account < bucket->account ? account : bucket->account;
        account = account > 0 ? account : 0;
    } else if (bucket->lump != BLOCKED) {
        account -= (int64_t)smaller(carried, taken); // is in the gauge
    }
    account = account > most ? most : account < -most ? -most : account;
    bucket->account = fair && node->level != HG_FAIR_INFINITE ? account : 0;
    bucket->seen = carried;
    bucket->lump = 0;
}

/* The bucket's claim to the pool, up to the end of this slice. */
static struct hg_fair claim_of(struct hg_credit_bucket *bucket, uint32_t slot, uint64_t idle)
{
    uint64_t effective = get(&bucket->effective[slot & 1]), hard = get(&bucket->hard[slot & 1]);
    uint64_t taken = taken_in(bucket, slot);
    struct hg_fair claim;

    note_use(bucket, taken);
    claim.taken = taken;
    claim.debt = bucket->account > 0 ? (uint64_t)bucket->account : 0;
    claim.most = hard == HG_UNITS_UNLIMITED ? HG_FAIR_INFINITE : minus(hard, effective);
    if (atomic_exchange_explicit(&bucket->wanted, 0, memory_order_relaxed) || hg_held_any(bucket))
        claim.want = HG_FAIR_INFINITE;
    else
        claim.want = add(claim.taken, bucket->recent > idle ? bucket->recent : idle);
    if (!hg_held_any(bucket))
        bucket->lump = 0;
    if (bucket->lump == BLOCKED)
        claim.want = claim.taken;
    else if (bucket->lump > claim.taken)
        claim.taken = bucket->lump;
    claim.share = 0;
    return claim;
}

/* The pool's part that the oldest held request needs, and since when it waits. */
static uint64_t head_need(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket,
                          uint32_t slot, uint64_t *ret_since)
{
    uint64_t units = 0, since = UINT64_MAX;
    for (uint32_t i = 0; i < node->workers; i++) {
        const struct hg_credit_lane *lane = &bucket->lanes[i];
        uint64_t at = get(&lane->head_since_us);
        if (atomic_load(&lane->count) != 0 && at < since) {
            since = at;
            units = get(&lane->head_units);
        }
    }
    *ret_since = since;
    return minus(add(used_in(bucket, slot), units), get(&bucket->effective[slot & 1]));
}

/*
 * A held request may need more than its bucket's share of a whole slot. One such a slot, the oldest
 * of a bucket that owes nothing, has what it needs put by: a lump. The others leave their shares.
 */
static void set_lump(struct hg_credit_node *node, struct hg_credit_bucket *const *buckets, size_t n,
                     struct hg_fair *claims, uint32_t slot)
{
    uint64_t pool = get(&node->pool[slot & 1]), oldest = UINT64_MAX, lump = 0;
    size_t found = n;

    (void)hg_fair_fill(claims, n, pool, node->period);
    for (size_t i = 0; i < n; i++) {
        uint64_t since, need;
        if (!hg_held_any(buckets[i]))
            continue;
        need = head_need(node, buckets[i], slot, &since);
        if (need <= claims[i].share || need > pool)
            continue;
        buckets[i]->lump = BLOCKED;
        claims[i].want = claims[i].taken;
        if (buckets[i]->account <= 0 && since < oldest) {
            oldest = since;
            lump = need;
            found = i;
        }
    }
    if (found == n)
        return;
    buckets[found]->lump = lump;
    claims[found].taken = lump;
}

static void set_shares(struct hg_credit_node *node, struct hg_credit_bucket *const *buckets,
                       size_t n, struct hg_fair *claims, uint32_t slot)
{
    uint64_t pool = get(&node->pool[slot & 1]);
    uint64_t idle = n > 0 ? pool / HG_FAIR_SLICES / n / IDLE_PART : 0;

    for (size_t i = 0; i < n; i++)
        claims[i] = claim_of(buckets[i], slot, idle);
    if (node->slice == 0)
        set_lump(node, buckets, n, claims, slot);
    node->level =
        hg_fair_fill(claims, n, hg_fair_cap(pool, node->slice), node->period + node->slice);
    for (size_t i = 0; i < n; i++)
        put(&buckets[i]->share[slot & 1], claims[i].share);
}

/* Grants for the held requests of all buckets, as if each were alone on the pool. */
static void plan_held(struct hg_credit_node *node, struct hg_credit_bucket *const *buckets,
                      size_t n, uint32_t slot, uint64_t pool_used)
{
    uint64_t pool = get(&node->pool[slot & 1]);
    bool saves = get(&node->next_slice_us) != UINT64_MAX && node->slice + 1 < HG_FAIR_SLICES;
    for (size_t i = 0; i < n; i++) {
        struct hg_credit_bucket *bucket = buckets[i];
        uint64_t effective = get(&bucket->effective[slot & 1]), used, beyond, room;
        if (!hg_held_any(bucket))
            continue;
        used = used_in(bucket, slot);
        beyond = minus(get(&bucket->share[slot & 1]), minus(used, effective));
        room = pool == HG_UNITS_UNLIMITED ? pool : smaller(minus(pool, pool_used), beyond);
        room = add(minus(effective, used), room);
        hg_held_plan(node, bucket, smaller(room, minus(get(&bucket->hard[slot & 1]), used)), saves);
    }
}

static uint64_t who_holds(const struct hg_credit_node *node,
                          struct hg_credit_bucket *const *buckets, size_t n)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)atomic_load(&buckets[i]->queue) != 0)
            mask |= hg_held_holders(node, buckets[i]);
    return mask;
}

/* The due time of the next slot, on the grid of the last one. */
static void set_times(struct hg_credit_node *node, uint64_t now_us, uint32_t slot_ms, bool fair)
{
    uint64_t start = get(&node->next_tick_us);
    if (node->slot_us == 0)
        start = now_us;
    else if (now_us - start >= node->slot_us)
        start += (now_us - start) / node->slot_us * node->slot_us;
    node->slot_us = (uint64_t)slot_ms * 1000;
    node->slice = 0;
    put(&node->next_tick_us, start + node->slot_us);
    put(&node->next_slice_us, fair ? start + node->slot_us / HG_FAIR_SLICES : UINT64_MAX);
}

static void begin_slot(struct hg_credit_node *node, struct hg_credit_bucket *const *buckets,
                       size_t n, struct hg_fair *scratch, uint64_t now_us,
                       struct hg_credit_tick *ret)
{
    uint32_t last = atomic_load_explicit(&node->slot, memory_order_relaxed);
    uint32_t slot = (last + 1) & (HG_GAUGE_SLOTS - 1);
    uint32_t slot_ms = atomic_load_explicit(&node->slot_ms, memory_order_relaxed);
    uint64_t capacity = get(&node->capacity), sum = 0, pool;
    bool fair;

    if (get(&node->next_slice_us) == UINT64_MAX)
        node->level = HG_FAIR_INFINITE;
    node->period++;
    for (size_t i = 0; i < n; i++)
        set_limits(node, buckets[i], slot, slot_ms, &sum);
    pool = capacity == HG_UNITS_UNLIMITED ? capacity : minus(capacity, sum);
    ret->pool = hg_credit_scale(pool, slot_ms, node->period);
    ret->reserved_sum = hg_credit_scale(smaller(sum, HG_UNITS_LIMIT_MAX), slot_ms, node->period);
    ret->overcommitted = sum > capacity;
    put(&node->pool[slot & 1], ret->pool);
    fair = atomic_load_explicit(&node->free_pool, memory_order_relaxed) == HG_FREE_POOL_FAIR &&
           ret->pool != HG_UNITS_UNLIMITED;
    set_times(node, now_us, slot_ms, fair);
    for (size_t i = 0; i < n; i++) {
        close_account(node, buckets[i], last, slot, fair);
        put(&buckets[i]->share[slot & 1], HG_UNITS_UNLIMITED);
    }
    if (fair)
        set_shares(node, buckets, n, scratch, slot);
    plan_held(node, buckets, n, slot, 0);

    atomic_store(&node->slot, slot);
    atomic_store(&node->seq, hg_credit_seq(node) + 1);
    roll(&node->free, slot, 0, false);
    for (size_t i = 0; i < n; i++)
        roll(&buckets[i]->used, slot, get(&buckets[i]->hard[last & 1]),
             atomic_load_explicit(&buckets[i]->carries[last & 1], memory_order_relaxed) != 0);
}

static void begin_slice(struct hg_credit_node *node, struct hg_credit_bucket *const *buckets,
                        size_t n, struct hg_fair *scratch, uint64_t now_us)
{
    uint32_t slot = atomic_load_explicit(&node->slot, memory_order_relaxed);
    uint64_t start = get(&node->next_tick_us) - node->slot_us;

    node->slice = (uint32_t)((now_us - start) * HG_FAIR_SLICES / node->slot_us);
    put(&node->next_slice_us, start + (node->slice + 1) * node->slot_us / HG_FAIR_SLICES);
    set_shares(node, buckets, n, scratch, slot);
    plan_held(node, buckets, n, slot, hg_gauge_units(get(&node->free.word)));
    atomic_store(&node->seq, hg_credit_seq(node) + 1);
}

void hg_credit_tick(struct hg_credit_node *node, struct hg_credit_bucket *const *buckets, size_t n,
                    struct hg_fair *scratch, uint64_t now_us, struct hg_credit_tick *ret)
{
    *ret = (struct hg_credit_tick){0};
    ret->slot = now_us >= get(&node->next_tick_us);
    ret->slice = !ret->slot && now_us >= get(&node->next_slice_us);
    if (ret->slot)
        begin_slot(node, buckets, n, scratch, now_us, ret);
    else if (ret->slice)
        begin_slice(node, buckets, n, scratch, now_us);
    if (ret->slot || ret->slice)
        ret->poke = who_holds(node, buckets, n);
}

uint64_t hg_credit_due_us(const struct hg_credit_node *node)
{
    return smaller(get(&node->next_tick_us), get(&node->next_slice_us));
}

uint64_t hg_credit_next_us(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket,
                           enum hg_credit_reason reason, uint64_t now_us)
{
    uint64_t at = get(&node->next_tick_us), slots = 1;
    uint32_t slot = atomic_load_explicit(&node->slot, memory_order_acquire);

    if (reason == HG_CREDIT_NO_SHARE || reason == HG_CREDIT_BEHIND) {
        at = hg_credit_due_us(node);
    } else if (reason == HG_CREDIT_HARD_LIMIT) {
        uint64_t hard = get(&bucket->hard[slot & 1]);
        if (hard > 0 && hard != HG_UNITS_UNLIMITED)
            slots = hg_gauge_units(get(&bucket->used.word)) / hard;
        if (slots > 1)
            at += (slots - 1) * atomic_load_explicit(&node->slot_ms, memory_order_relaxed) * 1000;
    }
    return at > now_us ? at - now_us : 1;
}

void hg_credit_view(const struct hg_credit_node *node, const struct hg_credit_bucket *bucket,
                    struct hg_credit_view *ret)
{
    uint32_t slot = atomic_load_explicit(&node->slot, memory_order_acquire), p = slot & 1;
    uint64_t free = get(&node->free.word);

    ret->used = used_in(bucket, slot);
    ret->effective = get(&bucket->effective[p]);
    ret->hard = get(&bucket->hard[p]);
    ret->share = get(&bucket->share[p]);
    ret->pool = get(&node->pool[p]);
    ret->pool_used = hg_gauge_slot(free) == slot ? hg_gauge_units(free) : 0;
    ret->users = atomic_load_explicit(&bucket->users, memory_order_relaxed);
    ret->holders = (uint32_t)(atomic_load(&bucket->queue) >> 16 & 0xffff);
}
