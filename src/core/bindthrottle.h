// bindthrottle - keys that were evicted: one request in X is let through
// SPDX-License-Identifier: BSD-3-Clause
//
//   evicted ─► X = max(2, evicted + 1)
//   each request: the X-th passes, the others are refused
//   a pass while the upstream is busy: X = min(10000, 2 X + 1)   else: X = X - 1
//   time: X falls by `decr_per_sec` a second, continuously; the sweeper looks after silent keys
//   X < 2: the entry goes
//
//   and where `halves` is set:
//   a request passes whatever X is, if none has for a second
//   a request that passed is answered in the usual time: X is at most half of what it was before
//
// The usual time is twice what requests of the kind usually take, or 2 ms more. A key that nobody
// asked for otherwise would set its own usual time, so an answer must also have come in half of the
// time for which the key's oldest request had been at the store when the key was evicted. A mended
// key that is asked for once a second is free within 14 s, even from the largest X.
//
// X is kept as a real number, so that time works on it however short the gaps between requests; in
// force, in every rule and in every text, is the whole number above it. So X = 2 lasts a second at
// 1.0/s, and "X < 2" is a real number of 1 or less. A pass starts the count of attempts anew.
//
// Entries are of (type, key), independent of each other: an entry of one key says nothing of the
// others of its type, and none stays for want of requests. A table is one worker's and one
// tenant's; at most HG_BINDTHROTTLE_ENTRIES, and the entry with the lowest X makes room for a new
// one. It may begin small, and move to a larger one when it is full.
//
// Source: the bind throttle of PayPal's Hera, by its documentation.
// Pure: the time is an argument, the memory the caller's.
#ifndef HG_CORE_BINDTHROTTLE_H
#define HG_CORE_BINDTHROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_BINDTHROTTLE_ENTRIES 1024
#define HG_BINDTHROTTLE_MAX     10000   /* cap of X */
#define HG_BINDTHROTTLE_KEY_MAX 250     /* bytes of a key that are kept, and compared */
#define HG_BINDTHROTTLE_QUIET   1000000 /* µs without an attempt: the next one breaks a silence */

struct hg_bindthrottle_key {
    uint8_t type;         /* enum hg_hot_type */
    uint8_t table_len;    /* of bytes: the table; 0: none */
    uint32_t hash;        /* of all bytes, the table's included, whatever was cut */
    struct hg_span bytes; /* the table's, then the row's, nothing between; or the key's */
};

struct hg_bindthrottle_entry {
    double x;            /* allow one in so many, not rounded */
    uint32_t attempts;   /* since the last that passed */
    uint32_t last_x;     /* in force after the last attempt, or when it was made or raised */
    uint64_t decayed_us; /* x is of this time */
    uint64_t made_us;
    uint64_t asked_us;  /* last attempt; 0: none */
    uint64_t passed_us; /* last pass, or when it was made */
    uint64_t held_us;   /* age of the key's oldest request when it was evicted; 0: not known */
    uint64_t passed, refused, halved;
    uint32_t hash;
    uint32_t key_len; /* before it was cut */
    uint16_t next;    /* in its bucket, or free; index + 1 */
    uint8_t type, table_len;
    bool used;
    uint8_t key[HG_BINDTHROTTLE_KEY_MAX];
};

struct hg_bindthrottle {
    uint32_t count;
    uint32_t capacity; /* entries that there is memory for, a power of two */
    uint32_t mask;     /* of the buckets */
    uint16_t free;     /* index + 1 */
    bool halves;       /* the caller's, before each attempt: see above */
    uint16_t *buckets;
    struct hg_bindthrottle_entry
        *entries; /* capacity of them, in no order: those that are `used` */
};

/* Bytes for a table of so many entries (a power of two, at most HG_BINDTHROTTLE_ENTRIES). */
size_t hg_bindthrottle_bytes(uint32_t capacity);
/* An empty one in memory of that size, aligned for any type. */
struct hg_bindthrottle *hg_bindthrottle_init(void *memory, uint32_t capacity);

/* A new key would push one out, though a larger table could have both. */
static inline bool hg_bindthrottle_full(const struct hg_bindthrottle *table)
{
    return table->count == table->capacity && table->capacity < HG_BINDTHROTTLE_ENTRIES;
}
/* All entries of `from`, which is empty then, into `to`, which is empty and at least as large. */
void hg_bindthrottle_move(struct hg_bindthrottle *to, struct hg_bindthrottle *from);

/* False: no key of that hash has an entry. Some instructions, without a call: asked first, a
   request in calm times costs no more. */
static inline bool hg_bindthrottle_may_have(const struct hg_bindthrottle *table, uint32_t hash)
{
    return table->count != 0 && table->buckets[hash & table->mask] != 0;
}

/* The same key: type, lengths, hash and all bytes that are kept. */
bool hg_bindthrottle_same(const struct hg_bindthrottle_key *a, const struct hg_bindthrottle_key *b);
/* The entry of the key, or NULL. As long as the table is not changed. */
struct hg_bindthrottle_entry *hg_bindthrottle_find(struct hg_bindthrottle *table,
                                                   const struct hg_bindthrottle_key *key);
/* Its key; of one that was cut what was kept. The bytes lie in the entry. */
struct hg_bindthrottle_key hg_bindthrottle_key_of(const struct hg_bindthrottle_entry *entry);
/* X in force now, if nobody asks; 1: the entry is over. */
uint32_t hg_bindthrottle_x(const struct hg_bindthrottle_entry *entry, double decr_per_sec,
                           uint64_t now_us);

/* The key was evicted: an entry with X = max(2, evicted + 1), at most the cap; one that is there is
   raised to it, if it is lower. When the table has no room the entry with the lowest X goes. */
struct hg_bindthrottle_entry *hg_bindthrottle_make(struct hg_bindthrottle *table,
                                                   const struct hg_bindthrottle_key *key,
                                                   uint64_t evicted, double decr_per_sec,
                                                   uint64_t now_us);

enum hg_bindthrottle_verdict { HG_BINDTHROTTLE_NONE, HG_BINDTHROTTLE_PASS, HG_BINDTHROTTLE_REFUSE };

/* All X are rounded up. */
struct hg_bindthrottle_told {
    uint32_t x;    /* in force after the decision; 1: the entry has gone */
    uint32_t prev; /* before a pass changed it; time is counted already. A refusal: the same as x */
    uint32_t last; /* after the attempt before this one: time took last - prev */
    bool silent;   /* there was no attempt for a second or more before this one */
    double change; /* that the pass made, for hg_bindthrottle_undo */
    double before; /* X before the pass, not rounded, for hg_bindthrottle_answer */
};

/* An attempt. `busy`: the upstream's slot use is above its target; looked at when it passes.
   NONE: the key has no entry, or has none any more; then *ret_told is not written. */
enum hg_bindthrottle_verdict hg_bindthrottle_decide(struct hg_bindthrottle *table,
                                                    const struct hg_bindthrottle_key *key,
                                                    bool busy, double decr_per_sec, uint64_t now_us,
                                                    struct hg_bindthrottle_told *ret_told);
/* One that passed was refused later, and used no slot: the next attempt passes in its place, and
   what the pass did to X (told->change) is taken back; what time did stays. Nothing happens when
   the entry has gone. */
void hg_bindthrottle_undo(struct hg_bindthrottle *table, const struct hg_bindthrottle_key *key,
                          double change);
/* What is kept of a pass until its request is answered. */
struct hg_bindthrottle_pass {
    double change, before; /* as in hg_bindthrottle_told */
    uint32_t hash;         /* of its key */
    uint8_t type;
};

/* The entry of the key that the pass was for; NULL: it has gone. */
struct hg_bindthrottle_entry *hg_bindthrottle_of_pass(const struct hg_bindthrottle *table,
                                                      const struct hg_bindthrottle_pass *pass);
/* Its request was answered by its store, after service_us. usual_us: what such requests usually
   take there; 0: not known. True: it came in the usual time, and X has been halved, from
   ret_told->prev to ret_told->x (1: the entry has gone); nothing else is told. */
bool hg_bindthrottle_answer(struct hg_bindthrottle *table, struct hg_bindthrottle_entry *entry,
                            const struct hg_bindthrottle_pass *pass, uint64_t service_us,
                            uint64_t usual_us, struct hg_bindthrottle_told *ret_told);
/* Lets time work on all entries and removes those that are over; how many are left. */
uint32_t hg_bindthrottle_sweep(struct hg_bindthrottle *table, double decr_per_sec, uint64_t now_us);

#endif
