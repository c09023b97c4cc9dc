// units - what a request costs: bytes in, read and write units out
// SPDX-License-Identifier: BSD-3-Clause
//
// A read unit is `read_bytes` (4096), a write unit `write_bytes` (1024) of key + value, rounded up.
// A unit size of 0 makes that side free. Whatever reached a store costs at least 1 unit on each
// side it touched, found or not (free misses made noisy neighbours). A counter, a delete and a
// touch are 1 write unit; an operation that reads and writes costs both. Sums saturate.
//
// Pure. Facts: Couchbase, Settings::calcUnits.
#ifndef HG_CORE_UNITS_H
#define HG_CORE_UNITS_H

#include <stdint.h>

enum hg_units_kind {
    HG_UNITS_NONE,  // touches no item: noop, stat, administration
    HG_UNITS_READ,  // get
    HG_UNITS_WRITE, // set, delete, counter, touch
    HG_UNITS_BOTH,  // get-and-touch, append, table mutations
};

struct hg_unit_sizes {
    uint32_t read_bytes;  // 0: reads are free
    uint32_t write_bytes; // 0: writes are free
};

#define HG_UNIT_SIZES_DEFAULT ((struct hg_unit_sizes){4096, 1024})

struct hg_units {
    uint32_t read;
    uint32_t write;
};

/* The sum of two counts, UINT32_MAX if it does not fit. */
static inline uint32_t hg_units_add(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* Bytes as units of `unit_bytes`: rounded up, at least 1, but 0 when the unit size is 0. */
static inline uint32_t hg_units_of(uint64_t bytes, uint32_t unit_bytes)
{
    uint64_t units;
    if (unit_bytes == 0)
        return 0;
    units = bytes / unit_bytes + (bytes % unit_bytes != 0);
    if (units == 0)
        return 1;
    return units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
}

/*
 * What an operation of `kind` costs that reached a store, having read and written so many bytes
 * (key + value; 0 where nothing was found, and for deletes, counters and touches). The side that
 * `kind` does not touch stays 0, whatever its bytes.
 */
static inline struct hg_units hg_units_cost(struct hg_unit_sizes sizes, enum hg_units_kind kind,
                                            uint64_t bytes_read, uint64_t bytes_written)
{
    struct hg_units cost = {0, 0};
    if (kind == HG_UNITS_READ || kind == HG_UNITS_BOTH)
        cost.read = hg_units_of(bytes_read, sizes.read_bytes);
    if (kind == HG_UNITS_WRITE || kind == HG_UNITS_BOTH)
        cost.write = hg_units_of(bytes_written, sizes.write_bytes);
    return cost;
}

/* Both sides together: what the credits are charged. */
static inline uint32_t hg_units_total(struct hg_units cost)
{
    return hg_units_add(cost.read, cost.write);
}

#endif
