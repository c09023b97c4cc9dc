// bindthrottle - keys that were evicted: one request in X is let through
// SPDX-License-Identifier: BSD-3-Clause
//
//   evicted ─► X = max(2, evicted + 1)
//   each request: the X-th passes, the others are refused
//   a pass while the upstream is busy: X = min(10000, 2 X + 1)   else: X = X - 1
//   time: X falls by `decr_per_sec` a second, continuously; the sweeper looks after silent keys
//   X < 2: the entry goes
//
// Entries are of (type, key), independent of each other: an entry of one key says nothing of the
// others of its type, and none stays for want of requests. A table is one worker's and one
// tenant's; at most HG_BINDTHROTTLE_ENTRIES, and the entry with the lowest X makes room for a new
// one.
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
#define HG_BINDTHROTTLE_MAX     10000 /* cap of X */
#define HG_BINDTHROTTLE_KEY_MAX 250   /* bytes of a key; with a table: `table 0x00 row`, cut */

struct hg_bindthrottle_key {
    uint8_t type;         /* enum hg_hot_type */
    uint8_t table_len;    /* of bytes: the table; 0: none */
    uint32_t hash;        /* of all bytes, the table's included, whatever was cut */
    struct hg_span bytes; /* the table's, then the row's; or the key's */
};

struct hg_bindthrottle_entry {
    double x;          /* allow one in so many */
    uint32_t attempts; /* since the last that passed */
    uint32_t hash;
    uint64_t decayed_us; /* x is of this time */
    uint64_t asked_us;   /* last attempt; 0: none */
    uint64_t passed, refused;
    uint16_t next; /* in its bucket, or free; index + 1 */
    uint16_t key_len;
    uint8_t type, table_len;
    bool used, told; /* told: an event of the last pass is written */
    uint8_t key[HG_BINDTHROTTLE_KEY_MAX];
};

struct hg_bindthrottle {
    uint32_t count;
    uint32_t capacity; /* entries that there is memory for, a power of two */
    uint16_t *buckets; /* capacity of them */
    uint16_t free;
    struct hg_bindthrottle_entry *entries;
};

/* Bytes for a table of so many entries (a power of two, at most HG_BINDTHROTTLE_ENTRIES). */
size_t hg_bindthrottle_bytes(uint32_t capacity);
/* In memory of that size, aligned for any type. */
struct hg_bindthrottle *hg_bindthrottle_init(void *memory, uint32_t capacity);

/* The entry of the key, or NULL. As long as the table is not changed. */
struct hg_bindthrottle_entry *hg_bindthrottle_find(struct hg_bindthrottle *table,
                                                   const struct hg_bindthrottle_key *key);
/* The key was evicted: an entry with X = max(2, evicted + 1); one that is there is raised to it, if
   it is lower. */
struct hg_bindthrottle_entry *hg_bindthrottle_make(struct hg_bindthrottle *table,
                                                   const struct hg_bindthrottle_key *key,
                                                   uint64_t evicted, uint64_t now_us);

enum hg_bindthrottle_verdict { HG_BINDTHROTTLE_NONE, HG_BINDTHROTTLE_PASS, HG_BINDTHROTTLE_REFUSE };

struct hg_bindthrottle_told {
    uint32_t x;    /* rounded up: what is in force after the decision */
    uint32_t prev; /* before a pass changed it */
    bool silent;   /* there was no attempt for a second or more before this one */
};

/* An attempt. `busy`: the upstream's slot use is above its target; looked at when it passes.
   NONE: the key has no entry, or has none any more. */
enum hg_bindthrottle_verdict hg_bindthrottle_decide(struct hg_bindthrottle *table,
                                                    const struct hg_bindthrottle_key *key,
                                                    bool busy, double decr_per_sec, uint64_t now_us,
                                                    struct hg_bindthrottle_told *ret_told);
/* One that passed was refused later, and used no slot: the next attempt passes in its place, and X
   is as before. */
void hg_bindthrottle_undo(struct hg_bindthrottle *table, const struct hg_bindthrottle_key *key,
                          uint32_t prev);
/* Lets time work on all entries and removes those that are over; how many are left. */
uint32_t hg_bindthrottle_sweep(struct hg_bindthrottle *table, double decr_per_sec, uint64_t now_us);

#endif
