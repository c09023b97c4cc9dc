// hotrows - the rows of a tenant's epoch, from its sketches to what the views show
// SPDX-License-Identifier: BSD-3-Clause
//
// Rows are collected before the epoch's decision, since it resets what was refused, and get their
// percents after it; then they are copied to a record, which is one block of memory.
#ifndef HG_APP_HOTROWS_H
#define HG_APP_HOTROWS_H

#include "base/op.h"
#include "core/hotmerge.h"
#include "core/keythrottle.h"
#include "front/hotmem.h"

#define HG_HOTROWS_MAX (HG_HOT_TYPES * HG_HOT_TOP + HG_KEYTHROTTLE_KEYS)

/* One line of the views. */
struct hg_hotrow {
    const uint8_t *key; /* the table's name, then the row key */
    uint8_t len, table_len;
    uint8_t type;    /* enum hg_hot_type */
    uint8_t percent; /* refused, as decided at the end of the epoch */
    uint64_t freq, error, rejected;
};

/* What is kept of a tenant's finished epoch; one block of memory. */
struct hg_hotrecord {
    uint64_t epoch; /* 0: none */
    uint64_t end_wall_s;
    size_t bytes;
    unsigned count;
    struct hg_hotrow rows[];
};

/* Rows while they are collected. */
struct hg_hotbuild {
    struct hg_hotrow rows[HG_HOTROWS_MAX];
    uint32_t hashes[HG_HOTROWS_MAX]; /* of the keys */
    unsigned count;
    unsigned tops, listed; /* rows[tops .. listed) are listed keys that are not among ALL's top */
    size_t key_bytes;
    uint8_t bytes[HG_HOTROWS_MAX * HG_HOTKEY_KEY_MAX];
};

void hg_hotbuild_begin(struct hg_hotbuild *build);
/* The first HG_HOT_TOP of `merged` (NULL: none). ALL's come first, */
void hg_hotbuild_add_top(struct hg_hotbuild *build, const struct hg_keythrottle *throttle,
                         enum hg_hot_type type, const struct hg_hotmerge *merged);
/* then the listed keys that are not among them, then the other types'. */
void hg_hotbuild_add_listed(struct hg_hotbuild *build, const struct hg_keythrottle *throttle,
                            const struct hg_hotmerge *merged);
/* The rows' percents, now that they are decided. Keys that have left the list, and that there is
   nothing else to say of, leave the rows. */
void hg_hotbuild_set_percents(struct hg_hotbuild *build, const struct hg_keythrottle *throttle);
/* A copy, whose epoch is for the caller to set; NULL when memory is out. It is given back to `mem`
   by its `bytes`. */
HG_MUST_USE struct hg_hotrecord *hg_hotbuild_record(const struct hg_hotbuild *build,
                                                    struct hg_hotmem *mem);

#endif
