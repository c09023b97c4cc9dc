// pool_stats - what a worker counts of an identity on a server, and the sum over workers
// SPDX-License-Identifier: BSD-3-Clause
#include "back/pool_stats.h"

#include <stdlib.h>

const struct hg_pool_stat_row hg_pool_stat_rows[HG_POOL_STATS] = {
#define HG_POOL_STAT(NAME, name, kind, help) {name, help, HG_POOL_STAT_##kind},
#include "back/pool_stats.def"
#undef HG_POOL_STAT
};

struct hg_pool_counters *hg_pool_board_get(struct hg_pool_board *board, uint32_t identity)
{
    struct hg_pool_counters *first = atomic_load_explicit(&board->first, memory_order_relaxed);
    for (struct hg_pool_counters *set = first; set != NULL; set = set->next) {
        if (set->identity == identity)
            return set;
    }
    struct hg_pool_counters *set = calloc(1, sizeof *set);
    if (set == NULL)
        return NULL;
    set->identity = identity;
    set->next = first;
    atomic_store_explicit(&board->first, set, memory_order_release);
    return set;
}

void hg_pool_board_fini(struct hg_pool_board *board)
{
    struct hg_pool_counters *set = atomic_load_explicit(&board->first, memory_order_relaxed);
    while (set != NULL) {
        struct hg_pool_counters *next = set->next;
        free(set);
        set = next;
    }
}

void hg_pool_board_add(const struct hg_pool_board *board, struct hg_pool_sum *sums, uint32_t count)
{
    struct hg_pool_counters *set = atomic_load_explicit(
        &((struct hg_pool_board *)(uintptr_t)board)->first, memory_order_acquire);
    for (; set != NULL; set = set->next) {
        if (set->identity >= count)
            continue;
        struct hg_pool_sum *sum = &sums[set->identity];
        sum->known = true;
        for (unsigned i = 0; i < HG_POOL_STATS; i++) {
            uint64_t value = hg_counter_get(&set->values[i]);
            if (hg_pool_stat_rows[i].kind != HG_POOL_STAT_LONGEST)
                sum->values[i] += value;
            else if (value > sum->values[i])
                sum->values[i] = value;
        }
    }
}
