// workclass - what requests of one kind usually take, so that unlike ones can be added up as work
// SPDX-License-Identifier: BSD-3-Clause
//
// A store that serves 300 requests of 2 ms and 80 of 200 ms a second does 16.6 seconds of work in a
// second. When half of the short ones stay away it does nearly as much, though it finishes 40 %
// less; who counts requests takes that for a loss. So a finished request counts as what its class
// usually takes: the class is a tenant's requests of one kind at one server.
//
// The usual is the mean of WINDOW services, at first. It falls with each window that took less, and
// rises by a hundredth a second, only while nobody waits: services that are longer under load are
// the store's queue, and no work. A usual that is off by some factor does no harm as long as it
// stays: what is compared is work at one time with work at another.
//
// Pure.
#ifndef HG_CORE_WORKCLASS_H
#define HG_CORE_WORKCLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

#define HG_WORKCLASS_WINDOW 32 /* services */

/* Zeroed at first. */
struct hg_workclass {
    uint32_t usual_us;  /* 0: not known */
    uint32_t count;     /* services of this window, */
    uint64_t sum_us;    /* and their sum */
    uint64_t looked_us; /* end of the window before */
    bool waited;        /* somebody waited for a ticket in this window */
};

/* The window is full. */
void hg_workclass_look(struct hg_workclass *class, uint64_t now_us);

/* A request took so long: the work that it was, in microseconds, at least 1. `waits`: somebody
   waits for a ticket now. */
static inline uint32_t hg_workclass_note(struct hg_workclass *class, uint64_t service_us,
                                         bool waits, uint64_t now_us)
{
    uint32_t work_us = class->usual_us;
    class->sum_us += service_us;
    class->waited |= waits;
    if (HG_UNLIKELY(work_us == 0)) {
        uint32_t most = UINT32_MAX / 2;
        work_us = service_us == 0 ? 1 : service_us < most ? (uint32_t)service_us : most;
    }
    if (HG_UNLIKELY(++class->count >= HG_WORKCLASS_WINDOW))
        hg_workclass_look(class, now_us);
    return work_us;
}

#endif
