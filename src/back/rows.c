// rows - rows on top of any store: read, apply, write back with compare-and-swap
// SPDX-License-Identifier: BSD-3-Clause
#include "back/rows.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "back/rowgate.h"

#define TEXT_BYTES     128
#define EAGER_ATTEMPTS 3 /* without a rest */

const char hg_rows_too_many[] = "others have changed the row before each of 64 attempts to do so";
_Static_assert(HG_ROWS_ATTEMPTS == 64, "the text names the number");

struct hg_rows *hg_rows_new(struct hg_loop *loop, struct hg_rows_counters *counters)
{
    struct hg_rows *rows = calloc(1, sizeof *rows);
    if (rows == NULL)
        return NULL;
    rows->loop = loop;
    rows->counters = counters;
    if (hg_rowgate_init(rows))
        return rows;
    free(rows);
    return NULL;
}

void hg_rows_free(struct hg_rows *rows)
{
    if (rows == NULL)
        return;
    hg_rowgate_fini(rows);
    free(rows);
}

/* --- the end of a call --- */

/* The call may be gone afterwards. */
static void finish(struct hg_row_call *row, struct hg_row_end *end)
{
    struct hg_rows *rows = row->rows;
    end->outcome = &row->outcome;
    end->read_bytes = row->read_bytes;
    hg_rowgate_leave(row);
    row->on_done(row, end);
    hg_rowgate_run(rows);
}

static void finish_late(struct hg_row_call *row)
{
    struct hg_row_end end = {
        .fault = HG_FAULT_QUEUE_TIMEOUT,
        .text = HG_SPAN_LIT("it waited for others that use the row until its time was over")};
    finish(row, &end);
}

static void refuse(struct hg_row_call *row, enum hg_status status, const char *text,
                   const char *server)
{
    struct hg_row_end end = {
        .status = (uint16_t)status, .text = hg_span_str(text), .server = server};
    finish(row, &end);
}

/* The store said no, or could not be asked. */
static void pass_on(struct hg_row_call *row, const struct hg_result *result)
{
    struct hg_row_end end = {.fault = result->fault,
                             .status = result->status,
                             .text = result->value,
                             .server = result->server};
    finish(row, &end);
}

/* A change that got no further than its read: what is unknown of a write is known here. */
static void pass_on_read(struct hg_row_call *row, const struct hg_result *result)
{
    struct hg_result told = *result;
    bool unknown = result->fault == HG_FAULT_LOST || result->fault == HG_FAULT_TIMEOUT;
    if (row->writes && unknown && result->value.len == 0)
        told.value = HG_SPAN_LIT("the server did not answer the read before the change: "
                                 "nothing was changed");
    pass_on(row, &told);
}

static void refuse_size(struct hg_row_call *row, size_t bytes, const char *server)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "the row would take %zu bytes, over the limit of %u for a value",
             bytes, row->max_value_bytes);
    refuse(row, HG_STATUS_E2BIG, text, server);
}

/* --- asking the store --- */

static void on_room(struct hg_call *call)
{
    struct hg_row_call *row = HG_CONTAINER_OF(call, struct hg_row_call, call);
    hg_loop_stamp(row->rows->loop);
    call->now_us = row->rows->loop->now_us;
    (void)row->store->ops->submit(row->store, call);
}

void hg_rows_ask(struct hg_row_call *row,
                 void (*on_done)(struct hg_call *, const struct hg_result *))
{
    struct hg_call *call = &row->call;
    call->tenant_id = row->tenant_id;
    call->identity = row->identity;
    call->quarantine = row->quarantine;
    call->ticket = row->ticket;
    call->ticket_of = row->ticket_of;
    call->route = 0;
    call->row = row->api != HG_API_CLASSIC;
    call->key_hash = row->key_hash;
    call->prefix = row->prefix;
    call->key = row->key;
    call->deadline_us = row->deadline_us;
    call->on_done = on_done;
    call->on_room = on_room;
    on_room(call);
}

/* How long a call rests before the next attempt: up to 2, 4, 8 and then 16 ms. */
static uint64_t rest_us(struct hg_rows *rows, unsigned lost)
{
    uint64_t most_us = (uint64_t)1000 << (lost < 4 ? lost : 4);
    return hg_prng_below(&rows->prng, most_us);
}

bool hg_rows_again(struct hg_row_call *row)
{
    struct hg_rows *rows = row->rows;
    hg_counter_add(&rows->counters->conflicts, 1);
    if (++row->attempts >= HG_ROWS_ATTEMPTS) {
        hg_counter_add(&rows->counters->given_up, 1);
        return false;
    }
    if (row->attempts <= EAGER_ATTEMPTS) {
        hg_rowgate_make_ready(row);
        hg_rowgate_run(rows);
    } else {
        hg_rowgate_make_rest(row, rest_us(rows, row->attempts - EAGER_ATTEMPTS));
    }
    return true;
}

static void on_written(struct hg_call *call, const struct hg_result *result)
{
    struct hg_row_call *row = HG_CONTAINER_OF(call, struct hg_row_call, call);
    if (HG_UNLIKELY(result->fault != HG_FAULT_NONE)) {
        pass_on(row, result);
        return;
    }
    switch (result->status) {
    case HG_STATUS_SUCCESS: {
        struct hg_row_end end = {.written_bytes = row->written_bytes, .server = result->server};
        finish(row, &end);
        return;
    }
    case HG_STATUS_KEY_EEXISTS:
    case HG_STATUS_KEY_ENOENT:
    case HG_STATUS_NOT_STORED:
        if (!hg_rows_again(row))
            refuse(row, HG_STATUS_EBUSY, hg_rows_too_many, result->server);
        return;
    default:
        pass_on(row, result);
    }
}

/* Writes what apply has made of the row that was read with `cas` (0: there was none). */
static void write_back(struct hg_row_call *row, uint64_t cas, const char *server)
{
    bool remove = row->outcome.act == HG_ROW_REMOVE;
    struct hg_span value = HG_SPAN_NONE;
    row->outcome.row.api = row->api;
    if (!remove && !hg_rowdoc_encode(&row->outcome.row, row->arena, &value)) {
        refuse(row, HG_STATUS_ENOMEM, "the row needs more memory than a request may take", server);
        return;
    }
    if (value.len > row->max_value_bytes) {
        refuse_size(row, value.len, server);
        return;
    }
    row->written_bytes = value.len;
    row->call = (struct hg_call){.op = remove     ? HG_OP_DELETE
                                       : cas == 0 ? HG_OP_ADD
                                                  : HG_OP_SET,
                                 .value = value,
                                 .item_flags = HG_ROWDOC_FLAGS,
                                 .expiry = remove ? 0 : row->expiry,
                                 .cas = cas};
    hg_rows_ask(row, on_written);
}

/* Applies the operation to what was read. */
static void apply(struct hg_row_call *row, const struct hg_row *old, const struct hg_result *result)
{
    memset(&row->outcome, 0, sizeof row->outcome);
    row->apply(row, old, &row->outcome);
    enum hg_row_act act = row->outcome.act;
    if (act == HG_ROW_KEEP || (act == HG_ROW_REMOVE && old == NULL)) {
        struct hg_row_end end = {.server = result->server};
        finish(row, &end);
        return;
    }
    assert(row->writes);
    if (HG_UNLIKELY(old != NULL && result->cas == 0))
        refuse(row, HG_STATUS_NOT_SUPPORTED,
               "the server keeps no CAS, without which rows cannot be changed", result->server);
    else
        write_back(row, old == NULL ? 0 : result->cas, result->server);
}

/* Why the value is not a row that this call may see; NULL: it is one. */
static const char *unfit(const struct hg_row_call *row, const struct hg_result *result)
{
    if (!hg_rowdoc_is(result->item_flags, result->value))
        return "the key holds a classic item, not a row";
    uint8_t api = result->value.at[HG_ROWDOC_MARK_BYTES - 1];
    if (row->api == HG_API_TABLE && api == 'H')
        return "the row was written by HBase operations: TableAPI cannot use it";
    if (row->api == HG_API_HBASE && api == 'T')
        return "the row was written by TableAPI: HBase operations cannot use it";
    return NULL;
}

static void on_read(struct hg_call *call, const struct hg_result *result)
{
    struct hg_row_call *row = HG_CONTAINER_OF(call, struct hg_row_call, call);
    if (result->fault == HG_FAULT_NONE && result->status == HG_STATUS_KEY_ENOENT) {
        apply(row, NULL, result);
        return;
    }
    if (HG_UNLIKELY(result->fault != HG_FAULT_NONE || result->status != HG_STATUS_SUCCESS)) {
        pass_on_read(row, result);
        return;
    }
    const char *why = unfit(row, result);
    if (HG_UNLIKELY(why != NULL)) {
        refuse(row, HG_STATUS_NOT_SUPPORTED, why, result->server);
        return;
    }
    struct hg_row old;
    row->read_bytes = result->value.len;
    uint16_t status = hg_rowdoc_decode(result->value, row->arena, &old);
    if (HG_UNLIKELY(status != HG_STATUS_SUCCESS) && row->removes) {
        hg_arena_reset(row->arena);
        memset(&old, 0, sizeof old);
        old.api = row->api;
        status = HG_STATUS_SUCCESS;
    }
    if (HG_LIKELY(status == HG_STATUS_SUCCESS))
        apply(row, &old, result);
    else if (status == HG_STATUS_ENOMEM)
        refuse(row, HG_STATUS_ENOMEM, "the row needs more memory than a request may take",
               result->server);
    else
        refuse(row, HG_STATUS_EINTERNAL, "the row is damaged: what is stored is no row document",
               result->server);
}

void hg_rows_start(struct hg_row_call *row)
{
    hg_loop_stamp(row->rows->loop);
    if (HG_UNLIKELY(row->deadline_us != 0 && row->deadline_us <= row->rows->loop->now_us)) {
        finish_late(row);
        return;
    }
    bool guarded = row->api == HG_API_CLASSIC;
    row->read_bytes = row->written_bytes = 0;
    if (!guarded)
        hg_arena_reset(row->arena);
    row->call = (struct hg_call){.op = HG_OP_GET};
    hg_rows_ask(row, guarded ? hg_rowguard_on_read : on_read);
}

/* --- from outside --- */

void hg_rows_submit(struct hg_rows *rows, struct hg_row_call *row)
{
    row->rows = rows;
    row->gate = NULL;
    row->step = HG_ROW_STEP_NONE;
    row->attempts = 0;
    row->read_bytes = row->written_bytes = 0;
    memset(&row->outcome, 0, sizeof row->outcome);
    hg_list_init(&row->node);
    hg_list_init(&row->turn);
    if (HG_UNLIKELY(!hg_rowgate_enter(rows, row)))
        refuse(row, HG_STATUS_ENOMEM, "no memory is left", NULL);
    else
        hg_rowgate_run(rows);
}

void hg_rows_cancel(struct hg_row_call *row)
{
    struct hg_rows *rows = row->rows;
    if (row->step == HG_ROW_STEP_NONE)
        return;
    if (row->step == HG_ROW_STEP_ASKS)
        row->store->ops->cancel(row->store, &row->call);
    hg_rowgate_leave(row);
    /* Those behind it are started at the end of the turn: a cancel answers nobody. */
    if (!hg_list_empty(&rows->ready))
        hg_loop_again(rows->loop);
}

void hg_rows_expire(struct hg_rows *rows, uint64_t now_us)
{
    struct hg_list late, *node;
    hg_list_init(&late);
    hg_rowgate_take_late(rows, now_us, &late);
    while ((node = hg_list_first(&late)) != NULL)
        finish_late(HG_CONTAINER_OF(node, struct hg_row_call, node));
    hg_rowgate_run(rows);
}
