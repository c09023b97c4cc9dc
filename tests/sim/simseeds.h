// simseeds - how much of a simulation a check runs
// SPDX-License-Identifier: BSD-3-Clause
//
// The quick check runs one seed. HG_SIM_SEEDS=all, which the deep check sets, runs all seeds and
// the models of other systems.
#ifndef SIMSEEDS_H
#define SIMSEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline bool sim_runs_all(void)
{
    const char *text = getenv("HG_SIM_SEEDS");
    return text != NULL && strcmp(text, "all") == 0;
}

/* Seeds to run, of `all` that the simulation has: all, or the first. */
static inline uint32_t sim_seeds(uint32_t all)
{
    return sim_runs_all() ? all : 1;
}

#endif
