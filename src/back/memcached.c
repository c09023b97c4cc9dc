// memcached - a store made of one or many memcached servers
// SPDX-License-Identifier: BSD-3-Clause
#include "back/memcached.h"

#include <stdlib.h>
#include <string.h>

#include "back/flush.h"
#include "back/memcached_in.h"
#include "base/log.h"

#define TICK_BUSY_US  10000
#define TICK_QUIET_US 1000000

static const struct hg_store_ops ops;

static struct hg_memcached_store *store_at(struct hg_store *base)
{
    return HG_CONTAINER_OF(base, struct hg_memcached_store, base);
}

/* The ring over the servers that are not out, made anew when some server went or came. NULL when
   none is left or memory is out. */
static const struct hg_ring *live_ring(struct hg_memcached_store *store)
{
    const struct hg_upstream_shared *shared = store->shared;
    uint32_t changes = atomic_load_explicit(&shared->changes, memory_order_acquire);
    if (store->live_known && store->live_changes == changes)
        return store->live;
    uint32_t count = 0;
    for (uint32_t i = 0; i < shared->count; i++) {
        store->is_live[i] = hg_server_may_send(&shared->servers[i]);
        count += store->is_live[i];
    }
    char why[HG_RING_WHY_BYTES];
    hg_ring_free(store->live);
    store->live = count > 0 ? hg_ring_new(&shared->conf.ring, store->is_live, why) : NULL;
    store->live_changes = changes;
    store->live_known = true;
    return store->live;
}

static uint32_t server_of(struct hg_memcached_store *store, struct hg_span key)
{
    uint32_t index = hg_ring_of(store->ring, key);
    if (HG_LIKELY(hg_server_may_send(store->pools[index].server)) ||
        !store->shared->conf.eject_servers)
        return index;
    const struct hg_ring *live = live_ring(store);
    return live != NULL ? hg_ring_of(live, key) : index;
}

static enum hg_submit submit(struct hg_store *base, struct hg_call *call)
{
    struct hg_memcached_store *store = store_at(base);
    call->place.store = base;
    if (HG_UNLIKELY(!store->busy))
        hg_memcached_get_busy(store);
    if (HG_UNLIKELY(call->op == HG_OP_FLUSH))
        return hg_flush_submit(store, call);
    return hg_pool_submit(&store->pools[server_of(store, call->key)], call);
}

void hg_memcached_cancel_one(struct hg_memcached_store *store, struct hg_call *call)
{
    if (call->place.waiting)
        hg_pool_cancel(&store->pools[call->place.index], call);
    else if (call->place.pending)
        hg_link_cancel(call->place.link, call);
}

static void cancel(struct hg_store *base, struct hg_call *call)
{
    if (call->op == HG_OP_FLUSH)
        hg_flush_cancel(store_at(base), call);
    else
        hg_memcached_cancel_one(store_at(base), call);
}

static const char *where(struct hg_store *base, struct hg_span key)
{
    struct hg_memcached_store *store = store_at(base);
    return store->shared->servers[server_of(store, key)].address;
}

static void drain(struct hg_store *base)
{
    struct hg_memcached_store *store = store_at(base);
    for (uint32_t i = 0; i < store->shared->count; i++)
        hg_pool_drain(&store->pools[i]);
    hg_memcached_get_busy(store);
}

static bool drained(struct hg_store *base)
{
    struct hg_memcached_store *store = store_at(base);
    for (uint32_t i = 0; i < store->shared->count; i++) {
        if (store->pools[i].waiting_count > 0 || hg_pool_pending(&store->pools[i]) > 0)
            return false;
    }
    return true;
}

static void on_tick(struct hg_timer *timer)
{
    struct hg_memcached_store *store = HG_CONTAINER_OF(timer, struct hg_memcached_store, timer);
    uint64_t now_us = store->hub.loop->now_us;
    bool busy = false;
    store->busy = false; /* calls that come from within the ticks say otherwise */
    for (uint32_t i = 0; i < store->shared->count; i++)
        busy |= hg_pool_tick(&store->pools[i], now_us);
    if (busy)
        hg_memcached_get_busy(store);
    else if (!store->busy && hg_loop_timer_arm(&store->timer, TICK_QUIET_US) != 0)
        hg_log_error("upstream=%s msg=\"cannot set a timer\"", store->shared->conf.name);
}

void hg_memcached_get_busy(struct hg_memcached_store *store)
{
    store->busy = hg_loop_timer_arm(&store->timer, TICK_BUSY_US) == 0;
}

/* Frees a store of which the first `pools` pools are set up. */
static void free_store(struct hg_memcached_store *store, uint32_t pools)
{
    for (uint32_t i = 0; i < pools; i++)
        hg_pool_fini(&store->pools[i]);
    hg_ring_free(store->ring);
    hg_ring_free(store->live);
    free(store->is_live);
    free(store->pools);
    free(store);
}

static void free_all(struct hg_store *base)
{
    struct hg_memcached_store *store = store_at(base);
    /* Before any call is answered: what its owner asks for then is refused everywhere. */
    for (uint32_t i = 0; i < store->shared->count; i++)
        store->pools[i].closing = true;
    hg_loop_timer_fini(&store->timer);
    for (uint32_t i = 0; i < store->shared->count; i++)
        hg_pool_fini(&store->pools[i]);
    hg_hub_fini(&store->hub);
    free_store(store, 0);
}

static const struct hg_store_ops ops = {
    .kind = "memcached",
    .submit = submit,
    .cancel = cancel,
    .where = where,
    .drain = drain,
    .drained = drained,
    .free = free_all,
};

static void set_times(struct hg_pool_conf *conf, const struct hg_memcached_times *times)
{
    conf->link.timeout_us = (uint64_t)times->backend_timeout_ms * 1000;
    conf->link.silent_us = 2 * conf->link.timeout_us;
    conf->connect_timeout_us = (uint64_t)times->connect_timeout_ms * 1000;
    conf->queue_timeout_us = (uint64_t)times->queue_timeout_ms * 1000;
}

void hg_memcached_store_set_times(struct hg_store *base, const struct hg_memcached_times *times)
{
    struct hg_memcached_store *store = store_at(base);
    set_times(&store->pool_conf, times);
    for (uint32_t i = 0; i < store->shared->count; i++)
        hg_server_set_reconnect_max(&store->shared->servers[i],
                                    (uint64_t)times->reconnect_max_ms * 1000);
}

static void set_pool_conf(struct hg_pool_conf *pool, const struct hg_memcached_conf *conf,
                          uint32_t share)
{
    pool->dialect = &hg_dialect_memcached;
    pool->link.depth = conf->pool_depth;
    pool->link.max_bytes = conf->pool_max_bytes;
    pool->link.max_reply = conf->max_reply_bytes;
    pool->share = share > 0 ? share : 1;
    pool->queue_max = conf->pool_queue_max;
    pool->keepalive_s = conf->keepalive_s;
    pool->idle_us = (uint64_t)conf->pool_idle_timeout_s * 1000000;
    set_times(pool, &conf->times);
}

struct hg_store *hg_memcached_store_new(struct hg_upstream_shared *shared, struct hg_loop *loop,
                                        struct hg_mailbox *mailbox, struct hg_blobs *blobs,
                                        struct hg_out_pool *outs, uint32_t worker, uint32_t share)
{
    struct hg_memcached_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    char why[HG_RING_WHY_BYTES];
    store->base.ops = &ops;
    store->shared = shared;
    store->pools = calloc(shared->count, sizeof *store->pools);
    store->is_live = calloc(shared->count, sizeof *store->is_live);
    store->ring = hg_ring_new(&shared->conf.ring, NULL, why);
    if (store->pools == NULL || store->is_live == NULL || store->ring == NULL ||
        hg_hub_init(&store->hub, loop, mailbox, blobs, outs) != 0) {
        free_store(store, 0);
        return NULL;
    }
    set_pool_conf(&store->pool_conf, &shared->conf, share);
    for (uint32_t i = 0; i < shared->count; i++)
        hg_pool_init(&store->pools[i], &shared->servers[i], &store->hub, &store->pool_conf,
                     shared->resolver, worker);
    if (hg_loop_timer_init(loop, &store->timer, 0, on_tick) != 0 ||
        hg_loop_timer_arm(&store->timer, TICK_QUIET_US) != 0) {
        hg_hub_fini(&store->hub);
        free_store(store, shared->count);
        return NULL;
    }
    return &store->base;
}
