// serverslow - is a server slow, compared with its siblings or with what it usually takes?
// SPDX-License-Identifier: BSD-3-Clause
//
// It is when the median of what its requests take is `factor` times that of its siblings' medians,
// and 5 ms more, for 2 s; and no longer when it has been below half of both for 5 s. A server that
// is alone, or none of whose siblings answers, is compared with its usual: the median, which falls
// by a quarter of the difference with each look, and rises by one percent a second. So a server
// that is alone and stays slow is usual after some minutes. Pure.
#ifndef HG_CORE_SERVERSLOW_H
#define HG_CORE_SERVERSLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HG_SERVERSLOW_LOOK_US 1000000 /* medians are of so long */
#define HG_SERVERSLOW_MORE_US 5000
#define HG_SERVERSLOW_RISE_US 2000000
#define HG_SERVERSLOW_FALL_US 5000000

/* Zeroed: nothing is known of it. */
struct hg_serverslow {
    bool is_slow;
    uint64_t looked_us;
    uint64_t over_us, calm_us; /* for how long it has been over the limit, or below half of it */
    uint64_t p50_us;           /* as of the last look; 0: nothing was answered */
    uint64_t usual_us;         /* 0: not known */
    uint64_t against_us;       /* what it was compared with; 0: with nothing */
};

/* After each HG_SERVERSLOW_LOOK_US. p50_us: the median since the last look; or the age of the
   oldest request, when nothing was answered though something is under way; 0: nothing was.
   siblings_us: the median of the others' medians; 0: there is none. `factor` 0: none is slow. */
void hg_serverslow_look(struct hg_serverslow *server, uint64_t p50_us, uint64_t siblings_us,
                        unsigned factor, uint64_t now_us);
/* How many times what it is compared with it takes; 0: it is not known. */
double hg_serverslow_factor(const struct hg_serverslow *server);
/* The median of `sorted` (ascending) without one that equals `own`; 0 when there is no other. */
uint64_t hg_serverslow_median_of_others(const uint64_t *sorted, size_t count, uint64_t own);

#endif
