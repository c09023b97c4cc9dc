// retry - a budget: retries may be a tenth of what is sent
// SPDX-License-Identifier: BSD-3-Clause
//
// Each request sent for the first time puts a tenth of a token in, each retry takes one out; at
// most 10 are kept, and a fresh budget has one. One a worker and server, plain memory. Pure.
// Source: Finagle's retry budgets.
#ifndef HG_CORE_RETRY_H
#define HG_CORE_RETRY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/attr.h"

#define HG_RETRY_COST     10  // tenths of a token
#define HG_RETRY_KEPT_MAX 100 // tenths of a token

struct hg_retry {
    uint32_t tenths;
};

static inline void hg_retry_init(struct hg_retry *retry)
{
    retry->tenths = HG_RETRY_COST;
}

/* `n` requests were sent for the first time. */
static inline void hg_retry_tell_sent(struct hg_retry *retry, uint32_t n)
{
    uint32_t room = HG_RETRY_KEPT_MAX - retry->tenths;
    retry->tenths += n < room ? n : room;
}

/* May one request be sent again? True takes the token. */
HG_MUST_USE static inline bool hg_retry_take(struct hg_retry *retry)
{
    if (retry->tenths < HG_RETRY_COST)
        return false;
    retry->tenths -= HG_RETRY_COST;
    return true;
}

#endif
