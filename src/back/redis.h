// redis - a store in Redis: one server, or the common part of one that is a cluster
// SPDX-License-Identifier: BSD-3-Clause
//
//   submit ─► refused by the layout? ─► behind an earlier call? ─► kept? ─► route ─► pool ─► link
//                                                                              ▲         │ NOSCRIPT
//                                                                              └─ again ─┘
//
// Redis 6.2 or newer. CAS values are made here: a sequence that begins at random and never repeats
// within a process, never 0 nor the CAS that no item has. A call that the server may ask for again
// (a script; on a cluster any) is kept until it is answered, and a call of the same client for the
// same key waits for it, unless both only read; all others are pipelined. Nothing is kept for
// single commands on a single server. Worker's thread only.
#ifndef HG_BACK_REDIS_H
#define HG_BACK_REDIS_H

#include "back/redis_dialect.h"
#include "back/redis_range.h"
#include "back/remote.h"
#include "base/attr.h"
#include "base/prng.h"
#include "base/slab.h"

#define HG_REDIS_AGAIN_MAX 8 /* times that a call is said again */

struct hg_redis {
    struct hg_remote remote;
    struct hg_remote_kind kind;
    struct hg_redis_dialect dialect;
    struct hg_prng cas;
    struct hg_slab ranges; /* struct hg_redis_range */
    bool all_again;        /* the server may ask for any call again, not just for scripts */
    /* Submits a call to its server. */
    enum hg_submit (*route)(struct hg_redis *redis, struct hg_call *call);
};

/* What a kind of store made of this has of its own; functions may be NULL but for `route`. */
struct hg_redis_kind {
    const struct hg_store_ops *ops;
    bool all_again;
    enum hg_submit (*route)(struct hg_redis *redis, struct hg_call *call);
    void (*on_again)(struct hg_remote *remote, struct hg_pool *pool, struct hg_link *link,
                     struct hg_call *call, const struct hg_reply *reply);
    bool (*on_tick)(struct hg_remote *remote, uint64_t now_us);
};

/* Sets up a zeroed struct. 0, -ENOMEM or -ENOSYS; then nothing is left. */
HG_MUST_USE int hg_redis_init(struct hg_redis *redis, const struct hg_redis_kind *kind,
                              struct hg_upstream_shared *shared,
                              const struct hg_remote_place *place,
                              const struct hg_redis_conf *conf);
/* Answers every call, closes everything. */
void hg_redis_fini(struct hg_redis *redis);

/* The store's function. */
enum hg_submit hg_redis_submit(struct hg_store *store, struct hg_call *call);

/* Says a call again on the link that asked for it, a script in full. */
void hg_redis_say_again(struct hg_redis *redis, struct hg_link *link, struct hg_call *call);
/* Answers a call that is not said again with what the server said. */
void hg_redis_settle(struct hg_redis *redis, struct hg_pool *pool, struct hg_link *link,
                     struct hg_call *call, const struct hg_reply *reply);

static inline struct hg_redis *hg_redis_of(struct hg_store *store)
{
    return HG_CONTAINER_OF(store, struct hg_redis, remote.base);
}

/* A worker's instance of a store with one server. NULL when memory is out. */
HG_MUST_USE struct hg_store *hg_redis_store_new(struct hg_upstream_shared *shared,
                                                const struct hg_remote_place *place,
                                                const struct hg_redis_conf *conf);

#endif
