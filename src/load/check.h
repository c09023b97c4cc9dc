// check - whether options fit together, and what follows from them
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_CHECK_H
#define HG_LOAD_CHECK_H

#include <stdbool.h>

#include "base/attr.h"
#include "load/options.h"

/* Fills in what the command line left open, and checks what no option can be checked for alone.
 * False: the reason is on stderr. */
HG_MUST_USE bool hg_load_check_options(struct hg_load_options *options);

#endif
