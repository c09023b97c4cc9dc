// stats_rows - rows that each worker shows of its own, merged into one for each thing
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_STATS_ROWS_H
#define HG_APP_STATS_ROWS_H

#include <stddef.h>

#include "base/attr.h"

struct hg_stats_rows {
    void *rows;
    size_t count, cap, row_bytes;
};

typedef int hg_stats_compare(const void *a, const void *b);

/* Room for one more: where it is to be, counted already; NULL when memory is out. */
HG_MUST_USE void *hg_stats_add(struct hg_stats_rows *list);
/* Rows of the same thing become one, and are then in `order`. same: 0 for rows of the same thing,
   else an order. */
void hg_stats_merge(struct hg_stats_rows *list, hg_stats_compare *same,
                    void (*absorb)(void *into, const void *from), hg_stats_compare *order);

#endif
