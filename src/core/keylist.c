// keylist - the throttled keys of a tenant as one worker sees them
// SPDX-License-Identifier: BSD-3-Clause
//
//   list: header | filter bits | entry 0 .. count - 1 | slots | keys, one after the other
//
// Almost every key that is looked up is not listed: one bit of a filter, of 32 bits for each listed
// key, answers for all but a few of them.
#include "core/keylist.h"

#include <string.h>

#define FILTER_BITS 32 /* for each key */

struct entry {
    uint32_t hash, key_at; /* bytes from the list's begin */
    uint16_t chain;        /* next of its slot: number + 1, 0: none */
    uint8_t len, table_len;
    uint8_t percent;
    uint32_t share, carry; /* parts of 2^32; carry: refusal that is due */
    uint64_t passed, refused;
};

struct hg_keylist {
    uint32_t filter_mask; /* bits - 1 */
    uint32_t slot_mask;
    uint32_t count;
    uint32_t entries_at, slots_at; /* bytes from the list's begin */
    bool step;
    uint64_t filter[]; /* at least one word */
};

static uint32_t power_of_two(uint32_t least, uint32_t from)
{
    while (from < least)
        from *= 2;
    return from;
}

static uint32_t filter_bits(unsigned count)
{
    return power_of_two(count * FILTER_BITS, 64);
}

static uint32_t slot_count(unsigned count)
{
    return power_of_two(2 * count, 4);
}

static struct entry *entries_of(const struct hg_keylist *list)
{
    return (struct entry *)((uint8_t *)(uintptr_t)list + list->entries_at);
}

static uint16_t *slots_of(const struct hg_keylist *list)
{
    return (uint16_t *)((uint8_t *)(uintptr_t)list + list->slots_at);
}

/* The filter takes other bits of the hash than the slots. */
static inline uint32_t filter_bit(const struct hg_keylist *list, uint32_t hash)
{
    return (hash >> 15 | hash << 17) & list->filter_mask;
}

size_t hg_keylist_bytes(const struct hg_keythrottle *throttle)
{
    size_t bytes = sizeof(struct hg_keylist) + filter_bits(throttle->count) / 8 +
                   throttle->count * sizeof(struct entry) +
                   slot_count(throttle->count) * sizeof(uint16_t);
    for (unsigned i = 0; i < throttle->count; i++)
        bytes += throttle->keys[i].key.len;
    return bytes;
}

/* Where the error diffusion of a key begins: anywhere, evenly spread. */
static uint32_t first_carry(uint32_t hash, uint32_t start)
{
    struct hg_prng prng = {(uint64_t)hash << 32 | start};
    return (uint32_t)(hg_prng_next(&prng) >> 32);
}

struct hg_keylist *hg_keylist_make(void *memory, const struct hg_keythrottle *throttle,
                                   enum hg_hotkey_control control, uint32_t start)
{
    struct hg_keylist *list = memory;
    uint32_t bits = filter_bits(throttle->count), slots = slot_count(throttle->count);
    uint32_t key_at;

    list->filter_mask = bits - 1;
    list->slot_mask = slots - 1;
    list->count = throttle->count;
    list->entries_at = (uint32_t)sizeof *list + bits / 8;
    list->slots_at = list->entries_at + list->count * (uint32_t)sizeof(struct entry);
    list->step = control == HG_HOTKEY_STEP;
    memset(list->filter, 0, bits / 8);
    memset(slots_of(list), 0, slots * sizeof(uint16_t));
    key_at = list->slots_at + slots * (uint32_t)sizeof(uint16_t);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct hg_keythrottle_key *listed = &throttle->keys[i];
        uint16_t *slot = &slots_of(list)[listed->key.hash & list->slot_mask];
        uint32_t bit = filter_bit(list, listed->key.hash);

        entries_of(list)[i] = (struct entry){
            .hash = listed->key.hash,
            .key_at = key_at,
            .chain = *slot,
            .len = listed->key.len,
            .table_len = listed->key.table_len,
            .percent = listed->percent,
            .share = listed->share,
            .carry = first_carry(listed->key.hash, start),
        };
        *slot = (uint16_t)(i + 1);
        list->filter[bit / 64] |= (uint64_t)1 << bit % 64;
        memcpy((uint8_t *)memory + key_at, listed->bytes, listed->key.len);
        key_at += listed->key.len;
    }
    return list;
}

static void key_of(const struct hg_keylist *list, const struct entry *entry,
                   struct hg_hotkey_key *ret)
{
    *ret = (struct hg_hotkey_key){(const uint8_t *)list + entry->key_at, entry->hash, entry->len,
                                  entry->table_len};
}

int hg_keylist_find(const struct hg_keylist *list, const struct hg_hotkey_key *key)
{
    uint32_t bit = filter_bit(list, key->hash);
    const struct entry *entries;

    if (HG_LIKELY((list->filter[bit / 64] >> bit % 64 & 1) == 0))
        return -1;
    entries = entries_of(list);
    for (unsigned i = slots_of(list)[key->hash & list->slot_mask]; i != 0;) {
        const struct entry *entry = &entries[i - 1];
        if (entry->hash == key->hash && entry->len == key->len &&
            entry->table_len == key->table_len &&
            (key->len == 0 ||
             memcmp((const uint8_t *)list + entry->key_at, key->at, key->len) == 0))
            return (int)(i - 1);
        i = entry->chain;
    }
    return -1;
}

unsigned hg_keylist_percent(const struct hg_keylist *list, int index)
{
    return entries_of(list)[index].percent;
}

static bool draw(struct entry *entry, bool step, struct hg_prng *prng)
{
    uint32_t before = entry->carry;

    if (step)
        return hg_prng_below(prng, 100) < entry->percent;
    if (entry->share == UINT32_MAX)
        return true;
    entry->carry += entry->share;
    return entry->carry < before; /* a whole one is due */
}

bool hg_keylist_refuses(struct hg_keylist *list, int index, struct hg_prng *prng)
{
    struct entry *entry = &entries_of(list)[index];
    bool refused = draw(entry, list->step, prng);

    if (refused)
        entry->refused++;
    else
        entry->passed++;
    return refused;
}

void hg_keylist_forgive(struct hg_keylist *list, int index)
{
    struct entry *entry = &entries_of(list)[index];
    entry->refused--;
    entry->passed++;
}

void hg_keylist_report(const struct hg_keylist *list, struct hg_keythrottle *throttle)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct entry *entry = &entries_of(list)[i];
        struct hg_hotkey_key key;
        if (entry->passed + entry->refused == 0)
            continue;
        key_of(list, entry, &key);
        hg_keythrottle_tell(throttle, &key, entry->passed, entry->refused);
    }
}
