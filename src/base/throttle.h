// throttle - what is throttled: its begin and its end as events, and how many there are now
// SPDX-License-Identifier: BSD-3-Clause
//
// When they are told is decided by whoever sees them (core/notice, core/throttling): each begin has
// its end, so what is in force is what the log and the ring of events say. Any thread.
#ifndef HG_BASE_THROTTLE_H
#define HG_BASE_THROTTLE_H

#include "base/event.h"

enum hg_throttle {
#define HG_THROTTLE(NAME, printed, text) HG_THROTTLE_##NAME,
#include "base/throttle.def"
#undef HG_THROTTLE
    HG_THROTTLES
};

/* Of a server, or of an upstream without servers: "". */
struct hg_throttle_place {
    const char *upstream, *server;
};

/* Makes the event of a begin, "warn throttle-begin what=... upstream=... server=...", and counts
   it; the caller adds fields, and tells it. */
void hg_throttle_begin(struct hg_event *event, enum hg_throttle what,
                       const struct hg_throttle_place *place);
/* The same of its end, "info throttle-end ...". */
void hg_throttle_end(struct hg_event *event, enum hg_throttle what,
                     const struct hg_throttle_place *place);
/* Those that have begun and not ended. */
uint64_t hg_throttle_now(enum hg_throttle what);
/* "tickets", "key-share" */
const char *hg_throttle_name(enum hg_throttle what);

#endif
