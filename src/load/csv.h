// csv - the intervals of a load as a table
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_CSV_H
#define HG_LOAD_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attr.h"
#include "load/series.h"

/* A column for each status that occurs; those are found first. */
struct hg_csv {
    FILE *file;
    double interval_s;
    uint64_t end; /* intervals that are written, from the start of the measured part on */
    bool has_status[HG_LOAD_STATUS_SLOTS];
    bool has_more; /* some intervals had more statuses than a series names */
};

/* Finds which columns there are: all series of the run. */
void hg_csv_init(struct hg_csv *csv, FILE *file, struct hg_series *const *series, uint32_t count);

void hg_csv_write_head(const struct hg_csv *csv);

/* Writes a line for each interval: of `group`, or with HG_SERIES_GROUPS of both together. */
void hg_csv_write(const struct hg_csv *csv, const char *scope, const char *tenant,
                  struct hg_series *const *series, uint32_t count, int group);

#endif
