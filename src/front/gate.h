// gate - tickets on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
//
//   credits ─► ingress ticket ─► execution ticket (read or write, of the upstream) ─► store
//                   │ none            │ none
//                   ▼                 ▼
//              the worker's line of the holder (core/ticketline): its turn, or refused
//
// A request has its tickets from their grant until it is answered. A session has at most one
// request in line, and nothing behind that is looked at. When a request was answered before its
// store had answered (evicted, timed out, its client gone), its slot is stranded: it keeps a ticket
// until the late answer has come, or the connection has ended.
//
// A gate is a worker's part of an upstream. Worker's thread only, but for hg_gate_poke.
#ifndef HG_FRONT_GATE_H
#define HG_FRONT_GATE_H

#include "core/ticketline.h"
#include "front/gateshare.h"
#include "front/session.h"

/* Bits of hg_request.tickets. */
#define HG_TICKETS_INGRESS 1u
#define HG_TICKETS_READ    2u
#define HG_TICKETS_WRITE   4u
#define HG_TICKETS_EXEMPT  8u /* needs none */
#define HG_TICKETS_EXECUTE (HG_TICKETS_READ | HG_TICKETS_WRITE)

/* The line of a holder. */
struct hg_gate_line {
    struct hg_gate_holder *holder;
    struct hg_gate_tally *tally; /* the worker's, of the holder */
    enum hg_gate_place place;
    bool serve_wanted;       /* a ticket may be there */
    struct hg_list *running; /* of its gate; NULL: ingress */
    struct hg_ticketline line;
    struct hg_gateshare *share; /* NULL: ingress */
    struct hg_worker *worker;
    struct hg_list node; /* of the worker's, while somebody waits */
};

struct hg_gate {
    struct hg_gateshare *share;
    struct hg_gate_line lines[HG_TICKET_KINDS];
    struct hg_list running; /* requests with a ticket by hg_request.run, oldest first */
};

/* Lets the request in, if it can be: true. Else it waits in line (*ret_waits), or was refused and
   answered. Called again when its wait is over. */
HG_MUST_USE bool hg_gate_enter(struct hg_session *session, struct hg_request *request,
                               bool *ret_waits);
/* The request, which has some, is answered: gives back what it has. `answered`: by its store. */
void hg_gate_leave(struct hg_request *request, bool answered);

/* The request waits for a connection, or no longer does: it counts as backlog. */
void hg_gate_room_begin(struct hg_request *request);
void hg_gate_room_end(struct hg_request *request);

/* Takes the session's waiting request out of its line: client or bucket gone, or evicted. */
void hg_gate_abandon(struct hg_session *session);

/* ---- for the worker ---- */

HG_MUST_USE int hg_gates_open(struct hg_worker *worker);
void hg_gates_close(struct hg_worker *worker);
/* The worker's gate of an upstream whose store it opens, and lets go when the store has gone; NULL
   when memory is out. */
HG_MUST_USE struct hg_gate *hg_gate_new(struct hg_worker *worker, struct hg_upstream *upstream);
void hg_gate_free(struct hg_gate *gate);
/* Has anybody a ticket of it, or waits for one? */
bool hg_gate_in_use(const struct hg_gate *gate);
/* What hg_store.on_strand wants; ctx: the gate. */
void hg_gate_on_strand(void *ctx, unsigned kind, int change);
/* Once a turn, before sessions with frames left over: who waits gets what is there. */
void hg_gates_serve(struct hg_worker *worker);
/* A new directory is in force: who needs no ticket any more waits no longer. */
void hg_gates_adopt(struct hg_worker *worker);
/* Every 50 ms: what others may read of the gates. */
void hg_gates_publish(struct hg_worker *worker);

/* From any thread: tickets may be there. HG_TICKET_NOBODY is allowed. */
void hg_gate_poke(struct hg_front *front, uint32_t worker);

#endif
