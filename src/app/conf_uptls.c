// conf_uptls - the rules about TLS towards the servers of an upstream
// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the files are there; what stands in them is seen when the upstream is opened.
#include "app/conf_build.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/file.h"

#define ERROR HG_CONF_ERROR
#define WARN  HG_CONF_WARN

#define FILE_MAX_BYTES (16u << 20) /* all authorities of a system are a quarter of a megabyte */

/* A name as certificates have it, or the number of an address. */
static bool is_host(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-._:", *c) == NULL)
            return false;
    return true;
}

static void check_sockets(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                          struct hg_conf_errors *errs)
{
    for (size_t i = 0; i < upstream->servers_count; i++) {
        const struct hg_conf_upstream_server *server = &upstream->servers[i];
        if (server->address.is_unix)
            ERROR(conf, upstream->lines[HG_CONF_UPSTREAM_tls],
                  "'tls' of upstream '%s' beside the unix socket '%s' (accepted: HOST:PORT, "
                  "[IPV6]:PORT; on a unix socket neither memcached nor Redis speaks TLS)",
                  upstream->name, server->address.text);
    }
}

void hg_conf_check_uptls(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                         struct hg_conf_errors *errs)
{
    if (upstream->tls_count == 0)
        return;
    const struct hg_conf_upstream_tls *tls = upstream->tls;
    const unsigned *lines = tls->lines;
    check_sockets(conf, upstream, errs);
    if (tls->certificate[0] != '\0' && tls->key[0] == '\0')
        ERROR(conf, lines[HG_CONF_UPSTREAM_TLS_certificate],
              "'certificate' in tls of upstream '%s' without a key (accepted: key beside it)",
              upstream->name);
    if (tls->key[0] != '\0' && tls->certificate[0] == '\0')
        ERROR(conf, lines[HG_CONF_UPSTREAM_TLS_key],
              "'key' in tls of upstream '%s' without a certificate (accepted: certificate beside "
              "it)",
              upstream->name);
    if (!is_host(tls->server_name))
        ERROR(conf, lines[HG_CONF_UPSTREAM_TLS_server_name],
              "server_name '%s' in tls of upstream '%s' is none (accepted: a name or an address, "
              "without a port)",
              tls->server_name, upstream->name);
    if (tls->verify)
        return;
    WARN(conf, lines[HG_CONF_UPSTREAM_TLS_verify],
         "verify false: whoever is between here and the servers of upstream '%s' can read and "
         "change what is said (with verify true the certificate is checked)",
         upstream->name);
    if (tls->ca[0] != '\0')
        WARN(conf, lines[HG_CONF_UPSTREAM_TLS_ca],
             "'ca' in tls of upstream '%s' has no effect with verify false", upstream->name);
}

static int try_file(const struct hg_conf *conf, const char *path, unsigned line,
                    struct hg_conf_errors *errs)
{
    char *text;
    size_t len;
    if (path[0] == '\0')
        return 0;
    int rc = hg_file_read(path, FILE_MAX_BYTES, &text, &len);
    if (rc == 0) {
        memset(text, 0, len); /* perhaps a private key */
        free(text);
        return 0;
    }
    ERROR(conf, line, "cannot read '%s': %s", path, strerror(-rc));
    return rc == -ENOMEM ? rc : -EINVAL;
}

int hg_conf_uptls_read(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    int worst = 0;
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        const struct hg_conf_upstream *upstream = &conf->upstreams[i];
        if (upstream->tls_count == 0)
            continue;
        const struct hg_conf_upstream_tls *tls = upstream->tls;
        const char *const paths[] = {tls->ca, tls->certificate, tls->key};
        static const enum hg_conf_upstream_tls_option options[] = {
            HG_CONF_UPSTREAM_TLS_ca, HG_CONF_UPSTREAM_TLS_certificate, HG_CONF_UPSTREAM_TLS_key};
        for (size_t f = 0; f < HG_COUNT_OF(paths); f++) {
            int rc = try_file(conf, paths[f], tls->lines[options[f]], errs);
            worst = worst == -ENOMEM || rc == 0 ? worst : rc;
        }
    }
    return worst;
}
