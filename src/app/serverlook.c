// serverlook - what each server's requests take, wait and lack: housekeeping's look, once a second
// SPDX-License-Identifier: BSD-3-Clause
#include "app/serverlook.h"

#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "app/refused.h"
#include "base/event.h"

/* ---- one server ---- */

/* When the oldest request under way took its ticket; 0: there is none. */
static uint64_t oldest_us(const struct hg_gateshare *share)
{
    uint64_t oldest = 0;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        for (unsigned w = 0; w < share->holders[kind].worker_count; w++) {
            uint64_t since_us = hg_counter_get(&share->holders[kind].workers[w].oldest_us);
            if (since_us != 0 && (oldest == 0 || since_us < oldest))
                oldest = since_us;
        }
    return oldest;
}

/* *now becomes the values that were added since the last look, *before the sum as of now. */
static void take(struct hg_coarsehist_sum *now, struct hg_coarsehist_sum *before)
{
    const struct hg_coarsehist_sum all = *now;
    hg_coarsehist_subtract(now, before);
    *before = all;
}

/* Has nothing been answered, and has nobody got out of line? Then the histograms, which are large,
   need no look. */
static bool is_idle(struct hg_gateshare *share)
{
    uint64_t sum = 0;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
        for (unsigned w = 0; w < share->holders[kind].worker_count; w++) {
            const struct hg_gate_tally *tally = &share->holders[kind].workers[w].tally;
            sum += hg_counter_get(&tally->answered) + hg_counter_get(&tally->removed);
        }
    bool same = sum == share->seen.done;
    share->seen.done = sum;
    return same;
}

static void look_at_times(struct hg_gateshare *share, uint64_t now_us)
{
    struct hg_gateshare_seen *seen = &share->seen;
    struct hg_coarsehist_sum service = {0}, waited = {0};
    if (!is_idle(share)) {
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
            for (unsigned w = 0; w < share->holders[kind].worker_count; w++) {
                hg_coarsehist_add(&service, &share->holders[kind].workers[w].service);
                hg_coarsehist_add(&waited, &share->holders[kind].workers[w].waited);
            }
        take(&service, &seen->service);
        take(&waited, &seen->waited);
    }
    uint64_t since_us = oldest_us(share);
    seen->p50_us = hg_coarsehist_percentile(&service, 50);
    seen->p99_us = hg_coarsehist_percentile(&service, 99);
    seen->waited_p99_us = hg_coarsehist_percentile(&waited, 99);
    /* Of one that answers nothing it is known how long the oldest has taken at least. */
    seen->is_silent = service.total == 0 && since_us != 0 && now_us > since_us &&
                      now_us - since_us >= HG_SERVERSLOW_LOOK_US;
    if (seen->is_silent)
        seen->p50_us = seen->p99_us = now_us - since_us;
}

static void look_at_refusals(const struct hg_upstream *upstream, struct hg_gateshare *share,
                             uint64_t elapsed_us)
{
    struct hg_gateshare_seen *seen = &share->seen;
    uint64_t sums[HG_REFUSED_REASONS], all = 0, most = 0;
    _Static_assert(HG_REFUSED_REASONS <= HG_GATESHARE_REASONS, "reasons that are kept");
    hg_refused_sum(upstream, share, sums);
    for (unsigned r = 0; r < HG_REFUSED_REASONS; r++) {
        uint64_t fresh = sums[r] > seen->refused[r] ? sums[r] - seen->refused[r] : 0;
        seen->refused[r] = sums[r];
        all += fresh;
        if (fresh > most) {
            most = fresh;
            seen->reason = r;
        }
    }
    seen->refused_per_s = elapsed_us > 0 ? (double)all * 1e6 / (double)elapsed_us : 0;
}

static void tell_slow(const struct hg_upstream *upstream, const struct hg_gateshare *share,
                      enum hg_notice_say say, uint64_t now_us)
{
    const struct hg_gateshare_seen *seen = &share->seen;
    bool begins = say == HG_NOTICE_BEGIN;
    struct hg_event event;
    if (say == HG_NOTICE_NOTHING)
        return;
    hg_event_init(&event, begins ? HG_LOG_WARN : HG_LOG_INFO,
                  begins ? "server-slow" : "server-slow-end");
    hg_event_word(&event, "upstream", upstream->name);
    hg_event_word(&event, "server", share->server);
    hg_event_real(&event, "p50_ms", (double)seen->slow.p50_us / 1e3, 1);
    hg_event_real(&event, "usual_ms", (double)seen->slow.usual_us / 1e3, 1);
    if (seen->siblings_us > 0)
        hg_event_real(&event, "siblings_ms", (double)seen->siblings_us / 1e3, 1);
    if (begins)
        hg_event_real(&event, "factor", hg_serverslow_factor(&seen->slow), 0);
    else
        hg_event_real(&event, "lasted_s", (double)(now_us - seen->slow_told.since_us) / 1e6, 1);
    hg_event_tell(&event);
}

/* ---- an upstream ---- */

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Medians of those that are known, ascending. */
static size_t list_medians(const struct hg_gateset *set, uint64_t *medians)
{
    size_t count = 0;
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        const struct hg_gateshare *share = hg_gateset_at(set, i);
        if (share->seen.p50_us > 0 && hg_gateset_shows(share) && share->server[0] != '\0')
            medians[count++] = share->seen.p50_us;
    }
    qsort(medians, count, sizeof medians[0], compare);
    return count;
}

static void judge(const struct hg_upstream *upstream, const uint64_t *medians, size_t count,
                  uint64_t now_us)
{
    struct hg_gateset *set = upstream->gates;
    for (unsigned i = 0; i < hg_gateset_count(set); i++) {
        struct hg_gateshare *share = hg_gateset_at(set, i);
        struct hg_gateshare_seen *seen = &share->seen;
        bool shown = hg_gateset_shows(share);
        seen->siblings_us = share->server[0] == '\0' ? 0
                            : seen->p50_us > 0
                                ? hg_serverslow_median_of_others(medians, count, seen->p50_us)
                                : 0;
        hg_serverslow_look(&seen->slow, seen->p50_us, seen->siblings_us,
                           shown ? set->conf.slow_factor : 0, now_us);
        tell_slow(upstream, share, hg_notice_look(&seen->slow_told, seen->slow.is_slow, now_us),
                  now_us);
    }
}

static void look_at(const struct hg_upstream *upstream, uint64_t elapsed_us, uint64_t now_us)
{
    struct hg_gateset *set = upstream->gates;
    unsigned count = hg_gateset_count(set);
    uint64_t *medians = calloc((size_t)count + 1, sizeof *medians);
    pthread_mutex_lock(&set->lock);
    for (unsigned i = 0; i < count; i++) {
        look_at_times(hg_gateset_at(set, i), now_us);
        look_at_refusals(upstream, hg_gateset_at(set, i), elapsed_us);
    }
    if (medians != NULL)
        judge(upstream, medians, list_medians(set, medians), now_us);
    pthread_mutex_unlock(&set->lock);
    free(medians);
}

void hg_serverlook(struct hg_process *process, uint64_t now_us)
{
    const struct hg_directory *directory = process->directory;
    uint64_t elapsed_us = now_us - process->servers_looked_us;
    if (process->servers_looked_us != 0 && elapsed_us < HG_SERVERSLOW_LOOK_US)
        return;
    process->servers_looked_us = now_us;
    for (size_t i = 0; i < directory->upstream_count; i++)
        look_at(directory->upstreams[i], elapsed_us, now_us);
}
