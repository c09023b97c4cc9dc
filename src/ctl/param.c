// param - options that go by SetParam, one by one, as text
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "proto/opcode.h"
#include "proto/status.h"

/* ---- which there are ---- */

const struct hg_ctl_node_option hg_ctl_node_options[] = {
    {"capacity", "capacity", "node_capacity"},
    {"node_capacity", "capacity", "node_capacity"},
    {"default_throttle_reserved_units", "default_throttle_reserved_units",
     "default_throttle_reserved_units"},
    {"default_throttle_hard_limit", "default_throttle_hard_limit", "default_throttle_hard_limit"},
};

const char *const hg_ctl_node_params[] = {
    "log_level",
    "max_connections",
    "idle_timeout_s",
    "request_deadline_ms",
    "throttle_max_wait_ms",
    "slow_request_ms",
    "trace_sample",
    "ingress_enabled",
    "ingress_tickets",
    "ingress_max_queue_depth",
    "ingress_queue_timeout_ms",
    "ingress_overload_wait_ms",
    "compat_overload",
    "bind_backlog_ms",
    "bind_eviction_threshold_pct",
    "bind_eviction_target_conn_pct",
    "bind_eviction_decr_per_sec",
    "eviction_min_age_ms",
    "bind_evict_sent_writes",
};

const char *const hg_ctl_upstream_params[] = {
    "connect_timeout_ms",
    "backend_timeout_ms",
    "reconnect_max_ms",
    "pool_depth",
    "pool_max_connections",
    "pool_min_hold_ms",
    "pool_idle_timeout_s",
    "execution_control",
    "read_tickets",
    "write_tickets",
    "tickets_scope",
    "upstream_tickets",
    "execution_max_queue_depth",
    "queue_timeout_ms",
    "overload_wait_ms",
    "flood_wait_ms",
    "flood_order",
    "key_share_pct",
    "tenant_window",
    "bind_control",
    "bind_mended",
    "throughput_probing_interval_ms",
    "throughput_probing_initial_concurrency",
    "throughput_probing_min_concurrency",
    "throughput_probing_max_concurrency",
    "throughput_probing_read_write_ratio",
    "throughput_probing_concurrency_moving_average_weight",
    "throughput_probing_step_multiple",
    "slow_server_factor",
};

const char *const hg_ctl_unit_names[HG_CTL_UNITS] = {"reserved", "hard_limit"};

const char *const hg_ctl_bucket_params[] = {
    "state",
    "credit_mode",
    "reject_status",
    "max_connections",
    "kv_hotkey_throttle_threshold",
    "hotkey_mode",
    "hotkey_control",
    "hotkey_tracking",
    "ticket_mode",
    "fair_by",
    "bind_mode",
    "bind_min_bytes",
};

/* ", a, b, c" behind what is there. */
static void list_names(char *list, size_t room, const char *const *names, size_t count)
{
    for (size_t p = 0; p < count; p++) {
        strncat(list, list[0] != '\0' ? ", " : "", room - strlen(list) - 1);
        strncat(list, names[p], room - strlen(list) - 1);
    }
}

bool hg_ctl_is_other_name(size_t row)
{
    return row > 0 && strcmp(hg_ctl_node_options[row].path, hg_ctl_node_options[row - 1].path) == 0;
}

const struct hg_ctl_node_option *hg_ctl_find_node_option(const char *name)
{
    char list[HG_CTL_LIST_BYTES] = "";
    for (size_t i = 0; i < HG_CTL_NODE_OPTIONS; i++)
        if (strcmp(name, hg_ctl_node_options[i].name) == 0)
            return &hg_ctl_node_options[i];
    for (size_t i = 0; i < HG_CTL_NODE_OPTIONS; i++)
        if (!hg_ctl_is_other_name(i))
            list_names(list, sizeof list, &hg_ctl_node_options[i].name, 1);
    list_names(list, sizeof list, hg_ctl_node_params, HG_CTL_NODE_PARAMS);
    hg_ctl_say(HG_CTL_USAGE, "'%s' is no option of the node (accepted: %s)", name, list);
    return NULL;
}

int hg_ctl_say_no_upstream_option(const char *name)
{
    char list[HG_CTL_LIST_BYTES] = "";
    list_names(list, sizeof list, hg_ctl_upstream_params, HG_CTL_UPSTREAM_PARAMS);
    return hg_ctl_say(HG_CTL_USAGE,
                      "'%s' is no option of an upstream that can be changed so (accepted: %s)",
                      name, list);
}

/* The name behind "upstream"; NULL, and said so, when there is none. */
const char *hg_ctl_upstream_name(const struct hg_ctl *ctl, const char *verb)
{
    if (ctl->arg_count >= 2 && ctl->args[1][0] != '\0' &&
        strlen(ctl->args[1]) <= HG_CTL_BUCKET_NAME_MAX)
        return ctl->args[1];
    hg_ctl_say(HG_CTL_USAGE, "%s upstream takes a name of 1 to %d bytes", verb,
               HG_CTL_BUCKET_NAME_MAX);
    return NULL;
}

int hg_ctl_say_no_bucket_option(const char *name, const char *verb)
{
    char list[HG_CTL_LIST_BYTES] = "";
    list_names(list, sizeof list, hg_ctl_bucket_params, HG_CTL_BUCKET_PARAMS);
    return hg_ctl_say(HG_CTL_USAGE,
                      "'%s' is no option of a bucket that can be %s (accepted: reserved, "
                      "hard_limit, data_limit, %s)",
                      name, verb, list);
}

/* ---- requests ---- */

int hg_ctl_send_data_limit(struct hg_ctl *ctl, const char *verb, const char *bucket,
                           uint16_t status)
{
    uint8_t extras[2];
    hg_put_u16(extras, status);
    struct hg_ctl_request request = {.opcode = HG_OPCODE_SET_DATA_LIMIT_EXCEEDED,
                                     .extras = hg_span(extras, sizeof extras)};
    return hg_ctl_command_on_bucket(ctl, &request, verb, bucket);
}

/* One option by SetParam, whose path is `head` and the name; no value: back to the file's. */
static int send_param(struct hg_ctl *ctl, const char *what, const char *head, const char *name,
                      const char *value)
{
    char path[HG_CTL_PATH_BYTES];
    struct hg_ctl_reply reply;
    snprintf(path, sizeof path, "%s%s", head, name);
    struct hg_ctl_request request = {
        .opcode = HG_OPCODE_SET_PARAM, .key = hg_span_str(path), .value = hg_span_str(value)};
    int code = hg_ctl_ask(ctl, &request, &reply);
    if (code == HG_CTL_OK && reply.status != HG_STATUS_SUCCESS)
        code = hg_ctl_refused(&reply, what);
    return code;
}

void hg_ctl_note(char *set, size_t room, const char *name)
{
    size_t len = strlen(set);
    snprintf(set + len, room - len, "%s%s", len > 0 ? ", " : "", name);
}

int hg_ctl_say_what_stays(int code, const char *what, const char *set)
{
    if (code != HG_CTL_OK && set[0] != '\0')
        code = hg_ctl_say(code, "%s: what was set before that stays: %s", what, set);
    return code;
}

bool hg_ctl_has_name(const char *const *names, size_t count, const char *name)
{
    for (size_t p = 0; p < count; p++)
        if (strcmp(name, names[p]) == 0)
            return true;
    return false;
}

/* Takes OPTION=VALUE if it is one of them: true; *ret_code is what to make of it. */
bool hg_ctl_take_param(struct hg_ctl_params *params, const char *name, const char *value,
                       int *ret_code)
{
    for (size_t p = 0; p < params->count; p++) {
        if (strcmp(name, params->names[p]) != 0)
            continue;
        *ret_code = HG_CTL_OK;
        if (params->values[p] != NULL)
            *ret_code = hg_ctl_say(HG_CTL_USAGE, "%s is given twice", name);
        else if (value[0] == '\0')
            *ret_code = hg_ctl_say(HG_CTL_USAGE, "%s= has no value (unset takes it back)", name);
        params->values[p] = value;
        return true;
    }
    return false;
}

/* Each goes by itself, so one that is refused leaves those before it set: `set` has them. */
int hg_ctl_send_params(struct hg_ctl *ctl, const char *what, const char *head,
                       const struct hg_ctl_params *params, char *set, size_t room)
{
    int code = HG_CTL_OK;
    for (size_t p = 0; code == HG_CTL_OK && p < params->count; p++) {
        if (params->values[p] == NULL)
            continue;
        code = send_param(ctl, what, head, params->names[p], params->values[p]);
        if (code == HG_CTL_OK)
            hg_ctl_note(set, room, params->names[p]);
    }
    return code;
}

/* What the server says of the bucket now; NULL, and said so with `verb`, when it does not. */
json_t *hg_ctl_details_of(struct hg_ctl *ctl, const char *verb, const char *bucket, int *ret_code)
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
