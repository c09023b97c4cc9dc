// redis_range - stretches of a table's rows, in order, from the reply of one script
// SPDX-License-Identifier: BSD-3-Clause
//
//   reply   ['1' more, '0' no more] [last] ([row][item])*     each [..] with its length in front
//
// One range call is one run of the script, bounded in rows and bytes; whoever asked goes on behind
// the row that was looked at last. Rows that are gone were passed over, and pruned, by the script.
#ifndef HG_BACK_REDIS_RANGE_H
#define HG_BACK_REDIS_RANGE_H

#include <stdbool.h>

#include "back/store.h"
#include "base/attr.h"
#include "base/span.h"

struct hg_redis_rows {
    bool more;
    struct hg_span last; /* the row that was looked at last; empty: there was none */
    struct hg_span rest; /* for hg_redis_rows_next */
};

/* False when it is no such reply; else all of it can be read. */
HG_MUST_USE bool hg_redis_rows_decode(struct hg_span reply, struct hg_redis_rows *ret);
/* The next row's name and item; false at the end. */
HG_MUST_USE bool hg_redis_rows_next(struct hg_redis_rows *rows, struct hg_span *ret_row,
                                    struct hg_span *ret_item);

/* The functions of a store that is a hg_redis. */
void hg_redis_range(struct hg_store *store, struct hg_range_call *range);
void hg_redis_cancel_range(struct hg_store *store, struct hg_range_call *range);

#endif
