// rediscluster_again - calls that a server of a Redis Cluster did not carry out, and where they go
// SPDX-License-Identifier: BSD-3-Clause
//
//   MOVED     noted; to the new owner, at once the first time, then after a wait
//   ASK       to that server, after ASKING, likewise; the owner stays
//   TRYAGAIN  to the owner, after a wait; READONLY in 50 ms, when there may be another
//   CLUSTERDOWN, LOADING, and whatever goes on for too long: answered
//
// While a slot moves its servers may not agree about it for some tenths of a second, and whoever is
// asked names the other. So waits grow: up to 2, 4, 8 ... 64 ms, half of it left to chance, as long
// as the call might have waited in line. None is longer than half of what is left of that: the call
// is tried until the end, not given up a wait before it. A call that waits has no ticket of a
// server.
//
// Its caller was told that the call is under way, and hears no more of waiting: where it has to
// wait for room on another connection, it is this file that is told of it (tie->on_room).
#include "back/rediscluster_in.h"

#include <stdio.h>

#include "base/log.h"

#define WAIT_MIN_US 2000 /* before the second redirect */
#define WAIT_MAX_US 64000
#define TICK_US     10000      /* no wait is cut to less */
#define OWNER       UINT32_MAX /* tie->server: who owns the slot by then */
#define READONLY_US 50000      /* a demotion comes with a promotion: half of the refresh's pause */

static void give_up(struct hg_rediscluster_store *store, struct hg_call *call, const char *what)
{
    char text[160];
    hg_rediscluster_count(store, HG_REDISCLUSTER_GIVEN_UP);
    int len = snprintf(text, sizeof text, "the servers of the cluster %s slot %u", what,
                       hg_rediscluster_slot(store, call));
    (void)hg_remote_refuse(call, HG_FAULT_DOWN, hg_span(text, (size_t)len), NULL);
}

/* Sends the call where its tie says: an older topology may have come since. */
static void send_on(struct hg_rediscluster_store *store, struct hg_call *call)
{
    struct hg_tie *tie = call->place.tie;
    uint32_t server = tie->server;
    call->after = NULL; /* it was looked at; nothing of this client is in front of it */
    call->now_us = store->redis.remote.hub.loop->now_us;
    if (server == OWNER) {
        uint32_t slot = hg_rediscluster_slot(store, call);
        server = store->map.owner[slot];
        if (server == HG_SLOTS_NONE) {
            (void)hg_rediscluster_refuse_slot(store, call, slot);
            return;
        }
    }
    hg_store_move(&store->redis.remote.base, call, server);
    /* If there is no room the call waits, and on_room below is called. */
    (void)hg_remote_submit(&store->redis.remote, server, call);
}

static void on_room(struct hg_call *call)
{
    struct hg_remote *remote = hg_remote_of(call->place.store);
    send_on(hg_rediscluster_of(remote), call);
}

/* Until when a call may be sent away: as long as it might have waited in line. */
static uint64_t end_us(const struct hg_rediscluster_store *store, const struct hg_call *call)
{
    uint64_t end = call->place.tie->since_us + store->redis.remote.pool_conf.queue_timeout_us;
    return call->deadline_us != 0 && call->deadline_us < end ? call->deadline_us : end;
}

/* The wait after `waits` others. Of redirects tie->again tells, which goes with a relayed call. */
static uint64_t wait_us(struct hg_rediscluster_store *store, uint32_t waits)
{
    uint64_t most_us = waits < 5 ? (uint64_t)WAIT_MIN_US << waits : WAIT_MAX_US;
    return most_us / 2 + hg_prng_below(&store->dice, most_us / 2 + 1);
}

/* Sends the call on in a while, where its tie says; false: its time will be over. */
static bool send_later(struct hg_rediscluster_store *store, struct hg_call *call, uint64_t pause_us)
{
    uint64_t now_us = store->redis.remote.hub.loop->now_us, end = end_us(store, call);
    uint64_t left_us = end > now_us ? end - now_us : 0;
    uint64_t most_us = left_us / 2 > TICK_US ? left_us / 2 : TICK_US;
    if (pause_us > most_us)
        pause_us = most_us;
    if (pause_us >= left_us)
        return false;
    hg_store_move(&store->redis.remote.base, call, HG_SERVER_NONE);
    hg_rediscluster_put_later(store, call, now_us + pause_us);
    return true;
}

void hg_rediscluster_tick_later(struct hg_rediscluster_store *store, uint64_t now_us)
{
    struct hg_list old, *node;
    hg_list_init(&old);
    hg_list_splice(&old, &store->later);
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = HG_CONTAINER_OF(node, struct hg_call, place.node);
        if (call->place.since_us > now_us) {
            hg_list_remove(node);
            hg_list_append(&store->later, node);
            continue;
        }
        hg_rediscluster_leave_list(store, call);
        send_on(store, call);
    }
}

/* A redirect to `address`: the server to send to, or HG_SLOTS_NONE. */
static uint32_t read_redirect(struct hg_rediscluster_store *store, const struct hg_pool *pool,
                              const struct hg_reply *reply)
{
    char address[HG_REDIRECT_ADDRESS];
    if (!hg_redirect_target(reply->again_address, pool->server->address, address))
        return HG_SLOTS_NONE;
    return hg_rediscluster_reach(store, address);
}

static void redirect(struct hg_rediscluster_store *store, const struct hg_pool *pool,
                     struct hg_call *call, const struct hg_reply *reply)
{
    struct hg_tie *tie = call->place.tie;
    bool moved = reply->again == HG_AGAIN_MOVED;
    uint32_t server = read_redirect(store, pool, reply);
    if (moved)
        hg_topology_want(&store->shared->topology, server);
    if (server == HG_SLOTS_NONE || reply->again_slot >= HG_KEYSLOTS) {
        give_up(store, call, "name no server that can be reached for");
        return;
    }
    tie->asking = !moved;
    tie->server = server;
    if (moved)
        store->map.owner[reply->again_slot] = (uint16_t)server;
    if (++tie->again == 1)
        send_on(store, call);
    else if (tie->again > HG_REDISCLUSTER_REDIRECTS ||
             !send_later(store, call, wait_us(store, tie->again - 2)))
        give_up(store, call, "do not agree about who owns");
}

/* The caller is not to hear of waiting from now on. */
static void take_over(struct hg_rediscluster_store *store, struct hg_call *call)
{
    struct hg_tie *tie = call->place.tie;
    if (tie->on_room != NULL)
        return;
    tie->on_room = call->on_room;
    tie->since_us = store->redis.remote.hub.loop->now_us;
    call->on_room = on_room;
}

/* What an answer tells of the cluster, whatever becomes of the call. */
static void learn(struct hg_rediscluster_store *store, enum hg_again again)
{
    switch (again) {
    case HG_AGAIN_MOVED:
        hg_rediscluster_count(store, HG_REDISCLUSTER_MOVED);
        break;
    case HG_AGAIN_ASK:
        hg_rediscluster_count(store, HG_REDISCLUSTER_ASK);
        return;
    case HG_AGAIN_TRYAGAIN:
        hg_rediscluster_count(store, HG_REDISCLUSTER_TRYAGAIN);
        return;
    case HG_AGAIN_READONLY:
        hg_rediscluster_count(store, HG_REDISCLUSTER_READONLY);
        break;
    case HG_AGAIN_DOWN:
        hg_rediscluster_count(store, HG_REDISCLUSTER_DOWN);
        break;
    case HG_AGAIN_NO:
    case HG_AGAIN_NOSCRIPT:
        return;
    case HG_AGAIN_LOADING:
        break;
    }
    hg_topology_want(&store->shared->topology, HG_SLOTS_NONE);
}

/* Sends the call to the owner again, a little later, unless that has gone on for too long. */
static bool try_later(struct hg_rediscluster_store *store, struct hg_call *call, uint64_t pause_us)
{
    call->place.tie->asking = false;
    call->place.tie->server = OWNER;
    if (send_later(store, call, pause_us))
        return true;
    hg_rediscluster_count(store, HG_REDISCLUSTER_GIVEN_UP);
    return false;
}

void hg_rediscluster_on_again(struct hg_remote *remote, struct hg_pool *pool, struct hg_link *link,
                              struct hg_call *call, const struct hg_reply *reply)
{
    struct hg_rediscluster_store *store = hg_rediscluster_of(remote);
    struct hg_tie *tie = call->place.tie;
    bool settled = false;
    learn(store, (enum hg_again)reply->again);
    if (tie == NULL || tie->bytes == NULL || remote->closing) {
        hg_redis_settle(&store->redis, pool, link, call, reply);
        return;
    }
    take_over(store, call);
    switch (reply->again) {
    case HG_AGAIN_MOVED:
    case HG_AGAIN_ASK:
        redirect(store, pool, call, reply);
        return;
    case HG_AGAIN_NOSCRIPT:
        settled = tie->again <= HG_REDISCLUSTER_REDIRECTS;
        if (settled)
            hg_redis_say_again(&store->redis, link, call);
        break;
    case HG_AGAIN_TRYAGAIN:
        settled = try_later(store, call, wait_us(store, tie->waits++));
        break;
    case HG_AGAIN_READONLY:
        settled = try_later(store, call, READONLY_US);
        break;
    default:
        break;
    }
    if (!settled)
        hg_redis_settle(&store->redis, pool, link, call, reply);
}
