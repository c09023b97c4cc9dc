// outcome - what a row operation makes of its row
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TABLE_OUTCOME_H
#define HG_TABLE_OUTCOME_H

#include "proto/rowdoc.h"

enum hg_row_act {
    HG_ROW_KEEP,  /* nothing changes */
    HG_ROW_STORE, /* outcome.row replaces what is there */
    HG_ROW_REMOVE /* the row goes away */
};

/* Spans point into the old row, the operation, or the arena. When memory is out, the status is
   HG_STATUS_ENOMEM and the act KEEP. */
struct hg_row_outcome {
    enum hg_row_act act;
    struct hg_row row;
    struct hg_row_result result;
};

#endif
