// status - what a reply's status means to a load, and where it is counted
// SPDX-License-Identifier: BSD-3-Clause
#include "load/status.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

static const struct status_row {
    uint16_t code;
    enum hg_load_outcome outcome;
    const char *name;
} status_rows[] = {
#define LOAD_STATUS(code, printed, meaning) {code, HG_LOAD_##meaning, printed},
#include "load/status.def"
#undef LOAD_STATUS
};

static const struct status_row *find_row(uint16_t code)
{
    for (size_t i = 0; i < HG_COUNT_OF(status_rows); i++) {
        if (status_rows[i].code == code) {
            return &status_rows[i];
        }
    }
    return NULL;
}

uint16_t hg_load_status_code(uint32_t slot)
{
    return slot < 0x100 ? (uint16_t)slot : slot < 0x200 ? (uint16_t)(0xfe00 + slot) : 0xfeff;
}

/* A key that is not there is news of a read, a delete or a touch. "Not stored" is what append says
 * of it, and what a server that degrades answers to any store. A counter is made when it is
 * missing. An insert of a row that is there is as much news as a read of one that is not; what else
 * TableAPI and HBase find missing, they say in the body. */
static bool may_miss(uint16_t code, enum hg_load_op op)
{
    switch (op) {
    case HG_LOAD_GET:
    case HG_LOAD_GAT:
    case HG_LOAD_DELETE:
    case HG_LOAD_TOUCH:
        return code == 0x01;
    case HG_LOAD_SET:
    case HG_LOAD_START:
    case HG_LOAD_APPEND:
        return code == 0x05;
    case HG_LOAD_TABLE_INSERT:
        return code == 0x02;
    default:
        break;
    }
    return false;
}

enum hg_load_outcome hg_load_status_means(uint16_t code, enum hg_load_op op)
{
    const struct status_row *row = find_row(code);
    if (row == NULL) {
        return code >= 0xff00 ? HG_LOAD_REFUSED : HG_LOAD_WRONG;
    }
    if (row->outcome == HG_LOAD_MISS || code == 0x02) {
        return may_miss(code, op) ? HG_LOAD_MISS : HG_LOAD_WRONG;
    }
    return row->outcome;
}

const char *hg_load_status_name(uint16_t code)
{
    const struct status_row *row = find_row(code);
    return row != NULL ? row->name : "unknown";
}
