// table_batch - batches whose items run each on its own
// SPDX-License-Identifier: BSD-3-Clause
//
// At most HG_TABLE_SLOTS items are under way; when one is done the next is started. Items on one
// row keep their order, since the row's gate does, and so do the requests of one client: those
// behind the batch wait until its last item is at its gate. An item that is refused or fails has
// its status in its result, and the others go on. Each item has a ticket of its own row's server,
// for which it waits by itself: none has a ticket of one server while it waits for another's.
#include <stdio.h>
#include <string.h>

#include "core/units.h"
#include "front/bind.h"
#include "front/table_in.h"

#define RESULT_BYTES 32 /* of a result in a reply, beside its columns or cells */

static bool is_refused(const struct hg_table *table, size_t index)
{
    return table->results[index].status != HG_STATUS_SUCCESS;
}

/* When memory is out it goes as any other does. */
static void note_pass(struct hg_table *table, size_t index, const struct hg_bindthrottle_pass *pass)
{
    if (table->passes == NULL)
        table->passes = hg_arena_array(&table->arena, table->msg.item_count, sizeof *table->passes);
    if (table->passes != NULL)
        table->passes[index] = (struct hg_table_pass){true, *pass};
}

/* Is an item refused because its key is hot, or was evicted? Then *ret_text says why. */
static uint16_t judge_item(struct hg_table *table, struct hg_session *session, size_t index,
                           char *text, size_t text_bytes)
{
    struct hg_worker *worker = table->worker;
    struct hg_lane *lane = session->lane;
    struct hg_span row = hg_table_item_row(&table->msg, index);
    enum hg_hot_type type = (enum hg_hot_type)hg_op_rows[hg_table_item_op(&table->msg, index)].hot;
    uint8_t room[HG_HOTKEY_KEY_MAX];
    unsigned percent;
    struct hg_hotkey_key key = hg_hot_key(worker, table->msg.table, row, room);
    if (hg_hot_refuses(worker, lane, &key, table->exempt, &percent)) {
        struct hg_hot_words words;
        hg_hot_explain(worker, lane, type, percent, &words);
        snprintf(text, text_bytes, "%s", words.text);
        return HG_STATUS_HOT_KEY;
    }
    unsigned min_bytes = atomic_load_explicit(&lane->bucket->bind_min_bytes, memory_order_relaxed);
    uint32_t x;
    struct hg_bindthrottle_key bind = hg_bind_key(type, &key);
    if (lane->binds == NULL || row.len < min_bytes)
        return HG_STATUS_SUCCESS;
    switch (hg_bind_decide(session, lane, &bind, table->exempt, &x)) {
    case HG_BIND_REFUSE:
        snprintf(text, text_bytes,
                 "requests for this key piled up in the store and were evicted: one in %u is let "
                 "through",
                 x);
        return HG_STATUS_BIND_THROTTLE;
    case HG_BIND_PASS:
        note_pass(table, index, &session->bind_pass);
        return HG_STATUS_SUCCESS;
    default:
        return HG_STATUS_SUCCESS;
    }
}

/* Takes back what the item did to the bind throttle: it got no slot. */
static void undo_pass(struct hg_table *table, size_t index)
{
    struct hg_lane *lane = table->request->lane;
    if (table->passes == NULL || !table->passes[index].passed || lane->binds == NULL)
        return;
    enum hg_hot_type type = (enum hg_hot_type)hg_op_rows[hg_table_item_op(&table->msg, index)].hot;
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_hotkey_key key =
        hg_hot_key(table->worker, table->msg.table, hg_table_item_row(&table->msg, index), room);
    struct hg_bindthrottle_key bind = hg_bind_key(type, &key);
    table->passes[index].passed = false;
    hg_bindthrottle_undo(lane->binds, &bind, table->passes[index].of.change);
}

void hg_table_undo_passes(struct hg_table *table)
{
    for (size_t i = table->next; i < table->msg.item_count; i++)
        undo_pass(table, i);
    HG_LIST_EACH(node, &table->slots)
    {
        struct hg_table_slot *slot = HG_CONTAINER_OF(node, struct hg_table_slot, node);
        if (slot->in_line)
            undo_pass(table, slot->index);
    }
}

bool hg_table_judge_batch(struct hg_table *table, struct hg_session *session,
                          const struct hg_opcode_row *row)
{
    const struct hg_lane *lane = session->lane;
    const struct hg_tablemsg *msg = &table->msg;
    table->results = hg_arena_array(&table->arena, msg->item_count, sizeof *table->results);
    if (table->results == NULL)
        return false;
    if (HG_LIKELY(lane->hot_list == NULL && lane->binds == NULL))
        return true;
    for (size_t i = 0; i < msg->item_count; i++) {
        char text[256];
        uint16_t status = judge_item(table, session, i, text, sizeof text);
        if (status == HG_STATUS_SUCCESS)
            continue;
        table->results[i].status = hg_table_key_status(session, row, status);
        table->results[i].text = hg_arena_copy(&table->arena, hg_span_str(text));
        if (table->results[i].text.at == NULL)
            return false;
    }
    return true;
}

void hg_table_estimate_batch(const struct hg_table *table, struct hg_request *request)
{
    const struct hg_front_settings *settings = &table->worker->directory->settings;
    uint64_t reads = 0, writes = 0;
    for (size_t i = 0; i < table->msg.item_count; i++) {
        if (table->kind == HG_TABLE_BATCH && is_refused(table, i))
            continue;
        reads++;
        writes += hg_op_rows[hg_table_item_op(&table->msg, i)].writes;
    }
    request->read_units = settings->read_unit_bytes == 0
                              ? 0
                              : reads * hg_readcost_estimate(&request->lane->read_cost);
    request->write_units = settings->write_unit_bytes == 0 ? 0 : writes;
    uint64_t body = hg_units_of(request->value_len, settings->write_unit_bytes);
    if (writes > 0 && body > request->write_units)
        request->write_units = body;
}

/* ---- results ---- */

static void set_text(struct hg_table *table, struct hg_row_result *result, struct hg_span text)
{
    if (text.len > 256)
        text.len = 256;
    result->text = hg_arena_copy(&table->arena, text);
    if (result->text.at == NULL)
        result->text = HG_SPAN_NONE;
}

static void set_error(struct hg_table *table, size_t index, uint16_t status, struct hg_span text)
{
    struct hg_request *request = table->request;
    struct hg_row_result *result = &table->results[index];
    memset(result, 0, sizeof *result);
    result->status = hg_answer_visible_status(request, status);
    set_text(table, result, text);
}

static void set_fault(struct hg_table *table, size_t index, const struct hg_row_end *end)
{
    struct hg_refusal refusal = hg_answer_fault_refusal(end->fault);
    char text[256];
    snprintf(text, sizeof text, "%s", refusal.text);
    if (end->text.len > 0 && end->text.len < sizeof text)
        snprintf(text, sizeof text, "%.*s", (int)end->text.len, (const char *)end->text.at);
    else if (hg_op_rows[hg_table_item_op(&table->msg, index)].writes &&
             (end->fault == HG_FAULT_LOST || end->fault == HG_FAULT_TIMEOUT))
        snprintf(text, sizeof text, "%s; it may have been carried out all the same", refusal.text);
    set_error(table, index, refusal.status, hg_span_str(text));
}

/* Keeps what lies in the call's arena. */
static void keep(struct hg_table *table, size_t index, const struct hg_row_result *from)
{
    static const struct hg_span too_much =
        HG_SPAN_LIT("carried out; what it returns does not fit into the reply with those before");
    struct hg_row_result *result = &table->results[index];
    size_t bytes = RESULT_BYTES + hg_entity_bytes(&from->entity) +
                   hg_cells_bytes(from->cells.list, from->cells.count);
    *result = *from;
    result->text = HG_SPAN_NONE;
    result->entity = (struct hg_entity){NULL, 0};
    result->cells = (struct hg_cells){NULL, 0};
    size_t most = table->worker->directory->settings.max_value_bytes;
    bool fits = table->result_bytes + bytes <= most || index == 0 || bytes <= 2 * RESULT_BYTES;
    if (fits && hg_entity_copy(&table->arena, &from->entity, &result->entity) &&
        hg_cells_copy(&table->arena, from->cells.list, from->cells.count, &result->cells)) {
        table->result_bytes += bytes;
        if (from->text.len > 0)
            set_text(table, result, from->text);
        return;
    }
    set_error(table, index, HG_STATUS_E2BIG, too_much);
}

/* ---- items ---- */

static void pump(struct hg_table *table);

static void answer(struct hg_table *table)
{
    struct hg_table_reply reply = {
        .op = table->msg.op, .results = table->results, .result_count = table->msg.item_count};
    uint32_t affected = 0;
    for (size_t i = 0; i < reply.result_count; i++)
        affected += table->results[i].affected;
    hg_table_answer(table, &reply, (uint16_t)(affected > UINT16_MAX ? UINT16_MAX : affected),
                    HG_OUTCOME_SUCCESS, NULL);
}

/* An item is over: the next may go. */
static void end_item(struct hg_table_slot *slot, bool answered)
{
    struct hg_table *table = slot->table;
    if (HG_UNLIKELY(table->passes != NULL) && answered && table->passes[slot->index].passed)
        hg_bind_answered(&slot->pass, &table->passes[slot->index].of);
    hg_gate_end(&slot->pass, answered);
    hg_table_slot_free(slot);
    table->under_way--;
    if (!table->pumping)
        pump(table);
}

static void on_item(struct hg_row_call *call, const struct hg_row_end *end)
{
    struct hg_table_slot *slot = HG_CONTAINER_OF(call, struct hg_table_slot, call);
    struct hg_table *table = slot->table;
    size_t index = slot->index;
    hg_table_count(table, hg_table_item_op(&table->msg, index), call, end);
    if (end->fault != HG_FAULT_NONE)
        set_fault(table, index, end);
    else if (end->status != HG_STATUS_SUCCESS)
        set_error(table, index, end->status, end->text);
    else
        keep(table, index, &end->outcome->result);
    end_item(slot, end->fault == HG_FAULT_NONE);
}

/* ---- tickets ---- */

static struct hg_table_slot *slot_of(struct hg_gate_pass *pass)
{
    return HG_CONTAINER_OF(pass, struct hg_table_slot, pass);
}

static void leave_line(struct hg_table_slot *slot)
{
    slot->table->in_line -= slot->in_line;
    slot->in_line = false;
}

/* Not at once: a store may answer at once, and then the next item of the batch gets in line. */
static void on_turn(struct hg_gate_pass *pass)
{
    struct hg_worker *worker = slot_of(pass)->table->worker;
    hg_list_append(&worker->tables.items, &slot_of(pass)->turn);
    hg_loop_again(&worker->loop);
}

static void on_refused(struct hg_gate_pass *pass, const struct hg_refusal *refusal)
{
    struct hg_table_slot *slot = slot_of(pass);
    struct hg_span text = refusal->text != NULL ? hg_span_str(refusal->text) : refusal->verbatim;
    leave_line(slot);
    undo_pass(slot->table, slot->index);
    set_error(slot->table, slot->index, refusal->status, text);
    end_item(slot, false);
}

static const struct hg_gate_owner owner = {on_turn, on_refused};

/* Asks for a ticket of the row's server, and submits the call when it has one. */
static void go_on(struct hg_table_slot *slot)
{
    struct hg_table *table = slot->table;
    const struct hg_bucket *bucket = table->request->lane->bucket;
    struct hg_refusal why;
    enum hg_op op = hg_table_item_op(&table->msg, slot->index);
    struct hg_call at = {.op = op,
                         .prefix = hg_span(bucket->prefix, bucket->prefix_len),
                         .key = hg_span(slot->key, slot->key_len),
                         .key_hash = slot->key_hash};
    const struct hg_table_act act = {op, hg_op_rows[op].writes, hg_table_apply_item, on_item};
    struct hg_store *store = hg_dispatch_store(table->worker, bucket, &why);
    if (store == NULL) {
        on_refused(&slot->pass, &why);
        return;
    }
    switch (hg_gate_ask(&slot->pass, &at)) {
    case HG_GATE_TAKEN:
        leave_line(slot);
        hg_table_submit_row(slot, store, hg_table_item_row(&table->msg, slot->index), at.ticket,
                            &act);
        return;
    case HG_GATE_WAITS:
        table->in_line += !slot->in_line;
        slot->in_line = true;
        return;
    case HG_GATE_REFUSED:
        return;
    }
}

void hg_table_start_item(struct hg_table_slot *slot)
{
    struct hg_table *table = slot->table;
    hg_list_remove(&slot->turn);
    table->pumping = true; /* whatever becomes of the item, the table is there */
    go_on(slot);
    table->pumping = false;
    pump(table);
}

/* ---- the run ---- */

static void start(struct hg_table *table, size_t index)
{
    struct hg_table_slot *slot =
        hg_table_row_slot(table, hg_table_item_row(&table->msg, index), index);
    if (slot == NULL) {
        set_error(table, index, HG_STATUS_ENOMEM, HG_SPAN_LIT("no memory is left"));
        return;
    }
    slot->pass.owner = &owner;
    table->under_way++;
    go_on(slot);
}

/* All items are at their gates: those behind the batch cannot overtake them any more. */
static void let_others_in(struct hg_table *table)
{
    struct hg_session *session = table->request->session;
    if (!table->in_front)
        return;
    table->in_front = session->barrier = false;
    hg_session_resume(session);
}

/* Would the item overtake one of its row that waits for a ticket? */
static bool must_follow(const struct hg_table *table, size_t index)
{
    struct hg_span row = hg_table_item_row(&table->msg, index);
    if (HG_LIKELY(table->in_line == 0))
        return false;
    HG_LIST_EACH(node, (struct hg_list *)(uintptr_t)&table->slots)
    {
        const struct hg_table_slot *slot = HG_CONTAINER_OF(node, struct hg_table_slot, node);
        if (slot->in_line && hg_span_equal(row, hg_table_item_row(&table->msg, slot->index)))
            return true;
    }
    return false;
}

/* Starts what may be started; the last one to end answers. */
static void pump(struct hg_table *table)
{
    table->pumping = true;
    while (table->next < table->msg.item_count && table->under_way < HG_TABLE_SLOTS) {
        size_t index = table->next;
        if (!is_refused(table, index) && must_follow(table, index))
            break;
        table->next++;
        if (!is_refused(table, index))
            start(table, index);
    }
    table->pumping = false;
    if (table->next < table->msg.item_count || table->in_line > 0)
        return;
    let_others_in(table);
    if (table->under_way == 0)
        answer(table);
}

void hg_table_run_batch(struct hg_table *table)
{
    table->in_front = table->request->session->barrier = true;
    pump(table);
}
