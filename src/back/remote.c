// remote - what a worker's stores that consist of servers have in common
// SPDX-License-Identifier: BSD-3-Clause
#include "back/remote.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

#define TICK_BUSY_US  10000
#define TICK_QUIET_US 1000000
#define STALL_US      50000 /* five ticks: no turn takes that long */

void hg_remote_get_busy(struct hg_remote *remote)
{
    remote->busy = hg_loop_timer_arm(&remote->timer, TICK_BUSY_US) == 0;
    remote->due_us = remote->hub.loop->now_us + TICK_BUSY_US;
    hg_relay_look(&remote->relay);
}

/* Has the process itself stood still (SIGSTOP, a virtual machine on its way, no processor)? Then
   servers were not asked, and answers were not read, for so long: they have another tick to come
   in, before anybody is told that a server is late. */
static bool has_stalled(struct hg_remote *remote, uint64_t now_us)
{
    bool late = remote->busy && now_us > remote->due_us + STALL_US;
    remote->stalled = late && !remote->stalled;
    return remote->stalled;
}

bool hg_remote_is_behind(const struct hg_remote *remote, uint64_t now_us)
{
    return now_us > remote->due_us + TICK_BUSY_US / 2;
}

static void on_tick(struct hg_timer *timer)
{
    struct hg_remote *remote = HG_CONTAINER_OF(timer, struct hg_remote, timer);
    uint64_t now_us = remote->hub.loop->now_us;
    bool busy = false;
    if (HG_UNLIKELY(has_stalled(remote, now_us))) {
        hg_remote_get_busy(remote);
        return;
    }
    remote->busy = false; /* calls that come from within the ticks say otherwise */
    for (uint32_t i = 0; i < remote->count; i++)
        busy |= hg_domain_tick(&remote->domains[i], now_us);
    busy |= hg_relay_tick(&remote->relay, now_us);
    if (remote->kind->on_tick != NULL)
        busy |= remote->kind->on_tick(remote, now_us);
    if (busy)
        hg_remote_get_busy(remote);
    else if (!remote->busy && hg_loop_timer_arm(&remote->timer, TICK_QUIET_US) != 0)
        hg_log_error("upstream=%s msg=\"cannot set a timer\"", remote->shared->conf.name);
}

enum hg_submit hg_remote_refuse(struct hg_call *call, enum hg_fault fault, struct hg_span text,
                                const char *server)
{
    const struct hg_result result = {.fault = fault, .value = text, .server = server};
    call->place.pending = call->place.waiting = false;
    hg_tie_end(call);
    call->on_done(call, &result);
    return HG_SUBMIT_TAKEN;
}

void hg_remote_cancel(struct hg_store *store, struct hg_call *call)
{
    struct hg_remote *remote = hg_remote_of(store);
    if (HG_UNLIKELY(hg_tie_waits(call)))
        hg_tie_cancel(call);
    else if (HG_UNLIKELY(call->place.relayed))
        hg_relay_cancel(&remote->relay, call);
    else if (call->place.waiting)
        hg_domain_cancel(&remote->domains[call->place.index], call);
    else if (call->place.pending)
        hg_link_cancel(call->place.link, call);
}

void hg_remote_drain(struct hg_store *store)
{
    struct hg_remote *remote = hg_remote_of(store);
    remote->draining = true;
    for (uint32_t i = 0; i < remote->count; i++)
        hg_domain_drain(&remote->domains[i]);
    hg_remote_get_busy(remote);
}

bool hg_remote_drained(struct hg_store *store)
{
    struct hg_remote *remote = hg_remote_of(store);
    if (remote->ties.slab.borrowed > 0 || !hg_relay_is_idle(&remote->relay))
        return false;
    for (uint32_t i = 0; i < remote->count; i++) {
        if (hg_domain_waiting(&remote->domains[i]) > 0 ||
            hg_domain_pending(&remote->domains[i]) > 0)
            return false;
    }
    return true;
}

const char *hg_remote_server_name(struct hg_store *store, uint32_t server)
{
    return hg_remote_of(store)->shared->servers[server].address;
}

uint32_t hg_remote_width(struct hg_store *store, uint32_t server)
{
    const struct hg_remote *remote = hg_remote_of(store);
    if (server >= remote->count)
        return 0;
    const struct hg_domain *domain = &remote->domains[server];
    HG_LIST_EACH(node, (struct hg_list *)(uintptr_t)&domain->listed)
    {
        if (HG_CONTAINER_OF(node, struct hg_pool, node)->apart)
            return domain->balance.capacity;
    }
    return 0;
}

static void set_times(struct hg_pool_conf *conf, const struct hg_remote_times *times)
{
    conf->link.timeout_us = (uint64_t)times->backend_timeout_ms * 1000;
    conf->link.silent_us = 2 * conf->link.timeout_us;
    conf->connect_timeout_us = (uint64_t)times->connect_timeout_ms * 1000;
    conf->queue_timeout_us = (uint64_t)times->queue_timeout_ms * 1000;
}

void hg_remote_set_times(struct hg_store *store, const struct hg_remote_times *times)
{
    struct hg_remote *remote = hg_remote_of(store);
    set_times(&remote->pool_conf, times);
    for (uint32_t i = 0; i < remote->count; i++)
        hg_server_set_reconnect_max(remote->domains[i].server,
                                    (uint64_t)times->reconnect_max_ms * 1000);
}

static void set_pool_conf(struct hg_remote *remote, const struct hg_remote_conf *conf,
                          uint32_t share)
{
    struct hg_pool_conf *pool = &remote->pool_conf;
    pool->dialect = remote->kind->dialect;
    pool->store = remote;
    pool->on_again = remote->kind->on_again;
    pool->link.depth = conf->pool_depth;
    pool->link.max_bytes = conf->pool_max_bytes;
    pool->link.max_reply = conf->max_reply_bytes;
    pool->share = share > 0 ? share : 1;
    pool->queue_max = conf->pool_queue_max;
    pool->keepalive_s = conf->keepalive_s;
    pool->uptls = remote->shared->uptls;
    pool->idle_us = (uint64_t)conf->pool_idle_timeout_s * 1000000;
    pool->min_hold_us = (uint64_t)conf->pool_min_hold_ms * 1000;
    set_times(pool, &conf->times);
}

bool hg_remote_grow(struct hg_remote *remote)
{
    struct hg_upstream_shared *shared = remote->shared;
    uint32_t count = hg_upstream_count_servers(shared);
    while (remote->count < count) {
        uint32_t i = remote->count;
        if (hg_domain_init(&remote->domains[i], &shared->servers[i], &shared->identities,
                           &remote->hub, &remote->pool_conf, shared->resolver, remote->worker) != 0)
            return false;
        remote->count++;
        if (remote->draining)
            hg_domain_drain(&remote->domains[i]);
    }
    hg_relay_grow(&remote->relay);
    return true;
}

static void fini_domains(struct hg_remote *remote)
{
    /* Before any call is answered: what its owner asks for then is refused everywhere. */
    remote->closing = true;
    hg_relay_close(&remote->relay);
    for (uint32_t i = 0; i < remote->count; i++)
        hg_domain_close(&remote->domains[i]);
    for (uint32_t i = 0; i < remote->count; i++)
        hg_domain_end(&remote->domains[i]);
    hg_relay_end(&remote->relay);
    hg_ties_settle(&remote->ties);
    hg_relay_fini(&remote->relay);
    for (uint32_t i = 0; i < remote->count; i++)
        hg_domain_fini(&remote->domains[i]);
    free(remote->domains);
}

int hg_remote_init(struct hg_remote *remote, const struct hg_store_ops *ops,
                   const struct hg_remote_kind *kind, struct hg_upstream_shared *shared,
                   const struct hg_remote_place *place)
{
    remote->base.ops = ops;
    remote->kind = kind;
    remote->shared = shared;
    remote->worker = place->worker;
    remote->domains = calloc(shared->capacity, sizeof *remote->domains);
    if (remote->domains == NULL ||
        hg_hub_init(&remote->hub, place->loop, place->mailbox, place->blobs, place->outs) != 0) {
        free(remote->domains);
        return -ENOMEM;
    }
    hg_ties_init(&remote->ties, &remote->hub);
    set_pool_conf(remote, &shared->conf, place->share);
    if (hg_remote_grow(remote) &&
        hg_loop_timer_init(place->loop, &remote->timer, 0, on_tick) == 0) {
        if (hg_loop_timer_arm(&remote->timer, TICK_QUIET_US) == 0 &&
            hg_relay_init(&remote->relay, remote) == 0)
            return 0;
        hg_loop_timer_fini(&remote->timer);
    }
    fini_domains(remote);
    hg_ties_fini(&remote->ties);
    hg_hub_fini(&remote->hub);
    return -ENOMEM;
}

void hg_remote_fini(struct hg_remote *remote)
{
    hg_loop_timer_fini(&remote->timer);
    fini_domains(remote);
    hg_ties_fini(&remote->ties);
    hg_hub_fini(&remote->hub);
}
