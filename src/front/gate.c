// gate - tickets on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gate_in.h"

#include <errno.h>
#include <stdlib.h>

#include "front/answer.h"
#include "front/instance.h"
#include "front/trace.h"
#include "proto/status.h"

static const struct hg_refusal no_store = {HG_STATUS_EINTERNAL, HG_OUTCOME_FRONT_ERROR,
                                           "the tenant's store could not be opened", HG_SPAN_NONE,
                                           HG_SPAN_NONE},
                               no_memory = {HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR,
                                            "no memory is left for the request", HG_SPAN_NONE,
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

/* It has an execution ticket, without having waited for it. `key`: the record of its key, or
   NULL. */
static HG_ALWAYS_INLINE void begin(struct hg_gate_pass *pass, struct hg_gate_line *in,
                                   struct hg_ticketline_tenant *place, struct hg_keyshare_key *key)
{
    hg_gate_have_execution(pass, in, place);
    hg_keyshare_begin(&in->keys, &pass->key, key, pass->ticket_us);
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

static void leave_server(struct hg_gate_pass *pass, bool answered)
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
        leave_server(pass, answered);
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
    leave_server(pass, true);
    hg_ticket_force(&in->holder->ticket);
    begin(pass, in, place, hg_keyshare_find(&in->keys, pass->key.id));
    hg_gate_rejoin(in); /* its tenant may be beyond its window now */
}

/* ---- which server ---- */

/* The instance of a bucket's upstream of now; NULL: its store cannot be opened. */
static inline struct hg_instance *instance_of(struct hg_worker *worker,
                                              const struct hg_bucket *bucket)
{
    struct hg_upstream *upstream = bucket->upstream;
    struct hg_instance *instance = worker->instances[upstream->slot];
    if (HG_LIKELY(instance != NULL && instance->generation->upstream == upstream))
        return instance;
    return hg_worker_instance(worker, upstream);
}

static inline uint32_t server_of(struct hg_instance *instance, struct hg_call *at)
{
    struct hg_store *store = instance->store;
    uint32_t server = store->ops->server_of != NULL ? store->ops->server_of(store, at) : 0;
    at->route = server + 1; /* HG_SERVER_NONE: 0 */
    return server;
}

static inline struct hg_gate_part *part_of(struct hg_instance *instance, uint32_t server)
{
    if (HG_LIKELY(server < instance->part_count && instance->parts[server] != NULL))
        return instance->parts[server];
    return hg_gate_part(instance, server);
}

/* ---- backlog ---- */

/* The request has asked for a ticket of a server, or needs none. */
static struct hg_gate_part *part_at(struct hg_request *request)
{
    if (request->pass.gate != NULL)
        return request->pass.gate->part;
    struct hg_instance *instance = instance_of(request->session->worker, request->lane->bucket);
    return instance != NULL ? part_of(instance, server_of(instance, &request->call)) : NULL;
}

void hg_gate_room_begin(struct hg_request *request)
{
    struct hg_worker *worker = request->session->worker;
    if (request->call.quarantine)
        return; /* it waits for nobody but its own kind */
    struct hg_gate_part *part = part_at(request);
    if (part == NULL)
        return;
    request->in_backlog = part->share;
    hg_gateshare_backlog(part->share, 1, worker->loop.now_us);
}

void hg_gate_room_end(struct hg_request *request)
{
    struct hg_gateshare *share = request->in_backlog;
    if (share == NULL)
        return;
    request->in_backlog = NULL;
    hg_gateshare_backlog(share, -1, request->session->worker->loop.now_us);
}

/* ---- the way in ---- */

/* Whose share of the line's tickets it takes from. Equal keys have equal ids on all workers. */
static inline void set_key(struct hg_gate_pass *pass, struct hg_ticketline_tenant *place,
                           const struct hg_bucket *bucket, const struct hg_call *at)
{
    pass->key.id = at->key_hash ^ (uint32_t)((uintptr_t)bucket / HG_CACHE_LINE) * 0x9e3779b1u;
    pass->key.of = hg_gate_usual_of(place);
    pass->key_len = (uint32_t)at->key.len;
}

static void have(struct hg_gate_pass *pass, struct hg_gate_line *in,
                 struct hg_ticketline_tenant *place, struct hg_keyshare_key *key)
{
    if (in->place == HG_GATE_INGRESS)
        hg_gate_have_ingress(pass, in);
    else
        begin(pass, in, place, key);
}

/* A tenant that asks only now and then need not wait behind tenants that hold many tickets: if it
   has one ticket at most, and nobody of it waits, it may have one more than the size allows. */
static bool may_exceed(struct hg_gate_line *in, const struct hg_ticketline_tenant *place)
{
    return place->out < 2 && place->count == 0 &&
           atomic_load_explicit(&in->holder->may_exceed, memory_order_relaxed);
}

static uint32_t beyond(const struct hg_ticket *holder)
{
    int64_t part = hg_ticket_size(holder) / 8;
    return part > 2 ? (uint32_t)part : 2;
}

/* One ticket. `place`: the tenant's in that line. `bytes`: the key, of a server's. */
static enum hg_gate_verdict take(struct hg_gate_pass *pass, struct hg_gate_line *in,
                                 struct hg_ticketline_tenant *place, enum hg_mode mode,
                                 struct hg_span bytes)
{
    bool of_server = in->part != NULL;
    struct hg_keyshare_key *key = of_server ? hg_keyshare_find(&in->keys, pass->key.id) : NULL;
    if (of_server && mode == HG_MODE_ENFORCE &&
        !hg_keyshare_is_free(&in->keys, pass->key.id, key, in->worker->loop.now_us)) {
        struct hg_keyshare_key *asked;
        enum hg_keyshare_verdict verdict = hg_gate_ask_key(pass, in, bytes, &asked);
        if (asked != NULL)
            key = asked;
        if (verdict == HG_KEYSHARE_PARK)
            return hg_gate_park(pass, in, place, key) ? HG_GATE_WAITS : HG_GATE_REFUSED;
        if (verdict == HG_KEYSHARE_REFUSE)
            return HG_GATE_REFUSED;
    }
    if (!of_server && hg_gate_try_purse(pass, in))
        return HG_GATE_TAKEN;
    bool has_room = hg_ticketline_has_room(&in->line, place);
    if (in->line.count == 0 && has_room && hg_ticket_try(&in->holder->ticket)) {
        have(pass, in, place, key);
        return HG_GATE_TAKEN;
    }
    if (has_room && may_exceed(in, place) &&
        hg_ticket_try_beyond(&in->holder->ticket, beyond(&in->holder->ticket))) {
        have(pass, in, place, key);
        return HG_GATE_TAKEN;
    }
    if (mode == HG_MODE_OBSERVE) {
        hg_counter_add(&in->tally->would_wait, 1);
        hg_counter_add(&pass->request->lane->tallies[in->place].would_wait, 1);
        pass->request->seen |= HG_SEEN_TICKET_WOULD;
        hg_ticket_force(&in->holder->ticket);
        have(pass, in, place, key);
        return HG_GATE_TAKEN;
    }
    return hg_gate_wait(pass, in, place) ? HG_GATE_WAITS : HG_GATE_REFUSED;
}

static inline enum hg_mode mode_of(const struct hg_bucket *bucket)
{
    return (enum hg_mode)atomic_load_explicit((_Atomic int *)(uintptr_t)&bucket->ticket_mode,
                                              memory_order_relaxed);
}

/* The ticket of the call's server. It may have waited meanwhile, and have one of a server that the
   key belongs to no more: that is given back first. */
static enum hg_gate_verdict take_server(struct hg_gate_pass *pass, struct hg_call *at)
{
    const struct hg_bucket *bucket = pass->request->lane->bucket;
    struct hg_worker *worker = pass->request->session->worker;
    enum hg_mode mode = mode_of(bucket);
    struct hg_instance *instance = bucket->upstream != NULL ? instance_of(worker, bucket) : NULL;
    if (instance == NULL) {
        pass->owner->on_refused(pass, &no_store);
        return HG_GATE_REFUSED;
    }
    struct hg_gate_part *part = part_of(instance, server_of(instance, at));
    struct hg_gate_line *in = part != NULL ? &part->lines[kinds[at->op]] : NULL;
    struct hg_ticketline_tenant *place = in != NULL ? hg_gate_place_of(in, pass->request) : NULL;
    if (place == NULL) {
        pass->owner->on_refused(pass, &no_memory);
        return HG_GATE_REFUSED;
    }
    at->ticket = 0;
    if (!pass->key.is_engaged && !pass->key.is_parked)
        set_key(pass, place, bucket, at);
    if (pass->gate != NULL && pass->gate != in) {
        pass->tickets &= (uint8_t)~HG_TICKETS_EXECUTE;
        leave_server(pass, false);
    }
    if (pass->gate == NULL && mode == HG_MODE_OFF)
        return HG_GATE_TAKEN;
    enum hg_gate_verdict verdict =
        pass->gate == NULL ? take(pass, in, place, mode, at->key) : HG_GATE_TAKEN;
    if (verdict == HG_GATE_TAKEN)
        at->ticket = hg_gate_token((enum hg_ticket_kind)kinds[at->op], pass->key.id);
    return verdict;
}

enum hg_gate_verdict hg_gate_ask(struct hg_gate_pass *pass, struct hg_call *at)
{
    return take_server(pass, at);
}

static inline bool enter_exempt(struct hg_request *request)
{
    request->pass.tickets |= HG_TICKETS_EXEMPT;
    hg_counter_add(&request->session->worker->ingress->tally->exempt_started, 1);
    hg_counter_add(&request->lane->tallies[HG_GATE_INGRESS].exempt_started, 1);
    return true;
}

/* Any request, in whatever state. */
static bool enter_slow(struct hg_session *session, struct hg_request *request, struct hg_call *at,
                       bool *ret_waits)
{
    struct hg_worker *worker = session->worker;
    struct hg_gate_pass *pass = &request->pass;
    enum hg_mode mode = mode_of(request->lane->bucket);
    enum hg_gate_verdict verdict = HG_GATE_TAKEN;
    *ret_waits = false;
    if (pass->tickets & HG_TICKETS_EXEMPT)
        return true; /* it comes back from another wait */
    if (mode == HG_MODE_OFF && !(pass->tickets & HG_TICKETS_EXECUTE))
        return enter_exempt(request);
    bool ingress = atomic_load_explicit(&worker->front->ingress_enabled, memory_order_relaxed);
    if (ingress && !(pass->tickets & (HG_TICKETS_INGRESS | HG_TICKETS_EXECUTE)))
        verdict = take(pass, worker->ingress, &request->lane->ingress, mode, HG_SPAN_NONE);
    if (verdict == HG_GATE_TAKEN && at != NULL)
        verdict = take_server(pass, at);
    *ret_waits = verdict == HG_GATE_WAITS;
    return verdict == HG_GATE_TAKEN;
}

/* One that has its ingress ticket and finds no other at once. */
static bool enter_line(struct hg_gate_pass *pass, struct hg_gate_line *in,
                       struct hg_ticketline_tenant *place, struct hg_call *at, bool *ret_waits)
{
    enum hg_gate_verdict verdict = take(pass, in, place, HG_MODE_ENFORCE, at->key);
    if (verdict != HG_GATE_TAKEN)
        at->ticket = 0;
    *ret_waits = verdict == HG_GATE_WAITS;
    return verdict == HG_GATE_TAKEN;
}

/* Both tickets at once, when nobody has to wait. */
bool hg_gate_enter(struct hg_session *session, struct hg_request *request, struct hg_call *at,
                   bool *ret_waits)
{
    struct hg_worker *worker = session->worker;
    struct hg_bucket *bucket = request->lane->bucket;
    struct hg_gate_pass *pass = &request->pass;
    struct hg_gate_line *ingress = worker->ingress;
    enum hg_mode mode = mode_of(bucket);
    if (mode == HG_MODE_OFF && pass->tickets == 0)
        return enter_exempt(request);
    if (HG_UNLIKELY(pass->tickets != 0 || at == NULL || bucket->upstream == NULL ||
                    mode != HG_MODE_ENFORCE ||
                    !atomic_load_explicit(&worker->front->ingress_enabled, memory_order_relaxed)))
        return enter_slow(session, request, at, ret_waits);
    struct hg_instance *instance = instance_of(worker, bucket);
    struct hg_gate_part *part =
        HG_LIKELY(instance != NULL) ? part_of(instance, server_of(instance, at)) : NULL;
    if (HG_UNLIKELY(part == NULL || !hg_gate_try_purse(pass, ingress)))
        return enter_slow(session, request, at, ret_waits);
    struct hg_gate_line *in = &part->lines[kinds[at->op]];
    __asm__("" : "+r"(in)); /* else its address is computed anew a dozen times */
    struct hg_ticketline_tenant *place = hg_gate_place_of(in, request);
    if (HG_UNLIKELY(place == NULL))
        return enter_slow(session, request, at, ret_waits);
    set_key(pass, place, bucket, at);
    at->ticket = hg_gate_token((enum hg_ticket_kind)kinds[at->op], pass->key.id);
    struct hg_keyshare_key *key = hg_keyshare_find(&in->keys, pass->key.id);
    if (HG_UNLIKELY(in->line.count > 0 || place->out >= place->limit ||
                    !hg_keyshare_is_free(&in->keys, pass->key.id, key, worker->loop.now_us) ||
                    !hg_ticket_try(&in->holder->ticket)))
        return enter_line(pass, in, place, at, ret_waits);
    begin(pass, in, place, key);
    return true;
}

/* ---- the worker's part ---- */

int hg_gates_open(struct hg_worker *worker)
{
    hg_list_init(&worker->lines_waiting);
    worker->ingress = calloc(1, sizeof *worker->ingress);
    if (worker->ingress == NULL)
        return -ENOMEM;
    hg_gate_line_init(worker->ingress, worker, &worker->front->ingress, NULL);
    return hg_loop_timer_init(&worker->loop, &worker->line_timer, 0, hg_gate_on_line_timer);
}

void hg_gates_close(struct hg_worker *worker)
{
    if (worker->ingress == NULL)
        return;
    hg_loop_timer_fini(&worker->line_timer);
    hg_gate_line_fini(worker->ingress);
    free(worker->ingress);
    worker->ingress = NULL;
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
