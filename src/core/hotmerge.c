// hotmerge - several sketches as one, and the keys that lead it
// SPDX-License-Identifier: BSD-3-Clause
//
// Three steps, none of which sorts the union: equal keys are joined through a table of their
// hashes; the `keep` largest are selected (quickselect), and of them the first HG_HOT_TOP, which
// alone are sorted; what is kept is copied.
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
    uint64_t count;
    uint32_t hash;
    uint32_t source; /* number of the sketch that had it first */
    uint32_t entry;  /* its number there */
    uint32_t chain;  /* next of its slot: number + 1, 0: none */
    uint64_t error;
}; /* 32 bytes */

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

/* ---- order ---- */

struct merging {
    const struct hg_hotkey *const *sketches;
    struct candidate *all;
    uint32_t count;
    uint32_t *slots, mask;
    uint64_t base; /* the minima of all sketches together */
};

static void key_of(const struct merging *merging, const struct candidate *candidate,
                   struct hg_hotkey_key *ret)
{
    struct hg_hotkey_entry entry;
    hg_hotkey_entry(merging->sketches[candidate->source], candidate->entry, &entry);
    *ret = entry.key;
}

/* Table length, then bytes, then length; never 0 for two keys of the union. */
static int compare_keys(const struct hg_hotkey_key *a, const struct hg_hotkey_key *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = a->table_len - b->table_len;
    if (order == 0 && len > 0)
        order = memcmp(a->at, b->at, len);
    return order != 0 ? order : a->len - b->len;
}

/* The order of selection: the largest first, equal counts by hash, which is at hand. */
static inline bool precedes(const struct merging *merging, const struct candidate *a,
                            const struct candidate *b)
{
    struct hg_hotkey_key left, right;
    if (HG_LIKELY(a->count != b->count))
        return a->count > b->count;
    if (HG_LIKELY(a->hash != b->hash))
        return a->hash < b->hash;
    key_of(merging, a, &left);
    key_of(merging, b, &right);
    return compare_keys(&left, &right) < 0;
}

/* The order of the head: equal counts by key, the same in every process. */
static bool leads(const struct merging *merging, const struct candidate *a,
                  const struct candidate *b)
{
    struct hg_hotkey_key left, right;
    if (a->count != b->count)
        return a->count > b->count;
    key_of(merging, a, &left);
    key_of(merging, b, &right);
    return compare_keys(&left, &right) < 0;
}

static inline void swap(struct candidate *a, struct candidate *b)
{
    struct candidate held = *a;
    *a = *b;
    *b = held;
}

/* Of three candidates at random places the middle one, so that no order of arrival makes selection
   slow. */
static struct candidate pick_pivot(const struct merging *merging, uint32_t low, uint32_t high,
                                   struct hg_prng *prng)
{
    const struct candidate *a = &merging->all[low + hg_prng_below(prng, high - low)];
    const struct candidate *b = &merging->all[low + hg_prng_below(prng, high - low)];
    const struct candidate *c = &merging->all[low + hg_prng_below(prng, high - low)];
    const struct candidate *first = precedes(merging, a, b) ? a : b;
    const struct candidate *second = first == a ? b : a;
    if (precedes(merging, c, first))
        return *first;
    return precedes(merging, c, second) ? *c : *second;
}

/* Moves the first `k` in order to the front of the first `n`; in no order among themselves.
   Quickselect (Hoare 1961). */
static void select_first(const struct merging *merging, uint32_t n, uint32_t k)
{
    struct candidate *all = merging->all;
    struct hg_prng prng = {n};
    uint32_t low = 0, high = n; /* where the border at k is still open */

    while (high - low > 1 && k > low && k < high) {
        struct candidate pivot = pick_pivot(merging, low, high, &prng);
        uint32_t left = low, right = high; /* right: one past */
        while (left < right) {
            while (precedes(merging, &all[left], &pivot))
                left++;
            while (precedes(merging, &pivot, &all[right - 1]))
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

static void sort_head(const struct merging *merging, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        for (uint32_t j = i; j > 0; j--) {
            if (!leads(merging, &merging->all[j], &merging->all[j - 1]))
                break;
            swap(&merging->all[j], &merging->all[j - 1]);
        }
    }
}

/* ---- joining ---- */

static bool same_key(const struct hg_hotkey_key *a, const struct hg_hotkey_key *b)
{
    return a->hash == b->hash && a->len == b->len && a->table_len == b->table_len &&
           (a->len == 0 || memcmp(a->at, b->at, a->len) == 0);
}

/* The candidate of the key; a new one is credited the base. */
static struct candidate *join_key(struct merging *merging, const struct hg_hotkey_key *key)
{
    uint32_t *slot = &merging->slots[key->hash & merging->mask];
    struct candidate *candidate;

    for (uint32_t i = *slot; i != 0; i = merging->all[i - 1].chain) {
        struct hg_hotkey_key other;
        candidate = &merging->all[i - 1];
        if (candidate->hash != key->hash)
            continue;
        key_of(merging, candidate, &other);
        if (same_key(&other, key))
            return candidate;
    }
    candidate = &merging->all[merging->count++];
    *candidate = (struct candidate){.count = merging->base,
                                    .error = merging->base,
                                    .hash = key->hash,
                                    .source = UINT32_MAX,
                                    .chain = *slot};
    *slot = merging->count;
    return candidate;
}

/* Adds a sketch. Every key was credited the minimum of all sketches (the base): where it is there,
   its own count and error take the place of that sketch's minimum. */
static void join_sketch(struct merging *merging, uint32_t number)
{
    const struct hg_hotkey *sketch = merging->sketches[number];
    uint64_t min = hg_hotkey_min(sketch);
    unsigned used = hg_hotkey_used(sketch);

    for (unsigned i = 0; i < used; i++) {
        struct hg_hotkey_entry entry;
        hg_hotkey_entry(sketch, i, &entry);
        struct candidate *candidate = join_key(merging, &entry.key);
        if (candidate->source == UINT32_MAX) {
            candidate->source = number;
            candidate->entry = i;
        }
        candidate->count += entry.count - min;
        candidate->error += entry.error - min; /* may wrap, and back */
    }
}

/* One sketch: nothing to join. */
static void take_sketch(struct merging *merging)
{
    unsigned used = hg_hotkey_used(merging->sketches[0]);
    for (unsigned i = 0; i < used; i++) {
        struct hg_hotkey_entry entry;
        hg_hotkey_entry(merging->sketches[0], i, &entry);
        merging->all[i] = (struct candidate){
            .count = entry.count, .error = entry.error, .hash = entry.key.hash, .entry = i};
    }
    merging->count = used;
}

static void join_all(struct merging *merging, unsigned count, void *scratch)
{
    unsigned entries = 0;

    for (unsigned i = 0; i < count; i++) {
        entries += hg_hotkey_used(merging->sketches[i]);
        merging->base += hg_hotkey_min(merging->sketches[i]);
    }
    merging->all = scratch;
    merging->count = 0;
    if (count == 1) {
        take_sketch(merging);
        return;
    }
    merging->slots = (uint32_t *)(merging->all + entries);
    merging->mask = slot_count(entries) - 1;
    if (entries > 0)
        memset(merging->slots, 0, (merging->mask + 1) * sizeof merging->slots[0]);
    for (unsigned i = 0; i < count; i++)
        join_sketch(merging, i);
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
        struct hg_hotkey_key key;

        key_of(merging, candidate, &key);
        *entry =
            (struct entry){candidate->count, candidate->error, merged->size_bytes, key.hash, *slot,
                           key.len,          key.table_len};
        *slot = (uint16_t)(i + 1);
        if (key.len > 0)
            memcpy((uint8_t *)merged + merged->size_bytes, key.at, key.len);
        merged->size_bytes += key.len;
        if (used < merging->count && merged->absent > candidate->count)
            merged->absent = candidate->count; /* what was left out is no larger */
    }
}

struct hg_hotmerge *hg_hotmerge_make(void *memory, unsigned keep,
                                     const struct hg_hotkey *const *sketches, unsigned count,
                                     void *scratch)
{
    struct hg_hotmerge *merged = memory;
    struct merging merging = {.sketches = sketches};
    uint32_t used;

    merged->total = 0;
    for (unsigned i = 0; i < count; i++)
        merged->total += hg_hotkey_total(sketches[i]);
    if (count > 0)
        join_all(&merging, count, scratch);
    used = merging.count < keep ? merging.count : keep;
    select_first(&merging, merging.count, used);
    select_first(&merging, used, HG_HOT_TOP);
    sort_head(&merging, used < HG_HOT_TOP ? used : HG_HOT_TOP);
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

    for (uint32_t i = slots[key->hash & merged->mask]; i != 0; i = merged->entries[i - 1].chain) {
        if (merged->entries[i - 1].hash != key->hash)
            continue;
        struct hg_hotkey_entry entry;
        hg_hotmerge_entry(merged, i - 1, &entry);
        if (same_key(&entry.key, key)) {
            *ret = entry;
            return true;
        }
    }
    return false;
}
