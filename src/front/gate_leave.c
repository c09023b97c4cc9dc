// gate_leave - tickets are given back, and what their time tells
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gate_in.h"
#include "front/instance.h"

static void note_delinquent(struct hg_gate_tally *tally, uint64_t beyond_us)
{
    uint64_t ms = beyond_us / 1000;
    hg_counter_add(&tally->delinquent, 1);
    hg_counter_add(&tally->delinquent_ms, ms);
    if (ms > hg_counter_get(&tally->delinquent_max_ms))
        hg_counter_set(&tally->delinquent_max_ms, ms);
}

static inline void tell(struct hg_gate_tally *tally, bool answered, uint64_t held_us)
{
    if (HG_UNLIKELY(!answered)) {
        hg_counter_add(&tally->unanswered, 1);
        return;
    }
    hg_counter_add(&tally->answered, 1);
    hg_counter_add(&tally->processing_us, held_us);
}

/* It was charged to its tenant. */
static void leave_ingress(struct hg_request *request, bool answered)
{
    struct hg_gate_line *in = request->session->worker->ingress;
    uint64_t now_us = in->worker->loop.now_us;
    hg_ticketline_give(&in->line, &request->lane->ingress, now_us - request->pass.ingress_us,
                       answered, now_us);
    hg_gate_wake(in, hg_ticket_put(&in->holder->ticket));
}

/* What few requests have. */
static void leave_rest(struct hg_request *request, uint8_t tickets)
{
    if (request->in_backlog != NULL)
        hg_gate_room_end(request);
    if (tickets & HG_TICKETS_EXEMPT) {
        hg_counter_add(&request->session->worker->ingress->tally->exempt_finished, 1);
        hg_counter_add(&request->lane->tallies[HG_GATE_INGRESS].exempt_finished, 1);
    }
}

/* The same while some classes are long, or new, or are held back. */
static void note_mix(const struct hg_gate_pass *pass, struct hg_gate_line *in, uint32_t usual_us,
                     uint64_t held_us)
{
    struct hg_gate_worker *of = HG_CONTAINER_OF(in->tally, struct hg_gate_worker, tally);
    uint64_t now_us = in->worker->loop.now_us;
    in->line.windows.over_us = hg_linework_over_us(&in->work, now_us);
    if (!pass->place->is_short)
        return;
    if (usual_us == 0)
        hg_ticketline_forget_unknown(&in->line);
    if (in->line.held > 0 || in->held_elsewhere)
        hg_ticketline_prove(&in->line, hg_linework_is_in_time(&in->work, usual_us, held_us),
                            pass->ticket_us, now_us);
    if (in->work.has_long) {
        hg_counter_add(&of->short_count, 1);
        hg_counter_add(&of->short_us, held_us > usual_us ? held_us - usual_us : 0);
    }
}

/* What an answered request, of a key that takes no longer than others, tells of its class: the work
   that it was. */
static uint32_t learn(const struct hg_gate_pass *pass, struct hg_gate_line *in, uint64_t held_us)
{
    struct hg_workclass *class = hg_gate_work_of(pass->place);
    uint32_t usual_us = class->usual_us;
    uint32_t work_us = hg_linework_note(&in->work, class, held_us, in->line.count > 0,
                                        in->worker->loop.now_us, &pass->place->is_short);
    pass->place->usual_us = class->usual_us;
    hg_coarsehist_record(&HG_CONTAINER_OF(in->tally, struct hg_gate_worker, tally)->service,
                         held_us);
    if (in->work.has_new || in->work.has_long || in->line.held > 0)
        note_mix(pass, in, usual_us, held_us);
    return work_us;
}

/* Does each answer tell something? While nobody waits, and all classes are known, a sample tells
   enough. */
static HG_ALWAYS_INLINE bool is_busy(const struct hg_gate_pass *pass, const struct hg_gate_line *in)
{
    return HG_UNLIKELY((in->line.count | in->line.held) > 0) || HG_UNLIKELY(in->work.has_new) ||
           HG_UNLIKELY(hg_gate_work_of(pass->place)->usual_us == 0);
}

/* An answered request, of a key that takes no longer than others. */
static HG_ALWAYS_INLINE void note_work(const struct hg_gate_pass *pass, struct hg_gate_line *in,
                                       uint64_t held_us, bool learns)
{
    struct hg_gate_worker *of = HG_CONTAINER_OF(in->tally, struct hg_gate_worker, tally);
    uint32_t work_us =
        HG_UNLIKELY(learns) ? learn(pass, in, held_us) : hg_gate_work_of(pass->place)->usual_us;
    in->work.done_us += work_us;
    hg_counter_add(&of->worked_us, held_us);
    hg_counter_add(&of->work_us, work_us);
    if (HG_UNLIKELY(in->work.has_new | in->work.has_long))
        hg_counter_add(&of->work_squares, ((uint64_t)work_us * work_us) >> 8);
}

/* Gives the execution ticket back. */
static HG_ALWAYS_INLINE void give_back(struct hg_gate_pass *pass, bool answered)
{
    struct hg_gate_line *in = pass->gate;
    struct hg_worker *worker = in->worker;
    struct hg_gate_tally *of_tenant = &pass->request->lane->tallies[in->place];
    uint64_t held_us = worker->loop.now_us - pass->ticket_us;
    uint64_t slow_us = worker->directory->settings.slow_request_us;
    tell(in->tally, answered, held_us);
    tell(of_tenant, answered, held_us);
    if (HG_UNLIKELY(held_us > slow_us) && slow_us > 0) {
        note_delinquent(in->tally, held_us - slow_us);
        note_delinquent(of_tenant, held_us - slow_us);
    }
    struct hg_keyshare_key *key = pass->key.key;
    bool sampled = false, learns = true;
    if (HG_LIKELY(answered)) {
        in->answered_us = worker->loop.now_us;
        sampled = hg_keyshare_counts_as_sample(hg_gate_usual_of(pass->place), worker->loop.now_us);
        learns = sampled || is_busy(pass, in);
        if (HG_LIKELY(key == NULL || !key->is_unproven))
            note_work(pass, in, held_us, learns);
    }
    hg_keyshare_end(&in->keys, &pass->key, answered, sampled, worker->loop.now_us);
    pass->run.prev->next = pass->run.next; /* it is appended anew, if ever */
    pass->run.next->prev = pass->run.prev;
    pass->gate = NULL;
    if (HG_UNLIKELY(learns))
        hg_ticketline_learn(pass->place, held_us, answered);
    hg_ticketline_return(&in->line, pass->place, held_us, answered, worker->loop.now_us);
    if (HG_UNLIKELY(in->line.count > 0))
        hg_gate_tell_turn(in);
    hg_gate_wake(in, hg_ticket_put(&in->holder->ticket));
    if (HG_UNLIKELY(key != NULL && key->waiting > 0))
        hg_gate_release(in, key);
    if (HG_UNLIKELY((in->held | in->line.held) > 0))
        hg_gate_rejoin(in);
}

void hg_gate_leave_server(struct hg_gate_pass *pass, bool answered)
{
    give_back(pass, answered);
}

void hg_gate_leave(struct hg_request *request, bool answered)
{
    struct hg_gate_pass *pass = &request->pass;
    struct hg_worker *worker = request->session->worker;
    uint8_t tickets = pass->tickets;
    pass->tickets = 0;
    if (HG_LIKELY(tickets & HG_TICKETS_EXECUTE))
        give_back(pass, answered);
    if (HG_LIKELY(tickets & HG_TICKETS_INGRESS)) {
        struct hg_gate_line *in = worker->ingress;
        hg_counter_add(&in->tally->answered, 1);
        if (HG_LIKELY(tickets & HG_TICKETS_PURSE))
            hg_gate_wake(in, hg_ticket_purse_put(&in->holder->ticket, hg_gate_purse_of(in)));
        else
            leave_ingress(request, answered);
    }
    if (HG_UNLIKELY((tickets & HG_TICKETS_EXEMPT) || request->in_backlog != NULL))
        leave_rest(request, tickets);
}

void hg_gate_end(struct hg_gate_pass *pass, bool answered)
{
    uint8_t tickets = pass->tickets;
    if (pass->in_line != NULL)
        hg_gate_leave_line(pass);
    pass->tickets = 0;
    if (tickets & HG_TICKETS_EXECUTE)
        hg_gate_leave_server(pass, answered);
}

void hg_gate_on_strand(void *ctx, uint32_t server, uint64_t ticket, int change)
{
    struct hg_gate_part *part = hg_gate_part(ctx, server);
    if (part == NULL)
        return; /* no memory: the slot is not counted; its end finds a part, or none again */
    struct hg_gate_line *in = &part->lines[(ticket & 0xff) - 1];
    hg_gate_make_room(in);
    hg_keyshare_strand(&in->keys, (uint32_t)(ticket >> 8), change, in->worker->loop.now_us);
    if (change < 0 && atomic_load_explicit(&in->holder->stranded, memory_order_relaxed) <= 0)
        return;
    atomic_fetch_add_explicit(&in->holder->stranded, change, memory_order_relaxed);
    if (change > 0)
        hg_ticket_force(&in->holder->ticket);
    else
        hg_gate_wake(in, hg_ticket_put(&in->holder->ticket));
}

void hg_gate_on_move(void *ctx, void *ticket_of, uint32_t server)
{
    struct hg_gate_pass *pass = ticket_of;
    struct hg_gate_part *part = pass->gate != NULL ? hg_gate_part(ctx, server) : NULL;
    if (part == NULL || part == pass->gate->part)
        return;
    struct hg_gate_line *in = &part->lines[pass->gate->place - HG_GATE_READ];
    struct hg_ticketline_tenant *place = hg_gate_place_of(in, pass->request);
    if (place == NULL)
        return; /* no memory: it keeps the ticket that it has */
    pass->tickets &= (uint8_t)~HG_TICKETS_EXECUTE;
    hg_gate_leave_server(pass, true);
    hg_ticket_force(&in->holder->ticket);
    hg_gate_begin(pass, in, place, hg_keyshare_find(&in->keys, pass->key.id));
    hg_gate_rejoin(in); /* its tenant may be beyond its window now */
}
