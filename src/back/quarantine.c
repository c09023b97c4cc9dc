// quarantine - a connection for requests that are likely to take long: its calls
// SPDX-License-Identifier: BSD-3-Clause
#include "back/quarantine_in.h"

static struct hg_call *call_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_call, place.node);
}

static void serve(struct hg_hub_wake *wake);

void hg_quarantine_init(struct hg_quarantine *quarantine, struct hg_domain *domain)
{
    quarantine->domain = domain;
    quarantine->waiting_end_us = UINT64_MAX;
    hg_list_init(&quarantine->waiting);
    hg_hub_wake_init(&quarantine->wake, serve);
}

static void serve_later(struct hg_quarantine *quarantine)
{
    if (quarantine->waiting_count > 0)
        hg_hub_wake_later(quarantine->domain->hub, &quarantine->wake);
}

void hg_quarantine_look(struct hg_quarantine *quarantine)
{
    serve_later(quarantine);
}

/* ---- the line ---- */

static void count_waiting(struct hg_quarantine *quarantine, const struct hg_call *call, int n)
{
    hg_domain_pool(quarantine->domain, call->identity)->waiting_apart += (uint32_t)n;
    quarantine->waiting_count += (uint32_t)n;
    hg_domain_count_waiting(quarantine->domain, n);
}

static uint64_t end_of(const struct hg_quarantine *quarantine, const struct hg_call *call,
                       uint64_t since_us)
{
    uint64_t end_us = since_us + quarantine->domain->conf->queue_timeout_us;
    return call->deadline_us != 0 && call->deadline_us < end_us ? call->deadline_us : end_us;
}

static enum hg_submit refuse(struct hg_quarantine *quarantine, struct hg_call *call,
                             enum hg_fault fault, enum hg_upstream_stat stat)
{
    struct hg_pool *pool = hg_domain_pool(quarantine->domain, call->identity);
    hg_upstream_count(pool->counters, stat, 1);
    return hg_pool_refuse(pool, call, fault);
}

static enum hg_submit wait_in_line(struct hg_quarantine *quarantine, struct hg_call *call)
{
    const struct hg_domain *domain = quarantine->domain;
    bool again = call == quarantine->waking;
    uint64_t now_us = domain->hub->loop->now_us;
    uint64_t since_us = again ? quarantine->waking_since_us : now_us;
    uint64_t end_us = end_of(quarantine, call, since_us);
    if (!again && quarantine->waiting_count >= domain->conf->queue_max)
        return refuse(quarantine, call, HG_FAULT_QUEUE_FULL, HG_UPSTREAM_QUEUE_FULL);
    if (end_us <= now_us)
        return refuse(quarantine, call, HG_FAULT_QUEUE_TIMEOUT, HG_UPSTREAM_QUEUE_TIMEOUTS);
    if (end_us < quarantine->waiting_end_us)
        quarantine->waiting_end_us = end_us;
    call->place.link = NULL;
    call->place.pending = false;
    call->place.waiting = true;
    call->place.index = domain->server->index;
    call->place.since_us = since_us;
    call->place.extra = quarantine;
    hg_list_init(&call->place.node);
    if (again)
        hg_list_prepend(&quarantine->waiting, &call->place.node);
    else
        hg_list_append(&quarantine->waiting, &call->place.node);
    count_waiting(quarantine, call, 1);
    serve_later(quarantine);
    return HG_SUBMIT_WAIT;
}

static void leave_line(struct hg_quarantine *quarantine, struct hg_call *call)
{
    hg_list_remove(&call->place.node);
    call->place.waiting = false;
    call->place.extra = NULL;
    count_waiting(quarantine, call, -1);
}

void hg_quarantine_cancel(struct hg_quarantine *quarantine, struct hg_call *call)
{
    leave_line(quarantine, call);
    hg_tie_end(call);
}

/* Lets the first in line try again. */
static void wake_first(struct hg_quarantine *quarantine)
{
    struct hg_call *call = call_at(hg_list_first(&quarantine->waiting));
    uint64_t since_us = call->place.since_us;
    leave_line(quarantine, call);
    quarantine->waking = call;
    quarantine->waking_since_us = since_us;
    call->on_room(call);
    quarantine->waking = NULL;
}

static void fail_waiting(struct hg_quarantine *quarantine, enum hg_fault fault)
{
    struct hg_list old, *node;
    hg_list_init(&old);
    hg_list_splice(&old, &quarantine->waiting);
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = call_at(node);
        leave_line(quarantine, call);
        (void)hg_pool_refuse(hg_domain_pool(quarantine->domain, call->identity), call, fault);
    }
}

static void expire_waiting(struct hg_quarantine *quarantine, uint64_t now_us)
{
    struct hg_list old, kept, *node;
    uint64_t next_us = UINT64_MAX;
    hg_list_init(&old);
    hg_list_init(&kept);
    hg_list_splice(&old, &quarantine->waiting);
    quarantine->waiting_end_us = UINT64_MAX;
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = call_at(node);
        uint64_t end_us = end_of(quarantine, call, call->place.since_us);
        if (end_us > now_us) {
            next_us = end_us < next_us ? end_us : next_us;
            hg_list_remove(node);
            hg_list_append(&kept, node);
            continue;
        }
        leave_line(quarantine, call);
        (void)refuse(quarantine, call, HG_FAULT_QUEUE_TIMEOUT, HG_UPSTREAM_QUEUE_TIMEOUTS);
    }
    /* Those that came meanwhile are behind. */
    hg_list_splice(&kept, &quarantine->waiting);
    hg_list_splice(&quarantine->waiting, &kept);
    if (next_us < quarantine->waiting_end_us)
        quarantine->waiting_end_us = next_us;
}

/* ---- calls ---- */

bool hg_quarantine_has(const struct hg_quarantine *quarantine, const struct hg_call *call)
{
    if (call->place.waiting)
        return call->place.extra == quarantine;
    return call->place.pending && call->place.link != NULL && call->place.link == quarantine->link;
}

/* May there be one, if there is none? */
static bool may_be(const struct hg_quarantine *quarantine)
{
    const struct hg_domain *domain = quarantine->domain;
    return quarantine->link != NULL || (!domain->draining && hg_domain_limit(domain) >= 2);
}

bool hg_quarantine_takes(const struct hg_quarantine *quarantine, const struct hg_call *call)
{
    return call->after == NULL && may_be(quarantine);
}

/* Is the link free, and the right one's? */
static bool is_free_for(const struct hg_quarantine *quarantine, const struct hg_pool *pool)
{
    const struct hg_link *link = quarantine->link;
    return hg_quarantine_is_up(quarantine) && hg_link_pending(link) == 0 &&
           link->identity == pool->identity;
}

enum hg_submit hg_quarantine_submit(struct hg_quarantine *quarantine, struct hg_call *call)
{
    struct hg_pool *pool = hg_domain_pool(quarantine->domain, call->identity);
    bool first = quarantine->waiting_count == 0 || call == quarantine->waking;
    enum hg_fault fault = HG_FAULT_INTERNAL;
    if (!first || !is_free_for(quarantine, pool))
        return wait_in_line(quarantine, call);
    if (!hg_link_submit(quarantine->link, call, &fault))
        return hg_pool_refuse(pool, call, fault);
    pool->totals.quarantined++;
    hg_upstream_count(pool->counters, HG_UPSTREAM_REQUESTS, 1);
    hg_upstream_count(pool->counters, HG_UPSTREAM_QUARANTINED, 1);
    return HG_SUBMIT_TAKEN;
}

/* Does what the first in line needs next. False: it has to wait. */
static bool serve_first(struct hg_quarantine *quarantine)
{
    struct hg_call *call = call_at(hg_list_first(&quarantine->waiting));
    struct hg_pool *pool = hg_domain_pool(quarantine->domain, call->identity);
    if (pool->denied)
        hg_pool_check_denial(pool);
    if (pool->denied) {
        leave_line(quarantine, call);
        (void)hg_pool_refuse(pool, call, HG_FAULT_DENIED);
        return true;
    }
    if (may_be(quarantine) && !is_free_for(quarantine, pool)) {
        hg_quarantine_prepare(quarantine, pool);
        return is_free_for(quarantine, pool);
    }
    wake_first(quarantine);
    return true;
}

/* At the end of the turn. */
static void serve(struct hg_hub_wake *wake)
{
    struct hg_quarantine *quarantine = HG_CONTAINER_OF(wake, struct hg_quarantine, wake);
    if (!hg_server_may_send(quarantine->domain->server))
        fail_waiting(quarantine, HG_FAULT_DOWN);
    /* Who is woken may come again, behind the others. */
    for (uint32_t left = quarantine->waiting_count; left > 0 && quarantine->waiting_count > 0;
         left--) {
        if (!serve_first(quarantine))
            return;
    }
}

bool hg_quarantine_tick(struct hg_quarantine *quarantine, uint64_t now_us)
{
    hg_quarantine_tick_link(quarantine, now_us);
    if (now_us >= quarantine->waiting_end_us)
        expire_waiting(quarantine, now_us);
    serve_later(quarantine);
    return quarantine->waiting_count > 0 || hg_quarantine_pending(quarantine) > 0;
}

uint32_t hg_quarantine_pending(const struct hg_quarantine *quarantine)
{
    return quarantine->link == NULL ? 0 : hg_link_pending(quarantine->link);
}

void hg_quarantine_end(struct hg_quarantine *quarantine)
{
    hg_list_remove(&quarantine->wake.node);
    if (quarantine->link != NULL)
        hg_link_end(quarantine->link, HG_LINK_LET_GO, 0);
    fail_waiting(quarantine, HG_FAULT_LOST);
}
