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
        hg_gate_begin(pass, in, place, key);
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
    if ((has_room || (place->is_short && in->work.has_long)) && may_exceed(in, place) &&
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
        hg_gate_leave_server(pass, false);
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
    hg_gate_begin(pass, in, place, key);
    return true;
}

/* ---- the worker's part ---- */

void hg_gate_wake_slow(struct hg_gate_line *in, uint32_t worker)
{
    if (worker != in->worker->index) {
        hg_gate_poke(in->worker->front, worker);
        return;
    }
    in->serve_wanted = true;
    hg_loop_again(&in->worker->loop);
}

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
