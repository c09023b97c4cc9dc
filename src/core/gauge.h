// gauge - units used in a slot, in one word with the number of the slot
// SPDX-License-Identifier: BSD-3-Clause
//
//   63        40 39                 0
//   | slot  24 | units            40 |
//
// Whoever comes first in a slot rolls the word by compare-and-swap, so no charge falls between two
// slots. Units saturate. A word is never idle for 2^23 slots (4.8 days at 50 ms), since each tick
// rolls every gauge: "newer" and "older" are well defined. Any thread; pure.
#ifndef HG_CORE_GAUGE_H
#define HG_CORE_GAUGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HG_GAUGE_SLOTS     ((uint32_t)1 << 24)
#define HG_GAUGE_UNITS_MAX (((uint64_t)1 << 40) - 1)

struct hg_gauge {
    _Atomic uint64_t word;
};

static inline uint64_t hg_gauge_word(uint32_t slot, uint64_t units)
{
    return (uint64_t)slot << 40 | (units > HG_GAUGE_UNITS_MAX ? HG_GAUGE_UNITS_MAX : units);
}

static inline uint32_t hg_gauge_slot(uint64_t word)
{
    return (uint32_t)(word >> 40);
}

static inline uint64_t hg_gauge_units(uint64_t word)
{
    return word & HG_GAUGE_UNITS_MAX;
}

/* How many slots `slot` is ahead of the word; negative when the word is newer. */
static inline int32_t hg_gauge_lag(uint64_t word, uint32_t slot)
{
    return (int32_t)((slot - hg_gauge_slot(word)) << 8) >> 8;
}

/* The word as it stands at the beginning of `slot`, `lag` slots later: what is beyond limit * lag
 * is still owed when debt is carried, else nothing is. */
static inline uint64_t hg_gauge_rolled(uint64_t word, uint32_t slot, uint64_t limit, bool carries)
{
    uint64_t units = hg_gauge_units(word);
    uint64_t lag = (uint64_t)hg_gauge_lag(word, slot);
    if (!carries || limit >= units || limit > units / lag)
        return hg_gauge_word(slot, 0);
    return hg_gauge_word(slot, units - limit * lag);
}

#endif
