// rediscluster - a store made of the servers of a Redis Cluster
// SPDX-License-Identifier: BSD-3-Clause
#include "back/rediscluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/flush.h"
#include "back/rediscluster_in.h"
#include "base/log.h"

static const struct hg_store_ops ops;

static struct hg_rediscluster_store *store_at(struct hg_store *base)
{
    return hg_rediscluster_of(hg_remote_of(base));
}

/* --- calls that the store has in lists of its own --- */

static void put_in_list(struct hg_list *list, struct hg_call *call)
{
    call->place.link = NULL;
    call->place.pending = false;
    call->place.waiting = true;
    call->place.index = HG_REDISCLUSTER_OWN_LIST;
    hg_list_init(&call->place.node);
    hg_list_append(list, &call->place.node);
}

void hg_rediscluster_put_early(struct hg_rediscluster_store *store, struct hg_call *call)
{
    call->place.since_us = store->redis.remote.hub.loop->now_us;
    put_in_list(&store->early, call);
    hg_counter_set(&store->counters->values[HG_REDISCLUSTER_EARLY], ++store->early_count);
    hg_remote_get_busy(&store->redis.remote);
}

void hg_rediscluster_put_later(struct hg_rediscluster_store *store, struct hg_call *call,
                               uint64_t due_us)
{
    call->place.since_us = due_us;
    put_in_list(&store->later, call);
    hg_counter_set(&store->counters->values[HG_REDISCLUSTER_LATER], ++store->later_count);
    hg_remote_get_busy(&store->redis.remote);
}

/* Those that were sent away have a tie, those that are early have not. */
void hg_rediscluster_leave_list(struct hg_rediscluster_store *store, struct hg_call *call)
{
    hg_list_remove(&call->place.node);
    call->place.waiting = false;
    call->place.index = 0;
    if (call->place.tie != NULL)
        hg_counter_set(&store->counters->values[HG_REDISCLUSTER_LATER], --store->later_count);
    else
        hg_counter_set(&store->counters->values[HG_REDISCLUSTER_EARLY], --store->early_count);
}

static void fail_list(struct hg_rediscluster_store *store, struct hg_list *list)
{
    struct hg_list *node;
    while ((node = hg_list_first(list)) != NULL) {
        struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        hg_rediscluster_leave_list(store, call);
        (void)hg_remote_refuse(call, HG_FAULT_LOST, HG_SPAN_NONE, NULL);
    }
}

/* --- before there is a topology --- */

/* Nobody can be asked who owns which slots. */
static enum hg_submit refuse_blind(struct hg_rediscluster_store *store, struct hg_call *call)
{
    char why[HG_SLOTSASK_WHY], text[240];
    hg_topology_why(&store->shared->topology, why, sizeof why);
    int len =
        snprintf(text, sizeof text, "no server of the cluster says who owns which slots%s%.180s",
                 why[0] != '\0' ? ": " : "", why);
    return hg_remote_refuse(call, HG_FAULT_DOWN, hg_span(text, (size_t)len), NULL);
}

static bool is_blind(struct hg_rediscluster_store *store)
{
    char first[2];
    hg_topology_why(&store->shared->topology, first, sizeof first);
    return first[0] != '\0';
}

/* There is no topology yet: the call waits, unless all servers were asked in vain. */
static enum hg_submit wait_early(struct hg_rediscluster_store *store, struct hg_call *call)
{
    hg_rediscluster_refresh(store, store->redis.remote.hub.loop->now_us);
    if (store->redis.remote.draining || is_blind(store))
        return refuse_blind(store, call);
    if (store->early_count >= store->redis.remote.pool_conf.queue_max)
        return hg_remote_refuse(call, HG_FAULT_QUEUE_FULL, HG_SPAN_NONE, NULL);
    hg_rediscluster_put_early(store, call);
    return HG_SUBMIT_WAIT;
}

/* At the end of the turn: the early ones come again when there is a topology, and are refused when
   nobody tells one. */
static void wake(struct hg_hub_wake *hub_wake)
{
    struct hg_rediscluster_store *store =
        HG_CONTAINER_OF(hub_wake, struct hg_rediscluster_store, wake);
    bool known = store->map.version != 0;
    struct hg_list old, *node;
    if (!known && !is_blind(store))
        return;
    hg_list_init(&old);
    hg_list_splice(&old, &store->early);
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        hg_rediscluster_leave_list(store, call);
        if (known)
            call->on_room(call);
        else
            (void)refuse_blind(store, call);
    }
}

static void expire_early(struct hg_rediscluster_store *store, uint64_t now_us)
{
    struct hg_list old, *node;
    hg_list_init(&old);
    hg_list_splice(&old, &store->early);
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        uint64_t end_us = call->place.since_us + store->redis.remote.pool_conf.queue_timeout_us;
        if (call->deadline_us != 0 && call->deadline_us < end_us)
            end_us = call->deadline_us;
        if (now_us < end_us) {
            hg_list_remove(node);
            hg_list_append(&store->early, node);
            continue;
        }
        hg_rediscluster_leave_list(store, call);
        (void)refuse_blind(store, call);
    }
}

/* --- calls --- */

uint32_t hg_rediscluster_slot(const struct hg_rediscluster_store *store, const struct hg_call *call)
{
    uint8_t key[HG_REDIS_KEY_MAX + 8];
    if (HG_UNLIKELY(call->prefix.len + call->key.len > HG_REDIS_KEY_MAX))
        return 0; /* any server: it is refused before it is sent */
    size_t len = hg_redis_key(&store->redis.dialect.style, call->prefix, call->key, key);
    return hg_keyslot_of(hg_span(key, len));
}

enum hg_submit hg_rediscluster_refuse_slot(struct hg_rediscluster_store *store,
                                           struct hg_call *call, uint32_t slot)
{
    char text[96];
    hg_rediscluster_count(store, HG_REDISCLUSTER_NO_OWNER);
    hg_topology_want(&store->shared->topology, HG_SLOTS_NONE);
    int len = snprintf(text, sizeof text, "no server of the cluster serves slot %u", slot);
    return hg_remote_refuse(call, HG_FAULT_DOWN, hg_span(text, (size_t)len), NULL);
}

/* Sends a call to the owner of its slot. */
static enum hg_submit route(struct hg_redis *redis, struct hg_call *call)
{
    struct hg_rediscluster_store *store = hg_rediscluster_of(&redis->remote);
    if (HG_UNLIKELY(redis->remote.closing))
        return hg_remote_refuse(call, HG_FAULT_DOWN, HG_SPAN_NONE, NULL);
    if (HG_UNLIKELY(hg_topology_version(&store->shared->topology) != store->map.version))
        hg_rediscluster_adopt(store);
    if (HG_UNLIKELY(store->map.version == 0))
        return wait_early(store, call);
    if (HG_UNLIKELY(call->op == HG_OP_FLUSH)) {
        hg_tie_end(call); /* each part of it is a call of its own */
        return hg_flush_submit(&redis->remote, call);
    }
    if (HG_LIKELY(call->route != 0))
        return hg_remote_submit(&redis->remote, call->route - 1, call);
    uint32_t slot = hg_rediscluster_slot(store, call);
    uint32_t server = store->map.owner[slot];
    if (HG_UNLIKELY(server == HG_SLOTS_NONE))
        return hg_rediscluster_refuse_slot(store, call, slot);
    return hg_remote_submit(&redis->remote, server, call);
}

static uint32_t server_of(struct hg_store *base, const struct hg_call *call)
{
    struct hg_rediscluster_store *store = store_at(base);
    if (HG_UNLIKELY(hg_topology_version(&store->shared->topology) != store->map.version))
        hg_rediscluster_adopt(store);
    if (HG_UNLIKELY(store->map.version == 0 || call->op == HG_OP_FLUSH))
        return HG_SERVER_NONE;
    uint32_t server = store->map.owner[hg_rediscluster_slot(store, call)];
    return server == HG_SLOTS_NONE ? HG_SERVER_NONE : server;
}

static void cancel(struct hg_store *base, struct hg_call *call)
{
    struct hg_rediscluster_store *store = store_at(base);
    if (call->place.waiting && call->place.index == HG_REDISCLUSTER_OWN_LIST) {
        hg_rediscluster_leave_list(store, call);
        hg_tie_end(call);
    } else if (call->op == HG_OP_FLUSH) {
        hg_flush_cancel(&store->redis.remote, call);
    } else {
        hg_remote_cancel(base, call);
    }
}

static const char *where(struct hg_store *base, struct hg_span prefix, struct hg_span key)
{
    struct hg_rediscluster_store *store = store_at(base);
    const struct hg_call call = {.prefix = prefix, .key = key};
    if (hg_topology_version(&store->shared->topology) != store->map.version)
        hg_rediscluster_adopt(store);
    if (store->map.version == 0) {
        hg_rediscluster_refresh(store, store->redis.remote.hub.loop->now_us);
        return "not known yet: the cluster is being asked";
    }
    uint32_t server = store->map.owner[hg_rediscluster_slot(store, &call)];
    return server == HG_SLOTS_NONE ? "no server" : store->shared->upstream->servers[server].address;
}

/* Flush goes to the owners only. */
static bool is_flushed(const struct hg_remote *remote, uint32_t server)
{
    const struct hg_rediscluster_store *store =
        HG_CONTAINER_OF(remote, const struct hg_rediscluster_store, redis.remote);
    return server < HG_TOPOLOGY_SERVERS && hg_topology_bit(store->map.owns, server);
}

/* --- life --- */

static bool on_tick(struct hg_remote *remote, uint64_t now_us)
{
    struct hg_rediscluster_store *store = hg_rediscluster_of(remote);
    if (hg_topology_version(&store->shared->topology) != store->map.version)
        hg_rediscluster_adopt(store);
    hg_rediscluster_tick_later(store, now_us);
    hg_rediscluster_watch(store);
    hg_rediscluster_refresh(store, now_us);
    if (store->early_count > 0)
        expire_early(store, now_us);
    return store->early_count > 0 || store->later_count > 0 || store->ask.running;
}

static bool drained(struct hg_store *base)
{
    struct hg_rediscluster_store *store = store_at(base);
    return store->early_count == 0 && store->later_count == 0 && hg_remote_drained(base);
}

static void free_all(struct hg_store *base)
{
    struct hg_rediscluster_store *store = store_at(base);
    store->redis.remote.closing = true; /* what is asked for from here on is refused */
    hg_rediscluster_refresh_fini(store);
    hg_list_remove(&store->wake.node);
    fail_list(store, &store->early);
    fail_list(store, &store->later);
    hg_redis_fini(&store->redis);
    free(store);
}

static const struct hg_store_ops ops = {
    .kind = "redis-cluster",
    .submit = hg_redis_submit,
    .cancel = cancel,
    .range = hg_redis_range,
    .cancel_range = hg_redis_cancel_range,
    .where = where,
    .server_of = server_of,
    .server_name = hg_remote_server_name,
    .width = hg_remote_width,
    .drain = hg_remote_drain,
    .drained = drained,
    .free = free_all,
};

static const struct hg_redis_kind kind = {
    .ops = &ops,
    .all_again = true,
    .route = route,
    .on_again = hg_rediscluster_on_again,
    .on_tick = on_tick,
};

struct hg_store *hg_rediscluster_store_new(struct hg_rediscluster_shared *shared,
                                           const struct hg_remote_place *place)
{
    struct hg_rediscluster_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->shared = shared;
    store->counters = &shared->counters[place->worker];
    store->dice.state = shared->upstream->cas_seed + place->worker;
    memset(store->map.owner, 0xff, sizeof store->map.owner);
    hg_list_init(&store->early);
    hg_list_init(&store->later);
    hg_hub_wake_init(&store->wake, wake);
    if (hg_rediscluster_refresh_init(store, place) != 0) {
        free(store);
        return NULL;
    }
    if (hg_redis_init(&store->redis, &kind, shared->upstream, place, &shared->redis) != 0) {
        hg_slotsask_fini(&store->ask);
        free(store);
        return NULL;
    }
    store->redis.kind.is_flushed = is_flushed;
    hg_rediscluster_refresh(store, place->loop->now_us);
    return &store->redis.remote.base;
}
