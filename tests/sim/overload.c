// overload - admission in virtual time, see overload.h
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>
#include "overload_in.h"

#define TICK_US  5000 /* of the lines */
#define RETRY_US 1000 /* after its refusal a request is sent again: the client's round trip */
#define BLOCK    1024 /* requests that are made at a time */

struct block {
    struct block *next;
    struct overload_request requests[BLOCK];
};

struct holder {
    struct hg_ticketline line;
    struct hg_ticketline_tenant *tenants;
    struct hg_ticketline_conf conf;
    int64_t size, out, peak;
    uint64_t finished, service_us;
    uint64_t queue_min_us; /* since the last step; UINT64_MAX: nobody asked for a ticket */
};

struct sim {
    const struct overload_setup *setup;
    struct overload_tally *tally;
    uint64_t now_us;
    struct overload_source source;
    struct overload_arrival coming;
    struct overload_server server;
    struct overload_session *sessions;
    struct holder holders[HG_TICKET_KINDS];
    struct hg_list sent; /* not answered, oldest first */
    struct overload_fifo retries;
    uint32_t *resuming; /* sessions that are to be looked at: their waiting request has ended */
    uint32_t resume_count;
    uint64_t step_us, tick_us, drops;
    struct block *blocks;
    struct overload_request *spare;
};

static void *make_zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL)
        abort();
    return memory;
}

/* Requests */

static struct overload_request *make_request(struct sim *sim)
{
    if (sim->spare == NULL) {
        struct block *block = make_zeroed(1, sizeof(*block));
        block->next = sim->blocks;
        sim->blocks = block;
        for (uint32_t i = 0; i < BLOCK; i++) {
            block->requests[i].next = sim->spare;
            sim->spare = &block->requests[i];
        }
    }
    struct overload_request *request = sim->spare;
    sim->spare = request->next;
    return request;
}

static void free_request(struct sim *sim, struct overload_request *request)
{
    request->next = sim->spare;
    sim->spare = request;
}

static void push(struct overload_fifo *fifo, struct overload_request *request)
{
    request->next = NULL;
    if (fifo->first == NULL)
        fifo->first = request;
    else
        fifo->last->next = request;
    fifo->last = request;
}

static struct overload_request *pop(struct overload_fifo *fifo)
{
    struct overload_request *request = fifo->first;
    if (request != NULL)
        fifo->first = request->next;
    return request;
}

static struct overload_bin *bin_of(struct sim *sim)
{
    return &sim->tally->bins[sim->now_us / OVERLOAD_BIN_US];
}

/* Ends */

static struct overload_request *oldest_sent(struct sim *sim)
{
    struct hg_list *node = hg_list_first(&sim->sent);
    if (node == NULL)
        return NULL;
    return (struct overload_request *)(void *)((char *)node -
                                               offsetof(struct overload_request, sent));
}

static void refuse(struct sim *sim, struct overload_request *request)
{
    bin_of(sim)->refused++;
    if (request->tries++ < sim->setup->retries) {
        request->again_us = sim->now_us + RETRY_US;
        push(&sim->retries, request);
    } else {
        free_request(sim, request);
    }
}

static void count_latency(struct overload_tally *tally, uint32_t latency_us)
{
    if (tally->latency_count == tally->latency_room) {
        tally->latency_room = tally->latency_room > 0 ? tally->latency_room * 2 : 4096;
        tally->latencies_us =
            realloc(tally->latencies_us, tally->latency_room * sizeof(*tally->latencies_us));
        if (tally->latencies_us == NULL)
            abort();
    }
    tally->latencies_us[tally->latency_count++] = latency_us;
}

static void answer(struct sim *sim, struct overload_request *request)
{
    uint64_t latency_us = sim->now_us - request->at_us;
    bool is_good = latency_us <= sim->setup->slo_us;
    bin_of(sim)->answered++;
    bin_of(sim)->good += is_good;
    if (sim->now_us < sim->setup->from_us)
        return;
    count_latency(sim->tally, (uint32_t)latency_us);
    sim->tally->good_of[sim->sessions[request->session].tenant] += is_good;
}

/* The ticket comes back; what was answered before does not count as finished. */
static void finish(struct sim *sim, struct overload_request *request)
{
    struct holder *holder = &sim->holders[request->kind];
    hg_ticketline_give(&holder->line, &holder->tenants[sim->sessions[request->session].tenant],
                       sim->now_us - request->sent_us, true, sim->now_us);
    holder->out--;
    if (!request->answered) {
        holder->finished++;
        holder->service_us += sim->now_us - request->sent_us;
        hg_list_remove(&request->sent);
        answer(sim, request);
    }
    free_request(sim, request);
}

/* Answered with an error, and the slot is stranded. */
static void time_out(struct sim *sim, struct overload_request *request)
{
    hg_list_remove(&request->sent);
    request->answered = true;
    sim->drops++;
    bin_of(sim)->timed_out++;
}

/* Admission */

static void send(struct sim *sim, struct overload_request *request)
{
    struct holder *holder = &sim->holders[request->kind];
    hg_ticketline_take(&holder->line, &holder->tenants[sim->sessions[request->session].tenant],
                       sim->now_us);
    holder->out++;
    if (holder->out > holder->peak)
        holder->peak = holder->out;
    request->sent_us = sim->now_us;
    request->answered = false;
    hg_list_append(&sim->sent, &request->sent);
    overload_server_put(&sim->server, request);
    if (sim->server.count > sim->tally->peak)
        sim->tally->peak = sim->server.count;
}

static void note_wait(struct holder *holder, uint64_t wait_us)
{
    if (wait_us < holder->queue_min_us)
        holder->queue_min_us = wait_us;
}

/* False: it waits now. */
static bool decide(struct sim *sim, struct overload_request *request)
{
    struct overload_session *session = &sim->sessions[request->session];
    struct holder *holder = &sim->holders[request->kind];
    struct hg_ticketline_waiter *waiter = &request->waiter;
    if (holder->out < holder->size && holder->line.count == 0) {
        note_wait(holder, 0);
        send(sim, request);
        return true;
    }
    waiter->since_us = sim->now_us;
    waiter->came_us = session->backed_us < sim->now_us ? session->backed_us : sim->now_us;
    waiter->deadline_us = sim->now_us + OVERLOAD_QUEUE_TIMEOUT_US;
    if (hg_ticketline_admit(&holder->line, &holder->tenants[session->tenant], &holder->conf, waiter,
                            sim->now_us)
            .why != HG_TICKETLINE_WAIT) {
        refuse(sim, request);
        return true;
    }
    if (session->backed_us == OVERLOAD_NEVER)
        session->backed_us = sim->now_us;
    session->waits = request;
    bin_of(sim)->waited++;
    hg_ticketline_push(&holder->line, &holder->tenants[session->tenant], waiter, sim->now_us);
    return false;
}

/* The session goes on reading until one waits or there is nothing more. */
static void resume(struct sim *sim, struct overload_session *session)
{
    while (session->waits == NULL) {
        struct overload_request *request = pop(&session->socket);
        if (request == NULL) {
            session->backed_us = OVERLOAD_NEVER;
            return;
        }
        (void)decide(sim, request);
    }
}

static void end_wait(struct sim *sim, struct overload_request *request)
{
    struct overload_session *session = &sim->sessions[request->session];
    note_wait(&sim->holders[request->kind], sim->now_us - request->waiter.since_us);
    session->waits = NULL;
    if (!session->resumes) {
        session->resumes = true;
        sim->resuming[sim->resume_count++] = request->session;
    }
}

/* Tickets to who waits, then the sessions that may go on, until nothing moves. */
static void settle(struct sim *sim)
{
    for (;;) {
        for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
            struct holder *holder = &sim->holders[k];
            while (holder->out < holder->size && holder->line.count > 0) {
                struct overload_request *request = (struct overload_request *)hg_ticketline_pop(
                    &holder->line, &holder->conf, sim->now_us);
                end_wait(sim, request);
                send(sim, request);
            }
        }
        if (sim->resume_count == 0)
            return;
        struct overload_session *session = &sim->sessions[sim->resuming[--sim->resume_count]];
        session->resumes = false;
        resume(sim, session);
    }
}

static void expire(struct sim *sim)
{
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
        struct holder *holder = &sim->holders[k];
        struct hg_ticketline_waiter *waiter;
        if (sim->tick_us <= sim->now_us)
            hg_ticketline_tick(&holder->line, sim->now_us);
        while ((waiter = hg_ticketline_expire(&holder->line, &holder->conf, sim->now_us)) != NULL) {
            struct overload_request *request = (struct overload_request *)waiter;
            end_wait(sim, request);
            refuse(sim, request);
        }
    }
    while (sim->tick_us <= sim->now_us)
        sim->tick_us += TICK_US;
}

static void arrive(struct sim *sim, struct overload_request *request)
{
    struct overload_session *session = &sim->sessions[request->session];
    push(&session->socket, request);
    bin_of(sim)->offered++;
    resume(sim, session);
}

static void arrive_next(struct sim *sim)
{
    struct overload_request *request = make_request(sim);
    request->session = sim->coming.session;
    request->kind = sim->coming.kind;
    request->demand = sim->coming.demand;
    request->at_us = sim->coming.at_us;
    request->tries = 0;
    arrive(sim, request);
    overload_source_next(&sim->source, &sim->coming);
}

/* The controller */

static void take_sizes(struct sim *sim, const uint32_t size[HG_TICKET_KINDS])
{
    uint32_t total = 0;
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
        struct holder *holder = &sim->holders[k];
        if (size[k] > holder->size)
            holder->conf.grew_us = sim->now_us;
        holder->size = holder->conf.size = size[k];
        total += size[k];
    }
    sim->tally->sizes[sim->tally->size_count++] = total;
}

static void step(struct sim *sim, const struct overload_control *control, void *own)
{
    struct overload_seen seen = {.probe.now_us = sim->now_us, .drops = sim->drops};
    struct overload_request *oldest = oldest_sent(sim);
    uint32_t size[HG_TICKET_KINDS];
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
        struct holder *holder = &sim->holders[k];
        seen.probe.holder[k] = (struct hg_probe_holder_seen){
            .peak = holder->peak,
            .out = holder->out,
            .finished = holder->finished,
            .service_us = holder->service_us,
            .waiting = holder->line.count,
            .queue_min_us = holder->queue_min_us == UINT64_MAX ? 0 : holder->queue_min_us,
        };
        holder->peak = holder->out;
        holder->finished = holder->service_us = 0;
        holder->queue_min_us = UINT64_MAX;
    }
    if (oldest != NULL)
        seen.probe.oldest_us = sim->now_us - oldest->sent_us;
    sim->drops = 0;
    if (sim->now_us >= sim->setup->from_us)
        sim->tally->inside += sim->server.count;
    control->step(own, &seen, size);
    take_sizes(sim, size);
    sim->step_us += OVERLOAD_INTERVAL_US;
}

/* The loop */

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_us(struct sim *sim)
{
    struct overload_request *oldest = oldest_sent(sim);
    uint64_t at_us = min_of(sim->coming.at_us, sim->step_us);
    at_us = min_of(at_us, overload_server_next_us(&sim->server));
    if (oldest != NULL)
        at_us = min_of(at_us, oldest->sent_us + OVERLOAD_BACKEND_TIMEOUT_US);
    if (sim->retries.first != NULL)
        at_us = min_of(at_us, sim->retries.first->again_us);
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
        struct hg_ticketline *line = &sim->holders[k].line;
        if (line->count > 0)
            at_us = min_of(at_us, min_of(hg_ticketline_next_us(line), sim->tick_us));
    }
    return at_us > sim->now_us ? at_us : sim->now_us;
}

static void go_on(struct sim *sim)
{
    struct overload_request *request;
    while ((request = overload_server_take(&sim->server)) != NULL)
        finish(sim, request);
    while ((request = oldest_sent(sim)) != NULL &&
           request->sent_us + OVERLOAD_BACKEND_TIMEOUT_US <= sim->now_us)
        time_out(sim, request);
    settle(sim);
    expire(sim);
    settle(sim);
    while (sim->coming.at_us <= sim->now_us)
        arrive_next(sim);
    while (sim->retries.first != NULL && sim->retries.first->again_us <= sim->now_us)
        arrive(sim, pop(&sim->retries));
}

static void init(struct sim *sim, const struct overload_setup *setup, struct overload_tally *tally)
{
    uint32_t sessions = overload_sessions(setup);
    *sim = (struct sim){.setup = setup, .tally = tally};
    sim->step_us = OVERLOAD_INTERVAL_US;
    sim->tick_us = TICK_US;
    hg_list_init(&sim->sent);
    sim->sessions = make_zeroed(sessions, sizeof(*sim->sessions));
    sim->resuming = make_zeroed(sessions, sizeof(*sim->resuming));
    for (uint32_t i = 0; i < sessions; i++) {
        sim->sessions[i].backed_us = OVERLOAD_NEVER;
        sim->sessions[i].tenant =
            i < setup->heavy_sessions ? 0 : 1 + (i - setup->heavy_sessions) / setup->sessions;
    }
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++) {
        struct holder *holder = &sim->holders[k];
        hg_ticketline_init(&holder->line);
        holder->conf = (struct hg_ticketline_conf){.queue_timeout_us = OVERLOAD_QUEUE_TIMEOUT_US,
                                                   .flood_wait_us = OVERLOAD_FLOOD_WAIT_US};
        holder->queue_min_us = UINT64_MAX;
        holder->tenants = make_zeroed(setup->tenants, sizeof(*holder->tenants));
        for (uint32_t i = 0; i < setup->tenants; i++)
            hg_ticketline_tenant_init(&holder->tenants[i]);
    }
    overload_server_init(&sim->server, setup);
    overload_source_init(&sim->source, setup);
    overload_source_next(&sim->source, &sim->coming);
    tally->bin_count = (uint32_t)(setup->end_us / OVERLOAD_BIN_US);
    tally->bins = make_zeroed(tally->bin_count, sizeof(*tally->bins));
    tally->sizes = make_zeroed(setup->end_us / OVERLOAD_INTERVAL_US + 2, sizeof(*tally->sizes));
    tally->good_of = make_zeroed(setup->tenants, sizeof(*tally->good_of));
}

static void fini(struct sim *sim)
{
    for (uint32_t k = 0; k < HG_TICKET_KINDS; k++)
        free(sim->holders[k].tenants);
    overload_server_fini(&sim->server);
    free(sim->sessions);
    free(sim->resuming);
    while (sim->blocks != NULL) {
        struct block *block = sim->blocks;
        sim->blocks = block->next;
        free(block);
    }
}

void overload_run(const struct overload_setup *setup, const struct overload_control *control,
                  struct overload_tally *ret_tally)
{
    struct sim sim;
    uint32_t size[HG_TICKET_KINDS];
    memset(ret_tally, 0, sizeof(*ret_tally));
    init(&sim, setup, ret_tally);
    void *own = control->make(setup, size);
    take_sizes(&sim, size);
    for (;;) {
        uint64_t at_us = next_us(&sim);
        if (at_us >= setup->end_us)
            break;
        sim.now_us = at_us;
        overload_server_go(&sim.server, at_us);
        go_on(&sim);
        if (sim.step_us <= at_us) {
            step(&sim, control, own);
            settle(&sim);
        }
    }
    free(own);
    fini(&sim);
}

void overload_tally_fini(struct overload_tally *tally)
{
    free(tally->bins);
    free(tally->sizes);
    free(tally->latencies_us);
    free(tally->good_of);
}
