// csv - the intervals of a load as a table
// SPDX-License-Identifier: BSD-3-Clause
#include "load/csv.h"

#include <string.h>

static void note_statuses(struct hg_csv *csv, const struct hg_series *series)
{
    for (uint32_t i = 0; i < series->count; i++) {
        for (int group = 0; group < HG_SERIES_GROUPS; group++) {
            const struct hg_series_tally *tally = &series->at[i][group];
            for (uint32_t n = 0; n < tally->statuses; n++) {
                csv->has_status[tally->status[n].slot] = true;
            }
            csv->has_more |= tally->more_statuses > 0;
        }
    }
}

void hg_csv_init(struct hg_csv *csv, FILE *file, struct hg_series *const *series, uint32_t count)
{
    uint64_t first;
    memset(csv, 0, sizeof *csv);
    csv->file = file;
    csv->interval_s = count > 0 ? (double)series[0]->length_ns / 1e9 : 0.0;
    hg_series_span(series, count, &first, &csv->end);
    for (uint32_t i = 0; i < count; i++) {
        note_statuses(csv, series[i]);
    }
    uint32_t named = 0;
    for (uint32_t slot = 0; slot < HG_LOAD_STATUS_SLOTS; slot++) {
        named += csv->has_status[slot];
    }
    csv->has_more |= named > HG_SERIES_STATUSES; /* series that are added up name no more */
}

void hg_csv_write_head(const struct hg_csv *csv)
{
    fputs("time_s,interval_s,scope,tenant,offered,sent,answered,ok,within_slo,missed,refused,wrong,"
          "not_sent,unanswered,waiting,in_flight,p50_ms,p99_ms,max_ms",
          csv->file);
    for (uint32_t slot = 0; slot < HG_LOAD_STATUS_SLOTS; slot++) {
        if (csv->has_status[slot]) {
            fprintf(csv->file, ",status_0x%02x", hg_load_status_code(slot));
        }
    }
    fputs(csv->has_more ? ",status_more\n" : "\n", csv->file);
}

/* A name in quotes where it needs them. */
static void put_name(FILE *file, const char *name)
{
    if (strpbrk(name, "\",") == NULL) {
        fputs(name, file);
        return;
    }
    putc('"', file);
    for (; *name != '\0'; name++) {
        if (*name == '"') {
            putc('"', file);
        }
        putc(*name, file);
    }
    putc('"', file);
}

static uint64_t answered(const struct hg_series_tally *tally)
{
    return tally->done + tally->missed + tally->refused + tally->wrong;
}

static void put_statuses(const struct hg_csv *csv, const struct hg_series_tally *tally)
{
    for (uint32_t slot = 0; slot < HG_LOAD_STATUS_SLOTS; slot++) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < tally->statuses; i++) {
            n += tally->status[i].slot == slot ? tally->status[i].count : 0;
        }
        if (csv->has_status[slot]) {
            fprintf(csv->file, ",%llu", (unsigned long long)n);
        }
    }
    if (csv->has_more) {
        fprintf(csv->file, ",%llu", (unsigned long long)tally->more_statuses);
    }
    putc('\n', csv->file);
}

/* `sum` is of the interval, `all` of everything up to its end. */
static void put_line(const struct hg_csv *csv, const struct hg_series_tally *sum,
                     const struct hg_series_tally *all, const struct hg_hist *latency)
{
    uint64_t numbers[] = {sum->offered,
                          sum->sent,
                          answered(sum),
                          sum->done + sum->missed,
                          sum->within_slo,
                          sum->missed,
                          sum->refused,
                          sum->wrong,
                          sum->not_sent,
                          sum->unanswered,
                          all->offered - all->sent - all->not_sent,
                          all->sent - answered(all) - all->unanswered};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fprintf(csv->file, ",%llu", (unsigned long long)numbers[i]);
    }
    if (hg_counter_get(&latency->total) == 0) {
        fputs(",,,", csv->file);
    } else {
        fprintf(csv->file, ",%.3f,%.3f,%.3f", (double)hg_hist_percentile(latency, 50) / 1e6,
                (double)hg_hist_percentile(latency, 99) / 1e6,
                (double)hg_counter_get(&latency->max) / 1e6);
    }
    put_statuses(csv, sum);
}

void hg_csv_write(const struct hg_csv *csv, const char *scope, const char *tenant,
                  struct hg_series *const *series, uint32_t count, int group)
{
    static struct hg_series_row row;
    struct hg_series_tally all = {0};
    for (uint64_t number = 0; number < csv->end; number++) {
        (void)hg_series_row(series, count, number, &row);
        int one = group == HG_SERIES_GROUPS ? HG_SERIES_OTHER : group;
        struct hg_series_tally *sum = &row.tally[one];
        struct hg_hist *latency = &row.latency[one];
        if (group == HG_SERIES_GROUPS) {
            hg_series_tally_add(sum, &row.tally[HG_SERIES_HOT]);
            hg_hist_merge(latency, &row.latency[HG_SERIES_HOT]);
        }
        hg_series_tally_add(&all, sum);
        fprintf(csv->file, "%.3f,%.3f,%s,", (double)number * csv->interval_s, csv->interval_s,
                scope);
        put_name(csv->file, tenant);
        put_line(csv, sum, &all, latency);
    }
}
