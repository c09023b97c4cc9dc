// gate_part - a worker's parts of the tickets of an upstream's servers
// SPDX-License-Identifier: BSD-3-Clause
//
// A part is made when the worker first asks for its server, and found again by the address: so the
// instances of two generations share it. It goes when no instance leads to it, and nobody has a
// ticket of it or waits for one.
#include <stdlib.h>

#include "front/gate_in.h"
#include "front/instance.h"

#define LOOKS 256 /* at passes with tickets, for the oldest of each kind */

static struct hg_gate_part *find_part(struct hg_gate *gate, const struct hg_gateshare *share)
{
    HG_LIST_EACH(node, &gate->parts)
    {
        struct hg_gate_part *part = HG_CONTAINER_OF(node, struct hg_gate_part, node);
        if (part->share == share)
            return part;
    }
    return NULL;
}

static void free_part(struct hg_gate_part *part)
{
    hg_list_remove(&part->node);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        hg_gate_tell_nothing(&part->lines[kind]);
        hg_gate_line_fini(&part->lines[kind]);
    }
    hg_gateset_give(part->gate->set, part->share);
    free(part);
}

static struct hg_gate_part *open_part(struct hg_gate *gate, const char *server)
{
    struct hg_worker *worker = gate->worker;
    struct hg_gateshare *share =
        hg_gateset_take(gate->set, worker->front, server, worker->loop.now_us);
    if (share == NULL)
        return NULL;
    struct hg_gate_part *part = find_part(gate, share);
    if (part != NULL) {
        hg_gateset_give(gate->set, share); /* it is taken once for each part */
        part->refs++;
        return part;
    }
    part = calloc(1, sizeof *part);
    if (part == NULL) {
        hg_gateset_give(gate->set, share);
        return NULL;
    }
    part->gate = gate;
    part->share = share;
    part->index = share->index;
    part->number = ++worker->parts;
    part->refs = 1;
    hg_list_init(&part->running);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        hg_gate_line_init(&part->lines[kind], worker, &share->holders[kind], part);
    /* Many may come at once, who have waited at another server: keys have shares from the first
       request on. */
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        hg_gate_publish_line(&part->lines[kind]);
    hg_list_append(&gate->parts, &part->node);
    return part;
}

static bool make_room(struct hg_instance *instance, uint32_t server)
{
    if (server < instance->part_count)
        return true;
    uint32_t count = server + 1 > 2 * instance->part_count ? server + 1 : 2 * instance->part_count;
    struct hg_gate_part **more = reallocarray(instance->parts, count, sizeof *more);
    if (more == NULL)
        return false;
    for (uint32_t i = instance->part_count; i < count; i++)
        more[i] = NULL;
    instance->parts = more;
    instance->part_count = count;
    return true;
}

struct hg_gate_part *hg_gate_part(struct hg_instance *instance, uint32_t server)
{
    struct hg_store *store = instance->store;
    bool named = server != HG_SERVER_NONE && store->ops->server_name != NULL;
    if (server != HG_SERVER_NONE && !make_room(instance, server))
        return NULL;
    struct hg_gate_part **at =
        server != HG_SERVER_NONE ? &instance->parts[server] : &instance->nowhere;
    if (*at == NULL)
        *at = open_part(instance->gate, named ? store->ops->server_name(store, server) : "");
    return *at;
}

static bool is_in_use(const struct hg_gate_part *part)
{
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        if (hg_gate_has_waiters(&part->lines[kind]))
            return true;
    return !hg_list_empty(&part->running);
}

void hg_gate_forget(struct hg_instance *instance)
{
    for (uint32_t i = 0; i < instance->part_count; i++)
        if (instance->parts[i] != NULL)
            instance->parts[i]->refs--;
    if (instance->nowhere != NULL)
        instance->nowhere->refs--;
    free(instance->parts);
    instance->parts = NULL;
    instance->part_count = 0;
    instance->nowhere = NULL;
    HG_LIST_EACH(node, &instance->gate->parts)
    {
        struct hg_gate_part *part = HG_CONTAINER_OF(node, struct hg_gate_part, node);
        if (part->refs == 0 && !is_in_use(part))
            free_part(part);
    }
}

/* ---- gates ---- */

struct hg_gate *hg_gate_new(struct hg_worker *worker, struct hg_upstream *upstream)
{
    struct hg_gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return NULL;
    gate->worker = worker;
    gate->upstream = upstream;
    gate->set = upstream->gates;
    hg_list_init(&gate->parts);
    return gate;
}

void hg_gate_free(struct hg_gate *gate)
{
    if (gate == NULL)
        return;
    HG_LIST_EACH(node, &gate->parts)
    free_part(HG_CONTAINER_OF(node, struct hg_gate_part, node));
    free(gate);
}

bool hg_gate_in_use(const struct hg_gate *gate)
{
    const struct hg_list *head = &gate->parts;
    for (const struct hg_list *node = head->next; node != head; node = node->next)
        if (is_in_use(HG_CONTAINER_OF(node, struct hg_gate_part, node)))
            return true;
    return false;
}

/* Since when the oldest of each kind has its ticket, as far as it is among the first. */
static void find_oldest(struct hg_gate_part *part, uint64_t ret_us[HG_TICKET_KINDS])
{
    unsigned looked_at = 0, kinds_found = 0;
    HG_LIST_EACH(node, &part->running)
    {
        const struct hg_gate_pass *pass = HG_CONTAINER_OF(node, struct hg_gate_pass, run);
        uint64_t *us = &ret_us[pass->gate->place - HG_GATE_READ];
        kinds_found += *us == 0;
        if (*us == 0)
            *us = pass->ticket_us;
        if (kinds_found == HG_TICKET_KINDS || ++looked_at == LOOKS)
            return;
    }
}

static void publish_part(struct hg_gate_part *part)
{
    uint64_t oldest_us[HG_TICKET_KINDS] = {0};
    find_oldest(part, oldest_us);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        hg_gate_publish_line(&part->lines[kind]);
        hg_counter_set(&part->share->holders[kind].workers[part->gate->worker->index].oldest_us,
                       oldest_us[kind]);
    }
}

/* Publishes, for each server, how many requests its connections can carry (hg_store_ops.width). */
static void publish_widths(const struct hg_instance *instance)
{
    struct hg_store *store = instance->store;
    if (store->ops->width == NULL)
        return;
    for (uint32_t i = 0; i < instance->part_count; i++) {
        const struct hg_gate_part *part = instance->parts[i];
        if (part == NULL)
            continue;
        struct hg_gate_holder *holder = &part->share->holders[HG_TICKET_READ];
        hg_counter_set(&holder->workers[part->gate->worker->index].width,
                       store->ops->width(store, i));
    }
}

void hg_gates_publish(struct hg_worker *worker)
{
    hg_gate_publish_line(worker->ingress);
    for (unsigned slot = 0; slot < HG_UPSTREAMS_MAX; slot++) {
        if (worker->instances[slot] != NULL)
            publish_widths(worker->instances[slot]);
        if (worker->gates[slot] == NULL)
            continue;
        HG_LIST_EACH(node, &worker->gates[slot]->parts)
        publish_part(HG_CONTAINER_OF(node, struct hg_gate_part, node));
    }
}

void hg_gates_each_line(struct hg_worker *worker, void (*fn)(void *ctx, struct hg_gate_line *in),
                        void *ctx)
{
    for (unsigned slot = 0; slot < HG_UPSTREAMS_MAX; slot++) {
        if (worker->gates[slot] == NULL)
            continue;
        HG_LIST_EACH(node, &worker->gates[slot]->parts)
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
            fn(ctx, &HG_CONTAINER_OF(node, struct hg_gate_part, node)->lines[kind]);
    }
}
