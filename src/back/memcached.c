// memcached - a store made of one or many memcached servers
// SPDX-License-Identifier: BSD-3-Clause
#include "back/memcached.h"

#include <stdlib.h>
#include <string.h>

#include "back/flush.h"

static struct hg_memcached_store *store_at(struct hg_store *base)
{
    return HG_CONTAINER_OF(base, struct hg_memcached_store, remote.base);
}

/* The ring over the servers that are not out, made anew when some server went or came. NULL when
   none is left or memory is out. */
static const struct hg_ring *live_ring(struct hg_memcached_store *store)
{
    const struct hg_upstream_shared *shared = store->remote.shared;
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

static uint32_t find_server(struct hg_memcached_store *store, struct hg_span key)
{
    uint32_t index = hg_ring_of(store->ring, key);
    if (HG_LIKELY(hg_server_may_send(store->remote.domains[index].server)) ||
        !store->remote.shared->conf.eject_servers)
        return index;
    const struct hg_ring *live = live_ring(store);
    return live != NULL ? hg_ring_of(live, key) : index;
}

static enum hg_submit submit(struct hg_store *base, struct hg_call *call)
{
    struct hg_memcached_store *store = store_at(base);
    call->place.store = base;
    if (HG_UNLIKELY(call->op == HG_OP_FLUSH))
        return hg_flush_submit(&store->remote, call);
    uint32_t server = HG_LIKELY(call->route != 0) ? call->route - 1 : find_server(store, call->key);
    return hg_remote_submit(&store->remote, server, call);
}

static uint32_t server_of(struct hg_store *base, const struct hg_call *call)
{
    if (HG_UNLIKELY(call->op == HG_OP_FLUSH))
        return HG_SERVER_NONE;
    return find_server(store_at(base), call->key);
}

static void cancel(struct hg_store *base, struct hg_call *call)
{
    if (call->op == HG_OP_FLUSH)
        hg_flush_cancel(&store_at(base)->remote, call);
    else
        hg_remote_cancel(base, call);
}

static const char *where(struct hg_store *base, struct hg_span prefix, struct hg_span key)
{
    (void)prefix;
    struct hg_memcached_store *store = store_at(base);
    return store->remote.shared->servers[find_server(store, key)].address;
}

static void free_own(struct hg_memcached_store *store)
{
    hg_ring_free(store->ring);
    hg_ring_free(store->live);
    free(store->is_live);
    free(store);
}

static void free_all(struct hg_store *base)
{
    struct hg_memcached_store *store = store_at(base);
    hg_remote_fini(&store->remote);
    free_own(store);
}

static const struct hg_store_ops ops = {
    .kind = "memcached",
    .submit = submit,
    .cancel = cancel,
    .where = where,
    .server_of = server_of,
    .server_name = hg_remote_server_name,
    .width = hg_remote_width,
    .drain = hg_remote_drain,
    .drained = hg_remote_drained,
    .free = free_all,
};

static const struct hg_remote_kind kind = {.dialect = &hg_dialect_memcached};

struct hg_store *hg_memcached_store_new(struct hg_upstream_shared *shared,
                                        const struct hg_remote_place *place)
{
    struct hg_memcached_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    char why[HG_RING_WHY_BYTES];
    store->is_live = calloc(shared->count, sizeof *store->is_live);
    store->ring = hg_ring_new(&shared->conf.ring, NULL, why);
    if (store->is_live == NULL || store->ring == NULL ||
        hg_remote_init(&store->remote, &ops, &kind, shared, place) != 0) {
        free_own(store);
        return NULL;
    }
    return &store->remote.base;
}
