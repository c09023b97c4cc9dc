// admin_param - SetParam: one option of the node, of an upstream or of a tenant
// SPDX-License-Identifier: BSD-3-Clause
//
//   node_capacity        bind_backlog_ms        upstream.NAME.read_tickets tenant.NAME.bind_mode
//
// An empty value means back to what the file says.
#include <errno.h>
#include <string.h>

#include "app/admin_own.h"
#include "app/conf_table.h"
#include "app/rights.h"
#include "base/log.h"
#include "proto/status.h"

static bool parse_units(struct hg_span text, struct hg_state_units *ret)
{
    *ret = (struct hg_state_units){HG_STATE_DEFAULT, 0};
    if (text.len == 0)
        return true;
    ret->mark = HG_STATE_VALUE;
    if (hg_span_is(text, "unlimited")) {
        ret->value = HG_CONF_UNLIMITED;
        return true;
    }
    if (text.len > 13)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        ret->value = ret->value * 10 + (text.at[i] - '0');
    }
    return true;
}

static void set_node_param(struct hg_process *process, struct hg_job *job,
                           const struct hg_state_units *units)
{
    struct hg_state_node node = {{HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}, {HG_STATE_ABSENT, 0}};
    if (hg_span_is(job->key, "node_capacity"))
        node.capacity = *units;
    else if (hg_span_is(job->key, "default_throttle_reserved_units"))
        node.default_reserved = *units;
    else
        node.default_hard_limit = *units;
    struct hg_state *state = hg_admin_copy_state(process, job);
    if (state != NULL)
        hg_admin_finish(process, job, state, hg_state_set_node(state, &node), NULL);
}

/* As a string; false: it does not fit, or is none. */
static bool copy_text(struct hg_span bytes, char *ret, size_t size)
{
    if (bytes.len >= size || (bytes.len > 0 && memchr(bytes.at, '\0', bytes.len) != NULL))
        return false;
    if (bytes.len > 0)
        memcpy(ret, bytes.at, bytes.len);
    ret[bytes.len] = '\0';
    return true;
}

/* What the path of a SetParam names. */
struct param {
    enum hg_conf_scope scope; /* server, upstream or tenant */
    struct hg_span name;      /* of the upstream or tenant */
    struct hg_span option;
};

/* Is there such an upstream, of a kind that the option has a meaning for? An unknown option is told
   elsewhere. */
static bool may_upstream(struct hg_process *process, struct hg_job *job, struct hg_span name,
                         const char *option)
{
    char text[HG_BUCKET_NAME_MAX + 1];
    size_t found = HG_CONF_NO_UPSTREAM;
    if (copy_text(name, text, sizeof text))
        found = hg_conf_upstream_find(process->effective, text);
    if (found == HG_CONF_NO_UPSTREAM) {
        hg_job_fail(job, HG_STATUS_KEY_ENOENT, "there is no upstream of this name");
        return false;
    }
    enum hg_conf_kind kind = process->effective->upstreams[found].kind;
    const struct hg_conf_option *row = hg_conf_option_find(HG_CONF_SCOPE_UPSTREAM, option);
    if (row == NULL || (row->for_kinds & 1u << kind) != 0 || job->value.len == 0)
        return true; /* what is not set may be taken back all the same */
    hg_job_fail(job, HG_STATUS_EINVAL, "'%s' has no meaning for an upstream of kind %s", option,
                hg_conf_kind_name(kind));
    return false;
}

static int set_option(struct hg_state *state, const struct param *param, const char *option,
                      const char *text, struct hg_conf_why *why)
{
    switch (param->scope) {
    case HG_CONF_SCOPE_TENANT:
        return hg_state_set_option(state, param->name, option, text, why);
    case HG_CONF_SCOPE_UPSTREAM:
        return hg_state_set_upstream_option(state, param->name, option, text, why);
    default:
        return hg_state_set_node_option(state, option, text, why);
    }
}

static void set_text_param(struct hg_process *process, struct hg_job *job,
                           const struct param *param)
{
    char option[64], text[256];
    struct hg_conf_why why;
    if (param->scope == HG_CONF_SCOPE_TENANT &&
        hg_admin_find_tenant(process, job, param->name) == NULL)
        return;
    if (!copy_text(param->option, option, sizeof option))
        option[0] = '\0'; /* longer than any */
    if (param->scope == HG_CONF_SCOPE_UPSTREAM && !may_upstream(process, job, param->name, option))
        return;
    if (!copy_text(job->value, text, sizeof text)) {
        hg_job_fail(job, HG_STATUS_EINVAL, "the value has a zero byte or is too long");
        return;
    }
    struct hg_state *state = hg_admin_copy_state(process, job);
    if (state == NULL)
        return;
    int rc = set_option(state, param, option, text, &why);
    if (rc != -EINVAL) {
        hg_admin_finish(process, job, state, rc, NULL);
        return;
    }
    hg_job_fail(job, HG_STATUS_EINVAL, "%s", why.text);
    hg_state_free(state);
}

/* HEAD, NAME, a dot, OPTION: a name may contain dots, an option may not. */
static bool split_path(const char *head, struct hg_span path, struct hg_span *ret_name,
                       struct hg_span *ret_option)
{
    size_t head_len = strlen(head);
    if (path.len <= head_len || memcmp(path.at, head, head_len) != 0)
        return false;
    size_t dot = path.len;
    while (dot > head_len && path.at[dot - 1] != '.')
        dot--;
    if (dot <= head_len + 1)
        return false;
    *ret_name = hg_span(path.at + head_len, dot - 1 - head_len);
    *ret_option = hg_span(path.at + dot, path.len - dot);
    return true;
}

static struct param param_of(struct hg_span path)
{
    struct param param = {HG_CONF_SCOPE_SERVER, HG_SPAN_NONE, path};
    if (split_path("tenant.", path, &param.name, &param.option))
        param.scope = HG_CONF_SCOPE_TENANT;
    else if (split_path("upstream.", path, &param.name, &param.option))
        param.scope = HG_CONF_SCOPE_UPSTREAM;
    return param;
}

static bool is_limit_of_node(struct hg_span path)
{
    return hg_span_is(path, "node_capacity") ||
           hg_span_is(path, "default_throttle_reserved_units") ||
           hg_span_is(path, "default_throttle_hard_limit");
}

static bool is_text_of_node(struct hg_span path)
{
    char option[64];
    return copy_text(path, option, sizeof option) && hg_state_sets_node_option(option);
}

static void refuse_param(struct hg_job *job)
{
    char node[700];
    hg_state_list_node_options(node, sizeof node);
    hg_job_fail(job, HG_STATUS_EINVAL,
                "this option cannot be set at run time (accepted: node_capacity, "
                "default_throttle_reserved_units, default_throttle_hard_limit, %s, "
                "server.drain, upstream.NAME.OPTION and tenant.NAME.OPTION, whose options are told "
                "when one is wrong)",
                node);
}

/* The end, as SIGTERM begins it. */
static void drain(struct hg_process *process, struct hg_job *job)
{
    if (!hg_span_is(job->value, "true")) {
        hg_job_fail(job, HG_STATUS_EINVAL, "server.drain takes no such value (accepted: true)");
        return;
    }
    hg_log_info("admin=%s msg=\"asked to drain and end\"",
                job->user_name[0] != '\0' ? job->user_name : "anonymous");
    hg_process_ask_drain(process);
}

void hg_admin_set_param(struct hg_process *process, struct hg_job *job)
{
    const struct param param = param_of(job->key);
    struct hg_state_units units;
    bool of_tenant = param.scope == HG_CONF_SCOPE_TENANT;
    /* Who manages a tenant's limits does not open what the operator has closed. */
    bool of_manager = of_tenant && !hg_span_is(param.option, "state");
    bool manages = of_manager && hg_rights_have(hg_rights_in(job, param.name),
                                                HG_PRIVILEGE_BUCKET_THROTTLE_MANAGEMENT);
    if (!manages && !hg_rights_have(hg_rights_of_node(job), HG_PRIVILEGE_NODE_SUPERVISOR))
        hg_job_fail(job, HG_STATUS_EACCESS, "the privilege %sNodeSupervisor is needed for this",
                    of_manager ? "BucketThrottleManagement in this bucket or " : "");
    else if (hg_span_is(job->key, "server.drain"))
        drain(process, job);
    else if (param.scope != HG_CONF_SCOPE_SERVER || is_text_of_node(job->key))
        set_text_param(process, job, &param);
    else if (!is_limit_of_node(job->key))
        refuse_param(job);
    else if (parse_units(job->value, &units))
        set_node_param(process, job, &units);
    else
        hg_job_fail(job, HG_STATUS_EINVAL,
                    "the value is not units/s (accepted: 0 to 1000000000000, unlimited, or "
                    "nothing for the file's)");
}
