// refused - how many requests were refused at a server, by reason
// SPDX-License-Identifier: BSD-3-Clause
#include "app/refused.h"

#include <string.h>

#include "app/upstreams_view.h"
#include "back/upstream_stats.h"

static const char *const names[HG_REFUSED_REASONS] = {
#define HG_REFUSED(NAME, printed, text) printed,
#include "app/refused.def"
#undef HG_REFUSED
};

const char *hg_refused_name(enum hg_refused reason)
{
    return names[reason];
}

void hg_refused_sum(const struct hg_upstream *upstream, struct hg_gateshare *share,
                    uint64_t ret[HG_REFUSED_REASONS])
{
    uint64_t sums[HG_UPSTREAM_STATS] = {0};
    memset(ret, 0, HG_REFUSED_REASONS * sizeof ret[0]);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        for (unsigned w = 0; w < share->holders[kind].worker_count; w++) {
            const struct hg_gate_tally *tally = &share->holders[kind].workers[w].tally;
            ret[HG_REFUSED_FLOOD] += hg_counter_get(&tally->refused_flood);
            ret[HG_REFUSED_CALM] += hg_counter_get(&tally->refused_calm);
            ret[HG_REFUSED_STALLED] += hg_counter_get(&tally->refused_stalled);
            ret[HG_REFUSED_OVERDUE] += hg_counter_get(&tally->refused_overdue);
            ret[HG_REFUSED_QUEUE_FULL] += hg_counter_get(&tally->overflows);
            ret[HG_REFUSED_KEY_SHARE] += hg_counter_get(&tally->refused_key);
        }
    if (share->server[0] == '\0')
        return;
    hg_upstream_server_sum(upstream, share->server, sums);
    ret[HG_REFUSED_BREAKER] = sums[HG_UPSTREAM_REFUSED_DOWN];
    ret[HG_REFUSED_CONNECTION] = sums[HG_UPSTREAM_QUEUE_TIMEOUTS] + sums[HG_UPSTREAM_QUEUE_FULL];
}
