// hotkey - which keys come most often: a space-saving sketch of bounded size
// SPDX-License-Identifier: BSD-3-Clause
//
//   slots[hash & mask] ──► counter ──► counter         (chains, linked by number)
//                             │ bucket
//   ends ◄──► bucket 7 ◄──► bucket 9 ◄──► bucket 412 ◄──► ends
//              │ first
//              c ◄──► c ◄──► c                         (a ring, the oldest first)
//
// Buckets stand in a ring, sorted by count; `ends` closes it with a count that nothing reaches, so
// that neither end is a special case. There are never more buckets than counters in use. A counter
// that rises by one moves to the next bucket, or takes its bucket along when it is alone in it. The
// victim of an eviction is the oldest of the lowest bucket: whoever has waited longest there for a
// further request. Links are 16 bits wide, and what an update touches of a counter is apart from
// its key's bytes: 16 bytes a counter, so that all of them stay in the first-level cache.
#include "core/hotkey.h"

#include <string.h>

struct counter {
    uint32_t hash;
    uint16_t chain;      /* next of its slot: number + 1, 0: none */
    uint16_t bucket;     /* whose count is the counter's */
    uint16_t prev, next; /* ring of its bucket */
    uint8_t len, table_len;
};

struct name {
    uint64_t error;
    uint8_t bytes[HG_HOTKEY_INLINE_BYTES]; /* longer ones lie in the room */
};

struct bucket {
    uint64_t count;
    uint16_t below, above;
    uint16_t first; /* when in use: its oldest counter; else the next free bucket */
};

struct hg_hotkey {
    struct counter *counters;
    struct bucket *buckets;
    uint16_t *slots;
    struct name *names;
    uint8_t *room;
    uint64_t total;
    uint32_t mask;
    uint16_t limit, used;
    uint16_t fresh; /* buckets that were never used begin here */
    uint16_t spare; /* first free bucket, `ends`: none */
};

#define ROOM_STRIDE 256 /* any length a byte can say */

static uint32_t slot_count(unsigned counters)
{
    uint32_t n = 32;
    while (n < 4 * counters)
        n *= 2;
    return n;
}

static size_t head_bytes(void)
{
    return (sizeof(struct hg_hotkey) + HG_CACHE_LINE - 1) / HG_CACHE_LINE * HG_CACHE_LINE;
}

size_t hg_hotkey_bytes(unsigned counters)
{
    return head_bytes() + counters * (sizeof(struct counter) + sizeof(struct name)) +
           (counters + 1) * sizeof(struct bucket) + slot_count(counters) * sizeof(uint16_t);
}

size_t hg_hotkey_room_bytes(unsigned counters)
{
    return (size_t)counters * ROOM_STRIDE;
}

struct hg_hotkey *hg_hotkey_init(void *memory, unsigned counters)
{
    struct hg_hotkey *sketch = memory;
    uint8_t *at = (uint8_t *)memory + head_bytes();

    /* Those of 8-byte alignment first. */
    sketch->buckets = (struct bucket *)at;
    at += (counters + 1) * sizeof(struct bucket);
    sketch->names = (struct name *)at;
    at += counters * sizeof(struct name);
    sketch->counters = (struct counter *)at;
    at += counters * sizeof(struct counter);
    sketch->slots = (uint16_t *)at;
    sketch->room = NULL;
    sketch->mask = slot_count(counters) - 1;
    sketch->limit = (uint16_t)counters;
    hg_hotkey_clear(sketch);
    return sketch;
}

void hg_hotkey_clear(struct hg_hotkey *sketch)
{
    uint16_t ends = sketch->limit;
    sketch->total = 0;
    sketch->used = 0;
    sketch->fresh = 0;
    sketch->spare = ends;
    sketch->buckets[ends] = (struct bucket){UINT64_MAX, ends, ends, ends};
    memset(sketch->slots, 0, (sketch->mask + 1) * sizeof sketch->slots[0]);
}

void hg_hotkey_give_room(struct hg_hotkey *sketch, void *room)
{
    sketch->room = room;
}

void *hg_hotkey_room(const struct hg_hotkey *sketch)
{
    return sketch->room;
}

/* ---- buckets ---- */

/* Rare, and kept out of the way of what is frequent. */
static __attribute__((noinline)) uint16_t add_bucket(struct hg_hotkey *sketch, uint64_t count,
                                                     uint16_t above)
{
    uint16_t b = sketch->spare;
    uint16_t below = sketch->buckets[above].below;

    if (b != sketch->limit)
        sketch->spare = sketch->buckets[b].first;
    else
        b = sketch->fresh++;
    sketch->buckets[b] = (struct bucket){count, below, above, sketch->limit};
    sketch->buckets[below].above = b;
    sketch->buckets[above].below = b;
    return b;
}

static __attribute__((noinline)) void drop_bucket(struct hg_hotkey *sketch, uint16_t b)
{
    struct bucket *bucket = &sketch->buckets[b];
    sketch->buckets[bucket->below].above = bucket->above;
    sketch->buckets[bucket->above].below = bucket->below;
    bucket->first = sketch->spare;
    sketch->spare = b;
}

/* As the youngest of the bucket. */
static inline void join(struct hg_hotkey *sketch, uint16_t c, uint16_t b)
{
    struct counter *counter = &sketch->counters[c];
    struct bucket *bucket = &sketch->buckets[b];

    counter->bucket = b;
    if (bucket->first == sketch->limit) {
        bucket->first = counter->prev = counter->next = c;
        return;
    }
    struct counter *first = &sketch->counters[bucket->first];
    counter->next = bucket->first;
    counter->prev = first->prev;
    sketch->counters[first->prev].next = c;
    first->prev = c;
}

/* The bucket goes when nobody is left in it. */
static inline void leave(struct hg_hotkey *sketch, uint16_t c)
{
    struct counter *counter = &sketch->counters[c];
    struct bucket *bucket = &sketch->buckets[counter->bucket];

    if (counter->next == c) {
        drop_bucket(sketch, counter->bucket);
        return;
    }
    sketch->counters[counter->prev].next = counter->next;
    sketch->counters[counter->next].prev = counter->prev;
    if (bucket->first == c)
        bucket->first = counter->next;
}

/* The first bucket above `b` that holds so much or more. */
static inline uint16_t bucket_from(const struct hg_hotkey *sketch, uint16_t b, uint64_t count)
{
    do
        b = sketch->buckets[b].above;
    while (sketch->buckets[b].count < count);
    return b;
}

static inline void raise_by(struct hg_hotkey *sketch, uint16_t c, uint64_t n)
{
    struct counter *counter = &sketch->counters[c];
    uint16_t b = counter->bucket;
    struct bucket *bucket = &sketch->buckets[b];
    uint64_t count = bucket->count + n;
    uint16_t above = bucket_from(sketch, b, count);

    bool found = sketch->buckets[above].count == count;
    if (!found && counter->next == c && bucket->above == above) {
        bucket->count = count; /* alone, and nobody is overtaken */
        return;
    }
    leave(sketch, c); /* first: its bucket may be the one that is needed */
    if (!found)
        above = add_bucket(sketch, count, above);
    join(sketch, c, above);
}

/* ---- keys ---- */

static inline uint8_t *bytes_of(const struct hg_hotkey *sketch, uint16_t c)
{
    return sketch->counters[c].len > HG_HOTKEY_INLINE_BYTES ? sketch->room + (size_t)c * ROOM_STRIDE
                                                            : sketch->names[c].bytes;
}

/* memcpy without a call for the usual lengths: two pieces that may overlap. */
static inline void copy_key(uint8_t *to, const uint8_t *from, unsigned len)
{
    if (len - 16 <= 16) {
        memcpy(to, from, 16);
        memcpy(to + len - 16, from + len - 16, 16);
    } else if (len - 8 <= 8) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len > 0) {
        memcpy(to, from, len);
    }
}

/* memcmp == 0, likewise. */
static inline bool same_bytes(const uint8_t *a, const uint8_t *b, unsigned len)
{
    uint64_t x[4], y[4];

    if (len - 16 <= 16) {
        memcpy(x, a, 16);
        memcpy(y, b, 16);
        memcpy(x + 2, a + len - 16, 16);
        memcpy(y + 2, b + len - 16, 16);
        return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
    }
    return len == 0 || memcmp(a, b, len) == 0;
}

/* The counter of the key, `limit` when it has none. */
static inline uint16_t counter_of(const struct hg_hotkey *sketch, const struct hg_hotkey_key *key)
{
    for (unsigned i = sketch->slots[key->hash & sketch->mask]; i != 0;) {
        const struct counter *counter = &sketch->counters[i - 1];
        if (counter->hash == key->hash && counter->len == key->len &&
            counter->table_len == key->table_len &&
            same_bytes(bytes_of(sketch, (uint16_t)(i - 1)), key->at, key->len))
            return (uint16_t)(i - 1);
        i = counter->chain;
    }
    return sketch->limit;
}

static inline void unlink_key(struct hg_hotkey *sketch, uint16_t c)
{
    const struct counter *counter = &sketch->counters[c];
    uint16_t *link = &sketch->slots[counter->hash & sketch->mask];

    while (*link != c + 1)
        link = &sketch->counters[*link - 1].chain;
    *link = counter->chain;
}

static inline void set_key(struct hg_hotkey *sketch, uint16_t c, const struct hg_hotkey_key *key,
                           uint64_t error)
{
    struct counter *counter = &sketch->counters[c];
    uint16_t *slot = &sketch->slots[key->hash & sketch->mask];

    counter->hash = key->hash;
    counter->len = key->len;
    counter->table_len = key->table_len;
    counter->chain = *slot;
    *slot = (uint16_t)(c + 1);
    sketch->names[c].error = error;
    copy_key(bytes_of(sketch, c), key->at, key->len);
}

static __attribute__((noinline)) void take_counter(struct hg_hotkey *sketch,
                                                   const struct hg_hotkey_key *key, uint64_t n)
{
    uint16_t c = sketch->used++;
    uint16_t b = bucket_from(sketch, sketch->limit, n);

    set_key(sketch, c, key, 0);
    if (sketch->buckets[b].count != n)
        b = add_bucket(sketch, n, b);
    join(sketch, c, b);
}

void hg_hotkey_expect(const struct hg_hotkey *sketch, uint32_t hash)
{
    unsigned i = sketch->slots[hash & sketch->mask];
    /* A key that is not there takes over the oldest of the lowest, about which nothing is known
       before the slot has been looked at; by then it is told. */
    if (i == 0)
        return;
    __builtin_prefetch(&sketch->counters[i - 1], 1);
    __builtin_prefetch(&sketch->names[i - 1]);
}

bool hg_hotkey_tell(struct hg_hotkey *sketch, const struct hg_hotkey_key *key, uint64_t n)
{
    uint16_t c;

    if (HG_UNLIKELY(key->len > HG_HOTKEY_INLINE_BYTES && sketch->room == NULL))
        return false;
    sketch->total += n;
    c = counter_of(sketch, key);
    if (c == sketch->limit) {
        if (HG_UNLIKELY(sketch->used < sketch->limit)) {
            take_counter(sketch, key, n);
            return true;
        }
        const struct bucket *lowest = &sketch->buckets[sketch->buckets[sketch->limit].above];
        c = lowest->first;
        unlink_key(sketch, c);
        set_key(sketch, c, key, lowest->count);
    }
    raise_by(sketch, c, n);
    return true;
}

/* ---- reading ---- */

unsigned hg_hotkey_counters(const struct hg_hotkey *sketch)
{
    return sketch->limit;
}

unsigned hg_hotkey_used(const struct hg_hotkey *sketch)
{
    return sketch->used;
}

uint64_t hg_hotkey_total(const struct hg_hotkey *sketch)
{
    return sketch->total;
}

uint64_t hg_hotkey_min(const struct hg_hotkey *sketch)
{
    if (sketch->used < sketch->limit)
        return 0;
    return sketch->buckets[sketch->buckets[sketch->limit].above].count;
}

void hg_hotkey_entry(const struct hg_hotkey *sketch, unsigned i, struct hg_hotkey_entry *ret)
{
    const struct counter *counter = &sketch->counters[i];

    ret->key.at = bytes_of(sketch, (uint16_t)i);
    ret->key.hash = counter->hash;
    ret->key.len = counter->len;
    ret->key.table_len = counter->table_len;
    ret->count = sketch->buckets[counter->bucket].count;
    ret->error = sketch->names[i].error;
}

bool hg_hotkey_find(const struct hg_hotkey *sketch, const struct hg_hotkey_key *key,
                    struct hg_hotkey_entry *ret)
{
    uint16_t c;

    if (key->len > HG_HOTKEY_INLINE_BYTES && sketch->room == NULL)
        return false;
    c = counter_of(sketch, key);
    if (c == sketch->limit)
        return false;
    hg_hotkey_entry(sketch, c, ret);
    return true;
}
