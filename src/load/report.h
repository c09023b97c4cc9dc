// report - what a load did: progress on stderr, the result on stdout
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_REPORT_H
#define HG_LOAD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "load/options.h"
#include "load/series.h"
#include "load/stats.h"

struct hg_load_report;
struct hg_load_run;

/* NULL when there is no memory. The run must outlive the report. */
HG_MUST_USE struct hg_load_report *hg_load_report_new(struct hg_load_run *run);
void hg_load_report_free(struct hg_load_report *report);

/* Opens the file of --series, if there is one; false: the reason is on stderr. */
HG_MUST_USE bool hg_load_report_open(struct hg_load_report *report);

void hg_load_report_on_measure(struct hg_load_report *report, bool begins, uint64_t now_ns);

/* Prints a line for each tenant when an interval is over. */
void hg_load_report_on_turn(struct hg_load_report *report, uint64_t now_ns);

/* Prints the result, after all threads have ended, as text or JSON. Returns whether all was well:
 * no wrong reply, no connection lost, no request unanswered, every key of --fill stored. */
HG_MUST_USE bool hg_load_report_finish(struct hg_load_report *report);

/* ---- for those who print ---- */

#define HG_LOAD_LANES_MAX (HG_LOAD_TENANTS_MAX * 256)

/* The percentiles that are told. */
#define HG_LOAD_MARKS 4
struct hg_load_mark {
    const char *text;
    const char *json;
    double percent;
};
extern const struct hg_load_mark hg_load_marks[HG_LOAD_MARKS];

/* Adds up a tenant's lanes; `tenant` NULL: all of them. */
void hg_load_report_collect(const struct hg_load_run *run, const struct hg_load_tenant *tenant,
                            bool measured, struct hg_load_stats *ret_sum);

/* The series of a tenant's lanes; `tenant` NULL: of all. How many. */
uint32_t hg_load_report_series(const struct hg_load_run *run, const struct hg_load_tenant *tenant,
                               struct hg_series *list[HG_LOAD_LANES_MAX]);

/* 0 when there is nothing to divide by. */
static inline double hg_load_report_per(double amount, double divisor)
{
    return divisor > 0 ? amount / divisor : 0.0;
}

#endif
