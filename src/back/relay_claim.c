// relay_claim - which worker owns a server, and what becomes of the others' connections to it
// SPDX-License-Identifier: BSD-3-Clause
#include "back/remote.h"

static struct hg_lease *lease_of(const struct hg_relay_lane *lane)
{
    return &lane->relay->remote->shared->servers[lane->server].lease;
}

/* The server is ours to connect to again. */
static void come_back(struct hg_relay_lane *lane)
{
    struct hg_remote *remote = lane->relay->remote;
    struct hg_domain *domain = &remote->domains[lane->server];
    if (!lane->retiring)
        hg_lease_open(lease_of(lane), remote->worker, remote->hub.loop->now_us);
    lane->retiring = false;
    if (!remote->draining)
        hg_domain_resume(domain);
    hg_domain_heed_lease(domain);
}

/* Takes notice of who owns the server now. */
static void look_at_owner(struct hg_relay_lane *lane)
{
    struct hg_relay *relay = lane->relay;
    uint32_t owner = hg_lease_owner(lease_of(lane));
    if (HG_LIKELY(owner == lane->owner))
        return;
    bool was_away = hg_relay_is_away(relay, lane->server);
    lane->owner = owner;
    bool is_away = hg_relay_is_away(relay, lane->server);
    if (is_away && !was_away) {
        lane->retiring = true;
        relay->remote->relayed = true;
        hg_remote_get_busy(relay->remote);
    } else if (was_away && !is_away) {
        come_back(lane);
    }
    hg_relay_wake_later(lane);
}

/* The worker with most connections to the server, or HG_LEASEPLAN_NOBODY. */
static uint32_t fullest(const struct hg_server *server)
{
    uint32_t best = HG_LEASEPLAN_NOBODY;
    uint64_t most = 0;
    for (uint32_t w = 0; w < server->workers; w++) {
        uint64_t up = hg_counter_get(&server->counters[w].values[HG_UPSTREAM_CONNECTIONS]);
        if (up > most) {
            best = w;
            most = up;
        }
    }
    return best;
}

void hg_relay_claim(struct hg_relay_lane *lane, uint64_t now_us)
{
    struct hg_relay *relay = lane->relay;
    struct hg_server *server = &relay->remote->shared->servers[lane->server];
    uint64_t limited_us = hg_server_limited_us(server, now_us);
    if (HG_LIKELY(limited_us == 0 && lane->owner != relay->worker) || relay->all)
        return;
    if (lane->owner == relay->worker &&
        (limited_us == 0 || now_us >= limited_us + HG_RELAY_LIFTED_US)) {
        hg_lease_unclaim(&server->lease, relay->worker);
        return;
    }
    if (lane->owner != HG_LEASEPLAN_NOBODY ||
        !hg_domain_starves(&relay->remote->domains[lane->server]))
        return;
    uint32_t owner = fullest(server);
    if (owner != HG_LEASEPLAN_NOBODY)
        hg_lease_claim(&server->lease, owner);
}

void hg_relay_retire(struct hg_relay_lane *lane)
{
    struct hg_remote *remote = lane->relay->remote;
    struct hg_domain *domain = &remote->domains[lane->server];
    struct hg_lease *lease = &domain->server->lease;
    hg_domain_send_away(domain);
    if (hg_domain_waiting(domain) > 0)
        return;
    hg_domain_drain(domain);
    if (hg_domain_pending(domain) > 0 || hg_lease_held(lease, remote->worker) > 0)
        return;
    hg_lease_close(lease, remote->worker);
    lane->retiring = false;
}

void hg_relay_open_lane(struct hg_relay_lane *lane)
{
    const struct hg_relay *relay = lane->relay;
    if (relay->all)
        hg_lease_claim(lease_of(lane), lane->server % relay->workers);
    look_at_owner(lane);
}

void hg_relay_look(struct hg_relay *relay)
{
    const struct hg_upstream_shared *shared = relay->remote->shared;
    if (relay->port == NULL)
        return;
    uint64_t blocks = hg_identities_count(&shared->identities);
    if (!relay->all && shared->conf.pool_max_connections < 2 * blocks * relay->workers) {
        relay->all = true;
        for (uint32_t i = 0; i < relay->lane_count; i++)
            hg_lease_claim(lease_of(&relay->lanes[i]), i % relay->workers);
    }
    for (uint32_t i = 0; i < relay->lane_count; i++)
        look_at_owner(&relay->lanes[i]);
}
