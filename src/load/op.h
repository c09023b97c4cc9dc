// op - the operations that a mix is made of
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_OP_H
#define HG_LOAD_OP_H

#include <stdint.h>

enum hg_load_op {
#define LOAD_OP(name, ...) HG_LOAD_##name,
#include "load/op.def"
#undef LOAD_OP
    HG_LOAD_OPS
};

struct hg_load_op_info {
    const char *name;
    uint8_t opcode;
    char space;
    uint8_t in_text;
    uint8_t operation; /* of TableAPI or HBase */
};

extern const struct hg_load_op_info hg_load_op_table[HG_LOAD_OPS];

static inline int hg_load_op_is_row(enum hg_load_op op)
{
    return op >= HG_LOAD_TABLE_GET;
}

static inline int hg_load_op_is_hbase(enum hg_load_op op)
{
    return op >= HG_LOAD_HBASE_PUT;
}

#endif
