// overload_score - what a run was worth, and medians over seeds
// SPDX-License-Identifier: BSD-3-Clause
//
// Goodput: requests that the backend answered within the SLO, counted from the intended send time.
// It is given as a part of what could be had: the smaller of offered load and capacity (mu * knee
// of the phase).
//
// Converged is the first 100 ms window after a change from which on, for 3 s, goodput stays within
// 5 percent of its mean over the last 4 s of the phase. A window of 100 ms holds few requests: with
// random demands (and arrivals) N of them vary by 1 / sqrt(N), and the backend's noise adds to it.
// So each window may be off by three standard deviations of that, if this is more than 5 percent;
// and the mean of these 3 s together by 5 percent, or three of its own. A run that converges to
// less than four fifths of what could be had does not count as converged.
#ifndef HG_TEST_OVERLOAD_SCORE_H
#define HG_TEST_OVERLOAD_SCORE_H

#include <stdio.h>

#include "overload.h"

#define OVERLOAD_SEEDS     10
#define OVERLOAD_NOT_YET_S 99. /* instead of a time: not converged in the phase */

struct overload_phase_score {
    double goodput;     // part of what could be had, over the last 4 s
    double converged_s; // since the phase began
};

struct overload_score {
    /* From setup->from_us on. */
    double goodput, p50_ms, p99_ms, jain, jain_others; // others: without tenant 0
    double good_others;                                // a second, of them
    double answered, refused, timed_out, waited;       // a second
    double size, variation; // of the total of tickets: mean, relative standard deviation
    double turns, changes;  // of its direction, of it: in 10 s
    double inside;          // mean of what is inside the backend
    double peak;            // most inside, of the whole run
    struct overload_phase_score phases[OVERLOAD_PHASES];
};

struct overload_row {
    const char *name;
    uint32_t seeds, phase_count;
    struct overload_score scores[OVERLOAD_CONTROLS]; // medians
};

double overload_capacity(const struct overload_setup *setup, const struct overload_phase *phase);
/* Requests a second within the SLO in from_us .. to_us. */
double overload_good_per_s(const struct overload_tally *tally, uint64_t from_us, uint64_t to_us);
void overload_score(const struct overload_setup *setup, const struct overload_tally *tally,
                    struct overload_score *ret_score);
double overload_jain(const uint32_t *values, uint32_t count);

/* Seeds to run, of the ten. */
uint32_t overload_seeds(void);
/* All controllers on the same seeds. */
void overload_compare(const char *name, const struct overload_setup *setup, uint32_t seeds,
                      struct overload_row *ret_row);

/* Heading of a table of rows, and one row: a line for each controller. */
void overload_print_head(const char *title);
void overload_print(const struct overload_setup *setup, const struct overload_row *row);
/* The phases of a row. */
void overload_print_phases(const struct overload_setup *setup, const struct overload_row *row);

#endif
