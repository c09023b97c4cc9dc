// creditrig - a node with a few buckets, for tests of single decisions and ticks
// SPDX-License-Identifier: BSD-3-Clause
//
// For inclusion after cmocka.h, in one file of a program.
#ifndef HG_TEST_CREDITRIG_H
#define HG_TEST_CREDITRIG_H

#include "core/credittick.h"
#include "core/held.h"

#define UNLIMITED HG_UNITS_UNLIMITED
#define BUCKETS   4

/* A node with up to four buckets and two workers; time stands still but for next_slot. */
struct rig {
    struct hg_credit_node node;
    struct hg_credit_bucket bucket[BUCKETS];
    struct hg_credit_bucket *all[BUCKETS];
    struct hg_credit_lane lanes[BUCKETS][2];
    struct hg_fair scratch[BUCKETS];
    struct hg_credit_tick tick;
    struct hg_charge charge; // of the last decision
    uint64_t now_us;
    size_t n;
};

static struct rig rig; // each test program has one

static inline void tick_at(uint64_t now_us)
{
    rig.now_us = now_us;
    hg_credit_tick(&rig.node, rig.all, rig.n, rig.scratch, now_us, &rig.tick);
}

static inline void next_slot(void)
{
    tick_at(rig.node.next_tick_us);
    assert_true(rig.tick.slot);
}

static inline void add_bucket(uint64_t reserved, uint64_t hard_limit)
{
    rig.all[rig.n] = &rig.bucket[rig.n];
    hg_credit_bucket_init(&rig.node, &rig.bucket[rig.n], rig.lanes[rig.n], reserved, hard_limit);
    hg_credit_join(&rig.bucket[rig.n]);
    rig.n++;
}

static inline void begin(uint64_t capacity, uint32_t slot_ms)
{
    struct hg_credit_settings settings = {capacity, slot_ms, HG_FREE_POOL_FIRST_COME, 10};
    rig = (struct rig){0};
    hg_credit_init(&rig.node, &settings, 2);
}

/* The reason of a decision, charge in rig.charge; the verdict must fit the reason. */
static inline int decide(size_t b, uint32_t units, unsigned flags)
{
    enum hg_credit_verdict verdict =
        hg_credit_decide(&rig.node, &rig.bucket[b], units, flags, &rig.charge);
    assert_int_equal(verdict == HG_CREDIT_PASS, rig.charge.reason < HG_CREDIT_NO_POOL);
    assert_int_equal(rig.charge.charged, verdict == HG_CREDIT_PASS || (flags & HG_CREDIT_OBSERVE));
    return rig.charge.reason;
}

static inline uint64_t used(size_t b)
{
    struct hg_credit_view view;
    hg_credit_view(&rig.node, &rig.bucket[b], &view);
    return view.used;
}

static inline uint64_t pool_used(void)
{
    struct hg_credit_view view;
    hg_credit_view(&rig.node, &rig.bucket[0], &view);
    return view.pool_used;
}

#endif
