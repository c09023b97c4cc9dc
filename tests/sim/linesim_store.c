// linesim_store - events, how requests end, and a store of slots
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "linesim_in.h"

void *linesim_make(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL)
        abort();
    return memory;
}

double linesim_uniform(struct sim *sim)
{
    return (double)((hg_prng_next(&sim->prng) >> 11) + 1) * 0x1p-53;
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->number < b->number);
}

void linesim_add(struct sim *sim, struct event event)
{
    if (sim->heap_count == sim->heap_room) {
        sim->heap_room = sim->heap_room > 0 ? sim->heap_room * 2 : 1024;
        sim->heap = realloc(sim->heap, sim->heap_room * sizeof *sim->heap);
        if (sim->heap == NULL)
            abort();
    }
    event.number = sim->events++;
    uint32_t i = sim->heap_count++;
    for (; i > 0 && is_before(&event, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
        sim->heap[i] = sim->heap[(i - 1) / 2];
    sim->heap[i] = event;
}

struct event linesim_take_first(struct sim *sim)
{
    struct event first = sim->heap[0], last = sim->heap[--sim->heap_count];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < sim->heap_count; i = child) {
        if (child + 1 < sim->heap_count && is_before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!is_before(&sim->heap[child], &last))
            break;
        sim->heap[i] = sim->heap[child];
    }
    sim->heap[i] = last;
    return first;
}

/* ---- ends ---- */

const struct linesim_load *linesim_load_of(const struct sim *sim, const struct request *request)
{
    return &sim->setup->loads[request->load];
}

struct worker *linesim_worker_of(struct sim *sim, const struct request *request)
{
    return &sim->workers[request->worker];
}

struct hg_ticketline_tenant *linesim_tenant_of(struct sim *sim, const struct request *request)
{
    return &linesim_worker_of(sim, request)->tenants[linesim_load_of(sim, request)->tenant];
}

void linesim_tell(struct sim *sim, struct request *request, enum end end)
{
    const struct linesim_load *load = linesim_load_of(sim, request);
    struct linesim_score *score = load->counts ? &sim->result->counted : &sim->result->others;
    uint64_t grain = (sim->now_us - request->at_us) / GRAIN_US;
    if (request->at_us >= sim->setup->from_us) {
        score->sent++;
        score->answered += end == ANSWERED;
        score->refused += end == REFUSED;
        score->late += end == LATE;
        score->wrong_late +=
            end == LATE && sim->now_us - request->waiter.since_us > QUEUE_TIMEOUT_US + TICK_US;
        score->wrong_late += end == LATE && sim->now_us < request->waiter.deadline_us;
        if (end == ANSWERED)
            sim->latencies[load->counts][grain < GRAINS ? grain : GRAINS - 1]++;
    }
    sim->answered += end == ANSWERED && sim->now_us >= sim->setup->from_us;
    if (load->clients > 0)
        linesim_add(sim, (struct event){.at_us = sim->now_us + (end == ANSWERED ? 0 : PAUSE_US),
                                        .kind = SEND,
                                        .load = request->load,
                                        .client = request->client});
    request->next = sim->spare;
    sim->spare = request;
}

/* ---- the store ---- */

bool linesim_is_paused(const struct sim *sim)
{
    return sim->now_us >= sim->setup->pause_us && sim->now_us < sim->setup->pause_end_us;
}

static void begin(struct sim *sim, struct request *request)
{
    sim->busy++;
    linesim_add(sim, (struct event){.at_us = sim->now_us + request->service_us,
                                    .kind = DONE,
                                    .request = request});
}

void linesim_put_inside(struct sim *sim, struct request *request)
{
    if (sim->busy < sim->setup->slots && !linesim_is_paused(sim)) {
        begin(sim, request);
        return;
    }
    request->next = NULL;
    *sim->inside_end = request;
    sim->inside_end = &request->next;
}

void linesim_fill_slots(struct sim *sim)
{
    while (sim->busy < sim->setup->slots && sim->inside != NULL && !linesim_is_paused(sim)) {
        struct request *request = sim->inside;
        sim->inside = request->next;
        if (sim->inside == NULL)
            sim->inside_end = &sim->inside;
        begin(sim, request);
    }
}
