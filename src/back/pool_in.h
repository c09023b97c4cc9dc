// pool_in - what the parts of a pool, calls and connections, and its domain know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_POOL_IN_H
#define HG_BACK_POOL_IN_H

#include "back/domain.h"
#include "back/pool.h"

/* making connections (pool_connect.c) */

/* Begins to make a connection, if one may be made now. */
void hg_pool_connect(struct hg_pool *pool);
/* May one be made now, if there is capacity? Then the breaker counts it: *ret_how. */
HG_MUST_USE bool hg_pool_may_connect(struct hg_pool *pool, enum hg_breaker_connect *ret_how);
/* The breaker has counted one that is not made after all. */
void hg_pool_abandon(struct hg_pool *pool, enum hg_breaker_connect how);
/* A link that belongs to the pool and is not connected; NULL when memory is out. */
struct hg_link *hg_pool_add_link(struct hg_pool *pool);
/* Connects such a link, which the planner knows as coming. */
void hg_pool_begin(struct hg_pool *pool, struct hg_link *link, enum hg_breaker_connect how);
/* The server refused the login: there is no other attempt for a while. */
void hg_pool_deny(struct hg_pool *pool);
/* It may be tried again, if the while is over or there is another password. */
void hg_pool_check_denial(struct hg_pool *pool);
/* Has the oldest request of every link waited longer than this? */
bool hg_pool_all_waited(const struct hg_pool *pool, uint64_t limit_us);

/* connections (pool_links.c) */

/* Room for one more link; false when memory is out. */
HG_MUST_USE bool hg_pool_make_room(struct hg_pool *pool);
/* The link, which is up and empty, becomes `to`'s, which has room for it: it is to log in anew. */
void hg_pool_hand_over(struct hg_link *link, struct hg_pool *to);
/* The link, which is up, takes nothing new and ends when it is empty. */
void hg_pool_let_go(struct hg_link *link);
/* The link, which is up, is found by calls: at once, or when it has room. */
void hg_pool_offer(struct hg_link *link);
/* Looks after all links; true while there is something to look after. */
bool hg_pool_tick_links(struct hg_pool *pool, uint64_t now_us);
/* Tells the retry budget how much was sent. */
void hg_pool_tell_sent(struct hg_pool *pool, uint64_t now_us);
void hg_pool_end_links(struct hg_pool *pool);

extern const struct hg_link_owner hg_pool_link_owner;

/* Does nothing hold up what is put on the link? The oldest request was sent before the last byte
   was heard, so most need not be looked at closely. */
static inline bool hg_pool_is_clear(const struct hg_pool *pool, const struct hg_link *link)
{
    return !hg_link_is_large(link) &&
           pool->hub->loop->now_us - link->heard_us <= pool->domain->slow_us;
}

/* requests that take long (pool_apart.c) */

/* The connection for the next one, while pool->apart; NULL: none is clear. */
struct hg_link *hg_pool_pick_apart(struct hg_pool *pool);
/* Sets pool->apart, with each tick. */
void hg_pool_tick_apart(struct hg_pool *pool);
/* While some are behind others one connection is made after the other, lest many that came at once
   wait for as many that come later; not while the server is silent. When one has come up, and with
   each tick. */
void hg_pool_spread(struct hg_pool *pool);

/* slow connections (pool_slow.c) */

/* How long the oldest request of a link may wait. */
uint64_t hg_domain_slow_us(const struct hg_domain *domain);
/* Sets domain->slow_us; off while nothing is known. With each tick. */
void hg_domain_heed_usual(struct hg_domain *domain);
/* Answers came, the oldest of which took so long. */
void hg_domain_learn_usual(struct hg_domain *domain, uint64_t waited_us);
/* All are slow: may another connection be tried? One was. */
bool hg_domain_may_try(const struct hg_domain *domain, uint64_t now_us);
void hg_domain_note_try(struct hg_domain *domain, uint64_t now_us);
/* Nothing was heard on the link, which calls find, for long: if its oldest request has waited for
   too long it is slow from now on. */
bool hg_pool_turns_slow(struct hg_link *link);
/* A slow link's oldest request was answered: others may use it again, if the next is young. */
void hg_pool_look_at_slow(struct hg_link *link);
/* It is slow no more, whatever it is now; it is in no list if it was. */
void hg_pool_leave_slow(struct hg_link *link);
void hg_pool_tick_slow(struct hg_pool *pool, uint64_t now_us);

/* calls (pool.c) */

/* Answers a call that is on no link and in no line. */
enum hg_submit hg_pool_refuse(struct hg_pool *pool, struct hg_call *call, enum hg_fault fault);
/* Lets all calls that wait come again. */
void hg_pool_send_away(struct hg_pool *pool);
/* Answers all calls that wait. */
void hg_pool_fail_waiting(struct hg_pool *pool, enum hg_fault fault);
/* No waiting call needs this link any more. */
void hg_pool_unbind(struct hg_pool *pool, const struct hg_link *link);
/* Wakes calls at the end of the turn, if any wait. */
void hg_pool_wake_later(struct hg_pool *pool);
/* A link that a call can be put on at once, or NULL. */
struct hg_link *hg_pool_pick(struct hg_pool *pool);
/* A call was put on the READY link: it is the most recently used one, or full. */
void hg_pool_note_use(struct hg_pool *pool, struct hg_link *link);

/* Can any connection serve the pool's calls without a new one being made? */
static inline bool hg_pool_has_source(const struct hg_pool *pool)
{
    return hg_balance_has_source(&pool->block);
}

/* Is the link up, and takes calls? Not if it is drained for another pool. */
static inline bool hg_pool_link_is_open(const struct hg_link *link)
{
    return link->state == HG_LINK_READY && link->conn.state != HG_BALANCE_DRAINING;
}

static inline struct hg_pool *hg_pool_of_block(struct hg_balance_block *block)
{
    return HG_CONTAINER_OF(block, struct hg_pool, block);
}

static inline struct hg_pool *hg_pool_of_node(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_pool, node);
}

static inline struct hg_link *hg_pool_link_of_conn(struct hg_balance_conn *conn)
{
    return HG_CONTAINER_OF(conn, struct hg_link, conn);
}

#endif
