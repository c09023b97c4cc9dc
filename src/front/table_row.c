// table_row - requests that are one row call: single operations, point reads, atomic batches
// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/units.h"
#include "front/table_in.h"

/* ---- items ---- */

enum hg_op hg_table_item_op(const struct hg_tablemsg *msg, size_t index)
{
    return msg->api == HG_API_TABLE ? msg->table_items[index].op : msg->hbase_items[index].op;
}

struct hg_span hg_table_item_row(const struct hg_tablemsg *msg, size_t index)
{
    return msg->api == HG_API_TABLE ? msg->table_items[index].row : msg->hbase_items[index].row;
}

static struct hg_table_slot *slot_of(struct hg_row_call *call)
{
    return HG_CONTAINER_OF(call, struct hg_table_slot, call);
}

/* When the last cell of what is written is over, as memcached wants it: seconds since 1970. */
static void set_expiry(struct hg_row_call *call, const struct hg_row_outcome *outcome,
                       const struct hg_families *families)
{
    call->expiry = 0;
    if (outcome->act != HG_ROW_STORE || families->count == 0)
        return;
    uint64_t at_s = ((uint64_t)hg_hbaseop_expiry(&outcome->row, families) + 999) / 1000;
    call->expiry = at_s > UINT32_MAX ? 0 : (uint32_t)at_s;
}

void hg_table_apply_item(struct hg_row_call *call, const struct hg_row *old,
                         struct hg_row_outcome *ret)
{
    struct hg_table_slot *slot = slot_of(call);
    struct hg_table *table = slot->table;
    const struct hg_tablemsg *msg = &table->msg;
    if (msg->api == HG_API_TABLE) {
        hg_tableop_apply(old, &msg->table_items[slot->index], call->arena, ret);
        return;
    }
    struct hg_families families = hg_table_families(table);
    hg_hbaseop_apply(old, &msg->hbase_items[slot->index], &families, hg_table_now_ms(table->worker),
                     call->arena, ret);
    set_expiry(call, ret, &families);
}

/* ---- what it cost ---- */

void hg_table_count(struct hg_table *table, enum hg_op op, const struct hg_row_call *call,
                    const struct hg_row_end *end)
{
    struct hg_worker *worker = table->worker;
    struct hg_lane *lane = table->request->lane;
    const struct hg_front_settings *settings = &worker->directory->settings;
    const struct hg_op_row *row = &hg_op_rows[op];
    bool unknown = end->fault == HG_FAULT_LOST || end->fault == HG_FAULT_TIMEOUT;
    bool reached = end->fault == HG_FAULT_NONE || unknown || end->read_bytes > 0;
    if (row->reads && reached) {
        uint64_t bytes = end->read_bytes > 0 ? call->key.len + end->read_bytes : 0;
        uint32_t units = hg_units_of(bytes, settings->read_unit_bytes);
        table->read_units += units;
        hg_readcost_tell(&lane->read_cost, units);
    }
    bool removed = end->status == HG_STATUS_SUCCESS && end->outcome->act == HG_ROW_REMOVE;
    if (row->writes && (end->written_bytes > 0 || removed || unknown))
        table->write_units +=
            hg_units_of(end->written_bytes > 0 ? call->key.len + end->written_bytes : 0,
                        settings->write_unit_bytes);
}

/* ---- submitting ---- */

uint32_t hg_table_row_hash(const struct hg_table *table, struct hg_span row)
{
    uint8_t key[HG_TABLE_KEY_MAX + 1];
    size_t len = hg_rowdoc_key(key, table->msg.table, row);
    return (uint32_t)XXH3_64bits_withSeed(key, len, table->worker->front->hash_seed);
}

static void tell_hot(struct hg_table *table, enum hg_op op, struct hg_span row)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    enum hg_hot_rule rule = (enum hg_hot_rule)hg_op_rows[op].hot;
    if (rule == HG_HOT_RULE_POINT)
        rule = HG_HOT_RULE_QUERY;
    struct hg_hotkey_key key = hg_hot_key(table->worker, table->msg.table, row, room);
    hg_hot_tell(table->worker, table->request->lane, (enum hg_hot_type)rule, &key);
}

/* Does the item delete a row with all that is in it? */
static bool removes_all(const struct hg_table *table, enum hg_op op, size_t index)
{
    if (op == HG_OP_TABLE_DELETE)
        return true;
    if (op != HG_OP_HBASE_DELETE || index >= table->msg.item_count)
        return false;
    const struct hg_hbase_item *item = &table->msg.hbase_items[index];
    return item->deletion_count == 1 && item->deletions[0].kind == HG_DELETION_ROW &&
           !item->deletions[0].dated;
}

struct hg_table_slot *hg_table_row_slot(struct hg_table *table, struct hg_span row, size_t index)
{
    struct hg_table_slot *slot = hg_table_slot_new(table);
    if (slot == NULL)
        return NULL;
    size_t len = hg_rowdoc_key(slot->key, table->msg.table, row);
    slot->index = index;
    slot->key_len = (uint32_t)len;
    slot->key_hash =
        (uint32_t)XXH3_64bits_withSeed(slot->key, len, table->worker->front->hash_seed);
    return slot;
}

void hg_table_submit_row(struct hg_table_slot *slot, struct hg_store *store, struct hg_span row,
                         uint64_t ticket, const struct hg_table_act *act)
{
    struct hg_table *table = slot->table;
    struct hg_request *request = table->request;
    struct hg_worker *worker = table->worker;
    struct hg_bucket *bucket = request->lane->bucket;
    slot->submitted = true;
    slot->call = (struct hg_row_call){
        .store = store,
        .api = table->msg.api,
        .tenant_id = bucket->tenant_id,
        .identity = hg_worker_identity(worker, request->lane, store),
        .ticket = ticket,
        .ticket_of = table->kind == HG_TABLE_BATCH ? &slot->pass : &request->pass,
        .quarantine = request->call.quarantine ||
                      (table->passes != NULL && table->passes[slot->index].passed),
        .prefix = hg_span(bucket->prefix, bucket->prefix_len),
        .key = hg_span(slot->key, slot->key_len),
        .key_hash = slot->key_hash,
        .writes = act->writes,
        .removes = removes_all(table, act->op, slot->index),
        .max_value_bytes = worker->directory->settings.max_value_bytes,
        .now_us = worker->loop.now_us,
        .deadline_us = request->call.deadline_us,
        .arena = &slot->arena,
        .apply = act->apply,
        .on_done = act->on_done,
    };
    if (table->kind != HG_TABLE_ATOMIC)
        tell_hot(table, act->op, row);
    request->call.sent_us = worker->loop.now_us;
    hg_rows_submit(worker->tables.rows, &slot->call);
}

static const struct hg_refusal no_memory = {HG_STATUS_ENOMEM, HG_OUTCOME_FRONT_ERROR,
                                            "no memory is left for the request", HG_SPAN_NONE,
                                            HG_SPAN_NONE};

/* The call of a request that has one only: fault and refusals answered. False: it is answered. */
static bool went_well(struct hg_table *table, const struct hg_row_call *call,
                      const struct hg_row_end *end)
{
    hg_table_count(table, table->msg.op, call, end);
    if (end->fault != HG_FAULT_NONE) {
        hg_table_answer_fault(table, end->fault, end->text, end->server);
        return false;
    }
    const struct hg_row_result *result = &end->outcome->result;
    uint16_t status = end->status != HG_STATUS_SUCCESS ? end->status : result->status;
    if (status == HG_STATUS_SUCCESS)
        return true;
    hg_table_answer_error(table, status, end->status != 0 ? end->text : result->text, end->server);
    return false;
}

/* The one call of a request, which has the request's ticket. */
static void run_one(struct hg_table *table, struct hg_store *store, struct hg_span row,
                    const struct hg_table_act *act)
{
    struct hg_table_slot *slot = hg_table_row_slot(table, row, 0);
    if (slot == NULL)
        hg_table_answer_refusal(table, &no_memory);
    else
        hg_table_submit_row(slot, store, row, table->request->call.ticket, act);
}

/* ---- one row ---- */

static void on_row(struct hg_row_call *call, const struct hg_row_end *end)
{
    struct hg_table *table = slot_of(call)->table;
    if (!went_well(table, call, end))
        return;
    struct hg_row_result result = end->outcome->result;
    struct hg_table_reply reply = {.op = table->msg.op, .results = &result, .result_count = 1};
    bool missed = (reply.op == HG_OP_TABLE_GET && !result.found) ||
                  (reply.op == HG_OP_HBASE_GET && result.cells.count == 0);
    hg_table_answer(table, &reply, result.affected, missed ? HG_OUTCOME_MISS : HG_OUTCOME_SUCCESS,
                    end->server);
}

void hg_table_run_row(struct hg_table *table, struct hg_store *store)
{
    enum hg_op op = table->msg.op;
    const struct hg_table_act act = {op, hg_op_rows[op].writes, hg_table_apply_item, on_row};
    run_one(table, store, hg_table_item_row(&table->msg, 0), &act);
}

/* ---- a range that is one row ---- */

static void apply_point(struct hg_row_call *call, const struct hg_row *old,
                        struct hg_row_outcome *ret)
{
    struct hg_table *table = slot_of(call)->table;
    const struct hg_tablemsg *msg = &table->msg;
    struct hg_filter_state state = {0};
    struct hg_span row_key =
        hg_span(call->key.at + msg->table.len + 1, call->key.len - msg->table.len - 1);
    bool memory = false;
    ret->act = HG_ROW_KEEP;
    table->is_found = false;
    if (old == NULL)
        return;
    memset(&table->found, 0, sizeof table->found);
    if (msg->api == HG_API_TABLE) {
        table->is_found = hg_tableop_read(old, row_key, &msg->query, &state, call->arena,
                                          &table->found, &memory) &&
                          msg->query.offset == 0;
    } else {
        struct hg_families families = hg_table_families(table);
        table->is_found =
            hg_hbaseop_read(old, row_key, &msg->read, &families, hg_table_now_ms(table->worker),
                            &state, call->arena, &table->found.cells, &memory);
    }
    table->found.row = row_key;
    if (memory) {
        ret->result.status = HG_STATUS_ENOMEM;
        ret->result.text = HG_SPAN_LIT("the row needs more memory than a request may take");
    }
}

/* A row in parts of `batch` cells. False: no memory. */
static bool cut(struct hg_table *table, struct hg_table_reply *reply)
{
    const struct hg_cells *cells = &table->found.cells;
    size_t batch = table->msg.api == HG_API_HBASE ? table->msg.scan.batch : 0;
    reply->rows = &table->found;
    reply->row_count = 1;
    if (batch == 0 || cells->count <= batch)
        return true;
    size_t count = (cells->count + batch - 1) / batch;
    struct hg_found_row *rows = hg_arena_array(&table->arena, count, sizeof *rows);
    if (rows == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t left = cells->count - i * batch;
        rows[i].row = table->found.row;
        rows[i].cells.list = cells->list + i * batch;
        rows[i].cells.count = left < batch ? left : batch;
        rows[i].partial = i + 1 < count;
    }
    reply->rows = rows;
    reply->row_count = count;
    return true;
}

static void on_point(struct hg_row_call *call, const struct hg_row_end *end)
{
    struct hg_table *table = slot_of(call)->table;
    if (!went_well(table, call, end))
        return;
    struct hg_table_reply reply = {.op = table->msg.op};
    if (table->is_found && !cut(table, &reply))
        hg_table_answer_refusal(table, &no_memory);
    else
        hg_table_answer(table, &reply, 0, table->is_found ? HG_OUTCOME_SUCCESS : HG_OUTCOME_MISS,
                        end->server);
}

void hg_table_run_point(struct hg_table *table, struct hg_store *store)
{
    struct hg_span row;
    const struct hg_table_act act = {table->msg.op, false, apply_point, on_point};
    (void)hg_tablemsg_point(&table->msg, &row);
    run_one(table, store, row, &act);
}

/* ---- items of one row, all or none ---- */

static void apply_all(struct hg_row_call *call, const struct hg_row *old,
                      struct hg_row_outcome *ret)
{
    struct hg_table *table = slot_of(call)->table;
    const struct hg_tablemsg *msg = &table->msg;
    hg_tableop_apply_all(old, msg->table_items, msg->item_count, call->arena, table->results, ret);
}

/* The row was read and written once, but each item costs a unit at least. */
static void count_items(struct hg_table *table)
{
    uint64_t writes = 0;
    for (size_t i = 0; i < table->msg.item_count; i++)
        writes += hg_op_rows[hg_table_item_op(&table->msg, i)].writes;
    if (table->read_units < table->msg.item_count)
        table->read_units = table->msg.item_count;
    if (table->write_units < writes)
        table->write_units = writes;
}

static void on_all(struct hg_row_call *call, const struct hg_row_end *end)
{
    struct hg_table *table = slot_of(call)->table;
    struct hg_row_result *all = (struct hg_row_result *)&end->outcome->result;
    uint16_t refused = all->status;
    hg_table_count(table, table->msg.op, call, end);
    if (end->fault == HG_FAULT_NONE && end->status == HG_STATUS_SUCCESS && refused == 0)
        count_items(table);
    if (end->fault != HG_FAULT_NONE) {
        hg_table_answer_fault(table, end->fault, end->text, end->server);
        return;
    }
    if (end->status != HG_STATUS_SUCCESS || refused == HG_STATUS_ENOMEM) {
        hg_table_answer_error(table, end->status != 0 ? end->status : refused,
                              end->status != 0 ? end->text : all->text, end->server);
        return;
    }
    /* A refused item refuses all; which, and why, is told in their results. */
    struct hg_table_reply reply = {
        .op = table->msg.op, .results = table->results, .result_count = table->msg.item_count};
    hg_table_answer(table, &reply, refused == 0 ? all->affected : 0,
                    refused == 0 ? HG_OUTCOME_SUCCESS : HG_OUTCOME_NOT_DONE, end->server);
}

void hg_table_run_atomic(struct hg_table *table, struct hg_store *store)
{
    const struct hg_tablemsg *msg = &table->msg;
    bool writes = false;
    for (size_t i = 0; i < msg->item_count; i++) {
        writes |= hg_op_rows[hg_table_item_op(msg, i)].writes;
        tell_hot(table, hg_table_item_op(msg, i), hg_table_item_row(msg, i));
    }
    table->results = hg_arena_array(&table->arena, msg->item_count, sizeof *table->results);
    const struct hg_table_act act = {msg->op, writes, apply_all, on_all};
    if (table->results == NULL)
        hg_table_answer_refusal(table, &no_memory);
    else
        run_one(table, store, hg_table_item_row(msg, 0), &act);
}
