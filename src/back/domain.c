// domain - one worker's connections to one server: a pool for each identity that it is spoken to as
// SPDX-License-Identifier: BSD-3-Clause
#include "back/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hg_domain_init(struct hg_domain *domain, struct hg_server *server,
                   const struct hg_identities *identities, struct hg_hub *hub,
                   const struct hg_pool_conf *conf, struct hg_resolver *resolver, uint32_t worker)
{
    memset(domain, 0, sizeof *domain);
    domain->server = server;
    domain->hub = hub;
    domain->conf = conf;
    domain->resolver = resolver;
    domain->identities = identities;
    domain->worker = worker;
    domain->own = hg_domain_pool_slow(domain, 0);
    return domain->own != NULL ? 0 : -ENOMEM;
}

static bool make_room(struct hg_domain *domain, uint32_t identity)
{
    if (identity < domain->pool_cap)
        return true;
    uint32_t cap = domain->pool_cap == 0 ? 1 : domain->pool_cap;
    while (cap <= identity)
        cap *= 2;
    struct hg_pool **pools = realloc(domain->pools, cap * sizeof(struct hg_pool *));
    if (pools == NULL)
        return false;
    memset(pools + domain->pool_cap, 0, (cap - domain->pool_cap) * sizeof(struct hg_pool *));
    domain->pools = pools;
    domain->pool_cap = cap;
    return true;
}

struct hg_pool *hg_domain_pool_slow(struct hg_domain *domain, uint32_t identity)
{
    if (!make_room(domain, identity))
        return NULL;
    struct hg_pool *pool = domain->pools[identity];
    if (pool != NULL)
        return pool;
    pool = malloc(sizeof *pool);
    if (pool == NULL)
        return NULL;
    hg_pool_init(pool, domain->server, hg_identities_at(domain->identities, identity), domain->hub,
                 domain->conf, domain->resolver, domain->worker);
    pool->closing = domain->closing;
    pool->draining = domain->draining;
    domain->pools[identity] = pool;
    return pool;
}

enum hg_submit hg_domain_submit(struct hg_domain *domain, struct hg_call *call)
{
    struct hg_pool *pool = hg_domain_pool(domain, call->identity);
    if (HG_LIKELY(pool != NULL))
        return hg_pool_submit(pool, call);
    const struct hg_result result = {.fault = HG_FAULT_MEMORY, .server = domain->server->address};
    hg_tie_end(call);
    call->on_done(call, &result);
    return HG_SUBMIT_TAKEN;
}

void hg_domain_cancel(struct hg_domain *domain, struct hg_call *call)
{
    hg_pool_cancel(domain->pools[call->identity], call);
}

void hg_domain_drain(struct hg_domain *domain)
{
    domain->draining = true;
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] != NULL)
            hg_pool_drain(domain->pools[i]);
    }
}

void hg_domain_resume(struct hg_domain *domain)
{
    domain->draining = false;
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] != NULL)
            domain->pools[i]->draining = false;
    }
}

bool hg_domain_tick(struct hg_domain *domain, uint64_t now_us)
{
    bool busy = false;
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] != NULL)
            busy |= hg_pool_tick(domain->pools[i], now_us);
    }
    return busy;
}

uint32_t hg_domain_pending(const struct hg_domain *domain)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < domain->pool_cap; i++)
        n += domain->pools[i] != NULL ? hg_pool_pending(domain->pools[i]) : 0;
    return n;
}

uint32_t hg_domain_waiting(const struct hg_domain *domain)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < domain->pool_cap; i++)
        n += domain->pools[i] != NULL ? domain->pools[i]->waiting_count : 0;
    return n;
}

void hg_domain_close(struct hg_domain *domain)
{
    domain->closing = true;
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] != NULL)
            domain->pools[i]->closing = true;
    }
}

void hg_domain_end(struct hg_domain *domain)
{
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] != NULL)
            hg_pool_fini(domain->pools[i]);
    }
}

void hg_domain_fini(struct hg_domain *domain)
{
    for (uint32_t i = 0; i < domain->pool_cap; i++)
        free(domain->pools[i]);
    free(domain->pools);
    domain->pools = NULL;
    domain->pool_cap = 0;
}
