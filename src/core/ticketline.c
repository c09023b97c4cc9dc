// ticketline - the requests of one worker that wait for a ticket of one holder
// SPDX-License-Identifier: BSD-3-Clause
//
// See ticketline.h. A waiter is in four orders at once: its tenant's (who is served), the line's by
// age (the signal of overload), and two heaps for when its time is over. Both heaps are kept at all
// times, so neither overload, which makes all ends earlier at once, nor another overload_wait costs
// a look at every waiter.
#include "core/ticketline.h"

#include <assert.h>

static uint64_t since(uint64_t now_us, uint64_t then_us)
{
    return now_us > then_us ? now_us - then_us : 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- overload ---- */

static uint64_t oldest_age(struct hg_ticketline *line, uint64_t now_us)
{
    struct hg_ticketline_waiter *oldest =
        HG_CONTAINER_OF(hg_list_first(&line->ages), struct hg_ticketline_waiter, age);
    return since(now_us, oldest->since_us);
}

/* The line becomes empty, or one gets into an empty line. That alone does not end overload: its
   short waits can empty the line at any time. */
static void begin(struct hg_ticketline *line, uint64_t now_us)
{
    line->above_us = line->window_us = now_us;
    line->min_us = UINT64_MAX;
    line->last_min_us = 0;
}

static bool is_over(const struct hg_ticketline *line, uint64_t now_us)
{
    return since(now_us, line->old_us) >= HG_TICKETLINE_WINDOW_US;
}

/* What time alone does to a line in which somebody waits. */
static void watch(struct hg_ticketline *line, uint64_t now_us)
{
    if (oldest_age(line, now_us) >= HG_TICKETLINE_TARGET_US)
        line->old_us = now_us;
    if (line->overloaded && is_over(line, now_us)) {
        line->overloaded = false;
        line->above_us = now_us;
    }
    if (since(now_us, line->above_us) >= HG_TICKETLINE_WINDOW_US)
        line->overloaded = true;
    if (since(now_us, line->window_us) < HG_TICKETLINE_WINDOW_US)
        return;
    line->last_min_us = line->min_us != UINT64_MAX ? line->min_us : oldest_age(line, now_us);
    line->window_us = now_us;
    line->min_us = UINT64_MAX;
}

/* One is about to be served. */
static void observe(struct hg_ticketline *line, uint64_t now_us)
{
    uint64_t age_us = oldest_age(line, now_us);
    line->min_us = smaller(line->min_us, age_us);
    if (age_us < HG_TICKETLINE_TARGET_US)
        line->above_us = now_us;
    watch(line, now_us);
}

/* ---- turns ---- */

static struct hg_ticketline_tenant *tenant_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_ticketline_tenant, node);
}

static struct hg_ticketline_waiter *next_of(const struct hg_ticketline *line,
                                            struct hg_ticketline_tenant *tenant)
{
    struct hg_list *node = line->overloaded ? tenant->waiters.prev : tenant->waiters.next;
    return HG_CONTAINER_OF(node, struct hg_ticketline_waiter, node);
}

static int64_t cost_of(const struct hg_ticketline_waiter *waiter)
{
    return waiter->cost > 0 ? waiter->cost : 1;
}

/* Nobody could be served in a whole round: leaves out those rounds that would go alike. */
static void skip_rounds(struct hg_ticketline *line)
{
    int64_t rounds = INT64_MAX;

    HG_LIST_EACH(node, &line->tenants)
    {
        struct hg_ticketline_tenant *tenant = tenant_at(node);
        int64_t lacks = cost_of(next_of(line, tenant)) - tenant->deficit;
        int64_t needs = (lacks + HG_TICKETLINE_QUANTUM - 1) / HG_TICKETLINE_QUANTUM;
        rounds = needs < rounds ? needs : rounds;
    }
    HG_LIST_EACH(node, &line->tenants)
    tenant_at(node)->deficit += (rounds - 1) * HG_TICKETLINE_QUANTUM;
}

/* The waiter whose turn it is, which its tenant has paid for. */
static struct hg_ticketline_waiter *choose(struct hg_ticketline *line)
{
    const struct hg_list *passed_over = NULL;

    for (;;) {
        struct hg_list *node = hg_list_first(&line->tenants);
        struct hg_ticketline_tenant *tenant = tenant_at(node);
        struct hg_ticketline_waiter *waiter = next_of(line, tenant);
        if (node == passed_over)
            skip_rounds(line);
        if (!tenant->in_turn) {
            tenant->in_turn = true;
            tenant->deficit += HG_TICKETLINE_QUANTUM;
        }
        if (tenant->deficit >= cost_of(waiter)) {
            tenant->deficit -= cost_of(waiter);
            return waiter;
        }
        tenant->in_turn = false;
        hg_list_remove(node);
        hg_list_append(&line->tenants, node);
        if (passed_over == NULL)
            passed_over = node;
    }
}

/* ---- in and out ---- */

void hg_ticketline_init(struct hg_ticketline *line)
{
    *line = (struct hg_ticketline){0};
    hg_list_init(&line->tenants);
    hg_list_init(&line->ages);
    begin(line, 0);
}

void hg_ticketline_tenant_init(struct hg_ticketline_tenant *tenant)
{
    *tenant = (struct hg_ticketline_tenant){0};
    hg_list_init(&tenant->node);
    hg_list_init(&tenant->waiters);
}

void hg_ticketline_push(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                        struct hg_ticketline_waiter *waiter, uint64_t now_us)
{
    if (line->count++ == 0)
        begin(line, now_us);
    if (tenant->count++ == 0)
        hg_list_append(&line->tenants, &tenant->node);
    waiter->tenant = tenant;
    hg_list_append(&tenant->waiters, &waiter->node);
    hg_list_append(&line->ages, &waiter->age);
    hg_heap_insert(&line->late, &waiter->late, waiter->deadline_us);
    hg_heap_insert(&line->came, &waiter->came, waiter->came_us);
    watch(line, now_us);
}

static struct hg_ticketline_waiter *take_out(struct hg_ticketline *line,
                                             struct hg_ticketline_waiter *waiter, uint64_t now_us)
{
    struct hg_ticketline_tenant *tenant = waiter->tenant;

    assert(tenant != NULL && tenant->count > 0);
    hg_list_remove(&waiter->node);
    hg_list_remove(&waiter->age);
    hg_heap_remove(&line->late, &waiter->late);
    hg_heap_remove(&line->came, &waiter->came);
    waiter->tenant = NULL;
    if (--tenant->count == 0) {
        hg_list_remove(&tenant->node);
        tenant->deficit = 0;
        tenant->in_turn = false;
    }
    if (--line->count == 0)
        begin(line, now_us);
    return waiter;
}

struct hg_ticketline_waiter *hg_ticketline_pop(struct hg_ticketline *line, uint64_t now_us)
{
    if (line->count == 0)
        return NULL;
    observe(line, now_us);
    return take_out(line, choose(line), now_us);
}

void hg_ticketline_remove(struct hg_ticketline *line, struct hg_ticketline_waiter *waiter,
                          uint64_t now_us)
{
    watch(line, now_us);
    take_out(line, waiter, now_us);
}

/* ---- ends ---- */

struct hg_ticketline_waiter *hg_ticketline_expire(struct hg_ticketline *line,
                                                  const struct hg_ticketline_conf *conf,
                                                  uint64_t now_us)
{
    struct hg_heap_node *node;

    if (line->count == 0)
        return NULL;
    watch(line, now_us);
    node = hg_heap_first(&line->late);
    if (node->key <= now_us)
        return take_out(line, HG_CONTAINER_OF(node, struct hg_ticketline_waiter, late), now_us);
    node = hg_heap_first(&line->came);
    if (line->overloaded && add(node->key, conf->overload_wait_us) <= now_us) {
        line->old_us = now_us;
        return take_out(line, HG_CONTAINER_OF(node, struct hg_ticketline_waiter, came), now_us);
    }
    return NULL;
}

uint64_t hg_ticketline_next_us(const struct hg_ticketline *line,
                               const struct hg_ticketline_conf *conf)
{
    uint64_t cut_us;

    if (line->count == 0)
        return UINT64_MAX;
    cut_us = add(hg_heap_first(&line->came)->key, conf->overload_wait_us);
    if (!line->overloaded)
        cut_us = larger(cut_us, add(line->above_us, HG_TICKETLINE_WINDOW_US));
    return smaller(hg_heap_first(&line->late)->key, cut_us);
}

uint64_t hg_ticketline_end_us(const struct hg_ticketline *line,
                              const struct hg_ticketline_conf *conf,
                              const struct hg_ticketline_waiter *waiter)
{
    if (!line->overloaded || is_over(line, waiter->since_us))
        return waiter->deadline_us;
    return smaller(waiter->deadline_us, add(waiter->came_us, conf->overload_wait_us));
}

void hg_ticketline_tick(struct hg_ticketline *line, uint64_t now_us)
{
    if (line->count > 0)
        watch(line, now_us);
    else if (is_over(line, now_us))
        line->overloaded = false;
}
