// relay - calls that another worker carries out, since a server's connections are too few to share
// SPDX-License-Identifier: BSD-3-Clause
//
//   this worker's store                          the owner's store
//   submit ─► lane ─► item ──batch, once a turn──► guest ─► domain ─► server
//   on_done ◄──────── item ◄──batch, once a turn── on_done
//
// Fairness cannot be had from fragments: when a server allows less than 2 x workers x identities
// connections, one worker (the server's number modulo the workers) has all of them, and the others
// post their calls to it. Its pools and the planner then see all demand in one place. That follows
// from the configuration and from the number of identities, which only grows: once so, it stays so.
// It is also done with a server that takes no more connections (core/breaker), as soon as calls of
// a worker wait that has none: then the worker with most of them becomes the owner, and ceases to
// be when the server has taken what was asked of it for HG_RELAY_LIFTED_US, or was out.
//
// A worker looks when its timer fires and when it begins to be busy, not for each call. From then
// on it sends nothing new to servers that are not its own: what waits or is under way there is
// finished, then the connections are closed and their leases (lease.h) end. Calls that must come
// after such a call wait for it.
//
// A call is copied into an item of the sender's, and the answer into the same item; large values
// take a blob that changes hands. What holds for submit and cancel (store.h) holds here. An item is
// the owner's until it comes back: so a call may be cancelled or time out meanwhile without the
// owner's touching it, and the owner hears of it at its next tick. Calls for one key go in the
// order of submission, and the owner says `after` of those that are still with it.
//
// At most HG_RELAY_AWAY calls of a worker for a server are away; others wait, in order, for as long
// as they would for a connection. An owner that has gone answers what it had (HG_FAULT_LOST, or
// HG_FAULT_DOWN for what it had not begun), and what comes later is HG_FAULT_DOWN. One that has not
// opened its store yet is summoned. One that does not answer at all costs a call its time-outs:
// HG_FAULT_TIMEOUT.
//
// Belongs to the worker's thread; others see its port only.
#ifndef HG_BACK_RELAY_H
#define HG_BACK_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "back/hub.h"
#include "back/relay_port.h"
#include "back/store.h"
#include "base/attr.h"
#include "core/leaseplan.h"

/* As many as 16 clients submit in a turn. */
#define HG_RELAY_AWAY 1024

#define HG_RELAY_LIFTED_US 60000000u

struct hg_remote;

/* Calls for one server. */
struct hg_relay_lane {
    struct hg_relay *relay;
    uint32_t server;
    uint32_t owner;         /* worker, or HG_LEASEPLAN_NOBODY */
    uint32_t away;          /* items */
    bool retiring;          /* our own connections are not yet closed */
    struct hg_list items;   /* away, by hg_relay_item.node, in the order of posting */
    uint64_t expire_us;     /* none of them is over before */
    struct hg_list waiting; /* hg_call_place.node, oldest first */
    uint32_t waiting_count;
    uint64_t waiting_end_us; /* none of them has waited too long before */
    struct hg_call *waking;  /* is in its on_room */
    uint64_t waking_since_us;
    uint32_t burst; /* further calls that may come with it */
    struct hg_hub_wake wake;
};

/* A batch that is being put together. */
struct hg_relay_batch {
    struct hg_relay_item *first, *last;
    uint32_t count;
};

struct hg_relay {
    struct hg_remote *remote;
    struct hg_relay_port *port; /* NULL: there is no other worker */
    bool all;                   /* every server has an owner, for good */
    uint32_t worker;
    uint32_t lane_count;
    struct hg_relay_lane *lanes; /* by server */
    uint32_t workers;
    struct hg_relay_port **ports;   /* by worker: found ones, referenced */
    struct hg_relay_batch *asks;    /* by worker */
    struct hg_relay_batch *answers; /* by worker */
    uint64_t looked_us;             /* when ports were last looked for */
    uint32_t forgotten;             /* port->forgotten as last seen */
    struct hg_list guests;          /* hg_relay_item.guest_node */
    struct hg_hub_wake post;
};

/* After the remote's domains. 0 or -ENOMEM. */
HG_MUST_USE int hg_relay_init(struct hg_relay *relay, struct hg_remote *remote);
/* Takes nothing more from others: before the domains end. */
void hg_relay_close(struct hg_relay *relay);
/* Answers all calls that are left (HG_FAULT_LOST). */
void hg_relay_end(struct hg_relay *relay);
/* Gives others theirs back; when all calls have been answered and none comes any more. */
void hg_relay_fini(struct hg_relay *relay);

/* Have the servers owners now? Then sets everything up for that. */
void hg_relay_look(struct hg_relay *relay);
/* The remote has more servers. */
void hg_relay_grow(struct hg_relay *relay);

/* Is this server's owner another worker? */
static inline bool hg_relay_is_away(const struct hg_relay *relay, uint32_t server)
{
    uint32_t owner = relay->lanes[server].owner;
    return owner != relay->worker && owner != HG_LEASEPLAN_NOBODY;
}

/* Does a call that goes there concern the relay: is it another worker's, or one that follows such a
   call? */
static inline bool hg_relay_takes(const struct hg_relay *relay, uint32_t server,
                                  const struct hg_call *call)
{
    const struct hg_call *after = call->after;
    return hg_relay_is_away(relay, server) ||
           (after != NULL && after->place.store == call->place.store && after->place.relayed &&
            (after->place.pending || after->place.waiting));
}

/* As the store's, for a call that hg_relay_takes. */
enum hg_submit hg_relay_submit(struct hg_relay *relay, uint32_t server, struct hg_call *call);
/* Of a call that is `relayed`. */
void hg_relay_cancel(struct hg_relay *relay, struct hg_call *call);
/* With the remote's ticks; true while there is something to look after. */
bool hg_relay_tick(struct hg_relay *relay, uint64_t now_us);
/* Is nothing under way or waiting, of ours or of others? */
bool hg_relay_is_idle(const struct hg_relay *relay);

/* ---- between the parts (relay.c: the sender, relay_owner.c: the owner, relay_claim.c) ---- */

/* Of a server that takes no more connections: gives it an owner while calls of ours wait that have
   none to wait for, and, if we are the owner, ends that when it has taken all for long enough, or
   was out: what it refused while it went away says nothing of what it takes now. */
void hg_relay_claim(struct hg_relay_lane *lane, uint64_t now_us);
/* Closes our own connections to a server that is another worker's now; while lane->retiring. */
void hg_relay_retire(struct hg_relay_lane *lane);
/* A new lane takes notice of its server's owner. */
void hg_relay_open_lane(struct hg_relay_lane *lane);
/* Who waits in the lane is looked at once more in this turn. */
void hg_relay_wake_later(struct hg_relay_lane *lane);

/* Takes what is in the port. */
void hg_relay_receive(struct hg_relay *relay);
/* An item has come back, or could not be sent: answers its call. */
void hg_relay_complete(struct hg_relay *relay, struct hg_relay_item *item);
/* An item has come from another worker. */
void hg_relay_accept(struct hg_relay *relay, struct hg_relay_item *item);
/* Forgets what its clients have forgotten. */
void hg_relay_sweep_guests(struct hg_relay *relay);
/* Sends batches of answers. */
void hg_relay_post_answers(struct hg_relay *relay);
void hg_relay_batch_add(struct hg_relay_batch *batch, struct hg_relay_item *item);

#endif
