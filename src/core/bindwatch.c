// bindwatch - who holds too many of a backlogged upstream's slots
// SPDX-License-Identifier: BSD-3-Clause
#include "core/bindwatch.h"

/* One request is no pile, however few slots there are; and of several slots two may well be of one
   key by chance, which a quarter of eight would be. */
#define MIN_SLOTS      2
#define MIN_OF_SEVERAL 3
#define SEVERAL        4
#define DEAR_US        20000

/* ---- sums over the workers ---- */

size_t hg_bindwatch_bytes(size_t capacity)
{
    return sizeof(struct hg_bindwatch) +
           capacity * (sizeof(struct hg_bindwatch_verdict) + 2 * sizeof(uint32_t));
}

struct hg_bindwatch *hg_bindwatch_init(void *memory, size_t capacity)
{
    struct hg_bindwatch *watch = memory;

    *watch = (struct hg_bindwatch){.capacity = capacity};
    watch->sums = (struct hg_bindwatch_verdict *)(watch + 1);
    watch->heads = (uint32_t *)(watch->sums + capacity);
    watch->next = watch->heads + capacity;
    hg_bindwatch_clear(watch);
    return watch;
}

void hg_bindwatch_clear(struct hg_bindwatch *watch)
{
    watch->count = 0;
    watch->used = 0;
    watch->oldest_us = 0;
    watch->oldest_worker = UINT32_MAX;
    watch->left_out = 0;
    memset(watch->heads, 0, watch->capacity * sizeof *watch->heads);
}

static struct hg_bindwatch_verdict *sum_of(struct hg_bindwatch *watch,
                                           const struct hg_bindwatch_row *row)
{
    struct hg_bindwatch_verdict *sum;
    uint32_t *head;

    if (watch->capacity == 0)
        return NULL;
    head = &watch->heads[row->key.hash % watch->capacity];
    for (uint32_t i = *head; i != 0; i = watch->next[i - 1]) {
        sum = &watch->sums[i - 1];
        if (sum->tenant == row->tenant && hg_bindthrottle_same(&sum->key, &row->key))
            return sum;
    }
    if (watch->count == watch->capacity)
        return NULL;
    sum = &watch->sums[watch->count];
    *sum = (struct hg_bindwatch_verdict){.tenant = row->tenant, .key = row->key};
    watch->next[watch->count] = *head;
    *head = (uint32_t)++watch->count;
    return sum;
}

void hg_bindwatch_add(struct hg_bindwatch *watch, uint32_t worker,
                      const struct hg_bindwatch_report *report)
{
    watch->used += report->used;
    if (report->oldest_us > watch->oldest_us) {
        watch->oldest_us = report->oldest_us;
        watch->oldest_worker = worker;
    }
    for (size_t i = 0; i < report->count; i++) {
        const struct hg_bindwatch_row *row = &report->rows[i];
        struct hg_bindwatch_verdict *sum = sum_of(watch, row);
        if (sum == NULL) {
            watch->left_out++;
            continue;
        }
        sum->slots += row->slots;
        sum->evictable += row->evictable;
        sum->exempt += row->exempt;
        sum->waiting += row->waiting;
        if (row->oldest_us > sum->oldest_us)
            sum->oldest_us = row->oldest_us;
    }
}

/* ---- judgement ---- */

uint64_t hg_bindwatch_dear_us(uint64_t usual_us, uint64_t min_age_us)
{
    uint64_t dear_us = 4 * usual_us > DEAR_US ? 4 * usual_us : DEAR_US;
    return dear_us < min_age_us ? dear_us : min_age_us;
}

/* The most slots that a key that qualifies may go on holding; at least 1. */
static uint64_t allowed(uint64_t used, uint32_t threshold_pct)
{
    uint64_t below = (used * threshold_pct + 99) / 100;
    return below < MIN_SLOTS ? MIN_SLOTS - 1 : below - 1;
}

static bool qualifies(uint64_t slots, uint64_t used, uint64_t may_hold, uint32_t least_pct)
{
    return slots > may_hold && slots >= (used < SEVERAL ? MIN_SLOTS : MIN_OF_SEVERAL) &&
           slots * 100 >= used * least_pct;
}

/* False: there is nothing to evict, and nobody to throttle. */
static bool decide_key(struct hg_bindwatch_verdict *sum, uint64_t may_hold)
{
    uint32_t stay = sum->slots - sum->evictable;
    uint64_t keep = may_hold > stay ? may_hold - stay : 0;

    sum->keep = keep < sum->evictable ? (uint32_t)keep : sum->evictable;
    sum->evicted = sum->evictable - sum->keep + sum->waiting;
    return sum->evicted > 0 || stay > sum->exempt;
}

/* Puts sums[at] to its place among the `count` verdicts at the beginning; what it takes the room of
   is no verdict, and has been looked at. */
static void place(struct hg_bindwatch_verdict *sums, size_t count, size_t at)
{
    struct hg_bindwatch_verdict verdict = sums[at];

    while (count > 0 && sums[count - 1].slots < verdict.slots) {
        sums[count] = sums[count - 1];
        count--;
    }
    sums[count] = verdict;
}

size_t hg_bindwatch_judge(struct hg_bindwatch *watch, const struct hg_bindwatch_conf *conf,
                          const struct hg_bindwatch_verdict **ret_verdicts, uint32_t *ret_worker)
{
    uint64_t may_hold = allowed(watch->used, conf->threshold_pct);
    bool qualified = false;
    size_t count = 0;

    for (size_t i = 0; i < watch->count; i++) {
        struct hg_bindwatch_verdict *sum = &watch->sums[i];
        if (!qualifies(sum->slots, watch->used, may_hold, conf->least_pct) ||
            sum->oldest_us < conf->dear_us)
            continue;
        qualified = true;
        if (decide_key(sum, may_hold))
            place(watch->sums, count++, i);
    }
    *ret_verdicts = watch->sums;
    *ret_worker = UINT32_MAX;
    if (!qualified && conf->evict_longest && watch->oldest_us > conf->min_age_us)
        *ret_worker = watch->oldest_worker;
    return count;
}

uint32_t hg_bindwatch_share(const struct hg_bindwatch_verdict *verdict, uint32_t evictable)
{
    if (evictable >= verdict->evictable)
        return verdict->keep;
    return (uint32_t)((uint64_t)verdict->keep * evictable / verdict->evictable);
}
