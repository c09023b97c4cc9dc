// bucket - the run-time record of a tenant: its credits, settings and counters
// SPDX-License-Identifier: BSD-3-Clause
//
// A request references its bucket from admission to settlement, a session the one it has selected;
// so a record outlives every snapshot that lists it, and a bucket made again under the name is a
// new record. What several threads touch is atomic; each worker has a lane of its own for the rest.
#ifndef HG_FRONT_BUCKET_H
#define HG_FRONT_BUCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/span.h"
#include "core/held.h"
#include "core/readcost.h"
#include "core/ticketline.h"
#include "core/workclass.h"
#include "front/gateshare.h"

#define HG_BUCKET_NAME_MAX      100
#define HG_TABLE_SESSIONS       100 /* unless it is told otherwise */
#define HG_TABLE_SESSION_IDLE_S 60

struct hg_upstream;
struct hg_hotshare;
struct hg_hotlist;
struct hg_bindthrottle;
struct hg_hottenant;

/* Only an active one is served. Paused and disabled are its operator's doing; an orphan's upstream
   is gone. */
enum hg_bucket_state {
    HG_BUCKET_ACTIVE,
    HG_BUCKET_PAUSED,
    HG_BUCKET_DISABLED,
    HG_BUCKET_ORPHAN,
    HG_BUCKET_DELETED
};
enum hg_mode { HG_MODE_OFF, HG_MODE_OBSERVE, HG_MODE_ENFORCE };
enum hg_reject { HG_REJECT_TMPFAIL, HG_REJECT_BUSY, HG_REJECT_DEGRADE };

enum hg_outcome {
#define HG_OUTCOME(name, printed, text) HG_OUTCOME_##name,
#include "front/outcome.def"
#undef HG_OUTCOME
    HG_OUTCOMES
};

struct hg_outcome_row {
    const char *name, *text;
};
extern const struct hg_outcome_row hg_outcome_rows[HG_OUTCOMES];
/* Was the request refused by the front end: not carried out, for a limit, or a server that is out?
 */
bool hg_outcome_is_refusal(enum hg_outcome outcome);

/* Requests that were refused while their tenant flooded a line (flood.h). */
struct hg_flood_count {
    uint64_t number;  /* of this count; 0: there was none yet */
    uint64_t last_us; /* when it last grew */
    uint64_t refused;
};

/* A tenant's place in a worker's line for one kind of ticket of one server. */
struct hg_gate_seat {
    struct hg_ticketline_tenant queue;
    struct hg_keyshare_tenant usual; /* what its requests take there, */
    struct hg_workclass work;        /* and what work they are */
    struct hg_flood_count flood;
};

/* By what a tenant's requests take turns (gate_party.c). */
enum hg_fair_by { HG_FAIR_BY_TENANT, HG_FAIR_BY_USER, HG_FAIR_BY_ADDRESS };

#define HG_GATE_PARTIES 64 /* of a tenant at a server, on each worker */

struct hg_gate_cell {
    uint64_t part; /* number of the worker's part (gate.h) whose lines the seats are in; 0: parties
                      are told apart, or look at `home` */
    struct hg_gate_seat seats[HG_TICKET_KINDS];
    uint64_t home;                 /* number of the part, whatever `part` is; 0: of none yet */
    struct hg_gate_cell **parties; /* HG_GATE_PARTIES of them, each NULL until it is needed; NULL:
                                      none were ever told apart, or this is one of them */
};

/* One worker's part of a bucket; written by that worker only. */
struct hg_lane {
    /* Looked at by every request, as the counters that follow. */
    struct hg_hotshare *hot;       /* its hot keys of this epoch; NULL: nothing was counted yet */
    struct hg_hotlist *hot_list;   /* its throttled keys; NULL: none */
    struct hg_bindthrottle *binds; /* its evicted keys; NULL: none */
#define HG_LANE(name, kind, text) hg_counter name;
#include "front/lane.def"
#undef HG_LANE
    hg_counter outcomes[HG_OUTCOMES];
    struct hg_readcost read_cost; /* recent, for the estimate of a read */
    struct hg_list held;          /* sessions whose next request waits for credits */
    struct hg_list node;          /* in the worker's list of lanes that hold requests */
    struct hg_bucket *bucket;
    struct hg_held holding; /* what was published of the held ones; head_* of the oldest */
    uint32_t users;         /* sessions that have it selected, and requests under way */
    uint32_t identity;      /* as whom it goes to its servers, see back/identity.h; a number ... */
    uint64_t generation;    /* ... of this generation of its upstream; 0: of none */
    bool pass_wanted;       /* the held ones should be decided again in this turn */
    bool poke_wanted;       /* others that hold should be told of a refund in this turn */
    struct hg_list ready;   /* sessions with frames left over from an earlier turn */
    struct hg_list ready_node; /* in the worker's list of lanes with such */
    uint64_t turn;             /* the turn of `turn_frames` */
    uint32_t turn_frames;
    struct hg_list used;                          /* in the worker's list of lanes with users */
    struct hg_gate_tally tallies[HG_GATE_PLACES]; /* its tickets */
    struct hg_ticketline_tenant ingress;          /* its requests in line for an ingress ticket */
    struct hg_flood_count ingress_flood;
    struct hg_gate_cell **cells; /* by index of the share (gateset.h): its requests in line for a
                                    server; NULL: it has not waited there yet */
    unsigned cell_count;
    uint8_t fair_by;              /* enum hg_fair_by, as the cells are used now */
    struct hg_list bound;         /* in the worker's list of lanes with evicted keys */
    struct hg_hotlist *hot_spare; /* the same, for the beginning of the next epoch */
} __attribute__((aligned(HG_CACHE_LINE)));

struct hg_bucket {
    char name[HG_BUCKET_NAME_MAX + 1];
    size_t name_len;
    _Atomic unsigned refs;
    _Atomic int state;  /* enum hg_bucket_state */
    _Atomic bool moved; /* a record of its name has taken its place: what is under way ends here,
                           its sessions go over when their worker adopts the directory */
    struct hg_upstream *upstream; /* the bucket holds a reference */
    uint32_t tenant_id;           /* its key space in an embedded store */
    char *prefix;                 /* in front of each key towards servers; never NULL */
    size_t prefix_len;
    _Atomic int credit_mode;         /* enum hg_mode */
    _Atomic int reject_status;       /* enum hg_reject */
    _Atomic int ticket_mode;         /* enum hg_mode */
    _Atomic int bind_mode;           /* enum hg_mode */
    _Atomic int fair_by;             /* enum hg_fair_by */
    _Atomic unsigned bind_min_bytes; /* shorter keys are never evicted or throttled */
    _Atomic unsigned data_limit_status;
    _Atomic unsigned max_connections; /* 0: no limit */
    _Atomic bool allow_flush;
    _Atomic bool shared; /* others' keys lie in the same place, or may lie there */
    _Atomic unsigned connections;
    _Atomic unsigned table_sessions;       /* sessions of queries that it may have */
    _Atomic unsigned table_session_idle_s; /* after which one ends */
    struct hg_list cursors;                /* its idle sessions; this and the next two are */
    struct hg_list cursors_node;           /* cursor.c's, under its lock */
    unsigned cursor_count;
    _Atomic uint64_t hotkey_threshold; /* operations an epoch; 0: nothing is throttled */
    _Atomic int hotkey_mode;           /* enum hg_mode */
    _Atomic int hotkey_control;        /* enum hg_hotkey_control */
    _Atomic bool hotkey_tracking;
    _Atomic bool hotkey_shrunk;      /* its sketches are to be small ones: memory is scarce */
    struct hg_hottenant *hot_tenant; /* housekeeping's */
    _Atomic unsigned hot_throttled;  /* keys on its list, of the last epoch's end */
    _Atomic bool required;           /* the process is not ready while its upstream is down */
    _Atomic int held_for; /* for what the last request was held or refused: one of the limits of
                             enum hg_credit_reason; 0: none was yet */
    struct hg_credit_bucket credit;
    struct hg_credit_lane *credit_lanes; /* one a worker */
    /* Called with the last reference; set by the owner. */
    void (*retire)(struct hg_bucket *bucket, void *ctx);
    void *retire_ctx;
    unsigned lane_count;
    struct hg_lane lanes[];
};

/* A bucket with one reference and `workers` lanes; NULL when memory is out. The upstream reference
   is the caller's to give. */
HG_MUST_USE struct hg_bucket *hg_bucket_new(const char *name, unsigned workers);

/* Sets up a zeroed lane. */
void hg_lane_init(struct hg_lane *lane, struct hg_bucket *bucket);
void hg_lane_fini(struct hg_lane *lane);
/* The lane's cell of a server, made if there is none; NULL when memory is out. */
HG_MUST_USE struct hg_gate_cell *hg_lane_cell(struct hg_lane *lane, unsigned server);
/* A cell with empty seats; NULL when memory is out. */
HG_MUST_USE struct hg_gate_cell *hg_gate_cell_new(void);
/* All cells of a server: call it with 0, 1, ... below hg_lane_cell_count; NULL: that one is not
   there. The first is the tenant's own, the others those of its parties. */
struct hg_gate_cell *hg_lane_cell_at(const struct hg_lane *lane, unsigned server, unsigned i);
unsigned hg_lane_cell_count(const struct hg_lane *lane, unsigned server);

static inline struct hg_bucket *hg_bucket_ref(struct hg_bucket *bucket)
{
    atomic_fetch_add_explicit(&bucket->refs, 1, memory_order_relaxed);
    return bucket;
}

/* NULL is allowed. */
void hg_bucket_unref(struct hg_bucket *bucket);

static inline bool hg_bucket_live(const struct hg_bucket *bucket)
{
    return atomic_load_explicit((_Atomic int *)&bucket->state, memory_order_acquire) ==
           HG_BUCKET_ACTIVE;
}

/* Is its record out of use for good? */
static inline bool hg_bucket_is_over(const struct hg_bucket *bucket)
{
    struct hg_bucket *b = (struct hg_bucket *)(uintptr_t)bucket;
    return atomic_load_explicit(&b->moved, memory_order_acquire) ||
           atomic_load_explicit(&b->state, memory_order_acquire) == HG_BUCKET_DELETED;
}

/* Has it as many connections as it may? */
static inline bool hg_bucket_is_full(const struct hg_bucket *bucket)
{
    struct hg_bucket *b = (struct hg_bucket *)bucket;
    unsigned max = atomic_load_explicit(&b->max_connections, memory_order_relaxed);
    return max > 0 && atomic_load_explicit(&b->connections, memory_order_relaxed) >= max;
}

#endif
