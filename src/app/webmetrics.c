// webmetrics - /metrics: the process, its operations, its tenants
// SPDX-License-Identifier: BSD-3-Clause
//
// All lines of a metric stand together, as the format wants it.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/login.h"
#include "app/metrics.h"
#include "app/tlslisten.h"
#include "app/web_own.h"
#include "base/clock.h"

#define OWN(NAME) (&hg_metrics_of(HG_METRICS_OWN, &(size_t){0})[HG_METRIC_##NAME])

static void single(struct hg_webtext *text, const struct hg_metric *metric, uint64_t value)
{
    hg_metric_head(text, metric);
    hg_metric_units(text, metric, "", value);
}

static uint64_t at(const void *base, size_t offset)
{
    return hg_counter_get((const hg_counter *)((const char *)base + offset));
}

/* ---- the process ---- */

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Newer kernels tell the number as the folder's size; else the entries are counted. */
static uint64_t count_fds(void)
{
    struct stat st;
    uint64_t count = 0;
    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (uint64_t)st.st_size;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count > 3 ? count - 3 : 0; /* ".", "..", and the folder itself */
}

static void process_metrics(const struct hg_process *process, struct hg_webtext *text)
{
    unsigned long long pages = 0, resident = 0;
    struct rlimit limit = {0, 0};
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm != NULL) {
        if (fscanf(statm, "%llu %llu", &pages, &resident) != 2)
            pages = resident = 0;
        fclose(statm);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    single(text, OWN(CPU), cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000);
    single(text, OWN(RESIDENT), resident * page);
    single(text, OWN(VIRTUAL), pages * page);
    single(text, OWN(OPEN_FDS), count_fds());
    single(text, OWN(MAX_FDS), limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur);
    single(text, OWN(STARTED), process->start_wall_s);
}

static void own_metrics(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text)
{
    struct hg_process *process = web->process;
    const struct hg_listeners_stats *listeners = hg_listeners_stats(process->listeners);
    char labels[HG_METRIC_LABELS_MAX] = "";
    struct hg_webtext reasons;
    uint64_t connections = 0;
    hg_webtext_init(&reasons);
    for (unsigned w = 0; w < process->front.worker_count; w++)
        connections += hg_counter_get(&process->workers[w].connections);
    hg_metric_label(labels, "version", process->front.version);
    hg_metric_head(text, OWN(BUILD_INFO));
    hg_metric_line(text, OWN(BUILD_INFO), labels, 1);
    process_metrics(process, text);
    single(text, OWN(HTTP_CPU), cpu_ns(CLOCK_THREAD_CPUTIME_ID));
    single(text, OWN(HTTP_CONNECTIONS), web->conns.count);
    single(text, OWN(HTTP_REQUESTS), hg_counter_get(&web->requests));
    single(text, OWN(HTTP_REFUSED), hg_counter_get(&web->refused));
    single(text, OWN(READY), hg_web_is_ready(web, view, &reasons));
    single(text, OWN(DRAINING), atomic_load(&process->draining));
    single(text, OWN(WORKERS), process->front.worker_count);
    single(text, OWN(CONNECTIONS), connections);
    single(text, OWN(CONNECTIONS_MAX), view->max_connections);
    single(text, OWN(ACCEPTED), hg_counter_get(&listeners->accepted));
    single(text, OWN(OVER_LIMIT), hg_counter_get(&listeners->over_limit));
    single(text, OWN(TLS_HANDSHAKES), hg_tlslisten_now(process->tls));
    single(text, OWN(TLS_CERTIFICATE), hg_tlslisten_expires_s(process->tls));
    single(text, OWN(TICKS), hg_counter_get(&process->ticks));
    single(text, OWN(RELOADS), hg_counter_get(&process->reloads));
    single(text, OWN(RELOAD_ERRORS), hg_counter_get(&process->reload_errors));
    single(text, OWN(NODE_CAPACITY), view->node_capacity);
    single(text, OWN(FREE_POOL), hg_web_free_pool(web, view));
    single(text, OWN(OVERCOMMITTED), atomic_load(&process->overcommitted));
    single(text, OWN(HOT_EPOCH), atomic_load(&process->front.hot.epoch_ms));
    single(text, OWN(HOT_MEMORY), atomic_load(&process->front.hot.mem.used_bytes));
    single(text, OWN(HOT_MEMORY_CAP), atomic_load(&process->front.hot.mem.cap_bytes));
    hg_webtext_fini(&reasons);
}

static void outcomes(const struct hg_process *process, struct hg_webtext *text)
{
    hg_metric_head(text, OWN(REQUESTS));
    for (unsigned o = 0; o < HG_OUTCOMES; o++) {
        char labels[HG_METRIC_LABELS_MAX] = "";
        hg_metric_label(labels, "outcome", hg_outcome_rows[o].name);
        hg_metric_line(text, OWN(REQUESTS), labels, hg_web_outcome(process, o));
    }
}

/* Operations of tables appear when they are first used: they are many, and few use them. */
static void latencies(struct hg_web *web, struct hg_webtext *text)
{
    const struct hg_process *process = web->process;
    hg_metric_head(text, OWN(LATENCY));
    for (unsigned op = 0; op < HG_OPS; op++) {
        struct hg_metric_hist hist = {.sum_us = 0};
        char labels[HG_METRIC_LABELS_MAX] = "";
        for (unsigned w = 0; w < process->front.worker_count; w++)
            hg_metric_hist_add(&hist, &process->workers[w].latency[op]);
        web->op_seen[op] |= op < HG_OPS_CLASSIC || hg_metric_hist_count(&hist) > 0;
        if (!web->op_seen[op])
            continue;
        hg_metric_label(labels, "op", hg_op_rows[op].name);
        hg_metric_hist_lines(text, OWN(LATENCY), labels, &hist);
    }
}

/* ---- groups that are one struct of counters, of the process or of each worker ---- */

static void group(struct hg_webtext *text, enum hg_metric_group which, const void *base)
{
    size_t count;
    const struct hg_metric *rows = hg_metrics_of(which, &count);
    for (size_t i = 0; i < count; i++)
        single(text, &rows[i], at(base, rows[i].offset));
}

static void worker_group(struct hg_webtext *text, const struct hg_process *process,
                         enum hg_metric_group which, size_t offset)
{
    size_t count;
    const struct hg_metric *rows = hg_metrics_of(which, &count);
    for (size_t i = 0; i < count; i++) {
        hg_metric_head(text, &rows[i]);
        for (unsigned w = 0; w < process->front.worker_count; w++) {
            char labels[32];
            snprintf(labels, sizeof labels, "worker=\"%u\"", w);
            hg_metric_line(text, &rows[i], labels,
                           at(&process->workers[w], offset + rows[i].offset));
        }
    }
}

/* ---- tenants ---- */

#define NAME_LABEL_MAX (sizeof "tenant=\"\"" + 5 * HG_BUCKET_NAME_MAX)

/* A tenant as it is told: its counters, and its label. The last one may be the others together. */
struct told {
    const struct hg_bucket *bucket; /* NULL: the others */
    uint64_t values[HG_WEB_VALUES];
    char label[NAME_LABEL_MAX];
};

static struct told *tell_all(struct hg_web *web, size_t *ret_count)
{
    struct hg_web_watch *watch = &web->watch;
    struct told *list = malloc((watch->own + 1) * sizeof *list);
    size_t count = 0;
    for (size_t i = 0; list != NULL && i <= watch->count; i++) {
        char label[HG_METRIC_LABELS_MAX] = "";
        struct told *to = &list[count];
        if (i < watch->count && watch->tenants[i]->is_other)
            continue;
        if (i == watch->count && !watch->any_other)
            break;
        to->bucket = i < watch->count ? watch->tenants[i]->bucket : NULL;
        if (to->bucket != NULL) {
            hg_web_values(to->bucket, to->values);
        } else {
            hg_web_watch_sum(watch);
            memcpy(to->values, watch->others, sizeof to->values);
        }
        hg_metric_label(label, "tenant", to->bucket != NULL ? to->bucket->name : HG_WEB_OTHERS);
        memcpy(to->label, label, sizeof to->label);
        to->label[sizeof to->label - 1] = '\0';
        count++;
    }
    *ret_count = count;
    return list;
}

static void tenant_counters(struct hg_webtext *text, const struct told *list, size_t count)
{
    size_t rows_count;
    const struct hg_metric *rows = hg_metrics_of(HG_METRICS_TENANT, &rows_count);
    for (size_t i = 0; i < rows_count; i++) {
        hg_metric_head(text, &rows[i]);
        for (size_t t = 0; t < count; t++)
            hg_metric_line(text, &rows[i], list[t].label, list[t].values[i]);
    }
}

static void tenant_outcomes(struct hg_webtext *text, const struct told *list, size_t count)
{
    hg_metric_head(text, OWN(TENANT_OUTCOMES));
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        for (size_t t = 0; t < count; t++) {
            char labels[NAME_LABEL_MAX + 64];
            snprintf(labels, sizeof labels, "%s,outcome=\"%s\"", list[t].label,
                     hg_outcome_rows[o].name);
            hg_metric_line(text, OWN(TENANT_OUTCOMES), labels,
                           list[t].values[HG_WEB_OUTCOMES_AT + o]);
        }
}

static void tenant_gates(struct hg_webtext *text, const struct told *list, size_t count)
{
    size_t rows_count;
    const struct hg_metric *rows = hg_metrics_of(HG_METRICS_TENANT_GATE, &rows_count);
    for (size_t i = 0; i < rows_count; i++) {
        hg_metric_head(text, &rows[i]);
        for (unsigned p = 0; p < HG_GATE_PLACES; p++)
            for (size_t t = 0; t < count; t++) {
                char labels[NAME_LABEL_MAX + 64];
                snprintf(labels, sizeof labels, "%s,holder=\"%s\"", list[t].label,
                         hg_gate_place_name((enum hg_gate_place)p));
                hg_metric_line(text, &rows[i], labels,
                               list[t].values[HG_WEB_GATES_AT + p * HG_WEB_GATE_ROWS + i]);
            }
    }
}

/* What is set of a tenant, and how it stands now. */
static uint64_t gauge_of(const struct hg_process *process, struct hg_bucket *bucket,
                         enum hg_metric_own which)
{
    struct hg_credit_view view;
    uint64_t sum = 0;
    unsigned max;
    switch (which) {
    case HG_METRIC_TENANT_STATE:
        return hg_bucket_live(bucket);
    case HG_METRIC_TENANT_CONNECTIONS:
        return atomic_load(&bucket->connections);
    case HG_METRIC_TENANT_CONNECTIONS_MAX:
        max = atomic_load(&bucket->max_connections);
        return max > 0 ? max : UINT64_MAX;
    case HG_METRIC_TENANT_RESERVED:
        return atomic_load(&bucket->credit.reserved);
    case HG_METRIC_TENANT_HARD_LIMIT:
        return atomic_load(&bucket->credit.hard_limit);
    case HG_METRIC_TENANT_SLOT_USED:
        hg_credit_view(&process->node, &bucket->credit, &view);
        return view.used;
    case HG_METRIC_TENANT_HELD:
        for (unsigned w = 0; w < bucket->lane_count; w++)
            sum += atomic_load(&bucket->credit_lanes[w].count);
        return sum;
    case HG_METRIC_TENANT_HELD_UNITS:
        for (unsigned w = 0; w < bucket->lane_count; w++)
            sum += atomic_load(&bucket->credit_lanes[w].units);
        return sum;
    default:
        return atomic_load(&bucket->hot_throttled);
    }
}

static void tenant_gauges(const struct hg_process *process, struct hg_webtext *text,
                          const struct told *list, size_t count)
{
    static const enum hg_metric_own gauges[] = {
        HG_METRIC_TENANT_STATE,    HG_METRIC_TENANT_CONNECTIONS, HG_METRIC_TENANT_CONNECTIONS_MAX,
        HG_METRIC_TENANT_RESERVED, HG_METRIC_TENANT_HARD_LIMIT,  HG_METRIC_TENANT_SLOT_USED,
        HG_METRIC_TENANT_HELD,     HG_METRIC_TENANT_HELD_UNITS,  HG_METRIC_TENANT_HOT_KEYS};
    size_t own_count;
    const struct hg_metric *own = hg_metrics_of(HG_METRICS_OWN, &own_count);
    for (size_t g = 0; g < HG_COUNT_OF(gauges); g++) {
        hg_metric_head(text, &own[gauges[g]]);
        for (size_t t = 0; t < count; t++)
            if (list[t].bucket != NULL)
                hg_metric_units(
                    text, &own[gauges[g]], list[t].label,
                    gauge_of(process, (struct hg_bucket *)(uintptr_t)list[t].bucket, gauges[g]));
    }
}

static void tenant_infos(struct hg_webtext *text, const struct told *list, size_t count)
{
    hg_metric_head(text, OWN(TENANT_INFO));
    for (size_t t = 0; t < count; t++) {
        char labels[HG_METRIC_LABELS_MAX];
        if (list[t].bucket == NULL)
            continue;
        const struct hg_upstream *upstream = list[t].bucket->upstream;
        snprintf(labels, sizeof labels, "%s", list[t].label);
        hg_metric_label(labels, "upstream", upstream != NULL ? upstream->name : "");
        hg_metric_label(labels, "type", upstream != NULL ? upstream->kind : "none");
        hg_metric_line(text, OWN(TENANT_INFO), labels, 1);
    }
}

static void tenants(struct hg_web *web, struct hg_webtext *text)
{
    size_t count;
    struct told *list = tell_all(web, &count);
    if (list == NULL) {
        text->failed = true;
        return;
    }
    tenant_infos(text, list, count);
    tenant_gauges(web->process, text, list, count);
    tenant_counters(text, list, count);
    tenant_outcomes(text, list, count);
    tenant_gates(text, list, count);
    free(list);
}

void hg_web_metrics(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text)
{
    const struct hg_process *process = web->process;
    own_metrics(web, view, text);
    outcomes(process, text);
    latencies(web, text);
    group(text, HG_METRICS_LOGIN, hg_logins_stats(process->logins));
    struct hg_handshake_stats handshakes;
    hg_tlslisten_sum(process->tls, &handshakes);
    group(text, HG_METRICS_HANDSHAKES, &handshakes);
    group(text, HG_METRICS_HOT, &process->hotkeys);
    group(text, HG_METRICS_BINDS, &process->binds);
    worker_group(text, process, HG_METRICS_WORKER, 0);
    worker_group(text, process, HG_METRICS_HOT_WORKER, offsetof(struct hg_worker, hot));
    tenants(web, text);
    hg_web_metrics_stores(view, web, text);
}
