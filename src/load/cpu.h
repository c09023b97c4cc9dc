// cpu - CPU time that a process used over the measured part
// SPDX-License-Identifier: BSD-3-Clause
//
// All threads of the process, those that ended too, in nanoseconds as the scheduler accounts them.
#ifndef HG_LOAD_CPU_H
#define HG_LOAD_CPU_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/attr.h"

struct hg_load_cpu {
    pid_t pid;
    clockid_t clock;
    uint64_t start_ns;
    uint64_t used_ns;
};

/* `pid` 0: this process. 0 or -errno. */
HG_MUST_USE int hg_load_cpu_init(struct hg_load_cpu *cpu, pid_t pid);

void hg_load_cpu_start(struct hg_load_cpu *cpu);

/* Sets used_ns; it stays 0 when the process has ended. */
void hg_load_cpu_stop(struct hg_load_cpu *cpu);

#endif
