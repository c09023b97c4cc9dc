// conf_errors - what is wrong with a file, collected while it is read
// SPDX-License-Identifier: BSD-3-Clause
//
// Reading goes on after a fault, so that an operator sees all of them at once (the first 20). Each
// is one line, `FILE:LINE: fault 'subject' (accepted: ...)`. A warning stops nothing. Not
// thread-safe; the caller owns the storage.
#ifndef HG_APP_CONF_ERRORS_H
#define HG_APP_CONF_ERRORS_H

#include <stddef.h>
#include <stdio.h>

#include "base/attr.h"

#define HG_CONF_ERRORS_MAX 20

struct hg_conf_errors {
    char *errors[HG_CONF_ERRORS_MAX];
    char *warnings[HG_CONF_ERRORS_MAX];
    size_t error_count;   /* entries in errors */
    size_t warning_count; /* entries in warnings */
    size_t errors_left_out;
    size_t warnings_left_out;
};

void hg_conf_errors_init(struct hg_conf_errors *errs);
void hg_conf_errors_fini(struct hg_conf_errors *errs);

/* Adds one line, unless it is there already; file and line are put in front of it (line 0: only the
 * file; file NULL: neither).
 */
void hg_conf_errors_add(struct hg_conf_errors *errs, const char *file, unsigned line,
                        const char *format, ...) HG_PRINTF(4, 5);
void hg_conf_errors_warn(struct hg_conf_errors *errs, const char *file, unsigned line,
                         const char *format, ...) HG_PRINTF(4, 5);

/* One line each, errors first, `warning: ` in front of warnings. */
void hg_conf_errors_print(const struct hg_conf_errors *errs, FILE *to);

#endif
