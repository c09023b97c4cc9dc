// hotkeys - hot keys, housekeeping's side: epochs, merging, decisions, history
// SPDX-License-Identifier: BSD-3-Clause
//
//   main thread   hg_hotkeys_end_epoch: one letter to each worker, one to housekeeping
//   workers       hand over (front/hot)
//   housekeeping  waits 50 ms for them, merges what has come, decides, sends lists back
//
// What comes late counts in the next epoch. Epochs are numbered, and as long as the main thread's
// ticks say, however late they are looked at. A tenant's state is found through its bucket, which
// it references; it goes when the bucket is deleted, or when nothing is left to show of it. All of
// it is housekeeping's, but for hg_hotkeys_end_epoch.
#ifndef HG_APP_HOTKEYS_H
#define HG_APP_HOTKEYS_H

#include "app/hotrows.h"
#include "core/keythrottle.h"
#include "front/front.h"
#include "front/worker.h"
#include "io/loop.h"

#define HG_HOT_WAIT_US 50000 /* for the workers */
#define HG_HOT_HISTORY 10    /* epochs that are kept */

/* A merged sketch of type ALL. */
struct hg_hotspan {
    struct hg_hotmerge *merged; /* NULL: nothing was counted */
    size_t bytes;
    uint64_t length_us;
};

struct hg_hottenant {
    struct hg_list node;
    struct hg_bucket *bucket; /* counted */
    struct hg_list shares;    /* handed over, not yet merged */
    struct hg_hotspan spans[HG_KEYTHROTTLE_EPOCHS];
    struct hg_keythrottle throttle;
    bool listed;                      /* workers have lists of it */
    bool small;                       /* some sketch of the last epoch was shrunk, or missing */
    uint64_t full_bytes, small_bytes; /* what it takes with sketches of either size */
    struct hg_hotrecord *history[HG_HOT_HISTORY]; /* the newest first; NULL: none */
    uint64_t activity_seen;                       /* operations of its lanes, in all */
    uint64_t activity;                            /* of the last epoch */
};

/* HG_HOT_STAT(name, kind, sentence), kind COUNTER (grows only) or GAUGE (a number of now) */
#define HG_HOT_STATS(HG_HOT_STAT)                                                                  \
    HG_HOT_STAT(epochs, COUNTER, "epochs that have ended")                                         \
    HG_HOT_STAT(late_handovers, COUNTER,                                                           \
                "handovers of a worker that came late and counted in the next "                    \
                "epoch")                                                                           \
    HG_HOT_STAT(merged_shares, COUNTER, "pairs of tenant and worker that were merged")             \
    HG_HOT_STAT(merge_ns, COUNTER, "CPU time that housekeeping spent on them, in nanoseconds")     \
    HG_HOT_STAT(last_length_us, GAUGE, "length of the last epoch in microseconds")                 \
    HG_HOT_STAT(last_shares, GAUGE, "pairs of tenant and worker in the last epoch")                \
    HG_HOT_STAT(last_merge_ns, GAUGE, "CPU time of the last epoch's end in nanoseconds")           \
    HG_HOT_STAT(shrunk_tenants, GAUGE, "tenants with a shrunk sketch in the last epoch")           \
    HG_HOT_STAT(lost_merges, COUNTER,                                                              \
                "merged results, records and lists for which there was no memory")

struct hg_hotkeys {
    struct hg_front *front;
    struct hg_mailbox *house;
    struct hg_timer wait_timer;
    bool is_open;

    /* the main thread's */
    uint64_t next_epoch, last_end_us;

    /* housekeeping's */
    uint64_t open; /* epoch that waits for workers; 0: none */
    uint64_t open_end_wall_s, open_length_us;
    uint64_t pending;              /* workers that it waits for, a bit each */
    uint64_t last;                 /* the last finished epoch */
    struct hg_list tenants;        /* with state */
    struct hg_hotparcel **parcels; /* one a worker: empty, to be sent back */
    struct hg_hotbuild *build;     /* for the rows of a tenant */
    void *scratch;                 /* for merging */
    size_t scratch_bytes;
    uint64_t refused_seen; /* mem.refused at the last epoch's end */
    bool tight;            /* memory is scarce: tenants are shrunk */
#define HG_HOT_STAT(name, kind, text) hg_counter name;
    HG_HOT_STATS(HG_HOT_STAT)
#undef HG_HOT_STAT
};

/* Before the threads run. 0 or -errno. */
HG_MUST_USE int hg_hotkeys_init(struct hg_hotkeys *hot, struct hg_front *front);
/* When `house` and its loop exist: the first epoch begins, and parcels of workers go there from now
   on. 0 or -errno. */
HG_MUST_USE int hg_hotkeys_open(struct hg_hotkeys *hot, struct hg_mailbox *house,
                                struct hg_loop *loop, uint64_t now_us);
/* When the workers have stopped and the house does not turn any more. */
void hg_hotkeys_close(struct hg_hotkeys *hot);
void hg_hotkeys_fini(struct hg_hotkeys *hot);

/* The epoch ends now, the next one at next_us; from the main thread. Nothing happens when memory
   is out: the epoch goes on. */
void hg_hotkeys_end_epoch(struct hg_hotkeys *hot, uint64_t now_us, uint64_t wall_s,
                          uint64_t next_us);

/* Buckets have been deleted: forgets them. */
void hg_hotkeys_forget_deleted(struct hg_hotkeys *hot);

/* The record of the tenant's epoch that lies `back` behind the last one, or NULL. */
const struct hg_hotrecord *hg_hotkeys_record(const struct hg_hotkeys *hot,
                                             const struct hg_bucket *bucket, unsigned back);

/* ---- hotkeys_tenant.c, for hotkeys.c ---- */

/* The tenant's state, made if there is none; NULL when memory is out. */
struct hg_hottenant *hg_hottenant_of(struct hg_hotkeys *hot, struct hg_bucket *bucket);
/* The end of an epoch: merges the shares, decides, remembers, puts lists and emptied sketches into
   the workers' parcels. */
void hg_hottenant_finish(struct hg_hotkeys *hot, struct hg_hottenant *tenant, uint64_t length_us);
/* Is there nothing to be kept of it? */
bool hg_hottenant_is_idle(const struct hg_hottenant *tenant);
void hg_hottenant_free(struct hg_hotkeys *hot, struct hg_hottenant *tenant);

/* ---- hotkeys_memory.c ---- */

/* After an epoch: who is to have small sketches from now on, when memory is scarce. */
void hg_hotkeys_share_memory(struct hg_hotkeys *hot);

#endif
