// status - the table of statuses, built from status.def
// SPDX-License-Identifier: BSD-3-Clause
#include "proto/status.h"

enum {
    SUCCESS = HG_STATUS_ATTR_SUCCESS,
    ITEM = HG_STATUS_ATTR_ITEM,
    INPUT = HG_STATUS_ATTR_INPUT,
    STATE = HG_STATUS_ATTR_STATE,
    AUTH = HG_STATUS_ATTR_AUTH,
    SUPPORT = HG_STATUS_ATTR_SUPPORT,
    TEMP = HG_STATUS_ATTR_TEMP,
    INTERNAL = HG_STATUS_ATTR_INTERNAL,
    NOW = HG_STATUS_ATTR_NOW,
    LATER = HG_STATUS_ATTR_LATER,
    RATE = HG_STATUS_ATTR_RATE,
    NORETRY = HG_STATUS_ATTR_NORETRY,
};

const struct hg_status_row hg_status_table[HG_STATUS_ROWS] = {
#define HG_STATUS(code, name, text, meaning, attributes) {code, attributes, #name, text, meaning},
#include "proto/status.def"
#undef HG_STATUS
};

size_t hg_status_index(uint16_t status)
{
    switch (status) {
#define HG_STATUS(code, name, text, meaning, attributes)                                           \
    case code:                                                                                     \
        return HG_STATUS_ROW_##name;
#include "proto/status.def"
#undef HG_STATUS
    default:
        return HG_STATUS_ROWS;
    }
}

const struct hg_status_row *hg_status_row(uint16_t status)
{
    size_t index = hg_status_index(status);
    return index < HG_STATUS_ROWS ? &hg_status_table[index] : NULL;
}

const char *hg_status_text(uint16_t status)
{
    const struct hg_status_row *row = hg_status_row(status);
    return row ? row->text : "unknown status";
}

const char *hg_status_name(uint16_t status)
{
    const struct hg_status_row *row = hg_status_row(status);
    return row ? row->name : "UNKNOWN";
}

const char *hg_status_attribute_name(unsigned bit)
{
    static const char *const names[HG_STATUS_ATTR_COUNT] = {
        "success",   "item-only",   "invalid-input", "conn-state-invalidated",
        "auth",      "support",     "temp",          "internal",
        "retry-now", "retry-later", "rate-limit",    "no-retry",
    };
    return bit < HG_STATUS_ATTR_COUNT ? names[bit] : "";
}
