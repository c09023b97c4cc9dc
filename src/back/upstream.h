// upstream - the servers of a memcached upstream, as the whole process shares them
// SPDX-License-Identifier: BSD-3-Clause
//
// Configuration, servers with their breakers, counters. Made before the workers' stores, freed
// after them; what changes in it is in struct hg_server.
#ifndef HG_BACK_UPSTREAM_H
#define HG_BACK_UPSTREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "back/resolve.h"
#include "back/ring.h"
#include "back/server.h"
#include "base/attr.h"

/* What may change while the process runs. */
struct hg_memcached_times {
    uint32_t connect_timeout_ms;
    uint32_t backend_timeout_ms;
    uint32_t queue_timeout_ms;
    uint32_t reconnect_max_ms;
};

struct hg_memcached_conf {
    const char *name;         /* of the upstream */
    struct hg_ring_conf ring; /* servers, kind, hash */
    struct hg_memcached_times times;
    uint32_t pool_depth;           /* requests without a reply on a connection */
    uint64_t pool_max_bytes;       /* of requests without a reply on a connection */
    uint32_t pool_max_connections; /* to a server, of the whole process */
    uint32_t pool_idle_timeout_s;
    uint32_t pool_queue_max;  /* calls of a worker that may wait for a server */
    uint32_t max_reply_bytes; /* a longer reply is no reply */
    uint32_t keepalive_s;
    bool eject_servers;
};

struct hg_upstream_shared {
    struct hg_memcached_conf conf; /* owns its strings */
    struct hg_resolver *resolver;
    _Atomic uint32_t changes; /* grows when a server goes out or comes back */
    uint32_t count;
    struct hg_server *servers;
    struct hg_ring_server *ring_servers;
};

/* Every default; name and servers are left empty. */
void hg_memcached_conf_init(struct hg_memcached_conf *conf);

/* Copies the configuration. `resolver` looks up names and lives longer; NULL if there are none.
   On an error NULL and in `why` what is wrong. */
HG_MUST_USE struct hg_upstream_shared *hg_upstream_shared_new(const struct hg_memcached_conf *conf,
                                                              struct hg_resolver *resolver,
                                                              uint32_t workers,
                                                              char why[HG_RING_WHY_BYTES]);
/* After every worker's store. */
void hg_upstream_shared_free(struct hg_upstream_shared *shared);

#endif
