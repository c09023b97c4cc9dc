// status - every status, its texts, and what a client should make of it
// SPDX-License-Identifier: BSD-3-Clause
//
// The table is status.def; the error map, the manual and the statistics by status come from it.
// Rows are addressed by index (0 to HG_STATUS_ROWS - 1) where something is counted by status.
// Pure.
#ifndef HG_PROTO_STATUS_H
#define HG_PROTO_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hg_status {
#define HG_STATUS(code, name, text, meaning, attributes) HG_STATUS_##name = code,
#include "proto/status.def"
#undef HG_STATUS
};

enum {
#define HG_STATUS(code, name, text, meaning, attributes) HG_STATUS_ROW_##name,
#include "proto/status.def"
#undef HG_STATUS
    HG_STATUS_ROWS
};

enum hg_status_attribute {
    HG_STATUS_ATTR_SUCCESS = 1 << 0,
    HG_STATUS_ATTR_ITEM = 1 << 1,
    HG_STATUS_ATTR_INPUT = 1 << 2,
    HG_STATUS_ATTR_STATE = 1 << 3,
    HG_STATUS_ATTR_AUTH = 1 << 4,
    HG_STATUS_ATTR_SUPPORT = 1 << 5,
    HG_STATUS_ATTR_TEMP = 1 << 6,
    HG_STATUS_ATTR_INTERNAL = 1 << 7,
    HG_STATUS_ATTR_NOW = 1 << 8,
    HG_STATUS_ATTR_LATER = 1 << 9,
    HG_STATUS_ATTR_RATE = 1 << 10,
    HG_STATUS_ATTR_NORETRY = 1 << 11,
    HG_STATUS_ATTR_COUNT = 12,
};

struct hg_status_row {
    uint16_t code;
    uint16_t attributes; // set of enum hg_status_attribute
    const char *name;    // in the error map: "KEY_ENOENT"
    const char *text;    // default body of a reply: "Not found"
    const char *meaning; // a sentence for the error map and the manual
};

extern const struct hg_status_row hg_status_table[HG_STATUS_ROWS];

/* The row of a status; NULL when it is none of ours (a backend may say anything). */
const struct hg_status_row *hg_status_row(uint16_t status);

/* The index of a status in the table; HG_STATUS_ROWS when it is none of ours. */
size_t hg_status_index(uint16_t status);

/* The default body and the name; "unknown status" and "UNKNOWN" when it is none of ours. */
const char *hg_status_text(uint16_t status);
const char *hg_status_name(uint16_t status);

/* No error: 0x00 and 0x21. */
static inline bool hg_status_is_success(uint16_t status)
{
    return status == HG_STATUS_SUCCESS || status == HG_STATUS_AUTH_CONTINUE;
}

/* The name of attribute number `bit` (0 to HG_STATUS_ATTR_COUNT - 1) in the error map. */
const char *hg_status_attribute_name(unsigned bit);

#endif
