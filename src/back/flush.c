// flush - one call that becomes one call for each server, and one answer
// SPDX-License-Identifier: BSD-3-Clause
#include "back/flush.h"

#include <stdlib.h>

struct part {
    struct hg_call call;
    struct flush *flush;
    uint32_t server;
};

struct flush {
    struct hg_call *call; /* NULL: its client has gone */
    struct hg_result worst;
    bool is_bad; /* `worst` is no success */
    struct hg_store *store;
    uint64_t stranded; /* ticket of the call, if that was cancelled */
    uint32_t count;
    uint32_t left; /* parts without an answer; one more while they are submitted */
    struct part parts[];
};

static void settle(struct flush *flush)
{
    if (--flush->left > 0)
        return;
    struct hg_call *call = flush->call;
    struct hg_result result = flush->worst;
    hg_store_strand(flush->store, HG_SERVER_NONE, flush->stranded, -1);
    free(flush);
    if (call == NULL)
        return;
    call->place.pending = false;
    call->place.extra = NULL;
    call->on_done(call, &result);
}

static void on_part_done(struct hg_call *call, const struct hg_result *result)
{
    struct part *part = HG_CONTAINER_OF(call, struct part, call);
    struct flush *flush = part->flush;
    if (!flush->is_bad && (result->fault != HG_FAULT_NONE || result->status != 0)) {
        flush->is_bad = true;
        flush->worst = *result;
        flush->worst.value = HG_SPAN_NONE; /* the text holds only now */
        flush->worst.blob = NULL;
    }
    settle(flush);
}

static void on_part_room(struct hg_call *call)
{
    struct part *part = HG_CONTAINER_OF(call, struct part, call);
    (void)hg_remote_submit(hg_remote_of(call->place.store), part->server, call);
}

enum hg_submit hg_flush_submit(struct hg_remote *remote, struct hg_call *call)
{
    uint32_t count = remote->count;
    struct flush *flush = calloc(1, sizeof *flush + count * sizeof flush->parts[0]);
    if (flush == NULL) {
        const struct hg_result result = {.fault = HG_FAULT_MEMORY};
        call->on_done(call, &result);
        return HG_SUBMIT_TAKEN;
    }
    flush->call = call;
    flush->store = &remote->base;
    flush->count = count;
    flush->left = count + 1;
    call->sent_us = remote->hub.loop->now_us;
    call->place.link = NULL;
    call->place.waiting = false;
    call->place.pending = true;
    call->place.extra = flush;
    for (uint32_t i = 0; i < count; i++) {
        struct part *part = &flush->parts[i];
        part->flush = flush;
        part->server = i;
        part->call = (struct hg_call){
            .op = HG_OP_FLUSH,
            .tenant_id = call->tenant_id,
            .identity = call->identity,
            .ticket = call->ticket,
            .expiry = call->expiry,
            .now_us = call->now_us,
            .deadline_us = call->deadline_us,
            .on_done = on_part_done,
            .on_room = on_part_room,
        };
        part->call.place.store = &remote->base;
        if (remote->kind->is_flushed != NULL && !remote->kind->is_flushed(remote, i))
            flush->left--;
        else
            (void)hg_remote_submit(remote, i, &part->call);
    }
    settle(flush);
    return HG_SUBMIT_TAKEN;
}

void hg_flush_cancel(struct hg_remote *remote, struct hg_call *call)
{
    if (!call->place.pending)
        return;
    struct flush *flush = call->place.extra;
    call->place.pending = false;
    call->place.extra = NULL;
    flush->call = NULL;
    flush->left++; /* it must outlive the loop */
    for (uint32_t i = 0; i < flush->count; i++) {
        struct hg_call *part = &flush->parts[i].call;
        if (!part->place.waiting)
            continue;
        hg_remote_cancel(&remote->base, part);
        flush->left--;
    }
    /* The parts that were sent are not given up: together they are one stranded slot. */
    if (flush->left > 1) {
        flush->stranded = call->ticket;
        hg_store_strand(flush->store, HG_SERVER_NONE, call->ticket, 1);
    }
    settle(flush);
}
