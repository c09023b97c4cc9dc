// uptlsconf - what the configuration says of TLS towards servers, as the stores want it
// SPDX-License-Identifier: BSD-3-Clause
#include "app/uptlsconf.h"

#include <stdio.h>

struct hg_uptls_conf hg_uptlsconf_of(const struct hg_conf_upstream_tls *tls)
{
    return (struct hg_uptls_conf){
        .tls = {.certificate = tls->certificate,
                .key = tls->key,
                .ca = tls->ca,
                .peer = tls->verify ? HG_TLS_PEER_REQUIRED : HG_TLS_PEER_IGNORED,
                .min_version =
                    tls->min_version == HG_CONF_TLS_VERSION_1_3 ? HG_TLS_1_3 : HG_TLS_1_2},
        .server_name = tls->server_name,
    };
}

int hg_uptlsconf_try(const struct hg_conf *conf, char why[512])
{
    char reason[HG_TLS_WHY_BYTES];
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        const struct hg_conf_upstream *upstream = &conf->upstreams[i];
        struct hg_tls_ctx *ctx;
        if (upstream->tls_count == 0)
            continue;
        const struct hg_uptls_conf uptls = hg_uptlsconf_of(upstream->tls);
        int rc = hg_tls_ctx_new(&uptls.tls, &ctx, reason);
        if (rc != 0) {
            snprintf(why, 512, "upstream '%s': %s", upstream->name, reason);
            return rc;
        }
        hg_tls_ctx_unref(ctx);
    }
    return 0;
}
