// topology - who owns which slots of a Redis Cluster, as the whole process knows it
// SPDX-License-Identifier: BSD-3-Clause
//
//   some worker: wants ─► take: it is the one to ask ─► CLUSTER SLOTS ─► publish ─► version grows
//   every worker: version has grown? copy the owners, then note in the copy what MOVED says
//
// Servers are numbers of the upstream's (hg_upstream_add_server). One worker at a time asks for
// all. It is asked at the start, when somebody wants it to be, and every 30 s; at most once in 100
// ms, and less often, down to twice a second, while nothing comes of it: what is wanted meanwhile
// is kept, so that the last change is seen. The owners that were published are never changed in
// place for a reader: they are copied under a lock, off the request path. Any thread.
#ifndef HG_BACK_TOPOLOGY_H
#define HG_BACK_TOPOLOGY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "back/slotsreply.h"
#include "base/attr.h"
#include "proto/keyslot.h"

#define HG_TOPOLOGY_SERVERS  2048 /* highest number of a server and one */
#define HG_TOPOLOGY_EVERY_US 30000000u
#define HG_TOPOLOGY_LEAST_US 100000u
#define HG_TOPOLOGY_MOST_US  500000u

/* The owners, and which servers are part of the cluster at all. */
struct hg_topology_map {
    uint32_t version;                        /* 0: nobody has said anything yet */
    uint32_t uncovered;                      /* slots without an owner */
    uint16_t owner[HG_KEYSLOTS];             /* number of a server, or HG_SLOTS_NONE */
    uint8_t member[HG_TOPOLOGY_SERVERS / 8]; /* bits: owners and replicas */
    uint8_t owns[HG_TOPOLOGY_SERVERS / 8];   /* bits: owners */
};

static inline bool hg_topology_bit(const uint8_t *bits, uint32_t server)
{
    return bits[server / 8] >> server % 8 & 1;
}

struct hg_topology {
    _Atomic uint32_t version; /* of `map` */
    _Atomic bool wanted;
    pthread_mutex_t lock; /* for all that follows */
    struct hg_topology_map map;
    bool asking;
    uint64_t asked_us; /* when the last question began; 0: never */
    uint64_t pause_us; /* before the next one */
    uint32_t hint;     /* server that a MOVED named last: it knows; HG_SLOTS_NONE: none */
    char why[HG_REDIRECT_ADDRESS + HG_SLOTSREPLY_WHY + 32]; /* of the last failure; "": none */
};

void hg_topology_init(struct hg_topology *topology);
void hg_topology_fini(struct hg_topology *topology);

static inline uint32_t hg_topology_version(const struct hg_topology *topology)
{
    return atomic_load_explicit(&((struct hg_topology *)(uintptr_t)topology)->version,
                                memory_order_acquire);
}

/* Something has changed: it is to be asked again. `hint`: a server that may know, or
   HG_SLOTS_NONE. */
void hg_topology_want(struct hg_topology *topology, uint32_t hint);
/* Is it time to ask? Then the caller is the one to do so, and tells the outcome. */
HG_MUST_USE bool hg_topology_take(struct hg_topology *topology, uint64_t now_us);
/* The caller does not ask after all. */
void hg_topology_abandon(struct hg_topology *topology);
/* Nobody answered. */
void hg_topology_tell_failed(struct hg_topology *topology, const char *why);
/* `slots` is how it is, number_of[n] the number of its node n, or HG_SLOTS_NONE. True when that is
   news. */
bool hg_topology_publish(struct hg_topology *topology, const struct hg_slots *slots,
                         const uint16_t *number_of);

void hg_topology_copy(struct hg_topology *topology, struct hg_topology_map *ret);
/* Server that was named last as one that may know, or HG_SLOTS_NONE. */
uint32_t hg_topology_hint(struct hg_topology *topology);
void hg_topology_why(struct hg_topology *topology, char *ret_why, size_t room);

#endif
