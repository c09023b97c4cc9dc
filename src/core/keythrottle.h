// keythrottle - which keys of a tenant are refused, and how many of their requests
// SPDX-License-Identifier: BSD-3-Clause
//
//   merged sketches of four epochs + refusals ──► hg_keythrottle_epoch ──► list for the workers
//
// `step` is OceanBase's rule: the mean of four epochs' admitted counts above the threshold T adds
// 10 percent, below 0.7 T takes 10 away, between them nothing changes; missing epochs are 0, so
// that a new key is listed at once only above 4 T. `proportional` refuses the share 1 - T / offered
// of the last epoch's offered requests (admitted and refused), smoothed: it settles in two epochs.
// Counts are lower bounds (count - error), so that a guess never punishes a cold key, and are
// scaled from the measured length of their epoch to its nominal one. Pure: one tenant's state,
// memory from the caller.
#ifndef HG_CORE_KEYTHROTTLE_H
#define HG_CORE_KEYTHROTTLE_H

#include "core/hotmerge.h"

#define HG_KEYTHROTTLE_KEYS   1024 /* listed at most; the coolest leaves */
#define HG_KEYTHROTTLE_EPOCHS 4    /* the mean is over so many */
#define HG_KEYTHROTTLE_STEP   10   /* percent */

enum hg_hotkey_control { HG_HOTKEY_STEP, HG_HOTKEY_PROPORTIONAL };

struct hg_keythrottle_settings {
    uint64_t threshold; /* T: operations an epoch; 0: nothing is throttled */
    enum hg_hotkey_control control;
};

/* A listed key. */
struct hg_keythrottle_key {
    struct hg_hotkey_key key; /* `at` points to `bytes` */
    uint8_t bytes[HG_HOTKEY_KEY_MAX];
    uint8_t percent;        /* of its requests that are refused, rounded for `proportional` */
    uint32_t share;         /* the same in parts of 2^32; UINT32_MAX: all */
    double offered;         /* `proportional`: smoothed, an epoch */
    uint64_t refused_epoch; /* told since the last epoch's end */
    uint64_t refused;       /* since it was listed */
    uint64_t mean;          /* of the last decision */
};

/* Zero it at its start. The caller gives `keys` with room for `room` of them, and may give more
   later (copying them); hg_keythrottle_epoch lists no more than there is room for. */
struct hg_keythrottle {
    struct hg_keythrottle_key *keys;
    unsigned count, room;
};

/* Refusals of a listed key by a worker, told before the epoch's decision; an unlisted key is
   ignored. */
void hg_keythrottle_tell_refused(struct hg_keythrottle *throttle, const struct hg_hotkey_key *key,
                                 uint64_t refused);

/* One finished epoch as the decision sees it: the merged sketch of type ALL, and how long the epoch
   really took; merged NULL: no epoch, or none with requests. */
struct hg_keythrottle_span {
    const struct hg_hotmerge *merged;
    uint64_t length_us;
};

/* Decides at the end of an epoch: spans[0] is the one that has just ended. With a threshold of 0
   the list is emptied. */
void hg_keythrottle_epoch(struct hg_keythrottle *throttle,
                          const struct hg_keythrottle_settings *settings,
                          const struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS],
                          uint64_t nominal_us);

/* NULL when it is not listed. */
const struct hg_keythrottle_key *hg_keythrottle_find(const struct hg_keythrottle *throttle,
                                                     const struct hg_hotkey_key *key);

#endif
