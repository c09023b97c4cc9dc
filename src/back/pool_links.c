// pool_links - the connections of one worker to one server: making, losing, probing, closing
// SPDX-License-Identifier: BSD-3-Clause
#include "back/pool_in.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define STUCK_MIN_US   20000
#define STUCK_FACTOR   10
#define ASK_AGAIN_US   10000    /* when only somebody else's outcome helps */
#define SECOND_US      1000000u /* for sweeps and sums */
#define ADDRS_FRESH_US 1000000u

static const struct hg_link_owner owner;

static bool is_up(enum hg_link_state state)
{
    return state == HG_LINK_READY || state == HG_LINK_DRAINING;
}

static void count_up(struct hg_pool *pool, int n)
{
    pool->up_count += (uint32_t)n;
    hg_counter_set(&pool->counters->values[HG_UPSTREAM_CONNECTIONS], pool->up_count);
}

/* Has the oldest request of every link waited longer than this? */
static bool all_waited(const struct hg_pool *pool, uint64_t limit_us)
{
    uint64_t now_us = pool->hub->loop->now_us;
    for (uint32_t i = 0; i < pool->link_count; i++) {
        if (is_up(pool->links[i]->state) && hg_link_waited_us(pool->links[i], now_us) < limit_us)
            return false;
    }
    return pool->up_count > 0;
}

/* Does no link get answers as usual? */
static bool all_stuck(const struct hg_pool *pool)
{
    uint64_t limit_us = pool->usual_us * STUCK_FACTOR;
    return all_waited(pool, limit_us < STUCK_MIN_US ? STUCK_MIN_US : limit_us);
}

/* Has no link that is up heard a byte for a whole time-out, though something is due on each? */
static bool all_silent(const struct hg_pool *pool, uint64_t now_us)
{
    for (uint32_t i = 0; i < pool->link_count; i++) {
        const struct hg_link *link = pool->links[i];
        if (is_up(link->state) &&
            (hg_link_pending(link) == 0 || now_us - link->heard_us < pool->conf->link.timeout_us))
            return false;
    }
    return pool->up_count > 0;
}

static struct hg_link *add_link(struct hg_pool *pool)
{
    if (pool->link_count == pool->link_cap) {
        uint32_t cap = pool->link_cap == 0 ? 4 : pool->link_cap * 2;
        struct hg_link **links = realloc(pool->links, cap * sizeof(struct hg_link *));
        if (links == NULL)
            return NULL;
        pool->links = links;
        pool->link_cap = cap;
    }
    struct hg_link *link = hg_link_new(pool->hub, pool->conf->dialect, &pool->conf->link, &owner,
                                       pool, pool->counters);
    if (link == NULL)
        return NULL;
    link->server = pool->server->address;
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
        hg_link_end(pool->coming, HG_LINK_NO_CONNECT, resolve->error);
        return;
    }
    hg_server_put_addrs(pool->server, &resolve->addrs, pool->hub->loop->now_us);
    if (!hg_server_get_addrs(pool->server, 0, &pool->addrs))
        pool->addrs = resolve->addrs;
    hg_link_connect(pool->coming, &pool->addrs, pool->coming->probe);
}

/* Connects pool->coming: at once if the address is known, else when its name has been looked up.
   While other links are up, where they lead to is good enough. After a failure a connection proves
   little: a kernel makes them for a process that hangs. So it must answer something first. */
static void connect_coming(struct hg_pool *pool)
{
    bool probe = pool->coming_kind == HG_BREAKER_PROBE || pool->in_doubt;
    uint64_t now_us = pool->hub->loop->now_us;
    uint64_t since_us = now_us > ADDRS_FRESH_US ? now_us - ADDRS_FRESH_US : 0;
    pool->coming->probe = probe;
    if (hg_server_get_addrs(pool->server, pool->up_count > 0 ? 0 : since_us, &pool->addrs)) {
        hg_link_connect(pool->coming, &pool->addrs, probe);
        return;
    }
    if (pool->resolver != NULL)
        pool->resolve =
            hg_resolve_submit(pool->resolver, pool->server->address, pool->server->default_port,
                              pool->hub->mailbox, on_resolved, pool);
    if (pool->resolve == NULL)
        hg_link_end(pool->coming, HG_LINK_NO_CONNECT, -ENOMEM);
}

void hg_pool_grow(struct hg_pool *pool)
{
    uint64_t now_us = pool->hub->loop->now_us, next_us;
    if (pool->coming != NULL || pool->draining || pool->closing || now_us < pool->ask_again_us)
        return;
    if (pool->link_count >= pool->conf->share || (!pool->hung && all_stuck(pool)))
        return;
    enum hg_breaker_connect how =
        hg_server_take_connect(pool->server, pool->worker, now_us, &next_us);
    if (how == HG_BREAKER_WAIT) {
        uint64_t latest_us = now_us + SECOND_US;
        pool->ask_again_us = next_us <= now_us || next_us == UINT64_MAX ? now_us + ASK_AGAIN_US
                             : next_us < latest_us                      ? next_us
                                                                        : latest_us;
        return;
    }
    struct hg_link *link = add_link(pool);
    if (link == NULL) {
        hg_server_tell_abandoned(pool->server, pool->worker, how);
        pool->ask_again_us = now_us + ASK_AGAIN_US;
        return;
    }
    if (how == HG_BREAKER_PROBE)
        hg_upstream_count(pool->counters, HG_UPSTREAM_PROBES, 1);
    pool->coming = link;
    pool->coming_kind = how;
    pool->coming_end_us = now_us + pool->conf->connect_timeout_us;
    connect_coming(pool);
}

static void on_ready(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    if (link == pool->coming) {
        pool->coming = NULL;
        if (pool->server->named)
            hg_server_start_with(pool->server, hg_link_addr(link));
    }
    pool->in_doubt = pool->hung = pool->trial_failed = false;
    count_up(pool, 1);
    hg_upstream_count(pool->counters, HG_UPSTREAM_CONNECTS, 1);
    hg_server_tell_connected(pool->server, pool->worker, pool->coming_kind,
                             pool->hub->loop->now_us);
    hg_list_prepend(&pool->ready, &link->node);
    hg_pool_note_use(pool, link);
    hg_pool_wake_later(pool);
}

static void on_room(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    bool has_room = hg_link_has_room(link);
    if (has_room && link->state == HG_LINK_READY) {
        link->full = false;
        hg_list_remove(&link->node);
        hg_list_append(&pool->ready, &link->node);
    }
    if (has_room || pool->waiting_bound > 0)
        hg_pool_wake_later(pool);
}

static void on_answers(struct hg_link *link, uint32_t in_time, uint64_t waited_us)
{
    struct hg_pool *pool = link->pool;
    (void)in_time;
    pool->usual_us = pool->usual_us == 0 ? waited_us : (pool->usual_us * 15 + waited_us) / 16;
    if (HG_UNLIKELY(hg_breaker_is_suspect(&pool->server->breaker)))
        hg_server_tell_answered(pool->server, pool->worker);
    if (HG_UNLIKELY(pool->draining && hg_link_pending(link) == 0 && pool->waiting_count == 0))
        hg_link_end(link, HG_LINK_LET_GO, 0);
}

void hg_pool_tell_sent(struct hg_pool *pool, uint64_t now_us)
{
    pool->told_us = now_us;
    if (pool->sent_untold == 0)
        return;
    hg_server_tell_sent(pool->server, pool->worker, pool->sent_untold, now_us);
    hg_retry_tell_sent(&pool->retry, pool->sent_untold);
    pool->sent_untold = 0;
}

static void on_timeout(struct hg_link *link, const struct hg_call *call, uint64_t waited_us)
{
    struct hg_pool *pool = link->pool;
    uint64_t now_us = pool->hub->loop->now_us;
    if (waited_us < pool->conf->link.timeout_us)
        return; /* the client's deadline, not the server's fault */
    hg_pool_tell_sent(pool, now_us);
    hg_server_tell_timeout(pool->server, pool->worker, call->key_hash,
                           all_waited(pool, pool->conf->link.timeout_us), now_us);
}

struct move {
    struct hg_pool *pool;
    bool untouched; /* nothing at all of what was unanswered had been sent */
};

/* Where a call that was not sent goes when its link ended: to one that is up or coming. A write
   that was sent before, and may yet be carried out, must not be overtaken by a later one; and what
   would be sent for a second time, as it were, is drawn from the retry budget. */
static struct hg_link *move_target(void *arg, const struct hg_call *call)
{
    const struct move *move = arg;
    struct hg_pool *pool = move->pool;
    if (!hg_server_may_send(pool->server))
        return NULL;
    if (!move->untouched && (call->op != HG_OP_GET || !hg_retry_take(&pool->retry)))
        return NULL;
    struct hg_link *link = hg_pool_pick(pool);
    if (link == NULL && pool->coming != NULL && hg_link_takes_early(pool->coming))
        link = pool->coming;
    return link != NULL && hg_link_has_room(link) ? link : NULL;
}

static void log_end(const struct hg_pool *pool, const struct hg_link *link, enum hg_link_why why,
                    int error)
{
    static const char *const texts[] = {
        [HG_LINK_REFUSED] = "cannot connect",
        [HG_LINK_NO_CONNECT] = "cannot connect",
        [HG_LINK_REJECTED] = "cannot log in",
        [HG_LINK_CLOSED] = "connection lost",
        [HG_LINK_GARBAGE] = "connection closed for a bad reply",
        [HG_LINK_SILENT] = "connection closed, the server is silent",
        [HG_LINK_MEMORY] = "connection closed, memory is out",
        [HG_LINK_LET_GO] = "connection closed",
    };
    const char *why_text = error == 0 ? "end of stream" : strerror(-error);
    if (why == HG_LINK_LET_GO)
        hg_log_debug("upstream=%s server=%s msg=\"%s\"", pool->server->upstream,
                     pool->server->address, texts[why]);
    else
        hg_log_info("upstream=%s server=%s unanswered=%u msg=\"%s: %s\"", pool->server->upstream,
                    pool->server->address, hg_link_pending(link), texts[why], why_text);
}

/* Tells breaker and counters how a link ended. `sent`: something was sent and not answered. */
static void account_end(struct hg_pool *pool, const struct hg_link *link, enum hg_link_state was,
                        enum hg_link_why why, bool sent)
{
    uint64_t now_us = pool->hub->loop->now_us;
    if (is_up(was)) {
        count_up(pool, -1);
        if (why == HG_LINK_CLOSED || why == HG_LINK_SILENT)
            hg_upstream_count(pool->counters, HG_UPSTREAM_DISCONNECTS, 1);
        if (why == HG_LINK_GARBAGE)
            hg_upstream_count(pool->counters, HG_UPSTREAM_BAD_REPLIES, 1);
        bool failed =
            why == HG_LINK_GARBAGE || why == HG_LINK_SILENT || (why == HG_LINK_CLOSED && sent);
        pool->in_doubt |= failed;
        pool->hung &= pool->up_count > 0;
        hg_server_tell_lost(pool->server, pool->worker, failed, now_us);
        return;
    }
    pool->coming = NULL;
    hg_resolve_forget(pool->resolver, pool->resolve);
    pool->resolve = NULL;
    if (why == HG_LINK_LET_GO || why == HG_LINK_MEMORY || why == HG_LINK_REJECTED) {
        hg_server_tell_abandoned(pool->server, pool->worker, pool->coming_kind);
        pool->ask_again_us = now_us + (why == HG_LINK_REJECTED ? SECOND_US : ASK_AGAIN_US);
        return;
    }
    pool->trial_failed = pool->hung;
    hg_upstream_count(pool->counters, HG_UPSTREAM_CONNECT_FAILURES, 1);
    if (pool->server->named && link->addrs != NULL)
        hg_server_start_with(pool->server, hg_link_addr(link) + 1);
    hg_server_tell_failed(pool->server, pool->worker, pool->coming_kind, why == HG_LINK_REFUSED,
                          now_us);
}

static void on_end(struct hg_link *link, enum hg_link_state was, enum hg_link_why why, int error)
{
    struct hg_pool *pool = link->pool;
    pool->links[link->pool_index] = pool->links[--pool->link_count];
    pool->links[link->pool_index]->pool_index = link->pool_index;
    hg_list_remove(&link->node);
    log_end(pool, link, why, error);
    uint32_t unsent = hg_link_first_unsent(link);
    struct move move = {pool, unsent == link->head};
    account_end(pool, link, was, why, unsent != link->head && is_up(was));
    if (pool->closing)
        unsent = link->tail;
    hg_link_fail(link, unsent, HG_FAULT_LOST);
    hg_link_move(link, move_target, &move);
    hg_pool_unbind(pool, link);
    if (pool->closing)
        return;
    if (!hg_server_may_send(pool->server))
        hg_pool_fail_waiting(pool, HG_FAULT_DOWN);
    else
        hg_pool_wake_later(pool);
}

static void on_again(struct hg_link *link, struct hg_call *call, const struct hg_reply *reply)
{
    struct hg_pool *pool = link->pool;
    pool->conf->on_again(pool->conf->store, pool, link, call, reply);
}

static const struct hg_link_owner owner = {
    .on_ready = on_ready,
    .on_room = on_room,
    .on_answers = on_answers,
    .on_timeout = on_timeout,
    .on_again = on_again,
    .on_end = on_end,
};

/* Ends links that nobody has used for long, but for one. */
static void sweep_idle(struct hg_pool *pool, uint64_t now_us)
{
    pool->swept_us = now_us;
    for (uint32_t i = pool->link_count; i-- > 0;) {
        if (i >= pool->link_count)
            continue;
        struct hg_link *link = pool->links[i];
        if (link->state != HG_LINK_READY || hg_link_pending(link) > 0)
            continue;
        if (pool->draining ||
            (pool->up_count > 1 && now_us - link->heard_us >= pool->conf->idle_us))
            hg_link_end(link, HG_LINK_LET_GO, 0);
    }
}

/* The breaker has opened: what is up is of no use, and the probe is to be the only connection. */
static void end_up(struct hg_pool *pool)
{
    for (uint32_t i = pool->link_count; i-- > 0;) {
        if (i < pool->link_count && is_up(pool->links[i]->state))
            hg_link_end(pool->links[i], HG_LINK_LET_GO, 0);
    }
}

uint32_t hg_pool_pending(const struct hg_pool *pool)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < pool->link_count; i++)
        pending += hg_link_pending(pool->links[i]);
    return pending;
}

bool hg_pool_tick_links(struct hg_pool *pool, uint64_t now_us)
{
    /* Links may end, others come, while this walks. */
    for (uint32_t i = pool->link_count; i-- > 0;) {
        if (i < pool->link_count)
            hg_link_tick(pool->links[i], now_us);
    }
    if (pool->coming != NULL && now_us >= pool->coming_end_us)
        hg_link_end(pool->coming, HG_LINK_NO_CONNECT, -ETIMEDOUT);
    if (now_us - pool->told_us >= SECOND_US)
        hg_pool_tell_sent(pool, now_us);
    if (pool->draining || now_us - pool->swept_us >= SECOND_US)
        sweep_idle(pool, now_us);
    bool may_send = hg_server_may_send(pool->server);
    if (!may_send)
        end_up(pool);
    pool->hung = all_silent(pool, now_us);
    pool->trial_failed &= pool->hung;
    pool->in_doubt |= pool->hung;
    if (!may_send || pool->hung)
        hg_pool_grow(pool);
    uint32_t pending = hg_pool_pending(pool);
    hg_counter_set(&pool->counters->values[HG_UPSTREAM_PENDING], pending);
    return pending > 0 || pool->coming != NULL || (!may_send && !pool->draining);
}

void hg_pool_end_links(struct hg_pool *pool)
{
    while (pool->link_count > 0)
        hg_link_end(pool->links[pool->link_count - 1], HG_LINK_LET_GO, 0);
    free(pool->links);
    pool->links = NULL;
    pool->link_cap = 0;
}
