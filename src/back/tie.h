// tie - what a call has with its store beyond a slot: bytes to say it again, and who waits for it
// SPDX-License-Identifier: BSD-3-Clause
//
//   submit ─► kept? ─► sent ─► "not here, ask there" ─► sent again, from the kept bytes
//                        │
//                        └► answered ─► the call that was tied to it gets its on_room
//
// A server may answer that it did not carry out a request and that it should be said again (no such
// script, MOVED, ASK ...). For those the spans of a call, which hold only during submit, are copied
// (large values are referenced), and the call points to the copies until it is answered. A call of
// the same client for the same key must not be sent before, or a repetition would change their
// order: it is tied to the earlier one and asked to come again when that is answered.
//
// Whoever answers or forgets a call of a remote store says so with hg_tie_end, which is cheap for
// calls that have no tie. Belongs to the worker's thread.
#ifndef HG_BACK_TIE_H
#define HG_BACK_TIE_H

#include <stdbool.h>
#include <stdint.h>

#include "back/hub.h"
#include "back/store.h"
#include "base/attr.h"
#include "base/slab.h"

struct hg_tie {
    struct hg_ties *ties;
    struct hg_call *call;
    struct hg_blob *bytes;  /* copy of prefix, key and a small value; NULL: nothing is kept */
    struct hg_blob *value;  /* referenced, of a large one */
    struct hg_call *before; /* waits for this one */
    struct hg_call *behind; /* waits for us */
    uint32_t again;         /* times that it was said again, */
    uint32_t waits;         /* and that it was let wait as its keys were on their way */
    /* Of a call that is on its way once more: */
    void (*on_room)(struct hg_call *call); /* the caller's, who knows of no waiting any more, and
                                              which the call gets back at its end; NULL: not yet */
    uint64_t since_us;                     /* when it was first sent away */
    uint32_t server;                       /* where it goes; UINT32_MAX: to the owner ... */
    bool asking;                           /* ... and is let in after ASKING only */
    struct hg_list node;                   /* in ties->ready */
};

/* Of a worker's store. */
struct hg_ties {
    struct hg_hub *hub;
    struct hg_slab slab;
    struct hg_list ready; /* by hg_tie.node: may come again at the end of the turn */
    struct hg_hub_wake wake;
};

void hg_ties_init(struct hg_ties *ties, struct hg_hub *hub);
/* Lets those that may come again do so now, until there are none: what is submitted must be
   refused. */
void hg_ties_settle(struct hg_ties *ties);
/* When no call is tied any more. */
void hg_ties_fini(struct hg_ties *ties);

/* Copies what `call` points to and lets it point to the copies; nothing to do if that was done.
   False when memory is out. */
HG_MUST_USE bool hg_tie_keep(struct hg_ties *ties, struct hg_call *call);

/* Lets go of the bytes of a call that waits for another: it is submitted once more. */
void hg_tie_unkeep(struct hg_call *call);

/* `call` waits until `before` is answered or forgotten, and then gets its on_room: for submit to
   answer HG_SUBMIT_WAIT. At most one call waits for another. False when memory is out. */
HG_MUST_USE bool hg_tie_behind(struct hg_ties *ties, struct hg_call *call, struct hg_call *before);

/* Does the call wait for another, or is about to come again? Then hg_tie_cancel takes it out. */
bool hg_tie_waits(const struct hg_call *call);
void hg_tie_cancel(struct hg_call *call);

void hg_tie_end_slow(struct hg_call *call);

/* The call is about to be answered, or is forgotten: what it had is let go. */
static inline void hg_tie_end(struct hg_call *call)
{
    if (HG_UNLIKELY(call->place.tie != NULL))
        hg_tie_end_slow(call);
}

#endif
