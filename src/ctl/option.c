// option - the options of single verbs, as they were given
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct hg_ctl_option_row hg_ctl_option_rows[HG_CTL_OPTIONS] = {
#define HG_CTL_OPTION(id, name, argument, verbs, text) {name, argument, verbs, text},
#include "ctl/option.def"
#undef HG_CTL_OPTION
};

int hg_ctl_option_keep(struct hg_ctl *ctl, enum hg_ctl_option option, const char *value)
{
    if (option != HG_CTL_OPT_WHERE && hg_ctl_option_is(ctl, option))
        return hg_ctl_say(HG_CTL_USAGE, "--%s is given twice", hg_ctl_option_rows[option].name);
    if (ctl->given_count == HG_CTL_GIVEN_MAX)
        return hg_ctl_say(HG_CTL_USAGE, "at most %d options of a verb", HG_CTL_GIVEN_MAX);
    ctl->given[ctl->given_count++] = (struct hg_ctl_given){option, value};
    return HG_CTL_OK;
}

static bool lists(const char *verbs, const char *subject)
{
    size_t len = strlen(subject);
    for (const char *at = verbs; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, subject, len) == 0 && (at[len] == '\0' || at[len] == '|'))
            return true;
    }
    return false;
}

int hg_ctl_option_check(const struct hg_ctl *ctl, const char *verb)
{
    char subject[80];
    bool has_operation = strcmp(verb, "table") == 0 || strcmp(verb, "hbase") == 0;
    snprintf(subject, sizeof subject, "%s%s%s", verb, has_operation ? " " : "",
             has_operation && ctl->arg_count > 0 ? ctl->args[0] : "");
    for (char *at = subject; *at != '\0'; at++)
        if (*at == '-')
            *at = '_';
    for (unsigned i = 0; i < ctl->given_count; i++) {
        const struct hg_ctl_option_row *row = &hg_ctl_option_rows[ctl->given[i].option];
        if (!lists(row->verbs, subject))
            return hg_ctl_say(HG_CTL_USAGE, "--%s is no option of %s (only of: %s)", row->name,
                              subject, row->verbs);
    }
    return HG_CTL_OK;
}

const char *hg_ctl_option(const struct hg_ctl *ctl, enum hg_ctl_option option)
{
    for (unsigned i = 0; i < ctl->given_count; i++)
        if (ctl->given[i].option == (int)option)
            return ctl->given[i].value;
    return NULL;
}

bool hg_ctl_option_is(const struct hg_ctl *ctl, enum hg_ctl_option option)
{
    return hg_ctl_option(ctl, option) != NULL;
}

bool hg_ctl_number(const char *text, int64_t *ret)
{
    const char *digits = text + (text[0] == '-');
    size_t len = strlen(digits);
    if (len == 0 || len > 19 || strspn(digits, "0123456789") != len)
        return false;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno != 0)
        return false;
    *ret = number;
    return true;
}

int hg_ctl_option_number(const struct hg_ctl *ctl, enum hg_ctl_option option, int64_t min,
                         int64_t max, int64_t *ret)
{
    const char *text = hg_ctl_option(ctl, option);
    *ret = 0;
    if (text == NULL || (hg_ctl_number(text, ret) && *ret >= min && *ret <= max))
        return HG_CTL_OK;
    return hg_ctl_say(HG_CTL_USAGE,
                      "--%s takes a whole number from %" PRId64 " to %" PRId64 ", not '%s'",
                      hg_ctl_option_rows[option].name, min, max, text);
}
