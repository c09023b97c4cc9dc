// relay_owner - the owner's half of relayed calls: guests, which it carries out for other workers
// SPDX-License-Identifier: BSD-3-Clause
#include "back/remote.h"

#include <string.h>

void hg_relay_batch_add(struct hg_relay_batch *batch, struct hg_relay_item *item)
{
    item->next = NULL;
    if (batch->first == NULL)
        batch->first = item;
    else
        batch->last->next = item;
    batch->last = item;
    batch->count++;
}

/* The port is closed: nobody waits for these. */
static void drop(struct hg_relay_port *home, struct hg_relay_batch *batch)
{
    for (struct hg_relay_item *item = batch->first; item != NULL; item = item->next) {
        hg_blob_free_loose(item->bytes);
        hg_blob_free_loose(item->value);
        hg_blob_free_loose(item->answer);
    }
    hg_relay_port_unref(home, batch->count);
}

static void post(struct hg_relay_batch *batch)
{
    struct hg_relay_batch now = *batch;
    memset(batch, 0, sizeof *batch);
    struct hg_relay_port *home = now.first->home;
    /* Home may take the items, and let go its port, before this returns. */
    hg_relay_port_ref(home, 1);
    if (!hg_relay_port_post(home, now.first))
        drop(home, &now);
    hg_relay_port_unref(home, 1);
}

void hg_relay_post_answers(struct hg_relay *relay)
{
    for (uint32_t w = 0; w < relay->workers; w++) {
        if (relay->answers[w].first != NULL)
            post(&relay->answers[w]);
    }
}

/* Brings the item home; its guest is with the store no more. */
static void give_back(struct hg_relay *relay, struct hg_relay_item *item)
{
    struct hg_relay_batch *batch = &relay->answers[item->home->worker];
    hg_list_remove(&item->guest_node);
    hg_blob_unref(item->held);
    item->held = NULL;
    item->settled = true;
    item->is_answer = true;
    if (batch->first != NULL && batch->first->home != item->home)
        post(batch); /* that worker's store was closed and opened */
    hg_relay_batch_add(batch, item);
    hg_hub_wake_later(&relay->remote->hub, &relay->post);
}

/* Copies what the answer points to. */
static void keep_value(struct hg_relay_item *item, struct hg_span value)
{
    uint8_t *at = item->room;
    item->result.value = HG_SPAN_NONE;
    if (value.len > sizeof item->room) {
        item->answer = hg_blob_new_loose(value.len);
        if (item->answer == NULL) {
            item->result =
                (struct hg_result){.fault = HG_FAULT_MEMORY, .server = item->result.server};
            return;
        }
        item->answer->len = value.len;
        at = item->answer->data;
    }
    if (value.len > 0)
        memmove(at, value.at, value.len); /* it may be a piece of what was asked */
    item->result.value = hg_span(at, value.len);
}

static void on_done(struct hg_call *call, const struct hg_result *result)
{
    struct hg_relay_item *item = HG_CONTAINER_OF(call, struct hg_relay_item, guest);
    item->result = *result;
    item->result.blob = NULL;
    item->result.until_turn_end = false;
    item->sent_us = call->sent_us;
    keep_value(item, result->value);
    give_back(&hg_remote_of(call->place.store)->relay, item);
}

/* Of the one that must come first, if it is still here. */
static void set_after(struct hg_relay_item *item)
{
    bool here = item->after != NULL && !item->after->settled;
    item->guest.after = here ? &item->after->guest : NULL;
}

static bool is_forgotten(const struct hg_relay_item *item)
{
    return atomic_load_explicit(&((struct hg_relay_item *)(uintptr_t)item)->forgotten,
                                memory_order_relaxed);
}

static void on_room(struct hg_call *call)
{
    struct hg_relay_item *item = HG_CONTAINER_OF(call, struct hg_relay_item, guest);
    struct hg_remote *remote = hg_remote_of(call->place.store);
    if (is_forgotten(item)) {
        hg_tie_end(call);
        give_back(&remote->relay, item);
        return;
    }
    set_after(item);
    call->now_us = remote->hub.loop->now_us;
    (void)hg_remote_submit(remote, item->server, call);
}

/* Gives the guest the tie that its call has at home. */
static bool tie_up(struct hg_remote *remote, struct hg_relay_item *item)
{
    if (!item->keep)
        return true;
    if (!hg_tie_keep(&remote->ties, &item->guest))
        return false;
    item->guest.place.tie->again = item->again;
    item->guest.place.tie->asking = item->asking;
    item->guest.place.tie->server = item->server;
    return true;
}

void hg_relay_accept(struct hg_relay *relay, struct hg_relay_item *item)
{
    struct hg_remote *remote = relay->remote;
    struct hg_call *guest = &item->guest;
    guest->place.store = &remote->base;
    guest->on_done = on_done;
    guest->on_room = on_room;
    guest->blob = item->held = item->value;
    if (item->value != NULL)
        hg_blob_adopt(remote->hub.blobs, item->value);
    item->value = NULL;
    item->settled = false;
    hg_list_append(&relay->guests, &item->guest_node);
    memset(&item->result, 0, sizeof item->result);
    if (is_forgotten(item))
        give_back(relay, item);
    else if (remote->closing || (item->server >= remote->count && !hg_remote_grow(remote)) ||
             item->server >= remote->count)
        (void)hg_remote_refuse(guest, HG_FAULT_DOWN, HG_SPAN_NONE, NULL);
    else if (!tie_up(remote, item))
        (void)hg_remote_refuse(guest, HG_FAULT_MEMORY, HG_SPAN_NONE, NULL);
    else {
        set_after(item);
        guest->now_us = remote->hub.loop->now_us;
        (void)hg_remote_submit(remote, item->server, guest);
    }
}

void hg_relay_sweep_guests(struct hg_relay *relay)
{
    uint32_t now = atomic_load_explicit(&relay->port->forgotten, memory_order_acquire);
    if (now == relay->forgotten)
        return;
    relay->forgotten = now;
    HG_LIST_EACH(node, &relay->guests)
    {
        struct hg_relay_item *item = HG_CONTAINER_OF(node, struct hg_relay_item, guest_node);
        if (!is_forgotten(item))
            continue;
        relay->remote->base.ops->cancel(&relay->remote->base, &item->guest);
        give_back(relay, item);
    }
}
