// rediscluster_in - a worker's instance of a Redis Cluster, for the files that make it up
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_REDISCLUSTER_IN_H
#define HG_BACK_REDISCLUSTER_IN_H

#include "back/rediscluster.h"
#include "base/prng.h"
#include "back/slotsask.h"

/* place.index of a call that is in a list of the store's own. */
#define HG_REDISCLUSTER_OWN_LIST UINT32_MAX

struct hg_rediscluster_store {
    struct hg_redis redis;
    struct hg_rediscluster_shared *shared;
    struct hg_rediscluster_counters *counters; /* this worker's */
    struct hg_topology_map map;                /* a copy, with what MOVED has said since */
    struct hg_list early; /* hg_call_place.node: wait until there is a topology */
    uint32_t early_count;
    struct hg_list later; /* the same: were sent away, and go again at place.since_us */
    uint32_t later_count;
    struct hg_hub_wake wake; /* of the early ones */
    struct hg_slotsask ask;
    uint32_t rotation;                   /* whom to ask first is not always the same */
    struct hg_prng dice;                 /* for the waits of calls that were sent away */
    uint32_t changes_seen;               /* upstream->changes */
    uint64_t trouble_seen;               /* see rediscluster_refresh.c */
    uint8_t absent[HG_TOPOLOGY_SERVERS]; /* times in a row that a server was not in the topology */
};

static inline struct hg_rediscluster_store *hg_rediscluster_of(struct hg_remote *remote)
{
    return HG_CONTAINER_OF(remote, struct hg_rediscluster_store, redis.remote);
}

static inline void hg_rediscluster_count(struct hg_rediscluster_store *store,
                                         enum hg_rediscluster_stat stat)
{
    hg_counter_add(&store->counters->values[stat], 1);
}

/* calls (rediscluster.c) */

/* Slot of a call's key, as the servers see it. */
uint32_t hg_rediscluster_slot(const struct hg_rediscluster_store *store,
                              const struct hg_call *call);
/* Refuses a call whose slot nobody serves. */
enum hg_submit hg_rediscluster_refuse_slot(struct hg_rediscluster_store *store,
                                           struct hg_call *call, uint32_t slot);
/* Puts a call in a list of the store's own, and takes it out. */
void hg_rediscluster_put_early(struct hg_rediscluster_store *store, struct hg_call *call);
void hg_rediscluster_put_later(struct hg_rediscluster_store *store, struct hg_call *call,
                               uint64_t due_us);
void hg_rediscluster_leave_list(struct hg_rediscluster_store *store, struct hg_call *call);

/* calls that are sent away (rediscluster_again.c) */

void hg_rediscluster_on_again(struct hg_remote *remote, struct hg_pool *pool, struct hg_link *link,
                              struct hg_call *call, const struct hg_reply *reply);
/* Sends what is due, and answers what has waited too long. */
void hg_rediscluster_tick_later(struct hg_rediscluster_store *store, uint64_t now_us);

/* the topology (rediscluster_refresh.c) */

HG_MUST_USE int hg_rediscluster_refresh_init(struct hg_rediscluster_store *store,
                                             const struct hg_remote_place *place);
void hg_rediscluster_refresh_fini(struct hg_rediscluster_store *store);
/* Copies what has been published. */
void hg_rediscluster_adopt(struct hg_rediscluster_store *store);
/* The server at this address may be sent to; its number, or HG_SLOTS_NONE. */
uint32_t hg_rediscluster_reach(struct hg_rediscluster_store *store, const char *address);
/* Asks, if it is time and this worker's turn. */
void hg_rediscluster_refresh(struct hg_rediscluster_store *store, uint64_t now_us);
/* Looks for reasons to ask. */
void hg_rediscluster_watch(struct hg_rediscluster_store *store);

#endif
