// liveness - have all threads shown that they live since the last ping of the watchdog?
// SPDX-License-Identifier: BSD-3-Clause
//
// Each thread has a count that grows while it runs. A ping is due when every count has grown since
// the last one: one thread that hangs keeps it back, however busy the others are. Pure.
#ifndef HG_APP_LIVENESS_H
#define HG_APP_LIVENESS_H

#include <stddef.h>
#include <stdint.h>

#define HG_LIVENESS_MAX  80 /* 64 workers, housekeeping, and some to spare */
#define HG_LIVENESS_NONE ((size_t)-1)

struct hg_liveness {
    uint64_t last[HG_LIVENESS_MAX]; /* counts at the last ping */
    size_t count;
};

/* `counts` has `count` entries, at most HG_LIVENESS_MAX. */
void hg_liveness_init(struct hg_liveness *liveness, const uint64_t *counts, size_t count);
/* HG_LIVENESS_NONE: all have grown, and are what the next look compares with. Otherwise the first
   that has not, and nothing has changed. */
size_t hg_liveness_look(struct hg_liveness *liveness, const uint64_t *counts);

#endif
