// json - the report of a load as JSON, on stdout
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_JSON_H
#define HG_LOAD_JSON_H

#include <stdint.h>

struct hg_load_run;

/* After all threads have ended. `start_ns`: of the measured part, which took `seconds`. */
void hg_load_json_show(const struct hg_load_run *run, uint64_t start_ns, double seconds);

#endif
