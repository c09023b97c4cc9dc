// embedded - the store inside the process: a worker's part of it
// SPDX-License-Identifier: BSD-3-Clause
//
// A write goes into the batch of this turn; at HG_STAGE_BACKENDS the batches of the turn are sent
// to the writer thread, or carried out here and now when this worker writes itself. Calls that
// cannot be taken yet wait in one of two places: without room, in `waiting`; behind a write that is
// on its way, in the list of that operation. Both are left through on_room, in order.
#include "back/embedded.h"

#include <errno.h>
#include <stdlib.h>

#include "back/embedded_shared.h"
#include "base/clock.h"
#include "proto/status.h"

#define PENDING_OPS_MAX   8192
#define PENDING_BYTES_MAX (32u << 20)
#define SPARE_BATCHES     8
#define TIMER_US          100000
#define WAIT_MS           1000

static struct hg_embedded *of_store(struct hg_store *store)
{
    return HG_CONTAINER_OF(store, struct hg_embedded, store);
}

static struct hg_embedded_batch *of_node(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_embedded_batch, node);
}

static bool has_room(const struct hg_embedded *embedded)
{
    return embedded->pending_ops < PENDING_OPS_MAX && embedded->pending_bytes < PENDING_BYTES_MAX;
}

static void arm_timer(struct hg_embedded *embedded)
{
    if (!embedded->timer_armed)
        embedded->timer_armed = hg_loop_timer_arm(&embedded->timer, TIMER_US) == 0;
}

static void answer_fault(struct hg_embedded *embedded, struct hg_call *call, enum hg_fault fault)
{
    struct hg_result result = {
        .status = HG_STATUS_EINTERNAL, .fault = fault, .server = embedded->shared->where};
    call->place.pending = call->place.waiting = false;
    call->on_done(call, &result);
}

/* The call waits at the end of the list that `before` is in or heads. */
static enum hg_submit wait_before(struct hg_list *before, struct hg_call *call)
{
    hg_list_put_before(before, &call->place.node);
    call->place.waiting = true;
    return HG_SUBMIT_WAIT;
}

/* Takes the first call out of a list of waiting ones, or NULL. */
static struct hg_call *pop_waiting(struct hg_list *list)
{
    struct hg_list *node = hg_list_first(list);
    if (node == NULL)
        return NULL;
    hg_list_remove(node);
    struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
    call->place.waiting = false;
    return call;
}

/* Lets calls that waited for room try again while there is some. */
static void wake(struct hg_embedded *embedded)
{
    struct hg_list todo;
    struct hg_call *call;
    if (hg_list_empty(&embedded->waiting))
        return;
    hg_list_init(&todo);
    hg_list_splice(&todo, &embedded->waiting);
    while (has_room(embedded) && (call = pop_waiting(&todo)) != NULL)
        call->on_room(call);
    /* Those that were not reached come before those that were, and wait again. */
    hg_list_splice(&todo, &embedded->waiting);
    hg_list_splice(&embedded->waiting, &todo);
}

static struct hg_embedded_op *pending_op(const struct hg_call *call)
{
    struct hg_embedded_batch *batch = call->place.extra;
    return &batch->ops[call->place.index];
}

/* The operation's call was taken out, and the writer still owes an answer, or has given it. */
static void strand_op(struct hg_embedded *embedded, struct hg_embedded_op *op, uint64_t ticket)
{
    uint64_t was = op->stranded;
    op->stranded = ticket;
    hg_store_strand(&embedded->store, 0, ticket, 1);
    hg_store_strand(&embedded->store, 0, was, -1);
}

/* Answers the call of an operation, if it still has one, then lets those behind it go on. `owed`:
   the writer's answer is still to come. */
static void answer_op(struct hg_embedded *embedded, struct hg_embedded_op *op,
                      const struct hg_result *result, bool owed)
{
    struct hg_call *call = op->call;
    hg_list_remove(&op->flushes);
    if (!owed)
        strand_op(embedded, op, 0);
    if (call != NULL) {
        op->call = NULL;
        call->place.pending = false;
        if (owed)
            strand_op(embedded, op, call->ticket);
        call->on_done(call, result);
    }
    while ((call = pop_waiting(&op->waiters)) != NULL) {
        if (embedded->closing)
            answer_fault(embedded, call, HG_FAULT_LOST);
        else
            call->on_room(call);
    }
}

/* Answers every call of a batch that was not carried out, or is not yet. */
static void fail_batch(struct hg_embedded *embedded, struct hg_embedded_batch *batch,
                       enum hg_fault fault, bool owed)
{
    struct hg_result result = {
        .status = HG_STATUS_EINTERNAL, .fault = fault, .server = embedded->shared->where};
    for (uint32_t i = 0; i < batch->count; i++)
        answer_op(embedded, &batch->ops[i], &result, owed);
}

static void keep_batch(struct hg_embedded *embedded, struct hg_embedded_batch *batch)
{
    embedded->pending_ops -= batch->count;
    embedded->pending_bytes -= batch->bytes;
    hg_list_remove(&batch->node);
    if (embedded->spare_count >= SPARE_BATCHES) {
        hg_embedded_batch_free(batch);
        return;
    }
    hg_embedded_batch_clear(batch);
    hg_list_append(&embedded->spare_batches, &batch->node);
    embedded->spare_count++;
}

void hg_embedded_on_batch(struct hg_letter *letter, void *receiver)
{
    (void)receiver;
    struct hg_embedded_batch *batch = HG_CONTAINER_OF(letter, struct hg_embedded_batch, letter);
    struct hg_embedded *embedded = batch->home;
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->ops[i].result.server = embedded->shared->where;
        answer_op(embedded, &batch->ops[i], &batch->ops[i].result, false);
    }
    keep_batch(embedded, batch);
    if (!embedded->closing)
        wake(embedded);
}

/* The batch that takes the next call, or NULL when memory is out. */
static struct hg_embedded_batch *open_batch(struct hg_embedded *embedded,
                                            const struct hg_call *call)
{
    struct hg_embedded_batch *batch = embedded->current;
    if (HG_LIKELY(batch != NULL && hg_embedded_batch_fits(batch, call)))
        return batch;
    if (batch != NULL)
        hg_list_append(&embedded->full, &batch->node);
    embedded->current = NULL;
    struct hg_list *node = hg_list_first(&embedded->spare_batches);
    if (node != NULL) {
        hg_list_remove(node);
        embedded->spare_count--;
        embedded->current = of_node(node);
    } else {
        embedded->current = hg_embedded_batch_new(embedded, &embedded->box);
    }
    return embedded->current;
}

static enum hg_submit write_item(struct hg_embedded *embedded, struct hg_call *call)
{
    if (!has_room(embedded)) {
        arm_timer(embedded);
        return wait_before(&embedded->waiting, call);
    }
    struct hg_embedded_batch *batch = open_batch(embedded, call);
    enum hg_fault fault = HG_FAULT_MEMORY;
    if (batch != NULL) {
        size_t bytes = batch->bytes;
        fault = hg_embedded_batch_add(batch, call, &embedded->blobs);
        embedded->pending_bytes += batch->bytes - bytes;
    }
    if (HG_UNLIKELY(fault != HG_FAULT_NONE)) {
        answer_fault(embedded, call, fault);
        return HG_SUBMIT_TAKEN;
    }
    embedded->pending_ops++;
    call->place.pending = true;
    call->sent_us = call->now_us;
    if (call->op == HG_OP_FLUSH)
        hg_list_append(&embedded->flushes, &batch->ops[batch->count - 1].flushes);
    return HG_SUBMIT_TAKEN;
}

/* The newest flush of the call's tenant that is on its way, or NULL. */
static struct hg_embedded_op *pending_flush(struct hg_embedded *embedded,
                                            const struct hg_call *call)
{
    struct hg_embedded_op *found = NULL;
    HG_LIST_EACH(node, &embedded->flushes)
    {
        struct hg_embedded_op *op = HG_CONTAINER_OF(node, struct hg_embedded_op, flushes);
        if (op->tenant_id == call->tenant_id)
            found = op;
    }
    return found;
}

static enum hg_submit read_item(struct hg_embedded *embedded, struct hg_call *call,
                                const struct hg_call *after)
{
    struct hg_embedded_op *op = NULL;
    if (after != NULL && after->place.pending)
        op = pending_op(after);
    else if (HG_UNLIKELY(!hg_list_empty(&embedded->flushes)))
        op = pending_flush(embedded, call);
    if (op != NULL) {
        hg_counter_add(&embedded->counters.reads_waited, 1);
        return wait_before(&op->waiters, call);
    }
    return HG_LIKELY(hg_embedded_read(embedded, call)) ? HG_SUBMIT_TAKEN
                                                       : wait_before(&embedded->waiting, call);
}

static enum hg_submit embedded_submit(struct hg_store *store, struct hg_call *call)
{
    struct hg_embedded *embedded = of_store(store);
    call->place.store = store;
    call->place.link = NULL;
    call->place.pending = call->place.waiting = false;
    if (HG_UNLIKELY(embedded->closing)) {
        answer_fault(embedded, call, HG_FAULT_LOST);
        return HG_SUBMIT_TAKEN;
    }
    struct hg_call *after = call->after;
    if (after != NULL && after->place.store != store)
        after = NULL;
    /* Straight behind it, wherever it waits. */
    if (after != NULL && after->place.waiting)
        return wait_before(after->place.node.next, call);
    return call->op == HG_OP_GET ? read_item(embedded, call, after) : write_item(embedded, call);
}

static void embedded_cancel(struct hg_store *store, struct hg_call *call)
{
    if (call->place.waiting) {
        hg_list_remove(&call->place.node);
    } else if (call->place.pending) {
        struct hg_embedded_op *op = pending_op(call);
        op->call = NULL;
        strand_op(of_store(store), op, call->ticket);
    }
    call->place.waiting = call->place.pending = false;
}

static const char *embedded_where(struct hg_store *store, struct hg_span prefix, struct hg_span key)
{
    (void)prefix;
    (void)key;
    return of_store(store)->shared->where;
}

static void embedded_drain(struct hg_store *store)
{
    /* There is no connection to be closed: what is on its way comes back by itself. */
    (void)store;
}

static bool embedded_drained(struct hg_store *store)
{
    struct hg_embedded *embedded = of_store(store);
    return embedded->pending_ops == 0 && hg_list_empty(&embedded->waiting);
}

/* The end of the turn: its batches go to the writer. */
static void on_send(struct hg_hook *hook)
{
    struct hg_embedded *embedded = HG_CONTAINER_OF(hook, struct hg_embedded, send_hook);
    struct hg_embedded_shared *shared = embedded->shared;
    struct hg_list *node;
    if (embedded->current == NULL)
        return;
    hg_list_append(&embedded->full, &embedded->current->node);
    embedded->current = NULL;
    uint64_t now_us = shared->inline_writer ? 0 : hg_now_us();
    while ((node = hg_list_first(&embedded->full)) != NULL) {
        struct hg_embedded_batch *batch = of_node(node);
        hg_list_remove(node);
        hg_list_append(&embedded->sent, node);
        batch->sent_us = now_us;
        if (shared->inline_writer) {
            hg_embedded_writer_queue(&shared->writer, batch);
        } else {
            batch->letter.deliver = hg_embedded_on_write;
            hg_mailbox_post(&shared->box, &batch->letter);
        }
    }
    if (!shared->inline_writer) {
        arm_timer(embedded);
        return;
    }
    hg_embedded_writer_run(&shared->writer);
    /* Answers may have made clients ask for more. */
    if (embedded->current != NULL)
        hg_loop_again(embedded->loop);
}

static void on_cleanup(struct hg_hook *hook)
{
    struct hg_embedded *embedded = HG_CONTAINER_OF(hook, struct hg_embedded, cleanup_hook);
    hg_embedded_readers_reset(embedded);
    if (HG_UNLIKELY(!hg_list_empty(&embedded->waiting)) && has_room(embedded)) {
        wake(embedded);
        hg_loop_again(embedded->loop);
    }
}

/* Nothing waits for ever, even if the disk does not answer. */
static void on_timer(struct hg_timer *timer)
{
    struct hg_embedded *embedded = HG_CONTAINER_OF(timer, struct hg_embedded, timer);
    uint64_t now_us = hg_now_us();
    embedded->timer_armed = false;
    HG_LIST_EACH(node, &embedded->sent)
    {
        struct hg_embedded_batch *batch = of_node(node);
        if (now_us - batch->sent_us < embedded->shared->timeout_us)
            break;
        for (uint32_t i = 0; i < batch->count; i++)
            if (batch->ops[i].call != NULL)
                hg_counter_add(&embedded->counters.timeouts, 1);
        fail_batch(embedded, batch, HG_FAULT_TIMEOUT, true);
    }
    struct hg_list late;
    struct hg_call *call;
    hg_list_init(&late);
    HG_LIST_EACH(node, &embedded->waiting)
    {
        call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        if (call->deadline_us <= now_us) {
            hg_list_remove(node);
            hg_list_append(&late, node);
        }
    }
    while ((call = pop_waiting(&late)) != NULL)
        answer_fault(embedded, call, HG_FAULT_QUEUE_TIMEOUT);
    if (!hg_list_empty(&embedded->sent) || !hg_list_empty(&embedded->waiting))
        arm_timer(embedded);
}

static void add_past(struct hg_embedded *embedded)
{
    struct hg_embedded_shared *shared = embedded->shared;
    pthread_mutex_lock(&shared->lock);
    hg_list_remove(&embedded->node);
#define HG_EMBEDDED_STAT(name, kind, help)                                                         \
    hg_counter_add(&shared->past.name, hg_counter_get(&embedded->counters.name));
#include "back/embedded_stats.def"
#undef HG_EMBEDDED_STAT
    pthread_mutex_unlock(&shared->lock);
}

static void free_batches(struct hg_list *list)
{
    struct hg_list *node;
    while ((node = hg_list_first(list)) != NULL) {
        hg_list_remove(node);
        hg_embedded_batch_free(of_node(node));
    }
}

static void release(struct hg_embedded *embedded)
{
    free_batches(&embedded->full);
    free_batches(&embedded->spare_batches);
    hg_embedded_readers_fini(embedded);
    hg_blobs_fini(&embedded->blobs);
    free(embedded);
}

static void embedded_free(struct hg_store *store)
{
    struct hg_embedded *embedded = of_store(store);
    struct hg_call *call;
    embedded->closing = true;
    while ((call = pop_waiting(&embedded->waiting)) != NULL)
        answer_fault(embedded, call, HG_FAULT_LOST);
    if (embedded->current != NULL)
        hg_list_append(&embedded->full, &embedded->current->node);
    HG_LIST_EACH(node, &embedded->sent)
    {
        fail_batch(embedded, of_node(node), HG_FAULT_LOST, false);
    }
    HG_LIST_EACH(node, &embedded->full)
    {
        fail_batch(embedded, of_node(node), HG_FAULT_LOST, false);
    }
    /* The writer has them, and gives them back as soon as its disk does. */
    while (!hg_list_empty(&embedded->sent))
        hg_mailbox_wait(&embedded->box, WAIT_MS);
    hg_loop_timer_fini(&embedded->timer);
    hg_loop_unhook(&embedded->send_hook);
    hg_loop_unhook(&embedded->cleanup_hook);
    hg_mailbox_fini(&embedded->box);
    if (embedded->shared->inline_writer)
        hg_embedded_sweeper_stop(embedded->shared);
    add_past(embedded);
    release(embedded);
}

static const struct hg_store_ops embedded_ops = {
    .kind = "embedded",
    .submit = embedded_submit,
    .cancel = embedded_cancel,
    .range = hg_embedded_range,
    .cancel_range = hg_embedded_cancel_range,
    .where = embedded_where,
    .drain = embedded_drain,
    .drained = embedded_drained,
    .free = embedded_free,
};

/* Enters the store among the workers'; -EBUSY when the writer has its worker already. */
static int enter(struct hg_embedded *embedded)
{
    struct hg_embedded_shared *shared = embedded->shared;
    pthread_mutex_lock(&shared->lock);
    bool busy = shared->inline_writer && !hg_list_empty(&shared->stores);
    if (!busy)
        hg_list_append(&shared->stores, &embedded->node);
    pthread_mutex_unlock(&shared->lock);
    if (busy || !shared->inline_writer)
        return busy ? -EBUSY : 0;
    int rc = hg_embedded_sweeper_start(shared, embedded->loop);
    if (rc != 0)
        add_past(embedded);
    return rc;
}

static void init(struct hg_embedded *embedded, struct hg_embedded_shared *shared,
                 struct hg_loop *loop)
{
    embedded->store.ops = &embedded_ops;
    embedded->shared = shared;
    embedded->loop = loop;
    hg_list_init(&embedded->node);
    hg_list_init(&embedded->full);
    hg_list_init(&embedded->sent);
    hg_list_init(&embedded->spare_batches);
    hg_list_init(&embedded->waiting);
    hg_list_init(&embedded->flushes);
    hg_blobs_init(&embedded->blobs);
}

int hg_embedded_store_new(struct hg_embedded_shared *shared, struct hg_loop *loop,
                          struct hg_store **ret)
{
    struct hg_embedded *embedded = calloc(1, sizeof *embedded);
    if (embedded == NULL)
        return -ENOMEM;
    init(embedded, shared, loop);
    int rc = hg_embedded_readers_init(embedded);
    if (rc != 0) {
        release(embedded);
        return rc > 0 ? -rc : -EIO;
    }
    rc = hg_loop_timer_init(loop, &embedded->timer, 0, on_timer);
    if (rc == 0)
        rc = hg_mailbox_init(&embedded->box, loop, embedded);
    if (rc == 0) {
        rc = enter(embedded);
        if (rc != 0)
            hg_mailbox_fini(&embedded->box);
    }
    if (rc != 0) {
        release(embedded);
        return rc;
    }
    hg_loop_hook(loop, HG_STAGE_BACKENDS, &embedded->send_hook, on_send);
    hg_loop_hook(loop, HG_STAGE_CLEANUP, &embedded->cleanup_hook, on_cleanup);
    *ret = &embedded->store;
    return 0;
}
