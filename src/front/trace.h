// trace - one line in the log for one in so many requests, with every verdict and every wait
// SPDX-License-Identifier: BSD-3-Clause
//
//   trace=17 tenant=shop op=get key=cart:42 client=10.0.0.9:4711 user=- hot=listed bind=none
//   credits=held(hard_limit) tickets=waited units=1/0 outcome=success throttle_us=812000
//   ticket_us=310 room_us=0 store_us=240 total_us=812560 server=10.0.0.1:11211
//
// throttle, ticket, room and store are one after the other; what total_us has beside them the front
// end took itself, or others whose turn came first. Worker's thread.
#ifndef HG_FRONT_TRACE_H
#define HG_FRONT_TRACE_H

#include "front/request.h"

/* Bits of hg_request.seen: what a request met that its outcome does not tell. */
#define HG_SEEN_HOT_LIST      1u /* its tenant has throttled keys: they were looked through */
#define HG_SEEN_HOT_WOULD     2u /* observe mode let it through */
#define HG_SEEN_BINDS         4u /* its tenant has evicted keys */
#define HG_SEEN_BIND_WOULD    8u
#define HG_SEEN_CREDIT_HELD   16u
#define HG_SEEN_CREDIT_WOULD  32u
#define HG_SEEN_TICKET_WAITED 64u
#define HG_SEEN_TICKET_WOULD  128u

/* The request has ended so. `number`: of this line's request among the worker's. */
void hg_trace_request(const struct hg_request *request, enum hg_outcome outcome, const char *server,
                      uint64_t number);
/* The same of one that was refused before it became a request: no right, no bucket, a table
   operation on a throttled key. */
void hg_trace_refused(const struct hg_session *session, const struct hg_opcode_row *row,
                      enum hg_outcome outcome, uint64_t number);

/* Whether it is the turn of a line; *ret_number is then the request's. */
static inline bool hg_trace_wanted(uint32_t sample, uint64_t *traced, uint64_t *ret_number)
{
    if (HG_LIKELY(sample == 0))
        return false;
    *ret_number = *traced;
    return (*traced)++ % sample == 0;
}

#endif
