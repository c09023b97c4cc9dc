// ring - which server a key belongs to, with libmemcached's own results
// SPDX-License-Identifier: BSD-3-Clause
#include "back/ring.h"

#include <inttypes.h>
#include <libmemcached-1.0/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/sock.h"

struct hg_ring {
    memcached_st *memc;
    uint32_t count;     /* servers on the ring */
    uint32_t servers[]; /* position on the ring -> index in the configuration */
};

static const struct {
    const char *name;
    memcached_behavior_t behavior;
    uint64_t value;
} kinds[] = {
    {"ketama", MEMCACHED_BEHAVIOR_KETAMA, 1},
    {"ketama_weighted", MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1},
    {"consistent", MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_CONSISTENT},
    {"modula", MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_MODULA},
};

static const struct {
    const char *name;
    memcached_hash_t hash;
} hashes[] = {
    {"default", MEMCACHED_HASH_DEFAULT},   {"md5", MEMCACHED_HASH_MD5},
    {"crc", MEMCACHED_HASH_CRC},           {"fnv1_64", MEMCACHED_HASH_FNV1_64},
    {"fnv1a_64", MEMCACHED_HASH_FNV1A_64}, {"fnv1_32", MEMCACHED_HASH_FNV1_32},
    {"fnv1a_32", MEMCACHED_HASH_FNV1A_32}, {"jenkins", MEMCACHED_HASH_JENKINS},
    {"murmur", MEMCACHED_HASH_MURMUR},     {"murmur3", MEMCACHED_HASH_MURMUR3},
};

static bool set_kind(memcached_st *memc, const char *kind, char *why)
{
    for (size_t i = 0; i < HG_COUNT_OF(kinds); i++) {
        if (strcmp(kind, kinds[i].name) != 0)
            continue;
        memcached_return_t rc = memcached_behavior_set(memc, kinds[i].behavior, kinds[i].value);
        if (rc == MEMCACHED_SUCCESS)
            return true;
        snprintf(why, HG_RING_WHY_BYTES, "libmemcached refuses ring '%s': %s", kind,
                 memcached_strerror(memc, rc));
        return false;
    }
    snprintf(why, HG_RING_WHY_BYTES,
             "unknown ring '%s', accepted are ketama, ketama_weighted, consistent, modula", kind);
    return false;
}

static bool set_hash(memcached_st *memc, const char *hash, char *why)
{
    if (hash == NULL || hash[0] == '\0')
        return true;
    for (size_t i = 0; i < HG_COUNT_OF(hashes); i++) {
        if (strcmp(hash, hashes[i].name) != 0)
            continue;
        memcached_return_t rc =
            memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_HASH, hashes[i].hash);
        if (rc == MEMCACHED_SUCCESS)
            return true;
        snprintf(why, HG_RING_WHY_BYTES, "libmemcached refuses hash '%s': %s", hash,
                 memcached_strerror(memc, rc));
        return false;
    }
    int len = snprintf(why, HG_RING_WHY_BYTES, "unknown hash '%.40s', accepted are", hash);
    for (size_t i = 0; i < HG_COUNT_OF(hashes) && len < HG_RING_WHY_BYTES; i++)
        len += snprintf(why + len, (size_t)(HG_RING_WHY_BYTES - len), "%s %s", i > 0 ? "," : "",
                        hashes[i].name);
    return false;
}

static bool add_server(memcached_st *memc, const struct hg_ring_server *server, char *why)
{
    char host[256];
    uint16_t port;
    bool is_unix;
    if (hg_addr_split(server->address, HG_RING_PORT, host, &port, &is_unix) != 0) {
        snprintf(why, HG_RING_WHY_BYTES,
                 "'%.80s' is no address, accepted are host:port, [ipv6]:port, unix:/path",
                 server->address);
        return false;
    }
    if (server->weight < 1 || server->weight > HG_RING_WEIGHT_MAX) {
        snprintf(why, HG_RING_WHY_BYTES, "weight %u of '%.80s' is not within 1 and %d",
                 server->weight, server->address, HG_RING_WEIGHT_MAX);
        return false;
    }
    memcached_return_t rc =
        is_unix ? memcached_server_add_unix_socket_with_weight(memc, host, server->weight)
                : memcached_server_add_with_weight(memc, host, port, server->weight);
    if (rc == MEMCACHED_SUCCESS)
        return true;
    snprintf(why, HG_RING_WHY_BYTES, "libmemcached refuses server '%.80s': %s", server->address,
             memcached_strerror(memc, rc));
    return false;
}

static bool set_up(struct hg_ring *ring, const struct hg_ring_conf *conf, const bool *live,
                   char *why)
{
    if (!set_kind(ring->memc, conf->kind, why) || !set_hash(ring->memc, conf->hash, why))
        return false;
    if (conf->count > HG_RING_SERVERS_MAX && strcmp(conf->kind, "modula") != 0) {
        snprintf(why, HG_RING_WHY_BYTES,
                 "%" PRIu32 " servers on ring '%s' (accepted: at most %d, or ring modula)",
                 conf->count, conf->kind, HG_RING_SERVERS_MAX);
        return false;
    }
    for (uint32_t i = 0; i < conf->count; i++) {
        if (live != NULL && !live[i])
            continue;
        if (!add_server(ring->memc, &conf->servers[i], why))
            return false;
        ring->servers[ring->count++] = i;
    }
    if (ring->count > 0)
        return true;
    snprintf(why, HG_RING_WHY_BYTES, "a ring needs at least one server");
    return false;
}

struct hg_ring *hg_ring_new(const struct hg_ring_conf *conf, const bool *live,
                            char why[HG_RING_WHY_BYTES])
{
    struct hg_ring *ring = calloc(1, sizeof *ring + conf->count * sizeof ring->servers[0]);
    if (ring != NULL)
        ring->memc = memcached_create(NULL);
    if (ring == NULL || ring->memc == NULL) {
        snprintf(why, HG_RING_WHY_BYTES, "memory is out");
        hg_ring_free(ring);
        return NULL;
    }
    if (!set_up(ring, conf, live, why)) {
        hg_ring_free(ring);
        return NULL;
    }
    return ring;
}

void hg_ring_free(struct hg_ring *ring)
{
    if (ring == NULL)
        return;
    if (ring->memc != NULL)
        memcached_free(ring->memc);
    free(ring);
}

uint32_t hg_ring_of(const struct hg_ring *ring, struct hg_span key)
{
    if (ring->count == 1)
        return ring->servers[0];
    uint32_t at = memcached_generate_hash(ring->memc, (const char *)key.at, key.len);
    /* A position the library does not have would be a fault of the library; stay in bounds. */
    return ring->servers[HG_LIKELY(at < ring->count) ? at : 0];
}
