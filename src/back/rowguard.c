// rowguard - classic operations on keys that may be rows': look first, then go on as if not
// SPDX-License-Identifier: BSD-3-Clause
//
// What was read decides the form in which the operation is sent, such that it cannot hit a row
// that appears after the look, and that the store's answer is the one to the plain operation:
//
//   asked with a CAS, or                 as it is: another item than the one meant, and with it a
//   ADD, INCREMENT, DECREMENT            row, is refused by the store itself
//   TOUCH, GAT                           as it is: they know no CAS. A row that appears in between
//                                        gets the new expiry; GAT still does not hand it out
//   SET, nothing there                   ADD
//   SET, REPLACE, APPEND, PREPEND,       with the CAS that was read
//   DELETE, something there
//   REPLACE, APPEND, PREPEND, DELETE,    with a CAS that no item has: the store says in its own
//   nothing there                        words that there is nothing
//
// If the form does not fit any more when it arrives, everything starts over.
#include "back/rowgate.h"

#define CAS_OF_NONE UINT64_MAX /* servers count up from 1 */

static struct hg_guard *guard_at(struct hg_call *call)
{
    struct hg_row_call *row = HG_CONTAINER_OF(call, struct hg_row_call, call);
    return HG_CONTAINER_OF(row, struct hg_guard, row);
}

static void release(struct hg_guard *guard)
{
    hg_blob_unref(guard->copy);
    hg_blob_unref(guard->held);
    guard->copy = guard->held = NULL;
}

/* Gives the operation its answer. The guard may be gone afterwards. */
static void finish(struct hg_guard *guard, const struct hg_result *result)
{
    struct hg_rows *rows = guard->row.rows;
    struct hg_call *call = guard->call;
    call->sent_us = guard->row.call.sent_us;
    call->place.pending = false;
    hg_rowgate_leave(&guard->row);
    release(guard);
    call->on_done(call, result);
    hg_rowgate_run(rows);
}

static void refuse(struct hg_guard *guard, enum hg_status status, const char *text,
                   const char *server)
{
    struct hg_result result = {
        .status = (uint16_t)status, .value = hg_span_str(text), .server = server};
    finish(guard, &result);
}

static void refuse_row(struct hg_guard *guard, const char *server)
{
    refuse(guard, HG_STATUS_NOT_SUPPORTED, "the key holds a row: use the table operations", server);
}

/* It ended in its gate. */
static void on_end(struct hg_row_call *row, const struct hg_row_end *end)
{
    struct hg_guard *guard = HG_CONTAINER_OF(row, struct hg_guard, row);
    struct hg_result result = {
        .status = end->status, .fault = end->fault, .value = end->text, .server = end->server};
    finish(guard, &result);
}

static bool is_row(const struct hg_result *result)
{
    return result->fault == HG_FAULT_NONE && result->status == HG_STATUS_SUCCESS &&
           hg_rowdoc_is(result->item_flags, result->value);
}

/* Was the answer to a form that does not fit any more, and not to the operation? */
static bool is_stale(const struct hg_guard *guard, const struct hg_result *result)
{
    const struct hg_call *form = &guard->row.call;
    if (result->fault != HG_FAULT_NONE ||
        (form->op == guard->call->op && form->cas == guard->call->cas))
        return false;
    if (result->status == HG_STATUS_KEY_EEXISTS)
        return true;
    return form->op != HG_OP_ADD && form->cas != CAS_OF_NONE &&
           (result->status == HG_STATUS_KEY_ENOENT || result->status == HG_STATUS_NOT_STORED);
}

static void on_done(struct hg_call *form, const struct hg_result *result)
{
    struct hg_guard *guard = guard_at(form);
    if (HG_UNLIKELY(is_stale(guard, result))) {
        if (!hg_rows_again(&guard->row))
            refuse(guard, HG_STATUS_EBUSY, hg_rows_too_many, result->server);
    } else if (HG_UNLIKELY(form->op == HG_OP_GAT && is_row(result))) {
        refuse_row(guard, result->server);
    } else {
        finish(guard, result);
    }
}

/* Gives the call that is sent its form; `cas` is of what was read, 0: nothing, or it has none. */
static void set_form(struct hg_call *form, bool found, uint64_t cas)
{
    if (form->cas != 0)
        return;
    switch (form->op) {
    case HG_OP_SET:
        if (!found)
            form->op = HG_OP_ADD;
        else
            form->cas = cas;
        break;
    case HG_OP_REPLACE:
    case HG_OP_APPEND:
    case HG_OP_PREPEND:
    case HG_OP_DELETE:
        form->cas = found ? cas : CAS_OF_NONE;
        break;
    default:
        break;
    }
}

void hg_rowguard_on_read(struct hg_call *read, const struct hg_result *result)
{
    struct hg_guard *guard = guard_at(read);
    struct hg_row_call *row = &guard->row;
    const struct hg_call *call = guard->call;
    bool found = result->status == HG_STATUS_SUCCESS;
    if (is_row(result)) {
        refuse_row(guard, result->server);
        return;
    }
    if (call->op == HG_OP_GET || result->fault != HG_FAULT_NONE ||
        (!found && result->status != HG_STATUS_KEY_ENOENT)) {
        finish(guard, result);
        return;
    }
    row->call = (struct hg_call){
        .op = call->op,
        .value = guard->value,
        .blob = guard->held,
        .item_flags = call->item_flags,
        .expiry = call->expiry,
        .cas = call->cas,
        .delta = call->delta,
        .initial = call->initial,
    };
    set_form(&row->call, found, result->cas);
    hg_rows_ask(row, on_done);
}

static struct hg_span keep(struct hg_blob *blob, struct hg_span bytes)
{
    uint8_t *at = blob->data + blob->len;
    if (bytes.len > 0)
        memcpy(at, bytes.at, bytes.len);
    blob->len += bytes.len;
    return hg_span(at, bytes.len);
}

void hg_rows_guard(struct hg_rows *rows, struct hg_store *store, struct hg_blobs *blobs,
                   struct hg_guard *guard, struct hg_call *call)
{
    size_t value_len = call->blob != NULL ? 0 : call->value.len;
    guard->call = call;
    call->route = 0; /* it goes later */
    guard->held = NULL;
    guard->copy = hg_blob_borrow(blobs, call->prefix.len + call->key.len + value_len);
    memset(&call->place, 0,
           sizeof call->place); /* no store's: nothing is ordered behind it there */
    if (HG_UNLIKELY(guard->copy == NULL)) {
        const struct hg_result result = {.fault = HG_FAULT_MEMORY};
        guard->row.step = HG_ROW_STEP_NONE;
        call->on_done(call, &result);
        return;
    }
    call->place.pending = true;
    guard->row = (struct hg_row_call){
        .store = store,
        .api = HG_API_CLASSIC,
        .tenant_id = call->tenant_id,
        .identity = call->identity,
        .quarantine = call->quarantine,
        .ticket = call->ticket,
        .ticket_of = call->ticket_of,
        .prefix = keep(guard->copy, call->prefix),
        .key = keep(guard->copy, call->key),
        .key_hash = call->key_hash,
        .writes = call->op != HG_OP_GET,
        .now_us = call->now_us,
        .deadline_us = call->deadline_us,
        .on_done = on_end,
    };
    guard->value = call->value;
    if (call->blob != NULL)
        guard->held = hg_blob_ref(call->blob);
    else
        guard->value = keep(guard->copy, call->value);
    hg_rows_submit(rows, &guard->row);
}

void hg_rows_cancel_guard(struct hg_guard *guard)
{
    if (guard->copy == NULL)
        return;
    guard->call->place.pending = false;
    hg_rows_cancel(&guard->row);
    release(guard);
}
