// cpu - CPU time that a process used over the measured part
// SPDX-License-Identifier: BSD-3-Clause
#include "load/cpu.h"

#include <string.h>

/* 0 when the process is gone. */
static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) {
        return 0;
    }
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int hg_load_cpu_init(struct hg_load_cpu *cpu, pid_t pid)
{
    memset(cpu, 0, sizeof *cpu);
    cpu->pid = pid;
    return -clock_getcpuclockid(pid, &cpu->clock);
}

void hg_load_cpu_start(struct hg_load_cpu *cpu)
{
    cpu->start_ns = read_clock(cpu->clock);
}

void hg_load_cpu_stop(struct hg_load_cpu *cpu)
{
    uint64_t now_ns = read_clock(cpu->clock);
    cpu->used_ns = now_ns > cpu->start_ns ? now_ns - cpu->start_ns : 0;
}
