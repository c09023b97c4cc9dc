// conf_table - the rows of conf.def as data, and finding one by name
// SPDX-License-Identifier: BSD-3-Clause
#include "app/conf_table.h"

#include <stdio.h>
#include <string.h>

#define WHEN_RUN   true
#define WHEN_START false
#define ROW(object, name, type, min, max, def, unit, when, kind, sentence)                         \
    {#name,                                                                                        \
     HG_CONF_TYPE_##type,                                                                          \
     offsetof(struct object, name),                                                                \
     min,                                                                                          \
     max,                                                                                          \
     def,                                                                                          \
     unit,                                                                                         \
     WHEN_##when,                                                                                  \
     HG_CONF_FOR_##kind,                                                                           \
     sentence},

static const struct hg_conf_option server_options[] = {
#define HG_SERVER(name, type, min, max, def, unit, when, sentence)                                 \
    ROW(hg_conf, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option listen_options[] = {
#define HG_LISTEN(name, type, min, max, def, unit, when, sentence)                                 \
    ROW(hg_conf_listen, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option upstream_options[] = {
#define HG_UPSTREAM(name, type, min, max, def, unit, when, kind, sentence)                         \
    ROW(hg_conf_upstream, name, type, min, max, def, unit, when, kind, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option upstream_server_options[] = {
#define HG_UPSTREAM_SERVER(name, type, min, max, def, unit, when, sentence)                        \
    ROW(hg_conf_upstream_server, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option tenant_options[] = {
#define HG_TENANT(name, type, min, max, def, unit, when, sentence)                                 \
    ROW(hg_conf_tenant, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option family_options[] = {
#define HG_FAMILY(name, type, min, max, def, unit, when, sentence)                                 \
    ROW(hg_conf_family, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option admin_options[] = {
#define HG_ADMIN(name, type, min, max, def, unit, when, sentence)                                  \
    ROW(hg_conf_admin, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option listen_tls_options[] = {
#define HG_LISTEN_TLS(name, type, min, max, def, unit, when, sentence)                             \
    ROW(hg_conf_listen_tls, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

static const struct hg_conf_option upstream_tls_options[] = {
#define HG_UPSTREAM_TLS(name, type, min, max, def, unit, when, sentence)                           \
    ROW(hg_conf_upstream_tls, name, type, min, max, def, unit, when, ANY, sentence)
#include "app/conf.def"
};

#define SCOPE(noun, place, rows, object)                                                           \
    {                                                                                              \
        noun, place, rows, HG_COUNT_OF(rows), sizeof(struct object),                               \
            offsetof(struct object, lines)                                                         \
    }

const struct hg_conf_scope_info hg_conf_scopes[HG_CONF_SCOPE_COUNT] = {
    [HG_CONF_SCOPE_SERVER] = SCOPE("server", "", server_options, hg_conf),
    [HG_CONF_SCOPE_LISTEN] = SCOPE("listener", "listen", listen_options, hg_conf_listen),
    [HG_CONF_SCOPE_UPSTREAM] = SCOPE("upstream", "upstreams", upstream_options, hg_conf_upstream),
    [HG_CONF_SCOPE_UPSTREAM_SERVER] =
        SCOPE("server of an upstream", "servers", upstream_server_options, hg_conf_upstream_server),
    [HG_CONF_SCOPE_TENANT] = SCOPE("tenant", "tenants", tenant_options, hg_conf_tenant),
    [HG_CONF_SCOPE_FAMILY] = SCOPE("family", "families", family_options, hg_conf_family),
    [HG_CONF_SCOPE_ADMIN] = SCOPE("admin", "admin", admin_options, hg_conf_admin),
    [HG_CONF_SCOPE_LISTEN_TLS] =
        SCOPE("tls of a listener", "tls", listen_tls_options, hg_conf_listen_tls),
    [HG_CONF_SCOPE_UPSTREAM_TLS] =
        SCOPE("tls of an upstream", "tls", upstream_tls_options, hg_conf_upstream_tls),
};

/* Where the count of a list lies: behind its pointer, by HG_CONF_FIELD_LISTENS and its like. */
_Static_assert(offsetof(struct hg_conf, listen_count) ==
                   offsetof(struct hg_conf, listen) + sizeof(void *),
               "a list's count follows its pointer");

const struct hg_conf_option *hg_conf_option_find(enum hg_conf_scope scope, const char *name)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    for (size_t i = 0; i < info->count; i++)
        if (strcmp(info->options[i].name, name) == 0)
            return &info->options[i];
    return NULL;
}

/* Levenshtein's distance; names beyond 63 bytes are nobody's typing error. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[64], a_len = strlen(a), b_len = strlen(b);
    if (a_len >= HG_COUNT_OF(row) || b_len >= HG_COUNT_OF(row))
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_len];
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t len = 0;
    while (a[len] != '\0' && a[len] == b[len])
        len++;
    return len;
}

/* Does one continue a name that the other abbreviates: backend_db, backend_database? Their last
   words begin alike, and most of the name is the same. */
static bool is_short_for(const char *name, size_t common)
{
    const char *word = strrchr(name, '_');
    return word && common > (size_t)(word + 1 - name) && common * 3 >= strlen(name) * 2;
}

/* What a tenant says of its own login is named after the backend: user, backend_user. */
static const char *backend_option(const struct hg_conf_scope_info *info, const char *name)
{
    static const char backend[] = "backend_";
    for (size_t i = 0; i < info->count; i++) {
        const char *option = info->options[i].name;
        if (strncmp(option, backend, sizeof backend - 1) == 0 &&
            strcmp(option + sizeof backend - 1, name) == 0)
            return option;
    }
    return NULL;
}

/* Of those that are near enough, the one that begins alike for longest, then the nearest. */
static const char *likely_meant(const struct hg_conf_scope_info *info, const char *name)
{
    const char *best = NULL;
    size_t best_common = 0, best_distance = 0, near = strlen(name) / 3 + 1;
    for (size_t i = 0; i < info->count; i++) {
        const char *option = info->options[i].name;
        size_t distance = edit_distance(name, option), common = common_prefix(name, option);
        if (distance > near && !is_short_for(name, common))
            continue;
        if (!best || common > best_common || (common == best_common && distance < best_distance)) {
            best = option;
            best_common = common;
            best_distance = distance;
        }
    }
    return best;
}

void hg_conf_option_unknown(enum hg_conf_scope scope, const char *name, struct hg_conf_why *why)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    const char *meant = backend_option(info, name);
    if (!meant)
        meant = likely_meant(info, name);
    int at = snprintf(why->text, sizeof why->text, "unknown option '%.80s'", name);
    if (meant)
        at += snprintf(why->text + at, sizeof why->text - (size_t)at, ", did you mean '%s'", meant);
    at += snprintf(why->text + at, sizeof why->text - (size_t)at, " (accepted: ");
    for (size_t i = 0; i < info->count; i++)
        at += snprintf(why->text + at, sizeof why->text - (size_t)at, "%s%s", i ? ", " : "",
                       info->options[i].name);
    snprintf(why->text + at, sizeof why->text - (size_t)at, ")");
}

const struct hg_conf_option *hg_conf_option_inherits(const struct hg_conf_option *option)
{
    if (option->type != HG_CONF_TYPE_UNITS || !option->default_text)
        return NULL;
    return hg_conf_option_find(HG_CONF_SCOPE_SERVER, option->default_text);
}

enum hg_conf_scope hg_conf_option_list(const struct hg_conf_option *option)
{
    switch (option->type) {
    case HG_CONF_TYPE_LISTENS:
        return HG_CONF_SCOPE_LISTEN;
    case HG_CONF_TYPE_UPSTREAMS:
        return HG_CONF_SCOPE_UPSTREAM;
    case HG_CONF_TYPE_SERVERS:
        return HG_CONF_SCOPE_UPSTREAM_SERVER;
    case HG_CONF_TYPE_TENANTS:
        return HG_CONF_SCOPE_TENANT;
    case HG_CONF_TYPE_FAMILIES:
        return HG_CONF_SCOPE_FAMILY;
    case HG_CONF_TYPE_ADMIN:
        return HG_CONF_SCOPE_ADMIN;
    case HG_CONF_TYPE_LISTEN_TLS:
        return HG_CONF_SCOPE_LISTEN_TLS;
    case HG_CONF_TYPE_UPSTREAM_TLS:
        return HG_CONF_SCOPE_UPSTREAM_TLS;
    default:
        return HG_CONF_SCOPE_COUNT;
    }
}

unsigned *hg_conf_option_line(enum hg_conf_scope scope, const struct hg_conf_option *option,
                              const void *object)
{
    const struct hg_conf_scope_info *info = &hg_conf_scopes[scope];
    return (unsigned *)((char *)object + info->lines_offset) + (option - info->options);
}

void *hg_conf_option_array(const struct hg_conf_option *option, const void *object,
                           size_t *ret_count)
{
    const char *field = (const char *)object + option->offset;
    void *array;
    memcpy(&array, field, sizeof array);
    memcpy(ret_count, field + sizeof array, sizeof *ret_count);
    return array;
}

void hg_conf_option_array_put(const struct hg_conf_option *option, void *object, void *array,
                              size_t count)
{
    char *field = (char *)object + option->offset;
    memcpy(field, &array, sizeof array);
    memcpy(field + sizeof array, &count, sizeof count);
}
