// publish - from settings to the directory that workers see
// SPDX-License-Identifier: BSD-3-Clause
//
// Prepare makes everything that can fail (records, stores, memory) while the old directory is in
// force; publish only swaps. So a change is all or nothing.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/login.h"
#include "app/process.h"
#include "app/web.h"
#include "back/identity.h"
#include "base/log.h"

struct hg_users_ref *hg_users_ref_new(struct hg_users *users)
{
    struct hg_users_ref *ref = calloc(1, sizeof *ref);
    if (ref == NULL)
        return NULL;
    atomic_init(&ref->refs, 1);
    ref->users = users;
    return ref;
}

void hg_users_ref_unref(void *users)
{
    struct hg_users_ref *ref = users;
    if (ref == NULL || atomic_fetch_sub(&ref->refs, 1) > 1)
        return;
    hg_users_free(ref->users);
    free(ref);
}

static void fill_settings(struct hg_front_settings *to, const struct hg_conf *conf,
                          const struct hg_users *users)
{
    *to = (struct hg_front_settings){
        .max_frame_bytes = (uint32_t)conf->max_frame_bytes,
        .max_value_bytes = (uint32_t)conf->max_value_bytes,
        .high_water_bytes = (uint32_t)conf->client_output_high_water_bytes,
        .idle_timeout_s = (uint32_t)conf->idle_timeout_s,
        .keepalive_s = (uint32_t)conf->tcp_keepalive_s,
        .request_deadline_us = conf->request_deadline_ms * 1000,
        .throttle_max_wait_us = conf->throttle_max_wait_ms * 1000,
        .slow_request_us = conf->slow_request_ms * 1000,
        .trace_sample = (uint32_t)conf->trace_sample,
        .read_unit_bytes = (uint32_t)conf->read_unit_bytes,
        .write_unit_bytes = (uint32_t)conf->write_unit_bytes,
        .login_required = hg_users_login_required(users),
        .bind = hg_publish_binds(conf),
    };
}

/* Limits that the stores took over when they were opened: a reload does not change them. */
static void keep_opened(struct hg_front_settings *to, const struct hg_directory *before)
{
    if (before == NULL)
        return;
    to->max_frame_bytes = before->settings.max_frame_bytes;
    to->max_value_bytes = before->settings.max_value_bytes;
}

/* The generation of that name and kind that is in force; NULL: none. */
static struct hg_generation *find_generation(const struct hg_directory *directory,
                                             const struct hg_conf_upstream *conf)
{
    for (size_t i = 0; directory != NULL && i < directory->upstream_count; i++)
        if (strcmp(directory->upstreams[i]->name, conf->name) == 0 &&
            strcmp(directory->upstreams[i]->kind, hg_conf_kind_name(conf->kind)) == 0)
            return directory->generations[i];
    return NULL;
}

/* `renewed`: the generation of this name is exchanged in any case; may be NULL. */
static int add_upstream(struct hg_process *process, const struct hg_conf_upstream *conf,
                        struct hg_directory *directory, const char *renewed, char why[512])
{
    struct hg_generation *now = find_generation(process->directory, conf);
    struct hg_generation *made = NULL;
    int rc = 0;
    if (now == NULL) {
        rc = hg_upstream_open(process, conf, &made, why);
    } else {
        size_t before = hg_conf_upstream_find(process->effective, conf->name);
        if (hg_upstream_needs_renewal(&process->effective->upstreams[before], conf) ||
            (renewed != NULL && strcmp(renewed, conf->name) == 0))
            rc = hg_upstream_renew(now->upstream, conf, &made, why);
    }
    if (rc == 0)
        hg_directory_list(directory, made != NULL ? made : now);
    hg_generation_unref(made);
    return rc;
}

static int add_upstreams(struct hg_process *process, const struct hg_conf *conf,
                         struct hg_directory *directory, const char *renewed, char why[512])
{
    int rc = 0;
    for (size_t i = 0; i < conf->upstreams_count && rc == 0; i++)
        rc = add_upstream(process, &conf->upstreams[i], directory, renewed, why);
    return rc;
}

/* May the record go on as it is, or do its items live elsewhere now? */
static bool still_fits(const struct hg_bucket *bucket, const struct hg_conf_tenant *tenant,
                       const struct hg_upstream *upstream)
{
    return bucket != NULL && atomic_load(&bucket->state) != HG_BUCKET_DELETED &&
           bucket->upstream == upstream && strcmp(bucket->prefix, tenant->effective_prefix) == 0;
}

static struct hg_bucket *new_bucket(struct hg_process *process, const struct hg_conf_tenant *tenant,
                                    struct hg_generation *generation, char why[512])
{
    struct hg_bucket *bucket = hg_bucket_new(tenant->name, process->front.worker_count);
    char *prefix = strdup(tenant->effective_prefix);
    if (bucket == NULL || prefix == NULL) {
        hg_bucket_unref(bucket);
        free(prefix);
        snprintf(why, 512, "no memory is left for tenant '%s'", tenant->name);
        return NULL;
    }
    free(bucket->prefix);
    bucket->prefix = prefix;
    bucket->prefix_len = strlen(prefix);
    if (generation == NULL)
        return bucket;
    bucket->upstream = hg_upstream_ref(generation->upstream);
    /* A bucket that is created now is empty, whatever an earlier one of the name has left. */
    if (process->directory != NULL && tenant->by_opcode &&
        hg_directory_bucket(process->directory, hg_span_str(tenant->name)) == NULL)
        hg_upstream_forget(generation, tenant->name);
    if (hg_upstream_tenant(generation, tenant->name, &bucket->tenant_id) != 0) {
        snprintf(why, 512, "cannot make room for tenant '%s' in store '%s'", tenant->name,
                 generation->upstream->name);
        hg_bucket_unref(bucket);
        return NULL;
    }
    return bucket;
}

static int by_name(const void *a, const void *b)
{
    const struct hg_bucket *left = *(struct hg_bucket *const *)a;
    const struct hg_bucket *right = *(struct hg_bucket *const *)b;
    return strcmp(left->name, right->name);
}

/* As whom the buckets' requests go to their servers. */
static int add_identities(struct hg_process *process, const struct hg_conf *conf,
                          struct hg_directory *directory, const char **ret_full, char why[512])
{
    const struct hg_directory *before = process->directory;
    for (size_t i = 0; i < directory->bucket_count; i++) {
        const struct hg_bucket *bucket = directory->buckets[i];
        const struct hg_conf_tenant *tenant =
            hg_conf_tenant_find(conf, bucket->name, bucket->name_len);
        if (bucket->upstream == NULL)
            continue;
        struct hg_generation *generation = hg_directory_generation(directory, bucket->upstream);
        uint32_t *id = &directory->identities[i];
        if (before != NULL && hg_directory_generation(before, bucket->upstream) == generation)
            *id = hg_directory_identity(before, bucket);
        int rc = hg_upstream_identity(generation, tenant, id);
        if (rc == -ENOSPC) {
            *ret_full = bucket->upstream->name;
            snprintf(why, 512, "tenant '%s' is one login too many: upstream '%s' has %d",
                     tenant->name, bucket->upstream->name, HG_IDENTITIES_MAX);
        } else if (rc != 0) {
            snprintf(why, 512, "no memory is left for tenant '%s'", tenant->name);
        }
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int add_buckets(struct hg_process *process, const struct hg_conf *conf,
                       struct hg_directory *directory, char why[512])
{
    for (size_t i = 0; i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *tenant = &conf->tenants[i];
        struct hg_generation *generation = NULL;
        struct hg_bucket *bucket = NULL;
        if (tenant->upstream_index != HG_CONF_NO_UPSTREAM)
            generation = directory->generations[tenant->upstream_index];
        struct hg_upstream *upstream = generation != NULL ? generation->upstream : NULL;
        if (process->directory != NULL)
            bucket = hg_directory_bucket(process->directory, hg_span_str(tenant->name));
        bucket = still_fits(bucket, tenant, upstream)
                     ? hg_bucket_ref(bucket)
                     : new_bucket(process, tenant, generation, why);
        if (bucket == NULL)
            return -ENOMEM;
        directory->buckets[directory->bucket_count++] = bucket;
    }
    qsort(directory->buckets, directory->bucket_count, sizeof directory->buckets[0], by_name);
    return 0;
}

static int add_families(const struct hg_conf *conf, struct hg_directory *directory, char why[512])
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < conf->tenants_count; i++)
        count += conf->tenants[i].families_count;
    struct hg_directory_family *list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *tenant = &conf->tenants[i];
        const struct hg_bucket *bucket = hg_directory_bucket(directory, hg_span_str(tenant->name));
        for (size_t j = 0; j < tenant->families_count; j++) {
            const struct hg_conf_family *family = &tenant->families[j];
            list[at++] = (struct hg_directory_family){
                .bucket = bucket,
                .table = hg_span_str(family->table),
                .family = {.name = hg_span_str(family->name),
                           .ttl_ms = family->ttl_s * 1000,
                           .max_versions = (uint32_t)family->max_versions},
            };
        }
    }
    bool done = list != NULL && hg_directory_set_families(directory, list, count);
    free(list);
    if (!done)
        snprintf(why, 512, "no memory is left for the families of tables");
    return done ? 0 : -ENOMEM;
}

static int prepare(struct hg_process *process, const struct hg_conf *effective,
                   struct hg_users_ref *users, const char *renewed, const char **ret_full,
                   struct hg_directory **ret, char why[512])
{
    struct hg_directory *directory =
        hg_directory_new(effective->tenants_count, effective->upstreams_count);
    if (directory == NULL) {
        snprintf(why, 512, "no memory is left");
        return -ENOMEM;
    }
    fill_settings(&directory->settings, effective, users->users);
    keep_opened(&directory->settings, process->directory);
    atomic_fetch_add(&users->refs, 1);
    directory->users = users;
    directory->users_unref = hg_users_ref_unref;
    int rc = add_upstreams(process, effective, directory, renewed, why);
    if (rc == 0)
        rc = add_buckets(process, effective, directory, why);
    if (rc == 0)
        rc = add_identities(process, effective, directory, ret_full, why);
    if (rc == 0)
        rc = add_families(effective, directory, why);
    if (rc != 0)
        hg_directory_unref(directory);
    else
        *ret = directory;
    return rc;
}

int hg_publish_prepare(struct hg_process *process, const struct hg_conf *effective,
                       struct hg_users_ref *users, struct hg_directory **ret, char why[512])
{
    const char *full = NULL;
    int rc = prepare(process, effective, users, NULL, &full, ret, why);
    /* Logins that nobody has any more are forgotten with their generation. Those that are in use
       have room, unless they are too many by themselves. */
    while (rc == -ENOSPC && full != NULL) {
        const char *renewed = full;
        full = NULL;
        rc = prepare(process, effective, users, renewed, &full, ret, why);
        if (full != NULL && strcmp(full, renewed) == 0)
            break;
    }
    return rc;
}

/* ---- putting it in force ---- */

static struct hg_credit_settings credit_settings(const struct hg_conf *conf)
{
    return (struct hg_credit_settings){
        .capacity = conf->node_capacity,
        .slot_ms = (uint32_t)conf->throttle_slot_ms,
        .free_pool =
            conf->free_pool == HG_CONF_FREE_POOL_FAIR ? HG_FREE_POOL_FAIR : HG_FREE_POOL_FIRST_COME,
        .slow_start_percent = (uint32_t)conf->slow_start_percent,
    };
}

/* Does what others keep lie where the bucket's keys do? On Redis also what was never Headgate's:
   with the plain layout other programs read and write there, and a prefix says that there are
   others. */
static bool is_shared(const struct hg_bucket *bucket, const struct hg_conf_tenant *tenant)
{
    const struct hg_upstream *upstream = bucket->upstream;
    if (tenant->neighbours > 0 || upstream == NULL)
        return tenant->neighbours > 0;
    return upstream->is_redis && (upstream->is_plain || bucket->prefix_len > 0);
}

static enum hg_bucket_state state_of(const struct hg_conf_tenant *tenant)
{
    if (tenant->disabled)
        return HG_BUCKET_ORPHAN;
    switch (tenant->state) {
    case HG_CONF_TENANT_STATE_PAUSED:
        return HG_BUCKET_PAUSED;
    case HG_CONF_TENANT_STATE_DISABLED:
        return HG_BUCKET_DISABLED;
    default:
        return HG_BUCKET_ACTIVE;
    }
}

static void set_bucket(struct hg_bucket *bucket, const struct hg_conf_tenant *tenant)
{
    atomic_store(&bucket->state, state_of(tenant));
    atomic_store(&bucket->credit_mode, (int)tenant->credit_mode);
    atomic_store(&bucket->reject_status, (int)tenant->reject_status);
    atomic_store(&bucket->data_limit_status, tenant->data_limit_status);
    atomic_store(&bucket->max_connections, (unsigned)tenant->max_connections);
    atomic_store(&bucket->allow_flush, tenant->allow_flush);
    atomic_store(&bucket->table_sessions, (unsigned)tenant->table_sessions);
    atomic_store(&bucket->table_session_idle_s, (unsigned)tenant->table_session_idle_s);
    atomic_store(&bucket->hotkey_threshold, tenant->kv_hotkey_throttle_threshold);
    atomic_store(&bucket->hotkey_mode, (int)tenant->hotkey_mode);
    atomic_store(&bucket->hotkey_control, (int)tenant->hotkey_control);
    atomic_store(&bucket->hotkey_tracking, tenant->hotkey_tracking);
    atomic_store(&bucket->ticket_mode, (int)tenant->ticket_mode);
    atomic_store(&bucket->fair_by, (int)tenant->fair_by);
    atomic_store(&bucket->bind_mode, (int)tenant->bind_mode);
    atomic_store(&bucket->bind_min_bytes, (unsigned)tenant->bind_min_bytes);
    atomic_store(&bucket->shared, is_shared(bucket, tenant));
    atomic_store(&bucket->required, tenant->required);
    hg_credit_bucket_set(&bucket->credit, tenant->reserved, tenant->hard_limit,
                         tenant->credit_mode == HG_CONF_CREDIT_MODE_OBSERVE);
}

static void set_hot(struct hg_hot_front *hot, const struct hg_conf *conf)
{
    atomic_store(&hot->mem.cap_bytes, conf->hotkey_memory_bytes);
    atomic_store(&hot->mem.counters, (unsigned)conf->hotkey_counters);
    atomic_store(&hot->epoch_ms, (uint32_t)conf->hotkey_epoch_ms);
}

static bool is_new(const struct hg_directory *before, const struct hg_bucket *bucket)
{
    return before == NULL ||
           hg_directory_bucket(before, hg_span(bucket->name, bucket->name_len)) != bucket;
}

static void set_records(struct hg_process *process, const struct hg_conf *conf,
                        struct hg_directory *directory)
{
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        hg_upstream_update(directory->generations[i], &conf->upstreams[i]);
        hg_publish_execution(&process->front, directory->upstreams[i], &conf->upstreams[i]);
    }
    for (size_t i = 0; i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *tenant = &conf->tenants[i];
        struct hg_bucket *bucket = hg_directory_bucket(directory, hg_span_str(tenant->name));
        if (is_new(process->directory, bucket))
            hg_credit_bucket_init(&process->node, &bucket->credit, bucket->credit_lanes,
                                  tenant->reserved, tenant->hard_limit);
        set_bucket(bucket, tenant);
    }
}

/* Buckets that are in force and not in the new directory: their waiting requests get 0x08, but of
   one whose name is there again they go on in the new record. Returns the one of the name `purge`,
   counted, or NULL. */
static struct hg_bucket *end_removed(struct hg_process *process,
                                     const struct hg_directory *directory, const char *purge)
{
    const struct hg_directory *before = process->directory;
    struct hg_bucket *purged = NULL;
    for (size_t i = 0; before != NULL && i < before->bucket_count; i++) {
        struct hg_bucket *bucket = before->buckets[i];
        if (!is_new(directory, bucket))
            continue;
        if (hg_directory_bucket(directory, hg_span(bucket->name, bucket->name_len)) != NULL)
            atomic_store(&bucket->moved, true);
        else
            atomic_store(&bucket->state, HG_BUCKET_DELETED);
        if (purge != NULL && strcmp(purge, bucket->name) == 0)
            purged = hg_bucket_ref(bucket);
    }
    for (size_t i = 0; before != NULL && i < before->upstream_count; i++)
        if (hg_directory_generation(directory, before->upstreams[i]) == NULL)
            hg_upstream_end(before->upstreams[i]);
    return purged;
}

static int make_tick_room(struct hg_process *process, size_t buckets)
{
    if (buckets <= process->tick_room)
        return 0;
    size_t room = buckets * 2;
    struct hg_credit_bucket **list = calloc(room, sizeof *list);
    struct hg_fair *scratch = calloc(room, sizeof *scratch);
    if (list == NULL || scratch == NULL) {
        free(list);
        free(scratch);
        return -ENOMEM;
    }
    free(process->tick_buckets);
    free(process->tick_scratch);
    process->tick_buckets = list;
    process->tick_scratch = scratch;
    process->tick_room = room;
    return 0;
}

int hg_publish(struct hg_process *process, struct hg_conf *effective,
               struct hg_directory *directory, const char *purge)
{
    struct hg_credit_settings settings = credit_settings(effective);
    struct hg_bucket *purged = NULL;
    pthread_mutex_lock(&process->lock);
    int rc = make_tick_room(process, directory->bucket_count);
    if (rc == 0) {
        hg_credit_set(&process->node, &settings);
        set_hot(&process->front.hot, effective);
        hg_publish_ingress(&process->front, effective);
        set_records(process, effective, directory);
        purged = end_removed(process, directory, purge);
        struct hg_directory *old = process->directory;
        process->directory = directory;
        hg_directory_unref(old);
        hg_conf_free(process->effective);
        process->effective = effective;
    }
    pthread_mutex_unlock(&process->lock);
    if (rc != 0)
        return rc;
    for (unsigned w = 0; process->workers != NULL && w < process->front.worker_count; w++)
        if (hg_worker_give_directory(&process->workers[w], directory) != 0)
            hg_log_error("worker=%u msg=\"no memory to hand over new settings: it keeps the old\"",
                         w);
    hg_hotkeys_forget_deleted(&process->hotkeys);
    hg_web_note_directory(process->web);
    if (purged != NULL && purged->upstream != NULL)
        hg_upstream_purge(purged->upstream, purged->name, purged->tenant_id);
    hg_bucket_unref(purged);
    if (process->listeners != NULL)
        hg_listeners_set_max(process->listeners, (unsigned)effective->max_connections);
    hg_tlslisten_follow(process->tls, effective);
    if (process->logins != NULL)
        hg_logins_set_queue_max(process->logins, (unsigned)effective->login_queue);
    return 0;
}
