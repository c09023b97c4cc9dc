// balance - plans which block gets which connection: what happened
// SPDX-License-Identifier: BSD-3-Clause
#include "core/balance_in.h"

#include <assert.h>
#include <string.h>

/* A turn in the ring, in times of a move: a third of it is spent on moving, two are of use. With
   two, half the capacity would go into moving as long as the ring lasts. */
#define SLICE 3

/* Failures in a row after which a block rests, as many as open a server's breaker; and how long at
   most, as for that. */
#define FAILURES    3
#define REST_MAX_US 1000000

void hg_balance_init(struct hg_balance *balance, const struct hg_balance_conf *conf,
                     uint32_t capacity, uint64_t now_us)
{
    assert(conf->depth >= 1 && conf->hold_min_us <= conf->hold_max_us);
    memset(balance, 0, sizeof *balance);
    balance->conf = *conf;
    balance->capacity = capacity;
    balance->hold_us = balance->slice_us = conf->hold_min_us;
    balance->ticked_us = now_us;
    hg_list_init(&balance->active);
    hg_list_init(&balance->quiet);
    hg_list_init(&balance->starving);
    hg_list_init(&balance->lru);
    hg_list_init(&balance->draining_conns);
}

void hg_balance_set_capacity(struct hg_balance *balance, uint32_t capacity)
{
    balance->capacity = capacity;
}

void hg_balance_drain(struct hg_balance *balance)
{
    balance->draining = true;
}

void hg_balance_resume(struct hg_balance *balance)
{
    balance->draining = false;
}

void hg_balance_freeze(struct hg_balance *balance, bool frozen)
{
    if (balance->frozen && !frozen) {
        HG_LIST_EACH(node, &balance->active)
        {
            struct hg_balance_block *block = hg_balance_block_at(node);
            block->busy_us = block->arrivals = block->answers = 0;
            block->failures = 0;
            block->resting = false;
            hg_balance_check_starving(balance, block);
        }
    }
    balance->frozen = frozen;
}

/* ---- blocks ---- */

void hg_balance_check_starving(struct hg_balance *balance, struct hg_balance_block *block)
{
    bool starves = block->waiters > 0 && hg_balance_size(block) == 0 && block->incoming == 0 &&
                   hg_balance_is_open(block);
    if (starves == !hg_list_empty(&block->starving))
        return;
    if (starves)
        hg_list_append(&balance->starving, &block->starving);
    else
        hg_list_remove(&block->starving);
}

void hg_balance_block_add(struct hg_balance *balance, struct hg_balance_block *block,
                          uint64_t now_us)
{
    memset(block, 0, sizeof *block);
    block->used_us = now_us;
    hg_list_init(&block->starving);
    hg_list_init(&block->idle);
    hg_list_init(&block->busy);
    hg_list_init(&block->others);
    hg_list_append(&balance->quiet, &block->node);
    balance->block_count++;
}

void hg_balance_block_remove(struct hg_balance *balance, struct hg_balance_block *block)
{
    assert(hg_balance_size(block) + block->draining + block->incoming + block->waiters == 0);
    hg_list_remove(&block->node);
    balance->block_count--;
    balance->suppressed_count -= block->suppressed;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < balance->hungry_count; i++) {
        if (balance->hungry[i] != block)
            balance->hungry[kept++] = balance->hungry[i];
    }
    balance->hungry_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < balance->overfull_count; i++) {
        if (balance->overfull[i] != block)
            balance->overfull[kept++] = balance->overfull[i];
    }
    balance->overfull_count = kept;
}

void hg_balance_block_wake(struct hg_balance *balance, struct hg_balance_block *block)
{
    if (block->active)
        return;
    /* The first one after a time of rest: so long no tick was due. */
    if (hg_list_empty(&balance->active) && block->used_us > balance->ticked_us)
        balance->ticked_us = block->used_us;
    block->active = true;
    block->traffic_tick = balance->tick;
    block->arrivals_avg = block->answers_avg = block->busy_avg = block->weight = 0;
    block->backlog_avg = 0;
    hg_balance_forget_usual(block);
    hg_list_remove(&block->node);
    hg_list_append(&balance->active, &block->node);
}

void hg_balance_block_suppress(struct hg_balance *balance, struct hg_balance_block *block,
                               bool suppressed)
{
    balance->suppressed_count += suppressed - block->suppressed;
    block->suppressed = suppressed;
    hg_balance_block_wake(balance, block);
    hg_balance_check_starving(balance, block);
}

void hg_balance_block_bar(struct hg_balance *balance, struct hg_balance_block *block, bool barred)
{
    block->barred = barred;
    hg_balance_check_starving(balance, block);
}

/* ---- waiters ---- */

void hg_balance_wait_begin(struct hg_balance *balance, struct hg_balance_block *block,
                           uint64_t now_us)
{
    if (block->waiters++ == 0)
        block->oldest_us = now_us;
    block->used_us = now_us;
    balance->waiters++;
    hg_balance_block_wake(balance, block);
    hg_balance_check_starving(balance, block);
}

void hg_balance_wait_end(struct hg_balance *balance, struct hg_balance_block *block,
                         uint64_t oldest_us)
{
    assert(block->waiters > 0);
    block->waiters--;
    block->oldest_us = oldest_us;
    balance->waiters--;
    hg_balance_check_starving(balance, block);
}

bool hg_balance_has_source(const struct hg_balance_block *block)
{
    return hg_balance_size(block) + block->incoming > 0;
}

/* ---- connections ---- */

/* The one that counts the block's connections in that state; NULL where none does. */
static uint32_t *counter_of(struct hg_balance_block *block, enum hg_balance_conn_state state)
{
    switch (state) {
    case HG_BALANCE_COMING:
        return &block->coming;
    case HG_BALANCE_IDLE:
        return &block->idle_count;
    case HG_BALANCE_BUSY:
        return &block->busy_count;
    case HG_BALANCE_DRAINING:
        return &block->draining;
    default:
        return NULL;
    }
}

static struct hg_list *list_of(struct hg_balance_block *block, enum hg_balance_conn_state state)
{
    return state == HG_BALANCE_IDLE   ? &block->idle
           : state == HG_BALANCE_BUSY ? &block->busy
                                      : &block->others;
}

/* The one place where a connection changes its state, and with it its block. */
static void enter(struct hg_balance *balance, struct hg_balance_conn *conn,
                  enum hg_balance_conn_state state, struct hg_balance_block *block, uint64_t now_us)
{
    struct hg_balance_block *old = conn->block;
    uint32_t *counter;
    if (old != NULL) {
        if ((counter = counter_of(old, conn->state)) != NULL) {
            assert(*counter > 0);
            (*counter)--;
        }
        hg_list_remove(&conn->node);
        hg_list_remove(&conn->lru);
    }
    balance->closing -= conn->state == HG_BALANCE_CLOSING;
    balance->closing += state == HG_BALANCE_CLOSING;
    conn->state = state;
    conn->block = block;
    conn->since_us = now_us;
    if (block != NULL) {
        (*counter_of(block, state))++;
        hg_list_append(list_of(block, state), &conn->node);
        if (state == HG_BALANCE_IDLE)
            hg_list_append(&balance->lru, &conn->lru);
        else if (state == HG_BALANCE_DRAINING)
            hg_list_append(&balance->draining_conns, &conn->lru);
        hg_balance_check_starving(balance, block);
    }
    if (old != NULL && old != block)
        hg_balance_check_starving(balance, old);
}

/* It is nobody's any more that waits elsewhere. */
static void unreserve(struct hg_balance *balance, struct hg_balance_conn *conn)
{
    struct hg_balance_block *block = conn->reserved;
    if (block == NULL)
        return;
    conn->reserved = NULL;
    block->incoming--;
    balance->drains--;
    hg_balance_check_starving(balance, block);
}

void hg_balance_conn_add(struct hg_balance *balance, struct hg_balance_conn *conn,
                         struct hg_balance_block *block, uint64_t now_us)
{
    assert(conn->state == HG_BALANCE_GONE);
    conn->block = conn->reserved = NULL;
    conn->rebinding = false;
    conn->bound_us = now_us;
    hg_list_init(&conn->node);
    hg_list_init(&conn->lru);
    balance->total++;
    enter(balance, conn, HG_BALANCE_COMING, block, now_us);
}

void hg_balance_conn_rebind(struct hg_balance *balance, struct hg_balance_conn *conn,
                            struct hg_balance_block *to, bool steal, uint64_t now_us)
{
    assert(conn->state == HG_BALANCE_IDLE && conn->block != to);
    conn->block->moves_out++;
    to->moves_in++;
    to->steals += steal;
    conn->rebinding = true;
    conn->bound_us = now_us;
    /* The receiver counts it before the promise ends, or it would starve for a moment. */
    struct hg_balance_block *reserved = conn->reserved;
    enter(balance, conn, HG_BALANCE_COMING, to, now_us);
    if (reserved != NULL)
        unreserve(balance, conn);
}

void hg_balance_conn_replace(struct hg_balance_conn *old, struct hg_balance_conn *fresh)
{
    struct hg_list *node = old->node.next, *lru = old->lru.next;
    bool listed = node != &old->node, in_lru = lru != &old->lru;
    *fresh = *old;
    hg_list_init(&fresh->node);
    hg_list_init(&fresh->lru);
    hg_list_remove(&old->node);
    hg_list_remove(&old->lru);
    if (listed)
        hg_list_put_before(node, &fresh->node);
    if (in_lru)
        hg_list_put_before(lru, &fresh->lru);
    old->state = HG_BALANCE_GONE;
    old->block = old->reserved = NULL;
}

static uint64_t mean_of(const struct hg_balance_mean *mean)
{
    return mean->count == 0 ? 0 : mean->sum_us / mean->count;
}

static void add_sample(struct hg_balance_mean *mean, uint64_t us)
{
    if (us > UINT32_MAX)
        us = UINT32_MAX;
    if (mean->count == HG_BALANCE_SAMPLES)
        mean->sum_us -= mean->values_us[mean->next];
    else
        mean->count++;
    mean->values_us[mean->next] = (uint32_t)us;
    mean->sum_us += us;
    mean->next = (mean->next + 1) % HG_BALANCE_SAMPLES;
}

static uint64_t clamp(uint64_t us, uint64_t min_us, uint64_t max_us)
{
    return us < min_us ? min_us : us > max_us ? max_us : us;
}

/* A success: what a move takes, and so the minimum hold, is known better. */
static void learn_time(struct hg_balance *balance, const struct hg_balance_conn *conn,
                       uint64_t now_us)
{
    const struct hg_balance_conf *conf = &balance->conf;
    add_sample(conn->rebinding ? &balance->rebind : &balance->connect, now_us - conn->bound_us);
    balance->reconnect_us =
        mean_of(balance->rebind.count > 0 ? &balance->rebind : &balance->connect);
    balance->hold_us = clamp(2 * balance->reconnect_us, conf->hold_min_us, conf->hold_max_us);
    balance->slice_us = clamp(SLICE * balance->reconnect_us, conf->hold_min_us, conf->hold_max_us);
}

void hg_balance_conn_up(struct hg_balance *balance, struct hg_balance_conn *conn, uint64_t now_us)
{
    assert(conn->state == HG_BALANCE_COMING);
    if (!balance->frozen)
        learn_time(balance, conn, now_us);
    conn->up_us = now_us;
    conn->block->connects++;
    conn->block->failures = 0;
    conn->block->resting = false;
    enter(balance, conn, HG_BALANCE_IDLE, conn->block, now_us);
}

void hg_balance_conn_busy(struct hg_balance *balance, struct hg_balance_conn *conn, uint64_t now_us)
{
    assert(conn->state == HG_BALANCE_IDLE);
    struct hg_balance_block *block = conn->block;
    block->used_us = conn->counted_us = conn->since_us = now_us;
    unreserve(balance, conn);
    /* As `enter` would, which takes three times as long: this is done for every request of a client
       that waits for each answer. */
    block->idle_count--;
    block->busy_count++;
    conn->state = HG_BALANCE_BUSY;
    hg_list_remove(&conn->lru);
    hg_list_remove(&conn->node);
    hg_list_append(&block->busy, &conn->node);
}

/* Is the one that a connection was drained for no longer to have it? */
static bool is_in_vain(const struct hg_balance *balance, const struct hg_balance_conn *conn)
{
    const struct hg_balance_block *to = conn->reserved;
    return to->waiters == 0 || !hg_balance_is_open(to) || conn->block->suppressed ||
           balance->frozen || balance->draining;
}

void hg_balance_conn_idle(struct hg_balance *balance, struct hg_balance_conn *conn, uint64_t now_us)
{
    assert(conn->state == HG_BALANCE_BUSY || conn->state == HG_BALANCE_DRAINING);
    struct hg_balance_block *block = conn->block;
    if (HG_UNLIKELY(conn->state == HG_BALANCE_DRAINING)) {
        if (conn->reserved != NULL && is_in_vain(balance, conn))
            unreserve(balance, conn);
        enter(balance, conn, HG_BALANCE_IDLE, block, now_us);
        return;
    }
    block->busy_count--;
    block->idle_count++;
    conn->state = HG_BALANCE_IDLE;
    conn->since_us = now_us;
    hg_list_remove(&conn->node);
    hg_list_append(&block->idle, &conn->node);
    hg_list_append(&balance->lru, &conn->lru);
}

void hg_balance_conn_drain(struct hg_balance *balance, struct hg_balance_conn *conn,
                           struct hg_balance_block *to, uint64_t now_us)
{
    assert(conn->state == HG_BALANCE_BUSY && conn->block != to && conn->reserved == NULL);
    conn->reserved = to;
    to->incoming++;
    balance->drains++;
    enter(balance, conn, HG_BALANCE_DRAINING, conn->block, now_us);
    hg_balance_check_starving(balance, to);
}

void hg_balance_conn_undrain(struct hg_balance *balance, struct hg_balance_conn *conn,
                             uint64_t now_us)
{
    unreserve(balance, conn);
    if (conn->state == HG_BALANCE_DRAINING)
        enter(balance, conn, HG_BALANCE_BUSY, conn->block, now_us);
}

void hg_balance_conn_closing(struct hg_balance *balance, struct hg_balance_conn *conn,
                             uint64_t now_us)
{
    assert(conn->state != HG_BALANCE_GONE && conn->state != HG_BALANCE_CLOSING);
    unreserve(balance, conn);
    enter(balance, conn, HG_BALANCE_CLOSING, NULL, now_us);
}

/* After some failures in a row each try comes twice as late as the one before: it may have cost
   somebody else a connection. Connects that were under way together count once. While the breaker
   is not closed it has the word. */
static void note_failure(struct hg_balance *balance, const struct hg_balance_conn *conn,
                         uint64_t now_us)
{
    struct hg_balance_block *block = conn->block;
    block->connect_errors++;
    if (balance->frozen || (block->failures > 0 && conn->bound_us < block->failed_us))
        return;
    block->failed_us = now_us;
    if (++block->failures < FAILURES)
        return;
    uint32_t doublings = block->failures - FAILURES;
    uint64_t rest_us = balance->hold_us << (doublings < 20 ? doublings : 20);
    block->resting = true;
    block->retry_us = now_us + (rest_us < REST_MAX_US ? rest_us : REST_MAX_US);
}

void hg_balance_conn_gone(struct hg_balance *balance, struct hg_balance_conn *conn, bool failed,
                          uint64_t now_us)
{
    assert(conn->state != HG_BALANCE_GONE);
    if (failed && conn->state == HG_BALANCE_COMING)
        note_failure(balance, conn, now_us);
    unreserve(balance, conn);
    enter(balance, conn, HG_BALANCE_GONE, NULL, now_us);
    balance->total--;
}

bool hg_balance_needs_tick(const struct hg_balance *balance)
{
    return balance->waiters > 0 || balance->drains > 0 || !hg_list_empty(&balance->active) ||
           balance->total > balance->capacity || (balance->draining && balance->total > 0);
}

uint64_t hg_balance_next_us(const struct hg_balance *balance)
{
    if (hg_list_empty(&balance->lru))
        return UINT64_MAX;
    return hg_balance_lru_at(balance->lru.next)->since_us + balance->conf.idle_us;
}

uint32_t hg_balance_wanted(const struct hg_balance *balance)
{
    return balance->wanted;
}

uint32_t hg_balance_spare(const struct hg_balance *balance)
{
    return balance->total >= balance->capacity ? 0 : balance->capacity - balance->total;
}
