// remote - what a worker's stores that consist of servers have in common
// SPDX-License-Identifier: BSD-3-Clause
//
//   hg_upstream_shared   one for the process: servers with their breakers, identities, counters
//     └ hg_remote        one for each worker: hub, a domain for each server, the timer, ties
//         └ part of hg_memcached_store, hg_redis_store ...: which server, in what words
//
// Belongs to the worker's thread.
#ifndef HG_BACK_REMOTE_H
#define HG_BACK_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "back/domain.h"
#include "back/hub.h"
#include "back/relay.h"
#include "back/store.h"
#include "back/tie.h"
#include "back/upstream.h"
#include "base/attr.h"

/* Where a worker's instance of a store lives. */
struct hg_remote_place {
    struct hg_loop *loop;
    struct hg_mailbox *mailbox;
    struct hg_blobs *blobs;
    struct hg_out_pool *outs;
    uint32_t worker;
    uint32_t share; /* connections to each server that it may lease at most; at least 1 */
};

/* What a kind of store is. */
struct hg_remote_kind {
    const struct hg_dialect *dialect;
    /* See hg_pool_conf; may be NULL. */
    void (*on_again)(struct hg_remote *remote, struct hg_pool *pool, struct hg_link *link,
                     struct hg_call *call, const struct hg_reply *reply);
    /* The store's own, with each tick; true while it has something to look after soon. May be NULL.
     */
    bool (*on_tick)(struct hg_remote *remote, uint64_t now_us);
    /* Does a flush go to this server? NULL: to all. */
    bool (*is_flushed)(const struct hg_remote *remote, uint32_t server);
};

struct hg_remote {
    struct hg_store base;
    struct hg_upstream_shared *shared;
    const struct hg_remote_kind *kind;
    bool busy;       /* the timer runs fast */
    bool stalled;    /* the last tick was left out, since it came very late */
    uint64_t due_us; /* when a busy tick is due */
    bool draining, closing;
    bool relayed; /* some servers are other workers' */
    uint32_t worker;
    uint32_t count;            /* domains */
    struct hg_domain *domains; /* by the server's number; room for shared->capacity */
    struct hg_hub hub;
    struct hg_ties ties;
    struct hg_relay relay;
    struct hg_pool_conf pool_conf;
    struct hg_timer timer;
};

/* Sets up a zeroed struct, with a domain for each server there is. 0 or -ENOMEM; then nothing is
   left. */
HG_MUST_USE int hg_remote_init(struct hg_remote *remote, const struct hg_store_ops *ops,
                               const struct hg_remote_kind *kind, struct hg_upstream_shared *shared,
                               const struct hg_remote_place *place);
/* Answers every pending and waiting call (HG_FAULT_LOST), closes everything. */
void hg_remote_fini(struct hg_remote *remote);

/* Makes domains for the servers that have come since. False when memory is out. */
HG_MUST_USE bool hg_remote_grow(struct hg_remote *remote);

/* Is the tick overdue, so that servers may have answered what was not read yet? */
bool hg_remote_is_behind(const struct hg_remote *remote, uint64_t now_us);

/* Lets the timer run fast: something is under way. */
void hg_remote_get_busy(struct hg_remote *remote);

/* submit for one server. */
static inline enum hg_submit hg_remote_submit(struct hg_remote *remote, uint32_t server,
                                              struct hg_call *call)
{
    call->place.store = &remote->base;
    if (HG_UNLIKELY(!remote->busy))
        hg_remote_get_busy(remote);
    if (HG_UNLIKELY(remote->relayed) && hg_relay_takes(&remote->relay, server, call))
        return hg_relay_submit(&remote->relay, server, call);
    return hg_domain_submit(&remote->domains[server], call);
}

/* Answers the call with a fault, before it is on a link. */
enum hg_submit hg_remote_refuse(struct hg_call *call, enum hg_fault fault, struct hg_span text,
                                const char *server);

/* The store's functions, for its table. cancel: of calls that went through hg_remote_submit, or
   wait for another. */
void hg_remote_cancel(struct hg_store *store, struct hg_call *call);
void hg_remote_drain(struct hg_store *store);
bool hg_remote_drained(struct hg_store *store);
const char *hg_remote_server_name(struct hg_store *store, uint32_t server);
uint32_t hg_remote_width(struct hg_store *store, uint32_t server);

/* New time-outs, from now on. */
void hg_remote_set_times(struct hg_store *store, const struct hg_remote_times *times);

static inline struct hg_remote *hg_remote_of(struct hg_store *store)
{
    return HG_CONTAINER_OF(store, struct hg_remote, base);
}

#endif
