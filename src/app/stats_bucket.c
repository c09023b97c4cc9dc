// stats_bucket - statistics of tenants and of their credits
// SPDX-License-Identifier: BSD-3-Clause
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/rights.h"
#include "app/stats.h"
#include "core/held.h"
#include "front/held.h"
#include "proto/status.h"

bool hg_stats_may_see(const struct hg_job *job, const struct hg_bucket *bucket)
{
    if (bucket == job->bucket)
        return true;
    return hg_rights_have(hg_rights_in(job, hg_span(bucket->name, bucket->name_len)),
                          HG_PRIVILEGE_STATS);
}

void hg_stats_refuse_bucket(struct hg_job *job, const struct hg_bucket *bucket)
{
    if (bucket == NULL && hg_rights_have(hg_rights_of_node(job), HG_PRIVILEGE_STATS))
        hg_job_fail(job, HG_STATUS_KEY_ENOENT, "there is no bucket of this name");
    else
        hg_job_fail(job, HG_STATUS_EACCESS, "the user may not see this bucket's statistics");
}

static uint64_t sum_lanes(const struct hg_bucket *bucket, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned w = 0; w < bucket->lane_count; w++)
        sum += hg_counter_get((const hg_counter *)((const char *)&bucket->lanes[w] + offset));
    return sum;
}

static json_t *units(uint64_t value)
{
    return value == HG_UNITS_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)value);
}

static const char *state_name(const struct hg_bucket *bucket)
{
    static const char *const names[] = {
        [HG_BUCKET_ACTIVE] = "active",     [HG_BUCKET_PAUSED] = "paused",
        [HG_BUCKET_DISABLED] = "disabled", [HG_BUCKET_ORPHAN] = "disabled",
        [HG_BUCKET_DELETED] = "deleted",
    };
    return names[atomic_load((_Atomic int *)&bucket->state)];
}

static void add_credits(struct hg_process *process, struct hg_bucket *bucket, json_t *to)
{
    struct hg_credit_view view;
    hg_credit_view(&process->node, &bucket->credit, &view);
    json_object_set_new(to, "throttle_reserved", units(atomic_load(&bucket->credit.reserved)));
    json_object_set_new(to, "throttle_hard_limit", units(atomic_load(&bucket->credit.hard_limit)));
    json_object_set_new(to, "slot_used", units(view.used));
    json_object_set_new(to, "slot_reserved", units(view.effective));
    json_object_set_new(to, "slot_hard_limit", units(view.hard));
    uint64_t held = 0;
    for (unsigned w = 0; w < bucket->lane_count; w++)
        held += atomic_load_explicit(&bucket->credit_lanes[w].count, memory_order_relaxed);
    json_object_set_new(to, "held", json_integer((json_int_t)held));
    int reason = atomic_load(&bucket->held_for);
    json_object_set_new(to, "held_for",
                        json_string(reason != 0 ? hg_held_reason_name(reason) : "none"));
}

static void add_settings(struct hg_process *process, struct hg_bucket *bucket, json_t *to)
{
    const struct hg_conf_tenant *tenant =
        hg_conf_tenant_find(process->effective, bucket->name, bucket->name_len);
    char status[16];
    snprintf(status, sizeof status, "0x%02x", atomic_load(&bucket->data_limit_status));
    json_object_set_new(to, "state", json_string(state_name(bucket)));
    json_object_set_new(to, "name", json_string(bucket->name));
    json_object_set_new(to, "type",
                        json_string(bucket->upstream != NULL ? bucket->upstream->kind : "none"));
    json_object_set_new(to, "upstream",
                        json_string(bucket->upstream != NULL ? bucket->upstream->name : ""));
    json_object_set_new(to, "key_prefix", json_string(bucket->prefix));
    json_object_set_new(to, "data_ingress_status", json_string(status));
    json_object_set_new(to, "max_connections", json_integer(atomic_load(&bucket->max_connections)));
    if (tenant == NULL)
        return;
    json_object_set_new(to, "credit_mode",
                        json_string(hg_conf_credit_mode_name(tenant->credit_mode)));
    json_object_set_new(to, "kv_hotkey_throttle_threshold",
                        json_integer((json_int_t)tenant->kv_hotkey_throttle_threshold));
    json_object_set_new(to, "hotkey_mode",
                        json_string(hg_conf_hotkey_mode_name(tenant->hotkey_mode)));
    json_object_set_new(to, "hotkey_control",
                        json_string(hg_conf_hotkey_control_name(tenant->hotkey_control)));
    json_object_set_new(to, "hotkey_tracking", json_boolean(tenant->hotkey_tracking));
    json_object_set_new(to, "ticket_mode",
                        json_string(hg_conf_ticket_mode_name(tenant->ticket_mode)));
    json_object_set_new(to, "fair_by", json_string(hg_conf_fair_by_name(tenant->fair_by)));
    json_object_set_new(to, "bind_mode", json_string(hg_conf_bind_mode_name(tenant->bind_mode)));
    json_object_set_new(to, "bind_min_bytes", json_integer((json_int_t)tenant->bind_min_bytes));
    json_object_set_new(to, "reject_status",
                        json_string(hg_conf_reject_status_name(tenant->reject_status)));
}

/* NULL when memory is out. */
static json_t *details(struct hg_process *process, struct hg_bucket *bucket)
{
    json_t *to = json_object();
    json_t *outcomes = json_object();
    uint64_t all = 0, refused = 0;
    if (to == NULL || outcomes == NULL) {
        json_decref(to);
        json_decref(outcomes);
        return NULL;
    }
    add_settings(process, bucket, to);
    json_object_set_new(to, "clients", json_integer(atomic_load(&bucket->connections)));
    add_credits(process, bucket, to);
#define HG_LANE(name, kind, text)                                                                  \
    json_object_set_new(                                                                           \
        to, #name, json_integer((json_int_t)sum_lanes(bucket, offsetof(struct hg_lane, name))));
#include "front/lane.def"
#undef HG_LANE
    for (unsigned o = 0; o < HG_OUTCOMES; o++) {
        uint64_t n = sum_lanes(bucket, offsetof(struct hg_lane, outcomes) + o * sizeof(hg_counter));
        all += n;
        refused += hg_outcome_is_refusal((enum hg_outcome)o) ? n : 0;
        json_object_set_new(outcomes, hg_outcome_rows[o].name, json_integer((json_int_t)n));
    }
    json_object_set_new(to, "num_commands", json_integer((json_int_t)all));
    json_object_set_new(to, "refused", json_integer((json_int_t)refused));
    json_object_set_new(to, "outcomes", outcomes);
    return to;
}

static void add_json(struct hg_job *job, const char *name, json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
    if (text == NULL)
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
    else
        hg_job_stat_bytes(job, hg_span_str(name), hg_span_str(text));
    free(text);
    json_decref(value);
}

void hg_stats_buckets(struct hg_process *process, struct hg_job *job)
{
    for (size_t i = 0; i < process->directory->bucket_count; i++) {
        struct hg_bucket *bucket = process->directory->buckets[i];
        if (hg_stats_may_see(job, bucket))
            add_json(job, bucket->name, details(process, bucket));
    }
}

static void all_details(struct hg_process *process, struct hg_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < process->directory->bucket_count; i++) {
        struct hg_bucket *bucket = process->directory->buckets[i];
        if (hg_stats_may_see(job, bucket))
            json_array_append_new(list, details(process, bucket));
    }
    add_json(job, "bucket details", json_pack("{s:o}", "buckets", list));
}

void hg_stats_bucket_details(struct hg_process *process, struct hg_job *job)
{
    static const size_t head = sizeof "bucket_details " - 1;
    if (job->key.len < head) {
        all_details(process, job);
        return;
    }
    struct hg_span name = hg_span(job->key.at + head, job->key.len - head);
    struct hg_bucket *bucket = hg_directory_bucket(process->directory, name);
    if (bucket != NULL && hg_stats_may_see(job, bucket))
        add_json(job, bucket->name, details(process, bucket));
    else
        hg_stats_refuse_bucket(job, bucket);
}

static void stat_units(struct hg_job *job, const char *name, uint64_t value)
{
    if (value == HG_UNITS_UNLIMITED)
        hg_job_stat(job, name, "unlimited");
    else
        hg_job_stat(job, name, "%llu", (unsigned long long)value);
}

static void throttle_row(struct hg_process *process, struct hg_job *job, struct hg_bucket *bucket,
                         const char *what, uint64_t value)
{
    char name[HG_BUCKET_NAME_MAX + 64];
    (void)process;
    snprintf(name, sizeof name, "%s:%s", bucket->name, what);
    stat_units(job, name, value);
}

static void throttle_bucket(struct hg_process *process, struct hg_job *job,
                            struct hg_bucket *bucket)
{
    struct hg_credit_view view;
    hg_credit_view(&process->node, &bucket->credit, &view);
    throttle_row(process, job, bucket, "used", view.used);
    throttle_row(process, job, bucket, "effective_reserved", view.effective);
    throttle_row(process, job, bucket, "hard_limit", view.hard);
    throttle_row(process, job, bucket, "pool_share", view.share);
    uint64_t held = 0, held_units = 0;
    for (unsigned w = 0; w < bucket->lane_count; w++) {
        struct hg_credit_lane *lane = &bucket->credit_lanes[w];
        held += atomic_load_explicit(&lane->count, memory_order_relaxed);
        held_units += atomic_load_explicit(&lane->units, memory_order_relaxed);
    }
    throttle_row(process, job, bucket, "held", held);
    throttle_row(process, job, bucket, "held_units", held_units);
#define ROW(field)                                                                                 \
    throttle_row(process, job, bucket, #field, sum_lanes(bucket, offsetof(struct hg_lane, field)))
    ROW(num_throttled);
    ROW(held_for_pool);
    ROW(held_for_share);
    ROW(held_for_hard_limit);
    ROW(held_behind_others);
    ROW(would_throttle);
    ROW(num_rejected);
#undef ROW
}

void hg_stats_throttle(struct hg_process *process, struct hg_job *job)
{
    struct hg_credit_view view = {0};
    const struct hg_directory *directory = process->directory;
    stat_units(job, "node_capacity", process->effective->node_capacity);
    hg_job_stat(job, "slot_ms", "%llu", (unsigned long long)process->effective->throttle_slot_ms);
    hg_job_stat(job, "free_pool_mode", "%s", hg_conf_free_pool_name(process->effective->free_pool));
    if (directory->bucket_count > 0) {
        hg_credit_view(&process->node, &directory->buckets[0]->credit, &view);
        stat_units(job, "free_pool", view.pool);
        stat_units(job, "free_pool_used", view.pool_used);
    }
    for (size_t i = 0; i < directory->bucket_count; i++)
        if (hg_stats_may_see(job, directory->buckets[i]))
            throttle_bucket(process, job, directory->buckets[i]);
}
