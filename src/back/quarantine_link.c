// quarantine_link - a connection for requests that are likely to take long: making and losing it
// SPDX-License-Identifier: BSD-3-Clause
#include "back/quarantine_in.h"

#include <errno.h>
#include <string.h>

#include "back/remote.h"
#include "base/log.h"

static struct hg_pool *pool_of(const struct hg_quarantine *quarantine)
{
    const struct hg_identity *identity = quarantine->link->identity;
    return hg_domain_pool(quarantine->domain, identity->id);
}

static void show(const struct hg_quarantine *quarantine)
{
    const struct hg_domain *domain = quarantine->domain;
    struct hg_upstream_counters *counters = &domain->server->counters[domain->worker];
    hg_counter_set(&counters->values[HG_UPSTREAM_QUARANTINE], hg_quarantine_is_up(quarantine));
    hg_domain_show_up(domain);
}

/* ---- units ---- */

uint32_t hg_quarantine_units(const struct hg_quarantine *quarantine)
{
    bool is_used = quarantine->has_unit || quarantine->waiting_count > 0;
    return is_used && hg_domain_limit(quarantine->domain) >= 2;
}

static void put_unit(struct hg_quarantine *quarantine)
{
    if (!quarantine->has_unit)
        return;
    quarantine->has_unit = false;
    hg_domain_put_unit(quarantine->domain);
}

/* What others lose if the link takes nothing new. A slow one does not anyway. */
static uint32_t loss_of(const struct hg_link *link)
{
    uint32_t pending = hg_link_pending(link);
    return pending == 0 ? 0 : link->slow ? 1 : 1 + pending;
}

/* The connection that is most easily done without: of a pool that has others if possible, with few
   requests. NULL also when one is about to end already. */
static struct hg_link *find_victim(const struct hg_domain *domain)
{
    struct hg_link *best = NULL;
    bool best_is_last = true;
    HG_LIST_EACH(node, (struct hg_list *)(uintptr_t)&domain->listed)
    {
        const struct hg_pool *pool = hg_pool_of_node(node);
        bool is_last = pool->up_count <= 1;
        for (uint32_t i = 0; i < pool->link_count; i++) {
            struct hg_link *link = pool->links[i];
            if (link->state == HG_LINK_DRAINING)
                return NULL;
            if (!hg_pool_link_is_open(link) || (is_last && !best_is_last))
                continue;
            if (best == NULL || (best_is_last && !is_last) || loss_of(link) < loss_of(best)) {
                best = link;
                best_is_last = is_last;
            }
        }
    }
    return best;
}

/* Takes one, or sees to it that one comes free. */
static bool take_unit(struct hg_quarantine *quarantine)
{
    struct hg_domain *domain = quarantine->domain;
    if (quarantine->has_unit)
        return true;
    hg_domain_heed_lease(domain); /* the planner leaves one from now on */
    if (domain->balance.total < hg_domain_limit(domain)) {
        quarantine->has_unit = hg_lease_take(&domain->server->lease, domain->worker);
        return quarantine->has_unit;
    }
    struct hg_link *victim = find_victim(domain);
    if (victim != NULL)
        hg_pool_let_go(victim);
    return false;
}

/* ---- making it ---- */

/* Asks the breaker; false: not now. */
static bool may_connect(struct hg_quarantine *quarantine)
{
    struct hg_domain *domain = quarantine->domain;
    uint64_t now_us = domain->hub->loop->now_us;
    if (domain->draining || domain->closing || !hg_server_may_send(domain->server))
        return false;
    return hg_domain_ask_breaker(domain, now_us, &quarantine->coming_kind);
}

static void begin(struct hg_quarantine *quarantine, struct hg_pool *pool)
{
    struct hg_domain *domain = quarantine->domain;
    struct hg_link *link = NULL;
    if (!take_unit(quarantine))
        return;
    if (!may_connect(quarantine)) {
        put_unit(quarantine);
        return;
    }
    quarantine->limits = domain->conf->link;
    quarantine->limits.depth = 1;
    /* Where the others lead to is good enough; without any its name has not been looked up. */
    if (quarantine->coming_kind != HG_BREAKER_PROBE &&
        hg_server_get_addrs(domain->server, 0, &quarantine->addrs))
        link = hg_link_new(domain->hub, domain->conf->dialect, &quarantine->limits,
                           &hg_quarantine_link_owner, quarantine, pool->counters);
    if (link == NULL) {
        hg_pool_abandon(pool, quarantine->coming_kind);
        put_unit(quarantine);
        return;
    }
    link->server = domain->server->address;
    link->uptls = domain->conf->uptls;
    link->host = domain->server->host;
    link->keepalive_s = domain->conf->keepalive_s;
    link->identity = pool->identity;
    quarantine->link = link;
    quarantine->since_us = domain->hub->loop->now_us;
    hg_link_connect(link, &quarantine->addrs,
                    pool->in_doubt || link->uptls != NULL ||
                        hg_domain_is_further(domain, pool->identity));
}

void hg_quarantine_prepare(struct hg_quarantine *quarantine, struct hg_pool *pool)
{
    struct hg_link *link = quarantine->link;
    if (link != NULL && (link->state != HG_LINK_READY || hg_link_pending(link) > 0))
        return;
    if (link != NULL && link->identity != pool->identity) {
        if (hg_domain_can_rebind(quarantine->domain, pool)) {
            quarantine->since_us = quarantine->domain->hub->loop->now_us;
            hg_link_rebind(link, pool->identity);
            return;
        }
        hg_link_end(link, HG_LINK_LET_GO, 0);
    }
    if (quarantine->link == NULL)
        begin(quarantine, pool);
}

/* ---- what becomes of it ---- */

static void on_ready(struct hg_link *link)
{
    struct hg_quarantine *quarantine = link->pool;
    struct hg_pool *pool = pool_of(quarantine);
    uint64_t now_us = quarantine->domain->hub->loop->now_us;
    quarantine->since_us = now_us;
    pool->denials = 0;
    if (!link->live) {
        link->live = true;
        hg_upstream_count(pool->counters, HG_UPSTREAM_CONNECTS, 1);
        hg_server_tell_connected(pool->server, pool->worker, quarantine->coming_kind, link->proved,
                                 now_us);
        hg_domain_heed_breaker(quarantine->domain);
    } else {
        pool->totals.rebinds++;
    }
    show(quarantine);
    hg_quarantine_look(quarantine);
}

static void on_room(struct hg_link *link)
{
    (void)link; /* it is never asked for */
}

static void on_answers(struct hg_link *link, uint32_t in_time, uint32_t late, uint64_t waited_us)
{
    struct hg_quarantine *quarantine = link->pool;
    (void)in_time;
    (void)late;
    (void)waited_us;
    quarantine->since_us = quarantine->domain->hub->loop->now_us;
    hg_quarantine_look(quarantine);
}

static void on_timeout(struct hg_link *link, const struct hg_call *call, uint64_t waited_us)
{
    (void)link; /* it was to be expected: nothing is wrong with the server */
    (void)call;
    (void)waited_us;
}

static void on_again(struct hg_link *link, struct hg_call *call, const struct hg_reply *reply)
{
    struct hg_quarantine *quarantine = link->pool;
    const struct hg_pool_conf *conf = quarantine->domain->conf;
    conf->on_again(conf->store, hg_domain_pool(quarantine->domain, call->identity), link, call,
                   reply);
}

/* Of one that has not come up. */
static void account_not_made(struct hg_quarantine *quarantine, struct hg_pool *pool,
                             const struct hg_link *link, enum hg_link_why why, int error)
{
    struct hg_server *server = pool->server;
    char text[HG_LINK_WHY_BYTES];
    if (why == HG_LINK_TLS_FAILED)
        hg_log_warn("upstream=%s server=%s msg=\"TLS failed: %s\"", server->upstream,
                    server->address, link->denial);
    if (why != HG_LINK_LET_GO && why != HG_LINK_MEMORY)
        hg_server_note_error(server, hg_link_end_text(link, why, error, text));
    if (why == HG_LINK_REJECTED) {
        hg_server_tell_abandoned(server, pool->worker, quarantine->coming_kind,
                                 pool->hub->loop->now_us);
        memcpy(pool->denial, link->denial, sizeof pool->denial);
        hg_pool_deny(pool);
    } else if (why == HG_LINK_LET_GO) {
        hg_pool_abandon(pool, quarantine->coming_kind);
    } else if (why == HG_LINK_LOCAL || why == HG_LINK_MEMORY) {
        hg_server_tell_local(server, pool->worker, quarantine->coming_kind, error,
                             pool->hub->loop->now_us);
    } else {
        hg_upstream_count(pool->counters, HG_UPSTREAM_CONNECT_FAILURES, 1);
        hg_server_tell_failed(server, pool->worker, quarantine->coming_kind, why == HG_LINK_REFUSED,
                              pool->hub->loop->now_us);
    }
}

/* Of one that the breaker knows of: that it ended says nothing of the server. */
static void account_lost(struct hg_pool *pool, enum hg_link_state was, enum hg_link_why why,
                         int error)
{
    bool is_refusal = why == HG_LINK_REJECTED || why == HG_LINK_GARBAGE ||
                      (why == HG_LINK_NO_CONNECT && error != -ETIMEDOUT);
    if (was == HG_LINK_HANDSHAKE)
        pool->no_rebind |= is_refusal;
    else if (why == HG_LINK_CLOSED || why == HG_LINK_SILENT)
        hg_upstream_count(pool->counters, HG_UPSTREAM_DISCONNECTS, 1);
    else if (why == HG_LINK_GARBAGE)
        hg_upstream_count(pool->counters, HG_UPSTREAM_BAD_REPLIES, 1);
    hg_server_tell_lost(pool->server, pool->worker, HG_BREAKER_ENDED, pool->hub->loop->now_us);
}

static void on_end(struct hg_link *link, enum hg_link_state was, enum hg_link_why why, int error)
{
    struct hg_quarantine *quarantine = link->pool;
    struct hg_domain *domain = quarantine->domain;
    struct hg_pool *pool = pool_of(quarantine);
    hg_log_debug("upstream=%s server=%s unanswered=%u why=%d msg=\"quarantine connection closed\"",
                 domain->server->upstream, domain->server->address, hg_link_pending(link),
                 (int)why);
    quarantine->link = NULL;
    if (link->live)
        account_lost(pool, was, why, error);
    else
        account_not_made(quarantine, pool, link, why, error);
    show(quarantine);
    put_unit(quarantine);
    hg_domain_heed_breaker(domain);
    hg_link_fail(link, domain->closing ? link->tail : hg_link_first_unsent(link), HG_FAULT_LOST);
    hg_link_fail(link, link->tail, HG_FAULT_DOWN);
    if (!domain->closing)
        hg_quarantine_look(quarantine);
}

static void on_strand(struct hg_link *link, uint64_t ticket, int change)
{
    const struct hg_quarantine *quarantine = link->pool;
    hg_store_strand(&quarantine->domain->conf->store->base, quarantine->domain->server->index,
                    ticket, change);
}

const struct hg_link_owner hg_quarantine_link_owner = {
    .on_ready = on_ready,
    .on_room = on_room,
    .on_answers = on_answers,
    .on_timeout = on_timeout,
    .on_again = on_again,
    .on_end = on_end,
    .on_strand = on_strand,
};

/* Why is there no use for it any more? 0: there is. */
static bool is_to_end(const struct hg_quarantine *quarantine, uint64_t now_us)
{
    const struct hg_domain *domain = quarantine->domain;
    if (!hg_server_may_send(domain->server))
        return now_us - quarantine->link->heard_us >= quarantine->limits.timeout_us;
    if (quarantine->link->state != HG_LINK_READY || hg_link_pending(quarantine->link) > 0)
        return false;
    if (hg_domain_limit(domain) < 2)
        return true;
    return quarantine->waiting_count == 0 &&
           (domain->draining || now_us - quarantine->since_us >= HG_QUARANTINE_IDLE_US);
}

void hg_quarantine_tick_link(struct hg_quarantine *quarantine, uint64_t now_us)
{
    const struct hg_domain *domain = quarantine->domain;
    struct hg_link *link = quarantine->link;
    if (link == NULL)
        return;
    quarantine->limits.timeout_us = domain->conf->link.timeout_us;
    quarantine->limits.silent_us = domain->conf->link.silent_us;
    hg_link_tick(link, now_us);
    if (quarantine->link != link)
        return;
    bool is_coming = link->state == HG_LINK_CONNECTING || link->state == HG_LINK_HANDSHAKE;
    if (is_coming && now_us - quarantine->since_us >= domain->conf->connect_timeout_us)
        hg_link_end(link, HG_LINK_NO_CONNECT, -ETIMEDOUT);
    else if (is_to_end(quarantine, now_us))
        hg_link_end(link, HG_LINK_LET_GO, 0);
}
