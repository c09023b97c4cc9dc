// gate_party - who takes turns at a server: a tenant, or its users or client addresses
// SPDX-License-Identifier: BSD-3-Clause
//
//   lane ─► cell of the server                        fair_by tenant: its seats
//             └ parties: cell, cell, ...              fair_by user, address: those of the party
//
// A party is a share of a tenant's clients: those whose user names, or addresses, have the same
// hash modulo HG_GATE_PARTIES. So memory is bounded whoever comes, and two users may happen to be
// one party, and take turns, have a window and flood together. A party counts for a line as a
// tenant does.
//
// The path of each request looks only at the `part` of the server's own cell. Where parties are
// told apart that is 0, which no part has as its number, so each request comes to
// hg_gate_cell_slow, and nobody else pays for it. `home` says which part the seats are really in.
// What has a ticket or waits when fair_by changes stays where it is until it ends.
#include <netinet/in.h>
#include <stdlib.h>

#include "front/gate_in.h"

_Static_assert(HG_GATE_PARTIES == 64, "hash_of leaves 6 bits");
_Static_assert(sizeof(struct hg_bucket) > HG_GATE_PARTIES, "see id_of");

/* FNV-1a, of which the upper bits are mixed best after a multiplication. */
static uint8_t hash_of(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 16777619u;
    return (uint8_t)((hash * 0x9e3779b1u) >> 26);
}

/* Without the port, which is another one for each connection. */
static uint8_t hash_of_address(const struct hg_addr *addr)
{
    if (addr->sa.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)&addr->sa;
        return hash_of(&in->sin_addr, sizeof in->sin_addr);
    }
    if (addr->sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)&addr->sa;
        return hash_of(&in->sin6_addr, sizeof in->sin6_addr);
    }
    return 0; /* all clients of unix sockets are on this machine */
}

static unsigned party_of(struct hg_session *session, enum hg_fair_by fair_by)
{
    if (session->party_by == fair_by)
        return session->party;
    const char *name = session->user_name != NULL ? session->user_name : "";
    session->party_by = (uint8_t)fair_by;
    session->party =
        fair_by == HG_FAIR_BY_USER ? hash_of(name, strlen(name)) : hash_of_address(&session->peer);
    return session->party;
}

/* The cell of the party at a server, made if there is none; NULL when memory is out. */
static struct hg_gate_cell *party_cell(struct hg_lane *lane, struct hg_gate_cell *own,
                                       unsigned party)
{
    if (own->parties == NULL)
        own->parties = calloc(HG_GATE_PARTIES, sizeof *own->parties);
    if (own->parties == NULL)
        return NULL;
    if (own->parties[party] == NULL) {
        own->parties[party] = hg_gate_cell_new();
        hg_counter_add(&lane->fair_parties, own->parties[party] != NULL);
    }
    return own->parties[party];
}

/* The same on all workers. A bucket is larger than there are parties. */
static uint64_t id_of(const struct hg_request *request, enum hg_fair_by fair_by)
{
    unsigned party = fair_by != HG_FAIR_BY_TENANT ? 1 + party_of(request->session, fair_by) : 0;
    return (uintptr_t)request->lane->bucket + party;
}

struct hg_gate_cell *hg_gate_cell_slow(const struct hg_request *request,
                                       const struct hg_gate_part *part)
{
    struct hg_lane *lane = request->lane;
    enum hg_fair_by fair_by = (enum hg_fair_by)lane->fair_by;
    struct hg_gate_cell *cell = hg_lane_cell(lane, part->index);
    if (cell != NULL && fair_by != HG_FAIR_BY_TENANT)
        cell = party_cell(lane, cell, party_of(request->session, fair_by));
    if (cell == NULL)
        return NULL;
    /* The part whose lines it was in has gone: nobody of it waited or had a ticket. */
    for (unsigned kind = 0; cell->home != part->number && kind < HG_TICKET_KINDS; kind++) {
        hg_ticketline_tenant_init(&cell->seats[kind].queue);
        cell->seats[kind].queue.id = id_of(request, fair_by);
        cell->seats[kind].usual = (struct hg_keyshare_tenant){0};
        cell->seats[kind].work = (struct hg_workclass){0};
        cell->seats[kind].flood = (struct hg_flood_count){0};
    }
    cell->home = part->number;
    if (fair_by == HG_FAIR_BY_TENANT)
        cell->part = cell->home;
    return cell;
}

void hg_gate_lane_adopt(struct hg_lane *lane)
{
    int fair_by = atomic_load_explicit(&lane->bucket->fair_by, memory_order_relaxed);
    if (HG_LIKELY(lane->fair_by == fair_by))
        return;
    lane->fair_by = (uint8_t)fair_by;
    for (unsigned i = 0; i < lane->cell_count; i++)
        if (lane->cells[i] != NULL)
            lane->cells[i]->part = 0;
}
