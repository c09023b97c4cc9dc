// hotsim - the loop of hot keys in virtual time: load, lists, sketches, merge, decision
// SPDX-License-Identifier: BSD-3-Clause
//
// One tenant. A test says how often each key is offered in an epoch; the epoch plays all of these
// requests in a random order, each on a random worker, and ends as housekeeping would end it. What
// was admitted and refused of each key is exact. Keys are numbers, see hothelp.h.
#ifndef HG_TEST_HOTSIM_H
#define HG_TEST_HOTSIM_H

#include "base/prng.h"
#include "core/keylist.h"
#include "core/keythrottle.h"

#define HOTSIM_WORKERS    4
#define HOTSIM_KEYS       100000
#define HOTSIM_NOMINAL_US 2000000

struct hotsim {
    struct hg_keythrottle_settings settings;
    struct hg_keythrottle throttle;
    struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS];
    struct hg_hotkey *sketches[HOTSIM_WORKERS];
    struct hg_keylist *lists[HOTSIM_WORKERS];
    unsigned workers, counters;
    struct hg_prng prng;
    uint32_t epoch; // finished so far
    uint32_t *requests;
    size_t count, room;
    uint32_t hashes[HOTSIM_KEYS];
    uint64_t offered[HOTSIM_KEYS], admitted[HOTSIM_KEYS]; // in the last epoch
};

void hotsim_init(struct hotsim *sim, unsigned workers, enum hg_hotkey_control control,
                 uint64_t threshold, unsigned counters, uint64_t seed);
void hotsim_fini(struct hotsim *sim);

/* `n` requests of key `id` < HOTSIM_KEYS in the epoch that comes. */
void hotsim_offer(struct hotsim *sim, uint32_t id, uint64_t n);
/* Plays an epoch that takes so long, and ends it. */
void hotsim_epoch_of(struct hotsim *sim, uint64_t length_us);
void hotsim_epoch(struct hotsim *sim);

/* Of the decision at the end of the last epoch: -1 when it is not listed. */
int hotsim_percent(const struct hotsim *sim, uint32_t id);
/* A count with this mean that varies as requests do that come by chance. */
uint64_t hotsim_chance(struct hotsim *sim, double mean);

#endif
