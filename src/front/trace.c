// trace - one line in the log for one in so many requests, with every verdict and every wait
// SPDX-License-Identifier: BSD-3-Clause
#include "front/trace.h"

#include <stdio.h>

#include "base/log.h"
#include "front/gate.h"
#include "front/held.h"
#include "front/session.h"

static const char *hot_verdict(const struct hg_request *request, enum hg_outcome outcome)
{
    if (outcome == HG_OUTCOME_HOT_KEY)
        return "refused";
    if (request->seen & HG_SEEN_HOT_WOULD)
        return "would_refuse";
    return request->seen & HG_SEEN_HOT_LIST ? "listed" : "none";
}

static const char *bind_verdict(const struct hg_request *request, enum hg_outcome outcome)
{
    if (outcome == HG_OUTCOME_BIND_THROTTLED)
        return "refused";
    if (outcome == HG_OUTCOME_EVICTED)
        return "evicted";
    if (request->bind_passed)
        return "passed";
    if (request->seen & HG_SEEN_BIND_WOULD)
        return "would_refuse";
    return request->seen & HG_SEEN_BINDS ? "listed" : "none";
}

static const char *credit_verdict(const struct hg_request *request, enum hg_outcome outcome,
                                  char room[48])
{
    const struct hg_bucket *bucket = request->lane->bucket;
    const char *verdict = NULL;
    if (outcome == HG_OUTCOME_THROTTLED || outcome == HG_OUTCOME_THROTTLED_TOO_LONG)
        verdict = "refused";
    else if (request->seen & HG_SEEN_CREDIT_HELD)
        verdict = "held";
    else if (request->seen & HG_SEEN_CREDIT_WOULD)
        verdict = "would_hold";
    if (verdict != NULL) {
        snprintf(room, 48, "%s(%s)", verdict, hg_held_reason_name(request->held_for));
        return room;
    }
    if (!request->admitted)
        return "not_asked";
    if (atomic_load_explicit((_Atomic int *)&bucket->credit_mode, memory_order_relaxed) ==
        HG_MODE_OFF)
        return "off";
    bool exempt = request->session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
    return exempt ? "exempt" : "passed";
}

static const char *ticket_verdict(const struct hg_request *request, enum hg_outcome outcome)
{
    bool has = request->pass.tickets & HG_TICKETS_EXECUTE;
    if (request->pass.tickets & HG_TICKETS_EXEMPT)
        return "exempt";
    if (!has && (outcome == HG_OUTCOME_QUEUE_FULL || outcome == HG_OUTCOME_QUEUE_TIMEOUT))
        return "refused";
    if (request->seen & HG_SEEN_TICKET_WOULD)
        return "would_wait";
    if (request->seen & HG_SEEN_TICKET_WAITED)
        return "waited";
    return has ? "taken" : "not_asked";
}

void hg_trace_request(const struct hg_request *request, enum hg_outcome outcome, const char *server,
                      uint64_t number)
{
    const struct hg_session *session = request->session;
    uint64_t now_us = session->worker->loop.now_us, sent_us = request->call.sent_us;
    char key[4 * HG_REQUEST_KEY_HEAD + 8], user[128], peer[HG_ADDR_TEXT], credits[48];
    size_t shown = request->key_len < HG_REQUEST_KEY_HEAD ? request->key_len : HG_REQUEST_KEY_HEAD;
    hg_escape(key, sizeof key, hg_span(request->key_head, shown));
    hg_escape(user, sizeof user,
              hg_span_str(session->user_name != NULL ? session->user_name : "-"));
    hg_log_trace(
        "trace=%llu worker=%u tenant=%s op=%s key=%s%s client=%s user=%s hot=%s bind=%s credits=%s "
        "tickets=%s units=%llu/%llu outcome=%s throttle_us=%llu ticket_us=%llu room_us=%llu "
        "store_us=%llu total_us=%llu server=%s",
        (unsigned long long)number, session->worker->index, request->lane->bucket->name,
        hg_op_rows[request->call.op].name, key, shown < request->key_len ? "..." : "",
        hg_addr_text(&session->peer, peer), user, hot_verdict(request, outcome),
        bind_verdict(request, outcome), credit_verdict(request, outcome, credits),
        ticket_verdict(request, outcome), (unsigned long long)request->read_units,
        (unsigned long long)request->write_units, hg_outcome_rows[outcome].name,
        (unsigned long long)request->throttle_us,
        (unsigned long long)(request->queue_us - request->room_us),
        (unsigned long long)request->room_us,
        (unsigned long long)(sent_us > 0 && now_us > sent_us ? now_us - sent_us : 0),
        (unsigned long long)(now_us - request->start_us), server != NULL ? server : "-");
}

void hg_trace_refused(const struct hg_session *session, const struct hg_opcode_row *row,
                      enum hg_outcome outcome, uint64_t number)
{
    char user[128], peer[HG_ADDR_TEXT];
    hg_escape(user, sizeof user,
              hg_span_str(session->user_name != NULL ? session->user_name : "-"));
    hg_log_trace("trace=%llu worker=%u tenant=%s op=%s client=%s user=%s outcome=%s",
                 (unsigned long long)number, session->worker->index,
                 session->lane != NULL ? session->lane->bucket->name : "-",
                 row != NULL ? row->name : "-", hg_addr_text(&session->peer, peer), user,
                 hg_outcome_rows[outcome].name);
}
