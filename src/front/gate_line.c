// gate_line - requests that wait for a ticket, worker's side
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>

#include "base/probe_point.h"
#include "front/answer.h"
#include "front/gate_in.h"
#include "front/trace.h"
#include "proto/hello.h"
#include "proto/status.h"

#define LOOK_US 5000 /* while somebody waits: the bound of a wait under overload is 20 ms */

/* ---- refusals ---- */

static struct hg_span explain(struct hg_words *words, const struct hg_words_key *key,
                              const struct hg_bucket *bucket, enum hg_gate_place place, bool late)
{
    const char *of = place == HG_GATE_INGRESS ? "the server" : bucket->upstream->name;
    char text[256], members[320];
    snprintf(text, sizeof text,
             late ? "no %s ticket of %s%s%s became free in time"
                  : "too many requests wait for a %s ticket of %s%s%s",
             hg_gate_place_name(place), place == HG_GATE_INGRESS ? "" : "upstream '", of,
             place == HG_GATE_INGRESS ? "" : "'");
    snprintf(members, sizeof members, "\"limit\":\"%s_tickets\",\"tenant\":\"%s\"",
             hg_gate_place_name(place), bucket->name);
    return hg_words_keep(words, key, text, members);
}

static void refuse(struct hg_request *request, enum hg_gate_place place, bool late)
{
    struct hg_words *words = &request->session->worker->words;
    const struct hg_bucket *bucket = request->lane->bucket;
    const struct hg_words_key key = {.of = bucket,
                                     .kind = late ? HG_WORDS_LATE : HG_WORDS_FULL,
                                     .json = (request->features & HG_FEATURE_JSON) != 0,
                                     .number = (uint16_t)place};
    struct hg_refusal refusal = {late ? HG_STATUS_QUEUE_TIMEOUT : HG_STATUS_QUEUE_FULL,
                                 late ? HG_OUTCOME_QUEUE_TIMEOUT : HG_OUTCOME_QUEUE_FULL, NULL,
                                 HG_SPAN_NONE, hg_words_find(words, &key)};
    if (refusal.verbatim.len == 0)
        refusal.verbatim = explain(words, &key, bucket, place, late);
    hg_answer_refusal(request, &refusal);
}

/* ---- in line ---- */

static struct hg_session *session_of(struct hg_ticketline_waiter *waiter)
{
    return HG_CONTAINER_OF(waiter, struct hg_session, waiter);
}

static void count_out(struct hg_gate_line *in, struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    struct hg_gate_tally *of_tenant = &request->lane->tallies[in->place];
    uint64_t now_us = in->worker->loop.now_us;
    uint64_t waited_us = now_us > request->hold_us ? now_us - request->hold_us : 0;
    session->in_line = NULL;
    request->queue_us += waited_us;
    atomic_fetch_sub_explicit(&in->holder->waiting, 1, memory_order_relaxed);
    if (in->share != NULL)
        hg_gateshare_backlog(in->share, -1, now_us);
    hg_counter_add(&in->tally->removed, 1);
    hg_counter_add(&in->tally->queued_us, waited_us);
    hg_counter_add(&of_tenant->removed, 1);
    hg_counter_add(&of_tenant->queued_us, waited_us);
}

/* A request's time in line is over. */
static void note_late(struct hg_gate_line *in)
{
    if (in->share != NULL)
        atomic_store_explicit(&in->share->backlog_late_us, in->worker->loop.now_us,
                              memory_order_relaxed);
}

static void count_canceled(struct hg_gate_line *in, const struct hg_session *session)
{
    hg_counter_add(&in->tally->canceled, 1);
    hg_counter_add(&session->waiting->lane->tallies[in->place].canceled, 1);
}

/* It is out of the line and has a ticket: its session goes on. */
static void let_go(struct hg_gate_line *in, struct hg_session *session)
{
    count_out(in, session);
    hg_gate_have(session->waiting, in);
    session->wait = HG_WAIT_NONE;
    hg_session_make_ready(session);
}

/* The next in turn has a ticket. */
static void grant(struct hg_gate_line *in)
{
    uint64_t now_us = in->worker->loop.now_us;
    struct hg_session *session = session_of(hg_ticketline_pop(&in->line, now_us));
    uint64_t since_us = session->waiting->hold_us;
    hg_hist_record(&in->holder->workers[in->worker->index].waits,
                   now_us > since_us ? now_us - since_us : 0, 1);
    let_go(in, session);
}

static void leave_empty(struct hg_gate_line *in)
{
    hg_list_remove(&in->node);
    hg_gate_wake(in, hg_ticket_leave(&in->holder->ticket, in->worker->index));
}

static struct hg_ticketline_conf conf_of(const struct hg_gate_holder *holder)
{
    struct hg_gate_holder *h = (struct hg_gate_holder *)(uintptr_t)holder;
    return (struct hg_ticketline_conf){
        atomic_load_explicit(&h->overload_wait_us, memory_order_relaxed)};
}

static void refuse_late_ones(struct hg_gate_line *in)
{
    const struct hg_ticketline_conf conf = conf_of(in->holder);
    struct hg_ticketline_waiter *waiter;
    while ((waiter = hg_ticketline_expire(&in->line, &conf, in->worker->loop.now_us)) != NULL) {
        struct hg_session *session = session_of(waiter);
        count_canceled(in, session);
        count_out(in, session);
        note_late(in);
        refuse(session->waiting, in->place, true);
    }
}

/* As core/ticket.h wants it. */
void hg_gate_serve(struct hg_gate_line *in)
{
    in->serve_wanted = false;
    refuse_late_ones(in);
    while (in->line.count > 0 && hg_ticket_want(&in->holder->ticket, in->worker->index))
        grant(in);
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
    hg_ticketline_tick(&in->line, in->worker->loop.now_us); /* overload ends in silence, too */
    hg_counter_set(&shown->queue_min_us, in->line.count > 0 ? in->line.last_min_us : 0);
    hg_counter_set(&shown->overloaded, in->line.overloaded);
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

/* The request gets in line, unless that is in vain. True: it waits. */
bool hg_gate_wait(struct hg_session *session, struct hg_request *request, struct hg_gate_line *in)
{
    struct hg_gate_holder *holder = in->holder;
    struct hg_worker *worker = session->worker;
    struct hg_lane *lane = request->lane;
    const struct hg_ticketline_conf conf = conf_of(holder);
    uint64_t now_us = worker->loop.now_us;
    int64_t most = (int64_t)atomic_load_explicit(&holder->max_waiting, memory_order_relaxed);
    if (atomic_load_explicit(&holder->waiting, memory_order_relaxed) >= most) {
        hg_counter_add(&in->tally->overflows, 1);
        hg_counter_add(&lane->tallies[in->place].overflows, 1);
        refuse(request, in->place, false);
        return false;
    }
    struct hg_ticketline_waiter *waiter = &session->waiter;
    waiter->since_us = now_us;
    waiter->came_us = session->backlog_us != 0 ? session->backlog_us : now_us;
    waiter->deadline_us =
        now_us + atomic_load_explicit(&holder->queue_timeout_us, memory_order_relaxed);
    if (request->call.deadline_us < waiter->deadline_us)
        waiter->deadline_us = request->call.deadline_us;
    uint64_t units = request->read_units + request->write_units;
    waiter->cost = units == 0 ? 1 : units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
    if (session->hung_up || session->closing ||
        hg_ticketline_end_us(&in->line, &lane->queues[in->place], &conf, waiter) <= now_us) {
        hg_counter_add(&in->tally->canceled, 1);
        hg_counter_add(&lane->tallies[in->place].canceled, 1);
        note_late(in);
        refuse(request, in->place, true);
        return false;
    }
    request->hold_us = now_us;
    request->seen |= HG_SEEN_TICKET_WAITED;
    HG_PROBE_POINT(ticket__wait, lane->bucket->name, in->place, in->line.count);
    session->waiting = request;
    session->wait = HG_WAIT_TICKET;
    session->in_line = in;
    hg_ticketline_push(&in->line, &lane->queues[in->place], waiter, now_us);
    atomic_fetch_add_explicit(&holder->waiting, 1, memory_order_relaxed);
    if (in->share != NULL)
        hg_gateshare_backlog(in->share, 1, now_us);
    hg_counter_add(&in->tally->added, 1);
    hg_counter_add(&lane->tallies[in->place].added, 1);
    if (hg_list_empty(&in->node))
        hg_list_append(&worker->lines_waiting, &in->node);
    if (!worker->line_timer_armed)
        arm(worker);
    if (hg_ticket_want(&holder->ticket, worker->index))
        grant(in); /* perhaps to another one, whose turn it is */
    if (in->line.count == 0)
        leave_empty(in);
    return true;
}

void hg_gate_abandon(struct hg_session *session)
{
    struct hg_gate_line *in = session->in_line;
    if (session->wait != HG_WAIT_TICKET || in == NULL)
        return;
    hg_ticketline_remove(&in->line, &session->waiter, in->worker->loop.now_us);
    count_canceled(in, session);
    count_out(in, session);
    session->wait = HG_WAIT_NONE;
    if (in->line.count == 0)
        leave_empty(in);
}

/* Those of a tenant in one line need not wait any more: they go on, each with a ticket by force, so
   that what is out stays right. */
static void let_all_go(struct hg_ticketline_tenant *tenant)
{
    HG_LIST_EACH(node, &tenant->waiters)
    {
        struct hg_session *session = HG_CONTAINER_OF(node, struct hg_session, waiter.node);
        struct hg_gate_line *in = session->in_line;
        hg_ticketline_remove(&in->line, &session->waiter, in->worker->loop.now_us);
        hg_ticket_force(&in->holder->ticket);
        let_go(in, session);
        if (in->line.count == 0)
            leave_empty(in);
    }
}

void hg_gates_adopt(struct hg_worker *worker)
{
    bool ingress = atomic_load_explicit(&worker->front->ingress_enabled, memory_order_relaxed);
    HG_LIST_EACH(node, &worker->lanes_used)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(node, struct hg_lane, used);
        int mode = atomic_load_explicit(&lane->bucket->ticket_mode, memory_order_relaxed);
        for (unsigned place = 0; place < HG_GATE_PLACES; place++)
            if (mode != HG_MODE_ENFORCE || (place == HG_GATE_INGRESS && !ingress))
                let_all_go(&lane->queues[place]);
    }
}
