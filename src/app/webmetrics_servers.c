// webmetrics_servers - /metrics: what the tickets' side knows of each server, and what is throttled
// SPDX-License-Identifier: BSD-3-Clause
#include "app/metrics.h"
#include "app/refused.h"
#include "app/web_own.h"
#include "base/throttle.h"
#include "front/gateset.h"

static const struct hg_metric *own(enum hg_metric_own which)
{
    size_t count;
    return &hg_metrics_of(HG_METRICS_OWN, &count)[which];
}

/* Lines of one server. Under its set's lock. */
typedef void server_lines(struct hg_webtext *text, const struct hg_metric *metric,
                          const struct hg_upstream *upstream, struct hg_gateshare *share,
                          const char *labels);

static void each_server(const struct hg_directory *directory, struct hg_webtext *text,
                        enum hg_metric_own which, server_lines *lines)
{
    hg_metric_head(text, own(which));
    for (size_t u = 0; u < directory->upstream_count; u++) {
        struct hg_gateset *set = directory->upstreams[u]->gates;
        pthread_mutex_lock(&set->lock);
        for (unsigned i = 0; i < hg_gateset_count(set); i++) {
            struct hg_gateshare *share = hg_gateset_at(set, i);
            char labels[HG_METRIC_LABELS_MAX] = "";
            if (!hg_gateset_shows(share))
                continue;
            hg_metric_label(labels, "upstream", directory->upstreams[u]->name);
            hg_metric_label(labels, "server", share->server);
            lines(text, own(which), directory->upstreams[u], share, labels);
        }
        pthread_mutex_unlock(&set->lock);
    }
}

static void with_label(struct hg_webtext *text, const struct hg_metric *metric, const char *labels,
                       const char *name, const char *value, uint64_t number)
{
    char more[HG_METRIC_LABELS_MAX];
    snprintf(more, sizeof more, "%s", labels);
    hg_metric_label(more, name, value);
    hg_metric_line(text, metric, more, number);
}

static void service_lines(struct hg_webtext *text, const struct hg_metric *metric,
                          const struct hg_upstream *upstream, struct hg_gateshare *share,
                          const char *labels)
{
    (void)upstream;
    with_label(text, metric, labels, "percentile", "50", share->seen.p50_us);
    with_label(text, metric, labels, "percentile", "99", share->seen.p99_us);
}

static void wait_lines(struct hg_webtext *text, const struct hg_metric *metric,
                       const struct hg_upstream *upstream, struct hg_gateshare *share,
                       const char *labels)
{
    (void)upstream;
    with_label(text, metric, labels, "percentile", "99", share->seen.waited_p99_us);
}

static void slow_lines(struct hg_webtext *text, const struct hg_metric *metric,
                       const struct hg_upstream *upstream, struct hg_gateshare *share,
                       const char *labels)
{
    (void)upstream;
    hg_metric_line(text, metric, labels, share->seen.slow.is_slow);
}

static void refused_lines(struct hg_webtext *text, const struct hg_metric *metric,
                          const struct hg_upstream *upstream, struct hg_gateshare *share,
                          const char *labels)
{
    uint64_t sums[HG_REFUSED_REASONS];
    hg_refused_sum(upstream, share, sums);
    for (unsigned r = 0; r < HG_REFUSED_REASONS; r++)
        with_label(text, metric, labels, "reason", hg_refused_name((enum hg_refused)r), sums[r]);
}

static void throttling(struct hg_webtext *text)
{
    const struct hg_metric *metric = own(HG_METRIC_THROTTLING);
    hg_metric_head(text, metric);
    for (unsigned what = 0; what < HG_THROTTLES; what++)
        with_label(text, metric, "", "what", hg_throttle_name((enum hg_throttle)what),
                   hg_throttle_now((enum hg_throttle)what));
}

void hg_web_metrics_servers(const struct hg_directory *directory, struct hg_webtext *text)
{
    each_server(directory, text, HG_METRIC_SERVER_SERVICE, service_lines);
    each_server(directory, text, HG_METRIC_SERVER_WAIT, wait_lines);
    each_server(directory, text, HG_METRIC_SERVER_SLOW, slow_lines);
    each_server(directory, text, HG_METRIC_REFUSED, refused_lines);
    throttling(text);
}
