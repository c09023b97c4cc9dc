// gate - tickets on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
//
//   credits ─► ingress ticket ─► execution ticket (read or write, of the key's server) ─► store
//                   │ none            │ none
//                   ▼                 ▼
//              the worker's line of the holder (core/ticketline): its turn, or refused
//
// A request has its tickets from their grant until it is answered. A session has at most one
// request in line, and nothing behind that is looked at. The rows of a batch are in line each for
// itself, and each has a ticket of its own server only (gatepass.h). When a request was answered
// before its store had answered (evicted, timed out, its client gone), its slot is stranded: it
// keeps a ticket until the late answer has come, or the connection has ended.
//
// A gate is a worker's part of an upstream, and has a part for each server that was asked for.
// Worker's thread only, but for hg_gate_poke.
#ifndef HG_FRONT_GATE_H
#define HG_FRONT_GATE_H

#include "core/keyshare.h"
#include "core/linework.h"
#include "core/ticketline.h"
#include "front/gatepass.h"
#include "front/gateset.h"
#include "front/session.h"

/* The line of a holder. */
struct hg_gate_line {
    struct hg_gate_holder *holder;
    struct hg_gate_tally *tally; /* the worker's, of the holder */
    enum hg_gate_place place;
    bool serve_wanted;         /* a ticket may be there */
    struct hg_gate_part *part; /* NULL: ingress */
    struct hg_ticketline line;
    struct hg_keyshare
        keys;             /* of the requests that have a ticket, or are in line; not of ingress */
    uint64_t answered_us; /* when the store last answered one of them; 0: never */
    struct hg_linework work;
    uint32_t held;                                 /* of line.held, what the holder was told of */
    bool held_elsewhere;                           /* some are held back on other workers */
    uint64_t rounds_elsewhere, forgiven_elsewhere; /* sums of other workers' counters */
    struct hg_worker *worker;
    struct hg_list node; /* of the worker's, while somebody waits in it, or for a key's share */
};

/* A worker's part of one server's tickets. */
struct hg_gate_part {
    struct hg_list node; /* of its gate */
    struct hg_gate *gate;
    struct hg_gateshare *share;
    unsigned index;  /* of the share */
    uint64_t number; /* tells it from every other of the worker; from 1 */
    unsigned refs;   /* instances that lead to it */
    struct hg_gate_line lines[HG_TICKET_KINDS];
    struct hg_list running; /* passes with a ticket by hg_gate_pass.run, oldest first */
};

struct hg_gate {
    struct hg_worker *worker;
    struct hg_upstream *upstream;
    struct hg_gateset *set;
    struct hg_list parts;
};

struct hg_instance;

/* Lets the request in, if it can be: true. Else it waits in line (*ret_waits), or was refused and
   answered. Called again when its wait is over. `at`: a call to the server that it will go to,
   whose `route` is set; NULL: it needs no ticket of a server itself. */
HG_MUST_USE bool hg_gate_enter(struct hg_session *session, struct hg_request *request,
                               struct hg_call *at, bool *ret_waits);
/* The request, which has some, is answered: gives back what it has. `answered`: by its store. */
void hg_gate_leave(struct hg_request *request, bool answered);

/* The same for a row call of a batch. */
enum hg_gate_verdict {
    HG_GATE_TAKEN, /* go on */
    HG_GATE_WAITS,
    HG_GATE_REFUSED /* its owner was told */
};
HG_MUST_USE enum hg_gate_verdict hg_gate_ask(struct hg_gate_pass *pass, struct hg_call *at);
/* It is over, whether it has a ticket, waits, or neither. */
void hg_gate_end(struct hg_gate_pass *pass, bool answered);

/* What requests of the tenant and kind of one that has an execution ticket usually take at its
   server, in microseconds; 0: not known. */
uint64_t hg_gate_usual_us(const struct hg_gate_pass *pass);

/* The request waits for a connection, or no longer does: it counts as backlog of its server. */
void hg_gate_room_begin(struct hg_request *request);
void hg_gate_room_end(struct hg_request *request);

/* Takes the session's waiting request out of its line: client or bucket gone, or evicted. */
void hg_gate_abandon(struct hg_session *session);

/* Of a request (hg_gate_pass_init). */
extern const struct hg_gate_owner hg_gate_request_owner;

/* ---- for the worker ---- */

HG_MUST_USE int hg_gates_open(struct hg_worker *worker);
void hg_gates_close(struct hg_worker *worker);
/* The worker's gate of an upstream whose store it opens, and lets go when the store has gone; NULL
   when memory is out. */
HG_MUST_USE struct hg_gate *hg_gate_new(struct hg_worker *worker, struct hg_upstream *upstream);
void hg_gate_free(struct hg_gate *gate);
/* Has anybody a ticket of it, or waits for one? */
bool hg_gate_in_use(const struct hg_gate *gate);
/* The part of a server of the instance, or of what goes to none (HG_SERVER_NONE), made if there is
   none; NULL when memory is out. */
struct hg_gate_part *hg_gate_part(struct hg_instance *instance, uint32_t server);
/* The instance goes: it leads to no parts any more. */
void hg_gate_forget(struct hg_instance *instance);
/* What hg_store.on_strand wants; ctx: the instance. */
void hg_gate_on_strand(void *ctx, uint32_t server, uint64_t ticket, int change);
/* What hg_store.on_move wants: the ticket of the server that sent the call away is given back, and
   one of the other taken, though there be none: what is under way does not wait again. */
void hg_gate_on_move(void *ctx, void *pass, uint32_t server);
/* Once a turn, before sessions with frames left over: who waits gets what is there. */
void hg_gates_serve(struct hg_worker *worker);
/* A new directory is in force, and instances are those of now: who needs no ticket any more waits
   no longer, and who waits for a ticket of an old instance's server looks for the one of now. */
void hg_gates_adopt(struct hg_worker *worker);
/* A lane that comes into use, or whose bucket may have changed: by what its requests take turns.
   What waits or has a ticket stays where it is. */
void hg_gate_lane_adopt(struct hg_lane *lane);
/* Calls fn for each line of the worker for tickets of a server. */
void hg_gates_each_line(struct hg_worker *worker, void (*fn)(void *ctx, struct hg_gate_line *in),
                        void *ctx);
/* Every 50 ms: what others may read of the gates. */
void hg_gates_publish(struct hg_worker *worker);

/* From any thread: tickets may be there. HG_TICKET_NOBODY is allowed. */
void hg_gate_poke(struct hg_front *front, uint32_t worker);

#endif
