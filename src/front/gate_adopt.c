// gate_adopt - a new directory: who needs no ticket any more, or has to look for another line
// SPDX-License-Identifier: BSD-3-Clause
#include "front/gate_in.h"
#include "front/instance.h"

static void let_all_out(struct hg_ticketline_tenant *tenant, bool with_ticket)
{
    /* Who is let out may get in the same line again, at its end. */
    for (uint32_t n = tenant->count; n > 0 && tenant->count > 0; n--)
        hg_gate_let_out(
            HG_CONTAINER_OF(hg_list_first(&tenant->waiters), struct hg_gate_pass, waiter.node),
            with_ticket);
}

/* All of a tenant's at one server. */
static void let_cells_out(const struct hg_lane *lane, unsigned server, bool with_ticket)
{
    for (unsigned i = 0; i < hg_lane_cell_count(lane, server); i++) {
        struct hg_gate_cell *cell = hg_lane_cell_at(lane, server, i);
        for (unsigned kind = 0; cell != NULL && kind < HG_TICKET_KINDS; kind++)
            let_all_out(&cell->seats[kind].queue, with_ticket);
    }
}

/* Does it wait for what has gone: the tenant needs no ticket any more (*ret_free), or its
   upstream's servers are others? */
static bool is_outdated(const struct hg_worker *worker, const struct hg_lane *lane, bool *ret_free)
{
    const struct hg_upstream *upstream = lane->bucket->upstream;
    *ret_free =
        atomic_load_explicit(&lane->bucket->ticket_mode, memory_order_relaxed) != HG_MODE_ENFORCE;
    return *ret_free || (upstream != NULL && worker->instances[upstream->slot] == NULL);
}

/* Those of them that wait for a key's share. */
static void let_parked_out(struct hg_gate_line *in)
{
    struct hg_list outdated; /* letting one out may change the records */
    bool free;
    hg_list_init(&outdated);
    for (struct hg_keyshare_key *key = NULL; (key = hg_keyshare_each(&in->keys, key)) != NULL;)
        HG_LIST_EACH(node, &key->parked)
        {
            struct hg_gate_pass *pass = HG_CONTAINER_OF(node, struct hg_gate_pass, key.node);
            if (is_outdated(in->worker, pass->request->lane, &free))
                hg_list_append(&outdated, &pass->run); /* it has no ticket */
        }
    for (struct hg_list *node; (node = hg_list_first(&outdated)) != NULL;) {
        struct hg_gate_pass *pass = HG_CONTAINER_OF(node, struct hg_gate_pass, run);
        hg_list_remove(node);
        (void)is_outdated(in->worker, pass->request->lane, &free);
        hg_gate_let_out(pass, free);
    }
}

void hg_gates_adopt(struct hg_worker *worker)
{
    bool ingress = atomic_load_explicit(&worker->front->ingress_enabled, memory_order_relaxed);
    HG_LIST_EACH(node, &worker->lanes_used)
    {
        struct hg_lane *lane = HG_CONTAINER_OF(node, struct hg_lane, used);
        bool free, outdated = is_outdated(worker, lane, &free);
        if (free || !ingress)
            let_all_out(&lane->ingress, true);
        for (unsigned i = 0; outdated && i < lane->cell_count; i++)
            let_cells_out(lane, i, free);
        hg_gate_lane_adopt(lane);
    }
    HG_LIST_EACH(node, &worker->lines_waiting)
    {
        struct hg_gate_line *in = HG_CONTAINER_OF(node, struct hg_gate_line, node);
        if (in->line.parked > 0)
            let_parked_out(in);
    }
}
