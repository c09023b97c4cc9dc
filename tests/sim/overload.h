// overload - Headgate's admission in front of a backend with a knee, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
//   arrivals ─► socket of the session ─► decision ─► line ─► ticket ─► backend ─► answer
//   (Poisson)   (unseen while one waits)    └► a ticket at once ──┘     (processor sharing)
//
// A discrete-event simulation of one front end's worker and one upstream. Tenants send reads and
// writes over sessions (connections), open loop: nobody waits for an answer before the next
// request. A session has at most one waiting request; what comes behind it stays in its socket and
// is decided only when that one has ended. Tickets are of two holders (reads, writes) whose sizes
// the controller under test sets each interval, at once: what is available may become negative.
// Who waits stands in the real core/ticketline, which also says who may. A request that the backend
// has not answered in time is answered by the front, and its ticket stays taken until the backend
// is through with it.
//
// The backend works on all n requests inside it at once, with equal shares of the rate
//
//   R(n) = mu n                                      n <= knee
//   R(n) = mu knee max(.05, 1 - t (n - knee) / knee) n >  knee
//
// times Gaussian noise that is drawn anew each 100 ms, independent of what is inside. A demand of 1
// takes 1 / mu seconds when it is alone. Capacity is mu * knee requests a second.
//
// The same seed gives the same arrivals, demands and noise to each controller.
#ifndef HG_TEST_OVERLOAD_H
#define HG_TEST_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/probe.h"

#define OVERLOAD_PHASES 8
#define OVERLOAD_BIN_US 10000 /* grain of what is counted over time */

enum overload_demand {
    OVERLOAD_EXPONENTIAL,
    OVERLOAD_BIMODAL, // one of a hundred costs a hundred times as much as the others; mean 1
};

struct overload_backend {
    double mu; // per second and request
    double knee;
    double t;     // loss beyond the knee
    double noise; // relative standard deviation of the rate
    enum overload_demand demand;
};

/* From `from_us` on. The first one is from 0. */
struct overload_phase {
    uint64_t from_us;
    double load;  // offered, requests a second
    double speed; // factor of mu; 0: the backend is paused
    double knee;  // factor of the knee
};

struct overload_setup {
    struct overload_backend backend;
    struct overload_phase phases[OVERLOAD_PHASES];
    uint32_t phase_count;
    uint64_t end_us;
    uint64_t from_us;           // what is measured as a whole begins here
    uint64_t slo_us;            // from the intended send time to the answer
    uint32_t tenants, sessions; // sessions: of each tenant
    double heavy;               // tenant 0 offers so many times as much as each other; 1: the same
    uint32_t heavy_sessions;    // its sessions
    double reads;               // share of reads
    uint32_t batch;             // an arrival brings so many requests of one session
    uint32_t retries;           // so often a refused request is sent once more
    uint64_t seed;
};

/* What a controller is shown of an interval. */
struct overload_seen {
    struct hg_probe_seen probe;
    uint64_t drops; // requests that timed out in the backend
};

/* A controller under test: `make` sets the first sizes. */
struct overload_control {
    const char *name;
    void *(*make)(const struct overload_setup *setup, uint32_t ret_size[HG_TICKET_KINDS]);
    void (*step)(void *control, const struct overload_seen *seen,
                 uint32_t ret_size[HG_TICKET_KINDS]);
};

/* The five, and a reference that knows the knee of the first phase. */
enum overload_which {
    OVERLOAD_FIXED,
    OVERLOAD_PROBING,
    OVERLOAD_ADAPTIVE,
    OVERLOAD_VEGAS,
    OVERLOAD_GRADIENT2,
    OVERLOAD_FIVE,
    OVERLOAD_ORACLE = OVERLOAD_FIVE,
    OVERLOAD_CONTROLS
};

extern const struct overload_control overload_controls[OVERLOAD_CONTROLS];

/* What was counted in a bin of time. */
struct overload_bin {
    uint32_t good; // answered within the SLO
    uint32_t offered, answered, refused, timed_out;
    uint32_t waited; // got in line for a ticket
};

struct overload_tally {
    struct overload_bin *bins;
    uint32_t bin_count;
    uint32_t *sizes; // total of both holders, after each step of the controller
    uint32_t size_count;
    uint32_t peak; // most inside the backend
    /* From setup->from_us on. */
    uint32_t *latencies_us; // of what was answered by the backend, from the intended send time
    uint32_t latency_count, latency_room;
    uint32_t *good_of; // by tenant
    uint32_t inside;   // sum of what was inside, at each step
};

/* Runs it all. What it returns is freed with overload_tally_fini. */
void overload_run(const struct overload_setup *setup, const struct overload_control *control,
                  struct overload_tally *ret_tally);
void overload_tally_fini(struct overload_tally *tally);

/* Interval of the controllers, and the options of the front: the defaults. The deadline of a
   request, 2500 ms, is beyond all waits together and decides nothing here. */
#define OVERLOAD_INTERVAL_US        100000
#define OVERLOAD_QUEUE_TIMEOUT_US   1000000
#define OVERLOAD_FLOOD_WAIT_US      100000
#define OVERLOAD_BACKEND_TIMEOUT_US 1000000
#define OVERLOAD_MIN                4
#define OVERLOAD_MAX                1024

#endif
