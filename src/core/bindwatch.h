// bindwatch - who holds too many of a backlogged upstream's slots: from the workers' counts to
// verdicts SPDX-License-Identifier: BSD-3-Clause
//
//   workers: rows of (tenant, type, key, slots, waiting) ─► add ─► judge ─► verdicts ─► workers
//
// A key that holds at least `threshold_pct` percent of the used slots, and at least 2 of them, is
// to be evicted: all its waiting requests, and its oldest dispatched ones down to the threshold. If
// no key qualifies, the one request that has run longest, if it is older than min_age_us.
// Candidates are judged by slots alone; a key that is throttled already is judged as any other.
//
// Source: bind eviction of PayPal's Hera, by its documentation.
// Pure; the memory is the caller's.
#ifndef HG_CORE_BINDWATCH_H
#define HG_CORE_BINDWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bindthrottle.h"

/* What one worker knows of one key. */
struct hg_bindwatch_row {
    const void *tenant;
    struct hg_bindthrottle_key key; /* bytes are the worker's, until the rows are given back */
    uint32_t slots;                 /* dispatched and not answered, evicted ones not counted */
    uint32_t evictable;             /* of these; not: sent writes, Unthrottled */
    uint32_t waiting;               /* for a ticket or a connection */
};

struct hg_bindwatch_conf {
    uint32_t threshold_pct; /* 1 to 100 */
    uint64_t min_age_us;
};

/* A worker's report of an upstream. */
struct hg_bindwatch_report {
    const struct hg_bindwatch_row *rows; /* keys with at least 2 slots, long enough */
    size_t count;
    uint32_t used;      /* slots in all, of every key; stranded ones not counted */
    uint64_t oldest_us; /* age of its longest-running evictable request; 0: none */
};

struct hg_bindwatch_verdict {
    const void *tenant;
    struct hg_bindthrottle_key key;
    uint32_t slots;   /* over all workers */
    uint32_t evicted; /* that are to go, dispatched and waiting, over all workers: for X */
    uint32_t keep;    /* dispatched ones that may stay, over all workers */
};

struct hg_bindwatch {
    struct hg_bindwatch_verdict *sums; /* room for so many keys */
    size_t capacity, count;
    uint32_t *evictable, *waiting; /* of each */
    uint64_t used;
    uint64_t oldest_us;
    uint32_t oldest_worker;
    uint64_t left_out; /* keys for which there was no room */
};

size_t hg_bindwatch_bytes(size_t capacity);
struct hg_bindwatch *hg_bindwatch_init(void *memory, size_t capacity);
void hg_bindwatch_clear(struct hg_bindwatch *watch);
void hg_bindwatch_add(struct hg_bindwatch *watch, uint32_t worker,
                      const struct hg_bindwatch_report *report);
/* The keys that are to be evicted, most slots first; how many. They lie in the watch until it is
   cleared. With 0, *ret_worker is the worker that is to evict its longest-running request, or
   UINT32_MAX. */
size_t hg_bindwatch_judge(struct hg_bindwatch *watch, const struct hg_bindwatch_conf *conf,
                          const struct hg_bindwatch_verdict **ret_verdicts, uint32_t *ret_worker);
/* How many of its own dispatched ones a worker may keep, so that over all workers about
   verdict->keep stay: in proportion to what it has. */
uint32_t hg_bindwatch_share(const struct hg_bindwatch_verdict *verdict, uint32_t slots);

#endif
