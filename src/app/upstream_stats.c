// upstream_stats - what `stats upstreams` and `stats pool` say of an upstream
// SPDX-License-Identifier: BSD-3-Clause
//
// A server's counters go on when a reload exchanges the generation: what is shown is the sum over
// those that there are, and of what those that have gone have left. Housekeeping's, but for
// hg_upstream_carry.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/upstream_own.h"
#include "app/upstreams_view.h"
#include "base/log.h"
#include "proto/status.h"

static void add_sums(uint64_t *sums, const uint64_t *more, bool counters_only)
{
    for (unsigned s = 0; s < HG_UPSTREAM_STATS; s++)
        if (!counters_only || !hg_upstream_stat_rows[s].gauge)
            sums[s] += more[s];
}

static const struct hg_server *find_server(const struct hg_upstream_shared *remote,
                                           const char *address)
{
    for (uint32_t i = 0; i < hg_upstream_count_servers(remote); i++)
        if (strcmp(remote->servers[i].address, address) == 0)
            return &remote->servers[i];
    return NULL;
}

/* NULL: no memory. */
static struct hg_carried *carried_of(struct hg_impl *impl, const char *address)
{
    for (size_t i = 0; i < impl->carried_count; i++)
        if (strcmp(impl->carried[i].address, address) == 0)
            return &impl->carried[i];
    struct hg_carried *list =
        realloc(impl->carried, (impl->carried_count + 1) * sizeof *impl->carried);
    if (list == NULL)
        return NULL;
    impl->carried = list;
    struct hg_carried *carried = &list[impl->carried_count];
    *carried = (struct hg_carried){.address = strdup(address)};
    if (carried->address == NULL)
        return NULL;
    impl->carried_count++;
    return carried;
}

void hg_upstream_carry(struct hg_impl *impl, const struct hg_parts *parts)
{
    for (uint32_t i = 0; parts->remote != NULL && i < hg_upstream_count_servers(parts->remote);
         i++) {
        const struct hg_server *server = &parts->remote->servers[i];
        struct hg_carried *carried = carried_of(impl, server->address);
        uint64_t sums[HG_UPSTREAM_STATS];
        if (carried == NULL) {
            hg_log_error("server=%s msg=\"no memory: its counters begin again\"", server->address);
            continue;
        }
        hg_server_sum(server, sums);
        add_sums(carried->sums, sums, true);
    }
}

void hg_upstream_server_sum(const struct hg_upstream *upstream, const char *address, uint64_t *sums)
{
    struct hg_impl *impl = upstream->impl;
    uint64_t more[HG_UPSTREAM_STATS];
    memset(sums, 0, HG_UPSTREAM_STATS * sizeof sums[0]);
    pthread_mutex_lock(&impl->lock);
    for (size_t i = 0; i < impl->carried_count; i++)
        if (strcmp(impl->carried[i].address, address) == 0)
            add_sums(sums, impl->carried[i].sums, true);
    HG_LIST_EACH(node, &impl->parts)
    {
        const struct hg_parts *parts = HG_CONTAINER_OF(node, struct hg_parts, node);
        const struct hg_server *server =
            parts->remote != NULL ? find_server(parts->remote, address) : NULL;
        if (server == NULL)
            continue;
        hg_server_sum(server, more);
        add_sums(sums, more, false);
    }
    pthread_mutex_unlock(&impl->lock);
}

void hg_upstream_remote_stats(const struct hg_upstream *upstream, struct hg_job *job)
{
    char row[256];
    const char *name = upstream->name;
    const struct hg_upstream_shared *remote = hg_parts_now(upstream)->remote;
    for (uint32_t i = 0; i < hg_upstream_count_servers(remote); i++) {
        const struct hg_server *server = &remote->servers[i];
        uint64_t sums[HG_UPSTREAM_STATS];
        char error[HG_SERVER_ERROR_BYTES];
        hg_upstream_server_sum(upstream, server->address, sums);
        snprintf(row, sizeof row, "%s:%u:address", name, i);
        hg_job_stat(job, row, "%s", server->address);
        snprintf(row, sizeof row, "%s:%u:state", name, i);
        hg_job_stat(job, row, "%s", hg_server_state(server));
        snprintf(row, sizeof row, "%s:%u:connect_target", name, i);
        hg_job_stat(job, row, "%u", hg_server_connect_target(server));
        snprintf(row, sizeof row, "%s:%u:last_error", name, i);
        hg_job_stat(job, row, "%s", hg_server_last_error(server, error));
        for (unsigned s = 0; s < HG_UPSTREAM_STATS; s++) {
            snprintf(row, sizeof row, "%s:%u:%s", name, i, hg_upstream_stat_rows[s].name);
            hg_job_stat(job, row, "%llu", (unsigned long long)sums[s]);
        }
    }
}

void hg_upstream_cluster_stats(const struct hg_upstream *upstream, struct hg_job *job)
{
    char row[256];
    const char *name = upstream->name;
    uint64_t values[HG_REDISCLUSTER_STATS];
    hg_rediscluster_stats(hg_parts_now(upstream)->cluster, values);
    for (unsigned s = 0; s < HG_REDISCLUSTER_STATS; s++) {
        snprintf(row, sizeof row, "%s:%s", name, hg_rediscluster_stat_rows[s].name);
        hg_job_stat(job, row, "%llu", (unsigned long long)values[s]);
    }
    hg_upstream_remote_stats(upstream, job);
}

void hg_upstream_embedded_stats(const struct hg_upstream *upstream, struct hg_job *job)
{
    char row[256];
    const char *name = upstream->name;
    struct hg_embedded_stats stats;
    hg_embedded_stats_read(hg_parts_now(upstream)->embedded, &stats);
#define HG_EMBEDDED_STAT(field, kind, help)                                                        \
    snprintf(row, sizeof row, "%s:" #field, name);                                                 \
    hg_job_stat(job, row, "%llu", (unsigned long long)stats.field);
#include "back/embedded_stats.def"
#undef HG_EMBEDDED_STAT
}

/* Two passwords of one user are two identities, of which the later has its number behind it. */
void hg_upstream_identity_text(const struct hg_identities *identities,
                               const struct hg_pool_sum *sums, uint32_t id, char *out, size_t cap)
{
    const struct hg_identity *identity = hg_identities_at(identities, id);
    bool twin = false;
    if (id == 0) {
        snprintf(out, cap, "own");
        return;
    }
    for (uint32_t i = 1; i < id && !twin; i++) {
        const struct hg_identity *other = hg_identities_at(identities, i);
        twin = sums[i].known && other->database == identity->database &&
               strcmp(other->user, identity->user) == 0;
    }
    int len = snprintf(out, cap, "%.128s/%u", identity->user, identity->database);
    if (twin && len > 0)
        snprintf(out + len, cap - (size_t)len, "#%u", id);
}

static void pool_row(const char *prefix, const struct hg_pool_sum *sum, struct hg_job *job)
{
    char row[384];
    for (unsigned s = 0; s < HG_POOL_STATS; s++) {
        unsigned long long value = sum->values[s];
        snprintf(row, sizeof row, "%s:%s", prefix, hg_pool_stat_rows[s].name);
        if (hg_pool_stat_rows[s].kind == HG_POOL_STAT_HUNDREDTHS)
            hg_job_stat(job, row, "%llu.%02llu", value / 100, value % 100);
        else
            hg_job_stat(job, row, "%llu", value);
    }
}

void hg_upstream_pool_stats(struct hg_upstream *upstream, struct hg_job *job)
{
    const struct hg_parts *parts = hg_parts_now(upstream);
    if (parts == NULL || parts->remote == NULL)
        return;
    const struct hg_identities *identities = &parts->remote->identities;
    uint32_t count = hg_identities_count(identities);
    struct hg_pool_sum *sums = calloc(count, sizeof *sums);
    if (sums == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
        return;
    }
    for (uint32_t i = 0; i < hg_upstream_count_servers(parts->remote); i++) {
        hg_server_sum_pools(&parts->remote->servers[i], sums, count);
        for (uint32_t id = 0; id < count; id++) {
            char text[160], prefix[320];
            if (!sums[id].known)
                continue;
            hg_upstream_identity_text(identities, sums, id, text, sizeof text);
            snprintf(prefix, sizeof prefix, "%s:%u:%s", upstream->name, i, text);
            pool_row(prefix, &sums[id], job);
        }
    }
    free(sums);
}

void hg_upstream_stats(struct hg_upstream *upstream, struct hg_job *job)
{
    char row[256];
    snprintf(row, sizeof row, "%s:kind", upstream->name);
    hg_job_stat(job, row, "%s", upstream->kind);
    if (hg_parts_now(upstream) != NULL)
        hg_impl_of(upstream)->kind->stats(upstream, job);
}

/* ---- for those outside ---- */

static const struct hg_parts *parts_in(const struct hg_directory *directory,
                                       const struct hg_upstream *upstream)
{
    const struct hg_generation *generation = hg_directory_generation(directory, upstream);
    return generation != NULL ? hg_parts_of(generation) : NULL;
}

const struct hg_upstream_shared *hg_upstream_remote(const struct hg_directory *directory,
                                                    const struct hg_upstream *upstream)
{
    const struct hg_parts *parts = parts_in(directory, upstream);
    return parts != NULL ? parts->remote : NULL;
}

uint32_t hg_upstream_servers(const struct hg_directory *directory,
                             const struct hg_upstream *upstream)
{
    const struct hg_upstream_shared *remote = hg_upstream_remote(directory, upstream);
    return remote != NULL ? hg_upstream_count_servers(remote) : 0;
}

bool hg_upstream_is_alive(const struct hg_directory *directory, const struct hg_upstream *upstream)
{
    const struct hg_upstream_shared *remote = hg_upstream_remote(directory, upstream);
    for (uint32_t i = 0; remote != NULL && i < hg_upstream_count_servers(remote); i++)
        if (hg_server_may_send(&remote->servers[i]))
            return true;
    return remote == NULL;
}

bool hg_upstream_is_server_alive(const struct hg_directory *directory,
                                 const struct hg_upstream *upstream, const char *address)
{
    const struct hg_upstream_shared *remote = hg_upstream_remote(directory, upstream);
    for (uint32_t i = 0; remote != NULL && i < hg_upstream_count_servers(remote); i++)
        if (strcmp(remote->servers[i].address, address) == 0)
            return hg_server_may_send(&remote->servers[i]);
    return hg_upstream_is_alive(directory, upstream);
}

bool hg_upstream_embedded(const struct hg_directory *directory, const struct hg_upstream *upstream,
                          struct hg_embedded_stats *ret)
{
    const struct hg_parts *parts = parts_in(directory, upstream);
    if (parts == NULL || parts->embedded == NULL)
        return false;
    hg_embedded_stats_read(parts->embedded, ret);
    return true;
}

bool hg_upstream_cluster(const struct hg_directory *directory, const struct hg_upstream *upstream,
                         uint64_t *ret)
{
    const struct hg_parts *parts = parts_in(directory, upstream);
    if (parts == NULL || parts->cluster == NULL)
        return false;
    hg_rediscluster_stats(parts->cluster, ret);
    return true;
}
