// domain - one worker's connections to one server: a pool for each identity that it is spoken to as
// SPDX-License-Identifier: BSD-3-Clause
//
//   call ─► identity ─► pool (a block) ─► link
//                         │ ▲
//            what happened │ │ make one, take that one, drain it, close it
//                         ▼ │
//                       planner (core/balance): blocks, quotas, moves
//
// All pools of a domain share what the server allows: as many connections as the worker has leased
// (lease.h); a unit is taken before a connect and given back after the close. The planner says
// which pool gets which; this carries it out. A link moves by logging in as somebody else, if the
// dialect can, or by being closed and made anew for the receiver, which keeps its place in the
// count from beginning to end. The planner may be declined: the breaker, or an attempt that is
// under way already, stands in the way; it will say it again.
//
// Pools are made when their identity is first used, and stay; the planner knows those with
// connections, calls that wait, or calls lately (`listed`). While the breaker is not closed quotas
// are frozen. While it is open, pools ask in turn whether the server is back: it may let one in and
// not the other. Belongs to the worker's thread.
#ifndef HG_BACK_DOMAIN_H
#define HG_BACK_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "back/identity.h"
#include "back/pool.h"
#include "back/quarantine.h"
#include "base/attr.h"
#include "base/prng.h"
#include "core/balance.h"

struct hg_domain {
    struct hg_balance balance;
    struct hg_server *server;
    struct hg_hub *hub;
    const struct hg_pool_conf *conf;
    struct hg_resolver *resolver;
    const struct hg_identities *identities;
    uint32_t worker;
    bool draining, closing;
    struct hg_pool *own;    /* of identity 0 */
    struct hg_pool **pools; /* by identity; NULL: not used yet */
    uint32_t pool_cap;
    struct hg_list listed; /* hg_pool.node */
    uint32_t up_count;     /* links that are up, of all pools */
    uint32_t waiting_count;
    uint64_t usual_us; /* moving average of how long a reply takes */
    uint64_t slow_us;  /* a link whose oldest request has waited for longer is slow */
    uint32_t tries;    /* connections made while all were slow, and nothing was answered since */
    uint64_t try_us;   /* then: no other before */
    uint64_t ask_again_us; /* the breaker said: no connect before */
    uint64_t published_us; /* when what is counted of the pools was last shown */
    struct hg_prng prng;   /* for back-offs */
    struct hg_quarantine quarantine;
};

/* 0 or -ENOMEM. `identities` is the upstream's. */
HG_MUST_USE int hg_domain_init(struct hg_domain *domain, struct hg_server *server,
                               const struct hg_identities *identities, struct hg_hub *hub,
                               const struct hg_pool_conf *conf, struct hg_resolver *resolver,
                               uint32_t worker);
/* From now on calls are refused (HG_FAULT_DOWN). */
void hg_domain_close(struct hg_domain *domain);
/* Answers every call (HG_FAULT_LOST), ends every link; after all domains of the store are closed.
 */
void hg_domain_end(struct hg_domain *domain);
/* When it has ended, and nobody submits any more. */
void hg_domain_fini(struct hg_domain *domain);

/* The pool of an identity, made if need be; NULL when memory is out. */
struct hg_pool *hg_domain_pool_slow(struct hg_domain *domain, uint32_t identity);

static inline struct hg_pool *hg_domain_pool(struct hg_domain *domain, uint32_t identity)
{
    if (HG_LIKELY(identity == 0))
        return domain->own;
    if (HG_LIKELY(identity < domain->pool_cap && domain->pools[identity] != NULL))
        return domain->pools[identity];
    return hg_domain_pool_slow(domain, identity);
}

/* As the store's functions of these names; cancel is for calls that wait in a pool's line. */
enum hg_submit hg_domain_submit(struct hg_domain *domain, struct hg_call *call);
void hg_domain_cancel(struct hg_domain *domain, struct hg_call *call);
void hg_domain_drain(struct hg_domain *domain);
/* Takes calls again as if it had never been drained. */
void hg_domain_resume(struct hg_domain *domain);

/* Every 10 ms while it says that it has something to look after, else every second. */
bool hg_domain_tick(struct hg_domain *domain, uint64_t now_us);

/* Requests that the server still owes a reply to, and calls that wait. */
uint32_t hg_domain_pending(const struct hg_domain *domain);
uint32_t hg_domain_waiting(const struct hg_domain *domain);

/* Do calls wait though the worker has no connection, and may make none: the server takes no more
   than others have? */
bool hg_domain_starves(const struct hg_domain *domain);
/* Lets calls that wait for no connection there is come again: the store has another way for them.
 */
void hg_domain_send_away(struct hg_domain *domain);

/* ---- for its pools ---- */

/* The planner is to know the pool. */
void hg_domain_list(struct hg_domain *domain, struct hg_pool *pool);
/* Does what the planner says, as far as it can be done; `steal`: it was asked because of a call. */
void hg_domain_carry_out(struct hg_domain *domain, const struct hg_balance_plan *plan, bool steal);
/* The link has become empty, or came up: it stays, or goes to another pool, or is closed. */
void hg_domain_release(struct hg_domain *domain, struct hg_link *link);
/* A link that was drained and is empty now: if it has not moved, it is its pool's again. */
void hg_domain_take_back(struct hg_domain *domain, struct hg_link *link);
/* The planner learns in which state the breaker is. */
void hg_domain_heed_breaker(struct hg_domain *domain);
/* Connections that the worker may have now, of whatever kind. */
uint32_t hg_domain_limit(const struct hg_domain *domain);
/* The planner learns how many of these are its. */
void hg_domain_heed_lease(struct hg_domain *domain);
/* May a connection be made, as far as the breaker is concerned? Then it counts it: *ret_how. */
HG_MUST_USE bool hg_domain_ask_breaker(struct hg_domain *domain, uint64_t now_us,
                                       enum hg_breaker_connect *ret_how);
/* Are others up or in the making beside one that has been allowed, so that it must answer something
   before it is used, which it does as `identity` not by logging in? */
bool hg_domain_is_further(const struct hg_domain *domain, const struct hg_identity *identity);
/* Can a connection become `to`'s without being closed? */
bool hg_domain_can_rebind(const struct hg_domain *domain, const struct hg_pool *to);
/* Shows how many connections are up. */
void hg_domain_show_up(const struct hg_domain *domain);
void hg_domain_count_waiting(struct hg_domain *domain, int n);
/* A unit of the server's connections, before a connect, and after the close. */
HG_MUST_USE bool hg_domain_take_unit(struct hg_domain *domain);
void hg_domain_put_unit(struct hg_domain *domain);

#endif
