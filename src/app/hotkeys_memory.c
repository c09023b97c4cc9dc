// hotkeys_memory - who gets small sketches when hotkey_memory_bytes does not suffice for all
// SPDX-License-Identifier: BSD-3-Clause
//
// Only looked at when something did not fit in the epoch that ended, and from then on until
// everybody's full size fits again. The most active tenants of that epoch keep their full size, as
// many as fit beside the small ones of all others; who was idle starts small.
#include <stdlib.h>

#include "app/hotkeys.h"

static int by_activity(const void *a, const void *b)
{
    const struct hg_hottenant *left = *(struct hg_hottenant *const *)a;
    const struct hg_hottenant *right = *(struct hg_hottenant *const *)b;
    return (left->activity < right->activity) - (left->activity > right->activity);
}

static void set_small(struct hg_hottenant *tenant, bool small)
{
    atomic_store_explicit(&tenant->bucket->hotkey_shrunk, small, memory_order_relaxed);
}

/* All tenants in an array; NULL when memory is out. */
static struct hg_hottenant **collect(struct hg_hotkeys *hot, size_t *ret_count)
{
    size_t count = 0;
    HG_LIST_EACH(node, &hot->tenants)
    count++;
    struct hg_hottenant **all = calloc(count + 1, sizeof *all);
    *ret_count = 0;
    HG_LIST_EACH(node, &hot->tenants)
    if (all != NULL)
        all[(*ret_count)++] = HG_CONTAINER_OF(node, struct hg_hottenant, node);
    return all;
}

void hg_hotkeys_share_memory(struct hg_hotkeys *hot)
{
    struct hg_hotmem *mem = &hot->front->hot.mem;
    uint64_t refused = atomic_load(&mem->refused);
    bool fits_not = refused != hot->refused_seen;
    hot->refused_seen = refused;
    if (!hot->tight && !fits_not)
        return;
    uint64_t cap = atomic_load(&mem->cap_bytes), full = 0, small = 0;
    uint64_t budget = cap - cap / 8; /* the rest is for long keys and what is late */
    size_t count;
    struct hg_hottenant **all = collect(hot, &count);
    if (all == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        full += all[i]->full_bytes;
        small += all[i]->small_bytes;
    }
    hot->tight = full > budget;
    qsort(all, count, sizeof all[0], by_activity);
    uint64_t left = budget > small ? budget - small : 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t more = all[i]->full_bytes - all[i]->small_bytes;
        bool grows = all[i]->activity > 0 && more <= left;
        if (hot->tight && grows)
            left -= more;
        set_small(all[i], hot->tight && !grows);
    }
    free(all);
}
