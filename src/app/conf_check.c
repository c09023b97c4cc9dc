// conf_check - what follows from the options, and the rules between them
// SPDX-License-Identifier: BSD-3-Clause
//
// hg_conf_resolve computes, hg_conf_check judges. Both also run on what hg_state_apply merged,
// where a value may come from an opcode and so from no line.
#include "app/conf_build.h"

#include "proto/tablemsg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX      250
#define FRAME_EXTRAS 1024 /* key, extras and some room, on top of a value */

#define ERROR HG_CONF_ERROR
#define WARN  HG_CONF_WARN

const char *hg_conf_place(const struct hg_conf *conf, unsigned line)
{
    return line && line != HG_CONF_BY_OPCODE && conf->file[0] ? conf->file : NULL;
}

static void upstream_names(const struct hg_conf *conf, char *ret, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < conf->upstreams_count && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%s", i ? ", " : "", conf->upstreams[i].name);
}

static int resolve_upstream(const struct hg_conf *conf, struct hg_conf_tenant *tenant,
                            struct hg_conf_errors *errs)
{
    unsigned line = tenant->lines[HG_CONF_TENANT_upstream];
    char names[400];
    if (tenant->disabled) {
        tenant->upstream_index = HG_CONF_NO_UPSTREAM;
        return 0;
    }
    upstream_names(conf, names, sizeof names);
    if (tenant->upstream[0]) {
        tenant->upstream_index = hg_conf_upstream_find(conf, tenant->upstream);
        if (tenant->upstream_index != HG_CONF_NO_UPSTREAM)
            return 0;
        ERROR(conf, line, "unknown upstream '%s' of tenant '%s' (accepted: %s)", tenant->upstream,
              tenant->name, names);
        return -EINVAL;
    }
    tenant->upstream_index = 0;
    if (conf->upstreams_count == 1)
        return 0;
    line = tenant->lines[HG_CONF_TENANT_name];
    ERROR(conf, line, "no upstream for tenant '%s', and there are %zu (accepted: %s)", tenant->name,
          conf->upstreams_count, names);
    return -EINVAL;
}

/* Towards an embedded store a tenant is part of the key as such. Who was made by an opcode always
   has a prefix, so that nobody's keys move when another one comes or goes. */
static char *prefix_of(const struct hg_conf *conf, const struct hg_conf_tenant *tenant)
{
    char *prefix;
    if (tenant->disabled)
        return strdup(tenant->key_prefix);
    const struct hg_conf_upstream *upstream = &conf->upstreams[tenant->upstream_index];
    if (upstream->kind == HG_CONF_KIND_EMBEDDED)
        return strdup("");
    if (tenant->lines[HG_CONF_TENANT_key_prefix])
        return strdup(tenant->key_prefix);
    if (tenant->neighbours == 0 && !tenant->by_opcode)
        return strdup("");
    return asprintf(&prefix, "%s:", tenant->name) < 0 ? NULL : prefix;
}

/* Where a tenant's keys lie: on a redis upstream each database is a place of its own. */
struct place {
    size_t upstream;
    uint64_t database;
    struct hg_conf_tenant *tenant;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->upstream != right->upstream)
        return left->upstream < right->upstream ? -1 : 1;
    return (left->database > right->database) - (left->database < right->database);
}

uint64_t hg_conf_tenant_database(const struct hg_conf *conf, const struct hg_conf_tenant *tenant)
{
    if (tenant->upstream_index == HG_CONF_NO_UPSTREAM)
        return 0;
    return tenant->lines[HG_CONF_TENANT_backend_database]
               ? tenant->backend_database
               : conf->upstreams[tenant->upstream_index].database;
}

static int count_neighbours(struct hg_conf *conf)
{
    struct place *places = calloc(conf->tenants_count + 1, sizeof *places);
    size_t count = 0, from = 0;
    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < conf->tenants_count; i++) {
        struct hg_conf_tenant *tenant = &conf->tenants[i];
        tenant->neighbours = 0;
        if (!tenant->disabled)
            places[count++] = (struct place){tenant->upstream_index,
                                             hg_conf_tenant_database(conf, tenant), tenant};
    }
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 1; i <= count; i++) {
        if (i < count && compare_places(&places[from], &places[i]) == 0)
            continue;
        for (size_t j = from; j < i; j++)
            places[j].tenant->neighbours = i - from - 1;
        from = i;
    }
    free(places);
    return 0;
}

static int resolve_tenants(struct hg_conf *conf, struct hg_conf_errors *errs)
{
    int rc = 0;
    for (size_t i = 0; i < conf->tenants_count; i++) {
        struct hg_conf_tenant *tenant = &conf->tenants[i];
        if (resolve_upstream(conf, tenant, errs) != 0)
            rc = -EINVAL;
        if (!tenant->lines[HG_CONF_TENANT_reserved])
            tenant->reserved = conf->default_throttle_reserved_units;
        if (!tenant->lines[HG_CONF_TENANT_hard_limit])
            tenant->hard_limit = conf->default_throttle_hard_limit;
    }
    if (!rc)
        rc = count_neighbours(conf);
    for (size_t i = 0; !rc && i < conf->tenants_count; i++) {
        struct hg_conf_tenant *tenant = &conf->tenants[i];
        if (!tenant->effective_prefix && !(tenant->effective_prefix = prefix_of(conf, tenant)))
            rc = -ENOMEM;
    }
    return rc;
}

int hg_conf_resolve(struct hg_conf *conf, struct hg_conf_errors *errs)
{
    if (!conf->state_path) {
        int n = conf->state_file[0] ? asprintf(&conf->state_path, "%s", conf->state_file)
                                    : asprintf(&conf->state_path, "%s/state.json", conf->data_dir);
        if (n < 0) {
            conf->state_path = NULL;
            return -ENOMEM;
        }
    }
    int rc = hg_conf_compat_apply(conf);
    return rc ? rc : resolve_tenants(conf, errs);
}

static void check_tls(const struct hg_conf *conf, const struct hg_conf_listen *listen,
                      struct hg_conf_errors *errs)
{
    const struct hg_conf_listen_tls *tls = listen->tls;
    bool asks = tls->client_auth != HG_CONF_CLIENT_AUTH_NONE;
    const char *where = listen->address.text;
    if (asks && !tls->client_ca[0])
        ERROR(conf, tls->lines[HG_CONF_LISTEN_TLS_client_auth],
              "'client_auth' of listener '%s' needs 'client_ca', the file of the authorities whose "
              "certificates are accepted",
              where);
    if (!asks && tls->client_ca[0])
        WARN(conf, tls->lines[HG_CONF_LISTEN_TLS_client_ca],
             "'client_ca' has no effect on listener '%s', whose 'client_auth' is none", where);
    if (tls->client_user == HG_CONF_CLIENT_USER_NONE)
        return;
    if (!asks)
        ERROR(conf, tls->lines[HG_CONF_LISTEN_TLS_client_user],
              "'client_user' of listener '%s' needs 'client_auth' (accepted: optional, required)",
              where);
    if (!conf->users_file[0])
        ERROR(conf, tls->lines[HG_CONF_LISTEN_TLS_client_user],
              "'client_user' of listener '%s' needs a users_file, which lists the users", where);
}

static void check_listeners(const struct hg_conf *conf, bool insecure, struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < conf->listen_count; i++) {
        const struct hg_conf_listen *listen = &conf->listen[i];
        unsigned line = listen->lines[HG_CONF_LISTEN_address];
        for (size_t j = 0; j < i; j++)
            if (strcmp(listen->address.text, conf->listen[j].address.text) == 0 &&
                (listen->address.is_unix || listen->address.port))
                ERROR(conf, line, "repeated listener '%s' (accepted: once)", listen->address.text);
        if (listen->lines[HG_CONF_LISTEN_mode] && !listen->address.is_unix)
            ERROR(conf, listen->lines[HG_CONF_LISTEN_mode],
                  "'mode' has no effect on listener '%s' (accepted: on unix sockets)",
                  listen->address.text);
        if (listen->tls_count > 0)
            check_tls(conf, listen, errs);
        if (conf->users_file[0] || hg_conf_address_is_local(&listen->address))
            continue;
        if (insecure)
            WARN(conf, line, "listener '%s' lets everybody do everything, without a login",
                 listen->address.text);
        else
            ERROR(conf, line,
                  "listener '%s' would let everybody do everything (accepted: a users_file, or "
                  "loopback and unix sockets, or --insecure)",
                  listen->address.text);
    }
}

struct named {
    const char *name;
    unsigned line;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->line > right->line) - (left->line < right->line);
}

static void check_unique(const struct hg_conf *conf, const char *noun, struct named *named,
                         size_t count, struct hg_conf_errors *errs)
{
    qsort(named, count, sizeof *named, compare_named);
    for (size_t i = 1; i < count; i++)
        if (strcmp(named[i - 1].name, named[i].name) == 0)
            ERROR(conf, named[i].line, "repeated %s '%s' (accepted: once, and it is in line %u)",
                  noun, named[i].name, named[i - 1].line);
}

static int check_names(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    size_t count =
        conf->tenants_count > conf->upstreams_count ? conf->tenants_count : conf->upstreams_count;
    struct named *named = calloc(count + 1, sizeof *named);
    if (!named)
        return -ENOMEM;
    for (size_t i = 0; i < conf->upstreams_count; i++)
        named[i] = (struct named){conf->upstreams[i].name,
                                  conf->upstreams[i].lines[HG_CONF_UPSTREAM_name]};
    check_unique(conf, "upstream", named, conf->upstreams_count, errs);
    for (size_t i = 0; i < conf->tenants_count; i++)
        named[i] =
            (struct named){conf->tenants[i].name, conf->tenants[i].lines[HG_CONF_TENANT_name]};
    check_unique(conf, "tenant", named, conf->tenants_count, errs);
    free(named);
    return 0;
}

static void check_server(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    unsigned line = conf->lines[HG_CONF_SERVER_throttle_max_wait_ms];
    if (conf->throttle_max_wait_ms > conf->request_deadline_ms)
        ERROR(conf, line ? line : conf->lines[HG_CONF_SERVER_request_deadline_ms],
              "throttle_max_wait_ms '%" PRIu64
              "' exceeds request_deadline_ms (accepted: 0 to %" PRIu64 ")",
              conf->throttle_max_wait_ms, conf->request_deadline_ms);
    line = conf->lines[HG_CONF_SERVER_max_value_bytes];
    if (conf->max_value_bytes + FRAME_EXTRAS > conf->max_frame_bytes)
        ERROR(conf, line ? line : conf->lines[HG_CONF_SERVER_max_frame_bytes],
              "max_value_bytes '%" PRIu64 "' does not fit into max_frame_bytes '%" PRIu64
              "' (accepted: at least %d less)",
              conf->max_value_bytes, conf->max_frame_bytes, FRAME_EXTRAS);
}

/* One key space for two tenants is allowed, but seldom meant. */
static void check_prefixes(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *tenant = &conf->tenants[i];
        unsigned line = tenant->lines[HG_CONF_TENANT_key_prefix];
        if (tenant->disabled)
            continue;
        if (line && conf->upstreams[tenant->upstream_index].kind == HG_CONF_KIND_EMBEDDED) {
            ERROR(conf, line,
                  "'key_prefix' has no effect on tenant '%s', whose upstream '%s' is embedded and "
                  "keeps tenants apart anyway",
                  tenant->name, conf->upstreams[tenant->upstream_index].name);
            continue;
        }
        size_t len = strlen(tenant->effective_prefix);
        enum hg_conf_kind kind = conf->upstreams[tenant->upstream_index].kind;
        if (strchr(tenant->effective_prefix, '{') && kind == HG_CONF_KIND_REDIS_CLUSTER)
            WARN(conf, line,
                 "key prefix '%s' of tenant '%s' has a brace: what stands in braces is all that "
                 "the cluster looks at to place a key, so the keys may go to one server",
                 tenant->effective_prefix, tenant->name);
        if (len && kind == HG_CONF_KIND_MEMCACHED)
            WARN(conf, line ? line : tenant->lines[HG_CONF_TENANT_name],
                 "key prefix '%s' of tenant '%s' leaves %zu bytes for a key; longer keys are "
                 "answered "
                 "0x04",
                 tenant->effective_prefix, tenant->name, KEY_MAX - len);
    }
}

static bool is_prefix(const char *of, const char *text)
{
    return strncmp(of, text, strlen(of)) == 0;
}

bool hg_conf_prefixes_overlap(const struct hg_conf_tenant *a, const struct hg_conf_tenant *b)
{
    return is_prefix(a->effective_prefix, b->effective_prefix) ||
           is_prefix(b->effective_prefix, a->effective_prefix);
}

/* Only tenants with a prefix of their own choosing can collide; the default ones end in a colon,
   which no name has. */
static void check_overlaps(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *a = &conf->tenants[i];
        if (a->disabled || !a->lines[HG_CONF_TENANT_key_prefix] ||
            conf->upstreams[a->upstream_index].kind == HG_CONF_KIND_EMBEDDED)
            continue;
        for (size_t j = 0; j < conf->tenants_count; j++) {
            const struct hg_conf_tenant *b = &conf->tenants[j];
            bool told = j < i && b->lines[HG_CONF_TENANT_key_prefix];
            if (i == j || told || b->disabled || a->upstream_index != b->upstream_index ||
                hg_conf_tenant_database(conf, a) != hg_conf_tenant_database(conf, b))
                continue;
            if (hg_conf_prefixes_overlap(a, b))
                WARN(conf, a->lines[HG_CONF_TENANT_key_prefix],
                     "tenants '%s' and '%s' share keys: prefix '%s' and '%s' overlap", a->name,
                     b->name, a->effective_prefix, b->effective_prefix);
        }
    }
}

static void units_text(uint64_t units, char ret[24])
{
    if (units == HG_CONF_UNLIMITED)
        strcpy(ret, "unlimited");
    else
        snprintf(ret, 24, "%" PRIu64, units);
}

static void check_pair(const struct hg_conf *conf, unsigned line, const char *whose,
                       const char *reserved_name, uint64_t reserved, const char *limit_name,
                       uint64_t limit, struct hg_conf_errors *errs)
{
    char r[24], l[24];
    if (reserved <= limit)
        return;
    units_text(reserved, r);
    units_text(limit, l);
    ERROR(conf, line, "%s '%s'%s exceeds %s (accepted: 0 to %s)", reserved_name, r, whose,
          limit_name, l);
}

static void check_limits(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    uint64_t sum = 0;
    unsigned line = conf->lines[HG_CONF_SERVER_default_throttle_reserved_units];
    check_pair(conf, line ? line : conf->lines[HG_CONF_SERVER_default_throttle_hard_limit], "",
               "default_throttle_reserved_units", conf->default_throttle_reserved_units,
               "default_throttle_hard_limit", conf->default_throttle_hard_limit, errs);
    for (size_t i = 0; i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *tenant = &conf->tenants[i];
        char whose[120];
        snprintf(whose, sizeof whose, " of tenant '%s'", tenant->name);
        line = tenant->lines[HG_CONF_TENANT_reserved];
        if (!line)
            line = tenant->lines[HG_CONF_TENANT_hard_limit];
        if (line) /* both inherited: said once, above */
            check_pair(conf, line, whose, "reserved", tenant->reserved, "hard_limit",
                       tenant->hard_limit, errs);
        if (tenant->reserved != HG_CONF_UNLIMITED && !tenant->disabled &&
            __builtin_add_overflow(sum, tenant->reserved, &sum))
            sum = HG_CONF_UNLIMITED;
    }
    if (conf->node_capacity != HG_CONF_UNLIMITED && sum > conf->node_capacity)
        WARN(conf, conf->lines[HG_CONF_SERVER_node_capacity],
             "reservations of %" PRIu64 " units/s exceed node_capacity %" PRIu64
             ": all are honoured, and nothing is left for the free pool",
             sum, conf->node_capacity);
}

static int compare_families(const void *a, const void *b)
{
    const struct hg_conf_family *left = *(const struct hg_conf_family *const *)a;
    const struct hg_conf_family *right = *(const struct hg_conf_family *const *)b;
    int order = strcmp(left->table, right->table);
    if (order == 0)
        order = strcmp(left->name, right->name);
    /* Of two of a name, the one that comes first. */
    return order != 0 ? order : (left > right) - (left < right);
}

static int check_families(const struct hg_conf *conf, const struct hg_conf_tenant *tenant,
                          struct hg_conf_errors *errs)
{
    size_t count = tenant->families_count;
    const struct hg_conf_family **sorted = calloc(count + 1, sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct hg_conf_family *family = &tenant->families[i];
        sorted[i] = family;
        if (!hg_tablemsg_family_right(hg_span_str(family->name)))
            ERROR(conf, family->lines[HG_CONF_FAMILY_name],
                  "bad family '%s' of table '%s' of tenant '%s' (accepted: 1 to 250 bytes without "
                  "a colon)",
                  family->name, family->table, tenant->name);
    }
    qsort(sorted, count, sizeof *sorted, compare_families);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->table, sorted[i]->table) == 0 &&
            strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            ERROR(conf, sorted[i]->lines[HG_CONF_FAMILY_name],
                  "repeated family '%s' of table '%s' of tenant '%s' (accepted: once)",
                  sorted[i]->name, sorted[i]->table, tenant->name);
    free(sorted);
    return 0;
}

static size_t faults(const struct hg_conf_errors *errs)
{
    return errs->error_count + errs->errors_left_out;
}

int hg_conf_check_tenants(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    size_t before = faults(errs);
    hg_conf_check_logins(conf, errs);
    check_prefixes(conf, errs);
    check_overlaps(conf, errs);
    hg_conf_check_twins(conf, errs);
    hg_conf_check_tickets(conf, errs);
    check_limits(conf, errs);
    for (size_t i = 0; i < conf->tenants_count; i++)
        if (check_families(conf, &conf->tenants[i], errs) != 0)
            return -ENOMEM;
    return faults(errs) > before ? -EINVAL : 0;
}

int hg_conf_check(const struct hg_conf *conf, bool insecure, struct hg_conf_errors *errs)
{
    size_t before = faults(errs);
    check_server(conf, errs);
    check_listeners(conf, insecure, errs);
    hg_conf_check_admin(conf, errs);
    int rc = check_names(conf, errs);
    if (rc)
        return rc;
    hg_conf_check_upstreams(conf, errs);
    rc = hg_conf_check_tenants(conf, errs);
    return faults(errs) > before ? -EINVAL : rc;
}
