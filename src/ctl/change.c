// change - the verbs that change limits: set and unset
// SPDX-License-Identifier: BSD-3-Clause
//
// A change that succeeds says nothing. Arguments are checked here only as far as they must be to be
// sent; what is allowed is the server's to say.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ctl/command.h"
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

/* ---- requests ---- */

static int send_data_limit(struct hg_ctl *ctl, const char *verb, const char *bucket,
                           uint16_t status)
{
    uint8_t extras[2];
    hg_put_u16(extras, status);
    struct hg_ctl_request request = {.opcode = HG_OPCODE_SET_DATA_LIMIT_EXCEEDED,
                                     .extras = hg_span(extras, sizeof extras)};
    return hg_ctl_command_on_bucket(ctl, &request, verb, bucket);
}

/* ---- set node ---- */

static const struct node_option {
    const char *name, *key; /* as typed; of the JSON */
    const char *path;       /* of SetParam */
} node_options[] = {
    {"capacity", "capacity", "node_capacity"},
    {"node_capacity", "capacity", "node_capacity"},
    {"default_throttle_reserved_units", "default_throttle_reserved_units",
     "default_throttle_reserved_units"},
    {"default_throttle_hard_limit", "default_throttle_hard_limit", "default_throttle_hard_limit"},
};

static const struct node_option *find_node_option(const char *name)
{
    for (size_t i = 0; i < HG_COUNT_OF(node_options); i++)
        if (strcmp(name, node_options[i].name) == 0)
            return &node_options[i];
    hg_ctl_say(HG_CTL_USAGE,
               "'%s' is no option of the node (accepted: capacity, "
               "default_throttle_reserved_units, default_throttle_hard_limit)",
               name);
    return NULL;
}

static int parse_node(struct hg_ctl *ctl, json_t *settings)
{
    char *name, *value;
    for (int i = 1; i < ctl->arg_count; i++) {
        json_t *units = NULL;
        if (!hg_ctl_cut(ctl->args[i], &name, &value))
            return hg_ctl_say(HG_CTL_USAGE, "'%s' is not OPTION=VALUE", ctl->args[i]);
        const struct node_option *option = find_node_option(name);
        if (option == NULL)
            return HG_CTL_USAGE;
        int code = parse_units(name, value, &units);
        if (code != HG_CTL_OK)
            return code;
        if (units == NULL)
            return hg_ctl_say(HG_CTL_USAGE, "%s has no default but the file's: use unset node %s",
                              name, name);
        json_object_set_new(settings, option->key, units);
    }
    if (json_object_size(settings) == 0)
        return hg_ctl_say(HG_CTL_USAGE, "set node takes at least one OPTION=VALUE");
    return HG_CTL_OK;
}

static int set_node(struct hg_ctl *ctl)
{
    json_t *settings = json_object();
    int code = parse_node(ctl, settings);
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        return hg_ctl_command_json(ctl, HG_OPCODE_SET_NODE_THROTTLE, "set node", NULL, settings);
    json_decref(settings);
    return code;
}

/* ---- set bucket ---- */

enum { RESERVED, HARD_LIMIT, UNITS };
static const char *const unit_names[UNITS] = {"reserved", "hard_limit"};
static const char *const unit_stats[UNITS] = {"throttle_reserved", "throttle_hard_limit"};

/* Options of a bucket that go by SetParam, one by one, as text. */
static const char *const param_names[] = {"kv_hotkey_throttle_threshold", "hotkey_mode",
                                          "hotkey_control", "hotkey_tracking"};
#define PARAMS HG_COUNT_OF(param_names)

struct bucket_change {
    const char *bucket;
    const char *params[PARAMS]; /* NULL: not given */
    bool given[UNITS];
    json_t *units[UNITS]; /* NULL: the default */
    bool data_limit_given;
    uint16_t data_limit;
};

static int say_no_option(const char *name, const char *verb)
{
    char list[256] = "";
    for (size_t p = 0; p < PARAMS; p++) {
        strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, param_names[p], sizeof list - strlen(list) - 1);
    }
    return hg_ctl_say(HG_CTL_USAGE,
                      "'%s' is no option of a bucket that can be %s (accepted: reserved, "
                      "hard_limit, data_limit%s)",
                      name, verb, list);
}

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
    for (int u = 0; u < UNITS; u++) {
        if (strcmp(name, unit_names[u]) != 0)
            continue;
        if (change->given[u])
            return hg_ctl_say(HG_CTL_USAGE, "%s is given twice", name);
        change->given[u] = true;
        return parse_units(name, value, &change->units[u]);
    }
    for (size_t p = 0; p < PARAMS; p++) {
        if (strcmp(name, param_names[p]) != 0)
            continue;
        if (change->params[p] != NULL)
            return hg_ctl_say(HG_CTL_USAGE, "%s is given twice", name);
        if (value[0] == '\0')
            return hg_ctl_say(HG_CTL_USAGE, "%s= has no value (unset bucket takes it back)", name);
        change->params[p] = value;
        return HG_CTL_OK;
    }
    if (strcmp(name, "data_limit") != 0)
        return say_no_option(name, "set");
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

/* What the server says of the bucket now; NULL, and said so with `verb`, when it does not. */
static json_t *details_of(struct hg_ctl *ctl, const char *verb, const char *bucket, int *ret_code)
{
    struct hg_ctl_rows rows = {NULL, 0, 0};
    char group[200], *refused = NULL;
    snprintf(group, sizeof group, "bucket_details %s", bucket);
    *ret_code = hg_ctl_fetch(ctl, group, &rows, &refused);
    json_t *details = NULL;
    if (*ret_code == HG_CTL_OK && rows.count > 0)
        details = json_loadb(rows.row[0].value, rows.row[0].value_len, 0, NULL);
    if (*ret_code == HG_CTL_REFUSED && verb != NULL)
        hg_ctl_say(*ret_code, "%s bucket '%s': cannot read its settings: %s", verb, bucket,
                   refused);
    else if (*ret_code == HG_CTL_OK && !json_is_object(details))
        *ret_code =
            hg_ctl_say(HG_CTL_LOST, "bucket_details '%s': the answer is no JSON object", bucket);
    if (!json_is_object(details)) {
        json_decref(details);
        details = NULL;
    }
    hg_ctl_rows_free(&rows);
    free(refused);
    return details;
}

/* A limit that is not named keeps its value: opcode 2a would take it for its default. */
static int keep_others(struct hg_ctl *ctl, struct bucket_change *change)
{
    int code = HG_CTL_OK;
    if (change->given[RESERVED] == change->given[HARD_LIMIT])
        return code;
    json_t *details = details_of(ctl, "set", change->bucket, &code);
    for (int u = 0; u < UNITS && details != NULL; u++) {
        json_t *now = json_object_get(details, unit_stats[u]);
        if (change->given[u])
            continue;
        if (json_is_integer(now) || json_is_string(now))
            change->units[u] = json_incref(now);
        else
            code = hg_ctl_say(HG_CTL_LOST, "set bucket '%s': the server does not say its %s",
                              change->bucket, unit_names[u]);
    }
    json_decref(details);
    return code;
}

static int send_param(struct hg_ctl *ctl, const char *bucket, const char *name, const char *value)
{
    char path[HG_CTL_BUCKET_NAME_MAX + 64], what[HG_CTL_BUCKET_NAME_MAX + 32];
    struct hg_ctl_reply reply;
    snprintf(path, sizeof path, "tenant.%s.%s", bucket, name);
    snprintf(what, sizeof what, "set bucket '%s'", bucket);
    struct hg_ctl_request request = {
        .opcode = HG_OPCODE_SET_PARAM, .key = hg_span_str(path), .value = hg_span_str(value)};
    int code = hg_ctl_ask(ctl, &request, &reply);
    if (code == HG_CTL_OK && reply.status != HG_STATUS_SUCCESS)
        code = hg_ctl_refused(&reply, what);
    return code;
}

/* Sends the units that are given, with those that are not as they are. */
static int send_units(struct hg_ctl *ctl, const struct bucket_change *change)
{
    json_t *settings = json_object();
    for (int u = 0; u < UNITS; u++)
        if (change->units[u] != NULL)
            json_object_set(settings, unit_names[u], change->units[u]);
    return hg_ctl_command_json(ctl, HG_OPCODE_SET_BUCKET_THROTTLE, "set", change->bucket, settings);
}

static void note(char *set, size_t room, const char *name)
{
    size_t len = strlen(set);
    snprintf(set + len, room - len, "%s%s", len > 0 ? ", " : "", name);
}

/* Each option goes by itself, so one that is refused leaves those before it set: that is said. */
static int send_bucket(struct hg_ctl *ctl, struct bucket_change *change)
{
    char set[256] = "";
    int code = keep_others(ctl, change);
    if (code == HG_CTL_OK && (change->given[RESERVED] || change->given[HARD_LIMIT])) {
        code = send_units(ctl, change);
        for (int u = 0; code == HG_CTL_OK && u < UNITS; u++)
            if (change->given[u])
                note(set, sizeof set, unit_names[u]);
    }
    if (code == HG_CTL_OK && change->data_limit_given) {
        code = send_data_limit(ctl, "set", change->bucket, change->data_limit);
        if (code == HG_CTL_OK)
            note(set, sizeof set, "data_limit");
    }
    for (size_t p = 0; code == HG_CTL_OK && p < PARAMS; p++) {
        if (change->params[p] == NULL)
            continue;
        code = send_param(ctl, change->bucket, param_names[p], change->params[p]);
        if (code == HG_CTL_OK)
            note(set, sizeof set, param_names[p]);
    }
    if (code != HG_CTL_OK && set[0] != '\0')
        code = hg_ctl_say(code, "set bucket '%s': what was set before that stays: %s",
                          change->bucket, set);
    return code;
}

int hg_ctl_set(struct hg_ctl *ctl)
{
    struct bucket_change change = {0};
    if (hg_ctl_is_of(ctl, "node"))
        return set_node(ctl);
    if (!hg_ctl_is_of(ctl, "bucket"))
        return hg_ctl_say(HG_CTL_USAGE, "set takes 'node' or 'bucket'");
    int code = parse_bucket(ctl, &change);
    if (code == HG_CTL_OK)
        code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK)
        code = send_bucket(ctl, &change);
    for (int u = 0; u < UNITS; u++)
        json_decref(change.units[u]);
    return code;
}

/* ---- unset ---- */

#define PATHS_MAX 8

struct paths {
    const char *path[PATHS_MAX];
    size_t count;
    char text[PATHS_MAX][160];
    const char *what; /* for messages */
};

static void add_path(struct paths *paths, const char *head, const char *option)
{
    char *text = paths->text[paths->count];
    snprintf(text, sizeof paths->text[0], "%s%s", head, option);
    for (size_t i = 0; i < paths->count; i++)
        if (strcmp(paths->path[i], text) == 0)
            return;
    paths->path[paths->count++] = text;
}

/* SetParam with nothing. Two limits may be in each other's way until both are back (a reservation
   above the hard limit), so what is refused is tried once more after the others. */
static int unset_paths(struct hg_ctl *ctl, const struct paths *paths)
{
    bool done[PATHS_MAX] = {false};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < paths->count; i++) {
            struct hg_ctl_request request = {.opcode = HG_OPCODE_SET_PARAM,
                                             .key = hg_span_str(paths->path[i])};
            struct hg_ctl_reply reply;
            if (done[i])
                continue;
            int code = hg_ctl_ask(ctl, &request, &reply);
            if (code != HG_CTL_OK)
                return code;
            done[i] = reply.status == HG_STATUS_SUCCESS;
            bool again = pass == 0 && reply.status == HG_STATUS_EINVAL && paths->count > 1;
            if (!done[i] && !again)
                return hg_ctl_refused(&reply, paths->what);
        }
    }
    return HG_CTL_OK;
}

static int unset_node(struct hg_ctl *ctl)
{
    struct paths paths = {.what = "unset node"};
    for (int i = 1; i < ctl->arg_count; i++) {
        const struct node_option *option = find_node_option(ctl->args[i]);
        if (option == NULL)
            return HG_CTL_USAGE;
        add_path(&paths, "", option->path);
    }
    for (size_t i = 0; ctl->arg_count == 1 && i < HG_COUNT_OF(node_options); i++)
        add_path(&paths, "", node_options[i].path);
    int code = hg_ctl_connect(ctl);
    return code != HG_CTL_OK ? code : unset_paths(ctl, &paths);
}

/* Whether writes are refused now; false when the server does not say. */
static bool has_data_limit(struct hg_ctl *ctl, const char *bucket, int *ret_code)
{
    json_t *details = details_of(ctl, NULL, bucket, ret_code);
    const char *status = json_string_value(json_object_get(details, "data_ingress_status"));
    bool limited = status != NULL && strtoul(status, NULL, 0) != 0;
    json_decref(details);
    if (*ret_code == HG_CTL_REFUSED)
        *ret_code = HG_CTL_OK;
    return limited;
}

static bool can_unset(const char *name)
{
    for (int u = 0; u < UNITS; u++)
        if (strcmp(name, unit_names[u]) == 0)
            return true;
    for (size_t p = 0; p < PARAMS; p++)
        if (strcmp(name, param_names[p]) == 0)
            return true;
    return false;
}

static int unset_bucket(struct hg_ctl *ctl)
{
    const char *bucket = hg_ctl_bucket_name(ctl, "unset");
    char head[HG_CTL_BUCKET_NAME_MAX + 16], what[HG_CTL_BUCKET_NAME_MAX + 32];
    bool data_limit = false;
    if (bucket == NULL)
        return HG_CTL_USAGE;
    snprintf(head, sizeof head, "tenant.%s.", bucket);
    snprintf(what, sizeof what, "unset bucket '%s'", bucket);
    struct paths paths = {.what = what};
    for (int i = 2; i < ctl->arg_count; i++) {
        if (strcmp(ctl->args[i], "data_limit") == 0)
            data_limit = true;
        else if (!can_unset(ctl->args[i]))
            return say_no_option(ctl->args[i], "unset");
        else
            add_path(&paths, head, ctl->args[i]);
    }
    for (int u = 0; ctl->arg_count == 2 && u < UNITS; u++)
        add_path(&paths, head, unit_names[u]);
    for (size_t p = 0; ctl->arg_count == 2 && p < PARAMS; p++)
        add_path(&paths, head, param_names[p]);
    int code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK && ctl->arg_count == 2)
        data_limit = has_data_limit(ctl, bucket, &code);
    if (code == HG_CTL_OK && data_limit)
        code = send_data_limit(ctl, "unset", bucket, 0);
    return code != HG_CTL_OK ? code : unset_paths(ctl, &paths);
}

int hg_ctl_unset(struct hg_ctl *ctl)
{
    if (hg_ctl_is_of(ctl, "node"))
        return unset_node(ctl);
    if (hg_ctl_is_of(ctl, "bucket"))
        return unset_bucket(ctl);
    return hg_ctl_say(HG_CTL_USAGE, "unset takes 'node' or 'bucket'");
}
