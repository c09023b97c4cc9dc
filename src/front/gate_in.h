// gate_in - what the parts of a gate, tickets and lines, know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_FRONT_GATE_IN_H
#define HG_FRONT_GATE_IN_H

#include "front/gate.h"
#include "front/words.h"

/* ---- lines (gate_line.c) ---- */

void hg_gate_line_init(struct hg_gate_line *in, struct hg_worker *worker,
                       struct hg_gate_holder *holder, struct hg_gate_part *part);
void hg_gate_line_fini(struct hg_gate_line *in);
/* It gets in line, unless that is in vain. True: it waits; false: it was refused. */
HG_MUST_USE bool hg_gate_wait(struct hg_gate_pass *pass, struct hg_gate_line *in,
                              struct hg_ticketline_tenant *place);
/* It waits for its key's share, after PARK. True: it waits; false: it was refused. */
HG_MUST_USE bool hg_gate_park(struct hg_gate_pass *pass, struct hg_gate_line *in,
                              struct hg_ticketline_tenant *place, struct hg_keyshare_key *key);
/* It was in line, and its turn has come, but its key has its share meanwhile. */
void hg_gate_park_again(struct hg_gate_pass *pass, struct hg_gate_line *in,
                        struct hg_keyshare_key *key);
/* It waits for its key's share no longer, but for a ticket. */
void hg_gate_requeue(struct hg_gate_pass *pass, struct hg_gate_line *in);
/* Takes it out of its line, for other reasons than its turn. */
void hg_gate_leave_line(struct hg_gate_pass *pass);
/* Some may be held back now, or take turns again. */
void hg_gate_rejoin(struct hg_gate_line *in);
/* It waits for this holder no longer: it goes on, with a ticket by force, so that what is out stays
   right; or without one, and looks for another line. */
void hg_gate_let_out(struct hg_gate_pass *pass, bool with_ticket);
/* Who waits gets what is there, as core/ticket.h wants it. */
void hg_gate_serve(struct hg_gate_line *in);
/* What others may read of it. */
void hg_gate_publish_line(struct hg_gate_line *in);
/* While somebody waits: serves all lines of the worker. */
void hg_gate_on_line_timer(struct hg_timer *timer);

/* ---- refusals (gate_refuse.c) ---- */

/* Its owner is told why. predicted_us: of a FLOOD or KEY, the wait that it would have had. */
void hg_gate_refuse(struct hg_gate_pass *pass, const struct hg_gate_line *in,
                    enum hg_words_kind why, uint64_t predicted_us);
/* What core/ticketline has to know to tell whether a tenant floods the line. */
struct hg_ticketline_conf hg_gate_flood_conf(const struct hg_gate_line *in);
/* It is refused, as its key has its share. */
void hg_gate_refuse_key(struct hg_gate_pass *pass, const struct hg_gate_line *in,
                        uint64_t retry_us);

/* ---- shares of keys (gate_key.c) ---- */

/* May the request, which is neither in line nor has a ticket, take one? `bytes`: its key. `ret_key`
   for hg_gate_park. What is refused was told. */
enum hg_keyshare_verdict hg_gate_ask_key(struct hg_gate_pass *pass, struct hg_gate_line *in,
                                         struct hg_span bytes, struct hg_keyshare_key **ret_key);
/* A key may need a record. */
void hg_gate_make_room(struct hg_gate_line *in);
/* May it start, whose turn it is? Else it is parked, and waits on. */
HG_MUST_USE bool hg_gate_may_start(struct hg_gate_pass *pass, struct hg_gate_line *in);
/* One of the key's has ended: those that wait for its share go on as far as they may. */
void hg_gate_release(struct hg_gate_line *in, struct hg_keyshare_key *key);
/* While somebody waits, and every 50 ms: what the shares are, and who may go on. */
void hg_gate_tick_keys(struct hg_gate_line *in);

/* ---- several workers (gate_workers.c) ---- */

/* The worker that has the next turn; `named`: one that has waiters. */
uint32_t hg_gate_next_worker(const struct hg_gate_line *in, uint32_t named);
/* The line has changed, or is going to: what others are to know of its turns, and it of theirs. */
void hg_gate_tell_turn(struct hg_gate_line *in);
/* While somebody waits, and every 50 ms: what the windows are, and what other workers know of the
   line's tenants. */
void hg_gate_tick_windows(struct hg_gate_line *in);
/* The worker has no line any more: others are not to go by what it has told. */
void hg_gate_tell_nothing(struct hg_gate_line *in);

/* ---- tickets (gate.c, gate_leave.c) ---- */

/* Gives the execution ticket back. */
void hg_gate_leave_server(struct hg_gate_pass *pass, bool answered);

/* The ticket as stores know it: its kind, and the key that it was given to. */
static inline uint64_t hg_gate_token(enum hg_ticket_kind kind, uint32_t key)
{
    return (uint64_t)key << 8 | (1u + kind);
}

/* Somebody is to be poked, perhaps the caller's own worker. */
void hg_gate_wake_slow(struct hg_gate_line *in, uint32_t worker);

static inline void hg_gate_have_ingress(struct hg_gate_pass *pass, struct hg_gate_line *in)
{
    pass->tickets |= HG_TICKETS_INGRESS;
    pass->ingress_us = in->worker->loop.now_us;
    hg_counter_add(&in->tally->started, 1);
    hg_ticketline_take(&in->line, &pass->request->lane->ingress, pass->ingress_us);
}

static inline struct hg_ticket_purse *hg_gate_purse_of(const struct hg_gate_line *in)
{
    return &HG_CONTAINER_OF(in->tally, struct hg_gate_worker, tally)->purse;
}

/* An ingress ticket, if there are plenty and nobody waits for one: no tenant is charged for it. */
HG_MUST_USE static inline bool hg_gate_try_purse(struct hg_gate_pass *pass, struct hg_gate_line *in)
{
    if (HG_UNLIKELY(in->line.count > 0) ||
        HG_UNLIKELY(!hg_ticket_purse_try(&in->holder->ticket, hg_gate_purse_of(in))))
        return false;
    pass->tickets |= HG_TICKETS_INGRESS | HG_TICKETS_PURSE;
    hg_counter_add(&in->tally->started, 1);
    return true;
}

static HG_ALWAYS_INLINE void hg_gate_have_execution(struct hg_gate_pass *pass,
                                                    struct hg_gate_line *in,
                                                    struct hg_ticketline_tenant *at)
{
    enum hg_gate_place place = in->place;
    pass->tickets |= (uint8_t)(1u << place);
    pass->gate = in;
    pass->place = at;
    pass->ticket_us = in->worker->loop.now_us;
    hg_ticketline_take(&in->line, at, pass->ticket_us);
    hg_counter_add(&in->tally->started, 1);
    hg_counter_add(&pass->request->lane->tallies[place].started, 1);
    hg_list_append(&in->part->running, &pass->run);
}

/* It has an execution ticket, without having waited for it. `key`: the record of its key, or
   NULL. */
static HG_ALWAYS_INLINE void hg_gate_begin(struct hg_gate_pass *pass, struct hg_gate_line *in,
                                           struct hg_ticketline_tenant *place,
                                           struct hg_keyshare_key *key)
{
    hg_gate_have_execution(pass, in, place);
    hg_keyshare_begin(&in->keys, &pass->key, key, pass->ticket_us);
}

/* The cell of a server, or of the request's party there, set up for the lines of the part; NULL
   when memory is out (gate_party.c). */
struct hg_gate_cell *hg_gate_cell_slow(const struct hg_request *request,
                                       const struct hg_gate_part *part);

/* The place in a server's line of the request's tenant, or of its party; NULL when memory is out.
 */
static inline struct hg_ticketline_tenant *hg_gate_place_of(const struct hg_gate_line *in,
                                                            const struct hg_request *request)
{
    const struct hg_lane *lane = request->lane;
    unsigned server = in->part->index;
    struct hg_gate_cell *cell = server < lane->cell_count ? lane->cells[server] : NULL;
    if (HG_UNLIKELY(cell == NULL || cell->part != in->part->number))
        cell = hg_gate_cell_slow(request, in->part);
    return cell != NULL ? &cell->seats[in->place - HG_GATE_READ].queue : NULL;
}

/* The same tenant's place among those whose keys have shares of the line's tickets. */
static inline struct hg_keyshare_tenant *hg_gate_usual_of(struct hg_ticketline_tenant *place)
{
    return &HG_CONTAINER_OF(place, struct hg_gate_seat, queue)->usual;
}

/* The same tenant's class of work: what its requests there usually take. */
static inline struct hg_workclass *hg_gate_work_of(struct hg_ticketline_tenant *place)
{
    return &HG_CONTAINER_OF(place, struct hg_gate_seat, queue)->work;
}

static inline bool hg_gate_has_waiters(const struct hg_gate_line *in)
{
    return in->line.count > 0 || in->line.held > 0 || in->line.parked > 0;
}

static inline void hg_gate_wake(struct hg_gate_line *in, uint32_t worker)
{
    if (HG_UNLIKELY(worker != HG_TICKET_NOBODY))
        hg_gate_wake_slow(in, hg_gate_next_worker(in, worker));
}

#endif
