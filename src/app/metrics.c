// metrics - the list of metrics, and how a line of each kind is written
// SPDX-License-Identifier: BSD-3-Clause
#include "app/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "app/binds.h"
#include "app/hotkeys.h"
#include "app/login.h"
#include "back/embedded_stats.h"
#include "back/pool_stats.h"
#include "back/rediscluster.h"
#include "back/upstream_stats.h"
#include "front/handshake.h"
#include "front/worker.h"

/* ---- rows as the tables have them ---- */

enum kind { COUNTER, GAUGE, HISTOGRAM, TOTAL, NOW, HUNDREDTHS, LONGEST };

struct row {
    const char *name, *help;
    enum kind kind;
    size_t offset;
    const char *labels; /* NULL: the group's */
};

static const struct row own_rows[] = {
#define HG_METRIC(NAME, name, kind, labels, help) {name, help, kind, 0, labels},
#include "app/metrics.def"
#undef HG_METRIC
};
static const struct row worker_rows[] = {
#define HG_WORKER_STAT(name, kind, text)                                                           \
    {#name, text, kind, offsetof(struct hg_worker, name), NULL},
    HG_WORKER_STATS(HG_WORKER_STAT)
#undef HG_WORKER_STAT
};
static const struct row lane_rows[] = {
#define HG_LANE(name, kind, text) {#name, text, kind, offsetof(struct hg_lane, name), NULL},
#include "front/lane.def"
#undef HG_LANE
};
static const struct row gate_rows[] = {
#define HG_GATE_STAT(name, kind, printed, text)                                                    \
    {#name, text, kind, offsetof(struct hg_gate_tally, name) / sizeof(hg_counter), NULL},
#include "front/gate.def"
#undef HG_GATE_STAT
};
/* Of a tenant: how it fares in the lines. Its ingress tickets are not counted when taken. */
static const struct row tenant_gate_rows[] = {
#define ROW(name, text)                                                                            \
    {                                                                                              \
        "tickets_" #name, text, COUNTER,                                                           \
            offsetof(struct hg_gate_tally, name) / sizeof(hg_counter), NULL                        \
    }
    ROW(added, "requests of the tenant that had to wait for a ticket"),
    ROW(queued_us, "time that these waited"),
    ROW(canceled, "requests of the tenant that gave up waiting for a ticket"),
    ROW(overflows, "requests of the tenant refused because too many waited already"),
    ROW(refused_flood, "requests of the tenant refused while it flooded a line"),
    ROW(refused_calm, "requests of the tenant refused after the longest wait, though it did not "
                      "flood and the store answered"),
    ROW(refused_stalled,
        "requests of the tenant refused while the store answered nothing, or had no "
        "tickets"),
    ROW(refused_overdue, "requests of the tenant refused because their own deadline was over, or "
                         "their bytes had lain for too long"),
    ROW(refused_key, "requests of the tenant refused because their key had its share of the "
                     "tickets"),
#undef ROW
};
static const struct row server_rows[] = {
#define HG_UPSTREAM_STAT(NAME, name, kind, help) {name, help, kind, HG_UPSTREAM_##NAME, NULL},
#include "back/upstream_stats.def"
#undef HG_UPSTREAM_STAT
};
static const struct row pool_rows[] = {
#define HG_POOL_STAT(NAME, name, kind, help) {name, help, kind, HG_POOL_##NAME, NULL},
#include "back/pool_stats.def"
#undef HG_POOL_STAT
};
static const struct row embedded_rows[] = {
#define HG_EMBEDDED_STAT(name, kind, help)                                                         \
    {#name, help, kind, offsetof(struct hg_embedded_stats, name), NULL},
#include "back/embedded_stats.def"
#undef HG_EMBEDDED_STAT
};
static const struct row cluster_rows[] = {
#define HG_REDISCLUSTER_STAT(NAME, name, kind, help)                                               \
    {name, help, kind, HG_REDISCLUSTER_##NAME, NULL},
#include "back/rediscluster_stats.def"
#undef HG_REDISCLUSTER_STAT
};
static const struct row login_rows[] = {
#define HG_LOGIN_STAT(name, kind, text)                                                            \
    {#name, text, kind, offsetof(struct hg_login_stats, name), NULL},
#include "app/login_stats.def"
#undef HG_LOGIN_STAT
};
static const struct row handshake_rows[] = {
#define HG_HANDSHAKE_STAT(name, kind, text)                                                        \
    {#name, text, kind, offsetof(struct hg_handshake_stats, name), NULL},
#include "front/handshake_stats.def"
#undef HG_HANDSHAKE_STAT
};
static const struct row hot_rows[] = {
#define HG_HOT_STAT(name, kind, text) {#name, text, kind, offsetof(struct hg_hotkeys, name), NULL},
    HG_HOT_STATS(HG_HOT_STAT)
#undef HG_HOT_STAT
};
static const struct row hot_worker_rows[] = {
#define HG_HOT_WORKER_STAT(name, kind, text)                                                       \
    {#name, text, kind, offsetof(struct hg_hot_worker, name), NULL},
    HG_HOT_WORKER_STATS(HG_HOT_WORKER_STAT)
#undef HG_HOT_WORKER_STAT
};
static const struct row binds_rows[] = {
#define HG_BINDS_STAT(name, kind, text) {#name, text, kind, offsetof(struct hg_binds, name), NULL},
    HG_BINDS_STATS(HG_BINDS_STAT)
#undef HG_BINDS_STAT
};

#define ROWS(rows) rows, HG_COUNT_OF(rows)
static const struct {
    const char *prefix, *labels;
    const struct row *rows;
    size_t count;
} tables[HG_METRICS_GROUPS] = {
    [HG_METRICS_OWN] = {"", "", ROWS(own_rows)},
    [HG_METRICS_WORKER] = {"headgate_worker_", "worker", ROWS(worker_rows)},
    [HG_METRICS_TENANT] = {"headgate_tenant_", "tenant", ROWS(lane_rows)},
    [HG_METRICS_TICKETS] = {"headgate_tickets_", "holder, upstream", ROWS(gate_rows)},
    [HG_METRICS_TENANT_GATE] = {"headgate_tenant_", "tenant, holder", ROWS(tenant_gate_rows)},
    [HG_METRICS_SERVER] = {"headgate_server_", "upstream, server", ROWS(server_rows)},
    [HG_METRICS_POOL] = {"headgate_pool_", "upstream, server, identity", ROWS(pool_rows)},
    [HG_METRICS_EMBEDDED] = {"headgate_embedded_", "upstream", ROWS(embedded_rows)},
    [HG_METRICS_CLUSTER] = {"headgate_cluster_", "upstream", ROWS(cluster_rows)},
    [HG_METRICS_LOGIN] = {"headgate_logins_", "", ROWS(login_rows)},
    [HG_METRICS_HANDSHAKES] = {"headgate_tls_handshakes_", "", ROWS(handshake_rows)},
    [HG_METRICS_HOT] = {"headgate_hotkey_engine_", "", ROWS(hot_rows)},
    [HG_METRICS_HOT_WORKER] = {"headgate_hotkey_engine_", "worker", ROWS(hot_worker_rows)},
    [HG_METRICS_BINDS] = {"headgate_bind_", "", ROWS(binds_rows)},
};

static struct hg_metric *lists[HG_METRICS_GROUPS];

/* ---- names ---- */

/* Rows whose names say their unit in front, or what `_total` says already. */
static const char *const renamed[][2] = {
    {"bytes_in", "received_bytes"},   {"bytes_out", "sent_bytes"},
    {"bytes_read", "received_bytes"}, {"bytes_written", "sent_bytes"},
    {"cmd_total", "requests"},        {"num_throttled", "throttled"},
    {"num_rejected", "rejected"},     {"throttle_wait_time", "throttle_wait_time_us"},
    {"slow", "slow_connections"},
};

static const struct {
    const char *suffix, *unit;
    unsigned decimals;
} units[] = {{"_us", "_seconds", 6}, {"_ms", "_seconds", 3}, {"_ns", "_seconds", 9}};

static void set_name(struct hg_metric *to, const char *prefix, const char *name)
{
    for (size_t i = 0; i < HG_COUNT_OF(renamed); i++)
        if (strcmp(name, renamed[i][0]) == 0)
            name = renamed[i][1];
    size_t len = strlen(name);
    const char *unit = "", *total = to->kind == HG_METRIC_COUNTER ? "_total" : "";
    for (size_t i = 0; i < HG_COUNT_OF(units); i++) {
        size_t suffix = strlen(units[i].suffix);
        if (len <= suffix || strcmp(name + len - suffix, units[i].suffix) != 0)
            continue;
        len -= suffix;
        unit = units[i].unit;
        to->decimals = units[i].decimals;
        break;
    }
    snprintf(to->name, sizeof to->name, "%s%.*s%s%s", prefix, (int)len, name, unit, total);
}

static void fill(struct hg_metric *to, enum hg_metric_group group, const struct row *row,
                 size_t index)
{
    bool grows = row->kind == COUNTER || row->kind == TOTAL;
    *to = (struct hg_metric){.row = row->name,
                             .labels = row->labels != NULL ? row->labels : tables[group].labels,
                             .help = row->help,
                             .kind = row->kind == HISTOGRAM ? HG_METRIC_HISTOGRAM
                                     : grows                ? HG_METRIC_COUNTER
                                                            : HG_METRIC_GAUGE,
                             .offset = row->offset};
    if (group != HG_METRICS_OWN) {
        set_name(to, tables[group].prefix, row->name);
    } else {
        snprintf(to->name, sizeof to->name, "%s", row->name);
        to->offset = index;
    }
    if (row->kind == HUNDREDTHS)
        to->decimals = 2;
}

/* Memory for a few hundred rows, kept to the end of the process. */
static struct hg_metric
    storage[HG_COUNT_OF(own_rows) + HG_COUNT_OF(worker_rows) + HG_COUNT_OF(lane_rows) +
            HG_COUNT_OF(gate_rows) + HG_COUNT_OF(tenant_gate_rows) + HG_COUNT_OF(server_rows) +
            HG_COUNT_OF(pool_rows) + HG_COUNT_OF(embedded_rows) + HG_COUNT_OF(cluster_rows) +
            HG_COUNT_OF(login_rows) + HG_COUNT_OF(handshake_rows) + HG_COUNT_OF(hot_rows) +
            HG_COUNT_OF(hot_worker_rows) + HG_COUNT_OF(binds_rows)];

void hg_metrics_init(void)
{
    struct hg_metric *next = storage;
    for (unsigned g = 0; g < HG_METRICS_GROUPS; g++) {
        lists[g] = next;
        for (size_t i = 0; i < tables[g].count; i++)
            fill(next++, (enum hg_metric_group)g, &tables[g].rows[i], i);
    }
    lists[HG_METRICS_OWN][HG_METRIC_CPU].decimals = 6;
    lists[HG_METRICS_OWN][HG_METRIC_HTTP_CPU].decimals = 9;
    lists[HG_METRICS_OWN][HG_METRIC_HOT_EPOCH].decimals = 3;
    lists[HG_METRICS_OWN][HG_METRIC_UPSTREAM_BACKLOG_AGE].decimals = 6;
    lists[HG_METRICS_OWN][HG_METRIC_SERVER_SERVICE].decimals = 6;
    lists[HG_METRICS_OWN][HG_METRIC_SERVER_WAIT].decimals = 6;
}

const struct hg_metric *hg_metrics_of(enum hg_metric_group group, size_t *ret_count)
{
    *ret_count = tables[group].count;
    return lists[group];
}

static const char *const kind_names[] = {"counter", "gauge", "histogram"};

void hg_metrics_describe(FILE *to)
{
    hg_metrics_init();
    for (unsigned g = 0; g < HG_METRICS_GROUPS; g++)
        for (size_t i = 0; i < tables[g].count; i++) {
            const struct hg_metric *metric = &lists[g][i];
            fprintf(to, "%s\t%s\t%s\t%s\n", metric->name, kind_names[metric->kind], metric->labels,
                    metric->help);
        }
}

/* ---- writing ---- */

/* "# HELP name text" or "# TYPE name kind" */
static void comment(struct hg_webtext *text, const char *word, const char *name, const char *rest)
{
    const char *const parts[] = {"# ", word, " ", name, " ", rest, "\n"};
    for (size_t i = 0; i < HG_COUNT_OF(parts); i++)
        hg_webtext_str(text, parts[i]);
}

void hg_metric_head(struct hg_webtext *text, const struct hg_metric *metric)
{
    comment(text, "HELP", metric->name, metric->help);
    comment(text, "TYPE", metric->name, kind_names[metric->kind]);
}

static void begin_line(struct hg_webtext *text, const struct hg_metric *metric, const char *labels)
{
    hg_webtext_str(text, metric->name);
    if (labels[0] != '\0') {
        hg_webtext_add(text, "{", 1);
        hg_webtext_str(text, labels);
        hg_webtext_add(text, "}", 1);
    }
    hg_webtext_add(text, " ", 1);
}

void hg_metric_line(struct hg_webtext *text, const struct hg_metric *metric, const char *labels,
                    uint64_t value)
{
    begin_line(text, metric, labels);
    hg_webtext_fixed(text, value, metric->decimals);
    hg_webtext_add(text, "\n", 1);
}

void hg_metric_inf(struct hg_webtext *text, const struct hg_metric *metric, const char *labels)
{
    begin_line(text, metric, labels);
    hg_webtext_str(text, "+Inf\n");
}

void hg_metric_units(struct hg_webtext *text, const struct hg_metric *metric, const char *labels,
                     uint64_t value)
{
    if (value == UINT64_MAX)
        hg_metric_inf(text, metric, labels);
    else
        hg_metric_line(text, metric, labels, value);
}

void hg_metric_label(char labels[HG_METRIC_LABELS_MAX], const char *name, const char *value)
{
    struct hg_webtext text;
    size_t len = strlen(labels);
    hg_webtext_init(&text);
    hg_webtext_label(&text, value);
    snprintf(labels + len, HG_METRIC_LABELS_MAX - len, "%s%s=\"%.*s\"", len > 0 ? "," : "", name,
             (int)text.len, text.at != NULL ? text.at : "");
    hg_webtext_fini(&text);
}

/* ---- histograms ---- */

/* Microseconds: from a local answer to the longest that a request may take. */
static const struct {
    uint64_t us;
    const char *le;
} bounds[HG_METRIC_BUCKETS] = {
    {50, "5e-05"},    {100, "0.0001"},  {250, "0.00025"}, {500, "0.0005"},  {1000, "0.001"},
    {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"}, {50000, "0.05"},
    {100000, "0.1"},  {250000, "0.25"}, {1000000, "1"},   {5000000, "5"},
};

void hg_metric_hist_add(struct hg_metric_hist *to, const struct hg_hist *hist)
{
    uint32_t at = 0;
    if (hg_counter_get(&hist->total) == 0)
        return;
    for (unsigned i = 0; i < HG_METRIC_BUCKETS; i++) {
        uint32_t end = hg_hist_bucket_of(bounds[i].us);
        for (; at <= end; at++)
            to->buckets[i] += hg_counter_get(&hist->bucket[at]);
    }
    for (; at < HG_HIST_BUCKETS; at++)
        to->buckets[HG_METRIC_BUCKETS] += hg_counter_get(&hist->bucket[at]);
    to->sum_us += hg_counter_get(&hist->sum);
}

uint64_t hg_metric_hist_count(const struct hg_metric_hist *hist)
{
    uint64_t count = 0;
    for (unsigned i = 0; i <= HG_METRIC_BUCKETS; i++)
        count += hist->buckets[i];
    return count;
}

static void hist_line(struct hg_webtext *text, const struct hg_metric *metric, const char *suffix,
                      const char *labels, const char *le)
{
    hg_webtext_str(text, metric->name);
    hg_webtext_str(text, suffix);
    if (labels[0] != '\0' || le != NULL) {
        hg_webtext_str(text, "{");
        hg_webtext_str(text, labels);
        if (le != NULL) {
            hg_webtext_str(text, labels[0] != '\0' ? ",le=\"" : "le=\"");
            hg_webtext_str(text, le);
            hg_webtext_str(text, "\"");
        }
        hg_webtext_str(text, "}");
    }
    hg_webtext_str(text, " ");
}

void hg_metric_hist_lines(struct hg_webtext *text, const struct hg_metric *metric,
                          const char *labels, const struct hg_metric_hist *hist)
{
    uint64_t below = 0;
    for (unsigned i = 0; i <= HG_METRIC_BUCKETS; i++) {
        below += hist->buckets[i];
        hist_line(text, metric, "_bucket", labels, i < HG_METRIC_BUCKETS ? bounds[i].le : "+Inf");
        hg_webtext_uint(text, below);
        hg_webtext_str(text, "\n");
    }
    hist_line(text, metric, "_sum", labels, NULL);
    hg_webtext_fixed(text, hist->sum_us, 6);
    hg_webtext_str(text, "\n");
    hist_line(text, metric, "_count", labels, NULL);
    hg_webtext_uint(text, below);
    hg_webtext_str(text, "\n");
}
