// gateshare - tickets of one server: what the workers and the process share
// SPDX-License-Identifier: BSD-3-Clause
//
// A holder's count is shared by all workers; who waits, and what is counted, is each worker's own
// (gate.h). The process has one holder of ingress tickets, each server of an upstream one of read
// and one of write tickets (gateset.h), whose sizes the main thread sets (app/gates).
#ifndef HG_FRONT_GATESHARE_H
#define HG_FRONT_GATESHARE_H

#include <stdbool.h>

#include "base/coarsehist.h"
#include "base/counter.h"
#include "base/hist.h"
#include "core/keyshare.h"
#include "core/notice.h"
#include "core/probe.h"
#include "core/serverslow.h"
#include "core/ticket.h"

/* The holders that a request goes through; execution ones by hg_ticket_kind + HG_GATE_READ. */
enum hg_gate_place { HG_GATE_INGRESS, HG_GATE_READ, HG_GATE_WRITE, HG_GATE_PLACES };

/* Written by one worker. */
struct hg_gate_tally {
#define HG_GATE_STAT(field, kind, printed, text) hg_counter field;
#include "front/gate.def"
#undef HG_GATE_STAT
};

struct hg_gate_stat_row {
    const char *field, *name, *text;
};
extern const struct hg_gate_stat_row hg_gate_stat_rows[];
enum { HG_GATE_STATS = sizeof(struct hg_gate_tally) / sizeof(hg_counter) };

/* A worker's part of a holder. */
struct hg_gate_worker {
    struct hg_gate_tally tally;
    struct hg_ticket_purse purse; /* ingress only */
    hg_counter queue_min_us;      /* smallest time in line lately; 0: somebody need not wait */
    hg_counter overloaded;        /* 1: some tenant floods its line */
    hg_counter oldest_us;   /* when the oldest request with a ticket took it; 0: there is none */
    hg_counter usual_us;    /* median of what requests take there; 0: not known */
    hg_counter answered_us; /* when one was last answered */
    /* Answered requests but those for keys that take unusually long (core/keyshare): what they
       took, what work they were (core/workclass), in us, and the sum of its squares, in 256 us²
       (modulo 2^64, as all of these). */
    hg_counter worked_us, work_us, work_squares;
    hg_counter short_count, short_us; /* as in hg_probe_holder_seen */
    struct hg_coarsehist service;     /* what the same requests took */
    struct hg_coarsehist waited;      /* how long those waited in line that got a ticket */
    hg_counter unproven_out;          /* tickets that such keys have */
    hg_counter mix;                   /* enum hg_probe_mix */
    hg_counter lowest_us;            /* hg_ticketline_lowest_us of its line; 0: nobody waited yet */
    hg_counter sole;                 /* hg_ticketline_sole of its line */
    hg_counter shortest_us, over_us; /* of its classes (hg_linework_classes), */
    hg_counter has_new, has_long;    /* likewise, 0 or 1 */
    hg_counter rounds;               /* hg_ticketline.rounds */
    hg_counter forgiven;             /* how often hg_linework_forgive was called for its tenants */
    hg_counter width;               /* see hg_store_ops.width; of both kinds together, in the one of
                                       reads */
    struct hg_keyshare_counts keys; /* requests with a ticket, or in line for one, by key */
} __attribute__((aligned(HG_CACHE_LINE)));

struct hg_gate_holder {
    struct hg_ticket ticket;
    enum hg_gate_place place;
    _Atomic int64_t waiting;           /* requests in line, of all workers */
    _Atomic int64_t held;              /* of these, those that their tenants' windows hold back */
    _Atomic int64_t parked;            /* requests that wait for their key's share */
    _Atomic int64_t stranded;          /* slots whose answer nobody waits for */
    _Atomic uint64_t max_waiting;      /* how many may be in line; 0: nobody waits */
    _Atomic uint64_t queue_timeout_us; /* how long one may wait */
    _Atomic uint64_t flood_wait_us;    /* the same at first, of a tenant that floods, */
    _Atomic bool flood_newest;         /* and are its newest served first? */
    _Atomic unsigned key_share_pct;    /* of the tickets in use, for one key; 100: no limit */
    _Atomic unsigned tenant_window;    /* a tenant's tickets at first; 0: there are no windows */
    _Atomic bool may_exceed;           /* by those who have hardly any tickets */
    _Atomic uint64_t grew_us;          /* when the size last grew; 0: never */
    _Atomic uint64_t served_us; /* the highest tag that was served, on any worker, or nearly */
    uint64_t seen_answered, seen_worked_us; /* the controller's: up to its last step, */
    uint64_t seen_work_us, seen_work_squares, seen_short_count, seen_short_us;
    uint64_t seen_refused; /* and those that got no ticket */
    unsigned worker_count;
    struct hg_gate_worker *workers;
    struct hg_hist *waits;     /* one a worker: microseconds in line, of those that got a ticket */
    struct hg_hist *own_waits; /* these, if they are the holder's own; else NULL */
};

#define HG_GATESHARE_REASONS 12 /* of refusals, at most */

/* What housekeeping has seen of a server (app/serverlook, app/throttles); under the set's lock. */
struct hg_gateshare_seen {
    struct hg_coarsehist_sum service, waited; /* all, as of the last look */
    uint64_t done;                            /* the same: answered, or out of line */
    uint64_t refused[HG_GATESHARE_REASONS];   /* the same, by reason (app/refused) */
    struct hg_serverslow slow;
    struct hg_notice slow_told;
    /* Of the time between the last two looks; 0: nothing was answered, nobody waited. */
    uint64_t p50_us, p99_us, waited_p99_us;
    uint64_t siblings_us; /* median of the medians of the others; 0: there is none */
    bool is_silent;       /* it has answered nothing, though something is under way */
    double refused_per_s;
    unsigned reason;                      /* of the most of these */
    int64_t largest[HG_TICKET_KINDS];     /* size of late, */
    uint64_t largest_us[HG_TICKET_KINDS]; /* and when it was; housekeeping's alone */
};

/* Of a server. */
struct hg_gateshare {
    struct hg_gate_holder holders[HG_TICKET_KINDS];
    unsigned index;        /* in its set */
    char *server;          /* its address; "": of an upstream without servers, or of none of them */
    _Atomic unsigned uses; /* workers' parts of it; the set changes it under its lock */
    _Atomic bool listed;   /* the configuration names it */
    uint64_t demand[HG_TICKET_KINDS]; /* tickets that were wanted at a time, fading; the set's */
    /* Requests that wait for a ticket or for a connection, and since when there are any; 0: none
       do. All of them leaving at once ends nothing by itself, see hg_gateshare_is_over. */
    _Atomic int64_t backlog;
    _Atomic uint64_t backlog_since_us;
    _Atomic uint64_t backlog_empty_us; /* when the last of them left, */
    _Atomic uint64_t backlog_late_us; /* and when somebody last gave up waiting for a ticket, as its
                                         time was over; 0: never */
    uint64_t looked_answered;         /* housekeeping's: answered requests at its last look, */
    uint64_t looked_service_us;       /* and the time that they took */
    struct hg_gateshare_seen seen;
    uint64_t stepped_us;   /* the controller's last step; under the set's lock, as what follows */
    struct hg_probe probe; /* the controller's; shown under the lock */
};

/* 0 or -ENOMEM. `waits`: where waits are recorded, one a worker, which lives longer; NULL: it has
   its own. */
HG_MUST_USE int hg_gate_holder_init(struct hg_gate_holder *holder, enum hg_gate_place place,
                                    unsigned workers, int64_t size, struct hg_hist *waits);
void hg_gate_holder_fini(struct hg_gate_holder *holder);
/* Changes the size; the worker to poke, as hg_ticket_resize. */
HG_MUST_USE uint32_t hg_gate_holder_resize(struct hg_gate_holder *holder, int64_t size,
                                           uint64_t now_us);
/* Both holders open wide until the process sets their sizes; NULL when memory is out. */
HG_MUST_USE struct hg_gateshare *hg_gateshare_new(const char *server, unsigned workers,
                                                  struct hg_hist *waits[HG_TICKET_KINDS]);
/* NULL is allowed. */
void hg_gateshare_free(struct hg_gateshare *share);

/* Of the tickets out, those that nobody has: in the workers' purses. Any thread. */
int64_t hg_gate_holder_kept(const struct hg_gate_holder *holder);
/* Adds the tallies of all workers; any thread. */
void hg_gate_holder_sum(const struct hg_gate_holder *holder, uint64_t sums[HG_GATE_STATS]);
/* Adds one tally to sums; any thread. The largest of maxima. */
void hg_gate_tally_add(const struct hg_gate_tally *tally, uint64_t sums[HG_GATE_STATS]);
/* All counters to 0, as far as what is under way allows: what was taken or waits goes on. By the
   worker whose it is. */
void hg_gate_tally_reset(struct hg_gate_tally *tally);
/* "ingress", "read", "write" */
const char *hg_gate_place_name(enum hg_gate_place place);

/* A line that runs empty because requests in it are refused is a backlog all the same, and so is
   one whose last request has just got the last ticket: it goes on when the next request has to wait
   within so long. */
#define HG_GATESHARE_GAP_US 20000

/* Nobody waits: is the backlog over? It is when a ticket of each kind is free and nobody was
   refused for want of one lately, and in any case when nobody has waited for HG_GATESHARE_GAP_US.
 */
bool hg_gateshare_is_over(const struct hg_gateshare *share, uint64_t now_us);
/* Nobody waited when it was last looked at: ends the backlog if it is over. Any thread. */
void hg_gateshare_settle(struct hg_gateshare *share, uint64_t now_us);
/* So many more requests wait, or less. */
void hg_gateshare_backlog(struct hg_gateshare *share, int change, uint64_t now_us);

#endif
