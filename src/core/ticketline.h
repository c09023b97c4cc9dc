// ticketline - the requests of one worker that wait for a ticket of one holder
// SPDX-License-Identifier: BSD-3-Clause
//
//   new tenants:  shop ──► mugs        have had no turn since they began to wait
//   old ones:     web ──► toys ──► ..  by deficit round robin, while there are no new ones
//                  │       │
//   each: waiters  w w w   w           oldest first; under its overload newest first
//
// Turns: a tenant's turn adds HG_TICKETLINE_QUANTUM to its deficit, and it is served while that
// covers the cost of its next waiter; what is left over is kept while it has waiters. Rounds in
// which nobody could be served are skipped by calculation. A tenant that begins to wait is served
// before those that have been round: else one that always waits would have a share among the few
// that wait at any moment, instead of what all the others, who ask now and then, leave over. What
// its quantum does not cover goes on in the round. A tenant that had its turn is not new again
// before the round has come to its place there, whether it waits or not: one that empties and comes
// back cannot starve the old ones; between two turns of an old one another has two at
// most, one in the round and one as new. An empty line ends the round.
//
// Overload is judged by tenant: for 100 ms it always had waiters, and whenever its turn came, its
// oldest had waited for 5 ms or more (CoDel's signal, the minimum of the sojourn times; that of the
// oldest, as it does not depend on who is served first). Then its newest is served first, and its
// waiters give up after overload_wait, counted from when their bytes may have come (`came_us`), not
// from when they were looked at: what lay behind another waiting request of its client is as old as
// that. It ends when for 100 ms nobody of it has waited for 5 ms, nor given up for its sake: one
// look at an empty or a young line is not enough, since the short waits of overload make lines
// young and empty. (Ended by one look, it is off while the backlog that it was to refuse is read
// from the clients' sockets, and at five times the capacity that backlog then grows without end.)
// Tenants that are served in time are not concerned by the overload of others. But a line is
// stalled when for 100 ms nobody at all was served though somebody waited; then the waits of all
// are cut, until one is served, or for 100 ms nobody has waited for 5 ms, nor given up: a tenant
// with a few connections need not find out by itself, again and again, that the store has stopped.
//
// Taking in is O(1) but for an overloaded tenant, then, as taking out, O(log n) on average; a turn
// costs O(tenants) at most.
//
// Pure; belongs to its worker's thread. Sources: FQ-CoDel (RFC 8290: new and old flows, CoDel by
// flow), CoDel (RFC 8289), adaptive LIFO, deficit round robin (Shreedhar and Varghese).
#ifndef HG_CORE_TICKETLINE_H
#define HG_CORE_TICKETLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/heap.h"
#include "base/list.h"

/* Units of cost a turn. One: a tenant that offers too much uses up all of its turns, others whose
   requests come one by one cannot, so a longer turn would be a larger share. */
#define HG_TICKETLINE_QUANTUM   1
#define HG_TICKETLINE_WINDOW_US 100000 /* over which the minimum sojourn is taken */
#define HG_TICKETLINE_TARGET_US 5000   /* a minimum above this is overload */

/* One tenant's place in one line; in the lane of the tenant, zeroed by hg_ticketline_tenant_init.
   It may go away, or get in another line, while nobody of it waits: nothing points at it then. */
struct hg_ticketline_tenant {
    struct hg_list node;    /* in the line's new or old, while it has waiters */
    struct hg_list waiters; /* oldest first */
    struct hg_heap came;
    struct hg_heap_node watched; /* in `heap` of the line */
    struct hg_heap *heap;        /* hot while it is overloaded, else calm; NULL: no waiters */
    uint32_t count;
    bool in_turn; /* the quantum of this turn was added */
    bool overloaded;
    int64_t deficit;
    uint64_t place;    /* its last one in the round; 0: it is new */
    uint64_t above_us; /* it has been served too late since; while count > 0 */
    uint64_t old_us;   /* when last one of it was seen to have waited too long */
};

struct hg_ticketline_waiter {
    struct hg_list node;                 /* in the tenant's */
    struct hg_list age;                  /* in the line's, by when they were pushed */
    struct hg_heap_node late;            /* in the line's, by deadline_us */
    struct hg_heap_node came;            /* in the tenant's, by came_us */
    struct hg_heap_node came_in_line;    /* in the line's, by came_us */
    struct hg_ticketline_tenant *tenant; /* NULL: in no line */
    uint64_t since_us;                   /* waits since */
    uint64_t came_us;                    /* its bytes came no earlier; at most since_us */
    uint64_t deadline_us; /* since_us + queue time-out, or the request's, whichever is first */
    uint32_t cost;        /* units; 0 counts as 1 */
};

/* May change between any two calls. */
struct hg_ticketline_conf {
    uint64_t overload_wait_us; /* how long one waits while its tenant is overloaded, or all are */
};

struct hg_ticketline {
    struct hg_list fresh; /* new tenants, in turn */
    struct hg_list old;   /* the round; ascending places */
    struct hg_list ages;  /* all waiters, oldest first */
    struct hg_heap late, came;
    struct hg_heap hot;  /* overloaded tenants by when the first of their waiters came */
    struct hg_heap calm; /* the others, by above_us, or what it was some time ago */
    uint32_t count;
    bool overloaded; /* some tenant is, or the line is stalled */
    bool stalled;
    uint64_t served_us;   /* when last somebody was served; since when somebody waits, if later */
    uint64_t late_us;     /* when last somebody was seen to have waited too long */
    uint64_t old_us;      /* the latest old_us of an overloaded tenant */
    uint64_t last_place;  /* given away in the round */
    uint64_t reached;     /* the round has left the places before this one */
    uint64_t window_us;   /* beginning of the window */
    uint64_t min_us;      /* smallest sojourn in it; UINT64_MAX: none seen */
    uint64_t last_min_us; /* of the window before, for statistics; 0: the line was empty since
                             that began. When nobody was served, the age of the oldest */
};

void hg_ticketline_init(struct hg_ticketline *line);
void hg_ticketline_tenant_init(struct hg_ticketline_tenant *tenant);

/* A waiter gets in line. since_us, came_us, deadline_us and cost are set by the caller, and stay as
   they are until it is out; nothing else is read. */
void hg_ticketline_push(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                        struct hg_ticketline_waiter *waiter, uint64_t now_us);
/* Takes out the one whose turn it is, whether it is late or not (so call hg_ticketline_expire
   first), and counts its sojourn; NULL: nobody waits. The caller has a ticket for it. */
struct hg_ticketline_waiter *hg_ticketline_pop(struct hg_ticketline *line, uint64_t now_us);
/* Takes out one that does not wait any longer: its client, or its tenant, has gone. */
void hg_ticketline_remove(struct hg_ticketline *line, struct hg_ticketline_waiter *waiter,
                          uint64_t now_us);
/* Takes out one whose time is over; NULL: there is none. Call it until then. */
struct hg_ticketline_waiter *hg_ticketline_expire(struct hg_ticketline *line,
                                                  const struct hg_ticketline_conf *conf,
                                                  uint64_t now_us);
/* No waiter's time is over before this if nothing happens until then, the overload that comes of
   that included; look again then. Exact when the line is stalled, or all tenants with waiters are
   overloaded; UINT64_MAX: nobody waits. O(1). */
uint64_t hg_ticketline_next_us(const struct hg_ticketline *line,
                               const struct hg_ticketline_conf *conf);
/* When the time of a waiter of the tenant that got in line with these would be over: in the past or
   now, and it need not get in line at all. */
uint64_t hg_ticketline_end_us(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant,
                              const struct hg_ticketline_conf *conf,
                              const struct hg_ticketline_waiter *waiter);
/* The window goes on though nothing else happens; each few milliseconds while somebody waits. */
void hg_ticketline_tick(struct hg_ticketline *line, uint64_t now_us);

#endif
