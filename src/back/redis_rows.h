// redis_rows - the reply to a stretch of rows, as the script packs it
// SPDX-License-Identifier: BSD-3-Clause
//
//   ['1' more, '0' no more] [last] ([row][item])*     each [..] with its length in front, u32
//
// Pure.
#ifndef HG_BACK_REDIS_ROWS_H
#define HG_BACK_REDIS_ROWS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/span.h"

#define HG_REDIS_ROW_MAX 512 /* bytes of a row's name */

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

#endif
