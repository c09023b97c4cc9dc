// metrics - what /metrics shows, as one list made from all tables of statistics
// SPDX-License-Identifier: BSD-3-Clause
//
// Names follow from the rows': a prefix for the table, the row's name, the unit, `_total` for what
// only grows. Times are in seconds, whatever the row counts in. Help is the row's sentence. So a
// row that is added to a table is a metric without further work.
//
// The list never changes after hg_metrics_init, which comes first; any thread may read it.
#ifndef HG_APP_METRICS_H
#define HG_APP_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "app/webtext.h"
#include "base/hist.h"

enum hg_metric_kind { HG_METRIC_COUNTER, HG_METRIC_GAUGE, HG_METRIC_HISTOGRAM };

/* Where a row comes from. */
enum hg_metric_group {
    HG_METRICS_OWN,         /* metrics.def */
    HG_METRICS_WORKER,      /* front/worker_stats.h */
    HG_METRICS_TENANT,      /* front/lane.def */
    HG_METRICS_TICKETS,     /* front/gate.def, of holders */
    HG_METRICS_TENANT_GATE, /* of these, those told of each tenant */
    HG_METRICS_SERVER,      /* back/upstream_stats.def */
    HG_METRICS_POOL,        /* back/pool_stats.def */
    HG_METRICS_EMBEDDED,    /* back/embedded_stats.def */
    HG_METRICS_CLUSTER,     /* back/rediscluster_stats.def */
    HG_METRICS_LOGIN,       /* app/login_stats.def */
    HG_METRICS_HANDSHAKES,  /* front/handshake_stats.def */
    HG_METRICS_HOT,         /* app/hotkeys.h */
    HG_METRICS_HOT_WORKER,  /* front/hotshare.h */
    HG_METRICS_BINDS,       /* app/binds.h */
    HG_METRICS_GROUPS
};

struct hg_metric {
    char name[80];
    const char *row;    /* the table's name of it */
    const char *labels; /* their names, for the manual */
    const char *help;
    enum hg_metric_kind kind;
    unsigned decimals; /* the row counts in units of 10^-decimals */
    size_t offset;     /* of the counter in the table's struct, or the row's index in an array */
};

/* Rows of metrics.def, as indexes into their group. */
enum hg_metric_own {
#define HG_METRIC(NAME, name, kind, labels, help) HG_METRIC_##NAME,
#include "app/metrics.def"
#undef HG_METRIC
    HG_METRICS_OWN_COUNT
};

/* Once, before any other call. */
void hg_metrics_init(void);
const struct hg_metric *hg_metrics_of(enum hg_metric_group group, size_t *ret_count);
/* --describe-metrics: name, type, labels, help. */
void hg_metrics_describe(FILE *to);

/* ---- writing ---- */

/* HELP and TYPE. */
void hg_metric_head(struct hg_webtext *text, const struct hg_metric *metric);
/* One line; `labels` without braces, "" for none. */
void hg_metric_line(struct hg_webtext *text, const struct hg_metric *metric, const char *labels,
                    uint64_t value);
void hg_metric_inf(struct hg_webtext *text, const struct hg_metric *metric, const char *labels);
/* value, or +Inf when it is UINT64_MAX. */
void hg_metric_units(struct hg_webtext *text, const struct hg_metric *metric, const char *labels,
                     uint64_t value);
/* Lines of a histogram of microseconds: buckets, sum in seconds, count. */
#define HG_METRIC_BUCKETS 14
struct hg_metric_hist {
    uint64_t buckets[HG_METRIC_BUCKETS + 1]; /* not added up; the last is what is beyond */
    uint64_t sum_us;
};
void hg_metric_hist_add(struct hg_metric_hist *to, const struct hg_hist *hist);
uint64_t hg_metric_hist_count(const struct hg_metric_hist *hist);
void hg_metric_hist_lines(struct hg_webtext *text, const struct hg_metric *metric,
                          const char *labels, const struct hg_metric_hist *hist);
/* Appends name="value" to labels, with a comma in front when there are some; cut if too long. */
#define HG_METRIC_LABELS_MAX 2048
void hg_metric_label(char labels[HG_METRIC_LABELS_MAX], const char *name, const char *value);

#endif
