// conf_diff - what a new configuration would change, and what of it needs a new start
// SPDX-License-Identifier: BSD-3-Clause
//
// Upstreams and tenants are told apart by name, so their order means nothing; listeners and the
// servers of an upstream are compared as whole lists, where order does mean something.
#include "app/conf_table.h"

#include <stdlib.h>
#include <string.h>

struct diff {
    hg_conf_change_fn *fn;
    void *ctx;
    size_t at_start;
};

static void tell(struct diff *diff, const char *path, const char *before, const char *after,
                 bool at_run_time)
{
    struct hg_conf_change change = {path, before, after, at_run_time};
    diff->at_start += !at_run_time;
    if (diff->fn)
        diff->fn(diff->ctx, &change);
}

/* prefix is "" or "tenant.shop." */
static void diff_option(struct diff *diff, const char *prefix, const struct hg_conf_option *option,
                        const void *before, const void *after)
{
    char *from = hg_conf_value_text(option, before), *to = hg_conf_value_text(option, after);
    char path[200];
    snprintf(path, sizeof path, "%s%s", prefix, option->name);
    if (option->type == HG_CONF_TYPE_SECRET && from && to) {
        const char *old = *(char *const *)((const char *)before + option->offset);
        const char *new = *(char *const *)((const char *)after + option->offset);
        if (strcmp(old, new) != 0)
            tell(diff, path, from, old[0] && new[0] ? "(another secret)" : to, option->at_run_time);
    } else if (!from || !to || strcmp(from, to) != 0)
        tell(diff, path, from ? from : "?", to ? to : "?", option->at_run_time);
    free(from);
    free(to);
}

static void diff_object(struct diff *diff, const char *prefix, enum hg_conf_scope scope,
                        const void *before, const void *after)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    for (size_t i = 0; i < info->count; i++) {
        enum hg_conf_scope list = hg_conf_option_list(&info->options[i]);
        if (list != HG_CONF_SCOPE_TENANT && list != HG_CONF_SCOPE_UPSTREAM)
            diff_option(diff, prefix, &info->options[i], before, after);
    }
}

static void diff_upstreams(struct diff *diff, const struct hg_conf *before,
                           const struct hg_conf *after)
{
    bool at_run_time =
        hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[HG_CONF_SERVER_upstreams].at_run_time;
    char path[140];
    for (size_t i = 0; i < before->upstreams_count; i++) {
        const struct hg_conf_upstream *old = &before->upstreams[i];
        size_t found = hg_conf_upstream_find(after, old->name);
        if (found == HG_CONF_NO_UPSTREAM) {
            snprintf(path, sizeof path, "upstream.%s", old->name);
            tell(diff, path, hg_conf_kind_name(old->kind), NULL, at_run_time);
            continue;
        }
        snprintf(path, sizeof path, "upstream.%s.", old->name);
        diff_object(diff, path, HG_CONF_SCOPE_UPSTREAM, old, &after->upstreams[found]);
    }
    for (size_t i = 0; i < after->upstreams_count; i++) {
        const struct hg_conf_upstream *new = &after->upstreams[i];
        if (hg_conf_upstream_find(before, new->name) != HG_CONF_NO_UPSTREAM)
            continue;
        snprintf(path, sizeof path, "upstream.%s", new->name);
        tell(diff, path, NULL, hg_conf_kind_name(new->kind), at_run_time);
    }
}

static const char *upstream_of(const struct hg_conf *conf, const struct hg_conf_tenant *tenant)
{
    if (tenant->upstream_index == HG_CONF_NO_UPSTREAM)
        return "(none)";
    return conf->upstreams[tenant->upstream_index].name;
}

/* A tenant's keys also move when another tenant comes to its upstream or leaves it. */
static void diff_prefix(struct diff *diff, const char *prefix, const struct hg_conf_tenant *before,
                        const struct hg_conf_tenant *after)
{
    char path[160];
    if (strcmp(before->key_prefix, after->key_prefix) != 0 ||
        strcmp(before->effective_prefix, after->effective_prefix) == 0)
        return;
    snprintf(path, sizeof path, "%skey_prefix", prefix);
    tell(diff, path, before->effective_prefix, after->effective_prefix,
         hg_conf_scopes[HG_CONF_SCOPE_TENANT].options[HG_CONF_TENANT_key_prefix].at_run_time);
}

static void diff_tenants(struct diff *diff, const struct hg_conf *before,
                         const struct hg_conf *after)
{
    bool at_run_time =
        hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[HG_CONF_SERVER_tenants].at_run_time;
    char path[140];
    for (size_t i = 0; i < before->tenants_count; i++) {
        const struct hg_conf_tenant *old = &before->tenants[i];
        const struct hg_conf_tenant *new = hg_conf_tenant_find(after, old->name, strlen(old->name));
        snprintf(path, sizeof path, "tenant.%s%s", old->name, new ? "." : "");
        if (new) {
            diff_object(diff, path, HG_CONF_SCOPE_TENANT, old, new);
            diff_prefix(diff, path, old, new);
        } else
            tell(diff, path, upstream_of(before, old), NULL, at_run_time);
    }
    for (size_t i = 0; i < after->tenants_count; i++) {
        const struct hg_conf_tenant *new = &after->tenants[i];
        if (hg_conf_tenant_find(before, new->name, strlen(new->name)))
            continue;
        snprintf(path, sizeof path, "tenant.%s", new->name);
        tell(diff, path, NULL, upstream_of(after, new), at_run_time);
    }
}

size_t hg_conf_diff(const struct hg_conf *before, const struct hg_conf *after,
                    hg_conf_change_fn *fn, void *ctx)
{
    struct diff diff = {fn, ctx, 0};
    diff_object(&diff, "", HG_CONF_SCOPE_SERVER, before, after);
    diff_upstreams(&diff, before, after);
    diff_tenants(&diff, before, after);
    return diff.at_start;
}
