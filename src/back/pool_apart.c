// pool_apart - requests that take long are put on connections of their own, as far as there are any
// SPDX-License-Identifier: BSD-3-Clause
//
//   answers quick:              all on one connection, most recently used first
//   answers slow, or none yet:  an idle one, or one more, or that with the fewest requests
//
// Answers come in order, so whoever is put behind a request that takes long waits for it, and
// nobody knows which one will. Where a connection is busy for long with each answer, sending many
// at a time over one saves nothing, and costs whoever is behind. What counts is how long it is busy
// for each, not how long each waits: thousands that queue before a quick server are answered
// quickly one after the other, and stay together.
#include "back/pool_in.h"

#define APART_USUAL_US 1000 /* of a request, from its being sent */
#define SPREAD_US      100000 /* a server that has been silent for longer is asked no more at a time */
#define APART_BUSY_US  500    /* of a connection, for each answer */

/* One that is free, and that nobody needs more. */
static bool has_room(const struct hg_domain *domain)
{
    return domain->balance.total < domain->balance.capacity &&
           hg_list_empty(&domain->balance.starving);
}

void hg_pool_spread(struct hg_pool *pool)
{
    if (pool->hub->loop->now_us - pool->answered_us > SPREAD_US)
        return;
    if (pool->apart && pool->coming == NULL && hg_pool_pending(pool) > pool->up_count &&
        pool->slow_count < pool->up_count && has_room(pool->domain))
        hg_pool_connect(pool);
}

void hg_pool_tick_apart(struct hg_pool *pool)
{
    pool->apart = pool->domain->usual_us == 0 || (pool->domain->usual_us >= APART_USUAL_US &&
                                                  pool->block.service_us >= APART_BUSY_US);
    hg_pool_spread(pool);
}

struct hg_link *hg_pool_pick_apart(struct hg_pool *pool)
{
    struct hg_link *best = NULL;
    HG_LIST_EACH(node, &pool->ready)
    {
        struct hg_link *link = HG_CONTAINER_OF(node, struct hg_link, node);
        if (hg_link_is_large(link) || (!hg_pool_is_clear(pool, link) && hg_pool_turns_slow(link)))
            continue;
        if (hg_link_pending(link) == 0)
            return link;
        if (best == NULL || hg_link_pending(link) < hg_link_pending(best))
            best = link;
    }
    if (best != NULL && pool->coming == NULL && has_room(pool->domain))
        hg_pool_connect(pool);
    return best;
}
