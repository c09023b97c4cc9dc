// adminjson - the JSON bodies of administration opcodes, decoded without mercy
// SPDX-License-Identifier: BSD-3-Clause
#include "app/adminjson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/conf_build.h"
#include "app/strictjson.h"

/* A key of 2a or 2c: bounds come from the row of the option that it sets. */
struct key {
    const char *name;
    enum hg_conf_scope scope;
    size_t option;
    struct hg_state_units *units;
};

/* Cuts, and keeps a reply's text free of what a terminal would obey. */
static int give(const struct hg_conf_why *from, struct hg_adminjson_why *why)
{
    size_t i = 0;
    for (; from->text[i] && i + 1 < sizeof why->text; i++)
        why->text[i] =
            (unsigned char)from->text[i] < 0x20 || from->text[i] == 0x7f ? '?' : from->text[i];
    why->text[i] = '\0';
    return -EINVAL;
}

static int decode_unit(const struct key *key, const json_t *value, struct hg_conf_why *why)
{
    struct hg_conf_option option = hg_conf_scopes[key->scope].options[key->option];
    option.name = key->name;
    option.offset = offsetof(struct hg_state_units, value);
    int rc = hg_strictjson_set(&option, key->units, value, why);
    if (!rc)
        key->units->mark = HG_STATE_VALUE;
    return rc;
}

static int decode_units(struct hg_span body, const struct key *keys, size_t count,
                        const char *accepts, struct hg_conf_why *why)
{
    const char *name;
    json_t *value, *root = hg_strictjson_load(body, HG_ADMINJSON_THROTTLE_MAX, accepts, why);
    int rc = root ? 0 : -EINVAL;
    if (!root)
        return rc;
    json_object_foreach(root, name, value)
    {
        size_t i = 0;
        while (i < count && strcmp(keys[i].name, name) != 0)
            i++;
        if (i == count) {
            hg_strictjson_unknown(name, accepts, why);
            rc = -EINVAL;
        } else {
            rc = decode_unit(&keys[i], value, why);
        }
        if (rc)
            break;
    }
    json_decref(root);
    return rc;
}

static bool exceeds(const struct hg_state_units *reserved, const struct hg_state_units *limit)
{
    return reserved->mark == HG_STATE_VALUE && limit->mark == HG_STATE_VALUE &&
           reserved->value > limit->value;
}

static int refuse_pair(const char *reserved_name, const struct hg_state_units *reserved,
                       const char *limit_name, const struct hg_state_units *limit,
                       struct hg_adminjson_why *why)
{
    char number[24] = "unlimited";
    if (reserved->value != HG_CONF_UNLIMITED)
        snprintf(number, sizeof number, "%" PRIu64, reserved->value);
    snprintf(why->text, sizeof why->text, "%s '%s' exceeds %s (accepted: 0 to %" PRIu64 ")",
             reserved_name, number, limit_name, limit->value);
    return -EINVAL;
}

int hg_adminjson_decode_throttle(struct hg_span body, struct hg_state_throttle *ret,
                                 struct hg_adminjson_why *why)
{
    struct hg_state_throttle throttle = {{HG_STATE_DEFAULT, 0}, {HG_STATE_DEFAULT, 0}};
    const struct key keys[] = {
        {"reserved", HG_CONF_SCOPE_TENANT, HG_CONF_TENANT_reserved, &throttle.reserved},
        {"hard_limit", HG_CONF_SCOPE_TENANT, HG_CONF_TENANT_hard_limit, &throttle.hard_limit},
    };
    struct hg_conf_why fault;
    if (decode_units(body, keys, HG_COUNT_OF(keys),
                     "{\"reserved\": N or \"unlimited\", \"hard_limit\": N or \"unlimited\"}",
                     &fault))
        return give(&fault, why);
    if (exceeds(&throttle.reserved, &throttle.hard_limit))
        return refuse_pair("reserved", &throttle.reserved, "hard_limit", &throttle.hard_limit, why);
    *ret = throttle;
    return 0;
}

int hg_adminjson_decode_node(struct hg_span body, struct hg_state_node *ret,
                             struct hg_adminjson_why *why)
{
    struct hg_state_node node = {{HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}};
    const struct key keys[] = {
        {"capacity", HG_CONF_SCOPE_SERVER, HG_CONF_SERVER_node_capacity, &node.capacity},
        {"default_throttle_reserved_units", HG_CONF_SCOPE_SERVER,
         HG_CONF_SERVER_default_throttle_reserved_units, &node.default_reserved},
        {"default_throttle_hard_limit", HG_CONF_SCOPE_SERVER,
         HG_CONF_SERVER_default_throttle_hard_limit, &node.default_hard_limit},
    };
    struct hg_conf_why fault;
    if (decode_units(body, keys, HG_COUNT_OF(keys),
                     "{\"capacity\", \"default_throttle_reserved_units\", "
                     "\"default_throttle_hard_limit\": N or \"unlimited\" each}",
                     &fault))
        return give(&fault, why);
    if (exceeds(&node.default_reserved, &node.default_hard_limit))
        return refuse_pair("default_throttle_reserved_units", &node.default_reserved,
                           "default_throttle_hard_limit", &node.default_hard_limit, why);
    *ret = node;
    return 0;
}

/* May an opcode set this option of a tenant? The name is the request's key, and which files
   the server reads is up to who writes its configuration. */
static bool is_settable(size_t option)
{
    return option != HG_CONF_TENANT_name && option != HG_CONF_TENANT_backend_password_file;
}

static void bucket_keys(char *ret, size_t size)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[HG_CONF_SCOPE_TENANT];
    size_t at = 0;
    for (size_t i = 0; i < info->count && at < size; i++)
        if (is_settable(i))
            at += (size_t)snprintf(ret + at, size - at, "%s%s", at ? ", " : "",
                                   info->options[i].name);
}

static int decode_settings(struct hg_span body, size_t max, struct hg_conf_tenant *settings,
                           struct hg_conf_why *why)
{
    char accepts[600];
    const char *name;
    json_t *value;
    bucket_keys(accepts, sizeof accepts);
    json_t *root = hg_strictjson_load(body, max, "a JSON object of settings", why);
    int rc = root ? 0 : -EINVAL;
    if (!root)
        return rc;
    json_object_foreach(root, name, value)
    {
        const struct hg_conf_option *option = hg_conf_option_find(HG_CONF_SCOPE_TENANT, name);
        const struct hg_conf_scope_info *info = &hg_conf_scopes[HG_CONF_SCOPE_TENANT];
        if (!option || !is_settable((size_t)(option - info->options))) {
            hg_strictjson_unknown(name, accepts, why);
            rc = -EINVAL;
            break;
        }
        rc = hg_strictjson_set(option, settings, value, why);
        if (rc)
            break;
        *hg_conf_option_line(HG_CONF_SCOPE_TENANT, option, settings) = HG_CONF_BY_OPCODE;
    }
    json_decref(root);
    return rc;
}

static int check_settings(const struct hg_conf_tenant *settings, struct hg_adminjson_why *why)
{
    const unsigned *lines = settings->lines;
    struct hg_state_units reserved = {HG_STATE_VALUE, settings->reserved};
    struct hg_state_units limit = {HG_STATE_VALUE, settings->hard_limit};
    if (lines[HG_CONF_TENANT_reserved] && lines[HG_CONF_TENANT_hard_limit] &&
        exceeds(&reserved, &limit))
        return refuse_pair("reserved", &reserved, "hard_limit", &limit, why);
    return 0;
}

static int decode_bucket(struct hg_span name, struct hg_span body, size_t max,
                         struct hg_conf_tenant **ret, struct hg_adminjson_why *why)
{
    struct hg_conf_why fault;
    int rc = hg_adminjson_check_name(name, why);
    if (rc)
        return rc;
    struct hg_conf_tenant *settings = calloc(1, sizeof *settings);
    if (!settings)
        return -ENOMEM;
    rc = hg_conf_object_init(HG_CONF_SCOPE_TENANT, settings);
    if (!rc) {
        free(settings->name);
        settings->name = strndup((const char *)name.at, name.len);
        rc = settings->name ? 0 : -ENOMEM;
    }
    settings->lines[HG_CONF_TENANT_name] = HG_CONF_BY_OPCODE;
    settings->by_opcode = true;
    if (!rc && body.len) {
        rc = decode_settings(body, max, settings, &fault);
        if (rc == -EINVAL)
            give(&fault, why);
    }
    if (!rc)
        rc = check_settings(settings, why);
    if (rc) {
        hg_adminjson_free_bucket(settings);
        return rc;
    }
    *ret = settings;
    return 0;
}

int hg_adminjson_decode_bucket(struct hg_span name, struct hg_span body,
                               struct hg_conf_tenant **ret, struct hg_adminjson_why *why)
{
    return decode_bucket(name, body, HG_ADMINJSON_BUCKET_MAX, ret, why);
}

int hg_adminjson_decode_created(struct hg_span name, struct hg_span body,
                                struct hg_conf_tenant **ret, struct hg_adminjson_why *why)
{
    return decode_bucket(name, body, SIZE_MAX, ret, why);
}

void hg_adminjson_free_bucket(struct hg_conf_tenant *settings)
{
    if (!settings)
        return;
    hg_conf_tenant_fini(settings);
    free(settings);
}

int hg_adminjson_check_data_limit(uint16_t status, struct hg_adminjson_why *why)
{
    if (status == 0 || (status >= 0x35 && status <= 0x38))
        return 0;
    snprintf(why->text, sizeof why->text,
             "bad status '0x%02x' of a data limit (accepted: 0, 0x35, 0x36, 0x37, 0x38)", status);
    return -EINVAL;
}

int hg_adminjson_check_name(struct hg_span name, struct hg_adminjson_why *why)
{
    if (hg_conf_name_ok((const char *)name.at, name.len))
        return 0;
    struct hg_conf_why fault;
    snprintf(fault.text, sizeof fault.text,
             "bad bucket name '%.*s' (accepted: 1 to 100 of A-Z a-z 0-9 . _ %% -)",
             (int)(name.len < 120 ? name.len : 120), name.at ? (const char *)name.at : "");
    return give(&fault, why);
}
