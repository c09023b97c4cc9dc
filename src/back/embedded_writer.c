// embedded_writer - applies batches of writes to the embedded store, a group per commit
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "back/embedded_put.h"
#include "base/log.h"

#define SCRATCH_KEEP (256u << 10)
#define REFUSAL_TEXT 160
#define SPLITS_MAX   8

void hg_embedded_writer_init(struct hg_embedded_writer *writer, struct hg_embedded_db *db,
                             struct hg_embedded_tenants *tenants,
                             struct hg_embedded_counters *counters)
{
    memset(writer, 0, sizeof *writer);
    writer->db = db;
    writer->tenants = tenants;
    writer->counters = counters;
    writer->next_flush_s = 1; /* the first transaction looks which there are */
    hg_embedded_sweep_init(&writer->sweep);
}

void hg_embedded_writer_fini(struct hg_embedded_writer *writer)
{
    free(writer->scratch);
    writer->scratch = NULL;
    hg_embedded_evict_fini(&writer->evict);
}

/* The flush of `tenant` in this transaction; taken back if it does not commit. */
static int change_flush(struct hg_embedded_writer *writer, struct hg_embedded_tenant *tenant,
                        struct hg_item_flush flush)
{
    int rc = hg_embedded_tenant_set_flush(writer->tenants, writer->txn, tenant, flush);
    if (rc == 0 && !tenant->changed) {
        tenant->changed = true;
        tenant->next_changed = writer->changed;
        writer->changed = tenant;
    }
    return rc;
}

/* Carries out the delayed flushes whose second has come, before anything is written in it. */
static int do_due_flushes(struct hg_embedded_writer *writer)
{
    if (HG_LIKELY(writer->next_flush_s == 0 || writer->now_s < writer->next_flush_s))
        return 0;
    uint32_t next = atomic_load_explicit(&writer->tenants->next_id, memory_order_acquire);
    uint64_t earliest_s = 0;
    for (uint32_t id = 1; id < next; id++) {
        struct hg_embedded_tenant *tenant = hg_embedded_tenant_alive(writer->tenants, id);
        if (tenant == NULL)
            continue;
        struct hg_item_flush flush = tenant->flush;
        if (hg_item_flush_due(&flush, writer->now_s, writer->db->cas_last)) {
            int rc = change_flush(writer, tenant, flush);
            if (rc != 0)
                return rc;
        } else if (flush.at_s != 0 && (earliest_s == 0 || flush.at_s < earliest_s)) {
            earliest_s = flush.at_s;
        }
    }
    writer->next_flush_s = earliest_s;
    return 0;
}

int hg_embedded_writer_begin(struct hg_embedded_writer *writer, uint64_t cas_count)
{
    writer->changed = NULL;
    writer->refused = 0;
    writer->roomy = false;
    writer->now_s = writer->wall_s(writer->wall_arg);
    hg_embedded_evict_begin(writer);
    int rc = mdb_txn_begin(writer->db->env, NULL, 0, &writer->txn);
    if (rc != 0) {
        writer->txn = NULL;
        return rc;
    }
    rc = do_due_flushes(writer);
    if (rc == 0)
        rc = hg_embedded_cas_reserve(writer->db, writer->txn, cas_count);
    if (rc != 0)
        hg_embedded_writer_abort(writer);
    return rc;
}

/* Takes the next tenant off the list of those whose flush has changed. */
static struct hg_embedded_tenant *pop_changed(struct hg_embedded_writer *writer)
{
    struct hg_embedded_tenant *tenant = writer->changed;
    if (tenant != NULL) {
        writer->changed = tenant->next_changed;
        tenant->changed = false;
    }
    return tenant;
}

static void forget_changes(struct hg_embedded_writer *writer)
{
    struct hg_embedded_tenant *tenant;
    while ((tenant = pop_changed(writer)) != NULL) {
        tenant->flush = hg_embedded_tenant_flush(tenant);
        writer->next_flush_s = 1; /* look again */
    }
}

static void publish_changes(struct hg_embedded_writer *writer)
{
    struct hg_embedded_tenant *tenant;
    while ((tenant = pop_changed(writer)) != NULL) {
        struct hg_item_flush flush = tenant->flush;
        atomic_store_explicit(&tenant->seen_flush_cas, flush.cas, memory_order_release);
        atomic_store_explicit(&tenant->seen_flush_at_s, flush.at_s, memory_order_release);
        if (flush.at_s == 0) {
            tenant->sweep = true;
            writer->sweep.wanted = true;
        } else if (writer->next_flush_s == 0 || flush.at_s < writer->next_flush_s) {
            writer->next_flush_s = flush.at_s;
        }
    }
}

int hg_embedded_writer_commit(struct hg_embedded_writer *writer)
{
    int rc = mdb_txn_commit(writer->txn);
    writer->txn = NULL;
    if (rc != 0) {
        forget_changes(writer);
        return rc;
    }
    hg_embedded_cas_committed(writer->db);
    publish_changes(writer);
    atomic_fetch_add_explicit(&writer->db->published, 1, memory_order_release);
    hg_counter_add(&writer->counters->commits, 1);
    hg_counter_add(&writer->counters->refused_full, writer->refused);
    hg_counter_add(&writer->counters->evicted, writer->evict.evicted);
    hg_counter_add(&writer->counters->evicted_bytes, writer->evict.evicted_bytes);
    hg_counter_add(&writer->counters->evicted_expired, writer->evict.evicted_expired);
    return 0;
}

void hg_embedded_writer_abort(struct hg_embedded_writer *writer)
{
    mdb_txn_abort(writer->txn);
    writer->txn = NULL;
    forget_changes(writer);
}

static void answer_text(struct hg_embedded_batch *batch, struct hg_result *result, const char *text)
{
    size_t len = strlen(text);
    uint8_t *at = hg_embedded_batch_answer(batch, len);
    if (at == NULL)
        return;
    memcpy(at, text, len);
    result->value = hg_span(at, len);
}

/* There is no room: says so, with the numbers, which are taken once a batch. */
static void refuse_full(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch,
                        struct hg_embedded_op *op)
{
    op->result.status = HG_STATUS_ENOMEM;
    writer->refused++;
    if (batch->refusal.len == 0) {
        char text[REFUSAL_TEXT];
        struct hg_embedded_usage usage;
        hg_embedded_usage(writer->db, writer->txn, &usage);
        snprintf(text, sizeof text,
                 "embedded store is full: %llu of %llu bytes used (embedded_max_bytes), "
                 "file %llu bytes",
                 (unsigned long long)usage.used_bytes, (unsigned long long)writer->db->max_bytes,
                 (unsigned long long)usage.file_bytes);
        answer_text(batch, &op->result, text);
        batch->refusal = op->result.value;
    }
    op->result.value = batch->refusal;
}

/* A group of one has failed. */
static void answer_failure(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch,
                           struct hg_embedded_op *op, int rc)
{
    memset(&op->result, 0, sizeof op->result);
    if (rc == MDB_MAP_FULL || rc == MDB_TXN_FULL || rc == ENOSPC || rc == EDQUOT) {
        op->result.status = HG_STATUS_ENOMEM;
        hg_counter_add(&writer->counters->refused_full, 1);
    } else {
        op->result.status = HG_STATUS_EINTERNAL;
        op->result.fault = rc == ENOMEM ? HG_FAULT_MEMORY : HG_FAULT_INTERNAL;
        hg_counter_add(&writer->counters->write_errors, 1);
    }
    char text[REFUSAL_TEXT];
    snprintf(text, sizeof text, "embedded store cannot write: %s", mdb_strerror(rc));
    hg_log_warn("store=%s msg=\"%s\"", writer->db->path, text);
    answer_text(batch, &op->result, text);
}

/* Copies what get-and-touch found, before the put moves it. */
static bool answer_value(struct hg_embedded_batch *batch, struct hg_embedded_op *op,
                         struct hg_span value)
{
    uint8_t *at = hg_embedded_batch_answer(batch, value.len);
    if (at == NULL)
        return false;
    if (value.len > 0)
        memcpy(at, value.at, value.len);
    op->result.value = hg_span(at, value.len);
    return true;
}

static int do_store(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch,
                    struct hg_embedded_op *op, MDB_val key, const struct hg_item_outcome *outcome,
                    size_t old_bytes)
{
    bool touch = outcome->act == HG_ITEM_TOUCH;
    bool join = op->ask.op == HG_OP_APPEND || op->ask.op == HG_OP_PREPEND;
    enum hg_embedded_room room =
        touch ? HG_EMBEDDED_ROOM_YES : hg_embedded_put_room(writer, key, outcome, old_bytes);
    bool fits = room != HG_EMBEDDED_ROOM_NO;
    bool evicts = !fits || room == HG_EMBEDDED_ROOM_TRY ? writer->evict.on : false;
    bool builds = touch || join || evicts;
    int rc = 0;
    if (op->ask.op == HG_OP_GAT && !answer_value(batch, op, outcome->item.value))
        return ENOMEM;
    if (HG_UNLIKELY(builds))
        rc = hg_embedded_put_build(writer, outcome);
    if (rc != 0)
        return rc;
    if (HG_LIKELY(room == HG_EMBEDDED_ROOM_YES))
        rc = hg_embedded_put_record(writer, key, outcome, builds);
    else if (evicts && writer->tries_left_out == 0)
        rc = hg_embedded_put_evicting(writer, key, outcome, &fits);
    else if (room == HG_EMBEDDED_ROOM_TRY)
        rc = hg_embedded_put_try(writer, key, outcome, builds, &fits);
    if (rc != 0)
        return rc;
    if (!fits) {
        refuse_full(writer, batch, op);
        return 0;
    }
    if (!touch)
        writer->db->cas_last = outcome->item.cas;
    op->result.status = outcome->status;
    op->result.cas = outcome->item.cas;
    op->result.item_flags = outcome->item.flags;
    op->result.counter = outcome->counter;
    if (join)
        op->result.item_bytes = (uint32_t)hg_item_outcome_bytes(outcome);
    return 0;
}

static int do_flush(struct hg_embedded_writer *writer, struct hg_embedded_op *op,
                    struct hg_embedded_tenant *tenant)
{
    struct hg_item_flush flush =
        hg_item_flush_plan(tenant->flush, op->ask.expiry, writer->now_s, writer->db->cas_last);
    op->result.status = HG_STATUS_SUCCESS;
    return change_flush(writer, tenant, flush);
}

/* Carries out one operation in the running transaction. 0 whatever the answer is; an error of LMDB
   when the transaction is lost. */
static int do_op(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch,
                 struct hg_embedded_op *op)
{
    memset(&op->result, 0, sizeof op->result);
    struct hg_embedded_tenant *tenant = hg_embedded_tenant_alive(writer->tenants, op->tenant_id);
    if (tenant == NULL) {
        op->result.status = HG_STATUS_NO_BUCKET;
        return 0;
    }
    if (op->ask.op == HG_OP_FLUSH)
        return do_flush(writer, op, tenant);
    MDB_val key = {op->key_len, (void *)(uintptr_t)op->key}, record = {0, NULL};
    struct hg_item old;
    bool stored = false, alive = false;
    /* A plain set does not care what was there. */
    if (op->ask.op != HG_OP_SET || op->ask.cas != 0) {
        int rc = mdb_get(writer->txn, writer->db->dbi, &key, &record);
        if (rc != 0 && rc != MDB_NOTFOUND)
            return rc;
        stored = rc == 0;
        alive = stored && hg_embedded_record_decode(record, &old) &&
                hg_item_alive(&old, writer->now_s, tenant->flush);
    }
    struct hg_item_outcome outcome;
    hg_item_decide(alive ? &old : NULL, &op->ask, writer->now_s, writer->max_value_bytes,
                   writer->db->cas_last + 1, &outcome);
    if (outcome.act == HG_ITEM_STORE || outcome.act == HG_ITEM_TOUCH)
        return do_store(writer, batch, op, key, &outcome, record.mv_size);
    op->result.status = outcome.status;
    /* A dead record that was met on the way goes too. */
    if (outcome.act != HG_ITEM_REMOVE && (!stored || alive))
        return 0;
    writer->tries_left_out = 0;
    return mdb_del(writer->txn, writer->db->dbi, &key, NULL);
}

/* Carries out a single operation, in a transaction of its own. */
static int run_alone(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch,
                     struct hg_embedded_op *op)
{
    int rc = hg_embedded_writer_begin(writer, 1);
    if (rc != 0)
        return rc;
    rc = do_op(writer, batch, op);
    if (rc == 0)
        return hg_embedded_writer_commit(writer);
    hg_embedded_writer_abort(writer);
    return rc;
}

/* Can nothing in this group reach the quota? An operation adds at most the bytes that it brings,
   and a page on each level of the tree. */
static bool is_roomy(struct hg_embedded_writer *writer, uint64_t ops, uint64_t bytes)
{
    struct hg_embedded_usage usage;
    hg_embedded_usage(writer->db, writer->txn, &usage);
    uint64_t most = bytes + ops * (SPLITS_MAX * (uint64_t)writer->db->page_bytes);
    return usage.used_bytes < writer->db->max_bytes &&
           most < writer->db->max_bytes - usage.used_bytes;
}

/* Carries out the batches from `first` up to `end` in one transaction. */
static int run_group(struct hg_embedded_writer *writer, struct hg_embedded_batch *first,
                     struct hg_embedded_batch *end, uint64_t ops, uint64_t bytes)
{
    int rc = hg_embedded_writer_begin(writer, ops);
    if (rc != 0)
        return rc;
    writer->roomy = is_roomy(writer, ops, bytes);
    for (struct hg_embedded_batch *batch = first; batch != end; batch = batch->next)
        for (uint32_t i = 0; i < batch->count; i++) {
            rc = do_op(writer, batch, &batch->ops[i]);
            if (HG_UNLIKELY(rc != 0)) {
                hg_embedded_writer_abort(writer);
                return rc;
            }
        }
    return hg_embedded_writer_commit(writer);
}

/* Nobody has been answered yet: what can be done is done, and only the rest is refused. */
static void retry_one_by_one(struct hg_embedded_writer *writer, struct hg_embedded_batch *first,
                             struct hg_embedded_batch *end)
{
    hg_counter_add(&writer->counters->group_retries, 1);
    for (struct hg_embedded_batch *batch = first; batch != end; batch = batch->next) {
        hg_embedded_batch_drop_answers(batch);
        for (uint32_t i = 0; i < batch->count; i++) {
            int rc = run_alone(writer, batch, &batch->ops[i]);
            if (rc != 0)
                answer_failure(writer, batch, &batch->ops[i], rc);
        }
    }
}

void hg_embedded_writer_queue(struct hg_embedded_writer *writer, struct hg_embedded_batch *batch)
{
    batch->next = NULL;
    if (writer->first == NULL)
        writer->first = batch;
    else
        writer->last->next = batch;
    writer->last = batch;
}

void hg_embedded_writer_run(struct hg_embedded_writer *writer)
{
    while (writer->first != NULL) {
        struct hg_embedded_batch *first = writer->first, *end = first;
        uint64_t ops = 0, bytes = 0;
        do {
            ops += end->count;
            bytes += end->bytes;
            end = end->next;
        } while (end != NULL && ops + end->count <= HG_EMBEDDED_GROUP_OPS &&
                 bytes + end->bytes <= HG_EMBEDDED_GROUP_BYTES);
        writer->first = end;
        int rc = run_group(writer, first, end, ops, bytes);
        if (HG_UNLIKELY(rc == MDB_MAP_FULL) && writer->on_map_full != NULL &&
            writer->on_map_full(writer)) {
            for (struct hg_embedded_batch *batch = first; batch != end; batch = batch->next)
                hg_embedded_batch_drop_answers(batch);
            rc = run_group(writer, first, end, ops, bytes);
        }
        if (HG_UNLIKELY(rc != 0))
            retry_one_by_one(writer, first, end);
        hg_counter_add(&writer->counters->groups, 1);
        hg_counter_add(&writer->counters->group_ops, ops);
        while (first != end) {
            struct hg_embedded_batch *batch = first;
            first = batch->next;
            writer->done(writer, batch);
        }
    }
    if (writer->scratch_bytes > SCRATCH_KEEP) {
        free(writer->scratch);
        writer->scratch = NULL;
        writer->scratch_bytes = 0;
    }
}
