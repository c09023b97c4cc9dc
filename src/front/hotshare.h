// hotshare - hot keys: what workers and housekeeping hand each other
// SPDX-License-Identifier: BSD-3-Clause
//
//   tick ─► worker: parcel of shares (sketches, used lists) ─► housekeeping: merges, decides
//                   worker ◄─ parcel of new lists, cleared sketches ◄────────────┘
//
// A share is what one worker has of one tenant. A worker goes on with the same list of throttled
// keys until the new one comes, and so that the refusals of an epoch can be told nevertheless, it
// is given each list twice: at the end of an epoch it hands over the one that it used and goes on
// with the other.
#ifndef HG_FRONT_HOTSHARE_H
#define HG_FRONT_HOTSHARE_H

#include "base/counter.h"
#include "base/op.h"
#include "base/prng.h"
#include "front/bucket.h"
#include "front/hotmem.h"
#include "io/mailbox.h"

struct hg_hotshare {
    struct hg_hotkey *keys[HG_HOT_TYPES]; /* of `sketches`; NULL: none yet */
    struct hg_list node;
    struct hg_bucket *bucket; /* counted */
    unsigned worker;
    struct hg_hotsketch *sketches[HG_HOT_TYPES];
    bool refused[HG_HOT_TYPES]; /* there was no memory for it in this epoch */
    struct hg_list lists;       /* of struct hg_hotlist: used ones on their way home, or new ones */
};

/* What goes from a worker to housekeeping and back. */
struct hg_hotparcel {
    struct hg_letter letter;
    void *ctx; /* the receiver's: that of struct hg_hot_front */
    unsigned worker;
    uint64_t epoch;          /* that ended */
    struct hg_list shares;   /* there: the epoch's; back: new lists, for lanes[worker] */
    struct hg_list idle;     /* shares without anything in them */
    struct hg_list sketches; /* empty ones: there to be freed, back for reuse */
};

/* Shared by all workers, part of struct hg_front. */
struct hg_hot_front {
    struct hg_hotmem mem;
    _Atomic uint32_t epoch_ms;     /* how long one is to be */
    _Atomic uint64_t epoch_end_us; /* when the running one will end */
    struct hg_mailbox *house;      /* NULL: nobody takes parcels, counts are dropped */
    void (*on_parcel)(struct hg_letter *letter, void *receiver);
    void *ctx;
};

enum hg_hot_size { HG_HOT_SIZE_ALL, HG_HOT_SIZE_OTHER, HG_HOT_SIZE_SHRUNK, HG_HOT_SIZES };

/* HG_HOT_WORKER_STAT(name, kind, sentence), kind COUNTER or GAUGE */
#define HG_HOT_WORKER_STATS(HG_HOT_WORKER_STAT)                                                    \
    HG_HOT_WORKER_STAT(handovers, COUNTER,                                                         \
                       "times that a worker handed over at the end of an epoch")                   \
    HG_HOT_WORKER_STAT(handed_shares, COUNTER, "pairs of tenant and worker that were handed over") \
    HG_HOT_WORKER_STAT(handover_ns, COUNTER, "CPU time that workers spent on it, in nanoseconds")

/* A worker's own, part of struct hg_worker. */
struct hg_hot_worker {
    struct hg_list shares;         /* of the running epoch */
    struct hg_list idle;           /* shares to be used again, */
    unsigned idle_count, idle_max; /* as many as were handed over last */
    struct hg_list spares[HG_HOT_SIZES];
    unsigned spare_counts[HG_HOT_SIZES];
    unsigned taken[HG_HOT_SIZES]; /* sketches in use */
    struct hg_hotparcel *parcel;  /* for the next handover, or NULL */
    struct hg_prng prng;
    struct hg_letter epoch_letter;
    _Atomic bool epoch_posted;
    _Atomic uint64_t epoch; /* the one that the letter ends */
#define HG_HOT_WORKER_STAT(name, kind, text) hg_counter name;
    HG_HOT_WORKER_STATS(HG_HOT_WORKER_STAT)
#undef HG_HOT_WORKER_STAT
};

/* Counters of a sketch of the type when it has its full size, and when it is shrunk. */
static inline unsigned hg_hot_counters(unsigned setting, enum hg_hot_type type, bool shrunk)
{
    unsigned full = type == HG_HOT_ALL ? setting : setting / 2;
    return shrunk && full > HG_HOT_COUNTERS_SHRUNK ? HG_HOT_COUNTERS_SHRUNK : full;
}

/* An empty share, or NULL; frees what is in a share, and its reference; and the share itself. */
HG_MUST_USE struct hg_hotshare *hg_hotshare_new(void);
void hg_hotshare_clear(struct hg_hotmem *mem, struct hg_hotshare *share);
void hg_hotshare_free(struct hg_hotmem *mem, struct hg_hotshare *share);

HG_MUST_USE struct hg_hotparcel *hg_hotparcel_new(unsigned worker);
/* Frees a parcel and all that is in it. NULL is allowed. */
void hg_hotparcel_free(struct hg_hotmem *mem, struct hg_hotparcel *parcel);

#endif
