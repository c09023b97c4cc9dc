// keythrottle - which keys of a tenant are refused, and how many of their requests
// SPDX-License-Identifier: BSD-3-Clause
//
//   merged sketches of four epochs + refusals ──► hg_keythrottle_epoch ──► list for the workers
//
// `step` is OceanBase's rule: the mean of four epochs' admitted counts above the threshold T adds
// 10 percent, below 0.7 T takes 10 away, between them nothing changes; missing epochs are 0, so
// that a new key is listed at once only above 4 T. Counts are lower bounds (count - error), so that
// a guess never punishes a cold key.
//
// `proportional` refuses the share 1 - T / offered of the last epoch's offered requests: it settles
// in two epochs. Offered are a key's refusals and what was admitted; a listed key's admissions are
// known from the workers' lists, which see each of its requests, within the bounds of the sketch
// (which alone would lose sight of a key that is throttled to less than the sketch's error).
// Offered is smoothed: what differs by no more than chance is averaged, a rise is followed at once,
// a fall when a second epoch confirms it, so that a key that comes every other epoch stays
// throttled. A key leaves when its share is 0 and it was below T for two epochs.
//
// Counts are scaled from the measured length of their epoch to its nominal one, by 2 at most: a
// shorter epoch is too short to tell. Pure: one tenant's state, memory from the caller.
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
    uint8_t percent;     /* of its requests that are refused, rounded for `proportional` */
    uint8_t below;       /* `proportional`: epochs in a row with T or less offered, at most 2 */
    bool falling;        /* `proportional`: less was offered than is believed */
    uint16_t head, link; /* index by hash, see keythrottle.c */
    uint32_t share;      /* of its requests that are refused, in parts of 2^32; UINT32_MAX: all */
    double offered;      /* an epoch; `proportional`: smoothed */
    uint64_t passed_epoch, refused_epoch; /* told since the last epoch's end */
    uint64_t refused;                     /* since it was listed */
    uint64_t mean;                        /* admitted an epoch, of the last decision */
};

/* Zero it at its start. A list never outgrows its room, nor HG_KEYTHROTTLE_KEYS: beyond, the
   coolest key leaves for a hotter one. An epoch adds HG_HOT_TOP keys at most, so a caller that
   grows the room does so when less than that is left. */
struct hg_keythrottle {
    struct hg_keythrottle_key *keys;
    unsigned count, room;
    unsigned indexed; /* keys in the index */
};

/* Moves the list to a larger array (of `room` keys, at least as many as are listed), and returns
   the one it was in, or NULL, for the caller to free. */
struct hg_keythrottle_key *hg_keythrottle_give_room(struct hg_keythrottle *throttle,
                                                    struct hg_keythrottle_key *keys, unsigned room);

/* Requests of a listed key that a worker let pass and that it refused, told before the epoch's
   decision; an unlisted key is ignored. */
void hg_keythrottle_tell(struct hg_keythrottle *throttle, const struct hg_hotkey_key *key,
                         uint64_t passed, uint64_t refused);

/* One finished epoch as the decision sees it: the merged sketch of type ALL, and how long the epoch
   really took (0: as long as it should); merged NULL: no epoch, or none with requests. */
struct hg_keythrottle_span {
    const struct hg_hotmerge *merged;
    uint64_t length_us;
};

/* Decides at the end of an epoch: spans[0] is the one that has just ended. Candidates are its top
   HG_HOT_TOP and every listed key. With a threshold of 0 the list is emptied. */
void hg_keythrottle_epoch(struct hg_keythrottle *throttle,
                          const struct hg_keythrottle_settings *settings,
                          const struct hg_keythrottle_span spans[HG_KEYTHROTTLE_EPOCHS],
                          uint64_t nominal_us);

/* NULL when it is not listed. */
const struct hg_keythrottle_key *hg_keythrottle_find(const struct hg_keythrottle *throttle,
                                                     const struct hg_hotkey_key *key);

#endif
