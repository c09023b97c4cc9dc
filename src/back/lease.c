// lease - the connections that a server allows, lent to the workers of the process in units
// SPDX-License-Identifier: BSD-3-Clause
#include "back/lease.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ONE_UNIT ((uint64_t)1 << 32)
#define ONE_HELD ((uint64_t)1)

static uint32_t units_in(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t held_in(uint64_t word)
{
    return (uint32_t)word;
}

static uint64_t word_of(const struct hg_lease_part *part)
{
    return atomic_load_explicit(&part->word, memory_order_relaxed);
}

/* Whoever gets a unit comes after whoever let it go, his close() included. */
static bool change(struct hg_lease_part *part, uint64_t *was, uint64_t is)
{
    return atomic_compare_exchange_weak_explicit(&part->word, was, is, memory_order_acq_rel,
                                                 memory_order_relaxed);
}

static bool may_have(const struct hg_lease *lease, uint32_t worker)
{
    uint32_t owner = hg_lease_owner(lease);
    return owner == HG_LEASEPLAN_NOBODY || owner == worker;
}

int hg_lease_init(struct hg_lease *lease, uint32_t limit, uint32_t workers)
{
    assert(workers > 0 && workers <= HG_LEASEPLAN_WORKERS_MAX);
    lease->parts = aligned_alloc(HG_CACHE_LINE, workers * sizeof *lease->parts);
    if (lease->parts == NULL)
        return -ENOMEM;
    memset(lease->parts, 0, workers * sizeof *lease->parts);
    lease->limit = limit;
    lease->count = workers;
    atomic_init(&lease->unowned, limit);
    atomic_init(&lease->owner, HG_LEASEPLAN_NOBODY);
    return 0;
}

void hg_lease_fini(struct hg_lease *lease)
{
    free(lease->parts);
    lease->parts = NULL;
}

/* Takes up to `want` units that nobody has, so that `leave` stay; how many. */
static uint32_t take_unowned(struct hg_lease *lease, uint32_t want, uint32_t leave)
{
    uint32_t was = atomic_load_explicit(&lease->unowned, memory_order_relaxed), n;
    do {
        n = was > leave ? was - leave : 0;
        if (n > want)
            n = want;
        if (n == 0)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&lease->unowned, &was, was - n,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return n;
}

static void put_unowned(struct hg_lease *lease, uint32_t n)
{
    atomic_fetch_add_explicit(&lease->unowned, n, memory_order_acq_rel);
}

static void add_units(struct hg_lease_part *part, uint32_t n)
{
    atomic_fetch_add_explicit(&part->word, n * ONE_UNIT, memory_order_acq_rel);
}

/* Takes up to `want` units that the worker does not use; how many. */
static uint32_t take_spare(struct hg_lease_part *part, uint32_t want)
{
    uint64_t was = word_of(part);
    uint32_t n;
    do {
        n = units_in(was) - held_in(was);
        if (n > want)
            n = want;
        if (n == 0)
            return 0;
    } while (!change(part, &was, was - n * ONE_UNIT));
    return n;
}

void hg_lease_open(struct hg_lease *lease, uint32_t worker, uint64_t now_us)
{
    struct hg_lease_part *part = &lease->parts[worker];
    assert(word_of(part) == 0);
    part->yield = part->least = 0;
    part->planned_us = now_us;
    atomic_store_explicit(&part->idle, 0, memory_order_relaxed);
    atomic_store_explicit(&part->wanted, 0, memory_order_relaxed);
    atomic_store_explicit(&part->life, HG_LEASEPLAN_ALIVE, memory_order_relaxed);
    uint32_t owner = hg_lease_owner(lease), want = 0;
    if (owner == HG_LEASEPLAN_NOBODY)
        want = hg_leaseplan_part(lease->limit, lease->count, worker);
    else if (owner == worker)
        want = lease->limit;
    add_units(part, take_unowned(lease, want, 0));
}

void hg_lease_close(struct hg_lease *lease, uint32_t worker)
{
    struct hg_lease_part *part = &lease->parts[worker];
    assert(held_in(word_of(part)) == 0);
    atomic_store_explicit(&part->wanted, 0, memory_order_relaxed);
    atomic_store_explicit(&part->life, HG_LEASEPLAN_GONE, memory_order_relaxed);
    uint64_t was = atomic_exchange_explicit(&part->word, 0, memory_order_acq_rel);
    put_unowned(lease, units_in(was));
}

/* Workers that have not begun and are kept a unit each. */
static uint32_t count_unborn(const struct hg_lease *lease)
{
    uint32_t n = 0;
    if (hg_lease_owner(lease) != HG_LEASEPLAN_NOBODY)
        return 0;
    for (uint32_t w = 0; w < lease->count; w++)
        n += atomic_load_explicit(&lease->parts[w].life, memory_order_relaxed) ==
             HG_LEASEPLAN_UNBORN;
    return n;
}

/* All units are held. Below its even part a worker need not wait for a plan. */
static bool take_at_once(struct hg_lease *lease, uint32_t worker)
{
    struct hg_lease_part *part = &lease->parts[worker];
    uint32_t part_units = hg_lease_owner(lease) == worker
                              ? lease->limit
                              : hg_leaseplan_part(lease->limit, lease->count, worker);
    if (part->yield > 0 || !may_have(lease, worker) || units_in(word_of(part)) >= part_units)
        return false;
    if (take_unowned(lease, 1, count_unborn(lease)) == 0)
        return false;
    atomic_fetch_add_explicit(&part->word, ONE_UNIT + ONE_HELD, memory_order_acq_rel);
    return true;
}

bool hg_lease_take(struct hg_lease *lease, uint32_t worker)
{
    struct hg_lease_part *part = &lease->parts[worker];
    uint64_t was = word_of(part);
    do {
        if (!may_have(lease, worker) || held_in(was) + part->yield >= units_in(was))
            return take_at_once(lease, worker);
    } while (!change(part, &was, was + ONE_HELD));
    return true;
}

void hg_lease_put(struct hg_lease *lease, uint32_t worker)
{
    struct hg_lease_part *part = &lease->parts[worker];
    bool gone = part->yield > 0 || !may_have(lease, worker);
    uint64_t was = word_of(part), is;
    do {
        assert(held_in(was) > 0);
        is = was - ONE_HELD - (gone ? ONE_UNIT : 0);
    } while (!change(part, &was, is));
    if (!gone)
        return;
    part->yield -= part->yield > 0;
    put_unowned(lease, 1);
}

uint32_t hg_lease_capacity(const struct hg_lease *lease, uint32_t worker)
{
    const struct hg_lease_part *part = &lease->parts[worker];
    uint32_t units = hg_lease_units(lease, worker);
    return units > part->yield && may_have(lease, worker) ? units - part->yield : 0;
}

/* Everybody as seen now. Others may change meanwhile, which costs a move at worst: what is taken
   is taken by compare-and-swap. */
static void look(const struct hg_lease *lease, struct hg_leaseplan_worker *workers)
{
    for (uint32_t w = 0; w < lease->count; w++) {
        const struct hg_lease_part *part = &lease->parts[w];
        uint64_t word = word_of(part);
        workers[w] = (struct hg_leaseplan_worker){
            .life = (enum hg_leaseplan_life)atomic_load_explicit(&part->life, memory_order_relaxed),
            .units = units_in(word),
            .held = held_in(word),
            .idle = atomic_load_explicit(&part->idle, memory_order_relaxed),
            .wanted = atomic_load_explicit(&part->wanted, memory_order_relaxed),
        };
    }
}

static void plan(struct hg_lease *lease, uint32_t me, uint32_t wanted)
{
    struct hg_leaseplan_worker workers[HG_LEASEPLAN_WORKERS_MAX];
    struct hg_leaseplan plan;
    struct hg_lease_part *part = &lease->parts[me];
    look(lease, workers);
    workers[me].wanted = wanted; /* as of now: what is unused may be taken at once */
    hg_leaseplan_fill(workers, lease->count, lease->limit, hg_lease_owner(lease));
    hg_leaseplan_decide(workers, lease->count,
                        atomic_load_explicit(&lease->unowned, memory_order_relaxed), me, &plan);
    part->yield = plan.yield;
    uint32_t got = take_unowned(lease, plan.take, count_unborn(lease));
    for (uint32_t w = 0; w < lease->count; w++)
        got += plan.from[w] > 0 ? take_spare(&lease->parts[w], plan.from[w]) : 0;
    if (got > 0)
        add_units(part, got);
}

bool hg_lease_tick(struct hg_lease *lease, uint32_t worker, uint32_t wanted, uint32_t idle,
                   uint64_t now_us)
{
    struct hg_lease_part *part = &lease->parts[worker];
    if (wanted < part->least)
        part->least = wanted;
    if (now_us - part->planned_us >= HG_LEASE_PLAN_US) {
        part->planned_us = now_us;
        /* For its sake others close connections only if it lasts. */
        atomic_store_explicit(&part->wanted, part->least, memory_order_relaxed);
        atomic_store_explicit(&part->idle, idle, memory_order_relaxed);
        part->least = wanted;
        plan(lease, worker, wanted);
    }
    return wanted > 0 || part->yield > 0;
}

void hg_lease_claim(struct hg_lease *lease, uint32_t owner)
{
    uint32_t was = HG_LEASEPLAN_NOBODY;
    (void)atomic_compare_exchange_strong_explicit(&lease->owner, &was, owner, memory_order_relaxed,
                                                  memory_order_relaxed);
}

void hg_lease_unclaim(struct hg_lease *lease, uint32_t owner)
{
    (void)atomic_compare_exchange_strong_explicit(&lease->owner, &owner, HG_LEASEPLAN_NOBODY,
                                                  memory_order_relaxed, memory_order_relaxed);
}
