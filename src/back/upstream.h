// upstream - the servers of an upstream, as the whole process shares them
// SPDX-License-Identifier: BSD-3-Clause
//
// Configuration, servers with their breakers, identities, counters. Made before the workers'
// stores, freed after them; what changes in it is in struct hg_server, and that servers may be
// added.
#ifndef HG_BACK_UPSTREAM_H
#define HG_BACK_UPSTREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "back/identity.h"
#include "back/relay_port.h"
#include "back/resolve.h"
#include "back/ring.h"
#include "back/server.h"
#include "back/uptls.h"
#include "base/attr.h"

/* What may change while the process runs. */
struct hg_remote_times {
    uint32_t connect_timeout_ms;
    uint32_t backend_timeout_ms;
    uint32_t queue_timeout_ms;
    uint32_t reconnect_max_ms;
};

struct hg_remote_conf {
    const char *name;         /* of the upstream */
    struct hg_ring_conf ring; /* servers; with memcached how keys are spread over them */
    bool is_memcached;        /* there is a ring */
    uint16_t default_port;
    uint32_t more_servers; /* that may be added later */
    const char *user;      /* the upstream's own identity, see identity.h */
    const char *password;
    uint32_t database;
    bool redis_plain; /* Redis: strings are bare values, as Redis clients share them */
    bool ranges;      /* Redis: tables can be read in order of rows */
    struct hg_remote_times times;
    uint32_t pool_depth;           /* requests without a reply on a connection */
    uint64_t pool_max_bytes;       /* of requests without a reply on a connection */
    uint32_t pool_max_connections; /* to a server, of the whole process */
    uint32_t pool_min_hold_ms;     /* a connection stays with its identity for at least this */
    uint32_t pool_idle_timeout_s;
    uint32_t pool_queue_max;  /* calls of a worker, for each identity, that may wait for a server */
    uint32_t max_reply_bytes; /* a longer reply is no reply */
    uint32_t keepalive_s;
    bool eject_servers;
    const struct hg_uptls_conf *tls; /* NULL: plain connections; not looked at later */
};

struct hg_upstream_shared {
    struct hg_remote_conf conf; /* owns its strings */
    struct hg_resolver *resolver;
    _Atomic uint32_t changes; /* grows when a server goes out or comes back */
    pthread_mutex_t lock;     /* for adding servers */
    _Atomic uint32_t count;   /* servers; those below are there */
    uint32_t capacity;        /* room for so many */
    uint32_t workers;
    struct hg_server *servers;
    struct hg_ring_server *ring_servers;
    struct hg_identities identities;
    struct hg_relay_ports relay_ports;
    struct hg_uptls *uptls; /* NULL: plain connections */
    uint64_t cas_seed;      /* random: of CAS values that are made here, see redis.h */
};

/* Every default, of memcached; name and servers are left empty. */
void hg_remote_conf_init(struct hg_remote_conf *conf);

/* Copies the configuration. `resolver` looks up names and lives longer; NULL if there are none.
   On an error NULL and in `why` what is wrong. */
HG_MUST_USE struct hg_upstream_shared *hg_upstream_shared_new(const struct hg_remote_conf *conf,
                                                              struct hg_resolver *resolver,
                                                              uint32_t workers,
                                                              char why[HG_RING_WHY_BYTES]);
/* A server at this address, known or added; from any thread. 0, -ENOMEM, -EINVAL when it is no
   address, -ENOSPC when there is no room. */
HG_MUST_USE int hg_upstream_add_server(struct hg_upstream_shared *shared, const char *address,
                                       uint32_t *ret_index);

/* The upstream takes the place of `before`, and nobody uses it yet: servers that are out there are
   out here, until a probe says otherwise. */
void hg_upstream_follow(struct hg_upstream_shared *shared, const struct hg_upstream_shared *before);

static inline uint32_t hg_upstream_count_servers(const struct hg_upstream_shared *shared)
{
    return atomic_load_explicit(&((struct hg_upstream_shared *)(uintptr_t)shared)->count,
                                memory_order_acquire);
}

/* After every worker's store. */
void hg_upstream_shared_free(struct hg_upstream_shared *shared);

#endif
