// ticket - a holder of admission tickets that all workers take from and put back to
// SPDX-License-Identifier: BSD-3-Clause
//
// See ticket.h. Why no wake-up is lost. All accesses to `word` and `waiting` that matter are
// sequentially consistent, so they have one order that all threads agree on:
//
//     waiter:  W1 sets its bit        W2 loads the word, finds no ticket, sleeps
//     giver:   G1 changes the word    G2 loads the bits
//
// 1. If W2 comes before G1, then W1 comes before G2: the giver sees the bit, and names some worker.
//    If it comes after, the waiter sees the ticket, or somebody has taken it, who gives it back
//    later and is a giver then. The bit stays set while the worker has waiters, so a second try is
//    as good as the first. Plain release and acquire would not do: they let both loads be old.
// 2. Whom a giver names tries until it finds no ticket (then 1 holds for who gives the next one),
//    or has no waiters left: then it clears its bit, loads the word, and if there is a ticket names
//    another worker whose bit is set. Who sets its bit later than that look tries later too.
// 3. A poke that meets an empty line may be dropped: the worker was named because its bit was seen,
//    and it has cleared it since, hence looked at the word (2) after the ticket was there.
// 4. One poke for many tickets (a size that grew) is enough for the same reason.
//
// On the usual path nothing waits: a take is one locked instruction (and a plain load of the peak),
// a put is one, and the loads of the bits come from the cache line that it has made its own.
#include "core/ticket.h"

#include <assert.h>

#define SIZE_ONE ((uint64_t)1 << 32)

_Static_assert(sizeof(struct hg_ticket) == HG_CACHE_LINE, "a holder is one cache line");

static uint64_t size_word(int64_t size)
{
    if (size < 0)
        size = 0;
    if (size > HG_TICKET_SIZE_MAX)
        size = HG_TICKET_SIZE_MAX;
    return (uint64_t)size * SIZE_ONE;
}

static uint32_t out_of(uint64_t word)
{
    return (uint32_t)word;
}

static bool has_one(uint64_t word)
{
    return out_of(word) < word >> 32;
}

void hg_ticket_init(struct hg_ticket *holder, int64_t size)
{
    atomic_init(&holder->word, size_word(size));
    atomic_init(&holder->peak, 0);
    atomic_init(&holder->waiting, 0);
    atomic_init(&holder->turn, HG_TICKET_WORKERS - 1);
}

void hg_ticket_note_peak(struct hg_ticket *holder, uint32_t out)
{
    uint32_t peak = atomic_load_explicit(&holder->peak, memory_order_relaxed);
    while (out > peak)
        if (atomic_compare_exchange_weak_explicit(&holder->peak, &peak, out, memory_order_relaxed,
                                                  memory_order_relaxed))
            return;
}

void hg_ticket_force(struct hg_ticket *holder)
{
    hg_ticket_note_peak(holder, out_of(atomic_fetch_add(&holder->word, 1)) + 1);
}

/* The next in turn whose bit is set. That the turn is not exact when two look at once does no harm:
   they name the same worker, which takes for both. */
static uint32_t pick(struct hg_ticket *holder)
{
    uint32_t turn = atomic_load_explicit(&holder->turn, memory_order_relaxed);
    uint32_t begin = (turn + 1) % HG_TICKET_WORKERS;
    uint64_t bits = atomic_load(&holder->waiting);
    if (bits == 0)
        return HG_TICKET_NOBODY;
    uint64_t behind = bits & UINT64_MAX << begin;
    uint32_t worker = (uint32_t)__builtin_ctzll(behind != 0 ? behind : bits);
    atomic_store_explicit(&holder->turn, worker, memory_order_relaxed);
    return worker;
}

uint32_t hg_ticket_next(struct hg_ticket *holder)
{
    return has_one(atomic_load(&holder->word)) ? pick(holder) : HG_TICKET_NOBODY;
}

/* Only the worker itself changes its bit, so it need not set or clear it twice. */
static bool bit_is_set(const struct hg_ticket *holder, uint32_t worker)
{
    assert(worker < HG_TICKET_WORKERS);
    return atomic_load_explicit(&((struct hg_ticket *)(uintptr_t)holder)->waiting,
                                memory_order_relaxed) >>
               worker &
           1;
}

bool hg_ticket_try_beyond(struct hg_ticket *holder, uint32_t beyond)
{
    uint64_t word = atomic_load(&holder->word);
    do {
        if ((uint32_t)word >= (word >> 32) + beyond)
            return false;
    } while (!atomic_compare_exchange_weak(&holder->word, &word, word + 1));
    uint32_t out = (uint32_t)word + 1;
    if (out > atomic_load_explicit(&holder->peak, memory_order_relaxed))
        hg_ticket_note_peak(holder, out);
    return true;
}

bool hg_ticket_want(struct hg_ticket *holder, uint32_t worker)
{
    if (!bit_is_set(holder, worker))
        atomic_fetch_or(&holder->waiting, (uint64_t)1 << worker);
    return hg_ticket_try(holder);
}

uint32_t hg_ticket_leave(struct hg_ticket *holder, uint32_t worker)
{
    if (bit_is_set(holder, worker))
        atomic_fetch_and(&holder->waiting, ~((uint64_t)1 << worker));
    return hg_ticket_next(holder);
}

uint32_t hg_ticket_resize(struct hg_ticket *holder, int64_t size)
{
    uint64_t word = atomic_load(&holder->word);
    while (!atomic_compare_exchange_weak(&holder->word, &word, size_word(size) | out_of(word)))
        ;
    return hg_ticket_next(holder);
}

/* Gives `count` back, that are out: the worker to poke. */
static uint32_t put_many(struct hg_ticket *holder, uint32_t count)
{
    uint64_t before = atomic_fetch_sub(&holder->word, count);
    assert(out_of(before) >= count);
    return atomic_load(&holder->waiting) == 0 ? HG_TICKET_NOBODY : hg_ticket_next(holder);
}

bool hg_ticket_purse_fill(struct hg_ticket *holder, struct hg_ticket_purse *purse)
{
    uint64_t word = atomic_load(&holder->word);
    do {
        if (2 * (uint64_t)out_of(word) + HG_TICKET_PLENTY > word >> 32)
            return false;
    } while (!atomic_compare_exchange_weak(&holder->word, &word, word + HG_TICKET_LOT));
    atomic_store_explicit(&purse->kept, hg_ticket_kept(purse) + HG_TICKET_LOT - 1,
                          memory_order_relaxed);
    return true;
}

/* The purse is told first: so what is out and not kept is never thought to be less than none. */
uint32_t hg_ticket_purse_spill(struct hg_ticket *holder, struct hg_ticket_purse *purse)
{
    uint32_t kept = hg_ticket_kept(purse);
    if (kept == 0 || hg_ticket_is_plenty(holder))
        return HG_TICKET_NOBODY;
    atomic_store_explicit(&purse->kept, 0, memory_order_relaxed);
    return put_many(holder, kept);
}

uint32_t hg_ticket_purse_trim(struct hg_ticket *holder, struct hg_ticket_purse *purse)
{
    atomic_store_explicit(&purse->kept, hg_ticket_kept(purse) - HG_TICKET_LOT,
                          memory_order_relaxed);
    return put_many(holder, HG_TICKET_LOT);
}

int64_t hg_ticket_swap_peak(struct hg_ticket *holder)
{
    uint32_t out = out_of(atomic_load(&holder->word));
    uint32_t peak = atomic_exchange(&holder->peak, out);

    // What was taken between the two is in `peak`, and is out still: it counts from now on, too.
    hg_ticket_note_peak(holder, out_of(atomic_load(&holder->word)));
    return peak;
}
