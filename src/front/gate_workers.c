// gate_workers - what the workers know of each other's lines: tenants, windows, whose turn it is
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gate_in.h"

/* ---- turns ---- */

/* Where the lowest tag waits. The bits and tags of others may be of a moment ago: then a ticket
   goes to a worker that has waiters, too. `named`: one of those. */
uint32_t hg_gate_next_worker(const struct hg_gate_line *in, uint32_t named)
{
    const struct hg_gate_holder *holder = in->holder;
    if (holder->worker_count == 1)
        return named;
    uint64_t bits = hg_ticket_waiting(&holder->ticket);
    uint64_t lowest_us = hg_counter_get(&holder->workers[named].lowest_us);
    for (; bits != 0; bits &= bits - 1) {
        uint32_t worker = (uint32_t)__builtin_ctzll(bits);
        uint64_t tag_us = hg_counter_get(&holder->workers[worker].lowest_us);
        if (tag_us >= lowest_us)
            continue;
        named = worker;
        lowest_us = tag_us;
    }
    return named;
}

void hg_gate_tell_turn(struct hg_gate_line *in)
{
    struct hg_gate_holder *holder = in->holder;
    if (holder->worker_count == 1)
        return;
    uint64_t served_us = atomic_load_explicit(&holder->served_us, memory_order_relaxed);
    if (in->line.served_us > served_us)
        atomic_store_explicit(&holder->served_us, in->line.served_us, memory_order_relaxed);
    else
        hg_ticketline_note_served(&in->line, served_us);
    hg_counter_set(&holder->workers[in->worker->index].lowest_us,
                   hg_ticketline_lowest_us(&in->line, in->worker->loop.now_us));
}

/* ---- windows ---- */

/* What the workers know of each other's tenants. */
static void tell_workers(struct hg_gate_line *in)
{
    struct hg_gate_worker *workers = in->holder->workers, *own = &workers[in->worker->index];
    struct hg_linework_classes classes = hg_linework_tell(&in->work, in->worker->loop.now_us);
    struct hg_linework_classes others = HG_LINEWORK_NO_CLASSES;
    uint64_t sole = hg_ticketline_sole(&in->line), rounds = 0, forgiven = 0;
    hg_counter_set(&own->sole, sole);
    hg_counter_set(&own->shortest_us, classes.shortest_us);
    hg_counter_set(&own->over_us, classes.over_us);
    hg_counter_set(&own->has_new, classes.has_new);
    hg_counter_set(&own->has_long, classes.has_long);
    hg_counter_set(&own->rounds, in->line.rounds);
    in->line.windows.has_others = false;
    for (struct hg_gate_worker *of = workers; of < workers + in->holder->worker_count; of++) {
        uint64_t other = hg_counter_get(&of->sole);
        if (of == own)
            continue;
        rounds += hg_counter_get(&of->rounds);
        forgiven += hg_counter_get(&of->forgiven);
        if (other == 0)
            continue;
        in->line.windows.has_others |= other != sole;
        classes = (struct hg_linework_classes){
            .shortest_us = (uint32_t)hg_counter_get(&of->shortest_us),
            .over_us = (uint32_t)hg_counter_get(&of->over_us),
            .has_new = hg_counter_get(&of->has_new) != 0,
            .has_long = hg_counter_get(&of->has_long) != 0,
        };
        hg_linework_add(&others, &classes);
    }
    hg_linework_hear(&in->work, &others);
    if (rounds != in->rounds_elsewhere && !hg_linework_has_short(&in->work))
        hg_ticketline_grow(&in->line, in->worker->loop.now_us);
    if (forgiven != in->forgiven_elsewhere && !in->work.own.has_long)
        hg_linework_forgive(&in->work);
    in->rounds_elsewhere = rounds;
    in->forgiven_elsewhere = forgiven;
    in->held_elsewhere =
        atomic_load_explicit(&in->holder->held, memory_order_relaxed) > (int64_t)in->held;
}

void hg_gate_tell_nothing(struct hg_gate_line *in)
{
    hg_counter_set(&in->holder->workers[in->worker->index].sole, 0);
}

void hg_gate_tick_windows(struct hg_gate_line *in)
{
    struct hg_ticketline_windows *windows = &in->line.windows;
    unsigned least = atomic_load_explicit(&in->holder->tenant_window, memory_order_relaxed);
    unsigned part = least / in->holder->worker_count;
    if (windows->vain) {
        hg_linework_forgive(&in->work);
        hg_counter_add(&in->holder->workers[in->worker->index].forgiven, 1);
    }
    windows->vain = false;
    hg_linework_tick(&in->work, in->worker->loop.now_us);
    tell_workers(in);
    windows->least = least == 0 || part > 0 ? part : 1;
    windows->newcomer = in->holder->worker_count > 1 ? 1 : 2;
    windows->no_queue = hg_linework_explains(&in->work, in->line.out);
    windows->part = (uint32_t)(in->work.slots / hg_ticketline_active(&in->line));
    windows->over_us = hg_linework_over_us(&in->work, in->worker->loop.now_us);
    hg_counter_set(&in->holder->workers[in->worker->index].mix,
                   in->work.has_long ? HG_PROBE_MIXED
                   : hg_ticketline_holds_unknown(&in->line, in->worker->loop.now_us)
                       ? HG_PROBE_FRESH
                       : HG_PROBE_ALIKE);
}
