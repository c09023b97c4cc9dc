// dispatch_keys - requests that are refused for their key: a hot one, or an evicted one
// SPDX-License-Identifier: BSD-3-Clause
#include "front/bind.h"
#include "front/dispatch_in.h"
#include "front/hot.h"
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
    if (!hg_dispatch_is_ranked(op) ||
        !hg_hot_refuses(worker, request->lane, &key, exempt, &percent))
        return false;
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
    bool exempt = session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
    if (!hg_bind_of(request, room, &key))
        return false;
    switch (hg_bind_decide(session, request->lane, &key, exempt, &x)) {
    case HG_BIND_REFUSE:
        hg_answer_refusal(
            request, &(struct hg_refusal){
                         HG_STATUS_BIND_THROTTLE, HG_OUTCOME_BIND_THROTTLED, NULL, HG_SPAN_NONE,
                         hg_bind_words(session->worker, request->lane, (enum hg_hot_type)key.type,
                                       x, request->features & HG_FEATURE_JSON)});
        return true;
    case HG_BIND_PASS:
        request->bind_passed = request->call.quarantine = true;
        request->bind_change = session->bind_change;
        return false;
    default:
        return false;
    }
}
