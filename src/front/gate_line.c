// gate_line - requests that wait for a ticket, worker's side
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "base/probe_point.h"
#include "front/answer.h"
#include "front/gate_in.h"
#include "front/heldkey.h"
#include "front/trace.h"

#define LOOK_US 5000 /* while somebody waits: so late may one be refused whose time is over */

void hg_gate_line_init(struct hg_gate_line *in, struct hg_worker *worker,
                       struct hg_gate_holder *holder, struct hg_gate_part *part)
{
    struct hg_gate_worker *of = &holder->workers[worker->index];
    hg_list_init(&in->node);
    in->worker = worker;
    in->holder = holder;
    in->place = holder->place;
    in->tally = &of->tally;
    in->part = part;
    hg_linework_init(&in->work, worker->loop.now_us);
    hg_ticketline_init(&in->line);
    hg_keyshare_init(&in->keys, &of->keys);
}

void hg_gate_line_fini(struct hg_gate_line *in)
{
    struct hg_keyshare_key *key;
    while ((key = hg_keyshare_take_record(&in->keys)) != NULL)
        free(hg_heldkey_of(key));
}

/* ---- in line ---- */

static struct hg_gate_pass *pass_of(struct hg_ticketline_waiter *waiter)
{
    return HG_CONTAINER_OF(waiter, struct hg_gate_pass, waiter);
}

/* It waits no longer, whatever becomes of it. */
static void count_out(struct hg_gate_pass *pass)
{
    struct hg_gate_line *in = pass->in_line;
    struct hg_request *request = pass->request;
    struct hg_gate_tally *of_tenant = &request->lane->tallies[in->place];
    uint64_t now_us = in->worker->loop.now_us;
    uint64_t waited_us = now_us > pass->wait_us ? now_us - pass->wait_us : 0;
    pass->in_line = NULL;
    if (pass == &request->pass)
        request->queue_us += waited_us;
    if (pass->key.is_parked) {
        hg_keyshare_unpark(&in->keys, &pass->key);
        atomic_fetch_sub_explicit(&in->holder->parked, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_sub_explicit(&in->holder->waiting, 1, memory_order_relaxed);
    if (in->part != NULL)
        hg_gateshare_backlog(in->part->share, -1, now_us);
    hg_counter_add(&in->tally->removed, 1);
    hg_counter_add(&in->tally->queued_us, waited_us);
    hg_counter_add(&of_tenant->removed, 1);
    hg_counter_add(&of_tenant->queued_us, waited_us);
}

/* Somebody's time in line is over. */
static void note_late(struct hg_gate_line *in)
{
    if (in->part != NULL)
        atomic_store_explicit(&in->part->share->backlog_late_us, in->worker->loop.now_us,
                              memory_order_relaxed);
}

static void count_canceled(struct hg_gate_line *in, const struct hg_gate_pass *pass)
{
    if (pass->key.is_parked)
        return;
    hg_counter_add(&in->tally->canceled, 1);
    hg_counter_add(&pass->request->lane->tallies[in->place].canceled, 1);
}

/* It is in line no more, and has no ticket: it takes no part of its key's share. */
static void disengage(struct hg_gate_line *in, struct hg_gate_pass *pass)
{
    if (in->part != NULL && pass->key.is_engaged)
        hg_keyshare_end(&in->keys, &pass->key, false, false, in->worker->loop.now_us);
}

/* It is out of the line and has a ticket: it goes on. */
static void let_go(struct hg_gate_line *in, struct hg_gate_pass *pass,
                   struct hg_ticketline_tenant *place)
{
    count_out(pass);
    if (in->place == HG_GATE_INGRESS) {
        hg_gate_have_ingress(pass, in);
    } else {
        hg_gate_have_execution(pass, in, place);
        hg_keyshare_start(&in->keys, &pass->key, pass->ticket_us);
    }
    pass->owner->on_turn(pass);
}

/* Workers with waiters have tickets in turn, so each may count on an equal part of them. */
static uint32_t part_of(struct hg_gate_holder *holder, uint32_t worker)
{
    uint64_t bits = atomic_load_explicit(&holder->ticket.waiting, memory_order_relaxed);
    int64_t size = hg_ticket_size(&holder->ticket);
    int64_t part = size / __builtin_popcountll(bits | (uint64_t)1 << worker);
    return part > 0 || size == 0 ? (uint32_t)part : 1;
}

static struct hg_ticketline_conf conf_of(const struct hg_gate_line *in)
{
    struct hg_gate_holder *h = in->holder;
    return (struct hg_ticketline_conf){
        .queue_timeout_us = atomic_load_explicit(&h->queue_timeout_us, memory_order_relaxed),
        .flood_wait_us = atomic_load_explicit(&h->flood_wait_us, memory_order_relaxed),
        .grew_us = atomic_load_explicit(&h->grew_us, memory_order_relaxed),
        .size = part_of(h, in->worker->index),
        .flood_newest = atomic_load_explicit(&h->flood_newest, memory_order_relaxed),
    };
}

/* Windows hold back more than the holder was told of, or less. Who is held back is no backlog: it
   waits for its tenant's own. */
static void tell_line(struct hg_gate_line *in)
{
    int change = (int)in->line.held - (int)in->held;
    hg_gate_tell_turn(in);
    if (HG_LIKELY(change == 0))
        return;
    in->held = in->line.held;
    atomic_fetch_add_explicit(&in->holder->held, change, memory_order_relaxed);
    if (in->part != NULL)
        hg_gateshare_backlog(in->part->share, -change, in->worker->loop.now_us);
}

void hg_gate_rejoin(struct hg_gate_line *in)
{
    if (in->line.count > 0)
        hg_gate_wake_slow(in, in->worker->index);
    tell_line(in);
}

/* The next in turn has a ticket, unless its key has its share meanwhile; or the ticket goes back,
   when that holds for all. */
static void grant(struct hg_gate_line *in, const struct hg_ticketline_conf *conf)
{
    uint64_t now_us = in->worker->loop.now_us;
    struct hg_ticketline_waiter *waiter;
    struct hg_gate_pass *pass;
    do {
        waiter = hg_ticketline_pop(&in->line, conf, now_us);
        tell_line(in);
        if (waiter == NULL) {
            hg_gate_wake(in, hg_ticket_put(&in->holder->ticket));
            return;
        }
        pass = pass_of(waiter);
    } while (in->part != NULL && !hg_gate_may_start(pass, in));
    hg_hist_record(&in->holder->waits[in->worker->index],
                   now_us > pass->wait_us ? now_us - pass->wait_us : 0, 1);
    hg_coarsehist_record(&in->holder->workers[in->worker->index].waited,
                         now_us > pass->wait_us ? now_us - pass->wait_us : 0);
    let_go(in, pass, pass->place);
    tell_line(in);
}

static void leave_empty(struct hg_gate_line *in)
{
    if (!hg_gate_has_waiters(in))
        hg_list_remove(&in->node);
    hg_gate_wake(in, hg_ticket_leave(&in->holder->ticket, in->worker->index));
}

/* It has waited for its key's share for as long as it may, or may not wait at all. Only a dear key
   is to blame for that. */
static void refuse_parked(struct hg_gate_pass *pass, const struct hg_gate_line *in,
                          struct hg_keyshare_key *key, const struct hg_ticketline_conf *conf)
{
    if (!hg_keyshare_is_dear(&in->keys, key, in->answered_us, in->worker->loop.now_us) ||
        !hg_keyshare_stands_out(&in->keys, key, in->answered_us)) {
        hg_gate_refuse(pass, in, HG_WORDS_LATE, 0);
        return;
    }
    key->refused++;
    hg_gate_refuse_key(pass, in, conf->queue_timeout_us);
}

static void refuse_late_ones(struct hg_gate_line *in, const struct hg_ticketline_conf *conf)
{
    struct hg_ticketline_waiter *waiter;
    while ((waiter = hg_ticketline_expire(&in->line, conf, in->worker->loop.now_us)) != NULL) {
        struct hg_gate_pass *pass = pass_of(waiter);
        struct hg_keyshare_key *key = pass->key.is_parked ? pass->key.key : NULL;
        count_canceled(in, pass);
        count_out(pass);
        disengage(in, pass);
        if (key != NULL) {
            refuse_parked(pass, in, key, conf);
            continue;
        }
        note_late(in);
        hg_gate_refuse(pass, in, HG_WORDS_LATE, 0);
    }
}

/* As core/ticket.h wants it. */
void hg_gate_serve(struct hg_gate_line *in)
{
    const struct hg_ticketline_conf conf = conf_of(in);
    in->serve_wanted = false;
    refuse_late_ones(in, &conf);
    while (in->line.count > 0 && hg_ticket_want(&in->holder->ticket, in->worker->index))
        grant(in, &conf);
    tell_line(in);
    if (in->line.count == 0)
        leave_empty(in);
}

void hg_gates_serve(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->lines_waiting)
    {
        struct hg_gate_line *in = HG_CONTAINER_OF(node, struct hg_gate_line, node);
        if (in->serve_wanted)
            hg_gate_serve(in);
    }
}

void hg_gate_publish_line(struct hg_gate_line *in)
{
    struct hg_gate_worker *shown = &in->holder->workers[in->worker->index];
    if (in->part != NULL) {
        hg_gate_tick_keys(in);
        hg_gate_tick_windows(in);
    } else {
        hg_gate_wake(in, hg_ticket_purse_spill(&in->holder->ticket, &shown->purse));
    }
    hg_ticketline_tick(&in->line, in->worker->loop.now_us);
    if (in->line.count > 0)
        hg_gate_tell_turn(in);
    hg_counter_set(&shown->queue_min_us, in->line.count > 0 ? in->line.last_min_us : 0);
    hg_counter_set(&shown->overloaded,
                   hg_ticketline_is_flooded(&in->line, in->worker->loop.now_us));
}

static void arm(struct hg_worker *worker)
{
    if (hg_loop_timer_arm(&worker->line_timer, LOOK_US) == 0)
        worker->line_timer_armed = true;
}

void hg_gate_on_line_timer(struct hg_timer *timer)
{
    struct hg_worker *worker = HG_CONTAINER_OF(timer, struct hg_worker, line_timer);
    worker->line_timer_armed = false;
    HG_LIST_EACH(node, &worker->lines_waiting)
    {
        struct hg_gate_line *in = HG_CONTAINER_OF(node, struct hg_gate_line, node);
        hg_gate_serve(in);
        hg_gate_publish_line(in);
    }
    if (!hg_list_empty(&worker->lines_waiting))
        arm(worker);
}

static bool is_gone(const struct hg_request *request)
{
    return request->session->hung_up || request->session->closing;
}

static bool is_full(struct hg_gate_holder *holder)
{
    int64_t most = (int64_t)atomic_load_explicit(&holder->max_waiting, memory_order_relaxed);
    return atomic_load_explicit(&holder->waiting, memory_order_relaxed) +
               atomic_load_explicit(&holder->parked, memory_order_relaxed) >=
           most;
}

/* Sets its waiter: when it began to wait, and until when it may, over all lines that it has been
   in. False: it would wait in vain. */
static bool may_wait(struct hg_gate_pass *pass, const struct hg_gate_line *in,
                     const struct hg_ticketline_conf *conf)
{
    const struct hg_request *request = pass->request;
    struct hg_ticketline_waiter *waiter = &pass->waiter;
    uint64_t now_us = in->worker->loop.now_us, since_us = now_us;
    if (in->place != HG_GATE_INGRESS) {
        if (pass->since_us == 0)
            pass->since_us = now_us;
        since_us = pass->since_us;
    }
    pass->wait_us = waiter->since_us = now_us;
    waiter->came_us = request->session->read_us;
    waiter->deadline_us = since_us + conf->queue_timeout_us;
    if (request->call.deadline_us < waiter->deadline_us)
        waiter->deadline_us = request->call.deadline_us;
    return !is_gone(request) && waiter->deadline_us > now_us;
}

/* Somebody waits in the line, or for a key's share. */
static void look_after(struct hg_gate_line *in)
{
    struct hg_worker *worker = in->worker;
    if (hg_list_empty(&in->node))
        hg_list_append(&worker->lines_waiting, &in->node);
    if (!worker->line_timer_armed)
        arm(worker);
}

static void push(struct hg_gate_pass *pass, struct hg_gate_line *in,
                 struct hg_ticketline_tenant *place)
{
    struct hg_worker *worker = in->worker;
    uint64_t now_us = worker->loop.now_us;
    pass->request->seen |= HG_SEEN_TICKET_WAITED;
    HG_PROBE_POINT(ticket__wait, pass->request->lane->bucket->name, in->place, in->line.count);
    pass->in_line = in;
    pass->place = place;
    pass->waits_for_key = false;
    hg_gate_tell_turn(in);
    hg_ticketline_push(&in->line, place, &pass->waiter, now_us);
    atomic_fetch_add_explicit(&in->holder->waiting, 1, memory_order_relaxed);
    if (in->part != NULL) {
        hg_gateshare_backlog(in->part->share, 1, now_us);
        hg_keyshare_engage(&in->keys, &pass->key);
    }
    hg_counter_add(&in->tally->added, 1);
    hg_counter_add(&pass->request->lane->tallies[in->place].added, 1);
    look_after(in);
}

/* A request's session waits, too; the items of a batch wait by themselves. */
static void hold_session(struct hg_gate_pass *pass)
{
    if (pass != &pass->request->pass)
        return;
    pass->request->session->waiting = pass->request;
    pass->request->session->wait = HG_WAIT_TICKET;
}

static bool refuse_full(struct hg_gate_pass *pass, struct hg_gate_line *in)
{
    if (!is_full(in->holder))
        return false;
    hg_counter_add(&in->tally->overflows, 1);
    hg_counter_add(&pass->request->lane->tallies[in->place].overflows, 1);
    hg_gate_refuse(pass, in, HG_WORDS_FULL, 0);
    return true;
}

/* ---- for a key's share ---- */

static void park(struct hg_gate_pass *pass, struct hg_gate_line *in,
                 struct hg_ticketline_tenant *place, struct hg_keyshare_key *key)
{
    pass->request->seen |= HG_SEEN_TICKET_WAITED;
    pass->in_line = in;
    pass->place = place;
    pass->waits_for_key = true;
    hg_ticketline_park(&in->line, place, &pass->waiter);
    hg_keyshare_park(&in->keys, &pass->key, key, in->worker->loop.now_us);
    atomic_fetch_add_explicit(&in->holder->parked, 1, memory_order_relaxed);
    hg_counter_add(&pass->request->lane->key_share_waited, 1);
    look_after(in);
}

bool hg_gate_park(struct hg_gate_pass *pass, struct hg_gate_line *in,
                  struct hg_ticketline_tenant *place, struct hg_keyshare_key *key)
{
    const struct hg_ticketline_conf conf = conf_of(in);
    if (refuse_full(pass, in))
        return false;
    if (!may_wait(pass, in, &conf)) {
        refuse_parked(pass, in, key, &conf);
        return false;
    }
    hold_session(pass);
    park(pass, in, place, key);
    return true;
}

/* It was in line. */
void hg_gate_park_again(struct hg_gate_pass *pass, struct hg_gate_line *in,
                        struct hg_keyshare_key *key)
{
    uint64_t wait_us = pass->wait_us;
    count_out(pass);
    disengage(in, pass);
    pass->wait_us = wait_us;
    park(pass, in, pass->place, key);
}

void hg_gate_requeue(struct hg_gate_pass *pass, struct hg_gate_line *in)
{
    hg_ticketline_remove(&in->line, &pass->waiter, in->worker->loop.now_us);
    count_out(pass);
    pass->wait_us = in->worker->loop.now_us;
    push(pass, in, pass->place);
}

/* ---- for a ticket ---- */

bool hg_gate_wait(struct hg_gate_pass *pass, struct hg_gate_line *in,
                  struct hg_ticketline_tenant *place)
{
    const struct hg_ticketline_conf conf = conf_of(in);
    uint64_t now_us = in->worker->loop.now_us;
    if (refuse_full(pass, in))
        return false;
    struct hg_ticketline_admission admission = {HG_TICKETLINE_OLD, 0};
    if (may_wait(pass, in, &conf))
        admission = hg_ticketline_admit(&in->line, place, &conf, &pass->waiter, now_us);
    if (admission.why != HG_TICKETLINE_WAIT) {
        bool floods = admission.why == HG_TICKETLINE_FLOOD;
        count_canceled(in, pass);
        note_late(in);
        hg_gate_refuse(pass, in, floods ? HG_WORDS_FLOOD : HG_WORDS_LATE, admission.predicted_us);
        return false;
    }
    hold_session(pass);
    push(pass, in, place);
    tell_line(in);
    if (in->line.count > 0 && hg_ticket_want(&in->holder->ticket, in->worker->index))
        grant(in, &conf); /* perhaps to another one, whose turn it is */
    if (in->line.count == 0)
        leave_empty(in);
    return true;
}

void hg_gate_leave_line(struct hg_gate_pass *pass)
{
    struct hg_gate_line *in = pass->in_line;
    hg_ticketline_remove(&in->line, &pass->waiter, in->worker->loop.now_us);
    count_canceled(in, pass);
    count_out(pass);
    disengage(in, pass);
    tell_line(in);
    if (in->line.count == 0)
        leave_empty(in);
}

void hg_gate_abandon(struct hg_session *session)
{
    if (session->wait != HG_WAIT_TICKET || session->waiting->pass.in_line == NULL)
        return;
    hg_gate_leave_line(&session->waiting->pass);
    session->wait = HG_WAIT_NONE;
}

/* ---- the passes of requests ---- */

static void on_request_turn(struct hg_gate_pass *pass)
{
    struct hg_session *session = pass->request->session;
    session->wait = HG_WAIT_NONE;
    hg_session_make_ready(session);
}

static void on_request_refused(struct hg_gate_pass *pass, const struct hg_refusal *refusal)
{
    hg_answer_refusal(pass->request, refusal);
}

const struct hg_gate_owner hg_gate_request_owner = {on_request_turn, on_request_refused};

/* ---- a new directory (gate_adopt.c) ---- */

void hg_gate_let_out(struct hg_gate_pass *pass, bool with_ticket)
{
    struct hg_gate_line *in = pass->in_line;
    hg_ticketline_remove(&in->line, &pass->waiter, in->worker->loop.now_us);
    if (with_ticket) {
        hg_ticket_force(&in->holder->ticket);
        let_go(in, pass, pass->place);
    } else {
        count_out(pass);
        disengage(in, pass);
        pass->owner->on_turn(pass);
    }
    tell_line(in);
    if (in->line.count == 0)
        leave_empty(in);
}
