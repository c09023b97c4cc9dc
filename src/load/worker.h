// worker - a thread of the load: its event loop and its phases
// SPDX-License-Identifier: BSD-3-Clause
//
//     fill -> (all threads meet) -> warm up -> measure -> drain
//
// Where they meet a moment is taken that is the same for all; the times of rates and of the
// measured part count from it, whenever a thread comes to it.
//
// The loop is epoll itself rather than the project's libevent: the generator shares a core with
// what it measures, and per event this is one indirect call less and no bookkeeping.
#ifndef HG_LOAD_WORKER_H
#define HG_LOAD_WORKER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "load/conn.h"
#include "load/lane.h"

/* What all workers of a run share. */
struct hg_load_plan {
    const struct hg_load_options *options;
    pthread_barrier_t met;
    uint64_t origin_ns;                /* when they met last; worker 0 writes it */
    const volatile sig_atomic_t *stop; /* a signal asked to end early */
    /* Called by worker 0 only. */
    void (*on_turn)(void *user, uint64_t now_ns);
    void (*on_measure)(void *user, bool begins, uint64_t now_ns);
    void *user;
};

struct hg_load_worker {
    struct hg_load_plan *plan;
    uint32_t index;
    int epoll_fd;
    uint64_t now_ns; /* of this turn, or of the last connection in it */
    uint64_t look_ns;
    uint64_t budget;     /* requests that may still be sent */
    uint64_t unanswered; /* over all connections */
    uint32_t alive;      /* connections that are not lost */
    bool has_pace;       /* some lanes have, or are open */
    bool is_open;        /* some lanes are */
    bool is_coarse;      /* the system cannot wait for less than a millisecond */
    uint64_t start_ns;   /* of the measured part */
    uint64_t end_ns;
    uint8_t *in; /* where replies are read to */
    size_t in_room;
    uint8_t *out; /* where requests are composed */
    size_t out_soft;
    struct hg_load_lane **lanes;
    uint32_t lane_count;
    struct hg_load_conn *conns;
    uint32_t conn_count;
    pthread_t thread;
};

/* Runs all phases on the calling thread. */
void hg_load_worker_run(struct hg_load_worker *worker);

/* Watches a connection of this worker for replies and, if `writable`, for room. 0 or -errno. */
HG_MUST_USE int hg_load_worker_watch(struct hg_load_worker *worker, struct hg_load_conn *conn,
                                     bool again, bool writable);

#endif
