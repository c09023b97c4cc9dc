// relay - calls that another worker carries out, since a server's connections are too few to share
// SPDX-License-Identifier: BSD-3-Clause
#include "back/remote.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_US  100000 /* between two looks for a port that is not there */
#define GRACE_US 20000  /* two ticks: the owner may say first that a call is over */

/* ---- answers ---- */

static struct hg_relay_lane *lane_of(struct hg_relay *relay, const struct hg_relay_item *item)
{
    return &relay->lanes[item->server];
}

void hg_relay_wake_later(struct hg_relay_lane *lane)
{
    if (lane->waiting_count > 0 && lane->away < HG_RELAY_AWAY)
        hg_hub_wake_later(&lane->relay->remote->hub, &lane->wake);
}

/* The item's call is its client's again. */
static struct hg_call *take_call(struct hg_relay_item *item)
{
    struct hg_call *call = item->call;
    item->call = NULL;
    call->place.pending = call->place.relayed = false;
    call->place.extra = NULL;
    hg_tie_end(call);
    return call;
}

/* The owner still has the item: it need not do anything for it any more. */
static void forget(struct hg_relay *relay, struct hg_relay_item *item)
{
    struct hg_relay_port *owner = relay->ports[item->owner];
    atomic_store_explicit(&item->forgotten, true, memory_order_relaxed);
    if (owner != NULL)
        atomic_fetch_add_explicit(&owner->forgotten, 1, memory_order_release);
}

static void answer(struct hg_relay_item *item, enum hg_fault fault, const char *server)
{
    const struct hg_result result = {.fault = fault, .server = server};
    struct hg_call *call = take_call(item);
    call->on_done(call, &result);
}

void hg_relay_complete(struct hg_relay *relay, struct hg_relay_item *item)
{
    struct hg_relay_lane *lane = lane_of(relay, item);
    struct hg_blob *blob = item->answer;
    hg_list_remove(&item->node);
    lane->away--;
    hg_relay_item_free_bytes(item);
    if (blob != NULL)
        hg_blob_adopt(relay->remote->hub.blobs, blob);
    if (item->call != NULL) {
        struct hg_call *call = take_call(item);
        if (item->sent_us != 0)
            call->sent_us = item->sent_us;
        item->result.blob = blob;
        call->on_done(call, &item->result);
    }
    hg_blob_unref(blob);
    item->answer = NULL;
    hg_relay_item_unref(item);
    hg_relay_wake_later(lane);
}

void hg_relay_receive(struct hg_relay *relay)
{
    struct hg_relay_item *batch = hg_relay_port_take(relay->port), *next_batch, *item, *next;
    for (; batch != NULL; batch = next_batch) {
        next_batch = batch->batch_next;
        for (item = batch; item != NULL; item = next) {
            next = item->next;
            if (!item->is_answer) {
                hg_relay_accept(relay, item);
                continue;
            }
            hg_relay_complete(relay, item);
            hg_relay_port_unref(relay->port, 1);
        }
    }
}

/* ---- posting ---- */

/* The port of a worker, if it is there. */
static struct hg_relay_port *port_of(struct hg_relay *relay, uint32_t worker, bool *ret_gone)
{
    struct hg_relay_port *port = relay->ports[worker];
    *ret_gone = false;
    if (port != NULL && atomic_load_explicit(&port->open, memory_order_relaxed))
        return port;
    if (port != NULL)
        hg_relay_port_unref(port, 1);
    relay->ports[worker] =
        hg_relay_port_find(&relay->remote->shared->relay_ports, worker, ret_gone);
    return relay->ports[worker];
}

static void post_asks(struct hg_relay *relay, uint32_t worker)
{
    struct hg_relay_batch batch = relay->asks[worker];
    struct hg_relay_port *owner = relay->ports[worker];
    memset(&relay->asks[worker], 0, sizeof batch);
    hg_relay_port_ref(relay->port, batch.count);
    if (owner != NULL && hg_relay_port_post(owner, batch.first))
        return;
    struct hg_relay_item *item = batch.first, *next;
    for (; item != NULL; item = next) {
        next = item->next;
        item->result = (struct hg_result){
            .fault = HG_FAULT_DOWN, .server = relay->remote->shared->servers[item->server].address};
        hg_relay_complete(relay, item);
        hg_relay_port_unref(relay->port, 1);
    }
}

static void on_post(struct hg_hub_wake *wake)
{
    struct hg_relay *relay = HG_CONTAINER_OF(wake, struct hg_relay, post);
    for (uint32_t w = 0; w < relay->workers; w++) {
        if (relay->asks[w].first != NULL)
            post_asks(relay, w);
    }
    hg_relay_post_answers(relay);
}

static enum hg_submit post_later(struct hg_relay_lane *lane, struct hg_call *call,
                                 struct hg_relay_item *after)
{
    struct hg_relay *relay = lane->relay;
    const struct hg_pool_conf *conf = &relay->remote->pool_conf;
    uint64_t now_us = relay->remote->hub.loop->now_us;
    struct hg_relay_item *item = hg_relay_item_new(relay->port, lane->server, call);
    if (item == NULL)
        return hg_remote_refuse(call, HG_FAULT_MEMORY, HG_SPAN_NONE, NULL);
    if (after != NULL) {
        item->after = after;
        after->refs++;
    }
    item->call = call;
    item->owner = lane->owner;
    item->expire_us = now_us + conf->queue_timeout_us + conf->link.timeout_us;
    if (call->deadline_us != 0 && call->deadline_us < item->expire_us)
        item->expire_us = call->deadline_us;
    item->expire_us += GRACE_US;
    if (item->expire_us < lane->expire_us)
        lane->expire_us = item->expire_us;
    call->place.link = NULL;
    call->place.index = lane->server;
    call->place.pending = call->place.relayed = true;
    call->place.extra = item;
    call->sent_us = now_us;
    hg_list_append(&lane->items, &item->node);
    lane->away++;
    hg_upstream_count(&relay->remote->shared->servers[lane->server].counters[relay->worker],
                      HG_UPSTREAM_RELAYED, 1);
    hg_relay_batch_add(&relay->asks[lane->owner], item);
    hg_hub_wake_later(&relay->remote->hub, &relay->post);
    return HG_SUBMIT_TAKEN;
}

/* ---- waiting ---- */

/* When a call that waits since then is over. */
static uint64_t end_of(const struct hg_relay_lane *lane, const struct hg_call *call,
                       uint64_t since_us)
{
    uint64_t end_us = since_us + lane->relay->remote->pool_conf.queue_timeout_us;
    return call->deadline_us != 0 && call->deadline_us < end_us ? call->deadline_us : end_us;
}

static enum hg_submit refuse(struct hg_relay_lane *lane, struct hg_call *call, enum hg_fault fault,
                             enum hg_upstream_stat stat)
{
    struct hg_remote *remote = lane->relay->remote;
    const struct hg_server *server = &remote->shared->servers[lane->server];
    hg_upstream_count(&server->counters[remote->worker], stat, 1);
    return hg_remote_refuse(call, fault, HG_SPAN_NONE, server->address);
}

static enum hg_submit wait_in_line(struct hg_relay_lane *lane, struct hg_call *call)
{
    const struct hg_remote *remote = lane->relay->remote;
    bool again = call == lane->waking;
    uint64_t now_us = remote->hub.loop->now_us;
    uint64_t since_us = again ? lane->waking_since_us : now_us;
    uint64_t end_us = end_of(lane, call, since_us);
    if (!again && lane->waiting_count >= remote->pool_conf.queue_max)
        return refuse(lane, call, HG_FAULT_QUEUE_FULL, HG_UPSTREAM_QUEUE_FULL);
    if (end_us <= now_us)
        return refuse(lane, call, HG_FAULT_QUEUE_TIMEOUT, HG_UPSTREAM_QUEUE_TIMEOUTS);
    if (end_us < lane->waiting_end_us)
        lane->waiting_end_us = end_us;
    call->place.link = NULL;
    call->place.index = lane->server;
    call->place.pending = false;
    call->place.waiting = call->place.relayed = true;
    call->place.since_us = since_us;
    call->place.extra = NULL;
    hg_list_init(&call->place.node);
    if (again)
        hg_list_prepend(&lane->waiting, &call->place.node);
    else
        hg_list_append(&lane->waiting, &call->place.node);
    lane->waiting_count++;
    hg_relay_wake_later(lane);
    return HG_SUBMIT_WAIT;
}

static void leave_line(struct hg_relay_lane *lane, struct hg_call *call)
{
    hg_list_remove(&call->place.node);
    call->place.waiting = call->place.relayed = false;
    lane->waiting_count--;
}

/* Lets those that wait try again, oldest first, as long as there is room. */
static void on_wake(struct hg_hub_wake *wake)
{
    struct hg_relay_lane *lane = HG_CONTAINER_OF(wake, struct hg_relay_lane, wake);
    bool gone;
    struct hg_list *node;
    if (hg_relay_is_away(lane->relay, lane->server) &&
        port_of(lane->relay, lane->owner, &gone) == NULL && !gone)
        return; /* the tick looks for it */
    uint32_t budget = HG_RELAY_AWAY;
    while (budget-- > 0 && lane->away < HG_RELAY_AWAY &&
           (node = hg_list_first(&lane->waiting)) != NULL) {
        struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        leave_line(lane, call);
        lane->waking = call;
        lane->waking_since_us = call->place.since_us;
        lane->burst = HG_POOL_BURST;
        call->on_room(call);
        lane->burst = 0;
        lane->waking = NULL;
    }
}

/* May it go before those that wait? As in a pool's line. */
static bool may_pass(struct hg_relay_lane *lane, const struct hg_call *call)
{
    if (lane->waiting_count == 0 || call == lane->waking)
        return true;
    if (lane->burst == 0)
        return false;
    lane->burst--;
    return true;
}

enum hg_submit hg_relay_submit(struct hg_relay *relay, uint32_t server, struct hg_call *call)
{
    struct hg_remote *remote = relay->remote;
    struct hg_relay_lane *lane = &relay->lanes[server];
    const struct hg_call *after = call->after;
    struct hg_relay_item *earlier = NULL;
    bool behind = false, gone = false;
    call->place.waiting = false;
    if (remote->closing || !hg_server_may_send(&remote->shared->servers[server]))
        return refuse(lane, call, HG_FAULT_DOWN, HG_UPSTREAM_REFUSED_DOWN);
    if (HG_UNLIKELY(after != NULL && after->place.store == call->place.store)) {
        behind = after->place.relayed && after->place.waiting;
        bool away = hg_relay_is_away(relay, server);
        if (away && after->place.relayed && after->place.pending &&
            ((struct hg_relay_item *)after->place.extra)->owner == lane->owner) {
            earlier = after->place.extra;
        } else if (!(behind && away) && (after->place.pending || after->place.waiting)) {
            /* On a connection of our own, from before there was an owner, or with another one. */
            if (hg_tie_behind(&remote->ties, call, call->after))
                return HG_SUBMIT_WAIT;
            return hg_remote_refuse(call, HG_FAULT_MEMORY, HG_SPAN_NONE, NULL);
        }
        if (earlier != NULL && earlier->server != server)
            earlier = NULL;
    }
    if (behind || lane->away >= HG_RELAY_AWAY || !may_pass(lane, call))
        return wait_in_line(lane, call);
    if (HG_UNLIKELY(port_of(relay, lane->owner, &gone) == NULL))
        return gone ? refuse(lane, call, HG_FAULT_DOWN, HG_UPSTREAM_REFUSED_DOWN)
                    : wait_in_line(lane, call);
    return post_later(lane, call, earlier);
}

void hg_relay_cancel(struct hg_relay *relay, struct hg_call *call)
{
    if (call->place.waiting) {
        leave_line(&relay->lanes[call->place.index], call);
        hg_tie_end(call);
        return;
    }
    struct hg_relay_item *item = call->place.extra;
    (void)take_call(item);
    forget(relay, item);
}

/* ---- ticks ---- */

static void expire_items(struct hg_relay_lane *lane, uint64_t now_us)
{
    struct hg_list old, *node;
    const struct hg_remote *remote = lane->relay->remote;
    const struct hg_server *server = &remote->shared->servers[lane->server];
    hg_list_init(&old);
    hg_list_splice(&old, &lane->items);
    lane->expire_us = UINT64_MAX;
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_relay_item *item = HG_CONTAINER_OF(node, struct hg_relay_item, node);
        hg_list_remove(node);
        hg_list_append(&lane->items, node);
        if (item->call == NULL)
            continue;
        if (item->expire_us > now_us) {
            if (item->expire_us < lane->expire_us)
                lane->expire_us = item->expire_us;
            continue;
        }
        hg_upstream_count(&server->counters[remote->worker], HG_UPSTREAM_TIMEOUTS, 1);
        forget(lane->relay, item);
        answer(item, HG_FAULT_TIMEOUT, server->address);
    }
}

static void expire_waiting(struct hg_relay_lane *lane, uint64_t now_us)
{
    struct hg_list old, kept, *node;
    hg_list_init(&old);
    hg_list_init(&kept);
    hg_list_splice(&old, &lane->waiting);
    lane->waiting_end_us = UINT64_MAX;
    uint64_t next_us = UINT64_MAX;
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        uint64_t end_us = end_of(lane, call, call->place.since_us);
        if (end_us > now_us) {
            next_us = end_us < next_us ? end_us : next_us;
            hg_list_remove(node);
            hg_list_append(&kept, node);
            continue;
        }
        leave_line(lane, call);
        (void)refuse(lane, call, HG_FAULT_QUEUE_TIMEOUT, HG_UPSTREAM_QUEUE_TIMEOUTS);
    }
    hg_list_splice(&kept, &lane->waiting);
    hg_list_splice(&lane->waiting, &kept);
    if (next_us < lane->waiting_end_us)
        lane->waiting_end_us = next_us;
}

/* The owner of a lane should be there, whether or not anybody asks: it is the one who finds out
   that a server is back. */
static bool look_for_owner(struct hg_relay_lane *lane, bool summon)
{
    struct hg_relay *relay = lane->relay;
    struct hg_relay_ports *ports = &relay->remote->shared->relay_ports;
    bool gone;
    if (port_of(relay, lane->owner, &gone) != NULL) {
        hg_relay_wake_later(lane);
        return true;
    }
    if (gone)
        hg_relay_wake_later(lane); /* to be refused */
    else if (summon && ports->summon != NULL && !relay->remote->draining)
        ports->summon(ports->summon_arg, lane->owner);
    return gone || ports->summon == NULL || relay->remote->draining;
}

bool hg_relay_tick(struct hg_relay *relay, uint64_t now_us)
{
    if (relay->port == NULL)
        return false;
    for (uint32_t i = 0; i < relay->lane_count; i++)
        hg_relay_claim(&relay->lanes[i], now_us);
    hg_relay_look(relay);
    hg_relay_sweep_guests(relay);
    bool busy = !hg_list_empty(&relay->guests);
    bool summon = now_us - relay->looked_us >= LOOK_US;
    for (uint32_t i = 0; i < relay->lane_count; i++) {
        struct hg_relay_lane *lane = &relay->lanes[i];
        bool away = hg_relay_is_away(relay, i);
        if (!away && lane->away == 0 && lane->waiting_count == 0)
            continue;
        if (now_us >= lane->expire_us)
            expire_items(lane, now_us);
        if (now_us >= lane->waiting_end_us)
            expire_waiting(lane, now_us);
        if (lane->retiring)
            hg_relay_retire(lane);
        if (!away)
            hg_relay_wake_later(lane);
        bool found = !away || look_for_owner(lane, summon);
        busy |= !found || lane->away > 0 || lane->waiting_count > 0 || lane->retiring;
    }
    if (summon)
        relay->looked_us = now_us;
    return busy;
}

bool hg_relay_is_idle(const struct hg_relay *relay)
{
    if (relay->port == NULL)
        return true;
    for (uint32_t i = 0; i < relay->lane_count; i++) {
        if (relay->lanes[i].away > 0 || relay->lanes[i].waiting_count > 0)
            return false;
    }
    for (uint32_t w = 0; w < relay->workers; w++) {
        if (relay->answers[w].first != NULL)
            return false;
    }
    return hg_list_empty(&((struct hg_relay *)(uintptr_t)relay)->guests);
}

/* ---- life ---- */

void hg_relay_grow(struct hg_relay *relay)
{
    if (relay->port == NULL)
        return;
    for (; relay->lane_count < relay->remote->count; relay->lane_count++) {
        struct hg_relay_lane *lane = &relay->lanes[relay->lane_count];
        lane->relay = relay;
        lane->server = relay->lane_count;
        lane->owner = HG_LEASEPLAN_NOBODY;
        lane->expire_us = lane->waiting_end_us = UINT64_MAX;
        hg_list_init(&lane->items);
        hg_list_init(&lane->waiting);
        hg_hub_wake_init(&lane->wake, on_wake);
        hg_relay_open_lane(lane);
    }
}

static void free_tables(struct hg_relay *relay)
{
    free(relay->lanes);
    free(relay->ports);
    free(relay->asks);
    free(relay->answers);
}

int hg_relay_init(struct hg_relay *relay, struct hg_remote *remote)
{
    struct hg_upstream_shared *shared = remote->shared;
    relay->remote = remote;
    relay->worker = remote->worker;
    relay->workers = shared->workers;
    hg_list_init(&relay->guests);
    hg_hub_wake_init(&relay->post, on_post);
    if (relay->workers < 2 || remote->hub.mailbox == NULL)
        return 0;
    relay->lanes = calloc(shared->capacity, sizeof *relay->lanes);
    relay->ports = calloc(relay->workers, sizeof(struct hg_relay_port *));
    relay->asks = calloc(relay->workers, sizeof *relay->asks);
    relay->answers = calloc(relay->workers, sizeof *relay->answers);
    if (relay->lanes != NULL && relay->ports != NULL && relay->asks != NULL &&
        relay->answers != NULL)
        relay->port =
            hg_relay_port_new(&shared->relay_ports, remote->worker, remote->hub.mailbox, relay);
    if (relay->port == NULL) {
        free_tables(relay);
        return -ENOMEM;
    }
    hg_relay_grow(relay);
    hg_relay_look(relay);
    return 0;
}

void hg_relay_close(struct hg_relay *relay)
{
    if (relay->port == NULL)
        return;
    hg_relay_port_close(&relay->remote->shared->relay_ports, relay->port);
    hg_relay_receive(relay);
}

/* Answers what waits and what is away; the items that are away stay so. */
static void end_lane(struct hg_relay_lane *lane)
{
    struct hg_list *node;
    const struct hg_server *server = &lane->relay->remote->shared->servers[lane->server];
    while ((node = hg_list_first(&lane->waiting)) != NULL) {
        struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        leave_line(lane, call);
        (void)hg_remote_refuse(call, HG_FAULT_LOST, HG_SPAN_NONE, server->address);
    }
    while ((node = hg_list_first(&lane->items)) != NULL) {
        struct hg_relay_item *item = HG_CONTAINER_OF(node, struct hg_relay_item, node);
        hg_list_remove(node);
        if (item->call == NULL)
            continue;
        forget(lane->relay, item);
        answer(item, HG_FAULT_LOST, server->address);
    }
}

void hg_relay_end(struct hg_relay *relay)
{
    for (uint32_t i = 0; relay->port != NULL && i < relay->lane_count; i++)
        end_lane(&relay->lanes[i]);
}

void hg_relay_fini(struct hg_relay *relay)
{
    if (relay->port == NULL)
        return;
    on_post(&relay->post); /* others have theirs back; ours comes back to a closed port */
    for (uint32_t i = 0; i < relay->lane_count; i++)
        hg_list_remove(&relay->lanes[i].wake.node);
    hg_list_remove(&relay->post.node);
    assert(hg_list_empty(&relay->guests));
    for (uint32_t w = 0; w < relay->workers; w++) {
        if (relay->ports[w] != NULL)
            hg_relay_port_unref(relay->ports[w], 1);
    }
    relay->port->relay = NULL;
    hg_relay_port_unref(relay->port, 1);
    free_tables(relay);
    relay->port = NULL;
}
