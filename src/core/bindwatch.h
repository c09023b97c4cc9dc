// bindwatch - who holds too many of a backlogged upstream's slots: from the workers' counts to
// verdicts
// SPDX-License-Identifier: BSD-3-Clause
//
//   workers: rows of (tenant, type, key, slots, waiting) ─► add ─► judge ─► verdicts ─► workers
//
// A key that holds at least `threshold_pct` percent of the used slots, and at least 3 of them (2
// when less than 4 are used), qualifies: all its waiting requests are to be evicted, and its oldest
// dispatched ones until it holds less than the threshold, or 1. Several keys may qualify at once,
// each is judged alone; none does whose requests are answered as fast as any (dear_us). If
// none does, and `evict_longest` is set, the one request that has run longest is to be evicted, if
// it is older than min_age_us. Candidates are judged by slots alone; a key that is throttled
// already is judged as any other.
//
// Used slots are those that requests hold, the stranded ones of evicted requests included: they are
// not free. So an eviction changes a key's share and nobody else's; without them an eviction of
// most slots would leave so few that an innocent key with two qualifies next.
//
// When to ask: each 100 ms while a backlog has lasted long enough. It begins when the line is not
// empty, and ends when it is empty and a slot is free: a line that is empty only because all that
// were in it gave up at one moment is no relief, and queue time-out and backlog time are the same
// by default.
//
// What cannot be evicted: a request of an Unthrottled connection (`exempt`), and a write that was
// sent, unless it may be. A key that qualifies and holds nothing but exempt slots, and has none
// waiting, gets no verdict, for there is nothing to evict and nobody to throttle. One that holds
// writes gets one though none of them is evicted: it is the culprit, and is to be throttled.
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
    uint32_t evictable;             /* of these; not: writes that must stay, exempt ones */
    uint32_t exempt;                /* of these: Unthrottled */
    uint32_t waiting;               /* for a ticket or a connection; exempt ones not counted */
    uint64_t oldest_us;             /* age of its longest-running dispatched request; 0: none */
};

struct hg_bindwatch_conf {
    uint32_t threshold_pct; /* 1 to 100 */
    uint64_t min_age_us;
    uint32_t least_pct; /* a key must hold this, too, to qualify; 0: that is all */
    uint64_t dear_us;   /* and have a request that old; 0: that is all */
    bool evict_longest; /* when no key qualifies */
};

/* The age from which on a key's request is dear, where one takes `usual_us` on average lately: four
   times that, at least 20 ms, at most min_age_us. Many requests for a key that are answered like
   all others are no pile: in a store that is full they wait for each other. usual_us 0: nothing was
   answered, and what is old is dear. */
uint64_t hg_bindwatch_dear_us(uint64_t usual_us, uint64_t min_age_us);

/* A worker's report of an upstream. */
struct hg_bindwatch_report {
    const struct hg_bindwatch_row *rows; /* of keys that are long enough, and hold at least 2, or
                                            wait; what is left out here is not seen */
    size_t count;
    uint32_t used;      /* slots in all, of every key, stranded ones included */
    uint64_t oldest_us; /* age of its longest-running evictable request; 0: none */
};

struct hg_bindwatch_verdict {
    const void *tenant;
    struct hg_bindthrottle_key key;
    /* over all workers */
    uint32_t slots, evictable, exempt, waiting;
    uint64_t oldest_us;
    uint32_t keep; /* of the evictable ones so many stay */
    uint32_t
        evicted; /* that are to go: the other evictable ones and all waiting, for X; may be 0 */
};

struct hg_bindwatch {
    struct hg_bindwatch_verdict *sums; /* room for so many keys */
    size_t capacity, count;
    uint32_t *heads, *next; /* index of the sums by hash: numbers + 1 */
    uint64_t used;
    uint64_t oldest_us;
    uint32_t oldest_worker;
    uint64_t left_out; /* rows for which there was no room; none if there is room for all rows */
};

size_t hg_bindwatch_bytes(size_t capacity);
/* An empty one in memory of that size, aligned for any type. At most UINT32_MAX - 1 keys. */
struct hg_bindwatch *hg_bindwatch_init(void *memory, size_t capacity);
void hg_bindwatch_clear(struct hg_bindwatch *watch);
/* Not after a judgement, until it is cleared. */
void hg_bindwatch_add(struct hg_bindwatch *watch, uint32_t worker,
                      const struct hg_bindwatch_report *report);
/* The keys that are to be evicted and throttled, most slots first; how many. They lie in the watch
   until it is cleared. *ret_worker is the worker that is to evict its longest-running request, or
   UINT32_MAX: then no key qualified, and there are no verdicts. */
size_t hg_bindwatch_judge(struct hg_bindwatch *watch, const struct hg_bindwatch_conf *conf,
                          const struct hg_bindwatch_verdict **ret_verdicts, uint32_t *ret_worker);
/* How many of its own `evictable` ones a worker may keep, so that over all workers no more than
   verdict->keep stay: in proportion to what it has, rounded down. */
uint32_t hg_bindwatch_share(const struct hg_bindwatch_verdict *verdict, uint32_t evictable);

#endif
