// showtickets - the part of `status` about overload: tickets, and keys that are throttled for it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_SHOWTICKETS_H
#define HG_CTL_SHOWTICKETS_H

#include "ctl/ctl.h"

/* Of the rows of `stat tickets`: a line for each holder. */
void hg_ctl_print_tickets(const struct hg_ctl_rows *rows);
/* Of the rows of `stat bindthrottle`, behind an empty line: the throttled keys, if there are any;
   those of tenants that `buckets`, a list of objects, says to observe only stand by themselves. */
void hg_ctl_print_binds(const struct hg_ctl_rows *rows, const json_t *buckets);

#endif
