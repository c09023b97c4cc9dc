// conf_compat - other defaults for the options of overload, by one option of the server
// SPDX-License-Identifier: BSD-3-Clause
//
// compat.def has a row for each option that compat_overload gives another default. An option that
// has a line in the file, or was set by opcode, keeps its value.
#include "app/conf_build.h"

#include <stdlib.h>

static const struct compat_row {
    enum hg_conf_compat_overload of;
    enum hg_conf_upstream_option option;
    const char *text;
} rows[] = {
#define HG_COMPAT(value, option, text)                                                             \
    {HG_CONF_COMPAT_OVERLOAD_##value, HG_CONF_UPSTREAM_##option, text},
#include "app/compat.def"
};

static const struct hg_conf_option *option_of(const struct compat_row *row)
{
    return &hg_conf_scopes[HG_CONF_SCOPE_UPSTREAM].options[row->option];
}

int hg_conf_compat_apply(struct hg_conf *conf)
{
    for (size_t i = 0; i < conf->upstreams_count; i++)
        for (size_t r = 0; r < HG_COUNT_OF(rows); r++) {
            const struct hg_conf_option *option = option_of(&rows[r]);
            bool is_on = rows[r].of == conf->compat_overload;
            struct hg_conf_why why;
            if (conf->upstreams[i].lines[rows[r].option] != 0)
                continue;
            int rc = hg_conf_value_set(option, &conf->upstreams[i],
                                       is_on ? rows[r].text : option->default_text, &why);
            if (rc != 0)
                return rc;
        }
    return 0;
}

void hg_conf_compat_print(const struct hg_conf *conf, FILE *to)
{
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        const struct hg_conf_upstream *upstream = &conf->upstreams[i];
        bool any = false;
        for (size_t r = 0; r < HG_COUNT_OF(rows); r++) {
            if (rows[r].of != conf->compat_overload)
                continue;
            if (!any)
                fprintf(to, "compat_overload %s, upstream %s:",
                        hg_conf_compat_overload_name(conf->compat_overload), upstream->name);
            any = true;
            char *value = hg_conf_value_text(option_of(&rows[r]), upstream);
            fprintf(to, " %s=%s", option_of(&rows[r])->name, value != NULL ? value : "?");
            if (upstream->lines[rows[r].option] != 0)
                fprintf(to, " (line %u)", upstream->lines[rows[r].option]);
            free(value);
        }
        if (any)
            fputc('\n', to);
    }
}
