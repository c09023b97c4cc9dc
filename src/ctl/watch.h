// watch - what is shown again and again
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_WATCH_H
#define HG_CTL_WATCH_H

#include "ctl/ctl.h"

/* Calls `show` for each of the server's epochs of hot keys, or every `interval_us` if that is not
   0, until it fails or the program is interrupted, which is a good end. On a terminal, and not with
   --json, the screen is cleared in between. An exit code. */
HG_MUST_USE int hg_ctl_watch(struct hg_ctl *ctl, uint64_t interval_us,
                             int (*show)(struct hg_ctl *ctl, void *ctx), void *ctx);

/* The same every `interval_us`, with nothing cleared: for what adds lines to those that are there.
 */
HG_MUST_USE int hg_ctl_follow(struct hg_ctl *ctl, uint64_t interval_us,
                              int (*show)(struct hg_ctl *ctl, void *ctx), void *ctx);

#endif
