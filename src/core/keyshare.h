// keyshare - how many tickets of a holder the requests for one key may have at a time
// SPDX-License-Identifier: BSD-3-Clause
//
//   request ─► its chain (by hash) below the share: goes on            every request: O(1)
//                 │ not
//                 ▼
//              its key's own count below the share, and few that are not proven: goes on
//                 │ not
//                 ▼
//              no other key is active, or the key is proven: goes on
//                 │ not
//                 ▼
//              parked until one of the key's requests ends, or refused
//
// The share binds before anything queues. It is `pct` percent of the tickets that are in use on
// average (two seconds), of at most all that there are, and 2 at least; a worker has its part.
//
// A key is proven if one of its requests was answered fast within the last second, and the oldest
// under way is not overdue. Fast and overdue mean four usual services, and 20 ms at least. The
// usual service is the median of those requests whose key nobody keeps an eye on, and of one a
// second of each other key: so one key's requests do not decide it, be they ever so many. So of a
// burst for a new key two go. When they come back in time all others follow, one service later;
// else the share is all that the key has. Overdue is what was under way for that long when the
// store last answered anything: while it answers nothing it is slow, and no key is.
//
// Keys that are not proven have half of the tickets in use together, and 2 at least; but a key
// whose last answer was not slow may have one in any case. A key whose last two answers were slow,
// or which has two requests under way and is overdue, is dear: what would have to wait for its
// share longer than it may, or behind four times the share, is refused at once. Not so in the first
// second after a silence of the store: what was under way meanwhile tells nothing of the wait. Nor
// is that so while all requests take long: its own must take four times as long as they did lately.
//
// Requests that hold a ticket or wait for one are engaged. An eye is kept on a key (it has a
// record) from its second one on where requests take more than a millisecond (later where hundreds
// are under way), else from when they reach the share, until none is left and a second has passed.
// A slot that is stranded (front/gate.h) counts as engaged and under way.
//
// Pure; the memory is the caller's. Belongs to its worker's thread; the counts of chains may be
// read by other workers. Times come from one clock that never goes back.
#ifndef HG_CORE_KEYSHARE_H
#define HG_CORE_KEYSHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

#define HG_KEYSHARE_CHAINS  128
#define HG_KEYSHARE_FAST_US 20000 /* an answer is fast in any case that took no longer */
#define HG_KEYSHARE_LAST_US                                                                        \
    1000000                    /* a fast answer proves a key for so long; an idle record lasts */
#define HG_KEYSHARE_MOST  1024 /* records, from which on idle ones go at once */
#define HG_KEYSHARE_LEAST 2    /* tickets that a key may have in any case */
/* So many answers of a tenant count in so much time; more would tell nothing new. */
#define HG_KEYSHARE_SAMPLES    64
#define HG_KEYSHARE_SAMPLES_US 16000

/* Engaged requests by chain, of one worker. */
struct hg_keyshare_counts {
    _Atomic uint32_t of[HG_KEYSHARE_CHAINS];
};

/* A usual service time; to be zeroed before use. */
struct hg_keyshare_usual {
    uint32_t us;    /* 0: not known */
    uint32_t rises; /* samples above it in a row, 6 at most */
};

/* A tenant's; to be zeroed before use. */
struct hg_keyshare_tenant {
    struct hg_keyshare_usual usual;
    uint32_t samples;    /* answers that may still count for what is usual, */
    uint64_t sampled_us; /* of those from then on */
};

struct hg_keyshare_key;

/* A request's part, engaged or parked. */
struct hg_keyshare_part {
    struct hg_list node;         /* in its chain, or in a list of its key */
    struct hg_keyshare_key *key; /* NULL: it has no record */
    struct hg_keyshare_tenant *of;
    uint64_t since_us; /* has a ticket since; 0: it has none */
    uint32_t id;       /* of its key: any good hash, the same on all workers */
    bool is_engaged, is_parked;
};

/* A key that an eye is kept on. */
struct hg_keyshare_key {
    struct hg_keyshare_key *next; /* in its chain */
    uint32_t id;
    uint32_t usual_us;              /* its tenant's, when it last asked or ended; 0: not known */
    struct hg_list running;         /* parts with a ticket, oldest first */
    struct hg_list lined;           /* parts that wait for one */
    struct hg_list parked;          /* oldest first */
    uint32_t out, engaged, waiting; /* parts running; and lined or stranded, too; parked */
    uint32_t stranded;
    uint64_t stranded_us;             /* since when there are stranded ones */
    uint32_t started, started_before; /* tickets in this second, and in the one before */
    uint32_t slow;                    /* slow answers in a row */
    uint32_t service_us;              /* mean of its services lately */
    bool is_unproven;                 /* counted so */
    uint64_t calm_us;                 /* until then it counts as proven; 0: no more */
    uint64_t fast_us;                 /* last fast answer; 0: none */
    uint64_t learnt_us;               /* last time that an answer counted for what is usual */
    uint64_t used_us;                 /* last time that anything happened */
    uint64_t held_us;                 /* since when its share has bound; 0: it has not */
    uint64_t refused_us;              /* last time that it made one wait or refused one */
    uint64_t refused;                 /* since held_us: at once, or as their time was over */
    bool is_pinned, is_named;         /* the user's; false at first. Pinned, the record stays */
};

struct hg_keyshare_chain {
    struct hg_list parts; /* engaged, of keys without a record */
    struct hg_keyshare_key *keys;
};

/* A worker's view of the holder, as of the last hg_keyshare_tick. */
struct hg_keyshare_view {
    uint64_t now_us;
    uint32_t pct;         /* 100 and more: keys have no share */
    uint32_t size;        /* tickets, of all workers */
    uint32_t out;         /* that are given away */
    uint32_t workers;     /* that ask for them */
    uint64_t started;     /* tickets that were ever given, by all workers */
    uint64_t usual_us;    /* usual service on other workers; 0: not known */
    uint64_t answered_us; /* last answer on any worker */
    uint64_t timeout_us;  /* how long a request may wait */
};

struct hg_keyshare {
    uint32_t watch;          /* engaged requests of a chain below which nothing else is looked at */
    uint32_t share;          /* of a key, on all workers */
    uint32_t unproven_share; /* of all keys that are not proven, of this worker */
    struct hg_keyshare_usual usual; /* of all tenants */
    struct hg_keyshare_counts *counts;
    struct hg_keyshare_chain chains[HG_KEYSHARE_CHAINS];
    struct hg_keyshare_key *spare; /* records for new keys */
    struct hg_keyshare_view view;
    double mean_out;
    uint64_t second_us;         /* beginning of this second */
    bool has_second;            /* it has seen one from begin to end */
    uint64_t second_started;    /* view.started then, */
    uint64_t started_before;    /* and how many in the second before */
    uint32_t recent_us;         /* what all requests took lately, on average; 0: not known */
    uint64_t answered_us;       /* last answer that is known of */
    uint64_t resumed_us;        /* last one that came after a silence; 0: none did */
    uint32_t key_count, parked; /* records; parts */
    uint32_t unproven_out;      /* tickets of keys that are not proven */
};

/* The counts are the caller's, zeroed. Keys have no share before the first hg_keyshare_tick, and
   count as one of several for the first second. */
void hg_keyshare_init(struct hg_keyshare *ks, struct hg_keyshare_counts *counts);
/* Memory for one more record, to be given while there is none to spare: a key without a record has
   no share. It is the keyshare's until hg_keyshare_take_record gives it back. */
static inline void hg_keyshare_give_room(struct hg_keyshare *ks, struct hg_keyshare_key *key)
{
    key->next = ks->spare;
    ks->spare = key;
}
/* One record less, a spare one first; NULL: there is none. Those in use only when nobody is engaged
   or parked any more. */
struct hg_keyshare_key *hg_keyshare_take_record(struct hg_keyshare *ks);
/* What is known of the holder, every 10 to 100 ms. */
void hg_keyshare_tick(struct hg_keyshare *ks, const struct hg_keyshare_view *view);

/* ---- a request ---- */

static inline uint32_t hg_keyshare_chain_of(uint32_t id)
{
    return id % HG_KEYSHARE_CHAINS;
}

static inline uint32_t hg_keyshare_count(const struct hg_keyshare_counts *counts, uint32_t id)
{
    return atomic_load_explicit(
        &((struct hg_keyshare_counts *)(uintptr_t)counts)->of[hg_keyshare_chain_of(id)],
        memory_order_relaxed);
}

/* The key's record; NULL: it has none. */
static inline struct hg_keyshare_key *hg_keyshare_find(const struct hg_keyshare *ks, uint32_t id)
{
    struct hg_keyshare_key *key = ks->chains[hg_keyshare_chain_of(id)].keys;
    while (HG_UNLIKELY(key != NULL) && key->id != id)
        key = key->next;
    return key;
}

/* May it go on without more ado? `key`: its record. */
static inline bool hg_keyshare_is_free(const struct hg_keyshare *ks, uint32_t id,
                                       const struct hg_keyshare_key *key, uint64_t now_us)
{
    return HG_LIKELY(hg_keyshare_count(ks->counts, id) < ks->watch) ||
           (key != NULL && now_us < key->calm_us);
}

enum hg_keyshare_verdict { HG_KEYSHARE_GO, HG_KEYSHARE_PARK, HG_KEYSHARE_REFUSE };

struct hg_keyshare_asks {
    uint32_t id;
    struct hg_keyshare_tenant *of;
    uint32_t elsewhere;   /* engaged requests of its chain on other workers */
    uint64_t answered_us; /* when this worker's line last had an answer */
    uint64_t now_us;
};

/* One that is neither engaged nor parked. *ret_key: its key's record; NULL: there is none, and it
   goes on. */
enum hg_keyshare_verdict hg_keyshare_ask(struct hg_keyshare *ks,
                                         const struct hg_keyshare_asks *asks,
                                         struct hg_keyshare_key **ret_key);
/* May one that is engaged and has waited for its ticket have it now? */
bool hg_keyshare_may_start(struct hg_keyshare *ks, const struct hg_keyshare_part *part,
                           uint64_t answered_us, uint64_t now_us);

/* Called by the inline functions below only. */
void hg_keyshare_start_known(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                             uint64_t now_us);
void hg_keyshare_end_known(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                           uint64_t service_us, bool answered, uint64_t now_us);
void hg_keyshare_sample(struct hg_keyshare *ks, struct hg_keyshare_tenant *of, uint32_t service_us);

static inline void hg_keyshare_add(struct hg_keyshare *ks, uint32_t id, uint32_t change)
{
    _Atomic uint32_t *count = &ks->counts->of[hg_keyshare_chain_of(id)];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + change,
                          memory_order_relaxed);
}

/* Is this answer of the tenant one of the first of these 16 ms? */
static inline bool hg_keyshare_counts_as_sample(struct hg_keyshare_tenant *of, uint64_t now_us)
{
    if (of->samples == 0) {
        if (HG_LIKELY(now_us - of->sampled_us < HG_KEYSHARE_SAMPLES_US))
            return false;
        of->samples = HG_KEYSHARE_SAMPLES;
        of->sampled_us = now_us;
    }
    of->samples--;
    return true;
}

/* It waits for a ticket. id and `of` are set. */
void hg_keyshare_engage(struct hg_keyshare *ks, struct hg_keyshare_part *part);
/* It was engaged, and has its ticket. */
static inline void hg_keyshare_start(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                                     uint64_t now_us)
{
    part->since_us = now_us;
    if (HG_UNLIKELY(part->key != NULL))
        hg_keyshare_start_known(ks, part, now_us);
}

/* Engages a request that has its ticket at once, without waiting. `key`: the record that
   hg_keyshare_find returns now, or NULL. */
static inline void hg_keyshare_begin(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                                     struct hg_keyshare_key *key, uint64_t now_us)
{
    hg_keyshare_add(ks, part->id, 1);
    part->is_engaged = true;
    part->since_us = now_us;
    part->key = key;
    if (HG_LIKELY(key == NULL)) {
        hg_list_append(&ks->chains[hg_keyshare_chain_of(part->id)].parts, &part->node);
        return;
    }
    hg_list_append(&key->running, &part->node);
    key->engaged++;
    key->out++;
    key->started++;
    key->used_us = now_us;
    ks->unproven_out += key->is_unproven;
}

/* It is engaged no longer, whether it had a ticket or not. `answered`: by the store. `sample`: what
   it took may tell what is usual, see hg_keyshare_counts_as_sample. */
static inline void hg_keyshare_end(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                                   bool answered, bool sample, uint64_t now_us)
{
    hg_keyshare_add(ks, part->id, (uint32_t)-1);
    uint64_t us = part->since_us != 0 ? now_us - part->since_us : 0;
    part->is_engaged = false;
    part->node.prev->next = part->node.next;
    part->node.next->prev = part->node.prev;
    if (HG_UNLIKELY(part->key != NULL)) {
        hg_keyshare_end_known(ks, part, us, answered, now_us);
        return;
    }
    if (HG_UNLIKELY(sample) && answered && us <= UINT32_MAX / 2)
        hg_keyshare_sample(ks, part->of, (uint32_t)us);
}

/* A slot whose request has ended became stranded, or is stranded no longer. */
void hg_keyshare_strand(struct hg_keyshare *ks, uint32_t id, int change, uint64_t now_us);

/* ---- parked ones ---- */

/* It waits for its key's share; after PARK, with that record. */
void hg_keyshare_park(struct hg_keyshare *ks, struct hg_keyshare_part *part,
                      struct hg_keyshare_key *key, uint64_t now_us);
void hg_keyshare_unpark(struct hg_keyshare *ks, struct hg_keyshare_part *part);
/* The next of the key's that may go on now; NULL: none. It is still parked: unpark and engage it,
   then ask again. `elsewhere` as in hg_keyshare_asks. */
struct hg_keyshare_part *hg_keyshare_next(struct hg_keyshare *ks, struct hg_keyshare_key *key,
                                          uint32_t elsewhere, uint64_t answered_us,
                                          uint64_t now_us);
/* Is it dear as of now? */
bool hg_keyshare_is_dear(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                         uint64_t answered_us, uint64_t now_us);
/* Its share binds: somebody waits for it, or did, or was refused, within the last second. */
bool hg_keyshare_is_bound(const struct hg_keyshare_key *key, uint64_t now_us);
/* Do its requests take four times as long as all requests lately? Else it is not to blame, though
   it be dear: the store is slow. */
bool hg_keyshare_stands_out(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                            uint64_t answered_us);
/* What its requests take: lately, or the oldest under way if that is longer. 0: not known. */
uint64_t hg_keyshare_service_us(const struct hg_keyshare *ks, const struct hg_keyshare_key *key,
                                uint64_t answered_us);
/* All records, one after the other; NULL: no more. Begin with NULL. None may be added or go
   meanwhile. */
struct hg_keyshare_key *hg_keyshare_each(struct hg_keyshare *ks, struct hg_keyshare_key *last);
/* Lets records go that nobody has used for a while. */
void hg_keyshare_sweep(struct hg_keyshare *ks, uint64_t now_us);

#endif
