// option - one row of the option table, and how a text becomes the value of its field
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_LOAD_OPTION_H
#define HG_LOAD_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "load/options.h"

enum hg_option_scope { HG_OPTION_OF_RUN, HG_OPTION_OF_TENANT };
enum hg_option_type {
    HG_OPTION_NUMBER,
    HG_OPTION_NUMBER64,
    HG_OPTION_REAL,
    HG_OPTION_SECONDS,
    HG_OPTION_TEXT,
    HG_OPTION_RANGE,
    HG_OPTION_RATE,
    HG_OPTION_ARRIVALS,
    HG_OPTION_MIX,
    HG_OPTION_OPERATION,
    HG_OPTION_HELLO,
    HG_OPTION_PASSWORD_FILE,
    HG_OPTION_MECHANISM,
    HG_OPTION_PROTOCOL,
    HG_OPTION_TENANT,
    HG_OPTION_PID,
    HG_OPTION_FLAG,
    HG_OPTION_HELP,
    HG_OPTION_VERSION,
};

struct hg_option_row {
    char letter;
    const char *name;
    const char *argument;
    enum hg_option_scope scope;
    enum hg_option_type type;
    size_t offset; /* in struct hg_load_tenant or hg_load_options, as the scope says */
    double min;
    double max;
    const char *sentence;
};

enum {
    HG_OPTION_ROWS = 0
#define LOAD_OPTION(...) +1
#include "load/option.def"
#undef LOAD_OPTION
};

extern const struct hg_option_row hg_option_rows[HG_OPTION_ROWS];

/* What is being parsed: the words in front of an error, and where values go. */
struct hg_option_place {
    struct hg_load_options *options;
    struct hg_load_tenant *tenant;
    uint32_t spec; /* which --tenant, from 1; 0: the command line itself */
};

/* Checks `text` against the row and stores it; `text` must live as long as the options. False: what
 * is wrong, and what would be right, is on stderr. */
HG_MUST_USE bool hg_option_set(const struct hg_option_place *place, const struct hg_option_row *row,
                               const char *text);

/* Gives `text`, from malloc, to the options; ends the process when there is no memory. */
char *hg_option_keep(struct hg_load_options *options, char *text);

/* A line on stderr; false, so that a check can return it. */
HG_PRINTF(1, 2) bool hg_option_complain(const char *format, ...);

#endif
