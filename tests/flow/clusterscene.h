// clusterscene - the redis-cluster store in front of a real cluster, and clients that keep a window
// of requests under way
// SPDX-License-Identifier: BSD-3-Clause
#ifndef CLUSTERSCENE_H
#define CLUSTERSCENE_H

#include "clusterd.h"
#include "rig.h"

#include "back/rediscluster.h"
#include "back/rediscluster_in.h"

#define SCENE_WORKERS 2

struct clusterscene {
    struct rig rigs[SCENE_WORKERS];
    struct bench bench;
    struct hg_resolver *resolver;
    struct hg_ring_server seeds[CLUSTERD_NODES];
    struct hg_remote_conf conf;
    struct hg_redis_conf redis;
    struct hg_rediscluster_shared *shared;
    struct hg_store *stores[SCENE_WORKERS];
    uint32_t workers;
};

/* With all nodes of `cluster` as seeds and two workers; change `conf` and `redis` before start. */
void clusterscene_init(struct clusterscene *scene, struct clusterd *cluster);
void clusterscene_start(struct clusterscene *scene);
void clusterscene_fini(struct clusterscene *scene);
uint64_t clusterscene_stat(struct clusterscene *scene, enum hg_rediscluster_stat stat);
/* Turns the loops until the topology of every worker is at least one newer than now. */
void clusterscene_refresh(struct clusterscene *scene);
/* Returns when worker 0 knows this node as the owner of the slot. */
void clusterscene_until_owner(struct clusterscene *scene, struct clusterd *cluster, uint32_t slot,
                              uint32_t node);

/* One call on worker 0; it has been answered, whatever the answer. */
struct note *clusterscene_call(struct clusterscene *scene, enum hg_op op, const char *key,
                               const char *value);
/* A key that lies in the slot, and another for each `number`. */
void clusterscene_key(char key[64], uint32_t slot, unsigned number);

/* What a client asks, one after the other. */
struct step {
    struct hg_call call;
    struct user *user;
    char key[64];
    char value[64];
    bool sent, done;
    enum hg_fault fault;
    uint16_t status;
    size_t got_len;
    char got[512];
};

/* A client: keeps up to `window` steps under way, in order, as a session does. */
struct user {
    struct hg_store *store;
    struct hg_loop *loop;
    struct step *steps;
    int count, next, finished, window;
    int first; /* those before are done */
    struct step *blocked;
    int order_faults; /* steps of one key that were not answered in order */
};

struct step *user_add(struct user *user, enum hg_op op, const char *key, const char *value);
void user_init(struct user *user, struct clusterscene *scene, uint32_t worker, int steps,
               int window);
void user_fini(struct user *user);
/* Sends what the window has room for. */
void user_pump(struct user *user);
static inline bool user_is_done(const struct user *user)
{
    return user->finished == user->count;
}

#endif
