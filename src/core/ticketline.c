// ticketline - the requests of one worker that wait for a ticket of one holder
// SPDX-License-Identifier: BSD-3-Clause
//
// See ticketline.h. A waiter is in four orders at once: its tenant's (who is served), the line's by
// age (is it stalled; statistics), and heaps for when its time is over, the line's by deadline, and
// the line's and its tenant's by when it came. They are kept at all times, so neither overload,
// which makes all ends of a tenant earlier at once, nor another overload_wait costs a look at every
// waiter. Of the tenants with waiters those that are overloaded are in a heap by the first of the
// latter.
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

/* ---- the line as a whole ---- */

static uint64_t oldest_age(struct hg_ticketline *line, uint64_t now_us)
{
    struct hg_ticketline_waiter *oldest =
        HG_CONTAINER_OF(hg_list_first(&line->ages), struct hg_ticketline_waiter, age);
    return since(now_us, oldest->since_us);
}

/* The line becomes empty, or one gets into an empty line. */
static void begin(struct hg_ticketline *line, uint64_t now_us)
{
    line->served_us = line->window_us = now_us;
    line->min_us = UINT64_MAX;
    line->last_min_us = 0;
}

static bool is_stall_over(const struct hg_ticketline *line, uint64_t now_us)
{
    return since(now_us, line->late_us) >= HG_TICKETLINE_WINDOW_US;
}

static void move_window(struct hg_ticketline *line, uint64_t now_us)
{
    if (since(now_us, line->window_us) < HG_TICKETLINE_WINDOW_US)
        return;
    line->last_min_us = line->min_us != UINT64_MAX ? line->min_us : oldest_age(line, now_us);
    line->window_us = now_us;
    line->min_us = UINT64_MAX;
}

/* What time alone does to a line in which somebody waits. */
static void watch_line(struct hg_ticketline *line, uint64_t now_us)
{
    if (oldest_age(line, now_us) >= HG_TICKETLINE_TARGET_US)
        line->late_us = now_us;
    if (line->stalled && is_stall_over(line, now_us)) {
        line->stalled = false;
        line->served_us = now_us;
    }
    if (since(now_us, line->served_us) >= HG_TICKETLINE_WINDOW_US)
        line->stalled = true;
    move_window(line, now_us);
}

/* The line is overloaded while a tenant with waiters is, and until that of the last one without
   is over. */
static void sum_up(struct hg_ticketline *line, uint64_t now_us)
{
    line->overloaded = line->stalled || hg_heap_first(&line->hot) != NULL ||
                       (line->overloaded && since(now_us, line->old_us) < HG_TICKETLINE_WINDOW_US);
}

/* ---- overload of a tenant ---- */

static struct hg_ticketline_tenant *watched(struct hg_heap_node *node)
{
    return HG_CONTAINER_OF(node, struct hg_ticketline_tenant, watched);
}

static uint64_t oldest_age_of(struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    struct hg_ticketline_waiter *oldest =
        HG_CONTAINER_OF(hg_list_first(&tenant->waiters), struct hg_ticketline_waiter, node);
    return since(now_us, oldest->since_us);
}

static bool is_over(const struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    return since(now_us, tenant->old_us) >= HG_TICKETLINE_WINDOW_US;
}

/* Puts the tenant where its state and its waiters want it. In the calm heap its key may stay too
   small, so that being served in time costs nothing there. */
static void settle(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant)
{
    struct hg_heap *heap = NULL;
    uint64_t key = 0;

    if (tenant->count > 0) {
        heap = tenant->overloaded ? &line->hot : &line->calm;
        key = tenant->overloaded ? hg_heap_first(&tenant->came)->key : tenant->above_us;
    }
    if (heap == tenant->heap && (heap != &line->hot || key == tenant->watched.key))
        return;
    if (tenant->heap != NULL)
        hg_heap_remove(tenant->heap, &tenant->watched);
    if (heap != NULL)
        hg_heap_insert(heap, &tenant->watched, key);
    tenant->heap = heap;
}

/* What time alone does to a tenant that has waiters. */
static void watch(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    if (oldest_age_of(tenant, now_us) >= HG_TICKETLINE_TARGET_US)
        tenant->old_us = now_us;
    if (tenant->overloaded && is_over(tenant, now_us)) {
        tenant->overloaded = false;
        tenant->above_us = now_us;
    }
    if (since(now_us, tenant->above_us) >= HG_TICKETLINE_WINDOW_US)
        tenant->overloaded = true;
    if (tenant->overloaded)
        line->old_us = larger(line->old_us, tenant->old_us);
    settle(line, tenant);
}

/* Its turn has come. */
static void observe(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                    uint64_t now_us)
{
    if (oldest_age_of(tenant, now_us) < HG_TICKETLINE_TARGET_US)
        tenant->above_us = now_us;
    watch(line, tenant, now_us);
}

/* Time goes on: finds the tenants whose overload begins, and whether that of the one which would be
   cut first has ended; with others that is found out when something happens to them. */
static void watch_all(struct hg_ticketline *line, uint64_t now_us)
{
    struct hg_heap_node *node;

    while ((node = hg_heap_first(&line->calm)) != NULL &&
           since(now_us, node->key) >= HG_TICKETLINE_WINDOW_US) {
        hg_heap_remove(&line->calm, node);
        watched(node)->heap = NULL; // a larger key, or the other heap
        watch(line, watched(node), now_us);
    }
    while ((node = hg_heap_first(&line->hot)) != NULL) {
        struct hg_ticketline_tenant *tenant = watched(node);
        watch(line, tenant, now_us);
        if (tenant->overloaded)
            break;
    }
    watch_line(line, now_us);
    sum_up(line, now_us);
}

/* ---- turns ---- */

static struct hg_ticketline_tenant *tenant_at(struct hg_list *node)
{
    return HG_CONTAINER_OF(node, struct hg_ticketline_tenant, node);
}

static struct hg_ticketline_waiter *next_of(struct hg_ticketline_tenant *tenant)
{
    struct hg_list *node = tenant->overloaded ? tenant->waiters.prev : tenant->waiters.next;
    return HG_CONTAINER_OF(node, struct hg_ticketline_waiter, node);
}

static int64_t cost_of(const struct hg_ticketline_waiter *waiter)
{
    return waiter->cost > 0 ? waiter->cost : 1;
}

static void join_round(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant)
{
    tenant->place = ++line->last_place;
    hg_list_append(&line->old, &tenant->node);
}

/* It begins to wait: new, unless the round has not come to its place yet. */
static void join(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant)
{
    if (tenant->place >= line->reached && tenant->place <= line->last_place) {
        join_round(line, tenant);
        return;
    }
    tenant->place = 0;
    hg_list_append(&line->fresh, &tenant->node);
}

/* It waits no longer. One that was new and had its turn leaves a place at the end of the round. */
static void leave(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant)
{
    if (tenant->place == 0 && tenant->in_turn)
        tenant->place = ++line->last_place;
    hg_list_remove(&tenant->node);
    tenant->deficit = 0;
    tenant->in_turn = false;
}

/* Nobody could be served in a whole round, in which all are: leaves out those that would go
   alike. */
static void skip_rounds(struct hg_ticketline *line)
{
    int64_t rounds = INT64_MAX;

    HG_LIST_EACH(node, &line->old)
    {
        struct hg_ticketline_tenant *tenant = tenant_at(node);
        int64_t lacks = cost_of(next_of(tenant)) - tenant->deficit;
        int64_t needs = (lacks + HG_TICKETLINE_QUANTUM - 1) / HG_TICKETLINE_QUANTUM;
        rounds = needs < rounds ? needs : rounds;
    }
    HG_LIST_EACH(node, &line->old)
    tenant_at(node)->deficit += (rounds - 1) * HG_TICKETLINE_QUANTUM;
}

/* Whose turn it is. */
static struct hg_ticketline_tenant *next_tenant(struct hg_ticketline *line)
{
    struct hg_list *node = hg_list_first(&line->fresh);

    if (node == NULL) {
        node = hg_list_first(&line->old);
        line->reached = tenant_at(node)->place;
    }
    return tenant_at(node);
}

/* The waiter whose turn it is, which its tenant has paid for. */
static struct hg_ticketline_waiter *choose(struct hg_ticketline *line, uint64_t now_us)
{
    const struct hg_ticketline_tenant *passed_over = NULL;

    for (;;) {
        struct hg_ticketline_tenant *tenant = next_tenant(line);
        observe(line, tenant, now_us);
        struct hg_ticketline_waiter *waiter = next_of(tenant);
        if (tenant == passed_over)
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
        hg_list_remove(&tenant->node);
        join_round(line, tenant);
        if (passed_over == NULL)
            passed_over = tenant;
    }
}

/* ---- in and out ---- */

void hg_ticketline_init(struct hg_ticketline *line)
{
    *line = (struct hg_ticketline){.reached = 1};
    hg_list_init(&line->fresh);
    hg_list_init(&line->old);
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
    if (tenant->count++ == 0) {
        join(line, tenant);
        tenant->above_us = now_us; // overload goes on: its short waits can empty a line at any time
    }
    waiter->tenant = tenant;
    hg_list_append(&tenant->waiters, &waiter->node);
    hg_list_append(&line->ages, &waiter->age);
    hg_heap_insert(&line->late, &waiter->late, waiter->deadline_us);
    hg_heap_insert(&line->came, &waiter->came_in_line, waiter->came_us);
    hg_heap_insert(&tenant->came, &waiter->came, waiter->came_us);
    watch(line, tenant, now_us);
    watch_line(line, now_us);
    sum_up(line, now_us);
}

static struct hg_ticketline_waiter *take_out(struct hg_ticketline *line,
                                             struct hg_ticketline_waiter *waiter, uint64_t now_us)
{
    struct hg_ticketline_tenant *tenant = waiter->tenant;

    assert(tenant != NULL && tenant->count > 0);
    hg_list_remove(&waiter->node);
    hg_list_remove(&waiter->age);
    hg_heap_remove(&line->late, &waiter->late);
    hg_heap_remove(&line->came, &waiter->came_in_line);
    hg_heap_remove(&tenant->came, &waiter->came);
    waiter->tenant = NULL;
    if (--tenant->count == 0)
        leave(line, tenant);
    settle(line, tenant);
    if (--line->count == 0) {
        begin(line, now_us);
        line->reached = line->last_place + 1;
    }
    sum_up(line, now_us);
    return waiter;
}

struct hg_ticketline_waiter *hg_ticketline_pop(struct hg_ticketline *line, uint64_t now_us)
{
    if (line->count == 0)
        return NULL;
    line->min_us = smaller(line->min_us, oldest_age(line, now_us));
    move_window(line, now_us);
    line->served_us = now_us;
    line->stalled = false;
    return take_out(line, choose(line, now_us), now_us);
}

void hg_ticketline_remove(struct hg_ticketline *line, struct hg_ticketline_waiter *waiter,
                          uint64_t now_us)
{
    watch(line, waiter->tenant, now_us);
    watch_line(line, now_us);
    take_out(line, waiter, now_us);
}

/* ---- ends ---- */

/* The one whose wait would be cut first; NULL: no wait is to be cut. */
static struct hg_ticketline_waiter *first_to_cut(const struct hg_ticketline *line)
{
    struct hg_heap_node *node = hg_heap_first(&line->hot);

    if (line->stalled) {
        node = hg_heap_first(&line->came);
        return node == NULL ? NULL
                            : HG_CONTAINER_OF(node, struct hg_ticketline_waiter, came_in_line);
    }
    if (node == NULL)
        return NULL;
    node = hg_heap_first(&watched(node)->came);
    return HG_CONTAINER_OF(node, struct hg_ticketline_waiter, came);
}

struct hg_ticketline_waiter *hg_ticketline_expire(struct hg_ticketline *line,
                                                  const struct hg_ticketline_conf *conf,
                                                  uint64_t now_us)
{
    struct hg_ticketline_waiter *waiter;
    struct hg_heap_node *node;

    if (line->count == 0)
        return NULL;
    watch_all(line, now_us);
    node = hg_heap_first(&line->late);
    if (node->key <= now_us) {
        waiter = HG_CONTAINER_OF(node, struct hg_ticketline_waiter, late);
        watch(line, waiter->tenant, now_us);
        return take_out(line, waiter, now_us);
    }
    waiter = first_to_cut(line);
    if (waiter == NULL || add(waiter->came_us, conf->overload_wait_us) > now_us)
        return NULL;
    line->late_us = waiter->tenant->old_us = now_us;
    if (waiter->tenant->overloaded)
        line->old_us = now_us;
    return take_out(line, waiter, now_us);
}

uint64_t hg_ticketline_next_us(const struct hg_ticketline *line,
                               const struct hg_ticketline_conf *conf)
{
    const struct hg_ticketline_waiter *cut = first_to_cut(line);
    const struct hg_heap_node *calm = hg_heap_first(&line->calm);
    uint64_t next_us;

    if (line->count == 0)
        return UINT64_MAX;
    next_us = hg_heap_first(&line->late)->key;
    if (cut != NULL)
        next_us = smaller(next_us, add(cut->came_us, conf->overload_wait_us));
    if (calm != NULL && !line->stalled)
        next_us =
            smaller(next_us, add(smaller(calm->key, line->served_us), HG_TICKETLINE_WINDOW_US));
    return next_us;
}

uint64_t hg_ticketline_end_us(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant,
                              const struct hg_ticketline_conf *conf,
                              const struct hg_ticketline_waiter *waiter)
{
    if ((tenant->overloaded && !is_over(tenant, waiter->since_us)) ||
        (line->stalled && !is_stall_over(line, waiter->since_us)))
        return smaller(waiter->deadline_us, add(waiter->came_us, conf->overload_wait_us));
    return waiter->deadline_us;
}

void hg_ticketline_tick(struct hg_ticketline *line, uint64_t now_us)
{
    if (line->count > 0) {
        watch_all(line, now_us);
        return;
    }
    if (is_stall_over(line, now_us))
        line->stalled = false;
    sum_up(line, now_us);
}
