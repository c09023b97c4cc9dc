// domain_plan - what the planner of a domain says is done with links
// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of one tick are carried out one after the other, and what one of them sets off (a connect
// that fails at once, a client that calls again) may undo the reason of the next. So each is looked
// at once more; one that does not fit any more is left out.
#include "back/pool_in.h"

bool hg_domain_can_rebind(const struct hg_domain *domain, const struct hg_pool *to)
{
    const struct hg_dialect *dialect = domain->conf->dialect;
    return dialect->can_rebind && !to->no_rebind && dialect->has_login(dialect, to->identity);
}

static void rebind(struct hg_domain *domain, struct hg_link *link, struct hg_pool *to, bool steal)
{
    if (!hg_pool_make_room(to))
        return;
    hg_pool_hand_over(link, to);
    hg_balance_conn_rebind(&domain->balance, &link->conn, &to->block, steal,
                           domain->hub->loop->now_us);
    to->totals.rebinds++;
    hg_link_rebind(link, to->identity);
}

/* Closes the link and makes another for `to`, which has its place in the count from now on. */
static void reconnect(struct hg_domain *domain, struct hg_link *link, struct hg_pool *to,
                      bool steal)
{
    enum hg_breaker_connect how;
    if (!hg_pool_may_connect(to, &how))
        return;
    struct hg_link *fresh = hg_pool_add_link(to);
    if (fresh == NULL) {
        hg_pool_abandon(to, how);
        return;
    }
    hg_balance_conn_rebind(&domain->balance, &link->conn, &to->block, steal,
                           domain->hub->loop->now_us);
    hg_balance_conn_replace(&link->conn, &fresh->conn);
    hg_link_end(link, HG_LINK_LET_GO, 0);
    hg_pool_begin(to, fresh, how);
}

static void move(struct hg_domain *domain, struct hg_link *link, struct hg_pool *to, bool steal)
{
    struct hg_pool *from = link->pool;
    if (link->state != HG_LINK_READY || link->conn.state != HG_BALANCE_IDLE || from == to ||
        (!steal && to->block.waiters == 0) || to->denied || to->closing)
        return;
    if (hg_domain_can_rebind(domain, to))
        rebind(domain, link, to, steal);
    else
        reconnect(domain, link, to, steal);
}

static void drain(struct hg_domain *domain, struct hg_link *link, struct hg_pool *to)
{
    struct hg_pool *from = link->pool;
    if (link->state != HG_LINK_READY || link->conn.state != HG_BALANCE_BUSY ||
        link->conn.reserved != NULL || from == to || to->denied)
        return;
    from->totals.drains++;
    hg_pool_leave_slow(link);
    hg_list_remove(&link->node);
    link->full = false;
    hg_balance_conn_drain(&domain->balance, &link->conn, &to->block, domain->hub->loop->now_us);
}

/* It is too busy to be drained in good time, or nobody waits for it any more. */
static void undrain(struct hg_domain *domain, struct hg_link *link)
{
    if (link->state != HG_LINK_READY || link->conn.reserved == NULL)
        return;
    hg_balance_conn_undrain(&domain->balance, &link->conn, domain->hub->loop->now_us);
    hg_pool_offer(link);
}

void hg_domain_take_back(struct hg_domain *domain, struct hg_link *link)
{
    if (link->state != HG_LINK_READY || link->conn.state != HG_BALANCE_IDLE)
        return;
    hg_balance_conn_undrain(&domain->balance, &link->conn, domain->hub->loop->now_us);
    if (hg_list_empty(&link->node))
        hg_pool_offer(link);
}

/* Has the pool a link that its waiting calls go on at the end of this turn? Then it needs no other
   before that has shown how many are left. */
static bool has_room(struct hg_pool *pool)
{
    HG_LIST_EACH(node, &pool->ready)
    {
        if (!hg_link_is_large(HG_CONTAINER_OF(node, struct hg_link, node)))
            return true;
    }
    return false;
}

void hg_domain_carry_out(struct hg_domain *domain, const struct hg_balance_plan *plan, bool steal)
{
    struct hg_link *link = plan->conn != NULL ? hg_pool_link_of_conn(plan->conn) : NULL;
    struct hg_pool *to = plan->block != NULL ? hg_pool_of_block(plan->block) : NULL;
    if (to != NULL && has_room(to))
        return;
    switch (plan->verb) {
    case HG_BALANCE_CREATE:
        hg_pool_connect(to);
        break;
    case HG_BALANCE_MOVE:
        move(domain, link, to, steal);
        break;
    case HG_BALANCE_DRAIN:
        drain(domain, link, to);
        break;
    case HG_BALANCE_UNDRAIN:
        undrain(domain, link);
        break;
    case HG_BALANCE_CLOSE:
        if (link->state == HG_LINK_READY && link->conn.state == HG_BALANCE_IDLE)
            hg_link_end(link, HG_LINK_LET_GO, 0);
        break;
    case HG_BALANCE_USE:
    case HG_BALANCE_WAIT:
    case HG_BALANCE_REFUSE:
    case HG_BALANCE_KEEP:
        break;
    }
}

void hg_domain_release(struct hg_domain *domain, struct hg_link *link)
{
    const struct hg_balance_plan plan =
        hg_balance_plan_release(&domain->balance, &link->conn, domain->hub->loop->now_us);
    if (HG_UNLIKELY(plan.verb != HG_BALANCE_KEEP))
        hg_domain_carry_out(domain, &plan, false);
}
