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
    uint64_t answered = 0, service_us = 0;
    int64_t waiting = atomic_load_explicit(&holder->waiting, memory_order_relaxed);
    for (unsigned w = 0; w < holder->worker_count; w++) {
        const struct hg_gate_worker *of = &holder->workers[w];
        uint64_t queue_us = hg_counter_get(&of->queue_min_us);
        answered += hg_counter_get(&of->tally.answered);
        service_us += hg_counter_get(&of->tally.processing_us);
        if (queue_us > seen.queue_min_us)
            seen.queue_min_us = queue_us;
    }
    /* Less than before: somebody sets the counters to 0 just now. */
    if (answered > holder->seen_answered && service_us >= holder->seen_service_us) {
        seen.finished = answered - holder->seen_answered;
        seen.service_us = service_us - holder->seen_service_us;
    }
    seen.waiting = waiting > 0 ? (uint64_t)waiting : 0;
    holder->seen_answered = answered;
    holder->seen_service_us = service_us;
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

static void resize(struct hg_front *front, struct hg_gateshare *share)
{
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        struct hg_ticket *ticket = &share->holders[kind].ticket;
        if (hg_ticket_size(ticket) == (int64_t)share->probe.size[kind])
            continue;
        uint32_t poke = hg_ticket_resize(ticket, share->probe.size[kind]);
        if (front->workers != NULL)
            hg_gate_poke(front, poke);
    }
}

/* Under lock: options that are new. */
static void take_over(struct hg_gateshare *share, uint64_t now_us)
{
    if (!share->begun) {
        share->begun = true;
        share->stepped_us = now_us;
        hg_probe_init(&share->probe, &share->wanted);
    } else if (share->changed) {
        hg_probe_configure(&share->probe, &share->wanted);
    }
    share->changed = false;
}

static bool is_same(const struct hg_probe_conf *a, const struct hg_probe_conf *b)
{
    return a->control == b->control && a->interval_us == b->interval_us &&
           a->read_tickets == b->read_tickets && a->write_tickets == b->write_tickets &&
           a->initial == b->initial && a->cores == b->cores && a->min == b->min &&
           a->max == b->max && a->read_write_ratio == b->read_write_ratio &&
           a->weight == b->weight && a->step == b->step;
}

void hg_gates_configure(struct hg_front *front, struct hg_gateshare *share,
                        const struct hg_probe_conf *wanted, uint64_t now_us)
{
    pthread_mutex_lock(&share->lock);
    if (!share->begun || !is_same(&share->wanted, wanted)) {
        share->wanted = *wanted;
        share->changed = true;
        take_over(share, now_us);
        resize(front, share);
    }
    pthread_mutex_unlock(&share->lock);
}

/* When the next step is due. */
static uint64_t step(struct hg_process *process, struct hg_gateshare *share, uint64_t now_us)
{
    pthread_mutex_lock(&share->lock);
    take_over(share, now_us);
    uint64_t due_us = share->stepped_us + share->wanted.interval_us;
    if (now_us >= due_us) {
        struct hg_probe_seen seen = {.now_us = now_us, .oldest_us = oldest_us(share, now_us)};
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
            seen.holder[kind] = see(&share->holders[kind]);
        hg_probe_step(&share->probe, &seen);
        share->stepped_us = now_us;
        due_us = now_us + share->wanted.interval_us;
    }
    resize(&process->front, share);
    pthread_mutex_unlock(&share->lock);
    return due_us;
}

uint64_t hg_gates_tick(struct hg_process *process, uint64_t now_us)
{
    uint64_t next_us = now_us + LOOK_US;
    pthread_mutex_lock(&process->lock);
    const struct hg_directory *directory = process->directory;
    for (size_t i = 0; i < directory->upstream_count; i++) {
        uint64_t due_us = step(process, directory->upstreams[i]->gate, now_us);
        if (due_us < next_us)
            next_us = due_us;
    }
    pthread_mutex_unlock(&process->lock);
    return next_us;
}
