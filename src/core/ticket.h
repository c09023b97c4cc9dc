// ticket - a holder of admission tickets that all workers take from and put back to
// SPDX-License-Identifier: BSD-3-Clause
//
//   take: one compare-and-swap while any is available        put: one addition, and a look at
//                                                             whether somebody waits
//
// The count is one atomic word; who waits is a worker's own affair (ticketline.h). A waiter sets
// its worker's bit, tries once more, then sleeps; a put adds, then names the next worker whose bit
// is set, which is poked and tries for as many as there are. So no wake-up is lost. A poke carries
// no ticket: one that meets nobody who waits is passed on.
//
// `available` may be negative: after the size was lowered (nothing is revoked), or for a slot that
// was taken by force. Then nobody is let in until puts bring it above zero. Size 0 blocks all.
//
// Source: the ticket holders of MongoDB's admission control, by their documented behaviour.
// Lock-free, for up to HG_TICKET_WORKERS workers; any thread.
#ifndef HG_CORE_TICKET_H
#define HG_CORE_TICKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/* Words of 64 bits: one for each worker that a process may have. */
#define HG_TICKET_WORKERS 256
#define HG_TICKET_NOBODY  UINT32_MAX

/* The kinds of execution ticket: reads are operations of the QUERY type, writes all others. */
enum hg_ticket_kind { HG_TICKET_READ, HG_TICKET_WRITE, HG_TICKET_KINDS };

struct hg_ticket {
    _Atomic int64_t available;
    _Atomic int64_t size;
    _Atomic int64_t peak; /* most that were out at a time, since hg_ticket_swap_peak */
    _Atomic uint64_t waiting[HG_TICKET_WORKERS / 64]; /* bit: the worker has waiters */
    _Atomic uint32_t any_waiting;                     /* words that are not zero; a hint */
    _Atomic uint32_t turn;                            /* the worker that was poked last */
} __attribute__((aligned(HG_CACHE_LINE)));

void hg_ticket_init(struct hg_ticket *holder, int64_t size);

/* Takes one if one is available. */
HG_MUST_USE bool hg_ticket_try(struct hg_ticket *holder);

/* The worker has waiters: sets its bit, then tries once more; true: it has got one after all, and
   the bit stays set, which does no harm. */
HG_MUST_USE bool hg_ticket_want(struct hg_ticket *holder, uint32_t worker);
/* The worker has no waiters any more. Then, as it may have been poked for a ticket that is still
   there: the worker to poke in its place, or HG_TICKET_NOBODY. */
uint32_t hg_ticket_leave(struct hg_ticket *holder, uint32_t worker);

/* Gives one back: the worker to poke, or HG_TICKET_NOBODY. It may be the caller itself. */
uint32_t hg_ticket_put(struct hg_ticket *holder);
/* Takes one even if none is available: for what holds a slot whatever the holder says. */
void hg_ticket_force(struct hg_ticket *holder);

/* Changes the size at once; the next worker to poke, or HG_TICKET_NOBODY. Size >= 0. */
uint32_t hg_ticket_resize(struct hg_ticket *holder, int64_t size);
/* The next worker in turn that has waiters, if a ticket is available; else HG_TICKET_NOBODY. For
   one that was poked and leaves tickets over, or was poked in vain. */
uint32_t hg_ticket_next(struct hg_ticket *holder);

static inline int64_t hg_ticket_available(const struct hg_ticket *holder)
{
    return atomic_load_explicit(&((struct hg_ticket *)(uintptr_t)holder)->available,
                                memory_order_relaxed);
}

static inline int64_t hg_ticket_size(const struct hg_ticket *holder)
{
    return atomic_load_explicit(&((struct hg_ticket *)(uintptr_t)holder)->size,
                                memory_order_relaxed);
}

/* How many are out: size - available. */
static inline int64_t hg_ticket_out(const struct hg_ticket *holder)
{
    return hg_ticket_size(holder) - hg_ticket_available(holder);
}

/* The peak of `out` since the last call; from now on it is what is out now. */
int64_t hg_ticket_swap_peak(struct hg_ticket *holder);

#endif
