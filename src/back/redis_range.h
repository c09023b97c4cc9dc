// redis_range - stretches of a table's rows, in order, by one run of a script
// SPDX-License-Identifier: BSD-3-Clause
//
// One range call is one run of the script, bounded in rows and bytes; whoever asked goes on behind
// the row that was looked at last. Rows that are gone are passed over, and pruned, by the script.
// The call's max_us is not looked at: the bounds are small.
#ifndef HG_BACK_REDIS_RANGE_H
#define HG_BACK_REDIS_RANGE_H

#include "back/store.h"

/* The functions of a store that is a hg_redis. */
void hg_redis_range(struct hg_store *store, struct hg_range_call *range);
void hg_redis_cancel_range(struct hg_store *store, struct hg_range_call *range);

#endif
