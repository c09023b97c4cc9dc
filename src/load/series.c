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
                   uint64_t now_ns)
{
    memset(series, 0, sizeof *series);
    series->at = calloc(FIRST_ROOM, sizeof *series->at);
    if (series->at == NULL) {
        return -ENOMEM;
    }
    series->length_ns = length_ns;
    series->offset_ns = offset_ns;
    series->room = FIRST_ROOM;
    series->first = (now_ns + offset_ns) / length_ns;
    hg_series_advance(series, now_ns);
    return 0;
}

void hg_series_fini(struct hg_series *series)
{
    free(series->at);
    series->at = NULL;
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

void hg_series_advance(struct hg_series *series, uint64_t now_ns)
{
    uint64_t number = (now_ns + series->offset_ns) / series->length_ns;
    uint64_t index = number > series->first ? number - series->first : 0;
    if (!make_room(series, index)) {
        series->until_ns = UINT64_MAX;
        return;
    }
    series->now = (uint32_t)index;
    series->count = series->now + 1;
    series->until_ns = (series->first + index + 1) * series->length_ns - series->offset_ns;
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
                        enum hg_load_outcome outcome, uint32_t slot, uint64_t now_ns)
{
    struct hg_series_tally *tally = hg_series_tally(series, group, now_ns);
    tally->done += outcome == HG_LOAD_DONE;
    tally->missed += outcome == HG_LOAD_MISS;
    tally->refused += outcome == HG_LOAD_REFUSED;
    tally->wrong += outcome == HG_LOAD_WRONG;
    count_status(tally, (uint16_t)slot, 1);
}

void hg_series_tally_add(struct hg_series_tally *into, const struct hg_series_tally *from)
{
    into->sent += from->sent;
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

/* ---- as JSON ---- */

static void print_tally(const char *name, const struct hg_series_tally *tally)
{
    printf(",\"%s\":{\"sent\":%llu,\"ok\":%llu,\"missed\":%llu,\"refused\":%llu,\"wrong\":%llu,"
           "\"statuses\":{",
           name, (unsigned long long)tally->sent, (unsigned long long)(tally->done + tally->missed),
           (unsigned long long)tally->missed, (unsigned long long)tally->refused,
           (unsigned long long)tally->wrong);
    for (uint32_t i = 0; i < tally->statuses; i++) {
        printf("%s\"0x%02x\":%llu", i > 0 ? "," : "", hg_load_status_code(tally->status[i].slot),
               (unsigned long long)tally->status[i].count);
    }
    if (tally->more_statuses > 0) {
        printf(",\"more\":%llu", (unsigned long long)tally->more_statuses);
    }
    printf("}}");
}

/* The intervals of interval `number`, added up; whether anything happened in it. */
static bool add_up(struct hg_series *const *series, uint32_t count, uint64_t number,
                   struct hg_series_tally sum[HG_SERIES_GROUPS])
{
    bool any = false;
    memset(sum, 0, HG_SERIES_GROUPS * sizeof *sum);
    for (uint32_t i = 0; i < count; i++) {
        if (number < series[i]->first || number - series[i]->first >= series[i]->count) {
            continue;
        }
        for (int group = 0; group < HG_SERIES_GROUPS; group++) {
            hg_series_tally_add(&sum[group], &series[i]->at[number - series[i]->first][group]);
            any |= sum[group].sent > 0 || sum[group].statuses > 0;
        }
    }
    return any;
}

void hg_series_print(struct hg_series *const *series, uint32_t count)
{
    struct hg_series_tally sum[HG_SERIES_GROUPS];
    uint64_t first = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < count; i++) {
        first = series[i]->first < first ? series[i]->first : first;
        uint64_t behind = series[i]->first + series[i]->count;
        end = behind > end ? behind : end;
    }
    while (first < end && !add_up(series, count, first, sum)) {
        first++;
    }
    while (first < end && !add_up(series, count, end - 1, sum)) {
        end--;
    }
    printf("[");
    for (uint64_t number = first; number < end; number++) {
        (void)add_up(series, count, number, sum);
        printf("%s{\"t\":%llu", number > first ? "," : "",
               (unsigned long long)(number * series[0]->length_ns / 1000000));
        print_tally("hot", &sum[HG_SERIES_HOT]);
        print_tally("other", &sum[HG_SERIES_OTHER]);
        printf("}");
    }
    printf("]");
}
