// status - what a reply's status means to a load, and where it is counted
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure.
#ifndef HG_LOAD_STATUS_H
#define HG_LOAD_STATUS_H

#include <stdint.h>

#include "load/op.h"

enum hg_load_outcome {
    HG_LOAD_DONE,
    HG_LOAD_MISS,
    HG_LOAD_REFUSED,
    HG_LOAD_OUTCOMES,
    HG_LOAD_WRONG = HG_LOAD_OUTCOMES
};

/* Codes 0..255 and 0xff00..0xffff each have a place, all others share the last. */
#define HG_LOAD_STATUS_SLOTS 513

static inline uint32_t hg_load_status_slot(uint16_t code)
{
    return code < 0x100 ? code : code >= 0xff00 ? 0x100u + (code & 0xff) : 0x200u;
}

/* The code of a slot; HG_LOAD_STATUS_SLOTS - 1 has none and says 0xfeff. */
uint16_t hg_load_status_code(uint32_t slot);

enum hg_load_outcome hg_load_status_means(uint16_t code, enum hg_load_op op);

/* In words, "unknown" for those that are in no list. */
const char *hg_load_status_name(uint16_t code);

#endif
