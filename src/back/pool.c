// pool - the calls of one worker to one server as one identity: placing, waiting, waking
// SPDX-License-Identifier: BSD-3-Clause
#include "back/pool_in.h"
#include "back/remote.h"

#include <assert.h>
#include <stdio.h>
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

void hg_pool_init(struct hg_pool *pool, struct hg_domain *domain,
                  const struct hg_identity *identity, struct hg_pool_counters *stats)
{
    memset(pool, 0, sizeof *pool);
    pool->domain = domain;
    pool->server = domain->server;
    pool->identity = identity;
    pool->hub = domain->hub;
    pool->conf = domain->conf;
    pool->resolver = domain->resolver;
    pool->worker = domain->worker;
    pool->draining = domain->draining;
    pool->closing = domain->closing;
    pool->counters = &domain->server->counters[domain->worker];
    pool->stats = stats;
    pool->waiting_end_us = UINT64_MAX;
    pool->told_us = domain->hub->loop->now_us;
    hg_list_init(&pool->ready);
    hg_list_init(&pool->full);
    hg_list_init(&pool->slow);
    hg_list_init(&pool->waiting);
    hg_list_init(&pool->node);
    hg_hub_wake_init(&pool->wake, wake);
    hg_retry_init(&pool->retry);
}

enum hg_submit hg_pool_refuse(struct hg_pool *pool, struct hg_call *call, enum hg_fault fault)
{
    char text[256 + HG_LINK_DENIAL_MAX];
    struct hg_result result = {.fault = fault, .server = pool->server->address};
    if (HG_UNLIKELY(fault == HG_FAULT_DENIED)) {
        int len = snprintf(text, sizeof text, "the server %.160s refuses the login of the %s: %s",
                           pool->server->address, pool->identity->id == 0 ? "upstream" : "tenant",
                           pool->denial);
        result.value = hg_span(text, (size_t)len);
    }
    call->place.pending = false;
    hg_tie_end(call);
    call->on_done(call, &result);
    return HG_SUBMIT_TAKEN;
}

/* No link has room for a call: the planner says what is to be done about it. */
static void ask_planner(struct hg_pool *pool)
{
    struct hg_domain *domain = pool->domain;
    if (HG_UNLIKELY(pool->denied))
        hg_pool_check_denial(pool);
    hg_domain_list(domain, pool);
    const struct hg_balance_plan plan =
        hg_balance_plan_acquire(&domain->balance, &pool->block, pool->hub->loop->now_us);
    hg_domain_carry_out(domain, &plan, true);
}

static __attribute__((noinline)) struct hg_link *pick_other(struct hg_pool *pool)
{
    HG_LIST_EACH(node, &pool->ready)
    {
        struct hg_link *link = link_at(node);
        if (hg_pool_is_clear(pool, link) || (!hg_link_is_large(link) && !hg_pool_turns_slow(link)))
            return link;
    }
    ask_planner(pool);
    struct hg_list *node = hg_list_first(&pool->ready);
    return node == NULL ? NULL : link_at(node);
}

struct hg_link *hg_pool_pick(struct hg_pool *pool)
{
    struct hg_list *node = pool->ready.next;
    if (HG_UNLIKELY(pool->apart)) {
        struct hg_link *link = hg_pool_pick_apart(pool);
        return link != NULL ? link : pick_other(pool);
    }
    if (HG_LIKELY(node != &pool->ready && hg_pool_is_clear(pool, link_at(node))))
        return link_at(node);
    return pick_other(pool);
}

void hg_pool_note_use(struct hg_pool *pool, struct hg_link *link)
{
    if (HG_UNLIKELY(!hg_link_has_room(link))) {
        if (link->slow)
            return;
        hg_list_remove(&link->node);
        hg_list_append(&pool->full, &link->node);
        link->full = true;
    } else if (pool->ready.next != &link->node && !link->slow) {
        hg_list_remove(&link->node);
        hg_list_prepend(&pool->ready, &link->node);
    }
}

static void count_waiting(struct hg_pool *pool, int n)
{
    pool->waiting_count += (uint32_t)n;
    hg_domain_count_waiting(pool->domain, n);
}

/* The planner hears of those that wait for any link. */
static void begin_to_wait(struct hg_pool *pool, uint64_t since_us)
{
    hg_domain_list(pool->domain, pool);
    hg_balance_wait_begin(&pool->domain->balance, &pool->block, since_us);
}

static void end_to_wait(struct hg_pool *pool)
{
    uint64_t oldest_us = pool->hub->loop->now_us;
    HG_LIST_EACH(node, &pool->waiting)
    {
        if (call_at(node)->place.extra != NULL)
            continue;
        oldest_us = call_at(node)->place.since_us;
        break;
    }
    hg_balance_wait_end(&pool->domain->balance, &pool->block, oldest_us);
}

/* Is there nothing to wait for: no connection that may get room, and none that comes up? Then
 *ret_fault says what keeps them away. */
static bool is_in_vain(const struct hg_pool *pool, enum hg_fault *ret_fault)
{
    *ret_fault = pool->denied ? HG_FAULT_DENIED : HG_FAULT_DOWN;
    if (HG_UNLIKELY(!hg_server_may_send(pool->server)))
        return true;
    if (HG_UNLIKELY(pool->hung))
        return pool->block.coming + pool->block.incoming == 0;
    return (pool->denied || pool->draining) && !hg_pool_has_source(pool);
}

static enum hg_submit wait_in_line(struct hg_pool *pool, struct hg_call *call,
                                   struct hg_link *bound)
{
    uint64_t now_us = pool->hub->loop->now_us;
    bool again = call == pool->waking;
    if (!again && pool->waiting_count >= pool->conf->queue_max) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_QUEUE_FULL, 1);
        return hg_pool_refuse(pool, call, HG_FAULT_QUEUE_FULL);
    }
    enum hg_fault fault;
    if (is_in_vain(pool, &fault)) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_REFUSED_DOWN, 1);
        return hg_pool_refuse(pool, call, fault);
    }
    uint64_t since_us = again ? pool->waking_since_us : now_us;
    uint64_t end_us = since_us + pool->conf->queue_timeout_us;
    if (call->deadline_us != 0 && call->deadline_us < end_us)
        end_us = call->deadline_us;
    if (end_us <= now_us) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_QUEUE_TIMEOUTS, 1);
        return hg_pool_refuse(pool, call, HG_FAULT_QUEUE_TIMEOUT);
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
    count_waiting(pool, 1);
    if (bound != NULL)
        pool->waiting_bound++;
    else
        begin_to_wait(pool, since_us);
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
    hg_pool_connect(pool);
    if (pool->coming != NULL || pool->trial_failed)
        return NULL;
    struct hg_link *link = hg_pool_pick(pool);
    struct hg_list *slow = hg_list_first(&pool->slow);
    if (link == NULL && slow != NULL && hg_link_has_room(link_at(slow)))
        link = link_at(slow);
    return link;
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

/* Must it wait until the one before is answered, wherever that goes? It is in quarantine, or waits
   for another itself. */
static bool comes_after_all(const struct hg_pool *pool, const struct hg_call *after)
{
    return hg_quarantine_has(&pool->domain->quarantine, after) || hg_tie_waits(after);
}

enum hg_submit hg_pool_submit(struct hg_pool *pool, struct hg_call *call)
{
    struct hg_link *link = NULL;
    call->place.waiting = false;
    if (HG_UNLIKELY(!hg_server_may_send(pool->server) || pool->closing)) {
        hg_upstream_count(pool->counters, HG_UPSTREAM_REFUSED_DOWN, 1);
        return hg_pool_refuse(pool, call, HG_FAULT_DOWN);
    }
    if (HG_UNLIKELY(!pool->block.active))
        hg_domain_list(pool->domain, pool);
    if (HG_UNLIKELY(call->quarantine) && hg_quarantine_takes(&pool->domain->quarantine, call))
        return hg_quarantine_submit(&pool->domain->quarantine, call);
    if (HG_LIKELY(call != pool->waking))
        hg_balance_arrived(&pool->domain->balance, &pool->block, pool->hub->loop->now_us);
    struct hg_link *bound = NULL;
    bool behind = false;
    bool follows = call->after != NULL && call->after->place.store == call->place.store;
    if (HG_UNLIKELY(follows) && comes_after_all(pool, call->after))
        return hg_tie_behind(&pool->conf->store->ties, call, call->after)
                   ? HG_SUBMIT_WAIT
                   : hg_pool_refuse(pool, call, HG_FAULT_MEMORY);
    if (HG_UNLIKELY(follows))
        bound = bound_link(pool, call->after, &behind);
    if (HG_UNLIKELY(behind))
        return wait_in_line(pool, call, bound);
    if (HG_UNLIKELY(bound != NULL))
        link = hg_pool_link_is_open(bound) && hg_link_has_slack(bound) ? bound : NULL;
    else if (HG_UNLIKELY(pool->hung))
        link = pick_hung(pool);
    else if (HG_LIKELY(pool->waiting_count == pool->waiting_bound || may_pass(pool, call)))
        link = hg_pool_pick(pool);
    else
        ask_planner(pool); /* those in front may be too many for what comes */
    if (HG_UNLIKELY(link == NULL))
        return wait_in_line(pool, call, bound);
    enum hg_fault fault = HG_FAULT_INTERNAL;
    if (HG_UNLIKELY(!hg_link_submit(link, call, &fault)))
        return hg_pool_refuse(pool, call, fault);
    if (HG_UNLIKELY(link->conn.state == HG_BALANCE_IDLE))
        hg_balance_conn_busy(&pool->domain->balance, &link->conn, pool->hub->loop->now_us);
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
    count_waiting(pool, -1);
    if (call->place.extra != NULL)
        pool->waiting_bound--;
    else
        end_to_wait(pool);
}

void hg_pool_cancel(struct hg_pool *pool, struct hg_call *call)
{
    struct hg_quarantine *quarantine = &pool->domain->quarantine;
    if (HG_UNLIKELY(call->place.extra == quarantine)) {
        hg_quarantine_cancel(quarantine, call);
        return;
    }
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
        return hg_pool_link_is_open(bound) && hg_link_has_slack(bound);
    return !hg_list_empty(&pool->ready);
}

/* Do calls wait for more connections than are on their way? */
static bool is_short(const struct hg_pool *pool)
{
    const struct hg_balance_block *block = &pool->block;
    uint64_t room = (uint64_t)(block->coming + block->incoming) * pool->conf->link.depth;
    return block->waiters > room;
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
    if (hg_list_empty(&pool->ready)) {
        if (is_short(pool))
            ask_planner(pool);
    } else if (budget == 0)
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
        if (fault == HG_FAULT_DOWN && !hg_server_may_send(pool->server))
            hg_upstream_count(pool->counters, HG_UPSTREAM_REFUSED_DOWN, 1);
        (void)hg_pool_refuse(pool, call_at(node), fault);
    }
}

void hg_pool_send_away(struct hg_pool *pool)
{
    struct hg_list old, *node;
    hg_list_init(&old);
    hg_list_splice(&old, &pool->waiting);
    while ((node = hg_list_first(&old)) != NULL) {
        struct hg_call *call = call_at(node);
        leave_line(pool, call);
        call->on_room(call);
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
        begin_to_wait(pool, call_at(node)->place.since_us);
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
        (void)hg_pool_refuse(pool, call, HG_FAULT_QUEUE_TIMEOUT);
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
    enum hg_fault fault;
    if (HG_UNLIKELY(pool->denied))
        hg_pool_check_denial(pool);
    if (pool->waiting_count > 0) {
        if (!hg_server_may_send(pool->server))
            hg_pool_fail_waiting(pool, HG_FAULT_DOWN);
        else if (is_in_vain(pool, &fault))
            hg_pool_fail_waiting(pool, fault);
        else if (now_us >= pool->waiting_end_us)
            expire_waiting(pool, now_us);
        hg_pool_wake_later(pool);
    }
    return busy || pool->waiting_count > 0;
}

void hg_pool_drain(struct hg_pool *pool)
{
    pool->draining = true;
}

void hg_pool_fini(struct hg_pool *pool)
{
    pool->closing = true;
    hg_list_remove(&pool->wake.node);
    hg_pool_end_links(pool);
    hg_pool_fail_waiting(pool, HG_FAULT_LOST);
    assert(pool->waiting_count == 0);
}
