// relay_port - where one worker's store takes calls and answers from other workers' stores
// SPDX-License-Identifier: BSD-3-Clause
#include "back/relay_port.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "back/relay.h"
#include "back/tie.h"

#define ITEMS_PER_BLOCK 32

int hg_relay_ports_init(struct hg_relay_ports *ports, uint32_t workers)
{
    ports->list = calloc(workers, sizeof(struct hg_relay_port *));
    ports->gone = calloc(workers, sizeof *ports->gone);
    ports->count = workers;
    if (ports->list != NULL && ports->gone != NULL) {
        pthread_mutex_init(&ports->lock, NULL);
        return 0;
    }
    free(ports->list);
    free(ports->gone);
    ports->list = NULL;
    return -ENOMEM;
}

void hg_relay_ports_fini(struct hg_relay_ports *ports)
{
    if (ports->list == NULL)
        return;
    pthread_mutex_destroy(&ports->lock);
    free(ports->list);
    free(ports->gone);
}

static void on_poke(struct hg_letter *letter, void *receiver)
{
    struct hg_relay_port *port = HG_CONTAINER_OF(letter, struct hg_relay_port, letter);
    (void)receiver;
    /* Cleared first: who posts from now on pokes again. */
    atomic_store(&port->poked, false);
    if (port->relay != NULL)
        hg_relay_receive(port->relay);
    hg_relay_port_unref(port, 1);
}

struct hg_relay_port *hg_relay_port_new(struct hg_relay_ports *ports, uint32_t worker,
                                        struct hg_mailbox *mailbox, struct hg_relay *relay)
{
    struct hg_relay_port *port = calloc(1, sizeof *port);
    if (port == NULL)
        return NULL;
    atomic_init(&port->refs, 1);
    atomic_init(&port->open, true);
    port->worker = worker;
    port->mailbox = mailbox;
    port->letter.deliver = on_poke;
    port->relay = relay;
    hg_slab_init(&port->items, sizeof(struct hg_relay_item), ITEMS_PER_BLOCK);
    pthread_mutex_lock(&ports->lock);
    assert(ports->list[worker] == NULL);
    ports->list[worker] = port;
    ports->gone[worker] = false;
    pthread_mutex_unlock(&ports->lock);
    return port;
}

void hg_relay_port_close(struct hg_relay_ports *ports, struct hg_relay_port *port)
{
    pthread_mutex_lock(&ports->lock);
    ports->list[port->worker] = NULL;
    ports->gone[port->worker] = true;
    pthread_mutex_unlock(&ports->lock);
    atomic_store(&port->open, false);
    while (atomic_load(&port->users) > 0)
        sched_yield();
}

struct hg_relay_port *hg_relay_port_find(struct hg_relay_ports *ports, uint32_t worker,
                                         bool *ret_gone)
{
    pthread_mutex_lock(&ports->lock);
    struct hg_relay_port *port = ports->list[worker];
    if (port != NULL)
        hg_relay_port_ref(port, 1);
    *ret_gone = ports->gone[worker];
    pthread_mutex_unlock(&ports->lock);
    return port;
}

void hg_relay_port_ref(struct hg_relay_port *port, uint32_t n)
{
    atomic_fetch_add_explicit(&port->refs, n, memory_order_relaxed);
}

void hg_relay_port_unref(struct hg_relay_port *port, uint32_t n)
{
    uint32_t was = atomic_fetch_sub_explicit(&port->refs, n, memory_order_acq_rel);
    assert(was >= n);
    if (was > n)
        return;
    hg_slab_fini(&port->items);
    free(port);
}

bool hg_relay_port_post(struct hg_relay_port *port, struct hg_relay_item *first)
{
    /* In this order, which hg_relay_port_close has the other way round: one sees the other. */
    atomic_fetch_add(&port->users, 1);
    bool open = atomic_load(&port->open);
    if (open) {
        struct hg_relay_item *old = atomic_load_explicit(&port->inbox, memory_order_relaxed);
        do {
            first->batch_next = old;
        } while (!atomic_compare_exchange_weak_explicit(
            &port->inbox, &old, first, memory_order_release, memory_order_relaxed));
        if (!atomic_exchange(&port->poked, true)) {
            hg_relay_port_ref(port, 1);
            hg_mailbox_post(port->mailbox, &port->letter);
        }
    }
    atomic_fetch_sub(&port->users, 1);
    return open;
}

struct hg_relay_item *hg_relay_port_take(struct hg_relay_port *port)
{
    struct hg_relay_item *stack =
        atomic_exchange_explicit(&port->inbox, NULL, memory_order_acquire);
    struct hg_relay_item *queue = NULL;
    while (stack != NULL) {
        struct hg_relay_item *batch = stack;
        stack = batch->batch_next;
        batch->batch_next = queue;
        queue = batch;
    }
    return queue;
}

/* ---- items ---- */

static struct hg_span put(uint8_t **at, struct hg_span span)
{
    uint8_t *to = *at;
    if (span.len > 0)
        memcpy(to, span.at, span.len);
    *at += span.len;
    return hg_span(to, span.len);
}

/* Copies what the call points to: its value by itself if it is long. False: memory is out. */
static bool copy_bytes(struct hg_relay_item *item, const struct hg_call *call)
{
    struct hg_span to = call->range != NULL ? call->range->to : HG_SPAN_NONE;
    size_t names = call->prefix.len + call->key.len + to.len;
    uint8_t *at = item->room;
    bool apart = names + call->value.len > sizeof item->room && call->value.len > 0;
    if (names + (apart ? 0 : call->value.len) > sizeof item->room) {
        item->bytes = hg_blob_new_loose(names);
        if (item->bytes == NULL)
            return false;
        at = item->bytes->data;
    }
    struct hg_call *guest = &item->guest;
    guest->prefix = put(&at, call->prefix);
    guest->key = put(&at, call->key);
    if (call->range != NULL) {
        item->range = *call->range;
        item->range.prefix = guest->prefix;
        item->range.from = guest->key;
        item->range.to = put(&at, to);
        guest->range = &item->range;
    }
    if (!apart) {
        guest->value = put(&at, call->value);
        return true;
    }
    item->value = hg_blob_new_loose(call->value.len);
    if (item->value == NULL)
        return false;
    item->value->len = call->value.len;
    memcpy(item->value->data, call->value.at, call->value.len);
    guest->value = hg_span(item->value->data, call->value.len);
    return true;
}

void hg_relay_item_free_bytes(struct hg_relay_item *item)
{
    hg_blob_free_loose(item->bytes);
    hg_blob_free_loose(item->value);
    item->bytes = item->value = NULL;
}

struct hg_relay_item *hg_relay_item_new(struct hg_relay_port *home, uint32_t server,
                                        const struct hg_call *call)
{
    struct hg_relay_item *item = hg_slab_borrow(&home->items);
    if (item == NULL)
        return NULL;
    memset(item, 0, offsetof(struct hg_relay_item, room));
    hg_list_init(&item->node);
    hg_list_init(&item->guest_node);
    item->home = home;
    item->server = server;
    item->refs = 1;
    item->settled = true;
    item->keep = call->place.tie != NULL && call->place.tie->bytes != NULL;
    item->asking = item->keep && call->place.tie->asking;
    item->again = item->keep ? call->place.tie->again : 0;
    item->guest = (struct hg_call){.op = call->op,
                                   .tenant_id = call->tenant_id,
                                   .identity = call->identity,
                                   .row = call->row,
                                   .quarantine = call->quarantine,
                                   .ticket = call->ticket,
                                   .key_hash = call->key_hash,
                                   .item_flags = call->item_flags,
                                   .expiry = call->expiry,
                                   .cas = call->cas,
                                   .delta = call->delta,
                                   .initial = call->initial,
                                   .deadline_us = call->deadline_us};
    item->guest.place.made_cas = call->place.made_cas;
    if (copy_bytes(item, call))
        return item;
    hg_relay_item_free_bytes(item);
    hg_relay_item_unref(item);
    return NULL;
}

void hg_relay_item_unref(struct hg_relay_item *item)
{
    while (item != NULL && --item->refs == 0) {
        struct hg_relay_item *after = item->after;
        hg_slab_give_back(&item->home->items, item);
        item = after;
    }
}
