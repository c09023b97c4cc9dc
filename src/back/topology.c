// topology - who owns which slots of a Redis Cluster, as the whole process knows it
// SPDX-License-Identifier: BSD-3-Clause
#include "back/topology.h"

#include <stdio.h>
#include <string.h>

void hg_topology_init(struct hg_topology *topology)
{
    memset(topology, 0, sizeof *topology);
    memset(topology->map.owner, 0xff, sizeof topology->map.owner);
    topology->map.uncovered = HG_KEYSLOTS;
    topology->pause_us = HG_TOPOLOGY_LEAST_US;
    topology->hint = HG_SLOTS_NONE;
    pthread_mutex_init(&topology->lock, NULL);
}

void hg_topology_fini(struct hg_topology *topology)
{
    pthread_mutex_destroy(&topology->lock);
}

void hg_topology_want(struct hg_topology *topology, uint32_t hint)
{
    if (atomic_load_explicit(&topology->wanted, memory_order_relaxed) && hint == HG_SLOTS_NONE)
        return;
    pthread_mutex_lock(&topology->lock);
    if (hint != HG_SLOTS_NONE)
        topology->hint = hint;
    atomic_store_explicit(&topology->wanted, true, memory_order_relaxed);
    pthread_mutex_unlock(&topology->lock);
}

bool hg_topology_take(struct hg_topology *topology, uint64_t now_us)
{
    pthread_mutex_lock(&topology->lock);
    bool never = topology->asked_us == 0;
    uint64_t since_us = now_us - topology->asked_us;
    bool wanted =
        atomic_load_explicit(&topology->wanted, memory_order_relaxed) || topology->map.version == 0;
    bool take = !topology->asking && (never || (wanted && since_us >= topology->pause_us) ||
                                      since_us >= HG_TOPOLOGY_EVERY_US);
    if (take) {
        topology->asking = true;
        topology->asked_us = now_us;
        /* What is wanted from now on may be newer than what will be answered. */
        atomic_store_explicit(&topology->wanted, false, memory_order_relaxed);
    }
    pthread_mutex_unlock(&topology->lock);
    return take;
}

static void slow_down(struct hg_topology *topology)
{
    topology->pause_us *= 2;
    if (topology->pause_us > HG_TOPOLOGY_MOST_US)
        topology->pause_us = HG_TOPOLOGY_MOST_US;
}

void hg_topology_abandon(struct hg_topology *topology)
{
    pthread_mutex_lock(&topology->lock);
    topology->asking = false;
    atomic_store_explicit(&topology->wanted, true, memory_order_relaxed);
    pthread_mutex_unlock(&topology->lock);
}

void hg_topology_tell_failed(struct hg_topology *topology, const char *why)
{
    pthread_mutex_lock(&topology->lock);
    topology->asking = false;
    atomic_store_explicit(&topology->wanted, true, memory_order_relaxed);
    slow_down(topology);
    snprintf(topology->why, sizeof topology->why, "%s", why);
    pthread_mutex_unlock(&topology->lock);
}

static void set_bit(uint8_t *bits, uint32_t server)
{
    bits[server / 8] |= (uint8_t)(1u << server % 8);
}

bool hg_topology_publish(struct hg_topology *topology, const struct hg_slots *slots,
                         const uint16_t *number_of)
{
    pthread_mutex_lock(&topology->lock);
    struct hg_topology_map *map = &topology->map;
    uint8_t member[sizeof map->member] = {0}, owns[sizeof map->owns] = {0};
    bool news = map->version == 0;
    uint32_t uncovered = 0;
    for (uint32_t n = 0; n < slots->node_count; n++) {
        if (number_of[n] >= HG_TOPOLOGY_SERVERS)
            continue;
        set_bit(member, number_of[n]);
        if (slots->nodes[n].owns)
            set_bit(owns, number_of[n]);
    }
    for (uint32_t slot = 0; slot < HG_KEYSLOTS; slot++) {
        uint16_t node = slots->owner[slot];
        uint16_t server = node == HG_SLOTS_NONE ? HG_SLOTS_NONE : number_of[node];
        if (server >= HG_TOPOLOGY_SERVERS)
            server = HG_SLOTS_NONE;
        uncovered += server == HG_SLOTS_NONE;
        news |= map->owner[slot] != server;
        map->owner[slot] = server;
    }
    news |= memcmp(map->member, member, sizeof member) != 0;
    memcpy(map->member, member, sizeof member);
    memcpy(map->owns, owns, sizeof owns);
    map->uncovered = uncovered;
    topology->asking = false;
    topology->why[0] = '\0';
    if (news)
        topology->pause_us = HG_TOPOLOGY_LEAST_US;
    else
        slow_down(topology);
    /* Told in any case: copies in which something else was noted are brought back to what is. */
    map->version++;
    atomic_store_explicit(&topology->version, map->version, memory_order_release);
    pthread_mutex_unlock(&topology->lock);
    return news;
}

void hg_topology_copy(struct hg_topology *topology, struct hg_topology_map *ret)
{
    pthread_mutex_lock(&topology->lock);
    *ret = topology->map;
    pthread_mutex_unlock(&topology->lock);
}

uint32_t hg_topology_hint(struct hg_topology *topology)
{
    pthread_mutex_lock(&topology->lock);
    uint32_t hint = topology->hint;
    topology->hint = HG_SLOTS_NONE;
    pthread_mutex_unlock(&topology->lock);
    return hint;
}

void hg_topology_why(struct hg_topology *topology, char *ret_why, size_t room)
{
    pthread_mutex_lock(&topology->lock);
    snprintf(ret_why, room, "%s", topology->why);
    pthread_mutex_unlock(&topology->lock);
}
