// dispatch_end - ends of requests without a result: refused while they wait, or the client gone
// SPDX-License-Identifier: BSD-3-Clause
#include "front/answer_in.h"
#include "front/bind.h"
#include "front/dispatch_in.h"
#include "front/gate.h"
#include "front/held.h"
#include "front/table.h"

static void leave_store(struct hg_request *request)
{
    if (request->bind_passed && request->state == HG_REQUEST_WAITING)
        hg_bind_undo(request); /* it had no slot; its key is known as long as its table is there */
    if (request->table != NULL) {
        hg_table_cancel(request);
        return;
    }
    if (request->guard != NULL) {
        hg_rows_cancel_guard(request->guard);
        hg_slab_give_back(&request->session->worker->tables.guards, request->guard);
        request->guard = NULL;
        return;
    }
    struct hg_store *store = request->call.place.store;
    if (store != NULL && (request->call.place.pending || request->call.place.waiting))
        store->ops->cancel(store, &request->call);
}

/* Takes the waiting request out of the queue that it waits in. */
static void end_wait(struct hg_session *session)
{
    if (session->wait == HG_WAIT_CREDITS)
        hg_held_leave(session);
    else if (session->wait == HG_WAIT_TICKET)
        hg_gate_abandon(session);
    else
        leave_store(session->waiting);
}

void hg_dispatch_refuse_waiting(struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    /* One that the credits have let go is carried out, unless nothing is looked at any more. */
    if (request == NULL || (session->wait == HG_WAIT_NONE && !session->closing))
        return;
    /* One that only follows its own client's earlier one, which is under way, will not be long. */
    if (session->wait == HG_WAIT_ROOM && request->follows && !session->closing)
        return;
    bool credits = session->wait != HG_WAIT_ROOM && session->wait != HG_WAIT_TICKET;
    end_wait(session);
    struct hg_refusal refusal = {credits ? HG_STATUS_THROTTLED_TOO_LONG : HG_STATUS_QUEUE_TIMEOUT,
                                 credits ? HG_OUTCOME_THROTTLED_TOO_LONG : HG_OUTCOME_QUEUE_TIMEOUT,
                                 session->hung_up ? "the client stopped sending while it waited"
                                                  : "the server is going down",
                                 HG_SPAN_NONE, HG_SPAN_NONE};
    hg_answer_refusal(request, &refusal);
}

/* ---- a new directory ---- */

/* The waiting request's tenant has moved: it is admitted anew, in the lane of now, from the frame
   that is kept. */
static void start_again(struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    struct hg_worker *worker = session->worker;
    struct hg_bucket *bucket = session->lane->bucket;
    uint64_t read_units = request->read_units, write_units = request->write_units;
    end_wait(session);
    hg_gate_leave(request, false);
    hg_answer_settle_none(request);
    request->read_units = read_units;
    request->write_units = write_units;
    memset(&request->charge, 0, sizeof request->charge);
    hg_worker_use_lane(worker, session->lane);
    hg_worker_leave_lane(worker, request->lane);
    request->lane = session->lane;
    request->call.tenant_id = bucket->tenant_id;
    request->call.prefix = hg_span(bucket->prefix, bucket->prefix_len);
    request->call.ticket = 0;
    request->admitted = request->bind_passed = request->call.quarantine = false;
    session->wait = HG_WAIT_NONE;
    hg_session_make_ready(session);
}

/* It waits for room in a store that is old: it goes to the one of now. */
static void leave_room(struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    struct hg_store *store = request->call.place.store;
    store->ops->cancel(store, &request->call);
    hg_gate_room_end(request);
    request->queue_us += session->worker->loop.now_us - request->hold_us;
    session->wait = HG_WAIT_NONE;
    hg_session_make_ready(session);
}

/* The worker has just adopted the directory: what has an instance has one of the generation that is
   listed. */
static bool is_on_old_store(const struct hg_worker *worker, const struct hg_request *request)
{
    if (request->state != HG_REQUEST_SENT || request->lane == NULL)
        return false;
    const struct hg_upstream *upstream = request->lane->bucket->upstream;
    return upstream != NULL && worker->stores[upstream->slot] == NULL;
}

void hg_dispatch_adopt(struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    struct hg_worker *worker = session->worker;
    if (request != NULL && !hg_bucket_live(request->lane->bucket)) {
        struct hg_refusal refusal = hg_dispatch_ended(request->lane->bucket);
        end_wait(session);
        hg_answer_refusal(request, &refusal);
    } else if (request != NULL && session->lane != NULL && request->lane != session->lane) {
        start_again(session);
    } else if (request != NULL && session->wait == HG_WAIT_ROOM &&
               worker->stores[request->lane->bucket->upstream->slot] == NULL) {
        leave_room(session);
    }
    for (const struct hg_request *r = session->first; r != NULL && !session->turning; r = r->next)
        session->turning = is_on_old_store(worker, r);
}

/* ---- evicted, or the client gone ---- */

void hg_dispatch_evict(struct hg_request *request, const struct hg_refusal *refusal)
{
    if (request->session->waiting == request) {
        end_wait(request->session);
        hg_answer_refusal(request, refusal);
    } else {
        leave_store(request);
        hg_answer_evicted(request, refusal);
    }
}

void hg_dispatch_cancel(struct hg_request *request)
{
    struct hg_worker *worker = request->session->worker;
    if (request->state != HG_REQUEST_DONE) {
        leave_store(request);
        hg_answer_gone(request);
    }
    hg_blob_unref(request->reply);
    hg_blob_unref(request->value_blob);
    hg_blob_unref(request->key);
    if (request->lane != NULL)
        hg_worker_leave_lane(worker, request->lane);
    hg_slab_give_back(&worker->requests, request);
}
