// hotmerge - several sketches as one, and the keys that lead it
// SPDX-License-Identifier: BSD-3-Clause
//
// Three steps, none of which sorts the union: equal keys are joined through a table of their
// hashes; the `keep` largest are selected, and of them the first HG_HOT_TOP, which alone are
// sorted; what is kept is copied.
//
//   result: header | entry 0 .. used - 1 | slots | keys, one after the other
#include "core/hotmerge.h"

#include <string.h>

#include "base/prng.h"

#define KEY_STRIDE 256 /* any length a byte can say */

struct entry {
    uint64_t count, error;
    uint32_t key_at; /* bytes from the result's begin */
    uint32_t hash;
    uint16_t chain; /* next of its slot: number + 1, 0: none */
    uint8_t len, table_len;
};

struct hg_hotmerge {
    uint64_t total, absent;
    uint32_t size_bytes, mask;
    uint32_t slots_at, used;
    struct entry entries[];
};

/* A key of the union, while it is merged. */
struct candidate {
    uint64_t count, error;
    const uint8_t *at; /* the key's bytes, in a sketch */
    uint32_t hash;
    uint32_t chain; /* next of its slot: number + 1, 0: none */
    uint8_t len, table_len;
};

/* Slots for so many keys: a power of two. */
static uint32_t slot_count(unsigned keys)
{
    uint32_t n = 16;
    while (n < 2 * keys)
        n *= 2;
    return n;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

size_t hg_hotmerge_bytes(unsigned keep)
{
    return sizeof(struct hg_hotmerge) + keep * (sizeof(struct entry) + KEY_STRIDE) +
           aligned(slot_count(keep) * sizeof(uint16_t));
}

size_t hg_hotmerge_size(const struct hg_hotmerge *merged)
{
    return merged->size_bytes;
}

size_t hg_hotmerge_scratch_bytes(unsigned entries)
{
    return entries * sizeof(struct candidate) + slot_count(entries) * sizeof(uint32_t);
}

struct merging {
    struct candidate *all;
    uint32_t count;
    uint32_t *slots, mask;
    uint64_t base; /* the minima of all sketches together */
};

/* ---- order ---- */

/* Table length, then bytes, then length; 0 for equal keys only. */
static int compare_keys(const struct candidate *a, const struct candidate *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = a->table_len - b->table_len;
    if (order == 0 && len > 0)
        order = memcmp(a->at, b->at, len);
    return order != 0 ? order : a->len - b->len;
}

/* The order of selection: the largest first, equal counts by hash, which is at hand. */
static inline bool precedes(const struct candidate *a, const struct candidate *b)
{
    if (HG_LIKELY(a->count != b->count))
        return a->count > b->count;
    if (HG_LIKELY(a->hash != b->hash))
        return a->hash < b->hash;
    return compare_keys(a, b) < 0;
}

/* The order of the head: equal counts by key, the same in every process. */
static bool leads(const struct candidate *a, const struct candidate *b)
{
    return a->count != b->count ? a->count > b->count : compare_keys(a, b) < 0;
}

static inline void swap(struct candidate *a, struct candidate *b)
{
    struct candidate held = *a;
    *a = *b;
    *b = held;
}

/* Of three candidates at random places the middle one, so that no order of arrival makes selection
   slow. */
static struct candidate pick_pivot(const struct candidate *all, uint32_t low, uint32_t high,
                                   struct hg_prng *prng)
{
    const struct candidate *a = &all[low + hg_prng_below(prng, high - low)];
    const struct candidate *b = &all[low + hg_prng_below(prng, high - low)];
    const struct candidate *c = &all[low + hg_prng_below(prng, high - low)];
    const struct candidate *first = precedes(a, b) ? a : b;
    const struct candidate *second = first == a ? b : a;
    if (precedes(c, first))
        return *first;
    return precedes(c, second) ? *c : *second;
}

/* Moves the first `k` in order to the front of the first `n`; in no order among themselves.
   Quickselect (Hoare 1961). */
static void select_first(struct candidate *all, uint32_t n, uint32_t k)
{
    struct hg_prng prng = {n};
    uint32_t low = 0, high = n; /* where the border at k is still open */

    while (k > low && k < high) {
        struct candidate pivot = pick_pivot(all, low, high, &prng);
        uint32_t left = low, right = high; /* right: one past */
        while (left < right) {
            while (precedes(&all[left], &pivot))
                left++;
            while (precedes(&pivot, &all[right - 1]))
                right--;
            if (left < right)
                swap(&all[left++], &all[--right]);
        }
        /* Before `right` nothing comes after the pivot, from `left` on nothing before it. */
        if (k < right)
            high = right;
        else if (k > left)
            low = left;
        else
            return;
    }
}

/* Lets all[i] find its place before those that come after it in the order. */
static void insert(struct candidate *all, uint32_t i,
                   bool (*before)(const struct candidate *, const struct candidate *))
{
    for (; i > 0 && before(&all[i], &all[i - 1]); i--)
        swap(&all[i], &all[i - 1]);
}

/* Moves the first HG_HOT_TOP to the front, in order. All but few of the others are passed over
   with one look at their count. */
static void select_head(struct candidate *all, uint32_t n)
{
    uint32_t head = n < HG_HOT_TOP ? n : HG_HOT_TOP;

    for (uint32_t i = 1; i < head; i++)
        insert(all, i, precedes);
    for (uint32_t i = head; i < n; i++) {
        if (HG_LIKELY(!precedes(&all[i], &all[head - 1])))
            continue;
        swap(&all[i], &all[head - 1]);
        insert(all, head - 1, precedes);
    }
    for (uint32_t i = 1; i < head; i++)
        insert(all, i, leads);
}

/* ---- joining ---- */

/* The candidate of the key; a new one is credited the base. */
static struct candidate *join_key(struct merging *merging, const struct hg_hotkey_key *key)
{
    uint32_t *slot = &merging->slots[key->hash & merging->mask];
    struct candidate *candidate;

    for (uint32_t i = *slot; i != 0; i = merging->all[i - 1].chain) {
        candidate = &merging->all[i - 1];
        if (candidate->hash == key->hash && candidate->len == key->len &&
            candidate->table_len == key->table_len &&
            (key->len == 0 || memcmp(candidate->at, key->at, key->len) == 0))
            return candidate;
    }
    candidate = &merging->all[merging->count++];
    *candidate = (struct candidate){merging->base, merging->base, key->at,       key->hash,
                                    *slot,         key->len,      key->table_len};
    *slot = merging->count;
    return candidate;
}

/* Adds a sketch. Every key was credited the minimum of all sketches (the base): where it is there,
   its own count and error take the place of that sketch's minimum. */
static void join_sketch(struct merging *merging, const struct hg_hotkey *sketch)
{
    uint64_t min = hg_hotkey_min(sketch);
    unsigned used = hg_hotkey_used(sketch);

    for (unsigned i = 0; i < used; i++) {
        struct hg_hotkey_entry entry;
        hg_hotkey_entry(sketch, i, &entry);
        struct candidate *candidate = join_key(merging, &entry.key);
        candidate->count += entry.count - min;
        candidate->error += entry.error - min; /* may wrap, and back */
    }
}

/* One sketch: nothing to join. */
static void take_sketch(struct merging *merging, const struct hg_hotkey *sketch)
{
    merging->count = hg_hotkey_used(sketch);
    for (unsigned i = 0; i < merging->count; i++) {
        struct hg_hotkey_entry entry;
        hg_hotkey_entry(sketch, i, &entry);
        merging->all[i] =
            (struct candidate){entry.count, entry.error,   entry.key.at,       entry.key.hash,
                               0,           entry.key.len, entry.key.table_len};
    }
}

static void join_all(struct merging *merging, const struct hg_hotkey *const *sketches,
                     unsigned count, void *scratch)
{
    unsigned entries = 0;

    for (unsigned i = 0; i < count; i++) {
        entries += hg_hotkey_used(sketches[i]);
        merging->base += hg_hotkey_min(sketches[i]);
    }
    merging->all = scratch;
    merging->count = 0;
    if (count == 1) {
        take_sketch(merging, sketches[0]);
        return;
    }
    merging->slots = (uint32_t *)(merging->all + entries);
    merging->mask = slot_count(entries) - 1;
    if (entries > 0)
        memset(merging->slots, 0, (merging->mask + 1) * sizeof merging->slots[0]);
    for (unsigned i = 0; i < count; i++)
        join_sketch(merging, sketches[i]);
}

/* ---- the result ---- */

static uint16_t *slots_of(const struct hg_hotmerge *merged)
{
    return (uint16_t *)((uint8_t *)(uintptr_t)merged + merged->slots_at);
}

static void keep_first(struct hg_hotmerge *merged, const struct merging *merging, uint32_t used)
{
    uint16_t *slots;

    merged->used = used;
    merged->absent = used < merging->count ? UINT64_MAX : merging->base;
    merged->mask = slot_count(used) - 1;
    merged->slots_at = (uint32_t)(sizeof *merged + used * sizeof merged->entries[0]);
    merged->size_bytes =
        (uint32_t)(merged->slots_at + aligned((merged->mask + 1) * sizeof(uint16_t)));
    slots = slots_of(merged);
    memset(slots, 0, (merged->mask + 1) * sizeof slots[0]);
    for (uint32_t i = 0; i < used; i++) {
        const struct candidate *candidate = &merging->all[i];
        struct entry *entry = &merged->entries[i];
        uint16_t *slot = &slots[candidate->hash & merged->mask];

        *entry = (struct entry){
            candidate->count, candidate->error,    merged->size_bytes, candidate->hash, *slot,
            candidate->len,   candidate->table_len};
        *slot = (uint16_t)(i + 1);
        if (candidate->len > 0)
            memcpy((uint8_t *)merged + merged->size_bytes, candidate->at, candidate->len);
        merged->size_bytes += candidate->len;
        if (used < merging->count && merged->absent > candidate->count)
            merged->absent = candidate->count; /* what was left out is no larger */
    }
}

struct hg_hotmerge *hg_hotmerge_make(void *memory, unsigned keep,
                                     const struct hg_hotkey *const *sketches, unsigned count,
                                     void *scratch)
{
    struct hg_hotmerge *merged = memory;
    struct merging merging = {0};
    uint32_t used;

    merged->total = 0;
    for (unsigned i = 0; i < count; i++)
        merged->total += hg_hotkey_total(sketches[i]);
    if (count > 0)
        join_all(&merging, sketches, count, scratch);
    used = merging.count < keep ? merging.count : keep;
    select_first(merging.all, merging.count, used);
    select_head(merging.all, used);
    keep_first(merged, &merging, used);
    return merged;
}

/* ---- reading ---- */

uint64_t hg_hotmerge_absent(const struct hg_hotmerge *merged)
{
    return merged->absent;
}

unsigned hg_hotmerge_used(const struct hg_hotmerge *merged)
{
    return merged->used;
}

uint64_t hg_hotmerge_total(const struct hg_hotmerge *merged)
{
    return merged->total;
}

void hg_hotmerge_entry(const struct hg_hotmerge *merged, unsigned i, struct hg_hotkey_entry *ret)
{
    const struct entry *entry = &merged->entries[i];
    ret->key.at = (const uint8_t *)merged + entry->key_at;
    ret->key.hash = entry->hash;
    ret->key.len = entry->len;
    ret->key.table_len = entry->table_len;
    ret->count = entry->count;
    ret->error = entry->error;
}

bool hg_hotmerge_find(const struct hg_hotmerge *merged, const struct hg_hotkey_key *key,
                      struct hg_hotkey_entry *ret)
{
    const uint16_t *slots = slots_of(merged);
    struct hg_hotkey_entry entry;

    for (uint32_t i = slots[key->hash & merged->mask]; i != 0; i = merged->entries[i - 1].chain) {
        if (merged->entries[i - 1].hash != key->hash)
            continue;
        hg_hotmerge_entry(merged, i - 1, &entry);
        if (entry.key.len == key->len && entry.key.table_len == key->table_len &&
            (key->len == 0 || memcmp(entry.key.at, key->at, key->len) == 0)) {
            *ret = entry;
            return true;
        }
    }
    return false;
}
