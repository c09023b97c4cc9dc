// domain - one worker's connections to one server: the pools, and what happens with each tick
// SPDX-License-Identifier: BSD-3-Clause
#include "back/domain.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "back/pool_in.h"

#define HOLD_MAX_US 2000000u /* a slow login must not hold a connection for ever */
#define PUBLISH_US  100000u  /* statistics are as old as that at most, while something happens */

/* ---- units ---- */

uint32_t hg_domain_limit(const struct hg_domain *domain)
{
    uint32_t limit = hg_lease_capacity(&domain->server->lease, domain->worker);
    uint32_t room = hg_server_room(domain->server, domain->hub->loop->now_us);
    uint64_t allowed = (uint64_t)domain->balance.total + domain->quarantine.has_unit + room;
    if (limit > domain->conf->share)
        limit = domain->conf->share;
    return limit < allowed ? limit : (uint32_t)allowed;
}

void hg_domain_heed_lease(struct hg_domain *domain)
{
    uint32_t limit = hg_domain_limit(domain), apart = hg_quarantine_units(&domain->quarantine);
    uint32_t capacity = limit > apart ? limit - apart : 0;
    if (capacity != domain->balance.capacity)
        hg_balance_set_capacity(&domain->balance, capacity);
}

bool hg_domain_take_unit(struct hg_domain *domain)
{
    return hg_balance_spare(&domain->balance) > 0 &&
           hg_lease_take(&domain->server->lease, domain->worker);
}

void hg_domain_put_unit(struct hg_domain *domain)
{
    hg_lease_put(&domain->server->lease, domain->worker);
    hg_domain_heed_lease(domain);
}

/* Connections that could be closed at once for another worker's sake. */
static uint32_t count_free(const struct hg_domain *domain, uint64_t now_us)
{
    uint32_t n = 0;
    HG_LIST_EACH(node, (struct hg_list *)(uintptr_t)&domain->balance.lru)
    {
        const struct hg_balance_conn *conn = HG_CONTAINER_OF(node, struct hg_balance_conn, lru);
        n += conn->block->waiters == 0 && now_us - conn->bound_us >= domain->balance.hold_us;
    }
    return n;
}

/* Lends and borrows. True: it must be looked after soon. */
static bool tick_lease(struct hg_domain *domain, uint64_t now_us)
{
    uint32_t wanted = hg_balance_wanted(&domain->balance);
    uint32_t spare = hg_balance_spare(&domain->balance);
    bool may_send = hg_server_may_send(domain->server) && !domain->draining;
    uint32_t more = may_send && wanted > spare ? wanted - spare : 0;
    bool busy = hg_lease_tick(&domain->server->lease, domain->worker, more,
                              count_free(domain, now_us), now_us);
    hg_domain_heed_lease(domain);
    return busy;
}

/* ---- pools ---- */

int hg_domain_init(struct hg_domain *domain, struct hg_server *server,
                   const struct hg_identities *identities, struct hg_hub *hub,
                   const struct hg_pool_conf *conf, struct hg_resolver *resolver, uint32_t worker)
{
    uint64_t now_us = hub->loop->now_us;
    const struct hg_balance_conf balance = {
        .depth = conf->link.depth,
        .hold_min_us = conf->min_hold_us,
        .hold_max_us = conf->min_hold_us > HOLD_MAX_US ? conf->min_hold_us : HOLD_MAX_US,
        .idle_us = conf->idle_us};
    memset(domain, 0, sizeof *domain);
    domain->server = server;
    domain->hub = hub;
    domain->conf = conf;
    domain->resolver = resolver;
    domain->identities = identities;
    domain->worker = worker;
    domain->prng.state = now_us ^ (uintptr_t)domain; /* jitter needs no secret */
    domain->slow_us = UINT64_MAX;
    hg_list_init(&domain->listed);
    hg_balance_init(&domain->balance, &balance, 0, now_us);
    hg_quarantine_init(&domain->quarantine, domain);
    domain->own = hg_domain_pool_slow(domain, 0);
    if (domain->own == NULL) {
        free(domain->pools);
        return -ENOMEM;
    }
    hg_lease_open(&server->lease, worker, now_us);
    hg_domain_heed_lease(domain);
    return 0;
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
    if (identity >= hg_identities_count(domain->identities) || !make_room(domain, identity))
        return NULL;
    if (domain->pools[identity] != NULL)
        return domain->pools[identity];
    struct hg_pool_counters *stats =
        hg_pool_board_get(&domain->server->boards[domain->worker], identity);
    struct hg_pool *pool = stats == NULL ? NULL : malloc(sizeof *pool);
    if (pool == NULL)
        return NULL;
    hg_pool_init(pool, domain, hg_identities_at(domain->identities, identity), stats);
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
    hg_balance_drain(&domain->balance);
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] != NULL)
            hg_pool_drain(domain->pools[i]);
    }
    (void)hg_domain_tick(domain, domain->hub->loop->now_us);
}

void hg_domain_resume(struct hg_domain *domain)
{
    domain->draining = false;
    hg_balance_resume(&domain->balance);
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] != NULL)
            domain->pools[i]->draining = false;
    }
}

/* ---- what the planner knows ---- */

void hg_domain_list(struct hg_domain *domain, struct hg_pool *pool)
{
    if (pool->listed)
        return;
    pool->listed = true;
    hg_list_append(&domain->listed, &pool->node);
    hg_balance_block_add(&domain->balance, &pool->block, domain->hub->loop->now_us);
    if (pool->denied)
        hg_balance_block_bar(&domain->balance, &pool->block, true);
}

/* The planner need not know it: there is nothing of it, and there was no call lately. */
static bool is_gone(const struct hg_pool *pool)
{
    const struct hg_balance_block *block = &pool->block;
    return pool->link_count == 0 && pool->waiting_count + pool->waiting_apart == 0 &&
           !block->active && block->incoming == 0;
}

static void unlist(struct hg_domain *domain, struct hg_pool *pool)
{
    pool->totals.moves += pool->block.moves_in;
    pool->totals.steals += pool->block.steals;
    pool->totals.connect_errors += pool->block.connect_errors;
    hg_balance_block_remove(&domain->balance, &pool->block);
    hg_list_remove(&pool->node);
    pool->listed = false;
    memset(&pool->block, 0, sizeof pool->block);
}

void hg_domain_heed_breaker(struct hg_domain *domain)
{
    bool frozen = hg_breaker_state(&domain->server->breaker) != HG_BREAKER_CLOSED;
    if (frozen != domain->balance.frozen)
        hg_balance_freeze(&domain->balance, frozen);
}

/* ---- statistics ---- */

void hg_domain_show_up(const struct hg_domain *domain)
{
    hg_counter_set(&domain->server->counters[domain->worker].values[HG_UPSTREAM_CONNECTIONS],
                   domain->up_count + hg_quarantine_is_up(&domain->quarantine));
}

void hg_domain_count_waiting(struct hg_domain *domain, int n)
{
    domain->waiting_count += (uint32_t)n;
    hg_counter_set(&domain->server->counters[domain->worker].values[HG_UPSTREAM_WAITING],
                   domain->waiting_count);
}

static void put(struct hg_pool *pool, enum hg_pool_stat stat, uint64_t value)
{
    hg_counter_set(&pool->stats->values[stat], value);
}

static uint32_t hunger_of(const struct hg_pool *pool)
{
    const struct hg_balance_block *block = &pool->block;
    uint32_t depth = pool->conf->link.depth, coming = block->coming + block->incoming;
    uint32_t wanted = block->waiters / depth + (block->waiters % depth != 0);
    return wanted > coming ? wanted - coming : 0;
}

static void publish(struct hg_pool *pool, uint64_t now_us)
{
    const struct hg_balance_block *block = &pool->block;
    uint32_t size = hg_balance_size(block);
    put(pool, HG_POOL_COMING, block->coming);
    put(pool, HG_POOL_IDLE, block->idle_count);
    put(pool, HG_POOL_BUSY, block->busy_count);
    put(pool, HG_POOL_DRAINING, block->draining);
    put(pool, HG_POOL_SLOW, pool->slow_count);
    put(pool, HG_POOL_QUOTA, block->quota);
    put(pool, HG_POOL_DEMAND, (uint64_t)(block->demand * 100 + 0.5));
    put(pool, HG_POOL_SLOWED, block->claim < block->demand);
    put(pool, HG_POOL_HUNGER, hunger_of(pool));
    put(pool, HG_POOL_OVERFULL, size > block->quota ? size - block->quota : 0);
    put(pool, HG_POOL_WAITING, pool->waiting_count + pool->waiting_apart);
    put(pool, HG_POOL_OLDEST_WAIT_US,
        block->waiters > 0 && now_us > block->oldest_us ? now_us - block->oldest_us : 0);
    put(pool, HG_POOL_MOVES, pool->totals.moves + block->moves_in);
    put(pool, HG_POOL_REBINDS, pool->totals.rebinds);
    put(pool, HG_POOL_STEALS, pool->totals.steals + block->steals);
    put(pool, HG_POOL_DRAINS, pool->totals.drains);
    put(pool, HG_POOL_CONNECT_ERRORS, pool->totals.connect_errors + block->connect_errors);
    put(pool, HG_POOL_REJECTED, pool->totals.rejected);
    put(pool, HG_POOL_QUARANTINED, pool->totals.quarantined);
}

/* Shows what is counted; pools that the planner need not know leave it. */
static void publish_all(struct hg_domain *domain, uint64_t now_us)
{
    if (now_us - domain->published_us < PUBLISH_US)
        return;
    domain->published_us = now_us;
    HG_LIST_EACH(node, &domain->listed)
    {
        struct hg_pool *pool = hg_pool_of_node(node);
        if (is_gone(pool))
            unlist(domain, pool);
        publish(pool, now_us);
    }
}

/* ---- the tick ---- */

/* How much each link carries, which the planner looks at when it chooses one to drain. */
static void tell_loads(struct hg_domain *domain)
{
    HG_LIST_EACH(node, &domain->listed)
    {
        struct hg_pool *pool = hg_pool_of_node(node);
        for (uint32_t i = 0; i < pool->link_count; i++)
            pool->links[i]->conn.load = hg_link_pending(pool->links[i]);
    }
}

static void rebalance(struct hg_domain *domain, uint64_t now_us)
{
    struct hg_balance_plan ops[HG_BALANCE_OPS_MAX];
    if (!hg_balance_needs_tick(&domain->balance) && now_us < hg_balance_next_us(&domain->balance))
        return;
    tell_loads(domain);
    uint32_t count = hg_balance_rebalance(&domain->balance, ops, HG_BALANCE_OPS_MAX, now_us);
    for (uint32_t i = 0; i < count; i++)
        hg_domain_carry_out(domain, &ops[i], false);
}

/* Tries to find out whether the server is back: as each identity in turn. */
static void probe(struct hg_domain *domain)
{
    uint32_t before = domain->balance.total;
    if (hg_list_empty(&domain->listed))
        hg_domain_list(domain, domain->own);
    HG_LIST_EACH(node, &domain->listed)
    {
        struct hg_pool *pool = hg_pool_of_node(node);
        hg_pool_connect(pool);
        if (pool->coming == NULL && domain->balance.total == before)
            continue;
        hg_list_remove(&pool->node);
        hg_list_append(&domain->listed, &pool->node);
        return;
    }
}

/* A connection beyond those that the server allowed is tried now and then, whether or not somebody
   needs it: else nobody would learn that there may be more. */
static void try_further(struct hg_domain *domain)
{
    if (domain->up_count == 0 || hg_server_room(domain->server, domain->hub->loop->now_us) == 0)
        return;
    HG_LIST_EACH(node, &domain->listed)
    {
        struct hg_pool *pool = hg_pool_of_node(node);
        if (pool->up_count == 0)
            continue;
        hg_pool_connect(pool);
        return;
    }
}

/* What is counted of now. */
static void show(struct hg_domain *domain, uint64_t now_us)
{
    hg_counter *values = domain->server->counters[domain->worker].values;
    uint32_t slow = 0;
    HG_LIST_EACH(node, &domain->listed)
    {
        slow += hg_pool_of_node(node)->slow_count;
    }
    publish_all(domain, now_us);
    hg_counter_set(&values[HG_UPSTREAM_SLOW], slow);
    hg_counter_set(&values[HG_UPSTREAM_PENDING], hg_domain_pending(domain));
}

bool hg_domain_tick(struct hg_domain *domain, uint64_t now_us)
{
    bool busy = false;
    hg_domain_heed_breaker(domain);
    hg_domain_heed_usual(domain);
    HG_LIST_EACH(node, &domain->listed)
    {
        busy |= hg_pool_tick(hg_pool_of_node(node), now_us);
    }
    busy |= hg_quarantine_tick(&domain->quarantine, now_us);
    bool may_send = hg_server_may_send(domain->server);
    if (!may_send)
        probe(domain);
    else if (HG_UNLIKELY(hg_breaker_state(&domain->server->breaker) == HG_BREAKER_RAMP))
        hg_server_tell_time(domain->server, domain->worker, now_us);
    busy |= tick_lease(domain, now_us);
    rebalance(domain, now_us);
    if (HG_UNLIKELY(hg_breaker_target(&domain->server->breaker) != HG_BREAKER_NO_TARGET))
        try_further(domain);
    show(domain, now_us);
    return busy || (!may_send && !domain->draining) || hg_balance_needs_tick(&domain->balance) ||
           hg_balance_next_us(&domain->balance) <= now_us;
}

uint32_t hg_domain_pending(const struct hg_domain *domain)
{
    uint32_t n = hg_quarantine_pending(&domain->quarantine);
    HG_LIST_EACH(node, (struct hg_list *)(uintptr_t)&domain->listed)
    {
        n += hg_pool_pending(hg_pool_of_node(node));
    }
    return n;
}

bool hg_domain_starves(const struct hg_domain *domain)
{
    return domain->waiting_count > 0 && domain->up_count == 0 &&
           hg_server_may_send(domain->server) &&
           hg_server_room(domain->server, domain->hub->loop->now_us) == 0;
}

void hg_domain_send_away(struct hg_domain *domain)
{
    if (domain->waiting_count == 0 || domain->up_count > 0)
        return;
    HG_LIST_EACH(node, &domain->listed)
    {
        hg_pool_send_away(hg_pool_of_node(node));
    }
}

uint32_t hg_domain_waiting(const struct hg_domain *domain)
{
    return domain->waiting_count;
}

/* ---- the end ---- */

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
    hg_quarantine_end(&domain->quarantine);
    assert(domain->balance.total == 0);
    hg_lease_close(&domain->server->lease, domain->worker);
    for (uint32_t i = 0; i < domain->pool_cap; i++) {
        if (domain->pools[i] == NULL || !domain->pools[i]->listed)
            continue;
        unlist(domain, domain->pools[i]);
        publish(domain->pools[i], domain->hub->loop->now_us);
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
