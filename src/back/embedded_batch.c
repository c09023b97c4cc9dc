// embedded_batch - a worker's writes of one turn on their way to the writer and back
// SPDX-License-Identifier: BSD-3-Clause
#include "back/embedded_batch.h"

#include <assert.h>
#include <stdlib.h>

struct hg_embedded_answer {
    struct hg_embedded_answer *next;
    uint8_t bytes[];
};

static void set_empty(struct hg_embedded_batch *batch)
{
    batch->next = NULL;
    batch->answers = NULL;
    batch->refusal = HG_SPAN_NONE;
    batch->sent_us = 0;
    batch->count = 0;
    batch->room_used = batch->answer_used = 0;
    batch->bytes = 0;
}

struct hg_embedded_batch *hg_embedded_batch_new(struct hg_embedded *home,
                                                struct hg_mailbox *home_box)
{
    struct hg_embedded_batch *batch = malloc(sizeof *batch);
    if (batch == NULL)
        return NULL;
    memset(&batch->letter, 0, sizeof batch->letter);
    hg_list_init(&batch->node);
    batch->home = home;
    batch->home_box = home_box;
    set_empty(batch);
    return batch;
}

void hg_embedded_batch_drop_answers(struct hg_embedded_batch *batch)
{
    while (batch->answers != NULL) {
        struct hg_embedded_answer *answer = batch->answers;
        batch->answers = answer->next;
        free(answer);
    }
    batch->answer_used = 0;
    batch->refusal = HG_SPAN_NONE;
}

void hg_embedded_batch_clear(struct hg_embedded_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        assert(batch->ops[i].call == NULL);
        if (batch->ops[i].blob != NULL)
            hg_blob_unref(batch->ops[i].blob);
    }
    hg_embedded_batch_drop_answers(batch);
    set_empty(batch);
}

void hg_embedded_batch_free(struct hg_embedded_batch *batch)
{
    if (batch == NULL)
        return;
    hg_embedded_batch_clear(batch);
    free(batch);
}

static size_t room_for(const struct hg_call *call)
{
    size_t value = call->value.len <= HG_EMBEDDED_VALUE_INLINE ? call->value.len : 0;
    return HG_EMBEDDED_KEY_HEAD + call->prefix.len + call->key.len + value;
}

bool hg_embedded_batch_fits(const struct hg_embedded_batch *batch, const struct hg_call *call)
{
    return batch->count < HG_EMBEDDED_BATCH_OPS &&
           (batch->count == 0 || HG_EMBEDDED_BATCH_ROOM - batch->room_used >= room_for(call));
}

/* Where the value lies until the answer: in the batch, in the call's blob, or in a new one. */
static enum hg_fault keep_value(struct hg_embedded_batch *batch, struct hg_embedded_op *op,
                                const struct hg_call *call, struct hg_blobs *blobs)
{
    op->blob = NULL;
    op->ask.value = call->value;
    if (call->value.len == 0)
        return HG_FAULT_NONE;
    if (call->value.len <= HG_EMBEDDED_VALUE_INLINE) {
        uint8_t *at = batch->room + batch->room_used;
        memcpy(at, call->value.at, call->value.len);
        batch->room_used += (uint32_t)call->value.len;
        op->ask.value.at = at;
    } else if (call->blob != NULL) {
        op->blob = hg_blob_ref(call->blob);
    } else {
        op->blob = hg_blob_borrow(blobs, call->value.len);
        if (op->blob == NULL)
            return HG_FAULT_MEMORY;
        memcpy(op->blob->data, call->value.at, call->value.len);
        op->blob->len = call->value.len;
        op->ask.value.at = op->blob->data;
    }
    return HG_FAULT_NONE;
}

enum hg_fault hg_embedded_batch_add(struct hg_embedded_batch *batch, struct hg_call *call,
                                    struct hg_blobs *blobs)
{
    assert(batch->count < HG_EMBEDDED_BATCH_OPS);
    struct hg_embedded_op *op = &batch->ops[batch->count];
    if (call->prefix.len + call->key.len > HG_EMBEDDED_KEY_BYTES - HG_EMBEDDED_KEY_HEAD)
        return HG_FAULT_KEY_TOO_LONG;
    uint8_t *key = batch->room + batch->room_used;
    op->key = key;
    op->key_len = (uint32_t)hg_embedded_key(key, call->tenant_id, call->prefix, call->key);
    batch->room_used += op->key_len;
    enum hg_fault fault = keep_value(batch, op, call, blobs);
    if (fault != HG_FAULT_NONE) {
        batch->room_used -= op->key_len;
        return fault;
    }
    op->ask.op = call->op;
    op->ask.flags = call->item_flags;
    op->ask.expiry = call->expiry;
    op->ask.cas = call->cas;
    op->ask.delta = call->delta;
    op->ask.initial = call->initial;
    op->tenant_id = call->tenant_id;
    op->call = call;
    op->stranded = 0;
    hg_list_init(&op->waiters);
    hg_list_init(&op->flushes);
    call->place.extra = batch;
    call->place.index = batch->count;
    batch->bytes += op->key_len + call->value.len;
    batch->count++;
    return HG_FAULT_NONE;
}

uint8_t *hg_embedded_batch_answer(struct hg_embedded_batch *batch, size_t bytes)
{
    if (bytes <= HG_EMBEDDED_ANSWER_ROOM - batch->answer_used) {
        uint8_t *at = batch->answer_room + batch->answer_used;
        batch->answer_used += (uint32_t)bytes;
        return at;
    }
    struct hg_embedded_answer *answer = malloc(sizeof *answer + bytes);
    if (answer == NULL)
        return NULL;
    answer->next = batch->answers;
    batch->answers = answer;
    return answer->bytes;
}
