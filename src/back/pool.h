// pool - the connections of one worker to one server as one identity, and the calls that wait
// SPDX-License-Identifier: BSD-3-Clause
//
//   submit ─► link with room, most recently used first ─► sent at the end of the turn
//      │ none: the domain's planner is asked for another ...
//      └─► ... and wait in line, until a slot is free, a link comes up, or it takes too long
//
// A pool is a block of its domain (domain.h), where a planner decides who gets connections; the
// pool makes them, uses them and watches them.
//
// Packed, not spread: a second link is used when the first has no room left or a large value is on
// its way there, and wanted only when none has room; but what takes long is spread (pool_apart.c).
// One link is made at a time. While all of the domain are slow (pool_slow.c) they are made ever
// more rarely: perhaps it is a few requests that take long, and then another one helps; more of
// them would not help a server that does not answer. A pool that has none may try all the same, one
// pool at a time.
//
//   links:  `ready` (most recently used first) │ `full` │ `slow`: the oldest request has waited
//           unusually long │ in none: coming up, being bound to this identity, or drained for
//           another pool
//
// Waiting calls have no link. One that must use the link of an earlier call of its client is bound
// to it: it may exceed the depth (by as much again), and if it has to wait all the same, others
// pass by. A wake-up is due whenever a call waits and a link gets room; the tick looks after it in
// any case. New calls do not pass those that wait for any link.
//
// When no link has heard a byte for as long as a time-out, the pool is hung: one more connection is
// tried, which must answer a NOOP; calls wait for that, and are refused if it fails.
//
// The server's breaker is asked before each connect and told of everything. While it is open, calls
// are refused at once, and one worker of the process connects and asks NOOP. Other connections,
// too, have to answer a NOOP before they are used when they replace one that failed. A login that
// is refused says nothing of the server: the pool makes no connection for a while, and calls that
// no connection is left for are refused (HG_FAULT_DENIED).
//
// Belongs to the worker's thread.
#ifndef HG_BACK_POOL_H
#define HG_BACK_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "back/addrs.h"
#include "back/dialect.h"
#include "back/hub.h"
#include "back/link.h"
#include "back/resolve.h"
#include "back/server.h"
#include "back/store.h"
#include "back/pool_stats.h"
#include "base/attr.h"
#include "core/balance_types.h"
#include "core/retry.h"

/* Requests of a client that follow the one that had waited, before the next client's. */
#define HG_POOL_BURST 15

struct hg_pool;
struct hg_domain;
struct hg_remote;

/* Of all pools of a store. */
struct hg_pool_conf {
    const struct hg_dialect *dialect;
    struct hg_remote *store;
    /* As a link's owner's; NULL where the dialect knows no such replies. */
    void (*on_again)(struct hg_remote *store, struct hg_pool *pool, struct hg_link *link,
                     struct hg_call *call, const struct hg_reply *reply);
    struct hg_link_limits link;
    uint32_t share;     /* connections to a server that this worker may lease at most */
    uint32_t queue_max; /* calls that may wait, of each pool */
    uint32_t keepalive_s;
    struct hg_uptls *uptls; /* NULL: plain connections */
    uint64_t connect_timeout_us;
    uint64_t queue_timeout_us;
    uint64_t idle_us;     /* an idle link is closed after so long */
    uint64_t min_hold_us; /* a link stays with a pool for at least so long */
};

struct hg_pool {
    struct hg_server *server;
    struct hg_hub *hub;
    const struct hg_pool_conf *conf;
    struct hg_upstream_counters *counters;
    struct hg_domain *domain;
    struct hg_list ready, full, slow; /* hg_link.node */
    uint32_t slow_count;
    uint64_t answered_us; /* when one was answered in time */
    bool apart; /* requests take long: they are put on connections of their own (pool_apart.c) */
    struct hg_list waiting; /* hg_call_place.node, oldest first */
    uint32_t waiting_count;
    uint32_t waiting_bound;             /* of these, bound to a link: nobody waits behind them */
    uint32_t waiting_apart;             /* not of these: calls in the line of the quarantine */
    uint32_t sent_untold;               /* requests that the retry budget has not heard of */
    uint32_t burst;                     /* further calls that may come with the one that is woken */
    struct hg_call *waking;             /* is in its on_room */
    struct hg_balance_block block;      /* the planner's */
    const struct hg_identity *identity; /* whose connections these are */
    uint64_t waiting_end_us;            /* no waiting call's time is over before */
    uint64_t waking_since_us;
    struct hg_hub_wake wake;
    struct hg_retry retry;
    uint32_t worker;
    bool draining, closing;
    bool hung;         /* no link has heard a byte for a whole time-out, though it should have */
    bool trial_failed; /* nor could another be made since */

    struct hg_link **links; /* all that are not DEAD */
    uint32_t link_count, link_cap;
    uint32_t up_count;      /* READY or DRAINING */
    struct hg_link *coming; /* the one that is made; perhaps its name is still looked up */
    enum hg_breaker_connect coming_kind;
    bool in_doubt;    /* the last one failed: the next must answer before it is used */
    uint64_t told_us; /* when the retry budget last heard how much was sent */
    struct hg_resolver *resolver;
    struct hg_resolve *resolve; /* under way */
    struct hg_addrs addrs;      /* for `coming` */

    bool no_rebind; /* the server refused the login on a connection that had one */
    bool denied;    /* the server refused the login ... */
    char denial[HG_LINK_DENIAL_MAX + 1]; /* ... and said this */
    uint32_t denials;                    /* in a row */
    uint64_t denied_until_us; /* no further attempt before, unless with another password */
    const char *denied_password;

    struct hg_list node; /* of the domain, while the planner knows the block */
    bool listed;
    struct hg_pool_counters *stats;
    struct hg_pool_totals totals;
};

/* `stats`: the set of the worker and the identity. */
void hg_pool_init(struct hg_pool *pool, struct hg_domain *domain,
                  const struct hg_identity *identity, struct hg_pool_counters *stats);
/* Answers every call (HG_FAULT_LOST), ends every link. */
void hg_pool_fini(struct hg_pool *pool);

/* As the store's functions of these names. */
enum hg_submit hg_pool_submit(struct hg_pool *pool, struct hg_call *call);
void hg_pool_drain(struct hg_pool *pool);
/* Takes a waiting call out of the line; one that is on a link is cancelled there. */
void hg_pool_cancel(struct hg_pool *pool, struct hg_call *call);

/* Every 10 ms while it says that it has something to look after, else every second. */
bool hg_pool_tick(struct hg_pool *pool, uint64_t now_us);

/* Requests that a server still owes a reply to. */
uint32_t hg_pool_pending(const struct hg_pool *pool);

#endif
