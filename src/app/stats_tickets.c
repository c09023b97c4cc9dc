// stats_tickets - statistics of tickets: each holder, its controller, and each tenant's part
// SPDX-License-Identifier: BSD-3-Clause
//
//   ingress:out          cache:read:out         cache:monitor:timesProbedUp tenant:shop:read:...
//
// Names are those of MongoDB's `queues` section where it has the same. The process's holder and the
// upstreams' need Stats of the node.
#include <stdio.h>
#include <stdlib.h>

#include "app/rights.h"
#include "app/stats.h"
#include "base/clock.h"
#include "front/gate.h"
#include "proto/status.h"

#define PREFIX_BYTES (HG_BUCKET_NAME_MAX + 32)
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

static void wait_rows(struct hg_job *job, const char *prefix, const struct hg_gate_holder *holder)
{
    struct hg_hist *all = calloc(1, sizeof *all);
    if (all == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
        return;
    }
    for (unsigned w = 0; w < holder->worker_count; w++)
        hg_hist_merge(all, &holder->workers[w].waits);
    row(job, prefix, "queueWaitTimeMicros:count", hg_counter_get(&all->total));
    row(job, prefix, "queueWaitTimeMicros:p50", hg_hist_percentile(all, 50));
    row(job, prefix, "queueWaitTimeMicros:p99", hg_hist_percentile(all, 99));
    row(job, prefix, "queueWaitTimeMicros:max", hg_counter_get(&all->max));
    free(all);
}

static void holder_rows(struct hg_job *job, const char *prefix, struct hg_gate_holder *holder)
{
    uint64_t sums[HG_GATE_STATS];
    unsigned overloaded = 0;
    /* One look at the word, so that the three fit together. */
    uint64_t word = hg_ticket_word(&holder->ticket);
    int64_t size = (int64_t)(word >> 32), out = (int64_t)(uint32_t)word;
    for (unsigned w = 0; w < holder->worker_count; w++)
        overloaded += hg_counter_get(&holder->workers[w].overloaded) != 0;
    signed_row(job, prefix, "out", out);
    signed_row(job, prefix, "available", size - out);
    signed_row(job, prefix, "totalTickets", size);
    hg_gate_holder_sum(holder, sums);
    tally_rows(job, prefix, holder->place, false, sums);
    if (holder->place != HG_GATE_INGRESS)
        signed_row(job, prefix, "stranded",
                   atomic_load_explicit(&holder->stranded, memory_order_relaxed));
    row(job, prefix, "overloaded", overloaded);
    wait_rows(job, prefix, holder);
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

static void upstream_rows(struct hg_job *job, const struct hg_upstream *upstream)
{
    struct hg_gateshare *gate = upstream->gate;
    pthread_mutex_lock(&gate->lock);
    enum hg_probe_control control = gate->wanted.control;
    enum hg_probe_state state = gate->probe.state;
    struct hg_probe_stats stats = gate->probe.stats;
    pthread_mutex_unlock(&gate->lock);
    int64_t backlog = atomic_load(&gate->backlog);
    uint64_t since_us = atomic_load(&gate->backlog_since_us), now_us = hg_now_us();
    text_row(job, upstream->name, "execution_control",
             hg_conf_execution_control_name((enum hg_conf_execution_control)control));
    text_row(job, upstream->name, "usesThroughputProbing",
             control == HG_PROBE_FIXED ? "false" : "true");
    text_row(job, upstream->name, "state", hg_probe_state_name(state));
    signed_row(job, upstream->name, "backlog", backlog);
    row(job, upstream->name, "backlogMillis",
        backlog > 0 && now_us > since_us ? (now_us - since_us) / 1000 : 0);
    monitor_rows(job, upstream->name, &stats);
    for (unsigned kind = 0; kind < HG_TICKET_KINDS; kind++) {
        char prefix[PREFIX_BYTES];
        snprintf(prefix, sizeof prefix, "%s:%s", upstream->name,
                 hg_gate_place_name(gate->holders[kind].place));
        holder_rows(job, prefix, &gate->holders[kind]);
    }
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

void hg_stats_tickets(struct hg_process *process, struct hg_job *job)
{
    const struct hg_directory *directory = process->directory;
    if (hg_rights_have(hg_rights_of_node(job), HG_PRIVILEGE_STATS)) {
        text_row(job, "ingress", "enabled",
                 atomic_load(&process->front.ingress_enabled) ? "true" : "false");
        holder_rows(job, "ingress", &process->front.ingress);
        for (size_t i = 0; i < directory->upstream_count; i++)
            upstream_rows(job, directory->upstreams[i]);
    }
    for (size_t i = 0; i < directory->bucket_count; i++)
        if (hg_stats_may_see(job, directory->buckets[i]))
            tenant_rows(job, directory->buckets[i]);
}
