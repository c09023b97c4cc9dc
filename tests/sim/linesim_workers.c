// linesim_workers - what each worker knows: its part of the tickets, its tenants, those of others
// SPDX-License-Identifier: BSD-3-Clause
#include "linesim_in.h"

/* Where the lowest tag waits; NULL: nobody does. */
struct worker *linesim_next_worker(struct sim *sim)
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
void linesim_share_size(struct sim *sim, struct worker *worker)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < sim->worker_count; i++)
        waiting += sim->workers[i].line.count > 0 || &sim->workers[i] == worker;
    uint32_t part = (uint32_t)sim->size / waiting;
    worker->conf.size = part > 0 || sim->size == 0 ? part : 1;
}

static uint32_t held(const struct sim *sim)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->worker_count; i++)
        count += sim->workers[i].line.held;
    return count;
}

void linesim_note_work(struct sim *sim, struct worker *worker, uint32_t tenant, uint64_t service_us)
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

uint32_t linesim_least_window(const struct sim *sim)
{
    return sim->setup->size > 0 ? 0 : TENANT_WINDOW / sim->worker_count;
}

void linesim_tick_worker(struct sim *sim, struct worker *worker)
{
    struct hg_ticketline_windows *windows = &worker->line.windows;
    struct hg_ticketline_waiter *waiter;
    hg_ticketline_tick(&worker->line, sim->now_us);
    hg_linework_tick(&worker->work, sim->now_us);
    tell_workers(sim, worker);
    windows->least = linesim_least_window(sim);
    windows->newcomer = sim->worker_count > 1 ? 1 : 2;
    windows->no_queue = hg_linework_explains(&worker->work, worker->line.out);
    windows->part = (uint32_t)(worker->work.slots / hg_ticketline_active(&worker->line));
    windows->over_us = hg_linework_over_us(&worker->work, sim->now_us);
    linesim_share_size(sim, worker);
    while ((waiter = hg_ticketline_expire(&worker->line, &worker->conf, sim->now_us)) != NULL)
        linesim_tell(sim, (struct request *)waiter, LATE);
}
