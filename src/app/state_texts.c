// state_texts - options that opcodes set one by one, and that a state keeps as text
// SPDX-License-Identifier: BSD-3-Clause
//
// Each scope (the node, an upstream, a tenant) has its list. A text is checked by the option's row
// when it is set, and again when it is applied. Limits of credits are not among them: they are
// numbers, and go by opcodes of their own too.
#include "app/state_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/conf_build.h"
#include "app/strictjson.h"

static const unsigned server_kept[] = {
    HG_CONF_SERVER_log_level,
    HG_CONF_SERVER_max_connections,
    HG_CONF_SERVER_idle_timeout_s,
    HG_CONF_SERVER_request_deadline_ms,
    HG_CONF_SERVER_throttle_max_wait_ms,
    HG_CONF_SERVER_slow_request_ms,
    HG_CONF_SERVER_trace_sample,
    HG_CONF_SERVER_ingress_enabled,
    HG_CONF_SERVER_ingress_tickets,
    HG_CONF_SERVER_ingress_max_queue_depth,
    HG_CONF_SERVER_ingress_queue_timeout_ms,
    HG_CONF_SERVER_ingress_overload_wait_ms,
    HG_CONF_SERVER_compat_overload,
    HG_CONF_SERVER_bind_backlog_ms,
    HG_CONF_SERVER_bind_eviction_threshold_pct,
    HG_CONF_SERVER_bind_eviction_target_conn_pct,
    HG_CONF_SERVER_bind_eviction_decr_per_sec,
    HG_CONF_SERVER_eviction_min_age_ms,
    HG_CONF_SERVER_bind_evict_sent_writes,
};

static const unsigned upstream_kept[] = {
    HG_CONF_UPSTREAM_connect_timeout_ms,
    HG_CONF_UPSTREAM_backend_timeout_ms,
    HG_CONF_UPSTREAM_reconnect_max_ms,
    HG_CONF_UPSTREAM_pool_depth,
    HG_CONF_UPSTREAM_pool_max_connections,
    HG_CONF_UPSTREAM_pool_min_hold_ms,
    HG_CONF_UPSTREAM_pool_idle_timeout_s,
    HG_CONF_UPSTREAM_execution_control,
    HG_CONF_UPSTREAM_read_tickets,
    HG_CONF_UPSTREAM_write_tickets,
    HG_CONF_UPSTREAM_tickets_scope,
    HG_CONF_UPSTREAM_upstream_tickets,
    HG_CONF_UPSTREAM_execution_max_queue_depth,
    HG_CONF_UPSTREAM_queue_timeout_ms,
    HG_CONF_UPSTREAM_overload_wait_ms,
    HG_CONF_UPSTREAM_flood_wait_ms,
    HG_CONF_UPSTREAM_flood_order,
    HG_CONF_UPSTREAM_key_share_pct,
    HG_CONF_UPSTREAM_tenant_window,
    HG_CONF_UPSTREAM_bind_control,
    HG_CONF_UPSTREAM_bind_mended,
    HG_CONF_UPSTREAM_throughput_probing_interval_ms,
    HG_CONF_UPSTREAM_throughput_probing_initial_concurrency,
    HG_CONF_UPSTREAM_throughput_probing_min_concurrency,
    HG_CONF_UPSTREAM_throughput_probing_max_concurrency,
    HG_CONF_UPSTREAM_throughput_probing_read_write_ratio,
    HG_CONF_UPSTREAM_throughput_probing_concurrency_moving_average_weight,
    HG_CONF_UPSTREAM_throughput_probing_step_multiple,
    HG_CONF_UPSTREAM_slow_server_factor,
};

static const unsigned tenant_kept[] = {
    HG_CONF_TENANT_state,
    HG_CONF_TENANT_credit_mode,
    HG_CONF_TENANT_reject_status,
    HG_CONF_TENANT_max_connections,
    HG_CONF_TENANT_kv_hotkey_throttle_threshold,
    HG_CONF_TENANT_hotkey_mode,
    HG_CONF_TENANT_hotkey_control,
    HG_CONF_TENANT_hotkey_tracking,
    HG_CONF_TENANT_ticket_mode,
    HG_CONF_TENANT_fair_by,
    HG_CONF_TENANT_bind_mode,
    HG_CONF_TENANT_bind_min_bytes,
};

static const unsigned *kept_of(enum hg_conf_scope scope, size_t *ret_count)
{
    switch (scope) {
    case HG_CONF_SCOPE_SERVER:
        *ret_count = HG_COUNT_OF(server_kept);
        return server_kept;
    case HG_CONF_SCOPE_UPSTREAM:
        *ret_count = HG_COUNT_OF(upstream_kept);
        return upstream_kept;
    default:
        *ret_count = HG_COUNT_OF(tenant_kept);
        return tenant_kept;
    }
}

bool hg_state_keeps_text(enum hg_conf_scope scope, size_t option)
{
    size_t count;
    const unsigned *kept = kept_of(scope, &count);
    for (size_t i = 0; i < count; i++)
        if (kept[i] == option)
            return true;
    return false;
}

void hg_state_list_texts(enum hg_conf_scope scope, const char *head, char *ret, size_t size)
{
    size_t count, at = 0;
    const unsigned *kept = kept_of(scope, &count);
    for (size_t i = 0; i < count && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%s%s", i ? ", " : "", head,
                               hg_conf_scopes[scope].options[kept[i]].name);
}

size_t hg_state_find_text(enum hg_conf_scope scope, const char *option)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    const struct hg_conf_option *found = hg_conf_option_find(scope, option);
    size_t index = found ? (size_t)(found - info->options) : info->count;
    return hg_state_keeps_text(scope, index) ? index : info->count;
}

/* An object of the scope to try values in; NULL when memory is out. */
static void *new_object(enum hg_conf_scope scope)
{
    void *object = calloc(1, hg_conf_scopes[scope].object_size);
    if (object && hg_conf_object_init(scope, object) != 0) {
        hg_conf_object_fini(scope, object);
        free(object);
        return NULL;
    }
    return object;
}

static void free_object(enum hg_conf_scope scope, void *object)
{
    if (!object)
        return;
    hg_conf_object_fini(scope, object);
    free(object);
}

int hg_state_set_text(enum hg_conf_scope scope, char **texts, size_t option, const char *text,
                      struct hg_conf_why *why)
{
    char *copy = NULL;
    int rc = 0;
    if (text[0]) {
        void *tried = new_object(scope);
        rc = tried ? hg_conf_value_set(&hg_conf_scopes[scope].options[option], tried, text, why)
                   : -ENOMEM;
        free_object(scope, tried);
        if (!rc && !(copy = strdup(text)))
            rc = -ENOMEM;
    }
    if (rc)
        return rc;
    free(texts[option]);
    texts[option] = copy;
    return 0;
}

bool hg_state_has_texts(enum hg_conf_scope scope, char *const *texts)
{
    for (size_t i = 0; i < hg_conf_scopes[scope].count; i++)
        if (texts[i])
            return true;
    return false;
}

void hg_state_drop_texts(enum hg_conf_scope scope, char **texts)
{
    for (size_t i = 0; i < hg_conf_scopes[scope].count; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

bool hg_state_copy_texts(enum hg_conf_scope scope, char *const *from, char **to)
{
    for (size_t i = 0; i < hg_conf_scopes[scope].count; i++)
        if (from[i] && !(to[i] = strdup(from[i])))
            return false;
    return true;
}

/* ---- in the file ---- */

static int read_text(enum hg_conf_scope scope, void *tried, const char *name, const json_t *value,
                     char **texts, struct hg_conf_why *why)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    size_t index = hg_state_find_text(scope, name);
    if (index == info->count) {
        char list[1000];
        hg_state_list_texts(scope, "", list, sizeof list);
        hg_strictjson_unknown(name, list, why);
        return -EINVAL;
    }
    int rc = hg_strictjson_set(&info->options[index], tried, value, why);
    if (rc)
        return rc;
    free(texts[index]);
    texts[index] = hg_conf_value_text(&info->options[index], tried);
    return texts[index] ? 0 : -ENOMEM;
}

int hg_state_read_texts(enum hg_conf_scope scope, const json_t *object, const char *what,
                        char **texts, struct hg_conf_why *why)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        hg_strictjson_refuse(what, object, "an object", why);
        return -EINVAL;
    }
    void *tried = new_object(scope);
    int rc = tried ? 0 : -ENOMEM;
    json_object_foreach((json_t *)object, name, value)
    {
        if (!rc)
            rc = read_text(scope, tried, name, value, texts, why);
    }
    free_object(scope, tried);
    return rc;
}

json_t *hg_state_write_texts(enum hg_conf_scope scope, char *const *texts)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    struct hg_conf_why why;
    void *tried = new_object(scope);
    json_t *object = json_object();
    bool ok = tried && object;
    for (size_t i = 0; ok && i < info->count; i++)
        if (texts[i])
            ok = hg_conf_value_set(&info->options[i], tried, texts[i], &why) == 0 &&
                 json_object_set_new(object, info->options[i].name,
                                     hg_strictjson_get(&info->options[i], tried)) == 0;
    free_object(scope, tried);
    if (ok)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- in force ---- */

/* Texts were checked when they were set; one that does not fit any more says so. */
static int apply_text(const struct hg_conf *conf, enum hg_conf_scope scope, void *object,
                      const char *whose, size_t index, const char *text,
                      struct hg_conf_errors *errs)
{
    const struct hg_conf_option *option = &hg_conf_scopes[scope].options[index];
    unsigned *line = hg_conf_option_line(scope, option, object);
    struct hg_conf_why why;
    char *before = hg_conf_value_text(option, object), *after = NULL;
    int rc = before ? hg_conf_value_set(option, object, text, &why) : -ENOMEM;
    if (rc == -EINVAL)
        hg_conf_errors_add(errs, NULL, 0, "%s%s%s", why.text, whose[0] ? "," : "", whose);
    if (!rc && !(after = hg_conf_value_text(option, object)))
        rc = -ENOMEM;
    if (!rc && *line && *line != HG_CONF_BY_OPCODE && strcmp(before, after) != 0)
        HG_CONF_WARN(conf, *line, "'%s'%s was set by opcode, this line has no effect", option->name,
                     whose);
    free(before);
    free(after);
    *line = HG_CONF_BY_OPCODE;
    return rc;
}

int hg_state_apply_texts(const struct hg_conf *conf, enum hg_conf_scope scope, void *object,
                         const char *whose, char *const *texts, struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < hg_conf_scopes[scope].count; i++) {
        int rc = texts[i] ? apply_text(conf, scope, object, whose, i, texts[i], errs) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- upstreams ---- */

char **hg_state_upstream_texts(struct hg_state *state, const char *name, size_t len)
{
    for (size_t i = 0; i < state->upstream_count; i++)
        if (strlen(state->upstreams[i].name) == len &&
            memcmp(state->upstreams[i].name, name, len) == 0)
            return state->upstreams[i].texts;
    void *more =
        reallocarray(state->upstreams, state->upstream_count + 1, sizeof *state->upstreams);
    if (!more)
        return NULL;
    state->upstreams = more;
    struct hg_state_upstream *entry = &state->upstreams[state->upstream_count];
    *entry = (struct hg_state_upstream){.name = strndup(name, len)};
    if (!entry->name)
        return NULL;
    state->upstream_count++;
    return entry->texts;
}
