// op - what a request does to data, whatever protocol asked for it
// SPDX-License-Identifier: BSD-3-Clause
//
// The table is op.def: what an operation costs, and as what kind of hot-key operation it counts.
#ifndef HG_BASE_OP_H
#define HG_BASE_OP_H

#include <stdbool.h>
#include <stdint.h>

enum hg_op {
#define HG_OP(name, printed, reads, writes, api, code, hot) HG_OP_##name,
#include "base/op.def"
#undef HG_OP
    HG_OPS
};

#define HG_OPS_CLASSIC (HG_OP_FLUSH + 1) /* those before it are memcached's */

enum hg_api { HG_API_CLASSIC, HG_API_TABLE, HG_API_HBASE };

/* The hot-key types; every counted operation counts under ALL too. */
enum hg_hot_type {
    HG_HOT_ALL,
    HG_HOT_INSERT,
    HG_HOT_DELETE,
    HG_HOT_UPDATE,
    HG_HOT_QUERY,
    HG_HOT_TYPES,
};

/* How an operation counts: as one of the types of that number, or as one of these. */
enum hg_hot_rule {
    HG_HOT_RULE_INSERT = HG_HOT_INSERT,
    HG_HOT_RULE_DELETE = HG_HOT_DELETE,
    HG_HOT_RULE_UPDATE = HG_HOT_UPDATE,
    HG_HOT_RULE_QUERY = HG_HOT_QUERY,
    HG_HOT_RULE_POINT, /* QUERY when the range is a single row */
    HG_HOT_RULE_ITEMS, /* by its items */
    HG_HOT_RULE_NONE,
};

struct hg_op_row {
    const char *name;
    bool reads;  /* costs read units */
    bool writes; /* costs write units */
    uint8_t api; /* enum hg_api */
    uint8_t code;
    uint8_t hot; /* enum hg_hot_rule */
};

static const struct hg_op_row hg_op_rows[HG_OPS] = {
#define HG_OP(name, printed, reads, writes, api, code, hot)                                        \
    {printed, reads, writes, HG_API_##api, code, HG_HOT_RULE_##hot},
#include "base/op.def"
#undef HG_OP
};

/* "TABLE_HOTKEY_ALL" and so on: the names of the views. */
static inline const char *hg_hot_type_name(enum hg_hot_type type)
{
    static const char *const names[HG_HOT_TYPES] = {
        "TABLE_HOTKEY_ALL",    "TABLE_HOTKEY_INSERT", "TABLE_HOTKEY_DELETE",
        "TABLE_HOTKEY_UPDATE", "TABLE_HOTKEY_QUERY",
    };
    return names[type];
}

/* The operation of TableAPI or HBase with this code, or HG_OPS when there is none. */
static inline enum hg_op hg_op_of_code(enum hg_api api, uint8_t code)
{
    for (unsigned op = HG_OPS_CLASSIC; op < HG_OPS; op++)
        if (hg_op_rows[op].api == api && hg_op_rows[op].code == code)
            return (enum hg_op)op;
    return HG_OPS;
}

#endif
