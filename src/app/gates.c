// gates - sizes of the upstreams' tickets: the main thread's side
// SPDX-License-Identifier: BSD-3-Clause
#include "app/gates.h"

#include "app/process.h"
#include "front/gate.h"

#define LOOK_US 1000000 /* at least so often, since an upstream may be new */

/* What the workers have counted since the last time. */
static struct hg_probe_holder_seen see(struct hg_gate_holder *holder)
{
    struct hg_probe_holder_seen seen = {.peak = hg_ticket_swap_peak(&holder->ticket),
                                        .out = hg_ticket_out(&holder->ticket)};
    uint64_t answered = 0, worked_us = 0, work_us = 0, squares = 0, refused = 0;
    uint64_t short_count = 0, short_us = 0;
    int64_t waiting = atomic_load_explicit(&holder->waiting, memory_order_relaxed) -
                      atomic_load_explicit(&holder->held, memory_order_relaxed);
    for (unsigned w = 0; w < holder->worker_count; w++) {
        const struct hg_gate_worker *of = &holder->workers[w];
        uint64_t queue_us = hg_counter_get(&of->queue_min_us);
        answered += hg_counter_get(&of->tally.answered);
        worked_us += hg_counter_get(&of->worked_us);
        work_us += hg_counter_get(&of->work_us);
        squares += hg_counter_get(&of->work_squares);
        short_count += hg_counter_get(&of->short_count);
        short_us += hg_counter_get(&of->short_us);
        seen.out -= (int64_t)hg_counter_get(&of->unproven_out);
        if (hg_counter_get(&of->mix) > (uint64_t)seen.mix)
            seen.mix = (enum hg_probe_mix)hg_counter_get(&of->mix);
        refused += hg_counter_get(&of->tally.canceled) + hg_counter_get(&of->tally.overflows);
        if (queue_us > seen.queue_min_us)
            seen.queue_min_us = queue_us;
    }
    /* Less than before: somebody sets the counters to 0 just now. */
    if (answered > holder->seen_answered)
        seen.finished = answered - holder->seen_answered;
    seen.service_us = worked_us - holder->seen_worked_us;
    seen.work_us = work_us - holder->seen_work_us;
    seen.work_squares = squares - holder->seen_work_squares;
    seen.short_count = short_count - holder->seen_short_count;
    seen.short_us = short_us - holder->seen_short_us;
    if (seen.out < 0)
        seen.out = 0;
    seen.waiting = waiting > 0 ? (uint64_t)waiting : 0;
    /* A request that was refused on arrival is demand, just like one that waits. */
    if (refused > holder->seen_refused)
        seen.waiting += refused - holder->seen_refused;
    holder->seen_refused = refused;
    holder->seen_answered = answered;
    holder->seen_worked_us = worked_us;
    holder->seen_work_us = work_us;
    holder->seen_work_squares = squares;
    holder->seen_short_count = short_count;
    holder->seen_short_us = short_us;
    return seen;
}

static uint64_t oldest_us(const struct hg_gateshare *share, uint64_t now_us)
{
    uint64_t oldest = 0;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        for (unsigned w = 0; w < share->holders[kind].worker_count; w++) {
            uint64_t since_us = hg_counter_get(&share->holders[kind].workers[w].oldest_us);
            if (since_us != 0 && now_us > since_us && now_us - since_us > oldest)
                oldest = now_us - since_us;
        }
    return oldest;
}

/* Tickets that were wanted at a time: grows at once, fades by an eighth each step. */
static void note_demand(struct hg_gateshare *share, const struct hg_probe_seen *seen)
{
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        const struct hg_probe_holder_seen *of = &seen->holder[kind];
        uint64_t now = (of->peak > 0 ? (uint64_t)of->peak : 0) + of->waiting;
        uint64_t before = share->demand[kind] - (share->demand[kind] + 7) / 8;
        share->demand[kind] = now > before ? now : before;
    }
}

/* When the next step of a server is due. Under the set's lock. */
static uint64_t step(const struct hg_gateset *set, struct hg_gateshare *share, uint64_t now_us)
{
    uint64_t due_us = share->stepped_us + set->conf.probe.interval_us;
    if (now_us < due_us)
        return due_us;
    struct hg_probe_seen seen = {.now_us = now_us, .oldest_us = oldest_us(share, now_us)};
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        seen.holder[kind] = see(&share->holders[kind]);
    note_demand(share, &seen);
    hg_probe_step(&share->probe, &seen);
    share->stepped_us = now_us;
    return now_us + set->conf.probe.interval_us;
}

/* When the next step of any of the upstream's servers is due. */
static uint64_t steps(struct hg_front *front, struct hg_gateset *set, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;
    pthread_mutex_lock(&set->lock);
    for (unsigned i = 0; set->configured && i < hg_gateset_count(set); i++) {
        uint64_t due_us = step(set, hg_gateset_at(set, i), now_us);
        if (due_us < next_us)
            next_us = due_us;
    }
    hg_gateset_resize(set, front, now_us);
    pthread_mutex_unlock(&set->lock);
    return next_us;
}

uint64_t hg_gates_tick(struct hg_process *process, uint64_t now_us)
{
    uint64_t next_us = now_us + LOOK_US;
    pthread_mutex_lock(&process->lock);
    const struct hg_directory *directory = process->directory;
    for (size_t i = 0; i < directory->upstream_count; i++) {
        uint64_t due_us = steps(&process->front, directory->upstreams[i]->gates, now_us);
        if (due_us < next_us)
            next_us = due_us;
    }
    pthread_mutex_unlock(&process->lock);
    return next_us;
}
