// pool_slow - connections that take nothing new, since their oldest request has waited for so long
// SPDX-License-Identifier: BSD-3-Clause
//
//   ready, full ──tick, or a call that looks for a link──► slow ──its oldest is young again──►
//   ready
//
// Requests on a connection are answered in order: whoever is put behind one that takes long waits
// for it. So a link whose oldest request has waited for more than ten times the usual (20 ms at
// least) is passed by, and others are made, also if there was only that one. If all are slow, it is
// perhaps the server: then another one is tried ever more rarely, until something is answered in
// the usual time.
//
// What is usual is a moving average that a sample beyond it can move by little: so a few requests
// that take long do not make that the usual, and a server that has become slower is known as such
// after some dozens of answers.
#include "back/pool_in.h"
#include "back/remote.h"

#define SLOW_MIN_US  20000 /* less is no reason to do anything */
#define SLOW_FACTOR  10
#define AVERAGE      16   /* answers that the average reaches back */
#define SAMPLE_US    2000 /* a sample up to that, a tenth of SLOW_MIN_US, is never cut */
#define TRIES_IN_ROW 10   /* the pause doubles so often */

/* ---- what is usual ---- */

uint64_t hg_domain_slow_us(const struct hg_domain *domain)
{
    uint64_t us = domain->usual_us * SLOW_FACTOR;
    return us < SLOW_MIN_US ? SLOW_MIN_US : us;
}

void hg_domain_heed_usual(struct hg_domain *domain)
{
    domain->slow_us = domain->usual_us == 0 ? UINT64_MAX : hg_domain_slow_us(domain);
}

void hg_domain_learn_usual(struct hg_domain *domain, uint64_t waited_us)
{
    uint64_t usual_us = domain->usual_us, most_us = 2 * usual_us;
    if (HG_UNLIKELY(domain->tries > 0) && waited_us <= domain->slow_us)
        domain->tries = 0;
    if (most_us < SAMPLE_US)
        most_us = SAMPLE_US;
    if (HG_UNLIKELY(usual_us == 0))
        domain->usual_us = waited_us;
    else
        domain->usual_us =
            (usual_us * (AVERAGE - 1) + (waited_us < most_us ? waited_us : most_us)) / AVERAGE;
}

bool hg_domain_may_try(const struct hg_domain *domain, uint64_t now_us)
{
    return domain->tries == 0 || now_us >= domain->try_us;
}

void hg_domain_note_try(struct hg_domain *domain, uint64_t now_us)
{
    if (domain->tries < TRIES_IN_ROW)
        domain->tries++;
    domain->try_us = now_us + (hg_domain_slow_us(domain) << domain->tries);
}

/* ---- links ---- */

static void make_slow(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    hg_list_remove(&link->node);
    hg_list_append(&pool->slow, &link->node);
    link->full = false;
    link->slow = true;
    pool->slow_count++;
}

void hg_pool_leave_slow(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    if (!link->slow)
        return;
    hg_list_remove(&link->node);
    link->slow = false;
    pool->slow_count--;
}

bool hg_pool_turns_slow(struct hg_link *link)
{
    struct hg_pool *pool = link->pool;
    const struct hg_remote *remote = pool->conf->store;
    uint64_t now_us = pool->hub->loop->now_us;
    if (hg_link_waited_us(link, now_us) <= pool->domain->slow_us ||
        hg_remote_is_behind(remote, now_us))
        return false;
    make_slow(link);
    return true;
}

void hg_pool_look_at_slow(struct hg_link *link)
{
    const struct hg_pool *pool = link->pool;
    if (hg_link_waited_us(link, pool->hub->loop->now_us) > pool->domain->slow_us)
        return;
    hg_pool_leave_slow(link);
    hg_pool_offer(link);
}

void hg_pool_tick_slow(struct hg_pool *pool, uint64_t now_us)
{
    for (uint32_t i = 0; i < pool->link_count; i++) {
        struct hg_link *link = pool->links[i];
        if (link->slow)
            hg_pool_look_at_slow(link); /* the limit may have grown */
        else if (hg_pool_link_is_open(link) &&
                 hg_link_waited_us(link, now_us) > pool->domain->slow_us)
            make_slow(link);
    }
}
