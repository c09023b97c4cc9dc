// unset - the verb that takes back what was set while the server runs
// SPDX-License-Identifier: BSD-3-Clause
#include "ctl/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/opcode.h"
#include "proto/status.h"

/* All that any of them can have, each once. */
enum {
    PATHS_MAX =
        HG_CTL_NODE_OPTIONS + HG_CTL_NODE_PARAMS + HG_CTL_UPSTREAM_PARAMS + HG_CTL_BUCKET_PARAMS
};

struct paths {
    const char *path[PATHS_MAX];
    size_t count;
    char text[PATHS_MAX][HG_CTL_PATH_BYTES];
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
        if (hg_ctl_has_name(hg_ctl_node_params, HG_CTL_NODE_PARAMS, ctl->args[i])) {
            add_path(&paths, "", ctl->args[i]);
            continue;
        }
        const struct hg_ctl_node_option *option = hg_ctl_find_node_option(ctl->args[i]);
        if (option == NULL)
            return HG_CTL_USAGE;
        add_path(&paths, "", option->path);
    }
    for (size_t i = 0; ctl->arg_count == 1 && i < HG_CTL_NODE_OPTIONS; i++)
        add_path(&paths, "", hg_ctl_node_options[i].path);
    for (size_t p = 0; ctl->arg_count == 1 && p < HG_CTL_NODE_PARAMS; p++)
        add_path(&paths, "", hg_ctl_node_params[p]);
    int code = hg_ctl_connect(ctl);
    return code != HG_CTL_OK ? code : unset_paths(ctl, &paths);
}

static int unset_upstream(struct hg_ctl *ctl)
{
    const char *upstream = hg_ctl_upstream_name(ctl, "unset");
    char head[HG_CTL_BUCKET_NAME_MAX + 16], what[HG_CTL_BUCKET_NAME_MAX + 32];
    if (upstream == NULL)
        return HG_CTL_USAGE;
    snprintf(head, sizeof head, "upstream.%s.", upstream);
    snprintf(what, sizeof what, "unset upstream '%s'", upstream);
    struct paths paths = {.what = what};
    for (int i = 2; i < ctl->arg_count; i++) {
        if (!hg_ctl_has_name(hg_ctl_upstream_params, HG_CTL_UPSTREAM_PARAMS, ctl->args[i]))
            return hg_ctl_say_no_upstream_option(ctl->args[i]);
        add_path(&paths, head, ctl->args[i]);
    }
    for (size_t p = 0; ctl->arg_count == 2 && p < HG_CTL_UPSTREAM_PARAMS; p++)
        add_path(&paths, head, hg_ctl_upstream_params[p]);
    int code = hg_ctl_connect(ctl);
    return code != HG_CTL_OK ? code : unset_paths(ctl, &paths);
}

/* Whether writes are refused now; false when the server does not say. */
static bool has_data_limit(struct hg_ctl *ctl, const char *bucket, int *ret_code)
{
    json_t *details = hg_ctl_details_of(ctl, NULL, bucket, ret_code);
    const char *status = json_string_value(json_object_get(details, "data_ingress_status"));
    bool limited = status != NULL && strtoul(status, NULL, 0) != 0;
    json_decref(details);
    if (*ret_code == HG_CTL_REFUSED)
        *ret_code = HG_CTL_OK;
    return limited;
}

static bool can_unset(const char *name)
{
    for (int u = 0; u < HG_CTL_UNITS; u++)
        if (strcmp(name, hg_ctl_unit_names[u]) == 0)
            return true;
    return hg_ctl_has_name(hg_ctl_bucket_params, HG_CTL_BUCKET_PARAMS, name);
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
            return hg_ctl_say_no_bucket_option(ctl->args[i], "unset");
        else
            add_path(&paths, head, ctl->args[i]);
    }
    for (int u = 0; ctl->arg_count == 2 && u < HG_CTL_UNITS; u++)
        add_path(&paths, head, hg_ctl_unit_names[u]);
    for (size_t p = 0; ctl->arg_count == 2 && p < HG_CTL_BUCKET_PARAMS; p++)
        add_path(&paths, head, hg_ctl_bucket_params[p]);
    int code = hg_ctl_connect(ctl);
    if (code == HG_CTL_OK && ctl->arg_count == 2)
        data_limit = has_data_limit(ctl, bucket, &code);
    if (code == HG_CTL_OK && data_limit)
        code = hg_ctl_send_data_limit(ctl, "unset", bucket, 0);
    return code != HG_CTL_OK ? code : unset_paths(ctl, &paths);
}

int hg_ctl_unset(struct hg_ctl *ctl)
{
    if (hg_ctl_is_of(ctl, "node"))
        return unset_node(ctl);
    if (hg_ctl_is_of(ctl, "bucket"))
        return unset_bucket(ctl);
    if (hg_ctl_is_of(ctl, "upstream"))
        return unset_upstream(ctl);
    return hg_ctl_say(HG_CTL_USAGE, "unset takes 'node', 'upstream' or 'bucket'");
}
