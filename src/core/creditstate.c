// creditstate - the memory of the credits, node, buckets and lanes, and what is set in it
// SPDX-License-Identifier: BSD-3-Clause
//
// See creditstate.h. Settings are relaxed atomics that the tick reads; nothing else does.
#include "core/creditstate.h"

#define SLOT_MS_MIN 50
#define SLOT_MS_MAX 1000

static uint64_t clamp_limit(uint64_t per_s)
{
    if (per_s == HG_UNITS_UNLIMITED)
        return per_s;
    return per_s < HG_UNITS_LIMIT_MAX ? per_s : HG_UNITS_LIMIT_MAX;
}

uint64_t hg_credit_scale(uint64_t per_s, uint32_t slot_ms, uint64_t period)
{
    // After 1000 slots of whole milliseconds the fraction is 0 again; 2^38 * 1000 * 1000 fits.
    uint64_t n = period % 1000;
    if (per_s == HG_UNITS_UNLIMITED)
        return per_s;
    return (n + 1) * slot_ms * per_s / 1000 - n * slot_ms * per_s / 1000;
}

void hg_credit_set(struct hg_credit_node *node, const struct hg_credit_settings *settings)
{
    uint32_t ms = settings->slot_ms;
    uint32_t percent = settings->slow_start_percent < 100 ? settings->slow_start_percent : 100;
    ms = ms < SLOT_MS_MIN ? SLOT_MS_MIN : ms > SLOT_MS_MAX ? SLOT_MS_MAX : ms;
    atomic_store_explicit(&node->capacity, clamp_limit(settings->capacity), memory_order_relaxed);
    atomic_store_explicit(&node->slot_ms, ms, memory_order_relaxed);
    atomic_store_explicit(&node->free_pool, settings->free_pool, memory_order_relaxed);
    atomic_store_explicit(&node->slow_start_percent, percent, memory_order_relaxed);
}

void hg_credit_init(struct hg_credit_node *node, const struct hg_credit_settings *settings,
                    uint32_t workers)
{
    *node = (struct hg_credit_node){
        .workers = workers < HG_CREDIT_WORKERS_MAX ? workers : HG_CREDIT_WORKERS_MAX,
        .next_slice_us = UINT64_MAX,
        .level = UINT64_MAX};
    hg_credit_set(node, settings);
}

void hg_credit_bucket_set(struct hg_credit_bucket *bucket, uint64_t reserved, uint64_t hard_limit,
                          bool observe)
{
    atomic_store_explicit(&bucket->reserved, clamp_limit(reserved), memory_order_relaxed);
    atomic_store_explicit(&bucket->hard_limit, clamp_limit(hard_limit), memory_order_relaxed);
    atomic_store_explicit(&bucket->observe, observe, memory_order_relaxed);
}

void hg_credit_bucket_init(struct hg_credit_node *node, struct hg_credit_bucket *bucket,
                           struct hg_credit_lane *lanes, uint64_t reserved, uint64_t hard_limit)
{
    uint32_t slot = atomic_load_explicit(&node->slot, memory_order_relaxed);
    uint64_t hard =
        hg_credit_scale(clamp_limit(hard_limit), (uint32_t)(node->slot_us / 1000), node->period);
    bool fair = atomic_load_explicit(&node->next_slice_us, memory_order_relaxed) != UINT64_MAX;

    *bucket = (struct hg_credit_bucket){.lanes = lanes, .used.word = hg_gauge_word(slot, 0)};
    for (uint32_t i = 0; i < node->workers; i++)
        lanes[i] = (struct hg_credit_lane){0};
    for (int p = 0; p < 2; p++) {
        bool unlimited = reserved == HG_UNITS_UNLIMITED;
        atomic_init(&bucket->effective[p], unlimited ? HG_UNITS_UNLIMITED : 0);
        atomic_init(&bucket->hard[p], hard);
        atomic_init(&bucket->share[p], fair ? 0 : HG_UNITS_UNLIMITED);
        atomic_init(&bucket->carries[p], hard != HG_UNITS_UNLIMITED);
    }
    hg_credit_bucket_set(bucket, reserved, hard_limit, false);
}

void hg_credit_join(struct hg_credit_bucket *bucket)
{
    atomic_fetch_add_explicit(&bucket->users, 1, memory_order_relaxed);
}

void hg_credit_leave(struct hg_credit_bucket *bucket)
{
    atomic_fetch_sub_explicit(&bucket->users, 1, memory_order_relaxed);
}

void hg_credit_note_impersonated(const struct hg_credit_node *node, struct hg_credit_bucket *bucket)
{
    uint32_t mark = 1 + atomic_load_explicit(&node->slot, memory_order_relaxed);
    if (atomic_load_explicit(&bucket->impersonated, memory_order_relaxed) != mark)
        atomic_store_explicit(&bucket->impersonated, mark, memory_order_relaxed);
}
