// webhistory - the last ten minutes, a sample a second, in fixed memory
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_APP_WEBHISTORY_H
#define HG_APP_WEBHISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hg_web_history {
    int unused;
};

#endif
