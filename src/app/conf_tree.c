// conf_tree - building, copying and freeing the tree of a configuration
// SPDX-License-Identifier: BSD-3-Clause
//
// Everything walks the option table, so a new option needs nothing here.
#include "app/conf_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int init_field(const struct hg_conf_option *option, void *object)
{
    struct hg_conf_why why;
    const char *text = option->default_text;
    if (hg_conf_option_list(option) != HG_CONF_SCOPE_COUNT)
        return 0;
    if (hg_conf_option_inherits(option)) /* until hg_conf_resolve */
        text = "unlimited";
    if (text)
        return hg_conf_value_set(option, object, text, &why);
    if (option->type == HG_CONF_TYPE_ADDRESS) {
        struct hg_conf_address *address = (void *)((char *)object + option->offset);
        address->text = strdup("");
        address->host = strdup("");
        return address->text && address->host ? 0 : -ENOMEM;
    }
    if (hg_conf_option_is_text(option)) {
        char **field = (char **)((char *)object + option->offset);
        *field = strdup("");
        return *field ? 0 : -ENOMEM;
    }
    return 0;
}

int hg_conf_object_init(enum hg_conf_scope scope, void *object)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    for (size_t i = 0; i < info->count; i++) {
        int rc = init_field(&info->options[i], object);
        if (rc)
            return rc;
    }
    return 0;
}

static void fini_list(const struct hg_conf_option *option, void *object)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    size_t count;
    char *array = hg_conf_option_array(option, object, &count);
    for (size_t i = 0; i < count; i++) {
        void *element = array + i * hg_conf_scopes[scope].object_size;
        if (scope == HG_CONF_SCOPE_TENANT)
            hg_conf_tenant_fini(element);
        else
            hg_conf_object_fini(scope, element);
    }
    free(array);
    hg_conf_option_array_put(option, object, NULL, 0);
}

void hg_conf_object_fini(enum hg_conf_scope scope, void *object)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    for (size_t i = 0; i < info->count; i++) {
        const struct hg_conf_option *option = &info->options[i];
        void *field = (char *)object + option->offset;
        if (hg_conf_option_list(option) != HG_CONF_SCOPE_COUNT)
            fini_list(option, object);
        else if (option->type == HG_CONF_TYPE_ADDRESS)
            hg_conf_address_fini(field);
        else if (hg_conf_option_is_text(option)) {
            free(*(char **)field);
            *(char **)field = NULL;
        }
    }
}

static int copy_address(const struct hg_conf_address *from, struct hg_conf_address *to)
{
    *to = *from;
    to->text = strdup(from->text);
    to->host = strdup(from->host);
    return to->text && to->host ? 0 : -ENOMEM;
}

static int copy_tenant(const struct hg_conf_tenant *from, struct hg_conf_tenant *to)
{
    int rc = hg_conf_object_copy(HG_CONF_SCOPE_TENANT, from, to);
    if (rc)
        return rc;
    to->upstream_index = from->upstream_index;
    to->disabled = from->disabled;
    to->by_opcode = from->by_opcode;
    to->data_limit_status = from->data_limit_status;
    to->neighbours = from->neighbours;
    if (!from->effective_prefix)
        return 0;
    to->effective_prefix = strdup(from->effective_prefix);
    return to->effective_prefix ? 0 : -ENOMEM;
}

static int copy_list(const struct hg_conf_option *option, const void *from, void *to)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    size_t count, size = hg_conf_scopes[scope].object_size;
    const char *source = hg_conf_option_array(option, from, &count);
    char *array = calloc(count + 1, size);
    if (!array)
        return -ENOMEM;
    hg_conf_option_array_put(option, to, array, count);
    for (size_t i = 0; i < count; i++) {
        const void *element = source + i * size;
        int rc = scope == HG_CONF_SCOPE_TENANT
                     ? copy_tenant(element, (void *)(array + i * size))
                     : hg_conf_object_copy(scope, element, array + i * size);
        if (rc)
            return rc;
    }
    return 0;
}

static size_t field_size(const struct hg_conf_option *option)
{
    if (option->type <= HG_CONF_TYPE_MODE)
        return sizeof(uint64_t);
    if (option->type == HG_CONF_TYPE_DECIMAL)
        return sizeof(double);
    return option->type == HG_CONF_TYPE_BOOL ? sizeof(bool) : sizeof(unsigned);
}

int hg_conf_object_copy(enum hg_conf_scope scope, const void *from, void *to)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    memcpy((char *)to + info->lines_offset, (const char *)from + info->lines_offset,
           info->count * sizeof(unsigned));
    for (size_t i = 0; i < info->count; i++) {
        const struct hg_conf_option *option = &info->options[i];
        const void *source = (const char *)from + option->offset;
        void *target = (char *)to + option->offset;
        int rc = 0;
        if (hg_conf_option_list(option) != HG_CONF_SCOPE_COUNT)
            rc = copy_list(option, from, to);
        else if (option->type == HG_CONF_TYPE_ADDRESS)
            rc = copy_address(source, target);
        else if (hg_conf_option_is_text(option))
            rc = (*(char **)target = strdup(*(char *const *)source)) ? 0 : -ENOMEM;
        else
            memcpy(target, source, field_size(option));
        if (rc)
            return rc;
    }
    return 0;
}

void hg_conf_tenant_fini(struct hg_conf_tenant *tenant)
{
    hg_conf_object_fini(HG_CONF_SCOPE_TENANT, tenant);
    free(tenant->effective_prefix);
    tenant->effective_prefix = NULL;
}

struct hg_conf *hg_conf_new(const char *file)
{
    struct hg_conf *conf = calloc(1, sizeof *conf);
    if (!conf)
        return NULL;
    conf->file = strdup(file);
    if (!conf->file || hg_conf_object_init(HG_CONF_SCOPE_SERVER, conf) != 0) {
        hg_conf_free(conf);
        return NULL;
    }
    return conf;
}

void hg_conf_free(struct hg_conf *conf)
{
    if (!conf)
        return;
    hg_conf_object_fini(HG_CONF_SCOPE_SERVER, conf);
    free(conf->file);
    free(conf->state_path);
    free(conf);
}

struct hg_conf *hg_conf_clone(const struct hg_conf *conf)
{
    struct hg_conf *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    copy->file = strdup(conf->file);
    copy->state_path = conf->state_path ? strdup(conf->state_path) : NULL;
    if (!copy->file || (conf->state_path && !copy->state_path) ||
        hg_conf_object_copy(HG_CONF_SCOPE_SERVER, conf, copy) != 0) {
        hg_conf_free(copy);
        return NULL;
    }
    return copy;
}

const struct hg_conf_tenant *hg_conf_tenant_find(const struct hg_conf *conf, const char *name,
                                                 size_t len)
{
    for (size_t i = 0; i < conf->tenants_count; i++)
        if (strlen(conf->tenants[i].name) == len && memcmp(conf->tenants[i].name, name, len) == 0)
            return &conf->tenants[i];
    return NULL;
}

size_t hg_conf_upstream_find(const struct hg_conf *conf, const char *name)
{
    for (size_t i = 0; i < conf->upstreams_count; i++)
        if (strcmp(conf->upstreams[i].name, name) == 0)
            return i;
    return HG_CONF_NO_UPSTREAM;
}
