// answer_cost - what a request cost: from its estimate to its real units
// SPDX-License-Identifier: BSD-3-Clause
#include "core/units.h"
#include "front/answer_in.h"
#include "front/held.h"

static void settle_charge(struct hg_request *request)
{
    struct hg_worker *worker = request->session->worker;
    struct hg_lane *lane = request->lane;
    uint64_t real = request->read_units + request->write_units;
    if (request->charge.charged &&
        hg_credit_settle(worker->front->node, &lane->bucket->credit, &request->charge, real))
        hg_held_room(worker, lane);
}

/* The units of the request are the real ones now. */
static void settle_real(struct hg_request *request)
{
    struct hg_lane *lane = request->lane;
    if (!request->unmetered) {
        hg_counter_add(&lane->ru, request->read_units);
        hg_counter_add(&lane->wu, request->write_units);
    }
    if (request->charge.charged) {
        hg_counter_add(&lane->units, request->read_units + request->write_units);
        if (request->charge.reason == HG_CREDIT_BY_UNTHROTTLED)
            hg_counter_add(&lane->units_exempt, request->read_units + request->write_units);
    }
    settle_charge(request);
}

void hg_answer_settle_none(struct hg_request *request)
{
    struct hg_worker *worker = request->session->worker;
    request->read_units = request->write_units = 0;
    if (request->charge.charged &&
        hg_credit_undo(worker->front->node, &request->lane->bucket->credit, &request->charge))
        hg_held_room(worker, request->lane);
}

void hg_answer_settle_units(struct hg_request *request, uint64_t read_units, uint64_t write_units)
{
    request->read_units = read_units;
    request->write_units = write_units;
    settle_real(request);
}

void hg_answer_charge(struct hg_request *request, uint64_t read_units, uint64_t write_units)
{
    request->read_units = read_units;
    request->write_units = write_units;
    settle_charge(request);
}

void hg_answer_settle(struct hg_request *request, const struct hg_result *result)
{
    struct hg_lane *lane = request->lane;
    const struct hg_op_row *op = &hg_op_rows[request->call.op];
    const struct hg_front_settings *settings = &request->session->worker->directory->settings;
    bool reached = result->fault == HG_FAULT_NONE || result->fault == HG_FAULT_LOST ||
                   result->fault == HG_FAULT_TIMEOUT;
    if (!reached) {
        hg_answer_settle_none(request);
        return;
    }
    if (op->reads && result->fault == HG_FAULT_NONE) {
        uint64_t bytes = 0;
        if (result->status == HG_STATUS_SUCCESS)
            bytes = request->key_len +
                    (uint64_t)(result->value.len > 0 ? result->value.len : result->item_bytes);
        request->read_units = hg_units_of(bytes, settings->read_unit_bytes);
        hg_readcost_tell(&lane->read_cost, (uint32_t)request->read_units);
    }
    if (op->writes && result->item_bytes > 0)
        request->write_units = hg_units_of((uint64_t)request->key_len + result->item_bytes,
                                           settings->write_unit_bytes);
    settle_real(request);
}

void hg_answer_gone(struct hg_request *request)
{
    static const struct hg_result lost = {.fault = HG_FAULT_LOST},
                                  refused = {.fault = HG_FAULT_DOWN};
    hg_answer_settle(request, request->state == HG_REQUEST_SENT ? &lost : &refused);
    hg_answer_tell(request, HG_OUTCOME_CLIENT_GONE, 0, NULL);
}
