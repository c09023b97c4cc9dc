// option - the options of single verbs, as they were given
// SPDX-License-Identifier: BSD-3-Clause
//
// option.def is the table: getopt's list, --help, and which verb takes which come from it.
#ifndef HG_CTL_OPTION_H
#define HG_CTL_OPTION_H

#include "ctl/ctl.h"

enum hg_ctl_option {
#define HG_CTL_OPTION(id, ...) HG_CTL_OPT_##id,
#include "ctl/option.def"
#undef HG_CTL_OPTION
    HG_CTL_OPTIONS
};

struct hg_ctl_option_row {
    const char *name, *argument, *verbs, *text;
};
extern const struct hg_ctl_option_row hg_ctl_option_rows[HG_CTL_OPTIONS];

/* Keeps an option with its value ("" for a switch). An exit code. */
HG_MUST_USE int hg_ctl_option_keep(struct hg_ctl *ctl, enum hg_ctl_option option,
                                   const char *value);
/* Whether the verb takes all options that were given. An exit code. */
HG_MUST_USE int hg_ctl_option_check(const struct hg_ctl *ctl, const char *verb);

/* The value of an option; NULL: it was not given. */
const char *hg_ctl_option(const struct hg_ctl *ctl, enum hg_ctl_option option);
bool hg_ctl_option_is(const struct hg_ctl *ctl, enum hg_ctl_option option);
/* A whole number; 0 when it was not given. An exit code. */
HG_MUST_USE int hg_ctl_option_number(const struct hg_ctl *ctl, enum hg_ctl_option option,
                                     int64_t min, int64_t max, int64_t *ret);

/* A whole number, all of the text. */
HG_MUST_USE bool hg_ctl_number(const char *text, int64_t *ret);

#endif
