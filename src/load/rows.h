// rows - TableAPI and HBase within the binary protocol of a load
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_ROWS_H
#define HG_LOAD_ROWS_H

#include "load/lane.h"

/* Fills the frame of an operation on rows. Nothing is done where the tenant has no table for it. */
void hg_load_rows_prepare(struct hg_load_lane *lane, enum hg_load_op op);

/* Adds the body to a frame that is written already; the request's length. */
size_t hg_load_rows_compose(const struct hg_load_lane *lane, enum hg_load_op op, uint32_t key,
                            uint8_t *to);

/* Checks a reply of status 0 whose header is in order and whose body has its 8 bytes of extras. */
HG_MUST_USE enum hg_load_outcome hg_load_rows_judge(struct hg_load_lane *lane, enum hg_load_op op,
                                                    uint32_t key, const uint8_t *at,
                                                    uint32_t body_bytes);

#endif
