// dispatch_end - ends of requests without a result: refused while they wait, or the client gone
// SPDX-License-Identifier: BSD-3-Clause
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

void hg_dispatch_refuse_ended(struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    if (request == NULL || hg_bucket_live(request->lane->bucket))
        return;
    struct hg_refusal refusal = hg_dispatch_ended(request->lane->bucket);
    end_wait(session);
    hg_answer_refusal(request, &refusal);
}

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
