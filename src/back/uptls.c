// uptls - TLS towards the servers of an upstream: the rules, and the certificates of now
// SPDX-License-Identifier: BSD-3-Clause
#include "back/uptls.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES 3 /* certificate, key, ca */

/* By what a file is seen to be another, or written anew. */
struct mark {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
};

struct hg_uptls {
    pthread_mutex_t lock;
    struct hg_tls_ctx *ctx; /* under the lock */
    char *server_name;
    struct mark marks[FILES]; /* when ctx was made; of who renews */
};

static void take_marks(const struct hg_tls_conf *conf, struct mark marks[FILES])
{
    const char *const paths[FILES] = {conf->certificate, conf->key, conf->ca};
    memset(marks, 0, FILES * sizeof marks[0]);
    for (unsigned i = 0; i < FILES; i++) {
        struct stat st;
        if (paths[i] == NULL || paths[i][0] == '\0' || stat(paths[i], &st) != 0)
            continue;
        marks[i].device = st.st_dev;
        marks[i].inode = st.st_ino;
        marks[i].bytes = st.st_size;
        marks[i].changed = st.st_mtim;
    }
}

static bool are_same(const struct mark *a, const struct mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

struct hg_uptls *hg_uptls_new(const struct hg_uptls_conf *conf, char why[HG_TLS_WHY_BYTES])
{
    struct hg_uptls *uptls = calloc(1, sizeof *uptls);
    char *name = strdup(conf->server_name != NULL ? conf->server_name : "");
    if (uptls == NULL || name == NULL) {
        snprintf(why, HG_TLS_WHY_BYTES, "no memory is left");
        free(uptls);
        free(name);
        return NULL;
    }
    uptls->server_name = name;
    pthread_mutex_init(&uptls->lock, NULL);
    take_marks(&conf->tls, uptls->marks); /* before they are read: a change meanwhile is seen */
    if (hg_tls_ctx_new(&conf->tls, &uptls->ctx, why) == 0)
        return uptls;
    uptls->ctx = NULL;
    hg_uptls_free(uptls);
    return NULL;
}

void hg_uptls_free(struct hg_uptls *uptls)
{
    if (uptls == NULL)
        return;
    hg_tls_ctx_unref(uptls->ctx);
    pthread_mutex_destroy(&uptls->lock);
    free(uptls->server_name);
    free(uptls);
}

int hg_uptls_renew(struct hg_uptls *uptls, const struct hg_uptls_conf *conf,
                   char why[HG_TLS_WHY_BYTES])
{
    struct mark marks[FILES];
    struct hg_tls_ctx *ctx;
    bool same = true;
    take_marks(&conf->tls, marks);
    for (unsigned i = 0; i < FILES; i++)
        same &= are_same(&marks[i], &uptls->marks[i]);
    if (same)
        return 0;
    int rc = hg_tls_ctx_new(&conf->tls, &ctx, why);
    if (rc != 0)
        return rc;
    memcpy(uptls->marks, marks, sizeof marks);
    pthread_mutex_lock(&uptls->lock);
    struct hg_tls_ctx *old = uptls->ctx;
    uptls->ctx = ctx;
    pthread_mutex_unlock(&uptls->lock);
    hg_tls_ctx_unref(old);
    return 1;
}

struct hg_tls *hg_uptls_begin(struct hg_uptls *uptls, int fd, const char *host)
{
    pthread_mutex_lock(&uptls->lock);
    struct hg_tls_ctx *ctx = hg_tls_ctx_ref(uptls->ctx);
    pthread_mutex_unlock(&uptls->lock);
    struct hg_tls *tls =
        hg_tls_new(ctx, fd, uptls->server_name[0] != '\0' ? uptls->server_name : host);
    hg_tls_ctx_unref(ctx);
    return tls;
}
