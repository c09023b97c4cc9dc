// rediscluster_refresh - a worker's part in knowing who owns which slots
// SPDX-License-Identifier: BSD-3-Clause
//
// Whoever sees that something is wrong wants a refresh: a redirect, a server that goes out or comes
// back, a connection that cannot be made or breaks, a request that times out at an owner, slots
// without an owner, an owner that is out. One worker asks; all copy.
#include "back/rediscluster_in.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define ABSENT_MAX 2 /* topologies in a row without a server, until it is drained */

uint32_t hg_rediscluster_reach(struct hg_rediscluster_store *store, const char *address)
{
    struct hg_remote *remote = &store->redis.remote;
    uint32_t server;
    if (hg_upstream_add_server(store->shared->upstream, address, &server) != 0 ||
        server >= HG_TOPOLOGY_SERVERS || !hg_remote_grow(remote)) {
        hg_log_error("upstream=%s server=%s msg=\"cannot send to this server of the cluster: "
                     "more than %d are known, or memory is out\"",
                     store->shared->upstream->conf.name, address, HG_REDISCLUSTER_MORE_SERVERS);
        return HG_SLOTS_NONE;
    }
    store->absent[server] = 0;
    if (remote->domains[server].draining && !remote->draining)
        hg_domain_resume(&remote->domains[server]);
    return server;
}

/* Drains the servers that are named no more, and takes back those that are named again. */
static void retire(struct hg_rediscluster_store *store)
{
    struct hg_remote *remote = &store->redis.remote;
    for (uint32_t i = 0; i < remote->count && i < HG_TOPOLOGY_SERVERS; i++) {
        struct hg_domain *domain = &remote->domains[i];
        if (hg_topology_bit(store->map.member, i)) {
            store->absent[i] = 0;
            if (domain->draining && !remote->draining)
                hg_domain_resume(domain);
        } else if (store->absent[i] < ABSENT_MAX && ++store->absent[i] == ABSENT_MAX &&
                   !domain->draining) {
            hg_domain_drain(domain);
        }
    }
}

void hg_rediscluster_adopt(struct hg_rediscluster_store *store)
{
    bool first = store->map.version == 0;
    if (!hg_remote_grow(&store->redis.remote))
        return; /* next time */
    hg_topology_copy(&store->shared->topology, &store->map);
    /* A server that came with this topology may have come since we grew. */
    if (!hg_remote_grow(&store->redis.remote)) {
        store->map.version = 0;
        return;
    }
    retire(store);
    if (first || !hg_list_empty(&store->early))
        hg_hub_wake_later(&store->redis.remote.hub, &store->wake);
}

/* Gives the servers of `slots` their numbers and tells everybody. */
static void publish(struct hg_rediscluster_store *store, const struct hg_slots *slots,
                    const char *from)
{
    struct hg_upstream_shared *upstream = store->shared->upstream;
    uint16_t number_of[HG_SLOTS_NODES_MAX];
    for (uint32_t n = 0; n < slots->node_count; n++) {
        uint32_t server;
        int rc = hg_upstream_add_server(upstream, slots->nodes[n].address, &server);
        number_of[n] = rc == 0 && server < HG_TOPOLOGY_SERVERS ? (uint16_t)server : HG_SLOTS_NONE;
        if (rc != 0)
            hg_log_error("upstream=%s server=%s msg=\"this server of the cluster cannot be used: "
                         "%s\"",
                         upstream->conf.name, slots->nodes[n].address, strerror(-rc));
    }
    if (hg_topology_publish(&store->shared->topology, slots, number_of))
        hg_log_info("upstream=%s server=%s nodes=%u slots_uncovered=%u "
                    "msg=\"the topology of the cluster has changed\"",
                    upstream->conf.name, from, slots->node_count, slots->uncovered);
    hg_rediscluster_adopt(store);
}

static struct hg_server *find_server(const struct hg_rediscluster_store *store, const char *address)
{
    const struct hg_upstream_shared *upstream = store->shared->upstream;
    for (uint32_t i = 0; i < hg_upstream_count_servers(upstream); i++)
        if (strcmp(upstream->servers[i].address, address) == 0)
            return &upstream->servers[i];
    return NULL;
}

static void on_asked(struct hg_slotsask *ask, const struct hg_slots *slots, const char *from,
                     const char *why)
{
    struct hg_rediscluster_store *store = ask->asker;
    if (slots != NULL) {
        struct hg_server *server = find_server(store, from);
        if (server != NULL)
            hg_server_note_error(server, "");
        publish(store, slots, from);
        return;
    }
    hg_rediscluster_count(store, HG_REDISCLUSTER_REFRESH_FAILURES);
    hg_log_warn("upstream=%s msg=\"no server of the cluster says who owns which slots: %s\"",
                store->shared->upstream->conf.name, why);
    hg_topology_tell_failed(&store->shared->topology, why);
    if (!hg_list_empty(&store->early))
        hg_hub_wake_later(&store->redis.remote.hub, &store->wake);
}

/* What the connections of a server would tell too, were there any: while nobody says who owns which
   slots, none are made. */
static void on_useless(struct hg_slotsask *ask, const char *candidate, const char *why,
                       bool for_tls)
{
    const struct hg_rediscluster_store *store = ask->asker;
    struct hg_server *server = find_server(store, candidate);
    char text[HG_SERVER_ERROR_BYTES];
    if (server == NULL)
        return;
    snprintf(text, sizeof text, "cannot ask for the slots: %.200s", why);
    hg_server_note_error(server, text);
    if (for_tls)
        hg_upstream_count(&server->counters[store->redis.remote.worker], HG_UPSTREAM_TLS_FAILURES,
                          1);
}

/* Whom to ask, best first: who was named last, members that are not out, the configuration's
   servers, the other members. */
static void add_candidates(struct hg_rediscluster_store *store)
{
    struct hg_upstream_shared *upstream = store->shared->upstream;
    uint32_t count = store->redis.remote.count < HG_TOPOLOGY_SERVERS ? store->redis.remote.count
                                                                     : HG_TOPOLOGY_SERVERS;
    uint32_t hint = hg_topology_hint(&store->shared->topology);
    if (hint < count && hg_server_may_send(&upstream->servers[hint]))
        hg_slotsask_add(&store->ask, upstream->servers[hint].address);
    store->rotation++;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t i = (n + store->rotation) % count;
        if (hg_topology_bit(store->map.member, i) && hg_server_may_send(&upstream->servers[i]))
            hg_slotsask_add(&store->ask, upstream->servers[i].address);
    }
    for (uint32_t i = 0; i < upstream->conf.ring.count; i++)
        hg_slotsask_add(&store->ask, upstream->servers[i].address);
    for (uint32_t i = 0; i < count; i++) {
        if (hg_topology_bit(store->map.member, i))
            hg_slotsask_add(&store->ask, upstream->servers[i].address);
    }
}

void hg_rediscluster_refresh(struct hg_rediscluster_store *store, uint64_t now_us)
{
    struct hg_topology *topology = &store->shared->topology;
    if (store->ask.running || store->redis.remote.closing || !hg_topology_take(topology, now_us))
        return;
    const struct hg_identity *own = hg_identities_at(&store->shared->upstream->identities, 0);
    store->ask.user = own->user;
    store->ask.password = own->password; /* perhaps another than last time */
    store->ask.timeout_us = store->redis.remote.pool_conf.connect_timeout_us;
    store->ask.password = /* of now: it may have changed */
        hg_identities_at(&store->shared->upstream->identities, 0)->password;
    add_candidates(store);
    if (hg_slotsask_start(&store->ask))
        hg_rediscluster_count(store, HG_REDISCLUSTER_REFRESHES);
    else
        hg_topology_abandon(topology);
}

/* A number that grows when something goes wrong with a server. */
static uint64_t trouble(const struct hg_rediscluster_store *store, bool *ret_owner_out)
{
    static const enum hg_upstream_stat signs[] = {HG_UPSTREAM_CONNECT_FAILURES,
                                                  HG_UPSTREAM_DISCONNECTS, HG_UPSTREAM_TIMEOUTS};
    uint64_t sum = 0;
    *ret_owner_out = false;
    for (uint32_t i = 0; i < store->redis.remote.count && i < HG_TOPOLOGY_SERVERS; i++) {
        const struct hg_server *server = store->redis.remote.domains[i].server;
        if (!hg_topology_bit(store->map.owns, i))
            continue;
        *ret_owner_out |= !hg_server_may_send(server);
        for (unsigned s = 0; s < HG_COUNT_OF(signs); s++)
            sum += hg_counter_get(&server->counters[store->redis.remote.worker].values[signs[s]]);
    }
    return sum;
}

void hg_rediscluster_watch(struct hg_rediscluster_store *store)
{
    bool owner_out;
    uint64_t sum = trouble(store, &owner_out);
    uint32_t changes =
        atomic_load_explicit(&store->shared->upstream->changes, memory_order_relaxed);
    if (sum != store->trouble_seen || changes != store->changes_seen || owner_out ||
        store->map.uncovered > 0)
        hg_topology_want(&store->shared->topology, HG_SLOTS_NONE);
    store->trouble_seen = sum;
    store->changes_seen = changes;
}

int hg_rediscluster_refresh_init(struct hg_rediscluster_store *store,
                                 const struct hg_remote_place *place)
{
    store->ask.loop = place->loop;
    store->ask.mailbox = place->mailbox;
    store->ask.resolver = store->shared->upstream->resolver;
    store->ask.outs = place->outs;
    store->ask.uptls = store->shared->upstream->uptls;
    store->ask.on_done = on_asked;
    store->ask.on_useless = on_useless;
    store->ask.asker = store;
    store->rotation = place->worker;
    return hg_slotsask_init(&store->ask);
}

void hg_rediscluster_refresh_fini(struct hg_rediscluster_store *store)
{
    if (store->ask.running)
        hg_topology_abandon(&store->shared->topology);
    hg_slotsask_fini(&store->ask);
}
