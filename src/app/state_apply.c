// state_apply - the file and what opcodes said, merged into the settings that hold
// SPDX-License-Identifier: BSD-3-Clause
//
// Order: the node's settings; those of upstreams; tenants of the file without those that were
// deleted, with what was set for them; tenants that an opcode made. Then the same rules as for a
// file.
#include "app/state_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/conf_build.h"

static const char *place(const struct hg_conf *conf, unsigned line)
{
    return line && line != HG_CONF_BY_OPCODE && conf->file[0] ? conf->file : NULL;
}

#define WARN(conf, line, ...) hg_conf_errors_warn(errs, place(conf, line), line, __VA_ARGS__)

static void apply_units(struct hg_conf *conf, enum hg_conf_server_option index, uint64_t *field,
                        const struct hg_state_units *units, struct hg_conf_errors *errs)
{
    unsigned line = conf->lines[index];
    if (units->mark != HG_STATE_VALUE)
        return;
    if (line && *field != units->value)
        WARN(conf, line, "'%s' was set by opcode, this line has no effect",
             hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[index].name);
    *field = units->value;
    conf->lines[index] = HG_CONF_BY_OPCODE;
}

static void apply_node(struct hg_conf *conf, const struct hg_state *state,
                       struct hg_conf_errors *errs)
{
    apply_units(conf, HG_CONF_SERVER_node_capacity, &conf->node_capacity, &state->node.capacity,
                errs);
    apply_units(conf, HG_CONF_SERVER_default_throttle_reserved_units,
                &conf->default_throttle_reserved_units, &state->node.default_reserved, errs);
    apply_units(conf, HG_CONF_SERVER_default_throttle_hard_limit,
                &conf->default_throttle_hard_limit, &state->node.default_hard_limit, errs);
}

static int apply_upstreams(struct hg_conf *conf, const struct hg_state *state,
                           struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < state->upstream_count; i++) {
        const struct hg_state_upstream *entry = &state->upstreams[i];
        size_t index = hg_conf_upstream_find(conf, entry->name);
        char whose[160];
        if (index == HG_CONF_NO_UPSTREAM) {
            WARN(conf, 0,
                 "settings made by opcode for upstream '%s', which there is not, have no effect",
                 entry->name);
            continue;
        }
        snprintf(whose, sizeof whose, " of upstream '%s'", entry->name);
        int rc = hg_state_apply_texts(conf, HG_CONF_SCOPE_UPSTREAM, &conf->upstreams[index], whose,
                                      entry->texts, errs);
        if (rc)
            return rc;
    }
    return 0;
}

static void apply_limit(const struct hg_conf *conf, struct hg_conf_tenant *tenant,
                        enum hg_conf_tenant_option index, uint64_t *field,
                        const struct hg_state_units *units, struct hg_conf_errors *errs)
{
    unsigned line = tenant->lines[index];
    if (units->mark == HG_STATE_ABSENT)
        return;
    bool is_value = units->mark == HG_STATE_VALUE;
    if (line && line != HG_CONF_BY_OPCODE && (!is_value || *field != units->value))
        WARN(conf, line, "'%s' of tenant '%s' was set by opcode, this line has no effect",
             hg_conf_scopes[HG_CONF_SCOPE_TENANT].options[index].name, tenant->name);
    if (is_value)
        *field = units->value;
    tenant->lines[index] = is_value ? HG_CONF_BY_OPCODE : 0;
}

static int apply_bucket(const struct hg_conf *conf, struct hg_conf_tenant *tenant,
                        const struct hg_state_bucket *entry, struct hg_conf_errors *errs)
{
    tenant->data_limit_status = entry->data_limit;
    char whose[160];
    snprintf(whose, sizeof whose, " of tenant '%s'", tenant->name);
    int rc = hg_state_apply_texts(conf, HG_CONF_SCOPE_TENANT, tenant, whose, entry->texts, errs);
    if (rc)
        return rc;
    if (!entry->has_throttle)
        return 0;
    apply_limit(conf, tenant, HG_CONF_TENANT_reserved, &tenant->reserved, &entry->throttle.reserved,
                errs);
    apply_limit(conf, tenant, HG_CONF_TENANT_hard_limit, &tenant->hard_limit,
                &entry->throttle.hard_limit, errs);
    return 0;
}

/* Tenants of the file: some go, the others are changed in place. */
static int apply_to_file_tenants(struct hg_conf *conf, const struct hg_state *state,
                                 struct hg_conf_errors *errs)
{
    size_t kept = 0;
    int rc = 0;
    for (size_t i = 0; i < conf->tenants_count; i++) {
        struct hg_conf_tenant *tenant = &conf->tenants[i];
        unsigned line = tenant->lines[HG_CONF_TENANT_name];
        const struct hg_state_bucket *entry =
            hg_state_find(state, tenant->name, strlen(tenant->name));
        if (entry && (entry->deleted || entry->created)) {
            if (entry->deleted)
                WARN(conf, line, "tenant '%s' was deleted by opcode and stays deleted",
                     tenant->name);
            else
                WARN(conf, line, "tenant '%s' was created by opcode, this entry has no effect",
                     tenant->name);
            hg_conf_tenant_fini(tenant);
            continue;
        }
        if (entry && !rc)
            rc = apply_bucket(conf, tenant, entry, errs);
        if (kept != i)
            conf->tenants[kept] = *tenant;
        kept++;
    }
    conf->tenants_count = kept;
    return rc;
}

static int append_created(struct hg_conf *conf, const struct hg_state_bucket *entry,
                          struct hg_conf_errors *errs)
{
    struct hg_conf_tenant *tenant = &conf->tenants[conf->tenants_count];
    memset(tenant, 0, sizeof *tenant);
    conf->tenants_count++;
    int rc = hg_conf_object_copy(HG_CONF_SCOPE_TENANT, entry->created, tenant);
    if (rc)
        return rc;
    tenant->by_opcode = true;
    if (tenant->upstream[0] &&
        hg_conf_upstream_find(conf, tenant->upstream) == HG_CONF_NO_UPSTREAM) {
        tenant->disabled = true;
        WARN(conf, 0, "tenant '%s' is disabled: its upstream '%s' is gone", tenant->name,
             tenant->upstream);
    }
    return apply_bucket(conf, tenant, entry, errs);
}

static int append_all_created(struct hg_conf *conf, const struct hg_state *state,
                              struct hg_conf_errors *errs)
{
    uint64_t max = hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[HG_CONF_SERVER_tenants].max;
    size_t created = 0;
    for (size_t i = 0; i < state->count; i++)
        created += state->buckets[i].created != NULL;
    if (conf->tenants_count + created > max) {
        hg_conf_errors_add(errs, NULL, 0, "%zu tenants (accepted: up to %zu)",
                           conf->tenants_count + created, (size_t)max);
        return -EINVAL;
    }
    void *more =
        reallocarray(conf->tenants, conf->tenants_count + created + 1, sizeof *conf->tenants);
    if (!more)
        return -ENOMEM;
    conf->tenants = more;
    for (size_t i = 0; i < state->count; i++) {
        int rc = state->buckets[i].created ? append_created(conf, &state->buckets[i], errs) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

/* Settings for a bucket that neither the file nor an opcode knows any more. */
static void warn_of_orphans(const struct hg_conf *conf, const struct hg_state *state,
                            struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < state->count; i++) {
        const struct hg_state_bucket *entry = &state->buckets[i];
        if (!entry->created && !entry->deleted &&
            !hg_conf_tenant_find(conf, entry->name, strlen(entry->name)))
            WARN(conf, 0,
                 "settings made by opcode for tenant '%s', which there is not, have no effect",
                 entry->name);
    }
}

int hg_state_apply(const struct hg_conf *conf, const struct hg_state *state, struct hg_conf **ret,
                   struct hg_conf_errors *errs)
{
    struct hg_conf *merged = hg_conf_clone(conf);
    int rc = merged ? 0 : -ENOMEM;
    if (!rc) {
        apply_node(merged, state, errs);
        rc = hg_state_apply_texts(merged, HG_CONF_SCOPE_SERVER, merged, "", state->texts, errs);
    }
    if (!rc)
        rc = apply_upstreams(merged, state, errs);
    if (!rc)
        rc = apply_to_file_tenants(merged, state, errs);
    if (!rc)
        rc = append_all_created(merged, state, errs);
    if (!rc)
        rc = hg_conf_resolve(merged, errs);
    if (!rc)
        rc = hg_conf_check_tenants(merged, errs);
    if (rc == -EINVAL)
        hg_conf_errors_add(
            errs, NULL, 0,
            "the configuration and the settings made by opcode ('%s') do not fit together",
            merged->state_path);
    if (rc == -ENOMEM)
        hg_conf_errors_add(errs, NULL, 0, "out of memory");
    if (rc) {
        hg_conf_free(merged);
        return rc;
    }
    warn_of_orphans(merged, state, errs);
    *ret = merged;
    return 0;
}
