// linesim - a ticket line before a store of slots, see linesim.h
// SPDX-License-Identifier: BSD-3-Clause
#include "linesim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/linework.h"
#include "core/probe.h"
#include "core/ticketline.h"

#define TICK_US          5000
#define INTERVAL_US      100000
#define PAUSE_US         100000 /* of a client after a refusal */
#define QUEUE_TIMEOUT_US 1000000
#define FLOOD_WAIT_US    100000
#define TENANT_WINDOW    8
#define GRAIN_US         100 /* of latencies */
#define GRAINS           50000

enum kind { ARRIVAL, SEND, DONE, TICK, CONTROL, RESUME };

struct request {
    struct hg_ticketline_waiter waiter; // first
    struct request *next;               // in the store, or free
    uint32_t load, client, worker;
    uint64_t at_us, granted_us, service_us;
    bool is_late; // its end is known, and was heard of later
};

struct event {
    uint64_t at_us, number;
    enum kind kind;
    uint32_t load, client;
    struct request *request;
};

/* Its line of the holder, and what others know of that. */
struct worker {
    struct hg_ticketline line;
    struct hg_ticketline_tenant tenants[LINESIM_TENANTS];
    struct hg_linework work;
    struct hg_workclass classes[LINESIM_TENANTS];
    struct hg_ticketline_conf conf;
    struct hg_linework_classes told;
    uint64_t sole, forgiven;
    uint64_t rounds_elsewhere, forgiven_elsewhere;
};

struct sim {
    const struct linesim_setup *setup;
    struct linesim_result *result;
    struct hg_prng prng;
    uint64_t now_us, events;
    struct event *heap;
    uint32_t heap_count, heap_room;
    struct worker workers[LINESIM_WORKERS];
    uint32_t worker_count, turn;
    struct hg_probe probe;
    int64_t size, out, peak;
    uint64_t finished, service_us, work_us, short_count, short_us;
    double squares;
    uint64_t min_us;
    struct request *inside, **inside_end, *spare; /* waiting in the store */
    uint32_t busy;
    uint32_t answered;
    uint32_t *latencies[2];
    double sizes;
    uint32_t steps;
};

static void *make(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL)
        abort();
    return memory;
}

static double uniform(struct sim *sim)
{
    return (double)((hg_prng_next(&sim->prng) >> 11) + 1) * 0x1p-53;
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->number < b->number);
}

static void add(struct sim *sim, struct event event)
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

static struct event take_first(struct sim *sim)
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

enum end { ANSWERED, REFUSED, LATE };

static const struct linesim_load *load_of(const struct sim *sim, const struct request *request)
{
    return &sim->setup->loads[request->load];
}

static struct worker *worker_of(struct sim *sim, const struct request *request)
{
    return &sim->workers[request->worker];
}

static struct hg_ticketline_tenant *tenant_of(struct sim *sim, const struct request *request)
{
    return &worker_of(sim, request)->tenants[load_of(sim, request)->tenant];
}

static void tell(struct sim *sim, struct request *request, enum end end)
{
    const struct linesim_load *load = load_of(sim, request);
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
        add(sim, (struct event){.at_us = sim->now_us + (end == ANSWERED ? 0 : PAUSE_US),
                                .kind = SEND,
                                .load = request->load,
                                .client = request->client});
    request->next = sim->spare;
    sim->spare = request;
}

/* ---- the store ---- */

static bool is_paused(const struct sim *sim)
{
    return sim->now_us >= sim->setup->pause_us && sim->now_us < sim->setup->pause_end_us;
}

static void begin(struct sim *sim, struct request *request)
{
    sim->busy++;
    add(sim, (struct event){
                 .at_us = sim->now_us + request->service_us, .kind = DONE, .request = request});
}

static void put_inside(struct sim *sim, struct request *request)
{
    if (sim->busy < sim->setup->slots && !is_paused(sim)) {
        begin(sim, request);
        return;
    }
    request->next = NULL;
    *sim->inside_end = request;
    sim->inside_end = &request->next;
}

static void fill_slots(struct sim *sim)
{
    while (sim->busy < sim->setup->slots && sim->inside != NULL && !is_paused(sim)) {
        struct request *request = sim->inside;
        sim->inside = request->next;
        if (sim->inside == NULL)
            sim->inside_end = &sim->inside;
        begin(sim, request);
    }
}

/* ---- the front ---- */

static int64_t size_of(const struct sim *sim)
{
    return sim->setup->direct ? INT32_MAX : sim->size;
}

static void send(struct sim *sim, struct request *request)
{
    hg_ticketline_take(&worker_of(sim, request)->line, tenant_of(sim, request), sim->now_us);
    if (++sim->out > sim->peak)
        sim->peak = sim->out;
    request->granted_us = sim->now_us;
    put_inside(sim, request);
}

static void note_wait(struct sim *sim, uint64_t wait_us)
{
    sim->min_us = wait_us < sim->min_us ? wait_us : sim->min_us;
}

/* Where the lowest tag waits; NULL: nobody does. */
static struct worker *next_worker(struct sim *sim)
{
    struct worker *next = NULL;
    uint64_t lowest_us = UINT64_MAX;
    for (uint32_t i = 0; i < sim->worker_count; i++) {
        struct worker *worker = &sim->workers[(sim->turn + 1 + i) % sim->worker_count];
        uint64_t tag_us = hg_ticketline_lowest_us(&worker->line, sim->now_us);
        if (tag_us >= lowest_us)
            continue;
        next = worker;
        lowest_us = tag_us;
    }
    if (next != NULL)
        sim->turn = (uint32_t)(next - sim->workers);
    return next;
}

/* Each worker counts on its part of the tickets (part_of in front/gate_line.c). */
static void share_size(struct sim *sim, struct worker *worker)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < sim->worker_count; i++)
        waiting += sim->workers[i].line.count > 0 || &sim->workers[i] == worker;
    uint32_t part = (uint32_t)sim->size / waiting;
    worker->conf.size = part > 0 || sim->size == 0 ? part : 1;
}

static void serve(struct sim *sim)
{
    struct worker *worker;
    while (sim->out < size_of(sim) && (worker = next_worker(sim)) != NULL) {
        share_size(sim, worker);
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
    double factor = load->spread == LINESIM_EVEN ? .8 + .4 * uniform(sim) : -log(uniform(sim));
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
    return has_room && sim->setup->size == 0 && tenant->out < 2 && tenant->count == 0 &&
           sim->out < size + (size / 8 > 2 ? size / 8 : 2);
}

static void arrive(struct sim *sim, uint32_t load, uint32_t client)
{
    struct request *request = sim->spare;
    if (request == NULL)
        request = make(1, sizeof *request);
    else
        sim->spare = request->next;
    *request = (struct request){.load = load,
                                .client = client,
                                .worker = draw_worker(sim, load, client),
                                .at_us = sim->now_us,
                                .service_us = draw_service(sim, &sim->setup->loads[load])};
    struct worker *worker = worker_of(sim, request);
    if (finds_ticket(sim, worker, tenant_of(sim, request))) {
        note_wait(sim, 0);
        send(sim, request);
        return;
    }
    struct hg_ticketline_waiter *waiter = &request->waiter;
    waiter->since_us = waiter->came_us = sim->now_us;
    waiter->deadline_us = sim->now_us + QUEUE_TIMEOUT_US;
    share_size(sim, worker);
    if (hg_ticketline_admit(&worker->line, tenant_of(sim, request), &worker->conf, waiter,
                            sim->now_us)
            .why != HG_TICKETLINE_WAIT) {
        tell(sim, request, REFUSED);
        return;
    }
    hg_ticketline_push(&worker->line, tenant_of(sim, request), waiter, sim->now_us);
    serve(sim);
}

static uint32_t held(const struct sim *sim)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->worker_count; i++)
        count += sim->workers[i].line.held;
    return count;
}

static void note_work(struct sim *sim, struct worker *worker, uint32_t tenant, uint64_t service_us)
{
    struct hg_workclass *class = &worker->classes[tenant];
    struct hg_linework *work = &worker->work;
    uint32_t usual_us = class->usual_us;
    bool is_short;
    uint32_t work_us =
        hg_linework_note(work, class, service_us, worker->line.count > 0, sim->now_us, &is_short);
    worker->tenants[tenant].is_short = is_short;
    worker->tenants[tenant].usual_us = class->usual_us;
    work->done_us += work_us;
    sim->work_us += work_us;
    sim->squares += (double)work_us * work_us;
    sim->short_count += is_short && work->has_long;
    sim->short_us +=
        is_short && work->has_long && service_us > usual_us ? service_us - usual_us : 0;
    worker->line.windows.over_us = hg_linework_over_us(work, sim->now_us);
    if (is_short && usual_us == 0)
        hg_ticketline_forget_unknown(&worker->line);
    if (is_short && held(sim) > 0)
        hg_ticketline_prove(&worker->line, hg_linework_is_in_time(work, usual_us, service_us),
                            sim->now_us - service_us, sim->now_us);
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
        add(sim, (struct event){.at_us = heard_us(sim), .kind = DONE, .request = request});
        return;
    }
    if (is_paused(sim)) { // it is answered when the store goes on
        add(sim,
            (struct event){.at_us = sim->setup->pause_end_us, .kind = DONE, .request = request});
        return;
    }
    uint64_t service_us = sim->now_us - request->granted_us;
    sim->busy--;
    sim->out--;
    sim->finished++;
    sim->service_us += service_us;
    struct worker *worker = worker_of(sim, request);
    note_work(sim, worker, load_of(sim, request)->tenant, service_us);
    hg_ticketline_give(&worker->line, tenant_of(sim, request), service_us, true, sim->now_us);
    if (worker->line.windows.vain) {
        hg_linework_forgive(&worker->work);
        worker->forgiven++;
    }
    worker->line.windows.vain = false;
    fill_slots(sim);
    tell(sim, request, ANSWERED);
    serve(sim);
}

/* What workers know of each other's tenants (tell_workers in front/gate_workers.c). */
static void tell_workers(struct sim *sim, struct worker *own)
{
    struct hg_linework_classes others = HG_LINEWORK_NO_CLASSES;
    uint64_t rounds = 0, forgiven = 0;
    own->told = hg_linework_tell(&own->work, sim->now_us);
    own->sole = hg_ticketline_sole(&own->line);
    own->line.windows.has_others = false;
    for (struct worker *of = sim->workers; of < sim->workers + sim->worker_count; of++) {
        if (of == own)
            continue;
        rounds += of->line.rounds;
        forgiven += of->forgiven;
        if (of->sole == 0)
            continue;
        own->line.windows.has_others |= of->sole != own->sole;
        hg_linework_add(&others, &of->told);
    }
    hg_linework_hear(&own->work, &others);
    if (rounds != own->rounds_elsewhere && !hg_linework_has_short(&own->work))
        hg_ticketline_grow(&own->line, sim->now_us);
    if (forgiven != own->forgiven_elsewhere && !own->told.has_long)
        hg_linework_forgive(&own->work);
    own->rounds_elsewhere = rounds;
    own->forgiven_elsewhere = forgiven;
}

static uint32_t least_window(const struct sim *sim)
{
    return sim->setup->size > 0 ? 0 : TENANT_WINDOW / sim->worker_count;
}

static void tick_worker(struct sim *sim, struct worker *worker)
{
    struct hg_ticketline_windows *windows = &worker->line.windows;
    struct hg_ticketline_waiter *waiter;
    hg_ticketline_tick(&worker->line, sim->now_us);
    hg_linework_tick(&worker->work, sim->now_us);
    tell_workers(sim, worker);
    windows->least = least_window(sim);
    windows->newcomer = sim->worker_count > 1 ? 1 : 2;
    windows->no_queue = hg_linework_explains(&worker->work, worker->line.out);
    windows->part = (uint32_t)(worker->work.slots / hg_ticketline_active(&worker->line));
    windows->over_us = hg_linework_over_us(&worker->work, sim->now_us);
    share_size(sim, worker);
    while ((waiter = hg_ticketline_expire(&worker->line, &worker->conf, sim->now_us)) != NULL)
        tell(sim, (struct request *)waiter, LATE);
}

static void tick(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->worker_count; i++)
        tick_worker(sim, &sim->workers[i]);
    serve(sim);
    add(sim, (struct event){.at_us = sim->now_us + TICK_US, .kind = TICK});
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
    add(sim, (struct event){.at_us = sim->now_us + INTERVAL_US, .kind = CONTROL});
}

/* ---- the loop ---- */

static void add_arrival(struct sim *sim, uint32_t l)
{
    const struct linesim_load *load = &sim->setup->loads[l];
    uint64_t from_us = sim->now_us > load->from_us ? sim->now_us : load->from_us;
    double wait_us = -log(uniform(sim)) * 1e6 / load->per_second;
    add(sim, (struct event){.at_us = from_us + 1 + (uint64_t)wait_us, .kind = ARRIVAL, .load = l});
}

static void init_worker(struct sim *sim, struct worker *worker)
{
    worker->conf = (struct hg_ticketline_conf){.queue_timeout_us = QUEUE_TIMEOUT_US,
                                               .flood_wait_us = FLOOD_WAIT_US};
    hg_ticketline_init(&worker->line);
    hg_linework_init(&worker->work, 0);
    worker->line.windows.least = least_window(sim);
    worker->line.windows.newcomer = sim->worker_count > 1 ? 1 : 2;
    worker->told = HG_LINEWORK_NO_CLASSES;
    for (uint32_t t = 0; t < LINESIM_TENANTS; t++) {
        hg_ticketline_tenant_init(&worker->tenants[t]);
        worker->tenants[t].id = t + 1;
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
        sim->latencies[i] = make(GRAINS, sizeof *sim->latencies[i]);
    for (uint32_t l = 0; l < setup->load_count; l++) {
        if (setup->loads[l].clients == 0)
            add_arrival(sim, l);
        for (uint32_t c = 0; c < setup->loads[l].clients; c++)
            add(sim,
                (struct event){.at_us = setup->loads[l].from_us + hg_prng_below(&sim->prng, 5000),
                               .kind = SEND,
                               .load = l,
                               .client = c});
    }
    add(sim, (struct event){.at_us = TICK_US, .kind = TICK});
    add(sim, (struct event){.at_us = INTERVAL_US, .kind = CONTROL});
    if (setup->pause_end_us > 0)
        add(sim, (struct event){.at_us = setup->pause_end_us, .kind = RESUME});
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
        struct event event = take_first(sim);
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
        struct event event = take_first(&sim);
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
            fill_slots(&sim);
            break;
        }
    }
    sum_up(&sim);
    free_requests(&sim);
}
