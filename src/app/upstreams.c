// upstreams - the stores of the configuration, opened: shared parts here, workers' parts on demand
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/process.h"
#include "app/uptlsconf.h"
#include "app/upstreams_view.h"
#include "back/embedded.h"
#include "back/memcached.h"
#include "back/redis.h"
#include "back/rediscluster.h"
#include "back/upstream.h"
#include "base/log.h"

#define REDIS_PORT  6379
#define WAITING_MAX 10000 /* calls of a worker that may wait for one server */

struct impl;
struct kind;
static const struct kind *kind_of(enum hg_conf_kind kind);

/* What there is to know of a kind of upstream. */
struct kind {
    int (*share)(struct impl *impl, const struct hg_conf_upstream *conf, char why[512]);
    struct hg_store *(*open)(struct hg_upstream *upstream, struct hg_worker *worker);
    void (*stats)(const char *name, const struct impl *impl, struct hg_job *job);
    /* Of stores made of servers: a worker's instance, and what its servers are. */
    struct hg_store *(*store_new)(const struct impl *impl, const struct hg_remote_place *place);
    uint16_t default_port;
    bool flush_is_private; /* it empties one tenant only */
};

/* What hg_upstream.impl points to. */
struct impl {
    struct hg_process *process;
    const struct kind *kind;
    struct hg_embedded_shared *embedded;
    struct hg_upstream_shared *remote;
    struct hg_rediscluster_shared *cluster; /* has `remote` */
    uint32_t max_connections;               /* to a server, of the whole process */
    pthread_mutex_t lock;
    struct hg_remote_times times; /* under lock */
};

static void free_impl(struct impl *impl)
{
    if (impl == NULL)
        return;
    hg_embedded_close(impl->embedded);
    if (impl->cluster != NULL)
        hg_rediscluster_shared_free(impl->cluster);
    else
        hg_upstream_shared_free(impl->remote);
    pthread_mutex_destroy(&impl->lock);
    free(impl);
}

/* ---- workers' parts ---- */

static void set_times(struct impl *impl, struct hg_store *store)
{
    pthread_mutex_lock(&impl->lock);
    struct hg_remote_times times = impl->times;
    pthread_mutex_unlock(&impl->lock);
    hg_remote_set_times(store, &times);
}

static struct hg_store *open_remote(struct hg_upstream *upstream, struct hg_worker *worker)
{
    struct impl *impl = upstream->impl;
    const struct hg_remote_place place = {&worker->loop, &worker->mailbox, &worker->blobs,
                                          &worker->outs, worker->index,    impl->max_connections};
    struct hg_store *store = impl->kind->store_new(impl, &place);
    if (store != NULL)
        set_times(impl, store);
    return store;
}

static struct hg_store *open_embedded(struct hg_upstream *upstream, struct hg_worker *worker)
{
    struct impl *impl = upstream->impl;
    struct hg_store *store = NULL;
    int rc = hg_embedded_store_new(impl->embedded, &worker->loop, &store);
    if (rc != 0)
        hg_log_error("upstream=%s worker=%u msg=\"cannot open the store: %s\"", upstream->name,
                     worker->index, strerror(-rc));
    return rc == 0 ? store : NULL;
}

/* Another worker's instance needs this one's. If memory is out it will ask again. */
static void summon(void *arg, uint32_t worker)
{
    struct hg_upstream *upstream = arg;
    struct impl *impl = upstream->impl;
    if (hg_worker_give_upstream(&impl->process->front.workers[worker], upstream) != 0)
        hg_log_debug("upstream=%s worker=%u msg=\"no memory to open the store\"", upstream->name,
                     worker);
}

static void refresh_store(struct hg_upstream *upstream, struct hg_store *store)
{
    struct impl *impl = upstream->impl;
    if (impl->remote != NULL)
        set_times(impl, store);
}

/* ---- shared parts ---- */

static void release_slot(struct hg_process *process, unsigned slot)
{
    pthread_mutex_lock(&process->slot_lock);
    process->slots[slot] = false;
    pthread_mutex_unlock(&process->slot_lock);
}

static int take_slot(struct hg_process *process, unsigned *ret_slot)
{
    int rc = -ENOSPC;
    pthread_mutex_lock(&process->slot_lock);
    for (unsigned slot = 0; slot < HG_UPSTREAMS_MAX && rc != 0; slot++) {
        if (process->slots[slot])
            continue;
        process->slots[slot] = true;
        *ret_slot = slot;
        rc = 0;
    }
    pthread_mutex_unlock(&process->slot_lock);
    return rc;
}

static void retire(struct hg_upstream *upstream)
{
    struct impl *impl = upstream->impl;
    struct hg_process *process = impl->process;
    unsigned slot = upstream->slot;
    free_impl(impl);
    hg_gateshare_free(upstream->gate);
    free(upstream);
    release_slot(process, slot);
}

static struct hg_remote_times times_of(const struct hg_conf_upstream *conf)
{
    return (struct hg_remote_times){
        (uint32_t)conf->connect_timeout_ms, (uint32_t)conf->backend_timeout_ms,
        (uint32_t)conf->queue_timeout_ms, (uint32_t)conf->reconnect_max_ms};
}

/* Ranges that the file leaves open: an index costs a cluster a script for each write of a row. */
static bool has_ranges(const struct hg_conf_upstream *conf)
{
    if (conf->ranges != HG_CONF_RANGES_AUTO)
        return conf->ranges == HG_CONF_RANGES_ON;
    return conf->kind == HG_CONF_KIND_REDIS && conf->redis_layout == HG_CONF_LAYOUT_ITEM;
}

static void fill_ring(struct hg_ring_conf *ring, const struct hg_conf_upstream *conf)
{
    /* Not named, the hash is the ring's own (ketama_weighted's is MD5); "default" by name, and in a
       configuration string, is libmemcached's Jenkins. */
    bool named = conf->lines[HG_CONF_UPSTREAM_hash] != 0 || conf->configuration[0] != '\0';
    ring->kind = hg_conf_ring_name(conf->ring);
    ring->hash = named ? hg_conf_hash_name(conf->hash) : NULL;
}

static void fill_remote(struct hg_remote_conf *to, const struct impl *impl,
                        const struct hg_conf_upstream *conf)
{
    hg_remote_conf_init(to);
    to->name = conf->name;
    to->is_memcached = conf->kind == HG_CONF_KIND_MEMCACHED;
    to->default_port = impl->kind->default_port;
    if (to->is_memcached)
        fill_ring(&to->ring, conf);
    to->user = conf->user;
    to->password = conf->password;
    to->database = (uint32_t)conf->database;
    to->redis_plain = conf->redis_layout == HG_CONF_LAYOUT_PLAIN;
    to->ranges = has_ranges(conf);
    to->times = times_of(conf);
    to->pool_depth = (uint32_t)conf->pool_depth;
    to->pool_max_bytes = conf->pool_max_bytes;
    to->pool_max_connections = (uint32_t)conf->pool_max_connections;
    to->pool_min_hold_ms = (uint32_t)conf->pool_min_hold_ms;
    to->pool_idle_timeout_s = (uint32_t)conf->pool_idle_timeout_s;
    to->pool_queue_max = WAITING_MAX;
    to->max_reply_bytes = (uint32_t)impl->process->file->max_frame_bytes;
    to->keepalive_s = (uint32_t)impl->process->file->tcp_keepalive_s;
    to->eject_servers = conf->eject_servers;
}

static struct hg_redis_conf redis_conf(const struct impl *impl, const struct hg_remote_conf *conf)
{
    return (struct hg_redis_conf){
        .plain = conf->redis_plain,
        .ranges = conf->ranges,
        .max_value_bytes = (uint32_t)impl->process->file->max_value_bytes,
    };
}

static void open_shared(struct impl *impl, const struct hg_remote_conf *conf, bool is_cluster,
                        char why[HG_RING_WHY_BYTES])
{
    struct hg_resolver *resolver = impl->process->resolver;
    uint32_t workers = impl->process->front.worker_count;
    if (!is_cluster) {
        impl->remote = hg_upstream_shared_new(conf, resolver, workers, why);
        return;
    }
    const struct hg_redis_conf redis = redis_conf(impl, conf);
    impl->cluster = hg_rediscluster_shared_new(conf, &redis, resolver, workers, why);
    if (impl->cluster != NULL)
        impl->remote = impl->cluster->upstream;
}

static int share_remote(struct impl *impl, const struct hg_conf_upstream *conf, char why[512])
{
    struct hg_ring_server *servers = calloc(conf->servers_count, sizeof *servers);
    struct hg_remote_conf to;
    struct hg_uptls_conf uptls;
    char ring_why[HG_RING_WHY_BYTES] = "no memory is left";
    fill_remote(&to, impl, conf);
    if (conf->tls_count > 0) {
        uptls = hg_uptlsconf_of(conf->tls);
        to.tls = &uptls;
    }
    for (size_t i = 0; servers != NULL && i < conf->servers_count; i++)
        servers[i] = (struct hg_ring_server){conf->servers[i].address.text,
                                             (uint32_t)conf->servers[i].weight};
    to.ring.servers = servers;
    to.ring.count = (uint32_t)conf->servers_count;
    impl->times = to.times;
    impl->max_connections = to.pool_max_connections;
    if (servers != NULL)
        open_shared(impl, &to, conf->kind == HG_CONF_KIND_REDIS_CLUSTER, ring_why);
    free(servers);
    if (impl->remote != NULL)
        return 0;
    snprintf(why, 512, "cannot open upstream '%s': %s", conf->name, ring_why);
    return -EINVAL;
}

static int share_embedded(struct impl *impl, const struct hg_conf_upstream *conf, char why[512])
{
    const struct hg_conf *file = impl->process->file;
    struct hg_embedded_options options = {
        .data_dir = file->data_dir,
        .name = conf->name,
        .sync = (enum hg_embedded_sync)conf->sync,
        .writing = HG_EMBEDDED_WRITING_AUTO,
        .workers = impl->process->front.worker_count,
        .evict = conf->embedded_when_full == HG_CONF_WHEN_FULL_EVICT,
        .max_bytes = conf->embedded_max_bytes,
        .max_value_bytes = (uint32_t)file->max_value_bytes,
        .timeout_us = file->request_deadline_ms * 1000,
    };
    return hg_embedded_open(&options, &impl->embedded, why, 512);
}

int hg_upstream_open(struct hg_process *process, const struct hg_conf_upstream *conf,
                     struct hg_upstream **ret, char why[512])
{
    struct hg_upstream *upstream = calloc(1, sizeof *upstream);
    struct impl *impl = calloc(1, sizeof *impl);
    int rc = upstream != NULL && impl != NULL ? take_slot(process, &upstream->slot) : -ENOMEM;
    if (rc != 0) {
        snprintf(why, 512, rc == -ENOMEM ? "no memory is left" : "too many upstreams");
        free(upstream);
        free(impl);
        return rc;
    }
    impl->process = process;
    impl->kind = kind_of(conf->kind);
    pthread_mutex_init(&impl->lock, NULL);
    snprintf(upstream->name, sizeof upstream->name, "%s", conf->name);
    upstream->kind = hg_conf_kind_name(conf->kind);
    atomic_init(&upstream->refs, 1);
    upstream->flush_is_private = impl->kind->flush_is_private;
    upstream->is_redis =
        conf->kind == HG_CONF_KIND_REDIS || conf->kind == HG_CONF_KIND_REDIS_CLUSTER;
    upstream->is_plain = conf->redis_layout == HG_CONF_LAYOUT_PLAIN;
    upstream->open = impl->kind->open;
    upstream->refresh = refresh_store;
    upstream->retire = retire;
    upstream->impl = impl;
    upstream->gate = hg_gateshare_new(process->front.worker_count);
    if (upstream->gate == NULL)
        snprintf(why, 512, "no memory is left");
    rc = upstream->gate != NULL ? impl->kind->share(impl, conf, why) : -ENOMEM;
    if (rc != 0) {
        retire(upstream);
        return rc;
    }
    if (impl->remote != NULL) {
        impl->remote->relay_ports.summon = summon;
        impl->remote->relay_ports.summon_arg = upstream;
    }
    *ret = upstream;
    return 0;
}

static void update_password(struct hg_upstream *upstream, const struct hg_conf_upstream *conf)
{
    struct impl *impl = upstream->impl;
    struct hg_identities *identities = &impl->remote->identities;
    const struct hg_identity *own = hg_identities_at(identities, 0);
    if (strcmp(own->user, conf->user) != 0)
        hg_log_warn("upstream=%s msg=\"user and password wait for a restart together\"",
                    upstream->name);
    else if (hg_identities_set_password(identities, conf->password) != 0)
        hg_log_error("upstream=%s msg=\"no memory for the new password: the old one stays\"",
                     upstream->name);
}

/* Certificates that were written anew under the same names are used by connections made from now
   on. */
static void renew_tls(const struct hg_upstream *upstream, const struct hg_conf_upstream *conf)
{
    const struct impl *impl = upstream->impl;
    char why[HG_TLS_WHY_BYTES];
    if (impl->remote == NULL || impl->remote->uptls == NULL || conf->tls_count == 0)
        return;
    const struct hg_uptls_conf uptls = hg_uptlsconf_of(conf->tls);
    int rc = hg_uptls_renew(impl->remote->uptls, &uptls, why);
    if (rc > 0)
        hg_log_info("upstream=%s msg=\"new connections use the new certificates\"", upstream->name);
    else if (rc < 0)
        hg_log_error("upstream=%s msg=\"the old certificates stay: %s\"", upstream->name, why);
}

void hg_upstream_update(struct hg_upstream *upstream, const struct hg_conf_upstream *conf)
{
    struct impl *impl = upstream->impl;
    pthread_mutex_lock(&impl->lock);
    impl->times = times_of(conf);
    pthread_mutex_unlock(&impl->lock);
    if (impl->remote != NULL)
        update_password(upstream, conf);
    renew_tls(upstream, conf);
    if (impl->embedded != NULL)
        hg_embedded_set_evict(impl->embedded, conf->embedded_when_full == HG_CONF_WHEN_FULL_EVICT);
    atomic_store(&upstream->allow_flush, conf->allow_flush);
    atomic_store(&upstream->miss_on_fault, conf->multiget_backend_error == HG_CONF_MULTIGET_MISS);
}

int hg_upstream_tenant(struct hg_upstream *upstream, const char *bucket, uint32_t *ret_id)
{
    struct impl *impl = upstream->impl;
    *ret_id = 0;
    return impl->embedded != NULL ? hg_embedded_tenant_id(impl->embedded, bucket, ret_id) : 0;
}

int hg_upstream_identity(struct hg_upstream *upstream, const struct hg_conf_tenant *tenant,
                         uint32_t *id)
{
    struct impl *impl = upstream->impl;
    const unsigned *lines = tenant->lines;
    uint32_t was = *id;
    *id = 0;
    if (impl->remote == NULL)
        return 0;
    struct hg_identities *identities = &impl->remote->identities;
    const struct hg_identity *own = hg_identities_at(identities, 0);
    bool logs_in = tenant->backend_user[0] != '\0' || tenant->backend_password[0] != '\0';
    uint64_t database =
        lines[HG_CONF_TENANT_backend_database] != 0 ? tenant->backend_database : own->database;
    if (!logs_in)
        return hg_identities_add_own(identities, (uint32_t)database, id);
    *id = was;
    if (hg_identity_is(hg_identities_at(identities, was), tenant->backend_user,
                       tenant->backend_password, (uint32_t)database))
        return 0;
    return hg_identities_add(identities, tenant->backend_user, tenant->backend_password,
                             (uint32_t)database, id);
}

void hg_upstream_purge(struct hg_upstream *upstream, const char *bucket, uint32_t tenant_id)
{
    struct impl *impl = upstream->impl;
    if (impl->embedded == NULL)
        return;
    int rc = hg_embedded_tenant_delete(impl->embedded, tenant_id);
    if (rc != 0 && rc != -ENOENT)
        hg_log_error("upstream=%s tenant=%s msg=\"cannot remove the items of the deleted bucket: "
                     "%s\"",
                     upstream->name, bucket, strerror(-rc));
}

void hg_upstream_forget(struct hg_upstream *upstream, const char *bucket)
{
    uint32_t id;
    if (hg_upstream_tenant(upstream, bucket, &id) == 0)
        hg_upstream_purge(upstream, bucket, id);
}

bool hg_upstream_is_alive(const struct hg_upstream *upstream)
{
    const struct impl *impl = upstream->impl;
    if (impl == NULL || impl->remote == NULL)
        return true;
    for (uint32_t i = 0; i < hg_upstream_count_servers(impl->remote); i++)
        if (hg_server_may_send(&impl->remote->servers[i]))
            return true;
    return false;
}

int hg_upstream_copy_begin(struct hg_upstream *upstream, struct hg_embedded_copy **ret, char *error,
                           size_t error_bytes)
{
    struct impl *impl = upstream->impl;
    if (impl->embedded != NULL)
        return hg_embedded_copy_begin(impl->embedded, ret, error, error_bytes);
    snprintf(error, error_bytes, "upstream '%s' is not embedded", upstream->name);
    return -ENOTSUP;
}

/* ---- statistics ---- */

static void remote_stats(const char *name, const struct impl *impl, struct hg_job *job)
{
    char row[256];
    for (uint32_t i = 0; i < hg_upstream_count_servers(impl->remote); i++) {
        const struct hg_server *server = &impl->remote->servers[i];
        uint64_t sums[HG_UPSTREAM_STATS] = {0};
        char error[HG_SERVER_ERROR_BYTES];
        hg_server_sum(server, sums);
        snprintf(row, sizeof row, "%s:%u:address", name, i);
        hg_job_stat(job, row, "%s", server->address);
        snprintf(row, sizeof row, "%s:%u:state", name, i);
        hg_job_stat(job, row, "%s", hg_server_state(server));
        snprintf(row, sizeof row, "%s:%u:last_error", name, i);
        hg_job_stat(job, row, "%s", hg_server_last_error(server, error));
        for (unsigned s = 0; s < HG_UPSTREAM_STATS; s++) {
            snprintf(row, sizeof row, "%s:%u:%s", name, i, hg_upstream_stat_rows[s].name);
            hg_job_stat(job, row, "%llu", (unsigned long long)sums[s]);
        }
    }
}

static void cluster_stats(const char *name, const struct impl *impl, struct hg_job *job)
{
    char row[256];
    uint64_t values[HG_REDISCLUSTER_STATS];
    hg_rediscluster_stats(impl->cluster, values);
    for (unsigned s = 0; s < HG_REDISCLUSTER_STATS; s++) {
        snprintf(row, sizeof row, "%s:%s", name, hg_rediscluster_stat_rows[s].name);
        hg_job_stat(job, row, "%llu", (unsigned long long)values[s]);
    }
    remote_stats(name, impl, job);
}

static void embedded_stats(const char *name, const struct impl *impl, struct hg_job *job)
{
    char row[256];
    struct hg_embedded_stats stats;
    hg_embedded_stats_read(impl->embedded, &stats);
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
    const struct impl *impl = upstream->impl;
    if (impl->remote == NULL)
        return;
    const struct hg_identities *identities = &impl->remote->identities;
    uint32_t count = hg_identities_count(identities);
    struct hg_pool_sum *sums = calloc(count, sizeof *sums);
    if (sums == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
        return;
    }
    for (uint32_t i = 0; i < hg_upstream_count_servers(impl->remote); i++) {
        hg_server_sum_pools(&impl->remote->servers[i], sums, count);
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
    const struct impl *impl = upstream->impl;
    char row[256];
    snprintf(row, sizeof row, "%s:kind", upstream->name);
    hg_job_stat(job, row, "%s", upstream->kind);
    impl->kind->stats(upstream->name, impl, job);
}

const struct hg_upstream_shared *hg_upstream_remote(const struct hg_upstream *upstream)
{
    return ((const struct impl *)upstream->impl)->remote;
}

uint32_t hg_upstream_servers(const struct hg_upstream *upstream)
{
    const struct hg_upstream_shared *remote = hg_upstream_remote(upstream);
    return remote != NULL ? hg_upstream_count_servers(remote) : 0;
}

bool hg_upstream_embedded(const struct hg_upstream *upstream, struct hg_embedded_stats *ret)
{
    const struct impl *impl = upstream->impl;
    if (impl->embedded != NULL)
        hg_embedded_stats_read(impl->embedded, ret);
    return impl->embedded != NULL;
}

bool hg_upstream_cluster(const struct hg_upstream *upstream, uint64_t *ret)
{
    const struct impl *impl = upstream->impl;
    if (impl->cluster != NULL)
        hg_rediscluster_stats(impl->cluster, ret);
    return impl->cluster != NULL;
}

/* ---- the kinds ---- */

static struct hg_store *new_memcached(const struct impl *impl, const struct hg_remote_place *place)
{
    return hg_memcached_store_new(impl->remote, place);
}

static struct hg_store *new_redis(const struct impl *impl, const struct hg_remote_place *place)
{
    const struct hg_redis_conf conf = redis_conf(impl, &impl->remote->conf);
    return hg_redis_store_new(impl->remote, place, &conf);
}

static struct hg_store *new_cluster(const struct impl *impl, const struct hg_remote_place *place)
{
    return hg_rediscluster_store_new(impl->cluster, place);
}

static const struct kind kinds[] = {
    [HG_CONF_KIND_EMBEDDED] = {.share = share_embedded,
                               .open = open_embedded,
                               .stats = embedded_stats,
                               .flush_is_private = true},
    [HG_CONF_KIND_MEMCACHED] = {.share = share_remote,
                                .open = open_remote,
                                .stats = remote_stats,
                                .store_new = new_memcached,
                                .default_port = HG_RING_PORT},
    [HG_CONF_KIND_REDIS] = {.share = share_remote,
                            .open = open_remote,
                            .stats = remote_stats,
                            .store_new = new_redis,
                            .default_port = REDIS_PORT},
    [HG_CONF_KIND_REDIS_CLUSTER] = {.share = share_remote,
                                    .open = open_remote,
                                    .stats = cluster_stats,
                                    .store_new = new_cluster,
                                    .default_port = REDIS_PORT},
};

static const struct kind *kind_of(enum hg_conf_kind kind)
{
    return &kinds[kind];
}
