// gates - sizes of the upstreams' tickets: the main thread's side
// SPDX-License-Identifier: BSD-3-Clause
//
// Each interval, for each server of each upstream: what the workers have counted goes to the
// controller (core/probe), and the sizes that it wants to the holders, as far as the upstream's
// options allow (front/gateset).
#ifndef HG_APP_GATES_H
#define HG_APP_GATES_H

#include <stdint.h>

struct hg_process;

/* Makes the steps that are due; when the next one is, monotonic. */
uint64_t hg_gates_tick(struct hg_process *process, uint64_t now_us);

#endif
