// upstream - the servers of an upstream, as the whole process shares them
// SPDX-License-Identifier: BSD-3-Clause
#include "back/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

void hg_remote_conf_init(struct hg_remote_conf *conf)
{
    *conf = (struct hg_remote_conf){
        .name = "",
        .ring = {.kind = "ketama"},
        .is_memcached = true,
        .default_port = HG_RING_PORT,
        .user = "",
        .password = "",
        .times = {.connect_timeout_ms = 500,
                  .backend_timeout_ms = 1000,
                  .queue_timeout_ms = 1000,
                  .reconnect_max_ms = 1000},
        .pool_depth = 256,
        .pool_max_bytes = 256 * 1024,
        .pool_max_connections = 64,
        .pool_min_hold_ms = 10,
        .pool_idle_timeout_s = 120,
        .pool_queue_max = 10000,
        .max_reply_bytes = 64 * 1024 * 1024,
        .keepalive_s = 60,
    };
}

static char *copy_text(const char *text)
{
    return strdup(text != NULL ? text : "");
}

static bool copy_conf(struct hg_upstream_shared *shared, const struct hg_remote_conf *conf)
{
    shared->conf = *conf;
    shared->conf.tls = NULL;
    shared->conf.name = copy_text(conf->name);
    shared->conf.ring.kind = copy_text(conf->ring.kind);
    shared->conf.ring.hash = copy_text(conf->ring.hash);
    shared->conf.user = copy_text(conf->user);
    shared->conf.password = copy_text(conf->password);
    shared->ring_servers = calloc(conf->ring.count, sizeof *shared->ring_servers);
    shared->conf.ring.servers = shared->ring_servers;
    shared->conf.ring.count = 0;
    if (shared->conf.name == NULL || shared->conf.ring.kind == NULL ||
        shared->conf.ring.hash == NULL || shared->conf.user == NULL ||
        shared->conf.password == NULL || shared->ring_servers == NULL)
        return false;
    for (uint32_t i = 0; i < conf->ring.count; i++) {
        shared->ring_servers[i].weight = conf->ring.servers[i].weight;
        shared->ring_servers[i].address = copy_text(conf->ring.servers[i].address);
        if (shared->ring_servers[i].address == NULL)
            return false;
        shared->conf.ring.count++;
    }
    return true;
}

/* The next server, behind those there are. */
static int add_server(struct hg_upstream_shared *shared, const char *address)
{
    const struct hg_remote_conf *conf = &shared->conf;
    uint32_t count = hg_upstream_count_servers(shared);
    if (count == shared->capacity)
        return -ENOSPC;
    struct hg_server *server = &shared->servers[count];
    int rc = hg_server_init(server, conf->name, count, address, conf->default_port, shared->workers,
                            (uint64_t)conf->times.reconnect_max_ms * 1000,
                            conf->pool_max_connections, &shared->changes);
    if (rc == 0)
        atomic_store_explicit(&shared->count, count + 1, memory_order_release);
    return rc;
}

int hg_upstream_add_server(struct hg_upstream_shared *shared, const char *address,
                           uint32_t *ret_index)
{
    pthread_mutex_lock(&shared->lock);
    uint32_t count = hg_upstream_count_servers(shared), i = 0;
    while (i < count && strcmp(shared->servers[i].address, address) != 0)
        i++;
    int rc = i < count ? 0 : add_server(shared, address);
    pthread_mutex_unlock(&shared->lock);
    if (rc == 0)
        *ret_index = i;
    return rc;
}

static int set_up_servers(struct hg_upstream_shared *shared, char *why)
{
    const struct hg_remote_conf *conf = &shared->conf;
    snprintf(why, HG_RING_WHY_BYTES, "memory is out");
    shared->capacity = conf->ring.count + conf->more_servers;
    shared->servers = calloc(shared->capacity, sizeof *shared->servers);
    if (shared->servers == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < conf->ring.count; i++) {
        const char *address = conf->ring.servers[i].address;
        int rc = add_server(shared, address);
        if (rc == -EINVAL)
            snprintf(why, HG_RING_WHY_BYTES, "'%.80s' is no address of a server", address);
        if (rc != 0)
            return rc;
        if (shared->servers[i].named && shared->resolver == NULL) {
            snprintf(why, HG_RING_WHY_BYTES, "'%.80s' is a name and nobody looks up names",
                     address);
            return -EINVAL;
        }
    }
    return 0;
}

/* A ring that can be built: every worker builds its own of the same configuration. */
static bool try_ring(const struct hg_ring_conf *conf, char *why)
{
    struct hg_ring *ring = hg_ring_new(conf, NULL, why);
    hg_ring_free(ring);
    return ring != NULL;
}

static bool set_up_tls(struct hg_upstream_shared *shared, const struct hg_uptls_conf *conf,
                       char *why)
{
    char tls_why[HG_TLS_WHY_BYTES];
    if (conf == NULL)
        return true;
    shared->uptls = hg_uptls_new(conf, tls_why);
    if (shared->uptls == NULL)
        snprintf(why, HG_RING_WHY_BYTES, "%.*s", HG_RING_WHY_BYTES - 1, tls_why);
    return shared->uptls != NULL;
}

struct hg_upstream_shared *hg_upstream_shared_new(const struct hg_remote_conf *conf,
                                                  struct hg_resolver *resolver, uint32_t workers,
                                                  char why[HG_RING_WHY_BYTES])
{
    if (conf->is_memcached && !try_ring(&conf->ring, why))
        return NULL;
    struct hg_upstream_shared *shared = calloc(1, sizeof *shared);
    if (shared == NULL) {
        snprintf(why, HG_RING_WHY_BYTES, "memory is out");
        return NULL;
    }
    shared->resolver = resolver;
    shared->workers = workers;
    if (getrandom(&shared->cas_seed, sizeof shared->cas_seed, GRND_NONBLOCK) !=
        (ssize_t)sizeof shared->cas_seed)
        shared->cas_seed = hg_now_us() ^ (uint64_t)(uintptr_t)shared;
    if (hg_identities_init(&shared->identities, conf->user, conf->password, conf->database) != 0) {
        snprintf(why, HG_RING_WHY_BYTES, "memory is out");
        free(shared);
        return NULL;
    }
    pthread_mutex_init(&shared->lock, NULL);
    if (hg_relay_ports_init(&shared->relay_ports, workers) != 0 || !copy_conf(shared, conf)) {
        snprintf(why, HG_RING_WHY_BYTES, "memory is out");
        hg_upstream_shared_free(shared);
        return NULL;
    }
    if (set_up_servers(shared, why) != 0 || !set_up_tls(shared, conf->tls, why)) {
        hg_upstream_shared_free(shared);
        return NULL;
    }
    return shared;
}

void hg_upstream_follow(struct hg_upstream_shared *shared, const struct hg_upstream_shared *before)
{
    for (uint32_t i = 0; i < hg_upstream_count_servers(shared); i++)
        for (uint32_t j = 0; j < hg_upstream_count_servers(before); j++)
            if (strcmp(shared->servers[i].address, before->servers[j].address) == 0)
                hg_server_follow(&shared->servers[i], &before->servers[j]);
}

void hg_upstream_shared_free(struct hg_upstream_shared *shared)
{
    if (shared == NULL)
        return;
    for (uint32_t i = 0; i < shared->count; i++)
        hg_server_fini(&shared->servers[i]);
    for (uint32_t i = 0; i < shared->conf.ring.count; i++)
        free((char *)(uintptr_t)shared->ring_servers[i].address);
    free(shared->servers);
    free(shared->ring_servers);
    free((char *)(uintptr_t)shared->conf.name);
    free((char *)(uintptr_t)shared->conf.ring.kind);
    free((char *)(uintptr_t)shared->conf.ring.hash);
    free((char *)(uintptr_t)shared->conf.user);
    free((char *)(uintptr_t)shared->conf.password);
    hg_identities_fini(&shared->identities);
    hg_relay_ports_fini(&shared->relay_ports);
    hg_uptls_free(shared->uptls);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}
