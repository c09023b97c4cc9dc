// pool_connect - the connections of a pool: when one may be made, and making it
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "back/local.h"
#include "back/pool_in.h"

#define ASK_AGAIN_US   10000 /* when only somebody else's outcome helps */
#define ASK_LATEST_US  20000 /* the breaker may change its mind: others tell it things, too */
#define ADDRS_FRESH_US 1000000u
#define DENIED_MIN_US  1000000u  /* the first wait after a refused login is up to that, */
#define DENIED_MAX_US  60000000u /* the next ones up to twice the one before, and this */

bool hg_pool_all_waited(const struct hg_pool *pool, uint64_t limit_us)
{
    uint64_t now_us = pool->hub->loop->now_us;
    for (uint32_t i = 0; i < pool->link_count; i++) {
        const struct hg_link *link = pool->links[i];
        if ((link->state == HG_LINK_READY || link->state == HG_LINK_DRAINING) &&
            hg_link_waited_us(link, now_us) < limit_us)
            return false;
    }
    return true;
}

/* Does no link of the domain get answers as usual? Then a pool that has none may find out for
   itself, if nobody else is about to. */
static bool is_stuck(const struct hg_pool *pool)
{
    struct hg_domain *domain = pool->domain;
    uint64_t limit_us = hg_domain_slow_us(domain);
    if (domain->up_count == 0)
        return false;
    bool is_tried = pool->up_count > 0;
    HG_LIST_EACH(node, &domain->listed)
    {
        const struct hg_pool *other = hg_pool_of_node(node);
        is_tried |= other->block.coming > 0;
        if (!hg_pool_all_waited(other, limit_us))
            return false;
    }
    return is_tried;
}

/* Is it open whether another link would be of use? All are stuck, or were when the last one was
   made, and nothing was answered as usual since. */
static bool is_doubtful(const struct hg_pool *pool)
{
    return (pool->domain->tries > 0 && pool->up_count > 0) || is_stuck(pool);
}

bool hg_pool_make_room(struct hg_pool *pool)
{
    if (pool->link_count < pool->link_cap)
        return true;
    uint32_t cap = pool->link_cap == 0 ? 4 : pool->link_cap * 2;
    struct hg_link **links = realloc(pool->links, cap * sizeof(struct hg_link *));
    if (links == NULL)
        return false;
    pool->links = links;
    pool->link_cap = cap;
    return true;
}

struct hg_link *hg_pool_add_link(struct hg_pool *pool)
{
    if (!hg_pool_make_room(pool))
        return NULL;
    struct hg_link *link = hg_link_new(pool->hub, pool->conf->dialect, &pool->conf->link,
                                       &hg_pool_link_owner, pool, pool->counters);
    if (link == NULL)
        return NULL;
    link->server = pool->server->address;
    link->uptls = pool->conf->uptls;
    link->host = pool->server->host;
    link->keepalive_s = pool->conf->keepalive_s;
    link->identity = pool->identity;
    link->pool_index = pool->link_count;
    pool->links[pool->link_count++] = link;
    return link;
}

static void on_resolved(struct hg_resolve *resolve, void *asker)
{
    struct hg_pool *pool = asker;
    pool->resolve = NULL;
    if (resolve->error != 0) {
        enum hg_link_why why = hg_local_is(resolve->error) ? HG_LINK_LOCAL : HG_LINK_NO_CONNECT;
        hg_link_end(pool->coming, why, resolve->error);
        return;
    }
    hg_server_put_addrs(pool->server, &resolve->addrs, pool->hub->loop->now_us);
    if (!hg_server_get_addrs(pool->server, 0, &pool->addrs))
        pool->addrs = resolve->addrs;
    hg_link_connect(pool->coming, &pool->addrs, pool->coming->probe);
}

/* Connects pool->coming: at once if the address is known, else when its name has been looked up.
   While other links are up, where they lead to is good enough. After a failure a connection proves
   little: a kernel makes them for a process that hangs. So it must answer something first; so must
   a further one, beside others that are up or in the making, since a server that takes no more may
   let it wait, or close it, and those whose calls were on it could have had another; and over TLS
   in any case: that it wants another certificate than it was shown, or any, a server says (in
   version 1.3) when the handshake is over. */
static void connect_coming(struct hg_pool *pool)
{
    bool probe = pool->coming_kind == HG_BREAKER_PROBE || pool->in_doubt ||
                 pool->conf->uptls != NULL || hg_domain_is_further(pool->domain, pool->identity);
    uint64_t now_us = pool->hub->loop->now_us;
    uint64_t since_us = now_us > ADDRS_FRESH_US ? now_us - ADDRS_FRESH_US : 0;
    pool->coming->probe = probe;
    if (hg_server_get_addrs(pool->server, pool->domain->up_count > 0 ? 0 : since_us,
                            &pool->addrs)) {
        hg_link_connect(pool->coming, &pool->addrs, probe);
        return;
    }
    if (pool->resolver != NULL)
        pool->resolve =
            hg_resolve_submit(pool->resolver, pool->server->address, pool->server->default_port,
                              pool->hub->mailbox, on_resolved, pool);
    if (pool->resolve == NULL)
        hg_link_end(pool->coming, HG_LINK_LOCAL, -ENOMEM);
}

bool hg_domain_is_further(const struct hg_domain *domain, const struct hg_identity *identity)
{
    const struct hg_dialect *dialect = domain->conf->dialect;
    return hg_breaker_beside(&domain->server->breaker) > 0 &&
           !dialect->has_login(dialect, identity);
}

bool hg_domain_ask_breaker(struct hg_domain *domain, uint64_t now_us,
                           enum hg_breaker_connect *ret_how)
{
    uint64_t next_us, latest_us = now_us + ASK_LATEST_US;
    if (now_us < domain->ask_again_us)
        return false;
    *ret_how = hg_server_take_connect(domain->server, domain->worker, now_us, &next_us);
    if (*ret_how != HG_BREAKER_WAIT)
        return true;
    domain->ask_again_us = next_us <= now_us || next_us == UINT64_MAX ? now_us + ASK_AGAIN_US
                           : next_us < latest_us                      ? next_us
                                                                      : latest_us;
    return false;
}

bool hg_pool_may_connect(struct hg_pool *pool, enum hg_breaker_connect *ret_how)
{
    struct hg_domain *domain = pool->domain;
    uint64_t now_us = pool->hub->loop->now_us;
    if (pool->coming != NULL || pool->draining || pool->closing || pool->denied ||
        now_us < domain->ask_again_us)
        return false;
    bool doubtful = !pool->hung && is_doubtful(pool);
    if ((doubtful && !hg_domain_may_try(domain, now_us)) ||
        !hg_domain_ask_breaker(domain, now_us, ret_how))
        return false;
    if (doubtful)
        hg_domain_note_try(domain, now_us);
    return true;
}

void hg_pool_abandon(struct hg_pool *pool, enum hg_breaker_connect how)
{
    hg_server_tell_abandoned(pool->server, pool->worker, how, pool->hub->loop->now_us);
    pool->domain->ask_again_us = pool->hub->loop->now_us + ASK_AGAIN_US;
}

void hg_pool_begin(struct hg_pool *pool, struct hg_link *link, enum hg_breaker_connect how)
{
    if (how == HG_BREAKER_PROBE)
        hg_upstream_count(pool->counters, HG_UPSTREAM_PROBES, 1);
    pool->coming = link;
    pool->coming_kind = how;
    connect_coming(pool);
}

void hg_pool_connect(struct hg_pool *pool)
{
    struct hg_domain *domain = pool->domain;
    enum hg_breaker_connect how;
    if (!hg_domain_take_unit(domain))
        return;
    if (!hg_pool_may_connect(pool, &how)) {
        hg_domain_put_unit(domain);
        return;
    }
    struct hg_link *link = hg_pool_add_link(pool);
    if (link == NULL) {
        hg_pool_abandon(pool, how);
        hg_domain_put_unit(domain);
        return;
    }
    hg_domain_list(domain, pool);
    hg_balance_conn_add(&domain->balance, &link->conn, &pool->block, pool->hub->loop->now_us);
    hg_pool_begin(pool, link, how);
}

/* Full jitter: workers and tenants that were refused together do not come back together. */
void hg_pool_deny(struct hg_pool *pool)
{
    struct hg_domain *domain = pool->domain;
    uint64_t most_us = pool->denials < 6 ? (uint64_t)DENIED_MIN_US << pool->denials : DENIED_MAX_US;
    pool->denials++;
    pool->totals.rejected++;
    pool->denied = true;
    pool->denied_password = pool->identity->password;
    pool->denied_until_us =
        pool->hub->loop->now_us + hg_prng_below(&domain->prng, (uint32_t)most_us + 1);
    if (pool->listed)
        hg_balance_block_bar(&domain->balance, &pool->block, true);
}

void hg_pool_check_denial(struct hg_pool *pool)
{
    if (!pool->denied || (pool->hub->loop->now_us < pool->denied_until_us &&
                          pool->identity->password == pool->denied_password))
        return;
    pool->denied = false;
    if (pool->listed)
        hg_balance_block_bar(&pool->domain->balance, &pool->block, false);
}
