// stats - the groups of `stat`: who may see what, and the groups of the whole process
// SPDX-License-Identifier: BSD-3-Clause
//
// Counters have one writer each and are read from here, on housekeeping, as they stand. What only a
// worker may look at (its sessions, its slow log) is collected by sending the job round the
// workers.
#include "app/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/login.h"
#include "app/rights.h"
#include "back/pool_stats.h"
#include "base/clock.h"
#include "proto/status.h"

/* ---- general ---- */

#define SUM(process, field) sum_workers(process, offsetof(struct hg_worker, field))

static uint64_t sum_workers(const struct hg_process *process, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned w = 0; w < process->front.worker_count; w++)
        sum += hg_counter_get((const hg_counter *)((const char *)&process->workers[w] + offset));
    return sum;
}

static uint64_t sum_opcodes(const struct hg_process *process, const uint8_t *codes)
{
    uint64_t sum = 0;
    for (; *codes != 0xff; codes++)
        sum +=
            sum_workers(process, offsetof(struct hg_worker, opcodes) + *codes * sizeof(hg_counter));
    return sum;
}

static void general_commands(const struct hg_process *process, struct hg_job *job)
{
    static const uint8_t gets[] = {0x00, 0x09, 0x0c, 0x0d, 0x1d, 0x1e, 0x23, 0x24, 0xff};
    static const uint8_t sets[] = {0x01, 0x02, 0x03, 0x0e, 0x0f, 0x11,
                                   0x12, 0x13, 0x19, 0x1a, 0xff};
    static const uint8_t touches[] = {0x1c, 0x1d, 0x1e, 0x23, 0x24, 0xff};
    static const uint8_t flushes[] = {0x08, 0x18, 0xff};
    hg_job_stat(job, "cmd_get", "%llu", (unsigned long long)sum_opcodes(process, gets));
    hg_job_stat(job, "cmd_set", "%llu", (unsigned long long)sum_opcodes(process, sets));
    hg_job_stat(job, "cmd_touch", "%llu", (unsigned long long)sum_opcodes(process, touches));
    hg_job_stat(job, "cmd_flush", "%llu", (unsigned long long)sum_opcodes(process, flushes));
    hg_job_stat(job, "get_hits", "%llu", (unsigned long long)SUM(process, get_hits));
    hg_job_stat(job, "get_misses", "%llu", (unsigned long long)SUM(process, get_misses));
}

static void seconds(struct hg_job *job, const char *name, struct timeval tv)
{
    hg_job_stat(job, name, "%lld.%06ld", (long long)tv.tv_sec, (long)tv.tv_usec);
}

static void group_general(struct hg_process *process, struct hg_job *job)
{
    struct rusage usage;
    const struct hg_listeners_stats *listeners = hg_listeners_stats(process->listeners);
    getrusage(RUSAGE_SELF, &usage);
    hg_job_stat(job, "pid", "%ld", (long)getpid());
    hg_job_stat(job, "uptime", "%llu",
                (unsigned long long)((hg_now_us() - process->front.start_us) / 1000000));
    hg_job_stat(job, "time", "%llu", (unsigned long long)hg_wall_s());
    hg_job_stat(job, "version", "%s", process->front.version);
    hg_job_stat(job, "pointer_size", "%zu", 8 * sizeof(void *));
    seconds(job, "rusage_user", usage.ru_utime);
    seconds(job, "rusage_system", usage.ru_stime);
    hg_job_stat(job, "max_connections", "%llu",
                (unsigned long long)process->effective->max_connections);
    hg_job_stat(job, "curr_connections", "%llu", (unsigned long long)SUM(process, connections));
    hg_job_stat(job, "total_connections", "%llu",
                (unsigned long long)hg_counter_get(&listeners->accepted));
    hg_job_stat(job, "rejected_connections", "%llu",
                (unsigned long long)hg_counter_get(&listeners->over_limit));
    general_commands(process, job);
    hg_job_stat(job, "threads", "%u", process->front.worker_count);
#define HG_WORKER_STAT(name, kind, text)                                                           \
    if (strcmp(#name, "connections") != 0 && strcmp(#name, "get_hits") != 0 &&                     \
        strcmp(#name, "get_misses") != 0)                                                          \
        hg_job_stat(job, #name, "%llu", (unsigned long long)SUM(process, name));
    HG_WORKER_STATS(HG_WORKER_STAT)
#undef HG_WORKER_STAT
    for (unsigned o = 0; o < HG_OUTCOMES; o++) {
        char name[64];
        snprintf(name, sizeof name, "outcome_%s", hg_outcome_rows[o].name);
        hg_job_stat(job, name, "%llu",
                    (unsigned long long)sum_workers(process, offsetof(struct hg_worker, outcomes) +
                                                                 o * sizeof(hg_counter)));
    }
    hg_job_stat(job, "ticks", "%llu", (unsigned long long)hg_counter_get(&process->ticks));
    hg_job_stat(job, "reloads", "%llu", (unsigned long long)hg_counter_get(&process->reloads));
    hg_job_stat(job, "reload_errors", "%llu",
                (unsigned long long)hg_counter_get(&process->reload_errors));
    const struct hg_login_stats *logins = hg_logins_stats(process->logins);
#define HG_LOGIN_STAT(name, kind, text)                                                            \
    hg_job_stat(job, "login_" #name, "%llu", (unsigned long long)hg_counter_get(&logins->name));
#include "app/login_stats.def"
#undef HG_LOGIN_STAT
    hg_tlslisten_stats(process->tls, job);
}

/* ---- threads, operations ---- */

static void group_threads(struct hg_process *process, struct hg_job *job)
{
    for (unsigned w = 0; w < process->front.worker_count; w++) {
        const struct hg_worker *worker = &process->workers[w];
        char name[80];
#define HG_WORKER_STAT(field, kind, text)                                                          \
    snprintf(name, sizeof name, "worker_%u:" #field, w);                                           \
    hg_job_stat(job, name, "%llu", (unsigned long long)hg_counter_get(&worker->field));
        HG_WORKER_STATS(HG_WORKER_STAT)
#undef HG_WORKER_STAT
    }
    hg_tlslisten_thread_stats(process->tls, job);
}

/* The latencies of one operation over all workers; malloc'd, NULL when memory is out. */
static struct hg_hist *merged_latency(const struct hg_process *process, unsigned op)
{
    struct hg_hist *all = calloc(1, sizeof *all);
    for (unsigned w = 0; all != NULL && w < process->front.worker_count; w++)
        hg_hist_merge(all, &process->workers[w].latency[op]);
    return all;
}

/* The same of all operations of TableAPI, or of HBase. */
static struct hg_hist *merged_api_latency(const struct hg_process *process, enum hg_api api)
{
    struct hg_hist *all = calloc(1, sizeof *all);
    for (unsigned op = HG_OPS_CLASSIC; all != NULL && op < HG_OPS; op++)
        for (unsigned w = 0; hg_op_rows[op].api == api && w < process->front.worker_count; w++)
            hg_hist_merge(all, &process->workers[w].latency[op]);
    return all;
}

static struct hg_hist *opcode_latency(const struct hg_process *process,
                                      const struct hg_opcode_row *row)
{
    if (row->op_class == HG_OPCODE_CLASS_DATA)
        return merged_latency(process, row->op);
    if (row->op_class == HG_OPCODE_CLASS_TABLE)
        return merged_api_latency(process,
                                  row->code == HG_OPCODE_TABLE ? HG_API_TABLE : HG_API_HBASE);
    return calloc(1, sizeof(struct hg_hist));
}

static void group_ops(struct hg_process *process, struct hg_job *job)
{
    static const struct {
        const char *name;
        double percent;
    } points[] = {{"p50_us", 50}, {"p90_us", 90}, {"p99_us", 99}, {"p999_us", 99.9}};
    for (unsigned op = 0; op < HG_OPS; op++) {
        struct hg_hist *hist = merged_latency(process, op);
        char name[80];
        if (hist == NULL) {
            hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
            return;
        }
        snprintf(name, sizeof name, "%s:count", hg_op_rows[op].name);
        hg_job_stat(job, name, "%llu", (unsigned long long)hg_counter_get(&hist->total));
        for (size_t p = 0; p < HG_COUNT_OF(points); p++) {
            snprintf(name, sizeof name, "%s:%s", hg_op_rows[op].name, points[p].name);
            hg_job_stat(job, name, "%llu",
                        (unsigned long long)hg_hist_percentile(hist, points[p].percent));
        }
        snprintf(name, sizeof name, "%s:max_us", hg_op_rows[op].name);
        hg_job_stat(job, name, "%llu", (unsigned long long)hg_counter_get(&hist->max));
        free(hist);
    }
}

static void group_upstreams(struct hg_process *process, struct hg_job *job)
{
    for (size_t i = 0; i < process->directory->upstream_count; i++)
        hg_upstream_stats(process->directory->upstreams[i], job);
}

static void group_pool(struct hg_process *process, struct hg_job *job)
{
    for (size_t i = 0; i < process->directory->upstream_count; i++)
        hg_upstream_pool_stats(process->directory->upstreams[i], job);
}

static void group_settings(struct hg_process *process, struct hg_job *job)
{
    hg_conf_list(process->effective, hg_stats_setting, job);
}

void hg_stats_setting(void *ctx, const char *path, const char *value)
{
    hg_job_stat(ctx, path, "%s", value);
}

/* ---- GetCmdTimer ---- */

static void cmd_timer(struct hg_process *process, struct hg_job *job)
{
    const struct hg_opcode_row *row = hg_opcode_row(job->extras.at[0]);
    if (job->key.len > 0) {
        hg_job_fail(job, HG_STATUS_NOT_SUPPORTED,
                    "timings are kept for the whole node only (accepted: no key)");
        return;
    }
    if (row == NULL) {
        hg_job_fail(job, HG_STATUS_EINVAL, "there is no opcode 0x%02x", job->extras.at[0]);
        return;
    }
    struct hg_hist *hist = opcode_latency(process, row);
    char text[128];
    bool any = false;
    if (hist == NULL) {
        hg_job_fail(job, HG_STATUS_EINTERNAL, "no memory is left");
        return;
    }
    snprintf(text, sizeof text, "{\"opcode\":\"%s\",\"unit\":\"us\",\"total\":%llu,\"data\":[",
             row->name, (unsigned long long)hg_counter_get(&hist->total));
    hg_job_body(job, hg_span_str(text));
    for (uint32_t b = 0; b < HG_HIST_BUCKETS; b++) {
        uint64_t count = hg_counter_get(&hist->bucket[b]);
        if (count == 0)
            continue;
        snprintf(text, sizeof text, "%s[%llu,%llu]", any ? "," : "",
                 (unsigned long long)hg_hist_bucket_last(b), (unsigned long long)count);
        hg_job_body(job, hg_span_str(text));
        any = true;
    }
    hg_job_body(job, HG_SPAN_LIT("]}"));
    free(hist);
}

/* ---- which group ---- */

struct group {
    const char *name;
    bool takes_argument;
    int needs; /* enum hg_privilege of the node; NOTHING: rows are chosen one by one */
    void (*answer)(struct hg_process *process, struct hg_job *job);
    const char *text;
};

#define NOTHING    (-1)
#define STATS      HG_PRIVILEGE_STATS
#define SUPERVISOR HG_PRIVILEGE_NODE_SUPERVISOR

static const struct group groups[] = {
    {"", false, NOTHING, group_general, "memcached's usual names, and outcomes"},
    {"settings", false, STATS, group_settings, "every option as it is in force"},
    {"threads", false, STATS, group_threads, "what each worker does"},
    {"connections", false, NOTHING, hg_stats_connections, "clients; other tenants' need Stats"},
    {"buckets", false, NOTHING, hg_stats_buckets, "one row a tenant, JSON; others' need Stats"},
    {"bucket_details", true, NOTHING, hg_stats_bucket_details, "all tenants, or one, as JSON"},
    {"throttle", false, NOTHING, hg_stats_throttle,
     "credits: capacity, pool, what is held and why"},
    {"ops", false, STATS, group_ops, "count and latency of each operation"},
    {"upstreams", false, STATS, group_upstreams, "stores and their servers"},
    {"pool", false, STATS, group_pool, "connections to servers, of each identity"},
    {"slow", false, NOTHING, hg_stats_slow, "the last slow requests; other tenants' need Stats"},
    {"hotkeys", true, NOTHING, hg_stats_hotkeys,
     "the hot keys of the last epoch, or of ten; other tenants' need Stats"},
    {"hotkey_engine", false, STATS, hg_stats_hotkey_engine, "epochs, their cost, their memory"},
    {"tickets", false, NOTHING, hg_stats_tickets,
     "tickets of the process, of upstreams and of tenants; others' need Stats"},
    {"bindthrottle", false, NOTHING, hg_stats_binds,
     "keys that were evicted, one in X of whose requests is let through, and keys held at their "
     "share of tickets; others' need Stats"},
    {"events", true, STATS, hg_stats_events,
     "the last 1000 begins and ends of throttlings and slow servers; events NUMBER: later ones"},
    {"reset", false, SUPERVISOR, hg_stats_reset, "sets all counters to 0"},
};

static const struct group *find_group(struct hg_span key)
{
    for (size_t g = 0; g < HG_COUNT_OF(groups); g++) {
        size_t len = strlen(groups[g].name);
        if (key.len < len || memcmp(key.at, groups[g].name, len) != 0)
            continue;
        if (key.len == len ||
            (groups[g].takes_argument && len > 0 && key.len > len + 1 && key.at[len] == ' '))
            return &groups[g];
    }
    return NULL;
}

void hg_stats_on_job(struct hg_process *process, struct hg_job *job)
{
    job->status = HG_STATUS_SUCCESS;
    if (job->row->code == HG_OPCODE_GET_CMD_TIMER) {
        if (hg_rights_check(job, hg_rights_of_node(job), HG_PRIVILEGE_STATS))
            cmd_timer(process, job);
        hg_job_answer(job);
        return;
    }
    const struct group *group = find_group(job->key);
    if (group == NULL) {
        hg_job_fail(job, HG_STATUS_KEY_ENOENT,
                    "there is no such group (accepted: nothing, settings, threads, connections, "
                    "buckets, bucket_details [NAME], throttle, ops, upstreams, pool, "
                    "slow, hotkeys [global|history] [NAME], hotkey_engine, tickets, bindthrottle, "
                    "events [NUMBER], "
                    "where KEY, reset)");
    } else if (group->needs == NOTHING ||
               hg_rights_check(job, hg_rights_of_node(job), (enum hg_privilege)group->needs)) {
        job->packets = true;
        job->ctx = process;
        group->answer(process, job);
        if (group->answer == hg_stats_connections || group->answer == hg_stats_slow ||
            group->answer == hg_stats_reset)
            return; /* goes round the workers, the last of which answers */
    }
    hg_job_answer(job);
}

void hg_stats_describe(FILE *to)
{
    for (size_t g = 0; g < HG_COUNT_OF(groups); g++)
        fprintf(to, "stat %-15s %s\n", groups[g].name, groups[g].text);
    fprintf(to, "stat %-15s %s\n", "where KEY", "the server that a key goes to");
    fprintf(to, "\nof each worker (stat threads) and of all together (stat):\n");
#define HG_WORKER_STAT(name, kind, text) fprintf(to, "  %-22s %s\n", #name, text);
    HG_WORKER_STATS(HG_WORKER_STAT)
#undef HG_WORKER_STAT
    fprintf(to, "\nof TLS handshakes (stat: tls_handshakes_NAME, with tls_handshakes_now;\n"
                "stat threads: handshakes_N:NAME):\n");
#define HG_HANDSHAKE_STAT(name, kind, text) fprintf(to, "  %-22s %s\n", #name, text);
#include "front/handshake_stats.def"
#undef HG_HANDSHAKE_STAT
    fprintf(to, "\nof each tenant (stat bucket_details):\n");
#define HG_LANE(name, kind, text) fprintf(to, "  %-22s %s\n", #name, text);
#include "front/lane.def"
#undef HG_LANE
    fprintf(to, "\nof the engine of hot keys (stat hotkey_engine):\n");
#define HG_HOT_STAT(name, kind, text) fprintf(to, "  %-22s %s\n", #name, text);
    HG_HOT_STATS(HG_HOT_STAT)
    HG_HOT_WORKER_STATS(HG_HOT_STAT)
#undef HG_HOT_STAT
    fprintf(to, "\nof each holder of tickets (stat tickets):\n");
    for (unsigned i = 0; i < HG_GATE_STATS; i++)
        fprintf(to, "  %-33s %s\n", hg_gate_stat_rows[i].name, hg_gate_stat_rows[i].text);
    fprintf(to, "\nof bind eviction (stat bindthrottle):\n");
#define HG_BINDS_STAT(name, kind, text) fprintf(to, "  %-22s %s\n", #name, text);
    HG_BINDS_STATS(HG_BINDS_STAT)
#undef HG_BINDS_STAT
    fprintf(to, "\nof each identity on a server (stat pool):\n");
    for (unsigned i = 0; i < HG_POOL_STATS; i++)
        fprintf(to, "  %-22s %s\n", hg_pool_stat_rows[i].name, hg_pool_stat_rows[i].help);
    fprintf(to, "\noutcomes, of which each request has exactly one (outcome_NAME):\n");
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        fprintf(to, "  %-22s %s\n", hg_outcome_rows[o].name, hg_outcome_rows[o].text);
}
