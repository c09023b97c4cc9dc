// gate_window - what the windows of tenants in a line depend on
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gate_in.h"

/* What the workers know of each other's tenants. */
static void tell_workers(struct hg_gate_line *in)
{
    struct hg_gate_worker *workers = in->holder->workers, *own = &workers[in->worker->index];
    struct hg_linework_classes classes = hg_linework_tell(&in->work, in->worker->loop.now_us);
    struct hg_linework_classes others = HG_LINEWORK_NO_CLASSES;
    uint64_t sole = hg_ticketline_sole(&in->line);
    hg_counter_set(&own->sole, sole);
    hg_counter_set(&own->shortest_us, classes.shortest_us);
    hg_counter_set(&own->over_us, classes.over_us);
    hg_counter_set(&own->has_new, classes.has_new);
    hg_counter_set(&own->has_long, classes.has_long);
    in->line.windows.has_others = false;
    for (struct hg_gate_worker *of = workers; of < workers + in->holder->worker_count; of++) {
        uint64_t other = hg_counter_get(&of->sole);
        if (of == own || other == 0)
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
    if (windows->vain)
        hg_linework_forgive(&in->work);
    windows->vain = false;
    hg_linework_tick(&in->work, in->worker->loop.now_us);
    tell_workers(in);
    windows->least = least == 0 || part > 0 ? part : 1;
    windows->no_queue = hg_linework_explains(&in->work, in->line.out);
    windows->part = (uint32_t)(in->work.slots / hg_ticketline_active(&in->line));
    windows->over_us = hg_linework_over_us(&in->work, in->worker->loop.now_us);
    hg_counter_set(&in->holder->workers[in->worker->index].mix,
                   in->work.has_long ? HG_PROBE_MIXED
                   : hg_ticketline_holds_unknown(&in->line, in->worker->loop.now_us)
                       ? HG_PROBE_FRESH
                       : HG_PROBE_ALIKE);
}
