// table_range - queries and scans over ranges of rows, and their sessions
// SPDX-License-Identifier: BSD-3-Clause
//
//   run ─► list ─► read_on: a part (256 rows, 1 ms) ─► charge ─► page full, or end? ─► reply
//            ▲                                           │ no
//            └───────────────────────────────────────────┘ the next turn of the loop
//
// So other clients are served between two parts. What was read is charged as it goes, into debt if
// need be. The request's deadline bounds a query; a session, which can go on, answers in time with
// what it has, even if that is nothing.
#include "core/units.h"
#include "front/table_in.h"

#define PART_ROWS 256
#define PART_US   1000

static const struct hg_refusal no_ranges = {
    HG_STATUS_NOT_SUPPORTED, HG_OUTCOME_UNKNOWN,
    "the tenant's store keeps no order of keys, which ranges of rows need (memcached has none, the "
    "embedded store has it); a range of a single row (start and end the same, both inclusive) "
    "works "
    "here too",
    HG_SPAN_NONE, HG_SPAN_NONE};

static const struct hg_refusal too_large = {
    HG_STATUS_E2BIG, HG_OUTCOME_TOO_LARGE,
    "a query of more than 65536 bytes cannot have a session: make it smaller, or limit it to one "
    "reply",
    HG_SPAN_NONE, HG_SPAN_NONE};

static const struct hg_refusal too_many = {
    HG_STATUS_EBUSY, HG_OUTCOME_NOT_DONE,
    "the tenant has as many sessions as its table_sessions allows: end one, or wait until one "
    "expires",
    HG_SPAN_NONE, HG_SPAN_NONE};

static const struct hg_refusal no_memory = {HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR,
                                            "no memory is left for the request", HG_SPAN_NONE,
                                            HG_SPAN_NONE};

static bool has_sessions(const struct hg_table *table)
{
    return table->msg.op != HG_OP_TABLE_QUERY;
}

static void wait_for_turn(struct hg_table *table)
{
    hg_list_append(&table->worker->tables.ranges, &table->node);
    hg_loop_again(&table->worker->loop);
}

static size_t page_rows(const struct hg_table *table)
{
    const struct hg_tablemsg *msg = table->reader->msg;
    if (msg->op == HG_OP_TABLE_QUERY)
        return 0;
    size_t rows = msg->api == HG_API_TABLE ? msg->query.batch_rows : msg->scan.caching;
    return rows > 0 ? rows : HG_TABLE_ROWS;
}

static void begin(struct hg_table *table)
{
    table->page = (struct hg_page){
        .arena = &table->arena,
        .scratch = &table->scratch,
        .rows_max = page_rows(table),
        .bytes_max = table->worker->directory->settings.max_value_bytes,
    };
    hg_counter_add(&table->request->lane->table_ranges, 1);
    table->request->call.sent_us = table->worker->loop.now_us;
    wait_for_turn(table);
}

void hg_table_run_range(struct hg_table *table, struct hg_store *store)
{
    if (store->ops->range == NULL) {
        hg_table_answer_refusal(table, &no_ranges);
        return;
    }
    table->reader = &table->own;
    begin(table);
}

/* ---- sessions ---- */

static const struct hg_refusal *found_refusal(enum hg_cursor_found found)
{
    static const struct hg_refusal unknown = {HG_STATUS_KEY_ENOENT, HG_OUTCOME_MISS,
                                              "there is no such session in this bucket: it has "
                                              "ended, or nobody went on with it for too "
                                              "long, or it never was",
                                              HG_SPAN_NONE, HG_SPAN_NONE},
                                   in_use = {HG_STATUS_EBUSY, HG_OUTCOME_NOT_DONE,
                                             "the session is in use: one request at a time",
                                             HG_SPAN_NONE, HG_SPAN_NONE};
    return found == HG_CURSOR_IN_USE ? &in_use : &unknown;
}

/* Takes the session that the request names. False: refused. */
static bool take_session(struct hg_table *table)
{
    struct hg_worker *worker = table->worker;
    enum hg_cursor_found found =
        hg_cursors_take(&worker->front->cursors, table->msg.session, table->request->lane->bucket,
                        table->msg.api, worker->index, worker->loop.now_us, &table->cursor);
    if (found == HG_CURSOR_FOUND)
        return true;
    hg_table_answer_refusal(table, found_refusal(found));
    return false;
}

void hg_table_run_next(struct hg_table *table)
{
    if (!take_session(table))
        return;
    table->reader = &table->cursor->reader;
    begin(table);
}

void hg_table_run_end(struct hg_table *table)
{
    if (!take_session(table))
        return;
    hg_cursors_end(&table->worker->front->cursors, table->cursor, table->worker->index);
    table->cursor = NULL;
    struct hg_table_reply reply = {.op = table->msg.op};
    hg_table_answer(table, &reply, 0, HG_OUTCOME_SUCCESS, NULL);
}

/* There is more: keeps the session, or makes one. False: answered with why not. */
static bool keep_session(struct hg_table *table, uint64_t *ret_id)
{
    struct hg_worker *worker = table->worker;
    struct hg_cursors *cursors = &worker->front->cursors;
    struct hg_cursor *cursor = table->cursor;
    if (cursor != NULL) {
        *ret_id = cursor->id;
        table->cursor = NULL;
        hg_cursors_give_back(cursors, cursor, worker->index, worker->loop.now_us);
        return true;
    }
    if (table->body.len > HG_CURSOR_BODY_MAX) {
        hg_table_answer_refused(table, &too_large, NULL);
        return false;
    }
    cursor = hg_cursor_new(table->reader, table->body);
    if (cursor == NULL) {
        hg_table_answer_refused(table, &no_memory, NULL);
        return false;
    }
    if (hg_cursors_add(cursors, cursor, table->request->lane->bucket, worker->index,
                       worker->loop.now_us, ret_id))
        return true;
    hg_cursor_free(cursor);
    hg_table_answer_refused(table, &too_many, NULL);
    return false;
}

/* ---- the parts ---- */

static void finish(struct hg_table *table, bool more, const char *server)
{
    struct hg_table_reply reply = {.op = table->msg.op,
                                   .rows = table->page.rows,
                                   .row_count = table->page.count,
                                   .more = more};
    if (more && has_sessions(table) && !keep_session(table, &reply.session))
        return;
    hg_table_answer(table, &reply, 0, HG_OUTCOME_SUCCESS, server);
}

static void charge(struct hg_table *table)
{
    const struct hg_front_settings *settings = &table->worker->directory->settings;
    table->read_units = hg_units_of(table->page.read_bytes, settings->read_unit_bytes);
    hg_answer_charge(table->request, table->read_units, 0);
}

static bool on_item(struct hg_range_call *call, const struct hg_range_item *item)
{
    struct hg_table *table = HG_CONTAINER_OF(call, struct hg_table, range);
    hg_counter_add(&table->request->lane->table_rows_read, 1);
    if (hg_reader_take(table->reader, item, &table->page))
        return true;
    table->page_over = true;
    return false;
}

static void on_done(struct hg_range_call *call, const struct hg_range_end *end)
{
    struct hg_table *table = HG_CONTAINER_OF(call, struct hg_table, range);
    uint64_t deadline_us = table->request->call.deadline_us;
    uint64_t start_us = table->request->start_us;
    uint64_t now_us = table->worker->loop.now_us;
    table->store = NULL;
    charge(table);
    if (end->fault != HG_FAULT_NONE) {
        hg_table_answer_fault(table, end->fault, end->text, end->server);
    } else if (table->page.status != HG_STATUS_SUCCESS) {
        hg_table_answer_error(table, table->page.status, hg_span_str(table->page.text),
                              end->server);
    } else if (table->page_over) {
        finish(table, !table->reader->done, end->server);
    } else if (!end->more) {
        finish(table, false, end->server);
    } else {
        hg_reader_pass(table->reader, end->last);
        if (has_sessions(table) && now_us >= start_us + (deadline_us - start_us) / 2)
            finish(table, true, end->server);
        else if (now_us >= deadline_us)
            hg_table_answer_error(table, HG_STATUS_QUEUE_TIMEOUT,
                                  HG_SPAN_LIT("the range was not read to its end within "
                                              "request_deadline_ms: narrow it, give a limit, or "
                                              "read it in a session"),
                                  end->server);
        else
            wait_for_turn(table);
    }
}

void hg_table_read_on(struct hg_table *table)
{
    struct hg_worker *worker = table->worker;
    struct hg_bucket *bucket = table->request->lane->bucket;
    struct hg_refusal why;
    struct hg_store *store = hg_dispatch_store(worker, bucket, &why);
    if (store != NULL && store->ops->range == NULL) {
        store = NULL;
        why = no_ranges;
    }
    if (store == NULL) {
        hg_table_answer_refused(table, &why, NULL);
        return;
    }
    table->range = (struct hg_range_call){
        .tenant_id = bucket->tenant_id,
        .identity = hg_worker_identity(worker, table->request->lane, store),
        .ticket = table->request->call.ticket,
        .ticket_of = &table->request->pass,
        .prefix = hg_span(bucket->prefix, bucket->prefix_len),
        .max_items = PART_ROWS,
        .max_us = PART_US,
        .deadline_us = table->request->call.deadline_us,
        .on_item = on_item,
        .on_done = on_done,
    };
    table->range.reverse = hg_reader_reversed(table->reader);
    table->families = hg_table_families(table);
    table->page.families = &table->families;
    table->page.now_ms = hg_table_now_ms(worker);
    table->page_over = false;
    if (!hg_reader_bounds(table->reader, table->from, table->to, &table->range.from,
                          &table->range.to)) {
        charge(table);
        finish(table, false, NULL);
        return;
    }
    table->store = store;
    store->ops->range(store, &table->range);
}
