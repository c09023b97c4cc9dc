// json - the report of a load as JSON, on stdout
// SPDX-License-Identifier: BSD-3-Clause
#include "load/json.h"

#include <stdio.h>

#include "config.h"
#include "load/report.h"
#include "load/run.h"

static void json_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('"');
}

static void json_count(const char *name, uint64_t n)
{
    printf("\"%s\":%llu,", name, (unsigned long long)n);
}

static void json_histogram(const char *name, const struct hg_hist *hist)
{
    printf("\"%s\":{", name);
    for (size_t i = 0; i < HG_COUNT_OF(hg_load_marks); i++) {
        printf("\"%s\":%.3f,", hg_load_marks[i].json,
               (double)hg_hist_percentile(hist, hg_load_marks[i].percent) / 1e3);
    }
    printf("\"max\":%.3f,\"mean\":%.3f},", (double)hg_counter_get(&hist->max) / 1e3,
           hg_hist_mean(hist) / 1e3);
}

static void json_intervals(const struct hg_load_run *run, const struct hg_load_tenant *tenant)
{
    static struct hg_series *list[HG_LOAD_LANES_MAX];
    uint32_t count = hg_load_report_series(run, tenant, list);
    if (count > 0) {
        printf(",\"interval_ms\":%u,\"intervals\":", run->options->interval_ms);
        hg_series_print(list, count);
    }
}

static void json_hot(const struct hg_load_tenant *tenant)
{
    const struct hg_load_op_info *info = &hg_load_op_table[tenant->hot_op];
    char key[256];
    if (tenant->hot_rate <= 0) {
        return;
    }
    hg_lane_put_key(tenant, info->space, tenant->hot_key, (uint8_t *)key);
    key[tenant->key_bytes] = '\0';
    printf(",\"hot\":{\"key\":");
    json_text(key);
    printf(",\"operation\":\"%s\",\"rate\":%g,\"at\":%g,\"until\":", info->name, tenant->hot_rate,
           (double)tenant->hot_at_ns / 1e9);
    if (tenant->hot_until_ns == UINT64_MAX) {
        printf("null}");
    } else {
        printf("%g}", (double)tenant->hot_until_ns / 1e9);
    }
}

static void json_result(const struct hg_load_stats *stats, double seconds)
{
    uint64_t operations = hg_load_stats_operations(stats);
    json_count("operations", operations);
    printf("\"ops_per_s\":%.3f,", hg_load_report_per((double)operations, seconds));
    json_count("done", hg_load_stats_outcome(stats, HG_LOAD_DONE));
    json_count("missed", hg_load_stats_outcome(stats, HG_LOAD_MISS));
    json_count("refused", hg_load_stats_outcome(stats, HG_LOAD_REFUSED));
    json_count("wrong", hg_counter_get(&stats->wrong));
    json_count("lost", hg_counter_get(&stats->lost));
    json_count("unanswered", hg_counter_get(&stats->unanswered));
    json_count("intended", hg_counter_get(&stats->intended));
    json_count("sent", hg_counter_get(&stats->sent));
    json_count("shed", hg_counter_get(&stats->shed));
    json_count("left", hg_counter_get(&stats->left));
    json_count("within_slo", hg_counter_get(&stats->within_slo));
    json_count("bytes_out", hg_counter_get(&stats->bytes_out));
    json_count("bytes_in", hg_counter_get(&stats->bytes_in));
    json_histogram("latency_us", &stats->latency);
    json_histogram("refusal_us", &stats->refusal);
    json_histogram("late_us", &stats->late);
    printf("\"by_operation\":{");
    const char *comma = "";
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        uint64_t n[HG_LOAD_OUTCOMES];
        for (int outcome = 0; outcome < HG_LOAD_OUTCOMES; outcome++) {
            n[outcome] = hg_counter_get(&stats->count[op][outcome]);
        }
        if (n[HG_LOAD_DONE] + n[HG_LOAD_MISS] + n[HG_LOAD_REFUSED] > 0) {
            printf("%s\"%s\":{\"done\":%llu,\"missed\":%llu,\"refused\":%llu}", comma,
                   hg_load_op_table[op].name, (unsigned long long)n[HG_LOAD_DONE],
                   (unsigned long long)n[HG_LOAD_MISS], (unsigned long long)n[HG_LOAD_REFUSED]);
            comma = ",";
        }
    }
    printf("},\"statuses\":{");
    comma = "";
    for (uint32_t slot = 0; slot < HG_LOAD_STATUS_SLOTS; slot++) {
        uint64_t n = hg_counter_get(&stats->status[slot]);
        if (n > 0) {
            printf("%s\"0x%02x\":%llu", comma, hg_load_status_code(slot), (unsigned long long)n);
            comma = ",";
        }
    }
    printf("}");
}

void hg_load_json_show(const struct hg_load_run *run, uint64_t start_ns, double seconds)
{
    static struct hg_load_stats sum;
    const struct hg_load_options *options = run->options;
    printf(
        "{\"version\":\"%s\",\"protocol\":\"%s\",\"threads\":%u,\"seconds\":%.6f,\"start_ms\":%llu,"
        "\"total\":{",
        PACKAGE_VERSION, hg_load_protocol_names[options->protocol], options->threads, seconds,
        (unsigned long long)((start_ns + run->wall_offset_ns) / 1000000));
    hg_load_report_collect(run, NULL, true, &sum);
    double operations = (double)hg_load_stats_operations(&sum);
    json_result(&sum, seconds);
    json_intervals(run, NULL);
    printf("},\"cpu\":{\"own_us_per_op\":%.4f,\"processes\":[",
           hg_load_report_per((double)run->own.used_ns / 1e3, operations));
    for (uint32_t i = 0; i < options->cpu_of_count; i++) {
        printf("%s{\"pid\":%d,\"seconds\":%.6f,\"us_per_op\":%.4f}", i > 0 ? "," : "",
               (int)run->others[i].pid, (double)run->others[i].used_ns / 1e9,
               hg_load_report_per((double)run->others[i].used_ns / 1e3, operations));
    }
    printf("]},\"tenants\":[");
    for (uint32_t i = 0; i < options->tenant_count; i++) {
        const struct hg_load_tenant *tenant = &options->tenants[i];
        printf("%s{\"name\":", i > 0 ? "," : "");
        json_text(tenant->name);
        printf(",\"connections\":%u,\"pipeline\":%u,\"arrivals\":\"%s\",\"slo_ms\":%g,",
               tenant->connections, tenant->pipeline, hg_load_arrivals_names[tenant->arrivals],
               tenant->slo_ms);
        hg_load_report_collect(run, tenant, true, &sum);
        json_result(&sum, seconds);
        json_hot(tenant);
        json_intervals(run, tenant);
        printf("}");
    }
    puts("]}");
}
