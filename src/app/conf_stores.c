// conf_stores - the rules about upstreams, and about logging in to their servers
// SPDX-License-Identifier: BSD-3-Clause
#include "app/conf_build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/file.h"
#include "back/ring.h"

#define ERROR HG_CONF_ERROR
#define WARN  HG_CONF_WARN

/* ---- servers ---- */

static void check_server(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                         size_t index, struct hg_conf_errors *errs)
{
    const struct hg_conf_upstream_server *server = &upstream->servers[index];
    unsigned at = server->lines[HG_CONF_UPSTREAM_SERVER_address];
    if (!server->address.is_unix && server->address.port == 0)
        ERROR(conf, at, "port 0 in server '%s' (accepted: 1 to 65535)", server->address.text);
    for (size_t i = 0; i < index; i++)
        if (strcmp(server->address.text, upstream->servers[i].address.text) == 0)
            ERROR(conf, at, "repeated server '%s' of upstream '%s' (accepted: once)",
                  server->address.text, upstream->name);
    if (upstream->kind == HG_CONF_KIND_REDIS_CLUSTER && server->address.is_unix)
        ERROR(conf, at,
              "unix socket '%s' as server of upstream '%s' (accepted: HOST:PORT, [IPV6]:PORT; the "
              "servers of a cluster name each other so)",
              server->address.text, upstream->name);
    if (upstream->kind != HG_CONF_KIND_MEMCACHED && server->lines[HG_CONF_UPSTREAM_SERVER_weight])
        ERROR(conf, server->lines[HG_CONF_UPSTREAM_SERVER_weight],
              "'weight' has no effect on server '%s' of upstream '%s' of kind %s%s",
              server->address.text, upstream->name, hg_conf_kind_name(upstream->kind),
              upstream->kind == HG_CONF_KIND_REDIS_CLUSTER
                  ? ", where the servers' slots say which keys they have"
                  : "");
    else if (server->weight != 1 && upstream->ring == HG_CONF_RING_MODULA)
        WARN(conf, at, "weight of server '%s' has no effect with ring modula",
             server->address.text);
}

/* ---- logins ---- */

/* What an upstream or a tenant says of whom it logs in as. */
struct login {
    const char *user, *password, *file;
    unsigned user_line, password_line, file_line;
    const char *names[3]; /* of the options: user, password, its file */
    char whose[160];
};

static struct login login_of_upstream(const struct hg_conf_upstream *upstream)
{
    struct login login = {.user = upstream->user,
                          .password = upstream->password,
                          .file = upstream->password_file,
                          .user_line = upstream->lines[HG_CONF_UPSTREAM_user],
                          .password_line = upstream->lines[HG_CONF_UPSTREAM_password],
                          .file_line = upstream->lines[HG_CONF_UPSTREAM_password_file],
                          .names = {"user", "password", "password_file"}};
    snprintf(login.whose, sizeof login.whose, "upstream '%s'", upstream->name);
    return login;
}

static struct login login_of_tenant(const struct hg_conf_tenant *tenant)
{
    struct login login = {.user = tenant->backend_user,
                          .password = tenant->backend_password,
                          .file = tenant->backend_password_file,
                          .user_line = tenant->lines[HG_CONF_TENANT_backend_user],
                          .password_line = tenant->lines[HG_CONF_TENANT_backend_password],
                          .file_line = tenant->lines[HG_CONF_TENANT_backend_password_file],
                          .names = {"backend_user", "backend_password", "backend_password_file"}};
    snprintf(login.whose, sizeof login.whose, "tenant '%s'", tenant->name);
    return login;
}

static void check_login(const struct hg_conf *conf, const struct login *login,
                        enum hg_conf_kind kind, struct hg_conf_errors *errs)
{
    bool has_password = login->password[0] || login->file[0];
    if (login->file[0] && login->password_line)
        ERROR(conf, login->file_line, "'%s' given beside '%s' of %s (accepted: one of them)",
              login->names[2], login->names[1], login->whose);
    if (login->user[0] && !has_password)
        ERROR(conf, login->user_line,
              "'%s' of %s without a password (accepted: %s or %s beside it%s)", login->names[0],
              login->whose, login->names[1], login->names[2],
              kind == HG_CONF_KIND_MEMCACHED ? "" : "; any, for a user that Redis wants none from");
    if (kind == HG_CONF_KIND_MEMCACHED && has_password && !login->user[0])
        ERROR(conf, login->password_line ? login->password_line : login->file_line,
              "password of %s without a user (accepted: %s beside it)", login->whose,
              login->names[0]);
}

/* Options of a tenant that say nothing about its kind of upstream. */
static void check_meaning(const struct hg_conf *conf, const struct hg_conf_tenant *tenant,
                          struct hg_conf_errors *errs)
{
    static const enum hg_conf_tenant_option all[] = {
        HG_CONF_TENANT_backend_user, HG_CONF_TENANT_backend_password,
        HG_CONF_TENANT_backend_password_file, HG_CONF_TENANT_backend_database};
    const struct hg_conf_upstream *upstream = &conf->upstreams[tenant->upstream_index];
    for (size_t i = 0; i < HG_COUNT_OF(all); i++) {
        bool right = all[i] == HG_CONF_TENANT_backend_database
                         ? upstream->kind == HG_CONF_KIND_REDIS
                         : upstream->kind != HG_CONF_KIND_EMBEDDED;
        if (!right && tenant->lines[all[i]])
            ERROR(conf, tenant->lines[all[i]],
                  "'%s' has no effect on tenant '%s', whose upstream '%s' is of kind %s "
                  "(accepted: on %s)",
                  hg_conf_scopes[HG_CONF_SCOPE_TENANT].options[all[i]].name, tenant->name,
                  upstream->name, hg_conf_kind_name(upstream->kind),
                  all[i] == HG_CONF_TENANT_backend_database ? "redis"
                                                            : "memcached, redis, redis-cluster");
    }
    if (upstream->redis_layout == HG_CONF_LAYOUT_PLAIN && tenant->families_count)
        ERROR(conf, tenant->lines[HG_CONF_TENANT_families],
              "'families' has no effect on tenant '%s', whose upstream '%s' has redis_layout plain "
              "and so no tables (accepted: redis_layout item)",
              tenant->name, upstream->name);
}

void hg_conf_check_logins(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *tenant = &conf->tenants[i];
        if (tenant->disabled)
            continue;
        const struct hg_conf_upstream *upstream = &conf->upstreams[tenant->upstream_index];
        struct login login = login_of_tenant(tenant);
        check_meaning(conf, tenant, errs);
        if (upstream->kind != HG_CONF_KIND_EMBEDDED)
            check_login(conf, &login, upstream->kind, errs);
    }
}

/* ---- upstreams ---- */

static void check_redis(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                        struct hg_conf_errors *errs)
{
    if (upstream->kind == HG_CONF_KIND_REDIS && upstream->servers_count != 1)
        ERROR(conf, upstream->lines[HG_CONF_UPSTREAM_servers],
              "%zu servers of upstream '%s' of kind redis (accepted: one; redis-cluster has "
              "several)",
              upstream->servers_count, upstream->name);
    if (upstream->ranges == HG_CONF_RANGES_ON && upstream->redis_layout == HG_CONF_LAYOUT_PLAIN)
        ERROR(conf, upstream->lines[HG_CONF_UPSTREAM_ranges],
              "'ranges: on' of upstream '%s' with redis_layout plain, which has no tables "
              "(accepted: auto, off)",
              upstream->name);
}

static void check_ring(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                       struct hg_conf_errors *errs)
{
    if (upstream->kind == HG_CONF_KIND_MEMCACHED && upstream->ring != HG_CONF_RING_MODULA &&
        upstream->servers_count > HG_RING_SERVERS_MAX)
        ERROR(conf, upstream->lines[HG_CONF_UPSTREAM_servers],
              "%zu servers of upstream '%s' on ring %s (accepted: at most %d, or ring modula)",
              upstream->servers_count, upstream->name, hg_conf_ring_name(upstream->ring),
              HG_RING_SERVERS_MAX);
}

void hg_conf_check_upstreams(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        const struct hg_conf_upstream *upstream = &conf->upstreams[i];
        unsigned line = upstream->lines[HG_CONF_UPSTREAM_name];
        if (upstream->kind == HG_CONF_KIND_EMBEDDED) {
            if (upstream->name[0] == '.')
                ERROR(conf, line, "upstream '%s' cannot name a file (accepted: no dot in front)",
                      upstream->name);
            continue;
        }
        struct login login = login_of_upstream(upstream);
        for (size_t j = 0; j < upstream->servers_count; j++)
            check_server(conf, upstream, j, errs);
        check_redis(conf, upstream, errs);
        check_ring(conf, upstream, errs);
        hg_conf_check_uptls(conf, upstream, errs);
        check_login(conf, &login, upstream->kind, errs);
        if (upstream->hash == HG_CONF_HASH_CRC && upstream->ring != HG_CONF_RING_MODULA &&
            upstream->servers_count > 1)
            WARN(conf,
                 upstream->lines[HG_CONF_UPSTREAM_hash] ? upstream->lines[HG_CONF_UPSTREAM_hash]
                                                        : line,
                 "hash crc has 15 bits: with ring %s all keys of upstream '%s' go to one server",
                 hg_conf_ring_name(upstream->ring), upstream->name);
        if (upstream->backend_timeout_ms > conf->request_deadline_ms)
            WARN(conf, line,
                 "backend_timeout_ms %" PRIu64
                 " of upstream '%s' is beyond request_deadline_ms %" PRIu64,
                 upstream->backend_timeout_ms, upstream->name, conf->request_deadline_ms);
    }
}

/* ---- two upstreams, one place ---- */

static size_t common_servers(const struct hg_conf_upstream *a, const struct hg_conf_upstream *b)
{
    size_t common = 0;
    for (size_t i = 0; i < a->servers_count; i++)
        for (size_t j = 0; j < b->servers_count; j++)
            common += strcmp(a->servers[i].address.text, b->servers[j].address.text) == 0;
    return common;
}

/* As far as the texts of the addresses tell. */
static bool are_same(const struct hg_conf_upstream *a, const struct hg_conf_upstream *b)
{
    if (a->kind != b->kind || a->kind == HG_CONF_KIND_EMBEDDED)
        return false;
    size_t common = common_servers(a, b);
    return a->kind == HG_CONF_KIND_MEMCACHED
               ? common == a->servers_count && common == b->servers_count
               : common > 0;
}

/* Have the upstreams tenants in one place whose keys can meet? */
static bool keys_meet(const struct hg_conf *conf, size_t a, size_t b)
{
    for (size_t i = 0; i < conf->tenants_count; i++) {
        const struct hg_conf_tenant *left = &conf->tenants[i];
        if (left->disabled || left->upstream_index != a)
            continue;
        for (size_t j = 0; j < conf->tenants_count; j++) {
            const struct hg_conf_tenant *right = &conf->tenants[j];
            if (!right->disabled && right->upstream_index == b &&
                hg_conf_tenant_database(conf, left) == hg_conf_tenant_database(conf, right) &&
                hg_conf_prefixes_overlap(left, right))
                return true;
        }
    }
    return false;
}

void hg_conf_check_twins(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    for (size_t j = 1; j < conf->upstreams_count; j++) {
        for (size_t i = 0; i < j; i++) {
            const struct hg_conf_upstream *a = &conf->upstreams[i], *b = &conf->upstreams[j];
            if (!are_same(a, b) || !keys_meet(conf, i, j))
                continue;
            WARN(conf, b->lines[HG_CONF_UPSTREAM_name],
                 "upstreams '%s' and '%s' are the same %s%s: their tenants have no prefixes "
                 "against each other, and a flush of one empties both",
                 a->name, b->name,
                 a->kind == HG_CONF_KIND_REDIS           ? "database of "
                 : a->kind == HG_CONF_KIND_REDIS_CLUSTER ? "cluster"
                                                         : "servers",
                 a->kind == HG_CONF_KIND_REDIS ? a->servers[0].address.text : "");
        }
    }
}

/* ---- passwords from files ---- */

/* One line, with or without an end. */
static int read_secret(const struct hg_conf *conf, const char *noun, const char *path,
                       unsigned line, char **field, struct hg_conf_errors *errs)
{
    char *text, *secret;
    size_t len;
    uint64_t max = hg_conf_scopes[HG_CONF_SCOPE_UPSTREAM].options[HG_CONF_UPSTREAM_password].max;
    int rc = hg_file_read(path, max + 2, &text, &len);
    if (rc && rc != -EFBIG) {
        ERROR(conf, line, "cannot read '%s': %s", path, strerror(-rc));
        return rc == -ENOMEM ? rc : -EINVAL;
    }
    if (!rc && len && text[len - 1] == '\n')
        len -= len > 1 && text[len - 2] == '\r' ? 2 : 1;
    if (rc || !len || len > max || memchr(text, '\n', len) || memchr(text, '\0', len)) {
        ERROR(conf, line, "no %s in '%s' (accepted: one line of 1 to %" PRIu64 " bytes)", noun,
              path, max);
        if (!rc)
            free(text);
        return -EINVAL;
    }
    secret = strndup(text, len);
    free(text);
    if (!secret)
        return -ENOMEM;
    free(*field);
    *field = secret;
    return 0;
}

int hg_conf_secrets_read(struct hg_conf *conf, struct hg_conf_errors *errs)
{
    int worst = 0;
    for (size_t i = 0; i < conf->upstreams_count && worst != -ENOMEM; i++) {
        struct hg_conf_upstream *upstream = &conf->upstreams[i];
        if (!upstream->password_file[0] || upstream->lines[HG_CONF_UPSTREAM_password])
            continue;
        int rc =
            read_secret(conf, "password", upstream->password_file,
                        upstream->lines[HG_CONF_UPSTREAM_password_file], &upstream->password, errs);
        worst = rc ? rc : worst;
    }
    for (size_t i = 0; i < conf->tenants_count && worst != -ENOMEM; i++) {
        struct hg_conf_tenant *tenant = &conf->tenants[i];
        if (!tenant->backend_password_file[0] || tenant->lines[HG_CONF_TENANT_backend_password])
            continue;
        int rc = read_secret(conf, "password", tenant->backend_password_file,
                             tenant->lines[HG_CONF_TENANT_backend_password_file],
                             &tenant->backend_password, errs);
        worst = rc ? rc : worst;
    }
    if (conf->admin_count && worst != -ENOMEM) {
        struct hg_conf_admin *admin = &conf->admin[0];
        int rc = 0;
        if (admin->token_file[0] && !admin->lines[HG_CONF_ADMIN_token])
            rc = read_secret(conf, "token", admin->token_file,
                             admin->lines[HG_CONF_ADMIN_token_file], &admin->token, errs);
        worst = rc ? rc : worst;
    }
    return worst;
}
