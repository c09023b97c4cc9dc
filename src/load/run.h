// run - everything one call of headgate-load works with: tables, connections, threads, results
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_RUN_H
#define HG_LOAD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "load/cpu.h"
#include "load/options.h"
#include "load/worker.h"

struct hg_load_report;

struct hg_load_run {
    const struct hg_load_options *options;
    struct hg_load_plan plan;
    struct hg_load_tables *tables; /* one of each tenant */
    struct hg_load_worker *workers;
    struct hg_load_cpu own;
    struct hg_load_cpu others[HG_LOAD_CPU_OF_MAX];
    struct hg_load_report *report;
    uint64_t wall_offset_ns; /* wall clock = monotonic clock + this */
};

/* Makes the tables, connects and logs in. False: the reason is on stderr; call fini all the same.
 */
HG_MUST_USE bool hg_load_run_init(struct hg_load_run *run, const struct hg_load_options *options,
                                  const volatile sig_atomic_t *stop);

/* Runs the load to its end. False when a thread cannot be started. */
HG_MUST_USE bool hg_load_run_go(struct hg_load_run *run);

void hg_load_run_fini(struct hg_load_run *run);

#endif
