// ticketline - the requests of one worker that wait for a ticket of one holder
// SPDX-License-Identifier: BSD-3-Clause
//
// See ticketline.h. A waiter is in three orders at once: its tenant's (who is served), the line's
// by age (statistics), and the heap of deadlines. Who may get in line is in ticketline_admit.c.
#include "core/ticketline.h"

#include "core/ticketline_in.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- the smallest sojourn ---- */

static uint64_t oldest_age(struct hg_ticketline *line, uint64_t now_us)
{
    return hg_ticketline_since(
        now_us,
        HG_CONTAINER_OF(hg_list_first(&line->ages), struct hg_ticketline_waiter, age)->since_us);
}

/* The line becomes empty, or one gets into an empty line. */
static void begin_window(struct hg_ticketline *line, uint64_t now_us)
{
    line->min_from_us = now_us;
    line->min_us = UINT64_MAX;
    line->last_min_us = 0;
}

static void move_window(struct hg_ticketline *line, uint64_t now_us)
{
    if (hg_ticketline_since(now_us, line->min_from_us) < HG_TICKETLINE_WINDOW_US)
        return;
    line->last_min_us = line->min_us != UINT64_MAX ? line->min_us : oldest_age(line, now_us);
    line->min_from_us = now_us;
    line->min_us = UINT64_MAX;
}

/* ---- turns ---- */

static struct hg_ticketline_tenant *tenant_at(struct hg_heap_node *node)
{
    return HG_CONTAINER_OF(node, struct hg_ticketline_tenant, turn);
}

uint64_t hg_ticketline_tag_us(const struct hg_ticketline *line,
                              const struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    uint64_t elapsed_us = hg_ticketline_clock_us(line, now_us) - tenant->at_us;
    uint64_t out_us = tenant->out * (elapsed_us + hg_ticketline_service_us(tenant));
    return tenant->used_us + hg_ticketline_net_us(line, tenant, out_us);
}

static void move_turn(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                      uint64_t tag_us)
{
    hg_heap_remove(&line->turns, &tenant->turn);
    hg_heap_insert(&line->turns, &tenant->turn, tag_us);
}

/* The clock moves on to now; when would it stop? What decides that has just changed. */
void hg_ticketline_move(struct hg_ticketline *line, uint64_t now_us)
{
    line->clock_us = hg_ticketline_clock_us(line, now_us);
    line->moved_us = now_us;
    line->stall_us = UINT64_MAX;
    if (line->holding > 1)
        line->stall_us =
            line->finished_us + larger(HG_TICKETLINE_QUIET_US, 4 * (line->mean_16us / 16));
}

/* The tenant begins to take turns: idleness has earned nothing. */
static void join(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant, uint64_t now_us)
{
    hg_ticketline_charge(line, tenant, now_us);
    uint64_t tag_us = hg_ticketline_tag_us(line, tenant, now_us);
    if (tag_us < line->served_us) {
        tenant->used_us += line->served_us - tag_us;
        tag_us = line->served_us;
    }
    hg_heap_insert(&line->turns, &tenant->turn, tag_us);
}

/* So many waiters more, or less, that take turns. */
static void add_waiters(struct hg_ticketline *line, uint32_t n, uint64_t now_us)
{
    if (line->count == 0) {
        hg_ticketline_move(line, now_us);
        begin_window(line, now_us);
    }
    line->count += n;
}

static void drop_waiters(struct hg_ticketline *line, uint32_t n, uint64_t now_us)
{
    if (line->count == n) {
        line->clock_us = hg_ticketline_clock_us(line, now_us);
        begin_window(line, now_us);
    }
    line->count -= n;
}

/* The tenant with the lowest tag: keys are lower bounds, so the first whose key is its tag. */
static struct hg_ticketline_tenant *choose(struct hg_ticketline *line, uint64_t now_us)
{
    for (;;) {
        struct hg_heap_node *first = hg_heap_first(&line->turns);
        struct hg_ticketline_tenant *tenant = tenant_at(first);
        uint64_t tag_us = hg_ticketline_tag_us(line, tenant, now_us);
        if (tag_us == first->key)
            return tenant;
        move_turn(line, tenant, tag_us);
    }
}

uint64_t hg_ticketline_lowest_us(struct hg_ticketline *line, uint64_t now_us)
{
    return line->count > 0 ? choose(line, now_us)->turn.key : UINT64_MAX;
}

void hg_ticketline_take_turns(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                              uint64_t now_us)
{
    hg_list_remove(&tenant->held);
    tenant->is_held = false;
    line->held -= tenant->count;
    join(line, tenant, now_us);
    add_waiters(line, tenant->count, now_us);
}

static void hold(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant)
{
    tenant->is_held = true;
    hg_list_append(&line->held_back, &tenant->held);
}

void hg_ticketline_take_no_turns(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                                 uint64_t now_us)
{
    hg_heap_remove(&line->turns, &tenant->turn);
    hold(line, tenant);
    line->held += tenant->count;
    drop_waiters(line, tenant->count, now_us);
}

void hg_ticketline_given(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                         uint64_t service_us, bool answered, uint64_t now_us)
{
    if (answered) {
        line->silent_us += hg_ticketline_silent_us(line, tenant, now_us);
        line->mean_16us = hg_ticketline_mean(line->mean_16us, service_us);
        line->finished_us = now_us;
    }
    hg_ticketline_move(line, now_us);
    if (tenant->count == 0 || tenant->is_held)
        return;
    uint64_t tag_us = hg_ticketline_tag_us(line, tenant, now_us);
    if (tag_us < tenant->turn.key)
        move_turn(line, tenant, tag_us);
}

/* ---- in and out ---- */

void hg_ticketline_init(struct hg_ticketline *line)
{
    *line = (struct hg_ticketline){.window = 1};
    hg_list_init(&line->ages);
    hg_list_init(&line->held_back);
    begin_window(line, 0);
}

void hg_ticketline_tenant_init(struct hg_ticketline_tenant *tenant)
{
    *tenant = (struct hg_ticketline_tenant){0};
    hg_list_init(&tenant->waiters);
    tenant->limit = tenant->failed = UINT32_MAX;
}

void hg_ticketline_push(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                        struct hg_ticketline_waiter *waiter, uint64_t now_us)
{
    if (tenant->count++ == 0) {
        line->starved += tenant->out == 0;
        if (hg_ticketline_has_room(line, tenant))
            join(line, tenant, now_us);
        else
            hold(line, tenant);
    }
    if (tenant->is_held)
        line->held++;
    else
        add_waiters(line, 1, now_us);
    waiter->tenant = tenant;
    waiter->parked = false;
    hg_list_append(&tenant->waiters, &waiter->node);
    hg_list_append(&line->ages, &waiter->age);
    hg_heap_insert(&line->late, &waiter->late, waiter->deadline_us);
    move_window(line, now_us);
}

void hg_ticketline_park(struct hg_ticketline *line, struct hg_ticketline_tenant *tenant,
                        struct hg_ticketline_waiter *waiter)
{
    line->parked++;
    waiter->tenant = tenant;
    waiter->parked = true;
    hg_heap_insert(&line->late, &waiter->late, waiter->deadline_us);
}

static struct hg_ticketline_waiter *unpark(struct hg_ticketline *line,
                                           struct hg_ticketline_waiter *waiter)
{
    line->parked--;
    waiter->tenant = NULL;
    hg_heap_remove(&line->late, &waiter->late);
    return waiter;
}

static struct hg_ticketline_waiter *take_out(struct hg_ticketline *line,
                                             struct hg_ticketline_waiter *waiter, uint64_t now_us)
{
    struct hg_ticketline_tenant *tenant = waiter->tenant;

    assert(tenant != NULL && tenant->count > 0);
    hg_list_remove(&waiter->node);
    hg_list_remove(&waiter->age);
    hg_heap_remove(&line->late, &waiter->late);
    waiter->tenant = NULL;
    if (--tenant->count == 0) {
        if (!tenant->is_held)
            hg_heap_remove(&line->turns, &tenant->turn);
        line->starved -= tenant->out == 0;
    }
    if (tenant->is_held)
        line->held--;
    else
        drop_waiters(line, 1, now_us);
    if (tenant->is_held && tenant->count == 0) {
        hg_list_remove(&tenant->held);
        tenant->is_held = false;
    }
    return waiter;
}

struct hg_ticketline_waiter *hg_ticketline_pop(struct hg_ticketline *line,
                                               const struct hg_ticketline_conf *conf,
                                               uint64_t now_us)
{
    if (line->count == 0)
        return NULL;
    uint64_t age_us = oldest_age(line, now_us);
    if (age_us < line->min_us)
        line->min_us = age_us;
    move_window(line, now_us);
    struct hg_ticketline_tenant *tenant = choose(line, now_us);
    line->served_us = larger(line->served_us, tenant->turn.key);
    bool newest = conf->flood_newest && hg_ticketline_flood_since_us(tenant, conf, now_us) != 0;
    struct hg_list *node = newest ? tenant->waiters.prev : tenant->waiters.next;
    return take_out(line, HG_CONTAINER_OF(node, struct hg_ticketline_waiter, node), now_us);
}

void hg_ticketline_remove(struct hg_ticketline *line, struct hg_ticketline_waiter *waiter,
                          uint64_t now_us)
{
    if (waiter->parked) {
        unpark(line, waiter);
        return;
    }
    move_window(line, now_us);
    take_out(line, waiter, now_us);
}

struct hg_ticketline_waiter *hg_ticketline_expire(struct hg_ticketline *line,
                                                  const struct hg_ticketline_conf *conf,
                                                  uint64_t now_us)
{
    struct hg_heap_node *node = hg_heap_first(&line->late);

    if (node == NULL || node->key > now_us)
        return NULL;
    struct hg_ticketline_waiter *waiter = HG_CONTAINER_OF(node, struct hg_ticketline_waiter, late);
    if (waiter->parked)
        return unpark(line, waiter);
    move_window(line, now_us);
    hg_ticketline_note_late(line, waiter, conf, now_us);
    return take_out(line, waiter, now_us);
}

uint64_t hg_ticketline_next_us(const struct hg_ticketline *line)
{
    const struct hg_heap_node *node = hg_heap_first(&line->late);
    return node == NULL ? UINT64_MAX : node->key;
}

void hg_ticketline_tick(struct hg_ticketline *line, uint64_t now_us)
{
    if (line->count + line->held > 0)
        move_window(line, now_us);
    hg_ticketline_move_active(line, now_us);
}
