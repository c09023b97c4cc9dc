// webhistory - the last ten minutes, a sample a second, in bounded memory
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webhistory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "front/gateset.h"

static void clear(hg_web_ring ring)
{
    for (unsigned i = 0; i < HG_WEB_HISTORY_S; i++)
        ring[i] = HG_WEB_MISSING;
}

static uint32_t cut(uint64_t value)
{
    return value < HG_WEB_MISSING ? (uint32_t)value : HG_WEB_MISSING - 1;
}

int hg_web_history_init(struct hg_web_history *history)
{
    memset(history, 0, sizeof *history);
    for (unsigned s = 0; s < HG_WEB_SERIES_COUNT; s++)
        clear(history->series[s]);
    history->before = calloc(1, sizeof *history->before);
    history->now = calloc(1, sizeof *history->now);
    return history->before != NULL && history->now != NULL ? 0 : -ENOMEM;
}

void hg_web_history_fini(struct hg_web_history *history)
{
    for (size_t i = 0; i < history->upstream_count; i++)
        free(history->upstreams[i]);
    free(history->upstreams);
    for (unsigned i = 0; i < HG_WEB_HISTORY_TENANTS; i++)
        free(history->tenants[i]);
    free(history->before);
    free(history->now);
    memset(history, 0, sizeof *history);
}

/* ---- seconds ---- */

static void mark_missing(struct hg_web_history *history, unsigned at)
{
    for (unsigned s = 0; s < HG_WEB_SERIES_COUNT; s++)
        history->series[s][at] = HG_WEB_MISSING;
    for (size_t i = 0; i < history->upstream_count; i++)
        for (unsigned r = 0; r < HG_WEB_UP_COUNT; r++)
            history->upstreams[i]->rings[r][at] = HG_WEB_MISSING;
    for (unsigned i = 0; i < HG_WEB_HISTORY_TENANTS; i++) {
        struct hg_web_tenant_rings *tenant = history->tenants[i];
        for (unsigned r = 0; tenant != NULL && r < HG_WEB_OF_COUNT; r++) {
            if (tenant->rings[r][at] != HG_WEB_MISSING)
                tenant->sum -= tenant->rings[r][at];
            tenant->rings[r][at] = HG_WEB_MISSING;
        }
    }
}

unsigned hg_web_history_begin(struct hg_web_history *history, uint64_t now_us, uint64_t wall_s)
{
    if (history->begin_us == 0) {
        history->begin_us = now_us;
        history->second = 0;
    } else {
        uint64_t second = (now_us - history->begin_us + 500000) / 1000000;
        if (second <= history->second)
            return HG_WEB_HISTORY_S;
        uint64_t missed = second - history->second - 1;
        if (missed > HG_WEB_HISTORY_S)
            missed = HG_WEB_HISTORY_S;
        for (uint64_t back = missed; back > 0; back--) {
            mark_missing(history, (unsigned)((second - back) % HG_WEB_HISTORY_S));
            history->time_s[(second - back) % HG_WEB_HISTORY_S] = wall_s - back;
        }
        history->second = second;
    }
    unsigned at = (unsigned)(history->second % HG_WEB_HISTORY_S);
    mark_missing(history, at);
    history->time_s[at] = wall_s;
    return at;
}

/* ---- tenants ---- */

/* The ring of the name; else a free one, or that of whom `busy` in one second outdoes. */
static struct hg_web_tenant_rings *tenant_ring(struct hg_web_history *history, const char *name,
                                               uint64_t busy)
{
    struct hg_web_tenant_rings **free_place = NULL, *least = NULL;
    for (unsigned i = 0; i < HG_WEB_HISTORY_TENANTS; i++) {
        struct hg_web_tenant_rings *tenant = history->tenants[i];
        if (tenant == NULL)
            free_place = free_place != NULL ? free_place : &history->tenants[i];
        else if (strcmp(tenant->name, name) == 0)
            return tenant;
        else if (least == NULL || tenant->sum < least->sum)
            least = tenant;
    }
    if (free_place != NULL)
        least = *free_place = malloc(sizeof **free_place);
    else if (least->sum >= busy)
        return NULL;
    if (least == NULL)
        return NULL;
    snprintf(least->name, sizeof least->name, "%s", name);
    least->sum = 0;
    for (unsigned r = 0; r < HG_WEB_OF_COUNT; r++)
        clear(least->rings[r]);
    return least;
}

void hg_web_history_tenant(struct hg_web_history *history, const char *name, uint64_t units,
                           uint64_t rejected)
{
    unsigned at = (unsigned)(history->second % HG_WEB_HISTORY_S);
    struct hg_web_tenant_rings *tenant = tenant_ring(history, name, units + rejected);
    if (tenant == NULL)
        return;
    tenant->rings[HG_WEB_OF_UNITS][at] = cut(units);
    tenant->rings[HG_WEB_OF_REJECTED][at] = cut(rejected);
    tenant->sum += (uint64_t)cut(units) + cut(rejected);
    tenant->second = history->second;
}

void hg_web_history_end(struct hg_web_history *history)
{
    for (unsigned i = 0; i < HG_WEB_HISTORY_TENANTS; i++) {
        struct hg_web_tenant_rings *tenant = history->tenants[i];
        if (tenant == NULL || tenant->second == history->second || tenant->sum > 0)
            continue;
        free(tenant);
        history->tenants[i] = NULL;
    }
}

/* ---- upstreams ---- */

static struct hg_web_upstream_rings *upstream_rings(struct hg_web_history *history,
                                                    const char *name)
{
    for (size_t i = 0; i < history->upstream_count; i++)
        if (strcmp(history->upstreams[i]->name, name) == 0)
            return history->upstreams[i];
    struct hg_web_upstream_rings **more =
        reallocarray(history->upstreams, history->upstream_count + 1, sizeof *history->upstreams);
    if (more == NULL)
        return NULL;
    history->upstreams = more;
    struct hg_web_upstream_rings *upstream = malloc(sizeof *upstream);
    if (upstream == NULL)
        return NULL;
    snprintf(upstream->name, sizeof upstream->name, "%s", name);
    for (unsigned r = 0; r < HG_WEB_UP_COUNT; r++)
        clear(upstream->rings[r]);
    history->upstreams[history->upstream_count++] = upstream;
    return upstream;
}

static uint64_t not_negative(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static void sample_upstream(struct hg_web_history *history, struct hg_upstream *upstream)
{
    unsigned at = (unsigned)(history->second % HG_WEB_HISTORY_S);
    struct hg_web_upstream_rings *rings = upstream_rings(history, upstream->name);
    uint64_t sizes[HG_TICKET_KINDS], out = 0, queued = 0;
    if (rings == NULL)
        return;
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        struct hg_gateset_sum sum;
        hg_gateset_sum(upstream->gates, (enum hg_ticket_kind)kind, &sum);
        sizes[kind] = not_negative(sum.size);
        out += not_negative(sum.out);
        queued += not_negative(sum.waiting);
    }
    rings->second = history->second;
    rings->rings[HG_WEB_UP_READ][at] = cut(sizes[HG_TICKET_READ]);
    rings->rings[HG_WEB_UP_WRITE][at] = cut(sizes[HG_TICKET_WRITE]);
    rings->rings[HG_WEB_UP_OUT][at] = cut(out);
    rings->rings[HG_WEB_UP_QUEUED][at] = cut(queued);
}

/* Those that are gone for longer than the history. */
static void drop_upstreams(struct hg_web_history *history)
{
    size_t kept = 0;
    for (size_t i = 0; i < history->upstream_count; i++) {
        if (history->second - history->upstreams[i]->second < HG_WEB_HISTORY_S)
            history->upstreams[kept++] = history->upstreams[i];
        else
            free(history->upstreams[i]);
    }
    history->upstream_count = kept;
}

/* ---- the process ---- */

enum side { SERVED, THROTTLED, FAILED, NEITHER };

/* For whose sake a request ended so. */
static enum side side_of(unsigned outcome)
{
    switch (outcome) {
    case HG_OUTCOME_SESSION:
    case HG_OUTCOME_SUCCESS:
    case HG_OUTCOME_MISS:
    case HG_OUTCOME_NOT_DONE:
        return SERVED;
    case HG_OUTCOME_THROTTLED:
    case HG_OUTCOME_THROTTLED_TOO_LONG:
    case HG_OUTCOME_HOT_KEY:
    case HG_OUTCOME_BIND_THROTTLED:
    case HG_OUTCOME_EVICTED:
    case HG_OUTCOME_DATA_LIMIT:
    case HG_OUTCOME_CONNECTION_LIMIT:
    case HG_OUTCOME_PAUSED:
    case HG_OUTCOME_DISABLED:
        return THROTTLED;
    case HG_OUTCOME_STORE_ERROR:
    case HG_OUTCOME_QUEUE_FULL:
    case HG_OUTCOME_QUEUE_TIMEOUT:
    case HG_OUTCOME_BACKEND_DOWN:
    case HG_OUTCOME_BACKEND_LOST:
    case HG_OUTCOME_BACKEND_TIMEOUT:
    case HG_OUTCOME_FRONT_ERROR:
        return FAILED;
    default:
        return NEITHER;
    }
}

static void sample_outcomes(struct hg_web_history *history, const struct hg_process *process,
                            unsigned at)
{
    uint64_t sides[NEITHER + 1] = {0}, all = 0;
    for (unsigned o = 0; o < HG_OUTCOMES; o++) {
        uint64_t now = 0;
        for (unsigned w = 0; w < process->front.worker_count; w++)
            now += hg_counter_get(&process->workers[w].outcomes[o]);
        uint64_t before = history->outcomes[o];
        uint64_t grown = now >= before ? now - before : now;
        history->outcomes[o] = now;
        sides[side_of(o)] += grown;
        all += grown;
    }
    if (history->second == 0)
        return; /* there is no second before */
    history->series[HG_WEB_SERIES_requests_per_s][at] = cut(all);
    history->series[HG_WEB_SERIES_served_per_s][at] = cut(sides[SERVED]);
    history->series[HG_WEB_SERIES_throttled_per_s][at] = cut(sides[THROTTLED]);
    history->series[HG_WEB_SERIES_failed_per_s][at] = cut(sides[FAILED]);
}

/* What `now` has more than `before`, bucket by bucket, into `before`: a reset may lie between. */
static void difference(struct hg_hist *before, const struct hg_hist *now)
{
    uint64_t total = 0;
    for (unsigned b = 0; b < HG_HIST_BUCKETS; b++) {
        uint64_t is = hg_counter_get(&now->bucket[b]), was = hg_counter_get(&before->bucket[b]);
        uint64_t grown = is >= was ? is - was : is;
        hg_counter_set(&before->bucket[b], grown);
        total += grown;
    }
    hg_counter_set(&before->total, total);
    hg_counter_set(&before->max, hg_counter_get(&now->max));
}

static void sample_latency(struct hg_web_history *history, const struct hg_process *process,
                           unsigned at)
{
    struct hg_hist *now = history->now;
    hg_hist_init(now);
    for (unsigned w = 0; w < process->front.worker_count; w++)
        for (unsigned op = 0; op < HG_OPS; op++) {
            const struct hg_hist *hist = &process->workers[w].latency[op];
            if (hg_counter_get(&hist->total) > 0)
                hg_hist_merge(now, hist);
        }
    difference(history->before, now);
    if (history->second > 0 && hg_counter_get(&history->before->total) > 0) {
        history->series[HG_WEB_SERIES_p50_us][at] = cut(hg_hist_percentile(history->before, 50));
        history->series[HG_WEB_SERIES_p99_us][at] = cut(hg_hist_percentile(history->before, 99));
    }
    history->now = history->before;
    history->before = now;
}

static void sample_gauges(struct hg_web_history *history, struct hg_process *process,
                          const struct hg_directory *directory, unsigned at)
{
    uint64_t held = 0, connections = 0, backlog = 0;
    uint64_t queued = not_negative(atomic_load(&process->front.ingress.waiting));
    for (unsigned w = 0; w < process->front.worker_count; w++) {
        held += hg_counter_get(&process->workers[w].held_now);
        connections += hg_counter_get(&process->workers[w].connections);
    }
    for (size_t i = 0; i < directory->upstream_count; i++) {
        const struct hg_gateset *set = directory->upstreams[i]->gates;
        uint64_t since_us;
        backlog += not_negative(hg_gateset_backlog(set, &since_us));
        for (unsigned s = 0; s < hg_gateset_count(set); s++)
            for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++)
                queued += not_negative(atomic_load(&hg_gateset_at(set, s)->holders[kind].waiting));
    }
    history->series[HG_WEB_SERIES_held][at] = cut(held);
    history->series[HG_WEB_SERIES_queued][at] = cut(queued);
    history->series[HG_WEB_SERIES_connections][at] = cut(connections);
    history->series[HG_WEB_SERIES_backlog][at] = cut(backlog);
}

void hg_web_history_sample(struct hg_web_history *history, struct hg_process *process,
                           const struct hg_web_watch *watch, const struct hg_directory *directory,
                           uint64_t now_us, uint64_t wall_s)
{
    unsigned at = hg_web_history_begin(history, now_us, wall_s);
    if (at == HG_WEB_HISTORY_S)
        return;
    sample_outcomes(history, process, at);
    sample_latency(history, process, at);
    sample_gauges(history, process, directory, at);
    for (size_t i = 0; i < directory->upstream_count; i++)
        sample_upstream(history, directory->upstreams[i]);
    drop_upstreams(history);
    for (size_t i = 0; i < watch->count; i++) {
        const struct hg_web_tenant *tenant = watch->tenants[i];
        hg_web_history_tenant(history, tenant->bucket->name, tenant->rates[HG_WEB_LANE_units],
                              hg_web_rejected(tenant->rates));
    }
    hg_web_history_end(history);
}
