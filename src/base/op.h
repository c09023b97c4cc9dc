// op - what a data request does to one key, whatever protocol asked for it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BASE_OP_H
#define HG_BASE_OP_H

#include <stdbool.h>

enum hg_op {
#define HG_OP(name, printed, reads, writes) HG_OP_##name,
#include "base/op.def"
#undef HG_OP
    HG_OPS
};

struct hg_op_row {
    const char *name;
    bool reads;  /* costs read units */
    bool writes; /* costs write units */
};

static const struct hg_op_row hg_op_rows[HG_OPS] = {
#define HG_OP(name, printed, reads, writes) {printed, reads, writes},
#include "base/op.def"
#undef HG_OP
};

#endif
