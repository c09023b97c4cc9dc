// ticket - a holder of admission tickets that all workers take from and put back to
// SPDX-License-Identifier: BSD-3-Clause
//
//   take: one compare-and-swap while any is available        put: one subtraction, and a look at
//                                                             whether somebody waits
//
// Size and number of tickets out are one atomic word; who waits is a worker's own affair
// (ticketline.h). A waiter sets its worker's bit, tries once more, then sleeps; a put adds, then
// names the next worker whose bit is set, which is poked and tries for as many as there are. So no
// wake-up is lost. A poke carries no ticket; who has no waiters any more passes on what is there.
//
// `available` may be negative: after the size was lowered (nothing is revoked), or for a slot that
// was taken by force. Then nobody is let in until puts bring it above zero. Size 0 blocks all.
//
// The driver's duties, for each worker with a line for this holder:
//
//     serve:    answer who is late (hg_ticketline_expire, until NULL);
//               while the line is not empty and hg_ticket_want: pop one and run it;
//               if the line is empty: poke whom hg_ticket_leave names
//     arrival:  if the line is empty and hg_ticket_try: run it
//               else if the queue is full, or not hg_ticketline_admit: refuse it
//               else push it, serve
//     poked:    serve, if the line is not empty (when it became so, hg_ticket_leave passed it on)
//     end:      poke whom hg_ticket_put names
//     the line changed otherwise (late, client gone): if it is empty, poke whom hg_ticket_leave
//               names
//     resize:   poke whom hg_ticket_resize names
//
// With each ticket hg_ticketline_take, with each end hg_ticketline_give tells the tenant's line.
// To poke is to have that worker serve soon, from its loop (the caller too, if it is named); pokes
// of one worker and holder may be merged as long as it serves after the last one. The queue's bound
// is the driver's: only it knows how many wait on all workers.
//
// Purses. Where there are plenty, and nobody can soon have to wait, a worker takes them in lots and
// keeps some at hand, so that most of its takes and puts touch nothing that others write. What it
// keeps counts as out. The driver's duties: it takes from the purse only if its line is empty, puts
// back there what came from there, and spills it now and then.
//
// Source: the ticket holders of MongoDB's admission control, by their documented behaviour.
// Lock-free, for up to HG_TICKET_WORKERS workers; any thread.
#ifndef HG_CORE_TICKET_H
#define HG_CORE_TICKET_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/* One bit for each worker that a process may have. */
#define HG_TICKET_WORKERS  64
#define HG_TICKET_NOBODY   UINT32_MAX
#define HG_TICKET_SIZE_MAX INT32_MAX

/* The kinds of execution ticket: reads are operations of the QUERY type, writes all others. */
enum hg_ticket_kind { HG_TICKET_READ, HG_TICKET_WRITE, HG_TICKET_KINDS };

/* One cache line: who changes the word has the bits at hand. */
struct hg_ticket {
    _Atomic uint64_t word;    /* size 32, out 32 */
    _Atomic uint32_t peak;    /* most that were out at a time, since hg_ticket_swap_peak */
    _Atomic uint64_t waiting; /* bit: the worker has waiters */
    _Atomic uint32_t turn;    /* the worker that was named last */
} __attribute__((aligned(HG_CACHE_LINE)));

/* Sizes are 0 to HG_TICKET_SIZE_MAX; what is beyond counts as that. */
void hg_ticket_init(struct hg_ticket *holder, int64_t size);

/* There is a new peak: no peak gets lost, but one that is reached just while hg_ticket_swap_peak
   runs may count after it. */
void hg_ticket_note_peak(struct hg_ticket *holder, uint32_t out);

/* Takes one if one is available. */
HG_MUST_USE static inline bool hg_ticket_try(struct hg_ticket *holder)
{
    uint64_t word = atomic_load(&holder->word);
    do {
        if (HG_UNLIKELY((uint32_t)word >= word >> 32))
            return false;
    } while (!atomic_compare_exchange_weak(&holder->word, &word, word + 1));
    uint32_t out = (uint32_t)word + 1;
    if (HG_UNLIKELY(out > atomic_load_explicit(&holder->peak, memory_order_relaxed)))
        hg_ticket_note_peak(holder, out);
    return true;
}

/* Takes one though all are out, while no more than `beyond` more are. */
HG_MUST_USE bool hg_ticket_try_beyond(struct hg_ticket *holder, uint32_t beyond);
/* The worker has waiters: sets its bit, then tries once more; true: it has got one after all, and
   the bit stays set, which does no harm. The bit stays until hg_ticket_leave. */
HG_MUST_USE bool hg_ticket_want(struct hg_ticket *holder, uint32_t worker);
/* The worker has no waiters any more. Then, as it may have been poked for a ticket that is still
   there: the worker to poke in its place, or HG_TICKET_NOBODY. */
HG_MUST_USE uint32_t hg_ticket_leave(struct hg_ticket *holder, uint32_t worker);

/* The next worker in turn that has waiters, if a ticket is available; else HG_TICKET_NOBODY. For
   one that was poked and leaves tickets over. */
HG_MUST_USE uint32_t hg_ticket_next(struct hg_ticket *holder);

/* Gives one back, that is out: the worker to poke, or HG_TICKET_NOBODY. It may be the caller
   itself. */
HG_MUST_USE static inline uint32_t hg_ticket_put(struct hg_ticket *holder)
{
    uint64_t before = atomic_fetch_sub(&holder->word, 1);
    assert((uint32_t)before != 0);
    return HG_LIKELY(atomic_load(&holder->waiting) == 0) ? HG_TICKET_NOBODY
                                                         : hg_ticket_next(holder);
}
/* Takes one even if none is available: for what holds a slot whatever the holder says. */
void hg_ticket_force(struct hg_ticket *holder);

/* Changes the size at once; the next worker to poke, or HG_TICKET_NOBODY. */
HG_MUST_USE uint32_t hg_ticket_resize(struct hg_ticket *holder, int64_t size);
static inline uint64_t hg_ticket_word(const struct hg_ticket *holder)
{
    return atomic_load_explicit(&((struct hg_ticket *)(uintptr_t)holder)->word,
                                memory_order_relaxed);
}

/* Size less out, both of the same moment. */
static inline int64_t hg_ticket_available(const struct hg_ticket *holder)
{
    uint64_t word = hg_ticket_word(holder);
    return (int64_t)(word >> 32) - (int64_t)(uint32_t)word;
}

static inline int64_t hg_ticket_size(const struct hg_ticket *holder)
{
    return (int64_t)(hg_ticket_word(holder) >> 32);
}

/* How many are out, those taken by force too. */
static inline int64_t hg_ticket_out(const struct hg_ticket *holder)
{
    return (int64_t)(uint32_t)hg_ticket_word(holder);
}

/* Bit: the worker has waiters, or had just now. */
static inline uint64_t hg_ticket_waiting(const struct hg_ticket *holder)
{
    return atomic_load_explicit(&((struct hg_ticket *)(uintptr_t)holder)->waiting,
                                memory_order_relaxed);
}

/* ---- purses ---- */

#define HG_TICKET_PLENTY 65536 /* free tickets besides as many as are out: nobody can soon wait */
#define HG_TICKET_LOT    32

/* Written by its worker only; zeroed at first. */
struct hg_ticket_purse {
    _Atomic uint32_t kept;
};

static inline bool hg_ticket_is_plenty(const struct hg_ticket *holder)
{
    uint64_t word = hg_ticket_word(holder);
    return 2 * (word & UINT32_MAX) + HG_TICKET_PLENTY <= word >> 32;
}

static inline uint32_t hg_ticket_kept(const struct hg_ticket_purse *purse)
{
    return atomic_load_explicit(&((struct hg_ticket_purse *)(uintptr_t)purse)->kept,
                                memory_order_relaxed);
}

/* Takes a lot of a holder that has plenty, and one of these; for hg_ticket_purse_try. */
HG_MUST_USE bool hg_ticket_purse_fill(struct hg_ticket *holder, struct hg_ticket_purse *purse);
/* Gives back what is in the purse if the holder has no longer plenty: the worker to poke, or
   HG_TICKET_NOBODY. */
HG_MUST_USE uint32_t hg_ticket_purse_spill(struct hg_ticket *holder, struct hg_ticket_purse *purse);
/* Gives a lot back; for hg_ticket_purse_put. */
HG_MUST_USE uint32_t hg_ticket_purse_trim(struct hg_ticket *holder, struct hg_ticket_purse *purse);

/* Takes one if the holder has plenty. */
HG_MUST_USE static inline bool hg_ticket_purse_try(struct hg_ticket *holder,
                                                   struct hg_ticket_purse *purse)
{
    uint32_t kept = hg_ticket_kept(purse);
    if (HG_UNLIKELY(!hg_ticket_is_plenty(holder)))
        return false;
    if (HG_UNLIKELY(kept == 0))
        return hg_ticket_purse_fill(holder, purse);
    atomic_store_explicit(&purse->kept, kept - 1, memory_order_relaxed);
    return true;
}

/* Puts back one that came from it: the worker to poke, or HG_TICKET_NOBODY. */
HG_MUST_USE static inline uint32_t hg_ticket_purse_put(struct hg_ticket *holder,
                                                       struct hg_ticket_purse *purse)
{
    uint32_t kept = hg_ticket_kept(purse) + 1;
    atomic_store_explicit(&purse->kept, kept, memory_order_relaxed);
    return HG_LIKELY(kept <= 2 * HG_TICKET_LOT) ? HG_TICKET_NOBODY
                                                : hg_ticket_purse_trim(holder, purse);
}

/* The peak of `out` since the last call; from now on it is what is out now. */
HG_MUST_USE int64_t hg_ticket_swap_peak(struct hg_ticket *holder);

#endif
