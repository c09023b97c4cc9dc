// change - the verb that changes limits and other options while the server runs: set
// SPDX-License-Identifier: BSD-3-Clause
//
// A change that succeeds says nothing. Arguments are checked here only as far as they must be to be
// sent; what is allowed is the server's to say.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/param.h"
#include "proto/opcode.h"
#include "proto/status.h"

/* ---- arguments ---- */

/* A number, "unlimited", or "default", which is NULL. An exit code. */
static int parse_units(const char *name, const char *value, json_t **ret)
{
    if (strcmp(value, "default") == 0)
        *ret = NULL;
    else if (strcmp(value, "unlimited") == 0)
        *ret = json_string(value);
    else if (value[0] != '\0' && strspn(value, "0123456789") == strlen(value) && strlen(value) < 19)
        *ret = json_integer(strtoll(value, NULL, 10));
    else
        return hg_ctl_say(HG_CTL_USAGE,
                          "'%s' is no value of %s (accepted: a number of units/s, unlimited, "
                          "default)",
                          value, name);
    return HG_CTL_OK;
}

/* ---- set node ---- */

static int parse_node_option(const char *name, const char *value, json_t *settings,
                             struct hg_ctl_params *params)
{
    json_t *units = NULL;
    int code = HG_CTL_OK;
    if (hg_ctl_take_param(params, name, value, &code))
        return code;
    const struct hg_ctl_node_option *option = hg_ctl_find_node_option(name);
    if (option == NULL)
        return HG_CTL_USAGE;
    code = parse_units(name, value, &units);
    if (code == HG_CTL_OK && units == NULL)
        code = hg_ctl_say(HG_CTL_USAGE, "%s has no default but the file's: use unset node %s", name,
                          name);
    if (code == HG_CTL_OK)
        json_object_set_new(settings, option->key, units);
    return code;
}

static int parse_node(struct hg_ctl *ctl, json_t *settings, struct hg_ctl_params *params)
{
    char *name, *value;
    for (int i = 1; i < ctl->arg_count; i++) {
        if (!hg_ctl_cut(ctl->args[i], &name, &value))
            return hg_ctl_say(HG_CTL_USAGE, "'%s' is not OPTION=VALUE", ctl->args[i]);
        int code = parse_node_option(name, value, settings, params);
        if (code != HG_CTL_OK)
            return code;
    }
    if (ctl->arg_count < 2)
        return hg_ctl_say(HG_CTL_USAGE, "set node takes at least one OPTION=VALUE");
    return HG_CTL_OK;
}

static int set_node(struct hg_ctl *ctl)
{
    json_t *settings = json_object();
    struct hg_ctl_params params = {hg_ctl_node_params, HG_CTL_NODE_PARAMS, {NULL}};
    char set[HG_CTL_LIST_BYTES] = "";
    int code = parse_node(ctl, settings, &params);
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK && json_object_size(settings) > 0) {
        code = hg_ctl_command_json(ctl, HG_OPCODE_SET_NODE_THROTTLE, "set node", NULL,
                                   json_incref(settings));
        const char *key;
        json_t *value;
        json_object_foreach(settings, key, value)
        {
            if (code == HG_CTL_OK)
                hg_ctl_note(set, sizeof set, key);
        }
    }
    json_decref(settings);
    if (code == HG_CTL_OK)
        code = hg_ctl_send_params(ctl, "set node", "", &params, set, sizeof set);
    return hg_ctl_say_what_stays(code, "set node", set);
}

/* ---- set upstream ---- */

static int set_upstream(struct hg_ctl *ctl)
{
    struct hg_ctl_params params = {hg_ctl_upstream_params, HG_CTL_UPSTREAM_PARAMS, {NULL}};
    const char *upstream = hg_ctl_upstream_name(ctl, "set");
    char head[HG_CTL_BUCKET_NAME_MAX + 16], what[HG_CTL_BUCKET_NAME_MAX + 32];
    char set[HG_CTL_LIST_BYTES] = "", *name, *value;
    if (upstream == NULL)
        return HG_CTL_USAGE;
    for (int i = 2; i < ctl->arg_count; i++) {
        int code = HG_CTL_OK;
        if (!hg_ctl_cut(ctl->args[i], &name, &value))
            return hg_ctl_say(HG_CTL_USAGE, "'%s' is not OPTION=VALUE", ctl->args[i]);
        if (!hg_ctl_take_param(&params, name, value, &code))
            code = hg_ctl_say_no_upstream_option(name);
        if (code != HG_CTL_OK)
            return code;
    }
    if (ctl->arg_count < 3)
        return hg_ctl_say(HG_CTL_USAGE, "set upstream takes at least one OPTION=VALUE");
    snprintf(head, sizeof head, "upstream.%s.", upstream);
    snprintf(what, sizeof what, "set upstream '%s'", upstream);
    int code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        code = hg_ctl_send_params(ctl, what, head, &params, set, sizeof set);
    return hg_ctl_say_what_stays(code, what, set);
}

/* ---- set bucket ---- */

static const char *const unit_stats[HG_CTL_UNITS] = {"throttle_reserved", "throttle_hard_limit"};

struct bucket_change {
    const char *bucket;
    struct hg_ctl_params params;
    bool given[HG_CTL_UNITS];
    json_t *units[HG_CTL_UNITS]; /* NULL: the default */
    bool data_limit_given;
    uint16_t data_limit;
};

static int parse_data_limit(const char *value, uint16_t *ret)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 0);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
        (number != 0 && (number < 0x35 || number > 0x38)))
        return hg_ctl_say(HG_CTL_USAGE,
                          "'%s' is no value of data_limit (accepted: 0 to allow writes, 0x35 to "
                          "0x38 to refuse them with that status)",
                          value);
    *ret = (uint16_t)number;
    return HG_CTL_OK;
}

static int parse_bucket_option(struct bucket_change *change, const char *name, const char *value)
{
    for (int u = 0; u < HG_CTL_UNITS; u++) {
        if (strcmp(name, hg_ctl_unit_names[u]) != 0)
            continue;
        if (change->given[u])
            return hg_ctl_say(HG_CTL_USAGE, "%s is given twice", name);
        change->given[u] = true;
        return parse_units(name, value, &change->units[u]);
    }
    int code = HG_CTL_OK;
    if (hg_ctl_take_param(&change->params, name, value, &code))
        return code;
    if (strcmp(name, "data_limit") != 0)
        return hg_ctl_say_no_bucket_option(name, "set");
    change->data_limit_given = true;
    return parse_data_limit(value, &change->data_limit);
}

static int parse_bucket(struct hg_ctl *ctl, struct bucket_change *change)
{
    char *name, *value;
    change->bucket = hg_ctl_bucket_name(ctl, "set");
    if (change->bucket == NULL)
        return HG_CTL_USAGE;
    for (int i = 2; i < ctl->arg_count; i++) {
        if (!hg_ctl_cut(ctl->args[i], &name, &value))
            return hg_ctl_say(HG_CTL_USAGE, "'%s' is not OPTION=VALUE", ctl->args[i]);
        int code = parse_bucket_option(change, name, value);
        if (code != HG_CTL_OK)
            return code;
    }
    if (ctl->arg_count < 3)
        return hg_ctl_say(HG_CTL_USAGE, "set bucket takes at least one OPTION=VALUE");
    return HG_CTL_OK;
}

/* A limit that is not named keeps its value: opcode 2a would take it for its default. */
static int keep_others(struct hg_ctl *ctl, struct bucket_change *change)
{
    int code = HG_CTL_OK;
    if (change->given[HG_CTL_RESERVED] == change->given[HG_CTL_HARD_LIMIT])
        return code;
    json_t *details = hg_ctl_details_of(ctl, "set", change->bucket, &code);
    for (int u = 0; u < HG_CTL_UNITS && details != NULL; u++) {
        json_t *now = json_object_get(details, unit_stats[u]);
        if (change->given[u])
            continue;
        if (json_is_integer(now) || json_is_string(now))
            change->units[u] = json_incref(now);
        else
            code = hg_ctl_say(HG_CTL_LOST, "set bucket '%s': the server does not say its %s",
                              change->bucket, hg_ctl_unit_names[u]);
    }
    json_decref(details);
    return code;
}

/* Sends the units that are given, with those that are not as they are. */
static int send_units(struct hg_ctl *ctl, const struct bucket_change *change)
{
    json_t *settings = json_object();
    for (int u = 0; u < HG_CTL_UNITS; u++)
        if (change->units[u] != NULL)
            json_object_set(settings, hg_ctl_unit_names[u], change->units[u]);
    return hg_ctl_command_json(ctl, HG_OPCODE_SET_BUCKET_THROTTLE, "set", change->bucket, settings);
}

static int send_bucket(struct hg_ctl *ctl, struct bucket_change *change)
{
    char set[HG_CTL_LIST_BYTES] = "";
    char head[HG_CTL_BUCKET_NAME_MAX + 16], what[HG_CTL_BUCKET_NAME_MAX + 32];
    snprintf(head, sizeof head, "tenant.%s.", change->bucket);
    snprintf(what, sizeof what, "set bucket '%s'", change->bucket);
    int code = keep_others(ctl, change);
    if (code == HG_CTL_OK && (change->given[HG_CTL_RESERVED] || change->given[HG_CTL_HARD_LIMIT])) {
        code = send_units(ctl, change);
        for (int u = 0; code == HG_CTL_OK && u < HG_CTL_UNITS; u++)
            if (change->given[u])
                hg_ctl_note(set, sizeof set, hg_ctl_unit_names[u]);
    }
    if (code == HG_CTL_OK && change->data_limit_given) {
        code = hg_ctl_send_data_limit(ctl, "set", change->bucket, change->data_limit);
        if (code == HG_CTL_OK)
            hg_ctl_note(set, sizeof set, "data_limit");
    }
    if (code == HG_CTL_OK)
        code = hg_ctl_send_params(ctl, what, head, &change->params, set, sizeof set);
    return hg_ctl_say_what_stays(code, what, set);
}

int hg_ctl_set(struct hg_ctl *ctl)
{
    struct bucket_change change = {.params = {hg_ctl_bucket_params, HG_CTL_BUCKET_PARAMS, {NULL}}};
    if (hg_ctl_is_of(ctl, "node"))
        return set_node(ctl);
    if (hg_ctl_is_of(ctl, "upstream"))
        return set_upstream(ctl);
    if (!hg_ctl_is_of(ctl, "bucket"))
        return hg_ctl_say(HG_CTL_USAGE, "set takes 'node', 'upstream' or 'bucket'");
    int code = parse_bucket(ctl, &change);
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        code = send_bucket(ctl, &change);
    for (int u = 0; u < HG_CTL_UNITS; u++)
        json_decref(change.units[u]);
    return code;
}
