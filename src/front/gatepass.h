// gatepass - one's way through the gates: the tickets that it has, the line that it waits in
// SPDX-License-Identifier: BSD-3-Clause
//
// A request has one; of a batch of rows each row call has one of its own, since each goes to the
// server of its row. Worker's thread only.
#ifndef HG_FRONT_GATEPASS_H
#define HG_FRONT_GATEPASS_H

#include "base/list.h"
#include "core/keyshare.h"
#include "core/ticketline.h"

struct hg_gate_line;
struct hg_gate_pass;
struct hg_refusal;
struct hg_request;

/* Bits of hg_gate_pass.tickets. */
#define HG_TICKETS_INGRESS 1u
#define HG_TICKETS_READ    2u
#define HG_TICKETS_WRITE   4u
#define HG_TICKETS_EXEMPT  8u  /* needs none */
#define HG_TICKETS_PURSE   16u /* its ingress ticket is one of plenty, from the worker's purse */
#define HG_TICKETS_EXECUTE (HG_TICKETS_READ | HG_TICKETS_WRITE)

/* What becomes of one that waited in line. */
struct hg_gate_owner {
    /* It is out of the line: it asks again, and perhaps has its ticket by then. */
    void (*on_turn)(struct hg_gate_pass *pass);
    /* Its time is over, or there is no room in the line; it has no execution ticket. */
    void (*on_refused)(struct hg_gate_pass *pass, const struct hg_refusal *refusal);
};

struct hg_gate_pass {
    struct hg_ticketline_waiter waiter;
    struct hg_request *request; /* whose it is */
    const struct hg_gate_owner *owner;
    struct hg_gate_line *in_line;       /* that it waits in; else NULL */
    struct hg_gate_line *gate;          /* whose execution ticket it has */
    struct hg_ticketline_tenant *place; /* its tenant's place in that line */
    struct hg_list run;                 /* in its part's list, while it has an execution ticket */
    struct hg_keyshare_part key;        /* of its key's share of that line's tickets */
    uint64_t ticket_us;                 /* has that since */
    uint64_t ingress_us;                /* has its ingress ticket since */
    uint64_t wait_us;                   /* waits since, in this line */
    uint64_t since_us;                  /* waits since, in all lines of servers; 0: it never did */
    uint8_t tickets;                    /* HG_TICKETS_* */
    bool waits_for_key;                 /* its last wait is, or was, for its key's share */
    uint32_t key_len;                   /* of the key that its call names */
};

/* For a new request, or row call. */
static inline void hg_gate_pass_init(struct hg_gate_pass *pass, struct hg_request *request,
                                     const struct hg_gate_owner *owner)
{
    pass->request = request;
    pass->owner = owner;
    pass->in_line = pass->gate = NULL;
    pass->since_us = 0;
    pass->key.key = NULL;
    pass->key.is_engaged = pass->key.is_parked = false;
    pass->tickets = 0;
    pass->waits_for_key = false;
}

#endif
