// conf_default - what holds when the file says nothing, and what the command line says
// SPDX-License-Identifier: BSD-3-Clause
//
// The names of the default lists' only elements are their rows' default texts in conf.def.
#include "app/conf_build.h"

#include <errno.h>
#include <stdlib.h>

/* A list of count initialised elements in place of what is there. */
static int new_list(const struct hg_conf_option *option, struct hg_conf *conf, size_t count)
{
    enum hg_conf_scope scope = hg_conf_option_list(option);
    size_t size = hg_conf_scopes[scope].object_size;
    char *array = calloc(count, size);
    if (!array)
        return -ENOMEM;
    hg_conf_option_array_put(option, conf, array, count);
    for (size_t i = 0; i < count; i++) {
        int rc = hg_conf_object_init(scope, array + i * size);
        if (rc)
            return rc;
    }
    return 0;
}

/* One element, whose first option is the row's default text. */
static int default_list(struct hg_conf *conf, enum hg_conf_server_option index)
{
    const struct hg_conf_option *option = &hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[index];
    struct hg_conf_why why;
    size_t count;
    if (conf->lines[index])
        return 0;
    int rc = new_list(option, conf, 1);
    if (rc)
        return rc;
    return hg_conf_value_set(hg_conf_scopes[hg_conf_option_list(option)].options,
                             hg_conf_option_array(option, conf, &count), option->default_text,
                             &why);
}

int hg_conf_default_lists(struct hg_conf *conf)
{
    int rc = default_list(conf, HG_CONF_SERVER_listen);
    if (!rc)
        rc = default_list(conf, HG_CONF_SERVER_upstreams);
    if (!rc && !conf->lines[HG_CONF_SERVER_upstreams])
        conf->upstreams[0].kind = HG_CONF_KIND_EMBEDDED;
    return rc ? rc : default_list(conf, HG_CONF_SERVER_tenants);
}

static int override(const struct hg_conf_option *option, void *object, const char *text,
                    struct hg_conf_errors *errs)
{
    struct hg_conf_why why;
    int rc = hg_conf_value_set(option, object, text, &why);
    if (rc == -EINVAL)
        hg_conf_errors_add(errs, "command line", 0, "%s", why.text);
    return rc;
}

static int override_listen(struct hg_conf *conf, const struct hg_conf_overrides *overrides,
                           struct hg_conf_errors *errs)
{
    const struct hg_conf_option *list =
        &hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[HG_CONF_SERVER_listen];
    const struct hg_conf_option *address =
        &hg_conf_scopes[HG_CONF_SCOPE_LISTEN].options[HG_CONF_LISTEN_address];
    for (size_t i = 0; i < conf->listen_count; i++)
        hg_conf_object_fini(HG_CONF_SCOPE_LISTEN, &conf->listen[i]);
    free(conf->listen);
    hg_conf_option_array_put(list, conf, NULL, 0);
    if (overrides->listen_count > list->max) {
        hg_conf_errors_add(errs, "command line", 0, "%zu listeners (accepted: up to %u)",
                           overrides->listen_count, (unsigned)list->max);
        return -EINVAL;
    }
    int rc = new_list(list, conf, overrides->listen_count);
    for (size_t i = 0; !rc && i < overrides->listen_count; i++)
        rc = override(address, &conf->listen[i], overrides->listen[i], errs);
    return rc;
}

static int override_admin(struct hg_conf *conf, const struct hg_conf_overrides *overrides,
                          struct hg_conf_errors *errs)
{
    const struct hg_conf_option *list =
        &hg_conf_scopes[HG_CONF_SCOPE_SERVER].options[HG_CONF_SERVER_admin];
    const struct hg_conf_option *address =
        &hg_conf_scopes[HG_CONF_SCOPE_ADMIN].options[HG_CONF_ADMIN_address];
    int rc = conf->admin_count == 0 ? new_list(list, conf, 1) : 0;
    return rc ? rc : override(address, &conf->admin[0], overrides->admin, errs);
}

int hg_conf_override(struct hg_conf *conf, const struct hg_conf_overrides *overrides,
                     struct hg_conf_errors *errs)
{
    const struct hg_conf_option *options = hg_conf_scopes[HG_CONF_SCOPE_SERVER].options;
    int rc = 0;
    if (overrides->listen_count)
        rc = override_listen(conf, overrides, errs);
    if (!rc && overrides->data_dir)
        rc = override(&options[HG_CONF_SERVER_data_dir], conf, overrides->data_dir, errs);
    if (!rc && overrides->threads)
        rc = override(&options[HG_CONF_SERVER_threads], conf, overrides->threads, errs);
    if (!rc && overrides->admin)
        rc = override_admin(conf, overrides, errs);
    return rc;
}
