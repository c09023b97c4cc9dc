// resolve - names into addresses, on a thread of its own
// SPDX-License-Identifier: BSD-3-Clause
#include "back/resolve.h"

#include "back/local.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Asker's side and thread share it; the last one frees it. */
struct hg_resolver {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct hg_list queue;
    bool stopped;
    unsigned refs; /* under the lock */
};

static void deliver(struct hg_letter *letter, void *receiver)
{
    (void)receiver;
    struct hg_resolve *resolve = HG_CONTAINER_OF(letter, struct hg_resolve, letter);
    if (resolve->on_done != NULL)
        resolve->on_done(resolve, resolve->asker);
    free(resolve);
}

/* The lock is held and released. */
static void unref(struct hg_resolver *resolver)
{
    bool last = --resolver->refs == 0;
    pthread_mutex_unlock(&resolver->lock);
    if (!last)
        return;
    pthread_cond_destroy(&resolver->wake);
    pthread_mutex_destroy(&resolver->lock);
    free(resolver);
}

static void look_up(struct hg_resolve *resolve)
{
    char host[256], service[8];
    uint16_t port;
    bool is_unix;
    resolve->error = hg_addr_split(resolve->text, resolve->default_port, host, &port, &is_unix);
    if (resolve->error == 0 && is_unix)
        resolve->error = -EINVAL;
    if (resolve->error != 0)
        return;
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0) {
        resolve->error = rc == EAI_MEMORY                          ? -ENOMEM
                         : rc == EAI_SYSTEM && hg_local_is(-errno) ? -errno
                                                                   : -ENOENT;
        return;
    }
    struct hg_addrs *addrs = &resolve->addrs;
    for (struct addrinfo *a = found; a != NULL && addrs->count < HG_ADDRS_MAX; a = a->ai_next) {
        struct hg_addr *addr = &addrs->list[addrs->count++];
        memcpy(&addr->sa, a->ai_addr, a->ai_addrlen);
        addr->len = a->ai_addrlen;
    }
    freeaddrinfo(found);
    if (addrs->count == 0)
        resolve->error = -ENOENT;
}

static void *run(void *arg)
{
    struct hg_resolver *resolver = arg;
    pthread_mutex_lock(&resolver->lock);
    while (!resolver->stopped) {
        struct hg_list *node = hg_list_first(&resolver->queue);
        if (node == NULL) {
            pthread_cond_wait(&resolver->wake, &resolver->lock);
            continue;
        }
        hg_list_remove(node);
        struct hg_resolve *resolve = HG_CONTAINER_OF(node, struct hg_resolve, node);
        resolve->state = HG_RESOLVE_IN_HAND;
        pthread_mutex_unlock(&resolver->lock);
        look_up(resolve);
        pthread_mutex_lock(&resolver->lock);
        if (resolve->state == HG_RESOLVE_FORGOTTEN) {
            free(resolve); /* its mailbox may be gone */
        } else {
            resolve->state = HG_RESOLVE_POSTED;
            hg_mailbox_post(resolve->mailbox, &resolve->letter);
        }
    }
    unref(resolver);
    return NULL;
}

struct hg_resolver *hg_resolver_new(void)
{
    struct hg_resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return NULL;
    pthread_mutex_init(&resolver->lock, NULL);
    pthread_cond_init(&resolver->wake, NULL);
    hg_list_init(&resolver->queue);
    resolver->refs = 2;
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    int rc = pthread_create(&thread, &attr, run, resolver);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (rc == 0)
        return resolver;
    resolver->refs = 1;
    pthread_mutex_lock(&resolver->lock);
    unref(resolver);
    return NULL;
}

void hg_resolver_free(struct hg_resolver *resolver)
{
    if (resolver == NULL)
        return;
    pthread_mutex_lock(&resolver->lock);
    assert(hg_list_empty(&resolver->queue));
    resolver->stopped = true;
    pthread_cond_signal(&resolver->wake);
    unref(resolver);
}

struct hg_resolve *hg_resolve_submit(struct hg_resolver *resolver, const char *text,
                                     uint16_t default_port, struct hg_mailbox *mailbox,
                                     void (*on_done)(struct hg_resolve *, void *), void *asker)
{
    struct hg_resolve *resolve = calloc(1, sizeof *resolve);
    if (resolve == NULL)
        return NULL;
    resolve->letter.deliver = deliver;
    resolve->mailbox = mailbox;
    resolve->on_done = on_done;
    resolve->asker = asker;
    resolve->default_port = default_port;
    snprintf(resolve->text, sizeof resolve->text, "%s", text);
    pthread_mutex_lock(&resolver->lock);
    hg_list_append(&resolver->queue, &resolve->node);
    pthread_cond_signal(&resolver->wake);
    pthread_mutex_unlock(&resolver->lock);
    return resolve;
}

void hg_resolve_forget(struct hg_resolver *resolver, struct hg_resolve *resolve)
{
    if (resolve == NULL)
        return;
    pthread_mutex_lock(&resolver->lock);
    if (resolve->state == HG_RESOLVE_QUEUED) {
        hg_list_remove(&resolve->node);
        free(resolve);
    } else if (resolve->state == HG_RESOLVE_IN_HAND) {
        resolve->state = HG_RESOLVE_FORGOTTEN;
    } else {
        resolve->on_done = NULL; /* the letter is in the mailbox of this thread */
    }
    pthread_mutex_unlock(&resolver->lock);
}
