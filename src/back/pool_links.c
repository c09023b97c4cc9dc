// pool_links - the connections of one worker to one server: making, losing, probing, closing
// SPDX-License-Identifier: BSD-3-Clause
#include "back/pool_in.h"
#include "back/remote.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define SECOND_US 1000000u /* for sums of what was sent, which the retry budget grows by */

static bool is_up(enum hg_link_state state)
{
    return state == HG_LINK_READY || state == HG_LINK_DRAINING;
}

static void count_up(struct hg_pool *pool, int n)
{
    pool->up_count += (uint32_t)n;
    pool->domain->up_count += (uint32_t)n;
    hg_domain_show_up(pool->domain);
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

/* The pool has the link no more. */
static void remove_link(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    hg_pool_leave_slow(link);
    pool->links[link->pool_index] = pool->links[--pool->link_count];
    pool->links[link->pool_index]->pool_index = link->pool_index;
    hg_list_remove(&link->node);
}

void hg_pool_hand_over(struct hg_link *link, struct hg_pool *to)
{
    count_up(link->pool, -1);
    remove_link(link);
    link->full = false;
    link->pool = to;
    link->pool_index = to->link_count;
    to->links[to->link_count++] = link;
}

void hg_pool_let_go(struct hg_link *link)
{
    hg_pool_leave_slow(link);
    hg_list_remove(&link->node);
    link->full = false;
    hg_link_drain(link);
}

void hg_pool_offer(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    link->full = !hg_link_has_room(link);
    hg_list_append(link->full ? &pool->full : &pool->ready, &link->node);
    hg_pool_wake_later(pool);
}

/* What was made, not what was bound to another identity. Was something asked on it first? Then it
   was answered. */
static void account_made(struct hg_pool *pool, struct hg_link *link)
{
    pool->coming = NULL;
    link->live = true;
    if (pool->server->named)
        hg_server_start_with(pool->server, hg_link_addr(link));
    hg_upstream_count(pool->counters, HG_UPSTREAM_CONNECTS, 1);
    hg_server_tell_connected(pool->server, pool->worker, pool->coming_kind, link->proved,
                             pool->hub->loop->now_us);
    hg_domain_heed_breaker(pool->domain);
}

static void on_ready(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    struct hg_balance *balance = &pool->domain->balance;
    uint64_t now_us = pool->hub->loop->now_us;
    pool->in_doubt = pool->hung = pool->trial_failed = false;
    pool->denials = 0;
    count_up(pool, 1);
    if (!link->live)
        account_made(pool, link);
    hg_balance_conn_up(balance, &link->conn, now_us);
    hg_list_prepend(&pool->ready, &link->node);
    if (hg_link_pending(link) > 0)
        hg_balance_conn_busy(balance, &link->conn, now_us);
    hg_pool_note_use(pool, link);
    if (pool->waiting_count > 0)
        hg_pool_wake_later(pool);
    else if (hg_link_pending(link) == 0)
        hg_domain_release(pool->domain, link);
    hg_pool_spread(pool);
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

/* Nothing is unanswered: whose turn is it? Who had to use this link need not any more. */
static void on_empty(struct hg_pool *pool, struct hg_link *link)
{
    if (HG_UNLIKELY(pool->waiting_bound > 0)) {
        hg_pool_unbind(pool, link);
        hg_pool_wake_later(pool);
    }
    bool drained = link->conn.state == HG_BALANCE_DRAINING;
    hg_balance_conn_idle(&pool->domain->balance, &link->conn, pool->hub->loop->now_us);
    hg_domain_release(pool->domain, link);
    if (HG_UNLIKELY(drained))
        hg_domain_take_back(pool->domain, link);
}

static void on_answers(struct hg_link *link, uint32_t in_time, uint32_t late, uint64_t waited_us)
{
    struct hg_pool *pool = link->pool;
    struct hg_domain *domain = pool->domain;
    if (HG_LIKELY(in_time > 0)) {
        hg_domain_learn_usual(domain, waited_us);
        pool->answered_us = pool->hub->loop->now_us;
    }
    if (HG_UNLIKELY(hg_breaker_heeds(&pool->server->breaker)))
        hg_server_tell_answered(pool->server, pool->worker, pool->hub->loop->now_us);
    hg_balance_answered(&link->conn, in_time + late, pool->hub->loop->now_us);
    if (HG_UNLIKELY(link->slow))
        hg_pool_look_at_slow(link);
    if (hg_link_pending(link) == 0)
        on_empty(pool, link);
}

void hg_pool_tell_sent(struct hg_pool *pool, uint64_t now_us)
{
    pool->told_us = now_us;
    hg_retry_tell_sent(&pool->retry, pool->sent_untold);
    pool->sent_untold = 0;
}

static void on_timeout(struct hg_link *link, const struct hg_call *call, uint64_t waited_us)
{
    struct hg_pool *pool = link->pool;
    uint64_t timeout_us = pool->conf->link.timeout_us;
    if (waited_us < timeout_us)
        return; /* the client's deadline, not the server's fault */
    hg_server_tell_timeout(pool->server, pool->worker, call->key_hash, timeout_us,
                           pool->hub->loop->now_us);
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
    if (link == NULL || !hg_link_has_room(link))
        return NULL;
    if (link->conn.state == HG_BALANCE_IDLE)
        hg_balance_conn_busy(&pool->domain->balance, &link->conn, pool->hub->loop->now_us);
    return link;
}

static void log_end(const struct hg_pool *pool, const struct hg_link *link, enum hg_link_why why,
                    int error)
{
    char text[HG_LINK_WHY_BYTES];
    if (why == HG_LINK_LET_GO) {
        hg_log_debug("upstream=%s server=%s msg=\"connection closed\"", pool->server->upstream,
                     pool->server->address);
        return;
    }
    hg_link_end_text(link, why, error, text);
    if (why == HG_LINK_TLS_FAILED)
        hg_log_warn("upstream=%s server=%s msg=\"%s\"", pool->server->upstream,
                    pool->server->address, text);
    else
        hg_log_info("upstream=%s server=%s unanswered=%u msg=\"%s\"", pool->server->upstream,
                    pool->server->address, hg_link_pending(link), text);
    if (!link->live && why != HG_LINK_MEMORY)
        hg_server_note_error(pool->server, text);
}

/* What the end of a link that was up says of the server. `sent`: something was sent and not
   answered. */
static enum hg_breaker_loss loss_of(const struct hg_link *link, enum hg_link_why why, bool sent)
{
    bool by_peer = why == HG_LINK_CLOSED || why == HG_LINK_GARBAGE || why == HG_LINK_SILENT;
    if (by_peer && !link->proved)
        return HG_BREAKER_UNPROVEN;
    return by_peer && (sent || why != HG_LINK_CLOSED) ? HG_BREAKER_BROKEN : HG_BREAKER_ENDED;
}

/* Tells breaker and counters how a link ended that the breaker knew of. A server that just closed
   it is asked nothing before the next one is used. */
static void account_lost(struct hg_pool *pool, const struct hg_link *link, enum hg_link_why why,
                         bool sent)
{
    enum hg_breaker_loss loss = loss_of(link, why, sent);
    if (why == HG_LINK_CLOSED || why == HG_LINK_SILENT)
        hg_upstream_count(pool->counters, HG_UPSTREAM_DISCONNECTS, 1);
    if (why == HG_LINK_GARBAGE)
        hg_upstream_count(pool->counters, HG_UPSTREAM_BAD_REPLIES, 1);
    pool->in_doubt |=
        loss == HG_BREAKER_UNPROVEN || (loss == HG_BREAKER_BROKEN && why != HG_LINK_CLOSED);
    pool->hung &= pool->up_count > 0;
    hg_server_tell_lost(pool->server, pool->worker, loss, pool->hub->loop->now_us);
}

/* The same of one that was to log in as somebody else. The server may let him in and yet not take a
   second login on a connection: only a new one tells, so there is no other attempt of this kind. */
static bool account_not_bound(struct hg_pool *pool, enum hg_link_why why, int error)
{
    bool failed = error == -ETIMEDOUT;
    if (why == HG_LINK_REJECTED || why == HG_LINK_GARBAGE || (why == HG_LINK_NO_CONNECT && !failed))
        pool->no_rebind = true;
    if (why == HG_LINK_REJECTED)
        pool->totals.rejected++;
    pool->in_doubt |= failed;
    hg_server_tell_lost(pool->server, pool->worker, failed ? HG_BREAKER_BROKEN : HG_BREAKER_ENDED,
                        pool->hub->loop->now_us);
    return why != HG_LINK_LET_GO && why != HG_LINK_MEMORY && why != HG_LINK_REJECTED;
}

/* A connect failed; false: that says nothing of the server. */
static bool account_failed(struct hg_pool *pool, const struct hg_link *link, enum hg_link_why why)
{
    pool->trial_failed = pool->hung;
    hg_upstream_count(pool->counters, HG_UPSTREAM_CONNECT_FAILURES, 1);
    if (pool->server->named && link->addrs != NULL)
        hg_server_start_with(pool->server, hg_link_addr(link) + 1);
    if (hg_server_tell_failed(pool->server, pool->worker, pool->coming_kind, why == HG_LINK_REFUSED,
                              pool->hub->loop->now_us)) {
        pool->in_doubt = true;
        return true;
    }
    pool->totals.connect_errors++; /* the planner hears of the others */
    return false;
}

/* The same of one that has not come up. True: the server failed. */
static bool account_not_made(struct hg_pool *pool, const struct hg_link *link, enum hg_link_why why,
                             int error)
{
    uint64_t now_us = pool->hub->loop->now_us;
    pool->coming = NULL;
    hg_resolve_forget(pool->resolver, pool->resolve);
    pool->resolve = NULL;
    if (why == HG_LINK_REJECTED && pool->coming_kind == HG_BREAKER_PROBE) {
        /* That was an answer: the server is back, whoever it lets in. */
        hg_server_tell_connected(pool->server, pool->worker, pool->coming_kind, true, now_us);
        hg_server_tell_lost(pool->server, pool->worker, HG_BREAKER_ENDED, now_us);
    } else if (why == HG_LINK_REJECTED) {
        hg_server_tell_abandoned(pool->server, pool->worker, pool->coming_kind, now_us);
    } else if (why == HG_LINK_LET_GO) {
        hg_pool_abandon(pool, pool->coming_kind);
    } else if (why == HG_LINK_LOCAL || why == HG_LINK_MEMORY) {
        hg_server_tell_local(pool->server, pool->worker, pool->coming_kind, error, now_us);
    } else {
        return account_failed(pool, link, why);
    }
    return false;
}

static void account_end(struct hg_pool *pool, struct hg_link *link, enum hg_link_state was,
                        enum hg_link_why why, int error, bool sent)
{
    struct hg_balance *balance = &pool->domain->balance;
    bool failed = false;
    pool->domain->ask_again_us = 0; /* the breaker may think otherwise now */
    if (is_up(was))
        count_up(pool, -1);
    if (!link->live)
        failed = account_not_made(pool, link, why, error);
    else if (is_up(was))
        account_lost(pool, link, why, sent);
    else
        failed = account_not_bound(pool, why, error);
    /* A link that was closed to be made anew for another pool is no connection any more. */
    if (link->conn.state != HG_BALANCE_GONE) {
        hg_balance_conn_gone(balance, &link->conn, failed, pool->hub->loop->now_us);
        hg_domain_put_unit(pool->domain);
        hg_quarantine_look(&pool->domain->quarantine);
    }
    if (why == HG_LINK_REJECTED && !link->live) {
        memcpy(pool->denial, link->denial, sizeof pool->denial);
        hg_pool_deny(pool);
    }
    hg_domain_heed_breaker(pool->domain);
}

/* The connections that are left may do, or others may be made. */
static void settle_waiting(struct hg_pool *pool)
{
    if (!hg_server_may_send(pool->server))
        hg_pool_fail_waiting(pool, HG_FAULT_DOWN);
    else if (pool->denied && !hg_pool_has_source(pool))
        hg_pool_fail_waiting(pool, HG_FAULT_DENIED);
    else
        hg_pool_wake_later(pool);
}

static void on_end(struct hg_link *link, enum hg_link_state was, enum hg_link_why why, int error)
{
    struct hg_pool *pool = link->pool;
    remove_link(link);
    log_end(pool, link, why, error);
    uint32_t unsent = hg_link_first_unsent(link);
    struct move move = {pool, unsent == link->head};
    account_end(pool, link, was, why, error, unsent != link->head);
    if (pool->closing)
        unsent = link->tail;
    hg_link_fail(link, unsent, HG_FAULT_LOST);
    hg_link_move(link, move_target, &move);
    hg_pool_unbind(pool, link);
    if (!pool->closing)
        settle_waiting(pool);
}

static void on_again(struct hg_link *link, struct hg_call *call, const struct hg_reply *reply)
{
    struct hg_pool *pool = link->pool;
    pool->conf->on_again(pool->conf->store, pool, link, call, reply);
}

static void on_strand(struct hg_link *link, uint64_t ticket, int change)
{
    const struct hg_pool *pool = link->pool;
    hg_store_strand(&pool->conf->store->base, pool->server->index, ticket, change);
}

const struct hg_link_owner hg_pool_link_owner = {
    .on_ready = on_ready,
    .on_room = on_room,
    .on_answers = on_answers,
    .on_timeout = on_timeout,
    .on_again = on_again,
    .on_end = on_end,
    .on_strand = on_strand,
};

/* The breaker has opened: what is up and silent is of no use. What was heard lately stays: another
   answer on it closes the breaker. */
static void end_silent(struct hg_pool *pool, uint64_t now_us)
{
    for (uint32_t i = pool->link_count; i-- > 0;) {
        if (i < pool->link_count && pool->links[i]->live &&
            now_us - pool->links[i]->heard_us >= pool->conf->link.timeout_us)
            hg_link_end(pool->links[i], HG_LINK_LET_GO, 0);
    }
}

/* Ends a link whose connect or login takes too long. */
static void check_coming(struct hg_link *link, uint64_t now_us)
{
    const struct hg_pool *pool = link->pool;
    if (link->conn.state == HG_BALANCE_COMING && link->state != HG_LINK_DEAD &&
        now_us - link->conn.since_us >= pool->conf->connect_timeout_us)
        hg_link_end(link, HG_LINK_NO_CONNECT, -ETIMEDOUT);
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
        if (i >= pool->link_count)
            continue;
        struct hg_link *link = pool->links[i];
        hg_link_tick(link, now_us);
        check_coming(link, now_us);
    }
    hg_pool_tick_slow(pool, now_us);
    hg_pool_tick_apart(pool);
    if (now_us - pool->told_us >= SECOND_US)
        hg_pool_tell_sent(pool, now_us);
    bool may_send = hg_server_may_send(pool->server);
    if (!may_send)
        end_silent(pool, now_us);
    pool->hung = all_silent(pool, now_us);
    pool->trial_failed &= pool->hung;
    pool->in_doubt |= pool->hung;
    if (may_send && pool->hung)
        hg_pool_connect(pool);
    return hg_pool_pending(pool) > 0 || pool->block.coming > 0;
}

void hg_pool_end_links(struct hg_pool *pool)
{
    while (pool->link_count > 0)
        hg_link_end(pool->links[pool->link_count - 1], HG_LINK_LET_GO, 0);
    free(pool->links);
    pool->links = NULL;
    pool->link_cap = 0;
}
