// evict - who holds the slots of a backlogged server: reports to housekeeping, and its verdicts
// SPDX-License-Identifier: BSD-3-Clause
#include "front/evict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/probe_point.h"
#include "core/bindevent.h"
#include "front/answer.h"
#include "front/bind.h"
#include "front/dispatch.h"
#include "front/gate.h"
#include "proto/status.h"

/* ---- counting ---- */

/* What is counted of one key, with room for its bytes. */
struct sum {
    struct hg_bindwatch_row row;
    uint8_t key[HG_HOTKEY_KEY_MAX];
};

struct sums {
    struct sum *list;
    size_t count;
    uint32_t *heads; /* by hash: number + 1 of the last of its chain */
    uint32_t *next;
    size_t mask;
    uint32_t used;
    uint64_t oldest_us; /* when the oldest evictable request was sent; 0: there is none */
};

static bool sums_init(struct sums *sums, size_t cap)
{
    memset(sums, 0, sizeof *sums);
    sums->mask = 15;
    while (sums->mask < cap)
        sums->mask = 2 * sums->mask + 1;
    sums->list = calloc(cap + 1, sizeof *sums->list);
    sums->next = calloc(cap + 1, sizeof *sums->next);
    sums->heads = calloc(sums->mask + 1, sizeof *sums->heads);
    return sums->list != NULL && sums->next != NULL && sums->heads != NULL;
}

static void sums_fini(struct sums *sums)
{
    free(sums->list);
    free(sums->next);
    free(sums->heads);
}

static struct hg_bindwatch_row *row_of(struct sums *sums, const struct hg_bucket *bucket,
                                       const struct hg_bindthrottle_key *key)
{
    uint32_t *head = &sums->heads[(key->hash ^ key->type) & sums->mask];
    for (uint32_t at = *head; at != 0; at = sums->next[at - 1]) {
        struct hg_bindwatch_row *row = &sums->list[at - 1].row;
        if (row->tenant == bucket && hg_bindthrottle_same(&row->key, key))
            return row;
    }
    struct sum *sum = &sums->list[sums->count++];
    sums->next[sums->count - 1] = *head;
    *head = (uint32_t)sums->count;
    memcpy(sum->key, key->bytes.at, key->bytes.len);
    sum->row.tenant = bucket;
    sum->row.key = *key;
    sum->row.key.bytes.at = sum->key;
    return &sum->row;
}

static bool is_exempt(const struct hg_request *request)
{
    return request->session->privileges & HG_PRIVILEGE_BIT(HG_PRIVILEGE_UNTHROTTLED);
}

static bool may_go(const struct hg_request *request)
{
    const struct hg_bind_settings *settings = &request->session->worker->directory->settings.bind;
    int mode = atomic_load_explicit(&request->lane->bucket->bind_mode, memory_order_relaxed);
    return mode != HG_MODE_OFF && !is_exempt(request) &&
           (settings->evict_sent_writes || !hg_op_rows[request->call.op].writes);
}

/* May it go as the longest-running one? Not with a key that is too short to be evicted for. */
static bool may_go_as_longest(const struct hg_request *request)
{
    unsigned least =
        atomic_load_explicit(&request->lane->bucket->bind_min_bytes, memory_order_relaxed);
    return may_go(request) && (!hg_bind_has_key(request, 0) || hg_bind_has_key(request, least));
}

static bool is_sent(const struct hg_gate_pass *pass)
{
    return pass->gate != NULL && pass->request->state == HG_REQUEST_SENT;
}

static void count_one(void *arg, const struct hg_gate_pass *pass)
{
    struct sums *sums = arg;
    struct hg_request *request = pass->request;
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_bindthrottle_key key;
    bool sent = is_sent(pass);
    sums->used += sent;
    if (sent && may_go_as_longest(request) &&
        (sums->oldest_us == 0 || pass->ticket_us < sums->oldest_us))
        sums->oldest_us = pass->ticket_us;
    if (atomic_load_explicit(&request->lane->bucket->bind_mode, memory_order_relaxed) ==
            HG_MODE_OFF ||
        !hg_bind_of(request, room, &key))
        return;
    struct hg_bindwatch_row *row = row_of(sums, request->lane->bucket, &key);
    if (sent) {
        uint64_t now_us = request->session->worker->loop.now_us;
        if (now_us > pass->ticket_us && now_us - pass->ticket_us > row->oldest_us)
            row->oldest_us = now_us - pass->ticket_us;
        row->slots++;
        row->evictable += may_go(request);
        row->exempt += is_exempt(request);
    } else {
        row->waiting += !is_exempt(request);
    }
}

/* ---- all requests of a server ---- */

static size_t count_all(const struct hg_gate_part *part)
{
    size_t n = (size_t)part->lines[HG_TICKET_READ].line.count +
               part->lines[HG_TICKET_WRITE].line.count + part->lines[HG_TICKET_READ].line.held +
               part->lines[HG_TICKET_WRITE].line.held;
    HG_LIST_EACH(node, (struct hg_list *)(uintptr_t)&part->running)
    n++;
    return n;
}

/* The worker's part of the server; NULL: it has none. */
static struct hg_gate_part *part_of(struct hg_worker *worker, const struct hg_upstream *upstream,
                                    unsigned server)
{
    struct hg_gate *gate = worker->gates[upstream->slot];
    if (gate == NULL || gate->set != upstream->gates)
        return NULL;
    HG_LIST_EACH(node, &gate->parts)
    {
        struct hg_gate_part *part = HG_CONTAINER_OF(node, struct hg_gate_part, node);
        if (part->share->index == server)
            return part;
    }
    return NULL;
}

/* Those in line of a cell, which may be NULL. */
static void each_waiter(struct hg_gate_cell *cell,
                        void (*fn)(void *arg, const struct hg_gate_pass *pass), void *arg)
{
    for (unsigned kind = 0; cell != NULL && kind < HG_TICKET_KINDS; kind++)
        HG_LIST_EACH(node, &cell->seats[kind].queue.waiters)
    fn(arg, HG_CONTAINER_OF(node, struct hg_gate_pass, waiter.node));
}

/* Those with a ticket, oldest first, then those in line. fn may end the one that it is given. */
static void each(struct hg_gate_part *part, void (*fn)(void *arg, const struct hg_gate_pass *pass),
                 void *arg)
{
    /* What fn does may end others too: a marker keeps the place. */
    struct hg_list marker;
    hg_list_init(&marker);
    for (struct hg_list *node = hg_list_first(&part->running); node != NULL;) {
        hg_list_put_before(node->next, &marker);
        fn(arg, HG_CONTAINER_OF(node, struct hg_gate_pass, run));
        node = marker.next == &part->running ? NULL : marker.next;
        hg_list_remove(&marker);
    }
    HG_LIST_EACH(lane_node, &part->gate->worker->lanes_used)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(lane_node, struct hg_lane, used);
        unsigned server = part->share->index;
        if (lane->bucket->upstream != part->gate->upstream)
            continue;
        for (unsigned i = 0; i < hg_lane_cell_count(lane, server); i++)
            each_waiter(hg_lane_cell_at(lane, server, i), fn, arg);
    }
}

/* ---- reports ---- */

struct ask_letter {
    struct hg_letter letter;
    struct hg_upstream *upstream;
    unsigned server;
    uint64_t round;
    struct hg_mailbox *house;
    void (*on_report)(struct hg_letter *letter, void *receiver);
    void *ctx;
};

void hg_evict_report_free(struct hg_evict_report *report)
{
    for (size_t i = 0; i < report->report.count; i++)
        hg_bucket_unref((struct hg_bucket *)(uintptr_t)report->rows[i].tenant);
    hg_upstream_unref(report->upstream);
    free(report->rows);
    free(report->keys);
    free(report);
}

/* Takes over all keys: one that has a slot here may have many elsewhere. */
static bool take_over(struct hg_evict_report *report, const struct sums *sums)
{
    report->rows = calloc(sums->count + 1, sizeof *report->rows);
    report->keys = calloc(sums->count + 1, sizeof *report->keys);
    if (report->rows == NULL || report->keys == NULL)
        return false;
    for (size_t i = 0; i < sums->count; i++) {
        const struct sum *sum = &sums->list[i];
        size_t n = report->report.count++;
        report->rows[n] = sum->row;
        memcpy(report->keys[n], sum->key, sizeof sum->key);
        report->rows[n].key.bytes.at = report->keys[n];
        hg_bucket_ref((struct hg_bucket *)(uintptr_t)sum->row.tenant);
    }
    report->report.rows = report->rows;
    report->report.used = sums->used;
    return true;
}

static void fill(struct hg_worker *worker, struct hg_evict_report *report)
{
    struct hg_gate_part *part = part_of(worker, report->upstream, report->server);
    struct sums sums;
    if (part == NULL)
        return;
    if (sums_init(&sums, count_all(part))) {
        each(part, count_one, &sums);
        uint64_t now_us = worker->loop.now_us;
        if (take_over(report, &sums) && sums.oldest_us != 0 && now_us > sums.oldest_us)
            report->report.oldest_us = now_us - sums.oldest_us;
    }
    sums_fini(&sums);
}

static void on_ask(struct hg_letter *letter, void *receiver)
{
    struct ask_letter *ask = HG_CONTAINER_OF(letter, struct ask_letter, letter);
    struct hg_worker *worker = receiver;
    /* When the workers have stopped nobody reads reports any more. */
    struct hg_evict_report *report = worker->stopping ? NULL : calloc(1, sizeof *report);
    if (report != NULL) {
        report->letter.deliver = ask->on_report;
        report->ctx = ask->ctx;
        report->worker = worker->index;
        report->round = ask->round;
        report->upstream = hg_upstream_ref(ask->upstream);
        report->server = ask->server;
        fill(worker, report);
        hg_mailbox_post(ask->house, &report->letter);
    }
    hg_upstream_unref(ask->upstream);
    free(ask);
}

void hg_evict_ask(struct hg_worker *worker, struct hg_upstream *upstream, unsigned server,
                  uint64_t round, struct hg_mailbox *house,
                  void (*on_report)(struct hg_letter *letter, void *receiver), void *ctx)
{
    struct ask_letter *ask = malloc(sizeof *ask);
    if (ask == NULL)
        return;
    *ask = (struct ask_letter){
        {NULL, on_ask}, hg_upstream_ref(upstream), server, round, house, on_report, ctx};
    hg_mailbox_post(&worker->mailbox, &ask->letter);
}

/* ---- verdicts ---- */

struct order_letter {
    struct hg_letter letter;
    struct hg_upstream *upstream;
    unsigned server;
    struct hg_evict_key *keys;
    size_t count;
};

void hg_evict_keys_free(struct hg_evict_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hg_bucket_unref(keys[i].bucket);
    free(keys);
}

/* One key's eviction on this worker. */
struct eviction {
    const struct hg_evict_key *of; /* NULL: the longest-running request */
    uint32_t own, keep;            /* its evictable ones that were sent, and that may stay */
    const struct hg_gate_pass *oldest;
};

static bool is_of(const struct eviction *e, const struct hg_request *request)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    struct hg_bindthrottle_key key;
    return request->lane->bucket == e->of->bucket && hg_bind_of(request, room, &key) &&
           hg_bindthrottle_same(&key, &e->of->verdict.key);
}

static void count_own(void *arg, const struct hg_gate_pass *pass)
{
    struct eviction *e = arg;
    struct hg_request *request = pass->request;
    e->own += is_sent(pass) && may_go(request) && is_of(e, request);
}

static void log_evicted(const struct hg_request *request)
{
    uint8_t room[HG_HOTKEY_KEY_MAX];
    char text[HG_BINDEVENT_BYTES];
    struct hg_bindevent_key of = {.tenant = request->lane->bucket->name};
    if (!hg_bind_of(request, room, &of.key))
        of.key.type = hg_op_rows[request->call.op].writes ? HG_HOT_UPDATE : HG_HOT_QUERY;
    hg_bindevent_evict(text, sizeof text, &of,
                       request->state == HG_REQUEST_SENT ? request->call.place.index
                                                         : HG_BINDEVENT_NO_SLOT);
    hg_log_evict("%s", text);
}

/* Answers the request in its store's place, or takes it out of the line that it is in. */
static void evict(struct hg_request *request)
{
    struct hg_lane *lane = request->lane;
    bool sent = request->state == HG_REQUEST_SENT;
    int mode = atomic_load_explicit(&lane->bucket->bind_mode, memory_order_relaxed);
    if (mode == HG_MODE_OBSERVE) {
        hg_counter_add(&lane->bind_would_evict, 1);
        return;
    }
    hg_counter_add(sent ? &lane->bind_evicted : &lane->bind_evicted_waiting, 1);
    log_evicted(request);
    HG_PROBE_POINT(request__evicted, lane->bucket->name, request->call.op, sent);
    char text[256];
    snprintf(text, sizeof text,
             "evicted: its key, or the request itself, held up the requests of upstream '%s'%s",
             lane->bucket->upstream->name,
             sent && hg_op_rows[request->call.op].writes
                 ? "; it may have been carried out all the same"
                 : "");
    hg_dispatch_evict(request, &(struct hg_refusal){HG_STATUS_BIND_EVICTION, HG_OUTCOME_EVICTED,
                                                    text, HG_SPAN_NONE, HG_SPAN_NONE});
}

static void evict_of(void *arg, const struct hg_gate_pass *pass)
{
    struct eviction *e = arg;
    struct hg_request *request = pass->request;
    if (!is_of(e, request) || is_exempt(request))
        return;
    if (!is_sent(pass)) {
        /* One that has a ticket and is about to go on counts as sent soon. */
        if (request->session->wait == HG_WAIT_TICKET || request->session->wait == HG_WAIT_ROOM)
            evict(request);
    } else if (may_go(request) && e->own > e->keep) {
        e->own--;
        evict(request);
    }
}

static void find_oldest(void *arg, const struct hg_gate_pass *pass)
{
    struct eviction *e = arg;
    struct hg_request *request = pass->request;
    if (e->oldest == NULL && is_sent(pass) && may_go_as_longest(request))
        e->oldest = pass;
}

/* `part`: NULL when nobody of this worker has asked for the server. */
static void carry_out(struct hg_worker *worker, struct hg_gate_part *part,
                      const struct hg_evict_key *key)
{
    struct eviction e = {.of = key};
    if (atomic_load_explicit(&key->bucket->bind_mode, memory_order_relaxed) == HG_MODE_OFF)
        return; /* since the verdict was asked for */
    if (part != NULL)
        each(part, count_own, &e);
    e.keep = hg_bindwatch_share(&key->verdict, e.own);
    /* First: what comes in the place of those evicted is judged already. */
    hg_bind_make(worker, &key->bucket->lanes[worker->index], &key->verdict.key,
                 key->verdict.evicted, key->verdict.oldest_us);
    if (part != NULL)
        each(part, evict_of, &e);
}

static void evict_oldest(struct hg_worker *worker, struct hg_gate_part *part)
{
    struct eviction e = {0};
    uint64_t min_age_us = worker->directory->settings.bind.min_age_us;
    each(part, find_oldest, &e);
    if (e.oldest == NULL || worker->loop.now_us - e.oldest->ticket_us < min_age_us)
        return;
    struct hg_lane *lane = e.oldest->request->lane;
    if (atomic_load_explicit(&lane->bucket->bind_mode, memory_order_relaxed) == HG_MODE_ENFORCE)
        hg_counter_add(&lane->bind_evicted_oldest, 1);
    evict(e.oldest->request);
}

static void on_order(struct hg_letter *letter, void *receiver)
{
    struct order_letter *order = HG_CONTAINER_OF(letter, struct order_letter, letter);
    struct hg_worker *worker = receiver;
    struct hg_gate_part *part =
        worker->stopping ? NULL : part_of(worker, order->upstream, order->server);
    bool ours = !worker->stopping && worker->gates[order->upstream->slot] != NULL &&
                worker->gates[order->upstream->slot]->set == order->upstream->gates;
    for (size_t i = 0; ours && i < order->count; i++)
        if (hg_bucket_live(order->keys[i].bucket))
            carry_out(worker, part, &order->keys[i]);
    if (part != NULL && order->count == 0)
        evict_oldest(worker, part);
    hg_evict_keys_free(order->keys, order->count);
    hg_upstream_unref(order->upstream);
    free(order);
}

void hg_evict_order(struct hg_worker *worker, struct hg_upstream *upstream, unsigned server,
                    struct hg_evict_key *keys, size_t n)
{
    struct order_letter *order = malloc(sizeof *order);
    if (order == NULL) {
        hg_evict_keys_free(keys, n);
        return;
    }
    *order = (struct order_letter){{NULL, on_order}, hg_upstream_ref(upstream), server, keys, n};
    for (size_t i = 0; i < n; i++)
        keys[i].verdict.key.bytes.at = keys[i].key;
    hg_mailbox_post(&worker->mailbox, &order->letter);
}
