// pool - the calls of one worker to one server: placing, waiting, waking
// SPDX-License-Identifier: BSD-3-Clause
#include "back/pool_in.h"

#include <assert.h>
#include <string.h>

/* Woken calls may do as much work as a turn's worth of new ones. */
#define WAKES_PER_TURN 256

static struct hg_link *link_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_link, node);
}

static struct hg_call *call_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_call, place.node);
}

static void wake(struct hg_hub_wake *hub_wake);

void hg_pool_init(struct hg_pool *pool, struct hg_server *server,
                  const struct hg_identity *identity, struct hg_hub *hub,
                  const struct hg_pool_conf *conf, struct hg_resolver *resolver, uint32_t worker)
{
    memset(pool, 0, sizeof *pool);
    pool->server = server;
    pool->identity = identity;
    pool->hub = hub;
    pool->conf = conf;
    pool->resolver = resolver;
    pool->worker = worker;
    pool->counters = &server->counters[worker];
    pool->waiting_end_us = UINT64_MAX;
    pool->told_us = pool->swept_us = hub->loop->now_us;
    hg_list_init(&pool->ready);
    hg_list_init(&pool->full);
    hg_list_init(&pool->waiting);
    hg_hub_wake_init(&pool->wake, wake);
    hg_retry_init(&pool->retry);
}

static enum hg_submit refuse(struct hg_pool *pool, struct hg_call *call, enum hg_fault fault)
{
    const struct hg_result result = {.fault = fault, .server = pool->server->address};
    call->place.pending = false;
    hg_tie_end(call);
    call->on_done(call, &result);
    return HG_SUBMIT_TAKEN;
}

struct hg_link *hg_pool_pick(struct hg_pool *pool)
{
    struct hg_list *node = hg_list_first(&pool->ready);
    if (HG_LIKELY(node != NULL && !hg_link_is_large(link_at(node))))
        return link_at(node);
    HG_LIST_EACH(other, &pool->ready)
    {
        if (!hg_link_is_large(link_at(other)))
            return link_at(other);
    }
    hg_pool_grow(pool);
    node = hg_list_first(&pool->ready);
    return node == NULL ? NULL : link_at(node);
}

void hg_pool_note_use(struct hg_pool *pool, struct hg_link *link)
{
    if (HG_UNLIKELY(!hg_link_has_room(link))) {
        hg_list_remove(&link->node);
        hg_list_append(&pool->full, &link->node);
        link->full = true;
    } else if (pool->ready.next != &link->node) {
        hg_list_remove(&link->node);
        hg_list_prepend(&pool->ready, &link->node);
    }
}

static void count_waiting(struct hg_pool *pool, int n)
{
    pool->waiting_count += (uint32_t)n;
    hg_counter_set(&pool->counters->values[HG_UPSTREAM_WAITING], pool->waiting_count);
}

/* Is there nothing to wait for: no connection that may get room, and none that comes up? */
static bool is_in_vain(const struct hg_pool *pool)
{
    return pool->coming == NULL && (pool->hung || (pool->draining && pool->link_count == 0));
}

static enum hg_submit wait_in_line(struct hg_pool *pool, struct hg_call *call,
                                   struct hg_link *bound)
{
    uint64_t now_us = pool->hub->loop->now_us;
    bool again = call == pool->waking;
    if (!again && pool->waiting_count >= pool->conf->queue_max) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_QUEUE_FULL, 1);
        return refuse(pool, call, HG_FAULT_QUEUE_FULL);
    }
    if (is_in_vain(pool)) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_REFUSED_DOWN, 1);
        return refuse(pool, call, HG_FAULT_DOWN);
    }
    uint64_t since_us = again ? pool->waking_since_us : now_us;
    uint64_t end_us = since_us + pool->conf->queue_timeout_us;
    if (call->deadline_us != 0 && call->deadline_us < end_us)
        end_us = call->deadline_us;
    if (end_us <= now_us) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_QUEUE_TIMEOUTS, 1);
        return refuse(pool, call, HG_FAULT_QUEUE_TIMEOUT);
    }
    if (end_us < pool->waiting_end_us)
        pool->waiting_end_us = end_us;
    call->place.link = NULL;
    call->place.pending = false;
    call->place.waiting = true;
    call->place.index = pool->server->index;
    call->place.since_us = since_us;
    call->place.extra = bound;
    hg_list_init(&call->place.node);
    if (again)
        hg_list_prepend(&pool->waiting, &call->place.node);
    else
        hg_list_append(&pool->waiting, &call->place.node);
    pool->waiting_bound += bound != NULL;
    count_waiting(pool, 1);
    if (!again && bound == NULL && !hg_list_empty(&pool->ready))
        hg_pool_wake_later(pool); /* those in front wait for other links */
    return HG_SUBMIT_WAIT;
}

/* The link that the call must use, for the sake of an earlier one; NULL: any. *ret_wait: the
   earlier one waits itself, so this one waits behind it. */
static struct hg_link *bound_link(const struct hg_pool *pool, const struct hg_call *after,
                                  bool *ret_wait)
{
    *ret_wait = after->place.waiting;
    struct hg_link *link = after->place.waiting ? after->place.extra : after->place.link;
    return link != NULL && link->pool == pool ? link : NULL;
}

/* What hangs is used only if no other connection can be tried now, and none has failed yet. */
static struct hg_link *pick_hung(struct hg_pool *pool)
{
    hg_pool_grow(pool);
    return pool->coming != NULL || pool->trial_failed ? NULL : hg_pool_pick(pool);
}

/* May it go before those that wait? It is the one that was woken, or comes with it: its client's
   next ones go along, up to HG_POOL_BURST, or each would travel, and be answered, by itself. */
static bool may_pass(struct hg_pool *pool, const struct hg_call *call)
{
    if (call == pool->waking)
        return true;
    if (pool->burst == 0)
        return false;
    pool->burst--;
    return true;
}

enum hg_submit hg_pool_submit(struct hg_pool *pool, struct hg_call *call)
{
    struct hg_link *link = NULL;
    call->place.waiting = false;
    if (HG_UNLIKELY(!hg_server_may_send(pool->server) || pool->closing)) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_REFUSED_DOWN, 1);
        return refuse(pool, call, HG_FAULT_DOWN);
    }
    struct hg_link *bound = NULL;
    bool behind = false;
    if (HG_UNLIKELY(call->after != NULL && call->after->place.store == call->place.store))
        bound = bound_link(pool, call->after, &behind);
    if (HG_UNLIKELY(behind))
        return wait_in_line(pool, call, bound);
    if (HG_UNLIKELY(bound != NULL))
        link = bound->state == HG_LINK_READY && hg_link_has_slack(bound) ? bound : NULL;
    else if (HG_UNLIKELY(pool->hung))
        link = pick_hung(pool);
    else if (HG_LIKELY(pool->waiting_count == pool->waiting_bound || may_pass(pool, call)))
        link = hg_pool_pick(pool);
    if (HG_UNLIKELY(link == NULL))
        return wait_in_line(pool, call, bound);
    enum hg_fault fault = HG_FAULT_INTERNAL;
    if (HG_UNLIKELY(!hg_link_submit(link, call, &fault)))
        return refuse(pool, call, fault);
    hg_pool_note_use(pool, link);
    pool->sent_untold++;
    hg_upstream_count(pool->counters, HG_UPSTREAM_REQUESTS, 1);
    return HG_SUBMIT_TAKEN;
}

/* Takes a call out of the line. */
static void leave_line(struct hg_pool *pool, struct hg_call *call)
{
    hg_list_remove(&call->place.node);
    call->place.waiting = false;
    pool->waiting_bound -= call->place.extra != NULL;
    count_waiting(pool, -1);
}

void hg_pool_cancel(struct hg_pool *pool, struct hg_call *call)
{
    leave_line(pool, call);
    hg_tie_end(call);
}

void hg_pool_wake_later(struct hg_pool *pool)
{
    if (pool->waiting_count > 0)
        hg_hub_wake_later(pool->hub, &pool->wake);
}

/* Calls that can be put on links now. */
static uint32_t free_slots(struct hg_pool *pool)
{
    uint32_t n = pool->waiting_bound;
    HG_LIST_EACH(node, &pool->ready)
    {
        n += pool->conf->link.depth - hg_link_pending(link_at(node));
    }
    return n;
}

static bool can_go(struct hg_pool *pool, const struct hg_call *call)
{
    const struct hg_link *bound = call->place.extra;
    if (bound != NULL)
        return bound->state == HG_LINK_READY && hg_link_has_slack(bound);
    return !hg_list_empty(&pool->ready);
}

/* Lets as many calls try again as there is room for, oldest first. */
static void wake(struct hg_hub_wake *hub_wake)
{
    struct hg_pool *pool = HG_CONTAINER_OF(hub_wake, struct hg_pool, wake);
    struct hg_list skipped;
    hg_list_init(&skipped);
    uint32_t budget = free_slots(pool);
    if (budget > WAKES_PER_TURN)
        budget = WAKES_PER_TURN;
    struct hg_list *node;
    while (budget > 0 && (node = hg_list_first(&pool->waiting)) != NULL) {
        struct hg_call *call = call_at(node);
        if (!can_go(pool, call)) {
            if (call->place.extra == NULL)
                break;
            hg_list_remove(node);
            hg_list_append(&skipped, node);
            continue;
        }
        budget--;
        leave_line(pool, call);
        pool->waking = call;
        pool->waking_since_us = call->place.since_us;
        pool->burst = HG_POOL_BURST;
        call->on_room(call);
        pool->burst = 0;
        pool->waking = NULL;
    }
    hg_list_splice(&skipped, &pool->waiting);
    hg_list_splice(&pool->waiting, &skipped);
    if (hg_list_empty(&pool->waiting))
        return;
    if (hg_list_empty(&pool->ready))
        hg_pool_grow(pool);
    else if (budget == 0)
        hg_hub_wake_later(pool->hub, &pool->wake);
    /* else they are bound to full links, which will tell */
}

void hg_pool_fail_waiting(struct hg_pool *pool, enum hg_fault fault)
{
    struct hg_list old;
    hg_list_init(&old);
    hg_list_splice(&old, &pool->waiting);
    struct hg_list *node;
    while ((node = hg_list_first(&old)) != NULL) {
        leave_line(pool, call_at(node));
        (void)refuse(pool, call_at(node), fault);
    }
}

void hg_pool_unbind(struct hg_pool *pool, const struct hg_link *link)
{
    HG_LIST_EACH(node, &pool->waiting)
    {
        if (call_at(node)->place.extra != link)
            continue;
        call_at(node)->place.extra = NULL;
        pool->waiting_bound--;
    }
}

/* Answers those that have waited too long. */
static void expire_waiting(struct hg_pool *pool, uint64_t now_us)
{
    struct hg_list old, kept, *node;
    hg_list_init(&old);
    hg_list_init(&kept);
    hg_list_splice(&old, &pool->waiting);
    pool->waiting_end_us = UINT64_MAX;
    uint64_t next_us = UINT64_MAX;
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = call_at(node);
        uint64_t end_us = call->place.since_us + pool->conf->queue_timeout_us;
        if (call->deadline_us != 0 && call->deadline_us < end_us)
            end_us = call->deadline_us;
        if (end_us > now_us) {
            if (end_us < next_us)
                next_us = end_us;
            hg_list_remove(node);
            hg_list_append(&kept, node);
            continue;
        }
        leave_line(pool, call);
        hg_upstream_count(pool->counters, HG_UPSTREAM_QUEUE_TIMEOUTS, 1);
        (void)refuse(pool, call, HG_FAULT_QUEUE_TIMEOUT);
    }
    /* Those that came meanwhile are behind. */
    hg_list_splice(&kept, &pool->waiting);
    hg_list_splice(&pool->waiting, &kept);
    if (next_us < pool->waiting_end_us)
        pool->waiting_end_us = next_us;
}

bool hg_pool_tick(struct hg_pool *pool, uint64_t now_us)
{
    bool busy = hg_pool_tick_links(pool, now_us);
    if (pool->waiting_count > 0) {
        if (!hg_server_may_send(pool->server) || is_in_vain(pool))
            hg_pool_fail_waiting(pool, HG_FAULT_DOWN);
        else if (now_us >= pool->waiting_end_us)
            expire_waiting(pool, now_us);
        hg_pool_wake_later(pool);
    }
    return busy || pool->waiting_count > 0;
}

void hg_pool_drain(struct hg_pool *pool)
{
    pool->draining = true;
    hg_pool_tick(pool, pool->hub->loop->now_us);
}

void hg_pool_fini(struct hg_pool *pool)
{
    pool->closing = true;
    hg_list_remove(&pool->wake.node);
    hg_pool_end_links(pool);
    hg_pool_fail_waiting(pool, HG_FAULT_LOST);
    assert(pool->waiting_count == 0);
}
