// help - what there is: the verbs, their options, the exit codes
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_CTL_HELP_H
#define HG_CTL_HELP_H

#include "ctl/ctl.h"

/* A row of verb.def. */
struct hg_ctl_verb {
    const char *name;
    int (*run)(struct hg_ctl *ctl);
    const char *args, *text;
};

/* NULL: there is none of that name. */
const struct hg_ctl_verb *hg_ctl_verb_find(const char *name);
/* Says that there is none; an exit code. */
int hg_ctl_no_verb(const char *name);

void hg_ctl_help_all(void);
void hg_ctl_help_verb(const struct hg_ctl_verb *verb);

#endif
