// bind - evicted keys on the path of a request, worker's side
// SPDX-License-Identifier: BSD-3-Clause
#include "front/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/log.h"
#include "core/bindevent.h"
#include "front/gate.h"
#include "front/table_in.h"

#define FIRST_ENTRIES 16

static double decr_of(const struct hg_worker *worker)
{
    return worker->directory->settings.bind.decr_per_sec;
}

/* Is more of the holder that a key takes its tickets from in use than the target allows? The
   busiest server of the upstream says so: which one it is depends on the key. */
static bool is_busy(const struct hg_worker *worker, const struct hg_lane *lane,
                    enum hg_hot_type type)
{
    const struct hg_upstream *upstream = lane->bucket->upstream;
    if (upstream == NULL)
        return false;
    enum hg_ticket_kind kind = type == HG_HOT_QUERY ? HG_TICKET_READ : HG_TICKET_WRITE;
    int64_t target = worker->directory->settings.bind.target_pct;
    for (unsigned i = 0; i < hg_gateset_count(upstream->gates); i++) {
        const struct hg_ticket *ticket = &hg_gateset_at(upstream->gates, i)->holders[kind].ticket;
        if (hg_ticket_out(ticket) * 100 > target * hg_ticket_size(ticket))
            return true;
    }
    return false;
}

/* Do answers in the usual time halve X? */
static bool halves(const struct hg_lane *lane)
{
    const struct hg_upstream *upstream = lane->bucket->upstream;
    return upstream != NULL &&
           atomic_load_explicit(&upstream->gates->bind_halves, memory_order_relaxed);
}

/* ---- events ---- */

static void log_passed(struct hg_session *session, const struct hg_lane *lane,
                       const struct hg_bindthrottle_key *key,
                       const struct hg_bindthrottle_told *told)
{
    const struct hg_bindevent_key of = {lane->bucket->name, *key};
    char text[HG_BINDEVENT_BYTES], peer[HG_ADDR_TEXT];
    if (hg_bindevent_waned(text, sizeof text, &of, told) > 0)
        hg_log_info("%s", text);
    hg_bindevent_throttle(text, sizeof text, &of, told->prev, hg_addr_text(&session->peer, peer));
    hg_log_info("%s", text);
    hg_bindevent_passed(text, sizeof text, &of, told);
    hg_log_info("%s", text);
}

static void log_refused(const struct hg_lane *lane, const struct hg_bindthrottle_key *key,
                        const struct hg_bindthrottle_told *told)
{
    const struct hg_bindevent_key of = {lane->bucket->name, *key};
    char text[HG_BINDEVENT_BYTES];
    if (hg_bindevent_waned(text, sizeof text, &of, told) > 0)
        hg_log_info("%s", text);
}

static void log_halved(const struct hg_lane *lane, const struct hg_bindthrottle_key *key,
                       const struct hg_bindthrottle_told *told)
{
    const struct hg_bindevent_key of = {lane->bucket->name, *key};
    char text[HG_BINDEVENT_BYTES];
    hg_bindevent_decr(text, sizeof text, &of, told->prev, told->prev - told->x);
    hg_log_info("%s", text);
}

/* ---- the bind of a request ---- */

/* What a request counts as, when it has one key. */
static bool type_of(const struct hg_request *request, enum hg_hot_type *ret)
{
    enum hg_op op = request->call.op;
    if (request->table != NULL) {
        if (request->table->kind == HG_TABLE_ATOMIC)
            op = hg_table_item_op(&request->table->msg, 0);
        else if (request->table->kind != HG_TABLE_ROW && request->table->kind != HG_TABLE_POINT)
            return false;
    }
    enum hg_hot_rule rule = (enum hg_hot_rule)hg_op_rows[op].hot;
    *ret = rule <= HG_HOT_RULE_QUERY ? (enum hg_hot_type)rule : HG_HOT_QUERY;
    return rule <= HG_HOT_RULE_POINT;
}

bool hg_bind_has_key(const struct hg_request *request, unsigned least)
{
    enum hg_hot_type type;
    return request->key_len >= least && type_of(request, &type);
}

bool hg_bind_of(const struct hg_request *request, uint8_t room[HG_HOTKEY_KEY_MAX],
                struct hg_bindthrottle_key *ret)
{
    enum hg_hot_type type;
    const struct hg_bucket *bucket = request->lane->bucket;
    unsigned min_bytes = atomic_load_explicit(
        (_Atomic unsigned *)(uintptr_t)&bucket->bind_min_bytes, memory_order_relaxed);
    if (request->key_len < min_bytes || !type_of(request, &type))
        return false;
    size_t len = request->key_len;
    if (len > HG_REQUEST_KEY_HEAD)
        len = HG_REQUEST_KEY_HEAD;
    if (request->table == NULL) {
        *ret = (struct hg_bindthrottle_key){(uint8_t)type, 0, request->call.key_hash,
                                            hg_span(request->key_head, len)};
        return true;
    }
    struct hg_span table = request->table->msg.table;
    size_t table_len = table.len < HG_HOTKEY_KEY_MAX ? table.len : HG_HOTKEY_KEY_MAX;
    if (len > HG_HOTKEY_KEY_MAX - table_len)
        len = HG_HOTKEY_KEY_MAX - table_len;
    memcpy(room, table.at, table_len);
    memcpy(room + table_len, request->key_head, len);
    *ret = (struct hg_bindthrottle_key){(uint8_t)type, (uint8_t)table_len, request->bind_hash,
                                        hg_span(room, table_len + len)};
    return true;
}

/* ---- an attempt ---- */

struct hg_span hg_bind_words(struct hg_worker *worker, const struct hg_lane *lane,
                             enum hg_hot_type type, uint32_t x, bool json)
{
    const struct hg_words_key key = {
        .of = lane, .kind = HG_WORDS_BIND, .json = json, .number = (uint16_t)type, .other = x};
    struct hg_span known = hg_words_find(&worker->words, &key);
    if (known.len > 0)
        return known;
    char text[256], members[320];
    snprintf(text, sizeof text,
             "requests for this key of tenant '%s' piled up in the store and were evicted: one in "
             "%u is let through",
             lane->bucket->name, x);
    snprintf(members, sizeof members,
             "\"limit\":\"bind_throttle\",\"tenant\":\"%s\",\"type\":\"%s\",\"allow_every\":%u",
             lane->bucket->name, hg_hot_type_name(type), x);
    return hg_words_keep(&worker->words, &key, text, members);
}

enum hg_bind_verdict hg_bind_decide(struct hg_session *session, struct hg_lane *lane,
                                    const struct hg_bindthrottle_key *key, bool exempt,
                                    uint32_t *ret_x)
{
    struct hg_worker *worker = session->worker;
    struct hg_bindthrottle_told told;
    int mode = atomic_load_explicit(&lane->bucket->bind_mode, memory_order_relaxed);
    if (exempt || mode == HG_MODE_OFF || !hg_bindthrottle_may_have(lane->binds, key->hash))
        return HG_BIND_FREE;
    bool busy = is_busy(worker, lane, (enum hg_hot_type)key->type);
    lane->binds->halves = halves(lane);
    switch (hg_bindthrottle_decide(lane->binds, key, busy, decr_of(worker), worker->loop.now_us,
                                   &told)) {
    case HG_BINDTHROTTLE_PASS:
        hg_counter_add(&lane->bind_passed, 1);
        log_passed(session, lane, key, &told);
        session->bind_pass =
            (struct hg_bindthrottle_pass){told.change, told.before, key->hash, key->type};
        return mode == HG_MODE_ENFORCE ? HG_BIND_PASS : HG_BIND_FREE;
    case HG_BINDTHROTTLE_REFUSE:
        log_refused(lane, key, &told);
        if (mode == HG_MODE_OBSERVE) {
            hg_counter_add(&lane->bind_would_throttle, 1);
            return HG_BIND_FREE;
        }
        hg_counter_add(&lane->bind_throttled, 1);
        *ret_x = told.x;
        return HG_BIND_REFUSE;
    default:
        return HG_BIND_FREE;
    }
}

/* ---- tables ---- */

static struct hg_bindthrottle *new_table(uint32_t capacity)
{
    void *memory = malloc(hg_bindthrottle_bytes(capacity));
    return memory != NULL ? hg_bindthrottle_init(memory, capacity) : NULL;
}

static bool open_table(struct hg_worker *worker, struct hg_lane *lane)
{
    lane->binds = new_table(FIRST_ENTRIES);
    if (lane->binds == NULL)
        return false;
    hg_worker_use_lane(worker, lane);
    hg_list_append(&worker->lanes_bound, &lane->bound);
    return true;
}

static void close_table(struct hg_worker *worker, struct hg_lane *lane)
{
    free(lane->binds);
    lane->binds = NULL;
    hg_list_remove(&lane->bound);
    hg_worker_leave_lane(worker, lane);
}

/* A full table that can grow does; when memory is out it stays, and forgets an entry. */
static void grow(struct hg_lane *lane)
{
    if (!hg_bindthrottle_full(lane->binds))
        return;
    struct hg_bindthrottle *larger = new_table(lane->binds->capacity * 2);
    if (larger == NULL)
        return;
    hg_bindthrottle_move(larger, lane->binds);
    free(lane->binds);
    lane->binds = larger;
}

void hg_bind_make(struct hg_worker *worker, struct hg_lane *lane,
                  const struct hg_bindthrottle_key *key, uint64_t evicted, uint64_t held_us)
{
    if (lane->binds == NULL && !open_table(worker, lane)) {
        hg_log_error("tenant=%s msg=\"no memory to throttle an evicted key\"", lane->bucket->name);
        return;
    }
    if (hg_bindthrottle_find(lane->binds, key) == NULL) {
        hg_counter_add(&lane->bind_made, 1);
        grow(lane);
    }
    hg_bindthrottle_make(lane->binds, key, evicted, decr_of(worker), worker->loop.now_us)->held_us =
        held_us;
}

void hg_bind_answered(const struct hg_gate_pass *pass, const struct hg_bindthrottle_pass *of)
{
    struct hg_lane *lane = pass->request->lane;
    const struct hg_worker *worker = pass->request->session->worker;
    struct hg_bindthrottle_told told;
    if (lane->binds == NULL || pass->gate == NULL || !halves(lane))
        return;
    struct hg_bindthrottle_entry *entry = hg_bindthrottle_of_pass(lane->binds, of);
    if (entry == NULL)
        return;
    /* The bytes stay in the entry's place though the entry may go: nothing is made here. */
    const struct hg_bindthrottle_key key = hg_bindthrottle_key_of(entry);
    if (!hg_bindthrottle_answer(lane->binds, entry, of, worker->loop.now_us - pass->ticket_us,
                                hg_gate_usual_us(pass), &told))
        return;
    hg_counter_add(&lane->bind_halved, 1);
    log_halved(lane, &key, &told);
}

void hg_bind_undo(struct hg_request *request)
{
    struct hg_lane *lane = request->lane;
    request->bind_passed = false;
    if (lane->binds == NULL)
        return;
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_bindthrottle_key key;
    if (request->table != NULL && request->table->passes != NULL)
        hg_table_undo_passes(request->table);
    else if (hg_bind_of(request, room, &key))
        hg_bindthrottle_undo(lane->binds, &key, request->bind_pass.change);
}

/* ---- the board ---- */

static void show_lane(struct hg_worker *worker, struct hg_bind_board *board,
                      const struct hg_lane *lane)
{
    const struct hg_bindthrottle *table = lane->binds;
    for (uint32_t i = 0; i < table->capacity; i++) {
        const struct hg_bindthrottle_entry *entry = &table->entries[i];
        if (!entry->used)
            continue;
        struct hg_bind_shown *row = &board->rows[board->count++];
        struct hg_bindthrottle_key key = hg_bindthrottle_key_of(entry);
        memset(row, 0, sizeof *row);
        memcpy(row->bucket, lane->bucket->name, sizeof row->bucket);
        row->type = key.type;
        row->table_len = key.table_len;
        row->hash = key.hash;
        row->key_len = (uint8_t)key.bytes.len;
        memcpy(row->key, key.bytes.at, key.bytes.len);
        row->x = hg_bindthrottle_x(entry, decr_of(worker), worker->loop.now_us);
        row->passed = entry->passed;
        row->refused = entry->refused;
        row->halved = entry->halved;
        row->asked_us = entry->asked_us;
    }
}

static void show(struct hg_worker *worker)
{
    struct hg_bind_board *board = &worker->bind_board;
    size_t count = 0;
    HG_LIST_EACH(node, &worker->lanes_bound)
    count += HG_CONTAINER_OF(node, struct hg_lane, bound)->binds->count;
    if (count == 0 && board->count == 0)
        return;
    pthread_mutex_lock(&board->lock);
    board->count = 0;
    struct hg_bind_shown *rows = hg_grow(board->rows, &board->cap, count, sizeof *rows);
    if (rows != NULL) {
        board->rows = rows;
        HG_LIST_EACH(node, &worker->lanes_bound)
        show_lane(worker, board, HG_CONTAINER_OF(node, struct hg_lane, bound));
    }
    pthread_mutex_unlock(&board->lock);
}

/* ---- the worker's part ---- */

void hg_binds_sweep(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->lanes_bound)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(node, struct hg_lane, bound);
        bool off =
            atomic_load_explicit(&lane->bucket->bind_mode, memory_order_relaxed) == HG_MODE_OFF;
        if (off || !hg_bucket_live(lane->bucket) ||
            hg_bindthrottle_sweep(lane->binds, decr_of(worker), worker->loop.now_us) == 0)
            close_table(worker, lane);
    }
    show(worker);
}

int hg_binds_open(struct hg_worker *worker)
{
    hg_list_init(&worker->lanes_bound);
    return -pthread_mutex_init(&worker->bind_board.lock, NULL);
}

void hg_binds_close(struct hg_worker *worker)
{
    HG_LIST_EACH(node, &worker->lanes_bound)
    close_table(worker, HG_CONTAINER_OF(node, struct hg_lane, bound));
}

void hg_binds_free(struct hg_worker *worker)
{
    free(worker->bind_board.rows);
    pthread_mutex_destroy(&worker->bind_board.lock);
}
