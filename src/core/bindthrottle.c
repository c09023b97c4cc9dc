// bindthrottle - keys that were evicted: one request in X is let through
// SPDX-License-Identifier: BSD-3-Clause
//
// Entries lie in an array; buckets by hash are chains of indices + 1, and so is the free list.
#include "core/bindthrottle.h"

/* ---- the table ---- */

/* A bucket costs 2 bytes, an entry hundreds: with so many, few requests for other keys meet one. */
#define BUCKETS_PER_ENTRY 4

static size_t bucket_bytes(uint32_t capacity)
{
    return capacity * BUCKETS_PER_ENTRY * sizeof(uint16_t);
}

_Static_assert(BUCKETS_PER_ENTRY * sizeof(uint16_t) % _Alignof(struct hg_bindthrottle_entry) == 0,
               "entries lie behind the buckets");

size_t hg_bindthrottle_bytes(uint32_t capacity)
{
    return sizeof(struct hg_bindthrottle) + bucket_bytes(capacity) +
           capacity * sizeof(struct hg_bindthrottle_entry);
}

struct hg_bindthrottle *hg_bindthrottle_init(void *memory, uint32_t capacity)
{
    struct hg_bindthrottle *table = memory;

    memset(memory, 0, hg_bindthrottle_bytes(capacity));
    table->capacity = capacity;
    table->mask = capacity * BUCKETS_PER_ENTRY - 1;
    table->buckets = (uint16_t *)(table + 1);
    table->entries = (void *)((uint8_t *)(table + 1) + bucket_bytes(capacity));
    for (uint32_t i = capacity; i > 0; i--) {
        table->entries[i - 1].next = table->free;
        table->free = (uint16_t)i;
    }
    return table;
}

static uint16_t *bucket_of(const struct hg_bindthrottle *table, uint32_t hash)
{
    return &table->buckets[hash & table->mask];
}

static size_t kept(size_t len)
{
    return len < HG_BINDTHROTTLE_KEY_MAX ? len : HG_BINDTHROTTLE_KEY_MAX;
}

bool hg_bindthrottle_same(const struct hg_bindthrottle_key *a, const struct hg_bindthrottle_key *b)
{
    return a->hash == b->hash && a->type == b->type && a->table_len == b->table_len &&
           a->bytes.len == b->bytes.len &&
           (a->bytes.len == 0 || memcmp(a->bytes.at, b->bytes.at, kept(a->bytes.len)) == 0);
}

static bool holds(const struct hg_bindthrottle_entry *entry, const struct hg_bindthrottle_key *key)
{
    size_t len = key->bytes.len;

    return entry->type == key->type && entry->table_len == key->table_len &&
           entry->key_len == len && (len == 0 || memcmp(entry->key, key->bytes.at, kept(len)) == 0);
}

static inline struct hg_bindthrottle_entry *find(const struct hg_bindthrottle *table,
                                                 const struct hg_bindthrottle_key *key)
{
    for (uint16_t i = *bucket_of(table, key->hash); HG_UNLIKELY(i != 0);) {
        struct hg_bindthrottle_entry *entry = &table->entries[i - 1];
        if (entry->hash == key->hash && holds(entry, key))
            return entry;
        i = entry->next;
    }
    return NULL;
}

struct hg_bindthrottle_entry *hg_bindthrottle_find(struct hg_bindthrottle *table,
                                                   const struct hg_bindthrottle_key *key)
{
    return find(table, key);
}

struct hg_bindthrottle_key hg_bindthrottle_key_of(const struct hg_bindthrottle_entry *entry)
{
    return (struct hg_bindthrottle_key){
        .type = entry->type,
        .table_len = entry->table_len,
        .hash = entry->hash,
        .bytes = hg_span(entry->key, kept(entry->key_len)),
    };
}

/* Puts a free entry into its bucket. There is one. */
static struct hg_bindthrottle_entry *link_new(struct hg_bindthrottle *table, uint32_t hash)
{
    uint16_t index = table->free, *bucket = bucket_of(table, hash);
    struct hg_bindthrottle_entry *entry = &table->entries[index - 1];

    table->free = entry->next;
    entry->next = *bucket;
    *bucket = index;
    table->count++;
    return entry;
}

static void remove_entry(struct hg_bindthrottle *table, struct hg_bindthrottle_entry *entry)
{
    uint16_t index = (uint16_t)(entry - table->entries + 1);
    uint16_t *link = bucket_of(table, entry->hash);

    while (*link != index)
        link = &table->entries[*link - 1].next;
    *link = entry->next;
    entry->used = false;
    entry->next = table->free;
    table->free = index;
    table->count--;
}

void hg_bindthrottle_move(struct hg_bindthrottle *to, struct hg_bindthrottle *from)
{
    for (uint32_t i = 0; i < from->capacity; i++) {
        struct hg_bindthrottle_entry *entry = &from->entries[i];
        if (!entry->used)
            continue;
        struct hg_bindthrottle_entry *moved = link_new(to, entry->hash);
        uint16_t next = moved->next;
        *moved = *entry;
        moved->next = next;
    }
    hg_bindthrottle_init(from, from->capacity);
}

/* ---- X ---- */

static double capped(double x)
{
    return x < HG_BINDTHROTTLE_MAX ? x : HG_BINDTHROTTLE_MAX;
}

/* Sums of many small steps of time are not exact: so much above a whole number is that number. */
#define ROUNDING 1e-7

static bool is_over(double x)
{
    return x <= 1 + ROUNDING;
}

static uint32_t in_force(double x)
{
    if (is_over(x))
        return 1; /* it may be far below 0, too */
    double least = x - ROUNDING;
    uint32_t whole = (uint32_t)least; /* at most the cap */
    return whole + (least > whole);
}

static double x_at(const struct hg_bindthrottle_entry *entry, double decr_per_sec, uint64_t now_us)
{
    if (now_us <= entry->decayed_us || !(decr_per_sec > 0))
        return entry->x;
    return entry->x - (double)(now_us - entry->decayed_us) * decr_per_sec / 1e6;
}

uint32_t hg_bindthrottle_x(const struct hg_bindthrottle_entry *entry, double decr_per_sec,
                           uint64_t now_us)
{
    return in_force(x_at(entry, decr_per_sec, now_us));
}

/* False: the entry is over. */
static bool let_time_work(struct hg_bindthrottle_entry *entry, double decr_per_sec, uint64_t now_us)
{
    entry->x = x_at(entry, decr_per_sec, now_us);
    if (now_us > entry->decayed_us)
        entry->decayed_us = now_us;
    return !is_over(entry->x);
}

/* The one with the lowest X; of equal ones the one that was made first. */
static struct hg_bindthrottle_entry *lowest(struct hg_bindthrottle *table, double decr_per_sec,
                                            uint64_t now_us)
{
    struct hg_bindthrottle_entry *found = NULL;
    double low = 0;

    for (uint32_t i = 0; i < table->capacity; i++) {
        struct hg_bindthrottle_entry *entry = &table->entries[i];
        double x = x_at(entry, decr_per_sec, now_us);
        if (!entry->used || (found != NULL && x > low))
            continue;
        if (found == NULL || x < low || entry->made_us < found->made_us) {
            found = entry;
            low = x;
        }
    }
    return found;
}

static struct hg_bindthrottle_entry *
new_entry(struct hg_bindthrottle *table, const struct hg_bindthrottle_key *key, uint64_t now_us)
{
    struct hg_bindthrottle_entry *entry = link_new(table, key->hash);
    uint16_t next = entry->next;
    size_t len = key->bytes.len;

    *entry = (struct hg_bindthrottle_entry){
        .decayed_us = now_us,
        .made_us = now_us,
        .passed_us = now_us,
        .hash = key->hash,
        .key_len = (uint32_t)len,
        .next = next,
        .type = key->type,
        .table_len = key->table_len,
        .used = true,
    };
    if (len > 0)
        memcpy(entry->key, key->bytes.at, kept(len));
    return entry;
}

struct hg_bindthrottle_entry *hg_bindthrottle_make(struct hg_bindthrottle *table,
                                                   const struct hg_bindthrottle_key *key,
                                                   uint64_t evicted, double decr_per_sec,
                                                   uint64_t now_us)
{
    struct hg_bindthrottle_entry *entry = hg_bindthrottle_find(table, key);
    double x = 2;

    if (evicted >= HG_BINDTHROTTLE_MAX)
        x = HG_BINDTHROTTLE_MAX;
    else if (evicted > 1)
        x = (double)evicted + 1;
    if (entry != NULL && !let_time_work(entry, decr_per_sec, now_us)) {
        remove_entry(table, entry);
        entry = NULL;
    }
    if (entry == NULL) {
        if (table->free == 0)
            remove_entry(table, lowest(table, decr_per_sec, now_us));
        entry = new_entry(table, key, now_us);
    }
    if (entry->x < x) {
        entry->x = x;
        entry->last_x = in_force(x);
    }
    return entry;
}

/* ---- attempts ---- */

static bool is_due(const struct hg_bindthrottle *table, const struct hg_bindthrottle_entry *entry,
                   uint32_t x, uint64_t now_us)
{
    return entry->attempts >= x ||
           (table->halves && now_us >= entry->passed_us + HG_BINDTHROTTLE_QUIET);
}

/* Apart from the search, which most requests end with. */
static __attribute__((noinline)) enum hg_bindthrottle_verdict
decide_entry(struct hg_bindthrottle *table, struct hg_bindthrottle_entry *entry, bool busy,
             double decr_per_sec, uint64_t now_us, struct hg_bindthrottle_told *ret_told)
{
    struct hg_bindthrottle_told told = {.last = entry->last_x};
    uint64_t since = entry->asked_us != 0 ? entry->asked_us : entry->made_us;

    if (!let_time_work(entry, decr_per_sec, now_us)) {
        remove_entry(table, entry);
        return HG_BINDTHROTTLE_NONE;
    }
    told.silent = now_us >= since + HG_BINDTHROTTLE_QUIET;
    told.prev = told.x = in_force(entry->x);
    entry->asked_us = now_us;
    entry->last_x = told.x;
    entry->attempts++;
    if (!is_due(table, entry, told.x, now_us)) {
        entry->refused++;
        *ret_told = told;
        return HG_BINDTHROTTLE_REFUSE;
    }
    entry->attempts = 0;
    entry->passed++;
    entry->passed_us = now_us;
    told.before = entry->x;
    told.change = -1;
    if (busy)
        told.change = capped(2.0 * told.x + 1) - entry->x;
    entry->x += told.change;
    entry->last_x = told.x = in_force(entry->x);
    if (told.x < 2)
        remove_entry(table, entry);
    *ret_told = told;
    return HG_BINDTHROTTLE_PASS;
}

enum hg_bindthrottle_verdict hg_bindthrottle_decide(struct hg_bindthrottle *table,
                                                    const struct hg_bindthrottle_key *key,
                                                    bool busy, double decr_per_sec, uint64_t now_us,
                                                    struct hg_bindthrottle_told *ret_told)
{
    struct hg_bindthrottle_entry *entry = find(table, key);

    if (HG_LIKELY(entry == NULL))
        return HG_BINDTHROTTLE_NONE;
    return decide_entry(table, entry, busy, decr_per_sec, now_us, ret_told);
}

void hg_bindthrottle_undo(struct hg_bindthrottle *table, const struct hg_bindthrottle_key *key,
                          double change)
{
    struct hg_bindthrottle_entry *entry = hg_bindthrottle_find(table, key);

    if (entry == NULL)
        return;
    /* What it was before may have been over meanwhile: time and the sweeper see to that. */
    entry->x = capped(entry->x - change);
    entry->last_x = in_force(entry->x);
    entry->attempts = entry->last_x;
    if (entry->passed > 0)
        entry->passed--;
}

/* ---- answers ---- */

#define OVER_US 2000 /* an answer that takes so much longer than usual is in time all the same */

static bool is_in_time(const struct hg_bindthrottle_entry *entry, uint64_t service_us,
                       uint64_t usual_us)
{
    uint64_t more_us = usual_us > OVER_US ? usual_us : OVER_US;

    return usual_us != 0 && service_us <= usual_us + more_us &&
           (entry->held_us == 0 || service_us <= entry->held_us / 2);
}

struct hg_bindthrottle_entry *hg_bindthrottle_of_pass(const struct hg_bindthrottle *table,
                                                      const struct hg_bindthrottle_pass *pass)
{
    for (uint16_t i = *bucket_of(table, pass->hash); i != 0;) {
        struct hg_bindthrottle_entry *entry = &table->entries[i - 1];
        if (entry->hash == pass->hash && entry->type == pass->type)
            return entry;
        i = entry->next;
    }
    return NULL;
}

bool hg_bindthrottle_answer(struct hg_bindthrottle *table, struct hg_bindthrottle_entry *entry,
                            const struct hg_bindthrottle_pass *pass, uint64_t service_us,
                            uint64_t usual_us, struct hg_bindthrottle_told *ret_told)
{
    if (!is_in_time(entry, service_us, usual_us))
        return false;
    /* An answer takes back what its own pass did to X, and what later passes did. */
    double before = entry->x < pass->before ? entry->x : pass->before;
    *ret_told = (struct hg_bindthrottle_told){.prev = in_force(entry->x)};
    entry->x = before / 2;
    entry->halved++;
    entry->last_x = ret_told->x = in_force(entry->x);
    if (ret_told->x < 2)
        remove_entry(table, entry);
    return true;
}

uint32_t hg_bindthrottle_sweep(struct hg_bindthrottle *table, double decr_per_sec, uint64_t now_us)
{
    if (table->count == 0)
        return 0;
    for (uint32_t i = 0; i < table->capacity; i++) {
        struct hg_bindthrottle_entry *entry = &table->entries[i];
        if (entry->used && !let_time_work(entry, decr_per_sec, now_us))
            remove_entry(table, entry);
    }
    return table->count;
}
