// series - what was sent and answered, by intervals of the wall clock
// SPDX-License-Identifier: BSD-3-Clause
#include "load/series.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

int hg_series_init(struct hg_series *series, uint64_t length_ns, uint64_t offset_ns,
                   uint64_t slo_ns, uint64_t now_ns)
{
    memset(series, 0, sizeof *series);
    series->at = calloc(FIRST_ROOM, sizeof *series->at);
    series->live = calloc(HG_SERIES_GROUPS, sizeof *series->live);
    if (series->at == NULL || series->live == NULL) {
        hg_series_fini(series);
        return -ENOMEM;
    }
    series->length_ns = length_ns;
    series->offset_ns = offset_ns;
    series->slo_ns = slo_ns;
    series->room = FIRST_ROOM;
    series->first = (now_ns + offset_ns) / length_ns;
    hg_series_advance(series, now_ns);
    return 0;
}

void hg_series_fini(struct hg_series *series)
{
    free(series->at);
    free(series->live);
    free(series->pairs);
    series->at = NULL;
    series->live = NULL;
    series->pairs = NULL;
}

void hg_series_start_at(struct hg_series *series, uint64_t start_ns)
{
    series->wall_ns = series->offset_ns + start_ns;
    series->offset_ns = 0 - start_ns;
    series->first = 0;
    hg_series_advance(series, start_ns);
}

/* Room for interval `index`; false: there is none, and the last one takes it. */
static bool make_room(struct hg_series *series, uint64_t index)
{
    if (index < series->room) {
        return true;
    }
    uint64_t room = series->room;
    while (room <= index) {
        room *= 2;
    }
    void *at = index < HG_SERIES_MAX ? realloc(series->at, room * sizeof *series->at) : NULL;
    if (at == NULL) {
        return false;
    }
    series->at = at;
    memset(series->at + series->room, 0, (room - series->room) * sizeof *series->at);
    series->room = (uint32_t)room;
    return true;
}

/* Moves the latencies of one group from `live` to the tally of the interval in use. */
static void put_away(struct hg_series *series, enum hg_series_group group)
{
    struct hg_hist *live = &series->live[group];
    struct hg_series_tally *tally = &series->at[series->now][group];
    if (hg_counter_get(&live->total) == 0) {
        return;
    }
    if (series->pair_room - series->pair_count < HG_HIST_BUCKETS) {
        size_t room = 2 * series->pair_room + HG_HIST_BUCKETS;
        struct hg_series_pair *pairs = realloc(series->pairs, room * sizeof *pairs);
        if (pairs == NULL) {
            series->is_short = true;
            return;
        }
        series->pairs = pairs;
        series->pair_room = room;
    }
    tally->first_pair = series->pair_count;
    for (uint32_t bucket = 0; bucket < HG_HIST_BUCKETS; bucket++) {
        uint64_t count = hg_counter_get(&live->bucket[bucket]);
        if (count > 0) {
            series->pairs[series->pair_count++] = (struct hg_series_pair){bucket, (uint32_t)count};
            tally->pairs++;
        }
    }
    tally->max_ns = hg_counter_get(&live->max);
    hg_hist_init(live);
}

void hg_series_settle(struct hg_series *series)
{
    put_away(series, HG_SERIES_OTHER);
    put_away(series, HG_SERIES_HOT);
}

void hg_series_advance(struct hg_series *series, uint64_t now_ns)
{
    uint64_t number = (now_ns + series->offset_ns) / series->length_ns;
    uint64_t index = number > series->first ? number - series->first : 0;
    if (!make_room(series, index)) {
        series->until_ns = UINT64_MAX;
        return;
    }
    hg_series_settle(series);
    series->now = (uint32_t)index;
    series->count = series->now + 1;
    series->from_ns = (series->first + index) * series->length_ns - series->offset_ns;
    series->until_ns = series->from_ns + series->length_ns;
}

struct hg_series_tally *hg_series_earlier(struct hg_series *series, enum hg_series_group group,
                                          uint64_t then_ns)
{
    uint64_t number = (then_ns + series->offset_ns) / series->length_ns;
    return &series->at[number > series->first ? number - series->first : 0][group];
}

static void count_status(struct hg_series_tally *tally, uint16_t slot, uint64_t n)
{
    for (uint32_t i = 0; i < tally->statuses; i++) {
        if (tally->status[i].slot == slot) {
            tally->status[i].count += n;
            return;
        }
    }
    if (tally->statuses == HG_SERIES_STATUSES) {
        tally->more_statuses += n;
        return;
    }
    tally->status[tally->statuses].slot = slot;
    tally->status[tally->statuses++].count = n;
}

void hg_series_answered(struct hg_series *series, enum hg_series_group group,
                        enum hg_load_outcome outcome, uint32_t slot, uint64_t latency_ns,
                        uint64_t now_ns)
{
    struct hg_series_tally *tally = hg_series_tally(series, group, now_ns);
    tally->done += outcome == HG_LOAD_DONE;
    tally->missed += outcome == HG_LOAD_MISS;
    tally->refused += outcome == HG_LOAD_REFUSED;
    tally->wrong += outcome == HG_LOAD_WRONG;
    count_status(tally, (uint16_t)slot, 1);
    if (outcome == HG_LOAD_DONE || outcome == HG_LOAD_MISS) {
        tally->within_slo += latency_ns <= series->slo_ns;
        hg_hist_record(&series->live[group], latency_ns, 1);
    }
}

void hg_series_tally_add(struct hg_series_tally *into, const struct hg_series_tally *from)
{
    into->offered += from->offered;
    into->sent += from->sent;
    into->within_slo += from->within_slo;
    into->not_sent += from->not_sent;
    into->unanswered += from->unanswered;
    into->done += from->done;
    into->missed += from->missed;
    into->refused += from->refused;
    into->wrong += from->wrong;
    into->more_statuses += from->more_statuses;
    for (uint32_t i = 0; i < from->statuses; i++) {
        count_status(into, from->status[i].slot, from->status[i].count);
    }
}

void hg_series_total(const struct hg_series *series, enum hg_series_group group,
                     struct hg_series_tally *into)
{
    for (uint32_t i = 0; i < series->count; i++) {
        hg_series_tally_add(into, &series->at[i][group]);
    }
}

/* ---- several of them ---- */

static void add_latencies(const struct hg_series *series, const struct hg_series_tally *tally,
                          struct hg_hist *into)
{
    for (uint32_t i = 0; i < tally->pairs; i++) {
        const struct hg_series_pair *pair = &series->pairs[tally->first_pair + i];
        uint64_t last = hg_hist_bucket_last(pair->bucket);
        hg_hist_record(into, last < tally->max_ns ? last : tally->max_ns, pair->count);
    }
}

bool hg_series_row(struct hg_series *const *series, uint32_t count, uint64_t number,
                   struct hg_series_row *ret_row)
{
    bool any = false;
    memset(ret_row, 0, sizeof *ret_row);
    for (uint32_t i = 0; i < count; i++) {
        if (number < series[i]->first || number - series[i]->first >= series[i]->count) {
            continue;
        }
        for (int group = 0; group < HG_SERIES_GROUPS; group++) {
            const struct hg_series_tally *tally = &series[i]->at[number - series[i]->first][group];
            hg_series_tally_add(&ret_row->tally[group], tally);
            add_latencies(series[i], tally, &ret_row->latency[group]);
            any |= tally->offered + tally->sent + tally->not_sent + tally->unanswered > 0 ||
                   tally->statuses > 0;
        }
    }
    return any;
}

void hg_series_span(struct hg_series *const *series, uint32_t count, uint64_t *ret_first,
                    uint64_t *ret_end)
{
    static struct hg_series_row row;
    uint64_t first = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < count; i++) {
        hg_series_settle(series[i]);
        first = series[i]->first < first ? series[i]->first : first;
        uint64_t behind = series[i]->first + series[i]->count;
        end = behind > end ? behind : end;
    }
    while (first < end && !hg_series_row(series, count, first, &row)) {
        first++;
    }
    while (first < end && !hg_series_row(series, count, end - 1, &row)) {
        end--;
    }
    *ret_first = first < end ? first : 0;
    *ret_end = first < end ? end : 0;
}

/* ---- as JSON ---- */

static void print_tally(const char *name, const struct hg_series_tally *tally,
                        const struct hg_hist *latency)
{
    printf(",\"%s\":{\"intended\":%llu,\"sent\":%llu,\"ok\":%llu,\"missed\":%llu,\"refused\":%llu,"
           "\"wrong\":%llu,\"within_slo\":%llu,\"not_sent\":%llu,\"unanswered\":%llu,"
           "\"latency_us\":{\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f},\"statuses\":{",
           name, (unsigned long long)tally->offered, (unsigned long long)tally->sent,
           (unsigned long long)(tally->done + tally->missed), (unsigned long long)tally->missed,
           (unsigned long long)tally->refused, (unsigned long long)tally->wrong,
           (unsigned long long)tally->within_slo, (unsigned long long)tally->not_sent,
           (unsigned long long)tally->unanswered, (double)hg_hist_percentile(latency, 50) / 1e3,
           (double)hg_hist_percentile(latency, 99) / 1e3,
           (double)hg_counter_get(&latency->max) / 1e3);
    for (uint32_t i = 0; i < tally->statuses; i++) {
        printf("%s\"0x%02x\":%llu", i > 0 ? "," : "", hg_load_status_code(tally->status[i].slot),
               (unsigned long long)tally->status[i].count);
    }
    if (tally->more_statuses > 0) {
        printf(",\"more\":%llu", (unsigned long long)tally->more_statuses);
    }
    printf("}}");
}

void hg_series_print(struct hg_series *const *series, uint32_t count)
{
    static struct hg_series_row row;
    uint64_t first, end;
    hg_series_span(series, count, &first, &end);
    printf("[");
    for (uint64_t number = first; number < end; number++) {
        (void)hg_series_row(series, count, number, &row);
        uint64_t wall_ns = number * series[0]->length_ns + series[0]->wall_ns;
        printf("%s{\"t\":%llu", number > first ? "," : "", (unsigned long long)(wall_ns / 1000000));
        print_tally("hot", &row.tally[HG_SERIES_HOT], &row.latency[HG_SERIES_HOT]);
        print_tally("other", &row.tally[HG_SERIES_OTHER], &row.latency[HG_SERIES_OTHER]);
        printf("}");
    }
    printf("]");
}
