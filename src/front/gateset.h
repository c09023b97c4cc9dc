// gateset - the tickets of an upstream: one share for each of its servers
// SPDX-License-Identifier: BSD-3-Clause
//
//   upstream ─► set ─► share of 10.0.0.1:11211   holders, backlog, controller (gateshare.h)
//                  ─► share of 10.0.0.2:11211
//                  ─► share of ""                what goes to no single server, or not yet to a
//                                                known one
//
// A share belongs to an address and outlives generations: a reload goes on with the tickets of the
// servers that stay. A share is never freed before its set; when its server has gone, and nobody
// has a ticket of it or waits for one, another address may take its place. The set has the options,
// which hold for all of its shares, and divides what the servers have in common (core/ticketshare):
// a cap of the sum, or fixed sizes that are the sum.
//
// Any thread: what changes does so under the lock; shares[0 .. count) may be read without.
#ifndef HG_FRONT_GATESET_H
#define HG_FRONT_GATESET_H

#include <pthread.h>

#include "front/gateshare.h"

#define HG_GATESET_MAX 2049 /* as many servers as a cluster may have, and none of them */

struct hg_front;

/* Options; may change at any time. */
struct hg_gateset_conf {
    struct hg_probe_conf probe; /* of each server's controller */
    uint64_t max_waiting;       /* of each holder */
    uint64_t queue_timeout_us, flood_wait_us;
    bool flood_newest;
    unsigned key_share_pct, tenant_window;
    unsigned
        slow_factor;    /* a server that takes so many times what others take is slow; 0: none is */
    bool evict_longest; /* when no key of a backlogged server holds too much */
    bool bind_halves;   /* answers in the usual time halve the X of a throttled key */
    uint64_t cap;       /* of the sum of all sizes; 0: none */
    bool is_sum; /* fixed control: read_tickets and write_tickets are of all servers together */
};

struct hg_gateset {
    unsigned workers;
    pthread_mutex_t lock;
    struct hg_gateset_conf conf; /* under lock */
    bool configured;
    _Atomic unsigned count;
    _Atomic bool bind_halves;                      /* as in conf */
    struct hg_hist *waits[HG_TICKET_KINDS];        /* one a worker, of all servers together */
    uint64_t gone[HG_TICKET_KINDS][HG_GATE_STATS]; /* of servers whose place another has; under
                                                      lock */
    struct hg_gateshare *_Atomic shares[HG_GATESET_MAX];
};

/* What the holders of one kind have together. */
struct hg_gateset_sum {
    int64_t size, out, waiting, stranded;
    unsigned overloaded; /* workers in whose lines some tenant floods */
    uint64_t counts[HG_GATE_STATS];
    struct hg_hist waits;
};

/* NULL when memory is out. */
HG_MUST_USE struct hg_gateset *hg_gateset_new(unsigned workers);
/* NULL is allowed. */
void hg_gateset_free(struct hg_gateset *set);

/* The share of a server, made if there is none; it counts as used until hg_gateset_give. NULL when
   memory is out, or HG_GATESET_MAX servers are in use. */
HG_MUST_USE struct hg_gateshare *hg_gateset_take(struct hg_gateset *set, struct hg_front *front,
                                                 const char *server, uint64_t now_us);
void hg_gateset_give(struct hg_gateset *set, struct hg_gateshare *share);

/* The configuration names these servers, and no others: they are shown, and have tickets, before
   anybody has asked for them. 0 or -ENOMEM. */
HG_MUST_USE int hg_gateset_list(struct hg_gateset *set, struct hg_front *front,
                                const char *const *servers, size_t count, uint64_t now_us);

/* Options, in force at once; those that are in force leave the controllers alone. */
void hg_gateset_configure(struct hg_gateset *set, struct hg_front *front,
                          const struct hg_gateset_conf *conf, uint64_t now_us);
/* Sets the sizes that the controllers want, as far as the set allows; under its lock. */
void hg_gateset_resize(struct hg_gateset *set, struct hg_front *front, uint64_t now_us);

static inline unsigned hg_gateset_count(const struct hg_gateset *set)
{
    return atomic_load_explicit(&((struct hg_gateset *)(uintptr_t)set)->count,
                                memory_order_acquire);
}

static inline struct hg_gateshare *hg_gateset_at(const struct hg_gateset *set, unsigned i)
{
    return atomic_load_explicit(&((struct hg_gateset *)(uintptr_t)set)->shares[i],
                                memory_order_relaxed);
}

/* Is it a server of now: one that is configured, or used? */
static inline bool hg_gateset_shows(const struct hg_gateshare *share)
{
    struct hg_gateshare *s = (struct hg_gateshare *)(uintptr_t)share;
    return atomic_load_explicit(&s->listed, memory_order_relaxed) ||
           atomic_load_explicit(&s->uses, memory_order_relaxed) > 0;
}

/* One holder by itself; without waits, unless they are its own. */
void hg_gateset_sum_one(struct hg_gate_holder *holder, struct hg_gateset_sum *ret);
/* Over all servers: the counts of those that have gone, too, but not their tickets. */
void hg_gateset_sum(struct hg_gateset *set, enum hg_ticket_kind kind, struct hg_gateset_sum *ret);
/* Requests that wait for a ticket or a connection; and since when the first server has a backlog,
   0: none has. */
int64_t hg_gateset_backlog(const struct hg_gateset *set, uint64_t *ret_since_us);
/* What the controllers have counted, all together. */
struct hg_probe_stats hg_gateset_probe_stats(struct hg_gateset *set);

#endif
