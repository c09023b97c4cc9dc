// gate - tickets on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gate_in.h"

#include <errno.h>
#include <stdlib.h>

#include "front/answer.h"
#include "front/trace.h"
#include "proto/status.h"

#define LOOKS 256 /* at requests with tickets, for the oldest of each kind */

static const struct hg_refusal no_store = {HG_STATUS_EINTERNAL, HG_OUTCOME_FRONT_ERROR,
                                           "the tenant's store could not be opened", HG_SPAN_NONE,
                                           HG_SPAN_NONE};

/* ---- which holder ---- */

/* Reads are operations of the QUERY type, and what goes on with a range; all others are writes. */
#define KIND_INSERT(writes) HG_TICKET_WRITE
#define KIND_DELETE(writes) HG_TICKET_WRITE
#define KIND_UPDATE(writes) HG_TICKET_WRITE
#define KIND_QUERY(writes)  HG_TICKET_READ
#define KIND_POINT(writes)  HG_TICKET_READ
#define KIND_ITEMS(writes)  HG_TICKET_WRITE
#define KIND_NONE(writes)   ((writes) ? HG_TICKET_WRITE : HG_TICKET_READ)

static const uint8_t kinds[HG_OPS] = {
#define HG_OP(name, printed, reads, writes, api, code, hot) KIND_##hot(writes),
#include "base/op.def"
#undef HG_OP
};

/* ---- taking and giving back ---- */

void hg_gate_wake_slow(struct hg_gate_line *in, uint32_t worker)
{
    if (worker != in->worker->index) {
        hg_gate_poke(in->worker->front, worker);
        return;
    }
    in->serve_wanted = true;
    hg_loop_again(&in->worker->loop);
}

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

/* What few requests have. */
static void leave_rest(struct hg_request *request, uint8_t tickets)
{
    if (request->in_backlog)
        hg_gate_room_end(request);
    if (tickets & HG_TICKETS_EXEMPT) {
        hg_counter_add(&request->session->worker->ingress->tally->exempt_finished, 1);
        hg_counter_add(&request->lane->tallies[HG_GATE_INGRESS].exempt_finished, 1);
    }
}

void hg_gate_leave(struct hg_request *request, bool answered)
{
    struct hg_worker *worker = request->session->worker;
    uint8_t tickets = request->tickets;
    request->tickets = 0;
    if (HG_LIKELY(tickets & HG_TICKETS_EXECUTE)) {
        struct hg_gate_line *in = request->gate;
        struct hg_gate_tally *of_tenant = &request->lane->tallies[in->place];
        uint64_t held_us = worker->loop.now_us - request->ticket_us;
        uint64_t slow_us = worker->directory->settings.slow_request_us;
        tell(in->tally, answered, held_us);
        tell(of_tenant, answered, held_us);
        if (HG_UNLIKELY(held_us > slow_us) && slow_us > 0) {
            note_delinquent(in->tally, held_us - slow_us);
            note_delinquent(of_tenant, held_us - slow_us);
        }
        request->run.prev->next = request->run.next; /* it will be in no list again */
        request->run.next->prev = request->run.prev;
        hg_gate_wake(in, hg_ticket_put(&in->holder->ticket));
    }
    if (HG_LIKELY(tickets & HG_TICKETS_INGRESS)) {
        struct hg_gate_line *in = worker->ingress;
        hg_counter_add(&in->tally->answered, 1);
        hg_gate_wake(in, hg_ticket_put(&in->holder->ticket));
    }
    if (HG_UNLIKELY((tickets & HG_TICKETS_EXEMPT) || request->in_backlog))
        leave_rest(request, tickets);
}

void hg_gate_on_strand(void *ctx, unsigned kind, int change)
{
    struct hg_gate *gate = ctx;
    struct hg_gate_line *in = &gate->lines[kind];
    atomic_fetch_add_explicit(&in->holder->stranded, change, memory_order_relaxed);
    if (change > 0)
        hg_ticket_force(&in->holder->ticket);
    else
        hg_gate_wake(in, hg_ticket_put(&in->holder->ticket));
}

/* ---- backlog ---- */

void hg_gate_room_begin(struct hg_request *request)
{
    struct hg_worker *worker = request->session->worker;
    if (request->call.quarantine)
        return; /* it waits for nobody but its own kind */
    request->in_backlog = true;
    hg_gateshare_backlog(request->lane->bucket->upstream->gate, 1, worker->loop.now_us);
}

void hg_gate_room_end(struct hg_request *request)
{
    if (!request->in_backlog)
        return;
    request->in_backlog = false;
    hg_gateshare_backlog(request->lane->bucket->upstream->gate, -1,
                         request->session->worker->loop.now_us);
}

/* ---- the way in ---- */

/* One ticket; false: it waits, or was refused. */
static bool take(struct hg_session *session, struct hg_request *request, struct hg_gate_line *in,
                 enum hg_mode mode, bool *ret_waits)
{
    if (in->line.count == 0 && hg_ticket_try(&in->holder->ticket)) {
        hg_gate_have(request, in);
        return true;
    }
    if (mode == HG_MODE_OBSERVE) {
        hg_counter_add(&in->tally->would_wait, 1);
        hg_counter_add(&request->lane->tallies[in->place].would_wait, 1);
        request->seen |= HG_SEEN_TICKET_WOULD;
        hg_ticket_force(&in->holder->ticket);
        hg_gate_have(request, in);
        return true;
    }
    *ret_waits = hg_gate_wait(session, request, in);
    return false;
}

static inline bool enter_exempt(struct hg_request *request)
{
    request->tickets |= HG_TICKETS_EXEMPT;
    hg_counter_add(&request->session->worker->ingress->tally->exempt_started, 1);
    hg_counter_add(&request->lane->tallies[HG_GATE_INGRESS].exempt_started, 1);
    return true;
}

/* Any request, in whatever state. */
static bool enter_slow(struct hg_session *session, struct hg_request *request, bool *ret_waits)
{
    struct hg_worker *worker = session->worker;
    struct hg_bucket *bucket = request->lane->bucket;
    enum hg_mode mode =
        (enum hg_mode)atomic_load_explicit(&bucket->ticket_mode, memory_order_relaxed);
    *ret_waits = false;
    if (request->tickets & (HG_TICKETS_EXECUTE | HG_TICKETS_EXEMPT))
        return true; /* it comes back from another wait */
    if (mode == HG_MODE_OFF)
        return enter_exempt(request);
    if (bucket->upstream == NULL || hg_worker_store(worker, bucket->upstream) == NULL) {
        hg_answer_refusal(request, &no_store);
        return false;
    }
    bool ingress = atomic_load_explicit(&worker->front->ingress_enabled, memory_order_relaxed);
    if (ingress && !(request->tickets & HG_TICKETS_INGRESS) &&
        !take(session, request, worker->ingress, mode, ret_waits))
        return false;
    struct hg_gate *gate = worker->gates[bucket->upstream->slot];
    return take(session, request, &gate->lines[kinds[request->call.op]], mode, ret_waits);
}

/* Both tickets at once, when nobody has to wait. */
bool hg_gate_enter(struct hg_session *session, struct hg_request *request, bool *ret_waits)
{
    struct hg_worker *worker = session->worker;
    struct hg_bucket *bucket = request->lane->bucket;
    struct hg_gate_line *ingress = worker->ingress;
    int mode = atomic_load_explicit(&bucket->ticket_mode, memory_order_relaxed);
    if (mode == HG_MODE_OFF && request->tickets == 0)
        return enter_exempt(request);
    if (HG_UNLIKELY(request->tickets != 0 || bucket->upstream == NULL || mode != HG_MODE_ENFORCE ||
                    !atomic_load_explicit(&worker->front->ingress_enabled, memory_order_relaxed)))
        return enter_slow(session, request, ret_waits);
    struct hg_gate *gate = worker->gates[bucket->upstream->slot];
    if (HG_UNLIKELY(gate == NULL || ingress->line.count > 0 ||
                    !hg_ticket_try(&ingress->holder->ticket)))
        return enter_slow(session, request, ret_waits);
    struct hg_gate_line *in = &gate->lines[kinds[request->call.op]];
    hg_gate_have_ingress(request, ingress);
    if (HG_UNLIKELY(in->line.count > 0 || !hg_ticket_try(&in->holder->ticket)))
        return enter_slow(session, request, ret_waits);
    hg_gate_have_execution(request, in);
    return true;
}

/* ---- the worker's part ---- */

static void init_line(struct hg_gate_line *in, struct hg_worker *worker,
                      struct hg_gate_holder *holder, struct hg_gate *gate)
{
    hg_list_init(&in->node);
    in->worker = worker;
    in->holder = holder;
    in->place = holder->place;
    in->tally = &holder->workers[worker->index].tally;
    in->share = gate != NULL ? gate->share : NULL;
    in->running = gate != NULL ? &gate->running : NULL;
    hg_ticketline_init(&in->line);
}

int hg_gates_open(struct hg_worker *worker)
{
    hg_list_init(&worker->lines_waiting);
    worker->ingress = calloc(1, sizeof *worker->ingress);
    if (worker->ingress == NULL)
        return -ENOMEM;
    init_line(worker->ingress, worker, &worker->front->ingress, NULL);
    return hg_loop_timer_init(&worker->loop, &worker->line_timer, 0, hg_gate_on_line_timer);
}

void hg_gates_close(struct hg_worker *worker)
{
    if (worker->ingress == NULL)
        return;
    hg_loop_timer_fini(&worker->line_timer);
    free(worker->ingress);
    worker->ingress = NULL;
}

struct hg_gate *hg_gate_new(struct hg_worker *worker, struct hg_upstream *upstream)
{
    struct hg_gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return NULL;
    gate->share = upstream->gate;
    hg_list_init(&gate->running);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        init_line(&gate->lines[kind], worker, &gate->share->holders[kind], gate);
    return gate;
}

void hg_gate_free(struct hg_gate *gate)
{
    free(gate);
}

bool hg_gate_in_use(const struct hg_gate *gate)
{
    return !hg_list_empty(&gate->running) || gate->lines[HG_TICKET_READ].line.count > 0 ||
           gate->lines[HG_TICKET_WRITE].line.count > 0;
}

/* Since when the oldest of each kind has its ticket, as far as it is among the first. */
static void find_oldest(struct hg_gate *gate, uint64_t ret_us[HG_TICKET_KINDS])
{
    unsigned looked_at = 0, kinds_found = 0;
    HG_LIST_EACH(node, &gate->running)
    {
        const struct hg_request *request = HG_CONTAINER_OF(node, struct hg_request, run);
        uint64_t *us = &ret_us[request->call.ticket - 1];
        kinds_found += *us == 0;
        if (*us == 0)
            *us = request->ticket_us;
        if (kinds_found == HG_TICKET_KINDS || ++looked_at == LOOKS)
            return;
    }
}

void hg_gates_publish(struct hg_worker *worker)
{
    hg_gate_publish_line(worker->ingress);
    for (unsigned slot = 0; slot < HG_UPSTREAMS_MAX; slot++) {
        struct hg_gate *gate = worker->gates[slot];
        if (gate == NULL)
            continue;
        uint64_t oldest_us[HG_TICKET_KINDS] = {0};
        find_oldest(gate, oldest_us);
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
            hg_gate_publish_line(&gate->lines[kind]);
            hg_counter_set(&gate->share->holders[kind].workers[worker->index].oldest_us,
                           oldest_us[kind]);
        }
    }
}

static void on_gate_letter(struct hg_letter *letter, void *receiver)
{
    struct hg_worker *worker = receiver;
    (void)letter;
    /* Cleared first: who posts from now on may have something that is not seen now. */
    atomic_store(&worker->gate_posted, false);
    HG_LIST_EACH(node, &worker->lines_waiting)
    {
        struct hg_gate_line *in = HG_CONTAINER_OF(node, struct hg_gate_line, node);
        hg_gate_serve(in);
    }
}

void hg_gate_poke(struct hg_front *front, uint32_t index)
{
    if (index == HG_TICKET_NOBODY)
        return;
    struct hg_worker *worker = &front->workers[index];
    if (atomic_exchange(&worker->gate_posted, true))
        return;
    worker->gate_letter.deliver = on_gate_letter;
    hg_mailbox_post(&worker->mailbox, &worker->gate_letter);
}
