// linesim - a ticket line before a store of slots, see linesim.h
// SPDX-License-Identifier: BSD-3-Clause
#include "linesim_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the front ---- */

static int64_t size_of(const struct sim *sim)
{
    return sim->setup->direct ? INT32_MAX : sim->size;
}

static void send(struct sim *sim, struct request *request)
{
    hg_ticketline_take(&linesim_worker_of(sim, request)->line, linesim_tenant_of(sim, request),
                       sim->now_us);
    if (++sim->out > sim->peak)
        sim->peak = sim->out;
    request->granted_us = sim->now_us;
    linesim_put_inside(sim, request);
}

static void note_wait(struct sim *sim, uint64_t wait_us)
{
    sim->min_us = wait_us < sim->min_us ? wait_us : sim->min_us;
}

static void serve(struct sim *sim)
{
    struct worker *worker;
    while (sim->out < size_of(sim) && (worker = linesim_next_worker(sim)) != NULL) {
        linesim_share_size(sim, worker);
        struct request *request =
            (struct request *)hg_ticketline_pop(&worker->line, &worker->conf, sim->now_us);
        for (uint32_t i = 0; i < sim->worker_count; i++)
            hg_ticketline_note_served(&sim->workers[i].line, worker->line.served_us);
        note_wait(sim, sim->now_us - request->waiter.since_us);
        send(sim, request);
    }
}

static uint64_t draw_service(struct sim *sim, const struct linesim_load *load)
{
    double factor =
        load->spread == LINESIM_EVEN ? .8 + .4 * linesim_uniform(sim) : -log(linesim_uniform(sim));
    uint64_t us = (uint64_t)((double)load->service_us * factor);
    return us > 0 ? us : 1;
}

/* A client stays on its worker; a request of a source is on a connection of its own. */
static uint32_t draw_worker(struct sim *sim, uint32_t load, uint32_t client)
{
    if (sim->worker_count == 1)
        return 0;
    if (sim->setup->is_apart)
        return sim->setup->loads[load].tenant % sim->worker_count;
    return sim->setup->loads[load].clients > 0 ? client % sim->worker_count
                                               : hg_prng_below(&sim->prng, sim->worker_count);
}

/* Is there a ticket for it at once (take in front/gate.c)? A tenant with hardly any may have one
   beyond the size. */
static bool finds_ticket(struct sim *sim, struct worker *worker,
                         struct hg_ticketline_tenant *tenant)
{
    int64_t size = size_of(sim);
    if (sim->setup->direct)
        return true;
    bool has_room = hg_ticketline_has_room(&worker->line, tenant);
    if (sim->out < size && worker->line.count == 0 && has_room)
        return true;
    return (has_room || (tenant->is_short && worker->work.has_long)) && sim->setup->size == 0 &&
           tenant->out < 2 && tenant->count == 0 && sim->out < size + (size / 8 > 2 ? size / 8 : 2);
}

static void arrive(struct sim *sim, uint32_t load, uint32_t client)
{
    struct request *request = sim->spare;
    if (request == NULL)
        request = linesim_make(1, sizeof *request);
    else
        sim->spare = request->next;
    *request = (struct request){.load = load,
                                .client = client,
                                .worker = draw_worker(sim, load, client),
                                .at_us = sim->now_us,
                                .service_us = draw_service(sim, &sim->setup->loads[load])};
    struct worker *worker = linesim_worker_of(sim, request);
    if (finds_ticket(sim, worker, linesim_tenant_of(sim, request))) {
        note_wait(sim, 0);
        send(sim, request);
        return;
    }
    struct hg_ticketline_waiter *waiter = &request->waiter;
    waiter->since_us = waiter->came_us = sim->now_us;
    waiter->deadline_us = sim->now_us + QUEUE_TIMEOUT_US;
    linesim_share_size(sim, worker);
    if (hg_ticketline_admit(&worker->line, linesim_tenant_of(sim, request), &worker->conf, waiter,
                            sim->now_us)
            .why != HG_TICKETLINE_WAIT) {
        linesim_tell(sim, request, REFUSED);
        return;
    }
    hg_ticketline_push(&worker->line, linesim_tenant_of(sim, request), waiter, sim->now_us);
    serve(sim);
}

/* When a busy machine hears of what ends now. */
static uint64_t heard_us(const struct sim *sim)
{
    uint64_t grain_us = sim->setup->stutter_us;
    if (grain_us == 0 || sim->now_us < sim->setup->from_us)
        return sim->now_us;
    return (sim->now_us + grain_us - 1) / grain_us * grain_us;
}

static void finish(struct sim *sim, struct request *request)
{
    if (heard_us(sim) > sim->now_us && !request->is_late) {
        request->is_late = true;
        linesim_add(sim, (struct event){.at_us = heard_us(sim), .kind = DONE, .request = request});
        return;
    }
    if (linesim_is_paused(sim)) { // it is answered when the store goes on
        linesim_add(sim, (struct event){
                             .at_us = sim->setup->pause_end_us, .kind = DONE, .request = request});
        return;
    }
    uint64_t service_us = sim->now_us - request->granted_us;
    sim->busy--;
    sim->out--;
    sim->finished++;
    sim->service_us += service_us;
    struct worker *worker = linesim_worker_of(sim, request);
    linesim_note_work(sim, worker, linesim_load_of(sim, request)->tenant, service_us);
    hg_ticketline_give(&worker->line, linesim_tenant_of(sim, request), service_us, true,
                       sim->now_us);
    if (worker->line.windows.vain) {
        hg_linework_forgive(&worker->work);
        worker->forgiven++;
    }
    worker->line.windows.vain = false;
    linesim_fill_slots(sim);
    linesim_tell(sim, request, ANSWERED);
    serve(sim);
}

static void tick(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->worker_count; i++)
        linesim_tick_worker(sim, &sim->workers[i]);
    serve(sim);
    linesim_add(sim, (struct event){.at_us = sim->now_us + TICK_US, .kind = TICK});
}

/* Of the worker that has most to tell. */
static enum hg_probe_mix mix_of(struct sim *sim)
{
    enum hg_probe_mix mix = HG_PROBE_ALIKE;
    for (uint32_t i = 0; i < sim->worker_count; i++) {
        if (sim->workers[i].work.has_long)
            return HG_PROBE_MIXED;
        if (hg_ticketline_holds_unknown(&sim->workers[i].line, sim->now_us))
            mix = HG_PROBE_FRESH;
    }
    return mix;
}

static uint32_t waiting(const struct sim *sim)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->worker_count; i++)
        count += sim->workers[i].line.count;
    return count;
}

static void resize(struct sim *sim, uint32_t size)
{
    for (uint32_t i = 0; i < sim->worker_count && size > sim->size; i++)
        sim->workers[i].conf.grew_us = sim->now_us;
    sim->size = size;
    sim->sizes += size;
    sim->steps++;
}

static void control(struct sim *sim)
{
    struct hg_probe_seen seen = {
        .now_us = sim->now_us,
        .holder[HG_TICKET_READ] = {.peak = sim->peak,
                                   .out = sim->out,
                                   .finished = sim->finished,
                                   .service_us = sim->service_us,
                                   .work_us = sim->work_us,
                                   .mix = mix_of(sim),
                                   .work_squares = (uint64_t)(sim->squares / 256),
                                   .short_count = sim->short_count,
                                   .short_us = sim->short_us,
                                   .waiting = waiting(sim),
                                   .queue_min_us = sim->min_us == UINT64_MAX ? 0 : sim->min_us},
    };
    hg_probe_step(&sim->probe, &seen);
    resize(sim, sim->setup->size > 0 ? sim->setup->size : sim->probe.size[HG_TICKET_READ]);
    sim->peak = sim->out;
    sim->finished = sim->service_us = sim->work_us = sim->short_count = sim->short_us = 0;
    sim->squares = 0;
    sim->min_us = UINT64_MAX;
    serve(sim);
    linesim_add(sim, (struct event){.at_us = sim->now_us + INTERVAL_US, .kind = CONTROL});
}

/* ---- the loop ---- */

static void add_arrival(struct sim *sim, uint32_t l)
{
    const struct linesim_load *load = &sim->setup->loads[l];
    uint64_t from_us = sim->now_us > load->from_us ? sim->now_us : load->from_us;
    double wait_us = -log(linesim_uniform(sim)) * 1e6 / load->per_second;
    linesim_add(
        sim, (struct event){.at_us = from_us + 1 + (uint64_t)wait_us, .kind = ARRIVAL, .load = l});
}

static void init_worker(struct sim *sim, struct worker *worker)
{
    worker->conf = (struct hg_ticketline_conf){.queue_timeout_us = QUEUE_TIMEOUT_US,
                                               .flood_wait_us = FLOOD_WAIT_US};
    hg_ticketline_init(&worker->line);
    hg_linework_init(&worker->work, 0);
    worker->line.windows.least = linesim_least_window(sim);
    worker->line.windows.newcomer = sim->worker_count > 1 ? 1 : 2;
    worker->told = HG_LINEWORK_NO_CLASSES;
    for (uint32_t t = 0; t < LINESIM_TENANTS; t++) {
        hg_ticketline_tenant_init(&worker->tenants[t]);
        worker->tenants[t].id = t + 1;
        worker->tenants[t].idle_us = (uint64_t)0 - 10 * IDLE_US; // before time began
    }
}

static void init(struct sim *sim, const struct linesim_setup *setup, struct linesim_result *result)
{
    static const struct hg_probe_conf conf = {.control = HG_PROBE_ADAPTIVE,
                                              .interval_us = INTERVAL_US,
                                              .read_tickets = 1024,
                                              .write_tickets = 1024,
                                              .cores = 2,
                                              .min = 4,
                                              .max = 1024,
                                              .read_write_ratio = .5,
                                              .weight = .2,
                                              .step = .1};
    *sim = (struct sim){.setup = setup,
                        .result = result,
                        .prng = {setup->seed},
                        .worker_count = setup->workers > 0 ? setup->workers : 1,
                        .min_us = UINT64_MAX};
    sim->inside_end = &sim->inside;
    for (uint32_t i = 0; i < sim->worker_count; i++)
        init_worker(sim, &sim->workers[i]);
    (void)hg_probe_init(&sim->probe, &conf);
    sim->size = setup->size > 0 ? setup->size : sim->probe.size[HG_TICKET_READ];
    for (uint32_t i = 0; i < 2; i++)
        sim->latencies[i] = linesim_make(GRAINS, sizeof *sim->latencies[i]);
    for (uint32_t l = 0; l < setup->load_count; l++) {
        if (setup->loads[l].clients == 0)
            add_arrival(sim, l);
        for (uint32_t c = 0; c < setup->loads[l].clients; c++)
            linesim_add(sim, (struct event){.at_us = setup->loads[l].from_us +
                                                     hg_prng_below(&sim->prng, 5000),
                                            .kind = SEND,
                                            .load = l,
                                            .client = c});
    }
    linesim_add(sim, (struct event){.at_us = TICK_US, .kind = TICK});
    linesim_add(sim, (struct event){.at_us = INTERVAL_US, .kind = CONTROL});
    if (setup->pause_end_us > 0)
        linesim_add(sim, (struct event){.at_us = setup->pause_end_us, .kind = RESUME});
}

static uint64_t percentile(const uint32_t latencies[GRAINS], uint32_t count, double part)
{
    uint64_t rank = (uint64_t)(part * count), below = 0;
    for (uint32_t g = 0; g < GRAINS; g++)
        if ((below += latencies[g]) > rank)
            return g * (uint64_t)GRAIN_US;
    return 0;
}

static void sum_up(struct sim *sim)
{
    struct linesim_result *result = sim->result;
    struct linesim_score *scores[2] = {&result->others, &result->counted};
    for (uint32_t i = 0; i < 2; i++) {
        scores[i]->p50_us = percentile(sim->latencies[i], scores[i]->answered, .5);
        scores[i]->p99_us = percentile(sim->latencies[i], scores[i]->answered, .99);
        free(sim->latencies[i]);
    }
    result->per_second = sim->answered * 1e6 / (double)(sim->setup->end_us - sim->setup->from_us);
    result->size = sim->sizes / sim->steps;
}

/* Requests that have not ended are only known to whom they belong. */
static void free_requests(struct sim *sim)
{
    struct request *request, *next;
    struct hg_ticketline_waiter *waiter;
    for (uint32_t i = 0; i < sim->worker_count; i++)
        while ((waiter = hg_ticketline_expire(&sim->workers[i].line, &sim->workers[i].conf,
                                              UINT64_MAX)) != NULL) {
            request = (struct request *)waiter;
            request->next = sim->spare;
            sim->spare = request;
        }
    while (sim->heap_count > 0) {
        struct event event = linesim_take_first(sim);
        if (event.request == NULL)
            continue;
        event.request->next = sim->spare;
        sim->spare = event.request;
    }
    for (request = sim->spare; request != NULL; request = next) {
        next = request->next;
        free(request);
    }
    for (request = sim->inside; request != NULL; request = next) {
        next = request->next;
        free(request);
    }
    free(sim->heap);
}

void linesim_run(const struct linesim_setup *setup, struct linesim_result *ret_result)
{
    static struct sim sim; // a megabyte
    memset(ret_result, 0, sizeof *ret_result);
    init(&sim, setup, ret_result);
    while (sim.heap_count > 0 && sim.heap[0].at_us < setup->end_us) {
        struct event event = linesim_take_first(&sim);
        sim.now_us = event.at_us;
        switch (event.kind) {
        case ARRIVAL:
            add_arrival(&sim, event.load);
            arrive(&sim, event.load, 0);
            break;
        case SEND:
            arrive(&sim, event.load, event.client);
            break;
        case DONE:
            finish(&sim, event.request);
            break;
        case TICK:
            tick(&sim);
            break;
        case CONTROL:
            control(&sim);
            break;
        case RESUME:
            linesim_fill_slots(&sim);
            break;
        }
    }
    sum_up(&sim);
    free_requests(&sim);
}
