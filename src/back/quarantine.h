// quarantine - a connection for requests that are likely to take long, away from everybody else's
// SPDX-License-Identifier: BSD-3-Clause
//
//   pass of a bind throttle ─► link, one at a time ─► answered ─► the next in line
//                               │ the client gives up: the slot stays taken until the reply came
//
// Behind a request that takes long on a pipelined connection everybody waits. So what passed a bind
// throttle (hg_call.quarantine) goes on a connection of depth 1, provided that nothing of that
// client and key is unanswered (call->after is NULL; else it goes the ordinary way, to keep its
// place). What follows it, of its client and key, waits until it is answered (tie.h).
//
// There is at most one for each domain, a worker's part of a server, whoever's requests they are:
// first come, first served, also between identities. It logs in as whom the next one is for, on the
// open connection if the dialect can, else on a new one. It is made when first needed and closed
// when it has been idle for HG_QUARANTINE_IDLE_US.
//
// It is not the planner's, but takes a unit of the lease like any other: the planner's capacity is
// one less as long as it is there or wanted, and if no unit is free the least busy connection of
// the domain takes nothing new from then on and is closed when it is empty. Where the domain may
// have only one connection there is none, and calls go the ordinary way.
//
// It says nothing of the server: its time-outs and losses are not told to the breaker, what it
// takes is not the usual, and it is never slow. Its connects are told, as any.
//
// Belongs to the worker's thread.
#ifndef HG_BACK_QUARANTINE_H
#define HG_BACK_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "back/addrs.h"
#include "back/hub.h"
#include "back/link.h"
#include "back/store.h"
#include "base/attr.h"
#include "core/breaker.h"

/* A throttled key is let through at least that often while it matters: X is 10000 at most. At a
   thousand attempts a second that is one pass in 10 s. */
#define HG_QUARANTINE_IDLE_US 10000000u

struct hg_domain;

struct hg_quarantine {
    struct hg_domain *domain;
    struct hg_link *link; /* NULL: there is none */
    uint64_t since_us;    /* it is coming, or idle, since */
    bool has_unit;
    enum hg_breaker_connect coming_kind;
    struct hg_link_limits limits; /* the pools', but for the depth */
    struct hg_addrs addrs;
    struct hg_list waiting; /* hg_call_place.node, oldest first */
    uint32_t waiting_count;
    uint64_t waiting_end_us; /* no waiting call's time is over before */
    struct hg_call *waking;  /* is in its on_room */
    uint64_t waking_since_us;
    struct hg_hub_wake wake;
};

void hg_quarantine_init(struct hg_quarantine *quarantine, struct hg_domain *domain);
/* Answers every call (HG_FAULT_LOST), ends the connection. */
void hg_quarantine_end(struct hg_quarantine *quarantine);

/* Is there a place for the call, now or in time? Then submit takes it. */
HG_MUST_USE bool hg_quarantine_takes(const struct hg_quarantine *quarantine,
                                     const struct hg_call *call);
/* As the store's. */
enum hg_submit hg_quarantine_submit(struct hg_quarantine *quarantine, struct hg_call *call);
/* Of a call that waits in its line. */
void hg_quarantine_cancel(struct hg_quarantine *quarantine, struct hg_call *call);
/* Is the call, which is pending or waits, here? */
bool hg_quarantine_has(const struct hg_quarantine *quarantine, const struct hg_call *call);

/* With the domain's ticks; true while there is something to look after soon. */
bool hg_quarantine_tick(struct hg_quarantine *quarantine, uint64_t now_us);
/* A unit may be free now. */
void hg_quarantine_look(struct hg_quarantine *quarantine);

/* Units of the domain that are not the planner's: 0 or 1. */
uint32_t hg_quarantine_units(const struct hg_quarantine *quarantine);
/* Requests that the server still owes a reply to. */
uint32_t hg_quarantine_pending(const struct hg_quarantine *quarantine);

static inline bool hg_quarantine_is_up(const struct hg_quarantine *quarantine)
{
    return quarantine->link != NULL && quarantine->link->state == HG_LINK_READY;
}

#endif
