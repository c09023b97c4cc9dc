// showtickets - the part of `status` about overload: tickets, and keys that are throttled for it
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_SHOWTICKETS_H
#define HG_CTL_SHOWTICKETS_H

#include <stdbool.h>

#include "ctl/ctl.h"

/* Of the rows of `stat tickets`: a line for each holder. */
void hg_ctl_print_tickets(const struct hg_ctl_rows *rows);
/* Of the rows of `stat bindthrottle`, behind an empty line: the throttled keys, if there are any;
   those of tenants that `buckets`, a list of objects, says to observe only stand by themselves. */
void hg_ctl_print_binds(const struct hg_ctl_rows *rows, const json_t *buckets);

/* What is known of a server in the last second; 0: nothing was answered, or the server of
   headgatectl does not say. */
struct hg_ctl_server_load {
    bool is_known, is_silent;
    double slow_factor; /* 0: it is not slow */
    double p50_us, p99_us, usual_us, wait_p99_us;
    double out, size, line; /* tickets, and requests in line for one, of both kinds */
    double refused_per_s;
    const char *reason; /* of most of these */
};

/* From the statistics `tickets`, by the names of the upstream and its address; the reason points
   into the rows. */
void hg_ctl_server_load(const struct hg_ctl_rows *rows, const char *upstream, const char *address,
                        struct hg_ctl_server_load *ret);

#endif
