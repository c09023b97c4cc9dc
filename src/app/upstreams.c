// upstreams - the stores of the configuration, opened: shared parts here, workers' parts on demand
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/conf_table.h"
#include "app/upstream_own.h"
#include "app/uptlsconf.h"
#include "back/memcached.h"
#include "back/redis.h"
#include "base/clock.h"
#include "base/log.h"
#include "front/gateset.h"

#define REDIS_PORT  6379
#define WAITING_MAX 10000 /* calls of a worker that may wait for one server */

static const struct hg_kind *kind_of(enum hg_conf_kind kind);

/* ---- workers' parts ---- */

static void set_times(struct hg_impl *impl, struct hg_store *store)
{
    pthread_mutex_lock(&impl->lock);
    struct hg_remote_times times = impl->times;
    pthread_mutex_unlock(&impl->lock);
    hg_remote_set_times(store, &times);
}

static struct hg_store *open_remote(struct hg_generation *generation, struct hg_worker *worker)
{
    struct hg_impl *impl = generation->upstream->impl;
    const struct hg_parts *parts = hg_parts_of(generation);
    const struct hg_remote_place place = {&worker->loop, &worker->mailbox, &worker->blobs,
                                          &worker->outs, worker->index,    parts->max_connections};
    struct hg_store *store = impl->kind->store_new(impl, parts, &place);
    if (store != NULL)
        set_times(impl, store);
    return store;
}

static struct hg_store *open_embedded(struct hg_generation *generation, struct hg_worker *worker)
{
    struct hg_store *store = NULL;
    int rc = hg_embedded_store_new(hg_parts_of(generation)->embedded, &worker->loop, &store);
    if (rc != 0)
        hg_log_error("upstream=%s worker=%u msg=\"cannot open the store: %s\"",
                     generation->upstream->name, worker->index, strerror(-rc));
    return rc == 0 ? store : NULL;
}

/* Another worker's instance needs this one's. If memory is out it will ask again. */
static void summon(void *arg, uint32_t worker)
{
    struct hg_generation *generation = arg;
    struct hg_process *process = hg_impl_of(generation->upstream)->process;
    if (hg_worker_give_generation(&process->front.workers[worker], generation) != 0)
        hg_log_debug("upstream=%s worker=%u msg=\"no memory to open the store\"",
                     generation->upstream->name, worker);
}

static void refresh_store(struct hg_generation *generation, struct hg_store *store)
{
    if (hg_parts_of(generation)->remote != NULL)
        set_times(generation->upstream->impl, store);
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
    struct hg_impl *impl = upstream->impl;
    struct hg_process *process = impl->process;
    unsigned slot = upstream->slot;
    for (size_t i = 0; i < impl->carried_count; i++)
        free(impl->carried[i].address);
    free(impl->carried);
    hg_embedded_close(impl->embedded);
    pthread_mutex_destroy(&impl->lock);
    free(impl);
    hg_gateset_free(upstream->gates);
    free(upstream);
    release_slot(process, slot);
}

static void retire_generation(struct hg_generation *generation)
{
    struct hg_impl *impl = generation->upstream->impl;
    struct hg_parts *parts = generation->impl;
    pthread_mutex_lock(&impl->lock);
    hg_upstream_carry(impl, parts);
    hg_list_remove(&parts->node);
    pthread_mutex_unlock(&impl->lock);
    if (parts->cluster != NULL)
        hg_rediscluster_shared_free(parts->cluster);
    else
        hg_upstream_shared_free(parts->remote);
    free(parts);
    free(generation);
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

void hg_upstream_ring_conf(struct hg_ring_conf *ring, const struct hg_conf_upstream *conf)
{
    *ring = (struct hg_ring_conf){0};
    /* Not named, the hash is the ring's own (ketama_weighted's is MD5); "default" by name, and in a
       configuration string, is libmemcached's Jenkins. */
    bool named = conf->lines[HG_CONF_UPSTREAM_hash] != 0 || conf->configuration[0] != '\0';
    ring->kind = hg_conf_ring_name(conf->ring);
    ring->hash = named ? hg_conf_hash_name(conf->hash) : NULL;
}

/* As in force: the first directory's stay, see hg_publish_prepare. */
static uint32_t max_value_bytes(const struct hg_impl *impl)
{
    const struct hg_directory *directory = impl->process->directory;
    return directory != NULL ? directory->settings.max_value_bytes
                             : (uint32_t)impl->process->file->max_value_bytes;
}

static uint32_t max_frame_bytes(const struct hg_impl *impl)
{
    const struct hg_directory *directory = impl->process->directory;
    return directory != NULL ? directory->settings.max_frame_bytes
                             : (uint32_t)impl->process->file->max_frame_bytes;
}

static void fill_remote(struct hg_remote_conf *to, const struct hg_impl *impl,
                        const struct hg_conf_upstream *conf)
{
    hg_remote_conf_init(to);
    to->name = conf->name;
    to->is_memcached = conf->kind == HG_CONF_KIND_MEMCACHED;
    to->default_port = impl->kind->default_port;
    if (to->is_memcached)
        hg_upstream_ring_conf(&to->ring, conf);
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
    to->max_reply_bytes = max_frame_bytes(impl);
    to->keepalive_s = (uint32_t)impl->process->file->tcp_keepalive_s;
    to->eject_servers = conf->eject_servers;
}

static struct hg_redis_conf redis_conf(const struct hg_impl *impl,
                                       const struct hg_remote_conf *conf)
{
    return (struct hg_redis_conf){
        .plain = conf->redis_plain,
        .ranges = conf->ranges,
        .max_value_bytes = max_value_bytes(impl),
    };
}

static void open_shared(const struct hg_impl *impl, struct hg_parts *parts,
                        const struct hg_remote_conf *conf, bool is_cluster,
                        char why[HG_RING_WHY_BYTES])
{
    struct hg_resolver *resolver = impl->process->resolver;
    uint32_t workers = impl->process->front.worker_count;
    /* Now, since a worker that opens its store may not look at the process's directory. */
    parts->redis = redis_conf(impl, conf);
    if (!is_cluster) {
        parts->remote = hg_upstream_shared_new(conf, resolver, workers, why);
        return;
    }
    parts->cluster = hg_rediscluster_shared_new(conf, &parts->redis, resolver, workers, why);
    if (parts->cluster != NULL)
        parts->remote = parts->cluster->upstream;
}

static int share_remote(struct hg_impl *impl, struct hg_parts *parts,
                        const struct hg_conf_upstream *conf, char why[512])
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
    parts->max_connections = to.pool_max_connections;
    if (servers != NULL)
        open_shared(impl, parts, &to, conf->kind == HG_CONF_KIND_REDIS_CLUSTER, ring_why);
    free(servers);
    if (parts->remote != NULL) {
        const struct hg_generation *before = impl->current;
        if (before != NULL)
            hg_upstream_follow(parts->remote, hg_parts_of(before)->remote);
        return 0;
    }
    snprintf(why, 512, "cannot open upstream '%s': %s", conf->name, ring_why);
    return -EINVAL;
}

static int share_embedded(struct hg_impl *impl, struct hg_parts *parts,
                          const struct hg_conf_upstream *conf, char why[512])
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
        .max_value_bytes = max_value_bytes(impl),
        .timeout_us = file->request_deadline_ms * 1000,
    };
    int rc = hg_embedded_open(&options, &parts->embedded, why, 512);
    if (rc == -EBUSY && impl->process->directory != NULL) {
        size_t len = strlen(why);
        snprintf(why + len, 512 - len,
                 ", or this one is still closing it, as a reload has just removed it: then try "
                 "again");
    }
    impl->embedded = parts->embedded;
    return rc;
}

/* ---- generations ---- */

int hg_upstream_renew(struct hg_upstream *upstream, const struct hg_conf_upstream *conf,
                      struct hg_generation **ret, char why[512])
{
    struct hg_impl *impl = upstream->impl;
    struct hg_generation *generation = calloc(1, sizeof *generation);
    struct hg_parts *parts = calloc(1, sizeof *parts);
    if (generation == NULL || parts == NULL) {
        snprintf(why, 512, "no memory is left");
        free(generation);
        free(parts);
        return -ENOMEM;
    }
    hg_list_init(&parts->node);
    int rc = impl->kind->share(impl, parts, conf, why);
    if (rc != 0) {
        free(generation);
        free(parts);
        return rc;
    }
    atomic_init(&generation->refs, 1);
    generation->number = ++impl->process->generations;
    generation->upstream = hg_upstream_ref(upstream);
    generation->retire = retire_generation;
    generation->impl = parts;
    if (parts->remote != NULL) {
        parts->remote->relay_ports.summon = summon;
        parts->remote->relay_ports.summon_arg = generation;
    }
    pthread_mutex_lock(&impl->lock);
    hg_list_append(&impl->parts, &parts->node);
    pthread_mutex_unlock(&impl->lock);
    *ret = generation;
    return 0;
}

/* Options that an open store takes over, or that are not the store's. Any other one that changes
   makes another generation. */
static bool is_taken_over(size_t option)
{
    switch (option) {
    case HG_CONF_UPSTREAM_password: /* of the upstream itself: the next logins use it */
    case HG_CONF_UPSTREAM_password_file:
    case HG_CONF_UPSTREAM_connect_timeout_ms:
    case HG_CONF_UPSTREAM_backend_timeout_ms:
    case HG_CONF_UPSTREAM_queue_timeout_ms:
    case HG_CONF_UPSTREAM_reconnect_max_ms:
    case HG_CONF_UPSTREAM_execution_control:
    case HG_CONF_UPSTREAM_read_tickets:
    case HG_CONF_UPSTREAM_write_tickets:
    case HG_CONF_UPSTREAM_tickets_scope:
    case HG_CONF_UPSTREAM_upstream_tickets:
    case HG_CONF_UPSTREAM_execution_max_queue_depth:
    case HG_CONF_UPSTREAM_overload_wait_ms:
    case HG_CONF_UPSTREAM_flood_wait_ms:
    case HG_CONF_UPSTREAM_flood_order:
    case HG_CONF_UPSTREAM_key_share_pct:
    case HG_CONF_UPSTREAM_tenant_window:
    case HG_CONF_UPSTREAM_bind_control:
    case HG_CONF_UPSTREAM_bind_mended:
    case HG_CONF_UPSTREAM_throughput_probing_interval_ms:
    case HG_CONF_UPSTREAM_throughput_probing_initial_concurrency:
    case HG_CONF_UPSTREAM_throughput_probing_min_concurrency:
    case HG_CONF_UPSTREAM_throughput_probing_max_concurrency:
    case HG_CONF_UPSTREAM_throughput_probing_read_write_ratio:
    case HG_CONF_UPSTREAM_throughput_probing_concurrency_moving_average_weight:
    case HG_CONF_UPSTREAM_throughput_probing_step_multiple:
    case HG_CONF_UPSTREAM_slow_server_factor:
    case HG_CONF_UPSTREAM_multiget_backend_error:
    case HG_CONF_UPSTREAM_allow_flush:
        return true;
    default:
        return false;
    }
}

bool hg_upstream_needs_renewal(const struct hg_conf_upstream *before,
                               const struct hg_conf_upstream *now)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[HG_CONF_SCOPE_UPSTREAM];
    bool differs = false;
    if (now->kind == HG_CONF_KIND_EMBEDDED)
        return false; /* its file is open once in a process */
    /* Whether the hash is named decides what "default" means, see hg_upstream_ring_conf. */
    if ((before->lines[HG_CONF_UPSTREAM_hash] != 0) != (now->lines[HG_CONF_UPSTREAM_hash] != 0))
        return true;
    for (size_t i = 0; i < info->count && !differs; i++) {
        if (is_taken_over(i))
            continue;
        char *from = hg_conf_value_text(&info->options[i], before);
        char *to = hg_conf_value_text(&info->options[i], now);
        differs = from == NULL || to == NULL || strcmp(from, to) != 0;
        free(from);
        free(to);
    }
    return differs;
}

int hg_upstream_open(struct hg_process *process, const struct hg_conf_upstream *conf,
                     struct hg_generation **ret, char why[512])
{
    struct hg_upstream *upstream = calloc(1, sizeof *upstream);
    struct hg_impl *impl = calloc(1, sizeof *impl);
    int rc = upstream != NULL && impl != NULL ? take_slot(process, &upstream->slot) : -ENOMEM;
    if (rc != 0) {
        snprintf(why, 512, rc == -ENOMEM ? "no memory is left" : "too many upstreams");
        free(upstream);
        free(impl);
        return rc;
    }
    impl->process = process;
    impl->kind = kind_of(conf->kind);
    impl->times = times_of(conf);
    hg_list_init(&impl->parts);
    pthread_mutex_init(&impl->lock, NULL);
    snprintf(upstream->name, sizeof upstream->name, "%s", conf->name);
    upstream->kind = hg_conf_kind_name(conf->kind);
    atomic_init(&upstream->refs, 1);
    upstream->flush_is_private = impl->kind->flush_is_private;
    upstream->is_redis =
        conf->kind == HG_CONF_KIND_REDIS || conf->kind == HG_CONF_KIND_REDIS_CLUSTER;
    upstream->open = impl->kind->open;
    upstream->refresh = refresh_store;
    upstream->retire = retire;
    upstream->impl = impl;
    upstream->gates = hg_gateset_new(process->front.worker_count);
    if (upstream->gates == NULL)
        snprintf(why, 512, "no memory is left");
    rc = upstream->gates != NULL ? hg_upstream_renew(upstream, conf, ret, why) : -ENOMEM;
    hg_upstream_unref(upstream); /* the generation has it */
    return rc;
}

/* Certificates that were written anew under the same names are used by connections made from now
   on. */
static void renew_tls(const struct hg_generation *generation, const struct hg_conf_upstream *conf)
{
    const struct hg_upstream_shared *remote = hg_parts_of(generation)->remote;
    const char *name = generation->upstream->name;
    char why[HG_TLS_WHY_BYTES];
    if (remote == NULL || remote->uptls == NULL || conf->tls_count == 0)
        return;
    const struct hg_uptls_conf uptls = hg_uptlsconf_of(conf->tls);
    int rc = hg_uptls_renew(remote->uptls, &uptls, why);
    if (rc > 0)
        hg_log_info("upstream=%s msg=\"new connections use the new certificates\"", name);
    else if (rc < 0)
        hg_log_error("upstream=%s msg=\"the old certificates stay: %s\"", name, why);
}

/* The servers that the file names have tickets from now on, before anybody asks for them. */
static void list_servers(struct hg_front *front, struct hg_upstream *upstream,
                         const struct hg_conf_upstream *conf)
{
    static const char *const none = "";
    size_t count = conf->servers_count;
    const char **names = calloc(count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = conf->servers[i].address.text;
    if (names == NULL || hg_gateset_list(upstream->gates, front, count > 0 ? names : &none,
                                         count > 0 ? count : 1, hg_now_us()))
        hg_log_error("upstream=%s msg=\"no memory for the tickets of its servers\"",
                     upstream->name);
    free(names);
}

void hg_upstream_update(struct hg_generation *generation, const struct hg_conf_upstream *conf)
{
    struct hg_upstream *upstream = generation->upstream;
    struct hg_impl *impl = upstream->impl;
    struct hg_upstream_shared *remote = hg_parts_of(generation)->remote;
    impl->current = generation;
    list_servers(&impl->process->front, upstream, conf);
    pthread_mutex_lock(&impl->lock);
    impl->times = times_of(conf);
    pthread_mutex_unlock(&impl->lock);
    if (remote != NULL && hg_identities_set_password(&remote->identities, conf->password) != 0)
        hg_log_error("upstream=%s msg=\"no memory for the new password: the old one stays\"",
                     upstream->name);
    renew_tls(generation, conf);
    if (hg_parts_of(generation)->embedded != NULL)
        hg_embedded_set_evict(hg_parts_of(generation)->embedded,
                              conf->embedded_when_full == HG_CONF_WHEN_FULL_EVICT);
    upstream->is_plain = conf->redis_layout == HG_CONF_LAYOUT_PLAIN;
    atomic_store(&upstream->allow_flush, conf->allow_flush);
    atomic_store(&upstream->miss_on_fault, conf->multiget_backend_error == HG_CONF_MULTIGET_MISS);
}

void hg_upstream_end(struct hg_upstream *upstream)
{
    hg_impl_of(upstream)->current = NULL;
}

int hg_upstream_tenant(struct hg_generation *generation, const char *bucket, uint32_t *ret_id)
{
    struct hg_embedded_shared *embedded = hg_parts_of(generation)->embedded;
    *ret_id = 0;
    return embedded != NULL ? hg_embedded_tenant_id(embedded, bucket, ret_id) : 0;
}

int hg_upstream_identity(struct hg_generation *generation, const struct hg_conf_tenant *tenant,
                         uint32_t *id)
{
    struct hg_upstream_shared *remote = hg_parts_of(generation)->remote;
    const unsigned *lines = tenant->lines;
    uint32_t was = *id;
    *id = 0;
    if (remote == NULL)
        return 0;
    struct hg_identities *identities = &remote->identities;
    const struct hg_identity *own = hg_identities_at(identities, 0);
    bool logs_in = tenant->backend_user[0] != '\0' || tenant->backend_password[0] != '\0';
    uint64_t database =
        lines[HG_CONF_TENANT_backend_database] != 0 ? tenant->backend_database : own->database;
    if (!logs_in)
        return hg_identities_add_own(identities, (uint32_t)database, id);
    if (was < hg_identities_count(identities) &&
        hg_identity_is(hg_identities_at(identities, was), tenant->backend_user,
                       tenant->backend_password, (uint32_t)database)) {
        *id = was;
        return 0;
    }
    return hg_identities_add(identities, tenant->backend_user, tenant->backend_password,
                             (uint32_t)database, id);
}

static void purge(struct hg_embedded_shared *embedded, const char *upstream, const char *bucket,
                  uint32_t tenant_id)
{
    int rc = embedded != NULL ? hg_embedded_tenant_delete(embedded, tenant_id) : 0;
    if (rc != 0 && rc != -ENOENT)
        hg_log_error("upstream=%s tenant=%s msg=\"cannot remove the items of the deleted bucket: "
                     "%s\"",
                     upstream, bucket, strerror(-rc));
}

void hg_upstream_purge(struct hg_upstream *upstream, const char *bucket, uint32_t tenant_id)
{
    struct hg_parts *parts = hg_parts_now(upstream);
    purge(parts != NULL ? parts->embedded : NULL, upstream->name, bucket, tenant_id);
}

void hg_upstream_forget(struct hg_generation *generation, const char *bucket)
{
    uint32_t id;
    if (hg_upstream_tenant(generation, bucket, &id) == 0)
        purge(hg_parts_of(generation)->embedded, generation->upstream->name, bucket, id);
}

int hg_upstream_copy_begin(struct hg_upstream *upstream, struct hg_embedded_copy **ret, char *error,
                           size_t error_bytes)
{
    struct hg_impl *impl = upstream->impl;
    if (impl->embedded != NULL)
        return hg_embedded_copy_begin(impl->embedded, ret, error, error_bytes);
    snprintf(error, error_bytes, "upstream '%s' is not embedded", upstream->name);
    return -ENOTSUP;
}

/* ---- the kinds ---- */

static struct hg_store *new_memcached(const struct hg_impl *impl, const struct hg_parts *parts,
                                      const struct hg_remote_place *place)
{
    (void)impl;
    return hg_memcached_store_new(parts->remote, place);
}

static struct hg_store *new_redis(const struct hg_impl *impl, const struct hg_parts *parts,
                                  const struct hg_remote_place *place)
{
    (void)impl;
    return hg_redis_store_new(parts->remote, place, &parts->redis);
}

static struct hg_store *new_cluster(const struct hg_impl *impl, const struct hg_parts *parts,
                                    const struct hg_remote_place *place)
{
    (void)impl;
    return hg_rediscluster_store_new(parts->cluster, place);
}

static const struct hg_kind kinds[] = {
    [HG_CONF_KIND_EMBEDDED] = {.share = share_embedded,
                               .open = open_embedded,
                               .stats = hg_upstream_embedded_stats,
                               .flush_is_private = true},
    [HG_CONF_KIND_MEMCACHED] = {.share = share_remote,
                                .open = open_remote,
                                .stats = hg_upstream_remote_stats,
                                .store_new = new_memcached,
                                .default_port = HG_RING_PORT},
    [HG_CONF_KIND_REDIS] = {.share = share_remote,
                            .open = open_remote,
                            .stats = hg_upstream_remote_stats,
                            .store_new = new_redis,
                            .default_port = REDIS_PORT},
    [HG_CONF_KIND_REDIS_CLUSTER] = {.share = share_remote,
                                    .open = open_remote,
                                    .stats = hg_upstream_cluster_stats,
                                    .store_new = new_cluster,
                                    .default_port = REDIS_PORT},
};

static const struct hg_kind *kind_of(enum hg_conf_kind kind)
{
    return &kinds[kind];
}
