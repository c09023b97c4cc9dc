// webmetrics_stores - /metrics: tickets, upstreams, their servers and pools
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "app/metrics.h"
#include "app/upstreams_view.h"
#include "app/web_own.h"
#include "back/rediscluster.h"
#include "base/clock.h"
#include "front/gateset.h"

#define OWN(NAME) (&hg_metrics_of(HG_METRICS_OWN, &(size_t){0})[HG_METRIC_##NAME])

/* ---- tickets ---- */

/* The ingress holder, or all of one kind of an upstream, with its label. */
struct holder {
    char labels[HG_METRIC_LABELS_MAX];
    struct hg_gateset_sum sum;
};

static struct holder *list_holders(struct hg_web *web, const struct hg_directory *directory,
                                   size_t *ret_count)
{
    size_t count = 1 + directory->upstream_count * HG_TICKET_KINDS;
    struct holder *list = calloc(count, sizeof *list);
    if (list == NULL)
        return NULL;
    hg_gateset_sum_one(&web->process->front.ingress, &list[0].sum);
    hg_metric_label(list[0].labels, "holder", hg_gate_place_name(HG_GATE_INGRESS));
    for (size_t i = 1; i < count; i++) {
        struct hg_upstream *upstream = directory->upstreams[(i - 1) / HG_TICKET_KINDS];
        unsigned kind = (unsigned)((i - 1) % HG_TICKET_KINDS);
        hg_gateset_sum(upstream->gates, (enum hg_ticket_kind)kind, &list[i].sum);
        hg_metric_label(list[i].labels, "upstream", upstream->name);
        hg_metric_label(list[i].labels, "holder",
                        hg_gate_place_name((enum hg_gate_place)(HG_GATE_READ + kind)));
    }
    *ret_count = count;
    return list;
}

static uint64_t not_negative(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static uint64_t holder_gauge(const struct hg_gateset_sum *sum, enum hg_metric_own which)
{
    switch (which) {
    case HG_METRIC_TICKETS_SIZE:
        return not_negative(sum->size);
    case HG_METRIC_TICKETS_OUT:
        return not_negative(sum->out);
    case HG_METRIC_TICKETS_STRANDED:
        return not_negative(sum->stranded);
    case HG_METRIC_TICKETS_QUEUED:
        return not_negative(sum->waiting);
    default:
        return sum->overloaded;
    }
}

static void ticket_gauges(struct hg_webtext *text, const struct holder *list, size_t count)
{
    static const enum hg_metric_own gauges[] = {
        HG_METRIC_TICKETS_SIZE, HG_METRIC_TICKETS_OUT, HG_METRIC_TICKETS_STRANDED,
        HG_METRIC_TICKETS_OVERLOADED, HG_METRIC_TICKETS_QUEUED};
    size_t own_count;
    const struct hg_metric *own = hg_metrics_of(HG_METRICS_OWN, &own_count);
    for (size_t g = 0; g < HG_COUNT_OF(gauges); g++) {
        hg_metric_head(text, &own[gauges[g]]);
        for (size_t i = 0; i < count; i++)
            hg_metric_line(text, &own[gauges[g]], list[i].labels,
                           holder_gauge(&list[i].sum, gauges[g]));
    }
}

static void tickets(struct hg_web *web, const struct hg_directory *directory,
                    struct hg_webtext *text)
{
    size_t count, rows_count;
    const struct hg_metric *rows = hg_metrics_of(HG_METRICS_TICKETS, &rows_count);
    struct holder *list = list_holders(web, directory, &count);
    if (list == NULL) {
        text->failed = true;
        return;
    }
    ticket_gauges(text, list, count);
    for (size_t r = 0; r < rows_count; r++) {
        hg_metric_head(text, &rows[r]);
        for (size_t i = 0; i < count; i++)
            hg_metric_line(text, &rows[r], list[i].labels, list[i].sum.counts[rows[r].offset]);
    }
    hg_metric_head(text, OWN(TICKETS_WAIT));
    for (size_t i = 0; i < count; i++) {
        struct hg_metric_hist hist = {.sum_us = 0};
        hg_metric_hist_add(&hist, &list[i].sum.waits);
        hg_metric_hist_lines(text, OWN(TICKETS_WAIT), list[i].labels, &hist);
    }
    free(list);
}

/* One gauge of each server's holders. */
static void server_tickets(const struct hg_directory *directory, struct hg_webtext *text,
                           enum hg_metric_own which)
{
    size_t own_count;
    const struct hg_metric *metric = &hg_metrics_of(HG_METRICS_OWN, &own_count)[which];
    hg_metric_head(text, metric);
    for (size_t u = 0; u < directory->upstream_count; u++) {
        struct hg_gateset *set = directory->upstreams[u]->gates;
        pthread_mutex_lock(&set->lock);
        for (unsigned i = 0; i < hg_gateset_count(set) * HG_TICKET_KINDS; i++) {
            struct hg_gateshare *share = hg_gateset_at(set, i / HG_TICKET_KINDS);
            struct hg_gate_holder *holder = &share->holders[i % HG_TICKET_KINDS];
            char labels[HG_METRIC_LABELS_MAX] = "";
            if (!hg_gateset_shows(share))
                continue;
            hg_metric_label(labels, "upstream", directory->upstreams[u]->name);
            hg_metric_label(labels, "server", share->server);
            hg_metric_label(labels, "holder", hg_gate_place_name(holder->place));
            hg_metric_line(text, metric, labels,
                           which == HG_METRIC_SERVER_TICKETS_SIZE
                               ? not_negative(hg_ticket_size(&holder->ticket))
                           : which == HG_METRIC_SERVER_TICKETS_OUT
                               ? not_negative(hg_ticket_out(&holder->ticket))
                               : not_negative(atomic_load(&holder->waiting)));
        }
        pthread_mutex_unlock(&set->lock);
    }
}

/* ---- upstreams ---- */

static void upstream_line(struct hg_webtext *text, const struct hg_metric *metric,
                          const struct hg_upstream *upstream, const char *type, uint64_t value)
{
    char labels[HG_METRIC_LABELS_MAX] = "";
    hg_metric_label(labels, "upstream", upstream->name);
    if (type != NULL)
        hg_metric_label(labels, "type", type);
    hg_metric_line(text, metric, labels, value);
}

static uint64_t age_us(uint64_t since_us)
{
    uint64_t now_us = hg_now_us();
    return since_us != 0 && now_us > since_us ? now_us - since_us : 0;
}

static void upstream_metric(struct hg_web *web, const struct hg_directory *directory,
                            struct hg_webtext *text, enum hg_metric_own which)
{
    size_t own_count;
    const struct hg_metric *metric = &hg_metrics_of(HG_METRICS_OWN, &own_count)[which];
    hg_metric_head(text, metric);
    for (size_t i = 0; i < directory->upstream_count; i++) {
        struct hg_upstream *upstream = directory->upstreams[i];
        struct hg_probe_stats probe = hg_gateset_probe_stats(upstream->gates);
        uint64_t since_us;
        int64_t backlog = hg_gateset_backlog(upstream->gates, &since_us);
        switch (which) {
        case HG_METRIC_UPSTREAM_INFO:
            upstream_line(text, metric, upstream, upstream->kind, 1);
            break;
        case HG_METRIC_UPSTREAM_UP:
            upstream_line(text, metric, upstream, NULL, hg_upstream_is_alive(directory, upstream));
            break;
        case HG_METRIC_UPSTREAM_BACKLOG:
            upstream_line(text, metric, upstream, NULL, not_negative(backlog));
            break;
        case HG_METRIC_UPSTREAM_BACKLOG_AGE:
            upstream_line(text, metric, upstream, NULL, age_us(since_us));
            break;
        case HG_METRIC_UPSTREAM_EVICTED:
            upstream_line(text, metric, upstream, NULL, hg_web_evicted(web, directory, upstream));
            break;
        case HG_METRIC_TICKETS_PROBED:
            upstream_line(text, metric, upstream, "stable", probe.probed_stable);
            upstream_line(text, metric, upstream, "up", probe.probed_up);
            upstream_line(text, metric, upstream, "down", probe.probed_down);
            break;
        case HG_METRIC_TICKETS_RESIZED:
            upstream_line(text, metric, upstream, "increased", probe.increased);
            upstream_line(text, metric, upstream, "decreased", probe.decreased);
            break;
        default:
            upstream_line(text, metric, upstream, NULL, probe.stalls);
        }
    }
}

/* ---- servers, and their pools ---- */

struct server {
    const struct hg_upstream_shared *remote;
    const struct hg_server *server;
    char labels[HG_METRIC_LABELS_MAX];
    uint64_t sums[HG_UPSTREAM_STATS];
    struct hg_pool_sum *pools; /* by identity */
    uint32_t identities;
};

static struct server *list_servers(const struct hg_directory *directory, size_t *ret_count)
{
    size_t room = 0, count = 0;
    for (size_t i = 0; i < directory->upstream_count; i++)
        room += hg_upstream_servers(directory, directory->upstreams[i]);
    struct server *list = calloc(room + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < directory->upstream_count; i++) {
        const struct hg_upstream *upstream = directory->upstreams[i];
        const struct hg_upstream_shared *remote = hg_upstream_remote(directory, upstream);
        for (uint32_t s = 0;
             remote != NULL && s < hg_upstream_servers(directory, upstream) && count < room; s++) {
            struct server *to = &list[count++];
            to->remote = remote;
            to->server = &remote->servers[s];
            hg_metric_label(to->labels, "upstream", upstream->name);
            hg_metric_label(to->labels, "server", to->server->address);
            hg_upstream_server_sum(upstream, to->server->address, to->sums);
            to->identities = hg_identities_count(&remote->identities);
            to->pools = calloc(to->identities, sizeof *to->pools);
            if (to->pools != NULL)
                hg_server_sum_pools(to->server, to->pools, to->identities);
        }
    }
    *ret_count = count;
    return list;
}

static uint64_t breaker_value(const struct hg_server *server)
{
    switch (hg_breaker_state(&server->breaker)) {
    case HG_BREAKER_CLOSED:
        return 0;
    case HG_BREAKER_RAMP:
        return 1;
    case HG_BREAKER_HALF_OPEN:
        return 2;
    default:
        return 3;
    }
}

static void pool_lines(struct hg_webtext *text, const struct hg_metric *metric,
                       const struct server *server)
{
    const struct hg_identities *identities = &server->remote->identities;
    for (uint32_t id = 0; server->pools != NULL && id < server->identities; id++) {
        char who[160], labels[HG_METRIC_LABELS_MAX];
        if (!server->pools[id].known)
            continue;
        hg_upstream_identity_text(identities, server->pools, id, who, sizeof who);
        memcpy(labels, server->labels, sizeof labels);
        hg_metric_label(labels, "identity", who);
        hg_metric_line(text, metric, labels, server->pools[id].values[metric->offset]);
    }
}

static void servers(const struct hg_directory *directory, struct hg_webtext *text)
{
    size_t count, server_rows, pool_rows;
    const struct hg_metric *of_server = hg_metrics_of(HG_METRICS_SERVER, &server_rows);
    const struct hg_metric *of_pool = hg_metrics_of(HG_METRICS_POOL, &pool_rows);
    struct server *list = list_servers(directory, &count);
    if (list == NULL) {
        text->failed = true;
        return;
    }
    hg_metric_head(text, OWN(BREAKER));
    for (size_t i = 0; i < count; i++)
        hg_metric_line(text, OWN(BREAKER), list[i].labels, breaker_value(list[i].server));
    hg_metric_head(text, OWN(CONNECT_TARGET));
    for (size_t i = 0; i < count; i++)
        hg_metric_line(text, OWN(CONNECT_TARGET), list[i].labels,
                       hg_server_connect_target(list[i].server));
    for (size_t r = 0; r < server_rows; r++) {
        hg_metric_head(text, &of_server[r]);
        for (size_t i = 0; i < count; i++)
            hg_metric_line(text, &of_server[r], list[i].labels, list[i].sums[of_server[r].offset]);
    }
    for (size_t r = 0; r < pool_rows; r++) {
        hg_metric_head(text, &of_pool[r]);
        for (size_t i = 0; i < count; i++)
            pool_lines(text, &of_pool[r], &list[i]);
    }
    for (size_t i = 0; i < count; i++)
        free(list[i].pools);
    free(list);
}

/* ---- embedded stores, clusters ---- */

static void embedded(const struct hg_directory *directory, struct hg_webtext *text)
{
    size_t rows_count;
    const struct hg_metric *rows = hg_metrics_of(HG_METRICS_EMBEDDED, &rows_count);
    struct hg_embedded_stats *stats = calloc(directory->upstream_count + 1, sizeof *stats);
    bool *is = calloc(directory->upstream_count + 1, sizeof *is);
    for (size_t i = 0; stats != NULL && is != NULL && i < directory->upstream_count; i++)
        is[i] = hg_upstream_embedded(directory, directory->upstreams[i], &stats[i]);
    for (size_t r = 0; r < rows_count; r++) {
        hg_metric_head(text, &rows[r]);
        for (size_t i = 0; stats != NULL && is != NULL && i < directory->upstream_count; i++)
            if (is[i])
                upstream_line(text, &rows[r], directory->upstreams[i], NULL,
                              *(const uint64_t *)((const char *)&stats[i] + rows[r].offset));
    }
    text->failed |= stats == NULL || is == NULL;
    free(stats);
    free(is);
}

static void clusters(const struct hg_directory *directory, struct hg_webtext *text)
{
    size_t rows_count;
    const struct hg_metric *rows = hg_metrics_of(HG_METRICS_CLUSTER, &rows_count);
    for (size_t r = 0; r < rows_count; r++) {
        hg_metric_head(text, &rows[r]);
        for (size_t i = 0; i < directory->upstream_count; i++) {
            uint64_t values[HG_REDISCLUSTER_STATS];
            if (hg_upstream_cluster(directory, directory->upstreams[i], values))
                upstream_line(text, &rows[r], directory->upstreams[i], NULL,
                              values[rows[r].offset]);
        }
    }
}

void hg_web_metrics_stores(const struct hg_web_view *view, struct hg_web *web,
                           struct hg_webtext *text)
{
    static const enum hg_metric_own all[] = {
        HG_METRIC_TICKETS_PROBED,       HG_METRIC_TICKETS_RESIZED, HG_METRIC_TICKETS_STALLS,
        HG_METRIC_UPSTREAM_INFO,        HG_METRIC_UPSTREAM_UP,     HG_METRIC_UPSTREAM_BACKLOG,
        HG_METRIC_UPSTREAM_BACKLOG_AGE, HG_METRIC_UPSTREAM_EVICTED};
    tickets(web, view->directory, text);
    server_tickets(view->directory, text, HG_METRIC_SERVER_TICKETS_SIZE);
    server_tickets(view->directory, text, HG_METRIC_SERVER_TICKETS_OUT);
    server_tickets(view->directory, text, HG_METRIC_SERVER_TICKETS_QUEUED);
    hg_web_metrics_servers(view->directory, text);
    for (size_t i = 0; i < HG_COUNT_OF(all); i++)
        upstream_metric(web, view->directory, text, all[i]);
    servers(view->directory, text);
    embedded(view->directory, text);
    clusters(view->directory, text);
}
