// dispatch_keys - requests that are refused for their key: a hot one, or an evicted one
// SPDX-License-Identifier: BSD-3-Clause
#include "base/probe_point.h"
#include "front/bind.h"
#include "front/dispatch_in.h"
#include "front/hot.h"
#include "front/trace.h"
#include "proto/hello.h"
#include "proto/status.h"

/* ---- hot keys ---- */

bool hg_dispatch_refuse_hot(struct hg_session *session, struct hg_request *request,
                            struct hg_span key_bytes)
{
    struct hg_worker *worker = session->worker;
    enum hg_op op = request->call.op;
    struct hg_hotkey_key key = hg_hot_plain_key(key_bytes, request->call.key_hash);
    bool exempt = session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
    unsigned percent;
    uint64_t would = hg_counter_get(&request->lane->hotkey_would_reject);
    request->seen |= HG_SEEN_HOT_LIST;
    if (!hg_dispatch_is_ranked(op) ||
        !hg_hot_refuses(worker, request->lane, &key, exempt, &percent)) {
        if (hg_counter_get(&request->lane->hotkey_would_reject) != would)
            request->seen |= HG_SEEN_HOT_WOULD;
        return false;
    }
    HG_PROBE_POINT(hotkey__refused, request->lane->bucket->name, op, percent);
    struct hg_refusal refusal = {HG_STATUS_HOT_KEY, HG_OUTCOME_HOT_KEY, NULL, HG_SPAN_NONE,
                                 hg_hot_words(worker, request->lane,
                                              (enum hg_hot_type)hg_op_rows[op].hot, percent,
                                              request->features & HG_FEATURE_JSON)};
    hg_answer_refusal(request, &refusal);
    return true;
}

/* ---- evicted keys ---- */

bool hg_dispatch_refuse_bind(struct hg_session *session, struct hg_request *request)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_bindthrottle_key key;
    uint32_t x;
    uint64_t would = hg_counter_get(&request->lane->bind_would_throttle);
    request->seen |= HG_SEEN_BINDS;
    bool exempt = session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
    if (!hg_bind_of(request, room, &key))
        return false;
    switch (hg_bind_decide(session, request->lane, &key, exempt, &x)) {
    case HG_BIND_REFUSE:
        HG_PROBE_POINT(bind__refused, request->lane->bucket->name, request->call.op, x);
        hg_answer_refusal(
            request, &(struct hg_refusal){
                         HG_STATUS_BIND_THROTTLE, HG_OUTCOME_BIND_THROTTLED, NULL, HG_SPAN_NONE,
                         hg_bind_words(session->worker, request->lane, (enum hg_hot_type)key.type,
                                       x, request->features & HG_FEATURE_JSON)});
        return true;
    case HG_BIND_PASS:
        request->bind_passed = request->call.quarantine = true;
        request->bind_pass = session->bind_pass;
        return false;
    default:
        if (hg_counter_get(&request->lane->bind_would_throttle) != would)
            request->seen |= HG_SEEN_BIND_WOULD;
        return false;
    }
}
