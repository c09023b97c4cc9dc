// webapi - JSON of the process, of tenants and of upstreams, as doc/api.md has it
// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/upstreams_view.h"
#include "app/web_own.h"
#include "base/clock.h"
#include "core/credittick.h"
#include "front/gate.h"

static void key_uint(struct hg_webtext *text, const char *key, uint64_t value)
{
    hg_json_key(text, key);
    hg_json_uint(text, value);
}

static void key_int(struct hg_webtext *text, const char *key, int64_t value)
{
    hg_json_key(text, key);
    hg_json_int(text, value);
}

static void key_string(struct hg_webtext *text, const char *key, const char *value)
{
    hg_json_key(text, key);
    hg_json_string(text, value);
}

static void key_bool(struct hg_webtext *text, const char *key, bool value)
{
    hg_json_key(text, key);
    hg_json_bool(text, value);
}

static void key_units(struct hg_webtext *text, const char *key, uint64_t value)
{
    hg_json_key(text, key);
    hg_json_units(text, value);
}

uint64_t hg_web_outcome(const struct hg_process *process, unsigned outcome)
{
    uint64_t sum = 0;
    for (unsigned w = 0; w < process->front.worker_count; w++)
        sum += hg_counter_get(&process->workers[w].outcomes[outcome]);
    return sum;
}

/* ---- status ---- */

/* Each line as a string. */
static void lines_array(struct hg_webtext *text, const struct hg_webtext *lines)
{
    const char *at = lines->at, *end = at + lines->len;
    hg_json_open(text, '[');
    while (at != NULL && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        hg_json_bytes(text, hg_span(at, (size_t)(stop - at)));
        at = stop + 1;
    }
    hg_json_close(text, ']');
}

uint64_t hg_web_free_pool(const struct hg_web *web, const struct hg_web_view *view)
{
    struct hg_credit_view credit = {.pool = HG_UNITS_UNLIMITED};
    const struct hg_directory *directory = view->directory;
    if (directory->bucket_count > 0)
        hg_credit_view(&web->process->node, &directory->buckets[0]->credit, &credit);
    else
        return view->node_capacity;
    if (credit.pool == HG_UNITS_UNLIMITED)
        return HG_UNITS_UNLIMITED;
    return credit.pool * 1000 / view->slot_ms;
}

static uint64_t units_per_s(const struct hg_web *web)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < web->watch.count; i++)
        sum += web->watch.tenants[i]->rates[HG_WEB_LANE_units];
    return sum;
}

void hg_web_status(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text)
{
    const struct hg_process *process = web->process;
    struct hg_webtext lines;
    struct timespec now;
    uint64_t connections = 0, requests = 0;
    hg_webtext_init(&lines);
    clock_gettime(CLOCK_REALTIME, &now);
    bool ready = hg_web_is_ready(web, view, &lines);
    for (unsigned w = 0; w < process->front.worker_count; w++)
        connections += hg_counter_get(&process->workers[w].connections);
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        requests += hg_web_outcome(process, o);
    hg_json_open(text, '{');
    key_string(text, "version", process->front.version);
    key_uint(text, "pid", (uint64_t)getpid());
    hg_json_key(text, "uptime_s");
    hg_json_fixed(text, (hg_now_us() - process->front.start_us) / 1000, 3);
    hg_json_key(text, "now");
    hg_json_fixed(text, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, 3);
    key_uint(text, "workers", process->front.worker_count);
    key_string(text, "state",
               atomic_load((_Atomic bool *)(uintptr_t)&process->draining) ? "draining" : "running");
    key_bool(text, "ready", ready);
    hg_json_key(text, "reasons");
    lines_array(text, &lines);
    hg_webtext_fini(&lines);
    key_uint(text, "connections", connections);
    key_uint(text, "max_connections", view->max_connections);
    key_uint(text, "requests", requests);
    key_uint(text, "requests_per_s", web->requests_per_s);
    hg_json_key(text, "outcomes");
    hg_json_open(text, '{');
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        key_uint(text, hg_outcome_rows[o].name, hg_web_outcome(process, o));
    hg_json_close(text, '}');
    key_units(text, "node_capacity", view->node_capacity);
    key_uint(text, "units_per_s", units_per_s(web));
    key_units(text, "free_pool", hg_web_free_pool(web, view));
    key_uint(text, "epoch_ms",
             atomic_load((_Atomic uint32_t *)(uintptr_t)&process->front.hot.epoch_ms));
    key_uint(text, "reloads", hg_counter_get(&process->reloads));
    key_uint(text, "reload_errors", hg_counter_get(&process->reload_errors));
    key_bool(text, "overcommitted",
             atomic_load((_Atomic bool *)(uintptr_t)&process->overcommitted));
    hg_json_close(text, '}');
}

/* ---- tenants ---- */

static uint64_t outcome_rate(const struct hg_web_tenant *tenant, unsigned outcome)
{
    return tenant->rates[HG_WEB_OUTCOMES_AT + outcome];
}

static const char *state_name(struct hg_bucket *bucket)
{
    static const char *const names[] = {
        [HG_BUCKET_ACTIVE] = "active",     [HG_BUCKET_PAUSED] = "paused",
        [HG_BUCKET_DISABLED] = "disabled", [HG_BUCKET_ORPHAN] = "disabled",
        [HG_BUCKET_DELETED] = "deleted",
    };
    return names[atomic_load(&bucket->state)];
}

/* What it has used beyond the limit of the running slot, which the next ones have to pay. */
static uint64_t debt_of(const struct hg_web *web, const struct hg_bucket *bucket)
{
    struct hg_credit_view view;
    hg_credit_view(&web->process->node, &bucket->credit, &view);
    return view.used > view.hard ? view.used - view.hard : 0;
}

static void tenant_object(struct hg_webtext *text, const struct hg_web *web,
                          struct hg_web_tenant *tenant)
{
    struct hg_bucket *bucket = tenant->bucket;
    uint64_t requests = 0, held = hg_web_held(bucket), values[HG_WEB_VALUES];
    hg_web_values(bucket, values);
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        requests += outcome_rate(tenant, o);
    hg_json_open(text, '{');
    key_string(text, "name", bucket->name);
    key_string(text, "state", state_name(bucket));
    key_string(text, "upstream", bucket->upstream != NULL ? bucket->upstream->name : "");
    key_uint(text, "connections", atomic_load(&bucket->connections));
    key_units(text, "reserved", atomic_load(&bucket->credit.reserved));
    key_units(text, "hard_limit", atomic_load(&bucket->credit.hard_limit));
    key_uint(text, "units_per_s", tenant->rates[HG_WEB_LANE_units]);
    key_uint(text, "requests_per_s", requests);
    key_uint(text, "rejected_per_s", hg_web_rejected(tenant->rates));
    key_uint(text, "held", held);
    key_uint(text, "debt_units", debt_of(web, bucket));
    key_uint(text, "hotkeys_throttled", atomic_load(&bucket->hot_throttled));
    bool throttled = hg_web_why(text, tenant, held);
    key_bool(text, "throttled", throttled);
    hg_json_key(text, "outcomes");
    hg_json_open(text, '{');
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        key_uint(text, hg_outcome_rows[o].name, values[HG_WEB_OUTCOMES_AT + o]);
    hg_json_close(text, '}');
    hg_json_close(text, '}');
}

void hg_web_tenants(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text)
{
    (void)view;
    hg_json_open(text, '{');
    hg_json_key(text, "tenants");
    hg_json_open(text, '[');
    for (size_t i = 0; i < web->watch.count; i++)
        tenant_object(text, web, web->watch.tenants[i]);
    hg_json_close(text, ']');
    hg_json_close(text, '}');
}

/* ---- upstreams ---- */

uint64_t hg_web_evicted(const struct hg_web *web, const struct hg_directory *directory,
                        const struct hg_upstream *upstream)
{
    uint64_t most = 0;
    for (unsigned w = 0; w < web->process->front.worker_count; w++) {
        struct hg_bind_board *board = &web->process->workers[w].bind_board;
        uint64_t count = 0;
        pthread_mutex_lock(&board->lock);
        for (size_t i = 0; i < board->count; i++) {
            const struct hg_bucket *bucket = hg_directory_bucket(
                (struct hg_directory *)(uintptr_t)directory, hg_span_str(board->rows[i].bucket));
            count += bucket != NULL && bucket->upstream == upstream;
        }
        pthread_mutex_unlock(&board->lock);
        most = count > most ? count : most;
    }
    return most;
}

static void tickets_object(struct hg_webtext *text, const char *key, struct hg_gateset *set,
                           enum hg_ticket_kind kind)
{
    struct hg_gateset_sum sum;
    hg_gateset_sum(set, kind, &sum);
    hg_json_key(text, key);
    hg_json_open(text, '{');
    key_int(text, "total", sum.size);
    key_int(text, "out", sum.out);
    key_int(text, "queued", sum.waiting > 0 ? sum.waiting : 0);
    hg_json_close(text, '}');
}

/* The dashboard knows three states: one that comes back takes requests again. */
static const char *breaker_name(const struct hg_server *server)
{
    const char *state = hg_server_state(server);
    return strcmp(state, "ramp") == 0 ? "closed" : state;
}

static void server_object(struct hg_webtext *text, const struct hg_upstream *upstream,
                          const struct hg_server *server, const struct hg_web_server *record)
{
    uint64_t sums[HG_UPSTREAM_STATS] = {0};
    char error[HG_SERVER_ERROR_BYTES];
    hg_upstream_server_sum(upstream, server->address, sums);
    hg_json_open(text, '{');
    key_string(text, "address", server->address);
    key_string(text, "breaker", breaker_name(server));
    key_uint(text, "connections", sums[HG_UPSTREAM_CONNECTIONS]);
    key_uint(text, "pending", sums[HG_UPSTREAM_PENDING]);
    key_uint(text, "waiting", sums[HG_UPSTREAM_WAITING]);
    key_uint(text, "requests_per_s", record != NULL ? record->requests_per_s : 0);
    key_uint(text, "errors_per_s", record != NULL ? record->errors_per_s : 0);
    hg_json_key(text, "last_error");
    if (hg_server_last_error(server, error)[0] != '\0')
        hg_json_string(text, error);
    else
        hg_json_null(text);
    hg_json_close(text, '}');
}

static void file_object(struct hg_webtext *text, const struct hg_directory *directory,
                        const struct hg_upstream *upstream)
{
    struct hg_embedded_stats stats;
    if (!hg_upstream_embedded(directory, upstream, &stats))
        return;
    hg_json_open(text, '{');
    key_string(text, "address", upstream->name);
    key_string(text, "breaker", "closed");
    key_uint(text, "connections", 0);
    key_uint(text, "pending", 0);
    key_uint(text, "waiting", 0);
    key_uint(text, "requests_per_s", 0);
    key_uint(text, "errors_per_s", 0);
    hg_json_key(text, "last_error");
    hg_json_null(text);
    key_uint(text, "used_bytes", stats.used_bytes);
    key_uint(text, "max_bytes", stats.max_bytes);
    key_uint(text, "items", stats.items);
    hg_json_close(text, '}');
}

static void upstream_object(struct hg_webtext *text, const struct hg_web *web,
                            const struct hg_directory *directory, struct hg_upstream *upstream)
{
    static const char *const controls[] = {"adaptive", "probing", "fixed"};
    const struct hg_web_upstream *record = hg_web_watch_upstream(&web->watch, upstream);
    const struct hg_upstream_shared *remote = hg_upstream_remote(directory, upstream);
    struct hg_gateset *set = upstream->gates;
    uint64_t since_us;
    pthread_mutex_lock(&set->lock);
    enum hg_probe_control control = set->conf.probe.control;
    pthread_mutex_unlock(&set->lock);
    hg_json_open(text, '{');
    key_string(text, "name", upstream->name);
    key_string(text, "kind", upstream->kind);
    key_bool(text, "alive", hg_upstream_is_alive(directory, upstream));
    key_string(text, "control", controls[control]);
    hg_json_key(text, "tickets");
    hg_json_open(text, '{');
    tickets_object(text, "read", set, HG_TICKET_READ);
    tickets_object(text, "write", set, HG_TICKET_WRITE);
    hg_json_close(text, '}');
    key_bool(text, "backlog", hg_gateset_backlog(set, &since_us) > 0);
    key_uint(text, "evicting", hg_web_evicted(web, directory, upstream));
    hg_json_key(text, "servers");
    hg_json_open(text, '[');
    for (uint32_t s = 0; remote != NULL && s < hg_upstream_servers(directory, upstream); s++)
        server_object(text, upstream, &remote->servers[s],
                      record != NULL && s < record->count ? &record->servers[s] : NULL);
    if (remote == NULL)
        file_object(text, directory, upstream);
    hg_json_close(text, ']');
    hg_json_close(text, '}');
}

void hg_web_upstreams(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *text)
{
    hg_json_open(text, '{');
    hg_json_key(text, "upstreams");
    hg_json_open(text, '[');
    for (size_t i = 0; i < view->directory->upstream_count; i++)
        upstream_object(text, web, view->directory, view->directory->upstreams[i]);
    hg_json_close(text, ']');
    hg_json_close(text, '}');
}
