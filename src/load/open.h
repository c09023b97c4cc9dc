// open - the open loop of a lane: requests that are due, those that wait, those that are not sent
// SPDX-License-Identifier: BSD-3-Clause
//
//     arrivals ---> waits (bounded) ---> a connection with room ---> answered, or not
//              `--> shed: neither a connection has room, nor the waiting ones
//
// A request has its moment, its operation and its key before anybody knows whether it can be sent.
// Its latency counts from that moment, whatever it waited for. So the load does not depend on what
// the server does, and a pause of the server is paid for by all requests that were due in it.
//
// Every request of the measured part is intended, and then exactly one of: sent, shed, or left, the
// measured part having ended before a connection had room.
#ifndef HG_LOAD_OPEN_H
#define HG_LOAD_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "load/arrivals.h"
#include "load/conn.h"

struct hg_load_lane;

struct hg_open {
    struct hg_arrivals_share share;
    struct hg_arrivals arrivals;
    struct hg_arrivals hot; /* of the hot key */
    uint64_t measured_ns;   /* requests due from here on are measured */
    uint64_t bound;         /* of those that wait when no connection has room */
    struct hg_load_pending *ring;
    uint64_t room, head, tail;
};

static inline uint64_t hg_open_waiting(const struct hg_open *open)
{
    return open->tail - open->head;
}

static inline uint64_t hg_open_next_ns(const struct hg_open *open)
{
    return open->arrivals.next_ns < open->hot.next_ns ? open->arrivals.next_ns : open->hot.next_ns;
}

/* Makes the lane's loop an open one; `bound` is its share of the tenant's. */
void hg_open_init(struct hg_load_lane *lane, const struct hg_arrivals_share *share, uint64_t bound);
void hg_open_fini(struct hg_open *open);

/* From `origin_ns` on requests are due, up to `end_ns`; what waits stays. While the load warms up
 * the rate is that of the first step. */
void hg_open_begin(struct hg_load_lane *lane, bool measured, uint64_t origin_ns, uint64_t end_ns);

/* Takes up what is due by now, and has it sent, wait or shed. */
void hg_open_release(struct hg_load_lane *lane, uint64_t now_ns);

/* The next request that waits; false: there is none. */
HG_MUST_USE bool hg_open_take(struct hg_open *open, struct hg_load_pending *ret_request);

/* No more requests are due; those that wait are left. */
void hg_open_end(struct hg_load_lane *lane, uint64_t now_ns);

#endif
