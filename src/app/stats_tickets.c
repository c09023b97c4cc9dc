// stats_tickets - statistics of tickets: each holder, its controller, and each tenant's part
// SPDX-License-Identifier: BSD-3-Clause
//
//   ingress:out          cache:read:out         cache:monitor:timesProbedUp tenant:shop:read:...
//                        cache:server:10.0.0.1:11211:read:out
//
// Names are those of MongoDB's `queues` section where it has the same. The process's holder and the
// upstreams' need Stats of the node.
#include <stdio.h>
#include <stdlib.h>

#include "app/refused.h"
#include "app/rights.h"
#include "app/stats.h"
#include "base/clock.h"
#include "front/gate.h"
#include "proto/status.h"

#define PREFIX_BYTES (HG_BUCKET_NAME_MAX + 320) /* the address of a server in it */
#define NAME_BYTES   (PREFIX_BYTES + 64)

/* Who counts a row of gate.def. */
enum counted { OF_ALL, OF_EXECUTION, OF_INGRESS };

#define ROW_OF(field) (offsetof(struct hg_gate_tally, field) / sizeof(hg_counter))

static enum counted counted_by(size_t row)
{
    switch (row) {
    case ROW_OF(answered):
    case ROW_OF(unanswered):
    case ROW_OF(processing_us):
    case ROW_OF(refused_key):
    case ROW_OF(delinquent):
    case ROW_OF(delinquent_ms):
    case ROW_OF(delinquent_max_ms):
        return OF_EXECUTION;
    case ROW_OF(exempt_started):
    case ROW_OF(exempt_finished):
        return OF_INGRESS;
    default:
        return OF_ALL;
    }
}

static void row(struct hg_job *job, const char *prefix, const char *name, uint64_t value)
{
    char key[NAME_BYTES];
    snprintf(key, sizeof key, "%s:%s", prefix, name);
    hg_job_stat(job, key, "%llu", (unsigned long long)value);
}

static void signed_row(struct hg_job *job, const char *prefix, const char *name, int64_t value)
{
    char key[NAME_BYTES];
    snprintf(key, sizeof key, "%s:%s", prefix, name);
    hg_job_stat(job, key, "%lld", (long long)value);
}

static void text_row(struct hg_job *job, const char *prefix, const char *name, const char *value)
{
    char key[NAME_BYTES];
    snprintf(key, sizeof key, "%s:%s", prefix, name);
    hg_job_stat(job, key, "%s", value);
}

static uint64_t less(uint64_t all, uint64_t gone)
{
    return all > gone ? all - gone : 0;
}

/* Counters, and what follows from them. A tenant's ingress tickets are not counted when they are
   taken, as the process's are. */
static void tally_rows(struct hg_job *job, const char *prefix, enum hg_gate_place place,
                       bool of_tenant, const uint64_t sums[HG_GATE_STATS])
{
    uint64_t finished = sums[ROW_OF(answered)] + sums[ROW_OF(unanswered)];
    bool takes = !of_tenant || place != HG_GATE_INGRESS;
    for (size_t i = 0; i < HG_GATE_STATS; i++) {
        enum counted by = counted_by(i);
        bool taken = i == ROW_OF(started);
        if ((by == OF_EXECUTION && place == HG_GATE_INGRESS) ||
            (by == OF_INGRESS && place != HG_GATE_INGRESS) || (taken && !takes))
            continue;
        row(job, prefix, hg_gate_stat_rows[i].name, sums[i]);
    }
    row(job, prefix, "queueLength", less(sums[ROW_OF(added)], sums[ROW_OF(removed)]));
    if (!takes)
        return;
    row(job, prefix, "finishedProcessing", finished);
    row(job, prefix, "processing", less(sums[ROW_OF(started)], finished));
    row(job, prefix, "newAdmissions", sums[ROW_OF(started)]);
}

/* ---- holders ---- */

static void wait_rows(struct hg_job *job, const char *prefix, const struct hg_hist *waits)
{
    row(job, prefix, "queueWaitTimeMicros:count", hg_counter_get(&waits->total));
    row(job, prefix, "queueWaitTimeMicros:p50", hg_hist_percentile(waits, 50));
    row(job, prefix, "queueWaitTimeMicros:p99", hg_hist_percentile(waits, 99));
    row(job, prefix, "queueWaitTimeMicros:max", hg_counter_get(&waits->max));
}

static void holder_rows(struct hg_job *job, const char *prefix, enum hg_gate_place place,
                        const struct hg_gateset_sum *sum)
{
    signed_row(job, prefix, "out", sum->out);
    signed_row(job, prefix, "available", sum->size - sum->out);
    signed_row(job, prefix, "totalTickets", sum->size);
    tally_rows(job, prefix, place, false, sum->counts);
    if (place != HG_GATE_INGRESS)
        signed_row(job, prefix, "stranded", sum->stranded);
    row(job, prefix, "overloaded", sum->overloaded);
}

static void ingress_rows(struct hg_job *job, struct hg_gate_holder *holder,
                         struct hg_gateset_sum *sum)
{
    hg_gateset_sum_one(holder, sum);
    holder_rows(job, "ingress", HG_GATE_INGRESS, sum);
    wait_rows(job, "ingress", &sum->waits);
}

/* ---- controllers ---- */

static void monitor_rows(struct hg_job *job, const char *upstream,
                         const struct hg_probe_stats *stats)
{
    char prefix[PREFIX_BYTES];
    snprintf(prefix, sizeof prefix, "%s:monitor", upstream);
    row(job, prefix, "timesProbedStable", stats->probed_stable);
    row(job, prefix, "timesProbedUp", stats->probed_up);
    row(job, prefix, "timesProbedDown", stats->probed_down);
    row(job, prefix, "timesIncreased", stats->increased);
    row(job, prefix, "timesDecreased", stats->decreased);
    row(job, prefix, "totalAmountIncreased", stats->amount_increased);
    row(job, prefix, "totalAmountDecreased", stats->amount_decreased);
    row(job, prefix, "stalls", stats->stalls);
}

/* The state of the first controller that is not stable; if all are, stable. */
static enum hg_probe_state state_of(const struct hg_gateset *set)
{
    for (unsigned i = 0; i < hg_gateset_count(set); i++)
        if (hg_gateset_at(set, i)->probe.state != HG_PROBE_STABLE)
            return hg_gateset_at(set, i)->probe.state;
    return HG_PROBE_STABLE;
}

static void backlog_rows(struct hg_job *job, const char *prefix, int64_t backlog, uint64_t since_us)
{
    uint64_t now_us = hg_now_us();
    signed_row(job, prefix, "backlog", backlog);
    row(job, prefix, "backlogMillis",
        backlog > 0 && since_us != 0 && now_us > since_us ? (now_us - since_us) / 1000 : 0);
}

/* A server's rows: its figures of the last second. */
static void seen_rows(struct hg_job *job, const char *prefix, const struct hg_gateshare_seen *seen)
{
    double factor = hg_serverslow_factor(&seen->slow);
    char per_s[32];
    snprintf(per_s, sizeof per_s, "%.1f", seen->refused_per_s);
    row(job, prefix, "slowFactor",
        !seen->slow.is_slow ? 0
        : factor > 1        ? (uint64_t)(factor + 0.5)
                            : 1);
    text_row(job, prefix, "silent", seen->is_silent ? "true" : "false");
    row(job, prefix, "serviceMicros:p50", seen->p50_us);
    row(job, prefix, "serviceMicros:p99", seen->p99_us);
    row(job, prefix, "serviceMicros:usual", seen->slow.usual_us);
    row(job, prefix, "waitMicros:p99", seen->waited_p99_us);
    text_row(job, prefix, "refusedPerSecond", per_s);
    text_row(job, prefix, "refusedFor",
             seen->refused_per_s > 0 ? hg_refused_name((enum hg_refused)seen->reason) : "none");
}

/* Rows for each server that is configured or in use. Call under the set's lock. */
static void server_rows(struct hg_job *job, const struct hg_upstream *upstream,
                        struct hg_gateset_sum *sum)
{
    for (unsigned i = 0; i < hg_gateset_count(upstream->gates); i++) {
        struct hg_gateshare *share = hg_gateset_at(upstream->gates, i);
        char prefix[PREFIX_BYTES];
        if (!hg_gateset_shows(share) || share->server[0] == '\0')
            continue;
        snprintf(prefix, sizeof prefix, "%s:server:%s", upstream->name, share->server);
        text_row(job, prefix, "state", hg_probe_state_name(share->probe.state));
        backlog_rows(job, prefix, atomic_load(&share->backlog),
                     atomic_load(&share->backlog_since_us));
        seen_rows(job, prefix, &share->seen);
        for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
            struct hg_gate_holder *holder = &share->holders[kind];
            snprintf(prefix, sizeof prefix, "%s:server:%s:%s", upstream->name, share->server,
                     hg_gate_place_name(holder->place));
            hg_gateset_sum_one(holder, sum);
            holder_rows(job, prefix, holder->place, sum);
        }
    }
}

static void upstream_rows(struct hg_job *job, const struct hg_upstream *upstream,
                          struct hg_gateset_sum *sum)
{
    struct hg_gateset *set = upstream->gates;
    const struct hg_probe_stats stats = hg_gateset_probe_stats(set);
    uint64_t since_us;
    int64_t backlog = hg_gateset_backlog(set, &since_us);
    pthread_mutex_lock(&set->lock);
    enum hg_probe_control control = set->conf.probe.control;
    enum hg_probe_state state = state_of(set);
    pthread_mutex_unlock(&set->lock);
    text_row(job, upstream->name, "execution_control",
             hg_conf_execution_control_name((enum hg_conf_execution_control)control));
    text_row(job, upstream->name, "usesThroughputProbing",
             control == HG_PROBE_FIXED ? "false" : "true");
    text_row(job, upstream->name, "state", hg_probe_state_name(state));
    backlog_rows(job, upstream->name, backlog, since_us);
    monitor_rows(job, upstream->name, &stats);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        enum hg_gate_place place = (enum hg_gate_place)(HG_GATE_READ + (int)kind);
        char prefix[PREFIX_BYTES];
        snprintf(prefix, sizeof prefix, "%s:%s", upstream->name, hg_gate_place_name(place));
        hg_gateset_sum(set, (enum hg_ticket_kind)kind, sum);
        holder_rows(job, prefix, place, sum);
        wait_rows(job, prefix, &sum->waits);
    }
    pthread_mutex_lock(&set->lock);
    server_rows(job, upstream, sum);
    pthread_mutex_unlock(&set->lock);
}

/* ---- tenants ---- */

static void tenant_rows(struct hg_job *job, const struct hg_bucket *bucket)
{
    for (unsigned place = 0; place < HG_GATE_PLACES; place++) {
        uint64_t sums[HG_GATE_STATS] = {0};
        char prefix[PREFIX_BYTES];
        for (unsigned w = 0; w < bucket->lane_count; w++)
            hg_gate_tally_add(&bucket->lanes[w].tallies[place], sums);
        snprintf(prefix, sizeof prefix, "tenant:%s:%s", bucket->name,
                 hg_gate_place_name((enum hg_gate_place)place));
        tally_rows(job, prefix, (enum hg_gate_place)place, true, sums);
    }
}

static void node_rows(struct hg_process *process, struct hg_job *job)
{
    const struct hg_directory *directory = process->directory;
    struct hg_gateset_sum *sum = calloc(1, sizeof *sum);
    if (sum == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
        return;
    }
    text_row(job, "ingress", "enabled",
             atomic_load(&process->front.ingress_enabled) ? "true" : "false");
    ingress_rows(job, &process->front.ingress, sum);
    for (size_t i = 0; i < directory->upstream_count; i++)
        upstream_rows(job, directory->upstreams[i], sum);
    free(sum);
}

void hg_stats_tickets(struct hg_process *process, struct hg_job *job)
{
    const struct hg_directory *directory = process->directory;
    if (hg_rights_have(hg_rights_of_node(job), HG_PRIVILEGE_STATS))
        node_rows(process, job);
    for (size_t i = 0; i < directory->bucket_count; i++)
        if (hg_stats_may_see(job, directory->buckets[i]))
            tenant_rows(job, directory->buckets[i]);
}
