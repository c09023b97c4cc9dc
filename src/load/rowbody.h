// rowbody - the bodies of TableAPI and HBase operations, as a load needs them
// SPDX-License-Identifier: BSD-3-Clause
//
// Written by hand from proto/table.proto rather than through protobuf-c: a body is a few constant
// bytes around a value, and what comes back is compared in place. A load's rows have one column
// "v" (cell f:v) with a key's value, or one "n" (f:n) that is counted.
//
// Pure.
#ifndef HG_LOAD_ROWBODY_H
#define HG_LOAD_ROWBODY_H

#include "load/gen.h"

/* More than a body has around its value. */
#define HG_ROWBODY_AROUND 64

/* Writes the body of an operation on rows; its bytes. Room for HG_ROWBODY_AROUND and the value. */
size_t hg_rowbody_encode(enum hg_load_op op, const struct hg_gen_value *value, uint8_t *to);

enum hg_rowbody {
    HG_ROWBODY_RIGHT,  /* what the operation promises */
    HG_ROWBODY_NO_ROW, /* a get: there is none */
    HG_ROWBODY_OTHER,  /* well formed, but not the key's value or no counter */
    HG_ROWBODY_BAD,    /* not a reply of this operation */
};

/* Judges the body of a reply with status 0. */
HG_MUST_USE enum hg_rowbody hg_rowbody_decode(enum hg_load_op op, const struct hg_gen_value *value,
                                              const uint8_t *at, size_t len);

#endif
