// overload_case - the backends and scenarios that the controllers are compared on
// SPDX-License-Identifier: BSD-3-Clause
//
// SLO: 100 ms from the intended send time, everywhere. Ten tenants, 200 sessions at 2,000/s and
// in proportion for larger stores, half of the requests reads, noise 5 percent, exponential
// demands, unless the case says otherwise. A steady run begins with 2 s at half the capacity; its
// load is measured from 5 s to 10 s. Loads are multiples of the capacity.
#ifndef HG_TEST_OVERLOAD_CASE_H
#define HG_TEST_OVERLOAD_CASE_H

#include "overload_score.h"

#define OVERLOAD_SLO_US OVERLOAD_QUEUE_TIMEOUT_US

enum overload_store {
    OVERLOAD_SMALL, // knee 20, 10 ms: 2,000/s
    OVERLOAD_LARGE, // knee 64, 3.2 ms: 20,000/s
    OVERLOAD_FAST,  // knee 8, 200 us: 40,000/s
};

/* t is the loss beyond the knee. */
struct overload_setup overload_steady(enum overload_store store, double t, double load);
/* From `from_s` on, to the next one or the end. */
void overload_add_phase(struct overload_setup *setup, double from_s, double load, double speed,
                        double knee);
/* What is measured as a whole. */
void overload_set_end(struct overload_setup *setup, double from_s, double end_s);

/* Is `which` the worst of the five, by more than the noise? Prints the row where it is. */
bool overload_is_worst(const struct overload_row *row, enum overload_which which);

#endif
