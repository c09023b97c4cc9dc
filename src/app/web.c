// web - the HTTP thread: its beginning, its second hand, its end
// SPDX-License-Identifier: BSD-3-Clause
#include "app/web_own.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/inherit.h"
#include "base/clock.h"
#include "base/log.h"

#define BACKLOG 64

/* ---- what is in force ---- */

void hg_web_view_take(struct hg_web *web, struct hg_web_view *ret)
{
    struct hg_process *process = web->process;
    pthread_mutex_lock(&process->lock);
    ret->directory = hg_directory_ref(process->directory);
    ret->node_capacity = process->effective->node_capacity;
    ret->max_connections = process->effective->max_connections;
    ret->slot_ms = process->effective->throttle_slot_ms;
    pthread_mutex_unlock(&process->lock);
}

void hg_web_view_put(struct hg_web_view *view)
{
    hg_directory_unref(view->directory);
    view->directory = NULL;
}

/* ---- once a second, and when a directory has come ---- */

static void sync_now(struct hg_web *web, const struct hg_web_view *view)
{
    if (!hg_web_watch_sync(&web->watch, view->directory))
        hg_log_error("msg=\"no memory to follow new tenants: HTTP shows the old ones\"");
}

static void look(struct hg_web *web, const struct hg_web_view *view)
{
    uint64_t requests = 0;
    for (unsigned o = 0; o < HG_OUTCOMES; o++)
        requests += hg_web_outcome(web->process, o);
    web->requests_per_s = web->rated_us == 0               ? 0
                          : requests >= web->requests_seen ? requests - web->requests_seen
                                                           : requests;
    web->requests_seen = requests;
    web->rated_us = web->loop.now_us;
    hg_web_watch_look(&web->watch, view->directory);
    hg_web_history_sample(&web->history, web->process, &web->watch, view->directory,
                          web->loop.now_us, hg_wall_s());
}

static void look_for_life(struct hg_web *web)
{
    const struct hg_process *process = web->process;
    uint64_t counts[HG_WEBALIVE_MAX];
    size_t n = 0;
    counts[n++] = hg_counter_get(&process->ticks);
    for (unsigned w = 0; w < process->front.worker_count && n < HG_WEBALIVE_MAX; w++)
        counts[n++] = hg_counter_get(&process->workers[w].turns);
    hg_webalive_look(&web->alive, counts, n);
}

static void on_second(struct hg_timer *timer)
{
    struct hg_web *web = HG_CONTAINER_OF(timer, struct hg_web, second);
    struct hg_web_view view;
    hg_loop_stamp(&web->loop);
    hg_web_view_take(web, &view);
    sync_now(web, &view);
    look(web, &view);
    hg_web_view_put(&view);
    look_for_life(web);
    hg_webconns_look(&web->conns);
}

static void on_late(struct hg_timer *timer)
{
    struct hg_web *web = HG_CONTAINER_OF(timer, struct hg_web, late_timer);
    hg_loop_stamp(&web->loop);
    hg_web_send_late(web);
}

static void on_directory(struct hg_letter *letter, void *receiver)
{
    struct hg_web *web = receiver;
    struct hg_web_view view;
    (void)letter;
    atomic_store(&web->directory_posted, false);
    if (web->stopping)
        return;
    hg_web_view_take(web, &view);
    sync_now(web, &view);
    hg_web_view_put(&view);
}

void hg_web_note_directory(struct hg_web *web)
{
    if (web == NULL || atomic_exchange(&web->directory_posted, true))
        return;
    web->directory_letter.deliver = on_directory;
    hg_mailbox_post(&web->mailbox, &web->directory_letter);
}

/* ---- the socket ---- */

int hg_web_fd(const struct hg_web *web)
{
    return web->fd;
}

static void on_give_way(struct hg_letter *letter, void *receiver)
{
    struct hg_web *web = receiver;
    (void)letter;
    if (!web->stopping)
        hg_webconns_refuse_new(&web->conns);
}

void hg_web_give_way(struct hg_web *web)
{
    if (web == NULL || atomic_exchange(&web->give_posted, true))
        return;
    web->give_letter.deliver = on_give_way;
    hg_mailbox_post(&web->mailbox, &web->give_letter);
}

static int bind_to(struct hg_web *web, const struct hg_conf_address *address, char why[256])
{
    struct evconnlistener *listener = NULL;
    struct hg_addr addr;
    struct hg_inherit_share share = {.fd = -ENOENT};
    int rc = hg_addr_resolve(address->text, 0, &addr);
    if (rc == 0)
        hg_inherit_take(web->process->inherit, HG_INHERIT_ADMIN, &addr, 1, &share);
    int fd = share.fd;
    if (rc == 0 && fd < 0) {
        fd = hg_sock_listen(&addr, BACKLOG, 0600);
        rc = fd < 0 ? fd : 0;
    }
    if (rc != 0) {
        snprintf(why, 256, "cannot bind '%s' for HTTP: %s", address->text,
                 rc == -EADDRINUSE ? "address in use"
                 : rc == -ENOENT   ? "no such host"
                                   : strerror(-rc));
        return rc;
    }
    web->bound.len = sizeof web->bound.sa;
    if (getsockname(fd, (struct sockaddr *)&web->bound.sa, &web->bound.len) != 0)
        web->bound = addr;
    evutil_make_socket_nonblocking(fd);
    web->fd = fd;
    web->is_loopback = hg_addr_local(&web->bound);
    snprintf(web->host, sizeof web->host, "%s", address->host);
    listener = evconnlistener_new(web->loop.base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE, 0, fd);
    if (listener == NULL) {
        close(fd);
        return -ENOMEM;
    }
    if (evhttp_bind_listener(web->http, listener) == NULL) {
        evconnlistener_free(listener);
        return -ENOMEM;
    }
    hg_webconns_init(&web->conns, &web->loop, web->http, listener);
    return 0;
}

int hg_web_open(struct hg_process *process, struct hg_web **ret, char why[256])
{
    const struct hg_conf *conf = process->effective;
    *ret = NULL;
    if (conf->admin_count == 0)
        return 0;
    struct hg_web *web = calloc(1, sizeof *web);
    snprintf(why, 256, "no memory is left");
    if (web == NULL)
        return -ENOMEM;
    web->process = process;
    hg_list_init(&web->late);
    hg_webask_init(&web->hot, web);
    hg_webask_init(&web->slow, web);
    hg_web_watch_init(&web->watch, conf->admin[0].metrics_tenants);
    int rc = hg_web_history_init(&web->history);
    if (rc == 0)
        rc = hg_loop_init(&web->loop);
    if (rc == 0)
        rc = hg_mailbox_init(&web->mailbox, &web->loop, web);
    if (rc == 0) {
        web->http = evhttp_new(web->loop.base);
        rc = web->http != NULL ? 0 : -ENOMEM;
    }
    if (rc == 0) {
        evhttp_set_gencb(web->http, hg_web_on_request, web);
        evhttp_set_allowed_methods(web->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                                  EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                                  EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                                  EVHTTP_REQ_PATCH);
        rc = bind_to(web, &conf->admin[0].address, why);
    }
    if (rc != 0) {
        hg_web_free(web);
        return rc;
    }
    char text[HG_ADDR_TEXT];
    hg_log_info("admin=%s msg=\"metrics, health and dashboard\"", hg_addr_text(&web->bound, text));
    *ret = web;
    return 0;
}

/* ---- the thread ---- */

static void *run(void *arg)
{
    struct hg_web *web = arg;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    hg_loop_run(&web->loop);
    return NULL;
}

int hg_web_start(struct hg_web *web)
{
    if (web == NULL)
        return 0;
    int rc = hg_loop_timer_init(&web->loop, &web->second, 1000000, on_second);
    if (rc == 0)
        rc = hg_loop_timer_init(&web->loop, &web->late_timer, 0, on_late);
    if (rc == 0)
        rc = -pthread_create(&web->thread, NULL, run, web);
    web->runs = rc == 0;
    return rc;
}

static void on_stop(struct hg_letter *letter, void *receiver)
{
    (void)letter;
    hg_loop_stop(&((struct hg_web *)receiver)->loop);
}

void hg_web_stop(struct hg_web *web)
{
    if (web == NULL || !web->runs)
        return;
    web->stop_letter.deliver = on_stop;
    hg_mailbox_post(&web->mailbox, &web->stop_letter);
    pthread_join(web->thread, NULL);
    web->runs = false;
    web->stopping = true;
    hg_loop_timer_fini(&web->second);
    hg_loop_timer_fini(&web->late_timer);
    evhttp_free(web->http);
    web->http = NULL;
    hg_webconns_fini(&web->conns);
    hg_web_drop_late(web);
    hg_webask_drop(&web->hot);
    hg_webask_drop(&web->slow);
    hg_web_watch_fini(&web->watch);
}

void hg_web_free(struct hg_web *web)
{
    if (web == NULL)
        return;
    web->stopping = true;
    if (web->http != NULL) {
        evhttp_free(web->http);
        hg_webconns_fini(&web->conns);
    }
    if (web->mailbox.loop != NULL)
        hg_mailbox_fini(&web->mailbox);
    hg_webask_fini(&web->hot);
    hg_webask_fini(&web->slow);
    hg_web_watch_fini(&web->watch);
    hg_web_history_fini(&web->history);
    hg_loop_fini(&web->loop);
    free(web);
}
