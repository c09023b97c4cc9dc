// report - what a load did: progress on stderr, the result on stdout
// SPDX-License-Identifier: BSD-3-Clause
//
// The numbers of a tenant are the sums over its lanes. A progress line shows what was counted since
// the line before it: the sums now less the sums then.
#include "load/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "load/csv.h"
#include "load/json.h"
#include "load/run.h"

struct hg_load_report {
    struct hg_load_run *run;
    bool measures;
    uint64_t start_ns; /* of the measured part */
    uint64_t line_ns;  /* of the last progress line */
    uint64_t next_ns;
    FILE *series;             /* NULL: nobody asked for one */
    struct hg_load_stats now; /* of one tenant, while it is printed */
    struct hg_load_stats *then;
};

const struct hg_load_mark hg_load_marks[HG_LOAD_MARKS] = {
    {"p50", "p50", 50}, {"p90", "p90", 90}, {"p99", "p99", 99}, {"p99.9", "p999", 99.9}};

struct hg_load_report *hg_load_report_new(struct hg_load_run *run)
{
    struct hg_load_report *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return NULL;
    }
    report->run = run;
    report->then = calloc(run->options->tenant_count, sizeof *report->then);
    if (report->then == NULL) {
        free(report);
        return NULL;
    }
    return report;
}

void hg_load_report_free(struct hg_load_report *report)
{
    if (report != NULL) {
        if (report->series != NULL) {
            fclose(report->series);
        }
        free(report->then);
        free(report);
    }
}

void hg_load_report_on_measure(struct hg_load_report *report, bool begins, uint64_t now_ns)
{
    report->measures = begins;
    if (begins) {
        report->start_ns = report->line_ns = now_ns;
        report->next_ns = now_ns + report->run->options->interval_ns;
        memset(report->then, 0, report->run->options->tenant_count * sizeof *report->then);
    } else {
        report->next_ns = UINT64_MAX; /* what comes in now belongs to nothing that is shown */
    }
}

void hg_load_report_collect(const struct hg_load_run *run, const struct hg_load_tenant *tenant,
                            bool measured, struct hg_load_stats *ret_sum)
{
    memset(ret_sum, 0, sizeof *ret_sum);
    for (uint32_t w = 0; w < run->options->threads; w++) {
        for (uint32_t i = 0; i < run->workers[w].lane_count; i++) {
            struct hg_load_lane *lane = run->workers[w].lanes[i];
            if (tenant == NULL || lane->tenant == tenant) {
                hg_load_stats_add(ret_sum, measured ? &lane->measured : &lane->before);
            }
        }
    }
}

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void show_line(const struct hg_load_report *report, const struct hg_load_tenant *tenant,
                      const struct hg_load_stats *stats, uint64_t now_ns)
{
    double seconds = (double)(now_ns - report->line_ns) / 1e9;
    char when[24] = "before";
    if (report->measures) {
        snprintf(when, sizeof when, "%.1f s", (double)(now_ns - report->start_ns) / 1e9);
    }
    fprintf(stderr, "%8s  %-10s %9.0f op/s  p50 %.3f  p99 %.3f ms ", when, tenant->name,
            (double)hg_load_stats_operations(stats) / seconds,
            ms(hg_hist_percentile(&stats->latency, 50)),
            ms(hg_hist_percentile(&stats->latency, 99)));
    for (uint32_t slot = 0; slot < HG_LOAD_STATUS_SLOTS; slot++) {
        uint64_t n = hg_counter_get(&stats->status[slot]);
        if (n > 0) {
            fprintf(stderr, " 0x%02x:%llu", hg_load_status_code(slot), (unsigned long long)n);
        }
    }
    if (hg_counter_get(&stats->wrong) > 0) {
        fprintf(stderr, " wrong:%llu", (unsigned long long)hg_counter_get(&stats->wrong));
    }
    if (hg_counter_get(&stats->shed) > 0) {
        fprintf(stderr, " not sent:%llu", (unsigned long long)hg_counter_get(&stats->shed));
    }
    fputc('\n', stderr);
}

void hg_load_report_on_turn(struct hg_load_report *report, uint64_t now_ns)
{
    const struct hg_load_options *options = report->run->options;
    if (now_ns < report->next_ns) {
        return;
    }
    bool first = report->next_ns == 0;
    for (uint32_t i = 0; i < options->tenant_count && !first; i++) {
        struct hg_load_stats sum;
        hg_load_report_collect(report->run, &options->tenants[i], report->measures, &sum);
        report->now = sum;
        hg_load_stats_subtract(&report->now, &report->then[i]);
        report->then[i] = sum;
        show_line(report, &options->tenants[i], &report->now, now_ns);
    }
    report->line_ns = now_ns;
    report->next_ns = now_ns + options->interval_ns;
}

/* The longest measured part of any thread; all begin and end within a moment of each other. */
static double measured_seconds(const struct hg_load_run *run)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < run->options->threads; i++) {
        uint64_t ns = run->workers[i].end_ns - run->workers[i].start_ns;
        longest = ns > longest ? ns : longest;
    }
    return (double)longest / 1e9;
}

static void show_histogram(const char *what, const struct hg_hist *hist)
{
    printf("  %-11s", what);
    for (size_t i = 0; i < HG_COUNT_OF(hg_load_marks); i++) {
        printf(" %s %.3f ", hg_load_marks[i].text,
               ms(hg_hist_percentile(hist, hg_load_marks[i].percent)));
    }
    printf(" max %.3f ms\n", ms(hg_counter_get(&hist->max)));
}

static bool is_open(const struct hg_load_tenant *tenant)
{
    return tenant->arrivals != HG_ARRIVALS_CLOSED;
}

/* What became of the intended requests of an open loop. */
static void show_open(const struct hg_load_stats *stats, double seconds)
{
    uint64_t intended = hg_counter_get(&stats->intended);
    printf(
        "  %-11s %llu, %.1f a second; %llu sent, %llu not sent for want of room, %llu left at the "
        "end\n",
        "intended", (unsigned long long)intended, hg_load_report_per((double)intended, seconds),
        (unsigned long long)hg_counter_get(&stats->sent),
        (unsigned long long)hg_counter_get(&stats->shed),
        (unsigned long long)hg_counter_get(&stats->left));
    show_histogram("sent late", &stats->late);
}

static void show_result(const char *name, const struct hg_load_stats *stats, double seconds,
                        bool open, double slo_ms)
{
    uint64_t operations = hg_load_stats_operations(stats);
    uint64_t refused = hg_load_stats_outcome(stats, HG_LOAD_REFUSED);
    printf("%s\n  %-11s %llu in %.2f s, %.1f a second", name, "operations",
           (unsigned long long)operations, seconds,
           hg_load_report_per((double)operations, seconds));
    printf(", %.1f KiB/s out, %.1f KiB/s in\n",
           hg_load_report_per((double)hg_counter_get(&stats->bytes_out) / 1024, seconds),
           hg_load_report_per((double)hg_counter_get(&stats->bytes_in) / 1024, seconds));
    if (open) {
        show_open(stats, seconds);
    }
    show_histogram("latency", &stats->latency);
    if (slo_ms > 0) {
        uint64_t within = hg_counter_get(&stats->within_slo);
        printf("  %-11s %llu, %.1f a second within %g ms\n", "within SLO",
               (unsigned long long)within, hg_load_report_per((double)within, seconds), slo_ms);
    }
    if (refused > 0) {
        printf("  %-11s %llu, %.1f a second\n", "refused", (unsigned long long)refused,
               hg_load_report_per((double)refused, seconds));
        show_histogram("to refusal", &stats->refusal);
    }
    for (int op = 0; op < HG_LOAD_OPS; op++) {
        uint64_t done = hg_counter_get(&stats->count[op][HG_LOAD_DONE]);
        uint64_t miss = hg_counter_get(&stats->count[op][HG_LOAD_MISS]);
        uint64_t no = hg_counter_get(&stats->count[op][HG_LOAD_REFUSED]);
        if (done + miss + no > 0) {
            printf("  %-11s %llu done, %llu missed, %llu refused\n", hg_load_op_table[op].name,
                   (unsigned long long)done, (unsigned long long)miss, (unsigned long long)no);
        }
    }
    for (uint32_t slot = 0; slot < HG_LOAD_STATUS_SLOTS; slot++) {
        uint64_t n = hg_counter_get(&stats->status[slot]);
        uint16_t code = hg_load_status_code(slot);
        if (n > 0) {
            printf("  status 0x%02x %llu %s\n", code, (unsigned long long)n,
                   hg_load_status_name(code));
        }
    }
    printf("  %-11s %llu replies; %llu connections lost, %llu requests unanswered\n", "wrong",
           (unsigned long long)hg_counter_get(&stats->wrong),
           (unsigned long long)hg_counter_get(&stats->lost),
           (unsigned long long)hg_counter_get(&stats->unanswered));
}

static void show_text(struct hg_load_report *report, double seconds)
{
    struct hg_load_run *run = report->run;
    const struct hg_load_options *options = run->options;
    char name[160];
    bool any_open = false;
    for (uint32_t i = 0; i < options->tenant_count; i++) {
        const struct hg_load_tenant *tenant = &options->tenants[i];
        snprintf(name, sizeof name, "tenant %s: %u connections, pipeline %u", tenant->name,
                 tenant->connections, tenant->pipeline);
        hg_load_report_collect(run, tenant, true, &report->now);
        show_result(name, &report->now, seconds, is_open(tenant), tenant->slo_ms);
        any_open |= is_open(tenant);
    }
    hg_load_report_collect(run, NULL, true, &report->now);
    if (options->tenant_count > 1) {
        show_result("all tenants", &report->now, seconds, any_open, 0);
    }
    double operations = (double)hg_load_stats_operations(&report->now);
    printf("CPU of headgate-load: %.3f us an operation\n",
           hg_load_report_per((double)run->own.used_ns / 1e3, operations));
    for (uint32_t i = 0; i < options->cpu_of_count; i++) {
        printf("CPU of process %d: %.3f us an operation\n", (int)run->others[i].pid,
               hg_load_report_per((double)run->others[i].used_ns / 1e3, operations));
    }
}

/* Keys that --fill did not store; each tenant's are named on stderr. */
static uint64_t unfilled_keys(const struct hg_load_run *run)
{
    uint64_t missing = 0;
    for (uint32_t i = 0; run->options->fill && i < run->options->tenant_count; i++) {
        const struct hg_load_tenant *tenant = &run->options->tenants[i];
        uint64_t wanted = 0;
        uint64_t stored = 0;
        for (uint32_t w = 0; w < run->options->threads; w++) {
            for (uint32_t n = 0; n < run->workers[w].lane_count; n++) {
                const struct hg_load_lane *lane = run->workers[w].lanes[n];
                if (lane->tenant == tenant) {
                    wanted += lane->fill_total;
                    stored += lane->fill_stored;
                }
            }
        }
        if (stored < wanted) {
            fprintf(stderr, "headgate-load: tenant '%s': --fill stored %llu of %llu keys\n",
                    tenant->name, (unsigned long long)stored, (unsigned long long)wanted);
        }
        missing += wanted - stored;
    }
    return missing;
}

uint32_t hg_load_report_series(const struct hg_load_run *run, const struct hg_load_tenant *tenant,
                               struct hg_series *list[HG_LOAD_LANES_MAX])
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < run->options->threads; w++) {
        for (uint32_t i = 0; i < run->workers[w].lane_count; i++) {
            struct hg_load_lane *lane = run->workers[w].lanes[i];
            if (lane->series.length_ns > 0 && (tenant == NULL || lane->tenant == tenant)) {
                list[count++] = &lane->series;
            }
        }
    }
    return count;
}

/* Opened before the load, so that a wrong name costs no run. */
bool hg_load_report_open(struct hg_load_report *report)
{
    const char *path = report->run->options->series;
    report->series = path != NULL ? fopen(path, "we") : NULL;
    if (path != NULL && report->series == NULL) {
        fprintf(stderr, "headgate-load: --series '%s': %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

/* Whether nothing was left out for want of memory. */
static bool write_lines(const struct hg_load_run *run, FILE *file)
{
    static struct hg_series *list[HG_LOAD_LANES_MAX];
    static struct hg_csv csv;
    bool whole = true;
    uint32_t count = hg_load_report_series(run, NULL, list);
    hg_csv_init(&csv, file, list, count);
    hg_csv_write_head(&csv);
    hg_csv_write(&csv, "run", "*", list, count, HG_SERIES_GROUPS);
    for (uint32_t i = 0; i < count; i++) {
        whole = whole && !list[i]->is_short;
    }
    for (uint32_t i = 0; i < run->options->tenant_count; i++) {
        const struct hg_load_tenant *tenant = &run->options->tenants[i];
        count = hg_load_report_series(run, tenant, list);
        hg_csv_write(&csv, "tenant", tenant->name, list, count, HG_SERIES_GROUPS);
        if (tenant->hot_rate > 0) {
            hg_csv_write(&csv, "hot", tenant->name, list, count, HG_SERIES_HOT);
            hg_csv_write(&csv, "other", tenant->name, list, count, HG_SERIES_OTHER);
        }
    }
    return whole;
}

/* The file of --series; whether it is complete. */
static bool write_series(struct hg_load_report *report)
{
    if (report->series == NULL) {
        return true;
    }
    bool whole = write_lines(report->run, report->series);
    bool failed = ferror(report->series) != 0;
    failed |= fclose(report->series) != 0;
    report->series = NULL;
    if (failed || !whole) {
        fprintf(stderr, "headgate-load: --series '%s': %s\n", report->run->options->series,
                failed ? strerror(errno) : "out of memory, some latencies are missing");
    }
    return !failed && whole;
}

bool hg_load_report_finish(struct hg_load_report *report)
{
    double seconds = measured_seconds(report->run);
    if (report->run->options->json) {
        hg_load_json_show(report->run, report->start_ns, seconds);
    } else {
        show_text(report, seconds);
    }
    fflush(stdout);
    uint64_t trouble = unfilled_keys(report->run);
    for (int measured = 0; measured < 2; measured++) {
        hg_load_report_collect(report->run, NULL, measured != 0, &report->now);
        trouble += hg_counter_get(&report->now.wrong) + hg_counter_get(&report->now.lost) +
                   hg_counter_get(&report->now.unanswered);
    }
    return write_series(report) && trouble == 0;
}
