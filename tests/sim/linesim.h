// linesim - a ticket line with its controller before a store of slots, in virtual time
// SPDX-License-Identifier: BSD-3-Clause
//
//   clients (closed loops, Poisson sources) ─► a ticket, the line, or refused ─► store ─► answer
//
// The store serves so many requests at a time, first come, first served; a request beyond that
// waits inside. One holder of tickets, whose size is fixed or set by the adaptive controller, as
// shipped. Several workers have each a line of its own.
// Each request of a source is on a connection of its own. A client of a closed loop sends its next
// request with the answer; after a refusal it waits for 100 ms.
#ifndef HG_TEST_LINESIM_H
#define HG_TEST_LINESIM_H

#include <stdbool.h>
#include <stdint.h>

#define LINESIM_TENANTS 128
#define LINESIM_LOADS   128
#define LINESIM_WORKERS 4

enum linesim_spread { LINESIM_EVEN, LINESIM_EXPONENTIAL }; // within 20 percent of the mean; or not

struct linesim_load {
    uint32_t tenant;
    uint32_t clients;  // of a closed loop; 0: a source
    double per_second; // of a source
    uint64_t service_us;
    enum linesim_spread spread;
    uint64_t from_us;
    bool counts; // in the score of its kind: what is measured, or what is beside it
};

struct linesim_setup {
    uint32_t slots;
    uint32_t workers; // that have clients and sources in equal parts; 0: one
    bool is_apart;    // each tenant is on one of them only
    uint32_t size;    // tickets; 0: as the controller says, with windows of tenants
    struct linesim_load loads[LINESIM_LOADS];
    uint32_t load_count;
    uint64_t pause_us, pause_end_us; // the store answers nothing between; 0, 0: it always does
    uint64_t stutter_us;             // from from_us on answers are heard of at multiples of that
    uint64_t from_us, end_us;        // what is sent between is measured
    bool direct;                     // without tickets
    uint64_t seed;
};

struct linesim_score {
    uint32_t sent, answered, refused, late;
    uint32_t wrong_late; // in line for less, or more, than queue_timeout
    uint64_t p50_us, p99_us;
};

struct linesim_result {
    struct linesim_score counted, others; // by linesim_load.counts
    double per_second;                    // answered of both, from from_us to end_us
    double size;                          // mean number of tickets
};

void linesim_run(const struct linesim_setup *setup, struct linesim_result *ret_result);

#endif
