// pool - the connections of one worker to one server, and the calls that wait for them
// SPDX-License-Identifier: BSD-3-Clause
//
//   submit ─► link with room, most recently used first ─► sent at the end of the turn
//      │ none: open another if that is allowed ...
//      └─► ... and wait in line, until a slot is free, a link comes up, or it takes too long
//
// Packed, not spread: a second link is used when the first has no room left or a large value is on
// its way there, and opened only when none has room. One link is made at a time. None is made
// while all are stuck (their oldest request has waited unusually long): more links would not help a
// server that does not answer. In which order, and how many, is plain here; a planner that moves
// links between blocks takes the place of hg_pool_grow and of the closing of idle links.
//
//   links:  `ready` (most recently used first) │ `full` │ in neither: coming up, or draining
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
// too, have to answer a NOOP before they are used when they replace one that failed.
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
#include "base/attr.h"
#include "core/retry.h"

/* Requests of a client that follow the one that had waited, before the next client's. */
#define HG_POOL_BURST 15

struct hg_pool;
struct hg_remote;

/* Of all pools of a store. */
struct hg_pool_conf {
    const struct hg_dialect *dialect;
    struct hg_remote *store;
    /* As a link's owner's; NULL where the dialect knows no such replies. */
    void (*on_again)(struct hg_remote *store, struct hg_pool *pool, struct hg_link *link,
                     struct hg_call *call, const struct hg_reply *reply);
    struct hg_link_limits link;
    uint32_t share;     /* connections that this worker may have to a server */
    uint32_t queue_max; /* calls that may wait */
    uint32_t keepalive_s;
    uint64_t connect_timeout_us;
    uint64_t queue_timeout_us;
    uint64_t idle_us; /* an idle link is closed after so long; one is kept */
};

struct hg_pool {
    struct hg_server *server;
    const struct hg_identity *identity; /* whose connections these are */
    struct hg_hub *hub;
    const struct hg_pool_conf *conf;
    struct hg_upstream_counters *counters;
    struct hg_list ready, full; /* hg_link.node */
    struct hg_list waiting;     /* hg_call_place.node, oldest first */
    uint32_t waiting_count;
    uint32_t waiting_bound;  /* of these, bound to a link: nobody waits behind them */
    uint32_t sent_untold;    /* requests that the breaker has not heard of */
    uint64_t waiting_end_us; /* no waiting call's time is over before */
    struct hg_call *waking;  /* is in its on_room */
    uint64_t waking_since_us;
    uint32_t burst;    /* further calls that may come with the one that is woken */
    uint64_t usual_us; /* moving average of how long a reply takes */
    struct hg_hub_wake wake;
    struct hg_retry retry;
    uint32_t worker;
    bool draining, closing;
    bool hung;         /* no link has heard a byte for a whole time-out, though it should have */
    bool trial_failed; /* nor could another be made since */

    struct hg_link **links; /* all that are not DEAD */
    uint32_t link_count, link_cap;
    uint32_t up_count;      /* READY or DRAINING */
    struct hg_link *coming; /* the one that comes up; perhaps its name is still looked up */
    enum hg_breaker_connect coming_kind;
    bool in_doubt;          /* the last one failed: the next must answer before it is used */
    uint64_t coming_end_us; /* when it is given up */
    uint64_t ask_again_us;  /* the breaker said: not before */
    uint64_t told_us;       /* when the breaker last heard how much was sent */
    uint64_t swept_us;      /* when idle links were last looked for */
    struct hg_resolver *resolver;
    struct hg_resolve *resolve; /* under way */
    struct hg_addrs addrs;      /* for `coming` */
};

void hg_pool_init(struct hg_pool *pool, struct hg_server *server,
                  const struct hg_identity *identity, struct hg_hub *hub,
                  const struct hg_pool_conf *conf, struct hg_resolver *resolver, uint32_t worker);
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
