// domain - one worker's connections to one server: a pool for each identity that it is spoken to as
// SPDX-License-Identifier: BSD-3-Clause
//
//   call ─► identity ─► pool (a block) ─► link
//
// All pools of a domain share what the server allows: the worker's part of its connections. Pools
// are made when their identity is first used. Belongs to the worker's thread.
#ifndef HG_BACK_DOMAIN_H
#define HG_BACK_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "back/identity.h"
#include "back/pool.h"
#include "base/attr.h"

struct hg_domain {
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

#endif
