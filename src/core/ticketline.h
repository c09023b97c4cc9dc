// ticketline - the requests of one worker that wait for a ticket of one holder
// SPDX-License-Identifier: BSD-3-Clause
//
//   tenants with waiters, lowest tag first:   shop 120 ms ──► web 121 ms ──► toys 480 ms
//                                              │                │             │
//   each: waiters, oldest first                w w w            w             w w w w w
//
// Turns. The next ticket goes to the tenant with the lowest tag (start-time fair queueing). The tag
// is ticket time: what the tenant's tickets have taken so far, plus its tickets x its mean service
// for those that are out. The cost of a request is never estimated for good: while it runs, each
// microsecond is added, so nothing is corrected when it ends, and a request that never ends is paid
// for as well. A tenant that begins to wait is raised to the tag that was served last: idleness
// earns no credit. The line's clock, by which tickets are charged, stands still while nobody waits:
// a ticket that nobody else wanted costs nothing. It also stands still while nothing has finished
// for 100 ms and for four usual services, though several tenants have tickets: the store stalls.
// Else the one that happened to have most of them when the store stopped would pay for the others.
//
//     tag = used + out x (clock - at) + out x mean service
//
// While short requests wait in the store's queue, all others do, too, and a ticket is not charged
// for the part of its time that is wait: usual / (usual + wait) of it counts. Else a tenant of
// short requests would pay for the queue that long ones make. Tags of several workers are of one
// scale: who begins to wait is raised to the tag that was served last on any of them, and a ticket
// that is given back goes to the worker where the lowest tag waits (front/gate_workers.c).
//
// Tags move while their tenants wait. All but one change raise them: time, and a ticket more. Only
// a ticket given back lowers one, by the mean service. So the heap holds lower bounds: a ticket
// given back lowers the tenant's key at once, and what raises a tag is left for later. A pop looks
// at the first, moves it to where it belongs if its tag has risen, and looks again, until the first
// is in its place: that has exactly the lowest tag. A tenant is moved once at most in a pop. Those
// are moved whose tags were passed by the lowest since they were last looked at: all of them after
// a pause, one or two in a busy line, where tags rise by one service with each grant.
//
// Admission. A request that finds no ticket gets in line if it can be served in time:
//
//     predicted = (tenant's waiters + 1) / max(its grants a second, its tickets / its mean service,
//                                              (size / tenants with tickets or waiters) / its mean)
//
// and no less than the length of a stall, if nothing has finished for 300 ms and for four usual
// services. It is refused when that is beyond the tenant's bound, queue_timeout less the age of the
// request's bytes, unless the tenant's line is shorter than its share of the tickets, or the size
// has just grown, which no measurement shows yet. When a tenant exceeds its bound, or runs out of
// time in line with more waiters than its share, it floods: its bound is flood_wait, then twice
// that each second, until it is queue_timeout again. Nobody else's bound changes. A stall makes no
// flood. A request that is in line is refused when its time is over (deadline_us), and not before.
//
// Windows. A tenant may have so many tickets; its further requests are held back: they wait, but
// take no turns, and others pass them. So one that begins with many slow requests does not have all
// tickets before anything is known of them. Concurrency is earned: with each answer that it gets
// while some are held back the window grows by one, to twice what it has and two, so it doubles
// each service. And each eight answers to short requests, sent since then, that come in the usual
// time prove that the store has room: the window grows by half. It is halved for each second
// without a ticket. It does not bind a tenant that nobody else was active beside, on any worker
// (the caller tells), for a second. When short requests wait in the store, the windows of tenants
// of long ones are cut by what of these waits there, by Little's law, to their part of what the
// store does at least; beyond that size they grow by one a second, for ten seconds. If that does
// not help in three services, nobody's requests are to blame: the window is what it was, may be
// twice that, and so much more each second, and the caller is told that short requests have become
// slower.
//
// The mean is an average over sixteen services. One of more than 300 ms and four means counts as a
// quarter more than the mean, lest the few requests that were under way in a stall make all look
// slow afterwards; if services of that length go on, the mean is there after two hundred. For the
// same reason grants a second leave out the time for which the store was silent, beyond two usual
// services.
//
// Taking and giving a ticket is O(1) while nobody waits. Getting in line is O(1) but for a heap of
// deadlines, taking out is O(log n) on average.
//
// Pure; belongs to its worker's thread. Times come from one clock that never goes back. Sources:
// start-time fair queueing (Goyal, Vin, Cheng), its form for servers with several slots (SFQ(D),
// Jin, Chase, Kaur), costs charged as measured (Retro, 2DFQ), Little's law.
#ifndef HG_CORE_TICKETLINE_H
#define HG_CORE_TICKETLINE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/heap.h"
#include "base/list.h"

#define HG_TICKETLINE_WINDOW_US 100000  /* over which the minimum sojourn is taken */
#define HG_TICKETLINE_ACTIVE_US 1000000 /* a tenant is active for so long after a request */
#define HG_TICKETLINE_STALL_US  300000  /* nothing finished for so long may be a stall */
#define HG_TICKETLINE_QUIET_US  100000  /* and after so long, of several tenants, costs nothing */
#define HG_TICKETLINE_GROWTH_US 100000  /* the effect of a larger size shows after so long */
#define HG_TICKETLINE_DOUBLE_US 1000000 /* a flooding tenant's bound doubles each time */
#define HG_TICKETLINE_IDLE_US                                                                      \
    1000000                           /* a tenant's window is halved for so long without a ticket  \
                                       */
#define HG_TICKETLINE_SERVICE_US 1000 /* mean service of a tenant that had no answer yet */

/* One tenant's place in one line, zeroed by hg_ticketline_tenant_init. It belongs to that line from
   its first ticket or waiter on; to be freed, or used in another line (after another
   hg_ticketline_tenant_init), it must have neither. What the path of each request touches is
   first. */
struct hg_ticketline_tenant {
    uint64_t used_us;   /* ticket time, up to at_us */
    uint64_t at_us;     /* of the line's clock */
    uint32_t out;       /* its tickets */
    uint32_t count;     /* its waiters */
    uint32_t mean_16us; /* mean service in sixteenths of a microsecond; 0: no answer yet */
    uint32_t granted;   /* tickets since rated_us */
    uint64_t id;        /* the caller's: tells it from all others, of any worker; 0: nobody asks */
    uint32_t window;    /* of the line, in which it was active, */
    bool was_active;    /* and was it in the one before that? */
    uint32_t limit;     /* tickets that it may have; UINT32_MAX: all */
    bool is_held;       /* it has as many, so its waiters are held back */
    bool is_short;      /* the caller's: its requests take hardly longer than the shortest; */
    uint32_t usual_us;  /* and what they usually take; 0: not known */
    uint32_t failed;    /* it may not soon be larger than that; UINT32_MAX: it may, */
    uint32_t raise_by;  /* and so much more each second */
    double grants_per_us;
    uint64_t idle_us;         /* since when it has no ticket */
    struct hg_list held;      /* in the line's, while it is held back */
    uint64_t cut_us;          /* when its window was cut, */
    uint64_t raised_us;       /* or last grew beyond `failed`; */
    uint64_t first_cut_us;    /* of cuts one after the other the first; 0: there is none */
    uint32_t before;          /* what it was before that, */
    uint32_t over_us;         /* and windows.over_us then */
    uint64_t rated_us;        /* on the clock of an answering store, see hg_ticketline.silent_us */
    struct hg_list waiters;   /* oldest first */
    struct hg_heap_node turn; /* in the line's turns while it has waiters; key: its tag, or less */
    uint64_t flood_since_us;  /* see hg_ticketline_flood_since_us */
    uint64_t flood_us;        /* its bound doubles from then on */
    uint64_t predicted_us;    /* at its last refusal; 0: none was refused */
};

struct hg_ticketline_waiter {
    struct hg_list node;                 /* in the tenant's */
    struct hg_list age;                  /* in the line's, by when they were pushed */
    struct hg_heap_node late;            /* in the line's, by deadline_us */
    struct hg_ticketline_tenant *tenant; /* NULL: in no line */
    bool parked;                         /* waits for something else than a ticket */
    uint64_t since_us;                   /* waits since */
    uint64_t came_us;                    /* its bytes were there by then; at most since_us */
    uint64_t deadline_us; /* since_us + queue time-out, or the request's, whichever is first */
};

/* May change between any two calls. */
struct hg_ticketline_conf {
    uint64_t queue_timeout_us; /* the longest wait */
    uint64_t flood_wait_us;    /* the wait of a tenant that floods, at first */
    uint64_t grew_us;          /* when the size last grew; 0: never */
    uint32_t size;             /* tickets of this line's holder, or its worker's part of them */
    bool flood_newest;         /* while a tenant floods, its newest is served first */
};

/* Of the tickets that tenants may have. */
struct hg_ticketline_windows {
    uint32_t least;    /* of a tenant at first; 0: there are none */
    uint32_t newcomer; /* of one of several that come at once, at least */
    uint32_t part;     /* of one whose window is cut, at least */
    uint32_t over_us;  /* by which short requests take longer than usual; 0: not to speak of */
    bool has_others;   /* other tenants than the line's only one are active on other workers */
    bool no_queue;     /* hardly more tickets are out than the store does at a time */
    bool vain;         /* set here: for another reason than that long ones are in their way */
};

struct hg_ticketline {
    uint32_t count;    /* waiters that take turns */
    uint32_t held;     /* who are held back, */
    uint32_t parked;   /* who waits for something else; neither is one of them */
    uint32_t out;      /* tickets of all tenants */
    uint32_t holding;  /* tenants with tickets */
    uint32_t starved;  /* tenants with waiters and no ticket */
    uint32_t window;   /* number of the current one */
    uint64_t clock_us; /* time in which somebody waited and the store answered, */
    uint64_t moved_us; /* up to then */
    uint64_t stall_us; /* if nothing finishes, the store stalls from then on; UINT64_MAX: never */
    uint64_t finished_us; /* last answer; or since when a ticket is out, if later */
    struct hg_ticketline_windows windows;
    struct hg_list held_back; /* tenants */
    uint64_t unknown_us;      /* see hg_ticketline_holds_unknown */
    uint64_t grown_us;        /* when their windows last grew by proofs, */
    uint32_t proofs;          /* of which there have been so many since; */
    uint32_t rounds;          /* and so often enough of them */
    uint32_t seen;            /* tenants that were active in this window, */
    uint32_t seen_before;     /* in the one before */
    uint64_t sole;            /* id of the only one of these; 0: there is none, */
    uint64_t sole_before;     /* HG_TICKETLINE_SEVERAL: there are more */
    uint32_t fresh;           /* the last window in which one was that had no answer yet, */
    uint32_t fresh_count;     /* and how many were, in that */
    uint32_t mean_16us;       /* mean service while somebody waits, as in a tenant */
    uint64_t silent_us;   /* time in which the store was silent for too long, up to finished_us */
    uint64_t active_us;   /* beginning of this window */
    struct hg_heap turns; /* tenants with waiters */
    uint64_t served_us;   /* highest tag that was served, on any worker */
    struct hg_heap late;  /* waiters */
    struct hg_list ages;  /* waiters, oldest first */
    uint64_t flooded_us;  /* until then some tenant floods */
    uint64_t min_from_us; /* the smallest sojourn is taken since */
    uint64_t min_us;      /* smallest sojourn since; UINT64_MAX: nobody was served */
    uint64_t last_min_us; /* of the window before, for statistics; 0: the line was empty since
                             that began. When nobody was served, the age of the oldest */
};

/* Why a request may not get in line. */
enum hg_ticketline_why {
    HG_TICKETLINE_WAIT,    /* it may */
    HG_TICKETLINE_FLOOD,   /* its tenant's line is too long for it to be served in time */
    HG_TICKETLINE_STALLED, /* nothing has finished for longer than it may wait */
    HG_TICKETLINE_OLD      /* its bytes have lain for as long as it may wait */
};

struct hg_ticketline_admission {
    enum hg_ticketline_why why;
    uint64_t predicted_us; /* how long it would wait */
};

void hg_ticketline_init(struct hg_ticketline *line);
void hg_ticketline_tenant_init(struct hg_ticketline_tenant *tenant);

/* ---- tickets ---- */

/* For the functions below: the clock's time, the charge up to now, a sample of a mean, and what is
   done if somebody waits: the clock moves on, and a ticket was given back. */
static inline uint64_t hg_ticketline_clock_us(const struct hg_ticketline *line, uint64_t now_us)
{
    if (HG_LIKELY(line->count == 0))
        return line->clock_us;
    uint64_t until_us = now_us < line->stall_us ? now_us : line->stall_us;
    return line->clock_us + (until_us > line->moved_us ? until_us - line->moved_us : 0);
}

/* What of that time the tenant's requests have a place in the store: while short ones wait in its
   queue, so do all others. Those that nothing is known of count as if they had one all the time. */
static inline uint64_t hg_ticketline_net_us(const struct hg_ticketline *line,
                                            const struct hg_ticketline_tenant *tenant, uint64_t us)
{
    uint64_t over_us = line->windows.over_us, usual_us = tenant->usual_us;
    return HG_LIKELY(over_us == 0) || usual_us == 0 ? us : us * usual_us / (usual_us + over_us);
}

static inline void hg_ticketline_charge(const struct hg_ticketline *line,
                                        struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    uint64_t clock_us = hg_ticketline_clock_us(line, now_us);
    if (HG_LIKELY(clock_us == tenant->at_us))
        return;
    tenant->used_us += hg_ticketline_net_us(line, tenant, tenant->out * (clock_us - tenant->at_us));
    tenant->at_us = clock_us;
}

static inline uint32_t hg_ticketline_mean(uint32_t mean_16us, uint64_t service_us)
{
    if (HG_UNLIKELY(mean_16us == 0))
        return (uint32_t)(service_us < UINT32_MAX / 16 ? service_us : UINT32_MAX / 16) * 16;
    if (HG_UNLIKELY(service_us > HG_TICKETLINE_STALL_US) && service_us > mean_16us / 4)
        service_us = mean_16us / 16 + mean_16us / 64;
    uint64_t next_16us = mean_16us + service_us - mean_16us / 16;
    return next_16us < UINT32_MAX ? (uint32_t)next_16us : UINT32_MAX;
}

void hg_ticketline_move(struct hg_ticketline *line, uint64_t now_us);
void hg_ticketline_see(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant);
void hg_ticketline_given(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                         uint64_t service_us, bool answered, uint64_t now_us);
void hg_ticketline_rejoin(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                          bool answered, uint64_t now_us);
void hg_ticketline_hold_back(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                             uint64_t now_us);
void hg_ticketline_cut(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                       uint64_t now_us);
void hg_ticketline_shrink(const struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                          uint64_t now_us);

/* The tenant has one ticket more; for each ticket, those of popped waiters and those that were
   taken without waiting. */
static HG_ALWAYS_INLINE void
hg_ticketline_take(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    hg_ticketline_charge(line, tenant, now_us);
    tenant->granted++;
    line->out++;
    if (HG_UNLIKELY(tenant->window != line->window))
        hg_ticketline_see(line, tenant);
    if (HG_UNLIKELY(tenant->count > 0) && tenant->out + 1 >= tenant->limit)
        hg_ticketline_hold_back(line, tenant, now_us);
    if (tenant->out++ > 0)
        return;
    if (HG_UNLIKELY(now_us - tenant->idle_us >= HG_TICKETLINE_IDLE_US))
        hg_ticketline_shrink(line, tenant, now_us);
    line->starved -= tenant->count > 0;
    if (line->holding++ == 0)
        line->finished_us = now_us;
    if (HG_UNLIKELY(line->count > 0))
        hg_ticketline_move(line, now_us);
}

/* What its requests take: service_us. While nobody waits, a sample of them tells enough.
   `answered`: by the store; else all that is known is that the service takes no less. */
static inline void hg_ticketline_learn(struct hg_ticketline_tenant *tenant, uint64_t service_us,
                                       bool answered)
{
    if (HG_LIKELY(answered) || service_us > tenant->mean_16us / 16)
        tenant->mean_16us = hg_ticketline_mean(tenant->mean_16us, service_us);
}

/* It gives one back, which it has had for service_us, and was told of that before. */
static HG_ALWAYS_INLINE void hg_ticketline_return(struct hg_ticketline *line,
                                                  struct hg_ticketline_tenant *tenant,
                                                  uint64_t service_us, bool answered,
                                                  uint64_t now_us)
{
    assert(tenant->out > 0);
    hg_ticketline_charge(line, tenant, now_us);
    line->out--;
    if (--tenant->out == 0) {
        line->starved += tenant->count > 0;
        line->holding--;
        tenant->idle_us = now_us;
    }
    if (HG_UNLIKELY(line->windows.over_us > 0) && answered && !tenant->is_short)
        hg_ticketline_cut(line, tenant, now_us);
    if (HG_UNLIKELY(tenant->is_held))
        hg_ticketline_rejoin(line, tenant, answered, now_us);
    if (HG_UNLIKELY(line->count > 0))
        hg_ticketline_given(line, tenant, service_us, answered, now_us);
    if (HG_LIKELY(answered))
        line->finished_us = now_us;
}

/* Both. */
static inline void hg_ticketline_give(struct hg_ticketline *line,
                                      struct hg_ticketline_tenant *tenant, uint64_t service_us,
                                      bool answered, uint64_t now_us)
{
    hg_ticketline_learn(tenant, service_us, answered);
    hg_ticketline_return(line, tenant, service_us, answered, now_us);
}

/* ---- windows ---- */

/* May it have one more ticket, if there is one? Else it has to wait. */
HG_MUST_USE bool hg_ticketline_widen(struct hg_ticketline *line,
                                     struct hg_ticketline_tenant *tenant);
HG_MUST_USE static inline bool hg_ticketline_has_room(struct hg_ticketline *line,
                                                      struct hg_ticketline_tenant *tenant)
{
    return HG_LIKELY(tenant->out < tenant->limit) || hg_ticketline_widen(line, tenant);
}

/* A request of a short class was answered, that got its ticket at granted_us: in the usual time, so
   the store has room for more; or not. While some are held back, on any worker. */
void hg_ticketline_prove(struct hg_ticketline *line, bool in_time, uint64_t granted_us,
                         uint64_t now_us);

/* Enough of that was proved on another worker. */
void hg_ticketline_grow(struct hg_ticketline *line, uint64_t now_us);

/* ---- waiters ---- */

/* May the request get in line? since_us, came_us and deadline_us of the waiter are set. What is
   refused counts for its tenant's bound, so ask once for each request. */
HG_MUST_USE struct hg_ticketline_admission
hg_ticketline_admit(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                    const struct hg_ticketline_conf *conf,
                    const struct hg_ticketline_waiter *waiter, uint64_t now_us);
/* It gets in line, admitted or not. since_us, came_us and deadline_us stay as they are until it is
   out; nothing else is read. */
void hg_ticketline_push(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                        struct hg_ticketline_waiter *waiter, uint64_t now_us);
/* The lowest tag of those that take turns; UINT64_MAX: nobody does. */
uint64_t hg_ticketline_lowest_us(struct hg_ticketline *line, uint64_t now_us);
/* That tag was served, on another worker: who begins to wait is raised to it. */
static inline void hg_ticketline_note_served(struct hg_ticketline *line, uint64_t tag_us)
{
    if (line->served_us < tag_us)
        line->served_us = tag_us;
}
/* Takes out the one whose turn it is, whether it is late or not (so call hg_ticketline_expire
   first), and counts its sojourn; NULL: nobody waits. The caller has a ticket for it, and calls
   hg_ticketline_take before it pops another. */
struct hg_ticketline_waiter *hg_ticketline_pop(struct hg_ticketline *line,
                                               const struct hg_ticketline_conf *conf,
                                               uint64_t now_us);
/* It waits for something else than a ticket, for as long as it might wait for one: it has no turn,
   and is nowhere counted but in `parked`. hg_ticketline_expire and hg_ticketline_remove take it
   out; then it may be pushed. */
void hg_ticketline_park(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                        struct hg_ticketline_waiter *waiter);
/* Takes out one that does not wait any longer: its client, or its tenant, has gone. */
void hg_ticketline_remove(struct hg_ticketline *line, struct hg_ticketline_waiter *waiter,
                          uint64_t now_us);
/* Takes out one whose time is over; NULL: there is none. Call it until then. */
struct hg_ticketline_waiter *hg_ticketline_expire(struct hg_ticketline *line,
                                                  const struct hg_ticketline_conf *conf,
                                                  uint64_t now_us);
/* When the first waiter's time is over; UINT64_MAX: nobody waits. O(1). */
uint64_t hg_ticketline_next_us(const struct hg_ticketline *line);
/* Windows go on though nothing else happens; every 100 ms or more often. */
void hg_ticketline_tick(struct hg_ticketline *line, uint64_t now_us);

/* ---- what others may know ---- */

/* Is a tenant held back whose requests are not known to be short, or was until half a second ago?
 */
bool hg_ticketline_holds_unknown(struct hg_ticketline *line, uint64_t now_us);
/* One that was not known is. */
static inline void hg_ticketline_forget_unknown(struct hg_ticketline *line)
{
    line->unknown_us = 0;
}

/* How long a request of the tenant may wait in line, if its bytes came just now. */
uint64_t hg_ticketline_bound_us(const struct hg_ticketline_tenant *tenant,
                                const struct hg_ticketline_conf *conf, uint64_t now_us);
/* Since when the tenant floods; 0: it does not. */
uint64_t hg_ticketline_flood_since_us(const struct hg_ticketline_tenant *tenant,
                                      const struct hg_ticketline_conf *conf, uint64_t now_us);
/* Has nothing finished for so long that the store seems to stall, as the tenant sees it? */
bool hg_ticketline_is_stalled(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant, uint64_t now_us);
/* Does any tenant flood? */
static inline bool hg_ticketline_is_flooded(const struct hg_ticketline *line, uint64_t now_us)
{
    return now_us < line->flooded_us;
}
/* The tenant's tag: the lowest has the next turn. */
uint64_t hg_ticketline_tag_us(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant, uint64_t now_us);
#define HG_TICKETLINE_SEVERAL UINT64_MAX
/* The id of the only active tenant; 0: none is; HG_TICKETLINE_SEVERAL: more than one. As of the
   last second or two. */
uint64_t hg_ticketline_sole(const struct hg_ticketline *line);
/* Active tenants, at least 1; as of the last second. */
uint32_t hg_ticketline_active(const struct hg_ticketline *line);

#endif
