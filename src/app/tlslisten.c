// tlslisten - TLS of the listeners: certificates read at the start and with every reload
// SPDX-License-Identifier: BSD-3-Clause
#include "app/tlslisten.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "front/front.h"
#include "front/listener.h"

/* A certificate that ends within so long is warned of whenever it is read. */
#define SOON_S (14 * 86400)

struct entry {
    char *address;              /* as in the file */
    struct hg_tls_rules *rules; /* NULL: plain, or put in force */
    int64_t expires_s;
};

struct hg_tlsset {
    size_t count;
    struct entry entries[];
};

struct hg_tlslisten {
    struct hg_listeners *listeners;
    struct hg_handshakes *handshakes;
    _Atomic int64_t expires_s; /* the certificate that ends first */
    size_t count;
    struct entry entries[]; /* rules are the listeners'; NULL: plain */
};

/* ---- reading ---- */

static enum hg_client_user user_of(const struct hg_conf_listen_tls *tls)
{
    if (tls->client_user == HG_CONF_CLIENT_USER_NONE)
        return HG_CLIENT_USER_NONE;
    return tls->client_auth == HG_CONF_CLIENT_AUTH_REQUIRED ? HG_CLIENT_USER_REQUIRED
                                                            : HG_CLIENT_USER_OPTIONAL;
}

static enum hg_tls_peer peer_of(const struct hg_conf_listen_tls *tls)
{
    switch (tls->client_auth) {
    case HG_CONF_CLIENT_AUTH_REQUIRED:
        return HG_TLS_PEER_REQUIRED;
    case HG_CONF_CLIENT_AUTH_OPTIONAL:
        return HG_TLS_PEER_OPTIONAL;
    default:
        return HG_TLS_PEER_IGNORED;
    }
}

static void warn_of_end(const struct hg_conf_listen *listen, int64_t expires_s)
{
    int64_t left_s = expires_s - (int64_t)hg_wall_s();
    if (left_s <= 0)
        hg_log_warn("listen=%s certificate=\"%s\" msg=\"the certificate is valid no more\"",
                    listen->address.text, listen->tls->certificate);
    else if (left_s < SOON_S)
        hg_log_warn("listen=%s certificate=\"%s\" hours=%lld msg=\"the certificate ends soon\"",
                    listen->address.text, listen->tls->certificate, (long long)left_s / 3600);
}

static int load_one(const struct hg_conf_listen *listen, struct entry *entry, char why[512])
{
    struct hg_tls_ctx *ctx;
    char reason[HG_TLS_WHY_BYTES] = "";
    struct hg_tls_conf conf = {
        .is_server = true,
        .certificate = listen->tls->certificate,
        .key = listen->tls->key,
        .ca = listen->tls->client_ca,
        .peer = peer_of(listen->tls),
        .min_version =
            listen->tls->min_version == HG_CONF_TLS_VERSION_1_3 ? HG_TLS_1_3 : HG_TLS_1_2,
    };
    int rc = hg_tls_ctx_new(&conf, &ctx, reason);
    if (rc != 0) {
        snprintf(why, 512, "listener '%.200s': %s", listen->address.text, reason);
        return rc;
    }
    entry->expires_s = hg_tls_ctx_expires_s(ctx);
    entry->rules = hg_tls_rules_new(ctx, user_of(listen->tls));
    if (entry->rules == NULL) {
        hg_tls_ctx_unref(ctx);
        return -ENOMEM;
    }
    warn_of_end(listen, entry->expires_s);
    return 0;
}

int hg_tlsset_load(const struct hg_conf *conf, struct hg_tlsset **ret, char why[512])
{
    size_t bytes = sizeof(struct hg_tlsset) + conf->listen_count * sizeof(struct entry);
    struct hg_tlsset *set = calloc(1, bytes);
    snprintf(why, 512, "no memory is left");
    int rc = set != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < conf->listen_count; i++) {
        struct entry *entry = &set->entries[set->count++];
        entry->address = strdup(conf->listen[i].address.text);
        if (entry->address == NULL)
            rc = -ENOMEM;
        else if (conf->listen[i].tls_count > 0)
            rc = load_one(&conf->listen[i], entry, why);
    }
    if (rc != 0) {
        hg_tlsset_free(set);
        return rc;
    }
    *ret = set;
    return 0;
}

void hg_tlsset_free(struct hg_tlsset *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->entries[i].address);
        hg_tls_rules_unref(set->entries[i].rules);
    }
    free(set);
}

/* ---- in force ---- */

static void note_end(struct hg_tlslisten *tls)
{
    int64_t first_s = INT64_MAX;
    for (size_t i = 0; i < tls->count; i++)
        if (tls->entries[i].rules != NULL && tls->entries[i].expires_s < first_s)
            first_s = tls->entries[i].expires_s;
    atomic_store(&tls->expires_s, first_s);
}

static void put(struct hg_tlslisten *tls, size_t number, struct entry *from)
{
    tls->entries[number].rules = from->rules;
    tls->entries[number].expires_s = from->expires_s;
    hg_listeners_set_tls(tls->listeners, number, from->rules);
    from->rules = NULL;
}

int hg_tlslisten_open(const struct hg_conf *conf, struct hg_front *front,
                      struct hg_listeners *listeners, struct hg_tlslisten **ret, char why[512])
{
    struct hg_tlsset *set;
    bool any = false;
    int rc = hg_tlsset_load(conf, &set, why);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < set->count; i++)
        any |= set->entries[i].rules != NULL;
    if (!any) {
        hg_tlsset_free(set);
        *ret = NULL;
        return 0;
    }
    struct hg_tlslisten *tls = calloc(1, sizeof *tls + set->count * sizeof tls->entries[0]);
    if (tls != NULL)
        tls->handshakes = hg_handshakes_new(front, (unsigned)conf->tls_handshake_threads);
    if (tls == NULL || tls->handshakes == NULL) {
        snprintf(why, 512, "no memory is left");
        free(tls);
        hg_tlsset_free(set);
        return -ENOMEM;
    }
    tls->listeners = listeners;
    hg_tlslisten_follow(tls, conf);
    hg_listeners_set_handshakes(listeners, tls->handshakes);
    tls->count = set->count;
    for (size_t i = 0; i < set->count; i++) {
        tls->entries[i].address = set->entries[i].address;
        set->entries[i].address = NULL;
        if (set->entries[i].rules != NULL)
            put(tls, i, &set->entries[i]);
    }
    note_end(tls);
    hg_tlsset_free(set);
    *ret = tls;
    return 0;
}

int hg_tlslisten_start(struct hg_tlslisten *tls)
{
    return tls != NULL ? hg_handshakes_start(tls->handshakes) : 0;
}

void hg_tlslisten_put(struct hg_tlslisten *tls, struct hg_tlsset *set)
{
    for (size_t i = 0; tls != NULL && i < tls->count; i++) {
        if (tls->entries[i].rules == NULL)
            continue;
        for (size_t j = 0; j < set->count; j++)
            if (set->entries[j].rules != NULL &&
                strcmp(tls->entries[i].address, set->entries[j].address) == 0)
                put(tls, i, &set->entries[j]);
    }
    if (tls != NULL)
        note_end(tls);
}

void hg_tlslisten_follow(struct hg_tlslisten *tls, const struct hg_conf *conf)
{
    if (tls != NULL)
        hg_handshakes_set(tls->handshakes, (unsigned)conf->max_tls_handshakes,
                          conf->tls_handshake_timeout_ms * 1000);
}

unsigned hg_tlslisten_now(const struct hg_tlslisten *tls)
{
    return tls != NULL ? hg_handshakes_now(tls->handshakes) : 0;
}

void hg_tlslisten_stop(struct hg_tlslisten *tls)
{
    if (tls != NULL)
        hg_handshakes_stop(tls->handshakes);
}

void hg_tlslisten_free(struct hg_tlslisten *tls)
{
    if (tls == NULL)
        return;
    hg_handshakes_free(tls->handshakes);
    for (size_t i = 0; i < tls->count; i++)
        free(tls->entries[i].address);
    free(tls);
}

/* ---- statistics ---- */

void hg_tlslisten_sum(const struct hg_tlslisten *tls, struct hg_handshake_stats *ret)
{
    memset(ret, 0, sizeof *ret);
    for (unsigned t = 0; tls != NULL && t < hg_handshakes_threads(tls->handshakes); t++) {
        const struct hg_handshake_stats *one = hg_handshakes_stats(tls->handshakes, t);
#define HG_HANDSHAKE_STAT(name, kind, text) hg_counter_add(&ret->name, hg_counter_get(&one->name));
#include "front/handshake_stats.def"
#undef HG_HANDSHAKE_STAT
    }
}

uint64_t hg_tlslisten_expires_s(const struct hg_tlslisten *tls)
{
    int64_t end_s = tls != NULL ? atomic_load(&tls->expires_s) : INT64_MAX;
    if (end_s == INT64_MAX)
        return UINT64_MAX;
    return end_s > 0 ? (uint64_t)end_s : 0;
}

void hg_tlslisten_stats(const struct hg_tlslisten *tls, struct hg_job *job)
{
    struct hg_handshake_stats sum;
    if (tls == NULL)
        return;
    hg_tlslisten_sum(tls, &sum);
#define HG_HANDSHAKE_STAT(name, kind, text)                                                        \
    hg_job_stat(job, "tls_handshakes_" #name, "%llu",                                              \
                (unsigned long long)hg_counter_get(&sum.name));
#include "front/handshake_stats.def"
#undef HG_HANDSHAKE_STAT
    hg_job_stat(job, "tls_handshakes_now", "%u", hg_tlslisten_now(tls));
    hg_job_stat(job, "tls_certificate_expires_s", "%lld",
                (long long)atomic_load(&tls->expires_s) - (long long)hg_wall_s());
}

void hg_tlslisten_thread_stats(const struct hg_tlslisten *tls, struct hg_job *job)
{
    for (unsigned t = 0; tls != NULL && t < hg_handshakes_threads(tls->handshakes); t++) {
        const struct hg_handshake_stats *stats = hg_handshakes_stats(tls->handshakes, t);
        char name[80];
#define HG_HANDSHAKE_STAT(field, kind, text)                                                       \
    snprintf(name, sizeof name, "handshakes_%u:" #field, t);                                       \
    hg_job_stat(job, name, "%llu", (unsigned long long)hg_counter_get(&stats->field));
#include "front/handshake_stats.def"
#undef HG_HANDSHAKE_STAT
    }
}
