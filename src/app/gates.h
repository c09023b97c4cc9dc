// gates - sizes of the upstreams' tickets: the main thread's side
// SPDX-License-Identifier: BSD-3-Clause
//
// Each interval, for each upstream: what its workers have counted goes to the controller
// (core/probe), and the sizes that it wants to the holders.
#ifndef HG_APP_GATES_H
#define HG_APP_GATES_H

#include <stdint.h>

struct hg_process;
struct hg_front;
struct hg_gateshare;
struct hg_probe_conf;

/* Options of an upstream's controller, in force at once; those that it has already leave it alone.
   Any thread. */
void hg_gates_configure(struct hg_front *front, struct hg_gateshare *share,
                        const struct hg_probe_conf *wanted, uint64_t now_us);

/* Takes new options over and makes the steps that are due; when the next one is, monotonic. */
uint64_t hg_gates_tick(struct hg_process *process, uint64_t now_us);

#endif
