// paramhelp - what set and unset take, as help: each option with what it accepts
// SPDX-License-Identifier: BSD-3-Clause
//
// The names are those that the verbs look up, and what each accepts is of the configuration's
// table.
#include <stdio.h>
#include <string.h>

#include "app/conf_table.h"
#include "ctl/param.h"

#define ACCEPTS_BYTES 200

/* One option: its name as typed, and, with values, what its row of the configuration accepts. */
static void print_one(enum hg_conf_scope scope, const char *name, const char *option_name,
                      const char *more, bool with_values)
{
    char accepts[ACCEPTS_BYTES] = "";
    const struct hg_conf_option *option = hg_conf_option_find(scope, option_name);
    if (with_values && option != NULL)
        hg_conf_value_accepts(option, accepts, sizeof accepts);
    printf("  %s%s%s%s\n", name, with_values ? ": " : "", accepts, with_values ? more : "");
}

static void print_names(enum hg_conf_scope scope, const char *const *names, size_t count,
                        const char *more, bool with_values)
{
    for (size_t p = 0; p < count; p++)
        print_one(scope, names[p], names[p], more, with_values);
}

void hg_ctl_print_params(bool with_values)
{
    puts("\nof the node:");
    for (size_t i = 0; i < HG_CTL_NODE_OPTIONS; i++)
        if (!hg_ctl_is_other_name(i))
            print_one(HG_CONF_SCOPE_SERVER, hg_ctl_node_options[i].name,
                      hg_ctl_node_options[i].path, "", with_values);
    print_names(HG_CONF_SCOPE_SERVER, hg_ctl_node_params, HG_CTL_NODE_PARAMS, "", with_values);
    puts("\nof an upstream:");
    print_names(HG_CONF_SCOPE_UPSTREAM, hg_ctl_upstream_params, HG_CTL_UPSTREAM_PARAMS, "",
                with_values);
    puts("\nof a bucket:");
    print_names(HG_CONF_SCOPE_TENANT, hg_ctl_unit_names, HG_CTL_UNITS, "; default: the node's",
                with_values);
    print_one(HG_CONF_SCOPE_TENANT, "data_limit", "data_limit",
              "0x35 to 0x38, the status with which writes are refused; 0: none is", with_values);
    print_names(HG_CONF_SCOPE_TENANT, hg_ctl_bucket_params, HG_CTL_BUCKET_PARAMS, "", with_values);
}
