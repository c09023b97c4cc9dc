// hotmem - memory of hot-key sketches and lists, under one cap for the process
// SPDX-License-Identifier: BSD-3-Clause
//
// Workers take sketches when they first count something for a tenant, housekeeping takes room for
// what it merges; whoever is done gives back, on any thread. What would pass the cap is refused and
// counted: the caller does with less. Every byte of a sketch, its room for long keys, a list and a
// merged result is counted here.
#ifndef HG_FRONT_HOTMEM_H
#define HG_FRONT_HOTMEM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"
#include "core/hotkey.h"
#include "core/keylist.h"

#define HG_HOT_COUNTERS_SHRUNK 64 /* of a sketch, when memory is scarce */

struct hg_hotmem {
    _Atomic uint64_t cap_bytes;
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t refused;  /* times that something did not fit */
    _Atomic unsigned counters; /* of a sketch of type ALL; the other types have half of it */
};

/* NULL when the cap or memory is out; aligned to a cache line. */
HG_MUST_USE void *hg_hotmem_take(struct hg_hotmem *mem, size_t bytes);
/* NULL is allowed. */
void hg_hotmem_give_back(struct hg_hotmem *mem, void *memory, size_t bytes);

/* A sketch with what surrounds it. */
struct hg_hotsketch {
    struct hg_list node;
    struct hg_hotkey *keys;
    unsigned counters;
    bool no_room; /* there was no memory for its long keys */
    uint8_t memory[] __attribute__((aligned(HG_CACHE_LINE)));
};

/* An empty one, or NULL. */
HG_MUST_USE struct hg_hotsketch *hg_hotsketch_new(struct hg_hotmem *mem, unsigned counters);
void hg_hotsketch_free(struct hg_hotmem *mem, struct hg_hotsketch *sketch);
/* Gives it room for long keys; false: there is no memory, and it is not asked for again until the
   sketch is cleared. */
bool hg_hotsketch_give_room(struct hg_hotmem *mem, struct hg_hotsketch *sketch);
/* Empties it for its next use. */
void hg_hotsketch_clear(struct hg_hotsketch *sketch);

/* A list of throttled keys with what surrounds it. */
struct hg_hotlist {
    struct hg_list node;
    struct hg_keylist *keys;
    size_t bytes;
    uint8_t memory[] __attribute__((aligned(HG_CACHE_LINE)));
};

HG_MUST_USE struct hg_hotlist *hg_hotlist_new(struct hg_hotmem *mem,
                                              const struct hg_keythrottle *throttle,
                                              enum hg_hotkey_control control, uint32_t start);
void hg_hotlist_free(struct hg_hotmem *mem, struct hg_hotlist *list);

#endif
