// overload_back - the backend of the simulation and the arrivals, see overload.h
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <stdlib.h>
#include "overload_in.h"

#define NOISE_US    100000
#define NOISE_AT_US 37000 /* so that the draws do not coincide with the controller's intervals */
#define FLOOR       .05   /* of the capacity: it never comes to a standstill */

/* Of a hundred requests one costs a hundred times as much as each other. */
#define BIG       100.
#define BIG_SHARE .01

/* Draws */

double overload_uniform(struct hg_prng *prng)
{
    return (double)((hg_prng_next(prng) >> 11) + 1) * 0x1p-53;
}

static double exponential(struct hg_prng *prng)
{
    return -log(overload_uniform(prng));
}

static double normal(struct hg_prng *prng)
{
    double radius = sqrt(-2 * log(overload_uniform(prng)));
    return radius * cos(2 * M_PI * overload_uniform(prng));
}

static double draw_demand(struct hg_prng *prng, enum overload_demand demand)
{
    double small = 1 / (1 - BIG_SHARE + BIG * BIG_SHARE), draw = overload_uniform(prng);
    if (demand == OVERLOAD_EXPONENTIAL)
        return -log(draw);
    return draw <= BIG_SHARE ? BIG * small : small;
}

/* Arrivals */

uint32_t overload_sessions(const struct overload_setup *setup)
{
    return setup->heavy_sessions + (setup->tenants - 1) * setup->sessions;
}

void overload_source_init(struct overload_source *source, const struct overload_setup *setup)
{
    *source = (struct overload_source){
        .setup = setup,
        .prng = {setup->seed * 2},
        .heavy = setup->heavy / (setup->heavy + setup->tenants - 1),
    };
}

/* A draw that crosses into another phase is drawn anew from its beginning: exact, as the
   exponential distribution has no memory. */
static void draw_time(struct overload_source *source)
{
    const struct overload_setup *setup = source->setup;
    for (;;) {
        double load = setup->phases[source->phase].load;
        double wait_us = exponential(&source->prng) * 1e6 * setup->batch / load;
        double at_us = source->at_us + wait_us;
        bool is_last = source->phase + 1 >= setup->phase_count;
        if (is_last || at_us < (double)setup->phases[source->phase + 1].from_us) {
            source->at_us = at_us;
            return;
        }
        source->at_us = (double)setup->phases[++source->phase].from_us;
    }
}

static void draw_batch(struct overload_source *source)
{
    const struct overload_setup *setup = source->setup;
    uint32_t others = overload_sessions(setup) - setup->heavy_sessions;
    draw_time(source);
    source->batch = setup->batch;
    if (overload_uniform(&source->prng) <= source->heavy)
        source->session = (uint32_t)hg_prng_below(&source->prng, setup->heavy_sessions);
    else
        source->session = setup->heavy_sessions + (uint32_t)hg_prng_below(&source->prng, others);
}

void overload_source_next(struct overload_source *source, struct overload_arrival *ret_arrival)
{
    const struct overload_setup *setup = source->setup;
    if (source->batch == 0)
        draw_batch(source);
    source->batch--;
    ret_arrival->session = source->session;
    ret_arrival->at_us = (uint64_t)source->at_us;
    ret_arrival->kind =
        overload_uniform(&source->prng) <= setup->reads ? HG_TICKET_READ : HG_TICKET_WRITE;
    ret_arrival->demand = draw_demand(&source->prng, setup->backend.demand);
}

/* The backend */

double overload_server_rate(const struct overload_server *server, uint32_t n)
{
    const struct overload_backend *backend = &server->setup->backend;
    const struct overload_phase *phase = &server->setup->phases[server->phase];
    double knee = backend->knee * phase->knee;
    double rate = backend->mu * phase->speed * server->factor * fmin(n, knee);
    if (n > knee)
        rate *= fmax(FLOOR, 1 - backend->t * (n - knee) / knee);
    return rate;
}

static bool is_before(const struct overload_request *a, const struct overload_request *b)
{
    return a->finish < b->finish;
}

/* What changes when one comes or goes, or the rate does. */
static void look(struct overload_server *server)
{
    const struct overload_setup *setup = server->setup;
    server->next_us = server->noise_us;
    if (server->phase + 1 < setup->phase_count &&
        setup->phases[server->phase + 1].from_us < server->next_us)
        server->next_us = setup->phases[server->phase + 1].from_us;
    server->share = 0;
    if (server->count > 0)
        server->share = overload_server_rate(server, server->count) / server->count * 1e-6;
    if (server->share > 0) {
        double left = fmax(0, server->heap[0]->finish - server->time);
        double at_us = (double)server->now_us + ceil(left / server->share);
        if (at_us < (double)server->next_us)
            server->next_us = (uint64_t)at_us;
    }
}

void overload_server_init(struct overload_server *server, const struct overload_setup *setup)
{
    *server = (struct overload_server){
        .setup = setup, .prng = {setup->seed * 2 + 1}, .noise_us = NOISE_AT_US, .factor = 1};
    look(server);
}

void overload_server_fini(struct overload_server *server)
{
    free(server->heap);
}

void overload_server_go(struct overload_server *server, uint64_t now_us)
{
    const struct overload_setup *setup = server->setup;
    bool is_due = now_us >= server->next_us;
    server->time += server->share * (double)(now_us - server->now_us);
    server->now_us = now_us;
    if (!is_due)
        return;
    while (server->phase + 1 < setup->phase_count &&
           setup->phases[server->phase + 1].from_us <= now_us)
        server->phase++;
    if (server->noise_us <= now_us) {
        server->factor = fmax(.1, 1 + setup->backend.noise * normal(&server->prng));
        server->noise_us += NOISE_US;
    }
    look(server);
}

void overload_server_put(struct overload_server *server, struct overload_request *request)
{
    uint32_t i = server->count++;
    if (i == 0)
        server->time = 0; /* rounding does not add up */
    if (i == server->room) {
        server->room = server->room > 0 ? server->room * 2 : 64;
        server->heap = realloc(server->heap, server->room * sizeof(*server->heap));
        if (server->heap == NULL)
            abort();
    }
    request->finish = server->time + request->demand;
    for (; i > 0 && is_before(request, server->heap[(i - 1) / 2]); i = (i - 1) / 2)
        server->heap[i] = server->heap[(i - 1) / 2];
    server->heap[i] = request;
    look(server);
}

struct overload_request *overload_server_take(struct overload_server *server)
{
    /* The next whole microsecond was waited for: less than that is rounding. */
    if (server->count == 0 || server->heap[0]->finish > server->time + 1e-9)
        return NULL;
    struct overload_request *done = server->heap[0], *last = server->heap[--server->count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= server->count)
            break;
        if (child + 1 < server->count && is_before(server->heap[child + 1], server->heap[child]))
            child++;
        if (is_before(last, server->heap[child]))
            break;
        server->heap[i] = server->heap[child];
        i = child;
    }
    server->heap[i] = last;
    look(server);
    return done;
}
