// webwatch - what the HTTP thread remembers of tenants and servers from one second to the next
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webwatch.h"

#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "app/upstreams_view.h"

static const size_t lane_offsets[HG_WEB_LANES] = {
#define HG_LANE(name, kind, text) offsetof(struct hg_lane, name),
#include "front/lane.def"
#undef HG_LANE
};
/* As in metrics.c. */
static const size_t gate_offsets[HG_WEB_GATE_ROWS] = {
    offsetof(struct hg_gate_tally, added),
    offsetof(struct hg_gate_tally, queued_us),
    offsetof(struct hg_gate_tally, canceled),
    offsetof(struct hg_gate_tally, overflows),
    offsetof(struct hg_gate_tally, refused_flood),
    offsetof(struct hg_gate_tally, refused_calm),
    offsetof(struct hg_gate_tally, refused_stalled),
    offsetof(struct hg_gate_tally, refused_overdue),
    offsetof(struct hg_gate_tally, refused_key)};

static uint64_t at(const void *base, size_t offset)
{
    return hg_counter_get((const hg_counter *)((const char *)base + offset));
}

void hg_web_values(const struct hg_bucket *bucket, uint64_t values[HG_WEB_VALUES])
{
    memset(values, 0, HG_WEB_VALUES * sizeof values[0]);
    for (unsigned w = 0; w < bucket->lane_count; w++) {
        const struct hg_lane *lane = &bucket->lanes[w];
        for (unsigned i = 0; i < HG_WEB_LANES; i++)
            values[i] += at(lane, lane_offsets[i]);
        for (unsigned o = 0; o < HG_OUTCOMES; o++)
            values[HG_WEB_OUTCOMES_AT + o] += hg_counter_get(&lane->outcomes[o]);
        for (unsigned p = 0; p < HG_GATE_PLACES; p++)
            for (unsigned i = 0; i < HG_WEB_GATE_ROWS; i++)
                values[HG_WEB_GATES_AT + p * HG_WEB_GATE_ROWS + i] +=
                    at(&lane->tallies[p], gate_offsets[i]);
    }
}

uint64_t hg_web_rejected(const uint64_t values[HG_WEB_VALUES])
{
    static const unsigned refused[] = {HG_OUTCOME_THROTTLED,        HG_OUTCOME_THROTTLED_TOO_LONG,
                                       HG_OUTCOME_HOT_KEY,          HG_OUTCOME_BIND_THROTTLED,
                                       HG_OUTCOME_EVICTED,          HG_OUTCOME_DATA_LIMIT,
                                       HG_OUTCOME_CONNECTION_LIMIT, HG_OUTCOME_PAUSED,
                                       HG_OUTCOME_DISABLED};
    uint64_t sum = 0;
    for (size_t i = 0; i < HG_COUNT_OF(refused); i++)
        sum += values[HG_WEB_OUTCOMES_AT + refused[i]];
    return sum;
}

uint64_t hg_web_held(const struct hg_bucket *bucket)
{
    uint64_t held = 0;
    for (unsigned w = 0; w < bucket->lane_count; w++)
        held += atomic_load_explicit(&bucket->credit_lanes[w].count, memory_order_relaxed);
    return held;
}

/* What was added since; a reset in between counts as a beginning at 0. */
static uint64_t grown(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

/* ---- tenants ---- */

static void tell_others(struct hg_web_watch *watch, struct hg_web_tenant *tenant)
{
    uint64_t values[HG_WEB_VALUES];
    hg_web_values(tenant->bucket, values);
    for (unsigned i = 0; i < HG_WEB_VALUES; i++) {
        watch->others[i] += grown(values[i], tenant->told[i]);
        tenant->told[i] = values[i];
    }
}

void hg_web_watch_sum(struct hg_web_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->tenants[i]->is_other)
            tell_others(watch, watch->tenants[i]);
}

static void free_tenant(struct hg_web_watch *watch, struct hg_web_tenant *tenant)
{
    if (tenant->is_other)
        tell_others(watch, tenant);
    else
        watch->own--;
    hg_bucket_unref(tenant->bucket);
    free(tenant);
}

void hg_web_watch_init(struct hg_web_watch *watch, size_t own_max)
{
    memset(watch, 0, sizeof *watch);
    watch->own_max = own_max;
}

static void free_upstreams(struct hg_web_upstream *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].servers);
    free(list);
}

void hg_web_watch_fini(struct hg_web_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        free_tenant(watch, watch->tenants[i]);
    free(watch->tenants);
    free_upstreams(watch->upstreams, watch->upstream_count);
    memset(watch, 0, sizeof *watch);
}

/* Both are in order of name; a record that goes on has the same bucket. */
static struct hg_web_tenant *find_tenant(const struct hg_web_watch *watch, size_t *from,
                                         const struct hg_bucket *bucket)
{
    while (*from < watch->count) {
        struct hg_web_tenant *tenant = watch->tenants[*from];
        int order = strcmp(tenant->bucket->name, bucket->name);
        if (order > 0)
            return NULL;
        if (order == 0)
            return tenant->bucket == bucket ? tenant : NULL;
        ++*from;
    }
    return NULL;
}

static bool is_same(const struct hg_web_watch *watch, const struct hg_directory *directory)
{
    if (watch->count != directory->bucket_count)
        return false;
    for (size_t i = 0; i < watch->count; i++)
        if (watch->tenants[i]->bucket != directory->buckets[i])
            return false;
    return true;
}

/* The records that stay move to `list`, which has room; the others' places stay NULL. */
static void keep(struct hg_web_watch *watch, const struct hg_directory *directory,
                 struct hg_web_tenant **list)
{
    size_t from = 0;
    for (size_t i = 0; i < directory->bucket_count; i++)
        list[i] = find_tenant(watch, &from, directory->buckets[i]);
}

static bool is_listed(struct hg_web_tenant *const *list, size_t count, size_t *from,
                      const struct hg_web_tenant *tenant)
{
    for (size_t i = *from; i < count; i++)
        if (list[i] == tenant) {
            *from = i + 1;
            return true;
        }
    return false;
}

static bool add_new(struct hg_web_watch *watch, const struct hg_directory *directory,
                    struct hg_web_tenant **list)
{
    for (size_t i = 0; i < directory->bucket_count; i++) {
        if (list[i] != NULL)
            continue;
        list[i] = calloc(1, sizeof *list[i]);
        if (list[i] == NULL)
            return false;
    }
    for (size_t i = 0; i < directory->bucket_count; i++) {
        if (list[i]->bucket != NULL)
            continue;
        list[i]->bucket = hg_bucket_ref(directory->buckets[i]);
        list[i]->is_other = watch->own >= watch->own_max;
        if (list[i]->is_other)
            watch->any_other = true;
        else
            watch->own++;
    }
    return true;
}

static bool sync_tenants(struct hg_web_watch *watch, const struct hg_directory *directory)
{
    if (is_same(watch, directory))
        return true;
    struct hg_web_tenant **list = calloc(directory->bucket_count + 1, sizeof *list);
    size_t from = 0;
    if (list == NULL)
        return false;
    keep(watch, directory, list);
    for (size_t i = 0; i < watch->count; i++)
        if (!is_listed(list, directory->bucket_count, &from, watch->tenants[i]))
            free_tenant(watch, watch->tenants[i]);
    /* From here on the old list is gone; who finds no memory for a record has fewer of them. */
    free(watch->tenants);
    watch->tenants = list;
    watch->count = 0;
    if (!add_new(watch, directory, list)) {
        size_t kept = 0;
        for (size_t i = 0; i < directory->bucket_count; i++) {
            if (list[i] != NULL && list[i]->bucket != NULL)
                list[kept++] = list[i];
            else
                free(list[i]);
        }
        watch->count = kept;
        return false;
    }
    watch->count = directory->bucket_count;
    return true;
}

/* ---- servers ---- */

static bool sync_upstreams(struct hg_web_watch *watch, const struct hg_directory *directory)
{
    struct hg_web_upstream *list = calloc(directory->upstream_count + 1, sizeof *list);
    bool done = list != NULL;
    for (size_t i = 0; done && i < directory->upstream_count; i++) {
        const struct hg_upstream *upstream = directory->upstreams[i];
        const struct hg_web_upstream *before = hg_web_watch_upstream(watch, upstream);
        uint32_t count = hg_upstream_servers(directory, upstream);
        list[i].servers = calloc(count + 1, sizeof *list[i].servers);
        done = list[i].servers != NULL;
        if (!done)
            break;
        snprintf(list[i].name, sizeof list[i].name, "%s", upstream->name);
        list[i].upstream = upstream;
        list[i].count = count;
        if (before != NULL)
            memcpy(list[i].servers, before->servers,
                   (before->count < count ? before->count : count) * sizeof *list[i].servers);
    }
    if (!done) {
        free_upstreams(list, list != NULL ? directory->upstream_count : 0);
        return false;
    }
    free_upstreams(watch->upstreams, watch->upstream_count);
    watch->upstreams = list;
    watch->upstream_count = directory->upstream_count;
    return true;
}

bool hg_web_watch_sync(struct hg_web_watch *watch, const struct hg_directory *directory)
{
    bool tenants = sync_tenants(watch, directory);
    return sync_upstreams(watch, directory) && tenants;
}

const struct hg_web_upstream *hg_web_watch_upstream(const struct hg_web_watch *watch,
                                                    const struct hg_upstream *upstream)
{
    for (size_t i = 0; i < watch->upstream_count; i++)
        if (watch->upstreams[i].upstream == upstream &&
            strcmp(watch->upstreams[i].name, upstream->name) == 0)
            return &watch->upstreams[i];
    return NULL;
}

/* ---- the look ---- */

static uint64_t errors_of(const uint64_t sums[HG_UPSTREAM_STATS])
{
    return sums[HG_UPSTREAM_TIMEOUTS] + sums[HG_UPSTREAM_LOST] + sums[HG_UPSTREAM_REFUSED_DOWN] +
           sums[HG_UPSTREAM_CONNECT_FAILURES] + sums[HG_UPSTREAM_BAD_REPLIES];
}

static void look_at_server(const struct hg_upstream *upstream, const struct hg_server *server,
                           struct hg_web_server *record)
{
    uint64_t sums[HG_UPSTREAM_STATS] = {0};
    hg_upstream_server_sum(upstream, server->address, sums);
    record->requests_per_s = grown(sums[HG_UPSTREAM_REQUESTS], record->requests);
    record->errors_per_s = grown(errors_of(sums), record->errors);
    record->requests = sums[HG_UPSTREAM_REQUESTS];
    record->errors = errors_of(sums);
}

void hg_web_watch_look(struct hg_web_watch *watch, const struct hg_directory *directory)
{
    for (size_t i = 0; i < watch->count; i++) {
        struct hg_web_tenant *tenant = watch->tenants[i];
        uint64_t values[HG_WEB_VALUES];
        hg_web_values(tenant->bucket, values);
        for (unsigned v = 0; v < HG_WEB_VALUES; v++)
            tenant->rates[v] = tenant->seen ? grown(values[v], tenant->last[v]) : 0;
        memcpy(tenant->last, values, sizeof values);
        tenant->held = hg_web_held(tenant->bucket);
        tenant->seen = true;
    }
    hg_web_watch_sum(watch);
    for (size_t i = 0; i < watch->upstream_count && i < directory->upstream_count; i++) {
        const struct hg_upstream *upstream = directory->upstreams[i];
        const struct hg_upstream_shared *remote = hg_upstream_remote(directory, upstream);
        uint32_t count = hg_upstream_servers(directory, upstream);
        for (uint32_t s = 0; s < count && s < watch->upstreams[i].count; s++)
            look_at_server(upstream, &remote->servers[s], &watch->upstreams[i].servers[s]);
    }
}
