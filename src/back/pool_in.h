// pool_in - what the two halves of a pool, calls and connections, know of each other
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BACK_POOL_IN_H
#define HG_BACK_POOL_IN_H

#include "back/pool.h"

/* connections (pool_links.c) */

/* Begins to make a connection, if one may be made now. */
void hg_pool_grow(struct hg_pool *pool);
/* Looks after all links; true while there is something to look after. */
bool hg_pool_tick_links(struct hg_pool *pool, uint64_t now_us);
/* Tells the breaker how much was sent. */
void hg_pool_tell_sent(struct hg_pool *pool, uint64_t now_us);
void hg_pool_end_links(struct hg_pool *pool);

/* calls (pool.c) */

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

#endif
