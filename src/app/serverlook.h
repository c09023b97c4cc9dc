// serverlook - what each server's requests take, wait and lack: housekeeping's look, once a second
// SPDX-License-Identifier: BSD-3-Clause
//
// From the workers' histograms and counters come the medians by which a server is slow
// (core/serverslow), told as the events server-slow and server-slow-end, and what `stat tickets`
// shows of a server. The results are in its share, under its set's lock.
#ifndef HG_APP_SERVERLOOK_H
#define HG_APP_SERVERLOOK_H

#include <stdint.h>

struct hg_process;

/* A look, if a second has passed since the last. */
void hg_serverlook(struct hg_process *process, uint64_t now_us);

#endif
