// redis - a store in Redis: one server, or the common part of one that is a cluster
// SPDX-License-Identifier: BSD-3-Clause
#include "back/redis.h"

#include <stdlib.h>

#define RANGES_PER_BLOCK 16
#define WORKER_SHIFT     48 /* a worker has so many bits for the CAS values that it makes */

/* The sequence of worker number `worker`: its own part of the one that all share. */
static void seed_cas(struct hg_redis *redis, uint64_t seed, uint32_t worker)
{
    /* A step of the generator adds its odd constant to the state, so this is `worker` times 2^48
       steps further on. */
    struct hg_prng zero = {0};
    (void)hg_prng_next(&zero);
    redis->cas.state = seed + (zero.state << WORKER_SHIFT) * worker;
}

/* Rows that a reply to a range may have, such that it is no longer than a reply may be. */
static uint32_t range_bytes(uint32_t max_reply_bytes)
{
    uint32_t most =
        max_reply_bytes > HG_REDIS_RANGE_MORE ? max_reply_bytes - HG_REDIS_RANGE_MORE : 0;
    return most < HG_REDIS_RANGE_BYTES ? most : HG_REDIS_RANGE_BYTES;
}

static uint64_t next_cas(struct hg_redis *redis)
{
    uint64_t cas;
    do
        cas = hg_prng_next(&redis->cas);
    while (cas == 0 || cas == UINT64_MAX);
    return cas;
}

/* Must `call` wait until `after` is answered? Else a repetition of that would come behind it. */
static bool must_wait(const struct hg_redis *redis, const struct hg_call *call,
                      const struct hg_call *after)
{
    if (after->place.store != call->place.store)
        return false;
    if (after->place.waiting)
        return redis->all_again; /* it was sent away and has to wait; a line keeps its order */
    if (!after->place.pending)
        return false;
    if (after->op == HG_OP_GET && call->op == HG_OP_GET)
        return false;
    return redis->all_again || hg_redis_is_script(&redis->dialect.style, after);
}

/* Routes a call that may have to be said again. What waits for room is kept by its owner. */
static enum hg_submit keep_and_route(struct hg_redis *redis, struct hg_call *call)
{
    struct hg_span prefix = call->prefix, key = call->key, value = call->value;
    struct hg_blob *blob = call->blob;
    if (HG_UNLIKELY(!hg_tie_keep(&redis->remote.ties, call)))
        return hg_remote_refuse(call, HG_FAULT_MEMORY, HG_SPAN_NONE, NULL);
    enum hg_submit answer = redis->route(redis, call);
    if (answer == HG_SUBMIT_WAIT) {
        if (HG_UNLIKELY(hg_tie_waits(call)))
            hg_tie_unkeep(call);
        else
            hg_tie_end(call);
        call->prefix = prefix;
        call->key = key;
        call->value = value;
        call->blob = blob;
    }
    return answer;
}

static enum hg_submit refuse(struct hg_call *call, const char *why)
{
    const struct hg_result result = {.status = HG_STATUS_NOT_SUPPORTED, .value = hg_span_str(why)};
    call->place.pending = call->place.waiting = false;
    hg_tie_end(call);
    call->on_done(call, &result);
    return HG_SUBMIT_TAKEN;
}

enum hg_submit hg_redis_submit(struct hg_store *store, struct hg_call *call)
{
    struct hg_redis *redis = hg_redis_of(store);
    const struct hg_redis_style *style = &redis->dialect.style;
    call->place.store = store;
    const char *why = hg_redis_refusal(style, call);
    if (HG_UNLIKELY(why != NULL))
        return refuse(call, why);
    if (HG_UNLIKELY(call->after != NULL) && must_wait(redis, call, call->after)) {
        if (hg_tie_behind(&redis->remote.ties, call, call->after))
            return HG_SUBMIT_WAIT;
        return hg_remote_refuse(call, HG_FAULT_MEMORY, HG_SPAN_NONE, NULL);
    }
    call->place.made_cas = hg_redis_makes_cas(call) && !style->plain ? next_cas(redis) : 0;
    if (HG_UNLIKELY(redis->all_again || hg_redis_is_script(style, call)))
        return keep_and_route(redis, call);
    return redis->route(redis, call);
}

void hg_redis_say_again(struct hg_redis *redis, struct hg_link *link, struct hg_call *call)
{
    enum hg_fault fault = HG_FAULT_INTERNAL;
    (void)redis;
    call->place.tie->again++;
    call->after = NULL;
    if (HG_UNLIKELY(link->state == HG_LINK_DEAD))
        hg_remote_refuse(call, HG_FAULT_LOST, HG_SPAN_NONE, link->server);
    else if (HG_UNLIKELY(!hg_link_submit(link, call, &fault)))
        hg_remote_refuse(call, fault, HG_SPAN_NONE, link->server);
    else
        hg_upstream_count(link->counters, HG_UPSTREAM_RETRIES, 1);
}

void hg_redis_settle(struct hg_redis *redis, struct hg_pool *pool, struct hg_link *link,
                     struct hg_call *call, const struct hg_reply *reply)
{
    struct hg_result result = reply->result;
    result.server = link->server;
    if (reply->again == HG_AGAIN_LOADING)
        hg_server_tell_unready(pool->server, pool->worker, redis->remote.hub.loop->now_us);
    hg_tie_end(call);
    call->on_done(call, &result);
}

int hg_redis_init(struct hg_redis *redis, const struct hg_redis_kind *kind,
                  struct hg_upstream_shared *shared, const struct hg_remote_place *place,
                  const struct hg_redis_conf *conf)
{
    int rc = hg_redis_dialect_init(&redis->dialect, conf);
    if (rc != 0)
        return rc;
    redis->dialect.style.range_bytes = range_bytes(shared->conf.max_reply_bytes);
    redis->all_again = kind->all_again;
    redis->route = kind->route;
    redis->kind = (struct hg_remote_kind){
        .dialect = &redis->dialect.base, .on_again = kind->on_again, .on_tick = kind->on_tick};
    hg_slab_init(&redis->ranges, sizeof(struct hg_redis_range), RANGES_PER_BLOCK);
    seed_cas(redis, shared->cas_seed, place->worker);
    rc = hg_remote_init(&redis->remote, kind->ops, &redis->kind, shared, place);
    if (rc != 0)
        hg_slab_fini(&redis->ranges);
    return rc;
}

void hg_redis_fini(struct hg_redis *redis)
{
    hg_remote_fini(&redis->remote);
    hg_slab_fini(&redis->ranges);
}

/* --- one server --- */

static enum hg_submit route(struct hg_redis *redis, struct hg_call *call)
{
    return hg_remote_submit(&redis->remote, 0, call);
}

static void on_again(struct hg_remote *remote, struct hg_pool *pool, struct hg_link *link,
                     struct hg_call *call, const struct hg_reply *reply)
{
    struct hg_redis *redis = hg_redis_of(&remote->base);
    const struct hg_tie *tie = call->place.tie;
    if (reply->again == HG_AGAIN_NOSCRIPT && tie != NULL && tie->again < HG_REDIS_AGAIN_MAX)
        hg_redis_say_again(redis, link, call);
    else
        hg_redis_settle(redis, pool, link, call, reply);
}

static const char *where(struct hg_store *store, struct hg_span prefix, struct hg_span key)
{
    (void)prefix;
    (void)key;
    return hg_remote_of(store)->shared->servers[0].address;
}

static void free_all(struct hg_store *store)
{
    struct hg_redis *redis = hg_redis_of(store);
    hg_redis_fini(redis);
    free(redis);
}

static const struct hg_store_ops ops = {
    .kind = "redis",
    .submit = hg_redis_submit,
    .cancel = hg_remote_cancel,
    .range = hg_redis_range,
    .cancel_range = hg_redis_cancel_range,
    .where = where,
    .server_name = hg_remote_server_name,
    .width = hg_remote_width,
    .drain = hg_remote_drain,
    .drained = hg_remote_drained,
    .free = free_all,
};

static const struct hg_redis_kind kind_of_one = {
    .ops = &ops,
    .route = route,
    .on_again = on_again,
};

struct hg_store *hg_redis_store_new(struct hg_upstream_shared *shared,
                                    const struct hg_remote_place *place,
                                    const struct hg_redis_conf *conf)
{
    struct hg_redis *redis = calloc(1, sizeof *redis);
    if (redis == NULL)
        return NULL;
    if (hg_redis_init(redis, &kind_of_one, shared, place, conf) != 0) {
        free(redis);
        return NULL;
    }
    return &redis->remote.base;
}
