// held - requests that wait for credits, worker's side
// SPDX-License-Identifier: BSD-3-Clause
#include "front/held.h"

#include <stdio.h>

#include "base/probe_point.h"
#include "core/credittick.h"
#include "front/answer.h"
#include "front/dispatch.h"
#include "front/trace.h"
#include "proto/hello.h"
#include "proto/status.h"

static uint32_t units_of(const struct hg_request *request)
{
    uint64_t units = request->read_units + request->write_units;
    return units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
}

static struct hg_session *session_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_session, held);
}

/* ---- what the others are told ---- */

static void set_head(struct hg_lane *lane)
{
    struct hg_list *first = hg_list_first(&lane->held);
    lane->holding.head_units = first != NULL ? units_of(session_at(first)->waiting) : 0;
    lane->holding.head_since_us = first != NULL ? session_at(first)->waiting->hold_us : 0;
    if (first == NULL)
        hg_list_remove(&lane->node);
}

static void follow(struct hg_worker *worker, struct hg_lane *lane, struct hg_held_advice advice)
{
    if (advice.again && !hg_list_empty(&lane->held)) {
        lane->pass_wanted = true;
        hg_loop_again(&worker->loop);
    }
    for (uint64_t poke = advice.poke; poke != 0; poke &= poke - 1)
        hg_worker_give_tick(&worker->front->workers[__builtin_ctzll(poke)]);
}

static void publish(struct hg_worker *worker, struct hg_lane *lane, const struct hg_charge *charge)
{
    set_head(lane);
    follow(worker, lane,
           hg_held_publish(worker->front->node, &lane->bucket->credit, worker->index,
                           &lane->holding, charge));
}

static void unlink_session(struct hg_session *session)
{
    struct hg_lane *lane = session->waiting->lane;
    hg_list_remove(&session->held);
    lane->holding.count--;
    lane->holding.units -= units_of(session->waiting);
    hg_counter_sub(&session->worker->held_now, 1);
}

static void count_wait(struct hg_request *request)
{
    uint64_t now_us = request->session->worker->loop.now_us;
    uint64_t waited_us = now_us > request->hold_us ? now_us - request->hold_us : 0;
    request->throttle_us += waited_us;
    hg_counter_add(&request->lane->throttle_wait_time, waited_us);
}

/* ---- refusals ---- */

static const char *limit_of(enum hg_credit_reason reason)
{
    switch (reason) {
    case HG_CREDIT_NO_POOL:
    case HG_CREDIT_NO_SHARE:
        return "node_capacity";
    case HG_CREDIT_HARD_LIMIT:
        return "hard_limit";
    default:
        return "queue";
    }
}

static void refuse(struct hg_request *request, uint16_t status, enum hg_outcome outcome)
{
    struct hg_worker *worker = request->session->worker;
    struct hg_bucket *bucket = request->lane->bucket;
    enum hg_credit_reason reason = (enum hg_credit_reason)request->charge.reason;
    uint64_t next_us =
        hg_credit_next_us(worker->front->node, &bucket->credit, reason, worker->loop.now_us);
    char text[256], members[256], verbatim[64];
    snprintf(text, sizeof text, "tenant '%s' is out of credits (%s); try again in %llu ms",
             bucket->name, limit_of(reason), (unsigned long long)(next_us + 999) / 1000);
    snprintf(members, sizeof members,
             "\"limit\":\"%s\",\"tenant\":\"%s\",\"operation\":\"%s\",\"retry_after_ms\":%llu",
             limit_of(reason), bucket->name, hg_op_rows[request->call.op].name,
             (unsigned long long)(next_us + 999) / 1000);
    snprintf(verbatim, sizeof verbatim, "{\"next_tick_us\":%llu}", (unsigned long long)next_us);
    struct hg_refusal refusal = {status, outcome, text, hg_span_str(members), HG_SPAN_NONE};
    if (status == HG_STATUS_EWOULD_THROTTLE)
        refusal.verbatim = hg_span_str(verbatim);
    hg_counter_add(&request->lane->num_rejected, 1);
    hg_answer_refusal(request, &refusal);
}

static void refuse_too_long(struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    count_wait(request);
    refuse(request, HG_STATUS_THROTTLED_TOO_LONG, HG_OUTCOME_THROTTLED_TOO_LONG);
}

const char *hg_held_reason_name(int reason)
{
    switch (reason) {
    case HG_CREDIT_NO_POOL:
        return "free_pool";
    case HG_CREDIT_NO_SHARE:
        return "share";
    case HG_CREDIT_HARD_LIMIT:
        return "hard_limit";
    default:
        return "behind_others";
    }
}

/* That others are held before it is no reason of its own: theirs stays. */
static void note_reason(struct hg_bucket *bucket, int reason)
{
    if (reason != HG_CREDIT_NO_POOL && reason != HG_CREDIT_NO_SHARE &&
        reason != HG_CREDIT_HARD_LIMIT)
        return;
    if (atomic_load_explicit(&bucket->held_for, memory_order_relaxed) != reason)
        atomic_store_explicit(&bucket->held_for, reason, memory_order_relaxed);
}

static void count_reason(struct hg_lane *lane, enum hg_credit_reason reason)
{
    switch (reason) {
    case HG_CREDIT_NO_POOL:
        hg_counter_add(&lane->held_for_pool, 1);
        break;
    case HG_CREDIT_NO_SHARE:
        hg_counter_add(&lane->held_for_share, 1);
        break;
    case HG_CREDIT_HARD_LIMIT:
        hg_counter_add(&lane->held_for_hard_limit, 1);
        break;
    default:
        hg_counter_add(&lane->held_behind_others, 1);
        break;
    }
}

/* ---- a new request ---- */

static unsigned flags_of(const struct hg_session *session, enum hg_mode mode)
{
    unsigned flags = 0;
    if (session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED))
        flags |= HG_CREDIT_UNTHROTTLED;
    if (mode == HG_MODE_OBSERVE)
        flags |= HG_CREDIT_OBSERVE;
    return flags;
}

static enum hg_mode mode_of(const struct hg_lane *lane)
{
    return (enum hg_mode)atomic_load_explicit(&lane->bucket->credit_mode, memory_order_relaxed);
}

static void hold(struct hg_session *session, struct hg_request *request)
{
    struct hg_worker *worker = session->worker;
    struct hg_lane *lane = request->lane;
    request->hold_us = worker->loop.now_us;
    request->seen |= HG_SEEN_CREDIT_HELD;
    HG_PROBE_POINT(credits__held, lane->bucket->name, request->charge.reason, units_of(request));
    session->waiting = request;
    session->wait = HG_WAIT_CREDITS;
    if (hg_list_empty(&lane->held))
        hg_list_append(&worker->lanes_held, &lane->node);
    hg_list_append(&lane->held, &session->held);
    lane->holding.count++;
    lane->holding.units += units_of(request);
    hg_counter_add(&lane->num_throttled, 1);
    hg_counter_add(&worker->held_now, 1);
    publish(worker, lane, &request->charge);
}

bool hg_held_admit(struct hg_session *session, struct hg_request *request, bool *ret_waits)
{
    struct hg_lane *lane = request->lane;
    enum hg_mode mode = mode_of(lane);
    *ret_waits = false;
    if (mode == HG_MODE_OFF)
        return true;
    unsigned flags = flags_of(session, mode);
    if (HG_LIKELY(hg_credit_decide(session->worker->front->node, &lane->bucket->credit,
                                   units_of(request), flags, &request->charge) == HG_CREDIT_PASS))
        return true;
    count_reason(lane, (enum hg_credit_reason)request->charge.reason);
    request->held_for = request->charge.reason;
    if (mode == HG_MODE_OBSERVE) {
        hg_counter_add(&lane->would_throttle, 1);
        request->seen |= HG_SEEN_CREDIT_WOULD;
        return true;
    }
    note_reason(lane->bucket, request->charge.reason);
    if ((session->features & HG_FEATURE_NON_BLOCKING_THROTTLING) || request->impersonated) {
        refuse(request, HG_STATUS_EWOULD_THROTTLE, HG_OUTCOME_THROTTLED);
        return false;
    }
    if (session->hung_up || session->closing) {
        refuse(request, HG_STATUS_THROTTLED_TOO_LONG, HG_OUTCOME_THROTTLED_TOO_LONG);
        return false;
    }
    hold(session, request);
    *ret_waits = true;
    return false;
}

/* ---- passes ---- */

static void release(struct hg_session *session)
{
    struct hg_request *request = session->waiting;
    unlink_session(session);
    count_wait(request);
    request->admitted = true;
    session->wait = HG_WAIT_NONE;
    /* That it waited was its tenant's doing, and says nothing of the lines that it comes to now. */
    session->read_us = session->worker->loop.now_us;
    hg_session_make_ready(session);
}

static bool decide_head(struct hg_worker *worker, struct hg_lane *lane, struct hg_held_pass *pass)
{
    struct hg_session *session = session_at(hg_list_first(&lane->held));
    struct hg_request *request = session->waiting;
    enum hg_mode mode = mode_of(lane);
    if (mode == HG_MODE_OFF)
        return true;
    if (hg_held_decide(worker->front->node, &lane->bucket->credit, pass, units_of(request),
                       flags_of(session, mode), &request->charge) == HG_CREDIT_PASS)
        return true;
    note_reason(lane->bucket, request->charge.reason);
    return false;
}

/* Those that were held again and have waited long enough; true when there were any. */
static bool expire(struct hg_worker *worker, struct hg_lane *lane)
{
    uint64_t now_us = worker->loop.now_us;
    uint64_t max_us = worker->directory->settings.throttle_max_wait_us;
    bool any = false;
    HG_LIST_EACH(node, &lane->held)
    {
        struct hg_session *session = session_at(node);
        struct hg_request *request = session->waiting;
        if (now_us - request->hold_us < max_us && now_us < request->call.deadline_us)
            continue;
        unlink_session(session);
        refuse_too_long(session);
        any = true;
    }
    return any;
}

void hg_held_expire(struct hg_worker *worker)
{
    HG_LIST_EACH(lane_node, &worker->lanes_held)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(lane_node, struct hg_lane, node);
        bool any = false;
        HG_LIST_EACH(node, &lane->held)
        {
            struct hg_session *session = session_at(node);
            if (worker->loop.now_us < session->waiting->call.deadline_us)
                continue;
            unlink_session(session);
            refuse_too_long(session);
            any = true;
        }
        if (any)
            publish(worker, lane, NULL);
    }
}

static void pass_lane(struct hg_worker *worker, struct hg_lane *lane)
{
    struct hg_credit_node *node = worker->front->node;
    struct hg_credit_bucket *credit = &lane->bucket->credit;
    struct hg_held_pass pass;
    lane->pass_wanted = false;
    if (hg_held_pass_begin(node, credit, worker->index, &pass))
        while (!hg_list_empty(&lane->held) && decide_head(worker, lane, &pass))
            release(session_at(hg_list_first(&lane->held)));
    set_head(lane);
    follow(worker, lane, hg_held_pass_done(node, credit, worker->index, &pass, &lane->holding));
    if (expire(worker, lane))
        publish(worker, lane, NULL);
}

void hg_held_pass_all(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->lanes_held)
    pass_lane(worker, HG_CONTAINER_OF(node, struct hg_lane, node));
}

void hg_held_pass_wanted(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->lanes_held)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(node, struct hg_lane, node);
        if (lane->pass_wanted)
            pass_lane(worker, lane);
    }
}

void hg_held_leave(struct hg_session *session)
{
    if (session->wait != HG_WAIT_CREDITS)
        return;
    struct hg_worker *worker = session->worker;
    struct hg_lane *lane = session->waiting->lane;
    unlink_session(session);
    count_wait(session->waiting);
    publish(worker, lane, NULL);
}

void hg_held_room(struct hg_worker *worker, struct hg_lane *lane)
{
    uint64_t holders = hg_held_holders(worker->front->node, &lane->bucket->credit);
    if (!hg_list_empty(&lane->held)) {
        lane->pass_wanted = true;
        hg_loop_again(&worker->loop);
    }
    if ((holders & ~((uint64_t)1 << worker->index)) != 0) {
        lane->poke_wanted = worker->pokes_wanted = true;
        hg_loop_again(&worker->loop);
    }
}

void hg_held_poke_wanted(struct hg_worker *worker)
{
    if (!worker->pokes_wanted)
        return;
    worker->pokes_wanted = false;
    HG_LIST_EACH(node, &worker->lanes_used)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(node, struct hg_lane, used);
        if (!lane->poke_wanted)
            continue;
        lane->poke_wanted = false;
        uint64_t holders = hg_held_holders(worker->front->node, &lane->bucket->credit);
        holders &= ~((uint64_t)1 << worker->index);
        follow(worker, lane, (struct hg_held_advice){false, holders});
    }
}
