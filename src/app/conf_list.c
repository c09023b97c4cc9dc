// conf_list - every option as it is in force, as path and value
// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "app/conf_table.h"

static void list_object(enum hg_conf_scope scope, const char *prefix, const void *object,
                        hg_conf_list_fn *fn, void *ctx)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    for (size_t i = 0; i < info->count; i++) {
        enum hg_conf_scope list = hg_conf_option_list(&info->options[i]);
        char path[256];
        if (list == HG_CONF_SCOPE_TENANT || list == HG_CONF_SCOPE_UPSTREAM)
            continue;
        snprintf(path, sizeof path, "%s%s", prefix, info->options[i].name);
        char *value = hg_conf_value_text(&info->options[i], object);
        fn(ctx, path, value != NULL ? value : "?");
        free(value);
    }
}

void hg_conf_list(const struct hg_conf *conf, hg_conf_list_fn *fn, void *ctx)
{
    char prefix[140];
    list_object(HG_CONF_SCOPE_SERVER, "", conf, fn, ctx);
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        snprintf(prefix, sizeof prefix, "upstream.%s.", conf->upstreams[i].name);
        list_object(HG_CONF_SCOPE_UPSTREAM, prefix, &conf->upstreams[i], fn, ctx);
    }
    for (size_t i = 0; i < conf->tenants_count; i++) {
        snprintf(prefix, sizeof prefix, "tenant.%s.", conf->tenants[i].name);
        list_object(HG_CONF_SCOPE_TENANT, prefix, &conf->tenants[i], fn, ctx);
    }
}
